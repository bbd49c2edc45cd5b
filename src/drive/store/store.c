#include "drive/store/store.h"

#include "drive/store/store_inside.h"

enum { VERSION = 1 };

/* Names are blobs: those of a disk are any bytes.  `key` is the name's key (names/key.h). */
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS drive_state("
    " id INTEGER PRIMARY KEY CHECK(id = 1), version INTEGER NOT NULL, drive_id TEXT NOT NULL,"
    " root_id TEXT NOT NULL, marker TEXT NOT NULL, round INTEGER NOT NULL,"
    " round_number INTEGER NOT NULL, next_link TEXT NOT NULL, delta_link TEXT NOT NULL,"
    " full_at_ms INTEGER NOT NULL, scan INTEGER NOT NULL, root_read INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_item("
    " item INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_remote("
    " item INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB, key BLOB, kind INTEGER NOT "
    "NULL,"
    " state INTEGER NOT NULL, bytes INTEGER NOT NULL, qxh BLOB, etag TEXT NOT NULL,"
    " ctag TEXT NOT NULL, mtime_s INTEGER NOT NULL, round INTEGER NOT NULL, aside BLOB"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_remote_place ON drive_remote(parent, key);"
    "CREATE TABLE IF NOT EXISTS drive_staged("
    " seq INTEGER PRIMARY KEY, id TEXT NOT NULL, parent_id TEXT NOT NULL, name BLOB, key BLOB,"
    " kind INTEGER NOT NULL, state INTEGER NOT NULL, bytes INTEGER NOT NULL, qxh BLOB,"
    " etag TEXT NOT NULL, ctag TEXT NOT NULL, mtime_s INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_staged_id ON drive_staged(id, seq);"
    "CREATE TABLE IF NOT EXISTS drive_local("
    " row INTEGER PRIMARY KEY AUTOINCREMENT, parent INTEGER NOT NULL, name BLOB NOT NULL,"
    " key BLOB NOT NULL, kind INTEGER NOT NULL, state INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " qxh BLOB, strong BLOB, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,"
    " hashed_ns INTEGER NOT NULL, dev INTEGER NOT NULL, inode INTEGER NOT NULL,"
    " birth_ns INTEGER NOT NULL, nlink INTEGER NOT NULL, mode INTEGER NOT NULL,"
    " scan INTEGER NOT NULL, read_scan INTEGER NOT NULL, gone_ms INTEGER NOT NULL, aside BLOB,"
    " UNIQUE(parent, name)"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_local_place ON drive_local(parent, key);"
    "CREATE INDEX IF NOT EXISTS drive_local_inode ON drive_local(inode);"
    "CREATE INDEX IF NOT EXISTS drive_local_strong ON drive_local(strong);"
    "CREATE TABLE IF NOT EXISTS drive_base("
    " item INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB NOT NULL, key BLOB NOT NULL,"
    " kind INTEGER NOT NULL, bytes INTEGER NOT NULL, qxh BLOB, etag TEXT NOT NULL,"
    " ctag TEXT NOT NULL, mtime_s INTEGER NOT NULL, row INTEGER NOT NULL,"
    " local_name BLOB NOT NULL, local_bytes INTEGER NOT NULL, local_qxh BLOB, strong BLOB,"
    " dev INTEGER NOT NULL, inode INTEGER NOT NULL, birth_ns INTEGER NOT NULL,"
    " rewritten INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS drive_base_place ON drive_base(parent, key);"
    /* Row 0: another item has its place here, so it is proved gone. */
    "CREATE INDEX IF NOT EXISTS drive_base_row ON drive_base(row);"
    "CREATE TABLE IF NOT EXISTS drive_owed("
    " item INTEGER NOT NULL, row INTEGER NOT NULL, verb INTEGER NOT NULL, name BLOB NOT NULL,"
    " error TEXT NOT NULL, attempts INTEGER NOT NULL, next_ms INTEGER NOT NULL,"
    " PRIMARY KEY(item, row)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS drive_deletion("
    " item INTEGER PRIMARY KEY, verb INTEGER NOT NULL, name BLOB NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_consent("
    " item INTEGER PRIMARY KEY, until_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_deleted("
    " id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_size("
    " hour INTEGER PRIMARY KEY, items INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS drive_conflict("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, notice INTEGER NOT NULL, item INTEGER NOT NULL,"
    " name BLOB NOT NULL, copy BLOB NOT NULL, at_ms INTEGER NOT NULL"
    ") STRICT;";

static tide_status check_version(tide_rows db, tide_error *err)
{
    uint64_t version = 0;
    const tide_status rc = tide_rows_number(db, TIDE_DRIVE_ROWS, &version, err,
                                            "SELECT version FROM drive_state WHERE id = 1");
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
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
    TIDE_TRY(tide_rows_has(db, "drive_state", TIDE_DRIVE_ROWS, &there, err));
    if (there)
        TIDE_TRY(check_version(db, err)); /* DST6: before anything is written */
    return tide_rows_tables(db, tables, TIDE_DRIVE_ROWS, err);
}

static tide_status compare(tide_rows db, const struct tide_drive_home *home, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             "SELECT drive_id, root_id, marker FROM drive_state WHERE id = 1"));
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
    TIDE_TRY(
        tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                     "INSERT INTO drive_state VALUES(1, ?1, ?2, ?3, ?4, 0, 0, '', '', 0, 0, 0)",
                     VERSION, home->drive_id, home->root_id, home->marker));
    /* The root of both trees is number 1 and has no row. */
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, "INSERT INTO drive_item VALUES(1, ?1)",
                          home->root_id));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "INSERT INTO sqlite_sequence(name, seq) VALUES('drive_local', 1)");
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
