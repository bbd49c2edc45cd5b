/* What refusals of Microsoft Graph mean: every code that the facts name, whatever is not Graph's, and
 * URLs that are signed by themselves. */
#include "net/judge_graph.h"
#include "base/rng.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/test.h"

#define DATE   "Fri, 11 Sep 2026 19:00:00 GMT"
#define DAY_MS UINT64_C(86400000)

struct header {
    const char *name, *value;
};

struct verdict {
    tide_status status;
    uint64_t wait_ms;
    tide_error err;
    tide_graph_reason reason;
};

static struct verdict judge_with(tide_judge *judge, int http, tide_text body,
                                 const struct header *headers, size_t count)
{
    struct verdict verdict = {.wait_ms = 77};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    response.http = http;
    OK(tide_buf_add(&response.body, body.data, body.bytes));
    for (size_t i = 0; i < count; i++)
        response.headers[response.headers_count++] =
            (struct tide_header){tide_text_of(headers[i].name), tide_text_of(headers[i].value)};
    verdict.status = judge(&response, &verdict.wait_ms, &verdict.err);
    verdict.reason = tide_graph_reason_of(&verdict.err);
    /* Without room for an error the verdict is the same. */
    uint64_t wait_ms = 0;
    assert_int_equal(judge(&response, &wait_ms, NULL), verdict.status);
    assert_int_equal(wait_ms, verdict.wait_ms);
    tide_response_done(&response);
    return verdict;
}

static struct verdict judge_body(int http, const char *body)
{
    return judge_with(tide_graph_judge, http, tide_text_of(body), NULL, 0);
}

/* "a b c": a, with the inner error b, with the inner error c. */
static const char *envelope(const char *codes)
{
    static char room[2048];
    char list[512];
    unsigned depth = 0;
    size_t bytes = 0;
    (void)snprintf(list, sizeof list, "%s", codes);
    char *rest = list;
    for (const char *code = strsep(&rest, " "); code != NULL; code = strsep(&rest, " ")) {
        bytes += (size_t)snprintf(room + bytes, sizeof room - bytes,
                                  "%s{\"code\":\"%s\",\"message\":\"Because.\"",
                                  depth == 0       ? "{\"error\":"
                                  : depth % 2 == 0 ? ",\"innererror\":"
                                                   : ",\"innerError\":",
                                  code);
        depth++;
    }
    for (; depth > 0; depth--)
        bytes += (size_t)snprintf(room + bytes, sizeof room - bytes, "}");
    (void)snprintf(room + bytes, sizeof room - bytes, "}");
    return room;
}

struct known {
    int http;
    const char *codes;
    tide_status status;
    tide_graph_reason reason;
};

