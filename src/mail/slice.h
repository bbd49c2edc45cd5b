/* slice.h - divides a mailbox into slices of time (M1).
 *
 * Slices are [after, before) in epoch seconds, never calendar dates, whose time
 * zone is ambiguous.  The first begins at the floor or is open to the past, the last
 * ends where the run began.  Pure arithmetic.
 *
 * Invariants:
 *   SLC1  the slices of a plan cover [floor, end) without gap or overlap; without a floor
 *         (-infinity, end).
 *   SLC2  there are at most TIDE_SLICES_MAX; slices get longer instead of more.
 *   SLC3  the halves of a span cover it without gap or overlap; neither is empty.
 */
#ifndef TIDE_MAIL_SLICE_H
#define TIDE_MAIL_SLICE_H

#include "base/text.h"

enum {
    TIDE_SLICES_MAX = 10000,
    TIDE_DAY_S = 86400,
    TIDE_GMAIL_BEGAN_S = 1080777600, /* 1 April 2004: no mailbox is older */
};

struct tide_slice {
    uint64_t after_s;  /* 0: open to the past */
    uint64_t before_s; /* 0: open to the future, in spans that are listed */
};

struct tide_slices {
    uint64_t floor_s; /* where the first one begins; 0: open */
    uint64_t first_s; /* where the first one ends */
    uint64_t end_s;
    uint64_t step_s;
    size_t count;
};

/* Days in a slice: monthly below 20,000 messages, daily above 500,000, else weekly. */
uint32_t tide_slice_days(uint64_t messages);
/* `oldest_s`: no known mail lies between the floor and this time (0: unknown). */
struct tide_slices tide_slices_plan(uint64_t floor_s, uint64_t oldest_s, uint64_t end_s,
                                    uint32_t days);
struct tide_slice tide_slices_at(const struct tide_slices *slices, size_t index);

/* Halves a span; `now_s` stands for an open end.  false: it is too short. */
bool tide_slice_halves(struct tide_slice span, uint64_t now_s, struct tide_slice halves_out[2]);

/* Ids per job (M2): ten seconds of quota, or a fixed number without quota (units 0). */
uint32_t tide_slice_fetch_ids(uint64_t window_units, uint64_t window_ms, uint32_t call_units);

/* Whether the quota makes fetching so many messages slow, so that a user should get the newest ones
 * first; without quota (units 0) it is not. */
bool tide_slice_is_slow(uint64_t messages, uint64_t window_units, uint64_t window_ms,
                        uint32_t call_units);

/* Parses "2019-01-31", "2019-01", "2019" (the start, UTC) or an age: "90d", "12w", "6m", "2y"
 * (months of 30 and years of 365 days).  false: none of these, or not before now. */
bool tide_since_parse(tide_text text, uint64_t now_ms, uint64_t *since_ms_out);

#endif
