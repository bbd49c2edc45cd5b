/* apply.c - tells the core what became of a transaction, under the lock (N4). */
#include "engine/batch.h"
#include "base/check.h"

#include <string.h>

/* ---- births ----------------------------------------------------------------- */

void tide_births_done(struct tide_births *births, tide_mem *mem)
{
    tide_mem_free(mem, births->jobs, births->jobs_capacity * sizeof *births->jobs);
    tide_mem_free(mem, births->cycles, births->cycles_capacity * sizeof *births->cycles);
    memset(births, 0, sizeof *births);
}

static uint64_t to_monotonic_ms(tide_engine *engine, uint64_t unix_ms, uint64_t now_ms)
{
    if (unix_ms == 0)
        return 0;
    uint64_t now_unix_ms = tide_world_now_unix_ms(engine->world);
    return unix_ms <= now_unix_ms ? 0 : now_ms + (unix_ms - now_unix_ms);
}

void tide_batch_offer(tide_engine *engine, const struct tide_brief *stored, uint64_t now_ms)
{
    struct tide_brief brief = *stored;
    brief.not_before_ms = to_monotonic_ms(engine, stored->not_before_ms, now_ms);
    tide_dispatch_offer(engine, &brief, now_ms);
}

/* ---- apply, under the lock ------------------------------------------------------- */

/* Its own effect or a child was refused; the row is still ours.  The job fails
 * or goes back and pays an attempt, like any other failure. */
static void end_again(tide_engine *engine, tide_job *job, const struct tide_refused *refused)
{
    TIDE_SEEN("writer: an effect was refused");
    bool last = job->brief.attempts + 1 >= job->brief.attempts_max;
    bool permanent = tide_status_class(refused->status) == TIDE_CLASS_PERMANENT;
    (void)tide_error_set(&job->err, refused->status, "its end was refused: %s", refused->text);
    job->second_try = true;
    job->finish =
        (struct tide_finish){.id = job->brief.id,
                             .token = job->body->token,
                             .state = last || permanent ? TIDE_ROW_FAILED : TIDE_ROW_PENDING,
                             .attempts_add = 1,
                             .status = refused->status,
                             .error = tide_text_of(job->err.text)};
    tide_ended_push(engine, job);
}

static const struct tide_refused *refusal_of(const struct tide_batch *batch, size_t index)
{
    for (size_t i = 0; i < batch->changes.refused_count; i++)
        if (batch->changes.refused[i].index == index)
            return &batch->changes.refused[i];
    return NULL;
}

static void apply_births(tide_engine *engine, const struct tide_births *births,
                         struct tide_batch *batch, uint64_t now_ms);

static void apply_end(tide_engine *engine, struct tide_batch *batch, size_t index, uint64_t now_ms)
{
    tide_job *job = batch->jobs[index];
    uint64_t id = job->brief.id;
    bool applied = batch->applied[index];
    const struct tide_refused *refused = applied ? NULL : refusal_of(batch, index);
    if (refused != NULL && refused->status != TIDE_STALE && !job->second_try) {
        end_again(engine, job, refused);
        return;
    }
    if (applied)
        apply_births(engine, &job->effects_transaction.births, NULL, now_ms);
    if (applied && job->finish.state == TIDE_ROW_PENDING) {
        uint16_t attempts = (uint16_t)(job->brief.attempts + job->finish.attempts_add);
        tide_tracker_body_set(engine->tracker, id, NULL); /* dropped below */
        tide_tracker_put_back(engine->tracker, id,
                              to_monotonic_ms(engine, job->finish.not_before_unix_ms, now_ms),
                              attempts, now_ms);
        tide_tracker_body_set(engine->tracker, id, NULL); /* dropped below */
        const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
        if (tracked->state == TIDE_JOB_READY &&
            tide_lanes_wanted(engine->lanes, &tracked->brief) == TIDE_OK)
            engine->stuff_to_claim = true;
    } else {
        tide_tracker_remove(engine->tracker, id);
        if (!applied) {
            /* Somebody else decides about it now; it may be pending again. */
            TIDE_SEEN("writer: a stale end changed nothing");
            tide_tracker_more(engine->tracker, job->brief.account);
            engine->stuff_to_claim = true;
        }
    }
    tide_job_drop(job);
}

