/* side.c - one of the two ledgers of a copy: opens and locks it, runs small statements. */
#include "ledger/copy/inside.h"

#include "base/check.h"
#include "ledger/home.h"
#include "ledger/postgres/postgres.h"
#include "ledger/sqlite/sqlite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SQL_BYTES = 1000, LIST_COLUMNS_MAX = 4 };

/* ---- opening ---- */

/* The lock of the directory whose state.db this is; "" for a file of another name,
 * which no engine opens. */
static tide_status lock_path(const char *path, char out[PATH_BYTES], tide_error *err)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash == NULL ? path : slash + 1;
    const int dir = slash == NULL ? 0 : (int)(slash - path + 1);
    out[0] = '\0';
    if (strcmp(file, TIDE_STATE_FILE) != 0)
        return TIDE_OK;
    if (snprintf(out, PATH_BYTES, "%.*s" TIDE_CONTROL_LOCK, dir, path) >= PATH_BYTES)
        return tide_error_set(err, TIDE_INVALID, "the path is too long: %.100s", path);
    return TIDE_OK;
}

/* No lock file is created for a source that never had an engine (LCP1). */
static bool lock_is_there(tide_world *world, const char *path)
{
    tide_auto_buf line = tide_buf_heap(4096);
    const tide_status rc = tide_file_read(world, path, 4096, &line, NULL);
    return rc != TIDE_NOT_FOUND;
}

static tide_status hold(struct copy_side *side, const char *path, bool target, tide_error *err)
{
    char lock[PATH_BYTES];
    char holder[80];
    tide_error busy = {TIDE_OK, 0, ""};
    tide_status rc = lock_path(path, lock, err);
    if (rc != TIDE_OK || lock[0] == '\0' || (!target && !lock_is_there(side->world, lock)))
        return rc;
    (void)snprintf(holder, sizeof holder, "tidemark ledger copy, process %d", (int)getpid());
    rc = tide_home_lock(side->world, lock, holder, false, &side->lock, &busy);
    if (rc == TIDE_BUSY)
        return tide_error_set(err, TIDE_BUSY,
                              "%.150s is in use (%.120s): stop that first, so that nothing "
                              "changes meanwhile",
                              path, busy.text);
    if (rc != TIDE_OK && err != NULL)
        *err = busy;
    return rc;
}

/* A member with a valid lease is using the ledger now. */
static tide_status refuse_members(struct copy_side *side, tide_error *err)
{
    tide_auto_buf name = tide_buf_heap(1 << 10);
    struct copy_answer answer = {.text = &name};
    TIDE_TRY(tide_copy_side_run(
        side,
        "SELECT name FROM tidemark.member WHERE NOT dead"
        " AND until > extract(epoch FROM clock_timestamp()) * 1000 ORDER BY joined LIMIT 1",
        NULL, 0, &answer, err));
    if (answer.row)
        return tide_error_set(err, TIDE_BUSY,
                              "%.150s is in use by a worker (%.65s): stop all workers first, so "
                              "that nothing changes meanwhile",
                              side->name, tide_buf_cstr(&name));
    return TIDE_OK;
}

/* The server must store our texts byte for byte. */
static tide_status require_utf8(struct copy_side *side, tide_error *err)
{
    tide_auto_buf encoding = tide_buf_heap(1 << 10);
    struct copy_answer answer = {.text = &encoding};
    TIDE_TRY(tide_copy_side_run(side, "SELECT current_setting('server_encoding')", NULL, 0, &answer,
                                err));
    if (strcmp(tide_buf_cstr(&encoding), "UTF8") != 0)
        return tide_error_set(err, TIDE_INVALID,
                              "%.150s stores text as %.30s: create a database with ENCODING 'UTF8'",
                              side->name, tide_buf_cstr(&encoding));
    return TIDE_OK;
}

