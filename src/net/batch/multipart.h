/* multipart.h - Google's batches: multipart/mixed of application/http parts, each named by its
 * Content-ID.
 *
 * The reader keeps one head and a partial boundary in memory, never a body.
 *
 * Invariants:
 *   MPT1  the result does not depend on how the text is split into writes.
 *   MPT2  a part is reported with on_part before its first byte and with on_end after its last; a
 *         part that the answer cuts off gets on_end(whole = false).
 *   MPT3  text between parts, before the first and after the last is skipped.
 */
#ifndef TIDE_NET_MULTIPART_H
#define TIDE_NET_MULTIPART_H

#include "net/batch/format.h"

enum {
    TIDE_MULTIPART_BOUNDARY_MAX = 200,
    TIDE_MULTIPART_HEAD_MAX = 8 << 10, /* of a line; of the headers that are kept */
};

/* An id is the Content-ID without <> and "response-". */
extern const struct tide_batch_format tide_batch_multipart;

#endif
