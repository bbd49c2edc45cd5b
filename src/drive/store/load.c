/* load.c - the working set of a plan (plan.h): what differs, with what it meets.
 *
 * Marks lead to the items that differ (marks.h); each of them brings its ancestors and whatever has, on any side
 * or in the baseline, the place that it has.  Rows are expanded in the order in which they were added,
 * and ancestors are added before their children: so a new folder that is on both sides is known as one
 * when its children look for their counterparts. */
#include "base/check.h"
#include "base/map.h"
#include "drive/names/key.h"
#include "drive/names/names.h"
#include "drive/store/marks.h"
#include "drive/store/store_inside.h"

#include <stdlib.h>

enum {
    KEY_BYTES_MAX = 8 << 10,
    TEXT_BYTES_MAX = 1 << 30,
    DEPTH_MAX = 4096,
    SAME_MAX = 10000, /* marks that one plan takes back */
    REMOTE = 0,
    LOCAL = 1,
    BASE = 2,
    TREES = 3,
};

enum sql {
    REMOTE_GET,
    LOCAL_GET,
    BASE_GET,
    REMOTE_PLACE,
    LOCAL_PLACE,
    BASE_PLACE,
    BASE_OF_ROW,
    LOCAL_INODE,
    LOCAL_STRONG,
    REMOTE_NEW_IN,
    LOCAL_NEW_IN,
    SQLS
};

static const char *const sql[SQLS] = {
    [REMOTE_GET] = "SELECT item, parent, name, kind, state, bytes, qxh, ctag, mtime_s, aside"
                   " FROM drive_@_remote WHERE item = ?1 AND name IS NOT NULL AND parent > 0",
    [LOCAL_GET] = "SELECT row, parent, name, kind, state, bytes, qxh, strong, dev, inode, birth_ns,"
                  " nlink, aside FROM drive_@_local WHERE row = ?1 AND state <> 4",
    [BASE_GET] =
        "SELECT b.item, b.parent, b.name, b.local_name, b.kind, b.bytes, b.qxh, b.ctag, b.mtime_s,"
        " b.row, b.local_bytes, b.local_qxh, b.strong, b.dev, b.inode, b.birth_ns,"
        " coalesce(l.state, 3), coalesce(l.gone_ms, 0) FROM drive_@_base AS b"
        " LEFT JOIN drive_@_local AS l ON l.row = b.row WHERE b.item = ?1",
    [REMOTE_PLACE] = "SELECT item FROM drive_@_remote WHERE parent = ?1 AND key = ?2"
                     " AND state NOT IN (2, 3)",
    [LOCAL_PLACE] = "SELECT row FROM drive_@_local WHERE parent = ?1 AND key = ?2 AND state <> 4",
    [BASE_PLACE] = "SELECT item FROM drive_@_base WHERE parent = ?1 AND key = ?2",
    [BASE_OF_ROW] = "SELECT item FROM drive_@_base WHERE row = ?1",
    [LOCAL_INODE] = "SELECT row FROM drive_@_local WHERE inode = ?1 AND state <> 4",
    [LOCAL_STRONG] = "SELECT row FROM drive_@_local WHERE strong = ?1 AND state <> 4 LIMIT 100",
    [REMOTE_NEW_IN] =
        "SELECT item FROM drive_@_remote AS r WHERE parent = ?1 AND state NOT IN (2, 3)"
        " AND NOT EXISTS (SELECT 1 FROM drive_@_base AS b WHERE b.item = r.item)",
    [LOCAL_NEW_IN] = "SELECT row FROM drive_@_local AS l WHERE parent = ?1 AND state <> 4"
                     " AND NOT EXISTS (SELECT 1 FROM drive_@_base AS b WHERE b.row = l.row)",
};

