/* Goal: tide_engine_close() comes back although a handler ignores its cancellation (E7.1, E7.4).
 * Method: a handler in the simulated world sleeps for a day whatever happens.  The engine is
 * closed, once after an ordinary stop and once after a failed sync, which ends it at once. */
#include "engine/engine.h"
#include "sim.h"
#include "support/test.h"
#include "tidemark_inside.h"

enum { SECOND_US = 1000000, DAY_S = 86400, BOUND_S = 70 }; /* 5 s of grace, 60 s, some looks */

struct run {
    tide_sim *sim;
    tide_world *world;
    tide_settings *settings;
    tide_engine *engine;
    uint32_t kind;
    unsigned running;
    uint64_t sleep_s;
    uint64_t period_ms; /* of a schedule; 0: none */
};

static void let_pass(struct run *run, uint64_t seconds)
{
    (void)tide_world_sleep_until(run->world, tide_world_now_us(run->world) + seconds * SECOND_US,
                                 NULL);
}

static tide_status ignore_everything(tide_job *job, void *context, tide_error *err)
{
    struct run *run = context;
    (void)job;
    (void)err;
    run->running++;
    let_pass(run, run->sleep_s);
    run->running--;
    return TIDE_OK;
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
    const struct tide_kind kind = {.name = "deaf", .handler = ignore_everything, .context = run};
    assert_int_equal(tide_engine_kind(run->engine, &kind, &run->kind, &err), TIDE_OK);
    const struct tide_spec spec = {.kind = run->kind};
    assert_int_equal(tide_enqueue(run->engine, &spec, 1, NULL, &err), TIDE_OK);
    const struct tide_schedule schedule = {
        .name = "tick", .kind = run->kind, .period_ms = run->period_ms};
    if (run->period_ms > 0)
        assert_int_equal(tide_engine_schedule(run->engine, &schedule, &err), TIDE_OK);
    assert_int_equal(tide_engine_start(run->engine, &err), TIDE_OK);
    let_pass(run, 1);
    assert_int_equal(run->running, 1);
}

/* The next sync fails: what the file holds is no longer known, and the engine ends. */
static void lose_the_ledger(struct run *run)
{
    const struct tide_spec spec = {.kind = run->kind, .delay_ms = DAY_S * 1000};
    tide_error err = {TIDE_OK, 0, ""};
    tide_sim_disk_fail_sync(run->sim, "-wal", 1);
    assert_int_not_equal(tide_enqueue(run->engine, &spec, 1, NULL, &err), TIDE_OK);
    assert_int_not_equal(tide_engine_wait(run->engine, 1000, &err), TIDE_OK);
}

static tide_status timed_close(struct run *run, uint64_t *seconds_out)
{
    const uint64_t start_us = tide_world_now_us(run->world);
    const tide_status rc = tide_engine_close(run->engine);
    *seconds_out = (tide_world_now_us(run->world) - start_us) / SECOND_US;
    return rc;
}

static void run_end(struct run *run)
{
    tide_settings_free(run->settings);
    tide_sim_free(run->sim);
}

static void check_left_behind(struct run *run)
{
    uint64_t seconds = 0;
    assert_int_equal(timed_close(run, &seconds), TIDE_TIMEOUT);
    assert_in_range(seconds, 0, BOUND_S);
    assert_int_equal(run->running, 1);
    assert_int_equal(timed_close(run, &seconds), TIDE_TIMEOUT); /* and nothing else happens */
    assert_int_equal(seconds, 0);
    let_pass(run, DAY_S);
    assert_int_equal(timed_close(run, &seconds), TIDE_OK);
    run_end(run);
}

TEST(a_stop_leaves_a_deaf_handler_behind)
{
    struct run run = {.sleep_s = DAY_S};
    run_open(&run);
    check_left_behind(&run);
}

TEST(a_lost_ledger_leaves_a_deaf_handler_behind)
{
    struct run run = {.sleep_s = DAY_S};
    run_open(&run);
    lose_the_ledger(&run);
    check_left_behind(&run);
}

/* A schedule that becomes due meanwhile waits for the next start, and the dispatcher sleeps. */
TEST(a_stop_does_not_spin_on_a_schedule)
{
    struct run run = {.sleep_s = DAY_S, .period_ms = 20000};
    uint64_t seconds = 0;
    run_open(&run);
    const uint64_t steps = tide_sim_stats(run.sim).steps;
    assert_int_equal(timed_close(&run, &seconds), TIDE_TIMEOUT);
    assert_in_range(tide_sim_stats(run.sim).steps - steps, 0, 5000);
    let_pass(&run, DAY_S);
    assert_int_equal(timed_close(&run, &seconds), TIDE_OK);
    run_end(&run);
}

/* One that is only slow is waited for, and no longer than it takes. */
TEST(a_lost_ledger_waits_for_a_slow_handler)
{
    struct run run = {.sleep_s = 30};
    uint64_t seconds = 0;
    run_open(&run);
    lose_the_ledger(&run);
    assert_int_equal(timed_close(&run, &seconds), TIDE_OK);
    assert_in_range(seconds, 25, 30);
    run_end(&run);
}
