/* inside.h - the server's state; for its own files only.
 *
 * A connection has at most one exchange (a request and its answer) at a time:
 *
 *     HEAD --admitted--> BODY --complete--> MEMORY handler --------------> SENDING --> HEAD
 *                                      |--> WAITING (reader, held) ---------^
 *                                      `--> SENDING (stream): suspended while it has nothing to say
 *
 * An exchange is freed when its last reference goes: libmicrohttpd's request has one, its response
 * one, and a reader one.  References are counted on the server's thread alone; a reader that has
 * ended hands its own back through the list of ended ones.
 */
#ifndef TIDE_SERVE_HTTP_INSIDE_H
#define TIDE_SERVE_HTTP_INSIDE_H

#include "base/check.h"
#include "serve/http/http.h"

#include <microhttpd.h>
#include <stdatomic.h>

typedef enum httpd_stage {
    STAGE_HEAD,
    STAGE_BODY,
    STAGE_READER,
    STAGE_HELD,
    STAGE_SENDING,
    STAGE_STREAM, /* suspended; while it sends it is SENDING */
} httpd_stage;

/* Readers and fetchers. */
enum {
    POOL_READERS,
    POOL_FETCHERS,
    POOLS,
    TIDE_HTTPD_POOL_MAX = (int)TIDE_HTTPD_READERS > (int)TIDE_HTTPD_FETCHERS
                              ? (int)TIDE_HTTPD_READERS
                              : (int)TIDE_HTTPD_FETCHERS,
};

/* Where an exchange is for the readers; under the lock. */
typedef enum httpd_turn { TURN_NONE, TURN_QUEUED, TURN_RUNNING, TURN_ENDED } httpd_turn;

struct connection {
    struct tide_httpd *server;
    struct connection *next, *prev;
    struct MHD_Connection *mhd;
    struct exchange *exchange; /* NULL in STAGE_HEAD */
    int fd;
    httpd_stage stage;
    uint64_t deadline_ms; /* of its stage (SRV4) */
    uint64_t since_ms;    /* when its stage began */
    bool known;           /* a key was accepted on it */
    bool closing;         /* shut down; libmicrohttpd will notice */
    bool suspended;
};

struct exchange {
    struct tide_httpd *server;
    struct connection *connection; /* NULL once the request is over */
    unsigned references;
    uint64_t started_us;
    /* The head, copied: a reader may outlive the request (SRV5). */
    tide_buf target;
    tide_buf head_bytes;
    tide_buf decoded; /* path and query again, taken apart where they are */
    char method[8];
    struct tide_httpd_pair headers[TIDE_HTTPD_HEADERS_MAX];
    struct tide_httpd_pair params[TIDE_HTTPD_PARAMS_MAX];
    struct tide_httpd_head head;
    struct tide_httpd_verdict verdict;
    struct tide_httpd_request request;
    tide_buf body;
    struct tide_httpd_answer answer;
    int status; /* sent */
    /* Reader. */
    struct exchange *next; /* in the queue or among the ended */
    httpd_turn turn;
    bool given_up;
    tide_cancel cancel;
    /* Held. */
    uint64_t held;
    uint64_t held_until_ms;
    /* Stream. */
    struct stream *stream;
};

struct topic {
    const char *name;
    tide_httpd_scope scope;
    uint64_t version; /* 0: never published */
    tide_buf text;
    unsigned watchers;
};

struct tide_httpd {
    tide_world *world;
    tide_mem *mem;
    struct tide_httpd_options options;
    struct MHD_Daemon *daemon;
    int listen_fd; /* until libmicrohttpd has it */
    int wake_fd;
    int gone_fd; /* an epoll of suspended connections: it says when a client is gone */
    uint16_t port;
    tide_thread *thread;
    atomic_bool stopping;

    /* Of the server's thread alone. */
    uint64_t now_ms; /* read once per step */
    struct connection *connections;

    /* Under the lock. */
    tide_lock *lock;
    struct pool {
        tide_httpd *server;
        tide_cond *work; /* its threads wait for it */
        struct exchange *head, *tail;
        tide_thread *threads[TIDE_HTTPD_POOL_MAX];
    } pools[POOLS];
    struct exchange *ended;
    bool woken;
    bool readers_stop;
    struct topic topics[TIDE_HTTPD_TOPICS_MAX];
    struct tide_httpd_counts counts;
};

/* server.c */
void httpd_interrupt(tide_httpd *server); /* ends the sleep of the server's thread; any thread */
static inline bool httpd_is_stopping(const tide_httpd *server)
{
    return atomic_load_explicit(&server->stopping, memory_order_acquire);
}

/* connection.c */
void httpd_connection_notify(void *server, struct MHD_Connection *mhd, void **context,
                             enum MHD_ConnectionNotificationCode code);
struct connection *httpd_connection_of(struct MHD_Connection *mhd);
void httpd_connection_stage(struct connection *connection, httpd_stage stage, uint64_t wait_ms);
void httpd_connection_suspend(struct connection *connection);
void httpd_connection_resume(struct connection *connection);
void httpd_connection_cut(struct connection *connection); /* no more bytes in either direction */
void httpd_connections_gone(tide_httpd *server);          /* clients of suspended ones that left */
void httpd_connections_due(tide_httpd *server);           /* deadlines that have passed */
uint64_t httpd_connections_next_ms(const tide_httpd *server); /* TIDE_NEVER: none */

/* exchange.c: the callbacks of libmicrohttpd */
void *httpd_exchange_begin(void *server, const char *target, struct MHD_Connection *mhd);
enum MHD_Result httpd_exchange_handle(void *server, struct MHD_Connection *mhd, const char *url,
                                      const char *method, const char *version, const char *data,
                                      size_t *bytes, void **context);
void httpd_exchange_completed(void *server, struct MHD_Connection *mhd, void **context,
                              enum MHD_RequestTerminationCode code);
void httpd_exchange_release(struct exchange *exchange);

/* send.c */
enum MHD_Result httpd_send_answer(struct exchange *exchange);
enum MHD_Result httpd_send_problem(struct exchange *exchange, int status, const char *code,
                                   const char *detail, const struct tide_httpd_problem *more);
/* Past libmicrohttpd, which takes no answer in the middle of a body: then the connection ends. */
void httpd_send_raw(int fd, int status, const char *code, const char *detail);
void httpd_send_common_headers(struct MHD_Response *response,
                               const struct tide_httpd_answer *answer);

/* readers.c: also the fetchers */
tide_status httpd_readers_make(tide_httpd *server);
void httpd_readers_free(tide_httpd *server);
tide_status httpd_readers_start(tide_httpd *server, tide_error *err);
void httpd_readers_stop(tide_httpd *server);
bool httpd_readers_add(struct exchange *exchange); /* false: full */
void httpd_readers_ended(tide_httpd *server);      /* resumes those whose handler has ended */
void httpd_readers_give_up(struct exchange *exchange, tide_cancel_reason reason);

/* stream.c */
enum MHD_Result httpd_stream_open(struct exchange *exchange);
void httpd_stream_close(struct exchange *exchange);
void httpd_streams_feed(tide_httpd *server); /* resumes those that are behind */

#endif
