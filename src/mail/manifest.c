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
    return tide_rows_number(db, WHAT, &manifest->id, err,
                            "INSERT INTO mail_manifest(account, mode, query, made_ms, ended_ms,"
                            " watermark_ms, planned_ms) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
                            " RETURNING id",
                            manifest->account, manifest->mode, manifest->query, manifest->made_ms,
                            manifest->ended_ms, manifest->tidemark_ms, manifest->planned_ms);
}

tide_status tide_manifest_end(tide_rows db, uint64_t manifest, uint64_t ended_ms, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "UPDATE mail_manifest SET ended_ms = ?2 WHERE id = ?1",
                        manifest, ended_ms);
}

tide_status tide_manifest_planned(tide_rows db, uint64_t manifest, uint64_t now_ms, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "UPDATE mail_manifest SET planned_ms = ?2 WHERE id = ?1",
                        manifest, now_ms);
}

#define UNPLANNED                                                                                  \
    "SELECT id FROM mail_manifest"                                                                 \
    " WHERE account = ?1 AND planned_ms = 0 AND ended_ms = 0 AND mode < 3"

tide_status tide_manifest_forget_unplanned(tide_rows db, uint32_t account, uint32_t limit,
                                           bool *more_out, tide_error *err)
{
    uint64_t forgotten = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &forgotten, err,
                              "DELETE FROM mail_removal WHERE id IN (SELECT id FROM mail_removal"
                              " WHERE manifest IN (" UNPLANNED ") LIMIT ?2)",
                              account, limit));
    *more_out = forgotten == limit;
    if (*more_out)
        return TIDE_OK;
    return tide_rows_do(db, WHAT, err, "DELETE FROM mail_manifest WHERE id IN (" UNPLANNED ")",
                        account);
}

static tide_status manifest_count(tide_rows db, struct tide_manifest *manifest, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      "SELECT state, count(*), CAST(sum(bytes) AS bigint) FROM mail_removal"
                      " WHERE manifest = ?1 GROUP BY state",
                      manifest->id);
    while (tide_rows_next(&stmt, &rc, err)) {
        const uint64_t state = tide_rows_get_u64(&stmt, 0);
        if (state > TIDE_REMOVAL_RESTORED)
            continue;
        manifest->entries[state] = tide_rows_get_u64(&stmt, 1);
        manifest->bytes[state] = tide_rows_get_u64(&stmt, 2);
    }
    return rc;
}

static void manifest_read(const tide_rows_stmt *stmt, struct tide_manifest *manifest)
{
    *manifest = (struct tide_manifest){.id = tide_rows_get_u64(stmt, 0),
                                       .account = tide_rows_get_u32(stmt, 1),
                                       .mode = (tide_removal_mode)(tide_rows_get_u64(stmt, 2) & 3U),
                                       .made_ms = tide_rows_get_u64(stmt, 4),
                                       .ended_ms = tide_rows_get_u64(stmt, 5),
                                       .tidemark_ms = tide_rows_get_u64(stmt, 6),
                                       .planned_ms = tide_rows_get_u64(stmt, 7)};
    tide_rows_get_copy(stmt, 3, manifest->query, sizeof manifest->query);
}

/* Takes the first row of a statement, read with `rc`, and ends it. */
static tide_status manifest_one(tide_rows db, tide_rows_stmt *stmt, tide_status rc,
                                struct tide_manifest *manifest_out, tide_error *err)
{
    struct tide_manifest found;
    if (rc == TIDE_OK)
        manifest_read(stmt, &found);
    tide_rows_end(stmt);
    TIDE_TRY(rc);
    TIDE_TRY(manifest_count(db, &found, err));
    *manifest_out = found;
    return TIDE_OK;
}

tide_status tide_manifest_get(tide_rows db, uint64_t manifest, struct tide_manifest *manifest_out,
                              tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_first(db, WHAT, &stmt, err,
                        "SELECT " MANIFEST_COLUMNS " FROM mail_manifest WHERE id = ?1", manifest);
    if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "there is no manifest %llu",
                             (unsigned long long)manifest);
    return manifest_one(db, &stmt, rc, manifest_out, err);
}

tide_status tide_manifest_list(tide_rows db, uint32_t account,
                               void (*visit)(const struct tide_manifest *manifest, void *arg),
                               void *arg, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT " MANIFEST_COLUMNS " FROM mail_manifest"
                                   " WHERE ?1 = 0 OR account = ?1 ORDER BY id DESC",
                                   account);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_manifest one;
        manifest_read(&stmt, &one);
        rc = manifest_count(db, &one, err);
        if (rc != TIDE_OK)
            break;
        visit(&one, arg);
    }
    return rc;
}

tide_status tide_manifest_run_left(tide_rows db, uint32_t account,
                                   struct tide_manifest *manifest_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_first(db, WHAT, &stmt, err,
                                     "SELECT " MANIFEST_COLUMNS " FROM mail_manifest"
                                     " WHERE account = ?1 AND mode < 3 AND ended_ms = 0"
                                     " AND planned_ms > 0 ORDER BY id DESC LIMIT 1",
                                     account);
    return manifest_one(db, &stmt, rc, manifest_out, err);
}

/* ---- entries ---- */

