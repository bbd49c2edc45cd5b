/* args.c - parses the command line by the tables of commands. */
#include "cli/cli.h"

#include "base/check.h"
#include "settings/url.h"

#include <stdio.h>

/* ---- finding commands ------------------------------------------------------------ */

static void commands_add(struct cli *cli, size_t *count, const struct cli_command *table)
{
    for (; table->group != NULL; table++) {
        TIDE_ASSERT(*count < CLI_COMMANDS_MAX);
        cli->commands[(*count)++] = table;
    }
}

/* In the order of their first use: accounts, then the systems. */
static void commands_gather(struct cli *cli)
{
    size_t count = 0;
    commands_add(cli, &count, cli_commands_first);
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        commands_add(cli, &count, cli->systems[i]->commands);
    commands_add(cli, &count, cli_commands);
    cli->commands[count] = NULL;
}

static bool group_exists(const struct cli *cli, const char *group)
{
    for (const struct cli_command *const *c = cli->commands; *c != NULL; c++)
        if (strcmp((*c)->group, group) == 0)
            return true;
    return false;
}

static const struct cli_command *command_find(const struct cli *cli, const char *group,
                                              const char *verb)
{
    for (const struct cli_command *const *c = cli->commands; *c != NULL; c++)
        if (strcmp((*c)->group, group) == 0 &&
            ((*c)->verb == NULL || (verb != NULL && strcmp((*c)->verb, verb) == 0)))
            return *c;
    return NULL;
}

/* A command with that verb in a group that is a command itself: `alerts` and `alerts test`. */
static const struct cli_command *verb_find(const struct cli *cli, const char *group,
                                           const char *verb)
{
    for (const struct cli_command *const *c = cli->commands; *c != NULL; c++)
        if (strcmp((*c)->group, group) == 0 && (*c)->verb != NULL && strcmp((*c)->verb, verb) == 0)
            return *c;
    return NULL;
}

/* The most similar word of all groups, or of one group's verbs; NULL: none is similar. */
static const char *nearest_word(const struct cli *cli, const char *group, const char *word)
{
    const char *nearest = NULL;
    size_t best = strlen(word) / 2 + 2;
    for (const struct cli_command *const *c = cli->commands; *c != NULL; c++) {
        const char *candidate = group == NULL                     ? (*c)->group
                                : strcmp((*c)->group, group) == 0 ? (*c)->verb
                                                                  : NULL;
        if (candidate == NULL)
            continue;
        size_t distance = tide_text_distance(tide_text_of(word), tide_text_of(candidate));
        if (distance < best) {
            best = distance;
            nearest = candidate;
        }
    }
    return nearest;
}

static tide_status unknown_word(struct cli *cli, const char *group, const char *word)
{
    const char *nearest = nearest_word(cli, group, word);
    char hint[200];
    if (nearest != NULL)
        (void)snprintf(hint, sizeof hint, "Did you mean `tidemark %s%s%s`?",
                       group == NULL ? "" : group, group == NULL ? "" : " ", nearest);
    else
        (void)snprintf(hint, sizeof hint, "See `tidemark %s%s--help`.", group == NULL ? "" : group,
                       group == NULL ? "" : " ");
    return cli_fail(cli, TIDE_INVALID, hint, "there is no command \"%s%s%.60s\"",
                    group == NULL ? "" : group, group == NULL ? "" : " ", word);
}

/* ---- flags ----------------------------------------------------------------------- */

const struct cli_flag *cli_flag_find(const struct cli_flag *flags, tide_text name)
{
    for (; flags != NULL && flags->name != NULL; flags++)
        if (tide_text_equal(name, tide_text_of(flags->name)))
            return flags;
    return NULL;
}

int cli_argument_bytes(const struct cli_flag *flag)
{
    return (int)strcspn(flag->argument, ":");
}

/* Whether its arguments are another command, which may have flags of its own. */
static bool takes_command(const struct cli_command *command)
{
    return command != NULL && strncmp(command->arguments, "[--] ", 5) == 0;
}

/* Whether a word with a dash in front is a negation in its query. */
static bool takes_query(const struct cli_command *command)
{
    return command != NULL && strstr(command->arguments, "QUERY") != NULL;
}

