/* rows.h - the mail system's tables in state.db, written in the ledger's transactions (E1.6).
 *
 *   mail_account  address, place, how the last run began, what the tidemark covers
 *   mail_mark     (stream, ordinal) -> history id: adopted when the stream's
 *                 cursor has passed that cycle
 *   mail_shard    the last known state of each shard (M4)
 *   mail_proof    (shard, generation) -> when, and at which history id, a shard of that generation
 *                 had every change the server had reported
 *   mail_only, mail_only_seen, mail_loss: messages that exist only in the archive, and losses
 *                 (mail/sync/lost.h)
 *   mail_listing  a complete listing in progress: how many of its spans are left (M5)
 *   mail_seen     the ids listed so far; deleted when it ends
 *   mail_labels   a complete listing that reads labels too: which one it is at (M19)
 *   mail_inexact  accounts whose held copies stay as they are (M18)
 *   mail_epoch    the next epoch of an account that was removed
 *
 * All functions run inside a transaction on the ledger's writer. */
#ifndef TIDE_MAIL_STATE_H
#define TIDE_MAIL_STATE_H

#include "ledger/rows.h"
#include "mail/archive/archive.h"
#include "tidemark.h"

enum { TIDE_MAIL_NOTICE_BYTES = 400 };

struct tide_mail_row {
    uint32_t account;
    char email[256];
    char endpoint[512]; /* "": Google's */
    uint32_t epoch;     /* its stream is mail.EPOCH; grows when the tidemark falls back */
    uint64_t messages_total;
    uint64_t last_run_ms;
    uint64_t since_ms; /* the tidemark covers [since, mark); 0: from the beginning */
    uint64_t floor_ms; /* where the tidemark of this epoch began; [since, floor) was proven */
    bool lost;         /* the archive lost something from lost_ms on, and no plan saw it yet */
    uint64_t lost_ms;
    uint64_t rewind_ms; /* with `lost`: changes since this proof must be read again; 0: none */
    char notice[TIDE_MAIL_NOTICE_BYTES]; /* warning for the user; "" */
};

