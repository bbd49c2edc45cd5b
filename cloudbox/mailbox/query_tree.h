/* query_tree.h - the parsed form of a query, shared by query.c and query_match.c.
 *
 * Negations are pushed down to the terms while parsing, so the tree has only
 * AND, OR and terms that may be negated.  What can be decided at once is
 * folded away: ALL and NONE occur at the root alone.
 */
#ifndef BOX_QUERY_TREE_H
#define BOX_QUERY_TREE_H

#include "cloudbox/mailbox/query.h"

typedef enum box_term {
    BOX_TERM_AND,
    BOX_TERM_OR,
    BOX_TERM_ALL,
    BOX_TERM_NONE,
    BOX_TERM_LABEL,
    BOX_TERM_DATE,        /* low <= internal date < high; UINT64_MAX: no bound */
    BOX_TERM_SIZE,        /* the same for bytes */
    BOX_TERM_USER_LABELS, /* has at least one */
    BOX_TERM_MESSAGE_ID,
    BOX_TERM_HEADER,     /* `text` is a piece of the header */
    BOX_TERM_SUBJECT,    /* `text` as whole words */
    BOX_TERM_WORDS,      /* the same anywhere */
    BOX_TERM_FILENAME,   /* the same in one file name */
    BOX_TERM_ATTACHMENT, /* has one */
} box_term;

typedef enum box_query_header {
    BOX_QUERY_FROM,
    BOX_QUERY_TO,
    BOX_QUERY_CC,
    BOX_QUERY_BCC,
    BOX_QUERY_LIST,
    BOX_QUERY_DELIVERED_TO,
} box_query_header;

/* What looking at a term costs: nothing, the message's head, all of it. */
typedef enum box_query_cost {
    BOX_COST_FREE,
    BOX_COST_HEAD,
    BOX_COST_BODY,
    BOX_COSTS
} box_query_cost;

struct box_query_node {
    box_term term;
    bool negated;
    box_query_cost cost; /* the dearest below it */
    box_query_header header;
    uint32_t label;
    uint64_t low, high;
    tide_text text; /* folded, except a message id */
    struct box_query_node *first, *last, *next;
};

struct box_query {
    const struct box_query_node *root;
    struct box_query_plan plan;
    uint16_t labels[BOX_QUERY_LABELS_MAX]; /* of the plan */
};

/* ---- while parsing ---- */

typedef enum box_operator {
    BOX_OP_WORD, /* none: a bare word */
    BOX_OP_UNKNOWN,
    BOX_OP_AFTER,
    BOX_OP_BCC,
    BOX_OP_BEFORE,
    BOX_OP_CATEGORY,
    BOX_OP_CC,
    BOX_OP_DELIVERED_TO,
    BOX_OP_FILENAME,
    BOX_OP_FROM,
    BOX_OP_HAS,
    BOX_OP_IN,
    BOX_OP_IS,
    BOX_OP_LABEL,
    BOX_OP_LARGER,
    BOX_OP_LIST,
    BOX_OP_MESSAGE_ID,
    BOX_OP_NEWER_THAN,
    BOX_OP_OLDER_THAN,
    BOX_OP_SMALLER,
    BOX_OP_SUBJECT,
    BOX_OP_TO,
} box_operator;

struct box_query_making {
    uint64_t now_ms;
    const box_mailbox *mailbox;
    tide_arena *arena;
    size_t nodes;
    bool beyond;     /* a bound was reached: the whole query matches nothing (BQRY1) */
    bool spam_trash; /* a term asks for them */
};

struct box_query_node *box_query_node_new(struct box_query_making *making, box_term term);
/* The node of an operator with its value.  NULL: nothing that counts, such as
 * punctuation on its own. */
struct box_query_node *box_query_term(struct box_query_making *making, box_operator op,
                                      tide_text value, bool negated);
/* Equal, case aside; `name` is in lower case. */
bool box_query_same(tide_text text, const char *name);

/* ---- words ---- */

/* Words in a form in which equal ones are equal bytes: " cafe 日 本 ".  Case and
 * the accents of Latin letters are gone, anything between words is one blank,
 * a character of a script without spaces is a word of its own.  Nothing is
 * appended when there is no word.  Stops where `out` is full. */
void box_query_fold(tide_text text, tide_buf *out);

#endif
