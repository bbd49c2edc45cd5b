/* fleet.h - many processes on one ledger (E1.7, E1.8, E4.1).
 *
 * What is different when the ledger is shared, and nothing else:
 *
 *   - this process is a member, by a lease that it renews (ledger/ledger.h);
 *   - accounts are taken one by one, and only jobs of held accounts are loaded into the
 *     window, so that the tracker and the governors work as they always did;
 *   - jobs of no account are claimed straight from the ledger, never loaded before;
 *   - a cursor is moved by what the ledger says of its cycles, whoever finished them;
 *   - a ledger that cannot be reached is waited for.
 *
 * One look every few seconds does all of it in one transaction: renew, reclaim what the
 * dead left, learn of pauses, halts and cancels, take accounts that have work.  Hints
 * from the others make it come sooner; without any hint it comes all the same.
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
    FLEET_LEFT_MAX = 256,             /* accounts left to others at a look */
    FLEET_FREE_MAX = 2048,            /* free jobs claimed in one transaction */
    FLEET_CANCELS_MAX = 256,          /* heard of in one look */
    FLEET_STREAMS_MAX = 256,          /* shown to whoever watches */
    FLEET_ASK_MS = 50,                /* asking for the kinds of jobs costs nothing below this */
    FLEET_ASK_SHARE = 20,             /* else at most such a part of the time goes into it */
    FLEET_OFFER_WAIT_MS_MAX = 600000, /* between two offers that nobody wants */
};

/* Streams as a look saw them, for people (streams.c). */
struct tide_fleet_view {
    tide_engine *engine;
    struct tide_stream *streams[FLEET_STREAMS_MAX];
    bool open[FLEET_STREAMS_MAX]; /* it has cycles that are not committed */
    size_t count;
    uint64_t left_out;
    tide_status rc; /* of a visit */
};

struct tide_fleet {
    tide_listener *listener; /* NULL: none can be had, look more often */
    tide_thread *listener_thread;
    char name[65]; /* of this member, for people */
    bool joined;   /* once, at least */

    /* under the lock */
    bool look_under_way; /* X4 */
    bool look_wanted;    /* something happened: look as soon as possible */
    uint64_t look_at_ms;
    uint64_t looks;          /* finished ones */
    uint64_t lease_until_ms; /* by our own clock, from before the renewal was sent */
    bool rejoin;             /* declared dead, or maybe: join before the next transaction */
    bool free_work[2];       /* by lane: jobs of no account may be there */
    bool free_rest;          /* some came: whoever writes an end asks for more with it */
    uint64_t free_at_ms;     /* when one of them that waits for its time may be had */
    uint32_t others;         /* living members beside us */
    uint32_t backoff_ms;     /* until the next attempt to reach the ledger */
    uint64_t advance[FLEET_ADVANCE_MAX]; /* streams whose cursor may move */
    size_t advance_count;
    uint64_t advance_after;        /* streams up to this one were looked at (look.c) */
    uint32_t left[FLEET_LEFT_MAX]; /* accounts with work that we left to others last time */
    size_t left_count;
    uint64_t ask_at_ms;           /* when kinds may be asked for again (look.c) */
    bool ask_put_off;             /* the last look did not: what it would take is not known */
    uint64_t share_at_ms;         /* when an account may be given up for the poorest again */
    uint64_t share_wait_ms;       /* grows each time that nobody wanted it */
    uint64_t watched_until_ms;    /* somebody looks at snapshots */
    struct tide_fleet_view *view; /* of the last look; NULL: none yet */
};

/* ---- fleet.c ---- */
tide_status tide_fleet_join(tide_engine *engine, tide_error *err); /* the writer's, or at open */
tide_status tide_fleet_new(tide_engine *engine, tide_error *err);
void tide_fleet_free(tide_engine *engine, bool clean); /* leaves; threads are gone */
/* Time: pushes a look when it is due; says when to come again. */
uint64_t tide_fleet_step(tide_engine *engine, uint64_t now_ms);
/* A transaction failed because of the ledger's distance, not of what it held: true, and
 * what it held is kept and tried again. */
bool tide_fleet_waits(tide_engine *engine, tide_status rc, const tide_error *err, uint64_t now_ms);
void tide_fleet_reached(tide_engine *engine); /* one succeeded */
/* Declared dead, or our lease ran out by our own clock: nothing here is ours any more. */
void tide_fleet_lost(tide_engine *engine, uint64_t now_ms);
/* Something a process that waits for quiet must wait for. */
bool tide_fleet_busy(const tide_engine *engine);
void tide_fleet_look_soon(tide_engine *engine);
/* A cycle of that stream is finished. */
void tide_fleet_cycle_done(tide_engine *engine, uint64_t stream);
/* How many free jobs of each lane this process could use now. */
void tide_fleet_room(tide_engine *engine, uint32_t counts[2]);
/* Others should know what this transaction made ready. */
tide_status tide_fleet_hints(tide_engine *engine, tide_tx *tx, const struct tide_births *births,
                             const struct tide_changes *changes, tide_error *err);

/* ---- look.c ---- */
/* A job of a kind that this process does not run was met in the account's queue: as long as
 * we hold the account, nobody can run it. */
void tide_fleet_foreign(tide_engine *engine, uint32_t account, uint64_t now_ms);
/* Work of ours waits in an account that is offered to others. */
bool tide_fleet_offers(const tide_engine *engine);
/* Queues a look; false: no memory. */
bool tide_fleet_look(tide_engine *engine, uint64_t now_ms);

/* ---- listen.c ---- */
tide_status tide_fleet_listen(tide_engine *engine, tide_error *err);
void tide_fleet_listen_stop(tide_engine *engine);

/* ---- streams.c ---- */
/* The writer's; takes the lock. */
tide_status tide_fleet_view_load(tide_engine *engine, struct tide_fleet_view **view_out,
                                 tide_error *err);
void tide_fleet_view_free(tide_engine *engine, struct tide_fleet_view *view);
/* Under the lock: whether looks should read streams; that they should, for a while (true: they
 * did not until now). */
bool tide_fleet_watched(const tide_engine *engine, uint64_t now_ms);
bool tide_fleet_watch(tide_engine *engine, uint64_t now_ms);
/* The same without the lock, and waits for the first such look. */
void tide_fleet_watch_wait(tide_engine *engine, uint32_t wait_ms);

/* Jobs of no account may be there, in whichever lane. */
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
