/* The real world's network against a server that behaves as told.
 *
 * Times in here are either timeouts that the behaviour under test must beat by
 * far, or pauses that end when the thing waited for happens. */
#include "world/real.h"
#include "world/world.h"
#include "base/limits.h"
#include "support/http_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    test_http *server;
    tide_world *world;
};

static uint64_t scale(void)
{
    const char *text = getenv("TIDE_TEST_SCALE");
    uint64_t percent = text == NULL ? 100 : strtoull(text, NULL, 10);
    return percent == 0 ? 100 : percent;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->server = test_http_start();
    assert_int_equal(tide_world_real_new(tide_mem_heap(), &fixture->world, NULL), TIDE_OK);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    tide_world_real_free(fixture->world);
    test_http_stop(fixture->server);
    free(fixture);
    return 0;
}

static tide_status fetch(struct fixture *fixture, const char *method, const char *url,
                         struct tide_response *response, tide_error *err)
{
    struct tide_request request = {.method = method, .url = url, .stall_timeout_ms = 20000};
    return tide_world_call(fixture->world, &request, response, NULL, err);
}

static void assert_pattern(const char *bytes, size_t count, uint64_t from)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != test_http_pattern(from + i))
            fail_msg("byte %zu differs", i);
}

/* ---- answers ------------------------------------------------------------- */

static void an_answer_arrives_whole(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const size_t sizes[] = {0, 1, 5, 65535, 65536, 65537, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/plain?bytes=%zu", sizes[i]);
        tide_error err = {0};
        assert_int_equal(
            fetch(fixture, "GET", test_http_url(fixture->server, path), &response, &err), TIDE_OK);
        assert_int_equal(response.http, 200);
        assert_int_equal(response.body.bytes, sizes[i]);
        assert_int_equal(response.body_bytes, sizes[i]);
        assert_pattern(response.body.data, response.body.bytes, 0);
        assert_true(tide_text_equal(tide_response_header(&response, "x-test"), TIDE_TEXT("yes")));
        assert_true(tide_response_header(&response, "X-None").data == NULL);
    }
    tide_response_done(&response);
}

static void an_error_code_is_an_answer_with_its_headers(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const int codes[] = {400, 401, 403, 404, 410, 429, 500, 503};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/status?code=%d", codes[i]);
        assert_int_equal(
            fetch(fixture, "GET", test_http_url(fixture->server, path), &response, NULL), TIDE_OK);
        assert_int_equal(response.http, codes[i]);
        assert_true(
            tide_text_equal(tide_response_header(&response, "Retry-After"), TIDE_TEXT("7")));
        assert_int_equal(response.body.bytes, 5);
    }
    tide_response_done(&response);
}

static void redirects_are_not_followed(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(
        fetch(fixture, "GET", test_http_url(fixture->server, "/redirect"), &response, NULL),
        TIDE_OK);
    assert_int_equal(response.http, 302);
    assert_true(tide_text_equal(tide_response_header(&response, "location"), TIDE_TEXT("/plain")));
    assert_int_equal(test_http_requests(fixture->server), 1);
    tide_response_done(&response);
}

static void methods_bodies_and_types_are_sent_as_given(void **state)
{
    struct fixture *fixture = *state;
    static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < 4; i++)
        for (int with_body = 0; with_body < 2; with_body++) {
            struct tide_header type = {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")};
            struct tide_request request = {
                .method = methods[i],
                .url = test_http_url(fixture->server, "/echo"),
                .headers = with_body ? &type : NULL,
                .headers_count = with_body ? 1 : 0,
                .body = with_body ? TIDE_TEXT("{\"a\":1}") : TIDE_TEXT_NONE,
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                             TIDE_OK);
            assert_true(tide_text_equal(tide_response_header(&response, "X-Method"),
                                        tide_text_of(methods[i])));
            assert_true(
                tide_text_equal(tide_response_header(&response, "X-Type"),
                                with_body ? TIDE_TEXT("application/json") : TIDE_TEXT("none")));
            assert_true(tide_text_equal(tide_buf_text(&response.body), request.body));
            tide_response_done(&response);
        }
}

static void head_has_no_body_and_keeps_its_connection(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fetch(fixture, "HEAD", test_http_url(fixture->server, "/gzip?bytes=700"),
                               &response, NULL),
                         TIDE_OK);
        assert_int_equal(response.http, 200);
        assert_int_equal(response.body_bytes, 0);
    }
    assert_int_equal(test_http_connections(fixture->server), 1);
    tide_response_done(&response);
}

