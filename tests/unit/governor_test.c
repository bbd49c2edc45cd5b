/* Goal: the quota is never crossed and nearly all of it is used, whatever dies.
 * Method: examples of each rule, random operations with the invariants checked
 * after each, and whole hours under a referee on its own clock (referee.h). */
#include "unit/referee.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static uint64_t scaled(uint64_t count)
{
    const char *percent = getenv("TIDE_TEST_SCALE");
    return percent == NULL ? count : count * strtoull(percent, NULL, 10) / 100 + 1;
}

static tide_governor *governor_of(const struct tide_governor_profile *profile, uint64_t now_ms)
{
    tide_governor *governor = NULL;
    assert_int_equal(tide_governor_new(profile, now_ms, tide_mem_heap(), &governor), TIDE_OK);
    return governor;
}

static void save_now(tide_governor *governor, uint64_t now_ms)
{
    struct tide_governor_saved saved;
    tide_governor_save(governor, now_ms, now_ms, &saved);
    tide_governor_saved(governor, now_ms);
}

static struct tide_governor_view view_of(const tide_governor *governor, uint64_t now_ms)
{
    struct tide_governor_view view;
    tide_governor_view(governor, now_ms, &view);
    return view;
}

static tide_status charge(tide_governor *governor, uint64_t now_ms, uint32_t units)
{
    uint64_t again_ms = 0;
    return tide_governor_charge(governor, now_ms, 4, units, &again_ms);
}

static void answer(tide_governor *governor, uint64_t now_ms, uint32_t units, tide_status status,
                   uint64_t retry_after_ms)
{
    tide_rng rng = tide_rng_seeded(now_ms);
    const struct tide_answer fact = {
        .units = units,
        .latency_ms = 10,
        .status = status,
        .http = status == TIDE_OK ? 200 : 429,
        .retry_after_ms = retry_after_ms,
    };
    tide_governor_answered(governor, now_ms, &fact, &rng);
}

/* One call every `every_ms` for a while, all well. */
static uint64_t run_well(tide_governor *governor, uint64_t now_ms, uint64_t for_ms,
                         uint64_t every_ms, uint32_t units)
{
    for (const uint64_t end_ms = now_ms + for_ms; now_ms < end_ms; now_ms += every_ms)
        if (charge(governor, now_ms, units) == TIDE_OK)
            answer(governor, now_ms + 10, units, TIDE_OK, 0);
    return now_ms;
}

/* ---- Profiles. ---- */

static void profiles_have_names_and_the_numbers_of_the_table(void **state)
{
    (void)state;
    static const char *const names[] = {"gmail", "console", "graph", "chat", "default"};
    for (int i = 0; i < 5; i++) {
        struct tide_governor_profile complete;
        assert_non_null(tide_governor_profile_named(names[i]));
        assert_int_equal(tide_profile_complete(tide_governor_profile_named(names[i]), &complete),
                         TIDE_OK);
        struct tide_governor_profile twice;
        assert_int_equal(tide_profile_complete(&complete, &twice), TIDE_OK);
        assert_true(complete.rate_min == twice.rate_min && complete.rate_max == twice.rate_max &&
                    complete.rate_start == twice.rate_start);
        assert_int_equal(complete.workers_start, twice.workers_start);
        assert_int_equal(complete.in_flight_max, twice.in_flight_max);
    }
    assert_null(tide_governor_profile_named("carrier pigeon"));

    struct tide_governor_profile gmail;
    assert_int_equal(tide_profile_complete(tide_governor_profile_named("gmail"), &gmail), TIDE_OK);
    assert_true(gmail.rate_max == 100 && gmail.rate_min == 20);
    struct tide_governor_profile plain;
    assert_int_equal(tide_profile_complete(tide_governor_profile_named("default"), &plain),
                     TIDE_OK);
    assert_true(plain.rate_min == 1 && plain.rate_start == 4 && plain.rate_max == 16);
    assert_int_equal(plain.workers_min, 2);
    assert_int_equal(plain.workers_start, 8);
    assert_int_equal(plain.workers_max, 32);
}

static void contradictory_profiles_are_refused(void **state)
{
    (void)state;
    const struct tide_governor_profile wrong[] = {
        {.window_ms = 60000},
        {.window_units_max = 100},
        {.window_ms = 60000, .window_units_max = 10, .call_units = 20},
        {.rate_min = 5, .rate_max = 4},
        {.rate_min = -1},
        {.workers_min = 9, .workers_max = 8},
        {.workers_start = 40, .workers_max = 32},
        {.share_permille = 1001},
        {.window_ms = 60000, .window_units_max = 100, .reserve_permille = 1000},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_governor *governor = NULL;
        assert_int_equal(tide_governor_new(&wrong[i], 0, tide_mem_heap(), &governor), TIDE_INVALID);
        assert_null(governor);
    }
}

/* ---- The decision. ---- */

static void sending_is_paced_and_the_answer_says_when_to_come_back(void **state)
{
    (void)state;
    const struct tide_governor_profile profile = {
        .rate_min = 10, .rate_start = 10, .rate_max = 10, .call_units = 1};
    tide_governor *governor = governor_of(&profile, 1000);
    uint64_t sent = 0;
    uint64_t now_ms = 1000;
    while (now_ms < 61000) {
        uint64_t again_ms = 0;
        const tide_status rc = tide_governor_charge(governor, now_ms, 4, 1, &again_ms);
        if (rc == TIDE_OK) {
            sent++;
            answer(governor, now_ms, 1, TIDE_OK, 0);
        } else {
            assert_int_equal(rc, TIDE_AGAIN);
            assert_true(again_ms > now_ms);
            assert_int_equal(tide_governor_wake_at_ms(governor, now_ms), again_ms);
            now_ms = again_ms;
        }
    }
    assert_in_range(sent, 595, 611);
    tide_governor_free(governor);
}

