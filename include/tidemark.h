/* tidemark.h - durable concurrent work against a rate-limited remote.
 *
 * Register job kinds with handlers, enqueue jobs (one, many, with dependencies,
 * in a transaction of your own), run.  Kill the program anywhere and start it
 * again: what was accepted is still there, what was done is not done again, and
 * no cursor passes unfinished work.  A job that was running runs once more.
 *
 *     tide_engine *engine;
 *     tide_engine_open(&(struct tide_engine_options){.state_dir = "state"}, &engine, &err);
 *     uint32_t hello;
 *     tide_engine_kind(engine, &(struct tide_kind){.name = "hello", .handler = say_hello},
 *                      &hello, &err);
 *     tide_enqueue(engine, &(struct tide_spec){.kind = hello}, 1, NULL, &err);
 *     tide_engine_start(engine, &err);
 *     tide_engine_wait(engine, TIDE_WAIT_FOR_EVER, &err);
 *     tide_engine_close(engine);
 *
 * A handler is linear C on a worker thread: fetch, decode, store, return a
 * status.  It owns what it touches and reports by what it returns.
 *
 * Ownership: what you pass in is borrowed for the call; a pointer through an
 * `_out` parameter is yours unless its comment says borrowed.  Every function may be
 * called from any thread, except where a comment says otherwise.
 *
 * Structs start zeroed (`= {0}` or named fields): zero means the default.  Later versions
 * give names to what is `reserved` here, so old programs go on working with a newer
 * library; a library that is older than a field somebody sets says so with TIDE_INVALID.
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
struct tide_world; /* closed: Tidemark's own programs and tests use these */
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
    /* On a shared ledger: which accounts this process may take.  NULL: every one.
     * Called on a thread of the engine; it must be quick. */
    bool (*may_take)(void *arg, const char *account, const char *provider, const char *archive);
    void *may_take_arg;
    /* Settings, from the lowest layer to the highest: built-in defaults, this YAML file
     * (it may be missing; a change is noticed while the engine runs; NULL: none), the
     * environment (TIDEMARK_WORKERS_COUNT), then `set`: "workers.count=4" each, NULL at
     * the end; NULL: none.  `tidemark config list` names them all. */
    const char *settings_file;
    const char *const *set;
    /* Where lines about its life go (E9.2): a descriptor such as 2 (0: none), or a
     * function of yours; the setting log.level says how many. */
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

/* Opens the state directory for this process alone.  TIDE_BUSY: another engine
 * has it, err names that one.  TIDE_NEWER, TIDE_CORRUPT, TIDE_INVALID: see err;
 * nothing was changed.  Jobs of a crashed predecessor go back at once (E1.7).
 * Unless it returns TIDE_OK, *engine_out is NULL, which tide_engine_close() takes too. */
tide_status tide_engine_open(const struct tide_engine_options *options, tide_engine **engine_out,
                             tide_error *err);
/* Starts workers.  Kinds are defined before; accounts may come later. */
tide_status tide_engine_start(tide_engine *engine, tide_error *err);

#define TIDE_WAIT_FOR_EVER UINT64_MAX
/* Waits until nothing is pending or running that could still run without news:
 * TIDE_OK; what is left is failed, canceled, paused, halted, or blocked by one
 * of these.  TIDE_TIMEOUT after wait_ms; TIDE_STOPPED when stopped meanwhile;
 * else why the engine had to stop by itself (a failed sync, E1.10).  On a shared
 * ledger it is about what this process could run now: jobs that run in others, or
 * ran in one that died and was not declared dead yet, are not waited for. */
tide_status tide_engine_wait(tide_engine *engine, uint64_t wait_ms, tide_error *err);
/* Asks it to stop: no new job starts, running ones have `workers.stop_grace`
 * (5 s), then they are canceled and put back (E7.4).  Returns at once; safe in
 * a signal handler's thread, not in the handler itself. */
void tide_engine_stop(tide_engine *engine);
/* Stops, waits for the end, frees.  NULL is fine.  TIDE_TIMEOUT: a handler
 * ignores its cancellation; its thread and the engine's memory are left alone, and a
 * further call, once the handler has returned, ends it. */
tide_status tide_engine_close(tide_engine *engine);

/* ---- kinds ------------------------------------------------------------------ */

/* TIDE_OK: done.  Any other status is judged by tide_status_class(): tried again
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
    uint8_t level;              /* 1 (a person waits) to 4; 0: 4 (K3, E3.3) */
    uint16_t attempts_max;      /* 0: the setting retry.attempts_max */
    uint32_t payload_bytes_max; /* 0: 64 KiB */
    uint32_t stall_after_ms;    /* no beat for so long; 0: the setting stall.after (E7.1) */
    bool dedupe_running;        /* dedupe scope is "pending and running", else "pending" (E1.5) */
    bool not_preemptible;
    bool items;                /* payload.items is an array of strings; may be split (E6) */
    uint8_t reserved_flags[5]; /* zero */
    uint64_t reserved[6];      /* zero */
};
tide_status tide_engine_kind(tide_engine *engine, const struct tide_kind *kind, uint32_t *kind_out,
                             tide_error *err);

