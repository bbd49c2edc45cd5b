/* query_term.c - the meaning of one operator with its value; see search.h. */
#include "mail/search/query_tree.h"

#include "base/calendar.h"
#include "base/check.h"
#include "base/json.h"

#include <time.h>

typedef struct tide_query_node node;
typedef struct tide_query_making making_state;
typedef struct tide_query_written written_term;

node *tide_query_node_new(making_state *making, tide_term term, uint32_t at)
{
    if (making->rc != TIDE_OK)
        return NULL;
    node *made = tide_arena_take(&making->query->arena, sizeof *made);
    if (made == NULL) {
        making->rc = tide_error_set(making->err, TIDE_NO_MEMORY, "no memory for a query");
        return NULL;
    }
    made->term = term;
    made->at = at;
    made->low = INT64_MIN;
    made->high = INT64_MAX;
    return made;
}

/* ---- texts for messages ---- */

void tide_query_show(tide_text text, char shown_out[TIDE_QUERY_SHOWN_BYTES])
{
    static const char cut[] = "...";
    const size_t room = TIDE_QUERY_SHOWN_BYTES - sizeof cut;
    size_t bytes = 0;
    while (bytes < text.bytes) {
        size_t next = tide_utf8_bytes((tide_text){text.data + bytes, text.bytes - bytes});
        next = next == 0 ? 1 : next;
        if (bytes + next > room)
            break;
        for (size_t i = 0; i < next; i++) {
            const char c = text.data[bytes + i];
            shown_out[bytes + i] = (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c;
        }
        bytes += next;
    }
    memcpy(shown_out + bytes, bytes < text.bytes ? cut : "", bytes < text.bytes ? sizeof cut : 1);
}

const char *tide_query_nearest(tide_text name, const char *const *names, size_t count)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        const tide_text known = tide_text_of(names[i]);
        const size_t distance = tide_text_distance(name, known);
        const size_t longer = name.bytes > known.bytes ? name.bytes : known.bytes;
        /* With more than half of the letters wrong it is another word. */
        if (distance < best && distance <= 3 && distance * 2 <= longer) {
            best = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

/* ---- labels ---- */

/* The next character, in lower case where one range does it: Latin, Greek and Cyrillic.  Other
 * scripts have no case, or are rare in labels. */
static uint32_t label_char(tide_text text, size_t *at)
{
    const unsigned char *data = (const unsigned char *)text.data + *at;
    size_t bytes = tide_utf8_bytes((tide_text){text.data + *at, text.bytes - *at});
    bytes = bytes == 0 ? 1 : bytes;
    *at += bytes;
    uint32_t c = bytes == 1 ? data[0] : data[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        c = c << 6 | (data[i] & 0x3fu);
    if (c == ' ' || c == '/')
        return '-';
    if ((c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0xde && c != 0xd7) ||
        (c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
        return c + 32;
    if (c >= 0x400 && c <= 0x40f)
        return c + 80;
    if ((c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177))
        return c | 1;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e))
        return c + (c & 1);
    return c;
}

bool tide_query_same_label(tide_text a, tide_text b)
{
    size_t at_a = 0, at_b = 0;
    while (at_a < a.bytes && at_b < b.bytes)
        if (label_char(a, &at_a) != label_char(b, &at_b))
            return false;
    return at_a == a.bytes && at_b == b.bytes;
}

/* ---- making terms ---- */

static node *leaf(making_state *making, const written_term *written, tide_term term)
{
    if (++making->terms > TIDE_QUERY_NODES_MAX && making->rc == TIDE_OK)
        making->rc = tide_error_set(making->err, TIDE_INVALID, "the query has more than %d terms",
                                    TIDE_QUERY_NODES_MAX);
    node *made = tide_query_node_new(making, term, written->at);
    if (made != NULL)
        made->negated = written->negated;
    return made;
}

static node *leaf_text(making_state *making, const written_term *written, tide_term term,
                       tide_text text)
{
    node *made = leaf(making, written, term);
    if (made == NULL)
        return NULL;
    made->text =
        (tide_text){tide_arena_copy(&making->query->arena, text.data, text.bytes), text.bytes};
    if (made->text.data == NULL)
        making->rc = tide_error_set(making->err, TIDE_NO_MEMORY, "no memory for a query");
    return making->rc == TIDE_OK ? made : NULL;
}

/* Everything or nothing; a negation swaps them. */
static node *constant(making_state *making, const written_term *written, bool all)
{
    node *made = leaf(making, written, all != written->negated ? TIDE_TERM_ALL : TIDE_TERM_NONE);
    if (made != NULL)
        made->negated = false;
    return made;
}

/* An invalid value.  `wants` says what would be valid. */
static node *senseless(making_state *making, const written_term *written, const char *wants,
                       const char *nearest)
{
    char name[TIDE_QUERY_SHOWN_BYTES], value[TIDE_QUERY_SHOWN_BYTES];
    tide_query_show(written->name, name);
    tide_query_show(written->value, value);
    if (making->rc == TIDE_OK)
        making->rc = tide_error_set(
            making->err, TIDE_INVALID,
            "\"%s:%s\" at character %u of the query is invalid: %s: needs %s%s%s%s", name, value,
            (unsigned)written->at, name, wants, nearest == NULL ? "" : "; did you mean \"",
            nearest == NULL ? "" : nearest, nearest == NULL ? "" : "\"?");
    return NULL;
}

static bool same_value(tide_text value, const char *name)
{
    return tide_query_same_label(value, tide_text_of(name));
}

/* One of Gmail's own labels, by id.  A query that names spam or trash includes them. */
static node *system_term(making_state *making, const written_term *written, const char *id,
                         bool turned)
{
    written_term asked = *written;
    asked.negated = written->negated != turned;
    node *made = leaf_text(making, &asked, TIDE_TERM_LABEL, tide_text_of(id));
    if (made == NULL)
        return NULL;
    made->system = true;
    if (!asked.negated && (strcmp(id, "SPAM") == 0 || strcmp(id, "TRASH") == 0))
        making->query->spam_trash = true;
    return made;
}

static const struct {
    const char *name;
    const char *id;
} places[] = {
    {"inbox", "INBOX"},   {"spam", "SPAM"},           {"trash", "TRASH"}, {"bin", "TRASH"},
    {"unread", "UNREAD"}, {"starred", "STARRED"},     {"sent", "SENT"},   {"draft", "DRAFT"},
    {"drafts", "DRAFT"},  {"important", "IMPORTANT"}, {"chat", "CHAT"},   {"chats", "CHAT"},
};

/* in: and label: are synonyms except for "anywhere" and "archive".  Only an archive knows whether a
 * label of that name exists. */
static node *place_term(making_state *making, const written_term *written)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (same_value(written->value, places[i].name))
            return system_term(making, written, places[i].id, false);
    if (same_value(written->value, "read"))
        return system_term(making, written, "UNREAD", true);
    return leaf_text(making, written, TIDE_TERM_LABEL, written->value);
}

/* Archived mail has none of the other places. */
static node *archive_term(making_state *making, const written_term *written)
{
    static const char *const elsewhere[] = {"INBOX", "SENT", "DRAFT", "SPAM", "TRASH"};
    const bool spam_trash = making->query->spam_trash;
    node *made =
        tide_query_node_new(making, written->negated ? TIDE_TERM_OR : TIDE_TERM_AND, written->at);
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0] && made != NULL; i++) {
        node *label = system_term(making, written, elsewhere[i], true);
        if (label == NULL)
            return NULL;
        if (made->last == NULL)
            made->first = label;
        else
            made->last->next = label;
        made->last = label;
    }
    making->query->spam_trash = spam_trash; /* -in:archive does not include them */
    return made;
}

