/* gmail.h - the Gmail API as the mail system uses it.
 *
 * Each function is one call (or one HTTP batch) under the account's governor,
 * charged with its price (quota of 2026), judged by net/google.h, signed with
 * the account's token; a 401 refreshes and tries once more.  Answers of any size
 * are bounded; the raw message is taken out of its JSON while it streams, so
 * that 100 MB cost one copy.
 *
 * It knows nothing of slices, archives or ledgers.
 *
 * Invariants:
 *   G1  ids and history ids are opaque texts; nothing is computed with them.
 *   G2  a body is given to the caller byte for byte as the server encoded it, or
 *       not at all (TIDE_SERVER).
 *   G3  missing fields and unknown ones are normal; wrong types are TIDE_SERVER.
 */
#ifndef TIDE_CLOUD_GMAIL_H
#define TIDE_CLOUD_GMAIL_H

#include "base/json.h"
#include "net/oauth.h"
#include "tidemark.h"

typedef struct tide_gmail tide_gmail;

enum {
    TIDE_GMAIL_PAGE_MAX = 500,
    TIDE_GMAIL_IDS_MAX = 1000, /* of batchModify and batchDelete */
    TIDE_GMAIL_MESSAGE_BYTES_MAX = 160 << 20,
};

/* Of one account; shared by all threads. `endpoint` NULL: Google's. */
tide_status tide_gmail_open(const char *endpoint, tide_tokens *tokens, tide_mem *mem,
                            tide_gmail **gmail_out, tide_error *err);
void tide_gmail_close(tide_gmail *gmail); /* NULL is fine */

struct tide_gmail_profile {
    char email[256];
    uint64_t messages;
    char history_id[64];
};
/* TIDE_PERMANENT with code 404 or 501: an emulator without it. */
tide_status tide_gmail_profile(tide_gmail *gmail, tide_job *job,
                               struct tide_gmail_profile *profile_out, tide_error *err);

struct tide_gmail_page {
    json_t *value;     /* owned by the page */
    const json_t *ids; /* array of {"id","threadId"}; NULL when empty */
    tide_text next;    /* "" on the last page */
};
void tide_gmail_page_done(struct tide_gmail_page *page); /* a zeroed one is fine */
/* `query` as Gmail's q; spam and trash included. */
tide_status tide_gmail_list(tide_gmail *gmail, tide_job *job, const char *query, tide_text token,
                            struct tide_gmail_page *page_out, tide_error *err);

struct tide_gmail_message {
    tide_text id, thread_id, history_id; /* in `fields` */
    int64_t internal_ms;
    json_t *labels; /* array of ids; may be NULL */
    tide_buf raw;   /* the bytes (G2) */
    json_t *fields; /* everything but raw; owned */
};
void tide_gmail_message_init(struct tide_gmail_message *message, tide_mem *mem);
void tide_gmail_message_done(struct tide_gmail_message *message);
/* format=raw, streamed. */
tide_status tide_gmail_get(tide_gmail *gmail, tide_job *job, tide_text id,
                           struct tide_gmail_message *message_out, tide_error *err);
/* format=minimal: labels and dates; raw stays empty. */
tide_status tide_gmail_get_minimal(tide_gmail *gmail, tide_job *job, tide_text id,
                                   struct tide_gmail_message *message_out, tide_error *err);

struct tide_gmail_history {
    json_t *value;
    const json_t *records; /* array; NULL when nothing changed */
    tide_text next;
    tide_text history_id; /* where the mailbox stands; save it after the last page */
};
void tide_gmail_history_done(struct tide_gmail_history *history);
/* TIDE_GONE: the start has expired. */
tide_status tide_gmail_history(tide_gmail *gmail, tide_job *job, tide_text start, tide_text token,
                               struct tide_gmail_history *history_out, tide_error *err);

/* {"labels":[...]}; owned by the caller. */
tide_status tide_gmail_labels(tide_gmail *gmail, tide_job *job, json_t **labels_out,
                              tide_error *err);
tide_status tide_gmail_label_create(tide_gmail *gmail, tide_job *job, tide_text name,
                                    tide_buf *id_out, tide_error *err);

tide_status tide_gmail_modify(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              const char *const *add, const char *const *take, tide_error *err);
tide_status tide_gmail_delete(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              tide_error *err);
/* The bytes with their labels and date (internalDateSource=dateHeader or the
 * given date).  *id_out is the new id. */
tide_status tide_gmail_insert(tide_gmail *gmail, tide_job *job, tide_text raw,
                              const tide_text *labels, size_t labels_count, tide_text thread_id,
                              tide_buf *id_out, tide_error *err);

#endif
