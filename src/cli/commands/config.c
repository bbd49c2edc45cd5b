/* config.c - `tidemark config list|get|set|unset|check|path` (E11). */
#include "cli/commands/config.h"

#include "base/limits.h"
#include "ledger/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* `settings`: of all accounts, or of one (E11.2). */
static void setting_to_json(const tide_settings *settings, tide_setting setting, tide_json *json)
{
    const struct tide_setting_info *info = tide_setting_info(setting);
    static const char *const layers[] = {"default", "file", "env", "flag"};
    char name[TIDE_SETTING_NAME_BYTES];
    char value[TIDE_SETTING_TEXT_BYTES], origin[TIDE_SETTING_TEXT_BYTES * 2];
    char env_name[TIDE_SETTING_TEXT_BYTES];
    tide_setting_name(settings, setting, name);
    tide_setting_print(settings, setting, value);
    tide_setting_origin(settings, setting, origin);
    tide_setting_env_name(setting, env_name);
    tide_json_object(json);
    tide_json_set_cstr(json, "name", name);
    tide_json_set_cstr(json, "value", value);
    if (info->text == NULL) {
        tide_json_set_u64(json, "number", tide_setting_u64(settings, setting));
        tide_json_set_u64(json, "min", info->min);
        tide_json_set_u64(json, "max", info->max);
    }
    tide_json_set_cstr(json, "type", tide_setting_type_name(info->type));
    tide_json_set_cstr(json, "unit", info->unit);
    tide_json_set_cstr(json, "choices", info->choices);
    tide_json_set_bool(json, "live", info->live);
    tide_json_set_bool(json, "per_account", info->own);
    tide_json_set_cstr(json, "layer", layers[tide_setting_layer(settings, setting)]);
    tide_json_set_cstr(json, "origin", origin);
    if (!tide_setting_is_own(settings, setting))
        tide_json_set_cstr(json, "environment", env_name);
    tide_json_set_cstr(json, "meaning", info->meaning);
}

static void list_one(struct cli *cli, const tide_settings *settings, tide_setting setting,
                     tide_json *list)
{
    char name[TIDE_SETTING_NAME_BYTES];
    char value[TIDE_SETTING_TEXT_BYTES], origin[TIDE_SETTING_TEXT_BYTES * 2];
    tide_json json;
    setting_to_json(settings, setting, &json);
    tide_json_append(list, &json);
    tide_setting_name(settings, setting, name);
    tide_setting_print(settings, setting, value);
    tide_setting_origin(settings, setting, origin);
    cli_cell(cli, "%s", name);
    cli_cell(cli, "%s", value);
    cli_cell(cli, "%s", tide_setting_info(setting)->unit);
    cli_cell(cli, "%s", origin);
    if (cli->verbose)
        cli_cell(cli, "%s", tide_setting_info(setting)->meaning);
}

/* What is set for one account alone. */
static void list_own(struct cli *cli, const tide_settings *own, tide_json *list)
{
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        if (tide_setting_is_own(own, (tide_setting)i))
            list_one(cli, own, (tide_setting)i, list);
}

tide_status cli_config_list(struct cli *cli)
{
    static const char *const headings[] = {"NAME", "VALUE", "UNIT", "ORIGIN", "MEANING"};
    const bool changed_only = cli_flag(cli, "changed") != NULL;
    const char *account = cli_flag(cli, "account");
    tide_json list;
    TIDE_TRY(cli_settings(cli));
    const tide_settings *settings =
        account == NULL ? cli->settings : tide_settings_of(cli->settings, account);
    tide_json_array(&list);
    cli_table_begin(cli, headings, cli->verbose ? 5 : 4);
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        if ((account == NULL || tide_setting_info((tide_setting)i)->own) &&
            (!changed_only || tide_setting_layer(settings, (tide_setting)i) != TIDE_ORIGIN_DEFAULT))
            list_one(cli, settings, (tide_setting)i, &list);
    size_t cursor = 0;
    const char *other = NULL;
    while (account == NULL && (other = tide_settings_account(cli->settings, &cursor)) != NULL)
        list_own(cli, tide_settings_of(cli->settings, other), &list);
    cli_table_end(cli, "every setting is at its default");
    tide_json_set(&cli->json, "settings", &list);
    if (account != NULL)
        config_tell_unknown(cli, account);
    return TIDE_OK;
}

