/* push.h - the body of a push: what Pub/Sub posts when a watched mailbox changed.
 *
 *   {"message":{"data":"BASE64","messageId":"1"},"subscription":"projects/P/subscriptions/S"}
 *   BASE64 of {"emailAddress":"ada@example.com","historyId":"9876"}
 *
 * Pure.  Fields that are not listed are ignored.
 *
 * Invariants:
 *   PSH1  an address has visible characters, one '@' inside, and at most TIDE_PUSH_ADDRESS_BYTES_MAX
 *         bytes.
 *   PSH2  the history id is digits, or absent: it is shown, never used as a position.
 */
#ifndef TIDE_SERVE_WEBHOOK_PUSH_H
#define TIDE_SERVE_WEBHOOK_PUSH_H

#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

enum { TIDE_PUSH_ADDRESS_BYTES_MAX = 254, TIDE_PUSH_BODY_BYTES_MAX = 64 << 10 };

struct tide_push {
    char address[TIDE_PUSH_ADDRESS_BYTES_MAX + 1];
    char history_id[24]; /* "": none */
    uint64_t message;    /* the same for the same message of the same subscription; 0: unknown */
};

/* TIDE_INVALID: the error says what is wrong, without a value from the body. */
tide_status tide_push_read(tide_text body, tide_mem *mem, struct tide_push *push_out,
                           tide_error *err);

#endif
