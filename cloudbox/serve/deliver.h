/* deliver.h - posts what the cloud itself wants to send: Pub/Sub's pushes.
 *
 * One thread with up to BOX_DELIVERIES_MAX posts under way, so that one endpoint
 * that does not answer does not delay the others.  It sleeps until the cloud has
 * something due. */
#ifndef BOX_SERVE_DELIVER_H
#define BOX_SERVE_DELIVER_H

#include "cloudbox/push/push.h"
#include "cloudbox/serve/shared.h"

enum { BOX_DELIVERIES_MAX = 16, BOX_DELIVERY_TIMEOUT_MS = 10000 };

typedef struct box_deliver box_deliver;

/* `shared` is borrowed, its cloud must be there. */
box_deliver *box_deliver_start(struct box_shared *shared, bool verbose);
void box_deliver_stop(box_deliver *deliver); /* frees it; NULL is fine */

/* The cloud has something due at that time (box_cloud_wake_at_ms).  Cheap when
 * the thread is up by then anyway. */
void box_deliver_wake_by(box_deliver *deliver, uint64_t wake_at_ms);

#endif
