/* html_text.c - converts HTML to text in one pass over the bytes.
 *
 * A tokenizer in the manner of the HTML standard and nothing after it: no tree, no stack, no
 * attributes but one.  The alternative was the parser of libxml2; its time is quadratic in
 * unmatched end tags and in attributes of one element (280 kB: three seconds), and mail is
 * untrusted input. */
#include "mail/mime/charset.h"
#include "mail/mime/html_entities.h"
#include "mail/mime/message.h"
#include "base/check.h"
#include "base/json.h"

enum { TAG_BYTES_MAX = 10, STAGE_BYTES = 4096, ENTITY_BYTES_MAX = 8 };

struct writer {
    tide_text html;
    size_t at;
    tide_buf *out;
    tide_status rc;
    size_t bytes; /* in stage */
    bool space;   /* white space came after the last character */
    bool line;    /* the line has characters */
    bool blank;   /* the line before is empty, or nothing was written yet */
    unsigned pre; /* <pre> inside <pre> */
    char stage[STAGE_BYTES];
};

/* ---- writing ---- */

static void flush(struct writer *writer)
{
    if (writer->rc == TIDE_OK && writer->bytes > 0)
        writer->rc =
            tide_clean_add((tide_text){writer->stage, writer->bytes}, TIDE_CLEAN_TEXT, writer->out);
    writer->bytes = 0;
}

/* At most 8 bytes, and whole characters only. */
static void put(struct writer *writer, const char *text, size_t bytes)
{
    if (writer->bytes + bytes > STAGE_BYTES)
        flush(writer);
    memcpy(writer->stage + writer->bytes, text, bytes);
    writer->bytes += bytes;
}

static void before_character(struct writer *writer)
{
    if (writer->space && writer->line)
        put(writer, " ", 1);
    writer->space = false;
    writer->line = true;
    writer->blank = false;
}

static void put_character(struct writer *writer, const char *text, size_t bytes)
{
    before_character(writer);
    put(writer, text, bytes);
}

/* The end of a block: the next character starts a line. */
static void end_line(struct writer *writer)
{
    if (writer->line)
        put(writer, "\n", 1);
    writer->line = false;
    writer->space = false;
}

/* <br>: may add an empty line, but not two. */
static void break_line(struct writer *writer)
{
    if (writer->line) {
        end_line(writer);
    } else if (!writer->blank) {
        put(writer, "\n", 1);
        writer->blank = true;
    }
    writer->space = false;
}

static void put_code(struct writer *writer, uint32_t code)
{
    char text[4];
    size_t bytes = 0;
    if (code == 0xa0 || code == 0x20 || (code >= 9 && code <= 13)) {
        writer->space = true;
        return;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        text[bytes++] = (char)code;
    } else if (code < 0x800) {
        text[bytes++] = (char)(0xc0 | code >> 6);
        text[bytes++] = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        text[bytes++] = (char)(0xe0 | code >> 12);
        text[bytes++] = (char)(0x80 | (code >> 6 & 0x3f));
        text[bytes++] = (char)(0x80 | (code & 0x3f));
    } else {
        text[bytes++] = (char)(0xf0 | code >> 18);
        text[bytes++] = (char)(0x80 | (code >> 12 & 0x3f));
        text[bytes++] = (char)(0x80 | (code >> 6 & 0x3f));
        text[bytes++] = (char)(0x80 | (code & 0x3f));
    }
    put_character(writer, text, bytes);
}

/* ---- characters ---- */

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

/* An ampersand that starts no entity is copied. */
static void read_entity(struct writer *writer, tide_text text, size_t *at)
{
    tide_text behind = {text.data + *at + 1, text.bytes - *at - 1};
    uint32_t code = '&';
    if (behind.bytes > 0 && behind.data[0] == '#') {
        size_t bytes = read_number((tide_text){behind.data + 1, behind.bytes - 1}, &code);
        *at += bytes > 0 ? bytes + 2 : 1;
    } else {
        *at += 1 + read_named(behind, &code);
    }
    put_code(writer, code);
}

/* One character that is not plain ASCII. */
static void read_wide(struct writer *writer, tide_text text, size_t *at)
{
    size_t bytes = tide_utf8_bytes((tide_text){text.data + *at, text.bytes - *at});
    if (bytes == 2 && memcmp(text.data + *at, "\xc2\xa0", 2) == 0)
        writer->space = true;
    else if (bytes == 0)
        put_character(writer, "\xef\xbf\xbd", 3);
    else
        put_character(writer, text.data + *at, bytes);
    *at += bytes > 0 ? bytes : 1;
}

static void put_pre(struct writer *writer, char c)
{
    if (c == '\n') {
        put(writer, "\n", 1);
        writer->line = false;
        writer->space = false;
    } else if (c == '\r') {
        return;
    } else {
        put(writer, c == '\t' ? "\t" : " ", 1);
    }
}

