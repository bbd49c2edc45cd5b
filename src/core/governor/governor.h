/* governor.h - decides when an account may send its next call.  One per account.
 *
 * A call needs all of: the account not halted, the breaker closed (or being its
 * one probe), a token of the bucket (the pace), a place among the calls in
 * flight, room in its own window and in every shared one, and a durable promise
 * for the units it spends.  The governor answers yes, or when to ask again; it
 * never sends, waits, or knows what a call is for.
 *
 * Its parts are modules of their own: window.h counts, aimd.h learns the pace from
 * answers, breaker.h stops calls after refusals and failures, lease.h makes sure that
 * a crash loses no spent units, latency.h knows what is slow.
 *
 * Invariants (tide_governor_check()):
 *   GOV1  no window of the provider ever holds more than its limit, across crashes too, as long as
 *         it counts a call before its answer, or within stray_ms of the end of our connection or
 *         process (window.h has the proof).  The next process on this machine need not trust the
 *         wall clock; one on another machine must.
 *   GOV2  levels 2..4 leave the reserve of the window to level 1 (K15).
 *   GOV3  units spent never exceed the durable promise.
 *   GOV4  rate and workers stay between their bounds.
 *   GOV5  in any t seconds at most burst + reserve + rate_max * t units are sent; one call that is
 *         larger than the burst is paid off afterwards.
 */
#ifndef TIDE_CORE_GOVERNOR_H
#define TIDE_CORE_GOVERNOR_H

#include "base/limits.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"
#include "core/governor/aimd.h"
#include "core/governor/saved.h"
#include "core/governor/latency.h"
#include "core/governor/lease.h"
#include "core/governor/profile.h"
#include "core/governor/window.h"

typedef struct tide_governor tide_governor;

/* A limit that several governors of this process share (a project, a model
 * endpoint).  The engine owns it, and sets the share that the ledger granted to
 * this process and until when; after that nothing fits (E4.1). */
struct tide_limit {
    tide_window window;
    uint64_t units_max;
    uint64_t granted_until_ms; /* UINT64_MAX: without limit */
};

enum tide_refusal {
    TIDE_REFUSAL_RATE,        /* or unknown */
    TIDE_REFUSAL_CONCURRENCY, /* "too many concurrent requests" */
    TIDE_REFUSAL_BYTES,       /* a quota of bytes per day */
};

struct tide_answer {
    uint32_t units;      /* as charged */
    uint32_t calls;      /* as charged; 0 means 1 */
    uint32_t latency_ms; /* from sending */
    tide_status status;
    int http;                  /* 0: no answer came */
    uint64_t retry_after_ms;   /* from now; 0: none was named */
    uint32_t method;           /* below TIDE_METHODS_MAX */
    enum tide_refusal refusal; /* with TIDE_THROTTLED */
    uint64_t bytes;            /* of both bodies */
    uint64_t subject;          /* what was asked for (breaker.h); 0: unknown */
};

/* TIDE_INVALID: the profile contradicts itself.  `mem` is borrowed and outlives
 * the governor. */
tide_status tide_governor_new(const struct tide_governor_profile *profile, uint64_t now_ms,
                              tide_mem *mem, tide_governor **governor_out);
void tide_governor_free(tide_governor *governor); /* NULL is fine */

/* Charges every call to `limit` too, which is borrowed and outlives the governor.  TIDE_FULL: it
 * has TIDE_LIMITS_PER_ACCOUNT already; TIDE_BUSY: calls are in flight. */
tide_status tide_governor_limit_add(tide_governor *governor, struct tide_limit *limit);

/* May a call of `units` at `level` (1: a user waits ... 4) be sent now?  TIDE_OK: charged, and
 * in flight until tide_governor_answered().  TIDE_AGAIN: `*again_at_ms_out` says when to ask
 * (UINT64_MAX: on the next answer, save or command).  TIDE_STOPPED: halted.  TIDE_INVALID: it
 * can never fit. */
tide_status tide_governor_charge(tide_governor *governor, uint64_t now_ms, unsigned level,
                                 uint32_t units, uint64_t *again_at_ms_out);
/* Like tide_governor_charge() for a batch, charged as a whole before it is sent (E4.4). */
tide_status tide_governor_charge_batch(tide_governor *governor, uint64_t now_ms, unsigned level,
                                       uint32_t units, uint32_t calls, uint64_t *again_at_ms_out);
/* Exactly once per charge: it was answered (or given up), or it was never sent. */
void tide_governor_answered(tide_governor *governor, uint64_t now_ms,
                            const struct tide_answer *answer, tide_rng *rng);
void tide_governor_uncharge_batch(tide_governor *governor, uint64_t now_ms, uint32_t units,
                                  uint32_t calls);

