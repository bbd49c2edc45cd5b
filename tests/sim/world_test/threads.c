/* Threads, locks, conditions. */
#include "sim_world_fixture.h"

/* Read, give others a chance, write: only exclusion makes the sum come out. */
TEST(a_lock_admits_one_thread_at_a_time)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct shared shared;
        const struct tide_sim_options options = {.unfair = seed % 2 == 0};
        shared_init(&shared, seed, &options);
        tide_thread *threads[COUNTERS];
        for (int i = 0; i < COUNTERS; i++)
            threads[i] = start(&shared, "counter", count_up, &shared);
        for (int i = 0; i < COUNTERS; i++)
            tide_world_join(shared.world, threads[i]);
        assert_int_equal(shared.count, COUNTERS * ROUNDS);
        assert_true(tide_sim_stats(shared.sim).switches > 100);
        shared_done(&shared);
    }
}

TEST(wake_one_wakes_one_and_wake_all_wakes_all)
{
    struct shared shared;
    shared_init(&shared, 7, NULL);
    tide_thread *threads[COUNTERS];
    for (int i = 0; i < COUNTERS; i++)
        threads[i] = start(&shared, "waiter", wait_for_go, &shared);
    let_them_run(&shared);
    assert_int_equal(shared.waiting, COUNTERS);
    assert_int_equal(shared.woken, 0);

    tide_lock_take(shared.world, shared.lock);
    shared.go = true;
    tide_lock_drop(shared.world, shared.lock);
    tide_cond_wake_one(shared.world, shared.cond);
    let_them_run(&shared);
    assert_int_equal(shared.woken, 1);

    /* All are woken, the first takes the permission away again. */
    shared.go = true;
    tide_cond_wake_all(shared.world, shared.cond);
    let_them_run(&shared);
    assert_int_equal(shared.woken, 2);
    for (int i = 2; i < COUNTERS; i++) {
        shared.go = true;
        tide_cond_wake_all(shared.world, shared.cond);
        let_them_run(&shared);
    }
    for (int i = 0; i < COUNTERS; i++)
        tide_world_join(shared.world, threads[i]);
    assert_int_equal(shared.woken, COUNTERS);
    shared_done(&shared);
}

TEST(a_wait_ends_at_its_deadline)
{
    struct shared shared;
    shared_init(&shared, 3, NULL);
    uint64_t start_us = tide_world_now_us(shared.world);
    tide_lock_take(shared.world, shared.lock);
    assert_int_equal(
        tide_cond_wait(shared.world, shared.cond, shared.lock, start_us + 5 * 1000 * 1000),
        TIDE_TIMEOUT);
    tide_lock_drop(shared.world, shared.lock);
    uint64_t waited_us = tide_world_now_us(shared.world) - start_us;
    assert_in_range(waited_us, 5 * 1000 * 1000, 5 * 1000 * 1000 + 1000);
    shared_done(&shared);
}

TEST(waits_may_end_for_no_reason)
{
    struct shared shared;
    const struct tide_sim_options options = {.spurious_permille = 500};
    shared_init(&shared, 5, &options);
    uint32_t for_no_reason = 0;
    tide_lock_take(shared.world, shared.lock);
    for (int i = 0; i < 100; i++) {
        uint64_t until_us = tide_world_now_us(shared.world) + 1000;
        for_no_reason +=
            tide_cond_wait(shared.world, shared.cond, shared.lock, until_us) == TIDE_OK;
    }
    tide_lock_drop(shared.world, shared.lock);
    assert_in_range(for_no_reason, 20, 80);
    assert_int_equal(for_no_reason, tide_sim_stats(shared.sim).spurious);
    shared_done(&shared);
}
