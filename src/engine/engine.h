/* engine.h - the running engine: its state and the functions its files share (README.md).
 *
 * One lock guards everything that decides: tracker, lanes, governors, frontiers,
 * queues.  It is held for microseconds, never during a wait, a database call or a
 * handler (world.h WLD3).  Four kinds of threads take it:
 *
 *   workers     take a HELD job, run its handler, put its end into `ended`
 *   writer      takes ends, write requests and claims together, commits them as one
 *               transaction, applies the results (engine/writer/writer.c)
 *   dispatcher  wakes up for time: due jobs, quota, stalls, schedules
 *   callers     put a tide_write into the queue and wait for it
 *
 * Invariants (tide_engine_check() under the lock; the simulation after steps):
 *   ENG1  tracker: a subset of the ledger's unfinished jobs (E2.3).
 *   ENG2  a job is in `ended` exactly once between its end and its commit.
 *   ENG3  effects synced < done <= cursor: a cursor never passes a job whose `done` is not durable
 *         (E1.4).  On SQLite it moves in a later transaction than the last `done` before it; on a
 *         shared ledger it may move in the same one, because the ledger's own counts decide there
 *         and both are durable with one COMMIT.
 *   ENG4  memory follows the disk, never leads it: the tracker gets a change only after its
 *         transaction is durable.
 */
#ifndef TIDE_ENGINE_ENGINE_H
#define TIDE_ENGINE_ENGINE_H

#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "base/rng.h"
#include "core/alerts/alerts.h"
#include "core/badness.h"
#include "core/governor/bandwidth.h"
#include "core/frontier.h"
#include "core/governor/governor.h"
#include "core/lanes.h"
#include "core/retry.h"
#include "core/schedule.h"
#include "core/series.h"
#include "core/tracker.h"
#include "engine/meters.h"
#include "ledger/account_totals.h"
#include "ledger/ledger.h"
#include "ledger/outcome.h"
#include "settings/settings.h"
#include "engine/tuning.h"
#include "tidemark_inside.h"
#include "world/world.h"

struct tide_kind_entry {
    struct tide_kind kind; /* name is owned */
    uint32_t id;           /* the ledger's */
    uint8_t system;        /* its place in tide_engine.meters */
};

/* An item for which a call succeeded: for probes (E6.2). */
struct tide_good {
    uint32_t kind;
    char item[TIDE_ITEM_BYTES_MAX + 1];
};
enum { TIDE_GOODS = 4 };

/* An account's jobs in the window, as counted by tide_accounts_count(). */
struct tide_account_jobs {
    uint32_t states[TIDE_JOB_STATES];
    uint32_t claimed; /* being claimed, claimed, or still in a worker */
    uint64_t bytes;
};

/* The longest wait for room in a queue, as the last look found it (engine/accounts/queues.c). */
struct tide_queued {
    const char *queue;
    uint64_t since_ms; /* 0: no handler waits */
    bool told;         /* the wait was reported to the alerts */
};

/* What the ledger stores about an account besides its jobs (engine/accounts/metadata.c). */
struct tide_metadata {
    uint64_t bytes;       /* as last measured */
    uint64_t grown;       /* bytes of bad items added since then, about */
    uint64_t measured_ms; /* when */
    bool due;             /* not measured yet by this process */
    bool asked;           /* the writer has a request to measure it */
    bool used;            /* the account made calls or ended jobs since then */
    bool bad;             /* the last measure found records of its items */
    bool bad_told;        /* a job of this process reported some, perhaps after the measure */
};

