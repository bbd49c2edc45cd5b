#include "net/judge_graph.h"

#include "base/check.h"
#include "base/json.h"
#include "net/shown.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    NESTED_MAX = 8,      /* innerError in innerError */
    CODE_BYTES_MAX = 64, /* of one code; longer ones are no codes */
    TEXT_SHOWN_BYTES = 200,
    BANDWIDTH = 509,
};

#define ANSWERED "the server answered "

/* ---- what codes mean ---- */

struct meaning {
    tide_status status;
    tide_graph_reason reason;
};

/* Codes of "error" and its inner errors.  One that is not listed leaves the HTTP code to decide. */
static const struct {
    const char *code;
    struct meaning meaning;
} codes[] = {
    {"activityLimitReached", {TIDE_THROTTLED, TIDE_GRAPH_OTHER}},
    {"throttledRequest", {TIDE_THROTTLED, TIDE_GRAPH_OTHER}},
    {"tooManyRequests", {TIDE_THROTTLED, TIDE_GRAPH_OTHER}},
    {"itemNotFound", {TIDE_GONE, TIDE_GRAPH_NOT_FOUND}},
    {"uploadSessionNotFound", {TIDE_GONE, TIDE_GRAPH_NOT_FOUND}},
    {"nameAlreadyExists", {TIDE_EXISTS, TIDE_GRAPH_NAME_TAKEN}},
    {"resourceModified", {TIDE_SUPERSEDED, TIDE_GRAPH_MODIFIED}},
    {"entityTagDoesNotMatch", {TIDE_SUPERSEDED, TIDE_GRAPH_MODIFIED}},
    {"resourceLocked", {TIDE_BUSY, TIDE_GRAPH_LOCKED}},
    {"quotaLimitReached", {TIDE_DISK_FULL, TIDE_GRAPH_FULL}},
    {"maxFileSizeExceeded", {TIDE_PERMANENT, TIDE_GRAPH_TOO_LARGE}},
    {"invalidRange", {TIDE_PERMANENT, TIDE_GRAPH_RANGE}},
    {"fragmentOverlap", {TIDE_PERMANENT, TIDE_GRAPH_RANGE}},
    {"fragmentOutOfOrder", {TIDE_PERMANENT, TIDE_GRAPH_RANGE}},
    {"fragmentLengthMismatch", {TIDE_PERMANENT, TIDE_GRAPH_RANGE}},
    {"invalidPath", {TIDE_PERMANENT, TIDE_GRAPH_NAME_BAD}},
    {"pathIsTooLong", {TIDE_PERMANENT, TIDE_GRAPH_NAME_BAD}},
    {"pathTooDeep", {TIDE_PERMANENT, TIDE_GRAPH_NAME_BAD}},
    {"malwareDetected", {TIDE_PERMANENT, TIDE_GRAPH_MALWARE}},
    {"virusSuspicious", {TIDE_PERMANENT, TIDE_GRAPH_MALWARE}},
    {"serviceReadOnly", {TIDE_SERVER, TIDE_GRAPH_OTHER}},
    {"cannotSnapshotTree", {TIDE_SERVER, TIDE_GRAPH_OTHER}},
    {"resyncChangesApplyDifferences", {TIDE_GONE, TIDE_GRAPH_RESYNC_APPLY}},
    {"resyncApplyDifferences", {TIDE_GONE, TIDE_GRAPH_RESYNC_APPLY}},
    {"resyncChangesUploadDifferences", {TIDE_GONE, TIDE_GRAPH_RESYNC_UPLOAD}},
    {"resyncUploadDifferences", {TIDE_GONE, TIDE_GRAPH_RESYNC_UPLOAD}},
    {"resyncRequired", {TIDE_GONE, TIDE_GRAPH_RESYNC}},
    {"syncStateNotFound", {TIDE_GONE, TIDE_GRAPH_RESYNC}},
};

