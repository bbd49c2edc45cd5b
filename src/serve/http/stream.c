/* stream.c - topics, and the streams that carry their newest states (SRV6). */
#include "serve/http/inside.h"

#include <string.h>

struct stream {
    uint32_t wanted;                      /* a bit for each topic */
    uint64_t seen[TIDE_HTTPD_TOPICS_MAX]; /* the version that was sent */
    size_t next;                          /* topics take turns */
    uint64_t comment_due_ms;
    tide_buf out; /* one event */
    size_t out_at;
};

static_assert(TIDE_HTTPD_TOPICS_MAX <= 32, "a bit for each topic");

enum { EVENT_BYTES_MAX = 4 * TIDE_HTTPD_TOPIC_BYTES_MAX };

/* ---- topics ---- */

static struct topic *topic_find(tide_httpd *server, tide_text name)
{
    for (size_t i = 0; i < server->options.topics_count; i++)
        if (tide_text_equal(tide_text_of(server->topics[i].name), name))
            return &server->topics[i];
    return NULL;
}

tide_status tide_httpd_publish(tide_httpd *server, const char *name, tide_text text)
{
    struct topic *topic = topic_find(server, tide_text_of(name));
    if (topic == NULL)
        return TIDE_NOT_FOUND;
    if (text.bytes > TIDE_HTTPD_TOPIC_BYTES_MAX)
        return TIDE_FULL;
    tide_buf copy;
    tide_buf_init(&copy, server->mem, TIDE_HTTPD_TOPIC_BYTES_MAX);
    const tide_status rc = tide_buf_add(&copy, text.data, text.bytes);
    if (rc != TIDE_OK)
        return rc;
    tide_lock_take(server->world, server->lock);
    const bool changed =
        topic->version == 0 || !tide_text_equal(tide_buf_text(&topic->text), tide_buf_text(&copy));
    if (changed) {
        const tide_buf old = topic->text;
        topic->text = copy;
        topic->version++;
        copy = old;
    }
    const bool watched = topic->watchers > 0;
    tide_lock_drop(server->world, server->lock);
    tide_buf_done(&copy);
    if (changed && watched)
        httpd_interrupt(server);
    return TIDE_OK;
}

bool tide_httpd_is_watched(tide_httpd *server, const char *name)
{
    const struct topic *topic = topic_find(server, tide_text_of(name));
    tide_lock_take(server->world, server->lock);
    const bool watched = topic != NULL && topic->watchers > 0;
    tide_lock_drop(server->world, server->lock);
    return watched;
}

static void watch(tide_httpd *server, uint32_t wanted, int change)
{
    uint32_t turned = 0;
    tide_lock_take(server->world, server->lock);
    server->counts.streams = (uint32_t)((int)server->counts.streams + change);
    for (size_t i = 0; i < server->options.topics_count; i++) {
        if (!(wanted & UINT32_C(1) << i))
            continue;
        struct topic *topic = &server->topics[i];
        topic->watchers = (unsigned)((int)topic->watchers + change);
        if (topic->watchers == (change > 0 ? 1u : 0u))
            turned |= UINT32_C(1) << i;
    }
    tide_lock_drop(server->world, server->lock);
    for (size_t i = 0; server->options.watched != NULL && i < server->options.topics_count; i++)
        if (turned & UINT32_C(1) << i)
            server->options.watched(server->options.watched_arg, server->topics[i].name,
                                    change > 0);
}

/* ---- what a stream says next ---- */

static tide_status event_write(const struct topic *topic, tide_buf *out)
{
    tide_text rest = tide_buf_text(&topic->text);
    tide_status rc = tide_buf_print(out, "event: %s\nid: %llu\n", topic->name,
                                    (unsigned long long)topic->version);
    bool more = true;
    while (more && rc == TIDE_OK) {
        const char *end = rest.bytes == 0 ? NULL : memchr(rest.data, '\n', rest.bytes);
        const size_t bytes = end == NULL ? rest.bytes : (size_t)(end - rest.data);
        rc = tide_buf_add_text(out, "data: ");
        if (rc == TIDE_OK && bytes > 0)
            rc = tide_buf_add(out, rest.data, bytes);
        if (rc == TIDE_OK)
            rc = tide_buf_add_text(out, "\n");
        more = end != NULL;
        if (more)
            rest = (tide_text){end + 1, rest.bytes - bytes - 1};
    }
    return rc == TIDE_OK ? tide_buf_add_text(out, "\n") : rc;
}

/* The topic that the stream is behind on and whose turn it is; under the lock. */
static size_t behind_on(const tide_httpd *server, const struct stream *stream)
{
    const size_t count = server->options.topics_count;
    for (size_t i = 0; i < count; i++) {
        const size_t at = (stream->next + i) % count;
        if (stream->wanted & UINT32_C(1) << at && stream->seen[at] != server->topics[at].version)
            return at;
    }
    return TIDE_HTTPD_TOPICS_MAX;
}

/* Writes the next event, if there is one. */
static tide_status compose(tide_httpd *server, struct stream *stream)
{
    tide_status rc = TIDE_OK;
    tide_buf_clear(&stream->out);
    stream->out_at = 0;
    tide_lock_take(server->world, server->lock);
    const size_t at = behind_on(server, stream);
    if (at < TIDE_HTTPD_TOPICS_MAX) {
        rc = event_write(&server->topics[at], &stream->out);
        stream->seen[at] = server->topics[at].version;
        stream->next = at + 1;
    }
    tide_lock_drop(server->world, server->lock);
    if (rc == TIDE_OK && stream->out.bytes == 0 && server->now_ms >= stream->comment_due_ms)
        rc = tide_buf_add_text(&stream->out, ":\n\n");
    return rc;
}

