#include "console/names.h"

#include "base/check.h"

#include <string.h>

struct tide_name {
    const char *text;
    uint32_t bytes;
    uint32_t number; /* 0: free */
    uint64_t hash;
};

enum { CAPACITY_START = 1024 };

void tide_names_init(tide_names *names, uint64_t seed, tide_mem *mem)
{
    *names = (tide_names){.mem = mem, .seed = seed | 1u};
    tide_arena_init(&names->texts, mem, TIDE_NAMES_BYTES_MAX);
}

void tide_names_done(tide_names *names)
{
    tide_mem_free(names->mem, names->cells, names->capacity * sizeof *names->cells);
    tide_arena_done(&names->texts);
    names->cells = NULL;
    names->capacity = names->count = 0;
}

void tide_names_clear(tide_names *names)
{
    if (names->cells != NULL)
        memset(names->cells, 0, names->capacity * sizeof *names->cells);
    names->count = 0;
    tide_arena_reset(&names->texts);
}

/* Eight bytes at a time; the seed prevents chosen collisions. */
static uint64_t hash_of(const tide_names *names, tide_text text)
{
    uint64_t hash = names->seed ^ text.bytes * 0x9e3779b97f4a7c15u;
    const char *at = text.data;
    size_t left = text.bytes;
    while (left > 0) {
        uint64_t word = 0;
        const size_t some = left < sizeof word ? left : sizeof word;
        memcpy(&word, at, some);
        hash = (hash ^ word) * 0xbf58476d1ce4e5b9u;
        hash ^= hash >> 29;
        at += some;
        left -= some;
    }
    hash *= 0x94d049bb133111ebu;
    return hash ^ hash >> 32;
}

static struct tide_name *cell_of(const tide_names *names, tide_text text, uint64_t hash)
{
    size_t at = (size_t)hash & (names->capacity - 1);
    while (names->cells[at].number != 0) {
        const struct tide_name *cell = &names->cells[at];
        if (cell->hash == hash && cell->bytes == text.bytes &&
            memcmp(cell->text, text.data, text.bytes) == 0)
            break;
        at = (at + 1) & (names->capacity - 1);
    }
    return &names->cells[at];
}

uint32_t tide_names_get(const tide_names *names, tide_text text)
{
    if (names->count == 0)
        return 0;
    return cell_of(names, text, hash_of(names, text))->number;
}

static bool grow(tide_names *names)
{
    const size_t capacity = names->capacity == 0 ? CAPACITY_START : names->capacity * 2;
    struct tide_name *cells = tide_mem_new(names->mem, capacity * sizeof *cells);
    if (cells == NULL)
        return false;
    struct tide_name *old = names->cells;
    const size_t old_capacity = names->capacity;
    names->cells = cells;
    names->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].number != 0)
            *cell_of(names, (tide_text){old[i].text, old[i].bytes}, old[i].hash) = old[i];
    tide_mem_free(names->mem, old, old_capacity * sizeof *old);
    return true;
}

void tide_names_put(tide_names *names, tide_text text, uint32_t number)
{
    TIDE_ASSERT(number != 0);
    if (names->count >= TIDE_NAMES_COUNT_MAX)
        tide_names_clear(names);
    if (names->count * 4 >= names->capacity * 3 && !grow(names))
        return;
    const char *copy = tide_arena_copy(&names->texts, text.data, text.bytes);
    if (copy == NULL) {
        tide_names_clear(names);
        copy = tide_arena_copy(&names->texts, text.data, text.bytes);
    }
    if (copy == NULL)
        return;
    const uint64_t hash = hash_of(names, text);
    struct tide_name *cell = cell_of(names, text, hash);
    if (cell->number == 0)
        names->count++;
    *cell = (struct tide_name){
        .text = copy, .bytes = (uint32_t)text.bytes, .number = number, .hash = hash};
}
