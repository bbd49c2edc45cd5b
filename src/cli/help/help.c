/* help.c - prints help from the tables of commands, flags and examples. */
#include "cli/cli.h"

#include "base/check.h"

#include <stdio.h>

/* ---- lines ----------------------------------------------------------------------------- */

static void help_flags(struct cli *cli, const struct cli_flag *flags)
{
    for (; flags != NULL && flags->name != NULL; flags++) {
        char head[60];
        (void)snprintf(head, sizeof head, "--%s%s%.*s", flags->name,
                       flags->argument == NULL ? "" : " ",
                       flags->argument == NULL ? 0 : cli_argument_bytes(flags),
                       flags->argument == NULL ? "" : flags->argument);
        cli_print(cli, "  %-22s %s\n", head, flags->meaning);
    }
}

static void help_command_line(struct cli *cli, const struct cli_command *c)
{
    char head[80];
    (void)snprintf(head, sizeof head, "%s%s%s%s%s", c->group, c->verb == NULL ? "" : " ",
                   c->verb == NULL ? "" : c->verb, *c->arguments ? " " : "", c->arguments);
    /* A long one gets a line of its own, so that the sentences stay in one column. */
    if (strlen(head) > 26)
        cli_print(cli, "  %s\n  %-26s %s\n", head, "", c->meaning);
    else
        cli_print(cli, "  %-26s %s\n", head, c->meaning);
}

/* What a PROVIDER may be, what is named for it, and what a sign-in may be for. */
static void help_providers(struct cli *cli)
{
    cli_print(cli, "\nProviders:\n");
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const struct tide_system *system = cli->systems[i];
        char head[60];
        if (system->provider[0] == '\0')
            continue;
        (void)snprintf(head, sizeof head, "%s %s", system->provider, system->subject);
        cli_print(cli, "  %-22s --for", head);
        for (size_t k = 0; system->purposes[k].name != NULL; k++)
            cli_print(cli, "%s %s%s", k == 0 ? "" : ",", system->purposes[k].name,
                      k == 0 ? " (default)" : "");
        cli_print(cli, "\n");
    }
}

/* The other commands of a group that is a command itself. */
static void help_verbs(struct cli *cli, const struct cli_command *command)
{
    bool any = false;
    for (const struct cli_command *const *c = cli->commands; *c != NULL; c++) {
        if (command->verb != NULL || *c == command || strcmp((*c)->group, command->group) != 0)
            continue;
        cli_print(cli, "%s", any ? "" : "\nCommands:\n");
        help_command_line(cli, *c);
        any = true;
    }
}

/* What a system says of a command beyond its sentence. */
static void help_details(struct cli *cli, const struct cli_command *command)
{
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const struct cli_details *details = cli->systems[i]->details;
        if (strcmp(cli->systems[i]->name, command->group) != 0 || command->verb == NULL)
            continue;
        for (; details != NULL && details->verb != NULL; details++)
            if (strcmp(details->verb, command->verb) == 0)
                cli_print(cli, "\n%s", details->text);
    }
}

/* ---- examples ------------------------------------------------------------------------ */

static void help_example(struct cli *cli, const struct cli_example *example)
{
    char head[120];
    (void)snprintf(head, sizeof head, "tidemark%s%s", *example->line ? " " : "", example->line);
    if (strlen(head) > 44)
        cli_print(cli, "  %s\n  %-44s %s\n", head, "", example->words);
    else
        cli_print(cli, "  %-44s %s\n", head, example->words);
}

/* Whether it is of this command, or of a group (verb NULL). */
static bool is_of(const struct cli_example *example, const char *group, const char *verb)
{
    const tide_text command = tide_text_of(example->command);
    tide_text rest = command;
    if (!tide_text_equal(tide_text_word(&rest), tide_text_of(group)))
        return false;
    return verb == NULL || tide_text_equal(tide_text_word(&rest), tide_text_of(verb));
}