struct tide_account {
    uint32_t id;
    char name[TIDE_NAME_BYTES_MAX + 1];
    char provider[33]; /* its governor's profile */
    tide_governor *governor;
    tide_badness *badness;
    struct tide_good goods[TIDE_GOODS]; /* the newest first */
    uint32_t goods_count;
    bool good_stored;  /* an item of this run is in the ledger, for the next run */
    uint64_t probe_id; /* the job that probes it, 0: none */
    uint32_t admitted; /* how many of its jobs the lanes may have */
    bool held;         /* leased to this process; always true on SQLite */
    bool leaving;      /* on a shared ledger: to be given up once nothing of it is claimed */
    bool unwanted;     /* not an account this process works for (engine/accounts/wanted.c) */
    struct tide_outcome outcome; /* of its last calls */
    bool bound; /* its archive is local files: other processes can hardly take it */
    /* On a shared ledger: jobs of kinds that this process does not run (fleet/look.c). */
    uint64_t foreign_ms;       /* when the first such job was found; 0: none */
    uint64_t offered_until_ms; /* given up for processes that run them: not retaken until then */
    uint64_t offer_wait_ms;    /* before the next offer; grows each time no process took it */
    bool offered_work;         /* it had jobs of our kinds, too */
    bool offered_share;        /* offered to the member with the fewest accounts */
    bool paused;
    bool halted;
    char halt_reason[TIDE_ERROR_TEXT_BYTES_MAX + 1];
    struct tide_common_limit *common; /* of its project (E4.1); NULL: none */
    /* Settings that count for it (engine/accounts/settings.c). */
    uint64_t small_below_bytes, large_above_bytes;
    uint64_t metadata_budget_bytes;
    uint64_t stall_ignored_ms;
    uint32_t stall_after_ms;
    uint16_t attempts_max;                /* of a kind that names none */
    uint64_t retry_after_ms_max;          /* atomic */
    uint64_t calls, refused;              /* since the last look of the alerts */
    uint64_t failed, retried, split, bad; /* since start, for display (E9.1) */
    struct tide_account_totals totals;    /* up to the last look, of all processes (M4) */
    struct tide_account_totals counted;   /* the part of the four above that `totals` has */
    bool windows_changed; /* since they were saved (engine/accounts/alerting_saved.c) */
    struct tide_demand demand;
    struct tide_queued queued;
    struct tide_metadata metadata;
    struct tide_account_jobs jobs;
    struct tide_account_series *series; /* NULL: nothing happened yet (engine/accounts/series.c) */
    struct tide_account_meters meters;
};

/* What an account did over time, for charts. */
struct tide_account_series {
    struct tide_series items; /* stored, or found gone */
    struct tide_series units; /* of quota that its calls were charged */
    uint64_t items_total;     /* since the engine opened */
};
/* Adds to them; under the lock.  Without memory the chart has a gap. */
void tide_account_series_add(tide_engine *engine, struct tide_account *account, uint64_t now_ms,
                             uint32_t items, uint32_t units);

/* A limit that accounts of a provider have in common: a project's (E4.1). */
struct tide_common_limit {
    const struct tide_provider_limits *provider;
    char project[64]; /* governor.project; "": that of all accounts without one */
    char key[100];    /* its name on a shared ledger and for display */
    struct tide_limit limit;
    uint64_t units_max; /* of the whole project */
    uint32_t window_ms;
};
enum { TIDE_COMMON_LIMITS = 8 + TIDE_SETTINGS_ACCOUNTS_MAX };

/* A provider that a system or a program brought (engine/accounts/quota.c). */
struct tide_provider {
    struct tide_provider_limits limits; /* its name is the one below */
    char name[TIDE_PROVIDER_NAME_BYTES_MAX + 1];
};
enum { TIDE_PROVIDERS_MAX = 16 };

/* An unfinished cycle, for display (E9.1). */
struct tide_cycle_live {
    uint64_t ordinal;
    uint64_t total, outstanding, failed, bad;
    uint64_t beat_ms; /* when a job of it ended last */
    char start[48], end[48];
};

struct tide_stream {
    uint64_t id;
    tide_frontier *frontier;
    char name[TIDE_NAME_BYTES_MAX + 1];
    char cursor[256];
    tide_map live_index; /* ordinal + 1 to an index of `live` */
    struct tide_cycle_live *live;
    size_t live_count, live_capacity;
};

/* New jobs and cycles of a transaction: given to the core once it is durable (ENG4). */
struct tide_new_rows {
    struct tide_enqueued_job {
        struct tide_brief brief; /* not_before_ms holds unix ms */
        bool existed;
        bool raised;
    } * jobs;
    size_t jobs_count, jobs_capacity;
    struct tide_new_cycle {
        uint64_t stream;
        uint64_t ordinal;
        uint64_t cycle;
        uint64_t jobs; /* 0: the cycle is finished at once */
        char start[48], end[48];
    } * cycles;
    size_t cycles_count, cycles_capacity;
};

struct tide_transaction {
    tide_engine *engine;
    tide_tx *tx;
    uint64_t now_unix_ms;
    struct tide_new_rows new_rows;
};

/* One caller's write request: a part of the next transaction.  Lives on the caller's stack
 * until `done`. */
struct tide_write {
    struct tide_write *next;
    tide_transact_fn *run;
    void *arg;
    struct tide_transaction transaction;
    /* Runs under the lock once it is durable; may be NULL. */
    void (*apply)(tide_engine *engine, void *arg, uint64_t now_ms);
    /* Set when no caller waits for the request: frees it.  NULL: it belongs to the caller. */
    void (*drop)(tide_engine *engine, struct tide_write *write);
    bool own;  /* `run` is a program's callback: its status counts for its caller only, unless a
                  statement failed (writer.c) */
    bool slow; /* `run` took so long that the server ended the transaction: it is not run again */
    bool over; /* `run` ended the transaction it ran in: it is not run again */
    bool done;
    tide_status status;
    tide_error err;
};

