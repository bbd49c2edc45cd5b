/* local.c - what scans and actions find here becomes rows (S2, S13).
 *
 * An entry keeps its row as long as its folder and name stay the same.  A scan writes what differs
 * from the rows it read, and only where they are still those rows (DST8). */
#include "drive/names/key.h"
#include "drive/names/names.h"
#include "drive/store/store_inside.h"

enum { KEY_BYTES_MAX = 8 << 10 };

/* ---- reading ---- */

#define COLUMNS                                                                                    \
    "row, version, parent, name, kind, state, bytes, qxh, strong, mtime_ns, ctime_ns, hashed_ns,"  \
    " dev, inode, birth_ns, nlink, mode"

static void read_found(const tide_rows_stmt *stmt, struct tide_drive_found *found_out)
{
    *found_out = (struct tide_drive_found){
        .row = tide_rows_get_u64(stmt, 0),
        .version = tide_rows_get_u64(stmt, 1),
        .parent = tide_rows_get_u64(stmt, 2),
        .name = tide_rows_get_text(stmt, 3),
        .kind = (tide_drive_kind)tide_rows_get_i64(stmt, 4),
        .state = (tide_drive_local_state)tide_rows_get_i64(stmt, 5),
        .mtime_ns = tide_rows_get_u64(stmt, 9),
        .ctime_ns = tide_rows_get_u64(stmt, 10),
        .hashed_ns = tide_rows_get_u64(stmt, 11),
        .identity = {tide_rows_get_u64(stmt, 12), tide_rows_get_u64(stmt, 13),
                     tide_rows_get_u64(stmt, 14)},
        .nlink = tide_rows_get_u32(stmt, 15),
        .mode = tide_rows_get_u32(stmt, 16),
    };
    tide_drive_content_read(stmt, 6, 7, 8, &found_out->content);
}

tide_status tide_drive_known_each(tide_rows db, uint64_t folder,
                                  void (*visit)(const struct tide_drive_found *known, void *arg),
                                  void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "SELECT " COLUMNS
                           ", kind = 2 OR EXISTS (SELECT 1 FROM drive_@_local AS c"
                           " WHERE c.parent = l.row) FROM drive_@_local AS l WHERE parent = ?1"
                           " ORDER BY name",
                           folder));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_drive_found known;
        read_found(&stmt, &known);
        known.has_below = tide_rows_get_u64(&stmt, 17) != 0;
        visit(&known, arg);
    }
    return rc;
}

tide_status tide_drive_version_of(tide_rows db, uint64_t row, uint64_t *version_out,
                                  tide_error *err)
{
    return tide_rows_number(db, TIDE_DRIVE_ROWS, version_out, err,
                            "SELECT version FROM drive_@_local WHERE row = ?1 AND state <> 4", row);
}

tide_status tide_drive_folder_at(tide_rows db, tide_text path, uint64_t *row_out, tide_error *err)
{
    uint64_t row = TIDE_DRIVE_ROOT;
    for (size_t at = 0; at < path.bytes;) {
        const char *slash = memchr(path.data + at, '/', path.bytes - at);
        const size_t end = slash == NULL ? path.bytes : (size_t)(slash - path.data);
        const tide_text name = {path.data + at, end - at};
        TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &row, err,
                                  "SELECT row FROM drive_@_local WHERE parent = ?1 AND name = ?2"
                                  " AND kind = 2 AND state = 1",
                                  row, tide_drive_bytes_value(name)));
        at = end + 1;
    }
    *row_out = row;
    return TIDE_OK;
}

static bool content_same(const struct tide_drive_content *a, const struct tide_drive_content *b)
{
    return a->bytes == b->bytes && a->has_qxh == b->has_qxh && a->has_strong == b->has_strong &&
           (!a->has_qxh || memcmp(a->qxh, b->qxh, sizeof a->qxh) == 0) &&
           (!a->has_strong || memcmp(a->strong, b->strong, sizeof a->strong) == 0);
}

bool tide_drive_found_same(const struct tide_drive_found *a, const struct tide_drive_found *b,
                           bool *quiet_out)
{
    *quiet_out = a->kind == b->kind && a->state == b->state && a->nlink == b->nlink &&
                 a->identity.dev == b->identity.dev && a->identity.inode == b->identity.inode &&
                 a->identity.birth_ns == b->identity.birth_ns &&
                 content_same(&a->content, &b->content);
    return *quiet_out && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
           a->hashed_ns == b->hashed_ns && a->mode == b->mode;
}

/* ---- writing ---- */

/* An entry with a name of ours may have stepped aside just before a crash (D24): it keeps its row, and
 * with it the name that it had. */
