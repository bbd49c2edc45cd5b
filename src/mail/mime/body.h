/* body.h - the parts of a message that a reader shows as its body, in order, as UTF-8.
 *
 * Of a multipart/alternative one part is shown: the last that has HTML, else the last with text.
 * Of a multipart/related its root, which the others belong to.  Of every other multipart all parts:
 * mailing lists append a footer, some mailers put text between pictures.  Attached parts and
 * attached messages are not shown (message.h lists them).
 *
 * Any bytes are accepted; no mail is an error.
 *
 * Invariants:
 *   BDY1  the same bytes give the same pieces.
 *   BDY2  the text of a piece is clean (charset.h CHR1).
 *   BDY3  all pieces together have at most TIDE_BODY_BYTES_MAX bytes.  A body of exactly so many is
 *         whole; of a longer one the part that fits is there, and `problem` says so.
 *   BDY4  time and memory are linear in the bytes; nothing recurses.
 */
#ifndef TIDE_MAIL_BODY_H
#define TIDE_MAIL_BODY_H

#include "mail/mime/check.h"

enum { TIDE_BODY_BYTES_MAX = 16 << 20 };

struct tide_body_piece {
    tide_text text;
    bool html;      /* else plain text */
    uint64_t begin; /* of its part's body in the raw bytes (message.h MSG4) */
};

struct tide_body {
    const struct tide_body_piece *pieces; /* empty ones are left out */
    size_t count;
    bool html;           /* one of the parts is HTML */
    const char *problem; /* why it is not complete; NULL */
};

/* All results are in `arena`.  The only error is TIDE_NO_MEMORY. */
tide_status tide_body_read(tide_text raw, tide_arena *arena, struct tide_body *body_out);
/* As a person typed it: of a multipart/alternative the last part that has text/plain and no HTML, if there
 * is one. */
tide_status tide_body_read_plain(tide_text raw, tide_arena *arena, struct tide_body *body_out);
/* As body_out->html, from parts that were scanned before. */
tide_status tide_body_has_html(const struct tide_parts *parts, tide_mem *mem, bool *html_out);

#endif
