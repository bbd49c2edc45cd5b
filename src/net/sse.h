/* sse.h - takes a stream of server-sent events apart while it comes in.
 *
 * Lines end with LF, CR or CRLF; a blank line ends an event; the data lines of an event are joined
 * with line feeds.  Comments, ids and retry times are dropped.  An event without its blank line is
 * not passed on: it may have been cut.
 *
 * Invariants:
 *   SSE1  the events that are passed on do not depend on how the stream is split.
 *   SSE2  memory: one event up to its ceiling.
 *   SSE3  a failure is final.
 */
#ifndef TIDE_NET_SSE_H
#define TIDE_NET_SSE_H

#include "base/buf.h"

enum { TIDE_SSE_NAME_BYTES_MAX = 64 };

/* An event, borrowed for the call.  `name` is "" where none was given.  Another status ends the
 * stream with it. */
typedef tide_status tide_sse_visit(void *arg, const char *name, tide_text data);

/* Embedded; use only `failed` and `events`. */
struct tide_sse {
    tide_sse_visit *visit;
    void *arg;
    tide_buf line; /* one that arrived in several parts */
    tide_buf data; /* of the event so far */
    char name[TIDE_SSE_NAME_BYTES_MAX];
    bool has_data;
    bool after_cr; /* a line feed now belongs to the end of the line before */
    bool begun;    /* the first line is over: a byte order mark was looked for */
    tide_status failed;
    uint64_t events;
};

void tide_sse_init(struct tide_sse *self, size_t event_bytes_max, tide_sse_visit *visit, void *arg,
                   tide_mem *mem);
void tide_sse_done(struct tide_sse *self); /* a zeroed one is fine */
/* Takes the next bytes.  TIDE_FULL: an event is too long; TIDE_NO_MEMORY; or what `visit`
 * returned. */
tide_status tide_sse_write(struct tide_sse *self, const char *bytes, size_t count);

#endif