static tide_status find_aside(tide_rows db, const struct tide_drive_found *found, bool *came_out,
                              tide_error *err)
{
    uint64_t row = 0;
    char was[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    *came_out = false;
    if (!tide_drive_name_is_ours(found->name))
        return TIDE_OK;
    const tide_status rc = tide_rows_number(
        db, TIDE_DRIVE_ROWS, &row, err,
        "SELECT row FROM drive_@_local WHERE aside IS NOT NULL AND inode = ?1 AND dev = ?2"
        " AND NOT (parent = ?3 AND name = ?4) AND state <> 4",
        found->identity.inode, found->identity.dev, found->parent,
        tide_drive_bytes_value(found->name));
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    TIDE_TRY(tide_rows_copy(db, TIDE_DRIVE_ROWS, was, sizeof was, err,
                            "SELECT aside FROM drive_@_local WHERE row = ?1", row));
    TIDE_TRY(tide_drive_local_moved(db, row, found->parent, found->name, err));
    *came_out = true;
    return tide_drive_aside_local(db, row, tide_text_of(was), err);
}

/* Thirteen parameters from `at` on. */
static void bind_facts(tide_rows_stmt *stmt, int at, const struct tide_drive_found *found)
{
    const uint64_t numbers[] = {
        found->mtime_ns,       found->ctime_ns,          found->hashed_ns, found->identity.dev,
        found->identity.inode, found->identity.birth_ns, found->nlink,     found->mode};
    tide_rows_i64(stmt, at, (int)found->kind);
    tide_rows_i64(stmt, at + 1, (int)found->state);
    tide_rows_u64(stmt, at + 2, found->content.bytes);
    if (found->content.has_qxh)
        tide_rows_blob(stmt, at + 3, found->content.qxh, sizeof found->content.qxh);
    if (found->content.has_strong)
        tide_rows_blob(stmt, at + 4, found->content.strong, sizeof found->content.strong);
    for (int i = 0; i < 8; i++)
        tide_rows_u64(stmt, at + 5 + i, numbers[i]);
}

/* TIDE_NOT_FOUND: the place has a row, or its folder has none. */
static tide_status insert(tide_rows db, const struct tide_drive_found *found, uint64_t *row_out,
                          tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_auto_buf key = tide_buf_heap(KEY_BYTES_MAX);
    TIDE_TRY(tide_drive_key_add(&key, found->name));
    TIDE_TRY(tide_rows_prepare(
        db,
        "INSERT INTO drive_@_local(parent, name, key, kind, state, bytes, qxh, strong, mtime_ns,"
        " ctime_ns, hashed_ns, dev, inode, birth_ns, nlink, mode, version, gone_ms)"
        " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, 1, 0"
        " WHERE ?1 = 1 OR EXISTS (SELECT 1 FROM drive_@_local WHERE row = ?1)"
        " ON CONFLICT(parent, name) DO NOTHING RETURNING row",
        TIDE_DRIVE_ROWS, &stmt, err));
    tide_rows_u64(&stmt, 1, found->parent);
    tide_rows_blob(&stmt, 2, found->name.bytes == 0 ? "" : found->name.data, found->name.bytes);
    tide_rows_blob(&stmt, 3, tide_buf_cstr(&key), key.bytes);
    bind_facts(&stmt, 4, found);
    TIDE_TRY(tide_rows_one(&stmt, err));
    *row_out = tide_rows_get_u64(&stmt, 0);
    return TIDE_OK;
}

/* *rows_out: 0 if the row has another version. */
static tide_status update(tide_rows db, const struct tide_drive_found *found, uint64_t *rows_out,
                          tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    bool written = false;
    TIDE_TRY(tide_rows_prepare(
        db,
        "UPDATE drive_@_local SET kind = ?1, state = ?2, bytes = ?3, qxh = ?4, strong = ?5,"
        " mtime_ns = ?6, ctime_ns = ?7, hashed_ns = ?8, dev = ?9, inode = ?10, birth_ns = ?11,"
        " nlink = ?12, mode = ?13, gone_ms = 0, version = version + 1"
        " WHERE row = ?14 AND version = ?15 RETURNING row",
        TIDE_DRIVE_ROWS, &stmt, err));
    bind_facts(&stmt, 1, found);
    tide_rows_u64(&stmt, 14, found->row);
    tide_rows_u64(&stmt, 15, found->version);
    TIDE_TRY(tide_rows_step(&stmt, &written, err));
    *rows_out = written;
    return TIDE_OK;
}

static tide_status update_state(tide_rows db, const struct tide_drive_found *found, uint64_t now_ms,
                                uint64_t *rows_out, tide_error *err)
{
    const bool gone = (int)found->state == TIDE_DRIVE_LOCAL_GONE;
    return tide_rows_change(db, TIDE_DRIVE_ROWS, rows_out, err,
                            "UPDATE drive_@_local SET state = ?3, gone_ms = ?4,"
                            " version = version + 1 WHERE row = ?1 AND version = ?2"
                            " AND state <> ?3",
                            found->row, found->version, (int)found->state, gone ? now_ms : 0);
}

static tide_status read_at(tide_rows db, uint64_t parent, tide_text name,
                           struct tide_drive_found *found_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_first(db, TIDE_DRIVE_ROWS, &stmt, err,
                             "SELECT " COLUMNS
                             " FROM drive_@_local WHERE parent = ?1 AND name = ?2",
                             parent, tide_drive_bytes_value(name)));
    read_found(&stmt, found_out);
    found_out->name = name;
    return TIDE_OK;
}

