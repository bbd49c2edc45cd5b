/* fleet.h - many processes on one shared ledger (E1.7, E1.8, E4.1): what the engine calls.
 *
 * Only this differs from a ledger of our own:
 *
 *   - this process is a member, by a lease that it renews (ledger/ledger.h);
 *   - accounts are taken one by one, and only jobs of held accounts are loaded into the
 *     window, so that the tracker and the governors need no change;
 *   - jobs of no account are claimed directly from the ledger, never loaded before;
 *   - the ledger's counts of a stream's cycles decide where its cursor moves, because any
 *     process may finish them;
 *   - the process waits for a ledger that cannot be reached.
 *
 * One look every few seconds does all of it in one transaction: renew the lease, reclaim
 * jobs of dead members, read pauses, halts and cancels, take accounts that have work.
 * Hints from other processes start it sooner; it also runs without any hint.
 *
 * Invariants (under the engine's lock):
 *   FLT1  a job of an account is in the tracker only while the account is held.
 *   FLT2  a job of no account is in the tracker only while it is claimed here.
 *   FLT3  an account is held only after the transaction that took it is durable, and no longer than
 *         the member's lease, by our own clock counted from before the renewal.
 *   FLT4  at most one look is under way.
 */
#ifndef TIDE_FLEET_FLEET_H
#define TIDE_FLEET_FLEET_H

#include "core/brief.h"
#include "tidemark.h"

struct tide_new_rows;
struct tide_changes;
struct tide_job_body;
struct tide_stream;
struct tide_tx;

enum {
    FLEET_ADVANCE_MAX = 64, /* cursors in one transaction */
    FLEET_FREE_MAX = 2048,  /* jobs of no account claimed in one transaction */
};

/* ---- fleet.c ---- */
tide_status tide_fleet_join(tide_engine *engine, tide_error *err); /* by the writer, or at open */
tide_status tide_fleet_new(tide_engine *engine, tide_error *err);
void tide_fleet_free(tide_engine *engine, bool clean); /* after all threads; clean: leaves */
/* The dispatcher's step: queues a look when it is due; returns when to call again. */
uint64_t tide_fleet_step(tide_engine *engine, uint64_t now_ms);
/* A transaction failed.  true: because of the server or another member, not of its content: the
 * writer keeps the content and tries again after a pause. */
bool tide_fleet_waits(tide_engine *engine, tide_status rc, const tide_error *err, uint64_t now_ms);
void tide_fleet_reached(tide_engine *engine); /* a transaction succeeded */
/* Whether the fleet has work that tide_engine_wait() must wait for. */
bool tide_fleet_busy(const tide_engine *engine);
void tide_fleet_look_soon(tide_engine *engine);
/* Whether jobs of the account may be loaded and claimed by this process (FLT1); always on SQLite. */
bool tide_fleet_ours(tide_engine *engine, uint32_t account);
/* Sends hints to other processes about jobs that this transaction made ready. */
tide_status tide_fleet_hints(tide_engine *engine, struct tide_tx *tx,
                             const struct tide_new_rows *new_rows,
                             const struct tide_changes *changes, tide_error *err);

/* ---- batch.c: the fleet's part of one transaction of the writer ---- */
struct tide_fleet_batch {
    bool rejoin; /* call tide_fleet_join() before the transaction */
    /* Jobs of no account to claim, by lane, and those that were claimed. */
    uint32_t wanted[2];
    uint64_t token;
    struct tide_brief briefs[FLEET_FREE_MAX];
    struct tide_job_body *bodies[FLEET_FREE_MAX];
    size_t count;
    uint64_t due_unix_ms; /* when the next delayed one may be due; UINT64_MAX: none, 0: unknown */
    uint64_t advances[FLEET_ADVANCE_MAX]; /* streams whose cursor may move */
    size_t advances_count;
};
/* Under the lock.  `ends`: the transaction ends jobs; `free_max`: jobs of no account per lane.
 * true: there is something to write. */
bool tide_fleet_gather(tide_engine *engine, bool ends, uint32_t free_max,
                       struct tide_fleet_batch *batch_out);
/* In the transaction, without the lock: moves cursors, claims jobs of no account. */
tide_status tide_fleet_write(tide_engine *engine, struct tide_fleet_batch *batch,
                             struct tide_tx *tx, uint64_t now_unix_ms, tide_error *err);
/* Under the lock: the transaction is durable, and the claimed jobs are in the window; or nothing
 * was written. */
void tide_fleet_written(tide_engine *engine, const struct tide_fleet_batch *batch, uint64_t now_ms);
void tide_fleet_not_written(tide_engine *engine, struct tide_fleet_batch *batch);
/* The functions below are called under the lock. */
/* Whether the writer has work for the fleet alone. */
bool tide_fleet_has_work(const tide_engine *engine);
/* Whether our lease ran out, so that claims of ours do not hold. */
bool tide_fleet_must_rejoin(const tide_engine *engine);
/* A cycle of that stream is finished: the next transaction tries to move its cursor. */
void tide_fleet_cycle_done(tide_engine *engine, uint64_t stream);
/* There is a job of no account that any member may claim from `at_ms` on. */
void tide_fleet_free_found(tide_engine *engine, tide_lane lane, uint64_t at_ms, uint64_t now_ms);
/* There may be jobs of no account to claim, in both lanes. */
void tide_fleet_free_work(tide_engine *engine);

/* ---- look.c ---- */
/* The account has a job of a kind that this process does not run: as long as we hold the
 * account, no process can run it. */
void tide_fleet_foreign(tide_engine *engine, uint32_t account, uint64_t now_ms);

/* ---- listen.c ---- */
tide_status tide_fleet_listen(tide_engine *engine, tide_error *err);
void tide_fleet_listen_stop(tide_engine *engine);

/* ---- streams.c ---- */
/* Under the lock: visits the streams that the last look read; looks read them for a minute from
 * now on.  Returns how many streams were left out. */
uint64_t tide_fleet_streams_each(tide_engine *engine, uint64_t now_ms,
                                 void (*visit)(const struct tide_stream *stream, void *arg),
                                 void *arg);
/* Makes looks read streams, without the lock; waits for the first such look. */
void tide_fleet_watch_wait(tide_engine *engine, uint32_t wait_ms);

#endif
