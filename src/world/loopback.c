#include "world/loopback.h"

#include "base/check.h"
#include "base/limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOOK_MS = 50, BACKLOG = 16 };

struct peer {
    int fd; /* -1: the place is free */
    uint64_t order;
    size_t bytes;
    char head[TIDE_LOOPBACK_HEAD_BYTES_MAX];
};

struct tide_loopback {
    tide_mem *mem;
    int listener;
    unsigned port;
    uint64_t accepted;
    struct peer peers[TIDE_LOOPBACK_PEERS_MAX];
};

/* ---- reading a request ---- */

/* Takes a line off the front, without its end. */
static bool take_line(tide_text *rest, tide_text *line_out)
{
    const char *end = rest->bytes == 0 ? NULL : memchr(rest->data, '\n', rest->bytes);
    if (end == NULL)
        return false;
    size_t bytes = (size_t)(end - rest->data);
    *line_out = (tide_text){rest->data, bytes};
    if (bytes > 0 && rest->data[bytes - 1] == '\r')
        line_out->bytes--;
    rest->data += bytes + 1;
    rest->bytes -= bytes + 1;
    return true;
}

static bool is_visible(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
            return false;
    return text.bytes > 0;
}

/* "GET /path?query HTTP/1.1" */
static int line_read(tide_text line, tide_text *target_out)
{
    const char *first = line.bytes == 0 ? NULL : memchr(line.data, ' ', line.bytes);
    const char *last = line.bytes == 0 ? NULL : memrchr(line.data, ' ', line.bytes);
    if (first == NULL || first == last)
        return 400;
    const tide_text method = {line.data, (size_t)(first - line.data)};
    const tide_text target = {first + 1, (size_t)(last - first - 1)};
    const tide_text version = {last + 1, line.bytes - (size_t)(last + 1 - line.data)};
    if (!is_visible(method) || !is_visible(target) || target.data[0] != '/')
        return 400;
    if (!tide_text_equal(version, TIDE_TEXT("HTTP/1.1")) &&
        !tide_text_equal(version, TIDE_TEXT("HTTP/1.0")))
        return 505;
    if (!tide_text_equal(method, TIDE_TEXT("GET")))
        return 405;
    *target_out = target;
    return 200;
}

static bool is_host(tide_text line)
{
    return line.bytes >= 5 && strncasecmp(line.data, "host:", 5) == 0;
}

static bool host_is_ours(tide_text line, unsigned port)
{
    char ours[2][32];
    (void)snprintf(ours[0], sizeof ours[0], "127.0.0.1:%u", port);
    (void)snprintf(ours[1], sizeof ours[1], "localhost:%u", port);
    tide_text host = {line.data + 5, line.bytes - 5};
    while (host.bytes > 0 && (host.data[0] == ' ' || host.data[0] == '\t')) {
        host.data++;
        host.bytes--;
    }
    while (host.bytes > 0 && host.data[host.bytes - 1] == ' ')
        host.bytes--;
    return tide_text_equal(host, tide_text_of(ours[0])) ||
           tide_text_equal(host, tide_text_of(ours[1]));
}

int tide_loopback_head_read(tide_text head, unsigned port, tide_text *target_out)
{
    tide_text line;
    tide_text target = TIDE_TEXT_NONE;
    if (!take_line(&head, &line))
        return 400;
    const int http = line_read(line, &target);
    if (http != 200)
        return http;
    size_t hosts = 0;
    while (take_line(&head, &line) && line.bytes > 0) {
        if (!is_host(line))
            continue;
        if (!host_is_ours(line, port)) /* LOOP1 */
            return 421;
        hosts++;
    }
    if (hosts != 1)
        return 400;
    *target_out = target;
    return 200;
}

/* ---- answering ---- */

/* One write: it fits any socket's buffer, and a client that does not read it does not get it. */
static void answer(int fd, int http, const char *sentence)
{
    char page[512];
    char whole[1024];
    const int page_bytes = snprintf(page, sizeof page,
                                    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
                                    "<title>Tidemark</title><p>%s</p></html>\n",
                                    sentence);
    TIDE_ASSERT(page_bytes > 0 && (size_t)page_bytes < sizeof page);
    const int bytes = snprintf(whole, sizeof whole,
                               "HTTP/1.1 %d %s\r\n"
                               "Content-Type: text/html; charset=utf-8\r\n"
                               "Content-Length: %d\r\n"
                               "Cache-Control: no-store\r\n"
                               "Content-Security-Policy: default-src 'none'\r\n"
                               "Referrer-Policy: no-referrer\r\n"
                               "X-Content-Type-Options: nosniff\r\n"
                               "Connection: close\r\n\r\n%s",
                               http, http == 200 ? "OK" : "Refused", page_bytes, page);
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < sizeof whole);
    (void)send(fd, whole, (size_t)bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_WR);
    /* Closing with unread bytes would reset the connection, and the page would be lost. */
    char rest[4096];
    for (int i = 0; i < 16 && recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0; i++)
        ;
}

static void peer_end(struct peer *peer)
{
    if (peer->fd >= 0)
        (void)close(peer->fd);
    peer->fd = -1;
    explicit_bzero(peer->head, peer->bytes); /* it contained a code */
    peer->bytes = 0;
}

/* ---- connections ---- */

static bool head_is_whole(const struct peer *peer)
{
    return memmem(peer->head, peer->bytes, "\r\n\r\n", 4) != NULL ||
           memmem(peer->head, peer->bytes, "\n\n", 2) != NULL;
}

