/* OpenAI's chat completions. */
#include "base/check.h"
#include "cloudbox/chat/dialect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(struct box_call *call, int status, const char *type, const char *param,
                 const char *code, const char *message)
{
    box_answer_clear(call->answer);
    json_t *error = json_object();
    json_object_set_new(error, "message", box_json_text(tide_text_of(message)));
    json_object_set_new(error, "type", json_string(type));
    json_object_set_new(error, "param", param == NULL ? json_null() : json_string(param));
    json_object_set_new(error, "code", code == NULL ? json_null() : json_string(code));
    box_answer_json(call->answer, status, json_pack("{s:o}", "error", error), true);
}

__attribute__((format(printf, 3, 4))) static bool refuse(struct box_call *call, const char *param,
                                                         const char *format, ...)
{
    char message[600];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fail(call, 400, "invalid_request_error", param, NULL, message);
    return false;
}

static void no_key(struct box_call *call)
{
    fail(call, 401, "invalid_request_error", NULL, "invalid_api_key",
         "You didn't provide an API key. You need to provide your API key in an Authorization "
         "header using Bearer auth.");
}

static void bad_request(struct box_call *call, const char *message)
{
    fail(call, 400, "invalid_request_error", NULL, NULL, message);
}

static void bad_parameter(struct box_call *call, const char *name, const char *message)
{
    fail(call, 400, "invalid_request_error", name, "unsupported_parameter", message);
}

static json_t *late_error(void)
{
    return json_pack("{s:{s:s,s:s,s:n,s:s}}", "error", "message",
                     "The server had an error while processing your request.", "type",
                     "server_error", "param", "code", "server_error");
}

static void billing(struct box_call *call, bool other_way)
{
    fail(call, 429, "insufficient_quota", NULL,
         other_way ? "credit_balance_exhausted" : "insufficient_quota",
         "You exceeded your current quota, please check your plan and billing details.");
}

static void overloaded(struct box_call *call)
{
    fail(call, 503, "server_error", NULL, "server_is_overloaded",
         "The engine is currently overloaded, please try again later.");
}

static void too_fast(struct box_call *call)
{
    fail(call, 429, "requests", NULL, "rate_limit_exceeded",
         "Rate limit reached for requests. Please try again later.");
    box_answer_header(call->answer, "x-ratelimit-remaining-requests", "0");
}

/* ---- reading ---- */

static bool read_calls(struct box_call *call, const json_t *calls, struct box_open_calls *open,
                       struct box_talk *talk)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *item = json_array_get(calls, i);
        const json_t *function = json_object_get(item, "function");
        const json_t *id = json_object_get(item, "id");
        const json_t *name = json_object_get(function, "name");
        if (!json_is_string(id) || !json_is_string(name) ||
            !json_is_string(json_object_get(function, "arguments")))
            return refuse(call, "messages",
                          "A tool call needs an id, and a function with a name "
                          "and arguments that are a string.");
        if (open->count == BOX_OPEN_CALLS_MAX)
            return refuse(call, "messages", "Too many tool calls in one message.");
        open->ids[open->count++] = box_json_borrow(id);
        box_talk_add(talk, BOX_TURN_CALL, box_json_borrow(name), false);
    }
    return true;
}

static bool read_message(struct box_call *call, const json_t *message, struct box_open_calls *open,
                         struct box_talk *talk)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    const json_t *content = json_object_get(message, "content");
    const json_t *calls = json_object_get(message, "tool_calls");
    if (role == NULL)
        return refuse(call, "messages", "Missing required parameter: 'messages[].role'.");
    const tide_text text = box_parts_text(content, talk->arena);
    if (strcmp(role, "tool") == 0) {
        const tide_text id = box_json_borrow(json_object_get(message, "tool_call_id"));
        if (id.data == NULL || !box_close_call(open, id))
            return refuse(call, "messages",
                          "Invalid parameter: messages with role 'tool' must be "
                          "a response to a preceding message with 'tool_calls'.");
        if (text.data == NULL)
            return refuse(call, "messages", "A tool message needs content.");
        box_talk_add(talk, BOX_TURN_RESULT, text, false);
        return true;
    }
    if (open->count > 0)
        return refuse(call, "messages",
                      "An assistant message with 'tool_calls' must be followed by tool messages "
                      "responding to each 'tool_call_id'. Without a response: %.*s",
                      (int)(open->ids[0].bytes < 100 ? open->ids[0].bytes : 100),
                      open->ids[0].data);
    if (strcmp(role, "assistant") == 0) {
        if (text.data == NULL && json_array_size(calls) == 0)
            return refuse(call, "messages", "An assistant message needs content or tool_calls.");
        if (text.bytes > 0)
            box_talk_add(talk, BOX_TURN_MODEL, text, false);
        return read_calls(call, calls, open, talk);
    }
    if (text.data == NULL)
        return refuse(call, "messages", "Invalid value for 'content': expected a string.");
    if (strcmp(role, "system") == 0 || strcmp(role, "developer") == 0) {
        const tide_text parts[2] = {talk->system, text};
        char *to = tide_arena_take(talk->arena, parts[0].bytes + parts[1].bytes + 2);
        TIDE_ASSERT(to != NULL);
        if (parts[0].bytes > 0)
            memcpy(to, parts[0].data, parts[0].bytes);
        to[parts[0].bytes] = '\n';
        memcpy(to + parts[0].bytes + 1, parts[1].data, parts[1].bytes);
        talk->system = (tide_text){to, parts[0].bytes + 1 + parts[1].bytes};
        return true;
    }
    if (strcmp(role, "user") != 0)
        return refuse(call, "messages",
                      "Invalid value: '%.40s'. Supported values are: 'system', "
                      "'developer', 'user', 'assistant', and 'tool'.",
                      role);
    box_talk_add(talk, BOX_TURN_USER, text, false);
    return true;
}

