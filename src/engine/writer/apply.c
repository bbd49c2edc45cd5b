/* apply.c - updates the core with the result of a transaction, under the lock (engine.h ENG4). */
#include "engine/writer/batch.h"
#include "base/check.h"
#include "engine/tuning.h"

#include <string.h>

/* ---- new jobs --------------------------------------------------------------- */

void tide_new_rows_done(struct tide_new_rows *new_rows, tide_mem *mem)
{
    tide_mem_free(mem, new_rows->jobs, new_rows->jobs_capacity * sizeof *new_rows->jobs);
    tide_mem_free(mem, new_rows->cycles, new_rows->cycles_capacity * sizeof *new_rows->cycles);
    memset(new_rows, 0, sizeof *new_rows);
}

uint64_t tide_engine_at_ms(tide_engine *engine, uint64_t unix_ms, uint64_t now_ms)
{
    if (unix_ms == 0)
        return 0;
    uint64_t now_unix_ms = tide_world_now_unix_ms(engine->world);
    return unix_ms <= now_unix_ms ? 0 : now_ms + (unix_ms - now_unix_ms);
}

/* No retry is further away than its longest pause, wherever the clock was when its time was stored: it
 * may have been set back since.  A delay without an attempt is what its caller asked for. */
static uint64_t due_at_ms(tide_engine *engine, const struct tide_brief *stored, uint64_t now_ms)
{
    const uint64_t at_ms = tide_engine_at_ms(engine, stored->not_before_ms, now_ms);
    if (stored->attempts == 0 || at_ms <= now_ms)
        return at_ms;
    const struct tide_account *account = tide_engine_account_of(engine, stored->account);
    const uint64_t pause_max_ms =
        tide_tuning_retry(account == NULL ? engine->settings
                                          : tide_account_settings(engine, account))
            .pause_max_ms;
    return at_ms - now_ms > pause_max_ms ? now_ms + pause_max_ms : at_ms;
}

void tide_batch_offer(tide_engine *engine, const struct tide_brief *stored, uint64_t now_ms)
{
    struct tide_brief brief = *stored;
    brief.not_before_ms = due_at_ms(engine, stored, now_ms);
    tide_dispatch_offer(engine, &brief, now_ms);
}

/* On a shared ledger only jobs of accounts that this process holds enter its window
 * (fleet.h FLT1, FLT2). */
static void offer_or_tell(tide_engine *engine, const struct tide_brief *brief, uint64_t now_ms)
{
    if (tide_fleet_ours(engine, brief->account)) {
        tide_batch_offer(engine, brief, now_ms);
        return;
    }
    if (brief->open_deps > 0)
        return; /* it is announced when its last dependency ends */
    if (brief->account != 0) {
        tide_fleet_look_soon(engine); /* perhaps no member holds the account */
        return;
    }
    tide_fleet_free_found(engine, brief->lane,
                          tide_engine_at_ms(engine, brief->not_before_ms, now_ms), now_ms);
}

/* ---- apply, under the lock ------------------------------------------------------- */

static const struct tide_refused *refusal_of(const struct tide_batch *batch, size_t index)
{
    for (size_t i = 0; i < batch->changes.refused_count; i++)
        if (batch->changes.refused[i].index == index)
            return &batch->changes.refused[i];
    return NULL;
}

static void apply_new_rows(tide_engine *engine, const struct tide_new_rows *new_rows,
                           struct tide_batch *batch, uint64_t now_ms);

/* On a shared ledger any process may claim a job without account that was put back; so may we. */
static void put_back_for_all(tide_engine *engine, const tide_job *job, uint64_t now_ms)
{
    if (job->brief.account == 0)
        tide_fleet_free_found(engine, job->brief.lane,
                              tide_engine_at_ms(engine, job->finish.not_before_unix_ms, now_ms),
                              now_ms);
}

