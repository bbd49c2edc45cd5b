/* backup.h - copies an archive consistently while it is being written (M17).
 *
 * SQLite copies each shard as one snapshot, which gets its name when it is complete; a shard is
 * skipped if the target has the same generation.  Nothing is ever removed from a copy.
 *
 * A copied ledger must never record mail that the copied archive lacks.  So a caller that copies
 * both copies the ledger first and gives that copy its name last: a shard that is newer than the
 * ledger's record is harmless (mail.h MAIL3), an older one is not. */
#ifndef TIDE_MAIL_BACKUP_H
#define TIDE_MAIL_BACKUP_H

#include "mail/archive/archive.h"

struct tide_backed_up {
    uint64_t copied; /* shards */
    uint64_t same;   /* unchanged in the copy */
    uint64_t messages;
    uint64_t bytes; /* copied */
};
struct tide_backup {
    const char *from_dir, *to_dir; /* of one account */
    const char *account;
    uint64_t free_min_bytes; /* to keep free on the target disk */
    const tide_cancel *cancel;
    void (*progress)(const char *shard, uint64_t bytes, void *arg); /* before each; NULL is fine */
    void *progress_arg;
};
/* Adds to *done, even if it fails. */
tide_status tide_backup_archive(tide_world *world, const struct tide_backup *wanted, tide_mem *mem,
                                struct tide_backed_up *done, tide_error *err);

#endif