/* How many jobs of this account may run at once: enough that one slow call in a hundred leaves
 * no unit unused, ceil(rate * p99 latency), within the AIMD workers and the calls in flight
 * (E4.3a). 0 while halted or the breaker is open, 1 while it is half-open. */
unsigned tide_governor_jobs_max(tide_governor *governor, uint64_t now_ms);
/* When jobs_max changes by time alone, or a call of typical cost at level 4 will fit.
 * UINT64_MAX: time changes nothing (it may fit already). */
uint64_t tide_governor_wake_at_ms(const tide_governor *governor, uint64_t now_ms);

/* Sets the account's waiting jobs. */
void tide_governor_demand(tide_governor *governor, const struct tide_demand *demand);

/* By command (E4.6).  The reason is copied.  Calls in flight still end normally. */
void tide_governor_halt(tide_governor *governor, const char *reason);
/* Also ends a pause and closes the breaker. */
void tide_governor_resume(tide_governor *governor, uint64_t now_ms);
/* The account was signed in again: ends a pause or an open breaker caused by the sign-in, and no
 * other.  Returns whether there was one. */
bool tide_governor_signed_in(tide_governor *governor, uint64_t now_ms);
/* For a cause found elsewhere (network, disk, sign-in): one pause, then one probe (E7.2).  An
 * earlier end than the present one is ignored. */
void tide_governor_pause(tide_governor *governor, uint64_t until_ms, tide_status why);
/* New settings at run time (E11); the position of AIMD is kept within the new
 * bounds.  TIDE_INVALID: contradictory, or another window length; nothing
 * changed. */
tide_status tide_governor_limits_set(tide_governor *governor,
                                     const struct tide_governor_profile *profile);

/* Saving: when a save is due (UINT64_MAX: not), taking one, and the report that the one taken at
 * `saved_at_ms` is on disk.  Without a window nothing has to be saved before units are spent. */
uint64_t tide_governor_save_at_ms(const tide_governor *governor);
bool tide_governor_save_due(const tide_governor *governor, uint64_t now_ms);
void tide_governor_save(tide_governor *governor, uint64_t now_ms, uint64_t now_unix_ms,
                        struct tide_governor_saved *saved_out);
void tide_governor_saved(tide_governor *governor, uint64_t saved_at_ms);
/* Into a new governor, before its first call.  `now_ms` here and in tide_governor_save()
 * counts since the machine's boot.  TIDE_CORRUPT: nothing changed. */
tide_status tide_governor_restore(tide_governor *governor, const struct tide_governor_saved *saved,
                                  uint64_t now_ms, uint64_t now_unix_ms);

enum tide_governor_state {
    TIDE_GOVERNOR_RUNNING,
    TIDE_GOVERNOR_PAUSED,  /* after a refusal, or by tide_governor_pause() */
    TIDE_GOVERNOR_OPEN,    /* the breaker, after failures */
    TIDE_GOVERNOR_PROBING, /* one call at a time, after either */
    TIDE_GOVERNOR_HALTED,
};

/* The state alone; why and until when are those of a pause or an open breaker. */
enum tide_governor_state tide_governor_state(const tide_governor *governor, uint64_t now_ms,
                                             tide_status *why_out, uint64_t *until_ms_out);

/* State for display (E9.1). */
struct tide_governor_view {
    enum tide_governor_state state;
    const char *reason;   /* of a halt; borrowed until the next call */
    tide_status why;      /* of a pause or an open breaker */
    uint64_t until_ms;    /* of the same */
    double rate;          /* units per second, now */
    double rate_max;      /* the ceiling */
    double tokens;        /* left in the bucket */
    uint64_t window_used; /* units; 0 without a window */
    uint64_t window_max;
    uint64_t lease_left;    /* units that may be spent before a save; without a window 0 */
    unsigned in_flight;     /* calls */
    unsigned in_flight_max; /* including the learned limit */
    unsigned workers;       /* AIMD */
    uint64_t day_bytes;     /* 0 unless the profile learns it */
    uint64_t day_bytes_max; /* learned; 0: none */
    uint64_t calls;         /* answered */
    uint64_t calls_by_class[TIDE_CLASS_BUG + 1]; /* [TIDE_CLASS_THROTTLED] were refused */
    uint64_t cuts;                               /* how often AIMD halved */
    uint32_t p50_ms;
    uint32_t p95_ms;
    uint32_t p99_ms;
};
void tide_governor_view(const tide_governor *governor, uint64_t now_ms,
                        struct tide_governor_view *view_out);
/* Of one method; borrowed. */
const tide_latency *tide_governor_latency(const tide_governor *governor, uint32_t method);

bool tide_governor_check(const tide_governor *governor, uint64_t now_ms);

#endif
