/* limits.c - clients that are slow, many, or lie: they are bounded and cut off, and a person at the page
 * is served all the while. */
#include "unit/serve/httpd/httpd_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SHORT_MS = 300 };

static void short_head(struct tide_httpd_options *options)
{
    options->head_ms = SHORT_MS;
}

static void short_body(struct tide_httpd_options *options)
{
    options->body_ms = SHORT_MS;
}

static void short_reader(struct tide_httpd_options *options)
{
    options->reader_ms = SHORT_MS;
}

static void short_send(struct tide_httpd_options *options)
{
    options->send_ms = SHORT_MS;
}

/* Whether the other side has closed; takes what has come. */
static bool is_closed(int fd)
{
    char room[4096];
    const ssize_t count = recv(fd, room, sizeof room, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
}

/* Sends the same bytes until the server has had enough.  Arriving bytes do not extend the time. */
static void trickle(int fd, const char *bytes, size_t count)
{
    while (!is_closed(fd) && send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
        (void)usleep(5000); /* the pace of a slow client, not a wait for something */
}

/* With short times a busy machine may cut off the person too, who tries again. */
static void person_is_served(const struct fixture *fixture)
{
    int status = 0;
    for (int i = 0; i < 1000 && status != 200; i++) {
        struct reply reply;
        ask(fixture, &reply,
            "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        status = reply.status;
        reply_done(&reply);
    }
    assert_int_equal(status, 200);
}

TEST(a_head_that_trickles_in_is_cut_off)
{
    struct fixture *fixture = fixture_start(short_head);
    struct tide_httpd_counts counts;
    const int fd = client_connect(fixture);
    client_print(fd, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ");
    person_is_served(fixture);
    trickle(fd, "a", 1);
    (void)close(fd);
    tide_httpd_count(fixture->server, &counts);
    assert_true(counts.timed_out >= 1);
    fixture_stop(fixture);
}

TEST(a_silent_connection_is_cut_off)
{
    struct fixture *fixture = fixture_start(short_head);
    const int fd = client_connect(fixture);
    assert_false(client_read_to(fd, "never"));
    (void)close(fd);
    fixture_stop(fixture);
}

static void begin_post(const struct fixture *fixture, int fd, const char *length)
{
    client_print(fd,
                 "POST /api/v1/jobs/cancel HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
                 "%s\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n%s\r\n\r\n",
                 fixture->key, length);
}

TEST(a_body_shorter_than_announced_never_reaches_its_handler)
{
    struct fixture *fixture = fixture_start(short_body);
    int fd = client_connect(fixture);
    begin_post(fixture, fd, "Content-Length: 1000000");
    trickle(fd, " ", 1);
    (void)close(fd);
    fd = client_connect(fixture);
    begin_post(fixture, fd, "Content-Length: 10");
    client_print(fd, "{}");
    (void)close(fd); /* gone in the middle */
    eventually(counts.connections == 0);
    assert_int_equal(atomic_load(&fixture->effects), 0);
    eventually(counts.body_bytes == 0);
    fixture_stop(fixture);
}

TEST(bytes_after_the_announced_body_are_no_part_of_it)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    const int fd = client_connect(fixture);
    begin_post(fixture, fd, "Content-Length: 2");
    client_print(fd, "{}{\"more\":true}\r\n\r\n");
    client_read_all(fd, &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(fixture->last_body, "{}");
    assert_int_equal(atomic_load(&fixture->effects), 1);
    reply_done(&reply);
    (void)close(fd);
    fixture_stop(fixture);
}

TEST(unclear_lengths_are_refused)
{
    static const char *const lengths[] = {
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: 2\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Content-Length: -1",
        "Content-Length: 2x",
        "Content-Length: 18446744073709551616",
    };
    struct fixture *fixture = fixture_start(NULL);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct reply reply;
        const int fd = client_connect(fixture);
        begin_post(fixture, fd, lengths[i]);
        client_print(fd, "{}");
        (void)shutdown(fd, SHUT_WR);
        client_read_all(fd, &reply);
        if (reply.status != 0 && (reply.status < 400 || reply.status > 501))
            fail_msg("%s: %d", lengths[i], reply.status);
        assert_int_equal(atomic_load(&fixture->effects), 0);
        reply_done(&reply);
        (void)close(fd);
    }
    fixture_stop(fixture);
}

/* What the process uses, in bytes; sanitizers use what they like. */
static size_t resident_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void memory_is_bounded(size_t before)
{
    assert_true(SANITIZED || resident_bytes() < before + (32 << 20));
}

TEST(a_body_of_a_gigabyte_is_refused_before_it_comes)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    const int fd = client_connect(fixture);
    begin_post(fixture, fd, "Content-Length: 1073741824");
    client_read_all(fd, &reply); /* nothing of it was sent */
    assert_int_equal(reply.status, 413);
    reply_done(&reply);
    (void)close(fd);
    fixture_stop(fixture);
}

TEST(a_body_of_a_gigabyte_without_a_length_is_cut_off)
{
    static char chunk[64 << 10];
    struct fixture *fixture = fixture_start(NULL);
    struct tide_httpd_counts counts;
    struct reply reply;
    const size_t before = resident_bytes();
    const int fd = client_connect(fixture);
    bool taken = true;
    size_t sent = 0;
    memset(chunk, ' ', sizeof chunk);
    begin_post(fixture, fd, "Transfer-Encoding: chunked");
    for (; taken && sent < 1 << 30; sent += sizeof chunk)
        taken = client_send(fd, "10000\r\n", 7) && client_send(fd, chunk, sizeof chunk) &&
                client_send(fd, "\r\n", 2);
    assert_false(taken);
    client_read_all(fd, &reply);
    assert_int_equal(reply.status, 413);
    assert_int_equal(atomic_load(&fixture->effects), 0);
    tide_httpd_count(fixture->server, &counts);
    assert_true(counts.body_bytes_peak <= TIDE_HTTPD_BODY_BYTES_MAX);
    memory_is_bounded(before);
    reply_done(&reply);
    (void)close(fd);
    fixture_stop(fixture);
}

static void small_bodies(struct tide_httpd_options *options)
{
    options->bodies_bytes_max = 1000;
}

TEST(all_bodies_together_are_bounded)
{
    static const char much[900] = "[";
    struct fixture *fixture = fixture_start(small_bodies);
    struct reply reply;
    const int first = client_connect(fixture), second = client_connect(fixture);
    begin_post(fixture, first, "Content-Length: 901");
    assert_true(client_send(first, much, sizeof much));
    eventually(counts.body_bytes == sizeof much);
    begin_post(fixture, second, "Content-Length: 901");
    assert_true(client_send(second, much, sizeof much));
    client_read_all(second, &reply);
    assert_int_equal(reply.status, 503);
    assert_true(head_has(&reply, "\r\nRetry-After: 1\r\n"));
    reply_done(&reply);
    (void)close(second);
    (void)close(first);
    eventually(counts.body_bytes == 0 && counts.body_bytes_peak <= 1000);
    fixture_stop(fixture);
}

TEST(a_route_may_take_less_and_other_types)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    for (int bytes = 16; bytes <= 17; bytes++) {
        ask(fixture, &reply,
            "PUT /api/v1/mail/ada/drafts/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
            "%s\r\nContent-Type: image/png\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%.*s",
            fixture->key, bytes, bytes, "12345678901234567");
        assert_int_equal(reply.status, bytes == 16 ? 200 : 413);
        reply_done(&reply);
    }
    fixture_stop(fixture);
}

/* Room for the descriptors of both sides. */
static void allow_files(void)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(a_thousand_connections_keep_nobody_out)
{
    enum { MANY = 1000 };
    static int fds[MANY];
    allow_files();
    struct fixture *fixture = fixture_start(NULL);
    struct tide_httpd_counts counts;
    struct reply reply;
    const size_t before = resident_bytes();
    /* A person whose browser keeps its connection. */
    const int kept = client_connect(fixture);
    client_print(
        kept, "GET /api/v1/state HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n",
        fixture->key);
    client_read(kept, &reply);
    assert_int_equal(reply.status, 200);
    reply_done(&reply);
    for (int i = 0; i < MANY; i++) {
        fds[i] = client_connect(fixture);
        if (i % 2 == 0)
            client_print(fds[i], "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "); /* half a head */
        if (i % 250 == 249)
            assert_int_equal(get_status(fixture, "/api/v1/state"), 200);
    }
    client_print(
        kept, "GET /api/v1/state HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n",
        fixture->key);
    client_read(kept, &reply);
    assert_int_equal(reply.status, 200);
    reply_done(&reply);
    tide_httpd_count(fixture->server, &counts);
    assert_true(counts.connections_peak <= TIDE_HTTPD_CONNECTIONS_MAX + 32);
    assert_true(counts.evicted >= MANY - TIDE_HTTPD_CONNECTIONS_MAX - 32);
    memory_is_bounded(before);
    for (int i = 0; i < MANY; i++)
        (void)close(fds[i]);
    (void)close(kept);
    fixture_stop(fixture);
}

TEST(a_head_that_is_too_large_is_refused)
{
    static char text[40 << 10];
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    memset(text, 'a', sizeof text);
    ask(fixture, &reply, "GET /%.*s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        TIDE_HTTPD_TARGET_BYTES_MAX, text);
    assert_int_equal(reply.status, 414);
    reply_done(&reply);
    ask(fixture, &reply, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: %.*s\r\n\r\n",
        TIDE_HTTPD_HEAD_BYTES_MAX, text);
    assert_int_equal(reply.status, 431);
    reply_done(&reply);
    char many[2048] = "";
    for (int i = 0; i < TIDE_HTTPD_HEADERS_MAX; i++)
        (void)snprintf(many + strlen(many), sizeof many - strlen(many), "X%d: 1\r\n", i);
    ask(fixture, &reply, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", many);
    assert_int_equal(reply.status, 431);
    reply_done(&reply);
    /* A query of thousands of parameters is refused too, and does not starve the library. */
    for (size_t i = 0; i + 1 < TIDE_HTTPD_TARGET_BYTES_MAX - 16; i += 2)
        memcpy(text + i, "a&", 2);
    ask(fixture, &reply,
        "GET /api/v1/echo/x?%.*s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: "
        "close\r\nAuthorization: Bearer %s\r\n\r\n",
        TIDE_HTTPD_TARGET_BYTES_MAX - 32, text, fixture->key);
    assert_int_equal(reply.status, 400);
    reply_done(&reply);
    fixture_stop(fixture);
}

TEST(a_reader_that_takes_too_long_is_given_up)
{
    struct fixture *fixture = fixture_start(short_reader);
    struct reply reply;
    ask(fixture, &reply,
        "GET /api/v1/gate HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: "
        "Bearer "
        "%s\r\n\r\n",
        fixture->key);
    assert_int_equal(reply.status, 503);
    assert_true(head_has(&reply, "\r\nRetry-After: 2\r\n"));
    assert_non_null(strstr(reply.body, "\"code\":\"slow\""));
    reply_done(&reply);
    eventually(atomic_load(&fixture->canceled) == 1);
    fixture_stop(fixture);
}

static int gate_ask(const struct fixture *fixture)
{
    const int fd = client_connect(fixture);
    client_print(fd,
                 "GET /api/v1/gate HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: "
                 "close\r\nAuthorization: Bearer %s\r\n\r\n",
                 fixture->key);
    return fd;
}

TEST(when_the_readers_are_busy_further_requests_are_told_to_come_back)
{
    enum { ALL = TIDE_HTTPD_READERS + TIDE_HTTPD_QUEUE_MAX };
    int fds[ALL];
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    for (int i = 0; i < ALL; i++) {
        fds[i] = gate_ask(fixture);
        if (i + 1 == TIDE_HTTPD_READERS) /* so that the rest waits */
            eventually(atomic_load(&fixture->running) == TIDE_HTTPD_READERS);
    }
    eventually(counts.waiting == TIDE_HTTPD_QUEUE_MAX);
    const int fd = gate_ask(fixture);
    client_read_all(fd, &reply);
    assert_int_equal(reply.status, 503);
    assert_true(head_has(&reply, "\r\nRetry-After: 1\r\n"));
    reply_done(&reply);
    (void)close(fd);
    /* What is answered from memory is not held up. */
    person_is_served(fixture);
    atomic_store(&fixture->open, true);
    for (int i = 0; i < ALL; i++) {
        client_read_all(fds[i], &reply);
        assert_int_equal(reply.status, 200);
        reply_done(&reply);
        (void)close(fds[i]);
    }
    fixture_stop(fixture);
}

TEST(a_client_that_leaves_frees_its_reader)
{
    struct fixture *fixture = fixture_start(NULL);
    const int fd = gate_ask(fixture);
    eventually(atomic_load(&fixture->running) == 1);
    (void)close(fd);
    eventually(atomic_load(&fixture->canceled) == 1);
    fixture_stop(fixture);
}

TEST(a_post_goes_on_without_its_client)
{
    struct fixture *fixture = fixture_start(NULL);
    const int fd = client_connect(fixture);
    client_print(fd,
                 "POST /api/v1/gate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
                 "%s\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
                 fixture->key);
    eventually(atomic_load(&fixture->running) == 1);
    (void)close(fd);
    /* By the time that another client is served the server has seen it leave. */
    for (int i = 0; i < 3; i++)
        person_is_served(fixture);
    assert_int_equal(atomic_load(&fixture->running), 1);
    atomic_store(&fixture->open, true);
    eventually(atomic_load(&fixture->running) == 0 && counts.connections == 0);
    assert_int_equal(atomic_load(&fixture->canceled), 0);
    fixture_stop(fixture);
}

TEST(a_client_that_does_not_read_its_answer_is_cut_off)
{
    struct fixture *fixture = fixture_start(short_send);
    const int small = 4096;
    const int fd = client_connect(fixture);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 0; i < 4; i++)
        client_print(fd,
                     "GET /api/v1/large HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
                     "%s\r\n\r\n",
                     fixture->key);
    eventually(counts.timed_out == 1 && counts.connections == 0);
    (void)close(fd);
    fixture_stop(fixture);
}

TEST(stopping_ends_what_runs)
{
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    const int waiting = client_connect(fixture);
    const int gate = gate_ask(fixture);
    eventually(atomic_load(&fixture->running) == 1);
    tide_httpd_stop(fixture->server);
    fixture->server = NULL;
    assert_int_equal(atomic_load(&fixture->canceled), 1);
    client_read_all(gate, &reply);
    assert_int_equal(reply.status, 503);
    reply_done(&reply);
    client_read_all(waiting, &reply);
    assert_int_equal(reply.status, 0);
    reply_done(&reply);
    (void)close(gate);
    (void)close(waiting);
    fixture_stop(fixture);
}
