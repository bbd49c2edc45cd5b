#include "cloudbox/serve/server.h"

#include "base/check.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/serve/gzip.h"
#include "cloudbox/serve/listen.h"
#include "cloudbox/serve/state.h"

#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    /* A target of 64 KiB or as many bytes of headers, with room for the rest.  Not
     * more: the library clears all of it after every request. */
    CONNECTION_BYTES = 96 << 10,
    CONNECTIONS_MAX = 60000,
    IDLE_S = 240,
    KEPT_BYTES_MAX = 1 << 20, /* of a buffer that waits for its next use */
    UNUSED_MAX = 256,
    /* Reserved for a Content-Length, and touched: not much, since it may be false. */
    BODY_FIRST_BYTES = 60 << 10,
    ORIGIN_BYTES_MAX = 300,
};

struct box_server {
    const struct box_settings *settings;
    struct box_shared *shared;
    box_deliver *deliver;
    struct MHD_Daemon *daemon;
    pthread_t thread; /* runs the daemon */
    bool has_thread;
    int wake_fd; /* ends its sleep */
    box_timers *timers;
    box_gzip *gzip;
    struct box_tls_files tls;
    char origin[ORIGIN_BYTES_MAX];
    atomic_bool stopping;
    /* Of the daemon's thread alone. */
    struct box_exchange *unused;
    size_t unused_count;
    char host_origin[ORIGIN_BYTES_MAX]; /* of the request being served */
};

const char *box_server_origin(const box_server *server)
{
    return server->origin;
}

box_timers *box_server_timers(box_server *server)
{
    return server->timers;
}

bool box_server_is_tls(const box_server *server)
{
    return server->settings->tls_cert != NULL;
}

bool box_server_is_stopping(const box_server *server)
{
    return atomic_load_explicit(&server->stopping, memory_order_relaxed);
}

/* ---- exchanges ---- */

static void buffer_rest(tide_buf *buf)
{
    if (buf->capacity > KEPT_BYTES_MAX) {
        tide_mem *mem = buf->mem;
        size_t bytes_max = buf->bytes_max;
        tide_buf_done(buf);
        tide_buf_init(buf, mem, bytes_max);
    } else {
        tide_buf_clear(buf);
    }
}

static void exchange_free(struct box_exchange *exchange)
{
    tide_buf_done(&exchange->target);
    tide_buf_done(&exchange->body);
    tide_buf_done(&exchange->packed);
    box_answer_done(&exchange->answer);
    tide_mem_free(tide_mem_heap(), exchange, sizeof *exchange);
}

