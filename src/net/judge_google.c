#include "net/judge_google.h"

#include "base/clocktext.h"
#include "base/json.h"
#include "net/shown.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    ENTRIES_MAX = 16, /* of errors[] and details[] that are read */
    TEXT_SHOWN_BYTES = 240,
    DAY_MS = 86400000,
    HOUR_MS = 3600000,
    PACIFIC_MS = 8 * HOUR_MS, /* behind UTC; in winter exactly */
    LOAD_WAIT_MS = 15 * 60000,
};

/* What kind of limit was hit. */
typedef enum limit { LIMIT_NONE, LIMIT_RATE, LIMIT_LOAD, LIMIT_DAILY } limit;

/* A parsed refusal; texts are borrowed from `value`. */
struct refusal {
    json_t *value;
    const json_t *errors;  /* may be NULL */
    const json_t *details; /* may be NULL */
    const char *message;   /* "" */
    const char *status;    /* "" */
    const char *reason;    /* the first reason given; "" */
};

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static const char *reason_at(const json_t *entries, size_t index)
{
    return text_at(json_array_get(entries, index), "reason");
}

static const char *first_reason(const struct refusal *refusal)
{
    const json_t *const lists[] = {refusal->errors, refusal->details};
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; i < ENTRIES_MAX; i++)
            if (reason_at(lists[list], i)[0] != '\0')
                return reason_at(lists[list], i);
    return "";
}

/* TIDE_INVALID: not a refusal in a form that Google uses.  Some of its APIs put the envelope
 * into an array of one, and the token endpoint's "error" is a plain text. */
static tide_status refusal_read(tide_text body, struct refusal *refusal_out)
{
    json_t *value = NULL;
    if (body.bytes > TIDE_GOOGLE_BODY_BYTES_MAX)
        return TIDE_INVALID;
    TIDE_TRY(tide_json_parse(body, &value, NULL));
    const json_t *envelope = json_is_array(value) ? json_array_get(value, 0) : value;
    const json_t *error = json_object_get(envelope, "error");
    struct refusal refusal = {.value = value, .message = "", .status = "", .reason = ""};
    if (json_is_string(error)) {
        refusal.reason = json_string_value(error);
        refusal.message = text_at(envelope, "error_description");
    } else if (json_is_object(error)) {
        refusal.errors = json_object_get(error, "errors");
        refusal.details = json_object_get(error, "details");
        refusal.message = text_at(error, "message");
        refusal.status = text_at(error, "status");
        refusal.reason = first_reason(&refusal);
    } else {
        json_decref(value);
        return TIDE_INVALID;
    }
    *refusal_out = refusal;
    return TIDE_OK;
}

/* ---- which limit ---- */

static limit limit_of_reason(const char *reason)
{
    static const char *const rate[] = {
        "rateLimitExceeded",   "userRateLimitExceeded",   "concurrentLimitExceeded",
        "quotaExceeded",       "limitExceeded",           "servingLimitExceeded",
        "RATE_LIMIT_EXCEEDED", "RESOURCE_QUOTA_EXCEEDED", NULL};
    if (strcmp(reason, "dailyLimitExceeded") == 0)
        return LIMIT_DAILY;
    return is_one_of(reason, rate) ? LIMIT_RATE : LIMIT_NONE;
}

/* Used only without a reason: messages are written for people and change. */
static bool message_means_rate(const char *message)
{
    static const char *const parts[] = {"rate limit exceeded", "quota exceeded",
                                        "daily limit exceeded", "too many concurrent requests"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strcasestr(message, parts[i]) != NULL)
            return true;
    return false;
}

static limit limit_of(int http, const struct refusal *refusal)
{
    limit found = LIMIT_NONE;
    const json_t *const lists[] = {refusal->errors, refusal->details};
    for (size_t list = 0; list < 2; list++) {
        for (size_t i = 0; i < ENTRIES_MAX; i++) {
            const limit one = limit_of_reason(reason_at(lists[list], i));
            found = one > found ? one : found;
        }
    }
    if (found == LIMIT_NONE &&
        (http == 429 || strcmp(refusal->status, "RESOURCE_EXHAUSTED") == 0 ||
         (http == 403 && refusal->reason[0] == '\0' && message_means_rate(refusal->message))))
        found = LIMIT_RATE;
    if (found == LIMIT_RATE && (strcasestr(refusal->message, "daily limit") != NULL ||
                                strcasestr(refusal->message, "per day") != NULL))
        found = LIMIT_DAILY;
    if (found == LIMIT_RATE && strcasestr(refusal->message, "load quota") != NULL)
        found = LIMIT_LOAD;
    return found;
}