static node *in_term(making_state *making, const written_term *written)
{
    if (same_value(written->value, "anywhere")) {
        making->query->spam_trash = making->query->spam_trash || !written->negated;
        return constant(making, written, true);
    }
    if (same_value(written->value, "archive"))
        return archive_term(making, written);
    return place_term(making, written);
}

static node *is_term(making_state *making, const written_term *written)
{
    static const char *const states[] = {"unread", "read", "starred", "important", "sent",
                                         "draft",  "chat", "spam",    "trash",     "inbox"};
    const size_t count = sizeof states / sizeof states[0];
    for (size_t i = 0; i < count; i++)
        if (same_value(written->value, states[i]))
            return place_term(making, written);
    return senseless(making, written, "unread, read, starred or important",
                     tide_query_nearest(written->value, states, count));
}

/* One of these phrases in the text: the links by which Gmail knows such messages. */
static node *link_term(making_state *making, const written_term *written,
                       const char *const links[2])
{
    node *made =
        tide_query_node_new(making, written->negated ? TIDE_TERM_AND : TIDE_TERM_OR, written->at);
    node *last = NULL;
    for (size_t i = 0; i < 2 && links[i] != NULL && made != NULL; i++) {
        last = leaf_text(making, written, TIDE_TERM_WORDS, tide_text_of(links[i]));
        if (last == NULL)
            return NULL;
        last->fields = TIDE_IN_TEXT;
        last->exact = true;
        if (made->last == NULL)
            made->first = last;
        else
            made->last->next = last;
        made->last = last;
    }
    return links[1] == NULL ? last : made; /* QRY1 */
}

