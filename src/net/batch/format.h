/* format.h - how calls are joined in one request, and how its answer comes apart.
 *
 * The batcher (batch.h) knows no wire format: it names its parts "q0", "q1", ... in the order
 * of the request, and the reader reports the answer to each under that name, in any order.
 *
 * What a reader must do:
 *   - report a part with on_part before its first byte and with on_end after its last; with
 *     on_end(whole = false) if the answer breaks off within it;
 *   - skip what it does not know; fail (TIDE_SERVER) only when the rest cannot be read;
 *   - not depend on how the text is split into writes. */
#ifndef TIDE_NET_BATCH_FORMAT_H
#define TIDE_NET_BATCH_FORMAT_H

#include "base/buf.h"
#include "base/status.h"
#include "base/text.h"
#include "tidemark.h"

#include <stdbool.h>

struct tide_batch_part {
    const char *verb;
    const char *path;                  /* from the root, percent-encoded */
    tide_text body;                    /* JSON; may be empty */
    const struct tide_header *headers; /* of this part alone */
    size_t headers_count;
};

struct tide_batch_events {
    tide_status (*on_part)(void *arg, tide_text id, int http);
    tide_status (*on_bytes)(void *arg, const char *bytes, size_t count);
    /* The headers of the part's own answer; borrowed for the call. */
    tide_status (*on_end)(void *arg, bool whole, const struct tide_header *headers,
                          size_t headers_count);
    void *arg;
};

struct tide_batch_format {
    unsigned parts_max; /* that the provider accepts in one request */
    /* Appends the Content-Type and the body of a request.  `boundary` is a random word. */
    tide_status (*write)(const struct tide_batch_part *parts, unsigned count, const char *boundary,
                         tide_buf *type_out, tide_buf *body_out);
    /* `type` is the Content-Type of the answer.  TIDE_SERVER: not an answer to a batch. */
    tide_status (*reader_new)(tide_text type, const struct tide_batch_events *events, tide_mem *mem,
                              void **reader_out, tide_error *err);
    /* TIDE_SERVER: malformed; or what an event returned. */
    tide_status (*reader_write)(void *reader, const char *bytes, size_t count);
    /* The answer ended.  TIDE_SERVER: too early. */
    tide_status (*reader_end)(void *reader, tide_error *err);
    void (*reader_free)(void *reader); /* NULL is fine */
};

#endif
