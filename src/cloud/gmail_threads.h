/* gmail_threads.h - threads of the Gmail API: read whole or in part, and labeled.
 *
 * Calls as in gmail.h, with its statuses and invariants (GML1 to GML5).  An answer is taken apart
 * while it streams in, message by message (gmail_parts.h), so that a thread of many long messages
 * costs the memory of its longest one and of the texts that are kept.
 *
 * Invariants:
 *   GTH1  an answer is about the thread that was asked for, and all its messages are in it.
 *   GTH2  messages are in the order of their internal dates, and of the answer where these are equal.
 *   GTH3  a thread over TIDE_GMAIL_IDS_MAX messages, or an answer over 64 MiB, is TIDE_FULL: no
 *         part of a thread is ever taken for all of it.
 */
#ifndef TIDE_CLOUD_GMAIL_THREADS_H
#define TIDE_CLOUD_GMAIL_THREADS_H

#include "cloud/gmail_parts.h"

struct tide_gmail_thread {
    tide_mem *mem;
    char id[64];
    char history_id[64]; /* "" when the server does not say */
    struct tide_gmail_parts *messages;
    size_t count, capacity;
};
void tide_gmail_thread_init(struct tide_gmail_thread *thread, tide_mem *mem);
void tide_gmail_thread_done(struct tide_gmail_thread *thread);

/* format=full: headers and texts.  40 units.  TIDE_GONE: it has no message any more. */
tide_status tide_gmail_thread_get(tide_gmail *gmail, tide_job *job, tide_text id,
                                  struct tide_gmail_thread *thread_out, tide_error *err);
/* format=metadata with these headers (a NULL-terminated list), or minimal (NULL): labels and dates.
 * 40 units. */
tide_status tide_gmail_thread_look(tide_gmail *gmail, tide_job *job, tide_text id,
                                   const char *const *headers, struct tide_gmail_thread *thread_out,
                                   tide_error *err);

/* The newest message that is neither a draft nor in the trash; NULL: none. */
const struct tide_gmail_parts *tide_gmail_thread_last(const struct tide_gmail_thread *thread);
/* Whether any message has the label. */
bool tide_gmail_thread_labeled(const struct tide_gmail_thread *thread, const char *label);
/* How many messages are neither drafts nor in the trash. */
size_t tide_gmail_thread_letters(const struct tide_gmail_thread *thread);

/* Adds and removes labels of every message that is in the thread now.  Safe to repeat.  10 units.
 * TIDE_GONE: there is no such thread. */
tide_status tide_gmail_thread_modify(tide_gmail *gmail, tide_job *job, tide_text id,
                                     const char *const *add, const char *const *take,
                                     tide_error *err);

/* Puts a message into the trash; one that is gone is fine.  Safe to repeat.  20 units. */
tide_status tide_gmail_trash(tide_gmail *gmail, tide_job *job, tide_text id, tide_error *err);

#endif
