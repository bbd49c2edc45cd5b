/* Anthropic's messages. */
#include "base/check.h"
#include "base/hash.h"
#include "cloudbox/chat/dialect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(struct box_call *call, int status, const char *type, const char *message,
                 const char *code)
{
    box_answer_clear(call->answer);
    char id[32];
    (void)snprintf(id, sizeof id, "req_%llx", (unsigned long long)call->now_ms);
    json_t *error =
        json_pack("{s:s,s:o}", "type", type, "message", box_json_text(tide_text_of(message)));
    if (code != NULL)
        json_object_set_new(error, "details", json_pack("{s:s}", "error_code", code));
    box_answer_json(call->answer, status,
                    json_pack("{s:s,s:o,s:s}", "type", "error", "error", error, "request_id", id),
                    false);
    box_answer_header(call->answer, "request-id", id);
}

__attribute__((format(printf, 2, 3))) static bool refuse(struct box_call *call, const char *format,
                                                         ...)
{
    char message[600];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fail(call, 400, "invalid_request_error", message, NULL);
    return false;
}

static void no_key(struct box_call *call)
{
    fail(call, 401, "authentication_error", "x-api-key header is required", NULL);
}

static void bad_request(struct box_call *call, const char *message)
{
    fail(call, 400, "invalid_request_error", message, NULL);
}

static void bad_parameter(struct box_call *call, const char *name, const char *message)
{
    char text[300];
    (void)snprintf(text, sizeof text, "%s: %s", name, message);
    fail(call, 400, "invalid_request_error", text, NULL);
}

static json_t *late_error(void)
{
    return json_pack("{s:s,s:{s:s,s:s}}", "type", "error", "error", "type", "overloaded_error",
                     "message", "Overloaded");
}

/* Out of credit, or over the month's cap: a 429 that says no time to wait. */
static void billing(struct box_call *call, bool other_way)
{
    if (other_way)
        fail(call, 429, "rate_limit_error", "You have reached your specified API usage limits.",
             "enforced_spend_limit_reached");
    else
        fail(call, 402, "billing_error",
             "Your credit balance is too low to access the API. Please go to Plans & Billing.",
             NULL);
}

static void overloaded(struct box_call *call)
{
    fail(call, 529, "overloaded_error", "Overloaded", NULL);
}

static void too_fast(struct box_call *call)
{
    fail(call, 429, "rate_limit_error",
         "This request would exceed your organization's rate limit. Please try again later.", NULL);
}

/* ---- blocks that are given back as they came ---- */

enum { SIGNATURE_BYTES = 32 };

static void sign(tide_text thought, char signature_out[SIGNATURE_BYTES])
{
    (void)snprintf(signature_out, SIGNATURE_BYTES, "sig-%016llx",
                   (unsigned long long)tide_hash(TIDE_HASH_START, thought));
}

static bool is_signed(const json_t *block)
{
    char signature[SIGNATURE_BYTES];
    sign(box_json_borrow(json_object_get(block, "thinking")), signature);
    return tide_text_equal(box_json_borrow(json_object_get(block, "signature")),
                           tide_text_of(signature));
}

/* ---- reading ---- */

static bool read_use(struct box_call *call, const json_t *block, struct box_open_calls *open,
                     struct box_talk *talk)
{
    const tide_text id = box_json_borrow(json_object_get(block, "id"));
    const tide_text name = box_json_borrow(json_object_get(block, "name"));
    if (id.data == NULL || name.data == NULL || !json_is_object(json_object_get(block, "input")))
        return refuse(call, "messages: tool_use needs an id, a name and an object input");
    if (open->count == BOX_OPEN_CALLS_MAX)
        return refuse(call, "messages: too many tool_use blocks");
    open->ids[open->count++] = id;
    box_talk_add(talk, BOX_TURN_CALL, name, false);
    return true;
}

static bool read_result(struct box_call *call, const json_t *block, struct box_open_calls *open,
                        struct box_talk *talk)
{
    const tide_text id = box_json_borrow(json_object_get(block, "tool_use_id"));
    if (id.data == NULL || !box_close_call(open, id))
        return refuse(call,
                      "messages: unexpected `tool_use_id` found in `tool_result` blocks: %.*s. "
                      "Each `tool_result` block must have a corresponding `tool_use` block in the "
                      "previous message.",
                      (int)(id.bytes < 100 ? id.bytes : 100), id.data == NULL ? "" : id.data);
    const tide_text text = box_parts_text(json_object_get(block, "content"), talk->arena);
    box_talk_add(talk, BOX_TURN_RESULT, text.data == NULL ? TIDE_TEXT("") : text,
                 json_is_true(json_object_get(block, "is_error")));
    return true;
}

