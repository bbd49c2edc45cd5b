/* work.h - work of the assistant that a command begins and waits for (cli/run/work.h): its jobs run on the
 * Gmail accounts of its users, and their questions on the chat account. */
#ifndef TIDE_ASSISTANT_COMMANDS_WORK_H
#define TIDE_ASSISTANT_COMMANDS_WORK_H

#include "assistant/account/account.h"
#include "assistant/commands/home.h"
#include "cli/run/outcome.h"

struct assistant_work {
    struct cli *cli;
    struct cli_work work;
    const char *kind;
    char dedupe[sizeof((struct cli_request *)0)->dedupe];
    char payload[sizeof((struct cli_request *)0)->payload];
    struct tide_assistant_account chat; /* whose jobs run as well */
    bool over;                          /* the day's budget is used up (J27) */
};

/* Describes it; the caller adds the accounts.  The ledger is open for reading. */
tide_status assistant_work_open(struct assistant_work *self, struct cli *cli, const char *kind,
                                const char *dedupe);

/* The whole of a command: `open` describes the work, a running process is asked for it, unless --wait is given; else
 * it is done here and reported. */
tide_status assistant_work_ask_or_run(struct cli *cli,
                                      tide_status (*open)(struct assistant_work *self,
                                                          struct cli *cli));

#endif
