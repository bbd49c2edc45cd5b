/* send.c - from an answer to the wire. */
#include "serve/http/inside.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { BLOCK_BYTES = 32 << 10 };

/* On every answer.  Nothing of ours is for another origin, for a cache, or to be sniffed. */
static const char *const always[][2] = {
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"X-DNS-Prefetch-Control", "off"},
};
enum { ALWAYS_COUNT = sizeof always / sizeof always[0] };

static const char nothing_csp[] = "default-src 'none'; base-uri 'none'; form-action 'none'; "
                                  "frame-ancestors 'none'";
static const char forever[] = "private, max-age=31536000, immutable";
static const char no_store[] = "no-store";

void httpd_send_common_headers(struct MHD_Response *response,
                               const struct tide_httpd_answer *answer)
{
    for (size_t i = 0; i < ALWAYS_COUNT; i++)
        (void)MHD_add_response_header(response, always[i][0], always[i][1]);
    (void)MHD_add_response_header(response, "Content-Security-Policy",
                                  answer->csp == NULL ? nothing_csp : answer->csp);
    (void)MHD_add_response_header(response, "Cache-Control",
                                  answer->immutable ? forever : no_store);
    if (answer->type != NULL)
        (void)MHD_add_response_header(response, "Content-Type", answer->type);
    if (answer->encoding != NULL) {
        (void)MHD_add_response_header(response, "Content-Encoding", answer->encoding);
        (void)MHD_add_response_header(response, "Vary", "Accept-Encoding");
    }
    for (size_t i = 0; i < answer->headers_count; i++)
        (void)MHD_add_response_header(response, answer->headers[i].name, answer->headers[i].value);
}

void httpd_send_raw(int fd, int status, const char *code, const char *detail)
{
    char body[256];
    char text[1024];
    const int body_bytes = snprintf(body, sizeof body,
                                    "{\"type\":\"about:blank\",\"status\":%d,\"code\":\"%s\","
                                    "\"detail\":\"%s\"}\n",
                                    status, code, detail);
    int bytes = snprintf(text, sizeof text,
                         "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: "
                         "application/problem+json\r\nContent-Length: %d\r\nCache-Control: "
                         "no-store\r\nContent-Security-Policy: %s\r\n%s",
                         status, status == 413 ? "Too Large" : "Unavailable", body_bytes,
                         nothing_csp, status == 503 ? "Retry-After: 1\r\n" : "");
    for (size_t i = 0; i < ALWAYS_COUNT; i++)
        bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, "%s: %s\r\n", always[i][0],
                          always[i][1]);
    bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, "\r\n%s", body);
    TIDE_ASSERT(body_bytes > 0 && (size_t)body_bytes < sizeof body);
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < sizeof text);
    /* The buffer of a connection that has sent nothing is empty: this fits, or the client left. */
    (void)send(fd, text, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Each block that the client takes gives it time for the next one (SRV4). */
static ssize_t read_block(void *arg, uint64_t at, char *bytes, size_t bytes_max)
{
    struct exchange *exchange = arg;
    const tide_text body = tide_httpd_answer_body(&exchange->answer);
    if (at >= body.bytes)
        return MHD_CONTENT_READER_END_OF_STREAM;
    const size_t count = body.bytes - at < bytes_max ? body.bytes - (size_t)at : bytes_max;
    memcpy(bytes, body.data + at, count);
    if (exchange->connection != NULL && !exchange->connection->closing)
        httpd_connection_stage(exchange->connection, STAGE_SENDING,
                               exchange->server->options.send_ms);
    return (ssize_t)count;
}

static void response_freed(void *arg)
{
    httpd_exchange_release(arg);
}

/* What a handler left unanswered or could not finish is a failure of ours (ANS1). */
static void settle(struct tide_httpd_answer *answer)
{
    if (answer->status != 0 && !answer->failed)
        return;
    tide_httpd_fail(answer, 500, "failed", "The answer could not be made.", NULL);
    if (answer->failed) { /* no memory even for that */
        tide_httpd_answer_clear(answer);
        answer->status = 500;
    }
}

enum MHD_Result httpd_send_answer(struct exchange *exchange)
{
    struct tide_httpd_answer *answer = &exchange->answer;
    settle(answer);
    struct MHD_Response *response = MHD_create_response_from_callback(
        tide_httpd_answer_body(answer).bytes, BLOCK_BYTES, read_block, exchange, response_freed);
    if (response == NULL)
        return MHD_NO;
    exchange->references++;
    exchange->status = answer->status;
    httpd_send_common_headers(response, answer);
    httpd_connection_stage(exchange->connection, STAGE_SENDING, exchange->server->options.send_ms);
    const enum MHD_Result result =
        MHD_queue_response(exchange->connection->mhd, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return result;
}

/* A reader that was given up may still write to the exchange's answer; the client gets one that
 * is not the exchange's. */
static enum MHD_Result send_apart(struct exchange *exchange)
{
    struct tide_httpd_answer answer;
    tide_httpd_answer_init(&answer, exchange->server->mem);
    tide_httpd_fail(&answer, 503, "slow", "This took too long and was given up.",
                    &(struct tide_httpd_problem){.retry_after_s = 2});
    const tide_text body = tide_httpd_answer_body(&answer);
    struct MHD_Response *response = MHD_create_response_from_buffer(
        body.bytes, (void *)(uintptr_t)body.data, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_NO;
    if (response != NULL) {
        exchange->status = 503;
        httpd_send_common_headers(response, &answer);
        httpd_connection_stage(exchange->connection, STAGE_SENDING,
                               exchange->server->options.send_ms);
        result = MHD_queue_response(exchange->connection->mhd, 503, response);
        MHD_destroy_response(response);
    }
    tide_httpd_answer_done(&answer);
    return result;
}

enum MHD_Result httpd_send_problem(struct exchange *exchange, int status, const char *code,
                                   const char *detail, const struct tide_httpd_problem *more)
{
    if (exchange->given_up)
        return send_apart(exchange);
    tide_httpd_fail(&exchange->answer, status, code, detail, more);
    return httpd_send_answer(exchange);
}
