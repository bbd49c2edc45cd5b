/* push.h - watch, stop and Pub/Sub's deliveries.
 *
 * One watch per user and topic owner (the project in the topic's name), seven
 * days long; a change of the mailbox that passes its label filter makes a
 * notification, at most one a second per watch, the rest dropped; a delivery
 * that is not acknowledged with 2xx (or 102) comes again with growing pauses for
 * up to seven days.  What waits is bounded: the oldest is dropped and counted.
 * Watches outlive the program, deliveries do not.
 *
 * Invariants:
 *   BPSH1  no two notifications of one user to one project are made less than one second apart.
 *   BPSH2  after watch ended (stop, expiry) none is made.
 *   BPSH3  a delivery is repeated until it is acknowledged, given up, or lost by a fault.
 */
#ifndef BOX_PUSH_H
#define BOX_PUSH_H

#include "cloudbox/gate/service.h"

/* A service without methods: gmail.users.watch and gmail.users.stop are Gmail's. */
extern const struct box_service box_pubsub;
struct box_push *box_cloud_push(box_cloud *cloud);

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
/* All watches end now, as if seven days had passed. */
void box_push_expire(struct box_push *push, const struct box_user *user);

/* Where notifications for a topic go. */
tide_status box_cloud_add_topic(box_cloud *cloud, tide_text topic, tide_text url, tide_error *err);

#endif
