#include "base/mem.h"
#include "base/check.h"

#include <stdlib.h>
#include <string.h>

static void *heap_resize(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes)
{
    (void)mem;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, new_bytes);
}

static tide_mem heap = {heap_resize};

tide_mem *tide_mem_heap(void)
{
    return &heap;
}

void *tide_mem_new(tide_mem *mem, size_t bytes)
{
    TIDE_ASSERT(bytes > 0);
    void *pointer = mem->resize(mem, NULL, 0, bytes);
    if (pointer != NULL)
        memset(pointer, 0, bytes);
    return pointer;
}

void *tide_mem_array(tide_mem *mem, size_t count, size_t element_bytes)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes == 0)
        return NULL;
    return tide_mem_new(mem, bytes);
}

void tide_mem_free(tide_mem *mem, void *pointer, size_t bytes)
{
    if (pointer != NULL)
        (void)mem->resize(mem, pointer, bytes, 0);
}

bool tide_mem_grow(tide_mem *mem, void **array, size_t *capacity, size_t count, size_t count_max,
                   size_t element_bytes)
{
    if (count <= *capacity)
        return true;
    if (count > count_max)
        return false;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < count)
        wanted = wanted > count_max / 2 ? count_max : wanted * 2;
    if (wanted > count_max)
        wanted = count_max;
    size_t bytes = 0;
    if (__builtin_mul_overflow(wanted, element_bytes, &bytes))
        return false;
    size_t old_bytes = *capacity * element_bytes;
    char *grown = mem->resize(mem, *array, old_bytes, bytes);
    if (grown == NULL)
        return false;
    memset(grown + old_bytes, 0, bytes - old_bytes);
    *array = grown;
    *capacity = wanted;
    return true;
}

static void *faulty_resize(tide_mem *base, void *old, size_t old_bytes, size_t new_bytes)
{
    struct tide_mem_faulty *mem = (struct tide_mem_faulty *)base;
    if (new_bytes > 0 && mem->allocations++ == mem->fail_at) {
        mem->fired = true;
        return NULL;
    }
    if (old != NULL) {
        TIDE_ASSERT(mem->bytes_live >= old_bytes);
        mem->bytes_live -= old_bytes;
    }
    mem->bytes_live += new_bytes;
    if (mem->bytes_live > mem->bytes_peak)
        mem->bytes_peak = mem->bytes_live;
    return heap_resize(base, old, old_bytes, new_bytes);
}

void tide_mem_faulty_once(struct tide_mem_faulty *mem, uint64_t fail_at)
{
    memset(mem, 0, sizeof *mem);
    mem->base.resize = faulty_resize;
    mem->fail_at = fail_at;
}

/* Never in place: the old bytes could not be wiped after they moved. */
static void *wiping_resize(tide_mem *base, void *old, size_t old_bytes, size_t new_bytes)
{
    tide_mem *under = ((struct tide_mem_wiping *)base)->under;
    void *moved = NULL;
    if (new_bytes > 0) {
        moved = under->resize(under, NULL, 0, new_bytes);
        if (moved == NULL)
            return NULL; /* as with realloc, the old block stays valid */
        if (old != NULL)
            memcpy(moved, old, old_bytes < new_bytes ? old_bytes : new_bytes);
    }
    if (old != NULL) {
        explicit_bzero(old, old_bytes);
        (void)under->resize(under, old, old_bytes, 0);
    }
    return moved;
}

void tide_mem_wiping_init(struct tide_mem_wiping *mem, tide_mem *under)
{
    mem->base.resize = wiping_resize;
    mem->under = under;
}

struct tide_arena_block {
    struct tide_arena_block *next;
    size_t bytes;
    /* the room follows, aligned for anything */
    _Alignas(16) char room[];
};

enum { ARENA_BLOCK_BYTES = 16 * 1024 };

void tide_arena_init(tide_arena *arena, tide_mem *mem, size_t bytes_max)
{
    memset(arena, 0, sizeof *arena);
    arena->mem = mem;
    arena->bytes_max = bytes_max;
}

void tide_arena_done(tide_arena *arena)
{
    while (arena->block != NULL) {
        struct tide_arena_block *next = arena->block->next;
        tide_mem_free(arena->mem, arena->block, sizeof *arena->block + arena->block->bytes);
        arena->block = next;
    }
    arena->bytes_used = 0;
    arena->bytes_total = 0;
}

void tide_arena_reset(tide_arena *arena)
{
    /* One block of the usual size is kept, so that a step after the first
     * one does not allocate. */
    struct tide_arena_block *keep = NULL;
    while (arena->block != NULL) {
        struct tide_arena_block *next = arena->block->next;
        if (keep == NULL && arena->block->bytes == ARENA_BLOCK_BYTES)
            keep = arena->block;
        else
            tide_mem_free(arena->mem, arena->block, sizeof *arena->block + arena->block->bytes);
        arena->block = next;
    }
    if (keep != NULL)
        keep->next = NULL;
    arena->block = keep;
    arena->bytes_used = 0;
    arena->bytes_total = keep != NULL ? keep->bytes : 0;
}

void *tide_arena_take(tide_arena *arena, size_t bytes)
{
    if (bytes == 0)
        bytes = 1;
    if (bytes > arena->bytes_max)
        return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (arena->block == NULL || arena->block->bytes - arena->bytes_used < bytes) {
        size_t block_bytes = bytes > ARENA_BLOCK_BYTES ? bytes : ARENA_BLOCK_BYTES;
        if (arena->bytes_total + block_bytes > arena->bytes_max + ARENA_BLOCK_BYTES)
            return NULL;
        struct tide_arena_block *block =
            arena->mem->resize(arena->mem, NULL, 0, sizeof *block + block_bytes);
        if (block == NULL)
            return NULL;
        block->next = arena->block;
        block->bytes = block_bytes;
        arena->block = block;
        arena->bytes_used = 0;
        arena->bytes_total += block_bytes;
    }
    void *taken = arena->block->room + arena->bytes_used;
    arena->bytes_used += bytes;
    memset(taken, 0, bytes);
    return taken;
}

char *tide_arena_copy(tide_arena *arena, const char *text, size_t bytes)
{
    if (bytes == SIZE_MAX)
        return NULL;
    char *copy = tide_arena_take(arena, bytes + 1);
    if (copy != NULL && bytes > 0)
        memcpy(copy, text, bytes);
    return copy;
}
