/* What refusals of chat endpoints mean: every one that the facts name, in both dialects; whatever is
 * not from such an API; how long to wait; and that no text shows a key. */
#include "net/judge_chat.h"
#include "base/rng.h"
#include "support/ok.h"
#include "support/test.h"

#define DATE    "Fri, 11 Sep 2026 19:00:00 GMT"
#define HOUR_MS UINT64_C(3600000)

struct header {
    const char *name, *value;
};

struct verdict {
    tide_status status;
    uint64_t wait_ms;
    tide_error err;
    tide_chat_reason reason;
};

static struct verdict judge_with(int http, tide_text body, const struct header *headers,
                                 size_t count)
{
    struct verdict verdict = {.wait_ms = 77};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    response.http = http;
    OK(tide_buf_add(&response.body, body.data, body.bytes));
    for (size_t i = 0; i < count && headers[i].name != NULL; i++)
        response.headers[response.headers_count++] =
            (struct tide_header){tide_text_of(headers[i].name), tide_text_of(headers[i].value)};
    verdict.status = tide_chat_judge(&response, &verdict.wait_ms, &verdict.err);
    verdict.reason = tide_chat_reason_of(&verdict.err);
    /* Without room for an error the verdict is the same. */
    uint64_t wait_ms = 0;
    assert_int_equal(tide_chat_judge(&response, &wait_ms, NULL), verdict.status);
    assert_int_equal(wait_ms, verdict.wait_ms);
    assert_true(strlen(verdict.err.text) < sizeof verdict.err.text - 1); /* nothing was cut off */
    tide_response_done(&response);
    return verdict;
}

static struct verdict judge_body(int http, const char *body)
{
    return judge_with(http, tide_text_of(body), NULL, 0);
}

#define OPENAI(type, code)                                                                         \
    "{\"error\":{\"message\":\"Because.\",\"type\":\"" type "\",\"param\":null,\"code\":" code "}" \
    "}"
#define ANTHROPIC(type)                                                                            \
    "{\"type\":\"error\",\"error\":{\"type\":\"" type                                              \
    "\",\"message\":\"Because.\"},\"request_id\":\"req_1\"}"
#define SAYS(message) "{\"error\":{\"message\":\"" message "\",\"type\":\"x\",\"code\":null}}"

