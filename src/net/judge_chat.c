#include "net/judge_chat.h"

#include "base/json.h"
#include "net/shown.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ANSWERED "the server answered "
#define MIDDLE   " in the middle of an answer"

enum {
    CODE_BYTES_MAX = 64,
    TEXT_SHOWN_BYTES = 200,
    ID_BYTES_MAX = 64,
    KEY_BYTES_MIN = 20, /* of a word that may be a key */
    OVERLOADED = 529,
    TIMES_OUT = 504,
};

/* ---- what is known ---- */

struct meaning {
    tide_status status;
    tide_chat_reason reason;
};

/* Codes and types of both dialects, as error.code, error.type and error.details.error_code have
 * them.  A row counts for the HTTP codes from `from` to `to`: a server that fails (5xx) says
 * nothing lasting about the key or the request. */
static const struct {
    const char *code;
    int from, to;
    struct meaning meaning;
} codes[] = {
    {"insufficient_quota", 400, 429, {TIDE_AUTH, TIDE_CHAT_BILLING}},
    {"credit_balance_exhausted", 400, 429, {TIDE_AUTH, TIDE_CHAT_BILLING}},
    {"billing_hard_limit_reached", 400, 429, {TIDE_AUTH, TIDE_CHAT_BILLING}},
    {"billing_not_active", 400, 429, {TIDE_AUTH, TIDE_CHAT_BILLING}},
    {"billing_error", 400, 429, {TIDE_AUTH, TIDE_CHAT_BILLING}},
    {"enforced_spend_limit_reached", 400, 429, {TIDE_AUTH, TIDE_CHAT_BILLING}},
    {"invalid_api_key", 400, 403, {TIDE_AUTH, TIDE_CHAT_KEY}},
    {"authentication_error", 401, 403, {TIDE_AUTH, TIDE_CHAT_KEY}},
    {"model_not_found", 400, 404, {TIDE_PERMANENT, TIDE_CHAT_MODEL}},
    {"context_length_exceeded", 400, 422, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
    {"request_too_large", 400, 422, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
    {"string_above_max_length", 400, 422, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
    {"server_is_overloaded", 500, OVERLOADED, {TIDE_THROTTLED, TIDE_CHAT_OVERLOADED}},
    {"slow_down", 500, OVERLOADED, {TIDE_THROTTLED, TIDE_CHAT_OVERLOADED}},
    {"overloaded_error", 500, OVERLOADED, {TIDE_THROTTLED, TIDE_CHAT_OVERLOADED}},
    {"timeout_error", 500, OVERLOADED, {TIDE_TIMEOUT, TIDE_CHAT_OTHER}},
};

/* Parts of messages, where providers give no code of their own.  Case is ignored. */
static const struct {
    const char *part;
    int from, to;
    struct meaning meaning;
} messages[] = {
    {"credit balance is too low", 400, 429, {TIDE_AUTH, TIDE_CHAT_BILLING}},
    {"prompt is too long", 400, 422, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
    {"maximum context length", 400, 422, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
    {"context window", 400, 422, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
    {"exceeds the available context size", 400, 422, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
};

static struct meaning meaning_of_http(int http)
{
    static const struct {
        int http;
        struct meaning meaning;
    } rows[] = {
        {401, {TIDE_AUTH, TIDE_CHAT_KEY}},
        {402, {TIDE_AUTH, TIDE_CHAT_BILLING}},
        {403, {TIDE_AUTH, TIDE_CHAT_DENIED}},
        {404, {TIDE_PERMANENT, TIDE_CHAT_MODEL}},
        {408, {TIDE_TIMEOUT, TIDE_CHAT_OTHER}},
        {409, {TIDE_SERVER, TIDE_CHAT_OTHER}},
        {413, {TIDE_PERMANENT, TIDE_CHAT_TOO_LONG}},
        {429, {TIDE_THROTTLED, TIDE_CHAT_RATE}},
        {TIMES_OUT, {TIDE_TIMEOUT, TIDE_CHAT_OTHER}},
        {OVERLOADED, {TIDE_THROTTLED, TIDE_CHAT_OVERLOADED}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].http == http)
            return rows[i].meaning;
    return (struct meaning){http >= 400 && http < 500 ? TIDE_PERMANENT : TIDE_SERVER,
                            TIDE_CHAT_OTHER};
}

static bool meaning_of_code(tide_text code, int http, struct meaning *meaning_out)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (http >= codes[i].from && http <= codes[i].to &&
            tide_text_equal(code, tide_text_of(codes[i].code))) {
            *meaning_out = codes[i].meaning;
            return true;
        }
    }
    return false;
}

static bool meaning_of_message(const char *message, int http, struct meaning *meaning_out)
{
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        if (http >= messages[i].from && http <= messages[i].to &&
            strcasestr(message, messages[i].part) != NULL) {
            *meaning_out = messages[i].meaning;
            return true;
        }
    }
    return false;
}

/* A parameter that the model does not take, which the caller can leave out or rename. */
static tide_chat_reason reason_of_param(int http, const char *param, const char *message)
{
    static const char *const sampling[] = {"temperature", "top_p", "top_k"};
    if (http != 400 && http != 422)
        return TIDE_CHAT_OTHER;
    for (size_t i = 0; i < sizeof sampling / sizeof sampling[0]; i++) {
        const size_t bytes = strlen(sampling[i]);
        /* Anthropic names it in the message: "temperature: Extra inputs are not permitted". */
        if (strcmp(param, sampling[i]) == 0 ||
            (strncmp(message, sampling[i], bytes) == 0 && message[bytes] == ':'))
            return TIDE_CHAT_SAMPLING;
    }
    if (strcmp(param, "max_tokens") == 0 && strstr(message, "max_completion_tokens") != NULL)
        return TIDE_CHAT_LIMIT_NAME;
    return strcmp(param, "max_completion_tokens") == 0 ? TIDE_CHAT_LIMIT_NAME : TIDE_CHAT_OTHER;
}

/* ---- the error ---- */

/* A parsed refusal; nothing is borrowed. */
struct refusal {
    char code[CODE_BYTES_MAX]; /* "" */
    char type[CODE_BYTES_MAX];
    char param[CODE_BYTES_MAX];
    char message[1024]; /* as it came, cut: to be looked at, not to be shown */
};

static bool is_code(const char *text)
{
    const size_t bytes = strlen(text);
    return bytes > 0 && bytes < CODE_BYTES_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
               bytes;
}

static void code_read(const json_t *object, const char *key, char code_out[CODE_BYTES_MAX])
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text != NULL && is_code(text))
        (void)snprintf(code_out, CODE_BYTES_MAX, "%s", text);
}

/* {"error":{...}} of both dialects, {"error":"text"}, and {"object":"error","message":...} of
 * servers that imitate OpenAI's.  NULL: none of them. */
static const json_t *error_of(const json_t *value)
{
    const json_t *error = json_object_get(value, "error");
    const char *object = json_string_value(json_object_get(value, "object"));
    if (json_is_object(error) || json_is_string(error))
        return error;
    return object != NULL && strcmp(object, "error") == 0 ? value : NULL;
}

/* TIDE_INVALID: not an error of a chat API. */
static tide_status refusal_read(tide_text body, struct refusal *refusal_out)
{
    json_t *value = NULL;
    if (body.bytes > TIDE_CHAT_REFUSAL_BYTES_MAX)
        return TIDE_INVALID;
    TIDE_TRY(tide_json_parse(body, &value, NULL));
    const json_t *error = error_of(value);
    struct refusal refusal = {.code = ""};
    const char *message = json_is_string(error)
                              ? json_string_value(error)
                              : json_string_value(json_object_get(error, "message"));
    code_read(error, "code", refusal.code);
    code_read(error, "type", refusal.type);
    code_read(error, "param", refusal.param);
    code_read(json_object_get(error, "details"), "error_code", refusal.code);
    (void)snprintf(refusal.message, sizeof refusal.message, "%s", message == NULL ? "" : message);
    const bool found = error != NULL;
    json_decref(value);
    *refusal_out = refusal;
    return found ? TIDE_OK : TIDE_INVALID;
}

/* ---- texts ---- */

static bool is_key_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '*';
}

/* Whether a word may be a key: long, and with digits and letters of both cases, or hexadecimal, or
 * with the stars that hide a part of one.  A model's name, "claude-sonnet-4-5-20250929", is not. */
static bool is_key(const char *word, size_t bytes)
{
    size_t upper = 0, lower = 0, digits = 0, hex = 0, stars = 0;
    for (size_t i = 0; i < bytes; i++) {
        upper += word[i] >= 'A' && word[i] <= 'Z';
        lower += word[i] >= 'a' && word[i] <= 'z';
        digits += word[i] >= '0' && word[i] <= '9';
        hex += (word[i] >= '0' && word[i] <= '9') || (word[i] >= 'a' && word[i] <= 'f') ||
               (word[i] >= 'A' && word[i] <= 'F');
        stars += word[i] == '*';
    }
    if (stars > 0)
        return true;
    return bytes >= KEY_BYTES_MIN && digits > 0 && ((upper > 0 && lower > 0) || hex == bytes);
}

/* As errors may show it: without keys and addresses. */
static void show(const char *message, char shown_out[TEXT_SHOWN_BYTES])
{
    static const char *const secrets[] = {"bearer ", "sk-",   "xai-",   "gsk_", "AIza",
                                          "eyJ",     "http:", "https:", NULL};
    char text[sizeof((struct refusal *)0)->message + 8];
    size_t bytes = 0;
    for (size_t at = 0; message[at] != '\0' && bytes + 1 < sizeof text;) {
        size_t word = 0;
        while (is_key_letter(message[at + word]))
            word++;
        if (word > 0 && is_key(message + at, word)) {
            bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "[hidden]");
            bytes = bytes < sizeof text ? bytes : sizeof text - 1;
        } else {
            const size_t room = sizeof text - 1 - bytes;
            const size_t part = word == 0 ? 1 : word < room ? word : room;
            memcpy(text + bytes, message + at, part);
            bytes += part;
        }
        at += word == 0 ? 1 : word;
    }
    text[bytes] = '\0';
    tide_shown(text, secrets, shown_out, TEXT_SHOWN_BYTES);
}

