/* scan.c - the world here becomes rows, with folders that cannot be read and a disk that vanishes. */
#include "drive_sim.h"

#include <stdlib.h>

tide_status drive_put_row(struct drive_stage *stage, uint64_t scan, uint64_t parent,
                          const struct drive_item *item, uint64_t *row_out, tide_error *err)
{
    struct tide_drive_found found = {
        .parent = parent,
        .name = tide_text_of(item->name),
        .identity = {1, item->birth, item->birth},
        .kind = item->kind,
        .state = TIDE_DRIVE_LOCAL_LIVE,
        .nlink = 1,
        .content = {.bytes = item->content == 0 ? 0 : 10 + item->content % 3,
                    .has_qxh = item->kind == TIDE_DRIVE_FILE,
                    .has_strong = item->kind == TIDE_DRIVE_FILE}};
    memcpy(found.content.qxh, &item->content, sizeof item->content);
    memcpy(found.content.strong, &item->content, sizeof item->content);
    const uint64_t world_row = item->id;
    TIDE_TRY(tide_drive_scan_put(drive_db(stage), scan, &found, row_out, err));
    drive_note_row(stage, *row_out, world_row);
    return TIDE_OK;
}

/* Folder by folder, from the top. */
static tide_status scan_folder(struct drive_stage *stage, uint64_t scan, uint64_t world_row,
                               uint64_t row, bool *unmounted, tide_error *err)
{
    struct drive_side *here = &stage->world->here;
    const bool unreadable = row != TIDE_DRIVE_ROOT && drive_happens(stage, F14_UNREADABLE, 40);
    if (unreadable)
        return TIDE_OK;
    *unmounted = *unmounted || drive_happens(stage, F12_UNMOUNTED_MID_SCAN, 60);
    for (size_t i = 0; i < here->count && !*unmounted; i++) {
        uint64_t found = 0;
        if (!here->items[i].alive || here->items[i].parent != world_row)
            continue;
        const struct drive_item item = here->items[i];
        TIDE_TRY(drive_put_row(stage, scan, row, &item, &found, err));
        if (item.kind == TIDE_DRIVE_FOLDER)
            TIDE_TRY(scan_folder(stage, scan, item.id, found, unmounted, err));
    }
    if (*unmounted && stage->plant != PLANT_INCOMPLETE_SCAN)
        return TIDE_OK;
    return tide_drive_scan_read(drive_db(stage), scan, row, err);
}

tide_status drive_observe_here(struct drive_stage *stage, tide_error *err)
{
    uint64_t scan = 0;
    bool unmounted = false;
    stage->rows_count = 0;
    TIDE_TRY(tide_db_exec(&stage->db, "BEGIN IMMEDIATE", err));
    tide_status rc = tide_drive_scan_begin(drive_db(stage), &scan, err);
    if (rc == TIDE_OK)
        rc = scan_folder(stage, scan, TIDE_DRIVE_ROOT, TIDE_DRIVE_ROOT, &unmounted, err);
    if (rc == TIDE_OK)
        rc = tide_drive_scan_end(drive_db(stage), scan,
                                 !unmounted || stage->plant == PLANT_INCOMPLETE_SCAN,
                                 stage->world->now_ms, err);
    if (rc == TIDE_OK)
        rc = tide_db_exec(&stage->db, "COMMIT", err);
    if (rc != TIDE_OK && !sqlite3_get_autocommit(stage->db.handle))
        (void)sqlite3_exec(stage->db.handle, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
