/* Lanes (E3): examples for each rule, a brute-force model that chooses over all
 * jobs, starvation bounds under floods, and every allocation failing in turn. */
#include "base/limits.h"
#include "base/rng.h"
#include "core/lanes.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

#define I TIDE_LANE_INTERACTIVE
#define B TIDE_LANE_BULK

static tide_lanes *lanes_of(uint32_t workers, uint32_t interactive, uint32_t bulk)
{
    struct tide_lanes_limits limits = {workers, {interactive, bulk}};
    tide_lanes *lanes = NULL;
    OK(tide_lanes_new(&limits, 1000, tide_mem_heap(), &lanes));
    return lanes;
}

#define CASE(name, ...) TEST_OF(name, tide_lanes *lanes, lanes_of(__VA_ARGS__), tide_lanes_free)

static struct tide_brief job(uint64_t id, int lane, uint32_t account, uint8_t priority)
{
    return (struct tide_brief){.id = id,
                               .account = account,
                               .priority = priority,
                               .lane = (uint8_t)lane,
                               .level = 4,
                               .preemptible = true};
}

static void want(tide_lanes *lanes, struct tide_brief brief)
{
    OK(tide_lanes_wanted(lanes, &brief));
}

static void hold(tide_lanes *lanes, struct tide_brief brief)
{
    OK(tide_lanes_held(lanes, &brief));
}

/* What comes next, 0: nothing. */
static uint64_t claim(tide_lanes *lanes)
{
    uint64_t id = 0;
    return tide_lanes_next_claim(lanes, 0, &id) ? id : 0;
}

static uint64_t start(tide_lanes *lanes)
{
    uint64_t id = 0;
    return tide_lanes_next_start(lanes, &id) ? id : 0;
}

static uint64_t preempt(tide_lanes *lanes)
{
    uint64_t id = 0;
    return tide_lanes_next_preempt(lanes, &id) ? id : 0;
}

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

CASE(a_parked_job_keeps_its_place_in_the_account, 16, 2, 2)
{
    OK(tide_lanes_admit(lanes, 1, 1));
    hold(lanes, job(1, B, 1, 30));
    assert_int_equal(start(lanes), 1);
    tide_lanes_parked(lanes, 1, true);
    assert_int_equal(tide_lanes_running(lanes, B), 0);
    assert_int_equal(tide_lanes_explain(lanes, 1), TIDE_WHY_UNKNOWN);
    want(lanes, job(2, B, 1, 90));
    assert_int_equal(claim(lanes), 0);
    assert_int_equal(tide_lanes_explain(lanes, 2), TIDE_WHY_ACCOUNT_FULL);
    hold(lanes, job(1, B, 1, 30));
    assert_int_equal(start(lanes), 1);
    tide_lanes_left(lanes, 1);
    assert_int_equal(claim(lanes), 2);
}

CASE(while_a_person_waits_nothing_lower_of_that_account_starts, 16, 2, 2)
{
    hold(lanes, job(1, B, 1, 99)); /* higher priority, but level 4 */
    hold(lanes, job(2, B, 2, 10));
    struct tide_brief person = job(3, I, 1, 50);
    person.level = 1;
    want(lanes, person);
    assert_int_equal(tide_lanes_explain(lanes, 1), TIDE_WHY_LEVEL);
    assert_int_equal(start(lanes), 2); /* other accounts run */
    assert_int_equal(start(lanes), 0);
    assert_int_equal(claim(lanes), 3);
    assert_int_equal(start(lanes), 0); /* being claimed is waiting too */
    hold(lanes, person);
    assert_int_equal(start(lanes), 3);
    assert_int_equal(start(lanes), 1);
}

/* The lower one would spend the units that the person waits for. */
CASE(a_person_without_units_still_has_the_account_alone, 16, 2, 2)
{
    struct tide_brief person = job(1, I, 1, 50);
    person.level = 1;
    hold(lanes, person);
    assert_int_equal(start(lanes), 1);
    tide_lanes_parked(lanes, 1, true);
    hold(lanes, job(2, B, 1, 99));
    want(lanes, job(3, B, 1, 99));
    hold(lanes, job(4, B, 2, 10));
    assert_int_equal(tide_lanes_explain(lanes, 2), TIDE_WHY_LEVEL);
    assert_int_equal(start(lanes), 4); /* other accounts run */
    assert_int_equal(start(lanes), 0);
    assert_int_equal(claim(lanes), 0);
    struct tide_brief other = person;
    other.id = 5;
    hold(lanes, other);
    assert_int_equal(start(lanes), 5); /* its own level runs */
    tide_lanes_charged(lanes, 5);
    hold(lanes, person);
    assert_int_equal(start(lanes), 1);
    assert_int_equal(start(lanes), 0); /* it may be refused again */
    tide_lanes_charged(lanes, 1);
    assert_int_equal(start(lanes), 2);
    tide_lanes_left(lanes, 1);
    tide_lanes_charged(lanes, 1); /* an evicted job may still be in a call */
    assert_true(tide_lanes_check(lanes));
}

