#include "base/map.h"
#include "base/check.h"

#include <string.h>

struct tide_map_cell {
    uint64_t key; /* 0: empty */
    uint32_t value;
};

static size_t home_of(const tide_map *map, uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return (size_t)(key >> 20) & (map->capacity - 1);
}

void tide_map_init(tide_map *map, tide_mem *mem)
{
    memset(map, 0, sizeof *map);
    map->mem = mem;
}

void tide_map_done(tide_map *map)
{
    if (map->cells != NULL)
        tide_mem_free(map->mem, map->cells, map->capacity * sizeof *map->cells);
    map->cells = NULL;
    map->capacity = 0;
    map->count = 0;
}

void tide_map_clear(tide_map *map)
{
    if (map->cells != NULL)
        memset(map->cells, 0, map->capacity * sizeof *map->cells);
    map->count = 0;
}

/* The cell of `key`, or the empty cell where it belongs. */
static struct tide_map_cell *cell_for(const tide_map *map, uint64_t key)
{
    size_t at = home_of(map, key);
    while (map->cells[at].key != 0 && map->cells[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->cells[at];
}

bool tide_map_reserve(tide_map *map, size_t count)
{
    size_t wanted = map->capacity < 16 ? 16 : map->capacity;
    while (wanted / 4 * 3 < count)
        wanted *= 2;
    if (wanted == map->capacity)
        return true;

    tide_map grown = {map->mem, NULL, wanted, map->count};
    grown.cells = tide_mem_array(map->mem, wanted, sizeof *grown.cells);
    if (grown.cells == NULL)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->cells[i].key != 0)
            *cell_for(&grown, map->cells[i].key) = map->cells[i];
    tide_map_done(map);
    *map = grown;
    return true;
}

bool tide_map_get(const tide_map *map, uint64_t key, uint32_t *value_out)
{
    TIDE_ASSERT(key != 0);
    if (map->count == 0)
        return false;
    const struct tide_map_cell *cell = cell_for(map, key);
    if (cell->key == 0)
        return false;
    *value_out = cell->value;
    return true;
}

bool tide_map_put(tide_map *map, uint64_t key, uint32_t value)
{
    TIDE_ASSERT(key != 0);
    struct tide_map_cell *cell = map->capacity == 0 ? NULL : cell_for(map, key);
    if (cell != NULL && cell->key == key) {
        cell->value = value; /* replacing needs no room, so it cannot fail */
        return true;
    }
    if (!tide_map_reserve(map, map->count + 1))
        return false;
    cell = cell_for(map, key);
    map->count++;
    cell->key = key;
    cell->value = value;
    return true;
}

bool tide_map_remove(tide_map *map, uint64_t key)
{
    TIDE_ASSERT(key != 0);
    if (map->count == 0)
        return false;
    struct tide_map_cell *cell = cell_for(map, key);
    if (cell->key == 0)
        return false;
    /* Close the hole: move back every later cell of the run that the hole
     * would cut off from its home. */
    size_t mask = map->capacity - 1;
    size_t hole = (size_t)(cell - map->cells);
    for (size_t at = (hole + 1) & mask; map->cells[at].key != 0; at = (at + 1) & mask) {
        size_t home = home_of(map, map->cells[at].key);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            map->cells[hole] = map->cells[at];
            hole = at;
        }
    }
    map->cells[hole].key = 0;
    map->count--;
    return true;
}
