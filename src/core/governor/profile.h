/* profile.h - a provider's limits as known before the first call.
 *
 * A profile is plain numbers: zero means "the default", so that a user's
 * settings name only what they change.  tide_profile_complete() fills the
 * zeros in and refuses contradictions; a governor only sees complete ones.
 * What is known of each provider is in engine/providers.c.
 */
#ifndef TIDE_CORE_PROFILE_H
#define TIDE_CORE_PROFILE_H

#include "base/status.h"
#include "core/governor/breaker.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_governor_profile {
    uint32_t window_ms;        /* 0: no published window */
    uint64_t window_units_max; /* in any window; goes with window_ms */
    double rate_min;           /* units per second [1 call] */
    double rate_start;         /* [4 calls, or four fifths of the ceiling] */
    double rate_max;           /* [16 calls, or what the window allows] */
    unsigned in_flight_max;    /* calls, every part of a batch counts [32] */
    /* Jobs at once while nothing was refused, however few the latency of calls asks for; 0: one.  For jobs that take longer
     * than a call: a few large files must not keep all others waiting (D7). */
    unsigned jobs_min;
    unsigned workers_min;             /* [2] */
    unsigned workers_start;           /* [8] */
    unsigned workers_max;             /* [32] */
    unsigned reserve_permille;        /* of the window, for level 1 (K15) [none] */
    unsigned share_permille;          /* of the window, that we may use (E4.3) [1000] */
    uint32_t call_units;              /* of a typical call [1] */
    uint32_t healthy_ms;              /* healthy time before growing (E4.2) [5000] */
    unsigned workers_step;            /* workers added then [1] */
    unsigned rate_step_permille;      /* share of the ceiling added to the rate [50] */
    unsigned rate_step_call_permille; /* at least this share of a call [500] */
    unsigned cut_permille;            /* share of both that remains after a refusal [500] */
    uint32_t latency_max_ms;          /* a p95 up to this is never slow (E4.2) [1200] */
    unsigned latency_factor_permille; /* nor one up to this multiple of the best p50 [3000] */
    uint32_t small_jobs;              /* more small jobs than this: workers double [100] */
    uint32_t large_jobs;              /* fewer jobs than this, all large: bytes decide [4] */
    uint32_t spend_lease_ms;          /* units of this time may be spent unsaved (E4.3b) [2000] */
    uint32_t save_every_ms;           /* while units are spent [500] */
    uint32_t stray_ms;                /* a call may be counted this long after hanging up [10000] */
    bool learn_bytes_per_day;         /* the provider has an unpublished daily byte quota (E4.3) */
    struct tide_breaker_rules breaker;
};

/* TIDE_INVALID: the numbers contradict each other. */
tide_status tide_profile_complete(const struct tide_governor_profile *profile,
                                  struct tide_governor_profile *complete_out);

#endif
