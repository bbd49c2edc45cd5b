/* tree.h - watches all folders of a drive and tells in which of them something changed (D1).
 *
 * Folders are walked from the root's descriptor; no link is followed, no other file system entered,
 * and ignored folders and those of other drives are left alone.  Nothing is kept open, so that a disk can be unmounted.
 *
 * How a folder that appears is not missed: it is watched first and listed then, so an entry made
 * before is listed, and one made later has an event; a folder that was found by its listing and by an
 * event is one watch.  A folder that is moved is forgotten at its old place and walked anew at its new
 * one.  After lost events (F15) everything is walked anew.
 *
 * Invariants (tests/unit/drive/drive_watch_test.c):
 *   DWF1  each folder below the root is watched, or an event that leads to it waits, or the
 *         tree is not TIDE_DRIVE_TREE_WHOLE, or it is ignored, unreadable or on another file system.
 *   DWF2  a change in a watched folder adds that folder to the changes, under its path of now.
 *   DWF3  nothing outside the root is watched.
 */
#ifndef TIDE_DRIVE_WATCH_TREE_H
#define TIDE_DRIVE_WATCH_TREE_H

#include "drive/ignore/ignore.h"
#include "drive/watch/changes.h"
#include "world/watch/dir_watch.h"

enum { TIDE_DRIVE_TREE_FOLDERS_MAX = 1 << 22 };

typedef struct tide_drive_tree tide_drive_tree;

typedef enum tide_drive_tree_state {
    TIDE_DRIVE_TREE_WHOLE, /* all folders are watched */
    TIDE_DRIVE_TREE_PART,  /* the limit of watches is reached: scan now and then */
    TIDE_DRIVE_TREE_LOST,  /* the root was removed, moved or unmounted: free it */
} tide_drive_tree_state;

/* Watches the folder `root` and all below it; both are borrowed, `ignore` may be NULL.  All has to
 * be scanned from then on: what happened before is not told.  TIDE_NOT_FOUND, TIDE_INVALID: no folder;
 * TIDE_FULL: it cannot be watched at all. */
tide_status tide_drive_tree_new(const char *root, const tide_ignore *ignore, tide_mem *mem,
                                tide_drive_tree **tree_out, tide_error *err);
void tide_drive_tree_free(tide_drive_tree *tree); /* NULL is fine */

/* Takes all events that wait. */
void tide_drive_tree_take(tide_drive_tree *tree, tide_drive_changes *changes, uint64_t now_ms);
tide_drive_tree_state tide_drive_tree_now(const tide_drive_tree *tree);
/* Why it is not whole; "" if it is. */
const char *tide_drive_tree_why(const tide_drive_tree *tree);
size_t tide_drive_tree_folders(const tide_drive_tree *tree); /* that are watched */
/* For tide_dir_watch_wait(). */
tide_dir_watch *tide_drive_tree_watch(const tide_drive_tree *tree);

#endif
