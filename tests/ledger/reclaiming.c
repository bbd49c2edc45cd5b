/* reclaiming.c - what a dead process left behind is put back (E1.7). */
#include "ledger_fixture.h"

CASE(a_reclaim_spares_its_owner_and_minds_the_budget)
{
    struct tide_job_new job = job_of(f, NULL);
    uint64_t mine = add_plain(f);
    job.attempts_max = 2;
    job.attempts = 1;
    uint64_t poison = add(f, &job).id;
    job.kind = f->alone;
    uint64_t splits = add(f, &job).id;
    job.attempts_max = 0;
    uint64_t endless = add(f, &job).id;
    begin(f);
    OK(tide_ledger_kind_splits(f->tx, f->alone, true, &f->err));
    commit(f);
    (void)claim_as(f, mine, 5);
    (void)claim_as(f, poison, 4);
    (void)claim_as(f, splits, 4);
    (void)claim_as(f, endless, 4);
    size_t total = 0;
    size_t count = 1;
    tide_changes_clear(&f->changes);
    while (count == 1) { /* slices of one; ends when none is left */
        begin(f);
        OK(tide_ledger_reclaim(f->tx, 5, 1, NOW, &count, &f->changes, &f->err));
        commit(f);
        total += count;
    }
    assert_int_equal(total, 3);
    assert_state(f, mine, TIDE_ROW_RUNNING);
    assert_state(f, poison, TIDE_ROW_FAILED);
    assert_state(f, splits, TIDE_ROW_PENDING);
    assert_int_equal(look(f, splits).row.attempts, 2);
    assert_state(f, endless, TIDE_ROW_PENDING);
    assert_int_equal(f->changes.over_budget_count, 2);
    assert_int_equal(f->changes.over_budget[0].id, poison);
    assert_true(f->changes.over_budget[0].failed);
    assert_int_equal(f->changes.over_budget[1].id, splits);
    assert_false(f->changes.over_budget[1].failed);
}

CASE(what_was_to_be_canceled_is_not_run_again)
{
    struct tide_job_new job = job_of(f, NULL);
    job.attempts_max = 1;
    uint64_t wanted = add(f, &job).id;
    uint64_t plain = add_plain(f);
    (void)claim_as(f, wanted, 4);
    (void)claim_as(f, plain, 4);
    bool running = false;
    assert_int_equal(cancel(f, wanted, &running), 0);
    assert_true(running);
    assert_int_equal(reclaim(f, 5, NOW + 9), 2);
    assert_state(f, wanted, TIDE_ROW_CANCELED);
    assert_int_equal(look(f, wanted).row.attempts, 0); /* a cancel request costs no attempt */
    assert_int_equal(look(f, wanted).row.status, TIDE_CANCELED);
    assert_int_equal(look(f, wanted).row.finished_unix_ms, NOW + 9);
    assert_int_equal(f->changes.over_budget_count, 0);
    assert_state(f, plain, TIDE_ROW_PENDING);
    assert_int_equal(look(f, plain).row.attempts, 1);
    assert_int_equal(look(f, plain).row.status, TIDE_STALE);
}

CASE(a_cycle_learns_of_what_was_put_back)
{
    uint64_t ids[2];
    begin(f);
    uint64_t stream = stream_of(f, "mail");
    uint64_t cycle = cycle_with_jobs(f, stream, "march", 2, ids);
    commit(f);
    (void)claim_as(f, ids[0], 4);
    (void)claim_as(f, ids[1], 4);
    (void)cancel(f, ids[1], NULL);
    assert_int_equal(reclaim(f, 5, NOW), 2);
    assert_int_equal(f->changes.cycles_count, 1);
    assert_int_equal(f->changes.cycles[0].cycle, cycle);
    assert_int_equal(f->changes.cycles[0].outstanding, 1);
    assert_int_equal(f->changes.cycles[0].failed, 1);
    assert_int_equal(reclaim(f, 5, NOW), 0);
    assert_int_equal(f->changes.cycles_count, 0);
}
