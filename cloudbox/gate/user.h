/* user.h - one account of the cloud: an address, and a part for each service. */
#ifndef BOX_USER_H
#define BOX_USER_H

#include "cloudbox/gate/service.h"

enum { BOX_USERS_MAX = 10000, BOX_EMAIL_BYTES_MAX = 254 };

struct box_user {
    uint32_t number; /* 1-based, in order of creation; indexes quota and record */
    char email[BOX_EMAIL_BYTES_MAX + 1];
    box_cloud *cloud;
    bool changed;                  /* during this request */
    void *parts[BOX_SERVICES_MAX]; /* by the place of the service in the cloud's list */
};

#endif
