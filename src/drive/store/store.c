#include "drive/store/store.h"

#include "drive/store/marks.h"
#include "drive/store/store_inside.h"

#include <stdio.h>

enum { VERSION = 2 };

/* Names are blobs: those of a disk are any bytes.  `key` is the name's key (names/key.h). */
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS drive_@_state("
    " id INTEGER PRIMARY KEY CHECK(id = 1), version INTEGER NOT NULL, drive_id TEXT NOT NULL,"
    " root_id TEXT NOT NULL, marker TEXT NOT NULL, round INTEGER NOT NULL,"
    " round_number INTEGER NOT NULL, next_link TEXT NOT NULL, delta_link TEXT NOT NULL,"
    " full_at_ms INTEGER NOT NULL, changed INTEGER NOT NULL, planned INTEGER NOT NULL,"
    " planned_ms INTEGER NOT NULL, applied_ms INTEGER NOT NULL,"
    " trouble TEXT NOT NULL DEFAULT ''" /* why nothing is synced (concerns.h) */
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_@_item("
    " item INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_@_remote("
    " item INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB, key BLOB, kind INTEGER NOT "
    "NULL,"
    " state INTEGER NOT NULL, bytes INTEGER NOT NULL, qxh BLOB, etag TEXT NOT NULL,"
    " ctag TEXT NOT NULL, mtime_s INTEGER NOT NULL, round INTEGER NOT NULL, aside BLOB,"
    " reason INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_@_remote_place ON drive_@_remote(parent, key);"
    "CREATE TABLE IF NOT EXISTS drive_@_staged("
    " seq INTEGER PRIMARY KEY, id TEXT NOT NULL, parent_id TEXT NOT NULL, name BLOB, key BLOB,"
    " kind INTEGER NOT NULL, state INTEGER NOT NULL, bytes INTEGER NOT NULL, qxh BLOB,"
    " etag TEXT NOT NULL, ctag TEXT NOT NULL, mtime_s INTEGER NOT NULL,"
    " reason INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_@_staged_id ON drive_@_staged(id, seq);"
    "CREATE TABLE IF NOT EXISTS drive_@_local("
    " row INTEGER PRIMARY KEY AUTOINCREMENT, parent INTEGER NOT NULL, name BLOB NOT NULL,"
    " key BLOB NOT NULL, kind INTEGER NOT NULL, state INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " qxh BLOB, strong BLOB, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,"
    " hashed_ns INTEGER NOT NULL, dev INTEGER NOT NULL, inode INTEGER NOT NULL,"
    " birth_ns INTEGER NOT NULL, nlink INTEGER NOT NULL, mode INTEGER NOT NULL,"
    " version INTEGER NOT NULL, gone_ms INTEGER NOT NULL, aside BLOB,"
    " UNIQUE(parent, name)"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_@_local_place ON drive_@_local(parent, key);"
    "CREATE INDEX IF NOT EXISTS drive_@_local_inode ON drive_@_local(inode);"
    "CREATE INDEX IF NOT EXISTS drive_@_local_strong ON drive_@_local(strong);"
    "CREATE INDEX IF NOT EXISTS drive_@_local_gone ON drive_@_local(gone_ms) WHERE state = 4;"
    "CREATE INDEX IF NOT EXISTS drive_@_local_unread ON drive_@_local(row) WHERE state = 5;"
    "CREATE TABLE IF NOT EXISTS drive_@_base("
    " item INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB NOT NULL, key BLOB NOT NULL,"
    " kind INTEGER NOT NULL, bytes INTEGER NOT NULL, qxh BLOB, etag TEXT NOT NULL,"
    " ctag TEXT NOT NULL, mtime_s INTEGER NOT NULL, row INTEGER NOT NULL,"
    " local_name BLOB NOT NULL, local_bytes INTEGER NOT NULL, local_qxh BLOB, strong BLOB,"
    " dev INTEGER NOT NULL, inode INTEGER NOT NULL, birth_ns INTEGER NOT NULL,"
    " rewritten INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_@_base_place ON drive_@_base(parent, key);"
    /* Row 0: another item has its place here, so it is proved gone. */
    "CREATE INDEX IF NOT EXISTS drive_@_base_row ON drive_@_base(row);"
    /* The columns of the key come first: else SQLite 3.40 calls the table damaged when it is checked. */
    "CREATE TABLE IF NOT EXISTS drive_@_owed("
    " item INTEGER NOT NULL, row INTEGER NOT NULL, loop INTEGER NOT NULL, verb INTEGER NOT NULL,"
    " name BLOB NOT NULL, error TEXT NOT NULL, attempts INTEGER NOT NULL,"
    " next_ms INTEGER NOT NULL, since_ms INTEGER NOT NULL DEFAULT 0,"
    " bad INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(item, row, loop)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS drive_@_turn("
    " id INTEGER PRIMARY KEY, item INTEGER NOT NULL, at_ms INTEGER NOT NULL, strong BLOB,"
    " copy INTEGER NOT NULL, fresh INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_@_turn_item ON drive_@_turn(item);"
    "CREATE INDEX IF NOT EXISTS drive_@_turn_at ON drive_@_turn(copy, at_ms);"
    "CREATE TABLE IF NOT EXISTS drive_@_deletion("
    " item INTEGER PRIMARY KEY, verb INTEGER NOT NULL, name BLOB NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_@_consent("
    " item INTEGER PRIMARY KEY, until_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_@_deleted("
    " id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_@_size("
    " hour INTEGER PRIMARY KEY, items INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_@_conflict("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, notice INTEGER NOT NULL, item INTEGER NOT NULL,"
    " name BLOB NOT NULL, copy BLOB NOT NULL, at_ms INTEGER NOT NULL"
    ") STRICT;"
    /* Contents that downloads replaced (D42). */
    "CREATE TABLE IF NOT EXISTS drive_@_displaced("
    " strong BLOB PRIMARY KEY, at_ms INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    /* Jobs that ended without their effect: superseded, owed, held. */
    "CREATE TABLE IF NOT EXISTS drive_@_undone(job INTEGER PRIMARY KEY) STRICT;"
    /* Content that a user wants although its hash does not fit, by its tag (D41). */
    "CREATE TABLE IF NOT EXISTS drive_@_accepted("
    " item INTEGER PRIMARY KEY, ctag TEXT NOT NULL"
    ") STRICT;"
    /* Uploads that have no answer yet (D38): the file that is sent, and the place of a new item. */
    "CREATE TABLE IF NOT EXISTS drive_@_doubt("
    " item INTEGER PRIMARY KEY, row INTEGER NOT NULL, was_item INTEGER NOT NULL,"
    " dev INTEGER NOT NULL, inode INTEGER NOT NULL, birth_ns INTEGER NOT NULL,"
    " bytes INTEGER NOT NULL, qxh BLOB, strong BLOB, mtime_ns INTEGER NOT NULL,"
    " ctime_ns INTEGER NOT NULL, hashed_ns INTEGER NOT NULL, nlink INTEGER NOT NULL,"
    " mode INTEGER NOT NULL, parent_id TEXT NOT NULL, name BLOB NOT NULL"
    ") STRICT;";

/* Version 2: since when an item is owed, whether it is bad, and why a drive stopped.  What was owed
 * before counts from its next failure. */
static tide_status upgrade(tide_rows db, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "ALTER TABLE drive_@_state ADD COLUMN trouble TEXT NOT NULL DEFAULT ''"));
    TIDE_TRY(
        tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                     "ALTER TABLE drive_@_owed ADD COLUMN since_ms INTEGER NOT NULL DEFAULT 0"));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "ALTER TABLE drive_@_owed ADD COLUMN bad INTEGER NOT NULL DEFAULT 0"));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET version = ?1 WHERE id = 1", VERSION);
}

