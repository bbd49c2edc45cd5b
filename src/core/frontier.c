#include "core/frontier.h"
#include "base/check.h"
#include "base/limits.h"

enum slot { SLOT_UNKNOWN, SLOT_OPEN, SLOT_FINISHED };

/* The cycles [reachable, end) live in a ring, each at its ordinal modulo the capacity.
 * Advancing the mark empties slots at the head, so a slot is zero whenever its ordinal is not in
 * that range. */
struct tide_frontier {
    tide_mem *mem;
    enum slot *slots;
    size_t capacity; /* a power of two */
    uint64_t committed;
    uint64_t reachable;
    uint64_t end; /* one past the last known cycle, or reachable */
    struct tide_frontier_totals totals;
};

enum { SLOTS_MIN = 8 };

static_assert((TIDE_CYCLES_OPEN_MAX & (TIDE_CYCLES_OPEN_MAX - 1)) == 0,
              "the ring doubles up to exactly this size");
static_assert((int)SLOTS_MIN <= (int)TIDE_CYCLES_OPEN_MAX, "the first ring is within the bound");

static enum slot *slot_of(const tide_frontier *frontier, uint64_t cycle)
{
    return &frontier->slots[cycle & (frontier->capacity - 1)];
}

/* Doubles the ring until `count` cycles fit.  A slot's place depends on the
 * capacity, so the known ones are moved one by one. */
static tide_status slots_grow(tide_frontier *frontier, uint64_t count)
{
    if (count <= frontier->capacity)
        return TIDE_OK;
    TIDE_ASSERT(count <= TIDE_CYCLES_OPEN_MAX);
    size_t capacity = frontier->capacity;
    while (capacity < count)
        capacity *= 2;
    enum slot *slots = tide_mem_array(frontier->mem, capacity, sizeof *slots);
    if (slots == NULL)
        return TIDE_NO_MEMORY;
    for (uint64_t cycle = frontier->reachable; cycle < frontier->end; cycle++)
        slots[cycle & (capacity - 1)] = *slot_of(frontier, cycle);
    tide_mem_free(frontier->mem, frontier->slots, frontier->capacity * sizeof *slots);
    frontier->slots = slots;
    frontier->capacity = capacity;
    return TIDE_OK;
}

tide_status tide_frontier_new(uint64_t committed, tide_mem *mem, tide_frontier **frontier_out)
{
    TIDE_ASSERT(mem != NULL);
    TIDE_ASSERT(frontier_out != NULL);
    tide_frontier *frontier = tide_mem_new(mem, sizeof *frontier);
    if (frontier == NULL)
        return TIDE_NO_MEMORY;
    frontier->slots = tide_mem_array(mem, SLOTS_MIN, sizeof *frontier->slots);
    if (frontier->slots == NULL) {
        tide_mem_free(mem, frontier, sizeof *frontier);
        return TIDE_NO_MEMORY;
    }
    frontier->mem = mem;
    frontier->capacity = SLOTS_MIN;
    frontier->committed = committed;
    frontier->reachable = committed;
    frontier->end = committed;
    *frontier_out = frontier;
    return TIDE_OK;
}

void tide_frontier_free(tide_frontier *frontier)
{
    if (frontier == NULL)
        return;
    tide_mem *mem = frontier->mem;
    tide_mem_free(mem, frontier->slots, frontier->capacity * sizeof *frontier->slots);
    tide_mem_free(mem, frontier, sizeof *frontier);
}

tide_status tide_frontier_open(tide_frontier *frontier, uint64_t cycle)
{
    if (cycle < frontier->reachable)
        return TIDE_EXISTS;
    if (cycle == UINT64_MAX) /* the mark must be able to move past it */
        return TIDE_INVALID;
    if (cycle - frontier->reachable >= TIDE_CYCLES_OPEN_MAX)
        return TIDE_FULL;
    if (cycle < frontier->end && *slot_of(frontier, cycle) != SLOT_UNKNOWN)
        return TIDE_EXISTS;
    tide_status rc = slots_grow(frontier, cycle - frontier->reachable + 1);
    if (rc != TIDE_OK)
        return rc;
    *slot_of(frontier, cycle) = SLOT_OPEN;
    if (cycle >= frontier->end)
        frontier->end = cycle + 1;
    frontier->totals.opened++;
    return TIDE_OK;
}