struct loader {
    tide_rows db;
    tide_mem *mem;
    tide_error *err;
    uint64_t now_ms;
    struct tide_drive_loaded *out;
    tide_rows_stmt stmts[SQLS];
    tide_map at[TREES];  /* number -> index */
    uint64_t *base_rows; /* of bases: their local row */
    size_t base_rows_room;
    tide_map pair_of_item,
        pair_of_row; /* new folders on both sides: item -> local, row -> remote */
    struct step {
        uint8_t tree;
        uint32_t index;
    } * steps;
    size_t steps_count, steps_room;
    tide_buf key;
};

static tide_status no_memory(struct loader *loader)
{
    return tide_error_set(loader->err, TIDE_NO_MEMORY, "no memory for the changes of a drive");
}

static tide_text keep(struct loader *loader, tide_text text, bool *ok)
{
    const char *copy = tide_arena_copy(&loader->out->arena, text.data, text.bytes);
    *ok = *ok && copy != NULL;
    return (tide_text){copy, text.bytes};
}

static tide_rows_stmt *ask(struct loader *loader, enum sql which, uint64_t number)
{
    tide_rows_stmt *stmt = &loader->stmts[which];
    tide_rows_again(stmt);
    tide_rows_u64(stmt, 1, number);
    return stmt;
}

/* ---- reading one row ---- */

static tide_status push(struct loader *loader, uint8_t tree, uint64_t number, size_t index)
{
    if (!TIDE_GROW_IN(loader->mem, loader->steps, loader->steps_room, loader->steps_count + 1,
                      3u * TIDE_DRIVE_PLAN_ROWS_MAX) ||
        !tide_map_put(&loader->at[tree], number, (uint32_t)index))
        return no_memory(loader);
    loader->steps[loader->steps_count++] = (struct step){tree, (uint32_t)index};
    return TIDE_OK;
}

/* It was to step aside, and did: its name is ours.  Else it never left, or a user renamed it. */
static bool steps_aside(const tide_rows_stmt *stmt, int aside_at)
{
    return !tide_rows_get_null(stmt, aside_at) &&
           tide_drive_name_is_ours(tide_rows_get_text(stmt, 2));
}

static tide_status read_remote(struct loader *loader, const tide_rows_stmt *stmt)
{
    struct tide_drive_loaded *out = loader->out;
    bool ok = true;
    const bool aside = steps_aside(stmt, 9);
    struct tide_drive_remote row = {
        .item = tide_rows_get_u64(stmt, 0),
        .parent = tide_rows_get_u64(stmt, 1),
        .name = keep(loader, tide_rows_get_text(stmt, aside ? 9 : 2), &ok),
        .kind = (tide_drive_kind)tide_rows_get_i64(stmt, 3),
        .state = (tide_drive_remote_state)tide_rows_get_i64(stmt, 4),
        .ctag = keep(loader, tide_rows_get_text(stmt, 7), &ok),
        .mtime_s = tide_rows_get_u64(stmt, 8),
        .stepped_aside = aside,
    };
    /* A name of ours that nothing records is an echo of the feed: it never crosses (names.h). */
    if (!aside && tide_drive_name_is_ours(row.name) && row.state == TIDE_DRIVE_REMOTE_LIVE)
        row.state = TIDE_DRIVE_REMOTE_UNSURE;
    tide_drive_content_read(stmt, 5, 6, -1, &row.content);
    if (!ok || !TIDE_GROW_IN(loader->mem, out->remotes, out->remotes_room,
                             out->trees.remotes_count + 1, TIDE_DRIVE_PLAN_ROWS_MAX))
        return no_memory(loader);
    out->remotes[out->trees.remotes_count] = row;
    return push(loader, REMOTE, row.item, out->trees.remotes_count++);
}

