/* faults_spoil.h - what each fault does to an answer; the rules are in faults.c. */
#ifndef BOX_FAULTS_SPOIL_H
#define BOX_FAULTS_SPOIL_H

#include "cloudbox/gate/service.h"

typedef enum box_fault {
    BOX_FAULT_401,
    BOX_FAULT_403,
    BOX_FAULT_403_RATE,
    BOX_FAULT_403_USER_RATE,
    BOX_FAULT_403_DAILY,
    BOX_FAULT_404,
    BOX_FAULT_429,
    BOX_FAULT_429_TIME,
    BOX_FAULT_500,
    BOX_FAULT_502,
    BOX_FAULT_503,
    BOX_FAULT_504,
    BOX_FAULT_HTML,
    BOX_FAULT_POISON,
    BOX_FAULT_HISTORY_EXPIRED,
    BOX_FAULT_RESET_BEFORE,
    BOX_FAULT_RESET_AFTER, /* from here on the handler runs first (F2) */
    BOX_FAULT_STALL_START,
    BOX_FAULT_STALL_HEAD,
    BOX_FAULT_STALL_BODY,
    BOX_FAULT_TRUNCATE,
    BOX_FAULT_GARBAGE,
    BOX_FAULT_LIST_EMPTY, /* from here on the answer lies (cloudbox/gmail/lies.h) */
    BOX_FAULT_LIST_SHORT,
    BOX_FAULT_RAW_HALF,
    BOX_FAULT_RAW_EMPTY,
    BOX_FAULT_HISTORY_GARBLED,
    BOX_FAULT_HISTORY_AHEAD,
    BOX_FAULT_ID_GARBLED,
    BOX_FAULT_HIDDEN,
    BOX_FAULT_LATENCY, /* these two go along with any other */
    BOX_FAULT_SLOW,
    BOX_FAULT_ASKED, /* from here on a handler asks by name */
    BOX_FAULT_BATCH_MISSING = BOX_FAULT_ASKED,
    BOX_FAULT_BATCH_EXTRA,
    BOX_FAULT_BATCH_REORDER,
    BOX_FAULT_PAGE_LOOP,
    BOX_FAULT_PAGE_RESTART,
    BOX_FAULT_LIST_SHIFT,
    BOX_FAULT_PUSH_DUPLICATE,
    BOX_FAULT_PUSH_LOSS,
    BOX_FAULT_BILLING,
    BOX_FAULT_OVERLOADED,
    BOX_FAULT_BAD_JSON,
    BOX_FAULT_LENGTH,
    BOX_FAULT_NO_USAGE,
    BOX_FAULT_INVALID_ARGUMENTS,
    BOX_FAULTS,
} box_fault;

/* Instead of the handler: BOX_FAULT_401 .. BOX_FAULT_RESET_BEFORE. */
void box_fault_answer(struct box_call *call, box_fault fault, uint32_t ms);
/* After it: BOX_FAULT_RESET_AFTER .. BOX_FAULT_GARBAGE. */
void box_fault_spoil(struct box_call *call, box_fault fault, uint32_t ms, tide_rng *rng);

#endif
