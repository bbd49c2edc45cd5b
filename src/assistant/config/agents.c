/* agents.c - the sections tools and profiles (J15). */
#include "assistant/config/inside.h"

#include "base/check.h"

enum { SCHEMA_BYTES_MAX = 16 << 10, DESCRIPTION_BYTES_MAX = 2000, URL_BYTES_MAX = 2000 };

const char *tide_builtin_name(tide_builtin builtin)
{
    static const char *const names[TIDE_BUILTINS] = {
        "search_archive", "read_thread", "create_draft", "send_reply", "add_label", "escalate",
    };
    TIDE_ASSERT((unsigned)builtin < TIDE_BUILTINS);
    return names[builtin];
}

static bool find_builtin(tide_text name, tide_builtin *builtin_out)
{
    for (int i = 0; i < TIDE_BUILTINS; i++) {
        if (tide_text_equal(name, tide_text_of(tide_builtin_name((tide_builtin)i)))) {
            *builtin_out = (tide_builtin)i;
            return true;
        }
    }
    return false;
}

/* ---- tools ----------------------------------------------------------------------- */

/* The schema as the model gets it. */
static tide_status read_schema(struct tide_config_reader *reader, const struct tide_node *node,
                               tide_text *schema_out)
{
    *schema_out = TIDE_TEXT("{\"type\":\"object\",\"properties\":{}}");
    if (node == NULL)
        return TIDE_OK;
    const struct tide_node *type = tide_node_get(node, "type");
    if (node->kind != TIDE_NODE_MAP || type == NULL || type->kind != TIDE_NODE_VALUE ||
        !tide_text_equal(type->text, TIDE_TEXT("object")))
        return tide_config_refuse(reader, node, "is not a JSON schema with type: object");
    json_t *json = NULL;
    if (tide_node_json(node, &json) != TIDE_OK)
        return tide_config_no_memory(reader);
    char *text = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return tide_config_no_memory(reader);
    const size_t bytes = strlen(text);
    const char *copy =
        bytes > SCHEMA_BYTES_MAX ? NULL : tide_arena_copy(reader->arena, text, bytes);
    free(text);
    if (bytes > SCHEMA_BYTES_MAX)
        return tide_config_refuse(reader, node, "is longer than %d bytes", SCHEMA_BYTES_MAX);
    if (copy == NULL)
        return tide_config_no_memory(reader);
    *schema_out = (tide_text){copy, bytes};
    return TIDE_OK;
}

static bool is_url(tide_text url)
{
    const bool good = (url.bytes > 8 && memcmp(url.data, "https://", 8) == 0) ||
                      (url.bytes > 7 && memcmp(url.data, "http://", 7) == 0);
    for (size_t i = 0; i < url.bytes; i++)
        if (url.data[i] <= ' ' || (unsigned char)url.data[i] >= 0x7f)
            return false;
    return good;
}

static tide_status read_http(struct tide_config_reader *reader, const struct tide_node *node,
                             struct tide_assistant_tool *tool)
{
    const struct tide_node *url = tide_node_get(node, "url");
    const struct tide_node *method = tide_node_get(node, "method");
    TIDE_TRY(tide_config_line(reader, url, URL_BYTES_MAX, &tool->url));
    if (!is_url(tool->url))
        return tide_config_refuse(reader, url, "is not an http or https URL");
    tool->method = TIDE_TEXT("POST");
    if (method == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_config_line(reader, method, 8, &tool->method));
    if (!tide_text_equal(tool->method, TIDE_TEXT("GET")) &&
        !tide_text_equal(tool->method, TIDE_TEXT("POST")))
        return tide_config_refuse(reader, method, "is neither GET nor POST");
    return TIDE_OK;
}

static tide_status read_limit(struct tide_config_reader *reader, const struct tide_node *node,
                              uint64_t min, uint64_t max, uint32_t *number_io)
{
    uint64_t number = *number_io;
    if (node != NULL)
        TIDE_TRY(tide_config_number(reader, node, min, max, &number));
    *number_io = (uint32_t)number;
    return TIDE_OK;
}

