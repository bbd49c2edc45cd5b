/* Goal: a person is told when a queue stays at its bound, and not when it merely has much to do
 * (E6.4, B13).
 * Method: an engine in the simulated world whose handlers say that they wait for room in a queue,
 * or whose ledger cannot be written; its alerts are read from the ledger as time passes. */
#include "engine/engine.h"
#include "sim.h"
#include "support/test.h"
#include "tidemark_inside.h"

#include <string.h>

enum { SECOND_MS = 1000, TURNS = 12 };

struct run {
    tide_sim *sim;
    tide_world *world;
    tide_settings *settings;
    tide_engine *engine;
    uint32_t kind, account;
    uint64_t wait_ms; /* of each handler for room */
    unsigned turns;   /* so many wait one after another in each */
};

static tide_status handle(tide_job *job, void *context, tide_error *err)
{
    struct run *run = context;
    (void)err;
    for (unsigned i = 0; i < run->turns; i++) {
        tide_job_queued(job, "letters");
        for (uint64_t ms = 0; ms < run->wait_ms; ms += SECOND_MS)
            (void)tide_job_sleep(job, SECOND_MS);
        tide_job_queued(job, NULL);
    }
    return tide_job_sleep(job, 100 * SECOND_MS); /* it works, and waits for nobody */
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
    const struct tide_kind kind = {.name = "wait", .handler = handle, .context = run};
    assert_int_equal(tide_engine_kind(run->engine, &kind, &run->kind, &err), TIDE_OK);
    assert_int_equal(
        tide_engine_account(run->engine, "a@example.org", "default", &run->account, &err), TIDE_OK);
    assert_int_equal(tide_engine_start(run->engine, &err), TIDE_OK);
    const struct tide_spec spec = {.kind = run->kind, .account = run->account};
    assert_int_equal(tide_enqueue(run->engine, &spec, 1, NULL, &err), TIDE_OK);
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

TEST(who_waits_a_minute_for_room_is_told_of)
{
    struct run run = {.wait_ms = 90 * SECOND_MS, .turns = 1};
    run_open(&run);
    assert_int_equal(after(&run, 57).count, 0);
    const struct found found = after(&run, 8);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.row.condition, "queue");
    assert_string_equal(found.row.account_name, "a@example.org");
    assert_int_equal(found.row.level, TIDE_LEVEL_WARN);
    assert_non_null(strstr(found.row.text, "letters"));
    assert_int_equal(after(&run, 20).count, 1);
    assert_int_equal(after(&run, 25).count, 0); /* it moves again: the next minute is quiet */
    run_close(&run);
}

/* Somebody always waits, as in any large backfill, but everybody gets a turn. */
TEST(a_queue_that_moves_raises_nothing)
{
    struct run run = {.wait_ms = 45 * SECOND_MS, .turns = TURNS};
    run_open(&run);
    for (unsigned i = 0; i < TURNS * 9; i++)
        assert_int_equal(after(&run, 5).count, 0);
    run_close(&run);
}

/* A full disk: the end of the job waits for the ledger.  The alert can be stored no earlier than
 * that end. */
TEST(a_ledger_that_takes_nothing_is_told_of)
{
    struct run run = {.turns = 0};
    run_open(&run);
    assert_int_equal(after(&run, 50).count, 0);
    tide_sim_disk_room(run.sim, tide_sim_disk_used(run.sim));
    (void)tide_world_sleep_until(run.world, tide_world_now_us(run.world) + 130 * 1000000ull, NULL);
    struct found none;
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_transact(run.engine, look, &none, &err), TIDE_DISK_FULL);
    tide_sim_disk_room(run.sim, 1 << 30);
    const struct found found = after(&run, 3);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.row.condition, "queue");
    assert_int_equal(found.row.account, 0);
    assert_non_null(strstr(found.row.text, "ledger"));
    assert_int_equal(after(&run, 20).count, 0);
    run_close(&run);
}
