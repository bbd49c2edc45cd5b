/* Goal: alerts come at the thresholds of E6.4, stay while they matter, and go.
 * Method: examples at the very edges, then random news against a model that
 * keeps every event and counts again each time. */
#include "core/alerts/alerts.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"
#include "support/test.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, NOW = 100 * HOUR };

static tide_alerts *alerts_make(void)
{
    struct tide_alerts_settings settings = tide_alerts_defaults();
    tide_alerts *alerts = NULL;
    OK(tide_alerts_new(&settings, tide_mem_heap(), &alerts));
    return alerts;
}

#define CASE(name) TEST_OF(name, tide_alerts *alerts, alerts_make(), tide_alerts_free)

/* The level of one condition of one account; fills `found` if it holds. */
static enum tide_level level_of(const tide_alerts *alerts, uint64_t account,
                                enum tide_condition condition, struct tide_alert *found)
{
    struct tide_alert alert;
    for (size_t cursor = 0; tide_alerts_each(alerts, &cursor, &alert);)
        if (alert.account == account && alert.condition == condition) {
            if (found != NULL)
                *found = alert;
            return alert.level;
        }
    return TIDE_LEVEL_NONE;
}

static enum tide_level worst_of(const tide_alerts *alerts)
{
    struct tide_alert alert;
    enum tide_level worst = TIDE_LEVEL_NONE;
    for (size_t cursor = 0; tide_alerts_each(alerts, &cursor, &alert);)
        worst = alert.level > worst ? alert.level : worst;
    return worst;
}

CASE(the_bad_rate_warns_at_two_per_mille_and_is_critical_at_one_percent)
{
    struct tide_alert alert;
    OK(tide_alerts_items(alerts, 1, 9981, 19, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_NONE);
    OK(tide_alerts_items(alerts, 1, 0, 1, NOW + 5));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, &alert), TIDE_LEVEL_WARN);
    assert_int_equal(alert.since_ms, NOW + 5);
    assert_int_equal(alert.value, 20);
    assert_int_equal(alert.out_of, 10000);
    char text[200];
    size_t bytes = tide_alert_print(&alert, text, sizeof text);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(text, "20 of the last 10000 items are bad (0.20 %)");
    assert_int_equal(tide_alert_print(&alert, text, 8), 7);
    assert_string_equal(text, "20 of t");
    OK(tide_alerts_items(alerts, 1, 0, 79, NOW + 6));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_WARN);
    OK(tide_alerts_items(alerts, 1, 0, 1, NOW + 7));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, &alert), TIDE_LEVEL_CRITICAL);
    assert_int_equal(alert.since_ms, NOW + 5);
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_CRITICAL);
    /* All of them leave the window at last. */
    OK(tide_alerts_items(alerts, 1, 1000000, 0, NOW + 8));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_NONE);
    tide_alerts_check(alerts);
}

CASE(one_bad_item_in_a_small_account_is_no_alert)
{
    OK(tide_alerts_items(alerts, 1, 3, 1, NOW));
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    OK(tide_alerts_items(alerts, 1, 0, 1, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_WARN);
}

CASE(an_alert_is_lowered_only_well_below_its_threshold)
{
    const uint64_t budget = 64 << 20;
    OK(tide_alerts_metadata(alerts, 3, budget / 2 - 1, NOW));
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_METADATA, NULL), TIDE_LEVEL_NONE);
    OK(tide_alerts_metadata(alerts, 3, budget / 2, NOW));
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_METADATA, NULL), TIDE_LEVEL_WARN);
    OK(tide_alerts_metadata(alerts, 3, budget / 10 * 9, NOW));
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_METADATA, NULL), TIDE_LEVEL_CRITICAL);
    OK(tide_alerts_metadata(alerts, 3, budget * 65 / 100, NOW));
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_METADATA, NULL), TIDE_LEVEL_CRITICAL);
    OK(tide_alerts_metadata(alerts, 3, budget * 63 / 100, NOW));
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_METADATA, NULL), TIDE_LEVEL_WARN);
    OK(tide_alerts_metadata(alerts, 3, budget * 41 / 100, NOW));
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_METADATA, NULL), TIDE_LEVEL_WARN);
    OK(tide_alerts_metadata(alerts, 3, budget * 39 / 100, NOW));
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_METADATA, NULL), TIDE_LEVEL_NONE);
}

CASE(more_than_two_hundred_bad_items_in_an_hour_are_critical)
{
    for (uint64_t i = 0; i < 200; i++) /* one every 15 s, among very many good ones */
        OK(tide_alerts_items(alerts, 1, 100000, 1, NOW + i * 15 * SECOND));
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    uint64_t now_ms = NOW + 200 * 15 * SECOND;
    OK(tide_alerts_items(alerts, 1, 0, 1, now_ms));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, NULL), TIDE_LEVEL_CRITICAL);
    /* It goes by itself, when enough of the hour has passed. */
    uint64_t wakes = 0;
    while (level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, NULL) != TIDE_LEVEL_NONE) {
        struct tide_alert alert;
        enum tide_level before;
        while (tide_alerts_next(alerts, &alert, &before))
            ;
        uint64_t wake_ms = tide_alerts_wake_at_ms(alerts);
        assert_true(wake_ms > now_ms && wake_ms <= now_ms + MINUTE);
        now_ms = wake_ms;
        tide_alerts_tick(alerts, now_ms);
        wakes++;
    }
    assert_in_range(wakes, 15, 40);
    struct tide_alert cleared;
    enum tide_level was = TIDE_LEVEL_NONE;
    assert_true(tide_alerts_next(alerts, &cleared, &was));
    assert_int_equal(was, TIDE_LEVEL_CRITICAL);
    assert_int_equal(cleared.threshold, 200); /* it has no other */
}