static tide_status read_local(struct loader *loader, const tide_rows_stmt *stmt)
{
    struct tide_drive_loaded *out = loader->out;
    bool ok = true;
    const bool aside = steps_aside(stmt, 12);
    struct tide_drive_local row = {
        .row = tide_rows_get_u64(stmt, 0),
        .parent = tide_rows_get_u64(stmt, 1),
        .name = keep(loader, tide_rows_get_text(stmt, aside ? 12 : 2), &ok),
        .kind = (tide_drive_kind)tide_rows_get_i64(stmt, 3),
        .state = (tide_drive_local_state)tide_rows_get_i64(stmt, 4),
        .identity = {tide_rows_get_u64(stmt, 8), tide_rows_get_u64(stmt, 9),
                     tide_rows_get_u64(stmt, 10)},
        .nlink = tide_rows_get_u32(stmt, 11),
        .stepped_aside = aside,
    };
    if (!aside && tide_drive_name_is_ours(row.name) && row.state == TIDE_DRIVE_LOCAL_LIVE)
        row.state = TIDE_DRIVE_LOCAL_UNSURE;
    if (row.state == TIDE_DRIVE_LOCAL_UNREAD)
        row.state = TIDE_DRIVE_LOCAL_UNSURE; /* of the row itself nothing else is known */
    tide_drive_content_read(stmt, 5, 6, 7, &row.content);
    if (!ok || !TIDE_GROW_IN(loader->mem, out->locals, out->locals_room,
                             out->trees.locals_count + 1, TIDE_DRIVE_PLAN_ROWS_MAX))
        return no_memory(loader);
    out->locals[out->trees.locals_count] = row;
    return push(loader, LOCAL, row.row, out->trees.locals_count++);
}

/* Whether nothing of it is at its own path: missing for long enough, or something else is there.  If
 * what is there turns out to be the item, the planner claims it and does not ask. */
static bool is_gone(const struct loader *loader, const tide_rows_stmt *stmt)
{
    const int64_t state = tide_rows_get_i64(stmt, 16);
    if (tide_rows_get_u64(stmt, 9) == 0 || state == TIDE_DRIVE_LOCAL_LIVE)
        return true;
    /* A time that has not come yet: the clock was put back since, and the file is still missing (F24). */
    const uint64_t gone_ms = tide_rows_get_u64(stmt, 17);
    return state == TIDE_DRIVE_LOCAL_GONE && (loader->now_ms >= gone_ms + TIDE_DRIVE_GONE_MS ||
                                              gone_ms >= loader->now_ms + TIDE_DRIVE_GONE_MS);
}

static tide_status read_base(struct loader *loader, const tide_rows_stmt *stmt)
{
    struct tide_drive_loaded *out = loader->out;
    bool ok = true;
    struct tide_drive_base row = {
        .item = tide_rows_get_u64(stmt, 0),
        .parent = tide_rows_get_u64(stmt, 1),
        .name = keep(loader, tide_rows_get_text(stmt, 2), &ok),
        .local_name = keep(loader, tide_rows_get_text(stmt, 3), &ok),
        .kind = (tide_drive_kind)tide_rows_get_i64(stmt, 4),
        .ctag = keep(loader, tide_rows_get_text(stmt, 7), &ok),
        .mtime_s = tide_rows_get_u64(stmt, 8),
        .identity = {tide_rows_get_u64(stmt, 13), tide_rows_get_u64(stmt, 14),
                     tide_rows_get_u64(stmt, 15)},
        .row = tide_rows_get_u64(stmt, 9),
        .local_gone = is_gone(loader, stmt),
    };
    tide_drive_content_read(stmt, 5, 6, -1, &row.remote);
    tide_drive_content_read(stmt, 10, 11, 12, &row.local);
    const size_t count = out->trees.bases_count;
    if (!ok ||
        !TIDE_GROW_IN(loader->mem, out->bases, out->bases_room, count + 1,
                      TIDE_DRIVE_PLAN_ROWS_MAX) ||
        !TIDE_GROW_IN(loader->mem, loader->base_rows, loader->base_rows_room, count + 1,
                      TIDE_DRIVE_PLAN_ROWS_MAX))
        return no_memory(loader);
    out->bases[count] = row;
    loader->base_rows[count] = tide_rows_get_u64(stmt, 9);
    out->trees.bases_count++;
    return push(loader, BASE, row.item, count);
}

