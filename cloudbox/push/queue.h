/* queue.h - notifications in flight: a bounded queue ordered by when each
 * is due.  It knows nothing of mail; push.c fills it.
 *
 * Invariants (box_push_queue_check() tests them):
 *   BQUE1  at most BOX_DELIVERIES_WAITING_MAX items; the oldest is dropped.
 *   BQUE2  an item is in the heap or in flight, never both; the heap's first is the one that is due
 *          first, ties in order of creation.
 *   BQUE3  a refused item comes again after 1, 2, 4 ... 60 s, until it is seven days old.
 */
#ifndef BOX_PUSH_QUEUE_H
#define BOX_PUSH_QUEUE_H

#include "base/map.h"
#include "cloudbox/push/push.h"

struct box_push_item {
    uint64_t id; /* set by the queue */
    struct box_user *user;
    uint64_t history_id;
    uint64_t message_id;
    uint64_t made_ms;
    uint64_t due_ms;
    uint32_t topic;
    uint32_t tries;
    bool in_flight;
    uint32_t place; /* in the heap while it waits; the next free slot while unused */
};

struct box_push_queue {
    struct box_push_item *items; /* slots; id 0 is a free one; [0] is not used */
    size_t items_count;
    size_t items_capacity;
    uint32_t free_slot;
    uint32_t *heap; /* slots by (due_ms, id) */
    size_t heap_count;
    size_t heap_capacity;
    tide_map by_id;
    uint64_t next_id;
    size_t count; /* waiting and in flight */
    uint64_t sent, acknowledged, refused, dropped, given_up;
};

void box_push_queue_init(struct box_push_queue *queue);
void box_push_queue_done(struct box_push_queue *queue);
void box_push_queue_add(struct box_push_queue *queue, const struct box_push_item *item);
/* What is due first, if it is due; it is in flight from here on.  Borrowed until
 * the next call. */
const struct box_push_item *box_push_queue_next(struct box_push_queue *queue, uint64_t now_ms);
/* News of an item in flight; one that is not known (it gave way) is ignored. */
void box_push_queue_ended(struct box_push_queue *queue, uint64_t id, bool acknowledged,
                          uint64_t now_ms);
uint64_t box_push_queue_wake_at_ms(const struct box_push_queue *queue);
/* The first broken invariant in words, or NULL. */
const char *box_push_queue_check(const struct box_push_queue *queue);

#endif
