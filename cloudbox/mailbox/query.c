/* query.c - reading a query and planning its walk; see query.h.
 *
 * OR binds its neighbours before anything else does, as in every search of
 * Google's: "a OR b c" is "(a OR b) c". */
#include "cloudbox/mailbox/query_tree.h"

#include "base/check.h"

typedef struct box_query_node node;

static const struct {
    const char *name;
    box_operator op;
} operators[] = {
    {"after", BOX_OP_AFTER},
    {"bcc", BOX_OP_BCC},
    {"before", BOX_OP_BEFORE},
    {"category", BOX_OP_CATEGORY},
    {"cc", BOX_OP_CC},
    {"deliveredto", BOX_OP_DELIVERED_TO},
    {"filename", BOX_OP_FILENAME},
    {"from", BOX_OP_FROM},
    {"has", BOX_OP_HAS},
    {"in", BOX_OP_IN},
    {"is", BOX_OP_IS},
    {"label", BOX_OP_LABEL},
    {"larger", BOX_OP_LARGER},
    {"list", BOX_OP_LIST},
    {"newer", BOX_OP_AFTER},
    {"newer_than", BOX_OP_NEWER_THAN},
    {"older", BOX_OP_BEFORE},
    {"older_than", BOX_OP_OLDER_THAN},
    {"rfc822msgid", BOX_OP_MESSAGE_ID},
    {"size", BOX_OP_LARGER},
    {"smaller", BOX_OP_SMALLER},
    {"subject", BOX_OP_SUBJECT},
    {"to", BOX_OP_TO},
};

struct parser {
    tide_text text;
    size_t at;
    size_t deep;
    struct box_query_making making;
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

/* An AND or OR with what is decided folded away and the cheap children first,
 * so that bytes are looked at only when the rest holds. */
static node *simplify(struct parser *parser, node *parent)
{
    const bool both = parent->term == BOX_TERM_AND;
    const box_term neutral = both ? BOX_TERM_ALL : BOX_TERM_NONE;
    const box_term decisive = both ? BOX_TERM_NONE : BOX_TERM_ALL;
    node sorted[BOX_COSTS] = {0};
    for (node *child = parent->first, *next; child != NULL; child = next) {
        next = child->next;
        if (child->term == decisive)
            return box_query_node_new(&parser->making, decisive);
        if (child->term != neutral)
            append(&sorted[child->cost], child);
    }
    parent->first = NULL;
    parent->last = NULL;
    for (size_t cost = 0; cost < BOX_COSTS; cost++) {
        for (node *child = sorted[cost].first, *next; child != NULL; child = next) {
            next = child->next;
            append(parent, child);
            parent->cost = (box_query_cost)cost;
        }
    }
    if (parent->first == NULL)
        return box_query_node_new(&parser->making, neutral);
    return parent->first->next == NULL ? parent->first : parent;
}

/* ---- reading ---- */

static int peek(const struct parser *parser)
{
    return parser->at < parser->text.bytes ? (unsigned char)parser->text.data[parser->at] : -1;
}

static bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Where a bare word ends. */
static bool is_stop(int c)
{
    return c < 0 || is_blank(c) || c == '(' || c == ')' || c == '{' || c == '}' || c == '"' ||
           c == '|';
}

static tide_text take_bare(struct parser *parser)
{
    const size_t start = parser->at;
    while (!is_stop(peek(parser)))
        parser->at++;
    return (tide_text){parser->text.data + start, parser->at - start};
}

/* A Message-ID in its brackets may hold nearly anything but blanks. */
static tide_text take_message_id(struct parser *parser)
{
    size_t at = parser->at;
    if (peek(parser) != '<')
        return take_bare(parser);
    while (at < parser->text.bytes && !is_blank((unsigned char)parser->text.data[at]) &&
           parser->text.data[at] != '>')
        at++;
    if (at == parser->text.bytes || parser->text.data[at] != '>')
        return take_bare(parser);
    const tide_text id = {parser->text.data + parser->at, at + 1 - parser->at};
    parser->at = at + 1;
    return id;
}

/* Behind the opening quote; one that is never closed extends to the end. */
static tide_text take_quoted(struct parser *parser)
{
    const size_t start = ++parser->at;
    while (peek(parser) >= 0 && peek(parser) != '"')
        parser->at++;
    const tide_text text = {parser->text.data + start, parser->at - start};
    if (peek(parser) == '"')
        parser->at++;
    return text;
}

/* A letter, then letters, digits and '_', then ':'.  "12:30" is a word. */
static bool take_operator(struct parser *parser, box_operator *op_out)
{
    size_t at = parser->at;
    while (at < parser->text.bytes) {
        const char c = parser->text.data[at];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (at == parser->at || !((c >= '0' && c <= '9') || c == '_')))
            break;
        at++;
    }
    if (at == parser->at || at == parser->text.bytes || parser->text.data[at] != ':')
        return false;
    const tide_text name = {parser->text.data + parser->at, at - parser->at};
    parser->at = at + 1;
    *op_out = BOX_OP_UNKNOWN;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (box_query_same(name, operators[i].name))
            *op_out = operators[i].op;
    return true;
}

