/* system.c - the mail assistant, as the list of systems has it (system/system.h).  Its accounts are chat
 * models. */
#include "assistant/commands/system.h"

#include "assistant/account/account.h"
#include "assistant/assistant.h"
#include "assistant/budget/budget.h"
#include "assistant/commands/home.h"
#include "assistant/page/page.h"
#include "cli/advice.h"
#include "net/oauth/key.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static_assert((int)TIDE_ASSISTANT_OPTIONS_BYTES <= (int)TIDE_ACCOUNT_OPTIONS_BYTES,
              "options fit a request");

/* ---- running ---- */

static tide_status open_assistant(const struct tide_system_home *home, void **state_out,
                                  tide_error *err)
{
    char path[CLI_PATH_BYTES];
    tide_assistant *assistant = NULL;
    TIDE_TRY(assistant_path_beside(home->config_path, path, err));
    const struct tide_assistant_options options = {.engine = home->engine,
                                                   .world = home->world,
                                                   .secrets = home->secrets,
                                                   .config_path = path,
                                                   .environment = (const char *const *)environ};
    const tide_status rc = tide_assistant_open(&options, home->mem, &assistant, err);
    *state_out = assistant;
    return rc;
}

static tide_status close_assistant(void *state, tide_error *err)
{
    (void)err;
    tide_assistant_close(state);
    return TIDE_OK;
}

static tide_status changed(void *state, const char *subject, bool whole, tide_error *err)
{
    return tide_assistant_changed(state, subject, whole, err);
}

static tide_status pushed(void *state, const char *subject, tide_error *err)
{
    return tide_assistant_pushed(state, subject, err);
}

static tide_status watch(void *state, const struct tide_system_teller *teller, tide_error *err)
{
    (void)teller;
    return tide_assistant_watch(state, err);
}

static void watch_end(void *state)
{
    tide_assistant_watch_end(state);
}

/* ---- accounts: chat models ---- */

/* What the flags say, in `account`. */
static tide_status flags_read(struct cli *cli, struct tide_assistant_account *account)
{
    static const struct {
        const char *flag, *option;
    } flags[] = {{"dialect", "dialect"}, {"model", "model"}, {"fast-model", "fast_model"}};
    const char *with = cli_flag(cli, "with");
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof flags / sizeof flags[0]; i++)
        if (cli_flag(cli, flags[i].flag) != NULL)
            rc = tide_assistant_option_set(account, flags[i].option, cli_flag(cli, flags[i].flag),
                                           &cli->err);
    if (rc == TIDE_OK && with != NULL)
        rc = tide_assistant_options_set(account, with, &cli->err);
    if (rc == TIDE_OK && cli_flag(cli, "no-key") != NULL)
        account->no_key = true;
    if (rc == TIDE_OK)
        rc = tide_assistant_options_check(account, &cli->err);
    return rc;
}

/* An account that is known keeps what is not said again: a new key needs nothing but its name. */
static tide_status account_known(struct cli *cli, const char *name,
                                 struct tide_assistant_account *account)
{
    bool has = false;
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_rows_has(tide_ledger_rows(cli->ledger), "assistant_account", "the chat accounts",
                           &has, &cli->err);
    if (rc == TIDE_OK && has)
        rc = tide_assistant_account_named(tide_ledger_rows(cli->ledger), name, account, &cli->err);
    cli_ledger_close(cli);
    if (rc != TIDE_NOT_FOUND) /* the first of this home, or a new one */
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return TIDE_OK;
}

static tide_status account_check(struct cli *cli, const char *named,
                                 struct tide_account_request *request)
{
    struct tide_assistant_account account = {.number = 0};
    if (request->subjects_count != 1)
        return cli_wrong(cli, "Give one: `tidemark account add chat NAME --model MODEL`.",
                         "a chat account has one name");
    request->name = named == NULL ? request->subjects[0] : named;
    if (request->name[0] == '\0' || request->name[0] == '-' || strlen(request->name) > 120 ||
        strpbrk(request->name, "/\\ \t\n") != NULL)
        return cli_wrong(cli, "Give a short name without spaces and slashes.",
                         "\"%.100s\" is not a name of an account", request->name);
    TIDE_TRY(account_known(cli, request->name, &account));
    if (request->endpoint[0] != '\0')
        (void)snprintf(account.endpoint, sizeof account.endpoint, "%s", request->endpoint);
    if (cli_flag(cli, "key-file") != NULL)
        account.no_key = false;
    const tide_status rc = flags_read(cli, &account);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc,
                        "`tidemark account add chat NAME --model MODEL --endpoint URL`; "
                        "docs/chat.md lists what --with knows.");
    return tide_assistant_options_write(&account, request->options, &cli->err);
}

struct listed {
    const char *model;
    bool found;
    unsigned count;
};

static void see_model(const char *id, void *arg)
{
    struct listed *listed = arg;
    listed->count++;
    listed->found = listed->found || strcmp(id, listed->model) == 0;
}

/* A server without a list of models is asked for a word: a wrong address must not be taken for it. */
static tide_status ask_word(struct cli *cli, tide_chat *chat)
{
    static const struct tide_chat_part part[] = {{.kind = TIDE_CHAT_TEXT, .text = {"Hi", 2}}};
    static const struct tide_chat_message message[] = {{TIDE_CHAT_USER, part, 1}};
    const struct tide_chat_talk talk = {.messages = message, .messages_count = 1, .tokens_max = 16};
    struct tide_chat_answer answer = {.calls_count = 0};
    const tide_status rc =
        tide_chat_call(chat, NULL, &talk, cli_interruptible(cli), &answer, &cli->err);
    tide_chat_answer_done(&answer);
    return rc;
}

