/* html_token.c - the tokenizer. */
#include "mail/mime/html_token.h"
#include "mail/mime/charset.h"
#include "mail/mime/html_entities.h"

enum { ENTITY_BYTES_MAX = 8 };

/* ---- character references ---- */

/* The Windows-1252 meaning of character numbers in 0x80..0x9f. */
static uint32_t windows_code(uint32_t code)
{
    static const uint16_t middle[32] = {
        0x20ac, 0x81,   0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8d,   0x017d, 0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
        0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d,   0x017e, 0x0178,
    };
    return code >= 0x80 && code < 0xa0 ? middle[code - 0x80] : code;
}

/* &#8364; and &#x20ac;: the number of bytes after the #; 0: not a character reference. */
static size_t read_number(tide_text text, uint32_t *code_out)
{
    bool hex = text.bytes > 0 && (text.data[0] | 0x20) == 'x';
    size_t i = hex ? 1 : 0, digits = 0;
    uint32_t code = 0;
    for (; i < text.bytes; i++, digits++) {
        char c = text.data[i];
        uint32_t digit = 99;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if (hex && (c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (uint32_t)((c | 0x20) - 'a') + 10;
        if (digit == 99)
            break;
        if (code < 0x200000)
            code = code * (hex ? 16 : 10) + digit;
    }
    if (digits == 0)
        return 0;
    *code_out = windows_code(code);
    return i + (i < text.bytes && text.data[i] == ';');
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static size_t read_named(tide_text text, uint32_t *code_out)
{
    char name[ENTITY_BYTES_MAX + 1];
    size_t bytes = 0;
    while (bytes < text.bytes && is_alnum(text.data[bytes])) {
        if (bytes == ENTITY_BYTES_MAX)
            return 0;
        name[bytes] = text.data[bytes];
        bytes++;
    }
    name[bytes] = '\0';
    size_t low = 0, high = sizeof tide_html_entities / sizeof tide_html_entities[0];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, tide_html_entities[middle].name);
        if (order == 0) {
            *code_out = tide_html_entities[middle].code;
            return bytes + (bytes < text.bytes && text.data[bytes] == ';');
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

size_t tide_html_entity(tide_text text, bool in_attribute, uint32_t *code_out)
{
    tide_text behind = {text.data + 1, text.bytes - 1};
    if (behind.bytes > 0 && behind.data[0] == '#') {
        size_t bytes = read_number((tide_text){behind.data + 1, behind.bytes - 1}, code_out);
        return bytes > 0 ? bytes + 2 : 0;
    }
    uint32_t code = 0;
    size_t bytes = read_named(behind, &code);
    /* Without its semicolon a browser takes only names of Latin-1, and none before a '='. */
    if (bytes == 0 || (in_attribute && behind.data[bytes - 1] != ';' &&
                       (code > 0xff || (bytes < behind.bytes && behind.data[bytes] == '='))))
        return 0;
    *code_out = code;
    return bytes + 1;
}

size_t tide_html_utf8(uint32_t code, char text_out[4])
{
    size_t bytes = 0;
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        text_out[bytes++] = (char)code;
    } else if (code < 0x800) {
        text_out[bytes++] = (char)(0xc0 | code >> 6);
        text_out[bytes++] = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        text_out[bytes++] = (char)(0xe0 | code >> 12);
        text_out[bytes++] = (char)(0x80 | (code >> 6 & 0x3f));
        text_out[bytes++] = (char)(0x80 | (code & 0x3f));
    } else {
        text_out[bytes++] = (char)(0xf0 | code >> 18);
        text_out[bytes++] = (char)(0x80 | (code >> 12 & 0x3f));
        text_out[bytes++] = (char)(0x80 | (code >> 6 & 0x3f));
        text_out[bytes++] = (char)(0x80 | (code & 0x3f));
    }
    return bytes;
}

/* ---- tags ---- */

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool tide_html_attribute(struct tide_html_reader *reader, tide_text *name_out, tide_text *value_out)
{
    tide_text html = reader->html;
    size_t i = reader->at;
    while (i < html.bytes && (is_white(html.data[i]) || html.data[i] == '/'))
        i++;
    reader->at = i;
    if (i == html.bytes || html.data[i] == '>')
        return false;
    size_t name = i++;
    while (i < html.bytes && !is_white(html.data[i]) && html.data[i] != '/' &&
           html.data[i] != '>' && html.data[i] != '=')
        i++;
    *name_out = (tide_text){html.data + name, i - name};
    *value_out = TIDE_TEXT("");
    while (i < html.bytes && is_white(html.data[i]))
        i++;
    if (i < html.bytes && html.data[i] == '=') {
        i++;
        while (i < html.bytes && is_white(html.data[i]))
            i++;
        char quote =
            i < html.bytes && (html.data[i] == '"' || html.data[i] == '\'') ? html.data[i++] : '\0';
        size_t value = i;
        if (quote != '\0') {
            const char *end = memchr(html.data + i, quote, html.bytes - i);
            i = end != NULL ? (size_t)(end - html.data) : html.bytes;
        } else {
            while (i < html.bytes && !is_white(html.data[i]) && html.data[i] != '>')
                i++;
        }
        *value_out = (tide_text){html.data + value, i - value};
        i += quote != '\0' && i < html.bytes;
    }
    reader->at = i;
    return true;
}

bool tide_html_tag_end(struct tide_html_reader *reader)
{
    tide_text name, value;
    while (tide_html_attribute(reader, &name, &value))
        continue;
    reader->inside = false;
    if (reader->at == reader->html.bytes)
        return false;
    reader->at++;
    return true;
}

tide_text tide_html_raw(struct tide_html_reader *reader, const char *name)
{
    tide_text html = reader->html;
    size_t begin = reader->at, bytes = strlen(name);
    while (reader->at < html.bytes) {
        const char *found = memmem(html.data + reader->at, html.bytes - reader->at, "</", 2);
        if (found == NULL)
            break;
        size_t end = (size_t)(found - html.data);
        tide_text rest = {found + 2, html.bytes - end - 2};
        if (tide_text_starts_nocase(rest, name) &&
            (rest.bytes == bytes || is_white(rest.data[bytes]) || rest.data[bytes] == '>' ||
             rest.data[bytes] == '/')) {
            reader->at = end; /* the end tag is the next token */
            return (tide_text){html.data + begin, end - begin};
        }
        reader->at = end + 2;
    }
    reader->at = html.bytes;
    return (tide_text){html.data + begin, html.bytes - begin};
}

/* ---- tokens ---- */

/* A tag whose name begins at reader->at. */
static void read_tag(struct tide_html_reader *reader, tide_html_kind kind,
                     struct tide_html_token *token_out)
{
    tide_text html = reader->html;
    size_t begin = reader->at, at = begin;
    while (at < html.bytes && !is_white(html.data[at]) && html.data[at] != '>' &&
           html.data[at] != '/')
        at++;
    *token_out = (struct tide_html_token){kind, {html.data + begin, at - begin}};
    reader->at = at;
    reader->inside = true;
}

/* After "<!--": skips to the end of the comment, or of the input. */
static void skip_comment(struct tide_html_reader *reader)
{
    tide_text html = reader->html;
    size_t at = reader->at;
    if (at < html.bytes && html.data[at] == '>') {
        reader->at = at + 1;
        return;
    }
    /* "<!--->" ends with the dashes of its start. */
    const char *found = memmem(html.data + at - 2, html.bytes - at + 2, "-->", 3);
    reader->at = found == NULL ? html.bytes : (size_t)(found - html.data) + 3;
}

static void skip_to_bracket(struct tide_html_reader *reader)
{
    const char *found =
        memchr(reader->html.data + reader->at, '>', reader->html.bytes - reader->at);
    reader->at = found == NULL ? reader->html.bytes : (size_t)(found - reader->html.data) + 1;
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* At a '<'.  false: it was something to skip. */
static bool read_markup(struct tide_html_reader *reader, struct tide_html_token *token_out)
{
    tide_text rest = {reader->html.data + reader->at, reader->html.bytes - reader->at};
    if (rest.bytes >= 2 && is_letter(rest.data[1])) {
        reader->at += 1;
        read_tag(reader, TIDE_HTML_OPEN, token_out);
        return true;
    }
    if (rest.bytes >= 3 && rest.data[1] == '/' && is_letter(rest.data[2])) {
        reader->at += 2;
        read_tag(reader, TIDE_HTML_CLOSE, token_out);
        return true;
    }
    if (rest.bytes >= 4 && memcmp(rest.data, "<!--", 4) == 0) {
        reader->at += 4;
        skip_comment(reader);
        return false;
    }
    if (rest.bytes >= 2 && (rest.data[1] == '!' || rest.data[1] == '?' || rest.data[1] == '/')) {
        skip_to_bracket(reader);
        return false;
    }
    *token_out = (struct tide_html_token){TIDE_HTML_TEXT, {rest.data, 1}};
    reader->at += 1;
    return true;
}

bool tide_html_next(struct tide_html_reader *reader, struct tide_html_token *token_out)
{
    if (reader->inside)
        (void)tide_html_tag_end(reader);
    tide_text html = reader->html;
    while (reader->at < html.bytes) {
        const char *begin = html.data + reader->at;
        if (*begin != '<') {
            const char *found = memchr(begin, '<', html.bytes - reader->at);
            size_t bytes = found == NULL ? html.bytes - reader->at : (size_t)(found - begin);
            *token_out = (struct tide_html_token){TIDE_HTML_TEXT, {begin, bytes}};
            reader->at += bytes;
            return true;
        }
        if (read_markup(reader, token_out))
            return true;
    }
    return false;
}
