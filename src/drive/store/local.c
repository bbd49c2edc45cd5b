/* local.c - scans become rows (S2, S13).
 *
 * An entry keeps its row as long as its folder and name stay the same.  At the end of a scan a row that
 * was not found is gone if its folder was read to its end, or is gone itself; otherwise it is
 * unsure. */
#include "drive/names/key.h"
#include "drive/names/names.h"
#include "drive/store/store_inside.h"

enum { KEY_BYTES_MAX = 8 << 10 };

tide_status tide_drive_scan_begin(tide_rows db, uint64_t *scan_out, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "UPDATE drive_state SET scan = scan + 1 WHERE id = 1"));
    return tide_rows_number(db, TIDE_DRIVE_ROWS, scan_out, err,
                            "SELECT scan FROM drive_state WHERE id = 1");
}

tide_status tide_drive_scan_known(tide_rows db, uint64_t parent, tide_text name,
                                  struct tide_drive_found *found_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(
        db, TIDE_DRIVE_ROWS, &stmt, err,
        "SELECT kind, state, bytes, qxh, strong, mtime_ns, ctime_ns, hashed_ns, dev, inode,"
        " birth_ns, nlink, mode FROM drive_local WHERE parent = ?1 AND name = ?2 AND state <> 4",
        parent, tide_drive_bytes_value(name)));
    *found_out = (struct tide_drive_found){
        .parent = parent,
        .name = name,
        .kind = (tide_drive_kind)tide_rows_get_i64(&stmt, 0),
        .state = (tide_drive_local_state)tide_rows_get_i64(&stmt, 1),
        .mtime_ns = tide_rows_get_u64(&stmt, 5),
        .ctime_ns = tide_rows_get_u64(&stmt, 6),
        .hashed_ns = tide_rows_get_u64(&stmt, 7),
        .identity = {tide_rows_get_u64(&stmt, 8), tide_rows_get_u64(&stmt, 9),
                     tide_rows_get_u64(&stmt, 10)},
        .nlink = tide_rows_get_u32(&stmt, 11),
        .mode = tide_rows_get_u32(&stmt, 12),
    };
    tide_drive_content_read(&stmt, 2, 3, 4, &found_out->content);
    return TIDE_OK;
}

/* An entry with a name of ours may have stepped aside just before a crash (D24): it keeps its row, and
 * with it the name that it had. */
static tide_status find_aside(tide_rows db, const struct tide_drive_found *found, tide_error *err)
{
    uint64_t row = 0;
    char was[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    if (!tide_drive_name_is_ours(found->name))
        return TIDE_OK;
    const tide_status rc = tide_rows_number(
        db, TIDE_DRIVE_ROWS, &row, err,
        "SELECT row FROM drive_local WHERE aside IS NOT NULL AND inode = ?1 AND dev = ?2"
        " AND NOT (parent = ?3 AND name = ?4) AND state <> 4",
        found->identity.inode, found->identity.dev, found->parent,
        tide_drive_bytes_value(found->name));
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    TIDE_TRY(tide_rows_copy(db, TIDE_DRIVE_ROWS, was, sizeof was, err,
                            "SELECT aside FROM drive_local WHERE row = ?1", row));
    TIDE_TRY(tide_drive_local_moved(db, row, found->parent, found->name, err));
    return tide_drive_aside_local(db, row, tide_text_of(was), err);
}

tide_status tide_drive_scan_put(tide_rows db, uint64_t scan, const struct tide_drive_found *found,
                                uint64_t *row_out, tide_error *err)
{
    tide_auto_buf key = tide_buf_heap(KEY_BYTES_MAX);
    TIDE_TRY(find_aside(db, found, err));
    TIDE_TRY(tide_drive_key_add(&key, found->name));
    TIDE_TRY(tide_rows_do(
        db, TIDE_DRIVE_ROWS, err,
        "INSERT INTO drive_local(parent, name, key, kind, state, bytes, qxh, strong, mtime_ns,"
        " ctime_ns, hashed_ns, dev, inode, birth_ns, nlink, mode, scan, read_scan, gone_ms)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, 0, 0, 0, 0, 0, 0, 0, ?9, 0, 0)"
        " ON CONFLICT(parent, name) DO UPDATE SET kind = ?4, state = ?5, bytes = ?6, qxh = ?7,"
        " strong = ?8, scan = ?9, gone_ms = 0",
        found->parent, tide_drive_bytes_value(found->name),
        tide_drive_bytes_value(tide_buf_text(&key)), (int)found->kind, (int)found->state,
        found->content.bytes, tide_drive_qxh_value(&found->content),
        tide_drive_strong_value(&found->content), scan));
    TIDE_TRY(tide_rows_do(
        db, TIDE_DRIVE_ROWS, err,
        "UPDATE drive_local SET mtime_ns = ?3, ctime_ns = ?4, hashed_ns = ?5, dev = ?6, inode = ?7,"
        " birth_ns = ?8, nlink = ?9, mode = ?10 WHERE parent = ?1 AND name = ?2",
        found->parent, tide_drive_bytes_value(found->name), found->mtime_ns, found->ctime_ns,
        found->hashed_ns, found->identity.dev, found->identity.inode, found->identity.birth_ns,
        found->nlink, found->mode));
    return tide_rows_number(db, TIDE_DRIVE_ROWS, row_out, err,
                            "SELECT row FROM drive_local WHERE parent = ?1 AND name = ?2",
                            found->parent, tide_drive_bytes_value(found->name));
}

tide_status tide_drive_scan_read(tide_rows db, uint64_t scan, uint64_t row, tide_error *err)
{
    if (row == TIDE_DRIVE_ROOT)
        return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                            "UPDATE drive_state SET root_read = ?1 WHERE id = 1", scan);
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_local SET read_scan = ?1 WHERE row = ?2", scan, row);
}