static struct box_exchange *exchange_take(box_server *server)
{
    struct box_exchange *exchange = server->unused;
    if (exchange == NULL) {
        exchange = tide_mem_new(tide_mem_heap(), sizeof *exchange);
        TIDE_ASSERT(exchange != NULL);
        tide_buf_init(&exchange->target, tide_mem_heap(), CONNECTION_BYTES);
        tide_buf_init(&exchange->body, tide_mem_heap(), BOX_BODY_BYTES_MAX);
        tide_buf_init(&exchange->packed, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
        box_answer_init(&exchange->answer);
        exchange->server = server;
    } else {
        server->unused = exchange->next;
        server->unused_count--;
        tide_buf body = exchange->answer.body; /* its room is used again */
        box_answer_init(&exchange->answer);
        tide_buf_done(&exchange->answer.body);
        exchange->answer.body = body;
    }
    exchange->references = 1;
    exchange->stage = BOX_STAGE_HEAD;
    exchange->timer.vanished = false;
    exchange->headers_count = 0;
    exchange->served = false;
    exchange->gzipped = false;
    exchange->stalled = false;
    exchange->unkept = false;
    exchange->sent_early = false;
    exchange->trickle_from_ms = 0;
    return exchange;
}

/* A sink and a source belong to the logic: they are used and ended under its lock. */
static void exchange_end_streams(struct box_exchange *exchange)
{
    struct box_shared *shared = exchange->server->shared;
    if (exchange->sink.write == NULL && exchange->answer.source.read == NULL)
        return;
    (void)pthread_mutex_lock(&shared->lock);
    box_sink_done(&exchange->sink);
    box_answer_source(&exchange->answer, NULL);
    (void)pthread_mutex_unlock(&shared->lock);
}

/* Always on the daemon's thread: a response is destroyed with its connection. */
void box_exchange_release(struct box_exchange *exchange)
{
    TIDE_ASSERT(exchange->references > 0);
    if (--exchange->references > 0)
        return;
    box_server *server = exchange->server;
    if (server->unused_count >= UNUSED_MAX) {
        exchange_end_streams(exchange);
        exchange_free(exchange);
        return;
    }
    buffer_rest(&exchange->target);
    buffer_rest(&exchange->body);
    buffer_rest(&exchange->packed);
    buffer_rest(&exchange->answer.body);
    exchange_end_streams(exchange);
    exchange->next = server->unused;
    server->unused = exchange;
    server->unused_count++;
}

/* ---- a request comes in ---- */

/* The target as it is on the wire; an absolute one loses its scheme and host, and
 * may then begin with its query. */
static tide_text origin_form(tide_text target)
{
    size_t at = target.bytes >= 7 && strncasecmp(target.data, "http://", 7) == 0    ? 7
                : target.bytes >= 8 && strncasecmp(target.data, "https://", 8) == 0 ? 8
                                                                                    : 0;
    while (at > 0 && at < target.bytes && target.data[at] != '/' && target.data[at] != '?')
        at++;
    return (tide_text){target.data + at, target.bytes - at};
}

/* The library would take the query apart in its own memory, of which a few thousand
 * parameters leave nothing: such a request was never answered.  We read the target
 * ourselves, so that its copy may end where the query begins. */
static void hide_query(const char *uri)
{
    char *question = uri == NULL ? NULL : strchr((char *)(uintptr_t)uri, '?');
    if (question != NULL && question[1] != '\0')
        question[1] = '\0';
}

static void *request_begins(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct box_exchange *exchange = exchange_take(cls);
    tide_text whole = tide_text_of(uri == NULL ? "" : uri);
    tide_text target = origin_form(whole);
    exchange->connection = connection;
    if (target.bytes < whole.bytes && (target.bytes == 0 || target.data[0] == '?'))
        box_add(&exchange->target, "/", 1);
    box_add(&exchange->target, target.data, target.bytes);
    hide_query(uri);
    return exchange;
}

/* Leaves the library's own copy of the path as it is; it is not read. */
static size_t keep_escapes(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return strlen(text);
}

static enum MHD_Result take_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                   size_t name_bytes, const char *value, size_t value_bytes)
{
    struct box_exchange *exchange = cls;
    (void)kind;
    if (exchange->headers_count == BOX_HEADERS_MAX) {
        exchange->headers_count++; /* one too many is remembered */
        return MHD_NO;
    }
    exchange->headers[exchange->headers_count++] =
        (struct box_header){{name, name_bytes}, {value == NULL ? "" : value, value_bytes}};
    return MHD_YES;
}

static tide_text header_of(const struct box_exchange *exchange, const char *name)
{
    struct box_request request = {.headers = exchange->headers,
                                  .headers_count = exchange->headers_count};
    return box_request_header(&request, name);
}

/* What is wrong with a head; NULL: nothing.  The library itself would do without a
 * Host, take the first Content-Length, and a coding it does not know for a body
 * that never ends. */
static const char *head_wrong(const struct box_exchange *exchange, const char *version,
                              int *status_out)
{
    const tide_text coding = header_of(exchange, "transfer-encoding");
    int announced = coding.data != NULL;
    for (size_t i = 0; i < exchange->headers_count; i++)
        announced += box_is(exchange->headers[i].name, "content-length");
    *status_out = 501;
    if (coding.data != NULL && !box_is(coding, "chunked"))
        return "of the transfer codings only chunked is understood\n";
    *status_out = 400;
    if (header_of(exchange, "host").data == NULL && strcmp(version, MHD_HTTP_VERSION_1_1) == 0)
        return "the Host is missing\n";
    return announced > 1 ? "the length of the body is said twice\n" : NULL;
}

/* Links in answers have the host name that the client used. */
static tide_text origin_of(struct box_exchange *exchange)
{
    box_server *server = exchange->server;
    tide_text host = header_of(exchange, "host");
    if (host.data == NULL || host.bytes == 0 || host.bytes > 255)
        return tide_text_of(server->origin);
    for (size_t i = 0; i < host.bytes; i++)
        if (host.data[i] <= ' ' || host.data[i] >= 127 || strchr("/\\\"<>?#@", host.data[i]))
            return tide_text_of(server->origin);
    (void)snprintf(server->host_origin, sizeof server->host_origin, "http%s://%.*s",
                   box_server_is_tls(server) ? "s" : "", (int)host.bytes, host.data);
    return tide_text_of(server->host_origin);
}