/* An effect a handler asked for, run with its `done`. */
struct tide_effect {
    struct tide_effect *next;
    tide_transact_fn *run;
    void *arg;
};

struct tide_job_item {
    tide_text text;
    tide_status status; /* TIDE_OK: open; see `done` */
    bool done;
    bool skipped; /* done without a call: says nothing about the account */
    bool failed;
    char *reason;
};

struct tide_job {
    tide_engine *engine;
    const struct tide_kind_entry *kind;
    struct tide_account *account; /* NULL: none */
    struct tide_brief brief;
    struct tide_job_body *body;
    tide_cancel cancel;
    bool user_cancel; /* a command canceled it, whatever other reason came first */
    tide_job *next;   /* in `ended` or the free list */

    /* the handler's own */
    tide_arena arena;
    struct tide_job_new *children;
    size_t children_count, children_capacity;
    struct tide_effect *effects;
    struct tide_job_item *items;
    size_t items_count;
    bool items_read;
    tide_status items_status; /* why they could not be read: then there are none */
    bool resume_set;
    tide_text resume;
    uint64_t bytes_done;
    uint64_t beat_ms;
    uint64_t queued_ms; /* since when it waits for room in `queue`; 0: it does not */
    const char *queue;
    uint64_t again_at_ms;
    bool lacks_units;          /* its last call in this run was not charged */
    bool parked_for_units;     /* and none was since */
    uint32_t stalled_after_ms; /* without a beat: the limit by which it was canceled */

    /* its end */
    tide_status status;
    tide_error err;
    struct tide_finish finish;
    struct tide_transaction effects_transaction;
    bool effects_slow; /* they took so long that a server may have ended the transaction */
    bool effects_over; /* one of them ended the transaction it ran in */
    uint8_t refusals;  /* of its end, so far */
    bool counted;      /* it ran: count and log its end once that is durable */
    uint32_t items_stored, items_bad; /* by its end */
    bool split_unrun;                 /* its processes died too often: split, not run (E7.1) */
    bool given_up; /* the supervisor took it from a worker that does not return */
};

/* The server ends a transaction of ours that is idle for 5 s (ledger/postgres/postgres.c). */
enum { TIDE_CALLBACK_MS_MAX = 4000 };

struct tide_worker {
    tide_engine *engine;
    tide_thread *thread;
    tide_job *job; /* running */
    uint32_t index;
    bool abandoned;       /* its handler does not return: its thread does not count */
    uint64_t canceled_ms; /* when the supervisor asked, 0: never */
};

/* The thread that passes notices of alerts to the program (engine/accounts/notifier.c). */
struct tide_notifying {
    struct tide_notifier notifier; /* send NULL: the program brought none */
    tide_cond *wake;
    void *ask; /* of the thread */
    tide_cancel cancel;
    tide_thread *thread;
    /* under the lock */
    bool shown;   /* the ledger has an alert that notices could not be sent */
    bool on;      /* the thread runs */
    bool look;    /* alerts or settings changed */
    bool fresh;   /* the settings did */
    bool working; /* it takes or sends one */
};

typedef enum tide_phase {
    TIDE_PHASE_OPEN, /* not started */
    TIDE_PHASE_RUN,
    TIDE_PHASE_GRACE,  /* stopping: running jobs may end */
    TIDE_PHASE_CANCEL, /* stopping: running jobs were canceled */
    TIDE_PHASE_ENDED,  /* threads return */
} tide_phase;

enum { TIDE_ENGINE_SHOWN_MAX = 16, TIDE_SYSTEM_ALERTS_MAX = 10000 };

/* An alert that a system found by itself (engine/accounts/system_alerts.c). */
struct tide_system_alert {
    char condition[49];
    uint32_t account; /* 0: none */
    enum tide_level level;
    char text[401];
};

/* What a system adds to each snapshot: tide_engine_snapshot_add(). */
struct tide_shown {
    const char *name;
    tide_snapshot_fn *fill;
    void *arg;
};

struct tide_engine {
    tide_world *world;
    bool world_owned;
    tide_mem *mem;
    struct tide_settings *settings;
    bool settings_owned;
    char state_dir[4096 - 64];
    char *ledger_path; /* owned: state.db, or postgres://, perhaps with a password */
    char run_id[33];
    uint64_t owner;      /* random per start (lesson 4) */
    uint64_t token_next; /* of claims, rising over restarts */
    tide_ledger *ledger; /* used by the writer's thread only, once it runs */
    struct tide_shown shown[TIDE_ENGINE_SHOWN_MAX]; /* under the lock */
    size_t shown_count;
    tide_file_lock *file_lock;
    tide_map died_often;      /* jobs over their budget because processes died; fixed once open */
    struct tide_fleet *fleet; /* NULL: the ledger is ours alone */
    bool (*may_take)(void *arg, const char *account, const char *provider, const char *archive);
    void *may_take_arg;
    char (*only)[TIDE_NAME_BYTES_MAX + 1]; /* owned: the accounts it works for; NULL: for all */
    size_t only_count;
    struct tide_control *control; /* NULL: none */
    tide_log *log;                /* NULL: none */
    tide_log log_owned;           /* what `log` points to unless the caller gave one */

