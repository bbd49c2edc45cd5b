/* sync.c - `tidemark assistant sync` (J6): has the mailboxes looked at, and what follows done. */
#include "assistant/assistant.h"
#include "assistant/commands/work.h"
#include "assistant/jobs/jobs.h"

#include <stdio.h>
#include <string.h>

/* ---- the users ---- */

struct users {
    struct cli *cli;
    struct assistant_work *self;
    size_t count;
};

static void count_user(const struct tide_assistant_user *user, void *arg)
{
    struct users *users = arg;
    users->count += user->onboarded_ms > 0;
}

static void take_user(const struct tide_assistant_user *user, void *arg)
{
    struct users *users = arg;
    struct cli_work *work = &users->self->work;
    if (user->onboarded_ms > 0 && users->count < work->count)
        (void)snprintf(work->accounts[users->count++].name, sizeof work->accounts[0].name, "%s",
                       user->email);
}

static tide_status named(struct assistant_work *self)
{
    struct cli *cli = self->cli;
    TIDE_TRY(cli_work_accounts(&self->work, cli->arguments_count));
    for (unsigned i = 0; i < cli->arguments_count; i++) {
        struct tide_assistant_user user;
        TIDE_TRY(assistant_user(cli, cli->arguments[i], &user));
        if (user.ended_ms > 0)
            return cli_fail(cli, TIDE_INVALID, "Run `tidemark assistant onboard` to begin again.",
                            "the assistant was ended for %.200s", user.email);
        if (user.onboarded_ms == 0)
            return cli_fail(cli, TIDE_INVALID, "Run `tidemark assistant onboard` for it first.",
                            "%.200s was not onboarded to the end", user.email);
        (void)snprintf(self->work.accounts[i].name, sizeof self->work.accounts[i].name, "%s",
                       user.email);
    }
    return TIDE_OK;
}

static tide_status all(struct assistant_work *self)
{
    struct cli *cli = self->cli;
    const tide_rows db = tide_ledger_rows(cli->ledger);
    struct users users = {.cli = cli, .self = self};
    TIDE_TRY(tide_assistant_users_each(db, count_user, &users, &cli->err));
    if (users.count == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "Run `tidemark assistant onboard EMAIL`.",
                        "the assistant works for no account yet");
    TIDE_TRY(cli_work_accounts(&self->work, users.count));
    users.count = 0;
    return tide_assistant_users_each(db, take_user, &users, &cli->err);
}

/* ---- the command ---- */

static tide_status open_sync(struct assistant_work *self, struct cli *cli)
{
    const bool full = cli_flag(cli, "full") != NULL;
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(assistant_used(cli));
    TIDE_TRY(assistant_work_open(self, cli, TIDE_ASSISTANT_SYNC_KIND,
                                 full ? TIDE_ASSISTANT_FULL_DEDUPE : TIDE_ASSISTANT_SYNC_DEDUPE));
    (void)snprintf(self->payload, sizeof self->payload, "%s",
                   full ? TIDE_ASSISTANT_FULL_PAYLOAD : TIDE_ASSISTANT_SYNC_PAYLOAD);
    return cli->arguments_count > 0 ? named(self) : all(self);
}

tide_status cli_assistant_sync(struct cli *cli)
{
    return assistant_work_ask_or_run(cli, open_sync);
}

tide_status cli_assistant_sync_check(struct cli *cli)
{
    uint64_t deadline_ms = 0;
    return cli_work_deadline(cli, &deadline_ms);
}
