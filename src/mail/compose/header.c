#include "mail/compose/header.h"

#include "base/calendar.h"
#include "base/encode.h"
#include "base/json.h"
#include "mail/mime/charset.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LINE_BYTES = 76,
    BASE64_LINE_BYTES = 57, /* 76 characters */
    WORD_BYTES_MAX = 900,   /* that can stand in a line of its own */
    VALUE_BYTES_MAX = 16 << 10,
};

/* ---- what a value may be ---- */

bool tide_compose_is_id(tide_text id)
{
    for (size_t i = 0; i < id.bytes; i++)
        if (id.data[i] <= ' ' || (unsigned char)id.data[i] >= 0x7f || id.data[i] == '<' ||
            id.data[i] == '>')
            return false;
    return id.bytes > 0 && id.bytes <= TIDE_COMPOSE_ID_BYTES_MAX;
}

bool tide_compose_has_control(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return true;
    return false;
}

static bool is_ascii(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if ((unsigned char)text.data[i] >= 0x7f || (unsigned char)text.data[i] < ' ')
            return false;
    return true;
}

/* Whether it can stand in a header as it is.  An encoded word that a stranger wrote as plain text
 * would be decoded by the next reader, with whatever is in it. */
static bool is_plain(tide_text text)
{
    return is_ascii(text) && (text.bytes < 2 || memmem(text.data, text.bytes, "=?", 2) == NULL);
}

/* ---- mailboxes ---- */

/* The name as a stranger wrote it, without the quotes that display put around it. */
static tide_status plain_name(tide_text name, tide_buf *out)
{
    tide_auto_buf clean = tide_buf_in(out->mem, TIDE_COMPOSE_NAME_BYTES_MAX * 2);
    const tide_status rc = tide_clean_add(name, TIDE_CLEAN_LINE, &clean);
    if (rc != TIDE_OK)
        return rc == TIDE_FULL ? TIDE_OK : rc; /* too long to be a name */
    tide_text text = tide_text_trimmed(tide_buf_text(&clean));
    const bool quoted = text.bytes >= 2 && text.data[0] == '"' && text.data[text.bytes - 1] == '"';
    if (quoted)
        text = (tide_text){text.data + 1, text.bytes - 2};
    for (size_t i = 0; i < text.bytes; i++) {
        i += quoted && text.data[i] == '\\' && i + 1 < text.bytes;
        TIDE_TRY(tide_buf_add(out, &text.data[i], 1));
    }
    return TIDE_OK;
}

/* In quotes, what has a meaning in them escaped. */
static tide_status add_quoted(tide_text text, tide_buf *out)
{
    TIDE_TRY(tide_buf_add(out, "\"", 1));
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\')
            TIDE_TRY(tide_buf_add(out, "\\", 1));
        TIDE_TRY(tide_buf_add(out, &text.data[i], 1));
    }
    return tide_buf_add(out, "\"", 1);
}

static tide_status add_name(tide_text name, tide_buf *out)
{
    tide_auto_buf plain = tide_buf_in(out->mem, TIDE_COMPOSE_NAME_BYTES_MAX * 2);
    TIDE_TRY(plain_name(name, &plain));
    const tide_text text = tide_buf_text(&plain);
    if (text.bytes == 0 || text.bytes > TIDE_COMPOSE_NAME_BYTES_MAX)
        return TIDE_OK;
    TIDE_TRY(is_plain(text) ? add_quoted(text, out) : tide_encoded_words_add(out, text));
    return tide_buf_add(out, " ", 1);
}

tide_status tide_compose_mailboxes(const char *header, const struct tide_mailbox *mailboxes,
                                   size_t count, tide_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(i == 0 ? tide_buf_print(out, "%s: ", header) : tide_buf_add_text(out, ",\r\n "));
        TIDE_TRY(add_name(mailboxes[i].name, out));
        TIDE_TRY(tide_buf_print(out, "<%.*s>", (int)mailboxes[i].address.bytes,
                                mailboxes[i].address.data));
    }
    return count == 0 ? TIDE_OK : tide_buf_add_text(out, "\r\n");
}

/* ---- texts ---- */

/* Plain text in lines; the break replaces nothing: it stands before a space that is there. */
static tide_status add_folded(tide_text text, size_t column, tide_buf *out)
{
    while (text.bytes > 0) {
        const char *space = memchr(text.data + 1, ' ', text.bytes - 1);
        const size_t bytes = space == NULL ? text.bytes : (size_t)(space - text.data);
        if (column + bytes > LINE_BYTES && text.data[0] == ' ') {
            TIDE_TRY(tide_buf_add_text(out, "\r\n"));
            column = 0;
        }
        TIDE_TRY(tide_buf_add(out, text.data, bytes));
        column += bytes;
        text = (tide_text){text.data + bytes, text.bytes - bytes};
    }
    return TIDE_OK;
}

static bool has_endless_word(tide_text text)
{
    size_t bytes = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        bytes = text.data[i] == ' ' ? 0 : bytes + 1;
        if (bytes > WORD_BYTES_MAX)
            return true;
    }
    return false;
}

tide_status tide_compose_text_header(const char *header, tide_text text, tide_buf *out)
{
    tide_auto_buf clean = tide_buf_in(out->mem, VALUE_BYTES_MAX);
    const tide_status rc = tide_clean_add(text, TIDE_CLEAN_LINE, &clean);
    if (rc != TIDE_OK)
        return rc;
    const tide_text value = tide_text_trimmed(tide_buf_text(&clean));
    TIDE_TRY(tide_buf_print(out, "%s: ", header));
    TIDE_TRY(is_plain(value) && !has_endless_word(value)
                 ? add_folded(value, strlen(header) + 2, out)
                 : tide_encoded_words_add(out, value));
    return tide_buf_add_text(out, "\r\n");
}

