/* gmail.h - a client of the Gmail API for the mail system.
 *
 * Each function is one call under the job's governor, charged with its cost (quota of 2026),
 * judged by net/judge_google.h, sent with the account's token; a 401 refreshes and tries
 * once more (net/api/call.h).  Answers of any size are bounded; the raw message is taken out of its JSON
 * while it streams (gmail_raw.h), so that 100 MB cost one copy.
 *
 * It knows nothing of slices, archives or ledgers, and waits only for the network: without
 * units it returns TIDE_AGAIN, which the handler returns.
 *
 * What any of them may return: TIDE_AGAIN, TIDE_THROTTLED, TIDE_AUTH, TIDE_NETWORK,
 * TIDE_TIMEOUT, TIDE_CANCELED, TIDE_STOPPED, TIDE_GONE (404), TIDE_PERMANENT (400, 403),
 * TIDE_SERVER (5xx, malformed answers), TIDE_FULL, TIDE_NO_MEMORY; err->code is the HTTP
 * status when there was one.
 *
 * Compression (net/api/call.h) is requested over https only.  There it saves a quarter of a body that is
 * noise and more than half of one that is text, for about 70 us of inflating in 10 kB
 * (bench/gmail_bench), while quota allows a few messages a second.
 *
 * Invariants:
 *   GML1  ids and history ids are opaque texts; nothing is computed with them.
 *   GML2  the caller gets a body byte for byte as the server encoded it, or not at all
 *         (TIDE_SERVER).
 *   GML3  missing fields and unknown ones are normal; wrong types are TIDE_SERVER.  Everything a
 *         function returns has been checked: every entry of a page has its "id", every list of
 *         labels is a list of texts.
 *   GML4  an answer to get is about the message that was asked for.
 *   GML5  a refused token costs one more call.  If the next one is refused as well, before any was
 *         accepted, that is TIDE_AUTH, also after a wait for units in between.
 */
#ifndef TIDE_CLOUD_GMAIL_H
#define TIDE_CLOUD_GMAIL_H

#include "base/json.h"
#include "net/oauth/oauth.h"
#include "tidemark.h"

typedef struct tide_api tide_gmail; /* net/api/call.h */

enum {
    TIDE_GMAIL_PAGE_MAX = 500,
    TIDE_GMAIL_GET_UNITS = 20, /* of a message, since May 2026 */
    TIDE_GMAIL_IDS_MAX = 1000, /* of batchModify and batchDelete */
    TIDE_GMAIL_MESSAGE_BYTES_MAX = 160 << 20,
};

/* "messages.get"; NULL: there is none. */
const char *tide_gmail_method_name(uint32_t method);

/* A client for one account; shared by all threads.  `endpoint` is scheme, host and port
 * ("http://127.0.0.1:4443"); NULL: Google's.  `tokens` is borrowed and outlives it. */
tide_status tide_gmail_open(const char *endpoint, tide_tokens *tokens, tide_mem *mem,
                            tide_gmail **gmail_out, tide_error *err);
/* The same for handlers of several calls: each waits up to `patience_ms` for its units (net/api/call.h
 * API6) before it is TIDE_AGAIN. */
tide_status tide_gmail_open_patient(const char *endpoint, tide_tokens *tokens, uint32_t patience_ms,
                                    tide_mem *mem, tide_gmail **gmail_out, tide_error *err);
void tide_gmail_close(tide_gmail *gmail); /* NULL is fine */

/* A field that the server left out is "" or 0. */
struct tide_gmail_profile {
    char email[256];
    uint64_t messages;
    char history_id[64];
};
/* TIDE_GONE: this server has no such method (404, 405 or 501; the emulator of npm's `emulate` is
 * one).  Gmail itself never answers so, and a caller can do without it: any history page has the
 * history id, and a listing the count. */
tide_status tide_gmail_profile(tide_gmail *gmail, tide_job *job,
                               struct tide_gmail_profile *profile_out, tide_error *err);

/* Finds whose mailbox a token opens, before there is an account (M19a): one call, charged to no
 * account.  `endpoint` NULL: Google's.  Else as tide_gmail_profile(). */
tide_status tide_gmail_whose(tide_world *world, const char *endpoint, tide_text bearer,
                             tide_mem *mem, const tide_cancel *cancel,
                             struct tide_gmail_profile *profile_out, tide_error *err);

struct tide_gmail_page {
    json_t *value;     /* owned by the page */
    const json_t *ids; /* array of {"id","threadId"}; NULL when empty, also before the last page */
    tide_text next;    /* "" on the last page */
};
void tide_gmail_page_done(struct tide_gmail_page *page); /* zeroed is fine */
/* `query` as Gmail's q, NULL: everything; spam and trash included.  `token` is the `next` of the
 * previous page, "" at first. */
tide_status tide_gmail_list(tide_gmail *gmail, tide_job *job, const char *query, tide_text token,
                            struct tide_gmail_page *page_out, tide_error *err);

/* The same for one label, and a page of any size.  TIDE_PERMANENT: there is no such label. */
struct tide_gmail_listing {
    tide_text label;    /* its id; "": all mail */
    const char *query;  /* as above; NULL: none */
    uint32_t count_max; /* of a page, 1 to TIDE_GMAIL_PAGE_MAX */
    bool all;           /* spam and trash as well */
};
tide_status tide_gmail_list_some(tide_gmail *gmail, tide_job *job,
                                 const struct tide_gmail_listing *listing, tide_text token,
                                 struct tide_gmail_page *page_out, tide_error *err);

