/* query.c - parses a query; see search.h and query_tree.h.
 *
 * OR binds tighter than anything else, as in all of Google's searches: "a OR b c" is "(a OR b)
 * c". */
#include "mail/search/query_tree.h"

#include "base/check.h"
#include "base/json.h"

typedef struct tide_query_node node;

static const struct {
    const char *name;
    tide_operator op;
} operators[] = {
    {"after", TIDE_OP_AFTER},
    {"bcc", TIDE_OP_BCC},
    {"before", TIDE_OP_BEFORE},
    {"category", TIDE_OP_CATEGORY},
    {"cc", TIDE_OP_CC},
    {"deliveredto", TIDE_OP_DELIVERED},
    {"filename", TIDE_OP_FILENAME},
    {"from", TIDE_OP_FROM},
    {"has", TIDE_OP_HAS},
    {"in", TIDE_OP_IN},
    {"is", TIDE_OP_IS},
    {"label", TIDE_OP_LABEL},
    {"larger", TIDE_OP_LARGER},
    {"list", TIDE_OP_LIST},
    {"newer", TIDE_OP_AFTER},
    {"newer_than", TIDE_OP_NEWER_THAN},
    {"older", TIDE_OP_BEFORE},
    {"older_than", TIDE_OP_OLDER_THAN},
    {"rfc822msgid", TIDE_OP_MESSAGE_ID},
    {"size", TIDE_OP_LARGER},
    {"smaller", TIDE_OP_SMALLER},
    {"subject", TIDE_OP_SUBJECT},
    {"to", TIDE_OP_TO},
};
enum { OPERATORS = sizeof operators / sizeof operators[0] };

struct parser {
    tide_text text;
    size_t at;
    size_t deep;
    bool closed; /* the last sequence ended with its closer */
    struct tide_query_making making;
};

/* ---- nodes ---- */

static void append(node *parent, node *child)
{
    child->next = NULL;
    if (parent->last == NULL)
        parent->first = child;
    else
        parent->last->next = child;
    parent->last = child;
}

/* Adds a child, or the children of a child that is of the parent's own kind (QRY1). */
static void adopt(node *parent, node *child)
{
    if (child->term != parent->term) {
        append(parent, child);
        return;
    }
    for (node *grandchild = child->first, *next; grandchild != NULL; grandchild = next) {
        next = grandchild->next;
        append(parent, grandchild);
    }
}

/* Simplifies an AND or OR: folds constants away.  It changes the node instead of allocating one, so
 * that it cannot fail. */
static node *simplify(node *parent)
{
    const bool both = parent->term == TIDE_TERM_AND;
    const tide_term neutral = both ? TIDE_TERM_ALL : TIDE_TERM_NONE;
    const tide_term decisive = both ? TIDE_TERM_NONE : TIDE_TERM_ALL;
    node *children = parent->first;
    parent->first = NULL;
    parent->last = NULL;
    for (node *child = children, *next; child != NULL; child = next) {
        next = child->next;
        if (child->term == decisive) {
            parent->term = decisive;
            parent->first = NULL;
            parent->last = NULL;
            return parent;
        }
        if (child->term != neutral)
            adopt(parent, child);
    }
    if (parent->first == NULL)
        parent->term = neutral;
    else if (parent->first->next == NULL)
        return parent->first;
    return parent;
}

/* ---- parsing ---- */

static int peek(const struct parser *parser)
{
    return parser->at < parser->text.bytes ? (unsigned char)parser->text.data[parser->at] : -1;
}

/* The length of the blanks here; includes the no-break and the ideographic space, which users type
 * without seeing the difference. */
static size_t blank_bytes(const struct parser *parser)
{
    const char *here = parser->text.data + parser->at;
    const size_t left = parser->text.bytes - parser->at;
    if (left >= 1 && (*here == ' ' || *here == '\t' || *here == '\r' || *here == '\n'))
        return 1;
    if (left >= 2 && memcmp(here, "\xc2\xa0", 2) == 0)
        return 2;
    if (left >= 3 && memcmp(here, "\xe3\x80\x80", 3) == 0)
        return 3;
    return 0;
}

/* Where a bare word ends. */
static bool at_stop(const struct parser *parser)
{
    const int c = peek(parser);
    return c < 0 || c == '(' || c == ')' || c == '{' || c == '}' || c == '"' || c == '|' ||
           blank_bytes(parser) > 0;
}