static tide_status unknown_flag(struct cli *cli, tide_text name)
{
    const struct cli_flag *lists[] = {cli->command == NULL ? NULL : cli->command->flags,
                                      cli_global_flags};
    const char *nearest = NULL;
    size_t best = name.bytes / 2 + 2;
    for (int i = 0; i < 2; i++) {
        for (const struct cli_flag *f = lists[i]; f != NULL && f->name != NULL; f++) {
            size_t distance = tide_text_distance(name, tide_text_of(f->name));
            if (distance < best) {
                best = distance;
                nearest = f->name;
            }
        }
    }
    char hint[200];
    const char *group = cli->command == NULL ? "" : cli->command->group;
    const char *verb = cli->command == NULL || cli->command->verb == NULL ? "" : cli->command->verb;
    if (takes_command(cli->command) && cli->arguments_count > 0)
        (void)snprintf(hint, sizeof hint,
                       "A command with flags goes after `--`: `tidemark %s %s ... -- %.60s%s%.60s "
                       "--%.*s ...`.",
                       group, verb, cli->arguments[0], cli->arguments_count > 1 ? " " : "",
                       cli->arguments_count > 1 ? cli->arguments[1] : "",
                       (int)(name.bytes > 30 ? 30 : name.bytes), name.data);
    else if (nearest != NULL)
        (void)snprintf(hint, sizeof hint, "Did you mean --%s?", nearest);
    else
        (void)snprintf(hint, sizeof hint, "See `tidemark %s%s%s%s--help`.", group,
                       *group ? " " : "", verb, *verb ? " " : "");
    return cli_fail(cli, TIDE_INVALID, hint, "unknown flag --%.*s",
                    (int)(name.bytes > 60 ? 60 : name.bytes), name.data);
}

static tide_status ledger_named(struct cli *cli, const char *url)
{
    if (!tide_ledger_is_postgres(url))
        return cli_fail(
            cli, TIDE_INVALID,
            "Write postgres://HOST/DATABASE. For a ledger in a file, name the directory of its "
            "state.db with --home DIR.",
            "--ledger is not a PostgreSQL URL");
    cli->shared = url;
    return cli_url_refuse_password(cli, url);
}

/* Sets a global flag.  false: it is not a global flag. */
static bool global_set(struct cli *cli, const struct cli_flag *flag, const char *value,
                       tide_status *rc)
{
    if (flag < cli_global_flags)
        return false;
    if (strcmp(flag->name, "home") == 0)
        cli->home = value;
    else if (strcmp(flag->name, "ledger") == 0)
        *rc = ledger_named(cli, value);
    else if (strcmp(flag->name, "json") == 0)
        cli->want_json = true;
    else if (strcmp(flag->name, "verbose") == 0)
        cli->verbose = true;
    else if (strcmp(flag->name, "quiet") == 0)
        cli->quiet = true;
    else if (strcmp(flag->name, "help") == 0)
        cli->want_help = true;
    else if (strcmp(flag->name, "version") == 0)
        cli->want_version = true;
    else if (strncmp(value, "ledger.url=", 11) == 0 && tide_url_has_password(tide_text_of(value)))
        *rc = cli_url_refuse_password(cli, value + 11);
    else if (cli->sets_count < TIDE_SETTINGS_FLAGS_MAX)
        cli->sets[cli->sets_count++] = value;
    else
        *rc = cli_fail(cli, TIDE_INVALID, "Put settings into config.yaml instead.",
                       "more than %d --set flags", TIDE_SETTINGS_FLAGS_MAX);
    return true;
}

static tide_status flag_store(struct cli *cli, const struct cli_flag *flag, bool is_global,
                              const char *value)
{
    tide_status rc = TIDE_OK;
    if (is_global) {
        bool known = global_set(cli, flag, value, &rc);
        TIDE_ASSERT(known);
        return rc;
    }
    for (unsigned i = 0; i < cli->values_count; i++)
        if (cli->values[i].flag == flag)
            return cli_fail(cli, TIDE_INVALID, "Give it once.", "--%s is given twice", flag->name);
    TIDE_ASSERT(cli->values_count < CLI_FLAGS_MAX);
    cli->values[cli->values_count++] = (struct cli_flag_value){flag, value};
    return TIDE_OK;
}

/* Takes `--name`, `--name VALUE` or `--name=VALUE`; *used_out words. */
static tide_status flag_take(struct cli *cli, char **words, int count, int *used_out)
{
    const char *equals = strchr(words[0], '=');
    tide_text name = tide_text_of(words[0] + 2);
    if (equals != NULL)
        name.bytes = (size_t)(equals - words[0]) - 2;
    const struct cli_flag *flag =
        cli->command == NULL ? NULL : cli_flag_find(cli->command->flags, name);
    bool is_global = flag == NULL;
    if (is_global)
        flag = cli_flag_find(cli_global_flags, name);
    if (flag == NULL)
        return unknown_flag(cli, name);

    *used_out = 1;
    if (flag->argument == NULL) {
        if (equals != NULL)
            return cli_fail(cli, TIDE_INVALID, "Remove the value.", "--%s takes no value",
                            flag->name);
        return flag_store(cli, flag, is_global, "");
    }
    if (equals != NULL)
        return flag_store(cli, flag, is_global, equals + 1);
    if (count < 2) {
        char hint[120];
        (void)snprintf(hint, sizeof hint, "Write --%s %.*s.", flag->name, cli_argument_bytes(flag),
                       flag->argument);
        return cli_fail(cli, TIDE_INVALID, hint, "--%s needs a value", flag->name);
    }
    *used_out = 2;
    return flag_store(cli, flag, is_global, words[1]);
}

