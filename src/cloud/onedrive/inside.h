/* inside.h - shared by the files of the OneDrive client.
 *
 *   methods.c   the methods and their costs; open and close; paths and headers of a call
 *   item.c      checks items (ODR1)
 *   read.c      drives, items, lists, changes
 *   change.c    folders, names, places, times, deletions
 *   upload.c    sessions, fragments, empty files
 *   download.c  content
 *   watch.c     subscriptions */
#ifndef TIDE_CLOUD_ONEDRIVE_INSIDE_H
#define TIDE_CLOUD_ONEDRIVE_INSIDE_H

#include "cloud/onedrive/onedrive.h"
#include "net/api/ask.h"

/* The numbers identify latencies that the governor keeps and saves: they must not change. */
enum tide_onedrive_method {
    TIDE_ONEDRIVE_DRIVE = 1,
    TIDE_ONEDRIVE_GET = 2,
    TIDE_ONEDRIVE_CHILDREN = 3,
    TIDE_ONEDRIVE_DELTA = 4,
    TIDE_ONEDRIVE_CREATE = 5,
    TIDE_ONEDRIVE_UPDATE = 6,
    TIDE_ONEDRIVE_DELETE = 7,
    TIDE_ONEDRIVE_SESSION = 8,
    TIDE_ONEDRIVE_FRAGMENT = 9,
    TIDE_ONEDRIVE_STATUS = 10,
    TIDE_ONEDRIVE_CANCEL = 11,
    TIDE_ONEDRIVE_PUT = 12,
    TIDE_ONEDRIVE_CONTENT = 13,
    TIDE_ONEDRIVE_WATCH = 14,
    TIDE_ONEDRIVE_WATCH_CHANGE = 15,
    TIDE_ONEDRIVE_METHODS,
};

struct tide_onedrive {
    tide_mem *mem;
    tide_api *api;
    tide_batcher *batcher; /* NULL: there are no batches */
};

/* Begins a call at a drive. */
void tide_onedrive_ask(struct tide_api_ask *ask, tide_onedrive *onedrive, tide_job *job,
                       enum tide_onedrive_method method, tide_text drive);
/* Appends an item: by its id (empty: the root), or by a path below it. */
void tide_onedrive_ask_item(struct tide_api_ask *ask, tide_text id);
void tide_onedrive_ask_below(struct tide_api_ask *ask, tide_text id, tide_text path);

/* Sends as a part of a batch if the client has batches and the call has a job, else alone.  The
 * body of the answer is in ask->response.  Errors begin with the name of the method. */
tide_status tide_onedrive_send_batched(tide_onedrive *onedrive, struct tide_api_ask *ask,
                                       tide_error *err);
/* Reads an item out of an answer. */
tide_status tide_onedrive_answer_read(const struct tide_api_ask *ask,
                                      struct tide_onedrive_answer *answer_out, tide_error *err);
/* Sends alone, and reads an item out of the answer. */
tide_status tide_onedrive_ask_answer(struct tide_api_ask *ask,
                                     struct tide_onedrive_answer *answer_out, tide_error *err);
/* The body of a call.  TIDE_INVALID: a text in it is too long. */
tide_status tide_onedrive_body(tide_json *json, tide_buf *body_out, tide_error *err);
/* Sets an If-Match header; `header` stays alive until the call is sent.  An empty tag: none. */
void tide_onedrive_if_match(struct tide_api_ask *ask, tide_text tag, struct tide_header *header);
void tide_onedrive_time_set(tide_json *json, const char *key, uint64_t unix_ms);

/* ---- answers (item.c) ---- */

/* TIDE_SERVER names the field.  Texts are borrowed from the value. */
tide_status tide_onedrive_item_read(const json_t *value, struct tide_onedrive_item *item_out,
                                    tide_error *err);
tide_status tide_onedrive_drive_read(const json_t *value, struct tide_onedrive_drive *drive_out,
                                     tide_error *err);
/* A text of at most `bytes_max` bytes; absent or null: unchanged. */
tide_status tide_onedrive_text(const json_t *object, const char *key, size_t bytes_max,
                               tide_text *text_out, tide_error *err);
/* Whole seconds; absent, or not a time after 1970: unchanged. */
tide_status tide_onedrive_time(const json_t *object, const char *key, uint64_t *unix_ms_out,
                               tide_error *err);

#endif
