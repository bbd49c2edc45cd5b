/* Goal: every number that the decisions of src/core are given is checked, each by itself.
 * Method: the defaults are taken, one field is set out of its range, and the whole must be
 * refused; what is exactly at the bound must not. */
#include "base/limits.h"
#include "core/alerts/alerts.h"
#include "core/badness.h"
#include "core/lanes.h"
#include "core/governor/profile.h"
#include "core/retry.h"
#include "core/schedule.h"
#include "support/ok.h"
#include "support/test.h"

static void alerts_take(struct tide_alerts_settings settings, tide_status expected)
{
    tide_alerts *alerts = NULL;
    assert_int_equal(tide_alerts_new(&settings, tide_mem_heap(), &alerts), expected);
    tide_alerts_free(alerts);
}

#define WITH(type, make, field, value, take, expected)                                             \
    do {                                                                                           \
        struct type settings = make();                                                             \
        settings.field = (value);                                                                  \
        take(settings, expected);                                                                  \
    } while (0)
#define ALERTS(field, value, expected)                                                             \
    WITH(tide_alerts_settings, tide_alerts_defaults, field, value, alerts_take, expected)

TEST(alerts_refuse_settings_out_of_range)
{
    alerts_take(tide_alerts_defaults(), TIDE_OK);
    ALERTS(bad_window_items, 0, TIDE_INVALID);
    ALERTS(bad_window_items, UINT32_MAX, TIDE_INVALID);
    ALERTS(bad_items_min, 0, TIDE_INVALID);
    ALERTS(bad_items_min, tide_alerts_defaults().bad_window_items, TIDE_OK);
    ALERTS(bad_items_min, tide_alerts_defaults().bad_window_items + 1, TIDE_INVALID);
    ALERTS(bad_hour_ms, 0, TIDE_INVALID);
    ALERTS(metadata_budget_bytes, 0, TIDE_INVALID);
    ALERTS(throttled_window_ms, 0, TIDE_INVALID);
    ALERTS(throttled_calls_min, 0, TIDE_INVALID);
    ALERTS(keep_percent, 0, TIDE_INVALID);
    ALERTS(keep_percent, 100, TIDE_OK);
    ALERTS(keep_percent, 101, TIDE_INVALID);
}

static void badness_take(struct tide_badness_settings settings, tide_status expected)
{
    tide_badness *badness = NULL;
    assert_int_equal(tide_badness_new(&settings, tide_mem_heap(), &badness), expected);
    tide_badness_free(badness);
}

#define BADNESS(field, value, expected)                                                            \
    WITH(tide_badness_settings, tide_badness_defaults, field, value, badness_take, expected)

TEST(badness_refuses_settings_out_of_range)
{
    const struct tide_badness_settings usual = tide_badness_defaults();
    badness_take(usual, TIDE_OK);
    BADNESS(attempts_max, 0, TIDE_INVALID);
    BADNESS(row_max, 0, TIDE_INVALID);
    BADNESS(window_failed_max, 100, TIDE_INVALID);
    BADNESS(stalls_min, 0, TIDE_INVALID);
    BADNESS(pause_first_ms, 0, TIDE_INVALID);
    BADNESS(pause_first_ms, usual.pause_max_ms, TIDE_OK);
    BADNESS(pause_first_ms, usual.pause_max_ms + 1, TIDE_INVALID);
    BADNESS(pause_factor_permille, 999, TIDE_INVALID);
    BADNESS(owed_first_ms, 0, TIDE_INVALID);
    BADNESS(owed_first_ms, usual.owed_max_ms + 1, TIDE_INVALID);
    BADNESS(suspects_max, 0, TIDE_INVALID);
    BADNESS(suspects_max, UINT32_MAX, TIDE_INVALID);
}

static void retry_take(struct tide_retry_policy policy, tide_status expected)
{
    assert_int_equal(tide_retry_check(&policy, NULL), expected);
}

#define RETRY(field, value, expected)                                                              \
    WITH(tide_retry_policy, tide_retry_defaults, field, value, retry_take, expected)

TEST(retries_refuse_a_policy_out_of_range)
{
    retry_take(tide_retry_defaults(), TIDE_OK);
    RETRY(attempts_max, 0, TIDE_INVALID);
    RETRY(pause_first_ms, 0, TIDE_INVALID);
    RETRY(pause_first_ms, tide_retry_defaults().pause_max_ms + 1, TIDE_INVALID);
    RETRY(pause_factor_permille, 999, TIDE_INVALID);
}

static void lanes_take(struct tide_lanes_limits limits, uint32_t jobs_max, tide_status expected)
{
    tide_lanes *lanes = NULL;
    assert_int_equal(tide_lanes_new(&limits, jobs_max, tide_mem_heap(), &lanes), expected);
    tide_lanes_free(lanes);
}