CASE(a_person_who_waits_for_something_else_holds_nothing_back, 16, 2, 2)
{
    struct tide_brief person = job(1, I, 1, 50);
    person.level = 1;
    hold(lanes, job(2, B, 1, 10));
    for (int i = 0; i < 2; i++) {
        hold(lanes, person);
        assert_int_equal(start(lanes), 1);
        tide_lanes_parked(lanes, 1, i == 0);
    }
    assert_int_equal(start(lanes), 2); /* it may wait for this very job */
    tide_lanes_left(lanes, 2);
    hold(lanes, person);
    assert_int_equal(start(lanes), 1);
    tide_lanes_parked(lanes, 1, true);
    hold(lanes, job(3, B, 1, 10));
    assert_int_equal(start(lanes), 0);
    tide_lanes_left(lanes, 1); /* canceled */
    assert_int_equal(start(lanes), 3);
    assert_true(tide_lanes_check(lanes));
}

CASE(a_person_passes_held_and_parked_jobs_of_a_full_account, 16, 2, 2)
{
    OK(tide_lanes_admit(lanes, 1, 2));
    hold(lanes, job(1, B, 1, 30));
    assert_int_equal(start(lanes), 1);
    tide_lanes_parked(lanes, 1, true);
    hold(lanes, job(2, B, 1, 30));
    struct tide_brief person = job(3, I, 1, 95);
    person.level = 1;
    want(lanes, person);
    assert_int_equal(claim(lanes), 3);
    hold(lanes, person);
    assert_int_equal(start(lanes), 3);
    assert_int_equal(start(lanes), 0); /* running and parked fill the account */
    tide_lanes_left(lanes, 3);
    assert_int_equal(start(lanes), 2);
    assert_true(tide_lanes_check(lanes));
}

CASE(a_person_takes_the_account_from_running_lower_jobs, 16, 2, 2)
{
    OK(tide_lanes_admit(lanes, 1, 2));
    struct tide_brief fixed = job(1, B, 1, 10);
    fixed.preemptible = false;
    hold(lanes, fixed);
    hold(lanes, job(2, B, 1, 30));
    assert_int_equal(start(lanes), 2);
    assert_int_equal(start(lanes), 1);
    assert_int_equal(preempt(lanes), 0);
    struct tide_brief person = job(3, I, 1, 95);
    person.level = 1;
    want(lanes, person);
    assert_int_equal(claim(lanes), 0); /* the account is full */
    assert_int_equal(preempt(lanes), 2);
    assert_int_equal(preempt(lanes), 0);
    tide_lanes_left(lanes, 2);
    assert_int_equal(claim(lanes), 3);
    hold(lanes, person);
    assert_int_equal(start(lanes), 3);
    /* With room in the account and a free worker no job is preempted. */
    OK(tide_lanes_admit(lanes, 1, 9));
    person.id = 4;
    want(lanes, person);
    assert_int_equal(preempt(lanes), 0);
}

CASE(a_person_takes_a_worker_from_its_own_account, 4, 1, 1)
{
    for (uint64_t id = 1; id <= 3; id++) {
        hold(lanes, job(id, I, 1, 30));
        assert_int_equal(start(lanes), id);
    }
    hold(lanes, job(4, B, 2, 30));
    assert_int_equal(start(lanes), 4);
    struct tide_brief person = job(5, I, 1, 95);
    person.level = 1;
    hold(lanes, person);
    assert_int_equal(start(lanes), 0);
    assert_int_equal(preempt(lanes), 3); /* its own, the last in order */
    tide_lanes_left(lanes, 3);
    assert_int_equal(start(lanes), 5);
}

