#include "cloud/chat/inside.h"

#include "base/check.h"
#include "base/limits.h"
#include "net/api/ask.h"
#include "net/endpoint.h"
#include "net/judge_chat.h"

#include <stdio.h>
#include <string.h>

/* The numbers identify latencies that the governor keeps and saves: they must not change. */
enum method { MODELS = 1, CREATE = 2, METHODS };

/* A second call of a model costs its user money: only the world's own rules repeat it. */
static const struct tide_api_method methods[METHODS] = {
    [MODELS] = {"models.list", "GET", 1, true},
    [CREATE] = {"chat.create", "POST", 1, false},
};

static const struct tide_provider_net chat_api = {
    .name = "chat API",
    .url = "https://api.openai.com",
    .judge = tide_chat_judge,
    .keys = true,
    .methods = methods,
    .methods_count = METHODS,
};

const char *tide_chat_method_name(uint32_t method)
{
    return method < METHODS ? methods[method].name : NULL;
}

enum {
    ENDPOINT_BYTES_MAX = 500,
    PATH_BYTES_MAX = 200,
    VERSION_BYTES_MAX = 32,
    MODELS_BYTES_MAX = 4 << 20,
    MODELS_TIMEOUT_MS = 30000,
    NAME_BYTES_MAX = 64, /* of a tool */
};

struct tide_chat {
    tide_mem *mem;
    tide_api *api;
    const struct tide_chat_protocol *protocol;
    char path[PATH_BYTES_MAX + 1]; /* "/v1" */
    char model[TIDE_CHAT_MODEL_BYTES_MAX + 1];
    char version[VERSION_BYTES_MAX + 1];
    bool stream, stream_usage;
    bool temperature; /* atomic: false when a model refused it */
    bool old_limit;   /* as the options say */
    bool turned; /* atomic: the other name of the limit is sent, since a model refused that one */
    tide_chat_format format;
    uint32_t silence_ms, total_ms;
    size_t answer_bytes_max;
};

/* ---- dialects and endpoints ---- */

static const struct tide_chat_protocol *const protocols[] = {&tide_chat_openai,
                                                             &tide_chat_anthropic};
enum { PROTOCOLS = sizeof protocols / sizeof protocols[0] };

/* Splits an endpoint into its origin and the path of its methods. */
static tide_status endpoint_split(const char *endpoint, char origin_out[ENDPOINT_BYTES_MAX + 1],
                                  char path_out[PATH_BYTES_MAX + 1], tide_error *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    const char *host = strstr(endpoint, "://");
    const char *path = host == NULL ? NULL : strchr(host + 3, '/');
    const size_t origin = path == NULL ? strlen(endpoint) : (size_t)(path - endpoint);
    size_t bytes = path == NULL ? 0 : strlen(path);
    while (bytes > 0 && path[bytes - 1] == '/')
        bytes--;
    if (origin > ENDPOINT_BYTES_MAX || bytes > PATH_BYTES_MAX ||
        (bytes > 0 && strspn(path, letters) < bytes))
        return tide_error_set(err, TIDE_INVALID,
                              "\"%.100s\" is not the address of a chat API: use "
                              "https://HOST/PATH, without parameters",
                              endpoint);
    (void)snprintf(origin_out, ENDPOINT_BYTES_MAX + 1, "%.*s", (int)origin, endpoint);
    (void)snprintf(path_out, PATH_BYTES_MAX + 1, "%.*s", bytes == 0 ? 3 : (int)bytes,
                   bytes == 0 ? "/v1" : path);
    return tide_endpoint_check(origin_out, err);
}

tide_status tide_chat_endpoint_check(const char *endpoint, tide_error *err)
{
    char origin[ENDPOINT_BYTES_MAX + 1];
    char path[PATH_BYTES_MAX + 1];
    return endpoint_split(endpoint, origin, path, err);
}

/* ---- open and close ---- */