static tide_status read_tool(struct tide_config_reader *reader, const struct tide_node *node,
                             struct tide_assistant_tool *tool)
{
    static const char *const known[] = {"description", "parameters",      "command",      "url",
                                        "method",      "timeout_seconds", "output_bytes", NULL};
    tide_builtin builtin = TIDE_BUILTINS;
    TIDE_TRY(tide_config_name(reader, node, node->key));
    if (find_builtin(node->key, &builtin))
        return tide_config_refuse(reader, node, "is the name of a built-in tool");
    TIDE_TRY(tide_config_map(reader, node, known));
    tool->name = node->key;
    const struct tide_node *description = tide_node_get(node, "description");
    if (description == NULL)
        return tide_config_refuse(reader, node, "has no description: the model needs one");
    TIDE_TRY(tide_config_text(reader, description, DESCRIPTION_BYTES_MAX, &tool->description));
    TIDE_TRY(read_schema(reader, tide_node_get(node, "parameters"), &tool->schema));
    const struct tide_node *command = tide_node_get(node, "command");
    const struct tide_node *url = tide_node_get(node, "url");
    if ((command == NULL) == (url == NULL))
        return tide_config_refuse(reader, node, "needs a command or a url, one of them");
    if (command != NULL) {
        if (command->kind != TIDE_NODE_LIST || command->count == 0)
            return tide_config_refuse(reader, command,
                                      "expected a list: [program, argument, ...]; no shell is run");
        if (tide_node_get(node, "method") != NULL)
            return tide_config_refuse(reader, node, "has a method, but no url");
        TIDE_TRY(tide_config_texts(reader, command, TIDE_ASSISTANT_ARGS_MAX, 4096, &tool->command));
        if (tool->command.at[0].data[0] != '/')
            return tide_config_refuse(reader, command->first,
                                      "is not an absolute path: write /usr/bin/NAME");
    } else {
        TIDE_TRY(read_http(reader, node, tool));
    }
    uint32_t timeout_s = 20;
    tool->output_bytes_max = 16 << 10;
    TIDE_TRY(read_limit(reader, tide_node_get(node, "timeout_seconds"), 1, 300, &timeout_s));
    tool->timeout_ms = timeout_s * 1000;
    return read_limit(reader, tide_node_get(node, "output_bytes"), 100, 256 << 10,
                      &tool->output_bytes_max);
}

tide_status tide_config_tools(struct tide_config_reader *reader, const struct tide_node *node)
{
    struct tide_assistant_config *config = reader->config;
    if (node == NULL)
        return TIDE_OK;
    if (node->kind != TIDE_NODE_MAP)
        return tide_config_refuse(reader, node, "expected names and values");
    if (node->count > TIDE_ASSISTANT_TOOLS_MAX)
        return tide_config_refuse(reader, node, "has more than %d tools", TIDE_ASSISTANT_TOOLS_MAX);
    struct tide_assistant_tool *tools =
        tide_arena_take(reader->arena, node->count * sizeof *tools + 1);
    if (tools == NULL)
        return tide_config_no_memory(reader);
    config->tools = tools;
    for (const struct tide_node *one = node->first; one != NULL; one = one->next)
        TIDE_TRY(read_tool(reader, one, &tools[config->tools_count++]));
    return TIDE_OK;
}

/* ---- profiles -------------------------------------------------------------------- */

/* "0.7" as 700; at most three decimals. */
static tide_status read_temperature(struct tide_config_reader *reader, const struct tide_node *node,
                                    struct tide_profile *profile)
{
    tide_text text = TIDE_TEXT_NONE;
    TIDE_TRY(tide_config_line(reader, node, 16, &text));
    uint32_t milli = 0, unit = 1000;
    bool good = text.data[0] >= '0' && text.data[0] <= '2';
    for (size_t i = 0; good && i < text.bytes; i++) {
        const char c = text.data[i];
        good = i == 1 ? c == '.' : c >= '0' && c <= '9' && i < 5;
        if (good && i != 1) {
            milli += (uint32_t)(c - '0') * unit;
            unit /= 10;
        }
    }
    if (!good || milli > 2000)
        return tide_config_refuse(reader, node, "\"%.*s\" is not a number from 0 to 2",
                                  (int)text.bytes, text.data);
    profile->has_temperature = true;
    profile->temperature_milli = milli;
    return TIDE_OK;
}

static const char *tool_named(const void *arg, size_t index)
{
    const struct tide_assistant_config *config = arg;
    return index < TIDE_BUILTINS ? tide_builtin_name((tide_builtin)index)
                                 : config->tools[index - TIDE_BUILTINS].name.data;
}

static tide_status take_tool(struct tide_config_reader *reader, const struct tide_node *node,
                             struct tide_profile *profile, size_t *tools)
{
    const struct tide_assistant_config *config = reader->config;
    tide_text name = TIDE_TEXT_NONE;
    tide_builtin builtin = TIDE_BUILTINS;
    TIDE_TRY(tide_config_line(reader, node, TIDE_ASSISTANT_NAME_BYTES_MAX, &name));
    if (find_builtin(name, &builtin)) {
        if (builtin == TIDE_BUILTIN_SEND_REPLY && !profile->may_send)
            return tide_config_refuse(reader, node, "send_reply needs may_send: true");
        profile->builtins |= 1u << builtin;
        return TIDE_OK;
    }
    for (size_t i = 0; i < config->tools_count; i++) {
        if (!tide_text_equal(config->tools[i].name, name))
            continue;
        for (size_t j = 0; j < profile->tools_count; j++)
            if (tools[j] == i)
                return tide_config_refuse(reader, node, "\"%s\" is listed twice",
                                          config->tools[i].name.data);
        tools[profile->tools_count++] = i;
        return TIDE_OK;
    }
    return tide_config_unknown(
        reader, node, "tool", name,
        tide_config_nearest(name, tool_named, config, TIDE_BUILTINS + config->tools_count));
}

