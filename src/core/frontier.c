#include "core/frontier.h"
#include "base/check.h"
#include "base/limits.h"

enum slot_state { SLOT_UNKNOWN, SLOT_OPEN, SLOT_FINISHED };

struct slot {
    uint32_t outstanding;
    uint32_t failed;
    enum slot_state state;
};

/* The cycles [reachable, end) live in a ring, each at its ordinal modulo the capacity.
 * Advancing the mark empties slots at the head, so a slot is zero whenever its ordinal is not in
 * that range. */
struct tide_frontier {
    tide_mem *mem;
    struct slot *slots;
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

static struct slot *slot_of(const tide_frontier *frontier, uint64_t cycle)
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
    struct slot *slots = tide_mem_array(frontier->mem, capacity, sizeof *slots);
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
    if (cycle < frontier->end && slot_of(frontier, cycle)->state != SLOT_UNKNOWN)
        return TIDE_EXISTS;
    tide_status rc = slots_grow(frontier, cycle - frontier->reachable + 1);
    if (rc != TIDE_OK)
        return rc;
    slot_of(frontier, cycle)->state = SLOT_OPEN;
    if (cycle >= frontier->end)
        frontier->end = cycle + 1;
    frontier->totals.opened++;
    return TIDE_OK;
}

/* The known, unfinished slot of `cycle`.  Any other is a bug of the caller: an event for a cycle
 * that was never opened, or that the cursor may have passed, would mean that progress was
 * claimed too early. */
static struct slot *slot_open(tide_frontier *frontier, uint64_t cycle)
{
    TIDE_ASSERT(cycle >= frontier->reachable);
    TIDE_ASSERT(cycle < frontier->end);
    struct slot *slot = slot_of(frontier, cycle);
    TIDE_ASSERT(slot->state == SLOT_OPEN);
    return slot;
}

/* Passes each cycle once, so all moves together cost one step per cycle. */
static void mark_move(tide_frontier *frontier)
{
    uint64_t at = frontier->reachable;
    while (at < frontier->end && slot_of(frontier, at)->state == SLOT_FINISHED) {
        slot_of(frontier, at)->state = SLOT_UNKNOWN;
        at++;
    }
    frontier->totals.finished -= at - frontier->reachable;
    frontier->reachable = at;
}

static void slot_finish(tide_frontier *frontier, struct slot *slot, uint64_t cycle)
{
    TIDE_ASSERT(slot->outstanding == 0); /* F4 */
    TIDE_ASSERT(slot->failed == 0);
    slot->state = SLOT_FINISHED;
    frontier->totals.opened--;
    frontier->totals.finished++;
    if (cycle == frontier->reachable)
        mark_move(frontier);
    else
        TIDE_SEEN("frontier: out of order");
}

void tide_frontier_finish(tide_frontier *frontier, uint64_t cycle)
{
    if (cycle < frontier->reachable)
        return;
    TIDE_ASSERT(cycle < frontier->end);
    struct slot *slot = slot_of(frontier, cycle);
    if (slot->state == SLOT_FINISHED)
        return;
    TIDE_ASSERT(slot->state == SLOT_OPEN);
    slot_finish(frontier, slot, cycle);
}

tide_status tide_frontier_jobs_added(tide_frontier *frontier, uint64_t cycle, uint32_t count)
{
    if (cycle < frontier->reachable)
        return TIDE_STALE;
    if (cycle >= frontier->end)
        return TIDE_NOT_FOUND;
    struct slot *slot = slot_of(frontier, cycle);
    if (slot->state == SLOT_UNKNOWN)
        return TIDE_NOT_FOUND;
    if (slot->state == SLOT_FINISHED)
        return TIDE_STALE;
    /* Failed jobs may be retried, so they count against the limit too. */
    if ((uint64_t)slot->outstanding + slot->failed + count > TIDE_CYCLE_JOBS_MAX)
        return TIDE_FULL;
    slot->outstanding += count;
    frontier->totals.outstanding += count;
    return TIDE_OK;
}

static bool slot_finish_if_done(tide_frontier *frontier, struct slot *slot, uint64_t cycle)
{
    if (slot->outstanding > 0 || slot->failed > 0)
        return false;
    slot_finish(frontier, slot, cycle);
    return true;
}

bool tide_frontier_job_done(tide_frontier *frontier, uint64_t cycle)
{
    struct slot *slot = slot_open(frontier, cycle);
    TIDE_ASSERT(slot->outstanding > 0);
    slot->outstanding--;
    frontier->totals.outstanding--;
    return slot_finish_if_done(frontier, slot, cycle);
}