/* The request as far as it is known. */
static struct box_request request_of(struct box_exchange *exchange)
{
    const tide_text method = tide_text_of(exchange->method);
    return (struct box_request){
        .verb = tide_text_equal(method, TIDE_TEXT("HEAD")) ? BOX_GET : box_verb_of(method),
        .target = tide_buf_text(&exchange->target),
        .headers = exchange->headers,
        .headers_count = exchange->headers_count,
        .body = tide_buf_text(&exchange->body),
        .sink = exchange->sink.write == NULL ? NULL : &exchange->sink,
        .origin = origin_of(exchange),
    };
}

/* Whether the body goes to a sink. */
static bool open_sink(struct box_exchange *exchange)
{
    struct box_shared *shared = exchange->server->shared;
    const struct box_request request = request_of(exchange);
    if (request.verb != BOX_POST && request.verb != BOX_PUT && request.verb != BOX_PATCH)
        return false;
    (void)pthread_mutex_lock(&shared->lock);
    const bool sinks = box_cloud_sink(shared->cloud, &request, &exchange->sink);
    (void)pthread_mutex_unlock(&shared->lock);
    return sinks;
}

static enum MHD_Result begin(struct box_exchange *exchange, const char *method, const char *version)
{
    int status = 0;
    exchange->method = method;
    exchange->stage = BOX_STAGE_BODY;
    exchange->started_ms = box_timers_now_ms();
    (void)clock_gettime(CLOCK_REALTIME, &exchange->started);
    (void)MHD_get_connection_values_n(exchange->connection, MHD_HEADER_KIND, take_header, exchange);
    if (exchange->target.bytes > BOX_TARGET_BYTES_MAX)
        return box_wire_refuse(exchange, 414, "the target is too long\n");
    if (exchange->headers_count > BOX_HEADERS_MAX)
        return box_wire_refuse(exchange, 431, "too many headers\n");
    tide_text length = header_of(exchange, "content-length");
    uint64_t bytes = 0;
    const char *wrong = head_wrong(exchange, version, &status);
    if (wrong != NULL)
        return box_wire_refuse(exchange, status, wrong);
    const bool sinks = open_sink(exchange);
    if (length.data == NULL)
        return MHD_YES;
    if (!tide_text_to_u64(length, &bytes) || (!sinks && bytes > BOX_BODY_BYTES_MAX))
        return box_wire_refuse(exchange, 413, "the body is too large\n");
    if (bytes > 0 && !sinks) {
        char *room = tide_buf_reserve(&exchange->body,
                                      bytes < BODY_FIRST_BYTES ? (size_t)bytes : BODY_FIRST_BYTES);
        TIDE_ASSERT(room != NULL);
    }
    return MHD_YES;
}

/* false: it is too large. */
static bool write_body(struct box_exchange *exchange, tide_text piece)
{
    struct box_shared *shared = exchange->server->shared;
    if (exchange->sink.write != NULL) {
        (void)pthread_mutex_lock(&shared->lock);
        const bool taken = box_sink_write(&exchange->sink, piece);
        (void)pthread_mutex_unlock(&shared->lock);
        return taken;
    }
    if (piece.bytes > BOX_BODY_BYTES_MAX - exchange->body.bytes)
        return false;
    box_add(&exchange->body, piece.data, piece.bytes);
    return true;
}

static enum MHD_Result take_body(struct box_exchange *exchange, const char *data, size_t *bytes)
{
    if (!write_body(exchange, (tide_text){data, *bytes})) {
        /* In the middle of a body the library takes no answer. */
        box_wire_refuse_raw(exchange, 413, "the body is too large");
        return MHD_NO;
    }
    *bytes = 0;
    return MHD_YES;
}

static void serve(struct box_exchange *exchange)
{
    box_server *server = exchange->server;
    struct box_shared *shared = server->shared;
    const struct box_request request = request_of(exchange);
    (void)pthread_mutex_lock(&shared->lock);
    const uint64_t now_unix_ms = box_shared_now(shared);
    box_cloud_serve(shared->cloud, &request, now_unix_ms, &exchange->answer);
    uint64_t wake_at_ms =
        server->deliver == NULL ? UINT64_MAX : box_cloud_wake_at_ms(shared->cloud, now_unix_ms);
    (void)pthread_mutex_unlock(&shared->lock);
    exchange->served = true;
    /* A change that could not be written down is not answered. */
    exchange->unkept = shared->state != NULL && box_state_error(shared->state, NULL) != TIDE_OK;
    if (server->deliver != NULL)
        box_deliver_wake_by(server->deliver, wake_at_ms);
}