static bool help_examples_of(struct cli *cli, const struct cli_example *examples, const char *group,
                             const char *verb, bool any)
{
    for (; examples != NULL && examples->line != NULL; examples++) {
        if (!is_of(examples, group, verb))
            continue;
        cli_print(cli, "%s", any ? "" : "\nExamples:\n");
        help_example(cli, examples);
        any = true;
    }
    return any;
}

static void help_examples(struct cli *cli, const char *group, const char *verb)
{
    bool any = help_examples_of(cli, cli_examples, group, verb, false);
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        any = help_examples_of(cli, cli->systems[i]->examples, group, verb, any);
}

/* ---- one command, one group, all of them ----------------------------------------------- */

static void help_command(struct cli *cli, const struct cli_command *command)
{
    cli_print(cli, "tidemark %s%s%s%s%s%s\n%s\n", command->group, command->verb == NULL ? "" : " ",
              command->verb == NULL ? "" : command->verb, *command->arguments ? " " : "",
              command->arguments, command->flags == NULL ? "" : " [flags]", command->meaning);
    if (strncmp(command->arguments, "PROVIDER", 8) == 0)
        help_providers(cli);
    if (command->flags != NULL) {
        cli_print(cli, "\nFlags:\n");
        help_flags(cli, command->flags);
    }
    help_details(cli, command);
    help_verbs(cli, command);
    help_examples(cli, command->group, command->verb);
}

static void help_group(struct cli *cli, const char *group)
{
    for (const struct cli_command *const *c = cli->commands; *c != NULL; c++)
        if (strcmp(group, (*c)->group) == 0)
            help_command_line(cli, *c);
}

/* A system has a section of its own, with its name as the heading. */
static void help_systems(struct cli *cli)
{
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const char *name = cli->systems[i]->name;
        cli_print(cli, "\n%c%s:\n",
                  name[0] >= 'a' && name[0] <= 'z' ? name[0] - 'a' + 'A' : name[0], name + 1);
        help_group(cli, name);
    }
}

/* In the order in which a user comes to need them; the engine is last. */
static void help_sections(struct cli *cli)
{
    for (const struct cli_section *section = cli_sections; section->title != NULL; section++) {
        if (section->groups == NULL) {
            help_systems(cli);
            continue;
        }
        cli_print(cli, "\n%s:\n", section->title);
        tide_text groups = tide_text_of(section->groups);
        while (groups.bytes > 0) {
            char group[40];
            const tide_text word = tide_text_word(&groups);
            (void)snprintf(group, sizeof group, "%.*s", (int)word.bytes, word.data);
            help_group(cli, group);
        }
    }
}

static void help_program(struct cli *cli)
{
    cli_print(cli, "tidemark COMMAND [flags]\nMirror your cloud accounts onto your own disk.\n"
                   "\nFirst steps:\n");
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const struct cli_example *first = cli->systems[i]->examples;
        for (; first != NULL && first->line != NULL; first++)
            if (first->command[0] == '\0')
                help_example(cli, first);
    }
    help_example(cli, &(struct cli_example){"", "", "show where things stand, and the next step"});
    help_sections(cli);
    cli_print(cli, "\n`tidemark COMMAND --help` shows the flags of a command, with examples.\n");
}

void cli_help(struct cli *cli)
{
    if (cli->command != NULL) {
        help_command(cli, cli->command);
    } else if (cli->group != NULL) {
        cli_print(cli, "tidemark %s [flags]\n\nCommands:\n", cli->group);
        help_group(cli, cli->group);
        help_examples(cli, cli->group, NULL);
    } else {
        help_program(cli);
    }
    cli_print(cli, "\nGlobal flags:\n");
    help_flags(cli, cli_global_flags);
    cli_print(cli, "\nExit codes: 0 done, 1 failed, 2 usage, 3 finished with bad items or "
                   "findings,\n4 sign-in needed, 5 interrupted.\n");
}
