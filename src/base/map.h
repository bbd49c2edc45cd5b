/* map.h - a hash map from a non-zero 64-bit key to a 32-bit value (usually a slot index).
 *
 * Open addressing with linear probing; deletion shifts back, so there are no
 * tombstones and a map that shrinks stays fast.  Keys are internal ids, mixed before
 * use, so that consecutive ids do not cluster.
 *
 * Invariants: at most three quarters of the table are used; every key is
 * reachable from its home by a run without holes. */
#ifndef TIDE_BASE_MAP_H
#define TIDE_BASE_MAP_H

#include "base/mem.h"

typedef struct tide_map {
    tide_mem *mem;
    struct tide_map_cell *cells;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
} tide_map;

void tide_map_init(tide_map *map, tide_mem *mem);
void tide_map_done(tide_map *map);
/* Freed at the end of its block. */
#define tide_auto_map __attribute__((cleanup(tide_map_done))) tide_map
void tide_map_clear(tide_map *map);
/* Reserves room so that puts up to `count` keys in all cannot fail. */
bool tide_map_reserve(tide_map *map, size_t count);
bool tide_map_get(const tide_map *map, uint64_t key, uint32_t *value_out);
/* Adds or replaces.  false: no memory, nothing changed. */
bool tide_map_put(tide_map *map, uint64_t key, uint32_t value);
bool tide_map_remove(tide_map *map, uint64_t key); /* false: was not there */

#endif
