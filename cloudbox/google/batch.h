/* batch.h - many calls in one HTTP request: multipart/mixed (gmail.md section 6).
 *
 * Parts run in a seeded order, each through the whole gate: charged, refused,
 * faulted and recorded as a call of its own.  The answers stand in the order of
 * the parts, named by Content-ID. */
#ifndef BOX_BATCH_H
#define BOX_BATCH_H

#include "cloudbox/gate/service.h"

enum { BOX_BATCH_PARTS_MAX = 100 };

void box_batch_serve(box_cloud *cloud, const struct box_request *request,
                     struct box_answer *answer);

#endif
