/* ask.h - asks an engine for one job and looks at how it ends: our engine, or that of the process
 * that has the directory (E12.2).
 *
 * For work that must not continue by itself after a crash: the job names the start of the engine
 * that was asked for it, and its handler does nothing in another one.
 *
 * A job with a key that another command has asked for is waited for first; then ours is enqueued. */
#ifndef TIDE_CLI_RUN_ASK_H
#define TIDE_CLI_RUN_ASK_H

#include "base/json.h"
#include "cli/cli.h"
#include "tidemark.h"

struct cli_job {
    const char *kind;
    const char *account; /* NULL: none */
    const char *dedupe;  /* "": none */
    const char *payload; /* "": none */
};
/* Enqueues a job in our engine, or with NULL in that of the process that has the directory.
 * *runs_out: that process answered. */
tide_status cli_enqueue(struct cli *cli, tide_engine *engine, const struct cli_job *job,
                        uint64_t *id_out, bool *runs_out);

struct cli_ask {
    struct cli *cli;
    tide_engine *engine; /* ours; NULL: another process's */
    char run[33];        /* the start of that engine */
    uint64_t pid;        /* of another process */
    bool gone;           /* that process ended before the job did */

    const char *kind;
    const char *email; /* the account; NULL: none */
    char dedupe[64];   /* "": none */
    char by[17];       /* marks our job among those with the same key */
    tide_buf payload;
    uint64_t job;
    bool ours; /* the job was seen, and is not another command's */
    uint64_t pinged_ms;
};

/* TIDE_NOT_FOUND: `engine` is NULL, and no other process answers. */
tide_status cli_ask_open(struct cli *cli, tide_engine *engine, struct cli_ask *ask);
void cli_ask_close(struct cli_ask *ask); /* a zeroed one is fine */
/* On a shared ledger: cancels jobs that a dead process has left, which would be taken for ours.  The
 * archive of the account is open here: no live process has any. */
tide_status cli_ask_clear(struct cli_ask *ask, const char *kind, const char *email);
/* Enqueues a job; takes `payload`, an object.  The texts are borrowed until it has ended. */
tide_status cli_ask_job(struct cli_ask *ask, const char *kind, const char *email,
                        const char *dedupe, tide_json *payload);
/* TIDE_OK: it is done.  TIDE_TIMEOUT: not yet.  TIDE_NOT_FOUND with `gone`: its engine has ended.
 * Else: how it failed, in cli->err. */
tide_status cli_ask_look(struct cli_ask *ask);
/* Between two jobs: TIDE_NOT_FOUND with `gone`: another process has ended.  Asks it once a second. */
tide_status cli_ask_is_there(struct cli_ask *ask);
/* Cancels the job; it then ends soon.  false: do not wait for that.  It is another command's, and ours was
 * not enqueued yet; or the engine is of this process and stops, too. */
bool cli_ask_cancel(struct cli_ask *ask);

/* Has another process do one short job, and waits for it.  If it was not done, it never will be: it
 * is canceled.  TIDE_STOPPED: that process ended before.  Takes `payload`; `email` may be NULL. */
tide_status cli_ask_there(struct cli *cli, const char *kind, const char *email, tide_json *payload);

/* Tries of a command that has to open the directory itself, or to ask the process that has it.
 * A process that starts or ends holds the directory for a while and does not answer. */
struct cli_tries {
    unsigned count;
    uint64_t until_ms;
};
/* Whether to try, or to try again after TIDE_STOPPED; waits a moment before each further try. */
bool cli_try(struct cli *cli, struct cli_tries *tries);
/* After the last try. */
tide_status cli_tries_over(struct cli *cli);

#endif
