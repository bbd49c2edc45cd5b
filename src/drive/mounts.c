#include "drive/mounts.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

#define WHAT "the shared folders"

enum { NAMES_MAX = 99 };

/* ---- what there is ---- */

tide_status tide_drive_mount_seen(tide_rows db, uint32_t parent, tide_text id,
                                  tide_text target_drive, tide_text target_id, tide_error *err)
{
    /* One that has a drive keeps its target: its rows are of that one. */
    return tide_rows_do(
        db, WHAT, err,
        "INSERT INTO drive_mount(parent, id, target_drive, target_id, drive, state, why)"
        " VALUES(?1, ?2, ?3, ?4, 0, 0, '') ON CONFLICT(parent, id) DO UPDATE"
        " SET target_drive = ?3, target_id = ?4 WHERE drive_mount.drive = 0"
        " AND (drive_mount.target_drive <> ?3 OR drive_mount.target_id <> ?4)",
        parent, id, target_drive, target_id);
}

/* A row that is gone and was never synced is removed when its round ends (store/remote.c), and there is none
 * before the round that brings it has ended. */
static tide_drive_shortcut shortcut_of(const tide_rows_stmt *stmt, int state_at, int reason_at,
                                       int staged_at)
{
    if (tide_rows_get_null(stmt, state_at))
        return tide_rows_get_u64(stmt, staged_at) > 0 ? TIDE_DRIVE_SHORTCUT_UNKNOWN
                                                      : TIDE_DRIVE_SHORTCUT_GONE;
    const int64_t state = tide_rows_get_i64(stmt, state_at);
    if (state == TIDE_DRIVE_REMOTE_GONE)
        return TIDE_DRIVE_SHORTCUT_GONE;
    return state == TIDE_DRIVE_REMOTE_SKIPPED &&
                   tide_rows_get_i64(stmt, reason_at) == TIDE_DRIVE_REASON_SHARED_FOLDER
               ? TIDE_DRIVE_SHORTCUT_THERE
               : TIDE_DRIVE_SHORTCUT_UNKNOWN;
}

tide_status tide_drive_mounts_each(tide_rows db, uint32_t parent,
                                   void (*visit)(const struct tide_drive_mount *mount, void *arg),
                                   void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_drive_mount mount;
    bool there = false;
    TIDE_TRY(tide_rows_has(db, "drive_mount", WHAT, &there, err));
    if (!there)
        return TIDE_OK;
    tide_status rc = tide_rows_ask(
        tide_drives_rows(db, parent), WHAT, &stmt, err,
        "SELECT m.id, m.target_drive, m.target_id, m.drive, m.state, m.why, r.state, r.reason,"
        " coalesce(r.item, 0), coalesce(r.parent, 0), coalesce(r.name, ''),"
        " (SELECT count(*) FROM drive_@_staged s WHERE s.id = m.id)"
        " FROM drive_mount m LEFT JOIN drive_@_item i ON i.id = m.id"
        " LEFT JOIN drive_@_remote r ON r.item = i.item WHERE m.parent = ?1 ORDER BY m.id",
        parent);
    while (tide_rows_next(&stmt, &rc, err)) {
        memset(&mount, 0, sizeof mount);
        tide_rows_get_copy(&stmt, 0, mount.id, sizeof mount.id);
        tide_rows_get_copy(&stmt, 1, mount.target_drive, sizeof mount.target_drive);
        tide_rows_get_copy(&stmt, 2, mount.target_id, sizeof mount.target_id);
        mount.drive = tide_rows_get_u32(&stmt, 3);
        mount.state = (tide_drive_mount_state)tide_rows_get_i64(&stmt, 4);
        tide_rows_get_copy(&stmt, 5, mount.why, sizeof mount.why);
        mount.shortcut = shortcut_of(&stmt, 6, 7, 11);
        mount.item = tide_rows_get_u64(&stmt, 8);
        mount.folder = tide_rows_get_u64(&stmt, 9);
        tide_rows_get_copy(&stmt, 10, mount.name, sizeof mount.name);
        visit(&mount, arg);
    }
    return rc;
}

/* The shortcuts of a drive that are there and are synced: of ?1, in state ?2. */
#define ATTACHED                                                                                   \
    "SELECT count(*) FROM drive_mount m JOIN drive_@_item i ON i.id = m.id"                        \
    " JOIN drive_@_remote r ON r.item = i.item"

