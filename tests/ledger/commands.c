/* commands.c - cancel, retry and accept, in slices. */
#include "ledger_fixture.h"

static size_t cancel_all(struct fixture *f, size_t slice, uint64_t *running, size_t *running_count)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.count_max = slice;
    size_t total = 0;
    size_t count = slice;
    while (count == slice) { /* each slice cancels at least one; ends when none is left */
        begin(f);
        OK(tide_ledger_cancel(f->tx, &filter, NOW + 5, &count, running, 4, running_count,
                              &f->changes, &f->err));
        commit(f);
        total += count;
    }
    return total;
}

CASE(cancel_and_retry_work_in_slices)
{
    uint64_t first = add_plain(f);
    uint64_t runs = add_plain(f);
    for (int i = 0; i < 5; i++)
        (void)add_plain(f);
    uint64_t blocked = add_needing(f, &first, 1);
    (void)claim(f, runs);
    uint64_t running[4];
    size_t running_count = 0;
    assert_int_equal(cancel_all(f, 3, running, &running_count), 7);
    assert_int_equal(running_count, 1);
    assert_int_equal(running[0], runs);
    assert_state(f, blocked, TIDE_ROW_CANCELED);
    assert_int_equal(look(f, blocked).row.status, TIDE_CANCELED);

    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.count_max = 4;
    size_t count = 4;
    size_t total = 0;
    while (count == 4) { /* each one leaves the set that is retried */
        begin(f);
        OK(tide_ledger_retry(f->tx, &filter, NOW + 6, &count, &f->changes, &f->err));
        commit(f);
        total += count;
    }
    assert_int_equal(total, 7);
    assert_state(f, blocked, TIDE_ROW_PENDING);
    assert_int_equal(look(f, blocked).row.open_deps, 1);
    assert_state(f, runs, TIDE_ROW_RUNNING);

    /* A waiting one loses its time. */
    struct tide_job_new later = job_of(f, NULL);
    later.not_before_unix_ms = NOW + 1000;
    uint64_t id = add(f, &later).id;
    begin(f);
    OK(tide_ledger_retry(f->tx, &filter, NOW + 6, &count, &f->changes, &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_int_equal(look(f, id).row.not_before_unix_ms, 0);
}

/* The jobs of `owner` that are to be canceled, in order.  The one process of a ledger that is
 * not shared made the request itself, so that it is not listed there. */
static void assert_cancels(struct fixture *f, uint64_t owner, const uint64_t *ids, size_t count)
{
    uint64_t seen[5];
    size_t seen_count = 99;
    tide_status rc = tide_ledger_cancels(f->ledger, owner, seen, 5, &seen_count, &f->err);
    if (!tide_ledger_shared(f->ledger)) {
        assert_int_equal(rc, TIDE_INVALID);
        return;
    }
    OK(rc);
    assert_int_equal(seen_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(seen[i], ids[i]);
    OK(tide_ledger_cancels(f->ledger, owner, seen, 1, &seen_count, &f->err));
    assert_int_equal(seen_count, count > 0);
}

/* The process that runs a job finds the request in the ledger, whichever process made it. */
CASE(a_cancel_request_stays_with_what_runs)
{
    uint64_t ids[4];
    uint64_t tokens[4];
    for (size_t i = 0; i < 4; i++) {
        ids[i] = add_plain(f);
        tokens[i] = claim_as(f, ids[i], i == 3 ? 8 : 7);
    }
    assert_cancels(f, 7, NULL, 0);
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    uint64_t running[1];
    size_t count = 9;
    size_t running_count = 0;
    filter.before_id = ids[3] + 1;
    begin(f);
    OK(tide_ledger_cancel(f->tx, &filter, NOW, &count, running, 1, &running_count, &f->changes,
                          &f->err));
    commit(f);
    assert_int_equal(count, 0);
    assert_int_equal(running_count, 1); /* as many as there was room for; all are marked */
    assert_cancels(f, 7, ids, 3);
    assert_cancels(f, 8, ids + 3, 1);
    assert_cancels(f, 9, NULL, 0);
    reopen(f, false);
    assert_cancels(f, 7, ids, 3);

    /* It ends with the job: an end that would continue the job is refused, and the request stays. */
    assert_true(end_as(f, ids[0], tokens[0], TIDE_ROW_DONE));
    assert_false(end_as(f, ids[1], tokens[1], TIDE_ROW_PENDING));
    assert_int_equal(f->changes.refused_count, 1);
    assert_int_equal(f->changes.refused[0].status, TIDE_CANCELED);
    assert_cancels(f, 7, ids + 1, 2);
    assert_true(end_as(f, ids[1], tokens[1], TIDE_ROW_FAILED));
    assert_cancels(f, 7, ids + 2, 1);
    assert_true(end_as(f, ids[2], tokens[2], TIDE_ROW_CANCELED));
    assert_int_equal(retry(f, ids[2]), 1);
    (void)claim_as(f, ids[2], 7);
    assert_cancels(f, 7, NULL, 0);
}

/* E7.3: neither the rest of a batch nor its parts run on after a cancellation; what is done
 * with all of its work stays done. */
CASE(parts_of_a_canceled_job_are_not_made)
{
    static const tide_row_state states[] = {TIDE_ROW_DONE, TIDE_ROW_PENDING};
    for (size_t i = 0; i < 2; i++) {
        struct tide_job_new part = job_of(f, NULL);
        struct tide_job_new child = job_of(f, NULL);
        uint64_t id = add_plain(f);
        bool running = false;
        part.part = true;
        struct tide_finish finishes = {.id = id,
                                       .token = claim(f, id),
                                       .state = states[i],
                                       .children = &part,
                                       .children_count = 1};
        (void)cancel(f, id, &running);
        assert_true(running);
        assert_false(finish(f, &finishes));
        assert_int_equal(f->changes.refused[0].status, TIDE_CANCELED);
        assert_int_equal(f->changes.children_count, 0);
        assert_state(f, id, TIDE_ROW_RUNNING);
        finishes.state = TIDE_ROW_DONE;
        finishes.children = &child;
        assert_true(finish(f, &finishes));
        assert_state(f, id, TIDE_ROW_DONE);
    }
}

CASE(a_command_means_what_all_its_conditions_mean)
{
    uint64_t in_cycle[2];
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    uint64_t cycle = cycle_with_jobs(f, stream, "march", 2, in_cycle);
    commit(f);
    struct tide_job_new job = job_of(f, NULL);
    job.kind = f->alone;
    uint64_t other_kind = add(f, &job).id;
    uint64_t free_one = add_free(f);
    uint64_t running[1];
    size_t count = 0;
    size_t running_count = 0;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    filter.kind = f->once;
    filter.cycle = cycle;
    filter.account = f->account;
    filter.state = TIDE_ROW_PENDING;
    filter.before_id = in_cycle[1];
    tide_changes_clear(&f->changes);
    begin(f);
    OK(tide_ledger_cancel(f->tx, &filter, NOW, &count, running, 1, &running_count, &f->changes,
                          &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_int_equal(f->changes.cycles_count, 1);
    assert_int_equal(f->changes.cycles[0].failed, 1);
    assert_state(f, in_cycle[0], TIDE_ROW_CANCELED);
    assert_state(f, in_cycle[1], TIDE_ROW_PENDING);
    filter = TIDE_JOB_FILTER_ANY;
    filter.account = 0;
    begin(f);
    OK(tide_ledger_cancel(f->tx, &filter, NOW, &count, running, 1, &running_count, &f->changes,
                          &f->err));
    commit(f);
    assert_int_equal(count, 1);
    assert_state(f, free_one, TIDE_ROW_CANCELED);
    assert_state(f, other_kind, TIDE_ROW_PENDING);
}
