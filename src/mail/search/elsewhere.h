/* elsewhere.h - a query over messages that no shard has: those of the reader's cache (M10, K5).
 *
 * It becomes the same plan as over shards, and the plan a condition of SQL: the rows of a cache are few,
 * and not in the order of time.  The database has to have
 *
 *     words          as a shard has it; its rowid is the number of a message
 *     label          id, label, name, type
 *     message_label  message, label: numbers of both
 *
 * and a message is the row m: id, internal_ms, bytes, files, sender, recipients, cc, message_id.  What only
 * the bytes of a message say (list:, deliveredto:, bcc:) is not known of it, and so never matches.
 */
#ifndef TIDE_MAIL_ELSEWHERE_H
#define TIDE_MAIL_ELSEWHERE_H

#include "db/db.h"
#include "mail/search/search.h"

typedef struct tide_elsewhere tide_elsewhere;

struct tide_elsewhere_options {
    const tide_query *query;
    const tide_db *db;   /* open; borrowed, as the rest, until the end */
    const char *account; /* "me" */
    bool lenient;        /* a label that is not there is one that no message has */
    const tide_cancel *cancel;
};
/* TIDE_INVALID: a label that is not there, or no word in the query. */
tide_status tide_elsewhere_open(const struct tide_elsewhere_options *options, tide_mem *mem,
                                tide_elsewhere **elsewhere_out, tide_error *err);
void tide_elsewhere_close(tide_elsewhere *elsewhere); /* NULL is fine; no statement is under way */

/* Appends the condition.  `loose`: of messages whose labels are other ones than those in the database;
 * every message that the query could find with some labels. */
tide_status tide_elsewhere_condition(tide_elsewhere *elsewhere, bool loose, tide_buf *sql,
                                     tide_error *err);
/* Whether a message with these labels can be a match, whatever the rest of it is. */
bool tide_elsewhere_may(const tide_elsewhere *elsewhere, bool (*has)(tide_text label, void *arg),
                        void *arg);

#endif
