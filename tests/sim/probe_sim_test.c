/* Goal: an account is never held forever by a probe without an answer, and no halt is lost
 * (E6.2).
 * Method: one item succeeds, then thirty are refused, so that the engine probes the one that
 * succeeded.  That probe is canceled by a person, or its handler never comes back: another one
 * is asked for, or the account is halted.  Or the ledger does not take the probe or the halt: the
 * linker puts a refusal before the two functions that write them, the disk is full, or an
 * allocation fails.  The minutes between are simulated. */
#include "engine/engine.h"
#include "sim.h"
#include "support/test.h"
#include "support/wrap.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 30, DAY_MS = 86400000, FULL_MS = 600000 };

enum lost { LOST_CANCELED, LOST_GIVEN_UP, LOST_NOT };

struct run {
    tide_world *world;
    tide_engine *engine;
    enum lost lost;     /* what becomes of the first probe */
    tide_status answer; /* of the others */
    uint64_t probes;
};

/* ---- what the ledger does not take ------------------------------------------------------------ */

enum order { ORDER_NONE, ORDER_PROBE, ORDER_HALT };

/* One thread runs at a time in the simulated world, so nothing of this needs a lock. */
static struct {
    tide_sim *sim;
    enum order order;   /* the one that is not written, */
    tide_status status; /* because of this; TIDE_DISK_FULL: the disk is really full */
    uint32_t times;     /* still to refuse */
    uint32_t refused;
} refusal;

static bool refuses(enum order order, tide_error *err)
{
    if (refusal.order != order || refusal.times == 0)
        return false;
    refusal.times--;
    refusal.refused++;
    if (refusal.status == TIDE_DISK_FULL) {
        tide_sim_disk_room(refusal.sim, 1);
        return false; /* the commit fails */
    }
    (void)tide_error_set(err, refusal.status, "refused by the test");
    return true;
}

WRAP(tide_status, tide_transaction_enqueue, tide_transaction *transaction,
     const struct tide_spec *specs, size_t count, uint64_t *ids_out, tide_error *err)
{
    if (specs[0].force && refuses(ORDER_PROBE, err))
        return refusal.status;
    return __real_tide_transaction_enqueue(transaction, specs, count, ids_out, err);
}

WRAP(tide_status, tide_ledger_account_halt, tide_tx *tx, uint32_t account, bool halted,
     const char *reason, uint64_t now_unix_ms, tide_error *err)
{
    if (refuses(ORDER_HALT, err))
        return refusal.status;
    return __real_tide_ledger_account_halt(tx, account, halted, reason, now_unix_ms, err);
}

/* ---- memory that fails once --------------------------------------------------------------- */

static struct {
    bool wanted, on, fired;
    uint64_t count, fail_at;
} fault;

tide_mem *__real_tide_mem_heap(void);
tide_mem *__wrap_tide_mem_heap(void);

static void *resize(tide_mem *mem, void *old, size_t old_bytes, size_t new_bytes)
{
    tide_mem *heap = __real_tide_mem_heap();
    (void)mem;
    if (new_bytes > 0 && fault.on && fault.count++ == fault.fail_at) {
        fault.fired = true;
        return NULL;
    }
    return heap->resize(heap, old, old_bytes, new_bytes);
}
static tide_mem failing_mem = {resize};

tide_mem *__wrap_tide_mem_heap(void)
{
    return &failing_mem;
}

/* ---- the work --------------------------------------------------------------------------------- */

static tide_status first_probe(struct run *run, tide_job *job, tide_error *err)
{
    const uint64_t hours_us = 3 * 3600 * 1000000ull;
    if (run->lost == LOST_CANCELED) {
        assert_int_equal(tide_cancel_job(run->engine, tide_job_id(job), err), TIDE_OK);
        return tide_job_sleep(job, DAY_MS);
    }
    /* It ignores its cancellation, and loses its worker. */
    (void)tide_world_sleep_until(run->world, tide_world_now_us(run->world) + hours_us, NULL);
    return TIDE_OK;
}

static tide_status handle(tide_job *job, void *context, tide_error *err)
{
    struct run *run = context;
    if (tide_job_forced(job)) {
        run->probes++;
        if (run->probes == 1 && run->lost != LOST_NOT)
            return first_probe(run, job, err);
        if (run->answer != TIDE_OK)
            tide_job_item_failed(job, 0, run->answer, "refused");
        return TIDE_OK;
    }
    for (size_t i = 0; i < tide_job_items(job); i++)
        if (tide_job_item(job, i).data[0] == 'b') {
            fault.on = fault.wanted;
            tide_job_item_failed(job, i, TIDE_PERMANENT, "refused");
        }
    return TIDE_OK;
}

