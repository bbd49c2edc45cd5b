/* ledger.h - the durable table of jobs, cycles and cursors (E1).
 *
 * This is the interface between the engine and a database.  Two stores implement
 * it: SQLite row by row (sqlite/), PostgreSQL array by array (postgres/).  One
 * conformance suite (tests/ledger/) runs against both, through nothing but this
 * header.
 *
 * This file has opening, transactions, handles, and the structs by which operations speak.  The
 * operations themselves, with their contracts, are in operations.h: tide_ledger_NAME().
 *
 * A ledger is used by one thread at a time: the writer.  Reading commands
 * open a ledger of their own with `read_only`.  It has no clock and no threads:
 * `now_unix_ms`, owners and tokens are arguments.
 *
 * Every operation that writes takes the transaction, so that no caller can commit
 * half of a decision.  A failed operation leaves the transaction usable and its
 * own part undone, except TIDE_IO, TIDE_CORRUPT, TIDE_DISK_FULL and
 * TIDE_NO_MEMORY, after which only tide_tx_rollback() is allowed.
 *
 * Invariants (tide_ledger_check() tests them; the conformance suite after every
 * operation):
 *   LED1  a job row is pending, running, done, failed or canceled; it has a token and an owner
 *         exactly while running.
 *   LED2  job.open_deps = number of its dependencies that are not done.
 *   LED3  cycle.outstanding = its jobs that are pending or running; cycle.failed = its jobs that
 *         are failed or canceled.
 *   LED4  stream.ordinal never decreases; every cycle below it has outstanding = 0 and failed = 0.
 *   LED5  no two waiting jobs share (account, kind, dedupe key); where the kind's scope says so, no
 *         two waiting or running ones.
 *   LED6  a row whose token does not match is never changed (E1.8).
 *   LED7  done rows never leave that state, except by purge (E1.7).
 */
#ifndef TIDE_ENGINE_LEDGER_H
#define TIDE_ENGINE_LEDGER_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "core/brief.h"
#include "world/world.h"

typedef struct tide_ledger tide_ledger;
typedef struct tide_tx tide_tx;

typedef enum tide_row_state {
    TIDE_ROW_PENDING = 0,
    TIDE_ROW_RUNNING = 1,
    TIDE_ROW_DONE = 2,
    TIDE_ROW_FAILED = 3,
    TIDE_ROW_CANCELED = 4,
} tide_row_state;

typedef enum tide_dedupe_scope {
    TIDE_DEDUPE_PENDING = 0, /* while one job of the key runs, one more may wait (E1.5) */
    TIDE_DEDUPE_PENDING_AND_RUNNING = 1,
} tide_dedupe_scope;

/* ---- opening -------------------------------------------------------------- */

struct tide_ledger_options {
    const char *path;   /* of state.db, or postgres://... (tide_ledger_is_postgres()) */
    const char *run_id; /* random per start (lesson 4), kept on each row it claims (E9.2) */
    uint64_t now_unix_ms;
    bool read_only;  /* for commands, while an engine may be running */
    bool must_exist; /* do not create */
    /* For ledger/copy/copy.c only: opens a ledger under construction, which all other
     * callers are refused with TIDE_BUSY, or a new one.  It starts no run. */
    bool building;
    /* Leases are judged by the database's clock, not by `now_unix_ms`: machines
     * disagree about the time.  Only tests leave it off. */
    bool database_clock;
};

/* Whether `path` names a ledger on PostgreSQL: "postgres://..." or "postgresql://...".
 * Everything else is a file. */
bool tide_ledger_is_postgres(const char *path);
/* `path` without its password, for messages and logs. */
void tide_ledger_name(const char *path, char *name_out, size_t name_bytes);

/* Creates or upgrades the schema (older: upgraded in one transaction; newer:
 * TIDE_NEWER; not a ledger: TIDE_INVALID; damaged: TIDE_CORRUPT).  After an
 * unclean stop of the last engine the file is checked first.  SQLite: WAL,
 * synchronous=FULL (E1.10); a file of another program is refused before anything
 * is written. */
tide_status tide_ledger_open(tide_world *world, const struct tide_ledger_options *options,
                             tide_ledger **ledger_out, tide_error *err);
/* `clean` records that everything in flight was put back. */
void tide_ledger_close(tide_ledger *ledger, bool clean);