static void headers_are_sent_as_given_also_empty_ones(void **state)
{
    struct fixture *fixture = *state;
    struct tide_header headers[] = {
        {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer s3cr3t")},
        {TIDE_TEXT("X-Empty"), TIDE_TEXT_NONE},
    };
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, "/headers"),
        .headers = headers,
        .headers_count = 2,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    const char *text = tide_buf_cstr(&response.body);
    assert_non_null(strstr(text, "Authorization: Bearer s3cr3t\n"));
    assert_non_null(strstr(text, "X-Empty: \n"));
    assert_non_null(strstr(text, "Accept-Encoding: gzip, deflate\n"));
    assert_null(strstr(text, "Expect:"));
    assert_null(strstr(text, "Cookie:"));
    tide_response_done(&response);
}

static void a_header_that_would_smuggle_another_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const struct tide_header bad[] = {
        {TIDE_TEXT("X-A"), TIDE_TEXT("b\r\nX-C: d")}, {TIDE_TEXT("X-A"), TIDE_TEXT("b\n")},
        {TIDE_TEXT("X A"), TIDE_TEXT("b")},           {TIDE_TEXT(""), TIDE_TEXT("b")},
        {TIDE_TEXT("X-A:"), TIDE_TEXT("b")},          {TIDE_TEXT("X-A"), TIDE_TEXT("b\0c")},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tide_request request = {
            .method = "GET",
            .url = test_http_url(fixture->server, "/plain"),
            .headers = &bad[i],
            .headers_count = 1,
        };
        struct tide_response response;
        tide_response_init(&response, tide_mem_heap());
        assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                         TIDE_INVALID);
        tide_response_done(&response);
    }
    assert_int_equal(test_http_requests(fixture->server), 0);
}

static void only_the_final_head_counts(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(
        fetch(fixture, "GET", test_http_bad_url(fixture->server, "/early-hints"), &response, NULL),
        TIDE_OK);
    assert_int_equal(response.http, 200);
    assert_int_equal(response.headers_count, 62);
    assert_true(tide_text_equal(tide_response_header(&response, "X-Final-59"), TIDE_TEXT("59")));
    assert_null(tide_response_header(&response, "X-Hint-0").data);
    assert_null(tide_response_header(&response, "X-Trailer").data);
    assert_string_equal(tide_buf_cstr(&response.body), "final");
    tide_response_done(&response);
}

/* ---- compression --------------------------------------------------------- */

static void a_compressed_body_arrives_decoded(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(fetch(fixture, "GET", test_http_url(fixture->server, "/gzip?bytes=3000000"),
                           &response, NULL),
                     TIDE_OK);
    assert_int_equal(response.body.bytes, 3000000);
    assert_pattern(response.body.data, response.body.bytes, 0);
    assert_true(
        tide_text_equal(tide_response_header(&response, "Content-Encoding"), TIDE_TEXT("gzip")));
    tide_response_done(&response);
}

static void a_request_that_names_its_encoding_gets_it_raw(void **state)
{
    struct fixture *fixture = *state;
    struct tide_header header = {TIDE_TEXT("Accept-Encoding"), TIDE_TEXT("gzip")};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, "/gzip?bytes=1000"),
        .headers = &header,
        .headers_count = 1,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_true(response.body.bytes > 2 && response.body.bytes < 1000);
    assert_memory_equal(response.body.data, "\x1f\x8b", 2);
    tide_response_done(&response);
}

static void a_range_is_never_compressed(void **state)
{
    struct fixture *fixture = *state;
    struct tide_header header = {TIDE_TEXT("Range"), TIDE_TEXT("bytes=0-999")};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, "/gzip?bytes=1000"),
        .headers = &header,
        .headers_count = 1,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_int_equal(response.body.bytes, 1000);
    assert_pattern(response.body.data, 1000, 0);
    tide_response_done(&response);
}

/* ---- faults -------------------------------------------------------------- */

struct fault {
    const char *path;
    tide_status get;
    tide_status post;
};

/* Every way a server can fail, with a request that may be repeated and with one
 * that may not: the status says what is known about the outcome. */
