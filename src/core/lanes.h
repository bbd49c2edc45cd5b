/* lanes.h - chooses the next job and the worker it may use (E3).
 *
 * It keeps the jobs that could run in their order, the number of workers each lane may
 * use, and per account how many jobs may hold a claim at once (the number comes from
 * the governor).  It starts nothing itself.
 *
 * A job here is WANTED (needs a claim), HELD (has one, may start) or RUNNING.  Parked
 * jobs (TIDE_AGAIN) are not here but still count against their account: the caller
 * reports them with tide_lanes_parked().  One that is parked for units is SHORT from then until
 * its call is charged: a job of a lower level would spend the units that it waits for.
 *
 * Worker rule, W workers, r reserved for each lane:
 *   - a lane may run up to W - r(other) jobs;
 *   - beyond that it may borrow the other lane's reserved workers while that
 *     lane has nothing that could start, with preemptible jobs only;
 *   - a free worker goes to interactive first, bulk second; with nothing reserved for
 *     bulk, every ninth goes to bulk.
 *
 * Account 0 means "no account": levels do not order its jobs.
 *
 * Invariants (tide_lanes_check()):
 *   LAN1  running jobs <= workers; running of a lane beyond W - r(other) are all preemptible when
 *         they were started.
 *   LAN2  inside a lane, among accounts that are admitted, no job starts while one that orders
 *         before it (tide_brief_before) could start.
 *   LAN3  per account, HELD + RUNNING + PARKED <= admitted, except where the number was lowered
 *         afterwards, and except that a job is claimed past HELD and PARKED jobs of lower levels,
 *         which wait for it anyway (LAN4); RUNNING alone stays <= admitted.
 *   LAN4  no job of an account starts while a HELD, WANTED or SHORT job of that account with a
 *         smaller level number (a user waits) exists (E3.3).
 *   LAN5  a lane with something to start and fewer than r running is given a worker, or a
 *         preemption of a borrowed one has been requested.
 *   LAN6  of an account at most one job that runs alone (brief.h) is RUNNING.  It is preempted when
 *         another such one waits that has a smaller level number, or that level and a higher
 *         priority (K4).
 */
#ifndef TIDE_CORE_LANES_H
#define TIDE_CORE_LANES_H

#include "base/mem.h"
#include "base/status.h"
#include "core/brief.h"

typedef struct tide_lanes tide_lanes;

struct tide_lanes_limits {
    uint32_t workers;     /* default 32 */
    uint32_t reserved[2]; /* per lane, default 2 and 2; their sum < workers, or workers == 1 */
};

#define TIDE_ADMIT_ALL UINT32_MAX

tide_status tide_lanes_new(const struct tide_lanes_limits *limits, uint32_t jobs_max, tide_mem *mem,
                           tide_lanes **lanes_out);
void tide_lanes_free(tide_lanes *lanes);
void tide_lanes_limits_set(tide_lanes *lanes, const struct tide_lanes_limits *limits);

/* How many jobs of the account may hold a claim at once; 0 blocks it.  Account
 * 0 is always TIDE_ADMIT_ALL; others start there too. */
tide_status tide_lanes_admit(tide_lanes *lanes, uint32_t account, uint32_t admitted);

tide_status tide_lanes_wanted(tide_lanes *lanes,
                              const struct tide_brief *brief); /* needs a claim */
tide_status tide_lanes_held(tide_lanes *lanes,
                            const struct tide_brief *brief); /* has one (also after a park) */
/* Was RUNNING; keeps its place in the account's count.  Not `for_units`: it waits for something
 * of its own, which a job of a lower level may have to bring about. */
void tide_lanes_parked(tide_lanes *lanes, uint64_t id, bool for_units);
/* Is RUNNING, and no longer SHORT; unknown is fine. */
void tide_lanes_charged(tide_lanes *lanes, uint64_t id);
void tide_lanes_left(tide_lanes *lanes,
                     uint64_t id); /* ended, evicted, canceled: from any state; unknown is fine */
void tide_lanes_priority(tide_lanes *lanes, uint64_t id, uint8_t priority); /* while WANTED */

/* Takes out the next WANTED job to claim, in order, admitted.  At most `ahead` jobs may be HELD
 * or being claimed beyond those that could start at once; the engine sets it from its own pace.
 * The job counts as being claimed until tide_lanes_held() or tide_lanes_left(). */
bool tide_lanes_next_claim(tide_lanes *lanes, uint32_t ahead, uint64_t *id_out);
/* For a job that is not written yet: true if it would be the next of its lane to be claimed, and,
 * claimed, would start on a free worker, whichever of the others start first.  Then it is here and
 * counts as being claimed until tide_lanes_held() or tide_lanes_left(); else nothing has changed. */
bool tide_lanes_at_once(tide_lanes *lanes, const struct tide_brief *brief);
/* Takes out the next HELD job that may start on a free worker. */
bool tide_lanes_next_start(tide_lanes *lanes, uint64_t *id_out);
bool tide_lanes_can_start(const tide_lanes *lanes); /* is there one? */
/* Names a RUNNING job to cancel and put back because a more urgent job needs its worker
 * (borrowed, E3.1) or its account (E3.3).  Each job is named once. */
bool tide_lanes_next_preempt(tide_lanes *lanes, uint64_t *id_out);

uint32_t tide_lanes_running(const tide_lanes *lanes, tide_lane lane);
uint32_t tide_lanes_waiting(const tide_lanes *lanes, tide_lane lane); /* WANTED + HELD */
/* Why a WANTED or HELD job does not start now: for `jobs explain`. */
typedef enum tide_lanes_why {
    TIDE_WHY_NOTHING, /* it could start */
    TIDE_WHY_UNKNOWN, /* not here */
    TIDE_WHY_LANE_FULL,
    TIDE_WHY_ACCOUNT_FULL, /* admitted number reached, or 0 */
    TIDE_WHY_LEVEL,        /* a user waits on this account */
    TIDE_WHY_ORDER,        /* others go first */
} tide_lanes_why;
tide_lanes_why tide_lanes_explain(const tide_lanes *lanes, uint64_t id);
bool tide_lanes_check(const tide_lanes *lanes);

#endif
