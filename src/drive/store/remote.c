/* remote.c - the delta feed becomes rows (D31 to D34).
 *
 * Pages are staged as they come.  The page that ends the round applies all of them in one
 * transaction: the last occurrence of an id wins, tombstones cover what is still beneath
 * their folder, and after a full enumeration what it did not have is gone or forgotten.  An item that
 * comes as its row is writes nothing (DST7). */
#include "base/check.h"
#include "drive/names/key.h"
#include "drive/store/store_inside.h"

enum { KEY_BYTES_MAX = 8 << 10, SLICE = 5000 };

tide_status tide_drive_feed_read(tide_rows db, struct tide_drive_feed *feed_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(
        db, TIDE_DRIVE_ROWS, &stmt, err,
        "SELECT round, next_link, delta_link, full_at_ms FROM drive_@_state WHERE id = 1"));
    feed_out->round = (tide_drive_round)tide_rows_get_i64(&stmt, 0);
    tide_rows_get_copy(&stmt, 1, feed_out->next_link, sizeof feed_out->next_link);
    tide_rows_get_copy(&stmt, 2, feed_out->delta_link, sizeof feed_out->delta_link);
    feed_out->full_at_ms = tide_rows_get_u64(&stmt, 3);
    return TIDE_OK;
}

tide_status tide_drive_round_begin(tide_rows db, tide_drive_round round, tide_error *err)
{
    TIDE_ASSERT(round != TIDE_DRIVE_ROUND_NONE);
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_staged"));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET round = ?1, round_number = round_number + 1,"
                        " next_link = '' WHERE id = 1",
                        (int)round);
}

static tide_status stage(tide_rows_stmt *stmt, const struct tide_drive_seen *seen, tide_buf *key,
                         tide_error *err)
{
    bool row = false;
    tide_buf_clear(key);
    TIDE_TRY(tide_drive_key_add(key, seen->name));
    tide_rows_text(stmt, 1, seen->id);
    tide_rows_text(stmt, 2, seen->parent_id);
    if (seen->name.bytes == 0) {
        tide_rows_null(stmt, 3);
        tide_rows_null(stmt, 4);
    } else {
        tide_rows_blob(stmt, 3, seen->name.data, seen->name.bytes);
        tide_rows_blob(stmt, 4, key->data, key->bytes);
    }
    tide_rows_i64(stmt, 5, (int)seen->kind);
    tide_rows_i64(stmt, 6, (int)seen->state);
    tide_rows_u64(stmt, 7, seen->content.bytes);
    if (seen->content.has_qxh)
        tide_rows_blob(stmt, 8, seen->content.qxh, sizeof seen->content.qxh);
    else
        tide_rows_null(stmt, 8);
    tide_rows_text(stmt, 9, seen->etag);
    tide_rows_text(stmt, 10, seen->ctag);
    tide_rows_u64(stmt, 11, seen->mtime_s);
    tide_rows_u64(stmt, 12, (uint64_t)seen->reason);
    const tide_status rc = tide_rows_step(stmt, &row, err);
    tide_rows_again(stmt);
    return rc;
}

static tide_status stage_all(tide_rows db, const struct tide_drive_seen *items, size_t count,
                             tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_auto_buf key = tide_buf_heap(KEY_BYTES_MAX);
    TIDE_TRY(tide_rows_prepare(db,
                               "INSERT INTO drive_@_staged(id, parent_id, name, key, kind, state,"
                               " bytes, qxh, etag, ctag, mtime_s, reason)"
                               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                               TIDE_DRIVE_ROWS, &stmt, err));
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(stage(&stmt, &items[i], &key, err));
    return TIDE_OK;
}

/* Numbers for ids that are new; a tombstone of an unknown id is ignored.  A statement that inserts what it
 * selects needs memory for all of it if it sorts, reads the table that it writes, or has triggers: the
 * first two are avoided, and rows, which have triggers, are applied in slices (D8). */