CASE(an_hour_is_at_least_sixty_and_less_than_sixty_one_minutes)
{
    OK(tide_alerts_items(alerts, 1, 100000, 201, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, NULL), TIDE_LEVEL_CRITICAL);
    tide_alerts_tick(alerts, NOW + HOUR + MINUTE - 1);
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, NULL), TIDE_LEVEL_CRITICAL);
    tide_alerts_tick(alerts, NOW + HOUR + MINUTE);
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, NULL), TIDE_LEVEL_NONE);
    tide_alerts_check(alerts);
}

CASE(sustained_throttling_warns_above_five_percent)
{
    OK(tide_alerts_calls(alerts, 1, 5, 5, NOW)); /* too few to say */
    OK(tide_alerts_calls(alerts, 1, 995, 45, NOW + MINUTE));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_THROTTLED, NULL), TIDE_LEVEL_NONE);
    OK(tide_alerts_calls(alerts, 1, 1, 1, NOW + MINUTE));
    struct tide_alert alert;
    enum tide_level before = TIDE_LEVEL_NONE;
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_THROTTLED, &alert), TIDE_LEVEL_WARN);
    assert_int_equal(alert.value, 51);
    assert_int_equal(alert.out_of, 1001);
    assert_true(tide_alerts_next(alerts, &alert, &before));
    assert_int_equal(tide_alerts_wake_at_ms(alerts), NOW + MINUTE + 10 * SECOND); /* a step */
    tide_alerts_tick(alerts, NOW + 12 * MINUTE);
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_THROTTLED, NULL), TIDE_LEVEL_NONE);
}

/* Since when a caller has waited for room in a queue; 0: none waits. */
static void waits(tide_alerts *alerts, uint64_t since_ms, uint64_t now_ms)
{
    OK(tide_alerts_queue(alerts, 1, "letters", since_ms, now_ms));
}

CASE(a_queue_that_does_not_move_for_a_minute_warns)
{
    struct tide_alert alert;
    enum tide_level before;
    char text[128];
    assert_int_equal(tide_alerts_wake_at_ms(alerts), UINT64_MAX);
    waits(alerts, NOW, NOW);
    waits(alerts, NOW + 59 * SECOND, NOW + 59 * SECOND); /* the first found room */
    tide_alerts_tick(alerts, NOW + MINUTE);
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    assert_int_equal(tide_alerts_wake_at_ms(alerts), NOW + 119 * SECOND);
    tide_alerts_tick(alerts, NOW + 119 * SECOND - 1);
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    tide_alerts_tick(alerts, NOW + 119 * SECOND);
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_QUEUE, &alert), TIDE_LEVEL_WARN);
    assert_true(tide_alert_print(&alert, text, sizeof text) > 0);
    assert_string_equal(text, "the queue of letters is full and has not moved for 60 s");
    alert.queue = ""; /* its process ended, and the next one has to say something */
    assert_true(tide_alert_print(&alert, text, sizeof text) > 0);
    assert_string_equal(text, "the queue of jobs is full and has not moved for 60 s");
    /* While the same one waits it holds; ten seconds after that it is lowered, though
     * others wait: the queue moves. */
    waits(alerts, NOW + 300 * SECOND, NOW + 300 * SECOND);
    tide_alerts_tick(alerts, NOW + 310 * SECOND - 1);
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_QUEUE, NULL), TIDE_LEVEL_WARN);
    while (tide_alerts_next(alerts, &alert, &before))
        continue;
    assert_int_equal(tide_alerts_wake_at_ms(alerts), NOW + 310 * SECOND);
    tide_alerts_tick(alerts, NOW + 310 * SECOND);
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_QUEUE, NULL), TIDE_LEVEL_NONE);
    waits(alerts, 0, NOW + 311 * SECOND);
    assert_int_equal(tide_alerts_wake_at_ms(alerts), 0); /* the end was not told yet */
}

CASE(changes_are_reported_once_and_only_if_they_last)
{
    struct tide_alert alert;
    enum tide_level before = TIDE_LEVEL_CRITICAL;
    OK(tide_alerts_metadata(alerts, 3, 40 << 20, NOW));
    assert_int_equal(tide_alerts_wake_at_ms(alerts), 0);
    assert_true(tide_alerts_next(alerts, &alert, &before));
    assert_int_equal(before, TIDE_LEVEL_NONE);
    assert_int_equal(alert.level, TIDE_LEVEL_WARN);
    assert_int_equal(alert.threshold, 500000);
    assert_false(tide_alerts_next(alerts, &alert, &before));
    OK(tide_alerts_metadata(alerts, 3, 60 << 20, NOW));
    OK(tide_alerts_metadata(alerts, 3, 35 << 20, NOW));
    assert_false(tide_alerts_next(alerts, &alert, &before));
    OK(tide_alerts_metadata(alerts, 3, 1, NOW));
    assert_true(tide_alerts_next(alerts, &alert, &before));
    assert_int_equal(before, TIDE_LEVEL_WARN);
    assert_int_equal(alert.level, TIDE_LEVEL_NONE);
}

