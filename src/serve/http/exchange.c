/* exchange.c - a request from its head to its handler. */
#include "serve/http/inside.h"

#include <stdio.h>
#include <string.h>

/* ---- its memory ---- */

static struct exchange *exchange_new(tide_httpd *server)
{
    struct exchange *exchange = tide_mem_new(server->mem, sizeof *exchange);
    if (exchange == NULL)
        return NULL;
    exchange->server = server;
    exchange->references = 1;
    tide_buf_init(&exchange->target, server->mem, TIDE_HTTPD_TARGET_BYTES_MAX + 1);
    tide_buf_init(&exchange->head_bytes, server->mem, TIDE_HTTPD_HEAD_BYTES_MAX);
    tide_buf_init(&exchange->decoded, server->mem, TIDE_HTTPD_TARGET_BYTES_MAX);
    tide_buf_init(&exchange->body, server->mem, TIDE_HTTPD_BODIES_BYTES_MAX);
    tide_httpd_answer_init(&exchange->answer, server->mem);
    return exchange;
}

static void count_body(struct exchange *exchange, int64_t change)
{
    tide_httpd *server = exchange->server;
    tide_lock_take(server->world, server->lock);
    struct tide_httpd_counts *counts = &server->counts;
    counts->body_bytes = (uint64_t)((int64_t)counts->body_bytes + change);
    if (counts->body_bytes > counts->body_bytes_peak)
        counts->body_bytes_peak = counts->body_bytes;
    tide_lock_drop(server->world, server->lock);
}

void httpd_exchange_release(struct exchange *exchange)
{
    TIDE_ASSERT(exchange->references > 0);
    if (--exchange->references > 0)
        return;
    tide_httpd *server = exchange->server;
    if (exchange->body.bytes > 0)
        count_body(exchange, -(int64_t)exchange->body.bytes);
    httpd_stream_close(exchange);
    tide_buf_done(&exchange->target);
    tide_buf_done(&exchange->head_bytes);
    tide_buf_done(&exchange->decoded);
    tide_buf_done(&exchange->body);
    tide_httpd_answer_done(&exchange->answer);
    tide_mem_free(server->mem, exchange, sizeof *exchange);
}

/* ---- the head ---- */

/* libmicrohttpd would take the query apart in the connection's memory, of which a few thousand
 * parameters leave nothing.  We have our copy; its own may end where the query begins. */
static void hide_query(const char *target)
{
    char *question = strchr((char *)(uintptr_t)target, '?');
    if (question != NULL && question[1] != '\0')
        question[1] = '\0';
}

void *httpd_exchange_begin(void *arg, const char *target, struct MHD_Connection *mhd)
{
    struct connection *connection = httpd_connection_of(mhd);
    struct exchange *exchange = connection == NULL ? NULL : exchange_new(arg);
    if (exchange == NULL || target == NULL)
        return exchange;
    const size_t bytes = strlen(target);
    /* One byte too many is remembered; the head is refused when all of it is there. */
    const size_t kept =
        bytes > TIDE_HTTPD_TARGET_BYTES_MAX ? TIDE_HTTPD_TARGET_BYTES_MAX + 1 : bytes;
    if (tide_buf_add(&exchange->target, target, kept) != TIDE_OK) {
        httpd_exchange_release(exchange);
        return NULL;
    }
    hide_query(target);
    return exchange;
}

static enum MHD_Result take_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                   size_t name_bytes, const char *value, size_t value_bytes)
{
    struct exchange *exchange = arg;
    tide_buf *room = &exchange->head_bytes;
    (void)kind;
    if (exchange->head.headers_count == TIDE_HTTPD_HEADERS_MAX ||
        name_bytes + value_bytes > TIDE_HTTPD_HEAD_BYTES_MAX - room->bytes) {
        exchange->head.headers_count = SIZE_MAX; /* too many */
        return MHD_NO;
    }
    /* The whole room is there (head_read()), so that what points into it stays. */
    char *at = room->data + room->bytes;
    memcpy(at, name, name_bytes);
    if (value_bytes > 0)
        memcpy(at + name_bytes, value, value_bytes);
    room->bytes += name_bytes + value_bytes;
    exchange->headers[exchange->head.headers_count++] =
        (struct tide_httpd_pair){{at, name_bytes}, {at + name_bytes, value_bytes}};
    return MHD_YES;
}

