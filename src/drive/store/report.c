#include "drive/store/report.h"

#include "drive/store/store_inside.h"

#include <string.h>

/* ---- counts ---- */

/* What is beneath another one that is unsure goes without saying. */
#define UNSURE                                                                                     \
    "drive_@_local AS l WHERE l.state IN (3, 5) AND NOT EXISTS"                                    \
    " (SELECT 1 FROM drive_@_local AS p WHERE p.row = l.parent AND p.state IN (3, 5))"

tide_status tide_drive_counts(tide_rows db, struct tide_drive_counts *counts_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(
        tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                        "SELECT (SELECT count(*) FROM drive_@_base WHERE kind = 1),"
                        " (SELECT count(*) FROM drive_@_base WHERE kind = 2),"
                        " (SELECT coalesce(sum(local_bytes), 0) FROM drive_@_base WHERE kind = 1),"
                        " (SELECT count(*) FROM drive_@_owed),"
                        " (SELECT count(*) FROM drive_@_conflict WHERE notice IN (1, 2, 6, 8)),"
                        " (SELECT count(*) FROM drive_@_conflict WHERE notice NOT IN (1, 2, 6, 8)),"
                        " (SELECT count(*) FROM drive_@_deletion),"
                        " (SELECT count(*) FROM drive_@_local WHERE state = 2),"
                        " (SELECT count(*) FROM drive_@_remote WHERE state = 4),"
                        " (SELECT applied_ms FROM drive_@_state),"
                        " (SELECT count(*) FROM " UNSURE "),"
                        " (SELECT count(*) FROM " TIDE_DRIVE_HIDDEN ")"));
    *counts_out = (struct tide_drive_counts){.files = tide_rows_get_u64(&stmt, 0),
                                             .folders = tide_rows_get_u64(&stmt, 1),
                                             .bytes = tide_rows_get_u64(&stmt, 2),
                                             .owed = tide_rows_get_u64(&stmt, 3),
                                             .conflicts = tide_rows_get_u64(&stmt, 4),
                                             .notices = tide_rows_get_u64(&stmt, 5),
                                             .deletions = tide_rows_get_u64(&stmt, 6),
                                             .skipped_here = tide_rows_get_u64(&stmt, 7),
                                             .skipped_online = tide_rows_get_u64(&stmt, 8),
                                             .applied_ms = tide_rows_get_u64(&stmt, 9),
                                             .unsure = tide_rows_get_u64(&stmt, 10),
                                             .hidden = tide_rows_get_u64(&stmt, 11)};
    return TIDE_OK;
}

/* ---- paths ---- */

static tide_status put_before(tide_buf *path, tide_text name)
{
    const size_t had = path->bytes;
    TIDE_TRY(tide_buf_add(path, name.data, name.bytes));
    if (had > 0)
        TIDE_TRY(tide_buf_add(path, "/", 1));
    const size_t more = path->bytes - had;
    if (had == 0)
        return TIDE_OK;
    /* The name is at the end: it goes to the front. */
    tide_auto_buf whole = tide_buf_heap(path->bytes_max);
    TIDE_TRY(tide_buf_add(&whole, path->data + had, more));
    TIDE_TRY(tide_buf_add(&whole, path->data, had));
    memcpy(path->data, whole.data, whole.bytes);
    return TIDE_OK;
}

/* From the entry up to the root; `sql` gives parent and name of ?1. */
static tide_status walk_up(tide_rows db, const char *sql, uint64_t number, tide_buf *path,
                           tide_error *err)
{
    tide_buf_clear(path);
    for (unsigned depth = 0; number != TIDE_DRIVE_ROOT; depth++) {
        tide_auto_rows stmt = {.what = NULL};
        if (depth == TIDE_DRIVE_REPORT_DEPTH_MAX)
            return tide_error_set(err, TIDE_CORRUPT, "the folders of a drive form a circle");
        TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err, sql, number));
        const tide_status rc = put_before(path, tide_rows_get_text(&stmt, 1));
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "a path is too long");
        number = tide_rows_get_u64(&stmt, 0);
    }
    return TIDE_OK;
}

tide_status tide_drive_path_here(tide_rows db, uint64_t row, tide_buf *path, tide_error *err)
{
    return walk_up(db, "SELECT parent, name FROM drive_@_local WHERE row = ?1", row, path, err);
}