static const struct {
    int http;
    const char *body;
    tide_status status;
    tide_chat_reason reason;
} known[] = {
    {401, OPENAI("invalid_request_error", "\"invalid_api_key\""), TIDE_AUTH, TIDE_CHAT_KEY},
    {401, ANTHROPIC("authentication_error"), TIDE_AUTH, TIDE_CHAT_KEY},
    {403, OPENAI("invalid_request_error", "\"unsupported_country_region_territory\""), TIDE_AUTH,
     TIDE_CHAT_DENIED},
    {403, ANTHROPIC("permission_error"), TIDE_AUTH, TIDE_CHAT_DENIED},
    /* Money: never to be tried again before the user acts. */
    {429, OPENAI("insufficient_quota", "\"insufficient_quota\""), TIDE_AUTH, TIDE_CHAT_BILLING},
    {429, OPENAI("insufficient_quota", "\"credit_balance_exhausted\""), TIDE_AUTH,
     TIDE_CHAT_BILLING},
    {429, OPENAI("requests", "\"billing_hard_limit_reached\""), TIDE_AUTH, TIDE_CHAT_BILLING},
    {402, ANTHROPIC("billing_error"), TIDE_AUTH, TIDE_CHAT_BILLING},
    {402, "{\"error\":{\"message\":\"Because.\",\"code\":402}}", TIDE_AUTH, TIDE_CHAT_BILLING},
    {400, SAYS("Your credit balance is too low to access the API."), TIDE_AUTH, TIDE_CHAT_BILLING},
    {429,
     "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Because.\","
     "\"details\":{\"error_code\":\"enforced_spend_limit_reached\"}}}",
     TIDE_AUTH, TIDE_CHAT_BILLING},
    /* Speed. */
    {429, OPENAI("requests", "\"rate_limit_exceeded\""), TIDE_THROTTLED, TIDE_CHAT_RATE},
    {429, ANTHROPIC("rate_limit_error"), TIDE_THROTTLED, TIDE_CHAT_RATE},
    {529, ANTHROPIC("overloaded_error"), TIDE_THROTTLED, TIDE_CHAT_OVERLOADED},
    {503, OPENAI("server_error", "\"server_is_overloaded\""), TIDE_THROTTLED, TIDE_CHAT_OVERLOADED},
    {503, OPENAI("server_error", "\"slow_down\""), TIDE_THROTTLED, TIDE_CHAT_OVERLOADED},
    /* The request. */
    {400, OPENAI("invalid_request_error", "null"), TIDE_PERMANENT, TIDE_CHAT_OTHER},
    {400, ANTHROPIC("invalid_request_error"), TIDE_PERMANENT, TIDE_CHAT_OTHER},
    {404, OPENAI("invalid_request_error", "\"model_not_found\""), TIDE_PERMANENT, TIDE_CHAT_MODEL},
    {404, ANTHROPIC("not_found_error"), TIDE_PERMANENT, TIDE_CHAT_MODEL},
    {404, "{\"error\":\"model 'llama9' not found\"}", TIDE_PERMANENT, TIDE_CHAT_MODEL},
    {404, "{\"object\":\"error\",\"message\":\"Because.\",\"code\":404}", TIDE_PERMANENT,
     TIDE_CHAT_MODEL},
    {413, ANTHROPIC("request_too_large"), TIDE_PERMANENT, TIDE_CHAT_TOO_LONG},
    {400, OPENAI("invalid_request_error", "\"context_length_exceeded\""), TIDE_PERMANENT,
     TIDE_CHAT_TOO_LONG},
    {400, SAYS("prompt is too long: 210000 tokens > 200000 maximum"), TIDE_PERMANENT,
     TIDE_CHAT_TOO_LONG},
    {400, SAYS("This model's maximum context length is 8192 tokens."), TIDE_PERMANENT,
     TIDE_CHAT_TOO_LONG},
    {422, OPENAI("invalid_request_error", "null"), TIDE_PERMANENT, TIDE_CHAT_OTHER},
    {400,
     "{\"error\":{\"message\":\"Unsupported value\",\"type\":\"invalid_request_error\",\"param\":"
     "\"temperature\",\"code\":\"unsupported_value\"}}",
     TIDE_PERMANENT, TIDE_CHAT_SAMPLING},
    {400, SAYS("temperature: Extra inputs are not permitted"), TIDE_PERMANENT, TIDE_CHAT_SAMPLING},
    {400, SAYS("top_p: Extra inputs are not permitted"), TIDE_PERMANENT, TIDE_CHAT_SAMPLING},
    {400,
     "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' "
     "instead.\",\"param\":\"max_tokens\",\"code\":\"unsupported_parameter\"}}",
     TIDE_PERMANENT, TIDE_CHAT_LIMIT_NAME},
    {422,
     "{\"error\":{\"message\":\"Unknown field\",\"param\":\"max_completion_tokens\","
     "\"code\":null}}",
     TIDE_PERMANENT, TIDE_CHAT_LIMIT_NAME},
    /* The server. */
    {408, OPENAI("timeout", "null"), TIDE_TIMEOUT, TIDE_CHAT_OTHER},
    {409, ANTHROPIC("conflict_error"), TIDE_SERVER, TIDE_CHAT_OTHER},
    {500, OPENAI("server_error", "null"), TIDE_SERVER, TIDE_CHAT_OTHER},
    {500, ANTHROPIC("api_error"), TIDE_SERVER, TIDE_CHAT_OTHER},
    {502, OPENAI("server_error", "null"), TIDE_SERVER, TIDE_CHAT_OTHER},
    {503, OPENAI("server_error", "null"), TIDE_SERVER, TIDE_CHAT_OTHER},
    {504, ANTHROPIC("timeout_error"), TIDE_TIMEOUT, TIDE_CHAT_OTHER},
    /* A failing server says nothing lasting about the key, the money or the model. */
    {500, OPENAI("insufficient_quota", "\"insufficient_quota\""), TIDE_SERVER, TIDE_CHAT_OTHER},
    {500, OPENAI("x", "\"model_not_found\""), TIDE_SERVER, TIDE_CHAT_OTHER},
    {500, SAYS("prompt is too long"), TIDE_SERVER, TIDE_CHAT_OTHER},
    {401, OPENAI("insufficient_quota", "\"insufficient_quota\""), TIDE_AUTH, TIDE_CHAT_KEY},
};

TEST(every_refusal_in_the_books_is_judged)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct verdict got = judge_body(known[i].http, known[i].body);
        if (got.status != known[i].status || got.reason != known[i].reason)
            fail_msg("%d %s: %s, %s: %s", known[i].http, known[i].body,
                     tide_status_name(got.status), tide_chat_reason_name(got.reason), got.err.text);
        assert_int_equal(got.err.status, got.status);
        assert_int_equal(got.err.code, known[i].http);
        assert_int_equal(got.wait_ms, 0);
    }
}

