/* lost.h - finds lost messages, above all those that exist only in the archive (M4, M19a).
 *
 * Three sources describe an archive, and each is compared with the others:
 *
 *   the shards     the messages, with what is known of each copy (mail/archive/archive.h ARC6)
 *   the ledger     of each shard its id, generation and count (mail_shard); the ids of messages
 *                  that are gone from the server (mail_only), so that a lost shard does not take
 *                  its ids with it; and each loss found, with the count that the shard had
 *                  (mail_loss)
 *   the manifests  what the archiver deleted at the server, with the hash of the copy
 *
 * The next sync fetches again a shard that is missing, replaced, older or unreadable (audit.c).
 * Messages that the server no longer has cannot be fetched: they are named if their ids are known,
 * counted if not, and reported by status, verify and sync until the user accepts the loss.
 *
 * Invariants:
 *   LOST1  a loss is in mail_loss before the ledger replaces its record of the shard (one
 *          transaction).
 *   LOST2  mail_only has the ids that were gone from the server when the shard was last recorded;
 *          rows of a shard that is missing stay.
 *   LOST3  a row of mail_loss is deleted only when the year has as many messages as before and none
 *          with a known id is missing, or when the loss is accepted.
 *   LOST4  reading changes nothing: only a sync and the accepting command write.
 */
#ifndef TIDE_MAIL_LOST_H
#define TIDE_MAIL_LOST_H

#include "mail/mail.h"
#include "mail/rows.h"

struct tide_mail_lost {
    uint64_t shards;   /* missing, replaced, older or unreadable: to be fetched again */
    uint64_t messages; /* missing, and existed only in the archive; their ids are known */
    uint64_t others;   /* missing messages whose ids are not known */
};
typedef enum tide_lost_kind {
    TIDE_LOST_SHARD,   /* name and why */
    TIDE_LOST_MESSAGE, /* name is a Gmail id */
    TIDE_LOST_OTHERS,  /* name is a shard: `count` of its messages have no known id */
} tide_lost_kind;
struct tide_lost_one {
    tide_lost_kind kind;
    const char *name;
    const char *why;
    tide_status broken; /* why a shard cannot be opened; TIDE_OK: it is missing or differs */
    uint64_t count;
};
typedef void tide_lost_visit(const struct tide_lost_one *one, void *arg);

/* Compares the archive (NULL: there is none) with the ledger and the manifests.  `thorough`: looks
 * up every message that exists only in the archive; else only those of years in doubt.  `visit` may
 * be NULL.  A ledger of an earlier version knows less. */
struct tide_lost_ask {
    tide_rows db;
    tide_archive *archive;
    uint32_t account;
    bool thorough;
    tide_mem *mem;
};
tide_status tide_mail_lost(const struct tide_lost_ask *ask, tide_lost_visit *visit, void *arg,
                           struct tide_mail_lost *lost_out, tide_error *err);

/* In a transaction: accepts the losses among these; they are no longer reported. */
tide_status tide_mail_lost_accept(const struct tide_lost_ask *ask, uint64_t now_ms,
                                  tide_error *err);
/* In a transaction, of an account whose work is done: forgets losses that are healed (LOST3). */
tide_status tide_mail_lost_settle(const struct tide_lost_ask *ask, tide_error *err);
/* In a transaction: records that a shard differs from the ledger's record (LOST1), with the number of
 * messages that all shards of its year had. */
tide_status tide_mail_loss_put(tide_rows db, uint32_t account, const char *name, uint64_t messages,
                               uint64_t now_ms, tide_error *err);

/* From audit.c: visits the shards that differ from the ledger's record. */
typedef void tide_shard_doubt(const struct tide_shard_state *seen, const char *why,
                              tide_status broken, void *arg);
tide_status tide_mail_shards_doubted(tide_rows db, tide_archive *archive, uint32_t account,
                                     tide_mem *mem, tide_shard_doubt *visit, void *arg,
                                     tide_error *err);

#endif
