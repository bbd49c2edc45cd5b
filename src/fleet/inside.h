/* inside.h - the state of a member of the fleet, for the files of this folder. */
#ifndef TIDE_FLEET_INSIDE_H
#define TIDE_FLEET_INSIDE_H

#include "engine/engine.h"
#include "fleet/fleet.h"

enum {
    FLEET_LEFT_MAX = 256,             /* accounts left to other members at a look */
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
    bool look_under_way; /* FLT4 */
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

/* ---- look.c ---- */
/* Whether jobs of our kinds wait in an account that is offered to other members. */
bool tide_fleet_offers(const tide_engine *engine);
/* Queues a look; false: no memory. */
bool tide_fleet_look(tide_engine *engine);

/* ---- streams.c ---- */
/* Called by the writer; takes the lock. */
tide_status tide_fleet_view_load(tide_engine *engine, struct tide_fleet_view **view_out,
                                 tide_error *err);
void tide_fleet_view_free(tide_engine *engine, struct tide_fleet_view *view);
/* Under the lock: whether looks read streams. */
bool tide_fleet_watched(const tide_engine *engine, uint64_t now_ms);

#endif
