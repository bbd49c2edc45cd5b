/* What an HTTP answer means to a handler that brings no judge of its own. */
#include "support/test.h"
#include "tidemark.h"
#include "world/world.h"

static tide_status judge(int http, const char *retry_after, const char *date,
                         uint64_t *retry_after_ms_out)
{
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    response.http = http;
    if (retry_after != NULL)
        response.headers[response.headers_count++] =
            (struct tide_header){TIDE_TEXT("retry-after"), tide_text_of(retry_after)};
    if (date != NULL)
        response.headers[response.headers_count++] =
            (struct tide_header){TIDE_TEXT("Date"), tide_text_of(date)};
    tide_error err;
    tide_status rc = tide_http_judge(&response, retry_after_ms_out, &err);
    tide_response_done(&response);
    return rc;
}

TEST(every_code_has_its_meaning)
{
    const struct {
        int http;
        tide_status status;
    } cases[] = {{200, TIDE_OK},      {204, TIDE_OK},        {400, TIDE_PERMANENT},
                 {401, TIDE_AUTH},    {403, TIDE_PERMANENT}, {404, TIDE_GONE},
                 {408, TIDE_TIMEOUT}, {410, TIDE_GONE},      {429, TIDE_THROTTLED},
                 {500, TIDE_SERVER},  {503, TIDE_SERVER},    {302, TIDE_PERMANENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t wait_ms = 7;
        assert_int_equal(judge(cases[i].http, NULL, NULL, &wait_ms), cases[i].status);
        assert_int_equal(wait_ms, 0);
    }
}

TEST(a_named_time_is_understood_in_both_forms)
{
    uint64_t wait_ms = 0;
    assert_int_equal(judge(429, "17", NULL, &wait_ms), TIDE_THROTTLED);
    assert_int_equal(wait_ms, 17000);
    assert_int_equal(judge(503, "2", NULL, &wait_ms), TIDE_THROTTLED);
    assert_int_equal(wait_ms, 2000);
    assert_int_equal(
        judge(429, "Sun, 15 Nov 2026 10:01:30 GMT", "Sun, 15 Nov 2026 10:00:00 GMT", &wait_ms),
        TIDE_THROTTLED);
    assert_int_equal(wait_ms, 90000);
}

TEST(nonsense_names_no_time_and_no_wait_is_longer_than_a_day)
{
    const char *const nonsense[] = {"", "soon", "-3", "12 s", "Sun, 15 Nov 2026 10:01:30 GMT"};
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        uint64_t wait_ms = 7;
        (void)judge(429, nonsense[i], NULL, &wait_ms); /* the last one lacks its Date */
        assert_int_equal(wait_ms, 0);
    }
    uint64_t wait_ms = 0;
    (void)judge(429, "18446744073709551615", NULL, &wait_ms);
    assert_int_equal(wait_ms, 86400000);
}