    uint64_t interactive_below_bytes; /* settings that callers read without the lock */
    uint64_t retry_after_ms_max;
    uint64_t enqueue_slice;
    uint64_t write_requests_us_max;
    uint32_t purge_slice;
    uint16_t attempts_max;
    bool bandwidth_limited;

    tide_lock *lock;
    tide_cond *work;  /* workers wait here */
    tide_cond *write; /* the writer */
    tide_cond *pump;  /* the dispatcher */
    tide_cond *news;  /* callers: their write is done, or the engine is quiet or ended */

    /* under the lock from here on */
    tide_phase phase;
    tide_status fatal; /* why it stopped by itself, TIDE_OK: it did not */
    tide_error fatal_err;
    tide_rng rng;
    tide_tracker *tracker;
    tide_lanes *lanes;
    tide_alerts *alerts;
    struct tide_system_alert *system_alerts; /* those that hold, as the ledger has them */
    size_t system_alerts_count, system_alerts_room;
    tide_bandwidth bandwidth;
    struct tide_common_limit limits[TIDE_COMMON_LIMITS]; /* as many as counted since the start */
    size_t limits_count;
    struct tide_provider providers[TIDE_PROVIDERS_MAX]; /* likewise */
    size_t providers_count;
    struct tide_tuning tuning;
    uint64_t settings_print;   /* hash of the file at the keeper's last look; the keeper's own */
    uint64_t settings_refused; /* hash of the last error logged about it; 0: none */
    uint64_t settings_look_ms; /* when the keeper looks again */
    bool settings_watched;     /* another thread says when it changed */
    bool clock_watched;        /* likewise for the wall clock */
    struct tide_settings_follower *followers;
    void (*changed)(void *arg); /* tide_engine_watch(); NULL: none */
    void *changed_arg;
    bool resting; /* `changed` was told that nothing runs */
    tide_schedules *schedules;
    struct tide_schedule_plan *plans;
    tide_map kind_index;
    struct tide_kind_entry kinds[TIDE_KINDS_MAX];
    uint32_t kinds_count;
    tide_map account_index; /* account id to index */
    struct tide_account **accounts;
    size_t accounts_count, accounts_capacity;
    tide_map stream_index;
    struct tide_stream **streams;
    size_t streams_count, streams_capacity;

    tide_job *ended_first, *ended_last; /* ENG2 */
    size_t ended_count;
    tide_job *free_jobs;
    size_t free_jobs_count, jobs_reserved;
    struct tide_write *writes_first, *writes_last;
    uint32_t ahead; /* claims beyond what can start now, from how fast jobs ended */

    struct tide_batch *batch; /* the writer's own */
    tide_thread *writer_thread, *dispatcher_thread, *keeper_thread;
    struct tide_worker workers[TIDE_WORKERS_MAX];
    uint32_t workers_count; /* threads started, abandoned ones included */
    uint32_t workers_idle;  /* waiting on `work` */
    uint32_t abandoned_count;
    uint32_t workers_wanted;
    bool workers_started; /* tide_engine_start() has started their threads */
    bool writer_idle;
    bool writer_gone;            /* the writer has returned: write requests are refused */
    bool writer_busy;            /* between gathering and applying */
    bool stuff_to_claim;         /* jobs became WANTED since the writer's last batch */
    bool save_due;               /* a governor wants its spending saved (E4.3b) */
    uint64_t pump_at_ms;         /* when the dispatcher will wake up by itself */
    uint64_t stop_at_ms;         /* end of the grace */
    uint64_t retry_writes_at_ms; /* a transaction failed: the writer waits until then; 0: no */
    uint32_t write_failures;     /* transactions that failed since the last success */
    uint64_t started_ms;
    uint64_t opened_unix_ms;
    uint64_t beats_at_ms;     /* when beats go to the ledger next */
    uint64_t look_at_ms;      /* next look of the supervisor and the alerts */
    uint64_t alerts_saved_ms; /* when their windows were saved last */
    uint64_t fleet_at_ms;     /* next step of the fleet */
    tide_cond *keeper;
    uint32_t wal_log;   /* pages in the log after the last transaction */
    uint32_t wal_pages; /* of them those that were written since the last checkpoint */
    bool wal_copying;   /* keeper or writer copies it: one at a time, they share a connection */
    bool wal_short;     /* the keeper copied most of the log: the writer copies the rest */
    struct tide_notifying notifying;
    struct tide_queued queued; /* of jobs without account, and of ends that wait for the writer */
    uint32_t waiters;          /* callers in tide_engine_wait() */