/* Over whatever row the place has. */
static tide_status put(tide_rows db, struct tide_drive_found *found, bool *quiet_out,
                       uint64_t *rows_out, tide_error *err)
{
    struct tide_drive_found was;
    *quiet_out = false;
    *rows_out = 1;
    const tide_status rc = read_at(db, found->parent, found->name, &was, err);
    if (rc == TIDE_NOT_FOUND)
        return insert(db, found, &found->row, err);
    TIDE_TRY(rc);
    found->row = was.row;
    struct tide_drive_found now = *found;
    now.version = was.version;
    if (!tide_drive_found_same(&was, &now, quiet_out))
        return update(db, &now, rows_out, err);
    *rows_out = 0;
    return TIDE_OK;
}

static tide_status write_new(tide_rows db, struct tide_drive_found *found, uint64_t *rows_out,
                             tide_error *err)
{
    bool came = false, quiet = false;
    found->row = 0; /* of a transaction that failed */
    TIDE_TRY(find_aside(db, found, &came, err));
    if (came)
        return put(db, found, &quiet, rows_out, err);
    tide_status rc = insert(db, found, &found->row, err);
    *rows_out = rc == TIDE_OK;
    if (rc == TIDE_NOT_FOUND) /* an action made it meanwhile: then it has this row */
        rc = tide_rows_number(db, TIDE_DRIVE_ROWS, &found->row, err,
                              "SELECT row FROM drive_@_local WHERE parent = ?1 AND name = ?2"
                              " AND kind = ?3 AND state <> 4",
                              found->parent, tide_drive_bytes_value(found->name), (int)found->kind);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_drive_scan_write(tide_rows db, struct tide_drive_difference *list, size_t count,
                                  uint64_t now_ms, tide_error *err)
{
    struct tide_rows_kept kept = {.count = 0}; /* the same statements for each of them */
    uint64_t seen = 0;
    tide_status rc = TIDE_OK;
    db.kept = &kept;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        uint64_t rows = 0;
        if (list[i].state_only)
            rc = update_state(db, &list[i].found, now_ms, &rows, err);
        else if (list[i].found.version != 0)
            rc = update(db, &list[i].found, &rows, err);
        else
            rc = write_new(db, &list[i].found, &rows, err);
        seen += list[i].quiet ? 0 : rows;
    }
    if (rc == TIDE_OK)
        rc = tide_drive_changed(db, seen, err);
    tide_rows_kept_done(&kept);
    return rc;
}

tide_status tide_drive_scan_put(tide_rows db, const struct tide_drive_found *found,
                                uint64_t *row_out, tide_error *err)
{
    struct tide_drive_found now = *found;
    uint64_t rows = 0;
    bool came = false, quiet = false;
    TIDE_TRY(find_aside(db, found, &came, err));
    const tide_status rc = put(db, &now, &quiet, &rows, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, TIDE_SUPERSEDED, "the folder changed since it was scanned");
    TIDE_TRY(rc);
    *row_out = now.row;
    return tide_drive_changed(db, quiet ? 0 : rows, err);
}

/* ---- what actions do ---- */

/* Items whose rows were at or beneath this one are proved gone: their rows go, row 0 says so. */
static tide_status clear_place(tide_rows db, uint64_t row, tide_error *err)
{
#define BENEATH                                                                                    \
    "WITH RECURSIVE dead(row) AS (SELECT ?1 UNION SELECT l.row FROM drive_@_local AS l JOIN dead"  \
    " ON l.parent = dead.row) "
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          BENEATH "UPDATE drive_@_base SET row = 0 WHERE row IN"
                                  " (SELECT row FROM dead)",
                          row));
    TIDE_TRY(tide_drive_changed(db, 1, err));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        BENEATH "DELETE FROM drive_@_local WHERE row IN (SELECT row FROM dead)",
                        row);
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
                              " FROM drive_@_local AS l JOIN up ON l.row = up.row)"
                              " SELECT count(*) FROM up WHERE row = ?1",
                              row, parent));
    if (circle > 0)
        return tide_error_set(err, TIDE_SUPERSEDED, "the folder changed since it was scanned");
    TIDE_TRY(tide_drive_key_add(&key, name));
    const tide_status rc = tide_rows_number(
        db, TIDE_DRIVE_ROWS, &other, err,
        "SELECT row FROM drive_@_local WHERE parent = ?1 AND name = ?2 AND row <> ?3", parent,
        tide_drive_bytes_value(name), row);
    if (rc == TIDE_OK)
        TIDE_TRY(clear_place(db, other, err));
    else if (rc != TIDE_NOT_FOUND)
        return rc;
    TIDE_TRY(tide_drive_changed(db, 1, err));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "UPDATE drive_@_local SET parent = ?2, name = ?3, key = ?4, aside = NULL,"
                        " version = version + 1 WHERE row = ?1",
                        row, parent, tide_drive_bytes_value(name),
                        tide_drive_bytes_value(tide_buf_text(&key)));
}

tide_status tide_drive_local_removed(tide_rows db, uint64_t row, tide_error *err)
{
    return clear_place(db, row, err);
}
