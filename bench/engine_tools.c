#include "engine_tools.h"

enum { SPECS = 5000 };

tide_engine *engine_open(const struct tide_engine_options *options)
{
    tide_engine *engine = NULL;
    tide_error err = {.text = ""};
    must(tide_engine_open(options, &engine, &err), "open", &err);
    return engine;
}

void engine_start(tide_engine *engine)
{
    tide_error err = {.text = ""};
    must(tide_engine_start(engine, &err), "start", &err);
}

void engine_close(tide_engine *engine)
{
    tide_error err = {.text = "a handler did not return"};
    must(tide_engine_close(engine), "close", &err);
}

uint32_t engine_kind(tide_engine *engine, const struct tide_kind *kind)
{
    uint32_t id = 0;
    tide_error err = {.text = ""};
    must(tide_engine_kind(engine, kind, &id, &err), "kind", &err);
    return id;
}

static tide_status nothing(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)context;
    (void)err;
    return TIDE_OK;
}

const struct tide_kind kind_none = {.name = "bench.none", .handler = nothing};

void enqueue(tide_engine *engine, const struct tide_spec *specs, size_t count)
{
    tide_error err = {.text = ""};
    must(tide_enqueue(engine, specs, count, NULL, &err), "enqueue", &err);
}

void enqueue_many(tide_engine *engine, uint32_t kind, size_t count, bool dedupe)
{
    static struct tide_spec specs[SPECS];
    static char keys[SPECS][24];
    static char payloads[SPECS][32];
    for (size_t first = 0; first < count; first += SPECS) {
        const size_t slice = count - first < SPECS ? count - first : SPECS;
        for (size_t i = 0; i < slice; i++) {
            (void)snprintf(keys[i], sizeof keys[i], "message-%08zu", first + i);
            (void)snprintf(payloads[i], sizeof payloads[i], "{\"message\":%zu}", first + i);
            specs[i] = (struct tide_spec){
                .kind = kind, .dedupe = dedupe ? keys[i] : NULL, .payload = payloads[i]};
        }
        enqueue(engine, specs, slice);
    }
}

/* ---- latency ---- */

static tide_status ring(tide_job *job, void *context, tide_error *err)
{
    struct bell *bell = context;
    bell->started_us = now_us();
    (void)job;
    (void)err;
    (void)sem_post(&bell->rung);
    return TIDE_OK;
}

void bell_init(struct bell *bell)
{
    (void)sem_init(&bell->rung, 1, 0);
}

struct tide_kind bell_kind(struct bell *bell)
{
    return (struct tide_kind){
        .name = "bench.ring", .handler = ring, .context = bell, .lane = TIDE_KIND_INTERACTIVE};
}

void semaphore_wait(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

uint64_t ring_once(tide_engine *engine, uint32_t kind, struct bell *bell)
{
    const uint64_t asked_us = now_us();
    enqueue(engine, &(struct tide_spec){.kind = kind}, 1);
    semaphore_wait(&bell->rung);
    return bell->started_us - asked_us;
}