/* Text up to `end` in `text`: characters, entities, white space. */
static void read_text(struct writer *writer, tide_text text)
{
    for (size_t at = 0; at < text.bytes && writer->rc == TIDE_OK;) {
        unsigned char c = (unsigned char)text.data[at];
        if (c <= ' ' || c == 0x7f) {
            if (writer->pre > 0)
                put_pre(writer, text.data[at]);
            else
                writer->space = true;
            at++;
        } else if (c == '&') {
            read_entity(writer, text, &at);
        } else if (c >= 0x80) {
            read_wide(writer, text, &at);
        } else {
            before_character(writer);
            do {
                if (writer->bytes == STAGE_BYTES)
                    flush(writer);
                writer->stage[writer->bytes++] = text.data[at++];
                c = at < text.bytes ? (unsigned char)text.data[at] : ' ';
            } while (c > ' ' && c < 0x7f && c != '&');
        }
    }
}

/* ---- tags ---- */

typedef enum effect {
    EFFECT_NONE,
    EFFECT_BLOCK, /* ends lines */
    EFFECT_BREAK, /* <br> */
    EFFECT_CELL,  /* separates words */
    EFFECT_PRE,
    EFFECT_RAW, /* its content is not shown */
    EFFECT_IMAGE,
} effect;

struct tag {
    const char *name;
    effect effect;
};

static const struct tag tags[] = {
    {"address", EFFECT_BLOCK},    {"article", EFFECT_BLOCK},  {"aside", EFFECT_BLOCK},
    {"blockquote", EFFECT_BLOCK}, {"body", EFFECT_BLOCK},     {"br", EFFECT_BREAK},
    {"button", EFFECT_CELL},      {"caption", EFFECT_BLOCK},  {"center", EFFECT_BLOCK},
    {"dd", EFFECT_BLOCK},         {"details", EFFECT_BLOCK},  {"div", EFFECT_BLOCK},
    {"dl", EFFECT_BLOCK},         {"dt", EFFECT_BLOCK},       {"fieldset", EFFECT_BLOCK},
    {"figure", EFFECT_BLOCK},     {"footer", EFFECT_BLOCK},   {"form", EFFECT_BLOCK},
    {"h1", EFFECT_BLOCK},         {"h2", EFFECT_BLOCK},       {"h3", EFFECT_BLOCK},
    {"h4", EFFECT_BLOCK},         {"h5", EFFECT_BLOCK},       {"h6", EFFECT_BLOCK},
    {"head", EFFECT_BLOCK},       {"header", EFFECT_BLOCK},   {"hr", EFFECT_BLOCK},
    {"html", EFFECT_BLOCK},       {"iframe", EFFECT_RAW},     {"img", EFFECT_IMAGE},
    {"legend", EFFECT_BLOCK},     {"li", EFFECT_BLOCK},       {"main", EFFECT_BLOCK},
    {"nav", EFFECT_BLOCK},        {"ol", EFFECT_BLOCK},       {"option", EFFECT_BLOCK},
    {"p", EFFECT_BLOCK},          {"pre", EFFECT_PRE},        {"script", EFFECT_RAW},
    {"section", EFFECT_BLOCK},    {"select", EFFECT_BLOCK},   {"style", EFFECT_RAW},
    {"summary", EFFECT_BLOCK},    {"table", EFFECT_BLOCK},    {"tbody", EFFECT_BLOCK},
    {"td", EFFECT_CELL},          {"textarea", EFFECT_BLOCK}, {"tfoot", EFFECT_BLOCK},
    {"th", EFFECT_CELL},          {"thead", EFFECT_BLOCK},    {"title", EFFECT_RAW},
    {"tr", EFFECT_BLOCK},         {"ul", EFFECT_BLOCK},
};