/* One block; `others` counts those before it that are no results. */
static bool read_block(struct box_call *call, const json_t *block, bool user, bool strict,
                       struct box_open_calls *open, size_t *others, struct box_talk *talk)
{
    const char *type = json_string_value(json_object_get(block, "type"));
    if (type == NULL)
        return refuse(call, "messages.content.type: Field required");
    if (strcmp(type, "tool_result") == 0) {
        if (!user)
            return refuse(call, "messages: tool_result blocks belong to user messages");
        if (*others > 0)
            return refuse(call, "messages: tool_result blocks must come before any other content");
        return read_result(call, block, open, talk);
    }
    (*others)++;
    if (strcmp(type, "tool_use") == 0) {
        if (user)
            return refuse(call, "messages: tool_use blocks belong to assistant messages");
        return read_use(call, block, open, talk);
    }
    if (strict && !user && strcmp(type, "document") == 0)
        return refuse(call, "messages: document blocks are not allowed in assistant messages");
    if (strict && user && json_array_size(json_object_get(block, "citations")) > 0)
        return refuse(call, "messages: citations are not allowed in user messages");
    if (strcmp(type, "text") == 0) {
        if (!json_is_string(json_object_get(block, "text")))
            return refuse(call, "messages.content.text: Field required");
        box_talk_add(talk, user ? BOX_TURN_USER : BOX_TURN_MODEL,
                     box_json_borrow(json_object_get(block, "text")), false);
        return true;
    }
    if (strcmp(type, "thinking") == 0 && !is_signed(block))
        return refuse(call, "messages: Invalid `signature` in `thinking` block");
    static const char *const silent[] = {"image", "document", "thinking", "redacted_thinking"};
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++)
        if (strcmp(type, silent[i]) == 0)
            return true;
    return refuse(call, "messages.content: Input tag '%.40s' is not known", type);
}

static bool read_message(struct box_call *call, const json_t *message, bool strict,
                         struct box_open_calls *open, struct box_talk *talk)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    const json_t *content = json_object_get(message, "content");
    const bool user = role != NULL && strcmp(role, "user") == 0;
    if (!user && (role == NULL || strcmp(role, "assistant") != 0))
        return refuse(call,
                      "messages: Unexpected role \"%.40s\". Allowed roles are \"user\" or "
                      "\"assistant\".",
                      role == NULL ? "" : role);
    size_t others = 0;
    const size_t open_before = open->count;
    if (json_is_string(content)) {
        if (json_string_length(content) == 0)
            return refuse(call, "messages: text content blocks must be non-empty");
        box_talk_add(talk, user ? BOX_TURN_USER : BOX_TURN_MODEL, box_json_borrow(content), false);
    } else if (json_is_array(content) && json_array_size(content) > 0) {
        for (size_t i = 0; i < json_array_size(content); i++)
            if (!read_block(call, json_array_get(content, i), user, strict, open, &others, talk))
                return false;
    } else {
        return refuse(call, "messages.content: Field required");
    }
    if (open_before > 0 && open->count > 0)
        return refuse(call,
                      "messages: `tool_use` ids were found without `tool_result` blocks "
                      "immediately after: %.*s",
                      (int)(open->ids[0].bytes < 100 ? open->ids[0].bytes : 100),
                      open->ids[0].data);
    return true;
}

static bool read_tools(struct box_call *call, const json_t *tools, struct box_talk *talk)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const json_t *schema = json_object_get(tool, "input_schema");
        const tide_text name = box_json_borrow(json_object_get(tool, "name"));
        if (name.data == NULL || !box_tool_name_valid(name))
            return refuse(call, "tools.%zu.name: String should match '^[a-zA-Z0-9_-]{1,64}$'", i);
        if (!json_is_object(schema))
            return refuse(call, "tools.%zu.input_schema: Field required", i);
        talk->tools[talk->tools_count++] =
            (struct box_tool){name, box_json_borrow(json_object_get(tool, "description")), schema};
    }
    return true;
}