static void nothing_is_spent_before_a_promise_for_it_is_on_disk(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("gmail"), 1000);
    uint64_t again_ms = 0;
    assert_true(tide_governor_save_due(governor, 1000));
    assert_int_equal(tide_governor_charge(governor, 1000, 1, 20, &again_ms), TIDE_AGAIN);
    assert_true(again_ms == UINT64_MAX);

    struct tide_governor_saved first;
    tide_governor_save(governor, 1000, 5000, &first);
    assert_int_equal(first.unrecorded_units, 200);
    assert_false(tide_governor_save_due(governor, 1000)); /* one is under way */
    assert_int_equal(tide_governor_charge(governor, 1001, 1, 20, &again_ms), TIDE_AGAIN);
    assert_true(tide_governor_save_due(governor, 1500)); /* it seems lost: another */
    tide_governor_saved(governor, 1000);
    assert_int_equal(tide_governor_charge(governor, 1001, 1, 20, &again_ms), TIDE_OK);

    /* Two hundred units, and not one more, until the next one is on disk. */
    unsigned sent = 1;
    for (uint64_t now_ms = 1002; now_ms < 30000; now_ms += 10)
        if (charge(governor, now_ms, 20) == TIDE_OK) {
            answer(governor, now_ms, 20, TIDE_OK, 0);
            sent++;
        }
    assert_int_equal(sent, 10);
    assert_int_equal(view_of(governor, 30000).lease_left, 0);
    assert_true(tide_governor_save_due(governor, 30000));
    struct tide_governor_saved second;
    tide_governor_save(governor, 30000, 35000, &second);
    assert_int_equal(charge(governor, 30000, 20), TIDE_AGAIN);
    tide_governor_saved(governor, 29999); /* news of an older one changes nothing */
    assert_int_equal(charge(governor, 30000, 20), TIDE_AGAIN);
    tide_governor_saved(governor, 30000);
    assert_int_equal(charge(governor, 30000, 20), TIDE_OK);
    tide_governor_free(governor);
}

static void an_idle_account_neither_saves_nor_makes_a_click_wait(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("gmail"), 1000);
    save_now(governor, 1000);
    assert_true(tide_governor_save_at_ms(governor) == UINT64_MAX);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_charge(governor, 86400000, 1, 20, &again_ms), TIDE_OK);
    assert_int_equal(tide_governor_save_at_ms(governor), 1500);
    tide_governor_free(governor);
}

static void the_reserve_of_the_window_is_for_level_1_which_borrows_from_the_pace(void **state)
{
    (void)state;
    struct tide_governor_profile profile = *tide_governor_profile_named("gmail");
    profile.spend_lease_ms = 60000; /* no saves in this test */
    profile.rate_start = 100;
    tide_governor *governor = governor_of(&profile, 1000);
    save_now(governor, 1000);
    uint64_t now_ms = 1000;
    uint64_t sent = 0;
    for (; sent < 5880 && now_ms < 90000; now_ms++)
        if (charge(governor, now_ms, 20) == TIDE_OK) {
            answer(governor, now_ms, 20, TIDE_OK, 0);
            sent += 20;
        }
    assert_int_equal(sent, 5880);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_charge(governor, now_ms, 2, 20, &again_ms), TIDE_AGAIN);
    assert_in_range(again_ms, 61000, 61200);
    for (int i = 0; i < 6; i++) { /* six clicks at once, whatever the bucket holds */
        assert_int_equal(tide_governor_charge(governor, now_ms, 1, 20, &again_ms), TIDE_OK);
        answer(governor, now_ms, 20, TIDE_OK, 0);
    }
    assert_int_equal(tide_governor_charge(governor, now_ms, 1, 20, &again_ms), TIDE_AGAIN);
    assert_int_equal(view_of(governor, now_ms).window_used, 6000);
    tide_governor_free(governor);
}

static void a_batch_is_charged_whole_and_counts_every_part_in_flight(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("gmail"), 0);
    save_now(governor, 0);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_batch_max(governor), 10);
    assert_int_equal(tide_governor_charge_batch(governor, 5000, 2, 220, 11, &again_ms),
                     TIDE_INVALID);
    assert_int_equal(tide_governor_charge_batch(governor, 5000, 2, 201, 1, &again_ms),
                     TIDE_INVALID); /* more than one promise covers */
    assert_int_equal(tide_governor_charge_batch(governor, 5000, 2, 120, 6, &again_ms), TIDE_OK);
    save_now(governor, 5001);
    assert_int_equal(tide_governor_charge_batch(governor, 9000, 2, 80, 4, &again_ms), TIDE_AGAIN);
    assert_true(again_ms == UINT64_MAX); /* one place is kept for a person */
    assert_int_equal(tide_governor_charge_batch(governor, 9000, 2, 60, 3, &again_ms), TIDE_OK);
    assert_int_equal(tide_governor_charge(governor, 9000, 2, 20, &again_ms), TIDE_AGAIN);
    assert_int_equal(tide_governor_charge(governor, 9000, 1, 20, &again_ms), TIDE_OK);
    assert_int_equal(view_of(governor, 9000).in_flight, 10);
    tide_governor_uncharge(governor, 9000, 20);
    tide_governor_uncharge_batch(governor, 9000, 60, 3);
    assert_int_equal(view_of(governor, 9000).in_flight, 6);
    assert_int_equal(view_of(governor, 9000).window_used, 120);
    assert_true(tide_governor_check(governor, 9000));
    tide_governor_free(governor);
}