bool box_server_settled(struct box_exchange *exchange)
{
    struct box_shared *shared = exchange->server->shared;
    struct box_answer *answer = &exchange->answer;
    const uint32_t held_by = answer->plan.held_by;
    if (answer->settle == NULL && held_by == 0)
        return true;
    (void)pthread_mutex_lock(&shared->lock);
    box_cloud_tell_time(shared->cloud, box_shared_now(shared));
    const bool held = held_by != 0 && box_faults_has(box_cloud_faults(shared->cloud), held_by);
    const bool settled =
        answer->settle == NULL || answer->settle(answer->settle_arg, answer->settle_id, answer);
    (void)pthread_mutex_unlock(&shared->lock);
    if (settled)
        answer->settle = NULL;
    return settled && !held;
}

void box_server_read(struct box_exchange *exchange, uint64_t at, char *bytes, size_t count)
{
    struct box_shared *shared = exchange->server->shared;
    const struct box_source *source = &exchange->answer.source;
    (void)pthread_mutex_lock(&shared->lock);
    source->read(source->arg, at, bytes, count);
    (void)pthread_mutex_unlock(&shared->lock);
}

/* A body that comes from a source is not packed: its length is known, that of the packed
 * one is not. */
void box_server_pack(struct box_exchange *exchange)
{
    tide_text body = tide_buf_text(&exchange->answer.body);
    if (body.bytes <= BOX_GZIP_FROM_BYTES ||
        !box_gzip_accepted(header_of(exchange, "accept-encoding")))
        return;
    exchange->gzipped = box_gzip_pack(exchange->server->gzip, body, &exchange->packed);
}

static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *bytes, void **context)
{
    struct box_exchange *exchange = *context;
    (void)cls, (void)url;
    TIDE_ASSERT(exchange != NULL && exchange->connection == connection);
    if (exchange->stage == BOX_STAGE_HEAD)
        return begin(exchange, method, version);
    if (*bytes > 0)
        return take_body(exchange, data, bytes);
    if (!exchange->served)
        serve(exchange);
    return box_wire_answer(exchange);
}

static void note(const struct box_exchange *exchange, enum MHD_RequestTerminationCode code)
{
    tide_text target = tide_buf_text(&exchange->target);
    const char *query = target.bytes == 0 ? NULL : memchr(target.data, '?', target.bytes);
    /* Queries may hold keys and codes: they are not shown. */
    size_t path_bytes = query == NULL ? target.bytes : (size_t)(query - target.data);
    fprintf(stderr, "%s %.*s%s %d %" PRIu64 " bytes %" PRIu64 " ms at %lld.%06ld%s\n",
            exchange->method == NULL ? "?" : exchange->method,
            (int)(path_bytes < 2000 ? path_bytes : 2000), target.data, query == NULL ? "" : "?...",
            exchange->served ? exchange->answer.status : 0,
            exchange->served ? box_answer_bytes(&exchange->answer) : 0,
            box_timers_now_ms() - exchange->started_ms, (long long)exchange->started.tv_sec,
            exchange->started.tv_nsec / 1000,
            code == MHD_REQUEST_TERMINATED_COMPLETED_OK ? "" : ", cut off");
}

static void completed(void *cls, struct MHD_Connection *connection, void **context,
                      enum MHD_RequestTerminationCode code)
{
    box_server *server = cls;
    struct box_exchange *exchange = *context;
    (void)connection;
    if (exchange == NULL)
        return;
    *context = NULL;
    if (exchange->served) {
        struct box_shared *shared = server->shared;
        (void)pthread_mutex_lock(&shared->lock);
        box_cloud_finished(shared->cloud, &exchange->answer.ticket, box_shared_now(shared));
        (void)pthread_mutex_unlock(&shared->lock);
    }
    if (server->settings->verbose && exchange->stage != BOX_STAGE_HEAD)
        note(exchange, code);
    box_exchange_release(exchange);
}

/* ---- starting and stopping ---- */

__attribute__((format(printf, 2, 0))) static void log_library(void *cls, const char *format,
                                                              va_list args)
{
    const box_server *server = cls;
    if (server->settings->verbose)
        (void)vfprintf(stderr, format, args);
}

/* As many connections as descriptors allow, some being needed elsewhere. */
static unsigned connections_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1000;
    limit.rlim_cur = limit.rlim_max < CONNECTIONS_MAX + 64 ? limit.rlim_max : CONNECTIONS_MAX + 64;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur > 128 ? (unsigned)limit.rlim_cur - 64 : 64;
}

