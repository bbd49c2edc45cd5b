#include "cli/advice.h"

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
    {"drive_stopped",
     "Nothing of these drives is synced, in either direction. Nothing is deleted meanwhile.",
     "Mount the folder, sign in again, or add the drive again, as the text says; then sync.",
     "tidemark drive status"},
    {"drive_deletions",
     "More would be deleted than is usual, so all deletions of these drives wait. All else is "
     "synced.",
     "See what would go, then accept it or bring it back.", "tidemark drive deletions list"},
    {"drive_owed",
     "Some items could not be synced for a day. They are tried again by themselves, and keep "
     "nothing else waiting.",
     "See which ones and why. A file whose hash never fits can be accepted as it is.",
     "tidemark drive status"},
    {"drive_late",
     "These drives are watched, but changes did not come through to the end for long.",
     "See what runs and what waits; check the network and the sign-in.", "tidemark drive status"},
    {"test", "Messages about alerts of this home arrive at this address.",
     "Nothing. To stop such mail, switch it off.", "tidemark alerts setup --off"},
    {NULL, "An operator should look at it.", "See what it says and since when.", "tidemark alerts"},
};

const struct cli_advice *cli_advice(const char *condition)
{
    const struct cli_advice *advice = advices;
    while (advice->condition != NULL && strcmp(advice->condition, condition) != 0)
        advice++;
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
