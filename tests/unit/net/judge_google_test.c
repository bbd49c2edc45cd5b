/* What Google's refusals mean: every body that the API facts quote, and everything
 * that is not one. */
#include "net/judge_google.h"
#include "base/clocktext.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

#define NOW_TEXT "2026-09-11T19:00:00.000Z"
#define HOUR_MS  UINT64_C(3600000)
#define DAY_MS   (24 * HOUR_MS)

static uint64_t now_ms(void)
{
    uint64_t now = 0;
    assert_true(tide_time_parse(TIDE_TEXT(NOW_TEXT), &now));
    return now;
}

/* The envelope as Gmail and Search Console send it. */
static tide_text envelope(char room[2048], int code, const char *domain, const char *reason,
                          const char *message, const char *status)
{
    const int bytes = snprintf(room, 2048,
                               "{\n \"error\": {\n  \"code\": %d,\n  \"message\": \"%s\",\n"
                               "  \"errors\": [{\"message\": \"%s\", \"domain\": \"%s\", "
                               "\"reason\": \"%s\"}]%s%s%s\n }\n}\n",
                               code, message, message, domain, reason,
                               status[0] == '\0' ? "" : ",\n  \"status\": \"", status,
                               status[0] == '\0' ? "" : "\"");
    assert_in_range(bytes, 1, 2047);
    return (tide_text){room, (size_t)bytes};
}

struct known {
    int http;
    const char *domain;
    const char *reason;
    const char *message;
    const char *status;
    tide_status expected;
    uint64_t wait_ms;
};

#define QUOTA_TEXT                                                                                 \
    "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of "        \
    "service 'gmail.googleapis.com' for consumer 'project_number:1234'."