CASE(of_an_account_one_job_that_runs_alone_runs_at_a_time, 16, 2, 2)
{
    struct tide_brief first = job(1, I, 1, 50);
    struct tide_brief second = job(2, I, 1, 50);
    struct tide_brief other = job(3, I, 2, 50);
    first.alone = second.alone = other.alone = true;
    want(lanes, second);
    want(lanes, first);
    want(lanes, other);
    want(lanes, job(4, B, 1, 30));
    assert_int_equal(claim(lanes), 1); /* equal priorities: the older one */
    hold(lanes, first);
    assert_int_equal(claim(lanes), 3); /* another account does not wait for it */
    hold(lanes, other);
    assert_int_equal(start(lanes), 1);
    assert_int_equal(start(lanes), 3);
    assert_int_equal(claim(lanes), 4); /* nor does one that need not be alone */
    hold(lanes, job(4, B, 1, 30));
    assert_int_equal(start(lanes), 4);
    assert_int_equal(claim(lanes), 0);
    assert_int_equal(preempt(lanes), 0);
    assert_int_equal(tide_lanes_explain(lanes, 2), TIDE_WHY_ORDER);
    tide_lanes_left(lanes, 1);
    assert_int_equal(claim(lanes), 2);
    hold(lanes, second);
    assert_int_equal(start(lanes), 2);
    assert_true(tide_lanes_check(lanes));
}

