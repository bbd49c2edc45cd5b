/* push.h - watch, stop and Pub/Sub's deliveries.
 *
 * One watch per user and topic owner (the project in the topic's name), seven
 * days long; a change of the mailbox that passes its label filter makes a
 * notification, at most one a second per watch, the rest dropped; a delivery
 * that is not acknowledged with 2xx (or 102) comes again with growing pauses for
 * up to seven days.  What waits is bounded: the oldest gives way, and is counted.
 * Watches outlive the program, deliveries do not.
 *
 * Invariants:
 *   P1  no two notifications of one user to one project are born less than one
 *       second apart.
 *   P2  after watch ended (stop, expiry) none is born.
 *   P3  a delivery is repeated until it is acknowledged, given up, or lost by a fault.
 */
#ifndef BOX_PUSH_H
#define BOX_PUSH_H

#include "cloudbox/gate/service.h"

struct box_push *box_push_new(box_cloud *cloud);
void box_push_free(struct box_push *push);

enum {
    BOX_TOPICS_MAX = 1000,
    BOX_TOPIC_NAME_BYTES_MAX = 300,
    BOX_TOPIC_URL_BYTES_MAX = 800, /* it is also in the signed token, which has its own limit */
    BOX_WATCH_LABELS_MAX = 100,
    BOX_WATCHES_PER_USER_MAX = 8,
    BOX_WATCHES_MAX = 8 * 10000 + 1, /* of BOX_USERS_MAX users */
    BOX_DELIVERIES_WAITING_MAX = 10000,
};

/* "projects/P/topics/T" and where it is pushed to.  Another address for the same
 * topic is one more subscription; the same again changes nothing. */
tide_status box_push_add_topic(struct box_push *push, tide_text topic, tide_text url,
                               tide_error *err);
/* The methods gmail.users.watch and gmail.users.stop. */
void box_push_watch(struct box_call *call);
void box_push_stop(struct box_call *call);
/* A mailbox changed: called by the gate after every call that moved a history
 * id (and by the control page). */
void box_push_changed(struct box_push *push, struct box_user *user, uint64_t now_ms);
/* All watches end now, as if seven days had passed. */
void box_push_expire(struct box_push *push, const struct box_user *user);

/* See cloudbox/gate/cloud.h; times are on the cloud's clock.  The body becomes the caller's. */
bool box_push_next(struct box_push *push, uint64_t now_ms, struct box_delivery *delivery_out);
void box_push_done(struct box_push *push, uint64_t id, int status, uint64_t now_ms);
uint64_t box_push_wake_at_ms(const struct box_push *push);
/* What was sent, acknowledged, dropped, given up: part of /_cloud/stats. */
json_t *box_push_stats(const struct box_push *push);
tide_status box_push_replay(struct box_push *push, const json_t *change, tide_error *err);

#endif
