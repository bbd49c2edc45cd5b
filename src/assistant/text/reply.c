#include "assistant/text/reply.h"

void tide_reply_recipients(const struct tide_letter *answered, tide_text self, bool everyone,
                           struct tide_recipients *recipients_out)
{
    const struct tide_answered message = tide_letter_answered(answered);
    tide_answer_recipients(&message, &self, 1, everyone ? TIDE_ANSWER_EVERYONE : TIDE_ANSWER_ONE,
                           recipients_out);
}

tide_status tide_reply_add(const struct tide_reply *reply, tide_buf *out, tide_error *err)
{
    const struct tide_answered answered = tide_letter_answered(reply->answered);
    tide_text ids[TIDE_COMPOSE_REFERENCES_MAX];
    struct tide_recipients recipients;
    tide_auto_buf subject = tide_buf_in(out->mem, TIDE_ANSWER_SUBJECT_BYTES_MAX + 8);
    if (reply->body.bytes > TIDE_REPLY_BODY_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "the draft is longer than %d bytes",
                              TIDE_REPLY_BODY_BYTES_MAX);
    const tide_status rc = tide_answer_subject(answered.subject, false, &subject);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "the draft could not be written");
    tide_reply_recipients(reply->answered, reply->self, reply->everyone, &recipients);
    const struct tide_compose compose = {.from = {TIDE_TEXT(""), reply->self},
                                         .to = recipients.to,
                                         .to_count = recipients.to_count,
                                         .cc = recipients.cc,
                                         .cc_count = recipients.cc_count,
                                         .subject = tide_buf_text(&subject),
                                         .text = reply->body,
                                         .message_id = reply->message_id,
                                         .in_reply_to = tide_compose_is_id(answered.message_id)
                                                            ? answered.message_id
                                                            : TIDE_TEXT(""),
                                         .references = ids,
                                         .references_count = tide_answer_references(&answered, ids),
                                         .token = reply->token,
                                         .opaque = true};
    return tide_compose_add(&compose, out, err);
}
