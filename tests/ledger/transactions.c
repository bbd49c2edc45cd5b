/* transactions.c - a transaction and its parts are undone as a whole. */
#include "ledger_fixture.h"

#include <libpq-fe.h>
#include <sqlite3.h>

CASE(a_rollback_leaves_nothing)
{
    uint32_t kind = 0;
    struct tide_job_new job = job_of(f, "k");
    struct tide_enqueued enqueued;
    begin(f);
    OK(tide_ledger_kind(f->tx, "fleeting", TIDE_DEDUPE_PENDING, &kind, &f->err));
    job.kind = kind;
    OK(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err));
    undo(f);
    assert_int_equal(look(f, enqueued.id).count, 0);
    begin(f);
    assert_int_equal(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err), TIDE_NOT_FOUND);
    commit(f);
}

/* In which table the caller's own rows are, the handle of its database tells. */
CASE(the_handle_is_of_one_database)
{
    bool postgres = strcmp(fixture_kind->name, "postgres") == 0;
    begin(f);
    assert_int_equal(tide_tx_sqlite(f->tx) != NULL, !postgres);
    assert_int_equal(tide_tx_postgres(f->tx) != NULL, postgres);
    commit(f);
    assert_int_equal(tide_ledger_sqlite(f->ledger) != NULL, !postgres);
    assert_int_equal(tide_ledger_postgres(f->ledger) != NULL, postgres);
    assert_int_equal(tide_ledger_shared(f->ledger), postgres);
}

