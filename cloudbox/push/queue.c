#include "cloudbox/push/queue.h"

#include "base/check.h"

#define KEPT_MS (UINT64_C(7) * 24 * 3600 * 1000)

enum { PAUSE_FIRST_MS = 1000, PAUSE_MAX_MS = 60000 };

void box_push_queue_init(struct box_push_queue *queue)
{
    *queue = (struct box_push_queue){.items_count = 1, .next_id = 1};
    tide_map_init(&queue->by_id, tide_mem_heap());
}

void box_push_queue_done(struct box_push_queue *queue)
{
    tide_mem *heap = tide_mem_heap();
    tide_mem_free(heap, queue->items, queue->items_capacity * sizeof queue->items[0]);
    tide_mem_free(heap, queue->heap, queue->heap_capacity * sizeof queue->heap[0]);
    tide_map_done(&queue->by_id);
}

/* ---- the heap ---- */

static bool is_before(const struct box_push_queue *queue, uint32_t a, uint32_t b)
{
    const struct box_push_item *one = &queue->items[a];
    const struct box_push_item *other = &queue->items[b];
    return one->due_ms != other->due_ms ? one->due_ms < other->due_ms : one->id < other->id;
}

static void heap_set(struct box_push_queue *queue, size_t place, uint32_t slot)
{
    queue->heap[place] = slot;
    queue->items[slot].place = (uint32_t)place;
}

static void heap_rise(struct box_push_queue *queue, size_t place)
{
    const uint32_t slot = queue->heap[place];
    while (place > 0 && is_before(queue, slot, queue->heap[(place - 1) / 2])) {
        heap_set(queue, place, queue->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_set(queue, place, slot);
}

static void heap_sink(struct box_push_queue *queue, size_t place)
{
    const uint32_t slot = queue->heap[place];
    for (;;) { /* ends: the place at least doubles */
        size_t child = 2 * place + 1;
        if (child >= queue->heap_count)
            break;
        if (child + 1 < queue->heap_count &&
            is_before(queue, queue->heap[child + 1], queue->heap[child]))
            child++;
        if (!is_before(queue, queue->heap[child], slot))
            break;
        heap_set(queue, place, queue->heap[child]);
        place = child;
    }
    heap_set(queue, place, slot);
}

static void heap_add(struct box_push_queue *queue, uint32_t slot)
{
    TIDE_ASSERT(TIDE_GROW(queue->heap, queue->heap_capacity, queue->heap_count + 1,
                          BOX_DELIVERIES_WAITING_MAX));
    heap_set(queue, queue->heap_count++, slot);
    heap_rise(queue, queue->heap_count - 1);
}

static void heap_remove(struct box_push_queue *queue, size_t place)
{
    TIDE_ASSERT(place < queue->heap_count);
    const uint32_t last = queue->heap[--queue->heap_count];
    if (place == queue->heap_count)
        return;
    heap_set(queue, place, last);
    heap_rise(queue, place);
    heap_sink(queue, queue->items[last].place);
}

/* ---- items ---- */

static void item_drop(struct box_push_queue *queue, uint32_t slot)
{
    struct box_push_item *item = &queue->items[slot];
    TIDE_ASSERT(item->id != 0);
    if (!item->in_flight)
        heap_remove(queue, item->place);
    TIDE_ASSERT(tide_map_remove(&queue->by_id, item->id));
    *item = (struct box_push_item){.place = queue->free_slot};
    queue->free_slot = slot;
    queue->count--;
}

/* BQUE1.  It reads all of them, but only while receivers take nothing. */
static void drop_oldest(struct box_push_queue *queue)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < queue->items_count; i++) {
        const uint64_t id = queue->items[i].id;
        if (id != 0 && (oldest == 0 || id < queue->items[oldest].id))
            oldest = i;
    }
    item_drop(queue, oldest);
    queue->dropped++;
}

void box_push_queue_add(struct box_push_queue *queue, const struct box_push_item *item)
{
    if (queue->count == BOX_DELIVERIES_WAITING_MAX)
        drop_oldest(queue);
    uint32_t slot = queue->free_slot;
    if (slot != 0) {
        queue->free_slot = queue->items[slot].place;
    } else {
        TIDE_ASSERT(TIDE_GROW(queue->items, queue->items_capacity, queue->items_count + 1,
                              BOX_DELIVERIES_WAITING_MAX + 1));
        slot = (uint32_t)queue->items_count++;
    }
    queue->items[slot] = *item;
    queue->items[slot].id = queue->next_id++;
    queue->items[slot].in_flight = false;
    TIDE_ASSERT(tide_map_put(&queue->by_id, queue->items[slot].id, slot));
    heap_add(queue, slot);
    queue->count++;
}

const struct box_push_item *box_push_queue_next(struct box_push_queue *queue, uint64_t now_ms)
{
    if (queue->heap_count == 0)
        return NULL;
    struct box_push_item *item = &queue->items[queue->heap[0]];
    if (item->due_ms > now_ms)
        return NULL;
    heap_remove(queue, 0);
    item->in_flight = true;
    item->tries++;
    queue->sent++;
    return item;
}

void box_push_queue_ended(struct box_push_queue *queue, uint64_t id, bool acknowledged,
                          uint64_t now_ms)
{
    uint32_t slot = 0;
    if (id == 0 || !tide_map_get(&queue->by_id, id, &slot) || !queue->items[slot].in_flight)
        return;
    struct box_push_item *item = &queue->items[slot];
    if (acknowledged) {
        queue->acknowledged++;
        item_drop(queue, slot);
        return;
    }
    queue->refused++;
    if (now_ms >= item->made_ms + KEPT_MS) {
        queue->given_up++;
        item_drop(queue, slot);
        return;
    }
    const uint32_t doublings = item->tries - 1 < 6 ? item->tries - 1 : 6;
    const uint64_t pause_ms = (uint64_t)PAUSE_FIRST_MS << doublings;
    item->due_ms = now_ms + (pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms);
    item->in_flight = false;
    heap_add(queue, slot);
}

uint64_t box_push_queue_wake_at_ms(const struct box_push_queue *queue)
{
    return queue->heap_count == 0 ? UINT64_MAX : queue->items[queue->heap[0]].due_ms;
}

const char *box_push_queue_check(const struct box_push_queue *queue)
{
    size_t used = 0;
    size_t in_flight = 0;
    for (uint32_t i = 1; i < queue->items_count; i++) {
        const struct box_push_item *item = &queue->items[i];
        if (item->id == 0)
            continue;
        used++;
        in_flight += item->in_flight;
        uint32_t slot = 0;
        if (!tide_map_get(&queue->by_id, item->id, &slot) || slot != i)
            return "an item is not found by its id";
        if (!item->in_flight && (item->place >= queue->heap_count || queue->heap[item->place] != i))
            return "BQUE2: a waiting item is not in the heap";
    }
    if (used != queue->count || queue->by_id.count != used)
        return "the items are miscounted";
    if (used > BOX_DELIVERIES_WAITING_MAX)
        return "BQUE1: too many items";
    if (queue->heap_count + in_flight != used)
        return "BQUE2: an item is in the heap and in flight";
    for (size_t i = 1; i < queue->heap_count; i++) {
        if (is_before(queue, queue->heap[i], queue->heap[(i - 1) / 2]))
            return "BQUE2: the heap is out of order";
    }
    return NULL;
}
