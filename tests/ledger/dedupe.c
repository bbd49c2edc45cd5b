/* dedupe.c - one of a key waits, and where its scope says so, one runs or waits (E1.5). */
#include "ledger_fixture.h"

CASE(a_duplicate_returns_raises_and_forces_the_waiting_one)
{
    struct tide_job_new job = job_of(f, "k");
    struct tide_enqueued first = add(f, &job);
    job.priority = 20;
    struct tide_enqueued lower = add(f, &job);
    assert_true(lower.existed);
    assert_false(lower.raised);
    assert_int_equal(lower.id, first.id);
    assert_int_equal(look(f, first.id).row.priority, 30);
    job.priority = 50;
    struct tide_enqueued higher = add(f, &job);
    assert_true(higher.existed && higher.raised);
    assert_int_equal(look(f, first.id).row.priority, 50);
    assert_false(look(f, first.id).row.force);
    job.priority = 10;
    job.force = true;
    assert_int_equal(add(f, &job).id, first.id);
    assert_true(look(f, first.id).row.force);
    assert_int_equal(look(f, first.id).row.priority, 50);
    job.force = false;
    (void)add(f, &job);
    assert_true(look(f, first.id).row.force);

    /* Another account, another kind, no key: not duplicates. */
    job.account = 0;
    assert_false(add(f, &job).existed);
    job.account = f->account;
    job.kind = f->alone;
    assert_false(add(f, &job).existed);
    job.dedupe_key = TIDE_TEXT_NONE;
    assert_false(add(f, &job).existed);
    assert_false(add(f, &job).existed);
}

CASE(duplicates_inside_one_call_are_found_too)
{
    struct tide_job_new jobs[3] = {job_of(f, "k"), job_of(f, "other"), job_of(f, "k")};
    struct tide_enqueued enqueued[3];
    begin(f);
    OK(tide_ledger_enqueue(f->tx, jobs, 3, NOW, enqueued, &f->err));
    commit(f);
    assert_false(enqueued[0].existed || enqueued[1].existed);
    assert_true(enqueued[2].existed);
    assert_int_equal(enqueued[2].id, enqueued[0].id);
}

CASE(while_one_runs_one_more_may_wait)
{
    struct tide_job_new job = job_of(f, "k");
    struct tide_enqueued first = add(f, &job);
    uint64_t token = claim(f, first.id);
    struct tide_enqueued second = add(f, &job);
    assert_false(second.existed);
    assert_true(add(f, &job).existed);

    /* Put back, it may not wait with the other under one key; both will run. */
    assert_true(end_as(f, first.id, token, TIDE_ROW_PENDING));
    assert_string_equal(look(f, first.id).key, "");
    assert_string_equal(look(f, second.id).key, "k");
    struct tide_brief briefs[4];
    assert_int_equal(refill(f, f->account, briefs, 4), 2);

    /* The same for one that failed and is tried again. */
    run_to(f, second.id, TIDE_ROW_FAILED);
    struct tide_enqueued third = add(f, &job);
    assert_false(third.existed);
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.id = second.id;
    size_t count = 0;
    begin(f);
    OK(tide_ledger_retry(f->tx, &filter, NOW, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_state(f, second.id, TIDE_ROW_PENDING);
    assert_string_equal(look(f, second.id).key, "");
}

CASE(where_the_scope_says_so_a_running_one_is_the_duplicate)
{
    struct tide_job_new job = job_of(f, "k");
    job.kind = f->alone;
    struct tide_enqueued first = add(f, &job);
    uint64_t token = claim(f, first.id);
    job.priority = 90;
    job.force = true;
    struct tide_enqueued second = add(f, &job);
    assert_true(second.existed);
    assert_false(second.raised);
    assert_int_equal(second.id, first.id);
    assert_int_equal(look(f, first.id).row.priority, 30);
    assert_true(look(f, first.id).row.force);
    assert_true(end_as(f, first.id, token, TIDE_ROW_DONE));
    assert_false(add(f, &job).existed);
}