/* 0, or the status that refuses a head for its size. */
static int head_read(struct exchange *exchange, const char *method)
{
    if (tide_buf_reserve(&exchange->head_bytes, TIDE_HTTPD_HEAD_BYTES_MAX) == NULL)
        return 503;
    (void)snprintf(exchange->method, sizeof exchange->method, "%s",
                   strlen(method) < sizeof exchange->method ? method : "?");
    exchange->head.method = tide_text_of(exchange->method);
    exchange->head.target = tide_buf_text(&exchange->target);
    exchange->head.headers = exchange->headers;
    (void)MHD_get_connection_values_n(exchange->connection->mhd, MHD_HEADER_KIND, take_header,
                                      exchange);
    if (exchange->head.headers_count == SIZE_MAX) {
        exchange->head.headers_count = 0;
        return 431;
    }
    return exchange->target.bytes > TIDE_HTTPD_TARGET_BYTES_MAX ? 414 : 0;
}

/* Parts and parameters, decoded in a copy of the target.  0, or the status that refuses them. */
static int target_read(struct exchange *exchange)
{
    const tide_text target = exchange->head.target;
    struct tide_httpd_request *request = &exchange->request;
    if (tide_buf_add(&exchange->decoded, target.data, target.bytes) != TIDE_OK)
        return 503;
    for (size_t i = 0; i < TIDE_HTTPD_PARTS_MAX; i++) {
        const tide_text part = exchange->verdict.parts[i];
        if (part.data == NULL)
            break;
        char *at = exchange->decoded.data + (part.data - target.data);
        request->parts[i].data = at;
        if (!tide_httpd_decode(at, part.bytes, false, &request->parts[i].bytes))
            return 400;
    }
    const size_t path_bytes = tide_httpd_path(target).bytes;
    request->params = exchange->params;
    if (path_bytes == target.bytes)
        return 0;
    return tide_httpd_query_read(exchange->decoded.data + path_bytes + 1,
                                 target.bytes - path_bytes - 1, exchange->params,
                                 &request->params_count)
               ? 0
               : 400;
}

/* How to get a key.  A browser always says where a request of a script comes from; a program does not. */
static const char *key_help(const struct exchange *exchange)
{
    static const char *const help[] = {
        [TIDE_HTTPD_METRICS] = "Run: tidemark token add NAME --scope metrics. Then send the header "
                               "Authorization: Bearer KEY",
        [TIDE_HTTPD_LOOK] = "Run: tidemark token add NAME --scope look. Then send the header "
                            "Authorization: Bearer KEY",
        [TIDE_HTTPD_WORK] = "Run: tidemark token add NAME --scope work. Then send the header "
                            "Authorization: Bearer KEY",
    };
    const struct tide_httpd_route *route = exchange->verdict.route;
    const bool browser = tide_httpd_header_count(&exchange->head, "sec-fetch-site") > 0 ||
                         tide_httpd_header_count(&exchange->head, "origin") > 0;
    if (browser || route == NULL || route->scope < TIDE_HTTPD_METRICS ||
        route->scope > TIDE_HTTPD_WORK)
        return "Run: tidemark open";
    return help[route->scope];
}

static enum MHD_Result refuse(struct exchange *exchange)
{
    const struct tide_httpd_verdict *verdict = &exchange->verdict;
    const struct tide_httpd_problem more = {.help =
                                                verdict->status == 401 ? key_help(exchange) : NULL};
    tide_httpd_fail(&exchange->answer, verdict->status, verdict->code, verdict->detail, &more);
    if (verdict->status == 405)
        tide_httpd_set(&exchange->answer, "Allow", "%s", verdict->allow);
    if (verdict->status == 401)
        tide_httpd_set(&exchange->answer, "WWW-Authenticate", "Bearer realm=\"tidemark\"");
    return httpd_send_answer(exchange);
}