CASE(a_more_urgent_job_that_runs_alone_preempts_the_other, 16, 2, 2)
{
    struct tide_brief backfill = job(1, I, 1, 50);
    struct tide_brief page = job(2, I, 1, 90);
    struct tide_brief body = job(3, I, 1, 95);
    backfill.alone = page.alone = body.alone = true;
    page.level = body.level = 1;
    hold(lanes, backfill);
    assert_int_equal(start(lanes), 1);
    want(lanes, page);
    assert_int_equal(claim(lanes), 0);
    assert_int_equal(preempt(lanes), 1);
    assert_int_equal(claim(lanes), 2); /* beside the end of the first one */
    hold(lanes, page);
    assert_int_equal(start(lanes), 0);
    tide_lanes_left(lanes, 1);
    want(lanes, backfill);
    assert_int_equal(start(lanes), 2);
    assert_int_equal(preempt(lanes), 0); /* the backfill takes nothing back */
    want(lanes, body);
    assert_int_equal(preempt(lanes), 2); /* of the same level, and higher */
    tide_lanes_left(lanes, 2);
    want(lanes, page);
    assert_int_equal(claim(lanes), 3);
    hold(lanes, body);
    assert_int_equal(start(lanes), 3);
    assert_int_equal(claim(lanes), 0);
    tide_lanes_left(lanes, 3);
    assert_int_equal(claim(lanes), 2);
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

/* ---- jobs that are claimed as they are written ---- */

static struct tide_brief click(uint64_t id, uint32_t account)
{
    struct tide_brief brief = job(id, I, account, 95);
    brief.level = 1;
    brief.alone = true;
    return brief;
}

static bool at_once(tide_lanes *lanes, struct tide_brief brief)
{
    return tide_lanes_at_once(lanes, &brief);
}

CASE(a_click_beside_a_backfill_may_be_claimed_at_once, 8, 2, 2)
{
    for (uint64_t id = 1; id <= 20; id++)
        want(lanes, job(id, B, 1, 50));
    for (int i = 0; i < 6; i++)
        hold(lanes, job(claim(lanes), B, 1, 50));
    for (int i = 0; i < 6; i++)
        assert_int_not_equal(start(lanes), 0);
    assert_true(at_once(lanes, click(21, 1)));
    assert_int_equal(tide_lanes_running(lanes, I), 0); /* nothing starts before it is written */
    assert_int_equal(start(lanes), 0);
    assert_int_equal(claim(lanes), 0); /* LAN4 */
    assert_int_equal(preempt(lanes), 0);
    hold(lanes, click(21, 1));
    assert_int_equal(start(lanes), 21);
    assert_false(at_once(lanes, click(21, 1))); /* it is here */
    assert_true(tide_lanes_check(lanes));
}

CASE(a_job_that_was_not_written_after_all_leaves_no_trace, 8, 2, 2)
{
    hold(lanes, job(1, B, 1, 50));
    assert_true(at_once(lanes, click(2, 1)));
    assert_int_equal(start(lanes), 0); /* LAN4 */
    tide_lanes_left(lanes, 2);
    assert_int_equal(start(lanes), 1);
    assert_true(tide_lanes_check(lanes));
}

CASE(what_waits_for_its_account_is_not_claimed_at_once, 8, 2, 2)
{
    struct tide_brief other = click(1, 1);
    OK(tide_lanes_admit(lanes, 2, 0));
    assert_false(at_once(lanes, click(3, 2))); /* not admitted */
    other.level = 4;
    hold(lanes, other);
    assert_int_equal(start(lanes), 1);
    assert_false(at_once(lanes, click(3, 1))); /* it has to be preempted first */
    assert_int_equal(preempt(lanes), 0);       /* nobody asked for that */
    want(lanes, click(4, 1));
    assert_int_equal(preempt(lanes), 1);
    tide_lanes_left(lanes, 4);
    assert_false(at_once(lanes, click(3, 1))); /* claimable, but the other still runs */
    tide_lanes_left(lanes, 1);
    want(lanes, click(2, 1));
    assert_false(at_once(lanes, click(3, 1))); /* another click came first */
    tide_lanes_left(lanes, 2);
    assert_true(at_once(lanes, click(3, 1)));
    assert_false(at_once(lanes, click(5, 1))); /* one at a time */
    assert_true(tide_lanes_check(lanes));
}

CASE(what_waits_for_a_worker_is_not_claimed_at_once, 4, 1, 1)
{
    struct tide_brief bulk = job(10, B, 0, 50);
    assert_true(at_once(lanes, job(1, I, 0, 50)));
    assert_true(at_once(lanes, job(2, I, 0, 50)));
    assert_true(at_once(lanes, job(3, I, 0, 50)));
    assert_false(at_once(lanes, job(4, I, 0, 50))); /* it would have to borrow */
    assert_true(at_once(lanes, bulk));
    bulk.id = 11;
    assert_false(at_once(lanes, bulk)); /* the others take all workers */
    for (uint64_t id = 1; id <= 3; id++)
        tide_lanes_left(lanes, id);
    want(lanes, job(5, I, 0, 50));
    assert_false(at_once(lanes, bulk)); /* the interactive lane has something to claim */
    assert_int_equal(claim(lanes), 5);
    assert_true(at_once(lanes, bulk));
    hold(lanes, job(5, I, 0, 50));
    hold(lanes, job(10, B, 0, 50));
    hold(lanes, job(11, B, 0, 50));
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(start(lanes), 0);
    assert_true(at_once(lanes, job(6, I, 0, 50)));
    assert_false(at_once(lanes, job(7, I, 0, 50))); /* no worker is free */
    assert_true(tide_lanes_check(lanes));
}

/* A job that waits for the level of another one starts when that one has started, perhaps first. */
CASE(what_waits_for_a_level_counts_too, 2, 1, 0)
{
    struct tide_brief urgent = job(1, B, 1, 50);
    urgent.level = 1;
    hold(lanes, urgent);
    hold(lanes, job(2, I, 1, 99));
    assert_false(at_once(lanes, job(3, I, 2, 50)));
    tide_lanes_left(lanes, 2);
    tide_lanes_left(lanes, 1);
    assert_true(at_once(lanes, job(3, I, 2, 50)));
    assert_true(tide_lanes_check(lanes));
}

/* With nothing reserved for bulk, every ninth worker is its own: an interactive job counts it. */
CASE(where_lanes_take_turns_both_count, 1, 0, 0)
{
    hold(lanes, job(1, B, 0, 50));
    assert_false(at_once(lanes, job(2, I, 0, 50)));
    tide_lanes_left(lanes, 1);
    assert_true(at_once(lanes, job(2, I, 0, 50)));
    assert_true(tide_lanes_check(lanes));
}

/* The model: all jobs in a list; each answer is found by looking at all of them. */

enum { JOBS = 40, ACCOUNTS = 5 };
typedef enum { NOWHERE, WANTED, CLAIMING, HELD, RUNNING, PARKED } where;

struct entry {
    struct tide_brief brief;
    where where;
    bool named;
    bool lacks_units;
};

struct model {
    tide_rng rng;
    tide_lanes *lanes;
    struct entry jobs[JOBS];
    uint32_t admitted[ACCOUNTS];
    uint32_t workers;
    uint32_t reserved[2];
    uint32_t passed;
    uint64_t next_id;
    uint64_t seed;
    uint64_t step;
};

#define MODEL_ASSERT(model, condition)                                                             \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "seed %" PRIu64 " step %" PRIu64 ": %s\n", (model)->seed,              \
                    (model)->step, #condition);                                                    \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

static int level(const struct entry *entry)
{
    return entry->brief.account == 0 ? 1 : entry->brief.level;
}

static bool waits(const struct entry *entry)
{
    return entry->where == WANTED || entry->where == CLAIMING || entry->where == HELD;
}

static uint32_t running_in(const struct model *model, int lane, bool named)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].where == RUNNING && (!named || model->jobs[i].named) &&
                 (lane == 2 || model->jobs[i].brief.lane == lane);
    return count;
}

static uint32_t free_workers(const struct model *model)
{
    uint32_t running = running_in(model, 2, false);
    return model->workers > running ? model->workers - running : 0;
}

