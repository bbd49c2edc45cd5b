/* server.c - starting, the loop of the server's thread, stopping. */
#include "serve/http/inside.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024, /* a burst of connections must not wait for a second SYN */
    /* A head of the largest size and the head of an answer. */
    CONNECTION_BYTES = 48 << 10,
    /* Connections that were told to close and have not done so yet. */
    CONNECTIONS_SPARE = 32,
    POLL_MS_MAX = 60000,
    STOP_MS = 1000, /* for what is being sent when the server stops */
};

void httpd_interrupt(tide_httpd *server)
{
    const uint64_t one = 1;
    (void)!write(server->wake_fd, &one, sizeof one); /* full: it is awake */
}

void tide_httpd_wake(tide_httpd *server)
{
    tide_lock_take(server->world, server->lock);
    server->woken = true;
    tide_lock_drop(server->world, server->lock);
    httpd_interrupt(server);
}

void tide_httpd_count(tide_httpd *server, struct tide_httpd_counts *counts_out)
{
    tide_lock_take(server->world, server->lock);
    *counts_out = server->counts;
    tide_lock_drop(server->world, server->lock);
}

uint16_t tide_httpd_port(const tide_httpd *server)
{
    return server->port;
}

/* ---- the loop ---- */

static void held_ask(tide_httpd *server)
{
    tide_lock_take(server->world, server->lock);
    const bool woken = server->woken;
    server->woken = false;
    tide_lock_drop(server->world, server->lock);
    if (!woken && !httpd_is_stopping(server))
        return;
    for (struct connection *one = server->connections; one != NULL; one = one->next)
        if (one->stage == STAGE_HELD)
            httpd_connection_resume(one);
}

/* Nothing stays suspended: libmicrohttpd cannot stop then. */
static void hurry(tide_httpd *server)
{
    for (struct connection *one = server->connections; one != NULL; one = one->next) {
        if (one->stage == STAGE_READER && !one->exchange->given_up)
            httpd_readers_give_up(one->exchange, TIDE_CANCEL_STOP);
        else if ((one->stage == STAGE_HEAD || one->stage == STAGE_BODY) && !one->closing)
            httpd_connection_cut(one);
    }
}

static void step(tide_httpd *server)
{
    server->now_ms = tide_world_now_ms(server->world);
    httpd_readers_ended(server);
    httpd_connections_gone(server);
    if (httpd_is_stopping(server))
        hurry(server);
    held_ask(server);
    httpd_streams_feed(server);
    (void)MHD_run(server->daemon);
    /* After it: bytes that arrived in time count, also if this thread was late to read them. */
    httpd_connections_due(server);
}

static int sleep_ms(tide_httpd *server)
{
    MHD_UNSIGNED_LONG_LONG library_ms = 0;
    uint64_t next_ms = httpd_connections_next_ms(server);
    if (next_ms != TIDE_NEVER) {
        const uint64_t now_ms = tide_world_now_ms(server->world);
        next_ms = next_ms > now_ms ? next_ms - now_ms : 0;
    }
    if (MHD_get_timeout(server->daemon, &library_ms) == MHD_YES && library_ms < next_ms)
        next_ms = library_ms;
    if (next_ms == TIDE_NEVER)
        return -1;
    return next_ms > POLL_MS_MAX ? POLL_MS_MAX : (int)next_ms;
}

/* libmicrohttpd could run a thread of its own.  In it a full batch of events is followed by a second
 * wait before any of them is looked at (0.9.75); and our deadlines would need a second thread. */
static void loop(void *arg)
{
    tide_httpd *server = arg;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    TIDE_ASSERT(info != NULL);
    struct pollfd fds[] = {{.fd = info->epoll_fd, .events = POLLIN},
                           {.fd = server->wake_fd, .events = POLLIN},
                           {.fd = server->gone_fd, .events = POLLIN}};
    uint64_t stop_by_ms = TIDE_NEVER;
    for (;;) {
        uint64_t ignored;
        step(server);
        if (httpd_is_stopping(server)) {
            if (stop_by_ms == TIDE_NEVER) {
                stop_by_ms = server->now_ms + STOP_MS;
                const int listen_fd = MHD_quiesce_daemon(server->daemon);
                if (listen_fd >= 0)
                    (void)close(listen_fd);
                step(server);
            }
            if (server->connections == NULL || server->now_ms >= stop_by_ms)
                break;
        }
        int wait_ms = sleep_ms(server);
        if (stop_by_ms != TIDE_NEVER && (wait_ms < 0 || wait_ms > STOP_MS / 10))
            wait_ms = STOP_MS / 10;
        (void)poll(fds, 3, wait_ms);
        if (fds[1].revents != 0) /* drained before looking, so that no call is missed */
            (void)!read(server->wake_fd, &ignored, sizeof ignored);
    }
}

/* ---- starting ---- */

static tide_status listen_on(tide_httpd *server, tide_error *err)
{
    const uint16_t port = server->options.port;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    const int on = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tide_error_os(err, errno, "make a socket");
    server->listen_fd = fd;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* Connections inherit it: no answer waits for an acknowledgement. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0) {
        if (errno == EADDRINUSE)
            return tide_error_set(err, TIDE_BUSY, "port %u is taken: another program listens there",
                                  port);
        return tide_error_os(err, errno, "listen on 127.0.0.1:%u", port);
    }
    if (getsockname(fd, (struct sockaddr *)&address, &bytes) != 0)
        return tide_error_os(err, errno, "ask for the port");
    server->port = ntohs(address.sin_port);
    return TIDE_OK;
}

