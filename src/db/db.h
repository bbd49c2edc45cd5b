/* db.h - a thin helper over SQLite.
 *
 * One connection, its statements found by number and prepared once, at their first
 * use, and one mapping from SQLite's result codes to ours with a text that says what failed,
 * on which file, and what to do.  It knows nothing of jobs, holds no locks and
 * starts no threads: a connection is used by one thread at a time.
 *
 * Invariants:
 *   DB1  a statement is reset before tide_db_run() or tide_db_end() returns, also on failure, so
 *        that no read transaction outlives its call.
 *   DB2  a failed open leaves nothing open.
 *   DB3  a refused file was not written to.
 *   DB4  a statement that cannot be prepared is NULL; running it reports why, and SQLite ignores
 *        what is bound to it.
 */
#ifndef TIDE_DB_DB_H
#define TIDE_DB_DB_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "db/value.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tide_db {
    sqlite3 *handle;
    tide_mem *mem;
    char *path; /* owned */
    size_t path_bytes;
    const char **sql;     /* by number; the texts are borrowed */
    sqlite3_stmt **stmts; /* by number; NULL: not prepared yet */
    size_t stmts_count;
    int unprepared; /* SQLite's code for the last one that could not be prepared */
} tide_db;

struct tide_db_options {
    const char *path;
    const char *vfs; /* NULL: the default */
    bool read_only;
    bool must_exist;
    uint32_t busy_timeout_ms;
    uint32_t cache_kib; /* 0: 4096 */
};

/* Opens and sets what every connection of ours has in common; nothing that
 * writes to the file.  tide_db_wal() does that, once the file is known as ours. */
tide_status tide_db_open(const struct tide_db_options *options, tide_mem *mem, tide_db *db_out,
                         tide_error *err);
tide_status tide_db_wal(tide_db *db, tide_error *err);
void tide_db_close(tide_db *db); /* a zeroed one is fine */

/* For our own programs, before their first database and thread: SQLite stops
 * counting its memory, which costs a lock for each allocation (about 8 % of a
 * drain).  Process-wide, so a library must not decide it.  Harmless when late. */
void tide_db_tune_process(void);

/* Whether the file exists, by the VFS that would open it. */
tide_status tide_db_exists(const char *path, const char *vfs, bool *exists_out, tide_error *err);

/* sql[i] becomes statement i.  The texts outlive the connection, the array need not. */
tide_status tide_db_statements(tide_db *db, const char *const *sql, size_t count, tide_error *err);

/* Runs texts without parameters and without rows: schema, pragmas, begin. */
tide_status tide_db_exec(tide_db *db, const char *sql, tide_error *err);
/* The first column of the first row of a text without parameters. */
tide_status tide_db_number(tide_db *db, const char *sql, int64_t *number_out, tide_error *err);
/* SQLite's own check of the file; a line for each complaint is added. */
tide_status tide_db_quick_check(tide_db *db, tide_buf *problems, tide_error *err);

/* Reports SQLite's `code`.  `what` is what was being done. */
tide_status tide_db_failed(tide_db *db, int code, const char *what, tide_error *err);

/* Prepares statement `number` at its first use; use tide_db_stmt. */
sqlite3_stmt *tide_db_prepare(tide_db *db, size_t number);
static inline sqlite3_stmt *tide_db_stmt(tide_db *db, size_t number)
{
    return db->stmts[number] != NULL ? db->stmts[number] : tide_db_prepare(db, number);
}
/* Steps once; *row_out says whether there is a row.  Resets at the end and on
 * failure. */
tide_status tide_db_step(tide_db *db, sqlite3_stmt *stmt, bool *row_out, tide_error *err);
/* The same for a walk through all rows: while (tide_db_next(db, stmt, &rc, err)).  False at
 * the end, or after a failure (*rc_out).  A caller that stops early calls tide_db_end(). */
