#include "sim_net.h"
#include "sim_inside.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    STALL_TIMEOUT_MS = 60000,
    CHUNK_BYTES_MAX = 16 << 10,
    CHUNKS_MAX = 64, /* about so many parts at most, whatever the body's size */
};

/* A request as it travels: a copy, because it may outlive its caller (SNET2). */
struct wire {
    tide_arena arena;
    struct tide_request request;
    uint64_t effect_us;
};

struct sim_net {
    tide_sim *sim;
    tide_rng provider_rng;
    int64_t skew_ms;
    uint64_t start_us;
    struct wire **ghosts; /* sorted by time */
    size_t ghosts_count;
    size_t ghosts_capacity;
    uint64_t outage_until_us;
    bool down;
    uint32_t in_flight;
    struct tide_sim_net_stats stats;
};

struct tide_byte_budget {
    uint64_t bytes_max;
    uint64_t bytes_used;
};

/* Where a fault strikes a call; at most one does. */
typedef enum fate {
    FATE_NONE,
    FATE_REFUSE,
    FATE_LOSS,
    FATE_RESET_BEFORE,
    FATE_RESET_AFTER,
    FATE_STALL_BEFORE,
    FATE_STALL_AFTER,
    FATE_STALL_INSIDE,
    FATE_TRUNCATE,
    FATE_GARBAGE,
} fate;

/* One call under way. */
struct under_way {
    tide_sim *sim;
    struct sim_net *net;
    const struct tide_request *request;
    struct tide_response *response;
    const tide_cancel *cancel;
    tide_error *err;
    fate fate;
    uint64_t latency_us_max;
    uint64_t start_us;
    uint64_t end_us;       /* of the total timeout */
    uint64_t stall_us;     /* timeout */
    uint64_t last_byte_us; /* when something moved last */
    struct wire *wire;     /* owned until it is sent off as a ghost */
    struct tide_sim_answer answer;
};

/* ---- requests on the wire ------------------------------------------------ */

static tide_text wire_text(struct wire *wire, tide_text text)
{
    char *copy = tide_arena_copy(&wire->arena, text.data, text.bytes);
    TIDE_ASSERT(copy != NULL);
    return (tide_text){copy, text.bytes};
}

static struct wire *wire_new(const struct tide_request *request)
{
    struct wire *wire = sim_alloc(sizeof *wire);
    tide_arena_init(&wire->arena, tide_mem_heap(), 256u << 20);
    wire->request = *request;
    wire->request.method = wire_text(wire, tide_text_of(request->method)).data;
    wire->request.url = wire_text(wire, tide_text_of(request->url)).data;
    wire->request.body = wire_text(wire, request->body);
    wire->request.source = NULL;
    wire->request.source_arg = NULL;
    wire->request.sink = NULL;
    wire->request.sink_arg = NULL;
    wire->request.budget = NULL;
    wire->request.headers = NULL;
    if (request->headers_count > 0) {
        struct tide_header *headers =
            tide_arena_take(&wire->arena, request->headers_count * sizeof *headers);
        TIDE_ASSERT(headers != NULL);
        for (size_t i = 0; i < request->headers_count; i++) {
            headers[i].name = wire_text(wire, request->headers[i].name);
            headers[i].value = wire_text(wire, request->headers[i].value);
        }
        wire->request.headers = headers;
    }
    return wire;
}

static void wire_free(struct wire *wire)
{
    if (wire == NULL)
        return;
    tide_arena_done(&wire->arena);
    free(wire);
}

/* ---- effects ------------------------------------------------------------- */

static uint64_t server_unix_ms(const struct sim_net *net, uint64_t now_us)
{
    return (uint64_t)((int64_t)net->sim->options.start_unix_ms +
                      (int64_t)((now_us - net->start_us) / 1000) + net->skew_ms);
}

static void answer_init(struct tide_sim_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    answer->http = 404;
    answer->truncate_from = UINT64_MAX;
    tide_buf_init(&answer->body, tide_mem_heap(), 256u << 20);
}

static void answer_done(struct tide_sim_answer *answer)
{
    tide_buf_done(&answer->body);
}

