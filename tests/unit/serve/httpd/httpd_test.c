/* httpd_test.c - the local HTTP server, on a free port, with a client that sends any bytes: answers of
 * every sort.  Beside it: forged requests, limits, streams, pairing. */
#include "unit/serve/httpd/httpd_fixture.h"

#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#define HOST "Host: 127.0.0.1\r\nConnection: close\r\n"

TEST(the_page_names_files_that_never_change)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply page, file;
    char path[128] = "";
    ask(fixture, &page, "GET / HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n\r\n");
    assert_int_equal(page.status, 200);
    assert_true(head_has(&page, "\r\nContent-Type: text/html; charset=utf-8\r\n"));
    assert_true(head_has(&page, "\r\nCache-Control: no-store\r\n"));
    assert_true(head_has(
        &page, "\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; style-src "
               "'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; base-uri 'none'; "
               "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
               "trusted-types 'none'\r\n"));
    assert_null(strstr(page.body, "DIGEST"));
    const char *script = strstr(page.body, "src=\"app/");
    assert_non_null(script);
    assert_int_equal(sscanf(script, "src=\"%120[^\"]\"", path), 1);

    ask(fixture, &file, "GET /%s HTTP/1.1\r\n" HOST "\r\n", path);
    assert_int_equal(file.status, 200);
    assert_true(head_has(&file, "immutable"));
    assert_true(head_has(&file, "\r\nContent-Type: text/javascript; charset=utf-8\r\n"));
    assert_non_null(strstr(file.body, "api/v1") != NULL ? file.body : strstr(file.body, "import"));
    reply_done(&file);

    /* Another site may not load it, and another version has no files. */
    ask(fixture, &file, "GET /%s HTTP/1.1\r\n" HOST "Sec-Fetch-Site: cross-site\r\n\r\n", path);
    assert_int_equal(file.status, 403);
    reply_done(&file);
    ask(fixture, &file, "GET /app/0000000000000000/app.js HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(file.status, 404);
    reply_done(&file);
    reply_done(&page);
    fixture_stop(fixture);
}

TEST(a_file_is_sent_compressed_to_those_who_take_it)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply plain, packed;
    unsigned char out[64 << 10];
    ask(fixture, &plain, "GET / HTTP/1.1\r\n" HOST "\r\n");
    ask(fixture, &packed, "GET / HTTP/1.1\r\n" HOST "Accept-Encoding: br, gzip\r\n\r\n");
    assert_false(head_has(&plain, "Content-Encoding"));
    assert_true(head_has(&plain, "Vary: Accept-Encoding"));
    assert_true(head_has(&packed, "\r\nContent-Encoding: gzip\r\n"));
    z_stream z = {.next_in = (unsigned char *)packed.body, .avail_in = (unsigned)packed.bytes};
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    z.next_out = out;
    z.avail_out = sizeof out;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    (void)inflateEnd(&z);
    assert_int_equal(z.total_out, plain.bytes);
    assert_memory_equal(out, plain.body, plain.bytes);
    reply_done(&plain);
    reply_done(&packed);
    fixture_stop(fixture);
}

TEST(the_page_is_small)
{
    size_t bytes = 0;
    for (size_t i = 0; i < tide_httpd_site_page.files_count; i++)
        bytes += tide_httpd_site_page.files[i].gzip_bytes;
    assert_true(bytes > 1000 && bytes <= 90000);
}

TEST(parts_and_parameters_are_decoded_after_they_are_cut)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    ask(fixture, &reply,
        "GET /api/v1/echo/a%%2Fb%%3Fc?x=1&q=t%%26w+o%%3D HTTP/1.1\r\n" HOST
        "Authorization: bearer %s\r\n\r\n",
        fixture->look);
    assert_int_equal(reply.status, 200);
    assert_non_null(strstr(reply.body, "\"part\":\"a/b?c\""));
    assert_non_null(strstr(reply.body, "\"q\":\"t&w o=\""));
    assert_non_null(strstr(reply.body, "\"absent\":true"));
    assert_non_null(strstr(reply.body, "\"who\":\"look\""));
    reply_done(&reply);
    assert_int_equal(get_status(fixture, "/api/v1/echo/a%00b"), 400);
    assert_int_equal(get_status(fixture, "/api/v1/echo/a%2"), 400);
    assert_int_equal(get_status(fixture, "/api/v1/echo/a?q=%zz"), 400);
    assert_int_equal(get_status(fixture, "/api/v1/echo/"), 404);
    assert_int_equal(get_status(fixture, "/api/v1/echo/a/b"), 404);
    assert_int_equal(get_status(fixture, "/API/v1/state"), 404);
    fixture_stop(fixture);
}

TEST(head_has_the_length_and_no_body)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    ask(fixture, &reply, "HEAD /healthz HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.bytes, 0);
    assert_true(head_has(&reply, "\r\nContent-Length: 12\r\n"));
    reply_done(&reply);
    ask(fixture, &reply,
        "HEAD /api/v1/stream?topics=state HTTP/1.1\r\n" HOST "Authorization: Bearer %s\r\n\r\n",
        fixture->key);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.bytes, 0);
    reply_done(&reply);
    fixture_stop(fixture);
}

