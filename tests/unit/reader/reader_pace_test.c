/* When the reader looks for mail by itself (K1, K7, K9): states, intervals, and that there is nothing to
 * wake up for between two polls. */
#include "reader/pace.h"

#include "support/test.h"

#define SECOND UINT64_C(1000)
#define MINUTE (60 * SECOND)

static struct tide_pace pace_of(bool watched)
{
    return (struct tide_pace){
        .watched = watched, .active_ms = 5 * SECOND, .passive_ms = 15 * MINUTE};
}

TEST(an_account_is_initial_then_active_or_passive)
{
    struct tide_pace pace = pace_of(true);
    assert_string_equal(tide_reader_state_name(tide_pace_state(&pace)), "active");
    pace.watched = false;
    assert_string_equal(tide_reader_state_name(tide_pace_state(&pace)), "passive");
    pace.initial = true;
    assert_string_equal(tide_reader_state_name(tide_pace_state(&pace)), "initial");
}

TEST(what_was_never_looked_at_is_due)
{
    const struct tide_pace pace = pace_of(false);
    const struct tide_pace_due due = tide_pace_look(&pace, 1000 * MINUTE);
    assert_true(due.poll && due.folders);
    assert_int_equal(due.wake_ms, 1015 * MINUTE);
}

TEST(active_polls_every_five_seconds_and_passive_every_fifteen_minutes)
{
    for (int watched = 0; watched < 2; watched++) {
        struct tide_pace pace = pace_of(watched == 1);
        const uint64_t period_ms = watched == 1 ? 5 * SECOND : 15 * MINUTE;
        pace.polled_ms = pace.folders_ms = 1000 * MINUTE;
        const struct tide_pace_due before = tide_pace_look(&pace, 1000 * MINUTE + period_ms - 1);
        assert_false(before.poll);
        assert_int_equal(before.wake_ms, 1000 * MINUTE + period_ms); /* nothing in between */
        const struct tide_pace_due at = tide_pace_look(&pace, 1000 * MINUTE + period_ms);
        assert_true(at.poll);
        assert_false(at.folders);
    }
}

TEST(a_page_that_opens_is_served_at_once)
{
    struct tide_pace pace = pace_of(false);
    pace.polled_ms = pace.folders_ms = 1000 * MINUTE;
    assert_false(tide_pace_look(&pace, 1001 * MINUTE).poll);
    pace.watched = true;
    assert_true(tide_pace_look(&pace, 1001 * MINUTE).poll);
}

TEST(on_battery_an_open_page_polls_as_if_there_was_none)
{
    struct tide_pace pace = pace_of(true);
    pace.saving = true;
    pace.polled_ms = pace.folders_ms = 1000 * MINUTE;
    assert_false(tide_pace_look(&pace, 1001 * MINUTE).poll);
    assert_int_equal(tide_pace_look(&pace, 1001 * MINUTE).wake_ms, 1015 * MINUTE);
}

TEST(folders_are_listed_once_a_day)
{
    struct tide_pace pace = pace_of(false);
    uint64_t listed = 0;
    pace.polled_ms = pace.folders_ms = 1000 * MINUTE;
    for (uint64_t now_ms = 1000 * MINUTE; now_ms < 4880 * MINUTE;) { /* 2.7 days */
        const struct tide_pace_due due = tide_pace_look(&pace, now_ms);
        if (due.poll)
            pace.polled_ms = now_ms;
        if (due.folders)
            pace.folders_ms = now_ms;
        listed += due.folders;
        assert_true(due.wake_ms > now_ms);
        now_ms = due.wake_ms;
    }
    assert_int_equal(listed, 2);
}
