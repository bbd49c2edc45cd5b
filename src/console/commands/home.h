/* home.h - the Search Console system for the program: its description, its commands, its files. */
#ifndef TIDE_CLI_CONSOLE_HOME_H
#define TIDE_CLI_CONSOLE_HOME_H

#include "cli/cli.h"
#include "console/console.h"

/* Opens the file of a site read-only; safe while other processes run.  The caller closes it. */
tide_status console_home_store(struct cli *cli, const char *site, tide_console_store **store_out);

/* ---- the description of the system, and its commands ---- */

extern const struct tide_system tide_console_system;
extern const struct cli_command console_commands[]; /* table.c */
tide_status cli_console_sites(struct cli *cli);
tide_status cli_console_backfill(struct cli *cli);
tide_status cli_console_sync(struct cli *cli);
tide_status cli_console_sync_check(struct cli *cli); /* struct tide_action.check */
tide_status cli_console_status(struct cli *cli);
tide_status cli_console_report(struct cli *cli);
tide_status cli_console_remove(struct cli *cli);

#endif
