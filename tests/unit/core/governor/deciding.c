/* Profiles, and when a call may be sent (E4.1, E4.4). */
#include "governor_fixture.h"
#include "support/ok.h"

#include <math.h>

/* ---- Profiles. ---- */

TEST(profiles_have_names_and_the_numbers_of_the_table)
{
    static const char *const names[] = {"gmail", "console", "onedrive", "chat", "default"};
    for (int i = 0; i < 5; i++) {
        struct tide_governor_profile complete;
        assert_non_null(profile_named(names[i]));
        OK(tide_profile_complete(profile_named(names[i]), &complete));
        struct tide_governor_profile twice;
        OK(tide_profile_complete(&complete, &twice));
        assert_true(complete.rate_min == twice.rate_min && complete.rate_max == twice.rate_max &&
                    complete.rate_start == twice.rate_start);
        assert_int_equal(complete.workers_start, twice.workers_start);
        assert_int_equal(complete.in_flight_max, twice.in_flight_max);
    }
    assert_null(profile_named("carrier pigeon"));

    struct tide_governor_profile gmail;
    OK(tide_profile_complete(profile_named("gmail"), &gmail));
    assert_true(gmail.rate_max == 100 && gmail.rate_min == 20);
    struct tide_governor_profile plain;
    OK(tide_profile_complete(profile_named("default"), &plain));
    assert_true(plain.rate_min == 1 && plain.rate_start == 4 && plain.rate_max == 16);
    assert_int_equal(plain.workers_min, 2);
    assert_int_equal(plain.workers_start, 8);
    assert_int_equal(plain.workers_max, 32);
}

TEST(contradictory_profiles_are_refused)
{
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
        {.rate_start = NAN},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_governor *governor = NULL;
        assert_int_equal(tide_governor_new(&wrong[i], 0, tide_mem_heap(), &governor), TIDE_INVALID);
        assert_null(governor);
    }
}

/* ---- The decision. ---- */

TEST(sending_is_paced_and_the_answer_says_when_to_come_back)
{
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

/* The dispatcher would otherwise wake at once, again and again, for an account without jobs. */
CASE(what_fits_already_waits_for_no_time, "default", 1000)
{
    assert_true(tide_governor_wake_at_ms(governor, 1000) == UINT64_MAX);
    while (charge(governor, 1000, 1) == TIDE_OK)
        answer(governor, 1000, 1, TIDE_OK, 0);
    const uint64_t wake_ms = tide_governor_wake_at_ms(governor, 1000);
    assert_true(wake_ms > 1000 && wake_ms < UINT64_MAX);
    assert_true(tide_governor_wake_at_ms(governor, wake_ms) == UINT64_MAX);
    OK(charge(governor, wake_ms, 1));
}

CASE(nothing_is_spent_before_a_promise_for_it_is_on_disk, "gmail", 1000)
{
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
    OK(tide_governor_charge(governor, 1001, 1, 20, &again_ms));

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
    OK(charge(governor, 30000, 20));
}

CASE(an_idle_account_neither_saves_nor_makes_a_click_wait, "gmail", 1000)
{
    save_now(governor, 1000);
    assert_true(tide_governor_save_at_ms(governor) == UINT64_MAX);
    uint64_t again_ms = 0;
    OK(tide_governor_charge(governor, 86400000, 1, 20, &again_ms));
    assert_int_equal(tide_governor_save_at_ms(governor), 1500);
}

TEST(the_reserve_of_the_window_is_for_level_1_which_borrows_from_the_pace)
{
    struct tide_governor_profile profile = *profile_named("gmail");
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
        OK(tide_governor_charge(governor, now_ms, 1, 20, &again_ms));
        answer(governor, now_ms, 20, TIDE_OK, 0);
    }
    assert_int_equal(tide_governor_charge(governor, now_ms, 1, 20, &again_ms), TIDE_AGAIN);
    assert_int_equal(view_of(governor, now_ms).window_used, 6000);
    tide_governor_free(governor);
}