/* The tag with the name at the front; NULL: a tag without effect. */
static const struct tag *tag_of(tide_text name)
{
    char lower[TAG_BYTES_MAX + 1];
    if (name.bytes > TAG_BYTES_MAX)
        return NULL;
    for (size_t i = 0; i < name.bytes; i++)
        lower[i] =
            name.data[i] >= 'A' && name.data[i] <= 'Z' ? (char)(name.data[i] | 0x20) : name.data[i];
    lower[name.bytes] = '\0';
    size_t low = 0, high = sizeof tags / sizeof tags[0];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(lower, tags[middle].name);
        if (order == 0)
            return &tags[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool is_white(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads one attribute at *at, inside a tag; false: the tag ends here.  The value points into the
 * html, entities not decoded. */
static bool read_attribute(tide_text html, size_t *at, tide_text *name_out, tide_text *value_out)
{
    size_t i = *at;
    while (i < html.bytes && (is_white(html.data[i]) || html.data[i] == '/'))
        i++;
    *at = i;
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
    *at = i;
    return true;
}

/* Skips the content of a script or style, after its start tag. */
static void skip_raw(struct writer *writer, const char *name)
{
    tide_text html = writer->html;
    size_t bytes = strlen(name);
    while (writer->at < html.bytes) {
        const char *found = memmem(html.data + writer->at, html.bytes - writer->at, "</", 2);
        if (found == NULL)
            break;
        writer->at = (size_t)(found - html.data) + 2;
        tide_text rest = {html.data + writer->at, html.bytes - writer->at};
        if (tide_text_starts_nocase(rest, name) &&
            (rest.bytes == bytes || is_white(rest.data[bytes]) || rest.data[bytes] == '>' ||
             rest.data[bytes] == '/')) {
            writer->at -= 2; /* let the caller read the end tag */
            return;
        }
    }
    writer->at = html.bytes;
}

static void apply(struct writer *writer, const struct tag *tag, bool closing)
{
    switch (tag->effect) {
    case EFFECT_BREAK:
        break_line(writer);
        break;
    case EFFECT_CELL:
        writer->space = true;
        break;
    case EFFECT_PRE:
        end_line(writer);
        if (!closing)
            writer->pre++;
        else if (writer->pre > 0)
            writer->pre--;
        break;
    case EFFECT_BLOCK:
        end_line(writer);
        break;
    case EFFECT_RAW:
        if (!closing)
            skip_raw(writer, tag->name);
        break;
    case EFFECT_IMAGE:
    case EFFECT_NONE:
        break;
    }
}

/* A tag, whose name begins at writer->at. */
static void read_tag(struct writer *writer, bool closing)
{
    tide_text html = writer->html;
    size_t begin = writer->at;
    size_t at = begin;
    while (at < html.bytes && !is_white(html.data[at]) && html.data[at] != '>' &&
           html.data[at] != '/')
        at++;
    const struct tag *tag = tag_of((tide_text){html.data + begin, at - begin});
    tide_text name, value, alt = TIDE_TEXT("");
    while (read_attribute(html, &at, &name, &value)) {
        if (tag != NULL && tag->effect == EFFECT_IMAGE && tide_text_equal_nocase(name, "alt"))
            alt = value;
    }
    writer->at = at + (at < html.bytes);
    if (tag != NULL)
        apply(writer, tag, closing);
    if (alt.bytes > 0) {
        writer->space = true;
        read_text(writer, alt);
        writer->space = true;
    }
}

/* After "<!--": skips to the end of the comment, or of the input. */
static void skip_comment(struct writer *writer)
{
    tide_text html = writer->html;
    size_t at = writer->at;
    if (at < html.bytes && html.data[at] == '>') {
        writer->at = at + 1;
        return;
    }
    /* "<!--->" ends with the dashes of its start. */
    const char *found = memmem(html.data + at - 2, html.bytes - at + 2, "-->", 3);
    writer->at = found == NULL ? html.bytes : (size_t)(found - html.data) + 3;
}

static void skip_to_bracket(struct writer *writer)
{
    const char *found =
        memchr(writer->html.data + writer->at, '>', writer->html.bytes - writer->at);
    writer->at = found == NULL ? writer->html.bytes : (size_t)(found - writer->html.data) + 1;
}

static bool is_letter(char c)
{
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* At a '<'. */
static void read_markup(struct writer *writer)
{
    tide_text rest = {writer->html.data + writer->at, writer->html.bytes - writer->at};
    if (rest.bytes >= 4 && memcmp(rest.data, "<!--", 4) == 0) {
        writer->at += 4;
        skip_comment(writer);
    } else if (rest.bytes >= 2 && (rest.data[1] == '!' || rest.data[1] == '?')) {
        skip_to_bracket(writer);
    } else if (rest.bytes >= 3 && rest.data[1] == '/' && is_letter(rest.data[2])) {
        writer->at += 2;
        read_tag(writer, true);
    } else if (rest.bytes >= 2 && rest.data[1] == '/') {
        skip_to_bracket(writer);
    } else if (rest.bytes >= 2 && is_letter(rest.data[1])) {
        writer->at += 1;
        read_tag(writer, false);
    } else {
        put_character(writer, "<", 1);
        writer->at += 1;
    }
}

tide_status tide_html_text(tide_text html, tide_buf *out)
{
    struct writer writer;
    writer.html = html;
    writer.at = 0;
    writer.out = out;
    writer.rc = TIDE_OK;
    writer.bytes = 0;
    writer.space = writer.line = false;
    writer.blank = true;
    writer.pre = 0;
    while (writer.at < html.bytes && writer.rc == TIDE_OK) {
        const char *begin = html.data + writer.at;
        const char *found = memchr(begin, '<', html.bytes - writer.at);
        size_t bytes = found == NULL ? html.bytes - writer.at : (size_t)(found - begin);
        if (bytes > 0) {
            read_text(&writer, (tide_text){begin, bytes});
            writer.at += bytes;
        } else {
            read_markup(&writer);
        }
    }
    if (writer.rc == TIDE_OK)
        end_line(&writer);
    flush(&writer);
    return writer.rc;
}
