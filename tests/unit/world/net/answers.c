/* What is asked for, and what comes back: heads, bodies, compression. */
#include "net_fixture.h"
#include "support/ok.h"
#include "support/heap.h"

/* ---- answers ------------------------------------------------------------- */

CASE(an_answer_arrives_whole)
{
    const size_t sizes[] = {0, 1, 5, 65535, 65536, 65537, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *path = textf("/plain?bytes=%zu", sizes[i]);
        tide_error err = {0};
        OK(fetch(f, "GET", test_http_url(f->server, path), &err));
        assert_int_equal(f->response.http, 200);
        assert_int_equal(f->response.body.bytes, sizes[i]);
        assert_int_equal(f->response.body_bytes, sizes[i]);
        assert_pattern(f->response.body.data, f->response.body.bytes, 0);
        assert_true(
            tide_text_equal(tide_response_header(&f->response, "x-test"), TIDE_TEXT("yes")));
        assert_true(tide_response_header(&f->response, "X-None").data == NULL);
    }
}

CASE(an_error_code_is_an_answer_with_its_headers)
{
    const int codes[] = {400, 401, 403, 404, 410, 429, 500, 503};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const char *path = textf("/status?code=%d", codes[i]);
        OK(fetch(f, "GET", test_http_url(f->server, path), NULL));
        assert_int_equal(f->response.http, codes[i]);
        assert_true(
            tide_text_equal(tide_response_header(&f->response, "Retry-After"), TIDE_TEXT("7")));
        assert_int_equal(f->response.body.bytes, 5);
    }
}

CASE(redirects_are_not_followed)
{
    OK(fetch(f, "GET", test_http_url(f->server, "/redirect"), NULL));
    assert_int_equal(f->response.http, 302);
    assert_true(
        tide_text_equal(tide_response_header(&f->response, "location"), TIDE_TEXT("/plain")));
    assert_int_equal(test_http_requests(f->server), 1);
}

CASE(methods_bodies_and_types_are_sent_as_given)
{
    static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < 4; i++)
        for (int with_body = 0; with_body < 2; with_body++) {
            struct tide_header type = {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")};
            struct tide_request request = {
                .method = methods[i],
                .url = test_http_url(f->server, "/echo"),
                .headers = with_body ? &type : NULL,
                .headers_count = with_body ? 1 : 0,
                .body = with_body ? TIDE_TEXT("{\"a\":1}") : TIDE_TEXT_NONE,
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            OK(tide_world_call(f->world, &request, &response, NULL, NULL));
            assert_true(tide_text_equal(tide_response_header(&response, "X-Method"),
                                        tide_text_of(methods[i])));
            assert_true(
                tide_text_equal(tide_response_header(&response, "X-Type"),
                                with_body ? TIDE_TEXT("application/json") : TIDE_TEXT("none")));
            assert_true(tide_text_equal(tide_buf_text(&response.body), request.body));
            tide_response_done(&response);
        }
}

CASE(head_has_no_body_and_keeps_its_connection)
{
    for (int i = 0; i < 3; i++) {
        OK(fetch(f, "HEAD", test_http_url(f->server, "/gzip?bytes=700"), NULL));
        assert_int_equal(f->response.http, 200);
        assert_int_equal(f->response.body_bytes, 0);
    }
    assert_int_equal(test_http_connections(f->server), 1);
}

CASE(headers_are_sent_as_given_also_empty_ones)
{
    struct tide_header headers[] = {
        {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer s3cr3t")},
        {TIDE_TEXT("X-Empty"), TIDE_TEXT_NONE},
    };
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, "/headers"),
        .headers = headers,
        .headers_count = 2,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    const char *text = tide_buf_cstr(&f->response.body);
    assert_non_null(strstr(text, "Authorization: Bearer s3cr3t\n"));
    assert_non_null(strstr(text, "X-Empty: \n"));
    assert_non_null(strstr(text, "Accept-Encoding: gzip, deflate\n"));
    assert_null(strstr(text, "Expect:"));
    assert_null(strstr(text, "Cookie:"));
}

CASE(a_header_that_would_smuggle_another_is_refused)
{
    const struct tide_header bad[] = {
        {TIDE_TEXT("X-A"), TIDE_TEXT("b\r\nX-C: d")}, {TIDE_TEXT("X-A"), TIDE_TEXT("b\n")},
        {TIDE_TEXT("X A"), TIDE_TEXT("b")},           {TIDE_TEXT(""), TIDE_TEXT("b")},
        {TIDE_TEXT("X-A:"), TIDE_TEXT("b")},          {TIDE_TEXT("X-A"), TIDE_TEXT("b\0c")},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tide_request request = {
            .method = "GET",
            .url = test_http_url(f->server, "/plain"),
            .headers = &bad[i],
            .headers_count = 1,
        };
        struct tide_response response;
        tide_response_init(&response, tide_mem_heap());
        assert_int_equal(tide_world_call(f->world, &request, &response, NULL, NULL), TIDE_INVALID);
        tide_response_done(&response);
    }
    assert_int_equal(test_http_requests(f->server), 0);
}

CASE(only_the_final_head_counts)
{
    OK(fetch(f, "GET", test_http_bad_url(f->server, "/early-hints"), NULL));
    assert_int_equal(f->response.http, 200);
    assert_int_equal(f->response.headers_count, 62);
    assert_true(tide_text_equal(tide_response_header(&f->response, "X-Final-59"), TIDE_TEXT("59")));
    assert_null(tide_response_header(&f->response, "X-Hint-0").data);
    assert_null(tide_response_header(&f->response, "X-Trailer").data);
    assert_string_equal(tide_buf_cstr(&f->response.body), "final");
}

/* ---- compression --------------------------------------------------------- */

CASE(a_compressed_body_arrives_decoded)
{
    OK(fetch(f, "GET", test_http_url(f->server, "/gzip?bytes=3000000"), NULL));
    assert_int_equal(f->response.body.bytes, 3000000);
    assert_pattern(f->response.body.data, f->response.body.bytes, 0);
    assert_true(
        tide_text_equal(tide_response_header(&f->response, "Content-Encoding"), TIDE_TEXT("gzip")));
}

CASE(a_request_that_names_its_encoding_gets_it_raw)
{
    struct tide_header header = {TIDE_TEXT("Accept-Encoding"), TIDE_TEXT("gzip")};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, "/gzip?bytes=1000"),
        .headers = &header,
        .headers_count = 1,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_true(f->response.body.bytes > 2 && f->response.body.bytes < 1000);
    assert_memory_equal(f->response.body.data, "\x1f\x8b", 2);
}

CASE(a_range_is_never_compressed)
{
    struct tide_header header = {TIDE_TEXT("Range"), TIDE_TEXT("bytes=0-999")};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, "/gzip?bytes=1000"),
        .headers = &header,
        .headers_count = 1,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_int_equal(f->response.body.bytes, 1000);
    assert_pattern(f->response.body.data, 1000, 0);
}
