/* dir_watch.h - tells which directories change while other programs work in them.
 *
 * A thin port to the kernel's inotify: directories are added by descriptor, so that no path is looked
 * up again and no link followed, and events name the directory by the number that adding it gave.
 * Which directories to watch is the caller's business.  A watch keeps no file system busy: it can
 * be unmounted.  Real files only.
 *
 * Not told: writes through memory maps until the file is closed, files that stay open, and what
 * other machines do on a network file system.  The caller scans now and then.
 *
 * Invariants (tests/unit/world/dir_watch_test.c):
 *   DWA1  a change after tide_dir_watch_add() returned has an event, or TIDE_DIR_LOST has.
 *   DWA2  without an event a wait ends at its deadline or by tide_waker_wake(), and not before.
 */
#ifndef TIDE_WORLD_DIR_WATCH_H
#define TIDE_WORLD_DIR_WATCH_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_dir_watch tide_dir_watch;

/* What happened; bits. */
enum {
    TIDE_DIR_CHANGED = 1, /* the entry came, was written, or has other attributes */
    TIDE_DIR_LEFT = 2,    /* the entry was deleted or moved away */
    TIDE_DIR_FOLDER = 4,  /* the entry is a directory */
    TIDE_DIR_MOVED = 8,   /* the directory itself was moved; it is still watched */
    TIDE_DIR_ENDED = 16,  /* it was deleted, unmounted or removed: it is no longer watched */
    TIDE_DIR_LOST = 32,   /* events of any directory were lost: there were too many */
};

struct tide_dir_event {
    int id; /* of the directory; -1: TIDE_DIR_LOST */
    unsigned what;
    tide_text name; /* of the entry, borrowed until the next call; empty: the directory itself */
};

/* TIDE_FULL: this user has too many; the text names the limit. */
tide_status tide_dir_watch_new(tide_mem *mem, tide_dir_watch **watch_out, tide_error *err);
void tide_dir_watch_free(tide_dir_watch *watch); /* NULL is fine */

/* Watches the directory that `dir` has open.  The same directory has the same number.  TIDE_FULL: as
 * above. */
tide_status tide_dir_watch_add(tide_dir_watch *watch, int dir, int *id_out, tide_error *err);
void tide_dir_watch_remove(tide_dir_watch *watch, int id); /* events that wait still come */
/* Takes the next event; false: none waits. */
bool tide_dir_watch_next(tide_dir_watch *watch, struct tide_dir_event *event_out);

/* Ends the wait of another thread.  Zeroed: none. */
struct tide_waker {
    int fd; /* plus 1 */
};
tide_status tide_waker_open(struct tide_waker *waker, tide_error *err);
void tide_waker_close(struct tide_waker *waker);
void tide_waker_wake(const struct tide_waker *waker);

/* Waits until one of them has an event, until it is woken, or for `wait_ms` (UINT64_MAX: without an
 * end).  NULL among the watches is fine. */
void tide_dir_watch_wait(tide_dir_watch *const *watches, size_t count,
                         const struct tide_waker *waker, uint64_t wait_ms);

#endif
