/* accounts.c - what a person waits for has its account alone, and jobs that run alone do (E3.3, K3, K4). */
#include "lanes_fixture.h"

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