static void each_fault_has_its_status(void **state)
{
    struct fixture *fixture = *state;
    static const struct fault faults[] = {
        {"/reset-before", TIDE_UNKNOWN, TIDE_UNKNOWN},
        {"/reset-after", TIDE_UNKNOWN, TIDE_UNKNOWN},
        {"/close-after", TIDE_UNKNOWN, TIDE_UNKNOWN},
        {"/stall-zero", TIDE_TIMEOUT, TIDE_TIMEOUT},
        {"/stall-head", TIDE_TIMEOUT, TIDE_TIMEOUT},
        {"/stall-body", TIDE_TIMEOUT, TIDE_TIMEOUT},
        {"/truncated", TIDE_SERVER, TIDE_UNKNOWN},
        {"/truncated-chunk", TIDE_SERVER, TIDE_UNKNOWN},
        {"/bad-chunk", TIDE_SERVER, TIDE_UNKNOWN},
        {"/bad-gzip", TIDE_SERVER, TIDE_UNKNOWN},
        {"/half-gzip", TIDE_SERVER, TIDE_UNKNOWN},
        {"/garbage", TIDE_SERVER, TIDE_UNKNOWN},
        {"/many-headers", TIDE_FULL, TIDE_FULL},
        {"/long-header", TIDE_FULL, TIDE_FULL},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        for (int post = 0; post < 2; post++) {
            char path[100];
            (void)snprintf(path, sizeof path, "%s?token=s3cr3t", faults[i].path);
            struct tide_header secret = {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer s3cr3t")};
            struct tide_request request = {
                .method = post ? "POST" : "GET",
                .url = test_http_bad_url(fixture->server, path),
                .headers = &secret,
                .headers_count = 1,
                .body = post ? TIDE_TEXT("body") : TIDE_TEXT_NONE,
                .stall_timeout_ms = 100,
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            tide_error err = {0};
            tide_status rc = tide_world_call(fixture->world, &request, &response, NULL, &err);
            tide_status wanted = post ? faults[i].post : faults[i].get;
            if (rc != wanted)
                fail_msg("%s %s: %s, not %s (%s)", request.method, path, tide_status_name(rc),
                         tide_status_name(wanted), err.text);
            assert_int_equal(err.status, wanted);
            assert_non_null(strstr(err.text, faults[i].path));
            assert_null(strstr(err.text, "s3cr3t"));
            tide_response_done(&response);
        }
}

static void what_cannot_be_reached_is_a_network_failure(void **state)
{
    struct fixture *fixture = *state;
    /* A port that was ours a moment ago, and so has no listener. */
    test_http *gone = test_http_start();
    char url[200];
    (void)snprintf(url, sizeof url, "%s", test_http_url(gone, "/plain"));
    test_http_stop(gone);
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    tide_error err = {0};
    assert_int_equal(fetch(fixture, "POST", url, &response, &err), TIDE_NETWORK);
    assert_int_equal(response.http, 0);
    assert_int_equal(fetch(fixture, "POST", "http://name.invalid/x?key=s3cr3t", &response, &err),
                     TIDE_NETWORK);
    assert_null(strstr(err.text, "s3cr3t"));
    assert_non_null(strstr(err.text, "POST name.invalid/x"));
    /* A certificate that nobody vouches for: verification is on. */
    assert_int_equal(
        fetch(fixture, "GET", test_http_tls_url(fixture->server, "/plain"), &response, &err),
        TIDE_NETWORK);
    assert_non_null(strstr(err.text, "certificate"));
    assert_int_equal(test_http_requests(fixture->server), 0);
    /* TLS towards a server that does not speak it. */
    const char *plain = test_http_url(fixture->server, "/plain");
    (void)snprintf(url, sizeof url, "https%s", plain + 4);
    assert_int_equal(fetch(fixture, "POST", url, &response, &err), TIDE_NETWORK);
    tide_response_done(&response);
}

static void what_is_not_http_is_invalid(void **state)
{
    struct fixture *fixture = *state;
    static const char *const urls[] = {
        "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://h/x", "http://", "no url", ""};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        tide_error err = {0};
        tide_status rc = fetch(fixture, "GET", urls[i], &response, &err);
        /* "no url" is a relative name, which is looked up as a host. */
        if (rc != TIDE_INVALID)
            fail_msg("%s: %s (%s)", urls[i], tide_status_name(rc), err.text);
    }
    assert_int_equal(
        fetch(fixture, "GET /x HTTP/1.1\r\n", test_http_url(fixture->server, "/"), &response, NULL),
        TIDE_INVALID);
    tide_response_done(&response);
}

/* A kept connection dies while a request is on it.  libcurl would send any
 * request again; ours must not, unless repeating it does no harm (E1.9). */
static void a_post_is_never_sent_twice(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const char *url = test_http_bad_url(fixture->server, "/one-then-close");
    assert_int_equal(fetch(fixture, "POST", url, &response, NULL), TIDE_OK);
    assert_int_equal(test_http_bad_requests(fixture->server), 1);
    tide_error err = {0};
    assert_int_equal(fetch(fixture, "POST", url, &response, &err), TIDE_UNKNOWN);
    assert_int_equal(test_http_bad_requests(fixture->server), 2);

    assert_int_equal(fetch(fixture, "GET", url, &response, NULL), TIDE_OK);
    assert_int_equal(test_http_bad_requests(fixture->server), 3);
    assert_int_equal(fetch(fixture, "GET", url, &response, NULL), TIDE_OK); /* tried twice */
    assert_int_equal(test_http_bad_requests(fixture->server), 5);

    /* The connection of that second try is kept, so this one dies on it too. */
    struct tide_request request = {
        .method = "POST", .url = url, .body = TIDE_TEXT("query"), .repeatable = true};
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_int_equal(test_http_bad_requests(fixture->server), 7);
    tide_response_done(&response);
}

/* ---- timeouts ------------------------------------------------------------ */

static void a_total_timeout_ends_a_call_that_still_moves(void **state)
{
    struct fixture *fixture = *state;
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, "/slow?bytes=100000&ms=10"),
        .total_timeout_ms = 150,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const uint64_t from_ms = tide_world_now_ms(fixture->world);
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                     TIDE_TIMEOUT);
    assert_in_range(tide_world_now_ms(fixture->world) - from_ms, 140, 5000);
    tide_response_done(&response);
}

