#include "drive/drives.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

#define WHAT "the drives"

/* ---- tables ---- */

static const char accounts[] = "CREATE TABLE IF NOT EXISTS drive_account("
                               " account INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
                               " endpoint TEXT NOT NULL) STRICT;";
/* On SQLite a number is given again after the row with the largest one was deleted, unless
 * AUTOINCREMENT is there (DRV1): no job of a drive that was removed may meet the tables of another.
 * PostgreSQL has the tables so that a ledger without drives can be copied there. */
#define DRIVES(unique)                                                                             \
    "CREATE TABLE IF NOT EXISTS drive_drive("                                                      \
    " number INTEGER PRIMARY KEY" unique ", account INTEGER NOT NULL,"                             \
    " name TEXT NOT NULL UNIQUE, dir TEXT NOT NULL UNIQUE, drive_id TEXT NOT NULL,"                \
    " root_id TEXT NOT NULL, marker TEXT NOT NULL, mode INTEGER NOT NULL,"                         \
    " business INTEGER NOT NULL) STRICT;"                                                          \
    "CREATE TABLE IF NOT EXISTS drive_rule("                                                       \
    " id INTEGER PRIMARY KEY, drive INTEGER NOT NULL, pattern TEXT NOT NULL,"                      \
    " UNIQUE(drive, pattern)) STRICT;"                                                             \
    "CREATE TABLE IF NOT EXISTS drive_subscription("                                               \
    " drive INTEGER PRIMARY KEY, id TEXT NOT NULL, secret TEXT NOT NULL, url TEXT NOT NULL,"       \
    " expires_ms INTEGER NOT NULL) STRICT;"                                                        \
    "CREATE TABLE IF NOT EXISTS drive_mount("                                                      \
    " parent INTEGER NOT NULL, id TEXT NOT NULL, target_drive TEXT NOT NULL,"                      \
    " target_id TEXT NOT NULL, drive INTEGER NOT NULL, state INTEGER NOT NULL, why TEXT NOT NULL," \
    " PRIMARY KEY(parent, id)) STRICT, WITHOUT ROWID;"                                             \
    "CREATE INDEX IF NOT EXISTS drive_mount_drive ON drive_mount(drive);"

tide_status tide_drives_tables(tide_rows db, tide_error *err)
{
    TIDE_TRY(tide_rows_tables(db, accounts, WHAT, err));
    return tide_rows_tables(db, db.sqlite == NULL ? DRIVES("") : DRIVES(" AUTOINCREMENT"), WHAT,
                            err);
}

