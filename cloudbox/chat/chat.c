/* The chat service: keys, faults, fixtures, and the two dialects' methods. */
#include "cloudbox/chat/chat.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "cloudbox/chat/faults.h"
#include "cloudbox/chat/keys.h"
#include "cloudbox/chat/obey.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { FIXTURES_MAX = 1000, MODELS = 2, METER = 1 };

struct box_chat_state {
    uint64_t seed;
    uint64_t refusals; /* so far: the ways of refusing alternate */
    json_t *fixtures[FIXTURES_MAX];
    size_t fixtures_count;
    struct box_keys keys;
};

/* ---- state ---- */

static void *open_chat(box_cloud *cloud)
{
    struct box_chat_state *chat = tide_mem_new(tide_mem_heap(), sizeof *chat);
    TIDE_ASSERT(chat != NULL);
    chat->seed = box_cloud_options(cloud)->seed;
    box_keys_init(&chat->keys);
    return chat;
}

struct box_chat_state *box_cloud_chat(box_cloud *cloud)
{
    return box_cloud_state(cloud, &box_chat);
}

void box_chat_clear_fixtures(struct box_chat_state *chat)
{
    for (size_t i = 0; i < chat->fixtures_count; i++)
        json_decref(chat->fixtures[i]);
    chat->fixtures_count = 0;
}

static void close_chat(void *state)
{
    struct box_chat_state *chat = state;
    box_chat_clear_fixtures(chat);
    box_keys_done(&chat->keys);
    tide_mem_free(tide_mem_heap(), chat, sizeof *chat);
}

tide_status box_chat_add_fixture(struct box_chat_state *chat, const json_t *fixture,
                                 tide_error *err)
{
    const json_t *tool = json_object_get(fixture, "tool");
    const json_t *arguments = json_object_get(tool, "arguments");
    if (!json_is_string(json_object_get(fixture, "contains")))
        return tide_error_set(err, TIDE_INVALID, "a fixture needs a text in \"contains\"");
    if (tool == NULL && !json_is_string(json_object_get(fixture, "reply")) &&
        !json_is_true(json_object_get(fixture, "obeys")))
        return tide_error_set(err, TIDE_INVALID,
                              "a fixture needs \"reply\", \"tool\" or \"obeys\"");
    if (tool != NULL && (!json_is_string(json_object_get(tool, "name")) ||
                         (arguments != NULL && !json_is_object(arguments))))
        return tide_error_set(err, TIDE_INVALID,
                              "a fixture's \"tool\" needs a \"name\" and an object \"arguments\"");
    if (chat->fixtures_count == FIXTURES_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d fixtures", FIXTURES_MAX);
    chat->fixtures[chat->fixtures_count] = json_deep_copy(fixture);
    TIDE_ASSERT(chat->fixtures[chat->fixtures_count] != NULL);
    chat->fixtures_count++;
    return TIDE_OK;
}

/* ---- shared by the dialects ---- */

tide_text box_json_borrow(const json_t *value)
{
    return (tide_text){json_string_value(value), json_string_length(value)};
}

tide_text box_parts_text(const json_t *content, tide_arena *arena)
{
    if (json_is_string(content))
        return box_json_borrow(content);
    if (!json_is_array(content))
        return TIDE_TEXT_NONE;
    size_t bytes = 0;
    for (size_t i = 0; i < json_array_size(content); i++)
        bytes += json_string_length(json_object_get(json_array_get(content, i), "text")) + 1;
    char *to = tide_arena_take(arena, bytes + 1);
    TIDE_ASSERT(to != NULL);
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(content); i++) {
        const tide_text text = box_json_borrow(json_object_get(json_array_get(content, i), "text"));
        if (text.bytes == 0)
            continue;
        if (at > 0)
            to[at++] = '\n';
        memcpy(to + at, text.data, text.bytes);
        at += text.bytes;
    }
    return (tide_text){to, at};
}

bool box_talk_room(struct box_talk *talk, size_t turns, size_t tools)
{
    if (turns > BOX_TALK_TURNS_MAX || tools > BOX_TALK_TOOLS_MAX)
        return false;
    talk->turns = tide_arena_take(talk->arena, (turns + 1) * sizeof *talk->turns);
    talk->tools = tide_arena_take(talk->arena, (tools + 1) * sizeof *talk->tools);
    TIDE_ASSERT(talk->turns != NULL && talk->tools != NULL);
    return true;
}

