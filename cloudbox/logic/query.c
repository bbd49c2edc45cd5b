/* query.c - reading a query and planning its walk; see query.h.
 *
 * OR binds its neighbours before anything else does, as in every search of
 * Google's: "a OR b c" is "(a OR b) c". */
#include "logic/query_tree.h"

#include "base/check.h"

typedef struct box_query_node node;

typedef enum operator{
    OP_WORD, /* none: a bare word */
    OP_UNKNOWN,
    OP_AFTER,
    OP_BCC,
    OP_BEFORE,
    OP_CATEGORY,
    OP_CC,
    OP_DELIVERED_TO,
    OP_FILENAME,
    OP_FROM,
    OP_HAS,
    OP_IN,
    OP_IS,
    OP_LABEL,
    OP_LARGER,
    OP_LIST,
    OP_MESSAGE_ID,
    OP_NEWER_THAN,
    OP_OLDER_THAN,
    OP_SMALLER,
    OP_SUBJECT,
    OP_TO,
}
operator;

static const struct {
    const char *name;
    operator op;
} operators[] = {
    {"after", OP_AFTER},
    {"bcc", OP_BCC},
    {"before", OP_BEFORE},
    {"category", OP_CATEGORY},
    {"cc", OP_CC},
    {"deliveredto", OP_DELIVERED_TO},
    {"filename", OP_FILENAME},
    {"from", OP_FROM},
    {"has", OP_HAS},
    {"in", OP_IN},
    {"is", OP_IS},
    {"label", OP_LABEL},
    {"larger", OP_LARGER},
    {"list", OP_LIST},
    {"newer", OP_AFTER},
    {"newer_than", OP_NEWER_THAN},
    {"older", OP_BEFORE},
    {"older_than", OP_OLDER_THAN},
    {"rfc822msgid", OP_MESSAGE_ID},
    {"size", OP_LARGER},
    {"smaller", OP_SMALLER},
    {"subject", OP_SUBJECT},
    {"to", OP_TO},
};

struct parser {
    tide_text text;
    size_t at;
    uint64_t now_ms;
    const box_mailbox *mailbox;
    tide_arena *arena;
    size_t nodes;
    size_t deep;
    bool beyond;     /* a bound was reached: the whole query matches nothing (Q1) */
    bool spam_trash; /* a term asks for them */
};

/* ---- nodes ---- */

static node *node_new(struct parser *parser, box_term term)
{
    if (++parser->nodes > BOX_QUERY_NODES_MAX)
        parser->beyond = true;
    node *made = tide_arena_take(parser->arena, sizeof *made);
    TIDE_ASSERT(made != NULL);
    made->term = term;
    return made;
}

/* Everything or nothing; `negated` turns it round. */
static node *constant(struct parser *parser, bool all, bool negated)
{
    return node_new(parser, all != negated ? BOX_TERM_ALL : BOX_TERM_NONE);
}

/* A term that makes no sense: its negation makes none either. */
static node *senseless(struct parser *parser)
{
    return node_new(parser, BOX_TERM_NONE);
}

static node *leaf(struct parser *parser, box_term term, box_query_cost cost, bool negated)
{
    node *made = node_new(parser, term);
    made->cost = cost;
    made->negated = negated;
    return made;
}

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
            return node_new(parser, decisive);
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
        return node_new(parser, neutral);
    return parent->first->next == NULL ? parent->first : parent;
}

/* ---- values ---- */

static bool same(tide_text text, const char *name)
{
    const size_t bytes = strlen(name);
    if (text.bytes != bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        const char c = text.data[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c) != name[i])
            return false;
    }
    return true;
}

/* A label by number; one that no message has is decided at once, so that
 * "-in:chats" costs nothing. */
static node *label_term(struct parser *parser, uint32_t number, bool negated)
{
    if (!negated && (number == BOX_LABEL_SPAM || number == BOX_LABEL_TRASH))
        parser->spam_trash = true;
    const struct box_label *label = box_mailbox_label(parser->mailbox, number);
    if (label == NULL || label->gone || label->messages == 0)
        return constant(parser, false, negated);
    node *made = leaf(parser, BOX_TERM_LABEL, BOX_COST_FREE, negated);
    made->label = number;
    return made;
}

/* low <= x < high with one open end, so that its negation is such a range too. */
static node *range_term(struct parser *parser, box_term term, bool from, uint64_t bound,
                        bool negated)
{
    if (from == negated && bound == 0)
        return node_new(parser, BOX_TERM_NONE);
    if (from != negated && bound == 0)
        return node_new(parser, BOX_TERM_ALL);
    node *made = leaf(parser, term, BOX_COST_FREE, false);
    made->low = from != negated ? bound : 0;
    made->high = from != negated ? UINT64_MAX : bound;
    return made;
}

