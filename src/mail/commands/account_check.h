/* account_check.h - the checks before a sign-in is stored (M16, M19a). */
#ifndef TIDE_CLI_ACCOUNT_CHECK_H
#define TIDE_CLI_ACCOUNT_CHECK_H

#include "cli/cli.h"

/* Checks the flag --endpoint, if given: it must be a URL and safe for a token; else exit code 2. */
tide_status account_check_endpoint(struct cli *cli);
/* Asks the server whose mailbox the grant opens.  Fails if the server does not answer or does not
 * accept the token, or if the mailbox is not that of `email`. */
tide_status account_check_mailbox(struct cli *cli, const char *email, const char *endpoint,
                                  tide_text grant);

#endif
