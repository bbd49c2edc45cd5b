#include "query_find.h"

static bool walk_visit(void *arg, uint32_t slot)
{
    struct found *found = arg;
    TIDE_ASSERT(slot < SET_MAX);
    if (found->exact || box_query_match(found->query, found->mailbox, slot))
        found->set |= UINT64_C(1) << slot;
    return true;
}

uint64_t by_walk(const box_query *query, box_mailbox *mailbox)
{
    struct box_query_plan plan;
    box_query_plan(query, &plan);
    struct found found = {query, mailbox, plan.exact, 0};
    if (!plan.nothing)
        box_mailbox_walk(mailbox, &plan.walk, BOX_WALK_START, walk_visit, &found);
    return found.set;
}

uint64_t by_match(const box_query *query, box_mailbox *mailbox)
{
    uint64_t set = 0;
    for (uint32_t slot = 0; slot < box_mailbox_slots(mailbox); slot++)
        if (!box_mailbox_at(mailbox, slot)->gone && box_query_match(query, mailbox, slot))
            set |= UINT64_C(1) << slot;
    return set;
}

uint64_t find(box_mailbox *mailbox, tide_text text)
{
    tide_auto_arena arena = tide_arena_heap(ARENA_BYTES_MAX);
    const box_query *query = box_query_parse(text, NOW_MS, mailbox, &arena);
    const uint64_t matched = by_match(query, mailbox);
    const uint64_t walked = by_walk(query, mailbox);
    if (matched != walked)
        fail_msg("BQRY2 broken by: %.*s", (int)text.bytes, text.data);
    return matched;
}