/* NOW is 19:00 UTC, 11:00 in Pacific time without summer: 13 hours are left. */
static const struct known known[] = {
    /* Gmail, section 8 of its facts. */
    {400, "global", "badRequest", "Bad Request", "", TIDE_PERMANENT, 0},
    {400, "global", "invalidArgument", "Number of ids cannot exceed 1000", "INVALID_ARGUMENT",
     TIDE_PERMANENT, 0},
    {400, "global", "invalidArgument", "Invalid label: X", "", TIDE_PERMANENT, 0},
    {400, "global", "failedPrecondition", "Precondition check failed.", "FAILED_PRECONDITION",
     TIDE_SERVER, 0},
    {400, "global", "failedPrecondition", "Mail service not enabled", "FAILED_PRECONDITION",
     TIDE_PERMANENT, 0},
    {401, "global", "authError", "Invalid Credentials", "UNAUTHENTICATED", TIDE_AUTH, 0},
    {403, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded", "", TIDE_THROTTLED, 0},
    {403, "usageLimits", "rateLimitExceeded", QUOTA_TEXT, "PERMISSION_DENIED", TIDE_THROTTLED, 0},
    {403, "usageLimits", "userRateLimitExceeded", "User Rate Limit Exceeded", "", TIDE_THROTTLED,
     0},
    {403, "usageLimits", "quotaExceeded", "Daily Limit Exceeded", "", TIDE_THROTTLED, 13 * HOUR_MS},
    {403, "usageLimits", "dailyLimitExceeded", "Daily Limit Exceeded", "", TIDE_THROTTLED,
     13 * HOUR_MS},
    {403, "global", "insufficientPermissions", "Request had insufficient authentication scopes.",
     "PERMISSION_DENIED", TIDE_PERMANENT, 0},
    {403, "global", "domainPolicy", "The domain policy has disabled third-party Gmail apps", "",
     TIDE_PERMANENT, 0},
    {403, "usageLimits", "accessNotConfigured", "Gmail API has not been used in project 1 before",
     "PERMISSION_DENIED", TIDE_PERMANENT, 0},
    {404, "global", "notFound", "Requested entity was not found.", "NOT_FOUND", TIDE_GONE, 0},
    {410, "global", "deleted", "Resource has been deleted", "", TIDE_GONE, 0},
    {429, "global", "rateLimitExceeded", "Too many concurrent requests for user",
     "RESOURCE_EXHAUSTED", TIDE_THROTTLED, 0},
    {403, "usageLimits", "concurrentLimitExceeded", "Too many concurrent requests", "",
     TIDE_THROTTLED, 0},
    {429, "usageLimits", "rateLimitExceeded",
     "Bandwidth limit exceeded.  Retry after 2026-09-11T20:00:00.000Z", "", TIDE_THROTTLED,
     HOUR_MS},
    {403, "global", "forbidden", "No bandwidth for concurrent requests here", "", TIDE_PERMANENT,
     0},
    {429, "usageLimits", "rateLimitExceeded",
     "User-rate limit exceeded.  Retry after 2026-09-11T20:00:00.000Z", "", TIDE_THROTTLED,
     HOUR_MS},
    {429, "usageLimits", "rateLimitExceeded",
     "User-rate limit exceeded.  Retry after 2026-09-11T20:00:00.000Z (Mail sending)", "",
     TIDE_THROTTLED, HOUR_MS},
    {429, "global", "rateLimitExceeded", "Resource has been exhausted (e.g. check quota).",
     "RESOURCE_EXHAUSTED", TIDE_THROTTLED, 0},
    {500, "global", "backendError", "Backend Error", "INTERNAL", TIDE_SERVER, 0},
    {502, "global", "backendError", "Backend Error", "", TIDE_SERVER, 0},
    {503, "global", "backendError", "Backend Error", "UNAVAILABLE", TIDE_SERVER, 0},
    {504, "global", "backendError", "Backend Error", "DEADLINE_EXCEEDED", TIDE_SERVER, 0},
    /* Search Console, section 5 of its facts. */
    {400, "global", "invalidParameter", "Invalid value for startDate", "", TIDE_PERMANENT, 0},
    {403, "global", "forbidden",
     "User does not have sufficient permission for site 'sc-domain:example.com'", "",
     TIDE_PERMANENT, 0},
    {403, "usageLimits", "quotaExceeded",
     "Search Analytics QPS quota exceeded. Learn about usage limits ...", "", TIDE_THROTTLED, 0},
    {403, "usageLimits", "quotaExceeded", "Search Analytics load quota exceeded.", "",
     TIDE_THROTTLED, 15 * 60000},
    {429, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded", "", TIDE_THROTTLED, 0},
    {429, "usageLimits", "rateLimitExceeded", "Search Analytics QPS quota exceeded", "",
     TIDE_THROTTLED, 0},
    {404, "global", "notFound", "'sc-domain:example.org' is not a verified site", "", TIDE_GONE, 0},
    /* Seen elsewhere: codes and reasons that do not fit each other. */
    {400, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded", "", TIDE_THROTTLED, 0},
    {503, "usageLimits", "rateLimitExceeded", "Rate Limit Exceeded", "", TIDE_THROTTLED, 0},
    {403, "global", "backendError", "Backend Error", "", TIDE_SERVER, 0},
    {409, "global", "aborted", "The operation was aborted.", "ABORTED", TIDE_SERVER, 0},
    {409, "global", "duplicate", "Label name exists or conflicts", "", TIDE_PERMANENT, 0},
    {412, "global", "conditionNotMet", "Precondition Failed", "", TIDE_PERMANENT, 0},
    {408, "global", "timeout", "Request timed out", "", TIDE_TIMEOUT, 0},
    {429, "usageLimits", "RATE_LIMIT_EXCEEDED",
     "Quota exceeded for quota metric 'Queries' and limit 'Queries per day'", "", TIDE_THROTTLED,
     13 * HOUR_MS},
};

/* What the governor learns: the limit that was met, where that is not the rate (E4.3). */
static int code_of(const struct known *row)
{
    if (row->expected != TIDE_THROTTLED)
        return row->http;
    if (strstr(row->message, "concurrent") != NULL)
        return TIDE_REFUSED_CONCURRENCY;
    return strstr(row->message, "andwidth") != NULL ? TIDE_REFUSED_BYTES : row->http;
}

TEST(every_refusal_in_the_books_is_judged_by_its_reason)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct known *row = &known[i];
        char room[2048];
        const tide_text body =
            envelope(room, row->http, row->domain, row->reason, row->message, row->status);
        uint64_t wait_ms = 77;
        tide_error err = {0};
        const tide_status rc = tide_google_judge_body(row->http, body, now_ms(), &wait_ms, &err);
        if (rc != row->expected || wait_ms != row->wait_ms)
            fail_msg("row %zu (%d %s): %s after %llu ms", i, row->http, row->reason,
                     tide_status_name(rc), (unsigned long long)wait_ms);
        assert_int_equal(err.status, rc);
        assert_int_equal(err.code, code_of(row));
        assert_non_null(strstr(err.text, row->reason));
        assert_non_null(strstr(err.text, row->message));
        /* Without room for an error the verdict is the same. */
        assert_int_equal(tide_google_judge_body(row->http, body, now_ms(), &wait_ms, NULL), rc);
    }
}

/* Cuts every body of the table at every byte: it is then no JSON, and nothing may be
 * taken for gone, permanent or a matter of permission. */
TEST(a_body_that_broke_off_proves_nothing)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct known *row = &known[i];
        char room[2048];
        const tide_text body =
            envelope(room, row->http, row->domain, row->reason, row->message, row->status);
        tide_status expected = TIDE_SERVER;
        if (row->http == 401)
            expected = TIDE_AUTH;
        else if (row->http == 429)
            expected = TIDE_THROTTLED;
        else if (row->http == 408)
            expected = TIDE_TIMEOUT;
        for (size_t bytes = 0; bytes + 3 < body.bytes; bytes++) {
            char *exact = malloc(bytes + 1); /* so that a sanitizer sees one byte too far */
            assert_non_null(exact);
            memcpy(exact, body.data, bytes);
            uint64_t wait_ms = 77;
            assert_int_equal(tide_google_judge_body(row->http, (tide_text){exact, bytes}, now_ms(),
                                                    &wait_ms, NULL),
                             expected);
            assert_int_equal(wait_ms, 0);
            free(exact);
        }
    }
}