/* ---- parameters (RFC 2231) ---- */

/* The length of `text` that fits into `room` once it is escaped; whole characters. */
static size_t escaped_fit(tide_text text, size_t room)
{
    size_t bytes = 0, used = 0;
    while (bytes < text.bytes) {
        const size_t one = tide_utf8_bytes((tide_text){text.data + bytes, text.bytes - bytes});
        size_t cost = 0;
        for (size_t i = 0; i < (one == 0 ? 1 : one); i++)
            cost += tide_is_plain(text.data[bytes + i], "-._~") ? 1 : 3;
        if (used + cost > room)
            break;
        used += cost;
        bytes += one == 0 ? 1 : one;
    }
    return bytes;
}

tide_status tide_compose_param(const char *name, tide_text value, tide_buf *out)
{
    tide_auto_buf clean = tide_buf_in(out->mem, VALUE_BYTES_MAX);
    const tide_status rc = tide_clean_add(value, TIDE_CLEAN_LINE, &clean);
    if (rc != TIDE_OK)
        return rc;
    tide_text text = tide_text_trimmed(tide_buf_text(&clean));
    const size_t room = LINE_BYTES - strlen(name) - sizeof " *999*=utf-8'';";
    if (is_plain(text) && text.bytes <= room) {
        TIDE_TRY(tide_buf_print(out, ";\r\n %s=", name));
        return add_quoted(text, out);
    }
    const bool whole = escaped_fit(text, room) == text.bytes;
    for (unsigned part = 0; part == 0 || text.bytes > 0; part++) {
        const size_t bytes = escaped_fit(text, room);
        TIDE_TRY(tide_buf_print(out, ";\r\n %s*", name));
        if (!whole)
            TIDE_TRY(tide_buf_print(out, "%u*", part));
        TIDE_TRY(tide_buf_add_text(out, part == 0 ? "=utf-8''" : "="));
        TIDE_TRY(tide_percent_add(out, (tide_text){text.data, bytes}, "-._~"));
        text = (tide_text){text.data + bytes, text.bytes - bytes};
    }
    return TIDE_OK;
}

tide_status tide_compose_date(int64_t unix_ms, int32_t zone_minutes, tide_buf *out)
{
    enum { DAY_S = 86400 };
    const int64_t local_s = unix_ms / 1000 + (int64_t)zone_minutes * 60;
    const int64_t days = local_s >= 0 ? local_s / DAY_S : -((DAY_S - 1 - local_s) / DAY_S);
    const unsigned rest_s = (unsigned)(local_s - days * DAY_S);
    const struct tide_date date = tide_date_of(days);
    const unsigned zone = (unsigned)abs(zone_minutes);
    return tide_buf_print(out, "Date: %s, %u %s %d %02u:%02u:%02u %c%02u%02u\r\n",
                          tide_day_names[tide_weekday_of(days)], date.day,
                          tide_month_names[date.month - 1], (int)date.year, rest_s / 3600,
                          rest_s / 60 % 60, rest_s % 60, zone_minutes < 0 ? '-' : '+', zone / 60,
                          zone % 60);
}

/* ---- bodies ---- */

tide_status tide_compose_7bit(tide_text text, tide_buf *out)
{
    while (text.bytes > 0) {
        const tide_text line = tide_text_line(&text);
        TIDE_TRY(tide_buf_add(out, line.data, line.bytes));
        TIDE_TRY(tide_buf_add_text(out, "\r\n"));
    }
    return TIDE_OK;
}

/* Whether the byte at `i` of a line stands as it is.  A blank at the end of a line is lost on the
 * way, "From " and a dot at its front are changed by some. */
static bool stands(tide_text line, size_t i)
{
    const char c = line.data[i];
    if (c == ' ' || c == '\t')
        return i + 1 < line.bytes;
    if (c < '!' || c > '~' || c == '=')
        return false;
    return i > 0 || (c != '.' && !(line.bytes >= 5 && memcmp(line.data, "From ", 5) == 0));
}

static tide_status add_quoted_line(tide_text line, tide_buf *out)
{
    size_t column = 0;
    for (size_t i = 0; i < line.bytes; i++) {
        const bool plain = stands(line, i);
        const size_t bytes = plain ? 1 : 3;
        /* A soft break needs a place of its own, unless the line ends here. */
        if (column + bytes > LINE_BYTES - (i + 1 < line.bytes)) {
            TIDE_TRY(tide_buf_add_text(out, "=\r\n"));
            column = 0;
        }
        /* After a break a dot is at the front. */
        if (plain && !(column == 0 && line.data[i] == '.')) {
            TIDE_TRY(tide_buf_add(out, &line.data[i], 1));
            column += 1;
        } else {
            TIDE_TRY(tide_buf_print(out, "=%02X", (unsigned)(unsigned char)line.data[i]));
            column += 3;
        }
    }
    return tide_buf_add_text(out, "\r\n");
}

tide_status tide_compose_quoted(tide_text text, tide_buf *out)
{
    while (text.bytes > 0)
        TIDE_TRY(add_quoted_line(tide_text_line(&text), out));
    return TIDE_OK;
}

tide_status tide_compose_base64(tide_text bytes, tide_buf *out)
{
    for (size_t at = 0; at < bytes.bytes; at += BASE64_LINE_BYTES) {
        const size_t left = bytes.bytes - at;
        const tide_text line = {bytes.data + at,
                                left < BASE64_LINE_BYTES ? left : BASE64_LINE_BYTES};
        TIDE_TRY(tide_base64_add(out, line, tide_base64_standard, true));
        TIDE_TRY(tide_buf_add_text(out, "\r\n"));
    }
    return TIDE_OK;
}
