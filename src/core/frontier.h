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
 * A cycle also counts its jobs, so that the caller need not ask the store whether it
 * is finished: children are added before their parent is done, the last one done
 * finishes the cycle, and a failed one keeps it open as a gap (E5.2).
 *
 * Invariants (tide_frontier_check() tests them after every simulated step):
 *   F1  committed <= reachable, and neither ever decreases.
 *   F2  every cycle below reachable is finished; cycle reachable is not.
 *   F3  at most TIDE_CYCLES_OPEN_MAX cycles are open or finished beyond it.
 *   F4  a finished cycle has no outstanding and no failed job.
 *   F5  slots that belong to no known cycle are empty; the totals are the sums.
 */
#ifndef TIDE_CORE_FRONTIER_H
#define TIDE_CORE_FRONTIER_H

#include "base/mem.h"
#include "base/status.h"

typedef struct tide_frontier tide_frontier;

/* One cycle at or beyond the reachable mark. */
struct tide_cycle_view {
    uint64_t cycle;
    uint32_t outstanding; /* jobs that are neither done nor failed */
    uint32_t failed;      /* jobs that failed or were canceled */
    bool opened;          /* false: a later cycle is known, this one is not yet */
    bool finished;
};

struct tide_frontier_totals {
    uint64_t opened;      /* cycles open and unfinished */
    uint64_t finished;    /* finished beyond reachable, waiting for an earlier one */
    uint64_t with_failed; /* unfinished cycles with a failed job */
    uint64_t outstanding; /* jobs, over all cycles */
    uint64_t failed;
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
 * between a job's effect and its `done` replays the job.  For cycles without
 * jobs; the others finish with their last job.  Amortised O(1). */
void tide_frontier_finish(tide_frontier *frontier, uint64_t cycle);

/* Adds jobs to an open cycle: its first ones, or the children of one of its
 * jobs, which must be added before that job is done.  TIDE_NOT_FOUND: not
 * open.  TIDE_STALE: finished already, and the cursor may have passed it.
 * TIDE_FULL: more than TIDE_CYCLE_JOBS_MAX.  Nothing changes unless TIDE_OK. */
tide_status tide_frontier_jobs_added(tide_frontier *frontier, uint64_t cycle, uint32_t count);

/* One outstanding job ended well (done, or its item isolated as bad).  True if
 * that finished the cycle. */
bool tide_frontier_job_done(tide_frontier *frontier, uint64_t cycle);

/* One outstanding job failed or was canceled: the cycle cannot finish until
 * the job is revived by a retry or its item is accepted as bad by command;
 * the latter may finish the cycle, and then returns true. */
void tide_frontier_job_failed(tide_frontier *frontier, uint64_t cycle);
void tide_frontier_job_revived(tide_frontier *frontier, uint64_t cycle);
bool tide_frontier_job_accepted(tide_frontier *frontier, uint64_t cycle);

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
/* False if the cycle lies below reachable or beyond the last known one. */
bool tide_frontier_look(const tide_frontier *frontier, uint64_t cycle,
                        struct tide_cycle_view *view_out);
struct tide_frontier_totals tide_frontier_totals(const tide_frontier *frontier);

/* Asserts F1 to F5.  O(room). */
void tide_frontier_check(const tide_frontier *frontier);

#endif
