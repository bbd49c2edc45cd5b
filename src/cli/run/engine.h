/* engine.h - opens the engine of this home with its systems, for a command and for the worker. */
#ifndef TIDE_CLI_RUN_ENGINE_H
#define TIDE_CLI_RUN_ENGINE_H

#include "base/log.h"
#include "cli/alerts/mailer.h"
#include "cli/archive_here.h"

/* Zeroed, then the first part is set. */
struct cli_engine {
    struct archive_here here; /* archive_here_take(): the systems to open; on state.db all are */
    const void *options;      /* of the first of them (struct tide_system_home); NULL: defaults */
    uint32_t workers;         /* 0: the setting */
    tide_log *log;            /* NULL: the home's log file */
    const char *busy_hint;    /* if another engine has the directory; NULL: the usual one */
    bool beside;              /* on a shared ledger then work beside it, and take no account */

    tide_engine *engine;
    tide_secrets *secrets;
    struct alert_mailer mailer;
    struct tide_system_home home;   /* of the systems that are open */
    void *states[TIDE_SYSTEMS_MAX]; /* of here.taken[i]; NULL: not open */
    char archive_dir[CLI_PATH_BYTES], secrets_dir[CLI_PATH_BYTES];
    bool told_busy;                  /* the user knows that this process waits for others' work */
    char beside_dir[CLI_PATH_BYTES]; /* the state of an engine that works beside; "": it does not */
};

/* Opens engine, sign-ins and systems; starts nothing.  Call cli_engine_close() also after a
 * failure.  TIDE_BUSY: another engine has the directory. */
tide_status cli_engine_open(struct cli *cli, struct cli_engine *engine);
/* Whether it runs what another command asked for, and would have to begin again (struct tide_system);
 * the caller waits for it, and the user is told so once. */
bool cli_engine_is_busy(struct cli *cli, struct cli_engine *engine);
/* Waits until it does not, or the user interrupts. */
void cli_engine_settle(struct cli *cli, struct cli_engine *engine);
/* TIDE_TIMEOUT: a handler does not return and uses all of it, so nothing is freed, `engine`
 * neither.  A zeroed one is fine. */
tide_status cli_engine_close(struct cli *cli, struct cli_engine *engine);

#endif
