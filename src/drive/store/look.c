#include "drive/store/look.h"

#include "drive/store/store_inside.h"

#define DISPLACED_MS (UINT64_C(30) * 24 * 3600000) /* contents that were replaced are known for */

#define REMOTE                                                                                     \
    "SELECT r.item, r.parent, i.id, coalesce(p.id, ''), coalesce(r.name, x''),"                    \
    " coalesce(r.aside, x''), r.etag, r.ctag, r.mtime_s, r.bytes, r.qxh, r.kind, r.state"          \
    " FROM drive_@_remote AS r JOIN drive_@_item AS i ON i.item = r.item"                          \
    " LEFT JOIN drive_@_item AS p ON p.item = r.parent"
#define LOCAL                                                                                      \
    "SELECT row, parent, name, coalesce(aside, x''), dev, inode, birth_ns, bytes, qxh, strong,"    \
    " mtime_ns, ctime_ns, hashed_ns, gone_ms, nlink, mode, kind, state FROM drive_@_local"

/* The name that it had counts only while its name is one of ours, as for the planner (load.c): it is written
 * before the step, which may not have been made, or a user renamed it since. */
static void read_aside(const tide_rows_stmt *stmt, int name_at, char *out, size_t out_bytes)
{
    out[0] = '\0';
    if (tide_drive_name_is_ours(tide_rows_get_text(stmt, name_at)))
        tide_rows_get_copy(stmt, name_at + 1, out, out_bytes);
}

tide_status tide_drive_look_remote(tide_rows db, uint64_t item,
                                   struct tide_drive_remote_look *look_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err, REMOTE " WHERE r.item = ?1", item));
    *look_out = (struct tide_drive_remote_look){
        .item = tide_rows_get_u64(&stmt, 0),
        .parent = tide_rows_get_u64(&stmt, 1),
        .mtime_s = tide_rows_get_u64(&stmt, 8),
        .kind = (tide_drive_kind)tide_rows_get_i64(&stmt, 11),
        .state = (tide_drive_remote_state)tide_rows_get_i64(&stmt, 12),
    };
    tide_rows_get_copy(&stmt, 2, look_out->id, sizeof look_out->id);
    tide_rows_get_copy(&stmt, 3, look_out->parent_id, sizeof look_out->parent_id);
    tide_rows_get_copy(&stmt, 4, look_out->name, sizeof look_out->name);
    read_aside(&stmt, 4, look_out->aside, sizeof look_out->aside);
    tide_rows_get_copy(&stmt, 6, look_out->etag, sizeof look_out->etag);
    tide_rows_get_copy(&stmt, 7, look_out->ctag, sizeof look_out->ctag);
    tide_drive_content_read(&stmt, 9, 10, -1, &look_out->content);
    return TIDE_OK;
}

static void read_local(const tide_rows_stmt *stmt, struct tide_drive_local_look *out)
{
    *out = (struct tide_drive_local_look){
        .row = tide_rows_get_u64(stmt, 0),
        .parent = tide_rows_get_u64(stmt, 1),
        .identity = {tide_rows_get_u64(stmt, 4), tide_rows_get_u64(stmt, 5),
                     tide_rows_get_u64(stmt, 6)},
        .mtime_ns = tide_rows_get_u64(stmt, 10),
        .ctime_ns = tide_rows_get_u64(stmt, 11),
        .hashed_ns = tide_rows_get_u64(stmt, 12),
        .gone_ms = tide_rows_get_u64(stmt, 13),
        .nlink = tide_rows_get_u32(stmt, 14),
        .mode = tide_rows_get_u32(stmt, 15),
        .kind = (tide_drive_kind)tide_rows_get_i64(stmt, 16),
        .state = (int)tide_rows_get_i64(stmt, 17),
    };
    tide_rows_get_copy(stmt, 2, out->name, sizeof out->name);
    read_aside(stmt, 2, out->aside, sizeof out->aside);
    tide_drive_content_read(stmt, 7, 8, 9, &out->content);
}

