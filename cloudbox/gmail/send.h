/* send.h - what sending does beyond storing: recipients, the headers a
 * mail server completes, and delivery to the other users of this cloud.
 *
 * Nothing leaves the box: an address that is no user here is accepted and its
 * copy thrown away.
 */
#ifndef BOX_GMAIL_SEND_H
#define BOX_GMAIL_SEND_H

#include "cloudbox/gmail/gmail.h"

struct box_recipients {
    size_t count;                               /* addresses in To, Cc and Bcc */
    bool self;                                  /* the sender is one of them */
    struct box_user *users[BOX_RECIPIENTS_MAX]; /* other users here, each once */
    size_t users_count;
};

/* false: answered with 400, since there is no recipient, one that is no address, or too many. */
bool box_recipients_read(struct box_call *call, tide_text raw, struct box_recipients *to_out);
/* Writes down a message that was sent before, by its Message-ID. */
void box_send_watch(struct box_call *call, tide_text raw);
/* Appends the message with From, Date and Message-ID added where missing. */
void box_send_complete(struct box_call *call, tide_text raw, tide_buf *out);
/* A copy without Bcc to each user's inbox. */
void box_send_deliver(struct box_call *call, tide_text raw, const struct box_recipients *to);

#endif
