/* routing.c - the section rules (J8). */
#include "assistant/config/inside.h"

enum { VALUE_BYTES_MAX = 500 };

static const char *profile_named(const void *arg, size_t index)
{
    return ((const struct tide_profile *)arg)[index].name.data;
}

static tide_status read_profile(struct tide_config_reader *reader, const struct tide_node *node,
                                struct tide_rule *rule)
{
    const struct tide_assistant_config *config = reader->config;
    tide_text name = TIDE_TEXT_NONE;
    TIDE_TRY(tide_config_line(reader, node, TIDE_ASSISTANT_NAME_BYTES_MAX, &name));
    for (size_t i = 0; i < config->profiles_count; i++) {
        if (tide_text_equal(config->profiles[i].name, name)) {
            rule->profile = i;
            return TIDE_OK;
        }
    }
    return tide_config_unknown(
        reader, node, "profile", name,
        tide_config_nearest(name, profile_named, config->profiles, config->profiles_count));
}

static tide_status read_outcome(struct tide_config_reader *reader, const struct tide_node *node,
                                struct tide_rule *rule)
{
    const struct tide_node *route = tide_node_get(node, "route");
    const struct tide_node *profile = tide_node_get(node, "profile");
    tide_text outcome = TIDE_TEXT_NONE;
    if (route == NULL)
        return tide_config_refuse(reader, node, "has no route: pipeline or agent");
    TIDE_TRY(tide_config_line(reader, route, TIDE_ASSISTANT_NAME_BYTES_MAX, &outcome));
    rule->agent = tide_text_equal(outcome, TIDE_TEXT("agent"));
    if (!rule->agent && !tide_text_equal(outcome, TIDE_TEXT("pipeline")))
        return tide_config_refuse(reader, route, "is neither pipeline nor agent");
    if (rule->agent != (profile != NULL))
        return tide_config_refuse(reader, node,
                                  rule->agent ? "goes to an agent, but has no profile"
                                              : "has a profile, but goes to the pipeline");
    return profile == NULL ? TIDE_OK : read_profile(reader, profile, rule);
}

static bool is_header_name(tide_text name)
{
    for (size_t i = 0; i < name.bytes; i++)
        if (name.data[i] <= ' ' || (unsigned char)name.data[i] >= 0x7f || name.data[i] == ':')
            return false;
    return name.bytes > 0 && name.bytes <= 100;
}

static tide_status read_headers(struct tide_config_reader *reader, const struct tide_node *node,
                                struct tide_rule *rule)
{
    if (node->kind != TIDE_NODE_MAP || node->count == 0 || node->count > TIDE_ASSISTANT_VALUES_MAX)
        return tide_config_refuse(reader, node, "expected header: pattern");
    struct tide_rule_header *headers =
        tide_arena_take(reader->arena, node->count * sizeof *headers);
    if (headers == NULL)
        return tide_config_no_memory(reader);
    rule->headers = headers;
    for (const struct tide_node *one = node->first; one != NULL; one = one->next) {
        struct tide_rule_header *header = &headers[rule->headers_count++];
        tide_error why = {TIDE_OK, 0, ""};
        if (!is_header_name(one->key))
            return tide_config_refuse(reader, one, "is not the name of a header");
        header->name = one->key;
        TIDE_TRY(tide_config_line(reader, one, TIDE_PATTERN_BYTES_MAX, &header->source));
        const tide_status rc =
            tide_pattern_new(header->source, reader->arena, &header->pattern, &why);
        if (rc == TIDE_NO_MEMORY)
            return tide_config_no_memory(reader);
        if (rc != TIDE_OK)
            return tide_config_refuse(reader, one, "%s", why.text);
    }
    return TIDE_OK;
}

static tide_status read_values(struct tide_config_reader *reader, const struct tide_node *when,
                               const char *key, struct tide_texts *texts_out)
{
    const struct tide_node *node = tide_node_get(when, key);
    if (node == NULL)
        return TIDE_OK;
    if (node->kind == TIDE_NODE_LIST && node->count == 0)
        return tide_config_refuse(reader, node, "is empty, so that the rule would never apply");
    return tide_config_texts(reader, node, TIDE_ASSISTANT_VALUES_MAX, VALUE_BYTES_MAX, texts_out);
}