/* ---- a row with its ancestors ---- */

static bool has(const struct loader *loader, int tree, uint64_t number, uint32_t *index_out)
{
    return number != 0 && tide_map_get(&loader->at[tree], number, index_out);
}

static tide_status parent_of(struct loader *loader, int tree, uint64_t number, uint64_t *parent_out,
                             bool *there_out)
{
    static const enum sql gets[TREES] = {REMOTE_GET, LOCAL_GET, BASE_GET};
    tide_rows_stmt *stmt = ask(loader, gets[tree], number);
    TIDE_TRY(tide_rows_step(stmt, there_out, loader->err));
    if (*there_out)
        *parent_out = tide_rows_get_u64(stmt, 1);
    tide_rows_again(stmt);
    return TIDE_OK;
}

static tide_status read_one(struct loader *loader, int tree, uint64_t number)
{
    static const enum sql gets[TREES] = {REMOTE_GET, LOCAL_GET, BASE_GET};
    tide_rows_stmt *stmt = ask(loader, gets[tree], number);
    bool there = false;
    TIDE_TRY(tide_rows_step(stmt, &there, loader->err));
    tide_status rc = TIDE_OK;
    if (there)
        rc = tree == REMOTE  ? read_remote(loader, stmt)
             : tree == LOCAL ? read_local(loader, stmt)
                             : read_base(loader, stmt);
    tide_rows_again(stmt);
    return rc;
}

/* Adds a row and those of its folders, the highest first. */
static tide_status visit(struct loader *loader, int tree, uint64_t number)
{
    uint64_t chain[DEPTH_MAX];
    size_t depth = 0;
    uint32_t index = 0;
    bool there = true;
    while (number > TIDE_DRIVE_ROOT && !has(loader, tree, number, &index) && depth < DEPTH_MAX) {
        uint64_t parent = 0;
        TIDE_TRY(parent_of(loader, tree, number, &parent, &there));
        if (!there)
            break;
        chain[depth++] = number;
        number = parent;
    }
    while (depth > 0) {
        /* A circle of parents, which only a damaged file has, is cut where it closes. */
        if (!has(loader, tree, chain[--depth], &index))
            TIDE_TRY(read_one(loader, tree, chain[depth]));
    }
    return TIDE_OK;
}

/* ---- counterparts ---- */

static tide_status visit_place(struct loader *loader, enum sql place, int tree, uint64_t parent,
                               tide_text name, uint64_t *first_out)
{
    uint64_t found[16];
    size_t count = 0;
    tide_rows_stmt *stmt = ask(loader, place, parent);
    tide_buf_clear(&loader->key);
    TIDE_TRY(tide_drive_key_add(&loader->key, name));
    tide_rows_blob(stmt, 2, loader->key.data, loader->key.bytes);
    tide_status rc = TIDE_OK;
    while (count < 16 && tide_rows_next(stmt, &rc, loader->err))
        found[count++] = tide_rows_get_u64(stmt, 0);
    tide_rows_again(stmt);
    if (first_out != NULL)
        *first_out = count > 0 ? found[0] : 0;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = visit(loader, tree, found[i]);
    return rc;
}

static uint64_t row_of_item(struct loader *loader, uint64_t item)
{
    uint32_t index = 0;
    if (item <= TIDE_DRIVE_ROOT)
        return item;
    if (has(loader, BASE, item, &index))
        return loader->base_rows[index];
    return tide_map_get(&loader->pair_of_item, item, &index) ? loader->out->locals[index].row : 0;
}

static tide_status item_of_row(struct loader *loader, uint64_t row, uint64_t *item_out)
{
    uint32_t index = 0;
    *item_out = row == TIDE_DRIVE_ROOT ? TIDE_DRIVE_ROOT : 0;
    if (row <= TIDE_DRIVE_ROOT)
        return TIDE_OK;
    if (tide_map_get(&loader->pair_of_row, row, &index)) {
        *item_out = loader->out->remotes[index].item;
        return TIDE_OK;
    }
    bool there = false;
    tide_rows_stmt *stmt = ask(loader, BASE_OF_ROW, row);
    TIDE_TRY(tide_rows_step(stmt, &there, loader->err));
    if (there)
        *item_out = tide_rows_get_u64(stmt, 0);
    tide_rows_again(stmt);
    return TIDE_OK;
}

