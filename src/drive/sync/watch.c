/* watch.c - while a process stays: changes here, and a look online now and then, become syncs (D1, D9).
 *
 * The watcher's thread lists the drives on a reading connection of its own, keeps the folders that
 * changed for the job that scans (watch/dirty.h), and enqueues that job. */
#include "base/check.h"
#include "drive/sync/inside.h"
#include "settings/settings.h"

#include <string.h>

struct tide_drive_watching {
    tide_drive *drive;
    tide_drive_watcher *watcher;
    struct tide_drive_watch as;
    struct tide_settings_follower follower; /* of the times, and of what is watched at all */
};

/* ---- the drives ---- */

struct listing {
    struct tide_drive_watching *watching;
    void (*visit)(const struct tide_drive_watched *drive, void *visit_arg);
    void *visit_arg;
    struct tide_drive_row *rows;
    size_t count, room;
    bool full;
};

static uint64_t setting_of(const tide_drive *drive, const struct tide_drive_row *row,
                           tide_setting setting)
{
    return tide_engine_setting_u64(drive->options.engine, row->account, (int)setting);
}

static bool is_named(const struct tide_drive_watch *as, const char *name)
{
    for (size_t i = 0; i < as->names_count; i++)
        if (strcmp(as->names[i], name) == 0)
            return true;
    return as->names_count == 0;
}

static bool is_wanted(const tide_drive *drive, const struct tide_drive_watch *as,
                      const struct tide_drive_row *row)
{
    if (!is_named(as, row->name) && (row->parent == 0 || !is_named(as, row->parent_name)))
        return false;
    return as->whatever_is_set || setting_of(drive, row, TIDE_SET_DRIVE_WATCH) != 0;
}

static void take_row(const struct tide_drive_row *row, void *arg)
{
    struct listing *listing = arg;
    tide_drive *const drive = listing->watching->drive;
    if (!tide_drive_row_syncs(row) || !is_wanted(drive, &listing->watching->as, row)) {
        tide_drive_dirty_unwatched(drive->dirty, row->number);
        return;
    }
    listing->full = listing->full || !TIDE_GROW_IN(drive->mem, listing->rows, listing->room,
                                                   listing->count + 1, TIDE_DRIVE_WATCHED_MAX);
    if (!listing->full)
        listing->rows[listing->count++] = *row;
}

static tide_status visit_row(const struct listing *listing, tide_rows db,
                             const struct tide_drive_row *row, tide_error *err)
{
    tide_auto_buf rules = tide_buf_in(listing->watching->drive->mem, TIDE_IGNORE_TEXT_BYTES_MAX);
    TIDE_TRY(tide_drive_rules_text(db, row->number, &rules, err));
    const tide_drive *drive = listing->watching->drive;
    const struct tide_drive_watched watched = {
        .number = row->number,
        .name = row->name,
        .root = row->dir,
        .ignore = tide_buf_text(&rules),
        .poll_ms = setting_of(drive, row, TIDE_SET_DRIVE_POLL),
        .rescan_ms = setting_of(drive, row, TIDE_SET_DRIVE_RESCAN)};
    listing->visit(&watched, listing->visit_arg);
    tide_drive_dirty_watched(drive->dirty, row->number);
    return TIDE_OK;
}

static tide_status
list_drives(void *arg, void (*visit)(const struct tide_drive_watched *drive, void *visit_arg),
            void *visit_arg, tide_error *err)
{
    struct tide_drive_watching *watching = arg;
    struct listing listing = {.watching = watching, .visit = visit, .visit_arg = visit_arg};
    struct tide_drive_reader *reader = NULL;
    TIDE_TRY(tide_drive_reader_take(watching->drive, &reader, err));
    const tide_rows db = {.sqlite = reader->db.handle, .kept = &reader->kept};
    tide_status rc = tide_drives_each(db, take_row, &listing, err);
    if (rc == TIDE_OK && listing.full)
        rc = tide_error_set(err, TIDE_FULL, "more than %d drives cannot be watched",
                            (int)TIDE_DRIVE_WATCHED_MAX);
    for (size_t i = 0; rc == TIDE_OK && i < listing.count; i++)
        rc = visit_row(&listing, db, &listing.rows[i], err);
    tide_drive_reader_give(watching->drive, reader);
    tide_mem_free(watching->drive->mem, listing.rows, listing.room * sizeof *listing.rows);
    tide_drive_alerts_removed(watching->drive);
    return rc;
}

/* ---- syncs ---- */

/* While OneDrive tells of changes it is asked for them only now and then, in case a notification is lost;
 * what is owed and due needs a sync, too. */