static enum MHD_Result begin(struct exchange *exchange, const char *method)
{
    tide_httpd *server = exchange->server;
    const struct tide_httpd_options *options = &server->options;
    exchange->started_us = tide_world_now_us(server->world);
    const int wrong = head_read(exchange, method);
    if (wrong == 503)
        return httpd_send_problem(exchange, wrong, "memory", "There is no memory for this.",
                                  &(struct tide_httpd_problem){.retry_after_s = 1});
    if (wrong != 0)
        return httpd_send_problem(exchange, wrong, "size", "The head of the request is too large.",
                                  NULL);
    tide_httpd_admit(options->routes, options->routes_count, &exchange->head, options->authorize,
                     options->authorize_arg, &exchange->verdict);
    if (exchange->verdict.status != 0)
        return refuse(exchange);
    if (exchange->verdict.who.id != 0)
        exchange->connection->known = true;
    const int unread = target_read(exchange);
    if (unread == 400)
        return httpd_send_problem(exchange, 400, "target",
                                  "The path or the query is not encoded well.", NULL);
    if (unread != 0)
        return httpd_send_problem(exchange, unread, "memory", "There is no memory for this.",
                                  &(struct tide_httpd_problem){.retry_after_s = 1});
    httpd_connection_stage(exchange->connection, STAGE_BODY, options->body_ms);
    return MHD_YES;
}

/* ---- the body ---- */

/* Whether all bodies together have room for another piece. */
static bool has_room(struct exchange *exchange, size_t bytes)
{
    tide_httpd *server = exchange->server;
    tide_lock_take(server->world, server->lock);
    const uint64_t used = server->counts.body_bytes;
    tide_lock_drop(server->world, server->lock);
    return bytes <= server->options.bodies_bytes_max - used;
}

/* In the middle of a body libmicrohttpd takes no answer. */
static enum MHD_Result break_off(struct exchange *exchange, int status, const char *code,
                                 const char *detail)
{
    exchange->status = status;
    httpd_send_raw(exchange->connection->fd, status, code, detail);
    return MHD_NO;
}

static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t *bytes)
{
    if (*bytes > exchange->verdict.body_bytes_max - exchange->body.bytes)
        return break_off(exchange, 413, "size", "The body is too large.");
    if (!has_room(exchange, *bytes) || tide_buf_add(&exchange->body, data, *bytes) != TIDE_OK)
        return break_off(exchange, 503, "full", "Too many large requests at once.");
    count_body(exchange, (int64_t)*bytes);
    *bytes = 0;
    return MHD_YES;
}

/* ---- the handler ---- */

static uint32_t handler_ms(const struct exchange *exchange)
{
    const struct tide_httpd_options *options = &exchange->server->options;
    return exchange->verdict.route->way == TIDE_HTTPD_FETCH ? options->fetch_ms
                                                            : options->reader_ms;
}

static void request_fill(struct exchange *exchange)
{
    struct tide_httpd_request *request = &exchange->request;
    request->route = exchange->verdict.route;
    request->head = &exchange->head;
    request->who = &exchange->verdict.who;
    request->body = tide_buf_text(&exchange->body);
    request->cancel = &exchange->cancel;
    request->held = &exchange->held;
    request->deadline_us =
        tide_world_now_us(exchange->server->world) + UINT64_C(1000) * handler_ms(exchange);
}

static void count_held(tide_httpd *server, int change)
{
    tide_lock_take(server->world, server->lock);
    server->counts.held = (uint32_t)((int)server->counts.held + change);
    tide_lock_drop(server->world, server->lock);
}