/* The number of the character at a byte, from 1, for messages. */
static uint32_t place_of(const struct parser *parser, size_t at)
{
    uint32_t place = 1;
    for (size_t i = 0; i < at; i++)
        place += ((unsigned char)parser->text.data[i] & 0xc0) != 0x80;
    return place;
}

static bool failed(const struct parser *parser)
{
    return parser->making.rc != TIDE_OK;
}

static tide_text take_bare(struct parser *parser)
{
    const size_t start = parser->at;
    while (!at_stop(parser))
        parser->at++;
    return (tide_text){parser->text.data + start, parser->at - start};
}

/* A Message-ID in brackets may contain nearly anything but blanks. */
static tide_text take_message_id(struct parser *parser)
{
    const size_t start = parser->at;
    if (peek(parser) != '<')
        return take_bare(parser);
    while (peek(parser) >= 0 && peek(parser) != '>' && blank_bytes(parser) == 0)
        parser->at++;
    if (peek(parser) != '>') {
        parser->at = start;
        return take_bare(parser);
    }
    parser->at++;
    return (tide_text){parser->text.data + start, parser->at - start};
}

static tide_text take_quoted(struct parser *parser)
{
    const size_t start = ++parser->at;
    while (peek(parser) >= 0 && peek(parser) != '"')
        parser->at++;
    const tide_text text = {parser->text.data + start, parser->at - start};
    if (peek(parser) < 0)
        parser->making.rc =
            tide_error_set(parser->making.err, TIDE_INVALID,
                           "the quotation mark at character %u of the query is never closed",
                           (unsigned)place_of(parser, start - 1));
    else
        parser->at++;
    return text;
}

