/* A crash ends every wait, and comes when it was planned. */
#include "sim_world_fixture.h"

TEST(a_crash_ends_every_wait)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct shared shared;
        shared_init(&shared, seed, NULL);
        tide_world *world = shared.world;
        tide_thread *threads[4];
        for (int i = 0; i < 4; i++)
            threads[i] = start(&shared, "waiter", i < 2 ? wait_for_go : sleep_long, &shared);
        let_them_run(&shared);
        uint64_t before_us = tide_world_now_us(world);
        tide_sim_crash(shared.sim, TIDE_SIM_CRASH_SEEDED);
        assert_true(tide_world_dead(world));
        for (int i = 0; i < 4; i++)
            tide_world_join(world, threads[i]);
        assert_int_equal(shared.stopped, 4);
        assert_int_equal(tide_world_sleep_until(world, 0, NULL), TIDE_STOPPED);
        tide_thread *none = NULL;
        assert_int_equal(tide_world_thread(world, "late", beat_on, &shared, &none, NULL),
                         TIDE_STOPPED);
        assert_null(none);

        tide_sim_reboot(shared.sim);
        assert_false(tide_world_dead(world));
        assert_int_equal(tide_sim_life(shared.sim), 2);
        assert_true(tide_world_now_us(world) > before_us + 5000);
        tide_cancel none_yet = {0};
        assert_int_equal(tide_world_sleep_until(world, 0, &none_yet), TIDE_OK);
        shared_done(&shared);
    }
}

TEST(a_planned_crash_comes_at_its_step)
{
    for (uint64_t step = 50; step < 80; step++) {
        const struct tide_sim_options options = {.crash_at_step = step, .unfair = step % 2 == 0};
        struct shared shared;
        shared_init(&shared, 9, &options);
        while (!tide_world_dead(shared.world)) {
            tide_lock_take(shared.world, shared.lock);
            tide_lock_drop(shared.world, shared.lock);
        }
        assert_int_equal(tide_sim_stats(shared.sim).steps, step + step % 2);
        tide_sim_reboot(shared.sim);
        tide_sim_crash_after(shared.sim, 10, TIDE_SIM_CRASH_KILL);
        uint64_t from = tide_sim_stats(shared.sim).steps;
        while (!tide_world_dead(shared.world))
            (void)tide_world_sleep_until(shared.world, 0, NULL);
        assert_int_equal(tide_sim_stats(shared.sim).steps, from + 10);
        shared_done(&shared);
    }
}
