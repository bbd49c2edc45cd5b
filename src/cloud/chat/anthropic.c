/* anthropic.c - Anthropic's messages. */
#include "cloud/chat/inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- requests ---- */

static void text_write(tide_text text, tide_json *list)
{
    tide_auto_json block = {.value = NULL};
    if (text.bytes == 0)
        return; /* an empty block is refused */
    tide_json_object(&block);
    tide_json_set_cstr(&block, "type", "text");
    tide_json_set_text(&block, "text", text);
    tide_json_append(list, &block);
}

static void result_write(const struct tide_chat_part *part, tide_json *list)
{
    tide_auto_json block = {.value = NULL};
    tide_json_object(&block);
    tide_json_set_cstr(&block, "type", "tool_result");
    tide_json_set_text(&block, "tool_use_id", part->id);
    tide_json_set_text(&block, "content", part->text);
    if (part->failed)
        tide_json_set_bool(&block, "is_error", true);
    tide_json_append(list, &block);
}

static tide_status call_write(const struct tide_chat_part *part, tide_json *list, tide_error *err)
{
    tide_auto_json block = {.value = NULL};
    tide_json_object(&block);
    tide_json_set_cstr(&block, "type", "tool_use");
    tide_json_set_text(&block, "id", part->id);
    tide_json_set_text(&block, "name", part->name);
    TIDE_TRY(tide_chat_object_set(&block, "input", part->arguments, err));
    tide_json_append(list, &block);
    return TIDE_OK;
}

/* A block as it came. */
static tide_status opaque_write(const struct tide_chat_part *part, tide_json *list, tide_error *err)
{
    json_t *value = NULL;
    const tide_status rc = tide_json_parse(part->text, &value, err);
    if (rc == TIDE_OK && json_array_append_new(list->value, value) != 0)
        list->failed = true;
    return rc;
}

static tide_status parts_write(const struct tide_chat_message *message, tide_json *list,
                               tide_error *err)
{
    for (size_t i = 0; i < message->parts_count; i++) {
        const struct tide_chat_part *part = &message->parts[i];
        if (part->kind == TIDE_CHAT_TEXT)
            text_write(part->text, list);
        else if (part->kind == TIDE_CHAT_CALL && message->role == TIDE_CHAT_ASSISTANT)
            TIDE_TRY(call_write(part, list, err));
        else if (part->kind == TIDE_CHAT_OPAQUE && message->role == TIDE_CHAT_ASSISTANT)
            TIDE_TRY(opaque_write(part, list, err));
    }
    return TIDE_OK;
}

/* One message of the user, out of all that follow each other: the results of a turn must stand
 * together, before any text. */
static tide_status user_write(const struct tide_chat_talk *talk, size_t from, size_t to,
                              tide_json *list, tide_error *err)
{
    for (size_t i = from; i < to; i++)
        for (size_t k = 0; k < talk->messages[i].parts_count; k++)
            if (talk->messages[i].parts[k].kind == TIDE_CHAT_RESULT)
                result_write(&talk->messages[i].parts[k], list);
    for (size_t i = from; i < to; i++)
        TIDE_TRY(parts_write(&talk->messages[i], list, err));
    return TIDE_OK;
}

static tide_status messages_write(const struct tide_chat_talk *talk, tide_json *body,
                                  tide_error *err)
{
    tide_auto_json list = {.value = NULL};
    tide_json_array(&list);
    for (size_t i = 0; i < talk->messages_count;) {
        tide_auto_json message = {.value = NULL};
        tide_auto_json content = {.value = NULL};
        const bool user = talk->messages[i].role == TIDE_CHAT_USER;
        size_t to = i + 1;
        while (user && to < talk->messages_count && talk->messages[to].role == TIDE_CHAT_USER)
            to++;
        tide_json_object(&message);
        tide_json_array(&content);
        TIDE_TRY(user ? user_write(talk, i, to, &content, err)
                      : parts_write(&talk->messages[i], &content, err));
        tide_json_set_cstr(&message, "role", user ? "user" : "assistant");
        const bool empty = json_array_size(content.value) == 0;
        tide_json_set(&message, "content", &content);
        if (!empty)
            tide_json_append(&list, &message);
        i = to;
    }
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
        tide_json_object(&tool);
        tide_json_set_text(&tool, "name", talk->tools[i].name);
        tide_json_set_text(&tool, "description", talk->tools[i].description);
        TIDE_TRY(tide_chat_object_set(&tool, "input_schema", talk->tools[i].schema, err));
        tide_json_append(&list, &tool);
    }
    tide_json_set(body, "tools", &list);
    return TIDE_OK;
}

