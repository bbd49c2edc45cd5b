#include "core/schedule.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"

/* A binary heap by due time; the map finds an entry's place in it. */
struct node {
    struct tide_schedule_entry entry;
    uint64_t due_unix_ms;
};

struct tide_schedules {
    tide_mem *mem;
    struct node *nodes;
    size_t capacity;
    size_t count;
    tide_map places;                /* id to index in nodes */
    uint64_t anchor_latest_unix_ms; /* no entry has a later one */
};

/* The lowest slot number that has not fired.  A last slot that is off the grid is from before
 * the period was changed; the next grid slot after it counts. */
static uint64_t slot_next(const struct tide_schedule_entry *entry)
{
    uint64_t first = entry->at_start ? 0 : 1;
    if (!entry->fired || entry->last_unix_ms < entry->anchor_unix_ms)
        return first;
    uint64_t next = (entry->last_unix_ms - entry->anchor_unix_ms) / entry->period_ms;
    if (next == UINT64_MAX) /* only with a period of 1 ms, at the largest time */
        return next;
    next++;
    return next > first ? next : first;
}

uint64_t tide_schedule_due_at_unix_ms(const struct tide_schedule_entry *entry)
{
    TIDE_ASSERT(entry->period_ms > 0);
    uint64_t due_unix_ms = 0;
    if (__builtin_mul_overflow(slot_next(entry), entry->period_ms, &due_unix_ms) ||
        __builtin_add_overflow(due_unix_ms, entry->anchor_unix_ms, &due_unix_ms))
        return UINT64_MAX;
    return due_unix_ms;
}

bool tide_schedule_due(const struct tide_schedule_entry *entry, uint64_t now_unix_ms,
                       struct tide_firing *firing_out)
{
    uint64_t due_unix_ms = tide_schedule_due_at_unix_ms(entry);
    if (due_unix_ms == UINT64_MAX || now_unix_ms < due_unix_ms)
        return false;
    uint64_t slot = (now_unix_ms - entry->anchor_unix_ms) / entry->period_ms; /* SCH1 */
    if (slot > slot_next(entry))
        TIDE_SEEN("schedule: missed slots collapse");
    *firing_out = (struct tide_firing){
        .id = entry->id,
        .slot = slot,
        .slot_unix_ms = entry->anchor_unix_ms + slot * entry->period_ms,
        .missed = slot - slot_next(entry),
    };
    return true;
}

uint64_t tide_schedule_lag_ms(const struct tide_schedule_entry *entry, uint64_t now_unix_ms)
{
    if (!entry->fired || entry->last_unix_ms <= now_unix_ms)
        return 0;
    /* The last slot lies in the future: it fired while the clock was ahead. */
    return entry->last_unix_ms - now_unix_ms;
}

tide_status tide_schedules_new(tide_mem *mem, tide_schedules **schedules_out)
{
    TIDE_ASSERT(mem != NULL);
    tide_schedules *schedules = tide_mem_new(mem, sizeof *schedules);
    if (schedules == NULL)
        return TIDE_NO_MEMORY;
    schedules->mem = mem;
    tide_map_init(&schedules->places, mem);
    *schedules_out = schedules;
    return TIDE_OK;
}

void tide_schedules_free(tide_schedules *schedules)
{
    if (schedules == NULL)
        return;
    tide_map_done(&schedules->places);
    tide_mem_free(schedules->mem, schedules->nodes, schedules->capacity * sizeof *schedules->nodes);
    tide_mem_free(schedules->mem, schedules, sizeof *schedules);
}

static bool node_before(const struct node *a, const struct node *b)
{
    if (a->due_unix_ms != b->due_unix_ms)
        return a->due_unix_ms < b->due_unix_ms;
    return a->entry.id < b->entry.id; /* SCH4: the order is the same everywhere */
}

static void node_place(tide_schedules *schedules, size_t at, struct node node)
{
    schedules->nodes[at] = node;
    bool put = tide_map_put(&schedules->places, node.entry.id, (uint32_t)at);
    TIDE_ASSERT(put); /* the key is there, or room was reserved */
}

