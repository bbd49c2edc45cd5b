#include "cloudbox/serve/wire.h"

#include "base/check.h"
#include "cloudbox/serve/server.h"

#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
    SETTLE_MS = 10, /* between two looks at an answer that is not final */
    HELD_MS = 250,  /* at one that a rule holds: long enough that the timers watch the client */
    READER_BLOCK_BYTES = 64 << 10,
    TRICKLE_STEP_MS = 50, /* between two portions of a trickle, unless it is slower */
    HEAD_BYTES_MAX = 16 << 10,
};

static int socket_of(const struct box_exchange *exchange)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

/* ---- waiting ---- */

void box_wire_ring(struct box_timer *timer)
{
    struct box_exchange *exchange = (struct box_exchange *)timer;
    box_server *server = exchange->server; /* the exchange may be gone after the next line */
    MHD_resume_connection(exchange->connection);
    box_server_wake(server);
}

static void wait_for(struct box_exchange *exchange, uint32_t wait_ms)
{
    MHD_suspend_connection(exchange->connection); /* first: the ring may come at once (BWIR1) */
    box_timers_add(box_server_timers(exchange->server), &exchange->timer, wait_ms,
                   socket_of(exchange));
}

/* ---- past the library ---- */

/* Resets the connection: dissolving a socket's association sends RST at once and
 * drops what was not sent.  Closing with SO_LINGER 0 would do the same, but the
 * library shuts its sockets down before it closes them, and the client would
 * see a proper end first. */
static void reset(const struct box_exchange *exchange)
{
    const struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    int fd = socket_of(exchange);
    if (fd >= 0)
        (void)connect(fd, &nowhere, sizeof nowhere);
}

/* A few bytes on a connection whose send buffer is empty: they fit, or the
 * client is gone. */
static void send_raw(const struct box_exchange *exchange, const char *bytes, size_t count)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (box_server_is_tls(exchange->server)) {
        if (info != NULL && info->tls_session != NULL)
            (void)gnutls_record_send((gnutls_session_t)info->tls_session, bytes, count);
        return;
    }
    (void)send(socket_of(exchange), bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void build_head(const struct box_exchange *exchange, tide_buf *head)
{
    const struct box_answer *answer = &exchange->answer;
    const char *reason = MHD_get_reason_phrase_for((unsigned)answer->status);
    box_print(head, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n", answer->status,
              reason == NULL ? "Unknown" : reason, answer->type);
    for (size_t i = 0; i < answer->headers_count; i++)
        box_print(head, "%s: %s\r\n", answer->headers[i].name, answer->headers[i].value);
    box_print(head, "Content-Length: %" PRIu64 "\r\n\r\n", box_answer_bytes(answer));
}

static void send_half_head(const struct box_exchange *exchange)
{
    tide_auto_buf head = tide_buf_heap(HEAD_BYTES_MAX);
    build_head(exchange, &head);
    send_raw(exchange, head.data, head.bytes / 2);
}

void box_wire_refuse_raw(struct box_exchange *exchange, int status, const char *reason)
{
    char text[512];
    int bytes =
        snprintf(text, sizeof text,
                 "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                 "Content-Length: %zu\r\n\r\n%s\n",
                 status, MHD_get_reason_phrase_for((unsigned)status), strlen(reason) + 1, reason);
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < sizeof text);
    exchange->sent_early = true;
    send_raw(exchange, text, (size_t)bytes);
}

/* ---- through the library ---- */

static void response_freed(void *cls)
{
    box_exchange_release(cls);
}

static tide_text body_of(const struct box_exchange *exchange)
{
    return tide_buf_text(exchange->gzipped ? &exchange->packed : &exchange->answer.body);
}

static uint64_t body_bytes(const struct box_exchange *exchange)
{
    return exchange->gzipped ? exchange->packed.bytes : box_answer_bytes(&exchange->answer);
}

/* How many bytes a trickle may have sent by now, at least one more than it has
 * or the wait until then. */
static size_t trickle_room(struct box_exchange *exchange, uint64_t at, uint32_t *wait_ms_out)
{
    const uint32_t rate = exchange->answer.plan.bytes_per_s;
    const uint64_t now_ms = box_timers_now_ms();
    if (exchange->trickle_from_ms == 0)
        exchange->trickle_from_ms = now_ms;
    uint64_t allowed = (now_ms - exchange->trickle_from_ms) * rate / 1000;
    if (allowed > at)
        return allowed - at > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)(allowed - at);
    uint64_t next_ms = exchange->trickle_from_ms + ((at + 1) * 1000 + rate - 1) / rate;
    uint64_t wait_ms = next_ms > now_ms ? next_ms - now_ms : 1;
    *wait_ms_out = wait_ms < TRICKLE_STEP_MS ? TRICKLE_STEP_MS : (uint32_t)wait_ms;
    return 0;
}