static tide_status bare(int http)
{
    return http == 401                  ? TIDE_AUTH
           : http == 408 || http == 504 ? TIDE_TIMEOUT
           : http == 429 || http == 529 ? TIDE_THROTTLED
                                        : TIDE_SERVER;
}

/* Cut at every byte, a body is no error of an API: no job may fail for good, and no account may wait
 * for its user, because of it. */
TEST(a_body_that_broke_off_proves_nothing)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (size_t bytes = 0; bytes < strlen(known[i].body); bytes++)
            assert_int_equal(
                judge_with(known[i].http, (tide_text){known[i].body, bytes}, NULL, 0).status,
                bare(known[i].http));
}

TEST(what_is_not_from_a_chat_api_is_believed_only_where_that_does_no_harm)
{
    static const char *const bodies[] = {
        "<html>blocked</html>", "{}",   "[]", "{\"error\":null}",          "{\"error\":5}",
        "{\"message\":\"no\"}", "null", "",   "{\"detail\":\"Not Found\"}"};
    static const int https[] = {301, 302, 400, 401, 402, 403, 404, 405, 408, 409,
                                413, 422, 429, 451, 500, 502, 503, 504, 529};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        for (size_t j = 0; j < sizeof https / sizeof https[0]; j++)
            assert_int_equal(judge_body(https[j], bodies[i]).status, bare(https[j]));
    assert_int_equal(judge_body(200, "whatever").status, TIDE_OK);
    static const struct header page[] = {{"Content-Type", "Text/HTML; charset=utf-8"}};
    assert_int_equal(judge_with(200, TIDE_TEXT("<html>"), page, 1).status, TIDE_SERVER);
}

#define RATE OPENAI("requests", "\"rate_limit_exceeded\"")
#define SLOW OPENAI("server_error", "null")

static const struct {
    int http;
    const char *body;
    struct header headers[3];
    tide_status status;
    uint64_t wait_ms;
} waits[] = {
    {429, RATE, {{"retry-after", "31"}}, TIDE_THROTTLED, 31000},
    {429, RATE, {{"retry-after-ms", "1500"}, {"retry-after", "31"}}, TIDE_THROTTLED, 1500},
    {429, RATE, {{"retry-after-ms", "1500.25"}}, TIDE_THROTTLED, 1501},
    {429, RATE, {{"retry-after", "1.5"}}, TIDE_THROTTLED, 2000},
    {429, RATE, {{"retry-after-ms", "soon"}, {"retry-after", "4"}}, TIDE_THROTTLED, 4000},
    {429,
     RATE,
     {{"Date", DATE}, {"Retry-After", "Fri, 11 Sep 2026 19:01:10 GMT"}},
     TIDE_THROTTLED,
     70000},
    {429, RATE, {{"retry-after", "-5"}}, TIDE_THROTTLED, 0},
    {429, RATE, {{"retry-after", "999999999999999999"}}, TIDE_THROTTLED, HOUR_MS},
    {429, RATE, {{"retry-after", "86400"}}, TIDE_THROTTLED, HOUR_MS},
    {429, "", {{"retry-after", "7"}}, TIDE_THROTTLED, 7000},
    {529, ANTHROPIC("overloaded_error"), {{"retry-after", "9"}}, TIDE_THROTTLED, 9000},
    {503, SLOW, {{"retry-after", "9"}}, TIDE_THROTTLED, 9000},
    {503, "", {{"retry-after", "9"}}, TIDE_THROTTLED, 9000},
    {503, SLOW, {{"x", "y"}}, TIDE_SERVER, 0},
    /* What the server advises counts where the code leaves it open. */
    {429, RATE, {{"x-should-retry", "false"}}, TIDE_AUTH, 0},
    {429, RATE, {{"x-should-retry", "true"}}, TIDE_THROTTLED, 0},
    {500, SLOW, {{"x-should-retry", "false"}}, TIDE_PERMANENT, 0},
    {500, "", {{"x-should-retry", "false"}}, TIDE_SERVER, 0},
    {400, OPENAI("x", "null"), {{"x-should-retry", "true"}}, TIDE_SERVER, 0},
    {401, OPENAI("x", "null"), {{"x-should-retry", "true"}}, TIDE_AUTH, 0},
    {429,
     OPENAI("insufficient_quota", "null"),
     {{"x-should-retry", "true"}, {"retry-after", "5"}},
     TIDE_AUTH,
     5000},
};

TEST(the_time_to_wait_and_the_advice_are_read)
{
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        const struct verdict got =
            judge_with(waits[i].http, tide_text_of(waits[i].body), waits[i].headers, 3);
        if (got.status != waits[i].status || got.wait_ms != waits[i].wait_ms)
            fail_msg("row %zu: %s, %" PRIu64 " ms: %s", i, tide_status_name(got.status),
                     got.wait_ms, got.err.text);
    }
}

