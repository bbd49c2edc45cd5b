/* queues.c - the longest wait for room in a queue, for an alert (E6.4, B13).
 *
 * Watched queues are those in which a thread waits for another one: requests for a batch, messages
 * for the archive, finished jobs for the writer.  The window of jobs is not one: jobs that do not
 * fit stay in the ledger, and no thread waits.  Nor is quota: a job without units is parked and
 * waits in no queue.  One look reads at most two fields of each running job. */
#include "engine/engine.h"

void tide_job_queued(tide_job *job, const char *queue)
{
    const uint64_t now_ms = queue == NULL ? 0 : tide_world_now_ms(job->engine->world);
    if (queue != NULL)
        __atomic_store_n(&job->queue, queue, __ATOMIC_RELAXED);
    __atomic_store_n(&job->queued_ms, now_ms, __ATOMIC_RELEASE);
}

static void note_wait(struct tide_queued *queued, const char *queue, uint64_t since_ms)
{
    if (since_ms == 0 || (queued->since_ms != 0 && queued->since_ms <= since_ms))
        return;
    queued->queue = queue;
    queued->since_ms = since_ms;
}

static void note_workers(tide_engine *engine)
{
    for (uint32_t i = 0; i < engine->workers_count; i++) {
        const tide_job *job = engine->workers[i].job;
        if (job == NULL || engine->workers[i].abandoned)
            continue;
        const uint64_t since_ms = __atomic_load_n(&job->queued_ms, __ATOMIC_ACQUIRE);
        note_wait(job->account != NULL ? &job->account->queued : &engine->queued,
                  __atomic_load_n(&job->queue, __ATOMIC_RELAXED), since_ms);
    }
}

/* The first job in `ended` has waited longest for the writer. */
static void note_ends(tide_engine *engine)
{
    const struct tide_tracked *tracked =
        engine->ended_first == NULL
            ? NULL
            : tide_tracker_find(engine->tracker, engine->ended_first->brief.id);
    if (tracked != NULL && tracked->state == TIDE_JOB_ENDING)
        note_wait(&engine->queued, "finished jobs for the ledger", tracked->since_ms);
}

/* Accounts without a wait, now or before, are not reported: most never have one. */
static void tell(tide_engine *engine, uint64_t account, struct tide_queued *queued, uint64_t now_ms)
{
    if (queued->since_ms != 0 || queued->told)
        queued->told = tide_alerts_queue(engine->alerts, account, queued->queue, queued->since_ms,
                                         now_ms) == TIDE_OK &&
                       queued->since_ms != 0;
}

void tide_queues_look(tide_engine *engine, uint64_t now_ms)
{
    engine->queued.since_ms = 0;
    for (size_t i = 0; i < engine->accounts_count; i++)
        engine->accounts[i]->queued.since_ms = 0;
    note_workers(engine);
    note_ends(engine);
    tell(engine, TIDE_ALERTS_NO_ACCOUNT, &engine->queued, now_ms);
    for (size_t i = 0; i < engine->accounts_count; i++)
        tell(engine, engine->accounts[i]->id, &engine->accounts[i]->queued, now_ms);
}