static struct meaning meaning_of_http(int http)
{
    static const struct {
        int http;
        struct meaning meaning;
    } rows[] = {
        {401, {TIDE_AUTH, TIDE_GRAPH_OTHER}},
        {403, {TIDE_PERMANENT, TIDE_GRAPH_DENIED}},
        {404, {TIDE_GONE, TIDE_GRAPH_NOT_FOUND}},
        {408, {TIDE_TIMEOUT, TIDE_GRAPH_OTHER}},
        {410, {TIDE_GONE, TIDE_GRAPH_RESYNC}},
        {412, {TIDE_SUPERSEDED, TIDE_GRAPH_MODIFIED}},
        {413, {TIDE_DISK_FULL, TIDE_GRAPH_FULL}},
        {416, {TIDE_PERMANENT, TIDE_GRAPH_RANGE}},
        {423, {TIDE_BUSY, TIDE_GRAPH_LOCKED}},
        {424, {TIDE_SERVER, TIDE_GRAPH_OTHER}}, /* of a batch: what it depends on failed */
        {429, {TIDE_THROTTLED, TIDE_GRAPH_OTHER}},
        {507, {TIDE_DISK_FULL, TIDE_GRAPH_FULL}},
        {BANDWIDTH, {TIDE_THROTTLED, TIDE_GRAPH_OTHER}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].http == http)
            return rows[i].meaning;
    return (struct meaning){http >= 400 && http < 500 ? TIDE_PERMANENT : TIDE_SERVER,
                            TIDE_GRAPH_OTHER};
}

/* Whether a code's meaning fits the HTTP code it came with: an item is gone only by a 404 or 410,
 * a resync is demanded only by a 410, and a failing server's answer tells nothing lasting. */
static bool fits(const struct meaning *meaning, int http)
{
    if (http == 401)
        return false; /* nothing was looked at but the token */
    if (meaning->status == TIDE_THROTTLED || meaning->status == TIDE_SERVER)
        return true;
    if (meaning->reason >= TIDE_GRAPH_RESYNC)
        return http == 410;
    if (meaning->status == TIDE_GONE)
        return http == 404 || http == 410;
    return (http >= 400 && http < 500) || (http == 507 && meaning->status == TIDE_DISK_FULL);
}

/* The deepest known code of a list as it is shown, "resyncRequired/resyncChangesUploadDifferences";
 * false: none is known. */
static bool meaning_of_codes(tide_text list, int http, struct meaning *meaning_out)
{
    bool known = false;
    while (list.bytes > 0) {
        const char *end = memchr(list.data, '/', list.bytes);
        const size_t bytes = end == NULL ? list.bytes : (size_t)(end - list.data);
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
            if (strlen(codes[i].code) == bytes &&
                strncasecmp(codes[i].code, list.data, bytes) == 0 &&
                fits(&codes[i].meaning, http)) {
                *meaning_out = codes[i].meaning;
                known = true;
            }
        }
        const size_t used = end == NULL ? bytes : bytes + 1;
        list = (tide_text){list.data + used, list.bytes - used};
    }
    return known;
}

static struct meaning meaning_of(int http, tide_text list)
{
    struct meaning meaning = meaning_of_http(http);
    (void)meaning_of_codes(list, http, &meaning);
    return meaning;
}

/* ---- the envelope ---- */

/* A parsed refusal. */
struct refusal {
    char codes[2 * CODE_BYTES_MAX]; /* the outermost, and the deepest that is known: "a/b" */
    char deepest[CODE_BYTES_MAX];
    char message[TEXT_SHOWN_BYTES];
};

static bool is_code(const char *text)
{
    const size_t bytes = strlen(text);
    return bytes > 0 && bytes < CODE_BYTES_MAX &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") ==
               bytes;
}

/* A code inside of the outermost: kept if it is known here, in place of one less deep. */
static void code_inside(struct refusal *refusal, int http, const char *code)
{
    struct meaning ignored;
    if (code != NULL && is_code(code) && meaning_of_codes(tide_text_of(code), http, &ignored))
        (void)snprintf(refusal->deepest, sizeof refusal->deepest, "%s", code);
}

