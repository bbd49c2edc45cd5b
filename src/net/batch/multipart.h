/* multipart.h - parses a batch answer while it streams in.
 *
 * multipart/mixed of application/http parts, each named by its Content-ID.  The
 * reader keeps one head and a partial boundary in memory, never a body.
 *
 * Invariants:
 *   P1  the result does not depend on how the text is split into writes.
 *   P2  a part is reported with on_part before its first byte and with on_end after its
 *       last; a part that the answer cuts off gets on_end(whole = false).
 *   P3  text between parts, before the first and after the last is skipped.
 */
#ifndef TIDE_NET_MULTIPART_H
#define TIDE_NET_MULTIPART_H

#include "base/buf.h"
#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

enum { TIDE_MULTIPART_BOUNDARY_MAX = 200, TIDE_MULTIPART_HEAD_MAX = 8 << 10 };

struct tide_multipart_events {
    /* `id` is the Content-ID without <> and "response-"; `http` the inner status. */
    tide_status (*on_part)(void *arg, tide_text id, int http);
    tide_status (*on_bytes)(void *arg, const char *bytes, size_t count);
    tide_status (*on_end)(void *arg, bool whole);
    void *arg;
};

typedef struct tide_multipart tide_multipart;
/* `content_type` as in the answer's head.  TIDE_SERVER: it names no boundary. */
tide_status tide_multipart_new(tide_text content_type, const struct tide_multipart_events *events,
                               tide_mem *mem, tide_multipart **multipart_out, tide_error *err);
void tide_multipart_free(tide_multipart *multipart); /* NULL is fine */
/* A tide_sink_write.  TIDE_SERVER: malformed; or what an event returned. */
tide_status tide_multipart_write(void *multipart, const char *bytes, size_t count);
/* The answer ended.  TIDE_SERVER: without the closing boundary. */
tide_status tide_multipart_end(tide_multipart *multipart, tide_error *err);

#endif
