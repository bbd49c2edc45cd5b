#include "cli/run/outcome.h"

#include <ctype.h>
#include <stdio.h>

const struct cli_words *cli_work_words(const struct cli_work *work)
{
    static const struct cli_words usual = {.stored = "stored data stays",
                                           .items_bad = "some requests failed",
                                           .items_list = "`tidemark bad list` lists them."};
    return work->words == NULL ? &usual : work->words;
}

const char *cli_outcome_name(cli_outcome outcome)
{
    switch (outcome) {
    case CLI_OUTCOME_DONE:
        return "done";
    case CLI_OUTCOME_BAD_ITEMS:
        return "bad_items";
    case CLI_OUTCOME_UNFINISHED:
        return "unfinished";
    case CLI_OUTCOME_SIGNED_OUT:
        return "signed_out";
    case CLI_OUTCOME_PAUSED:
        return "paused";
    case CLI_OUTCOME_HALTED:
        return "halted";
    case CLI_OUTCOME_FAILED:
        return "failed";
    }
    return "unknown";
}

int cli_outcome_exit_code(cli_outcome outcome)
{
    switch (outcome) {
    case CLI_OUTCOME_DONE:
        return CLI_EXIT_DONE;
    case CLI_OUTCOME_BAD_ITEMS:
        return CLI_EXIT_BAD_ITEMS;
    case CLI_OUTCOME_UNFINISHED:
        return CLI_EXIT_INTERRUPTED;
    case CLI_OUTCOME_SIGNED_OUT:
        return CLI_EXIT_SIGN_IN;
    case CLI_OUTCOME_PAUSED:
    case CLI_OUTCOME_HALTED:
    case CLI_OUTCOME_FAILED:
        break;
    }
    return CLI_EXIT_FAILED;
}

static unsigned weight_of(int code)
{
    static const int order[] = {CLI_EXIT_DONE, CLI_EXIT_BAD_ITEMS, CLI_EXIT_INTERRUPTED,
                                CLI_EXIT_SIGN_IN};
    const unsigned count = sizeof order / sizeof order[0];
    for (unsigned i = 0; i < count; i++)
        if (order[i] == code)
            return i;
    return count;
}

int cli_outcome_worse(int a, int b)
{
    return weight_of(a) >= weight_of(b) ? a : b;
}

/* The name of an account with several subjects is a flag. */
static void signed_out(const struct cli_work *work, const struct cli_watched *watched,
                       const char *why, struct cli_ended *ended)
{
    const struct tide_system *system = cli_work_owner(work);
    const bool named = system->subject_remove != NULL;
    ended->outcome = CLI_OUTCOME_SIGNED_OUT;
    (void)snprintf(ended->reason, sizeof ended->reason, "%s",
                   why[0] == '\0' ? "its sign-in was refused" : why);
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "Sign in again with `tidemark account add %s %s%s%.100s` and the flags it was "
                   "added with; %s.",
                   system->provider, named ? system->subject : "", named ? " --name " : "",
                   watched->name, cli_work_words(work)->stored);
}

static void unfinished(const struct cli_work *work, const struct cli_watched *watched,
                       struct cli_ended *ended)
{
    const char *stored = cli_work_words(work)->stored;
    char when[32];
    ended->outcome = CLI_OUTCOME_UNFINISHED;
    if (watched->failure[0] == '\0')
        (void)snprintf(ended->reason, sizeof ended->reason, "not finished");
    else if (watched->next_try_ms == 0)
        (void)snprintf(ended->reason, sizeof ended->reason, "%s", watched->failure);
    else
        (void)snprintf(ended->reason, sizeof ended->reason, "%.300s; next try %s", watched->failure,
                       cli_time(watched->next_try_ms, when));
    (void)snprintf(ended->remedy, sizeof ended->remedy, "%c%s; run `tidemark %s sync` to resume.",
                   toupper((unsigned char)stored[0]), stored + 1, work->system->name);
}

static void bad_items(const struct cli_work *work, const struct cli_watched *watched,
                      struct cli_ended *ended)
{
    const struct cli_words *words = cli_work_words(work);
    const bool bad = watched->bad > watched->bad_first;
    const bool failed = cli_watched_failed(watched);
    if (!bad && !failed)
        return;
    ended->outcome = CLI_OUTCOME_BAD_ITEMS;
    (void)snprintf(ended->reason, sizeof ended->reason, "%s",
                   bad ? words->items_bad : "some jobs failed or were canceled");
    (void)snprintf(ended->remedy, sizeof ended->remedy, "%s%s%s", bad ? words->items_list : "",
                   bad && failed ? " " : "",
                   failed ? "`tidemark jobs list --state failed` and `--state canceled` list the "
                            "jobs."
                          : "");
}

void cli_outcome_judge(const struct cli_work *work, size_t account, struct cli_ended *ended_out)
{
    const struct cli_watched *watched = &work->accounts[account];
    struct cli_ended ended = {.outcome = CLI_OUTCOME_DONE};
    if (watched->error.status == TIDE_AUTH) {
        signed_out(work, watched, watched->error.text, &ended);
    } else if (watched->error.status != TIDE_OK) {
        ended.outcome = CLI_OUTCOME_FAILED;
        (void)snprintf(ended.reason, sizeof ended.reason, "%.380s", watched->error.text);
    } else if (watched->halted) {
        ended.outcome = CLI_OUTCOME_HALTED;
        (void)snprintf(ended.reason, sizeof ended.reason, "%.380s", watched->halt_reason);
        (void)snprintf(ended.remedy, sizeof ended.remedy,
                       "Resume it with `tidemark account resume %.100s`.", watched->name);
    } else if (watched->paused) {
        ended.outcome = CLI_OUTCOME_PAUSED;
        (void)snprintf(ended.reason, sizeof ended.reason, "paused by command");
        (void)snprintf(ended.remedy, sizeof ended.remedy,
                       "Resume it with `tidemark jobs resume --account %.100s`.", watched->name);
    } else if (!watched->settled && watched->signed_out) {
        signed_out(work, watched, watched->failure, &ended);
    } else if (!watched->settled) {
        unfinished(work, watched, &ended);
    } else {
        bad_items(work, watched, &ended);
    }
    *ended_out = ended;
}
