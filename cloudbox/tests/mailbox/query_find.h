/* query_find.h - for the tests of queries: finding messages by walking the plan
 * and by asking every message, which must agree (Q2).  Slots are bits of a set. */
#ifndef BOX_TESTS_QUERY_FIND_H
#define BOX_TESTS_QUERY_FIND_H

#include "cloudbox/mailbox/query.h"

#include "base/check.h"
#include "base/rng.h"
#include "cloudbox/mailbox/mime.h"
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

static inline bool walk_visit(void *arg, uint32_t slot)
{
    struct found *found = arg;
    TIDE_ASSERT(slot < SET_MAX);
    if (found->exact || box_query_match(found->query, found->mailbox, slot))
        found->set |= UINT64_C(1) << slot;
    return true;
}

static inline uint64_t by_walk(const box_query *query, box_mailbox *mailbox)
{
    struct box_query_plan plan;
    box_query_plan(query, &plan);
    struct found found = {query, mailbox, plan.exact, 0};
    if (!plan.nothing)
        box_mailbox_walk(mailbox, &plan.walk, BOX_WALK_START, walk_visit, &found);
    return found.set;
}

static inline uint64_t by_match(const box_query *query, box_mailbox *mailbox)
{
    uint64_t set = 0;
    for (uint32_t slot = 0; slot < box_mailbox_slots(mailbox); slot++)
        if (!box_mailbox_at(mailbox, slot)->gone && box_query_match(query, mailbox, slot))
            set |= UINT64_C(1) << slot;
    return set;
}

static inline uint64_t find(box_mailbox *mailbox, tide_text text)
{
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), ARENA_BYTES_MAX);
    const box_query *query = box_query_parse(text, NOW_MS, mailbox, &arena);
    const uint64_t matched = by_match(query, mailbox);
    const uint64_t walked = by_walk(query, mailbox);
    tide_arena_done(&arena);
    if (matched != walked)
        fail_msg("Q2 broken by: %.*s", (int)text.bytes, text.data);
    return matched;
}

#endif