/* A count or a time that fits no number any more stays the largest one. */
TEST(nothing_starts_over_at_the_end_of_the_numbers)
{
    tide_alerts *alerts = alerts_make();
    struct tide_alert alert;
    enum tide_level before = TIDE_LEVEL_NONE;
    char text[100];
    OK(tide_alerts_items(alerts, 1, 0, UINT32_MAX, NOW));
    OK(tide_alerts_items(alerts, 1, 0, 5, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, &alert), TIDE_LEVEL_CRITICAL);
    assert_int_equal(alert.value, UINT32_MAX);
    assert_true(tide_alert_print(&alert, text, sizeof text) > 0); /* out of nothing in particular */
    assert_string_equal(text, "4294967295 items went bad within an hour (more than 200)");
    tide_alerts_check(alerts);
    tide_alerts_free(alerts);

    alerts = alerts_make();
    OK(tide_alerts_items(alerts, 1, 0, 201, UINT64_MAX));
    while (tide_alerts_next(alerts, &alert, &before))
        ;
    assert_int_equal(tide_alerts_wake_at_ms(alerts), UINT64_MAX);
    tide_alerts_free(alerts);

    alerts = alerts_make();
    struct tide_alerts_settings settings = tide_alerts_defaults();
    settings.queue_warn_ms = UINT64_MAX;
    OK(tide_alerts_set(alerts, &settings));
    waits(alerts, NOW, NOW);
    assert_int_equal(tide_alerts_wake_at_ms(alerts), UINT64_MAX);
    settings.queue_warn_ms = 0; /* off: a queue may stay full forever */
    OK(tide_alerts_set(alerts, &settings));
    tide_alerts_tick(alerts, NOW + 100 * HOUR);
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    assert_int_equal(tide_alerts_wake_at_ms(alerts), UINT64_MAX);
    tide_alerts_free(alerts);
}