static void choice_write(const struct tide_chat_talk *talk, tide_json *body)
{
    static const char *const types[] = {"auto", "none", "any", "tool"};
    tide_auto_json choice = {.value = NULL};
    if (talk->tools_count == 0 || talk->choice == TIDE_CHAT_CHOICE_AUTO)
        return;
    tide_json_object(&choice);
    tide_json_set_cstr(&choice, "type", types[talk->choice]);
    if (talk->choice == TIDE_CHAT_CHOICE_NAMED)
        tide_json_set_text(&choice, "name", talk->choice_name);
    tide_json_set(body, "tool_choice", &choice);
}

static tide_status request(const struct tide_chat_request *asked, tide_json *body, tide_error *err)
{
    enum { TEMPERATURE_MILLI_MAX = 1000 }; /* OpenAI's goes to 2 */
    const uint32_t milli = asked->talk->temperature_milli;
    tide_auto_buf system = tide_buf_heap(TIDE_CHAT_TALK_BYTES_MAX);
    TIDE_TRY(tide_chat_system(asked, &system, err));
    tide_json_set_text(body, "model", asked->model);
    tide_json_set_u64(body, "max_tokens", asked->tokens_max);
    if (system.bytes > 0)
        tide_json_set_text(body, "system", tide_buf_text(&system));
    TIDE_TRY(messages_write(asked->talk, body, err));
    TIDE_TRY(tools_write(asked->talk, body, err));
    choice_write(asked->talk, body);
    if (asked->temperature)
        tide_chat_real_set(body, "temperature",
                           milli < TEMPERATURE_MILLI_MAX ? milli : TEMPERATURE_MILLI_MAX);
    if (asked->stream)
        tide_json_set_bool(body, "stream", true);
    return TIDE_OK;
}

/* ---- answers ---- */

static bool type_is(const json_t *object, const char *type)
{
    const char *text = json_string_value(json_object_get(object, "type"));
    return text != NULL && strcmp(text, type) == 0;
}

/* What was read from a cache, or written to one, was said as well. */
static void usage_read(struct tide_chat_intake *self, const json_t *usage)
{
    static const char *const also[] = {"cache_read_input_tokens", "cache_creation_input_tokens"};
    bool known = false;
    uint64_t tokens = 0;
    tide_chat_intake_tokens(usage, "output_tokens", &self->out_known, &self->out_tokens);
    tide_chat_intake_tokens(usage, "input_tokens", &known, &tokens);
    if (!known)
        return;
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++) {
        uint64_t more = 0;
        tide_chat_intake_tokens(usage, also[i], &known, &more);
        tokens += more;
    }
    self->in_known = true;
    self->in_tokens = tokens;
}

static void stop_read(struct tide_chat_intake *self, const json_t *object)
{
    static const struct {
        const char *reason;
        tide_chat_stop stop;
    } rows[] = {
        {"end_turn", TIDE_CHAT_STOP_DONE},
        {"stop_sequence", TIDE_CHAT_STOP_DONE},
        {"max_tokens", TIDE_CHAT_STOP_LENGTH},
        {"model_context_window_exceeded", TIDE_CHAT_STOP_LENGTH},
        {"tool_use", TIDE_CHAT_STOP_TOOLS},
        {"refusal", TIDE_CHAT_STOP_REFUSED},
    };
    const char *reason = json_string_value(json_object_get(object, "stop_reason"));
    if (reason == NULL)
        return;
    self->finished = true;
    self->stop = TIDE_CHAT_STOP_OTHER;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(reason, rows[i].reason) == 0)
            self->stop = rows[i].stop;
}

/* The arguments of a call are an object here; {} at the start of a stream, where they follow. */
static void input_read(struct tide_chat_intake *self, struct tide_chat_block *block,
                       const json_t *input)
{
    if (input == NULL || json_is_null(input) ||
        (json_is_object(input) && json_object_size(input) == 0))
        return;
    char *dumped = json_dumps(input, JSON_COMPACT | JSON_ENCODE_ANY);
    json_t *text = dumped == NULL ? NULL : json_string(dumped);
    if (text == NULL)
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
    tide_chat_intake_add(self, &block->text, text);
    json_decref(text);
    free(dumped);
}

