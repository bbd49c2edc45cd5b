/* sqlite.h - private to this folder: a ledger in a SQLite file, row by row.
 *
 *   sqlite.c   opening, transactions, savepoints, checkpoints, backup, check
 *   schema.c   tables and every statement, by number
 *   enqueue.c  claim.c  finish.c  finish_run.c    the hot path
 *   jobs.c     the window, reclaim, retry, cancel, accept, purge
 *   streams.c  records.c  read.c    the rest of ledger/operations.h
 *   doctor.c   `jobs doctor`: diagnosis of the running ledger
 *
 * How the rows are laid out, and why:
 *
 * `job` holds the lasting facts of a job.  It has no token, owner or beat: those are
 * in `claim`, one small row for each running job.  So claiming a job changes one byte
 * of its row, a heartbeat rewrites one of a few hot pages and never a payload, and
 * finding what a dead process left running (E1.7) reads the running rows only.
 * `detail` holds what most jobs never have: an error, resume data, bytes done;
 * job.noted says that there is one.
 *
 * All indexes of `job` are partial; a finished job is in none of them, except
 * failed and canceled ones, which are few.  History stays in the table, and purge
 * walks it by id, oldest first.
 *
 * Invariants of this store besides G1..G7:
 *   LSQ1  dep holds an open dependency only: rows of a done job are deleted with it.
 *   LSQ2  the row with the greatest id is never purged, so that ids are never reused.
 *   LSQ3  statements are not active between operations.
 *   LSQ4  one process works on the file (the engine holds its home's lock): the tables member and
 *         share and the owner of an account stay empty.
 */
#ifndef TIDE_ENGINE_LEDGER_SQLITE_H
#define TIDE_ENGINE_LEDGER_SQLITE_H

#include "base/buf.h"
#include "base/map.h"
#include "db/db.h"
#include "db/migrate.h"
#include "ledger/ops.h"

#define TIDE_LEDGER_APPLICATION_ID 0x54494445u /* "TIDE" */
/* Of the target of an unfinished copy (ledger/copy/copy.h, LCP2). */
#define TIDE_LEDGER_COPYING_ID 0x54494443u /* "TIDC" */

extern const struct tide_schema tide_ledger_schema;

enum tide_sql {
    SQL_BEGIN,
    SQL_DATA_VERSION,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_SAVEPOINT,
    SQL_SAVEPOINT_UNDO,
    SQL_SAVEPOINT_END,
    SQL_RUN_ADD,
    SQL_RUN_GET,
    /* names */
    SQL_KIND_BY_ID,
    SQL_ACCOUNT_BY_ID,
    SQL_ACCOUNT_GOVERNOR,
    SQL_PAUSED,
    /* jobs */
    SQL_JOB_INSERT,
    SQL_JOB_DUPLICATE,
    SQL_JOB_RAISE,
    SQL_JOB_STATE,
    SQL_JOB_CLAIM_GET,
    SQL_JOB_CLAIM,
    SQL_JOB_CLAIM_RUN_GET,
    SQL_JOB_CLAIM_RUN,
    SQL_CLAIM_INSERT_RUN,
    SQL_CLAIM_INSERT,
    SQL_CLAIM_GET,
    SQL_CLAIM_DELETE,
    SQL_CLAIM_RUN_COUNT,
    SQL_CLAIM_RUN_DELETE,
    SQL_CLAIM_BEAT,
    SQL_CLAIM_BEAT_NOTED,
    SQL_CLAIM_CANCEL,
    SQL_CLAIM_WANTED,
    SQL_FINISH_DONE,
    SQL_FINISH_DONE_RUN,
    SQL_FINISH_OTHER,
    SQL_FINISH_KEYLESS,
    SQL_DETAIL_SET,
    SQL_DETAIL_RESUME,
    SQL_DETAIL_GET,
    SQL_DETAIL_DELETE,
    SQL_DEP_INSERT,
    SQL_DEP_ADD,
    SQL_DEP_ALL_NEEDS,
    SQL_DEP_WAITING,
    SQL_DEP_CLEAR,
    SQL_DEP_CLEAR_JOB,
    SQL_DEP_ANY,
    SQL_DEP_NEEDED,
    SQL_JOB_RELEASE,
    SQL_JOB_RELEASED,
    SQL_JOB_ACCOUNT_KIND,
    SQL_REFILL_SAME,
    SQL_REFILL_BELOW,
    SQL_REFILL_SAME_PAUSED,
    SQL_REFILL_BELOW_PAUSED,
    SQL_ACCOUNT_NEXT_WORK,
    SQL_BRIEF,
    SQL_RECLAIM_LIST,
    SQL_PICK_ID,
    SQL_PICK_GAP,
    SQL_PICK_DELAYED,
    SQL_PICK_READY,
    SQL_PICK_BLOCKED,
    SQL_PICK_RUNNING,
    SQL_RETRY_ONE,
    SQL_RETRY_KEYLESS,
    SQL_RETRY_SOON,
    SQL_CANCEL_ONE,
    SQL_ACCEPT_ONE,
    SQL_JOB_NEWEST,
    SQL_PURGE_SCAN,
    SQL_JOB_DELETE,
    SQL_INTENT_DELETE_JOB,
    /* streams */
    SQL_STREAM_GET,
    SQL_STREAM_BY_ID,
    SQL_STREAM_ADD,
    SQL_STREAM_FLOOR,
    SQL_STREAM_NEXT,
    SQL_STREAM_MOVE,
    SQL_CYCLE_ADD,
    SQL_CYCLE_OPEN,
    SQL_CYCLE_TALLY,
    SQL_CYCLE_GET,
    SQL_CYCLE_SPAN,
    SQL_CYCLE_END,
    SQL_CYCLE_UNFINISHED,
    SQL_STREAM_CURSOR,
    /* records */
    SQL_BAD_ADD,
    SQL_BAD_CLEAR,
    SQL_INTENT_GET,
    SQL_INTENT_ADD,
    SQL_SCHEDULE_FIRE,
    SQL_SCHEDULE_BY_ID,
    SQL_NOTE_CLEAR,
    /* enqueues that may be repeated */
    SQL_BATCH_GET,
    SQL_BATCH_PUT,
    SQL_BATCH_FORGET,
    /* reading */
    SQL_COUNT_OF_STATEMENTS,
};
/* Jobs that commands search for and claims do not: failed, canceled, blocked and
 * delayed ones.  One index for all of them, because each index costs every claim
 * a cursor, used or not; a job that is queued, runs and is done is never in it. */