tide_status tide_drive_path_of(tide_rows db, uint64_t item, tide_buf *path, tide_error *err)
{
    uint64_t row = 0;
    tide_status rc = tide_rows_number(db, TIDE_DRIVE_ROWS, &row, err,
                                      "SELECT l.row FROM drive_@_base b JOIN drive_@_local l"
                                      " ON l.row = b.row WHERE b.item = ?1",
                                      item);
    if (rc == TIDE_OK)
        rc = tide_drive_path_here(db, row, path, err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    return walk_up(db,
                   "SELECT parent, coalesce(aside, name, '?') FROM drive_@_remote WHERE item = ?1",
                   item, path, err);
}

/* ---- lists ---- */

tide_status tide_drive_deletions_each(tide_rows db,
                                      void (*visit)(const struct tide_drive_deletion *deletion,
                                                    void *arg),
                                      void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                                   "SELECT item, verb, name FROM drive_@_deletion ORDER BY item");
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_drive_deletion deletion = {
            .item = tide_rows_get_u64(&stmt, 0),
            .verb = (tide_drive_verb)tide_rows_get_i64(&stmt, 1),
            .name = tide_rows_get_text(&stmt, 2)};
        visit(&deletion, arg);
    }
    return rc;
}

static tide_status skipped_side(tide_rows db, const char *sql, bool here, size_t count,
                                void (*visit)(const struct tide_drive_skipped *skipped, void *arg),
                                void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err, sql, (uint64_t)count);
    while (tide_rows_next(&stmt, &rc, err)) {
        const uint64_t number = tide_rows_get_u64(&stmt, 0);
        const struct tide_drive_skipped skipped = {
            .item = here ? 0 : number,
            .row = here ? number : 0,
            .name = tide_rows_get_text(&stmt, 1),
            .kind = (tide_drive_kind)tide_rows_get_i64(&stmt, 2),
            .at_root = tide_rows_get_u64(&stmt, 3) == TIDE_DRIVE_ROOT,
            .reason = (tide_drive_reason)tide_rows_get_i64(&stmt, 4)};
        visit(&skipped, arg);
    }
    return rc;
}

tide_status tide_drive_skipped_each(tide_rows db, size_t count,
                                    void (*visit)(const struct tide_drive_skipped *skipped,
                                                  void *arg),
                                    void *arg, tide_error *err)
{
    TIDE_TRY(skipped_side(db,
                          "SELECT row, name, kind, parent, 0 FROM drive_@_local WHERE state = 2"
                          " ORDER BY row LIMIT ?1",
                          true, count, visit, arg, err));
    return skipped_side(db,
                        "SELECT item, coalesce(name, ''), kind, parent, reason FROM drive_@_remote"
                        " WHERE state = 4 ORDER BY item LIMIT ?1",
                        false, count, visit, arg, err);
}

tide_status tide_drive_unsure_each(tide_rows db, size_t count,
                                   void (*visit)(const struct tide_drive_skipped *skipped,
                                                 void *arg),
                                   void *arg, tide_error *err)
{
    return skipped_side(
        db, "SELECT l.row, l.name, l.kind, l.parent FROM " UNSURE " ORDER BY l.row LIMIT ?1", true,
        count, visit, arg, err);
}

tide_status tide_drive_kept_each(tide_rows db, uint64_t after, size_t count,
                                 void (*visit)(const struct tide_drive_kept *kept, void *arg),
                                 void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                                   "SELECT b.item, b.row, b.local_bytes, b.local_qxh, b.strong,"
                                   " coalesce(l.mtime_ns, 0) FROM drive_@_base b"
                                   " LEFT JOIN drive_@_local l ON l.row = b.row"
                                   " WHERE b.kind = 1 AND b.item > ?1 ORDER BY b.item LIMIT ?2",
                                   after, (uint64_t)count);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_drive_kept kept = {.item = tide_rows_get_u64(&stmt, 0),
                                       .row = tide_rows_get_u64(&stmt, 1),
                                       .mtime_ns = tide_rows_get_u64(&stmt, 5)};
        tide_drive_content_read(&stmt, 2, 3, 4, &kept.content);
        visit(&kept, arg);
    }
    return rc;
}
