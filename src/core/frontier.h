/* frontier.h - computes how far the cursor of a stream may move (E5).
 *
 * Cycles of a stream finish in any order; its cursor may only be at the end of the
 * longest finished prefix.  A frontier implements that rule and nothing else.  It does
 * no I/O and reads no clock.  The store commits the move, and until
 * tide_frontier_committed() is called the old cursor still counts, because after a
 * crash the old cursor is on disk.
 *
 * Cycles are numbered by consecutive ordinals, starting at the committed one; the
 * meaning of a cursor's value (a time, a token) is not known here (E5.5).
 *
 * Which jobs a cycle waits for is not known here either: the ledger counts them, and the
 * caller finishes the cycle when none is outstanding or failed (E5.2).
 *
 * Invariants (tide_frontier_check() tests them after every simulated step):
 *   FRO1  committed <= reachable, and neither ever decreases.
 *   FRO2  every cycle below reachable is finished; cycle reachable is not.
 *   FRO3  at most TIDE_CYCLES_OPEN_MAX cycles are open or finished beyond it.
 *   FRO4  slots that belong to no known cycle are empty; the totals are the sums.
 */
#ifndef TIDE_CORE_FRONTIER_H
#define TIDE_CORE_FRONTIER_H

#include "base/mem.h"
#include "base/status.h"

typedef struct tide_frontier tide_frontier;

/* One unfinished cycle at or beyond the reachable mark. */
struct tide_cycle_view {
    uint64_t cycle;
    bool opened; /* false: a later cycle is known, this one is not yet */
};

struct tide_frontier_totals {
    uint64_t opened;   /* cycles open and unfinished */
    uint64_t finished; /* finished beyond reachable, waiting for an earlier one */
};

/* Starts where the store last committed.  The caller owns the result; `mem`
 * is borrowed and outlives it. */
tide_status tide_frontier_new(uint64_t committed, tide_mem *mem, tide_frontier **frontier_out);
void tide_frontier_free(tide_frontier *frontier); /* NULL is fine. */

/* Reserves room for `cycle` before its first job starts, so that finishing it cannot fail.
 * TIDE_FULL: let the oldest cycle finish first.  TIDE_EXISTS: it is open or finished already.
 * TIDE_INVALID: no such ordinal.  Nothing changes unless TIDE_OK. */
tide_status tide_frontier_open(tide_frontier *frontier, uint64_t cycle);

/* Marks an open cycle finished, in any order.  Twice is harmless: a crash
 * between a job's effect and its `done` replays the job.  Amortised O(1). */
void tide_frontier_finish(tide_frontier *frontier, uint64_t cycle);

/* Where the cursor may move now; the second call reports that it moved there. */
uint64_t tide_frontier_reachable(const tide_frontier *frontier);
void tide_frontier_committed(tide_frontier *frontier, uint64_t cursor);
/* Where the cursor is on disk, as of the last tide_frontier_committed(). */
uint64_t tide_frontier_cursor(const tide_frontier *frontier);

/* The unfinished cycles from `from` (or from reachable, if that is later) up to the last known
 * one, at most `views_max` of them, in order.  Returns how many; the next call starts after the
 * last of them.  The first gap is the one that holds the cursor. */
size_t tide_frontier_gaps(const tide_frontier *frontier, uint64_t from,
                          struct tide_cycle_view *views_out, size_t views_max);
struct tide_frontier_totals tide_frontier_totals(const tide_frontier *frontier);

/* Asserts FRO1 to FRO4.  O(room). */
void tide_frontier_check(const tide_frontier *frontier);

#endif