static enum MHD_Result ask_memory(struct exchange *exchange)
{
    const struct tide_httpd_route *route = exchange->verdict.route;
    struct connection *connection = exchange->connection;
    tide_httpd *server = exchange->server;
    const bool held = connection->stage == STAGE_HELD;
    if (held)
        count_held(server, -1);
    exchange->request.last = httpd_is_stopping(server) ||
                             (held && server->now_ms >= exchange->held_until_ms) ||
                             (!held && server->counts.held >= TIDE_HTTPD_HELD_MAX);
    tide_httpd_answer_clear(&exchange->answer);
    route->handler(route->arg, &exchange->request, &exchange->answer);
    if (exchange->answer.hold_ms == 0)
        return httpd_send_answer(exchange);
    if (exchange->request.last)
        return httpd_send_problem(exchange, 503, "full", "Nothing to say yet.",
                                  &(struct tide_httpd_problem){.retry_after_s = 1});
    if (!held)
        exchange->held_until_ms = server->now_ms + exchange->answer.hold_ms;
    httpd_connection_stage(connection, STAGE_HELD, exchange->held_until_ms - server->now_ms);
    count_held(server, 1);
    httpd_connection_suspend(connection);
    return MHD_YES;
}

static enum MHD_Result ask_reader(struct exchange *exchange)
{
    if (httpd_is_stopping(exchange->server) || !httpd_readers_add(exchange))
        return httpd_send_problem(exchange, 503, "busy", "Too many requests wait.",
                                  &(struct tide_httpd_problem){.retry_after_s = 1});
    httpd_connection_stage(exchange->connection, STAGE_READER, handler_ms(exchange));
    httpd_connection_suspend(exchange->connection);
    return MHD_YES;
}

static enum MHD_Result ask(struct exchange *exchange)
{
    request_fill(exchange);
    switch (exchange->verdict.route->way) {
    case TIDE_HTTPD_READER:
    case TIDE_HTTPD_FETCH:
        return ask_reader(exchange);
    case TIDE_HTTPD_STREAM:
        return httpd_stream_open(exchange);
    case TIDE_HTTPD_MEMORY:
        break;
    }
    return ask_memory(exchange);
}

static enum MHD_Result reader_answered(struct exchange *exchange)
{
    if (exchange->given_up)
        return httpd_send_problem(exchange, 503, "slow", "This took too long and was given up.",
                                  &(struct tide_httpd_problem){.retry_after_s = 2});
    return httpd_send_answer(exchange);
}

enum MHD_Result httpd_exchange_handle(void *arg, struct MHD_Connection *mhd, const char *url,
                                      const char *method, const char *version, const char *data,
                                      size_t *bytes, void **context)
{
    struct exchange *exchange = *context;
    struct connection *connection = httpd_connection_of(mhd);
    (void)arg, (void)url, (void)version;
    if (exchange == NULL || connection == NULL)
        return MHD_NO; /* no memory: closes */
    if (connection->closing) {
        if (connection->stage == STAGE_HELD)
            count_held(exchange->server, -1);
        return MHD_NO;
    }
    if (exchange->connection == NULL) {
        exchange->connection = connection;
        connection->exchange = exchange;
        return begin(exchange, method);
    }
    switch (connection->stage) {
    case STAGE_BODY:
        return *bytes > 0 ? take_body(exchange, data, bytes) : ask(exchange);
    case STAGE_READER:
        return reader_answered(exchange);
    case STAGE_HELD:
        return ask_memory(exchange);
    case STAGE_HEAD:
    case STAGE_SENDING:
    case STAGE_STREAM:
        break;
    }
    return MHD_YES; /* answered already */
}

void httpd_exchange_completed(void *arg, struct MHD_Connection *mhd, void **context,
                              enum MHD_RequestTerminationCode code)
{
    tide_httpd *server = arg;
    struct exchange *exchange = *context;
    (void)mhd, (void)code;
    if (exchange == NULL)
        return;
    *context = NULL;
    if (exchange->connection != NULL) {
        struct connection *connection = exchange->connection;
        connection->exchange = NULL;
        exchange->connection = NULL;
        if (!connection->closing)
            httpd_connection_stage(connection, STAGE_HEAD, server->options.head_ms);
        if (server->options.observe != NULL)
            server->options.observe(server->options.observe_arg, exchange->verdict.route,
                                    exchange->status,
                                    tide_world_now_us(server->world) - exchange->started_us);
    }
    httpd_stream_close(exchange);
    httpd_exchange_release(exchange);
}
