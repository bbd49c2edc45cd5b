/* mem.h - allocators: heap, fault injection, wiping, arena.
 *
 * An allocator is a value that is passed in at `_new` and kept.  Nothing is global.
 * Tests use a faulty one that fails the n-th allocation, then the n+1-th, so that
 * every failure path runs.
 */
#ifndef TIDE_BASE_MEM_H
#define TIDE_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tide_mem tide_mem;
struct tide_mem {
    /* realloc() in one function: old == NULL allocates, new_bytes == 0 frees and returns NULL.
     * `old_bytes` is the size requested before. */
    void *(*resize)(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes);
};

/* The process heap.  Borrowed; never freed. */
tide_mem *tide_mem_heap(void);

/* Zeroed memory, or NULL. */
void *tide_mem_new(tide_mem *mem, size_t bytes);
/* `count` zeroed elements, or NULL; the product is checked. */
void *tide_mem_array(tide_mem *mem, size_t count, size_t element_bytes);
void tide_mem_free(tide_mem *mem, void *pointer, size_t bytes); /* NULL is fine */

/* Grows `*array` to hold at least `count` elements, doubling, up to `count_max`.
 * New room is zeroed.  false: no memory or past the ceiling; nothing changed. */
bool tide_mem_grow(tide_mem *mem, void **array, size_t *capacity, size_t count, size_t count_max,
                   size_t element_bytes);

/* The same for an array of any type and the variable that has its capacity. */
#define TIDE_GROW_IN(mem, array, capacity, count, count_max)                                       \
    tide_mem_grow(mem, (void **)&(array), &(capacity), count, count_max, sizeof *(array))
#define TIDE_GROW(array, capacity, count, count_max)                                               \
    TIDE_GROW_IN(tide_mem_heap(), array, capacity, count, count_max)

/* Fails one allocation, counted from 0, or none (UINT64_MAX); counts live allocations. */
struct tide_mem_faulty {
    tide_mem base;
    uint64_t fail_at;
    uint64_t allocations;
    size_t bytes_live;
    size_t bytes_peak;
    bool fired;
};
void tide_mem_faulty_once(struct tide_mem_faulty *mem, uint64_t fail_at);

/* An allocator for secrets: overwrites memory before freeing it, also when a growing buffer moves.
 * Embedded value; `under` is borrowed. */
struct tide_mem_wiping {
    tide_mem base;
    tide_mem *under;
};
void tide_mem_wiping_init(struct tide_mem_wiping *mem, tide_mem *under);

/* An arena: many small allocations, freed together.  Embedded value. */
typedef struct tide_arena {
    tide_mem *mem;
    struct tide_arena_block *block;
    size_t bytes_used; /* of the current block */
    size_t bytes_total;
    size_t bytes_max; /* larger requests fail */
} tide_arena;
void tide_arena_init(tide_arena *arena, tide_mem *mem, size_t bytes_max);
void tide_arena_done(tide_arena *arena);
void tide_arena_reset(tide_arena *arena);
void *tide_arena_take(tide_arena *arena, size_t bytes);                   /* zeroed, or NULL */
char *tide_arena_copy(tide_arena *arena, const char *text, size_t bytes); /* terminated, or NULL */

/* An empty arena; with tide_auto_arena it is freed at the end of its block. */
#define tide_auto_arena __attribute__((cleanup(tide_arena_done))) tide_arena
static inline tide_arena tide_arena_in(tide_mem *mem, size_t bytes_max)
{
    tide_arena arena;
    tide_arena_init(&arena, mem, bytes_max);
    return arena;
}
static inline tide_arena tide_arena_heap(size_t bytes_max)
{
    return tide_arena_in(tide_mem_heap(), bytes_max);
}

#endif
