/* talk_json.c - conversations and answers as JSON (talk.h). */
#include "cloud/chat/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHOICE_TOOL "tool:"

static const char *const choice_names[] = {"auto", "none", "any"};

/* ---- writing ---- */

static void flag_set(tide_json *json, const char *key, bool flag)
{
    if (flag)
        tide_json_set_bool(json, key, true);
}

static tide_status part_write(const struct tide_chat_part *part, tide_json *list, tide_error *err)
{
    static const char *const keys[] = {"text", "call", "result", "opaque"};
    tide_auto_json object = {.value = NULL};
    tide_auto_json inner = {.value = NULL};
    tide_status rc = TIDE_OK;
    tide_json_object(&object);
    if (part->kind == TIDE_CHAT_TEXT) {
        tide_json_set_text(&object, keys[part->kind], part->text);
    } else if (part->kind == TIDE_CHAT_OPAQUE) {
        rc = tide_chat_object_set(&object, keys[part->kind], part->text, err);
    } else {
        tide_json_object(&inner);
        tide_json_set_text(&inner, "id", part->id);
        if (part->kind == TIDE_CHAT_CALL) {
            tide_json_set_text(&inner, "name", part->name);
            rc = tide_chat_object_set(&inner, "arguments", part->arguments, err);
            flag_set(&inner, "invalid", part->invalid);
            flag_set(&inner, "unknown", part->unknown);
        } else {
            tide_json_set_text(&inner, "text", part->text);
            flag_set(&inner, "failed", part->failed);
        }
        tide_json_set(&object, keys[part->kind], &inner);
    }
    tide_json_append(list, &object);
    return rc;
}

static tide_status parts_write(const struct tide_chat_message *message, tide_json *object,
                               tide_error *err)
{
    tide_auto_json list = {.value = NULL};
    tide_status rc = TIDE_OK;
    tide_json_array(&list);
    for (size_t i = 0; rc == TIDE_OK && i < message->parts_count; i++)
        rc = part_write(&message->parts[i], &list, err);
    tide_json_set(object, "parts", &list);
    return rc;
}

static tide_status messages_write(const struct tide_chat_talk *talk, tide_json *object,
                                  tide_error *err)
{
    tide_auto_json list = {.value = NULL};
    tide_status rc = TIDE_OK;
    tide_json_array(&list);
    for (size_t i = 0; rc == TIDE_OK && i < talk->messages_count; i++) {
        tide_auto_json message = {.value = NULL};
        tide_json_object(&message);
        tide_json_set_cstr(&message, "role",
                           talk->messages[i].role == TIDE_CHAT_USER ? "user" : "assistant");
        rc = parts_write(&talk->messages[i], &message, err);
        tide_json_append(&list, &message);
    }
    tide_json_set(object, "messages", &list);
    return rc;
}

static tide_status tools_write(const struct tide_chat_talk *talk, tide_json *object,
                               tide_error *err)
{
    tide_auto_json list = {.value = NULL};
    tide_status rc = TIDE_OK;
    tide_json_array(&list);
    for (size_t i = 0; rc == TIDE_OK && i < talk->tools_count; i++) {
        tide_auto_json tool = {.value = NULL};
        tide_json_object(&tool);
        tide_json_set_text(&tool, "name", talk->tools[i].name);
        tide_json_set_text(&tool, "description", talk->tools[i].description);
        rc = tide_chat_object_set(&tool, "schema", talk->tools[i].schema, err);
        tide_json_append(&list, &tool);
    }
    tide_json_set(object, "tools", &list);
    return rc;
}

static void choice_write(const struct tide_chat_talk *talk, tide_json *object)
{
    char named[sizeof CHOICE_TOOL + TIDE_CHAT_ID_BYTES_MAX];
    if (talk->choice == TIDE_CHAT_CHOICE_NAMED) {
        (void)snprintf(named, sizeof named, CHOICE_TOOL "%.*s", (int)talk->choice_name.bytes,
                       talk->choice_name.data);
        tide_json_set_cstr(object, "choice", named);
    } else if (talk->choice != TIDE_CHAT_CHOICE_AUTO) {
        tide_json_set_cstr(object, "choice", choice_names[talk->choice]);
    }
}

static tide_status line_write(const tide_json *object, tide_status rc, tide_buf *out,
                              tide_error *err)
{
    if (rc != TIDE_OK)
        return rc;
    rc = tide_json_line(object, out);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "a conversation is too long to be stored");
}

