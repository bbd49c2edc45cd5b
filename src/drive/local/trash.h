/* trash.h - a deletion here is a move to a trash (S17).
 *
 * The desktop's trash of this user is used when it is on the same disk; a file manager shows what is
 * in it and puts it back.  Else the file goes to .tidemark-trash in the root of the drive, into a folder
 * of the day (UTC), where it stays for thirty days.  A file is moved only if it is still the one that
 * was planned (S4: the caller has compared its hash). */
#ifndef TIDE_DRIVE_LOCAL_TRASH_H
#define TIDE_DRIVE_LOCAL_TRASH_H

#include "world/folder.h"

#define TIDE_DRIVE_TRASH ".tidemark-trash"

struct tide_drive_trash {
    int root;            /* of the drive */
    const char *path;    /* of the root, for the desktop's record; absolute */
    const char *desktop; /* "/home/ada/.local/share/Trash"; NULL: there is none */
    uint64_t now_unix_ms;
};
/* Moves the file `name` of `dir`, which is "folder" below the root.  TIDE_STALE: it is another one. */
tide_status tide_drive_trash_file(const struct tide_drive_trash *trash, int dir, tide_text folder,
                                  tide_text name, const struct tide_entry *expected,
                                  tide_error *err);

enum { TIDE_DRIVE_TRASH_DAYS = 30 };
/* Empties .tidemark-trash of files that were put there more than thirty days ago, and of their days.
 * What users put beside those days stays; so does what they put into one, for thirty days (by its
 * ctime).  TIDE_OK also if there is no such folder. */
tide_status tide_drive_trash_empty(int root, uint64_t now_unix_ms, tide_error *err);

#endif
