/* watch.c - every job of the engine seen from outside: when it could start, when it starts, how it ends.
 *
 * Kinds are defined through a function that the linker puts in between: it keeps what the system meant, and
 * runs before and after each handler.  What waits is known from enqueues and from the ends of jobs, not from
 * the engine. */
#include "reader_sim.h"

#include "support/wrap.h"

enum {
    PARK_MS_MAX = 60000, /* as in engine/finish.c: after longer waits a job is not parked */
    /* What is enqueued or put back is seen by the workers when the writer has committed it, and a
     * worker that chose its job before may run the handler after that. */
    CHOSEN_US_MAX = 100000,
};

bool rsim_is_readers(const struct rsim_kind *kind)
{
    return strncmp(kind->name, "reader.", 7) == 0;
}

static struct rsim_job *job_of(struct rsim_stage *stage, uint64_t id)
{
    for (size_t i = stage->queue_count; i > 0; i--)
        if (stage->queue[i - 1].id == id)
            return &stage->queue[i - 1];
    return NULL;
}

/* Entries of jobs that ended make room. */
static struct rsim_job *job_add(struct rsim_stage *stage, uint64_t id, const struct rsim_kind *kind)
{
    if (stage->queue_count == RSIM_JOBS_MAX) {
        size_t kept = 0;
        for (size_t i = 0; i < RSIM_JOBS_MAX; i++)
            if (stage->queue[i].runs || stage->queue[i].waits_us != UINT64_MAX)
                stage->queue[kept++] = stage->queue[i];
        stage->queue_count = kept;
        if (kept == RSIM_JOBS_MAX)
            RSIM_FAIL(stage, "RSM10: %zu jobs wait", kept);
    }
    struct rsim_job *job = &stage->queue[stage->queue_count++];
    *job = (struct rsim_job){.id = id, .kind = kind, .waits_us = UINT64_MAX};
    return job;
}

const struct rsim_kind *rsim_kind_of(struct rsim_stage *stage, const tide_job *job)
{
    const struct rsim_job *known = job_of(stage, tide_job_id(job));
    return known == NULL ? NULL : known->kind;
}

/* ---- starts and ends ---- */

static void check_levels(struct rsim_stage *stage, const struct rsim_kind *kind, uint64_t id)
{
    const uint64_t now_us = rsim_us(stage);
    for (size_t i = 0; i < stage->queue_count; i++) {
        const struct rsim_job *other = &stage->queue[i];
        if (other->waits_us == UINT64_MAX || other->kind->level >= kind->level ||
            other->waits_us + CHOSEN_US_MAX >= now_us)
            continue;
        RSIM_FAIL(stage,
                  "RSM1: %s %" PRIu64 " starts while %s %" PRIu64 " waits, for %" PRIu64 " ms",
                  kind->name, id, other->kind->name, other->id, (now_us - other->waits_us) / 1000);
    }
}

static void starts(struct rsim_stage *stage, const struct rsim_kind *kind, tide_job *job)
{
    struct rsim_job *known = job_of(stage, tide_job_id(job));
    if (known == NULL)
        known = job_add(stage, tide_job_id(job), kind);
    known->runs = true;
    known->waits_us = UINT64_MAX;
    if (known->id > stage->id_highest)
        stage->id_highest = known->id;
    stage->totals.starts++;
    rsim_say("  %s %" PRIu64 " starts: %.80s", kind->name, known->id, tide_job_payload(job).data);
    if (tide_job_account(job) == stage->account)
        check_levels(stage, kind, known->id);
    if (kind->alone && ++stage->alone > 1)
        RSIM_FAIL(stage, "RSM2: %s starts, and another one of the reader runs", kind->name);
}

/* The upload was interrupted: what it has done so far may be done again. */
static void excuse(struct rsim_stage *stage)
{
    for (size_t i = 0; i < stage->actions_count; i++)
        if (stage->actions[i].begun && !stage->actions[i].ended)
            stage->actions[i].excuses++;
}