/* E11.2: thresholds and windows of one account alone, which changes for all leave as they are. */
CASE(an_account_may_have_thresholds_of_its_own)
{
    struct tide_alerts_settings common = tide_alerts_defaults();
    struct tide_alerts_settings own = common;
    own.bad_warn_ppm = 500000;
    own.bad_critical_ppm = 900000;
    own.bad_window_items = 2000;
    OK(tide_alerts_set_own(alerts, 2, &own));
    for (uint64_t account = 1; account <= 3; account++)
        OK(tide_alerts_items(alerts, account, 900, 100, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_CRITICAL);
    assert_int_equal(level_of(alerts, 2, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_NONE);
    assert_int_equal(level_of(alerts, 3, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_CRITICAL);

    common.bad_warn_ppm = common.bad_critical_ppm = 0;
    common.bad_window_items = 3000;
    OK(tide_alerts_set(alerts, &common));
    own.bad_warn_ppm = 50000;
    OK(tide_alerts_set_own(alerts, 2, &own));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_NONE);
    struct tide_alert alert;
    assert_int_equal(level_of(alerts, 2, TIDE_ALERT_BAD_RATE, &alert), TIDE_LEVEL_WARN);
    assert_int_equal(alert.out_of, 1000); /* its window was kept */

    /* Another process goes on with the same window, and then with that of all accounts. */
    tide_auto_buf saved = heap_buf(1 << 16);
    OK(tide_alerts_save(alerts, 2, NOW, NOW, &saved));
    tide_alerts_forget(alerts, 2);
    OK(tide_alerts_set_own(alerts, 2, &own));
    OK(tide_alerts_restore(alerts, 2, tide_buf_text(&saved), NOW, NOW));
    assert_int_equal(level_of(alerts, 2, TIDE_ALERT_BAD_RATE, &alert), TIDE_LEVEL_WARN);
    assert_int_equal(alert.out_of, 1000);
    OK(tide_alerts_set_own(alerts, 2, NULL));
    OK(tide_alerts_set_own(alerts, 999, NULL)); /* nothing is known of it */
    assert_int_equal(level_of(alerts, 2, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_NONE);
    own.bad_window_items = 0;
    assert_int_equal(tide_alerts_set_own(alerts, 2, &own), TIDE_INVALID);
    tide_alerts_check(alerts);
}

TEST(a_mail_goes_out_once_an_hour_at_most)
{
    struct tide_alerts_settings settings = tide_alerts_defaults();
    uint64_t last = 0;
    assert_true(tide_alerts_may_notify(&settings, NOW, &last));
    assert_int_equal(last, NOW);
    assert_false(tide_alerts_may_notify(&settings, NOW + HOUR - 1, &last));
    assert_int_equal(last, NOW);
    assert_true(tide_alerts_may_notify(&settings, NOW + HOUR, &last));
    /* The clock jumps back by a day: silence for an hour, not for a day. */
    assert_false(tide_alerts_may_notify(&settings, NOW - 23 * HOUR, &last));
    assert_false(tide_alerts_may_notify(&settings, NOW - 22 * HOUR - 1, &last));
    assert_true(tide_alerts_may_notify(&settings, NOW - 22 * HOUR, &last));
}

CASE(settings_change_on_the_fly_and_senseless_ones_are_refused)
{
    struct tide_alerts_settings settings = tide_alerts_defaults();
    OK(tide_alerts_items(alerts, 1, 9990, 10, NOW));
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    settings.bad_warn_ppm = 1000;
    OK(tide_alerts_set(alerts, &settings));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_WARN);
    settings.bad_window_items = 5000; /* starts empty */
    settings.bad_hour_ms = 2 * HOUR;
    settings.throttled_window_ms = MINUTE;
    OK(tide_alerts_set(alerts, &settings));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_NONE);
    tide_alerts_check(alerts);
    settings.bad_window_items = TIDE_ALERT_ITEMS_MAX + 1;
    assert_int_equal(tide_alerts_set(alerts, &settings), TIDE_INVALID);
    settings = tide_alerts_defaults();
    settings.keep_percent = 101;
    assert_int_equal(tide_alerts_set(alerts, &settings), TIDE_INVALID);
    tide_alerts *other = NULL;
    assert_int_equal(tide_alerts_new(&settings, tide_mem_heap(), &other), TIDE_INVALID);
    tide_alerts_free(NULL);
}

CASE(accounts_are_bounded_and_can_be_forgotten)
{
    for (uint64_t account = 1; account <= TIDE_ACCOUNTS_MAX; account++)
        OK(tide_alerts_metadata(alerts, account, account % 2 ? 60 << 20 : 0, NOW));
    assert_int_equal(tide_alerts_metadata(alerts, 99999, 0, NOW), TIDE_FULL);
    assert_int_equal(tide_alerts_items(alerts, 99999, 1, 0, NOW), TIDE_FULL);
    assert_int_equal(tide_alerts_calls(alerts, 99999, 1, 0, NOW), TIDE_FULL);
    assert_int_equal(tide_alerts_queue(alerts, 99999, "letters", NOW, NOW), TIDE_FULL);
    assert_int_equal(tide_alerts_shown(alerts, 99999, TIDE_ALERT_QUEUE, TIDE_LEVEL_WARN, NOW),
                     TIDE_FULL);
    const tide_text empty =
        TIDE_TEXT("1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 0 0 3600000 0 600000 0 600000 0");
    assert_int_equal(tide_alerts_restore(alerts, 99999, empty, NOW, 5), TIDE_FULL);
    for (uint64_t account = 1; account <= TIDE_ACCOUNTS_MAX; account += 4)
        tide_alerts_forget(alerts, account);
    tide_alerts_forget(alerts, 1);
    tide_alerts_forget(alerts, 0);
    tide_alerts_check(alerts);
    size_t holding = 0;
    struct tide_alert alert;
    for (size_t cursor = 0; tide_alerts_each(alerts, &cursor, &alert); holding++)
        assert_int_equal(alert.account % 4, 3);
    assert_int_equal(holding, TIDE_ACCOUNTS_MAX / 4);
    OK(tide_alerts_metadata(alerts, 99999, 0, NOW));
}

/* The model keeps every event, and the steps in which they fell. */
enum { MODEL_EVENTS = 8000, MODEL_ITEMS = 40000 };

struct model_event {
    uint64_t at_ms;
    uint32_t bad, calls, refused;
};

struct model {
    struct model_event events[MODEL_EVENTS];
    size_t events_count;
    unsigned char items[MODEL_ITEMS];
    size_t items_count;
    uint64_t metadata;
    uint64_t bad_max; /* at once; differs from run to run */
    enum tide_level levels[TIDE_CONDITIONS];
};

static enum tide_level model_level(enum tide_level now, double measure, double warn,
                                   double critical, bool more_than)
{
    enum tide_level levels[2]; /* at the thresholds, and at 80 % of them */
    for (int i = 0; i < 2; i++) {
        double share = i == 0 ? 1.0 : 0.8;
        bool is_critical = more_than ? measure > critical * share : measure >= critical * share;
        bool is_warn = more_than ? measure > warn * share : measure >= warn * share;
        levels[i] = is_critical && critical > 0 ? TIDE_LEVEL_CRITICAL
                    : is_warn && warn > 0       ? TIDE_LEVEL_WARN
                                                : TIDE_LEVEL_NONE;
    }
    return levels[0] > now ? levels[0] : levels[1] < now ? levels[1] : now;
}

static void model_judge(struct model *model, uint64_t now_ms)
{
    uint64_t bad_hour = 0, calls = 0, refused = 0, bad = 0, seen = 0;
    for (size_t i = 0; i < model->events_count; i++) {
        const struct model_event *event = &model->events[i];
        if (event->at_ms / MINUTE + 60 >= now_ms / MINUTE)
            bad_hour += event->bad;
        if (event->at_ms / (10 * SECOND) + 60 >= now_ms / (10 * SECOND)) {
            calls += event->calls;
            refused += event->refused;
        }
    }
    for (size_t i = model->items_count; i > 0 && seen < 10000; i--, seen++)
        bad += model->items[i - 1];
    enum tide_level *levels = model->levels;
    levels[TIDE_ALERT_BAD_RATE] =
        model_level(levels[TIDE_ALERT_BAD_RATE],
                    (double)bad * 1000 / (double)(seen < 1000 ? 1000 : seen), 2, 10, false);
    levels[TIDE_ALERT_BAD_HOUR] =
        model_level(levels[TIDE_ALERT_BAD_HOUR], (double)bad_hour, 0, 200, true);
    levels[TIDE_ALERT_METADATA] = model_level(levels[TIDE_ALERT_METADATA], (double)model->metadata,
                                              32 << 20, 0.8 * (64 << 20), false);
    levels[TIDE_ALERT_THROTTLED] =
        model_level(levels[TIDE_ALERT_THROTTLED],
                    (double)refused * 100 / (double)(calls < 100 ? 100 : calls), 5, 0, true);
}

static void model_step(tide_alerts *alerts, struct model *model, uint64_t now_ms, tide_rng *rng)
{
    struct model_event event = {.at_ms = now_ms};
    switch (tide_rng_below(rng, 4)) {
    case 0: {
        uint32_t good = (uint32_t)tide_rng_below(rng, 30);
        event.bad = tide_rng_chance(rng, 1, 12) ? (uint32_t)tide_rng_below(rng, model->bad_max) : 0;
        OK(tide_alerts_items(alerts, 5, good, event.bad, now_ms));
        memset(model->items + model->items_count, 0, good);
        memset(model->items + model->items_count + good, 1, event.bad);
        model->items_count += good + event.bad;
        break;
    }
    case 1:
        event.calls = (uint32_t)tide_rng_below(rng, 20);
        event.refused = tide_rng_chance(rng, 1, 6) ? (uint32_t)tide_rng_below(rng, 5) : 0;
        if (event.refused > event.calls)
            event.refused = event.calls;
        OK(tide_alerts_calls(alerts, 5, event.calls, event.refused, now_ms));
        break;
    case 2:
        model->metadata = tide_rng_below(rng, 64 << 20);
        OK(tide_alerts_metadata(alerts, 5, model->metadata, now_ms));
        break;
    default:
        tide_alerts_tick(alerts, now_ms);
        break;
    }
    model->events[model->events_count++] = event;
}

TEST(random_news_agree_with_the_model)
{
    struct model *model = malloc(sizeof *model);
    assert_non_null(model);
    uint64_t runs = scaled(60), met[TIDE_CONDITIONS][3] = {{0}};
    for (uint64_t seed = 1; seed <= runs; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        memset(model, 0, sizeof *model);
        model->bad_max = tide_rng_chance(&rng, 1, 2) ? 3 : 30;
        tide_alerts *alerts = alerts_make();
        uint64_t now_ms = NOW + tide_rng_below(&rng, HOUR);
        uint64_t pace_ms = tide_rng_chance(&rng, 1, 2) ? 4 * SECOND : 20 * SECOND;
        for (int step = 0; step < 2500; step++) {
            now_ms += tide_rng_below(&rng, pace_ms);
            if (tide_rng_chance(&rng, 1, 400))
                now_ms += tide_rng_below(&rng, 90 * MINUTE);
            /* What time alone changes comes first, as in the module. */
            model_judge(model, now_ms);
            model_step(alerts, model, now_ms, &rng);
            model_judge(model, now_ms);
            for (int i = 0; i < TIDE_ALERT_QUEUE; i++) {
                enum tide_level level = level_of(alerts, 5, (enum tide_condition)i, NULL);
                if (level != model->levels[i])
                    fail_msg("seed %" PRIu64 " step %d: %s is %s, not %s", seed, step,
                             tide_condition_name((enum tide_condition)i), tide_level_name(level),
                             tide_level_name(model->levels[i]));
                met[i][level]++;
            }
            if (step % 100 == 0)
                tide_alerts_check(alerts);
        }
        tide_alerts_free(alerts);
    }
    for (int i = 0; i < TIDE_ALERT_QUEUE; i++) {
        assert_true(met[i][TIDE_LEVEL_NONE] > 0);
        assert_true(met[i][TIDE_LEVEL_WARN] + met[i][TIDE_LEVEL_CRITICAL] > 0);
    }
    free(model);
}

/* Many accounts under a flood of news: sums, levels and untold changes agree. */
CASE(random_floods_keep_the_invariants)
{
    tide_rng rng = tide_rng_seeded(3);
    uint64_t rounds = scaled(2000000), now_ms = NOW, told = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t account = 1 + tide_rng_below(&rng, 40);
        now_ms += tide_rng_below(&rng, 900);
        switch (tide_rng_below(&rng, 16)) {
        case 0:
            OK(tide_alerts_metadata(alerts, account, tide_rng_below(&rng, 70u << 20), now_ms));
            break;
        case 1:
        case 2:
        case 3:
            OK(tide_alerts_queue(alerts, account, "letters",
                                 tide_rng_chance(&rng, 1, 8) ? 0 : now_ms / 100000 * 100000,
                                 now_ms));
            break;
        case 4:
            if (tide_rng_chance(&rng, 1, 200))
                tide_alerts_forget(alerts, account);
            break;
        case 5:
        case 6:
        case 7:
            OK(tide_alerts_calls(alerts, account, 4, tide_rng_chance(&rng, 1, 5), now_ms));
            break;
        default:
            OK(tide_alerts_items(alerts, account, tide_rng_below(&rng, 9),
                                 tide_rng_chance(&rng, 1, 90), now_ms));
            break;
        }
        struct tide_alert alert;
        enum tide_level before;
        while (tide_alerts_next(alerts, &alert, &before)) {
            assert_int_not_equal(alert.level, before);
            told++;
        }
        if (i % 8192 == 0)
            tide_alerts_check(alerts);
    }
    assert_true(told > 10);
}

