/* tidemark.h - durable concurrent work against a rate-limited remote.
 *
 * Register job kinds with handlers, enqueue jobs (one, many, with dependencies,
 * in a transaction of your own), run.  Kill the program at any point and start it
 * again: accepted jobs are still there, done jobs do not run again, and no cursor
 * passes unfinished work.  A job that was running runs once more.
 *
 *     tide_engine *engine;
 *     tide_engine_open(&(struct tide_engine_options){.state_dir = "state"}, &engine, &err);
 *     uint32_t hello;
 *     tide_engine_kind(engine, &(struct tide_kind){.name = "hello", .handler = say_hello},
 *                      &hello, &err);
 *     tide_enqueue(engine, &(struct tide_spec){.kind = hello}, 1, NULL, &err);
 *     tide_engine_start(engine, &err);
 *     tide_engine_wait(engine, TIDE_WAIT_FOREVER, &err);
 *     tide_engine_close(engine);
 *
 * A handler is linear C on a worker thread: fetch, decode, store, return a
 * status.
 *
 * Ownership: what you pass in is borrowed for the call; a pointer through an
 * `_out` parameter is yours unless its comment says borrowed.  Every function may be
 * called from any thread, except where a comment says otherwise.
 *
 * Structs start zeroed (`= {0}` or named fields): zero means the default.  Later versions
 * give names to fields that are `reserved` here, so old programs work with a newer library.
 * A library that is older than a field the program sets refuses the call with TIDE_INVALID.
 *
 * Statuses: a function that can fail returns TIDE_OK or one of the statuses listed with it.
 * "Ledger statuses" stands for those of the transaction in which it writes or reads:
 *   TIDE_STOPPED    the engine has stopped; nothing was written (on PostgreSQL, after a stop
 *                   during COMMIT, this is not known)
 *   TIDE_NO_MEMORY  nothing was written
 *   TIDE_DISK_FULL  no room on the disk; nothing was written (SQLite)
 *   TIDE_BUSY       another program keeps state.db locked; nothing was written (SQLite)
 *   TIDE_IO         a sync or a read failed; the engine stops (E1.10)
 *   TIDE_CORRUPT    the ledger is damaged; the engine stops
 *   TIDE_NEWER      a newer version upgraded the ledger; the engine stops (PostgreSQL)
 * While PostgreSQL cannot be reached, or cannot write, the call waits and the engine repeats
 * the transaction.
 *
 * docs/library.md is a tour; tidemark(3) and its pages are the manual.
 */
#ifndef TIDEMARK_H
#define TIDEMARK_H

#include "tidemark/buf.h"
#include "tidemark/http.h"
#include "tidemark/status.h"
#include "tidemark/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIDEMARK_VERSION "0.2.0" /* of this header */
/* Of the library that is running. */
const char *tide_version(void);

typedef struct tide_engine tide_engine;
typedef struct tide_job tide_job;
typedef struct tide_transaction tide_transaction;
struct tide_world; /* opaque: Tidemark's own programs and tests use these */
struct tide_settings;
struct tide_log;
struct sqlite3; /* of <sqlite3.h> */
struct pg_conn; /* PGconn of <libpq-fe.h> */

/* ---- engine ---------------------------------------------------------------- */

/* Takes a whole line of the log, its newline included, from any thread of the engine. */
typedef void tide_log_line(void *arg, const char *line, size_t bytes);

