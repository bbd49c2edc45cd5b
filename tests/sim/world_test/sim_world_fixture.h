/* sim_world_fixture.h - what every file of the tests of the simulated world needs: a world
 * with a lock and a condition that threads share, what such threads do, and short ways to
 * SQLite and to the provider. */
#ifndef TIDE_TESTS_SIM_WORLD_FIXTURE_H
#define TIDE_TESTS_SIM_WORLD_FIXTURE_H

#include "sim.h"

#include "base/check.h"
#include "support/scale.h"
#include "support/test.h"

#include <inttypes.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a world and what its threads share ---- */

enum { COUNTERS = 6, ROUNDS = 200 };

struct shared {
    tide_sim *sim;
    tide_world *world;
    tide_lock *lock;
    tide_cond *cond;
    uint64_t count;
    uint32_t inside;
    uint32_t waiting;
    uint32_t woken;
    uint32_t timeouts;
    uint32_t stopped;
    bool go;
    tide_cancel cancel;
};

void shared_init(struct shared *shared, uint64_t seed, const struct tide_sim_options *options);
void shared_done(struct shared *shared);
tide_thread *start(struct shared *shared, const char *name, void (*run)(void *arg), void *arg);
/* Lets every other thread run until it waits. */
void let_them_run(struct shared *shared);

/* Bodies of threads; the argument is the struct shared. */
void count_up(void *arg);
void wait_for_go(void *arg);
void beat_on(void *arg);
void sleep_long(void *arg);

/* ---- the disk and the provider ---- */

int sql_run(sqlite3 *db, const char *sql);
/* A request, its answer as JSON (NULL: not even that) and its HTTP code. */
json_t *ask(tide_sim *sim, const char *method, const char *path, tide_text body, int *http_out);

#endif