static void a_shared_limit_is_charged_by_all_and_ends_with_its_grant(void **state)
{
    (void)state;
    struct tide_limit project = {.units_max = 5, .granted_until_ms = 20000};
    assert_int_equal(tide_window_init(&project.window, 60000, tide_mem_heap()), TIDE_OK);
    const struct tide_governor_profile profile = {
        .rate_min = 100, .rate_start = 100, .rate_max = 100};
    tide_governor *a = governor_of(&profile, 0);
    tide_governor *b = governor_of(&profile, 0);
    assert_int_equal(tide_governor_limit_add(a, &project), TIDE_OK);
    assert_int_equal(tide_governor_limit_add(b, &project), TIDE_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(charge(i % 2 ? a : b, 1000, 1), TIDE_OK);
    assert_int_equal(tide_governor_limit_add(a, &project), TIDE_BUSY);
    assert_int_equal(charge(a, 1000, 1), TIDE_AGAIN);
    assert_int_equal(charge(b, 1000, 1), TIDE_AGAIN);
    answer(a, 1000, 1, TIDE_OK, 0);
    assert_int_equal(charge(b, 19000, 1), TIDE_AGAIN);
    project.units_max = 6;
    assert_int_equal(charge(b, 19999, 1), TIDE_OK);
    project.units_max = 7;
    assert_int_equal(charge(b, 20000, 1), TIDE_AGAIN); /* the grant is over */
    project.granted_until_ms = 35000;
    assert_int_equal(charge(b, 20000, 1), TIDE_OK);
    tide_governor_free(a);
    tide_governor_free(b);
    tide_window_done(&project.window);
}

static void only_so_many_limits_can_be_added(void **state)
{
    (void)state;
    struct tide_limit limit = {0};
    tide_governor *governor = governor_of(tide_governor_profile_named("gmail"), 0);
    for (int i = 1; i < TIDE_LIMITS_PER_ACCOUNT; i++)
        assert_int_equal(tide_governor_limit_add(governor, &limit), TIDE_OK);
    assert_int_equal(tide_governor_limit_add(governor, &limit), TIDE_FULL);
    tide_governor_free(governor);
}

static void jobs_follow_pace_times_latency(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("default"), 0);
    assert_int_equal(tide_governor_jobs_max(governor, 0), 4); /* 4 calls/s, a second assumed */
    const uint64_t now_ms = run_well(governor, 1000, 4000, 250, 1); /* 10 ms each */
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 1);
    tide_governor_halt(governor, "asked to");
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 0);
    tide_governor_free(governor);
}

/* ---- What answers teach. ---- */

static void five_healthy_seconds_raise_both_and_a_refusal_halves_both(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("default"), 0);
    uint64_t now_ms = run_well(governor, 1000, 5500, 250, 1);
    assert_true(view_of(governor, now_ms).rate == 8); /* below half it doubles */
    assert_int_equal(view_of(governor, now_ms).workers, 9);
    now_ms = run_well(governor, now_ms, 5000, 100, 1);
    assert_true(view_of(governor, now_ms).rate == 8.8);
    assert_int_equal(view_of(governor, now_ms).workers, 10);

    for (int i = 0; i < 3; i++)
        assert_int_equal(charge(governor, now_ms + 1000, 1), TIDE_OK);
    now_ms += 1010;
    for (int i = 0; i < 3; i++) /* three calls, one lesson */
        answer(governor, now_ms, 1, TIDE_THROTTLED, 7000);
    assert_true(view_of(governor, now_ms).rate == 4.4);
    assert_int_equal(view_of(governor, now_ms).workers, 5);
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_PAUSED);
    assert_int_equal(view_of(governor, now_ms).until_ms, now_ms + 7000);
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 0);
    assert_int_equal(tide_governor_wake_at_ms(governor, now_ms), now_ms + 7000);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_charge(governor, now_ms, 1, 1, &again_ms), TIDE_AGAIN);
    assert_int_equal(again_ms, now_ms + 7000);

    /* The door stays shut: the pause goes on, the pace is not to blame. */
    now_ms += 7000;
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_PROBING);
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 1);
    assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
    assert_int_equal(charge(governor, now_ms, 1), TIDE_AGAIN);
    answer(governor, now_ms + 10, 1, TIDE_THROTTLED, 0);
    assert_true(view_of(governor, now_ms).rate == 4.4);
    now_ms = view_of(governor, now_ms).until_ms;
    assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
    answer(governor, now_ms + 10, 1, TIDE_OK, 0);
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_RUNNING);
    assert_int_equal(view_of(governor, now_ms).calls_by_class[TIDE_CLASS_THROTTLED], 4);

    /* A refusal after a success is a lesson again, down to the minimum. */
    for (int i = 0; i < 5; i++) {
        now_ms += 20000;
        assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
        answer(governor, now_ms + 10, 1, TIDE_OK, 0);
        assert_int_equal(charge(governor, now_ms + 20, 1), TIDE_OK);
        answer(governor, now_ms + 40, 1, TIDE_THROTTLED, 0);
    }
    assert_true(view_of(governor, now_ms).rate == 1);
    assert_int_equal(view_of(governor, now_ms).workers, 2);
    tide_governor_free(governor);
}

static void a_method_that_becomes_slow_halves_the_pace_once(void **state)
{
    (void)state;
    const struct tide_governor_profile profile = {
        .rate_min = 1, .rate_start = 64, .rate_max = 64, .workers_start = 32};
    tide_governor *governor = governor_of(&profile, 0);
    tide_rng rng = tide_rng_seeded(1);
    uint64_t now_ms = 1000;
    for (int i = 0; i < 1000; i++, now_ms += 100) {
        assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
        const struct tide_answer fact = {.units = 1, .latency_ms = 90, .http = 200, .method = 3};
        tide_governor_answered(governor, now_ms + 90, &fact, &rng);
    }
    assert_int_equal(view_of(governor, now_ms).cuts, 0);
    assert_true(view_of(governor, now_ms).rate == 64);
    for (int i = 0; i < 60; i++, now_ms += 2000) {
        if (charge(governor, now_ms, 1) != TIDE_OK)
            continue;
        const struct tide_answer fact = {.units = 1, .latency_ms = 1900, .http = 200, .method = 3};
        tide_governor_answered(governor, now_ms + 1900, &fact, &rng);
    }
    assert_int_equal(view_of(governor, now_ms).cuts, 1);
    assert_in_range(tide_latency_best_p50_ms(tide_governor_latency(governor, 3)), 80, 100);
    tide_governor_free(governor);
}

