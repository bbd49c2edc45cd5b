/* classify.c - `tidemark assistant classify THREAD`: a person has a thread classified again (J21). */
#include "assistant/assistant.h"
#include "assistant/commands/work.h"
#include "assistant/jobs/jobs.h"

#include <stdio.h>

static tide_status open_classify(struct assistant_work *self, struct cli *cli)
{
    const char *thread = cli->arguments[0];
    struct tide_assistant_user user;
    struct tide_assistant_email email;
    char dedupe[sizeof self->dedupe];
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(assistant_user(cli, cli_flag(cli, "account"), &user));
    const tide_status rc = tide_assistant_email_get(tide_ledger_rows(cli->ledger), user.account,
                                                    thread, &email, &cli->err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? assistant_no_thread(cli, user.email, thread) : rc;
    (void)snprintf(dedupe, sizeof dedupe, TIDE_ASSISTANT_FORCE_DEDUPE, email.thread_id);
    TIDE_TRY(assistant_work_open(self, cli, TIDE_ASSISTANT_CLASSIFY_KIND, dedupe));
    (void)snprintf(self->payload, sizeof self->payload, TIDE_ASSISTANT_FORCE_PAYLOAD,
                   email.thread_id);
    TIDE_TRY(cli_work_accounts(&self->work, 1));
    (void)snprintf(self->work.accounts[0].name, sizeof self->work.accounts[0].name, "%s",
                   user.email);
    return TIDE_OK;
}

tide_status cli_assistant_classify(struct cli *cli)
{
    return assistant_work_ask_or_run(cli, open_classify);
}
