/* net_bench.c - measures the world's network, compared with libcurl alone.
 *
 * Calls per second over loopback with keep-alive: first one thread that drives
 * libcurl's multi interface by itself with eight transfers in flight, then
 * eight threads that call tide_world_call(), against the same server in the
 * same run.  One JSON object per line. */
#include "bench.h"

#include "world/real.h"
#include "world/world.h"
#include "support/http_server.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

enum { CALLERS = 8, BIG_BYTES = 256 << 20 };

static int calls_each = 4000;

static size_t body_drop(char *bytes, size_t size, size_t count, void *arg)
{
    (void)bytes;
    *(uint64_t *)arg += size * count;
    return size * count;
}

static void transfer_add(CURLM *multi, CURL *easy, const char *url, uint64_t *bytes)
{
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_drop);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, bytes);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    expect(curl_multi_add_handle(multi, easy) == CURLM_OK, "add");
}

/* libcurl alone: `in_flight` transfers at once until `count` are done. */
static double raw_seconds(tide_world *clock, const char *url, int in_flight, int count,
                          uint64_t *bytes)
{
    CURLM *multi = curl_multi_init();
    CURL *easies[CALLERS];
    const uint64_t from_us = tide_world_now_us(clock);
    int started = 0;
    for (; started < in_flight; started++) {
        easies[started] = curl_easy_init();
        transfer_add(multi, easies[started], url, bytes);
    }
    int done = 0;
    while (done < count) {
        int running = 0;
        int left = 0;
        curl_multi_perform(multi, &running);
        CURLMsg *message = NULL;
        while ((message = curl_multi_info_read(multi, &left)) != NULL) {
            expect(message->data.result == CURLE_OK, "a raw call failed");
            CURL *easy = message->easy_handle;
            curl_multi_remove_handle(multi, easy);
            done++;
            if (started < count) {
                curl_easy_reset(easy);
                transfer_add(multi, easy, url, bytes);
                started++;
            }
        }
        if (done < count)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    }
    const double seconds = (double)(tide_world_now_us(clock) - from_us) / 1e6;
    for (int i = 0; i < in_flight; i++)
        curl_easy_cleanup(easies[i]);
    curl_multi_cleanup(multi);
    return seconds;
}

struct caller {
    tide_world *world;
    const char *url;
    int count;
};

static void caller_run(void *arg)
{
    struct caller *caller = arg;
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    struct tide_request request = {.method = "GET", .url = caller->url};
    for (int i = 0; i < caller->count; i++)
        expect(tide_world_call(caller->world, &request, &response, NULL, NULL) == TIDE_OK &&
                   response.http == 200,
               "a call failed");
    tide_response_done(&response);
}

static double world_seconds(tide_world *world, const char *url, int threads_count, int count)
{
    struct caller callers[CALLERS];
    tide_thread *threads[CALLERS];
    const uint64_t from_us = tide_world_now_us(world);
    for (int i = 0; i < threads_count; i++) {
        callers[i] = (struct caller){world, url, count / threads_count};
        expect(tide_world_thread(world, "caller", caller_run, &callers[i], &threads[i], NULL) ==
                   TIDE_OK,
               "thread");
    }
    for (int i = 0; i < threads_count; i++)
        tide_world_join(world, threads[i]);
    return (double)(tide_world_now_us(world) - from_us) / 1e6;
}

static tide_status sink_drop(void *arg, const char *bytes, size_t count)
{
    (void)bytes;
    *(uint64_t *)arg += count;
    return TIDE_OK;
}

static void bench_big(tide_world *world, test_http *server)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/huge?bytes=%d", BIG_BYTES);
    const char *url = test_http_url(server, path);
    uint64_t raw_bytes = 0;
    const double raw_s = raw_seconds(world, url, 1, 1, &raw_bytes);
    uint64_t bytes = 0;
    struct tide_request request = {.method = "GET",
                                   .url = url,
                                   .sink = sink_drop,
                                   .sink_arg = &bytes,
                                   .body_bytes_max = BIG_BYTES};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const uint64_t from_us = tide_world_now_us(world);
    expect(tide_world_call(world, &request, &response, NULL, NULL) == TIDE_OK, "big call");
    const double world_s = (double)(tide_world_now_us(world) - from_us) / 1e6;
    expect(bytes == BIG_BYTES && raw_bytes == BIG_BYTES, "big bytes");
    tide_response_done(&response);
    compared("net.raw.body", BIG_BYTES / 1e6 / raw_s, "MB/s", 0, NULL);
    compared("net.world.body", BIG_BYTES / 1e6 / world_s, "MB/s", BIG_BYTES / 1e6 / raw_s,
             "net.raw.body");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        calls_each = (int)strtol(argv[1], NULL, 10);
    (void)setenv("no_proxy", "*", 1);
    test_http *server = test_http_start();
    tide_world *world = NULL;
    expect(tide_world_real_new(tide_mem_heap(), &world, NULL) == TIDE_OK, "world");
    char url[200];
    (void)snprintf(url, sizeof url, "%s", test_http_url(server, "/plain?bytes=1000"));
    uint64_t bytes = 0;

    const double one_raw_s = raw_seconds(world, url, 1, calls_each, &bytes);
    compared("net.raw.calls_1", calls_each / one_raw_s, "calls/s", 0, NULL);
    const double one_s = world_seconds(world, url, 1, calls_each);
    compared("net.world.calls_1", calls_each / one_s, "calls/s", calls_each / one_raw_s,
             "net.raw.calls_1");

    const int count = calls_each * CALLERS;
    const double raw_s = raw_seconds(world, url, CALLERS, count, &bytes);
    compared("net.raw.calls_8", count / raw_s, "calls/s", 0, NULL);
    const double world_s = world_seconds(world, url, CALLERS, count);
    compared("net.world.calls_8", count / world_s, "calls/s", count / raw_s, "net.raw.calls_8");

    bench_big(world, server);
    struct real_net_stats stats;
    real_net_stats(world, &stats);
    compared("net.world.connections", (double)stats.connections, "connections", 0, NULL);
    tide_world_real_free(world);
    test_http_stop(server);
    return 0;
}