static tide_status poll_is_idle(tide_drive *drive, tide_rows db, uint32_t number, bool *idle_out,
                                tide_error *err)
{
    struct tide_drive_progress progress;
    const uint64_t now_ms = tide_world_now_unix_ms(drive->options.world);
    TIDE_TRY(tide_drive_progress_read(db, &progress, err));
    *idle_out = progress.due_ms > now_ms && tide_drive_is_heard(drive, number);
    return TIDE_OK;
}

static tide_status ask(void *arg, uint32_t number, const tide_drive_folders *folders,
                       tide_error *err)
{
    tide_drive *drive = ((struct tide_drive_watching *)arg)->drive;
    struct tide_drive_reader *reader = NULL;
    struct tide_drive_row row;
    bool quiet = false;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    const tide_rows db = tide_drive_reader_rows(reader, number);
    tide_status rc = tide_drives_get(db, number, &row, err);
    if (rc == TIDE_OK && folders->count == 0 && !folders->all)
        rc = poll_is_idle(drive, db, number, &quiet, err);
    tide_drive_reader_give(drive, reader);
    if (rc == TIDE_OK && folders->count == 0 && !folders->all)
        tide_drive_alerts(drive, row.account); /* also while no job of the account can run */
    if (rc == TIDE_OK && quiet)
        return TIDE_OK;
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* removed; the next look at the list sees it */
    tide_drive_dirty_add(drive->dirty, number, folders);
    return tide_drive_sync_changed(drive, &row, err);
}

static void tell(void *arg, const char *name, bool trouble, const char *text)
{
    const struct tide_drive_watching *watching = arg;
    watching->as.tell(watching->as.arg, name, trouble, text);
}

void tide_drive_tell(tide_drive *drive, const char *name, const char *text)
{
    struct tide_drive_watch as = {.tell = NULL};
    tide_lock_take(drive->options.world, drive->lock);
    if (drive->watching != NULL)
        as = drive->watching->as;
    tide_lock_drop(drive->options.world, drive->lock);
    if (as.tell != NULL) /* its argument outlives every job */
        as.tell(as.arg, name, true, text);
}

bool tide_drive_is_watched(tide_drive *drive, const struct tide_drive_row *row)
{
    struct tide_drive_watch as = {.tell = NULL};
    tide_lock_take(drive->options.world, drive->lock);
    const bool any = drive->watching != NULL;
    if (any)
        as = drive->watching->as;
    tide_lock_drop(drive->options.world, drive->lock);
    return any && is_wanted(drive, &as, row); /* the names outlive every job */
}

/* ---- beginning and end ---- */

static void settings_changed(void *arg)
{
    tide_drive_watcher_look(arg);
}

tide_status tide_drive_watch(tide_drive *drive, const struct tide_drive_watch *as, tide_error *err)
{
    static const struct tide_drive_watch_ops ops = {list_drives, ask, tell};
    TIDE_ASSERT(drive->watching == NULL);
    if (tide_engine_shared(drive->options.engine)) /* a folder is on one machine: there is none */
        return TIDE_OK;
    struct tide_drive_watching *watching = tide_mem_new(drive->mem, sizeof *watching);
    if (watching == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to watch folders");
    *watching = (struct tide_drive_watching){.drive = drive, .as = *as};
    const tide_status rc =
        tide_drive_watcher_start(drive->options.world, drive->mem, &ops, watching,
                                 TIDE_DRIVE_AGAIN_MS, &watching->watcher, err);
    if (rc != TIDE_OK) {
        tide_mem_free(drive->mem, watching, sizeof *watching);
        return rc;
    }
    watching->follower = (struct tide_settings_follower){settings_changed, watching->watcher, NULL};
    tide_engine_settings_follow(drive->options.engine, &watching->follower);
    tide_lock_take(drive->options.world, drive->lock);
    drive->watching = watching;
    tide_lock_drop(drive->options.world, drive->lock);
    tide_drive_watcher_look(watching->watcher); /* they may have changed since it read them */
    return TIDE_OK;
}

void tide_drive_watch_look(tide_drive *drive)
{
    tide_lock_take(drive->options.world, drive->lock);
    if (drive->watching != NULL)
        tide_drive_watcher_look(drive->watching->watcher);
    tide_lock_drop(drive->options.world, drive->lock);
}

void tide_drive_watch_end(tide_drive *drive)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_watching *watching = drive->watching;
    drive->watching = NULL;
    tide_lock_drop(drive->options.world, drive->lock);
    if (watching == NULL)
        return;
    tide_engine_settings_unfollow(drive->options.engine, &watching->follower);
    tide_drive_watcher_stop(watching->watcher);
    tide_drive_dirty_unwatch_all(drive->dirty);
    tide_mem_free(drive->mem, watching, sizeof *watching);
}
