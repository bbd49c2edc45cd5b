/* at_once.c - jobs that are claimed as they are written (K15). */
#include "lanes_fixture.h"

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
