/* query.h - Gmail's search language, as the API understands it.
 *
 * Words, "phrases", implicit AND, OR and | (which bind first), (groups), {either
 * or}, -negation, and the operators from: to: cc: bcc: subject: label: in: is:
 * has: category: after: before: older: newer: older_than: newer_than: larger:
 * smaller: size: filename: rfc822msgid: list: deliveredto:, each also over a
 * group: subject:(a b).  An operator that does not exist or has a value that
 * makes no sense matches nothing, negated or not: the API answers 200 with no
 * results, so a wrong query looks like an empty mailbox.
 *
 * Words are whole words, case and Latin accents aside; in scripts without
 * spaces any piece will do.  from:, to: and the like take pieces of words; "me"
 * is the mailbox's owner.  k and M are 1024 and 1024 squared bytes; a month of
 * older_than has 30 days, a year 365.
 *
 * Dates without a time are midnight in Pacific standard time (UTC-8 all year);
 * numbers are epoch seconds; after is inclusive, before exclusive.
 *
 * Invariants:
 *   BQRY1  any text parses; depth and size are bounded (beyond: matches nothing).
 *   BQRY2  plan is never narrower than match: walking the plan and matching each message finds
 *          exactly what matching every message would find.
 */
#ifndef BOX_QUERY_H
#define BOX_QUERY_H

#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/mailbox/mime.h"

typedef struct box_query box_query;

enum {
    BOX_QUERY_BYTES_MAX = 8192,
    BOX_QUERY_NODES_MAX = 1024,
    BOX_QUERY_DEEP = 50,
    BOX_QUERY_LABELS_MAX = 16
};

/* In the arena and valid as long, but means something only until the mailbox next
 * changes: labels that no message has are decided here.  `now_ms` for older_than
 * and newer_than. */
const box_query *box_query_parse(tide_text text, uint64_t now_ms, const box_mailbox *mailbox,
                                 tide_arena *arena);

/* What must hold for every match: the walk to take. */
struct box_query_plan {
    bool nothing;         /* matches no message whatever it is */
    bool spam_trash;      /* says in:anywhere, in:spam, in:trash, ...: they are not left out */
    struct box_walk walk; /* labels point into the query */
    bool exact;           /* the walk alone decides; match need not be asked */
};
void box_query_plan(const box_query *query, struct box_query_plan *plan_out);

/* Whether one message matches; looks at its bytes only when a term needs them. */
bool box_query_match(const box_query *query, box_mailbox *mailbox, uint32_t slot);

#endif
