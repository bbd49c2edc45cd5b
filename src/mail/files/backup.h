/* backup.h - a consistent copy of an archive while it is being written (M17).
 *
 * Each shard is copied as one snapshot by SQLite itself and takes its name when it is
 * whole; a shard of which the target has the same generation is left alone.  Nothing is
 * ever removed from a copy.
 *
 * A copied ledger must never claim what the copied archive lacks.  So whoever copies both
 * takes the ledger's copy first and gives it its name last: a shard that is newer than a
 * ledger believes is harmless (mail.h W3), an older one is not. */
#ifndef TIDE_MAIL_BACKUP_H
#define TIDE_MAIL_BACKUP_H

#include "mail/archive/archive.h"

struct tide_backed_up {
    uint64_t copied; /* shards */
    uint64_t same;   /* as the copy has them */
    uint64_t messages;
    uint64_t bytes; /* copied */
};
struct tide_backup {
    const char *from_dir, *to_dir; /* of one account */
    const char *account;
    uint64_t free_min_bytes; /* to stay free where the copy goes */
    const tide_cancel *cancel;
    void (*progress)(const char *shard, uint64_t bytes, void *arg); /* before each; NULL is fine */
    void *progress_arg;
};
/* Adds to *done, also when it fails. */
tide_status tide_backup_archive(tide_world *world, const struct tide_backup *wanted, tide_mem *mem,
                                struct tide_backed_up *done, tide_error *err);

#endif
