#include "mail/rows.h"

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
    "CREATE TABLE IF NOT EXISTS mail_only("
    " account INTEGER NOT NULL, gmail_id TEXT NOT NULL, shard TEXT NOT NULL,"
    " accepted_ms INTEGER NOT NULL, PRIMARY KEY(account, gmail_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_only_seen("
    " account INTEGER NOT NULL, name TEXT NOT NULL, gone INTEGER NOT NULL,"
    " gone_sum INTEGER NOT NULL, PRIMARY KEY(account, name)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_loss("
    " account INTEGER NOT NULL, name TEXT NOT NULL, messages INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, PRIMARY KEY(account, name)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS mail_labels("
    " listing INTEGER PRIMARY KEY, account INTEGER NOT NULL, history_id TEXT NOT NULL,"
    " from_ms INTEGER NOT NULL, begun_ms INTEGER NOT NULL, dates INTEGER NOT NULL,"
    " label TEXT NOT NULL, refused INTEGER NOT NULL, unsure INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS mail_inexact(account INTEGER PRIMARY KEY) STRICT;"
    "CREATE TABLE IF NOT EXISTS mail_epoch("
    " account INTEGER PRIMARY KEY, epoch INTEGER NOT NULL"
    ") STRICT;";

#define ROW_COLUMNS                                                                                \
    "account, email, endpoint, epoch, messages_total, last_run_ms, since_ms, floor_ms, lost_ms,"   \
    " rewind_ms, notice"

tide_status tide_mail_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db, tables, WHAT, err);
}

/* ---- accounts ---- */

tide_status tide_mail_row_put(tide_rows db, const struct tide_mail_row *row, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_account(" ROW_COLUMNS
                        ") VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
                        " ON CONFLICT(account) DO UPDATE SET email = ?2, endpoint = ?3,"
                        " epoch = ?4, messages_total = ?5, last_run_ms = ?6, since_ms = ?7,"
                        " floor_ms = ?8, lost_ms = ?9, rewind_ms = ?10, notice = ?11",
                        row->account, row->email, row->endpoint, row->epoch, row->messages_total,
                        row->last_run_ms, row->since_ms, row->floor_ms,
                        tide_value_if(row->lost, row->lost_ms), row->rewind_ms, row->notice);
}

static void row_read(const tide_rows_stmt *stmt, struct tide_mail_row *row)
{
    *row = (struct tide_mail_row){.account = tide_rows_get_u32(stmt, 0),
                                  .epoch = tide_rows_get_u32(stmt, 3),
                                  .messages_total = tide_rows_get_u64(stmt, 4),
                                  .last_run_ms = tide_rows_get_u64(stmt, 5),
                                  .since_ms = tide_rows_get_u64(stmt, 6),
                                  .floor_ms = tide_rows_get_u64(stmt, 7),
                                  .lost = !tide_rows_get_null(stmt, 8),
                                  .rewind_ms = tide_rows_get_u64(stmt, 9)};
    row->lost_ms = row->lost ? tide_rows_get_u64(stmt, 8) : 0;
    tide_rows_get_copy(stmt, 10, row->notice, sizeof row->notice);
    tide_rows_get_copy(stmt, 1, row->email, sizeof row->email);
    tide_rows_get_copy(stmt, 2, row->endpoint, sizeof row->endpoint);
}

tide_status tide_mail_row_get(tide_rows db, uint32_t account, struct tide_mail_row *row_out,
                              tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc =
        tide_rows_first(db, WHAT, &stmt, err,
                        "SELECT " ROW_COLUMNS " FROM mail_account WHERE account = ?1", account);
    if (rc == TIDE_OK)
        row_read(&stmt, row_out);
    else if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "this is not an account of the mail system");
    return rc;
}

tide_status tide_mail_rows(tide_rows db, void (*visit)(const struct tide_mail_row *row, void *arg),
                           void *arg, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT " ROW_COLUMNS " FROM mail_account ORDER BY email");
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_mail_row row;
        row_read(&stmt, &row);
        visit(&row, arg);
    }
    return rc;
}