/* The queue's clock against one that looks at every second since it began. */
TEST(random_queues_agree_with_a_clock_that_counts_seconds)
{
    uint64_t runs = scaled(40), raised_count = 0, cleared_count = 0;
    for (uint64_t seed = 1; seed <= runs; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_alerts *alerts = alerts_make();
        bool waiting = false, raised = false;
        uint64_t waited_s = 0, since_s = 0; /* of the present one; since one waited too long */
        for (uint64_t second = 0; second < 20000; second++) {
            const uint64_t now_ms = NOW + second * SECOND;
            since_s = waiting && waited_s >= 60 ? 0 : since_s + 1;
            if (tide_rng_chance(&rng, 1, waiting ? 60 : 8)) {
                waiting = tide_rng_chance(&rng, 2, 3); /* the next one, or none */
                waited_s = 0;
                waits(alerts, waiting ? now_ms : 0, now_ms);
            } else {
                tide_alerts_tick(alerts, now_ms);
            }
            raised_count += !raised && since_s == 0;
            /* An alert that may be lowered stays while a wait is near the threshold. */
            const bool kept = since_s < 10 || (waiting && waited_s >= 48);
            cleared_count += raised && !kept;
            raised = since_s == 0 || (raised && kept);
            waited_s++;
            if ((level_of(alerts, 1, TIDE_ALERT_QUEUE, NULL) != TIDE_LEVEL_NONE) != raised)
                fail_msg("seed %" PRIu64 " second %" PRIu64, seed, second);
        }
        tide_alerts_free(alerts);
    }
    assert_true(raised_count > runs);
    assert_true(cleared_count > runs);
}

