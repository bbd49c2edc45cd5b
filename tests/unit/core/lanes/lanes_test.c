/* Lanes (E3): which job is next, which workers a lane has, starvation bounds under floods, and every
 * allocation failing in turn. */
#include "lanes_fixture.h"

#include "base/limits.h"

CASE(higher_priority_goes_first_and_older_within_it, 16, 2, 2)
{
    want(lanes, job(3, B, 1, 30));
    want(lanes, job(2, B, 2, 30));
    want(lanes, job(4, B, 3, 50));
    want(lanes, job(1, B, 1, 5));
    tide_lanes_priority(lanes, 1, 40);
    const uint64_t order[] = {4, 1, 2, 3};
    for (int i = 0; i < 4; i++)
        assert_int_equal(claim(lanes), order[i]);
    assert_int_equal(claim(lanes), 0);
    hold(lanes, job(3, B, 1, 30));
    hold(lanes, job(4, B, 3, 50));
    hold(lanes, job(2, B, 2, 30));
    assert_int_equal(start(lanes), 4);
    assert_int_equal(start(lanes), 2);
    assert_int_equal(start(lanes), 3);
    assert_int_equal(start(lanes), 0);
    assert_int_equal(tide_lanes_running(lanes, B), 3);
    assert_true(tide_lanes_check(lanes));
}

CASE(each_lane_keeps_its_reserved_workers, 8, 2, 3)
{
    for (uint64_t id = 1; id <= 20; id++) {
        hold(lanes, job(id, I, 1, 90));
        hold(lanes, job(100 + id, B, 2, 5));
    }
    while (start(lanes) != 0)
        ;
    assert_int_equal(tide_lanes_running(lanes, I), 5); /* 8 - 3, shared ones prefer it */
    assert_int_equal(tide_lanes_running(lanes, B), 3);
    assert_int_equal(preempt(lanes), 0);
    assert_int_equal(tide_lanes_explain(lanes, 20), TIDE_WHY_LANE_FULL);
}

CASE(only_preemptible_jobs_borrow_and_only_from_an_empty_lane, 4, 1, 1)
{
    for (uint64_t id = 1; id <= 5; id++) {
        struct tide_brief fixed = job(id, B, 1, 50);
        fixed.preemptible = false;
        hold(lanes, fixed);
    }
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(start(lanes), 0);
    assert_int_equal(start(lanes), 0); /* the fourth worker is interactive's */
    assert_int_equal(tide_lanes_explain(lanes, 4), TIDE_WHY_LANE_FULL);
    hold(lanes, job(9, B, 1, 5)); /* lower, but it may be put back */
    assert_int_equal(start(lanes), 9);
    assert_int_equal(preempt(lanes), 0);
    /* Work arrives in the empty lane: its worker comes back. */
    want(lanes, job(20, I, 2, 60));
    assert_int_equal(claim(lanes), 20);
    assert_int_equal(preempt(lanes), 9);
    assert_int_equal(preempt(lanes), 0); /* named once */
    tide_lanes_left(lanes, 9);
    want(lanes, job(9, B, 1, 5));
    hold(lanes, job(20, I, 2, 60));
    assert_int_equal(start(lanes), 20);
    assert_int_equal(start(lanes), 0);
    assert_true(tide_lanes_check(lanes));
}

CASE(a_blocked_account_costs_the_others_nothing, 16, 2, 2)
{
    OK(tide_lanes_admit(lanes, 1, 0));
    for (uint64_t id = 1; id <= 500; id++)
        want(lanes, job(id, B, 1, 99));
    want(lanes, job(900, B, 2, 1));
    assert_int_equal(claim(lanes), 900);
    assert_int_equal(claim(lanes), 0);
    assert_int_equal(tide_lanes_explain(lanes, 1), TIDE_WHY_ACCOUNT_FULL);
    OK(tide_lanes_admit(lanes, 1, 2));
    assert_int_equal(claim(lanes), 1);
    assert_int_equal(claim(lanes), 2);
    assert_int_equal(claim(lanes), 0);
    hold(lanes, job(1, B, 1, 99));
    hold(lanes, job(2, B, 1, 99));
    assert_int_equal(start(lanes), 1);
    /* Halted between claim and start: what is held stays where it is, and does
     * not count against what may be claimed for others. */
    OK(tide_lanes_admit(lanes, 1, 0));
    assert_int_equal(start(lanes), 0);
    OK(tide_lanes_admit(lanes, 1, TIDE_ADMIT_ALL));
    assert_int_equal(start(lanes), 2);
    assert_true(tide_lanes_check(lanes));
}