void box_talk_add(struct box_talk *talk, box_turn_role role, tide_text text, bool failed)
{
    talk->turns[talk->turns_count++] = (struct box_turn){role, text, failed};
}

bool box_tool_name_valid(tide_text name)
{
    for (size_t i = 0; i < name.bytes; i++)
        if (!isalnum((unsigned char)name.data[i]) && name.data[i] != '_' && name.data[i] != '-')
            return false;
    return name.bytes >= 1 && name.bytes <= 64;
}

void box_talk_id(const struct box_talk *talk, const char *prefix, uint32_t nth, char out[48])
{
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    tide_rng rng = tide_rng_seeded(talk->hash + nth);
    size_t at = (size_t)snprintf(out, 48, "%.20s", prefix);
    for (size_t i = 0; i < 24; i++)
        out[at++] = letters[tide_rng_below(&rng, sizeof letters - 1)];
    out[at] = '\0';
}

void box_event(tide_buf *out, const char *name, json_t *value)
{
    TIDE_ASSERT(value != NULL);
    char *text = json_dumps(value, JSON_COMPACT | BOX_JSON_REALS);
    TIDE_ASSERT(text != NULL);
    if (name != NULL)
        box_print(out, "event: %s\n", name);
    box_add_cstr(out, "data: ");
    box_add_cstr(out, text);
    box_add_cstr(out, "\n\n");
    free(text);
    json_decref(value);
}

bool box_close_call(struct box_open_calls *open, tide_text id)
{
    for (size_t i = 0; i < open->count; i++)
        if (tide_text_equal(open->ids[i], id)) {
            open->ids[i] = open->ids[--open->count];
            return true;
        }
    return false;
}

tide_text box_piece(tide_text *rest)
{
    const size_t most = rest->bytes / 1024 > 24 ? rest->bytes / 1024 : 24;
    size_t bytes = rest->bytes < most ? rest->bytes : most;
    while (bytes < rest->bytes && ((unsigned char)rest->data[bytes] & 0xc0) == 0x80)
        bytes++;
    const tide_text piece = {rest->data, bytes};
    rest->data += bytes;
    rest->bytes -= bytes;
    return piece;
}

/* ---- answering ---- */

/* Whether a fixture speaks: its tool first, its reply once the tool has answered. */
static bool answer_fixture(const struct box_chat_state *chat, const struct box_talk *talk,
                           struct box_said *said, bool *obeyed_out)
{
    const tide_text all = chat->fixtures_count == 0 ? TIDE_TEXT_NONE : box_talk_text(talk);
    for (size_t i = 0; i < chat->fixtures_count; i++) {
        const json_t *fixture = chat->fixtures[i];
        const tide_text piece = box_json_borrow(json_object_get(fixture, "contains"));
        if (all.bytes == 0 || memmem(all.data, all.bytes, piece.data, piece.bytes) == NULL)
            continue;
        *obeyed_out = json_is_true(json_object_get(fixture, "obeys")) && box_model_obey(talk, said);
        if (*obeyed_out)
            return true;
        const json_t *tool = json_object_get(fixture, "tool");
        const tide_text name = box_json_borrow(json_object_get(tool, "name"));
        bool called = false;
        for (size_t k = 0; k < talk->turns_count; k++)
            called = called || (talk->turns[k].role == BOX_TURN_CALL &&
                                tide_text_equal(talk->turns[k].text, name));
        if (tool != NULL && !called) {
            const json_t *arguments = json_object_get(tool, "arguments");
            said->calls[0].name = name;
            said->calls[0].arguments =
                arguments == NULL ? json_object() : json_deep_copy(arguments);
            said->calls_count = 1;
            return true;
        }
        const tide_text reply = box_json_borrow(json_object_get(fixture, "reply"));
        if (reply.data == NULL)
            continue;
        box_add(&said->text, reply.data, reply.bytes);
        return true;
    }
    return false;
}

static tide_text key_of(const struct box_call *call)
{
    tide_text key = box_request_header(call->request, "Authorization");
    if (key.bytes > 7 && strncasecmp(key.data, "Bearer ", 7) == 0)
        key = (tide_text){key.data + 7, key.bytes - 7};
    else
        key = box_request_header(call->request, "x-api-key");
    while (key.bytes > 0 && key.data[0] == ' ')
        key = (tide_text){key.data + 1, key.bytes - 1};
    return key;
}

