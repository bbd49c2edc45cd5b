/* userfile.h - files of people: mailboxes that are read in place, exports that are
 * written.
 *
 * Apart from the port in world.h because nothing of ours depends on these files:
 * they are never simulated, and what is written here can be written again.  A file
 * is written beside its place and takes it when it is whole; it is as durable as
 * the disk after tide_userfile_settle(), not before, which lets ten thousand files
 * be written without waiting for the disk ten thousand times.
 *
 * Invariants:
 *   U1  a name shows the old file or the whole new one, never a part.
 *   U2  nothing is followed out of a directory: links to directories are not
 *       walked, and a new file never writes through a link.
 */
#ifndef TIDE_WORLD_USERFILE_H
#define TIDE_WORLD_USERFILE_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

typedef enum tide_path_kind {
    TIDE_PATH_NONE,
    TIDE_PATH_FILE,
    TIDE_PATH_DIR,
    TIDE_PATH_OTHER, /* a pipe, a socket, a device */
} tide_path_kind;

struct tide_path_info {
    tide_path_kind kind;
    uint64_t bytes;
    int64_t changed_ms; /* Unix time */
    bool link;          /* the name itself is a link; the rest is what it leads to */
};
/* What is there; nothing there is an answer, not a failure. */
tide_status tide_path_look(const char *path, struct tide_path_info *info_out, tide_error *err);

/* ---- reading ---- */

typedef struct tide_reading tide_reading;
tide_status tide_reading_open(tide_mem *mem, const char *path, tide_reading **reading_out,
                              tide_error *err);
/* Fills `room` bytes from `at` on, fewer only at the end of the file. */
tide_status tide_reading_at(tide_reading *reading, uint64_t at, char *bytes, size_t room,
                            size_t *count_out, tide_error *err);
void tide_reading_close(tide_reading *reading); /* NULL is fine */

/* ---- writing ---- */

typedef struct tide_writing tide_writing;
tide_status tide_writing_open(tide_mem *mem, const char *path, tide_writing **writing_out,
                              tide_error *err);
tide_status tide_writing_add(tide_writing *writing, const char *bytes, size_t count,
                             tide_error *err);
/* Gives the file its name, in place of one that is there, and `changed_ms` as its
 * time (INT64_MIN: now).  A file that is there with the same bytes stays as it is:
 * *same_out.  Frees `writing` in any case. */
tide_status tide_writing_end(tide_writing *writing, int64_t changed_ms, bool *same_out,
                             tide_error *err);
/* The same, but leaves a file that is there with other bytes alone: TIDE_EXISTS. */
tide_status tide_writing_end_keeping(tide_writing *writing, int64_t changed_ms, bool *same_out,
                                     tide_error *err);
/* The same, but refuses a name that is taken: TIDE_EXISTS, and `writing` stays. */
tide_status tide_writing_end_new(tide_writing *writing, const char *path, tide_error *err);
void tide_writing_drop(tide_writing *writing); /* NULL is fine */

/* Waits until everything on the disk of `path` is durable. */
tide_status tide_userfile_settle(const char *path, tide_error *err);
/* Puts a whole and durable file in the place of another; both in one directory. */
tide_status tide_userfile_replace(const char *path, const char *to, tide_error *err);

#endif