static tide_status effect_rolls_back(void *arg, tide_tx *tx, tide_error *err)
{
    *(bool *)arg = true;
    tide_status rc = tide_ledger_note(tx, "effect", TIDE_TEXT("happened"), err);
    if (tide_tx_sqlite(tx) != NULL)
        assert_int_equal(sqlite3_exec(tide_tx_sqlite(tx), "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    else
        PQclear(PQexec(tide_tx_postgres(tx), "ROLLBACK"));
    assert_true(tide_tx_over(tx));
    return rc;
}

/* An effect's own statement that ends the transaction is reported, even if the effect hides it: what
 * was written before it is gone, and nothing more may be written. */
CASE(an_effect_that_rolls_back_ends_the_whole_transaction)
{
    bool ran = false;
    struct tide_finish finishes[2] = {{.state = TIDE_ROW_DONE}, {.state = TIDE_ROW_DONE}};
    bool applied[2] = {false, false};
    for (int i = 0; i < 2; i++) {
        finishes[i].id = add_plain(f);
        finishes[i].token = claim(f, finishes[i].id);
    }
    finishes[1].effect = effect_rolls_back;
    finishes[1].effect_arg = &ran;
    begin(f);
    assert_false(tide_tx_over(f->tx));
    tide_changes_clear(&f->changes);
    assert_int_not_equal(tide_ledger_finish(f->tx, finishes, 2, NOW, applied, &f->changes, &f->err),
                         TIDE_OK);
    assert_true(ran);
    assert_false(applied[1]);
    assert_int_not_equal(tide_tx_commit(f->tx, &f->err), TIDE_OK);
    f->tx = NULL;
    for (int i = 0; i < 2; i++)
        assert_state(f, finishes[i].id, TIDE_ROW_RUNNING);
    assert_false(note_is(f, "effect", "happened"));
    /* The next one has nothing of it. */
    finishes[1].effect = NULL;
    assert_true(finish(f, &finishes[0]));
    assert_true(finish(f, &finishes[1]));
}

static void note(struct fixture *f, const char *key)
{
    OK(tide_ledger_note(f->tx, key, TIDE_TEXT("kept"), &f->err));
}

CASE(parts_of_a_transaction_are_undone_like_a_stack)
{
    begin(f);
    note(f, "before");
    OK(tide_tx_savepoint(f->tx, &f->err));
    note(f, "outer");
    OK(tide_tx_savepoint(f->tx, &f->err));
    note(f, "inner undone");
    OK(tide_tx_savepoint_end(f->tx, false, &f->err));
    OK(tide_tx_savepoint(f->tx, &f->err));
    note(f, "inner kept");
    OK(tide_tx_savepoint_end(f->tx, true, &f->err));
    OK(tide_tx_savepoint_end(f->tx, true, &f->err));
    OK(tide_tx_savepoint(f->tx, &f->err));
    OK(tide_tx_savepoint(f->tx, &f->err));
    note(f, "kept in what is undone");
    OK(tide_tx_savepoint_end(f->tx, true, &f->err));
    OK(tide_tx_savepoint_end(f->tx, false, &f->err));
    note(f, "after");
    commit(f);
    assert_true(note_is(f, "before", "kept"));
    assert_true(note_is(f, "outer", "kept"));
    assert_false(note_is(f, "inner undone", "kept"));
    assert_true(note_is(f, "inner kept", "kept"));
    assert_false(note_is(f, "kept in what is undone", "kept"));
    assert_true(note_is(f, "after", "kept"));
}

/* What an engine remembers must be forgotten with what it was read from. */
CASE(nothing_undone_is_remembered)
{
    struct tide_job_new job = job_of(f, NULL);
    struct tide_enqueued enqueued;
    struct tide_job_body *body = NULL;
    uint64_t id = add_plain(f);
    uint32_t kind = 0;
    uint32_t account = 0;
    begin(f);
    OK(tide_tx_savepoint(f->tx, &f->err));
    OK(tide_ledger_kind(f->tx, "fleeting", TIDE_DEDUPE_PENDING, &kind, &f->err));
    OK(tide_ledger_account(f->tx, "fleeting", "gmail", &account, &f->err));
    OK(tide_ledger_kind_pause(f->tx, f->once, true, &f->err));
    OK(tide_ledger_claim(f->tx, &id, 1, 7, 500, NOW, tide_mem_heap(), &body, &f->err));
    assert_null(body);
    OK(tide_tx_savepoint_end(f->tx, false, &f->err));
    job.kind = kind;
    assert_int_equal(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err), TIDE_NOT_FOUND);
    job.kind = f->once;
    job.account = account;
    assert_int_equal(tide_ledger_enqueue(f->tx, &job, 1, NOW, &enqueued, &f->err), TIDE_NOT_FOUND);
    OK(tide_ledger_claim(f->tx, &id, 1, 7, 501, NOW, tide_mem_heap(), &body, &f->err));
    assert_non_null(body);
    commit(f);
    tide_job_body_free(tide_mem_heap(), body);
    assert_int_equal(look(f, id).row.token, 501);
}

CASE(a_claim_that_was_undone_ends_nothing)
{
    uint64_t id = add_plain(f);
    struct tide_job_body *body = NULL;
    begin(f);
    OK(tide_tx_savepoint(f->tx, &f->err));
    OK(tide_ledger_claim(f->tx, &id, 1, 7, 500, NOW, tide_mem_heap(), &body, &f->err));
    assert_non_null(body);
    tide_job_body_free(tide_mem_heap(), body);
    OK(tide_tx_savepoint_end(f->tx, false, &f->err));
    commit(f);
    assert_false(end_as(f, id, 500, TIDE_ROW_DONE));
    assert_int_equal(f->changes.refused[0].status, TIDE_STALE);
    assert_state(f, id, TIDE_ROW_PENDING);
}

/* Hints are news about what is committed; one can be given at any time and costs nothing. */
CASE(hints_are_part_of_the_transaction)
{
    begin(f);
    for (uint32_t i = 0; i < 200; i++)
        OK(tide_tx_hint(f->tx, TIDE_HINT_WORK, i % 70, &f->err));
    OK(tide_tx_hint(f->tx, TIDE_HINT_CONTROL, 0, &f->err));
    note(f, "hinted");
    commit(f);
    assert_true(note_is(f, "hinted", "kept"));
    begin(f);
    OK(tide_tx_hint(f->tx, TIDE_HINT_WORK, f->account, &f->err));
    undo(f);
}