/* Passes each cycle once, so all moves together cost one step per cycle. */
static void mark_move(tide_frontier *frontier)
{
    uint64_t at = frontier->reachable;
    while (at < frontier->end && *slot_of(frontier, at) == SLOT_FINISHED) {
        *slot_of(frontier, at) = SLOT_UNKNOWN;
        at++;
    }
    frontier->totals.finished -= at - frontier->reachable;
    frontier->reachable = at;
}

void tide_frontier_finish(tide_frontier *frontier, uint64_t cycle)
{
    if (cycle < frontier->reachable)
        return;
    TIDE_ASSERT(cycle < frontier->end);
    enum slot *slot = slot_of(frontier, cycle);
    if (*slot == SLOT_FINISHED)
        return;
    TIDE_ASSERT(*slot == SLOT_OPEN);
    *slot = SLOT_FINISHED;
    frontier->totals.opened--;
    frontier->totals.finished++;
    if (cycle == frontier->reachable)
        mark_move(frontier);
    else
        TIDE_SEEN("frontier: out of order");
}

uint64_t tide_frontier_reachable(const tide_frontier *frontier)
{
    return frontier->reachable;
}

void tide_frontier_committed(tide_frontier *frontier, uint64_t cursor)
{
    TIDE_ASSERT(cursor >= frontier->committed); /* FRO1 */
    TIDE_ASSERT(cursor <= frontier->reachable);
    frontier->committed = cursor;
}

uint64_t tide_frontier_cursor(const tide_frontier *frontier)
{
    return frontier->committed;
}

size_t tide_frontier_gaps(const tide_frontier *frontier, uint64_t from,
                          struct tide_cycle_view *views_out, size_t views_max)
{
    size_t count = 0;
    uint64_t cycle = from > frontier->reachable ? from : frontier->reachable;
    for (; cycle < frontier->end && count < views_max; cycle++)
        if (*slot_of(frontier, cycle) != SLOT_FINISHED)
            views_out[count++] = (struct tide_cycle_view){
                .cycle = cycle, .opened = *slot_of(frontier, cycle) != SLOT_UNKNOWN};
    return count;
}

struct tide_frontier_totals tide_frontier_totals(const tide_frontier *frontier)
{
    return frontier->totals;
}

void tide_frontier_check(const tide_frontier *frontier)
{
    TIDE_ASSERT(frontier->committed <= frontier->reachable); /* FRO1 */
    TIDE_ASSERT(frontier->reachable <= frontier->end);
    TIDE_ASSERT(frontier->end - frontier->reachable <= frontier->capacity);
    TIDE_ASSERT(frontier->capacity <= TIDE_CYCLES_OPEN_MAX);               /* FRO3 */
    TIDE_ASSERT(*slot_of(frontier, frontier->reachable) != SLOT_FINISHED); /* FRO2 */

    struct tide_frontier_totals sums = {0};
    const uint64_t known = frontier->end - frontier->reachable;
    for (uint64_t at = 0; at < frontier->capacity; at++) {
        const enum slot slot = *slot_of(frontier, frontier->reachable + at);
        if (at >= known) /* FRO4 */
            TIDE_ASSERT(slot == SLOT_UNKNOWN);
        sums.opened += slot == SLOT_OPEN;
        sums.finished += slot == SLOT_FINISHED;
    }
    TIDE_ASSERT(sums.opened == frontier->totals.opened); /* FRO4 */
    TIDE_ASSERT(sums.finished == frontier->totals.finished);
}
