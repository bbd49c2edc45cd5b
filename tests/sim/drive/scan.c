/* scan.c - the world here becomes rows, with folders that cannot be read, disks that vanish, and a watch
 * that says which folders to look at.
 *
 * The walk is that of local/compare.h; only the disk is another one.  A path is the number of a folder
 * in the world. */
#include "drive_sim.h"

#include "drive/local/compare.h"
#include "drive/local/scan.h"
#include "drive/names/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { OWN_DISK = 1, OTHER_DISK = 2 };

static struct tide_entry entry_of(const struct drive_stage *stage, const struct drive_item *item)
{
    return (struct tide_entry){.kind = item->kind == TIDE_DRIVE_FOLDER ? TIDE_ENTRY_FOLDER
                                                                       : TIDE_ENTRY_FILE,
                               .bytes = drive_content(stage, item->content, true).bytes,
                               .mtime_ns = item->mtime_ns,
                               .ctime_ns = item->ctime_ns,
                               .dev = item->id == stage->unmounted ? OTHER_DISK : OWN_DISK,
                               .inode = item->inode != 0 ? item->inode : item->birth,
                               .birth_ns = stage->no_birth ? 0 : item->birth,
                               .nlink = 1};
}

static struct tide_drive_found found_of(const struct drive_stage *stage,
                                        const struct drive_item *item)
{
    const struct tide_entry entry = entry_of(stage, item);
    struct tide_drive_found found = {.name = tide_text_of(item->name),
                                     .identity = {OWN_DISK, entry.inode, entry.birth_ns},
                                     .kind = item->kind,
                                     .state = TIDE_DRIVE_LOCAL_LIVE,
                                     .mtime_ns = entry.mtime_ns,
                                     .ctime_ns = entry.ctime_ns,
                                     .nlink = entry.nlink};
    if (item->kind == TIDE_DRIVE_FILE) {
        found.content = drive_content(stage, item->content, true);
        found.hashed_ns = stage->world->now_ms * 1000000;
    }
    return found;
}

/* As an executor puts it: it has just hashed the bytes. */
tide_status drive_put_row(struct drive_stage *stage, uint64_t parent, const struct drive_item *item,
                          uint64_t *row_out, tide_error *err)
{
    struct tide_drive_found found = found_of(stage, item);
    const uint64_t world_row = item->id;
    found.parent = parent;
    TIDE_TRY(tide_drive_scan_put(drive_db(stage), &found, row_out, err));
    drive_note_row(stage, *row_out, world_row);
    return TIDE_OK;
}