static const char number_ids[] = "INSERT INTO drive_@_item(id) SELECT id FROM drive_@_staged"
                                 " WHERE state <> 2 ORDER BY seq ON CONFLICT(id) DO NOTHING";
static const char number_parents[] =
    "INSERT INTO drive_@_item(id) SELECT parent_id FROM drive_@_staged"
    " WHERE parent_id <> '' AND state <> 2 ORDER BY seq ON CONFLICT(id) DO NOTHING";

/* What a tombstone, or its absence in a full enumeration, means for all that is beneath it now. */
#define SPREAD_GONE                                                                                \
    "WITH RECURSIVE dead(item, state) AS ("                                                        \
    " SELECT item, state FROM drive_@_remote WHERE state IN (2, 3)"                                \
    " UNION SELECT drive_@_remote.item, dead.state FROM drive_@_remote JOIN dead"                  \
    " ON drive_@_remote.parent = dead.item WHERE drive_@_remote.state NOT IN (2, 3))"              \
    " UPDATE drive_@_remote SET state = (SELECT min(dead.state) FROM dead"                         \
    " WHERE dead.item = drive_@_remote.item) WHERE state NOT IN (2, 3)"                            \
    " AND item IN (SELECT item FROM dead)"

#define OTHER_THAN_EXCLUDED                                                                        \
    "kind <> excluded.kind OR state <> excluded.state OR bytes <> excluded.bytes"                  \
    " OR qxh IS NOT excluded.qxh OR etag <> excluded.etag OR ctag <> excluded.ctag"                \
    " OR mtime_s <> excluded.mtime_s"

/* The last occurrence of each id wins.  A field that is missing keeps its old value (D32). */
static const char apply_rows[] =
    "INSERT INTO drive_@_remote(item, parent, name, key, kind, state, bytes, qxh, etag, ctag,"
    " mtime_s, round, reason)"
    " SELECT i.item, coalesce((SELECT p.item FROM drive_@_item AS p WHERE p.id = s.parent_id), 0),"
    " s.name, s.key, s.kind, s.state, s.bytes, s.qxh, s.etag, s.ctag, s.mtime_s,"
    " (SELECT round_number FROM drive_@_state), s.reason"
    " FROM drive_@_staged AS s JOIN drive_@_item AS i ON i.id = s.id"
    " WHERE s.seq > ?1 AND s.seq <= ?2 AND s.state <> 2 AND i.item <> 1"
    " AND s.seq = (SELECT max(seq) FROM drive_@_staged AS t WHERE t.id = s.id)"
    " ON CONFLICT(item) DO UPDATE SET"
    " parent = CASE excluded.parent WHEN 0 THEN parent ELSE excluded.parent END,"
    " name = coalesce(excluded.name, name), key = coalesce(excluded.key, key),"
    " kind = excluded.kind, state = excluded.state, bytes = excluded.bytes, qxh = excluded.qxh,"
    " etag = excluded.etag, ctag = excluded.ctag, mtime_s = excluded.mtime_s,"
    " round = excluded.round, reason = excluded.reason"
    " WHERE parent <> CASE excluded.parent WHEN 0 THEN parent ELSE excluded.parent END"
    " OR name IS NOT coalesce(excluded.name, name) OR reason <> excluded.reason"
    " OR " OTHER_THAN_EXCLUDED;
static const char apply_tombstones[] =
    "UPDATE drive_@_remote SET state = 2 WHERE state <> 2 AND item IN (SELECT i.item FROM "
    "drive_@_staged AS s"
    " JOIN drive_@_item AS i ON i.id = s.id WHERE s.state = 2"
    " AND s.seq = (SELECT max(seq) FROM drive_@_staged AS t WHERE t.id = s.id))";

