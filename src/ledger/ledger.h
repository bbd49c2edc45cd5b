/* ledger.h - the durable table of jobs, cycles and cursors (E1).
 *
 * This is the interface between the engine and a database.  Two stores implement
 * it: SQLite row by row (sqlite/), PostgreSQL array by array (postgres/).  One
 * conformance suite (tests/ledger/) runs against both, through nothing but this
 * header.
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
 *   G1  a job row is pending, running, done, failed or canceled; it has a token
 *       and an owner exactly while running.
 *   G2  job.open_deps = number of its dependencies that are not done.
 *   G3  cycle.outstanding = its jobs that are pending or running;
 *       cycle.failed = its jobs that are failed or canceled.
 *   G4  stream.ordinal never decreases; every cycle below it has outstanding = 0
 *       and failed = 0.
 *   G5  no two waiting jobs share (account, kind, dedupe key); where the kind's
 *       scope says so, no two waiting or running ones.
 *   G6  a row whose token does not match is never changed (E1.8).
 *   G7  done rows never leave that state, except by purge (E1.7).
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
/* Copies the log into the main file on a connection of its own (E2.5), so that
 * the writer never does it.  May run on another thread while the writer works. */
tide_status tide_ledger_checkpoint(tide_ledger *ledger, uint32_t *pages_left_out, tide_error *err);
/* A consistent copy of a live ledger into a new file (`tidemark backup`). */
tide_status tide_ledger_backup(tide_ledger *ledger, const char *path, tide_error *err);
/* G1..G7 and the file itself.  `problems` gets a line each. */
tide_status tide_ledger_check(tide_ledger *ledger, tide_buf *problems, tide_error *err);

/* ---- names ---------------------------------------------------------------- */

/* Small stable numbers for names; a new name gets a new number. */
tide_status tide_ledger_kind(tide_tx *tx, const char *name, tide_dedupe_scope scope,
                             uint32_t *kind_out, tide_error *err);
tide_status tide_ledger_account(tide_tx *tx, const char *name, const char *provider,
                                uint32_t *account_out, tide_error *err);

/* Whether jobs of the kind can be split.  Reclaim then puts a job that is over its
 * budget back instead of failing it, and lists it in tide_changes.over_budget. */
tide_status tide_ledger_kind_splits(tide_tx *tx, uint32_t kind, bool splits, tide_error *err);

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
tide_status tide_ledger_accounts(tide_ledger *ledger,
                                 bool (*visit)(const struct tide_account_row *row, void *arg),
                                 void *arg, tide_error *err);
tide_status tide_ledger_account_halt(tide_tx *tx, uint32_t account, bool halted, const char *reason,
                                     uint64_t now_unix_ms, tide_error *err);
tide_status tide_ledger_account_pause(tide_tx *tx, uint32_t account, bool paused, tide_error *err);
tide_status tide_ledger_governor_save(tide_tx *tx, uint32_t account, tide_text saved,
                                      tide_error *err);
/* The archive and the secret that a process must have to take the account; NULL keeps the
 * stored value. */
tide_status tide_ledger_account_place(tide_tx *tx, uint32_t account, const char *archive,
                                      const char *secret, tide_error *err);

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
/* In a transaction of its own.  From then on this ledger's transactions belong to the
 * member.  TIDE_EXISTS: the owner number is taken.  TIDE_NEWER: the tables were upgraded
 * meanwhile, and this program can no longer use them. */
tide_status tide_ledger_member_join(tide_ledger *ledger, const struct tide_member *member,
                                    uint32_t lease_ms, uint64_t now_unix_ms, tide_error *err);
/* Renews the lease. */
tide_status tide_ledger_member_beat(tide_tx *tx, uint32_t lease_ms, uint64_t now_unix_ms,
                                    tide_error *err);
/* A clean end: its accounts are free at once.  Jobs that still run with its owner number
 * are put back by reclaim. */
tide_status tide_ledger_member_leave(tide_tx *tx, uint64_t now_unix_ms, tide_error *err);
tide_status tide_ledger_members(tide_ledger *ledger,
                                bool (*visit)(const struct tide_member *member, void *arg),
                                void *arg, tide_error *err);

/* Takes the accounts that no other living member holds; taken_out[i]: `owner` has it now. */
tide_status tide_ledger_accounts_take(tide_tx *tx, const uint32_t *accounts, size_t count,
                                      uint64_t owner, bool *taken_out, uint64_t now_unix_ms,
                                      tide_error *err);
