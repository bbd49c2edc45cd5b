/* What a snapshot keeps, and what is refused of one; failed allocations. */
#include "governor_fixture.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"

TEST(a_restored_governor_remembers_pace_pause_and_spent_units)
{
    tide_governor *old = governor_of(profile_named("gmail"), 1000);
    save_now(old, 1000);
    for (int i = 0; i < 3; i++) {
        OK(charge(old, 2000 + 1000u * (unsigned)i, 20));
        if (i < 2)
            answer(old, 2010 + 1000u * (unsigned)i, 20, TIDE_OK, 0);
    }
    tide_governor_pause(old, 100000, TIDE_THROTTLED);
    struct tide_governor_saved saved;
    tide_governor_save(old, 5000, 1700000005000, &saved);
    assert_int_equal(saved.window.in_flight, 20);
    tide_governor_free(old);

    tide_buf text = heap_buf(1 << 16);
    OK(tide_governor_saved_print(&saved, &text));
    struct tide_governor_saved read;
    OK(tide_governor_saved_parse(tide_buf_text(&text), &read));
    tide_buf text_again = heap_buf(1 << 16);
    OK(tide_governor_saved_print(&read, &text_again));
    assert_string_equal(tide_buf_cstr(&text), tide_buf_cstr(&text_again));
    tide_buf_done(&text_again);
    tide_buf_done(&text);

    tide_governor *new = governor_of(profile_named("gmail"), 77);
    OK(tide_governor_restore(new, &read, 77, 1700000015000));
    assert_int_equal(view_of(new, 77).window_used, 60 + saved.unrecorded_units);
    assert_int_equal(view_of(new, 77).state, TIDE_GOVERNOR_PAUSED);
    assert_int_equal(view_of(new, 77).until_ms, 77 + 85000);
    assert_true(view_of(new, 77).rate == 80);
    assert_int_equal(charge(new, 85077, 20), TIDE_AGAIN); /* nothing is durable yet */
    save_now(new, 85077);
    OK(charge(new, 85077, 20));
    assert_int_equal(view_of(new, 85077).window_used, 20); /* all else is long over */
    tide_governor_free(new);
}

/* A sign-in that the user fixes before the next start is tried at once; what the
 * provider asked for is kept to. */
TEST(a_restart_forgets_a_pause_for_a_sign_in)
{
    static const struct {
        tide_status why;
        bool kept;
    } rows[] = {{TIDE_AUTH, false}, {TIDE_THROTTLED, true}, {TIDE_SERVER, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_governor *old = governor_of(profile_named("gmail"), 1000);
        tide_governor_pause(old, 301000, rows[i].why);
        struct tide_governor_saved saved;
        tide_governor_save(old, 1000, 1700000001000, &saved);
        tide_governor_free(old);
        tide_governor *new = governor_of(profile_named("gmail"), 77);
        OK(tide_governor_restore(new, &saved, 77, 1700000002000));
        assert_int_equal(view_of(new, 77).state == TIDE_GOVERNOR_RUNNING, !rows[i].kept);
        tide_governor_free(new);
    }
}

CASE(a_damaged_or_newer_snapshot_is_refused, "gmail", 1000)
{
    save_now(governor, 1000);
    OK(charge(governor, 2000, 20));
    answer(governor, 2100, 20, TIDE_OK, 0);
    struct tide_governor_saved saved;
    tide_governor_save(governor, 3000, 1700000003000, &saved);

    tide_buf text = heap_buf(1 << 16);
    OK(tide_governor_saved_print(&saved, &text));
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
            tide_governor *next = governor_of(profile_named("gmail"), 7);
            if (tide_governor_restore(next, &read, 7, 1700000004000) != TIDE_OK)
                assert_int_equal(view_of(next, 7).window_used, 0);
            assert_true(tide_governor_check(next, 7));
            tide_governor_free(next);
        }
        text.data[at] = was;
    }
    text.data[0] = '3';
    assert_int_equal(tide_governor_saved_parse(tide_buf_text(&text), &read), TIDE_NEWER);

    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, 0);
    tide_buf small;
    tide_buf_init(&small, &mem.base, 1 << 16);
    assert_int_equal(tide_governor_saved_print(&saved, &small), TIDE_NO_MEMORY);
    tide_buf_done(&small);
    for (size_t room = 0; room < text.bytes; room++) { /* whole or not at all */
        tide_buf_init(&small, tide_mem_heap(), room + 2);
        OK(tide_buf_print(&small, "ab"));
        assert_int_not_equal(tide_governor_saved_print(&saved, &small), TIDE_OK);
        assert_string_equal(tide_buf_cstr(&small), "ab");
        tide_buf_done(&small);
    }
    tide_buf_done(&text);
}

