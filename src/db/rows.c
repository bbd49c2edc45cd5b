#include "db/rows.h"

#include "base/check.h"
#include "db/db.h"
#include "db/rows_pg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* TIDE_IO, except for the failures that a caller treats in another way. */
static tide_status failed(tide_rows rows, const char *what, tide_error *err)
{
    /* Only read by what follows. */
    tide_db db = {.handle = rows.sqlite, .path = (char *)sqlite3_db_filename(rows.sqlite, "main")};
    tide_status status = tide_db_failed(&db, sqlite3_extended_errcode(rows.sqlite), what, err);
    if (status != TIDE_NO_MEMORY && status != TIDE_DISK_FULL && status != TIDE_CORRUPT &&
        status != TIDE_BUSY)
        status = TIDE_IO;
    if (err != NULL)
        err->status = status;
    return status;
}

/* ---- numbered tables ---- */

/* Of a name; other texts of a statement may have an @. */
static const char mark[] = "_@_";

static tide_status add_numbered(tide_buf *room, const char *text, uint32_t number)
{
    char digits[16];
    TIDE_ASSERT(number > 0);
    (void)snprintf(digits, sizeof digits, "%" PRIu32, number);
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(text, mark)) {
        TIDE_TRY(tide_buf_add(room, text, (size_t)(at - text) + 1));
        TIDE_TRY(tide_buf_add_text(room, digits));
        text = at + 2;
    }
    return tide_buf_add_text(room, text);
}

/* The text with its number.  *text_out is `text` itself, or in `room`, which the caller owns. */
static tide_status numbered(tide_rows rows, const char *text, const char *what, tide_buf *room,
                            const char **text_out, tide_error *err)
{
    *text_out = text;
    if (strstr(text, mark) == NULL)
        return TIDE_OK;
    const tide_status rc = add_numbered(room, text, rows.number);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "%s: no memory for a statement", what);
    *text_out = tide_buf_cstr(room);
    return TIDE_OK;
}

/* ---- tables ---- */

tide_status tide_rows_tables(tide_rows rows, const char *sql, const char *what, tide_error *err)
{
    tide_auto_buf room = tide_buf_heap(TIDE_ROWS_SQL_BYTES_MAX);
    TIDE_TRY(numbered(rows, sql, what, &room, &sql, err));
    if (rows.sqlite == NULL)
        return tide_rows_pg_tables(rows, sql, what, err);
    return sqlite3_exec(rows.sqlite, sql, NULL, NULL, NULL) == SQLITE_OK ? TIDE_OK
                                                                         : failed(rows, what, err);
}

tide_status tide_rows_has(tide_rows rows, const char *table, const char *what, bool *has_out,
                          tide_error *err)
{
    tide_auto_buf room = tide_buf_heap(TIDE_ROWS_SQL_BYTES_MAX);
    TIDE_TRY(numbered(rows, table, what, &room, &table, err));
    if (rows.sqlite == NULL)
        return tide_rows_pg_has(rows, table, what, has_out, err);
    tide_auto_rows stmt;
    bool row = false;
    TIDE_TRY(tide_rows_ask(rows, what, &stmt, err, "SELECT 1 FROM sqlite_master WHERE name = ?1",
                           table));
    TIDE_TRY(tide_rows_step(&stmt, &row, err));
    *has_out = row;
    return TIDE_OK;
}

