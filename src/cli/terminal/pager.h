/* pager.h - the user's pager, for output that is longer than the screen. */
#ifndef TIDE_CLI_PAGER_H
#define TIDE_CLI_PAGER_H

#include "cli/cli.h"

#include <fcntl.h>
#include <sys/types.h>

struct cli_pager {
    FILE *to;
    pid_t pid; /* 0: none runs */
};
/* Where to print cli->out: a pager if the command wants one (cli->paged), the text is longer than the
 * screen and standard output is a terminal; else standard output. */
FILE *cli_pager_open(struct cli *cli, struct cli_pager *pager);
/* Waits until the user leaves it. */
void cli_pager_close(struct cli_pager *pager);

#endif
