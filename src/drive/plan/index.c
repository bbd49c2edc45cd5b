#include "drive/plan/index.h"

void tide_index_init(tide_index *index, tide_mem *mem)
{
    *index = (tide_index){.mem = mem};
    tide_map_init(&index->heads, mem);
}

void tide_index_done(tide_index *index)
{
    if (index->mem == NULL)
        return;
    tide_map_done(&index->heads);
    tide_mem_free(index->mem, index->next, index->capacity * sizeof *index->next);
    *index = (tide_index){.mem = NULL};
}

bool tide_index_add(tide_index *index, uint64_t hash, uint32_t at)
{
    uint32_t head = TIDE_INDEX_END;
    if (!TIDE_GROW_IN(index->mem, index->next, index->capacity, (size_t)at + 1, TIDE_INDEX_END))
        return false;
    (void)tide_map_get(&index->heads, hash, &head);
    if (!tide_map_put(&index->heads, hash, at))
        return false;
    index->next[at] = head;
    return true;
}

uint32_t tide_index_first(const tide_index *index, uint64_t hash)
{
    uint32_t at = TIDE_INDEX_END;
    (void)tide_map_get(&index->heads, hash, &at);
    return at;
}

uint32_t tide_index_next(const tide_index *index, uint32_t at)
{
    return index->next[at];
}