CASE(claims_run_ahead_of_the_workers_by_what_was_allowed, 4, 1, 1)
{
    uint64_t id = 0;
    for (id = 1; id <= 50; id++) {
        want(lanes, job(id, I, 1, 30));
        want(lanes, job(100 + id, B, 1, 30));
    }
    int claims[2] = {0, 0};
    while (tide_lanes_next_claim(lanes, 5, &id))
        claims[id > 100]++;
    assert_int_equal(claims[0], 3 + 5); /* four workers, one of them bulk's */
    assert_int_equal(claims[1], 3 + 5);
}

CASE(with_one_worker_neither_lane_starves, 1, 2, 2)
{
    for (uint64_t id = 1; id <= 100; id++) {
        hold(lanes, job(id, I, 1, 90));
        hold(lanes, job(200 + id, B, 1, 5));
    }
    int bulk = 0;
    for (int i = 0; i < 90; i++) {
        uint64_t id = start(lanes);
        assert_int_not_equal(id, 0);
        assert_int_equal(start(lanes), 0);
        bulk += id > 200;
        tide_lanes_left(lanes, id);
    }
    assert_int_equal(bulk, 10);
}

TEST(odd_input_is_refused)
{
    tide_lanes *lanes = NULL;
    struct tide_lanes_limits limits = {4, {2, 2}};
    assert_int_equal(tide_lanes_new(&limits, 9, tide_mem_heap(), &lanes), TIDE_INVALID);
    limits = (struct tide_lanes_limits){TIDE_WORKERS_MAX + 1, {1, 1}};
    assert_int_equal(tide_lanes_new(&limits, 9, tide_mem_heap(), &lanes), TIDE_INVALID);
    limits = (struct tide_lanes_limits){4, {1, 1}};
    assert_int_equal(tide_lanes_new(&limits, 0, tide_mem_heap(), &lanes), TIDE_INVALID);
    OK(tide_lanes_new(&limits, 2, tide_mem_heap(), &lanes));
    struct tide_brief brief = job(1, I, 1, 30);
    brief.level = 0;
    assert_int_equal(tide_lanes_wanted(lanes, &brief), TIDE_INVALID);
    brief.level = 5;
    assert_int_equal(tide_lanes_wanted(lanes, &brief), TIDE_INVALID);
    brief = job(0, I, 1, 30);
    assert_int_equal(tide_lanes_wanted(lanes, &brief), TIDE_INVALID);
    brief = job(1, 2, 1, 30);
    assert_int_equal(tide_lanes_wanted(lanes, &brief), TIDE_INVALID);
    brief = job(1, I, 1, 101);
    assert_int_equal(tide_lanes_held(lanes, &brief), TIDE_INVALID);
    want(lanes, job(1, I, 1, 30));
    hold(lanes, job(2, I, 1, 30));
    brief = job(1, I, 1, 30);
    assert_int_equal(tide_lanes_wanted(lanes, &brief), TIDE_EXISTS);
    brief = job(2, I, 1, 30);
    assert_int_equal(tide_lanes_held(lanes, &brief), TIDE_EXISTS);
    brief = job(3, I, 1, 30);
    assert_int_equal(tide_lanes_wanted(lanes, &brief), TIDE_FULL);
    tide_lanes_left(lanes, 77);
    tide_lanes_priority(lanes, 77, 100);
    tide_lanes_priority(lanes, 2, 100); /* claimed: its turn is decided */
    assert_int_equal(start(lanes), 2);
    brief = job(2, I, 1, 30);
    assert_int_equal(tide_lanes_held(lanes, &brief), TIDE_EXISTS); /* it runs */
    OK(tide_lanes_admit(lanes, 0, 1));                             /* no account: always all */
    assert_int_equal(tide_lanes_explain(lanes, 77), TIDE_WHY_UNKNOWN);
    assert_int_equal(tide_lanes_waiting(lanes, I), 1);
    tide_lanes_free(lanes);
    tide_lanes_free(NULL);
}

