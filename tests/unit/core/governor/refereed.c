/* Whole hours under a referee on its own clock. */
#include "governor_fixture.h"

#include "unit/core/referee.h"

static const struct referee_options an_hour = {
    .seed = 1, .duration_ms = 3600000, .limit_units = 6000, .call_units = 20, .level = 4};

TEST(over_an_hour_97_percent_is_used_and_no_window_is_crossed)
{
    for (uint64_t seed = 1; seed <= scaled(10); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        const struct referee_report report = referee_run(profile_named("gmail"), &options);
        print_message("seed %u: %.2f %% used\n", (unsigned)seed, report.share * 100);
        assert_true(report.share >= 0.97);
        assert_int_equal(report.crossed, 0);
        assert_true((double)report.refused < 0.001 * (double)report.calls);
        assert_in_range(report.in_flight_peak, 2, 10);
        assert_in_range(report.six_seconds_peak, 400, 720); /* paced */
    }
}

/* The reserve would hide a small error: here nothing is held back. */
TEST(without_a_reserve_still_no_window_is_crossed)
{
    struct tide_governor_profile profile = *profile_named("gmail");
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

TEST(killed_again_and_again_it_crosses_no_window)
{
    static const uint32_t every_ms[] = {60000, 20000, 5000, 500};
    struct tide_governor_profile profile = *profile_named("gmail");
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

/* Time between two lives is what the clock of the machine says, whatever the wall clock was
 * set to, and no more than the time since the boot if it rebooted (E4.3b). */
TEST(killed_while_the_wall_clock_is_set_it_crosses_no_window)
{
    static const uint32_t every_ms[] = {120000, 60000, 20000};
    struct tide_governor_profile profile = *profile_named("gmail");
    profile.reserve_permille = 0;
    for (uint64_t seed = 1; seed <= scaled(12); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.kill_every_ms = every_ms[seed % 3];
        options.wall_jumps = true;
        const struct referee_report report = referee_run(&profile, &options);
        print_message("seed %u: killed %u times, %.2f %% used, %u windows crossed\n",
                      (unsigned)seed, (unsigned)report.lives, report.share * 100,
                      (unsigned)report.crossed);
        assert_int_equal(report.crossed, 0);
    }
}

TEST(after_a_storm_of_refusals_the_pace_is_back_within_a_minute)
{
    for (uint64_t seed = 1; seed <= scaled(20); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.duration_ms = 600000;
        options.storm_from_ms = 240000;
        options.storm_to_ms = 300000;
        options.storm_names_ms = seed % 2 ? 0 : 20000;
        const struct referee_report report = referee_run(profile_named("gmail"), &options);
        print_message("seed %u: back after %.1f s, %u calls refused\n", (unsigned)seed,
                      (double)report.recovered_ms / 1000, (unsigned)report.storm_calls);
        assert_in_range(report.recovered_ms, 1, 60000);
        assert_true(report.units_after_storm >= 5400);
        assert_int_equal(report.crossed, 0);
        assert_in_range(report.storm_calls, 1, 40); /* one probe, not a thousand retries */
    }
}

TEST(a_click_does_not_wait_for_the_backfill)
{
    for (uint64_t seed = 1; seed <= scaled(5); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.clicks_every_ms = 11000; /* six a minute at most: the reserve */
        const struct referee_report report = referee_run(profile_named("gmail"), &options);
        print_message("seed %u: %u clicks waited at most %u ms\n", (unsigned)seed,
                      (unsigned)report.clicks, (unsigned)report.click_wait_ms_max);
        assert_true(report.clicks > 300);
        assert_in_range(report.click_wait_ms_max, 0, 50);
        assert_int_equal(report.crossed, 0);
        assert_true(report.share >= 0.97);
    }
}

/* A drive's limit that nobody told us: what its refusals name is obeyed by every call, most of the
 * limit is used, and few calls are spent on being refused (they count). */
TEST(an_unknown_limit_is_used_and_its_refusals_are_obeyed)
{
    for (uint64_t seed = 1; seed <= scaled(5); seed++) {
        struct referee_options options = an_hour;
        options.seed = seed;
        options.limit_units = 1250;
        options.call_units = 2;
        options.names_room = true;
        options.by_jobs = true;
        const struct referee_report report = referee_run(profile_named("onedrive"), &options);
        print_message("seed %u: %.1f %% used, %u of %u calls refused\n", (unsigned)seed,
                      report.share * 100, (unsigned)report.refused, (unsigned)report.calls);
        assert_int_equal(report.early, 0);
        assert_true(report.share >= 0.8);
        assert_true((double)report.refused < 0.06 * (double)report.calls);
        assert_in_range(report.in_flight_peak, 8, 32);

        struct tide_governor_profile told = *profile_named("onedrive");
        told.window_ms = 60000;
        told.window_units_max = 1250;
        const struct referee_report known = referee_run(&told, &options);
        assert_int_equal(known.crossed, 0);
        assert_true(known.share >= 0.97);
    }
}

/* A referee that never complains proves nothing. */
TEST(the_referee_notices_a_quota_that_is_smaller_than_believed)
{
    struct referee_options options = an_hour;
    options.limit_units = 5800;
    const struct referee_report report = referee_run(profile_named("gmail"), &options);
    assert_true(report.crossed > 0);
}