static uint32_t key_number(const struct box_call *call)
{
    return box_keys_number(&box_cloud_chat(call->cloud)->keys, key_of(call));
}

static uint64_t request_of(const struct box_call *call)
{
    return tide_hash(TIDE_HASH_START, call->request->body);
}

/* ---- one answer ---- */

static void answer(struct box_call *call, const struct box_dialect *dialect, const json_t *body)
{
    struct box_chat_state *chat = box_cloud_chat(call->cloud);
    struct box_faults *faults = box_cloud_faults(call->cloud);
    struct box_talk talk = {.arena = call->scratch,
                            .parallel = true,
                            .prompt_bytes = call->request->body.bytes,
                            .hash = request_of(call) ^ chat->seed};
    struct box_writing writing = {.no_usage = false};
    if (!dialect->read(call, body, &talk))
        return;
    if (talk.tools_count > 0 && box_faults_strikes(faults, call, "endless-tools"))
        talk.choice = BOX_TOOL_ANY;
    if (talk.stream && box_faults_strikes(faults, call, "no-stream"))
        talk.stream = false;
    struct box_said said;
    box_said_init(&said);
    bool obeyed = false;
    if (!answer_fixture(chat, &talk, &said, &obeyed))
        box_model_answer(&talk, &said);
    box_chat_spoil_said(call, &talk, &said, &writing);
    box_model_limit(&talk, &said);
    box_answer_clear(call->answer);
    (talk.stream ? dialect->write_events : dialect->write_whole)(call, &talk, &said, writing);
    char id[48];
    box_talk_id(&talk, dialect->id_prefix, 99, id);
    box_answer_header(call->answer, dialect->id_header, id);
    box_keys_answered(&chat->keys, key_number(call), request_of(call),
                      box_tokens(talk.prompt_bytes), box_tokens(box_said_bytes(&said)));
    if (obeyed)
        box_keys_obeyed(&chat->keys, key_number(call));
    box_said_done(&said);
    box_chat_spoil_written(call, dialect, talk.stream);
}

static void serve(struct box_call *call, const struct box_dialect *dialect)
{
    struct box_chat_state *chat = box_cloud_chat(call->cloud);
    struct box_faults *faults = box_cloud_faults(call->cloud);
    if (key_of(call).bytes == 0) {
        dialect->no_key(call);
        return;
    }
    box_keys_asked(&chat->keys, key_number(call), request_of(call));
    if (box_faults_strikes(faults, call, "billing")) {
        box_keys_billed(&chat->keys, key_number(call));
        dialect->billing(call, chat->refusals++ % 2 != 0);
        return;
    }
    if (box_faults_strikes(faults, call, "overloaded")) {
        dialect->overloaded(call);
        return;
    }
    json_auto_t *body = NULL;
    tide_error err = {0};
    if (tide_json_parse(call->request->body, &body, &err) != TIDE_OK || !json_is_object(body)) {
        dialect->bad_request(call, "We could not parse the JSON body of your request.");
        return;
    }
    if (!box_chat_refuses(call, dialect, body))
        answer(call, dialect, body);
}

static void chat_completions(struct box_call *call)
{
    serve(call, &box_openai);
}

static void messages(struct box_call *call)
{
    serve(call, &box_anthropic);
}

static void models(struct box_call *call)
{
    static const char *const names[MODELS] = {"tide-fast", "tide-good"};
    const bool anthropic = box_request_header(call->request, "anthropic-version").bytes > 0;
    if (key_of(call).bytes == 0) {
        (anthropic ? &box_anthropic : &box_openai)->no_key(call);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < MODELS; i++)
        json_array_append_new(
            list, anthropic
                      ? json_pack("{s:s,s:s,s:s,s:s}", "type", "model", "id", names[i],
                                  "display_name", names[i], "created_at", "2026-01-01T00:00:00Z")
                      : json_pack("{s:s,s:s,s:i,s:s}", "id", names[i], "object", "model", "created",
                                  1767225600, "owned_by", "tide"));
    json_t *value = anthropic ? json_pack("{s:o,s:b,s:s,s:s}", "data", list, "has_more", 0,
                                          "first_id", names[0], "last_id", names[MODELS - 1])
                              : json_pack("{s:s,s:o}", "object", "list", "data", list);
    box_answer_json(call->answer, 200, value, false);
}

