/* worker.c - a thread that runs handlers, one at a time.
 *
 * A worker takes its next job itself, under the lock, so that the end of one job
 * and the start of the next cost no change of thread. */
#include "engine/engine.h"
#include "base/check.h"
#include "engine/reload.h"

static tide_job *next_job(tide_engine *engine, uint64_t now_ms)
{
    uint64_t id = 0;
    if (engine->phase != TIDE_PHASE_RUN || !tide_lanes_next_start(engine->lanes, &id))
        return NULL;
    const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
    TIDE_ASSERT(tracked != NULL);
    TIDE_ASSERT(tracked->body != NULL);
    tide_job *job = tracked->body;
    /* On a shared ledger another process may have put it back, so only the attempts show it; that
     * suffices, because a part of a split never inherits all of them (finish.c). */
    uint32_t died = 0;
    job->split_unrun =
        job->kind->kind.items &&
        (engine->fleet != NULL ? job->brief.attempts >= job->brief.attempts_max
                               : tide_map_get(&engine->died_often, job->brief.id, &died));
    tide_tracker_started(engine->tracker, id, now_ms);
    tide_engine_wakes(engine);
    if (engine->workers_idle > 0 && tide_lanes_can_start(engine->lanes))
        tide_cond_wake_one(engine->world, engine->work);
    if (engine->look_at_ms > now_ms + 1000) {
        engine->look_at_ms = now_ms + 1000; /* the supervisor watches it from now on (E7.1) */
        if (engine->pump_at_ms > engine->look_at_ms)
            tide_cond_wake_one(engine->world, engine->pump);
    }
    return job;
}

/* Runs the handler; called without the lock. */
static tide_status run_handler(tide_job *job)
{
    job->err.text[0] = '\0';
    job->err.status = TIDE_OK;
    size_t items = job->kind->kind.items ? tide_job_items(job) : 0;
    if (job->kind->kind.items && items == 0)
        return tide_error_set(&job->err, job->items_status, "%s",
                              job->items_status == TIDE_INVALID
                                  ? "its payload has no list of texts called \"items\""
                                  : "no memory for its items");
    if (job->split_unrun) {
        /* Processes died while running it, as often as its budget allows: it is split without
         * running, until the item that kills the process is alone and recorded (E7.1).  On SQLite
         * died_often shows that, not the attempts, which parts of a split inherit (E6.1). */
        TIDE_SEEN("worker: a job over its budget was split unrun");
        return tide_error_set(&job->err, TIDE_UNKNOWN,
                              "its process died while it ran, after %u attempts",
                              job->brief.attempts);
    }
    tide_status status = job->kind->kind.handler(job, job->kind->kind.context, &job->err);
    if (status != TIDE_OK && job->err.text[0] == '\0')
        (void)tide_error_set(&job->err, status, "%s", tide_status_name(status));
    return status;
}

static void run_one(struct tide_worker *worker, tide_job *job, uint64_t now_ms)
{
    tide_engine *engine = worker->engine;
    const uint64_t started_ms = now_ms;
    worker->job = job;
    worker->canceled_ms = 0;
    __atomic_store_n(&job->beat_ms, now_ms, __ATOMIC_RELAXED);
    tide_lock_drop(engine->world, engine->lock);
    tide_job_log(job, TIDE_LOG_DEBUG, "job started", TIDE_TEXT_NONE);

    tide_status status = run_handler(job);

    tide_lock_take(engine->world, engine->lock);
    if (job->given_up) {
        /* The supervisor gave this job up while its handler was stuck here; the claim
         * is fenced and another worker runs the job.  Change nothing (E1.8); from now
         * on this thread is a spare worker. */
        TIDE_SEEN("worker: a given-up handler came back");
        worker->job = NULL;
        worker->abandoned = false;
        engine->abandoned_count--;
        tide_job_drop(job);
        if (engine->phase == TIDE_PHASE_RUN)
            tide_reload_workers(engine); /* places that were lost for lack of a thread */
        return;
    }
    worker->job = NULL;
    now_ms = tide_world_now_ms(engine->world);
    tide_meters_ran(job, now_ms - started_ms);
    if (tide_job_conclude(job, status, now_ms))
        tide_ended_push(engine, job);
    tide_dispatch(engine, now_ms);
}

void tide_worker_main(void *arg)
{
    struct tide_worker *worker = arg;
    tide_engine *engine = worker->engine;

    tide_lock_take(engine->world, engine->lock);
    while (engine->phase != TIDE_PHASE_ENDED) {
        uint64_t now_ms = tide_world_now_ms(engine->world);
        tide_job *job = next_job(engine, now_ms);
        if (job != NULL) {
            run_one(worker, job, now_ms);
            continue;
        }
        engine->workers_idle++;
        tide_status rc = tide_cond_wait(engine->world, engine->work, engine->lock, TIDE_NEVER);
        engine->workers_idle--;
        if (rc == TIDE_STOPPED)
            break;
    }
    tide_cond_wake_all(engine->world, engine->news); /* tide_engine_close() may wait for this */
    tide_lock_drop(engine->world, engine->lock);
}
