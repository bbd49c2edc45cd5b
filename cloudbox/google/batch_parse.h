/* batch_parse.h - a multipart/mixed body taken apart into the calls inside.
 *
 * Pure reading: nothing is run, nothing is copied but targets and header lists.
 * Broken parts are distinguished from a broken whole: a part that makes no sense is
 * answered in its place, the others still count.
 */
#ifndef BOX_BATCH_PARSE_H
#define BOX_BATCH_PARSE_H

#include "cloudbox/google/batch.h"

struct box_part {
    tide_text content_id;       /* as sent, with its <>; data == NULL: none */
    struct box_request request; /* borrowed from the batch and the arena */
    const char *refusal;        /* why it is not run; NULL: it is */
};

struct box_parts {
    struct box_part *list; /* in the arena */
    size_t count;
    size_t received; /* as many as there were; more than the maximum are not read */
};

enum { BOX_BATCH_ARENA_BYTES = 64 << 20 };

/* NULL, or why the whole is no batch.  `outer` is borrowed by the parts. */
const char *box_batch_parse(const struct box_request *outer, tide_arena *arena,
                            struct box_parts *parts_out);

#endif
