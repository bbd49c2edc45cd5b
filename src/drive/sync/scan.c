/* scan.c - the folder here: what differs from its rows is written, slice by slice (D4, S2, S13). */
#include "drive/local/trash.h"
#include "drive/sync/inside.h"

#include <string.h>

struct scanning {
    const struct tide_drive_looking *looking;
    struct tide_drive_difference *list;
    size_t count;
    uint64_t now_ms;
};

static tide_status write_slice(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct scanning *scanning = arg;
    return tide_drive_scan_write(
        tide_drives_rows(tide_transaction_rows(transaction), scanning->looking->row->number),
        scanning->list, scanning->count, scanning->now_ms, err);
}

static tide_status write(void *arg, struct tide_drive_difference *list, size_t count,
                         tide_error *err)
{
    struct scanning *scanning = arg;
    const struct tide_drive_looking *looking = scanning->looking;
    scanning->list = list;
    scanning->count = count;
    scanning->now_ms = tide_world_now_unix_ms(looking->drive->options.world);
    tide_job_beat(looking->job, 0);
    if (tide_job_canceled(looking->job))
        return tide_error_set(err, TIDE_CANCELED, "the scan was canceled");
    TIDE_TRY(tide_transact(looking->drive->options.engine, write_slice, scanning, err));
    return tide_drive_stale_uploads(looking->drive, looking->row->number, err);
}

static void skipped(void *arg, tide_text path, tide_drive_skip why, tide_drive_refusal refusal)
{
    (void)arg; /* rows say that it is skipped; `drive status` looks at them */
    (void)path;
    (void)why;
    (void)refusal;
}

/* A download's that runs, or a leftover: the next look finds out. */
static void ours(void *arg, tide_text name)
{
    const struct scanning *scanning = arg;
    if (tide_drive_is_leftover(name))
        tide_drive_sweep_soon(scanning->looking->drive, scanning->looking->row->number);
}

static tide_status scan(const struct tide_drive_looking *looking, const tide_text *folders,
                        size_t folders_count, tide_error *err)
{
    static const struct tide_drive_scan_ops ops = {
        .write = write, .skipped = skipped, .ours = ours};
    struct scanning scanning = {.looking = looking};
    struct tide_drive_reader *reader = NULL;
    bool complete = false;
    uint64_t hashed = 0;
    TIDE_TRY(tide_drive_reader_take(looking->drive, &reader, err));
    const struct tide_drive_scan as = {
        .root = looking->row->dir,
        .marker = looking->row->marker,
        .business = looking->row->business,
        .ignore = looking->ignore,
        .now_ns = tide_world_now_unix_ms(looking->drive->options.world) * 1000000u,
        .db = tide_drive_reader_rows(reader, looking->row->number),
        .folders = folders,
        .folders_count = folders_count,
        .ops = &ops,
        .arg = &scanning};
    const tide_status rc = tide_drive_scan(&as, looking->drive->mem, &complete, &hashed, err);
    tide_drive_reader_give(looking->drive, reader);
    if (rc == TIDE_OK && !complete)
        return tide_error_set(err, TIDE_INVALID,
                              "the folder %.200s was unmounted or replaced while it was read",
                              looking->row->dir);
    return rc;
}

static tide_status scan_some(const struct tide_drive_looking *looking,
                             const tide_drive_folders *changed, tide_error *err)
{
    tide_mem *const mem = looking->drive->mem;
    tide_text *folders = tide_mem_array(mem, changed->count, sizeof *folders);
    size_t count = 0;
    if (folders == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a scan");
    for (size_t at = 0; tide_drive_folders_next(changed, &at, &folders[count]);)
        count++;
    const tide_status rc = scan(looking, folders, count, err);
    tide_mem_free(mem, folders, changed->count * sizeof *folders);
    return rc;
}

/* Once a day (S17).  That it cannot be emptied keeps nothing from being synced. */
static void empty_trash(const struct tide_drive_looking *looking)
{
    const uint64_t now_ms = tide_world_now_unix_ms(looking->drive->options.world);
    int root = -1;
    if (!tide_drive_first_of_day(looking->drive, looking->row->number, now_ms) ||
        tide_folder_open(looking->row->dir, &root, NULL) != TIDE_OK)
        return;
    if (tide_drive_marker_check(root, looking->row->marker, NULL) == TIDE_OK)
        (void)tide_drive_trash_empty(root, now_ms, NULL);
    tide_folder_close(root);
}

/* Only what changed (watch/dirty.h), if the watcher asks; a user who asks may have changed a file right
 * before, which the watcher does not tell yet. */
tide_status tide_drive_look_here(const struct tide_drive_looking *looking, tide_error *err)
{
    tide_drive *drive = looking->drive;
    tide_drive_folders changed;
    tide_status rc = TIDE_OK;
    if (tide_drive_sweep_is_due(drive, looking->row->number))
        TIDE_TRY(tide_drive_sweep(looking, err));
    empty_trash(looking);
    tide_drive_folders_init(&changed, drive->mem);
    tide_drive_dirty_take(drive->dirty, looking->row->number, &changed);
    if (changed.all || !looking->changed)
        rc = scan(looking, NULL, 0, err);
    else if (changed.count > 0)
        rc = scan_some(looking, &changed, err);
    if (rc != TIDE_OK)
        tide_drive_dirty_add(drive->dirty, looking->row->number, &changed);
    tide_drive_folders_done(&changed);
    return rc;
}
