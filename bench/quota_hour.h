/* quota_hour.h - an hour under Gmail's quota of 2026 in the simulated world: the cloud in a box
 * with one mailbox, what its referee counted, and the rules of E4.3. */
#ifndef TIDE_BENCH_QUOTA_HOUR_H
#define TIDE_BENCH_QUOTA_HOUR_H

#include "bench.h"
#include "sim.h"
#include "sim_cloud.h"

#define HOUR_USER  "ada@example.com"
#define HOUR_TOKEN "tok"

enum {
    UNITS_PER_MINUTE = 6000,
    GET_UNITS = 20,
    WARM_UP_MS = 120000, /* until the first windows are full */
};

struct hour {
    tide_sim *sim;
    tide_world *world;
    tide_sim_cloud *cloud;
    box_mailbox *mailbox; /* the cloud's */
    /* Sees each call as it reaches the server; NULL after hour_begin(). */
    void (*seen)(void *arg, const struct tide_request *request);
    void *seen_arg;
};

/* What the cloud's referee counted. */
struct truth {
    uint64_t calls;
    uint64_t used;    /* units of calls that were admitted */
    uint64_t gotten;  /* units of messages that arrived */
    uint64_t crossed; /* calls that a window refused */
    uint64_t refused;
    uint64_t highest; /* units in any 60 s, granted or not */
    uint64_t fetched_again;
};

/* The caller's hour stays where it is: the simulated network refers to it. */
void hour_begin(struct hour *hour, uint64_t seed, uint32_t messages, uint32_t size_bytes);
void hour_end(struct hour *hour);
void pass(const struct hour *hour, uint64_t ms);
struct truth truth_of(const struct hour *hour);
/* Replaces the cloud's faults by these. */
void faults(const struct hour *hour, const char *const *rules, size_t count);

/* Measures `minutes`, then a storm and the recovery from it; prints figures with
 * this prefix.  True: E4.3 holds. */
bool hour_steady(const struct hour *hour, uint64_t minutes, const char *prefix);
/* Kills `runs` runs after 40 to 80 s each, and calls `end` in the dead world.  Prints figures with
 * this prefix.  True: no window was exceeded (E4.3b). */
bool hour_killed(const struct hour *hour, uint64_t seed, uint64_t runs, const char *prefix,
                 void (*begin)(uint64_t run, void *arg), void (*end)(void *arg), void *arg);

#endif