/* " (request req_01...)": what a provider's support asks for; "": none. */
static void request_id(const struct tide_response *response, char out[ID_BYTES_MAX + 16])
{
    static const char *const names[] = {"request-id", "x-request-id"};
    out[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const tide_text id = tide_response_header(response, names[i]);
        bool plain = id.bytes > 0 && id.bytes <= ID_BYTES_MAX;
        for (size_t k = 0; plain && k < id.bytes; k++)
            plain = is_key_letter(id.data[k]) || id.data[k] == '.';
        if (plain) {
            (void)snprintf(out, ID_BYTES_MAX + 16, " (request %.*s)", (int)id.bytes, id.data);
            return;
        }
    }
}

/* ---- how long to wait ---- */

/* "1500" or "1500.25", rounded up; false: not a number. */
static bool number_up(tide_text text, uint64_t *number_out)
{
    const char *dot = text.bytes == 0 ? NULL : memchr(text.data, '.', text.bytes);
    const size_t whole = dot == NULL ? text.bytes : (size_t)(dot - text.data);
    if (whole > 12 || !tide_text_to_u64((tide_text){text.data, whole}, number_out))
        return false;
    for (size_t i = whole + 1; i < text.bytes; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    *number_out += dot != NULL ? 1 : 0;
    return true;
}

static uint64_t wait_of(const struct tide_response *response)
{
    uint64_t wait_ms = 0;
    if (!number_up(tide_response_header(response, "retry-after-ms"), &wait_ms)) {
        if (number_up(tide_response_header(response, "Retry-After"), &wait_ms))
            wait_ms *= 1000;
        else
            (void)tide_http_judge(response, &wait_ms, NULL); /* a date */
    }
    return wait_ms < TIDE_CHAT_WAIT_MS_MAX ? wait_ms : (uint64_t)TIDE_CHAT_WAIT_MS_MAX;
}

typedef enum advice { ADVICE_NONE, ADVICE_RETRY, ADVICE_STOP } advice;

static advice advice_of(const struct tide_response *response)
{
    const tide_text text = tide_response_header(response, "x-should-retry");
    if (tide_text_equal(text, TIDE_TEXT("true")))
        return ADVICE_RETRY;
    return tide_text_equal(text, TIDE_TEXT("false")) ? ADVICE_STOP : ADVICE_NONE;
}

/* ---- the verdict ---- */

static struct meaning meaning_of(int http, const struct refusal *refusal)
{
    struct meaning meaning = meaning_of_http(http);
    if (http == 401)
        return meaning; /* nothing was looked at but the key */
    if (meaning_of_code(tide_text_of(refusal->code), http, &meaning) ||
        meaning_of_code(tide_text_of(refusal->type), http, &meaning) ||
        meaning_of_message(refusal->message, http, &meaning))
        return meaning;
    if (meaning.reason == TIDE_CHAT_OTHER)
        meaning.reason = reason_of_param(http, refusal->param, refusal->message);
    return meaning;
}

/* What the server advises counts where its code leaves it open. */
static void advised(struct meaning *meaning, int http, advice given)
{
    if (given == ADVICE_STOP && meaning->status == TIDE_THROTTLED && http == 429)
        *meaning = (struct meaning){TIDE_AUTH, TIDE_CHAT_BILLING};
    else if (given == ADVICE_STOP &&
             (meaning->status == TIDE_SERVER || meaning->status == TIDE_TIMEOUT))
        meaning->status = TIDE_PERMANENT;
    else if (given == ADVICE_RETRY && meaning->status == TIDE_PERMANENT)
        meaning->status = TIDE_SERVER;
}

static const struct {
    tide_chat_reason reason;
    const char *name;
} names[] = {
    {TIDE_CHAT_OTHER, "refused"},           {TIDE_CHAT_KEY, "key not accepted"},
    {TIDE_CHAT_DENIED, "not allowed"},      {TIDE_CHAT_BILLING, "no credit"},
    {TIDE_CHAT_RATE, "too many calls"},     {TIDE_CHAT_OVERLOADED, "overloaded"},
    {TIDE_CHAT_MODEL, "no such model"},     {TIDE_CHAT_TOO_LONG, "too long"},
    {TIDE_CHAT_SAMPLING, "no temperature"}, {TIDE_CHAT_LIMIT_NAME, "other limit"},
};
enum { NAMES = sizeof names / sizeof names[0] };

const char *tide_chat_reason_name(tide_chat_reason reason)
{
    return names[(size_t)reason < NAMES ? (size_t)reason : 0].name;
}

/* "the server answered 429 insufficient_quota [no credit]: You exceeded ... (request req_1)".  The
 * name in brackets is what tide_chat_reason_of() reads. */
static tide_status say(tide_error *err, struct meaning meaning, int http,
                       const struct refusal *refusal, const char *id)
{
    char shown[TEXT_SHOWN_BYTES];
    const char *code = refusal->code[0] != '\0' ? refusal->code : refusal->type;
    show(refusal->message, shown);
    (void)tide_error_set(err, meaning.status, ANSWERED "%d%s%s [%s]%s%s%s", http,
                         code[0] == '\0' ? "" : " ", code, tide_chat_reason_name(meaning.reason),
                         shown[0] == '\0' ? "" : ": ", shown, id);
    if (err != NULL)
        err->code = http;
    return meaning.status;
}

/* Without an error in the body: only what does no harm if a proxy said it. */
static tide_status say_bare(tide_error *err, int http, const char *what, uint64_t wait_ms)
{
    struct meaning meaning = meaning_of_http(http);
    if (http == 503 && wait_ms > 0)
        meaning = (struct meaning){TIDE_THROTTLED, TIDE_CHAT_OVERLOADED};
    else if (http != 401 && http != 429 && http != OVERLOADED && http != 408 && http != TIMES_OUT)
        meaning = (struct meaning){TIDE_SERVER, TIDE_CHAT_OTHER};
    (void)tide_error_set(err, meaning.status, ANSWERED "%d [%s] %s", http,
                         tide_chat_reason_name(meaning.reason), what);
    if (err != NULL)
        err->code = http;
    return meaning.status;
}

static bool is_page(const struct tide_response *response)
{
    const tide_text type = tide_response_header(response, "Content-Type");
    return type.bytes >= 9 && strncasecmp(type.data, "text/html", 9) == 0;
}

tide_status tide_chat_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                            tide_error *err)
{
    const int http = response->http;
    const uint64_t wait_ms = wait_of(response);
    *retry_after_ms_out = wait_ms;
    if (http >= 200 && http < 300)
        return is_page(response) ? say_bare(err, http, "with a page of HTML", 0) : TIDE_OK;
    struct refusal refusal;
    const tide_text body = tide_buf_text(&response->body);
    const tide_status read = refusal_read(body, &refusal);
    if (read == TIDE_NO_MEMORY)
        return tide_error_set(err, read, "out of memory while reading an answer of %d", http);
    if (read != TIDE_OK)
        return say_bare(err, http,
                        body.bytes == 0 ? "without a body"
                                        : "with a body that is not from a chat API",
                        wait_ms);
    struct meaning meaning = meaning_of(http, &refusal);
    if (meaning.status == TIDE_SERVER && http == 503 && wait_ms > 0)
        meaning = (struct meaning){TIDE_THROTTLED, TIDE_CHAT_OVERLOADED};
    advised(&meaning, http, advice_of(response));
    char id[ID_BYTES_MAX + 16];
    request_id(response, id);
    return say(err, meaning, http, &refusal, id);
}