/* What a name of the command line means: a setting, of all accounts or of one. */
struct named {
    tide_setting setting;
    char account[TIDE_NAME_BYTES_MAX + 1]; /* "": of all */
    char name[TIDE_SETTING_NAME_BYTES];    /* as the file has it */
};

/* The full name: with --account it begins with `accounts.`. */
static tide_status full_name(struct cli *cli, const char *name, struct named *named_out)
{
    const char *account = cli_flag(cli, "account");
    const int bytes =
        account == NULL
            ? snprintf(named_out->name, sizeof named_out->name, "%s", name)
            : snprintf(named_out->name, sizeof named_out->name, "accounts.%s.%s", account, name);
    named_out->account[0] = '\0';
    if (account != NULL && (account[0] == '\0' || strlen(account) > TIDE_NAME_BYTES_MAX))
        return cli_wrong(cli, "`tidemark account list` shows the accounts.",
                         "there is no account \"%.120s\"", account);
    if (account != NULL && strncmp(name, "accounts.", 9) == 0)
        return cli_wrong(cli, "Give the setting's own name, or leave --account out.",
                         "%.120s names an account already", name);
    if (bytes < 0 || (size_t)bytes >= sizeof named_out->name)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark config list` shows all of them.",
                        "there is no setting \"%.120s\"", name);
    return TIDE_OK;
}

static tide_status setting_named(struct cli *cli, const char *name, struct named *named_out)
{
    tide_text account = TIDE_TEXT_NONE;
    TIDE_TRY(full_name(cli, name, named_out));
    if (tide_setting_find(tide_text_of(named_out->name), &named_out->setting))
        return TIDE_OK;
    if (tide_setting_find_own(tide_text_of(named_out->name), &account, &named_out->setting) &&
        account.bytes <= TIDE_NAME_BYTES_MAX) {
        if (!tide_setting_info(named_out->setting)->own)
            return cli_wrong(
                cli, "Set it without `accounts.NAME` or --account.",
                "%s is for all accounts together, which share this process, its ledger "
                "and its network: it cannot be set for one alone",
                tide_setting_info(named_out->setting)->name);
        memcpy(named_out->account, account.data, account.bytes);
        named_out->account[account.bytes] = '\0';
        return TIDE_OK;
    }
    const char *nearest = tide_setting_nearest(tide_text_of(name));
    char hint[200];
    if (nearest != NULL)
        (void)snprintf(hint, sizeof hint, "Did you mean %s?", nearest);
    else
        (void)snprintf(hint, sizeof hint, "`tidemark config list` shows all of them.");
    return cli_fail(cli, TIDE_NOT_FOUND, hint, "there is no setting \"%.120s\"", name);
}

static const tide_settings *settings_of(const struct cli *cli, const struct named *named)
{
    return named->account[0] == '\0' ? cli->settings
                                     : tide_settings_of(cli->settings, named->account);
}

tide_status cli_config_get(struct cli *cli)
{
    struct named named;
    char value[TIDE_SETTING_TEXT_BYTES], origin[TIDE_SETTING_TEXT_BYTES * 2];
    tide_json json;
    TIDE_TRY(setting_named(cli, cli->arguments[0], &named));
    TIDE_TRY(cli_settings(cli));
    const tide_settings *settings = settings_of(cli, &named);
    const struct tide_setting_info *info = tide_setting_info(named.setting);
    tide_setting_print(settings, named.setting, value);
    tide_setting_origin(settings, named.setting, origin);
    if (cli->quiet)
        cli_print(cli, "%s\n", value);
    else
        cli_print(cli, "%s = %s%s%s (%s)\n%s%s\n", named.name, value, info->unit[0] ? " " : "",
                  info->unit, origin, info->meaning,
                  info->live ? "; a running engine follows changes" : "");
    setting_to_json(settings, named.setting, &json);
    tide_json_set(&cli->json, "setting", &json);
    return TIDE_OK;
}

tide_status cli_config_dir_make(struct cli *cli)
{
    char path[CLI_PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s", cli->config_path);
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return cli_hint(
                cli, tide_error_os(&cli->err, errno, "cannot create the directory %.200s", path),
                "Create it yourself, or name another one with --home DIR.");
        *slash = '/';
    }
    return TIDE_OK;
}

static tide_status edit_file(struct cli *cli, const char *name, const char *value)
{
    static const char flag[] = "--set: "; /* prefix that other commands print for such a value */
    const tide_status rc = tide_settings_edit_file(cli->world, cli->config_path, tide_text_of(name),
                                                   tide_text_of(value), cli->mem, &cli->err);
    if (rc == TIDE_INVALID && strncmp(cli->err.text, flag, sizeof flag - 1) == 0) {
        memmove(cli->err.text, cli->err.text + sizeof flag - 1,
                strlen(cli->err.text) + 1 - (sizeof flag - 1));
        cli->exit_code = CLI_EXIT_USAGE;
    }
    return cli_hint(cli, rc, "The file was not changed.");
}

tide_status cli_config_write(struct cli *cli, const char *name, const char *value)
{
    TIDE_TRY(cli_config_dir_make(cli));
    return edit_file(cli, name, value);
}

/* ---- changing ---------------------------------------------------------------------- */

bool config_reload(struct cli *cli, bool *runs_out)
{
    tide_json request;
    json_auto_t *answer = NULL;
    tide_control_request(TIDE_OP_RELOAD, &request);
    const tide_status rc = cli_engine_ask(cli, &request, runs_out, &answer);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return *runs_out && rc == TIDE_OK;
}

/* What the change means for the running engine and for this account. */
static void changed_show(struct cli *cli, const struct named *named)
{
    bool runs = false;
    tide_json json;
    const bool told = config_reload(cli, &runs);
    const tide_settings *settings = settings_of(cli, named);
    if (tide_setting_layer(settings, named->setting) > TIDE_ORIGIN_FILE)
        cli_print(cli, "but the environment or a flag overrides it\n");
    else if (runs && !tide_setting_info(named->setting)->live)
        cli_print(cli, "it takes effect at the next start of the engine\n");
    setting_to_json(settings, named->setting, &json);
    tide_json_set(&cli->json, "setting", &json);
    tide_json_set_cstr(&cli->json, "file", cli->config_path);
    tide_json_set_bool(&cli->json, "engine", told);
    if (named->account[0] != '\0')
        config_tell_unknown(cli, named->account);
}

tide_status cli_config_set(struct cli *cli)
{
    const char *value = cli->arguments[1];
    struct named named;
    TIDE_TRY(setting_named(cli, cli->arguments[0], &named));
    if (tide_setting_info(named.setting)->type == TIDE_TYPE_URL)
        TIDE_TRY(cli_url_refuse_password(cli, value));
    TIDE_TRY(cli_config_write(cli, named.name, value));
    TIDE_TRY(cli_settings(cli));
    if (!cli->quiet)
        cli_print(cli, "%s = %s in %s\n", named.name, value, cli->config_path);
    changed_show(cli, &named);
    return TIDE_OK;
}

tide_status cli_config_unset(struct cli *cli)
{
    struct named named;
    char value[TIDE_SETTING_TEXT_BYTES], origin[TIDE_SETTING_TEXT_BYTES * 2];
    bool found = false;
    TIDE_TRY(setting_named(cli, cli->arguments[0], &named));
    TIDE_TRY(
        cli_hint(cli,
                 tide_settings_unset_file(cli->world, cli->config_path, tide_text_of(named.name),
                                          cli->mem, &found, &cli->err),
                 "The file was not changed."));
    TIDE_TRY(cli_settings(cli));
    tide_setting_print(settings_of(cli, &named), named.setting, value);
    tide_setting_origin(settings_of(cli, &named), named.setting, origin);
    if (!cli->quiet)
        cli_print(cli, "%s is %s in %s; it is %s (%s)\n", named.name,
                  found ? "no longer set" : "not set", cli->config_path, value, origin);
    tide_json_set_bool(&cli->json, "removed", found);
    changed_show(cli, &named);
    return TIDE_OK;
}

tide_status cli_config_path(struct cli *cli)
{
    cli_print(cli, "%s\n", cli->config_path);
    tide_json_set_cstr(&cli->json, "file", cli->config_path);
    tide_json_set_bool(&cli->json, "exists", access(cli->config_path, F_OK) == 0);
    return TIDE_OK;
}

/* ---- accounts that are not there ------------------------------------------------------ */

struct known {
    const char *name;
    bool found;
};

static bool see_account(const struct tide_account_row *row, void *arg)
{
    struct known *known = arg;
    known->found = known->found || strcmp(row->name, known->name) == 0;
    return !known->found;
}

/* An account with settings of its own may be added later: that is no error of the file. */
static tide_status tell_unknown(struct cli *cli, const char *account, tide_json *unknown)
{
    struct known known = {.name = account};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_accounts(cli->ledger, see_account, &known, &cli->err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    if (known.found)
        return TIDE_OK;
    tide_json_append_cstr(unknown, account);
    cli_print(cli, "there is no account %s: its settings have no effect until it is added\n",
              account);
    return TIDE_OK;
}

void config_tell_unknown(struct cli *cli, const char *account)
{
    tide_json unknown;
    tide_json_array(&unknown);
    /* The settings were read or written: a ledger that cannot be read is another command's matter. */
    if (tell_unknown(cli, account, &unknown) != TIDE_OK) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
    }
    tide_json_set(&cli->json, "unknown_accounts", &unknown);
}

static tide_status tell_all_unknown(struct cli *cli)
{
    size_t cursor = 0;
    const char *account = NULL;
    tide_status rc = TIDE_OK;
    tide_json unknown;
    tide_json_array(&unknown);
    while (rc == TIDE_OK && (account = tide_settings_account(cli->settings, &cursor)) != NULL)
        rc = tell_unknown(cli, account, &unknown);
    tide_json_set(&cli->json, "unknown_accounts", &unknown);
    return rc;
}

static unsigned count_own(const struct cli *cli)
{
    size_t cursor = 0;
    unsigned count = 0;
    const char *account = NULL;
    while ((account = tide_settings_account(cli->settings, &cursor)) != NULL)
        for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
            count += tide_setting_is_own(tide_settings_of(cli->settings, account), (tide_setting)i);
    return count;
}

tide_status cli_config_check(struct cli *cli)
{
    unsigned changed = 0;
    TIDE_TRY(cli_settings(cli));
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        changed += tide_setting_layer(cli->settings, (tide_setting)i) != TIDE_ORIGIN_DEFAULT;
    const unsigned own = count_own(cli);
    cli_print(cli, "%d settings are valid, %u of them not at their default\n", TIDE_SETTINGS_COUNT,
              changed);
    if (own > 0)
        cli_print(cli, "%u value%s for one account alone %s valid\n", own, own == 1 ? "" : "s",
                  own == 1 ? "is" : "are");
    tide_json_set_bool(&cli->json, "good", true);
    tide_json_set_u64(&cli->json, "settings", TIDE_SETTINGS_COUNT);
    tide_json_set_u64(&cli->json, "changed", changed);
    tide_json_set_u64(&cli->json, "own", own);
    tide_json_set_cstr(&cli->json, "file", cli->config_path);
    return tell_all_unknown(cli);
}