static tide_status write_slice(void *arg, struct tide_drive_difference *list, size_t count,
                               tide_error *err)
{
    struct drive_stage *stage = arg;
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    tide_status rc = tide_drive_scan_write(drive_db(stage), list, count, stage->world->now_ms, err);
    if (rc == TIDE_OK && stage->plant == PLANT_CHANGE_UNNOTED)
        rc = tide_db_exec(&stage->db, "UPDATE drive_1_state SET changed = changed - 1", err);
    if (rc == TIDE_OK)
        rc = tide_db_exec(&stage->db, "COMMIT", err);
    if (rc != TIDE_OK && !sqlite3_get_autocommit(stage->db.handle))
        (void)sqlite3_exec(stage->db.handle, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

/* As the scan sees it: a file that is known is not hashed (D14). */
static struct tide_drive_found look_at(const struct drive_stage *stage,
                                       const tide_drive_compare *compare,
                                       const struct drive_item *item)
{
    struct tide_drive_found found = found_of(stage, item);
    struct tide_entry entry = entry_of(stage, item);
    const struct tide_drive_found *known = tide_drive_compare_known(compare, found.name);
    if (known != NULL && stage->plant == PLANT_CTIME_IGNORED)
        entry.ctime_ns = known->ctime_ns;
    if (stage->plant == PLANT_QUICK_HASH && item->kind == TIDE_DRIVE_FILE)
        memcpy(found.content.strong, found.content.qxh, 8);
    if (known != NULL && tide_drive_scan_is_known(known, &entry)) {
        found.content = known->content;
        found.hashed_ns = known->hashed_ns;
    }
    if (entry.dev != OWN_DISK && stage->plant != PLANT_MOUNT_BELIEVED)
        found.state = TIDE_DRIVE_LOCAL_UNSURE;
    return found;
}

static tide_status read_folder(struct drive_stage *stage, tide_drive_compare *compare,
                               uint64_t world_row, bool *unmounted, tide_error *err)
{
    struct drive_side *here = &stage->world->here;
    const bool nested = world_row == stage->unmounted; /* empty, if it is believed */
    if (world_row != TIDE_DRIVE_ROOT && drive_happens(stage, F14_UNREADABLE, 40)) {
        stage->dirty = true;
        return tide_drive_compare_unread(compare, err);
    }
    *unmounted = *unmounted || drive_happens(stage, F12_UNMOUNTED_MID_SCAN, 60);
    for (size_t turn = 0; turn < 2 * here->count && !*unmounted && !nested; turn++) {
        const struct drive_item *item = &here->items[turn % here->count];
        char number[24];
        if (!item->alive || item->parent != world_row ||
            tide_drive_name_is_ours(tide_text_of(item->name)) != (turn < here->count))
            continue; /* names of ours first (compare.h DCM5) */
        const struct tide_drive_found found = look_at(stage, compare, item);
        (void)snprintf(number, sizeof number, "%" PRIu64, item->id);
        const tide_text path = tide_text_of(number);
        const bool enter = found.kind == TIDE_DRIVE_FOLDER && found.state == TIDE_DRIVE_LOCAL_LIVE;
        TIDE_TRY(tide_drive_compare_found(compare, &found, enter ? &path : NULL, err));
    }
    return tide_drive_compare_read(compare, err);
}

/* Which row an item of the world has, for what follows. */
static tide_status note_rows(struct drive_stage *stage, uint64_t world_row, uint64_t row,
                             tide_error *err)
{
    const struct drive_side *here = &stage->world->here;
    for (size_t i = 0; i < here->count; i++) {
        const struct drive_item item = here->items[i];
        uint64_t found = 0;
        if (!item.alive || item.parent != world_row)
            continue;
        const tide_status rc = tide_rows_number(
            drive_db(stage), "sim", &found, err,
            "SELECT row FROM drive_@_local WHERE parent = ?1 AND name = ?2 AND state <> 4", row,
            tide_value_bytes(item.name, strlen(item.name)));
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
        if (rc == TIDE_NOT_FOUND)
            continue;
        drive_note_row(stage, found, item.id);
        if (item.kind == TIDE_DRIVE_FOLDER)
            TIDE_TRY(note_rows(stage, item.id, found, err));
    }
    return TIDE_OK;
}

/* The row of the folder that is at this place now; 0: the place has none yet. */
static uint64_t row_at(struct drive_stage *stage, uint64_t world_row)
{
    const struct drive_item *item = drive_find(&stage->world->here, world_row);
    uint64_t row = 0;
    if (world_row == TIDE_DRIVE_ROOT || item == NULL)
        return world_row == TIDE_DRIVE_ROOT ? TIDE_DRIVE_ROOT : 0;
    const uint64_t parent = row_at(stage, item->parent);
    if (parent == 0 ||
        tide_rows_number(drive_db(stage), "sim", &row, NULL,
                         "SELECT row FROM drive_@_local WHERE parent = ?1 AND name = ?2"
                         " AND kind = 2 AND state = 1",
                         parent, tide_value_bytes(item->name, strlen(item->name))) != TIDE_OK)
        return 0;
    return row;
}

/* The folders in which something happened; of one without a row the nearest above it. */
static tide_status add_folders(struct drive_stage *stage, tide_drive_compare *compare, bool all,
                               tide_error *err)
{
    if (all)
        return tide_drive_compare_add(compare, TIDE_DRIVE_ROOT, TIDE_TEXT("1"), err);
    for (size_t i = 0; i < stage->events_count; i++) {
        uint64_t folder = stage->events[i];
        const struct drive_item *item = drive_find(&stage->world->here, folder);
        if (folder != TIDE_DRIVE_ROOT && item == NULL)
            continue; /* gone, and the folder that it was in has an event of its own */
        while (row_at(stage, folder) == 0)
            folder = drive_find(&stage->world->here, folder)->parent;
        char number[24];
        (void)snprintf(number, sizeof number, "%" PRIu64, folder);
        TIDE_TRY(tide_drive_compare_add(compare, row_at(stage, folder), tide_text_of(number), err));
    }
    return TIDE_OK;
}

static tide_status walk(struct drive_stage *stage, tide_drive_compare *compare, bool *unmounted,
                        tide_error *err)
{
    uint64_t row = 0;
    tide_text path = TIDE_TEXT_NONE;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK) {
        rc = tide_drive_compare_next(compare, &row, &path, err);
        if (rc == TIDE_OK)
            rc = read_folder(stage, compare, strtoull(path.data, NULL, 10), unmounted, err);
    }
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* F13: the disk of a folder goes and comes back. */
static void mounts(struct drive_stage *stage)
{
    struct drive_side *here = &stage->world->here;
    uint64_t seen = 0, pick = 0;
    if (stage->unmounted != 0) {
        stage->dirty = true;
        if (stage->calm || tide_rng_chance(&stage->rng, 1, 3))
            stage->unmounted = 0;
        return;
    }
    for (size_t i = 0; i < here->count; i++)
        if (here->items[i].alive && here->items[i].kind == TIDE_DRIVE_FOLDER &&
            tide_rng_chance(&stage->rng, 1, ++seen))
            pick = here->items[i].id;
    if (pick != 0 && drive_happens(stage, F13_NESTED_MOUNT_GONE, 25)) {
        stage->unmounted = pick;
        stage->dirty = true;
    }
}

tide_status drive_observe_here(struct drive_stage *stage, tide_error *err)
{
    bool unmounted = false;
    mounts(stage);
    drive_touch(stage);
    if (!stage->dirty && !stage->overflowed && stage->events_count == 0)
        return TIDE_OK; /* the watch saw nothing since the last scan */
    const bool all = stage->dirty || stage->overflowed;
    const struct tide_drive_compare_options options = {
        .db = drive_db(stage), .write = write_slice, .arg = stage, .all = all};
    tide_drive_compare *compare = NULL;
    stage->overflowed = false;
    stage->dirty = stage->unmounted != 0;
    stage->totals.scans++;
    stage->totals.folders += !all;
    TIDE_TRY(tide_drive_compare_new(&options, tide_mem_heap(), &compare, err));
    tide_status rc = add_folders(stage, compare, all, err);
    if (rc == TIDE_OK)
        rc = walk(stage, compare, &unmounted, err);
    if (rc == TIDE_OK)
        rc = tide_drive_compare_end(compare, !unmounted || stage->plant == PLANT_INCOMPLETE_SCAN,
                                    err);
    tide_drive_compare_free(compare);
    stage->dirty = stage->dirty || unmounted;
    stage->events_count = 0;
    stage->rows_count = 0;
    return rc == TIDE_OK ? note_rows(stage, TIDE_DRIVE_ROOT, TIDE_DRIVE_ROOT, err) : rc;
}
