/* html_text.c - converts HTML to text in one pass over the bytes.
 *
 * It works on tokens (html_token.h): no tree, no stack, no attributes but one.  The alternative was
 * the parser of libxml2; its time is quadratic in unmatched end tags and in attributes of one
 * element (280 kB: three seconds), and mail is untrusted input. */
#include "mail/mime/charset.h"
#include "mail/mime/html_token.h"
#include "mail/mime/message.h"
#include "base/check.h"
#include "base/json.h"

enum { TAG_BYTES_MAX = 10, STAGE_BYTES = 4096 };

struct writer {
    struct tide_html_reader reader;
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
    if (code == 0xa0 || code == 0x20 || (code >= 9 && code <= 13)) {
        writer->space = true;
        return;
    }
    size_t bytes = tide_html_utf8(code, text);
    put_character(writer, text, bytes);
}

/* ---- characters ---- */

/* An ampersand that starts no entity is copied. */
static void read_entity(struct writer *writer, tide_text text, size_t *at)
{
    uint32_t code = '&';
    size_t bytes = tide_html_entity((tide_text){text.data + *at, text.bytes - *at}, false, &code);
    *at += bytes > 0 ? bytes : 1;
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
            (void)tide_html_raw(&writer->reader, tag->name);
        break;
    case EFFECT_IMAGE:
    case EFFECT_NONE:
        break;
    }
}

static void read_tag(struct writer *writer, const struct tide_html_token *token)
{
    const struct tag *tag = tag_of(token->text);
    tide_text name, value, alt = TIDE_TEXT("");
    if (tag == NULL)
        return;
    while (tag->effect == EFFECT_IMAGE && tide_html_attribute(&writer->reader, &name, &value)) {
        if (tide_text_equal_nocase(name, "alt"))
            alt = value;
    }
    (void)tide_html_tag_end(&writer->reader);
    apply(writer, tag, token->kind == TIDE_HTML_CLOSE);
    if (alt.bytes > 0) {
        writer->space = true;
        read_text(writer, alt);
        writer->space = true;
    }
}

tide_status tide_html_text(tide_text html, tide_buf *out)
{
    struct writer writer;
    writer.reader = (struct tide_html_reader){.html = html};
    writer.out = out;
    writer.rc = TIDE_OK;
    writer.bytes = 0;
    writer.space = writer.line = false;
    writer.blank = true;
    writer.pre = 0;
    struct tide_html_token token;
    while (writer.rc == TIDE_OK && tide_html_next(&writer.reader, &token)) {
        if (token.kind == TIDE_HTML_TEXT)
            read_text(&writer, token.text);
        else
            read_tag(&writer, &token);
    }
    if (writer.rc == TIDE_OK)
        end_line(&writer);
    flush(&writer);
    return writer.rc;
}
