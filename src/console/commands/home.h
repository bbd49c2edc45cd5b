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
    bool may_hand_over;              /* set before opening: somebody else may do the work */
    bool beside;                     /* another process works here, and does it */
    char beside_dir[CLI_PATH_BYTES]; /* the state of our engine meanwhile; removed at the end */
};

/* Opens the engine of this directory with the console system on it; not started.  Where a
 * worker has the directory and the ledger is shared, what may be handed over is: our engine
 * then takes no account and only asks for work and watches. */
tide_status console_home_open(struct cli *cli, struct console_home *home);
tide_status console_home_close(struct cli *cli, struct console_home *home); /* zeroed is fine */
/* The file of a site, for reading beside anything.  The caller closes it. */
tide_status console_home_store(struct cli *cli, const char *site, tide_console_store **store_out);

#endif
