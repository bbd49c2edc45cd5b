/* text.h - strings that carry their length.  Borrowed, not terminated. */
#ifndef TIDE_BASE_TEXT_H
#define TIDE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

/* A whole number in decimal, no sign, no spaces, no overflow. */
bool tide_text_to_u64(tide_text text, uint64_t *number_out);
/* The same with an optional '-'. */
bool tide_text_to_i64(tide_text text, int64_t *number_out);

/* How many letters must be added, dropped or replaced to turn one into the
 * other; for "did you mean".  Texts over 64 bytes count as wholly different. */
size_t tide_text_distance(tide_text a, tide_text b);

#endif