struct tide_engine_options {
    const char *state_dir; /* holds state.db; made when missing */
    /* NULL: state.db in the state directory.  "postgres://...": many processes on many
     * machines share it, each with a state directory of its own (docs/fleet.md). */
    const char *ledger;
    /* On a shared ledger: whether this process may take the account.  NULL: it may take all.
     * Called on a thread of the engine; it must be quick. */
    bool (*may_take)(void *arg, const char *account, const char *provider, const char *archive);
    void *may_take_arg;
    /* Settings, from the lowest layer to the highest: built-in defaults, this YAML file
     * (it may be missing; a change is noticed while the engine runs; NULL: none), the
     * environment (TIDEMARK_WORKERS_COUNT), then `set`: "workers.count=4" each, NULL at
     * the end; NULL: none.  `tidemark config list` names them all. */
    const char *settings_file;
    const char *const *set;
    /* Where log lines go (E9.2): a descriptor such as 2 (0: none), or a function of yours;
     * the setting log.level says how many. */
    tide_log_line *log_line;
    void *log_arg;
    int log_fd;
    uint32_t workers;               /* 0: the setting workers.count */
    struct tide_world *world;       /* NULL: the real one, owned by the engine */
    struct tide_settings *settings; /* NULL: as above; borrowed */
    struct tide_log *log;           /* NULL: as above; borrowed */
    bool log_json;                  /* one JSON object a line, else key=value */
    bool no_control_socket;         /* commands cannot reach this engine */
    uint8_t reserved_flags[6];      /* zero */
    uint64_t reserved[8];           /* zero */
};

/* Opens the state directory for this process alone.  Jobs that a crashed engine left running
 * become pending again (E1.7).  Unless it returns TIDE_OK, *engine_out is NULL, which
 * tide_engine_close() takes too.
 *   TIDE_BUSY       another engine has the directory, err names it; or a copy into this ledger
 *                   has not ended
 *   TIDE_INVALID    an option or a setting is wrong, or this is not a ledger; nothing was changed
 *   TIDE_NEWER      a newer version wrote the ledger; nothing was changed
 *   TIDE_CORRUPT    the ledger is damaged; nothing was changed
 *   TIDE_NETWORK    the server cannot be reached (PostgreSQL)
 *   TIDE_AUTH       the server refuses the user or the password (PostgreSQL)
 *   TIDE_IO         a file cannot be read or written
 *   TIDE_DISK_FULL  no room on the disk
 *   TIDE_NO_MEMORY */
tide_status tide_engine_open(const struct tide_engine_options *options, tide_engine **engine_out,
                             tide_error *err);
/* Starts the workers.  Define kinds before; accounts may be added later.
 *   TIDE_INVALID    it was started before
 *   TIDE_BUSY       the system gives no more threads
 *   ledger statuses */
tide_status tide_engine_start(tide_engine *engine, tide_error *err);

#define TIDE_WAIT_FOREVER UINT64_MAX
/* Waits until no pending or running job is left that could run without a command (a retry, a
 * resume).  What is left then is failed, canceled, paused, halted, or blocked by one of these.  An
 * account that waits for quota, the network or a sign-in is waited for.  On a shared ledger only
 * jobs that this process could run now count: it does not wait for jobs that run in other
 * processes, or ran in one that died and is not declared dead yet.
 *   TIDE_TIMEOUT    wait_ms passed
 *   TIDE_STOPPED    the engine was stopped meanwhile, or was not started
 *   else            why the engine stopped by itself: TIDE_IO after a failed sync (E1.10),
 *                   TIDE_CORRUPT, TIDE_NEWER, TIDE_BUG */
tide_status tide_engine_wait(tide_engine *engine, uint64_t wait_ms, tide_error *err);
/* Asks it to stop: no new job starts, running ones have `workers.stop_grace` (5 s), then they
 * are canceled and put back (E7.4).  Returns at once.  A thread that waits for signals may call
 * it, a signal handler may not. */
void tide_engine_stop(tide_engine *engine);
/* Stops the engine, waits for its threads, frees it.  NULL is fine.
 *   TIDE_TIMEOUT    a handler ignores its cancellation; its thread and the engine's memory stay.
 *                   Call again once the handler has returned */
tide_status tide_engine_close(tide_engine *engine);

/* ---- kinds ------------------------------------------------------------------ */

/* TIDE_OK: done.  tide_status_class() decides what any other status means: tried again
 * with backoff, failed at once, or put back without cost.  `err` may be filled. */
typedef tide_status tide_handler(tide_job *job, void *context, tide_error *err);

typedef enum tide_kind_lane {
    TIDE_KIND_BULK = 0,    /* bulk, or interactive when it is a transfer below 10 MB */
    TIDE_KIND_INTERACTIVE, /* always interactive */
    TIDE_KIND_BULK_ONLY,   /* bulk whatever its size */
} tide_kind_lane;