/* A new folder here and a new one online at one place will be one (D19). */
static tide_status pair(struct loader *loader, uint32_t remote, uint64_t row)
{
    uint32_t local = 0, index = 0;
    uint64_t item = 0;
    if (row == 0 || !has(loader, LOCAL, row, &local) ||
        has(loader, BASE, loader->out->remotes[remote].item, &index))
        return TIDE_OK;
    TIDE_TRY(item_of_row(loader, row, &item));
    if (item != 0 || loader->out->locals[local].kind != TIDE_DRIVE_FOLDER ||
        loader->out->remotes[remote].kind != TIDE_DRIVE_FOLDER)
        return TIDE_OK;
    if (!tide_map_put(&loader->pair_of_item, loader->out->remotes[remote].item, local) ||
        !tide_map_put(&loader->pair_of_row, row, remote))
        return no_memory(loader);
    return TIDE_OK;
}

static tide_status expand_remote(struct loader *loader, uint32_t index)
{
    const struct tide_drive_remote row = loader->out->remotes[index];
    uint64_t first = 0;
    TIDE_TRY(visit(loader, BASE, row.item));
    TIDE_TRY(visit(loader, BASE, row.parent));
    TIDE_TRY(visit_place(loader, BASE_PLACE, BASE, row.parent, row.name, NULL));
    TIDE_TRY(visit_place(loader, REMOTE_PLACE, REMOTE, row.parent, row.name, NULL));
    const uint64_t folder = row_of_item(loader, row.parent);
    if (folder == 0)
        return TIDE_OK;
    TIDE_TRY(visit_place(loader, LOCAL_PLACE, LOCAL, folder, row.name, &first));
    return pair(loader, index, first);
}

static tide_status expand_local(struct loader *loader, uint32_t index)
{
    const struct tide_drive_local row = loader->out->locals[index];
    uint64_t own = 0, folder = 0;
    TIDE_TRY(item_of_row(loader, row.row, &own));
    if (own != 0)
        TIDE_TRY(visit(loader, BASE, own));
    TIDE_TRY(visit_place(loader, LOCAL_PLACE, LOCAL, row.parent, row.name, NULL));
    TIDE_TRY(item_of_row(loader, row.parent, &folder));
    if (folder == 0)
        return TIDE_OK;
    TIDE_TRY(visit_place(loader, BASE_PLACE, BASE, folder, row.name, NULL));
    return visit_place(loader, REMOTE_PLACE, REMOTE, folder, row.name, NULL);
}

static tide_status visit_all(struct loader *loader, tide_rows_stmt *stmt, int tree)
{
    uint64_t found[128];
    size_t count = 0;
    tide_status rc = TIDE_OK;
    while (count < 128 && tide_rows_next(stmt, &rc, loader->err))
        found[count++] = tide_rows_get_u64(stmt, 0);
    tide_rows_again(stmt);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = visit(loader, tree, found[i]);
    return rc;
}

static tide_status visit_each(struct loader *loader, tide_rows_stmt *stmt, int tree)
{
    tide_status rc = TIDE_OK;
    while (tide_rows_next(stmt, &rc, loader->err))
        TIDE_TRY(visit(loader, tree, tide_rows_get_u64(stmt, 0)));
    tide_rows_again(stmt);
    return rc;
}