tide_status tide_drive_look_local(tide_rows db, uint64_t row,
                                  struct tide_drive_local_look *look_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err, LOCAL " WHERE row = ?1", row));
    read_local(&stmt, look_out);
    return TIDE_OK;
}

tide_status tide_drive_look_at(tide_rows db, uint64_t parent, tide_text name,
                               struct tide_drive_local_look *look_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             LOCAL " WHERE parent = ?1 AND name = ?2", parent,
                             tide_drive_bytes_value(name)));
    read_local(&stmt, look_out);
    return TIDE_OK;
}

tide_status tide_drive_look_base(tide_rows db, uint64_t item, struct tide_drive_base_look *look_out,
                                 tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             "SELECT item, parent, row, local_name, kind, local_bytes, local_qxh,"
                             " strong FROM drive_@_base WHERE item = ?1",
                             item));
    *look_out = (struct tide_drive_base_look){
        .item = tide_rows_get_u64(&stmt, 0),
        .parent = tide_rows_get_u64(&stmt, 1),
        .row = tide_rows_get_u64(&stmt, 2),
        .kind = (tide_drive_kind)tide_rows_get_i64(&stmt, 4),
    };
    tide_rows_get_copy(&stmt, 3, look_out->local_name, sizeof look_out->local_name);
    tide_drive_content_read(&stmt, 5, 6, 7, &look_out->local);
    return TIDE_OK;
}

tide_status tide_drive_id_of(tide_rows db, uint64_t item, char id_out[TIDE_DRIVE_LOOK_ID_BYTES],
                             tide_error *err)
{
    return tide_rows_copy(db, TIDE_DRIVE_ROWS, id_out, TIDE_DRIVE_LOOK_ID_BYTES, err,
                          "SELECT id FROM drive_@_item WHERE item = ?1", item);
}

tide_status tide_drive_item_of_row(tide_rows db, uint64_t row, uint64_t *item_out, tide_error *err)
{
    if (row == TIDE_DRIVE_ROOT) {
        *item_out = TIDE_DRIVE_ROOT;
        return TIDE_OK;
    }
    return tide_rows_number(db, TIDE_DRIVE_ROWS, item_out, err,
                            "SELECT item FROM drive_@_base WHERE row = ?1", row);
}

tide_status tide_drive_row_of_item(tide_rows db, uint64_t item, uint64_t *row_out, tide_error *err)
{
    if (item == TIDE_DRIVE_ROOT) {
        *row_out = TIDE_DRIVE_ROOT;
        return TIDE_OK;
    }
    return tide_rows_number(db, TIDE_DRIVE_ROWS, row_out, err,
                            "SELECT row FROM drive_@_base WHERE item = ?1 AND row > 0", item);
}

#define SYNCED                                                                                     \
    "SELECT count(*) FROM drive_@_base AS b JOIN drive_@_remote AS r ON r.item = b.item"           \
    " JOIN drive_@_local AS l ON l.row = b.row WHERE r.state = 1 AND l.state = 1"                  \
    " AND r.parent = b.parent AND r.key = b.key AND l.key = b.key AND r.bytes = b.bytes"           \
    " AND r.qxh IS b.qxh AND l.bytes = b.local_bytes AND l.strong IS b.strong AND b."

tide_status tide_drive_is_synced(tide_rows db, uint64_t item, uint64_t row, bool *synced_out,
                                 tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &count, err,
                              item != 0 ? SYNCED "item = ?1" : SYNCED "row = ?1",
                              item != 0 ? item : row));
    *synced_out = count > 0;
    return TIDE_OK;
}

