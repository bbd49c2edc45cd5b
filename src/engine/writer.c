/* writer.c - one thread that writes everything waiting as one transaction.
 *
 * While a commit waits for the disk, ends, wishes and claims gather; the next
 * transaction takes them all (lesson 1: finish these and claim the next, fused).
 * Nothing is told to the core before it is durable (N4).
 *
 *   gather (lock) -> commit (no lock) -> apply (lock) -> refill -> again
 */
#include "engine/engine.h"
#include "base/check.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum {
    FINISHES_MAX = 256, /* of one transaction, so that it stays below 10 ms (E2.5) */
    REFILL_MAX = 512,   /* rows between two transactions */
    CURSORS_MAX = 64,
    WAL_PAGES_KEEPER = 1000, /* about 4 MB: the keeper copies the log back */
};

struct cursor_move {
    uint64_t stream;
    uint64_t from, to;
    char cursor[256]; /* its value there */
};

struct batch {
    tide_job *jobs[FINISHES_MAX];
    struct tide_finish finishes[FINISHES_MAX];
    bool applied[FINISHES_MAX];
    size_t finishes_count;
    uint64_t claim_ids[TIDE_CLAIM_MAX];
    struct tide_job_body *bodies[TIDE_CLAIM_MAX];
    size_t claims_count;
    size_t claims_known; /* the first of them are in the window; the rest are newborn */
    uint64_t claim_token;
    struct tide_write *writes;      /* all that were waiting */
    struct tide_write *writes_left; /* those the time did not reach */
    struct cursor_move moves[CURSORS_MAX];
    size_t moves_count;
    struct tide_account *saving[CURSORS_MAX]; /* governors whose spending is due (E4.3b) */
    struct tide_governor_saved saved[CURSORS_MAX];
    size_t saving_count;
    uint64_t gathered_ms;
    struct tide_changes changes;
    tide_buf text; /* scratch: one governor, printed */
};

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

static void offer_stored(tide_engine *engine, const struct tide_brief *stored, uint64_t now_ms)
{
    struct tide_brief brief = *stored;
    brief.not_before_ms = to_monotonic_ms(engine, stored->not_before_ms, now_ms);
    tide_dispatch_offer(engine, &brief, now_ms);
}

/* ---- gather ------------------------------------------------------------------ */

static void gather_ends(tide_engine *engine, struct batch *batch)
{
    while (batch->finishes_count < FINISHES_MAX && engine->ended_first != NULL) {
        tide_job *job = engine->ended_first;
        engine->ended_first = job->next;
        if (engine->ended_first == NULL)
            engine->ended_last = NULL;
        engine->ended_count--;
        job->next = NULL;
        batch->jobs[batch->finishes_count] = job;
        batch->finishes[batch->finishes_count] = job->finish;
        batch->finishes_count++;
    }
}

static void gather_claims(tide_engine *engine, struct batch *batch, uint64_t now_ms)
{
    engine->stuff_to_claim = false;
    batch->claims_known = 0;
    batch->claim_token = engine->token_next;
    if (engine->phase != TIDE_PHASE_RUN)
        return;
    uint64_t id = 0;
    while (batch->claims_count < TIDE_CLAIM_MAX / 2 &&
           tide_lanes_next_claim(engine->lanes, engine->ahead, &id)) {
        tide_tracker_claiming(engine->tracker, id, now_ms);
        batch->claim_ids[batch->claims_count++] = id;
    }
    batch->claims_known = batch->claims_count;
    batch->claim_token = engine->token_next;
    engine->token_next += batch->claims_count;
}

static void gather_cursors(tide_engine *engine, struct batch *batch)
{
    for (size_t i = 0; i < engine->streams_count && batch->moves_count < CURSORS_MAX; i++) {
        struct tide_stream *stream = engine->streams[i];
        uint64_t from = tide_frontier_cursor(stream->frontier);
        uint64_t to = tide_frontier_reachable(stream->frontier);
        if (from < to)
            batch->moves[batch->moves_count++] =
                (struct cursor_move){.stream = stream->id, .from = from, .to = to};
    }
}

static void gather_governors(tide_engine *engine, struct batch *batch, uint64_t now_ms)
{
    uint64_t now_unix_ms = tide_world_now_unix_ms(engine->world);
    engine->save_due = false;
    for (size_t i = 0; i < engine->accounts_count && batch->saving_count < CURSORS_MAX; i++) {
        struct tide_account *account = engine->accounts[i];
        if (!tide_governor_save_due(account->governor, now_ms))
            continue;
        tide_governor_save(account->governor, now_ms, now_unix_ms,
                           &batch->saved[batch->saving_count]);
        batch->saving[batch->saving_count++] = account;
    }
}