tide_status tide_tx_begin(tide_ledger *ledger, tide_tx **tx_out, tide_error *err);
/* Like tide_tx_begin(), for callers that retry.  PostgreSQL gets BEGIN with the first
 * operation: one round trip.  A member that was declared dead gets TIDE_BUSY from that
 * operation, and TIDE_STALE from its next begin. */
tide_status tide_tx_begin_lazily(tide_ledger *ledger, tide_tx **tx_out, tide_error *err);
/* After TIDE_OK it is on disk.  Any failure rolls back, and the store must be
 * reopened if err says the sync failed (TIDE_IO): never retried (E1.10).
 *
 * A shared ledger is on a server, so three more statuses are possible, from here, from
 * tide_tx_begin() and from every operation; the transaction is then over (roll it
 * back) and the ledger reconnects at the next tide_tx_begin():
 *   TIDE_NETWORK  the server cannot be reached, or refuses us for now (starting up, too
 *                 many connections, a time-out); nothing of this transaction was written.
 *   TIDE_BUSY     it lost against another transaction (deadlock, serialization): retry.
 *   TIDE_STALE    from tide_tx_begin() only: this member was declared dead, see
 *                 tide_ledger_member_join().
 * A connection that is lost during COMMIT leaves the outcome unknown.  The commit token
 * (every transaction counts up the member's own row) tells it after reconnecting:
 * tide_tx_commit() waits until the outcome is known, however long that takes, and then
 * returns TIDE_OK or TIDE_NETWORK.  tide_ledger_give_up() and the end of the world
 * (world/world.h) end the wait with TIDE_STOPPED. */
tide_status tide_tx_commit(tide_tx *tx, tide_error *err);
void tide_tx_rollback(tide_tx *tx);
/* From any thread, at a stop: no commit waits for its outcome any longer.  One that waits
 * ends with TIDE_STOPPED; whether it was stored, the next start sees. */
void tide_ledger_give_up(tide_ledger *ledger);
/* The SQLite handle of this transaction, for the caller's own tables in the
 * same file; NULL on other engines.  Borrowed until the end of the transaction. */
struct sqlite3 *tide_tx_sqlite(tide_tx *tx);
/* The same for a ledger that was opened with `read_only`. */
struct sqlite3 *tide_ledger_sqlite(tide_ledger *ledger);
/* The same on PostgreSQL, a PGconn; NULL on other engines. */
struct pg_conn *tide_tx_postgres(tide_tx *tx);
struct pg_conn *tide_ledger_postgres(tide_ledger *ledger);
/* Whether several processes may work on the ledger at once: PostgreSQL. */
bool tide_ledger_shared(const tide_ledger *ledger);

/* Whether a callback's own statements ended the transaction it ran in.  Nothing more can be
 * written in it: the end of the savepoint, or the finish, fails. */
bool tide_tx_over(tide_tx *tx);

/* Part of a transaction that can be undone alone.  Nested ones end in the order
 * of a stack.  keep = false undoes what was done since. */
tide_status tide_tx_savepoint(tide_tx *tx, tide_error *err);
tide_status tide_tx_savepoint_end(tide_tx *tx, bool keep, tide_error *err);

/* Pages in the log after the last commit; less than before: the log was restarted. */
uint32_t tide_ledger_log_pages(tide_ledger *ledger);

/* ---- names ---------------------------------------------------------------- */

struct tide_account_row {
    uint32_t id;
    char name[201];
    char provider[33]; /* a governor profile */
    bool paused;       /* by command: no job starts */
    bool halted;       /* E4.6 */
    char halt_reason[401];
    uint64_t halted_unix_ms;
    uint64_t owner;     /* the member that holds it, 0: none that is alive */
    char archive[65];   /* id of the archive its mail goes to; empty: none */
    char secret[201];   /* where its secret is kept, never the secret; empty: unknown */
    tide_text governor; /* from tide_governor_save(); borrowed until the next call */
};

/* ---- many processes (E1.7, E1.8, E4.1) --------------------------------------- */

/* A process that works on a shared ledger is a member of its fleet, by a lease that
 * it renews.  Everything it holds depends on that one lease: its claims carry its
 * owner number, its accounts name it.  The first process that finds the lease expired
 * declares the member dead (reclaim); from then on tide_tx_begin() refuses every
 * transaction of the dead member with TIDE_STALE, so that a paused process that wakes
 * up changes nothing.  Each transaction of a member locks the member's row: it is never
 * declared dead in the middle of one.
 *
 * A ledger without a member (SQLite, a command) has no fence. */