static void slow_bytes_are_no_stall(void **state)
{
    struct fixture *fixture = *state;
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, "/slow?bytes=30&ms=20"),
        .stall_timeout_ms = 400,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_int_equal(response.body.bytes, 30);
    assert_true(response.latency_ms >= 400);
    tide_response_done(&response);
}

static void a_stalled_answer_times_out_near_its_timeout(void **state)
{
    struct fixture *fixture = *state;
    struct tide_request request = {
        .method = "GET",
        .url = test_http_bad_url(fixture->server, "/stall-body"),
        .stall_timeout_ms = 400,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const uint64_t from_ms = tide_world_now_ms(fixture->world);
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                     TIDE_TIMEOUT);
    assert_in_range(tide_world_now_ms(fixture->world) - from_ms, 390, 2000);
    assert_int_equal(response.http, 200);
    tide_response_done(&response);
}

static void an_upload_that_nobody_reads_times_out(void **state)
{
    struct fixture *fixture = *state;
    const size_t bytes = 16u << 20;
    char *body = calloc(1, bytes);
    assert_non_null(body);
    struct tide_request request = {
        .method = "PUT",
        .url = test_http_bad_url(fixture->server, "/never-read"),
        .body = {body, bytes},
        .stall_timeout_ms = 200,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                     TIDE_TIMEOUT);
    tide_response_done(&response);
    free(body);
}

/* ---- cancellation -------------------------------------------------------- */

struct canceled_call {
    struct fixture *fixture;
    tide_world *clock; /* outlives the one that is called */
    const char *path;
    tide_cancel cancel;
    tide_status status;
    uint64_t ended_us;
};

static void canceled_call_run(void *arg)
{
    struct canceled_call *self = arg;
    struct tide_request request = {.method = "POST",
                                   .url = test_http_bad_url(self->fixture->server, self->path)};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    self->status = tide_world_call(self->fixture->world, &request, &response, &self->cancel, NULL);
    self->ended_us = tide_world_now_us(self->clock);
    tide_response_done(&response);
}

static void cancellation_reaches_a_stalled_call_at_once(void **state)
{
    struct fixture *fixture = *state;
    static const char *const paths[] = {"/stall-zero", "/stall-head", "/stall-body", "/never-read"};
    for (size_t i = 0; i < 4; i++) {
        struct canceled_call call = {.fixture = fixture, .clock = fixture->world, .path = paths[i]};
        tide_thread *thread = NULL;
        assert_int_equal(
            tide_world_thread(fixture->world, "caller", canceled_call_run, &call, &thread, NULL),
            TIDE_OK);
        while (test_http_bad_requests(fixture->server) <= i) /* until it hangs there */
            (void)tide_world_sleep_until(fixture->world, tide_world_now_us(fixture->world) + 1000,
                                         NULL);
        const uint64_t from_us = tide_world_now_us(fixture->world);
        tide_world_cancel(fixture->world, &call.cancel, TIDE_CANCEL_PREEMPT);
        tide_world_join(fixture->world, thread);
        assert_int_equal(call.status, TIDE_CANCELED);
        assert_true(call.ended_us - from_us < 100000);
        print_message("canceled %s within %llu us\n", paths[i],
                      (unsigned long long)(call.ended_us - from_us));
    }
}

static void a_canceled_token_makes_no_call(void **state)
{
    struct fixture *fixture = *state;
    tide_cancel cancel = {0};
    tide_world_cancel(fixture->world, &cancel, TIDE_CANCEL_HALT);
    tide_world_cancel(fixture->world, &cancel, TIDE_CANCEL_USER);
    assert_int_equal(tide_canceled(&cancel), TIDE_CANCEL_HALT); /* the first reason stays */
    struct tide_request request = {.method = "GET",
                                   .url = test_http_url(fixture->server, "/plain")};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, &cancel, NULL),
                     TIDE_CANCELED);
    assert_int_equal(test_http_requests(fixture->server), 0);
    tide_response_done(&response);
}

