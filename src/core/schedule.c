#include "core/schedule.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/map.h"

/* A binary heap by due time; the map finds an entry's place in it. */
struct node {
    struct tide_schedule_entry entry;
    uint64_t due_unix_ms;
};

struct tide_schedule {
    tide_mem *mem;
    struct node *nodes;
    size_t capacity;
    size_t count;
    tide_map places; /* id to index in nodes */
};

/* The lowest slot number that has not fired.  A last slot that is not on the
 * grid comes from before a change of the period; the next one after it counts. */
static uint64_t slot_next(const struct tide_schedule_entry *entry)
{
    uint64_t first = entry->at_start ? 0 : 1;
    if (!entry->fired || entry->last_unix_ms < entry->anchor_unix_ms)
        return first;
    uint64_t next = (entry->last_unix_ms - entry->anchor_unix_ms) / entry->period_ms;
    if (next == UINT64_MAX) /* only with a period of 1 ms, at the end of time */
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
    uint64_t slot = (now_unix_ms - entry->anchor_unix_ms) / entry->period_ms; /* H1 */
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
    /* The last slot lies in the future: it fired on a clock that ran ahead. */
    return entry->last_unix_ms - now_unix_ms;
}

tide_status tide_schedule_new(tide_mem *mem, tide_schedule **schedule_out)
{
    TIDE_ASSERT(mem != NULL);
    tide_schedule *schedule = tide_mem_new(mem, sizeof *schedule);
    if (schedule == NULL)
        return TIDE_NO_MEMORY;
    schedule->mem = mem;
    tide_map_init(&schedule->places, mem);
    *schedule_out = schedule;
    return TIDE_OK;
}

void tide_schedule_free(tide_schedule *schedule)
{
    if (schedule == NULL)
        return;
    tide_map_done(&schedule->places);
    tide_mem_free(schedule->mem, schedule->nodes, schedule->capacity * sizeof *schedule->nodes);
    tide_mem_free(schedule->mem, schedule, sizeof *schedule);
}

static bool node_before(const struct node *a, const struct node *b)
{
    if (a->due_unix_ms != b->due_unix_ms)
        return a->due_unix_ms < b->due_unix_ms;
    return a->entry.id < b->entry.id; /* H4: the order is the same everywhere */
}

static void node_place(tide_schedule *schedule, size_t at, struct node node)
{
    schedule->nodes[at] = node;
    bool put = tide_map_put(&schedule->places, node.entry.id, (uint32_t)at);
    TIDE_ASSERT(put); /* the key is there, or room was reserved */
}