tide_status tide_copy_side_open(struct copy_side *side, tide_world *world, const char *path,
                                bool target, tide_error *err)
{
    memset(side, 0, sizeof *side);
    side->world = world;
    tide_ledger_name(path, side->name, sizeof side->name);
    const struct tide_ledger_options options = {
        .path = path,
        .now_unix_ms = tide_world_now_unix_ms(world),
        .read_only = !target,
        .must_exist = !target,
        .building = target,
        .database_clock = true,
    };
    tide_status rc = TIDE_OK;
    if (!tide_ledger_is_postgres(path))
        rc = hold(side, path, target, err);
    if (rc == TIDE_OK)
        rc = tide_ledger_open(world, &options, &side->ledger, err);
    if (rc == TIDE_OK && tide_ledger_is_postgres(path)) {
        side->pg = postgres_of(side->ledger)->pg;
        rc = require_utf8(side, err);
        if (rc == TIDE_OK)
            rc = refuse_members(side, err);
    } else if (rc == TIDE_OK) {
        side->db = &sqlite_of(side->ledger)->db;
    }
    if (rc != TIDE_OK)
        tide_copy_side_close(side);
    return rc;
}

void tide_copy_side_close(struct copy_side *side)
{
    if (side->ledger != NULL) {
        tide_copy_side_rollback(side);
        tide_ledger_close(side->ledger, false);
    }
    if (side->lock != NULL)
        tide_file_lock_drop(side->world, side->lock);
    memset(side, 0, sizeof *side);
}

/* ---- transactions ---- */

static tide_status exec(struct copy_side *side, const char *sql, tide_error *err)
{
    return side->pg != NULL ? tide_pg_exec(side->pg, sql, err) : tide_db_exec(side->db, sql, err);
}

tide_status tide_copy_side_begin(struct copy_side *side, bool write, tide_error *err)
{
    TIDE_ASSERT(!side->in_tx);
    tide_status rc = TIDE_OK;
    if (side->pg == NULL) {
        rc = exec(side, write ? "BEGIN IMMEDIATE" : "BEGIN", err);
    } else {
        rc = tide_pg_ready(side->pg, err);
        if (rc == TIDE_OK)
            rc = exec(side,
                      write ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
                            : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                      err);
        side->in_tx = rc == TIDE_OK;
        /* A table is sorted in one statement, however long it is. */
        if (rc == TIDE_OK)
            rc = exec(side, "SET LOCAL statement_timeout = 0; SET LOCAL cursor_tuple_fraction = 1",
                      err);
    }
    side->in_tx = side->in_tx || rc == TIDE_OK;
    if (rc != TIDE_OK)
        tide_copy_side_rollback(side);
    return rc;
}

tide_status tide_copy_side_commit(struct copy_side *side, tide_error *err)
{
    TIDE_ASSERT(side->in_tx);
    const tide_status rc = exec(side, "COMMIT", err);
    if (rc == TIDE_OK)
        side->in_tx = false;
    else
        tide_copy_side_rollback(side);
    return rc;
}

void tide_copy_side_rollback(struct copy_side *side)
{
    if (!side->in_tx)
        return;
    side->in_tx = false;
    if (side->pg != NULL)
        (void)tide_pg_exec(side->pg, "ROLLBACK", NULL);
    else if (!sqlite3_get_autocommit(side->db->handle))
        (void)tide_db_exec(side->db, "ROLLBACK", NULL);
}

/* ---- statements ---- */

/* ?1 is $1 there; no text of ours has another question mark. */
static void translate(const char *sql, char out[SQL_BYTES])
{
    TIDE_ASSERT(strlen(sql) < SQL_BYTES);
    (void)snprintf(out, SQL_BYTES, "%s", sql);
    for (char *at = out; (at = strchr(at, '?')) != NULL; at++)
        *at = '$';
}

static tide_status answer_text(struct copy_answer *answer, tide_text text, tide_error *err)
{
    if (answer->text == NULL)
        return TIDE_OK;
    tide_buf_clear(answer->text);
    return tide_buf_add(answer->text, text.data, text.bytes) == TIDE_OK
               ? TIDE_OK
               : tide_error_set(err, TIDE_NO_MEMORY, "no memory for an answer of the ledger");
}