void tide_sim_answer_header(struct tide_sim_answer *answer, const char *name, const char *value)
{
    size_t name_bytes = strlen(name);
    size_t value_bytes = strlen(value);
    size_t room = sizeof answer->header_text - answer->header_text_bytes;
    if (answer->headers_count == TIDE_SIM_ANSWER_HEADERS_MAX || name_bytes + value_bytes > room)
        return;
    char *at = answer->header_text + answer->header_text_bytes;
    memcpy(at, name, name_bytes);
    memcpy(at + name_bytes, value, value_bytes);
    answer->headers[answer->headers_count++] =
        (struct tide_header){{at, name_bytes}, {at + name_bytes, value_bytes}};
    answer->header_text_bytes += name_bytes + value_bytes;
}

static void take_effect(struct sim_net *net, const struct wire *wire, uint64_t now_us,
                        struct tide_sim_answer *answer)
{
    tide_sim *sim = net->sim;
    const struct tide_sim_net_options *options = &sim->options.net;
    net->stats.effects++;
    sim_trace_add(sim, SIM_OP_EFFECT, now_us, wire->request.url);
    if (options->provide != NULL)
        options->provide(options->provide_arg, &wire->request, server_unix_ms(net, now_us),
                         &net->provider_rng, answer);
}

/* SNET1: what was sent earlier and is still on its way comes first. */
static void ghosts_settle(struct sim_net *net)
{
    size_t done = 0;
    while (done < net->ghosts_count && net->ghosts[done]->effect_us <= net->sim->now_us) {
        struct tide_sim_answer answer;
        answer_init(&answer);
        take_effect(net, net->ghosts[done], net->ghosts[done]->effect_us, &answer);
        answer_done(&answer);
        wire_free(net->ghosts[done]);
        net->stats.ghosts++;
        done++;
    }
    if (done == 0)
        return;
    net->ghosts_count -= done;
    memmove(net->ghosts, net->ghosts + done, net->ghosts_count * sizeof *net->ghosts);
}

static void ghost_add(struct sim_net *net, struct wire *wire)
{
    if (net->ghosts_count == net->ghosts_capacity) {
        size_t old_bytes = net->ghosts_capacity * sizeof *net->ghosts;
        size_t new_bytes = old_bytes == 0 ? 16 * sizeof *net->ghosts : 2 * old_bytes;
        net->ghosts = sim_resize(net->ghosts, old_bytes, new_bytes);
        net->ghosts_capacity = new_bytes / sizeof *net->ghosts;
    }
    size_t at = net->ghosts_count++;
    while (at > 0 && net->ghosts[at - 1]->effect_us > wire->effect_us) {
        net->ghosts[at] = net->ghosts[at - 1];
        at--;
    }
    net->ghosts[at] = wire;
}

/* ---- waiting ------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static tide_status give_up(struct under_way *call, tide_status rc, const char *what)
{
    struct sim_net *net = call->net;
    net->stats.timeouts += rc == TIDE_TIMEOUT;
    net->stats.canceled += rc == TIDE_CANCELED;
    net->stats.refused += rc == TIDE_NETWORK;
    net->stats.resets += rc == TIDE_UNKNOWN;
    return tide_error_set(call->err, rc, "%s %s: %s", call->request->method, call->request->url,
                          what);
}

/* TIDE_OK when `until_us` came, the reason to give up otherwise. */
static tide_status wait_until(struct under_way *call, uint64_t until_us)
{
    tide_sim *sim = call->sim;
    uint64_t timeout_us = least(call->end_us, call->last_byte_us + call->stall_us);
    uint64_t deadline_us = least(until_us, timeout_us);
    tide_status rc = sim_block(sim, SIM_WAIT_NET, call->net, 0, deadline_us, call->cancel);
    switch (rc) {
    case TIDE_TIMEOUT:
        if (until_us <= timeout_us)
            return TIDE_OK;
        return give_up(call, TIDE_TIMEOUT, "no answer in time");
    case TIDE_CANCELED:
        return give_up(call, TIDE_CANCELED, "canceled");
    case TIDE_STOPPED:
        return give_up(call, TIDE_STOPPED, "the world is dead");
    default:
        TIDE_ASSERT(false);
        return TIDE_BUG;
    }
}

static uint64_t some_latency_us(struct under_way *call)
{
    return tide_rng_below(&call->sim->net_rng, call->latency_us_max + 1);
}