static tide_status account_try(struct cli *cli, const struct tide_account_request *request,
                               tide_text bearer)
{
    struct tide_assistant_account account = {.number = 0};
    tide_chat *chat = NULL;
    TIDE_TRY(tide_assistant_options_read(tide_text_of(request->options), &account, &cli->err));
    struct tide_chat_options options = tide_assistant_chat_options(&account);
    struct listed listed = {.model = account.model};
    options.key = account.no_key ? TIDE_TEXT_NONE : bearer;
    options.world = cli->world;
    TIDE_TRY(tide_chat_open(&options, cli->mem, &chat, &cli->err));
    tide_status rc =
        tide_chat_models(chat, NULL, cli_interruptible(cli), see_model, &listed, &cli->err);
    const bool lists = rc == TIDE_OK;
    if (rc == TIDE_GONE)
        rc = ask_word(cli, chat);
    tide_chat_close(chat);
    tide_json_set_bool(&cli->json, "model_listed", listed.found);
    if (lists && !listed.found && !cli->want_json)
        (void)fprintf(stderr,
                      "tidemark: warning: the server does not list the model %.100s; it lists %u "
                      "others.\n",
                      account.model, listed.count);
    return rc;
}

static tide_status account_put(tide_rows db, uint32_t number,
                               const struct tide_account_request *request, tide_error *err)
{
    struct tide_assistant_account account = {.number = number};
    (void)snprintf(account.name, sizeof account.name, "%s", request->name);
    TIDE_TRY(tide_assistant_options_read(tide_text_of(request->options), &account, err));
    return tide_assistant_account_put(db, &account, err);
}

static void note_user(const struct tide_assistant_user *user, void *arg)
{
    if (user->ended_ms == 0)
        (void)snprintf(arg, TIDE_ASSISTANT_EMAIL_BYTES, "%s", user->email);
}

static tide_status account_drop(tide_rows db, uint32_t account, tide_error *err)
{
    TIDE_TRY(tide_assistant_budget_drop(db, account, err));
    return tide_assistant_account_drop(db, account, err);
}

/* While it works for users, one that it asks is not taken away: their mail would wait without an end. */
static tide_status account_leave(struct cli *cli, const char *name)
{
    struct tide_assistant_account chat = {.number = 0};
    char first[TIDE_ASSISTANT_EMAIL_BYTES] = "";
    if (assistant_used(cli) == TIDE_OK)
        (void)tide_assistant_users_each(tide_ledger_rows(cli->ledger), note_user, first, NULL);
    const bool asked = first[0] != '\0' && assistant_chat(cli, &chat) == TIDE_OK;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    if (!asked || strcmp(chat.name, name) != 0)
        return TIDE_OK;
    return cli_fail(cli, TIDE_EXISTS,
                    "Add another chat account and name it in assistant.yaml as models.account, or "
                    "end the assistant for its accounts first, with `tidemark assistant offboard`.",
                    "the assistant asks %.100s, and works for %.100s", name, first);
}

/* A mail account is removed: what was recorded about its mail goes with it. */
static tide_status other_drop(tide_rows db, uint32_t account, tide_error *err)
{
    bool has = false;
    TIDE_TRY(tide_rows_has(db, "assistant_user", "the users", &has, err));
    return has ? tide_assistant_user_remove(db, account, err) : TIDE_OK;
}

static const struct tide_purpose purposes[] = {
    {"ask", "", "to ask a chat model"},
    {NULL, NULL, NULL},
};

static const struct tide_action actions[] = {
    {"assistant sync", NULL, "every 15min", "looks for new mail for the assistant",
     cli_assistant_sync_check},
    {NULL, NULL, NULL, NULL, NULL},
};

static const struct cli_advice advices[] = {
    {TIDE_ASSISTANT_ALERT_CONFIG,
     "assistant.yaml is refused. The one that was read before holds; without one mail waits.",
     "Correct the line that the text names; it is read again by itself.",
     "tidemark assistant status"},
    {TIDE_ASSISTANT_ALERT_MODEL,
     "The assistant has no chat model to ask. Mail waits, nothing is lost.",
     "Add a chat account, or name one in assistant.yaml.", "tidemark account list"},
    {TIDE_ASSISTANT_ALERT_BUDGET,
     "The tokens of this day are used up. Mail is classified and answered when the next day of UTC "
     "begins; nothing fails.",
     "Wait, or raise budget.tokens_per_day in assistant.yaml and chat.tokens_per_day.",
     "tidemark assistant costs"},
    {NULL, NULL, NULL, NULL},
};

const struct tide_system tide_assistant_system = {
    .name = "assistant",
    .provider = "chat",
    .method_name = tide_chat_method_name,
    .subject = "NAME",
    .next = "assistant onboard EMAIL",
    .oauth = &tide_oauth_keys,
    .purposes = purposes,
    .unit = "files of the assistant",
    .unit_json = "assistant_files",
    .commands = assistant_commands,
    .actions = actions,
    .api = assistant_page_api,
    .objects = assistant_page_objects,
    .advices = advices,
    .tables = tide_assistant_all_tables,
    .open = open_assistant,
    .close = close_assistant,
    .watch = watch,
    .watch_end = watch_end,
    .changed = changed,
    .pushed = pushed,
    .endpoint_check = tide_chat_endpoint_check,
    .account_check = account_check,
    .account_try = account_try,
    .account_put = account_put,
    .account_drop = account_drop,
    .account_leave = account_leave,
    .other_drop = other_drop,
    .status = assistant_standing,
    .settings_files = assistant_settings_files,
};