static void freeing_the_world_ends_its_calls(void **state)
{
    struct fixture *fixture = *state;
    struct fixture other = {.server = fixture->server};
    assert_int_equal(tide_world_real_new(tide_mem_heap(), &other.world, NULL), TIDE_OK);
    struct canceled_call call = {.fixture = &other, .clock = fixture->world, .path = "/stall-zero"};
    tide_thread *thread = NULL;
    /* The thread belongs to the world that stays, so that it can be joined. */
    assert_int_equal(
        tide_world_thread(fixture->world, "caller", canceled_call_run, &call, &thread, NULL),
        TIDE_OK);
    while (test_http_bad_requests(fixture->server) == 0)
        (void)tide_world_sleep_until(fixture->world, tide_world_now_us(fixture->world) + 1000,
                                     NULL);
    tide_world_real_free(other.world);
    tide_world_join(fixture->world, thread);
    assert_int_equal(call.status, TIDE_STOPPED);
}

/* ---- sinks, sources, ceilings -------------------------------------------- */

struct sink {
    tide_world *world;
    struct tide_response *response;
    uint64_t bytes;
    uint64_t pause_every; /* bytes */
    uint64_t fail_after;
    uint64_t paused_at;
    int http_seen;
};

static tide_status sink_write(void *arg, const char *bytes, size_t count)
{
    struct sink *sink = arg;
    if (sink->response != NULL)
        sink->http_seen = sink->response->http;
    assert_pattern(bytes, count, sink->bytes);
    sink->bytes += count;
    if (sink->pause_every > 0 && sink->bytes - sink->paused_at >= sink->pause_every) {
        sink->paused_at = sink->bytes;
        (void)tide_world_sleep_until(sink->world, tide_world_now_us(sink->world) + 2000, NULL);
    }
    return sink->fail_after > 0 && sink->bytes >= sink->fail_after ? TIDE_DISK_FULL : TIDE_OK;
}

/* 64 MB through a sink that pauses every 256 KiB: whatever the server could
 * send, only the ring waits in memory. */
static void a_slow_sink_holds_at_most_the_ring(void **state)
{
    struct fixture *fixture = *state;
    const uint64_t bytes = (64u << 20) * scale() / 100;
    char path[64];
    (void)snprintf(path, sizeof path, "/huge?bytes=%llu", (unsigned long long)bytes);
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    struct sink sink = {.world = fixture->world, .response = &response, .pause_every = 256 << 10};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, path),
        .sink = sink_write,
        .sink_arg = &sink,
        .body_bytes_max = bytes,
    };
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_int_equal(sink.bytes, bytes);
    assert_int_equal(response.body_bytes, bytes);
    assert_int_equal(response.body.bytes, 0);
    assert_int_equal(sink.http_seen, 200);
    struct real_net_stats stats;
    real_net_stats(fixture->world, &stats);
    assert_int_equal(stats.buffered_bytes, 0);
    assert_true(stats.buffered_bytes_peak <= TIDE_RING_BYTES);
    assert_true(stats.buffered_bytes_peak > TIDE_RING_BYTES / 2); /* it was really slow */
    tide_response_done(&response);
}

static void a_sink_may_end_the_call_with_its_own_status(void **state)
{
    struct fixture *fixture = *state;
    struct sink sink = {.world = fixture->world, .fail_after = 100000};
    struct tide_request request = {
        .method = "POST",
        .url = test_http_url(fixture->server, "/huge?bytes=10000000"),
        .sink = sink_write,
        .sink_arg = &sink,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    tide_error err = {0};
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, &err),
                     TIDE_DISK_FULL);
    assert_true(sink.bytes >= 100000 && sink.bytes < 200000);
    struct real_net_stats stats;
    real_net_stats(fixture->world, &stats);
    assert_int_equal(stats.buffered_bytes, 0); /* what it left behind is gone */
    tide_response_done(&response);
}

static void a_body_past_its_ceiling_is_full(void **state)
{
    struct fixture *fixture = *state;
    static const char *const paths[] = {"/plain?bytes=100000", "/huge?bytes=100000",
                                        "/gzip?bytes=100000"};
    for (size_t i = 0; i < 3; i++)
        for (uint64_t max = 99999; max <= 100000; max++) {
            struct tide_request request = {
                .method = "GET",
                .url = test_http_url(fixture->server, paths[i]),
                .body_bytes_max = max,
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                             max == 100000 ? TIDE_OK : TIDE_FULL);
            tide_response_done(&response);
        }
}

