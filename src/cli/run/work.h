/* work.h - runs the work of one command on an engine: its own, or that of the process that has
 * the directory.
 *
 * A command describes its work (struct cli_work) and calls cli_work_run(), which opens the engine
 * or hands the work over, watches it and shows its progress.  Then each account is judged and a
 * summary printed (outcome.h), in the same way in both cases (E12.2).  cli_sync() is a command with
 * nothing of its own.
 *
 *   open ----> begin ----> run ----------> finish      our engine
 *    | busy      ^
 *    v           | that process ended before the work was done
 *   hand over -> watch -----------------> finish       another process's
 *
 * On a shared ledger it is one process of the fleet: it does the work of accounts that no other
 * process has leased and whose archive is here; for the others it enqueues the work and watches
 * the ledger.
 *
 * Invariants:
 *   RUN1  it works only for the named accounts, and ends when each of them is either finished or
 *         cannot continue without the user.
 *   RUN2  no work is begun twice: requests have a dedupe key, and taking over from an engine that
 *         ended uses the same ones.
 *   RUN3  the first SIGINT or SIGTERM stops our engine within workers.stop_grace; a watched one
 *         continues.
 *   RUN4  an account that cannot begin does not keep the others from it.
 */
#ifndef TIDE_CLI_RUN_WORK_H
#define TIDE_CLI_RUN_WORK_H

#include "cli/run/display.h"
#include "cli/run/engine.h"

/* An account that the command works for. */
struct cli_watched {
    char name[256];   /* set by the command */
    tide_error error; /* why it could not begin, or that it was removed; TIDE_OK: neither */
    bool elsewhere;   /* on a shared ledger: another process has the account or its archive */

    /* The row of the account. */
    uint32_t account;
    bool paused, halted;
    char halt_reason[401];
    uint64_t owner;   /* on a shared ledger: the member that leases it; 0: none */
    char archive[65]; /* the id of its archive; "": none yet */
    char holder[65];  /* the name of that member, possibly this process; "" */

    /* The engine's snapshot. */
    uint64_t jobs;                    /* in its window */
    uint64_t active;                  /* of them, those that are neither delayed nor blocked */
    bool signed_out;                  /* it waits for a sign-in */
    bool stopped;                     /* paused or halted, by a user or by the engine */
    char failure[300];                /* the last failure, while it lasts; "" */
    uint64_t next_try_ms;             /* unix time; 0: it is not waiting */
    uint64_t failed, bad;             /* since that engine started; on a shared ledger: ever */
    uint64_t failed_first, bad_first; /* when the watch began */

    /* Set by look(), all but `settled` only if it is a full one. */
    bool settled;               /* no work is left except delayed work */
    uint64_t jobs_left;         /* pending and running */
    uint64_t jobs_failed;       /* or canceled */
    uint64_t jobs_failed_first; /* when the watch began */
    uint64_t items_bad;

    struct cli_meter meter;
    struct cli_pace pace;
};

/* A job that begins the work of an account. */
struct cli_request {
    const char *kind;
    char payload[400]; /* a JSON object; "": none */
    char dedupe[400];
};

/* The words of a system in reasons and remedies. */
struct cli_words {
    const char *stored;     /* "stored mail stays" */
    const char *items_bad;  /* "some messages could not be fetched" */
    const char *items_list; /* "`tidemark mail bad` lists the messages." */
};

struct cli_ended;

struct cli_work {
    /* ---- the description; what is not marked "required" may be zero ---- */

    struct cli *cli;                  /* required */
    const struct tide_system *system; /* required */
    /* Whose accounts these are, if the jobs of `system` run on those of another one; NULL: its own. */
    const struct tide_system *accounts_of;
    /* An account whose jobs the work needs as well: they run, and are not reported.  NULL: none. */
    const char *also;
    const void *options;               /* of the system, if the engine is ours */
    uint32_t workers;                  /* 0: the setting */
    const struct cli_columns *columns; /* NULL: counts jobs */
    const struct cli_words *words;     /* NULL: those that fit any system */
    uint64_t deadline_ms;              /* 0: none */
    bool settles;     /* an account is finished when it is `settled`, whatever other jobs it has */
    const char *kind; /* without request() and look(): of the jobs; NULL: "NAME.sync" begins the
                         work, and all kinds of the system belong to it */
    void *arg;        /* of the functions */