struct tide_gmail_message {
    tide_text id, thread_id, history_id; /* in `fields`; "" when missing, the id never is */
    int64_t internal_ms;                 /* since 1970; 0 when missing */
    uint64_t size_estimate;              /* the size according to the server; 0 when missing */
    json_t *labels;                      /* array of ids, in `fields`; NULL: none */
    tide_buf raw;                        /* the bytes (GML2) */
    json_t *fields;                      /* everything but raw; owned */
};
void tide_gmail_message_init(struct tide_gmail_message *message, tide_mem *mem);
void tide_gmail_message_done(struct tide_gmail_message *message);
/* format=raw, streamed.  Frees the message's old content first, also on failure, so that two
 * large ones are never in memory.  TIDE_GONE: it was deleted.  TIDE_FULL: larger than
 * TIDE_GMAIL_MESSAGE_BYTES_MAX. */
tide_status tide_gmail_get(tide_gmail *gmail, tide_job *job, tide_text id,
                           struct tide_gmail_message *message_out, tide_error *err);
/* format=minimal: labels and dates; raw stays empty. */
tide_status tide_gmail_get_minimal(tide_gmail *gmail, tide_job *job, tide_text id,
                                   struct tide_gmail_message *message_out, tide_error *err);

struct tide_gmail_history {
    json_t *value;
    const json_t *records; /* array; NULL when nothing changed */
    tide_text next;        /* "" on the last page */
    tide_text history_id;  /* current state of the mailbox; save it after the last page */
};
void tide_gmail_history_done(struct tide_gmail_history *history);
/* All kinds of changes.  TIDE_GONE: the start id has expired. */
tide_status tide_gmail_history(tide_gmail *gmail, tide_job *job, tide_text start, tide_text token,
                               struct tide_gmail_history *history_out, tide_error *err);

/* {"labels":[{"id","name",...}]}; owned by the caller. */
tide_status tide_gmail_labels(tide_gmail *gmail, tide_job *job, json_t **labels_out,
                              tide_error *err);
/* How many messages have this label.  TIDE_GONE: there is no such label, or no such method. */
tide_status tide_gmail_label_total(tide_gmail *gmail, tide_job *job, tide_text label,
                                   uint64_t *total_out, tide_error *err);
/* Asks Gmail to publish changes of the mailbox to a topic, "projects/P/topics/T", for seven days;
 * again: for seven more.  TIDE_GONE, TIDE_PERMANENT: no such topic, or Gmail may not publish there. */
tide_status tide_gmail_watch(tide_gmail *gmail, tide_job *job, const char *topic, tide_error *err);

/* TIDE_EXISTS: a label of that name exists (409).  TIDE_UNKNOWN: check the labels. */
tide_status tide_gmail_label_create(tide_gmail *gmail, tide_job *job, tide_text name,
                                    tide_buf *id_out, tide_error *err);
/* Finds the label of that name, or makes it.  *labels_io is the answer of tide_gmail_labels(), NULL:
 * it is asked for; owned by the caller, who may pass it on for the next name. */
tide_status tide_gmail_label_ensure(tide_gmail *gmail, tide_job *job, json_t **labels_io,
                                    tide_text name, tide_buf *id_out, tide_error *err);

/* Adds and removes labels (NULL-terminated lists, or NULL) of at most TIDE_GMAIL_IDS_MAX
 * messages.  Safe to repeat.  Messages that are gone are ignored, as Google does.  A single
 * message costs 5 units, any other number 50. */
tide_status tide_gmail_modify(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              const char *const *add, const char *const *take, tide_error *err);
/* Like tide_gmail_modify() for one message, for 5 units.  TIDE_GONE: the server does not have
 * it. */
tide_status tide_gmail_modify_one(tide_gmail *gmail, tide_job *job, tide_text id,
                                  const char *const *add, const char *const *take, tide_error *err);
/* Deletes permanently, bypassing the trash.  Limits as above; a single message costs 10 units. */
tide_status tide_gmail_delete(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              tide_error *err);
/* Inserts a message with its labels, dated by its Date header; `thread_id` may be "".  *id_out
 * is the new id, *thread_out (may be NULL) the thread it is in now ("" when the server does not
 * say).  TIDE_GONE: there is no such thread.  Not safe to repeat: after TIDE_UNKNOWN,
 * TIDE_TIMEOUT and TIDE_SERVER it is unknown whether it happened; search with rfc822msgid: first
 * (E1.9). */
tide_status tide_gmail_insert(tide_gmail *gmail, tide_job *job, tide_text raw,
                              const tide_text *labels, size_t labels_count, tide_text thread_id,
                              tide_buf *id_out, tide_buf *thread_out, tide_error *err);

/* A message of the account itself, sent outside of any job: one call of 100 units that no governor
 * counts.  It is for mail about alerts, a few in an hour, which the share of the window that is
 * never used has room for. */
struct tide_gmail_send {
    tide_text message;      /* RFC 5322 */
    const char *message_id; /* "<id@host>", as in the message */
    bool again;             /* it may have been sent: it is looked for first (E1.9) */
    const tide_cancel *cancel;
};
/* *id_out: Gmail's id; nothing is added when it had been sent before.  TIDE_UNKNOWN: it may have been
 * sent. */
tide_status tide_gmail_send(tide_world *world, const char *endpoint, tide_tokens *tokens,
                            const struct tide_gmail_send *send, tide_mem *mem, tide_buf *id_out,
                            tide_error *err);

#endif