struct source {
    uint64_t bytes;
    uint64_t given;
    uint64_t end_at; /* earlier than promised, or failing there */
    tide_status fail;
    size_t step;
};

static tide_status source_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct source *source = arg;
    if (source->end_at > 0 && source->given >= source->end_at) {
        if (source->fail != TIDE_OK)
            return source->fail;
        *count_out = 0;
        return TIDE_OK;
    }
    size_t count = room < source->step ? room : source->step;
    if (count > source->bytes - source->given)
        count = (size_t)(source->bytes - source->given);
    for (size_t i = 0; i < count; i++)
        bytes[i] = test_http_pattern(source->given + i);
    source->given += count;
    *count_out = count;
    return TIDE_OK;
}

static void an_upload_streams_from_its_source(void **state)
{
    struct fixture *fixture = *state;
    static const uint64_t sizes[] = {0, 1, 65536, 3000001};
    static const size_t steps[] = {1000, 1 << 20};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2; k++) {
            struct source source = {.bytes = sizes[i], .step = steps[k]};
            struct tide_request request = {
                .method = "PUT",
                .url = test_http_url(fixture->server, "/echo"),
                .source = source_read,
                .source_arg = &source,
                .source_bytes = sizes[i],
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                             TIDE_OK);
            assert_int_equal(response.body.bytes, sizes[i]);
            assert_pattern(response.body.data, response.body.bytes, 0);
            tide_response_done(&response);
        }
}

static void a_source_that_fails_or_ends_early_ends_the_call(void **state)
{
    struct fixture *fixture = *state;
    for (int failing = 0; failing < 2; failing++) {
        struct source source = {
            .bytes = 1000000, .step = 5000, .end_at = 300000, .fail = failing ? TIDE_IO : TIDE_OK};
        struct tide_request request = {
            .method = "PUT",
            .url = test_http_url(fixture->server, "/echo"),
            .source = source_read,
            .source_arg = &source,
            .source_bytes = 1000000,
        };
        struct tide_response response;
        tide_response_init(&response, tide_mem_heap());
        assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL),
                         failing ? TIDE_IO : TIDE_INVALID);
        tide_response_done(&response);
    }
}

static void an_upload_that_is_refused_early_ends_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct source source = {.bytes = 1 << 30, .step = 1 << 20};
    struct tide_request request = {
        .method = "PUT",
        .url = test_http_bad_url(fixture->server, "/early-413"),
        .source = source_read,
        .source_arg = &source,
        .source_bytes = 1 << 30,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_int_equal(response.http, 413);
    assert_string_equal(tide_buf_cstr(&response.body), "big");
    assert_true(source.given < 64 << 20);
    tide_response_done(&response);
}

/* ---- many calls ---------------------------------------------------------- */

static void a_thousand_calls_share_few_connections(void **state)
{
    struct fixture *fixture = *state;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(
            fetch(fixture, "GET", test_http_url(fixture->server, "/plain"), &response, NULL),
            TIDE_OK);
        assert_int_equal(response.body.bytes, 5);
    }
    assert_int_equal(test_http_requests(fixture->server), 1000);
    assert_int_equal(test_http_connections(fixture->server), 1);
    struct real_net_stats stats;
    real_net_stats(fixture->world, &stats);
    assert_int_equal(stats.calls, 1000);
    assert_int_equal(stats.connections, 1);
    tide_response_done(&response);
}

enum { CALLERS = 8 };

struct caller {
    struct fixture *fixture;
    tide_byte_budget *budget;
    const char *path;
    size_t body_bytes;
    int rounds;
    int failures;
    bool use_sink;
};

static void caller_run(void *arg)
{
    struct caller *self = arg;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    for (int i = 0; i < self->rounds; i++) {
        struct sink sink = {.world = self->fixture->world};
        struct tide_request request = {
            .method = "GET",
            .url = test_http_url(self->fixture->server, self->path),
            .budget = self->budget,
            .sink = self->use_sink ? sink_write : NULL,
            .sink_arg = &sink,
        };
        tide_status rc = tide_world_call(self->fixture->world, &request, &response, NULL, NULL);
        if (rc != TIDE_OK || response.body_bytes != self->body_bytes)
            self->failures++;
    }
    tide_response_done(&response);
}

static void callers_run(struct fixture *fixture, tide_byte_budget *budget, const char *path,
                        size_t body_bytes, int rounds, bool half_with_sinks)
{
    struct caller callers[CALLERS];
    tide_thread *threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.fixture = fixture,
                                     .budget = budget,
                                     .path = path,
                                     .body_bytes = body_bytes,
                                     .rounds = rounds,
                                     .use_sink = half_with_sinks && i % 2 == 0};
        assert_int_equal(
            tide_world_thread(fixture->world, "caller", caller_run, &callers[i], &threads[i], NULL),
            TIDE_OK);
    }
    for (int i = 0; i < CALLERS; i++) {
        tide_world_join(fixture->world, threads[i]);
        assert_int_equal(callers[i].failures, 0);
    }
}

