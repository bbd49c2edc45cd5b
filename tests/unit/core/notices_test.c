/* Goal: a user is told of a condition once an hour at most, of its end once, and never of nothing
 * (core/alerts/notices.h NTC1, NTC2; E6.4).
 * Method: one mark, a clock that the test sets; then random walks of a condition that comes and
 * goes, of sends that fail and of clocks that jump, checked after each step. */
#include "core/alerts/notices.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/test.h"

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE, DAY = 24 * HOUR };
#define NOW 1794700000000ull

static struct tide_alerts_settings settings_of(void)
{
    return tide_alerts_defaults();
}

static struct tide_notice_order next(const struct tide_notice_state *mark, int level, uint64_t now)
{
    const struct tide_alerts_settings settings = settings_of();
    return tide_notice_next(&settings, mark, level, now);
}

static bool settle(struct tide_notice_state *mark, int level, uint64_t now)
{
    const struct tide_alerts_settings settings = settings_of();
    return tide_notice_settle(&settings, mark, level, now);
}

TEST(the_first_notice_is_due_at_once)
{
    struct tide_notice_state mark = {.told = 0};
    assert_int_equal(next(&mark, 0, NOW).kind, TIDE_NOTICE_NONE);
    assert_int_equal(next(&mark, 1, NOW).kind, TIDE_NOTICE_RAISED);
    assert_true(next(&mark, 1, NOW).at_unix_ms <= NOW);
}

TEST(the_next_one_waits_for_the_hour_also_the_all_clear)
{
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_SENT, NOW);
    const struct tide_notice_order critical = next(&mark, 2, NOW + MINUTE);
    assert_int_equal(critical.kind, TIDE_NOTICE_RAISED);
    assert_int_equal(critical.at_unix_ms, NOW + HOUR);
    const struct tide_notice_order clear = next(&mark, 0, NOW + MINUTE);
    assert_int_equal(clear.kind, TIDE_NOTICE_CLEAR);
    assert_int_equal(clear.at_unix_ms, NOW + HOUR);
    assert_true(next(&mark, 0, NOW + HOUR).at_unix_ms <= NOW + HOUR);
}

TEST(a_condition_that_comes_and_goes_within_the_hour_is_told_of_once)
{
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_SENT, NOW);
    assert_true(settle(&mark, 0, NOW + MINUTE));
    assert_int_equal(mark.ended_unix_ms, NOW + MINUTE);
    assert_false(settle(&mark, 0, NOW + 2 * MINUTE));
    assert_int_equal(mark.ended_unix_ms,
                     NOW + MINUTE); /* when it ended, not when it was looked at */
    assert_true(settle(&mark, 1, NOW + 3 * MINUTE));
    assert_int_equal(mark.ended_unix_ms, 0);
    assert_int_equal(next(&mark, 1, NOW + HOUR).kind, TIDE_NOTICE_STILL);
    assert_int_equal(next(&mark, 1, NOW + HOUR).at_unix_ms, NOW + DAY);
}

TEST(one_that_ended_before_its_notice_is_not_told_of)
{
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_REFUSED, NOW);
    assert_int_equal(next(&mark, 0, NOW + MINUTE).kind, TIDE_NOTICE_NONE);
    assert_true(settle(&mark, 0, NOW + MINUTE)); /* and no failure is left */
    assert_int_equal(mark.failures, 0);
}

TEST(a_condition_that_lasts_is_told_of_again_after_a_day_unless_that_is_off)
{
    struct tide_alerts_settings settings = settings_of();
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 2, false, TIDE_NOTICE_SENT, NOW);
    assert_int_equal(next(&mark, 2, NOW + HOUR).at_unix_ms, NOW + DAY);
    assert_int_equal(next(&mark, 1, NOW + HOUR).kind, TIDE_NOTICE_STILL); /* better is no news */
    settings.notify_still_ms = 0;
    assert_int_equal(tide_notice_next(&settings, &mark, 2, NOW + 9ull * DAY).kind,
                     TIDE_NOTICE_NONE);
}

TEST(a_refused_one_is_tried_again_with_growing_pauses)
{
    struct tide_notice_state mark = {.told = 0};
    static const uint64_t pauses[] = {1, 2, 4, 8, 15, 15};
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        tide_notice_ended(&mark, 1, false, TIDE_NOTICE_REFUSED, NOW);
        assert_false(mark.in_flight);
        assert_int_equal(mark.failures, i + 1);
        assert_int_equal(next(&mark, 1, NOW).at_unix_ms, NOW + pauses[i] * MINUTE);
    }
    mark.failures = UINT32_MAX; /* does not begin again at 0 */
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_REFUSED, NOW);
    assert_int_equal(mark.failures, UINT32_MAX);
    assert_int_equal(next(&mark, 1, NOW).at_unix_ms, NOW + 15 * MINUTE);
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_SENT, NOW);
    assert_int_equal(mark.failures, 0);
}