static void check_wait(const char *message, uint64_t expected_ms)
{
    char room[2048];
    const tide_text body = envelope(room, 429, "usageLimits", "rateLimitExceeded", message, "");
    uint64_t wait_ms = 77;
    assert_int_equal(tide_google_judge_body(429, body, now_ms(), &wait_ms, NULL), TIDE_THROTTLED);
    if (wait_ms != expected_ms)
        fail_msg("%s: %llu ms", message, (unsigned long long)wait_ms);
}

TEST(the_time_to_wait_is_found_in_the_text)
{
    check_wait("User-rate limit exceeded.  Retry after 2026-09-11T19:30:00.000Z", HOUR_MS / 2);
    check_wait("User-rate limit exceeded.  Retry after  2026-09-11T19:30:00.000Z", HOUR_MS / 2);
    check_wait("Retry after 2026-09-11T19:30:00Z", HOUR_MS / 2);
    check_wait("retry after: 2026-09-11T19:30:00", HOUR_MS / 2);
    check_wait("Retry after 2026-09-11T19:30:00.5Z.", HOUR_MS / 2 + 1000); /* up, never down */
    check_wait("Retry after 2026-09-11T19:30:00.123456Z", HOUR_MS / 2 + 1000);
    check_wait("Retry after 2026-09-11T19:00:00.001Z", 1000);
    check_wait("Retry after 2026-09-11T18:59:59.000Z", 0); /* it has passed */
    check_wait("Retry after 2027-01-01T00:00:00.000Z", DAY_MS);
    check_wait("Retry after 9999-12-31T23:59:59.999Z", DAY_MS);
    check_wait("Retry after 2026-13-11T19:30:00.000Z", 0);
    check_wait("Retry after a while", 0);
    check_wait("Retry after", 0);
    check_wait("Retry after ", 0);
    check_wait("Retry after 2026-09-11T19:30", 0);
    check_wait("", 0);
}

static uint64_t wait_at(const char *now, int http, const char *reason, const char *message)
{
    char room[2048];
    uint64_t now_unix_ms = 0;
    uint64_t wait_ms = 77;
    assert_true(tide_time_parse(tide_text_of(now), &now_unix_ms));
    const tide_text body = envelope(room, http, "usageLimits", reason, message, "");
    assert_int_equal(tide_google_judge_body(http, body, now_unix_ms, &wait_ms, NULL),
                     TIDE_THROTTLED);
    return wait_ms;
}