tide_status tide_mail_tables(tide_rows db, tide_error *err);
tide_status tide_mail_row_put(tide_rows db, const struct tide_mail_row *row, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_mail_row_get(tide_rows db, uint32_t account, struct tide_mail_row *row_out,
                              tide_error *err);
tide_status tide_mail_rows(tide_rows db, void (*visit)(const struct tide_mail_row *row, void *arg),
                           void *arg, tide_error *err);
/* Removes the account and its rows, but keeps the epoch: a stream is never used twice. */
tide_status tide_mail_row_remove(tide_rows db, uint32_t account, tide_error *err);
/* The first epoch of an account that is new or was added again. */
tide_status tide_mail_epoch_get(tide_rows db, uint32_t account, uint32_t *epoch_out,
                                tide_error *err);
/* Records that the archive lost something: the earliest times of all such calls count.  `rewind_ms`
 * 0: no changes must be read again. */
tide_status tide_mail_lost_put(tide_rows db, uint32_t account, uint64_t lost_ms, uint64_t rewind_ms,
                               const char *notice, tide_error *err);

tide_status tide_mail_mark_put(tide_rows db, uint64_t stream, uint64_t ordinal,
                               tide_text history_id, tide_error *err);
/* The history id of the last cycle below `finished` that has one; TIDE_NOT_FOUND. */
tide_status tide_mail_mark_get(tide_rows db, uint64_t stream, uint64_t finished,
                               char history_id_out[64], tide_error *err);

/* The history id of the first cycle that has one, adopted or not; TIDE_NOT_FOUND. */
tide_status tide_mail_mark_first(tide_rows db, uint64_t stream, char history_id_out[64],
                                 tide_error *err);
/* Forgets the history ids below the adopted one; `finished` UINT64_MAX: all of them. */
tide_status tide_mail_mark_prune(tide_rows db, uint64_t stream, uint64_t finished, tide_error *err);

/* Records the state of a shard if it is newer than the recorded one.  Another shard of the same
 * name is ignored: the archive check decides about it. */
tide_status tide_mail_shard_note(tide_rows db, uint32_t account,
                                 const struct tide_shard_state *shard, tide_error *err);
tide_status tide_mail_shard_forget(tide_rows db, uint32_t account, const char *name,
                                   tide_error *err);
/* Records the state of a shard, whatever was recorded before. */
tide_status tide_mail_shard_put(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, tide_error *err);
/* Calls `visit` for each recorded shard. */
tide_status tide_mail_shards(tide_rows db, uint32_t account,
                             void (*visit)(const struct tide_shard_state *shard, void *arg),
                             void *arg, tide_error *err);

/* Records that at that time everything up to `history_id` was in that shard. */
tide_status tide_mail_proof_put(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t at_ms,
                                tide_text history_id, tide_error *err);
/* When a copy of the shard with that generation was proven complete; TIDE_NOT_FOUND. */
tide_status tide_mail_proof_get(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t *at_ms_out,
                                tide_error *err);
/* The history id of that time; TIDE_NOT_FOUND. */
tide_status tide_mail_proof_history(tide_rows db, uint32_t account, uint64_t at_ms,
                                    char history_id_out[64], tide_error *err);

/* Number of messages that the ledger recorded as bad or owed; those that are gone do not count. */
tide_status tide_mail_recorded(tide_rows db, uint32_t account, uint64_t *count_out,
                               tide_error *err);

/* Whether the last run was asked to leave held copies as they are (M18). */
tide_status tide_mail_inexact_put(tide_rows db, uint32_t account, bool inexact, tide_error *err);
tide_status tide_mail_inexact_get(tide_rows db, uint32_t account, bool *inexact_out,
                                  tide_error *err);

/* ---- complete listings (M5, M6a) ---- */

struct tide_mail_listing {
    uint64_t id; /* of its cycle */
    uint32_t account;
    uint64_t from_ms;  /* it lists mail from this time on */
    uint64_t begun_ms; /* it says nothing about newer mail */
    uint64_t left;     /* spans whose listing is not finished */
};
/* Starts a listing, or restarts it: ids listed so far are kept. */
tide_status tide_mail_listing_put(tide_rows db, const struct tide_mail_listing *listing,
                                  tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_mail_listing_get(tide_rows db, uint64_t id, struct tide_mail_listing *listing_out,
                                  tide_error *err);
/* Whether a listing of this account is in progress, of its messages or of a label. */
tide_status tide_mail_listing_open(tide_rows db, uint32_t account, bool *open_out, tide_error *err);
/* Replaces one listed span by `more` new ones; *left_out are left. */
tide_status tide_mail_listing_step(tide_rows db, uint64_t id, uint64_t more, uint64_t *left_out,
                                   tide_error *err);
tide_status tide_mail_seen_add(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                               tide_error *err);
/* seen_out[i]: the id was listed. */
tide_status tide_mail_seen_get(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                               bool *seen_out, tide_error *err);
/* The number of listed ids, and one of them; "": none. */
tide_status tide_mail_seen_some(tide_rows db, uint64_t listing, uint64_t *count_out,
                                char id_out[65], tide_error *err);
/* Deletes at most `rows_max` ids, and the listing together with the last of them. */
tide_status tide_mail_seen_forget(tide_rows db, uint64_t listing, uint32_t rows_max,
                                  bool *empty_out, tide_error *err);

/* ---- labels behind a gap (M19) ---- */

/* After a complete listing each label is listed; at most one at a time. */
struct tide_mail_label_pass {
    uint64_t listing; /* the listing; its id is used for each label */
    uint32_t account;
    char history_id[64];                  /* read before the listing; "": unknown */
    uint64_t from_ms, begun_ms;           /* as in the listing */
    bool dates;                           /* the server understands after: and before: */
    char label[TIDE_LABEL_BYTES_MAX + 1]; /* the last one that was begun; "": none */
    bool refused;                         /* the server does not list it: it stays as it is */
    bool unsure;                          /* a label was not listed completely */
};
tide_status tide_mail_pass_put(tide_rows db, const struct tide_mail_label_pass *pass,
                               tide_error *err);
/* TIDE_NOT_FOUND: the listing reads no labels. */
tide_status tide_mail_pass_get(tide_rows db, uint64_t listing,
                               struct tide_mail_label_pass *pass_out, tide_error *err);
tide_status tide_mail_pass_end(tide_rows db, uint64_t listing, tide_error *err);

#endif