    /* counters since start */
    struct tide_progress counts;
    struct tide_meters meters;
};

/* ---- engine.c ---- */
struct tide_kind_entry *tide_engine_kind_of(tide_engine *engine, uint32_t id);
struct tide_account *tide_engine_account_of(tide_engine *engine, uint32_t id);
struct tide_stream *tide_engine_stream_of(tide_engine *engine, uint64_t id);
void tide_engine_cache_settings(tide_engine *engine);
bool tide_engine_check(tide_engine *engine); /* ENG1, ENG2, from memory alone; under the lock */
/* Wakes callers of tide_engine_wait() when the engine may be quiet. */
void tide_engine_quiet(tide_engine *engine);
/* Nothing runs and nothing is to be written; and a job starts.  For tide_engine_watch(); under the
 * lock. */
void tide_engine_rests(tide_engine *engine);
void tide_engine_wakes(tide_engine *engine);
void tide_job_log(const tide_job *job, tide_log_level level, const char *event, tide_text detail);
/* Stops the engine because of an error; tide_engine_wait() returns it.  Under the lock. */
void tide_engine_fail(tide_engine *engine, tide_status status, const tide_error *err);
/* Loads a stream with its unfinished cycles, unless it is in memory already. */
tide_status tide_engine_stream_load(tide_engine *engine, const struct tide_stream_row *row,
                                    tide_error *err);

/* ---- dispatcher.c ---- */
/* Handles everything that can proceed now: due jobs, preemptions, wake-ups.  Called
 * under the lock by the thread that changed something. */
void tide_dispatch(tide_engine *engine, uint64_t now_ms);
void tide_dispatcher_main(void *arg);
/* Puts back jobs that are claimed and do not run, in one pass over the window: those of accounts
 * that may not run now, or all at a stop or a lost lease. */
void tide_dispatch_put_back(tide_engine *engine, uint64_t now_ms);
void tide_dispatch_put_back_all(tide_engine *engine, uint64_t now_ms);
/* Adds to a brief what the ledger does not have: what its kind says.  false: no such kind here. */
bool tide_engine_brief_fill(tide_engine *engine, struct tide_brief *brief);
/* Adds a job that is pending in the ledger to the window, if there is room. */
void tide_dispatch_offer(tide_engine *engine, const struct tide_brief *brief, uint64_t now_ms);
void tide_account_refresh(tide_engine *engine, struct tide_account *account, uint64_t now_ms);

/* ---- worker.c ---- */
void tide_worker_main(void *arg);
bool tide_worker_add(tide_engine *engine); /* under the lock; false: no more can be started */
/* Takes the job from a worker whose handler ignores its cancellation; under the lock. */
void tide_worker_give_up(tide_engine *engine, struct tide_worker *worker, uint64_t now_ms);

/* ---- engine/writer/writer.c ---- */
tide_status tide_writer_new(tide_engine *engine); /* before its thread */
void tide_writer_free(tide_engine *engine);
void tide_writer_main(void *arg);
bool tide_writer_has_work(const tide_engine *engine);
void tide_write_push(tide_engine *engine, struct tide_write *write); /* under the lock */
/* Queues the request and waits until it is durable or refused. */
tide_status tide_write_run(tide_engine *engine, struct tide_write *write, tide_error *err);
void tide_changes_apply(tide_engine *engine, const struct tide_changes *changes, uint64_t now_ms);
void tide_new_rows_done(struct tide_new_rows *new_rows, tide_mem *mem);
/* A wall time of the ledger by the monotonic clock; 0: now or in the past. */
uint64_t tide_engine_at_ms(tide_engine *engine, uint64_t unix_ms, uint64_t now_ms);

/* ---- finish.c ---- */
/* Decides what a job's end means and fills job->finish.  true: pass it to the
 * writer; false: it is parked and comes back by itself.  Under the lock. */
bool tide_job_conclude(tide_job *job, tide_status status, uint64_t now_ms);
/* Ends a claimed job that did not run: put back, or canceled. */
void tide_job_put_back(tide_job *job, tide_row_state state, tide_status why, uint64_t now_ms);
/* The ledger refused the end although our claim still holds: decides again, as after a failure. */
void tide_job_refused(tide_job *job, tide_status status, const char *text, uint64_t now_ms);
/* Turns an end after which the job would run again into a cancellation. */
void tide_job_cancel_end(tide_job *job);
/* Counts and logs an end that is durable. */
void tide_job_count(tide_job *job, uint64_t now_ms);
void tide_ended_push(tide_engine *engine, tide_job *job);