tide_status tide_drive_is_base_online(tide_rows db, uint64_t item, bool *same_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(
        db, TIDE_DRIVE_ROWS, &count, err,
        "SELECT count(*) FROM drive_@_base AS b JOIN drive_@_remote AS r ON r.item = b.item"
        " WHERE b.item = ?1 AND r.bytes = b.bytes AND CASE WHEN r.qxh IS NULL OR b.qxh IS NULL"
        " THEN r.ctag = b.ctag ELSE r.qxh = b.qxh END",
        item));
    *same_out = count > 0;
    return TIDE_OK;
}

/* Root first: the names are found from the bottom up, so they are added from the end. */
tide_status tide_drive_path_of_row(tide_rows db, uint64_t row, tide_buf *path, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    uint64_t last = TIDE_DRIVE_ROOT;
    bool first = true;
    if (row == TIDE_DRIVE_ROOT)
        return TIDE_OK;
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "WITH RECURSIVE up(depth, row, parent, name) AS (SELECT 0, row, parent,"
                           " name FROM drive_@_local WHERE row = ?1 AND state <> 4 UNION ALL SELECT"
                           " up.depth + 1, l.row, l.parent, l.name FROM drive_@_local AS l JOIN up"
                           " ON l.row = up.parent WHERE l.state <> 4 AND up.depth < 4096)"
                           " SELECT row, parent, name FROM up ORDER BY depth DESC",
                           row));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        const tide_text name = tide_rows_get_text(&stmt, 2);
        if (tide_rows_get_u64(&stmt, 1) != last)
            break;
        last = tide_rows_get_u64(&stmt, 0);
        if (!first)
            TIDE_TRY(tide_buf_add(path, "/", 1));
        first = false;
        TIDE_TRY(tide_buf_add(path, name.data, name.bytes));
    }
    if (rc == TIDE_OK && last != row)
        return tide_error_set(err, TIDE_NOT_FOUND, "the folder is no longer here");
    return rc;
}

tide_status tide_drive_local_facts(tide_rows db, const struct tide_drive_local_look *look,
                                   tide_error *err)
{
    TIDE_TRY(tide_drive_changed(db, 1, err));
    TIDE_TRY(tide_rows_do(
        db, TIDE_DRIVE_ROWS, err,
        "UPDATE drive_@_local SET dev = ?2, inode = ?3, birth_ns = ?4, bytes = ?5, qxh = ?6,"
        " strong = ?7, kind = ?8, state = ?9, version = version + 1 WHERE row = ?1",
        look->row, look->identity.dev, look->identity.inode, look->identity.birth_ns,
        look->content.bytes, tide_drive_qxh_value(&look->content),
        tide_drive_strong_value(&look->content), (int)look->kind, look->state));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_local SET mtime_ns = ?2, ctime_ns = ?3, hashed_ns = ?4,"
                        " gone_ms = ?5, nlink = ?6, mode = ?7 WHERE row = ?1",
                        look->row, look->mtime_ns, look->ctime_ns, look->hashed_ns, look->gone_ms,
                        look->nlink, look->mode);
}

tide_status tide_drive_remote_again(tide_rows db, const struct tide_drive_remote_look *look,
                                    tide_error *err)
{
    const struct tide_drive_seen seen = {.id = tide_text_of(look->id),
                                         .parent_id = tide_text_of(look->parent_id),
                                         .name = tide_text_of(look->name),
                                         .etag = tide_text_of(look->etag),
                                         .ctag = tide_text_of(look->ctag),
                                         .mtime_s = look->mtime_s,
                                         .content = look->content,
                                         .kind = look->kind,
                                         .state = look->state};
    uint64_t item = 0;
    return tide_drive_remote_put(db, &seen, &item, err);
}

tide_status tide_drive_is_consented(tide_rows db, uint64_t item, uint64_t now_ms,
                                    bool *consented_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(
        db, TIDE_DRIVE_ROWS, &count, err,
        "SELECT count(*) FROM drive_@_consent WHERE item = ?1 AND until_ms > ?2", item, now_ms));
    *consented_out = count > 0;
    return TIDE_OK;
}