/* The HTTP code that the error would have had, had it come before the first byte. */
static int http_of_type(const char *type)
{
    static const struct {
        const char *type;
        int http;
    } rows[] = {
        {"overloaded_error", OVERLOADED}, {"rate_limit_error", 429},
        {"authentication_error", 401},    {"permission_error", 403},
        {"billing_error", 402},           {"not_found_error", 404},
        {"request_too_large", 413},       {"timeout_error", TIMES_OUT},
        {"invalid_request_error", 400},   {"insufficient_quota", 429},
        {"rate_limit_exceeded", 429},     {"server_is_overloaded", 503},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(type, rows[i].type) == 0)
            return rows[i].http;
    return 500;
}

tide_status tide_chat_judge_event(tide_text body, tide_error *err)
{
    struct refusal refusal;
    const tide_status read = refusal_read(body, &refusal);
    if (read == TIDE_NO_MEMORY)
        return tide_error_set(err, read, "out of memory while reading an answer");
    if (read != TIDE_OK)
        return say_bare(err, 200, "and then with an error that is not from a chat API", 0);
    int http = http_of_type(refusal.code);
    http = http == 500 ? http_of_type(refusal.type) : http;
    return say(err, meaning_of(http, &refusal), http, &refusal, MIDDLE);
}

/* ---- reasons ---- */

tide_chat_reason tide_chat_reason_of(const tide_error *err)
{
    const char *at = err->status == TIDE_OK ? NULL : strstr(err->text, ANSWERED);
    at = at == NULL ? NULL : strchr(at, '[');
    for (size_t i = 0; at != NULL && i < NAMES; i++) {
        const size_t bytes = strlen(names[i].name);
        if (strncmp(at + 1, names[i].name, bytes) == 0 && at[1 + bytes] == ']')
            return names[i].reason;
    }
    return TIDE_CHAT_OTHER;
}

bool tide_chat_refused(const tide_error *err)
{
    const char *at = err->status == TIDE_OK ? NULL : strstr(err->text, ANSWERED);
    const size_t bytes = strlen(err->text);
    const size_t end = sizeof MIDDLE - 1;
    /* After a 2xx the answer had begun; so it had before an error in its middle. */
    return at != NULL && at[sizeof ANSWERED - 1] != '2' &&
           (bytes < end || strcmp(err->text + bytes - end, MIDDLE) != 0);
}
