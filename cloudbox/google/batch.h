/* batch.h - many calls in one HTTP request: multipart/mixed (gmail.md section 6).
 *
 * Parts run in a seeded order, each through the whole gate: charged, refused,
 * faulted and recorded as a call of its own.  The answers stand in the order of
 * the parts, named by Content-ID. */
#ifndef BOX_BATCH_H
#define BOX_BATCH_H

#include "cloudbox/gate/service.h"

enum { BOX_BATCH_PARTS_MAX = 100 };

/* POST /batch and everything below it. */
extern const struct box_service box_batch;

#endif
