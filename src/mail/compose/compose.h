/* compose.h - writes a message from its fields: what a person wrote, as bytes for Gmail.
 *
 * The same fields give the same bytes, so that an upload can go on after a crash: the date and the
 * Message-ID are the caller's, the boundary follows from the Message-ID.  Fields that a person
 * fills are refused when they have line ends or other control characters; nothing is guessed or
 * dropped.
 *
 * A single text is written as it is when it is ASCII in short lines, else quoted-printable, or
 * base64 when that is shorter.  Files are base64.
 *
 * Bcc is written: the Gmail API takes its recipients from the headers and removes it from what
 * others get.
 *
 * Invariants:
 *   CMP1  the headers are exactly Date, From, To, Cc, Bcc, Subject, Message-ID, In-Reply-To,
 *         References, X-Tidemark-Draft, MIME-Version, Content-Type and Content-Transfer-Encoding,
 *         each at most once, as header.h WRT1.
 *   CMP2  no line of a body or a part is the boundary.
 *   CMP3  read by mail/mime/message.h, it has these fields, this text and these files, byte for
 *         byte; the text is clean (charset.h CHR1) and ends in a line end.
 */
#ifndef TIDE_MAIL_COMPOSE_COMPOSE_H
#define TIDE_MAIL_COMPOSE_COMPOSE_H

#include "mail/compose/header.h"

enum {
    TIDE_COMPOSE_BYTES_MAX = 36700160, /* of a message, as Gmail takes it */
    TIDE_COMPOSE_TEXT_BYTES_MAX = 1 << 20,
    TIDE_COMPOSE_SUBJECT_BYTES_MAX = 2000,
    TIDE_COMPOSE_RECIPIENTS_MAX = 500, /* of To, Cc and Bcc together */
    TIDE_COMPOSE_REFERENCES_MAX = 20,
    TIDE_COMPOSE_FILES_MAX = 100,
    TIDE_COMPOSE_FILE_NAME_BYTES_MAX = 255,
    TIDE_COMPOSE_TOKEN_BYTES_MAX = 64,
};

struct tide_compose_file {
    tide_text name; /* "": none */
    tide_text type; /* "application/pdf"; "" or not a type of a file: application/octet-stream */
    tide_text bytes;
};

struct tide_compose {
    struct tide_mailbox from;
    const struct tide_mailbox *to, *cc, *bcc;
    size_t to_count, cc_count, bcc_count;
    tide_text subject;           /* "": none is written */
    tide_text text;              /* UTF-8 */
    tide_text message_id;        /* without <>; "": Gmail makes one */
    tide_text in_reply_to;       /* without <>; "" */
    const tide_text *references; /* ids without <>, oldest first */
    size_t references_count;
    tide_text token; /* X-Tidemark-Draft: letters, digits, - and _; "": none */
    bool dated;      /* else Gmail sets the date */
    int64_t date_unix_ms;
    int32_t zone_minutes; /* east of UTC */
    const struct tide_compose_file *files;
    size_t files_count;
    bool opaque; /* base64 in any case: no byte of the text can be misread */
};

/* Appends the message.  TIDE_INVALID: a field is not what it should be, `err` names it; TIDE_FULL:
 * too long, too many, or more than `out` or Gmail takes. */
tide_status tide_compose_add(const struct tide_compose *compose, tide_buf *out, tide_error *err);

#endif