static void repeated_failures_open_the_breaker_and_one_probe_closes_it(void **state)
{
    (void)state;
    static const tide_status failures[] = {TIDE_SERVER, TIDE_AUTH, TIDE_TIMEOUT};
    for (int kind = 0; kind < 3; kind++) {
        tide_governor *governor = governor_of(tide_governor_profile_named("chat"), 0);
        uint64_t now_ms = 10000;
        for (int i = 0; i < 5; i++, now_ms += 1000) {
            assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
            answer(governor, now_ms + 10, 1, failures[kind], 0);
        }
        assert_int_equal(view_of(governor, now_ms - 900).state, TIDE_GOVERNOR_OPEN);
        assert_int_equal(view_of(governor, now_ms - 900).why, failures[kind]);
        now_ms = view_of(governor, now_ms).until_ms;
        assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
        assert_int_equal(charge(governor, now_ms, 1), TIDE_AGAIN);
        answer(governor, now_ms + 10, 1, TIDE_GONE, 0); /* a 404 proves that it answers */
        assert_int_equal(view_of(governor, now_ms + 10).state, TIDE_GOVERNOR_RUNNING);
        tide_governor_free(governor);
    }
}

static void our_own_trouble_and_cancellation_blame_nobody(void **state)
{
    (void)state;
    static const tide_status ours[] = {TIDE_CANCELED, TIDE_DISK_FULL, TIDE_NO_MEMORY, TIDE_STALE};
    tide_governor *governor = governor_of(tide_governor_profile_named("default"), 0);
    uint64_t now_ms = 10000;
    for (int i = 0; i < 40; i++, now_ms += 1000) {
        assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
        answer(governor, now_ms + 10, 1, ours[i % 4], 0);
    }
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_RUNNING);
    assert_int_equal(view_of(governor, now_ms).cuts, 0);
    tide_governor_free(governor);
}

static void a_halt_stops_everything_with_its_reason_until_resumed(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("default"), 0);
    assert_int_equal(charge(governor, 1000, 1), TIDE_OK);
    tide_governor_halt(governor, "a suspected systemic failure");
    assert_int_equal(charge(governor, 2000, 1), TIDE_STOPPED);
    uint64_t at_ms = 0;
    assert_false(tide_governor_ready(governor, 2000, 1, 1, &at_ms));
    assert_true(at_ms == UINT64_MAX);
    assert_true(tide_governor_wake_at_ms(governor, 2000) == UINT64_MAX);
    assert_int_equal(view_of(governor, 2000).state, TIDE_GOVERNOR_HALTED);
    assert_string_equal(view_of(governor, 2000).reason, "a suspected systemic failure");
    answer(governor, 2000, 1, TIDE_OK, 0); /* nothing in flight is lost */
    tide_governor_resume(governor, 3000);
    assert_true(tide_governor_ready(governor, 3000, 4, 1, &at_ms));
    assert_int_equal(charge(governor, 3000, 1), TIDE_OK);
    tide_governor_free(governor);
}

static void a_pause_for_a_shared_cause_is_one_block_with_one_probe(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("default"), 1000);
    tide_governor_pause(governor, 9000, TIDE_DISK_FULL);
    tide_governor_pause(governor, 5000, TIDE_NETWORK); /* an earlier end is ignored */
    assert_int_equal(view_of(governor, 2000).state, TIDE_GOVERNOR_PAUSED);
    assert_int_equal(view_of(governor, 2000).why, TIDE_DISK_FULL);
    assert_int_equal(charge(governor, 8999, 1), TIDE_AGAIN);
    assert_int_equal(charge(governor, 9000, 1), TIDE_OK);
    assert_int_equal(charge(governor, 9000, 1), TIDE_AGAIN);
    answer(governor, 9100, 1, TIDE_NETWORK, 0);
    assert_int_equal(view_of(governor, 9100).state, TIDE_GOVERNOR_PAUSED);
    assert_in_range(view_of(governor, 9100).until_ms, 9600, 10101);
    tide_governor_free(governor);
}

/* E4.5, E6.1: three messages that always fail are no reason to stop, five new ones are. */
static void what_always_fails_opens_no_breaker_while_others_succeed(void **state)
{
    (void)state;
    const struct tide_governor_profile profile = {
        .rate_min = 1000, .rate_start = 1000, .rate_max = 1000, .in_flight_max = 10};
    tide_governor *governor = governor_of(&profile, 0);
    tide_rng rng = tide_rng_seeded(1);
    struct tide_answer fact = {.units = 1, .latency_ms = 1, .status = TIDE_OK, .http = 200};
    uint64_t now_ms = 1000;
    for (uint64_t call = 0; call < 300; call++, now_ms += 10) {
        const bool bad = call < 3 || call >= 4; /* one other call succeeds, early on */
        fact.subject = bad ? 1 + call % 3 : 1000;
        fact.status = bad ? TIDE_SERVER : TIDE_OK;
        fact.http = bad ? 503 : 200;
        assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
        tide_governor_answered(governor, now_ms + 1, &fact, &rng);
        assert_int_equal(view_of(governor, now_ms + 1).state, TIDE_GOVERNOR_RUNNING);
    }
    for (uint64_t call = 0; call < 5; call++, now_ms += 10) {
        fact.subject = 2000 + call;
        assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
        tide_governor_answered(governor, now_ms + 1, &fact, &rng);
    }
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_OPEN);
    tide_governor_free(governor);
}

static void a_limit_on_concurrency_is_learned_and_tried_again_rarely(void **state)
{
    (void)state;
    const struct tide_governor_profile profile = {
        .rate_min = 100, .rate_start = 100, .rate_max = 100, .in_flight_max = 10};
    tide_governor *governor = governor_of(&profile, 0);
    tide_rng rng = tide_rng_seeded(1);
    for (int i = 0; i < 6; i++)
        assert_int_equal(charge(governor, 5000, 1), TIDE_OK);
    const struct tide_answer fact = {.units = 1,
                                     .latency_ms = 10,
                                     .status = TIDE_THROTTLED,
                                     .http = 429,
                                     .refusal = TIDE_REFUSAL_CONCURRENCY};
    tide_governor_answered(governor, 5010, &fact, &rng);
    assert_int_equal(view_of(governor, 5010).in_flight_max, 5);
    for (int i = 0; i < 5; i++)
        answer(governor, 5020, 1, TIDE_OK, 0);
    const uint64_t now_ms = run_well(governor, 20000, 880000, 1000, 1);
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 5);
    (void)run_well(governor, now_ms, 30000, 1000, 1);
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 6);
    tide_governor_free(governor);
}