tide_status tide_ledger_accounts_release(tide_tx *tx, const uint32_t *accounts, size_t count,
                                         uint64_t owner, tide_error *err);

/* A share of a limit that many accounts have in common (E4.1), for `lease_ms`.  The
 * shares of all members never exceed units_max: *units_out is at most an equal part of
 * it, less while others still hold more.  Units that a member gives up go to others only
 * `window_ms` later: it may have just spent them.  units_wanted = 0 gives the share back. */
tide_status tide_ledger_grant(tide_tx *tx, const char *limit, uint64_t owner, uint64_t units_max,
                              uint64_t units_wanted, uint32_t window_ms, uint32_t lease_ms,
                              uint64_t now_unix_ms, uint64_t *units_out, tide_error *err);

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

/* One code path for one job and for many (lesson 5).  A dependency that is already
 * done does not count; one that does not exist is TIDE_NOT_FOUND.  On a failure
 * nothing of this call is stored. */
tide_status tide_ledger_enqueue(tide_tx *tx, const struct tide_job_new *jobs, size_t count,
                                uint64_t now_unix_ms, struct tide_enqueued *enqueued_out,
                                tide_error *err);

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
void tide_job_body_free(tide_mem *mem, struct tide_job_body *body);

/* Gives each pending job to `owner` with a token of its own, from `first_token`
 * upwards (E1.3, E1.8).  bodies_out[i] is NULL where the job was not pending
 * (canceled, purged, paused, claimed by another process): the caller drops it. */
tide_status tide_ledger_claim(tide_tx *tx, const uint64_t *ids, size_t count, uint64_t owner,
                              uint64_t first_token, uint64_t now_unix_ms, tide_mem *mem,
                              struct tide_job_body **bodies_out, tide_error *err);

/* Claims ready jobs of no account ("free jobs"), enqueued by any process: those that are due,
 * of these kinds, not paused, in order, at most counts[lane] of each lane (E1.3).
 * Other processes do the same at the same time and get other jobs (SKIP LOCKED).
 * Interactive jobs come first; a job that another process put back may come later than
 * its place in the order, even at the next call.  Tokens are from `first_token` on, at most
 * as many as were asked for; jobs of one call may share one: id and token name a claim.
 * *due_unix_ms_out: when to call again at the latest, because the next delayed job may be
 * due then; UINT64_MAX: no job is delayed.  Only set when fewer jobs came than were asked
 * for, else 0. */
tide_status tide_ledger_claim_free(tide_tx *tx, const uint32_t *kinds, size_t kinds_count,
                                   const uint32_t counts[2], uint64_t owner, uint64_t first_token,
                                   uint64_t now_unix_ms, tide_mem *mem,
                                   struct tide_brief *briefs_out, struct tide_job_body **bodies_out,
                                   size_t *count_out, uint64_t *due_unix_ms_out, tide_error *err);

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

/* Writes the ends of running jobs.  A finish whose token no longer matches
 * applies nothing at all (applied_out[i] = false): a fenced process changes nothing
 * (E1.8, lesson 3).  One refused finish does not drop the rest (lesson 9).  If a cancel of
 * the job was requested, a finish after which it would run again is refused with
 * TIDE_CANCELED (E7.3). */
tide_status tide_ledger_finish(tide_tx *tx, const struct tide_finish *finishes, size_t count,
                               uint64_t now_unix_ms, bool *applied_out,
                               struct tide_changes *changes, tide_error *err);

/* Ready pending jobs of an account (open_deps = 0, account and kind not paused)
 * that come after (after_priority, after_id) in order; 255 and 0: from the beginning.
 * not_before_ms holds unix ms.  Rows in order, at most `count_max`. */
tide_status tide_ledger_refill(tide_ledger *ledger, uint32_t account, uint8_t after_priority,
                               uint64_t after_id, struct tide_brief *briefs_out, size_t count_max,
                               size_t *count_out, tide_error *err);
/* Accounts (0 included) that have pending jobs with open_deps = 0. */
tide_status tide_ledger_accounts_with_work(tide_ledger *ledger, uint32_t *accounts_out,
                                           size_t accounts_max, size_t *count_out, tide_error *err);
/* Which of these accounts have such jobs of one of these kinds. */
tide_status tide_ledger_accounts_have(tide_ledger *ledger, const uint32_t *accounts, size_t count,
                                      const uint32_t *kinds, size_t kinds_count, bool *have_out,
                                      tide_error *err);
