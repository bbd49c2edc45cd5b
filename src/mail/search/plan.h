/* plan.h - query plans and how they run; private to src/mail/search.
 *
 * A query becomes a plan (sql.c): a tree of flows.  Each flow returns message ids of one shard in
 * walk order and can skip to a later id (flow.c).  Words become as few MATCH expressions as
 * possible, because FTS5 joins words faster than code outside of it; labels, sizes and the rest
 * walk the indexes of the shard.  Flows are joined by skipping: a flow that lags catches up, by
 * single steps when it is near and by a new search when it is not.  So nothing is sorted, nothing
 * is collected, and a page costs its matches plus the ids between them.
 *
 * The parts of a year overlap in time.  Their ids count from the same instant
 * (mail/archive/shard.h SHD4), so they are walked together and merged by id; years are walked
 * one after the other.
 *
 * Invariants:
 *   SPL1  a flow returns every id of its plan inside its bounds, once, in order.
 *   SPL2  an AND has at least one include; an excluded id is never returned.
 */
#ifndef TIDE_MAIL_SEARCH_PLAN_H
#define TIDE_MAIL_SEARCH_PLAN_H

#include "mail/search/query_tree.h"
#include "mail/archive/shard.h"

/* ---- words (words.c) ---- */

/* The tokenizer of the index, for texts outside of it.  It has its own in-memory connection,
 * because a tokenizer belongs to a connection. */
typedef struct tide_words {
    tide_mem *mem;
    sqlite3 *handle;
    fts5_tokenizer api;
    Fts5Tokenizer *tokenizer;
} tide_words;

tide_status tide_words_init(tide_words *words, tide_mem *mem, tide_error *err);
void tide_words_done(tide_words *words); /* a zeroed one is fine */

/* A word in the form the index has, and its position in the text; return false to stop. */
typedef bool tide_word_visit(void *arg, tide_text word, size_t begin, size_t end);
tide_status tide_words_each(tide_words *words, tide_text text, tide_word_visit *visit, void *arg,
                            tide_error *err);

/* The words with TIDE_WORD_GAP before, between and after them, so that one text contains another's
 * words in sequence when it contains its bytes; "" when there is no word. */
#define TIDE_WORD_GAP '\x1f'
tide_status tide_words_sequence(tide_words *words, tide_text text, tide_buf *out, tide_error *err);
bool tide_sequence_contains(tide_text sequence, tide_text part);

/* ---- word forms (forms.c, expand.c) ---- */

enum {
    TIDE_LANGUAGES_MAX = 32,
    TIDE_FORMS_MAX = 256, /* of one word in one shard; the word itself is always among them */
};

/* The stemmers of one search, each made when it is first needed. */
typedef struct tide_stems {
    struct sb_stemmer *list[TIDE_LANGUAGES_MAX];
    uint32_t seen; /* languages of the shards that were walked, as bits */
} tide_stems;
void tide_stems_done(tide_stems *stems); /* a zeroed one is fine */

/* A searched word whose other forms are found as well. */
struct tide_form {
    tide_text word; /* as the index has it */
    struct tide_form *next;
};
/* Whether a word of the index can have other forms: some letters of one script, no digits. */
bool tide_form_can_vary(tide_text word);

/* Where an expression has a word with forms: its number between these. */
#define TIDE_FORM_BEGIN '\x01'
#define TIDE_FORM_END   '\x02'

struct tide_words_found {
    tide_text list[TIDE_FORMS_MAX];
    size_t count;
};

/* ---- plans (sql.c) ---- */

typedef enum tide_plan_kind {
    TIDE_PLAN_ALL,
    TIDE_PLAN_NONE,
    TIDE_PLAN_WORDS,      /* `text` is a MATCH expression */
    TIDE_PLAN_LABEL,      /* `text` is the id of a label */
    TIDE_PLAN_BYTES,      /* low <= size < high */
    TIDE_PLAN_ATTACHMENT, /* has an attachment */
    TIDE_PLAN_HEADER,     /* a header of the message itself, `column`, has `sequence` */
    TIDE_PLAN_USER_LABEL, /* has a label that the user made */
    TIDE_PLAN_MESSAGE_ID, /* `text` */
    TIDE_PLAN_AND,
    TIDE_PLAN_OR,
} tide_plan_kind;