tide_status tide_drive_mount_counts(tide_rows db, uint32_t parent,
                                    struct tide_drive_mount_counts *counts_out, tide_error *err)
{
    const tide_rows own = tide_drives_rows(db, parent);
    struct tide_drive_mount_counts counts = {.online = 0};
    bool there = false;
    TIDE_TRY(tide_rows_has(db, "drive_mount", WHAT, &there, err));
    if (there) {
        TIDE_TRY(tide_rows_number(own, WHAT, &counts.online, err,
                                  ATTACHED " WHERE m.parent = ?1 AND m.state = ?2 AND r.state = 4",
                                  parent, (int)TIDE_DRIVE_MOUNT_ATTACHED));
        TIDE_TRY(tide_rows_number(
            own, WHAT, &counts.here, err,
            ATTACHED " JOIN drive_@_local l ON l.name = r.name AND l.state = 2 AND l.parent ="
                     " CASE r.parent WHEN 1 THEN 1 ELSE (SELECT b.row FROM drive_@_base b"
                     " WHERE b.item = r.parent) END"
                     " WHERE m.parent = ?1 AND m.state = ?2 AND r.state = 4",
            parent, (int)TIDE_DRIVE_MOUNT_ATTACHED));
        TIDE_TRY(tide_rows_number(own, WHAT, &counts.trouble, err,
                                  "SELECT count(*) FROM drive_mount WHERE parent = ?1"
                                  " AND why <> '' AND state NOT IN (?2, ?3)",
                                  parent, (int)TIDE_DRIVE_MOUNT_DETACHED,
                                  (int)TIDE_DRIVE_MOUNT_IGNORED));
    }
    *counts_out = counts;
    return TIDE_OK;
}

/* ---- names ---- */

/* "OneDrive/Team": a user's own drive never has a slash in its name. */
static void name_try(const char *parent_name, const char *shortcut_name, unsigned nth,
                     char name_out[TIDE_DRIVE_NAME_BYTES])
{
    char ending[16] = "";
    if (nth > 1)
        (void)snprintf(ending, sizeof ending, " (%u)", nth);
    char whole[TIDE_DRIVE_NAME_BYTES + TIDE_DRIVE_LOOK_NAME_BYTES];
    (void)snprintf(whole, sizeof whole, "%s/%s", parent_name, shortcut_name);
    const size_t room = TIDE_DRIVE_NAME_BYTES - 1 - strlen(ending);
    size_t bytes = 0;
    for (tide_text rest = tide_text_of(whole); rest.bytes > 0;) {
        const size_t letter = tide_utf8_bytes(rest);
        const size_t step = letter == 0 ? 1 : letter;
        if (bytes + step > room)
            break;
        bytes += step;
        rest.data += step;
        rest.bytes -= step;
    }
    (void)snprintf(name_out, TIDE_DRIVE_NAME_BYTES, "%.*s%s", (int)bytes, whole, ending);
}

static tide_status name_free(tide_rows db, const char *parent_name, const char *shortcut_name,
                             uint32_t own, char name_out[TIDE_DRIVE_NAME_BYTES], tide_error *err)
{
    for (unsigned nth = 1; nth <= NAMES_MAX; nth++) {
        uint64_t others = 0;
        name_try(parent_name, shortcut_name, nth, name_out);
        TIDE_TRY(tide_rows_number(db, WHAT, &others, err,
                                  "SELECT count(*) FROM drive_drive WHERE name = ?1"
                                  " AND number <> ?2",
                                  name_out, own));
        if (others == 0)
            return TIDE_OK;
    }
    return tide_error_set(err, TIDE_EXISTS, "too many drives have the name \"%.60s\"", name_out);
}

/* ---- changes ---- */

struct rules {
    tide_rows db;
    uint32_t drive;
    tide_error *err;
    tide_status rc;
};

/* One with a slash inside begins at the root of its own drive. */
static void copy_rule(tide_text pattern, void *arg)
{
    struct rules *rules = arg;
    const char *slash = memchr(pattern.data, '/', pattern.bytes);
    if (rules->rc != TIDE_OK || (slash != NULL && slash != pattern.data + pattern.bytes - 1))
        return;
    rules->rc = tide_rows_do(rules->db, WHAT, rules->err,
                             "INSERT INTO drive_rule(drive, pattern) VALUES(?1, ?2)", rules->drive,
                             pattern);
}