TEST(lanes_refuse_limits_out_of_range)
{
    lanes_take((struct tide_lanes_limits){16, {2, 2}}, 100, TIDE_OK);
    lanes_take((struct tide_lanes_limits){1, {2, 2}}, 100, TIDE_OK); /* one worker serves both */
    lanes_take((struct tide_lanes_limits){0, {0, 0}}, 100, TIDE_INVALID);
    lanes_take((struct tide_lanes_limits){UINT32_MAX, {2, 2}}, 100, TIDE_INVALID);
    lanes_take((struct tide_lanes_limits){4, {2, 2}}, 100, TIDE_INVALID);
    lanes_take((struct tide_lanes_limits){16, {2, 2}}, 0, TIDE_INVALID);
    lanes_take((struct tide_lanes_limits){16, {2, 2}}, UINT32_MAX, TIDE_INVALID);
}

static void profile_take(struct tide_governor_profile profile, tide_status expected)
{
    struct tide_governor_profile complete;
    assert_int_equal(tide_profile_complete(&profile, &complete), expected);
}

TEST(profiles_refuse_numbers_that_contradict_each_other)
{
    profile_take((struct tide_governor_profile){.in_flight_max = 4}, TIDE_OK);
    profile_take((struct tide_governor_profile){.rate_min = -1}, TIDE_INVALID);
    profile_take((struct tide_governor_profile){.rate_min = 9, .rate_max = 8}, TIDE_INVALID);
    profile_take((struct tide_governor_profile){.rate_max = 2e9}, TIDE_INVALID);
    profile_take((struct tide_governor_profile){.workers_min = 9, .workers_start = 8},
                 TIDE_INVALID);
    profile_take((struct tide_governor_profile){.workers_start = 9, .workers_max = 8},
                 TIDE_INVALID);
    profile_take((struct tide_governor_profile){.window_ms = 1000}, TIDE_INVALID);
    profile_take(
        (struct tide_governor_profile){.window_ms = 1000, .window_units_max = UINT32_MAX + 1ull},
        TIDE_INVALID);
    /* Rates above what the window allows are lowered to it. */
    struct tide_governor_profile complete;
    const struct tide_governor_profile fast = {
        .window_ms = 1000, .window_units_max = 10, .rate_max = 1000, .rate_start = 500};
    OK(tide_profile_complete(&fast, &complete));
    assert_true(complete.rate_max <= 10);
    assert_true(complete.rate_start <= complete.rate_max);
}

TEST(conditions_have_names_and_sentences)
{
    static const char *const sentences[TIDE_CONDITIONS] = {
        "3 of the last 12 items are bad (25.00 %)",
        "3 items went bad within an hour (more than 2)",
        "metadata uses 3 of 12 bytes (25.0 %)",
        "the provider refused 3 of 12 calls (25.0 %)",
        "the queue of letters is full and has not moved for 0 s",
    };
    for (int i = 0; i < TIDE_CONDITIONS; i++) {
        enum tide_condition found = TIDE_CONDITIONS;
        const char *name = tide_condition_name((enum tide_condition)i);
        assert_true(tide_condition_parse(name, &found));
        assert_int_equal(found, i);
        const struct tide_alert alert = {.condition = (enum tide_condition)i,
                                         .value = 3,
                                         .out_of = 12,
                                         .threshold = 2,
                                         .queue = "letters"};
        char text[100];
        assert_int_equal(tide_alert_print(&alert, text, sizeof text), strlen(sentences[i]));
        assert_string_equal(text, sentences[i]);
        assert_int_equal(tide_alert_print(&alert, text, 4), 3); /* cut off, and terminated */
        assert_int_equal(strlen(text), 3);
    }
    enum tide_condition untouched = TIDE_ALERT_QUEUE;
    assert_false(tide_condition_parse("no such thing", &untouched));
    assert_int_equal(untouched, TIDE_ALERT_QUEUE);
}

/* A slot beyond the end of time is never due. */
TEST(a_schedule_at_the_end_of_time_is_never_due)
{
    const struct tide_schedule_entry entry = {.id = 1,
                                              .anchor_unix_ms = 5,
                                              .period_ms = UINT64_MAX / 2,
                                              .fired = true,
                                              .last_unix_ms = 5 + (UINT64_MAX / 2) * 2 - 5};
    struct tide_firing firing;
    assert_int_equal(tide_schedule_due_at_unix_ms(&entry), UINT64_MAX);
    assert_false(tide_schedule_due(&entry, UINT64_MAX, &firing));
    assert_true(tide_schedule_lag_ms(&entry, 100) > 0);
    assert_int_equal(tide_schedule_lag_ms(&entry, UINT64_MAX), 0);
}
