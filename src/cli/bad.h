/* bad.h - bad items for commands: `tidemark bad` shows those of every system, and each
 * system's own command its own. */
#ifndef TIDE_CLI_BAD_H
#define TIDE_CLI_BAD_H

#include "cli/cli.h"

/* Which items; NULL means any. */
struct cli_bad {
    const char *account;
    const char *kind;
    const char *prefix; /* of the kind's name: "mail." */
    const char *item;
    const char *state;
    bool full;      /* with a sentence on what can be done */
    uint64_t count; /* out: how many there were */
};

/* A table of them, and the field "items". */
tide_status cli_bad_show(struct cli *cli, struct cli_bad *bad);
/* Tries them again, or accepts them: in the engine that runs (*runs_out), else in the
 * ledger. */
tide_status cli_bad_change(struct cli *cli, struct cli_bad *bad, tide_bad_state to, bool *runs_out);

#endif
