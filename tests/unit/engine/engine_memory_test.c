/* Goal: an engine that makes its own world opens and starts, or says why not and leaves nothing
 * behind: no crash, no block, no handle, no lock on the state directory (E7.2).
 * Method: the linker replaces tide_mem_heap(); in the n-th run the n-th allocation fails.
 * memory_sim_test does the same to a whole life of the engine, but gives it a simulated world. */
#include "unit/engine/engine_fixture.h"

#include <stdatomic.h>

tide_mem *__real_tide_mem_heap(void);
tide_mem *__wrap_tide_mem_heap(void);

static atomic_bool failing, fired;
static atomic_uint count, fail_at;
static atomic_long blocks; /* that live */

static void *resize(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes)
{
    tide_mem *heap = __real_tide_mem_heap();
    (void)mem;
    if (new_bytes > 0 && atomic_load(&failing) &&
        atomic_fetch_add(&count, 1) == atomic_load(&fail_at)) {
        atomic_store(&fired, true);
        return NULL;
    }
    void *block = heap->resize(heap, old, old_bytes, new_bytes);
    atomic_fetch_add(&blocks, (old == NULL && block != NULL) - (old != NULL && new_bytes == 0));
    return block;
}
static tide_mem failing_mem = {resize};

tide_mem *__wrap_tide_mem_heap(void)
{
    return &failing_mem;
}

static void fail_the(unsigned number)
{
    atomic_store(&fired, false);
    atomic_store(&count, 0);
    atomic_store(&fail_at, number);
    atomic_store(&failing, true);
}

static tide_status open_alone(struct fixture *f, tide_engine **engine, tide_error *err)
{
    static const char *const set[] = {"workers.count=5", "log.level=error", NULL};
    const struct tide_engine_options options = {.state_dir = f->dir, .set = set};
    *engine = (tide_engine *)(void *)f; /* must not stay */
    return tide_engine_open(&options, engine, err);
}

static void check_refusal(const char *what, unsigned number, tide_status rc, const tide_error *err)
{
    if (rc != TIDE_NO_MEMORY || err->text[0] == '\0')
        fail_msg("allocation %u fails, and %s says %s: \"%s\"", number, what, tide_status_name(rc),
                 err->text);
}

/* One life up to the start.  false: it made fewer allocations than that. */
static bool live(struct fixture *f, unsigned number)
{
    uint64_t ran = 0;
    uint32_t kind = 0;
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    const long before = atomic_load(&blocks);
    fail_the(number);
    tide_status rc = open_alone(f, &engine, &err);
    if (rc != TIDE_OK) {
        check_refusal("open", number, rc, &err);
        assert_null(engine);
    } else {
        const struct tide_kind counted = {
            .name = "count", .handler = count_handler, .context = &ran};
        rc = tide_engine_kind(engine, &counted, &kind, &err);
        if (rc == TIDE_OK)
            rc = tide_engine_start(engine, &err);
        if (rc != TIDE_OK)
            check_refusal("the start", number, rc, &err);
    }
    assert_int_equal(tide_engine_close(engine), TIDE_OK); /* also if there is none */
    atomic_store(&failing, false);
    if (atomic_load(&blocks) != before)
        fail_msg("allocation %u fails, and %ld blocks are left", number,
                 atomic_load(&blocks) - before);
    return atomic_load(&fired);
}

CASE(an_engine_opens_and_starts_or_leaves_nothing_behind)
{
    unsigned number = 0;
    while (live(f, number))
        number++;
    print_message("%u allocations failed, one in each run\n", number);
    assert_true(number > 20);
}

/* Whatever refuses it: what a caller closes after that must be nothing. */
CASE(an_engine_that_does_not_open_is_none)
{
    const struct tide_engine_options odd[] = {
        {.state_dir = f->dir, .reserved = {1}},
        {.state_dir = NULL},
        {.state_dir = f->dir, .workers = TIDE_WORKERS_MAX + 1},
        {.state_dir = f->dir, .set = (const char *const[]){"no.such=1", NULL}},
        {.state_dir = f->dir, .ledger = "postgresql://127.0.0.1:1/none"},
    };
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        tide_error err = {TIDE_OK, 0, ""};
        tide_engine *engine = (tide_engine *)(void *)f; /* must not stay */
        assert_int_not_equal(tide_engine_open(&odd[i], &engine, &err), TIDE_OK);
        assert_null(engine);
    }
}