tide_status tide_drives_upgrade(tide_rows db, tide_error *err)
{
    uint64_t number = 0;
    tide_status rc = db.sqlite == NULL ? TIDE_NOT_FOUND : TIDE_OK; /* there are none */
    while (rc == TIDE_OK) {
        rc = tide_rows_number(db, WHAT, &number, err,
                              "SELECT number FROM drive_drive WHERE number > ?1 ORDER BY number"
                              " LIMIT 1",
                              number);
        if (rc == TIDE_OK)
            rc = tide_drive_store_tables(tide_drives_rows(db, (uint32_t)number), err);
    }
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_rows tide_drives_rows(tide_rows db, uint32_t number)
{
    TIDE_ASSERT(number > 0);
    db.number = number;
    return db;
}

/* ---- reading ---- */

static tide_status are_there(tide_rows db, bool *there_out, tide_error *err)
{
    return tide_rows_has(db, "drive_drive", WHAT, there_out, err);
}

#define COLUMNS                                                                                    \
    "SELECT d.number, d.account, coalesce(a.name, ''), coalesce(s.endpoint, ''), d.name, d.dir,"   \
    " d.drive_id, d.root_id, d.marker, d.mode, d.business"
#define FROM                                                                                       \
    " FROM drive_drive d"                                                                          \
    " LEFT JOIN account a ON a.id = d.account LEFT JOIN drive_account s ON s.account = d.account"
#define WITH_MOUNT                                                                                 \
    COLUMNS ", coalesce(m.parent, 0), coalesce(p.name, ''), coalesce(m.state, 0),"                 \
            " coalesce(m.why, '')" FROM " LEFT JOIN drive_mount m ON m.drive = d.number"           \
            " LEFT JOIN drive_drive p ON p.number = m.parent"
/* A command that reads may meet a home that no engine with shared folders has opened yet. */
#define WITHOUT_MOUNT COLUMNS ", 0, '', 0, ''" FROM

/* Begins to read rows; the caller ends it.  TIDE_NOT_FOUND: no drive was ever added. */
static tide_status ask(tide_rows db, tide_rows_stmt *stmt, bool all, const char *name,
                       uint32_t number, tide_error *err)
{
    bool there = false, mounts = false;
    TIDE_TRY(are_there(db, &there, err));
    if (!there)
        return TIDE_NOT_FOUND;
    TIDE_TRY(tide_rows_has(db, "drive_mount", WHAT, &mounts, err));
    if (all)
        return tide_rows_ask(db, WHAT, stmt, err,
                             mounts ? WITH_MOUNT " ORDER BY d.name COLLATE BINARY"
                                    : WITHOUT_MOUNT " ORDER BY d.name COLLATE BINARY");
    if (name != NULL)
        return tide_rows_first(
            db, WHAT, stmt, err,
            mounts ? WITH_MOUNT " WHERE d.name = ?1" : WITHOUT_MOUNT " WHERE d.name = ?1", name);
    return tide_rows_first(
        db, WHAT, stmt, err,
        mounts ? WITH_MOUNT " WHERE d.number = ?1" : WITHOUT_MOUNT " WHERE d.number = ?1", number);
}

static void read_row(const tide_rows_stmt *stmt, struct tide_drive_row *row)
{
    row->number = tide_rows_get_u32(stmt, 0);
    row->account = tide_rows_get_u32(stmt, 1);
    tide_rows_get_copy(stmt, 2, row->account_name, sizeof row->account_name);
    tide_rows_get_copy(stmt, 3, row->endpoint, sizeof row->endpoint);
    tide_rows_get_copy(stmt, 4, row->name, sizeof row->name);
    tide_rows_get_copy(stmt, 5, row->dir, sizeof row->dir);
    tide_rows_get_copy(stmt, 6, row->drive_id, sizeof row->drive_id);
    tide_rows_get_copy(stmt, 7, row->root_id, sizeof row->root_id);
    tide_rows_get_copy(stmt, 8, row->marker, sizeof row->marker);
    row->mode = (tide_drive_mode)tide_rows_get_i64(stmt, 9);
    row->business = tide_rows_get_i64(stmt, 10) != 0;
    row->parent = tide_rows_get_u32(stmt, 11);
    tide_rows_get_copy(stmt, 12, row->parent_name, sizeof row->parent_name);
    row->mount = (tide_drive_mount_state)tide_rows_get_i64(stmt, 13);
    tide_rows_get_copy(stmt, 14, row->mount_why, sizeof row->mount_why);
}

static tide_status was_removed(uint32_t number, tide_error *err)
{
    return tide_error_set(err, TIDE_NOT_FOUND, "drive %u was removed", (unsigned)number);
}

tide_status tide_drives_known(tide_rows db, uint32_t number, struct tide_drive_row *row_out,
                              tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc =
        tide_rows_first(db, WHAT, &stmt, err, WITH_MOUNT " WHERE d.number = ?1", number);
    if (rc == TIDE_OK)
        read_row(&stmt, row_out);
    return rc == TIDE_NOT_FOUND ? was_removed(number, err) : rc;
}

tide_status tide_drives_has(tide_rows db, uint32_t number, bool *there_out, tide_error *err)
{
    uint64_t found = 0;
    const tide_status rc = tide_rows_number(
        db, WHAT, &found, err, "SELECT number FROM drive_drive WHERE number = ?1", number);
    *there_out = rc == TIDE_OK;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_drives_get(tide_rows db, uint32_t number, struct tide_drive_row *row_out,
                            tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = ask(db, &stmt, false, NULL, number, err);
    if (rc == TIDE_OK)
        read_row(&stmt, row_out);
    return rc == TIDE_NOT_FOUND ? was_removed(number, err) : rc;
}

tide_status tide_drives_named(tide_rows db, const char *name, struct tide_drive_row *row_out,
                              tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = ask(db, &stmt, false, name, 0, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no drive \"%.100s\"", name);
    if (rc == TIDE_OK)
        read_row(&stmt, row_out);
    return rc;
}

tide_status tide_drives_each(tide_rows db,
                             void (*visit)(const struct tide_drive_row *row, void *arg), void *arg,
                             tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_drive_row row;
    tide_status rc = ask(db, &stmt, true, NULL, 0, err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        read_row(&stmt, &row);
        visit(&row, arg);
    }
    return rc;
}

/* ---- adding ---- */

struct place {
    const struct tide_drive_row *row;
    tide_error *err;
    tide_status rc;
};

/* Whether `dir` is `other` or below it.  A name that only begins alike is not below. */
static bool is_below(const char *dir, const char *other)
{
    const size_t bytes = strlen(other);
    return strncmp(dir, other, bytes) == 0 && (dir[bytes] == '\0' || dir[bytes] == '/');
}

static void compare_place(const struct tide_drive_row *other, void *arg)
{
    struct place *place = arg;
    const struct tide_drive_row *row = place->row;
    if (place->rc != TIDE_OK)
        return;
    const bool around = row->parent != 0 && row->parent == other->number;
    if (strcmp(other->name, row->name) == 0)
        place->rc =
            tide_error_set(place->err, TIDE_EXISTS, "there is a drive \"%s\" already, in %s",
                           other->name, other->dir);
    else if (strcmp(other->dir, row->dir) == 0)
        place->rc = tide_error_set(place->err, TIDE_EXISTS, "%s is the folder of drive \"%s\"",
                                   row->dir, other->name);
    else if (is_below(row->dir, other->dir) && !around)
        place->rc =
            tide_error_set(place->err, TIDE_EXISTS, "%s is inside the folder of drive \"%s\", %s",
                           row->dir, other->name, other->dir);
    else if (is_below(other->dir, row->dir))
        place->rc =
            tide_error_set(place->err, TIDE_EXISTS, "the folder of drive \"%s\", %s, is inside %s",
                           other->name, other->dir, row->dir);
}

tide_status tide_drives_free(tide_rows db, const struct tide_drive_row *row, tide_error *err)
{
    struct place place = {.row = row, .err = err, .rc = TIDE_OK};
    TIDE_TRY(tide_drives_each(db, compare_place, &place, err));
    return place.rc;
}

tide_status tide_drives_add(tide_rows db, struct tide_drive_row *row, tide_error *err)
{
    uint64_t number = 0;
    TIDE_ASSERT(row->dir[0] == '/');
    TIDE_ASSERT(row->name[0] != '\0');
    if (db.sqlite == NULL)
        return tide_error_set(
            err, TIDE_INVALID,
            "the ledger of this home is on PostgreSQL; a drive needs a home with a "
            "ledger of its own, because its folder is on one machine");
    TIDE_TRY(tide_drives_tables(db, err));
    TIDE_TRY(tide_drives_free(db, row, err));
    TIDE_TRY(tide_rows_number(
        db, WHAT, &number, err,
        "INSERT INTO drive_drive(account, name, dir, drive_id, root_id, marker, mode, business)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING number",
        row->account, row->name, row->dir, row->drive_id, row->root_id, row->marker, (int)row->mode,
        row->business ? 1 : 0));
    const tide_rows own = tide_drives_rows(db, (uint32_t)number);
    const struct tide_drive_home home = {
        .drive_id = row->drive_id, .root_id = row->root_id, .marker = row->marker};
    TIDE_TRY(tide_drive_store_tables(own, err));
    TIDE_TRY(tide_drive_store_set_up(own, &home, err));
    row->number = (uint32_t)number;
    return TIDE_OK;
}

/* ---- changing ---- */

/* The shared folders of a drive. */
struct inner {
    uint32_t parent;
    uint32_t numbers[TIDE_DRIVE_MOUNTS_MAX];
    size_t count;
};

static void take_inner(const struct tide_drive_row *row, void *arg)
{
    struct inner *inner = arg;
    if (row->parent == inner->parent && inner->count < TIDE_DRIVE_MOUNTS_MAX)
        inner->numbers[inner->count++] = row->number;
}

static tide_status mode_set_one(tide_rows db, uint32_t number, tide_drive_mode mode,
                                tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE drive_drive SET mode = ?2 WHERE number = ?1", number,
                              (int)mode));
    if (changed == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "drive %u was removed", (unsigned)number);
    return tide_drive_changed(tide_drives_rows(db, number), changed, err);
}

