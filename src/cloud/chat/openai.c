/* openai.c - chat completions, as OpenAI and the many servers that imitate it know them. */
#include "cloud/chat/inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static void call_write(const struct tide_chat_part *part, tide_json *list)
{
    tide_auto_json call = {.value = NULL};
    tide_auto_json function = {.value = NULL};
    tide_json_object(&call);
    tide_json_object(&function);
    tide_json_set_text(&function, "name", part->name);
    tide_json_set_text(&function, "arguments", part->arguments); /* a text here */
    tide_json_set_text(&call, "id", part->id);
    tide_json_set_cstr(&call, "type", "function");
    tide_json_set(&call, "function", &function);
    tide_json_append(list, &call);
}

/* The texts of a message, joined. */
static tide_status text_set(const struct tide_chat_message *message, tide_json *object,
                            bool *has_text_out, tide_error *err)
{
    tide_auto_buf text = tide_buf_heap(TIDE_CHAT_TALK_BYTES_MAX);
    *has_text_out = false;
    for (size_t i = 0; i < message->parts_count; i++) {
        const struct tide_chat_part *part = &message->parts[i];
        if (part->kind != TIDE_CHAT_TEXT)
            continue;
        tide_status rc = *has_text_out ? tide_buf_add(&text, "\n", 1) : TIDE_OK;
        if (rc == TIDE_OK)
            rc = tide_buf_add(&text, part->text.data, part->text.bytes);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc == TIDE_FULL ? TIDE_INVALID : rc,
                                  "the conversation is too long to be sent");
        *has_text_out = true;
    }
    if (*has_text_out)
        tide_json_set_text(object, "content", tide_buf_text(&text));
    return TIDE_OK;
}

/* Each result is a message of its own. */
static void results_write(const struct tide_chat_message *message, tide_json *list)
{
    for (size_t i = 0; i < message->parts_count; i++) {
        const struct tide_chat_part *part = &message->parts[i];
        tide_auto_json object = {.value = NULL};
        if (part->kind != TIDE_CHAT_RESULT)
            continue;
        tide_json_object(&object);
        tide_json_set_cstr(&object, "role", "tool");
        tide_json_set_text(&object, "tool_call_id", part->id);
        tide_json_set_text(&object, "content", part->text);
        tide_json_append(list, &object);
    }
}

static tide_status message_write(const struct tide_chat_message *message, tide_json *list,
                                 tide_error *err)
{
    const bool user = message->role == TIDE_CHAT_USER;
    tide_auto_json object = {.value = NULL};
    tide_auto_json calls = {.value = NULL};
    bool has_text = false;
    bool has_calls = false;
    results_write(message, list);
    tide_json_object(&object);
    tide_json_array(&calls);
    tide_json_set_cstr(&object, "role", user ? "user" : "assistant");
    TIDE_TRY(text_set(message, &object, &has_text, err));
    for (size_t i = 0; !user && i < message->parts_count; i++) {
        if (message->parts[i].kind == TIDE_CHAT_CALL) {
            call_write(&message->parts[i], &calls);
            has_calls = true;
        }
    }
    if (!has_text && !has_calls)
        return TIDE_OK; /* results alone */
    if (!has_text)
        tide_json_set_null(&object, "content");
    if (has_calls)
        tide_json_set(&object, "tool_calls", &calls);
    tide_json_append(list, &object);
    return TIDE_OK;
}

static tide_status messages_write(const struct tide_chat_request *asked, tide_json *body,
                                  tide_error *err)
{
    tide_auto_json list = {.value = NULL};
    tide_auto_buf system = tide_buf_heap(TIDE_CHAT_TALK_BYTES_MAX);
    TIDE_TRY(tide_chat_system(asked, &system, err));
    tide_json_array(&list);
    if (system.bytes > 0) {
        tide_auto_json object = {.value = NULL};
        tide_json_object(&object);
        tide_json_set_cstr(&object, "role", "system"); /* known to all; "developer" is not */
        tide_json_set_text(&object, "content", tide_buf_text(&system));
        tide_json_append(&list, &object);
    }
    for (size_t i = 0; i < asked->talk->messages_count; i++)
        TIDE_TRY(message_write(&asked->talk->messages[i], &list, err));
    tide_json_set(body, "messages", &list);
    return TIDE_OK;
}