static bool read_choice(struct box_call *call, const json_t *choice, struct box_talk *talk)
{
    if (choice == NULL || json_is_null(choice))
        return true;
    const char *type = json_string_value(json_object_get(choice, "type"));
    talk->parallel = !json_is_true(json_object_get(choice, "disable_parallel_tool_use"));
    if (type != NULL && strcmp(type, "auto") == 0)
        return true;
    if (type != NULL && strcmp(type, "none") == 0) {
        talk->choice = BOX_TOOL_NONE;
        return true;
    }
    if (talk->tools_count == 0)
        return refuse(call, "tool_choice: may only be specified while providing tools");
    if (type != NULL && strcmp(type, "any") == 0) {
        talk->choice = BOX_TOOL_ANY;
        return true;
    }
    const tide_text name = box_json_borrow(json_object_get(choice, "name"));
    for (size_t i = 0;
         type != NULL && strcmp(type, "tool") == 0 && name.data != NULL && i < talk->tools_count;
         i++)
        if (tide_text_equal(talk->tools[i].name, name)) {
            talk->choice = BOX_TOOL_NAMED;
            talk->named = i;
            return true;
        }
    return refuse(call, "tool_choice: not one of auto, any, none, or the name of a tool");
}

static bool read_version(struct box_call *call, const json_t *body, bool *strict_out)
{
    const tide_text version = box_request_header(call->request, "anthropic-version");
    if (version.bytes == 0)
        return refuse(call, "anthropic-version: header is required");
    *strict_out = tide_text_equal(version, TIDE_TEXT("2026-10-21"));
    if (!*strict_out && !tide_text_equal(version, TIDE_TEXT("2023-06-01")))
        return refuse(call, "anthropic-version: \"%.*s\" is not a valid version",
                      (int)(version.bytes < 40 ? version.bytes : 40), version.data);
    static const char *const removed[] = {"temperature", "top_p", "top_k"};
    for (size_t i = 0; *strict_out && i < 3; i++)
        if (json_object_get(body, removed[i]) != NULL)
            return refuse(call, "%s: Extra inputs are not permitted", removed[i]);
    const json_t *temperature = json_object_get(body, "temperature");
    if (temperature != NULL &&
        (!json_is_number(temperature) || json_number_value(temperature) < 0 ||
         json_number_value(temperature) > 1))
        return refuse(call, "temperature: range: 0..1");
    return true;
}

static bool read_messages(struct box_call *call, const json_t *list, bool strict,
                          struct box_talk *talk)
{
    struct box_open_calls open = {.count = 0};
    const char *first = json_string_value(json_object_get(json_array_get(list, 0), "role"));
    if (first == NULL || strcmp(first, "user") != 0)
        return refuse(call, "messages: first message must use the \"user\" role");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_message(call, json_array_get(list, i), strict, &open, talk))
            return false;
    if (open.count > 0)
        return refuse(call, "messages: `tool_use` ids were found without `tool_result` blocks "
                            "immediately after");
    return true;
}

static bool read_request(struct box_call *call, const json_t *body, struct box_talk *talk)
{
    bool strict = false;
    if (!read_version(call, body, &strict))
        return false;
    const json_t *list = json_object_get(body, "messages");
    const json_t *tools = json_object_get(body, "tools");
    const json_t *limit = json_object_get(body, "max_tokens");
    const json_t *stops = json_object_get(body, "stop_sequences");
    talk->model = box_json_borrow(json_object_get(body, "model"));
    if (talk->model.bytes == 0)
        return refuse(call, "model: Field required");
    if (talk->model.bytes >= 7 && memcmp(talk->model.data, "no-such", 7) == 0) {
        fail(call, 404, "not_found_error", "model: not found", NULL);
        return false;
    }
    if (!json_is_integer(limit))
        return refuse(call, "max_tokens: Field required");
    if (json_integer_value(limit) < 1)
        return refuse(call, "max_tokens: Input should be greater than or equal to 1");
    talk->tokens_max = (uint64_t)json_integer_value(limit);
    if (!json_is_array(list) || json_array_size(list) == 0)
        return refuse(call, "messages: at least one message is required");
    size_t turns = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        turns += 1 + json_array_size(json_object_get(json_array_get(list, i), "content"));
    if (!box_talk_room(talk, turns, json_array_size(tools)))
        return refuse(call, "messages: too many messages or tools");
    if (json_array_size(stops) > BOX_TALK_STOPS_MAX)
        return refuse(call, "stop_sequences: at most %d are allowed", BOX_TALK_STOPS_MAX);
    for (size_t i = 0; i < json_array_size(stops); i++)
        talk->stops[talk->stops_count++] = box_json_borrow(json_array_get(stops, i));
    talk->system = box_parts_text(json_object_get(body, "system"), talk->arena);
    talk->stream = json_is_true(json_object_get(body, "stream"));
    return read_messages(call, list, strict, talk) && read_tools(call, tools, talk) &&
           read_choice(call, json_object_get(body, "tool_choice"), talk);
}

