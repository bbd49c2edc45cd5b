/* job_items.c - the items of a job's payload, as a handler sees them (E6).  The payload was
 * checked when it was enqueued, but it is read from a file. */
#include "fuzz.h"
#include "engine/engine.h"

static tide_engine engine; /* too large for a stack */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tide_error err = {TIDE_OK, 0, ""};
    if (engine.world == NULL) {
        engine.mem = tide_mem_heap();
        TIDE_ASSERT(tide_world_real_new(engine.mem, &engine.world, &err) == TIDE_OK);
    }
    struct tide_job_body body = {.id = 1};
    body.payload = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_job job = {.engine = &engine, .body = &body};
    tide_arena_init(&job.arena, engine.mem, 64 << 20);

    size_t count = tide_job_items(&job);
    TIDE_ASSERT(count <= TIDE_ITEMS_MAX);
    for (size_t i = 0; i < count; i++) {
        tide_text item = tide_job_item(&job, i);
        TIDE_ASSERT(item.data[item.bytes] == '\0');
        TIDE_ASSERT(tide_job_item_open(&job, i));
        if (i % 2 == 0)
            tide_job_item_done(&job, i);
        else
            tide_job_item_failed(&job, i, TIDE_SERVER, item.data);
        TIDE_ASSERT(!tide_job_item_open(&job, i));
    }
    TIDE_ASSERT(tide_job_items(&job) == count);
    tide_arena_done(&job.arena);
    free((void *)(uintptr_t)body.payload.data);
    return 0;
}