static void callers_on_many_threads_get_their_own_answers(void **state)
{
    struct fixture *fixture = *state;
    const int rounds = (int)(200 * scale() / 100);
    callers_run(fixture, NULL, "/plain?bytes=70000", 70000, rounds, true);
    assert_int_equal(test_http_requests(fixture->server), (uint64_t)rounds * CALLERS);
    assert_true(test_http_connections(fixture->server) <= CALLERS);
}

/* Eight calls of 1 MB each under a budget of 256 KiB: they must take turns, and
 * though each holds part of what the others want, all of them get through. */
static void calls_under_one_budget_take_turns_and_never_lock_up(void **state)
{
    struct fixture *fixture = *state;
    tide_byte_budget *budget = tide_budget_new(fixture->world, 256 << 10);
    assert_non_null(budget);
    callers_run(fixture, budget, "/plain?bytes=1000000", 1000000, 4, false);
    callers_run(fixture, budget, "/huge?bytes=1000000", 1000000, 4, true);
    assert_int_equal(real_budget_held_bytes(budget), 0);
    struct real_net_stats stats;
    real_net_stats(fixture->world, &stats);
    assert_true(stats.budget_waits > 0);
    tide_budget_free(fixture->world, budget);
}

struct watching_sink {
    tide_byte_budget *budget;
    uint64_t held_bytes_max;
};

static tide_status sink_watch(void *arg, const char *bytes, size_t count)
{
    struct watching_sink *sink = arg;
    (void)bytes;
    (void)count;
    const uint64_t held_bytes = real_budget_held_bytes(sink->budget);
    if (held_bytes > sink->held_bytes_max)
        sink->held_bytes_max = held_bytes;
    return TIDE_OK;
}

/* What a sink has taken no longer counts; else one long download would keep
 * the other calls of its account waiting until its end. */
static void a_sink_gives_its_bytes_back_as_it_goes(void **state)
{
    struct fixture *fixture = *state;
    tide_byte_budget *budget = tide_budget_new(fixture->world, 1 << 20);
    struct watching_sink sink = {.budget = budget};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, "/huge?bytes=5000000"),
        .budget = budget,
        .sink = sink_watch,
        .sink_arg = &sink,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_in_range(sink.held_bytes_max, 1, TIDE_RING_BYTES + (16 << 10));
    assert_int_equal(real_budget_held_bytes(budget), 0);
    tide_response_done(&response);
    tide_budget_free(fixture->world, budget);
}

/* A budget of nothing still lets one call at a time through. */
static void the_oldest_call_is_never_refused(void **state)
{
    struct fixture *fixture = *state;
    tide_byte_budget *budget = tide_budget_new(fixture->world, 0);
    callers_run(fixture, budget, "/plain?bytes=200000", 200000, 3, false);
    assert_int_equal(real_budget_held_bytes(budget), 0);
    tide_budget_free(fixture->world, budget);
}

struct held_call {
    struct fixture *fixture;
    tide_byte_budget *budget;
    tide_status status;
};

