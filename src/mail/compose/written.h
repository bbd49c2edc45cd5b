/* written.h - a message as a page keeps it while a person writes it, and its bytes.
 *
 * The page's form is a JSON object of texts, all of which may be missing:
 *
 *   {"to", "cc", "bcc", "subject", "text", "in_reply_to", "references"}
 *
 * Recipients are as typed, "Ann <ann@example.org>, bob@example.org"; ids with or without <>.  Other
 * fields are not looked at.
 *
 * Invariants:
 *   WTN1  what is to be sent is refused when an entry of its recipients is no address, or when there
 *         is none at all; a draft leaves such entries out, for they are half typed.
 *   WTN2  a subject on several lines is refused when it is to be sent, and is one line in a draft.
 */
#ifndef TIDE_MAIL_COMPOSE_WRITTEN_H
#define TIDE_MAIL_COMPOSE_WRITTEN_H

#include "mail/compose/compose.h"

struct tide_written {
    tide_text json;
    struct tide_mailbox from;
    tide_text message_id; /* without <> */
    bool dated;
    int64_t date_unix_ms;
    int32_t zone_minutes;
    const struct tide_compose_file *files;
    size_t files_count;
    bool sending; /* else a draft */
};

/* Appends the message.  TIDE_INVALID: `err` says which field, and what is wrong with it; TIDE_FULL as
 * tide_compose_add(). */
tide_status tide_written_add(const struct tide_written *written, tide_buf *out, tide_error *err);

#endif
