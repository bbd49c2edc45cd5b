/* schema.c - the arguments of a tool: described as a JSON Schema, and checked. */
#include "mcp/tool.h"

#include "base/check.h"

#include <inttypes.h>

static const struct tide_tool_argument none[] = {{.name = NULL}};

static const struct tide_tool_argument *arguments_of(const struct tide_tool *tool)
{
    return tool->arguments == NULL ? none : tool->arguments;
}

/* ---- describing ---- */

static void choices_set(tide_json *json, const char *choices)
{
    tide_json list;
    tide_text rest = tide_text_of(choices);
    tide_json_array(&list);
    while (rest.bytes > 0) {
        char word[64];
        const tide_text next = tide_text_word(&rest);
        TIDE_ASSERT(next.bytes < sizeof word);
        memcpy(word, next.data, next.bytes);
        word[next.bytes] = '\0';
        tide_json_append_cstr(&list, word);
    }
    tide_json_set(json, "enum", &list);
}

static void argument_schema(const struct tide_tool_argument *argument, tide_json *json)
{
    static const char *const types[] = {
        [TIDE_TOOL_TEXT] = "string", [TIDE_TOOL_NUMBER] = "integer", [TIDE_TOOL_FLAG] = "boolean"};
    tide_json_object(json);
    tide_json_set_cstr(json, "type", types[argument->type]);
    tide_json_set_cstr(json, "description", argument->meaning);
    if (argument->choices != NULL)
        choices_set(json, argument->choices);
    if (argument->type == TIDE_TOOL_NUMBER) {
        tide_json_set_u64(json, "minimum", argument->least);
        tide_json_set_u64(json, "maximum", argument->most);
    } else if (argument->type == TIDE_TOOL_TEXT && argument->choices == NULL) {
        tide_json_set_u64(json, "minLength", argument->least);
        tide_json_set_u64(json, "maxLength", argument->most);
    }
}

void tide_tool_schema(const struct tide_tool *tool, tide_json *schema_out)
{
    tide_json properties, required;
    tide_json_object(schema_out);
    tide_json_object(&properties);
    tide_json_array(&required);
    for (const struct tide_tool_argument *a = arguments_of(tool); a->name != NULL; a++) {
        tide_json one;
        argument_schema(a, &one);
        tide_json_set(&properties, a->name, &one);
        if (a->required)
            tide_json_append_cstr(&required, a->name);
    }
    tide_json_set_cstr(schema_out, "type", "object");
    tide_json_set(schema_out, "properties", &properties);
    tide_json_set(schema_out, "required", &required);
    tide_json_set_bool(schema_out, "additionalProperties", false);
}

/* ---- checking ---- */

static bool is_among(tide_text value, const char *choices)
{
    tide_text rest = tide_text_of(choices);
    while (rest.bytes > 0)
        if (tide_text_equal(tide_text_word(&rest), value))
            return true;
    return false;
}

static tide_status text_check(const struct tide_tool_argument *argument, const json_t *value,
                              tide_error *err)
{
    const tide_text text = {json_string_value(value), json_string_length(value)};
    if (!json_is_string(value))
        return tide_error_set(err, TIDE_INVALID, "the argument %s must be a text", argument->name);
    if (argument->choices != NULL && !is_among(text, argument->choices))
        return tide_error_set(err, TIDE_INVALID, "the argument %s must be one of: %s",
                              argument->name, argument->choices);
    /* The schema counts characters: a client may believe that 100 letters of 3 bytes fit. */
    if (argument->choices == NULL && (text.bytes < argument->least || text.bytes > argument->most))
        return tide_error_set(err, TIDE_INVALID,
                              "the argument %s must have %" PRIu64 " to %" PRIu64 " bytes, not %zu",
                              argument->name, argument->least, argument->most, text.bytes);
    return TIDE_OK;
}

static tide_status number_check(const struct tide_tool_argument *argument, const json_t *value,
                                tide_error *err)
{
    const json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || (uint64_t)number < argument->least ||
        (uint64_t)number > argument->most)
        return tide_error_set(err, TIDE_INVALID,
                              "the argument %s must be a whole number from %" PRIu64 " to %" PRIu64,
                              argument->name, argument->least, argument->most);
    return TIDE_OK;
}

static tide_status value_check(const struct tide_tool_argument *argument, const json_t *value,
                               tide_error *err)
{
    switch (argument->type) {
    case TIDE_TOOL_TEXT:
        return text_check(argument, value, err);
    case TIDE_TOOL_NUMBER:
        return number_check(argument, value, err);
    case TIDE_TOOL_FLAG:
        break;
    }
    return json_is_boolean(value)
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "the argument %s must be true or false",
                                argument->name);
}

static bool is_known(const struct tide_tool *tool, const char *name)
{
    for (const struct tide_tool_argument *a = arguments_of(tool); a->name != NULL; a++)
        if (strcmp(a->name, name) == 0)
            return true;
    return false;
}

tide_status tide_tool_check(const struct tide_tool *tool, const json_t *arguments, tide_error *err)
{
    const char *name;
    json_t *value;
    if (arguments != NULL && !json_is_object(arguments))
        return tide_error_set(err, TIDE_INVALID, "the arguments must be an object");
    json_object_foreach((json_t *)(uintptr_t)arguments, name, value)
    {
        if (!is_known(tool, name))
            return tide_error_set(err, TIDE_INVALID, "%s has no argument \"%.60s\"", tool->name,
                                  name);
    }
    for (const struct tide_tool_argument *a = arguments_of(tool); a->name != NULL; a++) {
        value = json_object_get(arguments, a->name);
        if (value == NULL && a->required)
            return tide_error_set(err, TIDE_INVALID, "the argument %s is missing", a->name);
        if (value != NULL) {
            const tide_status rc = value_check(a, value, err);
            if (rc != TIDE_OK)
                return rc;
        }
    }
    return TIDE_OK;
}

/* ---- reading ---- */

const char *tide_tool_text(const struct tide_tool_call *call, const char *name)
{
    return json_string_value(json_object_get(call->arguments, name));
}

uint64_t tide_tool_number(const struct tide_tool_call *call, const char *name, uint64_t otherwise)
{
    const json_t *value = json_object_get(call->arguments, name);
    return value == NULL ? otherwise : (uint64_t)json_integer_value(value);
}

bool tide_tool_flag(const struct tide_tool_call *call, const char *name)
{
    return json_is_true(json_object_get(call->arguments, name));
}