/* ---- writing ---- */

static json_t *input_of(const struct box_said *said, size_t i, struct box_writing writing)
{
    if (writing.bad_arguments)
        return json_pack("{s:b}", "unexpected_field", 1);
    return said->cut ? json_object() : json_deep_copy(said->calls[i].arguments);
}

static json_t *usage_of(const struct box_talk *talk, const struct box_said *said, bool at_start)
{
    uint64_t answer = box_tokens(box_said_bytes(said));
    if (said->cut && answer > talk->tokens_max)
        answer = talk->tokens_max;
    return json_pack("{s:I,s:i,s:i,s:I}", "input_tokens",
                     (json_int_t)box_tokens(talk->prompt_bytes), "cache_creation_input_tokens", 0,
                     "cache_read_input_tokens", 0, "output_tokens",
                     at_start ? (json_int_t)1 : (json_int_t)answer);
}

static const char *stop_reason(const struct box_said *said, struct box_writing writing)
{
    if (writing.refusal)
        return "refusal";
    if (said->cut)
        return "max_tokens";
    if (said->calls_count > 0)
        return "tool_use";
    return said->stop.data != NULL ? "stop_sequence" : "end_turn";
}

static json_t *stop_of(const struct box_said *said)
{
    return said->stop.data != NULL ? box_json_text(said->stop) : json_null();
}

static json_t *use_of(const struct box_talk *talk, const struct box_said *said, size_t i,
                      json_t *input)
{
    char id[48];
    box_talk_id(talk, "toolu_01", (uint32_t)i + 1, id);
    return json_pack("{s:s,s:s,s:o,s:o}", "type", "tool_use", "id", id, "name",
                     box_json_text(said->calls[i].name), "input", input);
}

static json_t *frame(const struct box_talk *talk, json_t *content)
{
    char id[48];
    box_talk_id(talk, "msg_01", 0, id);
    return json_pack("{s:s,s:s,s:s,s:o,s:o}", "id", id, "type", "message", "role", "assistant",
                     "model", box_json_text(talk->model), "content", content);
}

/* What the model thought, with a signature that shows later whether it was changed. */
static json_t *opaque_of(const struct box_talk *talk)
{
    char thought[64];
    char signature[SIGNATURE_BYTES];
    (void)snprintf(thought, sizeof thought, "Let me think about \xc2\xab%llx\xc2\xbb.",
                   (unsigned long long)talk->hash);
    sign(tide_text_of(thought), signature);
    return json_pack("{s:s,s:s,s:s}", "type", "thinking", "thinking", thought, "signature",
                     signature);
}

static void write_whole(struct box_call *call, const struct box_talk *talk,
                        const struct box_said *said, struct box_writing writing)
{
    json_t *content = json_array();
    if (writing.opaque)
        json_array_append_new(content, opaque_of(talk));
    if (said->text.bytes > 0)
        json_array_append_new(content, json_pack("{s:s,s:o}", "type", "text", "text",
                                                 box_json_text(tide_buf_text(&said->text))));
    for (size_t i = 0; i < said->calls_count; i++)
        json_array_append_new(content, use_of(talk, said, i, input_of(said, i, writing)));
    json_t *value = frame(talk, content);
    json_object_set_new(value, "stop_reason", json_string(stop_reason(said, writing)));
    json_object_set_new(value, "stop_sequence", stop_of(said));
    if (!writing.no_usage)
        json_object_set_new(value, "usage", usage_of(talk, said, false));
    box_answer_json(call->answer, 200, value, false);
}

