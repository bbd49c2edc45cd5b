/* names.c - kinds and accounts: numbers for names, pauses, halts, places. */
#include "ledger_fixture.h"

CASE(what_is_paused_is_neither_seen_nor_claimed)
{
    struct tide_job_new job = job_of(f, NULL);
    uint64_t a = add(f, &job).id;
    job.kind = f->alone;
    uint64_t b = add(f, &job).id;
    struct tide_brief briefs[4];
    begin(f);
    OK(tide_ledger_kind_pause(f->tx, f->once, true, &f->err));
    commit(f);
    assert_int_equal(refill(f, f->account, briefs, 4), 1);
    assert_int_equal(briefs[0].id, b);
    assert_int_equal(claim(f, a), 0);
    uint32_t kind = 0;
    bool paused = false;
    OK(tide_ledger_kind_find(f->ledger, "once", &kind, &paused, &f->err));
    assert_true(paused);
    begin(f);
    OK(tide_ledger_kind_pause(f->tx, f->once, false, &f->err));
    OK(tide_ledger_account_pause(f->tx, f->account, true, &f->err));
    commit(f);
    assert_int_equal(refill(f, f->account, briefs, 4), 0);
    assert_int_equal(claim(f, b), 0);
    begin(f);
    OK(tide_ledger_account_pause(f->tx, f->account, false, &f->err));
    assert_int_equal(tide_ledger_account_pause(f->tx, 99, true, &f->err), TIDE_NOT_FOUND);
    commit(f);
    assert_int_equal(refill(f, f->account, briefs, 4), 2);
    assert_int_not_equal(claim(f, a), 0);
}

CASE(a_name_has_one_number_for_good)
{
    char long_name[TIDE_NAME_BYTES_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    uint32_t kind = 0;
    uint32_t account = 0;
    begin(f);
    OK(tide_ledger_kind(f->tx, "once", TIDE_DEDUPE_PENDING_AND_RUNNING, &kind, &f->err));
    assert_int_equal(kind, f->once);
    OK(tide_ledger_kind(f->tx, "third", TIDE_DEDUPE_PENDING, &kind, &f->err));
    assert_true(kind != f->once && kind != f->alone);
    assert_int_equal(tide_ledger_kind(f->tx, "", TIDE_DEDUPE_PENDING, &kind, &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_ledger_kind(f->tx, long_name, TIDE_DEDUPE_PENDING, &kind, &f->err),
                     TIDE_INVALID);
    OK(tide_ledger_account(f->tx, "a@example.com", "gmail", &account, &f->err));
    assert_int_equal(account, f->account);
    assert_int_equal(tide_ledger_account(f->tx, long_name, "gmail", &account, &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_ledger_kind_pause(f->tx, 99, true, &f->err), TIDE_NOT_FOUND);
    assert_int_equal(tide_ledger_kind_splits(f->tx, 99, true, &f->err), TIDE_NOT_FOUND);
    assert_int_equal(tide_ledger_account_halt(f->tx, 99, true, "x", NOW, &f->err), TIDE_NOT_FOUND);
    assert_int_equal(tide_ledger_governor_save(f->tx, 99, TIDE_TEXT("x"), &f->err), TIDE_NOT_FOUND);
    commit(f);
    reopen(f, true);
    bool paused = true;
    OK(tide_ledger_kind_find(f->ledger, "once", &kind, &paused, &f->err));
    assert_int_equal(kind, f->once);
    assert_false(paused);
    assert_int_equal(tide_ledger_kind_find(f->ledger, "none", &kind, &paused, &f->err),
                     TIDE_NOT_FOUND);
}

CASE(another_scope_holds_for_jobs_that_come_after_it)
{
    struct tide_job_new job = job_of(f, "k");
    uint64_t before = add(f, &job).id;
    uint64_t token = claim(f, before);
    uint32_t kind = 0;
    begin(f);
    OK(tide_ledger_kind(f->tx, "once", TIDE_DEDUPE_PENDING_AND_RUNNING, &kind, &f->err));
    commit(f);
    /* The one that runs keeps the scope it was queued with: it is no duplicate. */
    struct tide_enqueued after = add(f, &job);
    assert_false(after.existed);
    assert_true(end_as(f, before, token, TIDE_ROW_DONE));
    assert_int_not_equal(claim(f, after.id), 0);
    assert_true(add(f, &job).existed);
}

CASE(an_account_remembers_its_archive_and_where_its_secret_is)
{
    char long_text[202];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    assert_string_equal(account_row(f, f->account).archive, "");
    assert_string_equal(account_row(f, f->account).secret, "");
    begin(f);
    OK(tide_ledger_account_place(f->tx, f->account, "archive-1", "keyring:a", &f->err));
    OK(tide_ledger_account_place(f->tx, f->account, NULL, "file:a", &f->err));
    assert_int_equal(tide_ledger_account_place(f->tx, f->account, long_text, NULL, &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_ledger_account_place(f->tx, f->account, NULL, long_text, &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_ledger_account_place(f->tx, 99, "x", "y", &f->err), TIDE_NOT_FOUND);
    commit(f);
    reopen(f, false);
    assert_string_equal(account_row(f, f->account).archive, "archive-1");
    assert_string_equal(account_row(f, f->account).secret, "file:a");
    begin(f);
    OK(tide_ledger_account_place(f->tx, f->account, "", NULL, &f->err));
    commit(f);
    assert_string_equal(account_row(f, f->account).archive, "");
    assert_string_equal(account_row(f, f->account).secret, "file:a");
}

/* What a process could not load must not get in: it would keep every engine from opening. */
CASE(accounts_have_a_ceiling)
{
    uint32_t account = 0;
    char name[32];
    tide_status rc = TIDE_OK;
    begin(f);
    for (int i = 1; rc == TIDE_OK && i < TIDE_ACCOUNTS_MAX; i++) { /* the fixture has one */
        (void)snprintf(name, sizeof name, "account %d", i);
        rc = tide_ledger_account(f->tx, name, "gmail", &account, &f->err);
    }
    assert_int_equal(rc, TIDE_OK);
    assert_int_equal(tide_ledger_account(f->tx, "one more", "gmail", &account, &f->err), TIDE_FULL);
    assert_non_null(strstr(f->err.text, "one more"));
    OK(tide_ledger_account(f->tx, "a@example.com", "gmail", &account, &f->err));
    assert_int_equal(account, f->account);
    OK(tide_ledger_account(f->tx, "account 1", "console", &account, &f->err)); /* changes it */
    tide_tx_rollback(f->tx);
    f->tx = NULL;
}
