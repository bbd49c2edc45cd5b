/* tracker.h - the bounded window over the ledger's unfinished jobs (E2).
 *
 * It knows the next jobs, the state of each, when a waiting one may run, and when to load
 * more.  It does not choose between them (lanes) nor admit them (governor), and every job
 * here is in the ledger too.
 *
 *   add ──► BLOCKED ──release──► WAITING ──time──► READY ──claiming──► CLAIMING
 *            (open_deps > 0)    (not before)         ▲                    │
 *                                                    │             claimed│  refused: removed
 *      put_back (retry at t) ◄── ENDING ◄── RUNNING ◄─started── CLAIMED ◄─┘
 *                                  │           │  ▲               ▲
 *                           remove ▼           └parked(t)─► PARKED┘ (time)
 *
 * Invariants (tide_tracker_check()):
 *   TRK1  at most window_max jobs, each id once.
 *   TRK2  a job is BLOCKED exactly while open_deps > 0.
 *   TRK3  a WAITING or PARKED job is in the timer heap, no other is.
 *   TRK4  the counts per state and account equal a recount.
 *   TRK5  a job that has a claim (CLAIMED, RUNNING, PARKED, ENDING) has a token, no other has one.
 *   TRK6  an account's `more` is set whenever a job of it that could run may be in the ledger but
 *         not here.
 *
 * A blocked job that is not here needs no `more`: its release sets it.  A waiting one needs
 * it from its time on: tide_tracker_wake_at_ms() includes it, and tide_tracker_due() sets
 * `more` then.
 */
#ifndef TIDE_CORE_TRACKER_H
#define TIDE_CORE_TRACKER_H

#include "base/mem.h"
#include "base/status.h"
#include "core/brief.h"

typedef enum tide_job_state {
    TIDE_JOB_BLOCKED,
    TIDE_JOB_WAITING,
    TIDE_JOB_READY,
    TIDE_JOB_CLAIMING,
    TIDE_JOB_CLAIMED,
    TIDE_JOB_RUNNING,
    TIDE_JOB_PARKED,
    TIDE_JOB_ENDING,
    TIDE_JOB_STATES,
} tide_job_state;

struct tide_tracked {
    struct tide_brief brief;
    tide_job_state state;
    uint64_t token;    /* fencing token of the claim, 0: none (E1.8) */
    uint64_t since_ms; /* of the state */
    void *body;        /* owned by the engine, borrowed: payload and handler context */
};

typedef struct tide_tracker tide_tracker;

tide_status tide_tracker_new(uint32_t window_max, tide_mem *mem, tide_tracker **tracker_out);
void tide_tracker_free(tide_tracker *tracker);
/* Refill below one share of the window, up to another [500 and 800 permille].
 * TIDE_INVALID: not 0 < below < to <= 1000; nothing changed. */
tide_status tide_tracker_refill_set(tide_tracker *tracker, uint32_t below_permille,
                                    uint32_t to_permille);

/* Adds a job.  TIDE_EXISTS: it is here already, unchanged.  TIDE_FULL: no room; the
 * account's `more` is set.  When the window is full of jobs that order after this one, the
 * last of them that is unclaimed (BLOCKED, WAITING or READY) is evicted to make room:
 * *evicted_out is its id, else 0.  Three exceptions to that order:
 *   - any BLOCKED job gives way to one that is not (lesson 13);
 *   - a WAITING job evicts no READY one;
 *   - a READY job of an account that has no other READY one here evicts the last READY job
 *     of the account with most of them, or else the WAITING job with the latest time.  So the
 *     first job of each account is here, whichever jobs are left out (lesson 8).
 * More than TIDE_ACCOUNTS_MAX accounts at once: TIDE_FULL, and no `more` is kept. */
tide_status tide_tracker_add(tide_tracker *tracker, const struct tide_brief *brief, uint64_t now_ms,
                             uint64_t *evicted_out);
const struct tide_tracked *tide_tracker_find(const tide_tracker *tracker, uint64_t id);

/* Sets the number of open dependencies left, as the ledger has it.  True: this made the job
 * runnable (READY or WAITING).  An unknown id only sets `more` of `account` when open_deps is 0.
 * An unclaimed job with open_deps > 0 becomes BLOCKED (again); a claimed one is unchanged. */
