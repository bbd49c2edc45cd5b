/* userfile.h - the user's own files: mailboxes read in place, exports written.
 *
 * Separate from the port in world.h because no state of ours depends on these files:
 * they are never simulated, and an export can be written again.  A file is written
 * under a temporary name and renamed when complete.  It is durable only after
 * tide_userfile_settle(), so that ten thousand files can be written without ten
 * thousand waits for the disk.
 *
 * Invariants:
 *   UFL1  a name shows the old file or the whole new one, never a part.
 *   UFL2  no link leads out of a directory: links to directories are not followed, and a new file
 *         is never written through a link.
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
    bool link;          /* the name itself is a link; the other fields describe its target */
};
/* Describes the path.  A missing file is a result, not a failure. */
tide_status tide_path_look(const char *path, struct tide_path_info *info_out, tide_error *err);

/* ---- reading ---- */

typedef struct tide_reading tide_reading;
tide_status tide_reading_open(tide_mem *mem, const char *path, tide_reading **reading_out,
                              tide_error *err);
/* Reads up to `room` bytes from `at`; fewer only at the end of the file. */
tide_status tide_reading_at(tide_reading *reading, uint64_t at, char *bytes, size_t room,
                            size_t *count_out, tide_error *err);
void tide_reading_close(tide_reading *reading); /* NULL is fine */

/* ---- writing ---- */

typedef struct tide_writing tide_writing;
tide_status tide_writing_open(tide_mem *mem, const char *path, tide_writing **writing_out,
                              tide_error *err);
tide_status tide_writing_add(tide_writing *writing, const char *bytes, size_t count,
                             tide_error *err);
/* Gives the file its name, replacing an existing file, and sets its time to `changed_ms`
 * (INT64_MIN: now).  An existing file with the same bytes stays: *same_out.  Frees `writing` in
 * any case. */
tide_status tide_writing_end(tide_writing *writing, int64_t changed_ms, bool *same_out,
                             tide_error *err);
/* Like tide_writing_end(), but keeps an existing file with other bytes: TIDE_EXISTS. */
tide_status tide_writing_end_keeping(tide_writing *writing, int64_t changed_ms, bool *same_out,
                                     tide_error *err);
/* Like tide_writing_end(), but fails if the name is taken: TIDE_EXISTS, and `writing` stays. */
tide_status tide_writing_end_new(tide_writing *writing, const char *path, tide_error *err);
void tide_writing_drop(tide_writing *writing); /* NULL is fine */

/* Waits until everything on the file system of `path` is durable. */
tide_status tide_userfile_settle(const char *path, tide_error *err);
/* Renames a complete and durable file over another; both in one directory. */
tide_status tide_userfile_replace(const char *path, const char *to, tide_error *err);

#endif
