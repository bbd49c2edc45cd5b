/* Many calls at once: connections, threads, one budget of bytes; and every allocation. */
#include "net_fixture.h"
#include "support/ok.h"
#include "support/sweep.h"

/* ---- many calls ---------------------------------------------------------- */

CASE(a_thousand_calls_share_few_connections)
{
    for (int i = 0; i < 1000; i++) {
        OK(fetch(f, "GET", test_http_url(f->server, "/plain"), NULL));
        assert_int_equal(f->response.body.bytes, 5);
    }
    assert_int_equal(test_http_requests(f->server), 1000);
    assert_int_equal(test_http_connections(f->server), 1);
    struct real_net_stats stats;
    real_net_stats(f->world, &stats);
    assert_int_equal(stats.calls, 1000);
    assert_int_equal(stats.connections, 1);
}

enum { CALLERS = 8 };

struct caller {
    struct fixture *f;
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
        struct sink sink = {.world = self->f->world};
        struct tide_request request = {
            .method = "GET",
            .url = test_http_url(self->f->server, self->path),
            .budget = self->budget,
            .sink = self->use_sink ? sink_write : NULL,
            .sink_arg = &sink,
        };
        tide_status rc = tide_world_call(self->f->world, &request, &response, NULL, NULL);
        if (rc != TIDE_OK || response.body_bytes != self->body_bytes)
            self->failures++;
    }
    tide_response_done(&response);
}

static void callers_run(struct fixture *f, tide_byte_budget *budget, const char *path,
                        size_t body_bytes, int rounds, bool half_with_sinks)
{
    struct caller callers[CALLERS];
    tide_thread *threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.f = f,
                                     .budget = budget,
                                     .path = path,
                                     .body_bytes = body_bytes,
                                     .rounds = rounds,
                                     .use_sink = half_with_sinks && i % 2 == 0};
        OK(tide_world_thread(f->world, "caller", caller_run, &callers[i], &threads[i], NULL));
    }
    for (int i = 0; i < CALLERS; i++) {
        tide_world_join(f->world, threads[i]);
        assert_int_equal(callers[i].failures, 0);
    }
}

CASE(callers_on_many_threads_get_their_own_answers)
{
    const int rounds = (int)scaled(200);
    callers_run(f, NULL, "/plain?bytes=70000", 70000, rounds, true);
    assert_int_equal(test_http_requests(f->server), (uint64_t)rounds * CALLERS);
    assert_true(test_http_connections(f->server) <= CALLERS);
}

/* Eight calls of 1 MB each under a budget of 256 KiB: they must take turns, and
 * though each holds part of what the others want, all of them get through. */
CASE(calls_under_one_budget_take_turns_and_never_lock_up)
{
    tide_byte_budget *budget = tide_budget_new(f->world, 256 << 10);
    assert_non_null(budget);
    callers_run(f, budget, "/plain?bytes=1000000", 1000000, 4, false);
    callers_run(f, budget, "/huge?bytes=1000000", 1000000, 4, true);
    assert_int_equal(real_budget_held_bytes(budget), 0);
    struct real_net_stats stats;
    real_net_stats(f->world, &stats);
    assert_true(stats.budget_waits > 0);
    tide_budget_free(f->world, budget);
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
CASE(a_sink_gives_its_bytes_back_as_it_goes)
{
    tide_byte_budget *budget = tide_budget_new(f->world, 1 << 20);
    struct watching_sink sink = {.budget = budget};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, "/huge?bytes=5000000"),
        .budget = budget,
        .sink = sink_watch,
        .sink_arg = &sink,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_in_range(sink.held_bytes_max, 1, TIDE_RING_BYTES + (16 << 10));
    assert_int_equal(real_budget_held_bytes(budget), 0);
    tide_budget_free(f->world, budget);
}

/* A budget of nothing still lets one call at a time through. */
CASE(the_oldest_call_is_never_refused)
{
    tide_byte_budget *budget = tide_budget_new(f->world, 0);
    callers_run(f, budget, "/plain?bytes=200000", 200000, 3, false);
    assert_int_equal(real_budget_held_bytes(budget), 0);
    tide_budget_free(f->world, budget);
}

struct held_call {
    struct fixture *f;
    tide_byte_budget *budget;
    tide_status status;
};

/* Holds its place as the oldest call of the budget until it times out. */
static void held_call_run(void *arg)
{
    struct held_call *self = arg;
    struct tide_request request = {
        .method = "GET",
        .url = test_http_bad_url(self->f->server, "/stall-body"),
        .stall_timeout_ms = 3000,
        .budget = self->budget,
    };
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    self->status = tide_world_call(self->f->world, &request, &response, NULL, NULL);
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
        (void)tide_world_sleep_until(sink->world, tide_world_now_us(sink->world) + 1500000, NULL);
    sink->bytes += count;
    return TIDE_OK;
}

/* Idle costs nothing (E2.4): neither does a call that waits for its server, for
 * its budget or for its own sink; and what we hold up ourselves is no stall. */
CASE(waiting_burns_no_processor_time_and_is_no_stall)
{
    tide_byte_budget *budget = tide_budget_new(f->world, 0);
    struct held_call held = {.f = f, .budget = budget};
    tide_thread *thread = NULL;
    OK(tide_world_thread(f->world, "held", held_call_run, &held, &thread, NULL));
    while (real_budget_held_bytes(budget) == 0)
        (void)tide_world_sleep_until(f->world, tide_world_now_us(f->world) + 1000, NULL);
    const int64_t before_us = used_us();
    struct sink sink = {.world = f->world};
    struct tide_request request = {
        .method = "GET",
        .url = test_http_url(f->server, "/huge?bytes=500000"),
        .stall_timeout_ms = 1000, /* shorter than each of the waits */
        .budget = budget,
        .sink = sink_nap,
        .sink_arg = &sink,
    };
    OK(tide_world_call(f->world, &request, &f->response, NULL, NULL));
    assert_int_equal(sink.bytes, 500000);
    tide_world_join(f->world, thread);
    assert_int_equal(held.status, TIDE_TIMEOUT);
    assert_true(used_us() - before_us < 300000); /* of about 4.5 s */
    struct real_net_stats stats;
    real_net_stats(f->world, &stats);
    assert_in_range(stats.budget_waits, 1, 10);
    tide_budget_free(f->world, budget);
}

static tide_status call_once(struct fixture *f, tide_mem *mem)
{
    tide_world *world = NULL;
    tide_status rc = tide_world_real_new(mem, &world, NULL);
    if (rc != TIDE_OK)
        return rc;
    struct source source = {.bytes = 1000, .step = 100};
    struct tide_request request = {
        .method = "PUT",
        .url = test_http_url(f->server, "/echo"),
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
                                        .url = test_http_url(f->server, "/gzip?bytes=1000")};
        rc = tide_world_call(world, &request, &response, NULL, NULL);
    }
    tide_response_done(&response);
    tide_world_real_free(world);
    return rc;
}

/* A world, an upload and a compressed download. */
CASE(a_call_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_status rc = call_once(f, &mem.base);
        assert_swept(mem, rc);
        if (!mem.fired)
            assert_true(mem.fail_at > 6);
    }
}
