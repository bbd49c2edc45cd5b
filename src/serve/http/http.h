/* http.h - the local HTTP server: page, API, metrics, live updates.
 *
 *     static const struct tide_httpd_route routes[] = {
 *         {.method = "GET", .path = "/", .handler = tide_httpd_site_index,
 *          .flags = TIDE_HTTPD_ANYWHERE},
 *         {.method = "GET", .path = "/app/{digest}/{file}", .handler = tide_httpd_site_file},
 *         {.method = "GET", .path = "/api/v1/state", .scope = TIDE_HTTPD_LOOK,
 *          .way = TIDE_HTTPD_READER, .handler = state_get, .arg = &app},
 *         {.method = "GET", .path = "/api/v1/stream", .scope = TIDE_HTTPD_LOOK,
 *          .way = TIDE_HTTPD_STREAM},
 *     };
 *     static const struct tide_httpd_topic topics[] = {{"state", TIDE_HTTPD_LOOK}};
 *     struct tide_httpd_options options = {.port = 7433, .routes = routes, .routes_count = 4,
 *         .topics = topics, .topics_count = 1, .authorize = tide_keys_authorize, ...};
 *     tide_httpd_start(world, mem, &options, &server, &err);
 *     tide_httpd_publish(server, "state", json);     (any thread, as often as it changes)
 *     tide_httpd_stop(server);
 *
 * It knows nothing of what it serves.  It listens on 127.0.0.1 alone and uses real sockets, so it
 * is for the real world only.  The threads are
 *   - the server's own: runs libmicrohttpd, checks requests, answers from memory, feeds streams
 *   - readers, TIDE_HTTPD_READERS of them, if a route needs them: run handlers that touch a disk
 *   - fetchers, TIDE_HTTPD_FETCHERS of them, if a route needs them: run handlers that wait for other
 *     machines, so that a slow one never keeps the readers from the page.
 *
 * Invariants:
 *   SRV1  only the server's thread calls libmicrohttpd.  Other threads put what they have into a
 *         list under the lock and wake it.
 *   SRV2  no handler runs and no body is read before tide_httpd_admit() said yes (route.h).
 *   SRV3  everything is bounded: connections, heads, bodies of all requests together, requests
 *         that wait for a reader, held requests, streams.  What is full answers 503 with Retry-After;
 *         a new connection closes the one that has been silent the longest, unknown clients
 *         first, so that silent connections never keep a person out.
 *   SRV4  every state of a connection has a deadline that arriving bytes do not extend: the head
 *         (head_ms from its start), the body (body_ms), a reader (reader_ms), a fetcher (fetch_ms), and for an answer the
 *         time in which the client must take its next block (send_ms).
 *   SRV5  a reader that overruns is canceled and its client gets 503; the request's memory stays until
 *         the handler has returned.
 *   SRV6  a stream carries states, not a log: each topic has a version, and a client that can take
 *         more gets the newest of what it is behind on.  Nothing is queued for it.
 *   SRV7  without connections the server's thread sleeps without a timeout.
 *   SRV8  after tide_httpd_stop() begins no handler starts; streams end properly.
 *   SRV9  a client that closes, also only its sending side, while it waits is gone: its stream
 *         ends, its reader is canceled.  A POST or PUT goes on without it.
 */
#ifndef TIDE_SERVE_HTTP_HTTP_H
#define TIDE_SERVE_HTTP_HTTP_H

#include "serve/http/answer.h"

#include <assert.h>

typedef struct tide_httpd tide_httpd;

enum {
    TIDE_HTTPD_CONNECTIONS_MAX = 256,
    TIDE_HTTPD_BODIES_BYTES_MAX = 64 << 20, /* of all requests together */
    TIDE_HTTPD_READERS = 4,
    TIDE_HTTPD_FETCHERS = 4,
    TIDE_HTTPD_QUEUE_MAX = 64, /* requests that wait for a reader or fetcher */
    TIDE_HTTPD_HELD_MAX = 16,
    TIDE_HTTPD_STREAMS_MAX = 32,
    TIDE_HTTPD_TOPICS_MAX = 32,
    TIDE_HTTPD_TOPIC_BYTES_MAX = 64 << 10,
};

static_assert(TIDE_HTTPD_STREAMS_MAX + TIDE_HTTPD_QUEUE_MAX + TIDE_HTTPD_HELD_MAX +
                      TIDE_HTTPD_READERS + TIDE_HTTPD_FETCHERS <
                  TIDE_HTTPD_CONNECTIONS_MAX,
              "what waits never fills the connections");

