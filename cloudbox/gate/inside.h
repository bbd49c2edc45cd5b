/* inside.h - struct box_cloud, shared by the files of the gate. */
#ifndef BOX_INSIDE_H
#define BOX_INSIDE_H

#include "base/map.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/record/referee.h"

struct box_cloud {
    struct box_options options;
    void *states[BOX_SERVICES_MAX]; /* by the place of the service in options.services */
    const struct box_style *style;  /* of calls that no service takes; may be NULL */
    struct box_clock clock;
    bool clock_runs;
    bool replaying;
    uint64_t outside_ms; /* the caller's now */
    uint64_t now_ms;     /* the cloud's, of the call being served */
    tide_rng rng;
    struct box_user **users; /* by number - 1 */
    size_t users_count;
    size_t users_capacity;
    tide_map by_email; /* hash of the address -> index; see box_cloud_user() */
    bool any_changed;
    tide_arena scratch; /* of the call being served */

    struct box_quota *quota;
    struct box_referee *referee;
    struct box_faults *faults;
};

/* for (each_service(cloud, i, service)) */
#define each_service(cloud, i, service)                                                            \
    size_t i = 0;                                                                                  \
    ((service) = (cloud)->options.services[i]) != NULL;                                            \
    i++

/* call.c: whether the parameters that all methods of the service share are right. */
bool box_call_accept(struct box_call *call);

/* users.c */
void box_users_free(box_cloud *cloud);
/* Calls the services' `changed` for every user that changed. */
void box_users_tell(box_cloud *cloud);
tide_status box_users_replay(box_cloud *cloud, const json_t *change, tide_error *err);

#endif