/* Moves the node at `at` to where it belongs, up or down. */
static void heap_settle(tide_schedule *schedule, size_t at)
{
    struct node node = schedule->nodes[at];
    while (at > 0 && node_before(&node, &schedule->nodes[(at - 1) / 2])) {
        node_place(schedule, at, schedule->nodes[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) { /* ends: `at` at least doubles */
        size_t child = 2 * at + 1;
        if (child >= schedule->count)
            break;
        if (child + 1 < schedule->count &&
            node_before(&schedule->nodes[child + 1], &schedule->nodes[child]))
            child++;
        if (!node_before(&schedule->nodes[child], &node))
            break;
        node_place(schedule, at, schedule->nodes[child]);
        at = child;
    }
    node_place(schedule, at, node);
}

static struct node *node_find(const tide_schedule *schedule, uint64_t id)
{
    uint32_t at = 0;
    if (id == 0 || !tide_map_get(&schedule->places, id, &at))
        return NULL;
    return &schedule->nodes[at];
}

static void entry_mark_fired(struct tide_schedule_entry *entry, uint64_t slot_unix_ms)
{
    if (!entry->fired || entry->last_unix_ms < slot_unix_ms) /* H2 */
        entry->last_unix_ms = slot_unix_ms;
    entry->fired = true;
}

tide_status tide_schedule_put(tide_schedule *schedule, const struct tide_schedule_entry *entry)
{
    if (entry->id == 0 || entry->period_ms == 0)
        return TIDE_INVALID;
    struct node node = {.entry = *entry};
    struct node *old = node_find(schedule, entry->id);
    size_t at = schedule->count;
    if (old != NULL) {
        at = (size_t)(old - schedule->nodes);
        if (old->entry.fired)
            entry_mark_fired(&node.entry, old->entry.last_unix_ms);
    } else {
        if (schedule->count >= TIDE_SCHEDULES_MAX)
            return TIDE_FULL;
        void *nodes = schedule->nodes;
        /* One more than is needed: putting a key that is there asks for room for
         * another one, and moving entries about later must not allocate. */
        if (!tide_map_reserve(&schedule->places, schedule->count + 2) ||
            !tide_mem_grow(schedule->mem, &nodes, &schedule->capacity, schedule->count + 1,
                           TIDE_SCHEDULES_MAX, sizeof *schedule->nodes))
            return TIDE_NO_MEMORY;
        schedule->nodes = nodes;
        schedule->count++;
    }
    node.due_unix_ms = tide_schedule_due_at_unix_ms(&node.entry);
    schedule->nodes[at] = node;
    heap_settle(schedule, at);
    return TIDE_OK;
}

bool tide_schedule_remove(tide_schedule *schedule, uint64_t id)
{
    struct node *node = node_find(schedule, id);
    if (node == NULL)
        return false;
    size_t at = (size_t)(node - schedule->nodes);
    (void)tide_map_remove(&schedule->places, id);
    schedule->count--;
    if (at < schedule->count) {
        schedule->nodes[at] = schedule->nodes[schedule->count];
        heap_settle(schedule, at);
    }
    return true;
}

void tide_schedule_fired(tide_schedule *schedule, uint64_t id, uint64_t slot_unix_ms)
{
    struct node *node = node_find(schedule, id);
    if (node == NULL)
        return; /* removed meanwhile */
    entry_mark_fired(&node->entry, slot_unix_ms);
    node->due_unix_ms = tide_schedule_due_at_unix_ms(&node->entry);
    heap_settle(schedule, (size_t)(node - schedule->nodes));
}

bool tide_schedule_next(tide_schedule *schedule, uint64_t now_unix_ms,
                        struct tide_firing *firing_out)
{
    struct tide_firing firing;
    if (schedule->count == 0 || !tide_schedule_due(&schedule->nodes[0].entry, now_unix_ms, &firing))
        return false;
    tide_schedule_fired(schedule, firing.id, firing.slot_unix_ms);
    *firing_out = firing;
    return true;
}

uint64_t tide_schedule_wake_at_unix_ms(const tide_schedule *schedule)
{
    return schedule->count > 0 ? schedule->nodes[0].due_unix_ms : UINT64_MAX;
}

const struct tide_schedule_entry *tide_schedule_find(const tide_schedule *schedule, uint64_t id)
{
    const struct node *node = node_find(schedule, id);
    return node != NULL ? &node->entry : NULL;
}

size_t tide_schedule_count(const tide_schedule *schedule)
{
    return schedule->count;
}

void tide_schedule_check(const tide_schedule *schedule)
{
    TIDE_ASSERT(schedule->count <= TIDE_SCHEDULES_MAX); /* H3 */
    TIDE_ASSERT(schedule->places.count == schedule->count);
    for (size_t at = 0; at < schedule->count; at++) {
        const struct node *node = &schedule->nodes[at];
        TIDE_ASSERT(node->entry.period_ms > 0);
        TIDE_ASSERT(node_find(schedule, node->entry.id) == node);
        TIDE_ASSERT(node->due_unix_ms == tide_schedule_due_at_unix_ms(&node->entry));
        if (at > 0) /* H4 */
            TIDE_ASSERT(node_before(&schedule->nodes[(at - 1) / 2], node));
    }
}
