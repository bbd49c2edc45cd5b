/* real_net.h - the network thread and its calls.
 *
 * One thread runs libcurl's multi interface for every call of the process.  A caller
 * sets up its call, submits it, and then serves its two rings: it fills the outgoing
 * one from the source and empties the incoming one into the sink.  The network thread
 * only moves bytes between rings and sockets; it runs no code of callers, does not use
 * our allocator and holds no lock for longer than a copy.
 *
 * Invariants:
 *   RNET1  a call's CURL handle belongs to the caller before it is submitted and after `done`, to
 *          the network thread in between.
 *   RNET2  a body holds at most TIDE_RING_BYTES in its ring and what libcurl read at once (16 KiB)
 *          beyond it; a full ring pauses the connection.
 *   RNET3  a request that may not be repeated is never sent twice.
 *   RNET4  a thread that changes what the network thread waits for wakes it afterwards; the network
 *          thread clears wake_pending before it looks.
 *   RNET5  the oldest call of a budget is never refused, so that calls which collect their bodies
 *          cannot wait for each other in a circle.
 *
 * One connection carries one call at a time, also with HTTP/2: in libcurl a paused
 * stream blocks all the streams of its connection, and a user's call must not wait for
 * a slow sink (E3). */
#ifndef TIDE_WORLD_REAL_NET_H
#define TIDE_WORLD_REAL_NET_H

#include "base/limits.h"
#include "world/real.h"

#include <curl/curl.h>

struct net_ring {
    char *bytes; /* TIDE_RING_BYTES of them */
    size_t start;
    size_t used;
};

struct tide_byte_budget {
    struct real_net *net;
    pthread_mutex_t lock;
    uint64_t bytes_max;
    uint64_t held_bytes;
    struct net_call *first; /* the oldest one */
    struct net_call *last;
    bool refused; /* a call waits for bytes to be returned */
};

struct net_call {
    struct real_net *net;
    struct net_call *link; /* in the list of submitted or of idle calls */
    CURL *easy;

    /* Written by the caller before the call is submitted. */
    const struct tide_request *request;
    const tide_cancel *cancel;
    struct curl_slist *headers;
    char curl_text[CURL_ERROR_SIZE];
    uint64_t stall_us;
    bool repeatable;

    /* Owned by the network thread until done. */
    struct net_call *next;
    struct net_call *prev;
    struct net_call *news_link;
    bool has_news;
    bool receive_paused;
    bool send_paused;
    bool added;
    size_t budget_wants; /* paused: this many bytes were refused */
    unsigned sends;      /* how often sending began */
    uint64_t moved_bytes;
    uint64_t moved_at_us;
    uint64_t look_at_us; /* when to check again whether bytes moved */
    char head[TIDE_HEAD_BYTES_MAX];
    size_t head_bytes;
    size_t head_lines;
    bool head_whole;
    tide_status refused; /* why our callback ended the transfer */
    bool kept_out;       /* the request forbids an address of its host */

    /* Under `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct net_ring in;
    struct net_ring out;
    bool out_ended;
    bool wants_room;  /* paused: the incoming ring was full */
    bool wants_bytes; /* paused: the outgoing ring was empty */
    bool head_ready;  /* `head` no longer changes and may be read */
    bool give_up;     /* the caller wants the call dropped */
    bool done;
    tide_status status; /* when done; TIDE_OK: `code` has the result */
    CURLcode code;

    /* Under the budget's lock. */
    struct net_call *budget_next;
    struct net_call *budget_prev;
    uint64_t budget_bytes;
};

struct real_net {
    struct real_world *real;
    CURLM *multi; /* NULL until the first call; set under the lock, read without it by who wakes */
    tide_thread *thread;
    int wake_pending;            /* atomic (RNET4) */
    struct real_net_stats stats; /* atomics */

    pthread_mutex_t lock;
    pthread_cond_t calls_gone;
    struct net_call *submitted;
    struct net_call *submitted_last;
    struct net_call *idle;
    size_t idle_count;
    size_t calls_count; /* callers inside real_call() */
    bool stopping;

    /* Owned by the network thread. */
    struct net_call *running;
    struct net_call *news;
};

static inline size_t net_ring_room(const struct net_ring *ring)
{
    return (size_t)TIDE_RING_BYTES - ring->used;
}
/* The longest run that can be read, or written, without wrapping. */
size_t net_ring_readable(const struct net_ring *ring, char **bytes_out);
size_t net_ring_writable(const struct net_ring *ring, char **bytes_out);

/* real_net.c, for real_call.c */
tide_status net_call_take(struct real_net *net, struct net_call **call_out, tide_error *err);
void net_call_return(struct net_call *call);
tide_status net_call_submit(struct net_call *call, tide_error *err); /* starts the thread */
size_t net_on_body(char *bytes, size_t size, size_t count, void *arg);
size_t net_on_header(char *bytes, size_t size, size_t count, void *arg);
size_t net_on_send(char *bytes, size_t size, size_t count, void *arg);
int net_on_begin(void *arg, char *local_ip, char *remote_ip, int local_port, int remote_port);
curl_socket_t net_on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address);
void net_buffered_sub(struct real_net *net, size_t bytes);

void net_budget_join(struct net_call *call);
void net_budget_leave(struct net_call *call);
bool net_budget_take(struct net_call *call, size_t bytes);
void net_budget_force(struct net_call *call, size_t bytes); /* even past the ceiling */
void net_budget_give(struct net_call *call, size_t bytes);

#endif
