/* jobs.h - what the handlers of the reader share.
 *
 *     fetch.c    a task; headers of messages, fetched one by one and stored at once
 *     walk.c     reader.page, reader.refresh, reader.headers of a list
 *     poll.c     reader.headers of what changed
 *     body.c     reader.body, reader.offline
 *     search.c   reader.search
 *     action.c   reader.action
 *     send.c     what it does with a draft: sends, removes, copies it
 *     look.c     what became of drafts at Gmail
 *     folders.c  reader.folders
 *     evict.c    reader.evict
 *     people.c   reader.people
 *
 * Invariants:
 *   RJB1  a job that is interrupted (by a more urgent one, for units, by the network) keeps what it
 *         stored and what it listed: it continues with the next message.
 *         What it listed before the history was lost, or in a cache that vanished, it lists again.
 *   RJB2  what it wrote last says that all is there: token, floor, history id (KR4).
 *   RJB3  one message that the server refuses for good holds up no other: it is noted in the cache, and
 *         asked for again an hour later, or when a person opens it.
 */
#ifndef TIDE_READER_JOBS_H
#define TIDE_READER_JOBS_H

#include "cloud/gmail_parts.h"
#include "reader/inside.h"

enum { TIDE_READER_IDS_MAX = 3000 }; /* of a batch: they fit the resume data of a job */

/* A value of the cache: 1 since a history was lost.  Labels that changed meanwhile are known neither
 * here nor, perhaps, in the archive. */
#define TIDE_READER_BLIND "blind"
/* Another one: 1 since Gmail was asked for every draft after a history began: what happened before is in none. */
#define TIDE_READER_DRAFTS_ASKED "drafts_asked"
/* Another one: the id of the last draft that Gmail was asked for; "": the next round begins (look.c). */
#define TIDE_READER_DRAFTS_PLACE "drafts_place"
/* Another one: 1 from then until every row of the window was listed or asked for again. */
#define TIDE_READER_RESYNC "resync"

struct tide_reader_task {
    tide_reader *reader;
    tide_job *job;
    struct tide_reader_user *user;
    tide_cache *cache;
    tide_archive *archive; /* NULL: none */
    json_t *batch;         /* what it listed: {"ids": [...], ...}; NULL: nothing yet */
    json_t *letter_files;  /* of the draft that was sent (send.c); NULL: none */
};
/* Ends it also after a failure. */
tide_status tide_reader_task_begin(tide_reader *reader, tide_job *job,
                                   struct tide_reader_task *task, tide_error *err);
void tide_reader_task_end(struct tide_reader_task *task);

/* Another one: the beginning of the lists, a number that is drawn when they begin anew. */
#define TIDE_READER_LISTS "lists"

/* Takes `batch`: from now on an interrupted job continues with it (RJB1). */
tide_status tide_reader_batch_set(struct tide_reader_task *task, json_t *batch, tide_error *err);
/* Fetches the headers of those of its messages that neither cache nor archive has.  TIDE_PERMANENT: it
 * asked for several, and the server refused each (RJB3). */
tide_status tide_reader_batch_fetch(struct tide_reader_task *task, tide_error *err);
/* If `rc` is a refusal for good, notes it and returns TIDE_OK; else `rc`, with `why` in *err. */
tide_status tide_reader_refusal(struct tide_reader_task *task, tide_text id, tide_status rc,
                                const tide_error *why, tide_error *err);
/* Asks for messages that were refused an hour ago. */
tide_status tide_reader_refused_again(struct tide_reader_task *task, tide_error *err);
/* Enqueues reader.offline if there is a body to fetch (body.c). */
tide_status tide_reader_offline_follow(struct tide_reader_task *task, tide_error *err);
/* Enqueues reader.evict if the cache is larger than it may be (evict.c). */
tide_status tide_reader_evict_follow(struct tide_reader_task *task, tide_error *err);
/* Where the chosen window begins (walk.c, K8). */
int64_t tide_reader_window_begin(const struct tide_reader_task *task);
/* When a message arrived; 0: it is not known. */
int64_t tide_reader_time_of(struct tide_reader_task *task, tide_text id);
/* Whether cache or archive has its headers, and labels that hold. */
tide_status tide_reader_is_known(struct tide_reader_task *task, tide_text id, bool *known_out,
                                 tide_error *err);
/* Reads what changed and stores it; what is new is in task->batch then (poll.c).  *moved_out: the
 * history id is too old, and the lists were forgotten. */
tide_status tide_reader_poll(struct tide_reader_task *task, bool *moved_out, tide_error *err);

/* Sends the draft of an action, or removes it from the server; idempotent.  TIDE_PERMANENT, TIDE_INVALID,
 * TIDE_FULL, TIDE_GONE: it is refused, and the draft stays here. */
tide_status tide_reader_send_run(struct tide_reader_task *task,
                                 const struct tide_reader_action *action, tide_error *err);
/* After the end of that action: what is left of the draft goes, and the sent message is looked for. */
tide_status tide_reader_sent(struct tide_reader_task *task, const struct tide_reader_action *action,
                             tide_error *err);

/* Copies the drafts that are due to the server, and enqueues the next look. */
tide_status tide_reader_copies_run(struct tide_reader_task *task, tide_error *err);

/* A client for several calls in a row; closed with tide_gmail_close(). */
tide_status tide_reader_gmail_open(const struct tide_reader_task *task, tide_gmail **gmail_out,
                                   tide_error *err);
/* Asks what became of drafts whose message at Gmail is gone, and for the ids of those that were begun there
 * (look.c). */
tide_status tide_reader_drafts_look(struct tide_reader_task *task, tide_error *err);

static inline tide_text tide_reader_text(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? (tide_text){json_string_value(value), json_string_length(value)}
                                 : TIDE_TEXT("");
}

#endif