tide_status tide_removal_add(tide_rows db, const struct tide_removal *removal, tide_error *err)
{
    return tide_rows_do(
        db, WHAT, err,
        "INSERT INTO mail_removal(manifest, gmail_id, thread_id, hash, bytes, internal_ms,"
        " labels, state, reason, restored_id, changed_ms)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
        " ON CONFLICT(manifest, gmail_id) DO NOTHING",
        removal->manifest, removal->gmail_id, removal->thread_id,
        tide_value_bytes(removal->hash, sizeof removal->hash), removal->bytes, removal->internal_ms,
        removal->labels, removal->state, removal->reason, removal->restored_id,
        removal->changed_ms);
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
    uint64_t moved = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &moved, err, moves[state], id, text, now_ms));
    if (moved != 1)
        return tide_error_set(err, TIDE_STALE, "entry %llu of a manifest cannot become %s",
                              (unsigned long long)id, tide_removal_state_name(state));
    return TIDE_OK;
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
    tide_auto_rows stmt;
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      "SELECT " REMOVAL_COLUMNS " FROM mail_removal WHERE manifest = ?1"
                      " AND (?2 < 0 OR state = ?2) AND mail_removal.id > ?3"
                      " ORDER BY mail_removal.id LIMIT ?4",
                      manifest, state, after, limit);
    bool more = true;
    while (more && tide_rows_next(&stmt, &rc, err)) {
        struct tide_removal one;
        removal_read(&stmt, &one);
        more = visit(&one, arg);
    }
    return rc;
}

/* ---- for a restore ---- */

/* Takes the first row of a statement, read with `rc`, and ends it. */
static tide_status removal_one(tide_rows_stmt *stmt, tide_status rc,
                               struct tide_removal *removal_out, tide_removal_mode *mode_out,
                               tide_error *err)
{
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
    tide_status rc = tide_rows_first(
        db, WHAT, &stmt, err, "SELECT " REMOVAL_COLUMNS " FROM mail_removal WHERE id = ?1", id);
    return removal_one(&stmt, rc, removal_out, NULL, err);
}

tide_status tide_removal_origin(tide_rows db, uint32_t account, tide_text gmail_id,
                                struct tide_removal *removal_out, tide_removal_mode *mode_out,
                                tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_first(db, WHAT, &stmt, err,
                                     "SELECT " REMOVAL_COLUMNS ", mode FROM mail_removal"
                                     " JOIN mail_manifest ON mail_manifest.id = manifest"
                                     " WHERE gmail_id = ?2 AND account = ?1 AND state = 2"
                                     " AND mode <> 3 ORDER BY mail_removal.id DESC LIMIT 1",
                                     account, gmail_id);
    return removal_one(&stmt, rc, removal_out, mode_out, err);
}

tide_status tide_removal_of(tide_rows db, uint64_t manifest, tide_text gmail_id,
                            struct tide_removal *removal_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc = tide_rows_first(db, WHAT, &stmt, err,
                                     "SELECT " REMOVAL_COLUMNS " FROM mail_removal"
                                     " WHERE manifest = ?1 AND gmail_id = ?2",
                                     manifest, gmail_id);
    return removal_one(&stmt, rc, removal_out, NULL, err);
}

tide_status tide_removal_restored(tide_rows db, uint32_t account, tide_text gmail_id,
                                  tide_text new_id, uint64_t now_ms, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "UPDATE mail_removal SET state = 4, restored_id = ?3, changed_ms = ?4"
                        " WHERE gmail_id = ?2 AND state = 2"
                        " AND manifest IN (SELECT id FROM mail_manifest WHERE account = ?1)",
                        account, gmail_id, new_id, now_ms);
}

tide_status tide_removal_facts(tide_rows db, uint32_t account, tide_text gmail_id,
                               struct tide_removal_facts *facts_out, tide_error *err)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first(
        db, WHAT, &stmt, err,
        "SELECT (SELECT min(made_ms) FROM mail_removal JOIN mail_manifest"
        "   ON mail_manifest.id = manifest WHERE gmail_id = ?2 AND account = ?1),"
        " EXISTS (SELECT 1 FROM mail_removal JOIN mail_manifest"
        "   ON mail_manifest.id = manifest WHERE restored_id = ?2 AND account = ?1),"
        " EXISTS (SELECT 1 FROM mail_removal JOIN mail_manifest"
        "   ON mail_manifest.id = manifest WHERE gmail_id = ?2 AND account = ?1"
        "   AND state = 4 AND restored_id <> gmail_id)",
        account, gmail_id));
    *facts_out = (struct tide_removal_facts){.first_ms = tide_rows_get_u64(&stmt, 0),
                                             .claimed = tide_rows_get_i64(&stmt, 1) != 0,
                                             .moved = tide_rows_get_i64(&stmt, 2) != 0};
    return TIDE_OK;
}

tide_status tide_manifest_unfinished(tide_rows db, uint32_t account, const char *query,
                                     struct tide_manifest *manifest_out, tide_error *err)
{
    tide_rows_stmt stmt;
    tide_status rc =
        tide_rows_first(db, WHAT, &stmt, err,
                        "SELECT " MANIFEST_COLUMNS " FROM mail_manifest WHERE account = ?1"
                        " AND query = ?2 AND mode = 3 AND ended_ms = 0 ORDER BY id LIMIT 1",
                        account, query);
    if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, TIDE_NOT_FOUND, "there is no such unfinished restore");
    return manifest_one(db, &stmt, rc, manifest_out, err);
}

/* ---- gaps ---- */

tide_status tide_gap_put(tide_rows db, uint32_t account, uint64_t at_ms, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_gap(account, at_ms) VALUES(?1, ?2)"
                        " ON CONFLICT(account) DO UPDATE SET at_ms = ?2",
                        account, at_ms);
}

tide_status tide_gap_close(tide_rows db, uint32_t account, uint64_t at_ms, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "DELETE FROM mail_gap WHERE account = ?1 AND at_ms <= ?2",
                        account, at_ms);
}

tide_status tide_gap_get(tide_rows db, uint32_t account, uint64_t *at_ms_out, tide_error *err)
{
    *at_ms_out = 0;
    const tide_status rc = tide_rows_number(
        db, WHAT, at_ms_out, err, "SELECT at_ms FROM mail_gap WHERE account = ?1", account);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}
