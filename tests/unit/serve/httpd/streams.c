/* streams.c - live updates: the newest state, to those who can take it. */
#include "unit/serve/httpd/httpd_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void publish(struct fixture *fixture, const char *topic, const char *text)
{
    assert_int_equal(tide_httpd_publish(fixture->server, topic, tide_text_of(text)), TIDE_OK);
}

static int stream_ask(const struct fixture *fixture, const char *topics, const char *key)
{
    const int fd = client_connect(fixture);
    client_print(
        fd,
        "GET /api/v1/stream?topics=%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        "%s\r\n\r\n",
        topics, key);
    return fd;
}

static int stream_status(const struct fixture *fixture, const char *topics, const char *key)
{
    struct reply reply;
    const int fd = stream_ask(fixture, topics, key);
    client_read(fd, &reply);
    (void)close(fd);
    reply_done(&reply);
    return reply.status;
}

TEST(a_stream_begins_with_the_state_and_gets_what_changes)
{
    struct fixture *fixture = fixture_start(NULL);
    publish(fixture, "state", "{\"n\":1}");
    const int fd = stream_ask(fixture, "state,mail", fixture->key);
    assert_true(client_read_to(fd, "HTTP/1.1 200"));
    assert_true(client_read_to(fd, "Content-Type: text/event-stream"));
    assert_true(client_read_to(fd, "event: state\nid: 1\ndata: {\"n\":1}\n\n"));
    publish(fixture, "mail", "line one\nline two");
    assert_true(client_read_to(fd, "event: mail\nid: 1\ndata: line one\ndata: line two\n\n"));
    publish(fixture, "state", "{\"n\":1}"); /* the same: nothing is sent */
    publish(fixture, "state", "{\"n\":2}");
    assert_true(client_read_to(fd, "event: state\nid: 2\ndata: {\"n\":2}\n\n"));
    (void)close(fd);
    fixture_stop(fixture);
}

TEST(topics_are_known_and_within_the_scope)
{
    struct fixture *fixture = fixture_start(NULL);
    assert_int_equal(stream_status(fixture, "", fixture->key), 400);
    assert_int_equal(stream_status(fixture, "state,other", fixture->key), 400);
    assert_int_equal(stream_status(fixture, "state,mail", fixture->look), 403);
    assert_int_equal(tide_httpd_publish(fixture->server, "other", TIDE_TEXT("x")), TIDE_NOT_FOUND);
    static char much[TIDE_HTTPD_TOPIC_BYTES_MAX + 1];
    assert_int_equal(tide_httpd_publish(fixture->server, "state", (tide_text){much, sizeof much}),
                     TIDE_FULL);
    fixture_stop(fixture);
}

TEST(the_caller_knows_whether_somebody_looks)
{
    struct fixture *fixture = fixture_start(NULL);
    assert_false(tide_httpd_is_watched(fixture->server, "state"));
    const int first = stream_ask(fixture, "state", fixture->key);
    const int second = stream_ask(fixture, "state", fixture->key);
    eventually(counts.streams == 2);
    assert_true(tide_httpd_is_watched(fixture->server, "state"));
    assert_false(tide_httpd_is_watched(fixture->server, "mail"));
    eventually(atomic_load(&fixture->watched) == 1);
    /* A page that closes is noticed at once, although nothing is sent. */
    (void)close(first);
    (void)close(second);
    eventually(counts.streams == 0);
    assert_false(tide_httpd_is_watched(fixture->server, "state"));
    eventually(atomic_load(&fixture->unwatched) == 1);
    fixture_stop(fixture);
}

TEST(the_thirty_third_stream_is_told_to_come_back)
{
    int fds[TIDE_HTTPD_STREAMS_MAX];
    struct fixture *fixture = fixture_start(NULL);
    struct reply reply;
    for (int i = 0; i < TIDE_HTTPD_STREAMS_MAX; i++)
        fds[i] = stream_ask(fixture, "state", fixture->key);
    eventually(counts.streams == TIDE_HTTPD_STREAMS_MAX);
    const int fd = stream_ask(fixture, "state", fixture->key);
    client_read(fd, &reply);
    assert_int_equal(reply.status, 503);
    assert_true(head_has(&reply, "\r\nRetry-After: 5\r\n"));
    reply_done(&reply);
    (void)close(fd);
    assert_int_equal(get_status(fixture, "/api/v1/state"), 200);
    publish(fixture, "state", "all");
    for (int i = 0; i < TIDE_HTTPD_STREAMS_MAX; i++)
        assert_true(client_read_to(fds[i], "data: all\n\n"));
    (void)close(fds[0]);
    eventually(counts.streams == TIDE_HTTPD_STREAMS_MAX - 1);
    fds[0] = stream_ask(fixture, "state", fixture->key);
    assert_true(client_read_to(fds[0], "data: all\n\n"));
    for (int i = 0; i < TIDE_HTTPD_STREAMS_MAX; i++)
        (void)close(fds[i]);
    fixture_stop(fixture);
}

