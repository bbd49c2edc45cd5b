/* supervisor.c - cancels running jobs without progress, replaces stuck workers (E7.1, E7.2).
 *
 * A job without a beat is canceled.  A handler that ignores the cancellation loses its job:
 * the claim is given back under its fencing token, a new thread replaces the worker, and
 * whatever the old thread still does changes nothing (E1.8).  When its handler returns late,
 * the thread becomes a spare worker. */
#include "engine/engine.h"
#include "base/check.h"
#include "engine/reload.h"

#include <string.h>

enum {
    LOOK_EVERY_MS = 1000,
    BEAT_EVERY_MS = 10000, /* how often beats are written to the ledger */
};

/* A stand-in carries the end of a job whose handler has not returned, because the job itself
 * still belongs to the stuck thread.  It starts from the claimed row: the handler's item results
 * cannot be read while the handler may still write them. */
static tide_job *stand_in(tide_engine *engine, const tide_job *stuck)
{
    const struct tide_job_body *claimed = stuck->body;
    size_t bytes = sizeof *claimed + claimed->payload.bytes + 1;
    struct tide_job_body *body = tide_mem_new(engine->mem, bytes);
    if (body == NULL)
        return NULL;
    if (!tide_jobs_reserve(engine, 1)) {
        tide_mem_free(engine->mem, body, bytes);
        return NULL;
    }
    char *payload = (char *)(body + 1);
    if (claimed->payload.bytes > 0)
        memcpy(payload, claimed->payload.data, claimed->payload.bytes);
    *body = (struct tide_job_body){.id = claimed->id,
                                   .token = claimed->token,
                                   .payload = {payload, claimed->payload.bytes},
                                   .attempts = claimed->attempts,
                                   .force = claimed->force,
                                   .bytes = bytes};
    tide_job *job = tide_job_take(engine, &stuck->brief, body);
    job->bytes_done = __atomic_load_n(&stuck->bytes_done, __ATOMIC_RELAXED);
    return job;
}

/* An attempt that ignores its cancellation costs a thread, so it costs an attempt too,
 * whatever it was canceled for: over its budget the job is split or fails.  Only the end of
 * this process is not the job's fault. */
