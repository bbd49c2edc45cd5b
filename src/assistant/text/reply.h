/* reply.h - the message of a draft or reply, as bytes for Gmail (J11).
 *
 * Who it goes to comes from the headers of the answered message, never from its text and never from
 * a model.  Every header is written here from checked parts, so that nothing a stranger or a model
 * wrote can end a line or become a header.
 *
 *   To   the answered message's Reply-To, else its From; without `everyone` one address of it.  If
 *        the user wrote that message, its To
 *   Cc   with `everyone`, its other recipients
 *
 * Invariants:
 *   RPL1  every recipient is an address of From, Reply-To, To or Cc of the answered message, and
 *         none is the user's own, unless it is the only one.
 *   RPL2  the headers are exactly From, To, Cc, Subject, Message-ID, In-Reply-To, References,
 *         X-Tidemark-Draft, MIME-Version, Content-Type and Content-Transfer-Encoding, each at most once, in ASCII, in
 *         lines of at most 998 bytes.
 *   RPL3  the subject begins with "Re: " exactly once.
 *   RPL4  the body is base64: no byte of it is read as a header or a boundary.
 */
#ifndef TIDE_ASSISTANT_TEXT_REPLY_H
#define TIDE_ASSISTANT_TEXT_REPLY_H

#include "assistant/text/letter.h"
#include "assistant/text/mailbox.h"
#include "base/buf.h"

enum {
    TIDE_REPLY_RECIPIENTS_MAX = 50, /* of To, of Cc */
    TIDE_REPLY_REFERENCES_MAX = 20, /* the first and the last ones */
    TIDE_REPLY_SUBJECT_BYTES_MAX = 500,
    TIDE_REPLY_TOKEN_BYTES_MAX = 64,
    TIDE_REPLY_BODY_BYTES_MAX = 256 << 10,
};

struct tide_recipients {
    struct tide_mailbox to[TIDE_REPLY_RECIPIENTS_MAX], cc[TIDE_REPLY_RECIPIENTS_MAX];
    size_t to_count, cc_count; /* no `to`: the message has no address that can be answered */
};
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

/* Appends the message.  TIDE_INVALID: `self`, `token` or `message_id` is not what it should be; TIDE_FULL: the
 * body is too long. */
tide_status tide_reply_add(const struct tide_reply *reply, tide_buf *out, tide_error *err);
/* "Re: Invoice" of "RE: Re[2]: Invoice", clean and cut. */
tide_status tide_reply_subject(tide_text subject, tide_buf *out);

#endif