static tide_status each_id(tide_rows db, const char *sql, size_t count,
                           void (*visit)(tide_text id, void *arg), void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err, sql, (uint64_t)count));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_drive_unsure(tide_rows db, size_t count, void (*visit)(tide_text id, void *arg),
                              void *arg, tide_error *err)
{
    return each_id(db,
                   "SELECT i.id FROM drive_@_remote AS r JOIN drive_@_item AS i"
                   " ON i.item = r.item WHERE r.state = 5 LIMIT ?1",
                   count, visit, arg, err);
}

tide_status tide_drive_doubled(tide_rows db, size_t count, void (*visit)(tide_text id, void *arg),
                               void *arg, tide_error *err)
{
    return each_id(db,
                   "SELECT i.id FROM drive_@_remote AS r JOIN drive_@_item AS i"
                   " ON i.item = r.item WHERE r.state = 1 AND EXISTS (SELECT 1 FROM"
                   " drive_@_remote AS o WHERE o.parent = r.parent AND o.key = r.key"
                   " AND o.item <> r.item AND o.state = 1) LIMIT ?1",
                   count, visit, arg, err);
}

/* ---- overwriting uploads on their way ---- */

tide_status tide_drive_doubt_put(tide_rows db, const struct tide_drive_doubt *doubt,
                                 tide_error *err)
{
    const struct tide_drive_local_look *local = &doubt->local;
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT OR REPLACE INTO drive_@_doubt VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, "
                          "?8, ?9, 0, 0, 0, 0,"
                          " 0, '', x'')",
                          doubt->item, doubt->row, doubt->was_item, local->identity.dev,
                          local->identity.inode, local->identity.birth_ns, local->content.bytes,
                          tide_drive_qxh_value(&local->content),
                          tide_drive_strong_value(&local->content)));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_doubt SET mtime_ns = ?2, ctime_ns = ?3, hashed_ns = ?4,"
                        " nlink = ?5, mode = ?6, parent_id = ?7, name = ?8 WHERE item = ?1",
                        doubt->item, local->mtime_ns, local->ctime_ns, local->hashed_ns,
                        local->nlink, local->mode, tide_text_of(doubt->parent_id),
                        tide_drive_bytes_value(tide_text_of(local->name)));
}

tide_status tide_drive_doubt_end(tide_rows db, uint64_t item, tide_error *err)
{
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_doubt WHERE item = ?1",
                        item);
}

tide_status tide_drive_doubt_next(tide_rows db, uint64_t item, struct tide_drive_doubt *doubt_out,
                                  tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             "SELECT item, row, was_item, dev, inode, birth_ns, bytes, qxh, strong,"
                             " mtime_ns, ctime_ns, hashed_ns, nlink, mode, parent_id, name"
                             " FROM drive_@_doubt"
                             " WHERE item > ?1 ORDER BY item LIMIT 1",
                             item));
    *doubt_out = (struct tide_drive_doubt){
        .item = tide_rows_get_u64(&stmt, 0),
        .row = tide_rows_get_u64(&stmt, 1),
        .was_item = tide_rows_get_u64(&stmt, 2),
        .local = {.row = tide_rows_get_u64(&stmt, 1),
                  .identity = {tide_rows_get_u64(&stmt, 3), tide_rows_get_u64(&stmt, 4),
                               tide_rows_get_u64(&stmt, 5)},
                  .mtime_ns = tide_rows_get_u64(&stmt, 9),
                  .ctime_ns = tide_rows_get_u64(&stmt, 10),
                  .hashed_ns = tide_rows_get_u64(&stmt, 11),
                  .nlink = tide_rows_get_u32(&stmt, 12),
                  .mode = tide_rows_get_u32(&stmt, 13),
                  .kind = TIDE_DRIVE_FILE,
                  .state = TIDE_DRIVE_LOCAL_LIVE}};
    tide_drive_content_read(&stmt, 6, 7, 8, &doubt_out->local.content);
    tide_rows_get_copy(&stmt, 14, doubt_out->parent_id, sizeof doubt_out->parent_id);
    tide_rows_get_copy(&stmt, 15, doubt_out->local.name, sizeof doubt_out->local.name);
    return TIDE_OK;
}

