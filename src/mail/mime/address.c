#include "mail/mime/address.h"
#include "mail/mime/header.h"
#include "mail/mime/message.h"
#include "base/check.h"

/* One address being read: its words without quotes, the same unchanged, the text in brackets, the
 * text in comments. */
struct item {
    tide_buf name;
    tide_buf plain;
    tide_buf angle;
    tide_buf comment;
    tide_buf tight; /* scratch */
    bool has_angle;
    bool has_at; /* an @ outside brackets, quotes and comments */
};

struct reader {
    tide_decoder *decoder;
    tide_text value;
    size_t at;
    size_t no_quote_from; /* no closing quote at or after it: keeps the search linear */
    size_t word_ends;     /* of tide_header_word_bytes() */
    unsigned groups;
    bool deep;
    struct item item;
    tide_buf *out;
};

static void item_clear(struct item *item)
{
    tide_buf_clear(&item->name);
    tide_buf_clear(&item->plain);
    tide_buf_clear(&item->angle);
    tide_buf_clear(&item->comment);
    item->has_angle = false;
    item->has_at = false;
}

/* ---- writing ---- */

static void trim_end(tide_buf *out, size_t from)
{
    while (out->bytes > from && out->data[out->bytes - 1] == ' ')
        out->data[--out->bytes] = '\0';
}

static tide_status add_separator(struct reader *reader)
{
    size_t bytes = reader->out->bytes;
    if (bytes == 0 || (bytes >= 2 && reader->out->data[bytes - 1] == ' '))
        return TIDE_OK; /* the first one, or after the name of a group */
    return tide_buf_add(reader->out, ", ", 2);
}

/* A name in quotes if commas or brackets in it would be misread. */
static tide_status add_quoted(tide_text name, tide_buf *out)
{
    TIDE_TRY(tide_buf_add(out, "\"", 1));
    for (size_t i = 0; i < name.bytes; i++) {
        if (name.data[i] == '"' || name.data[i] == '\\')
            TIDE_TRY(tide_buf_add(out, "\\", 1));
        TIDE_TRY(tide_buf_add(out, &name.data[i], 1));
    }
    return tide_buf_add(out, "\"", 1);
}

static bool needs_quotes(tide_text name)
{
    for (size_t i = 0; i < name.bytes; i++) {
        if (strchr(",;:<>\"", name.data[i]) != NULL)
            return true;
    }
    return false;
}

/* Decodes `raw` and adds it as a name before an address. */
static tide_status add_name(struct reader *reader, tide_text raw)
{
    /* Decode into a separate buffer: the output is scanned again. */
    tide_auto_buf name = tide_buf_in(reader->decoder->mem, TIDE_MESSAGE_TEXT_BYTES_MAX);
    tide_status rc = tide_header_words(reader->decoder, raw, &name);
    trim_end(&name, 0);
    if (rc == TIDE_OK && name.bytes > 0)
        rc = needs_quotes(tide_buf_text(&name)) ? add_quoted(tide_buf_text(&name), reader->out)
                                                : tide_buf_add(reader->out, name.data, name.bytes);
    if (rc == TIDE_OK && name.bytes > 0)
        rc = tide_buf_add(reader->out, " ", 1);
    return rc;
}

static tide_status add_clean(struct reader *reader, tide_text raw)
{
    size_t before = reader->out->bytes;
    tide_status rc = tide_header_words(reader->decoder, raw, reader->out);
    trim_end(reader->out, before);
    return rc;
}

/* An address without its comments and without the white space that RFC 5322 allows around its
 * dots. */
static tide_status add_address(struct reader *reader, tide_text raw)
{
    tide_buf *tight = &reader->item.tight;
    tide_buf_clear(tight);
    unsigned depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < raw.bytes; i++) {
        char c = raw.data[i];
        quoted ^= c == '"' && depth == 0;
        depth += !quoted && c == '(';
        bool dropped = depth > 0;
        depth -= !quoted && c == ')' && depth > 0;
        bool joint = tight->bytes > 0 && strchr(".@", tight->data[tight->bytes - 1]) != NULL;
        dropped = dropped || (!quoted && joint && (c == ' ' || (c >= '\t' && c <= '\r')));
        if (!quoted && (c == '.' || c == '@')) {
            while (tight->bytes > 0 && tight->data[tight->bytes - 1] == ' ')
                tight->bytes--;
        }
        if (!dropped)
            TIDE_TRY(tide_buf_add(tight, &c, 1));
    }
    return add_clean(reader, tide_buf_text(tight));
}

