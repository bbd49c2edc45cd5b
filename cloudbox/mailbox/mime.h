/* mime.h - what Gmail tells about a message beyond its bytes.
 *
 * Headers as a list, part ids "", "0", "1.0", bodies decoded and texts in UTF-8,
 * large ones and files behind an attachment id.  GMime reads parameters and encoded
 * words; the structure is found in one pass of our own (mime_tree.h), so that no
 * nesting can exhaust the stack.
 * Any bytes are accepted, for any bytes can be in a mailbox: what cannot be
 * parsed is one text/plain part.
 *
 * Invariants:
 *   BMIM1  the tree depends on the bytes alone, so attachment ids stay valid.
 *   BMIM2  at most BOX_PARTS_MAX parts and BOX_PARTS_DEEP levels; what lies beyond is one opaque
 *          part.
 */
#ifndef BOX_MIME_H
#define BOX_MIME_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

#include <jansson.h>

enum { BOX_PARTS_MAX = 1000, BOX_PARTS_DEEP = 64 };

/* Once before the first use; GMime has global state of its own. */
void box_mime_start(void);

/* The `payload` of format=full.  The caller owns it. */
json_t *box_mime_full(tide_text raw);
/* The `payload` of format=metadata: mimeType and headers; with `only` (count >
 * 0) just those, case aside. */
json_t *box_mime_metadata(tide_text raw, const tide_text *only, size_t only_count);
/* The bytes of the part with that attachment id.  false: there is none. */
bool box_mime_attachment(tide_text raw, tide_text attachment_id, tide_buf *out);

/* What searching and threading look at; texts in `arena`, decoded to UTF-8. */
struct box_view {
    tide_text from, to, cc, bcc, subject, list_id, delivered_to; /* several To are joined */
    tide_text message_id;                                        /* without <> */
    tide_text references; /* References and In-Reply-To, as they stand */
    bool has_date;
    uint64_t date_ms;    /* the Date header */
    tide_text text;      /* all text parts, HTML without its tags; only when asked for */
    tide_text filenames; /* one a line */
    bool has_attachment;
};
/* The headers only: quick, without GMime. */
void box_mime_headers(tide_text raw, tide_arena *arena, struct box_view *view_out);
/* Everything. */
void box_mime_view(tide_text raw, tide_arena *arena, struct box_view *view_out);
/* A snippet of any message, escaped as Gmail's. */
void box_mime_snippet(tide_text raw, tide_buf *out);

#endif
