/* gmail_methods.h - shared by the files of the Gmail client: the methods.
 *
 *   gmail_methods.c  the methods and their costs
 *   gmail.c          reads: profile, lists, history, messages, labels
 *   gmail_change.c   writes: labels, changes, deletes, inserts
 *   gmail_send.c     sends mail: about alerts, and replies
 *   gmail_threads.c  threads: reads, labels
 *   gmail_drafts.c   drafts: made, found, read, changed, sent, removed
 *   gmail_upload.c   drafts with large files, in parts
 *   gmail_parts.c    a message in parts: headers and texts
 *   gmail_answer.c   checks answers (GML3)
 *   gmail_raw.c      takes the bytes of a message out of its JSON while it streams in */
#ifndef TIDE_CLOUD_GMAIL_METHODS_H
#define TIDE_CLOUD_GMAIL_METHODS_H

#include "cloud/gmail.h"
#include "net/api/ask.h"
#include "net/api/list.h"

/* The numbers identify latencies that the governor keeps and saves: they must not change. */
enum tide_gmail_method {
    TIDE_GMAIL_PROFILE = 1,
    TIDE_GMAIL_LIST = 2,
    TIDE_GMAIL_GET = 3,
    TIDE_GMAIL_GET_MINIMAL = 4,
    TIDE_GMAIL_HISTORY = 5,
    TIDE_GMAIL_LABELS = 6,
    TIDE_GMAIL_LABEL_CREATE = 7,
    TIDE_GMAIL_MODIFY = 8,
    TIDE_GMAIL_BATCH_MODIFY = 9,
    TIDE_GMAIL_DELETE = 10,
    TIDE_GMAIL_BATCH_DELETE = 11,
    TIDE_GMAIL_INSERT = 12,
    TIDE_GMAIL_SEND = 13,
    TIDE_GMAIL_WATCH = 14,
    TIDE_GMAIL_THREAD_GET = 15,
    TIDE_GMAIL_THREAD_LOOK = 16, /* metadata and minimal */
    TIDE_GMAIL_THREAD_MODIFY = 17,
    TIDE_GMAIL_TRASH = 18,
    TIDE_GMAIL_DRAFT_CREATE = 19,
    TIDE_GMAIL_DRAFT_LIST = 20,
    TIDE_GMAIL_DRAFT_GET = 21,
    TIDE_GMAIL_DRAFT_DELETE = 22,
    TIDE_GMAIL_DRAFT_UPDATE = 23,
    TIDE_GMAIL_DRAFT_SEND = 24,
    TIDE_GMAIL_UPLOAD_CREATE = 25, /* begins an upload; what it makes is made by its last part */
    TIDE_GMAIL_UPLOAD_UPDATE = 26,
    TIDE_GMAIL_UPLOAD = 27, /* a part, or the question how far it is */
    TIDE_GMAIL_LABEL_GET = 28,
    TIDE_GMAIL_METHODS,
};

extern const struct tide_provider_net tide_gmail_api;

/* Like tide_api_ask_init() for one message; `rest` is the method and the parameters. */
void tide_gmail_ask_message(struct tide_api_ask *ask, tide_gmail *gmail, tide_job *job,
                            enum tide_gmail_method method, tide_text id, const char *rest);

/* The end of a call that created an object, which exists whatever its answer looks like: repeating
 * the call would create another one.  Takes its id. */
tide_status tide_gmail_made(const struct tide_api_ask *ask, const json_t *value, tide_buf *id_out,
                            tide_status rc, tide_error *err);
struct tide_gmail_draft;
/* {"id","message":{"id","threadId"}}; false: an id is missing or too long. */
bool tide_gmail_draft_read(const json_t *value, struct tide_gmail_draft *draft);
/* {"ids":[],"addLabelIds":[],"removeLabelIds":[]}; without ids where the URL names the object. */
tide_status tide_gmail_change_body(const tide_text *ids, size_t count, const char *const *add,
                                   const char *const *take, tide_buf *body, tide_error *err);

#endif