static void conclude_for(tide_engine *engine, tide_job *job, const tide_job *stuck, uint64_t now_ms)
{
    tide_cancel_reason reason = tide_canceled(&stuck->cancel);
    bool leaving = reason == TIDE_CANCEL_STOP || reason == TIDE_CANCEL_STALE;
    if (reason != TIDE_CANCEL_USER && !leaving)
        reason = TIDE_CANCEL_STALL;
    tide_world_cancel(engine->world, &job->cancel, reason);
    job->user_cancel = stuck->user_cancel;
    if (job->kind->kind.items)
        (void)tide_job_items(job);
    tide_status status = leaving ? TIDE_STOPPED : TIDE_TIMEOUT;
    (void)tide_error_set(&job->err, status, "its handler did not return");
    if (tide_job_conclude(job, status, now_ms))
        tide_ended_push(engine, job);
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

/* Starts a thread in place of the stuck one.  If none can be started, the engine continues with
 * fewer; without any it stops, so that the process can be restarted. */
static void replace(tide_engine *engine)
{
    if (engine->phase != TIDE_PHASE_RUN)
        return;
    tide_reload_workers(engine);
    if (engine->workers_count > engine->abandoned_count)
        return;
    tide_error err = {TIDE_OK, 0, ""};
    (void)tide_error_set(&err, TIDE_BUG,
                         "all %u threads are stuck in handlers that do not return; restart the "
                         "process",
                         engine->workers_count);
    tide_engine_fail(engine, TIDE_BUG, &err);
}

void tide_worker_give_up(tide_engine *engine, struct tide_worker *worker, uint64_t now_ms)
{
    tide_job *stuck = worker->job;
    tide_job *job = stand_in(engine, stuck);
    if (job == NULL && engine->phase == TIDE_PHASE_RUN)
        return; /* no memory: tried again at the next look; a stop does not wait for that */
    TIDE_SEEN("supervisor: gave up on a handler that does not return");
    tide_job_log(stuck, TIDE_LOG_ERROR, "worker abandoned",
                 TIDE_TEXT("its handler ignores its cancellation"));
    stuck->given_up = true;
    worker->abandoned = true;
    engine->abandoned_count++;
    tide_tracker_body_set(engine->tracker, stuck->brief.id, job);
    if (job != NULL)
        conclude_for(engine, job, stuck, now_ms);
    replace(engine);
}

static uint32_t stall_after_ms(const tide_engine *engine, const tide_job *job)
{
    if (job->kind->kind.stall_after_ms > 0)
        return job->kind->kind.stall_after_ms;
    return job->account == NULL ? engine->tuning.stall_after_ms : job->account->stall_after_ms;
}

uint64_t tide_stall_ignored_ms(const tide_engine *engine, const tide_job *job)
{
    return job == NULL || job->account == NULL ? engine->tuning.stall_ignored_ms
                                               : job->account->stall_ignored_ms;
}

static void look_at_worker(tide_engine *engine, struct tide_worker *worker, uint64_t now_ms)
{
    tide_job *job = worker->job;
    uint64_t beat_ms = __atomic_load_n(&job->beat_ms, __ATOMIC_RELAXED);
    if (tide_canceled(&job->cancel) == TIDE_CANCEL_NONE) {
        const uint32_t after_ms = stall_after_ms(engine, job);
        if (now_ms < beat_ms + after_ms)
            return;
        job->stalled_after_ms = after_ms;
        TIDE_SEEN("supervisor: a job stalled");
        tide_job_log(job, TIDE_LOG_WARN, "job stalled", TIDE_TEXT("no beat; canceled"));
        tide_world_cancel(engine->world, &job->cancel, TIDE_CANCEL_STALL);
    }
    if (worker->canceled_ms == 0)
        worker->canceled_ms = now_ms;
    else if (now_ms >= worker->canceled_ms + tide_stall_ignored_ms(engine, job))
        tide_worker_give_up(engine, worker, now_ms);
}

/* ---- beats in the ledger (E1.1) ----------------------------------------------- */

struct beat_write {
    struct tide_write write;
    struct tide_beat beats[TIDE_WORKERS_MAX];
    bool applied[TIDE_WORKERS_MAX];
    size_t count;
};

static tide_status beat_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct beat_write *beat = arg;
    return tide_ledger_beat(transaction->tx, beat->beats, beat->count, transaction->now_unix_ms,
                            beat->applied, err);
}

/* A beat that the ledger refused: the claim was given to another process, so the handler here
 * is canceled (E1.8). */
static void beat_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct beat_write *beat = arg;
    (void)now_ms;
    for (size_t i = 0; i < beat->count; i++)
        for (uint32_t w = 0; !beat->applied[i] && w < engine->workers_count; w++) {
            tide_job *job = engine->workers[w].job;
            if (job != NULL && job->brief.id == beat->beats[i].id &&
                job->body->token == beat->beats[i].token)
                tide_world_cancel(engine->world, &job->cancel, TIDE_CANCEL_STALE);
        }
}

static void beat_drop(tide_engine *engine, struct tide_write *write)
{
    tide_mem_free(engine->mem, write, sizeof(struct beat_write));
}

static void save_beats(tide_engine *engine)
{
    struct beat_write *beat = tide_mem_new(engine->mem, sizeof *beat);
    if (beat == NULL)
        return;
    for (uint32_t i = 0; i < engine->workers_count; i++) {
        const tide_job *job = engine->workers[i].job;
        if (job == NULL || engine->workers[i].abandoned)
            continue;
        beat->beats[beat->count++] =
            (struct tide_beat){.id = job->brief.id,
                               .token = job->body->token,
                               .bytes_done = __atomic_load_n(&job->bytes_done, __ATOMIC_RELAXED)};
    }
    beat->write =
        (struct tide_write){.run = beat_run, .arg = beat, .apply = beat_apply, .drop = beat_drop};
    tide_write_push(engine, &beat->write);
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
    if (any && now_ms >= engine->beats_at_ms) {
        if (engine->beats_at_ms != 0)
            save_beats(engine);
        engine->beats_at_ms = now_ms + BEAT_EVERY_MS;
    }
    return any ? now_ms + LOOK_EVERY_MS : TIDE_NEVER;
}