TEST(every_allocation_may_fail)
{
    bool done = false;
    for (uint64_t fail_at = 0; !done; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        struct tide_lanes_limits limits = {4, {1, 1}};
        tide_lanes *lanes = NULL;
        tide_status rc = tide_lanes_new(&limits, 100, &mem.base, &lanes);
        for (uint64_t id = 1; rc == TIDE_OK && id <= 100; id++) {
            struct tide_brief brief = job(id, I, (uint32_t)id, 30);
            rc = tide_lanes_wanted(lanes, &brief);
            if (rc == TIDE_OK)
                continue;
            /* Refused, unchanged, and the next try works. */
            assert_int_equal(rc, TIDE_NO_MEMORY);
            assert_true(tide_lanes_check(lanes));
            assert_int_equal(tide_lanes_waiting(lanes, I), id - 1);
            rc = tide_lanes_wanted(lanes, &brief);
        }
        if (rc == TIDE_OK)
            for (uint64_t id = 1; id <= 100; id++)
                tide_lanes_left(lanes, id);
        done = !mem.fired;
        assert_true(rc == TIDE_OK || (mem.fired && lanes == NULL));
        tide_lanes_free(lanes);
        assert_int_equal(mem.bytes_live, 0);
    }
}

CASE(accounts_come_and_go_beyond_the_table, 4, 1, 1)
{
    want(lanes, job(1000000, I, 99998, 0)); /* its account is never forgotten */
    for (uint32_t account = 1; account <= 3 * TIDE_ACCOUNTS_MAX; account++) {
        want(lanes, job(account, I, account, 30));
        assert_int_equal(claim(lanes), account);
        tide_lanes_left(lanes, account);
    }
    assert_int_equal(claim(lanes), 1000000);
    for (uint32_t account = 1; account <= TIDE_ACCOUNTS_MAX; account++)
        OK(tide_lanes_admit(lanes, account, 1));
    assert_int_equal(tide_lanes_admit(lanes, 99999, 1), TIDE_FULL);
    assert_true(tide_lanes_check(lanes));
}

/* A flood in one lane, one job in the other, whose account is one of the
 * flood's or not: it runs after at most one round of the workers. */
TEST(a_flood_in_one_lane_delays_the_other_by_one_round_at_most)
{
    for (int flood = 0; flood < 2; flood++) {
        tide_lanes *lanes = lanes_of(16, 2, 2);
        uint64_t next_id = 1;
        uint64_t running[16];
        int count = 0;
        for (int round = 0; round < 200; round++) {
            while (tide_lanes_waiting(lanes, (tide_lane)flood) < 100) {
                uint64_t id = next_id++;
                struct tide_brief brief = job(id, flood, (uint32_t)id % 3, 99);
                brief.preemptible = id % 2 == 0;
                want(lanes, brief);
            }
            uint64_t lone = next_id++;
            if (round >= 2)
                want(lanes, job(lone, 1 - flood, 1, 1));
            bool ran = false;
            for (int step = 0; step < 2; step++) {
                uint64_t id = 0;
                while ((id = preempt(lanes)) != 0) {
                    for (int i = 0; i < count; i++)
                        if (running[i] == id)
                            running[i] = running[--count];
                    tide_lanes_left(lanes, id);
                }
                while ((id = claim(lanes)) != 0)
                    hold(lanes, job(id, 0, 0, 0)); /* it is known: only the id counts */
                while ((id = start(lanes)) != 0) {
                    running[count++] = id;
                    ran = ran || id == lone;
                }
            }
            assert_true(ran || round < 2);
            /* Some end, the lone one among them, in an order of no meaning. */
            for (int i = count - 1; i >= 0; i--)
                if (running[i] == lone || (running[i] + (uint64_t)round) % 3 == 0) {
                    tide_lanes_left(lanes, running[i]);
                    running[i] = running[--count];
                }
            assert_true(tide_lanes_check(lanes));
        }
        tide_lanes_free(lanes);
    }
}

/* Limits lowered while jobs run: nothing starts until enough have ended, and
 * nothing breaks. */
CASE(workers_may_be_taken_away_while_jobs_run, 8, 2, 2)
{
    for (uint64_t id = 1; id <= 8; id++)
        hold(lanes, job(id, id % 2 ? I : B, 1, 30));
    for (int i = 0; i < 8; i++)
        assert_int_not_equal(start(lanes), 0);
    struct tide_lanes_limits fewer = {3, {1, 1}};
    tide_lanes_limits_set(lanes, &fewer);
    hold(lanes, job(9, I, 1, 30));
    for (uint64_t id = 1; id <= 5; id++) {
        assert_int_equal(start(lanes), 0);
        tide_lanes_left(lanes, id);
    }
    assert_int_equal(start(lanes), 0); /* 6, 7, 8 still run */
    tide_lanes_left(lanes, 6);
    assert_int_equal(start(lanes), 9);
    assert_true(tide_lanes_check(lanes));
}
