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

#include "system/copy.h"

/* Adds to *done, even if it fails. */
tide_status tide_backup_archive(const struct tide_system_copy *copy,
                                struct tide_system_copied *done, tide_error *err);

#endif
