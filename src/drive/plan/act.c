/* act.c - what each side lacks to look like the target tree. */
#include "base/check.h"
#include "drive/names/key.h"
#include "drive/plan/plan_inside.h"

tide_status tide_plan_action_add(struct tide_planner *planner, uint32_t node_at,
                                 tide_drive_verb verb, uint32_t *at_out)
{
    struct tide_drive_plan *plan = planner->plan;
    const struct tide_drive_trees *trees = planner->trees;
    const struct tide_plan_node *node = &planner->nodes[node_at];
    const size_t count = plan->actions_count + 1;
    if (!TIDE_GROW_IN(plan->mem, plan->actions, plan->actions_capacity, count, TIDE_PLAN_NONE) ||
        !TIDE_GROW_IN(planner->mem, planner->node_of_action, planner->node_of_action_capacity,
                      count, TIDE_PLAN_NONE))
        return tide_plan_no_memory(planner);
    struct tide_drive_action action = {
        .verb = verb, .kind = node->kind, .name = node->name, .notice = node->notice};
    if (node->remote != TIDE_PLAN_NONE)
        action.item = trees->remotes[node->remote].item;
    else if (node->base != TIDE_PLAN_NONE)
        action.item = trees->bases[node->base].item;
    if (node->local != TIDE_PLAN_NONE)
        action.row = trees->locals[node->local].row;
    if (node->base != TIDE_PLAN_NONE && trees->bases[node->base].item != action.item)
        action.was_item = trees->bases[node->base].item;
    if (node->copy_of != TIDE_PLAN_NONE)
        action.copy_of = trees->remotes[planner->nodes[node->copy_of].remote].item;
    if (verb == TIDE_DRIVE_DOWN)
        action.bytes = trees->remotes[node->remote].content.bytes;
    if (verb == TIDE_DRIVE_UP || verb == TIDE_DRIVE_NEW)
        action.bytes = trees->locals[node->local].content.bytes;
    action.compare = verb == TIDE_DRIVE_DOWN && node->compare;
    if (node->target == TIDE_PLAN_TOP) {
        action.parent_item = action.parent_row = TIDE_DRIVE_ROOT;
    } else if (node->target != TIDE_PLAN_NONE) {
        const struct tide_plan_node *folder = &planner->nodes[node->target];
        if (folder->here[TIDE_PLAN_REMOTE])
            action.parent_item = trees->remotes[folder->remote].item;
        if (folder->here[TIDE_PLAN_LOCAL])
            action.parent_row = trees->locals[folder->local].row;
    }
    *at_out = (uint32_t)plan->actions_count;
    planner->node_of_action[plan->actions_count] = node_at;
    plan->actions[plan->actions_count++] = action;
    return TIDE_OK;
}

/* Names that differ in case only were so when they became one item, and stay so, unless one of them
 * is renamed. */
static bool is_in_place(struct tide_planner *planner, const struct tide_plan_node *node,
                        tide_plan_side side)
{
    const tide_text name = tide_plan_name_at(planner, node, side);
    if (node->parent[side] != node->target || tide_plan_aside_at(planner, node, side))
        return false;
    return tide_drive_same_letters(name, node->name) ||
           (!node->moved_r && !node->moved_l && tide_plan_same_key(planner, name, node->name));
}

static tide_status structure(struct tide_planner *planner, uint32_t at, tide_plan_side side,
                             tide_drive_verb verb)
{
    uint32_t action = 0;
    TIDE_TRY(tide_plan_action_add(planner, at, verb, &action));
    planner->nodes[at].structure[side] = action;
    return TIDE_OK;
}

static tide_status content(struct tide_planner *planner, uint32_t at, tide_drive_verb verb)
{
    uint32_t action = 0;
    TIDE_TRY(tide_plan_action_add(planner, at, verb, &action));
    planner->nodes[at].content = action;
    return TIDE_OK;
}

static tide_status moves(struct tide_planner *planner, uint32_t at)
{
    for (int side = 0; side < TIDE_PLAN_SIDES; side++) {
        const struct tide_plan_node *node = &planner->nodes[at];
        if (node->here[side] && !is_in_place(planner, node, (tide_plan_side)side))
            TIDE_TRY(structure(planner, at, (tide_plan_side)side,
                               side == TIDE_PLAN_REMOTE ? TIDE_DRIVE_MOVE_REMOTE
                                                        : TIDE_DRIVE_MOVE_LOCAL));
    }
    return TIDE_OK;
}

