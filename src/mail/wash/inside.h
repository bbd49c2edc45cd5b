/* inside.h - what the files of this folder share. */
#ifndef TIDE_MAIL_WASH_INSIDE_H
#define TIDE_MAIL_WASH_INSIDE_H

#include "mail/mime/html_token.h"
#include "mail/wash/wash.h"

#include <string.h>

/* ---- writing ---- */

/* Where the result goes.  A failure is kept, and everything after it is ignored. */
struct tide_wash_out {
    tide_buf *buf;
    tide_status rc;
    uint64_t work;
};

static inline void tide_wash_put(struct tide_wash_out *out, const char *text, size_t bytes)
{
    tide_buf *buf = out->buf;
    if (out->rc != TIDE_OK)
        return;
    if (bytes < buf->capacity - buf->bytes && bytes <= buf->bytes_max - buf->bytes) {
        memcpy(buf->data + buf->bytes, text, bytes);
        buf->bytes += bytes;
    } else {
        out->rc = tide_buf_add(buf, text, bytes);
    }
}

static inline void tide_wash_put_cstr(struct tide_wash_out *out, const char *text)
{
    tide_wash_put(out, text, strlen(text));
}

/* Takes back what was written since buf->bytes was `bytes`. */
static inline void tide_wash_back(struct tide_wash_out *out, size_t bytes)
{
    out->buf->bytes = bytes;
}

/* Characters between tags; entities are read and written anew. */
void tide_wash_text(struct tide_wash_out *out, tide_text text);
/* The same for text that is not HTML: an '&' is an '&'. */
void tide_wash_plain(struct tide_wash_out *out, tide_text text);
/* The value of an attribute, entities decoded, between double quotes that the caller writes.  '<'
 * and '>' become the characters that look like them: no value can be read as a tag, even by a
 * parser that lost its place. */
void tide_wash_value(struct tide_wash_out *out, tide_text value);

/* Whether a code is a control character, a tab and a line end among them. */
static inline bool tide_wash_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* The character at the front of `text`, which is not empty; U+FFFD for a byte that begins none. */
uint32_t tide_wash_character(tide_text text, size_t *bytes_out);

/* ---- CSS (css.c) ---- */

/* The value of a style attribute.  Writes no '<', '&' or '"'. */
void tide_wash_declarations(struct tide_wash_out *out, tide_text css);
/* The content of a style element.  Writes no '<'. */
void tide_wash_sheet(struct tide_wash_out *out, tide_text css);

/* ---- elements (element.c) ---- */

/* Sorted by name.  Flags: */
enum {
    WASH_VOID = 1,     /* has no content and no end tag */
    WASH_BLOCK = 2,    /* ends a paragraph */
    WASH_IMPLIED = 4,  /* its end tag may be missing */
    WASH_BARRIER = 8,  /* end tags inside do not reach elements outside */
    WASH_PART = 16,    /* of a table; elsewhere it is nothing */
    WASH_DROPPED = 32, /* goes with its content, which is not markup */
};