static void a_quota_of_bytes_per_day_is_learned(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("graph"), 0);
    tide_rng rng = tide_rng_seeded(1);
    struct tide_answer fact = {
        .units = 1, .latency_ms = 10, .status = TIDE_OK, .http = 200, .bytes = 1000000};
    uint64_t now_ms = 1000;
    for (int i = 0; i < 10; i++, now_ms += 3600000) {
        assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
        tide_governor_answered(governor, now_ms + 10, &fact, &rng);
    }
    assert_int_equal(charge(governor, now_ms, 1), TIDE_OK);
    fact = (struct tide_answer){.units = 1,
                                .latency_ms = 10,
                                .status = TIDE_THROTTLED,
                                .http = 509,
                                .refusal = TIDE_REFUSAL_BYTES};
    tide_governor_answered(governor, now_ms + 10, &fact, &rng);
    assert_int_equal(view_of(governor, now_ms + 10).day_bytes, 10000000);
    fact = (struct tide_answer){
        .units = 1, .latency_ms = 10, .status = TIDE_OK, .http = 200, .bytes = 1000000};
    now_ms += 60000;
    assert_int_equal(charge(governor, now_ms, 1), TIDE_OK); /* the last byte */
    tide_governor_answered(governor, now_ms + 10, &fact, &rng);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_charge(governor, now_ms + 20, 4, 1, &again_ms), TIDE_AGAIN);
    assert_in_range(again_ms, 86400000, 86400000 + 200000); /* when the first hour leaves */
    tide_governor_free(governor);
}

static void workers_grow_as_the_waiting_jobs_need(void **state)
{
    (void)state;
    const struct tide_governor_profile profile = {
        .rate_min = 16, .rate_start = 16, .rate_max = 16, .workers_start = 4, .workers_min = 1};
    tide_governor *governor = governor_of(&profile, 0);
    tide_governor_demand(governor, &(struct tide_demand){.jobs = 500, .small = 200});
    uint64_t now_ms = run_well(governor, 1000, 5500, 250, 1);
    assert_int_equal(view_of(governor, now_ms).workers, 8);
    tide_governor_demand(governor, &(struct tide_demand){.jobs = 3, .large = 3});
    now_ms = run_well(governor, now_ms, 30000, 250, 1); /* no bytes: no more workers */
    assert_int_equal(view_of(governor, now_ms).workers, 8);

    /* Each worker up to twelve brings more bytes; the thirteenth does not. */
    tide_rng rng = tide_rng_seeded(1);
    for (const uint64_t end_ms = now_ms + 120000; now_ms < end_ms; now_ms += 250) {
        const unsigned workers = view_of(governor, now_ms).workers;
        const struct tide_answer fact = {.units = 1,
                                         .latency_ms = 10,
                                         .http = 200,
                                         .bytes = 1000000u * (workers < 12 ? workers : 12)};
        if (charge(governor, now_ms, 1) == TIDE_OK)
            tide_governor_answered(governor, now_ms + 10, &fact, &rng);
    }
    assert_int_equal(view_of(governor, now_ms).workers, 12);
    tide_governor_free(governor);
}

static void settings_change_while_it_runs(void **state)
{
    (void)state;
    struct tide_governor_profile profile = *tide_governor_profile_named("gmail");
    tide_governor *governor = governor_of(&profile, 0);
    profile.share_permille = 500;
    assert_int_equal(tide_governor_limits_set(governor, &profile), TIDE_OK);
    assert_int_equal(view_of(governor, 0).window_max, 3000);
    assert_true(view_of(governor, 0).rate_max == 50);
    assert_true(view_of(governor, 0).rate == 50);
    profile.window_ms = 1000;
    assert_int_equal(tide_governor_limits_set(governor, &profile), TIDE_INVALID);
    profile.window_ms = 60000;
    profile.rate_min = 1000;
    assert_int_equal(tide_governor_limits_set(governor, &profile), TIDE_INVALID);
    assert_int_equal(view_of(governor, 0).window_max, 3000);
    tide_governor_free(governor);
}

/* ---- Crash and restore. ---- */

static void a_restored_governor_remembers_pace_pause_and_spent_units(void **state)
{
    (void)state;
    tide_governor *old = governor_of(tide_governor_profile_named("gmail"), 1000);
    save_now(old, 1000);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(charge(old, 2000 + 1000u * (unsigned)i, 20), TIDE_OK);
        if (i < 2)
            answer(old, 2010 + 1000u * (unsigned)i, 20, TIDE_OK, 0);
    }
    tide_governor_pause(old, 100000, TIDE_THROTTLED);
    struct tide_governor_saved saved;
    tide_governor_save(old, 5000, 1700000005000, &saved);
    assert_int_equal(saved.window.in_flight, 20);
    tide_governor_free(old);

    tide_buf text;
    tide_buf_init(&text, tide_mem_heap(), 1 << 16);
    assert_int_equal(tide_governor_saved_print(&saved, &text), TIDE_OK);
    struct tide_governor_saved read;
    assert_int_equal(tide_governor_saved_parse(tide_buf_text(&text), &read), TIDE_OK);
    tide_buf text_again;
    tide_buf_init(&text_again, tide_mem_heap(), 1 << 16);
    assert_int_equal(tide_governor_saved_print(&read, &text_again), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&text), tide_buf_cstr(&text_again));
    tide_buf_done(&text_again);
    tide_buf_done(&text);

    tide_governor *new = governor_of(tide_governor_profile_named("gmail"), 77);
    assert_int_equal(tide_governor_restore(new, &read, 77, 1700000015000), TIDE_OK);
    assert_int_equal(view_of(new, 77).window_used, 60 + saved.unrecorded_units);
    assert_int_equal(view_of(new, 77).state, TIDE_GOVERNOR_PAUSED);
    assert_int_equal(view_of(new, 77).until_ms, 77 + 85000);
    assert_true(view_of(new, 77).rate == 80);
    assert_int_equal(charge(new, 85077, 20), TIDE_AGAIN); /* nothing is durable yet */
    save_now(new, 85077);
    assert_int_equal(charge(new, 85077, 20), TIDE_OK);
    assert_int_equal(view_of(new, 85077).window_used, 20); /* all else is long over */
    tide_governor_free(new);
}

