/* slice.h - a mailbox cut into slices of time (M1).
 *
 * Slices are [after, before) in epoch seconds, never calendar dates, whose time
 * zone is ambiguous.  The first is open to the past, the last ends where the run
 * began.  Pure arithmetic.
 *
 * Invariants:
 *   S1  the slices of a plan cover (-infinity, end) without gap or overlap.
 *   S2  there are at most TIDE_SLICES_MAX; longer ones rather than more.
 */
#ifndef TIDE_MAIL_SLICE_H
#define TIDE_MAIL_SLICE_H

#include <stddef.h>
#include <stdint.h>

enum {
    TIDE_SLICES_MAX = 10000,
    TIDE_DAY_S = 86400,
    TIDE_GMAIL_BEGAN_S = 1080777600, /* 1 April 2004: no mailbox is older */
};

struct tide_slice {
    uint64_t after_s; /* 0: open to the past */
    uint64_t before_s;
};

struct tide_slices {
    uint64_t first_s; /* where the first one ends */
    uint64_t end_s;
    uint64_t step_s;
    size_t count;
};

/* Days in a slice: monthly below 20,000 messages, daily above 500,000, else weekly. */
uint32_t tide_slice_days(uint64_t messages);
/* `oldest_s`: there is no mail before it, as far as we know (0: unknown). */
struct tide_slices tide_slices_plan(uint64_t oldest_s, uint64_t end_s, uint32_t days);
struct tide_slice tide_slices_at(const struct tide_slices *slices, size_t index);

#endif