tide_status tide_drive_scan_end(tide_rows db, uint64_t scan, bool complete, uint64_t now_ms,
                                tide_error *err)
{
    /* Not found, in a folder that was read, or that is a file by now: gone, first seen now. */
    if (complete)
        TIDE_TRY(tide_rows_do(
            db, TIDE_DRIVE_ROWS, err,
            "UPDATE drive_local SET state = 4, gone_ms = ?2 WHERE scan < ?1 AND state <> 4"
            " AND (CASE parent WHEN 1 THEN (SELECT root_read FROM drive_state)"
            " ELSE (SELECT CASE p.kind WHEN 1 THEN p.scan ELSE p.read_scan END FROM drive_local AS "
            "p"
            " WHERE p.row = drive_local.parent) END)"
            " = ?1",
            scan, now_ms));
    if (complete)
        TIDE_TRY(tide_rows_do(
            db, TIDE_DRIVE_ROWS, err,
            "WITH RECURSIVE dead(row, gone_ms) AS ("
            " SELECT row, gone_ms FROM drive_local WHERE state = 4"
            " UNION SELECT l.row, dead.gone_ms FROM drive_local AS l JOIN dead"
            " ON l.parent = dead.row WHERE l.state <> 4 AND l.scan < ?1)"
            " UPDATE drive_local SET state = 4, gone_ms = (SELECT max(dead.gone_ms) FROM dead"
            " WHERE dead.row = drive_local.row) WHERE state <> 4"
            " AND row IN (SELECT row FROM dead)",
            scan));
    /* The rest was not looked at (S2). */
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "UPDATE drive_local SET state = 3 WHERE scan < ?1 AND state IN (1, 2)",
                          scan));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "DELETE FROM drive_local WHERE state = 4"
                        " AND NOT EXISTS (SELECT 1 FROM drive_base AS b WHERE b.row ="
                        " drive_local.row) AND NOT EXISTS (SELECT 1 FROM drive_local AS c"
                        " WHERE c.parent = drive_local.row)");
}

/* Items whose rows were at or beneath this one are proved gone: their rows go, row 0 says so. */
static tide_status clear_place(tide_rows db, uint64_t row, tide_error *err)
{
#define BENEATH                                                                                    \
    "WITH RECURSIVE dead(row) AS (SELECT ?1 UNION SELECT l.row FROM drive_local AS l JOIN dead"    \
    " ON l.parent = dead.row) "
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          BENEATH "UPDATE drive_base SET row = 0 WHERE row IN"
                                  " (SELECT row FROM dead)",
                          row));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        BENEATH "DELETE FROM drive_local WHERE row IN (SELECT row FROM dead)", row);
#undef BENEATH
}

tide_status tide_drive_local_moved(tide_rows db, uint64_t row, uint64_t parent, tide_text name,
                                   tide_error *err)
{
    uint64_t other = 0, circle = 0;
    tide_auto_buf key = tide_buf_heap(KEY_BYTES_MAX);
    /* A user moved the target out of the moved folder after the last scan: rows would be a circle. */
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &circle, err,
                              "WITH RECURSIVE up(row) AS (SELECT ?2 UNION SELECT l.parent"
                              " FROM drive_local AS l JOIN up ON l.row = up.row)"
                              " SELECT count(*) FROM up WHERE row = ?1",
                              row, parent));
    if (circle > 0)
        return tide_error_set(err, TIDE_SUPERSEDED, "the folder changed since it was scanned");
    TIDE_TRY(tide_drive_key_add(&key, name));
    const tide_status rc = tide_rows_number(
        db, TIDE_DRIVE_ROWS, &other, err,
        "SELECT row FROM drive_local WHERE parent = ?1 AND name = ?2 AND row <> ?3", parent,
        tide_drive_bytes_value(name), row);
    if (rc == TIDE_OK)
        TIDE_TRY(clear_place(db, other, err));
    else if (rc != TIDE_NOT_FOUND)
        return rc;
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_local SET parent = ?2, name = ?3, key = ?4, aside = NULL"
                        " WHERE row = ?1",
                        row, parent, tide_drive_bytes_value(name),
                        tide_drive_bytes_value(tide_buf_text(&key)));
}

tide_status tide_drive_local_removed(tide_rows db, uint64_t row, tide_error *err)
{
    return clear_place(db, row, err);
}