/* What streams may be subscribed to: /stream?topics=state,jobs */
struct tide_httpd_topic {
    const char *name; /* letters and digits */
    tide_httpd_scope scope;
};

/* Makes a POST happen once per Idempotency-Key: called on a reader's thread, before and after
 * the handler.  `digest` is SHA-256 over method, target and body. */
typedef enum tide_httpd_again {
    TIDE_HTTPD_FIRST,   /* run the handler, then call `end`; asked_unix_ms_out is set */
    TIDE_HTTPD_STORED,  /* `answer` is filled in with what was answered then */
    TIDE_HTTPD_RUNNING, /* the first one has not ended: 503 */
    TIDE_HTTPD_OTHER,   /* the key was used for another request: 422 */
    TIDE_HTTPD_CANNOT,  /* the ledger could not be asked: 503 */
} tide_httpd_again;
struct tide_httpd_once {
    tide_httpd_again (*begin)(void *arg, const struct tide_httpd_who *who, tide_text key,
                              const unsigned char digest[32], struct tide_httpd_answer *answer,
                              uint64_t *asked_unix_ms_out);
    /* An answer of 500 and above was no answer: the next one with this key is a first one. */
    void (*end)(void *arg, const struct tide_httpd_who *who, tide_text key,
                const struct tide_httpd_answer *answer);
    void *arg;
};

/* After each request that had a head; `route` is NULL if it was refused before it had one. */
typedef void tide_httpd_observe(void *arg, const struct tide_httpd_route *route, int status,
                                uint64_t duration_us);

/* Numbers: 0 takes the default.  Everything pointed to outlives the server. */
struct tide_httpd_options {
    uint16_t port; /* 0: any free one */
    const struct tide_httpd_route *routes;
    size_t routes_count;
    const struct tide_httpd_topic *topics;
    size_t topics_count;
    /* Both are called on the server's thread.  `still` asks before each event of a stream whether
     * its key holds. */
    tide_httpd_authorize *authorize;
    bool (*still)(void *arg, uint64_t who);
    void *authorize_arg;
    struct tide_httpd_once once; /* needed if a route is a POST without TIDE_HTTPD_REPEATS */
    tide_httpd_observe *observe; /* NULL: none */
    void *observe_arg;
    /* A topic gained its first watcher or lost its last one; on the server's thread, briefly.
     * NULL: none. */
    void (*watched)(void *arg, const char *topic, bool watched);
    void *watched_arg;
    uint32_t connections_max;
    uint32_t streams_max;
    uint32_t bodies_bytes_max; /* TIDE_HTTPD_BODIES_BYTES_MAX */
    uint32_t head_ms;          /* 20,000; also how long an idle connection is kept */
    uint32_t body_ms;          /* 30,000 */
    uint32_t reader_ms;        /* 2,000 */
    uint32_t fetch_ms;         /* 12,000 */
    uint32_t send_ms;          /* 30,000 */
    uint32_t comment_ms;       /* 15,000: a stream that has nothing to say says so */
};

/* TIDE_BUSY: the port is taken. */
tide_status tide_httpd_start(tide_world *world, tide_mem *mem,
                             const struct tide_httpd_options *options, tide_httpd **server_out,
                             tide_error *err);
/* Waits for handlers.  NULL is fine. */
void tide_httpd_stop(tide_httpd *server);
uint16_t tide_httpd_port(const tide_httpd *server);

/* Replaces a topic's state; any thread.  Each line of `text` is a line of the event's data.  Equal
 * text changes nothing.
 *   TIDE_FULL       longer than TIDE_HTTPD_TOPIC_BYTES_MAX
 *   TIDE_NOT_FOUND  no such topic
 *   TIDE_NO_MEMORY  the old state stays */
tide_status tide_httpd_publish(tide_httpd *server, const char *topic, tide_text text);
/* Whether a stream with this topic is open; any thread. */
bool tide_httpd_is_watched(tide_httpd *server, const char *topic);
/* Held requests are asked again; any thread. */
void tide_httpd_wake(tide_httpd *server);

/* For tests and metrics; any thread. */
struct tide_httpd_counts {
    uint32_t connections, connections_peak;
    uint32_t streams, held, waiting;
    uint64_t body_bytes, body_bytes_peak;
    uint64_t evicted, timed_out;
};
void tide_httpd_count(tide_httpd *server, struct tide_httpd_counts *counts_out);

#endif
