/* css.c - washes style sheets and style attributes.
 *
 * A declaration or rule with something that is not allowed is dropped whole, except url(...), which
 * becomes `none`: "background:#036 url(x)" keeps its color, and text stays readable.
 *
 * Allowed are qualified rules and @media; functions of a list, none of which loads anything; no
 * custom properties, because var() can multiply its input.  Written are an '@' only in "@media", and
 * a '(' only after an allowed name, inside one, or in a media query. */
#include "mail/wash/css_token.h"
#include "mail/mime/charset.h"

enum { BRACKETS_MAX = 32, MEDIA_DEEP = 4 };

/* ---- brackets ---- */

static bool open_bracket(struct tide_css *css, bool square)
{
    if (css->brackets == BRACKETS_MAX)
        return false;
    uint32_t bit = UINT32_C(1) << css->brackets++;
    css->square = square ? css->square | bit : css->square & ~bit;
    return true;
}

static bool close_bracket(struct tide_css *css, bool square)
{
    if (css->brackets == 0)
        return false;
    uint32_t bit = UINT32_C(1) << --css->brackets;
    return ((css->square & bit) != 0) == square;
}

/* Whether a token may be in a value, a selector or a media query, whose marks are `marks`. */
static bool fits(struct tide_css *css, enum tide_css_token token, const char *marks)
{
    switch (token) {
    case TIDE_CSS_WORD:
    case TIDE_CSS_STRING:
        return true;
    case TIDE_CSS_FUNCTION:
        return open_bracket(css, false);
    case TIDE_CSS_MARK:
        if (css->mark == '(' && css->brackets > 0) /* in a calc() */
            return open_bracket(css, false);
        if (css->mark == '(' || css->mark == '[')
            return strchr(marks, css->mark) != NULL && open_bracket(css, css->mark == '[');
        if (css->mark == ')' || css->mark == ']')
            return close_bracket(css, css->mark == ']');
        return css->mark != '\0' && strchr(marks, css->mark) != NULL;
    case TIDE_CSS_BAD:
    case TIDE_CSS_END:
        return false;
    }
    return false;
}

/* ---- declarations ---- */

static void begin(struct tide_css *css)
{
    css->fresh = true;
    css->brackets = 0;
}

/* Skips what is left of something bad, whose last token is given: up to its ';', the end of its
 * block, or the '}' around it.  Returns ';', '}' or 0 for the end. */
static char skip_bad(struct tide_css *css, enum tide_css_token token)
{
    size_t from = tide_css_written(css);
    unsigned deep = 0;
    for (;; token = tide_css_next(css)) {
        tide_wash_back(css->out, from);
        if (token == TIDE_CSS_END)
            return '\0';
        if (token != TIDE_CSS_MARK)
            continue;
        if (css->mark == '{') {
            deep++;
        } else if (css->mark == '}') {
            if (deep == 0)
                return '}';
            if (--deep == 0)
                return ';';
        } else if (css->mark == ';' && deep == 0) {
            return ';';
        }
    }
}

static bool is_end(const struct tide_css *css, enum tide_css_token token)
{
    return token == TIDE_CSS_END ||
           (token == TIDE_CSS_MARK && (css->mark == ';' || css->mark == '}'));
}

/* Custom properties, and those that ran code in old browsers. */
static bool is_denied(tide_text property)
{
    return tide_text_equal_nocase(property, "behavior") ||
           tide_text_equal_nocase(property, "-ms-behavior") ||
           tide_text_equal_nocase(property, "-moz-binding") ||
           tide_text_starts_nocase(property, "--");
}

/* One declaration.  Returns how it ends, as skip_bad() does; *good_out: it was written. */
static char wash_declaration(struct tide_css *css, bool *good_out)
{
    *good_out = false;
    begin(css);
    enum tide_css_token token = tide_css_next(css);
    if (is_end(css, token))
        return token == TIDE_CSS_END ? '\0' : css->mark;
    if (token != TIDE_CSS_WORD || css->out->rc != TIDE_OK || is_denied(tide_css_text(css)))
        return skip_bad(css, token);
    css->fresh = true;
    token = tide_css_next(css);
    if (token != TIDE_CSS_MARK || css->mark != ':')
        return skip_bad(css, token);
    css->fresh = true;
    size_t empty = tide_css_written(css);
    while (!is_end(css, token = tide_css_next(css))) {
        if (!fits(css, token, ",.#%+*/!:="))
            return skip_bad(css, token);
    }
    *good_out = css->brackets == 0 && tide_css_written(css) > empty;
    return token == TIDE_CSS_END ? '\0' : css->mark;
}

/* Up to a '}' or the end.  In an attribute a '}' closes nothing and spoils its declaration. */
static void wash_block(struct tide_css *css, bool in_attribute)
{
    bool any = false;
    char end = ';';
    while (end == ';' && css->out->rc == TIDE_OK) {
        size_t before = tide_css_written(css);
        bool good = false;
        if (any)
            tide_wash_put(css->out, ";", 1);
        end = wash_declaration(css, &good);
        if (end == '}' && in_attribute) {
            good = false;
            end = ';';
        }
        if (good)
            any = true;
        else
            tide_wash_back(css->out, before);
    }
}

