/* Goal: tide_engine_close() comes back although a handler ignores its cancellation (E7.1, E7.4).
 * Method: a handler in the simulated world sleeps for a day whatever happens.  The engine is
 * closed, once after an ordinary stop and once after a failed sync, which ends it at once. */
#include "engine_stage.h"
#include "tidemark_inside.h"

enum { SECOND_US = 1000000, DAY_S = 86400, BOUND_S = 70 }; /* 5 s of grace, 60 s, some looks */

struct run {
    struct engine_stage stage;
    unsigned running;
    uint64_t sleep_s;
    uint64_t period_ms; /* of a schedule; 0: none */
};

static tide_status ignore_everything(tide_job *job, void *context, tide_error *err)
{
    struct run *run = context;
    (void)job;
    (void)err;
    run->running++;
    engine_stage_pass(&run->stage, run->sleep_s);
    run->running--;
    return TIDE_OK;
}

static void run_open(struct run *run)
{
    const struct tide_kind kind = {.name = "deaf", .handler = ignore_everything, .context = run};
    tide_error err = {TIDE_OK, 0, ""};
    engine_stage_open(&run->stage, &kind);
    engine_stage_add(&run->stage, NULL);
    const struct tide_schedule schedule = {
        .name = "tick", .kind = run->stage.kind, .period_ms = run->period_ms};
    if (run->period_ms > 0)
        assert_int_equal(tide_engine_schedule(run->stage.engine, &schedule, &err), TIDE_OK);
    engine_stage_start(&run->stage);
    engine_stage_pass(&run->stage, 1);
    assert_int_equal(run->running, 1);
}

/* The next sync fails: what the file holds is no longer known, and the engine ends. */
static void lose_the_ledger(struct run *run)
{
    const struct tide_spec spec = {.kind = run->stage.kind, .delay_ms = DAY_S * 1000};
    tide_error err = {TIDE_OK, 0, ""};
    tide_sim_disk_fail_sync(run->stage.sim, "-wal", 1);
    assert_int_not_equal(tide_enqueue(run->stage.engine, &spec, 1, NULL, &err), TIDE_OK);
    assert_int_not_equal(tide_engine_wait(run->stage.engine, 1000, &err), TIDE_OK);
}

static tide_status timed_close(struct run *run, uint64_t *seconds_out)
{
    const uint64_t start_us = tide_world_now_us(run->stage.world);
    const tide_status rc = tide_engine_close(run->stage.engine);
    *seconds_out = (tide_world_now_us(run->stage.world) - start_us) / SECOND_US;
    return rc;
}

static void check_left_behind(struct run *run)
{
    uint64_t seconds = 0;
    assert_int_equal(timed_close(run, &seconds), TIDE_TIMEOUT);
    assert_in_range(seconds, 0, BOUND_S);
    assert_int_equal(run->running, 1);
    assert_int_equal(timed_close(run, &seconds), TIDE_TIMEOUT); /* and nothing else happens */
    assert_int_equal(seconds, 0);
    engine_stage_pass(&run->stage, DAY_S);
    assert_int_equal(timed_close(run, &seconds), TIDE_OK);
    engine_stage_free(&run->stage);
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
    const uint64_t steps = tide_sim_stats(run.stage.sim).steps;
    assert_int_equal(timed_close(&run, &seconds), TIDE_TIMEOUT);
    assert_in_range(tide_sim_stats(run.stage.sim).steps - steps, 0, 5000);
    engine_stage_pass(&run.stage, DAY_S);
    assert_int_equal(timed_close(&run, &seconds), TIDE_OK);
    engine_stage_free(&run.stage);
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
    engine_stage_free(&run.stage);
}
