/* standing.c - what `tidemark status` and the page say of a chat account: how far the assistant is that asks
 * it, and what is left of the day's tokens. */
#include "assistant/account/account.h"
#include "assistant/budget/budget.h"
#include "assistant/commands/home.h"
#include "assistant/store/look.h"
#include "engine/tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct standing {
    tide_rows db;
    uint64_t users, reply, drafted, failed;
    uint64_t synced_ms; /* of the user that was synced the longest time ago */
    tide_status rc;
    tide_error *err;
};

/* ---- the users ---- */

static void add_user(const struct tide_assistant_user *user, void *arg)
{
    struct standing *self = arg;
    struct tide_assistant_counts counts;
    if (self->rc != TIDE_OK || user->onboarded_ms == 0)
        return;
    self->rc = tide_assistant_counts(self->db, user->account, UINT64_MAX / 2, &counts, self->err);
    if (self->rc != TIDE_OK)
        return;
    if (self->users++ == 0 || counts.sync.synced_ms < self->synced_ms)
        self->synced_ms = counts.sync.synced_ms;
    self->reply += counts.by_status[TIDE_ASSISTANT_PENDING] +
                   counts.by_status[TIDE_ASSISTANT_REWORK_REQUESTED];
    self->drafted += counts.by_status[TIDE_ASSISTANT_DRAFTED];
    self->failed += counts.given_up;
}

/* Of all users together, for the account that is asked. */
static tide_status say_users(struct standing *self, struct tide_account_status *out)
{
    TIDE_TRY(tide_assistant_users_each(self->db, add_user, self, self->err));
    TIDE_TRY(self->rc);
    out->tidemark_unix_ms = self->synced_ms;
    if (self->users == 0)
        (void)snprintf(out->words, sizeof out->words, "no account onboarded");
    else
        (void)snprintf(out->words, sizeof out->words,
                       "%" PRIu64 " need%s a reply, %" PRIu64 " drafted, %" PRIu64 " failed",
                       self->reply, self->reply == 1 ? "s" : "", self->drafted, self->failed);
    return TIDE_OK;
}

/* ---- the day's tokens ---- */

/* `limit`: the smaller one of chat.tokens_per_day and that of assistant.yaml, as the jobs have it. */
static tide_status say_tokens(tide_rows db, tide_ledger *ledger, uint32_t account, uint64_t limit,
                              uint64_t now_unix_ms, struct tide_account_status *out,
                              tide_error *err)
{
    struct tide_assistant_left left = {.spent = 0};
    bool has = false;
    TIDE_TRY(tide_rows_has(db, "assistant_budget_day", "the budgets", &has, err));
    if (has)
        TIDE_TRY(tide_assistant_budget_left(db, account, limit, now_unix_ms, &left, err));
    /* A question that does not fit waits, though some tokens are left. */
    if (assistant_is_over(ledger, account, now_unix_ms) ||
        (limit > 0 && left.spent + left.held >= limit))
        (void)snprintf(out->note, sizeof out->note,
                       "the budget of %" PRIu64 " tokens is used up until midnight UTC", limit);
    else if (left.spent > 0)
        (void)snprintf(out->note, sizeof out->note, "%" PRIu64 " tokens used today", left.spent);
    return TIDE_OK;
}

/* ---- both ---- */

/* What assistant.yaml says; nothing where it is missing or refused. */
static void read_config(const struct tide_system_home *home, char name[TIDE_ASSISTANT_NAME_BYTES],
                        uint64_t *tokens_out)
{
    struct tide_assistant_config *config = NULL;
    char path[CLI_PATH_BYTES];
    name[0] = '\0';
    if (assistant_path_beside(home->config_path, path, NULL) == TIDE_OK &&
        tide_assistant_config_load(path, (const char *const *)environ, home->mem, &config, NULL) ==
            TIDE_OK) {
        (void)snprintf(name, TIDE_ASSISTANT_NAME_BYTES, "%.*s", (int)config->model_account.bytes,
                       config->model_account.bytes == 0 ? "" : config->model_account.data);
        *tokens_out = config->tokens_per_day;
    }
    tide_assistant_config_free(config);
}

tide_status assistant_standing(const struct tide_system_home *home, tide_ledger *ledger,
                               const struct tide_account_row *account,
                               struct tide_account_status *out, tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    const uint64_t set =
        tide_tuning_engine(tide_settings_of(home->settings, account->name)).chat_tokens_per_day;
    struct standing self = {.db = db, .err = err};
    struct tide_assistant_account chosen = {.number = 0};
    char name[TIDE_ASSISTANT_NAME_BYTES];
    uint64_t own = 0;
    read_config(home, name, &own);
    if (tide_assistant_account_choose(db, name, &chosen, NULL) == TIDE_OK &&
        chosen.number == account->id)
        TIDE_TRY(say_users(&self, out));
    else
        (void)snprintf(out->words, sizeof out->words, "not asked by the assistant");
    return say_tokens(db, ledger, account->id, tide_assistant_smaller_budget(own, set),
                      tide_world_now_unix_ms(home->world), out, err);
}