static node *has_term(making_state *making, const written_term *written)
{
    static const struct {
        const char *name;
        const char *links[2];
    } linked[] = {
        {"drive", {"drive.google.com", "docs.google.com"}},
        {"document", {"docs.google.com/document", NULL}},
        {"spreadsheet", {"docs.google.com/spreadsheets", NULL}},
        {"presentation", {"docs.google.com/presentation", NULL}},
        {"youtube", {"youtube.com", "youtu.be"}},
    };
    static const char *const things[] = {"attachment", "userlabels",  "nouserlabels", "drive",
                                         "document",   "spreadsheet", "presentation", "youtube"};
    if (same_value(written->value, "attachment") || same_value(written->value, "attachments"))
        return leaf(making, written, TIDE_TERM_ATTACHMENT);
    const bool none = same_value(written->value, "nouserlabels");
    if (none || same_value(written->value, "userlabels")) {
        node *made = leaf(making, written, TIDE_TERM_USER_LABEL);
        if (made != NULL)
            made->negated = made->negated != none;
        return made;
    }
    for (size_t i = 0; i < sizeof linked / sizeof linked[0]; i++)
        if (same_value(written->value, linked[i].name))
            return link_term(making, written, linked[i].links);
    return senseless(making, written,
                     "attachment, userlabels, nouserlabels, drive, document, spreadsheet, "
                     "presentation or youtube",
                     tide_query_nearest(written->value, things, sizeof things / sizeof things[0]));
}

static node *category_term(making_state *making, const written_term *written)
{
    static const char *const names[] = {"primary",    "personal", "social",
                                        "promotions", "updates",  "forums"};
    static const char *const ids[] = {"CATEGORY_PERSONAL", "CATEGORY_PERSONAL",
                                      "CATEGORY_SOCIAL",   "CATEGORY_PROMOTIONS",
                                      "CATEGORY_UPDATES",  "CATEGORY_FORUMS"};
    const size_t count = sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++)
        if (same_value(written->value, names[i]))
            return system_term(making, written, ids[i], false);
    return senseless(making, written, "primary, social, promotions, updates or forums",
                     tide_query_nearest(written->value, names, count));
}

/* ---- ranges ---- */

/* low <= x if `from`, else x < high; a negation is the opposite range (QRY2). */
static node *range_term(making_state *making, const written_term *written, tide_term term,
                        bool from, int64_t bound)
{
    node *made = leaf(making, written, term);
    if (made == NULL)
        return NULL;
    made->negated = false;
    if (from != written->negated)
        made->low = bound;
    else
        made->high = bound;
    return made;
}

static bool date_valid(uint64_t year, uint64_t month, uint64_t day, struct tide_date *date_out)
{
    if (year < 1000 || year > 9999 || month > 12 || day > 31)
        return false;
    *date_out = (struct tide_date){(int32_t)year, (uint32_t)month, (uint32_t)day};
    return tide_date_is_real(*date_out);
}

