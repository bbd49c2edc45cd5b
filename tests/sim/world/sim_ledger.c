#include "sim_ledger.h"

#include "ledger/ledger.h"
#include "sim_disk.h"

#include <sqlite3.h>
#include <stdio.h>

struct sqlite3 *tide_sim_ledger_file(tide_sim *sim, const char *path)
{
    struct sqlite3 *db = NULL;
    if (tide_sim_disk_file_bytes(sim, path) <= 0)
        return NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, tide_world_vfs(tide_sim_world(sim))) !=
            SQLITE_OK ||
        sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK)
        tide_sim_fail(sim, "%s cannot be read after a crash: %s", path, sqlite3_errmsg(db));
    return db;
}

struct sqlite3_stmt *tide_sim_ledger_prepare(struct sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    if (db != NULL && sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        stmt = NULL;
    return stmt;
}

void tide_sim_ledger_check(tide_sim *sim, const char *rule)
{
    tide_ledger *ledger = NULL;
    tide_error err;
    struct tide_ledger_options options = {
        .path = "/state/state.db", .run_id = "check", .read_only = true, .must_exist = true};
    tide_status rc = tide_ledger_open(tide_sim_world(sim), &options, &ledger, &err);
    if (rc != TIDE_OK)
        tide_sim_fail(sim, "%s: the ledger does not open: %s", rule, err.text);
    tide_buf problems;
    tide_buf_init(&problems, tide_mem_heap(), 1 << 20);
    rc = tide_ledger_check(ledger, &problems, &err);
    if (rc != TIDE_OK || problems.bytes > 0)
        tide_sim_fail(sim, "%s: %s %s", rule, rc == TIDE_OK ? "" : err.text,
                      tide_buf_cstr(&problems));
    tide_buf_done(&problems);
    tide_ledger_close(ledger, false);
}

tide_status tide_sim_ledger_run(tide_transaction *transaction, const char *sql,
                                uint64_t *number_out, tide_error *err)
{
    struct sqlite3 *db = tide_transaction_sqlite(transaction);
    while (*sql != '\0') {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, &sql);
        if (rc == SQLITE_OK)
            rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW)
            *number_out = (uint64_t)sqlite3_column_int64(stmt, 0);
        (void)sqlite3_finalize(stmt);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
            return tide_error_set(err,
                                  rc == SQLITE_FULL         ? TIDE_DISK_FULL
                                  : rc == SQLITE_CONSTRAINT ? TIDE_EXISTS
                                  : rc == SQLITE_ERROR      ? TIDE_INVALID
                                                            : TIDE_IO,
                                  "%s", sqlite3_errmsg(db));
    }
    return TIDE_OK;
}

struct sql_ask {
    const char *sql;
    uint64_t number;
};

static tide_status sql_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct sql_ask *what = arg;
    return tide_sim_ledger_run(transaction, what->sql, &what->number, err);
}

tide_status tide_sim_ledger_sql(tide_sim *sim, tide_engine *engine, const char *sql,
                                uint64_t *number_out, tide_error *err)
{
    struct sql_ask what = {sql, 0};
    const tide_status rc = tide_transact(engine, sql_run, &what, err);
    if (rc == TIDE_INVALID)
        tide_sim_fail(sim, "bad SQL in the test: %s: %s", sql, err->text);
    if (rc == TIDE_OK && number_out != NULL)
        *number_out = what.number;
    return rc;
}

void tide_sim_ledger_row(struct sqlite3_stmt *stmt)
{
    for (int i = 0; i < sqlite3_column_count(stmt); i++)
        (void)fprintf(stderr, " %s",
                      sqlite3_column_type(stmt, i) == SQLITE_NULL
                          ? "-"
                          : (const char *)sqlite3_column_text(stmt, i));
    (void)fprintf(stderr, "\n");
}