bool tide_tracker_release(tide_tracker *tracker, uint64_t id, uint32_t account, uint32_t open_deps,
                          uint64_t now_ms);

/* Transitions as drawn above; each asserts the state it comes from. */
void tide_tracker_claiming(tide_tracker *tracker, uint64_t id, uint64_t now_ms);
void tide_tracker_claimed(tide_tracker *tracker, uint64_t id, uint64_t token, uint64_t now_ms);
void tide_tracker_started(tide_tracker *tracker, uint64_t id, uint64_t now_ms);
void tide_tracker_parked(tide_tracker *tracker, uint64_t id, uint64_t until_ms, uint64_t now_ms);
void tide_tracker_ending(tide_tracker *tracker, uint64_t id,
                         uint64_t now_ms); /* from any claimed state */
/* The ledger has it pending again (retry, put back, a claim that did not
 * commit): WAITING or READY, no token.  From any claimed state, or CLAIMING. */
void tide_tracker_put_back(tide_tracker *tracker, uint64_t id, uint64_t not_before_ms,
                           uint16_t attempts, uint64_t now_ms);
void tide_tracker_remove(tide_tracker *tracker, uint64_t id); /* from any state; unknown is fine */
void tide_tracker_body_set(tide_tracker *tracker, uint64_t id, void *body);
/* A raised priority (E1.5); not while it has a claim or is being claimed, never
 * lower.  True if it changed. */
bool tide_tracker_priority(tide_tracker *tracker, uint64_t id, uint8_t priority);

/* When a waiting or parked job becomes due; 0: it is neither. */
uint64_t tide_tracker_due_at_ms(const tide_tracker *tracker, uint64_t id);
/* Takes out one job whose time has come (WAITING becomes READY, PARKED becomes
 * CLAIMED) and names it; 0: none.  Call until 0. */
uint64_t tide_tracker_due(tide_tracker *tracker, uint64_t now_ms);
uint64_t tide_tracker_wake_at_ms(const tide_tracker *tracker); /* UINT64_MAX: never */

/* Refill (E2.1): below half full, up to 80 %, unless set otherwise.  Returns the account, the
 * place in its order and the maximal number of unclaimed ready jobs to load from the ledger.
 * Accounts take turns, so that one with a million jobs leaves room for the others (lesson 8).
 * An account that has nothing ready here is served even above half. false: nothing to load.  The
 * caller loads and calls add for each, then tide_tracker_refilled(); accounts may be under way
 * at the same time.  BLOCKED jobs do not count as filling the window. */
struct tide_refill {
    uint32_t account;
    uint8_t after_priority; /* load what orders after (after_priority, after_id) */
    uint64_t after_id;      /* 0 with priority 255: from the beginning */
    uint32_t count_max;
};
bool tide_tracker_refill(tide_tracker *tracker, struct tide_refill *refill_out);
/* `loaded` rows were loaded; fewer than requested means that the ledger has no more of this
 * account.  `last` is the brief of the last row, NULL when none. */
void tide_tracker_refilled(tide_tracker *tracker, const struct tide_refill *refill, uint32_t loaded,
                           const struct tide_brief *last);
/* Like tide_tracker_refill() without starting one: is there anything to load? */
bool tide_tracker_wants_refill(const tide_tracker *tracker);
void tide_tracker_more(tide_tracker *tracker,
                       uint32_t account); /* something may be there: from the beginning */
/* Will a refill look at this place of the account's order?  For checks of TRK6
 * against the ledger. */
bool tide_tracker_owes(const tide_tracker *tracker, uint32_t account, uint8_t priority,
                       uint64_t id);

uint32_t tide_tracker_count(const tide_tracker *tracker);
uint32_t tide_tracker_room(const tide_tracker *tracker); /* so many fit without an eviction */
uint32_t tide_tracker_count_state(const tide_tracker *tracker, tide_job_state state);
/* Calls for every job until it returns false.  The tracker must not change. */
void tide_tracker_each(const tide_tracker *tracker,
                       bool (*visit)(const struct tide_tracked *job, void *arg), void *arg);
size_t tide_tracker_bytes(const tide_tracker *tracker); /* memory it holds */
bool tide_tracker_check(const tide_tracker *tracker);   /* T1..T6 as far as it can see */

#endif
