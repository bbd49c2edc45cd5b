#include "cloud_load.h"

#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_BYTES = 1024, HEAD_BYTES = 4096, BODY_BYTES = 1 << 16, LINKS_MAX = 64 };

struct link {
    int fd;
    bool busy;
    bool in_body;
    int status;
    size_t head_bytes;
    uint64_t body_left;
    char head[HEAD_BYTES];
};

struct run {
    const struct load *load;
    struct link links[LINKS_MAX];
    uint32_t sent;
    uint32_t done;
    struct load_result result;
};

static void link_open(struct link *link, uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int on = 1;
    link->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->fd < 0 || connect(link->fd, (const struct sockaddr *)&to, sizeof to) < 0)
        die("connect", strerror(errno));
    (void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void link_ask(struct run *run, struct link *link)
{
    char target[LINE_BYTES];
    char text[2 * LINE_BYTES];
    run->load->target(run->load->arg, run->sent++, target, sizeof target);
    const int bytes = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
                               target, run->load->headers);
    if (write(link->fd, text, (size_t)bytes) != bytes)
        die("write", strerror(errno));
    link->busy = true;
    link->in_body = false;
    link->head_bytes = 0;
}

static void link_answered(struct run *run, struct link *link)
{
    link->busy = false;
    run->done++;
    if (link->status == 200)
        run->result.ok++;
    else
        run->result.other++;
    if (run->sent < run->load->requests)
        link_ask(run, link);
}

/* The head is complete: reads the length of the body. */
static void link_head(struct run *run, struct link *link)
{
    link->head[link->head_bytes] = '\0';
    const char *length = strcasestr(link->head, "content-length:");
    link->status = (int)strtol(link->head + 9, NULL, 10);
    link->body_left = length == NULL ? 0 : strtoull(length + 15, NULL, 10);
    run->result.bytes += link->body_left;
    link->in_body = true;
}

static void link_take(struct run *run, struct link *link, const char *bytes, size_t count)
{
    while (count > 0 && link->busy) {
        if (link->in_body) {
            const size_t take = count < link->body_left ? count : (size_t)link->body_left;
            link->body_left -= take;
            bytes += take;
            count -= take;
        } else {
            const char *end = memmem(bytes, count, "\r\n\r\n", 4);
            const size_t take = end == NULL ? count : (size_t)(end - bytes) + 4;
            if (link->head_bytes + take >= HEAD_BYTES)
                die("a head too long", strerror(errno));
            memcpy(link->head + link->head_bytes, bytes, take);
            link->head_bytes += take;
            bytes += take;
            count -= take;
            if (end != NULL)
                link_head(run, link);
        }
        if (link->in_body && link->body_left == 0)
            link_answered(run, link);
    }
}

struct load_result load_run(const struct load *load)
{
    static char bytes[BODY_BYTES];
    struct run *run = calloc(1, sizeof *run);
    const int poll = epoll_create1(EPOLL_CLOEXEC);
    if (run == NULL || poll < 0)
        die("start", strerror(errno));
    run->load = load;
    const double start = now_s();
    for (uint32_t i = 0; i < load->connections && i < LINKS_MAX; i++) {
        link_open(&run->links[i], load->port);
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &run->links[i]}};
        (void)epoll_ctl(poll, EPOLL_CTL_ADD, run->links[i].fd, &event);
        link_ask(run, &run->links[i]);
    }
    while (run->done < load->requests) {
        struct epoll_event events[LINKS_MAX];
        const int count = epoll_wait(poll, events, LINKS_MAX, 10000);
        if (count <= 0)
            die("no answer within 10 s", strerror(errno));
        for (int i = 0; i < count; i++) {
            struct link *link = events[i].data.ptr;
            const ssize_t got = read(link->fd, bytes, sizeof bytes);
            if (got <= 0)
                die("the server closed a connection", strerror(errno));
            link_take(run, link, bytes, (size_t)got);
        }
    }
    run->result.seconds = now_s() - start;
    for (uint32_t i = 0; i < load->connections && i < LINKS_MAX; i++)
        (void)close(run->links[i].fd);
    (void)close(poll);
    const struct load_result result = run->result;
    free(run);
    return result;
}