/* ---- the phases of a call ------------------------------------------------ */

static bool strikes(struct under_way *call, uint32_t permille)
{
    return sim_fault(call->sim, &call->sim->net_rng, permille * 1000);
}

static void fate_draw(struct under_way *call)
{
    const struct tide_sim_net_options *options = &call->sim->options.net;
    tide_rng *rng = &call->sim->net_rng;
    call->latency_us_max = options->latency_us_max;
    if (strikes(call, options->slow_permille))
        call->latency_us_max *= 10 + tide_rng_below(rng, 191);
    if (strikes(call, options->refuse_permille))
        call->fate = FATE_REFUSE;
    else if (strikes(call, options->loss_permille))
        call->fate = FATE_LOSS;
    else if (strikes(call, options->reset_permille))
        call->fate = tide_rng_chance(rng, 1, 2) ? FATE_RESET_BEFORE : FATE_RESET_AFTER;
    else if (strikes(call, options->stall_permille))
        call->fate = (fate)(FATE_STALL_BEFORE + tide_rng_below(rng, 3));
    else if (strikes(call, options->truncate_permille))
        call->fate = FATE_TRUNCATE;
    else if (strikes(call, options->garbage_permille))
        call->fate = FATE_GARBAGE;
}

static tide_status connect_phase(struct under_way *call)
{
    tide_sim *sim = call->sim;
    struct sim_net *net = call->net;
    if (sim_fault(sim, &sim->net_rng, sim->options.net.outage_per_million)) {
        uint64_t outage_us = 1000000ull << tide_rng_below(&sim->net_rng, 10);
        net->outage_until_us = sim->now_us + outage_us;
        net->stats.outages++;
    }
    bool no_net = net->down || (sim->faults && net->outage_until_us > sim->now_us);
    uint32_t timeout_ms = call->request->connect_timeout_ms;
    if (timeout_ms == 0)
        timeout_ms = CONNECT_TIMEOUT_MS;
    uint64_t until_us = sim->now_us + some_latency_us(call);
    if (call->fate == FATE_LOSS)
        until_us = sim->now_us + 1000ull * timeout_ms;
    tide_status rc = wait_until(call, until_us);
    if (rc == TIDE_CANCELED || rc == TIDE_STOPPED)
        return rc;
    if (rc != TIDE_OK || no_net || call->fate == FATE_REFUSE || call->fate == FATE_LOSS)
        return give_up(call, TIDE_NETWORK, "no connection");
    return TIDE_OK;
}

/* A streamed upload is read on the caller's thread, part by part. */
static tide_status upload_phase(struct under_way *call)
{
    const struct tide_request *request = call->request;
    call->wire = wire_new(request);
    if (request->source == NULL)
        return TIDE_OK;

    tide_buf body;
    tide_buf_init(&body, tide_mem_heap(), 256u << 20);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK) {
        size_t room = 1 + (size_t)tide_rng_below(&call->sim->net_rng, CHUNK_BYTES_MAX);
        size_t count = 0;
        char *at = tide_buf_reserve(&body, room);
        TIDE_ASSERT(at != NULL);
        rc = request->source(request->source_arg, at, room, &count);
        if (rc != TIDE_OK || count == 0)
            break;
        TIDE_ASSERT(count <= room);
        body.bytes += count;
        rc = wait_until(call, call->sim->now_us + some_latency_us(call) / 8);
        call->last_byte_us = call->sim->now_us;
    }
    if (rc == TIDE_OK && body.bytes != request->source_bytes)
        rc = give_up(call, TIDE_INVALID, "the source did not keep its promise");
    if (rc == TIDE_OK)
        call->wire->request.body = wire_text(call->wire, tide_buf_text(&body));
    tide_buf_done(&body);
    return rc;
}