/* Leaves the library's copy of the path as it is; it is not read. */
static size_t keep_escapes(void *arg, struct MHD_Connection *mhd, char *text)
{
    (void)arg, (void)mhd;
    return strlen(text);
}

static void log_nothing(void *arg, const char *format, va_list args)
{
    (void)arg, (void)format, (void)args;
}

static tide_status start_library(tide_httpd *server, tide_error *err)
{
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
        httpd_exchange_handle, server, MHD_OPTION_EXTERNAL_LOGGER, log_nothing, NULL,
        MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(server->options.connections_max + CONNECTIONS_SPARE),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        0u, MHD_OPTION_URI_LOG_CALLBACK, httpd_exchange_begin, server, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, server, MHD_OPTION_NOTIFY_COMPLETED, httpd_exchange_completed, server,
        MHD_OPTION_NOTIFY_CONNECTION, httpd_connection_notify, server, MHD_OPTION_END);
    if (server->daemon == NULL)
        return tide_error_set(err, TIDE_IO, "the HTTP server did not start");
    server->listen_fd = -1;
    return TIDE_OK;
}

static void or_default(uint32_t *value, uint32_t by_default)
{
    if (*value == 0)
        *value = by_default;
}

static void check_routes(const struct tide_httpd_options *options)
{
    TIDE_ASSERT(options->routes_count <= TIDE_HTTPD_ROUTES_MAX);
    TIDE_ASSERT(options->topics_count <= TIDE_HTTPD_TOPICS_MAX);
    for (size_t i = 0; i < options->routes_count; i++) {
        const struct tide_httpd_route *route = &options->routes[i];
        TIDE_ASSERT(route->path[0] == '/');
        TIDE_ASSERT((route->flags & TIDE_HTTPD_ANY_HOST) ==
                    (options->routes[0].flags & TIDE_HTTPD_ANY_HOST));
        TIDE_ASSERT(route->handler != NULL || route->way == TIDE_HTTPD_STREAM);
        TIDE_ASSERT(route->scope == TIDE_HTTPD_NONE || options->authorize != NULL);
        if (strcmp(route->method, "POST") == 0 && !(route->flags & TIDE_HTTPD_REPEATS)) {
            TIDE_ASSERT(route->way == TIDE_HTTPD_READER); /* the ledger is asked */
            TIDE_ASSERT(options->once.begin != NULL && options->once.end != NULL);
        }
    }
}

static void take_options(tide_httpd *server, const struct tide_httpd_options *options)
{
    check_routes(options);
    server->options = *options;
    or_default(&server->options.connections_max, TIDE_HTTPD_CONNECTIONS_MAX);
    or_default(&server->options.streams_max, TIDE_HTTPD_STREAMS_MAX);
    or_default(&server->options.bodies_bytes_max, TIDE_HTTPD_BODIES_BYTES_MAX);
    or_default(&server->options.head_ms, 20000);
    or_default(&server->options.body_ms, 30000);
    or_default(&server->options.reader_ms, 2000);
    or_default(&server->options.fetch_ms, 12000);
    or_default(&server->options.send_ms, 30000);
    or_default(&server->options.comment_ms, 15000);
    for (size_t i = 0; i < options->topics_count; i++) {
        server->topics[i].name = options->topics[i].name;
        server->topics[i].scope = options->topics[i].scope;
    }
}

static tide_status make_parts(tide_httpd *server, tide_error *err)
{
    tide_status rc = tide_lock_new(server->world, &server->lock);
    if (rc == TIDE_OK)
        rc = httpd_readers_make(server);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for the HTTP server");
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->gone_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->wake_fd < 0 || server->gone_fd < 0)
        return tide_error_os(err, errno, "make the events of the HTTP server");
    return TIDE_OK;
}

tide_status tide_httpd_start(tide_world *world, tide_mem *mem,
                             const struct tide_httpd_options *options, tide_httpd **server_out,
                             tide_error *err)
{
    tide_httpd *server = tide_mem_new(mem, sizeof *server);
    if (server == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the HTTP server");
    server->world = world;
    server->mem = mem;
    server->listen_fd = server->wake_fd = server->gone_fd = -1;
    server->now_ms = tide_world_now_ms(world);
    atomic_init(&server->stopping, false);
    take_options(server, options);
    tide_status rc = make_parts(server, err);
    if (rc == TIDE_OK)
        rc = listen_on(server, err);
    if (rc == TIDE_OK)
        rc = start_library(server, err);
    if (rc == TIDE_OK)
        rc = httpd_readers_start(server, err);
    if (rc == TIDE_OK)
        rc = tide_world_thread(world, "http", loop, server, &server->thread, err);
    if (rc != TIDE_OK) {
        tide_httpd_stop(server);
        return rc;
    }
    *server_out = server;
    return TIDE_OK;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

void tide_httpd_stop(tide_httpd *server)
{
    if (server == NULL)
        return;
    atomic_store_explicit(&server->stopping, true, memory_order_release);
    if (server->thread != NULL) {
        httpd_interrupt(server);
        tide_world_join(server->world, server->thread);
    }
    if (server->lock != NULL) {
        httpd_readers_stop(server);
        httpd_readers_ended(server);
    }
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    close_fd(server->listen_fd);
    close_fd(server->wake_fd);
    close_fd(server->gone_fd);
    for (size_t i = 0; i < server->options.topics_count; i++)
        tide_buf_done(&server->topics[i].text);
    httpd_readers_free(server);
    if (server->lock != NULL)
        tide_lock_free(server->world, server->lock);
    tide_mem_free(server->mem, server, sizeof *server);
}
