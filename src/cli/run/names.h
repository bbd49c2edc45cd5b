/* names.h - the accounts of a system that a command works on. */
#ifndef TIDE_CLI_RUN_NAMES_H
#define TIDE_CLI_RUN_NAMES_H

#include "cli/cli.h"

struct cli_names {
    tide_mem *mem;
    char (*list)[256];
    size_t count, capacity;
    bool full; /* no memory for all of them */
};
/* The accounts of these names; none: all accounts of the system.  From the ledger, which is opened
 * for reading.  Call cli_names_done() also after a failure. */
tide_status cli_names(struct cli *cli, const struct tide_system *system, const char *const *wanted,
                      size_t count, struct cli_names *names_out);
/* For a command that runs later: the accounts that it names exist, and if it works on one, it is clear
 * on which.  A system without any account is fine: they may be added until then. */
tide_status cli_names_later(struct cli *cli, const struct tide_system *system,
                            const char *const *wanted, size_t count, bool one);
void cli_names_done(struct cli_names *names); /* `names` may be zeroed */

#endif
