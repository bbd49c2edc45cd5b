/* push.h - watch, stop and Pub/Sub's deliveries.
 *
 * One watch per user and topic owner, seven days long; a change of the mailbox
 * that passes its label filter makes a notification, at most one a second per
 * user, the rest dropped; a delivery that is not acknowledged with 2xx (or 102)
 * comes again with growing pauses for up to seven days.
 *
 * Invariants:
 *   P1  no two notifications of one user are born less than one second apart.
 *   P2  after watch ended (stop, expiry) none is born.
 *   P3  a delivery is repeated until it is acknowledged, given up, or lost by a fault.
 */
#ifndef BOX_PUSH_H
#define BOX_PUSH_H

#include "logic/service.h"

struct box_push *box_push_new(box_cloud *cloud);
void box_push_free(struct box_push *push);

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

/* See cloud.h; times are on the cloud's clock. */
bool box_push_next(struct box_push *push, uint64_t now_ms, struct box_delivery *delivery_out);
void box_push_done(struct box_push *push, uint64_t id, int status, uint64_t now_ms);
uint64_t box_push_wake_at_ms(const struct box_push *push);
/* What was sent, acknowledged, dropped, given up: part of /_cloud/stats. */
json_t *box_push_stats(const struct box_push *push);
tide_status box_push_replay(struct box_push *push, const json_t *change, tide_error *err);

#endif
