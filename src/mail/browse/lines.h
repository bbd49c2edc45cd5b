/* lines.h - text as the lines of a screen: wrapped at spaces, in columns, clean.
 *
 * Invariants:
 *   BLN1  no line takes more columns than it may, unless a single character does.
 *   BLN2  lines have no control characters, and none that change the direction of what follows:
 *         a message cannot show its sender's name elsewhere than it is.
 *   BLN3  apart from such characters and blanks at ends of lines, no character is lost.
 */
#ifndef TIDE_MAIL_BROWSE_LINES_H
#define TIDE_MAIL_BROWSE_LINES_H

#include "base/buf.h"

enum { BROWSE_TEXT_BYTES_MAX = 64 << 20, BROWSE_LINES_MAX = 8 << 20 };

typedef enum browse_style {
    BROWSE_PLAIN,
    BROWSE_HEAD,   /* a header of a message */
    BROWSE_QUOTED, /* text of an earlier message */
} browse_style;

struct browse_line {
    size_t at, bytes; /* in `text` */
    browse_style style;
};

struct browse_lines {
    tide_mem *mem;
    tide_buf text;
    struct browse_line *list;
    size_t count, capacity;
    unsigned columns;
};

void browse_lines_init(struct browse_lines *lines, tide_mem *mem);
void browse_lines_done(struct browse_lines *lines);
void browse_lines_clear(struct browse_lines *lines, unsigned columns);
/* Adds text of any number of lines.  Lines that begin with '>' are quoted ones, unless it is a header.
 * TIDE_NO_MEMORY, TIDE_FULL. */
tide_status browse_lines_add(struct browse_lines *lines, browse_style style, tide_text text);
tide_text browse_lines_at(const struct browse_lines *lines, size_t index);
/* Appends text without the characters of BLN2; tabs and line ends are blanks. */
tide_status browse_clean(tide_text text, tide_buf *out);

#endif