/* "Name <address>", or just the address if the name adds nothing. */
static tide_status add_pair(struct reader *reader, tide_text name, tide_text address)
{
    TIDE_TRY(add_separator(reader));
    size_t begin = reader->out->bytes;
    if (!tide_text_equal(name, address))
        TIDE_TRY(add_name(reader, name));
    bool named = reader->out->bytes > begin;
    if (named)
        TIDE_TRY(tide_buf_add(reader->out, "<", 1));
    TIDE_TRY(add_address(reader, address));
    if (named)
        TIDE_TRY(tide_buf_add(reader->out, ">", 1));
    return TIDE_OK;
}

/* Writes the item at a comma, a semicolon or the end. */
static tide_status item_end(struct reader *reader)
{
    struct item *item = &reader->item;
    tide_text name = tide_text_trimmed(tide_buf_text(&item->name));
    tide_text plain = tide_text_trimmed(tide_buf_text(&item->plain));
    tide_text angle = tide_text_trimmed(tide_buf_text(&item->angle));
    tide_text comment = tide_text_trimmed(tide_buf_text(&item->comment));
    tide_status rc = TIDE_OK;
    if (item->has_angle && angle.bytes > 0)
        rc = add_pair(reader, name.bytes > 0 ? name : comment, angle);
    else if (plain.bytes > 0 && item->has_at)
        rc = add_pair(reader, comment, plain);
    else if (plain.bytes > 0) {
        rc = add_separator(reader);
        if (rc == TIDE_OK)
            rc = add_clean(reader, name.bytes > 0 ? name : plain);
    }
    item_clear(item);
    return rc;
}

/* ---- reading ---- */

/* A quoted string: its content goes to the name, all of it to the plain text. */
static tide_status read_quoted(struct reader *reader)
{
    tide_text value = reader->value;
    size_t end = reader->at + 1;
    while (reader->at < reader->no_quote_from && end < value.bytes && value.data[end] != '"')
        end += value.data[end] == '\\' ? 2 : 1;
    if (reader->at >= reader->no_quote_from || end >= value.bytes) {
        /* No closing quote: the quote is an ordinary character. */
        if (reader->at < reader->no_quote_from)
            reader->no_quote_from = reader->at;
        reader->at++;
        return TIDE_OK;
    }
    tide_status rc =
        tide_buf_add(&reader->item.plain, value.data + reader->at, end + 1 - reader->at);
    for (size_t i = reader->at + 1; rc == TIDE_OK && i < end; i++) {
        i += value.data[i] == '\\' && i + 1 < end;
        rc = tide_buf_add(&reader->item.name, &value.data[i], 1);
    }
    reader->at = end + 1;
    return rc;
}

static tide_status read_comment(struct reader *reader)
{
    tide_text value = reader->value;
    unsigned depth = 1;
    tide_status rc =
        reader->item.comment.bytes > 0 ? tide_buf_add(&reader->item.comment, " ", 1) : TIDE_OK;
    for (reader->at++; rc == TIDE_OK && reader->at < value.bytes; reader->at++) {
        char c = value.data[reader->at];
        if (c == '\\' && reader->at + 1 < value.bytes)
            c = value.data[++reader->at];
        else if (c == '(' && ++depth > TIDE_MESSAGE_ADDRESS_DEEP)
            break;
        else if (c == ')' && --depth == 0)
            break;
        rc = tide_buf_add(&reader->item.comment, &c, 1);
    }
    reader->deep |= depth > TIDE_MESSAGE_ADDRESS_DEEP;
    reader->at += reader->at < value.bytes;
    return rc;
}

/* <ann@example.org>, <@relay:ann@example.org>, and an unclosed <. */
static tide_status read_angle(struct reader *reader)
{
    tide_text value = reader->value;
    size_t begin = ++reader->at;
    while (reader->at < value.bytes && value.data[reader->at] != '>' &&
           value.data[reader->at] != ',' && value.data[reader->at] != '<')
        reader->at++;
    /* A comma ends it only when no route is inside. */
    if (reader->at < value.bytes && value.data[reader->at] == ',' && value.data[begin] == '@') {
        while (reader->at < value.bytes && value.data[reader->at] != '>')
            reader->at++;
    }
    tide_text inside = {value.data + begin, reader->at - begin};
    if (inside.bytes > 0 && inside.data[0] == '@') {
        const char *colon = memchr(inside.data, ':', inside.bytes);
        if (colon != NULL)
            inside = (tide_text){colon + 1, inside.bytes - (size_t)(colon + 1 - inside.data)};
    }
    reader->at += reader->at < value.bytes && value.data[reader->at] == '>';
    if (reader->item.has_angle)
        return TIDE_OK; /* only the first one counts */
    reader->item.has_angle = true;
    return tide_buf_add(&reader->item.angle, inside.data, inside.bytes);
}

