/* account_check.h - what is looked at before a sign-in is kept (M16, M19a). */
#ifndef TIDE_CLI_ACCOUNT_CHECK_H
#define TIDE_CLI_ACCOUNT_CHECK_H

#include "cli/cli.h"

/* The flag --endpoint, if it was given: usage when it is no address, or not safe for a token. */
tide_status account_check_endpoint(struct cli *cli);
/* Asks the server whose mailbox the grant opens.  Refused: a server that does not answer, a token
 * that it does not take, another mailbox than `email`. */
tide_status account_check_mailbox(struct cli *cli, const char *email, const char *endpoint,
                                  tide_text grant);

#endif
