/* seeds.h - runs many seeds of a simulated world, in a few processes (E10.2, M15).
 *
 * Each seed has a process of its own, so that one that breaks a rule, hangs or crashes harms no
 * other.  For a seed that fails, the command that replays it and the end of its report are
 * printed, and the others continue. */
#ifndef TIDE_TESTS_SIM_SEEDS_H
#define TIDE_TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SEEDS_JOBS_MAX = 64,
    SEEDS_FAILED_MAX = 50,
    SEED_SECONDS_MAX = 240, /* of the wall: a seed that takes longer hangs */
};

struct seeds_world {
    const char *replay;    /* the command that --seed N is appended to */
    const uint64_t *named; /* seeds that failed once; they run first */
    size_t named_count;
    size_t result_bytes; /* of one seed's result */
    /* In a process of its own; standard error is the seed's report.  Aborts or exits on failure. */
    void (*run)(uint64_t seed, void *result, void *arg);
    /* In the caller's process, after a seed that passed. */
    void (*add)(uint64_t seed, const void *result, void *arg);
    void *arg;
};

struct seeds {
    uint64_t next, end; /* end is not included */
    uint32_t jobs;      /* processes at once */
    bool named;         /* run the named ones too */
    uint32_t seconds_max;
    size_t failed_max; /* stop after so many */
    /* Bugs on purpose: only a failure whose report has this text counts, and none is printed. */
    const char *wanted;

    uint64_t finished;
    size_t failed_count;
    uint64_t failed[SEEDS_FAILED_MAX];
    char why[200]; /* the rule that the last counted failure broke */
    double took_s;
};

#define SEEDS_DEFAULT                                                                              \
    {                                                                                              \
        .jobs = 2, .seconds_max = SEED_SECONDS_MAX, .failed_max = SEEDS_FAILED_MAX                 \
    }

void seeds_run(const struct seeds_world *world, struct seeds *seeds);
/* Takes --seeds A..B or --jobs N at argv[*i]; false: it is neither, or wrong. */
bool seeds_option(struct seeds *seeds, int argc, char **argv, int *i);
/* Whether there is a range and a valid number of processes.  Scales the range
 * (support/scale.h). */
bool seeds_ready(struct seeds *seeds);
/* Prints how to replay each; the exit code. */
int seeds_verdict(const struct seeds_world *world, const struct seeds *seeds);

/* Adds the totals of a seed to `all`, both structures of uint64_t alone: numbers before the offset
 * `largest_from` are summed, of the others the larger one stays. */
void seeds_totals(void *all, const void *one, size_t bytes, size_t largest_from);

#endif
