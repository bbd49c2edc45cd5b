/* What a server or a caller can do to a call: faults, timeouts, cancellation. */
#include "net_fixture.h"
#include "support/ok.h"

/* ---- faults -------------------------------------------------------------- */

struct fault {
    const char *path;
    tide_status get;
    tide_status post;
};

/* Every way a server can fail, with a request that may be repeated and with one
 * that may not: the status says what is known about the outcome. */
CASE(each_fault_has_its_status)
{
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
                .url = test_http_bad_url(f->server, path),
                .headers = &secret,
                .headers_count = 1,
                .body = post ? TIDE_TEXT("body") : TIDE_TEXT_NONE,
                /* Short only where the time-out is what is waited for. */
                .stall_timeout_ms = faults[i].get == TIDE_TIMEOUT ? 100 : 20000,
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            tide_error err = {0};
            tide_status rc = tide_world_call(f->world, &request, &response, NULL, &err);
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

CASE(what_cannot_be_reached_is_a_network_failure)
{
    /* A port that was ours a moment ago, and so has no listener. */
    test_http *gone = test_http_start();
    char url[200];
    (void)snprintf(url, sizeof url, "%s", test_http_url(gone, "/plain"));
    test_http_stop(gone);
    tide_error err = {0};
    assert_int_equal(fetch(f, "POST", url, &err), TIDE_NETWORK);
    assert_int_equal(f->response.http, 0);
    assert_int_equal(fetch(f, "POST", "http://name.invalid/x?key=s3cr3t", &err), TIDE_NETWORK);
    assert_null(strstr(err.text, "s3cr3t"));
    assert_non_null(strstr(err.text, "POST name.invalid/x"));
    /* The key of a URL that is signed by itself may be in its path. */
    char signed_url[400];
    (void)snprintf(signed_url, sizeof signed_url, "http://name.invalid/up/%0200d/s?x", 7);
    assert_int_equal(fetch(f, "PUT", signed_url, &err), TIDE_NETWORK);
    assert_non_null(strstr(err.text, "PUT name.invalid/up/00000000.../s:"));
    /* A self-signed certificate: verification is on. */
    assert_int_equal(fetch(f, "GET", test_http_tls_url(f->server, "/plain"), &err), TIDE_NETWORK);
    assert_non_null(strstr(err.text, "certificate"));
    assert_int_equal(test_http_requests(f->server), 0);
    /* TLS towards a server that does not speak it. */
    const char *plain = test_http_url(f->server, "/plain");
    (void)snprintf(url, sizeof url, "https%s", plain + 4);
    assert_int_equal(fetch(f, "POST", url, &err), TIDE_NETWORK);
}

CASE(what_is_not_http_is_invalid)
{
    static const char *const urls[] = {
        "file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://h/x", "http://", "no url", ""};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        tide_error err = {0};
        tide_status rc = fetch(f, "GET", urls[i], &err);
        /* "no url" is a relative name, which is looked up as a host. */
        if (rc != TIDE_INVALID)
            fail_msg("%s: %s (%s)", urls[i], tide_status_name(rc), err.text);
    }
    assert_int_equal(fetch(f, "GET /x HTTP/1.1\r\n", test_http_url(f->server, "/"), NULL),
                     TIDE_INVALID);
}

/* A kept connection dies while a request is on it.  libcurl would send any
 * request again; ours must not, unless repeating it does no harm (E1.9). */
CASE(a_post_is_never_sent_twice)
{
    const char *url = test_http_bad_url(f->server, "/one-then-close");
    OK(fetch(f, "POST", url, NULL));
    assert_int_equal(test_http_bad_requests(f->server), 1);
    tide_error err = {0};
    assert_int_equal(fetch(f, "POST", url, &err), TIDE_UNKNOWN);
    assert_int_equal(test_http_bad_requests(f->server), 2);

    OK(fetch(f, "GET", url, NULL));
    assert_int_equal(test_http_bad_requests(f->server), 3);
    OK(fetch(f, "GET", url, NULL)); /* tried twice */
    assert_int_equal(test_http_bad_requests(f->server), 5);

    /* The connection of that second try is kept, so this one dies on it too. */
    struct tide_request request = {
        .method = "POST", .url = url, .body = TIDE_TEXT("query"), .repeatable = true};
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_int_equal(test_http_bad_requests(f->server), 7);
}

/* ---- timeouts ------------------------------------------------------------ */