/* The body ended early, as planned.  0: not yet. */
static ssize_t end_body(struct box_exchange *exchange)
{
    const struct box_plan *plan = &exchange->answer.plan;
    if (plan->fate == BOX_FATE_STALL && !exchange->stalled && plan->stall_ms > 0) {
        exchange->stalled = true;
        wait_for(exchange, plan->stall_ms);
        return 0;
    }
    if (plan->fate == BOX_FATE_RESET)
        reset(exchange);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t read_body(void *cls, uint64_t at, char *bytes, size_t bytes_max)
{
    struct box_exchange *exchange = cls;
    if (exchange->timer.vanished || box_server_is_stopping(exchange->server))
        return MHD_CONTENT_READER_END_WITH_ERROR;
    const bool whole = exchange->answer.plan.fate == BOX_FATE_WHOLE;
    const uint64_t end = whole ? body_bytes(exchange) : body_bytes(exchange) / 2;
    if (at >= end)
        return end_body(exchange);
    size_t count = end - at < bytes_max ? (size_t)(end - at) : bytes_max;
    if (exchange->answer.plan.bytes_per_s > 0) {
        uint32_t wait_ms = 0;
        size_t room = trickle_room(exchange, at, &wait_ms);
        if (room == 0) {
            wait_for(exchange, wait_ms);
            return 0;
        }
        count = room < count ? room : count;
    }
    if (exchange->answer.source.read != NULL)
        box_server_read(exchange, at, bytes, count);
    else
        memcpy(bytes, body_of(exchange).data + at, count);
    return (ssize_t)count;
}

static struct MHD_Response *make_response(struct box_exchange *exchange)
{
    const struct box_plan *plan = &exchange->answer.plan;
    tide_text body = body_of(exchange);
    struct MHD_Response *response;
    exchange->references++;
    const bool streams = exchange->answer.source.read != NULL;
    if (plan->fate == BOX_FATE_WHOLE && plan->bytes_per_s == 0 && !streams)
        response = MHD_create_response_from_buffer_with_free_callback_cls(
            body.bytes, (void *)(uintptr_t)(body.bytes == 0 ? "" : body.data), response_freed,
            exchange);
    else
        response = MHD_create_response_from_callback(body_bytes(exchange), READER_BLOCK_BYTES,
                                                     read_body, exchange, response_freed);
    TIDE_ASSERT(response != NULL);
    return response;
}

static enum MHD_Result queue(struct box_exchange *exchange)
{
    const struct box_answer *answer = &exchange->answer;
    box_server_pack(exchange);
    struct MHD_Response *response = make_response(exchange);
    if (answer->type[0] != '\0')
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    for (size_t i = 0; i < answer->headers_count; i++)
        (void)MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
    if (exchange->gzipped) {
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
    }
    exchange->stage = BOX_STAGE_ANSWERING;
    enum MHD_Result result =
        MHD_queue_response(exchange->connection, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- the plan ---- */

static enum MHD_Result stall(struct box_exchange *exchange)
{
    exchange->stage = BOX_STAGE_ENDING;
    wait_for(exchange, exchange->answer.plan.stall_ms);
    return MHD_YES;
}

static enum MHD_Result act(struct box_exchange *exchange)
{
    const struct box_plan *plan = &exchange->answer.plan;
    box_place place = plan->fate == BOX_FATE_TRUNCATE ? BOX_IN_BODY : plan->fate_at;
    if (plan->fate == BOX_FATE_WHOLE)
        return queue(exchange);
    if (place == BOX_IN_BODY && box_answer_bytes(&exchange->answer) > 0)
        return queue(exchange);
    if (place != BOX_AT_START) /* what has no body breaks off in its head */
        send_half_head(exchange);
    if (plan->fate == BOX_FATE_STALL)
        return stall(exchange);
    if (plan->fate == BOX_FATE_RESET)
        reset(exchange);
    return MHD_NO;
}

enum MHD_Result box_wire_answer(struct box_exchange *exchange)
{
    const struct box_plan *plan = &exchange->answer.plan;
    TIDE_ASSERT(exchange->served);
    if (exchange->timer.vanished || exchange->unkept || box_server_is_stopping(exchange->server) ||
        exchange->stage == BOX_STAGE_ENDING)
        return MHD_NO; /* closes */
    if (!box_server_settled(exchange)) {
        wait_for(exchange, plan->held_by != 0 ? HELD_MS : SETTLE_MS);
        return MHD_YES;
    }
    if (exchange->stage == BOX_STAGE_BODY && plan->delay_ms > 0) {
        exchange->stage = BOX_STAGE_WAITING;
        wait_for(exchange, plan->delay_ms);
        return MHD_YES;
    }
    if (exchange->stage == BOX_STAGE_ANSWERING)
        return MHD_YES;
    return act(exchange);
}

enum MHD_Result box_wire_refuse(struct box_exchange *exchange, int status, const char *reason)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(reason), (void *)(uintptr_t)reason, MHD_RESPMEM_MUST_COPY);
    TIDE_ASSERT(response != NULL);
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain");
    exchange->sent_early = true;
    enum MHD_Result result = MHD_queue_response(exchange->connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}
