#include "cloud/gmail.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/hash.h"
#include "base/limits.h"
#include "cloud/gmail_answer.h"
#include "cloud/gmail_raw.h"
#include "net/judge_google.h"
#include "tidemark_inside.h"

#include <stdio.h>
#include <string.h>

/* ---- methods and their costs --------------------------------------------------- */

/* The numbers identify latencies that the governor keeps and saves: they must not change. */
enum method {
    PROFILE = 1,
    LIST = 2,
    GET = 3,
    GET_MINIMAL = 4,
    HISTORY = 5,
    LABELS = 6,
    LABEL_CREATE = 7,
    MODIFY = 8,
    BATCH_MODIFY = 9,
    DELETE = 10,
    BATCH_DELETE = 11,
    INSERT = 12,
    METHODS,
};
static_assert((int)METHODS <= (int)TIDE_METHODS_MAX, "every method has a latency of its own");

struct method_row {
    const char *name; /* as in Google's discovery document */
    const char *verb;
    uint32_t units; /* since May 2026 */
    bool repeatable;
};

static const struct method_row rows[METHODS] = {
    [PROFILE] = {"users.getProfile", "GET", 1, true},
    [LIST] = {"messages.list", "GET", 5, true},
    [GET] = {"messages.get", "GET", TIDE_GMAIL_GET_UNITS, true},
    [GET_MINIMAL] = {"messages.get", "GET", TIDE_GMAIL_GET_UNITS, true},
    [HISTORY] = {"history.list", "GET", 2, true},
    [LABELS] = {"labels.list", "GET", 1, true},
    [LABEL_CREATE] = {"labels.create", "POST", 5, false},
    [MODIFY] = {"messages.modify", "POST", 5, true},
    [BATCH_MODIFY] = {"messages.batchModify", "POST", 50, true},
    [DELETE] = {"messages.delete", "DELETE", 10, true},
    [BATCH_DELETE] = {"messages.batchDelete", "POST", 50, true},
    [INSERT] = {"messages.insert", "POST", 25, false},
};

enum {
    ENDPOINT_BYTES_MAX = 500,
    BEARER_BYTES_MAX = 16 << 10,
    REFUSAL_BYTES_MAX = 64 << 10, /* of an error's body, when a message was expected */
    SMALL_BYTES_MAX = 1 << 20,    /* answers without lists */
    PAGE_BYTES_MAX = 4 << 20,
    LABELS_BYTES_MAX = 16 << 20,
    HISTORY_BYTES_MAX = 64 << 20, /* one record may name thousands of messages */
    REQUEST_BYTES_MAX = 16 << 20, /* of a JSON body */
    INSERT_JSON_BYTES_MAX = 1 << 20,
    BOUNDARIES_MAX = 100000,
    HEADERS_MAX = 4,
    UNDER_WAY_MS_MAX = 60000, /* of a call whose token the server refuses */
};

#define GOOGLE     "https://gmail.googleapis.com"
#define USER_AGENT "tidemark/" TIDE_VERSION " (gzip)"

struct tide_gmail {
    tide_mem *mem;
    tide_tokens *tokens;
    bool compress;
    char endpoint[ENDPOINT_BYTES_MAX + 1];
    /* Atomic (G5). doubt_ms: when a token was refused, if none was accepted since; 0: none.
     * refused: a number that identifies that token. */
    uint64_t doubt_ms;
    uint64_t refused;
};