/* Midnight of a date.  Locally the offset is that of the date itself, summer time included. */
static int64_t midnight_ms(struct tide_date date, int32_t utc_offset_s)
{
    if (utc_offset_s == TIDE_QUERY_LOCAL) {
        struct tm local = {.tm_year = date.year - 1900,
                           .tm_mon = (int)date.month - 1,
                           .tm_mday = (int)date.day,
                           .tm_isdst = -1};
        return (int64_t)mktime(&local) * 1000;
    }
    return (tide_days_of(date) * 86400 - utc_offset_s) * 1000;
}

/* 2014/1/31, 2014-01-31, 2014/1, 2014; else false. */
static bool calendar_read(tide_text value, int32_t utc_offset_s, int64_t *ms_out)
{
    uint64_t numbers[3] = {0, 1, 1}; /* a month alone is its first day */
    size_t at = 0;
    char between = 0;
    for (size_t i = 0;; i++) {
        const size_t start = at;
        while (at < value.bytes && value.data[at] >= '0' && value.data[at] <= '9')
            at++;
        if (at - start > 4 ||
            !tide_text_to_u64((tide_text){value.data + start, at - start}, &numbers[i]))
            return false;
        if (at == value.bytes)
            break;
        const char c = value.data[at++];
        if (i == 2 || (c != '/' && c != '-') || (between != 0 && c != between))
            return false;
        between = c;
    }
    struct tide_date date;
    if (!date_valid(numbers[0], numbers[1], numbers[2], &date))
        return false;
    *ms_out = midnight_ms(date, utc_offset_s);
    return true;
}

/* Four digits are a year; any other number is seconds since 1970. */
static bool date_read(tide_text value, int32_t utc_offset_s, int64_t *ms_out)
{
    static const uint64_t seconds_max = 253402300800u; /* the year 10000 */
    uint64_t seconds = 0;
    if (value.bytes == 4 || !tide_text_to_u64(value, &seconds))
        return calendar_read(value, utc_offset_s, ms_out);
    if (seconds >= seconds_max) /* probably milliseconds, which would silently match wrong */
        return false;
    *ms_out = (int64_t)seconds * 1000;
    return true;
}

static node *date_term(making_state *making, const written_term *written, bool from)
{
    int64_t ms = 0;
    if (!date_read(written->value, making->utc_offset_s, &ms))
        return senseless(making, written, "a date like 2014/01/31, or seconds since 1970", NULL);
    return range_term(making, written, TIDE_TERM_DATE, from, ms);
}

/* A number and one letter; a month has 30 days and a year 365, as in Gmail. */
static bool age_read(tide_text value, int64_t *ms_out)
{
    static const struct {
        char unit;
        int64_t hours;
    } units[] = {{'h', 1}, {'d', 24}, {'w', 24 * 7}, {'m', 24 * 30}, {'y', 24 * 365}};
    uint64_t count = 0;
    if (value.bytes < 2 || !tide_text_to_u64((tide_text){value.data, value.bytes - 1}, &count) ||
        count > 1000000)
        return false;
    const char unit = value.data[value.bytes - 1];
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (unit == units[i].unit || unit == units[i].unit - ('a' - 'A')) {
            *ms_out = (int64_t)count * units[i].hours * 3600 * 1000;
            return true;
        }
    }
    return false;
}

static node *age_term(making_state *making, const written_term *written, bool newer)
{
    int64_t age_ms = 0;
    if (!age_read(written->value, &age_ms))
        return senseless(making, written, "an age like 3d, 2w, 6m or 1y", NULL);
    return range_term(making, written, TIDE_TERM_DATE, newer, making->now_ms - age_ms);
}

