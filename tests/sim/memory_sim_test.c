/* Goal: no allocation of the engine that fails loses work, hangs or leaks (E1.6, E7.2).
 * Method: one small run of the engine in the simulated world, repeated; in the n-th repetition
 * the n-th allocation fails, of each of the three sources that the engine uses: its own
 * (tide_mem_heap, which the linker replaces), jansson's and SQLite's.  Whatever that run says, the
 * next one has memory, and must find every item that the first one took over. */
#include "engine/engine.h"
#include "sim.h"
#include "support/scale.h"
#include "support/test.h"

#include <inttypes.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory that fails once --------------------------------------------------------------- */

enum source { SOURCE_ENGINE, SOURCE_JSON, SOURCE_SQLITE, SOURCES };
static const char *const source_names[SOURCES] = {"engine", "jansson", "sqlite"};

/* One thread runs at a time in the simulated world, so nothing of this needs a lock. */
static struct {
    bool on;
    enum source source;
    uint64_t fail_at, count[SOURCES];
    bool fired;
    int64_t blocks; /* that live, of the engine's own */
} fault;

static bool fails(enum source source)
{
    if (!fault.on)
        return false;
    const uint64_t number = fault.count[source]++;
    if (source != fault.source || number != fault.fail_at)
        return false;
    fault.fired = true;
    return true;
}

tide_mem *__real_tide_mem_heap(void);
tide_mem *__wrap_tide_mem_heap(void);

static void *engine_resize(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes)
{
    tide_mem *heap = __real_tide_mem_heap();
    (void)mem;
    if (new_bytes > 0 && fails(SOURCE_ENGINE))
        return NULL;
    void *block = heap->resize(heap, old, old_bytes, new_bytes);
    fault.blocks += (old == NULL && block != NULL) - (old != NULL && new_bytes == 0);
    return block;
}
static tide_mem engine_mem = {engine_resize};

tide_mem *__wrap_tide_mem_heap(void)
{
    return &engine_mem;
}

static void *json_take(size_t bytes)
{
    return fails(SOURCE_JSON) ? NULL : malloc(bytes);
}

static sqlite3_mem_methods sqlite_real;

static void *sqlite_take(int bytes)
{
    return fails(SOURCE_SQLITE) ? NULL : sqlite_real.xMalloc(bytes);
}

static void *sqlite_resize(void *old, int bytes)
{
    return fails(SOURCE_SQLITE) ? NULL : sqlite_real.xRealloc(old, bytes);
}

static void sources_set(void)
{
    json_set_alloc_funcs(json_take, free);
    sqlite3_mem_methods methods;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_real), SQLITE_OK);
    methods = sqlite_real;
    methods.xMalloc = sqlite_take;
    methods.xRealloc = sqlite_resize;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods), SQLITE_OK);
}

/* ---- the work ------------------------------------------------------------------------------- */

enum { ITEMS = 12 };

struct run {
    tide_sim *sim;
    tide_world *world;
    uint64_t seen[ITEMS]; /* how often each was stored */
    bool taken_over;      /* the enqueue said TIDE_OK */
};

/* Item 5 is bad by itself.  A batch with item 9 fails as a whole until it is alone, so that
 * batches are split; item 7 goes alone at its first attempt. */
static tide_status handle(tide_job *job, void *context, tide_error *err)
{
    struct run *run = context;
    const size_t count = tide_job_items(job);
    for (size_t i = 0; i < count; i++)
        if (strcmp(tide_job_item(job, i).data, "i9") == 0 && count > 1)
            return tide_error_set(err, TIDE_SERVER, "this batch cannot be read");
    for (size_t i = 0; i < count; i++) {
        const uint64_t number = strtoull(tide_job_item(job, i).data + 1, NULL, 10);
        if (!tide_job_item_open(job, i))
            continue;
        if (number == 5) {
            tide_job_item_failed(job, i, TIDE_PERMANENT, "cannot be stored");
        } else if (number == 7 && tide_job_attempt(job) == 1) {
            tide_job_item_failed(job, i, TIDE_SERVER, "not now");
        } else {
            run->seen[number]++;
            tide_job_item_done(job, i);
        }
    }
    return TIDE_OK;
}

