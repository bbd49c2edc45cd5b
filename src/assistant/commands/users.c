/* users.c - `tidemark assistant users`: for whom the assistant works, with labels, settings and the state
 * of the sync (J18). */
#include "assistant/commands/list.h"

#include <string.h>

static void show_setting(const char *name, const char *value, void *arg)
{
    static const char *const secret[] = {"key", "token", "secret", "password"};
    tide_json one;
    /* None of ours is one; a value that is stored by mistake must not be shown. */
    for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++)
        if (strstr(name, secret[i]) != NULL)
            value = "(hidden)";
    tide_json_object(&one);
    tide_json_set_cstr(&one, "name", name);
    tide_json_set_cstr(&one, "value", value);
    tide_json_append(arg, &one);
}

static tide_status labels_show(tide_rows db, uint32_t account, tide_json *list, tide_error *err)
{
    struct tide_assistant_labels labels;
    TIDE_TRY(tide_assistant_labels_get(db, account, &labels, err));
    for (int i = 0; i < TIDE_ASSISTANT_LABELS; i++) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "name", tide_assistant_label_name((tide_assistant_label)i));
        tide_json_set_cstr(&one, "id", labels.ids[i][0] == '\0' ? NULL : labels.ids[i]);
        tide_json_append(list, &one);
    }
    return TIDE_OK;
}

struct users {
    struct cli *cli;
    tide_rows db;
    tide_json list;
    tide_status rc;
};

static tide_status user_show(struct users *users, const struct tide_assistant_user *user)
{
    struct cli *cli = users->cli;
    struct tide_assistant_sync sync;
    tide_auto_json labels = {.value = NULL}, settings = {.value = NULL};
    tide_json one;
    char time[32], full[32];
    tide_json_array(&labels);
    tide_json_array(&settings);
    TIDE_TRY(tide_assistant_sync_get(users->db, user->account, &sync, &cli->err));
    TIDE_TRY(labels_show(users->db, user->account, &labels, &cli->err));
    TIDE_TRY(
        tide_assistant_settings_each(users->db, user->account, show_setting, &settings, &cli->err));
    cli_cell(cli, "%s", user->email);
    cli_cell(cli, "%s", assistant_user_state(user));
    cli_cell(cli, "%s", sync.history_id);
    cli_cell(cli, "%s", cli_time(sync.synced_ms, time));
    cli_cell(cli, "%s", cli_time(sync.full_ms, full));
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", user->email);
    tide_json_set_cstr(&one, "state", assistant_user_state(user));
    tide_json_set_u64(&one, "onboarded_unix_ms", user->onboarded_ms);
    tide_json_set_u64(&one, "ended_unix_ms", user->ended_ms);
    tide_json_set_cstr(&one, "history_id", sync.history_id);
    tide_json_set_u64(&one, "synced_unix_ms", sync.synced_ms);
    tide_json_set_u64(&one, "full_sync_unix_ms", sync.full_ms);
    tide_json_set(&one, "labels", &labels);
    tide_json_set(&one, "settings", &settings);
    tide_json_append(&users->list, &one);
    return TIDE_OK;
}

static void show_user(const struct tide_assistant_user *user, void *arg)
{
    struct users *users = arg;
    if (users->rc == TIDE_OK)
        users->rc = user_show(users, user);
}

tide_status cli_assistant_users(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT", "STATE", "HISTORY", "SYNCED", "FULL SYNC"};
    struct users users = {.cli = cli};
    struct tide_assistant_user named;
    tide_status rc = TIDE_OK;
    TIDE_TRY(cli_ledger_read(cli));
    users.db = tide_ledger_rows(cli->ledger);
    if (cli->arguments_count > 0)
        TIDE_TRY(assistant_user(cli, cli->arguments[0], &named));
    tide_json_array(&users.list);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    if (cli->arguments_count > 0)
        show_user(&named, &users);
    else
        rc = tide_assistant_users_each(users.db, show_user, &users, &cli->err);
    cli_table_end(cli, "The assistant works for no account yet.");
    tide_json_set(&cli->json, "users", &users.list);
    return rc == TIDE_OK ? users.rc : rc;
}
