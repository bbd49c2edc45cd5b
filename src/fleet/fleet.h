/* fleet.h - many processes on one shared ledger (E1.7, E1.8, E4.1).
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
 *   X1  a job of an account is in the tracker only while the account is held.
 *   X2  a job of no account is in the tracker only while it is claimed here.
 *   X3  an account is held only after the transaction that took it is durable, and no
 *       longer than the member's lease, by our own clock counted from before the renewal.
 *   X4  at most one look is under way.
 */
#ifndef TIDE_ENGINE_FLEET_H
#define TIDE_ENGINE_FLEET_H

#include "engine/engine.h"

enum {
    FLEET_ADVANCE_MAX = 64,           /* cursors in one transaction */
    FLEET_LEFT_MAX = 256,             /* accounts left to other members at a look */
    FLEET_FREE_MAX = 2048,            /* jobs of no account claimed in one transaction */
    FLEET_CANCELS_MAX = 256,          /* read in one look */
    FLEET_STREAMS_MAX = 256,          /* shown in a snapshot */
    FLEET_ASK_MS = 50,                /* a query for kinds of jobs below this is cheap */
    FLEET_ASK_SHARE = 20,             /* after a longer one, wait this many times as long */
    FLEET_OFFER_WAIT_MS_MAX = 600000, /* between two offers that no process takes */
};

/* Streams as the last look read them, for display (streams.c). */
struct tide_fleet_view {
    tide_engine *engine;
    struct tide_stream *streams[FLEET_STREAMS_MAX];
    bool open[FLEET_STREAMS_MAX]; /* it has cycles that are not committed */
    size_t count;
    uint64_t left_out;
    tide_status rc; /* of a visit */
};

struct tide_fleet {
    tide_listener *listener; /* NULL: the server offers none, look more often */
    tide_thread *listener_thread;
    char name[65]; /* of this member, for display */
    bool joined;   /* at least once */

    /* under the lock */
    bool look_under_way; /* X4 */
    bool look_wanted;    /* look as soon as possible */
    uint64_t look_at_ms;
    uint64_t looks;          /* finished ones */
    uint64_t lease_until_ms; /* by our own clock, from before the renewal was sent */
    bool rejoin;             /* perhaps declared dead: join before the next transaction */
    bool free_work[2];       /* by lane: there may be jobs of no account to claim */
    bool free_rest;          /* the last claim gave some: claim again with the next end */
    uint64_t free_at_ms;     /* when a delayed one of them may be claimed */
    uint32_t others;         /* other living members */
    uint32_t backoff_ms;     /* until the next attempt to reach the ledger */
    uint64_t advance[FLEET_ADVANCE_MAX]; /* streams whose cursor may move */
    size_t advance_count;
    uint64_t advance_after;        /* the last look checked streams up to this one (look.c) */
    uint32_t left[FLEET_LEFT_MAX]; /* accounts with work that we left to others last time */
    size_t left_count;
    uint64_t ask_at_ms;           /* when kinds may be queried again (look.c) */
    bool ask_put_off;             /* the last look did not query kinds, and took no account */
    uint64_t share_at_ms;         /* when the next account may be given up for an even share */
    uint64_t share_wait_ms;       /* before that; grows each time that no process took one */
    uint64_t watched_until_ms;    /* until then looks read streams for snapshots */
    struct tide_fleet_view *view; /* of the last look; NULL: none yet */
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
/* We were declared dead, or our lease ran out by our own clock: cancels all running jobs and gives
 * up all accounts. */
void tide_fleet_lost(tide_engine *engine, uint64_t now_ms);
/* Whether the fleet has work that tide_engine_wait() must wait for. */
bool tide_fleet_busy(const tide_engine *engine);
void tide_fleet_look_soon(tide_engine *engine);
/* A cycle of that stream is finished: the next transaction tries to move its cursor. */
void tide_fleet_cycle_done(tide_engine *engine, uint64_t stream);
/* How many jobs of no account this process could run now, by lane. */
void tide_fleet_room(tide_engine *engine, uint32_t counts[2]);
/* Sends hints to other processes about jobs that this transaction made ready. */
tide_status tide_fleet_hints(tide_engine *engine, tide_tx *tx, const struct tide_births *births,
                             const struct tide_changes *changes, tide_error *err);

/* ---- look.c ---- */
/* The account has a job of a kind that this process does not run: as long as we hold the
 * account, no process can run it. */
void tide_fleet_foreign(tide_engine *engine, uint32_t account, uint64_t now_ms);
/* Whether jobs of our kinds wait in an account that is offered to other members. */
bool tide_fleet_offers(const tide_engine *engine);
/* Queues a look; false: no memory. */
bool tide_fleet_look(tide_engine *engine, uint64_t now_ms);

/* ---- listen.c ---- */
tide_status tide_fleet_listen(tide_engine *engine, tide_error *err);
void tide_fleet_listen_stop(tide_engine *engine);

/* ---- streams.c ---- */
/* Called by the writer; takes the lock. */
tide_status tide_fleet_view_load(tide_engine *engine, struct tide_fleet_view **view_out,
                                 tide_error *err);
void tide_fleet_view_free(tide_engine *engine, struct tide_fleet_view *view);
/* Under the lock.  watched: whether looks read streams.  watch: makes them read streams for a
 * minute; true if they did not until now. */
bool tide_fleet_watched(const tide_engine *engine, uint64_t now_ms);
bool tide_fleet_watch(tide_engine *engine, uint64_t now_ms);
/* Like watch, without the lock; waits for the first such look. */
void tide_fleet_watch_wait(tide_engine *engine, uint32_t wait_ms);

/* There may be jobs of no account to claim, in both lanes. */
static inline void tide_fleet_free_work(struct tide_fleet *fleet)
{
    fleet->free_work[0] = fleet->free_work[1] = true;
}

/* Whether jobs of the account may be loaded and claimed by this process (X1). */
static inline bool tide_fleet_ours(tide_engine *engine, uint32_t account)
{
    if (engine->fleet == NULL)
        return true;
    const struct tide_account *known = tide_engine_account_of(engine, account);
    return known != NULL && known->held && !known->leaving;
}

#endif
