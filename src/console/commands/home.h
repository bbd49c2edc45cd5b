/* home.h - the Search Console system of one home directory, for commands. */
#ifndef TIDE_CLI_CONSOLE_HOME_H
#define TIDE_CLI_CONSOLE_HOME_H

#include "cli/archive_here.h"
#include "console/console.h"

struct console_home {
    unsigned workers, batch_max; /* set before opening; 0: the defaults */
    struct archive_here here;    /* on a shared ledger: what this process may take */
    tide_engine *engine;
    tide_secrets *secrets;
    tide_console *console;
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    bool may_hand_over;              /* set before opening: another process may do the work */
    bool beside;                     /* another process works in this home and does the work */
    char beside_dir[CLI_PATH_BYTES]; /* the state of our engine meanwhile; removed at the end */
};

/* Opens the engine of this directory with the console system on it; not started.  If a
 * worker uses the directory, the ledger is shared and `may_hand_over` is set, our engine
 * takes no account: it only enqueues jobs and watches. */
tide_status console_home_open(struct cli *cli, struct console_home *home);
tide_status console_home_close(struct cli *cli, struct console_home *home); /* zeroed is fine */
/* Opens the file of a site read-only; safe while other processes run.  The caller closes it. */
tide_status console_home_store(struct cli *cli, const char *site, tide_console_store **store_out);

/* ---- the description of the system, and its commands ---- */

extern const struct tide_system tide_console_system;
extern const struct cli_command console_commands[]; /* table.c */
tide_status cli_console_sites(struct cli *cli);
tide_status cli_console_backfill(struct cli *cli);
tide_status cli_console_sync(struct cli *cli);
tide_status cli_console_status(struct cli *cli);
tide_status cli_console_report(struct cli *cli);
tide_status cli_console_remove(struct cli *cli);

#endif