TEST(a_method_that_a_path_lacks_is_named)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    ask(fixture, &reply, "DELETE /api/v1/pairings HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(reply.status, 405);
    assert_true(head_has(&reply, "\r\nAllow: POST, GET, HEAD\r\n"));
    reply_done(&reply);
    ask(fixture, &reply, "OPTIONS / HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(reply.status, 405);
    reply_done(&reply);
    ask(fixture, &reply, "OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(reply.status, 405);
    reply_done(&reply);
    fixture_stop(fixture);
}

TEST(a_problem_says_what_happened_and_what_to_do)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    ask(fixture, &reply, "GET /api/v1/state HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(reply.status, 401);
    assert_true(head_has(&reply, "\r\nWWW-Authenticate: Bearer"));
    assert_non_null(strstr(reply.body, "\"status\":401"));
    assert_non_null(strstr(reply.body, "\"code\":\"key\""));
    assert_non_null(strstr(reply.body, "\"help\":\"Run: tidemark token add NAME --scope look."));
    reply_done(&reply);
    /* A browser has no key to send: its user lets it in. */
    ask(fixture, &reply,
        "GET /api/v1/state HTTP/1.1\r\n" HOST "Sec-Fetch-Site: same-origin\r\n\r\n");
    assert_int_equal(reply.status, 401);
    assert_non_null(strstr(reply.body, "\"help\":\"Run: tidemark open\""));
    reply_done(&reply);
    ask(fixture, &reply, "GET /api/v1/nothing HTTP/1.1\r\n" HOST "Authorization: Bearer %s\r\n\r\n",
        fixture->key);
    assert_int_equal(reply.status, 500);
    assert_non_null(strstr(reply.body, "\"code\":\"failed\""));
    reply_done(&reply);
    fixture_stop(fixture);
}

TEST(a_scope_includes_the_smaller_ones_only)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    const struct {
        const char *key, *path;
        int status;
    } rows[] = {
        {fixture->metrics, "GET /metrics", 200},
        {fixture->metrics, "GET /api/v1/state", 403},
        {fixture->look, "GET /metrics", 200},
        {fixture->look, "GET /api/v1/state", 200},
        {fixture->look, "POST /api/v1/jobs/cancel", 403},
        {fixture->key, "POST /api/v1/jobs/cancel", 200},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ask(fixture, &reply,
            "%s HTTP/1.1\r\n" HOST "Authorization: Bearer %s\r\nContent-Type: "
            "application/json\r\nIdempotency-Key: k\r\n\r\n",
            rows[i].path, rows[i].key);
        assert_int_equal(reply.status, rows[i].status);
        reply_done(&reply);
    }
    fixture_stop(fixture);
}

static void post(struct fixture *fixture, struct reply *reply, const char *once, const char *body)
{
    ask(fixture, reply,
        "POST /api/v1/jobs/cancel HTTP/1.1\r\n" HOST
        "Authorization: Bearer %s\r\nContent-Type: application/json; charset=utf-8\r\n%s%s%s"
        "Content-Length: %zu\r\n\r\n%s",
        fixture->key, once == NULL ? "" : "Idempotency-Key: ", once == NULL ? "" : once,
        once == NULL ? "" : "\r\n", strlen(body), body);
}

TEST(a_post_happens_once_for_its_idempotency_key)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    post(fixture, &reply, NULL, "{}");
    assert_int_equal(reply.status, 400);
    reply_done(&reply);
    post(fixture, &reply, "one", "{\"a\":1}");
    assert_int_equal(reply.status, 200);
    assert_string_equal(fixture->last_body, "{\"a\":1}");
    reply_done(&reply);
    post(fixture, &reply, "one", "{\"a\":1}");
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.body, "{\"ok\":true}\n");
    assert_int_equal(atomic_load(&fixture->effects), 1);
    reply_done(&reply);
    post(fixture, &reply, "one", "{\"a\":2}");
    assert_int_equal(reply.status, 422);
    assert_int_equal(atomic_load(&fixture->effects), 1);
    reply_done(&reply);
    /* One that was told that it took too long still runs: a client asks for its answer as after any 503. */
    post(fixture, &reply, "running", "{}");
    assert_int_equal(reply.status, 503);
    assert_true(head_has(&reply, "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(reply.body, "\"code\":\"running\""));
    reply_done(&reply);
    fixture_stop(fixture);
}

TEST(a_connection_carries_many_requests_and_a_large_answer)
{
    struct fixture *fixture = fixture_start(NULL);
    const int fd = client_connect(fixture);
    for (int i = 0; i < 20; i++) {
        struct reply reply;
        client_print(fd,
                     "GET /api/v1/%s HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer "
                     "%s\r\n\r\n",
                     i % 10 == 9 ? "large" : "state", fixture->key);
        client_read(fd, &reply);
        assert_int_equal(reply.status, 200);
        if (i % 10 == 9) {
            assert_int_equal(reply.bytes, 4 << 20);
            assert_int_equal(reply.body[reply.bytes - 1], 'a' + 4095 % 26);
        }
        reply_done(&reply);
    }
    (void)close(fd);
    fixture_stop(fixture);
}

TEST(two_servers_cannot_have_one_port)
{
    struct fixture *fixture = fixture_start(NULL);
    struct tide_httpd_options options = {.port = tide_httpd_port(fixture->server)};
    tide_httpd *other = NULL;
    tide_error err;
    assert_int_equal(tide_httpd_start(fixture->world, tide_mem_heap(), &options, &other, &err),
                     TIDE_BUSY);
    assert_null(other);
    fixture_stop(fixture);
}

TEST(every_request_is_observed_with_its_route)
{
    struct fixture *fixture = fixture_start(NULL);
    assert_int_equal(get_status(fixture, "/healthz"), 200);
    eventually(atomic_load(&fixture->observed) == 1);
    assert_int_equal(atomic_load(&fixture->observed_status), 200);
    assert_int_equal(get_status(fixture, "/none"), 404);
    eventually(atomic_load(&fixture->observed) == 2);
    assert_int_equal(atomic_load(&fixture->observed_status), 404);
    assert_int_equal(atomic_load(&fixture->observed_unrouted), 1);
    fixture_stop(fixture);
}