struct tide_plan {
    tide_plan_kind kind;
    int64_t low_ms, high_ms; /* internal date; applies to its children too */
    int64_t low, high;
    tide_text text;     /* terminated */
    bool slow;          /* a MATCH that is slow to begin: it has a prefix */
    const char *column; /* of head, or a header ("list", "delivered"), which must also contain
                         * `sequence`, or `address`; "to": any of To, Cc and Bcc; NULL: none */
    tide_text sequence; /* of words */
    tide_text address;  /* address.c; empty: the words suffice */
    struct tide_plan *first, *last; /* children of an AND or OR */
    struct tide_plan *excludes;     /* of an AND */
    struct tide_plan *next;
};

/* A searched term that can be shown in the matches. */
struct tide_phrase {
    const struct tide_query_node *term;
    tide_text match;              /* the term alone, as an expression */
    tide_text sequence;           /* its words; without the last gap: the last one is a prefix */
    tide_text other;              /* the words near these; empty: none */
    const struct tide_form *form; /* NULL: only these words */
    size_t form_number;
    struct tide_phrase *next;
};

struct tide_planned {
    struct tide_plan *root;
    struct tide_phrase *phrases; /* in the order of `hits` */
    size_t phrases_count;
    struct tide_form *forms; /* in the order of their numbers */
    size_t forms_count;
    tide_text hits; /* the words searched for, without the rest; "": none */
};

/* Limits at which a lagging flow stops stepping; measured.  Tests set others. */
struct tide_steps {
    int words;  /* rows before a new search: its cost in rows */
    int slow;   /* the same for a plan that is slow to begin */
    int probe;  /* rows before a single row is tested */
    int rows;   /* the same as words, for all other flows */
    size_t set; /* up to this many messages of a size are sorted; more are so frequent that a walk
                 * finds them soon */
};
enum { TIDE_SEARCH_SET_MAX = 4096 };

struct tide_searching {
    struct tide_steps steps;
    tide_shards *shards;
    tide_mem *mem;
    tide_words words;
    tide_stems stems;
    tide_packer *packer; /* for headers that only the message has */
    tide_arena arena;    /* the plan */
    struct tide_planned plan;
    bool descending;
    bool strict;  /* refuse words without a letter or digit instead of ignoring them */
    bool exact;   /* no word has forms */
    bool lenient; /* a label that is not there is one that no message has */
    struct tide_search_labels *labels; /* so, too, and noted there; NULL */
    const tide_cancel *cancel;         /* NULL: nothing cancels it */
    tide_error *err;
};

/* `query` NULL: everything.  TIDE_INVALID: a label does not exist, or a word is missing where one
 * is needed. */
tide_status tide_plan_make(struct tide_searching *searching, const tide_query *query);

/* ---- flows (flow.c) ---- */

/* Keys ascend in walk order: ids, or negated ids. */
#define TIDE_KEY_FIRST (-INT64_MAX)
#define TIDE_KEY_END   INT64_MAX

typedef struct tide_flow tide_flow;

/* One shard being walked. */
struct tide_walk {
    struct tide_searching *searching;
    struct tide_shard *shard;
    int64_t late; /* mail/archive/shard.h SHD4, in its transaction */
    tide_arena arena;
    tide_flow *flows; /* all of them, for closing */
    sqlite3_stmt *columns[4];
    bool began;
    uint32_t languages;              /* of the shard, as bits; 0: not known yet */
    struct tide_words_found **forms; /* by number; NULL where not known yet */
};

tide_status tide_walk_open(struct tide_walk *walk, struct tide_searching *searching,
                           struct tide_shard *shard);
