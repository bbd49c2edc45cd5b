/* query_tree.h - the parsed form of a query; private to src/mail/search.
 *
 * Negations are pushed down to the terms while parsing, so that the tree has only AND, OR and terms
 * that may be negated.  Constants are folded.
 *
 * Invariants (tide_query_check() tests them):
 *   QRY1  an AND or OR has at least two children, none of its own kind, and is never negated; ALL
 *         and NONE occur only at the root.
 *   QRY2  a range of dates or sizes is not negated and is open at one end: its negation is such a
 *         range too.
 *   QRY3  at most TIDE_QUERY_DEEP groups deep, at most TIDE_QUERY_NODES_MAX terms.
 *   QRY4  words with an `other` are exact, and in any field or the subject.
 */
#ifndef TIDE_MAIL_QUERY_TREE_H
#define TIDE_MAIL_QUERY_TREE_H

#include "mail/search/search.h"

typedef enum tide_term {
    TIDE_TERM_AND,
    TIDE_TERM_OR,
    TIDE_TERM_ALL,
    TIDE_TERM_NONE,
    TIDE_TERM_WORDS,      /* `text` as a sequence of words in one of `fields` */
    TIDE_TERM_LABEL,      /* `text` is a name or an id */
    TIDE_TERM_DATE,       /* low <= internal date < high, in ms */
    TIDE_TERM_BYTES,      /* low <= size < high */
    TIDE_TERM_ATTACHMENT, /* has an attachment */
    TIDE_TERM_LIST,       /* `text` as a sequence of words in a header of a mailing list */
    TIDE_TERM_DELIVERED,  /* the same in Delivered-To */
    TIDE_TERM_USER_LABEL, /* has a label that the user made */
    TIDE_TERM_MESSAGE_ID, /* `text` without <> */
} tide_term;

enum {
    TIDE_IN_SUBJECT = 1,
    TIDE_IN_FROM = 2,
    TIDE_IN_TO = 4,
    TIDE_IN_CC = 8,
    TIDE_IN_BCC = 16,
    TIDE_IN_TEXT = 32,
    TIDE_IN_FILES = 64,
    TIDE_IN_ANY = 127,
};

struct tide_query_node {
    tide_term term;
    bool negated;
    bool me;      /* words: `text` is "me", the owner of the archive */
    bool exact;   /* words: no other forms of them */
    bool prefix;  /* words: the last one is the beginning of a word */
    bool address; /* words, delivered: `text` is local@domain, @domain or a domain: just that one */
    bool system;  /* label: `text` is an id of one of Gmail's own labels, known or not */
    uint8_t fields;
    uint32_t at; /* the character it starts at, from 1 */
    int64_t low, high;
    tide_text text; /* as written, terminated */
    /* Words: at most `near` - 1 words lie between `text` and `other`, in any order; 0: no `other`. */
    uint32_t near;
    tide_text other;
    struct tide_query_node *first, *last, *next;
};

struct tide_query {
    tide_mem *mem;
    tide_arena arena;
    const struct tide_query_node *root;
    bool spam_trash; /* a term names them: they are not left out */
    bool left_out;   /* a term has no letter and no digit */
};

/* ---- while parsing ---- */

typedef enum tide_operator {
    TIDE_OP_WORD, /* no operator: a bare word */
    TIDE_OP_AFTER,
    TIDE_OP_BCC,
    TIDE_OP_BEFORE,
    TIDE_OP_CATEGORY,
    TIDE_OP_CC,
    TIDE_OP_DELIVERED,
    TIDE_OP_FILENAME,
    TIDE_OP_FROM,
    TIDE_OP_HAS,
    TIDE_OP_IN,
    TIDE_OP_IS,
    TIDE_OP_LABEL,
    TIDE_OP_LARGER,
    TIDE_OP_LIST,
    TIDE_OP_MESSAGE_ID,
    TIDE_OP_NEWER_THAN,
    TIDE_OP_OLDER_THAN,
    TIDE_OP_SMALLER,
    TIDE_OP_SUBJECT,
    TIDE_OP_TO,
} tide_operator;

/* A term being parsed; the first failure is kept, and nothing is created after it. */
struct tide_query_making {
    int64_t now_ms;
    int32_t utc_offset_s;
    tide_query *query;
    size_t terms;
    tide_status rc;
    tide_error *err;
};

struct tide_query_written {
    tide_operator op;
    tide_text name;  /* of the operator as written; empty: none */
    tide_text value; /* terminated or not, inside the query's copy */
    uint32_t at;     /* the character it starts at */
    bool quoted;
    bool exact; /* a '+' before it */
    bool negated;
};

/* NULL: no memory or too many nodes; making->rc says which. */
struct tide_query_node *tide_query_node_new(struct tide_query_making *making, tide_term term,
                                            uint32_t at);
/* The node of an operator with its value.  NULL: failed, or nothing to match, such as punctuation
 * only. */
struct tide_query_node *tide_query_term(struct tide_query_making *making,
                                        const struct tide_query_written *written);

/* ---- shared ---- */

enum {
    TIDE_QUERY_SHOWN_BYTES = 72,
    TIDE_QUERY_MEMORY_BYTES = 1 << 20, /* of one query */
};

/* Text of a query for a message: one line, shortened if long. */
void tide_query_show(tide_text text, char shown_out[TIDE_QUERY_SHOWN_BYTES]);

/* The nearest of these names, or NULL if none is near enough. */
const char *tide_query_nearest(tide_text name, const char *const *names, size_t count);

/* Compares label names as Gmail's search does: ignores case, and treats blanks and slashes as
 * hyphens. */
bool tide_query_same_label(tide_text a, tide_text b);

/* Tests T1..T3 by assertion. */
void tide_query_check(const tide_query *query);

#endif