static inline bool tide_db_next(tide_db *db, sqlite3_stmt *stmt, tide_status *rc_out,
                                tide_error *err)
{
    bool row = false;
    *rc_out = tide_db_step(db, stmt, &row, err);
    return *rc_out == TIDE_OK && row;
}
/* Runs a statement without rows, to its end, and resets it. */
tide_status tide_db_run(tide_db *db, sqlite3_stmt *stmt, tide_error *err);
/* The same, but a broken unique index is an answer (*conflict_out), not a failure. */
tide_status tide_db_try(tide_db *db, sqlite3_stmt *stmt, bool *conflict_out, tide_error *err);
/* Leaves a statement before its last row. */
static inline void tide_db_end(sqlite3_stmt *stmt)
{
    (void)sqlite3_reset(stmt);
}

static inline void tide_db_end_at(sqlite3_stmt **stmt)
{
    tide_db_end(*stmt);
}
/* Left at the end of its block. */
#define tide_auto_stmt __attribute__((cleanup(tide_db_end_at))) sqlite3_stmt
static inline void tide_db_finalize_at(sqlite3_stmt **stmt)
{
    (void)sqlite3_finalize(*stmt);
}
/* Not one of tide_db_statements(): finalized at the end of its block; NULL is fine. */
#define tide_auto_prepared __attribute__((cleanup(tide_db_finalize_at))) sqlite3_stmt

/* Statement `number` with its parameters bound (db/value.h); borrowed until it ran. */
#define tide_db_ask(db, ...) tide_db_ask_with(db, TIDE_VALUES(__VA_ARGS__))
/* The same, and runs it: tide_db_run(). */
#define tide_db_do(db, err, ...) tide_db_do_with(db, err, TIDE_VALUES(__VA_ARGS__))
sqlite3_stmt *tide_db_ask_with(tide_db *db, const tide_value *values, size_t count);
tide_status tide_db_do_with(tide_db *db, tide_error *err, const tide_value *values, size_t count);

/* Our numbers are unsigned; SQLite stores the same 64 bits. */
static inline void tide_bind_u64(sqlite3_stmt *stmt, int at, uint64_t number)
{
    (void)sqlite3_bind_int64(stmt, at, (sqlite3_int64)number);
}
/* 0 is stored as NULL, which takes no room. */
static inline void tide_bind_u64_or_null(sqlite3_stmt *stmt, int at, uint64_t number)
{
    if (number == 0)
        (void)sqlite3_bind_null(stmt, at);
    else
        (void)sqlite3_bind_int64(stmt, at, (sqlite3_int64)number);
}
/* Borrowed until the statement is bound again or never run again. */
static inline void tide_bind_text(sqlite3_stmt *stmt, int at, tide_text text)
{
    (void)sqlite3_bind_text64(stmt, at, text.bytes == 0 ? "" : text.data, text.bytes, SQLITE_STATIC,
                              SQLITE_UTF8);
}
static inline void tide_bind_text_or_null(sqlite3_stmt *stmt, int at, tide_text text)
{
    if (text.bytes == 0)
        (void)sqlite3_bind_null(stmt, at);
    else
        tide_bind_text(stmt, at, text);
}
static inline uint64_t tide_column_u64(sqlite3_stmt *stmt, int at)
{
    return (uint64_t)sqlite3_column_int64(stmt, at);
}
static inline uint32_t tide_column_u32(sqlite3_stmt *stmt, int at)
{
    return (uint32_t)sqlite3_column_int64(stmt, at);
}
/* Borrowed until the next step; NULL is empty. */
static inline tide_text tide_column_text(sqlite3_stmt *stmt, int at)
{
    const char *data = (const char *)sqlite3_column_text(stmt, at);
    return data == NULL ? TIDE_TEXT_NONE
                        : (tide_text){data, (size_t)sqlite3_column_bytes(stmt, at)};
}
/* Copies what fits, terminated. */
void tide_column_copy(sqlite3_stmt *stmt, int at, char *room, size_t room_bytes);

#endif