static tide_status enqueue_all(struct run *run, tide_engine *engine, uint32_t kind,
                               uint32_t account, tide_error *err)
{
    char payload[256] = "{\"items\":[";
    for (int i = 0; i < ITEMS; i++)
        (void)snprintf(payload + strlen(payload), sizeof payload - strlen(payload), "%s\"i%d\"",
                       i == 0 ? "" : ",", i);
    (void)snprintf(payload + strlen(payload), sizeof payload - strlen(payload), "]}");
    const struct tide_spec spec = {
        .kind = kind, .account = account, .payload = payload, .dedupe = "all"};
    tide_status rc = tide_enqueue(engine, &spec, 1, NULL, err);
    run->taken_over = run->taken_over || rc == TIDE_OK;
    return rc;
}

struct found {
    uint64_t bad, unfinished;
};

static tide_status look(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct found *found = arg;
    sqlite3_stmt *stmt = NULL;
    (void)err;
    assert_int_equal(sqlite3_prepare_v2(tide_tx_sqlite(transaction->tx),
                                        "SELECT (SELECT count(*) FROM bad WHERE item = 'i5'),"
                                        " (SELECT count(*) FROM job WHERE state <> 2)",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    found->bad = (uint64_t)sqlite3_column_int64(stmt, 0);
    found->unfinished = (uint64_t)sqlite3_column_int64(stmt, 1);
    (void)sqlite3_finalize(stmt);
    return TIDE_OK;
}

static bool verbose; /* show the engine's log */

enum { DAY_MS = 86400000 };

/* One process: open, define, take the work over unless it was, run to the end, close. */
static tide_status live(struct run *run, bool faulty, struct found *found, tide_error *err)
{
    tide_engine *engine = NULL;
    uint32_t kind = 0, account = 0;
    tide_settings *settings = NULL;
    const struct tide_settings_sources sources = {.file = NULL};
    tide_status rc =
        tide_settings_load(run->world, &sources, __real_tide_mem_heap(), &settings, err);
    assert_int_equal(rc, TIDE_OK);
    fault.on = faulty;
    tide_log log;
    tide_log_init(&log, TIDE_LOG_DEBUG, TIDE_LOG_PLAIN, "-", tide_log_to_file, stderr);
    const struct tide_engine_options options = {.state_dir = "/state",
                                                .workers = 3,
                                                .world = run->world,
                                                .settings = settings,
                                                .log = verbose ? &log : NULL,
                                                .no_control_socket = true};
    rc = tide_engine_open(&options, &engine, err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind(
            engine,
            &(struct tide_kind){.name = "store", .handler = handle, .context = run, .items = true},
            &kind, err);
    if (rc == TIDE_OK)
        rc = tide_engine_account(engine, "a@example.org", "default", &account, err);
    if (rc == TIDE_OK && !run->taken_over)
        rc = enqueue_all(run, engine, kind, account, err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(engine, err);
    if (rc == TIDE_OK)
        rc = tide_engine_wait(engine, DAY_MS, err);
    fault.on = false;
    if (rc == TIDE_OK)
        rc = tide_transact(engine, look, found, err);
    fault.on = faulty;
    const tide_status closed = tide_engine_close(engine);
    fault.on = false;
    tide_settings_free(settings);
    return rc == TIDE_OK ? closed : rc;
}

/* false: the run made fewer allocations than that. */
static bool run_failing(enum source source, uint64_t fail_at)
{
    const int64_t blocks_before = fault.blocks;
    const struct tide_sim_options options = {.yield_permille = 100};
    struct run run = {.sim = tide_sim_new(7 + fail_at % 5, &options)};
    tide_error err = {TIDE_OK, 0, ""};
    struct found found = {0, 0};
    run.world = tide_sim_world(run.sim);
    fault.source = source;
    fault.fail_at = fail_at;
    fault.fired = false;
    memset(fault.count, 0, sizeof fault.count);
    const tide_status first = live(&run, true, &found, &err);
    const bool fired = fault.fired;
    /* "Nothing is left to do" must be true: no second start may be needed. */
    if (first == TIDE_OK && found.unfinished > 0)
        tide_sim_fail(run.sim, "%s %" PRIu64 ": said done, but %" PRIu64 " jobs are not",
                      source_names[source], fail_at, found.unfinished);
    if (!fired && first != TIDE_OK)
        tide_sim_fail(run.sim, "a run with all its memory: %s", err.text);
    tide_sim_reboot(run.sim);
    const tide_status second = live(&run, false, &found, &err);
    if (second != TIDE_OK)
        tide_sim_fail(run.sim, "%s %" PRIu64 ": the next run ends with %s: %s",
                      source_names[source], fail_at, tide_status_name(second), err.text);
    for (uint64_t i = 0; i < ITEMS; i++)
        if ((i == 5 ? found.bad : run.seen[i]) == 0)
            tide_sim_fail(run.sim, "%s %" PRIu64 ": item %" PRIu64 " is lost (first run: %s)",
                          source_names[source], fail_at, i, tide_status_name(first));
    if (found.unfinished > 0)
        tide_sim_fail(run.sim, "%s %" PRIu64 ": %" PRIu64 " jobs are not done",
                      source_names[source], fail_at, found.unfinished);
    tide_sim_free(run.sim);
    if (fault.blocks != blocks_before)
        fail_msg("%s %" PRIu64 ": %" PRId64 " blocks are left", source_names[source], fail_at,
                 fault.blocks - blocks_before);
    return fired;
}

/* Of thousands of allocations a sample: every `step`-th, and all of them with
 * TIDE_TEST_SCALE=10000. */
static void fail_each(enum source source, uint64_t step)
{
    uint64_t count = 0;
    step = step * 100 / scale_percent();
    for (uint64_t fail_at = 0; run_failing(source, fail_at); fail_at += step > 0 ? step : 1)
        count++;
    print_message("%s: %" PRIu64 " allocations failed, one in each run\n", source_names[source],
                  count);
    assert_true(count > 10);
}

TEST(no_failed_allocation_of_the_engine_loses_work)
{
    fail_each(SOURCE_ENGINE, 1);
}

TEST(no_failed_allocation_of_jansson_loses_work)
{
    fail_each(SOURCE_JSON, 3);
}

TEST(no_failed_allocation_of_sqlite_loses_work)
{
    fail_each(SOURCE_SQLITE, 31);
}

/* The same for threads: the n-th cannot be started. */
TEST(a_thread_that_cannot_start_loses_no_work)
{
    fault.on = false;
    fault.fail_at = UINT64_MAX;
    for (uint32_t threads = 1; threads < 12; threads++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            const struct tide_sim_options few = {.threads_max = threads};
            struct run run = {.sim = tide_sim_new(seed, &few)};
            struct found found;
            tide_error err = {TIDE_OK, 0, ""};
            run.world = tide_sim_world(run.sim);
            const tide_status rc = live(&run, true, &found, &err);
            if (rc != TIDE_OK && err.text[0] == '\0')
                tide_sim_fail(run.sim, "%u threads: no word about why", threads);
            if (rc == TIDE_OK && threads < 6)
                tide_sim_fail(run.sim, "%u threads are enough for everything", threads);
            tide_sim_free(run.sim);
        }
}

int main(int argc, char **argv)
{
    sources_set();
    verbose = argc == 3;
    if (argc == 3) { /* memory_sim_test SOURCE N: one of them, for a debugger */
        (void)run_failing((enum source)strtoul(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
        return 0;
    }
    return tests_run(NULL);
}
