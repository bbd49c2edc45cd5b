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

tide_status tide_manifest_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db, tables, WHAT, err);
}

/* ---- manifests ---- */

tide_status tide_manifest_add(tide_rows db, struct tide_manifest *manifest, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_prepare(db,
                          "INSERT INTO mail_manifest(account, mode, query, made_ms, ended_ms,"
                          " watermark_ms, planned_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                          " RETURNING id",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, manifest->account);
    tide_rows_u64(&stmt, 2, manifest->mode);
    tide_rows_text(&stmt, 3, tide_text_of(manifest->query));
    tide_rows_u64(&stmt, 4, manifest->made_ms);
    tide_rows_u64(&stmt, 5, manifest->ended_ms);
    tide_rows_u64(&stmt, 6, manifest->watermark_ms);
    tide_rows_u64(&stmt, 7, manifest->planned_ms);
    rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK)
        manifest->id = tide_rows_get_u64(&stmt, 0);
    tide_rows_end(&stmt);
    return rc;
}

static tide_status time_set(tide_rows db, const char *sql, uint64_t manifest, uint64_t ms,
                            tide_error *err)
{
    tide_rows_stmt stmt;
    const tide_status rc = tide_rows_prepare(db, sql, WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, manifest);
    tide_rows_u64(&stmt, 2, ms);
    return tide_rows_run(&stmt, err);
}

tide_status tide_manifest_end(tide_rows db, uint64_t manifest, uint64_t ended_ms, tide_error *err)
{
    return time_set(db, "UPDATE mail_manifest SET ended_ms = ?2 WHERE id = ?1", manifest, ended_ms,
                    err);
}

tide_status tide_manifest_planned(tide_rows db, uint64_t manifest, uint64_t now_ms, tide_error *err)
{
    return time_set(db, "UPDATE mail_manifest SET planned_ms = ?2 WHERE id = ?1", manifest, now_ms,
                    err);
}

#define UNPLANNED                                                                                  \
    "SELECT id FROM mail_manifest"                                                                 \
    " WHERE account = ?1 AND planned_ms = 0 AND ended_ms = 0 AND mode < 3"

