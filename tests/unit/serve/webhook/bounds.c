/* bounds.c - forged, many, slow and lying requests: refused, bounded, and without any effect. */
#include "unit/serve/webhook/webhook_fixture.h"

#include <sys/socket.h>
#include <unistd.h>

/* Good claims but for one; of the issuer's key. */
static char *token_with(const struct hook *hook, const char *name, json_t *value)
{
    json_t *claims = claims_good(hook);
    (void)json_object_set_new(claims, name, value);
    return token_of(hook->key, claims);
}

static void refuse(struct hook *hook, char *token)
{
    assert_int_equal(push(hook, token, push_of("ada@example.com", "forged")), 401);
    free(token);
}

TEST(forged_tokens_are_refused_and_do_nothing)
{
    struct hook *hook = hook_start();
    const json_int_t now_s = (json_int_t)(tide_world_now_unix_ms(hook->world) / 1000);
    json_t *claims = claims_good(hook);
    tide_buf pem;
    char header[200];
    tide_buf_init(&pem, tide_mem_heap(), BOX_JWT_BYTES_MAX);
    box_key_public_pem(hook->key, &pem);
    assert_int_equal(push_good(hook, "good"), 204); /* the keys are there */
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 1);

    refuse(hook, token_raw("{\"alg\":\"none\"}", claims, TIDE_TEXT_NONE));
    (void)snprintf(header, sizeof header, "{\"alg\":\"none\",\"kid\":\"%s\"}",
                   box_key_id(hook->key));
    refuse(hook, token_raw(header, claims, TIDE_TEXT_NONE));
    (void)snprintf(header, sizeof header, "{\"alg\":\"HS256\",\"kid\":\"%s\"}",
                   box_key_id(hook->key));
    refuse(hook, token_raw(header, claims, tide_buf_text(&pem)));
    (void)snprintf(header, sizeof header, "{\"alg\":\"RS256\",\"kid\":\"%s\"}",
                   box_key_id(hook->key));
    refuse(hook, token_raw(header, claims, tide_buf_text(&pem)));
    refuse(hook, token_raw(header, claims, TIDE_TEXT_NONE));
    refuse(hook, token_of(hook->other, claims_good(hook)));
    refuse(hook, token_with(hook, "aud", json_string("https://other.example/")));
    refuse(hook, token_with(hook, "iss", json_string("https://evil.example")));
    refuse(hook, token_with(hook, "email", json_string("me@evil.iam.gserviceaccount.com")));
    refuse(hook, token_with(hook, "email_verified", json_false()));
    refuse(hook, token_with(hook, "exp", json_integer(now_s + 86401)));
    refuse(hook, token_with(hook, "nbf", json_integer(now_s + 600)));
    refuse(hook, token_with(hook, "iat", json_integer(now_s + 600)));
    json_t *old = claims_good(hook);
    (void)json_object_set_new(old, "iat", json_integer(now_s - 7200));
    (void)json_object_set_new(old, "exp", json_integer(now_s - 3600));
    refuse(hook, token_of(hook->key, old));
    char *cut = token_good(hook);
    cut[strlen(cut) - 20] = '\0';
    refuse(hook, cut);
    char *bare = token_good(hook);
    *strrchr(bare, '.') = '\0';
    refuse(hook, bare);
    char *huge = token_with(hook, "pad", json_stringn("a", 1));
    huge = realloc(huge, 12000);
    assert_non_null(huge);
    memset(huge + strlen(huge), 'a', 11000 - strlen(huge));
    huge[11000] = '\0';
    refuse(hook, huge);
    refuse(hook, strdup("x"));
    assert_int_equal(push(hook, NULL, push_of("ada@example.com", "forged")), 401);

    assert_int_equal(counted(hook, TIDE_WEBHOOK_NO_TOKEN), 1);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_FORGED) + counted(hook, TIDE_WEBHOOK_BAD_TOKEN),
                     18);
    assert_int_equal(atomic_load(&hook->wakes), 1);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_REPEATED), 0); /* nor is their message remembered */
    json_decref(claims);
    tide_buf_done(&pem);
    hook_stop(hook);
}

/* A token that is good, but not where it belongs. */
TEST(a_token_is_taken_from_one_authorization_header_alone)
{
    static const struct {
        const char *query, *header; /* the token follows; "": not there */
    } rows[] = {
        {"?access_token=", ""},
        {"", "Cookie: token="},
        {"", "Authorization: Basic "},
        {"", "Authorization: Bearer x\r\nAuthorization: Bearer "},
        {"", "Proxy-Authorization: Bearer "},
    };
    struct hook *hook = hook_start();
    char *token = token_good(hook);
    const char *body = push_of("ada@example.com", "1");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reply reply;
        const int fd = client_connect_to(tide_webhook_port(hook->webhook));
        const bool in_query = rows[i].query[0] != '\0';
        client_print(fd,
                     "POST /webhook/gmail%s%s HTTP/1.1\r\nHost: x\r\n%s%s%sConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     rows[i].query, in_query ? token : "", rows[i].header, in_query ? "" : token,
                     in_query ? "" : "\r\n", strlen(body), body);
        client_read_all(fd, &reply);
        assert_int_equal(reply.status, 401);
        assert_null(strstr(reply.body, token));
        reply_done(&reply);
        (void)close(fd);
    }
    assert_int_equal(atomic_load(&hook->wakes), 0);
    free(token);
    hook_stop(hook);
}