tide_status tide_rows_snapshot(tide_rows rows, const char *what, bool *own_out, tide_error *err)
{
    if (rows.sqlite == NULL)
        return tide_rows_pg_snapshot(rows, what, own_out, err);
    *own_out = false;
    if (sqlite3_get_autocommit(rows.sqlite) == 0)
        return TIDE_OK;
    if (sqlite3_exec(rows.sqlite, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        return failed(rows, what, err);
    *own_out = true;
    return TIDE_OK;
}

void tide_rows_snapshot_end(tide_rows rows, bool own)
{
    if (!own)
        return;
    if (rows.sqlite == NULL)
        tide_rows_pg_snapshot_end(rows);
    else /* nothing was written, so nothing can be lost */
        (void)sqlite3_exec(rows.sqlite, "COMMIT", NULL, NULL, NULL);
}

/* ---- statements that are kept (RWS4) ---- */

static struct sqlite3_stmt *kept_take(struct tide_rows_kept *kept, const char *sql)
{
    for (size_t i = 0; kept != NULL && i < kept->count; i++)
        if (!kept->list[i].in_use && strcmp(sqlite3_sql(kept->list[i].stmt), sql) == 0) {
            kept->list[i].in_use = true;
            kept->list[i].used = ++kept->uses;
            return kept->list[i].stmt;
        }
    return NULL;
}

static void kept_add(struct tide_rows_kept *kept, struct sqlite3_stmt *stmt)
{
    if (kept == NULL)
        return;
    size_t at = kept->count;
    if (at == TIDE_ROWS_KEPT_MAX) {
        for (size_t i = 0; i < kept->count; i++)
            if (!kept->list[i].in_use &&
                (at == TIDE_ROWS_KEPT_MAX || kept->list[i].used < kept->list[at].used))
                at = i;
        if (at == TIDE_ROWS_KEPT_MAX)
            return;
        (void)sqlite3_finalize(kept->list[at].stmt);
    } else {
        kept->count++;
    }
    kept->list[at].stmt = stmt;
    kept->list[at].used = ++kept->uses;
    kept->list[at].in_use = true;
}

/* False: it is not among them. */
static bool kept_give(struct tide_rows_kept *kept, struct sqlite3_stmt *stmt)
{
    for (size_t i = 0; kept != NULL && i < kept->count; i++)
        if (kept->list[i].stmt == stmt) {
            (void)sqlite3_reset(stmt);
            (void)sqlite3_clear_bindings(stmt);
            kept->list[i].in_use = false;
            return true;
        }
    return false;
}

void tide_rows_kept_done(struct tide_rows_kept *kept)
{
    for (size_t i = 0; i < kept->count; i++) {
        TIDE_ASSERT(!kept->list[i].in_use);
        (void)sqlite3_finalize(kept->list[i].stmt);
    }
    kept->count = 0;
}

static tide_status prepare_sqlite(tide_rows rows, const char *sql, tide_rows_stmt *stmt,
                                  tide_error *err)
{
    stmt->sqlite = kept_take(rows.kept, sql);
    if (stmt->sqlite != NULL)
        return TIDE_OK;
    if (sqlite3_prepare_v2(rows.sqlite, sql, -1, &stmt->sqlite, NULL) != SQLITE_OK)
        return failed(rows, stmt->what, err);
    if (stmt->sqlite != NULL)
        kept_add(rows.kept, stmt->sqlite);
    return TIDE_OK;
}

tide_status tide_rows_prepare(tide_rows rows, const char *sql, const char *what,
                              tide_rows_stmt *stmt_out, tide_error *err)
{
    tide_rows_stmt stmt = {.rows = rows, .what = what};
    tide_auto_buf room = tide_buf_heap(TIDE_ROWS_SQL_BYTES_MAX);
    tide_status rc = numbered(rows, sql, what, &room, &sql, err);
    if (rc == TIDE_OK)
        rc = rows.sqlite == NULL ? tide_rows_pg_prepare(sql, &stmt, err)
                                 : prepare_sqlite(rows, sql, &stmt, err);
    *stmt_out = rc == TIDE_OK ? stmt : (tide_rows_stmt){.what = what};
    return rc;
}

/* ---- parameters ---- */

void tide_rows_u64(tide_rows_stmt *stmt, int at, uint64_t number)
{
    tide_rows_i64(stmt, at, (int64_t)number);
}

void tide_rows_i64(tide_rows_stmt *stmt, int at, int64_t number)
{
    if (stmt->sqlite != NULL)
        (void)sqlite3_bind_int64(stmt->sqlite, at, number);
    else
        tide_rows_pg_number(stmt, at, number);
}

void tide_rows_text(tide_rows_stmt *stmt, int at, tide_text text)
{
    if (stmt->sqlite != NULL)
        tide_bind_text(stmt->sqlite, at, text);
    else
        tide_rows_pg_text(stmt, at, text);
}

void tide_rows_null(tide_rows_stmt *stmt, int at)
{
    if (stmt->sqlite != NULL)
        (void)sqlite3_bind_null(stmt->sqlite, at);
    else
        tide_rows_pg_null(stmt, at);
}

void tide_rows_blob(tide_rows_stmt *stmt, int at, const void *bytes, size_t count)
{
    if (stmt->sqlite != NULL)
        (void)sqlite3_bind_blob64(stmt->sqlite, at, bytes, count, SQLITE_STATIC);
    else
        tide_rows_pg_blob(stmt, at, bytes, count);
}

/* ---- running ---- */

tide_status tide_rows_step(tide_rows_stmt *stmt, bool *row_out, tide_error *err)
{
    if (stmt->sqlite == NULL)
        return tide_rows_pg_step(stmt, row_out, err);
    const int code = sqlite3_step(stmt->sqlite);
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        return failed(stmt->rows, stmt->what, err);
    *row_out = code == SQLITE_ROW;
    return TIDE_OK;
}

tide_status tide_rows_one(tide_rows_stmt *stmt, tide_error *err)
{
    bool row = false;
    const tide_status rc = tide_rows_step(stmt, &row, err);
    return rc == TIDE_OK && !row ? TIDE_NOT_FOUND : rc;
}

void tide_rows_again(tide_rows_stmt *stmt)
{
    if (stmt->sqlite != NULL)
        (void)sqlite3_reset(stmt->sqlite);
    else
        tide_rows_pg_again(stmt);
}

bool tide_rows_next(tide_rows_stmt *stmt, tide_status *rc, tide_error *err)
{
    bool row = false;
    if (*rc == TIDE_OK)
        *rc = tide_rows_step(stmt, &row, err);
    return *rc == TIDE_OK && row;
}

static tide_status run(tide_rows_stmt *stmt, uint64_t *changed_out, tide_error *err)
{
    bool row = false;
    const tide_status rc = tide_rows_step(stmt, &row, err);
    TIDE_ASSERT(rc != TIDE_OK || !row);
    if (rc == TIDE_OK && changed_out != NULL)
        *changed_out = stmt->sqlite != NULL ? (uint64_t)sqlite3_changes64(stmt->rows.sqlite)
                                            : tide_rows_pg_changed(stmt);
    tide_rows_end(stmt);
    return rc;
}

tide_status tide_rows_run(tide_rows_stmt *stmt, tide_error *err)
{
    return run(stmt, NULL, err);
}

void tide_rows_end(tide_rows_stmt *stmt)
{
    if (stmt->sqlite != NULL && !kept_give(stmt->rows.kept, stmt->sqlite))
        (void)sqlite3_finalize(stmt->sqlite);
    if (stmt->pg != NULL)
        tide_rows_pg_end(stmt);
    stmt->sqlite = NULL;
    stmt->pg = NULL;
}

/* ---- statements with their parameters ---- */

tide_status tide_rows_ask_with(tide_rows rows, const char *what, tide_rows_stmt *stmt_out,
                               tide_error *err, const tide_value *values, size_t count)
{
    TIDE_ASSERT(count - 1 <= TIDE_ROWS_PARAMS_MAX);
    TIDE_TRY(tide_rows_prepare(rows, values[0].text.data, what, stmt_out, err));
    for (int i = 1; i < (int)count; i++) {
        if (values[i].type == TIDE_VALUE_NUMBER)
            tide_rows_i64(stmt_out, i, values[i].number);
        else if (values[i].type == TIDE_VALUE_TEXT)
            tide_rows_text(stmt_out, i, values[i].text);
        else if (values[i].type == TIDE_VALUE_BLOB)
            tide_rows_blob(stmt_out, i, values[i].text.data, values[i].text.bytes);
        else
            tide_rows_null(stmt_out, i);
    }
    return TIDE_OK;
}

tide_status tide_rows_first_with(tide_rows rows, const char *what, tide_rows_stmt *stmt_out,
                                 tide_error *err, const tide_value *values, size_t count)
{
    TIDE_TRY(tide_rows_ask_with(rows, what, stmt_out, err, values, count));
    return tide_rows_one(stmt_out, err);
}

tide_status tide_rows_change_with(tide_rows rows, const char *what, uint64_t *changed_out,
                                  tide_error *err, const tide_value *values, size_t count)
{
    tide_rows_stmt stmt;
    TIDE_TRY(tide_rows_ask_with(rows, what, &stmt, err, values, count));
    return run(&stmt, changed_out, err);
}

tide_status tide_rows_number_with(tide_rows rows, const char *what, uint64_t *number_out,
                                  tide_error *err, const tide_value *values, size_t count)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first_with(rows, what, &stmt, err, values, count));
    *number_out = tide_rows_get_u64(&stmt, 0);
    return TIDE_OK;
}