static const struct box_method methods[] = {
    {"chat.completions.create", BOX_POST, "/v1/chat/completions", 0, METER, 1, 1, chat_completions},
    {"chat.messages.create", BOX_POST, "/v1/messages", 0, METER, 1, 1, messages},
    {"chat.models.list", BOX_GET, "/v1/models", 0, BOX_METER_NONE, 0, 0, models},
};

/* ---- errors of the gate ---- */

static bool is_anthropic(const struct box_call *call)
{
    return call->method != NULL && strstr(call->method->path, "/messages") != NULL;
}

/* Each dialect has an envelope of its own. */
static void envelope(struct box_call *call, const struct box_problem *problem)
{
    static const struct {
        int status;
        const char *anthropic;
        const char *openai;
    } types[] = {
        {401, "authentication_error", "invalid_request_error"},
        {403, "permission_error", "invalid_request_error"},
        {404, "not_found_error", "invalid_request_error"},
        {429, "rate_limit_error", "requests"},
        {500, "api_error", "server_error"},
        {502, "api_error", "server_error"},
        {503, "api_error", "server_error"},
        {504, "timeout_error", "server_error"},
    };
    size_t at = 0;
    while (at + 1 < sizeof types / sizeof types[0] && types[at].status != problem->http)
        at++;
    json_t *value = NULL;
    if (is_anthropic(call))
        value = json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "type",
                          types[at].anthropic, "message", problem->message);
    else
        value = json_pack("{s:{s:s, s:s, s:n, s:n}}", "error", "message", problem->message, "type",
                          types[at].openai, "param", "code");
    box_answer_clear(call->answer);
    box_answer_json(call->answer, problem->http, value, false);
}

/* 429 with retry-after. */
static void refuse(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms)
{
    (void)limit;
    const bool anthropic = is_anthropic(call);
    (anthropic ? &box_anthropic : &box_openai)->too_fast(call);
    const uint64_t wait_ms = retry_at_ms > call->now_ms ? retry_at_ms - call->now_ms : 0;
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, (wait_ms + 999) / 1000);
    box_answer_header(call->answer, "retry-after", text);
    (void)snprintf(text, sizeof text, "%" PRIu64, wait_ms);
    if (!anthropic)
        box_answer_header(call->answer, "retry-after-ms", text);
}

/* ---- the service ---- */

static const struct box_style style = {.envelope = envelope};

static const struct box_limit limits[] = {{.name = "chat-minute",
                                           .setting = "chat_per_minute",
                                           .meter = METER,
                                           .whose = BOX_PER_USER | BOX_PER_PROJECT,
                                           .counted = BOX_CALLS,
                                           .window_ms = 60000,
                                           .step_ms = 1,
                                           .limit = 600}};

/* ---- the record ---- */

/* Copies of the service, which tests make, have no state. */
static uint32_t subject(const struct box_call *call, tide_text *name_out)
{
    struct box_chat_state *chat = box_cloud_chat(call->cloud);
    if (chat == NULL || call->method->meter != METER)
        return 0;
    const uint32_t number = box_keys_number(&chat->keys, key_of(call));
    *name_out = tide_text_of(chat->keys.keys[number - 1].name);
    return number;
}

static void record(box_cloud *cloud, const struct box_user *user, bool details, json_t *object)
{
    const struct box_chat_state *chat = box_cloud_chat(cloud);
    (void)details;
    if (user == NULL && chat != NULL)
        json_object_set_new(object, "chat", box_keys_json(&chat->keys));
}

static void record_reset(box_cloud *cloud)
{
    struct box_chat_state *chat = box_cloud_chat(cloud);
    if (chat == NULL)
        return;
    box_keys_done(&chat->keys);
    box_keys_init(&chat->keys);
}

const struct box_service box_chat = {
    .name = "chat",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .style = &style,
    .open = open_chat,
    .close = close_chat,
    .subjects = "chat_keys",
    .subject = subject,
    .record = record,
    .record_reset = record_reset,
    .limits = limits,
    .limits_count = sizeof limits / sizeof limits[0],
    .refuse = refuse,
    .faults = box_chat_faults,
    .faults_count = BOX_CHAT_FAULTS,
};
