#include "mail/mail_state.h"

#include "base/check.h"
#include "db/rows.h"

#include <stdio.h>

#define WHAT "the mail system's rows"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS mail_account("
    " account INTEGER PRIMARY KEY, email TEXT NOT NULL, endpoint TEXT NOT NULL,"
    " epoch INTEGER NOT NULL, messages_total INTEGER NOT NULL, last_run_ms INTEGER NOT NULL,"
    " since_ms INTEGER NOT NULL, floor_ms INTEGER NOT NULL, lost_ms INTEGER,"
    " rewind_ms INTEGER NOT NULL, notice TEXT NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS mail_mark("
    " stream INTEGER NOT NULL, ordinal INTEGER NOT NULL, history_id TEXT NOT NULL,"
    " PRIMARY KEY(stream, ordinal)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_shard("
    " account INTEGER NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL,"
    " generation INTEGER NOT NULL, messages INTEGER NOT NULL,"
    " PRIMARY KEY(account, name)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_proof("
    " account INTEGER NOT NULL, id TEXT NOT NULL, generation INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, history_id TEXT NOT NULL, PRIMARY KEY(account, id, generation)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_listing("
    " id INTEGER PRIMARY KEY, account INTEGER NOT NULL, from_ms INTEGER NOT NULL,"
    " begun_ms INTEGER NOT NULL, spans_left INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS mail_seen("
    " listing INTEGER NOT NULL, gmail_id TEXT NOT NULL, PRIMARY KEY(listing, gmail_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_epoch("
    " account INTEGER PRIMARY KEY, epoch INTEGER NOT NULL"
    ") STRICT;";

#define ROW_COLUMNS                                                                                \
    "account, email, endpoint, epoch, messages_total, last_run_ms, since_ms, floor_ms, lost_ms,"   \
    " rewind_ms, notice"

tide_status tide_mail_tables(struct sqlite3 *db, tide_error *err)
{
    return tide_rows_exec(db, tables, WHAT, err);
}

/* ---- accounts ---- */

tide_status tide_mail_row_put(struct sqlite3 *db, const struct tide_mail_row *row, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc =
        tide_rows_prepare(db,
                          "INSERT OR REPLACE INTO mail_account(" ROW_COLUMNS
                          ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, row->account);
    tide_bind_text(stmt, 2, tide_text_of(row->email));
    tide_bind_text(stmt, 3, tide_text_of(row->endpoint));
    tide_bind_u64(stmt, 4, row->epoch);
    tide_bind_u64(stmt, 5, row->messages_total);
    tide_bind_u64(stmt, 6, row->last_run_ms);
    tide_bind_u64(stmt, 7, row->since_ms);
    tide_bind_u64(stmt, 8, row->floor_ms);
    if (row->lost)
        tide_bind_u64(stmt, 9, row->lost_ms);
    tide_bind_u64(stmt, 10, row->rewind_ms);
    tide_bind_text(stmt, 11, tide_text_of(row->notice));
    return tide_rows_run(db, stmt, WHAT, err);
}

static void row_read(sqlite3_stmt *stmt, struct tide_mail_row *row)
{
    *row = (struct tide_mail_row){.account = tide_column_u32(stmt, 0),
                                  .epoch = tide_column_u32(stmt, 3),
                                  .messages_total = tide_column_u64(stmt, 4),
                                  .last_run_ms = tide_column_u64(stmt, 5),
                                  .since_ms = tide_column_u64(stmt, 6),
                                  .floor_ms = tide_column_u64(stmt, 7),
                                  .lost = sqlite3_column_type(stmt, 8) != SQLITE_NULL,
                                  .rewind_ms = tide_column_u64(stmt, 9)};
    row->lost_ms = row->lost ? tide_column_u64(stmt, 8) : 0;
    tide_column_copy(stmt, 10, row->notice, sizeof row->notice);
    tide_column_copy(stmt, 1, row->email, sizeof row->email);
    tide_column_copy(stmt, 2, row->endpoint, sizeof row->endpoint);
}