static int first_level(const struct model *model, uint32_t account)
{
    int first = 9;
    for (int i = 0; i < JOBS; i++)
        if ((waits(&model->jobs[i]) || model->jobs[i].lacks_units) &&
            model->jobs[i].brief.account == account && level(&model->jobs[i]) < first)
            first = level(&model->jobs[i]);
    return first;
}

/* Running, and parked up to a level. */
static uint32_t used_of(const struct model *model, uint32_t account, int up_to)
{
    uint32_t used = 0;
    for (int i = 0; i < JOBS; i++)
        used += model->jobs[i].brief.account == account &&
                (model->jobs[i].where == RUNNING ||
                 (model->jobs[i].where == PARKED && level(&model->jobs[i]) <= up_to));
    return used;
}

static uint32_t pending_of(const struct model *model, uint32_t account, int lane, int at)
{
    uint32_t pending = 0;
    for (int i = 0; i < JOBS; i++)
        pending += model->jobs[i].brief.account == account && level(&model->jobs[i]) == at &&
                   (lane == 2 || model->jobs[i].brief.lane == lane) &&
                   (model->jobs[i].where == HELD || model->jobs[i].where == CLAIMING);
    return pending;
}

static bool alone(const struct entry *entry)
{
    return entry->brief.alone && entry->brief.account != 0;
}

/* Jobs of the account that run alone: running, or running and not named. */
static uint32_t alone_of(const struct model *model, uint32_t account, bool stay)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].brief.account == account && alone(&model->jobs[i]) &&
                 model->jobs[i].where == RUNNING && !(stay && model->jobs[i].named);
    return count;
}

/* The same that are claimed, at a level. */
static uint32_t alone_pending(const struct model *model, uint32_t account, int lane, int at)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].brief.account == account && alone(&model->jobs[i]) &&
                 level(&model->jobs[i]) == at && (lane == 2 || model->jobs[i].brief.lane == lane) &&
                 (model->jobs[i].where == HELD || model->jobs[i].where == CLAIMING);
    return count;
}

/* Needs only a worker. */
static bool startable(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    return entry->where == HELD && level(entry) == first_level(model, account) &&
           (!alone(entry) || alone_of(model, account, false) == 0) &&
           used_of(model, account, level(entry)) < model->admitted[account];
}

static bool claimable(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    if (alone(entry) &&
        (alone_of(model, account, true) > 0 || alone_pending(model, account, 2, level(entry)) > 0))
        return false;
    return entry->where == WANTED && level(entry) == first_level(model, account) &&
           (uint64_t)used_of(model, account, level(entry)) +
                   pending_of(model, account, 2, level(entry)) <
               model->admitted[account];
}

static uint32_t lane_pending(const struct model *model, int lane)
{
    uint32_t sum = 0;
    for (uint32_t account = 0; account < ACCOUNTS; account++) {
        int at = first_level(model, account);
        uint32_t used = used_of(model, account, at);
        uint32_t room = model->admitted[account] > used ? model->admitted[account] - used : 0;
        uint32_t alones = alone_pending(model, account, lane, at);
        uint32_t pending = pending_of(model, account, lane, at) - alones +
                           (alones > 0 && alone_of(model, account, false) == 0);
        sum += pending < room ? pending : room;
    }
    return sum;
}

static bool lane_claims(const struct model *model, int lane)
{
    for (int i = 0; i < JOBS; i++)
        if (model->jobs[i].brief.lane == lane && claimable(model, &model->jobs[i]))
            return true;
    return false;
}

static bool idle(const struct model *model, int lane)
{
    return !lane_claims(model, lane) && lane_pending(model, lane) == 0;
}

static uint32_t capacity(const struct model *model, int lane)
{
    return model->workers - model->reserved[1 - lane];
}

/* The first in order that a free worker of this lane may have. */
static struct entry *model_first(struct model *model, int lane)
{
    struct entry *first = NULL;
    bool borrows = running_in(model, lane, false) >= capacity(model, lane);
    if (free_workers(model) == 0 || (borrows && !idle(model, 1 - lane)))
        return NULL;
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->brief.lane != lane || !startable(model, entry) ||
            (borrows && !entry->brief.preemptible))
            continue;
        if (first == NULL || tide_brief_before(&entry->brief, &first->brief))
            first = entry;
    }
    return first;
}

