/* connection.c - connections: their deadlines, and which one makes room (SRV3, SRV4). */
#include "serve/http/inside.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GONE_EVENTS_MAX = 64 };

struct connection *httpd_connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

void httpd_connection_stage(struct connection *connection, httpd_stage stage, uint64_t wait_ms)
{
    const uint64_t now_ms = connection->server->now_ms;
    connection->stage = stage;
    connection->since_ms = now_ms;
    connection->deadline_ms = wait_ms == TIDE_NEVER ? TIDE_NEVER : now_ms + wait_ms;
}

void httpd_connection_cut(struct connection *connection)
{
    connection->closing = true;
    connection->deadline_ms = TIDE_NEVER;
    (void)shutdown(connection->fd, SHUT_RDWR); /* libmicrohttpd reads the end, and closes */
}

/* ---- waiting ---- */

/* libmicrohttpd does not look at a suspended connection, so a client that leaves goes unnoticed.
 * A page that is loaded again and again would soon have used up all streams. */
void httpd_connection_suspend(struct connection *connection)
{
    TIDE_ASSERT(!connection->suspended);
    struct epoll_event event = {.events = EPOLLRDHUP, .data = {.ptr = connection}};
    MHD_suspend_connection(connection->mhd);
    connection->suspended = true;
    (void)epoll_ctl(connection->server->gone_fd, EPOLL_CTL_ADD, connection->fd, &event);
}

void httpd_connection_resume(struct connection *connection)
{
    if (!connection->suspended)
        return;
    (void)epoll_ctl(connection->server->gone_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    connection->suspended = false;
    MHD_resume_connection(connection->mhd);
}

/* A POST goes on without its client: it asked, and may ask again for the result. */
static void connection_gone(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    if (connection->stage == STAGE_READER && exchange->method[0] == 'P') {
        (void)epoll_ctl(connection->server->gone_fd, EPOLL_CTL_DEL, connection->fd, NULL);
        return;
    }
    connection->closing = true;
    if (connection->stage == STAGE_READER)
        httpd_readers_give_up(exchange, TIDE_CANCEL_USER);
    else
        httpd_connection_resume(connection);
}

void httpd_connections_gone(tide_httpd *server)
{
    struct epoll_event events[GONE_EVENTS_MAX];
    const int count = epoll_wait(server->gone_fd, events, GONE_EVENTS_MAX, 0);
    for (int i = 0; i < count; i++)
        connection_gone(events[i].data.ptr);
}

/* ---- deadlines ---- */

static void count_timeout(tide_httpd *server)
{
    tide_lock_take(server->world, server->lock);
    server->counts.timed_out++;
    tide_lock_drop(server->world, server->lock);
}

static void connection_due(struct connection *connection)
{
    switch (connection->stage) {
    case STAGE_HEAD:
    case STAGE_BODY:
    case STAGE_SENDING:
        count_timeout(connection->server);
        httpd_connection_cut(connection);
        break;
    case STAGE_READER:
        count_timeout(connection->server);
        httpd_readers_give_up(connection->exchange, TIDE_CANCEL_STALL);
        break;
    case STAGE_HELD:   /* asked for the last time */
    case STAGE_STREAM: /* a comment is due */
        httpd_connection_resume(connection);
        break;
    }
}

void httpd_connections_due(tide_httpd *server)
{
    for (struct connection *one = server->connections; one != NULL; one = one->next)
        if (one->deadline_ms <= server->now_ms)
            connection_due(one);
}

uint64_t httpd_connections_next_ms(const tide_httpd *server)
{
    uint64_t next_ms = TIDE_NEVER;
    for (const struct connection *one = server->connections; one != NULL; one = one->next)
        if (one->deadline_ms < next_ms)
            next_ms = one->deadline_ms;
    return next_ms;
}

/* ---- coming and going ---- */

/* Unknown clients make room before known ones, those between requests before those that send a
 * body, and then the one that has been there the longest. */
static int worth(const struct connection *connection)
{
    return (connection->stage == STAGE_BODY ? 1 : 0) + (connection->known ? 2 : 0);
}

static struct connection *choose_victim(tide_httpd *server, const struct connection *newest)
{
    struct connection *victim = NULL;
    for (struct connection *one = server->connections; one != NULL; one = one->next) {
        if (one == newest || one->closing || (one->stage != STAGE_HEAD && one->stage != STAGE_BODY))
            continue;
        if (victim == NULL || worth(one) < worth(victim) ||
            (worth(one) == worth(victim) && one->since_ms <= victim->since_ms))
            victim = one;
    }
    return victim;
}

static uint32_t count_connections(tide_httpd *server, int change)
{
    tide_lock_take(server->world, server->lock);
    struct tide_httpd_counts *counts = &server->counts;
    counts->connections = (uint32_t)((int)counts->connections + change);
    if (counts->connections > counts->connections_peak)
        counts->connections_peak = counts->connections;
    const uint32_t count = counts->connections;
    tide_lock_drop(server->world, server->lock);
    return count;
}

static void make_room(tide_httpd *server, struct connection *newest)
{
    struct connection *victim = choose_victim(server, newest);
    tide_lock_take(server->world, server->lock);
    server->counts.evicted++;
    tide_lock_drop(server->world, server->lock);
    if (victim == NULL) { /* all of them are at work */
        httpd_send_raw(newest->fd, 503, "full", "Too many connections.");
        victim = newest;
    }
    httpd_connection_cut(victim);
}

static void connection_start(tide_httpd *server, struct MHD_Connection *mhd, void **context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *connection = tide_mem_new(server->mem, sizeof *connection);
    *context = connection;
    if (connection == NULL) {
        (void)shutdown(info->connect_fd, SHUT_RDWR);
        return;
    }
    connection->server = server;
    connection->mhd = mhd;
    connection->fd = info->connect_fd;
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->prev = connection;
    server->connections = connection;
    httpd_connection_stage(connection, STAGE_HEAD, server->options.head_ms);
    if (count_connections(server, 1) > server->options.connections_max)
        make_room(server, connection);
}

static void connection_end(tide_httpd *server, struct connection *connection)
{
    if (connection == NULL)
        return;
    TIDE_ASSERT(!connection->suspended);
    if (connection->exchange != NULL)
        connection->exchange->connection = NULL;
    if (connection->prev != NULL)
        connection->prev->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next != NULL)
        connection->next->prev = connection->prev;
    (void)count_connections(server, -1);
    tide_mem_free(server->mem, connection, sizeof *connection);
}

void httpd_connection_notify(void *arg, struct MHD_Connection *mhd, void **context,
                             enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_start(arg, mhd, context);
    else
        connection_end(arg, *context);
}
