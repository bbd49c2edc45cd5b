/* message.h - what is read in a message, for finding and showing it.
 *
 * Never for storing it: the archive keeps the bytes as they came (M9), and what
 * this module says about them can be made again.  Any bytes are accepted.
 *
 * The structure is found by a walk of our own (check.h), because regions
 * must be exact (M4), because GMime recurses over addresses and parts (GMime 3.2
 * overflows the stack on an 80 kB nested address group), and because its memory
 * cannot fail.  GMime reads dates, short ones.  Tests compare the two.
 *
 * Invariants:
 *   M1  the same bytes give the same result.
 *   M2  time and memory are linear in the bytes, up to the ceilings; beyond them
 *       the result is partial and says which ceiling it was.
 *   M3  every text is valid UTF-8 without control characters except \n and \t.
 *   M4  attachments name regions inside the raw bytes: raw[begin, end) is the
 *       body of the part as it stands, still encoded.  They stand in order of
 *       `begin`, and either lie apart or one inside the other: a message that is
 *       attached is one, and what is attached to it follows.
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

/* Once per process, before any thread parses. */
void tide_message_start(void);

typedef enum tide_encoding {
    TIDE_ENCODING_PLAIN, /* 7bit, 8bit, binary */
    TIDE_ENCODING_BASE64,
    TIDE_ENCODING_QUOTED,
} tide_encoding;

struct tide_attachment {
    tide_text name; /* as a file name without slashes; "" when it has none */
    tide_text type; /* "application/pdf" */
    tide_encoding encoding;
    bool inlined;        /* shown inside the text, like the pictures of a page */
    uint64_t begin, end; /* M4 */
};

typedef enum tide_parsed {
    TIDE_PARSED_WHOLE,
    TIDE_PARSED_PARTLY, /* a ceiling was reached; what was found is there */
    TIDE_PARSED_NOT,    /* no header could be read */
} tide_parsed;

struct tide_message {
    tide_parsed parsed;
    const char *problem;                            /* why not whole; NULL */
    tide_text from, to, cc, bcc, reply_to, subject; /* decoded, addresses as people write them */
    tide_text message_id;                           /* without <>; "" when there is none */
    tide_text in_reply_to, references, list_id;     /* the same; a space between several */
    bool has_date;
    int64_t date_ms; /* the Date header */
    tide_text text;  /* all text parts but those attached; HTML as text, in the place of plain
                      * text beside it that has the same words, whose links follow it */
    const struct tide_attachment *attachments;
    size_t attachments_count;
};

/* Headers, text and attachments; everything in `arena`, or borrowed from `raw`.
 * TIDE_NO_MEMORY is its only failure. */
tide_status tide_message_parse(tide_text raw, tide_arena *arena, struct tide_message *message_out);

/* The value of a Date header; false: it says none. */
bool tide_message_date(tide_text value, int64_t *date_ms_out);

/* Appends the decoded bytes of an attachment; what does not belong in base64 is
 * skipped.  TIDE_INVALID: it lies outside `raw`.  On failure `out` is as it was. */
tide_status tide_attachment_decode(tide_text raw, const struct tide_attachment *attachment,
                                   tide_buf *out, tide_error *err);
/* HTML to text, on its own: links kept as their text, block elements end lines,
 * scripts and styles left out, pictures as the text that stands for them.
 * Tolerates anything, is linear in it, and writes as M3 says.  TIDE_FULL: what
 * fits is there. */
tide_status tide_html_text(tide_text html, tide_buf *out);

#endif