static void step_start(struct model *model)
{
    struct entry *interactive = model_first(model, I);
    struct entry *bulk = model_first(model, B);
    struct entry *expected = interactive;
    if (interactive == NULL || (bulk != NULL && model->reserved[B] == 0 && model->passed >= 8))
        expected = bulk;
    MODEL_ASSERT(model, tide_lanes_can_start(model->lanes) == (expected != NULL));
    uint64_t id = start(model->lanes);
    MODEL_ASSERT(model, id == (expected == NULL ? 0 : expected->brief.id));
    if (expected == NULL)
        return;
    model->passed = expected == interactive && bulk != NULL ? model->passed + 1 : 0;
    expected->where = RUNNING;
    expected->named = false;
    MODEL_ASSERT(model, alone_of(model, expected->brief.account, false) <= 1); /* LAN6 */
    MODEL_ASSERT(model, running_in(model, 2, false) <= model->workers);        /* LAN1 */
}

static uint32_t room_of(const struct model *model, int lane)
{
    uint32_t running = running_in(model, lane, false);
    uint32_t own = capacity(model, lane) > running ? capacity(model, lane) - running : 0;
    uint32_t room = free_workers(model);
    if (own < room && !idle(model, 1 - lane))
        room = own;
    uint32_t due = model->reserved[lane] > running ? model->reserved[lane] - running : 0;
    return due > room ? due : room;
}

static void step_claim(struct model *model)
{
    uint32_t ahead = (uint32_t)tide_rng_below(&model->rng, 4);
    struct entry *expected = NULL;
    for (int lane = 0; lane < 2 && expected == NULL; lane++) {
        if (lane_pending(model, lane) >= room_of(model, lane) + ahead)
            continue;
        for (int i = 0; i < JOBS; i++) {
            struct entry *entry = &model->jobs[i];
            if (entry->brief.lane == lane && claimable(model, entry) &&
                (expected == NULL || tide_brief_before(&entry->brief, &expected->brief)))
                expected = entry;
        }
    }
    uint64_t id = 0;
    bool found = tide_lanes_next_claim(model->lanes, ahead, &id);
    MODEL_ASSERT(model, found == (expected != NULL));
    if (!found)
        return;
    MODEL_ASSERT(model, id == expected->brief.id);
    expected->where = CLAIMING;
}

static bool lane_lacks(const struct model *model, int lane)
{
    uint32_t running = running_in(model, lane, false);
    if (running >= model->reserved[lane])
        return false;
    uint32_t due = model->reserved[lane] - running;
    uint32_t wants = lane_pending(model, lane) + lane_claims(model, lane);
    if (wants < due)
        due = wants;
    return due > free_workers(model) + running_in(model, 2, true) &&
           running_in(model, 1 - lane, false) - running_in(model, 1 - lane, true) >
               capacity(model, 1 - lane);
}

static bool account_lacks(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    int first = first_level(model, account);
    if (first >= level(entry) || model->admitted[account] == 0)
        return false;
    uint32_t waiting = 0;
    uint32_t leaving = 0;
    bool in[2] = {false, false};
    for (int i = 0; i < JOBS; i++) {
        const struct entry *other = &model->jobs[i];
        if (other->brief.account != account)
            continue;
        leaving += other->where == RUNNING && other->named;
        if (waits(other) && level(other) == first) {
            waiting++;
            in[other->brief.lane] = true;
        }
    }
    if (waiting <= leaving)
        return false;
    if (used_of(model, account, first) - leaving >= model->admitted[account])
        return true;
    for (int lane = 0; lane < 2; lane++) {
        uint32_t stays = running_in(model, lane, false) - running_in(model, lane, true);
        bool none_free = free_workers(model) + running_in(model, 2, true) == 0;
        bool helps = stays - (entry->brief.lane == lane) < capacity(model, lane);
        if (in[lane] && helps && (none_free || stays >= capacity(model, lane)))
            return true;
    }
    return false;
}

/* A more urgent one that runs alone waits for the end of this one. */
static bool alone_lacks(const struct model *model, const struct entry *entry)
{
    uint32_t account = entry->brief.account;
    int first = first_level(model, account);
    if (!alone(entry) || model->admitted[account] == 0)
        return false;
    for (int i = 0; i < JOBS; i++) {
        const struct entry *other = &model->jobs[i];
        if (other->brief.account == account && alone(other) && waits(other) &&
            level(other) == first &&
            (first < level(entry) || (first == level(entry) && other->where != CLAIMING &&
                                      other->brief.priority > entry->brief.priority)))
            return true;
    }
    return false;
}

