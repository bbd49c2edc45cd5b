/* rules.c - `tidemark assistant rules test MESSAGE`: which way a message goes, and why (J20). */
#include "assistant/commands/home.h"
#include "assistant/rules/router.h"
#include "assistant/rules/triage.h"
#include "base/limits.h"

#include <string.h>

enum { MESSAGE_BYTES_MAX = 64 << 20, ARENA_BYTES_MAX = 64 << 20 };

/* ---- the message: a file, or standard input ---- */

static tide_status input_read(struct cli *cli, tide_buf *raw)
{
    char chunk[16384];
    size_t count = 0;
    while ((count = fread(chunk, 1, sizeof chunk, stdin)) > 0)
        if (tide_buf_add(raw, chunk, count) != TIDE_OK)
            return cli_fail(cli, TIDE_FULL, "Give one message.", "standard input is too long");
    return TIDE_OK;
}

static tide_status message_read(struct cli *cli, const char *path, tide_buf *raw)
{
    if (strcmp(path, "-") == 0)
        return input_read(cli, raw);
    return cli_hint(cli, tide_file_read(cli->world, path, MESSAGE_BYTES_MAX, raw, &cli->err),
                    "Give the file of a message (.eml), or - for standard input.");
}

/* ---- the rules, one by one ---- */

struct tested {
    struct cli *cli;
    tide_json conditions;
};

static void show_condition(void *arg, const char *condition, bool holds, const char *why)
{
    struct tested *tested = arg;
    tide_json one;
    cli_print(tested->cli, "    %s %s: %s\n", holds ? "yes" : "no ", condition, why);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "condition", condition);
    tide_json_set_bool(&one, "holds", holds);
    tide_json_set_cstr(&one, "why", why);
    tide_json_append(&tested->conditions, &one);
}

static void show_rules(struct cli *cli, const struct tide_assistant_config *config,
                       const struct tide_letter *letter)
{
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < config->rules_count; i++) {
        const struct tide_rule *rule = &config->rules[i];
        struct tested tested = {.cli = cli};
        tide_json one;
        tide_json_object(&one);
        tide_json_array(&tested.conditions);
        cli_print(cli, "  rule %.*s (line %u)\n", (int)rule->name.bytes, rule->name.data,
                  rule->line);
        const bool applies = tide_rule_applies(rule, letter, show_condition, &tested);
        tide_json_set_text(&one, "rule", rule->name);
        tide_json_set_u64(&one, "line", rule->line);
        tide_json_set_bool(&one, "applies", applies);
        tide_json_set(&one, "conditions", &tested.conditions);
        tide_json_append(&list, &one);
    }
    tide_json_set(&cli->json, "rules", &list);
}

static void show_route(struct cli *cli, const struct tide_route *route)
{
    const tide_text none = TIDE_TEXT("");
    const tide_text profile = route->profile != NULL ? route->profile->name : none;
    if (route->profile != NULL)
        cli_print(cli, "It goes to the agent %.*s", (int)profile.bytes, profile.data);
    else
        cli_print(cli, "It goes to the pipeline");
    if (route->rule != NULL) /* its conditions are shown above */
        cli_print(cli, ", by the rule %.*s.\n", (int)route->rule->name.bytes,
                  route->rule->name.data);
    else
        cli_print(cli, ": no rule applies.\n");
    tide_json_set_cstr(&cli->json, "outcome", route->profile != NULL ? "agent" : "pipeline");
    tide_json_set_text(&cli->json, "profile", profile);
    tide_json_set_text(&cli->json, "decided_by", route->rule != NULL ? route->rule->name : none);
    tide_json_set_cstr(&cli->json, "why", route->why);
}

/* What is decided without a model (tier 1). */
static void show_triage(struct cli *cli, const struct tide_assistant_config *config,
                        const struct tide_letter *letter)
{
    struct tide_triage triage;
    tide_style_from from;
    tide_triage_look(config, letter, &triage);
    const size_t style =
        tide_style_resolve(config, tide_letter_sender(letter), TIDE_STYLE_NONE, &from);
    if (triage.blacklisted)
        cli_print(cli, "It is blacklisted (%s): FYI, and no model is asked.\n", triage.why);
    else if (triage.automated)
        cli_print(
            cli,
            "It is automated (%s): the model gets that information, and no reply is drafted.\n",
            triage.why);
    else
        cli_print(cli, "The model decides on its category.\n");
    cli_print(cli, "A reply would be written in style %.*s, %s.\n",
              (int)config->styles[style].name.bytes, config->styles[style].name.data,
              tide_style_from_name(from));
    tide_json_set_bool(&cli->json, "blacklisted", triage.blacklisted);
    tide_json_set_bool(&cli->json, "automated", triage.automated);
    tide_json_set_cstr(&cli->json, "triage", triage.why);
    tide_json_set_text(&cli->json, "style", config->styles[style].name);
}

static tide_status test(struct cli *cli, const struct tide_assistant_config *config, tide_text raw)
{
    struct tide_letter letter;
    struct tide_route route;
    tide_arena arena;
    tide_arena_init(&arena, cli->mem, ARENA_BYTES_MAX);
    const tide_status rc = tide_letter_read(raw, &arena, &letter);
    if (rc == TIDE_OK) {
        const tide_text sender = tide_letter_sender(&letter);
        tide_route_choose(config, &letter, &route);
        cli_print(cli, "From %.*s: %.*s\n", (int)sender.bytes, sender.data,
                  (int)letter.subject.bytes, letter.subject.data);
        show_rules(cli, config, &letter);
        show_route(cli, &route);
        if (route.profile == NULL)
            show_triage(cli, config, &letter);
    }
    tide_arena_done(&arena);
    return rc == TIDE_OK ? rc : cli_fail(cli, rc, "Free some memory.", "out of memory");
}

tide_status cli_assistant_rules(struct cli *cli)
{
    struct tide_assistant_config *config = NULL;
    tide_auto_buf raw = tide_buf_heap(MESSAGE_BYTES_MAX);
    if (strcmp(cli->arguments[0], "test") != 0)
        return cli_wrong(cli, "Run `tidemark assistant rules test MESSAGE`.",
                         "\"%.60s\" is not something to do with rules", cli->arguments[0]);
    TIDE_TRY(message_read(cli, cli->arguments[1], &raw));
    TIDE_TRY(assistant_config(cli, &config));
    const tide_status rc = test(cli, config, (tide_text){raw.data, raw.bytes});
    tide_assistant_config_free(config);
    return rc;
}
