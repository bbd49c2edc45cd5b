/* supervisor.c - running jobs show signs of life, or lose their worker (E7.1, E7.2).
 *
 * A job without a beat is asked to end.  A handler that does not even answer that
 * loses its job: the claim is given back under its fencing token, a new thread
 * takes the worker's place, and whatever the old one still does changes nothing
 * (E1.8). */
#include "engine/engine.h"
#include "base/check.h"

enum { LOOK_EVERY_MS = 1000 };

/* The row goes back although its handler has not returned: a stand-in carries the
 * finish, because the job itself still belongs to the stuck thread. */
static tide_job *stand_in(tide_engine *engine, const tide_job *stuck)
{
    struct tide_job_body *body = tide_mem_new(engine->mem, sizeof *body);
    if (body == NULL)
        return NULL;
    body->id = stuck->brief.id;
    body->token = stuck->body->token;
    body->bytes = sizeof *body;
    tide_job *job = tide_job_take(engine, &stuck->brief, body);
    if (job == NULL)
        tide_job_body_free(engine->mem, body);
    return job;
}

bool tide_worker_add(tide_engine *engine)
{
    if (engine->workers_count == TIDE_WORKERS_MAX)
        return false;
    struct tide_worker *worker = &engine->workers[engine->workers_count];
    worker->engine = engine;
    worker->index = engine->workers_count;
    if (tide_world_thread(engine->world, "worker", tide_worker_main, worker, &worker->thread,
                          NULL) != TIDE_OK)
        return false;
    engine->workers_count++;
    return true;
}

static void give_up(tide_engine *engine, struct tide_worker *worker, uint64_t now_ms)
{
    tide_job *stuck = worker->job;
    tide_job *job = stand_in(engine, stuck);
    if (job == NULL || !tide_worker_add(engine)) {
        if (job != NULL)
            tide_job_drop(job);
        return; /* tried again at the next look */
    }
    TIDE_SEEN("supervisor: gave up on a handler that does not return");
    tide_job_log(stuck, TIDE_LOG_ERROR, "worker replaced",
                 TIDE_TEXT("its handler ignores its cancellation"));
    stuck->given_up = true;
    worker->abandoned = true;
    engine->abandoned_count++;
    tide_tracker_body_set(engine->tracker, job->brief.id, job);
    (void)tide_error_set(&job->err, TIDE_TIMEOUT, "its handler did not return");
    tide_job_put_back(job, TIDE_ROW_PENDING, TIDE_TIMEOUT, now_ms);
    job->finish.attempts_add = 1;
    job->finish.error = tide_text_of(job->err.text);
}

static void look_at_worker(tide_engine *engine, struct tide_worker *worker, uint64_t now_ms)
{
    tide_job *job = worker->job;
    uint64_t beat_ms = __atomic_load_n(&job->beat_ms, __ATOMIC_RELAXED);
    if (tide_canceled(&job->cancel) == TIDE_CANCEL_NONE) {
        if (now_ms < beat_ms + job->kind->kind.stall_after_ms)
            return;
        TIDE_SEEN("supervisor: a job stalled");
        tide_job_log(job, TIDE_LOG_WARN, "job stalled", TIDE_TEXT("no beat; canceled"));
        tide_world_cancel(engine->world, &job->cancel, TIDE_CANCEL_STALL);
    }
    if (worker->canceled_ms == 0)
        worker->canceled_ms = now_ms;
    else if (now_ms >=
             worker->canceled_ms + tide_setting_u64(engine->settings, TIDE_SET_STALL_IGNORED_MAX))
        give_up(engine, worker, now_ms);
}

uint64_t tide_supervise(tide_engine *engine, uint64_t now_ms)
{
    bool any = false;
    for (uint32_t i = 0; i < engine->workers_count; i++) {
        struct tide_worker *worker = &engine->workers[i];
        if (worker->job == NULL || worker->abandoned)
            continue;
        any = true;
        look_at_worker(engine, worker, now_ms);
    }
    return any ? now_ms + LOOK_EVERY_MS : TIDE_NEVER;
}