TEST(errors_name_the_request_and_never_a_key)
{
    static const struct header id[] = {{"x-request-id", "req_01AbC"}};
    struct verdict got =
        judge_with(401,
                   TIDE_TEXT("{\"error\":{\"message\":\"Incorrect API key provided: sk-proj-"
                             "AbCdEf0123456789abcdef. You can find your key at https://x.example\","
                             "\"code\":\"invalid_api_key\"}}"),
                   id, 1);
    assert_non_null(strstr(got.err.text, "the server answered 401 invalid_api_key"));
    assert_non_null(strstr(got.err.text, "(request req_01AbC)"));
    assert_null(strstr(got.err.text, "sk-proj"));
    assert_null(strstr(got.err.text, "AbCdEf"));
    static const char *const keys[] = {"gsk_0a1B2c3D4e5F6a7B8c9D0e1F", "Zm9vYmFyMTIzNDU2Nzg5MGFiYw",
                                       "0123456789abcdef0123456789abcdef",
                                       "sk-ant-api03-abcdefabcdefabcdef", "abcd*************wxyz"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char body[300];
        (void)snprintf(body, sizeof body, "{\"error\":{\"message\":\"bad key '%s', sorry\"}}",
                       keys[i]);
        got = judge_body(403, body);
        assert_null(strstr(got.err.text, keys[i]));
        assert_non_null(strstr(got.err.text, "bad key '"));
    }
    /* The name of a model is what a user needs to see. */
    got = judge_body(404, SAYS("model: claude-sonnet-4-5-20250929 was not found"));
    assert_non_null(strstr(got.err.text, "claude-sonnet-4-5-20250929"));
    /* An id that is none is not shown. */
    static const struct header odd[] = {{"x-request-id", "a b\"c"}};
    assert_null(strstr(judge_with(500, TIDE_TEXT(SLOW), odd, 1).err.text, "request a"));
}

TEST(a_reason_survives_a_prefix_and_no_message_can_forge_one)
{
    struct verdict got = judge_body(429, OPENAI("insufficient_quota", "null"));
    tide_error outer = {0};
    (void)tide_error_set(&outer, got.status, "chat.create: %.340s", got.err.text);
    assert_int_equal(tide_chat_reason_of(&outer), TIDE_CHAT_BILLING);
    got = judge_body(400, SAYS("the server answered 429 [no credit]: x"));
    assert_int_equal(got.reason, TIDE_CHAT_OTHER);
    const tide_error none = {TIDE_OK, 0, ""};
    assert_int_equal(tide_chat_reason_of(&none), TIDE_CHAT_OTHER);
}

static struct verdict judge_event(const char *body)
{
    struct verdict verdict = {.wait_ms = 0};
    verdict.status = tide_chat_judge_event(tide_text_of(body), &verdict.err);
    verdict.reason = tide_chat_reason_of(&verdict.err);
    return verdict;
}

/* After a 200: the type says what the HTTP code would have said. */
TEST(an_error_inside_a_stream_is_judged_by_its_type)
{
    static const struct {
        const char *body;
        tide_status status;
        tide_chat_reason reason;
    } rows[] = {
        {ANTHROPIC("overloaded_error"), TIDE_THROTTLED, TIDE_CHAT_OVERLOADED},
        {ANTHROPIC("rate_limit_error"), TIDE_THROTTLED, TIDE_CHAT_RATE},
        {ANTHROPIC("api_error"), TIDE_SERVER, TIDE_CHAT_OTHER},
        {ANTHROPIC("authentication_error"), TIDE_AUTH, TIDE_CHAT_KEY},
        {OPENAI("server_error", "null"), TIDE_SERVER, TIDE_CHAT_OTHER},
        {OPENAI("insufficient_quota", "\"insufficient_quota\""), TIDE_AUTH, TIDE_CHAT_BILLING},
        {OPENAI("x", "\"server_is_overloaded\""), TIDE_THROTTLED, TIDE_CHAT_OVERLOADED},
        {"{\"error\":\"cuda out of memory\"}", TIDE_SERVER, TIDE_CHAT_OTHER},
        {"{}", TIDE_SERVER, TIDE_CHAT_OTHER},
        {"nothing", TIDE_SERVER, TIDE_CHAT_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct verdict got = judge_event(rows[i].body);
        assert_int_equal(got.status, rows[i].status);
        assert_int_equal(got.reason, rows[i].reason);
        assert_true(got.err.text[0] != '\0');
    }
}
