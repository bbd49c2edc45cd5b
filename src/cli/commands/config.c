/* config.c - `tidemark config list|get|set|check` (E11). */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static void setting_to_json(struct cli *cli, tide_setting setting, tide_json *json)
{
    const struct tide_setting_info *info = tide_setting_info(setting);
    static const char *const layers[] = {"default", "file", "env", "flag"};
    char value[TIDE_SETTING_TEXT_BYTES], origin[TIDE_SETTING_TEXT_BYTES * 2];
    char env_name[TIDE_SETTING_TEXT_BYTES];
    tide_setting_print(cli->settings, setting, value);
    tide_setting_origin(cli->settings, setting, origin);
    tide_setting_env_name(setting, env_name);
    tide_json_object(json);
    tide_json_set_cstr(json, "name", info->name);
    tide_json_set_cstr(json, "value", value);
    if (info->text == NULL) {
        tide_json_set_u64(json, "number", tide_setting_u64(cli->settings, setting));
        tide_json_set_u64(json, "min", info->min);
        tide_json_set_u64(json, "max", info->max);
    }
    tide_json_set_cstr(json, "type", tide_setting_type_name(info->type));
    tide_json_set_cstr(json, "unit", info->unit);
    tide_json_set_cstr(json, "choices", info->choices);
    tide_json_set_bool(json, "live", info->live);
    tide_json_set_cstr(json, "layer", layers[tide_setting_layer(cli->settings, setting)]);
    tide_json_set_cstr(json, "origin", origin);
    tide_json_set_cstr(json, "environment", env_name);
    tide_json_set_cstr(json, "meaning", info->meaning);
}

tide_status cli_config_list(struct cli *cli)
{
    static const char *const headings[] = {"NAME", "VALUE", "UNIT", "ORIGIN", "MEANING"};
    bool changed_only = cli_flag(cli, "changed") != NULL;
    tide_json list;
    TIDE_TRY(cli_settings(cli));
    tide_json_array(&list);
    cli_table_begin(cli, headings, cli->verbose ? 5 : 4);
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++) {
        tide_setting setting = (tide_setting)i;
        char value[TIDE_SETTING_TEXT_BYTES], origin[TIDE_SETTING_TEXT_BYTES * 2];
        tide_json json;
        if (changed_only && tide_setting_layer(cli->settings, setting) == TIDE_ORIGIN_DEFAULT)
            continue;
        setting_to_json(cli, setting, &json);
        tide_json_append(&list, &json);
        tide_setting_print(cli->settings, setting, value);
        tide_setting_origin(cli->settings, setting, origin);
        cli_cell(cli, "%s", tide_setting_info(setting)->name);
        cli_cell(cli, "%s", value);
        cli_cell(cli, "%s", tide_setting_info(setting)->unit);
        cli_cell(cli, "%s", origin);
        if (cli->verbose)
            cli_cell(cli, "%s", tide_setting_info(setting)->meaning);
    }
    cli_table_end(cli, "every setting is at its default");
    tide_json_set(&cli->json, "settings", &list);
    return TIDE_OK;
}

static tide_status setting_named(struct cli *cli, const char *name, tide_setting *setting_out)
{
    if (tide_setting_find(tide_text_of(name), setting_out))
        return TIDE_OK;
    const char *nearest = tide_setting_nearest(tide_text_of(name));
    char hint[200];
    if (nearest != NULL)
        (void)snprintf(hint, sizeof hint, "Did you mean %s?", nearest);
    else
        (void)snprintf(hint, sizeof hint, "`tidemark config list` shows all of them.");
    return cli_fail(cli, TIDE_NOT_FOUND, hint, "there is no setting \"%.80s\"", name);
}

tide_status cli_config_get(struct cli *cli)
{
    tide_setting setting = TIDE_SETTINGS_COUNT;
    char value[TIDE_SETTING_TEXT_BYTES], origin[TIDE_SETTING_TEXT_BYTES * 2];
    tide_json json;
    TIDE_TRY(setting_named(cli, cli->arguments[0], &setting));
    TIDE_TRY(cli_settings(cli));
    tide_setting_print(cli->settings, setting, value);
    tide_setting_origin(cli->settings, setting, origin);
    if (cli->quiet)
        cli_print(cli, "%s\n", value);
    else
        cli_print(cli, "%s = %s%s%s (%s)\n%s%s\n", tide_setting_info(setting)->name, value,
                  tide_setting_info(setting)->unit[0] ? " " : "", tide_setting_info(setting)->unit,
                  origin, tide_setting_info(setting)->meaning,
                  tide_setting_info(setting)->live ? "; a running engine follows changes" : "");
    setting_to_json(cli, setting, &json);
    tide_json_set(&cli->json, "setting", &json);
    return TIDE_OK;
}

/* Creates the parent directories of the file on first use. */
static tide_status config_dir_make(struct cli *cli)
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

tide_status cli_config_set(struct cli *cli)
{
    const char *name = cli->arguments[0];
    const char *value = cli->arguments[1];
    tide_setting setting = TIDE_SETTINGS_COUNT;
    bool runs = false;
    tide_json request, json;
    json_t *answer = NULL;
    TIDE_TRY(setting_named(cli, name, &setting));
    if (tide_setting_info(setting)->type == TIDE_TYPE_URL)
        TIDE_TRY(cli_url_refuse_password(cli, value));
    TIDE_TRY(config_dir_make(cli));
    TIDE_TRY(edit_file(cli, name, value));
    TIDE_TRY(cli_settings(cli));
    /* Only a hint: a running engine notices the changed file by itself (E11.1). */
    tide_control_request(TIDE_OP_RELOAD, &request);
    tide_status reloaded = cli_engine_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    cli->hint[0] = '\0';

    bool higher = tide_setting_layer(cli->settings, setting) > TIDE_ORIGIN_FILE;
    if (!cli->quiet)
        cli_print(cli, "%s = %s in %s\n", name, value, cli->config_path);
    if (higher)
        cli_print(cli, "but the environment or a flag overrides it\n");
    else if (runs && !tide_setting_info(setting)->live)
        cli_print(cli, "it takes effect at the next start of the engine\n");
    setting_to_json(cli, setting, &json);
    tide_json_set(&cli->json, "setting", &json);
    tide_json_set_cstr(&cli->json, "file", cli->config_path);
    tide_json_set_bool(&cli->json, "engine", runs && reloaded == TIDE_OK);
    return TIDE_OK;
}

tide_status cli_config_check(struct cli *cli)
{
    unsigned changed = 0;
    TIDE_TRY(cli_settings(cli));
    for (int i = 0; i < TIDE_SETTINGS_COUNT; i++)
        changed += tide_setting_layer(cli->settings, (tide_setting)i) != TIDE_ORIGIN_DEFAULT;
    cli_print(cli, "%d settings are valid, %u of them not at their default\n", TIDE_SETTINGS_COUNT,
              changed);
    tide_json_set_bool(&cli->json, "good", true);
    tide_json_set_u64(&cli->json, "settings", TIDE_SETTINGS_COUNT);
    tide_json_set_u64(&cli->json, "changed", changed);
    tide_json_set_cstr(&cli->json, "file", cli->config_path);
    return TIDE_OK;
}