/* A sign-in that people mend before they start again is tried at once; what the
 * provider asked for is kept to. */
static void a_restart_forgets_a_pause_for_a_sign_in(void **state)
{
    (void)state;
    static const struct {
        tide_status why;
        bool kept;
    } rows[] = {{TIDE_AUTH, false}, {TIDE_THROTTLED, true}, {TIDE_SERVER, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_governor *old = governor_of(tide_governor_profile_named("gmail"), 1000);
        tide_governor_pause(old, 301000, rows[i].why);
        struct tide_governor_saved saved;
        tide_governor_save(old, 1000, 1700000001000, &saved);
        tide_governor_free(old);
        tide_governor *new = governor_of(tide_governor_profile_named("gmail"), 77);
        assert_int_equal(tide_governor_restore(new, &saved, 77, 1700000002000), TIDE_OK);
        assert_int_equal(view_of(new, 77).state == TIDE_GOVERNOR_RUNNING, !rows[i].kept);
        tide_governor_free(new);
    }
}

static void a_damaged_or_newer_snapshot_is_refused(void **state)
{
    (void)state;
    tide_governor *governor = governor_of(tide_governor_profile_named("gmail"), 1000);
    save_now(governor, 1000);
    assert_int_equal(charge(governor, 2000, 20), TIDE_OK);
    answer(governor, 2100, 20, TIDE_OK, 0);
    struct tide_governor_saved saved;
    tide_governor_save(governor, 3000, 1700000003000, &saved);
    tide_governor_free(governor);

    tide_buf text;
    tide_buf_init(&text, tide_mem_heap(), 1 << 16);
    assert_int_equal(tide_governor_saved_print(&saved, &text), TIDE_OK);
    struct tide_governor_saved read;
    for (size_t bytes = 0; bytes < text.bytes; bytes++) /* cut off anywhere */
        if (bytes == 0 || text.data[bytes - 1] == ' ' || text.data[bytes] == ' ')
            assert_int_equal(tide_governor_saved_parse((tide_text){text.data, bytes}, &read),
                             TIDE_CORRUPT);
    tide_rng rng = tide_rng_seeded(5);
    for (uint64_t i = 0; i < scaled(200000); i++) { /* any damage is found or harmless */
        const size_t at = (size_t)tide_rng_below(&rng, text.bytes);
        const char was = text.data[at];
        text.data[at] = (char)tide_rng_below(&rng, 256);
        if (tide_governor_saved_parse(tide_buf_text(&text), &read) == TIDE_OK) {
            tide_governor *next = governor_of(tide_governor_profile_named("gmail"), 7);
            if (tide_governor_restore(next, &read, 7, 1700000004000) != TIDE_OK)
                assert_int_equal(view_of(next, 7).window_used, 0);
            assert_true(tide_governor_check(next, 7));
            tide_governor_free(next);
        }
        text.data[at] = was;
    }
    text.data[0] = '2';
    assert_int_equal(tide_governor_saved_parse(tide_buf_text(&text), &read), TIDE_NEWER);

    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, 0);
    tide_buf small;
    tide_buf_init(&small, &mem.base, 1 << 16);
    assert_int_equal(tide_governor_saved_print(&saved, &small), TIDE_NO_MEMORY);
    tide_buf_done(&small);
    tide_buf_init(&small, tide_mem_heap(), 20);
    assert_int_not_equal(tide_governor_saved_print(&saved, &small), TIDE_OK);
    assert_int_equal(small.bytes, 0);
    tide_buf_done(&small);
    tide_buf_done(&text);
}

static void every_failed_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    for (uint64_t fail_at = 0;; fail_at++) { /* ends: three allocations at most */
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        struct tide_governor_profile profile = *tide_governor_profile_named("gmail");
        profile.learn_bytes_per_day = true;
        tide_governor *governor = NULL;
        const tide_status rc = tide_governor_new(&profile, 0, &mem.base, &governor);
        tide_governor_free(governor);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired) {
            assert_int_equal(rc, TIDE_OK);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
        assert_null(governor);
    }
}

/* ---- Random operations: the invariants hold after each. ---- */

struct out_call {
    uint32_t units;
    uint32_t calls;
    uint64_t sent_ms;
};

static void random_answer(tide_governor *governor, uint64_t now_ms, const struct out_call *call,
                          tide_rng *rng)
{
    static const tide_status troubles[] = {TIDE_GONE,    TIDE_SERVER,  TIDE_THROTTLED,
                                           TIDE_AUTH,    TIDE_TIMEOUT, TIDE_SERVER,
                                           TIDE_NETWORK, TIDE_CANCELED};
    tide_status status = TIDE_OK;
    if (tide_rng_chance(rng, 1, 30))
        status = troubles[tide_rng_below(rng, sizeof troubles / sizeof troubles[0])];
    const struct tide_answer fact = {
        .units = call->units,
        .calls = call->calls,
        .latency_ms = (uint32_t)(now_ms - call->sent_ms),
        .status = status,
        .http = (int)tide_rng_below(rng, 2) * 200,
        .retry_after_ms = tide_rng_chance(rng, 1, 3) ? tide_rng_below(rng, 5000) : 0,
        .method = (uint32_t)tide_rng_below(rng, TIDE_METHODS_MAX + 2),
        .refusal = (enum tide_refusal)tide_rng_below(rng, 3),
        .bytes = tide_rng_below(rng, 100000),
    };
    tide_governor_answered(governor, now_ms, &fact, rng);
}

