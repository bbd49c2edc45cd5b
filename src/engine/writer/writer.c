/* writer.c - the thread that writes everything that waits as one transaction.
 *
 * While a commit waits for the disk, ends, write requests and claims collect; the next
 * transaction takes them all (lesson 1: finish these and claim the next, in one).
 * The core gets no change before it is durable (engine.h ENG4).
 *
 *   gather (lock) -> commit (no lock) -> apply (lock) -> refill -> again
 */
#include "engine/writer/batch.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- gather ------------------------------------------------------------------ */

static void gather_ends(tide_engine *engine, struct tide_batch *batch)
{
    size_t max = engine->fleet != NULL ? FINISHES_SHARED_MAX : FINISHES_MAX;
    while (batch->finishes_count < max && engine->ended_first != NULL) {
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

/* There is no memory for the jobs that could be claimed: try again in a second. */
static void claim_later(tide_engine *engine, uint64_t now_ms)
{
    TIDE_SEEN("writer: no memory for a claim");
    engine->stuff_to_claim = true;
    engine->retry_writes_at_ms = now_ms + 1000;
    tide_cond_wake_one(engine->world, engine->pump);
}

/* Claimed payloads wait in memory: at most CLAIMED_BYTES_MAX of them in a batch, however large
 * the payloads of a kind may be. */
static size_t claims_max(const tide_engine *engine, size_t most)
{
    size_t bytes = 64 << 10;
    for (uint32_t i = 0; i < engine->kinds_count; i++)
        if (engine->kinds[i].kind.payload_bytes_max > bytes)
            bytes = engine->kinds[i].kind.payload_bytes_max;
    const size_t count = CLAIMED_BYTES_MAX / bytes;
    return count < TIDE_WORKERS_MAX ? TIDE_WORKERS_MAX : count < most ? count : most;
}

static void gather_claims(tide_engine *engine, struct tide_batch *batch, uint64_t now_ms)
{
    engine->stuff_to_claim = false;
    batch->claims_known = 0;
    batch->claim_token = engine->token_next;
    if (engine->phase != TIDE_PHASE_RUN)
        return;
    uint64_t id = 0;
    bool room = true;
    const size_t max = claims_max(engine, TIDE_CLAIM_MAX / 2);
    const uint32_t ahead = engine->ahead < max ? engine->ahead : (uint32_t)max;
    while (batch->claims_count < max && (room = tide_jobs_reserve(engine, 1)) &&
           tide_lanes_next_claim(engine->lanes, ahead, &id)) {
        tide_tracker_claiming(engine->tracker, id, now_ms);
        batch->claim_ids[batch->claims_count++] = id;
    }
    batch->claims_known = batch->claims_count;
    batch->claim_token = engine->token_next;
    engine->token_next += batch->claims_count;
    if (!room)
        claim_later(engine, now_ms);
}

static int move_order(const void *a, const void *b)
{
    const uint64_t one = ((const struct cursor_move *)a)->stream;
    const uint64_t other = ((const struct cursor_move *)b)->stream;
    return (one > other) - (one < other);
}

/* In the order of their ids: on a shared ledger, two processes that lock rows of the same streams
 * in different orders would end in a deadlock. */
static void gather_cursors(tide_engine *engine, struct tide_batch *batch)
{
    for (size_t i = 0; i < engine->streams_count && batch->moves_count < CURSORS_MAX; i++) {
        struct tide_stream *stream = engine->streams[i];
        uint64_t from = tide_frontier_cursor(stream->frontier);
        uint64_t to = tide_frontier_reachable(stream->frontier);
        if (from < to)
            batch->moves[batch->moves_count++] =
                (struct cursor_move){.stream = stream->id, .from = from, .to = to};
    }
    if (batch->moves_count > 1)
        qsort(batch->moves, batch->moves_count, sizeof batch->moves[0], move_order);
}

static void gather_governors(tide_engine *engine, struct tide_batch *batch, uint64_t now_ms)
{
    uint64_t now_unix_ms = tide_world_now_unix_ms(engine->world);
    engine->save_due = false;
    for (size_t i = 0; i < engine->accounts_count && batch->saving_count < CURSORS_MAX; i++) {
        struct tide_account *account = engine->accounts[i];
        if (!account->held || !tide_governor_save_due(account->governor, now_ms))
            continue;
        tide_governor_save(account->governor, now_ms, now_unix_ms,
                           &batch->saved[batch->saving_count]);
        batch->saving[batch->saving_count++] = account;
    }
}

static bool gather(tide_engine *engine, struct tide_batch *batch, uint64_t now_ms)
{
    batch->finishes_count = 0;
    batch->claims_count = 0;
    batch->moves_count = 0;
    batch->saving_count = 0;
    batch->writes_left = NULL;
    batch->gathered_ms = now_ms;
    engine->jobs_reserved = 0; /* of a gather that found nothing to write */
    if (engine->retry_writes_at_ms > now_ms)
        return false;
    engine->retry_writes_at_ms = 0;
    gather_ends(engine, batch);
    gather_claims(engine, batch, now_ms);
    gather_cursors(engine, batch);
    gather_governors(engine, batch, now_ms);
    const bool fleet =
        tide_fleet_gather(engine, batch->finishes_count > 0,
                          (uint32_t)claims_max(engine, FLEET_FREE_MAX / 2), &batch->fleet);
    batch->writes = engine->writes_first;
    engine->writes_first = NULL;
    engine->writes_last = NULL;
    return batch->finishes_count + batch->claims_count + batch->moves_count + batch->saving_count >
               0 ||
           fleet || batch->writes != NULL;
}

/* ---- commit -------------------------------------------------------------------- */

static bool tx_is_lost(tide_status status)
{
    return tide_store_is_lost(status) || status == TIDE_DISK_FULL || status == TIDE_NO_MEMORY ||
           status == TIDE_BUSY || status == TIDE_NETWORK;
}

/* Whether no statement of the transaction has failed so far, neither ours nor the callback's. */
static bool statements_work(tide_tx *tx)
{
    return tide_tx_savepoint(tx, NULL) == TIDE_OK &&
           tide_tx_savepoint_end(tx, true, NULL) == TIDE_OK;
}

/* Whether a status that looks like a lost transaction is the callback's own and is returned to
 * its caller only.  A callback may return any status: one that sounds like a broken store or a
 * lost server must neither stop the engine nor repeat the transaction of all callers forever.
 * On a server, after a failed statement: TIDE_IO and TIDE_CORRUPT say that the server refused the
 * callback's statement; the others are troubles of the server, which pass and are waited for.  A
 * file that is full or damaged is so for the engine too. */
static bool says_its_own(const tide_engine *engine, const struct tide_write *write, tide_tx *tx,
                         tide_status rc)
{
    bool shared = engine->fleet != NULL;
    if (!write->own)
        return false;
    if (statements_work(tx))
        return shared || rc == TIDE_BUSY || rc == TIDE_NETWORK || rc == TIDE_IO;
    return shared && tide_store_is_lost(rc);
}

static void forget_new_rows(struct tide_transaction *transaction)
{
    transaction->new_rows.jobs_count = 0;
    transaction->new_rows.cycles_count = 0;
}

/* The callback took longer than the server waits inside a transaction: the server ended that one,
 * and would end the next one. */
static tide_status too_slow(tide_error *err)
{
    return tide_error_set(err, TIDE_TIMEOUT,
                          "the callback takes more than %d ms inside a transaction; do slow work "
                          "before the transaction",
                          TIDE_CALLBACK_MS_MAX);
}

/* The callback ended the transaction with a statement of its own, and would end the next one. */
static tide_status not_its_own(tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID,
                          "the callback ended the transaction it runs in: by a COMMIT or ROLLBACK "
                          "of its own, or by a failed statement that it did not report");
}

/* Runs one write request in a savepoint.  *lost_out: the whole transaction is lost. */
static tide_status write_request(tide_engine *engine, struct tide_write *write, bool *lost_out,
                                 tide_error *err)
{
    struct tide_transaction *transaction = &write->transaction;
    *lost_out = !write->slow && !write->over;
    if (write->slow)
        return too_slow(err);
    if (write->over)
        return not_its_own(err);
    TIDE_TRY(tide_tx_savepoint(transaction->tx, err));
    uint64_t until_us = tide_world_now_us(engine->world) + (uint64_t)TIDE_CALLBACK_MS_MAX * 1000;
    tide_status rc = write->run(transaction, write->arg, err);
    bool slow = write->own && tide_world_now_us(engine->world) > until_us;
    write->slow = slow && rc == TIDE_NETWORK;
    if (write->own && tide_tx_over(transaction->tx) && !tide_store_is_lost(rc) &&
        rc != TIDE_DISK_FULL && rc != TIDE_NO_MEMORY) {
        write->over = true;
        return tide_error_set(err, TIDE_AGAIN, "a callback ended the transaction it ran in");
    }
    if (tx_is_lost(rc) && !says_its_own(engine, write, transaction->tx, rc))
        return rc;
    tide_error end_error = {.text = ""};
    tide_status ended = tide_tx_savepoint_end(transaction->tx, rc == TIDE_OK, &end_error);
    *lost_out = tx_is_lost(ended);
    write->slow = write->slow || (slow && ended == TIDE_NETWORK);
    if (ended != TIDE_OK && err != NULL)
        *err = end_error;
    rc = ended == TIDE_OK ? rc : ended;
    if (rc != TIDE_OK)
        forget_new_rows(transaction);
    return rc;
}

/* Runs a write request that is alone.  Nothing was written before it, so it needs no savepoint:
 * its caller waits for two round trips less on a shared ledger.  If it fails, everything is
 * undone, and the rest of the batch gets a new transaction; *tx is NULL if none can begin. */
static tide_status write_first_request(tide_engine *engine, struct tide_write *write, tide_tx **tx,
                                       tide_error *err)
{
    write->status = write->run(&write->transaction, write->arg, &write->err);
    if (tx_is_lost(write->status))
        *err = write->err;
    if (write->status == TIDE_OK || tx_is_lost(write->status))
        return write->status;
    TIDE_SEEN("writer: a write request that was alone failed");
    forget_new_rows(&write->transaction);
    tide_tx_rollback(*tx);
    *tx = NULL;
    return tide_tx_begin_lazily(engine->ledger, tx, err);
}

static tide_status write_requests(tide_engine *engine, struct tide_batch *batch, tide_tx **tx,
                                  uint64_t now_unix_ms, tide_error *err)
{
    uint64_t until_us = tide_world_now_us(engine->world) +
                        __atomic_load_n(&engine->write_requests_us_max, __ATOMIC_RELAXED);
    bool first = batch->finishes_count == 0;
    for (struct tide_write *write = batch->writes; write != NULL; write = write->next) {
        write->transaction.engine = engine;
        write->transaction.tx = *tx;
        write->transaction.now_unix_ms = now_unix_ms;
        forget_new_rows(&write->transaction);
        if (first && write->next == NULL && !write->own)
            return write_first_request(engine, write, tx, err);
        first = false;
        bool lost = false;
        write->status = write_request(engine, write, &lost, &write->err);
        if (lost) {
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

/* Whether new jobs may be claimed in the transaction that writes them.  On a shared ledger only if
 * nothing waits: other processes have jobs of their own that may go first. */
static bool may_claim_new_jobs(const tide_engine *engine, const struct tide_batch *batch)
{
    if (engine->phase != TIDE_PHASE_RUN)
        return false;
    const uint32_t waiting = tide_lanes_waiting(engine->lanes, TIDE_LANE_INTERACTIVE) +
                             tide_lanes_waiting(engine->lanes, TIDE_LANE_BULK);
    return engine->fleet == NULL ||
           (waiting == 0 && batch->claims_count == 0 && engine->workers_idle > 0 &&
            tide_tracker_count(engine->tracker) < TIDE_WORKERS_MAX);
}

/* Whether the new job is next and could start now.  Until the COMMIT it is in the lanes as one that is
 * being claimed, so that nothing else is given its place; the window gets it afterwards (ENG4), first of
 * all, and has room for it: this thread alone adds jobs there. */
static bool claim_at_once(tide_engine *engine, struct tide_batch *batch,
                          const struct tide_enqueued_job *job, uint64_t now_unix_ms)
{
    struct tide_brief brief = job->brief;
    const size_t count = batch->claims_count - batch->claims_known;
    if (job->existed || brief.open_deps > 0 || brief.not_before_ms > now_unix_ms ||
        count == CLAIMS_NEW_MAX || count >= tide_tracker_room(engine->tracker) ||
        !tide_engine_brief_fill(engine, &brief))
        return false;
    if (engine->fleet != NULL && brief.account != 0 &&
        tide_tracker_count(engine->tracker) + count > 0)
        return false;
    brief.not_before_ms = 0;
    if (!tide_lanes_at_once(engine->lanes, &brief))
        return false;
    if (!tide_jobs_reserve(engine, 1)) {
        tide_lanes_left(engine->lanes, brief.id); /* it is claimed later, if there is memory then */
        return false;
    }
    batch->claims_new[count] = brief;
    batch->claim_ids[batch->claims_count++] = brief.id;
    return true;
}

/* A new job that is next and could start now is claimed in the transaction that writes it: a click
 * costs one sync before its call, not two (K15).  After a crash it is like any claimed job. */
static void claim_new_jobs(tide_engine *engine, struct tide_batch *batch, uint64_t now_unix_ms)
{
    tide_lock_take(engine->world, engine->lock);
    const bool may = may_claim_new_jobs(engine, batch);
    for (struct tide_write *write = batch->writes; write != NULL && may; write = write->next) {
        const struct tide_new_rows *rows = &write->transaction.new_rows;
        size_t i = 0; /* the jobs of one request are alike: it ends at the first that has to wait */
        while (i < rows->jobs_count && claim_at_once(engine, batch, &rows->jobs[i], now_unix_ms))
            i++;
    }
    engine->token_next += batch->claims_count - batch->claims_known;
    tide_lock_drop(engine->world, engine->lock);
    memset(batch->bodies + batch->claims_known, 0,
           (batch->claims_count - batch->claims_known) * sizeof batch->bodies[0]);
}

/* Sends other processes hints about jobs that they could run. */
static tide_status send_hints(tide_engine *engine, struct tide_batch *batch, tide_tx *tx,
                              tide_error *err)
{
    TIDE_TRY(tide_fleet_hints(engine, tx, NULL, &batch->changes, err));
    for (size_t i = 0; i < batch->finishes_count; i++) {
        if (batch->applied[i] && batch->finishes[i].effect != NULL)
            TIDE_TRY(tide_fleet_hints(engine, tx, &batch->jobs[i]->effects_transaction.new_rows,
                                      NULL, err));
    }
    for (struct tide_write *write = batch->writes; write != NULL; write = write->next) {
        if (write->status == TIDE_OK)
            TIDE_TRY(tide_fleet_hints(engine, tx, &write->transaction.new_rows, NULL, err));
    }
    return TIDE_OK;
}

/* A job may have been added to a cycle after its last one ended: then the ledger refuses to move
 * the cursor past it (ledger.h LED4).  That concerns this stream alone and undoes nothing else. */
static tide_status move_cursors(struct tide_batch *batch, tide_tx *tx, uint64_t now_unix_ms,
                                tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < batch->moves_count; i++) {
        struct cursor_move *move = &batch->moves[i];
        rc = tide_ledger_cursor_move(tx, move->stream, move->from, move->to, now_unix_ms,
                                     &batch->text, err);
        move->refused = rc;
        if (rc == TIDE_BUG || rc == TIDE_STALE)
            rc = TIDE_OK;
        else
            (void)snprintf(move->cursor, sizeof move->cursor, "%.*s", (int)batch->text.bytes,
                           batch->text.bytes > 0 ? batch->text.data : "");
    }
    return rc;
}

static tide_status write_rest(tide_engine *engine, struct tide_batch *batch, tide_tx *tx,
                              uint64_t now_unix_ms, tide_error *err)
{
    if (batch->claims_count > 0)
        TIDE_TRY(tide_ledger_claim(tx, batch->claim_ids, batch->claims_count, engine->owner,
                                   batch->claim_token, now_unix_ms, engine->mem, batch->bodies,
                                   err));
    TIDE_TRY(move_cursors(batch, tx, now_unix_ms, err));
    TIDE_TRY(tide_fleet_write(engine, &batch->fleet, tx, now_unix_ms, err));
    for (size_t i = 0; i < batch->saving_count; i++) {
        tide_buf_clear(&batch->text);
        TIDE_TRY(tide_governor_saved_print(&batch->saved[i], &batch->text));
        TIDE_TRY(
            tide_ledger_governor_save(tx, batch->saving[i]->id, tide_buf_text(&batch->text), err));
    }
    return TIDE_OK;
}

/* Writes the batch as one transaction.  Until its COMMIT a crash leaves the ledger as it was: jobs
 * that ended are still running rows, which the next start (SQLite) or another member (a shared
 * ledger) puts back at the cost of an attempt (E1.7), and callers got no answer. */
static tide_status commit(tide_engine *engine, struct tide_batch *batch, tide_error *err)
{
    uint64_t now_unix_ms = tide_world_now_unix_ms(engine->world);
    memset(batch->bodies, 0, batch->claims_count * sizeof batch->bodies[0]);
    tide_changes_clear(&batch->changes);

    tide_tx *tx = NULL;
    /* Join before anything else, because the ledger refuses every transaction of a member that was
     * declared dead; the join is a transaction of its own, and a crash after it leaves a member
     * that holds nothing and whose lease ends. */
    TIDE_TRY(batch->fleet.rejoin ? tide_fleet_join(engine, err) : TIDE_OK);
    /* Begin one transaction for all that follows, so that a crash keeps all of it or nothing. */
    TIDE_TRY(tide_tx_begin_lazily(engine->ledger, &tx, err));
    tide_status rc = TIDE_OK;
    /* Write ends first, so that the requests and claims below see these rows ended and the jobs
     * they release ready; a crash here loses the ends, and those jobs run again. */
    if (batch->finishes_count > 0)
        rc = tide_ledger_finish(tx, batch->finishes, batch->finishes_count, now_unix_ms,
                                batch->applied, &batch->changes, err);
    /* Run the callers' requests before the claims, which may include their new jobs; callers are
     * answered only after the COMMIT (tide_batch_end_writes()), so a crash here breaks no promise.
     * A failed request that was alone replaces `tx`. */
    if (rc == TIDE_OK)
        rc = write_requests(engine, batch, &tx, now_unix_ms, err);
    /* Choose new jobs to claim now that their ids are known; this changes memory alone, so a crash
     * here leaves nothing. */
    if (rc == TIDE_OK && batch->writes != NULL)
        claim_new_jobs(engine, batch, now_unix_ms);
    /* Write claims, cursors and governors.  A claimed job starts only after the COMMIT, so a crash
     * here leaves no job that ran without a claim.  On SQLite cursors pass only cycles whose ends
     * an earlier transaction made durable (ENG3); on a shared ledger its own counts decide, with the
     * ends above, so a crash never leaves a cursor beyond a lost end. */
    if (rc == TIDE_OK)
        rc = write_rest(engine, batch, tx, now_unix_ms, err);
    /* Collect hints last, when all that this transaction made ready is known; the server sends them
     * with the COMMIT, so a crash here announces nothing that is not there. */
    if (rc == TIDE_OK && engine->fleet != NULL)
        rc = send_hints(engine, batch, tx, err);
    /* A crash before this is durable leaves nothing of the batch; a crash after it leaves all:
     * ends stay, claimed jobs are running rows that never ran and cost an attempt when they are
     * put back, and a caller that got no answer must ask again (tide_enqueue_once()). */
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, err);
    /* Undo everything on a failure; the caller keeps the ends for the next batch
     * (tide_batch_unapply()).  `tx` is NULL when no new transaction could begin. */
    if (tx != NULL)
        tide_tx_rollback(tx);
    return rc;
}

/* ---- refill (E2.1) ------------------------------------------------------------------ */

/* Loads jobs from the ledger while the window has room.  Runs between two
 * transactions on the writer's own connection, so that it reads exactly the state
 * that the tracker has. */
static void refill(tide_engine *engine)
{
    struct tide_refill wanted;
    if (engine->phase != TIDE_PHASE_RUN || engine->retry_writes_at_ms != 0 ||
        !tide_tracker_refill(engine->tracker, &wanted))
        return;
    if (engine->fleet != NULL && !tide_fleet_ours(engine, wanted.account)) {
        if (wanted.account == 0)
            tide_fleet_free_work(engine); /* fleet.h FLT2: those are claimed, not loaded */
        tide_tracker_refilled(engine->tracker, &wanted, 0, NULL);
        engine->stuff_to_claim = true;
        return;
    }
    if (wanted.count_max > REFILL_MAX)
        wanted.count_max = REFILL_MAX;
    /* The tracker assumes that nothing is left to load; until the read has ended,
     * no caller may take that for quiet. */
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
        uint64_t failed_ms = tide_world_now_ms(engine->world);
        if (tide_fleet_waits(engine, rc, &err, failed_ms))
            engine->stuff_to_claim = true; /* refill again after that wait */
        else if (tide_store_is_lost(rc))
            tide_engine_fail(engine, rc, &err);
        return;
    }
    uint64_t now_ms = tide_world_now_ms(engine->world);
    for (size_t i = 0; i < count; i++)
        tide_batch_offer(engine, &briefs[i], now_ms);
    tide_tracker_refilled(engine->tracker, &wanted, (uint32_t)count,
                          count > 0 ? &briefs[count - 1] : NULL);
    if (tide_tracker_wants_refill(engine->tracker))
        engine->stuff_to_claim = true; /* come back for the rest */
}

/* The keeper copied the bulk of the log; the writer copies the short rest here, between two
 * transactions, and SQLite starts the log over.  A writer that is faster than the keeper waits
 * for it: this bounds the log. */
static void copy_rest_of_log(tide_engine *engine)
{
    while (engine->wal_copying && engine->wal_pages > WAL_PAGES_MAX &&
           engine->phase != TIDE_PHASE_ENDED)
        if (tide_cond_wait(engine->world, engine->write, engine->lock, TIDE_NEVER) == TIDE_STOPPED)
            return;
    if (engine->wal_copying || (!engine->wal_short && engine->wal_pages <= WAL_PAGES_MAX))
        return;
    engine->wal_copying = true;
    tide_lock_drop(engine->world, engine->lock);
    uint32_t pages_left = 0;
    tide_error err;
    tide_status rc = tide_ledger_checkpoint(engine->ledger, &pages_left, &err);
    tide_lock_take(engine->world, engine->lock);
    engine->wal_copying = false;
    engine->wal_short = false;
    if (tide_store_is_lost(rc))
        tide_engine_fail(engine, rc, &err);
    if (rc == TIDE_OK)
        engine->wal_pages = 0;
}

bool tide_writer_has_work(const tide_engine *engine)
{
    if (engine->retry_writes_at_ms != 0)
        return false; /* the dispatcher wakes it then */
    return engine->ended_count > 0 || engine->writes_first != NULL || engine->stuff_to_claim ||
           engine->save_due || tide_fleet_has_work(engine);
}

/* ---- the thread ------------------------------------------------------------------------ */

/* Reads streams again whose cursor the ledger refused to move: memory was wrong about them.
 * If the ledger says the same as memory and still refuses, it contradicts itself. */
static void reload_streams(tide_engine *engine, const struct tide_batch *batch)
{
    for (size_t i = 0; i < batch->moves_count; i++) {
        const struct cursor_move *move = &batch->moves[i];
        if (move->refused == TIDE_OK)
            continue;
        tide_error err = {TIDE_OK, 0, ""};
        tide_status rc = tide_stream_reload(engine, move->stream, &err);
        const struct tide_stream *stream = tide_engine_stream_of(engine, move->stream);
        if (tide_store_is_lost(rc)) {
            tide_engine_fail(engine, rc, &err);
        } else if (rc != TIDE_OK) {
            engine->retry_writes_at_ms = tide_world_now_ms(engine->world) + 1000;
            tide_cond_wake_one(engine->world, engine->pump);
        } else if (tide_frontier_cursor(stream->frontier) == move->from &&
                   tide_frontier_reachable(stream->frontier) >= move->to) {
            (void)tide_error_set(&err, TIDE_BUG,
                                 "stream %s: the ledger refuses to move its cursor to %" PRIu64,
                                 stream->name, move->to);
            tide_engine_fail(engine, TIDE_BUG, &err);
        }
    }
}

static void write_batch(tide_engine *engine, struct tide_batch *batch)
{
    engine->writer_busy = true;
    tide_lock_drop(engine->world, engine->lock);
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = commit(engine, batch, &err);
    tide_lock_take(engine->world, engine->lock);
    engine->writer_busy = false;

    uint64_t now_ms = tide_world_now_ms(engine->world);
    if (rc == TIDE_OK)
        tide_fleet_reached(engine);
    if (rc == TIDE_OK)
        tide_batch_apply(engine, batch, now_ms);
    else
        tide_batch_unapply(engine, batch, rc, &err, now_ms);
    tide_batch_end_writes(engine, batch, rc, &err, now_ms);
    engine->jobs_reserved = 0;
    if (rc == TIDE_OK)
        reload_streams(engine, batch);
    uint32_t log = tide_ledger_log_pages(engine->ledger);
    engine->wal_pages = log < engine->wal_log ? log : engine->wal_pages + (log - engine->wal_log);
    engine->wal_log = log;
    if (engine->wal_pages >= TIDE_WAL_PAGES_KEEPER)
        tide_cond_wake_one(engine->world, engine->keeper);
}

void tide_writer_main(void *arg)
{
    tide_engine *engine = arg;
    struct tide_batch *batch = engine->batch;
    tide_lock_take(engine->world, engine->lock);
    while (engine->phase != TIDE_PHASE_ENDED) {
        copy_rest_of_log(engine);
        if (gather(engine, batch, tide_world_now_ms(engine->world))) {
            write_batch(engine, batch);
            refill(engine);
            tide_dispatch(engine, tide_world_now_ms(engine->world));
            tide_engine_quiet(engine);
            if (engine->phase != TIDE_PHASE_RUN) /* the stop may have waited for this batch */
                tide_cond_wake_one(engine->world, engine->pump);
            continue;
        }
        refill(engine);
        /* Work, or the end, came while the log was copied or the refill read, without the lock: what
         * wakes the writer then found nobody who waits. */
        if (tide_writer_has_work(engine) || engine->phase == TIDE_PHASE_ENDED)
            continue;
        tide_engine_quiet(engine);
        engine->writer_idle = true;
        tide_engine_rests(engine);
        /* Before the start and at the end no dispatcher wakes the writer after a failure. */
        uint64_t until_us =
            engine->retry_writes_at_ms == 0 ? TIDE_NEVER : engine->retry_writes_at_ms * 1000;
        tide_status rc = tide_cond_wait(engine->world, engine->write, engine->lock, until_us);
        engine->writer_idle = false;
        if (rc == TIDE_STOPPED)
            break;
    }
    /* Callers that still wait learn that their request was not written. */
    tide_error err;
    (void)tide_error_set(&err, TIDE_STOPPED, "the engine has stopped");
    batch->writes = engine->writes_first;
    engine->writes_first = NULL;
    engine->writes_last = NULL;
    tide_batch_end_writes(engine, batch, TIDE_STOPPED, &err, 0);
    engine->writer_gone = true;
    tide_lock_drop(engine->world, engine->lock);
}

/* Makes the batch before the thread starts: a writer without one could answer no caller. */
tide_status tide_writer_new(tide_engine *engine)
{
    struct tide_batch *batch = tide_mem_new(engine->mem, sizeof *batch);
    if (batch == NULL)
        return TIDE_NO_MEMORY;
    tide_changes_init(&batch->changes, engine->mem);
    tide_buf_init(&batch->text, engine->mem, 64 << 10);
    engine->batch = batch;
    return TIDE_OK;
}

void tide_writer_free(tide_engine *engine)
{
    struct tide_batch *batch = engine->batch;
    if (batch == NULL)
        return;
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
    /* The writer answers every request before it returns, even when the world is dead. */
    while (!write->done)
        (void)tide_cond_wait(engine->world, engine->news, engine->lock, TIDE_NEVER);
    tide_lock_drop(engine->world, engine->lock);
    tide_new_rows_done(&write->transaction.new_rows, engine->mem);
    if (write->status != TIDE_OK && err != NULL)
        *err = write->err;
    return write->status;
}
