/* campaign.h - the program of a campaign with faults that must happen and bugs on purpose.
 *
 *     NAME --seed N [--plant NAME]
 *     NAME --seeds A..B [--jobs N] [--faults]   --faults: each fault must have happened
 *     NAME --plants                             bugs on purpose, each must be found */
#ifndef TIDE_TESTS_SIM_CAMPAIGN_H
#define TIDE_TESTS_SIM_CAMPAIGN_H

#include "seeds/seeds.h"

struct seeds_campaign {
    const char *name; /* of the program */
    /* Of one seed and of all, uint64_t alone; counts of faults begin at `faults_at`. */
    size_t totals_bytes, faults_at;
    const char *const *fault_names;
    int faults_count;
    uint64_t
        faults_scale; /* per cent of the seeds with which each fault happens (support/scale.h) */
    /* Number 0 is none; the rule that must find each. */
    const char *const *plant_names, *const *plant_rules;
    int plants_count;
    uint64_t plant_seeds; /* within which each must be found */
    /* One seed; aborts on failure. */
    void (*run)(uint64_t seed, int plant, void *totals);
    /* Prints a line of totals; how many numbers are 0 and should not be. */
    int (*report)(const void *totals);
    /* Before and after seeds run; false: they cannot.  NULL: nothing. */
    bool (*begin)(void);
    void (*end)(void);
};

/* The exit code. */
int seeds_campaign_main(const struct seeds_campaign *campaign, int argc, char **argv);

#endif