static bool read_tools(struct box_call *call, const json_t *tools, struct box_talk *talk)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *function = json_object_get(json_array_get(tools, i), "function");
        const json_t *schema = json_object_get(function, "parameters");
        const tide_text name = box_json_borrow(json_object_get(function, "name"));
        if (name.data == NULL || !box_tool_name_valid(name))
            return refuse(call, "tools",
                          "Invalid 'tools[%zu].function.name': expected ^[a-zA-Z0-9_-]{1,64}$.", i);
        if (schema != NULL && !json_is_object(schema))
            return refuse(call, "tools", "Invalid schema for function '%.*s'.", (int)name.bytes,
                          name.data);
        talk->tools[talk->tools_count++] = (struct box_tool){
            name, box_json_borrow(json_object_get(function, "description")), schema};
    }
    return true;
}

static bool read_choice(struct box_call *call, const json_t *choice, struct box_talk *talk)
{
    if (choice == NULL || json_is_null(choice))
        return true;
    const char *word = json_string_value(choice);
    if (word != NULL && strcmp(word, "auto") == 0)
        return true;
    if (word != NULL && strcmp(word, "none") == 0) {
        talk->choice = BOX_TOOL_NONE;
        return true;
    }
    if (talk->tools_count == 0)
        return refuse(call, "tool_choice",
                      "Invalid value for 'tool_choice': it is only allowed with 'tools'.");
    if (word != NULL && strcmp(word, "required") == 0) {
        talk->choice = BOX_TOOL_ANY;
        return true;
    }
    const tide_text name =
        box_json_borrow(json_object_get(json_object_get(choice, "function"), "name"));
    for (size_t i = 0; name.data != NULL && i < talk->tools_count; i++)
        if (tide_text_equal(talk->tools[i].name, name)) {
            talk->choice = BOX_TOOL_NAMED;
            talk->named = i;
            return true;
        }
    return refuse(call, "tool_choice", "Invalid value for 'tool_choice'.");
}

static bool read_format(struct box_call *call, const json_t *format, struct box_talk *talk)
{
    const char *type = json_string_value(json_object_get(format, "type"));
    if (format == NULL || json_is_null(format) || (type != NULL && strcmp(type, "text") == 0))
        return true;
    if (type != NULL && strcmp(type, "json_object") == 0) {
        talk->wants_json = true;
        if (!box_text_has(box_talk_text(talk), "json"))
            return refuse(call, "messages",
                          "'messages' must contain the word 'json' in some "
                          "form, to use 'response_format' of type "
                          "'json_object'.");
        return true;
    }
    const json_t *named = json_object_get(format, "json_schema");
    talk->schema = json_object_get(named, "schema");
    if (type == NULL || strcmp(type, "json_schema") != 0 || !json_is_object(talk->schema) ||
        !json_is_string(json_object_get(named, "name")))
        return refuse(call, "response_format",
                      "Invalid value for 'response_format': a json_schema "
                      "needs a name and a schema.");
    return true;
}

