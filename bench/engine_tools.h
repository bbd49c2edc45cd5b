/* engine_tools.h - the engine for benchmarks: each call succeeds or ends the program. */
#ifndef TIDE_BENCH_ENGINE_TOOLS_H
#define TIDE_BENCH_ENGINE_TOOLS_H

#include "bench.h"
#include "tidemark.h"

#include <semaphore.h>

tide_engine *engine_open(const struct tide_engine_options *options);
void engine_start(tide_engine *engine);
void engine_close(tide_engine *engine);
uint32_t engine_kind(tide_engine *engine, const struct tide_kind *kind);

extern const struct tide_kind kind_none; /* its handler does nothing */

void enqueue(tide_engine *engine, const struct tide_spec *specs, size_t count);
/* `count` jobs with payloads, in calls of 5,000. */
void enqueue_many(tide_engine *engine, uint32_t kind, size_t count, bool dedupe);

/* An interactive kind that records when its handler starts; processes may share the bell. */
struct bell {
    sem_t rung;
    _Atomic uint64_t started_us;
};

void bell_init(struct bell *bell);
struct tide_kind bell_kind(struct bell *bell);
void semaphore_wait(sem_t *semaphore);
/* Microseconds from the call of tide_enqueue() to the first line of the handler. */
uint64_t ring_once(tide_engine *engine, uint32_t kind, struct bell *bell);

#endif
