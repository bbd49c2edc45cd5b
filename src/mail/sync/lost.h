/* lost.h - what exists nowhere else, and what of it is lost (M4, M19a).
 *
 * Three know about an archive, and each is held against the others:
 *
 *   the shards     the messages, with what is known of each copy (mail/archive/archive.h A6)
 *   the ledger     of each shard its id, generation and count (mail_shard); the ids of messages
 *                  that are gone from the server (mail_only), so that losing their shard does not
 *                  lose the knowledge of them; and each loss that was seen, with the count that
 *                  the shard had (mail_loss)
 *   the manifests  what the archiver deleted at the server, with the hash of the copy
 *
 * A shard that is missing, another one, older or unreadable is fetched again by the next sync
 * (audit.c).  What the server no longer has cannot be: it is named as long as its id is known,
 * counted where it is not, and told by status, verify and sync until somebody accepts it.
 *
 * Invariants:
 *   K1  a loss is in mail_loss before the ledger forgets what the shard was (one transaction).
 *   K2  mail_only has the ids that were gone from the server when the shard was last remembered;
 *       rows of a shard that is no longer there stay.
 *   K3  a row of mail_loss goes when as many messages of its year are here as there were and
 *       none whose id is known is missing, or when it is accepted; never otherwise.
 *   K4  looking changes nothing: only a sync and the accepting command write.
 */
#ifndef TIDE_MAIL_LOST_H
#define TIDE_MAIL_LOST_H

#include "mail/mail.h"
#include "mail/rows.h"

struct tide_mail_lost {
    uint64_t shards;   /* missing, another one, older or unreadable: to be fetched again */
    uint64_t messages; /* that exist nowhere else and are not here; their ids are known */
    uint64_t others;   /* that were here and are not; their ids are not known */
};
typedef enum tide_lost_kind {
    TIDE_LOST_SHARD,   /* name and why */
    TIDE_LOST_MESSAGE, /* name is a Gmail id */
    TIDE_LOST_OTHERS,  /* name is a shard: `count` of it are not known by name */
} tide_lost_kind;
struct tide_lost_one {
    tide_lost_kind kind;
    const char *name;
    const char *why;
    uint64_t count;
};
typedef void tide_lost_visit(const struct tide_lost_one *one, void *arg);

/* Holds the archive (NULL: there is none) against the ledger and the manifests.  `thorough`:
 * every message that exists nowhere else is looked up; else those of years in doubt.  `visit`
 * may be NULL.  A ledger of an earlier version knows less. */
struct tide_lost_ask {
    tide_rows db;
    tide_archive *archive;
    uint32_t account;
    bool thorough;
    tide_mem *mem;
};
tide_status tide_mail_lost(const struct tide_lost_ask *ask, tide_lost_visit *visit, void *arg,
                           struct tide_mail_lost *lost_out, tide_error *err);

/* In a transaction: what of these is lost is accepted, and no longer told. */
tide_status tide_mail_lost_accept(const struct tide_lost_ask *ask, uint64_t now_ms,
                                  tide_error *err);
/* In a transaction, of an account whose work is done: forgets losses that are healed (K3). */
tide_status tide_mail_lost_settle(const struct tide_lost_ask *ask, tide_error *err);
/* In a transaction: a shard is not as the ledger remembers it (K1); all shards of its year had so
 * many messages. */
tide_status tide_mail_loss_put(tide_rows db, uint32_t account, const char *name, uint64_t messages,
                               uint64_t now_ms, tide_error *err);

/* From audit.c: the shards that are not as the ledger remembers them. */
typedef void tide_shard_doubt(const struct tide_shard_state *seen, const char *why, void *arg);
tide_status tide_mail_shards_doubted(tide_rows db, tide_archive *archive, uint32_t account,
                                     tide_mem *mem, tide_shard_doubt *visit, void *arg,
                                     tide_error *err);

#endif
