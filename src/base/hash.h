/* hash.h - FNV-1a in 64 bits: fast, well spread for short texts, the same on every machine.
 * Callers must tolerate collisions: an attacker can make them. */
#ifndef TIDE_BASE_HASH_H
#define TIDE_BASE_HASH_H

#include "base/text.h"

#define TIDE_HASH_START UINT64_C(0xcbf29ce484222325)

/* `hash` is TIDE_HASH_START or the hash of what came before. */
static inline uint64_t tide_hash_byte(uint64_t hash, uint8_t byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

static inline uint64_t tide_hash(uint64_t hash, tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        hash = tide_hash_byte(hash, (uint8_t)text.data[i]);
    return hash;
}

/* A key for struct tide_map, where 0 means "no entry". */
static inline uint64_t tide_hash_key(tide_text text)
{
    const uint64_t hash = tide_hash(TIDE_HASH_START, text);
    return hash == 0 ? 1 : hash;
}

#endif
