/* guard.c - actions that must wait: many deletions (S15), writes that the mode forbids (D20), what
 * failed a moment ago (D4), writes to what is read-only online (D37), deletions online while something
 * here is unread (S2), and all that comes after one of these. */
#include "base/check.h"
#include "drive/plan/plan_inside.h"

#include <stdlib.h>

enum { DELETIONS_MAX = 1000, DELETIONS_FEW = 10 };

static bool is_delete(tide_drive_verb verb)
{
    return verb == TIDE_DRIVE_DEL_LOCAL || verb == TIDE_DRIVE_DEL_REMOTE;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static bool is_among(uint64_t number, const uint64_t *sorted, size_t count)
{
    return number != 0 && count > 0 &&
           bsearch(&number, sorted, count, sizeof number, by_number) != NULL;
}

static bool is_consented(const struct tide_drive_guard *guard, uint64_t item)
{
    return is_among(item, guard->consented, guard->consented_count);
}

static void guard_deletions(struct tide_planner *planner)
{
    const struct tide_drive_guard *guard = &planner->options->guard;
    struct tide_drive_plan *plan = planner->plan;
    uint64_t count = guard->done_24h;
    for (size_t i = 0; i < plan->actions_count; i++)
        count += is_delete(plan->actions[i].verb) && !is_consented(guard, plan->actions[i].item);
    plan->deletions = count;
    plan->guarded =
        count > DELETIONS_MAX || (count > guard->largest_24h / 2 && count >= DELETIONS_FEW);
    for (size_t i = 0; plan->guarded && i < plan->actions_count; i++)
        if (is_delete(plan->actions[i].verb) && !is_consented(guard, plan->actions[i].item))
            plan->actions[i].state = TIDE_DRIVE_WAITS_CONSENT;
}

static void hold_by_mode(struct tide_planner *planner)
{
    const tide_drive_mode mode = planner->options->mode;
    struct tide_drive_plan *plan = planner->plan;
    for (size_t i = 0; i < plan->actions_count; i++) {
        const tide_drive_verb verb = plan->actions[i].verb;
        if ((mode == TIDE_DRIVE_DOWNLOAD_ONLY && tide_drive_verb_is_remote(verb)) ||
            (mode == TIDE_DRIVE_UPLOAD_ONLY && tide_drive_verb_is_local(verb)))
            plan->actions[i].state = TIDE_DRIVE_HELD_MODE;
    }
}

static void hold_owed(struct tide_planner *planner)
{
    const struct tide_drive_trees *trees = planner->trees;
    struct tide_drive_plan *plan = planner->plan;
    for (size_t i = 0; i < plan->actions_count; i++) {
        struct tide_drive_action *action = &plan->actions[i];
        if (action->state == TIDE_DRIVE_READY &&
            (is_among(action->item, trees->owed_items, trees->owed_items_count) ||
             is_among(action->row, trees->owed_rows, trees->owed_rows_count)))
            action->state = TIDE_DRIVE_HELD_OWED;
    }
}

/* The way up from a node, where it is online and where it is to be. */
static bool is_closed(const struct tide_planner *planner, uint32_t at, bool now)
{
    const struct tide_drive_trees *trees = planner->trees;
    for (size_t steps = 0; at != TIDE_PLAN_NONE && steps <= planner->nodes_count; steps++) {
        const struct tide_plan_node *node = &planner->nodes[at];
        const uint64_t item = at == TIDE_PLAN_TOP              ? TIDE_DRIVE_ROOT
                              : node->remote == TIDE_PLAN_NONE ? 0
                                                               : trees->remotes[node->remote].item;
        if (is_among(item, trees->closed_items, trees->closed_items_count))
            return true;
        if (at == TIDE_PLAN_TOP)
            break;
        at = now ? node->parent[TIDE_PLAN_REMOTE] : node->target;
    }
    return false;
}

static void hold_closed(struct tide_planner *planner)
{
    struct tide_drive_plan *plan = planner->plan;
    for (size_t i = 0; planner->trees->closed_items_count > 0 && i < plan->actions_count; i++) {
        const uint32_t node = planner->node_of_action[i];
        if (plan->actions[i].state == TIDE_DRIVE_READY &&
            tide_drive_verb_is_remote(plan->actions[i].verb) &&
            (is_closed(planner, node, true) || is_closed(planner, node, false)))
            plan->actions[i].state = TIDE_DRIVE_HELD_OWED;
    }
}

/* DPL6.  Only the deletion is in doubt: a file that changed online comes down again, and the one that was
 * moved is another file beside it when it is seen. */
static void hold_unread(struct tide_planner *planner)
{
    struct tide_drive_plan *plan = planner->plan;
    for (size_t i = 0; planner->trees->unread_here && i < plan->actions_count; i++)
        if (plan->actions[i].state == TIDE_DRIVE_READY &&
            plan->actions[i].verb == TIDE_DRIVE_DEL_REMOTE)
            plan->actions[i].state = TIDE_DRIVE_HELD_UNREAD;
}

/* Passes over the edges until nothing changes: a chain of waiting actions is short. */
static tide_status hold_after(struct tide_planner *planner)
{
    struct tide_drive_plan *plan = planner->plan;
    const size_t count = plan->actions_count;
    uint32_t *rooms = tide_mem_array(planner->mem, 3 * count + 1, 4);
    size_t sorted = 0;
    if (rooms == NULL)
        return tide_plan_no_memory(planner);
    uint32_t *order = rooms, *rank = rooms + count;
    tide_status rc = tide_plan_sort(planner, order, rooms + 2 * count, &sorted);
    if (rc == TIDE_OK) {
        TIDE_ASSERT(sorted == count); /* DPL3 */
        for (uint32_t i = 0; i < count; i++)
            rank[order[i]] = i;
        bool more = true;
        for (size_t pass = 0; more && pass <= count; pass++) {
            more = false;
            for (size_t i = 0; i < planner->edges_count; i++) {
                const struct tide_plan_edge *edge = &planner->edges[i];
                TIDE_ASSERT(rank[edge->before] < rank[edge->after]);
                if (!edge->only_order && plan->actions[edge->before].state != TIDE_DRIVE_READY &&
                    plan->actions[edge->after].state == TIDE_DRIVE_READY) {
                    plan->actions[edge->after].state = TIDE_DRIVE_HELD_OTHER;
                    more = true;
                }
            }
        }
    }
    tide_mem_free(planner->mem, rooms, (3 * count + 1) * 4);
    return rc;
}

tide_status tide_plan_guard(struct tide_planner *planner)
{
    guard_deletions(planner);
    hold_by_mode(planner);
    hold_owed(planner);
    hold_closed(planner);
    hold_unread(planner);
    return hold_after(planner);
}
