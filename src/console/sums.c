#include "console/store_inside.h"

#include <string.h>

enum { CAPACITY_START = 256 };

void tide_console_sums_done(tide_console_sums *sums)
{
    tide_mem_free(sums->mem, sums->cells, sums->capacity * sizeof *sums->cells);
    sums->cells = NULL;
    sums->capacity = sums->count = 0;
}

void tide_console_sums_clear(tide_console_sums *sums)
{
    if (sums->count > 0)
        memset(sums->cells, 0, sums->capacity * sizeof *sums->cells);
    sums->count = 0;
}

/* Keys are numbers of texts: dense, so that mixing is enough as a hash.  0: a free cell. */
static struct tide_console_sum *cell_of(const tide_console_sums *sums, uint32_t key)
{
    size_t at = ((uint64_t)key * 0x9e3779b97f4a7c15u >> 20) & (sums->capacity - 1);
    while (sums->cells[at].key != 0 && sums->cells[at].key != key)
        at = (at + 1) & (sums->capacity - 1);
    return &sums->cells[at];
}

static bool grow(tide_console_sums *sums)
{
    const size_t capacity = sums->capacity == 0 ? CAPACITY_START : sums->capacity * 2;
    struct tide_console_sum *cells = tide_mem_new(sums->mem, capacity * sizeof *cells);
    if (cells == NULL)
        return false;
    struct tide_console_sum *old = sums->cells;
    const size_t old_capacity = sums->capacity;
    sums->cells = cells;
    sums->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].key != 0)
            *cell_of(sums, old[i].key) = old[i];
    tide_mem_free(sums->mem, old, old_capacity * sizeof *old);
    return true;
}

tide_status tide_console_sums_add(tide_console_sums *sums, const struct tide_console_sum *sum)
{
    if (sum->key == 0)
        return TIDE_OK;
    if (sums->count * 4 >= sums->capacity * 3 &&
        (sums->capacity >= TIDE_CONSOLE_SUMS_MAX || !grow(sums)))
        return TIDE_NO_MEMORY;
    struct tide_console_sum *cell = cell_of(sums, sum->key);
    if (cell->key == 0) {
        *cell = *sum;
        sums->count++;
        return TIDE_OK;
    }
    cell->clicks += sum->clicks;
    cell->impressions += sum->impressions;
    cell->weight += sum->weight;
    return TIDE_OK;
}

static void put_u64(unsigned char *out, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        out[i] = (unsigned char)(number >> 8 * i);
}

static uint64_t get_u64(const unsigned char *in, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++)
        number |= (uint64_t)in[i] << 8 * i;
    return number;
}

static void put_double(unsigned char *out, double number)
{
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    put_u64(out, bits, sizeof bits);
}

static double get_double(const unsigned char *in)
{
    const uint64_t bits = get_u64(in, 8);
    double number = 0;
    memcpy(&number, &bits, sizeof number);
    return number;
}

tide_status tide_console_sums_pack(const tide_console_sums *sums, tide_buf *out)
{
    TIDE_TRY(tide_buf_room(out, sums->count * TIDE_CONSOLE_SUM_BYTES));
    for (size_t i = 0; i < sums->capacity; i++) {
        const struct tide_console_sum *sum = &sums->cells[i];
        unsigned char entry[TIDE_CONSOLE_SUM_BYTES];
        if (sum->key == 0)
            continue;
        put_u64(entry, sum->key, 4);
        put_double(entry + 4, sum->clicks);
        put_double(entry + 12, sum->impressions);
        put_double(entry + 20, sum->weight);
        TIDE_TRY(tide_buf_add(out, entry, sizeof entry));
    }
    return TIDE_OK;
}

tide_status tide_console_sums_unpack(tide_console_sums *sums, tide_text body)
{
    TIDE_TRY(body.bytes % TIDE_CONSOLE_SUM_BYTES == 0 ? TIDE_OK : TIDE_CORRUPT);
    for (size_t at = 0; at < body.bytes; at += TIDE_CONSOLE_SUM_BYTES) {
        const unsigned char *entry = (const unsigned char *)body.data + at;
        const struct tide_console_sum sum = {.key = (uint32_t)get_u64(entry, 4),
                                             .clicks = get_double(entry + 4),
                                             .impressions = get_double(entry + 12),
                                             .weight = get_double(entry + 20)};
        TIDE_TRY(tide_console_sums_add(sums, &sum));
    }
    return TIDE_OK;
}