struct tide_kind {
    const char *name; /* "mail.fetch"; stable, it is stored */
    tide_handler *handler;
    void *context;
    tide_kind_lane lane;
    uint8_t priority;           /* 0: 50 */
    uint8_t level;              /* 1 (a user waits) to 4; 0: 4 (K3, E3.3) */
    uint16_t attempts_max;      /* 0: the setting retry.attempts_max */
    uint32_t payload_bytes_max; /* 0: 64 KiB */
    uint32_t stall_after_ms;    /* canceled without a beat for so long; 0: stall.after (E7.1) */
    bool dedupe_running;        /* dedupe scope is "pending and running", else "pending" (E1.5) */
    bool not_preemptible;
    bool items; /* payload.items is an array of strings; may be split (E6) */
    /* Of all such kinds together, one job of an account runs at a time; a more urgent one (by level,
     * then by priority) preempts it (K4). */
    bool one_per_account;
    uint8_t reserved_flags[4]; /* zero */
    uint64_t reserved[6];      /* zero */
};
/* Defines a kind, between opening and starting.
 *   TIDE_INVALID    no name, one over 200 bytes, no handler, a priority over 100, a level over 4,
 *                   a reserved field that is not zero, or the engine was started
 *   TIDE_EXISTS     this engine has a kind of that name
 *   TIDE_FULL       64 kinds are defined
 *   ledger statuses */
tide_status tide_engine_kind(tide_engine *engine, const struct tide_kind *kind, uint32_t *kind_out,
                             tide_error *err);

/* ---- accounts ---------------------------------------------------------------- */

/* The quota of a provider that the library does not know.  Zero means "the default"; then the pace
 * is found by the answers. */
struct tide_quota {
    const char *name; /* 1 to 32 bytes; not one of those that tide_engine_account() knows */
    /* What the provider publishes: so many units in any window, per account; 0: nothing. */
    uint64_t window_units;
    uint32_t window_ms;
    uint32_t call_units; /* of a typical call */
    /* Calls at once, and jobs at once: at first and at most. */
    uint32_t in_flight_max;
    uint32_t workers_start, workers_max;
    /* Of all accounts of this name together, in any window; 0: no such limit.  A window of 0 is
     * that of one account.  On a shared ledger all processes together keep it. */
    uint32_t shared_window_ms;
    uint64_t shared_units;
    double rate_start, rate_max; /* units per second */
    uint8_t reserved_flags[8];   /* zero */
    uint64_t reserved[8];        /* zero */
};
/* Makes the quota, for accounts with `name` as their provider.  Call it at every start, between
 * tide_engine_open() and tide_engine_start(): quotas are not stored.  On a shared ledger a process
 * without it takes no account of that name.
 *   TIDE_INVALID    the numbers contradict each other, err says which; or the engine was started
 *   TIDE_EXISTS     there is a quota or a provider of that name
 *   TIDE_FULL       16 quotas are made, or 6 of them are for many accounts
 *   ledger statuses */
tide_status tide_engine_quota(tide_engine *engine, const struct tide_quota *quota, tide_error *err);
/* Finds or makes an account with the governor profile `provider` ("gmail",
 * "console", "onedrive", "chat", "default", or the name of a quota; NULL: "default").
 *   TIDE_INVALID    the name has not 1 to 200 bytes, or there is no such provider
 *   TIDE_FULL       the ledger has 4096 accounts
 *   ledger statuses */
tide_status tide_engine_account(tide_engine *engine, const char *name, const char *provider,
                                uint32_t *account_out, tide_error *err);
/* Halts the account: its jobs stop within 5 s, and none starts until tide_engine_resume().  The
 * reason is kept (E4.6).
 *   TIDE_NOT_FOUND  no such account
 *   ledger statuses */
tide_status tide_engine_halt(tide_engine *engine, uint32_t account, const char *reason,
                             tide_error *err);
tide_status tide_engine_resume(tide_engine *engine, uint32_t account, tide_error *err);

/* ---- jobs -------------------------------------------------------------------- */