/* ---- job.c ---- */
/* Call it before rows are claimed: afterwards tide_job_take() succeeds `count` more times.  A
 * claimed row without a job would stay running under our name until the process ends.  false: no
 * memory.  Reservations that the writer did not use end with its batch (jobs_reserved = 0). */
bool tide_jobs_reserve(tide_engine *engine, size_t count);
tide_job *tide_job_take(tide_engine *engine, const struct tide_brief *brief,
                        struct tide_job_body *body); /* uses a reservation */
void tide_job_drop(tide_job *job);

/* ---- enqueue.c ---- */
tide_status tide_spec_check(tide_engine *engine, const struct tide_spec *spec, tide_error *err);
void tide_spec_convert(tide_engine *engine, const struct tide_spec *spec, uint64_t now_unix_ms,
                       struct tide_job_new *job_out); /* after tide_spec_check() */

/* ---- supervisor.c, scheduler.c, engine/accounts/alerting.c ---- */
uint64_t tide_supervise(tide_engine *engine, uint64_t now_ms); /* next look */
/* How long the handler of this job may ignore its cancellation; NULL: of any. */
uint64_t tide_stall_ignored_ms(const tide_engine *engine, const tide_job *job);
/* Changes the period of the schedule of that name, if there is one; under the lock. */
void tide_schedule_period(tide_engine *engine, const char *name, uint64_t period_ms);
uint64_t tide_schedule_look(tide_engine *engine, uint64_t now_ms);
uint64_t tide_alerting_look(tide_engine *engine, uint64_t now_ms);
/* Saves the windows of an account, or of all, with the next transaction if they changed. */
void tide_alerting_save(tide_engine *engine, struct tide_account *account, uint64_t now_ms);
void tide_alerting_save_all(tide_engine *engine, uint64_t now_ms);
tide_status tide_scheduler_new(tide_engine *engine);
void tide_scheduler_free(tide_engine *engine);
tide_status tide_alerting_new(tide_engine *engine);
void tide_alerting_free(tide_engine *engine);
void tide_alerting_reload(tide_engine *engine); /* the settings changed */
/* Thresholds of its own, or those of all accounts (E11.2). */
void tide_alerting_own(tide_engine *engine, const struct tide_account *account);
/* The account of alerts that concern no account; their row in the ledger has account 0. */
enum { TIDE_ALERTS_NO_ACCOUNT = INT32_MAX };
/* ---- engine/accounts/notifier.c; under the lock, but for start and free ---- */
tide_status tide_notifying_start(tide_engine *engine, tide_error *err);
void tide_notifying_free(tide_engine *engine);
void tide_notifying_look(tide_engine *engine);   /* an alert changed */
void tide_notifying_reload(tide_engine *engine); /* the settings changed */
void tide_notifying_cancel(tide_engine *engine); /* a stop waits no longer */
/* Whether a notice is being sent, or may be due. */
bool tide_notifying_busy(const tide_engine *engine);
/* ---- engine/accounts/system_alerts.c; under the lock, but for free ---- */
/* Puts it into the list, or takes it out at TIDE_LEVEL_NONE; false: no memory. */
bool tide_system_alerts_put(tide_engine *engine, const struct tide_system_alert *alert);
void tide_system_alerts_free(tide_engine *engine);
/* ---- engine/accounts/metadata.c ---- */
/* Requests a measure of the accounts that need one; returns when to look again. */
uint64_t tide_metadata_look(tide_engine *engine, uint64_t now_ms);
/* ---- engine/accounts/queues.c ---- */
void tide_queues_look(tide_engine *engine, uint64_t now_ms);
/* ---- engine/accounts/alerting_saved.c ---- */
/* Loads the alerts and counts of earlier processes: for all accounts on SQLite; for an account
 * that was taken, on a shared ledger. */
tide_status tide_alerting_load(tide_engine *engine, tide_error *err);
void tide_alerting_taken(tide_engine *engine, struct tide_account *account, tide_text windows,
                         tide_text totals, uint64_t now_ms);
/* The windows and totals of an account as text, and their place in the ledger. */
struct tide_alerting_saved {
    uint32_t account;
    tide_buf windows, totals;
};
void tide_alerting_saved_init(struct tide_alerting_saved *saved, tide_mem *mem);
void tide_alerting_saved_done(struct tide_alerting_saved *saved);
tide_status tide_alerting_saved_take(tide_engine *engine, struct tide_account *account,
                                     uint64_t now_ms, struct tide_alerting_saved *saved);
tide_status tide_alerting_saved_write(tide_tx *tx, const struct tide_alerting_saved *saved,
                                      tide_error *err);
/* The windows are of no use any more; the totals stay. */
tide_status tide_alerting_saved_end(tide_transaction *transaction, uint32_t account,
                                    tide_error *err);
