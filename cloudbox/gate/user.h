/* user.h - one account of the cloud: an address and what belongs to it. */
#ifndef BOX_USER_H
#define BOX_USER_H

#include "cloudbox/mailbox/mailbox.h"

enum { BOX_USERS_MAX = 10000, BOX_EMAIL_BYTES_MAX = 254 };

struct box_user {
    uint32_t number; /* 1-based, in order of creation; indexes quota and referee */
    char email[BOX_EMAIL_BYTES_MAX + 1];
    box_mailbox *mailbox; /* owned */
};

#endif