TEST(every_failed_allocation_is_reported_and_leaks_nothing)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        struct tide_governor_profile profile = *profile_named("gmail");
        profile.learn_bytes_per_day = true;
        tide_governor *governor = NULL;
        const tide_status rc = tide_governor_new(&profile, 0, &mem.base, &governor);
        tide_governor_free(governor);
        assert_swept(mem, rc);
        if (mem.fired)
            assert_null(governor);
    }
}

CASE(numbers_that_no_governor_saved_are_refused, "gmail", 1000)
{
    struct tide_governor_saved good;
    tide_governor_save(governor, 1000, 1700000000000, &good);
    struct tide_governor_saved wrong[9];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        wrong[i] = good;
    wrong[0].unrecorded_units = (uint64_t)UINT32_MAX + 1;
    wrong[1].workers = (uint64_t)UINT32_MAX + 1;
    wrong[2].concurrency = (uint64_t)UINT32_MAX + 1;
    wrong[3].rate_milli = UINT64_MAX;
    wrong[4].window.count = TIDE_WINDOW_SAVED_MAX + 1;
    wrong[5].day.count = TIDE_WINDOW_SAVED_MAX + 1;
    wrong[6].paused_until_unix_ms = 1;
    wrong[7].paused_until_unix_ms = 1;
    wrong[7].paused_why = 1;
    wrong[8].paused_until_unix_ms = 1;
    wrong[8].paused_why = (int64_t)TIDE_BUG - 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tide_governor *next = governor_of(profile_named("gmail"), 1000);
        assert_int_equal(tide_governor_restore(next, &wrong[i], 1000, 1700000000000), TIDE_CORRUPT);
        assert_int_equal(view_of(next, 1000).window_used, 0);
        tide_governor_free(next);
    }
}

/* A wall clock that was set back by a year must not lock the account for one. */
TEST(a_restored_pause_ends_within_a_day)
{
    tide_governor *old = governor_of(profile_named("gmail"), 1000);
    tide_governor_pause(old, 61000, TIDE_THROTTLED);
    struct tide_governor_saved saved;
    tide_governor_save(old, 1000, 1700000000000, &saved);
    tide_governor *new = governor_of(profile_named("gmail"), 1000);
    OK(tide_governor_restore(new, &saved, 1000, 1600000000000));
    assert_int_equal(view_of(new, 1000).until_ms, 1000 + 86400000);
    tide_governor_free(new);
    tide_governor_free(old);
}

TEST(a_learned_quota_of_bytes_survives)
{
    tide_governor *old = governor_of(profile_named("onedrive"), 0);
    tide_rng rng = tide_rng_seeded(1);
    struct tide_answer fact = {.units = 1, .latency_ms = 10, .http = 200, .bytes = 5000};
    OK(charge(old, 1000, 1));
    tide_governor_answered(old, 1010, &fact, &rng);
    OK(charge(old, 2000, 1));
    fact = (struct tide_answer){.units = 1,
                                .latency_ms = 10,
                                .status = TIDE_THROTTLED,
                                .http = 509,
                                .refusal = TIDE_REFUSAL_BYTES};
    tide_governor_answered(old, 2010, &fact, &rng);
    struct tide_governor_saved saved;
    tide_governor_save(old, 3000, 1700000000000, &saved);
    tide_governor *new = governor_of(profile_named("onedrive"), 77);
    OK(tide_governor_restore(new, &saved, 77, 1700000001000));
    assert_int_equal(view_of(new, 77).day_bytes, 5000);
    assert_int_equal(view_of(new, 77).day_bytes_max, 5001);
    tide_governor_free(new);
    tide_governor_free(old);
}