tide_status tide_mail_row_remove(tide_rows db, uint32_t account, tide_error *err)
{
    static const char *const texts[] = {
        ("INSERT INTO mail_epoch(account, epoch) SELECT account, epoch + 1 FROM mail_account"
         " WHERE account = ?1 ON CONFLICT(account) DO UPDATE SET epoch = excluded.epoch"),
        "DELETE FROM mail_shard WHERE account = ?1",
        "DELETE FROM mail_proof WHERE account = ?1",
        "DELETE FROM mail_only WHERE account = ?1",
        "DELETE FROM mail_only_seen WHERE account = ?1",
        "DELETE FROM mail_loss WHERE account = ?1",
        "DELETE FROM mail_inexact WHERE account = ?1",
        "DELETE FROM mail_seen WHERE listing IN (SELECT id FROM mail_listing WHERE account = ?1)",
        "DELETE FROM mail_seen WHERE listing IN (SELECT listing FROM mail_labels WHERE account = "
        "?1)",
        "DELETE FROM mail_listing WHERE account = ?1",
        "DELETE FROM mail_labels WHERE account = ?1",
        "DELETE FROM mail_account WHERE account = ?1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        TIDE_TRY(tide_rows_do(db, WHAT, err, texts[i], account));
    return TIDE_OK;
}

tide_status tide_mail_epoch_get(tide_rows db, uint32_t account, uint32_t *epoch_out,
                                tide_error *err)
{
    uint64_t epoch = 0;
    tide_status rc = tide_rows_number(db, WHAT, &epoch, err,
                                      "SELECT epoch FROM mail_epoch WHERE account = ?1", account);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    *epoch_out = (uint32_t)epoch;
    return TIDE_OK;
}

tide_status tide_mail_lost_put(tide_rows db, uint32_t account, uint64_t lost_ms, uint64_t rewind_ms,
                               const char *notice, tide_error *err)
{
    return tide_rows_do(
        db, WHAT, err,
        "UPDATE mail_account SET lost_ms = CASE WHEN lost_ms < ?2 THEN lost_ms ELSE ?2 END,"
        " notice = ?4, rewind_ms = CASE WHEN rewind_ms <> 0 AND (?3 = 0 OR rewind_ms < ?3)"
        "  THEN rewind_ms ELSE ?3 END WHERE account = ?1",
        account, lost_ms, rewind_ms, notice);
}

/* ---- marks ---- */

tide_status tide_mail_mark_put(tide_rows db, uint64_t stream, uint64_t ordinal,
                               tide_text history_id, tide_error *err)
{
    TIDE_ASSERT(history_id.bytes > 0);
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_mark(stream, ordinal, history_id) VALUES(?1, ?2, ?3)"
                        " ON CONFLICT(stream, ordinal) DO UPDATE SET history_id = ?3",
                        stream, ordinal, history_id);
}

tide_status tide_mail_mark_get(tide_rows db, uint64_t stream, uint64_t finished,
                               char history_id_out[64], tide_error *err)
{
    return tide_rows_copy(db, WHAT, history_id_out, 64, err,
                          "SELECT history_id FROM mail_mark WHERE stream = ?1 AND ordinal < ?2"
                          " ORDER BY ordinal DESC LIMIT 1",
                          stream, finished);
}

tide_status tide_mail_mark_first(tide_rows db, uint64_t stream, char history_id_out[64],
                                 tide_error *err)
{
    return tide_rows_copy(
        db, WHAT, history_id_out, 64, err,
        "SELECT history_id FROM mail_mark WHERE stream = ?1 ORDER BY ordinal LIMIT 1", stream);
}

tide_status tide_mail_mark_prune(tide_rows db, uint64_t stream, uint64_t finished, tide_error *err)
{
    if (finished == UINT64_MAX)
        return tide_rows_do(db, WHAT, err, "DELETE FROM mail_mark WHERE stream = ?1", stream);
    return tide_rows_do(db, WHAT, err,
                        "DELETE FROM mail_mark WHERE stream = ?1 AND ordinal <"
                        " (SELECT max(ordinal) FROM mail_mark"
                        "  WHERE stream = ?1 AND ordinal < ?2)",
                        stream, finished);
}

/* ---- shards ---- */

static tide_status shard_run(tide_rows db, const char *sql, uint32_t account,
                             const struct tide_shard_state *shard, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, sql, account, shard->name, shard->id, shard->generation,
                        shard->messages);
}