/* "Team: ann@example.org, ...;" */
static tide_status open_group(struct reader *reader)
{
    tide_text name = tide_text_trimmed(tide_buf_text(&reader->item.name));
    tide_status rc = TIDE_OK;
    if (reader->item.has_at) /* a:b@c:d is not a group */
        return tide_buf_add(&reader->item.plain, ":", 1);
    if (tide_text_equal_nocase(name, "mailto")) {
        item_clear(&reader->item);
        return TIDE_OK;
    }
    if (reader->groups == TIDE_MESSAGE_ADDRESS_DEEP) {
        reader->deep = true;
        return TIDE_OK;
    }
    reader->groups++;
    if (name.bytes > 0) {
        rc = add_separator(reader);
        if (rc == TIDE_OK)
            rc = add_clean(reader, name);
        if (rc == TIDE_OK)
            rc = tide_buf_add(reader->out, ": ", 2);
    }
    item_clear(&reader->item);
    return rc;
}

static tide_status close_group(struct reader *reader)
{
    tide_status rc = item_end(reader);
    if (reader->groups > 0)
        reader->groups--;
    trim_end(reader->out, 0); /* an empty group */
    return rc;
}

/* Everything up to the next special character; a literal in [] may contain a colon. */
static tide_status read_run(struct reader *reader)
{
    tide_text value = reader->value;
    size_t begin = reader->at;
    bool literal = false;
    while (reader->at < value.bytes) {
        char c = value.data[reader->at];
        /* Commas and colons inside an encoded word are not allowed, and have no meaning. */
        size_t word = c == '=' && reader->at + 1 < value.bytes && value.data[reader->at + 1] == '?'
                          ? tide_header_word_bytes(value, reader->at, &reader->word_ends)
                          : 0;
        if (word > 0) {
            reader->at += word;
            continue;
        }
        literal = (literal || (c == '[' && reader->item.has_at)) && c != ']';
        if (c == '@')
            reader->item.has_at = true;
        if (c == ',' || c == ';' || c == '"' || c == '(' || c == '<')
            break;
        if (c == ':' && !literal && !reader->item.has_at)
            break;
        reader->at++;
    }
    TIDE_ASSERT(reader->at > begin);
    TIDE_TRY(tide_buf_add(&reader->item.name, value.data + begin, reader->at - begin));
    return tide_buf_add(&reader->item.plain, value.data + begin, reader->at - begin);
}

static tide_status read_next(struct reader *reader)
{
    switch (reader->value.data[reader->at]) {
    case '"':
        return read_quoted(reader);
    case '(':
        return read_comment(reader);
    case '<':
        return read_angle(reader);
    case ',':
        reader->at++;
        return item_end(reader);
    case ';':
        reader->at++;
        return close_group(reader);
    case ':':
        reader->at++;
        return open_group(reader);
    default:
        return read_run(reader);
    }
}

tide_status tide_address_add(tide_decoder *decoder, tide_text value, tide_buf *out, bool *deep_out)
{
    struct reader reader = {.decoder = decoder, .value = value, .out = out};
    reader.no_quote_from = SIZE_MAX;
    tide_buf *const bufs[] = {&reader.item.name, &reader.item.plain, &reader.item.angle,
                              &reader.item.comment, &reader.item.tight};
    size_t count = sizeof bufs / sizeof bufs[0];
    for (size_t i = 0; i < count; i++)
        tide_buf_init(bufs[i], decoder->mem, TIDE_MESSAGE_HEADER_BYTES_MAX + 1);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && !reader.deep && reader.at < value.bytes)
        rc = read_next(&reader);
    if (rc == TIDE_OK)
        rc = item_end(&reader);
    trim_end(out, 0);
    if (out->bytes > 0 && out->data[out->bytes - 1] == ':')
        out->data[--out->bytes] = '\0';
    if (reader.deep)
        *deep_out = true;
    for (size_t i = 0; i < count; i++)
        tide_buf_done(bufs[i]);
    return rc;
}
