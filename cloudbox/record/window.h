/* window.h - the sum of what was counted in a sliding window of time, exactly.
 *
 * A charge at t counts in [t, t + length).  A window holds one bucket for each step in
 * which something was charged, so charging is O(1), the count is exact however many calls
 * there are, and an idle window uses almost no memory.  With a step above one millisecond
 * a charge counts up to one step longer: the strict side. */
#ifndef BOX_WINDOW_H
#define BOX_WINDOW_H

#include <stdint.h>

typedef struct box_window box_window;

box_window *box_window_new(uint32_t length_ms, uint32_t step_ms);
void box_window_free(box_window *window); /* NULL is fine */
/* What the window ending at now holds. */
uint64_t box_window_count(box_window *window, uint64_t now_ms);
void box_window_add(box_window *window, uint64_t now_ms, uint32_t amount);
uint64_t box_window_highest(const box_window *window);
/* When `amount` would fit below `limit`, at the earliest; UINT64_MAX: never. */
uint64_t box_window_fits_at(box_window *window, uint64_t now_ms, uint64_t limit, uint32_t amount);

#endif
