#include "cloudbox/mailbox/mime_tree.h"
#include "cloudbox/gate/http.h"
#include "base/check.h"

#include <errno.h>
#include <iconv.h>

#include <gmime/gmime.h>

/* ---- UTF-8 ---- */

/* The bytes of the well-formed character at the start; 0: there is none. */
static size_t character_bytes(const char *text, size_t left)
{
    const unsigned char *u = (const unsigned char *)text;
    if (u[0] < 0x80)
        return 1;
    size_t bytes = u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : u[0] < 0xf5 ? 4 : 0;
    if (bytes == 0 || bytes > left)
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
        (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return bytes;
}

bool box_utf8_valid(tide_text text)
{
    for (size_t at = 0; at < text.bytes;) {
        uint64_t word;
        if (at + 8 <= text.bytes) {
            memcpy(&word, text.data + at, 8);
            if ((word & 0x8080808080808080u) == 0) {
                at += 8;
                continue;
            }
        }
        size_t bytes = character_bytes(text.data + at, text.bytes - at);
        if (bytes == 0)
            return false;
        at += bytes;
    }
    return true;
}

static void add_repaired(tide_buf *out, tide_text text)
{
    size_t from = 0;
    for (size_t at = 0; at < text.bytes;) {
        size_t bytes = character_bytes(text.data + at, text.bytes - at);
        if (bytes > 0) {
            at += bytes;
            continue;
        }
        box_add(out, text.data + from, at - from);
        box_add(out, "\xef\xbf\xbd", 3);
        from = ++at;
    }
    box_add(out, text.data + from, text.bytes - from);
}

/* ---- charsets ---- */

static void convert(tide_buf *out, iconv_t coder, tide_text text)
{
    char *in = (char *)(uintptr_t)text.data; /* iconv() does not write to it */
    size_t left = text.bytes;
    while (left > 0) {
        char room[4096];
        char *to = room;
        size_t space = sizeof room;
        size_t result = iconv(coder, &in, &left, &to, &space);
        int error = errno;
        box_add(out, room, (size_t)(to - room));
        if (result != (size_t)-1)
            break;
        if (error == E2BIG)
            continue;
        box_add(out, "\xef\xbf\xbd", 3);
        if (error != EILSEQ)
            break; /* cut off in the middle of a character */
        in++;
        left--;
    }
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (strcasecmp(name, *names) == 0)
            return true;
    }
    return false;
}

void box_add_utf8(tide_buf *out, const char *charset, tide_text text)
{
    static const char *const same[] = {"utf-8", "utf8", "unicode-1-1-utf-8", NULL};
    static const char *const guess[] = {"", "us-ascii", "ascii", "ansi_x3.4-1968", NULL};
    static const char *const western[] = {"iso-8859-1", "latin1", "iso_8859-1", NULL};
    if (text.bytes == 0)
        return;
    bool unknown = is_one_of(charset, guess);
    if ((unknown || is_one_of(charset, same)) && box_utf8_valid(text)) {
        box_add(out, text.data, text.bytes);
        return;
    }
    if (is_one_of(charset, same)) {
        add_repaired(out, text);
        return;
    }
    /* Those who say nothing, or Latin 1, mean what Windows calls so. */
    const char *name = unknown || is_one_of(charset, western) ? "windows-1252"
                                                              : g_mime_charset_iconv_name(charset);
    iconv_t coder = name == NULL ? (iconv_t)-1 : iconv_open("UTF-8", name);
    if (coder == (iconv_t)-1) {
        if (box_utf8_valid(text)) {
            box_add(out, text.data, text.bytes);
            return;
        }
        coder = iconv_open("UTF-8", "windows-1252");
        TIDE_ASSERT(coder != (iconv_t)-1);
    }
    convert(out, coder, text);
    iconv_close(coder);
}

void box_part_text(const struct box_part *part, size_t bytes_max, tide_buf *out)
{
    if (part->transfer == BOX_TRANSFER_PLAIN) {
        size_t bytes = part->body.bytes < bytes_max ? part->body.bytes : bytes_max;
        box_add_utf8(out, part->charset, (tide_text){part->body.data, bytes});
        return;
    }
    tide_auto_buf bytes = tide_buf_heap(BOX_BODY_BYTES_MAX + 1024);
    box_part_decode(part, bytes_max, &bytes);
    box_add_utf8(out, part->charset, tide_buf_text(&bytes));
}

/* ---- HTML ---- */

struct html {
    tide_text text;
    size_t at;
    tide_buf *out;
};

static void add_character(tide_buf *out, uint32_t code)
{
    char utf8[4];
    size_t bytes;
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        utf8[0] = (char)code;
        bytes = 1;
    } else if (code < 0x800) {
        utf8[0] = (char)(0xc0 | code >> 6);
        utf8[1] = (char)(0x80 | (code & 0x3f));
        bytes = 2;
    } else if (code < 0x10000) {
        utf8[0] = (char)(0xe0 | code >> 12);
        utf8[1] = (char)(0x80 | (code >> 6 & 0x3f));
        utf8[2] = (char)(0x80 | (code & 0x3f));
        bytes = 3;
    } else {
        utf8[0] = (char)(0xf0 | code >> 18);
        utf8[1] = (char)(0x80 | (code >> 12 & 0x3f));
        utf8[2] = (char)(0x80 | (code >> 6 & 0x3f));
        utf8[3] = (char)(0x80 | (code & 0x3f));
        bytes = 4;
    }
    box_add(out, utf8, bytes);
}