static tide_status effect_phase(struct under_way *call)
{
    tide_sim *sim = call->sim;
    struct sim_net *net = call->net;
    call->wire->effect_us = sim->now_us + some_latency_us(call);
    if (call->fate == FATE_STALL_BEFORE)
        return wait_until(call, TIDE_NEVER);
    if (call->fate == FATE_RESET_BEFORE) {
        tide_status rc = wait_until(call, call->wire->effect_us);
        return rc != TIDE_OK ? rc : give_up(call, TIDE_UNKNOWN, "connection reset");
    }
    tide_status rc = wait_until(call, call->wire->effect_us);
    if (rc != TIDE_OK) {
        if (tide_rng_chance(&sim->net_rng, 1, 2)) { /* SNET2 */
            ghost_add(net, call->wire);
            call->wire = NULL;
        }
        return rc;
    }
    ghosts_settle(net);
    take_effect(net, call->wire, sim->now_us, &call->answer);
    if (strikes(call, sim->options.net.duplicate_permille)) {
        net->stats.duplicates++;
        call->wire->effect_us = sim->now_us + some_latency_us(call);
        ghost_add(net, call->wire);
        call->wire = NULL;
    }
    return TIDE_OK;
}

/* An answer that arrives well-formed for HTTP and wrong for its reader. */
static void scramble(struct under_way *call)
{
    static const char page[] = "<html><body><h1>Bad gateway</h1></body></html>";
    tide_rng *rng = &call->sim->net_rng;
    tide_buf *body = &call->answer.body;
    call->net->stats.garbage++;
    switch (tide_rng_below(rng, 4)) {
    case 0: /* cut off, but at its announced length */
        if (body->bytes > 0)
            body->bytes = (size_t)tide_rng_below(rng, body->bytes);
        break;
    case 1:
        tide_buf_clear(body);
        (void)tide_buf_add(body, page, sizeof page - 1);
        break;
    case 2:
        tide_buf_clear(body);
        break;
    default:
        for (uint64_t i = 0; body->bytes > 0 && i < 1 + body->bytes / 16; i++)
            body->data[tide_rng_below(rng, body->bytes)] = (char)tide_rng_next(rng);
        break;
    }
}

static tide_status headers_take(struct under_way *call)
{
    struct tide_response *response = call->response;
    const struct tide_sim_answer *answer = &call->answer;
    size_t at[TIDE_SIM_ANSWER_HEADERS_MAX];

    response->http = answer->http;
    for (size_t i = 0; i < answer->headers_count; i++) {
        const struct tide_header *header = &answer->headers[i];
        at[i] = response->header_bytes.bytes;
        tide_status rc =
            tide_buf_add(&response->header_bytes, header->name.data, header->name.bytes);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&response->header_bytes, "", 1);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&response->header_bytes, header->value.data, header->value.bytes);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&response->header_bytes, "", 1);
        if (rc != TIDE_OK)
            return give_up(call, rc, "headers too large");
    }
    for (size_t i = 0; i < answer->headers_count; i++) {
        char *name = response->header_bytes.data + at[i];
        response->headers[i] = (struct tide_header){
            {name, answer->headers[i].name.bytes},
            {name + answer->headers[i].name.bytes + 1, answer->headers[i].value.bytes}};
    }
    response->headers_count = answer->headers_count;
    return TIDE_OK;
}

static tide_status answer_phase(struct under_way *call)
{
    tide_sim *sim = call->sim;
    bool reset = call->answer.reset || call->fate == FATE_RESET_AFTER;
    bool stall = call->fate == FATE_STALL_AFTER ||
                 (call->answer.stall && tide_rng_chance(&sim->net_rng, 1, 2));
    if (stall)
        return wait_until(call, TIDE_NEVER);
    uint64_t first_us = sim->now_us + call->answer.think_us + some_latency_us(call);
    tide_status rc = wait_until(call, first_us);
    if (rc != TIDE_OK)
        return rc;
    if (reset)
        return give_up(call, TIDE_UNKNOWN, "connection reset");
    call->last_byte_us = sim->now_us;
    if (call->fate == FATE_GARBAGE)
        scramble(call);
    return headers_take(call);
}

static tide_status budget_take(struct under_way *call, size_t bytes)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL)
        return TIDE_OK;
    /* One part may always pass, or a part larger than the budget never would. */
    while (budget->bytes_used > 0 && budget->bytes_used + bytes > budget->bytes_max) {
        tide_status rc = sim_block(call->sim, SIM_WAIT_NET, budget, 0, call->end_us, call->cancel);
        if (rc != TIDE_OK)
            return give_up(call, rc, "waiting for room in memory");
        call->last_byte_us = call->sim->now_us; /* paused, not stalled */
    }
    budget->bytes_used += bytes;
    if (budget->bytes_used > call->net->stats.budget_bytes_highest)
        call->net->stats.budget_bytes_highest = budget->bytes_used;
    return TIDE_OK;
}