static void unknown_operator(struct parser *parser, tide_text name, size_t start)
{
    const char *names[OPERATORS];
    for (size_t i = 0; i < OPERATORS; i++)
        names[i] = operators[i].name;
    const char *nearest = tide_query_nearest(name, names, OPERATORS);
    char shown[TIDE_QUERY_SHOWN_BYTES];
    tide_query_show(name, shown);
    parser->making.rc = tide_error_set(
        parser->making.err, TIDE_INVALID,
        "unknown operator \"%s:\" at character %u of the query%s%s%s; put it in quotation marks to "
        "search for the word",
        shown, (unsigned)place_of(parser, start), nearest == NULL ? "" : ": did you mean \"",
        nearest == NULL ? "" : nearest, nearest == NULL ? "" : ":\"");
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool same_name(tide_text text, const char *name)
{
    if (text.bytes != strlen(name))
        return false;
    for (size_t i = 0; i < text.bytes; i++)
        if (lower(text.data[i]) != name[i])
            return false;
    return true;
}

/* A letter, then letters, digits and '_', then ':'.  "12:30" is a word, and so is
 * "https://example.com". */
static void take_operator(struct parser *parser, struct tide_query_written *written)
{
    size_t at = parser->at;
    for (; at < parser->text.bytes; at++) {
        const char c = lower(parser->text.data[at]);
        const bool letter = c >= 'a' && c <= 'z';
        if (!letter && (at == parser->at || !((c >= '0' && c <= '9') || c == '_')))
            break;
    }
    if (at == parser->at || at == parser->text.bytes || parser->text.data[at] != ':')
        return;
    if (parser->text.bytes - at >= 3 && memcmp(parser->text.data + at, "://", 3) == 0)
        return;
    const tide_text name = {parser->text.data + parser->at, at - parser->at};
    for (size_t i = 0; i < OPERATORS; i++) {
        if (same_name(name, operators[i].name)) {
            written->op = operators[i].op;
            written->name = name;
            parser->at = at + 1;
            return;
        }
    }
    unknown_operator(parser, name, parser->at);
}

static node *take_sequence(struct parser *parser, const struct tide_query_written *outer,
                           int closer);

/* (all of it) or {any of it}, under one operator: subject:(a b). */
static node *take_group(struct parser *parser, const struct tide_query_written *outer)
{
    const size_t start = parser->at;
    const int opener = peek(parser);
    if (parser->deep == TIDE_QUERY_DEEP) {
        parser->making.rc =
            tide_error_set(parser->making.err, TIDE_INVALID,
                           "the groups of the query are nested more than %d deep at character %u",
                           TIDE_QUERY_DEEP, (unsigned)place_of(parser, start));
        return NULL;
    }
    parser->at++;
    parser->deep++;
    node *group = take_sequence(parser, outer, opener == '(' ? ')' : '}');
    parser->deep--;
    if (failed(parser))
        return NULL;
    if (!parser->closed)
        parser->making.rc =
            tide_error_set(parser->making.err, TIDE_INVALID,
                           "the \"%c\" at character %u of the query is never closed", opener,
                           (unsigned)place_of(parser, start));
    else if (group == NULL)
        parser->making.rc =
            tide_error_set(parser->making.err, TIDE_INVALID,
                           "the group at character %u of the query has nothing in it",
                           (unsigned)place_of(parser, start));
    return failed(parser) ? NULL : group;
}

/* One term with its sign.  A term without an operator takes the group's. */
static node *take_term(struct parser *parser, const struct tide_query_written *outer)
{
    struct tide_query_written written = *outer;
    while (peek(parser) == '-') {
        written.negated = !written.negated;
        parser->at++;
    }
    if (peek(parser) == '+') {
        written.exact = true;
        parser->at++;
    }
    written.at = place_of(parser, parser->at);
    const size_t start = parser->at;
    if (!at_stop(parser))
        take_operator(parser, &written);
    if (failed(parser))
        return NULL;
    const bool named = parser->at > start;
    const int c = peek(parser);
    if (c == '(' || c == '{')
        return take_group(parser, &written);
    if (c == '"') {
        written.value = take_quoted(parser);
        written.quoted = true;
    } else if (at_stop(parser) && !named) { /* a sign without a term */
        parser->making.query->left_out = true;
        return NULL;
    } else {
        written.value =
            written.op == TIDE_OP_MESSAGE_ID ? take_message_id(parser) : take_bare(parser);
    }
    if (failed(parser))
        return NULL;
    node *term = tide_query_term(&parser->making, &written);
    if (term == NULL && !failed(parser))
        parser->making.query->left_out = true;
    return term;
}

/* Reads the word OR, AND or AROUND in capitals, or '|'; 0: there is none. */
static char take_joint(struct parser *parser)
{
    if (peek(parser) == '|') {
        parser->at++;
        return '|';
    }
    const size_t before = parser->at;
    const tide_text word = take_bare(parser);
    if (tide_text_equal(word, TIDE_TEXT("OR")))
        return '|';
    if (tide_text_equal(word, TIDE_TEXT("AND")))
        return '&';
    if (tide_text_equal(word, TIDE_TEXT("AROUND")))
        return '~';
    parser->at = before;
    return 0;
}

/* The state of one level: a list of runs joined by OR. */
struct sequence {
    node *all;
    node *run;
    bool found;
};

static void sequence_add(struct parser *parser, struct sequence *sequence, node *item, bool joined,
                         bool negated)
{
    if (sequence->run != NULL && !joined) {
        append(sequence->all, simplify(sequence->run));
        sequence->run = NULL;
    }
    if (sequence->run == NULL)
        sequence->run =
            tide_query_node_new(&parser->making, negated ? TIDE_TERM_AND : TIDE_TERM_OR, item->at);
    if (sequence->run == NULL)
        return;
    append(sequence->run, item);
    sequence->found = true;
}

/* ---- AROUND ---- */

enum { NEAR_DEFAULT = 5, NEAR_MAX = 1000 };

/* Whether a term can stand beside AROUND: a word or a phrase, not negated, not a prefix. */
static bool can_be_near(const node *term, bool negated)
{
    return term != NULL && term->term == TIDE_TERM_WORDS && term->negated == negated &&
           !term->prefix && !term->me && term->near == 0 &&
           (term->fields == TIDE_IN_ANY || term->fields == TIDE_IN_SUBJECT);
}

static void around_bad(struct parser *parser, size_t at, const char *why)
{
    if (!failed(parser))
        parser->making.rc =
            tide_error_set(parser->making.err, TIDE_INVALID,
                           "the AROUND at character %u of the query %s: write one AROUND 5 other",
                           (unsigned)place_of(parser, at), why);
}

/* The number after AROUND, if there is one. */
static uint32_t take_distance(struct parser *parser, size_t around_at)
{
    uint64_t number = NEAR_DEFAULT;
    for (size_t blank; (blank = blank_bytes(parser)) > 0;)
        parser->at += blank;
    const size_t before = parser->at;
    if (!tide_text_to_u64(take_bare(parser), &number)) {
        parser->at = before;
        number = NEAR_DEFAULT;
    } else if (number > NEAR_MAX) {
        around_bad(parser, around_at, "has too large a number");
    }
    return (uint32_t)number;
}

/* Joins the last term with the next one. */
static void take_around(struct parser *parser, const struct tide_query_written *outer, node *last,
                        size_t around_at)
{
    const uint32_t distance = take_distance(parser, around_at);
    for (size_t blank; !failed(parser) && (blank = blank_bytes(parser)) > 0;)
        parser->at += blank;
    node *next = failed(parser) || at_stop(parser) ? NULL : take_term(parser, outer);
    if (!failed(parser) && next == NULL && peek(parser) == '"')
        next = take_term(parser, outer);
    if (failed(parser))
        return;
    if (!can_be_near(last, outer->negated) || !can_be_near(next, outer->negated) ||
        last->fields != next->fields) {
        around_bad(parser, around_at, "needs a word on both sides");
        return;
    }
    last->exact = true;
    last->near = distance + 1;
    last->other = next->text;
}

static void dangling_or(struct parser *parser, size_t joint_at)
{
    parser->making.rc =
        tide_error_set(parser->making.err, TIDE_INVALID,
                       "the OR at character %u of the query needs a term on both sides",
                       (unsigned)place_of(parser, joint_at));
}

/* Terms up to `closer` (-1: the end), which is consumed.  NULL: there were none, or it failed.  The
 * recursion through take_group is limited by TIDE_QUERY_DEEP. */
static node *take_sequence(struct parser *parser, const struct tide_query_written *outer,
                           int closer)
{
    const bool any = (closer == '}') != outer->negated;
    struct sequence sequence = {NULL, NULL, false};
    sequence.all = tide_query_node_new(&parser->making, any ? TIDE_TERM_OR : TIDE_TERM_AND, 0);
    bool joined = false;
    size_t joint_at = 0;
    while (!failed(parser)) {
        for (size_t blank; (blank = blank_bytes(parser)) > 0;)
            parser->at += blank;
        const int c = peek(parser);
        if (c < 0 || c == closer)
            break;
        if (c == ')' || c == '}') {
            parser->making.rc =
                tide_error_set(parser->making.err, TIDE_INVALID,
                               "the \"%c\" at character %u of the query closes nothing", c,
                               (unsigned)place_of(parser, parser->at));
            break;
        }
        const size_t start = parser->at;
        const char joint = take_joint(parser);
        if (joint == '|' && (!sequence.found || joined))
            dangling_or(parser, start);
        if (joint == '~') {
            take_around(parser, outer, sequence.run == NULL ? NULL : sequence.run->last, start);
            continue;
        }
        if (joint != 0) {
            joined = joint == '|';
            joint_at = start;
            continue;
        }
        node *item = take_term(parser, outer);
        if (item == NULL || failed(parser))
            continue;
        sequence_add(parser, &sequence, item, joined, outer->negated);
        joined = false;
    }
    if (!failed(parser) && joined)
        dangling_or(parser, joint_at);
    if (failed(parser))
        return NULL;
    parser->closed = closer >= 0 && peek(parser) == closer;
    parser->at += parser->closed;
    if (sequence.run != NULL)
        append(sequence.all, simplify(sequence.run));
    return sequence.found ? simplify(sequence.all) : NULL;
}

/* ---- the whole query ---- */

static tide_status text_check(tide_text text, tide_error *err)
{
    if (text.bytes > TIDE_QUERY_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "the query has %zu bytes, more than %d",
                              text.bytes, TIDE_QUERY_BYTES_MAX);
    for (size_t at = 0; at < text.bytes;) {
        const size_t bytes = tide_utf8_bytes((tide_text){text.data + at, text.bytes - at});
        if (bytes == 0 || text.data[at] == '\0')
            return tide_error_set(err, TIDE_INVALID,
                                  "the query is not UTF-8 text: its byte %zu is not", at + 1);
        at += bytes;
    }
    return TIDE_OK;
}

/* An empty query matches everything, but a query of punctuation only is an error. */
static node *nothing_read(struct parser *parser)
{
    parser->at = 0;
    for (size_t blank; (blank = blank_bytes(parser)) > 0;)
        parser->at += blank;
    if (parser->at == parser->text.bytes)
        return tide_query_node_new(&parser->making, TIDE_TERM_ALL, 1);
    parser->making.rc = tide_error_set(parser->making.err, TIDE_INVALID,
                                       "the query has no letter and no digit to search for");
    return NULL;
}

tide_status tide_query_parse(tide_text text, int64_t now_ms, int32_t utc_offset_s, tide_mem *mem,
                             tide_query **query_out, tide_error *err)
{
    TIDE_ASSERT(query_out != NULL);
    TIDE_TRY(text_check(text, err));
    tide_query *query = tide_mem_new(mem, sizeof *query);
    if (query == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a query");
    query->mem = mem;
    tide_arena_init(&query->arena, mem, TIDE_QUERY_MEMORY_BYTES);

    struct parser parser = {.making = {.now_ms = now_ms,
                                       .utc_offset_s = utc_offset_s,
                                       .query = query,
                                       .rc = TIDE_OK,
                                       .err = err}};
    parser.text = (tide_text){tide_arena_copy(&query->arena, text.data, text.bytes), text.bytes};
    node *root = NULL;
    if (parser.text.data == NULL) {
        parser.making.rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for a query");
    } else {
        const struct tide_query_written outer = {.op = TIDE_OP_WORD};
        root = take_sequence(&parser, &outer, -1);
        if (root == NULL && !failed(&parser))
            root = nothing_read(&parser);
    }
    if (failed(&parser)) {
        tide_query_free(query);
        return parser.making.rc;
    }
    query->root = root;
    *query_out = query;
    return TIDE_OK;
}

void tide_query_free(tide_query *query)
{
    if (query == NULL)
        return;
    tide_arena_done(&query->arena);
    tide_mem_free(query->mem, query, sizeof *query);
}

/* ---- properties of a query ---- */

bool tide_query_is_all(const tide_query *query)
{
    return query->root->term == TIDE_TERM_ALL && !query->spam_trash;
}

bool tide_query_is_whole(const tide_query *query)
{
    return !query->left_out;
}

static bool node_denies(const node *at)
{
    const bool of_index = at->term == TIDE_TERM_WORDS || at->term == TIDE_TERM_ATTACHMENT ||
                          at->term == TIDE_TERM_MESSAGE_ID;
    bool denies = of_index && at->negated;
    for (const node *child = at->first; !denies && child != NULL; child = child->next)
        denies = node_denies(child); /* as deep as QRY3 allows */
    return denies;
}

bool tide_query_denies_words(const tide_query *query)
{
    return node_denies(query->root);
}

/* ---- checking ---- */

static void node_check(const node *at, size_t deep)
{
    TIDE_ASSERT(deep <= 2 * TIDE_QUERY_DEEP + 2);
    const bool joins = at->term == TIDE_TERM_AND || at->term == TIDE_TERM_OR;
    TIDE_ASSERT(joins == (at->first != NULL));
    if (joins) {
        TIDE_ASSERT(at->first != at->last); /* QRY1 */
        TIDE_ASSERT(!at->negated);
    }
    if (at->term == TIDE_TERM_DATE || at->term == TIDE_TERM_BYTES) { /* QRY2 */
        TIDE_ASSERT(!at->negated);
        TIDE_ASSERT((at->low == INT64_MIN) != (at->high == INT64_MAX));
    }
    if (at->near > 0) { /* QRY4 */
        TIDE_ASSERT(at->term == TIDE_TERM_WORDS && at->exact);
        TIDE_ASSERT(at->fields == TIDE_IN_ANY || at->fields == TIDE_IN_SUBJECT);
    }
    if (deep > 0)
        TIDE_ASSERT(at->term != TIDE_TERM_ALL && at->term != TIDE_TERM_NONE);
    for (const node *child = at->first; child != NULL; child = child->next) {
        TIDE_ASSERT(child->term != at->term); /* QRY1 */
        node_check(child, deep + 1);
    }
}

void tide_query_check(const tide_query *query)
{
    TIDE_ASSERT(query->root != NULL);
    node_check(query->root, 0);
}
