/* aimd.h - learns an account's rate and worker count: slowly up, quickly down (E4.2).
 *
 * Healthy time of `healthy_ms`, begun by an answer, raises the rate by max(half a call, 5 %
 * of the ceiling) and the workers by one; a refusal, or a method that became slow, halves
 * both.  (These are the defaults; the profile has the numbers.)  It knows nothing of windows
 * or pauses: other modules decide what is allowed and when to try again.
 *
 * Three refinements.  Calls that were in flight at a cut say nothing about the new rate.
 * Refusals with no success in between cut once: they mean that the provider refuses
 * everything, not that the rate is too high.  So the rate after such a series is half the
 * rate before it, and 90 % is reached within a minute (E4.3).  Below half of the ceiling the
 * rate doubles, up to that half.
 *
 * Invariant (tide_aimd_check()):
 *   AIMD1  rate and workers stay between the bounds of the profile.
 */
#ifndef TIDE_CORE_AIMD_H
#define TIDE_CORE_AIMD_H

#include "core/governor/profile.h"

#include <stdbool.h>
#include <stdint.h>

/* The account's waiting jobs, for the growth rules. */
struct tide_demand {
    uint32_t jobs;
    uint32_t small; /* of them below 1 MB: with more than small_jobs of these, workers double */
    uint32_t large; /* of them above 100 MB: fewer than large_jobs jobs, all large, and a
                     * worker must raise the byte rate to stay */
};

typedef struct tide_aimd {
    const struct tide_governor_profile *profile; /* complete; borrowed */
    double rate;                                 /* units per second */
    unsigned workers;
    uint64_t healthy_since_ms;
    uint64_t healthy_answers;
    uint64_t healthy_bytes;
    uint64_t healthy_failed; /* calls the provider failed meanwhile */
    uint64_t cuts;
    uint64_t cut_ms; /* the last one */
    bool succeeded_since_cut;
    double bytes_rate_best; /* with as many workers as now, or fewer */
    unsigned workers_on_trial;
} tide_aimd;

void tide_aimd_init(tide_aimd *aimd, const struct tide_governor_profile *profile);
/* Sets rate and workers, or keeps the present ones, within the profile's bounds. */
void tide_aimd_set(tide_aimd *aimd, double rate, unsigned workers);

/* true: healthy_ms have passed; the caller grows or cuts, which starts it again. */
bool tide_aimd_succeeded(tide_aimd *aimd, uint64_t now_ms, uint64_t sent_ms, uint64_t bytes);
/* true: the rate was cut. */
bool tide_aimd_refused(tide_aimd *aimd, uint64_t now_ms, uint64_t sent_ms);
/* The provider failed a call.  A few failures are normal and do not stop growth; more than one
 * in ten do. */
void tide_aimd_failed(tide_aimd *aimd);
/* Another failure: no growth for now. */
void tide_aimd_unhealthy(tide_aimd *aimd);
void tide_aimd_cut(tide_aimd *aimd, uint64_t now_ms);
void tide_aimd_grow(tide_aimd *aimd, uint64_t now_ms, const struct tide_demand *demand);
bool tide_aimd_check(const tide_aimd *aimd);

#endif