static tide_status texts_set(tide_chat *chat, const struct tide_chat_options *options,
                             tide_error *err)
{
    const char *model = options->model == NULL ? "" : options->model;
    const char *version = options->version != NULL          ? options->version
                          : chat->protocol->version != NULL ? chat->protocol->version
                                                            : "";
    if (strlen(model) > TIDE_CHAT_MODEL_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "the name of a model has at most %d bytes",
                              TIDE_CHAT_MODEL_BYTES_MAX);
    if (strlen(version) > VERSION_BYTES_MAX ||
        strspn(version, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(version))
        return tide_error_set(err, TIDE_INVALID, "\"%.40s\" is not a version of an API", version);
    (void)snprintf(chat->model, sizeof chat->model, "%s", model);
    (void)snprintf(chat->version, sizeof chat->version, "%s", version);
    return TIDE_OK;
}

static tide_status api_open(tide_chat *chat, const struct tide_chat_options *options,
                            tide_error *err)
{
    char origin[ENDPOINT_BYTES_MAX + 1];
    TIDE_TRY(endpoint_split(options->endpoint != NULL ? options->endpoint : chat->protocol->url,
                            origin, chat->path, err));
    const struct tide_api_options api = {
        .provider = &chat_api,
        .endpoint = origin,
        .tokens = options->tokens,
        .bearer = options->key,
        .no_token = options->tokens == NULL && options->key.bytes == 0,
        .token_header = options->key_plain ? "x-api-key" : NULL,
        .world = options->world,
    };
    return tide_api_open(&api, chat->mem, &chat->api, err);
}

tide_status tide_chat_open(const struct tide_chat_options *options, tide_mem *mem,
                           tide_chat **chat_out, tide_error *err)
{
    TIDE_ASSERT((size_t)options->dialect < PROTOCOLS);
    tide_chat *chat = tide_mem_new(mem, sizeof *chat);
    if (chat == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a chat model");
    chat->mem = mem;
    chat->protocol = protocols[options->dialect];
    chat->stream = !options->no_stream;
    chat->stream_usage = !options->no_stream_usage;
    chat->old_limit = options->old_limit;
    chat->format = options->format;
    chat->silence_ms = options->silence_ms != 0 ? options->silence_ms : TIDE_CHAT_SILENCE_MS;
    chat->total_ms = options->total_ms != 0 ? options->total_ms : TIDE_CHAT_TOTAL_MS;
    chat->answer_bytes_max =
        options->answer_bytes_max != 0 ? options->answer_bytes_max : TIDE_CHAT_ANSWER_BYTES_MAX;
    tide_status rc = texts_set(chat, options, err);
    if (rc == TIDE_OK)
        rc = api_open(chat, options, err);
    /* Anthropic's versions without sampling refuse a temperature: none is sent to find that out. */
    chat->temperature = chat->version[0] == '\0' || strcmp(chat->version, "2026-10-21") < 0;
    if (rc == TIDE_OK)
        *chat_out = chat;
    else
        tide_chat_close(chat);
    return rc;
}

void tide_chat_close(tide_chat *chat)
{
    if (chat == NULL)
        return;
    tide_api_close(chat->api);
    tide_mem_free(chat->mem, chat, sizeof *chat);
}

/* ---- the request ---- */

tide_status tide_chat_object_set(tide_json *json, const char *key, tide_text text, tide_error *err)
{
    json_t *value = NULL;
    const tide_status rc = tide_json_parse(text, &value, NULL);
    if (rc != TIDE_OK || !json_is_object(value)) {
        json_decref(value);
        return tide_error_set(err, rc == TIDE_NO_MEMORY ? rc : TIDE_INVALID,
                              "\"%s\" of a conversation is not a JSON object", key);
    }
    if (json_object_set_new(json->value, key, value) != 0)
        json->failed = true;
    return TIDE_OK;
}

void tide_chat_real_set(tide_json *json, const char *key, uint32_t milli)
{
    if (json_object_set_new(json->value, key, json_real((double)milli / 1000)) != 0)
        json->failed = true;
}

/* Servers that know no schema, or no JSON at all, follow the prompt; OpenAI's json_object wants the
 * word in it. */
tide_status tide_chat_system(const struct tide_chat_request *asked, tide_buf *out, tide_error *err)
{
    const struct tide_chat_talk *talk = asked->talk;
    tide_status rc = tide_buf_add(out, talk->system.data, talk->system.bytes);
    if (rc == TIDE_OK && talk->json)
        rc = tide_buf_print(out, "%sAnswer with one JSON object and nothing else.%s",
                            out->bytes > 0 ? "\n\n" : "",
                            talk->schema.bytes > 0 ? " It has this JSON schema:\n" : "");
    if (rc == TIDE_OK && talk->json)
        rc = tide_buf_add(out, talk->schema.data, talk->schema.bytes);
    if (rc == TIDE_OK)
        return TIDE_OK;
    return tide_error_set(err, rc == TIDE_FULL ? TIDE_INVALID : rc,
                          "the conversation is too long to be sent");
}

static bool is_tool_name(tide_text name)
{
    for (size_t i = 0; i < name.bytes; i++) {
        const char c = name.data[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '_' && c != '-')
            return false;
    }
    return name.bytes > 0 && name.bytes <= NAME_BYTES_MAX;
}

static tide_status talk_check(const tide_chat *chat, const struct tide_chat_talk *talk,
                              tide_error *err)
{
    if (talk->model.bytes == 0 && chat->model[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "no model is named");
    if (talk->model.bytes > TIDE_CHAT_MODEL_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "the name of a model has at most %d bytes",
                              TIDE_CHAT_MODEL_BYTES_MAX);
    if (talk->messages_count == 0 || talk->messages_count > TIDE_CHAT_MESSAGES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a conversation has 1 to %d messages, not %zu",
                              TIDE_CHAT_MESSAGES_MAX, talk->messages_count);
    if (talk->tools_count > TIDE_CHAT_TOOLS_MAX)
        return tide_error_set(err, TIDE_INVALID, "a conversation has at most %d tools",
                              TIDE_CHAT_TOOLS_MAX);
    for (size_t i = 0; i < talk->tools_count; i++)
        if (!is_tool_name(talk->tools[i].name))
            return tide_error_set(err, TIDE_INVALID,
                                  "\"%.*s\" is not the name of a tool: use letters, digits, \"_\" "
                                  "and \"-\", 64 at most",
                                  talk->tools[i].name.bytes < 64 ? (int)talk->tools[i].name.bytes
                                                                 : 64,
                                  talk->tools[i].name.data);
    return TIDE_OK;
}

/* What of a request a model may refuse. */
struct sent {
    bool temperature;
    bool turned; /* the other name of the limit */
};

static tide_status body_make(tide_chat *chat, const struct tide_chat_talk *talk, tide_buf *out,
                             struct sent *sent_out, tide_error *err)
{
    *sent_out = (struct sent){.temperature = talk->has_temperature &&
                                             __atomic_load_n(&chat->temperature, __ATOMIC_RELAXED),
                              .turned = __atomic_load_n(&chat->turned, __ATOMIC_RELAXED)};
    const struct tide_chat_request asked = {
        .talk = talk,
        .model = talk->model.bytes > 0 ? talk->model : tide_text_of(chat->model),
        .tokens_max = talk->tokens_max != 0 ? talk->tokens_max : TIDE_CHAT_TOKENS_MAX,
        .stream = chat->stream,
        .stream_usage = chat->stream_usage,
        .temperature = sent_out->temperature,
        .old_limit = chat->old_limit != sent_out->turned,
        .format = chat->format,
    };
    tide_auto_json body = {.value = NULL};
    tide_json_object(&body);
    TIDE_TRY(chat->protocol->request(&asked, &body, err));
    tide_buf_clear(out);
    const tide_status rc = tide_json_line(&body, out);
    return rc == TIDE_OK ? rc
                         : tide_error_set(err, rc == TIDE_FULL ? TIDE_INVALID : rc,
                                          "the conversation is too long to be sent");
}

/* ---- the call ---- */

/* One call on its way; on the caller's stack. */
struct calling {
    tide_chat *chat;
    tide_job *job;
    const struct tide_chat_talk *talk;
    struct tide_chat_intake intake;
    struct tide_chat_answer *answer;
    bool taken; /* the answer is whole */
    struct sent sent;
};

/* Bytes that come show that the job is alive (E7.3). */
static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct calling *calling = arg;
    if (calling->job != NULL)
        tide_job_beat(calling->job, 0);
    return tide_chat_intake_write(&calling->intake, bytes, count);
}

static void on_restart(void *arg)
{
    tide_chat_intake_restart(&((struct calling *)arg)->intake);
}

/* The content belongs to the verdict, so that the governor learns of a server that sends garbage. */
static tide_status judge_content(void *arg, const struct tide_response *response,
                                 uint64_t *retry_after_ms_out, tide_error *err)
{
    struct calling *calling = arg;
    (void)response;
    (void)retry_after_ms_out;
    const tide_status rc =
        tide_chat_intake_end(&calling->intake, calling->talk, calling->answer, err);
    calling->taken = rc == TIDE_OK;
    return rc;
}

static size_t headers_make(const tide_chat *chat, struct tide_header headers[TIDE_API_HEADERS_MAX])
{
    size_t count = 0;
    if (chat->version[0] != '\0')
        headers[count++] =
            (struct tide_header){TIDE_TEXT("anthropic-version"), tide_text_of(chat->version)};
    headers[count++] =
        (struct tide_header){TIDE_TEXT("Accept"), chat->stream ? TIDE_TEXT("text/event-stream")
                                                               : TIDE_TEXT("application/json")};
    return count;
}

static void id_take(const tide_chat *chat, const struct tide_response *response,
                    struct tide_chat_answer *answer)
{
    const tide_text id = tide_response_header(response, chat->protocol->id_header);
    const tide_text cut = tide_utf8_cut(id, sizeof answer->request_id - 1);
    (void)snprintf(answer->request_id, sizeof answer->request_id, "%.*s", (int)cut.bytes,
                   cut.bytes == 0 ? "" : cut.data);
    answer->latency_ms = response->latency_ms;
}

/* What the answer itself said is better than that a sink failed. */
static void explain(const struct calling *calling, tide_status rc, tide_error *err)
{
    if (err == NULL || calling->intake.failed != rc || rc == TIDE_OK)
        return;
    const int code = err->code;
    *err = calling->intake.wrong;
    err->code = err->code == 0 ? code : err->code;
}

static tide_status call_once(struct calling *calling, const tide_cancel *cancel, tide_buf *body,
                             tide_error *err)
{
    tide_chat *chat = calling->chat;
    struct tide_api_ask ask;
    struct tide_header headers[TIDE_API_HEADERS_MAX];
    TIDE_TRY(body_make(chat, calling->talk, body, &calling->sent, err));
    tide_api_ask_init(&ask, chat->api, calling->job, CREATE, chat->path);
    tide_api_ask_add(&ask, chat->protocol->call_path);
    ask.call.headers = headers;
    ask.call.headers_count = headers_make(chat, headers);
    ask.call.body = tide_buf_text(body);
    ask.call.sink = on_bytes;
    ask.call.restart = on_restart;
    ask.call.sink_arg = calling;
    ask.call.judge = judge_content;
    ask.call.judge_arg = calling;
    ask.call.answer_bytes_max = TIDE_CHAT_STREAM_BYTES_MAX;
    /* Without a stream the server is silent while the model thinks. */
    ask.call.stall_timeout_ms = chat->stream ? chat->silence_ms : chat->total_ms;
    ask.call.total_timeout_ms = chat->total_ms;
    ask.call.cancel = cancel;
    tide_status rc = tide_api_ask_send(&ask, err);
    explain(calling, rc, err);
    if (rc == TIDE_FULL) /* a stream without an end: worth another try, not one of our limits */
        rc = tide_error_set(err, TIDE_SERVER, "the answer of the model does not end");
    if (rc == TIDE_OK)
        id_take(chat, &ask.response, calling->answer);
    rc = tide_api_ask_named(&ask, rc, err);
    tide_api_ask_done(&ask);
    return rc;
}

/* The model does not take what this call sent: true if it can be left out.  Another call may have found
 * that out meanwhile: then this one is repeated, too. */
static bool adapt(const struct calling *calling, const tide_error *why)
{
    tide_chat *chat = calling->chat;
    const tide_chat_reason reason = tide_chat_reason_of(why);
    if (reason == TIDE_CHAT_SAMPLING && calling->sent.temperature) {
        __atomic_store_n(&chat->temperature, false, __ATOMIC_RELAXED);
        return true;
    }
    /* A server that refuses both names is asked with each of them once. */
    if (reason != TIDE_CHAT_LIMIT_NAME || chat->protocol != &tide_chat_openai ||
        calling->sent.turned)
        return false;
    __atomic_store_n(&chat->turned, true, __ATOMIC_RELAXED);
    return true;
}

tide_status tide_chat_call(tide_chat *chat, tide_job *job, const struct tide_chat_talk *talk,
                           const tide_cancel *cancel, struct tide_chat_answer *answer_out,
                           tide_error *err)
{
    struct calling calling = {.chat = chat, .job = job, .talk = talk, .answer = answer_out};
    tide_error why = {TIDE_OK, 0, ""};
    TIDE_TRY(talk_check(chat, talk, err));
    tide_auto_buf body = tide_buf_in(chat->mem, TIDE_CHAT_TALK_BYTES_MAX);
    tide_chat_intake_init(&calling.intake, chat->protocol->reader, chat->answer_bytes_max,
                          chat->mem);
    tide_status rc = call_once(&calling, cancel, &body, &why);
    if (rc != TIDE_OK && adapt(&calling, &why)) {
        TIDE_SEEN("chat: a model refused a parameter");
        why = (tide_error){TIDE_OK, 0, ""};
        rc = call_once(&calling, cancel, &body, &why);
    }
    if (rc != TIDE_OK && calling.taken) /* an answer whose call failed after all */
        tide_chat_answer_done(answer_out);
    tide_chat_intake_done(&calling.intake);
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return rc;
}

bool tide_chat_may_cost(tide_status rc, const tide_error *err)
{
    switch (rc) {
    case TIDE_AGAIN:
    case TIDE_NETWORK:
    case TIDE_INVALID:
    case TIDE_AUTH:
        return false;
    case TIDE_OK:
        return true;
    default:
        return !tide_chat_refused(err);
    }
}

/* ---- models ---- */

tide_status tide_chat_models(tide_chat *chat, tide_job *job, const tide_cancel *cancel,
                             void (*visit)(const char *id, void *arg), void *arg, tide_error *err)
{
    struct tide_api_ask ask;
    struct tide_header headers[TIDE_API_HEADERS_MAX];
    json_t *value = NULL;
    tide_api_ask_init(&ask, chat->api, job, MODELS, chat->path);
    tide_api_ask_add(&ask, "/models");
    ask.call.headers = headers;
    ask.call.headers_count = chat->version[0] != '\0' ? 1 : 0;
    headers[0] = (struct tide_header){TIDE_TEXT("anthropic-version"), tide_text_of(chat->version)};
    ask.call.answer_bytes_max = MODELS_BYTES_MAX;
    ask.call.stall_timeout_ms = MODELS_TIMEOUT_MS;
    ask.call.total_timeout_ms = MODELS_TIMEOUT_MS;
    ask.call.cancel = cancel;
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    const json_t *list = json_object_get(value, "data");
    if (rc != TIDE_OK && (ask.response.http == 404 || ask.response.http == 405))
        rc = tide_error_set(err, TIDE_GONE, "the server has no list of models");
    else if (rc == TIDE_OK && !json_is_array(list))
        rc = tide_error_set(err, TIDE_SERVER, "the answer has no list of models");
    rc = tide_api_ask_named(&ask, rc, err);
    for (size_t i = 0; rc == TIDE_OK && i < json_array_size(list); i++) {
        const char *id = json_string_value(json_object_get(json_array_get(list, i), "id"));
        if (id != NULL && visit != NULL)
            visit(id, arg);
    }
    json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}