    /* The n-th job that begins the work of an account; false: there are no more.  NULL: one, without
     * a payload. */
    bool (*request)(void *arg, size_t account, size_t nth, struct cli_request *request_out);
    /* Our engine: begins the work of an account.  NULL: enqueues its requests. */
    tide_status (*begin)(void *arg, size_t account, void *state, tide_error *err);
    /* Another engine: an error refuses to hand over to that process.  NULL: never. */
    tide_status (*hand_over)(void *arg, uint64_t pid);
    /* Reads how far an account is, from ledger, files and snapshot, of any engine: fills in
     * accounts[] and lives[].  Errors are set in cli->err.  NULL: it is settled when no job is
     * left. */
    tide_status (*look)(void *arg, size_t account, const json_t *snapshot, bool full);
    /* Our engine, several times a second and before it begins: an error, or *enough_out, ends the
     * run.  NULL: nothing ends it early. */
    tide_status (*check)(void *arg, void *state, bool *enough_out);
    /* Our engine: an account is finished.  Begins more for it and returns true, or false. */
    bool (*more)(void *arg, size_t account, void *state);
    /* Our engine: what is left to do when no job is. */
    tide_status (*last)(void *arg, void *state);
    /* The summary of an account: changes the judgement; begins its line, "NAME: 3 new", which the
     * outcome ends; prints more lines and adds fields to its JSON.  NULL: nothing to change or to
     * add, and a line with the name. */
    void (*judge)(void *arg, size_t account, struct cli_ended *ended);
    void (*line)(void *arg, size_t account);
    void (*details)(void *arg, size_t account, tide_json *json);

    /* ---- the run; cli_work_accounts() makes these, the caller sets the names ---- */

    struct cli_watched *accounts;
    struct cli_live *lives;
    size_t count;
    bool handed_over; /* another process did some of it */
    uint64_t pid;     /* of the engine in this directory that is watched; 0: none */
    bool enough;      /* check() ended it */
    bool looked;

    /* ---- inside ---- */
    struct cli_engine *opened; /* without an engine: another process has it */
    struct cli_display display;
    bool stopping; /* our engine was told to */
    bool gone;     /* the engine that was watched has ended */
    bool soon;     /* the next tick looks at everything */
    uint64_t sampled_ms, looked_ms;
    tide_json *asked;     /* gets the ids of jobs that are enqueued; NULL: not wanted */
    uint64_t unserved_ms; /* since when no process does work elsewhere; 0: one does */
};

tide_status cli_work_accounts(struct cli_work *work, size_t count);
/* The accounts that the command line names, or all of the system. */
tide_status cli_work_names(struct cli_work *work);
/* Does the work; the ledger is open for reading.  TIDE_OK also if accounts are not finished. */
tide_status cli_work_run(struct cli_work *work);
/* Asks the process that has the directory to do the work, and ends: its text and JSON say which jobs
 * begin it.  TIDE_NOT_FOUND: no process runs there. */
tide_status cli_work_ask(struct cli_work *work);
/* Closes the engine and frees; after the summary.  A zeroed one is fine. */
tide_status cli_work_done(struct cli_work *work);

/* The progress of one account in a command that asks for its jobs one by one (ask.h). */
struct cli_shown {
    struct cli_live live; /* set before a tick: done, total, bytes, more */
    struct cli_display display;
    struct cli_watched watched;
    uint64_t sampled_ms;
};
void cli_shown_open(struct cli *cli, const struct tide_system *system, const struct cli_columns *of,
                    const char *account, struct cli_shown *shown);
/* Shows it when due, with quota and rate; `last`: now.  `engine`: ours; NULL: another process's. */
void cli_shown_tick(struct cli_shown *shown, tide_engine *engine, bool last);

/* The system that the accounts belong to. */
const struct tide_system *cli_work_owner(const struct cli_work *work);
const struct cli_words *cli_work_words(const struct cli_work *work);
/* Reads --timeout; without it, *deadline_ms stays. */
tide_status cli_work_deadline(struct cli *cli, uint64_t *deadline_ms);
/* Whether `deadline_ms` has passed. */
bool cli_work_is_late(const struct cli_work *work);
/* Whether it cannot continue without the user: halted, paused, signed out. */
bool cli_watched_is_stuck(const struct cli_watched *watched);
/* Whether its account was removed; then watched->error says so.  Jobs of an account that is removed
 * end without doing anything, canceled or not. */
bool cli_watched_removed(struct cli_work *work, struct cli_watched *watched);
/* Whether a job failed or was canceled since the watch began. */
bool cli_watched_failed(const struct cli_watched *watched);
/* What look() does without one: counts the jobs that are left. */
tide_status cli_watched_look(struct cli_work *work, size_t account, bool full);
/* Reads how many jobs of a kind an account has left, and how many failed.  NULL: of all kinds of
 * the system. */
tide_status cli_watched_jobs(struct cli_work *work, size_t account, const char *kind);

#endif
