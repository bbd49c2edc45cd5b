/* account_change.h - adds or removes an account of any system, or a part of one: on an engine of our
 * own, or by a job of the engine that has the directory (E12.2).
 *
 * Every engine of this program has the kind TIDE_ACCOUNT_KIND, whichever systems are open on it. */
#ifndef TIDE_CLI_RUN_ACCOUNT_CHANGE_H
#define TIDE_CLI_RUN_ACCOUNT_CHANGE_H

#include "cli/run/engine.h"

#define TIDE_ACCOUNT_KIND "tidemark.account"

struct account_change {
    const struct tide_system *system;
    bool remove;
    struct tide_account_request request; /* to remove: a name, or only these subjects of it */
};

/* Defines the kind on an engine that is not started yet; all of `home` is borrowed until the engine
 * is closed. */
tide_status account_job_define(struct cli *cli, const struct tide_system_home *home);
/* Opens an engine that only makes the change: it is not started and has no systems.  On state.db the
 * directory has one engine; if another process runs it, only the sign-ins are opened.  Call
 * cli_engine_close() also after a failure. */
tide_status account_change_open(struct cli *cli, struct cli_engine *opened);
/* Makes the change, or has the other process make it and waits for that. */
tide_status account_change(struct cli *cli, struct cli_engine *opened,
                           const struct account_change *wanted);

#endif