CASE(a_total_timeout_ends_a_call_that_still_moves)
{
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, "/slow?bytes=100000&ms=10"),
        .total_timeout_ms = 150,
    };
    const uint64_t from_ms = tide_world_now_ms(f->world);
    assert_int_equal(tide_world_call(f->world, &request, &f->response, NULL, NULL), TIDE_TIMEOUT);
    assert_true(tide_world_now_ms(f->world) - from_ms >= 140); /* all of it: 1000 s */
}

CASE(slow_bytes_are_no_stall)
{
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, "/slow?bytes=30&ms=80"),
        .stall_timeout_ms = 2000,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_int_equal(f->response.body.bytes, 30);
    assert_true(f->response.latency_ms >= 2000);
}

CASE(a_stalled_answer_times_out_and_not_earlier)
{
    struct tide_request request = {
        .method = "GET",
        .url = test_http_bad_url(f->server, "/stall-body"),
        .stall_timeout_ms = 1000,
    };
    const uint64_t from_ms = tide_world_now_ms(f->world);
    assert_int_equal(tide_world_call(f->world, &request, &f->response, NULL, NULL), TIDE_TIMEOUT);
    assert_true(tide_world_now_ms(f->world) - from_ms >= 990);
    assert_int_equal(f->response.http, 200);
}

CASE(an_upload_that_the_server_does_not_read_times_out)
{
    const size_t bytes = 16u << 20;
    char *body = calloc(1, bytes);
    assert_non_null(body);
    struct tide_request request = {
        .method = "PUT",
        .url = test_http_bad_url(f->server, "/never-read"),
        .body = {body, bytes},
        .stall_timeout_ms = 200,
    };
    assert_int_equal(tide_world_call(f->world, &request, &f->response, NULL, NULL), TIDE_TIMEOUT);
    free(body);
}

/* ---- cancellation -------------------------------------------------------- */

struct canceled_call {
    struct fixture *f;
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
                                   .url = test_http_bad_url(self->f->server, self->path)};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    self->status = tide_world_call(self->f->world, &request, &response, &self->cancel, NULL);
    self->ended_us = tide_world_now_us(self->clock);
    tide_response_done(&response);
}

CASE(cancellation_reaches_a_stalled_call_at_once)
{
    static const char *const paths[] = {"/stall-zero", "/stall-head", "/stall-body", "/never-read"};
    for (size_t i = 0; i < 4; i++) {
        struct canceled_call call = {.f = f, .clock = f->world, .path = paths[i]};
        tide_thread *thread = NULL;
        OK(tide_world_thread(f->world, "caller", canceled_call_run, &call, &thread, NULL));
        while (test_http_bad_requests(f->server) <= i) /* until it hangs there */
            (void)tide_world_sleep_until(f->world, tide_world_now_us(f->world) + 1000, NULL);
        const uint64_t from_us = tide_world_now_us(f->world);
        tide_world_cancel(f->world, &call.cancel, TIDE_CANCEL_PREEMPT);
        tide_world_join(f->world, thread);
        assert_int_equal(call.status, TIDE_CANCELED);
        assert_true(call.ended_us - from_us < 100000);
        print_message("canceled %s within %llu us\n", paths[i],
                      (unsigned long long)(call.ended_us - from_us));
    }
}

CASE(a_canceled_token_makes_no_call)
{
    tide_cancel cancel = {0};
    tide_world_cancel(f->world, &cancel, TIDE_CANCEL_HALT);
    tide_world_cancel(f->world, &cancel, TIDE_CANCEL_USER);
    assert_int_equal(tide_canceled(&cancel), TIDE_CANCEL_HALT); /* the first reason stays */
    struct tide_request request = {.method = "GET", .url = test_http_url(f->server, "/plain")};
    assert_int_equal(tide_world_call(f->world, &request, &f->response, &cancel, NULL),
                     TIDE_CANCELED);
    assert_int_equal(test_http_requests(f->server), 0);
}

CASE(freeing_the_world_ends_its_calls)
{
    struct fixture other = {.server = f->server};
    OK(tide_world_real_new(tide_mem_heap(), &other.world, NULL));
    struct canceled_call call = {.f = &other, .clock = f->world, .path = "/stall-zero"};
    tide_thread *thread = NULL;
    /* The thread belongs to the world that stays, so that it can be joined. */
    OK(tide_world_thread(f->world, "caller", canceled_call_run, &call, &thread, NULL));
    while (test_http_bad_requests(f->server) == 0)
        (void)tide_world_sleep_until(f->world, tide_world_now_us(f->world) + 1000, NULL);
    tide_world_real_free(other.world);
    tide_world_join(f->world, thread);
    assert_int_equal(call.status, TIDE_STOPPED);
}