/* Without a window nothing but a pause has to outlive the process. */
CASE(a_pause_is_saved_at_once_and_the_next_one_at_the_interval, "default", 1000)
{
    assert_true(tide_governor_save_at_ms(governor) == UINT64_MAX);
    tide_governor_pause(governor, 9000, TIDE_NETWORK);
    assert_int_equal(tide_governor_save_at_ms(governor), 0);
    save_now(governor, 1000);
    assert_true(tide_governor_save_at_ms(governor) == UINT64_MAX);
    tide_governor_pause(governor, 10000, TIDE_NETWORK);
    assert_int_equal(tide_governor_save_at_ms(governor), 1500);
    struct tide_governor_saved saved;
    tide_governor_save(governor, 1500, 1700000000000, &saved);
    tide_governor *next = governor_of(profile_named("default"), 77);
    OK(tide_governor_restore(next, &saved, 77, 1700000000000));
    assert_int_equal(view_of(next, 77).until_ms, 77 + 8500);
    tide_governor_free(next);
}

/* Version 1 did not save the time since the boot: the wall clock is the bound. */
CASE(a_snapshot_of_version_1_is_read, "gmail", 900000)
{
    struct tide_governor_saved saved;
    OK(tide_governor_saved_parse(
        TIDE_TEXT("1 1700000000000 200 80000 8 0 0 0 0 20 1 1700000050000 40 0 0"), &saved));
    assert_int_equal(saved.at_unix_ms, 1700000000000);
    assert_int_equal(saved.at_ms, 0);
    assert_int_equal(saved.unrecorded_units, 200);
    OK(tide_governor_restore(governor, &saved, 900000, 1700000030000));
    assert_int_equal(view_of(governor, 900000).window_used, 260);
    assert_int_equal(view_of(governor, 921000).window_used, 220);
}

/* Units are forgotten when the provider's minute is over, and not when a user sets the
 * wall clock between two runs (E4.3b). */
TEST(a_wall_clock_set_between_two_runs_forgets_no_units)
{
    enum { SAVED = 1000000, HOUR = 3600000 };
    static const struct {
        uint64_t now_ms;  /* at the restore; the snapshot was taken at SAVED */
        int64_t wall_ms;  /* since the snapshot, by the wall clock */
        uint64_t left_ms; /* how long the units still count; 0: no more */
    } rows[] = {
        {SAVED + 20000, 20000, 40000},        /* a right clock */
        {SAVED + 20000, HOUR, 40000},         /* set forward */
        {SAVED + 20000, -HOUR, 60000},        /* set back */
        {SAVED + 70000, 70000, 0},            /* long over */
        {10000, HOUR, 50000},                 /* rebooted: ten seconds have surely passed */
        {70000, HOUR, 0},                     /* rebooted a while ago */
        {SAVED + 5000, HOUR, 55000},          /* perhaps rebooted; unknown */
        {SAVED + 24ull * HOUR, 20000, 40000}, /* another machine, which ran for longer */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_governor *old = governor_of(profile_named("gmail"), SAVED - 100);
        save_now(old, SAVED - 100);
        OK(charge(old, SAVED - 50, 20));
        answer(old, SAVED, 20, TIDE_OK, 0);
        struct tide_governor_saved saved;
        tide_governor_save(old, SAVED, 1700000000000, &saved);
        tide_governor_free(old);

        const uint64_t now_ms = rows[i].now_ms;
        tide_governor *new = governor_of(profile_named("gmail"), now_ms);
        OK(tide_governor_restore(new, &saved, now_ms, (uint64_t)(1700000000000 + rows[i].wall_ms)));
        const uint64_t promised = saved.unrecorded_units;
        if (rows[i].left_ms == 0) {
            assert_int_equal(view_of(new, now_ms).window_used, promised);
        } else { /* by a grain and the drift later */
            const uint64_t until_ms = now_ms + rows[i].left_ms;
            assert_int_equal(view_of(new, until_ms).window_used, promised + 20);
            assert_int_equal(view_of(new, until_ms + 250).window_used, promised);
        }
        tide_governor_free(new);
    }
}
