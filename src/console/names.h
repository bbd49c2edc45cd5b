/* names.h - a cache of texts and their numbers.
 *
 * Most rows of a day repeat the queries and pages of the day before: looking up each in the
 * database would be most of the work.  A full cache is cleared; the database has all of them.
 *
 * Invariant: a lookup finds exactly the text that was put, byte for byte.
 */
#ifndef TIDE_CONSOLE_NAMES_H
#define TIDE_CONSOLE_NAMES_H

#include "base/mem.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { TIDE_NAMES_BYTES_MAX = 24 << 20, TIDE_NAMES_COUNT_MAX = 1 << 19 };

typedef struct tide_names {
    tide_mem *mem;
    tide_arena texts;
    struct tide_name *cells; /* open addressing; a power of two */
    size_t capacity, count;
    uint64_t seed;
} tide_names;

void tide_names_init(tide_names *names, uint64_t seed, tide_mem *mem);
void tide_names_done(tide_names *names);
void tide_names_clear(tide_names *names);
/* 0: not cached. */
uint32_t tide_names_get(const tide_names *names, tide_text text);
/* `number` is not 0.  Clears a full cache first; without memory the text is not cached. */
void tide_names_put(tide_names *names, tide_text text, uint32_t number);

#endif