static tide_status alert_on_twenty(tide_mem *mem, enum tide_level *worst_out)
{
    struct tide_alerts_settings settings = tide_alerts_defaults();
    tide_alerts *alerts = NULL;
    tide_status rc = tide_alerts_new(&settings, mem, &alerts);
    if (rc == TIDE_OK)
        rc = tide_alerts_set_own(alerts, 21, &settings);
    for (uint64_t account = 1; rc == TIDE_OK && account <= 20; account++) {
        rc = tide_alerts_metadata(alerts, account, account == 20 ? 60 << 20 : 0, NOW);
        tide_alerts_check(alerts);
    }
    if (rc == TIDE_OK)
        *worst_out = worst_of(alerts);
    tide_alerts_free(alerts);
    return rc;
}

TEST(alerts_survive_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        enum tide_level worst = TIDE_LEVEL_NONE;
        tide_status rc = alert_on_twenty(&mem.base, &worst);
        assert_swept(mem, rc);
        if (!mem.fired) {
            assert_int_equal(worst, TIDE_LEVEL_CRITICAL);
            assert_true(mem.fail_at > 3);
        }
    }
}

/* ---- what the next process resumes with (E6.4) -------------------------------------------- */

enum { UNIX_NOW = 1700000000 };
#define UNIX_MS ((uint64_t)UNIX_NOW * 1000)

/* A new process: another monotonic clock, `away_ms` later. */
static tide_alerts *taken_over(const tide_alerts *alerts, uint64_t account, uint64_t now_ms,
                               uint64_t away_ms, uint64_t next_now_ms)
{
    tide_buf text = heap_buf(1 << 20);
    OK(tide_alerts_save(alerts, account, now_ms, UNIX_MS, &text));
    tide_alerts *next = alerts_make();
    OK(tide_alerts_restore(next, account, tide_buf_text(&text), next_now_ms, UNIX_MS + away_ms));
    tide_alerts_check(next);
    tide_buf_done(&text);
    return next;
}

TEST(a_new_process_goes_on_with_the_windows_of_the_last)
{
    tide_alerts *alerts = alerts_make();
    struct tide_alert alert;
    enum tide_level before;
    OK(tide_alerts_items(alerts, 1, 9900, 19, NOW));
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    tide_alerts *next = taken_over(alerts, 1, NOW + MINUTE, HOUR, 5);
    OK(tide_alerts_items(next, 1, 0, 1, 6));
    assert_int_equal(level_of(next, 1, TIDE_ALERT_BAD_RATE, &alert), TIDE_LEVEL_WARN);
    assert_int_equal(alert.value, 20);
    assert_int_equal(alert.out_of, 9920);
    tide_alerts_free(alerts);

    /* It is raised and told; the third process neither tells it again nor forgets it. */
    while (tide_alerts_next(next, &alert, &before))
        ;
    alerts = taken_over(next, 1, 10, 1, NOW);
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, NULL), TIDE_LEVEL_WARN);
    assert_false(tide_alerts_next(alerts, &alert, &before));
    /* Once its cause is gone it is reported as cleared. */
    OK(tide_alerts_items(alerts, 1, 10000, 0, NOW + 1));
    assert_true(tide_alerts_next(alerts, &alert, &before));
    assert_int_equal(before, TIDE_LEVEL_WARN);
    assert_int_equal(alert.level, TIDE_LEVEL_NONE);
    tide_alerts_free(alerts);
    tide_alerts_free(next);
}

