/* advice.h - what a condition means to a user, and what helps; for every command, mail and the page.  Pure.
 * Those of systems are theirs (struct tide_system). */
#ifndef TIDE_CLI_ADVICE_H
#define TIDE_CLI_ADVICE_H

#include <stddef.h>

struct cli_advice {
    const char *condition; /* NULL: any other */
    const char *means;
    const char *to_do;
    const char *command; /* %s is the account */
};

const struct cli_advice *cli_advice(const char *condition);
/* The command, with the account where it belongs; an alert of no account ("") needs none. */
void cli_advice_command(const struct cli_advice *advice, const char *account, char *out,
                        size_t out_bytes);

#endif