tide_status tide_mail_row_get(struct sqlite3 *db, uint32_t account, struct tide_mail_row *row_out,
                              tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(
        db, "SELECT " ROW_COLUMNS " FROM mail_account WHERE account = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        row_read(stmt, row_out);
    else if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "this is not an account of the mail system");
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_mail_rows(struct sqlite3 *db,
                           void (*visit)(const struct tide_mail_row *row, void *arg), void *arg,
                           tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(
        db, "SELECT " ROW_COLUMNS " FROM mail_account ORDER BY email", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct tide_mail_row row;
        row_read(stmt, &row);
        visit(&row, arg);
    }
    return tide_rows_end(db, stmt, code, WHAT, err);
}

/* One statement with the account as ?1. */
static tide_status run_for(struct sqlite3 *db, const char *sql, uint64_t number, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(db, sql, WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, number);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_mail_row_remove(struct sqlite3 *db, uint32_t account, tide_error *err)
{
    static const char *const texts[] = {
        ("INSERT OR REPLACE INTO mail_epoch SELECT account, epoch + 1 FROM mail_account"
         " WHERE account = ?1"),
        "DELETE FROM mail_shard WHERE account = ?1",
        "DELETE FROM mail_proof WHERE account = ?1",
        "DELETE FROM mail_seen WHERE listing IN (SELECT id FROM mail_listing WHERE account = ?1)",
        "DELETE FROM mail_listing WHERE account = ?1",
        "DELETE FROM mail_account WHERE account = ?1",
    };
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof texts / sizeof texts[0]; i++)
        rc = run_for(db, texts[i], account, err);
    return rc;
}

/* The first column of the first row, as a number. */
static tide_status get_u64(struct sqlite3 *db, sqlite3_stmt *stmt, uint64_t *number_out,
                           tide_error *err)
{
    const tide_status rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        *number_out = tide_column_u64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* The same for a text of at most 63 bytes. */
static tide_status get_text(struct sqlite3 *db, sqlite3_stmt *stmt, char text_out[64],
                            tide_error *err)
{
    const tide_status rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        tide_column_copy(stmt, 0, text_out, 64);
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_mail_epoch_get(struct sqlite3 *db, uint32_t account, uint32_t *epoch_out,
                                tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    uint64_t epoch = 0;
    tide_status rc =
        tide_rows_prepare(db, "SELECT epoch FROM mail_epoch WHERE account = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    rc = get_u64(db, stmt, &epoch, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    *epoch_out = (uint32_t)epoch;
    return TIDE_OK;
}

tide_status tide_mail_lost_put(struct sqlite3 *db, uint32_t account, uint64_t lost_ms,
                               uint64_t rewind_ms, const char *notice, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db,
        "UPDATE mail_account SET lost_ms = min(?2, coalesce(lost_ms, ?2)), notice = ?4,"
        " rewind_ms = coalesce(min(nullif(rewind_ms, 0), nullif(?3, 0)),"
        "  nullif(rewind_ms, 0), ?3) WHERE account = ?1",
        WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_u64(stmt, 2, lost_ms);
    tide_bind_u64(stmt, 3, rewind_ms);
    tide_bind_text(stmt, 4, tide_text_of(notice));
    return tide_rows_run(db, stmt, WHAT, err);
}

/* ---- marks ---- */

tide_status tide_mail_mark_put(struct sqlite3 *db, uint64_t stream, uint64_t ordinal,
                               tide_text history_id, tide_error *err)
{
    TIDE_ASSERT(history_id.bytes > 0);
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db, "INSERT OR REPLACE INTO mail_mark(stream, ordinal, history_id) VALUES(?1, ?2, ?3)",
        WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, stream);
    tide_bind_u64(stmt, 2, ordinal);
    tide_bind_text(stmt, 3, history_id);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_mail_mark_get(struct sqlite3 *db, uint64_t stream, uint64_t finished,
                               char history_id_out[64], tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db,
                          "SELECT history_id FROM mail_mark WHERE stream = ?1 AND ordinal < ?2"
                          " ORDER BY ordinal DESC LIMIT 1",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, stream);
    tide_bind_u64(stmt, 2, finished);
    return get_text(db, stmt, history_id_out, err);
}

tide_status tide_mail_mark_first(struct sqlite3 *db, uint64_t stream, char history_id_out[64],
                                 tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db, "SELECT history_id FROM mail_mark WHERE stream = ?1 ORDER BY ordinal LIMIT 1", WHAT,
        &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, stream);
    return get_text(db, stmt, history_id_out, err);
}

tide_status tide_mail_mark_prune(struct sqlite3 *db, uint64_t stream, uint64_t finished,
                                 tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (finished == UINT64_MAX)
        return run_for(db, "DELETE FROM mail_mark WHERE stream = ?1", stream, err);
    const tide_status rc = tide_rows_prepare(db,
                                             "DELETE FROM mail_mark WHERE stream = ?1 AND ordinal <"
                                             " (SELECT max(ordinal) FROM mail_mark"
                                             "  WHERE stream = ?1 AND ordinal < ?2)",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, stream);
    tide_bind_u64(stmt, 2, finished);
    return tide_rows_run(db, stmt, WHAT, err);
}

/* ---- shards ---- */

static tide_status shard_run(struct sqlite3 *db, const char *sql, uint32_t account,
                             const struct tide_shard_state *shard, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(db, sql, WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(shard->name));
    tide_bind_text(stmt, 3, tide_text_of(shard->id));
    tide_bind_u64(stmt, 4, shard->generation);
    tide_bind_u64(stmt, 5, shard->messages);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_mail_shard_put(struct sqlite3 *db, uint32_t account,
                                const struct tide_shard_state *shard, tide_error *err)
{
    return shard_run(db,
                     "INSERT OR REPLACE INTO mail_shard(account, name, id, generation, messages)"
                     " VALUES(?1, ?2, ?3, ?4, ?5)",
                     account, shard, err);
}

tide_status tide_mail_shard_note(struct sqlite3 *db, uint32_t account,
                                 const struct tide_shard_state *shard, tide_error *err)
{
    return shard_run(db,
                     "INSERT INTO mail_shard(account, name, id, generation, messages)"
                     " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(account, name) DO UPDATE"
                     " SET generation = excluded.generation, messages = excluded.messages"
                     " WHERE id = excluded.id AND generation < excluded.generation",
                     account, shard, err);
}

tide_status tide_mail_shard_forget(struct sqlite3 *db, uint32_t account, const char *name,
                                   tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db, "DELETE FROM mail_shard WHERE account = ?1 AND name = ?2", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(name));
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_mail_shards(struct sqlite3 *db, uint32_t account,
                             void (*visit)(const struct tide_shard_state *shard, void *arg),
                             void *arg, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(
        db, "SELECT name, id, generation, messages FROM mail_shard WHERE account = ?1", WHAT, &stmt,
        err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct tide_shard_state shard = {.generation = tide_column_u64(stmt, 2),
                                         .messages = tide_column_u64(stmt, 3)};
        tide_column_copy(stmt, 0, shard.name, sizeof shard.name);
        tide_column_copy(stmt, 1, shard.id, sizeof shard.id);
        visit(&shard, arg);
    }
    return tide_rows_end(db, stmt, code, WHAT, err);
}

tide_status tide_mail_proof_put(struct sqlite3 *db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t at_ms,
                                tide_text history_id, tide_error *err)
{
    /* Generations above this one are those of a copy that is lost.  The latest ones
     * below are enough: history ids expire sooner than that. */
    static const char forget[] =
        "DELETE FROM mail_proof WHERE account = ?1 AND id = ?2 AND (generation > ?3 OR generation <"
        " (SELECT generation FROM mail_proof WHERE account = ?1 AND id = ?2"
        "  ORDER BY generation DESC LIMIT 1 OFFSET 63))";
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db,
                          "INSERT OR REPLACE INTO mail_proof(account, id, generation, at_ms,"
                          " history_id) VALUES(?1, ?2, ?3, ?4, ?5)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(shard->id));
    tide_bind_u64(stmt, 3, shard->generation);
    tide_bind_u64(stmt, 4, at_ms);
    tide_bind_text(stmt, 5, history_id);
    rc = tide_rows_run(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        rc = tide_rows_prepare(db, forget, WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(shard->id));
    tide_bind_u64(stmt, 3, shard->generation);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_mail_proof_get(struct sqlite3 *db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t *at_ms_out,
                                tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(db,
                                             "SELECT at_ms FROM mail_proof WHERE account = ?1"
                                             " AND id = ?2 AND generation <= ?3"
                                             " ORDER BY generation DESC LIMIT 1",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(shard->id));
    tide_bind_u64(stmt, 3, shard->generation);
    return get_u64(db, stmt, at_ms_out, err);
}

tide_status tide_mail_proof_history(struct sqlite3 *db, uint32_t account, uint64_t at_ms,
                                    char history_id_out[64], tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db, "SELECT history_id FROM mail_proof WHERE account = ?1 AND at_ms = ?2 LIMIT 1", WHAT,
        &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_u64(stmt, 2, at_ms);
    return get_text(db, stmt, history_id_out, err);
}

/* ---- listings ---- */

tide_status tide_mail_listing_put(struct sqlite3 *db, const struct tide_mail_listing *listing,
                                  tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc =
        tide_rows_prepare(db,
                          "INSERT INTO mail_listing(id, account, from_ms, begun_ms, spans_left)"
                          " VALUES(?1, ?2, ?3, ?4, ?5)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, listing->id);
    tide_bind_u64(stmt, 2, listing->account);
    tide_bind_u64(stmt, 3, listing->from_ms);
    tide_bind_u64(stmt, 4, listing->begun_ms);
    tide_bind_u64(stmt, 5, listing->left);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_mail_listing_get(struct sqlite3 *db, uint64_t id,
                                  struct tide_mail_listing *listing_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(
        db, "SELECT id, account, from_ms, begun_ms, spans_left FROM mail_listing WHERE id = ?1",
        WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, id);
    rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        *listing_out = (struct tide_mail_listing){.id = tide_column_u64(stmt, 0),
                                                  .account = tide_column_u32(stmt, 1),
                                                  .from_ms = tide_column_u64(stmt, 2),
                                                  .begun_ms = tide_column_u64(stmt, 3),
                                                  .left = tide_column_u64(stmt, 4)};
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_mail_listing_open(struct sqlite3 *db, uint32_t account, bool *open_out,
                                   tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    uint64_t count = 0;
    tide_status rc = tide_rows_prepare(db, "SELECT count(*) FROM mail_listing WHERE account = ?1",
                                       WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    rc = get_u64(db, stmt, &count, err);
    if (rc == TIDE_OK)
        *open_out = count > 0;
    return rc;
}

tide_status tide_mail_listing_step(struct sqlite3 *db, uint64_t id, uint64_t more,
                                   uint64_t *left_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc =
        tide_rows_prepare(db,
                          "UPDATE mail_listing SET spans_left = spans_left + ?2 - 1 WHERE id = ?1"
                          " AND spans_left > 0 RETURNING spans_left",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, id);
    tide_bind_u64(stmt, 2, more);
    return get_u64(db, stmt, left_out, err);
}

tide_status tide_mail_seen_add(struct sqlite3 *db, uint64_t listing, const tide_text *ids,
                               size_t count, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(
        db, "INSERT OR IGNORE INTO mail_seen(listing, gmail_id) VALUES(?1, ?2)", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, listing);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        tide_bind_text(stmt, 2, ids[i]);
        if (sqlite3_step(stmt) != SQLITE_DONE)
            rc = tide_rows_failed(db, WHAT, err);
        (void)sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_mail_seen_get(struct sqlite3 *db, uint64_t listing, const tide_text *ids,
                               size_t count, bool *seen_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(
        db, "SELECT 1 FROM mail_seen WHERE listing = ?1 AND gmail_id = ?2", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, listing);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        tide_bind_text(stmt, 2, ids[i]);
        const int code = sqlite3_step(stmt);
        seen_out[i] = code == SQLITE_ROW;
        if (code != SQLITE_ROW && code != SQLITE_DONE)
            rc = tide_rows_failed(db, WHAT, err);
        (void)sqlite3_reset(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_mail_seen_forget(struct sqlite3 *db, uint64_t listing, uint32_t rows_max,
                                  bool *empty_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db,
                          "DELETE FROM mail_seen WHERE listing = ?1 AND gmail_id IN"
                          " (SELECT gmail_id FROM mail_seen WHERE listing = ?1 LIMIT ?2)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, listing);
    tide_bind_u64(stmt, 2, rows_max);
    rc = tide_rows_run(db, stmt, WHAT, err);
    if (rc != TIDE_OK)
        return rc;
    const bool empty = (uint32_t)sqlite3_changes(db) < rows_max;
    if (empty)
        rc = run_for(db, "DELETE FROM mail_listing WHERE id = ?1", listing, err);
    if (rc == TIDE_OK)
        *empty_out = empty;
    return rc;
}
