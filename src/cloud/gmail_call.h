/* gmail_call.h - shared by the files of the Gmail client: the methods, and one request.
 *
 *   gmail_call.c    opening, the methods and their costs, building and sending a request
 *   gmail.c         reads: profile, lists, history, messages, labels
 *   gmail_change.c  writes: labels, changes, deletes, inserts
 *   gmail_answer.c  checks answers (G3)
 *   gmail_raw.c     takes the bytes of a message out of its JSON while it streams in */
#ifndef TIDE_CLOUD_GMAIL_CALL_H
#define TIDE_CLOUD_GMAIL_CALL_H

#include "cloud/gmail.h"
#include "net/api/call.h"

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
    TIDE_GMAIL_METHODS,
};

enum { TIDE_GMAIL_SMALL_BYTES_MAX = 1 << 20 }; /* answers without lists */

struct tide_gmail {
    tide_mem *mem;
    tide_api *api;
};
/* Like tide_gmail_open(); the provider is set here. */
tide_status tide_gmail_open_with(struct tide_api_options options, tide_mem *mem,
                                 tide_gmail **gmail_out, tide_error *err);

/* One request, and its answer; embedded value. */
struct tide_gmail_ask {
    tide_gmail *gmail;
    tide_job *job;
    tide_buf path;
    tide_status failed; /* sticky failure while building it */
    struct tide_api_call call;
    struct tide_response response;
};
/* `path` from the root.  The answer is a small one. */
void tide_gmail_ask_init(struct tide_gmail_ask *ask, tide_gmail *gmail, tide_job *job,
                         enum tide_gmail_method method, const char *path);
/* Like tide_gmail_ask_init() for one message; `rest` is the method and the parameters. */
void tide_gmail_ask_message(struct tide_gmail_ask *ask, tide_gmail *gmail, tide_job *job,
                            enum tide_gmail_method method, tide_text id, const char *rest);
void tide_gmail_ask_done(struct tide_gmail_ask *ask);
void tide_gmail_ask_add(struct tide_gmail_ask *ask, const char *text);
/* Appends an untrusted value: everything but letters, digits and "-._~" is escaped. */
void tide_gmail_ask_value(struct tide_gmail_ask *ask, tide_text value);

const char *tide_gmail_ask_name(const struct tide_gmail_ask *ask); /* "messages.get" */
tide_status tide_gmail_ask_send(struct tide_gmail_ask *ask, tide_error *err);
/* Sends and parses the answer as a JSON object. */
tide_status tide_gmail_ask_json(struct tide_gmail_ask *ask, json_t **value_out, tide_error *err);
/* Prefixes an error with its method; text, status and code stay.  Returns `rc`. */
tide_status tide_gmail_ask_named(const struct tide_gmail_ask *ask, tide_status rc, tide_error *err);

#endif