/* ---- accounts ---------------------------------------------------------------- */

/* Finds or makes an account with the governor profile `provider` ("gmail",
 * "console", "graph", "chat", "default"). */
tide_status tide_engine_account(tide_engine *engine, const char *name, const char *provider,
                                uint32_t *account_out, tide_error *err);
/* Stops all of its workers within 5 s and keeps the reason (E4.6); the other undoes it. */
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
    const uint32_t *needs_index; /* the same, as indexes into this very call */
    size_t needs_index_count;
    uint64_t size_bytes;
    uint64_t delay_ms; /* not before now + delay */
    int16_t priority;  /* 0: the kind's; -1: zero */
    bool force;
    bool no_cycle;             /* a child that does not belong to its parent's cycle */
    uint8_t reserved_flags[4]; /* zero */
    uint64_t reserved[4];      /* zero */
};

/* Durable when it returns.  ids_out may be NULL; a duplicate gives the id of the
 * waiting one.  Large calls are written in slices, each whole or not at all; an
 * error tells how many jobs were taken.  A dependency cycle, an unknown kind or
 * a payload over its cap is refused before anything is written. */
tide_status tide_enqueue(tide_engine *engine, const struct tide_spec *specs, size_t count,
                         uint64_t *ids_out, tide_error *err);
/* The same under a name of yours for the whole call: asked again with it (you crashed, or
 * lost the answer), it enqueues nothing and gives the same ids.  The name is remembered as
 * long as finished jobs are.  One transaction, so at most TIDE_ENQUEUE_ONCE_MAX jobs. */
#define TIDE_ENQUEUE_ONCE_MAX 10000
tide_status tide_enqueue_once(tide_engine *engine, const char *name, const struct tide_spec *specs,
                              size_t count, uint64_t *ids_out, tide_error *err);
tide_status tide_cancel_job(tide_engine *engine, uint64_t id, tide_error *err);
tide_status tide_retry_job(tide_engine *engine, uint64_t id, tide_error *err);

/* Everything of a kind that waits; what runs is told to end. */
tide_status tide_cancel_kind(tide_engine *engine, const char *kind, tide_error *err);
/* How a job ended: TIDE_OK when it is done, TIDE_TIMEOUT while it has not ended,
 * TIDE_CANCELED, or what it failed with, err as its handler left it.  TIDE_NOT_FOUND:
 * there is none, or it was purged.  A job that failed with one of these two is told apart: a
 * time-out is given as TIDE_UNKNOWN, something not found as TIDE_PERMANENT. */
tide_status tide_job_ended(tide_engine *engine, uint64_t id, tide_error *err);
/* Which of these items of an account are recorded as bad or owed, by whichever kind;
 * also those that a person accepted or that are being tried again (E6.2). */
tide_status tide_items_bad(tide_engine *engine, uint32_t account, const tide_text *items,
                           size_t count, bool *bad_out, tide_error *err);

/* Runs `run` inside the ledger's next transaction, on the writer's thread: it
 * must be quick and must not wait.  Its failure undoes all it did and is
 * returned.  Your own tables live in the same file or database (E1.6).  It may run
 * again when a transaction on PostgreSQL has to be repeated: let it set what it gives
 * back, not add to it.  There a statement of yours that failed leaves nothing to keep:
 * TIDE_INVALID if you say TIDE_OK all the same; TIDE_BUSY and TIDE_NETWORK then ask for a
 * repetition.  A callback that stands still there for over 4 s ends with TIDE_TIMEOUT.  On a
 * file TIDE_DISK_FULL and TIDE_NO_MEMORY ask for one, and TIDE_CORRUPT stops the engine. */
typedef tide_status tide_transact_fn(tide_transaction *transaction, void *arg, tide_error *err);
tide_status tide_transact(tide_engine *engine, tide_transact_fn *run, void *arg, tide_error *err);
tide_status tide_transaction_enqueue(tide_transaction *transaction, const struct tide_spec *specs,
                                     size_t count, uint64_t *ids_out, tide_error *err);
/* The connection that transaction runs on: one of the two is NULL.  Borrowed for the call;
 * do not begin, commit or roll back. */
struct sqlite3 *tide_transaction_sqlite(tide_transaction *transaction);
struct pg_conn *tide_transaction_postgres(tide_transaction *transaction); /* PGconn */

/* ---- streams and cycles (E5) -------------------------------------------------- */

/* Finds or makes a stream: one ordered line of progress. */
tide_status tide_stream_open(tide_engine *engine, uint32_t account, const char *name,
                             const char *floor, uint64_t *stream_out, tide_error *err);
/* The next cycle with its first jobs, all or nothing.  The cursor takes the
 * value `end` once this cycle and all before it are finished.  Both texts have at
 * most 255 bytes; cycle_out may be NULL. */