struct tide_member {
    uint64_t owner;   /* random per start; what tide_ledger_claim() is given */
    char name[65];    /* "host, process 12", for display */
    char version[17]; /* of the program: shows a rolling upgrade */
    uint64_t joined_unix_ms;
    uint64_t until_unix_ms;     /* end of its lease */
    bool dead;                  /* declared dead; its row is kept for a day */
    uint32_t accounts, running; /* how many it holds; filled by tide_ledger_members() */
};

/* ---- hints ---- */

/* Tells the other processes of a change, when the transaction commits and never before: a
 * hint only, they poll too.  All hints of a transaction are one message.  Does nothing on
 * SQLite. */
typedef enum tide_hint {
    TIDE_HINT_WORK,    /* a job of `account` (0: of no account) became ready */
    TIDE_HINT_CONTROL, /* paused, resumed, halted, canceled, new accounts or schedules */
} tide_hint;
tide_status tide_tx_hint(tide_tx *tx, tide_hint hint, uint32_t account, tide_error *err);

/* One per process, on a connection of its own, used by one thread. */
typedef struct tide_listener tide_listener;
enum { TIDE_HINTS_ACCOUNTS_MAX = 64 };
struct tide_hints {
    bool control;
    bool all;       /* hints may have been missed (reconnected, too many): check everything */
    bool free_work; /* a job of no account became ready */
    uint32_t accounts[TIDE_HINTS_ACCOUNTS_MAX];
    size_t accounts_count;
};
/* TIDE_INVALID: this ledger has no hints (SQLite, a pooler that does not support LISTEN). */
tide_status tide_listener_open(tide_world *world, const char *path, tide_mem *mem,
                               tide_listener **listener_out, tide_error *err);
/* Waits for hints, at most wait_ms.  TIDE_OK: all hints that have arrived, merged;
 * TIDE_TIMEOUT; TIDE_STOPPED after tide_listener_stop().  Reconnects by itself, with
 * backoff. */
tide_status tide_listener_wait(tide_listener *listener, uint32_t wait_ms,
                               struct tide_hints *hints_out, tide_error *err);
void tide_listener_stop(tide_listener *listener); /* from any thread */
void tide_listener_close(tide_listener *listener);

/* ---- jobs ------------------------------------------------------------------ */

struct tide_job_new {
    uint32_t account; /* 0: none */
    uint32_t kind;
    uint64_t cycle;        /* 0: none */
    tide_text dedupe_key;  /* empty: never a duplicate */
    tide_text payload;     /* JSON object */
    const uint64_t *needs; /* ids of existing jobs it waits for */
    size_t needs_count;
    const uint32_t *needs_earlier; /* indexes into the same call, each smaller than its own */
    size_t needs_earlier_count;
    uint64_t size_bytes;
    uint64_t not_before_unix_ms;
    uint16_t attempts; /* inherited by halves of a split (E6.1) */
    uint16_t attempts_max;
    uint8_t priority;
    uint8_t lane;
    uint8_t level;
    bool preemptible;
    bool force; /* merged by OR into an existing one (E1.5) */
    bool part;  /* a child that is a part of its parent (E6.1): jobs that wait for the
                 * parent wait for it too.  A duplicate stands for the existing job.
                 * Parts that wait for the parent themselves do not wait for each other.
                 * The finish is refused (TIDE_INVALID) where a part needs a job that would
                 * wait for it: no job waits forever. */
};

struct tide_enqueued {
    uint64_t id;
    uint32_t open_deps;
    bool existed; /* a duplicate: `id` is the waiting (or running) job */
    bool raised;  /* its priority was raised */
};

/* A job as it was just written; not_before_ms holds unix ms. */
struct tide_brief tide_enqueued_brief(const struct tide_job_new *job,
                                      const struct tide_enqueued *enqueued);

/* What a worker needs besides the brief.  One allocation; free with
 * tide_job_body_free(). */
struct tide_job_body {
    uint64_t id;
    uint64_t token;
    uint16_t attempts; /* before this one */
    bool force;
    tide_text payload;
    tide_text resume;     /* empty: none */
    tide_text dedupe_key; /* empty: none */
    size_t bytes;         /* of this allocation */
};
/* With copies of the texts; NULL: no memory. */
struct tide_job_body *tide_job_body_new(tide_mem *mem, tide_text payload, tide_text resume,
                                        tide_text dedupe_key);
