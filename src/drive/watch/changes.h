/* changes.h - when what changed in a drive's folder is looked at (D1).
 *
 * Programs change files in bursts: an editor writes, renames and deletes in one save, an archive is
 * unpacked file by file.  So a change waits until the folder was quiet for half a second, two
 * seconds at most.  A folder in which something was deleted comes a second time ten seconds after the
 * first, because an entry counts as deleted only if it stays away that long (S13).
 *
 * Pure: times come as arguments, from a clock that never goes back.
 *
 * Invariants (tests/unit/drive/drive_changes_test.c):
 *   DCH1  what was added is taken, not before 500 ms without a change or 2,000 ms after the first one.
 *   DCH2  a folder with a deletion is taken again, 10,000 ms to 20,000 ms later, however much else happens.
 *   DCH3  with nothing to take there is no time to wake up at.
 */
#ifndef TIDE_DRIVE_WATCH_CHANGES_H
#define TIDE_DRIVE_WATCH_CHANGES_H

#include "drive/watch/folders.h"

enum {
    TIDE_DRIVE_QUIET_MS = 500,
    TIDE_DRIVE_CHANGE_MS_MAX = 2000,
    TIDE_DRIVE_DELETED_MS = 10000,
};

/* Embedded; a zeroed one is done. */
typedef struct tide_drive_changes {
    tide_drive_folders soon;          /* changed */
    tide_drive_folders deletions;     /* of these: something was deleted there */
    tide_drive_folders later;         /* to be taken again at `later_ms` */
    tide_drive_folders after_later;   /* came while `later` waited */
    uint64_t first_ms, last_ms;       /* of `soon` */
    uint64_t later_ms, after_last_ms; /* when the last one came to `after_later` */
} tide_drive_changes;

void tide_drive_changes_init(tide_drive_changes *changes, tide_mem *mem);
void tide_drive_changes_done(tide_drive_changes *changes);

/* `deleted`: an entry of the folder was deleted or moved away. */
void tide_drive_changes_add(tide_drive_changes *changes, tide_text folder, bool deleted,
                            uint64_t now_ms);
/* Anything may have changed: events were lost, or none came so far (F15).  It comes once: what a scan of
 * everything misses counts as deleted when the drive is synced next, after ten seconds. */
void tide_drive_changes_add_all(tide_drive_changes *changes, uint64_t now_ms);
/* Adds what is due to `folders`; false: nothing is. */
bool tide_drive_changes_take(tide_drive_changes *changes, uint64_t now_ms,
                             tide_drive_folders *folders);
uint64_t tide_drive_changes_wake_at_ms(const tide_drive_changes *changes); /* UINT64_MAX: never */

#endif