tide_status tide_chat_talk_write(const struct tide_chat_talk *talk, tide_buf *out, tide_error *err)
{
    tide_auto_json object = {.value = NULL};
    tide_status rc = TIDE_OK;
    tide_json_object(&object);
    if (talk->model.bytes > 0)
        tide_json_set_text(&object, "model", talk->model);
    if (talk->system.bytes > 0)
        tide_json_set_text(&object, "system", talk->system);
    rc = messages_write(talk, &object, err);
    if (rc == TIDE_OK && talk->tools_count > 0)
        rc = tools_write(talk, &object, err);
    choice_write(talk, &object);
    flag_set(&object, "json", talk->json);
    if (rc == TIDE_OK && talk->schema.bytes > 0)
        rc = tide_chat_object_set(&object, "schema", talk->schema, err);
    if (talk->tokens_max > 0)
        tide_json_set_u64(&object, "tokens_max", talk->tokens_max);
    if (talk->has_temperature)
        tide_json_set_u64(&object, "temperature_milli", talk->temperature_milli);
    return line_write(&object, rc, out, err);
}

tide_status tide_chat_answer_write(const struct tide_chat_answer *answer, tide_buf *out,
                                   tide_error *err)
{
    tide_auto_json object = {.value = NULL};
    tide_json_object(&object);
    tide_json_set_text(&object, "text", answer->text);
    const tide_status rc = parts_write(&answer->message, &object, err);
    tide_json_set_cstr(&object, "stop", tide_chat_stop_name(answer->stop));
    tide_json_set_u64(&object, "in_tokens", answer->in_tokens);
    tide_json_set_u64(&object, "out_tokens", answer->out_tokens);
    flag_set(&object, "tokens_known", answer->tokens_known);
    tide_json_set_cstr(&object, "request_id", answer->request_id);
    tide_json_set_cstr(&object, "model", answer->model);
    tide_json_set_u64(&object, "latency_ms", answer->latency_ms);
    return line_write(&object, rc, out, err);
}

/* ---- reading ---- */

/* Copies, so that nothing points into the JSON value. */
struct reading {
    tide_arena *arena;
    tide_status failed;
    const char *field; /* what is wrong */
};

static bool wrong(struct reading *reading, const char *field)
{
    if (reading->failed == TIDE_OK) {
        reading->failed = TIDE_INVALID;
        reading->field = field;
    }
    return false;
}

static void *room(struct reading *reading, size_t bytes)
{
    void *memory = tide_arena_take(reading->arena, bytes);
    if (memory == NULL && reading->failed == TIDE_OK)
        reading->failed = TIDE_NO_MEMORY;
    return memory;
}

static tide_text copy(struct reading *reading, const char *text, size_t bytes)
{
    char *to = room(reading, bytes + 1);
    if (to == NULL)
        return TIDE_TEXT_NONE;
    memcpy(to, text, bytes);
    return (tide_text){to, bytes};
}

/* Absent: empty. */
static tide_text text_read(struct reading *reading, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL)
        return TIDE_TEXT_NONE;
    if (!json_is_string(value)) {
        (void)wrong(reading, key);
        return TIDE_TEXT_NONE;
    }
    return copy(reading, json_string_value(value), json_string_length(value));
}

/* An object as its text.  Absent: empty. */
static tide_text object_read(struct reading *reading, const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL)
        return TIDE_TEXT_NONE;
    if (!json_is_object(value)) {
        (void)wrong(reading, key);
        return TIDE_TEXT_NONE;
    }
    char *text = json_dumps(value, JSON_COMPACT);
    if (text == NULL) {
        reading->failed = TIDE_NO_MEMORY;
        return TIDE_TEXT_NONE;
    }
    const tide_text copied = copy(reading, text, strlen(text));
    free(text);
    return copied;
}

static uint64_t number_read(struct reading *reading, const json_t *object, const char *key,
                            uint64_t max)
{
    uint64_t number = 0;
    const tide_status rc = tide_json_get_u64(object, key, &number, NULL);
    if ((rc != TIDE_OK && rc != TIDE_NOT_FOUND) || number > max)
        (void)wrong(reading, key);
    return number;
}

