/* inside.h - what cloud.c and gate.c share: the cloud itself. */
#ifndef BOX_INSIDE_H
#define BOX_INSIDE_H

#include "base/map.h"
#include "cloudbox/signin/auth.h"
#include "cloudbox/chat/chat.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/console/console.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gmail/gmail.h"
#include "cloudbox/push/push.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/record/referee.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"

/* A user, and where news of its mailbox goes. */
struct box_member {
    struct box_user user; /* first, so that a user is a member */
    box_cloud *cloud;
    uint32_t real_messages; /* added by box_cloud_add_message() */
    bool changed;           /* during this call: tell push */
};

struct box_cloud {
    struct box_options options;
    struct box_clock clock;
    bool clock_runs;
    bool replaying;
    uint64_t outside_ms; /* the caller's now */
    uint64_t now_ms;     /* the cloud's, of the call being served */
    tide_rng rng;
    struct box_member **members; /* by number - 1 */
    size_t members_count;
    size_t members_capacity;
    tide_map by_email; /* hash of the address -> index; see box_cloud_user() */
    bool any_changed;
    tide_arena scratch; /* of the call being served */

    struct box_auth *auth;
    struct box_quota *quota;
    struct box_referee *referee;
    struct box_faults *faults;
    struct box_push *push;
    struct box_sites *sites;
    struct box_chat_state *chat;
    struct box_uploads *uploads;
};

#endif
