/* retry.h - decides what happens to a job after an attempt (E7.1, E7.2).
 *
 * Pure policy: it keeps no state, reads no clock, and does not know what a job does.
 * It says which endings cost an attempt, which block the account instead of the job,
 * and when to try again.  The splitter decides which items of a batch are at fault.
 *
 * Rules, numbered for the tests:
 *   RTY1  an attempt is charged only for a fault that may be the job's own: an error worth
 *         retrying, a stall, a reclaim after a crash.  Throttling, network loss, sign-in, a full
 *         disk, preemption, halt and shutdown are free.
 *   RTY2  attempts never decrease and grow by at most one per ending.
 *   RTY3  a retry lies in [now + half the pause, now + pause], where the pause grows from its first
 *         value up to its cap; a reclaim starts at once (E1.7).
 *   RTY4  over its budget a job with several items is split, any other one fails. A batch is split
 *         when halves_attempts of its budget are left: its fifth attempt is made in two halves.  A
 *         fifth one in one piece would break the bound of E6.3 for one bad item among 5, 9, 10, 17
 *         and so on, because halving n items takes log2 n steps *rounded up*.
 *   RTY5  work that ended well is done, even if it was canceled meanwhile.
 */
#ifndef TIDE_CORE_RETRY_H
#define TIDE_CORE_RETRY_H

#include "base/rng.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Settings (E11); tide_retry_defaults() has the values of the spec. */
struct tide_retry_policy {
    uint32_t attempts_max;          /* 5 */
    uint64_t pause_first_ms;        /* 1 s */
    uint32_t pause_factor_permille; /* 2000: each further one is twice as long */
    uint64_t pause_max_ms;          /* 5 min */
    uint32_t reclaim_attempts;      /* 1: stops a job that kills its worker each time */
    uint32_t halves_attempts;       /* 1: how many of its attempts a batch keeps for its halves */
};
struct tide_retry_policy tide_retry_defaults(void);
/* TIDE_INVALID, with the reason, if the numbers contradict each other. */
tide_status tide_retry_check(const struct tide_retry_policy *policy, tide_error *err);

enum tide_ending {
    TIDE_ENDED_RETURNED,  /* the handler returned `status` */
    TIDE_ENDED_PREEMPTED, /* canceled for a higher level (E3.3) */
    TIDE_ENDED_HALTED,    /* the account was halted (E4.6) */
    TIDE_ENDED_SHUTDOWN,  /* the process stops (E7.4) */
    TIDE_ENDED_BY_USER,   /* canceled by command */
    TIDE_ENDED_STALLED,   /* no beat for too long (E7.1) */
    TIDE_ENDED_RECLAIMED, /* its owner died (E1.7) */
};

struct tide_ended {
    enum tide_ending ending;
    tide_status status;    /* of the handler; unused for stalled and reclaimed */
    uint32_t attempts;     /* charged before this one */
    uint32_t attempts_max; /* of the job's kind; 0: the policy's */
    uint32_t items;        /* in the job; 0 or 1: it cannot be split */
    uint64_t again_at_ms;  /* named by the provider or by our quota; 0: not named */
};

enum tide_verdict_kind {
    TIDE_VERDICT_DONE,
    TIDE_VERDICT_RETRY,    /* at `at_ms` */
    TIDE_VERDICT_FAIL,     /* stays in the ledger as a gap of its cycle (E5.2) */
    TIDE_VERDICT_CANCEL,   /* canceled by command */
    TIDE_VERDICT_PUT_BACK, /* pending again, not before `at_ms`, as if never started */
    TIDE_VERDICT_BLOCK,    /* put back; the account waits until `cause` has passed */
    TIDE_VERDICT_SPLIT,    /* ask the splitter */
    TIDE_VERDICT_VANISHED, /* the remote item is gone: ended, recorded, not bad (E6.2) */
};

struct tide_verdict {
    enum tide_verdict_kind kind;
    tide_class cause;  /* of a block: throttled, auth, network or disk */
    uint32_t attempts; /* charged from now on */
    uint64_t at_ms;    /* of retry, put back and block; 0 for a block: when a probe succeeds */
};

struct tide_verdict tide_retry_decide(const struct tide_retry_policy *policy,
                                      const struct tide_ended *ended, uint64_t now_ms,
                                      tide_rng *rng);

/* The pause after `attempts` failed ones, with jitter: between half and all of
 * min(first * factor^(attempts-1), cap), and 0 for none. */
uint64_t tide_retry_pause_ms(const struct tide_retry_policy *policy, uint32_t attempts,
                             tide_rng *rng);

/* After how many failed attempts a batch is split, and a single item or a job without items
 * fails.  `attempts_max` 0: the policy's. */
uint32_t tide_retry_budget(const struct tide_retry_policy *policy, uint32_t attempts_max,
                           uint32_t items);

/* One step of it: pause_ms * factor, at most max_ms. */
uint64_t tide_retry_longer_ms(uint64_t pause_ms, uint32_t factor_permille, uint64_t max_ms);

/* Whether failing with this status may be the job's own fault. */
bool tide_retry_costs_attempt(tide_status status);
/* Whether the account has to wait instead of the job. */
bool tide_retry_blocks_account(tide_status status);

#endif