/* *rows_out: how many differed from what was there. */
static tide_status apply_staged(tide_rows db, uint64_t *rows_out, tide_error *err)
{
    uint64_t last = 0, rows = 0;
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &last, err,
                              "SELECT coalesce(max(seq), 0) FROM drive_@_staged"));
    for (uint64_t from = 0; from < last; from += SLICE, *rows_out += rows)
        TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &rows, err, apply_rows, from, from + SLICE));
    TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &rows, err, apply_tombstones));
    *rows_out += rows;
    return TIDE_OK;
}

static tide_status apply(tide_rows db, tide_error *err)
{
    uint64_t rows = 0, all = 0;
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, number_ids));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, number_parents));
    TIDE_TRY(apply_staged(db, &all, err));
    struct tide_drive_feed feed;
    TIDE_TRY(tide_drive_feed_read(db, &feed, err));
    /* DST2: only what the whole listing did not have.  What an action put meanwhile has its round. */
    if (feed.round != TIDE_DRIVE_ROUND_DELTA)
        TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &rows, err,
                                  "UPDATE drive_@_remote SET state = ?1 WHERE state NOT IN (2, 3)"
                                  " AND round < (SELECT round_number FROM drive_@_state)"
                                  " AND NOT EXISTS (SELECT 1 FROM drive_@_item AS i"
                                  " JOIN drive_@_staged AS s ON s.id = i.id"
                                  " WHERE i.item = drive_@_remote.item)",
                                  feed.round == TIDE_DRIVE_ROUND_FULL
                                      ? (int)TIDE_DRIVE_REMOTE_GONE
                                      : (int)TIDE_DRIVE_REMOTE_FORGOTTEN));
    else
        rows = 0;
    all += rows;
    TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &rows, err, SPREAD_GONE));
    all += rows;
    /* Gone items without a baseline were never here. */
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "DELETE FROM drive_@_remote WHERE state IN (2, 3)"
                          " AND NOT EXISTS (SELECT 1 FROM drive_@_base AS b"
                          " WHERE b.item = drive_@_remote.item)"));
    return tide_drive_changed(db, all, err);
}

static tide_status end_round(tide_rows db, tide_text delta_link, uint64_t now_ms, tide_error *err)
{
    struct tide_drive_feed feed;
    uint64_t staged = 0;
    TIDE_TRY(tide_drive_feed_read(db, &feed, err));
    TIDE_TRY(
        tide_rows_number(db, TIDE_DRIVE_ROWS, &staged, err, "SELECT count(*) FROM drive_@_staged"));
    if (staged > 0 || feed.round != TIDE_DRIVE_ROUND_DELTA)
        TIDE_TRY(apply(db, err));
    /* D33: the feed lags, and a tombstone comes only once: an empty round does not move the token. */
    if (staged > 0 || feed.round != TIDE_DRIVE_ROUND_DELTA || feed.delta_link[0] == '\0')
        TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                              "UPDATE drive_@_state SET delta_link = ?1 WHERE id = 1", delta_link));
    if (feed.round != TIDE_DRIVE_ROUND_DELTA)
        TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                              "UPDATE drive_@_state SET full_at_ms = ?1 WHERE id = 1", now_ms));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_staged"));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET round = 0, next_link = '' WHERE id = 1");
}

tide_status tide_drive_page(tide_rows db, const struct tide_drive_seen *items, size_t count,
                            tide_text next_link, tide_text delta_link, uint64_t now_ms,
                            tide_error *err)
{
    if ((next_link.bytes == 0) == (delta_link.bytes == 0))
        return tide_error_set(err, TIDE_SERVER, "a page of changes has no link, or two");
    if (next_link.bytes >= TIDE_DRIVE_LINK_BYTES_MAX ||
        delta_link.bytes >= TIDE_DRIVE_LINK_BYTES_MAX)
        return tide_error_set(err, TIDE_SERVER, "a link to the next page is too long");
    TIDE_TRY(stage_all(db, items, count, err));
    if (delta_link.bytes > 0)
        return end_round(db, delta_link, now_ms, err);
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_state SET next_link = ?1 WHERE id = 1", next_link);
}