static const struct {
    const char *name;
    uint32_t label;
} places[] = {
    {"inbox", BOX_LABEL_INBOX},         {"spam", BOX_LABEL_SPAM},
    {"trash", BOX_LABEL_TRASH},         {"bin", BOX_LABEL_TRASH},
    {"unread", BOX_LABEL_UNREAD},       {"starred", BOX_LABEL_STARRED},
    {"important", BOX_LABEL_IMPORTANT}, {"sent", BOX_LABEL_SENT},
    {"draft", BOX_LABEL_DRAFT},         {"drafts", BOX_LABEL_DRAFT},
    {"chat", BOX_LABEL_CHAT},           {"chats", BOX_LABEL_CHAT},
};

/* in: and label: are synonyms but for "anywhere"; a label that does not exist
 * is on no message. */
static node *place_term(struct parser *parser, tide_text value, bool negated)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (same(value, places[i].name))
            return label_term(parser, places[i].label, negated);
    if (same(value, "read"))
        return label_term(parser, BOX_LABEL_UNREAD, !negated);
    uint32_t number = 0;
    if (box_mailbox_label_by_name(parser->mailbox, value, &number))
        return label_term(parser, number, negated);
    return constant(parser, false, negated);
}

static node *in_term(struct parser *parser, tide_text value, bool negated)
{
    if (same(value, "anywhere")) {
        parser->spam_trash = parser->spam_trash || !negated;
        return constant(parser, true, negated);
    }
    return place_term(parser, value, negated);
}

static node *is_term(struct parser *parser, tide_text value, bool negated)
{
    static const char *const states[] = {"unread", "read", "starred", "important", "chat", "sent"};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (same(value, states[i]))
            return place_term(parser, value, negated);
    if (same(value, "muted") || same(value, "snoozed"))
        return constant(parser, false, negated);
    return senseless(parser);
}

static node *has_term(struct parser *parser, tide_text value, bool negated)
{
    static const char *const never[] = {"drive", "document", "spreadsheet", "presentation",
                                        "youtube"};
    if (same(value, "attachment"))
        return leaf(parser, BOX_TERM_ATTACHMENT, BOX_COST_BODY, negated);
    if (same(value, "userlabels"))
        return leaf(parser, BOX_TERM_USER_LABELS, BOX_COST_FREE, negated);
    if (same(value, "nouserlabels"))
        return leaf(parser, BOX_TERM_USER_LABELS, BOX_COST_FREE, !negated);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (same(value, never[i]))
            return constant(parser, false, negated);
    return senseless(parser);
}

static node *category_term(struct parser *parser, tide_text value, bool negated)
{
    static const char *const names[] = {"primary", "social", "promotions", "updates", "forums"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (same(value, names[i]))
            return label_term(parser, BOX_LABEL_CATEGORY_PERSONAL + i, negated);
    if (same(value, "reservations") || same(value, "purchases"))
        return constant(parser, false, negated);
    return senseless(parser);
}

/* Days since 1970 of a date in the Gregorian calendar (years from 1 on). */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    const int64_t from_march = month <= 2 ? year - 1 : year;
    const int64_t month_index = month > 2 ? month - 3 : month + 9;
    return from_march * 365 + from_march / 4 - from_march / 100 + from_march / 400 +
           (153 * month_index + 2) / 5 + day - 1 - 719468;
}

static bool date_valid(uint64_t year, uint64_t month, uint64_t day)
{
    static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1000 || year > 9999 || month < 1 || month > 12 || day < 1)
        return false;
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= (month == 2 && leap ? 29u : lengths[month - 1]);
}

/* 2014/1/31, 2014-01-31, 1/31/2014, or epoch seconds. */
static bool date_read(tide_text value, uint64_t *ms_out)
{
    uint64_t seconds = 0;
    if (tide_text_to_u64(value, &seconds)) {
        *ms_out = seconds > UINT64_MAX / 1000 ? UINT64_MAX - 1 : seconds * 1000;
        return true;
    }
    uint64_t numbers[3] = {0};
    size_t at = 0;
    char between = 0;
    for (size_t i = 0; i < 3; i++) {
        const size_t start = at;
        while (at < value.bytes && value.data[at] >= '0' && value.data[at] <= '9')
            at++;
        if (at - start > 4 ||
            !tide_text_to_u64((tide_text){value.data + start, at - start}, &numbers[i]))
            return false;
        if (i == 2)
            break;
        if (at == value.bytes || (value.data[at] != '/' && value.data[at] != '-') ||
            (between != 0 && value.data[at] != between))
            return false;
        between = value.data[at++];
    }
    if (at != value.bytes)
        return false;
    const bool year_last = numbers[0] <= 12 && between == '/';
    const uint64_t year = year_last ? numbers[2] : numbers[0];
    const uint64_t month = year_last ? numbers[0] : numbers[1];
    const uint64_t day = year_last ? numbers[1] : numbers[2];
    if (!date_valid(year, month, day))
        return false;
    const int64_t days = days_of((int64_t)year, (int64_t)month, (int64_t)day);
    /* Midnight in UTC-8; all that was before 1970 is as good as its beginning. */
    *ms_out = days < 0 ? 0 : ((uint64_t)days * 24 + 8) * 3600 * 1000;
    return true;
}