static bool flag_read(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static void part_read(struct reading *reading, const json_t *value, struct tide_chat_part *part)
{
    const json_t *call = json_object_get(value, "call");
    const json_t *result = json_object_get(value, "result");
    if (json_is_object(call)) {
        *part = (struct tide_chat_part){.kind = TIDE_CHAT_CALL,
                                        .id = text_read(reading, call, "id"),
                                        .name = text_read(reading, call, "name"),
                                        .arguments = object_read(reading, call, "arguments"),
                                        .invalid = flag_read(call, "invalid"),
                                        .unknown = flag_read(call, "unknown")};
        if (part->name.bytes == 0 || part->arguments.bytes == 0)
            (void)wrong(reading, "call");
    } else if (json_is_object(result)) {
        *part = (struct tide_chat_part){.kind = TIDE_CHAT_RESULT,
                                        .id = text_read(reading, result, "id"),
                                        .text = text_read(reading, result, "text"),
                                        .failed = flag_read(result, "failed")};
    } else if (json_is_object(json_object_get(value, "opaque"))) {
        *part = (struct tide_chat_part){.kind = TIDE_CHAT_OPAQUE,
                                        .text = object_read(reading, value, "opaque")};
    } else if (json_is_string(json_object_get(value, "text"))) {
        *part = (struct tide_chat_part){.kind = TIDE_CHAT_TEXT,
                                        .text = text_read(reading, value, "text")};
    } else {
        (void)wrong(reading, "parts");
    }
}

static void parts_read(struct reading *reading, const json_t *object,
                       struct tide_chat_message *message)
{
    const json_t *list = json_object_get(object, "parts");
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > TIDE_CHAT_PARTS_MAX) {
        (void)wrong(reading, "parts");
        return;
    }
    struct tide_chat_part *parts = room(reading, (count + 1) * sizeof *parts);
    for (size_t i = 0; reading->failed == TIDE_OK && i < count; i++)
        part_read(reading, json_array_get(list, i), &parts[i]);
    message->parts = parts;
    message->parts_count = parts == NULL ? 0 : count;
}

static void messages_read(struct reading *reading, const json_t *object,
                          struct tide_chat_talk *talk)
{
    const json_t *list = json_object_get(object, "messages");
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > TIDE_CHAT_MESSAGES_MAX) {
        (void)wrong(reading, "messages");
        return;
    }
    struct tide_chat_message *messages = room(reading, (count + 1) * sizeof *messages);
    for (size_t i = 0; reading->failed == TIDE_OK && i < count; i++) {
        const json_t *value = json_array_get(list, i);
        const char *role = json_string_value(json_object_get(value, "role"));
        const bool user = role != NULL && strcmp(role, "user") == 0;
        if (!user && (role == NULL || strcmp(role, "assistant") != 0))
            (void)wrong(reading, "role");
        messages[i].role = user ? TIDE_CHAT_USER : TIDE_CHAT_ASSISTANT;
        parts_read(reading, value, &messages[i]);
    }
    talk->messages = messages;
    talk->messages_count = messages == NULL ? 0 : count;
}

static void tools_read(struct reading *reading, const json_t *object, struct tide_chat_talk *talk)
{
    const json_t *list = json_object_get(object, "tools");
    const size_t count = json_array_size(list);
    if ((list != NULL && !json_is_array(list)) || count > TIDE_CHAT_TOOLS_MAX) {
        (void)wrong(reading, "tools");
        return;
    }
    struct tide_chat_tool *tools = room(reading, (count + 1) * sizeof *tools);
    for (size_t i = 0; reading->failed == TIDE_OK && i < count; i++) {
        const json_t *value = json_array_get(list, i);
        tools[i] = (struct tide_chat_tool){text_read(reading, value, "name"),
                                           text_read(reading, value, "description"),
                                           object_read(reading, value, "schema")};
        if (tools[i].name.bytes == 0 || tools[i].schema.bytes == 0)
            (void)wrong(reading, "tools");
    }
    talk->tools = tools;
    talk->tools_count = tools == NULL ? 0 : count;
}

static void choice_read(struct reading *reading, const json_t *object, struct tide_chat_talk *talk)
{
    const tide_text choice = text_read(reading, object, "choice");
    const tide_text lead = TIDE_TEXT(CHOICE_TOOL);
    if (choice.bytes == 0)
        return;
    for (size_t i = 0; i < sizeof choice_names / sizeof choice_names[0]; i++) {
        if (tide_text_equal(choice, tide_text_of(choice_names[i]))) {
            talk->choice = (tide_chat_choice)i;
            return;
        }
    }
    if (choice.bytes <= lead.bytes || memcmp(choice.data, lead.data, lead.bytes) != 0) {
        (void)wrong(reading, "choice");
        return;
    }
    talk->choice = TIDE_CHAT_CHOICE_NAMED;
    talk->choice_name = (tide_text){choice.data + lead.bytes, choice.bytes - lead.bytes};
}

