/* purge.c - the engine's own job kind: deletes finished rows older than `purge.after` (E1.2). */
#include "engine/engine.h"

struct purge_ask {
    uint64_t older_ms;
    size_t count;
    bool more;
};

static tide_status purge_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct purge_ask *ask = arg;
    uint64_t now_unix_ms = transaction->now_unix_ms;
    uint64_t before = now_unix_ms > ask->older_ms ? now_unix_ms - ask->older_ms : 0;
    uint32_t slice = __atomic_load_n(&transaction->engine->purge_slice, __ATOMIC_RELAXED);
    tide_status rc = tide_ledger_purge(transaction->tx, before, slice, &ask->count, err);
    ask->more = rc == TIDE_OK && tide_ledger_purge_more(transaction->engine->ledger);
    return rc;
}

tide_status tide_engine_purge(tide_engine *engine, uint64_t older_ms, const tide_cancel *cancel,
                              uint64_t *count_out, tide_error *err)
{
    struct purge_ask ask = {.older_ms = older_ms, .more = true};
    uint64_t total = 0;
    tide_status rc = TIDE_OK;
    /* In slices, so that a click never waits for them (E2.5). */
    while (rc == TIDE_OK && ask.more &&
           (cancel == NULL || tide_canceled(cancel) == TIDE_CANCEL_NONE)) {
        rc = tide_transact(engine, purge_run, &ask, err);
        if (rc == TIDE_OK)
            total += ask.count;
    }
    *count_out = total;
    return rc;
}

static tide_status purge_handler(tide_job *job, void *context, tide_error *err)
{
    tide_engine *engine = context;
    uint64_t count = 0;
    tide_lock_take(engine->world, engine->lock);
    uint64_t older_ms = engine->tuning.purge_after_ms;
    tide_lock_drop(engine->world, engine->lock);
    tide_status rc = tide_engine_purge(engine, older_ms, &job->cancel, &count, err);
    return rc == TIDE_OK && tide_job_canceled(job) ? TIDE_CANCELED : rc;
}

tide_status tide_engine_own_kinds(tide_engine *engine, tide_error *err)
{
    struct tide_kind purge = {.name = TIDE_PURGE_NAME,
                              .handler = purge_handler,
                              .context = engine,
                              .lane = TIDE_KIND_BULK_ONLY,
                              .priority = engine->tuning.purge_priority,
                              .dedupe_running = true};
    uint32_t kind = 0;
    TIDE_TRY(tide_engine_kind(engine, &purge, &kind, err));
    struct tide_schedule schedule = {
        .name = TIDE_PURGE_NAME, .kind = kind, .period_ms = engine->tuning.purge_every_ms};
    return tide_engine_schedule(engine, &schedule, err);
}
