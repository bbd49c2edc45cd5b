/* Goal: an account is never held for ever by a probe that nobody answers (E6.2).
 * Method: one item succeeds, then thirty are refused, so that the engine probes the one that
 * succeeded.  That probe is canceled by a person, or its handler never comes back: another one
 * is asked for, or the account is halted.  The minutes between are simulated. */
#include "engine/engine.h"
#include "sim.h"

#include <inttypes.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ITEMS = 30, DAY_MS = 86400000 };

enum lost { LOST_CANCELED, LOST_GIVEN_UP, LOST_NOT };

struct run {
    tide_world *world;
    tide_engine *engine;
    enum lost lost;     /* what becomes of the first probe */
    tide_status answer; /* of the others */
    uint64_t probes;
};

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
        if (tide_job_item(job, i).data[0] == 'b')
            tide_job_item_failed(job, i, TIDE_PERMANENT, "refused");
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
    const tide_status rc = tide_engine_wait(run->engine, DAY_MS, &err);
    if (rc != TIDE_OK)
        fail_msg("after a day: %s", err.text);
}

/* found: items called bad, accounts halted. */
static void live(enum lost lost, tide_status answer, uint64_t found[2])
{
    const struct tide_sim_options options = {.yield_permille = 100};
    tide_sim *sim = tide_sim_new(7, &options);
    struct run run = {.world = tide_sim_world(sim), .lost = lost, .answer = answer};
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

static void a_canceled_probe_is_asked_for_again(void **state)
{
    (void)state;
    uint64_t found[2];
    live(LOST_CANCELED, TIDE_OK, found);
    assert_int_equal(found[0], ITEMS);
    assert_int_equal(found[1], 0);
}

/* What worked before stalls now: the account is ill, and a person is told. */
static void a_probe_whose_handler_is_given_up_has_failed(void **state)
{
    (void)state;
    uint64_t found[2];
    live(LOST_GIVEN_UP, TIDE_OK, found);
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], 1);
}

static void a_refused_probe_halts_and_marks_nothing_bad(void **state)
{
    (void)state;
    uint64_t found[2];
    live(LOST_NOT, TIDE_PERMANENT, found);
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_canceled_probe_is_asked_for_again),
        cmocka_unit_test(a_probe_whose_handler_is_given_up_has_failed),
        cmocka_unit_test(a_refused_probe_halts_and_marks_nothing_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