TEST(a_final_refusal_is_told_to_the_user_at_once)
{
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_FINAL, NOW);
    assert_int_equal(mark.failures, TIDE_NOTICE_FAILURES_TOLD);
    assert_int_equal(next(&mark, 1, NOW).at_unix_ms, NOW + TIDE_NOTICE_RETRY_MAX_MS);
}

TEST(one_with_an_unknown_outcome_is_repeated_whatever_happened_since)
{
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_UNKNOWN, NOW);
    assert_true(mark.in_flight);
    for (int level = 0; level <= 2; level++) {
        const struct tide_notice_order order = next(&mark, level, NOW);
        assert_true(order.again);
        assert_int_equal(order.at_unix_ms, NOW + MINUTE);
    }
    assert_int_equal(mark.told, 0); /* not yet known to the user */
}

TEST(a_repetition_that_is_refused_does_not_end_it)
{
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_UNKNOWN, NOW);
    tide_notice_ended(&mark, 1, true, TIDE_NOTICE_FINAL, NOW);
    assert_true(next(&mark, 0, NOW).again); /* the first may have arrived */
    tide_notice_ended(&mark, 1, true, TIDE_NOTICE_SENT, NOW);
    assert_int_equal(next(&mark, 0, NOW + HOUR).kind, TIDE_NOTICE_CLEAR);
}

TEST(one_in_flight_belongs_to_its_process_until_its_lease_ends)
{
    const struct tide_notice_state mark = {.in_flight = true, .taken_until_unix_ms = NOW + MINUTE};
    assert_true(next(&mark, 1, NOW).again);
    assert_int_equal(next(&mark, 1, NOW).at_unix_ms, NOW + MINUTE);
}

TEST(a_clock_that_was_set_back_does_not_silence_it_for_long)
{
    struct tide_notice_state mark = {.told = 0};
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_SENT, NOW);
    tide_notice_ended(&mark, 1, false, TIDE_NOTICE_REFUSED, NOW);
    assert_true(settle(&mark, 2, NOW - DAY));
    assert_int_equal(mark.sent_unix_ms, NOW - DAY);
    assert_false(settle(&mark, 2, NOW - DAY));
    assert_true(next(&mark, 2, NOW - DAY).at_unix_ms <= NOW - DAY + HOUR);
}

/* A user as the notices leave him. */
struct walk {
    struct tide_notice_state mark;
    int level; /* of the condition */
    int knows; /* the level of the last notice that arrived */
    uint64_t now;
    uint64_t sent; /* when the last new one was sent */
    int flight;    /* level of the one in flight */
    unsigned count;
};

static void walk_send(struct walk *walk, const struct tide_notice_order *order, tide_rng *rng)
{
    const enum tide_notice_end end = (enum tide_notice_end)tide_rng_below(rng, 4);
    if (!order->again) {
        walk->flight = walk->level;
        assert_true(order->kind != TIDE_NOTICE_CLEAR || walk->knows > 0 || walk->mark.told > 0);
        assert_true(walk->sent == 0 || walk->now >= walk->sent + HOUR); /* NTC1 */
    }
    walk->mark.in_flight = true; /* durable from here on */
    if (tide_rng_below(rng, 8) == 0)
        return; /* the process died: its lease is over at once, it is alone */
    if (end == TIDE_NOTICE_SENT || end == TIDE_NOTICE_UNKNOWN)
        walk->knows = walk->flight;
    if (end == TIDE_NOTICE_SENT) {
        walk->sent = walk->now;
        walk->count++;
    }
    tide_notice_ended(&walk->mark, walk->flight, order->again, end, walk->now);
}

TEST(whatever_happens_the_user_ends_up_knowing_how_it_is)
{
    for (uint64_t seed = 1; seed <= scaled(400); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        struct walk walk = {.now = NOW};
        for (int step = 0; step < 300; step++) {
            walk.now += tide_rng_below(&rng, 40) * MINUTE;
            if (tide_rng_below(&rng, 5) == 0)
                walk.level = (int)tide_rng_below(&rng, 3);
            (void)settle(&walk.mark, walk.level, walk.now);
            const struct tide_notice_order order = next(&walk.mark, walk.level, walk.now);
            if (order.kind != TIDE_NOTICE_NONE && order.at_unix_ms <= walk.now)
                walk_send(&walk, &order, &rng);
        }
        /* From now on everything works. */
        for (int step = 0; step < 10; step++) {
            walk.now += 2 * HOUR;
            (void)settle(&walk.mark, walk.level, walk.now);
            const struct tide_notice_order order = next(&walk.mark, walk.level, walk.now);
            if (order.kind == TIDE_NOTICE_NONE || order.at_unix_ms > walk.now)
                continue;
            if (!order.again)
                walk.flight = walk.level;
            walk.knows = walk.flight;
            tide_notice_ended(&walk.mark, walk.flight, order.again, TIDE_NOTICE_SENT, walk.now);
        }
        assert_int_equal(walk.mark.told == 0, walk.level == 0);
        assert_int_equal(walk.knows == 0, walk.level == 0);
        assert_true(walk.knows >= walk.level); /* it may have become better */
        assert_true(walk.count > 3);
    }
}