static void apply_end(tide_engine *engine, struct tide_batch *batch, size_t index, uint64_t now_ms)
{
    tide_job *job = batch->jobs[index];
    uint64_t id = job->brief.id;
    bool applied = batch->applied[index];
    const struct tide_refused *refused = applied ? NULL : refusal_of(batch, index);
    /* Its own effect or a child was refused, or it is to be canceled; our claim still holds.  The
     * third try writes nothing but the row. */
    if (refused != NULL && refused->status == TIDE_CANCELED && tide_finish_goes_on(&job->finish)) {
        tide_job_cancel_end(job);
        tide_ended_push(engine, job);
        return;
    }
    if (refused != NULL && refused->status != TIDE_STALE && job->refusals < 2) {
        tide_job_refused(job, refused->status, refused->text, now_ms);
        return;
    }
    if (applied)
        tide_job_count(job, now_ms);
    if (applied)
        apply_new_rows(engine, &job->effects_transaction.new_rows, NULL, now_ms);
    bool ours = tide_fleet_ours(engine, job->brief.account);
    if (applied && job->finish.state == TIDE_ROW_PENDING && !ours)
        put_back_for_all(engine, job, now_ms);
    if (applied && job->finish.state == TIDE_ROW_PENDING && ours) {
        uint16_t attempts = (uint16_t)(job->brief.attempts + job->finish.attempts_add);
        tide_tracker_body_set(engine->tracker, id, NULL); /* dropped below */
        tide_tracker_put_back(engine->tracker, id,
                              tide_engine_at_ms(engine, job->finish.not_before_unix_ms, now_ms),
                              attempts, now_ms);
        tide_tracker_body_set(engine->tracker, id, NULL); /* dropped below */
        const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
        if (tracked->state == TIDE_JOB_READY &&
            tide_lanes_wanted(engine->lanes, &tracked->brief) == TIDE_OK)
            engine->stuff_to_claim = true;
    } else {
        tide_tracker_remove(engine->tracker, id);
        if (!applied) {
            /* Our claim is gone: another process decides about it now, or it is pending again. */
            TIDE_SEEN("writer: a stale end changed nothing");
            if (ours)
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
            offer_or_tell(engine, &changes->children[i].brief, now_ms);
    for (size_t i = 0; i < changes->released_count; i++) {
        const struct tide_released *released = &changes->released[i];
        if (engine->fleet != NULL && released->account == 0) {
            if (released->open_deps == 0)
                tide_fleet_free_work(engine);
            engine->stuff_to_claim = true;
            continue;
        }
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
        else if (engine->fleet != NULL && change->outstanding == 0 && change->failed == 0)
            tide_fleet_cycle_done(engine, change->stream);
    }
}

static void forget_claim(tide_engine *engine, uint64_t id)
{
    tide_lanes_left(engine->lanes, id);
    tide_tracker_remove(engine->tracker, id);
}

/* The ledger answered a claim: with `body`, which now belongs to the job, or NULL for refused. */
static void hold(tide_engine *engine, uint64_t id, struct tide_job_body *body, uint64_t now_ms)
{
    const struct tide_tracked *tracked = tide_tracker_find(engine->tracker, id);
    if (body == NULL) {
        TIDE_SEEN("writer: a claim was refused");
        forget_claim(engine, id);
        return;
    }
    tide_job *job = tide_job_take(engine, &tracked->brief, body);
    tide_tracker_claimed(engine->tracker, id, body->token, now_ms);
    tide_tracker_body_set(engine->tracker, id, job);
    (void)tide_lanes_held(engine->lanes, &job->brief);
}

/* Adds a job that is claimed already to the window, even if another one has to leave it. */
static void take_in(tide_engine *engine, const struct tide_brief *stored, uint64_t now_ms)
{
    uint64_t evicted = 0;
    struct tide_brief brief = *stored;
    tide_engine_brief_fill(engine, &brief);
    tide_status rc = tide_tracker_add(engine->tracker, &brief, now_ms, &evicted);
    if (evicted != 0)
        tide_lanes_left(engine->lanes, evicted);
    TIDE_ASSERT(rc == TIDE_OK);
    tide_tracker_claiming(engine->tracker, brief.id, now_ms);
}

/* Jobs of no account that the fleet claimed. */
static void apply_free(tide_engine *engine, struct tide_fleet_batch *claimed, uint64_t now_ms)
{
    for (size_t i = 0; i < claimed->count; i++) {
        struct tide_brief brief = claimed->briefs[i];
        brief.not_before_ms = 0;
        take_in(engine, &brief, now_ms);
        hold(engine, brief.id, claimed->bodies[i], now_ms);
    }
    tide_fleet_written(engine, claimed, now_ms);
}

static void apply_cycles(tide_engine *engine, const struct tide_new_rows *new_rows, uint64_t now_ms)
{
    for (size_t i = 0; i < new_rows->cycles_count; i++) {
        const struct tide_new_cycle *cycle = &new_rows->cycles[i];
        struct tide_stream *stream = tide_engine_stream_of(engine, cycle->stream);
        if (stream == NULL && engine->fleet != NULL && cycle->jobs == 0)
            tide_fleet_cycle_done(engine, cycle->stream);
        if (stream == NULL)
            continue;
        (void)tide_frontier_open(stream->frontier, cycle->ordinal);
        struct tide_cycle_live live = {.ordinal = cycle->ordinal,
                                       .total = cycle->jobs,
                                       .outstanding = cycle->jobs,
                                       .beat_ms = now_ms};
        memcpy(live.start, cycle->start, sizeof live.start);
        memcpy(live.end, cycle->end, sizeof live.end);
        tide_stream_cycle_is(engine, stream, &live);
    }
}

/* Adds new jobs that were claimed in the transaction that wrote them; before all others, so that none of
 * these takes their room in the window. */
static void take_in_new(tide_engine *engine, const struct tide_batch *batch, uint64_t now_ms)
{
    for (size_t i = batch->claims_known; i < batch->claims_count; i++)
        take_in(engine, &batch->claims_new[i - batch->claims_known], now_ms);
}

static bool was_claimed(const struct tide_batch *batch, uint64_t id)
{
    if (batch == NULL)
        return false;
    for (size_t i = batch->claims_known; i < batch->claims_count; i++)
        if (batch->claim_ids[i] == id)
            return true;
    return false;
}

/* `batch` is NULL for jobs that the effects of a finished job made: none of these is claimed. */
static void apply_new_rows(tide_engine *engine, const struct tide_new_rows *new_rows,
                           struct tide_batch *batch, uint64_t now_ms)
{
    apply_cycles(engine, new_rows, now_ms);
    for (size_t i = 0; i < new_rows->jobs_count; i++) {
        const struct tide_enqueued_job *job = &new_rows->jobs[i];
        uint64_t id = job->brief.id;
        if (!job->existed) {
            if (!was_claimed(batch, id))
                offer_or_tell(engine, &job->brief, now_ms);
        } else if (job->raised && tide_tracker_priority(engine->tracker, id, job->brief.priority)) {
            tide_lanes_priority(engine->lanes, id, job->brief.priority);
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
    if (rc != TIDE_OK && rc != TIDE_STOPPED && engine->fatal == TIDE_OK &&
        (engine->fleet != NULL || rc == TIDE_AGAIN)) {
        /* The ledger is on a server, or a callback ended the transaction: the requests go back
         * to the queue, and no other caller's request fails because of that. */
        return_writes(engine, batch->writes_left);
        return_writes(engine, batch->writes);
        batch->writes_left = NULL;
        return;
    }
    while (write != NULL) {
        struct tide_write *next = write->next;
        if (rc != TIDE_OK) {
            write->status = rc;
            write->err = *err;
        } else if (write->status == TIDE_OK) {
            apply_new_rows(engine, &write->transaction.new_rows, batch, now_ms);
            if (write->apply != NULL)
                write->apply(engine, write->arg, now_ms);
        }
        if (write->drop != NULL) {
            tide_new_rows_done(&write->transaction.new_rows, engine->mem);
            write->drop(engine, write);
        } else {
            write->done = true; /* from here on it belongs to the caller again */
        }
        write = next;
    }
    if (any)
        tide_cond_wake_all(engine->world, engine->news);
    return_writes(engine, batch->writes_left);
    batch->writes_left = NULL;
}

/* Failures that may pass by themselves: a full disk, no memory, a lock of another process. */
static bool passes(tide_status status)
{
    return status == TIDE_DISK_FULL || status == TIDE_NO_MEMORY || status == TIDE_BUSY ||
           status == TIDE_NETWORK;
}

/* A transaction that fails repeatedly for a reason that does not pass would fail forever, and
 * block everything that waits for the writer: then the engine stops with that reason. */
static void write_failed(tide_engine *engine, tide_status rc, const tide_error *err)
{
    enum { REFUSALS_MAX = 5 };
    uint32_t count = ++engine->write_failures;
    if ((count & (count - 1)) == 0) /* the 1st, 2nd, 4th, 8th ... */
        tide_log_event(engine->log, TIDE_LOG_ERROR, tide_world_now_unix_ms(engine->world),
                       "ledger not written", TIDE_F_CSTR("status", tide_status_name(rc)),
                       TIDE_F_CSTR("detail", err->text), TIDE_F_U64("times", count));
    if (!passes(rc) && count >= REFUSALS_MAX)
        tide_engine_fail(engine, rc, err);
}

static void write_worked(tide_engine *engine)
{
    if (engine->write_failures > 0)
        tide_log_event(engine->log, TIDE_LOG_INFO, tide_world_now_unix_ms(engine->world),
                       "ledger written again", TIDE_F_U64("times", engine->write_failures));
    engine->write_failures = 0;
}

void tide_batch_apply(tide_engine *engine, struct tide_batch *batch, uint64_t now_ms)
{
    write_worked(engine);
    take_in_new(engine, batch, now_ms);
    for (size_t i = 0; i < batch->moves_count; i++) {
        if (batch->moves[i].refused != TIDE_OK)
            continue;
        struct tide_stream *stream = tide_engine_stream_of(engine, batch->moves[i].stream);
        tide_frontier_committed(stream->frontier, batch->moves[i].to);
        memcpy(stream->cursor, batch->moves[i].cursor, sizeof stream->cursor);
    }
    for (size_t i = 0; i < batch->saving_count; i++)
        tide_governor_saved(batch->saving[i]->governor, batch->gathered_ms);
    if (batch->saving_count > 0)
        tide_cond_wake_one(engine->world, engine->pump); /* the time of the next save is known */
    for (size_t i = 0; i < batch->finishes_count; i++)
        apply_end(engine, batch, i, now_ms);
    tide_changes_apply(engine, &batch->changes, now_ms);
    for (size_t i = 0; i < batch->claims_count; i++)
        hold(engine, batch->claim_ids[i], batch->bodies[i], now_ms);
    apply_free(engine, &batch->fleet, now_ms);
    engine->counts.ledger_writes++;
    if (tide_fleet_must_rejoin(engine))
        tide_dispatch_put_back_all(engine, now_ms); /* our lease ran out meanwhile */
    /* Short jobs are claimed ahead, so that workers do not wait for the writer; long ones are
     * not, so that few are put back when the process dies. */
    engine->ahead = batch->finishes_count <= 2 ? (uint32_t)batch->finishes_count
                                               : (uint32_t)batch->finishes_count * 2;
}

void tide_batch_unapply(tide_engine *engine, struct tide_batch *batch, tide_status rc,
                        const tide_error *err, uint64_t now_ms)
{
    for (size_t i = batch->finishes_count; i > 0; i--) {
        tide_job *job = batch->jobs[i - 1];
        tide_new_rows_done(&job->effects_transaction.new_rows, engine->mem);
        job->next = engine->ended_first;
        engine->ended_first = job;
        if (engine->ended_last == NULL)
            engine->ended_last = job;
        engine->ended_count++;
    }
    tide_fleet_not_written(engine, &batch->fleet);
    for (size_t i = batch->claims_known; i < batch->claims_count; i++) {
        tide_job_body_free(engine->mem, batch->bodies[i]);
        tide_lanes_left(engine->lanes, batch->claim_ids[i]);
    }
    for (size_t i = 0; i < batch->claims_known; i++) {
        struct tide_brief brief = tide_tracker_find(engine->tracker, batch->claim_ids[i])->brief;
        tide_job_body_free(engine->mem, batch->bodies[i]);
        forget_claim(engine, brief.id);
        tide_dispatch_offer(engine, &brief, now_ms);
    }
    if (rc == TIDE_AGAIN) {
        engine->stuff_to_claim = true; /* at once: the callback that ended it does not run again */
        return;
    }
    if (tide_fleet_waits(engine, rc, err, now_ms)) {
        engine->stuff_to_claim = true;
        return;
    }
    /* TIDE_NEWER: a newer program upgraded the tables, and this one cannot use them. */
    if (tide_store_is_lost(rc) || rc == TIDE_NEWER || tide_world_dead(engine->world)) {
        tide_engine_fail(engine, rc, err);
        return;
    }
    TIDE_SEEN("writer: a transaction failed and is tried again");
    write_failed(engine, rc, err);
    engine->retry_writes_at_ms = now_ms + 1000;
    tide_cond_wake_one(engine->world, engine->pump);
}