#define ASIDE_OF(j)                                                                                \
    "(" j "state >= 3 OR (" j "state = 0 AND (" j "open_deps > 0 OR " j "not_before IS NOT "       \
    "NULL)))"
#define ASIDE ASIDE_OF("")

extern const char *const tide_ledger_sql[SQL_COUNT_OF_STATEMENTS];

/* Texts for ledger/read.c. */
const char *tide_sql_jobs_text(const struct tide_job_filter *filter);
const char *tide_sql_jobs_count_text(const struct tide_job_filter *filter);
extern const char tide_sql_counts_text[], tide_sql_counts_left_text[], tide_sql_work_left_text[];

/* job.traits */
enum {
    TRAIT_BULK = 1,
    TRAIT_PREEMPTIBLE = 2,
    TRAIT_FORCE = 4,
    TRAIT_LEVEL_SHIFT = 3, /* the level above these */
};

/* What an operation did to counters, added up and written at its end: a hundred
 * jobs of a cycle cost one update of its row. */
struct tally_cycle {
    uint64_t cycle;
    int64_t total, outstanding, failed;
};

struct picked {
    uint64_t id;
    uint64_t token;
    uint64_t cycle;
    uint64_t started;
    uint64_t run;
    uint64_t bytes_done;
    uint32_t kind;
    uint16_t attempts, attempts_max;
    uint8_t state;
    bool noted, splits, cancel;
};

/* What a claim row holds about its job. */
struct claimed {
    uint64_t started, cycle, run;
    bool noted;
};
/* The last claims of this process, by id.  Only a cache for reading: the row decides
 * whether a claim still holds (E1.8).  The facts of one (job, token) change only with a
 * beat that brings resume data, which drops the entry; if another process wrote to the
 * file meanwhile, all entries are dropped. */
enum { CLAIMS_KNOWN = 1024 };
struct claim_known {
    uint64_t id, token;
    struct claimed facts;
};

/* A finish that is done and has nothing more to store (finish_run.c). */
struct plain_end {
    uint64_t id, token;
    size_t index; /* of the finish */
    struct claimed claimed;
};

struct tide_sqlite {
    tide_ledger base; /* first */
    struct tide_tx tx;
    tide_db db;
    tide_db side;                     /* checkpoints and backups; never used by the writer thread */
    struct tide_rows_kept statements; /* of `db`, if it is only read */
    tide_mem *mem;
    tide_world *world; /* borrowed */
    const char *vfs;   /* borrowed from the world */
    uint64_t run;      /* row of this run's id */
    bool read_only;
    bool in_tx;
    bool in_finish;
    bool tx_over;          /* a callback ended the transaction it ran in */
    unsigned savepoints;   /* open now; callbacks run only inside one */
    bool paused_known;     /* in this transaction */
    bool deps_known;       /* likewise */
    bool deps_any;         /* there is at least one open dependency */
    tide_status tx_failed; /* only a rollback is allowed */
    tide_status broken;    /* a sync failed: the store must be reopened (E1.10) */
    uint64_t purge_after;  /* where the next purge continues */

    tide_map kinds;    /* id -> scope */
    tide_map accounts; /* ids that exist -> 0 */
    uint32_t *paused_accounts, *paused_kinds;
    size_t paused_accounts_count, paused_accounts_capacity;
    size_t paused_kinds_count, paused_kinds_capacity;

    struct tally_cycle *tally_cycles; /* logs: undone by cutting them back */
    size_t tally_cycles_count, tally_cycles_capacity;
    uint64_t *tally_released;
    size_t tally_released_count, tally_released_capacity;
    tide_map tally_map;

