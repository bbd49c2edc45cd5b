/* rows.h - the rows that the mail system keeps in state.db, beside the
 * ledger and in its transactions (E1.6).
 *
 *   mail_account  who, where, how the last run began, what the watermark covers
 *   mail_mark     (stream, ordinal) -> history id: adopted when the stream's
 *                 cursor has passed that cycle
 *   mail_shard    what the archive looked like (M4)
 *   mail_proof    (shard, generation) -> when and at which history id a shard of that
 *                 generation had every change that the server had told
 *   mail_only, mail_only_seen, mail_loss: what exists nowhere else, and what was lost (mail/sync/lost.h)
 *   mail_listing  a complete listing under way: how many of its spans are left (M5)
 *   mail_seen     the ids it has named so far; gone when it ends
 *   mail_epoch    where the epochs of an account that was removed go on
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
    uint32_t epoch;     /* its stream is mail.EPOCH; grows when the watermark falls back */
    uint64_t messages_total;
    uint64_t last_run_ms;
    uint64_t since_ms; /* the watermark covers [since, mark); 0: from the beginning */
    uint64_t floor_ms; /* where the mark of this epoch began; since when nothing was proven */
    bool lost;         /* the archive lost something from lost_ms on, and no plan saw it yet */
    uint64_t lost_ms;
    uint64_t rewind_ms; /* with it: changes since this proof have to be read again; 0: none */
    char notice[TIDE_MAIL_NOTICE_BYTES]; /* what people should know; "" */
};

tide_status tide_mail_tables(tide_rows db, tide_error *err);
tide_status tide_mail_row_put(tide_rows db, const struct tide_mail_row *row, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_mail_row_get(tide_rows db, uint32_t account, struct tide_mail_row *row_out,
                              tide_error *err);
tide_status tide_mail_rows(tide_rows db, void (*visit)(const struct tide_mail_row *row, void *arg),
                           void *arg, tide_error *err);
/* With all that was kept about it but its epoch: a stream is never used twice. */
tide_status tide_mail_row_remove(tide_rows db, uint32_t account, tide_error *err);
/* The first epoch of an account that is new, or new again. */
tide_status tide_mail_epoch_get(tide_rows db, uint32_t account, uint32_t *epoch_out,
                                tide_error *err);
/* Notes that the archive lost something: the earliest times of all such calls count.
 * `rewind_ms` 0: nothing has to be read again. */
tide_status tide_mail_lost_put(tide_rows db, uint32_t account, uint64_t lost_ms, uint64_t rewind_ms,
                               const char *notice, tide_error *err);

tide_status tide_mail_mark_put(tide_rows db, uint64_t stream, uint64_t ordinal,
                               tide_text history_id, tide_error *err);
/* Of the last cycle below `finished` that has one; TIDE_NOT_FOUND. */
tide_status tide_mail_mark_get(tide_rows db, uint64_t stream, uint64_t finished,
                               char history_id_out[64], tide_error *err);

/* Of the first cycle that has one, adopted or not; TIDE_NOT_FOUND. */
tide_status tide_mail_mark_first(tide_rows db, uint64_t stream, char history_id_out[64],
                                 tide_error *err);
/* Forgets those below the adopted one; with `finished` UINT64_MAX all of them. */
tide_status tide_mail_mark_prune(tide_rows db, uint64_t stream, uint64_t finished, tide_error *err);

/* What the archive showed; of two the newer one stays, also when it comes later.
 * Another shard of the same name is not taken: that is for a proof to judge. */
tide_status tide_mail_shard_note(tide_rows db, uint32_t account,
                                 const struct tide_shard_state *shard, tide_error *err);
tide_status tide_mail_shard_forget(tide_rows db, uint32_t account, const char *name,
                                   tide_error *err);
/* What the archive showed last; replaces. */
tide_status tide_mail_shard_put(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, tide_error *err);
/* Calls `visit` for each shard that was seen. */
tide_status tide_mail_shards(tide_rows db, uint32_t account,
                             void (*visit)(const struct tide_shard_state *shard, void *arg),
                             void *arg, tide_error *err);

/* At that time everything up to `history_id` was in that shard. */
tide_status tide_mail_proof_put(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t at_ms,
                                tide_text history_id, tide_error *err);
/* When a copy of the shard with that generation is known to have had everything;
 * TIDE_NOT_FOUND. */
tide_status tide_mail_proof_get(tide_rows db, uint32_t account,
                                const struct tide_shard_state *shard, uint64_t *at_ms_out,
                                tide_error *err);
/* The history id of that time; TIDE_NOT_FOUND. */
tide_status tide_mail_proof_history(tide_rows db, uint32_t account, uint64_t at_ms,
                                    char history_id_out[64], tide_error *err);

/* Messages that the ledger has recorded as bad, gone or owed. */
tide_status tide_mail_recorded(tide_rows db, uint32_t account, uint64_t *count_out,
                               tide_error *err);

/* ---- complete listings (M5, M6a) ---- */

struct tide_mail_listing {
    uint64_t id; /* of its cycle */
    uint32_t account;
    uint64_t from_ms;  /* it lists what is not older */
    uint64_t begun_ms; /* younger mail is not judged by it */
    uint64_t left;     /* spans that are not listed to their end */
};
/* Begins it, also anew: what it named stays. */
tide_status tide_mail_listing_put(tide_rows db, const struct tide_mail_listing *listing,
                                  tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_mail_listing_get(tide_rows db, uint64_t id, struct tide_mail_listing *listing_out,
                                  tide_error *err);
/* Whether one of this account is under way. */
tide_status tide_mail_listing_open(tide_rows db, uint32_t account, bool *open_out, tide_error *err);
/* One span is listed, `more` came instead of it; *left_out are left. */
tide_status tide_mail_listing_step(tide_rows db, uint64_t id, uint64_t more, uint64_t *left_out,
                                   tide_error *err);
tide_status tide_mail_seen_add(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                               tide_error *err);
/* seen_out[i]: it was named. */
tide_status tide_mail_seen_get(tide_rows db, uint64_t listing, const tide_text *ids, size_t count,
                               bool *seen_out, tide_error *err);
/* How many were named, and one of them; "": none. */
tide_status tide_mail_seen_some(tide_rows db, uint64_t listing, uint64_t *count_out,
                                char id_out[65], tide_error *err);
/* Forgets at most `rows_max` ids, and the listing with the last of them. */
tide_status tide_mail_seen_forget(tide_rows db, uint64_t listing, uint32_t rows_max,
                                  bool *empty_out, tide_error *err);

#endif
