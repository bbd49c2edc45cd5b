/* postgres.h - private to this folder: a ledger on PostgreSQL, array by array.
 *
 * Every operation is a few statements over whole arrays, however many jobs it has:
 * a round trip to the server costs more than a row.
 *
 *   postgres.c  transactions, the fence, the commit token, savepoints, the table of operations
 *   open.c      opening, upgrading, the run
 *   schema.c    tables
 *   sql.c       the texts of the hot statements, by number
 *   enqueue.c   claim.c  finish.c    the hot path
 *   jobs.c      reclaim, retry, cancel, accept, and the counters that follow
 *   days.c      purge, day partitions
 *   streams.c   records.c  read.c    the rest of ledger/operations.h
 *   members.c   members, accounts, shares, hints, batches
 *   listen.c    the listener
 *   doctor.c    `jobs doctor`: diagnosis of the running ledger
 *
 * Invariants besides G1..G7:
 *   LPG1  a row of `job` is never done; `job_done` has nothing else.
 *   LPG2  dep holds open dependencies only, as on SQLite: a done job's go with it.
 *   LPG3  an operation locks rows in one order (member, job by id, cycle by id), so that one of two
 *         processes waits for the other and they do not deadlock.  A cursor's move locks its stream
 *         first and then the stream's finished cycles by id: only under the stream's lock is it
 *         certain which cycles are finished (streams.c).  So a transaction that moves a cursor and
 *         one that has added a job to a finished cycle may wait for each other, likewise two whose
 *         operations follow each other in another order.  The server then ends one of them:
 *         TIDE_BUSY, and the caller repeats the transaction.
 *   LPG4  in a joined ledger's transaction the member's own row was updated first: it is the fence,
 *         and its `seq` the commit token.
 *   LPG5  a cursor moves only over cycles whose rows its transaction has locked (FOR UPDATE,
 *       by id).  A transaction that adds jobs to a cycle first writes the cycle's counters,
 *       then reads the cursor in a statement of its own.  So of process A, which moves the
 *       cursor over cycle C, and process B, which adds a job to C, one sees the other:
 *         A first:  1. A locks the stream and C; C is finished.
 *                   2. B inserts its job; its update of C's counters waits for A.
 *                   3. A moves the cursor beyond C and commits.
 *                   4. B updates the counters.  Its next statement has a new snapshot: it
 *                      reads a cursor beyond C, returns TIDE_BUSY, and B rolls back.
 *         B first:  1. B updates C's counters and reads the cursor: not beyond C.
 *                   2. A locks the stream; its lock of C waits for B.
 *                   3. B commits.
 *                   4. A gets the lock and the new row: C is unfinished, A does not pass it.
 *   LPG6  a transaction that makes a job wait for another one has locked that one's row (FOR
 *       KEY SHARE), and a job becomes done by the deletion of its row, which that lock
 *       blocks.  So of process A, which enqueues J that needs N, and process B, which
 *       finishes N, one sees the other:
 *         A first:  1. A locks N: its row is there, N is open.
 *                   2. B's deletion of N waits for A.
 *                   3. A writes the dependency, J with one open dependency, and commits.
 *                   4. B deletes N.  Its next statement finds the dependency and releases J.
 *         B first:  1. B deletes N's row.
 *                   2. A's lock of N waits for B.
 *                   3. B releases the jobs that wait for N, and commits.
 *                   4. A finds no row of N in `job`.  Its next statement finds N in
 *                      `job_done`: J does not wait.
 *   LPG7  a statement that the server refuses ends the whole transaction there, so what can be
 *         refused is checked first (ON CONFLICT, a query), or runs in a savepoint.
 */
#ifndef TIDE_ENGINE_LEDGER_PG_H
#define TIDE_ENGINE_LEDGER_PG_H

#include "base/limits.h"
#include "base/map.h"
#include "db/pg.h"
#include "ledger/ops.h"

/* How far free jobs of a lane were claimed: of each priority, every id up to reached[].
 * Claimed jobs leave dead entries at the head of the index, which vacuum cannot remove while
 * a session holds an old snapshot; so the next claim begins where the last one ended, and
 * scans from the beginning now and then, for jobs that were put back or committed late. */
struct pg_heads {
    uint64_t reached[TIDE_PRIORITY_MAX + 1]; /* 0: from the beginning */
};

/* What an operation does to the counters of a cycle. */
struct pg_cycle_delta {
    uint64_t cycle;
    int64_t total, outstanding, failed;
};

/* Hints for other processes, collected in a transaction and sent with its COMMIT as one
 * NOTIFY tidemark: an optional "c" (control), then "a" (look at everything) or
 * "w0,3,17" (work of these accounts). */
struct pg_hints {
    bool control, all;
    uint32_t accounts[TIDE_HINTS_ACCOUNTS_MAX];
    size_t accounts_count;
};
enum { TIDE_PGL_HINTS_BYTES = 32 + TIDE_HINTS_ACCOUNTS_MAX * 11 };