struct tide_spec {
    uint32_t kind;
    uint32_t account;      /* 0: none */
    uint64_t cycle;        /* 0: none, or the handler's own when it is a child */
    const char *dedupe;    /* NULL: never a duplicate */
    const char *payload;   /* JSON object; NULL: {} */
    const uint64_t *needs; /* ids of jobs that must be done first */
    size_t needs_count;
    const uint32_t *needs_index; /* the same, as indexes into the specs of this call */
    size_t needs_index_count;
    uint64_t size_bytes;
    uint64_t delay_ms; /* not before now + delay */
    int16_t priority;  /* 0: the kind's; -1: zero */
    bool force;
    bool no_cycle;             /* a child that does not belong to its parent's cycle */
    uint8_t reserved_flags[4]; /* zero */
    uint64_t reserved[4];      /* zero */
};

/* Adds jobs; they are durable when it returns.  ids_out may be NULL; a duplicate gives the id of
 * the waiting job.  Large calls are written in slices, each whole or not at all; after a failure
 * err says how many jobs were written.  Specs are checked before the first slice is written.
 *   TIDE_INVALID    a spec is wrong: unknown kind or account, bad or too large payload, a
 *                   dependency cycle; nothing was written
 *   TIDE_NOT_FOUND  a needed job, or the cycle, does not exist
 *   TIDE_STALE      the cursor has passed the cycle
 *   TIDE_FULL       too many dependencies between the jobs of one call (2^20)
 *   ledger statuses */
tide_status tide_enqueue(tide_engine *engine, const struct tide_spec *specs, size_t count,
                         uint64_t *ids_out, tide_error *err);
/* Like tide_enqueue(), under a name of yours for the whole call: a second call with that name
 * (after a crash, or a lost answer) enqueues nothing and gives the same ids.  The name is kept
 * as long as finished jobs are.  One transaction, so at most TIDE_ENQUEUE_ONCE_MAX jobs.
 *   TIDE_INVALID    as for tide_enqueue(); or the name has not 1 to 200 bytes, `count` is 0 or too
 *                   large, or an earlier call of that name had another number of jobs
 *   else            as for tide_enqueue() */
#define TIDE_ENQUEUE_ONCE_MAX 10000
tide_status tide_enqueue_once(tide_engine *engine, const char *name, const struct tide_spec *specs,
                              size_t count, uint64_t *ids_out, tide_error *err);
/* Cancel: a waiting job is canceled, a running one is asked to end.  Retry: a failed or canceled
 * job becomes pending again with a fresh budget; a pending one loses its delay.
 *   TIDE_NOT_FOUND  no such job, or it was purged
 *   ledger statuses */
tide_status tide_cancel_job(tide_engine *engine, uint64_t id, tide_error *err);
tide_status tide_retry_job(tide_engine *engine, uint64_t id, tide_error *err);

/* Like tide_cancel_job(), for all jobs of a kind.
 *   TIDE_NOT_FOUND  the ledger has no kind of that name
 *   ledger statuses */
tide_status tide_cancel_kind(tide_engine *engine, const char *kind, tide_error *err);
/* How a job ended.
 *   TIDE_OK         it is done
 *   TIDE_TIMEOUT    it has not ended
 *   TIDE_CANCELED   it was canceled
 *   TIDE_NOT_FOUND  no such job, or it was purged
 *   TIDE_UNKNOWN    also for a job that failed with TIDE_TIMEOUT
 *   TIDE_PERMANENT  also for a job that failed with TIDE_NOT_FOUND
 *   else            the status it failed with, err as its handler left it; or a ledger status */
tide_status tide_job_ended(tide_engine *engine, uint64_t id, tide_error *err);
/* Which of these items of an account are recorded as bad or owed, by any kind; also those that
 * a user accepted or that are being retried (E6.2).  Ledger statuses. */
tide_status tide_items_bad(tide_engine *engine, uint32_t account, const tide_text *items,
                           size_t count, bool *bad_out, tide_error *err);