/* The limits besides the rate that the governor can learn (E4.3); 0: none. */
static int about(const struct refusal *refusal)
{
    for (size_t i = 0; i < ENTRIES_MAX; i++)
        if (strcmp(reason_at(refusal->errors, i), "concurrentLimitExceeded") == 0)
            return TIDE_REFUSED_CONCURRENCY;
    if (strcasestr(refusal->message, "concurrent requests") != NULL)
        return TIDE_REFUSED_CONCURRENCY;
    return strcasestr(refusal->message, "bandwidth") != NULL ? TIDE_REFUSED_BYTES : 0;
}

/* ---- how long to wait ---- */

static size_t digits_of(const char *text)
{
    size_t count = 0;
    while (text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

/* "... Retry after  2026-09-11T20:00:00.000Z (Mail sending)": how long that is from
 * now; 0: no time in it, or one that has passed. */
static uint64_t wait_in_message(const char *message, uint64_t now_unix_ms)
{
    enum { TO_SECONDS_BYTES = 19 };
    static const char lead[] = "retry after";
    const char *at = strcasestr(message, lead);
    if (at == NULL || now_unix_ms == 0)
        return 0;
    at += sizeof lead - 1;
    while (*at == ' ' || *at == ':')
        at++;
    const tide_text seconds = {at, TO_SECONDS_BYTES};
    uint64_t until_ms = 0;
    if (strnlen(at, TO_SECONDS_BYTES) < TO_SECONDS_BYTES || !tide_time_parse(seconds, &until_ms))
        return 0;
    at += TO_SECONDS_BYTES;
    /* A fraction of any length is rounded up to the next second: a call that is too early moves
     * the time later, one that is a little late costs nothing. */
    if (*at == '.' && digits_of(at + 1) != strspn(at + 1, "0"))
        until_ms += 1000;
    return until_ms > now_unix_ms ? until_ms - now_unix_ms : 0;
}

/* {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3.5s"},
 * rounded up to whole seconds. */
static uint64_t wait_in_detail(const json_t *detail)
{
    const char *delay = text_at(detail, "retryDelay");
    const size_t digits = digits_of(delay);
    uint64_t seconds = 0;
    if (digits == 0 || digits > 9 || !tide_text_to_u64((tide_text){delay, digits}, &seconds))
        return 0;
    if (delay[digits] == '.')
        seconds++;
    else if (delay[digits] != 's')
        return 0;
    return seconds * 1000;
}

/* Pacific time without daylight saving: an hour late in summer, never early. */
static uint64_t wait_until_midnight(uint64_t now_unix_ms)
{
    if (now_unix_ms < PACIFIC_MS)
        return HOUR_MS;
    return DAY_MS - (now_unix_ms - PACIFIC_MS) % DAY_MS;
}

static uint64_t wait_of(limit found, const struct refusal *refusal, uint64_t now_unix_ms)
{
    uint64_t wait_ms = wait_in_message(refusal->message, now_unix_ms);
    for (size_t i = 0; i < ENTRIES_MAX; i++) {
        const uint64_t in_error =
            wait_in_message(text_at(json_array_get(refusal->errors, i), "message"), now_unix_ms);
        const uint64_t in_detail = wait_in_detail(json_array_get(refusal->details, i));
        wait_ms = in_error > wait_ms ? in_error : wait_ms;
        wait_ms = in_detail > wait_ms ? in_detail : wait_ms;
    }
    uint64_t least_ms = 0;
    if (found == LIMIT_DAILY)
        least_ms = wait_until_midnight(now_unix_ms);
    else if (found == LIMIT_LOAD)
        least_ms = LOAD_WAIT_MS;
    wait_ms = wait_ms < least_ms ? least_ms : wait_ms;
    return wait_ms > TIDE_GOOGLE_WAIT_MS_MAX ? (uint64_t)TIDE_GOOGLE_WAIT_MS_MAX : wait_ms;
}

/* ---- the verdict ---- */

/* Without the text after "Bearer " and without anything that looks like an access token. */
static void show(const char *text, char shown_out[TEXT_SHOWN_BYTES])
{
    static const char *const secrets[] = {"bearer ", "ya29.", NULL};
    tide_shown(text, secrets, shown_out, TEXT_SHOWN_BYTES);
}

static tide_status verdict_of(int http, const struct refusal *refusal, limit found)
{
    static const char *const transient[] = {"backendError", "internalError", "aborted",
                                            "internal_failure", NULL};
    if (http == 401)
        return TIDE_AUTH;
    if (found != LIMIT_NONE)
        return TIDE_THROTTLED;
    if (http >= 500 || http < 400 || is_one_of(refusal->reason, transient) ||
        strcmp(refusal->status, "ABORTED") == 0)
        return TIDE_SERVER;
    if (http == 404 || http == 410)
        return TIDE_GONE;
    if (http == 408)
        return TIDE_TIMEOUT;
    const bool precondition = strcmp(refusal->reason, "failedPrecondition") == 0 ||
                              strcmp(refusal->status, "FAILED_PRECONDITION") == 0;
    if (http == 400 && precondition && strcasestr(refusal->message, "not enabled") == NULL)
        return TIDE_SERVER;
    return TIDE_PERMANENT;
}

static tide_status say(tide_error *err, tide_status status, int http, const char *what)
{
    (void)tide_error_set(err, status, "the server answered %d%s", http, what);
    if (err != NULL)
        err->code = http;
    return status;
}

/* The verdict from the HTTP code alone. */
static tide_status judge_bare(int http, tide_text body, tide_error *err)
{
    const char *what = body.bytes == 0 ? " without a body" : " with a body that is not from Google";
    tide_status status = TIDE_SERVER;
    if (http == 401)
        status = TIDE_AUTH;
    else if (http == 429)
        status = TIDE_THROTTLED;
    else if (http == 408)
        status = TIDE_TIMEOUT;
    return say(err, status, http, what);
}

tide_status tide_google_judge_body(int http, tide_text body, uint64_t now_unix_ms,
                                   uint64_t *retry_after_ms_out, tide_error *err)
{
    *retry_after_ms_out = 0;
    if (http >= 200 && http < 300)
        return TIDE_OK;
    struct refusal refusal;
    tide_status rc = refusal_read(body, &refusal);
    if (rc == TIDE_NO_MEMORY)
        return tide_error_set(err, rc, "out of memory while reading an answer of %d", http);
    if (rc != TIDE_OK)
        return judge_bare(http, body, err);

    const limit found = limit_of(http, &refusal);
    rc = verdict_of(http, &refusal, found);
    *retry_after_ms_out = wait_of(found, &refusal, now_unix_ms);
    char reason[TEXT_SHOWN_BYTES];
    char message[TEXT_SHOWN_BYTES];
    char what[TEXT_SHOWN_BYTES + 80];
    show(refusal.reason[0] != '\0' ? refusal.reason : refusal.status, reason);
    show(refusal.message, message);
    (void)snprintf(what, sizeof what, "%s%.60s%s%s", reason[0] == '\0' ? "" : " ", reason,
                   message[0] == '\0' ? "" : ": ", message);
    const int limited = rc == TIDE_THROTTLED ? about(&refusal) : 0;
    json_decref(refusal.value);
    (void)say(err, rc, http, what);
    if (limited != 0 && err != NULL)
        err->code = limited;
    return rc;
}

bool tide_google_lacks_scope(const char *text)
{
    return strstr(text, "answered 403") != NULL &&
           (strstr(text, "insufficientPermissions") != NULL ||
            strstr(text, "ACCESS_TOKEN_SCOPE_INSUFFICIENT") != NULL ||
            strcasestr(text, "insufficient authentication scopes") != NULL);
}

static bool is_page(const struct tide_response *response)
{
    const tide_text type = tide_response_header(response, "Content-Type");
    /* Google's upload server gives its empty answers this type. */
    if (tide_response_header(response, "X-GUploader-UploadID").bytes > 0)
        return false;
    return type.bytes >= 9 && strncasecmp(type.data, "text/html", 9) == 0;
}

tide_status tide_google_judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                              tide_error *err)
{
    const int http = response->http;
    uint64_t in_header_ms = 0;
    (void)tide_http_judge(response, &in_header_ms, NULL);
    if (http >= 200 && http < 300) {
        *retry_after_ms_out = in_header_ms;
        return is_page(response) ? say(err, TIDE_SERVER, http, " with a page of HTML") : TIDE_OK;
    }
    uint64_t now_unix_ms = 0;
    if (!tide_time_http_parse(tide_response_header(response, "Date"), &now_unix_ms))
        now_unix_ms = 0;
    uint64_t in_body_ms = 0;
    tide_status rc =
        tide_google_judge_body(http, tide_buf_text(&response->body), now_unix_ms, &in_body_ms, err);
    if (http == 503 && in_header_ms > 0 && rc == TIDE_SERVER) {
        rc = TIDE_THROTTLED;
        if (err != NULL)
            err->status = rc;
    }
    *retry_after_ms_out = in_header_ms > in_body_ms ? in_header_ms : in_body_ms;
    return rc;
}
