/* loops.c - the loop breaker (S11): an item that goes round in circles is held and shown.
 *
 * A program here that undoes what is downloaded, or a server that changes what is uploaded, makes the
 * same bytes cross again and again.  Each transfer is noted with the hash that the file has here
 * afterwards.  One whose hash was not seen in the last ten minutes is news, whoever made it; four
 * after the last news are a loop.  Copies that conflicts made are counted by the day. */
#include "drive/store/store_inside.h"

static tide_status forget_old(tide_rows db, uint64_t now_ms, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "DELETE FROM drive_@_turn WHERE copy = 0 AND at_ms <= ?1",
                          (int64_t)now_ms - TIDE_DRIVE_LOOP_MS));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "DELETE FROM drive_@_turn WHERE copy = 1 AND at_ms <= ?1",
                        (int64_t)now_ms - TIDE_DRIVE_DAY_MS);
}

static tide_status hold(tide_rows db, const struct tide_drive_owed *owed, tide_error *err)
{
    struct tide_drive_owed held = *owed;
    held.loop = true;
    return tide_drive_owe(db, &held, err);
}

/* "d/x" of a row. */
static tide_status path_of(tide_rows db, uint64_t row, tide_rows_stmt *stmt_out, tide_error *err)
{
    return tide_rows_first(db, TIDE_DRIVE_ROWS, stmt_out, err,
                           "WITH RECURSIVE up(row, path) AS (SELECT parent, CAST(name AS TEXT)"
                           " FROM drive_@_local WHERE row = ?1 UNION ALL SELECT l.parent,"
                           " CAST(l.name AS TEXT) || '/' || up.path FROM drive_@_local AS l"
                           " JOIN up ON l.row = up.row)"
                           " SELECT CAST(path AS BLOB) FROM up WHERE row = 1",
                           row);
}

static tide_status hold_transfer(tide_rows db, const struct tide_drive_owed *owed, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_drive_owed held = *owed;
    const tide_status rc = path_of(db, owed->row, &stmt, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    held.name = rc == TIDE_OK ? tide_rows_get_text(&stmt, 0) : TIDE_TEXT_NONE;
    held.error = TIDE_TEXT("it was transferred again and again without new content; another "
                           "program may change it back");
    held.next_ms += TIDE_DRIVE_LOOP_MS;
    return hold(db, &held, err);
}

tide_status tide_drive_note_transfer(tide_rows db, uint64_t item, uint64_t row,
                                     tide_drive_verb verb, uint64_t now_ms, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(forget_old(db, now_ms, err));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT INTO drive_@_turn(item, at_ms, strong, copy, fresh)"
                          " SELECT ?1, ?3, l.strong, 0, NOT EXISTS (SELECT 1 FROM drive_@_turn AS t"
                          " WHERE t.item = ?1 AND t.copy = 0 AND t.strong IS l.strong)"
                          " FROM drive_@_local AS l WHERE l.row = ?2",
                          item, row, now_ms));
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &count, err,
                              "SELECT count(*) FROM drive_@_turn WHERE item = ?1 AND copy = 0"
                              " AND id > (SELECT coalesce(max(id), 0) FROM drive_@_turn"
                              " WHERE item = ?1 AND copy = 0 AND fresh = 1)",
                              item));
    const struct tide_drive_owed owed = {.item = item,
                                         .row = row,
                                         .verb = verb,
                                         .attempts = (uint32_t)count,
                                         .next_ms = now_ms,
                                         .now_ms = now_ms};
    if (count >= TIDE_DRIVE_LOOP_TRANSFERS)
        return hold_transfer(db, &owed, err);
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "DELETE FROM drive_@_owed WHERE item = ?1 AND row = ?2 AND loop = 1", item,
                        row);
}

tide_status tide_drive_note_copy(tide_rows db, uint64_t item, tide_text name, uint64_t now_ms,
                                 tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(forget_old(db, now_ms, err));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT INTO drive_@_turn(item, at_ms, copy, fresh)"
                          " VALUES(?1, ?2, 1, 0)",
                          item, now_ms));
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &count, err,
                              "SELECT count(*) FROM drive_@_turn WHERE item = ?1 AND copy = 1",
                              item));
    if (item == 0 || count < TIDE_DRIVE_LOOP_COPIES)
        return TIDE_OK;
    const struct tide_drive_owed owed = {
        .item = item,
        .name = name,
        .error = TIDE_TEXT("conflicts made too many copies of it in a day"),
        .attempts = (uint32_t)count,
        .next_ms = now_ms + TIDE_DRIVE_DAY_MS,
        .now_ms = now_ms};
    return hold(db, &owed, err);
}