/* One job as a brief; TIDE_NOT_FOUND when it is finished or does not exist. */
tide_status tide_ledger_brief(tide_ledger *ledger, uint64_t id, struct tide_brief *brief_out,
                              tide_error *err);

/* Declares members dead whose lease expired, and frees what they held.  Running rows of
 * every owner except `owner` and the living members go back to pending and cost an attempt
 * (E1.7, lesson 4); those over their budget fail, or are listed in `over_budget` for a
 * forced split when their kind can be split (E7.1); those with a requested cancel are
 * canceled.  In slices of `count_max`; *count_out < count_max means all done. */
tide_status tide_ledger_reclaim(tide_tx *tx, uint64_t owner, size_t count_max, uint64_t now_unix_ms,
                                size_t *count_out, struct tide_changes *changes, tide_error *err);

/* Heartbeats and resume data of running jobs, fenced.  applied_out as in finish. */
struct tide_beat {
    uint64_t id;
    uint64_t token;
    uint64_t bytes_done;
    bool resume_set;
    tide_text resume;
};
tide_status tide_ledger_beat(tide_tx *tx, const struct tide_beat *beats, size_t count,
                             uint64_t now_unix_ms, bool *applied_out, tide_error *err);

/* Which jobs a command applies to.  All given conditions must hold. */
struct tide_job_filter {
    uint64_t id;        /* 0: any */
    uint32_t account;   /* UINT32_MAX: any */
    uint32_t kind;      /* 0: any */
    int state;          /* -1: any */
    uint64_t cycle;     /* 0: any */
    uint64_t before_id; /* paging: ids below; 0: from the newest */
    size_t count_max;   /* 0: 100 */
};
#define TIDE_JOB_FILTER_ANY ((struct tide_job_filter){0, UINT32_MAX, 0, -1, 0, 0, 0})

/* Retry: failed and canceled jobs become pending with a fresh budget; pending ones lose
 * their not-before time.  Cancel: pending jobs become canceled; running ones are listed
 * in `running_out` (the engine that runs them cancels them).  In slices like reclaim. */
tide_status tide_ledger_retry(tide_tx *tx, const struct tide_job_filter *filter,
                              uint64_t now_unix_ms, size_t *count_out, struct tide_changes *changes,
                              tide_error *err);
tide_status tide_ledger_cancel(tide_tx *tx, const struct tide_job_filter *filter,
                               uint64_t now_unix_ms, size_t *count_out, uint64_t *running_out,
                               size_t running_max, size_t *running_count_out,
                               struct tide_changes *changes, tide_error *err);
/* A user accepts what failed: failed and canceled jobs become done, so that their
 * cycle can finish and the jobs that wait for them can start (E5.2).  In slices. */
tide_status tide_ledger_accept(tide_tx *tx, const struct tide_job_filter *filter,
                               uint64_t now_unix_ms, size_t *count_out,
                               struct tide_changes *changes, tide_error *err);
/* Running jobs of `owner` for which any process called tide_ledger_cancel(): the ledger
 * keeps the request until the job ends. */
tide_status tide_ledger_cancels(tide_ledger *ledger, uint64_t owner, uint64_t *ids_out,
                                size_t ids_max, size_t *count_out, tide_error *err);
tide_status tide_ledger_kind_pause(tide_tx *tx, uint32_t kind, bool paused, tide_error *err);

/* An enqueue that may be repeated (the caller lost the answer): its ids are kept under a
 * name that the caller chose, for as long as finished jobs are kept.  get: TIDE_NOT_FOUND
 * for a new name.  put: TIDE_EXISTS when another transaction was first; get it again. */
tide_status tide_ledger_batch_get(tide_ledger *ledger, tide_text name, uint64_t *ids_out,
                                  size_t ids_max, size_t *count_out, tide_error *err);
tide_status tide_ledger_batch_put(tide_tx *tx, tide_text name, const uint64_t *ids, size_t count,
                                  uint64_t now_unix_ms, tide_error *err);

/* Deletes finished rows older than the time, never those of an unfinished cycle
 * nor those that an unfinished job waits for (E1.2).  At most `count_max`. */
tide_status tide_ledger_purge(tide_tx *tx, uint64_t finished_before_unix_ms, size_t count_max,
                              size_t *count_out, tide_error *err);
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
/* Finds or creates it.  Texts in row_out are borrowed until the next call. */
tide_status tide_ledger_stream(tide_tx *tx, uint32_t account, const char *name, tide_text floor,
                               struct tide_stream_row *row_out, tide_error *err);
