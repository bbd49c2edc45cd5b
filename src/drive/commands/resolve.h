/* resolve.h - the two versions of a conflict, as files here, and which of them stays (S9).
 *
 * The remote version kept the name; the version from here is the copy beside it.  Only files here are
 * changed, as a user would: the next sync sees that and does the rest.  What goes away goes to the
 * trash. */
#ifndef TIDE_DRIVE_COMMANDS_RESOLVE_H
#define TIDE_DRIVE_COMMANDS_RESOLVE_H

#include "cli/cli.h"
#include "drive/drives.h"
#include "world/folder.h"

enum { DRIVE_CONFLICT_PATH_BYTES = 8192 };

struct drive_conflict {
    uint64_t id, at_ms;
    tide_drive_notice notice;
    char path[DRIVE_CONFLICT_PATH_BYTES]; /* below the root */
    char copy[DRIVE_CONFLICT_PATH_BYTES]; /* "": there is none */
};
/* The path of its item replaces what is in `path`; at least its name. */
void drive_conflict_path(tide_rows db, const struct tide_drive_conflict *conflict, tide_buf *path);
/* false: a path is too long. */
bool drive_conflict_take(const struct tide_drive_conflict *conflict, const tide_buf *path,
                         struct drive_conflict *conflict_out);

struct drive_versions {
    int root, dir;
    tide_text folder, name, copy_name; /* of `conflict` */
    bool has_original, has_copy;
    struct tide_entry original, copy;
};
tide_status drive_versions_open(const struct tide_drive_row *row,
                                const struct drive_conflict *conflict,
                                struct drive_versions *versions_out, tide_error *err);
void drive_versions_close(struct drive_versions *versions);

typedef enum drive_keep { DRIVE_KEEP_BOTH, DRIVE_KEEP_LOCAL, DRIVE_KEEP_REMOTE } drive_keep;
bool drive_keep_of(const char *word, drive_keep *keep_out);
/* TIDE_NOT_FOUND, TIDE_INVALID: there are not two files to choose from.  TIDE_STALE: one of them was
 * written to meanwhile. */
tide_status drive_resolve(struct cli *cli, const struct tide_drive_row *row,
                          const struct drive_conflict *conflict, drive_keep keep, tide_error *err);

#endif