/* ---- leftovers of a crash ---- */

tide_status tide_drive_base_of_inode(tide_rows db, uint64_t dev, uint64_t inode, uint64_t birth_ns,
                                     uint64_t *item_out, char *name, size_t name_bytes,
                                     tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             "SELECT item, local_name FROM drive_@_base WHERE inode = ?1"
                             " AND dev = ?2 AND birth_ns = ?3 AND kind = 1",
                             inode, dev, birth_ns));
    *item_out = tide_rows_get_u64(&stmt, 0);
    if (name != NULL)
        tide_rows_get_copy(&stmt, 1, name, name_bytes);
    return TIDE_OK;
}

tide_status tide_drive_is_file_known(tide_rows db, const struct tide_drive_identity *identity,
                                     bool *known_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &count, err,
                              "SELECT (SELECT count(*) FROM drive_@_local WHERE inode = ?1 AND"
                              " dev = ?2 AND birth_ns = ?3 AND kind = 1) + (SELECT count(*) FROM"
                              " drive_@_base WHERE inode = ?1 AND dev = ?2 AND birth_ns = ?3 AND"
                              " kind = 1)",
                              identity->inode, identity->dev, identity->birth_ns));
    *known_out = count > 0;
    return TIDE_OK;
}

tide_status tide_drive_is_other_item(tide_rows db, const struct tide_drive_identity *identity,
                                     uint64_t item, bool *other_out, tide_error *err)
{
    uint64_t owner = 0;
    const tide_status rc = tide_rows_number(
        db, TIDE_DRIVE_ROWS, &owner, err,
        "SELECT item FROM drive_@_base WHERE (inode = ?1 AND dev = ?2 AND birth_ns = ?3) OR"
        " row IN (SELECT row FROM drive_@_local WHERE inode = ?1 AND dev = ?2 AND birth_ns = ?3"
        " AND state <> 4) ORDER BY inode = ?1 AND dev = ?2 AND birth_ns = ?3 DESC, row > 0 DESC,"
        " item = ?4 DESC LIMIT 1",
        identity->inode, identity->dev, identity->birth_ns, item);
    *other_out = rc == TIDE_OK && owner != item;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_drive_deletion_begins(tide_rows db, uint64_t item, bool online, tide_error *err)
{
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        online ? "UPDATE drive_@_base SET strong = NULL WHERE item = ?1"
                               : "UPDATE drive_@_base SET qxh = NULL, ctag = '' WHERE item = ?1",
                        item);
}

tide_status tide_drive_displaced_put(tide_rows db, const struct tide_drive_content *content,
                                     uint64_t now_ms, tide_error *err)
{
    if (!content->has_strong)
        return TIDE_OK;
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "DELETE FROM drive_@_displaced WHERE at_ms < ?1",
                          now_ms > DISPLACED_MS ? now_ms - DISPLACED_MS : 0));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "INSERT OR REPLACE INTO drive_@_displaced(strong, at_ms) VALUES(?1, ?2)",
                        tide_drive_strong_value(content), now_ms);
}

/* Files online that are not here as they are there. */
tide_status tide_drive_wanted_each(tide_rows db,
                                   void (*visit)(tide_text id, tide_text ctag,
                                                 const struct tide_drive_content *content,
                                                 void *arg),
                                   void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "SELECT i.id, r.ctag, r.bytes, r.qxh FROM drive_@_remote AS r"
                           " JOIN drive_@_item AS i ON i.item = r.item"
                           " LEFT JOIN drive_@_base AS b ON b.item = r.item"
                           " LEFT JOIN drive_@_local AS l ON l.row = b.row AND l.state = 1"
                           " WHERE r.kind = 1 AND r.state = 1 AND (l.row IS NULL OR"
                           " b.bytes <> r.bytes OR b.qxh IS NOT r.qxh OR"
                           " (r.qxh IS NULL AND b.ctag <> r.ctag))"));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_drive_content content;
        tide_drive_content_read(&stmt, 2, 3, -1, &content);
        visit(tide_rows_get_text(&stmt, 0), tide_rows_get_text(&stmt, 1), &content, arg);
    }
    return rc;
}