static node *take_sequence(struct parser *parser, box_operator op, int closer, bool negated);

/* (all of it) or {any of it}, under one operator: subject:(a b). */
static node *take_group(struct parser *parser, box_operator op, bool negated)
{
    const int closer = peek(parser) == '(' ? ')' : '}';
    parser->at++;
    if (parser->deep == BOX_QUERY_DEEP) {
        parser->making.beyond = true;
        parser->at = parser->text.bytes;
        return NULL;
    }
    parser->deep++;
    node *group = take_sequence(parser, op, closer, negated);
    parser->deep--;
    return group;
}

/* One term with its sign.  `op` holds for what has no operator of its own. */
static node *take_term(struct parser *parser, box_operator op, bool negated)
{
    while (peek(parser) == '-') {
        negated = !negated;
        parser->at++;
    }
    bool named = false;
    if (!is_stop(peek(parser)))
        named = take_operator(parser, &op);
    const int c = peek(parser);
    if (c == '(' || c == '{') {
        node *group = take_group(parser, op, negated);
        return group == NULL && named ? box_query_node_new(&parser->making, BOX_TERM_NONE) : group;
    }
    if (c == '"') {
        const tide_text value = take_quoted(parser);
        return value.bytes == 0 && !named ? NULL
                                          : box_query_term(&parser->making, op, value, negated);
    }
    if (is_stop(c) && !named) /* a sign on its own */
        return NULL;
    const tide_text value = op == BOX_OP_MESSAGE_ID ? take_message_id(parser) : take_bare(parser);
    return box_query_term(&parser->making, op, value, negated);
}

/* Takes the word OR or AND in capitals, or '|'; 0 when there is none. */
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
    parser->at = before;
    return 0;
}

/* Terms up to `closer` (-1: the end).  NULL: there were none.  The recursion
 * through take_group is bounded by BOX_QUERY_DEEP. */
static node *take_sequence(struct parser *parser, box_operator op, int closer, bool negated)
{
    const bool any = (closer == '}') != negated;
    node *all = box_query_node_new(&parser->making, any ? BOX_TERM_OR : BOX_TERM_AND);
    node *run = NULL; /* what ORs have joined so far */
    bool joined = false;
    bool found = false;
    for (;;) {
        while (is_blank(peek(parser)))
            parser->at++;
        const int c = peek(parser);
        if (c < 0 || c == closer) {
            parser->at += c >= 0;
            break;
        }
        if (c == ')' || c == '}') { /* closes nothing */
            parser->at++;
            continue;
        }
        const char joint = take_joint(parser);
        if (joint != 0) {
            joined = joint == '|';
            continue;
        }
        node *item = take_term(parser, op, negated);
        if (parser->making.beyond)
            return NULL;
        if (item == NULL)
            continue;
        if (run != NULL && !joined)
            append(all, simplify(parser, run));
        if (run == NULL || !joined)
            run = box_query_node_new(&parser->making, negated ? BOX_TERM_AND : BOX_TERM_OR);
        append(run, item);
        joined = false;
        found = true;
    }
    if (run != NULL)
        append(all, simplify(parser, run));
    return found ? simplify(parser, all) : NULL;
}

/* ---- planning ---- */

/* What must hold for a node; the labels are the query's own copy at the end. */
struct needs {
    uint64_t low, high;
    tide_text message_id;
    uint16_t labels[BOX_QUERY_LABELS_MAX];
    size_t labels_count;
    bool exact;
};

static bool has_label(const struct needs *needs, uint16_t label)
{
    for (size_t i = 0; i < needs->labels_count; i++)
        if (needs->labels[i] == label)
            return true;
    return false;
}

