#include "http_bad.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEERS_MAX = 256, REQUEST_BYTES_MAX = 256 << 10 };

struct peer {
    struct test_bad *server;
    pthread_t thread;
    int fd;
};

struct test_bad {
    int listener;
    int stop_fd; /* readable once it is time to go */
    unsigned port;
    uint64_t requests;
    pthread_t thread;
    struct peer peers[PEERS_MAX];
    size_t peers_count;
};

static void must(bool ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

/* Waits until there is something to read; false when it is time to go. */
static bool wait_readable(struct test_bad *server, int fd)
{
    struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
                            {.fd = server->stop_fd, .events = POLLIN}};
    must(poll(fds, 2, -1) >= 0, "poll");
    return fds[1].revents == 0;
}

static void wait_stop(struct test_bad *server)
{
    struct pollfd stop = {.fd = server->stop_fd, .events = POLLIN};
    must(poll(&stop, 1, -1) >= 0, "poll");
}

/* Holds the connection open without a word, until the client or we leave. */
static void hold(struct peer *peer)
{
    char byte = 0;
    if (wait_readable(peer->server, peer->fd))
        (void)!read(peer->fd, &byte, 1);
}

static void say(struct peer *peer, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(peer->fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the client has left; that is its right */
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void say_text(struct peer *peer, const char *text)
{
    say(peer, text, strlen(text));
}

/* Closing with unread input or with this option sends a reset. */
static void reset(struct peer *peer)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};
    must(setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0, "linger");
}

static size_t length_of(const char *head)
{
    for (const char *at = head; (at = strchr(at, '\n')) != NULL;) {
        at++;
        if (strncasecmp(at, "Content-Length:", 15) == 0)
            return strtoull(at + 15, NULL, 10);
    }
    return 0;
}

/* Reads a head, and its body unless the path forbids it.  false: no request. */
static bool request_read(struct peer *peer, char *path, size_t path_room)
{
    char *bytes = calloc(1, REQUEST_BYTES_MAX + 1);
    must(bytes != NULL, "memory");
    size_t count = 0;
    size_t wanted = SIZE_MAX;
    bool whole = false;
    while (!whole && count < REQUEST_BYTES_MAX && wait_readable(peer->server, peer->fd)) {
        ssize_t got = read(peer->fd, bytes + count, REQUEST_BYTES_MAX - count);
        if (got <= 0)
            break;
        count += (size_t)got;
        char *end = strstr(bytes, "\r\n\r\n");
        if (end == NULL)
            continue;
        const char *from = strchr(bytes, ' ');
        size_t path_bytes = from == NULL ? 0 : strcspn(from + 1, " ?");
        must(from != NULL && path_bytes < path_room, "path");
        memcpy(path, from + 1, path_bytes);
        path[path_bytes] = '\0';
        wanted = (size_t)(end + 4 - bytes) + length_of(bytes);
        whole =
            count >= wanted || strcmp(path, "/never-read") == 0 || strcmp(path, "/early-413") == 0;
    }
    free(bytes);
    if (whole)
        (void)__atomic_add_fetch(&peer->server->requests, 1, __ATOMIC_SEQ_CST);
    return whole;
}

#define HEAD "HTTP/1.1 200 OK\r\n"

static void answer_many_headers(struct peer *peer)
{
    say_text(peer, HEAD "Content-Length: 0\r\n");
    for (int i = 0; i < 100; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "X-Number-%d: %d\r\n", i, i);
        say_text(peer, line);
    }
    say_text(peer, "\r\n");
}

/* A preliminary answer with headers of its own, then the real one in chunks
 * with a trailer. */
static void answer_early_hints(struct peer *peer)
{
    say_text(peer, "HTTP/1.1 103 Early Hints\r\n");
    for (int i = 0; i < 60; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "X-Hint-%d: %d\r\n", i, i);
        say_text(peer, line);
    }
    say_text(peer, "\r\n" HEAD);
    for (int i = 0; i < 60; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "X-Final-%d: %d\r\n", i, i);
        say_text(peer, line);
    }
    say_text(peer, "Trailer: X-Trailer\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "5\r\nfinal\r\n0\r\nX-Trailer: late\r\n\r\n");
}

static void answer_long_header(struct peer *peer)
{
    enum { LONG_BYTES = 200000 };
    char *value = malloc(LONG_BYTES);
    must(value != NULL, "memory");
    memset(value, 'x', LONG_BYTES);
    say_text(peer, HEAD "Content-Length: 0\r\nX-Long: ");
    say(peer, value, LONG_BYTES);
    say_text(peer, "\r\n\r\n");
    free(value);
}

