/* query_term.c - what one operator with its value means; see query.h. */
#include "cloudbox/mailbox/query_tree.h"

#include "base/calendar.h"
#include "base/check.h"

typedef struct box_query_node node;

node *box_query_node_new(struct box_query_making *making, box_term term)
{
    if (++making->nodes > BOX_QUERY_NODES_MAX)
        making->beyond = true;
    node *made = tide_arena_take(making->arena, sizeof *made);
    TIDE_ASSERT(made != NULL);
    made->term = term;
    return made;
}

bool box_query_same(tide_text text, const char *name)
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

/* Everything or nothing; `negated` turns it round. */
static node *constant(struct box_query_making *making, bool all, bool negated)
{
    return box_query_node_new(making, all != negated ? BOX_TERM_ALL : BOX_TERM_NONE);
}

/* A term that makes no sense: its negation makes none either. */
static node *senseless(struct box_query_making *making)
{
    return box_query_node_new(making, BOX_TERM_NONE);
}

static node *leaf(struct box_query_making *making, box_term term, box_query_cost cost, bool negated)
{
    node *made = box_query_node_new(making, term);
    made->cost = cost;
    made->negated = negated;
    return made;
}

/* A label by number; one that no message has is decided at once, so that
 * "-in:chats" costs nothing. */
static node *label_term(struct box_query_making *making, uint32_t number, bool negated)
{
    if (!negated && (number == BOX_LABEL_SPAM || number == BOX_LABEL_TRASH))
        making->spam_trash = true;
    const struct box_label *label = box_mailbox_label(making->mailbox, number);
    if (label == NULL || label->gone || label->messages == 0)
        return constant(making, false, negated);
    node *made = leaf(making, BOX_TERM_LABEL, BOX_COST_FREE, negated);
    made->label = number;
    return made;
}

/* low <= x < high with one open end, so that its negation is such a range too. */
static node *range_term(struct box_query_making *making, box_term term, bool from, uint64_t bound,
                        bool negated)
{
    if (from == negated && bound == 0)
        return box_query_node_new(making, BOX_TERM_NONE);
    if (from != negated && bound == 0)
        return box_query_node_new(making, BOX_TERM_ALL);
    node *made = leaf(making, term, BOX_COST_FREE, false);
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
static node *place_term(struct box_query_making *making, tide_text value, bool negated)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (box_query_same(value, places[i].name))
            return label_term(making, places[i].label, negated);
    if (box_query_same(value, "read"))
        return label_term(making, BOX_LABEL_UNREAD, !negated);
    uint32_t number = 0;
    if (box_mailbox_label_by_name(making->mailbox, value, &number))
        return label_term(making, number, negated);
    return constant(making, false, negated);
}

static node *in_term(struct box_query_making *making, tide_text value, bool negated)
{
    if (box_query_same(value, "anywhere")) {
        making->spam_trash = making->spam_trash || !negated;
        return constant(making, true, negated);
    }
    return place_term(making, value, negated);
}

static node *is_term(struct box_query_making *making, tide_text value, bool negated)
{
    static const char *const states[] = {"unread", "read", "starred", "important", "chat", "sent"};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (box_query_same(value, states[i]))
            return place_term(making, value, negated);
    if (box_query_same(value, "muted") || box_query_same(value, "snoozed"))
        return constant(making, false, negated);
    return senseless(making);
}

static node *has_term(struct box_query_making *making, tide_text value, bool negated)
{
    static const char *const never[] = {"drive", "document", "spreadsheet", "presentation",
                                        "youtube"};
    if (box_query_same(value, "attachment"))
        return leaf(making, BOX_TERM_ATTACHMENT, BOX_COST_BODY, negated);
    if (box_query_same(value, "userlabels"))
        return leaf(making, BOX_TERM_USER_LABELS, BOX_COST_FREE, negated);
    if (box_query_same(value, "nouserlabels"))
        return leaf(making, BOX_TERM_USER_LABELS, BOX_COST_FREE, !negated);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (box_query_same(value, never[i]))
            return constant(making, false, negated);
    return senseless(making);
}

