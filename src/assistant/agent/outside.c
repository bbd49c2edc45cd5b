/* outside.c - commands and HTTP endpoints as tools of an agent (outside.h). */
#include "assistant/agent/outside.h"

#include "base/check.h"
#include "base/encode.h"
#include "world/programs/command.h"

#include <stdio.h>
#include <string.h>

enum {
    ERRORS_BYTES_MAX = 2000, /* of what a command says on standard error */
    ARGUMENTS_BYTES_MAX = 1 << 20,
    URL_BYTES_MAX = 8192,
};

tide_status tide_agent_error(tide_text text, tide_buf *result)
{
    tide_auto_json json;
    tide_json_object(&json);
    tide_json_set_text(&json, "error", text);
    return tide_json_line(&json, result);
}

/* Appends an error as the result (OUT4), unless the run itself has to end. */
static tide_status failed(tide_status rc, const tide_error *why, tide_buf *result, bool *failed_out,
                          tide_error *err)
{
    if (rc == TIDE_CANCELED || rc == TIDE_STOPPED || rc == TIDE_NO_MEMORY)
        return tide_error_set(err, rc, "%s", why->text);
    *failed_out = true;
    tide_buf_clear(result);
    return tide_agent_error(tide_text_of(why->text), result);
}

/* ---- a command ---- */

static tide_status command_run(tide_world *world, const struct tide_assistant_tool *tool,
                               tide_text input, const tide_cancel *cancel, tide_buf *result,
                               tide_error *err)
{
    const char *arguments[TIDE_ASSISTANT_ARGS_MAX + 1] = {NULL};
    char name[TIDE_ASSISTANT_NAME_BYTES_MAX + 32];
    TIDE_ASSERT(tool->command.count <= TIDE_ASSISTANT_ARGS_MAX);
    for (size_t i = 0; i < tool->command.count; i++)
        arguments[i] = tool->command.at[i].data; /* terminated, as all texts of a configuration */
    (void)snprintf(name, sizeof name, "TIDEMARK_TOOL=%.*s", (int)tool->name.bytes, tool->name.data);
    const char *const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
                                       "HOME=/", name, NULL};
    tide_auto_buf errors = tide_buf_heap(ERRORS_BYTES_MAX);
    struct tide_command_end end;
    TIDE_TRY(tide_command_run(world,
                              &(struct tide_command){.arguments = arguments,
                                                     .environment = environment,
                                                     .input = input,
                                                     .wait_ms = tool->timeout_ms,
                                                     .output_bytes_max = tool->output_bytes_max,
                                                     .errors_bytes_max = ERRORS_BYTES_MAX},
                              cancel, result, &errors, &end, err));
    if (end.signal != 0)
        return tide_error_set(err, TIDE_IO, "%s was ended by signal %d", arguments[0], end.signal);
    if (end.code != 0)
        return tide_error_set(err, TIDE_IO, "%s ended with %d: %.*s", arguments[0], end.code,
                              (int)errors.bytes, errors.data != NULL ? errors.data : "");
    return TIDE_OK;
}

/* ---- an endpoint ---- */

static tide_status url_with(const struct tide_assistant_tool *tool, const json_t *arguments,
                            tide_buf *url, tide_error *err)
{
    const char *key;
    json_t *value;
    tide_status rc = tide_buf_add(url, tool->url.data, tool->url.bytes);
    bool more = memchr(tool->url.data, '?', tool->url.bytes) != NULL;
    json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
    {
        char *dumped = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
        const tide_text text =
            dumped != NULL ? tide_text_of(dumped)
                           : (tide_text){json_string_value(value), json_string_length(value)};
        if (rc == TIDE_OK)
            rc = tide_buf_add_text(url, more ? "&" : "?");
        if (rc == TIDE_OK)
            rc = tide_percent_add(url, tide_text_of(key), TIDE_URL_UNRESERVED);
        if (rc == TIDE_OK)
            rc = tide_buf_add_text(url, "=");
        if (rc == TIDE_OK && text.data != NULL)
            rc = tide_percent_add(url, text, TIDE_URL_UNRESERVED);
        free(dumped);
        more = true;
    }
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "the arguments are too long for a URL");
}

static tide_status endpoint_call(tide_world *world, const struct tide_assistant_tool *tool,
                                 const json_t *arguments, tide_text body, const tide_cancel *cancel,
                                 tide_buf *result, tide_error *err)
{
    const bool post = tide_text_equal(tool->method, TIDE_TEXT("POST"));
    const struct tide_header headers[] = {
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")}};
    tide_auto_buf url = tide_buf_heap(URL_BYTES_MAX);
    if (post)
        TIDE_TRY(tide_buf_add(&url, tool->url.data, tool->url.bytes));
    else
        TIDE_TRY(url_with(tool, arguments, &url, err));
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    tide_status rc =
        tide_world_call(world,
                        &(struct tide_request){.method = post ? "POST" : "GET",
                                               .url = url.data,
                                               .headers = headers,
                                               .headers_count = post ? 1 : 0,
                                               .body = post ? body : (tide_text){"", 0},
                                               .body_bytes_max = tool->output_bytes_max,
                                               .total_timeout_ms = tool->timeout_ms},
                        &response, cancel, err);
    if (rc == TIDE_OK && (response.http < 200 || response.http > 299))
        rc = tide_error_set(err, TIDE_SERVER, "the tool's server answered %d", response.http);
    if (rc == TIDE_OK)
        rc = tide_buf_add(result, response.body.data, response.body.bytes);
    tide_response_done(&response);
    return rc;
}

tide_status tide_agent_outside(tide_world *world, const struct tide_assistant_tool *tool,
                               const json_t *arguments, const tide_cancel *cancel, tide_buf *result,
                               bool *failed_out, tide_error *err)
{
    TIDE_ASSERT(json_is_object(arguments));
    tide_auto_buf input = tide_buf_heap(ARGUMENTS_BYTES_MAX);
    tide_error why = {TIDE_OK, 0, ""};
    const tide_json json = {.value = (json_t *)(uintptr_t)arguments};
    tide_status rc = tide_json_line(&json, &input);
    *failed_out = false;
    if (rc != TIDE_OK)
        (void)tide_error_set(&why, rc, "the arguments are too long");
    else if (tool->command.count > 0)
        rc = command_run(world, tool, (tide_text){input.data, input.bytes}, cancel, result, &why);
    else
        rc = endpoint_call(world, tool, arguments, (tide_text){input.data, input.bytes}, cancel,
                           result, &why);
    return rc == TIDE_OK ? rc : failed(rc, &why, result, failed_out, err);
}