static tide_status look(tide_transaction *transaction, void *arg, tide_error *err)
{
    uint64_t *found = arg;
    sqlite3_stmt *stmt = NULL;
    (void)err;
    assert_int_equal(sqlite3_prepare_v2(tide_tx_sqlite(transaction->tx),
                                        "SELECT (SELECT count(*) FROM bad),"
                                        " (SELECT count(*) FROM account WHERE halted = 1)",
                                        -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    found[0] = (uint64_t)sqlite3_column_int64(stmt, 0);
    found[1] = (uint64_t)sqlite3_column_int64(stmt, 1);
    (void)sqlite3_finalize(stmt);
    return TIDE_OK;
}

static void enqueue(struct run *run, uint32_t kind, uint32_t account, int count)
{
    char payload[512] = "{\"items\":[";
    tide_error err = {TIDE_OK, 0, ""};
    for (int i = 0; i < count; i++)
        (void)snprintf(payload + strlen(payload), sizeof payload - strlen(payload), "%s\"b%d\"",
                       i == 0 ? "" : ",", i);
    (void)snprintf(payload + strlen(payload), sizeof payload - strlen(payload), "%s]}",
                   count == 0 ? "\"good\"" : "");
    const struct tide_spec spec = {.kind = kind, .account = account, .payload = payload};
    assert_int_equal(tide_enqueue(run->engine, &spec, 1, NULL, &err), TIDE_OK);
    (void)tide_engine_wait(run->engine, FULL_MS, &err);
    tide_sim_disk_room(refusal.sim, 1 << 30);
    const tide_status rc = tide_engine_wait(run->engine, DAY_MS, &err);
    fault.on = false;
    if (rc != TIDE_OK)
        fail_msg("after a day: %s", err.text);
}

/* found: items called bad, accounts halted. */
static void live(enum lost lost, tide_status answer, uint64_t found[2])
{
    const struct tide_sim_options options = {.yield_permille = 100};
    tide_sim *sim = tide_sim_new(7, &options);
    struct run run = {.world = tide_sim_world(sim), .lost = lost, .answer = answer};
    refusal.sim = sim;
    tide_settings *settings = NULL;
    const struct tide_settings_sources sources = {.file = NULL};
    tide_error err = {TIDE_OK, 0, ""};
    uint32_t kind = 0, account = 0;
    assert_int_equal(tide_settings_load(run.world, &sources, tide_mem_heap(), &settings, &err),
                     TIDE_OK);
    const struct tide_engine_options engine = {.state_dir = "/state",
                                               .workers = 3,
                                               .world = run.world,
                                               .settings = settings,
                                               .no_control_socket = true};
    assert_int_equal(tide_engine_open(&engine, &run.engine, &err), TIDE_OK);
    const struct tide_kind store = {
        .name = "store", .handler = handle, .context = &run, .items = true};
    assert_int_equal(tide_engine_kind(run.engine, &store, &kind, &err), TIDE_OK);
    assert_int_equal(tide_engine_account(run.engine, "a@example.org", "default", &account, &err),
                     TIDE_OK);
    assert_int_equal(tide_engine_start(run.engine, &err), TIDE_OK);
    enqueue(&run, kind, account, 0);
    enqueue(&run, kind, account, ITEMS);
    assert_true(run.probes > (lost == LOST_CANCELED ? 1 : 0));
    assert_int_equal(tide_transact(run.engine, look, found, &err), TIDE_OK);
    /* A handler that was given up must have left before the engine does. */
    const uint64_t hours_us = 4 * 3600 * 1000000ull;
    if (lost == LOST_GIVEN_UP)
        (void)tide_world_sleep_until(run.world, tide_world_now_us(run.world) + hours_us, NULL);
    assert_int_equal(tide_engine_close(run.engine), TIDE_OK);
    tide_settings_free(settings);
    tide_sim_free(sim);
}

TEST(a_canceled_probe_is_asked_for_again)
{
    uint64_t found[2];
    live(LOST_CANCELED, TIDE_OK, found);
    assert_int_equal(found[0], ITEMS);
    assert_int_equal(found[1], 0);
}

/* What worked before stalls now: the account is halted, and an alert is raised. */
TEST(a_probe_whose_handler_is_given_up_has_failed)
{
    uint64_t found[2];
    live(LOST_GIVEN_UP, TIDE_OK, found);
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], 1);
}

TEST(a_refused_probe_halts_and_marks_nothing_bad)
{
    uint64_t found[2];
    live(LOST_NOT, TIDE_PERMANENT, found);
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], 1);
}

static void refuse(enum order order, tide_status status, tide_status answer, uint64_t found[2])
{
    refusal.order = order;
    refusal.status = status;
    refusal.times = 2;
    refusal.refused = 0;
    live(LOST_NOT, answer, found);
    refusal.order = ORDER_NONE;
    assert_int_equal(refusal.refused, 2);
}

static const tide_status refusals[] = {TIDE_INVALID, TIDE_NO_MEMORY, TIDE_DISK_FULL};
enum { REFUSALS = sizeof refusals / sizeof refusals[0] };

TEST(a_probe_that_is_not_written_is_asked_for_again)
{
    uint64_t found[2];
    for (size_t i = 0; i < REFUSALS; i++) {
        refuse(ORDER_PROBE, refusals[i], TIDE_OK, found);
        assert_int_equal(found[0], ITEMS);
        assert_int_equal(found[1], 0);
    }
}

TEST(a_halt_that_is_not_written_is_not_lost)
{
    uint64_t found[2];
    for (size_t i = 0; i < REFUSALS; i++) {
        refuse(ORDER_HALT, refusals[i], TIDE_PERMANENT, found);
        assert_int_equal(found[0], 0);
        assert_int_equal(found[1], 1);
    }
}

/* From the first refused item on, each in a run of its own. */
TEST(no_failed_allocation_loses_a_probe_or_a_halt)
{
    uint64_t found[2];
    uint64_t runs = 0;
    fault.wanted = true;
    do {
        fault.count = 0;
        fault.fail_at = runs++;
        fault.fired = false;
        live(LOST_NOT, TIDE_PERMANENT, found);
        assert_int_equal(found[0], 0);
        assert_int_equal(found[1], 1);
    } while (fault.fired);
    fault.wanted = false;
    print_message("%" PRIu64 " allocations failed, one in each run\n", runs - 1);
    assert_true(runs > 10);
}