/* Runs `run` inside the ledger's next transaction, on the writer's thread: it must be quick, must
 * not wait, and must not call functions that take the engine.  Your own tables live in the same
 * file or database (E1.6).  It may run again, because the engine repeats transactions on
 * PostgreSQL: set results, do not add to them.
 *   TIDE_OK         `run` returned TIDE_OK, and what it wrote is durable
 *   TIDE_TIMEOUT    the callback took over 4 s and the server ended its transaction (PostgreSQL)
 *   TIDE_INVALID    `run` ended the transaction (COMMIT, ROLLBACK), or returned TIDE_OK after a
 *                   statement of its own had failed (PostgreSQL)
 *   else            what `run` returned; all it did is undone.  Or a ledger status
 * Some statuses of `run` concern more than this call:
 *   PostgreSQL, after a failed statement: TIDE_BUSY, TIDE_NETWORK, TIDE_DISK_FULL and
 *   TIDE_NO_MEMORY repeat the transaction, with `run` in it.
 *   SQLite: TIDE_DISK_FULL and TIDE_NO_MEMORY undo the whole transaction and are returned to all
 *   callers in it (job ends are written a second later); TIDE_CORRUPT also stops the engine. */
typedef tide_status tide_transact_fn(tide_transaction *transaction, void *arg, tide_error *err);
tide_status tide_transact(tide_engine *engine, tide_transact_fn *run, void *arg, tide_error *err);
/* Inside `run`.  Statuses as for tide_enqueue(); let `run` return them. */
tide_status tide_transaction_enqueue(tide_transaction *transaction, const struct tide_spec *specs,
                                     size_t count, uint64_t *ids_out, tide_error *err);
/* The connection of the transaction: one of the two is NULL.  Borrowed for the call; do not
 * begin, commit or roll back. */
struct sqlite3 *tide_transaction_sqlite(tide_transaction *transaction);
struct pg_conn *tide_transaction_postgres(tide_transaction *transaction); /* PGconn */

/* ---- streams and cycles (E5) -------------------------------------------------- */

/* Finds or makes a stream: one ordered line of progress.
 *   TIDE_INVALID    the name has not 1 to 200 bytes
 *   TIDE_NOT_FOUND  no such account
 *   TIDE_FULL       the process has 4096 streams (SQLite)
 *   ledger statuses */
tide_status tide_stream_open(tide_engine *engine, uint32_t account, const char *name,
                             const char *floor, uint64_t *stream_out, tide_error *err);
/* Opens the next cycle with its first jobs, all or nothing.  The cursor takes the
 * value `end` once this cycle and all before it are finished.  Both texts have at
 * most 255 bytes; cycle_out may be NULL.
 *   TIDE_INVALID    a text is too long, a spec is wrong, or no such stream (SQLite)
 *   TIDE_NOT_FOUND  no such stream (PostgreSQL), or a needed job does not exist
 *   TIDE_FULL       32,768 cycles of the stream are unfinished (65,536 on PostgreSQL)
 *   ledger statuses */
tide_status tide_cycle_open(tide_engine *engine, uint64_t stream, const char *start,
                            const char *end, const struct tide_spec *specs, size_t count,
                            uint64_t *cycle_out, tide_error *err);
/* The same inside tide_transact(), without jobs: enqueue them there. */
tide_status tide_transaction_cycle(tide_transaction *transaction, uint64_t stream,
                                   const char *start, const char *end, uint64_t *cycle_out,
                                   tide_error *err);
struct tide_stream_state {
    uint64_t cycles_finished; /* the committed ordinal of the cursor */
    uint64_t cycles_opened;
    char cursor[256]; /* its value; empty at the beginning */
    uint64_t reserved[6];
};
/*   TIDE_NOT_FOUND  no such stream
 *   ledger statuses */
tide_status tide_stream_state(tide_engine *engine, uint64_t stream,
                              struct tide_stream_state *state_out, tide_error *err);

/* ---- inside a handler (its own thread only) ------------------------------------ */

uint64_t tide_job_id(const tide_job *job);
uint32_t tide_job_account(const tide_job *job);
uint64_t tide_job_cycle(const tide_job *job);
uint16_t tide_job_attempt(const tide_job *job); /* from 1 */
bool tide_job_forced(const tide_job *job);
tide_text tide_job_payload(const tide_job *job); /* terminated */
tide_text tide_job_resume(const tide_job *job);  /* what an earlier attempt left; terminated */
tide_engine *tide_job_engine(const tide_job *job);
uint64_t tide_job_now_ms(const tide_job *job); /* monotonic, from the world */