static void step_preempt(struct model *model)
{
    struct entry *expected = NULL;
    bool lacks[2] = {lane_lacks(model, 0), lane_lacks(model, 1)};
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->where != RUNNING || entry->named || !entry->brief.preemptible ||
            (!lacks[1 - entry->brief.lane] && !account_lacks(model, entry) &&
             !alone_lacks(model, entry)))
            continue;
        if (expected == NULL || tide_brief_before(&expected->brief, &entry->brief))
            expected = entry;
    }
    uint64_t id = preempt(model->lanes);
    MODEL_ASSERT(model, id == (expected == NULL ? 0 : expected->brief.id));
    if (expected != NULL)
        expected->named = true;
}

/* With what is being claimed held too, whatever the others do: does the new one get a worker
 * without an end of any other? */
static bool starts_without_an_end(const struct model *model, const struct entry *entry)
{
    static struct model later;
    later = *model;
    for (int i = 0; i < JOBS; i++)
        if (later.jobs[i].where == CLAIMING)
            later.jobs[i].where = HELD;
    struct entry *same = &later.jobs[entry - model->jobs];
    same->where = HELD;
    while (same->where == HELD) {
        struct entry *interactive = model_first(&later, I);
        struct entry *bulk = model_first(&later, B);
        struct entry *next = interactive;
        if (interactive == NULL || (bulk != NULL && later.reserved[B] == 0 && later.passed >= 8))
            next = bulk;
        if (next == NULL)
            return false;
        later.passed = next == interactive && bulk != NULL ? later.passed + 1 : 0;
        next->where = RUNNING;
    }
    return true;
}

static uint32_t claimed_in(const struct model *model, int lane)
{
    uint32_t count = 0;
    for (int i = 0; i < JOBS; i++)
        count += model->jobs[i].brief.lane == lane &&
                 (model->jobs[i].where == HELD || model->jobs[i].where == CLAIMING);
    return count;
}

/* The rule as lanes.h has it, over all jobs. */
static bool model_at_once(const struct model *model, const struct entry *entry)
{
    const int lane = entry->brief.lane;
    const uint32_t free = free_workers(model);
    if (!claimable(model, entry) ||
        (alone(entry) && alone_of(model, entry->brief.account, false) > 0))
        return false;
    for (int i = 0; i < JOBS; i++)
        if (model->jobs[i].brief.lane == lane && claimable(model, &model->jobs[i]) &&
            tide_brief_before(&model->jobs[i].brief, &entry->brief))
            return false;
    const uint32_t claimed = claimed_in(model, lane);
    if (claimed >= free || running_in(model, lane, false) + claimed >= capacity(model, lane))
        return false;
    if (lane == I && model->reserved[B] > 0)
        return true;
    return !lane_claims(model, 1 - lane) && claimed + claimed_in(model, 1 - lane) < free;
}

static void arrive_at_once(struct model *model, struct entry *entry)
{
    entry->where = WANTED;
    const bool expected = model_at_once(model, entry);
    if (expected)
        MODEL_ASSERT(model, starts_without_an_end(model, entry));
    MODEL_ASSERT(model, tide_lanes_at_once(model->lanes, &entry->brief) == expected);
    entry->where = expected ? CLAIMING : NOWHERE;
    MODEL_ASSERT(model, tide_lanes_check(model->lanes));
}

static void step_arrive(struct model *model)
{
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->where != NOWHERE)
            continue;
        entry->brief = job(model->next_id++, (int)tide_rng_below(&model->rng, 2),
                           (uint32_t)tide_rng_below(&model->rng, ACCOUNTS),
                           (uint8_t)tide_rng_below(&model->rng, 4));
        entry->brief.level =
            (uint8_t)(tide_rng_chance(&model->rng, 3, 4) ? 4 : 1 + tide_rng_below(&model->rng, 3));
        entry->brief.preemptible = tide_rng_chance(&model->rng, 1, 2);
        entry->brief.alone = tide_rng_chance(&model->rng, 1, 4);
        entry->named = entry->lacks_units = false;
        if (tide_rng_chance(&model->rng, 1, 4)) {
            arrive_at_once(model, entry);
            return;
        }
        bool held = tide_rng_chance(&model->rng, 1, 8);
        entry->where = held ? HELD : WANTED;
        if (held)
            hold(model->lanes, entry->brief);
        else
            want(model->lanes, entry->brief);
        return;
    }
}