static bool number_of_entity(tide_text name, uint32_t *code_out)
{
    bool hex = name.bytes > 1 && (name.data[1] | 32) == 'x';
    uint32_t code = 0;
    size_t from = hex ? 2 : 1;
    if (from >= name.bytes)
        return false;
    for (size_t i = from; i < name.bytes; i++) {
        char c = name.data[i];
        uint32_t digit =
            c >= '0' && c <= '9' ? (uint32_t)(c - '0') : (uint32_t)((c | 32) - 'a') + 10;
        if (digit >= (hex ? 16u : 10u))
            return false;
        code = code * (hex ? 16 : 10) + digit;
    }
    *code_out = code;
    return true;
}

/* &name; or &#number; at the current place; what is none is text. */
static void entity(struct html *html)
{
    static const struct {
        const char *name;
        uint32_t code;
    } names[] = {
        {"amp", '&'},      {"lt", '<'},       {"gt", '>'},        {"quot", '"'},
        {"apos", '\''},    {"nbsp", ' '},     {"copy", 0xa9},     {"reg", 0xae},
        {"euro", 0x20ac},  {"pound", 0xa3},   {"hellip", 0x2026}, {"ndash", 0x2013},
        {"mdash", 0x2014}, {"lsquo", 0x2018}, {"rsquo", 0x2019},  {"ldquo", 0x201c},
        {"rdquo", 0x201d}, {"bull", 0x2022},  {"middot", 0xb7},   {"laquo", 0xab},
        {"raquo", 0xbb},   {"trade", 0x2122}, {"deg", 0xb0},      {"sect", 0xa7},
        {"auml", 0xe4},    {"ouml", 0xf6},    {"uuml", 0xfc},     {"Auml", 0xc4},
        {"Ouml", 0xd6},    {"Uuml", 0xdc},    {"szlig", 0xdf},    {"eacute", 0xe9},
        {"egrave", 0xe8},  {"agrave", 0xe0},  {"ccedil", 0xe7},   {"ntilde", 0xf1},
        {"zwnj", 0x200c},  {"shy", 0xad},
    };
    const char *start = html->text.data + html->at + 1;
    size_t left = html->text.bytes - html->at - 1;
    size_t bytes = 0;
    while (bytes < left && bytes < 10 && start[bytes] != ';')
        bytes++;
    uint32_t code = 0;
    tide_text name = {start, bytes};
    bool known = bytes < left && bytes > 0 && start[bytes] == ';';
    if (known && *start == '#') {
        known = number_of_entity(name, &code);
    } else if (known) {
        known = false;
        for (size_t i = 0; i < sizeof names / sizeof names[0] && !known; i++) {
            known = tide_text_equal(name, tide_text_of(names[i].name));
            code = names[i].code;
        }
    }
    if (known)
        add_character(html->out, code == 0xa0 ? ' ' : code);
    else
        box_add(html->out, "&", 1);
    html->at += known ? bytes + 2 : 1;
}

/* Skips to behind `needle`, or to the end. */
static void skip_behind(struct html *html, const char *needle)
{
    const char *from = html->text.data + html->at;
    const char *found = memmem(from, html->text.bytes - html->at, needle, strlen(needle));
    html->at =
        found == NULL ? html->text.bytes : (size_t)(found - html->text.data) + strlen(needle);
}

/* The end tag of that element, in any case; linear, since '<' is rare. */
static void skip_element(struct html *html, tide_text name)
{
    while (html->at < html->text.bytes) {
        skip_behind(html, "</");
        size_t left = html->text.bytes - html->at;
        if (left >= name.bytes &&
            strncasecmp(html->text.data + html->at, name.data, name.bytes) == 0) {
            skip_behind(html, ">");
            return;
        }
    }
}

static void tag(struct html *html)
{
    static const char *const inside_words[] = {"a",      "b",    "i",    "u",     "em",
                                               "strong", "span", "font", "small", "sub",
                                               "sup",    "code", "tt",   NULL};
    static const char *const unseen[] = {"style", "script", "title", NULL};
    const char *start = html->text.data + html->at;
    size_t left = html->text.bytes - html->at;
    if (left >= 4 && memcmp(start, "<!--", 4) == 0) {
        skip_behind(html, "-->");
        return;
    }
    bool end = left > 1 && start[1] == '/';
    const char *name = start + (end ? 2 : 1);
    size_t bytes = 0, name_left = left - (size_t)(name - start);
    while (bytes < name_left && bytes < 15 &&
           (((name[bytes] | 32) >= 'a' && (name[bytes] | 32) <= 'z') ||
            (name[bytes] >= '0' && name[bytes] <= '9')))
        bytes++;
    if (bytes == 0 && !(left > 1 && (start[1] == '!' || start[1] == '?' || end))) {
        box_add(html->out, "<", 1); /* a lone one: "1 < 2" */
        html->at++;
        return;
    }
    char lower[16] = {0};
    for (size_t i = 0; i < bytes; i++)
        lower[i] = (char)(name[i] | (name[i] >= 'A' && name[i] <= 'Z' ? 32 : 0));
    skip_behind(html, ">");
    if (!end && is_one_of(lower, unseen))
        skip_element(html, (tide_text){lower, bytes});
    if (!is_one_of(lower, inside_words))
        box_add(html->out, "\n", 1);
}

void box_add_html_text(tide_buf *out, tide_text text)
{
    struct html html = {text, 0, out};
    while (html.at < text.bytes) {
        const char *from = text.data + html.at;
        size_t run = 0, left = text.bytes - html.at;
        while (run < left && from[run] != '<' && from[run] != '&')
            run++;
        box_add(out, from, run);
        html.at += run;
        if (html.at == text.bytes)
            break;
        if (text.data[html.at] == '<')
            tag(&html);
        else
            entity(&html);
    }
}
