/* batch.h - the content of one transaction of the writer.
 *
 *   gather (lock) -> commit (no lock) -> apply (lock) -> refill -> again
 *
 * writer.c gathers and commits; apply.c updates the core with the result, and only once
 * that is durable (engine.h ENG4). */
#ifndef TIDE_ENGINE_BATCH_H
#define TIDE_ENGINE_BATCH_H

#include "engine/engine.h"
#include "fleet/fleet.h"

enum {
    FINISHES_MAX = 256,         /* of one transaction, so that it stays below 10 ms (E2.5) */
    FINISHES_SHARED_MAX = 1024, /* on a server: a round trip costs more than a row */
    REFILL_MAX = 512,           /* rows between two transactions */
    CURSORS_MAX = 64,
    CLAIMS_NEW_MAX = TIDE_WORKERS_MAX, /* of new jobs: each of them has a worker */
    CLAIMED_BYTES_MAX = 128 << 20,     /* of payloads, in one claim */
    WAL_PAGES_MAX = 4000,              /* about 16 MB: the writer waits until it is copied */
};

struct cursor_move {
    uint64_t stream;
    uint64_t from, to;
    char cursor[256];    /* its value there */
    tide_status refused; /* TIDE_OK: it moved */
};

struct tide_batch {
    tide_job *jobs[FINISHES_SHARED_MAX];
    struct tide_finish finishes[FINISHES_SHARED_MAX];
    bool applied[FINISHES_SHARED_MAX];
    size_t finishes_count;
    uint64_t claim_ids[TIDE_CLAIM_MAX];
    struct tide_job_body *bodies[TIDE_CLAIM_MAX];
    size_t claims_count;
    size_t claims_known; /* the first of them are in the window; the rest are new jobs: */
    struct tide_brief claims_new[CLAIMS_NEW_MAX];
    uint64_t claim_token;
    struct tide_fleet_batch fleet;  /* nothing in it on SQLite */
    struct tide_write *writes;      /* all that were waiting */
    struct tide_write *writes_left; /* those there was no time for */
    struct cursor_move moves[CURSORS_MAX];
    size_t moves_count;
    struct tide_account *saving[CURSORS_MAX]; /* governors whose spending is due (E4.3b) */
    struct tide_governor_saved saved[CURSORS_MAX];
    size_t saving_count;
    uint64_t gathered_ms;
    struct tide_changes changes;
    tide_buf text; /* scratch: one governor, printed */
};

/* A failed sync or damage: what the file holds is no longer known (E1.10). */
static inline bool tide_store_is_lost(tide_status status)
{
    return status == TIDE_IO || status == TIDE_CORRUPT;
}

/* ---- apply.c, under the lock ---- */
/* The transaction is durable. */
void tide_batch_apply(tide_engine *engine, struct tide_batch *batch, uint64_t now_ms);
/* Nothing was written.  Ends are kept and tried again (lesson 9), claims go back to
 * the queue.  A failed sync ends the engine. */
void tide_batch_unapply(tide_engine *engine, struct tide_batch *batch, tide_status rc,
                        const tide_error *err, uint64_t now_ms);
/* Ends the write requests of the batch and wakes their callers; requests there was no time for
 * go back to the queue. */
void tide_batch_end_writes(tide_engine *engine, struct tide_batch *batch, tide_status rc,
                           const tide_error *err, uint64_t now_ms);
/* Adds a job that is pending in the ledger to the window; its times are wall times. */
void tide_batch_offer(tide_engine *engine, const struct tide_brief *stored, uint64_t now_ms);

#endif