/* Alerts name all drives of an account: they go with the last one, else the next sync says what holds. */
static tide_status remove_alerts(tide_rows db, uint32_t number, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "DELETE FROM alert WHERE substr(condition, 1, 6) = 'drive_' AND account ="
                        " (SELECT account FROM drive_drive WHERE number = ?1) AND NOT EXISTS"
                        " (SELECT 1 FROM drive_drive AS d WHERE d.account = alert.account"
                        " AND d.number <> ?1)",
                        number);
}

tide_status tide_drives_mode_set(tide_rows db, uint32_t number, tide_drive_mode mode,
                                 tide_error *err)
{
    struct inner inner = {.parent = number};
    TIDE_TRY(mode_set_one(db, number, mode, err));
    TIDE_TRY(tide_drives_each(db, take_inner, &inner, err));
    for (size_t i = 0; i < inner.count; i++)
        TIDE_TRY(mode_set_one(db, inner.numbers[i], mode, err));
    return TIDE_OK;
}

static tide_status remove_one(tide_rows db, uint32_t number, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(remove_alerts(db, number, err));
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err, "DELETE FROM drive_drive WHERE number = ?1",
                              number));
    if (changed == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "drive %u was removed", (unsigned)number);
    TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM drive_rule WHERE drive = ?1", number));
    TIDE_TRY(
        tide_rows_do(db, WHAT, err, "DELETE FROM drive_subscription WHERE drive = ?1", number));
    return tide_drive_store_remove(tide_drives_rows(db, number), err);
}

