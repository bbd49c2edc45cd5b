/* query_find.h - for the tests of queries: finding messages by walking the plan
 * and by asking every message, which must agree (BQRY2).  Slots are bits of a set. */
#ifndef BOX_TESTS_QUERY_FIND_H
#define BOX_TESTS_QUERY_FIND_H

#include "cloudbox/mailbox/query.h"

#include "base/check.h"
#include "base/rng.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_MS    (UINT64_C(3600) * 1000)
#define DAY_MS     (24 * HOUR_MS)
#define PST_JAN_10 UINT64_C(1704873600000) /* 2024-01-10T08:00:00Z, midnight in UTC-8 */
#define NOW_MS     (PST_JAN_10 + 100 * DAY_MS)

enum { ARENA_BYTES_MAX = 16 << 20, SET_MAX = 64 };

struct found {
    const box_query *query;
    box_mailbox *mailbox;
    bool exact;
    uint64_t set;
};

uint64_t by_walk(const box_query *query, box_mailbox *mailbox);
uint64_t by_match(const box_query *query, box_mailbox *mailbox);
uint64_t find(box_mailbox *mailbox, tide_text text);

#endif