static tide_status check_version(tide_rows db, tide_error *err)
{
    uint64_t version = 0;
    const tide_status rc = tide_rows_number(db, TIDE_DRIVE_ROWS, &version, err,
                                            "SELECT version FROM drive_@_state WHERE id = 1");
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    if (rc == TIDE_OK && version < VERSION)
        return upgrade(db, err);
    if (rc == TIDE_OK && version > VERSION)
        return tide_error_set(err, TIDE_NEWER,
                              "the state of this drive was written by a newer version (%llu, this "
                              "program knows %d); use that version of the program",
                              (unsigned long long)version, VERSION);
    return rc;
}

tide_status tide_drive_store_tables(tide_rows db, tide_error *err)
{
    bool there = false;
    TIDE_TRY(tide_rows_has(db, "drive_@_state", TIDE_DRIVE_ROWS, &there, err));
    if (there)
        TIDE_TRY(check_version(db, err)); /* DST6: before anything is written */
    TIDE_TRY(tide_rows_tables(db, tables, TIDE_DRIVE_ROWS, err));
    return tide_rows_tables(db, tide_drive_mark_tables, TIDE_DRIVE_ROWS, err);
}

tide_status tide_drive_store_remove(tide_rows db, tide_error *err)
{
    static const char *const names[] = {"state",     "item",     "remote",   "staged",   "local",
                                        "base",      "owed",     "deletion", "consent",  "deleted",
                                        "size",      "conflict", "doubt",    "accepted", "turn",
                                        "displaced", "mark",     "undone"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char sql[64];
        (void)snprintf(sql, sizeof sql, "DROP TABLE IF EXISTS drive_@_%s", names[i]);
        TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, sql));
    }
    return TIDE_OK;
}

