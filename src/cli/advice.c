#include "cli/advice.h"

#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct cli_advice advices[] = {
    {"bad_rate",
     "Many items cannot be fetched although the account works. What else there is goes on.",
     "See which ones and why; retry them when the cause is gone, or accept them as they are.",
     "tidemark bad list --account %s"},
    {"bad_hour", "Many items failed within an hour, more than single damaged ones explain.",
     "See which ones and why; retry them when the cause is gone, or accept them as they are.",
     "tidemark bad list --account %s"},
    {"metadata",
     "The ledger keeps much about this account besides its jobs, mostly items that failed. It "
     "grows "
     "until they are dealt with.",
     "Retry or accept the bad items; then the ledger forgets them.",
     "tidemark bad list --account %s"},
    {"throttled",
     "The provider refuses calls, because the account or its project is asked too often. Work goes "
     "on, slower; nothing is lost.",
     "It slows down by itself. If it lasts, see whether another program uses the same account, or "
     "lower governor.share.",
     "tidemark status"},
    {"queue",
     "Something is slower than what waits for it: a disk, a database, or a program that takes "
     "results. Nothing is lost.",
     "See what runs and what waits; check the disk and its free space.", "tidemark jobs stats"},
    {"test", "Messages about alerts of this home arrive at this address.",
     "Nothing. To stop such mail, switch it off.", "tidemark alerts setup --off"},
    {NULL, "An operator should look at it.", "See what it says and since when.", "tidemark alerts"},
};

static const struct cli_advice *find(const struct cli_advice *advice, const char *condition)
{
    while (advice->condition != NULL && strcmp(advice->condition, condition) != 0)
        advice++;
    return advice;
}

const struct cli_advice *cli_advice(const char *condition)
{
    const struct cli_advice *advice = find(advices, condition);
    for (size_t i = 0; advice->condition == NULL && cli_systems[i] != NULL; i++)
        if (cli_systems[i]->advices != NULL) {
            const struct cli_advice *own = find(cli_systems[i]->advices, condition);
            advice = own->condition == NULL ? advice : own;
        }
    return advice;
}

void cli_advice_command(const struct cli_advice *advice, const char *account, char *out,
                        size_t out_bytes)
{
    const char *place = strstr(advice->command, "%s");
    const char *flag = strstr(advice->command, " --");
    if (place == NULL)
        (void)snprintf(out, out_bytes, "%s", advice->command);
    else if (account[0] == '\0')
        (void)snprintf(out, out_bytes, "%.*s", (int)(flag - advice->command), advice->command);
    else
        (void)snprintf(out, out_bytes, "%.*s%s", (int)(place - advice->command), advice->command,
                       account);
}
