/* view.h - a stored message for display: what is known about it, its text, its HTML, its
 * attachments.
 *
 * `tidemark mail show` and programs that show mail elsewhere use it, so that both give the same
 * object.  It reads the archive and changes nothing.  Mail is untrusted: no message is an error, and
 * no text of one becomes a path, a tag or a request.
 *
 * Invariants:
 *   VEW1  every text in the JSON is valid UTF-8 without control characters except \n and \t.
 *   VEW2  a message whose bytes cannot be read is shown with what its row says, and `copy` damaged.
 *   VEW3  the washed HTML asks no host for anything (mail/wash/wash.h WSH2).
 *   VEW4  the body of a document (tide_view_document()) is itself washed HTML.
 *   VEW5  the numbers of attachments, cid/N and img/N are the same whenever the message is read.
 */
#ifndef TIDE_MAIL_VIEW_H
#define TIDE_MAIL_VIEW_H

#include "base/json.h"
#include "mail/archive/archive.h"
#include "mail/mime/message.h"

enum {
    TIDE_VIEW_RAW_BYTES_MAX = 600 << 20,
    TIDE_VIEW_HTML_BYTES_MAX = 32 << 20,     /* washed */
    TIDE_VIEW_DOCUMENT_BYTES_MAX = 64 << 20, /* with its images */
    TIDE_VIEW_IMAGE_BYTES_MAX = 8 << 20,     /* one image */
    TIDE_VIEW_LABELS_MAX = 1000,
    TIDE_VIEW_THREAD_MAX = 1000, /* messages of one thread */
};

struct tide_view_label {
    tide_text id, name; /* the name is the id where the archive has none */
    tide_text type;     /* "system", "user" or "" */
};

struct tide_view {
    struct tide_stored stored;
    tide_copy copy; /* stored.copy, or what reading the bytes showed */
    tide_mem *mem;
    tide_buf raw;
    tide_arena arena;
    bool readable;               /* else `message` is empty, and `why` says why */
    struct tide_message message; /* texts are in `arena` and `raw` */
    struct tide_view_label *labels;
    size_t labels_count;
    tide_error why;
};

/* Reads and parses a message.  The caller ends it with tide_view_done(), also after a failure.
 * TIDE_NO_MEMORY, or what keeps the archive from being read; damaged bytes are no failure (VEW2). */
tide_status tide_view_open(tide_archive *archive, const struct tide_stored *stored, tide_mem *mem,
                           struct tide_view *view, tide_error *err);
/* The same for bytes that no archive has: takes `raw`, which is left empty; `stored` is what is known
 * of them.  It has no labels. */
tide_status tide_view_take(const struct tide_stored *stored, tide_buf *raw, tide_mem *mem,
                           struct tide_view *view, tide_error *err);
void tide_view_done(struct tide_view *view); /* a zeroed one is fine */

/* Sets what the archive itself knows of a message, the same in every JSON: id, thread,
 * internal_unix_ms, bytes, copy, gone. */
void tide_view_stored_json(const struct tide_stored *stored, tide_copy copy, tide_json *json);

/* Sets the fields of a message in `json`, an object:
 *   id, thread, internal_unix_ms, bytes, copy ("exact", "held", "short", "damaged"), gone,
 *   labels [{id, name, type}], from, to, cc, bcc, reply_to, subject, message_id, in_reply_to,
 *   references, list_id, date_unix_ms (null: none), html (whether there is HTML to show), text,
 *   attachments [{number, name, file, type, bytes, inline, content_id}], attachments_count,
 *   problem (null: none).
 * `name` is the sender's, `file` a safe file name. */
void tide_view_json(const struct tide_view *view, tide_json *json);

/* Visits the messages of the thread of `stored`, oldest first, each opened; at most
 * TIDE_VIEW_THREAD_MAX: *more_out says whether there are more.  A message without a thread is its
 * own.  `visit` returns false to stop. */
tide_status tide_view_thread(tide_archive *archive, const struct tide_stored *stored, tide_mem *mem,
                             bool (*visit)(const struct tide_view *view, void *arg), void *arg,
                             bool *more_out, tide_error *err);
/* The thread as JSON: sets thread, messages (as tide_view_json() has them) and more. */
tide_status tide_view_thread_json(tide_archive *archive, const struct tide_stored *stored,
                                  tide_mem *mem, tide_json *json, tide_error *err);

/* ---- HTML ---- */

#define TIDE_VIEW_NO_PART SIZE_MAX /* the message has no part with this Content-ID */

/* What the numbers in a washed message stand for; in the arena of its view. */
struct tide_view_page {
    bool html;               /* else the message is plain text */
    bool cut;                /* a limit was reached; the rest is missing */
    const tide_text *remote; /* img/N: the URLs that were not loaded */
    size_t remote_count;
    const size_t *cids; /* cid/N: the attachment, from 0; TIDE_VIEW_NO_PART */
    size_t cids_count;
};
/* Appends the washed body: images of the message are cid/N, remote ones img/N, links have
 * rel="noopener noreferrer".  A message that cannot be read gives nothing.
 *   TIDE_FULL       `out` has not even room for the ends of the deepest tags
 *   TIDE_NO_MEMORY */
tide_status tide_view_html(struct tide_view *view, tide_buf *out, struct tide_view_page *page_out);

/* Appends the image cid/N of a page; *type_out as its bytes say ("image/png").
 *   TIDE_NOT_FOUND  no such number, no such part, or it is no PNG, JPEG, GIF or WebP image
 *   TIDE_FULL       larger than TIDE_VIEW_IMAGE_BYTES_MAX, or than the room in `out` */
tide_status tide_view_image(const struct tide_view *view, const struct tide_view_page *page,
                            size_t number, tide_buf *out, const char **type_out);

/* Appends one HTML document that a browser can open offline: the washed body, images of the message
 * as data: URLs, remote ones as text, no background images, and a Content-Security-Policy that
 * allows nothing else.
 *   TIDE_FULL       `out` has no room for it
 *   TIDE_NO_MEMORY
 * On failure `out` is as it was. */
tide_status tide_view_document(struct tide_view *view, tide_buf *out,
                               struct tide_view_page *page_out);

#endif