static tide_status compare(tide_rows db, const struct tide_drive_home *home, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             "SELECT drive_id, root_id, marker FROM drive_@_state WHERE id = 1"));
    if (!tide_text_equal(tide_rows_get_text(&stmt, 0), tide_text_of(home->drive_id)) ||
        !tide_text_equal(tide_rows_get_text(&stmt, 1), tide_text_of(home->root_id)))
        return tide_error_set(err, TIDE_INVALID,
                              "this folder was synced with another drive; add the drive again "
                              "with an empty folder");
    if (!tide_text_equal(tide_rows_get_text(&stmt, 2), tide_text_of(home->marker)))
        return tide_error_set(err, TIDE_INVALID, "the folder is not mounted, or is another one");
    return TIDE_OK;
}

tide_status tide_drive_store_set_up(tide_rows db, const struct tide_drive_home *home,
                                    tide_error *err)
{
    const tide_status rc = compare(db, home, err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT INTO drive_@_state VALUES(1, ?1, ?2, ?3, ?4, 0, 0, '', '', 0, 0,"
                          " 0, 0, 0, '')",
                          VERSION, home->drive_id, home->root_id, home->marker));
    /* The root of both trees is number 1 and has no row. */
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, "INSERT INTO drive_@_item VALUES(1, ?1)",
                          home->root_id));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "INSERT INTO sqlite_sequence(name, seq) VALUES('drive_@_local', 1)");
}

tide_status tide_drive_changed(tide_rows db, uint64_t rows, tide_error *err)
{
    if (rows == 0)
        return TIDE_OK;
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET changed = changed + 1 WHERE id = 1");
}

tide_status tide_drive_applied(tide_rows db, uint64_t applied_ms, tide_error *err)
{
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET applied_ms = ?1 WHERE id = 1"
                        " AND NOT EXISTS (SELECT 1 FROM drive_@_owed WHERE loop < 2)",
                        applied_ms);
}

tide_status tide_drive_progress_read(tide_rows db, struct tide_drive_progress *progress_out,
                                     tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             "SELECT changed, planned, planned_ms,"
                             " (SELECT min(next_ms) FROM drive_@_owed WHERE next_ms > planned_ms),"
                             " (SELECT min(gone_ms) + ?1 FROM drive_@_local WHERE state = 4"
                             " AND gone_ms > planned_ms - ?1) FROM drive_@_state WHERE id = 1",
                             TIDE_DRIVE_GONE_MS));
    *progress_out = (struct tide_drive_progress){
        .changed = tide_rows_get_u64(&stmt, 0),
        .planned = tide_rows_get_u64(&stmt, 1),
        .planned_ms = tide_rows_get_u64(&stmt, 2),
        .due_ms = UINT64_MAX,
    };
    for (int at = 3; at < 5; at++)
        if (!tide_rows_get_null(&stmt, at) && tide_rows_get_u64(&stmt, at) < progress_out->due_ms)
            progress_out->due_ms = tide_rows_get_u64(&stmt, at);
    return TIDE_OK;
}

/* A row that is gone serves its baseline, and the rows beneath it. */
static tide_status remove_gone(tide_rows db, tide_error *err)
{
    uint64_t removed = 1;
    while (removed > 0)
        TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &removed, err,
                                  "DELETE FROM drive_@_local WHERE state = 4"
                                  " AND NOT EXISTS (SELECT 1 FROM drive_@_base AS b WHERE b.row ="
                                  " drive_@_local.row) AND NOT EXISTS (SELECT 1 FROM drive_@_local"
                                  " AS c WHERE c.parent = drive_@_local.row)"));
    return TIDE_OK;
}

tide_status tide_drive_planned(tide_rows db, uint64_t changed, uint64_t now_ms, tide_error *err)
{
    TIDE_TRY(remove_gone(db, err));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET planned = ?1, planned_ms = ?2"
                        " WHERE id = 1 AND planned <= ?1",
                        changed, now_ms);
}

void tide_drive_content_read(const tide_rows_stmt *stmt, int bytes_at, int qxh_at, int strong_at,
                             struct tide_drive_content *content_out)
{
    const tide_text qxh = tide_rows_get_text(stmt, qxh_at);
    *content_out = (struct tide_drive_content){.bytes = tide_rows_get_u64(stmt, bytes_at)};
    content_out->has_qxh = qxh.bytes == sizeof content_out->qxh;
    if (content_out->has_qxh)
        memcpy(content_out->qxh, qxh.data, qxh.bytes);
    if (strong_at < 0)
        return;
    const tide_text strong = tide_rows_get_text(stmt, strong_at);
    content_out->has_strong = strong.bytes == sizeof content_out->strong;
    if (content_out->has_strong)
        memcpy(content_out->strong, strong.data, strong.bytes);
}