void tide_changes_apply(tide_engine *engine, const struct tide_changes *changes, uint64_t now_ms)
{
    for (size_t i = 0; i < changes->children_count; i++)
        if (!changes->children[i].existed)
            tide_batch_offer(engine, &changes->children[i].brief, now_ms);
    for (size_t i = 0; i < changes->released_count; i++) {
        const struct tide_released *released = &changes->released[i];
        if (!tide_tracker_release(engine->tracker, released->id, released->account,
                                  released->open_deps, now_ms))
            continue;
        const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, released->id);
        if (tracked->state == TIDE_JOB_READY &&
            tide_lanes_wanted(engine->lanes, &tracked->brief) == TIDE_OK)
            engine->stuff_to_claim = true;
    }
    for (size_t i = 0; i < changes->cycles_count; i++) {
        const struct tide_cycle_change *change = &changes->cycles[i];
        struct tide_stream *stream = tide_engine_stream_of(engine, change->stream);
        struct tide_cycle_live live = {.ordinal = change->ordinal,
                                       .total = change->total,
                                       .outstanding = change->outstanding,
                                       .failed = change->failed,
                                       .bad = change->bad,
                                       .beat_ms = now_ms};
        if (stream != NULL)
            tide_stream_cycle_is(engine, stream, &live);
    }
}

static void forget_claim(tide_engine *engine, uint64_t id)
{
    tide_lanes_left(engine->lanes, id);
    tide_tracker_remove(engine->tracker, id);
}

static void apply_claims(tide_engine *engine, struct tide_batch *batch, size_t from, size_t to,
                         uint64_t now_ms)
{
    for (size_t i = from; i < to; i++) {
        uint64_t id = batch->claim_ids[i];
        struct tide_job_body *body = batch->bodies[i];
        const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
        if (body == NULL) {
            TIDE_SEEN("writer: a claim was refused");
            forget_claim(engine, id);
            continue;
        }
        tide_job *job = tide_job_take(engine, &tracked->brief, body);
        if (job == NULL) {
            /* No memory for it now; its row runs under our name until we restart. */
            tide_job_body_free(engine->mem, body);
            forget_claim(engine, id);
            continue;
        }
        tide_tracker_claimed(engine->tracker, id, body->token, now_ms);
        tide_tracker_body_set(engine->tracker, id, job);
        (void)tide_lanes_held(engine->lanes, &job->brief);
    }
}

static void apply_cycles(tide_engine *engine, const struct tide_births *births, uint64_t now_ms)
{
    for (size_t i = 0; i < births->cycles_count; i++) {
        const struct tide_cycle_birth *birth = &births->cycles[i];
        struct tide_stream *stream = tide_engine_stream_of(engine, birth->stream);
        if (stream == NULL)
            continue;
        (void)tide_frontier_open(stream->frontier, birth->ordinal);
        struct tide_cycle_live live = {.ordinal = birth->ordinal,
                                       .total = birth->jobs,
                                       .outstanding = birth->jobs,
                                       .beat_ms = now_ms};
        memcpy(live.start, birth->start, sizeof live.start);
        memcpy(live.end, birth->end, sizeof live.end);
        tide_stream_cycle_is(engine, stream, &live);
    }
}

/* A job that was claimed at its birth goes on at once, before anything else can
 * take it out of the window again. */
static void apply_newborn(tide_engine *engine, struct tide_batch *batch, uint64_t id,
                          uint64_t now_ms)
{
    size_t next = batch->claims_known;
    if (next == batch->claims_count || batch->claim_ids[next] != id)
        return;
    TIDE_ASSERT(tide_tracker_find(engine->tracker, id) != NULL);
    tide_tracker_claiming(engine->tracker, id, now_ms);
    apply_claims(engine, batch, next, next + 1, now_ms);
    batch->claims_known++;
}

/* `batch` is NULL for what a finished job bore: nothing of that is claimed yet. */
static void apply_births(tide_engine *engine, const struct tide_births *births,
                         struct tide_batch *batch, uint64_t now_ms)
{
    apply_cycles(engine, births, now_ms);
    for (size_t i = 0; i < births->jobs_count; i++) {
        const struct tide_birth *birth = &births->jobs[i];
        uint64_t id = birth->brief.id;
        if (!birth->existed) {
            tide_batch_offer(engine, &birth->brief, now_ms);
            if (batch != NULL)
                apply_newborn(engine, batch, id, now_ms);
        } else if (birth->raised &&
                   tide_tracker_priority(engine->tracker, id, birth->brief.priority)) {
            tide_lanes_priority(engine->lanes, id, birth->brief.priority);
        }
    }
}