static void budget_give(struct under_way *call, size_t bytes)
{
    tide_byte_budget *budget = call->request->budget;
    if (budget == NULL)
        return;
    budget->bytes_used -= bytes;
    for (size_t i = 0; i < call->sim->threads_count; i++) {
        tide_thread *thread = call->sim->threads[i];
        if (thread->wait == SIM_WAIT_NET && thread->wait_for == budget)
            sim_wake(call->sim, thread, TIDE_OK);
    }
}

static tide_status part_deliver(struct under_way *call, const char *bytes, size_t count)
{
    const struct tide_request *request = call->request;
    uint64_t bytes_max =
        request->body_bytes_max == 0 ? TIDE_BODY_BYTES_DEFAULT : request->body_bytes_max;
    if (call->response->body_bytes + count > bytes_max)
        return give_up(call, TIDE_FULL, "the answer is too large");
    tide_status rc = budget_take(call, count);
    if (rc != TIDE_OK)
        return rc;
    if (request->sink != NULL)
        rc = request->sink(request->sink_arg, bytes, count);
    else
        rc = tide_buf_add(&call->response->body, bytes, count);
    budget_give(call, count);
    if (rc != TIDE_OK)
        return give_up(call, rc, "the body was not taken");
    call->response->body_bytes += count;
    return TIDE_OK;
}

/* An answer has begun, so the request arrived; only whether asking again does
 * harm decides what a broken answer means. */
static bool repeatable(const struct tide_request *request)
{
    return request->repeatable || strcmp(request->method, "GET") == 0 ||
           strcmp(request->method, "HEAD") == 0 || strcmp(request->method, "OPTIONS") == 0;
}

static tide_status body_phase(struct under_way *call)
{
    tide_sim *sim = call->sim;
    tide_rng *rng = &sim->net_rng;
    const tide_buf *body = &call->answer.body;
    size_t end = body->bytes;
    size_t stop_at = SIZE_MAX; /* here the bytes end without the body's end */
    if (call->fate == FATE_TRUNCATE || call->fate == FATE_STALL_INSIDE || call->answer.stall)
        stop_at = (size_t)tide_rng_below(rng, end + 1);
    if (call->answer.truncate_from < stop_at)
        stop_at = (size_t)call->answer.truncate_from;
    bool stalls = call->fate == FATE_STALL_INSIDE || call->answer.stall;
    if (stop_at < end)
        end = stop_at;

    size_t at = 0;
    while (at < end) {
        size_t least_bytes = body->bytes / CHUNKS_MAX;
        size_t count = 1 + least_bytes + (size_t)tide_rng_below(rng, CHUNK_BYTES_MAX);
        if (count > end - at)
            count = end - at;
        tide_status rc = wait_until(call, sim->now_us + some_latency_us(call) / 8);
        if (rc == TIDE_OK) {
            call->last_byte_us = sim->now_us;
            rc = part_deliver(call, body->data + at, count);
        }
        if (rc != TIDE_OK)
            return rc;
        call->last_byte_us = sim->now_us; /* the sink's time is not the network's */
        at += count;
    }
    if (stop_at == SIZE_MAX)
        return TIDE_OK;
    if (stalls)
        return wait_until(call, TIDE_NEVER);
    return give_up(call, repeatable(call->request) ? TIDE_SERVER : TIDE_UNKNOWN,
                   "connection closed inside the body");
}

static tide_status run(struct under_way *call)
{
    tide_status rc = connect_phase(call);
    if (rc == TIDE_OK)
        rc = upload_phase(call);
    if (rc == TIDE_OK)
        rc = effect_phase(call);
    if (rc == TIDE_OK)
        rc = answer_phase(call);
    if (rc == TIDE_OK)
        rc = body_phase(call);
    return rc;
}

static void response_empty(struct tide_response *response, const struct tide_request *request)
{
    uint64_t bytes_max =
        request->body_bytes_max == 0 ? TIDE_BODY_BYTES_DEFAULT : request->body_bytes_max;
    tide_buf_clear(&response->body);
    tide_buf_clear(&response->header_bytes);
    if (response->body.bytes_max < bytes_max)
        response->body.bytes_max = (size_t)bytes_max;
    response->http = 0;
    response->headers_count = 0;
    response->body_bytes = 0;
    response->latency_ms = 0;
}

