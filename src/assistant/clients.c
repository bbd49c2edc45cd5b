/* clients.c - the chat model and the Gmail clients of the users, opened when they are first needed and
 * kept (ASN3).  One whose account was changed since is left to those that have it; the next use opens
 * another. */
#include "assistant/inside.h"

#include "assistant/budget/budget.h"
#include "ledger/rows.h"
#include "mail/mail.h"
#include "settings/settings.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- models ---- */

struct tide_assistant_chat_client {
    uint32_t account;
    char options[TIDE_ASSISTANT_OPTIONS_BYTES];
    uint64_t silence_ms, timeout_ms;
    struct tide_assistant_model model;
    struct tide_assistant_chat_client *next;
};

struct reading {
    uint32_t number;
    struct tide_assistant_account account;
};

static tide_status read_account(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct reading *reading = arg;
    return tide_assistant_account_get(tide_transaction_rows(transaction), reading->number,
                                      &reading->account, err);
}

/* Under the lock. */
static tide_status chat_find(tide_assistant *self, const struct tide_assistant_account *account,
                             struct tide_assistant_chat_client *wanted, tide_chat **chat_out,
                             tide_error *err)
{
    for (struct tide_assistant_chat_client *one = self->chats; one != NULL; one = one->next)
        if (one->account == wanted->account && one->silence_ms == wanted->silence_ms &&
            one->timeout_ms == wanted->timeout_ms && strcmp(one->options, wanted->options) == 0) {
            *chat_out = one->model.chat;
            return TIDE_OK;
        }
    struct tide_assistant_chat_client *client = tide_mem_new(self->mem, sizeof *client);
    if (client == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a chat client");
    *client = *wanted;
    const tide_status rc = tide_assistant_model_open(
        account, self->options.world, self->options.secrets, wanted->silence_ms, wanted->timeout_ms,
        self->mem, &client->model, err);
    if (rc != TIDE_OK) {
        tide_mem_free(self->mem, client, sizeof *client);
        return rc;
    }
    client->next = self->chats;
    self->chats = client;
    *chat_out = client->model.chat;
    return TIDE_OK;
}

static tide_status chat_of(tide_assistant *self, uint32_t number, tide_chat **chat_out,
                           tide_error *err)
{
    tide_engine *engine = self->options.engine;
    struct reading reading = {.number = number};
    struct tide_assistant_chat_client wanted = {
        .account = number,
        .silence_ms = tide_engine_setting_u64(engine, number, TIDE_SET_CHAT_SILENCE),
        .timeout_ms = tide_engine_setting_u64(engine, number, TIDE_SET_CHAT_TIMEOUT)};
    TIDE_TRY(tide_transact(engine, read_account, &reading, err));
    TIDE_TRY(tide_assistant_options_write(&reading.account, wanted.options, err));
    tide_lock_take(self->options.world, self->lock);
    const tide_status rc = chat_find(self, &reading.account, &wanted, chat_out, err);
    tide_lock_drop(self->options.world, self->lock);
    return rc;
}

/* The smaller one of chat.tokens_per_day and that of assistant.yaml; 0: none. */
static uint64_t budget_of(tide_assistant *self, uint32_t account)
{
    const uint64_t own = tide_assistant_tokens_per_day(self);
    const uint64_t set =
        tide_engine_setting_u64(self->options.engine, account, TIDE_SET_CHAT_TOKENS_PER_DAY);
    return tide_assistant_smaller_budget(own, set);
}

struct budget {
    tide_assistant *assistant;
    uint32_t account;
    uint64_t limit;
};

/* J27.  A small question may fit where a larger one did not: the alert stays until the next day, or
 * until there is another budget. */
static bool is_over(const struct budget *budget, bool over)
{
    tide_assistant *self = budget->assistant;
    const uint64_t today = tide_assistant_day_of(tide_world_now_unix_ms(self->options.world));
    tide_lock_take(self->options.world, self->lock);
    if (over)
        self->over = (struct tide_assistant_over){budget->account, budget->limit, today};
    over = self->over.account == budget->account && self->over.limit == budget->limit &&
           self->over.day == today;
    tide_lock_drop(self->options.world, self->lock);
    return over;
}

static void budget_alert(void *arg, bool over)
{
    const struct budget *budget = arg;
    char text[200] = "";
    over = is_over(budget, over);
    if (over)
        (void)snprintf(text, sizeof text,
                       "the budget of %" PRIu64
                       " tokens is used up; mail is classified and answered after midnight UTC",
                       budget->limit);
    (void)tide_engine_alert(budget->assistant->options.engine, budget->account,
                            TIDE_ASSISTANT_ALERT_BUDGET, over ? 1 : 0, text, NULL);
}

tide_status tide_assistant_ask(void *arg, tide_job *job,
                               const struct tide_assistant_question *question,
                               struct tide_assistant_answer *answer, tide_error *err)
{
    tide_assistant *self = arg;
    const uint32_t account = tide_job_account(job);
    tide_assistant_look(self); /* the budget may have been raised */
    struct budget budget = {self, account, budget_of(self, account)};
    struct tide_assistant_chat chat = {.engine = self->options.engine,
                                       .world = self->options.world,
                                       .account = account,
                                       .tokens_per_day = budget.limit,
                                       .on_budget = budget_alert,
                                       .on_budget_arg = &budget};
    TIDE_TRY(chat_of(self, account, &chat.chat, err));
    return tide_assistant_chat_ask(&chat, job, question, answer, err);
}

/* ---- Gmail ---- */

struct tide_assistant_gmail_client {
    uint32_t account;
    char endpoint[sizeof((struct tide_assistant_user *)0)->endpoint];
    tide_tokens *tokens;
    tide_gmail *gmail;
    struct tide_assistant_gmail_client *next;
};

static tide_status gmail_open(tide_assistant *self, const struct tide_assistant_user *user,
                              struct tide_assistant_gmail_client *client, tide_error *err)
{
    client->account = user->account;
    memcpy(client->endpoint, user->endpoint, sizeof client->endpoint);
    TIDE_TRY(tide_mail_tokens(self->options.world, self->options.secrets, user->email, self->mem,
                              &client->tokens, err));
    const tide_status rc =
        tide_gmail_open_patient(user->endpoint[0] == '\0' ? NULL : user->endpoint, client->tokens,
                                TIDE_ASSISTANT_PATIENCE_MS, self->mem, &client->gmail, err);
    if (rc != TIDE_OK)
        tide_tokens_close(client->tokens);
    return rc;
}

/* Under the lock. */
static tide_status gmail_find(tide_assistant *self, const struct tide_assistant_user *user,
                              tide_gmail **gmail_out, tide_error *err)
{
    for (struct tide_assistant_gmail_client *one = self->gmails; one != NULL; one = one->next)
        if (one->account == user->account && strcmp(one->endpoint, user->endpoint) == 0) {
            *gmail_out = one->gmail;
            return TIDE_OK;
        }
    struct tide_assistant_gmail_client *client = tide_mem_new(self->mem, sizeof *client);
    if (client == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %s", user->email);
    const tide_status rc = gmail_open(self, user, client, err);
    if (rc != TIDE_OK) {
        tide_mem_free(self->mem, client, sizeof *client);
        return rc;
    }
    client->next = self->gmails;
    self->gmails = client;
    *gmail_out = client->gmail;
    return TIDE_OK;
}

tide_status tide_assistant_gmail_of(void *arg, const struct tide_assistant_user *user,
                                    tide_gmail **gmail_out, tide_error *err)
{
    tide_assistant *self = arg;
    tide_lock_take(self->options.world, self->lock);
    const tide_status rc = gmail_find(self, user, gmail_out, err);
    tide_lock_drop(self->options.world, self->lock);
    return rc;
}

/* ---- the end ---- */

void tide_assistant_clients_done(tide_assistant *self)
{
    while (self->chats != NULL) {
        struct tide_assistant_chat_client *client = self->chats;
        self->chats = client->next;
        tide_assistant_model_close(&client->model);
        tide_mem_free(self->mem, client, sizeof *client);
    }
    while (self->gmails != NULL) {
        struct tide_assistant_gmail_client *client = self->gmails;
        self->gmails = client->next;
        tide_gmail_close(client->gmail);
        tide_tokens_close(client->tokens);
        tide_mem_free(self->mem, client, sizeof *client);
    }
}