static const json_t *inner_of(const json_t *error)
{
    static const char *const names[] = {"innererror", "innerError"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_is_object(json_object_get(error, names[i])))
            return json_object_get(error, names[i]);
    return NULL;
}

/* "details":[{"code":...}], which some services have instead of inner errors. */
static void details_read(struct refusal *refusal, int http, const json_t *error)
{
    const json_t *details = json_object_get(error, "details");
    for (size_t i = 0; i < NESTED_MAX && i < json_array_size(details); i++)
        code_inside(refusal, http,
                    json_string_value(json_object_get(json_array_get(details, i), "code")));
}

/* TIDE_INVALID: not Graph's envelope. */
static tide_status refusal_read(int http, tide_text body, struct refusal *refusal_out)
{
    static const char *const secrets[] = {"bearer ", "eyJ", "EwA", "EwB", "http", "tempauth", NULL};
    json_t *value = NULL;
    if (body.bytes > TIDE_GRAPH_BODY_BYTES_MAX)
        return TIDE_INVALID;
    TIDE_TRY(tide_json_parse(body, &value, NULL));
    const json_t *error = json_object_get(value, "error");
    const char *first = json_string_value(json_object_get(error, "code"));
    if (first == NULL || !is_code(first)) {
        json_decref(value);
        return TIDE_INVALID;
    }
    struct refusal refusal = {.deepest = ""};
    const char *message = json_string_value(json_object_get(error, "message"));
    tide_shown(message == NULL ? "" : message, secrets, refusal.message, sizeof refusal.message);
    details_read(&refusal, http, error);
    const json_t *inner = inner_of(error);
    for (unsigned depth = 0; inner != NULL && depth < NESTED_MAX; depth++) {
        code_inside(&refusal, http, json_string_value(json_object_get(inner, "code")));
        inner = inner_of(inner);
    }
    const bool more = refusal.deepest[0] != '\0' && strcasecmp(refusal.deepest, first) != 0;
    (void)snprintf(refusal.codes, sizeof refusal.codes, "%s%s%s", first, more ? "/" : "",
                   more ? refusal.deepest : "");
    json_decref(value);
    *refusal_out = refusal;
    return TIDE_OK;
}

/* ---- how long to wait ---- */

static uint64_t header_number(const struct tide_response *response, const char *name,
                              uint64_t otherwise)
{
    uint64_t number = otherwise;
    (void)tide_text_to_u64(tide_response_header(response, name), &number);
    return number;
}

/* Retry-After, or the reset of a limit of which nothing is left. */
static uint64_t wait_of(const struct tide_response *response)
{
    uint64_t wait_ms = 0;
    (void)tide_http_judge(response, &wait_ms, NULL);
    if (wait_ms == 0 && header_number(response, "RateLimit-Remaining", 1) == 0) {
        const uint64_t reset_s = header_number(response, "RateLimit-Reset", 0);
        wait_ms = reset_s < TIDE_GRAPH_WAIT_MS_MAX / 1000 ? reset_s * 1000
                                                          : (uint64_t)TIDE_GRAPH_WAIT_MS_MAX;
    }
    return wait_ms;
}

/* ---- the verdict ---- */

static tide_status say(tide_error *err, tide_status status, int http, const char *what)
{
    (void)tide_error_set(err, status, ANSWERED "%d%s", http, what);
    if (err != NULL)
        err->code = status == TIDE_THROTTLED && http == BANDWIDTH ? TIDE_REFUSED_BYTES : http;
    return status;
}

/* Without an envelope: only what does no harm if a proxy said it. */
static tide_status say_bare(tide_error *err, int http, bool empty)
{
    const struct meaning meaning = meaning_of_http(http);
    const bool believed = meaning.status == TIDE_AUTH || meaning.status == TIDE_THROTTLED ||
                          meaning.status == TIDE_TIMEOUT;
    return say(err, believed ? meaning.status : TIDE_SERVER, http,
               empty ? " without a body" : " with a body that is not from Microsoft Graph");
}

