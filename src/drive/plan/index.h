/* index.h - finds entries of an array by a 64-bit hash; several may have the same one.
 *
 * The caller compares what it finds: two different keys may have one hash. */
#ifndef TIDE_DRIVE_PLAN_INDEX_H
#define TIDE_DRIVE_PLAN_INDEX_H

#include "base/hash.h"
#include "base/map.h"

enum { TIDE_INDEX_END = UINT32_MAX };

typedef struct tide_index {
    tide_mem *mem;
    tide_map heads;
    uint32_t *next; /* by entry */
    size_t capacity;
} tide_index;

void tide_index_init(tide_index *index, tide_mem *mem);
void tide_index_done(tide_index *index); /* a zeroed one is fine */
/* Adds entry `at`, which is in the index at most once.  false: no memory. */
bool tide_index_add(tide_index *index, uint64_t hash, uint32_t at);
/* The last one added with this hash, then the others; TIDE_INDEX_END. */
uint32_t tide_index_first(const tide_index *index, uint64_t hash);
uint32_t tide_index_next(const tide_index *index, uint32_t at);

static inline uint64_t tide_index_hash(uint64_t number, tide_text text)
{
    uint64_t hash = TIDE_HASH_START;
    for (int i = 0; i < 8; i++)
        hash = tide_hash_byte(hash, (uint8_t)(number >> 8 * i));
    hash = tide_hash(hash, text);
    return hash == 0 ? 1 : hash;
}

#endif