    struct claim_known known[CLAIMS_KNOWN];
    uint64_t data_version; /* of the file when our last transaction began */
    tide_buf kept;         /* texts that the last operation lent to its caller */
    uint64_t *needs;       /* scratch */
    size_t needs_count, needs_capacity;
    struct picked *picks;
    size_t picks_count, picks_capacity;
    struct plain_end *plain; /* scratch of finish_run.c */
    size_t plain_capacity;
};

static inline struct tide_sqlite *sqlite_of(tide_ledger *ledger)
{
    return (struct tide_sqlite *)ledger;
}
static inline struct tide_sqlite *sqlite_of_tx(tide_tx *tx)
{
    return (struct tide_sqlite *)tx->ledger;
}
static inline sqlite3_stmt *sql_of(struct tide_sqlite *self, enum tide_sql number)
{
    return tide_db_stmt(&self->db, number);
}
/* Callbacks: whether a callback ended the transaction, and the status that follows from it
 * after a callback that returned `rc`. */
bool tide_sql_tx_over(struct tide_sqlite *self);
tide_status tide_sql_over(struct tide_sqlite *self, tide_status rc, tide_error *err);
tide_status tide_sql_savepoint(struct tide_sqlite *self, tide_error *err);
/* Ends every writing operation: remembers a failure after which only a rollback is allowed. */
tide_status tide_sql_end(struct tide_sqlite *self, tide_status rc);
tide_status tide_sql_no_memory(tide_error *err);
/* Runs a statement that changes exactly one row; none is TIDE_NOT_FOUND. */
tide_status tide_sql_change_one(struct tide_sqlite *self, sqlite3_stmt *stmt, const char *what,
                                uint64_t id, tide_error *err);

/* Whether the kind or account exists; its scope. */
tide_status tide_sql_kind_scope(struct tide_sqlite *self, uint32_t kind, uint32_t *scope_out,
                                tide_error *err);
tide_status tide_sql_account_exists(struct tide_sqlite *self, uint32_t account, tide_error *err);
tide_status tide_sql_paused_load(struct tide_sqlite *self, tide_error *err);
bool tide_sql_paused(const struct tide_sqlite *self, uint32_t account, uint32_t kind);

/* Enqueues without writing the counters.  `enqueued_out` and `children_to` may be NULL. */
tide_status tide_sql_enqueue_rows(struct tide_sqlite *self, const struct tide_job_new *jobs,
                                  size_t count, uint64_t now_unix_ms,
                                  struct tide_enqueued *enqueued_out,
                                  struct tide_changes *children_to, tide_error *err);

/* The log of counters. */
struct tally_mark {
    size_t cycles, released;
};
struct tally_mark tide_sql_tally_mark(const struct tide_sqlite *self);
void tide_sql_tally_undo(struct tide_sqlite *self, struct tally_mark mark);
tide_status tide_sql_tally_cycle(struct tide_sqlite *self, uint64_t cycle, int total,
                                 int outstanding, int failed, tide_error *err);
/* Logs the jobs that wait for `job` and deletes those dependencies. */
tide_status tide_sql_tally_release(struct tide_sqlite *self, uint64_t job, tide_error *err);
/* Writes what was logged after `mark`; `changes` may be NULL. */
tide_status tide_sql_tally_write(struct tide_sqlite *self, struct tally_mark mark,
                                 struct tide_changes *changes, tide_error *err);

/* Ends a claim: the row itself, its counters, and the jobs that wait for it.
 * TIDE_STALE, and nothing changed, if the claim is no longer held. */
tide_status tide_sql_finish_row(struct tide_sqlite *self, const struct tide_finish *finish,
                                struct claimed *claimed, uint64_t now_unix_ms, tide_error *err);

/* Ends the finishes that are done and have nothing more to store where their ids are
 * consecutive.  Sets applied_out for those; the caller ends the rest. */
tide_status tide_sql_finish_runs(struct tide_sqlite *self, const struct tide_finish *finishes,
                                 size_t count, uint64_t now_unix_ms, bool *applied_out,
                                 tide_error *err);

tide_status tide_sql_bad_add(struct tide_sqlite *self, uint64_t job, uint64_t cycle,
                             const struct tide_item_report *items, size_t count,
                             uint64_t now_unix_ms, tide_error *err);

/* A brief from the columns that every statement over BRIEF begins with. */
void tide_sql_brief_read(sqlite3_stmt *stmt, struct tide_brief *brief);
/* Deletes batches that are as old as the jobs that a purge deletes. */
tide_status tide_sql_batches_forget(struct tide_sqlite *self, uint64_t before_unix_ms,
                                    tide_error *err);

/* For qsort(): orders ids, and structs that begin with one. */
int tide_sql_id_order(const void *a, const void *b);

/* One function for each operation that a ledger of one process has. */
#define OP_SHARED(ledger, name, params, args)
#define OP(ledger, name, params, args) tide_status tide_sql_##name params;
#include "ledger/operations.h"

#endif