/* In a folder that may die something new must be seen, however much else is new (plan.h). */
static tide_status expand_dying(struct loader *loader, uint64_t item, uint64_t row)
{
    uint32_t at = 0;
    if (!has(loader, LOCAL, row, &at))
        TIDE_TRY(visit_each(loader, ask(loader, REMOTE_NEW_IN, item), REMOTE));
    if (row != 0 && (!has(loader, REMOTE, item, &at) ||
                     loader->out->remotes[at].state == TIDE_DRIVE_REMOTE_GONE ||
                     loader->out->remotes[at].state == TIDE_DRIVE_REMOTE_FORGOTTEN))
        TIDE_TRY(visit_each(loader, ask(loader, LOCAL_NEW_IN, row), LOCAL));
    return TIDE_OK;
}

static tide_status expand_base(struct loader *loader, uint32_t index)
{
    const struct tide_drive_base row = loader->out->bases[index];
    const uint64_t local = loader->base_rows[index];
    uint32_t at = 0;
    TIDE_TRY(visit(loader, REMOTE, row.item));
    TIDE_TRY(visit(loader, LOCAL, local));
    if (row.kind == TIDE_DRIVE_FOLDER)
        TIDE_TRY(expand_dying(loader, row.item, local));
    TIDE_TRY(visit_place(loader, REMOTE_PLACE, REMOTE, row.parent, row.name, NULL));
    const uint64_t folder = row_of_item(loader, row.parent);
    if (folder != 0)
        TIDE_TRY(visit_place(loader, LOCAL_PLACE, LOCAL, folder, row.local_name, NULL));
    /* Not itself at its own path: it may be elsewhere (D22). */
    if (has(loader, LOCAL, local, &at) &&
        loader->out->locals[at].identity.inode == row.identity.inode)
        return TIDE_OK;
    TIDE_TRY(visit_all(loader, ask(loader, LOCAL_INODE, row.identity.inode), LOCAL));
    if (!row.local.has_strong || row.local.bytes == 0)
        return TIDE_OK;
    tide_rows_stmt *stmt = &loader->stmts[LOCAL_STRONG];
    tide_rows_again(stmt);
    tide_rows_blob(stmt, 1, row.local.strong, sizeof row.local.strong);
    return visit_all(loader, stmt, LOCAL);
}

/* ---- where to start ---- */

static tide_status note_same(struct loader *loader, uint64_t item)
{
    struct tide_drive_loaded *out = loader->out;
    if (out->same_count == SAME_MAX)
        return TIDE_OK; /* the next plan */
    if (!TIDE_GROW_IN(loader->mem, out->same, out->same_room, out->same_count + 1, SAME_MAX))
        return no_memory(loader);
    out->same[out->same_count++] = item;
    return TIDE_OK;
}

/* Items that both sides had agreed on. */
static tide_status seed_bases(struct loader *loader)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = TIDE_OK;
    TIDE_TRY(tide_rows_prepare(loader->db,
                               "SELECT b.item, " TIDE_DRIVE_DIFFERS
                               " FROM drive_@_mark AS m JOIN drive_@_base AS b ON b.item ="
                               " m.number" TIDE_DRIVE_SIDES " WHERE m.class = " TIDE_DRIVE_MARK_BASE
                               " ORDER BY m.number",
                               TIDE_DRIVE_ROWS, &stmt, loader->err));
    while (tide_rows_next(&stmt, &rc, loader->err)) {
        const uint64_t item = tide_rows_get_u64(&stmt, 0);
        TIDE_TRY(tide_rows_get_u64(&stmt, 1) != 0 ? visit(loader, BASE, item)
                                                  : note_same(loader, item));
    }
    return rc;
}

static const char new_online[] =
    "SELECT m.number FROM drive_@_mark AS m JOIN drive_@_remote AS r ON r.item = m.number"
    " WHERE m.class = " TIDE_DRIVE_MARK_ONLINE " AND m.number > ?1 AND r.state NOT IN (2, 3)"
    " ORDER BY m.number LIMIT ?2";
static const char new_here[] =
    "SELECT m.number FROM drive_@_mark AS m JOIN drive_@_local AS l ON l.row = m.number"
    " WHERE m.class = " TIDE_DRIVE_MARK_HERE " AND m.number > ?1 AND l.state <> 4"
    " ORDER BY m.number LIMIT ?2";