static void ends(struct rsim_stage *stage, const struct rsim_kind *kind, tide_job *job,
                 tide_status rc)
{
    struct rsim_job *known = job_of(stage, tide_job_id(job));
    const bool parked =
        rc == TIDE_AGAIN && tide_job_again_at_ms(job) <= tide_job_now_ms(job) + PARK_MS_MAX;
    const bool put_back = rc == TIDE_CANCELED && stage->running && !tide_world_dead(stage->world);
    rsim_say("  %s %" PRIu64 " ends: %s", kind->name, tide_job_id(job), tide_status_name(rc));
    if (kind->alone)
        stage->alone--;
    if (known != NULL) {
        known->runs = false;
        known->waits_us = parked || put_back ? rsim_us(stage) : UINT64_MAX;
    }
    if (rc == TIDE_OK)
        return;
    if (put_back && rsim_is_readers(kind))
        stage->totals.faults[RFAULT_PREEMPTED]++;
    if (strcmp(kind->name, "reader.action") != 0)
        return;
    stage->totals.faults[RFAULT_PREEMPTED_ACTION] += put_back;
    excuse(stage);
}

static tide_status watched(tide_job *job, void *context, tide_error *err)
{
    const struct rsim_kind *kind = context;
    struct rsim_stage *stage = rsim_now;
    starts(stage, kind, job);
    const tide_status rc = kind->handler(job, kind->context, err);
    ends(stage, kind, job, rc);
    return rc;
}

/* ---- kinds ---- */

WRAP(tide_status, tide_engine_kind, tide_engine *engine, const struct tide_kind *kind,
     uint32_t *kind_out, tide_error *err)
{
    struct rsim_stage *stage = rsim_now;
    struct tide_kind seen = *kind;
    if (stage->kinds_count == RSIM_KINDS_MAX)
        RSIM_FAIL(stage, "more than %d kinds", RSIM_KINDS_MAX);
    struct rsim_kind *known = &stage->kinds[stage->kinds_count++];
    *known = (struct rsim_kind){.handler = kind->handler,
                                .context = kind->context,
                                .level = kind->level == 0 ? 4 : kind->level,
                                .alone = kind->one_per_account};
    (void)snprintf(known->name, sizeof known->name, "%s", kind->name);
    seen.handler = watched;
    seen.context = known;
    if (rsim_planted(RPLANT_LEVELS))
        seen.level = 4;
    if (rsim_planted(RPLANT_TOGETHER))
        seen.one_per_account = false;
    const tide_status rc = __real_tide_engine_kind(engine, &seen, kind_out, err);
    known->number = *kind_out;
    return rc;
}

/* ---- what is enqueued ---- */

static void enqueued(struct rsim_stage *stage, const struct tide_spec *spec, uint64_t id)
{
    const struct rsim_kind *kind = NULL;
    for (size_t i = 0; i < stage->kinds_count; i++)
        if (stage->kinds[i].number == spec->kind)
            kind = &stage->kinds[i];
    if (kind == NULL || spec->account != stage->account || id <= stage->id_highest)
        return; /* a duplicate: it may wait for the end of a pause */
    stage->id_highest = id;
    job_add(stage, id, kind)->waits_us = rsim_us(stage) + spec->delay_ms * 1000;
}

WRAP(tide_status, tide_enqueue, tide_engine *engine, const struct tide_spec *specs, size_t count,
     uint64_t *ids_out, tide_error *err)
{
    uint64_t id = 0;
    if (count != 1)
        return __real_tide_enqueue(engine, specs, count, ids_out, err);
    const tide_status rc = __real_tide_enqueue(engine, specs, 1, &id, err);
    if (rc == TIDE_OK && rsim_now->running)
        enqueued(rsim_now, specs, id);
    if (ids_out != NULL)
        *ids_out = id;
    return rc;
}

static bool is_upload(const struct tide_spec *spec)
{
    for (size_t i = 0; i < rsim_now->kinds_count; i++)
        if (rsim_now->kinds[i].number == spec->kind)
            return strcmp(rsim_now->kinds[i].name, "reader.action") == 0;
    return false;
}

WRAP(tide_status, tide_transaction_enqueue, tide_transaction *transaction,
     const struct tide_spec *specs, size_t count, uint64_t *ids_out, tide_error *err)
{
    uint64_t id = 0;
    if (rsim_planted(RPLANT_ACTION_STUCK) && count == 1 && is_upload(specs))
        return TIDE_OK;
    if (count != 1)
        return __real_tide_transaction_enqueue(transaction, specs, count, ids_out, err);
    const tide_status rc = __real_tide_transaction_enqueue(transaction, specs, 1, &id, err);
    if (rc == TIDE_OK && rsim_now->running)
        enqueued(rsim_now, specs, id);
    if (ids_out != NULL)
        *ids_out = id;
    return rc;
}