struct tide_postgres {
    tide_ledger base;
    tide_tx tx; /* tx.ledger is &base */
    tide_world *world;
    tide_mem *mem;
    tide_pg *pg;
    char run_name[65];
    uint64_t run; /* the row of this start, 0: none (read only) */
    bool read_only;
    bool database_clock;
    bool given_up; /* atomic: do not wait any longer for the outcome of a commit */
    bool in_tx;
    tide_status tx_failed; /* the transaction is over; only a rollback is allowed */
    unsigned savepoints;
    uint64_t owner; /* of the member that joined, 0: none */
    uint64_t seq;   /* of its transactions: the commit token */
    bool leaves;    /* with this transaction */
    struct pg_hints hints;
    uint64_t mute_until_us; /* no hints until then: the server's NOTIFY queue was full */
    /* The place (ctid) of the member's row when the last transaction committed, and after
     * this one's update: found by place, however many old versions a long transaction of
     * another session keeps alive. */
    char place[32], place_next[32];
    /* The fence of a begin that is sent with the first statement. */
    const char *fence_texts[3];
    char seq_text[24], owner_text[24];
    uint64_t xact;            /* without a member: the server's number of this transaction */
    bool xact_in_run;         /* and the row of this start was written by it */
    int64_t day;              /* the newest one a partition was made for (days.c) */
    int64_t purge_day;        /* the next day that the round of purges checks */
    uint64_t purge_after;     /* and the id, once all days are checked */
    tide_map kinds;           /* known kinds: scope + 1; cleared by a rollback */
    tide_map accounts;        /* known accounts */
    Oid job_new;              /* the type of that name */
    struct pg_heads heads[2]; /* of the free jobs, by lane (claim.c) */
    uint64_t look_due_us;     /* the latest time of the next claim from the beginning */
    uint64_t look_allowed_us; /* and the earliest, when a claim found too few */
    uint64_t due_unix_ms; /* when the first free job that waits for its time is due; 0: unknown */
    uint64_t due_looked_unix_ms; /* when that was looked up, by the caller's clock */
    bool in_finish;
    tide_map rows;                 /* ids of a result to its rows, for one operation */
    struct pg_cycle_delta *deltas; /* what this operation has done to cycles so far */
    size_t deltas_count, deltas_capacity;
    tide_buf kept; /* texts that an operation lends to its caller until the next call */
};

static inline struct tide_postgres *postgres_of(tide_ledger *ledger)
{
    return (struct tide_postgres *)ledger;
}
static inline struct tide_postgres *postgres_of_tx(tide_tx *tx)
{
    return (struct tide_postgres *)tx->ledger;
}

/* Statements that the ledger's connection prepares (sql.c).  A new one is added here and
 * there; rare statements are written where they are used, with tide_pg_query(). */
enum tide_pg_sql {
    /* begin */
    PGSQL_BEGIN,
    PGSQL_FENCE,
    /* enqueue */
    PGSQL_NAMES,
    PGSQL_CYCLES_OPEN,
    PGSQL_NEEDS,
    PGSQL_NEEDS_DONE,
    PGSQL_IDS,
    PGSQL_INSERT,
    PGSQL_INSERT_KEYED,
    PGSQL_DUPLICATES,
    PGSQL_RAISE,
    PGSQL_DEPS,
    PGSQL_BRIEFS,
    /* claim */
    PGSQL_CLAIM,
    PGSQL_CLAIM_FREE,
    PGSQL_PROMOTE,
    PGSQL_DUE,
    PGSQL_DUE_OF,
    PGSQL_BEAT,
    PGSQL_REFILL,
    PGSQL_REFILL_FREE,
    PGSQL_WORK,
    /* finish */
    PGSQL_DONE,
    PGSQL_DONE_NOTED,
    PGSQL_OTHER,
    PGSQL_PARTS,
    PGSQL_PARTS_WAIT,
    PGSQL_CYCLES_ADD,
    PGSQL_RELEASE,
    PGSQL_COUNT_OF_STATEMENTS,
};
extern const char *const tide_pg_sql[PGSQL_COUNT_OF_STATEMENTS];
extern const char tide_pg_copy_jobs[];
#define TIDE_PGL_BEGIN "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

struct tide_pg_schema {
    /* Step i leads from version i to i + 1: texts, and a NULL. */
    const char *const *const *steps;
    size_t steps_count;
    uint32_t oldest; /* the oldest program that can work with the newest version */
};
extern const struct tide_pg_schema tide_pg_schema;

/* Ends an operation: remembers a failure after which only a rollback is allowed. */
tide_status tide_pgl_end(struct tide_postgres *self, tide_status rc);
tide_status tide_pgl_no_memory(tide_error *err);
/* Before a reading operation, in a transaction or not: TIDE_OK once connected. */
tide_status tide_pgl_ready(struct tide_postgres *self, tide_error *err);
/* Milliseconds by the clock that judges leases: the database's (a round trip), or
 * `now_unix_ms` where the ledger was opened without `database_clock`.  In SQL:
 * TIDE_PGL_CLOCK. */
