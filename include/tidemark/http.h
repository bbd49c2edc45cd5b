/* http.h - HTTP calls of a handler: requests and responses.
 *
 * A request is a struct that you fill; a response is opaque, made by
 * tide_response_new() and read through functions, so that later versions can add
 * fields.  One response serves any number of calls, one after the other. */
#ifndef TIDEMARK_HTTP_H
#define TIDEMARK_HTTP_H

#include "tidemark/status.h"
#include "tidemark/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tide_header {
    tide_text name;
    tide_text value;
};

/* Takes a body as it streams in.  Runs on the thread that made the call, never
 * on the network thread; while it runs, at most a small bounded amount of the
 * body waits in memory and the connection is paused (back-pressure).  Any
 * status but TIDE_OK ends the call with that status. */
typedef tide_status tide_sink_write(void *arg, const char *bytes, size_t count);

/* Gives the next part of an upload; writes at most `room` bytes, 0 at its end. */
typedef tide_status tide_source_read(void *arg, char *bytes, size_t room, size_t *count_out);

struct sockaddr;
/* Whether a call may connect to this address.  Runs on the network thread. */
typedef bool tide_may_connect(const struct sockaddr *address);

/* Bytes that several calls may hold in memory together.  Opaque: Tidemark's own systems
 * use it. */
typedef struct tide_byte_budget tide_byte_budget;

struct tide_request {
    const char *method; /* "GET" */
    const char *url;    /* absolute */
    const struct tide_header *headers;
    size_t headers_count;
    tide_text body;           /* when source is NULL */
    tide_source_read *source; /* else: streamed, `source_bytes` in all */
    void *source_arg;
    uint64_t source_bytes;
    tide_sink_write *sink; /* NULL: the body is collected in the response */
    void *sink_arg;
    tide_byte_budget *budget;    /* NULL: none */
    uint64_t body_bytes_max;     /* of the answer; 0: 16 MiB.  More ends in TIDE_FULL. */
    uint32_t connect_timeout_ms; /* 0: 10 s */
    uint32_t stall_timeout_ms;   /* no byte for so long; 0: 60 s */
    uint32_t total_timeout_ms;   /* 0: no limit */
    /* Sending it twice does no harm (always so for GET, HEAD and OPTIONS).  It
     * allows a second try on a fresh connection when a kept-alive one turns out
     * to be closed, and an incomplete answer is TIDE_SERVER instead of
     * TIDE_UNKNOWN. */
    bool repeatable;
    uint8_t reserved_flags[3]; /* zero */
    /* Asked for every address before its socket is opened; NULL: any.  If none is allowed, nothing
     * is sent and the status is TIDE_INVALID.  Such a call uses no proxy and no connection of
     * another call. */
    tide_may_connect *may_connect;
    uint64_t reserved[5]; /* zero */
};

struct tide_response;
/* NULL: no memory. */
struct tide_response *tide_response_new(void);
void tide_response_free(struct tide_response *response);      /* NULL is fine */
int tide_response_code(const struct tide_response *response); /* 200; 0 while none arrived */
/* Empty when a sink took it.  Terminated; borrowed until the next call. */
tide_text tide_response_body(const struct tide_response *response);
/* The first header of that name, case ignored; TIDE_TEXT_NONE when absent.  Terminated;
 * borrowed until the next call. */
tide_text tide_response_header(const struct tide_response *response, const char *name);

#ifdef __cplusplus
}
#endif

#endif