tide_status tide_drives_remove(tide_rows db, uint32_t number, tide_error *err)
{
    struct inner inner = {.parent = number};
    TIDE_TRY(tide_drives_tables(db, err)); /* of a home that has no shared folders yet */
    TIDE_TRY(tide_drives_each(db, take_inner, &inner, err));
    for (size_t i = 0; i < inner.count; i++)
        TIDE_TRY(remove_one(db, inner.numbers[i], err));
    TIDE_TRY(remove_one(db, number, err));
    TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM drive_mount WHERE parent = ?1", number));
    return tide_rows_do(
        db, WHAT, err, "UPDATE drive_mount SET drive = 0, state = ?2, why = ?3 WHERE drive = ?1",
        number, (int)TIDE_DRIVE_MOUNT_DETACHED, "it was removed with `tidemark drive remove`");
}

/* ---- ignored paths ---- */

tide_status tide_drive_rules_add(tide_rows db, uint32_t number, tide_text pattern, tide_error *err)
{
    uint64_t there = 0;
    if (pattern.bytes == 0 || pattern.bytes > TIDE_DRIVE_RULE_BYTES_MAX ||
        memchr(pattern.data, '\n', pattern.bytes) != NULL)
        return tide_error_set(err, TIDE_INVALID, "a pattern is one line of 1 to %d bytes",
                              TIDE_DRIVE_RULE_BYTES_MAX);
    TIDE_TRY(tide_rows_number(db, WHAT, &there, err,
                              "SELECT count(*) FROM drive_rule WHERE drive = ?1 AND pattern = ?2",
                              number, pattern));
    if (there > 0)
        return tide_error_set(err, TIDE_EXISTS, "\"%.*s\" is ignored already", (int)pattern.bytes,
                              pattern.data);
    TIDE_TRY(tide_rows_do(db, WHAT, err, "INSERT INTO drive_rule(drive, pattern) VALUES(?1, ?2)",
                          number, pattern));
    return tide_drive_changed(tide_drives_rows(db, number), 1, err);
}

tide_status tide_drive_rules_remove(tide_rows db, uint32_t number, tide_text pattern,
                                    tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "DELETE FROM drive_rule WHERE drive = ?1 AND pattern = ?2", number,
                              pattern));
    if (changed == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no pattern \"%.*s\"",
                              (int)(pattern.bytes > 200 ? 200 : pattern.bytes), pattern.data);
    return tide_drive_changed(tide_drives_rows(db, number), changed, err);
}

tide_status tide_drive_rules_each(tide_rows db, uint32_t number,
                                  void (*visit)(tide_text pattern, void *arg), void *arg,
                                  tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    bool there = false;
    tide_status rc = are_there(db, &there, err);
    if (rc != TIDE_OK || !there)
        return rc;
    rc = tide_rows_ask(db, WHAT, &stmt, err,
                       "SELECT pattern FROM drive_rule WHERE drive = ?1 ORDER BY id", number);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

/* ---- modes ---- */

static const char *const modes[] = {
    [TIDE_DRIVE_TWO_WAY] = "two-way",
    [TIDE_DRIVE_DOWNLOAD_ONLY] = "download-only",
    [TIDE_DRIVE_UPLOAD_ONLY] = "upload-only",
};

const char *tide_drive_mode_name(tide_drive_mode mode)
{
    TIDE_ASSERT((size_t)mode < sizeof modes / sizeof modes[0]);
    return modes[mode];
}

tide_status tide_drive_mode_of(const char *name, tide_drive_mode *mode_out, tide_error *err)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i], name) == 0) {
            *mode_out = (tide_drive_mode)i;
            return TIDE_OK;
        }
    return tide_error_set(err, TIDE_INVALID,
                          "\"%.40s\" is no mode; there are two-way, download-only and upload-only",
                          name);
}
