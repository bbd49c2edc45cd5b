/* text.h - strings that carry their length.  Borrowed; terminated only where a comment
 * says so.  The layout is fixed. */
#ifndef TIDEMARK_TEXT_H
#define TIDEMARK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct tide_text {
    const char *data;
    size_t bytes;
} tide_text;

#define TIDE_TEXT_NONE     ((tide_text){NULL, 0})
#define TIDE_TEXT(literal) ((tide_text){(literal), sizeof(literal) - 1})

static inline tide_text tide_text_of(const char *terminated)
{
    return terminated == NULL ? TIDE_TEXT_NONE : (tide_text){terminated, strlen(terminated)};
}

static inline bool tide_text_equal(tide_text a, tide_text b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

#endif