static bool gather(tide_engine *engine, struct batch *batch, uint64_t now_ms)
{
    batch->finishes_count = 0;
    batch->claims_count = 0;
    batch->moves_count = 0;
    batch->saving_count = 0;
    batch->writes_left = NULL;
    batch->gathered_ms = now_ms;
    if (engine->retry_writes_at_ms > now_ms)
        return false;
    engine->retry_writes_at_ms = 0;
    gather_ends(engine, batch);
    gather_claims(engine, batch, now_ms);
    gather_cursors(engine, batch);
    gather_governors(engine, batch, now_ms);
    batch->writes = engine->writes_first;
    engine->writes_first = NULL;
    engine->writes_last = NULL;
    return batch->finishes_count + batch->claims_count + batch->moves_count + batch->saving_count >
               0 ||
           batch->writes != NULL;
}

/* ---- commit -------------------------------------------------------------------- */

static bool store_is_lost(tide_status status)
{
    return status == TIDE_IO || status == TIDE_CORRUPT;
}

static bool tx_is_lost(tide_status status)
{
    return store_is_lost(status) || status == TIDE_DISK_FULL || status == TIDE_NO_MEMORY ||
           status == TIDE_BUSY;
}

tide_status tide_transaction_run(struct tide_transaction *transaction, tide_transact_fn *run,
                                 void *arg, tide_error *err)
{
    struct tide_births before = transaction->births;
    struct sqlite3 *sqlite = tide_tx_sqlite(transaction->tx);
    if (sqlite != NULL && sqlite3_exec(sqlite, "SAVEPOINT wish", NULL, NULL, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_IO, "savepoint: %s", sqlite3_errmsg(sqlite));
    tide_status rc = run(transaction, arg, err);
    if (sqlite == NULL || tx_is_lost(rc))
        return rc;
    if (rc != TIDE_OK) {
        transaction->births.jobs_count = before.jobs_count;
        transaction->births.cycles_count = before.cycles_count;
        (void)sqlite3_exec(sqlite, "ROLLBACK TO wish", NULL, NULL, NULL);
    }
    if (sqlite3_exec(sqlite, "RELEASE wish", NULL, NULL, NULL) != SQLITE_OK && rc == TIDE_OK)
        rc = tide_error_set(err, TIDE_IO, "release savepoint: %s", sqlite3_errmsg(sqlite));
    return rc;
}

static tide_status write_wishes(tide_engine *engine, struct batch *batch, tide_tx *tx,
                                uint64_t now_unix_ms, tide_error *err)
{
    uint64_t until_us = tide_world_now_us(engine->world) +
                        __atomic_load_n(&engine->wishes_us_max, __ATOMIC_RELAXED);
    for (struct tide_write *write = batch->writes; write != NULL; write = write->next) {
        write->transaction.engine = engine;
        write->transaction.tx = tx;
        write->transaction.now_unix_ms = now_unix_ms;
        write->transaction.births.jobs_count = 0;
        write->transaction.births.cycles_count = 0;
        write->status =
            tide_transaction_run(&write->transaction, write->run, write->arg, &write->err);
        if (tx_is_lost(write->status)) {
            *err = write->err;
            return write->status;
        }
        if (write->next != NULL && tide_world_now_us(engine->world) > until_us) {
            batch->writes_left = write->next;
            write->next = NULL;
            break;
        }
    }
    return TIDE_OK;
}

/* A job that is born while nothing else waits and a worker is free is claimed in
 * the transaction that writes it: a click costs one sync, not two. */
static bool may_start_at_birth(tide_engine *engine, const struct tide_birth *birth,
                               uint64_t now_unix_ms)
{
    const struct tide_brief *brief = &birth->brief;
    if (birth->existed || brief->open_deps > 0 || brief->not_before_ms > now_unix_ms ||
        tide_engine_kind_of(engine, brief->kind) == NULL)
        return false;
    /* With an account, only if the window is empty: then none of its jobs runs. */
    struct tide_account *account = tide_engine_account_of(engine, brief->account);
    if (account != NULL)
        return account->admitted > 0 && tide_tracker_count(engine->tracker) == 0;
    return true;
}

static void claim_newborn(tide_engine *engine, struct batch *batch, uint64_t now_unix_ms)
{
    tide_lock_take(engine->world, engine->lock);
    uint32_t waiting = tide_lanes_waiting(engine->lanes, TIDE_LANE_INTERACTIVE) +
                       tide_lanes_waiting(engine->lanes, TIDE_LANE_BULK);
    bool quiet = engine->phase == TIDE_PHASE_RUN && waiting == 0 && batch->claims_count == 0 &&
                 tide_tracker_count(engine->tracker) < TIDE_WORKERS_MAX;
    size_t room = quiet ? engine->workers_idle : 0;
    for (struct tide_write *write = batch->writes; write != NULL && room > 0; write = write->next)
        for (size_t i = 0; i < write->transaction.births.jobs_count && room > 0; i++) {
            const struct tide_birth *birth = &write->transaction.births.jobs[i];
            if (!may_start_at_birth(engine, birth, now_unix_ms))
                continue;
            batch->claim_ids[batch->claims_count++] = birth->brief.id;
            room--;
            if (birth->brief.account != 0)
                room = 0; /* one: its account was asked for one */
        }
    engine->token_next += batch->claims_count - batch->claims_known;
    tide_lock_drop(engine->world, engine->lock);
    memset(batch->bodies + batch->claims_known, 0,
           (batch->claims_count - batch->claims_known) * sizeof batch->bodies[0]);
}

static tide_status write_rest(tide_engine *engine, struct batch *batch, tide_tx *tx,
                              uint64_t now_unix_ms, tide_error *err)
{
    tide_status rc = TIDE_OK;
    if (batch->claims_count > 0)
        rc = tide_ledger_claim(tx, batch->claim_ids, batch->claims_count, engine->owner,
                               batch->claim_token, now_unix_ms, engine->mem, batch->bodies, err);
    for (size_t i = 0; rc == TIDE_OK && i < batch->moves_count; i++) {
        struct cursor_move *move = &batch->moves[i];
        rc = tide_ledger_cursor_move(tx, move->stream, move->from, move->to, now_unix_ms,
                                     &batch->text, err);
        (void)snprintf(move->cursor, sizeof move->cursor, "%.*s", (int)batch->text.bytes,
                       batch->text.bytes > 0 ? batch->text.data : "");
    }
    for (size_t i = 0; rc == TIDE_OK && i < batch->saving_count; i++) {
        tide_buf_clear(&batch->text);
        rc = tide_governor_saved_print(&batch->saved[i], &batch->text);
        if (rc == TIDE_OK)
            rc = tide_ledger_governor_save(tx, batch->saving[i]->id, tide_buf_text(&batch->text),
                                           err);
    }
    return rc;
}

static tide_status commit(tide_engine *engine, struct batch *batch, tide_error *err)
{
    uint64_t now_unix_ms = tide_world_now_unix_ms(engine->world);
    memset(batch->bodies, 0, batch->claims_count * sizeof batch->bodies[0]);
    tide_changes_clear(&batch->changes);

    tide_tx *tx = NULL;
    tide_status rc = tide_tx_begin(engine->ledger, &tx, err);
    if (rc != TIDE_OK)
        return rc;
    if (batch->finishes_count > 0)
        rc = tide_ledger_finish(tx, batch->finishes, batch->finishes_count, now_unix_ms,
                                batch->applied, &batch->changes, err);
    if (rc == TIDE_OK)
        rc = write_wishes(engine, batch, tx, now_unix_ms, err);
    if (rc == TIDE_OK && batch->writes != NULL)
        claim_newborn(engine, batch, now_unix_ms);
    if (rc == TIDE_OK)
        rc = write_rest(engine, batch, tx, now_unix_ms, err);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, err);
    tide_tx_rollback(tx);
    return rc;
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

static const struct tide_refused *refusal_of(const struct batch *batch, size_t index)
{
    for (size_t i = 0; i < batch->changes.refused_count; i++)
        if (batch->changes.refused[i].index == index)
            return &batch->changes.refused[i];
    return NULL;
}

static void apply_births(tide_engine *engine, const struct tide_births *births, struct batch *batch,
                         uint64_t now_ms);

static void apply_end(tide_engine *engine, struct batch *batch, size_t index, uint64_t now_ms)
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
            offer_stored(engine, &changes->children[i].brief, now_ms);
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

static void apply_claims(tide_engine *engine, struct batch *batch, size_t from, size_t to,
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
static void apply_newborn(tide_engine *engine, struct batch *batch, uint64_t id, uint64_t now_ms)
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
static void apply_births(tide_engine *engine, const struct tide_births *births, struct batch *batch,
                         uint64_t now_ms)
{
    apply_cycles(engine, births, now_ms);
    for (size_t i = 0; i < births->jobs_count; i++) {
        const struct tide_birth *birth = &births->jobs[i];
        uint64_t id = birth->brief.id;
        if (!birth->existed) {
            offer_stored(engine, &birth->brief, now_ms);
            if (batch != NULL)
                apply_newborn(engine, batch, id, now_ms);
        } else if (birth->raised &&
                   tide_tracker_priority(engine->tracker, id, birth->brief.priority)) {
            tide_lanes_priority(engine->lanes, id, birth->brief.priority);
        }
    }
}

static void end_writes(tide_engine *engine, struct batch *batch, tide_status rc,
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

static void apply(tide_engine *engine, struct batch *batch, uint64_t now_ms)
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

/* Nothing was written.  Ends are kept and tried again (lesson 9), claims go back
 * to the queue, wishes learn of the failure.  A failed sync ends the engine:
 * what the file holds is no longer known (E1.10). */
static void unapply(tide_engine *engine, struct batch *batch, tide_status rc, const tide_error *err,
                    uint64_t now_ms)
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
    if (store_is_lost(rc) || tide_world_dead(engine->world)) {
        tide_engine_fail(engine, rc, err);
        return;
    }
    TIDE_SEEN("writer: a transaction failed and is tried again");
    engine->retry_writes_at_ms = now_ms + 1000;
    tide_cond_wake_one(engine->world, engine->pump);
}

/* ---- refill (E2.1) ------------------------------------------------------------------ */

/* Loads from the ledger what the window has room for.  Runs between two
 * transactions on the writer's own connection, so that what it reads is exactly
 * what the tracker has been told. */
static void refill(tide_engine *engine)
{
    struct tide_refill wanted;
    if (engine->phase != TIDE_PHASE_RUN || !tide_tracker_refill(engine->tracker, &wanted))
        return;
    if (wanted.count_max > REFILL_MAX)
        wanted.count_max = REFILL_MAX;
    /* The tracker believes that nothing is left to load; until we know better,
     * nobody may take that for quiet. */
    engine->writer_busy = true;
    tide_lock_drop(engine->world, engine->lock);
    static _Thread_local struct tide_brief briefs[REFILL_MAX];
    size_t count = 0;
    tide_error err;
    tide_status rc = tide_ledger_refill(engine->ledger, wanted.account, wanted.after_priority,
                                        wanted.after_id, briefs, wanted.count_max, &count, &err);
    tide_lock_take(engine->world, engine->lock);
    engine->writer_busy = false;
    if (rc != TIDE_OK) {
        tide_tracker_refilled(engine->tracker, &wanted, 0, NULL);
        tide_tracker_more(engine->tracker, wanted.account);
        if (store_is_lost(rc))
            tide_engine_fail(engine, rc, &err);
        return;
    }
    uint64_t now_ms = tide_world_now_ms(engine->world);
    for (size_t i = 0; i < count; i++)
        offer_stored(engine, &briefs[i], now_ms);
    tide_tracker_refilled(engine->tracker, &wanted, (uint32_t)count,
                          count > 0 ? &briefs[count - 1] : NULL);
    if (tide_tracker_wants_refill(engine->tracker))
        engine->stuff_to_claim = true; /* come back for the rest */
}

/* The keeper copied the bulk of the log; with the short rest done here, while
 * nobody writes, SQLite starts the log over. */
static void copy_rest_of_log(tide_engine *engine)
{
    if (!engine->wal_short)
        return;
    tide_lock_drop(engine->world, engine->lock);
    uint32_t pages_left = 0;
    tide_error err;
    tide_status rc = tide_ledger_checkpoint(engine->ledger, &pages_left, &err);
    tide_lock_take(engine->world, engine->lock);
    engine->wal_short = false;
    if (store_is_lost(rc))
        tide_engine_fail(engine, rc, &err);
}

bool tide_writer_has_work(const tide_engine *engine)
{
    if (engine->retry_writes_at_ms != 0)
        return false; /* the dispatcher wakes it then */
    return engine->ended_count > 0 || engine->writes_first != NULL || engine->stuff_to_claim ||
           engine->save_due;
}

/* ---- the thread ------------------------------------------------------------------------ */

static void write_batch(tide_engine *engine, struct batch *batch)
{
    engine->writer_busy = true;
    tide_lock_drop(engine->world, engine->lock);
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = commit(engine, batch, &err);
    tide_lock_take(engine->world, engine->lock);
    engine->writer_busy = false;

    uint64_t now_ms = tide_world_now_ms(engine->world);
    if (rc == TIDE_OK)
        apply(engine, batch, now_ms);
    else
        unapply(engine, batch, rc, &err, now_ms);
    end_writes(engine, batch, rc, &err, now_ms);
    return_writes(engine, batch->writes_left);
    engine->wal_pages += 8 + (uint32_t)(batch->finishes_count + batch->claims_count) / 4;
    if (engine->wal_pages > WAL_PAGES_KEEPER)
        tide_cond_wake_one(engine->world, engine->keeper);
}

void tide_writer_main(void *arg)
{
    tide_engine *engine = arg;
    struct batch *batch = tide_mem_new(engine->mem, sizeof *batch);
    tide_lock_take(engine->world, engine->lock);
    if (batch == NULL) {
        tide_error err;
        (void)tide_error_set(&err, TIDE_NO_MEMORY, "no memory for the writer");
        tide_engine_fail(engine, TIDE_NO_MEMORY, &err);
        tide_lock_drop(engine->world, engine->lock);
        return;
    }
    tide_changes_init(&batch->changes, engine->mem);
    tide_buf_init(&batch->text, engine->mem, 64 << 10);
    while (engine->phase != TIDE_PHASE_ENDED) {
        copy_rest_of_log(engine);
        if (gather(engine, batch, tide_world_now_ms(engine->world))) {
            write_batch(engine, batch);
            refill(engine);
            tide_dispatch(engine, tide_world_now_ms(engine->world));
            tide_engine_quiet(engine);
            if (engine->phase != TIDE_PHASE_RUN) /* this may have been all it waited for */
                tide_cond_wake_one(engine->world, engine->pump);
            continue;
        }
        refill(engine);
        if (tide_writer_has_work(engine))
            continue; /* it came while the refill read without the lock */
        tide_engine_quiet(engine);
        engine->writer_idle = true;
        /* Before the start and at the end there is no dispatcher to end a pause. */
        uint64_t until_us =
            engine->retry_writes_at_ms == 0 ? TIDE_NEVER : engine->retry_writes_at_ms * 1000;
        tide_status rc = tide_cond_wait(engine->world, engine->write, engine->lock, until_us);
        engine->writer_idle = false;
        if (rc == TIDE_STOPPED)
            break;
    }
    /* Whoever still waits for a wish learns that it was not written. */
    tide_error err;
    (void)tide_error_set(&err, TIDE_STOPPED, "the engine has stopped");
    batch->writes = engine->writes_first;
    engine->writes_first = NULL;
    engine->writes_last = NULL;
    end_writes(engine, batch, TIDE_STOPPED, &err, 0);
    engine->writer_gone = true;
    tide_lock_drop(engine->world, engine->lock);
    tide_changes_done(&batch->changes);
    tide_buf_done(&batch->text);
    tide_mem_free(engine->mem, batch, sizeof *batch);
}

void tide_write_push(tide_engine *engine, struct tide_write *write)
{
    write->next = NULL;
    write->done = false;
    if (engine->writes_last != NULL)
        engine->writes_last->next = write;
    else
        engine->writes_first = write;
    engine->writes_last = write;
    if (engine->writer_idle)
        tide_cond_wake_one(engine->world, engine->write);
}

tide_status tide_write_run(tide_engine *engine, struct tide_write *write, tide_error *err)
{
    tide_lock_take(engine->world, engine->lock);
    if (engine->writer_gone) {
        tide_lock_drop(engine->world, engine->lock);
        return tide_error_set(err, TIDE_STOPPED, "the engine has stopped");
    }
    tide_write_push(engine, write);
    /* Also in a dead world the writer answers every wish before it leaves. */
    while (!write->done)
        (void)tide_cond_wait(engine->world, engine->news, engine->lock, TIDE_NEVER);
    tide_lock_drop(engine->world, engine->lock);
    tide_births_done(&write->transaction.births, engine->mem);
    if (write->status != TIDE_OK && err != NULL)
        *err = write->err;
    return write->status;
}
