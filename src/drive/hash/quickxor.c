#include "drive/hash/quickxor.h"

#include <assert.h>
#include <string.h>

enum { BITS = TIDE_QUICKXOR_BYTES * 8, STEP = 11 };

static_assert(TIDE_QUICKXOR_COLUMNS % 8 == 0, "columns are whole words");

/* Whole rows, by words that stay in registers: byte by byte this was a seventh of a large download. */
static void mix_rows(uint8_t columns[TIDE_QUICKXOR_COLUMNS], const uint8_t *bytes, size_t rows)
{
    uint64_t words[TIDE_QUICKXOR_COLUMNS / 8], row[TIDE_QUICKXOR_COLUMNS / 8];
    memcpy(words, columns, sizeof words);
    for (; rows > 0; rows--, bytes += sizeof row) {
        memcpy(row, bytes, sizeof row);
        for (size_t i = 0; i < TIDE_QUICKXOR_COLUMNS / 8; i++)
            words[i] ^= row[i];
    }
    memcpy(columns, words, sizeof words);
}

static void mix(uint8_t *columns, const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        columns[i] ^= bytes[i];
}

void tide_quickxor_add(tide_quickxor *hash, const void *bytes, size_t count)
{
    const uint8_t *next = bytes;
    const size_t at = (size_t)(hash->bytes % TIDE_QUICKXOR_COLUMNS);
    hash->bytes += count;
    if (at > 0) {
        const size_t room = TIDE_QUICKXOR_COLUMNS - at;
        const size_t first = count < room ? count : room;
        mix(hash->columns + at, next, first);
        next += first;
        count -= first;
    }
    const size_t rows = count / TIDE_QUICKXOR_COLUMNS;
    mix_rows(hash->columns, next, rows);
    mix(hash->columns, next + rows * TIDE_QUICKXOR_COLUMNS, count % TIDE_QUICKXOR_COLUMNS);
}

void tide_quickxor_end(const tide_quickxor *hash, uint8_t out[TIDE_QUICKXOR_BYTES])
{
    memset(out, 0, TIDE_QUICKXOR_BYTES);
    for (unsigned i = 0, bit = 0; i < TIDE_QUICKXOR_COLUMNS; i++, bit = (bit + STEP) % BITS) {
        const unsigned wide = (unsigned)hash->columns[i] << (bit % 8);
        const unsigned byte = bit / 8;
        out[byte] ^= (uint8_t)wide;
        out[(byte + 1) % TIDE_QUICKXOR_BYTES] ^= (uint8_t)(wide >> 8);
    }
    for (unsigned i = 0; i < 8; i++)
        out[12 + i] ^= (uint8_t)(hash->bytes >> (8 * i));
}