/* Midnight is taken at 08:00 UTC: exact in winter, an hour late in summer. */
TEST(a_daily_limit_waits_for_midnight_at_the_pacific)
{
    assert_int_equal(wait_at("2026-01-10T08:00:00", 403, "dailyLimitExceeded", "x"), DAY_MS);
    assert_int_equal(wait_at("2026-01-10T07:59:59", 403, "dailyLimitExceeded", "x"), 1000);
    assert_int_equal(wait_at("2026-01-10T08:00:01", 403, "dailyLimitExceeded", "x"), DAY_MS - 1000);
    assert_int_equal(wait_at("2026-07-10T07:00:00", 403, "dailyLimitExceeded", "x"), HOUR_MS);
    /* A time in the text that is later counts, an earlier one does not. */
    assert_int_equal(wait_at("2026-01-10T07:00:00", 429, "dailyLimitExceeded",
                             "Daily limit. Retry after 2026-01-10T07:10:00Z"),
                     HOUR_MS);
    assert_int_equal(wait_at("2026-01-10T07:00:00", 429, "dailyLimitExceeded",
                             "Daily limit. Retry after 2026-01-10T09:00:00Z"),
                     2 * HOUR_MS);
    /* Without a clock: an hour. */
    char room[2048];
    uint64_t wait_ms = 0;
    const tide_text body = envelope(room, 403, "usageLimits", "dailyLimitExceeded", "x", "");
    assert_int_equal(tide_google_judge_body(403, body, 0, &wait_ms, NULL), TIDE_THROTTLED);
    assert_int_equal(wait_ms, HOUR_MS);
}

struct odd {
    int http;
    const char *body;
    tide_status expected;
    uint64_t wait_ms;
};

static const struct odd odd[] = {
    {200, "whatever", TIDE_OK, 0},
    {204, "", TIDE_OK, 0},
    /* Portals, proxies and Google's own front end answer in HTML. */
    {404, "<!DOCTYPE html><html lang=en><title>Error 404 (Not Found)!!1</title>", TIDE_SERVER, 0},
    {403, "<html><body>Access to this site is blocked</body></html>", TIDE_SERVER, 0},
    {400, "<html>Error 400 (Bad Request)!!1</html>", TIDE_SERVER, 0},
    {502, "<html>Error 502 (Server Error)!!1</html>", TIDE_SERVER, 0},
    {429, "<html>We're sorry... your network may be sending automated queries</html>",
     TIDE_THROTTLED, 0},
    {401, "<html>401</html>", TIDE_AUTH, 0},
    {302, "", TIDE_SERVER, 0},
    {304, "{}", TIDE_SERVER, 0},
    {404, "", TIDE_SERVER, 0},
    {404, "{}", TIDE_SERVER, 0},
    {404, "[]", TIDE_SERVER, 0},
    {404, "null", TIDE_SERVER, 0},
    {404, "\"error\"", TIDE_SERVER, 0},
    {403, "{\"message\":\"forbidden by the proxy\"}", TIDE_SERVER, 0},
    {404, "{\"error\":null}", TIDE_SERVER, 0},
    {404, "{\"error\":[]}", TIDE_SERVER, 0},
    {404, "{\"error\":404}", TIDE_SERVER, 0},
    /* The envelope with pieces missing or of another type. */
    {404, "{\"error\":{}}", TIDE_GONE, 0},
    {403, "{\"error\":{}}", TIDE_PERMANENT, 0},
    {403, "{\"error\":{\"errors\":{},\"details\":7,\"message\":[],\"status\":3}}", TIDE_PERMANENT,
     0},
    {403, "{\"error\":{\"errors\":[null,1,\"x\",{\"reason\":5}]}}", TIDE_PERMANENT, 0},
    {403, "{\"error\":{\"errors\":[{\"reason\":\"x\"},{\"reason\":\"rateLimitExceeded\"}]}}",
     TIDE_THROTTLED, 0},
    {404, "[{\"error\":{\"code\":404,\"message\":\"Not Found\"}}]", TIDE_GONE, 0},
    /* The newer form without errors[]. */
    {403, "{\"error\":{\"message\":\"Quota exceeded for quota metric 'Queries'\"}}", TIDE_THROTTLED,
     0},
    {403, "{\"error\":{\"message\":\"x\",\"status\":\"RESOURCE_EXHAUSTED\"}}", TIDE_THROTTLED, 0},
    {403,
     "{\"error\":{\"status\":\"PERMISSION_DENIED\",\"details\":[{\"@type\":\"type.googleapis.com/"
     "google.rpc.ErrorInfo\",\"reason\":\"RATE_LIMIT_EXCEEDED\"}]}}",
     TIDE_THROTTLED, 0},
    {403,
     "{\"error\":{\"status\":\"PERMISSION_DENIED\",\"message\":\"Request had insufficient "
     "authentication scopes.\",\"details\":[{\"reason\":\"ACCESS_TOKEN_SCOPE_INSUFFICIENT\"}]}}",
     TIDE_PERMANENT, 0},
    {429, "{\"error\":{\"details\":[{\"retryDelay\":\"30s\"}]}}", TIDE_THROTTLED, 30000},
    {429, "{\"error\":{\"details\":[{\"retryDelay\":\"3.25s\"}]}}", TIDE_THROTTLED, 4000},
    {429, "{\"error\":{\"details\":[{\"retryDelay\":\"999999999s\"}]}}", TIDE_THROTTLED, DAY_MS},
    {429, "{\"error\":{\"details\":[{\"retryDelay\":\"99999999999s\"}]}}", TIDE_THROTTLED, 0},
    {429, "{\"error\":{\"details\":[{\"retryDelay\":\"soon\"},{\"retryDelay\":7}]}}",
     TIDE_THROTTLED, 0},
    {400, "{\"error\":{\"status\":\"FAILED_PRECONDITION\"}}", TIDE_SERVER, 0},
    /* A permission is not turned into a limit by what its message happens to say. */
    {403, "{\"error\":{\"message\":\"quota exceeded\",\"errors\":[{\"reason\":\"forbidden\"}]}}",
     TIDE_PERMANENT, 0},
    /* The token endpoint's form. */
    {400, "{\"error\":\"invalid_grant\",\"error_description\":\"Bad Request\"}", TIDE_PERMANENT, 0},
    {400, "{\"error\":{\"code\":1,\"code\":2}}", TIDE_SERVER, 0},
    {400, "{\"error\":{\"message\":\"\\u0000\"}}", TIDE_SERVER, 0},
};