CASE(a_batch_is_charged_whole_and_counts_every_part_in_flight, "gmail", 0)
{
    save_now(governor, 0);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_charge_batch(governor, 5000, 2, 220, 11, &again_ms),
                     TIDE_INVALID);
    assert_int_equal(tide_governor_charge_batch(governor, 5000, 2, 201, 1, &again_ms),
                     TIDE_INVALID); /* more than one promise covers */
    OK(tide_governor_charge_batch(governor, 5000, 2, 120, 6, &again_ms));
    save_now(governor, 5001);
    assert_int_equal(tide_governor_charge_batch(governor, 9000, 2, 80, 4, &again_ms), TIDE_AGAIN);
    assert_true(again_ms == UINT64_MAX); /* one place is kept for interactive calls */
    OK(tide_governor_charge_batch(governor, 9000, 2, 60, 3, &again_ms));
    assert_int_equal(tide_governor_charge(governor, 9000, 2, 20, &again_ms), TIDE_AGAIN);
    OK(tide_governor_charge(governor, 9000, 1, 20, &again_ms));
    assert_int_equal(view_of(governor, 9000).in_flight, 10);
    tide_governor_uncharge_batch(governor, 9000, 20, 1);
    tide_governor_uncharge_batch(governor, 9000, 60, 3);
    assert_int_equal(view_of(governor, 9000).in_flight, 6);
    assert_int_equal(view_of(governor, 9000).window_used, 120);
    assert_true(tide_governor_check(governor, 9000));
}

TEST(a_shared_limit_is_charged_by_all_and_ends_with_its_grant)
{
    struct tide_limit project = {.units_max = 5, .granted_until_ms = 20000};
    OK(tide_window_init(&project.window, 60000, tide_mem_heap()));
    const struct tide_governor_profile profile = {
        .rate_min = 100, .rate_start = 100, .rate_max = 100};
    tide_governor *a = governor_of(&profile, 0);
    tide_governor *b = governor_of(&profile, 0);
    OK(tide_governor_limit_add(a, &project));
    OK(tide_governor_limit_add(b, &project));
    for (int i = 0; i < 5; i++)
        OK(charge(i % 2 ? a : b, 1000, 1));
    assert_int_equal(tide_governor_limit_add(a, &project), TIDE_BUSY);
    assert_int_equal(charge(a, 1000, 1), TIDE_AGAIN);
    assert_int_equal(charge(b, 1000, 1), TIDE_AGAIN);
    answer(a, 1000, 1, TIDE_OK, 0);
    assert_int_equal(charge(b, 19000, 1), TIDE_AGAIN);
    project.units_max = 6;
    OK(charge(b, 19999, 1));
    project.units_max = 7;
    assert_int_equal(charge(b, 20000, 1), TIDE_AGAIN); /* the grant is over */
    project.granted_until_ms = 35000;
    OK(charge(b, 20000, 1));
    assert_int_equal(tide_window_used(&project.window, 20000), 7);
    tide_governor_uncharge_batch(b, 20000, 1, 1); /* what was not sent is free for all again */
    assert_int_equal(tide_window_used(&project.window, 20000), 6);
    tide_governor_free(a);
    tide_governor_free(b);
    tide_window_done(&project.window);
}

CASE(only_so_many_limits_can_be_added, "gmail", 0)
{
    struct tide_limit limit = {0};
    for (int i = 1; i < TIDE_LIMITS_PER_ACCOUNT; i++)
        OK(tide_governor_limit_add(governor, &limit));
    assert_int_equal(tide_governor_limit_add(governor, &limit), TIDE_FULL);
}

CASE(jobs_follow_pace_times_latency, "default", 0)
{
    assert_int_equal(tide_governor_jobs_max(governor, 0), 4); /* 4 calls/s, a second assumed */
    const uint64_t now_ms = run_well(governor, 1000, 4000, 250, 1); /* 10 ms each */
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 1);
    tide_governor_halt(governor, "asked to");
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 0);
}

/* A drive's server that answers in 10 ms: a few large transfers must not be all that runs (D7). */
CASE(jobs_of_a_drive_do_not_get_few_because_its_calls_are_fast, "onedrive", 0)
{
    const unsigned at_first = tide_governor_jobs_max(governor, 0);
    const uint64_t now_ms = run_well(governor, 1000, 4000, 250, 2);
    assert_true(at_first >= 16);
    assert_int_equal(tide_governor_jobs_max(governor, now_ms), 16);
}

TEST(what_fits_only_with_the_reserve_is_refused_to_all_but_level_1)
{
    struct tide_governor_profile profile = *profile_named("gmail");
    profile.spend_lease_ms = 60000; /* one promise covers the whole window */
    tide_governor *governor = governor_of(&profile, 1000);
    save_now(governor, 1000);
    uint64_t again_ms = 0;
    assert_int_equal(tide_governor_charge(governor, 1000, 2, 5900, &again_ms), TIDE_INVALID);
    OK(tide_governor_charge(governor, 1000, 1, 5900, &again_ms));
    assert_int_equal(tide_governor_charge(governor, 1000, 1, 6001, &again_ms), TIDE_INVALID);
    tide_governor_free(governor);
}