static bool read_limits(struct box_call *call, const json_t *body, struct box_talk *talk)
{
    const json_t *new_limit = json_object_get(body, "max_completion_tokens");
    const json_t *old_limit = json_object_get(body, "max_tokens");
    const json_t *stop = json_object_get(body, "stop");
    const json_t *count = json_object_get(body, "n");
    if (json_is_null(new_limit))
        new_limit = NULL;
    if (json_is_null(old_limit))
        old_limit = NULL;
    if (new_limit != NULL && old_limit != NULL)
        return refuse(call, "max_tokens",
                      "Setting 'max_tokens' and 'max_completion_tokens' at "
                      "the same time is not supported.");
    const json_t *limit = new_limit != NULL ? new_limit : old_limit;
    if (limit != NULL && (!json_is_integer(limit) || json_integer_value(limit) < 1))
        return refuse(call, "max_tokens",
                      "Invalid value for the limit of tokens: expected a "
                      "whole number of at least 1.");
    talk->tokens_max = limit == NULL ? 0 : (uint64_t)json_integer_value(limit);
    if (count != NULL && !json_is_null(count) && json_integer_value(count) != 1)
        return refuse(call, "n", "Only one choice is supported.");
    if (json_is_string(stop)) {
        talk->stops[talk->stops_count++] = box_json_borrow(stop);
    } else if (json_is_array(stop)) {
        if (json_array_size(stop) > BOX_TALK_STOPS_MAX)
            return refuse(call, "stop", "At most 4 stop sequences are allowed.");
        for (size_t i = 0; i < json_array_size(stop); i++)
            talk->stops[talk->stops_count++] = box_json_borrow(json_array_get(stop, i));
    }
    return true;
}

static bool read_request(struct box_call *call, const json_t *body, struct box_talk *talk)
{
    const json_t *list = json_object_get(body, "messages");
    const json_t *tools = json_object_get(body, "tools");
    talk->model = box_json_borrow(json_object_get(body, "model"));
    if (talk->model.bytes == 0)
        return refuse(call, "model", "you must provide a model parameter");
    if (talk->model.bytes >= 7 && memcmp(talk->model.data, "no-such", 7) == 0) {
        fail(call, 404, "invalid_request_error", NULL, "model_not_found",
             "The model does not exist or you do not have access to it.");
        return false;
    }
    if (!json_is_array(list) || json_array_size(list) == 0)
        return refuse(call, "messages",
                      "Invalid 'messages': expected a list with at least one "
                      "message.");
    size_t turns = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        turns += 1 + json_array_size(json_object_get(json_array_get(list, i), "tool_calls"));
    if (!box_talk_room(talk, turns, json_array_size(tools)))
        return refuse(call, "messages", "Too many messages or tools.");
    struct box_open_calls open = {.count = 0};
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_message(call, json_array_get(list, i), &open, talk))
            return false;
    if (open.count > 0)
        return refuse(call, "messages",
                      "An assistant message with 'tool_calls' must be followed "
                      "by tool messages responding to each 'tool_call_id'.");
    talk->parallel = !json_is_false(json_object_get(body, "parallel_tool_calls"));
    talk->stream = json_is_true(json_object_get(body, "stream"));
    talk->stream_usage =
        json_is_true(json_object_get(json_object_get(body, "stream_options"), "include_usage"));
    return read_tools(call, tools, talk) &&
           read_choice(call, json_object_get(body, "tool_choice"), talk) &&
           read_limits(call, body, talk) &&
           read_format(call, json_object_get(body, "response_format"), talk);
}

/* ---- writing ---- */

/* The arguments as text; cut when the tokens ran out, broken on request. */
static json_t *arguments_text(const struct box_talk *talk, const struct box_said *said, size_t i,
                              bool bad)
{
    char *text = json_dumps(said->calls[i].arguments, JSON_COMPACT | BOX_JSON_REALS);
    TIDE_ASSERT(text != NULL);
    size_t bytes = strlen(text);
    if (bad)
        bytes = bytes > 2 ? bytes * 2 / 3 : 1;
    else if (said->cut && bytes > talk->tokens_max * 4)
        bytes = (size_t)talk->tokens_max * 4;
    json_t *value = box_json_text((tide_text){text, bytes});
    free(text);
    return value;
}

static const char *finish_of(const struct box_said *said)
{
    return said->cut ? "length" : said->calls_count > 0 ? "tool_calls" : "stop";
}

static json_t *usage_of(const struct box_talk *talk, const struct box_said *said)
{
    const json_int_t prompt = (json_int_t)box_tokens(talk->prompt_bytes);
    json_int_t answer = (json_int_t)box_tokens(box_said_bytes(said));
    if (said->cut && answer > (json_int_t)talk->tokens_max)
        answer = (json_int_t)talk->tokens_max;
    return json_pack("{s:I,s:I,s:I}", "prompt_tokens", prompt, "completion_tokens", answer,
                     "total_tokens", prompt + answer);
}

