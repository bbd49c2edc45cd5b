/* reply.h - the message of a draft or reply, as bytes for Gmail (J11).
 *
 * mail/compose/answer.h says who it goes to and what its subject is, compose.h writes it; here is
 * what is narrower for text that a model wrote.
 *
 * Invariants:
 *   RPL1  every recipient is an address of From, Reply-To, To or Cc of the answered message, and
 *         none is the user's own, unless it is the only one (AWR1); without `everyone` it is one.
 *   RPL2  the headers are those of compose.h CMP1 without Date and Bcc.
 *   RPL3  the subject begins with "Re: " exactly once.
 *   RPL4  the body is base64: no byte of it is read as a header or a boundary.
 */
#ifndef TIDE_ASSISTANT_TEXT_REPLY_H
#define TIDE_ASSISTANT_TEXT_REPLY_H

#include "assistant/text/letter.h"
#include "base/buf.h"
#include "mail/compose/answer.h"

enum { TIDE_REPLY_BODY_BYTES_MAX = 256 << 10 };

/* Borrowed from the letter and from `self`, the address of the account. */
void tide_reply_recipients(const struct tide_letter *answered, tide_text self, bool everyone,
                           struct tide_recipients *recipients_out);

struct tide_reply {
    const struct tide_letter *answered;
    tide_text self;       /* address of the account */
    tide_text token;      /* X-Tidemark-Draft: letters, digits, - and _; "": none */
    tide_text message_id; /* without <>, as LTR3; "": Gmail makes one */
    tide_text body;       /* UTF-8, marker included */
    bool everyone;        /* else the sender alone */
};

/* Appends the message.  TIDE_INVALID: `self`, `token` or `message_id` is not what it should be;
 * TIDE_FULL: the body is too long. */
tide_status tide_reply_add(const struct tide_reply *reply, tide_buf *out, tide_error *err);

#endif