static tide_status tools_write(const struct tide_chat_talk *talk, tide_json *body, tide_error *err)
{
    tide_auto_json list = {.value = NULL};
    if (talk->tools_count == 0)
        return TIDE_OK;
    tide_json_array(&list);
    for (size_t i = 0; i < talk->tools_count; i++) {
        tide_auto_json tool = {.value = NULL};
        tide_auto_json function = {.value = NULL};
        tide_json_object(&tool);
        tide_json_object(&function);
        tide_json_set_text(&function, "name", talk->tools[i].name);
        tide_json_set_text(&function, "description", talk->tools[i].description);
        TIDE_TRY(tide_chat_object_set(&function, "parameters", talk->tools[i].schema, err));
        tide_json_set_cstr(&tool, "type", "function");
        tide_json_set(&tool, "function", &function);
        tide_json_append(&list, &tool);
    }
    tide_json_set(body, "tools", &list);
    return TIDE_OK;
}

static void choice_write(const struct tide_chat_talk *talk, tide_json *body)
{
    tide_auto_json choice = {.value = NULL};
    tide_auto_json function = {.value = NULL};
    if (talk->tools_count == 0 || talk->choice == TIDE_CHAT_CHOICE_AUTO)
        return;
    if (talk->choice != TIDE_CHAT_CHOICE_NAMED) {
        tide_json_set_cstr(body, "tool_choice",
                           talk->choice == TIDE_CHAT_CHOICE_NONE ? "none" : "required");
        return;
    }
    tide_json_object(&choice);
    tide_json_object(&function);
    tide_json_set_text(&function, "name", talk->choice_name);
    tide_json_set_cstr(&choice, "type", "function");
    tide_json_set(&choice, "function", &function);
    tide_json_set(body, "tool_choice", &choice);
}

static tide_status format_write(const struct tide_chat_request *asked, tide_json *body,
                                tide_error *err)
{
    const struct tide_chat_talk *talk = asked->talk;
    tide_auto_json format = {.value = NULL};
    tide_auto_json named = {.value = NULL};
    if (!talk->json || asked->format == TIDE_CHAT_FORMAT_OFF)
        return TIDE_OK;
    tide_json_object(&format);
    if (asked->format == TIDE_CHAT_FORMAT_SCHEMA && talk->schema.bytes > 0) {
        tide_json_object(&named);
        tide_json_set_cstr(&named, "name", "answer");
        TIDE_TRY(tide_chat_object_set(&named, "schema", talk->schema, err));
        tide_json_set_cstr(&format, "type", "json_schema");
        tide_json_set(&format, "json_schema", &named);
    } else {
        tide_json_set_cstr(&format, "type", "json_object");
    }
    tide_json_set(body, "response_format", &format);
    return TIDE_OK;
}

static tide_status request(const struct tide_chat_request *asked, tide_json *body, tide_error *err)
{
    tide_json_set_text(body, "model", asked->model);
    TIDE_TRY(messages_write(asked, body, err));
    TIDE_TRY(tools_write(asked->talk, body, err));
    choice_write(asked->talk, body);
    TIDE_TRY(format_write(asked, body, err));
    tide_json_set_u64(body, asked->old_limit ? "max_tokens" : "max_completion_tokens",
                      asked->tokens_max);
    if (asked->temperature)
        tide_chat_real_set(body, "temperature", asked->talk->temperature_milli);
    if (asked->stream) {
        tide_json_set_bool(body, "stream", true);
        if (asked->stream_usage) {
            tide_auto_json options = {.value = NULL};
            tide_json_object(&options);
            tide_json_set_bool(&options, "include_usage", true);
            tide_json_set(body, "stream_options", &options);
        }
    }
    return TIDE_OK;
}

/* ---- answers ---- */

static void usage_read(struct tide_chat_intake *self, const json_t *value)
{
    const json_t *usage = json_object_get(value, "usage");
    tide_chat_intake_tokens(usage, "prompt_tokens", &self->in_known, &self->in_tokens);
    tide_chat_intake_tokens(usage, "completion_tokens", &self->out_known, &self->out_tokens);
}

static void finish_read(struct tide_chat_intake *self, const json_t *choice)
{
    static const struct {
        const char *reason;
        tide_chat_stop stop;
    } rows[] = {
        {"stop", TIDE_CHAT_STOP_DONE},
        {"length", TIDE_CHAT_STOP_LENGTH},
        {"tool_calls", TIDE_CHAT_STOP_TOOLS},
        {"function_call", TIDE_CHAT_STOP_TOOLS},
        {"content_filter", TIDE_CHAT_STOP_REFUSED},
    };
    const char *reason = json_string_value(json_object_get(choice, "finish_reason"));
    if (reason == NULL)
        return;
    self->finished = true;
    self->stop = TIDE_CHAT_STOP_OTHER;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(reason, rows[i].reason) == 0)
            self->stop = rows[i].stop;
}