tide_status tide_rows_copy_with(tide_rows rows, const char *what, char *room, size_t room_bytes,
                                tide_error *err, const tide_value *values, size_t count)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first_with(rows, what, &stmt, err, values, count));
    tide_rows_get_copy(&stmt, 0, room, room_bytes);
    return TIDE_OK;
}

/* ---- columns ---- */

uint64_t tide_rows_get_u64(const tide_rows_stmt *stmt, int at)
{
    return (uint64_t)tide_rows_get_i64(stmt, at);
}

int64_t tide_rows_get_i64(const tide_rows_stmt *stmt, int at)
{
    return stmt->sqlite != NULL ? sqlite3_column_int64(stmt->sqlite, at)
                                : tide_rows_pg_get_i64(stmt, at);
}

bool tide_rows_get_null(const tide_rows_stmt *stmt, int at)
{
    return stmt->sqlite != NULL ? sqlite3_column_type(stmt->sqlite, at) == SQLITE_NULL
                                : tide_rows_pg_get_null(stmt, at);
}

tide_text tide_rows_get_text(const tide_rows_stmt *stmt, int at)
{
    if (stmt->sqlite == NULL)
        return tide_rows_pg_get_text(stmt, at);
    if (sqlite3_column_type(stmt->sqlite, at) != SQLITE_BLOB)
        return tide_column_text(stmt->sqlite, at);
    const char *bytes = sqlite3_column_blob(stmt->sqlite, at);
    return bytes == NULL ? TIDE_TEXT_NONE
                         : (tide_text){bytes, (size_t)sqlite3_column_bytes(stmt->sqlite, at)};
}

void tide_rows_get_copy(const tide_rows_stmt *stmt, int at, char *room, size_t room_bytes)
{
    const tide_text text = tide_rows_get_text(stmt, at);
    const size_t bytes = text.bytes < room_bytes ? text.bytes : room_bytes - 1;
    if (bytes > 0)
        memcpy(room, text.data, bytes);
    room[bytes] = '\0';
}