void tide_walk_close(struct tide_walk *walk); /* a zeroed one is fine */
/* Opens the flow of a plan over the ids low..high, not positioned yet. */
tide_status tide_flow_open(struct tide_walk *walk, const struct tide_plan *plan, int64_t low,
                           int64_t high, tide_flow **flow_out);
/* Moves to the first key at or after `key`; never back. */
tide_status tide_flow_seek(struct tide_walk *walk, tide_flow *flow, int64_t key);
int64_t tide_flow_key(const tide_flow *flow);
static inline int64_t tide_key_of(bool descending, int64_t id)
{
    return descending ? -id : id;
}

/* Adds the words of the shard that are forms of this one to `found`, the word itself first. */
tide_status tide_forms_find(struct tide_walk *walk, const struct tide_form *form,
                            struct tide_words_found *found);
/* The same once for a walk, by the number of the form. */
tide_status tide_walk_forms(struct tide_walk *walk, size_t number,
                            const struct tide_words_found **found_out);
/* The expression for this shard; lives as long as the walk. */
tide_status tide_walk_match(struct tide_walk *walk, tide_text text, tide_text *match_out);
/* Whether a word of the index is a form, in the languages of the shards walked so far. */
bool tide_form_is(struct tide_searching *searching, const struct tide_form *form, tide_text word);

/* Whether a header has the words of the plan, one after the other, or its address: local@domain is
 * exactly that one, @domain any of exactly that domain, and a domain also one of those under it, or
 * these words before the '@' or in a name (address.c). */
tide_status tide_header_text_holds(struct tide_searching *searching, const struct tide_plan *plan,
                                   tide_text text, bool *holds_out);

/* Whether the message has what a HEADER plan asks for (header.c). */
tide_status tide_header_holds(struct tide_walk *walk, const struct tide_plan *plan, int64_t id,
                              bool *holds_out);

/* ---- all shards (walk.c) ---- */

struct tide_place {
    uint32_t shard; /* its key */
    int64_t id;
};

/* Where to start: at a place, after it, or at the beginning. */
struct tide_start {
    bool given;
    bool inclusive;
    struct tide_place place;
};

/* Calls `visit` for each message of the plan in order; false stops the walk. */
typedef bool tide_place_visit(void *arg, const struct tide_place *place);
tide_status tide_search_walk(struct tide_searching *searching, const struct tide_plan *plan,
                             const struct tide_start *start, tide_place_visit *visit, void *arg);
/* Negative: `a` comes before `b` in the walk. */
int tide_place_order(bool descending, const struct tide_place *a, const struct tide_place *b);

/* ---- ranking (rank.c) ---- */

struct tide_ranked {
    struct tide_place place;
    double rank;
};
/* Returns up to TIDE_SEARCH_RANKED_MAX of the newest messages of the plan, best first.  *ranked_out
 * is from searching->mem; *anchor_out is the newest. */
tide_status tide_search_rank(struct tide_searching *searching, const struct tide_start *start,
                             struct tide_ranked **ranked_out, size_t *count_out,
                             struct tide_place *anchor_out);

/* ---- snippets (snippet.c) ---- */

enum {
    TIDE_SNIPPET_BYTES = 160,         /* approximate length */
    TIDE_SNIPPET_LOOK_BYTES = 1 << 19 /* of the text are searched */
};
/* The part of the text that shows most of the phrases, on one line. */
tide_status tide_search_snippet(struct tide_searching *searching, tide_text text, tide_buf *out);

/* ---- a search (walk.c) ---- */

/* Newest first by default.  Does not open the shards. */
tide_status tide_searching_init(struct tide_searching *searching, tide_shards *shards,
                                tide_mem *mem, tide_error *err);
void tide_searching_done(struct tide_searching *searching);
/* TIDE_CANCELED: the caller no longer wants the result. */
tide_status tide_searching_wanted(const struct tide_searching *searching);

#endif