static tide_status read_profile_tools(struct tide_config_reader *reader,
                                      const struct tide_node *node, struct tide_profile *profile)
{
    if (node == NULL)
        return TIDE_OK;
    if (node->kind != TIDE_NODE_LIST)
        return tide_config_refuse(reader, node, "expected a list of tools");
    size_t *tools = tide_arena_take(reader->arena, node->count * sizeof *tools + 1);
    if (tools == NULL)
        return tide_config_no_memory(reader);
    profile->tools = tools;
    for (const struct tide_node *one = node->first; one != NULL; one = one->next)
        TIDE_TRY(take_tool(reader, one, profile, tools));
    return TIDE_OK;
}

static tide_status read_preprocessor(struct tide_config_reader *reader,
                                     const struct tide_node *node, struct tide_profile *profile)
{
    tide_text name = TIDE_TEXT_NONE;
    if (node == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_config_line(reader, node, TIDE_ASSISTANT_NAME_BYTES_MAX, &name));
    if (tide_text_equal(name, TIDE_TEXT("crisp")))
        profile->preprocessor = TIDE_PREPROCESSOR_CRISP;
    else if (!tide_text_equal(name, TIDE_TEXT("none")))
        return tide_config_refuse(reader, node, "is neither none nor crisp");
    return TIDE_OK;
}

static tide_status read_profile(struct tide_config_reader *reader, const struct tide_node *node,
                                struct tide_profile *profile)
{
    static const char *const known[] = {"model",          "max_tokens",    "temperature",
                                        "max_iterations", "system_prompt", "tools",
                                        "may_send",       "preprocessor",  NULL};
    TIDE_TRY(tide_config_name(reader, node, node->key));
    TIDE_TRY(tide_config_map(reader, node, known));
    *profile = (struct tide_profile){.name = node->key,
                                     .model = reader->config->model_better,
                                     .max_tokens = 4000,
                                     .max_iterations = 10};
    const struct tide_node *model = tide_node_get(node, "model");
    const struct tide_node *temperature = tide_node_get(node, "temperature");
    const struct tide_node *prompt = tide_node_get(node, "system_prompt");
    const struct tide_node *may_send = tide_node_get(node, "may_send");
    if (prompt == NULL)
        return tide_config_refuse(reader, node, "has no system_prompt");
    TIDE_TRY(tide_config_prompt(reader, prompt, &profile->system_prompt));
    if (model != NULL)
        TIDE_TRY(tide_config_line(reader, model, 200, &profile->model));
    if (temperature != NULL)
        TIDE_TRY(read_temperature(reader, temperature, profile));
    if (may_send != NULL)
        TIDE_TRY(tide_config_bool(reader, may_send, &profile->may_send));
    TIDE_TRY(
        read_limit(reader, tide_node_get(node, "max_tokens"), 100, 64000, &profile->max_tokens));
    TIDE_TRY(
        read_limit(reader, tide_node_get(node, "max_iterations"), 1, 50, &profile->max_iterations));
    TIDE_TRY(read_preprocessor(reader, tide_node_get(node, "preprocessor"), profile));
    return read_profile_tools(reader, tide_node_get(node, "tools"), profile);
}

tide_status tide_config_profiles(struct tide_config_reader *reader, const struct tide_node *node)
{
    struct tide_assistant_config *config = reader->config;
    if (node == NULL)
        return TIDE_OK;
    if (node->kind != TIDE_NODE_MAP)
        return tide_config_refuse(reader, node, "expected names and values");
    if (node->count > TIDE_ASSISTANT_PROFILES_MAX)
        return tide_config_refuse(reader, node, "has more than %d profiles",
                                  TIDE_ASSISTANT_PROFILES_MAX);
    struct tide_profile *profiles =
        tide_arena_take(reader->arena, node->count * sizeof *profiles + 1);
    if (profiles == NULL)
        return tide_config_no_memory(reader);
    config->profiles = profiles;
    for (const struct tide_node *one = node->first; one != NULL; one = one->next)
        TIDE_TRY(read_profile(reader, one, &profiles[config->profiles_count++]));
    return TIDE_OK;
}