tide_status tide_ledger_streams(tide_ledger *ledger,
                                bool (*visit)(const struct tide_stream_row *row, void *arg),
                                void *arg, tide_error *err);

struct tide_cycle_row {
    uint64_t id;
    uint64_t stream;
    uint64_t ordinal;
    tide_text start; /* where it begins, opaque, for display */
    tide_text end;   /* the cursor's value once it is finished */
    uint64_t total, outstanding, failed, bad;
    uint64_t opened_unix_ms;
};
/* The next cycle of the stream, with no jobs yet.  Its jobs are enqueued in the
 * same transaction; a cycle without any is finished at once. */
tide_status tide_ledger_cycle(tide_tx *tx, uint64_t stream, tide_text start, tide_text end,
                              uint64_t now_unix_ms, struct tide_cycle_row *row_out,
                              tide_error *err);
/* Cycles at or beyond the stream's cursor, by ordinal. */
tide_status tide_ledger_cycles(tide_ledger *ledger, uint64_t stream,
                               bool (*visit)(const struct tide_cycle_row *row, void *arg),
                               void *arg, tide_error *err);
/* Jobs of an account that are not done, by cycle, kind and state: what is left of each
 * span of time.  Blocked and delayed jobs count as pending. */
struct tide_work_left {
    uint64_t cycle; /* 0: none */
    uint32_t kind;
    tide_row_state state; /* never done */
    uint64_t jobs;
    uint64_t items; /* in their payloads */
    tide_text kind_name;
};
tide_status tide_ledger_work_left(tide_ledger *ledger, uint32_t account,
                                  bool (*visit)(const struct tide_work_left *row, void *arg),
                                  void *arg, tide_error *err);
/* Moves the cursor to `to`, whose value is the end of cycle to-1; cursor_out (may
 * be NULL) is replaced by it.  TIDE_STALE if it no longer stands at `from`; TIDE_BUG
 * if a cycle in between is unfinished: the second half of the frontier's assertion
 * (G4). */
tide_status tide_ledger_cursor_move(tide_tx *tx, uint64_t stream, uint64_t from, uint64_t to,
                                    uint64_t now_unix_ms, tide_buf *cursor_out, tide_error *err);
/* Moves the cursor over every finished cycle it can reach, as counted in the ledger: for
 * streams whose jobs several processes finish.  *ordinal_out: where it stands now. */
tide_status tide_ledger_cursor_advance(tide_tx *tx, uint64_t stream, uint64_t now_unix_ms,
                                       uint64_t *ordinal_out, tide_buf *cursor_out,
                                       tide_error *err);

/* ---- bad items, intents, schedules, alerts ---------------------------------- */

typedef enum tide_bad_state {
    TIDE_BAD_BAD = 0,
    TIDE_BAD_GONE = 1,
    TIDE_BAD_OWED = 2,
    TIDE_BAD_ACCEPTED = 3, /* accepted by a user (E5.2) */
    TIDE_BAD_RETRYING = 4,
} tide_bad_state;
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
tide_status tide_ledger_bad_list(tide_ledger *ledger, uint32_t account, uint32_t kind,
                                 bool (*visit)(const struct tide_bad_row *row, void *arg),
                                 void *arg, tide_error *err);
tide_status tide_ledger_bad_state(tide_tx *tx, uint32_t account, uint32_t kind, tide_text item,
                                  tide_bad_state state, uint64_t now_unix_ms, tide_error *err);

/* E1.9: a unique tag is durable before the call, its outcome after it. */
typedef enum tide_intent_state {
    TIDE_INTENT_MADE = 0, /* the call may have happened: look the tag up first */
    TIDE_INTENT_DONE = 1,
    TIDE_INTENT_FAILED = 2,
    TIDE_INTENT_UNKNOWN = 3, /* the connection was lost after sending */
} tide_intent_state;
tide_status tide_ledger_intent(tide_tx *tx, uint64_t job, tide_text tag, tide_text detail,
                               uint64_t now_unix_ms, tide_intent_state *state_out,
                               tide_buf *outcome_out,
                               tide_error *err); /* creates it, or returns the existing one */
/* The same without creating one: TIDE_NOT_FOUND tells a new tag from one that
 * was written before a crash. */
tide_status tide_ledger_intent_find(tide_ledger *ledger, tide_text tag,
                                    tide_intent_state *state_out, tide_buf *outcome_out,
                                    tide_error *err);
