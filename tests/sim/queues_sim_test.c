/* Goal: the user gets an alert when a queue stays at its bound, and not when it merely has much to do
 * (E6.4, B13).
 * Method: an engine in the simulated world whose handlers say that they wait for room in a queue,
 * or whose ledger cannot be written; its alerts are read from the ledger as time passes. */
#include "engine_stage.h"
#include "tidemark_inside.h"

#include <string.h>

enum { SECOND_MS = 1000, TURNS = 12 };

struct run {
    struct engine_stage stage;
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
    return tide_job_sleep(job, 100 * SECOND_MS); /* it works, and waits for no room */
}

static void run_open(struct run *run)
{
    const struct tide_kind kind = {.name = "wait", .handler = handle, .context = run};
    engine_stage_open(&run->stage, &kind);
    engine_stage_start(&run->stage);
    engine_stage_add(&run->stage, NULL);
}

TEST(who_waits_a_minute_for_room_is_told_of)
{
    struct run run = {.wait_ms = 90 * SECOND_MS, .turns = 1};
    run_open(&run);
    assert_int_equal(engine_stage_alerts_after(&run.stage, 57).count, 0);
    const struct found_alerts found = engine_stage_alerts_after(&run.stage, 8);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.row.condition, "queue");
    assert_string_equal(found.row.account_name, "a@example.org");
    assert_int_equal(found.row.level, TIDE_LEVEL_WARN);
    assert_non_null(strstr(found.row.text, "letters"));
    assert_int_equal(engine_stage_alerts_after(&run.stage, 20).count, 1);
    assert_int_equal(engine_stage_alerts_after(&run.stage, 25).count,
                     0); /* it moves again: the next minute is quiet */
    engine_stage_close(&run.stage);
}

/* A job always waits, as in any large backfill, but each gets its turn. */
TEST(a_queue_that_moves_raises_nothing)
{
    struct run run = {.wait_ms = 45 * SECOND_MS, .turns = TURNS};
    run_open(&run);
    for (unsigned i = 0; i < TURNS * 9; i++)
        assert_int_equal(engine_stage_alerts_after(&run.stage, 5).count, 0);
    engine_stage_close(&run.stage);
}

/* A full disk: the end of the job waits for the ledger.  The alert can be stored no earlier than
 * that end. */
TEST(a_ledger_that_takes_nothing_is_told_of)
{
    struct run run = {.turns = 0};
    run_open(&run);
    assert_int_equal(engine_stage_alerts_after(&run.stage, 50).count, 0);
    tide_sim_disk_room(run.stage.sim, tide_sim_disk_used(run.stage.sim));
    engine_stage_pass(&run.stage, 130);
    struct found_alerts none;
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(tide_transact(run.stage.engine, engine_stage_look, &none, &err),
                     TIDE_DISK_FULL);
    tide_sim_disk_room(run.stage.sim, 1 << 30);
    const struct found_alerts found = engine_stage_alerts_after(&run.stage, 3);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.row.condition, "queue");
    assert_int_equal(found.row.account, 0);
    assert_non_null(strstr(found.row.text, "ledger"));
    assert_int_equal(engine_stage_alerts_after(&run.stage, 20).count, 0);
    engine_stage_close(&run.stage);
}