void tide_job_body_free(tide_mem *mem, struct tide_job_body *body);

struct tide_item_report {
    tide_text item;
    tide_text reason;
    /* TIDE_GONE: gone; TIDE_TIMEOUT: owed; TIDE_OK: good after all, its record is
     * deleted; else bad */
    tide_status status;
};

struct tide_finish {
    uint64_t id;
    uint64_t token;
    tide_row_state state;        /* PENDING: put back or retry */
    int16_t attempts_add;        /* 0: costs no attempt */
    uint64_t not_before_unix_ms; /* for PENDING */
    tide_status status;          /* why; TIDE_OK for done */
    tide_text error;             /* one line, may be empty */
    bool resume_set;             /* store `resume`, else keep the stored one */
    tide_text resume;
    tide_text payload; /* replaces the payload when not empty (items left) */
    uint64_t bytes_done;
    const struct tide_job_new *children; /* enqueued if and only if this applies (E1.6) */
    size_t children_count;
    const struct tide_item_report *items; /* bad, gone, owed: recorded with it (E6.1) */
    size_t items_count;
    /* The handler's own effects in the same database (E1.4); may be NULL.  A
     * failure undoes this finish alone: applied_out stays false. */
    tide_status (*effect)(void *arg, tide_tx *tx, tide_error *err);
    void *effect_arg;
};

/* What changed besides the finished rows themselves.  Arrays belong to the
 * struct; tide_changes_clear() before each use, tide_changes_done() at the end. */
struct tide_changes {
    tide_mem *mem;
    struct tide_released {
        uint64_t id;
        uint32_t account;
        uint32_t open_deps;
    } * released;
    size_t released_count, released_capacity;
    struct tide_cycle_change {
        uint64_t cycle;
        uint64_t stream;
        uint64_t ordinal;
        uint64_t outstanding;
        uint64_t failed;
        uint64_t total;
        uint64_t bad;
    } * cycles; /* each cycle at most once per call, with its counts afterwards */
    size_t cycles_count, cycles_capacity;
    struct tide_child {
        struct tide_brief brief; /* not_before_ms holds unix ms here */
        bool existed;
    } * children; /* all children of all applied finishes, in order */
    size_t children_count, children_capacity;
    struct tide_refused {
        size_t index; /* into the finishes of this call */
        uint64_t id;
        tide_status status; /* TIDE_STALE: the claim is lost; else the status of its effect or
                     * children (their own TIDE_STALE becomes TIDE_SUPERSEDED) */
        char text[160];
    } * refused; /* one for each applied_out[i] = false */
    size_t refused_count, refused_capacity;
    struct tide_over_budget {
        uint64_t id;
        uint32_t kind;
        bool failed; /* false: put back with attempts >= attempts_max, to be split (E7.1) */
    } * over_budget; /* by reclaim */
    size_t over_budget_count, over_budget_capacity;
};
void tide_changes_init(struct tide_changes *changes, tide_mem *mem);
void tide_changes_clear(struct tide_changes *changes);
void tide_changes_done(struct tide_changes *changes);

/* Whether the job, or a part of it, would run again after this. */
bool tide_finish_goes_on(const struct tide_finish *finish);

struct tide_beat {
    uint64_t id;
    uint64_t token;
    uint64_t bytes_done;
    bool resume_set;
    tide_text resume;
};

/* Which jobs a command applies to.  All given conditions must hold. */
struct tide_job_filter {
    uint64_t id;        /* 0: any */
    uint32_t account;   /* UINT32_MAX: any */
    uint32_t kind;      /* 0: any */
    int state;          /* -1: any */
    uint64_t cycle;     /* 0: any */
    uint64_t before_id; /* paging: ids below; 0: from the newest */
    size_t count_max;   /* 0: 100 */
    /* For changes: so many must match, or nothing is changed (TIDE_STALE). */
    bool expects;
    uint64_t expected;
};
#define TIDE_JOB_FILTER_ANY ((struct tide_job_filter){0, UINT32_MAX, 0, -1, 0, 0, 0, false, 0})
/* TIDE_STALE: the filter expects another count.  Call it in the transaction of the first change. */
tide_status tide_ledger_jobs_expect(tide_ledger *ledger, const struct tide_job_filter *filter,
                                    tide_error *err);

/* Purge checks a bounded number of rows a call (E2.5), and the next call continues there:
 * true until all rows were checked, however few rows the last call deleted. */