TEST(odd_answers_are_never_believed_too_much)
{
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        uint64_t wait_ms = 77;
        const tide_status rc = tide_google_judge_body(odd[i].http, tide_text_of(odd[i].body),
                                                      now_ms(), &wait_ms, NULL);
        if (rc != odd[i].expected || wait_ms != odd[i].wait_ms)
            fail_msg("%d %s: %s after %llu ms", odd[i].http, odd[i].body, tide_status_name(rc),
                     (unsigned long long)wait_ms);
    }
}

/* A megabyte of valid JSON with "notFound" in it is not read, and texts of any length
 * end up as one line that fits. */
TEST(huge_bodies_and_texts_are_bounded)
{
    enum { BYTES = 1 << 20 };
    char *body = malloc(BYTES);
    assert_non_null(body);
    memset(body, ' ', BYTES);
    static const char start[] = "{\"error\":{\"errors\":[{\"reason\":\"notFound\"}]}}";
    memcpy(body, start, sizeof start - 1);
    uint64_t wait_ms = 0;
    assert_int_equal(tide_google_judge_body(404, (tide_text){body, TIDE_GOOGLE_BODY_BYTES_MAX}, 1,
                                            &wait_ms, NULL),
                     TIDE_GONE);
    assert_int_equal(tide_google_judge_body(404, (tide_text){body, TIDE_GOOGLE_BODY_BYTES_MAX + 1},
                                            1, &wait_ms, NULL),
                     TIDE_SERVER);
    assert_int_equal(tide_google_judge_body(404, (tide_text){body, BYTES}, 1, &wait_ms, NULL),
                     TIDE_SERVER);

    /* Letters of two bytes, so that a cut between bytes would show. */
    int bytes = snprintf(body, BYTES, "{\"error\":{\"message\":\"a\\n\\u001b[31m");
    for (int i = 0; i < 4000; i++)
        bytes += snprintf(body + bytes, (size_t)(BYTES - bytes), "\xc3\xa9");
    bytes += snprintf(body + bytes, (size_t)(BYTES - bytes), "\",\"errors\":[{\"reason\":\"");
    for (int i = 0; i < 4000; i++)
        bytes += snprintf(body + bytes, (size_t)(BYTES - bytes), "r");
    bytes += snprintf(body + bytes, (size_t)(BYTES - bytes), "\"}]}}");
    tide_error err = {0};
    assert_int_equal(
        tide_google_judge_body(403, (tide_text){body, (size_t)bytes}, 1, &wait_ms, &err),
        TIDE_PERMANENT);
    assert_non_null(strstr(err.text, "a  [31m\xc3\xa9"));
    for (const char *c = err.text; *c != '\0'; c++)
        assert_true((unsigned char)*c >= 0x20);
    assert_int_equal((unsigned char)err.text[strlen(err.text) - 1], 0xa9);
    free(body);
}

