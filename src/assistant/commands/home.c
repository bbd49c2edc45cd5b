/* home.c - what the commands of the assistant share (home.h). */
#include "assistant/commands/home.h"

#include "assistant/account/account.h"
#include "assistant/assistant.h"
#include "assistant/budget/budget.h"

#include <string.h>
#include <unistd.h>

tide_status assistant_path_beside(const char *config_path, char path_out[CLI_PATH_BYTES],
                                  tide_error *err)
{
    const char *slash = strrchr(config_path, '/');
    const int folder = slash != NULL ? (int)(slash - config_path) + 1 : 0;
    if (snprintf(path_out, CLI_PATH_BYTES, "%.*sassistant.yaml", folder, config_path) >=
        CLI_PATH_BYTES)
        return tide_error_set(err, TIDE_INVALID, "the path of assistant.yaml is too long");
    return TIDE_OK;
}

tide_status assistant_config_path(struct cli *cli, char path_out[CLI_PATH_BYTES])
{
    return cli_hint(cli, assistant_path_beside(cli->config_path, path_out, &cli->err),
                    "Use a shorter --home.");
}

tide_status assistant_config(struct cli *cli, struct tide_assistant_config **config_out)
{
    char path[CLI_PATH_BYTES];
    TIDE_TRY(assistant_config_path(cli, path));
    const tide_status rc = tide_assistant_config_load(path, (const char *const *)environ, cli->mem,
                                                      config_out, &cli->err);
    if (rc == TIDE_NOT_FOUND)
        return cli_fail(cli, rc, "Run `tidemark assistant onboard`: it writes one to begin with.",
                        "there is no configuration %.300s", path);
    return cli_hint(cli, rc, "Correct it there; nothing was changed.");
}

tide_status assistant_settings_files(const char *config_path, tide_mem *mem,
                                     void (*visit)(const char *name, void *arg), void *arg,
                                     tide_error *err)
{
    struct tide_assistant_config *config = NULL;
    struct tide_assistant_files files;
    char path[CLI_PATH_BYTES];
    TIDE_TRY(assistant_path_beside(config_path, path, err));
    tide_assistant_files_init(&files, mem);
    tide_status rc = tide_assistant_config_load_files(path, (const char *const *)environ, mem,
                                                      &files, &config, err);
    tide_assistant_config_free(config);
    for (const struct tide_assistant_file_seen *seen = files.first; seen != NULL; seen = seen->next)
        if (seen->read)
            visit(seen->name, arg);
    tide_assistant_files_done(&files);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* ---- the chat account ---- */

tide_status assistant_chat_named(struct cli *cli, const char *name,
                                 struct tide_assistant_account *account_out)
{
    const tide_rows db = tide_ledger_rows(cli->ledger);
    bool has = false;
    TIDE_TRY(tide_rows_has(db, "assistant_account", "the chat accounts", &has, &cli->err));
    const tide_status rc =
        has ? tide_assistant_account_choose(db, name, account_out, &cli->err)
            : tide_error_set(&cli->err, TIDE_NOT_FOUND,
                             "there is no chat account: `tidemark account add chat NAME --model "
                             "MODEL`");
    return cli_hint(cli, rc,
                    "`tidemark account list` shows the accounts; docs/chat.md has the flags of "
                    "other servers.");
}

tide_status assistant_chat(struct cli *cli, struct tide_assistant_account *account_out)
{
    struct tide_assistant_config *config = NULL;
    char name[TIDE_ASSISTANT_NAME_BYTES];
    TIDE_TRY(assistant_config(cli, &config));
    (void)snprintf(name, sizeof name, "%.*s", (int)config->model_account.bytes,
                   config->model_account.bytes == 0 ? "" : config->model_account.data);
    tide_assistant_config_free(config);
    return assistant_chat_named(cli, name, account_out);
}

struct over {
    uint32_t account;
    uint64_t day;
    bool found;
};

static bool see_alert(const struct tide_alert_row *row, void *arg)
{
    struct over *over = arg;
    over->found = over->found || (row->account == over->account &&
                                  strcmp(row->condition, TIDE_ASSISTANT_ALERT_BUDGET) == 0 &&
                                  tide_assistant_day_of(row->since_unix_ms) == over->day);
    return !over->found;
}

bool assistant_is_over(tide_ledger *ledger, uint32_t account, uint64_t now_unix_ms)
{
    struct over over = {.account = account, .day = tide_assistant_day_of(now_unix_ms)};
    return tide_ledger_alerts(ledger, see_alert, &over, NULL) == TIDE_OK && over.found;
}

/* ---- users ---- */

tide_status assistant_used(struct cli *cli)
{
    bool has = false;
    TIDE_TRY(tide_rows_has(tide_ledger_rows(cli->ledger), "assistant_user", "the assistant's users",
                           &has, &cli->err));
    return has ? TIDE_OK
               : cli_fail(cli, TIDE_NOT_FOUND, "Run `tidemark assistant onboard EMAIL`.",
                          "the assistant works for no account yet");
}

const char *assistant_user_state(const struct tide_assistant_user *user)
{
    return user->ended_ms > 0 ? "ended" : user->onboarded_ms > 0 ? "ready" : "onboarding";
}

struct only {
    struct tide_assistant_user user;
    size_t count;
};

static void count_user(const struct tide_assistant_user *user, void *arg)
{
    struct only *only = arg;
    only->user = *user;
    only->count++;
}

tide_status assistant_user(struct cli *cli, const char *email, struct tide_assistant_user *user_out)
{
    const tide_rows db = tide_ledger_rows(cli->ledger);
    struct only only = {.count = 0};
    TIDE_TRY(assistant_used(cli));
    if (email != NULL) {
        const tide_status rc = tide_assistant_user_named(db, email, user_out, &cli->err);
        if (rc != TIDE_NOT_FOUND)
            return rc;
        return cli_fail(cli, rc, "`tidemark assistant status` lists them.",
                        "the assistant does not work for %.200s", email);
    }
    TIDE_TRY(tide_assistant_users_each(db, count_user, &only, &cli->err));
    if (only.count == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "Run `tidemark assistant onboard EMAIL`.",
                        "the assistant works for no account yet");
    if (only.count > 1)
        return cli_wrong(cli, "Name one with --account.", "the assistant works for %zu accounts",
                         only.count);
    *user_out = only.user;
    return TIDE_OK;
}

tide_status assistant_no_thread(struct cli *cli, const char *email, const char *thread_id)
{
    return cli_fail(cli, TIDE_NOT_FOUND,
                    "`tidemark assistant show` lists the threads that it knows.",
                    "the assistant knows no thread %.100s of %.200s", thread_id, email);
}