/* Items of a job whose kind has them (E6.1).  An item that is marked done leaves the
 * job; one that is marked failed is retried, split off or recorded as bad; the others
 * are tried again. */
size_t tide_job_items(tide_job *job);
tide_text tide_job_item(tide_job *job, size_t index);
bool tide_job_item_open(tide_job *job, size_t index); /* neither done nor failed yet */
void tide_job_item_done(tide_job *job, size_t index);
void tide_job_item_failed(tide_job *job, size_t index, tide_status status, const char *reason);

/* Makes a call under the account's governor, which charges it before sending and learns from the
 * answer.  `judge` turns an answer into a status and finds the time a refusal names; NULL:
 * tide_http_judge.  With TIDE_THROTTLED it may say in err->code which limit was met, so that the
 * engine learns that limit (E4.3).
 *   TIDE_OK         the judge calls the answer a success
 *   TIDE_AGAIN      no units now; return it, the job comes back by itself (E4.3a)
 *   TIDE_CANCELED   the job was canceled, or its account is halted
 *   TIDE_INVALID    the call can never fit the quota, or the request is wrong; it was not sent
 *   TIDE_NETWORK    nothing reached the server
 *   TIDE_UNKNOWN    the connection ended after the request was sent
 *   TIDE_SERVER     the answer broke off, and the request may be repeated
 *   TIDE_TIMEOUT    no answer in time; it may have taken effect
 *   TIDE_FULL       the answer is larger than body_bytes_max; the request may have taken effect
 *   TIDE_STOPPED    the process is stopping; the request may have taken effect
 *   else            what the judge, the sink or the source returned */
#define TIDE_REFUSED_CONCURRENCY (-1) /* too many calls at once */
#define TIDE_REFUSED_BYTES       (-2) /* too many bytes for one day */
typedef tide_status tide_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                               tide_error *err);
tide_status tide_job_call(tide_job *job, uint32_t units, uint32_t method, tide_judge *judge,
                          const struct tide_request *request, struct tide_response *response,
                          tide_error *err);
/* The usual meaning of HTTP codes, and the header Retry-After.
 *   TIDE_OK         2xx
 *   TIDE_AUTH       401
 *   TIDE_GONE       404, 410
 *   TIDE_THROTTLED  429, 509; 503 with Retry-After
 *   TIDE_TIMEOUT    408
 *   TIDE_SERVER     other codes from 500 on
 *   TIDE_PERMANENT  all others */
tide_status tide_http_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                            tide_error *err);
/* Like tide_job_call(), for an HTTP batch: `units` for all of its `parts` are charged before it
 * is sent, and every part counts in flight (E4.4). */
tide_status tide_job_batch(tide_job *job, uint32_t units, uint32_t parts, uint32_t method,
                           tide_judge *judge, const struct tide_request *request,
                           struct tide_response *response, tide_error *err);

/* A child job: it exists if and only if this job's `done` is written (E1.6).
 *   TIDE_INVALID    as for tide_enqueue(), or the spec has needs_index
 *   TIDE_FULL       this job has 100,000 children
 *   TIDE_NO_MEMORY */
tide_status tide_job_enqueue(tide_job *job, const struct tide_spec *spec, tide_error *err);
/* Zeroed memory that lives until this job's end is written: for what effects
 * need.  NULL: none left. */
void *tide_job_memory(tide_job *job, size_t bytes);
/* Runs `effect` in the transaction that writes this job's `done` (E1.4).
 *   TIDE_NO_MEMORY */
tide_status tide_job_effect(tide_job *job, tide_transact_fn *effect, void *arg, tide_error *err);
/* Shows that the handler makes progress, and how many bytes it has transferred.  Cheap; call it
 * often. */
void tide_job_beat(tide_job *job, uint64_t bytes_done);
/* Where the next attempt resumes: kept with the job's end when it comes back.
 *   TIDE_FULL       more than 64 KiB
 *   TIDE_NO_MEMORY */
