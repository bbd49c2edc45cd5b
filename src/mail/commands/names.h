/* names.h - the mail accounts that a command works on. */
#ifndef TIDE_CLI_MAIL_NAMES_H
#define TIDE_CLI_MAIL_NAMES_H

#include "cli/cli.h"

struct mail_names {
    tide_mem *mem;
    char (*email)[256];
    size_t count, capacity;
};
/* The accounts of a command: its arguments, or all.  From the ledger, which is opened for
 * reading.  Call mail_names_done() also after a failure. */
tide_status mail_names(struct cli *cli, struct mail_names *names_out);
/* The same with given names; none: all accounts. */
tide_status mail_names_of(struct cli *cli, const char *const *wanted, size_t count,
                          struct mail_names *names_out);
void mail_names_done(struct mail_names *names); /* `names` may be zeroed */

#endif
