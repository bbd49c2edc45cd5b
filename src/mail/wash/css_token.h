/* css_token.h - reads CSS as tokens and writes each in one way.
 *
 * Words come without escapes where they need none, strings in single quotes, white space and
 * comments as one space.  So what is checked is what a browser will read.  A token is written when
 * it is read; a caller that does not want it takes it back with tide_wash_back().
 *
 * In words and strings there is no '<', '&' or '"', and a '\' only before hex digits; in strings
 * nothing that looks like a bracket or a rule.  Marks are any other character: the caller knows
 * which are allowed. */
#ifndef TIDE_MAIL_CSS_TOKEN_H
#define TIDE_MAIL_CSS_TOKEN_H

#include "mail/wash/inside.h"

enum tide_css_token {
    TIDE_CSS_END,
    TIDE_CSS_WORD, /* names, numbers with their units, url(...) as `none` */
    TIDE_CSS_STRING,
    TIDE_CSS_FUNCTION, /* a name and its '(' */
    TIDE_CSS_MARK,     /* tide_css.mark */
    TIDE_CSS_BAD,      /* not allowed */
};

struct tide_css {
    struct tide_wash_out *out;
    tide_text in;
    size_t at;
    bool space; /* white space was read and not yet written */
    bool fresh; /* white space here means nothing */
    char mark;
    size_t begin;      /* of the token in the result */
    unsigned brackets; /* open (css.c) */
    uint32_t square;   /* a bit for each: '[' */
};

/* The next token.  Marks of structure, ";{}", are not written. */
enum tide_css_token tide_css_next(struct tide_css *css);
/* The same for a name behind "#", which will get a prefix. */
enum tide_css_token tide_css_next_id(struct tide_css *css);

/* Parts of it, for what is no token. */
bool tide_css_at_word(const struct tide_css *css);
void tide_css_word(struct tide_css *css);  /* reads a word and writes it */
void tide_css_white(struct tide_css *css); /* skips white space and comments */

static inline size_t tide_css_written(const struct tide_css *css)
{
    return css->out->buf->bytes;
}

/* The last token as it was written.  Not after a failure. */
static inline tide_text tide_css_text(const struct tide_css *css)
{
    return (tide_text){css->out->buf->data + css->begin, tide_css_written(css) - css->begin};
}

static inline tide_text tide_css_rest(const struct tide_css *css)
{
    return (tide_text){css->in.data + css->at, css->in.bytes - css->at};
}

#endif
