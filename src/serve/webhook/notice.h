/* notice.h - the body of a notification: what OneDrive posts when a drive changed.
 *
 *   {"value":[{"subscriptionId":"ID","clientState":"SECRET", ...}]}
 *
 * Pure.  It says only that something changed; other fields are ignored. */
#ifndef TIDE_SERVE_WEBHOOK_NOTICE_H
#define TIDE_SERVE_WEBHOOK_NOTICE_H

#include "base/status.h"
#include "base/text.h"

enum { TIDE_NOTICES_MAX = 1000 }; /* in one body */

struct tide_notice {
    tide_text subscription, secret; /* borrowed; never empty */
};
/* Visits those that have both fields.  TIDE_INVALID: it is not such a body. */
tide_status tide_notices_hear(tide_text body,
                              void (*visit)(const struct tide_notice *notice, void *arg),
                              void *arg);

#endif