TEST(a_flood_of_forged_requests_keeps_no_known_token_out)
{
    struct hook *hook = hook_start();
    char *known = token_good(hook);
    assert_int_equal(push(hook, known, push_of("ada@example.com", "1")), 204);
    for (int i = 0; i < 2 * TIDE_WEBHOOK_REFUSED_PER_S; i++) /* what two seconds allow */
        assert_int_equal(push(hook, "forged", push_of("ada@example.com", "2")), 401);
    for (int i = 0; i < 10; i++)
        assert_int_equal(push(hook, "forged", push_of("ada@example.com", "2")), 429);
    char *fresh = token_with(hook, "sub", json_string("2")); /* good, and not seen before */
    assert_int_equal(push(hook, fresh, push_of("ada@example.com", "2")), 429);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_LIMITED), 11);
    assert_int_equal(push(hook, known, push_of("ada@example.com", "3")), 204);
    later(1000); /* and others come in again */
    assert_int_equal(push(hook, "forged", push_of("ada@example.com", "2")), 401);
    assert_int_equal(push(hook, fresh, push_of("ada@example.com", "4")), 204);
    free(fresh);
    free(known);
    hook_stop(hook);
}

/* ---- the listener ---- */

static int status_of(const struct hook *hook, const char *request)
{
    struct reply reply;
    const int fd = client_connect_to(tide_webhook_port(hook->webhook));
    client_print(fd, "%s", request);
    client_read_all(fd, &reply);
    const int status = reply.status;
    reply_done(&reply);
    (void)close(fd);
    return status;
}

TEST(nothing_of_the_page_is_reached_through_it)
{
    static const struct {
        const char *line;
        int status;
    } rows[] = {
        {"GET /", 404},
        {"GET /healthz", 404},
        {"GET /metrics", 404},
        {"GET /app/x/main.js", 404},
        {"GET /api/v1/state", 404},
        {"GET /api/v1/openapi.json", 404},
        {"POST /api/v1/pairings", 404},
        {"POST /api/sync", 404},
        {"POST /webhook", 404},
        {"POST /webhook/gmail/", 404},
        {"POST /webhook/gmail/..", 404},
        {"POST /webhook//gmail", 404},
        {"POST /webhook/gmai%6c", 404},
        {"GET /webhook/gmail", 405},
        {"PUT /webhook/gmail", 405},
        {"DELETE /webhook/gmail", 405},
        {"OPTIONS /webhook/gmail", 405},
        {"OPTIONS *", 405},
        {"CONNECT mail.example.org:443", 400},
    };
    struct hook *hook = hook_start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char request[200];
        (void)snprintf(request, sizeof request,
                       "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", rows[i].line);
        const int status = status_of(hook, request);
        if (status != rows[i].status)
            fail_msg("%s: %d", rows[i].line, status);
    }
    until(counted(hook, TIDE_WEBHOOK_REFUSED) == sizeof rows / sizeof rows[0]);
    assert_int_equal(atomic_load(&hook->wakes), 0);
    hook_stop(hook);
}

TEST(bodies_are_bounded_and_their_lengths_must_be_true)
{
    static const char start[] = "POST /webhook/gmail HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                "Content-Type: application/json\r\n";
    static const struct {
        const char *rest;
        int status; /* 0: closed without an answer, or refused */
    } rows[] = {
        {"Content-Length: 65537\r\n\r\n", 413},
        {"Content-Length: 99999999999\r\n\r\n", 413},
        {"Content-Length: 18446744073709551616\r\n\r\n", 0},
        {"Content-Length: -1\r\n\r\n", 0},
        {"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 0},
        {"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 0},
        {"Transfer-Encoding: gzip\r\n\r\n{}", 0},
        {"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0},
    };
    struct hook *hook = hook_start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char request[400];
        (void)snprintf(request, sizeof request, "%s%s", start, rows[i].rest);
        const int status = status_of(hook, request);
        if (rows[i].status == 0 ? status != 0 && (status < 400 || status > 501)
                                : status != rows[i].status)
            fail_msg("%s: %d", rows[i].rest, status);
    }
    /* A body without an announced length, one byte too long. */
    const int fd = client_connect_to(tide_webhook_port(hook->webhook));
    struct reply reply;
    char piece[1024];
    memset(piece, ' ', sizeof piece);
    client_print(fd, "%sTransfer-Encoding: chunked\r\n\r\n10001\r\n", start);
    for (int i = 0; i < 64; i++)
        (void)client_send(fd, piece, sizeof piece);
    (void)client_send(fd, " ", 1);
    client_read_all(fd, &reply);
    assert_int_equal(reply.status, 413);
    reply_done(&reply);
    (void)close(fd);
    assert_int_equal(atomic_load(&hook->wakes), 0);
    hook_stop(hook);
}

/* Heads and bodies that never come to their end are cut off, and a push gets through all the while. */
TEST(slow_clients_are_cut_off_and_keep_no_push_out)
{
    enum { SLOW = 300 };
    struct hook *hook = hook_start();
    static int fds[SLOW];
    for (int i = 0; i < SLOW; i++) {
        fds[i] = client_connect_to(tide_webhook_port(hook->webhook));
        client_print(fds[i], i % 2 == 0
                                 ? "POST /webhook/gmail HTTP/1.1\r\nHost: x\r\nX-Slow: "
                                 : "POST /webhook/gmail HTTP/1.1\r\nHost: x\r\nContent-Type: "
                                   "application/json\r\nContent-Length: 1000\r\n\r\n{");
    }
    assert_int_equal(push_good(hook, "1"), 204);
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 1);
    later(60000);
    assert_int_equal(push_good(hook, "2"), 204); /* the server looks at the clock */
    for (int i = 0; i < SLOW; i++) {
        struct reply reply;
        client_read_all(fds[i], &reply); /* its end: the watchdog is a minute */
        assert_true(reply.status == 0 || reply.status >= 400);
        reply_done(&reply);
        (void)close(fds[i]);
    }
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 2);
    hook_stop(hook);
}
