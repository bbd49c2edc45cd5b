/* The network: calls arrive, answer, fail and are cancelled as the contract says. */
#include "sim_world_fixture.h"

struct echo {
    uint64_t effects;
    uint64_t last_ms;
    size_t body_bytes;
    uint64_t think_us;
    size_t got_bytes;
};

/* Answers with `body_bytes` letters, or with the request's body. */
static void echo_provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                         tide_rng *rng, struct tide_sim_answer *answer)
{
    struct echo *echo = arg;
    (void)rng;
    assert_true(now_unix_ms >= echo->last_ms);
    echo->last_ms = now_unix_ms;
    echo->effects++;
    echo->got_bytes = request->body.bytes;
    answer->http = 200;
    answer->think_us = echo->think_us;
    tide_sim_answer_header(answer, "X-Echo", "yes");
    for (size_t i = 0; i < echo->body_bytes; i++)
        assert_int_equal(tide_buf_add(&answer->body, "x", 1), TIDE_OK);
    if (echo->body_bytes == 0)
        assert_int_equal(tide_buf_add(&answer->body, request->body.data, request->body.bytes),
                         TIDE_OK);
}

struct called {
    tide_status status;
    int http;
    uint64_t took_us;
    size_t body_bytes;
    bool echo_header;
};

static struct called call_once(tide_sim *sim, const struct tide_request *request,
                               const tide_cancel *cancel)
{
    tide_world *world = tide_sim_world(sim);
    struct tide_response response;
    tide_error err;
    tide_response_init(&response, tide_mem_heap());
    struct called called = {0};
    uint64_t start_us = tide_world_now_us(world);
    called.status = tide_world_call(world, request, &response, cancel, &err);
    called.took_us = tide_world_now_us(world) - start_us;
    called.http = response.http;
    called.body_bytes = (size_t)response.body_bytes;
    called.echo_header =
        tide_text_equal(tide_response_header(&response, "x-echo"), TIDE_TEXT("yes"));
    tide_response_done(&response);
    return called;
}

static struct tide_sim_options echo_options(struct echo *echo)
{
    return (struct tide_sim_options){.net = {.provide = echo_provide, .provide_arg = echo}};
}

TEST(a_call_arrives_and_answers)
{
    struct echo echo = {0};
    struct tide_sim_options options = echo_options(&echo);
    tide_sim *sim = tide_sim_new(1, &options);
    struct tide_request request = {
        .method = "POST", .url = "https://x/", .body = TIDE_TEXT("hello")};
    struct called called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_OK);
    assert_int_equal(called.http, 200);
    assert_int_equal(called.body_bytes, 5);
    assert_true(called.echo_header);
    assert_in_range(called.took_us, 1, 4 * 40000 + 1000);
    assert_int_equal(echo.effects, 1);

    echo.body_bytes = 1000;
    request.body_bytes_max = 999;
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_FULL);
    tide_sim_net_down(sim, true);
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_NETWORK);
    assert_int_equal(echo.effects, 2);
    tide_sim_crash(sim, TIDE_SIM_CRASH_KILL);
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_STOPPED);
    tide_sim_free(sim);
}

struct sums {
    size_t bytes;
    size_t parts;
    tide_status then;
};

static tide_status sums_write(void *arg, const char *bytes, size_t count)
{
    struct sums *sums = arg;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 'x')
            return TIDE_CORRUPT;
    sums->bytes += count;
    sums->parts++;
    return sums->then;
}

static tide_status sums_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct sums *sums = arg;
    size_t count = sums->bytes < room ? sums->bytes : room;
    memset(bytes, 'x', count);
    sums->bytes -= count;
    sums->parts++;
    *count_out = count;
    return TIDE_OK;
}

TEST(bodies_stream_in_parts)
{
    struct echo echo = {.body_bytes = 300000};
    struct tide_sim_options options = echo_options(&echo);
    tide_sim *sim = tide_sim_new(1, &options);
    tide_world *world = tide_sim_world(sim);
    struct sums down = {0};
    struct sums up = {.bytes = 200000};
    tide_byte_budget *budget = tide_budget_new(world, 1000);
    struct tide_request request = {.method = "PUT",
                                   .url = "https://x/",
                                   .source = sums_read,
                                   .source_arg = &up,
                                   .source_bytes = 200000,
                                   .sink = sums_write,
                                   .sink_arg = &down,
                                   .budget = budget};
    struct called called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_OK);
    assert_int_equal(called.body_bytes, 300000);
    assert_int_equal(down.bytes, 300000);
    assert_int_equal(echo.got_bytes, 200000);
    assert_true(down.parts > 10);
    assert_true(up.parts > 10);

    up.bytes = 200000;
    down.then = TIDE_DISK_FULL;
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_DISK_FULL);
    tide_budget_free(world, budget);
    tide_sim_free(sim);
}