/* Restores the heap order of the node at `at`, up or down. */
static void heap_settle(tide_schedules *schedules, size_t at)
{
    struct node node = schedules->nodes[at];
    while (at > 0 && node_before(&node, &schedules->nodes[(at - 1) / 2])) {
        node_place(schedules, at, schedules->nodes[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) { /* ends: `at` at least doubles */
        size_t child = 2 * at + 1;
        if (child >= schedules->count)
            break;
        if (child + 1 < schedules->count &&
            node_before(&schedules->nodes[child + 1], &schedules->nodes[child]))
            child++;
        if (!node_before(&schedules->nodes[child], &node))
            break;
        node_place(schedules, at, schedules->nodes[child]);
        at = child;
    }
    node_place(schedules, at, node);
}

static struct node *node_find(const tide_schedules *schedules, uint64_t id)
{
    uint32_t at = 0;
    if (id == 0 || !tide_map_get(&schedules->places, id, &at))
        return NULL;
    return &schedules->nodes[at];
}

static void entry_mark_fired(struct tide_schedule_entry *entry, uint64_t slot_unix_ms)
{
    if (!entry->fired || entry->last_unix_ms < slot_unix_ms) /* SCH2 */
        entry->last_unix_ms = slot_unix_ms;
    entry->fired = true;
}

tide_status tide_schedules_put(tide_schedules *schedules, const struct tide_schedule_entry *entry)
{
    if (entry->id == 0 || entry->period_ms == 0)
        return TIDE_INVALID;
    struct node node = {.entry = *entry};
    struct node *old = node_find(schedules, entry->id);
    size_t at = schedules->count;
    if (old != NULL) {
        at = (size_t)(old - schedules->nodes);
        if (old->entry.fired)
            entry_mark_fired(&node.entry, old->entry.last_unix_ms);
    } else {
        if (schedules->count >= TIDE_SCHEDULES_MAX)
            return TIDE_FULL;
        /* One more than needed: putting an existing key reserves room for another one, and
         * moving entries later must not allocate. */
        if (!tide_map_reserve(&schedules->places, schedules->count + 2) ||
            !TIDE_GROW_IN(schedules->mem, schedules->nodes, schedules->capacity,
                          schedules->count + 1, TIDE_SCHEDULES_MAX))
            return TIDE_NO_MEMORY;
        schedules->count++;
    }
    node.due_unix_ms = tide_schedule_due_at_unix_ms(&node.entry);
    schedules->nodes[at] = node;
    heap_settle(schedules, at);
    if (schedules->anchor_latest_unix_ms < entry->anchor_unix_ms)
        schedules->anchor_latest_unix_ms = entry->anchor_unix_ms;
    return TIDE_OK;
}

void tide_schedules_fired(tide_schedules *schedules, uint64_t id, uint64_t slot_unix_ms)
{
    struct node *node = node_find(schedules, id);
    if (node == NULL)
        return; /* removed meanwhile */
    entry_mark_fired(&node->entry, slot_unix_ms);
    node->due_unix_ms = tide_schedule_due_at_unix_ms(&node->entry);
    heap_settle(schedules, (size_t)(node - schedules->nodes));
}

/* Moves an anchor that lies in the future back by whole periods, so that the grid stays the same
 * for every process. false: nothing to move, or no earlier slot fits. */
static bool anchor_move_back(struct tide_schedule_entry *entry, uint64_t now_unix_ms)
{
    if (entry->anchor_unix_ms <= now_unix_ms)
        return false;
    const uint64_t ahead_ms = entry->anchor_unix_ms - now_unix_ms;
    const uint64_t periods = (ahead_ms - 1) / entry->period_ms + 1;
    uint64_t back_ms = 0;
    if (__builtin_mul_overflow(periods, entry->period_ms, &back_ms) ||
        back_ms > entry->anchor_unix_ms)
        return false;
    entry->anchor_unix_ms -= back_ms;
    return true;
}

static void anchors_move_back(tide_schedules *schedules, uint64_t now_unix_ms)
{
    if (schedules->anchor_latest_unix_ms <= now_unix_ms)
        return;
    /* All due times change, and with them the order: rebuild the heap. */
    schedules->anchor_latest_unix_ms = 0;
    for (size_t at = 0; at < schedules->count; at++) {
        struct node *node = &schedules->nodes[at];
        if (anchor_move_back(&node->entry, now_unix_ms))
            node->due_unix_ms = tide_schedule_due_at_unix_ms(&node->entry);
        if (schedules->anchor_latest_unix_ms < node->entry.anchor_unix_ms)
            schedules->anchor_latest_unix_ms = node->entry.anchor_unix_ms;
    }
    const size_t count = schedules->count;
    for (size_t at = 0; at < count; at++) {
        schedules->count = at + 1;
        heap_settle(schedules, at);
    }
}

bool tide_schedules_next(tide_schedules *schedules, uint64_t now_unix_ms,
                         struct tide_firing *firing_out)
{
    struct tide_firing firing;
    anchors_move_back(schedules, now_unix_ms);
    if (schedules->count == 0 ||
        !tide_schedule_due(&schedules->nodes[0].entry, now_unix_ms, &firing))
        return false;
    tide_schedules_fired(schedules, firing.id, firing.slot_unix_ms);
    *firing_out = firing;
    return true;
}

uint64_t tide_schedules_wake_at_unix_ms(const tide_schedules *schedules)
{
    return schedules->count > 0 ? schedules->nodes[0].due_unix_ms : UINT64_MAX;
}

const struct tide_schedule_entry *tide_schedules_find(const tide_schedules *schedules, uint64_t id)
{
    const struct node *node = node_find(schedules, id);
    return node != NULL ? &node->entry : NULL;
}

size_t tide_schedules_count(const tide_schedules *schedules)
{
    return schedules->count;
}

void tide_schedules_check(const tide_schedules *schedules)
{
    TIDE_ASSERT(schedules->count <= TIDE_SCHEDULES_MAX); /* SCH3 */
    TIDE_ASSERT(schedules->places.count == schedules->count);
    for (size_t at = 0; at < schedules->count; at++) {
        const struct node *node = &schedules->nodes[at];
        TIDE_ASSERT(node->entry.period_ms > 0);
        TIDE_ASSERT(node_find(schedules, node->entry.id) == node);
        TIDE_ASSERT(node->due_unix_ms == tide_schedule_due_at_unix_ms(&node->entry));
        if (at > 0) /* SCH4 */
            TIDE_ASSERT(node_before(&schedules->nodes[(at - 1) / 2], node));
    }
}
