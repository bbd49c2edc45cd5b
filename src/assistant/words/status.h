/* status.h - words of the assistant's records: statuses, categories, labels; which status may follow
 * which.  Pure.
 *
 * The words are stored as text, so that a table can be read without this program.
 *
 *                    classified as needs_response
 *     (none) --------------------------------------> pending --draft made--> drafted
 *        |                                            ^   |                  | ^   |
 *        | classified as anything else                |   |   Rework label   | |   | the user sends it
 *        v                                            |   |                  v |   v
 *     skipped <--discarded, limit, classified away----+---+------ rework_requested  sent
 *        |                                            |                             |
 *        +-------- a new message, Needs Response -----+-----------------------------+
 *     archived: from everywhere, by the Done label; back by a new message or by Needs Response.
 *
 * Invariants:
 *   AST1  a record begins as pending or skipped.
 *   AST2  a status may follow itself: every handler may run twice (J17).
 *   AST3  sent is reached from drafted and rework_requested, when the user sends the draft, and from
 *         pending, when an agent that may send has answered (J15).
 *   AST4  drafted is reached only from pending and rework_requested: no draft is made but for a record
 *         that wants one.
 *   AST5  rework_requested is reached only from drafted: there is a draft to rework.
 */
#ifndef TIDE_ASSISTANT_WORDS_STATUS_H
#define TIDE_ASSISTANT_WORDS_STATUS_H

#include "base/text.h"

typedef enum tide_assistant_status {
    TIDE_ASSISTANT_NO_STATUS = 0, /* there is no record */
    TIDE_ASSISTANT_PENDING,
    TIDE_ASSISTANT_DRAFTED,
    TIDE_ASSISTANT_REWORK_REQUESTED,
    TIDE_ASSISTANT_SENT,
    TIDE_ASSISTANT_SKIPPED,
    TIDE_ASSISTANT_ARCHIVED,
    TIDE_ASSISTANT_STATUSES,
} tide_assistant_status;

typedef enum tide_assistant_category {
    TIDE_ASSISTANT_NO_CATEGORY = 0,
    TIDE_ASSISTANT_NEEDS_RESPONSE,
    TIDE_ASSISTANT_ACTION_REQUIRED,
    TIDE_ASSISTANT_PAYMENT_REQUEST,
    TIDE_ASSISTANT_FYI,
    TIDE_ASSISTANT_WAITING,
    TIDE_ASSISTANT_CATEGORIES,
} tide_assistant_category;

/* The labels of an account (J9).  The first five below the parent, from NEEDS_RESPONSE on, are those
 * of the categories. */
typedef enum tide_assistant_label {
    TIDE_ASSISTANT_LABEL_PARENT = 0,
    TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE,
    TIDE_ASSISTANT_LABEL_ACTION_REQUIRED,
    TIDE_ASSISTANT_LABEL_PAYMENT_REQUESTS,
    TIDE_ASSISTANT_LABEL_FYI,
    TIDE_ASSISTANT_LABEL_WAITING,
    TIDE_ASSISTANT_LABEL_OUTBOX,
    TIDE_ASSISTANT_LABEL_REWORK,
    TIDE_ASSISTANT_LABEL_DONE,
    TIDE_ASSISTANT_LABELS,
} tide_assistant_label;

/* AST1 to AST5; `from` NO_STATUS: there is no record yet. */
bool tide_assistant_may_follow(tide_assistant_status from, tide_assistant_status to);

/* "pending", "needs_response", "\U0001F916 AI/Needs Response"; "" for none. */
const char *tide_assistant_status_name(tide_assistant_status status);
const char *tide_assistant_category_name(tide_assistant_category category);
const char *tide_assistant_label_name(tide_assistant_label label);
/* NO_STATUS, NO_CATEGORY: there is none of that name. */
tide_assistant_status tide_assistant_status_of(tide_text name);
tide_assistant_category tide_assistant_category_of(tide_text name);
/* The label that says this category; there is one for each. */
tide_assistant_label tide_assistant_label_of(tide_assistant_category category);

#endif
