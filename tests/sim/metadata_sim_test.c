/* Goal: what the ledger remembers of an account besides its jobs is measured while the engine runs,
 * and the user gets an alert when it is half of its budget (E6.4).
 * Method: an engine in the simulated world; rows are added to its ledger and taken away again as
 * hours pass.  That it is measured at a start is in tests/unit/engine/engine_control_test.c. */
#include "engine_stage.h"

#include <sqlite3.h>

static tide_status handle(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    (void)err;
    (void)tide_job_items(job);
    return TIDE_OK;
}

static void work(struct engine_stage *stage)
{
    engine_stage_add(stage, "{\"items\":[\"a\"]}");
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
    struct engine_stage stage;
    const struct tide_kind kind = {.name = "work", .handler = handle, .items = true};
    tide_error err = {TIDE_OK, 0, ""};
    char add[] =
        "INSERT INTO bad (account, kind, item, state, first_seen, last_tried, retries, reason)"
        " SELECT id, 1, 'item', 1, 1, 1, 0, printf('%.*c', 33 << 20, 'x') FROM account";
    char take[] = "DELETE FROM bad";
    engine_stage_open(&stage, &kind);
    engine_stage_start(&stage);
    work(&stage);
    assert_int_equal(engine_stage_alerts_after(&stage, 5).count,
                     0); /* measured for the first time */
    assert_int_equal(tide_transact(stage.engine, change, add, &err), TIDE_OK);
    work(&stage);
    assert_int_equal(engine_stage_alerts_after(&stage, 300).count,
                     0); /* measuring reads all of it: it is rare */
    const struct found_alerts found = engine_stage_alerts_after(&stage, 310);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.row.condition, "metadata");
    assert_string_equal(found.row.account_name, "a@example.org");
    assert_int_equal(found.row.level, TIDE_LEVEL_WARN);
    /* No job runs any more; the user removes the rows. */
    assert_int_equal(tide_transact(stage.engine, change, take, &err), TIDE_OK);
    assert_int_equal(engine_stage_alerts_after(&stage, 70).count, 0);
    engine_stage_close(&stage);
}