/* A text, or the texts of a list of parts. */
static void content_read(struct tide_chat_intake *self, const json_t *content)
{
    tide_chat_intake_text(self, content);
    for (size_t i = 0; i < json_array_size(content); i++)
        tide_chat_intake_text(self, json_object_get(json_array_get(content, i), "text"));
}

/* The call that a piece belongs to: by its number, unless its id says that it is another one (there
 * are servers that number all of them 0).  Without a number it is the last one. */
static struct tide_chat_block *call_of(struct tide_chat_intake *self, const json_t *piece,
                                       uint64_t otherwise)
{
    const json_t *id = json_object_get(piece, "id");
    uint64_t index = otherwise;
    struct tide_chat_block *block = NULL;
    if (tide_json_get_u64(piece, "index", &index, NULL) != TIDE_OK)
        index = otherwise;
    block = tide_chat_block_at(self, index);
    if (block != NULL && json_string_length(id) > 0 && block->id.bytes > 0 &&
        !tide_text_equal(tide_buf_text(&block->id),
                         (tide_text){json_string_value(id), json_string_length(id)}))
        block = NULL;
    if (block != NULL)
        return block;
    block = tide_chat_block_new(self, TIDE_CHAT_CALL, index);
    if (block != NULL)
        tide_chat_intake_add(self, &block->id, id);
    return block;
}

/* Arguments are a text; some servers give the object itself. */
static void arguments_read(struct tide_chat_intake *self, struct tide_chat_block *block,
                           const json_t *arguments)
{
    json_t *text = NULL;
    char *dumped = json_is_object(arguments) ? json_dumps(arguments, JSON_COMPACT) : NULL;
    if (dumped != NULL)
        text = json_string(dumped);
    tide_chat_intake_add(self, &block->text, dumped != NULL ? text : arguments);
    json_decref(text);
    free(dumped);
}

static void calls_read(struct tide_chat_intake *self, const json_t *list)
{
    for (size_t i = 0; self->failed == TIDE_OK && i < json_array_size(list); i++) {
        const json_t *piece = json_array_get(list, i);
        const json_t *function = json_object_get(piece, "function");
        struct tide_chat_block *block = call_of(self, piece, i);
        if (block == NULL)
            return;
        if (block->id.bytes == 0)
            tide_chat_intake_add(self, &block->id, json_object_get(piece, "id"));
        if (block->name.bytes == 0)
            tide_chat_intake_add(self, &block->name, json_object_get(function, "name"));
        arguments_read(self, block, json_object_get(function, "arguments"));
    }
}

static void said_read(struct tide_chat_intake *self, const json_t *choice, const json_t *message)
{
    const json_t *refusal = json_object_get(message, "refusal");
    self->said = true;
    content_read(self, json_object_get(message, "content"));
    if (json_string_length(refusal) > 0) {
        self->refused = true;
        tide_chat_intake_text(self, refusal);
    }
    calls_read(self, json_object_get(message, "tool_calls"));
    finish_read(self, choice);
}

static void value_read(struct tide_chat_intake *self, const json_t *value, const char *key)
{
    const json_t *choices = json_object_get(value, "choices");
    const json_t *choice = json_array_get(choices, 0);
    const json_t *error = json_object_get(value, "error");
    if (error != NULL && !json_is_null(error)) {
        tide_chat_intake_refused(self, value);
        return;
    }
    tide_chat_intake_model(self, value);
    usage_read(self, value);
    if (json_is_object(json_object_get(choice, key)))
        said_read(self, choice, json_object_get(choice, key));
    else if (choice != NULL)
        finish_read(self, choice);
}

static void whole(struct tide_chat_intake *self, const json_t *value)
{
    value_read(self, value, "message");
    self->over = self->said; /* also where the server names no reason */
}

static void event(struct tide_chat_intake *self, const json_t *value)
{
    value_read(self, value, "delta");
}

const struct tide_chat_reader tide_chat_reader_openai = {
    .whole = whole, .event = event, .last = "[DONE]"};

const struct tide_chat_protocol tide_chat_openai = {
    .url = "https://api.openai.com",
    .call_path = "/chat/completions",
    .id_header = "x-request-id",
    .reader = &tide_chat_reader_openai,
    .request = request,
};