static const struct known known[] = {
    {400, "invalidRequest", TIDE_PERMANENT, TIDE_GRAPH_OTHER},
    {400, "invalidRequest invalidPath", TIDE_PERMANENT, TIDE_GRAPH_NAME_BAD},
    {400, "invalidRequest pathIsTooLong", TIDE_PERMANENT, TIDE_GRAPH_NAME_BAD},
    {400, "invalidRequest pathTooDeep", TIDE_PERMANENT, TIDE_GRAPH_NAME_BAD},
    {400, "invalidRequest malformedEntityTag", TIDE_PERMANENT, TIDE_GRAPH_OTHER},
    {400, "invalidRequest fragmentLengthMismatch", TIDE_PERMANENT, TIDE_GRAPH_RANGE},
    {400, "malwareDetected", TIDE_PERMANENT, TIDE_GRAPH_MALWARE},
    {401, "unauthenticated", TIDE_AUTH, TIDE_GRAPH_OTHER},
    {401, "InvalidAuthenticationToken", TIDE_AUTH, TIDE_GRAPH_OTHER},
    {401, "nameAlreadyExists", TIDE_AUTH, TIDE_GRAPH_OTHER},
    {403, "accessDenied", TIDE_PERMANENT, TIDE_GRAPH_DENIED},
    {403, "notAllowed", TIDE_PERMANENT, TIDE_GRAPH_DENIED},
    {403, "accessDenied malwareDetected", TIDE_PERMANENT, TIDE_GRAPH_MALWARE},
    {403, "malwareDetected virusSuspicious", TIDE_PERMANENT, TIDE_GRAPH_MALWARE},
    {403, "activityLimitReached", TIDE_THROTTLED, TIDE_GRAPH_OTHER},
    {403, "accessDenied serviceReadOnly", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {404, "itemNotFound", TIDE_GONE, TIDE_GRAPH_NOT_FOUND},
    {404, "itemNotFound uploadSessionNotFound", TIDE_GONE, TIDE_GRAPH_NOT_FOUND},
    {404, "ResourceNotFound", TIDE_GONE, TIDE_GRAPH_NOT_FOUND},
    {405, "notAllowed", TIDE_PERMANENT, TIDE_GRAPH_OTHER},
    {408, "timeout", TIDE_TIMEOUT, TIDE_GRAPH_OTHER},
    {409, "nameAlreadyExists", TIDE_EXISTS, TIDE_GRAPH_NAME_TAKEN},
    {409, "namealreadyexists", TIDE_EXISTS, TIDE_GRAPH_NAME_TAKEN},
    {409, "resourceModified", TIDE_SUPERSEDED, TIDE_GRAPH_MODIFIED},
    {409, "conflict", TIDE_PERMANENT, TIDE_GRAPH_OTHER},
    {410, "resyncRequired", TIDE_GONE, TIDE_GRAPH_RESYNC},
    {410, "syncStateNotFound", TIDE_GONE, TIDE_GRAPH_RESYNC},
    {410, "resyncRequired resyncChangesApplyDifferences", TIDE_GONE, TIDE_GRAPH_RESYNC_APPLY},
    {410, "resyncRequired resyncChangesUploadDifferences", TIDE_GONE, TIDE_GRAPH_RESYNC_UPLOAD},
    {410, "resyncApplyDifferences", TIDE_GONE, TIDE_GRAPH_RESYNC_APPLY},
    {410, "resyncUploadDifferences resyncRequired", TIDE_GONE, TIDE_GRAPH_RESYNC},
    {410, "itemGone", TIDE_GONE, TIDE_GRAPH_RESYNC},
    {411, "lengthRequired", TIDE_PERMANENT, TIDE_GRAPH_OTHER},
    {412, "resourceModified entityTagDoesNotMatch", TIDE_SUPERSEDED, TIDE_GRAPH_MODIFIED},
    {412, "notAllowed", TIDE_SUPERSEDED, TIDE_GRAPH_MODIFIED},
    {413, "requestTooLarge", TIDE_DISK_FULL, TIDE_GRAPH_FULL},
    {413, "invalidRequest maxFileSizeExceeded", TIDE_PERMANENT, TIDE_GRAPH_TOO_LARGE},
    {416, "invalidRange", TIDE_PERMANENT, TIDE_GRAPH_RANGE},
    {416, "invalidRequest fragmentOverlap", TIDE_PERMANENT, TIDE_GRAPH_RANGE},
    {416, "invalidRange fragmentOutOfOrder", TIDE_PERMANENT, TIDE_GRAPH_RANGE},
    {422, "unprocessable", TIDE_PERMANENT, TIDE_GRAPH_OTHER},
    {423, "notAllowed resourceLocked", TIDE_BUSY, TIDE_GRAPH_LOCKED},
    {423, "locked", TIDE_BUSY, TIDE_GRAPH_LOCKED},
    {424, "failedDependency", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {429, "activityLimitReached throttledRequest quota", TIDE_THROTTLED, TIDE_GRAPH_OTHER},
    {429, "TooManyRequests", TIDE_THROTTLED, TIDE_GRAPH_OTHER},
    {429, "anything", TIDE_THROTTLED, TIDE_GRAPH_OTHER},
    {500, "generalException", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {501, "notSupported", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {502, "UnknownError", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {503, "serviceNotAvailable", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {503, "activityLimitReached", TIDE_THROTTLED, TIDE_GRAPH_OTHER},
    {504, "timeout", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {507, "quotaLimitReached", TIDE_DISK_FULL, TIDE_GRAPH_FULL},
    {507, "insufficientStorage", TIDE_DISK_FULL, TIDE_GRAPH_FULL},
    {509, "bandwidthLimitExceeded", TIDE_THROTTLED, TIDE_GRAPH_OTHER},
    /* A code that does not fit the HTTP code proves nothing. */
    {500, "itemNotFound", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {500, "nameAlreadyExists", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {503, "resyncRequired", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {400, "itemNotFound", TIDE_PERMANENT, TIDE_GRAPH_OTHER},
    {404, "resyncRequired", TIDE_GONE, TIDE_GRAPH_NOT_FOUND},
    {302, "nameAlreadyExists", TIDE_SERVER, TIDE_GRAPH_OTHER},
    {507, "nameAlreadyExists", TIDE_DISK_FULL, TIDE_GRAPH_FULL},
    /* The deepest known code counts, however deep, and unknown ones around it do not. */
    {409, "a b c d e f g nameAlreadyExists", TIDE_EXISTS, TIDE_GRAPH_NAME_TAKEN},
    {403, "quotaLimitReached accessDenied", TIDE_DISK_FULL, TIDE_GRAPH_FULL},
};

TEST(every_refusal_in_the_books_is_judged_by_its_deepest_code)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct known *row = &known[i];
        const struct verdict got = judge_body(row->http, envelope(row->codes));
        if (got.status != row->status || got.reason != row->reason)
            fail_msg("%d %s: %s, reason %d: %s", row->http, row->codes,
                     tide_status_name(got.status), (int)got.reason, got.err.text);
        assert_int_equal(got.err.status, got.status);
        assert_int_equal(got.err.code, row->http == 509 ? TIDE_REFUSED_BYTES : row->http);
        assert_int_equal(got.wait_ms, 0);
        assert_non_null(strstr(got.err.text, ": Because."));
    }
}

TEST(details_count_like_inner_errors)
{
    const struct verdict got =
        judge_body(410, "{\"error\":{\"code\":\"resyncRequired\",\"details\":[7,{\"code\":"
                        "\"resyncChangesUploadDifferences\",\"message\":\"x\"},{\"code\":5}]}}");
    assert_int_equal(got.status, TIDE_GONE);
    assert_int_equal(got.reason, TIDE_GRAPH_RESYNC_UPLOAD);
}

/* The engine, a batch and the ledger pass errors on with words in front. */
TEST(a_reason_survives_a_prefix_and_no_message_can_forge_one)
{
    struct verdict got = judge_body(409, envelope("nameAlreadyExists"));
    tide_error outer = {0};
    (void)tide_error_set(&outer, got.status, "items.create: %.340s", got.err.text);
    assert_int_equal(tide_graph_reason_of(&outer), TIDE_GRAPH_NAME_TAKEN);

    got = judge_body(400, "{\"error\":{\"code\":\"invalidRequest\",\"message\":"
                          "\"the server answered 410 resyncRequired: x\"}}");
    assert_int_equal(got.reason, TIDE_GRAPH_OTHER);
    const tide_error none = {TIDE_OK, 0, ""};
    assert_int_equal(tide_graph_reason_of(&none), TIDE_GRAPH_OTHER);
    const tide_error strange = {TIDE_GONE, 410, "the server answered 41"};
    assert_int_equal(tide_graph_reason_of(&strange), TIDE_GRAPH_OTHER);
}

static tide_status bare(int http)
{
    return http == 401                  ? TIDE_AUTH
           : http == 408                ? TIDE_TIMEOUT
           : http == 429 || http == 509 ? TIDE_THROTTLED
                                        : TIDE_SERVER;
}

/* Cut at every byte, a body is no JSON: nothing may be taken for gone, taken, full or forbidden. */
TEST(a_body_that_broke_off_proves_nothing)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const char *body = envelope(known[i].codes);
        const int http = known[i].http;
        for (size_t bytes = 0; bytes < strlen(body); bytes++) {
            const struct verdict got =
                judge_with(tide_graph_judge, http, (tide_text){body, bytes}, NULL, 0);
            assert_int_equal(got.status, bare(http));
            assert_int_equal(got.reason, TIDE_GRAPH_OTHER);
        }
    }
}

TEST(odd_answers_are_never_believed_too_much)
{
    static const char *const bodies[] = {
        "<html>blocked</html>",
        "{}",
        "[]",
        "null",
        "{\"error\":null}",
        "{\"error\":\"invalid_grant\",\"error_description\":\"x\"}",
        "{\"error\":{}}",
        "{\"error\":{\"code\":404}}",
        "{\"error\":{\"code\":\"\"}}",
        "{\"error\":{\"code\":\"two words\"}}",
        "{\"error\":{\"message\":\"itemNotFound\"}}",
        "{\"error\":[{\"code\":\"itemNotFound\"}]}",
        "{\"error\":{\"code\":\"a\",\"code\":\"b\"}}",
    };
    static const int https[] = {302, 304, 400, 401, 403, 404, 408, 409, 410,
                                412, 413, 423, 429, 500, 503, 507, 509};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        for (size_t j = 0; j < sizeof https / sizeof https[0]; j++)
            assert_int_equal(judge_body(https[j], bodies[i]).status, bare(https[j]));
    assert_int_equal(judge_body(200, "whatever").status, TIDE_OK);
    assert_int_equal(judge_body(204, "").status, TIDE_OK);
    static const struct header page[] = {{"Content-Type", "Text/HTML; charset=utf-8"}};
    assert_int_equal(judge_with(tide_graph_judge, 200, TIDE_TEXT("<html>"), page, 1).status,
                     TIDE_SERVER);
    /* For a URL that is signed by itself, HTML is somebody's file. */
    assert_int_equal(judge_with(tide_graph_url_judge, 200, TIDE_TEXT("<html>"), page, 1).status,
                     TIDE_OK);
}

struct waiting {
    int http;
    const char *codes; /* NULL: no body */
    struct header headers[3];
    tide_status status;
    uint64_t wait_ms;
};

static const struct waiting waits[] = {
    {429, "activityLimitReached", {{"Retry-After", "31"}}, TIDE_THROTTLED, 31000},
    {429, NULL, {{"retry-after", "315"}}, TIDE_THROTTLED, 315000},
    {429,
     "x",
     {{"Date", DATE}, {"Retry-After", "Fri, 11 Sep 2026 19:01:10 GMT"}},
     TIDE_THROTTLED,
     70000},
    {429,
     "x",
     {{"Date", DATE}, {"Retry-After", "Fri, 11 Sep 2026 18:00:00 GMT"}},
     TIDE_THROTTLED,
     0},
    {429, "x", {{"Retry-After", "soon"}}, TIDE_THROTTLED, 0},
    {429, "x", {{"Retry-After", "99999999"}}, TIDE_THROTTLED, DAY_MS},
    {503, "serviceNotAvailable", {{"Retry-After", "10"}}, TIDE_THROTTLED, 10000},
    {503, NULL, {{"Retry-After", "10"}}, TIDE_THROTTLED, 10000},
    {503, NULL, {{"Retry-After", "0"}}, TIDE_SERVER, 0},
    {500, "x", {{"Retry-After", "10"}}, TIDE_SERVER, 10000},
    {509, NULL, {{"Retry-After", "60"}}, TIDE_THROTTLED, 60000},
    {403, "accessDenied", {{"Retry-After", "60"}}, TIDE_PERMANENT, 60000},
    /* Without Retry-After, the limit of which nothing is left. */
    {429,
     "x",
     {{"RateLimit-Limit", "1200"}, {"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "31"}},
     TIDE_THROTTLED,
     31000},
    {429, "x", {{"RateLimit-Remaining", "5"}, {"RateLimit-Reset", "31"}}, TIDE_THROTTLED, 0},
    {429,
     "x",
     {{"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "31"}, {"Retry-After", "9"}},
     TIDE_THROTTLED,
     9000},
    {429,
     "x",
     {{"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "18446744073709551615"}},
     TIDE_THROTTLED,
     DAY_MS},
    {429, "x", {{"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "-1"}}, TIDE_THROTTLED, 0},
    {200, "x", {{"RateLimit-Remaining", "0"}, {"RateLimit-Reset", "31"}}, TIDE_OK, 31000},
};

TEST(the_time_to_wait_is_in_the_headers)
{
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        const struct waiting *row = &waits[i];
        size_t count = 0;
        while (count < 3 && row->headers[count].name != NULL)
            count++;
        const tide_text body =
            row->codes == NULL ? TIDE_TEXT("") : tide_text_of(envelope(row->codes));
        tide_judge *const judges[] = {tide_graph_judge, tide_graph_url_judge};
        for (size_t j = 0; j < 2; j++) {
            const struct verdict got = judge_with(judges[j], row->http, body, row->headers, count);
            const bool other = j == 1 && row->http == 403;
            if (got.wait_ms != row->wait_ms || (got.status != row->status && !other))
                fail_msg("row %zu, judge %zu: %s after %" PRIu64 " ms", i, j,
                         tide_status_name(got.status), got.wait_ms);
        }
    }
}

TEST(a_url_that_no_longer_works_is_gone_and_says_nothing_about_the_account)
{
    static const struct known rows[] = {
        {401, "unauthenticated", TIDE_GONE, TIDE_GRAPH_OTHER},
        {401, NULL, TIDE_GONE, TIDE_GRAPH_OTHER},
        {403, "accessDenied", TIDE_GONE, TIDE_GRAPH_OTHER},
        {403, NULL, TIDE_GONE, TIDE_GRAPH_OTHER},
        {404, "itemNotFound", TIDE_GONE, TIDE_GRAPH_NOT_FOUND},
        {404, NULL, TIDE_GONE, TIDE_GRAPH_NOT_FOUND},
        {410, NULL, TIDE_GONE, TIDE_GRAPH_RESYNC},
        {403, "malwareDetected", TIDE_PERMANENT, TIDE_GRAPH_MALWARE},
        {403, "activityLimitReached", TIDE_THROTTLED, TIDE_GRAPH_OTHER},
        {409, "nameAlreadyExists", TIDE_EXISTS, TIDE_GRAPH_NAME_TAKEN},
        {412, NULL, TIDE_SUPERSEDED, TIDE_GRAPH_MODIFIED},
        {416, NULL, TIDE_PERMANENT, TIDE_GRAPH_RANGE},
        {416, "invalidRange fragmentOverlap", TIDE_PERMANENT, TIDE_GRAPH_RANGE},
        {423, NULL, TIDE_BUSY, TIDE_GRAPH_LOCKED},
        {429, NULL, TIDE_THROTTLED, TIDE_GRAPH_OTHER},
        {500, NULL, TIDE_SERVER, TIDE_GRAPH_OTHER},
        {507, NULL, TIDE_DISK_FULL, TIDE_GRAPH_FULL},
        {302, NULL, TIDE_SERVER, TIDE_GRAPH_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const tide_text body =
            rows[i].codes == NULL ? TIDE_TEXT("<html>") : tide_text_of(envelope(rows[i].codes));
        const struct verdict got = judge_with(tide_graph_url_judge, rows[i].http, body, NULL, 0);
        if (got.status != rows[i].status || got.reason != rows[i].reason)
            fail_msg("%d %s: %s, reason %d", rows[i].http, rows[i].codes,
                     tide_status_name(got.status), (int)got.reason);
    }
}

TEST(secrets_that_a_server_echoes_are_not_shown)
{
    static const char *const messages[] = {
        "Invalid Authorization: Bearer SECRET", "Access token eyJSECRET.x is not valid",
        "token EwBSECRET", "see https://public.dm.files.1drv.com/SECRET?x", "tempauth=SECRET"};
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        char body[512];
        (void)snprintf(body, sizeof body, "{\"error\":{\"code\":\"x\",\"message\":\"%s\"}}",
                       messages[i]);
        const struct verdict got = judge_body(403, body);
        assert_null(strstr(got.err.text, "SECRET"));
        assert_non_null(strstr(got.err.text, "[hidden]"));
    }
}

TEST(huge_bodies_and_codes_are_bounded)
{
    char *body = malloc(TIDE_GRAPH_BODY_BYTES_MAX + 1);
    assert_non_null(body);
    memset(body, ' ', TIDE_GRAPH_BODY_BYTES_MAX + 1);
    static const char start[] = "{\"error\":{\"code\":\"itemNotFound\"}}";
    memcpy(body, start, sizeof start - 1);
    assert_int_equal(
        judge_with(tide_graph_judge, 404, (tide_text){body, TIDE_GRAPH_BODY_BYTES_MAX}, NULL, 0)
            .status,
        TIDE_GONE);
    assert_int_equal(
        judge_with(tide_graph_judge, 404, (tide_text){body, TIDE_GRAPH_BODY_BYTES_MAX + 1}, NULL, 0)
            .status,
        TIDE_SERVER);
    free(body);
    /* The longest code, then the known one, still have room before the message. */
    char codes[256];
    (void)snprintf(codes, sizeof codes, "%063d resyncRequired resyncChangesUploadDifferences", 0);
    const struct verdict got = judge_body(410, envelope(codes));
    assert_int_equal(got.reason, TIDE_GRAPH_RESYNC_UPLOAD);
    (void)snprintf(codes, sizeof codes, "%064d", 0);
    assert_int_equal(judge_body(404, envelope(codes)).status, TIDE_SERVER);
}

/* Random pieces of the envelope under random codes: what must hold for every answer. */
TEST(whatever_comes_the_verdict_is_bounded_and_careful)
{
    static const char *const pieces[] = {"{",
                                         "}",
                                         "[",
                                         "]",
                                         "\"error\":",
                                         "\"code\":",
                                         "\"innerError\":",
                                         "\"itemNotFound\"",
                                         "\"resyncRequired\"",
                                         "\"throttledRequest\"",
                                         "\"message\":",
                                         "\"x\"",
                                         ",",
                                         "\"details\":",
                                         "null",
                                         "\xff",
                                         "\\u0000",
                                         " "};
    const uint64_t rounds = scaled(100000);
    tide_rng rng = tide_rng_seeded(20261117);
    for (uint64_t round = 0; round < rounds; round++) {
        char body[512];
        (void)snprintf(body, sizeof body, "%s",
                       tide_rng_below(&rng, 2) == 0 ? "" : "{\"error\":{\"code\":\"x\"");
        const uint64_t count = tide_rng_below(&rng, 16);
        for (uint64_t i = 0; i < count; i++)
            (void)strncat(body, pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])],
                          sizeof body - strlen(body) - 1);
        const int http = (int)tide_rng_below(&rng, 600);
        const bool good = http >= 200 && http < 300;
        const struct verdict got = judge_body(http, body);
        if ((got.status == TIDE_OK) != good ||
            (got.status == TIDE_GONE && http != 404 && http != 410) ||
            (got.status == TIDE_PERMANENT && (http < 400 || http > 499)) ||
            (got.status == TIDE_AUTH) != (http == 401) ||
            (!good && (got.err.status != got.status || got.err.text[0] == '\0')))
            fail_msg("round %" PRIu64 ": %d %s: %s", round, http, body,
                     tide_status_name(got.status));
    }
}