/* ---- the command line ------------------------------------------------------------ */

static tide_status argument_take(struct cli *cli, const char **group, const char *word)
{
    if (cli->command == NULL && *group == NULL) {
        if (strcmp(word, "help") == 0) { /* `tidemark help jobs`, as in many programs */
            cli->want_help = true;
            return TIDE_OK;
        }
        if (!group_exists(cli, word))
            return unknown_word(cli, NULL, word);
        *group = word;
        cli->command = command_find(cli, word, NULL);
        return TIDE_OK;
    }
    if (cli->command == NULL) {
        cli->command = command_find(cli, *group, word);
        return cli->command != NULL ? TIDE_OK : unknown_word(cli, *group, word);
    }
    if (cli->command->verb == NULL && cli->arguments_count == 0 && cli->values_count == 0) {
        const struct cli_command *command = verb_find(cli, *group, word);
        if (command != NULL) {
            cli->command = command;
            return TIDE_OK;
        }
    }
    if (cli->arguments_count == cli->command->arguments_max) {
        char hint[200];
        (void)snprintf(hint, sizeof hint, "See `tidemark %s%s%s --help`.", cli->command->group,
                       cli->command->verb == NULL ? "" : " ",
                       cli->command->verb == NULL ? "" : cli->command->verb);
        return cli_fail(cli, TIDE_INVALID, hint, "too many arguments: \"%.60s\"", word);
    }
    cli->arguments[cli->arguments_count++] = word;
    return TIDE_OK;
}

static tide_status arguments_complete(struct cli *cli, const char *group)
{
    if (cli->want_help || cli->want_version)
        return TIDE_OK;
    if (group == NULL) {
        cli->command = &cli_command_bare;
        return TIDE_OK;
    }
    char hint[200];
    if (cli->command == NULL) {
        (void)snprintf(hint, sizeof hint, "See `tidemark %s --help`.", group);
        return cli_fail(cli, TIDE_INVALID, hint, "`tidemark %s` needs a subcommand", group);
    }
    if (cli->arguments_count >= cli->command->arguments_min)
        return TIDE_OK;
    (void)snprintf(hint, sizeof hint, "Write `tidemark %s%s%s %s`.", cli->command->group,
                   cli->command->verb == NULL ? "" : " ",
                   cli->command->verb == NULL ? "" : cli->command->verb, cli->command->arguments);
    return cli_fail(cli, TIDE_INVALID, hint, "missing argument: %s", cli->command->arguments);
}

tide_status cli_args_parse(struct cli *cli, int argc, char **argv)
{
    const char *group = NULL;
    bool flags_end = false;
    tide_status rc = TIDE_OK;
    commands_gather(cli);
    /* --json also applies to errors in the words before it. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        cli->want_json = cli->want_json || strcmp(argv[i], "--json") == 0;
    for (int i = 1; rc == TIDE_OK && i < argc;) {
        int used = 1;
        if (!flags_end && strcmp(argv[i], "--") == 0)
            flags_end = true;
        else if (!flags_end && strncmp(argv[i], "--", 2) == 0)
            rc = flag_take(cli, argv + i, argc - i, &used);
        else if (!flags_end && strcmp(argv[i], "-h") == 0)
            cli->want_help = true;
        else if (!flags_end && argv[i][0] == '-' && argv[i][1] != '\0' &&
                 !takes_query(cli->command))
            rc = cli_fail(cli, TIDE_INVALID, "Flags begin with two dashes, such as --help.",
                          "unknown flag %.60s", argv[i]);
        else
            rc = argument_take(cli, &group, argv[i]);
        i += used;
    }
    cli->group = group;
    return rc == TIDE_OK ? arguments_complete(cli, group) : rc;
}

const char *cli_flag(const struct cli *cli, const char *name)
{
    TIDE_ASSERT(cli_flag_find(cli->command->flags, tide_text_of(name)) != NULL);
    for (unsigned i = 0; i < cli->values_count; i++)
        if (strcmp(cli->values[i].flag->name, name) == 0)
            return cli->values[i].value;
    return NULL;
}

tide_status cli_number(struct cli *cli, const char *text, const char *what, uint64_t *number_out)
{
    if (tide_text_to_u64(tide_text_of(text), number_out) && *number_out <= INT64_MAX)
        return TIDE_OK;
    const bool digits = text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
    return cli_wrong(cli,
                     strcmp(what, "the id") == 0
                         ? "Give the number of a job from `tidemark jobs list`."
                         : "Give a whole number.",
                     "%s \"%.60s\" is %s", what, text, digits ? "too large" : "not a number");
}