/* Opens the JSON and the arena. */
static tide_status begin(tide_text json, tide_mem *mem, tide_arena *arena, json_t **value_out,
                         tide_error *err)
{
    TIDE_TRY(tide_json_parse_stored(json, value_out, err));
    tide_arena_init(arena, mem, 4 * (size_t)TIDE_CHAT_TALK_BYTES_MAX);
    return TIDE_OK;
}

static tide_status reading_end(const struct reading *reading, const char *what, tide_error *err)
{
    if (reading->failed == TIDE_OK)
        return TIDE_OK;
    if (reading->failed == TIDE_NO_MEMORY)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %s", what);
    return tide_error_set(err, TIDE_INVALID, "%s: \"%s\" is wrong", what, reading->field);
}

tide_status tide_chat_talk_read(tide_text json, tide_mem *mem, struct tide_chat_stored *stored_out,
                                tide_error *err)
{
    struct tide_chat_stored stored = {.talk = {.messages_count = 0}};
    json_auto_t *value = NULL;
    TIDE_TRY(begin(json, mem, &stored.arena, &value, err));
    struct reading reading = {.arena = &stored.arena};
    struct tide_chat_talk *talk = &stored.talk;
    talk->model = text_read(&reading, value, "model");
    talk->system = text_read(&reading, value, "system");
    messages_read(&reading, value, talk);
    tools_read(&reading, value, talk);
    choice_read(&reading, value, talk);
    talk->json = flag_read(value, "json");
    talk->schema = object_read(&reading, value, "schema");
    talk->tokens_max = (uint32_t)number_read(&reading, value, "tokens_max", UINT32_MAX);
    talk->has_temperature = json_object_get(value, "temperature_milli") != NULL;
    talk->temperature_milli = (uint32_t)number_read(&reading, value, "temperature_milli", 2000);
    const tide_status rc = reading_end(&reading, "a stored conversation", err);
    if (rc == TIDE_OK)
        *stored_out = stored;
    else
        tide_arena_done(&stored.arena);
    return rc;
}

/* The calls among the parts, together. */
static void calls_read(struct reading *reading, struct tide_chat_answer *answer)
{
    struct tide_chat_part *calls =
        room(reading, (answer->message.parts_count + 1) * sizeof *answer->calls);
    for (size_t i = 0; calls != NULL && i < answer->message.parts_count; i++)
        if (answer->message.parts[i].kind == TIDE_CHAT_CALL)
            calls[answer->calls_count++] = answer->message.parts[i];
    answer->calls = calls;
}

static void stop_read(struct reading *reading, const json_t *value, struct tide_chat_answer *answer)
{
    const char *name = json_string_value(json_object_get(value, "stop"));
    for (size_t i = 0; name != NULL && i <= TIDE_CHAT_STOP_OTHER; i++) {
        if (strcmp(name, tide_chat_stop_name((tide_chat_stop)i)) == 0) {
            answer->stop = (tide_chat_stop)i;
            return;
        }
    }
    (void)wrong(reading, "stop");
}

static void name_read(const json_t *value, const char *key, char out[TIDE_CHAT_ID_BYTES_MAX])
{
    const char *text = json_string_value(json_object_get(value, key));
    (void)snprintf(out, TIDE_CHAT_ID_BYTES_MAX, "%s", text == NULL ? "" : text);
}

tide_status tide_chat_answer_read(tide_text json, tide_mem *mem,
                                  struct tide_chat_answer *answer_out, tide_error *err)
{
    struct tide_chat_answer answer = {.message = {.role = TIDE_CHAT_ASSISTANT}};
    json_auto_t *value = NULL;
    TIDE_TRY(begin(json, mem, &answer.arena, &value, err));
    struct reading reading = {.arena = &answer.arena};
    answer.text = text_read(&reading, value, "text");
    parts_read(&reading, value, &answer.message);
    calls_read(&reading, &answer);
    stop_read(&reading, value, &answer);
    answer.in_tokens = number_read(&reading, value, "in_tokens", INT64_MAX);
    answer.out_tokens = number_read(&reading, value, "out_tokens", INT64_MAX);
    answer.tokens_known = flag_read(value, "tokens_known");
    name_read(value, "request_id", answer.request_id);
    name_read(value, "model", answer.model);
    answer.latency_ms = (uint32_t)number_read(&reading, value, "latency_ms", UINT32_MAX);
    const tide_status rc = reading_end(&reading, "a stored answer", err);
    if (rc == TIDE_OK)
        *answer_out = answer;
    else
        tide_arena_done(&answer.arena);
    return rc;
}
