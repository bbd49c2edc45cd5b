/* Halt, pause, new settings (E4.6, E7.2, E11). */
#include "governor_fixture.h"
#include "support/ok.h"

CASE(a_halt_stops_everything_with_its_reason_until_resumed, "default", 0)
{
    OK(charge(governor, 1000, 1));
    tide_governor_halt(governor, "a suspected systemic failure");
    assert_int_equal(charge(governor, 2000, 1), TIDE_STOPPED);
    assert_true(tide_governor_wake_at_ms(governor, 2000) == UINT64_MAX);
    assert_int_equal(view_of(governor, 2000).state, TIDE_GOVERNOR_HALTED);
    assert_string_equal(view_of(governor, 2000).reason, "a suspected systemic failure");
    answer(governor, 2000, 1, TIDE_OK, 0); /* nothing in flight is lost */
    tide_governor_resume(governor, 3000);
    OK(charge(governor, 3000, 1));
}

CASE(a_pause_for_a_shared_cause_is_one_block_with_one_probe, "default", 1000)
{
    tide_governor_pause(governor, 9000, TIDE_DISK_FULL);
    tide_governor_pause(governor, 5000, TIDE_NETWORK); /* an earlier end is ignored */
    assert_int_equal(view_of(governor, 2000).state, TIDE_GOVERNOR_PAUSED);
    assert_int_equal(view_of(governor, 2000).why, TIDE_DISK_FULL);
    assert_int_equal(charge(governor, 8999, 1), TIDE_AGAIN);
    OK(charge(governor, 9000, 1));
    assert_int_equal(charge(governor, 9000, 1), TIDE_AGAIN);
    answer(governor, 9100, 1, TIDE_NETWORK, 0);
    assert_int_equal(view_of(governor, 9100).state, TIDE_GOVERNOR_PAUSED);
    assert_in_range(view_of(governor, 9100).until_ms, 9600, 10101);
}

TEST(settings_change_while_it_runs)
{
    struct tide_governor_profile profile = *profile_named("gmail");
    tide_governor *governor = governor_of(&profile, 0);
    profile.share_permille = 500;
    OK(tide_governor_limits_set(governor, &profile));
    assert_int_equal(view_of(governor, 0).window_max, 3000);
    assert_true(view_of(governor, 0).rate_max == 50);
    assert_true(view_of(governor, 0).rate == 50);
    profile.window_ms = 1000;
    assert_int_equal(tide_governor_limits_set(governor, &profile), TIDE_INVALID);
    profile.window_ms = 60000;
    profile.learn_bytes_per_day = !profile.learn_bytes_per_day;
    assert_int_equal(tide_governor_limits_set(governor, &profile), TIDE_INVALID);
    profile.learn_bytes_per_day = !profile.learn_bytes_per_day;
    profile.rate_min = 1000;
    assert_int_equal(tide_governor_limits_set(governor, &profile), TIDE_INVALID);
    assert_int_equal(view_of(governor, 0).window_max, 3000);
    tide_governor_free(governor);
}

/* Only what a sign-in fixes ends with it (E7.2). */
CASE(a_sign_in_ends_a_pause_for_want_of_one_and_no_other, "default", 1000)
{
    assert_false(tide_governor_signed_in(governor, 1000));
    tide_governor_pause(governor, 9000, TIDE_NETWORK);
    assert_false(tide_governor_signed_in(governor, 2000));
    assert_int_equal(view_of(governor, 2000).state, TIDE_GOVERNOR_PAUSED);
    tide_governor_pause(governor, 99000, TIDE_AUTH);
    assert_int_equal(charge(governor, 3000, 1), TIDE_AGAIN);
    assert_true(tide_governor_signed_in(governor, 3000));
    assert_int_equal(view_of(governor, 3000).state, TIDE_GOVERNOR_RUNNING);
    OK(charge(governor, 3000, 1));
}
