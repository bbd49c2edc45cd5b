/* timer.h - wakes connections that wait: for their answer's delay, for the end of
 * a stall, for the next bytes of a trickle.
 *
 * One thread, one heap.  It also watches the sockets of long waits, so that a
 * client that gives up does not keep its place in flight until the wait is over.
 *
 * Invariants:
 *   BTMR1  a waiting timer rings exactly once: when due, when its client is gone, or at the end of
 *          the whole.
 *   BTMR2  after box_timers_stop() nothing waits, and what is added rings at once.
 */
#ifndef BOX_SERVE_TIMER_H
#define BOX_SERVE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct box_timers box_timers;

/* Embedded in what waits; zeroed at first.  Untouched by its owner from the
 * adding to the ring. */
struct box_timer {
    uint64_t due_ms;
    uint64_t order; /* of adding, so that ties ring in turn */
    uint32_t index; /* in the heap */
    int fd;         /* watched; -1: not */
    bool vanished;  /* it rang because the other side is gone */
};

/* Called from the timers' thread, or from the adder's after the end. */
typedef void box_timer_ring(struct box_timer *timer);

box_timers *box_timers_new(box_timer_ring *ring);
/* Ends the thread; everything that waits rings now. */
void box_timers_stop(box_timers *timers);
void box_timers_free(box_timers *timers); /* NULL is fine */

/* Rings in `wait_ms`.  `fd` is the client's socket. */
void box_timers_add(box_timers *timers, struct box_timer *timer, uint32_t wait_ms, int fd);

/* Milliseconds of the clock that never goes back. */
uint64_t box_timers_now_ms(void);

#endif