/* At most `most` that are new on a side, after `from`. */
static tide_status seed_news(struct loader *loader, const char *text, int tree, uint64_t from,
                             size_t most, uint64_t *to_out)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = TIDE_OK;
    TIDE_TRY(tide_rows_ask(loader->db, TIDE_DRIVE_ROWS, &stmt, loader->err, text, from,
                           (uint64_t)most + 1));
    *to_out = from;
    for (size_t count = 0; tide_rows_next(&stmt, &rc, loader->err); count++) {
        if (count == most) {
            loader->out->more = true;
            break;
        }
        *to_out = tide_rows_get_u64(&stmt, 0);
        TIDE_TRY(visit(loader, tree, *to_out));
    }
    return rc;
}

/* Items, or rows, whose next try is later; not one that is later than any can be: the clock was put back
 * since (F24). */
static tide_status read_owed(struct loader *loader, int which, const char *text, size_t *count_out)
{
    struct tide_drive_loaded *out = loader->out;
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = TIDE_OK;
    size_t count = 0;
    TIDE_TRY(tide_rows_ask(loader->db, TIDE_DRIVE_ROWS, &stmt, loader->err, text, loader->now_ms,
                           TIDE_DRIVE_OWED_MS_MAX, TIDE_DRIVE_DAY_MS));
    while (tide_rows_next(&stmt, &rc, loader->err)) {
        if (!TIDE_GROW_IN(loader->mem, out->owed[which], out->owed_room[which], count + 1,
                          TIDE_DRIVE_PLAN_ROWS_MAX))
            return no_memory(loader);
        out->owed[which][count++] = tide_rows_get_u64(&stmt, 0);
    }
    *count_out = count;
    return rc;
}

static tide_status read_unread(struct loader *loader)
{
    uint64_t any = 0;
    TIDE_TRY(tide_rows_number(loader->db, TIDE_DRIVE_ROWS, &any, loader->err,
                              "SELECT EXISTS (SELECT 1 FROM drive_@_local WHERE state = 5)"));
    loader->out->trees.unread_here = any != 0;
    return TIDE_OK;
}

static tide_status fill(struct loader *loader, size_t news_max)
{
    struct tide_drive_trees *trees = &loader->out->trees;
    for (int i = 0; i < SQLS; i++)
        TIDE_TRY(
            tide_rows_prepare(loader->db, sql[i], TIDE_DRIVE_ROWS, &loader->stmts[i], loader->err));
    TIDE_TRY(read_owed(loader, 0,
                       "SELECT DISTINCT item FROM drive_@_owed WHERE next_ms > ?1 AND next_ms <= "
                       "?1 + CASE loop WHEN 0 THEN ?2 ELSE ?3 END"
                       " AND item <> 0 AND loop < 2"
                       " ORDER BY item",
                       &trees->owed_items_count));
    TIDE_TRY(read_owed(loader, 1,
                       "SELECT DISTINCT row FROM drive_@_owed WHERE next_ms > ?1 AND next_ms <= ?1 "
                       "+ CASE loop WHEN 0 THEN ?2 ELSE ?3 END"
                       " AND row <> 0"
                       " ORDER BY row",
                       &trees->owed_rows_count));
    TIDE_TRY(read_owed(loader, 2,
                       "SELECT item FROM drive_@_owed WHERE loop = 2 AND next_ms > ?1"
                       " AND next_ms <= ?1 + ?3 AND ?2 > 0 ORDER BY item",
                       &trees->closed_items_count));
    TIDE_TRY(read_unread(loader));
    trees->owed_items = loader->out->owed[0];
    trees->owed_rows = loader->out->owed[1];
    trees->closed_items = loader->out->owed[2];
    const struct tide_drive_slice from = loader->out->from;
    TIDE_TRY(seed_bases(loader));
    TIDE_TRY(seed_news(loader, new_online, REMOTE, from.item, news_max, &loader->out->to.item));
    TIDE_TRY(seed_news(loader, new_here, LOCAL, from.row, news_max, &loader->out->to.row));
    for (size_t i = 0; i < loader->steps_count; i++) {
        const struct step step = loader->steps[i];
        TIDE_TRY(step.tree == REMOTE  ? expand_remote(loader, step.index)
                 : step.tree == LOCAL ? expand_local(loader, step.index)
                                      : expand_base(loader, step.index));
    }
    return TIDE_OK;
}

