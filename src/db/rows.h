/* rows.h - rarely run statements in a caller's transaction, on SQLite and PostgreSQL.
 *
 * The systems on the engine keep rows of their own beside the ledger (E1.6) and get a
 * bare connection for the length of a transaction.  Their statements run a few times
 * in a run: preparing each when it is needed is simpler than keeping it.  Hot statements
 * use db.h and pg.h, which keep them prepared.  One look at many accounts runs the same ones
 * for each of them, and so do the ends of many jobs: a connection may keep those (struct
 * tide_rows_kept).
 *
 * A statement is written once, in the part of SQL that both databases read alike, with
 * ?1, ?2, ... for its parameters.  For PostgreSQL it is translated (tide_rows_translate()):
 *   - ?1 becomes $1; a table's name (the word after FROM, JOIN, INTO, UPDATE, TABLE, and after
 *     ON in CREATE INDEX) gets the ledger's schema before it.  So joins are written with JOIN,
 *     and no query is named by WITH.
 *   - in definitions of tables, INTEGER is bigint, TEXT is text that compares byte by byte
 *     as on SQLite, BLOB is bytea; INTEGER PRIMARY KEY gives numbers by itself; STRICT and
 *     WITHOUT ROWID are removed.
 *   - COLLATE BINARY, byte by byte, is COLLATE "C".
 * Tables that exist several times have "_@_" in their names, and in those of their indexes:
 * "drive_@_item".  In every text that these functions take, its '@' becomes the number of `rows`; a
 * text with it and rows without a number are a bug.
 * Do not write what only one of them knows: INSERT OR ..., min(a, b), iif, json_each, and
 * sum() without CAST(... AS bigint); in ON CONFLICT ... WHERE qualify a column of the
 * existing row by its table.
 *
 * Invariants:
 *   RWS1  all rows of a PostgreSQL statement are in memory before the first is read, so other
 *         statements may run while the caller walks through them, as on SQLite.
 *   RWS2  a failed statement on PostgreSQL ends the transaction; its status says whether a retry
 *         makes sense (TIDE_NETWORK, TIDE_BUSY), so the caller must return it.
 *   RWS3  text that is not UTF-8 is stored too: PostgreSQL gets U+FFFD for each byte it would
 *         refuse (a message cut in the middle of a character must not fail a run).
 *   RWS4  a kept statement is used by one caller at a time, and between two uses it is reset and
 *         nothing is bound to it: it holds no lock and shows no value of the use before.
 */
#ifndef TIDE_DB_ROWS_H
#define TIDE_DB_ROWS_H

#include "base/buf.h"
#include "base/status.h"
#include "base/text.h"
#include "db/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;
struct pg_conn;

enum { TIDE_ROWS_KEPT_MAX = 64 };

/* Statements of a SQLite connection that stay prepared; embedded, zeroed at first.  Beyond the bound a
 * new one takes the place of the one that was used longest ago. */
struct tide_rows_kept {
    struct {
        struct sqlite3_stmt *stmt;
        uint64_t used; /* when, by `uses` */
        bool in_use;
    } list[TIDE_ROWS_KEPT_MAX];
    size_t count;
    uint64_t uses;
};
/* Before the connection is closed; no statement is under way. */
void tide_rows_kept_done(struct tide_rows_kept *kept);

/* A connection; one of the two is NULL.  Both are: the server cannot be reached
 * now (TIDE_NETWORK). */
typedef struct tide_rows {
    struct sqlite3 *sqlite;
    struct pg_conn *postgres;    /* PGconn */
    struct tide_rows_kept *kept; /* borrowed; NULL: none is */
    uint32_t number;             /* what '@' stands for; 0: nothing */
} tide_rows;

enum { TIDE_ROWS_PARAMS_MAX = 16, TIDE_ROWS_SQL_BYTES_MAX = 64 << 10 };

/* A statement under way; embedded.  Zeroed, or after tide_rows_end(), it holds nothing. */
typedef struct tide_rows_stmt {
    tide_rows rows;
    const char *what;
    struct sqlite3_stmt *sqlite;
    struct tide_rows_pg *pg;
} tide_rows_stmt;

/* Creates missing tables and indexes: `sql` holds only CREATE ... IF NOT EXISTS.  Any number
 * of processes may do it at once.  If all of them exist, a role without the right to create
 * tables is enough. */
tide_status tide_rows_tables(tide_rows rows, const char *sql, const char *what, tide_error *err);
/* Whether there is a table of that name. */
tide_status tide_rows_has(tide_rows rows, const char *table, const char *what, bool *has_out,
                          tide_error *err);

/* One snapshot for all statements until the end.  *own_out: whether one was begun; false: a
 * transaction was open already, and is used. */
tide_status tide_rows_snapshot(tide_rows rows, const char *what, bool *own_out, tide_error *err);
void tide_rows_snapshot_end(tide_rows rows, bool own);

/* ---- statements with their parameters ----
 *
 * Each of these takes the text of the statement and the values of ?1, ?2, ...: numbers, strings,
 * tide_text, or a tide_value (db/value.h).  They are borrowed until the statement ran.
 * `what` names the rows in an error: "the mail system's rows"; borrowed until the end.
 *
 *     rc = tide_rows_do(db, WHAT, err, "DELETE FROM mail_mark WHERE stream = ?1", stream); */