tide_status tide_drive_is_content_known(tide_rows db, const struct tide_drive_content *content,
                                        bool *known_out, tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &count, err,
                              "SELECT (SELECT count(*) FROM drive_@_local WHERE strong = ?1"
                              " AND state = 1) + (SELECT count(*) FROM drive_@_base WHERE strong ="
                              " ?1) + (SELECT count(*) FROM drive_@_displaced WHERE strong = ?1)",
                              tide_drive_strong_value(content)));
    *known_out = count > 0;
    return TIDE_OK;
}

tide_status tide_drive_folders_each(tide_rows db, void (*visit)(tide_text path, void *arg),
                                    void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    visit(TIDE_TEXT(""), arg);
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "WITH RECURSIVE down(row, path) AS (SELECT row, name FROM drive_@_local"
                           " WHERE parent = 1 AND kind = 2 AND state = 1 UNION ALL SELECT l.row,"
                           " CAST(down.path || x'2f' || l.name AS BLOB) FROM drive_@_local AS l"
                           " JOIN down ON l.parent = down.row WHERE l.kind = 2 AND l.state = 1)"
                           " SELECT path FROM down"));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_drive_conflict_once(tide_rows db, const struct tide_drive_conflict *conflict,
                                     tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(
        db, TIDE_DRIVE_ROWS, &count, err,
        "SELECT count(*) FROM drive_@_conflict WHERE notice = ?1 AND item = ?2"
        " AND name = ?3 AND copy = ?4",
        (int)conflict->notice, conflict->item, tide_drive_bytes_value(conflict->name),
        tide_drive_bytes_value(conflict->copy)));
    return count > 0 ? TIDE_OK : tide_drive_conflict_add(db, conflict, err);
}

/* ---- ignored paths ---- */

tide_status tide_drive_remote_ignore(tide_rows db,
                                     bool (*ignored)(tide_text path, bool is_folder, void *arg),
                                     void *arg, tide_error *err)
{
    uint64_t marked = 0;
    tide_auto_rows stmt = {.what = NULL}, mark = {.what = NULL};
    TIDE_TRY(tide_rows_prepare(db, "UPDATE drive_@_remote SET state = 4 WHERE item = ?1",
                               TIDE_DRIVE_ROWS, &mark, err));
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "WITH RECURSIVE down(item, kind, path) AS (SELECT item, kind, name"
                           " FROM drive_@_remote WHERE parent = 1 AND state = 1 AND name IS NOT"
                           " NULL UNION ALL SELECT r.item, r.kind, CAST(down.path || x'2f' ||"
                           " r.name AS BLOB) FROM drive_@_remote AS r JOIN down ON r.parent ="
                           " down.item WHERE r.state = 1 AND r.name IS NOT NULL AND"
                           " length(down.path) < 4096) SELECT item, kind, path FROM down"));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        bool row = false;
        if (!ignored(tide_rows_get_text(&stmt, 2), tide_rows_get_i64(&stmt, 1) == TIDE_DRIVE_FOLDER,
                     arg))
            continue;
        tide_rows_u64(&mark, 1, tide_rows_get_u64(&stmt, 0));
        rc = tide_rows_step(&mark, &row, err);
        tide_rows_again(&mark);
        if (rc != TIDE_OK)
            break;
        marked++;
    }
    return rc == TIDE_OK ? tide_drive_changed(db, marked, err) : rc;
}