/* Reads them; a text stays empty where the ledger has none. */
tide_status tide_alerting_saved_read(tide_ledger *ledger, uint32_t account,
                                     struct tide_alerting_saved *saved, tide_error *err);

/* ---- purge.c ---- */
#define TIDE_PURGE_NAME "tidemark.purge" /* kind and schedule */
tide_status tide_engine_own_kinds(tide_engine *engine, tide_error *err);
tide_status tide_engine_purge(tide_engine *engine, uint64_t older_ms, const tide_cancel *cancel,
                              uint64_t *count_out, tide_error *err);

/* ---- stream.c ---- */
/* Makes a stream without cycles; then loads its unfinished cycles from the ledger. */
tide_status tide_stream_new(tide_engine *engine, const struct tide_stream_row *row,
                            struct tide_stream **stream_out, tide_error *err);
tide_status tide_stream_cycles_load(tide_engine *engine, struct tide_stream *stream,
                                    tide_error *err);
/* Replaces a stream in memory by what the ledger says.  The writer calls it under the lock,
 * which is dropped meanwhile. */
tide_status tide_stream_reload(tide_engine *engine, uint64_t id, tide_error *err);
void tide_stream_free(tide_engine *engine, struct tide_stream *stream);
const struct tide_cycle_live *tide_stream_live(const struct tide_stream *stream, uint64_t ordinal);
/* Updates a cycle with the ledger's counts; removes it when it is finished. */
void tide_stream_cycle_is(tide_engine *engine, struct tide_stream *stream,
                          const struct tide_cycle_live *live);

/* ---- snapshot.c ---- */
struct json_t *tide_engine_snapshot_json(tide_engine *engine);

/* ---- transfer.c ---- */
void tide_transfer_settings(tide_engine *engine); /* at start, and when the settings changed */
/* tide_world_call() within the bandwidth that the settings allow (E4.7). */
tide_status tide_transfer_call(tide_job *job, const struct tide_request *request,
                               struct tide_response *response, tide_error *err);

/* ---- engine/accounts/wanted.c ---- */
/* Whether this process works for accounts of that name (tide_engine_only()). */
bool tide_engine_wants(const tide_engine *engine, const char *name);
/* A command hands over work for this account: this process runs it from now on, wanted or not,
 * and a wait for a sign-in ends.  TIDE_NOT_FOUND. */
tide_status tide_account_asked(tide_engine *engine, uint32_t account, tide_error *err);

/* ---- engine/accounts/outcome_note.c: under the lock ---- */
/* Records the outcome of a call or a job of the account.  `host` may be "". */
void tide_account_came_to(tide_engine *engine, struct tide_account *account, tide_status status,
                          tide_text host, const char *text);
/* Writes the outcomes that are not in the ledger yet. */
void tide_outcomes_save(tide_engine *engine);

/* ---- engine/accounts/account.c ---- */
tide_status tide_engine_accounts_load(tide_engine *engine, tide_error *err);
void tide_engine_accounts_free(tide_engine *engine);
/* Whether this job probes its account; and the result of the probe. */
bool tide_account_is_probe(const tide_job *job);
void tide_account_probed(tide_job *job, tide_status status, uint64_t now_ms);
/* Remembers an item that can be fetched, also for the next run: when after a restart one failing
 * item is all that is left, only a probe of a good one tells a bad item from an outage (E6.2). */
void tide_account_good_item(tide_engine *engine, struct tide_account *account, uint32_t kind,
                            tide_text item);
/* Carries out the orders of badness.h: a probe of a good item, or a halt. */
void tide_account_badness_orders(tide_engine *engine, struct tide_account *account,
                                 uint64_t now_ms);

/* Updates memory from the ledger's row: a new account, a pause, a halt; under the lock.  The caller
 * puts back claimed jobs afterwards, once for all accounts. */
tide_status tide_account_is(tide_engine *engine, const struct tide_account_row *row,
                            uint64_t now_ms, tide_error *err);
/* The account is leased to this process from now on: its governor continues from what the last
 * process saved. */
tide_status tide_account_taken(tide_engine *engine, struct tide_account *account, tide_text saved,
                               uint64_t now_ms);
/* Gives the account a new governor, which continues from what was saved: its provider's limits
 * became known. */
tide_status tide_account_retune(tide_engine *engine, struct tide_account *account, tide_text saved,
                                uint64_t now_ms);
/* The lease of one account has ended.  The caller then removes the jobs of all such accounts from
 * the window and puts back their claimed jobs: once, not for each. */
void tide_account_left(tide_engine *engine, struct tide_account *account, uint64_t now_ms);
void tide_accounts_forget(tide_engine *engine);
void tide_accounts_left(tide_engine *engine, uint64_t now_ms); /* all leases have ended */
/* Fills the `jobs` of all accounts in one pass over the window: a pass for each account would hold
 * the lock for accounts x window. */