/* 1000, 5k, 10M, 10MB: of 1024 each. */
static bool size_read(tide_text value, int64_t *bytes_out)
{
    static const char units[] = "kmg";
    if (value.bytes > 1 &&
        (value.data[value.bytes - 1] == 'b' || value.data[value.bytes - 1] == 'B'))
        value.bytes--;
    unsigned shift = 0;
    for (unsigned i = 0; i < 3 && value.bytes > 1; i++)
        if ((value.data[value.bytes - 1] | 0x20) == units[i])
            shift = 10 * (i + 1);
    value.bytes -= shift > 0;
    uint64_t count = 0;
    if (!tide_text_to_u64(value, &count) || count > (uint64_t)(INT64_MAX - 1) >> shift)
        return false;
    *bytes_out = (int64_t)(count << shift);
    return true;
}

static node *size_term(making_state *making, const written_term *written, bool larger)
{
    int64_t bytes = 0;
    if (!size_read(written->value, &bytes))
        return senseless(making, written, "a size like 5000, 5k or 10M", NULL);
    return range_term(making, written, TIDE_TERM_BYTES, larger, larger ? bytes + 1 : bytes);
}

/* ---- words ---- */

static node *message_id_term(making_state *making, const written_term *written)
{
    tide_text id = written->value;
    if (id.bytes > 0 && id.data[0] == '<')
        id = (tide_text){id.data + 1, id.bytes - 1};
    if (id.bytes > 0 && id.data[id.bytes - 1] == '>')
        id.bytes--;
    if (id.bytes == 0)
        return senseless(making, written, "a Message-ID", NULL);
    return leaf_text(making, written, TIDE_TERM_MESSAGE_ID, id);
}

/* Whether it may contain a word: certain for ASCII; for other characters the index decides when it
 * is queried. */
static bool has_word(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
            return true;
    }
    return false;
}

/* Whether what stands before the '*' ends in at least two letters or digits, or in one that is no
 * ASCII: the words that begin with one letter are a tenth of all words. */
static bool starts_enough(tide_text value)
{
    size_t end = value.bytes;
    while (end > 0 && value.data[end - 1] == '*')
        end--;
    return end > 0 && ((unsigned char)value.data[end - 1] >= 0x80 ||
                       (end > 1 && has_word((tide_text){value.data + end - 2, 1}) &&
                        has_word((tide_text){value.data + end - 1, 1})));
}

static node *prefix_short(making_state *making, const written_term *written)
{
    char value[TIDE_QUERY_SHOWN_BYTES];
    tide_query_show(written->value, value);
    making->rc =
        tide_error_set(making->err, TIDE_INVALID,
                       "\"%s\" at character %u of the query: a * needs at least two letters "
                       "or digits before it",
                       value, (unsigned)written->at);
    return NULL;
}

static bool is_letter(char c)
{
    return (unsigned char)c >= 0x80 || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Labels with dots between them, the last one of letters: what may be the beginning of an address, too
 * (from:jim.bob). */
static bool is_domain(tide_text text)
{
    size_t label = 0, labels = 1, letters = 0; /* of the last label */
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i];
        if (c == '.' && label == 0)
            return false;
        if (c != '.' && c != '-' && !is_letter(c) && !(c >= '0' && c <= '9'))
            return false;
        labels += c == '.';
        label = c == '.' ? 0 : label + 1;
        letters = c == '.' ? 0 : letters + is_letter(c);
    }
    return labels > 1 && letters > 1 && letters == label;
}

/* Whether the value is an address, or the domain of one; in quotation marks a domain is words. */
static bool is_address(const written_term *written)
{
    const tide_text text = written->value;
    const char *sign = memchr(text.data, '@', text.bytes);
    if (sign == NULL)
        return !written->quoted && is_domain(text);
    const size_t local = (size_t)(sign - text.data);
    for (size_t i = 0; i < text.bytes; i++)
        if (strchr(" \t<>,;\"", text.data[i]) != NULL)
            return false;
    return local + 1 < text.bytes && memchr(sign + 1, '@', text.bytes - local - 1) == NULL;
}

/* Without the brackets in which an address is often copied. */
static tide_text unbracketed(tide_text text)
{
    const bool both = text.bytes > 2 && text.data[0] == '<' && text.data[text.bytes - 1] == '>' &&
                      memchr(text.data, '@', text.bytes) != NULL;
    return both ? (tide_text){text.data + 1, text.bytes - 2} : text;
}