bool tide_ledger_purge_more(const tide_ledger *ledger);

/* ---- streams, cycles, cursors (E5) ------------------------------------------ */

struct tide_stream_row {
    uint64_t id;
    uint32_t account;
    uint64_t ordinal;      /* cycles below it are finished and committed */
    uint64_t ordinal_next; /* of the next cycle to open */
    tide_text name;
    tide_text cursor;       /* opaque; empty at the beginning */
    tide_text floor;        /* E5.7; empty: none */
    tide_text start;        /* of its first cycle: where its coverage begins */
    uint64_t moved_unix_ms; /* when the cursor moved last; 0: never */
};

struct tide_cycle_row {
    uint64_t id;
    uint64_t stream;
    uint64_t ordinal;
    tide_text start; /* where it begins, opaque, for display */
    tide_text end;   /* the cursor's value once it is finished */
    uint64_t total, outstanding, failed, bad;
    uint64_t opened_unix_ms;
};

struct tide_work_left {
    uint64_t cycle; /* 0: none */
    uint32_t kind;
    tide_row_state state; /* never done */
    uint64_t jobs;
    uint64_t items; /* in their payloads */
    tide_text kind_name;
};

/* ---- bad items, intents, schedules, alerts ---------------------------------- */

typedef enum tide_bad_state {
    TIDE_BAD_BAD = 0,
    TIDE_BAD_GONE = 1,
    TIDE_BAD_OWED = 2,
    TIDE_BAD_ACCEPTED = 3, /* accepted by a user (E5.2) */
    TIDE_BAD_RETRYING = 4,
} tide_bad_state;

/* Names a row of bad items; also a place between two of them. */
struct tide_bad_key {
    uint32_t account, kind;
    tide_text item;
};

struct tide_bad_row {
    uint32_t account;
    uint32_t kind;
    tide_bad_state state;
    uint64_t cycle;
    uint64_t first_seen_unix_ms;
    uint64_t last_tried_unix_ms;
    uint32_t retries;
    tide_text account_name, kind_name, item, reason;
};

typedef enum tide_intent_state {
    TIDE_INTENT_MADE = 0, /* the call may have happened: look the tag up first */
    TIDE_INTENT_DONE = 1,
    TIDE_INTENT_FAILED = 2,
    TIDE_INTENT_UNKNOWN = 3, /* the connection was lost after sending */
} tide_intent_state;

struct tide_schedule_row {
    uint64_t id;
    uint32_t kind;
    uint64_t period_ms;
    uint64_t anchor_unix_ms;
    uint64_t slot_last; /* last slot that fired; 0: none */
    bool per_account;
    bool at_start;
    tide_text name, payload;
};

struct tide_alert_row {
    char condition[49];
    uint32_t account;
    int level; /* 1 warning, 2 critical */
    uint64_t since_unix_ms;
    uint64_t notified_unix_ms; /* 0: never */
    char text[401];
    char account_name[201];
};

/* ---- reading, for commands --------------------------------------------------- */

struct tide_job_row {
    uint64_t id, cycle, size_bytes, bytes_done, owner, token;
    uint64_t not_before_unix_ms, created_unix_ms, started_unix_ms, finished_unix_ms, beat_unix_ms;
    uint32_t account, kind, open_deps;
    uint16_t attempts, attempts_max;
    uint8_t priority, lane, level;
    bool preemptible, force;
    tide_row_state state;
    tide_status status;
    tide_text account_name, kind_name, dedupe_key, payload, resume, error, run_id;
};

struct tide_need {
    uint64_t id;
    tide_row_state state;
};

struct tide_job_count {
    uint32_t account, kind;
    tide_row_state state;
    uint64_t count;
    uint64_t blocked; /* pending with open_deps > 0 */
    uint64_t delayed; /* pending with a time in the future */
    tide_text account_name, kind_name;
    bool account_paused, account_halted, kind_paused;
};

struct tide_symptom {
    int level;        /* 0: healthy, reported too; 1: warning; 2: critical */
    char what[33];    /* "old_snapshot" */
    char text[301];   /* what was found, with figures */
    char advice[201]; /* what to do; empty when healthy */
};

/* ---- operations -------------------------------------------------------------- */

#define OP(ledger, name, params, args) tide_status tide_ledger_##name params;
#define OP_COMMON                      OP
#include "ledger/operations.h"

#endif
