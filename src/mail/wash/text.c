/* text.c - writes characters, escaped. */
#include "mail/wash/inside.h"
#include "base/json.h"

enum { ENTITY_NAME_MAX = 32 };

uint32_t tide_wash_character(tide_text text, size_t *bytes_out)
{
    const unsigned char *at = (const unsigned char *)text.data;
    if (at[0] < 0x80) {
        *bytes_out = 1;
        return at[0];
    }
    size_t bytes = tide_utf8_bytes(text);
    *bytes_out = bytes > 0 ? bytes : 1;
    switch (bytes) {
    case 2:
        return (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
    case 3:
        return (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
    case 4:
        return (at[0] & 0x07u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 |
               (at[3] & 0x3fu);
    default:
        return 0xfffd;
    }
}

static void put_code(struct tide_wash_out *out, uint32_t code)
{
    char text[4];
    tide_wash_put(out, text, tide_html_utf8(code, text));
}

/* ---- between tags ---- */

static void put_text_code(struct tide_wash_out *out, uint32_t code)
{
    if (code == '&')
        tide_wash_put(out, "&amp;", 5);
    else if (code == '<')
        tide_wash_put(out, "&lt;", 4);
    else if (code == '>')
        tide_wash_put(out, "&gt;", 4);
    else if (code == '\r')
        tide_wash_put(out, "\n", 1);
    else if (code == '\n' || code == '\t' || code == 0 || !tide_wash_is_control(code))
        put_code(out, code);
}

/* The bytes of "&name;" at the front, of a name that we do not know but a browser may: between tags
 * it can only become characters, so it may stay. */
static size_t unknown_name(tide_text text)
{
    size_t i = 1;
    while (i < text.bytes && i <= ENTITY_NAME_MAX &&
           ((text.data[i] >= '0' && text.data[i] <= '9' && i > 1) ||
            (text.data[i] >= 'a' && text.data[i] <= 'z') ||
            (text.data[i] >= 'A' && text.data[i] <= 'Z')))
        i++;
    return i > 1 && i < text.bytes && text.data[i] == ';' ? i + 1 : 0;
}

static size_t put_entity(struct tide_wash_out *out, tide_text text)
{
    uint32_t code = '&';
    size_t bytes = tide_html_entity(text, false, &code);
    if (bytes > 0) {
        put_text_code(out, code);
        return bytes;
    }
    bytes = unknown_name(text);
    if (bytes > 0) {
        tide_wash_put(out, text.data, bytes);
        return bytes;
    }
    tide_wash_put(out, "&amp;", 5);
    return 1;
}

static bool is_plain_text(unsigned char c)
{
    return (c >= ' ' && c < 0x7f && c != '&' && c != '<' && c != '>') || c == '\n' || c == '\t';
}

void tide_wash_text(struct tide_wash_out *out, tide_text text)
{
    out->work += text.bytes;
    for (size_t at = 0; at < text.bytes && out->rc == TIDE_OK;) {
        size_t begin = at;
        while (at < text.bytes && is_plain_text((unsigned char)text.data[at]))
            at++;
        tide_wash_put(out, text.data + begin, at - begin);
        if (at == text.bytes)
            break;
        tide_text rest = {text.data + at, text.bytes - at};
        size_t bytes = 1;
        if (rest.data[0] == '&') {
            bytes = put_entity(out, rest);
        } else if (rest.data[0] == '\r' && rest.bytes > 1 && rest.data[1] == '\n') {
            /* The line end follows. */
        } else if (rest.data[0] != '\0') {
            put_text_code(out, tide_wash_character(rest, &bytes));
        }
        at += bytes;
    }
}

void tide_wash_plain(struct tide_wash_out *out, tide_text text)
{
    while (text.bytes > 0 && out->rc == TIDE_OK) {
        const char *found = memchr(text.data, '&', text.bytes);
        const size_t bytes = found == NULL ? text.bytes : (size_t)(found - text.data);
        tide_wash_text(out, (tide_text){text.data, bytes});
        if (found != NULL)
            tide_wash_put(out, "&amp;", 5);
        text.data += bytes + (found != NULL);
        text.bytes -= bytes + (found != NULL);
    }
}

/* ---- inside quotes ---- */

static bool is_plain_value(unsigned char c)
{
    return c >= ' ' && c < 0x7f && c != '&' && c != '<' && c != '>' && c != '"';
}

static void put_value_code(struct tide_wash_out *out, uint32_t code)
{
    if (code == '&')
        tide_wash_put(out, "&amp;", 5);
    else if (code == '"')
        tide_wash_put(out, "&#34;", 5);
    else if (code == '<')
        put_code(out, 0x2039);
    else if (code == '>')
        put_code(out, 0x203a);
    else if (tide_wash_is_control(code))
        tide_wash_put(out, " ", 1);
    else
        put_code(out, code);
}

void tide_wash_value(struct tide_wash_out *out, tide_text value)
{
    out->work += value.bytes;
    for (size_t at = 0; at < value.bytes && out->rc == TIDE_OK;) {
        size_t begin = at;
        while (at < value.bytes && is_plain_value((unsigned char)value.data[at]))
            at++;
        tide_wash_put(out, value.data + begin, at - begin);
        if (at < value.bytes) {
            size_t bytes = 0;
            put_value_code(
                out, tide_wash_character((tide_text){value.data + at, value.bytes - at}, &bytes));
            at += bytes;
        }
    }
}
