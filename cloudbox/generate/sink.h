/* sink.h - text into the bytes of a message.
 *
 * Private to generate*.c.  A pen writes plain bytes into room that is known to
 * suffice; a sink writes lines of UTF-8 through a charset and a transfer
 * encoding, up to a limit.
 *
 * Invariants:
 *   BSNK1  a line that does not fit leaves pen and sink as they were.
 *   BSNK2  a sink never writes past its limit, counted with what ending it takes.
 */
#ifndef BOX_GENERATE_SINK_H
#define BOX_GENERATE_SINK_H

#include "base/text.h"

typedef enum box_charset {
    BOX_ASCII,
    BOX_UTF8,
    BOX_LATIN1,
    BOX_CP1251,
    BOX_KOI8R,
    BOX_SJIS,
} box_charset;

typedef enum box_coding { BOX_7BIT, BOX_8BIT, BOX_QUOTED, BOX_BASE64 } box_coding;

const char *box_charset_name(box_charset charset);
const char *box_coding_name(box_coding coding);

struct box_pen {
    char *room;
    size_t at;
};

/* Inline: with a literal the compiler knows the length, and most are short. */
static inline void box_pen_add(struct box_pen *pen, const char *bytes, size_t count)
{
    memcpy(pen->room + pen->at, bytes, count);
    pen->at += count;
}

static inline void box_pen_text(struct box_pen *pen, const char *terminated)
{
    box_pen_add(pen, terminated, strlen(terminated));
}

void box_pen_fill(struct box_pen *pen, char byte, size_t count);
void box_pen_number(struct box_pen *pen, uint64_t number, uint32_t digits_least);
void box_pen_hex(struct box_pen *pen, uint64_t number, uint32_t digits);
/* `count` characters that look like base64 and decode as such; count % 4 == 0. */
void box_pen_noise(struct box_pen *pen, size_t count, uint64_t *state);
/* The text of a header: as it is when ASCII, else as encoded words (RFC 2047)
 * with folds between them. */
void box_pen_words(struct box_pen *pen, box_charset charset, tide_text utf8);

struct box_sink {
    struct box_pen *pen;
    size_t limit; /* of pen->at */
    box_charset charset;
    box_coding coding;
    uint32_t column; /* in the encoded line */
    uint32_t carried;
    unsigned char carry[2]; /* bytes that wait for their group of three */
};

void box_sink_init(struct box_sink *sink, struct box_pen *pen, box_charset charset,
                   box_coding coding, size_t limit);
enum { BOX_SINK_LINE_BYTES_MAX = 2000 };
/* Adds the text and a line end.  false: it does not fit (BSNK1). */
bool box_sink_line(struct box_sink *sink, const char *utf8, size_t bytes);
/* Adds whole lines that no encoding but base64 would change: ASCII, at most 75
 * columns, no '=', no space at a line's end. */
bool box_sink_block(struct box_sink *sink, const char *lines, size_t bytes);
/* Completes the encoding; the last line has its end. */
void box_sink_end(struct box_sink *sink);

#endif
