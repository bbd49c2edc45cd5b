/* answer.h - what follows from the message that is answered or forwarded: who it goes to, its
 * subject, the ids of its thread, the text that is repeated.
 *
 * Who it goes to comes from the headers of the answered message, never from its text.
 *
 *   To   the answered message's Reply-To, else its From.  If the user wrote that message, its To
 *   Cc   for everyone, its other recipients; never those of Bcc
 *
 * Invariants:
 *   AWR1  every recipient is an address of From, Reply-To, To or Cc of the answered message, each
 *         once, and none is the user's own, unless it is the only one.
 *   AWR2  a subject begins with "Re: " or "Fwd: " exactly once.
 *   AWR3  of a long thread the first id and the last ones are named, the answered message's at the
 *         end.
 */
#ifndef TIDE_MAIL_COMPOSE_ANSWER_H
#define TIDE_MAIL_COMPOSE_ANSWER_H

#include "mail/compose/compose.h"

enum {
    TIDE_ANSWER_RECIPIENTS_MAX = 50, /* of To, of Cc */
    TIDE_ANSWER_SUBJECT_BYTES_MAX = 500,
};

/* The answered message; texts are clean (mail/mime/charset.h CHR1) and borrowed. */
struct tide_answered {
    tide_text from, to, cc, reply_to; /* addresses as displayed */
    tide_text subject;
    tide_text message_id; /* without <>; "" */
    tide_text references; /* ids without <>, separated by spaces, oldest first */
    bool has_date;
    int64_t date_unix_ms;
    tide_text text;
};

typedef enum tide_answer_to {
    TIDE_ANSWER_ONE,    /* one address, for programs: a stranger's Reply-To is no list to serve */
    TIDE_ANSWER_SENDER, /* all of its Reply-To */
    TIDE_ANSWER_EVERYONE,
} tide_answer_to;

struct tide_recipients {
    struct tide_mailbox to[TIDE_ANSWER_RECIPIENTS_MAX], cc[TIDE_ANSWER_RECIPIENTS_MAX];
    size_t to_count, cc_count; /* no `to`: the message names nobody who can be answered */
};
/* Borrowed from the message and from `selves`, the user's own addresses, the first one of the
 * account. */
void tide_answer_recipients(const struct tide_answered *answered, const tide_text *selves,
                            size_t selves_count, tide_answer_to whom,
                            struct tide_recipients *recipients_out);

/* "Re:  Invoice" of "RE:  Re[2]:  Invoice"; forwarding, "Fwd:  Invoice" of "FW:  Invoice".  Clean
 * and cut. */
tide_status tide_answer_subject(tide_text subject, bool forward, tide_buf *out);

/* AWR3; returns how many.  Borrowed. */
size_t tide_answer_references(const struct tide_answered *answered,
                              tide_text ids_out[TIDE_COMPOSE_REFERENCES_MAX]);

/* Appends "On 16 November 2026, Ann wrote:" and the text in lines with '>', at most `bytes_max` of
 * it. */
tide_status tide_answer_quote(const struct tide_answered *answered, size_t bytes_max,
                              tide_buf *out);
/* Appends the heading of a forwarded message, and its text. */
tide_status tide_answer_forward(const struct tide_answered *answered, size_t bytes_max,
                                tide_buf *out);

#endif