tide_status tide_drive_mount_register(tide_rows db, uint32_t parent, const char *id,
                                      const char *shortcut_name, struct tide_drive_row *row,
                                      tide_error *err)
{
    struct tide_drive_row above;
    uint64_t changed = 0;
    TIDE_TRY(tide_drives_get(db, parent, &above, err));
    TIDE_ASSERT(above.parent == 0); /* DMT3 */
    row->parent = parent;
    TIDE_TRY(name_free(db, above.name, shortcut_name, 0, row->name, err));
    TIDE_TRY(tide_drives_add(db, row, err));
    struct rules rules = {.db = db, .drive = row->number, .err = err, .rc = TIDE_OK};
    TIDE_TRY(tide_drive_rules_each(db, parent, copy_rule, &rules, err));
    TIDE_TRY(rules.rc);
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE drive_mount SET drive = ?3, state = 0, why = ''"
                              " WHERE parent = ?1 AND id = ?2 AND drive = 0",
                              parent, id, row->number));
    return changed == 1 ? TIDE_OK /* DMT1 */
                        : tide_error_set(err, TIDE_STALE, "the shared folder has a drive already");
}

tide_status tide_drive_mount_adopt(tide_rows db, uint32_t parent, const char *from, const char *id,
                                   tide_error *err)
{
    uint64_t drive = 0;
    TIDE_TRY(tide_rows_number(db, WHAT, &drive, err,
                              "SELECT drive FROM drive_mount WHERE parent = ?1 AND id = ?2", parent,
                              from));
    TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM drive_mount WHERE parent = ?1 AND id = ?2",
                          parent, from));
    return tide_rows_do(db, WHAT, err,
                        "UPDATE drive_mount SET drive = ?3, state = ?4, why = ''"
                        " WHERE parent = ?1 AND id = ?2 AND drive = 0",
                        parent, id, drive, (int)TIDE_DRIVE_MOUNT_LOST);
}

tide_status tide_drive_mount_state_set(tide_rows db, uint32_t parent, const char *id,
                                       tide_drive_mount_state state, const char *why,
                                       tide_error *err)
{
    uint64_t drive = 0;
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "UPDATE drive_mount SET state = ?3, why = ?4"
                          " WHERE parent = ?1 AND id = ?2",
                          parent, id, (int)state, why));
    TIDE_TRY(tide_rows_number(db, WHAT, &drive, err,
                              "SELECT drive FROM drive_mount WHERE parent = ?1 AND id = ?2", parent,
                              id));
    /* Actions that met it without its folder ended without their effect. */
    return drive != 0 && state == TIDE_DRIVE_MOUNT_ATTACHED
               ? tide_drive_changed(tide_drives_rows(db, (uint32_t)drive), 1, err)
               : TIDE_OK;
}

tide_status tide_drive_mount_moved(tide_rows db, uint32_t drive, const char *dir,
                                   const char *shortcut_name, tide_error *err)
{
    struct tide_drive_row row;
    char name[TIDE_DRIVE_NAME_BYTES];
    TIDE_TRY(tide_drives_get(db, drive, &row, err));
    TIDE_TRY(name_free(db, row.parent_name, shortcut_name, drive, name, err));
    return tide_rows_do(db, WHAT, err,
                        "UPDATE drive_drive SET dir = ?2, name = ?3 WHERE number = ?1", drive, dir,
                        name);
}

tide_status tide_drive_mount_release(tide_rows db, uint32_t parent, const char *id, tide_error *err)
{
    uint64_t drive = 0;
    TIDE_TRY(tide_rows_number(db, WHAT, &drive, err,
                              "SELECT drive FROM drive_mount WHERE parent = ?1 AND id = ?2", parent,
                              id));
    if (drive != 0)
        TIDE_TRY(tide_drives_remove(db, (uint32_t)drive, err));
    return tide_drive_mount_state_set(db, parent, id, TIDE_DRIVE_MOUNT_NEW, "", err);
}

tide_status tide_drive_mount_forget(tide_rows db, uint32_t parent, const char *id, tide_error *err)
{
    TIDE_TRY(tide_drive_mount_release(db, parent, id, err));
    return tide_rows_do(db, WHAT, err, "DELETE FROM drive_mount WHERE parent = ?1 AND id = ?2",
                        parent, id);
}

const char *tide_drive_mount_word(tide_drive_mount_state state)
{
    static const char *const words[] = {
        [TIDE_DRIVE_MOUNT_NEW] = "new",
        [TIDE_DRIVE_MOUNT_ATTACHED] = "attached",
        [TIDE_DRIVE_MOUNT_REFUSED] = "refused",
        [TIDE_DRIVE_MOUNT_DETACHED] = "detached",
        [TIDE_DRIVE_MOUNT_LOST] = "shortcut_gone",
        [TIDE_DRIVE_MOUNT_HELD] = "held",
        [TIDE_DRIVE_MOUNT_IGNORED] = "ignored",
    };
    return (size_t)state < sizeof words / sizeof words[0] ? words[state] : "unknown";
}