static tide_status run_pg(struct copy_side *side, const char *sql, const tide_text *params,
                          size_t count, struct copy_answer *answer, tide_error *err)
{
    char text[SQL_BYTES];
    PGresult *result = NULL;
    translate(sql, text);
    tide_pg_params(side->pg);
    for (size_t i = 0; i < count; i++)
        tide_pg_text(side->pg, params[i]);
    TIDE_TRY(tide_pg_query(side->pg, text, &result, err));
    if (answer == NULL)
        return TIDE_OK;
    answer->changed = tide_pg_changed(side->pg);
    answer->row = PQntuples(result) > 0;
    if (!answer->row)
        return TIDE_OK;
    if (PQftype(result, 0) == TIDE_PG_TEXT)
        return answer_text(answer, tide_pg_get_text(result, 0, 0), err);
    answer->number = tide_pg_get_i64(result, 0, 0);
    return TIDE_OK;
}

static tide_status run_sqlite(struct copy_side *side, const char *sql, const tide_text *params,
                              size_t count, struct copy_answer *answer, tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    int code = sqlite3_prepare_v2(side->db->handle, sql, -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(side->db, code, "prepare a statement", err);
    for (size_t i = 0; i < count; i++)
        tide_bind_text(stmt, (int)i + 1, params[i]);
    tide_status rc = TIDE_OK;
    code = sqlite3_step(stmt);
    if (answer != NULL && code == SQLITE_ROW) {
        answer->row = true;
        if (sqlite3_column_type(stmt, 0) == SQLITE_TEXT)
            rc = answer_text(answer, tide_column_text(stmt, 0), err);
        else
            answer->number = sqlite3_column_int64(stmt, 0);
    }
    while (code == SQLITE_ROW)
        code = sqlite3_step(stmt);
    if (code != SQLITE_DONE)
        rc = tide_db_failed(side->db, code, "run a statement", err);
    if (answer != NULL)
        answer->changed = (uint64_t)sqlite3_changes64(side->db->handle);
    return rc;
}

tide_status tide_copy_side_run(struct copy_side *side, const char *sql, const tide_text *params,
                               size_t params_count, struct copy_answer *answer, tide_error *err)
{
    return side->pg != NULL ? run_pg(side, sql, params, params_count, answer, err)
                            : run_sqlite(side, sql, params, params_count, answer, err);
}

static tide_status list_pg(struct copy_side *side, const char *sql, int columns,
                           tide_status (*visit)(const tide_text *columns, void *arg), void *arg,
                           tide_error *err)
{
    PGresult *result = NULL;
    tide_text texts[LIST_COLUMNS_MAX];
    char numbers[LIST_COLUMNS_MAX][24];
    tide_pg_params(side->pg);
    tide_status rc = tide_pg_query(side->pg, sql, &result, err);
    const int rows = rc == TIDE_OK ? PQntuples(result) : 0;
    for (int row = 0; rc == TIDE_OK && row < rows; row++) {
        for (int i = 0; i < columns; i++) {
            if (PQftype(result, i) == TIDE_PG_TEXT) {
                texts[i] = tide_pg_get_text(result, row, i);
                continue;
            }
            (void)snprintf(numbers[i], sizeof numbers[i], "%" PRId64,
                           tide_pg_get_i64(result, row, i));
            texts[i] = tide_text_of(numbers[i]);
        }
        rc = visit(texts, arg);
    }
    return rc;
}

static tide_status list_sqlite(struct copy_side *side, const char *sql, int columns,
                               tide_status (*visit)(const tide_text *columns, void *arg), void *arg,
                               tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    tide_text texts[LIST_COLUMNS_MAX];
    int code = sqlite3_prepare_v2(side->db->handle, sql, -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(side->db, code, "prepare a statement", err);
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < columns; i++)
            texts[i] = tide_column_text(stmt, i);
        TIDE_TRY(visit(texts, arg));
    }
    if (code != SQLITE_DONE)
        return tide_db_failed(side->db, code, "run a statement", err);
    return TIDE_OK;
}

tide_status tide_copy_side_list(struct copy_side *side, const char *sql, int columns,
                                tide_status (*visit)(const tide_text *columns, void *arg),
                                void *arg, tide_error *err)
{
    TIDE_ASSERT(columns <= LIST_COLUMNS_MAX);
    return side->pg != NULL ? list_pg(side, sql, columns, visit, arg, err)
                            : list_sqlite(side, sql, columns, visit, arg, err);
}