void tide_wash_declarations(struct tide_wash_out *out, tide_text text)
{
    struct tide_css css = {.out = out, .in = text};
    wash_block(&css, true);
}

/* ---- rules ---- */

/* A name behind '#' gets the prefix that ids have. */
static void prefix_id(struct tide_css *css)
{
    tide_text name = tide_css_text(css);
    if (css->out->rc != TIDE_OK || (name.bytes >= 2 && memcmp(name.data, "m-", 2) == 0))
        return;
    size_t begin = css->begin;
    tide_wash_put(css->out, "  ", 2); /* room */
    if (css->out->rc != TIDE_OK)
        return;
    char *data = css->out->buf->data + begin;
    memmove(data + 2, data, name.bytes);
    memcpy(data, "m-", 2);
}

/* A selector or a media query, and its '{'.  false: it is bad, and was skipped with its block; then
 * *end_out is as skip_bad() says. */
static bool wash_prelude(struct tide_css *css, const char *marks, char *end_out)
{
    bool hash = false;
    for (;;) {
        bool id = hash && tide_css_at_word(css);
        enum tide_css_token token = id ? tide_css_next_id(css) : tide_css_next(css);
        hash = false;
        if (token == TIDE_CSS_MARK && css->mark == '{' && css->brackets == 0)
            return true;
        /* "-->" in front of a selector would be read as the end of a wrapper. */
        bool dashes = token == TIDE_CSS_WORD && tide_text_starts_nocase(tide_css_text(css), "--");
        if (dashes || !fits(css, token, marks)) {
            *end_out = skip_bad(css, token);
            return false;
        }
        if (id && token == TIDE_CSS_WORD)
            prefix_id(css);
        hash = token == TIDE_CSS_MARK && css->mark == '#';
    }
}

struct media {
    size_t begin, content; /* in the result */
};

struct sheet {
    struct tide_css css;
    unsigned deep;
    struct media media[MEDIA_DEEP];
};

static void close_media(struct sheet *sheet)
{
    struct tide_css *css = &sheet->css;
    if (sheet->deep == 0)
        return;
    const struct media *media = &sheet->media[--sheet->deep];
    if (tide_css_written(css) == media->content)
        tide_wash_back(css->out, media->begin);
    else
        tide_wash_put(css->out, "}", 1);
}

static void wash_rule(struct sheet *sheet)
{
    struct tide_css *css = &sheet->css;
    size_t before = tide_css_written(css);
    char end = '\0';
    begin(css);
    bool good = wash_prelude(css, ".#*>+~,:[=|^$", &end);
    if (good && tide_css_written(css) == before) {
        end = skip_bad(css, TIDE_CSS_MARK); /* a block without a selector; its '{' was read */
        good = false;
    }
    if (!good) {
        tide_wash_back(css->out, before);
        if (end == '}')
            close_media(sheet);
        return;
    }
    tide_wash_put(css->out, "{", 1);
    size_t empty = tide_css_written(css);
    wash_block(css, false);
    if (tide_css_written(css) == empty)
        tide_wash_back(css->out, before);
    else
        tide_wash_put(css->out, "}", 1);
}

/* At an '@'. */
static void wash_at_rule(struct sheet *sheet)
{
    struct tide_css *css = &sheet->css;
    size_t before = css->begin = tide_css_written(css);
    char end = '\0';
    css->at++;
    begin(css);
    tide_css_word(css);
    bool is_media = css->out->rc == TIDE_OK && tide_text_equal_nocase(tide_css_text(css), "media");
    tide_wash_back(css->out, before);
    css->fresh = false;
    if (!is_media || sheet->deep == MEDIA_DEEP) {
        end = skip_bad(css, tide_css_next(css));
    } else {
        tide_wash_put_cstr(css->out, "@media");
        css->space = true;
        if (wash_prelude(css, ":,.(/=", &end)) {
            tide_wash_put(css->out, "{", 1);
            sheet->media[sheet->deep++] = (struct media){before, tide_css_written(css)};
            return;
        }
    }
    tide_wash_back(css->out, before);
    if (end == '}')
        close_media(sheet);
}

/* "<!--" and "-->", in which old mailers wrap their sheets. */
static bool skip_wrapper(struct tide_css *css)
{
    tide_text rest = tide_css_rest(css);
    if (rest.bytes >= 4 && memcmp(rest.data, "<!--", 4) == 0)
        css->at += 4;
    else if (rest.bytes >= 3 && memcmp(rest.data, "-->", 3) == 0)
        css->at += 3;
    else
        return false;
    return true;
}

void tide_wash_sheet(struct tide_wash_out *out, tide_text text)
{
    struct sheet sheet = {.css = {.out = out, .in = text}};
    struct tide_css *css = &sheet.css;
    while (out->rc == TIDE_OK) {
        size_t from = css->at;
        tide_css_white(css);
        css->space = false;
        out->work += css->at - from + 1;
        if (css->at == text.bytes)
            break;
        char c = text.data[css->at];
        if (skip_wrapper(css))
            continue;
        if (c == '}') {
            css->at++;
            close_media(&sheet);
        } else if (c == ';') {
            css->at++;
        } else if (c == '@') {
            wash_at_rule(&sheet);
        } else {
            wash_rule(&sheet);
        }
    }
    while (sheet.deep > 0 && out->rc == TIDE_OK)
        close_media(&sheet);
}