void tide_accounts_count(tide_engine *engine);

/* ---- engine/accounts/quota.c ---- */
/* The limits of a provider; NULL: this process does not know it. */
const struct tide_provider_limits *tide_engine_limits_of(const tide_engine *engine,
                                                         const char *provider);
/* The numbers of an account at its provider: those of "default" if it is not known. */
struct tide_governor_profile tide_account_profile(const tide_engine *engine,
                                                  const struct tide_account *account);

/* ---- engine/accounts/settings.c; under the lock ---- */
/* What counts for it: its own settings, else the common ones (E11.2).  Borrowed until the next
 * reload. */
const tide_settings *tide_account_settings(const tide_engine *engine,
                                           const struct tide_account *account);
/* Its fields that are settings. */
void tide_account_tune(tide_engine *engine, struct tide_account *account);

/* ---- engine/accounts/limits.c ---- */
tide_status tide_limits_new(tide_engine *engine, tide_error *err);
/* Adds what the provider's accounts have in common, if they have anything. */
tide_status tide_limits_add(tide_engine *engine, const struct tide_provider_limits *provider,
                            tide_error *err);
void tide_limits_free(tide_engine *engine);
void tide_limits_reload(tide_engine *engine); /* the settings changed */
/* Charges the account's calls also to the limit that the accounts of its project have in common. */
tide_status tide_limits_bind(tide_engine *engine, struct tide_account *account);
/* On a shared ledger: the most units of a common limit this process could use; 0: none. */
uint64_t tide_limits_wanted(const tide_engine *engine, size_t index);
void tide_limits_granted(tide_engine *engine, size_t index, uint64_t units, uint64_t until_ms);

/* ---- engine/writer/keeper.c ---- */
enum { TIDE_WAL_PAGES_KEEPER = 1000 }; /* about 4 MB: the keeper copies the log back */
void tide_keeper_main(void *arg);

/* New limits for every governor after the settings changed (E11). */
void tide_accounts_reload(tide_engine *engine);

/* ---- jobs.c ---- */
enum { TIDE_JOBS_RUNNING_MAX = TIDE_CLAIM_MAX };
/* Changes all jobs that the filter matches, in slices.
 *   TIDE_NOT_FOUND  it names a job that does not exist
 *   TIDE_STALE      it expects another count; nothing was changed */
tide_status tide_jobs_retry(tide_engine *engine, const struct tide_job_filter *filter,
                            uint64_t *count_out, tide_error *err);
/* Failed and canceled ones become done (E5.2). */
tide_status tide_jobs_accept(tide_engine *engine, const struct tide_job_filter *filter,
                             uint64_t *count_out, tide_error *err);
/* `running_out`: ids of running jobs, which end when their handlers return.  It and its count may
 * be NULL. */
tide_status tide_jobs_cancel(tide_engine *engine, const struct tide_job_filter *filter,
                             uint64_t *count_out, uint64_t running_out[TIDE_JOBS_RUNNING_MAX],
                             size_t *running_count_out, tide_error *err);
/* Pauses a kind, an account or both, by name, or resumes them; NULL: none.  TIDE_NOT_FOUND. */
tide_status tide_engine_pause(tide_engine *engine, const char *kind, const char *account,
                              bool paused, tide_error *err);
/* A user canceled this job: cancels it if this process has claimed it; under the lock. */
void tide_job_cancel_claimed(tide_engine *engine, uint64_t id, uint64_t now_ms);
/* Many rows changed: loads the unclaimed part of the window again; under the lock. */
void tide_window_reload(tide_engine *engine, uint64_t now_ms);

/* ---- bad_items.c ---- */
struct tide_bad_filter {
    uint32_t account; /* UINT32_MAX: any */
    uint32_t kind;    /* 0: any */
    tide_text item;   /* empty: any */
    bool has_state;   /* only those in `state` */
    tide_bad_state state;
    bool expects; /* so many must match, or nothing is changed (TIDE_STALE) */
    uint64_t expected;
};
/* Enqueues the items that the filter matches; accepts them as they are. */
tide_status tide_bad_retry(tide_engine *engine, const struct tide_bad_filter *filter,
                           uint64_t *count_out, tide_error *err);
tide_status tide_bad_accept(tide_engine *engine, const struct tide_bad_filter *filter,
                            uint64_t *count_out, tide_error *err);
/* Enqueues items that a command marked for a retry while no engine ran. */
tide_status tide_bad_retry_marked(tide_engine *engine, tide_error *err);

/* ---- engine/control/control.c ---- */
tide_status tide_control_start(tide_engine *engine, tide_error *err);
void tide_control_stop(tide_engine *engine);

#endif
