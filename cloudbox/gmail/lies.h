/* lies.h - answers that look right and are not: short, empty or looping listings, cut
 * bodies, wrong history ids, messages that are denied.  A client that believes them loses mail. */
#ifndef BOX_FAULTS_LIE_H
#define BOX_FAULTS_LIE_H

#include "cloudbox/gate/faults_spoil.h"

/* Whether a fault of this kind can change an answer of this call. */
bool box_fault_can_lie(box_fault fault, const struct box_call *call);
/* Which messages BOX_FAULT_HIDDEN denies. */
typedef bool box_hides(const void *arg, tide_text id);
/* Changes an answer that the handler gave: BOX_FAULT_LIST_EMPTY .. BOX_FAULT_HIDDEN.  An
 * error is left as it is. */
void box_fault_lie(struct box_call *call, box_fault fault, tide_rng *rng, box_hides *hides,
                   const void *hides_arg);

#endif