tide_status tide_mail_shard_put(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, tide_error *err)
{
    return shard_run(db,
                     "INSERT INTO mail_shard(account, name, id, generation, messages)"
                     " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(account, name) DO UPDATE"
                     " SET id = ?3, generation = ?4, messages = ?5",
                     account, shard, err);
}

tide_status tide_mail_shard_note(tide_rows db, uint32_t account,
                                 const struct tide_shard_state *shard, tide_error *err)
{
    return shard_run(db,
                     "INSERT INTO mail_shard(account, name, id, generation, messages)"
                     " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(account, name) DO UPDATE"
                     " SET generation = excluded.generation, messages = excluded.messages"
                     " WHERE mail_shard.id = excluded.id"
                     " AND mail_shard.generation < excluded.generation",
                     account, shard, err);
}

tide_status tide_mail_shard_forget(tide_rows db, uint32_t account, const char *name,
                                   tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "DELETE FROM mail_shard WHERE account = ?1 AND name = ?2",
                        account, name);
}

tide_status tide_mail_shards(tide_rows db, uint32_t account,
                             void (*visit)(const struct tide_shard_state *shard, void *arg),
                             void *arg, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(
        db, WHAT, &stmt, err,
        "SELECT name, id, generation, messages FROM mail_shard WHERE account = ?1", account);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_shard_state shard = {.generation = tide_rows_get_u64(&stmt, 2),
                                         .messages = tide_rows_get_u64(&stmt, 3)};
        tide_rows_get_copy(&stmt, 0, shard.name, sizeof shard.name);
        tide_rows_get_copy(&stmt, 1, shard.id, sizeof shard.id);
        visit(&shard, arg);
    }
    return rc;
}

tide_status tide_mail_proof_put(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t at_ms,
                                tide_text history_id, tide_error *err)
{
    /* Generations above this one belong to a lost copy.  Of those before the last sixty-four, the
     * last of each day is kept: a shard that is synced every five minutes makes sixty-four in an
     * afternoon, and backups are older than that. */
    static const char forget[] =
        "DELETE FROM mail_proof WHERE account = ?1 AND id = ?2 AND (generation > ?3 OR"
        " (generation < (SELECT generation FROM mail_proof WHERE account = ?1 AND id = ?2"
        "  ORDER BY generation DESC LIMIT 1 OFFSET 63)"
        " AND EXISTS (SELECT 1 FROM mail_proof AS later WHERE later.account = ?1"
        "  AND later.id = ?2 AND later.generation > mail_proof.generation"
        "  AND later.at_ms / 86400000 = mail_proof.at_ms / 86400000)))";
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "INSERT INTO mail_proof(account, id, generation, at_ms, history_id)"
                          " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(account, id, generation)"
                          " DO UPDATE SET at_ms = ?4, history_id = ?5",
                          account, shard->id, shard->generation, at_ms, history_id));
    return tide_rows_do(db, WHAT, err, forget, account, shard->id, shard->generation);
}

tide_status tide_mail_proof_get(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t *at_ms_out,
                                tide_error *err)
{
    return tide_rows_number(db, WHAT, at_ms_out, err,
                            "SELECT at_ms FROM mail_proof WHERE account = ?1"
                            " AND id = ?2 AND generation <= ?3"
                            " ORDER BY generation DESC LIMIT 1",
                            account, shard->id, shard->generation);
}

tide_status tide_mail_proof_history(tide_rows db, uint32_t account, uint64_t at_ms,
                                    char history_id_out[64], tide_error *err)
{
    return tide_rows_copy(
        db, WHAT, history_id_out, 64, err,
        "SELECT history_id FROM mail_proof WHERE account = ?1 AND at_ms = ?2 LIMIT 1", account,
        at_ms);
}

/* ---- held copies ---- */

tide_status tide_mail_inexact_put(tide_rows db, uint32_t account, bool inexact, tide_error *err)
{
    if (!inexact)
        return tide_rows_do(db, WHAT, err, "DELETE FROM mail_inexact WHERE account = ?1", account);
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_inexact(account) VALUES(?1)"
                        " ON CONFLICT(account) DO NOTHING",
                        account);
}

