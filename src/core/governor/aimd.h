/* aimd.h - how fast, and with how many workers: slowly up, quickly down (E4.2).
 *
 * Healthy time of `healthy_ms`, begun by an answer, raises the pace by
 * max(half a call, 5 % of the ceiling) and the workers by one; a refusal, or a
 * method gone slow, halves both.  (The profile has these numbers; here are its
 * defaults.)  It knows nothing of windows or pauses: what is
 * legal and when to try again are decided elsewhere.
 *
 * Three refinements.  Calls that were out at a cut say nothing about the new
 * pace.  Refusals with no success in between cut once: they say that the door is
 * shut, not that we walk too fast; so the pace after a storm is half the pace
 * before it, and 90 % is reached within a minute (E4.3).  Below half of the
 * ceiling the pace doubles, up to that half.
 *
 * Invariant (tide_aimd_check()):
 *   A1  rate and workers stay between the bounds of the profile.
 */
#ifndef TIDE_CORE_AIMD_H
#define TIDE_CORE_AIMD_H

#include "core/governor/profile.h"

#include <stdbool.h>
#include <stdint.h>

/* What waits for the account, for the rules on growing. */
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
/* Takes a position, or keeps the present one, within the profile's bounds. */
void tide_aimd_set(tide_aimd *aimd, double rate, unsigned workers);

/* true: the time of health is full; the caller ends it by growing or cutting. */
bool tide_aimd_succeeded(tide_aimd *aimd, uint64_t now_ms, uint64_t sent_ms, uint64_t bytes);
/* true: it was a lesson, and the pace was cut. */
bool tide_aimd_refused(tide_aimd *aimd, uint64_t now_ms, uint64_t sent_ms);
/* The provider failed a call.  A few failures are part of life and do not keep the
 * pace down; more than one in ten are no health. */
void tide_aimd_failed(tide_aimd *aimd);
/* Something else went wrong: no growth for now. */
void tide_aimd_unhealthy(tide_aimd *aimd);
void tide_aimd_cut(tide_aimd *aimd, uint64_t now_ms);
void tide_aimd_grow(tide_aimd *aimd, uint64_t now_ms, const struct tide_demand *demand);
bool tide_aimd_check(const tide_aimd *aimd);

#endif
