/* account_job.h - adds or removes an account of any system: on an engine of our own, or by a job of
 * the engine that has the directory (E12.2).
 *
 * Every engine of this program has the kind TIDE_ACCOUNT_KIND, whichever systems are open on it. */
#ifndef TIDE_CLI_ACCOUNT_JOB_H
#define TIDE_CLI_ACCOUNT_JOB_H

#include "cli/cli.h"

#define TIDE_ACCOUNT_KIND "tidemark.account"

struct account_change {
    const struct tide_system *system;
    bool remove;
    struct tide_account_request request; /* to remove an account: its name */
};

/* Defines the kind on an engine that is not started yet; all of `home` is borrowed until the engine
 * is closed. */
tide_status account_job_define(struct cli *cli, const struct tide_system_home *home);
/* Makes the change on our engine. */
tide_status account_change_here(const struct tide_system_home *home,
                                const struct account_change *change, tide_error *err);
/* Has the engine of another process make it, and waits for that.  If it was not made, it never will
 * be: the job is canceled.  TIDE_STOPPED: that engine ended before. */
tide_status account_change_there(struct cli *cli, const struct account_change *change);

#endif