enum { OUT_MAX = 32 };
struct walk {
    tide_governor *governor;
    struct tide_governor_profile profile;
    struct out_call out[OUT_MAX];
    unsigned out_count;
    tide_rng rng;
    uint64_t now_ms;
};

static void walk_charge(struct walk *walk)
{
    const unsigned level = 1 + (unsigned)tide_rng_below(&walk->rng, 4);
    const uint32_t calls = 1 + (uint32_t)tide_rng_below(&walk->rng, 3);
    const uint32_t units = (uint32_t)tide_rng_below(&walk->rng, 2 * walk->profile.call_units + 1);
    uint64_t again_ms = 0;
    uint64_t at_ms = 0;
    if (walk->out_count == OUT_MAX)
        return;
    const bool ready = tide_governor_ready(walk->governor, walk->now_ms, level, units, &at_ms);
    const tide_status rc =
        tide_governor_charge_batch(walk->governor, walk->now_ms, level, units, calls, &again_ms);
    if (rc == TIDE_OK)
        walk->out[walk->out_count++] = (struct out_call){units, calls, walk->now_ms};
    if (rc == TIDE_AGAIN)
        assert_true(again_ms > walk->now_ms);
    if (calls == 1 && rc != TIDE_INVALID)
        assert_int_equal(ready, rc == TIDE_OK);
}

/* A call comes back, or turns out never to have been sent. */
static void walk_end(struct walk *walk, bool sent)
{
    if (walk->out_count == 0)
        return;
    const unsigned i = (unsigned)tide_rng_below(&walk->rng, walk->out_count);
    const struct out_call call = walk->out[i];
    walk->out[i] = walk->out[--walk->out_count];
    if (sent)
        random_answer(walk->governor, walk->now_ms, &call, &walk->rng);
    else
        tide_governor_uncharge_batch(walk->governor, walk->now_ms, call.units, call.calls);
}

static void walk_command(struct walk *walk)
{
    switch (tide_rng_below(&walk->rng, 200)) {
    case 0:
        tide_governor_halt(walk->governor, "random");
        break;
    case 1:
        tide_governor_pause(walk->governor, walk->now_ms + tide_rng_below(&walk->rng, 3000),
                            TIDE_NETWORK);
        break;
    case 2:
    case 3:
    case 4:
        tide_governor_resume(walk->governor, walk->now_ms);
        break;
    case 5:
        walk->profile.share_permille = 500 + (unsigned)tide_rng_below(&walk->rng, 501);
        (void)tide_governor_limits_set(walk->governor, &walk->profile);
        break;
    default:
        break;
    }
}

static uint64_t random_walk(uint64_t seed, uint64_t steps)
{
    struct walk walk = {.rng = tide_rng_seeded(seed), .now_ms = 1};
    walk.profile = (struct tide_governor_profile){
        .window_ms = 1000 + (uint32_t)tide_rng_below(&walk.rng, 60000),
        .window_units_max = 200 + tide_rng_below(&walk.rng, 5000),
        .call_units = 1 + (uint32_t)tide_rng_below(&walk.rng, 20),
        .in_flight_max = 1 + (unsigned)tide_rng_below(&walk.rng, 20),
        .reserve_permille = (unsigned)tide_rng_below(&walk.rng, 2) * 20,
        .learn_bytes_per_day = tide_rng_chance(&walk.rng, 1, 2),
    };
    walk.governor = governor_of(&walk.profile, 1);
    uint64_t window_max = walk.profile.window_units_max; /* the largest share there was */

    for (uint64_t step = 0; step < steps; step++) {
        walk.now_ms += tide_rng_below(&walk.rng, 20);
        const uint64_t dice = tide_rng_below(&walk.rng, 12);
        if (dice < 2)
            walk_command(&walk);
        else if (dice < 7)
            walk_end(&walk, dice > 2);
        else
            walk_charge(&walk);
        if (tide_governor_save_due(walk.governor, walk.now_ms))
            save_now(walk.governor, walk.now_ms);
        const struct tide_governor_view view = view_of(walk.governor, walk.now_ms);
        assert_true(view.window_used <= window_max);
        assert_true(view.in_flight <= walk.profile.in_flight_max);
        assert_true(tide_governor_jobs_max(walk.governor, walk.now_ms) <= view.in_flight_max);
        if (!tide_governor_check(walk.governor, walk.now_ms))
            fail_msg("seed %llu step %llu", (unsigned long long)seed, (unsigned long long)step);
    }
    const uint64_t calls = view_of(walk.governor, walk.now_ms).calls;
    tide_governor_free(walk.governor);
    return calls;
}

static void random_operations_keep_the_invariants(void **state)
{
    (void)state;
    uint64_t calls = 0;
    for (uint64_t seed = 1; seed <= 40; seed++)
        calls += random_walk(seed, scaled(50000));
    print_message("%llu calls\n", (unsigned long long)calls);
    assert_true(calls > scaled(40 * 50000) / 100); /* it was not halted all the time */
}

/* ---- Under the referee. ---- */

static const struct referee_options an_hour = {
    .seed = 1, .duration_ms = 3600000, .limit_units = 6000, .call_units = 20, .level = 4};

static void over_an_hour_97_percent_is_used_and_no_window_is_crossed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= scaled(10); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        const struct referee_report report =
            referee_run(tide_governor_profile_named("gmail"), &options);
        print_message("seed %u: %.2f %% used\n", (unsigned)seed, report.share * 100);
        assert_true(report.share >= 0.97);
        assert_int_equal(report.crossed, 0);
        assert_true((double)report.refused < 0.001 * (double)report.calls);
        assert_in_range(report.in_flight_peak, 2, 10);
        assert_in_range(report.six_seconds_peak, 400, 720); /* paced */
    }
}

