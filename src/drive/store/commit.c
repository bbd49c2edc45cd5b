/* commit.c - the outcome of an action becomes baseline (D3, I3).
 *
 * The baseline of an item is written from its remote and its local row as they are in the database,
 * never from what was planned. */
#include "base/check.h"
#include "drive/store/store_inside.h"

enum { HOUR_MS = 3600000 };

static tide_status forget(tide_rows db, uint64_t item, tide_error *err)
{
    TIDE_TRY(
        tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_base WHERE item = ?1", item));
    /* The proof of its absence has served. */
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "DELETE FROM drive_@_remote WHERE item = ?1 AND state IN (2, 3)", item);
}

/* The local row is this item's: another item that had it is proved gone here. */
static tide_status take_row(tide_rows db, const struct tide_drive_outcome *outcome, tide_error *err)
{
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_base SET row = 0 WHERE row = ?1 AND item <> ?2",
                        outcome->row, outcome->item);
}

/* Both sides are one: place and content.  If one was renamed since, the name that was agreed on is that of
 * the side which was written: the other one's is then a move. */
static tide_status put_base(tide_rows db, const struct tide_drive_outcome *outcome, tide_error *err)
{
    uint64_t changed = 0;
    const bool here = outcome->verb == TIDE_DRIVE_DOWN || outcome->verb == TIDE_DRIVE_MKDIR_LOCAL;
    TIDE_TRY(tide_rows_change(
        db, TIDE_DRIVE_ROWS, &changed, err,
        "INSERT INTO drive_@_base SELECT r.item, r.parent,"
        " CASE WHEN ?4 = 1 AND r.key <> l.key THEN l.name ELSE r.name END,"
        " CASE WHEN ?4 = 1 THEN l.key ELSE r.key END, r.kind, r.bytes,"
        " r.qxh, r.etag, r.ctag, r.mtime_s, l.row,"
        " CASE WHEN ?4 = 0 AND r.key <> l.key THEN r.name ELSE l.name END,"
        " l.bytes, l.qxh, l.strong, l.dev, l.inode, l.birth_ns, ?3"
        " FROM drive_@_remote AS r JOIN drive_@_local AS l ON l.row = ?2"
        " WHERE r.item = ?1 AND r.state = 1 AND l.state <> 4 AND r.kind = l.kind"
        " ON CONFLICT(item) DO UPDATE SET parent = excluded.parent, name = excluded.name,"
        " key = excluded.key, kind = excluded.kind, bytes = excluded.bytes, qxh = excluded.qxh,"
        " etag = excluded.etag, ctag = excluded.ctag, mtime_s = excluded.mtime_s,"
        " row = excluded.row, local_name = excluded.local_name,"
        " local_bytes = excluded.local_bytes, local_qxh = excluded.local_qxh,"
        " strong = excluded.strong, dev = excluded.dev, inode = excluded.inode,"
        " birth_ns = excluded.birth_ns, rewritten = excluded.rewritten",
        outcome->item, outcome->row, outcome->rewritten ? 1 : 0, here ? 1 : 0));
    if (changed != 1)
        return tide_error_set(err, TIDE_SUPERSEDED, "the item changed before it was recorded");
    return TIDE_OK;
}

/* The same for an item whose row here, or whose number, may have been another one's. */
static tide_status write_base(tide_rows db, const struct tide_drive_outcome *outcome,
                              tide_error *err)
{
    if (outcome->was_item != 0 && outcome->was_item != outcome->item) {
        TIDE_TRY(forget(db, outcome->was_item, err));
        TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                              "UPDATE drive_@_base SET parent = ?2 WHERE parent = ?1",
                              outcome->was_item, outcome->item));
    }
    TIDE_TRY(take_row(db, outcome, err));
    return put_base(db, outcome, err);
}

/* Only its bytes were made equal: the place stays as it was agreed. */
static tide_status write_content(tide_rows db, const struct tide_drive_outcome *outcome,
                                 tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(take_row(db, outcome, err));
    TIDE_TRY(tide_rows_change(
        db, TIDE_DRIVE_ROWS, &changed, err,
        "UPDATE drive_@_base SET (bytes, qxh, etag, ctag, mtime_s, row, local_bytes, local_qxh,"
        " strong, dev, inode, birth_ns, rewritten) = (SELECT r.bytes, r.qxh, r.etag, r.ctag,"
        " r.mtime_s, l.row, l.bytes, l.qxh, l.strong, l.dev, l.inode, l.birth_ns, ?3"
        " FROM drive_@_remote AS r JOIN drive_@_local AS l ON l.row = ?2 WHERE r.item = ?1)"
        " WHERE item = ?1 AND EXISTS (SELECT 1 FROM drive_@_remote WHERE item = ?1 AND state = 1)"
        " AND EXISTS (SELECT 1 FROM drive_@_local WHERE row = ?2 AND state <> 4)",
        outcome->item, outcome->row, outcome->rewritten ? 1 : 0));
    return changed == 1 ? TIDE_OK : put_base(db, outcome, err); /* `was_item` is 0 */
}

/* Neither has stepped aside.  The name before a step is written before the step is made, so it counts
 * only while the item has a name of ours, in exactly the form of tide_drive_name_is_ours(). */
#define HEX4        "[0-9a-f][0-9a-f][0-9a-f][0-9a-f]"
#define IS_OURS(of) "CAST(" of ".name AS TEXT) GLOB 'tidemark-move-" HEX4 HEX4 "'"
#define IN_PLACE                                                                                   \
    "(r.aside IS NULL OR NOT " IS_OURS("r") ") AND (l.aside IS NULL OR NOT " IS_OURS("l") ")"