static void block_read(struct tide_chat_intake *self, json_t *value, uint64_t index)
{
    struct tide_chat_block *block = NULL;
    if (type_is(value, "text")) {
        block = tide_chat_block_new(self, TIDE_CHAT_TEXT, index);
        if (block != NULL)
            tide_chat_intake_add(self, &block->text, json_object_get(value, "text"));
    } else if (type_is(value, "tool_use")) {
        block = tide_chat_block_new(self, TIDE_CHAT_CALL, index);
        if (block == NULL)
            return;
        tide_chat_intake_add(self, &block->id, json_object_get(value, "id"));
        tide_chat_intake_add(self, &block->name, json_object_get(value, "name"));
        input_read(self, block, json_object_get(value, "input"));
    } else if (json_is_object(value)) {
        (void)tide_chat_block_opaque(self, value, index);
    } else {
        tide_chat_intake_fail(self, TIDE_SERVER, "a block of the answer is not a JSON object");
    }
}

static void whole(struct tide_chat_intake *self, const json_t *value)
{
    const json_t *content = json_object_get(value, "content");
    const json_t *error = json_object_get(value, "error");
    if (type_is(value, "error") || (error != NULL && !json_is_null(error))) {
        tide_chat_intake_refused(self, value);
        return;
    }
    self->said = json_is_array(content);
    self->over = self->said;
    tide_chat_intake_model(self, value);
    usage_read(self, json_object_get(value, "usage"));
    stop_read(self, value);
    for (size_t i = 0; self->failed == TIDE_OK && i < json_array_size(content); i++)
        block_read(self, json_array_get(content, i), i);
}

/* ---- events ---- */

static void opaque_delta(struct tide_chat_intake *self, struct tide_chat_block *block,
                         const json_t *delta)
{
    if (type_is(delta, "thinking_delta"))
        tide_chat_opaque_add(self, block, "thinking", json_object_get(delta, "thinking"));
    else if (type_is(delta, "signature_delta"))
        tide_chat_opaque_add(self, block, "signature", json_object_get(delta, "signature"));
    else if (type_is(delta, "text_delta"))
        tide_chat_opaque_add(self, block, "text", json_object_get(delta, "text"));
    else
        block->lost = true;
}

static void delta_read(struct tide_chat_intake *self, const json_t *value, uint64_t index)
{
    const json_t *delta = json_object_get(value, "delta");
    struct tide_chat_block *block = tide_chat_block_at(self, index);
    if (block == NULL)
        tide_chat_intake_fail(self, TIDE_SERVER, "a piece of the answer belongs to no block");
    else if (block->kind == TIDE_CHAT_OPAQUE)
        opaque_delta(self, block, delta);
    else if (type_is(delta, "text_delta") && block->kind == TIDE_CHAT_TEXT)
        tide_chat_intake_add(self, &block->text, json_object_get(delta, "text"));
    else if (type_is(delta, "input_json_delta") && block->kind == TIDE_CHAT_CALL)
        tide_chat_intake_add(self, &block->text, json_object_get(delta, "partial_json"));
    /* Others (citations) say more about a text, which is whole without them. */
}

static void event(struct tide_chat_intake *self, const json_t *value)
{
    const json_t *message = json_object_get(value, "message");
    uint64_t index = 0;
    (void)tide_json_get_u64(value, "index", &index, NULL);
    if (type_is(value, "error")) {
        tide_chat_intake_refused(self, value);
    } else if (type_is(value, "message_start")) {
        self->said = true;
        tide_chat_intake_model(self, message);
        usage_read(self, json_object_get(message, "usage"));
        self->out_known = false; /* of an answer that only begins */
    } else if (type_is(value, "content_block_start")) {
        block_read(self, json_object_get(value, "content_block"), index);
    } else if (type_is(value, "content_block_delta")) {
        delta_read(self, value, index);
    } else if (type_is(value, "message_delta")) {
        stop_read(self, json_object_get(value, "delta"));
        usage_read(self, json_object_get(value, "usage"));
    } else if (type_is(value, "message_stop")) {
        self->over = self->said;
    }
}

const struct tide_chat_reader tide_chat_reader_anthropic = {.whole = whole, .event = event};

const struct tide_chat_protocol tide_chat_anthropic = {
    .url = "https://api.anthropic.com",
    .call_path = "/messages",
    .version = "2023-06-01",
    .id_header = "request-id",
    .reader = &tide_chat_reader_anthropic,
    .request = request,
};
