/* bad.h - bad items for commands: `tidemark bad` shows those of every system, `tidemark mail bad`
 * those of mail. */
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
    bool full;         /* with a sentence on what can be done */
    size_t limit;      /* of a list; 0: CLI_LIST_MAX */
    const char *after; /* of a list: "next" of the page before; NULL: the first page */
    bool expects;      /* of a change: so many must match, or nothing is changed */
    uint64_t expected;
    uint64_t count; /* out: how many there were, or are changed */
};

/* Prints a table of them and sets the fields "items", "next" and "total". */
tide_status cli_bad_show(struct cli *cli, struct cli_bad *bad);
/* Retries or accepts them: through the running engine (*runs_out), else in the
 * ledger. */
tide_status cli_bad_change(struct cli *cli, struct cli_bad *bad, tide_bad_state to, bool *runs_out);

#endif