/* A number and one letter; a month has 30 days and a year 365. */
static bool age_read(tide_text value, uint64_t *ms_out)
{
    uint64_t count = 0;
    if (value.bytes < 2 || !tide_text_to_u64((tide_text){value.data, value.bytes - 1}, &count))
        return false;
    uint64_t hours = 0;
    switch (value.data[value.bytes - 1]) {
    case 'h':
        hours = 1;
        break;
    case 'd':
        hours = 24;
        break;
    case 'm':
        hours = 24 * 30;
        break;
    case 'y':
        hours = 24 * 365;
        break;
    default:
        return false; /* weeks too: observed to match nothing */
    }
    const uint64_t unit_ms = hours * 3600 * 1000;
    *ms_out = count > UINT64_MAX / unit_ms ? UINT64_MAX : count * unit_ms;
    return true;
}

static node *date_term(struct parser *parser, tide_text value, bool from, bool negated)
{
    uint64_t ms = 0;
    return date_read(value, &ms) ? range_term(parser, BOX_TERM_DATE, from, ms, negated)
                                 : senseless(parser);
}

static node *age_term(struct parser *parser, tide_text value, bool newer, bool negated)
{
    uint64_t age_ms = 0;
    if (!age_read(value, &age_ms))
        return senseless(parser);
    const uint64_t then_ms = age_ms < parser->now_ms ? parser->now_ms - age_ms : 0;
    return range_term(parser, BOX_TERM_DATE, newer, then_ms, negated);
}

/* 1000, 5k, 10M. */
static node *size_term(struct parser *parser, tide_text value, bool larger, bool negated)
{
    uint64_t unit = 1;
    if (value.bytes > 1) {
        const char last = value.data[value.bytes - 1];
        if (last == 'k' || last == 'K')
            unit = 1024;
        else if (last == 'm' || last == 'M')
            unit = 1024 * 1024;
        value.bytes -= unit > 1;
    }
    uint64_t count = 0;
    if (!tide_text_to_u64(value, &count) || count > (UINT64_MAX - 1) / unit)
        return senseless(parser);
    const uint64_t bytes = count * unit;
    return range_term(parser, BOX_TERM_SIZE, larger, larger ? bytes + 1 : bytes, negated);
}

static node *message_id_term(struct parser *parser, tide_text value, bool negated)
{
    if (value.bytes > 0 && value.data[0] == '<')
        value = (tide_text){value.data + 1, value.bytes - 1};
    if (value.bytes > 0 && value.data[value.bytes - 1] == '>')
        value.bytes--;
    if (value.bytes == 0)
        return senseless(parser);
    node *made = leaf(parser, BOX_TERM_MESSAGE_ID, BOX_COST_HEAD, negated);
    made->text = value;
    return made;
}

/* Terms that compare words.  The text of a header is a piece of it, so the
 * blanks at its ends go. */
static node *text_term(struct parser *parser, operator op, tide_text value, bool negated)
{
    static const struct {
        operator op;
        box_query_header header;
    } headers[] = {
        {OP_FROM, BOX_QUERY_FROM}, {OP_TO, BOX_QUERY_TO},
        {OP_CC, BOX_QUERY_CC},     {OP_BCC, BOX_QUERY_BCC},
        {OP_LIST, BOX_QUERY_LIST}, {OP_DELIVERED_TO, BOX_QUERY_DELIVERED_TO},
    };
    tide_buf folded;
    tide_buf_init(&folded, tide_mem_heap(), 4 * BOX_QUERY_BYTES_MAX + 16384);
    box_query_fold(value, &folded);
    const tide_text text = {tide_arena_copy(parser->arena, tide_buf_cstr(&folded), folded.bytes),
                            folded.bytes};
    tide_buf_done(&folded);
    TIDE_ASSERT(text.data != NULL);
    if (text.bytes == 0) /* punctuation is no word: ignored alone, senseless as a value */
        return op == OP_WORD ? NULL : senseless(parser);

    if (op == OP_WORD || op == OP_SUBJECT || op == OP_FILENAME) {
        const box_term term = op == OP_WORD      ? BOX_TERM_WORDS
                              : op == OP_SUBJECT ? BOX_TERM_SUBJECT
                                                 : BOX_TERM_FILENAME;
        node *made = leaf(parser, term, op == OP_SUBJECT ? BOX_COST_HEAD : BOX_COST_BODY, negated);
        made->text = text;
        return made;
    }
    node *made = leaf(parser, BOX_TERM_HEADER, BOX_COST_HEAD, negated);
    made->text = (tide_text){text.data + 1, text.bytes - 2};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (headers[i].op == op)
            made->header = headers[i].header;
    return made;
}

