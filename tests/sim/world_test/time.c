/* Time passes as requested, and threads wait for it. */
#include "sim_world_fixture.h"

TEST(days_of_sleep_take_no_time)
{
    tide_sim *sim = tide_sim_new(1, NULL);
    tide_world *world = tide_sim_world(sim);
    const uint64_t day_us = 86400ull * 1000 * 1000;
    uint64_t start_us = tide_world_now_us(world);
    uint64_t start_ms = tide_world_now_unix_ms(world);
    for (uint64_t day = 1; day <= 1000; day++)
        assert_int_equal(tide_world_sleep_until(world, start_us + day * day_us, NULL), TIDE_OK);
    assert_in_range(tide_world_now_us(world) - start_us, 1000 * day_us, 1000 * day_us + 1000);
    assert_in_range(tide_world_now_unix_ms(world) - start_ms, 86400ull * 1000 * 1000,
                    86400ull * 1000 * 1000 + 1);
    tide_sim_free(sim);
}

TEST(the_wall_clock_jumps_alone)
{
    tide_sim *sim = tide_sim_new(1, NULL);
    tide_world *world = tide_sim_world(sim);
    uint64_t mono_us = tide_world_now_us(world);
    uint64_t wall_ms = tide_world_now_unix_ms(world);
    tide_sim_wall_jump(sim, -3600 * 1000);
    assert_in_range(tide_world_now_unix_ms(world), wall_ms - 3600 * 1000, wall_ms - 3599 * 1000);
    assert_in_range(tide_world_now_us(world), mono_us, mono_us + 100);
    tide_sim_pause(sim, 7200ull * 1000 * 1000);
    assert_true(tide_world_now_us(world) >= mono_us + 7200ull * 1000 * 1000);
    assert_in_range(tide_world_now_unix_ms(world), wall_ms + 3600 * 1000,
                    wall_ms + 3600 * 1000 + 1000);
    tide_sim_free(sim);
}

TEST(seeded_pauses_and_jumps_happen)
{
    const struct tide_sim_options options = {
        .pause_every_steps = 300, .wall_jump_every_steps = 300, .hiccup_every_steps = 50};
    struct shared shared;
    shared_init(&shared, 11, &options);
    tide_thread *a = start(&shared, "a", count_up, &shared);
    tide_thread *b = start(&shared, "b", count_up, &shared);
    tide_world_join(shared.world, a);
    tide_world_join(shared.world, b);
    struct tide_sim_stats stats = tide_sim_stats(shared.sim);
    assert_true(stats.pauses > 0);
    assert_true(stats.wall_jumps > 0);
    assert_true(stats.hiccups > 0);
    /* and stop when faults are switched off */
    tide_sim_faults(shared.sim, false);
    a = start(&shared, "a", count_up, &shared);
    tide_world_join(shared.world, a);
    assert_int_equal(tide_sim_stats(shared.sim).pauses, stats.pauses);
    assert_int_equal(tide_sim_stats(shared.sim).hiccups, stats.hiccups);
    shared_done(&shared);
}

TEST(a_frozen_thread_stands_still_while_others_run)
{
    struct shared shared;
    shared_init(&shared, 2, NULL);
    tide_thread *thread = start(&shared, "left.beat", beat_on, &shared);
    let_them_run(&shared);
    tide_sim_freeze(shared.sim, "left.", 3600ull * 1000 * 1000);
    uint64_t before = shared.count;
    (void)tide_world_sleep_until(shared.world,
                                 tide_world_now_us(shared.world) + 3500ull * 1000 * 1000, NULL);
    assert_in_range(shared.count, before, before + 1);
    (void)tide_world_sleep_until(shared.world,
                                 tide_world_now_us(shared.world) + 200ull * 1000 * 1000, NULL);
    assert_true(shared.count > before + 50);
    shared.go = true;
    tide_world_join(shared.world, thread);
    shared_done(&shared);
}

TEST(cancelling_wakes_a_sleeper_at_once)
{
    struct shared shared;
    shared_init(&shared, 2, NULL);
    tide_thread *thread = start(&shared, "sleeper", sleep_long, &shared);
    let_them_run(&shared);
    uint64_t before_us = tide_world_now_us(shared.world);
    tide_world_cancel(shared.world, &shared.cancel, TIDE_CANCEL_PREEMPT);
    tide_world_cancel(shared.world, &shared.cancel, TIDE_CANCEL_STOP);
    tide_world_join(shared.world, thread);
    assert_int_equal(shared.woken, 1);
    assert_int_equal(tide_canceled(&shared.cancel), TIDE_CANCEL_PREEMPT);
    assert_true(tide_world_now_us(shared.world) - before_us < 1000);
    shared_done(&shared);
}