tide_status tide_gmail_open(const char *endpoint, tide_tokens *tokens, tide_mem *mem,
                            tide_gmail **gmail_out, tide_error *err)
{
    TIDE_ASSERT(tokens != NULL);
    TIDE_ASSERT(mem != NULL);
    if (endpoint == NULL)
        endpoint = GOOGLE;
    const bool https = strncmp(endpoint, "https://", 8) == 0;
    const bool http = strncmp(endpoint, "http://", 7) == 0;
    size_t bytes = strlen(endpoint);
    if (bytes > 0 && endpoint[bytes - 1] == '/')
        bytes--;
    const size_t host = https ? 8 : 7;
    if ((!https && !http) || bytes <= host || bytes > ENDPOINT_BYTES_MAX ||
        strcspn(endpoint + host, "/?#@ \t\r\n") < bytes - host)
        return tide_error_set(
            err, TIDE_INVALID,
            "\"%.100s\" is not an address of a Gmail API: use http://HOST:PORT or https://HOST",
            endpoint);
    tide_gmail *gmail = tide_mem_new(mem, sizeof *gmail);
    if (gmail == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a Gmail account");
    gmail->mem = mem;
    gmail->tokens = tokens;
    gmail->compress = https;
    memcpy(gmail->endpoint, endpoint, bytes);
    *gmail_out = gmail;
    return TIDE_OK;
}

void tide_gmail_close(tide_gmail *gmail)
{
    if (gmail != NULL)
        tide_mem_free(gmail->mem, gmail, sizeof *gmail);
}

/* ---- one call ------------------------------------------------------------------- */

/* The request, and where the answer goes. */
struct ask {
    tide_gmail *gmail;
    tide_job *job;
    enum method method;
    tide_buf url;
    tide_status failed; /* sticky failure while building it */
    tide_text body;
    const char *type; /* of the body; NULL: JSON */
    tide_source_read *source;
    void (*rewind)(void *source_arg);
    void *source_arg;
    uint64_t source_bytes;
    tide_sink_write *sink;
    void *sink_arg;
    uint64_t answer_bytes_max;
    struct tide_response response;
};

static void ask_done(struct ask *ask)
{
    tide_response_done(&ask->response);
    tide_buf_done(&ask->url);
}

static void url_add(struct ask *ask, const char *text)
{
    if (ask->failed == TIDE_OK)
        ask->failed = tide_buf_add_text(&ask->url, text);
}

/* Appends an untrusted value: everything but letters, digits and "-._~" is escaped. */
static void url_value(struct ask *ask, tide_text value)
{
    if (ask->failed == TIDE_OK)
        ask->failed = tide_percent_add(&ask->url, value, TIDE_URL_UNRESERVED);
}

/* `path` is below the user's; no parameter but prettyPrint yet. */
static void ask_init(struct ask *ask, tide_gmail *gmail, tide_job *job, enum method method,
                     const char *path)
{
    memset(ask, 0, sizeof *ask);
    ask->gmail = gmail;
    ask->job = job;
    ask->method = method;
    ask->answer_bytes_max = SMALL_BYTES_MAX;
    tide_buf_init(&ask->url, gmail->mem, TIDE_URL_BYTES_MAX);
    tide_response_init(&ask->response, gmail->mem);
    url_add(ask, gmail->endpoint);
    url_add(ask, path);
}

/* Like ask_init() for one message; `rest` is the method and the parameters. */
static void ask_message(struct ask *ask, tide_gmail *gmail, tide_job *job, enum method method,
                        tide_text id, const char *rest)
{
    ask_init(ask, gmail, job, method, "/gmail/v1/users/me/messages/");
    url_value(ask, id);
    url_add(ask, rest);
}

static size_t headers_of(const struct ask *ask, tide_text authorization,
                         struct tide_header headers[HEADERS_MAX])
{
    size_t count = 0;
    headers[count++] = (struct tide_header){TIDE_TEXT("Authorization"), authorization};
    /* Google compresses only if User-Agent contains "gzip" too.  Without an Accept-Encoding
     * here, the world requests compression and decodes it. */
    headers[count++] =
        ask->gmail->compress
            ? (struct tide_header){TIDE_TEXT("User-Agent"), TIDE_TEXT(USER_AGENT)}
            : (struct tide_header){TIDE_TEXT("Accept-Encoding"), TIDE_TEXT("identity")};
    if (ask->type != NULL || ask->body.bytes > 0)
        headers[count++] = (struct tide_header){
            TIDE_TEXT("Content-Type"),
            tide_text_of(ask->type != NULL ? ask->type : "application/json; charset=UTF-8")};
    TIDE_ASSERT(count <= HEADERS_MAX);
    return count;
}

/* Sends it with `authorization`. */
static tide_status call_signed(struct ask *ask, tide_text authorization, tide_error *err)
{
    const struct method_row *row = &rows[ask->method];
    struct tide_header headers[HEADERS_MAX];
    const struct tide_request request = {
        .method = row->verb,
        .url = tide_buf_cstr(&ask->url),
        .headers = headers,
        .headers_count = headers_of(ask, authorization, headers),
        .body = ask->body,
        .source = ask->source,
        .source_arg = ask->source_arg,
        .source_bytes = ask->source_bytes,
        .sink = ask->sink,
        .sink_arg = ask->sink_arg,
        .body_bytes_max = ask->answer_bytes_max,
        .repeatable = row->repeatable,
    };
    if (ask->rewind != NULL)
        ask->rewind(ask->source_arg);
    return tide_job_call(ask->job, row->units, ask->method, tide_google_judge, &request,
                         &ask->response, err);
}

/* The server refused this token: whether another one is worth a try.  Not if this is already the
 * token after a refusal, however long ago that was: the second try may have had to wait for
 * units, and a job that starts over each time would never end.  Calls that were in flight with
 * the same token are treated like the first. */
static bool refused_first(tide_gmail *gmail, tide_text bearer, uint64_t now_ms)
{
    const uint64_t number = tide_hash(TIDE_HASH_START, bearer);
    const uint64_t before = __atomic_exchange_n(&gmail->refused, number, __ATOMIC_ACQ_REL);
    uint64_t since_ms = 0;
    tide_tokens_refused(gmail->tokens, bearer);
    if (__atomic_compare_exchange_n(&gmail->doubt_ms, &since_ms, now_ms + 1, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return true;
    return before == number && now_ms < since_ms + UNDER_WAY_MS_MAX;
}

/* One try.  *again_out: it may succeed with another token. */
static tide_status call_once(struct ask *ask, bool *again_out, tide_error *err)
{
    tide_gmail *gmail = ask->gmail;
    tide_buf bearer, authorization;
    tide_buf_init(&bearer, gmail->mem, BEARER_BYTES_MAX);
    tide_buf_init(&authorization, gmail->mem, BEARER_BYTES_MAX + 8);
    tide_status rc = tide_tokens_get(gmail->tokens, tide_job_cancellation(ask->job), &bearer, err);
    if (rc == TIDE_OK) {
        rc = tide_buf_print(&authorization, "Bearer %s", tide_buf_cstr(&bearer));
        if (rc == TIDE_OK)
            rc = call_signed(ask, tide_buf_text(&authorization), err);
        else
            (void)tide_error_set(err, rc, "no room for a token");
        if (rc == TIDE_AUTH && ask->response.http == 401)
            *again_out = refused_first(gmail, tide_buf_text(&bearer), tide_job_now_ms(ask->job));
        else if (ask->response.http != 401 && ask->response.http != 0 && ask->response.http < 500)
            __atomic_store_n(&gmail->doubt_ms, 0, __ATOMIC_RELEASE);
    }
    tide_secret_wipe(&authorization);
    tide_secret_wipe(&bearer);
    tide_buf_done(&authorization);
    tide_buf_done(&bearer);
    return rc;
}

/* Calls, and once more if the token had expired (G5). */
static tide_status call(struct ask *ask, tide_error *err)
{
    if (ask->failed != TIDE_OK)
        return tide_error_set(err, ask->failed, "%s: the request is too long to be sent",
                              rows[ask->method].name);
    bool again = false;
    tide_status rc = call_once(ask, &again, err);
    if (rc == TIDE_AUTH && again) {
        TIDE_SEEN("gmail: a token was refused");
        rc = call_once(ask, &again, err);
    }
    return rc;
}

/* Prefixes an error with its method; text, status and code stay. */
static tide_status told(const struct ask *ask, tide_status rc, tide_error *err)
{
    if (rc == TIDE_OK || err == NULL)
        return rc;
    const tide_error inner = *err;
    (void)tide_error_set(err, rc, "%s: %.340s", rows[ask->method].name, inner.text);
    err->code = inner.code != 0 ? inner.code : ask->response.http;
    return rc;
}

/* Calls and parses the answer as a JSON object. */
static tide_status call_json(struct ask *ask, json_t **value_out, tide_error *err)
{
    tide_status rc = call(ask, err);
    if (rc == TIDE_OK)
        rc = told(ask, tide_gmail_answer_parse(tide_buf_text(&ask->response.body), value_out, err),
                  err);
    return rc;
}

/* ---- reading ---------------------------------------------------------------------- */

tide_status tide_gmail_profile(tide_gmail *gmail, tide_job *job,
                               struct tide_gmail_profile *profile_out, tide_error *err)
{
    struct ask ask;
    json_t *value = NULL;
    ask_init(&ask, gmail, job, PROFILE, "/gmail/v1/users/me/profile?prettyPrint=false");
    tide_status rc = call_json(&ask, &value, err);
    const int http = ask.response.http;
    if (rc != TIDE_OK && (http == 404 || http == 405 || http == 501)) {
        rc = tide_error_set(err, TIDE_GONE, "this server has no users.getProfile");
        if (err != NULL)
            err->code = http;
    }
    if (rc == TIDE_OK)
        rc = told(&ask, tide_gmail_answer_profile(value, profile_out, err), err);
    json_decref(value);
    ask_done(&ask);
    return rc;
}

void tide_gmail_page_done(struct tide_gmail_page *page)
{
    json_decref(page->value);
    *page = (struct tide_gmail_page){.value = NULL};
}

static void url_token(struct ask *ask, tide_text token)
{
    if (token.bytes == 0)
        return;
    url_add(ask, "&pageToken=");
    url_value(ask, token);
}

tide_status tide_gmail_list(tide_gmail *gmail, tide_job *job, const char *query, tide_text token,
                            struct tide_gmail_page *page_out, tide_error *err)
{
    struct ask ask;
    json_t *value = NULL;
    ask_init(&ask, gmail, job, LIST,
             "/gmail/v1/users/me/messages?prettyPrint=false&maxResults=500"
             "&includeSpamTrash=true&fields=messages(id,threadId),nextPageToken");
    ask.answer_bytes_max = PAGE_BYTES_MAX;
    if (query != NULL && query[0] != '\0') {
        url_add(&ask, "&q=");
        url_value(&ask, tide_text_of(query));
    }
    url_token(&ask, token);
    tide_status rc = call_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = told(&ask, tide_gmail_answer_page(value, page_out, err), err);
    if (rc != TIDE_OK)
        json_decref(value);
    ask_done(&ask);
    return rc;
}

void tide_gmail_history_done(struct tide_gmail_history *history)
{
    json_decref(history->value);
    *history = (struct tide_gmail_history){.value = NULL};
}

tide_status tide_gmail_history(tide_gmail *gmail, tide_job *job, tide_text start, tide_text token,
                               struct tide_gmail_history *history_out, tide_error *err)
{
    struct ask ask;
    json_t *value = NULL;
    /* Without "messages", which repeats the content of the other lists. */
    ask_init(&ask, gmail, job, HISTORY,
             "/gmail/v1/users/me/history?prettyPrint=false&maxResults=500&fields=history(id,"
             "messagesAdded,messagesDeleted,labelsAdded,labelsRemoved),nextPageToken,historyId"
             "&startHistoryId=");
    ask.answer_bytes_max = HISTORY_BYTES_MAX;
    url_value(&ask, start);
    url_token(&ask, token);
    tide_status rc = call_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = told(&ask, tide_gmail_answer_history(value, history_out, err), err);
    if (rc != TIDE_OK)
        json_decref(value);
    ask_done(&ask);
    return rc;
}

/* ---- messages ----------------------------------------------------------------------- */

void tide_gmail_message_init(struct tide_gmail_message *message, tide_mem *mem)
{
    *message = (struct tide_gmail_message){.fields = NULL};
    tide_buf_init(&message->raw, mem, TIDE_GMAIL_MESSAGE_BYTES_MAX);
}

void tide_gmail_message_done(struct tide_gmail_message *message)
{
    tide_mem *mem = message->raw.mem;
    tide_buf_done(&message->raw);
    json_decref(message->fields);
    tide_gmail_message_init(message, mem);
}

/* A message being received. */
struct getting {
    struct ask ask;
    struct tide_gmail_raw raw;
    bool begun;
};

static tide_status getting_write(void *arg, const char *bytes, size_t count)
{
    struct getting *getting = arg;
    struct tide_response *response = &getting->ask.response;
    if (response->http < 200 || response->http > 299) {
        /* Not a message but a refusal: the judge reads its reason, and the beginning is enough. */
        const size_t room = REFUSAL_BYTES_MAX - response->body.bytes;
        return tide_buf_add(&response->body, bytes, count < room ? count : room);
    }
    uint64_t answer_bytes = 0;
    if (!getting->begun &&
        tide_text_to_u64(tide_response_header(response, "Content-Length"), &answer_bytes))
        tide_gmail_raw_expect(&getting->raw, answer_bytes);
    getting->begun = true;
    tide_job_beat(getting->ask.job, 0); /* a large message may take longer than the stall limit */
    return tide_gmail_raw_write(&getting->raw, bytes, count);
}

tide_status tide_gmail_get(tide_gmail *gmail, tide_job *job, tide_text id,
                           struct tide_gmail_message *message_out, tide_error *err)
{
    struct getting getting = {.begun = false};
    struct ask *ask = &getting.ask;
    json_t *fields = NULL;
    tide_gmail_message_done(message_out);
    ask_message(ask, gmail, job, GET, id,
                "?format=raw&prettyPrint=false"
                "&fields=id,threadId,labelIds,historyId,internalDate,sizeEstimate,raw");
    tide_gmail_raw_init(&getting.raw, gmail->mem, &message_out->raw);
    ask->sink = getting_write;
    ask->sink_arg = &getting;
    /* In base64, with the longest escapes, plus the text around it. */
    ask->answer_bytes_max = 2 * (uint64_t)TIDE_GMAIL_MESSAGE_BYTES_MAX;
    tide_status rc = call(ask, err);
    if (getting.raw.failed != TIDE_OK)
        rc = told(ask, tide_error_set(err, getting.raw.failed, "%s", getting.raw.wrong), err);
    else if (rc == TIDE_OK)
        rc = told(ask, tide_gmail_raw_end(&getting.raw, &fields, err), err);
    if (rc == TIDE_OK)
        rc = told(ask, tide_gmail_answer_message(fields, id, message_out, err), err);
    if (rc != TIDE_OK) {
        json_decref(fields);
        tide_gmail_message_done(message_out);
    }
    tide_gmail_raw_done(&getting.raw);
    ask_done(ask);
    return rc;
}

tide_status tide_gmail_get_minimal(tide_gmail *gmail, tide_job *job, tide_text id,
                                   struct tide_gmail_message *message_out, tide_error *err)
{
    struct ask ask;
    json_t *fields = NULL;
    tide_gmail_message_done(message_out);
    ask_message(&ask, gmail, job, GET_MINIMAL, id,
                "?format=minimal&prettyPrint=false"
                "&fields=id,threadId,labelIds,historyId,internalDate,sizeEstimate");
    tide_status rc = call_json(&ask, &fields, err);
    if (rc == TIDE_OK)
        rc = told(&ask, tide_gmail_answer_message(fields, id, message_out, err), err);
    if (rc != TIDE_OK)
        json_decref(fields);
    ask_done(&ask);
    return rc;
}

/* ---- labels ---------------------------------------------------------------------------- */

tide_status tide_gmail_labels(tide_gmail *gmail, tide_job *job, json_t **labels_out,
                              tide_error *err)
{
    struct ask ask;
    json_t *value = NULL;
    ask_init(&ask, gmail, job, LABELS, "/gmail/v1/users/me/labels?prettyPrint=false");
    ask.answer_bytes_max = LABELS_BYTES_MAX;
    tide_status rc = call_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = told(&ask, tide_gmail_answer_labels(value, err), err);
    if (rc == TIDE_OK)
        *labels_out = value;
    else
        json_decref(value);
    ask_done(&ask);
    return rc;
}

/* A created object exists whatever its answer looks like: repeating the call would create
 * another one. */
static tide_status made(const struct ask *ask, json_t *value, tide_buf *id_out, tide_status rc,
                        tide_error *err)
{
    const bool answered = ask->response.http >= 200 && ask->response.http < 300;
    tide_text id;
    if (rc == TIDE_OK)
        rc = told(ask, tide_gmail_answer_id(value, &id, err), err);
    if (rc == TIDE_OK) {
        if (id.bytes > id_out->bytes_max || tide_buf_room(id_out, id.bytes) != TIDE_OK)
            return tide_error_set(err, TIDE_UNKNOWN, "%s: no room for the new id",
                                  rows[ask->method].name);
        tide_buf_clear(id_out);
        (void)tide_buf_add(id_out, id.data, id.bytes);
    }
    if (rc == TIDE_SERVER && answered && err != NULL)
        err->status = TIDE_UNKNOWN;
    return rc == TIDE_SERVER && answered ? TIDE_UNKNOWN : rc;
}

/* Prints and frees `value`, which may be NULL. */
static tide_status print(json_t *value, tide_buf *out)
{
    tide_json json = {value, value == NULL};
    const tide_status rc = tide_json_line(&json, out);
    tide_json_done(&json);
    return rc;
}

tide_status tide_gmail_label_create(tide_gmail *gmail, tide_job *job, tide_text name,
                                    tide_buf *id_out, tide_error *err)
{
    struct ask ask;
    json_t *value = NULL;
    tide_json label;
    tide_buf body;
    tide_buf_init(&body, gmail->mem, SMALL_BYTES_MAX);
    tide_json_object(&label);
    tide_json_set_text(&label, "name", name);
    tide_json_set_cstr(&label, "labelListVisibility", "labelShow");
    tide_json_set_cstr(&label, "messageListVisibility", "show");
    ask_init(&ask, gmail, job, LABEL_CREATE,
             "/gmail/v1/users/me/labels?prettyPrint=false&fields=id");
    if (ask.failed == TIDE_OK)
        ask.failed = tide_json_line(&label, &body);
    ask.body = tide_buf_text(&body);
    tide_status rc = call_json(&ask, &value, err);
    rc = made(&ask, value, id_out, rc, err);
    if (ask.response.http == 409) {
        rc = TIDE_EXISTS;
        if (err != NULL)
            err->status = rc;
    }
    json_decref(value);
    tide_json_done(&label);
    tide_buf_done(&body);
    ask_done(&ask);
    return rc;
}

/* ---- changing messages --------------------------------------------------------------- */

/* NULL: no memory, or not UTF-8. */
static json_t *texts_json(const tide_text *texts, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < count; i++)
        if (json_array_append_new(array, json_stringn(texts[i].data, texts[i].bytes)) != 0) {
            json_decref(array);
            array = NULL;
        }
    return array;
}

static void set_cstrs(json_t *object, const char *key, const char *const *texts, bool *failed)
{
    if (texts == NULL || texts[0] == NULL)
        return;
    json_t *array = json_array();
    for (size_t i = 0; texts[i] != NULL; i++)
        *failed |= json_array_append_new(array, json_string(texts[i])) != 0;
    *failed |= json_object_set_new(object, key, array) != 0;
}

/* {"ids":[],"addLabelIds":[],"removeLabelIds":[]}; without ids for one message, which the URL
 * names. */
static tide_status change_body(const tide_text *ids, size_t count, const char *const *add,
                               const char *const *take, tide_buf *body, tide_error *err)
{
    json_t *object = json_object();
    bool failed = object == NULL;
    if (count > 1)
        failed |= json_object_set_new(object, "ids", texts_json(ids, count)) != 0;
    set_cstrs(object, "addLabelIds", add, &failed);
    set_cstrs(object, "removeLabelIds", take, &failed);
    tide_status rc = TIDE_NO_MEMORY;
    if (failed)
        json_decref(object);
    else
        rc = print(object, body);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no room for a request with %zu ids", count);
    return TIDE_OK;
}

static tide_status ids_check(const tide_text *ids, size_t count, tide_error *err)
{
    if (count > TIDE_GMAIL_IDS_MAX)
        return tide_error_set(err, TIDE_INVALID, "%zu ids in one call; %d are allowed", count,
                              TIDE_GMAIL_IDS_MAX);
    for (size_t i = 0; i < count; i++)
        if (ids[i].bytes == 0)
            return tide_error_set(err, TIDE_INVALID, "an id is empty");
    return TIDE_OK;
}

/* Sends a change and drops its answer.  A single message that is gone is not a failure, as among
 * many. */
static tide_status change(struct ask *ask, size_t count, tide_error *err)
{
    tide_status rc = call(ask, err);
    if (rc == TIDE_GONE && count == 1) {
        TIDE_SEEN("gmail: changed a message that is gone");
        rc = TIDE_OK;
    }
    ask_done(ask);
    return rc;
}

/* `count_told`: 1 ignores a message that is gone, 0 returns TIDE_GONE. */
static tide_status modify(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                          size_t count_told, const char *const *add, const char *const *take,
                          tide_error *err)
{
    tide_status rc = ids_check(ids, count, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    tide_buf body;
    tide_buf_init(&body, gmail->mem, REQUEST_BYTES_MAX);
    rc = change_body(ids, count, add, take, &body, err);
    if (rc == TIDE_OK) {
        struct ask ask;
        if (count == 1)
            ask_message(&ask, gmail, job, MODIFY, ids[0], "/modify?prettyPrint=false&fields=id");
        else
            ask_init(&ask, gmail, job, BATCH_MODIFY,
                     "/gmail/v1/users/me/messages/batchModify?prettyPrint=false");
        ask.body = tide_buf_text(&body);
        rc = change(&ask, count_told, err);
    }
    tide_buf_done(&body);
    return rc;
}

tide_status tide_gmail_modify(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              const char *const *add, const char *const *take, tide_error *err)
{
    return modify(gmail, job, ids, count, count, add, take, err);
}

tide_status tide_gmail_modify_one(tide_gmail *gmail, tide_job *job, tide_text id,
                                  const char *const *add, const char *const *take, tide_error *err)
{
    return modify(gmail, job, &id, 1, 0, add, take, err);
}

tide_status tide_gmail_delete(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              tide_error *err)
{
    tide_status rc = ids_check(ids, count, err);
    if (rc != TIDE_OK || count == 0)
        return rc;
    struct ask ask;
    if (count == 1) {
        ask_message(&ask, gmail, job, DELETE, ids[0], "?prettyPrint=false");
        return change(&ask, count, err);
    }
    tide_buf body;
    tide_buf_init(&body, gmail->mem, REQUEST_BYTES_MAX);
    rc = change_body(ids, count, NULL, NULL, &body, err);
    if (rc == TIDE_OK) {
        ask_init(&ask, gmail, job, BATCH_DELETE,
                 "/gmail/v1/users/me/messages/batchDelete?prettyPrint=false");
        ask.body = tide_buf_text(&body);
        rc = change(&ask, count, err);
    }
    tide_buf_done(&body);
    return rc;
}

/* ---- insert ------------------------------------------------------------------------------ */

/* {"labelIds":[],"threadId":""} without what is empty. */
static tide_status insert_meta(const tide_text *labels, size_t labels_count, tide_text thread_id,
                               tide_buf *meta)
{
    json_t *object = json_object();
    bool failed = object == NULL;
    if (labels_count > 0)
        failed |= json_object_set_new(object, "labelIds", texts_json(labels, labels_count)) != 0;
    if (thread_id.bytes > 0)
        failed |= json_object_set_new(object, "threadId",
                                      json_stringn(thread_id.data, thread_id.bytes)) != 0;
    if (failed) {
        json_decref(object);
        return TIDE_NO_MEMORY;
    }
    return print(object, meta);
}

/* A small message is sent as JSON, which every server understands.  `meta` ends in a newline. */
static tide_status insert_json(struct ask *ask, tide_text raw, const tide_buf *meta, tide_buf *body)
{
    const bool plain = meta->bytes <= 3; /* {} */
    tide_status rc = tide_buf_add_text(body, "{\"raw\":\"");
    if (rc == TIDE_OK)
        rc = tide_base64_add(body, raw, tide_base64_url, false);
    if (rc == TIDE_OK)
        rc = tide_buf_print(body, "\"%s%s", plain ? "" : ",", meta->data + 1);
    ask->body = tide_buf_text(body);
    return rc;
}

/* A large one is uploaded unchanged: head, bytes, tail, without a copy. */
struct upload {
    tide_text parts[3];
    size_t part;
    size_t at;
    char type[80];
};

static void upload_rewind(void *arg)
{
    struct upload *upload = arg;
    upload->part = 0;
    upload->at = 0;
}

static tide_status upload_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct upload *upload = arg;
    size_t count = 0;
    while (count < room && upload->part < 3) {
        const tide_text part = upload->parts[upload->part];
        const size_t left = part.bytes - upload->at;
        const size_t some = left < room - count ? left : room - count;
        if (some > 0)
            memcpy(bytes + count, part.data + upload->at, some);
        count += some;
        upload->at += some;
        if (upload->at == part.bytes) {
            upload->part++;
            upload->at = 0;
        }
    }
    *count_out = count;
    return TIDE_OK;
}

/* A line that the message does not contain. */
static tide_status boundary_of(tide_text raw, char boundary[32])
{
    for (unsigned i = 0; i < BOUNDARIES_MAX; i++) {
        const int bytes = snprintf(boundary, 32, "tidemark_part_%u", i);
        if (memmem(raw.data, raw.bytes, boundary, (size_t)bytes) == NULL)
            return TIDE_OK;
    }
    return TIDE_INVALID;
}

static tide_status insert_upload(struct ask *ask, tide_text raw, const tide_buf *meta,
                                 struct upload *upload, tide_buf *frame)
{
    char boundary[32];
    tide_status rc = boundary_of(raw, boundary);
    if (rc == TIDE_OK)
        rc = tide_buf_print(frame,
                            "--%s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%s\r\n"
                            "--%s\r\nContent-Type: message/rfc822\r\n\r\n",
                            boundary, tide_buf_cstr(meta), boundary);
    const size_t head_bytes = frame->bytes;
    if (rc == TIDE_OK)
        rc = tide_buf_print(frame, "\r\n--%s--\r\n", boundary);
    if (rc != TIDE_OK)
        return rc;
    upload->parts[0] = (tide_text){frame->data, head_bytes};
    upload->parts[1] = raw;
    upload->parts[2] = (tide_text){frame->data + head_bytes, frame->bytes - head_bytes};
    (void)snprintf(upload->type, sizeof upload->type, "multipart/related; boundary=%s", boundary);
    ask->type = upload->type;
    ask->source = upload_read;
    ask->rewind = upload_rewind;
    ask->source_arg = upload;
    ask->source_bytes = (uint64_t)frame->bytes + raw.bytes;
    return TIDE_OK;
}

/* The insert has happened: a malformed thread is no reason to fail. */
static void thread_of(const json_t *value, tide_buf *out)
{
    const char *thread = json_string_value(json_object_get(value, "threadId"));
    tide_buf_clear(out);
    if (thread != NULL && strlen(thread) <= out->bytes_max)
        (void)tide_buf_add_text(out, thread);
}

tide_status tide_gmail_insert(tide_gmail *gmail, tide_job *job, tide_text raw,
                              const tide_text *labels, size_t labels_count, tide_text thread_id,
                              tide_buf *id_out, tide_buf *thread_out, tide_error *err)
{
    struct ask ask;
    struct upload upload;
    json_t *value = NULL;
    tide_buf meta, body;
    const bool small = raw.bytes <= INSERT_JSON_BYTES_MAX;
    tide_buf_init(&meta, gmail->mem, SMALL_BYTES_MAX);
    tide_buf_init(&body, gmail->mem, REQUEST_BYTES_MAX);
    ask_init(&ask, gmail, job, INSERT,
             small ? "/gmail/v1/users/me/messages?prettyPrint=false&fields=id,threadId"
                     "&internalDateSource=dateHeader"
                   : "/upload/gmail/v1/users/me/messages?uploadType=multipart"
                     "&prettyPrint=false&fields=id,threadId&internalDateSource=dateHeader");
    tide_status rc = ask.failed;
    if (rc == TIDE_OK)
        rc = insert_meta(labels, labels_count, thread_id, &meta);
    if (rc == TIDE_OK)
        rc = small ? insert_json(&ask, raw, &meta, &body)
                   : insert_upload(&ask, raw, &meta, &upload, &body);
    if (rc == TIDE_OK) {
        rc = call_json(&ask, &value, err);
        rc = made(&ask, value, id_out, rc, err);
        if (rc == TIDE_OK && thread_out != NULL)
            thread_of(value, thread_out);
    } else {
        (void)tide_error_set(err, rc, "%s: no room for the request", rows[INSERT].name);
    }
    json_decref(value);
    tide_buf_done(&body);
    tide_buf_done(&meta);
    ask_done(&ask);
    return rc;
}