/* clang-format off */
#define WASH_ELEMENTS(X)                                                                           \
    X(A, "a", 0) X(ABBR, "abbr", 0) X(ACRONYM, "acronym", 0) X(ADDRESS, "address", WASH_BLOCK)      \
    X(ARTICLE, "article", WASH_BLOCK) X(ASIDE, "aside", WASH_BLOCK) X(B, "b", 0) X(BDI, "bdi", 0)   \
    X(BDO, "bdo", 0) X(BIG, "big", 0) X(BLOCKQUOTE, "blockquote", WASH_BLOCK)                       \
    X(BODY, "body", WASH_BLOCK) X(BR, "br", WASH_VOID)                                              \
    X(CAPTION, "caption", WASH_BLOCK | WASH_IMPLIED | WASH_BARRIER | WASH_PART)                     \
    X(CENTER, "center", WASH_BLOCK) X(CITE, "cite", 0) X(CODE, "code", 0)                           \
    X(COL, "col", WASH_VOID | WASH_PART) X(COLGROUP, "colgroup", WASH_IMPLIED | WASH_PART)          \
    X(DD, "dd", WASH_BLOCK | WASH_IMPLIED) X(DEL, "del", 0) X(DFN, "dfn", 0)                        \
    X(DIV, "div", WASH_BLOCK) X(DL, "dl", WASH_BLOCK) X(DT, "dt", WASH_BLOCK | WASH_IMPLIED)        \
    X(EM, "em", 0) X(FIGCAPTION, "figcaption", WASH_BLOCK) X(FIGURE, "figure", WASH_BLOCK)          \
    X(FONT, "font", 0) X(FOOTER, "footer", WASH_BLOCK) X(H1, "h1", WASH_BLOCK)                      \
    X(H2, "h2", WASH_BLOCK) X(H3, "h3", WASH_BLOCK) X(H4, "h4", WASH_BLOCK)                         \
    X(H5, "h5", WASH_BLOCK) X(H6, "h6", WASH_BLOCK) X(HEADER, "header", WASH_BLOCK)                 \
    X(HR, "hr", WASH_VOID | WASH_BLOCK) X(I, "i", 0) X(IFRAME, "iframe", WASH_DROPPED)              \
    X(IMG, "img", WASH_VOID) X(INS, "ins", 0) X(KBD, "kbd", 0)                                      \
    X(LI, "li", WASH_BLOCK | WASH_IMPLIED) X(MAIN, "main", WASH_BLOCK) X(MARK, "mark", 0)           \
    X(NAV, "nav", WASH_BLOCK) X(NOEMBED, "noembed", WASH_DROPPED)                                   \
    X(NOFRAMES, "noframes", WASH_DROPPED) X(OL, "ol", WASH_BLOCK)                                   \
    X(P, "p", WASH_BLOCK | WASH_IMPLIED) X(PRE, "pre", WASH_BLOCK) X(Q, "q", 0) X(S, "s", 0)        \
    X(SAMP, "samp", 0) X(SCRIPT, "script", WASH_DROPPED) X(SECTION, "section", WASH_BLOCK)          \
    X(SMALL, "small", 0) X(SPAN, "span", 0) X(STRIKE, "strike", 0) X(STRONG, "strong", 0)           \
    X(STYLE, "style", 0) X(SUB, "sub", 0) X(SUP, "sup", 0)                                          \
    X(TABLE, "table", WASH_BLOCK | WASH_BARRIER)                                                    \
    X(TBODY, "tbody", WASH_BLOCK | WASH_IMPLIED | WASH_PART)                                        \
    X(TD, "td", WASH_BLOCK | WASH_IMPLIED | WASH_BARRIER | WASH_PART)                               \
    X(TEXTAREA, "textarea", WASH_DROPPED)                                                           \
    X(TFOOT, "tfoot", WASH_BLOCK | WASH_IMPLIED | WASH_PART)                                        \
    X(TH, "th", WASH_BLOCK | WASH_IMPLIED | WASH_BARRIER | WASH_PART)                               \
    X(THEAD, "thead", WASH_BLOCK | WASH_IMPLIED | WASH_PART) X(TIME, "time", 0)                     \
    X(TITLE, "title", WASH_DROPPED) X(TR, "tr", WASH_BLOCK | WASH_IMPLIED | WASH_PART)              \
    X(TT, "tt", 0) X(U, "u", 0) X(UL, "ul", WASH_BLOCK) X(VAR, "var", 0)                            \
    X(WBR, "wbr", WASH_VOID) X(XMP, "xmp", WASH_DROPPED)
/* clang-format on */

typedef enum tide_wash_element {
#define WASH_ENUM(id, name, flags) WASH_##id,
    WASH_ELEMENTS(WASH_ENUM)
#undef WASH_ENUM
        WASH_ELEMENT_COUNT,
    WASH_OTHER = WASH_ELEMENT_COUNT, /* not on the list: its tags go, its content stays */
} tide_wash_element;

tide_wash_element tide_wash_element_of(tide_text name);
const char *tide_wash_element_name(tide_wash_element element); /* as read */
unsigned tide_wash_element_flags(tide_wash_element element);

/* ---- the state of one wash ---- */

enum { WASH_SLOTS = 2048 };

/* URLs or Content-IDs with their numbers. */
struct tide_wash_list {
    tide_text *items; /* in the arena; NULL until the first */
    uint64_t *hashes;
    uint16_t *slots; /* number + 1 by hash */
    size_t count;
};

struct tide_wash_open {
    int16_t same;    /* the next lower open element of this kind; -1 */
    int16_t barrier; /* the nearest barrier at or below; -1 */
    int16_t block;   /* the nearest block at or below; -1 */
    uint8_t element;
};

struct tide_wash {
    struct tide_html_reader reader;
    struct tide_wash_out out;
    tide_arena *arena;
    tide_buf value; /* an attribute, entities decoded */
    tide_buf url;   /* the same as a URL */
    struct tide_wash_list remote, cids;
    int depth;
    int16_t last[WASH_ELEMENT_COUNT];    /* the highest open element of each kind; -1 */
    uint32_t ignore[WASH_ELEMENT_COUNT]; /* end tags to come whose element is already closed */
    struct tide_wash_open stack[TIDE_WASH_DEPTH_MAX];
};

/* Reads the attributes of a start tag and writes those that are allowed (attribute.c). */
void tide_wash_attributes(struct tide_wash *wash, tide_wash_element element);

/* Write a URL as the value of an attribute (url.c).  false: it is not allowed; nothing or a part
 * was written. */
bool tide_wash_link(struct tide_wash *wash, tide_text value);
bool tide_wash_image(struct tide_wash *wash, tide_text value, bool data_too);

#endif