static ssize_t give(struct exchange *exchange, char *bytes, size_t bytes_max)
{
    struct stream *stream = exchange->stream;
    const struct tide_httpd_options *options = &exchange->server->options;
    const size_t left = stream->out.bytes - stream->out_at;
    const size_t count = left < bytes_max ? left : bytes_max;
    memcpy(bytes, stream->out.data + stream->out_at, count);
    stream->out_at += count;
    stream->comment_due_ms = exchange->server->now_ms + options->comment_ms;
    httpd_connection_stage(exchange->connection, STAGE_SENDING, options->send_ms);
    return (ssize_t)count;
}

static bool key_holds(const struct exchange *exchange)
{
    const struct tide_httpd_options *options = &exchange->server->options;
    return exchange->verdict.who.id == 0 || options->still == NULL ||
           options->still(options->authorize_arg, exchange->verdict.who.id);
}

/* Called when the client can take more.  The rest of an event always comes before the end. */
static ssize_t stream_read(void *arg, uint64_t at, char *bytes, size_t bytes_max)
{
    struct exchange *exchange = arg;
    struct stream *stream = exchange->stream;
    tide_httpd *server = exchange->server;
    (void)at;
    if (exchange->connection == NULL || exchange->connection->closing)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (stream->out_at < stream->out.bytes)
        return give(exchange, bytes, bytes_max);
    if (httpd_is_stopping(server) || !key_holds(exchange))
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (compose(server, stream) != TIDE_OK)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (stream->out.bytes > 0)
        return give(exchange, bytes, bytes_max);
    httpd_connection_stage(exchange->connection, STAGE_STREAM,
                           stream->comment_due_ms - server->now_ms);
    httpd_connection_suspend(exchange->connection);
    return 0;
}

static bool stream_is_behind(const struct exchange *exchange)
{
    tide_httpd *server = exchange->server;
    tide_lock_take(server->world, server->lock);
    const bool behind = behind_on(server, exchange->stream) < TIDE_HTTPD_TOPICS_MAX;
    tide_lock_drop(server->world, server->lock);
    return behind;
}

void httpd_streams_feed(tide_httpd *server)
{
    for (struct connection *one = server->connections; one != NULL; one = one->next)
        if (one->stage == STAGE_STREAM && one->suspended &&
            (httpd_is_stopping(server) || stream_is_behind(one->exchange)))
            httpd_connection_resume(one);
}

/* ---- opening and closing ---- */

/* 0, or the status that refuses the list. */
static int topics_read(tide_httpd *server, tide_text list, tide_httpd_scope scope,
                       uint32_t *wanted_out)
{
    uint32_t wanted = 0;
    while (list.bytes > 0) {
        const char *comma = memchr(list.data, ',', list.bytes);
        const size_t bytes = comma == NULL ? list.bytes : (size_t)(comma - list.data);
        const struct topic *topic = topic_find(server, (tide_text){list.data, bytes});
        if (topic == NULL)
            return 400;
        if (topic->scope > scope)
            return 403;
        wanted |= UINT32_C(1) << (topic - server->topics);
        const size_t step = comma == NULL ? bytes : bytes + 1;
        list = (tide_text){list.data + step, list.bytes - step};
    }
    *wanted_out = wanted;
    return wanted == 0 ? 400 : 0;
}

static void response_freed(void *arg)
{
    httpd_exchange_release(arg);
}

static enum MHD_Result stream_start(struct exchange *exchange, uint32_t wanted)
{
    tide_httpd *server = exchange->server;
    struct stream *stream = tide_mem_new(server->mem, sizeof *stream);
    if (stream == NULL)
        return MHD_NO;
    stream->wanted = wanted;
    stream->comment_due_ms = server->now_ms + server->options.comment_ms;
    tide_buf_init(&stream->out, server->mem, EVENT_BYTES_MAX);
    exchange->stream = stream;
    watch(server, wanted, 1);
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, TIDE_HTTPD_TOPIC_BYTES_MAX, stream_read, exchange, response_freed);
    if (response == NULL)
        return MHD_NO;
    exchange->references++;
    exchange->status = 200;
    httpd_send_common_headers(response, &exchange->answer);
    httpd_connection_stage(exchange->connection, STAGE_SENDING, server->options.send_ms);
    const enum MHD_Result result = MHD_queue_response(exchange->connection->mhd, 200, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result httpd_stream_open(struct exchange *exchange)
{
    tide_httpd *server = exchange->server;
    uint32_t wanted = 0;
    const int wrong = topics_read(server, tide_httpd_param(&exchange->request, "topics"),
                                  exchange->verdict.who.scope, &wanted);
    if (wrong == 403)
        return httpd_send_problem(exchange, 403, "scope", "The scope of this key lacks a topic.",
                                  NULL);
    if (wrong != 0)
        return httpd_send_problem(exchange, wrong, "topics", "Name topics that exist: ?topics=a,b",
                                  NULL);
    if (httpd_is_stopping(server) || server->counts.streams >= server->options.streams_max)
        return httpd_send_problem(
            exchange, 503, "streams", "Too many pages are open.",
            &(struct tide_httpd_problem){.help = "Close one of them.", .retry_after_s = 5});
    exchange->answer.status = 200;
    exchange->answer.type = "text/event-stream";
    return exchange->verdict.head ? httpd_send_answer(exchange) : stream_start(exchange, wanted);
}

void httpd_stream_close(struct exchange *exchange)
{
    struct stream *stream = exchange->stream;
    if (stream == NULL)
        return;
    exchange->stream = NULL;
    watch(exchange->server, stream->wanted, -1);
    tide_buf_done(&stream->out);
    tide_mem_free(exchange->server->mem, stream, sizeof *stream);
}