tide_status sim_call(tide_world *world, const struct tide_request *request,
                     struct tide_response *response, const tide_cancel *cancel, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    struct sim_net *net = sim->net;
    TIDE_ASSERT(request->method != NULL);
    TIDE_ASSERT(request->url != NULL);
    sim_expect_no_locks(sim, "call");
    sim_step(sim, SIM_OP_CALL, 0, request->url);

    struct under_way call = {
        .sim = sim,
        .net = net,
        .request = request,
        .response = response,
        .cancel = cancel,
        .err = err,
        .start_us = sim->now_us,
        .last_byte_us = sim->now_us,
        .end_us = TIDE_NEVER,
    };
    uint32_t stall_ms =
        request->stall_timeout_ms == 0 ? STALL_TIMEOUT_MS : request->stall_timeout_ms;
    call.stall_us = 1000ull * stall_ms;
    if (request->total_timeout_ms != 0)
        call.end_us = sim->now_us + 1000ull * request->total_timeout_ms;
    response_empty(response, request);
    fate_draw(&call);
    answer_init(&call.answer);
    net->stats.calls++;
    if (++net->in_flight > net->stats.in_flight_highest)
        net->stats.in_flight_highest = net->in_flight;

    tide_status rc = run(&call);

    net->in_flight--;
    net->stats.answered += rc == TIDE_OK;
    response->latency_ms = (uint32_t)((sim->now_us - call.start_us) / 1000);
    answer_done(&call.answer);
    wire_free(call.wire);
    sim_step(sim, SIM_OP_ANSWER, (uint64_t)(rc == TIDE_OK ? response->http : -(int)rc),
             tide_status_name(rc));
    return rc;
}

tide_byte_budget *sim_budget_new(tide_world *world, uint64_t bytes_max)
{
    (void)world;
    tide_byte_budget *budget = sim_alloc(sizeof *budget);
    budget->bytes_max = bytes_max;
    return budget;
}

void sim_budget_free(tide_world *world, tide_byte_budget *budget)
{
    (void)world;
    if (budget == NULL)
        return;
    TIDE_ASSERT(budget->bytes_used == 0);
    free(budget);
}

/* ---- create and free ---------------------------------------------------- */

struct sim_net *sim_net_new(tide_sim *sim)
{
    struct sim_net *net = sim_alloc(sizeof *net);
    net->sim = sim;
    net->start_us = sim->now_us;
    net->provider_rng = tide_rng_seeded(tide_rng_next(&sim->net_rng));
    uint64_t skew_ms_max = sim->options.net.skew_ms_max;
    net->skew_ms =
        (int64_t)tide_rng_below(&sim->net_rng, 2 * skew_ms_max + 1) - (int64_t)skew_ms_max;
    return net;
}

void sim_net_free(struct sim_net *net)
{
    for (size_t i = 0; i < net->ghosts_count; i++)
        wire_free(net->ghosts[i]);
    free(net->ghosts);
    free(net);
}

/* The other side does not notice that we died: ghosts stay. */
void sim_net_reboot(struct sim_net *net)
{
    TIDE_ASSERT(net->in_flight == 0);
}

struct tide_sim_net_stats tide_sim_net_stats(tide_sim *sim)
{
    return sim->net->stats;
}

void tide_sim_net_down(tide_sim *sim, bool down)
{
    sim->net->down = down;
}

void tide_sim_net_settle(tide_sim *sim)
{
    ghosts_settle(sim->net);
}

void tide_sim_net_drain(tide_sim *sim)
{
    const struct sim_net *net = sim->net;
    if (net->ghosts_count > 0) { /* in the order of their times */
        const uint64_t last_us = net->ghosts[net->ghosts_count - 1]->effect_us;
        if (last_us > sim->now_us)
            tide_sim_pause(sim, last_us - sim->now_us);
    }
    ghosts_settle(sim->net);
}

uint64_t tide_sim_net_unix_ms(tide_sim *sim)
{
    return server_unix_ms(sim->net, sim->now_us);
}