static tide_status start_daemon(box_server *server, int listen_fd, tide_error *err)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, server->tls.cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, server->tls.key},
        {MHD_OPTION_END, 0, NULL},
    };
    if (box_server_is_tls(server))
        flags |= MHD_USE_TLS;
    else
        tls[0] = tls[2];
    server->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER, log_library, server,
        MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT, connections_max(),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_S, MHD_OPTION_URI_LOG_CALLBACK, request_begins, server,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, server, MHD_OPTION_NOTIFY_COMPLETED, completed,
        server, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (server->daemon == NULL)
        return tide_error_set(err, TIDE_IO, "the HTTP server did not start%s",
                              box_server_is_tls(server) ? "; is the key the certificate's?" : "");
    return TIDE_OK;
}

void box_server_wake(box_server *server)
{
    uint64_t one = 1;
    (void)!write(server->wake_fd, &one, sizeof one); /* full: it is awake */
}

/* The library could run a thread of its own, but in it a full batch of events (128,
 * MHD 0.9.75) is followed by a second wait before any of them is looked at: 128
 * busy connections would stand still until another client calls.  Waiting here
 * and letting it look without waiting avoids that. */
static void *run(void *arg)
{
    box_server *server = arg;
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    TIDE_ASSERT(info != NULL);
    struct pollfd fds[] = {{.fd = info->epoll_fd, .events = POLLIN},
                           {.fd = server->wake_fd, .events = POLLIN}};
    while (!box_server_is_stopping(server)) {
        MHD_UNSIGNED_LONG_LONG timeout_ms;
        bool limited = MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES;
        (void)poll(fds, 2, !limited ? -1 : timeout_ms > 60000 ? 60000 : (int)timeout_ms);
        uint64_t ignored;
        if (fds[1].revents != 0) /* drained before looking, so that no call is missed */
            (void)!read(server->wake_fd, &ignored, sizeof ignored);
        (void)MHD_run(server->daemon);
    }
    return NULL;
}

static void start_thread(box_server *server)
{
    int rc = pthread_create(&server->thread, NULL, run, server);
    TIDE_ASSERT(rc == 0);
    server->has_thread = true;
}

static void stop_thread(box_server *server)
{
    if (!server->has_thread)
        return;
    box_server_wake(server);
    (void)pthread_join(server->thread, NULL);
}

tide_status box_server_start(const struct box_settings *settings, struct box_shared *shared,
                             box_deliver *deliver, box_server **server_out, tide_error *err)
{
    box_server *server = tide_mem_new(tide_mem_heap(), sizeof *server);
    TIDE_ASSERT(server != NULL);
    server->settings = settings;
    server->shared = shared;
    server->deliver = deliver;
    atomic_init(&server->stopping, false);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    TIDE_ASSERT(server->wake_fd >= 0);

    tide_status rc = TIDE_OK;
    int listen_fd = -1;
    if (settings->tls_cert != NULL)
        rc = box_tls_load(settings->tls_cert, settings->tls_key, &server->tls, err);
    if (rc == TIDE_OK)
        rc = box_listen(settings->host, settings->port, settings->tls_cert != NULL, &listen_fd,
                        server->origin, sizeof server->origin, err);
    if (rc == TIDE_OK) {
        server->timers = box_timers_new(box_wire_ring);
        server->gzip = box_gzip_new();
        rc = start_daemon(server, listen_fd, err);
    }
    if (rc == TIDE_OK)
        start_thread(server);
    if (rc != TIDE_OK) {
        box_server_stop(server);
        return rc;
    }
    *server_out = server;
    return TIDE_OK;
}

void box_server_stop(box_server *server)
{
    if (server == NULL)
        return;
    /* First nothing waits any more, since the library cannot end what is
     * suspended; a connection that resumes now sees `stopping` and closes. */
    atomic_store(&server->stopping, true);
    if (server->timers != NULL)
        box_timers_stop(server->timers);
    stop_thread(server);
    if (server->daemon != NULL)
        MHD_stop_daemon(server->daemon);
    box_timers_free(server->timers);
    box_gzip_free(server->gzip);
    box_tls_files_done(&server->tls);
    (void)close(server->wake_fd);
    while (server->unused != NULL) {
        struct box_exchange *exchange = server->unused;
        server->unused = exchange->next;
        exchange_free(exchange);
    }
    tide_mem_free(tide_mem_heap(), server, sizeof *server);
}
