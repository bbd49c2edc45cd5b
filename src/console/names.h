/* names.h - texts and their numbers, remembered.
 *
 * Most rows of a day repeat the queries and pages of the day before: asking the
 * database for each would be most of the work.  When it is full it is emptied and
 * begins again; the database knows them all.
 *
 * Invariant: what is found is exactly what was put, byte for byte.
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
/* 0: not known. */
uint32_t tide_names_get(const tide_names *names, tide_text text);
/* `number` is not 0.  Forgets everything first when it is full; no memory only means
 * that it is not remembered. */
void tide_names_put(tide_names *names, tide_text text, uint32_t number);

#endif
