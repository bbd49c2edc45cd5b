/* backup.h - a consistent copy of archive/console while it is being written (M17).
 *
 * Each property's file is copied as one snapshot and takes its name when it is whole.  Nothing is ever
 * removed from a copy.  As with mail (mail/files/backup.h), whoever copies the ledger too takes its copy first and
 * gives it its name last. */
#ifndef TIDE_CONSOLE_BACKUP_H
#define TIDE_CONSOLE_BACKUP_H

#include "world/world.h"

struct tide_console_backed_up {
    uint64_t files, rows, bytes;
};
struct tide_console_backup {
    const char *from_dir, *to_dir;
    uint64_t free_min_bytes; /* to stay free where the copy goes */
    const tide_cancel *cancel;
    void (*progress)(const char *file, uint64_t bytes, void *arg); /* before each; NULL is fine */
    void *progress_arg;
};
/* Adds to *done, also when it fails. */
tide_status tide_console_backup(tide_world *world, const struct tide_console_backup *wanted,
                                tide_mem *mem, struct tide_console_backed_up *done,
                                tide_error *err);
/* Whether every file of a directory is whole: its pages, and as many rows as its days say.
 * TIDE_CORRUPT names the file. */
tide_status tide_console_backup_check(tide_world *world, const char *dir, tide_mem *mem,
                                      tide_error *err);

#endif