/* A complete head: true when the caller took the target. */
static bool peer_serve(tide_loopback *self, struct peer *peer, tide_loopback_look *look,
                       void *look_arg)
{
    const char *sentence = "This is not a page for browsers.";
    tide_text target = TIDE_TEXT_NONE;
    tide_loopback_verdict verdict = TIDE_LOOPBACK_WRONG;
    int http = tide_loopback_head_read((tide_text){peer->head, peer->bytes}, self->port, &target);
    if (http == 200) {
        verdict = look(look_arg, target, &sentence);
        if (verdict == TIDE_LOOPBACK_WRONG)
            http = 400;
        else if (verdict == TIDE_LOOPBACK_ELSEWHERE)
            http = 404;
    }
    answer(peer->fd, http, sentence);
    peer_end(peer);
    return http == 200;
}

static bool peer_read(tide_loopback *self, struct peer *peer, tide_loopback_look *look,
                      void *look_arg)
{
    const ssize_t got =
        recv(peer->fd, peer->head + peer->bytes, sizeof peer->head - peer->bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (got <= 0) {
        peer_end(peer);
        return false;
    }
    peer->bytes += (size_t)got;
    if (head_is_whole(peer))
        return peer_serve(self, peer, look, look_arg);
    if (peer->bytes == sizeof peer->head) {
        answer(peer->fd, 431, "The request is too long.");
        peer_end(peer);
    }
    return false;
}

/* A free entry, else the oldest one (LOOP2). */
static struct peer *peer_place(tide_loopback *self)
{
    struct peer *place = &self->peers[0];
    for (size_t i = 0; i < TIDE_LOOPBACK_PEERS_MAX; i++) {
        struct peer *peer = &self->peers[i];
        if (peer->fd < 0)
            return peer;
        if (peer->order < place->order)
            place = peer;
    }
    peer_end(place);
    return place;
}

static void peer_accept(tide_loopback *self)
{
    const int fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            (void)poll(NULL, 0, LOOK_MS); /* still readable; polling at once would spin */
        return;
    }
    struct peer *peer = peer_place(self);
    peer->fd = fd;
    peer->order = ++self->accepted;
}

/* Polls all sockets once; true when a target was taken. */
static bool serve_once(tide_loopback *self, int timeout_ms, tide_loopback_look *look,
                       void *look_arg)
{
    struct pollfd fds[TIDE_LOOPBACK_PEERS_MAX + 1];
    for (size_t i = 0; i < TIDE_LOOPBACK_PEERS_MAX; i++) /* poll() skips negative ones */
        fds[i] = (struct pollfd){.fd = self->peers[i].fd, .events = POLLIN};
    fds[TIDE_LOOPBACK_PEERS_MAX] = (struct pollfd){.fd = self->listener, .events = POLLIN};
    if (poll(fds, TIDE_LOOPBACK_PEERS_MAX + 1, timeout_ms) <= 0)
        return false;
    for (size_t i = 0; i < TIDE_LOOPBACK_PEERS_MAX; i++)
        if (fds[i].fd >= 0 && fds[i].revents != 0 &&
            peer_read(self, &self->peers[i], look, look_arg))
            return true;
    if (fds[TIDE_LOOPBACK_PEERS_MAX].revents != 0)
        peer_accept(self);
    return false;
}

tide_status tide_loopback_wait(tide_loopback *self, tide_world *world, uint64_t wait_ms,
                               const tide_cancel *cancel, tide_loopback_look *look, void *look_arg,
                               tide_error *err)
{
    TIDE_ASSERT(look != NULL);
    const uint64_t start_ms = tide_world_now_ms(world);
    const uint64_t deadline_ms = wait_ms > TIDE_NEVER - start_ms ? TIDE_NEVER : start_ms + wait_ms;
    for (;;) {
        if (tide_world_dead(world))
            return tide_error_set(err, TIDE_STOPPED, "stopped");
        if (cancel != NULL && tide_canceled(cancel) != TIDE_CANCEL_NONE)
            return tide_error_set(err, TIDE_CANCELED, "canceled");
        const uint64_t now_ms = tide_world_now_ms(world);
        if (now_ms >= deadline_ms)
            return tide_error_set(err, TIDE_TIMEOUT, "the browser did not answer in time");
        uint64_t slice_ms = deadline_ms - now_ms;
        if (cancel != NULL && slice_ms > LOOK_MS)
            slice_ms = LOOK_MS;
        if (serve_once(self, slice_ms > INT_MAX ? INT_MAX : (int)slice_ms, look, look_arg))
            return TIDE_OK;
    }
}

/* ---- open and close ---- */

static tide_status listen_here(tide_loopback *self, tide_error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    self->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self->listener < 0 ||
        bind(self->listener, (const struct sockaddr *)&address, sizeof address) < 0 ||
        listen(self->listener, BACKLOG) < 0 ||
        getsockname(self->listener, (struct sockaddr *)&address, &bytes) < 0)
        return tide_error_os(err, errno, "listen on 127.0.0.1");
    self->port = ntohs(address.sin_port);
    return TIDE_OK;
}

tide_status tide_loopback_open(tide_mem *mem, tide_loopback **loopback_out, tide_error *err)
{
    tide_loopback *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to listen for the browser");
    self->mem = mem;
    for (size_t i = 0; i < TIDE_LOOPBACK_PEERS_MAX; i++)
        self->peers[i].fd = -1;
    tide_status rc = listen_here(self, err);
    if (rc != TIDE_OK) {
        tide_loopback_close(self);
        return rc;
    }
    *loopback_out = self;
    return TIDE_OK;
}

void tide_loopback_close(tide_loopback *self)
{
    if (self == NULL)
        return;
    for (size_t i = 0; i < TIDE_LOOPBACK_PEERS_MAX; i++)
        peer_end(&self->peers[i]);
    if (self->listener >= 0)
        (void)close(self->listener);
    tide_mem_free(self->mem, self, sizeof *self);
}

unsigned tide_loopback_port(const tide_loopback *self)
{
    return self->port;
}