tide_status tide_cycle_open(tide_engine *engine, uint64_t stream, const char *start,
                            const char *end, const struct tide_spec *specs, size_t count,
                            uint64_t *cycle_out, tide_error *err);
tide_status tide_transaction_cycle(tide_transaction *transaction, uint64_t stream,
                                   const char *start, const char *end, uint64_t *cycle_out,
                                   tide_error *err);
struct tide_stream_state {
    uint64_t cycles_finished; /* the ordinal the cursor stands at, committed */
    uint64_t cycles_opened;
    char cursor[256]; /* its value; empty at the beginning */
    uint64_t reserved[6];
};
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

/* Items of a job whose kind has them (E6.1).  What is marked done leaves the
 * job; what fails by name is retried, split off or recorded as bad; the rest is
 * tried again. */
size_t tide_job_items(tide_job *job);
tide_text tide_job_item(tide_job *job, size_t index);
bool tide_job_item_open(tide_job *job, size_t index); /* neither done nor failed yet */
void tide_job_item_done(tide_job *job, size_t index);
void tide_job_item_failed(tide_job *job, size_t index, tide_status status, const char *reason);

/* Makes a call under the account's governor: charged before sending, answered
 * after.  TIDE_AGAIN: no units now; return it, the job comes back by itself
 * (E4.3a).  `judge` turns an answer into a status and finds the time a refusal
 * names; NULL: tide_http_judge.  TIDE_OK only for what it calls success.  With TIDE_THROTTLED
 * it may say in err->code which limit was met, so that the engine learns that limit (E4.3). */
#define TIDE_REFUSED_CONCURRENCY (-1) /* too many calls at once */
#define TIDE_REFUSED_BYTES       (-2) /* too many bytes for one day */
typedef tide_status tide_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                               tide_error *err);
tide_status tide_job_call(tide_job *job, uint32_t units, uint32_t method, tide_judge *judge,
                          const struct tide_request *request, struct tide_response *response,
                          tide_error *err);
tide_status tide_http_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                            tide_error *err);
/* The same for an HTTP batch: `units` for all of its `parts` are charged before it is
 * sent, and every part counts in flight (E4.4). */
tide_status tide_job_batch(tide_job *job, uint32_t units, uint32_t parts, uint32_t method,
                           tide_judge *judge, const struct tide_request *request,
                           struct tide_response *response, tide_error *err);

/* A child job: it appears if and only if this job's `done` does (E1.6). */
tide_status tide_job_enqueue(tide_job *job, const struct tide_spec *spec, tide_error *err);
/* Zeroed memory that lives until this job's end is written: for what effects
 * need.  NULL: none left. */
void *tide_job_memory(tide_job *job, size_t bytes);
/* Runs in the transaction that writes this job's `done` (E1.4). */
tide_status tide_job_effect(tide_job *job, tide_transact_fn *effect, void *arg, tide_error *err);
/* Sign of life, and how far a transfer has come.  Cheap; call it often. */
void tide_job_beat(tide_job *job, uint64_t bytes_done);
/* Where to go on: kept with the job's end when it comes back. */
tide_status tide_job_resume_set(tide_job *job, tide_text resume, tide_error *err);
/* The same, durable before it returns; TIDE_STALE: the claim was lost, leave. */
tide_status tide_job_save(tide_job *job, tide_text resume, tide_error *err);
/* Not now: `return tide_job_again(job, at_ms);`  Costs no attempt. */
tide_status tide_job_again(tide_job *job, uint64_t at_ms);
/* When a call that ended with TIDE_AGAIN may be made; 0: none did. */
uint64_t tide_job_again_at_ms(const tide_job *job);
/* Somebody wants it to end; waits and calls end by themselves (E7.3). */
bool tide_job_canceled(const tide_job *job);
tide_status tide_job_sleep(tide_job *job, uint64_t wait_ms); /* TIDE_CANCELED when so */

/* E1.9: before an effect that cannot be repeated.  Durable when it returns.
 * TIDE_EXISTS: made before a crash; look the tag up at the remote first. */
tide_status tide_job_intent(tide_job *job, const char *tag, const char *detail, tide_error *err);
tide_status tide_job_intent_end(tide_job *job, const char *tag, tide_status outcome,
                                const char *detail, tide_error *err);
/* The same in a transaction of yours, with what the effect left behind: there is then no
 * moment at which the one is known and the other is not. */
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
tide_status tide_engine_schedule(tide_engine *engine, const struct tide_schedule *schedule,
                                 tide_error *err);

/* ---- looking (E9) ---------------------------------------------------------------- */

/* Everything E9.1 names, as one JSON object.  No database work.  On a shared ledger streams
 * (of the accounts held here, and of none) are as this process saw them some seconds ago;
 * the first snapshot in a minute asks for them and may have none yet. */
tide_status tide_engine_snapshot(tide_engine *engine, tide_buf *json_out, tide_error *err);
/* The same in numbers, for a progress line. */
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