tide_status tide_job_resume_set(tide_job *job, tide_text resume, tide_error *err);
/* Like tide_job_resume_set(), durable when it returns.
 *   TIDE_STALE      the claim was lost: return without doing anything more
 *   TIDE_FULL       more than 64 KiB
 *   ledger statuses */
tide_status tide_job_save(tide_job *job, tide_text resume, tide_error *err);
/* Not now: `return tide_job_again(job, at_ms);`  Costs no attempt.  Returns TIDE_AGAIN. */
tide_status tide_job_again(tide_job *job, uint64_t at_ms);
/* When a call that ended with TIDE_AGAIN may be made; 0: none did. */
uint64_t tide_job_again_at_ms(const tide_job *job);
/* The job must end: a user canceled it, more urgent work needs its worker, its account was halted,
 * it stalled, or the engine stops.  Waits and calls then end by themselves (E7.3). */
bool tide_job_canceled(const tide_job *job);
/*   TIDE_CANCELED   the job was canceled meanwhile
 *   TIDE_STOPPED    the process is stopping */
tide_status tide_job_sleep(tide_job *job, uint64_t wait_ms);

/* E1.9: call it before an effect that cannot be repeated.  Durable when it returns.
 *   TIDE_EXISTS     an earlier attempt made it: look the tag up at the remote first
 *   TIDE_STALE      the claim was lost: return without the effect
 *   TIDE_INVALID    the tag has not 1 to 512 bytes
 *   ledger statuses */
tide_status tide_job_intent(tide_job *job, const char *tag, const char *detail, tide_error *err);
/* Records the outcome of the effect.
 *   TIDE_NOT_FOUND  no such intent
 *   ledger statuses */
tide_status tide_job_intent_end(tide_job *job, const char *tag, tide_status outcome,
                                const char *detail, tide_error *err);
/* The same inside tide_transact(), together with what the effect left behind: no crash can
 * keep the one and lose the other. */
tide_status tide_transaction_intent_end(tide_transaction *transaction, const char *tag,
                                        tide_status outcome, const char *detail, tide_error *err);

/* ---- schedules (E8) ------------------------------------------------------------- */

struct tide_schedule {
    const char *name; /* stable, it is stored */
    uint32_t kind;
    uint64_t period_ms;
    const char *payload;
    bool at_start;             /* first run now, else after one period */
    bool per_account;          /* one job for each account that is not halted */
    uint8_t reserved_flags[6]; /* zero */
    uint64_t reserved[6];      /* zero */
};
/* Enqueues a job of `kind` every `period_ms`, once per slot in all processes of the ledger.
 *   TIDE_INVALID    no name, one over 200 bytes, no period, an unknown kind, or a reserved field
 *                   that is not zero
 *   TIDE_FULL       the process has 1024 schedules
 *   ledger statuses */
tide_status tide_engine_schedule(tide_engine *engine, const struct tide_schedule *schedule,
                                 tide_error *err);

/* ---- looking (E9) ---------------------------------------------------------------- */

/* Everything E9.1 names, as one JSON object.  No database work.  On a shared ledger streams
 * (of the accounts leased to this process, and of none) are as this process read them some
 * seconds ago; the first snapshot in a minute requests them and may have none yet.
 *   TIDE_FULL       json_out has reached its ceiling
 *   TIDE_NO_MEMORY */
tide_status tide_engine_snapshot(tide_engine *engine, tide_buf *json_out, tide_error *err);
/* The main numbers of it, for a progress line. */
struct tide_progress {
    uint64_t done, failed, retried, split, bad; /* since start */
    uint32_t running[2], waiting[2];            /* by lane */
    uint32_t window;                            /* jobs in the tracker */
    uint64_t tracker_bytes;
    uint64_t ledger_writes; /* transactions so far */
    bool idle;
    uint8_t reserved_flags[7];
    uint64_t reserved[16];
};
void tide_engine_progress(tide_engine *engine, struct tide_progress *progress_out);

#ifdef __cplusplus
}
#endif

#endif