/* Begins it.  The caller ends it in any case. */
#define tide_rows_ask(rows, what, stmt_out, err, ...)                                              \
    tide_rows_ask_with(rows, what, stmt_out, err, TIDE_VALUES(__VA_ARGS__))
/* Begins it and reads the first row: tide_rows_one().  The caller ends it in any case. */
#define tide_rows_first(rows, what, stmt_out, err, ...)                                            \
    tide_rows_first_with(rows, what, stmt_out, err, TIDE_VALUES(__VA_ARGS__))
/* Runs a statement without rows. */
#define tide_rows_do(rows, what, err, ...) tide_rows_change(rows, what, NULL, err, __VA_ARGS__)
/* The same; *changed_out: how many rows it inserted, changed or deleted. */
#define tide_rows_change(rows, what, changed_out, err, ...)                                        \
    tide_rows_change_with(rows, what, changed_out, err, TIDE_VALUES(__VA_ARGS__))
/* The first column of the first row, as a number; TIDE_NOT_FOUND as in tide_rows_one(). */
#define tide_rows_number(rows, what, number_out, err, ...)                                         \
    tide_rows_number_with(rows, what, number_out, err, TIDE_VALUES(__VA_ARGS__))

/* The first column of the first row, copied as by tide_rows_get_copy(). */
#define tide_rows_copy(rows, what, room, room_bytes, err, ...)                                     \
    tide_rows_copy_with(rows, what, room, room_bytes, err, TIDE_VALUES(__VA_ARGS__))

/* For the macros above; values[0] is the text of the statement. */
tide_status tide_rows_ask_with(tide_rows rows, const char *what, tide_rows_stmt *stmt_out,
                               tide_error *err, const tide_value *values, size_t count);
tide_status tide_rows_first_with(tide_rows rows, const char *what, tide_rows_stmt *stmt_out,
                                 tide_error *err, const tide_value *values, size_t count);
tide_status tide_rows_change_with(tide_rows rows, const char *what, uint64_t *changed_out,
                                  tide_error *err, const tide_value *values, size_t count);
tide_status tide_rows_number_with(tide_rows rows, const char *what, uint64_t *number_out,
                                  tide_error *err, const tide_value *values, size_t count);
tide_status tide_rows_copy_with(tide_rows rows, const char *what, char *room, size_t room_bytes,
                                tide_error *err, const tide_value *values, size_t count);

/* For a statement that runs several times: after TIDE_OK the caller binds the values below, steps,
 * and ends it. */
tide_status tide_rows_prepare(tide_rows rows, const char *sql, const char *what,
                              tide_rows_stmt *stmt_out, tide_error *err);
/* Parameters from 1; what is not bound is NULL, but the last must be bound. */
void tide_rows_u64(tide_rows_stmt *stmt, int at, uint64_t number);
void tide_rows_i64(tide_rows_stmt *stmt, int at, int64_t number);
void tide_rows_text(tide_rows_stmt *stmt, int at, tide_text text);
void tide_rows_blob(tide_rows_stmt *stmt, int at, const void *bytes, size_t count);
void tide_rows_null(tide_rows_stmt *stmt, int at);
/* A text[] of PostgreSQL; there is nothing like it on SQLite. */
void tide_rows_texts(tide_rows_stmt *stmt, int at, const tide_text *texts, size_t count);

/* ---- running ---- */

/* The next row; *row_out says whether there is one. */
tide_status tide_rows_step(tide_rows_stmt *stmt, bool *row_out, tide_error *err);
/* The same, for a loop.  false: *rc was not TIDE_OK or is not any more, or there is no row. */
bool tide_rows_next(tide_rows_stmt *stmt, tide_status *rc, tide_error *err);
/* The first one.  TIDE_OK: there is a row; TIDE_NOT_FOUND: there is none, and `err` is as it
 * was.  The caller ends the statement in any case. */
tide_status tide_rows_one(tide_rows_stmt *stmt, tide_error *err);
/* Resets it, to be stepped from the start with the same parameters or others. */
void tide_rows_again(tide_rows_stmt *stmt);
/* Runs a statement without rows, and ends it. */
tide_status tide_rows_run(tide_rows_stmt *stmt, tide_error *err);
void tide_rows_end(tide_rows_stmt *stmt); /* a zeroed one is fine */
/* Ended at the end of its block. */
#define tide_auto_rows __attribute__((cleanup(tide_rows_end))) tide_rows_stmt

/* ---- columns of the row, from 0; borrowed until the next step ---- */

uint64_t tide_rows_get_u64(const tide_rows_stmt *stmt, int at); /* NULL: 0 */
int64_t tide_rows_get_i64(const tide_rows_stmt *stmt, int at);
static inline uint32_t tide_rows_get_u32(const tide_rows_stmt *stmt, int at)
{
    return (uint32_t)tide_rows_get_i64(stmt, at);
}
bool tide_rows_get_null(const tide_rows_stmt *stmt, int at);
tide_text tide_rows_get_text(const tide_rows_stmt *stmt, int at); /* of blobs too; NULL: empty */
/* Copies what fits, terminated. */
void tide_rows_get_copy(const tide_rows_stmt *stmt, int at, char *room, size_t room_bytes);

/* ---- for tests ---- */

/* The text for PostgreSQL is added to `out`.  TIDE_NO_MEMORY, TIDE_FULL. */
tide_status tide_rows_translate(const char *sql, tide_buf *out);

#endif