/* Whether the baseline says what both sides have.  In a folder that was moved here all rows are new
 * ones, although nothing in it changed. */
static bool is_recorded(const struct tide_planner *planner, const struct tide_plan_node *node)
{
    return node->base != TIDE_PLAN_NONE && !node->rekeyed && !node->moved_r && !node->moved_l &&
           planner->trees->bases[node->base].row == planner->trees->locals[node->local].row;
}

static bool same_bytes_as_base(const struct tide_planner *planner,
                               const struct tide_plan_node *node)
{
    if (node->kind == TIDE_DRIVE_FOLDER || node->base == TIDE_PLAN_NONE)
        return node->base != TIDE_PLAN_NONE;
    const struct tide_drive_content *is = &planner->trees->locals[node->local].content;
    const struct tide_drive_content *was = &planner->trees->bases[node->base].local;
    return is->bytes == was->bytes && is->has_strong && was->has_strong &&
           memcmp(is->strong, was->strong, sizeof is->strong) == 0;
}

static tide_status act_both(struct tide_planner *planner, uint32_t at)
{
    TIDE_TRY(moves(planner, at));
    const struct tide_plan_node *node = &planner->nodes[at];
    if (node->changed_r)
        return content(planner, at, TIDE_DRIVE_DOWN);
    if (node->changed_l)
        return content(planner, at, TIDE_DRIVE_UP);
    const bool moves_now = node->structure[TIDE_PLAN_REMOTE] != TIDE_PLAN_NONE ||
                           node->structure[TIDE_PLAN_LOCAL] != TIDE_PLAN_NONE;
    if ((is_recorded(planner, node) ||
         (moves_now && node->base != TIDE_PLAN_NONE && !node->rekeyed)) &&
        same_bytes_as_base(planner, node))
        return TIDE_OK;
    return content(planner, at, TIDE_DRIVE_BASE);
}

static tide_status act_missing(struct tide_planner *planner, uint32_t at)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    const bool folder = node->kind == TIDE_DRIVE_FOLDER;
    const tide_plan_side has = node->here[TIDE_PLAN_REMOTE] ? TIDE_PLAN_REMOTE : TIDE_PLAN_LOCAL;
    const tide_drive_verb verb = has == TIDE_PLAN_REMOTE
                                     ? (folder ? TIDE_DRIVE_MKDIR_LOCAL : TIDE_DRIVE_DOWN)
                                     : (folder ? TIDE_DRIVE_MKDIR_REMOTE : TIDE_DRIVE_NEW);
    TIDE_TRY(moves(planner, at));
    return structure(planner, at, has == TIDE_PLAN_REMOTE ? TIDE_PLAN_LOCAL : TIDE_PLAN_REMOTE,
                     verb);
}

static tide_status act_dying(struct tide_planner *planner, uint32_t at)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    uint32_t action = 0;
    TIDE_ASSERT(node->base != TIDE_PLAN_NONE); /* S1, DPL2 */
    if (node->here[TIDE_PLAN_REMOTE])
        return structure(planner, at, TIDE_PLAN_REMOTE, TIDE_DRIVE_DEL_REMOTE);
    if (node->here[TIDE_PLAN_LOCAL])
        return structure(planner, at, TIDE_PLAN_LOCAL, TIDE_DRIVE_DEL_LOCAL);
    return tide_plan_action_add(planner, at, TIDE_DRIVE_DROP, &action);
}

tide_status tide_plan_act(struct tide_planner *planner)
{
    for (uint32_t i = 1; i < planner->nodes_count; i++) {
        const struct tide_plan_node *node = &planner->nodes[i];
        if (node->dead || node->fixed)
            continue;
        if (!node->exists)
            TIDE_TRY(act_dying(planner, i));
        else if (node->here[TIDE_PLAN_REMOTE] && node->here[TIDE_PLAN_LOCAL])
            TIDE_TRY(act_both(planner, i));
        else
            TIDE_TRY(act_missing(planner, i));
    }
    return TIDE_OK;
}