static node *category_term(struct box_query_making *making, tide_text value, bool negated)
{
    static const char *const names[] = {"primary", "social", "promotions", "updates", "forums"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (box_query_same(value, names[i]))
            return label_term(making, BOX_LABEL_CATEGORY_PERSONAL + i, negated);
    if (box_query_same(value, "reservations") || box_query_same(value, "purchases"))
        return constant(making, false, negated);
    return senseless(making);
}

static bool date_valid(uint64_t year, uint64_t month, uint64_t day, struct tide_date *date_out)
{
    if (year < 1000 || year > 9999 || month > 12 || day > 31)
        return false;
    *date_out = (struct tide_date){(int32_t)year, (uint32_t)month, (uint32_t)day};
    return tide_date_is_real(*date_out);
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
    struct tide_date date;
    if (!date_valid(year, month, day, &date))
        return false;
    const int64_t days = tide_days_of(date);
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

static node *date_term(struct box_query_making *making, tide_text value, bool from, bool negated)
{
    uint64_t ms = 0;
    return date_read(value, &ms) ? range_term(making, BOX_TERM_DATE, from, ms, negated)
                                 : senseless(making);
}

static node *age_term(struct box_query_making *making, tide_text value, bool newer, bool negated)
{
    uint64_t age_ms = 0;
    if (!age_read(value, &age_ms))
        return senseless(making);
    const uint64_t then_ms = age_ms < making->now_ms ? making->now_ms - age_ms : 0;
    return range_term(making, BOX_TERM_DATE, newer, then_ms, negated);
}

/* 1000, 5k, 10M. */
static node *size_term(struct box_query_making *making, tide_text value, bool larger, bool negated)
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
        return senseless(making);
    const uint64_t bytes = count * unit;
    return range_term(making, BOX_TERM_SIZE, larger, larger ? bytes + 1 : bytes, negated);
}

static node *message_id_term(struct box_query_making *making, tide_text value, bool negated)
{
    if (value.bytes > 0 && value.data[0] == '<')
        value = (tide_text){value.data + 1, value.bytes - 1};
    if (value.bytes > 0 && value.data[value.bytes - 1] == '>')
        value.bytes--;
    if (value.bytes == 0)
        return senseless(making);
    node *made = leaf(making, BOX_TERM_MESSAGE_ID, BOX_COST_HEAD, negated);
    made->text = value;
    return made;
}

/* Terms that compare words.  The text of a header is a piece of it, so the
 * blanks at its ends go. */
static node *text_term(struct box_query_making *making, box_operator op, tide_text value,
                       bool negated)
{
    static const struct {
        box_operator op;
        box_query_header header;
    } headers[] = {
        {BOX_OP_FROM, BOX_QUERY_FROM}, {BOX_OP_TO, BOX_QUERY_TO},
        {BOX_OP_CC, BOX_QUERY_CC},     {BOX_OP_BCC, BOX_QUERY_BCC},
        {BOX_OP_LIST, BOX_QUERY_LIST}, {BOX_OP_DELIVERED_TO, BOX_QUERY_DELIVERED_TO},
    };
    const bool address =
        op != BOX_OP_WORD && op != BOX_OP_SUBJECT && op != BOX_OP_FILENAME && op != BOX_OP_LIST;
    if (address && box_query_same(value, "me"))
        value = tide_text_of(box_mailbox_email(making->mailbox));
    tide_auto_buf folded = tide_buf_heap(4 * BOX_QUERY_BYTES_MAX + 16384);
    box_query_fold(value, &folded);
    const tide_text text = {tide_arena_copy(making->arena, tide_buf_cstr(&folded), folded.bytes),
                            folded.bytes};
    TIDE_ASSERT(text.data != NULL);
    if (text.bytes == 0) /* punctuation is no word: ignored alone, invalid as a value */
        return op == BOX_OP_WORD ? NULL : senseless(making);

    if (op == BOX_OP_WORD || op == BOX_OP_SUBJECT || op == BOX_OP_FILENAME) {
        const box_term term = op == BOX_OP_WORD      ? BOX_TERM_WORDS
                              : op == BOX_OP_SUBJECT ? BOX_TERM_SUBJECT
                                                     : BOX_TERM_FILENAME;
        node *made =
            leaf(making, term, op == BOX_OP_SUBJECT ? BOX_COST_HEAD : BOX_COST_BODY, negated);
        made->text = text;
        return made;
    }
    node *made = leaf(making, BOX_TERM_HEADER, BOX_COST_HEAD, negated);
    made->text = (tide_text){text.data + 1, text.bytes - 2};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (headers[i].op == op)
            made->header = headers[i].header;
    return made;
}

node *box_query_term(struct box_query_making *making, box_operator op, tide_text value,
                     bool negated)
{
    if (value.bytes == 0 && op != BOX_OP_WORD)
        return senseless(making);
    switch (op) {
    case BOX_OP_UNKNOWN:
        return senseless(making);
    case BOX_OP_AFTER:
    case BOX_OP_BEFORE:
        return date_term(making, value, op == BOX_OP_AFTER, negated);
    case BOX_OP_NEWER_THAN:
    case BOX_OP_OLDER_THAN:
        return age_term(making, value, op == BOX_OP_NEWER_THAN, negated);
    case BOX_OP_LARGER:
    case BOX_OP_SMALLER:
        return size_term(making, value, op == BOX_OP_LARGER, negated);
    case BOX_OP_CATEGORY:
        return category_term(making, value, negated);
    case BOX_OP_HAS:
        return has_term(making, value, negated);
    case BOX_OP_IN:
        return in_term(making, value, negated);
    case BOX_OP_IS:
        return is_term(making, value, negated);
    case BOX_OP_LABEL:
        return place_term(making, value, negated);
    case BOX_OP_MESSAGE_ID:
        return message_id_term(making, value, negated);
    case BOX_OP_WORD:
    case BOX_OP_BCC:
    case BOX_OP_CC:
    case BOX_OP_DELIVERED_TO:
    case BOX_OP_FILENAME:
    case BOX_OP_FROM:
    case BOX_OP_LIST:
    case BOX_OP_SUBJECT:
    case BOX_OP_TO:
        break;
    }
    return text_term(making, op, value, negated);
}
