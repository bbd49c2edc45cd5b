#include "mail/mail_state.h"

#include "base/check.h"
#include "db/db.h"

#include <stdio.h>

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS mail_account("
    " account INTEGER PRIMARY KEY, email TEXT NOT NULL, endpoint TEXT NOT NULL,"
    " epoch INTEGER NOT NULL, messages_total INTEGER NOT NULL, last_run_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS mail_mark("
    " stream INTEGER NOT NULL, ordinal INTEGER NOT NULL, history_id TEXT NOT NULL,"
    " PRIMARY KEY(stream, ordinal)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_shard("
    " account INTEGER NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL,"
    " generation INTEGER NOT NULL, messages INTEGER NOT NULL,"
    " PRIMARY KEY(account, name)"
    ") STRICT, WITHOUT ROWID;";

static tide_status failed(struct sqlite3 *db, const char *what, tide_error *err)
{
    return tide_error_set(err, TIDE_IO, "%s: %s", what, sqlite3_errmsg(db));
}

tide_status tide_mail_tables(struct sqlite3 *db, tide_error *err)
{
    return sqlite3_exec(db, tables, NULL, NULL, NULL) == SQLITE_OK
               ? TIDE_OK
               : failed(db, "make the tables of the mail system", err);
}

/* These statements run a few times per run of an account: preparing them each
 * time is simpler than keeping them. */
static tide_status prepare(struct sqlite3 *db, const char *sql, sqlite3_stmt **stmt_out,
                           tide_error *err)
{
    return sqlite3_prepare_v2(db, sql, -1, stmt_out, NULL) == SQLITE_OK
               ? TIDE_OK
               : failed(db, "read the mail system's rows", err);
}

static tide_status run(struct sqlite3 *db, sqlite3_stmt *stmt, tide_error *err)
{
    const int code = sqlite3_step(stmt);
    (void)sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? TIDE_OK : failed(db, "write the mail system's rows", err);
}

static void copy_text(sqlite3_stmt *stmt, int at, char *out, size_t out_bytes)
{
    const unsigned char *text = sqlite3_column_text(stmt, at);
    (void)snprintf(out, out_bytes, "%s", text == NULL ? "" : (const char *)text);
}

/* ---- accounts ---- */

tide_status tide_mail_row_put(struct sqlite3 *db, const struct tide_mail_row *row, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc =
        prepare(db,
                "INSERT OR REPLACE INTO mail_account(account, email, endpoint, epoch,"
                " messages_total, last_run_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, row->account);
    tide_bind_text(stmt, 2, tide_text_of(row->email));
    tide_bind_text(stmt, 3, tide_text_of(row->endpoint));
    tide_bind_u64(stmt, 4, row->epoch);
    tide_bind_u64(stmt, 5, row->messages_total);
    tide_bind_u64(stmt, 6, row->last_run_ms);
    return run(db, stmt, err);
}

static void row_read(sqlite3_stmt *stmt, struct tide_mail_row *row)
{
    *row = (struct tide_mail_row){.account = tide_column_u32(stmt, 0),
                                  .epoch = tide_column_u32(stmt, 3),
                                  .messages_total = tide_column_u64(stmt, 4),
                                  .last_run_ms = tide_column_u64(stmt, 5)};
    copy_text(stmt, 1, row->email, sizeof row->email);
    copy_text(stmt, 2, row->endpoint, sizeof row->endpoint);
}

tide_status tide_mail_row_get(struct sqlite3 *db, uint32_t account, struct tide_mail_row *row_out,
                              tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = prepare(db,
                             "SELECT account, email, endpoint, epoch, messages_total, last_run_ms"
                             " FROM mail_account WHERE account = ?1",
                             &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        row_read(stmt, row_out);
    else if (code == SQLITE_DONE)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "this is not an account of the mail system");
    else
        rc = failed(db, "read the mail system's rows", err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_mail_rows(struct sqlite3 *db,
                           void (*visit)(const struct tide_mail_row *row, void *arg), void *arg,
                           tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = prepare(db,
                             "SELECT account, email, endpoint, epoch, messages_total, last_run_ms"
                             " FROM mail_account ORDER BY email",
                             &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct tide_mail_row row;
        row_read(stmt, &row);
        visit(&row, arg);
    }
    if (code != SQLITE_DONE)
        rc = failed(db, "read the mail system's rows", err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_mail_row_remove(struct sqlite3 *db, uint32_t account, tide_error *err)
{
    static const char *const texts[] = {"DELETE FROM mail_shard WHERE account = ?1",
                                        "DELETE FROM mail_account WHERE account = ?1"};
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof texts / sizeof texts[0]; i++) {
        sqlite3_stmt *stmt = NULL;
        rc = prepare(db, texts[i], &stmt, err);
        if (rc == TIDE_OK) {
            tide_bind_u64(stmt, 1, account);
            rc = run(db, stmt, err);
        }
    }
    return rc;
}

/* ---- marks ---- */

tide_status tide_mail_mark_put(struct sqlite3 *db, uint64_t stream, uint64_t ordinal,
                               tide_text history_id, tide_error *err)
{
    TIDE_ASSERT(history_id.bytes > 0);
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = prepare(
        db, "INSERT OR REPLACE INTO mail_mark(stream, ordinal, history_id) VALUES(?1, ?2, ?3)",
        &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, stream);
    tide_bind_u64(stmt, 2, ordinal);
    tide_bind_text(stmt, 3, history_id);
    return run(db, stmt, err);
}

tide_status tide_mail_mark_get(struct sqlite3 *db, uint64_t stream, uint64_t finished,
                               char history_id_out[64], tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = prepare(db,
                             "SELECT history_id FROM mail_mark WHERE stream = ?1 AND ordinal < ?2"
                             " ORDER BY ordinal DESC LIMIT 1",
                             &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, stream);
    tide_bind_u64(stmt, 2, finished);
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        copy_text(stmt, 0, history_id_out, 64);
    else if (code == SQLITE_DONE)
        rc = TIDE_NOT_FOUND;
    else
        rc = failed(db, "read the mail system's rows", err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- shards ---- */

tide_status tide_mail_shard_put(struct sqlite3 *db, uint32_t account,
                                const struct tide_shard_state *shard, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = prepare(db,
                                   "INSERT OR REPLACE INTO mail_shard(account, name, id,"
                                   " generation, messages) VALUES(?1, ?2, ?3, ?4, ?5)",
                                   &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(shard->name));
    tide_bind_text(stmt, 3, tide_text_of(shard->id));
    tide_bind_u64(stmt, 4, shard->generation);
    tide_bind_u64(stmt, 5, shard->messages);
    return run(db, stmt, err);
}

tide_status tide_mail_shards(struct sqlite3 *db, uint32_t account,
                             void (*visit)(const struct tide_shard_state *shard, void *arg),
                             void *arg, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = prepare(
        db, "SELECT name, id, generation, messages FROM mail_shard WHERE account = ?1", &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct tide_shard_state shard = {.generation = tide_column_u64(stmt, 2),
                                         .messages = tide_column_u64(stmt, 3)};
        copy_text(stmt, 0, shard.name, sizeof shard.name);
        copy_text(stmt, 1, shard.id, sizeof shard.id);
        visit(&shard, arg);
    }
    if (code != SQLITE_DONE)
        rc = failed(db, "read the mail system's rows", err);
    (void)sqlite3_finalize(stmt);
    return rc;
}