static json_t *call_of(const struct box_talk *talk, const struct box_said *said, size_t i,
                       json_t *arguments)
{
    char id[48];
    box_talk_id(talk, "call_", (uint32_t)i + 1, id);
    return json_pack("{s:s,s:s,s:{s:o,s:o}}", "id", id, "type", "function", "function", "name",
                     box_json_text(said->calls[i].name), "arguments", arguments);
}

static json_t *frame(const struct box_call *call, const struct box_talk *talk, const char *object)
{
    char id[48];
    box_talk_id(talk, "chatcmpl-", 0, id);
    return json_pack("{s:s,s:s,s:I,s:o}", "id", id, "object", object, "created",
                     (json_int_t)(call->now_ms / 1000), "model", box_json_text(talk->model));
}

static void write_whole(struct box_call *call, const struct box_talk *talk,
                        const struct box_said *said, struct box_writing writing)
{
    const bool silent = writing.refusal || (said->text.bytes == 0 && said->calls_count > 0);
    json_t *text = box_json_text(tide_buf_text(&said->text));
    json_t *message = json_pack("{s:s,s:o,s:o}", "role", "assistant", "content",
                                silent ? json_null() : json_incref(text), "refusal",
                                writing.refusal ? json_incref(text) : json_null());
    json_decref(text);
    if (said->calls_count > 0) {
        json_t *calls = json_array();
        for (size_t i = 0; i < said->calls_count; i++)
            json_array_append_new(
                calls,
                call_of(talk, said, i, arguments_text(talk, said, i, writing.bad_arguments)));
        json_object_set_new(message, "tool_calls", calls);
    }
    json_t *value = frame(call, talk, "chat.completion");
    json_object_set_new(value, "choices",
                        json_pack("[{s:i,s:o,s:n,s:s}]", "index", 0, "message", message, "logprobs",
                                  "finish_reason", finish_of(said)));
    if (!writing.no_usage)
        json_object_set_new(value, "usage", usage_of(talk, said));
    box_answer_json(call->answer, 200, value, false);
}

static void add_chunk(struct box_call *call, const struct box_talk *talk, json_t *delta,
                      const char *finish)
{
    json_t *value = frame(call, talk, "chat.completion.chunk");
    json_object_set_new(value, "choices",
                        json_pack("[{s:i,s:o,s:o}]", "index", 0, "delta", delta, "finish_reason",
                                  finish == NULL ? json_null() : json_string(finish)));
    box_event(&call->answer->body, NULL, value);
}

static void write_events(struct box_call *call, const struct box_talk *talk,
                         const struct box_said *said, struct box_writing writing)
{
    (void)snprintf(call->answer->type, sizeof call->answer->type, "text/event-stream");
    add_chunk(call, talk, json_pack("{s:s,s:s}", "role", "assistant", "content", ""), NULL);
    tide_text rest = tide_buf_text(&said->text);
    while (rest.bytes > 0)
        add_chunk(call, talk,
                  json_pack("{s:o}", writing.refusal ? "refusal" : "content",
                            box_json_text(box_piece(&rest))),
                  NULL);
    for (size_t i = 0; i < said->calls_count; i++) {
        json_t *head = call_of(talk, said, i, json_string(""));
        json_object_set_new(head, "index", json_integer((json_int_t)i));
        add_chunk(call, talk, json_pack("{s:[o]}", "tool_calls", head), NULL);
        json_auto_t *text = arguments_text(talk, said, i, writing.bad_arguments);
        rest = box_json_borrow(text);
        while (rest.bytes > 0)
            add_chunk(call, talk,
                      json_pack("{s:[{s:I,s:{s:o}}]}", "tool_calls", "index", (json_int_t)i,
                                "function", "arguments", box_json_text(box_piece(&rest))),
                      NULL);
    }
    add_chunk(call, talk, json_object(), finish_of(said));
    if (talk->stream_usage && !writing.no_usage) {
        json_t *value = frame(call, talk, "chat.completion.chunk");
        json_object_set_new(value, "choices", json_array());
        json_object_set_new(value, "usage", usage_of(talk, said));
        box_event(&call->answer->body, NULL, value);
    }
    box_add_cstr(&call->answer->body, "data: [DONE]\n\n");
}

const struct box_dialect box_openai = {
    .read = read_request,
    .write_whole = write_whole,
    .write_events = write_events,
    .id_prefix = "req_",
    .id_header = "x-request-id",
    .no_key = no_key,
    .bad_request = bad_request,
    .bad_parameter = bad_parameter,
    .late_error = late_error,
    .billing = billing,
    .overloaded = overloaded,
    .too_fast = too_fast,
};
