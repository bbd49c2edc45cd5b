/* Bodies that come and go in pieces: sinks, sources and their ceilings. */
#include "net_fixture.h"
#include "support/ok.h"
#include "support/heap.h"

/* ---- sinks, sources, ceilings -------------------------------------------- */

/* 64 MB through a sink that pauses every 256 KiB: whatever the server could
 * send, only the ring waits in memory. */
CASE(a_slow_sink_holds_at_most_the_ring)
{
    const uint64_t bytes = scaled(64u << 20);
    const char *path = textf("/huge?bytes=%llu", (unsigned long long)bytes);
    struct sink sink = {.world = f->world, .response = &f->response, .pause_every = 256 << 10};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, path),
        .sink = sink_write,
        .sink_arg = &sink,
        .body_bytes_max = bytes,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_int_equal(sink.bytes, bytes);
    assert_int_equal(f->response.body_bytes, bytes);
    assert_int_equal(f->response.body.bytes, 0);
    assert_int_equal(sink.http_seen, 200);
    struct real_net_stats stats;
    real_net_stats(f->world, &stats);
    assert_int_equal(stats.buffered_bytes, 0);
    assert_true(stats.buffered_bytes_peak <= TIDE_RING_BYTES);
    assert_true(stats.buffered_bytes_peak > TIDE_RING_BYTES / 2); /* it was really slow */
}

CASE(a_sink_may_end_the_call_with_its_own_status)
{
    struct sink sink = {.world = f->world, .fail_after = 100000};
    struct tide_request request = {
        .method = "POST",
        .url = test_http_url(f->server, "/huge?bytes=10000000"),
        .sink = sink_write,
        .sink_arg = &sink,
    };
    tide_error err = {0};
    assert_int_equal(tide_world_call(f->world, &request, &f->response, NULL, &err), TIDE_DISK_FULL);
    assert_true(sink.bytes >= 100000 && sink.bytes < 100000 + TIDE_RING_BYTES);
    struct real_net_stats stats;
    real_net_stats(f->world, &stats);
    assert_int_equal(stats.buffered_bytes, 0); /* what it left behind is gone */
}

CASE(a_body_past_its_ceiling_is_full)
{
    static const char *const paths[] = {"/plain?bytes=100000", "/huge?bytes=100000",
                                        "/gzip?bytes=100000"};
    for (size_t i = 0; i < 3; i++)
        for (uint64_t max = 99999; max <= 100000; max++) {
            struct tide_request request = {
                .method = "GET",
                .url = test_http_url(f->server, paths[i]),
                .body_bytes_max = max,
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            assert_int_equal(tide_world_call(f->world, &request, &response, NULL, NULL),
                             max == 100000 ? TIDE_OK : TIDE_FULL);
            tide_response_done(&response);
        }
}

CASE(an_upload_streams_from_its_source)
{
    static const uint64_t sizes[] = {0, 1, 65536, 3000001};
    static const size_t steps[] = {1000, 1 << 20};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2; k++) {
            struct source source = {.bytes = sizes[i], .step = steps[k]};
            struct tide_request request = {
                .method = "PUT",
                .url = test_http_url(f->server, "/echo"),
                .source = source_read,
                .source_arg = &source,
                .source_bytes = sizes[i],
            };
            struct tide_response response;
            tide_response_init(&response, tide_mem_heap());
            OK(tide_world_call(f->world, &request, &response, NULL, NULL));
            assert_int_equal(response.body.bytes, sizes[i]);
            assert_pattern(response.body.data, response.body.bytes, 0);
            tide_response_done(&response);
        }
}

CASE(a_source_that_fails_or_ends_early_ends_the_call)
{
    for (int failing = 0; failing < 2; failing++) {
        struct source source = {
            .bytes = 1000000, .step = 5000, .end_at = 300000, .fail = failing ? TIDE_IO : TIDE_OK};
        struct tide_request request = {
            .method = "PUT",
            .url = test_http_url(f->server, "/echo"),
            .source = source_read,
            .source_arg = &source,
            .source_bytes = 1000000,
        };
        struct tide_response response;
        tide_response_init(&response, tide_mem_heap());
        assert_int_equal(tide_world_call(f->world, &request, &response, NULL, NULL),
                         failing ? TIDE_IO : TIDE_INVALID);
        tide_response_done(&response);
    }
}

CASE(an_upload_that_is_refused_early_ends_at_once)
{
    struct source source = {.bytes = 1 << 30, .step = 1 << 20};
    struct tide_request request = {
        .method = "PUT",
        .url = test_http_bad_url(f->server, "/early-413"),
        .source = source_read,
        .source_arg = &source,
        .source_bytes = 1 << 30,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_int_equal(f->response.http, 413);
    assert_string_equal(tide_buf_cstr(&f->response.body), "big");
    assert_true(source.given < 64 << 20);
}