tide_status tide_mail_inexact_get(tide_rows db, uint32_t account, bool *inexact_out,
                                  tide_error *err)
{
    uint64_t found = 0;
    const tide_status rc = tide_rows_number(
        db, WHAT, &found, err, "SELECT account FROM mail_inexact WHERE account = ?1", account);
    *inexact_out = rc == TIDE_OK;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* ---- listings ---- */

tide_status tide_mail_listing_put(tide_rows db, const struct tide_mail_listing *listing,
                                  tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_listing(id, account, from_ms, begun_ms, spans_left)"
                        " VALUES(?1, ?2, ?3, ?4, ?5)"
                        " ON CONFLICT(id) DO UPDATE SET spans_left = excluded.spans_left",
                        listing->id, listing->account, listing->from_ms, listing->begun_ms,
                        listing->left);
}

tide_status tide_mail_listing_get(tide_rows db, uint64_t id, struct tide_mail_listing *listing_out,
                                  tide_error *err)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first(
        db, WHAT, &stmt, err,
        "SELECT id, account, from_ms, begun_ms, spans_left FROM mail_listing WHERE id = ?1", id));
    *listing_out = (struct tide_mail_listing){.id = tide_rows_get_u64(&stmt, 0),
                                              .account = tide_rows_get_u32(&stmt, 1),
                                              .from_ms = tide_rows_get_u64(&stmt, 2),
                                              .begun_ms = tide_rows_get_u64(&stmt, 3),
                                              .left = tide_rows_get_u64(&stmt, 4)};
    return TIDE_OK;
}

tide_status tide_mail_listing_open(tide_rows db, uint32_t account, bool *open_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, WHAT, &count, err,
                              "SELECT (SELECT count(*) FROM mail_listing WHERE account = ?1) +"
                              " (SELECT count(*) FROM mail_labels WHERE account = ?1)",
                              account));
    *open_out = count > 0;
    return TIDE_OK;
}

tide_status tide_mail_recorded(tide_rows db, uint32_t account, uint64_t *count_out, tide_error *err)
{
    return tide_rows_number(db, WHAT, count_out, err,
                            "SELECT count(*) FROM bad WHERE account = ?1 AND state <> ?2", account,
                            TIDE_BAD_GONE);
}

tide_status tide_mail_listing_step(tide_rows db, uint64_t id, uint64_t more, uint64_t *left_out,
                                   tide_error *err)
{
    return tide_rows_number(db, WHAT, left_out, err,
                            "UPDATE mail_listing SET spans_left = spans_left + ?2 - 1 WHERE id = ?1"
                            " AND spans_left > 0 RETURNING spans_left",
                            id, more);
}

/* On PostgreSQL all ids are one parameter: a round trip costs more than a row. */
static tide_status seen_add_all(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                                tide_error *err)
{
    tide_rows_stmt stmt;
    TIDE_TRY(
        tide_rows_ask(db, WHAT, &stmt, err,
                      "INSERT INTO mail_seen(listing, gmail_id) SELECT ?1, one.id"
                      " FROM (SELECT pg_catalog.unnest(?2) AS id) AS one ON CONFLICT DO NOTHING",
                      listing));
    tide_rows_texts(&stmt, 2, ids, count);
    return tide_rows_run(&stmt, err);
}

tide_status tide_mail_seen_add(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                               tide_error *err)
{
    tide_rows_stmt stmt;
    if (db.sqlite == NULL)
        return seen_add_all(db, listing, ids, count, err);
    TIDE_TRY(tide_rows_ask(db, WHAT, &stmt, err,
                           "INSERT INTO mail_seen(listing, gmail_id) VALUES(?1, ?2)"
                           " ON CONFLICT(listing, gmail_id) DO NOTHING",
                           listing));
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        bool row = false;
        tide_rows_text(&stmt, 2, ids[i]);
        rc = tide_rows_step(&stmt, &row, err);
        tide_rows_again(&stmt);
    }
    tide_rows_end(&stmt);
    return rc;
}

