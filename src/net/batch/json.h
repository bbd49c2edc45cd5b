/* json.h - Microsoft Graph's wire format of batches: one JSON object (format.h).
 *
 * Paths in it are relative to the version, which is the first segment of a path here ("/v1.0/me"
 * becomes "/me").  Each answer is parsed alone (net/api/list.h); its body reaches its caller as
 * JSON text, though not byte by byte as the server wrote it.
 *
 * Invariants:
 *   BJS1  the result does not depend on how the text is split.
 *   BJS2  memory: one answer.
 *   BJS3  an answer without an id or a code is skipped; what it belongs to is missing then. */
#ifndef TIDE_NET_BATCH_JSON_H
#define TIDE_NET_BATCH_JSON_H

#include "net/batch/format.h"

enum { TIDE_BATCH_JSON_ANSWER_BYTES_MAX = 1 << 20 }; /* of one part, with its headers */

extern const struct tide_batch_format tide_batch_json;

#endif