/* Moved on one side: the place is recorded when the other side has it too (I3). */
static tide_status write_place(tide_rows db, const struct tide_drive_outcome *outcome,
                               tide_error *err)
{
    TIDE_TRY(take_row(db, outcome, err));
    return tide_rows_do(
        db, TIDE_DRIVE_ROWS, err,
        "UPDATE drive_@_base SET (parent, name, key, row, local_name) = (SELECT r.parent, r.name,"
        " r.key, l.row, l.name FROM drive_@_remote AS r JOIN drive_@_local AS l ON l.row = ?2"
        " WHERE r.item = ?1) WHERE item = ?1"
        " AND EXISTS (SELECT 1 FROM drive_@_remote AS r JOIN drive_@_local AS l ON l.row = ?2"
        " WHERE r.item = ?1 AND r.key = l.key AND " IN_PLACE
        " AND l.parent = (CASE r.parent WHEN 1 THEN 1 ELSE"
        " (SELECT p.row FROM drive_@_base AS p WHERE p.item = r.parent) END))",
        outcome->item, outcome->row);
}

static tide_status note_deletion(tide_rows db, const struct tide_drive_outcome *outcome,
                                 tide_error *err)
{
    if (!outcome->consented)
        TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                              "INSERT INTO drive_@_deleted(at_ms) VALUES(?1)", outcome->now_ms));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "DELETE FROM drive_@_deleted WHERE at_ms + ?2 <= ?1", outcome->now_ms,
                          TIDE_DRIVE_DAY_MS));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_consent WHERE item = ?1",
                          outcome->item));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_deletion WHERE item = ?1",
                        outcome->item);
}

/* How large the baseline was before the first deletion of an hour: T of the guard (S15).  It is not
 * counted for each deletion: that would be quadratic. */
static tide_status note_size(tide_rows db, uint64_t now_ms, tide_error *err)
{
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "INSERT INTO drive_@_size SELECT ?1, (SELECT count(*) FROM drive_@_base)"
                        " WHERE NOT EXISTS (SELECT 1 FROM drive_@_size WHERE hour = ?1)",
                        now_ms / HOUR_MS);
}

static tide_status record(tide_rows db, const struct tide_drive_outcome *outcome, tide_error *err)
{
    tide_status rc = TIDE_OK;
    switch (outcome->verb) {
    case TIDE_DRIVE_MKDIR_REMOTE:
    case TIDE_DRIVE_MKDIR_LOCAL:
    case TIDE_DRIVE_BASE:
        return write_base(db, outcome, err);
    case TIDE_DRIVE_NEW:
        rc = write_base(db, outcome, err);
        break;
    case TIDE_DRIVE_UP:
    case TIDE_DRIVE_DOWN:
        rc =
            outcome->was_item != 0 ? write_base(db, outcome, err) : write_content(db, outcome, err);
        break;
    case TIDE_DRIVE_MOVE_REMOTE:
    case TIDE_DRIVE_MOVE_LOCAL:
        return write_place(db, outcome, err);
    case TIDE_DRIVE_DEL_REMOTE:
    case TIDE_DRIVE_DEL_LOCAL:
        TIDE_TRY(note_size(db, outcome->now_ms, err)); /* before it shrinks */
        rc = note_deletion(db, outcome, err);
        if (rc == TIDE_OK)
            rc = tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                              "DELETE FROM drive_@_local WHERE state = 4 AND row ="
                              " (SELECT row FROM drive_@_base WHERE item = ?1)",
                              outcome->item);
        return rc == TIDE_OK ? forget(db, outcome->item, err) : rc;
    case TIDE_DRIVE_DROP:
        return forget(db, outcome->item, err);
    }
    TIDE_TRY(rc);
    return tide_drive_note_transfer(db, outcome->item, outcome->row, outcome->verb, outcome->now_ms,
                                    err);
}

tide_status tide_drive_commit(tide_rows db, const struct tide_drive_outcome *outcome,
                              tide_error *err)
{
    TIDE_TRY(record(db, outcome, err));
    return tide_drive_changed(db, 1, err);
}

tide_status tide_drive_commit_all(tide_rows db, const struct tide_drive_outcome *outcomes,
                                  size_t count, tide_error *err)
{
    struct tide_rows_kept kept = {.count = 0}; /* the same statements for each of them */
    tide_status rc = TIDE_OK;
    db.kept = &kept;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = record(db, &outcomes[i], err);
    if (rc == TIDE_OK)
        rc = tide_drive_changed(db, count, err);
    tide_rows_kept_done(&kept);
    return rc;
}

tide_status tide_drive_aside_remote(tide_rows db, uint64_t item, tide_text was_name,
                                    tide_error *err)
{
    uint64_t rows = 0;
    TIDE_TRY(tide_rows_change(
        db, TIDE_DRIVE_ROWS, &rows, err,
        "UPDATE drive_@_remote SET aside = ?2 WHERE item = ?1 AND aside IS NOT ?2", item,
        was_name.bytes == 0 ? tide_value_or_null(was_name) : tide_drive_bytes_value(was_name)));
    return tide_drive_changed(db, rows, err);
}

tide_status tide_drive_aside_local(tide_rows db, uint64_t row, tide_text was_name, tide_error *err)
{
    uint64_t rows = 0;
    TIDE_TRY(tide_rows_change(
        db, TIDE_DRIVE_ROWS, &rows, err,
        "UPDATE drive_@_local SET aside = ?2 WHERE row = ?1 AND aside IS NOT ?2", row,
        was_name.bytes == 0 ? tide_value_or_null(was_name) : tide_drive_bytes_value(was_name)));
    return tide_drive_changed(db, rows, err);
}
