/* folder.h - files below one directory that other programs write to as well.
 *
 * For a folder that a user works in: every path is walked from the root's descriptor, component by
 * component, and no link is followed; so whatever a name says and whatever is renamed meanwhile,
 * nothing outside the root is opened, created, moved or removed.  Times and identity come
 * from the file system.  Real files only; no thread, no state but descriptors.
 *
 * Invariants (tests/unit/world/folder_test.c):
 *   FOL1  a component that is empty, ".", ".." or has a slash or NUL is refused before the kernel
 *         sees it; a component that is a link ends the walk with TIDE_STALE.
 *   FOL2  after TIDE_OK of a function that creates, replaces, moves or removes, the change survives a
 *         power loss: file and directories were synced (S3).
 *   FOL3  a name is replaced only if what was there is what the caller expected (D42).
 */
#ifndef TIDE_WORLD_FOLDER_H
#define TIDE_WORLD_FOLDER_H

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum tide_entry_kind {
    TIDE_ENTRY_FILE = 1,
    TIDE_ENTRY_FOLDER = 2,
    TIDE_ENTRY_LINK = 3,
    TIDE_ENTRY_OTHER = 4, /* socket, pipe, device */
} tide_entry_kind;

struct tide_entry {
    tide_entry_kind kind;
    uint64_t bytes, mtime_ns, ctime_ns;
    uint64_t dev, inode, birth_ns; /* birth 0: unknown */
    uint32_t nlink, mode;
};
/* Whether content and identity cannot have changed between the two. */
bool tide_entry_same(const struct tide_entry *a, const struct tide_entry *b);

/* The root; close with tide_folder_close().  TIDE_NOT_FOUND; TIDE_INVALID: no directory. */
tide_status tide_folder_open(const char *path, int *root_out, tide_error *err);
/* The directory "a/b" below `root`; the empty path is the root itself, opened again. */
tide_status tide_folder_enter(int root, tide_text path, int *dir_out, tide_error *err);
void tide_folder_close(int dir);

/* TIDE_NOT_FOUND only when the kernel says so: any other error proves nothing (S13). */
tide_status tide_folder_look(int dir, tide_text name, struct tide_entry *entry_out,
                             tide_error *err);
tide_status tide_folder_look_self(int dir, struct tide_entry *entry_out, tide_error *err);
/* Visits every entry but "." and ".."; `visit` returns false to end early.  TIDE_OK only if the
 * directory was read to its end. */
tide_status tide_folder_list(int dir, bool (*visit)(tide_text name, void *arg), void *arg,
                             tide_error *err);
/* The same for folders alone, without a look at each file. */
tide_status tide_folder_list_folders(int dir, bool (*visit)(tide_text name, void *arg), void *arg,
                                     tide_error *err);

/* Reads a file from its start; *entry_out is from before.  TIDE_STALE: it changed while it was read, or
 * is no file. */
tide_status tide_folder_read(int dir, tide_text name,
                             void (*take)(const void *bytes, size_t count, void *arg), void *arg,
                             struct tide_entry *entry_out, tide_error *err);
/* Opens a file to be read at offsets; close with tide_folder_close().  TIDE_STALE: it is no file. */
tide_status tide_folder_open_file(int dir, tide_text name, int *file_out, tide_error *err);
/* TIDE_STALE: the file ends before. */
tide_status tide_folder_read_at(int file, uint64_t offset, char *bytes, size_t count,
                                tide_error *err);
/* Creates or continues a file of ours ("….partial"): writes `bytes` at `offset`.  One that is continued
 * must be there (TIDE_NOT_FOUND) with all bytes before (TIDE_STALE): a hole would become content. */
tide_status tide_folder_write(int dir, tide_text name, uint64_t offset, tide_text bytes,
                              tide_error *err);

/* What this user may still write to the disk of `dir`. */
tide_status tide_folder_free(int dir, uint64_t *bytes_out, tide_error *err);

/* Gives a finished file its name: syncs it, sets its modification time, renames, syncs the directory.
 * It gets the mode of the file that it replaces; a new one may be read and written by those who may read
 * and write its directory, and by its owner.
 * `expected` NULL: the name must be free (TIDE_EXISTS).  Else what is there must be that entry
 * (TIDE_STALE, nothing changed); then it is exchanged, and what was displaced now has the name
 * `partial`. */
tide_status tide_folder_place(int dir, tide_text partial, tide_text name, uint64_t mtime_s,
                              const struct tide_entry *expected, tide_error *err);
/* TIDE_EXISTS: the name is taken. */
tide_status tide_folder_make(int dir, tide_text name, tide_error *err);
tide_status tide_folder_move(int dir, tide_text name, int to_dir, tide_text to_name,
                             tide_error *err);
/* Only if it is still that entry (TIDE_STALE); a folder only if it is empty (TIDE_EXISTS). */
tide_status tide_folder_remove(int dir, tide_text name, const struct tide_entry *expected,
                               tide_error *err);

#endif