tide_status tide_drive_incomplete(tide_rows db, size_t count,
                                  void (*visit)(tide_text id, void *arg), void *arg,
                                  tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_ask(
        db, TIDE_DRIVE_ROWS, &stmt, err,
        "SELECT i.id FROM drive_@_remote AS r JOIN drive_@_item AS i ON i.item = r.item"
        " WHERE r.state NOT IN (2, 3) AND ((r.name IS NULL AND r.state <> 4) OR r.parent = 0)"
        " UNION SELECT i.id FROM drive_@_remote AS r JOIN drive_@_item AS i ON i.item = r.parent"
        " WHERE r.state NOT IN (2, 3) AND r.parent > 1"
        " AND NOT EXISTS (SELECT 1 FROM drive_@_remote AS p WHERE p.item = r.parent) LIMIT ?1",
        (uint64_t)count));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_drive_item_of(tide_rows db, tide_text id, uint64_t *item_out, tide_error *err)
{
    return tide_rows_number(db, TIDE_DRIVE_ROWS, item_out, err,
                            "SELECT item FROM drive_@_item WHERE id = ?1", id);
}

static tide_status number_of(tide_rows db, tide_text id, uint64_t *item_out, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT INTO drive_@_item(id) SELECT ?1 WHERE NOT EXISTS"
                          " (SELECT 1 FROM drive_@_item WHERE id = ?1)",
                          id));
    return tide_drive_item_of(db, id, item_out, err);
}

static tide_status put_gone(tide_rows db, uint64_t item, tide_error *err)
{
    uint64_t rows = 0;
    TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &rows, err,
                              "UPDATE drive_@_remote SET state = 2 WHERE item = ?1 AND state <> 2",
                              item));
    return tide_drive_changed(db, rows, err);
}

tide_status tide_drive_remote_put(tide_rows db, const struct tide_drive_seen *seen,
                                  uint64_t *item_out, tide_error *err)
{
    uint64_t item = 0, parent = 0, rows = 0;
    tide_auto_buf key = tide_buf_heap(KEY_BYTES_MAX);
    TIDE_TRY(number_of(db, seen->id, &item, err));
    *item_out = item;
    if (seen->state == TIDE_DRIVE_REMOTE_GONE)
        return put_gone(db, item, err);
    TIDE_TRY(number_of(db, seen->parent_id, &parent, err));
    TIDE_TRY(tide_drive_key_add(&key, seen->name));
    TIDE_TRY(tide_rows_change(
        db, TIDE_DRIVE_ROWS, &rows, err,
        "INSERT INTO drive_@_remote(item, parent, name, key, kind, state, bytes, qxh, etag, ctag,"
        " mtime_s, round) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0)"
        " ON CONFLICT(item) DO UPDATE SET parent = ?2, name = ?3, key = ?4, kind = ?5, state = ?6,"
        " bytes = ?7, qxh = ?8, etag = ?9, ctag = ?10, mtime_s = ?11"
        " WHERE parent <> ?2 OR name IS NOT ?3 OR " OTHER_THAN_EXCLUDED,
        item, parent, tide_drive_bytes_value(seen->name),
        tide_drive_bytes_value(tide_buf_text(&key)), (int)seen->kind, (int)seen->state,
        seen->content.bytes, tide_drive_qxh_value(&seen->content), seen->etag, seen->ctag,
        seen->mtime_s));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "UPDATE drive_@_remote SET reason = ?2 WHERE item = ?1 AND reason <> ?2",
                          item, (int)seen->reason));
    /* A listing that is under way may have passed its place: it is there all the same (DST2). */
    TIDE_TRY(
        tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                     "UPDATE drive_@_remote SET round = (SELECT round_number FROM drive_@_state)"
                     " WHERE item = ?1 AND round <> (SELECT round_number FROM drive_@_state)",
                     item));
    return tide_drive_changed(db, rows, err);
}
