/* mail_state.h - the rows that the mail system keeps in state.db, beside the
 * ledger and in its transactions (E1.6).
 *
 *   mail_account  who, where, how the last run began
 *   mail_mark     (stream, ordinal) -> history id: adopted when the stream's
 *                 cursor has passed that cycle
 *   mail_shard    what the archive looked like (M4)
 *
 * All functions run inside a transaction on the ledger's writer. */
#ifndef TIDE_MAIL_STATE_H
#define TIDE_MAIL_STATE_H

#include "mail/archive.h"
#include "tidemark.h"

struct sqlite3;

struct tide_mail_row {
    uint32_t account;
    char email[256];
    char endpoint[512]; /* "": Google's */
    uint32_t epoch;     /* its stream is mail.EPOCH; grows when the watermark starts again */
    uint64_t messages_total;
    uint64_t last_run_ms;
};

tide_status tide_mail_tables(struct sqlite3 *db, tide_error *err);
tide_status tide_mail_row_put(struct sqlite3 *db, const struct tide_mail_row *row, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_mail_row_get(struct sqlite3 *db, uint32_t account, struct tide_mail_row *row_out,
                              tide_error *err);
tide_status tide_mail_rows(struct sqlite3 *db,
                           void (*visit)(const struct tide_mail_row *row, void *arg), void *arg,
                           tide_error *err);
tide_status tide_mail_row_remove(struct sqlite3 *db, uint32_t account, tide_error *err);

tide_status tide_mail_mark_put(struct sqlite3 *db, uint64_t stream, uint64_t ordinal,
                               tide_text history_id, tide_error *err);
/* Of the last cycle below `finished` that has one; TIDE_NOT_FOUND. */
tide_status tide_mail_mark_get(struct sqlite3 *db, uint64_t stream, uint64_t finished,
                               char history_id_out[64], tide_error *err);

/* What the archive showed last; replaces. */
tide_status tide_mail_shard_put(struct sqlite3 *db, uint32_t account,
                                const struct tide_shard_state *shard, tide_error *err);
/* Calls `visit` for each shard that was seen. */
tide_status tide_mail_shards(struct sqlite3 *db, uint32_t account,
                             void (*visit)(const struct tide_shard_state *shard, void *arg),
                             void *arg, tide_error *err);

#endif
