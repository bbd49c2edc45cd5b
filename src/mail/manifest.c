#include "mail/manifest.h"

#include "base/check.h"
#include "db/rows.h"

#include <stdio.h>
#include <string.h>

#define WHAT "the manifests"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS mail_manifest("
    " id INTEGER PRIMARY KEY, account INTEGER NOT NULL, mode INTEGER NOT NULL,"
    " query TEXT NOT NULL, made_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    " watermark_ms INTEGER NOT NULL, planned_ms INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS mail_removal("
    " id INTEGER PRIMARY KEY, manifest INTEGER NOT NULL, gmail_id TEXT NOT NULL,"
    " thread_id TEXT NOT NULL, hash BLOB NOT NULL, bytes INTEGER NOT NULL,"
    " internal_ms INTEGER NOT NULL, labels TEXT NOT NULL, state INTEGER NOT NULL,"
    " reason TEXT NOT NULL, restored_id TEXT NOT NULL, changed_ms INTEGER NOT NULL,"
    " UNIQUE(manifest, gmail_id)"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS mail_removal_gmail ON mail_removal(gmail_id);"
    "CREATE TABLE IF NOT EXISTS mail_gap(account INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL)"
    " STRICT;";

#define MANIFEST_COLUMNS "id, account, mode, query, made_ms, ended_ms, watermark_ms, planned_ms"
#define REMOVAL_COLUMNS                                                                            \
    "mail_removal.id, manifest, gmail_id, thread_id, hash, bytes, internal_ms, labels, state,"     \
    " reason, restored_id, changed_ms"

const char *tide_removal_mode_name(tide_removal_mode mode)
{
    static const char *const names[] = {"inbox", "trash", "delete", "restore"};
    TIDE_ASSERT((size_t)mode < sizeof names / sizeof names[0]);
    return names[mode];
}

const char *tide_removal_state_name(tide_removal_state state)
{
    static const char *const names[] = {"planned", "asked", "removed", "refused", "restored"};
    TIDE_ASSERT((size_t)state < sizeof names / sizeof names[0]);
    return names[state];
}

/* ---- statements ---- */

tide_status tide_manifest_tables(struct sqlite3 *db, tide_error *err)
{
    return tide_rows_exec(db, tables, WHAT, err);
}

/* ---- manifests ---- */

tide_status tide_manifest_add(struct sqlite3 *db, struct tide_manifest *manifest, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db,
                          "INSERT INTO mail_manifest(account, mode, query, made_ms, ended_ms,"
                          " watermark_ms, planned_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, manifest->account);
    tide_bind_u64(stmt, 2, manifest->mode);
    tide_bind_text(stmt, 3, tide_text_of(manifest->query));
    tide_bind_u64(stmt, 4, manifest->made_ms);
    tide_bind_u64(stmt, 5, manifest->ended_ms);
    tide_bind_u64(stmt, 6, manifest->watermark_ms);
    tide_bind_u64(stmt, 7, manifest->planned_ms);
    rc = tide_rows_run(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        manifest->id = (uint64_t)sqlite3_last_insert_rowid(db);
    return rc;
}

tide_status tide_manifest_end(struct sqlite3 *db, uint64_t manifest, uint64_t ended_ms,
                              tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db, "UPDATE mail_manifest SET ended_ms = ?2 WHERE id = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, manifest);
    tide_bind_u64(stmt, 2, ended_ms);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_manifest_planned(struct sqlite3 *db, uint64_t manifest, uint64_t now_ms,
                                  tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db, "UPDATE mail_manifest SET planned_ms = ?2 WHERE id = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, manifest);
    tide_bind_u64(stmt, 2, now_ms);
    return tide_rows_run(db, stmt, WHAT, err);
}

#define UNPLANNED "SELECT id FROM mail_manifest WHERE planned_ms = 0 AND ended_ms = 0 AND mode < 3"

tide_status tide_manifest_forget_unplanned(struct sqlite3 *db, uint32_t limit, bool *more_out,
                                           tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db,
                          "DELETE FROM mail_removal WHERE id IN (SELECT id FROM mail_removal"
                          " WHERE manifest IN (" UNPLANNED ") LIMIT ?1)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, limit);
    rc = tide_rows_run(db, stmt, WHAT, err);
    if (rc != TIDE_OK)
        return rc;
    *more_out = sqlite3_changes(db) == (int)limit;
    if (*more_out)
        return TIDE_OK;
    rc = tide_rows_prepare(db, "DELETE FROM mail_manifest WHERE id IN (" UNPLANNED ")", WHAT, &stmt,
                           err);
    return rc == TIDE_OK ? tide_rows_run(db, stmt, WHAT, err) : rc;
}

static tide_status manifest_count(struct sqlite3 *db, struct tide_manifest *manifest,
                                  tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(db,
                                       "SELECT state, count(*), sum(bytes) FROM mail_removal"
                                       " WHERE manifest = ?1 GROUP BY state",
                                       WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, manifest->id);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
        const uint64_t state = tide_column_u64(stmt, 0);
        if (state > TIDE_REMOVAL_RESTORED)
            continue;
        manifest->entries[state] = tide_column_u64(stmt, 1);
        manifest->bytes[state] = tide_column_u64(stmt, 2);
    }
    return tide_rows_end(db, stmt, code, WHAT, err);
}

static void manifest_read(sqlite3_stmt *stmt, struct tide_manifest *manifest)
{
    *manifest = (struct tide_manifest){.id = tide_column_u64(stmt, 0),
                                       .account = tide_column_u32(stmt, 1),
                                       .mode = (tide_removal_mode)(tide_column_u64(stmt, 2) & 3U),
                                       .made_ms = tide_column_u64(stmt, 4),
                                       .ended_ms = tide_column_u64(stmt, 5),
                                       .watermark_ms = tide_column_u64(stmt, 6),
                                       .planned_ms = tide_column_u64(stmt, 7)};
    tide_column_copy(stmt, 3, manifest->query, sizeof manifest->query);
}

tide_status tide_manifest_get(struct sqlite3 *db, uint64_t manifest,
                              struct tide_manifest *manifest_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    struct tide_manifest found;
    tide_status rc = tide_rows_prepare(
        db, "SELECT " MANIFEST_COLUMNS " FROM mail_manifest WHERE id = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, manifest);
    rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        manifest_read(stmt, &found);
    else if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "there is no manifest %llu",
                             (unsigned long long)manifest);
    (void)sqlite3_finalize(stmt);
    if (rc == TIDE_OK)
        rc = manifest_count(db, &found, err);
    if (rc == TIDE_OK)
        *manifest_out = found;
    return rc;
}

tide_status tide_manifest_list(struct sqlite3 *db, uint32_t account,
                               void (*visit)(const struct tide_manifest *manifest, void *arg),
                               void *arg, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(db,
                                       "SELECT " MANIFEST_COLUMNS " FROM mail_manifest"
                                       " WHERE ?1 = 0 OR account = ?1 ORDER BY id DESC",
                                       WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    int code = SQLITE_ROW;
    while (rc == TIDE_OK && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct tide_manifest one;
        manifest_read(stmt, &one);
        rc = manifest_count(db, &one, err);
        if (rc == TIDE_OK)
            visit(&one, arg);
    }
    if (rc == TIDE_OK && code != SQLITE_DONE)
        rc = tide_rows_failed(db, WHAT, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- entries ---- */

tide_status tide_removal_add(struct sqlite3 *db, const struct tide_removal *removal,
                             tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db,
        "INSERT INTO mail_removal(manifest, gmail_id, thread_id, hash, bytes, internal_ms,"
        " labels, state, reason, restored_id, changed_ms)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        " ON CONFLICT(manifest, gmail_id) DO NOTHING",
        WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, removal->manifest);
    tide_bind_text(stmt, 2, tide_text_of(removal->gmail_id));
    tide_bind_text(stmt, 3, tide_text_of(removal->thread_id));
    (void)sqlite3_bind_blob(stmt, 4, removal->hash, sizeof removal->hash, SQLITE_STATIC);
    tide_bind_u64(stmt, 5, removal->bytes);
    (void)sqlite3_bind_int64(stmt, 6, removal->internal_ms);
    tide_bind_text(stmt, 7, tide_text_of(removal->labels));
    tide_bind_u64(stmt, 8, removal->state);
    tide_bind_text(stmt, 9, tide_text_of(removal->reason));
    tide_bind_text(stmt, 10, tide_text_of(removal->restored_id));
    tide_bind_u64(stmt, 11, removal->changed_ms);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_removal_move(struct sqlite3 *db, uint64_t id, tide_removal_state state,
                              const char *text, uint64_t now_ms, tide_error *err)
{
    /* F2, as the states from which one may come. */
    static const char *const moves[] = {
        [TIDE_REMOVAL_ASKED] = "UPDATE mail_removal SET state = 1, changed_ms = ?3"
                               " WHERE id = ?1 AND state = 0 AND ?2 IS NOT NULL",
        [TIDE_REMOVAL_REMOVED] = "UPDATE mail_removal SET state = 2, changed_ms = ?3"
                                 " WHERE id = ?1 AND state = 1 AND ?2 IS NOT NULL",
        [TIDE_REMOVAL_REFUSED] = "UPDATE mail_removal SET state = 3, reason = ?2, changed_ms = ?3"
                                 " WHERE id = ?1 AND state IN (0, 1)",
        [TIDE_REMOVAL_RESTORED] = "UPDATE mail_removal SET state = 4, restored_id = ?2,"
                                  " changed_ms = ?3 WHERE id = ?1 AND state = 2",
    };
    TIDE_ASSERT(state >= TIDE_REMOVAL_ASKED && state <= TIDE_REMOVAL_RESTORED);
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(db, moves[state], WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, id);
    tide_bind_text(stmt, 2, tide_text_of(text));
    tide_bind_u64(stmt, 3, now_ms);
    rc = tide_rows_run(db, stmt, WHAT, err);
    if (rc == TIDE_OK && sqlite3_changes(db) != 1)
        rc = tide_error_set(err, TIDE_STALE, "entry %llu of a manifest cannot become %s",
                            (unsigned long long)id, tide_removal_state_name(state));
    return rc;
}

static void removal_read(sqlite3_stmt *stmt, struct tide_removal *removal)
{
    *removal = (struct tide_removal){
        .id = tide_column_u64(stmt, 0),
        .manifest = tide_column_u64(stmt, 1),
        .bytes = tide_column_u64(stmt, 5),
        .internal_ms = sqlite3_column_int64(stmt, 6),
        .changed_ms = tide_column_u64(stmt, 11),
    };
    const uint64_t state = tide_column_u64(stmt, 8);
    removal->state =
        state > TIDE_REMOVAL_RESTORED ? TIDE_REMOVAL_REFUSED : (tide_removal_state)state;
    tide_column_copy(stmt, 2, removal->gmail_id, sizeof removal->gmail_id);
    tide_column_copy(stmt, 3, removal->thread_id, sizeof removal->thread_id);
    tide_column_copy(stmt, 7, removal->labels, sizeof removal->labels);
    tide_column_copy(stmt, 9, removal->reason, sizeof removal->reason);
    tide_column_copy(stmt, 10, removal->restored_id, sizeof removal->restored_id);
    const void *hash = sqlite3_column_blob(stmt, 4);
    if (hash != NULL && sqlite3_column_bytes(stmt, 4) == (int)sizeof removal->hash)
        memcpy(removal->hash, hash, sizeof removal->hash);
}

tide_status tide_removal_list(struct sqlite3 *db, uint64_t manifest, int state, uint64_t after,
                              uint32_t limit,
                              bool (*visit)(const struct tide_removal *removal, void *arg),
                              void *arg, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db,
                          "SELECT " REMOVAL_COLUMNS " FROM mail_removal WHERE manifest = ?1"
                          " AND (?2 < 0 OR state = ?2) AND mail_removal.id > ?3"
                          " ORDER BY mail_removal.id LIMIT ?4",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, manifest);
    (void)sqlite3_bind_int(stmt, 2, state);
    tide_bind_u64(stmt, 3, after);
    tide_bind_u64(stmt, 4, limit);
    int code = SQLITE_ROW;
    bool more = true;
    while (more && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct tide_removal one;
        removal_read(stmt, &one);
        more = visit(&one, arg);
    }
    return tide_rows_end(db, stmt, code, WHAT, err);
}

tide_status tide_removal_find(struct sqlite3 *db, uint32_t account, tide_text gmail_id,
                              struct tide_removal *removal_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(db,
                                       "SELECT " REMOVAL_COLUMNS " FROM mail_removal"
                                       " JOIN mail_manifest ON mail_manifest.id = manifest"
                                       " WHERE gmail_id = ?2 AND account = ?1 AND state = 2"
                                       " ORDER BY mail_removal.id DESC LIMIT 1",
                                       WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, gmail_id);
    rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        removal_read(stmt, removal_out);
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* ---- for a restore ---- */

/* One entry, or TIDE_NOT_FOUND; ends the statement. */
static tide_status removal_one(struct sqlite3 *db, sqlite3_stmt *stmt,
                               struct tide_removal *removal_out, tide_removal_mode *mode_out,
                               tide_error *err)
{
    const tide_status rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK) {
        removal_read(stmt, removal_out);
        if (mode_out != NULL)
            *mode_out = (tide_removal_mode)(tide_column_u64(stmt, 12) & 3U);
    } else if (rc == TIDE_NOT_FOUND) {
        (void)tide_error_set(err, TIDE_NOT_FOUND, "no manifest names this message");
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_removal_get(struct sqlite3 *db, uint64_t id, struct tide_removal *removal_out,
                             tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(
        db, "SELECT " REMOVAL_COLUMNS " FROM mail_removal WHERE id = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, id);
    return removal_one(db, stmt, removal_out, NULL, err);
}

tide_status tide_removal_origin(struct sqlite3 *db, uint32_t account, tide_text gmail_id,
                                struct tide_removal *removal_out, tide_removal_mode *mode_out,
                                tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(db,
                                             "SELECT " REMOVAL_COLUMNS ", mode FROM mail_removal"
                                             " JOIN mail_manifest ON mail_manifest.id = manifest"
                                             " WHERE gmail_id = ?2 AND account = ?1 AND state = 2"
                                             " AND mode <> 3 ORDER BY mail_removal.id DESC LIMIT 1",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, gmail_id);
    return removal_one(db, stmt, removal_out, mode_out, err);
}

tide_status tide_removal_of(struct sqlite3 *db, uint64_t manifest, tide_text gmail_id,
                            struct tide_removal *removal_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(db,
                                             "SELECT " REMOVAL_COLUMNS " FROM mail_removal"
                                             " WHERE manifest = ?1 AND gmail_id = ?2",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, manifest);
    tide_bind_text(stmt, 2, gmail_id);
    return removal_one(db, stmt, removal_out, NULL, err);
}

tide_status tide_removal_restored(struct sqlite3 *db, uint32_t account, tide_text gmail_id,
                                  tide_text new_id, uint64_t now_ms, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc =
        tide_rows_prepare(db,
                          "UPDATE mail_removal SET state = 4, restored_id = ?3, changed_ms = ?4"
                          " WHERE gmail_id = ?2 AND state = 2"
                          " AND manifest IN (SELECT id FROM mail_manifest WHERE account = ?1)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, gmail_id);
    tide_bind_text(stmt, 3, new_id);
    tide_bind_u64(stmt, 4, now_ms);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_removal_facts(struct sqlite3 *db, uint32_t account, tide_text gmail_id,
                               struct tide_removal_facts *facts_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc = tide_rows_prepare(
        db,
        "SELECT (SELECT min(made_ms) FROM mail_removal JOIN mail_manifest"
        "   ON mail_manifest.id = manifest WHERE gmail_id = ?2 AND account = ?1),"
        " EXISTS (SELECT 1 FROM mail_removal JOIN mail_manifest"
        "   ON mail_manifest.id = manifest WHERE restored_id = ?2 AND account = ?1),"
        " EXISTS (SELECT 1 FROM mail_removal JOIN mail_manifest"
        "   ON mail_manifest.id = manifest WHERE gmail_id = ?2 AND account = ?1"
        "   AND state = 4 AND restored_id <> gmail_id)",
        WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, gmail_id);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        *facts_out = (struct tide_removal_facts){.first_ms = tide_column_u64(stmt, 0),
                                                 .claimed = sqlite3_column_int(stmt, 1) != 0,
                                                 .moved = sqlite3_column_int(stmt, 2) != 0};
    else
        rc = tide_rows_failed(db, WHAT, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}

tide_status tide_manifest_unfinished(struct sqlite3 *db, uint32_t account, const char *query,
                                     struct tide_manifest *manifest_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db,
                          "SELECT " MANIFEST_COLUMNS " FROM mail_manifest WHERE account = ?1"
                          " AND query = ?2 AND mode = 3 AND ended_ms = 0 ORDER BY id LIMIT 1",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_text(stmt, 2, tide_text_of(query));
    rc = tide_rows_one(db, stmt, WHAT, err);
    if (rc == TIDE_OK)
        manifest_read(stmt, manifest_out);
    else if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "no such restore is unfinished");
    (void)sqlite3_finalize(stmt);
    return rc == TIDE_OK ? manifest_count(db, manifest_out, err) : rc;
}

/* ---- gaps ---- */

tide_status tide_gap_put(struct sqlite3 *db, uint32_t account, uint64_t at_ms, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const tide_status rc = tide_rows_prepare(db,
                                             "INSERT INTO mail_gap(account, at_ms) VALUES(?1, ?2)"
                                             " ON CONFLICT(account) DO UPDATE SET at_ms = ?2",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    tide_bind_u64(stmt, 2, at_ms);
    return tide_rows_run(db, stmt, WHAT, err);
}

tide_status tide_gap_get(struct sqlite3 *db, uint32_t account, uint64_t *at_ms_out, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    tide_status rc =
        tide_rows_prepare(db, "SELECT at_ms FROM mail_gap WHERE account = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_bind_u64(stmt, 1, account);
    const int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW)
        *at_ms_out = tide_column_u64(stmt, 0);
    else if (code == SQLITE_DONE)
        *at_ms_out = 0;
    else
        rc = tide_rows_failed(db, WHAT, err);
    (void)sqlite3_finalize(stmt);
    return rc;
}
