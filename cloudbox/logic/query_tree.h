/* query_tree.h - the parsed form of a query, shared by query.c and query_match.c.
 *
 * Negations are pushed down to the terms while parsing, so the tree has only
 * AND, OR and terms that may be negated.  What can be decided at once is
 * folded away: ALL and NONE occur at the root alone.
 */
#ifndef BOX_QUERY_TREE_H
#define BOX_QUERY_TREE_H

#include "logic/query.h"

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

/* Words in a form in which equal ones are equal bytes: " cafe 日 本 ".  Case and
 * the accents of Latin letters are gone, anything between words is one blank,
 * a character of a script without spaces is a word of its own.  Nothing is
 * appended when there is no word.  Stops where `out` is full. */
void box_query_fold(tide_text text, tide_buf *out);

#endif
