/* names.h - which mail accounts a command means. */
#ifndef TIDE_CLI_MAIL_NAMES_H
#define TIDE_CLI_MAIL_NAMES_H

#include "cli/cli.h"

struct mail_names {
    tide_mem *mem;
    char (*email)[256];
    size_t count, capacity;
};
/* The accounts a command means: its arguments, or all there are.  From the ledger, which
 * is opened to be read.  mail_names_done() also after a failure. */
tide_status mail_names(struct cli *cli, struct mail_names *names_out);
/* The same with the names given; none: all there are. */
tide_status mail_names_of(struct cli *cli, const char *const *wanted, size_t count,
                          struct mail_names *names_out);
void mail_names_done(struct mail_names *names); /* a zeroed one is fine */

#endif