static struct needs needs_of_term(const node *at)
{
    struct needs needs = {.high = UINT64_MAX};
    if (at->term == BOX_TERM_ALL) {
        needs.exact = true;
    } else if (at->term == BOX_TERM_LABEL && !at->negated) {
        needs.labels[needs.labels_count++] = (uint16_t)at->label;
        needs.exact = true;
    } else if (at->term == BOX_TERM_DATE) {
        needs.low = at->low;
        needs.high = at->high;
        needs.exact = true;
    } else if (at->term == BOX_TERM_MESSAGE_ID && !at->negated) {
        needs.message_id = at->text; /* the index goes by hash, so match has the last word */
    }
    return needs;
}

static void needs_both(struct needs *needs, const struct needs *other)
{
    needs->exact = needs->exact && other->exact;
    needs->low = other->low > needs->low ? other->low : needs->low;
    needs->high = other->high < needs->high ? other->high : needs->high;
    if (needs->message_id.data == NULL)
        needs->message_id = other->message_id;
    for (size_t i = 0; i < other->labels_count; i++) {
        if (has_label(needs, other->labels[i]))
            continue;
        if (needs->labels_count < BOX_QUERY_LABELS_MAX)
            needs->labels[needs->labels_count++] = other->labels[i];
        else
            needs->exact = false;
    }
}

static void needs_either(struct needs *needs, const struct needs *other)
{
    needs->exact = false;
    needs->low = other->low < needs->low ? other->low : needs->low;
    needs->high = other->high > needs->high ? other->high : needs->high;
    if (!tide_text_equal(needs->message_id, other->message_id))
        needs->message_id = TIDE_TEXT_NONE;
    size_t kept = 0;
    for (size_t i = 0; i < needs->labels_count; i++)
        if (has_label(other, needs->labels[i]))
            needs->labels[kept++] = needs->labels[i];
    needs->labels_count = kept;
}

/* As deep as the groups of the query, which are bounded. */
static struct needs needs_of(const node *at)
{
    if (at->term != BOX_TERM_AND && at->term != BOX_TERM_OR)
        return needs_of_term(at);
    struct needs needs = needs_of(at->first);
    for (const node *child = at->first->next; child != NULL; child = child->next) {
        const struct needs other = needs_of(child);
        if (at->term == BOX_TERM_AND)
            needs_both(&needs, &other);
        else
            needs_either(&needs, &other);
    }
    return needs;
}

static void plan_make(struct box_query *query, bool spam_trash)
{
    struct box_query_plan *plan = &query->plan;
    plan->spam_trash = spam_trash;
    plan->walk.date_high_ms = UINT64_MAX;
    plan->walk.labels = query->labels;
    plan->nothing = query->root->term == BOX_TERM_NONE;
    if (plan->nothing)
        return;
    const struct needs needs = needs_of(query->root);
    memcpy(query->labels, needs.labels, sizeof query->labels);
    plan->walk.date_low_ms = needs.low;
    plan->walk.date_high_ms = needs.high;
    plan->walk.labels_count = needs.labels_count;
    plan->walk.message_id = needs.message_id;
    plan->exact = needs.exact;
    plan->nothing = needs.low >= needs.high;
}

const box_query *box_query_parse(tide_text text, uint64_t now_ms, const box_mailbox *mailbox,
                                 tide_arena *arena)
{
    struct box_query *query = tide_arena_take(arena, sizeof *query);
    TIDE_ASSERT(query != NULL);
    struct parser parser = {.making = {.now_ms = now_ms, .mailbox = mailbox, .arena = arena}};
    parser.making.beyond = text.bytes > BOX_QUERY_BYTES_MAX;
    if (!parser.making.beyond) {
        parser.text = (tide_text){tide_arena_copy(arena, text.data, text.bytes), text.bytes};
        TIDE_ASSERT(parser.text.data != NULL);
        node *root = take_sequence(&parser, BOX_OP_WORD, -1, false);
        query->root = root != NULL ? root : box_query_node_new(&parser.making, BOX_TERM_ALL);
    }
    if (parser.making.beyond)
        query->root = box_query_node_new(&parser.making, BOX_TERM_NONE);
    plan_make(query, parser.making.spam_trash);
    return query;
}

void box_query_plan(const box_query *query, struct box_query_plan *plan_out)
{
    *plan_out = query->plan;
}