/* 64 kB of one letter, and a number at the end. */
static void publish_large(struct fixture *fixture, int number)
{
    static char text[TIDE_HTTPD_TOPIC_BYTES_MAX];
    memset(text, 'x', sizeof text);
    const int bytes = snprintf(text, sizeof text, "%d ", number);
    text[bytes] = 'x';
    assert_int_equal(tide_httpd_publish(fixture->server, "state", (tide_text){text, sizeof text}),
                     TIDE_OK);
}

/* The versions in a text of events, one after the other: how many, and the last. */
static void versions_read(const char *text, int *events, int *last)
{
    static const char before[] = "event: state\nid: ";
    while ((text = strstr(text, before)) != NULL) {
        text += sizeof before - 1;
        const int number = (int)strtol(text, NULL, 10);
        assert_true(number > *last);
        *last = number;
        ++*events;
    }
}

TEST(a_slow_reader_skips_to_the_newest)
{
    enum { STATES = 1000, ROOM = 128 << 20 };
    struct fixture *fixture = fixture_start(NULL);
    char *text = malloc(ROOM), wanted[32];
    size_t bytes = 0;
    int events = 0, last = 0;
    const int fd = stream_ask(fixture, "state", fixture->key);
    assert_non_null(text);
    eventually(counts.streams == 1);
    for (int i = 1; i <= STATES; i++) /* 64 MB, more than sockets hold; none of it is read */
        publish_large(fixture, i);
    (void)snprintf(wanted, sizeof wanted, "id: %d\n", STATES);
    do {
        const size_t seen = bytes > 64 ? bytes - 64 : 0;
        const ssize_t count = recv(fd, text + bytes, ROOM - bytes - 1, 0);
        assert_true(count > 0);
        bytes += (size_t)count;
        text[bytes] = '\0';
        if (strstr(text + seen, wanted) != NULL)
            break;
    } while (true);
    versions_read(text, &events, &last);
    assert_int_equal(last, STATES);
    assert_true(events < STATES);
    free(text);
    (void)close(fd);
    fixture_stop(fixture);
}

static void short_send(struct tide_httpd_options *options)
{
    options->send_ms = 300;
}

TEST(a_reader_that_never_reads_is_cut_off)
{
    struct fixture *fixture = fixture_start(short_send);
    const int fd = stream_ask(fixture, "state", fixture->key);
    const int small = 4096;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    eventually(counts.streams == 1);
    struct tide_httpd_counts now;
    int number = 0;
    do {
        publish_large(fixture, ++number);
        tide_httpd_count(fixture->server, &now);
    } while (now.streams == 1);
    assert_true(now.timed_out >= 1);
    (void)close(fd);
    fixture_stop(fixture);
}

static void short_comment(struct tide_httpd_options *options)
{
    options->comment_ms = 20;
}

TEST(a_stream_with_nothing_to_say_says_so)
{
    struct fixture *fixture = fixture_start(short_comment);
    const int fd = stream_ask(fixture, "state", fixture->key);
    assert_true(client_read_to(fd, "\r\n\r\n"));
    for (int i = 0; i < 3; i++)
        assert_true(client_read_to(fd, ":\n\n"));
    (void)close(fd);
    fixture_stop(fixture);
}

TEST(a_revoked_key_ends_its_stream)
{
    struct fixture *fixture = fixture_start(NULL);
    tide_error err;
    publish(fixture, "state", "one");
    const int fd = stream_ask(fixture, "state", fixture->look);
    assert_true(client_read_to(fd, "data: one\n\n"));
    assert_int_equal(tide_keys_revoke(fixture->keys, fixture->look_id, &err), TIDE_OK);
    publish(fixture, "state", "two");
    assert_true(client_read_to(fd, "0\r\n\r\n")); /* the end, and not the state */
    (void)close(fd);
    fixture_stop(fixture);
}

TEST(stopping_ends_streams_properly)
{
    struct fixture *fixture = fixture_start(NULL);
    const int fd = stream_ask(fixture, "state", fixture->key);
    eventually(counts.streams == 1);
    tide_httpd_stop(fixture->server);
    fixture->server = NULL;
    assert_true(client_read_to(fd, "\r\n0\r\n\r\n"));
    (void)close(fd);
    fixture_stop(fixture);
}