/* NULL: nothing that counts. */
static node *term(struct parser *parser, operator op, tide_text value, bool negated)
{
    if (value.bytes == 0 && op != OP_WORD)
        return senseless(parser);
    switch (op) {
    case OP_UNKNOWN:
        return senseless(parser);
    case OP_AFTER:
    case OP_BEFORE:
        return date_term(parser, value, op == OP_AFTER, negated);
    case OP_NEWER_THAN:
    case OP_OLDER_THAN:
        return age_term(parser, value, op == OP_NEWER_THAN, negated);
    case OP_LARGER:
    case OP_SMALLER:
        return size_term(parser, value, op == OP_LARGER, negated);
    case OP_CATEGORY:
        return category_term(parser, value, negated);
    case OP_HAS:
        return has_term(parser, value, negated);
    case OP_IN:
        return in_term(parser, value, negated);
    case OP_IS:
        return is_term(parser, value, negated);
    case OP_LABEL:
        return place_term(parser, value, negated);
    case OP_MESSAGE_ID:
        return message_id_term(parser, value, negated);
    case OP_WORD:
    case OP_BCC:
    case OP_CC:
    case OP_DELIVERED_TO:
    case OP_FILENAME:
    case OP_FROM:
    case OP_LIST:
    case OP_SUBJECT:
    case OP_TO:
        break;
    }
    return text_term(parser, op, value, negated);
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

/* A Message-ID may hold nearly anything but blanks. */
static tide_text take_message_id(struct parser *parser)
{
    const size_t start = parser->at;
    while (peek(parser) >= 0 && !is_blank(peek(parser)) &&
           (parser->deep == 0 || (peek(parser) != ')' && peek(parser) != '}')))
        parser->at++;
    return (tide_text){parser->text.data + start, parser->at - start};
}

/* Behind the opening quote; one that is never closed goes on to the end. */
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
static bool take_operator(struct parser *parser, operator* op_out)
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
    *op_out = OP_UNKNOWN;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (same(name, operators[i].name))
            *op_out = operators[i].op;
    return true;
}

static node *take_sequence(struct parser *parser, operator op, int closer, bool negated);

/* (all of it) or {any of it}, under one operator: subject:(a b). */
static node *take_group(struct parser *parser, operator op, bool negated)
{
    const int closer = peek(parser) == '(' ? ')' : '}';
    parser->at++;
    if (parser->deep == BOX_QUERY_DEEP) {
        parser->beyond = true;
        parser->at = parser->text.bytes;
        return NULL;
    }
    parser->deep++;
    node *group = take_sequence(parser, op, closer, negated);
    parser->deep--;
    return group;
}

/* One term with its sign.  `op` holds for what has no operator of its own. */
static node *take_term(struct parser *parser, operator op, bool negated)
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
        return group == NULL && named ? senseless(parser) : group;
    }
    if (c == '"') {
        const tide_text value = take_quoted(parser);
        return value.bytes == 0 && !named ? NULL : term(parser, op, value, negated);
    }
    if (is_stop(c) && !named) /* a sign on its own */
        return NULL;
    const tide_text value = op == OP_MESSAGE_ID ? take_message_id(parser) : take_bare(parser);
    return term(parser, op, value, negated);
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
static node *take_sequence(struct parser *parser, operator op, int closer, bool negated)
{
    const bool any = (closer == '}') != negated;
    node *all = node_new(parser, any ? BOX_TERM_OR : BOX_TERM_AND);
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
        if (parser->beyond)
            return NULL;
        if (item == NULL)
            continue;
        if (run != NULL && !joined)
            append(all, simplify(parser, run));
        if (run == NULL || !joined)
            run = node_new(parser, negated ? BOX_TERM_AND : BOX_TERM_OR);
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
    struct parser parser = {.now_ms = now_ms, .mailbox = mailbox, .arena = arena};
    parser.beyond = text.bytes > BOX_QUERY_BYTES_MAX;
    if (!parser.beyond) {
        parser.text = (tide_text){tide_arena_copy(arena, text.data, text.bytes), text.bytes};
        TIDE_ASSERT(parser.text.data != NULL);
        node *root = take_sequence(&parser, OP_WORD, -1, false);
        query->root = root != NULL ? root : node_new(&parser, BOX_TERM_ALL);
    }
    if (parser.beyond)
        query->root = node_new(&parser, BOX_TERM_NONE);
    plan_make(query, parser.spam_trash);
    return query;
}

void box_query_plan(const box_query *query, struct box_query_plan *plan_out)
{
    *plan_out = query->plan;
}