/* Each row begins with its number. */
static int by_number(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void sort(struct tide_drive_loaded *out)
{
    if (out->trees.remotes_count > 0)
        qsort(out->remotes, out->trees.remotes_count, sizeof *out->remotes, by_number);
    if (out->trees.locals_count > 0)
        qsort(out->locals, out->trees.locals_count, sizeof *out->locals, by_number);
    if (out->trees.bases_count > 0)
        qsort(out->bases, out->trees.bases_count, sizeof *out->bases, by_number);
    out->trees.remotes = out->remotes;
    out->trees.locals = out->locals;
    out->trees.bases = out->bases;
}

tide_status tide_drive_load(tide_rows db, size_t news_max, uint64_t now_ms, tide_mem *mem,
                            struct tide_drive_loaded *loaded_out, tide_error *err)
{
    const struct tide_drive_slice all = {.item = 0};
    return tide_drive_load_from(db, &all, news_max, now_ms, mem, loaded_out, err);
}

tide_status tide_drive_load_from(tide_rows db, const struct tide_drive_slice *from, size_t news_max,
                                 uint64_t now_ms, tide_mem *mem,
                                 struct tide_drive_loaded *loaded_out, tide_error *err)
{
    struct loader loader = {.db = db, .mem = mem, .err = err, .now_ms = now_ms, .out = loaded_out};
    TIDE_ASSERT(news_max < SIZE_MAX);
    *loaded_out = (struct tide_drive_loaded){.mem = mem, .from = *from};
    tide_arena_init(&loaded_out->arena, mem, TEXT_BYTES_MAX);
    for (int i = 0; i < TREES; i++)
        tide_map_init(&loader.at[i], mem);
    tide_map_init(&loader.pair_of_item, mem);
    tide_map_init(&loader.pair_of_row, mem);
    tide_buf_init(&loader.key, mem, KEY_BYTES_MAX);
    tide_status rc = fill(&loader, news_max);
    sort(loaded_out);
    for (int i = 0; i < SQLS; i++)
        tide_rows_end(&loader.stmts[i]);
    for (int i = 0; i < TREES; i++)
        tide_map_done(&loader.at[i]);
    tide_map_done(&loader.pair_of_item);
    tide_map_done(&loader.pair_of_row);
    tide_buf_done(&loader.key);
    tide_mem_free(mem, loader.base_rows, loader.base_rows_room * sizeof *loader.base_rows);
    tide_mem_free(mem, loader.steps, loader.steps_room * sizeof *loader.steps);
    return rc;
}

void tide_drive_loaded_done(struct tide_drive_loaded *loaded)
{
    if (loaded->mem == NULL)
        return;
    tide_arena_done(&loaded->arena);
    tide_mem_free(loaded->mem, loaded->remotes, loaded->remotes_room * sizeof *loaded->remotes);
    tide_mem_free(loaded->mem, loaded->locals, loaded->locals_room * sizeof *loaded->locals);
    tide_mem_free(loaded->mem, loaded->bases, loaded->bases_room * sizeof *loaded->bases);
    tide_mem_free(loaded->mem, loaded->same, loaded->same_room * sizeof *loaded->same);
    for (int i = 0; i < 3; i++)
        tide_mem_free(loaded->mem, loaded->owed[i], loaded->owed_room[i] * sizeof *loaded->owed[i]);
    *loaded = (struct tide_drive_loaded){.mem = NULL};
}
