/* folders.h - which folders of a drive are to be scanned: a set of paths, or all of them.
 *
 * Paths are below the root of the drive, "a/b"; the root is the empty path.  A set that would become
 * too large, or has no memory, becomes "all": more is scanned than needed, never less.  Pure.
 *
 * Invariant (tests/unit/drive/drive_changes_test.c):
 *   DFS1  a path that was added is in the set until it is cleared, by itself or as a part of all.
 */
#ifndef TIDE_DRIVE_WATCH_FOLDERS_H
#define TIDE_DRIVE_WATCH_FOLDERS_H

#include "base/buf.h"
#include "base/map.h"

enum { TIDE_DRIVE_FOLDERS_MAX = 20000, TIDE_DRIVE_FOLDERS_BYTES_MAX = 4 << 20 };

/* Embedded; a zeroed one is done. */
typedef struct tide_drive_folders {
    tide_buf paths; /* each with its NUL */
    tide_map known; /* from the hash of a path to where it begins, plus 1 */
    size_t count;
    bool all;
} tide_drive_folders;

void tide_drive_folders_init(tide_drive_folders *folders, tide_mem *mem);
void tide_drive_folders_done(tide_drive_folders *folders);
void tide_drive_folders_clear(tide_drive_folders *folders); /* gives memory of large ones back */

void tide_drive_folders_add(tide_drive_folders *folders, tide_text path);
void tide_drive_folders_add_all(tide_drive_folders *folders);
/* Adds what `other` has. */
void tide_drive_folders_join(tide_drive_folders *folders, const tide_drive_folders *other);

bool tide_drive_folders_any(const tide_drive_folders *folders);
bool tide_drive_folders_has(const tide_drive_folders *folders, tide_text path); /* or all */
/* The paths, in the order in which they came: *at_io begins with 0.  Borrowed until the next change.
 * Of "all" there are none. */
bool tide_drive_folders_next(const tide_drive_folders *folders, size_t *at_io, tide_text *path_out);

#endif