TEST(a_token_that_a_server_echoes_is_not_shown)
{
    static const char *const messages[] = {"Invalid Authorization: Bearer SECRET-VALUE-1",
                                           "invalid token ya29.SECRET-VALUE-1",
                                           "bearer SECRET-VALUE"};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        char room[2048];
        uint64_t wait_ms = 0;
        tide_error err = {0};
        (void)tide_google_judge_body(
            401, envelope(room, 401, "global", "authError", messages[i], ""), 1, &wait_ms, &err);
        assert_null(strstr(err.text, "SECRET"));
        assert_non_null(strstr(err.text, "[hidden]"));
    }
}

/* ---- whole answers ---- */

struct answer {
    struct tide_response response;
};

static void answer_make(struct answer *answer, int http, tide_text body, const char *type,
                        const char *date, const char *retry_after)
{
    tide_response_init(&answer->response, tide_mem_heap());
    answer->response.http = http;
    OK(tide_buf_add(&answer->response.body, body.data, body.bytes));
    const char *const names[] = {"Content-Type", "Date", "Retry-After"};
    const char *const values[] = {type, date, retry_after};
    for (size_t i = 0; i < 3; i++)
        if (values[i] != NULL)
            answer->response.headers[answer->response.headers_count++] =
                (struct tide_header){tide_text_of(names[i]), tide_text_of(values[i])};
}

static void check_answer(int http, const char *message, const char *type, const char *date,
                         const char *retry_after, tide_status expected, uint64_t expected_ms)
{
    char room[2048];
    struct answer answer;
    const tide_text body =
        message == NULL ? TIDE_TEXT("<html>")
                        : envelope(room, http, "usageLimits", "rateLimitExceeded", message, "");
    answer_make(&answer, http, body, type, date, retry_after);
    uint64_t wait_ms = 77;
    tide_error err = {0};
    assert_int_equal(tide_google_judge(&answer.response, &wait_ms, &err), expected);
    assert_int_equal(wait_ms, expected_ms);
    assert_int_equal(err.status, expected);
    tide_response_done(&answer.response);
}

#define DATE "Fri, 11 Sep 2026 19:00:00 GMT"

TEST(the_answers_own_date_is_the_clock)
{
    const char *retry = "Retry after 2026-09-11T20:00:00.000Z";
    check_answer(429, retry, NULL, DATE, NULL, TIDE_THROTTLED, HOUR_MS);
    check_answer(429, retry, NULL, NULL, NULL, TIDE_THROTTLED, 0);
    check_answer(429, retry, NULL, "yesterday", NULL, TIDE_THROTTLED, 0);
    /* The header counts as well, whichever is later. */
    check_answer(429, retry, NULL, DATE, "30", TIDE_THROTTLED, HOUR_MS);
    check_answer(429, retry, NULL, DATE, "7200", TIDE_THROTTLED, 2 * HOUR_MS);
    check_answer(429, "x", NULL, DATE, "Fri, 11 Sep 2026 19:00:09 GMT", TIDE_THROTTLED, 9000);
    check_answer(429, "x", NULL, DATE, "Fri, 11 Sep 2026 18:00:00 GMT", TIDE_THROTTLED, 0);
    check_answer(429, "x", NULL, DATE, "99999999", TIDE_THROTTLED, DAY_MS);
    check_answer(503, NULL, "text/html", DATE, "30", TIDE_THROTTLED, 30000);
    check_answer(503, NULL, "text/html", DATE, NULL, TIDE_SERVER, 0);
    check_answer(500, NULL, "text/html", DATE, "30", TIDE_SERVER, 30000);
}

TEST(a_page_is_not_an_answer_even_with_200)
{
    check_answer(200, NULL, "text/html; charset=utf-8", DATE, NULL, TIDE_SERVER, 0);
    check_answer(200, NULL, "Text/HTML", DATE, NULL, TIDE_SERVER, 0);
    check_answer(200, NULL, "application/json; charset=UTF-8", DATE, NULL, TIDE_OK, 0);
    check_answer(200, NULL, "multipart/mixed; boundary=x", DATE, NULL, TIDE_OK, 0);
    check_answer(204, NULL, NULL, NULL, NULL, TIDE_OK, 0);
}