static void return_writes(tide_engine *engine, struct tide_write *left)
{
    if (left == NULL)
        return;
    struct tide_write *last = left;
    while (last->next != NULL)
        last = last->next;
    last->next = engine->writes_first;
    if (engine->writes_first == NULL)
        engine->writes_last = last;
    engine->writes_first = left;
}

void tide_batch_end_writes(tide_engine *engine, struct tide_batch *batch, tide_status rc,
                           const tide_error *err, uint64_t now_ms)
{
    struct tide_write *write = batch->writes;
    bool any = write != NULL;
    while (write != NULL) {
        struct tide_write *next = write->next;
        if (rc != TIDE_OK) {
            write->status = rc;
            write->err = *err;
        } else if (write->status == TIDE_OK) {
            apply_births(engine, &write->transaction.births, batch, now_ms);
            if (write->apply != NULL)
                write->apply(engine, write->arg, now_ms);
        }
        if (write->drop != NULL) {
            tide_births_done(&write->transaction.births, engine->mem);
            write->drop(engine, write);
        } else {
            write->done = true; /* from here on it is the caller's again */
        }
        write = next;
    }
    if (any)
        tide_cond_wake_all(engine->world, engine->news);
    return_writes(engine, batch->writes_left);
    batch->writes_left = NULL;
}

void tide_batch_apply(tide_engine *engine, struct tide_batch *batch, uint64_t now_ms)
{
    for (size_t i = 0; i < batch->moves_count; i++) {
        struct tide_stream *stream = tide_engine_stream_of(engine, batch->moves[i].stream);
        tide_frontier_committed(stream->frontier, batch->moves[i].to);
        memcpy(stream->cursor, batch->moves[i].cursor, sizeof stream->cursor);
    }
    for (size_t i = 0; i < batch->saving_count; i++)
        tide_governor_saved(batch->saving[i]->governor, batch->gathered_ms);
    if (batch->saving_count > 0)
        tide_cond_wake_one(engine->world, engine->pump); /* the next one has its time now */
    for (size_t i = 0; i < batch->finishes_count; i++)
        apply_end(engine, batch, i, now_ms);
    tide_changes_apply(engine, &batch->changes, now_ms);
    apply_claims(engine, batch, 0, batch->claims_known, now_ms);
    engine->counts.ledger_writes++;
    /* Jobs that end as fast as we write them are claimed ahead; long ones are
     * not, so that few are given back when the process dies. */
    engine->ahead = batch->finishes_count <= 2 ? (uint32_t)batch->finishes_count
                                               : (uint32_t)batch->finishes_count * 2;
}

void tide_batch_unapply(tide_engine *engine, struct tide_batch *batch, tide_status rc,
                        const tide_error *err, uint64_t now_ms)
{
    for (size_t i = batch->finishes_count; i > 0; i--) {
        tide_job *job = batch->jobs[i - 1];
        tide_births_done(&job->effects_transaction.births, engine->mem);
        job->next = engine->ended_first;
        engine->ended_first = job;
        if (engine->ended_last == NULL)
            engine->ended_last = job;
        engine->ended_count++;
    }
    for (size_t i = batch->claims_known; i < batch->claims_count; i++)
        tide_job_body_free(engine->mem, batch->bodies[i]);
    for (size_t i = 0; i < batch->claims_known; i++) {
        struct tide_brief brief = tide_tracker_find(engine->tracker, batch->claim_ids[i])->brief;
        tide_job_body_free(engine->mem, batch->bodies[i]);
        forget_claim(engine, brief.id);
        tide_dispatch_offer(engine, &brief, now_ms);
    }
    if (tide_store_is_lost(rc) || tide_world_dead(engine->world)) {
        tide_engine_fail(engine, rc, err);
        return;
    }
    TIDE_SEEN("writer: a transaction failed and is tried again");
    engine->retry_writes_at_ms = now_ms + 1000;
    tide_cond_wake_one(engine->world, engine->pump);
}