static tide_status say_refusal(tide_error *err, tide_status status, int http,
                               const struct refusal *refusal)
{
    char what[2 * CODE_BYTES_MAX + TEXT_SHOWN_BYTES + 4];
    (void)snprintf(what, sizeof what, " %s%s%s", refusal->codes,
                   refusal->message[0] == '\0' ? "" : ": ", refusal->message);
    return say(err, status, http, what);
}

static bool is_page(const struct tide_response *response)
{
    const tide_text type = tide_response_header(response, "Content-Type");
    return type.bytes >= 9 && strncasecmp(type.data, "text/html", 9) == 0;
}

/* A server that is busy and names a time is one that limits us. */
static tide_status busy_or(tide_status status, int http, uint64_t wait_ms)
{
    return status == TIDE_SERVER && http == 503 && wait_ms > 0 ? TIDE_THROTTLED : status;
}

tide_status tide_graph_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                             tide_error *err)
{
    const int http = response->http;
    const uint64_t wait_ms = wait_of(response);
    *retry_after_ms_out = wait_ms;
    if (http >= 200 && http < 300)
        return is_page(response) ? say(err, TIDE_SERVER, http, " with a page of HTML") : TIDE_OK;
    struct refusal refusal;
    const tide_status read = refusal_read(http, tide_buf_text(&response->body), &refusal);
    if (read == TIDE_NO_MEMORY)
        return tide_error_set(err, read, "out of memory while reading an answer of %d", http);
    tide_status rc = TIDE_OK;
    if (read == TIDE_OK) {
        rc = busy_or(meaning_of(http, tide_text_of(refusal.codes)).status, http, wait_ms);
        return say_refusal(err, rc, http, &refusal);
    }
    rc = say_bare(err, http, response->body.bytes == 0);
    if (busy_or(rc, http, wait_ms) != rc) {
        rc = TIDE_THROTTLED;
        if (err != NULL)
            err->status = rc;
    }
    return rc;
}

tide_status tide_graph_url_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                                 tide_error *err)
{
    const int http = response->http;
    const uint64_t wait_ms = wait_of(response);
    *retry_after_ms_out = wait_ms;
    if (http >= 200 && http < 300)
        return TIDE_OK;
    struct refusal refusal = {.codes = ""};
    if (refusal_read(http, tide_buf_text(&response->body), &refusal) == TIDE_NO_MEMORY)
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading an answer of %d",
                              http);
    struct meaning meaning = meaning_of_http(http);
    const bool known = meaning_of_codes(tide_text_of(refusal.codes), http, &meaning);
    const bool stays =
        known && (meaning.status == TIDE_THROTTLED || meaning.status == TIDE_SERVER ||
                  meaning.reason == TIDE_GRAPH_MALWARE);
    if (!stays && (http == 401 || http == 403 || http == 404 || http == 410))
        meaning.status = TIDE_GONE;
    const tide_status rc = busy_or(meaning.status, http, wait_ms);
    if (refusal.codes[0] == '\0')
        return say(err, rc, http, "");
    return say_refusal(err, rc, http, &refusal);
}

/* ---- reasons ---- */

tide_graph_reason tide_graph_reason_of(const tide_error *err)
{
    const char *at = err->status == TIDE_OK ? NULL : strstr(err->text, ANSWERED);
    if (at == NULL)
        return TIDE_GRAPH_OTHER;
    at += sizeof ANSWERED - 1;
    uint64_t http = 0;
    const size_t digits = strspn(at, "0123456789");
    if (digits != 3 || !tide_text_to_u64((tide_text){at, digits}, &http))
        return TIDE_GRAPH_OTHER;
    at += digits;
    const size_t bytes = *at == ' ' ? strcspn(at + 1, " :") : 0;
    const tide_text list = {at + (bytes > 0), bytes};
    struct meaning meaning = meaning_of_http((int)http);
    const bool known = meaning_of_codes(list, (int)http, &meaning);
    /* What was not believed has no reason: the status says so. */
    return known || meaning.status == err->status ? meaning.reason : TIDE_GRAPH_OTHER;
}