TEST(an_empty_answer_of_the_upload_server_is_no_page)
{
    struct answer answer;
    uint64_t wait_ms = 77;
    tide_error err = {0};
    answer_make(&answer, 200, TIDE_TEXT(""), "text/html; charset=UTF-8", DATE, NULL);
    assert_int_equal(tide_google_judge(&answer.response, &wait_ms, &err), TIDE_SERVER);
    answer.response.headers[answer.response.headers_count++] =
        (struct tide_header){TIDE_TEXT("X-GUploader-UploadID"), TIDE_TEXT("abc")};
    assert_int_equal(tide_google_judge(&answer.response, &wait_ms, &err), TIDE_OK);
    tide_response_done(&answer.response);
}

/* Random bytes and random pieces of the envelope under random codes: what must hold
 * for every answer. */
TEST(whatever_comes_the_verdict_is_bounded_and_careful)
{
    static const char *const pieces[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         "\"error\":",
                                         "\"errors\":",
                                         "\"reason\":",
                                         "\"rateLimitExceeded\"",
                                         "\"message\":",
                                         "\"Retry after 2026-09-12T00:00:00Z\"",
                                         ",",
                                         "\"details\":",
                                         "\"status\":",
                                         "\"code\":",
                                         "404",
                                         "null",
                                         "\"notFound\"",
                                         "\"retryDelay\":",
                                         "\"9s\"",
                                         "\xff",
                                         "\\u0000",
                                         " "};
    const uint64_t seed = 20260911;
    const uint64_t rounds = scaled(300000);
    tide_rng rng = tide_rng_seeded(seed);
    for (uint64_t round = 0; round < rounds; round++) {
        char body[512];
        size_t bytes = 0;
        const uint64_t count = tide_rng_below(&rng, 16);
        for (uint64_t i = 0; i < count; i++) {
            const char *piece = pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])];
            const size_t more = strlen(piece);
            if (bytes + more < sizeof body) {
                memcpy(body + bytes, piece, more);
                bytes += more;
            }
        }
        const int http = (int)tide_rng_below(&rng, 600);
        uint64_t wait_ms = 77;
        tide_error err = {0};
        const tide_status rc =
            tide_google_judge_body(http, (tide_text){body, bytes}, now_ms(), &wait_ms, &err);
        const bool good = http >= 200 && http < 300;
        if ((rc == TIDE_OK) != good || wait_ms > DAY_MS ||
            (rc == TIDE_GONE && http != 404 && http != 410) ||
            (rc == TIDE_PERMANENT && (http < 400 || http > 499)) ||
            (rc == TIDE_AUTH) != (http == 401) ||
            (!good && (err.status != rc || err.code != http || err.text[0] == '\0')))
            fail_msg("seed %llu, round %ld: %d %.*s: %s", (unsigned long long)seed, round, http,
                     (int)bytes, body, tide_status_name(rc));
    }
}

TEST(http_dates_are_read_strictly)
{
    uint64_t time_ms = 5;
    assert_true(tide_time_http_parse(TIDE_TEXT("Sun, 06 Nov 1994 08:49:37 GMT"), &time_ms));
    assert_int_equal(time_ms, UINT64_C(784111777000));
    static const char *const bad[] = {"",
                                      "Sun, 06 Nov 1994 08:49:37",
                                      "Sunday, 06-Nov-94 08:49:37 GMT",
                                      "Sun Nov  6 08:49:37 1994",
                                      "Sun, 6 Nov 1994 08:49:37 GMT",
                                      "sun, 06 nov 1994 08:49:37 GMT",
                                      "Sun, 31 Feb 1994 08:49:37 GMT",
                                      "Sun, 06 Nov 1994 24:49:37 GMT",
                                      "Sun, 06 Nov 1994 08:49:37 GMT ",
                                      "Sun, 06 Nov 1969 08:49:37 GMT",
                                      "Sun, 06 No"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        time_ms = 5;
        assert_false(tide_time_http_parse(tide_text_of(bad[i]), &time_ms));
        assert_int_equal(time_ms, 5);
    }
}