static void step_move(struct model *model)
{
    struct entry *entry = &model->jobs[tide_rng_below(&model->rng, JOBS)];
    bool leaves = tide_rng_chance(&model->rng, 1, 4);
    if (entry->where == NOWHERE)
        return;
    if (leaves) {
        tide_lanes_left(model->lanes, entry->brief.id);
        entry->where = NOWHERE;
        entry->lacks_units = false;
    } else if (entry->where == CLAIMING || entry->where == PARKED) {
        hold(model->lanes, entry->brief);
        entry->where = HELD;
    } else if (entry->where == RUNNING && tide_rng_chance(&model->rng, 1, 4)) {
        entry->lacks_units = tide_rng_chance(&model->rng, 1, 2);
        tide_lanes_parked(model->lanes, entry->brief.id, entry->lacks_units);
        entry->where = PARKED;
        entry->named = false;
    } else if (entry->where == RUNNING && tide_rng_chance(&model->rng, 1, 2)) {
        tide_lanes_charged(model->lanes, entry->brief.id);
        entry->lacks_units = false;
    } else if (entry->where == WANTED) {
        entry->brief.priority = (uint8_t)tide_rng_below(&model->rng, 6);
        tide_lanes_priority(model->lanes, entry->brief.id, entry->brief.priority);
    }
}

static void model_compare(struct model *model)
{
    uint32_t waiting[2] = {0, 0};
    for (int i = 0; i < JOBS; i++) {
        struct entry *entry = &model->jobs[i];
        if (entry->where == NOWHERE)
            continue;
        waiting[entry->brief.lane] += entry->where == WANTED || entry->where == HELD;
        tide_lanes_why why = tide_lanes_explain(model->lanes, entry->brief.id);
        if (entry->where == PARKED)
            MODEL_ASSERT(model, why == TIDE_WHY_UNKNOWN);
        if (entry->where == HELD) {
            struct entry *first = model_first(model, entry->brief.lane);
            MODEL_ASSERT(model, (why == TIDE_WHY_NOTHING) == (entry == first));
            MODEL_ASSERT(model, (why == TIDE_WHY_LEVEL) ==
                                    (level(entry) > first_level(model, entry->brief.account)));
        }
    }
    for (int lane = 0; lane < 2; lane++) {
        MODEL_ASSERT(model, tide_lanes_waiting(model->lanes, (tide_lane)lane) == waiting[lane]);
        MODEL_ASSERT(model, tide_lanes_running(model->lanes, (tide_lane)lane) ==
                                running_in(model, lane, false));
    }
    MODEL_ASSERT(model, tide_lanes_check(model->lanes));
}

static void step_limits(struct model *model)
{
    if (tide_rng_chance(&model->rng, 49, 50)) {
        uint32_t account = 1 + (uint32_t)tide_rng_below(&model->rng, ACCOUNTS - 1);
        uint64_t dice = tide_rng_below(&model->rng, 7);
        model->admitted[account] = dice == 6 ? TIDE_ADMIT_ALL : (uint32_t)dice;
        OK(tide_lanes_admit(model->lanes, account, model->admitted[account]));
    } else if (running_in(model, 2, false) == 0) {
        struct tide_lanes_limits limits = {1 + (uint32_t)tide_rng_below(&model->rng, 9), {0, 0}};
        limits.reserved[0] = (uint32_t)tide_rng_below(&model->rng, limits.workers);
        limits.reserved[1] =
            (uint32_t)tide_rng_below(&model->rng, limits.workers - limits.reserved[0]);
        model->workers = limits.workers;
        for (int lane = 0; lane < 2; lane++)
            model->reserved[lane] = limits.workers == 1 ? 0 : limits.reserved[lane];
        tide_lanes_limits_set(model->lanes, &limits);
    }
}

TEST(the_lanes_agree_with_a_model_that_looks_at_every_job)
{
    const uint64_t steps = scaled(40000);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct model model = {.rng = tide_rng_seeded(seed), .seed = seed, .next_id = 1};
        for (int i = 0; i < ACCOUNTS; i++)
            model.admitted[i] = TIDE_ADMIT_ALL;
        model.workers = 3 + (uint32_t)tide_rng_below(&model.rng, 6);
        model.reserved[0] = (uint32_t)tide_rng_below(&model.rng, 2);
        model.reserved[1] = (uint32_t)tide_rng_below(&model.rng, 2);
        model.lanes = lanes_of(model.workers, model.reserved[0], model.reserved[1]);
        for (model.step = 0; model.step < steps; model.step++) {
            switch (tide_rng_below(&model.rng, 16)) {
            case 0:
            case 1:
            case 2:
                step_arrive(&model);
                break;
            case 3:
            case 4:
            case 5:
                step_claim(&model);
                break;
            case 6:
            case 7:
            case 8:
                step_start(&model);
                break;
            case 9:
                step_preempt(&model);
                break;
            case 10:
                step_limits(&model);
                break;
            default:
                step_move(&model);
            }
            if (model.step % 64 == 0)
                model_compare(&model);
        }
        tide_lanes_free(model.lanes);
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