TEST(timeouts_end_a_call_in_time)
{
    struct echo echo = {.think_us = 100ull * 1000 * 1000};
    struct tide_sim_options options = echo_options(&echo);
    tide_sim *sim = tide_sim_new(1, &options);
    struct tide_request request = {.method = "GET", .url = "https://x/"};
    struct called called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_TIMEOUT);
    assert_in_range(called.took_us, 60000000, 60000000 + 1000);
    request.stall_timeout_ms = 1000;
    called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_TIMEOUT);
    assert_in_range(called.took_us, 1000000, 1000000 + 1000);
    request.stall_timeout_ms = 0;
    request.total_timeout_ms = 5000;
    called = call_once(sim, &request, NULL);
    assert_int_equal(called.status, TIDE_TIMEOUT);
    assert_in_range(called.took_us, 5000000, 5000000 + 1000);
    request.total_timeout_ms = 0;
    request.stall_timeout_ms = 200000;
    assert_int_equal(call_once(sim, &request, NULL).status, TIDE_OK);
    tide_sim_free(sim);
}

struct fault_case {
    const char *name;
    uint32_t *permille;
    tide_status get;  /* what a GET may end in, beside TIDE_OK */
    tide_status post; /* a POST */
    bool all;         /* every call fails */
};

/* Each fault alone, always striking: statuses as the contract says, and the
 * provider saw what may have been seen. */
TEST(every_fault_has_its_status)
{
    struct tide_sim_options o;
    struct fault_case cases[] = {
        {"refuse", &o.net.refuse_permille, TIDE_NETWORK, TIDE_NETWORK, true},
        {"loss", &o.net.loss_permille, TIDE_NETWORK, TIDE_NETWORK, true},
        {"reset", &o.net.reset_permille, TIDE_UNKNOWN, TIDE_UNKNOWN, true},
        {"stall", &o.net.stall_permille, TIDE_TIMEOUT, TIDE_TIMEOUT, true},
        {"truncate", &o.net.truncate_permille, TIDE_SERVER, TIDE_UNKNOWN, true},
        {"garbage", &o.net.garbage_permille, TIDE_OK, TIDE_OK, false},
        {"duplicate", &o.net.duplicate_permille, TIDE_OK, TIDE_OK, false},
        {"slow", &o.net.slow_permille, TIDE_OK, TIDE_OK, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct echo echo = {.body_bytes = 20000};
        o = echo_options(&echo);
        *cases[i].permille = 1000;
        tide_sim *sim = tide_sim_new(100 + i, &o);
        for (int round = 0; round < 40; round++) {
            struct tide_request request = {.method = round % 2 ? "POST" : "GET",
                                           .url = "https://x/"};
            struct called called = call_once(sim, &request, NULL);
            assert_int_equal(called.status, round % 2 ? cases[i].post : cases[i].get);
        }
        tide_sim_net_drain(sim);
        struct tide_sim_net_stats stats = tide_sim_net_stats(sim);
        assert_int_equal(stats.calls, 40);
        assert_int_equal(stats.effects, echo.effects);
        if (strcmp(cases[i].name, "refuse") == 0 || strcmp(cases[i].name, "loss") == 0)
            assert_int_equal(echo.effects, 0); /* SNET3 */
        if (strcmp(cases[i].name, "reset") == 0)
            assert_in_range(echo.effects, 8, 32);
        if (strcmp(cases[i].name, "duplicate") == 0)
            assert_int_equal(echo.effects, 80);
        if (cases[i].all) { /* and none of it with faults off */
            tide_sim_faults(sim, false);
            struct tide_request request = {.method = "GET", .url = "https://x/"};
            assert_int_equal(call_once(sim, &request, NULL).status, TIDE_OK);
        }
        tide_sim_free(sim);
    }
}

struct caller {
    struct shared *shared;
    struct called called;
};

static void call_slowly(void *arg)
{
    struct caller *caller = arg;
    struct tide_request request = {.method = "POST", .url = "https://x/", .body = TIDE_TEXT("a")};
    caller->called = call_once(caller->shared->sim, &request, &caller->shared->cancel);
}

TEST(cancelling_reaches_a_call_at_once_and_its_effect_may_still_come)
{
    uint64_t effects = 0;
    uint64_t ghosts = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct echo echo = {.think_us = 50ull * 1000 * 1000};
        struct tide_sim_options options = echo_options(&echo);
        options.net.latency_us_max = 10 * 1000 * 1000;
        struct shared shared;
        shared_init(&shared, seed, &options);
        struct caller caller = {.shared = &shared};
        tide_thread *thread = start(&shared, "caller", call_slowly, &caller);
        let_them_run(&shared);
        uint64_t before_us = tide_world_now_us(shared.world);
        tide_world_cancel(shared.world, &shared.cancel, TIDE_CANCEL_HALT);
        tide_world_join(shared.world, thread);
        assert_int_equal(caller.called.status, TIDE_CANCELED);
        assert_true(tide_world_now_us(shared.world) - before_us < 1000);
        tide_sim_net_drain(shared.sim);
        effects += echo.effects;
        ghosts += tide_sim_net_stats(shared.sim).ghosts;
        shared_done(&shared);
    }
    assert_in_range(ghosts, 5, 195);
    assert_true(effects >= ghosts);
}
