/* dirty.h - what is to be scanned when a drive is synced next, kept in memory for its jobs (D1).
 *
 * The watcher adds folders, the job that scans takes them.  Of a drive that is not watched, and in the
 * first scan of a drive by this process, everything is to be scanned: nobody knows what changed.  A job
 * that fails puts back what it took.  Any thread.
 *
 * Invariant (tests/unit/drive/drive_changes_test.c):
 *   DDI1  what was added is taken by exactly one job, unless it is put back.
 */
#ifndef TIDE_DRIVE_WATCH_DIRTY_H
#define TIDE_DRIVE_WATCH_DIRTY_H

#include "drive/watch/folders.h"
#include "world/world.h"

typedef struct tide_drive_dirty tide_drive_dirty;

tide_status tide_drive_dirty_new(tide_world *world, tide_mem *mem, tide_drive_dirty **dirty_out,
                                 tide_error *err);
void tide_drive_dirty_free(tide_drive_dirty *dirty); /* NULL is fine */

/* The watcher tells of the drive from now on; what happened before is not known. */
void tide_drive_dirty_watched(tide_drive_dirty *dirty, uint32_t number);
/* And no longer: everything is to be scanned, each time. */
void tide_drive_dirty_unwatched(tide_drive_dirty *dirty, uint32_t number);
void tide_drive_dirty_unwatch_all(tide_drive_dirty *dirty);
void tide_drive_dirty_add(tide_drive_dirty *dirty, uint32_t number,
                          const tide_drive_folders *folders);
/* Moves what is to be scanned to `folders`, which is empty. */
void tide_drive_dirty_take(tide_drive_dirty *dirty, uint32_t number, tide_drive_folders *folders);

#endif
