/* backup.h - copies archive/console consistently while it is being written (M17).
 *
 * Each property's file is copied as one snapshot, which gets its name when it is complete.  Nothing
 * is ever removed from a copy.  As with mail (mail/files/backup.h), a caller that also copies the
 * ledger copies it first and gives that copy its name last. */
#ifndef TIDE_CONSOLE_BACKUP_H
#define TIDE_CONSOLE_BACKUP_H

#include "world/world.h"

struct tide_console_backed_up {
    uint64_t files, rows, bytes;
};
struct tide_console_backup {
    const char *from_dir, *to_dir;
    uint64_t free_min_bytes; /* to keep free on the target disk */
    const tide_cancel *cancel;
    void (*progress)(const char *file, uint64_t bytes, void *arg); /* before each; NULL is fine */
    void *progress_arg;
};
/* Adds to *done, even if it fails. */
tide_status tide_console_backup(tide_world *world, const struct tide_console_backup *wanted,
                                tide_mem *mem, struct tide_console_backed_up *done,
                                tide_error *err);
/* Checks that every file of a directory is intact: its pages, and the number of rows of each day.
 * TIDE_CORRUPT names the file. */
tide_status tide_console_backup_check(tide_world *world, const char *dir, tide_mem *mem,
                                      tide_error *err);

#endif