static void answer_truncated(struct peer *peer, bool chunked, bool then_hold)
{
    char half[500];
    memset(half, 'h', sizeof half);
    say_text(peer, chunked ? HEAD "Transfer-Encoding: chunked\r\n\r\n3e8\r\n"
                           : HEAD "Content-Length: 1000\r\n\r\n");
    say(peer, half, sizeof half);
    if (then_hold)
        hold(peer);
}

/* A gzip member of "hello hello hello" without its last bytes. */
static const char half_gzip[] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, 3, (char)0xcb, 0x48};

static void answer_half_gzip(struct peer *peer)
{
    char head[200];
    (void)snprintf(head, sizeof head, HEAD "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n",
                   sizeof half_gzip);
    say_text(peer, head);
    say(peer, half_gzip, sizeof half_gzip);
    hold(peer);
}

static void answer(struct peer *peer, const char *path)
{
    char next[64];
    if (strcmp(path, "/reset-after") == 0)
        reset(peer);
    else if (strcmp(path, "/stall-zero") == 0)
        hold(peer);
    else if (strcmp(path, "/stall-head") == 0) {
        say_text(peer, HEAD "Content-Le");
        hold(peer);
    } else if (strcmp(path, "/stall-body") == 0)
        answer_truncated(peer, false, true);
    else if (strcmp(path, "/truncated") == 0)
        answer_truncated(peer, false, false);
    else if (strcmp(path, "/truncated-chunk") == 0)
        answer_truncated(peer, true, false);
    else if (strcmp(path, "/bad-chunk") == 0)
        say_text(peer, HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n");
    else if (strcmp(path, "/bad-gzip") == 0)
        say_text(peer, HEAD "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello");
    else if (strcmp(path, "/half-gzip") == 0)
        answer_half_gzip(peer);
    else if (strcmp(path, "/garbage") == 0)
        say_text(peer, "\x01\x02 this is not HTTP at all\r\n\r\n");
    else if (strcmp(path, "/many-headers") == 0)
        answer_many_headers(peer);
    else if (strcmp(path, "/early-hints") == 0)
        answer_early_hints(peer);
    else if (strcmp(path, "/long-header") == 0)
        answer_long_header(peer);
    else if (strcmp(path, "/early-413") == 0) {
        say_text(peer, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig");
        wait_stop(peer->server);
    } else if (strcmp(path, "/never-read") == 0)
        wait_stop(peer->server);
    else if (strcmp(path, "/one-then-close") == 0) {
        say_text(peer, HEAD "Content-Length: 5\r\n\r\nfirst");
        (void)request_read(peer, next, sizeof next);
    }
}

static void *peer_run(void *arg)
{
    struct peer *peer = arg;
    char path[64] = "";
    /* The first bytes are peeked at: a reset must not read the request. */
    char peek[32] = "";
    if (wait_readable(peer->server, peer->fd))
        (void)recv(peer->fd, peek, sizeof peek - 1, MSG_PEEK);
    if (strstr(peek, "/reset-before") != NULL)
        reset(peer);
    else if (request_read(peer, path, sizeof path))
        answer(peer, path);
    (void)close(peer->fd);
    return NULL;
}

static void *accept_run(void *arg)
{
    struct test_bad *server = arg;
    while (server->peers_count < PEERS_MAX && wait_readable(server, server->listener)) {
        struct peer *peer = &server->peers[server->peers_count];
        peer->server = server;
        peer->fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (peer->fd < 0)
            continue;
        must(pthread_create(&peer->thread, NULL, peer_run, peer) == 0, "thread");
        server->peers_count++;
    }
    return NULL;
}

struct test_bad *test_bad_start(void)
{
    struct test_bad *server = calloc(1, sizeof *server);
    must(server != NULL, "memory");
    server->stop_fd = eventfd(0, EFD_CLOEXEC);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(server->stop_fd >= 0 && server->listener >= 0, "socket");
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    must(bind(server->listener, (struct sockaddr *)&address, bytes) == 0, "bind");
    must(listen(server->listener, 64) == 0, "listen");
    must(getsockname(server->listener, (struct sockaddr *)&address, &bytes) == 0, "name");
    server->port = ntohs(address.sin_port);
    must(pthread_create(&server->thread, NULL, accept_run, server) == 0, "thread");
    return server;
}

void test_bad_stop(struct test_bad *server)
{
    must(eventfd_write(server->stop_fd, 1) == 0, "stop");
    pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->peers_count; i++)
        pthread_join(server->peers[i].thread, NULL);
    close(server->listener);
    close(server->stop_fd);
    free(server);
}

unsigned test_bad_port(struct test_bad *server)
{
    return server->port;
}

uint64_t test_bad_requests(struct test_bad *server)
{
    return __atomic_load_n(&server->requests, __ATOMIC_SEQ_CST);
}
