/* What answers teach: pace, workers, limits, the breaker (E4.3, E4.5). */
#include "governor_fixture.h"
#include "support/ok.h"

CASE(five_healthy_seconds_raise_both_and_a_refusal_halves_both, "default", 0)
{
    uint64_t now_ms = run_well(governor, 1000, 5500, 250, 1);
    assert_true(view_of(governor, now_ms).rate == 8); /* below half it doubles */
    assert_int_equal(view_of(governor, now_ms).workers, 9);
    now_ms = run_well(governor, now_ms, 5000, 100, 1);
    assert_true(view_of(governor, now_ms).rate == 8.8);
    assert_int_equal(view_of(governor, now_ms).workers, 10);

    for (int i = 0; i < 3; i++)
        OK(charge(governor, now_ms + 1000, 1));
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

    /* The provider still refuses: the pause lasts, the pace is not lowered. */
    now_ms += 7000;
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_PROBING);
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 1);
    OK(charge(governor, now_ms, 1));
    assert_int_equal(charge(governor, now_ms, 1), TIDE_AGAIN);
    answer(governor, now_ms + 10, 1, TIDE_THROTTLED, 0);
    assert_true(view_of(governor, now_ms).rate == 4.4);
    now_ms = view_of(governor, now_ms).until_ms;
    OK(charge(governor, now_ms, 1));
    answer(governor, now_ms + 10, 1, TIDE_OK, 0);
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_RUNNING);
    assert_int_equal(view_of(governor, now_ms).calls_by_class[TIDE_CLASS_THROTTLED], 4);

    /* A refusal after a success is a lesson again, down to the minimum. */
    for (int i = 0; i < 5; i++) {
        now_ms += 20000;
        OK(charge(governor, now_ms, 1));
        answer(governor, now_ms + 10, 1, TIDE_OK, 0);
        OK(charge(governor, now_ms + 20, 1));
        answer(governor, now_ms + 40, 1, TIDE_THROTTLED, 0);
    }
    assert_true(view_of(governor, now_ms).rate == 1);
    assert_int_equal(view_of(governor, now_ms).workers, 2);
}

TEST(a_method_that_becomes_slow_halves_the_pace_once)
{
    const struct tide_governor_profile profile = {
        .rate_min = 1, .rate_start = 64, .rate_max = 64, .workers_start = 32};
    tide_governor *governor = governor_of(&profile, 0);
    tide_rng rng = tide_rng_seeded(1);
    uint64_t now_ms = 1000;
    for (int i = 0; i < 1000; i++, now_ms += 100) {
        OK(charge(governor, now_ms, 1));
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

TEST(repeated_failures_open_the_breaker_and_one_probe_closes_it)
{
    static const tide_status failures[] = {TIDE_SERVER, TIDE_AUTH, TIDE_TIMEOUT};
    for (int kind = 0; kind < 3; kind++) {
        tide_governor *governor = governor_of(profile_named("chat"), 0);
        uint64_t now_ms = 10000;
        for (int i = 0; i < 5; i++, now_ms += 1000) {
            OK(charge(governor, now_ms, 1));
            answer(governor, now_ms + 10, 1, failures[kind], 0);
        }
        assert_int_equal(view_of(governor, now_ms - 900).state, TIDE_GOVERNOR_OPEN);
        assert_int_equal(view_of(governor, now_ms - 900).why, failures[kind]);
        now_ms = view_of(governor, now_ms).until_ms;
        OK(charge(governor, now_ms, 1));
        assert_int_equal(charge(governor, now_ms, 1), TIDE_AGAIN);
        answer(governor, now_ms + 10, 1, TIDE_GONE, 0); /* a 404 proves that it answers */
        assert_int_equal(view_of(governor, now_ms + 10).state, TIDE_GOVERNOR_RUNNING);
        tide_governor_free(governor);
    }
}

CASE(our_own_trouble_and_cancellation_count_against_no_provider, "default", 0)
{
    static const tide_status ours[] = {TIDE_CANCELED, TIDE_DISK_FULL, TIDE_NO_MEMORY,
                                       TIDE_STALE,    TIDE_FULL,      TIDE_BUSY};
    uint64_t now_ms = 10000;
    for (int i = 0; i < 40; i++, now_ms += 1000) {
        OK(charge(governor, now_ms, 1));
        answer(governor, now_ms + 10, 1, ours[i % 6], 0);
    }
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_RUNNING);
    assert_int_equal(view_of(governor, now_ms).cuts, 0);
}

/* E4.5, E6.1: three messages that always fail are no reason to stop, five new ones are. */
TEST(what_always_fails_opens_no_breaker_while_others_succeed)
{
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
        OK(charge(governor, now_ms, 1));
        tide_governor_answered(governor, now_ms + 1, &fact, &rng);
        assert_int_equal(view_of(governor, now_ms + 1).state, TIDE_GOVERNOR_RUNNING);
    }
    for (uint64_t call = 0; call < 5; call++, now_ms += 10) {
        fact.subject = 2000 + call;
        OK(charge(governor, now_ms, 1));
        tide_governor_answered(governor, now_ms + 1, &fact, &rng);
    }
    assert_int_equal(view_of(governor, now_ms).state, TIDE_GOVERNOR_OPEN);
    tide_governor_free(governor);
}