TEST(windows_of_time_age_while_no_process_runs)
{
    for (uint64_t away = 0; away <= 20; away++) {
        tide_alerts *alerts = alerts_make();
        struct tide_alert alert;
        enum tide_level before;
        OK(tide_alerts_calls(alerts, 7, 1000, 60, NOW));
        assert_int_equal(level_of(alerts, 7, TIDE_ALERT_THROTTLED, NULL), TIDE_LEVEL_WARN);
        while (tide_alerts_next(alerts, &alert, &before))
            ;
        tide_alerts *next = taken_over(alerts, 7, NOW, away * MINUTE, 3);
        const bool holds = level_of(next, 7, TIDE_ALERT_THROTTLED, NULL) == TIDE_LEVEL_WARN;
        assert_int_equal(holds, away <= 10);
        assert_int_equal(tide_alerts_next(next, &alert, &before), !holds);
        tide_alerts_free(next);
        tide_alerts_free(alerts);
    }
}

CASE(an_alert_that_is_shown_and_has_no_cause_is_cleared)
{
    struct tide_alert alert;
    enum tide_level before;
    OK(tide_alerts_shown(alerts, UINT32_MAX, TIDE_ALERT_QUEUE, TIDE_LEVEL_WARN, NOW));
    tide_alerts_check(alerts);
    assert_int_equal(tide_alerts_wake_at_ms(alerts), 0);
    assert_true(tide_alerts_next(alerts, &alert, &before));
    assert_int_equal(alert.condition, TIDE_ALERT_QUEUE);
    assert_int_equal(alert.level, TIDE_LEVEL_NONE);
    assert_int_equal(before, TIDE_LEVEL_WARN);
}

CASE(saved_windows_that_are_damaged_are_refused_and_change_nothing)
{
    tide_buf text = heap_buf(1 << 20);
    assert_int_equal(tide_alerts_save(alerts, 1, NOW, UNIX_MS, &text), TIDE_NOT_FOUND);
    OK(tide_alerts_items(alerts, 1, 100, 3, NOW));
    OK(tide_alerts_calls(alerts, 1, 10, 1, NOW));
    OK(tide_alerts_save(alerts, 1, NOW, UNIX_MS, &text));
    const tide_text whole = tide_buf_text(&text);
    for (size_t bytes = 0; bytes < whole.bytes; bytes++) {
        tide_alerts *next = alerts_make();
        const tide_text cut = {whole.data, bytes};
        /* A number that lost its last digits may still be one: never more than that. */
        const tide_status rc = tide_alerts_restore(next, 1, cut, NOW, UNIX_MS);
        assert_true(rc == TIDE_CORRUPT || rc == TIDE_NEWER || rc == TIDE_OK);
        if (rc != TIDE_OK)
            assert_int_equal(tide_alerts_save(next, 1, NOW, UNIX_MS, &text), TIDE_NOT_FOUND);
        tide_alerts_check(next);
        tide_alerts_free(next);
    }
    const char *wrong[] = {
        "", "0", "x", "2 5", "1 5 3 0",
        /* a bit past the last item seen */
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 3 1 0 8 3600000 0 600000 0 600000 0",
        /* the same step twice */
        "1 1700000000000 0 0 0 0 0 0 0 0 0 0 0 10000 0 0 0 3600000 2 1 1 1 1 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 0 0 3600000 0 600000 0 600000 0 9",
        /* held since a time after it was saved */
        "1 5 1 6 0 0 0 0 0 0 0 0 0 10000 0 0 0 3600000 0 600000 0 600000 0",
        /* windows of no or too many items; a place, a count, words outside of the window */
        "1 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3600000 0 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10001 0 0 0 3600000 0 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 10000 0 0 3600000 0 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 10001 0 3600000 0 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 9 158 3600000 0 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 9 1 157 1 3600000 0 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 9 2 0 1 0 1 3600000 0 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 9 1 3 1 3600000 0 600000 0 600000 0",
        /* more steps than an hour has, and a count beyond 32 bits */
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 0 0 3600000 62 600000 0 600000 0",
        "1 5 0 0 0 0 0 0 0 0 0 0 0 10000 0 0 0 3600000 1 0 4294967296 600000 0 600000 0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const tide_status rc = tide_alerts_restore(alerts, 1, tide_text_of(wrong[i]), NOW, UNIX_MS);
        assert_true(rc == TIDE_CORRUPT || (i == 3 && rc == TIDE_NEWER));
    }
    struct tide_alert alert;
    OK(tide_alerts_items(alerts, 1, 0, 7, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, &alert), TIDE_LEVEL_CRITICAL);
    assert_int_equal(alert.value, 10); /* 3 from before the refusals */
    tide_buf_done(&text);
}

