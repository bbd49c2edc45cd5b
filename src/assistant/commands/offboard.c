/* offboard.c - `tidemark assistant offboard EMAIL`: the assistant ends for an account.
 *
 * First the user ends: from then on its jobs do nothing, also those that a running one still makes.  Then
 * they are canceled.  Killed in between: the same command does the rest. */
#include "assistant/commands/home.h"
#include "assistant/jobs/jobs.h"
#include "cli/run/account_change.h"
#include "cli/run/ask.h"

/* ---- the user ---- */

/* In the engine that has the directory, or in one of our own; the other one may end meanwhile. */
static tide_status end_user(struct cli *cli, struct cli_engine *opened, const char *email)
{
    struct cli_tries tries = {0};
    tide_status rc = account_change_open(cli, opened);
    while (rc == TIDE_OK && opened->engine == NULL && cli_try(cli, &tries)) {
        tide_json payload;
        tide_json_object(&payload);
        tide_json_set_cstr(&payload, "email", email);
        rc = cli_ask_there(cli, TIDE_ASSISTANT_OFFBOARD_KIND, NULL, &payload);
        if (rc != TIDE_STOPPED)
            return rc;
        cli->hint[0] = '\0';
        (void)cli_engine_close(cli, opened);
        rc = account_change_open(cli, opened);
    }
    if (rc == TIDE_OK && opened->engine == NULL)
        rc = cli_tries_over(cli);
    return rc == TIDE_OK
               ? tide_assistant_offboard(opened->engine, email, cli->now_unix_ms, &cli->err)
               : rc;
}

/* ---- its jobs ---- */

/* Questions that wait are on the chat account, beside those of others: they end without being asked. */
static tide_status end_jobs(struct cli *cli, const char *email)
{
    static const char *const kinds[] = {
        "assistant.onboard",  "assistant.sync",  "assistant.watch",
        "assistant.classify", "assistant.draft", "assistant.rework",
        "assistant.cleanup",  "assistant.agent", "assistant.manual_draft",
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const tide_status rc = cli_jobs_end_of(cli, email, kinds[i]);
        cli_ledger_close(cli);
        if (rc == TIDE_NOT_FOUND) { /* the ledger never had such a job */
            cli->err = (tide_error){TIDE_OK, 0, ""};
            cli->hint[0] = '\0';
        } else if (rc != TIDE_OK) {
            return cli_hint(cli, rc,
                            "The assistant has ended for it; run this again for its jobs.");
        }
    }
    return TIDE_OK;
}

/* ---- the command ---- */

static void show(struct cli *cli, const char *email, bool before)
{
    tide_json_set_cstr(&cli->json, "account", email);
    tide_json_set_bool(&cli->json, "before", before);
    cli_print(cli, "%s: the assistant %s\n", email,
              before ? "had ended for it already" : "has ended for it");
    cli_print(
        cli, "  Labels and drafts in Gmail stay as they are; delete the label 🤖 AI there if you "
             "want.\n"
             "  Records stay: `tidemark assistant show`. `tidemark account remove` deletes them.\n"
             "  The archive of its mail goes on. `tidemark assistant onboard` begins again.\n");
}

tide_status cli_assistant_offboard(struct cli *cli)
{
    struct tide_assistant_user user;
    struct cli_engine opened = {.beside = true};
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(assistant_user(cli, cli->arguments[0], &user));
    cli_ledger_close(cli);
    tide_status rc = end_user(cli, &opened, user.email);
    const tide_status closed = cli_engine_close(cli, &opened);
    if (rc == TIDE_OK)
        rc = closed;
    if (rc == TIDE_OK)
        rc = end_jobs(cli, user.email);
    if (rc == TIDE_OK)
        show(cli, user.email, user.ended_ms > 0);
    return rc;
}
