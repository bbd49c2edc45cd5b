/* gmail_parts.h - a message as the Gmail API takes it apart: headers, text, labels.
 *
 * The formats full and metadata give a message as a tree of parts in JSON.  This keeps of it what a
 * reader of mail needs, under a ceiling, and drops the rest while the answer streams in: headers as
 * they came, the first text/plain and the first text/html that are no attachment, labels and dates.
 * It converts no character set: a text is bytes with the Content-Type they came with.  No I/O.
 *
 * Invariants:
 *   GPT1  everything a field offers has been checked (gmail.h GML3): every header has a name and a
 *         value, every label is a text.
 *   GPT2  a text has at most TIDE_GMAIL_TEXT_BYTES_MAX bytes; `cut` says that there was more, or
 *         that the server keeps it as an attachment.
 *   GPT3  at most TIDE_GMAIL_PARTS_MAX parts are looked at, TIDE_GMAIL_DEPTH_MAX deep (gmail_raw.h);
 *         what lies beyond is as if it were not there.
 */
#ifndef TIDE_CLOUD_GMAIL_PARTS_H
#define TIDE_CLOUD_GMAIL_PARTS_H

#include "cloud/gmail.h"

enum {
    TIDE_GMAIL_TEXT_BYTES_MAX = 256 << 10,
    TIDE_GMAIL_PARTS_MAX = 1000,
};

struct tide_gmail_text {
    tide_buf bytes; /* decoded from base64, in the character set of `type` */
    tide_text type; /* "text/plain; charset=utf-8", as the part has it; "" when it has none */
    bool cut;
};

/* One message of a thread, or of a draft.  Embedded; texts are borrowed from `message.fields`. */
struct tide_gmail_parts {
    struct tide_gmail_message message; /* without its raw bytes */
    tide_text snippet;
    const json_t *headers; /* array of {"name","value"}; NULL: none were asked for */
    struct tide_gmail_text plain, html;
    uint32_t attachments;
};
void tide_gmail_parts_init(struct tide_gmail_parts *parts, tide_mem *mem);
void tide_gmail_parts_done(struct tide_gmail_parts *parts);

/* Reads a Message of the API; `value` stays the caller's.  On failure `parts_out` is empty.
 * TIDE_SERVER: a field has another type; TIDE_NO_MEMORY. */
tide_status tide_gmail_parts_read(const json_t *value, struct tide_gmail_parts *parts_out,
                                  tide_error *err);

/* One message with these headers (a NULL-terminated list), its labels and its snippet: format=metadata.
 * 20 units.  TIDE_GONE: it was deleted. */
tide_status tide_gmail_get_headers(tide_gmail *gmail, tide_job *job, tide_text id,
                                   const char *const *headers, struct tide_gmail_parts *parts_out,
                                   tide_error *err);

/* The first header of that name, case ignored; TIDE_TEXT_NONE when absent.  Terminated. */
tide_text tide_gmail_parts_header(const struct tide_gmail_parts *parts, const char *name);
bool tide_gmail_parts_labeled(const struct tide_gmail_parts *parts, const char *label);

#endif