TEST(a_limit_on_concurrency_is_learned_and_tried_again_rarely)
{
    struct tide_governor_profile profile = {
        .rate_min = 100, .rate_start = 100, .rate_max = 100, .in_flight_max = 10};
    tide_governor *governor = governor_of(&profile, 0);
    tide_rng rng = tide_rng_seeded(1);
    for (int i = 0; i < 6; i++)
        OK(charge(governor, 5000, 1));
    const struct tide_answer fact = {.units = 1,
                                     .latency_ms = 10,
                                     .status = TIDE_THROTTLED,
                                     .http = 429,
                                     .refusal = TIDE_REFUSAL_CONCURRENCY};
    tide_governor_answered(governor, 5010, &fact, &rng);
    assert_int_equal(view_of(governor, 5010).in_flight_max, 5);
    for (int i = 0; i < 5; i++)
        answer(governor, 5020, 1, TIDE_OK, 0);
    uint64_t now_ms = run_well(governor, 20000, 880000, 1000, 1);
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 5);
    now_ms = run_well(governor, now_ms, 30000, 1000, 1);
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 6);

    /* What is published may be less than what was learned. */
    profile.in_flight_max = 3;
    OK(tide_governor_limits_set(governor, &profile));
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 3);
    profile.in_flight_max = 7;
    OK(tide_governor_limits_set(governor, &profile));
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 6);
    now_ms = run_well(governor, now_ms, 930000, 1000, 1);
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 7); /* nothing learned is left */
    profile.in_flight_max = 10;
    OK(tide_governor_limits_set(governor, &profile));
    assert_int_equal(view_of(governor, now_ms).in_flight_max, 10);
    tide_governor_free(governor);
}

CASE(a_quota_of_bytes_per_day_is_learned, "onedrive", 0)
{
    tide_rng rng = tide_rng_seeded(1);
    struct tide_answer fact = {
        .units = 1, .latency_ms = 10, .status = TIDE_OK, .http = 200, .bytes = 1000000};
    uint64_t now_ms = 1000;
    for (int i = 0; i < 10; i++, now_ms += 3600000) {
        OK(charge(governor, now_ms, 1));
        tide_governor_answered(governor, now_ms + 10, &fact, &rng);
    }
    OK(charge(governor, now_ms, 1));
    fact = (struct tide_answer){.units = 1,
                                .latency_ms = 10,
                                .status = TIDE_THROTTLED,
                                .http = 509,
                                .refusal = TIDE_REFUSAL_BYTES};
    tide_governor_answered(governor, now_ms + 10, &fact, &rng);
    assert_int_equal(view_of(governor, now_ms + 10).day_bytes, 10000000);
    (void)run_well(governor, now_ms + 30000, 20000, 1000, 1);
    assert_int_equal(view_of(governor, now_ms + 50000).day_bytes_max, 10000001);
    fact = (struct tide_answer){
        .units = 1, .latency_ms = 10, .status = TIDE_OK, .http = 200, .bytes = 1000000};
    now_ms += 60000;
    OK(charge(governor, now_ms, 1)); /* the last byte */
    tide_governor_answered(governor, now_ms + 10, &fact, &rng);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_charge(governor, now_ms + 20, 4, 1, &again_ms), TIDE_AGAIN);
    assert_in_range(again_ms, 86400000, 86400000 + 200000); /* when the first hour leaves */
    now_ms = run_well(governor, now_ms + 86400000, 20000, 1000, 1);
    assert_int_equal(view_of(governor, now_ms).day_bytes_max, 11000001); /* a tenth more is tried */
}

TEST(workers_grow_as_the_waiting_jobs_need)
{
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

CASE(a_method_that_was_always_slow_is_its_own_measure, "default", 0)
{
    tide_rng rng = tide_rng_seeded(1);
    const struct tide_answer fact = {.units = 1, .latency_ms = 1900, .http = 200, .method = 3};
    for (uint64_t now_ms = 1000; now_ms < 600000; now_ms += 2000) {
        OK(charge(governor, now_ms, 1));
        tide_governor_answered(governor, now_ms + 1900, &fact, &rng);
    }
    assert_int_equal(view_of(governor, 600000).cuts, 0);
    assert_true(view_of(governor, 600000).rate > 4);
}

CASE(a_late_answer_neither_ends_a_pause_nor_raises_the_pace, "default", 0)
{
    (void)run_well(governor, 1000, 4500, 250, 1);
    assert_true(view_of(governor, 5900).rate == 4);
    OK(charge(governor, 5900, 1));
    tide_governor_pause(governor, 90000, TIDE_NETWORK);
    answer(governor, 6200, 1, TIDE_OK, 0); /* five healthy seconds are over */
    assert_true(view_of(governor, 6200).rate == 4);
    assert_int_equal(view_of(governor, 6200).state, TIDE_GOVERNOR_PAUSED);
}

CASE(an_answer_may_have_taken_longer_than_the_clock_runs, "default", 0)
{
    OK(charge(governor, 5, 1));
    answer(governor, 5, 1, TIDE_OK, 0); /* 10 ms */
    assert_int_equal(view_of(governor, 5).calls, 1);
    assert_true(tide_governor_check(governor, 5));
}