tide_status tide_manifest_forget_unplanned(tide_rows db, uint32_t account, uint32_t limit,
                                           bool *more_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_prepare(db,
                          "DELETE FROM mail_removal WHERE id IN (SELECT id FROM mail_removal"
                          " WHERE manifest IN (" UNPLANNED ") LIMIT ?2)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    tide_rows_u64(&stmt, 2, limit);
    uint64_t forgotten = 0;
    rc = tide_rows_run_count(&stmt, &forgotten, err);
    if (rc != TIDE_OK)
        return rc;
    *more_out = forgotten == limit;
    if (*more_out)
        return TIDE_OK;
    rc = tide_rows_prepare(db, "DELETE FROM mail_manifest WHERE id IN (" UNPLANNED ")", WHAT, &stmt,
                           err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    return tide_rows_run(&stmt, err);
}

static tide_status manifest_count(tide_rows db, struct tide_manifest *manifest, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_prepare(db,
                          "SELECT state, count(*), CAST(sum(bytes) AS bigint) FROM mail_removal"
                          " WHERE manifest = ?1 GROUP BY state",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, manifest->id);
    bool row = false;
    while ((rc = tide_rows_step(&stmt, &row, err)) == TIDE_OK && row) {
        const uint64_t state = tide_rows_get_u64(&stmt, 0);
        if (state > TIDE_REMOVAL_RESTORED)
            continue;
        manifest->entries[state] = tide_rows_get_u64(&stmt, 1);
        manifest->bytes[state] = tide_rows_get_u64(&stmt, 2);
    }
    tide_rows_end(&stmt);
    return rc;
}

static void manifest_read(const tide_rows_stmt *stmt, struct tide_manifest *manifest)
{
    *manifest = (struct tide_manifest){.id = tide_rows_get_u64(stmt, 0),
                                       .account = tide_rows_get_u32(stmt, 1),
                                       .mode = (tide_removal_mode)(tide_rows_get_u64(stmt, 2) & 3U),
                                       .made_ms = tide_rows_get_u64(stmt, 4),
                                       .ended_ms = tide_rows_get_u64(stmt, 5),
                                       .watermark_ms = tide_rows_get_u64(stmt, 6),
                                       .planned_ms = tide_rows_get_u64(stmt, 7)};
    tide_rows_get_copy(stmt, 3, manifest->query, sizeof manifest->query);
}

tide_status tide_manifest_get(tide_rows db, uint64_t manifest, struct tide_manifest *manifest_out,
                              tide_error *err)
{
    tide_rows_stmt stmt;
    struct tide_manifest found;
    tide_status rc = tide_rows_prepare(
        db, "SELECT " MANIFEST_COLUMNS " FROM mail_manifest WHERE id = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, manifest);
    rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK)
        manifest_read(&stmt, &found);
    else if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "there is no manifest %llu",
                             (unsigned long long)manifest);
    tide_rows_end(&stmt);
    if (rc == TIDE_OK)
        rc = manifest_count(db, &found, err);
    if (rc == TIDE_OK)
        *manifest_out = found;
    return rc;
}

tide_status tide_manifest_list(tide_rows db, uint32_t account,
                               void (*visit)(const struct tide_manifest *manifest, void *arg),
                               void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_prepare(db,
                                       "SELECT " MANIFEST_COLUMNS " FROM mail_manifest"
                                       " WHERE ?1 = 0 OR account = ?1 ORDER BY id DESC",
                                       WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    bool row = false;
    while ((rc = tide_rows_step(&stmt, &row, err)) == TIDE_OK && row) {
        struct tide_manifest one;
        manifest_read(&stmt, &one);
        rc = manifest_count(db, &one, err);
        if (rc != TIDE_OK)
            break;
        visit(&one, arg);
    }
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_manifest_run_left(tide_rows db, uint32_t account,
                                   struct tide_manifest *manifest_out, tide_error *err)
{
    tide_rows_stmt stmt;
    struct tide_manifest found;
    tide_status rc = tide_rows_prepare(db,
                                       "SELECT " MANIFEST_COLUMNS " FROM mail_manifest"
                                       " WHERE account = ?1 AND mode < 3 AND ended_ms = 0"
                                       " AND planned_ms > 0 ORDER BY id DESC LIMIT 1",
                                       WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK)
        manifest_read(&stmt, &found);
    tide_rows_end(&stmt);
    if (rc == TIDE_OK)
        rc = manifest_count(db, &found, err);
    if (rc == TIDE_OK)
        *manifest_out = found;
    return rc;
}

/* ---- entries ---- */

tide_status tide_removal_add(tide_rows db, const struct tide_removal *removal, tide_error *err)
{
    tide_rows_stmt stmt;
    const tide_status rc = tide_rows_prepare(
        db,
        "INSERT INTO mail_removal(manifest, gmail_id, thread_id, hash, bytes, internal_ms,"
        " labels, state, reason, restored_id, changed_ms)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        " ON CONFLICT(manifest, gmail_id) DO NOTHING",
        WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, removal->manifest);
    tide_rows_text(&stmt, 2, tide_text_of(removal->gmail_id));
    tide_rows_text(&stmt, 3, tide_text_of(removal->thread_id));
    tide_rows_blob(&stmt, 4, removal->hash, sizeof removal->hash);
    tide_rows_u64(&stmt, 5, removal->bytes);
    tide_rows_i64(&stmt, 6, removal->internal_ms);
    tide_rows_text(&stmt, 7, tide_text_of(removal->labels));
    tide_rows_u64(&stmt, 8, removal->state);
    tide_rows_text(&stmt, 9, tide_text_of(removal->reason));
    tide_rows_text(&stmt, 10, tide_text_of(removal->restored_id));
    tide_rows_u64(&stmt, 11, removal->changed_ms);
    return tide_rows_run(&stmt, err);
}

tide_status tide_removal_move(tide_rows db, uint64_t id, tide_removal_state state, const char *text,
                              uint64_t now_ms, tide_error *err)
{
    /* MAN2: the states each state may be entered from. */
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
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_prepare(db, moves[state], WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, id);
    tide_rows_text(&stmt, 2, tide_text_of(text));
    tide_rows_u64(&stmt, 3, now_ms);
    uint64_t moved = 0;
    rc = tide_rows_run_count(&stmt, &moved, err);
    if (rc == TIDE_OK && moved != 1)
        rc = tide_error_set(err, TIDE_STALE, "entry %llu of a manifest cannot become %s",
                            (unsigned long long)id, tide_removal_state_name(state));
    return rc;
}

static void removal_read(const tide_rows_stmt *stmt, struct tide_removal *removal)
{
    *removal = (struct tide_removal){
        .id = tide_rows_get_u64(stmt, 0),
        .manifest = tide_rows_get_u64(stmt, 1),
        .bytes = tide_rows_get_u64(stmt, 5),
        .internal_ms = tide_rows_get_i64(stmt, 6),
        .changed_ms = tide_rows_get_u64(stmt, 11),
    };
    const uint64_t state = tide_rows_get_u64(stmt, 8);
    removal->state =
        state > TIDE_REMOVAL_RESTORED ? TIDE_REMOVAL_REFUSED : (tide_removal_state)state;
    tide_rows_get_copy(stmt, 2, removal->gmail_id, sizeof removal->gmail_id);
    tide_rows_get_copy(stmt, 3, removal->thread_id, sizeof removal->thread_id);
    tide_rows_get_copy(stmt, 7, removal->labels, sizeof removal->labels);
    tide_rows_get_copy(stmt, 9, removal->reason, sizeof removal->reason);
    tide_rows_get_copy(stmt, 10, removal->restored_id, sizeof removal->restored_id);
    const tide_text hash = tide_rows_get_text(stmt, 4);
    if (hash.bytes == sizeof removal->hash)
        memcpy(removal->hash, hash.data, sizeof removal->hash);
}

tide_status tide_removal_list(tide_rows db, uint64_t manifest, int state, uint64_t after,
                              uint32_t limit,
                              bool (*visit)(const struct tide_removal *removal, void *arg),
                              void *arg, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_prepare(db,
                          "SELECT " REMOVAL_COLUMNS " FROM mail_removal WHERE manifest = ?1"
                          " AND (?2 < 0 OR state = ?2) AND mail_removal.id > ?3"
                          " ORDER BY mail_removal.id LIMIT ?4",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, manifest);
    tide_rows_i64(&stmt, 2, state);
    tide_rows_u64(&stmt, 3, after);
    tide_rows_u64(&stmt, 4, limit);
    bool row = false;
    bool more = true;
    while (more && (rc = tide_rows_step(&stmt, &row, err)) == TIDE_OK && row) {
        struct tide_removal one;
        removal_read(&stmt, &one);
        more = visit(&one, arg);
    }
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_removal_find(tide_rows db, uint32_t account, tide_text gmail_id,
                              struct tide_removal *removal_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_prepare(db,
                                       "SELECT " REMOVAL_COLUMNS " FROM mail_removal"
                                       " JOIN mail_manifest ON mail_manifest.id = manifest"
                                       " WHERE gmail_id = ?2 AND account = ?1 AND state = 2"
                                       " ORDER BY mail_removal.id DESC LIMIT 1",
                                       WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    tide_rows_text(&stmt, 2, gmail_id);
    rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK)
        removal_read(&stmt, removal_out);
    tide_rows_end(&stmt);
    return rc;
}

/* ---- for a restore ---- */

/* Reads one entry, or TIDE_NOT_FOUND; closes the statement. */
static tide_status removal_one(tide_rows_stmt *stmt, struct tide_removal *removal_out,
                               tide_removal_mode *mode_out, tide_error *err)
{
    const tide_status rc = tide_rows_one(stmt, err);
    if (rc == TIDE_OK) {
        removal_read(stmt, removal_out);
        if (mode_out != NULL)
            *mode_out = (tide_removal_mode)(tide_rows_get_u64(stmt, 12) & 3U);
    } else if (rc == TIDE_NOT_FOUND) {
        (void)tide_error_set(err, TIDE_NOT_FOUND, "no manifest names this message");
    }
    tide_rows_end(stmt);
    return rc;
}

tide_status tide_removal_get(tide_rows db, uint64_t id, struct tide_removal *removal_out,
                             tide_error *err)
{
    tide_rows_stmt stmt;
    const tide_status rc = tide_rows_prepare(
        db, "SELECT " REMOVAL_COLUMNS " FROM mail_removal WHERE id = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, id);
    return removal_one(&stmt, removal_out, NULL, err);
}

tide_status tide_removal_origin(tide_rows db, uint32_t account, tide_text gmail_id,
                                struct tide_removal *removal_out, tide_removal_mode *mode_out,
                                tide_error *err)
{
    tide_rows_stmt stmt;
    const tide_status rc = tide_rows_prepare(db,
                                             "SELECT " REMOVAL_COLUMNS ", mode FROM mail_removal"
                                             " JOIN mail_manifest ON mail_manifest.id = manifest"
                                             " WHERE gmail_id = ?2 AND account = ?1 AND state = 2"
                                             " AND mode <> 3 ORDER BY mail_removal.id DESC LIMIT 1",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    tide_rows_text(&stmt, 2, gmail_id);
    return removal_one(&stmt, removal_out, mode_out, err);
}

tide_status tide_removal_of(tide_rows db, uint64_t manifest, tide_text gmail_id,
                            struct tide_removal *removal_out, tide_error *err)
{
    tide_rows_stmt stmt;
    const tide_status rc = tide_rows_prepare(db,
                                             "SELECT " REMOVAL_COLUMNS " FROM mail_removal"
                                             " WHERE manifest = ?1 AND gmail_id = ?2",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, manifest);
    tide_rows_text(&stmt, 2, gmail_id);
    return removal_one(&stmt, removal_out, NULL, err);
}

tide_status tide_removal_restored(tide_rows db, uint32_t account, tide_text gmail_id,
                                  tide_text new_id, uint64_t now_ms, tide_error *err)
{
    tide_rows_stmt stmt;
    const tide_status rc =
        tide_rows_prepare(db,
                          "UPDATE mail_removal SET state = 4, restored_id = ?3, changed_ms = ?4"
                          " WHERE gmail_id = ?2 AND state = 2"
                          " AND manifest IN (SELECT id FROM mail_manifest WHERE account = ?1)",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    tide_rows_text(&stmt, 2, gmail_id);
    tide_rows_text(&stmt, 3, new_id);
    tide_rows_u64(&stmt, 4, now_ms);
    return tide_rows_run(&stmt, err);
}

tide_status tide_removal_facts(tide_rows db, uint32_t account, tide_text gmail_id,
                               struct tide_removal_facts *facts_out, tide_error *err)
{
    tide_rows_stmt stmt;
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
    tide_rows_u64(&stmt, 1, account);
    tide_rows_text(&stmt, 2, gmail_id);
    rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK)
        *facts_out = (struct tide_removal_facts){.first_ms = tide_rows_get_u64(&stmt, 0),
                                                 .claimed = tide_rows_get_i64(&stmt, 1) != 0,
                                                 .moved = tide_rows_get_i64(&stmt, 2) != 0};
    tide_rows_end(&stmt);
    return rc;
}

tide_status tide_manifest_unfinished(tide_rows db, uint32_t account, const char *query,
                                     struct tide_manifest *manifest_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_prepare(db,
                          "SELECT " MANIFEST_COLUMNS " FROM mail_manifest WHERE account = ?1"
                          " AND query = ?2 AND mode = 3 AND ended_ms = 0 ORDER BY id LIMIT 1",
                          WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    tide_rows_text(&stmt, 2, tide_text_of(query));
    rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK)
        manifest_read(&stmt, manifest_out);
    else if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "there is no such unfinished restore");
    tide_rows_end(&stmt);
    return rc == TIDE_OK ? manifest_count(db, manifest_out, err) : rc;
}

/* ---- gaps ---- */

tide_status tide_gap_put(tide_rows db, uint32_t account, uint64_t at_ms, tide_error *err)
{
    tide_rows_stmt stmt;
    const tide_status rc = tide_rows_prepare(db,
                                             "INSERT INTO mail_gap(account, at_ms) VALUES(?1, ?2)"
                                             " ON CONFLICT(account) DO UPDATE SET at_ms = ?2",
                                             WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    tide_rows_u64(&stmt, 2, at_ms);
    return tide_rows_run(&stmt, err);
}

tide_status tide_gap_get(tide_rows db, uint32_t account, uint64_t *at_ms_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_prepare(db, "SELECT at_ms FROM mail_gap WHERE account = ?1", WHAT, &stmt, err);
    if (rc != TIDE_OK)
        return rc;
    tide_rows_u64(&stmt, 1, account);
    rc = tide_rows_one(&stmt, err);
    if (rc == TIDE_OK || rc == TIDE_NOT_FOUND)
        *at_ms_out = rc == TIDE_OK ? tide_rows_get_u64(&stmt, 0) : 0;
    tide_rows_end(&stmt);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}
