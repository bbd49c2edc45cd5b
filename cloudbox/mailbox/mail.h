/* mail.h - a mailbox for each user of the cloud: a service without methods of its own.
 * Gmail serves the mailboxes, push watches them, the control page fills them. */
#ifndef BOX_MAIL_H
#define BOX_MAIL_H

#include "cloudbox/gate/user.h"
#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/record/acts.h"

extern const struct box_service box_mail;

box_mailbox *box_user_mailbox(const struct box_user *user);
/* A message's body was given out, for the record. */
void box_mail_fetched(const struct box_user *user, uint32_t slot);
/* A client did this to a message, or is about to: before it is removed. */
void box_mail_acted(const struct box_user *user, uint32_t slot, box_act act);

enum {
    BOX_MAILBOX_MESSAGES_MAX = 20 * 1000 * 1000,
    BOX_MAILBOX_SIZE_MIN = 1000, /* what every kind of generated message fits into */
    BOX_MAILBOX_SIZE_MAX = 50 << 20,
};

struct box_mailbox_options {
    uint32_t messages;
    uint32_t size_bytes;  /* every message exactly so large; 0: a realistic spread */
    uint64_t seed;        /* 0: from the cloud's seed and the address */
    uint64_t now_unix_ms; /* the newest message is a little older; 0: the cloud's clock */
};
/* A new user with a generated mailbox.  TIDE_EXISTS; TIDE_INVALID: not an address, or a
 * size beyond the limits above. */
tide_status box_cloud_add_mailbox(box_cloud *cloud, tide_text email,
                                  const struct box_mailbox_options *options, tide_error *err);
/* One real message, older than all generated ones.  The user must exist. */
tide_status box_cloud_add_message(box_cloud *cloud, tide_text email, tide_text raw,
                                  tide_error *err);

#endif
