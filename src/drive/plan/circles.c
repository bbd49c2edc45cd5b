/* circles.c - actions that wait for each other (D24).
 *
 * Two files that exchange their names, or a child that takes the name of its parent, wait for
 * each other.  Every such circle has an edge from the action that frees a name to the one that takes it:
 * parents, leavers and places only follow the target tree, which has no circle.  The occupant steps
 * aside, to a name of ours in its own folder, and the taker waits for that instead. */
#include "base/check.h"
#include "drive/plan/plan_inside.h"

#include <stdio.h>

/* Edges by their first action: start[a] .. start[a + 1] in `list`. */
struct fans {
    uint32_t *start, *list;
    size_t starts, lists;
};

static void fans_done(struct tide_planner *planner, struct fans *fans)
{
    tide_mem_free(planner->mem, fans->start, fans->starts * 4);
    tide_mem_free(planner->mem, fans->list, fans->lists * 4);
}

static tide_status fans_make(struct tide_planner *planner, bool backwards, struct fans *fans)
{
    fans->starts = planner->plan->actions_count + 2;
    fans->lists = planner->edges_count + 1;
    fans->start = tide_mem_array(planner->mem, fans->starts, 4);
    fans->list = tide_mem_array(planner->mem, fans->lists, 4);
    if (fans->start == NULL || fans->list == NULL) {
        fans_done(planner, fans);
        return tide_plan_no_memory(planner);
    }
    for (size_t i = 0; i < planner->edges_count; i++)
        fans->start[(backwards ? planner->edges[i].after : planner->edges[i].before) + 2]++;
    for (size_t i = 2; i < fans->starts; i++)
        fans->start[i] += fans->start[i - 1];
    for (uint32_t i = 0; i < planner->edges_count; i++) {
        const uint32_t from = backwards ? planner->edges[i].after : planner->edges[i].before;
        fans->list[fans->start[from + 1]++] = i;
    }
    return TIDE_OK;
}

tide_status tide_plan_sort(struct tide_planner *planner, uint32_t *order, uint32_t *waits,
                           size_t *sorted_out)
{
    const size_t count = planner->plan->actions_count;
    struct fans fans = {.start = NULL};
    size_t used = 0;
    TIDE_TRY(fans_make(planner, false, &fans));
    memset(waits, 0, count * 4);
    for (size_t i = 0; i < planner->edges_count; i++)
        waits[planner->edges[i].after]++;
    for (uint32_t i = 0; i < count; i++)
        if (waits[i] == 0)
            order[used++] = i;
    for (size_t next = 0; next < used; next++)
        for (uint32_t k = fans.start[order[next]]; k < fans.start[order[next] + 1]; k++) {
            const uint32_t after = planner->edges[fans.list[k]].after;
            if (--waits[after] == 0)
                order[used++] = after;
        }
    fans_done(planner, &fans);
    *sorted_out = used;
    return TIDE_OK;
}

/* The occupant of the name steps aside before the taker; its own action stays where it was. */
static tide_status step_aside(struct tide_planner *planner, uint32_t edge)
{
    const uint32_t frees = planner->edges[edge].before;
    const uint32_t node = planner->node_of_action[frees];
    const bool local = tide_drive_verb_is_local(planner->plan->actions[frees].verb);
    uint32_t step = 0;
    char name[32];
    TIDE_TRY(tide_plan_action_add(planner, node,
                                  local ? TIDE_DRIVE_MOVE_LOCAL : TIDE_DRIVE_MOVE_REMOTE, &step));
    struct tide_drive_action *action = &planner->plan->actions[step];
    const struct tide_plan_node *is = &planner->nodes[node];
    const uint32_t up = is->parent[local ? TIDE_PLAN_LOCAL : TIDE_PLAN_REMOTE];
    const uint64_t number = tide_index_hash(local ? action->row : action->item, TIDE_TEXT_NONE);
    (void)snprintf(name, sizeof name, "tidemark-move-%08x", (unsigned)(number & UINT32_MAX));
    const char *kept = tide_arena_copy(&planner->plan->arena, name, strlen(name));
    if (kept == NULL)
        return tide_plan_no_memory(planner);
    action->name = tide_text_of(kept);
    action->step_aside = true;
    action->notice = TIDE_DRIVE_QUIET;
    action->parent_item = action->parent_row = up == TIDE_PLAN_TOP ? TIDE_DRIVE_ROOT : 0;
    if (up != TIDE_PLAN_TOP && planner->nodes[up].here[TIDE_PLAN_REMOTE])
        action->parent_item = planner->trees->remotes[planner->nodes[up].remote].item;
    if (up != TIDE_PLAN_TOP && planner->nodes[up].here[TIDE_PLAN_LOCAL])
        action->parent_row = planner->trees->locals[planner->nodes[up].local].row;
    planner->edges[edge].before = step;
    planner->edges[edge].frees_name = false;
    return tide_plan_edge_add(planner, step, frees, false);
}

/* Walks backwards among actions that wait until one comes again; then round the circle to an edge
 * that frees a name. */
static tide_status break_at(struct tide_planner *planner, const struct fans *back,
                            const uint32_t *waits, uint32_t *seen, uint32_t mark, uint32_t at,
                            bool *broken_out)
{
    uint32_t found = TIDE_PLAN_NONE;
    bool round = false;
    for (;;) {
        uint32_t edge = TIDE_PLAN_NONE;
        for (uint32_t k = back->start[at]; k < back->start[at + 1]; k++)
            if (waits[planner->edges[back->list[k]].before] > 0)
                edge = back->list[k];
        TIDE_ASSERT(edge != TIDE_PLAN_NONE); /* it waits, so one before it does */
        if (round && planner->edges[edge].frees_name)
            found = edge;
        at = planner->edges[edge].before;
        if (!round && seen[at] == mark) {
            round = true;
            mark++;
        } else if (seen[at] != 0 && seen[at] < mark && !round) {
            return TIDE_OK; /* leads to a circle that is broken already */
        } else if (round && seen[at] == mark) {
            break;
        }
        seen[at] = mark;
    }
    TIDE_ASSERT(found != TIDE_PLAN_NONE);
    *broken_out = true;
    return step_aside(planner, found);
}

static tide_status break_all(struct tide_planner *planner, uint32_t *order, uint32_t *waits,
                             uint32_t *seen, bool *broken_out)
{
    const size_t count = planner->plan->actions_count;
    struct fans back = {.start = NULL};
    size_t sorted = 0;
    TIDE_TRY(tide_plan_sort(planner, order, waits, &sorted));
    if (sorted == count)
        return TIDE_OK;
    TIDE_TRY(fans_make(planner, true, &back));
    tide_status rc = TIDE_OK;
    for (uint32_t i = 0, mark = 1; rc == TIDE_OK && i < count; i++)
        if (waits[i] > 0 && seen[i] == 0) {
            seen[i] = mark;
            rc = break_at(planner, &back, waits, seen, mark, i, broken_out);
            mark += 2;
        }
    fans_done(planner, &back);
    return rc;
}

tide_status tide_plan_circles(struct tide_planner *planner)
{
    tide_status rc = TIDE_OK;
    for (bool broken = true; rc == TIDE_OK && broken;) {
        const size_t count = planner->plan->actions_count;
        uint32_t *rooms = tide_mem_array(planner->mem, 3 * count + 1, 4);
        broken = false;
        if (rooms == NULL)
            return tide_plan_no_memory(planner);
        rc = break_all(planner, rooms, rooms + count, rooms + 2 * count, &broken);
        tide_mem_free(planner->mem, rooms, (3 * count + 1) * 4);
    }
    return rc;
}
