/* css_token.c - the tokens of CSS. */
#include "mail/wash/css_token.h"
#include "mail/mime/charset.h"

#include <stdio.h>

/* ---- characters ---- */

static bool is_name(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static bool is_white(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An escape, at its '\'; false: it is none. */
static bool read_escape(struct tide_css *css, uint32_t *code_out)
{
    tide_text rest = tide_css_rest(css);
    if (rest.bytes < 2 || rest.data[1] == '\n' || rest.data[1] == '\r' || rest.data[1] == '\f')
        return false;
    if (hex_digit(rest.data[1]) < 0) {
        size_t bytes = 0;
        uint32_t code = tide_wash_character((tide_text){rest.data + 1, rest.bytes - 1}, &bytes);
        css->at += 1 + bytes;
        *code_out = code == 0 ? 0xfffd : code;
        return true;
    }
    uint32_t code = 0;
    size_t i = 1;
    for (; i < rest.bytes && i <= 6 && hex_digit(rest.data[i]) >= 0; i++)
        code = code << 4 | (uint32_t)hex_digit(rest.data[i]);
    if (i + 1 < rest.bytes && rest.data[i] == '\r' && rest.data[i + 1] == '\n')
        i++;
    if (i < rest.bytes && is_white(rest.data[i]))
        i++;
    css->at += i;
    *code_out = code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0xfffd : code;
    return true;
}

static void put_escape(struct tide_css *css, uint32_t code)
{
    char text[16];
    int bytes = snprintf(text, sizeof text, "\\%x ", (unsigned)code);
    tide_wash_put(css->out, text, (size_t)bytes);
}

static void put_code(struct tide_css *css, uint32_t code)
{
    char text[4];
    tide_wash_put(css->out, text, tide_html_utf8(code, text));
}

/* White space and comments. */
void tide_css_white(struct tide_css *css)
{
    for (;;) {
        tide_text rest = tide_css_rest(css);
        if (rest.bytes == 0)
            return;
        if (is_white(rest.data[0])) {
            css->at++;
        } else if (rest.bytes >= 2 && rest.data[0] == '/' && rest.data[1] == '*') {
            const char *end = memmem(rest.data + 2, rest.bytes - 2, "*/", 2);
            css->at = end == NULL ? css->in.bytes : (size_t)(end - css->in.data) + 2;
        } else {
            return;
        }
        css->space = true;
    }
}

/* ---- tokens ---- */

/* Whether a word begins here. */
bool tide_css_at_word(const struct tide_css *css)
{
    tide_text rest = tide_css_rest(css);
    if (rest.bytes == 0)
        return false;
    unsigned char c = (unsigned char)rest.data[0];
    return is_name(c) || c >= 0x80 ||
           (c == '\\' && rest.bytes > 1 && rest.data[1] != '\n' && rest.data[1] != '\r' &&
            rest.data[1] != '\f');
}

/* One escaped character of a word.  A digit in front stays escaped: "\31 a" is a name, 1a is not.
 * A name that follows "#m-" has nothing in front. */
static void put_word_code(struct tide_css *css, uint32_t code, bool first)
{
    bool digit = code >= '0' && code <= '9';
    if (code >= 0xa0 || (code < 0x80 && is_name((unsigned char)code) && !(digit && first)))
        put_code(css, code);
    else
        put_escape(css, code);
}

/* Reads a word and writes it. */
static void read_word(struct tide_css *css, bool prefixed)
{
    bool first = !prefixed;
    while (tide_css_at_word(css)) {
        tide_text rest = tide_css_rest(css);
        size_t plain = 0;
        while (plain < rest.bytes && is_name((unsigned char)rest.data[plain]))
            plain++;
        if (plain > 0) {
            tide_wash_put(css->out, rest.data, plain);
            css->at += plain;
        } else if (rest.data[0] == '\\') {
            uint32_t code = 0xfffd;
            (void)read_escape(css, &code);
            put_word_code(css, code, first);
        } else {
            size_t bytes = 0;
            uint32_t code = tide_wash_character(rest, &bytes);
            put_code(css, tide_wash_is_control(code) ? 0xfffd : code);
            css->at += bytes;
        }
        first = false;
    }
}

void tide_css_word(struct tide_css *css)
{
    read_word(css, false);
}

/* A string, at its first quote.  false: its line ends before it does. */
static bool read_string(struct tide_css *css)
{
    char quote = css->in.data[css->at++];
    tide_wash_put(css->out, "'", 1);
    for (;;) {
        tide_text rest = tide_css_rest(css);
        if (rest.bytes == 0 || rest.data[0] == quote)
            break;
        if (rest.data[0] == '\n' || rest.data[0] == '\r' || rest.data[0] == '\f')
            return false;
        size_t bytes = 0;
        uint32_t code = tide_wash_character(rest, &bytes);
        if (code == '\\' && (rest.bytes < 2 || !read_escape(css, &code))) {
            /* A line that goes on, or the end of the input. */
            css->at += rest.bytes < 2 ? 1 : 2;
            css->at += css->at < css->in.bytes && rest.data[1] == '\r' && rest.data[2] == '\n';
            continue;
        }
        if (rest.data[0] != '\\')
            css->at += bytes;
        if (code == 0)
            code = 0xfffd;
        /* Escaping more than needed lets simple scanners trust what they see. */
        if (code >= 0xa0 || (code < 0x80 && is_name((unsigned char)code)) ||
            (code < 0x80 && code >= ' ' && strchr(" .,!?#%+=~|$^:", (int)code) != NULL))
            put_code(css, code);
        else
            put_escape(css, code);
    }
    css->at += css->at < css->in.bytes;
    tide_wash_put(css->out, "'", 1);
    return true;
}

/* The argument of url(), after its '('. */
static void skip_url(struct tide_css *css)
{
    while (css->at < css->in.bytes && is_white(css->in.data[css->at]))
        css->at++;
    char quote = css->at < css->in.bytes ? css->in.data[css->at] : '\0';
    if (quote != '"' && quote != '\'')
        quote = '\0';
    css->at += quote != '\0';
    while (css->at < css->in.bytes) {
        char c = css->in.data[css->at++];
        if (c == '\\' && css->at < css->in.bytes)
            css->at++;
        else if (quote != '\0' && (c == quote || c == '\n'))
            quote = '\0';
        else if (quote == '\0' && c == ')')
            return;
    }
}

static bool is_allowed_function(tide_text name)
{
    static const char *const names[] = {
        "rgb",
        "rgba",
        "hsl",
        "hsla",
        "calc",
        "min",
        "max",
        "clamp",
        "linear-gradient",
        "-webkit-linear-gradient",
        "radial-gradient",
        "repeating-linear-gradient",
        "rotate",
        "scale",
        "translate",
        "translatex",
        "translatey",
        "cubic-bezier",
        "not",
        "nth-child",
        "nth-of-type",
        "nth-last-child",
        "lang",
        "alpha",
        "rect",
        "inset",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (tide_text_equal_nocase(name, names[i]))
            return true;
    }
    return false;
}

/* After a word: is it url(, a function, or just a word? */
static enum tide_css_token read_after_word(struct tide_css *css)
{
    if (css->at == css->in.bytes || css->in.data[css->at] != '(')
        return TIDE_CSS_WORD;
    css->at++;
    if (tide_text_equal_nocase(tide_css_text(css), "url")) {
        skip_url(css);
        tide_wash_back(css->out, css->begin);
        tide_wash_put(css->out, "none", 4);
        css->space = true; /* before a word that follows directly */
        return TIDE_CSS_WORD;
    }
    bool allowed = css->out->rc == TIDE_OK && is_allowed_function(tide_css_text(css));
    tide_wash_put(css->out, "(", 1);
    return allowed ? TIDE_CSS_FUNCTION : TIDE_CSS_BAD;
}

static enum tide_css_token read_token(struct tide_css *css, bool prefixed)
{
    size_t from = css->at;
    tide_css_white(css);
    css->out->work += css->at - from + 1;
    if (css->at == css->in.bytes || css->out->rc != TIDE_OK)
        return TIDE_CSS_END;
    from = css->at;
    char c = css->in.data[css->at];
    bool structure = c == ';' || c == '{' || c == '}';
    if (css->space && !css->fresh && !structure)
        tide_wash_put(css->out, " ", 1);
    css->space = css->fresh = false;
    css->begin = tide_css_written(css);
    enum tide_css_token token = TIDE_CSS_MARK;
    if (tide_css_at_word(css)) {
        read_word(css, prefixed);
        token = read_after_word(css);
    } else if (c == '"' || c == '\'') {
        token = read_string(css) ? TIDE_CSS_STRING : TIDE_CSS_BAD;
    } else {
        css->at++;
        css->mark = c;
        if (!structure)
            tide_wash_put(css->out, &c, 1);
    }
    css->out->work += css->at - from;
    return token;
}

enum tide_css_token tide_css_next(struct tide_css *css)
{
    return read_token(css, false);
}

enum tide_css_token tide_css_next_id(struct tide_css *css)
{
    return read_token(css, true);
}