/* Holds its place as the oldest call of the budget until it times out. */
static void held_call_run(void *arg)
{
    struct held_call *self = arg;
    struct tide_request request = {
        .method = "GET",
        .url = test_http_bad_url(self->fixture->server, "/stall-body"),
        .stall_timeout_ms = 1000,
        .budget = self->budget,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    self->status = tide_world_call(self->fixture->world, &request, &response, NULL, NULL);
    tide_response_done(&response);
}

static int64_t used_us(void)
{
    struct timespec used;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static tide_status sink_nap(void *arg, const char *bytes, size_t count)
{
    struct sink *sink = arg;
    (void)bytes;
    if (sink->bytes == 0) /* meanwhile the ring fills and the connection pauses */
        (void)tide_world_sleep_until(sink->world, tide_world_now_us(sink->world) + 500000, NULL);
    sink->bytes += count;
    return TIDE_OK;
}

/* Idle costs nothing (E2.4): neither does a call that waits for its server, for
 * its budget or for its own sink; and what we hold up ourselves is no stall. */
static void waiting_burns_no_processor_time_and_is_no_stall(void **state)
{
    struct fixture *fixture = *state;
    tide_byte_budget *budget = tide_budget_new(fixture->world, 0);
    struct held_call held = {.fixture = fixture, .budget = budget};
    tide_thread *thread = NULL;
    assert_int_equal(tide_world_thread(fixture->world, "held", held_call_run, &held, &thread, NULL),
                     TIDE_OK);
    while (real_budget_held_bytes(budget) == 0)
        (void)tide_world_sleep_until(fixture->world, tide_world_now_us(fixture->world) + 1000,
                                     NULL);
    const int64_t before_us = used_us();
    struct sink sink = {.world = fixture->world};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(fixture->server, "/huge?bytes=500000"),
        .stall_timeout_ms = 100,
        .budget = budget,
        .sink = sink_nap,
        .sink_arg = &sink,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(fixture->world, &request, &response, NULL, NULL), TIDE_OK);
    assert_int_equal(sink.bytes, 500000);
    tide_world_join(fixture->world, thread);
    assert_int_equal(held.status, TIDE_TIMEOUT);
    assert_true(used_us() - before_us < 300000); /* of about 1.5 s */
    struct real_net_stats stats;
    real_net_stats(fixture->world, &stats);
    assert_in_range(stats.budget_waits, 1, 10);
    tide_response_done(&response);
    tide_budget_free(fixture->world, budget);
}

static tide_status call_once(struct fixture *fixture, tide_mem *mem)
{
    tide_world *world = NULL;
    tide_status rc = tide_world_real_new(mem, &world, NULL);
    if (rc != TIDE_OK)
        return rc;
    struct source source = {.bytes = 1000, .step = 100};
    struct tide_request request = {
        .method = "PUT",
        .url = test_http_url(fixture->server, "/echo"),
        .source = source_read,
        .source_arg = &source,
        .source_bytes = 1000,
    };
    struct tide_response response;
    tide_response_init(&response, mem);
    rc = tide_world_call(world, &request, &response, NULL, NULL);
    if (rc == TIDE_OK)
        assert_int_equal(response.body.bytes, 1000);
    if (rc == TIDE_OK) {
        request = (struct tide_request){.method = "GET",
                                        .url = test_http_url(fixture->server, "/gzip?bytes=1000")};
        rc = tide_world_call(world, &request, &response, NULL, NULL);
    }
    tide_response_done(&response);
    tide_world_real_free(world);
    return rc;
}

/* Fails the first allocation, then the second, until a world, an upload and a
 * compressed download get through; ends since they make finitely many. */
static void a_call_survives_every_failed_allocation(void **state)
{
    struct fixture *fixture = *state;
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        tide_status rc = call_once(fixture, &mem.base);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired) {
            assert_int_equal(rc, TIDE_OK);
            assert_true(fail_at > 6);
            return;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    /* A proxy of the machine has no business between a test and its server. */
    (void)setenv("no_proxy", "*", 1);
    const struct CMUnitTest tests[] = {
        TEST(an_answer_arrives_whole),
        TEST(an_error_code_is_an_answer_with_its_headers),
        TEST(redirects_are_not_followed),
        TEST(methods_bodies_and_types_are_sent_as_given),
        TEST(head_has_no_body_and_keeps_its_connection),
        TEST(headers_are_sent_as_given_also_empty_ones),
        TEST(a_header_that_would_smuggle_another_is_refused),
        TEST(only_the_final_head_counts),
        TEST(a_compressed_body_arrives_decoded),
        TEST(a_request_that_names_its_encoding_gets_it_raw),
        TEST(a_range_is_never_compressed),
        TEST(each_fault_has_its_status),
        TEST(what_cannot_be_reached_is_a_network_failure),
        TEST(what_is_not_http_is_invalid),
        TEST(a_post_is_never_sent_twice),
        TEST(a_total_timeout_ends_a_call_that_still_moves),
        TEST(slow_bytes_are_no_stall),
        TEST(a_stalled_answer_times_out_near_its_timeout),
        TEST(an_upload_that_nobody_reads_times_out),
        TEST(cancellation_reaches_a_stalled_call_at_once),
        TEST(a_canceled_token_makes_no_call),
        TEST(freeing_the_world_ends_its_calls),
        TEST(a_slow_sink_holds_at_most_the_ring),
        TEST(a_sink_may_end_the_call_with_its_own_status),
        TEST(a_body_past_its_ceiling_is_full),
        TEST(an_upload_streams_from_its_source),
        TEST(a_source_that_fails_or_ends_early_ends_the_call),
        TEST(an_upload_that_is_refused_early_ends_at_once),
        TEST(a_thousand_calls_share_few_connections),
        TEST(callers_on_many_threads_get_their_own_answers),
        TEST(calls_under_one_budget_take_turns_and_never_lock_up),
        TEST(a_sink_gives_its_bytes_back_as_it_goes),
        TEST(the_oldest_call_is_never_refused),
        TEST(waiting_burns_no_processor_time_and_is_no_stall),
        TEST(a_call_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