static node *words_term(making_state *making, const written_term *written)
{
    static const uint8_t fields[] = {
        [TIDE_OP_WORD] = TIDE_IN_ANY,
        [TIDE_OP_BCC] = TIDE_IN_BCC,
        [TIDE_OP_CC] = TIDE_IN_CC,
        [TIDE_OP_FILENAME] = TIDE_IN_FILES,
        [TIDE_OP_FROM] = TIDE_IN_FROM,
        [TIDE_OP_SUBJECT] = TIDE_IN_SUBJECT,
        [TIDE_OP_TO] = TIDE_IN_TO | TIDE_IN_CC | TIDE_IN_BCC,
    };
    TIDE_ASSERT(fields[written->op] != 0);
    if (!has_word(written->value)) /* "&" alone is ignored, but subject:& is an error */
        return written->op == TIDE_OP_WORD
                   ? NULL
                   : senseless(making, written, "a word: letters or digits", NULL);
    const bool prefix = !written->quoted && written->value.data[written->value.bytes - 1] == '*';
    if (prefix && !starts_enough(written->value))
        return prefix_short(making, written);
    node *made = leaf_text(making, written, TIDE_TERM_WORDS, written->value);
    if (made == NULL)
        return NULL;
    made->fields = fields[written->op];
    made->prefix = prefix;
    /* Names and addresses have no forms. */
    made->exact = written->quoted || written->exact || prefix ||
                  (made->fields != TIDE_IN_ANY && made->fields != TIDE_IN_SUBJECT);
    const bool in_address =
        (made->fields & ~(TIDE_IN_FROM | TIDE_IN_TO | TIDE_IN_CC | TIDE_IN_BCC)) == 0;
    made->me = !written->quoted && same_value(written->value, "me") && in_address;
    made->address = in_address && !prefix && !made->me && is_address(written);
    return made;
}

static node *header_term(making_state *making, const written_term *written, tide_term term)
{
    if (!has_word(written->value))
        return senseless(making, written, "a word: letters or digits", NULL);
    node *made = leaf_text(making, written, term, written->value);
    if (made != NULL)
        made->address = term == TIDE_TERM_DELIVERED && is_address(written);
    return made;
}

node *tide_query_term(making_state *making, const written_term *written)
{
    if (making->rc != TIDE_OK)
        return NULL;
    if (written->value.bytes == 0 && written->op != TIDE_OP_WORD)
        return senseless(making, written, "a value right after the colon", NULL);
    written_term bare = *written;
    bare.value = unbracketed(written->value);
    switch (written->op) {
    case TIDE_OP_AFTER:
    case TIDE_OP_BEFORE:
        return date_term(making, written, written->op == TIDE_OP_AFTER);
    case TIDE_OP_NEWER_THAN:
    case TIDE_OP_OLDER_THAN:
        return age_term(making, written, written->op == TIDE_OP_NEWER_THAN);
    case TIDE_OP_LARGER:
    case TIDE_OP_SMALLER:
        return size_term(making, written, written->op == TIDE_OP_LARGER);
    case TIDE_OP_CATEGORY:
        return category_term(making, written);
    case TIDE_OP_HAS:
        return has_term(making, written);
    case TIDE_OP_IN:
        return in_term(making, written);
    case TIDE_OP_IS:
        return is_term(making, written);
    case TIDE_OP_LABEL:
        return place_term(making, written);
    case TIDE_OP_MESSAGE_ID:
        return message_id_term(making, written);
    case TIDE_OP_LIST:
        return header_term(making, written, TIDE_TERM_LIST);
    case TIDE_OP_DELIVERED:
        return header_term(making, &bare, TIDE_TERM_DELIVERED);
    case TIDE_OP_BCC:
    case TIDE_OP_CC:
    case TIDE_OP_FROM:
    case TIDE_OP_TO:
        return words_term(making, &bare);
    case TIDE_OP_WORD:
    case TIDE_OP_FILENAME:
    case TIDE_OP_SUBJECT:
        break;
    }
    return words_term(making, written);
}
