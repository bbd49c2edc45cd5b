/* ledger_pg.h - private to ledger_pg*.c: a ledger on PostgreSQL, array by array.
 *
 * Every operation is a few statements over whole arrays, however many jobs it has:
 * the way to the server costs more than a row.
 *
 *   ledger_pg.c          transactions, the fence, the commit token, savepoints, check
 *   ledger_pg_open.c     opening, upgrading, the run
 *   ledger_pg_schema.c   tables
 *   ledger_pg_sql.c      the texts of the hot statements, by number
 *   ledger_pg_enqueue.c  ledger_pg_claim.c  ledger_pg_finish.c    the hot path
 *   ledger_pg_jobs.c     reclaim, retry, cancel, accept, and the counters that follow
 *   ledger_pg_days.c     purge, day partitions
 *   ledger_pg_streams.c  ledger_pg_records.c  ledger_pg_read.c    the rest of ledger.h
 *   ledger_pg_fleet.c    members, accounts, shares, hints, batches
 *   ledger_pg_listen.c   the listener
 *   ledger_pg_doctor.c   what is wrong with it as a running thing
 *
 * Invariants beside G1..G7:
 *   R1  a row of `job` is never done; `job_done` has nothing else.
 *   R2  dep holds open dependencies only, as on SQLite: a done job's go with it.
 *   R3  rows are locked in one order (member, job by id, cycle by id, stream by id), so
 *       that two processes wait for each other, and do not deadlock.
 *   R4  in a joined ledger's transaction the member's own row was updated first: it is
 *       the fence, and its `seq` the commit token.
 */
#ifndef TIDE_ENGINE_LEDGER_PG_H
#define TIDE_ENGINE_LEDGER_PG_H

#include "db/pg.h"
#include "engine/ledger_ops.h"

struct tide_postgres {
    tide_ledger base;
    tide_tx tx; /* tx.ledger is &base */
    tide_world *world;
    tide_mem *mem;
    tide_pg *pg;
    char *url; /* owned; may have a password: never printed */
    size_t url_bytes;
    char run_name[65];
    uint64_t run; /* the row of this start, 0: none (read only) */
    bool read_only;
    bool database_clock;
    bool in_tx;
    tide_status tx_failed; /* the transaction is over; only a rollback is allowed */
    unsigned savepoints;
    uint64_t owner; /* of the member that joined, 0: none */
    uint64_t seq;   /* of its transactions: the commit token */
    tide_buf kept;  /* texts that an operation lends to its caller until the next call */
};

static inline struct tide_postgres *postgres_of(tide_ledger *ledger)
{
    return (struct tide_postgres *)ledger;
}
static inline struct tide_postgres *postgres_of_tx(tide_tx *tx)
{
    return (struct tide_postgres *)tx->ledger;
}

struct tide_pg_schema {
    const char *const *steps;
    size_t steps_count;
};
extern const struct tide_pg_schema tide_pg_schema;

/* Ends an operation: remembers a failure after which only a rollback is allowed. */
tide_status tide_pgl_end(struct tide_postgres *self, tide_status rc);
tide_status tide_pgl_no_memory(tide_error *err);
/* Before a reading operation outside a transaction: connected, or why not. */
tide_status tide_pgl_ready(struct tide_postgres *self, tide_error *err);

/* ---- ledger_pg_jobs.c, for finish too ---- */

/* What an operation does to the counters of a cycle. */
struct pg_cycle_delta {
    uint64_t cycle;
    int64_t total, outstanding, failed;
};
/* Sorts and merges `deltas` in place, writes them, and reports each cycle with its counts
 * afterwards (changes may be NULL). */
tide_status tide_pgl_cycles(struct tide_postgres *self, struct pg_cycle_delta *deltas, size_t count,
                            struct tide_changes *changes, tide_error *err);
/* These jobs are done: whoever waits for them waits for less, and is reported. */
tide_status tide_pgl_release(struct tide_postgres *self, const uint64_t *ids, size_t count,
                             struct tide_changes *changes, tide_error *err);

#endif