void tide_frontier_job_failed(tide_frontier *frontier, uint64_t cycle)
{
    struct slot *slot = slot_open(frontier, cycle);
    TIDE_ASSERT(slot->outstanding > 0);
    slot->outstanding--;
    frontier->totals.outstanding--;
    frontier->totals.with_failed += slot->failed == 0;
    slot->failed++;
    frontier->totals.failed++;
}

static struct slot *failed_take(tide_frontier *frontier, uint64_t cycle)
{
    struct slot *slot = slot_open(frontier, cycle);
    TIDE_ASSERT(slot->failed > 0);
    slot->failed--;
    frontier->totals.failed--;
    frontier->totals.with_failed -= slot->failed == 0;
    return slot;
}

void tide_frontier_job_revived(tide_frontier *frontier, uint64_t cycle)
{
    struct slot *slot = failed_take(frontier, cycle);
    slot->outstanding++;
    frontier->totals.outstanding++;
}

bool tide_frontier_job_accepted(tide_frontier *frontier, uint64_t cycle)
{
    return slot_finish_if_done(frontier, failed_take(frontier, cycle), cycle);
}

uint64_t tide_frontier_reachable(const tide_frontier *frontier)
{
    return frontier->reachable;
}

void tide_frontier_committed(tide_frontier *frontier, uint64_t cursor)
{
    TIDE_ASSERT(cursor >= frontier->committed); /* F1 */
    TIDE_ASSERT(cursor <= frontier->reachable);
    frontier->committed = cursor;
}

uint64_t tide_frontier_cursor(const tide_frontier *frontier)
{
    return frontier->committed;
}

static struct tide_cycle_view view_of(const tide_frontier *frontier, uint64_t cycle)
{
    const struct slot *slot = slot_of(frontier, cycle);
    return (struct tide_cycle_view){
        .cycle = cycle,
        .outstanding = slot->outstanding,
        .failed = slot->failed,
        .opened = slot->state != SLOT_UNKNOWN,
        .finished = slot->state == SLOT_FINISHED,
    };
}

size_t tide_frontier_gaps(const tide_frontier *frontier, uint64_t from,
                          struct tide_cycle_view *views_out, size_t views_max)
{
    size_t count = 0;
    uint64_t cycle = from > frontier->reachable ? from : frontier->reachable;
    for (; cycle < frontier->end && count < views_max; cycle++)
        if (slot_of(frontier, cycle)->state != SLOT_FINISHED)
            views_out[count++] = view_of(frontier, cycle);
    return count;
}

bool tide_frontier_look(const tide_frontier *frontier, uint64_t cycle,
                        struct tide_cycle_view *view_out)
{
    if (cycle < frontier->reachable || cycle >= frontier->end)
        return false;
    *view_out = view_of(frontier, cycle);
    return true;
}

struct tide_frontier_totals tide_frontier_totals(const tide_frontier *frontier)
{
    return frontier->totals;
}

void tide_frontier_check(const tide_frontier *frontier)
{
    TIDE_ASSERT(frontier->committed <= frontier->reachable); /* F1 */
    TIDE_ASSERT(frontier->reachable <= frontier->end);
    TIDE_ASSERT(frontier->end - frontier->reachable <= frontier->capacity);
    TIDE_ASSERT(frontier->capacity <= TIDE_CYCLES_OPEN_MAX);                     /* F3 */
    TIDE_ASSERT(slot_of(frontier, frontier->reachable)->state != SLOT_FINISHED); /* F2 */

    struct tide_frontier_totals sums = {0};
    const uint64_t known = frontier->end - frontier->reachable;
    for (uint64_t at = 0; at < frontier->capacity; at++) {
        const struct slot *slot = slot_of(frontier, frontier->reachable + at);
        if (slot->state != SLOT_OPEN) { /* F4, F5 */
            TIDE_ASSERT(slot->outstanding == 0);
            TIDE_ASSERT(slot->failed == 0);
        }
        if (at >= known) /* F5 */
            TIDE_ASSERT(slot->state == SLOT_UNKNOWN);
        sums.opened += slot->state == SLOT_OPEN;
        sums.finished += slot->state == SLOT_FINISHED;
        sums.with_failed += slot->failed > 0;
        sums.outstanding += slot->outstanding;
        sums.failed += slot->failed;
    }
    TIDE_ASSERT(sums.opened == frontier->totals.opened); /* F5 */
    TIDE_ASSERT(sums.finished == frontier->totals.finished);
    TIDE_ASSERT(sums.with_failed == frontier->totals.with_failed);
    TIDE_ASSERT(sums.outstanding == frontier->totals.outstanding);
    TIDE_ASSERT(sums.failed == frontier->totals.failed);
}