/* The same for queries: the answer names the seen ids by their position. */
static tide_status seen_get_all(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                                bool *seen_out, tide_error *err)
{
    tide_rows_stmt stmt;
    bool row = false;
    TIDE_TRY(tide_rows_ask(db, WHAT, &stmt, err,
                           "SELECT one.place FROM (SELECT pg_catalog.unnest(?2) AS id, "
                           "pg_catalog.generate_series(1, ?3) AS place) AS one"
                           " JOIN mail_seen ON listing = ?1 AND gmail_id = one.id",
                           listing));
    tide_rows_texts(&stmt, 2, ids, count);
    tide_rows_u64(&stmt, 3, count);
    for (size_t i = 0; i < count; i++)
        seen_out[i] = false;
    tide_status rc = TIDE_OK;
    while ((rc = tide_rows_step(&stmt, &row, err)) == TIDE_OK && row) {
        const uint64_t place = tide_rows_get_u64(&stmt, 0);
        TIDE_ASSERT(place >= 1 && place <= count);
        seen_out[place - 1] = true;
    }
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_mail_seen_get(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                               bool *seen_out, tide_error *err)
{
    tide_rows_stmt stmt;
    if (db.sqlite == NULL)
        return seen_get_all(db, listing, ids, count, seen_out, err);
    TIDE_TRY(tide_rows_ask(db, WHAT, &stmt, err,
                           "SELECT 1 FROM mail_seen WHERE listing = ?1 AND gmail_id = ?2",
                           listing));
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        tide_rows_text(&stmt, 2, ids[i]);
        rc = tide_rows_step(&stmt, &seen_out[i], err);
        tide_rows_again(&stmt);
    }
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_mail_seen_some(tide_rows db, uint64_t listing, uint64_t *count_out,
                                char id_out[65], tide_error *err)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err,
                             "SELECT count(*), coalesce(max(gmail_id), '')"
                             " FROM mail_seen WHERE listing = ?1",
                             listing));
    const tide_text id = tide_rows_get_text(&stmt, 1);
    *count_out = tide_rows_get_u64(&stmt, 0);
    (void)snprintf(id_out, 65, "%.*s", (int)id.bytes, id.data);
    return TIDE_OK;
}

tide_status tide_mail_seen_forget(tide_rows db, uint64_t listing, uint32_t rows_max,
                                  bool *empty_out, tide_error *err)
{
    uint64_t forgotten = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &forgotten, err,
                              "DELETE FROM mail_seen WHERE listing = ?1 AND gmail_id IN"
                              " (SELECT gmail_id FROM mail_seen WHERE listing = ?1 LIMIT ?2)",
                              listing, rows_max));
    const bool empty = forgotten < rows_max;
    if (empty)
        TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM mail_listing WHERE id = ?1", listing));
    *empty_out = empty;
    return TIDE_OK;
}

/* ---- labels behind a gap ---- */

tide_status tide_mail_pass_put(tide_rows db, const struct tide_mail_label_pass *pass,
                               tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_labels(listing, account, history_id, from_ms, begun_ms,"
                        " dates, label, refused, unsure)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
                        " ON CONFLICT(listing) DO UPDATE SET label = ?7, refused = ?8, unsure = ?9",
                        pass->listing, pass->account, pass->history_id, pass->from_ms,
                        pass->begun_ms, (uint32_t)pass->dates, pass->label, (uint32_t)pass->refused,
                        (uint32_t)pass->unsure);
}

tide_status tide_mail_pass_get(tide_rows db, uint64_t listing,
                               struct tide_mail_label_pass *pass_out, tide_error *err)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err,
                             "SELECT listing, account, history_id, from_ms, begun_ms, dates,"
                             " label, refused, unsure FROM mail_labels WHERE listing = ?1",
                             listing));
    *pass_out = (struct tide_mail_label_pass){.listing = tide_rows_get_u64(&stmt, 0),
                                              .account = tide_rows_get_u32(&stmt, 1),
                                              .from_ms = tide_rows_get_u64(&stmt, 3),
                                              .begun_ms = tide_rows_get_u64(&stmt, 4),
                                              .dates = tide_rows_get_u64(&stmt, 5) != 0,
                                              .refused = tide_rows_get_u64(&stmt, 7) != 0,
                                              .unsure = tide_rows_get_u64(&stmt, 8) != 0};
    tide_rows_get_copy(&stmt, 2, pass_out->history_id, sizeof pass_out->history_id);
    tide_rows_get_copy(&stmt, 6, pass_out->label, sizeof pass_out->label);
    return TIDE_OK;
}

tide_status tide_mail_pass_end(tide_rows db, uint64_t listing, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "DELETE FROM mail_labels WHERE listing = ?1", listing);
}