static tide_status read_conditions(struct tide_config_reader *reader, const struct tide_node *rule,
                                   struct tide_rule *out)
{
    static const char *const known[] = {"all",
                                        "sender_email",
                                        "sender_domain",
                                        "subject_contains",
                                        "header_match",
                                        "forwarded_from",
                                        NULL};
    const struct tide_node *when = tide_node_get(rule, "when");
    if (when == NULL)
        return tide_config_refuse(reader, rule,
                                  "has no when; for every message: when: {all: true}");
    TIDE_TRY(tide_config_map(reader, when, known));
    if (when->count == 0)
        return tide_config_refuse(reader, when, "is empty; for every message: all: true");
    const struct tide_node *all = tide_node_get(when, "all");
    const struct tide_node *headers = tide_node_get(when, "header_match");
    if (all != NULL)
        TIDE_TRY(tide_config_bool(reader, all, &out->all));
    if (all != NULL && !out->all)
        return tide_config_refuse(reader, all, "can only be true");
    TIDE_TRY(read_values(reader, when, "sender_email", &out->sender_email));
    TIDE_TRY(read_values(reader, when, "sender_domain", &out->sender_domain));
    TIDE_TRY(read_values(reader, when, "subject_contains", &out->subject_contains));
    TIDE_TRY(read_values(reader, when, "forwarded_from", &out->forwarded_from));
    return headers == NULL ? TIDE_OK : read_headers(reader, headers, out);
}

/* Whether it applies to every message, so that no rule after it is reached. */
static bool is_last(const struct tide_rule *rule)
{
    return rule->sender_email.count + rule->sender_domain.count + rule->subject_contains.count +
               rule->forwarded_from.count + rule->headers_count ==
           0;
}

static tide_status read_rule(struct tide_config_reader *reader, const struct tide_node *node,
                             struct tide_rule *rule, size_t index)
{
    static const char *const known[] = {"name", "when", "route", "profile", NULL};
    const struct tide_rule *before = index == 0 ? NULL : &reader->config->rules[index - 1];
    TIDE_TRY(tide_config_map(reader, node, known));
    rule->line = node->line;
    const struct tide_node *name = tide_node_get(node, "name");
    if (name == NULL)
        return tide_config_refuse(reader, node, "has no name: decisions are explained with it");
    TIDE_TRY(tide_config_line(reader, name, TIDE_ASSISTANT_NAME_BYTES_MAX, &rule->name));
    TIDE_TRY(tide_config_name(reader, name, rule->name));
    for (size_t i = 0; i < index; i++)
        if (tide_text_equal(reader->config->rules[i].name, rule->name))
            return tide_config_refuse(reader, name, "is the name of an earlier rule");
    if (before != NULL && is_last(before))
        return tide_config_refuse(reader, node, "is never reached: rule %s before it takes all",
                                  before->name.data);
    TIDE_TRY(read_conditions(reader, node, rule));
    return read_outcome(reader, node, rule);
}

tide_status tide_config_rules(struct tide_config_reader *reader, const struct tide_node *node)
{
    struct tide_assistant_config *config = reader->config;
    if (node == NULL)
        return TIDE_OK;
    if (node->kind != TIDE_NODE_LIST)
        return tide_config_refuse(reader, node, "expected a list of rules");
    if (node->count > TIDE_ASSISTANT_RULES_MAX)
        return tide_config_refuse(reader, node, "has more than %d rules", TIDE_ASSISTANT_RULES_MAX);
    struct tide_rule *rules = tide_arena_take(reader->arena, node->count * sizeof *rules + 1);
    if (rules == NULL)
        return tide_config_no_memory(reader);
    config->rules = rules;
    for (const struct tide_node *one = node->first; one != NULL; one = one->next) {
        TIDE_TRY(read_rule(reader, one, &rules[config->rules_count], config->rules_count));
        config->rules_count++;
    }
    return TIDE_OK;
}
