/* Goal: what the ledger remembers of an account beside its jobs is measured while the engine runs,
 * and a person is told when it is half of its budget (E6.4).
 * Method: an engine in the simulated world; rows are added to its ledger and taken away again as
 * hours pass.  That it is measured at a start is in tests/unit/engine/engine_control_test.c. */
#include "engine/engine.h"
#include "sim.h"
#include "support/test.h"

#include <sqlite3.h>
#include <string.h>

enum { SECOND_MS = 1000 };

struct run {
    tide_sim *sim;
    tide_world *world;
    tide_settings *settings;
    tide_engine *engine;
    uint32_t kind, account;
};

static tide_status handle(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    (void)err;
    (void)tide_job_items(job);
    return TIDE_OK;
}

static void work(struct run *run)
{
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_spec spec = {
        .kind = run->kind, .account = run->account, .payload = "{\"items\":[\"a\"]}"};
    assert_int_equal(tide_enqueue(run->engine, &spec, 1, NULL, &err), TIDE_OK);
}

static void run_open(struct run *run)
{
    const struct tide_sim_options options = {.yield_permille = 100};
    const struct tide_settings_sources sources = {.file = NULL};
    tide_error err = {TIDE_OK, 0, ""};
    run->sim = tide_sim_new(7, &options);
    run->world = tide_sim_world(run->sim);
    assert_int_equal(
        tide_settings_load(run->world, &sources, tide_mem_heap(), &run->settings, &err), TIDE_OK);
    const struct tide_engine_options engine = {.state_dir = "/state",
                                               .workers = 3,
                                               .world = run->world,
                                               .settings = run->settings,
                                               .no_control_socket = true};
    assert_int_equal(tide_engine_open(&engine, &run->engine, &err), TIDE_OK);
    const struct tide_kind kind = {
        .name = "work", .handler = handle, .context = run, .items = true};
    assert_int_equal(tide_engine_kind(run->engine, &kind, &run->kind, &err), TIDE_OK);
    assert_int_equal(
        tide_engine_account(run->engine, "a@example.org", "default", &run->account, &err), TIDE_OK);
    assert_int_equal(tide_engine_start(run->engine, &err), TIDE_OK);
}

static void run_close(struct run *run)
{
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_engine_wait(run->engine, 3600 * SECOND_MS, &err), TIDE_OK);
    assert_int_equal(tide_engine_close(run->engine), TIDE_OK);
    tide_settings_free(run->settings);
    tide_sim_free(run->sim);
}

struct found {
    unsigned count;
    struct tide_alert_row row;
};

static bool note_alert(const struct tide_alert_row *row, void *arg)
{
    struct found *found = arg;
    found->count++;
    found->row = *row;
    return true;
}

static tide_status look(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct found *found = arg;
    *found = (struct found){.count = 0};
    return tide_ledger_alerts(transaction->engine->ledger, note_alert, found, err);
}

/* The alerts there are after some more seconds. */
static struct found after(struct run *run, uint64_t seconds)
{
    struct found found = {.count = 0};
    tide_error err = {TIDE_OK, 0, ""};
    (void)tide_world_sleep_until(run->world, tide_world_now_us(run->world) + seconds * 1000000,
                                 NULL);
    assert_int_equal(tide_transact(run->engine, look, &found, &err), TIDE_OK);
    return found;
}

static tide_status change(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)err;
    assert_int_equal(sqlite3_exec(tide_tx_sqlite(transaction->tx), arg, NULL, NULL, NULL),
                     SQLITE_OK);
    return TIDE_OK;
}

TEST(what_grows_while_the_engine_runs_is_told_of)
{
    struct run run = {.kind = 0};
    tide_error err = {TIDE_OK, 0, ""};
    char add[] =
        "INSERT INTO bad (account, kind, item, state, first_seen, last_tried, retries, reason)"
        " SELECT id, 1, 'item', 1, 1, 1, 0, printf('%.*c', 33 << 20, 'x') FROM account";
    char take[] = "DELETE FROM bad";
    run_open(&run);
    work(&run);
    assert_int_equal(after(&run, 5).count, 0); /* measured for the first time */
    assert_int_equal(tide_transact(run.engine, change, add, &err), TIDE_OK);
    work(&run);
    assert_int_equal(after(&run, 300).count, 0); /* measuring reads all of it: it is rare */
    const struct found found = after(&run, 310);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.row.condition, "metadata");
    assert_string_equal(found.row.account_name, "a@example.org");
    assert_int_equal(found.row.level, TIDE_LEVEL_WARN);
    /* Nothing happens any more but that a person cleans up. */
    assert_int_equal(tide_transact(run.engine, change, take, &err), TIDE_OK);
    assert_int_equal(after(&run, 70).count, 0);
    run_close(&run);
}