static void write_block(tide_buf *out, size_t index, json_t *start, const char *type,
                        const char *key, tide_text rest)
{
    box_event(out, "content_block_start",
              json_pack("{s:s,s:I,s:o}", "type", "content_block_start", "index", (json_int_t)index,
                        "content_block", start));
    while (rest.bytes > 0)
        box_event(out, "content_block_delta",
                  json_pack("{s:s,s:I,s:{s:s,s:o}}", "type", "content_block_delta", "index",
                            (json_int_t)index, "delta", "type", type, key,
                            box_json_text(box_piece(&rest))));
    box_event(out, "content_block_stop",
              json_pack("{s:s,s:I}", "type", "content_block_stop", "index", (json_int_t)index));
}

/* The signature comes last, as an event of its own. */
static void write_opaque(tide_buf *out, const struct box_talk *talk, size_t index)
{
    json_auto_t *block = opaque_of(talk);
    tide_text rest = box_json_borrow(json_object_get(block, "thinking"));
    box_event(out, "content_block_start",
              json_pack("{s:s,s:I,s:{s:s,s:s,s:s}}", "type", "content_block_start", "index",
                        (json_int_t)index, "content_block", "type", "thinking", "thinking", "",
                        "signature", ""));
    while (rest.bytes > 0)
        box_event(out, "content_block_delta",
                  json_pack("{s:s,s:I,s:{s:s,s:o}}", "type", "content_block_delta", "index",
                            (json_int_t)index, "delta", "type", "thinking_delta", "thinking",
                            box_json_text(box_piece(&rest))));
    box_event(out, "content_block_delta",
              json_pack("{s:s,s:I,s:{s:s,s:O}}", "type", "content_block_delta", "index",
                        (json_int_t)index, "delta", "type", "signature_delta", "signature",
                        json_object_get(block, "signature")));
    box_event(out, "content_block_stop",
              json_pack("{s:s,s:I}", "type", "content_block_stop", "index", (json_int_t)index));
}

static void write_events(struct box_call *call, const struct box_talk *talk,
                         const struct box_said *said, struct box_writing writing)
{
    tide_buf *out = &call->answer->body;
    (void)snprintf(call->answer->type, sizeof call->answer->type, "text/event-stream");
    json_t *message = frame(talk, json_array());
    json_object_set_new(message, "stop_reason", json_null());
    json_object_set_new(message, "stop_sequence", json_null());
    json_object_set_new(message, "usage", usage_of(talk, said, true));
    box_event(out, "message_start",
              json_pack("{s:s,s:o}", "type", "message_start", "message", message));
    box_event(out, "ping", json_pack("{s:s}", "type", "ping"));
    size_t index = 0;
    if (writing.opaque)
        write_opaque(out, talk, index++);
    if (said->text.bytes > 0)
        write_block(out, index++, json_pack("{s:s,s:s}", "type", "text", "text", ""), "text_delta",
                    "text", tide_buf_text(&said->text));
    for (size_t i = 0; i < said->calls_count; i++) {
        json_auto_t *input = input_of(said, i, writing);
        char *text = json_dumps(input, JSON_COMPACT | BOX_JSON_REALS);
        TIDE_ASSERT(text != NULL);
        write_block(out, index++, use_of(talk, said, i, json_object()), "input_json_delta",
                    "partial_json", tide_text_of(text));
        free(text);
    }
    json_t *end = json_pack("{s:s,s:{s:s,s:o}}", "type", "message_delta", "delta", "stop_reason",
                            stop_reason(said, writing), "stop_sequence", stop_of(said));
    if (!writing.no_usage)
        json_object_set_new(end, "usage", usage_of(talk, said, false));
    box_event(out, "message_delta", end);
    box_event(out, "message_stop", json_pack("{s:s}", "type", "message_stop"));
}

const struct box_dialect box_anthropic = {
    .read = read_request,
    .write_whole = write_whole,
    .write_events = write_events,
    .id_prefix = "req_01",
    .id_header = "request-id",
    .no_key = no_key,
    .bad_request = bad_request,
    .bad_parameter = bad_parameter,
    .late_error = late_error,
    .billing = billing,
    .overloaded = overloaded,
    .too_fast = too_fast,
};
