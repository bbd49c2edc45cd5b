/* account.c - adds, removes and finds accounts of a system.  Each has a row in NAME_account, in the
 * ledger's database: of columns `account` and `endpoint`, and of others if the system wants. */
#include "system/system.h"

#include "engine/accounts/archive_id.h"
#include "ledger/rows.h"

#include <stdio.h>
#include <string.h>

#define WHAT "the rows of the accounts"

enum { SQL_BYTES = 300, DIR_BYTES = 4096 + 300 };

/* ---- rows ---- */

tide_status tide_system_tables(const struct tide_system *system, tide_rows db, tide_error *err)
{
    char sql[SQL_BYTES];
    if (system->tables != NULL)
        return system->tables(db, err);
    (void)snprintf(sql, sizeof sql,
                   "CREATE TABLE IF NOT EXISTS %.60s_account(account INTEGER PRIMARY KEY,"
                   " name TEXT NOT NULL UNIQUE, endpoint TEXT NOT NULL) STRICT;",
                   system->name);
    return tide_rows_tables(db, sql, WHAT, err);
}

tide_status tide_system_row_put(const char *system, tide_rows db, uint32_t account,
                                const struct tide_account_request *request, tide_error *err)
{
    char sql[SQL_BYTES];
    /* An account of this name with another number was removed from the ledger. */
    (void)snprintf(sql, sizeof sql, "DELETE FROM %.60s_account WHERE name = ?1 AND account <> ?2",
                   system);
    const tide_status rc = tide_rows_do(db, WHAT, err, sql, request->name, account);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO %.60s_account(account, name, endpoint) VALUES(?1, ?2, ?3)"
                   " ON CONFLICT(account) DO UPDATE SET name = ?2, endpoint = ?3",
                   system);
    return rc == TIDE_OK
               ? tide_rows_do(db, WHAT, err, sql, account, request->name, request->endpoint)
               : rc;
}

static tide_status row_drop(const char *system, tide_rows db, uint32_t account, tide_error *err)
{
    char sql[SQL_BYTES];
    (void)snprintf(sql, sizeof sql, "DELETE FROM %.60s_account WHERE account = ?1", system);
    return tide_rows_do(db, WHAT, err, sql, account);
}

/* ---- adding and removing ---- */

struct change {
    const struct tide_system *system;
    const struct tide_system *const *systems; /* all; to remove */
    const struct tide_account_request *request;
    uint32_t account;
};

static tide_status put(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct change *change = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    if (change->system->account_put != NULL)
        return change->system->account_put(db, change->account, change->request, err);
    return tide_system_row_put(change->system->name, db, change->account, change->request, err);
}

/* The id of the archive is durable before the row is (AID2): a crash between them leaves an account
 * that was not added, and a directory that the next try uses. */
tide_status tide_system_account_add(const struct tide_system *system,
                                    const struct tide_system_home *home,
                                    const struct tide_account_request *request, tide_error *err)
{
    struct change change = {.system = system, .request = request};
    char dir[DIR_BYTES];
    bool shared = false;
    tide_status rc =
        tide_engine_account(home->engine, request->name, system->provider, &change.account, err);
    if (rc != TIDE_OK)
        return rc;
    tide_system_archive_path(system, home->archive_dir, request->name, dir, sizeof dir);
    const struct tide_placing placing = {.account = change.account,
                                         .name = request->name,
                                         .dir = dir,
                                         .secret = tide_secrets_where(home->secrets),
                                         .added = true};
    rc = tide_archive_place(home->engine, home->world, &placing, &shared, err);
    return rc == TIDE_OK ? tide_transact(home->engine, put, &change, err) : rc;
}

static tide_status drop(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct change *change = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    /* An account that is added again may get another place. */
    TIDE_TRY(tide_transaction_place(transaction, change->account, "", "", err));
    TIDE_TRY(tide_transaction_alerts_end(transaction, change->account, err));
    for (size_t i = 0; change->systems[i] != NULL; i++)
        if (change->systems[i]->other_drop != NULL &&
            strcmp(change->systems[i]->name, change->system->name) != 0)
            TIDE_TRY(change->systems[i]->other_drop(db, change->account, err));
    return change->system->account_drop != NULL
               ? change->system->account_drop(db, change->account, err)
               : row_drop(change->system->name, db, change->account, err);
}

tide_status tide_system_account_remove(const struct tide_system *system,
                                       const struct tide_system *const *systems,
                                       tide_engine *engine, const char *name, tide_error *err)
{
    struct change change = {.system = system, .systems = systems};
    TIDE_TRY(tide_engine_account(engine, name, system->provider, &change.account, err));
    TIDE_TRY(tide_transact(engine, drop, &change, err));
    tide_engine_alerts_forget(engine, change.account);
    return TIDE_OK;
}

/* ---- reading ---- */

/* Begins a query of its accounts with these columns; rows of accounts that the ledger does not have
 * are left out.  TIDE_NOT_FOUND: the system was never used here and has no tables. */
static tide_status ask(const struct tide_system *system, tide_ledger *ledger, const char *columns,
                       const char *name, tide_rows_stmt *stmt_out, tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    char sql[SQL_BYTES];
    bool has = false;
    *stmt_out = (tide_rows_stmt){.what = WHAT};
    (void)snprintf(sql, sizeof sql, "%.60s_account", system->name);
    const tide_status rc = tide_rows_has(db, sql, WHAT, &has, err);
    (void)snprintf(sql, sizeof sql,
                   "SELECT %s FROM %.60s_account s JOIN account a ON a.id = s.account"
                   " WHERE a.provider = ?1%s ORDER BY a.name COLLATE BINARY",
                   columns, system->name, name == NULL ? "" : " AND a.name = ?2");
    if (rc != TIDE_OK || !has)
        return rc == TIDE_OK ? TIDE_NOT_FOUND : rc;
    return name == NULL ? tide_rows_ask(db, WHAT, stmt_out, err, sql, system->provider)
                        : tide_rows_ask(db, WHAT, stmt_out, err, sql, system->provider, name);
}

tide_status tide_system_account_look(const struct tide_system *system, tide_ledger *ledger,
                                     const char *name, char endpoint_out[TIDE_ENDPOINT_BYTES],
                                     tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = ask(system, ledger, "s.endpoint", name, &stmt, err);
    if (rc == TIDE_OK)
        rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK)
        tide_rows_get_copy(&stmt, 0, endpoint_out, TIDE_ENDPOINT_BYTES);
    tide_rows_end(&stmt);
    return rc == TIDE_NOT_FOUND
               ? tide_error_set(err, rc, "there is no %s account \"%.200s\"", system->name, name)
               : rc;
}

tide_status tide_system_accounts(const struct tide_system *system, tide_ledger *ledger,
                                 void (*visit)(const char *name, void *arg), void *arg,
                                 tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = ask(system, ledger, "a.name", NULL, &stmt, err);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0).data, arg);
    tide_rows_end(&stmt);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}