tide_status tide_ledger_intent_end(tide_tx *tx, tide_text tag, tide_intent_state state,
                                   tide_text outcome, uint64_t now_unix_ms, tide_error *err);

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
tide_status tide_ledger_schedule(tide_tx *tx, const struct tide_schedule_row *row, uint64_t *id_out,
                                 tide_error *err); /* adds or changes by name; keeps slot_last */
tide_status tide_ledger_schedules(tide_ledger *ledger,
                                  bool (*visit)(const struct tide_schedule_row *row, void *arg),
                                  void *arg, tide_error *err);
/* The unique (schedule, slot) decides (lesson 10): TIDE_EXISTS when it fired. */
tide_status tide_ledger_schedule_fire(tide_tx *tx, uint64_t schedule, uint64_t slot,
                                      uint64_t now_unix_ms, tide_error *err);

struct tide_alert_row {
    char condition[49];
    uint32_t account;
    int level; /* 1 warning, 2 critical */
    uint64_t since_unix_ms;
    uint64_t notified_unix_ms; /* 0: never */
    char text[401];
    char account_name[201];
};
/* level 0 clears it. */
tide_status tide_ledger_alert(tide_tx *tx, const char *condition, uint32_t account, int level,
                              const char *text, uint64_t now_unix_ms, tide_error *err);
/* Records that a notification was sent; kept while the alert lasts (E6.4). */
tide_status tide_ledger_alert_notified(tide_tx *tx, const char *condition, uint32_t account,
                                       uint64_t now_unix_ms, tide_error *err);
tide_status tide_ledger_alerts(tide_ledger *ledger,
                               bool (*visit)(const struct tide_alert_row *row, void *arg),
                               void *arg, tide_error *err);

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
/* Newest first.  Texts are borrowed during the call.  `visit` returns false to stop. */
tide_status tide_ledger_jobs(tide_ledger *ledger, const struct tide_job_filter *filter,
                             bool (*visit)(const struct tide_job_row *row, void *arg), void *arg,
                             tide_error *err);
/* What the job waits for: unfinished, failed and canceled dependencies, at most
 * `count_max` ids with their states. */
struct tide_need {
    uint64_t id;
    tide_row_state state;
};
tide_status tide_ledger_needs(tide_ledger *ledger, uint64_t job, struct tide_need *needs_out,
                              size_t count_max, size_t *count_out, tide_error *err);
struct tide_job_count {
    uint32_t account, kind;
    tide_row_state state;
    uint64_t count;
    uint64_t blocked; /* pending with open_deps > 0 */
    uint64_t delayed; /* pending with a time in the future */
    tide_text account_name, kind_name;
    bool account_paused, account_halted, kind_paused;
};
tide_status tide_ledger_counts(tide_ledger *ledger, uint64_t now_unix_ms,
                               bool (*visit)(const struct tide_job_count *row, void *arg),
                               void *arg, tide_error *err);
/* The number of a kind or account by name; TIDE_NOT_FOUND. */
tide_status tide_ledger_kind_find(tide_ledger *ledger, const char *name, uint32_t *kind_out,
                                  bool *paused_out, tide_error *err);
tide_status tide_ledger_account_find(tide_ledger *ledger, const char *name, uint32_t *account_out,
                                     tide_error *err);
/* The size of what is stored for an account besides its jobs: streams, unfinished cycles, bad
 * items, its governor and its notes, as bytes of text plus 8 for each number (E6.4), and whether
 * there are records of its items.  Reads all of it. */
tide_status tide_ledger_metadata(tide_ledger *ledger, uint32_t account, uint64_t *bytes_out,
                                 bool *bad_out, tide_error *err);
/* Small facts: clean stop, last run, last-sent times.  TIDE_NOT_FOUND. */
tide_status tide_ledger_note(tide_tx *tx, const char *key, tide_text value, tide_error *err);
tide_status tide_ledger_note_get(tide_ledger *ledger, const char *key, tide_buf *value_out,
                                 tide_error *err);

/* Diagnosis of the running ledger (`jobs doctor`): old snapshots, bloat, dead members that
 * hold something, jobs that no living member can run, stalled queues, partitions that are
 * missing or overdue. */
struct tide_symptom {
    int level;        /* 0: healthy, reported too; 1: warning; 2: critical */
    char what[33];    /* "old_snapshot" */
    char text[301];   /* what was found, with figures */
    char advice[201]; /* what to do; empty when healthy */
};
tide_status tide_ledger_doctor(tide_ledger *ledger, uint64_t now_unix_ms,
                               bool (*visit)(const struct tide_symptom *symptom, void *arg),
                               void *arg, tide_error *err);

#endif