#define TIDE_PGL_CLOCK "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
/* Creates or upgrades the schema; TIDE_NEWER and others: this program cannot use it. */
tide_status tide_pgl_schema(struct tide_postgres *self, const struct tide_ledger_options *options,
                            tide_error *err);
/* Begins a transaction during which no process can upgrade the schema.  TIDE_NEWER and
 * others: this program cannot use the schema (any more); the caller rolls back. */
tide_status tide_pgl_schema_hold(struct tide_postgres *self, tide_error *err);
/* The row of this start (E9.2). */
tide_status tide_pgl_run_add(struct tide_postgres *self, uint64_t now_unix_ms, tide_error *err);
/* Texts come from handlers and providers; the server takes UTF-8 without zero bytes and
 * ends the transaction at anything else. */
bool tide_pgl_text_ok(tide_text text);

/* ---- jobs.c, for finish too ---- */

/* Sorts and merges `deltas` in place, writes them, and reports each cycle with its counts
 * afterwards (changes may be NULL). */
tide_status tide_pgl_cycles_write(struct tide_postgres *self, struct pg_cycle_delta *deltas,
                                  size_t count, struct tide_changes *changes, tide_error *err);
/* These jobs are done: counts down the open dependencies of the jobs that wait for them, and
 * reports those. */
tide_status tide_pgl_release(struct tide_postgres *self, const uint64_t *ids, size_t count,
                             struct tide_changes *changes, tide_error *err);

/* ---- enqueue.c, for finish too ---- */

/* `children_to`: each new job is reported there; may be NULL, as enqueued_out.  Changes of
 * cycles are added to self->deltas; the caller writes them. */
tide_status tide_pgl_enqueue_rows(struct tide_postgres *self, const struct tide_job_new *jobs,
                                  size_t count, uint64_t now_unix_ms,
                                  struct tide_enqueued *enqueued_out,
                                  struct tide_changes *children_to, tide_error *err);

/* Writes and removes self->deltas[from...].  TIDE_BUSY: a cursor meanwhile passed a cycle that
 * got more jobs (LPG5). */
tide_status tide_pgl_deltas_write(struct tide_postgres *self, size_t from,
                                  struct tide_changes *changes, tide_error *err);
tide_status tide_pgl_delta(struct tide_postgres *self, uint64_t cycle, int total, int outstanding,
                           int failed, tide_error *err);
/* A row of one of the statements that give briefs; not_before_ms holds unix ms. */
void tide_pgl_brief_read(const PGresult *result, int row, struct tide_brief *brief);
void tide_pgl_forget_heads(struct tide_postgres *self);

/* Texts for ledger/read.c. */
const char *tide_pgl_jobs_text(const struct tide_job_filter *filter);
const char *tide_pgl_jobs_count_text(const struct tide_job_filter *filter);
extern const char tide_pgl_counts_text[], tide_pgl_counts_left_text[], tide_pgl_work_left_text[];
/* Free jobs may have become ready at any id: the next claim scans from the beginning. */
void tide_pgl_look_again(struct tide_postgres *self);
/* Job `id` of this lane and priority became ready: the next claim begins at or before it. */
void tide_pgl_head_back(struct tide_postgres *self, unsigned lane, unsigned priority, uint64_t id);

/* ---- members.c, for the commit ---- */

/* The collected hints as a statement that ends in "; ", or "": goes before COMMIT.
 * TIDE_PGL_HINTS_BYTES are enough. */
void tide_pgl_hints_text(const struct tide_postgres *self, char *sql_out, size_t sql_bytes);
tide_status tide_pgl_hint(tide_tx *tx, tide_hint hint, uint32_t account, tide_error *err);

/* ---- days.c, for the open ---- */

/* Makes the partitions of today and the next two days, by the database's clock; nothing
 * in a ledger without it. */
tide_status tide_pgl_days_open(struct tide_postgres *self, tide_error *err);

/* ---- records.c, for finish too ---- */

/* Records the outcome of the items of a job (E6.1); as tide_sql_bad_add(). */
tide_status tide_pgl_bad_add(struct tide_postgres *self, uint32_t account, uint32_t kind,
                             uint64_t cycle, const struct tide_item_report *items, size_t count,
                             uint64_t now_unix_ms, tide_error *err);

/* ---- SQL functions of the schema ----
 *
 *   tidemark.day_open(day bigint) returns boolean: creates the partition of job_done for the
 *     day (finished / 86400000), with the day's rows of the default partition; false: it exists.
 *   tidemark.day_drop(day bigint) returns bigint: drops it; 1, or -1: no such day.
 *   tidemark.add_job(...): an enqueue for programs in any language.
 *   tidemark.grant_worker(role name): what a worker needs and nothing else. */

/* One function for each operation. */
#define OP(ledger, name, params, args) tide_status tide_pgl_##name params;
#include "ledger/operations.h"

#endif