TEST(what_was_saved_with_other_windows_starts_empty)
{
    struct tide_alerts_settings settings = tide_alerts_defaults();
    tide_alerts *alerts = alerts_make();
    /* Bits of the last items, a step of this hour and one of long ago. */
    const tide_text saved = TIDE_TEXT("1 1700000000000 0 0 0 0 0 0 0 0 0 0 0 10000 9 9 1 0 257 "
                                      "3600000 2 0 7 61 9 600000 0 600000 0");
    OK(tide_alerts_restore(alerts, 1, saved, NOW, UNIX_MS));
    tide_alerts_check(alerts);
    struct tide_alert alert;
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_RATE, &alert), TIDE_LEVEL_WARN);
    assert_int_equal(alert.value, 2);
    OK(tide_alerts_items(alerts, 1, 100000, 194, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, &alert), TIDE_LEVEL_CRITICAL);
    assert_int_equal(alert.value, 201); /* 7 of this hour, none of 61 minutes ago */
    tide_alerts_free(alerts);

    settings.bad_window_items = 5000;
    settings.bad_hour_ms = 2 * HOUR;
    OK(tide_alerts_new(&settings, tide_mem_heap(), &alerts));
    OK(tide_alerts_restore(alerts, 1, saved, NOW, UNIX_MS));
    tide_alerts_check(alerts);
    assert_int_equal(worst_of(alerts), TIDE_LEVEL_NONE);
    OK(tide_alerts_items(alerts, 1, 100000, 200, NOW));
    assert_int_equal(level_of(alerts, 1, TIDE_ALERT_BAD_HOUR, NULL), TIDE_LEVEL_NONE);
    tide_alerts_free(alerts);
}

/* Whatever the room, the text is there whole or not at all. */
CASE(windows_are_saved_whole_or_not_at_all)
{
    tide_buf whole = heap_buf(1 << 20);
    OK(tide_alerts_items(alerts, 1, 100, 30, NOW));
    OK(tide_alerts_calls(alerts, 1, 100, 50, NOW));
    assert_int_equal(tide_alerts_save(alerts, 0, NOW, UNIX_MS, &whole), TIDE_NOT_FOUND);
    OK(tide_alerts_save(alerts, 1, NOW, UNIX_MS, &whole));
    for (size_t room = 0; room < whole.bytes; room++) {
        tide_buf text = heap_buf(room + 2);
        OK(tide_buf_print(&text, "ab"));
        assert_int_not_equal(tide_alerts_save(alerts, 1, NOW, UNIX_MS, &text), TIDE_OK);
        assert_string_equal(tide_buf_cstr(&text), "ab");
        tide_buf_done(&text);
    }
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, 0);
    tide_buf none;
    tide_buf_init(&none, &mem.base, 1 << 20);
    assert_int_equal(tide_alerts_save(alerts, 1, NOW, UNIX_MS, &none), TIDE_NO_MEMORY);
    assert_int_equal(none.bytes, 0);
    tide_buf_done(&none);

    /* A wall clock that stands at 1970: an alert holds since then, not since the future. */
    tide_buf_clear(&whole);
    OK(tide_alerts_save(alerts, 1, NOW + HOUR, 1000, &whole));
    OK(tide_alerts_restore(alerts, 2, tide_buf_text(&whole), NOW, 1000));
    tide_buf_done(&whole);
}

/* Random news with restarts in between: the same levels as without restarts. */
TEST(restarts_change_no_level)
{
    tide_rng rng = tide_rng_seeded(20);
    for (uint64_t round = 0; round < scaled(20); round++) {
        tide_alerts *always = alerts_make();
        tide_alerts *again = alerts_make();
        uint64_t now_ms = NOW;
        const uint64_t step = MINUTE; /* of the longer window: ages are whole steps of both */
        for (int i = 0; i < 200; i++) {
            now_ms += tide_rng_below(&rng, 5) * step;
            const uint64_t good = tide_rng_below(&rng, 300);
            const uint64_t bad = tide_rng_below(&rng, 4);
            const uint32_t calls = (uint32_t)tide_rng_below(&rng, 100) + 10;
            const uint32_t refused = (uint32_t)tide_rng_below(&rng, 10);
            tide_alerts *both[] = {always, again};
            for (int at = 0; at < 2; at++) {
                OK(tide_alerts_items(both[at], 1, good, bad, now_ms));
                OK(tide_alerts_calls(both[at], 1, calls, refused, now_ms));
            }
            for (int condition = 0; condition < TIDE_CONDITIONS; condition++)
                assert_int_equal(level_of(always, 1, (enum tide_condition)condition, NULL),
                                 level_of(again, 1, (enum tide_condition)condition, NULL));
            if (tide_rng_below(&rng, 3) == 0) {
                tide_alerts *next = taken_over(again, 1, now_ms, 0, now_ms);
                tide_alerts_free(again);
                again = next;
            }
        }
        tide_alerts_free(always);
        tide_alerts_free(again);
    }
}
