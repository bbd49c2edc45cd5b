/* watcher.h - the thread that watches the folders of drives, and asks for a sync when it is time (D1, D9).
 *
 * One thread for all drives of a process.  It waits for events of the folders and for the next time at
 * which something is due: changes that have been quiet (changes.h), the next look online, the next scan
 * of everything.  So without changes it wakes up when a drive is to be polled, and at no other time;
 * without drives, never.
 *
 * A folder that is not there, or cannot be watched, is tried again; meanwhile, and where the limit of
 * watches is reached, everything is scanned more often.
 *
 * Invariants (tests/unit/drive/drive_watch_test.c):
 *   DWT1  the first sync that it asks for a drive is of everything: what happened before is not known.
 *   DWT2  folders whose sync could not be asked for are asked for again.
 *   DWT3  after tide_drive_watcher_stop() none of the functions is called.
 */
#ifndef TIDE_DRIVE_WATCH_WATCHER_H
#define TIDE_DRIVE_WATCH_WATCHER_H

#include "drive/watch/folders.h"
#include "world/world.h"

enum {
    TIDE_DRIVE_WATCHED_MAX = 256, /* drives in a process */
    TIDE_DRIVE_AGAIN_MS = 10000,
    TIDE_DRIVE_UNWATCHED_MS = 300000, /* between scans of what cannot be watched */
};

typedef struct tide_drive_watcher tide_drive_watcher;

/* A drive that is to be watched. */
struct tide_drive_watched {
    uint32_t number;
    const char *name;
    const char *root;
    tide_text ignore;   /* patterns (ignore.h) */
    uint64_t poll_ms;   /* between looks at what is online */
    uint64_t rescan_ms; /* between scans of everything */
};

struct tide_drive_watch_ops {
    /* Visits the drives, each time with the same names and patterns unless they were changed.  At the
     * start, whenever one is to be polled, and after tide_drive_watcher_look(). */
    tide_status (*drives)(void *arg,
                          void (*visit)(const struct tide_drive_watched *drive, void *visit_arg),
                          void *visit_arg, tide_error *err);
    /* Asks for a sync of these folders with what is online, and does not wait for it.  No folder: only
     * what is online. */
    tide_status (*sync)(void *arg, uint32_t number, const tide_drive_folders *folders,
                        tide_error *err);
    /* What a user should know; `trouble`: it is not as it should be. */
    void (*tell)(void *arg, const char *drive, bool trouble, const char *text);
};

/* All is borrowed until the end.  The functions run on the thread of the watcher.  `again_ms`: until a
 * folder that is not there is tried again. */
tide_status tide_drive_watcher_start(tide_world *world, tide_mem *mem,
                                     const struct tide_drive_watch_ops *ops, void *arg,
                                     uint64_t again_ms, tide_drive_watcher **watcher_out,
                                     tide_error *err);
/* Drives came, went or have other patterns or times.  Any thread. */
void tide_drive_watcher_look(tide_drive_watcher *watcher);
void tide_drive_watcher_stop(tide_drive_watcher *watcher); /* and frees; NULL is fine */

#endif
