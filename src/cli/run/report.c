/* report.c - how a run ended for each account: what is printed, and the exit code. */
#include "cli/run/outcome.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

/* Ends the line of an account. */
static void outcome_print(struct cli *cli, const struct cli_ended *ended)
{
    const char *how = ended->outcome == CLI_OUTCOME_SIGNED_OUT ? "needs a sign-in: "
                      : ended->outcome == CLI_OUTCOME_HALTED   ? "halted: "
                      : ended->outcome == CLI_OUTCOME_FAILED   ? "failed: "
                                                               : "";
    if (ended->outcome == CLI_OUTCOME_DONE)
        cli_print(cli, "\n");
    else
        cli_print(cli, "; %s%s\n", how, ended->reason);
}

/* Prints the remedy; on standard error if the outcome is an error. */
static void remedy_print(struct cli *cli, const char *account, const struct cli_ended *ended)
{
    if (ended->remedy[0] == '\0' || ended->outcome == CLI_OUTCOME_UNFINISHED)
        return;
    if (ended->outcome == CLI_OUTCOME_BAD_ITEMS)
        cli_print(cli, "  %s\n", ended->remedy);
    else if (!cli->want_json)
        (void)fprintf(stderr, "tidemark: %s: %s\n", account, ended->remedy);
}

static void report_account(struct cli_work *work, size_t index, const struct cli_ended *ended,
                           tide_json *list)
{
    struct cli *cli = work->cli;
    const char *name = work->accounts[index].name;
    const bool is_over =
        ended->outcome == CLI_OUTCOME_DONE || ended->outcome == CLI_OUTCOME_BAD_ITEMS;
    tide_json one;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", name);
    tide_json_set_cstr(&one, "outcome", cli_outcome_name(ended->outcome));
    tide_json_set_cstr(&one, "reason", ended->reason[0] == '\0' ? NULL : ended->reason);
    tide_json_set_cstr(&one, "remedy", ended->remedy[0] == '\0' ? NULL : ended->remedy);
    if (work->line != NULL)
        work->line(work->arg, index);
    else
        cli_print(cli, "%s: %s", name, is_over ? "done" : "not done");
    outcome_print(cli, ended);
    remedy_print(cli, name, ended);
    if (work->details != NULL)
        work->details(work->arg, index, &one);
    tide_json_append(list, &one);
}

static void tell_unfinished(const struct cli_work *work)
{
    struct cli *cli = work->cli;
    const char *stored = cli_work_words(work)->stored;
    const char *why = cli_interrupted(cli)     ? "Interrupted."
                      : cli_work_is_late(work) ? "Out of time."
                                               : "Not finished.";
    if (work->handed_over && work->pid == 0)
        cli_print(cli, "No longer watching; the other processes continue, and %s.\n", stored);
    else if (work->handed_over)
        cli_print(cli, "No longer watching; process %" PRIu64 " continues.\n", work->pid);
    else
        cli_print(cli, "%s %c%s; run `tidemark %s sync` to resume.\n", why,
                  toupper((unsigned char)stored[0]), stored + 1, work->system->name);
}

void cli_work_report(struct cli_work *work)
{
    struct cli *cli = work->cli;
    bool unfinished = false;
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < work->count; i++) {
        struct cli_ended ended;
        cli_outcome_judge(work, i, &ended);
        if (work->judge != NULL)
            work->judge(work->arg, i, &ended);
        unfinished = unfinished || ended.outcome == CLI_OUTCOME_UNFINISHED;
        cli->exit_code = cli_outcome_worse(cli->exit_code, cli_outcome_exit_code(ended.outcome));
        report_account(work, i, &ended, &list);
    }
    tide_json_set(&cli->json, "accounts", &list);
    tide_json_set_bool(&cli->json, "interrupted", cli_interrupted(cli));
    tide_json_set_bool(&cli->json, "timed_out", cli_work_is_late(work) && unfinished);
    tide_json_set_bool(&cli->json, "handed_over", work->handed_over);
    if (cli_interrupted(cli))
        cli->exit_code = cli_outcome_worse(cli->exit_code, CLI_EXIT_INTERRUPTED);
    if (cli_interrupted(cli) || unfinished)
        tell_unfinished(work);
}