/* The reserve would hide a small error: here nothing is held back. */
static void without_a_reserve_still_no_window_is_crossed(void **state)
{
    (void)state;
    struct tide_governor_profile profile = *tide_governor_profile_named("gmail");
    profile.reserve_permille = 0;
    for (uint64_t seed = 1; seed <= scaled(10); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.call_units = seed % 2 ? 20 : 5;
        const struct referee_report report = referee_run(&profile, &options);
        print_message("seed %u: %.2f %% used\n", (unsigned)seed, report.share * 100);
        assert_true(report.share >= 0.99);
        assert_int_equal(report.crossed, 0);
    }
}

static void killed_again_and_again_it_crosses_no_window(void **state)
{
    (void)state;
    static const uint32_t every_ms[] = {60000, 20000, 5000, 500};
    struct tide_governor_profile profile = *tide_governor_profile_named("gmail");
    profile.reserve_permille = 0;
    for (uint64_t seed = 1; seed <= scaled(12); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.kill_every_ms = every_ms[seed % 4];
        const struct referee_report report = referee_run(&profile, &options);
        print_message("seed %u: killed %u times, %.2f %% used\n", (unsigned)seed,
                      (unsigned)report.lives, report.share * 100);
        assert_int_equal(report.crossed, 0);
        if (options.kill_every_ms == 60000)
            assert_true(report.share >= 0.9);
    }
}

static void after_a_storm_of_refusals_the_pace_is_back_within_a_minute(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= scaled(20); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.duration_ms = 600000;
        options.storm_from_ms = 240000;
        options.storm_to_ms = 300000;
        options.storm_names_ms = seed % 2 ? 0 : 20000;
        const struct referee_report report =
            referee_run(tide_governor_profile_named("gmail"), &options);
        print_message("seed %u: back after %.1f s, %u calls refused\n", (unsigned)seed,
                      (double)report.recovered_ms / 1000, (unsigned)report.storm_calls);
        assert_in_range(report.recovered_ms, 1, 60000);
        assert_true(report.units_after_storm >= 5400);
        assert_int_equal(report.crossed, 0);
        assert_in_range(report.storm_calls, 1, 40); /* one probe, not a thousand retries */
    }
}

static void a_click_does_not_wait_for_the_backfill(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= scaled(5); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.clicks_every_ms = 11000; /* six a minute at most: the reserve */
        const struct referee_report report =
            referee_run(tide_governor_profile_named("gmail"), &options);
        print_message("seed %u: %u clicks waited at most %u ms\n", (unsigned)seed,
                      (unsigned)report.clicks, (unsigned)report.click_wait_ms_max);
        assert_true(report.clicks > 300);
        assert_in_range(report.click_wait_ms_max, 0, 50);
        assert_int_equal(report.crossed, 0);
        assert_true(report.share >= 0.97);
    }
}

/* A referee that never complains proves nothing. */
static void the_referee_notices_a_quota_that_is_smaller_than_believed(void **state)
{
    (void)state;
    struct referee_options options = an_hour;
    options.limit_units = 5800;
    const struct referee_report report =
        referee_run(tide_governor_profile_named("gmail"), &options);
    assert_true(report.crossed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profiles_have_names_and_the_numbers_of_the_table),
        cmocka_unit_test(contradictory_profiles_are_refused),
        cmocka_unit_test(sending_is_paced_and_the_answer_says_when_to_come_back),
        cmocka_unit_test(nothing_is_spent_before_a_promise_for_it_is_on_disk),
        cmocka_unit_test(an_idle_account_neither_saves_nor_makes_a_click_wait),
        cmocka_unit_test(the_reserve_of_the_window_is_for_level_1_which_borrows_from_the_pace),
        cmocka_unit_test(a_batch_is_charged_whole_and_counts_every_part_in_flight),
        cmocka_unit_test(a_shared_limit_is_charged_by_all_and_ends_with_its_grant),
        cmocka_unit_test(only_so_many_limits_can_be_added),
        cmocka_unit_test(jobs_follow_pace_times_latency),
        cmocka_unit_test(five_healthy_seconds_raise_both_and_a_refusal_halves_both),
        cmocka_unit_test(a_method_that_becomes_slow_halves_the_pace_once),
        cmocka_unit_test(repeated_failures_open_the_breaker_and_one_probe_closes_it),
        cmocka_unit_test(our_own_trouble_and_cancellation_blame_nobody),
        cmocka_unit_test(a_halt_stops_everything_with_its_reason_until_resumed),
        cmocka_unit_test(a_pause_for_a_shared_cause_is_one_block_with_one_probe),
        cmocka_unit_test(what_always_fails_opens_no_breaker_while_others_succeed),
        cmocka_unit_test(a_limit_on_concurrency_is_learned_and_tried_again_rarely),
        cmocka_unit_test(a_quota_of_bytes_per_day_is_learned),
        cmocka_unit_test(workers_grow_as_the_waiting_jobs_need),
        cmocka_unit_test(settings_change_while_it_runs),
        cmocka_unit_test(a_restored_governor_remembers_pace_pause_and_spent_units),
        cmocka_unit_test(a_restart_forgets_a_pause_for_a_sign_in),
        cmocka_unit_test(a_damaged_or_newer_snapshot_is_refused),
        cmocka_unit_test(every_failed_allocation_is_reported_and_leaks_nothing),
        cmocka_unit_test(random_operations_keep_the_invariants),
        cmocka_unit_test(over_an_hour_97_percent_is_used_and_no_window_is_crossed),
        cmocka_unit_test(without_a_reserve_still_no_window_is_crossed),
        cmocka_unit_test(killed_again_and_again_it_crosses_no_window),
        cmocka_unit_test(after_a_storm_of_refusals_the_pace_is_back_within_a_minute),
        cmocka_unit_test(a_click_does_not_wait_for_the_backfill),
        cmocka_unit_test(the_referee_notices_a_quota_that_is_smaller_than_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
