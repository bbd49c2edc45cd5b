/* message.h - parses a message for search and display.
 *
 * Never for storing it: the archive keeps the raw bytes (M9), and the results of this module can be
 * computed again.  Any bytes are accepted.
 *
 * The structure is found by our own scanner (check.h), because regions must be exact (MSG4), because
 * GMime recurses over addresses and parts (GMime 3.2 overflows the stack on an 80 kB nested address
 * group), and because it cannot handle failed allocations.  GMime reads dates, short ones.  Tests
 * compare the two.
 *
 * Invariants:
 *   MSG1  the same bytes give the same result.
 *   MSG2  time and memory are linear in the bytes, up to the limits; beyond them the result is
 *         partial and names the limit.
 *   MSG3  every text is valid UTF-8 without control characters except \n and \t.
 *   MSG4  attachments name regions inside the raw bytes: raw[begin, end) is the body of the part,
 *         still encoded.  They are in order of `begin`, and are either disjoint or nested: an
 *         attached message is one attachment, followed by its own attachments.
 */
#ifndef TIDE_MAIL_MESSAGE_H
#define TIDE_MAIL_MESSAGE_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

enum {
    TIDE_MESSAGE_HEADER_BYTES_MAX = 1 << 20, /* all headers of one part */
    TIDE_MESSAGE_HEADER_LINES_MAX = 10000,
    TIDE_MESSAGE_ADDRESS_DEEP = 16, /* nested groups and comments */
    TIDE_MESSAGE_PARTS_MAX = 1000,
    TIDE_MESSAGE_PARTS_DEEP = 50,
    TIDE_MESSAGE_TEXT_BYTES_MAX = 4 << 20, /* of text for the index */
    TIDE_MESSAGE_ATTACHMENTS_MAX = 500,
};

typedef enum tide_encoding {
    TIDE_ENCODING_PLAIN, /* 7bit, 8bit, binary */
    TIDE_ENCODING_BASE64,
    TIDE_ENCODING_QUOTED,
} tide_encoding;

struct tide_attachment {
    tide_text name; /* as a file name without slashes; "" when it has none */
    tide_text type; /* "application/pdf" */
    tide_text id;   /* its Content-ID without <>; "": none */
    tide_encoding encoding;
    bool inlined;        /* shown inside the text, like the images of a page */
    uint64_t begin, end; /* MSG4 */
};

typedef enum tide_parsed {
    TIDE_PARSED_WHOLE,
    TIDE_PARSED_PARTLY, /* a limit was reached; the result is partial */
    TIDE_PARSED_NOT,    /* no header could be read */
} tide_parsed;

struct tide_message {
    tide_parsed parsed;
    const char *problem;                            /* why it is not complete; NULL */
    tide_text from, to, cc, bcc, reply_to, subject; /* decoded, addresses as displayed */
    tide_text message_id;                           /* without <>; "" when there is none */
    tide_text in_reply_to, references, list_id;     /* likewise; separated by spaces */
    bool has_date;
    int64_t date_ms; /* the Date header */
    tide_text text;  /* all text parts except attached ones; HTML as text, in place of an
                      * alternative plain text with the same words, whose links follow it */
    bool has_html;   /* body.h has HTML to show */
    const struct tide_attachment *attachments;
    size_t attachments_count;
};

/* Parses headers, text and attachments; all results are in `arena` or borrowed from `raw`.  The
 * only error is TIDE_NO_MEMORY. */
tide_status tide_message_parse(tide_text raw, tide_arena *arena, struct tide_message *message_out);

/* The value of a Date header; false: it has none. */
bool tide_message_date(tide_text value, int64_t *date_ms_out);

/* Appends the decoded bytes of an attachment; characters that are not base64 are skipped.
 * TIDE_INVALID: it lies outside `raw`.  On failure `out` is unchanged. */
tide_status tide_attachment_decode(tide_text raw, const struct tide_attachment *attachment,
                                   tide_buf *out, tide_error *err);
/* How many bytes tide_attachment_decode() would append; 0 if it lies outside `raw`. */
uint64_t tide_attachment_bytes(tide_text raw, const struct tide_attachment *attachment);
/* Converts HTML to text: links as their text, block elements end lines, scripts and styles are left
 * out, images as their alternative text.  Accepts any input, is linear in it, and writes as MSG3
 * says.  TIDE_FULL: the part that fits is in `out`. */
tide_status tide_html_text(tide_text html, tide_buf *out);

#endif
