/* edges.c - what waits for what (D23): these edges and no others.
 *
 *   parent before child, target parent before move     -> folder_first()
 *   whatever leaves or dies in a folder before its delete -> before_folder_dies()
 *   who frees a name before who takes it; conflict rename before download -> name_first()
 *   a move under Y after Y left the moved tree          -> leaves_first()
 *   steps of one item that build on each other, or must not run at a time (I10) -> own_steps(),
 *   tide_plan_own_moves() */
#include "drive/plan/plan_inside.h"

#include <stdlib.h>

tide_status tide_plan_edge_add(struct tide_planner *planner, uint32_t before, uint32_t after,
                               bool frees_name)
{
    if (!TIDE_GROW_IN(planner->mem, planner->edges, planner->edges_capacity,
                      planner->edges_count + 1, UINT32_MAX))
        return tide_plan_no_memory(planner);
    planner->edges[planner->edges_count++] =
        (struct tide_plan_edge){.before = before, .after = after, .frees_name = frees_name};
    return TIDE_OK;
}

static struct tide_drive_action *action_at(struct tide_planner *planner, uint32_t at)
{
    return &planner->plan->actions[at];
}

static bool is_delete(tide_drive_verb verb)
{
    return verb == TIDE_DRIVE_DEL_LOCAL || verb == TIDE_DRIVE_DEL_REMOTE;
}

static bool is_move(tide_drive_verb verb)
{
    return verb == TIDE_DRIVE_MOVE_LOCAL || verb == TIDE_DRIVE_MOVE_REMOTE;
}

static bool leaves(struct tide_planner *planner, uint32_t action)
{
    return action != TIDE_PLAN_NONE && (is_move(action_at(planner, action)->verb) ||
                                        is_delete(action_at(planner, action)->verb));
}

/* A place that is not free and will not be: the action is held (D16, D30). */
static void hold(struct tide_planner *planner, uint32_t action)
{
    action_at(planner, action)->state = TIDE_DRIVE_HELD_NAME;
}

static tide_status folder_first(struct tide_planner *planner, uint32_t at, tide_plan_side side)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    const uint32_t up = node->target;
    if (up == TIDE_PLAN_TOP || planner->nodes[up].here[side])
        return TIDE_OK;
    const uint32_t makes = planner->nodes[up].structure[side];
    if (makes == TIDE_PLAN_NONE) {
        hold(planner, node->structure[side]);
        return TIDE_OK;
    }
    return tide_plan_edge_add(planner, makes, node->structure[side], false);
}

static tide_status name_first(struct tide_planner *planner, uint32_t at, tide_plan_side side)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    const uint32_t other = tide_plan_occupant(planner, side, node->target, node->name, at);
    if (other == TIDE_PLAN_NONE)
        return TIDE_OK;
    const uint32_t frees = planner->nodes[other].structure[side];
    if (!leaves(planner, frees)) {
        hold(planner, node->structure[side]);
        return TIDE_OK;
    }
    return tide_plan_edge_add(planner, frees, node->structure[side], true);
}

/* The target folder is inside the moved one now: the part of the way that leaves goes first. */
static tide_status leaves_first(struct tide_planner *planner, uint32_t at, tide_plan_side side)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    uint32_t last = TIDE_PLAN_NONE; /* the highest mover below `at` on the way up */
    uint32_t up = node->target;
    for (; up != TIDE_PLAN_NONE && up != TIDE_PLAN_TOP && up != at;
         up = planner->nodes[up].parent[side])
        if (leaves(planner, planner->nodes[up].structure[side]))
            last = up;
    if (up != at || last == TIDE_PLAN_NONE)
        return TIDE_OK;
    return tide_plan_edge_add(planner, planner->nodes[last].structure[side], node->structure[side],
                              false);
}

static tide_status before_folder_dies(struct tide_planner *planner, uint32_t at,
                                      tide_plan_side side)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    const uint32_t up = node->parent[side];
    if (up == TIDE_PLAN_NONE || up == TIDE_PLAN_TOP)
        return TIDE_OK;
    const uint32_t dies = planner->nodes[up].structure[side];
    if (dies == TIDE_PLAN_NONE || !is_delete(action_at(planner, dies)->verb))
        return TIDE_OK;
    if (!leaves(planner, node->structure[side])) {
        hold(planner, dies);
        return TIDE_OK;
    }
    return tide_plan_edge_add(planner, node->structure[side], dies, false);
}

static tide_status order(struct tide_planner *planner, uint32_t before, uint32_t after,
                         bool only_order)
{
    TIDE_TRY(tide_plan_edge_add(planner, before, after, false));
    planner->edges[planner->edges_count - 1].only_order = only_order;
    return TIDE_OK;
}

static tide_status own_steps(struct tide_planner *planner, uint32_t at)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    const uint32_t remote = node->structure[TIDE_PLAN_REMOTE];
    const uint32_t local = node->structure[TIDE_PLAN_LOCAL];
    if (remote != TIDE_PLAN_NONE && local != TIDE_PLAN_NONE) {
        /* It crosses under the name that it takes first. */
        const tide_drive_verb there = action_at(planner, remote)->verb;
        const tide_drive_verb here = action_at(planner, local)->verb;
        if (is_move(there) && !is_move(here))
            TIDE_TRY(tide_plan_edge_add(planner, remote, local, false));
        if (is_move(here) && !is_move(there))
            TIDE_TRY(tide_plan_edge_add(planner, local, remote, false));
    }
    if (node->content == TIDE_PLAN_NONE)
        return TIDE_OK;
    /* A download into a file that moves needs the move; everything else only must not run beside it. */
    const bool down = action_at(planner, node->content)->verb == TIDE_DRIVE_DOWN;
    if (local != TIDE_PLAN_NONE)
        TIDE_TRY(order(planner, local, node->content, !down));
    return remote == TIDE_PLAN_NONE ? TIDE_OK : order(planner, remote, node->content, true);
}

tide_status tide_plan_edges(struct tide_planner *planner)
{
    for (uint32_t i = 1; i < planner->nodes_count; i++) {
        if (planner->nodes[i].dead)
            continue;
        for (int s = 0; s < TIDE_PLAN_SIDES; s++) {
            const tide_plan_side side = (tide_plan_side)s;
            const uint32_t action = planner->nodes[i].structure[side];
            TIDE_TRY(before_folder_dies(planner, i, side));
            if (action == TIDE_PLAN_NONE || is_delete(action_at(planner, action)->verb))
                continue;
            TIDE_TRY(folder_first(planner, i, side));
            TIDE_TRY(name_first(planner, i, side));
            if (is_move(action_at(planner, action)->verb))
                TIDE_TRY(leaves_first(planner, i, side));
        }
        TIDE_TRY(own_steps(planner, i));
    }
    return TIDE_OK;
}

/* ---- moves of one item on both sides ---- */

struct move {
    uint32_t node, rank, action;
};

static int by_node_and_rank(const void *a, const void *b)
{
    const struct move *left = a, *right = b;
    if (left->node != right->node)
        return left->node < right->node ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static bool moves_twice(struct tide_planner *planner)
{
    for (uint32_t i = 1; i < planner->nodes_count; i++) {
        const uint32_t *structure = planner->nodes[i].structure;
        if (structure[TIDE_PLAN_REMOTE] != TIDE_PLAN_NONE &&
            structure[TIDE_PLAN_LOCAL] != TIDE_PLAN_NONE &&
            is_move(action_at(planner, structure[TIDE_PLAN_REMOTE])->verb) &&
            is_move(action_at(planner, structure[TIDE_PLAN_LOCAL])->verb))
            return true;
    }
    return false;
}

/* In the order that all other edges allow: so these make no circle. */
static tide_status order_moves(struct tide_planner *planner, struct move *moves, uint32_t *ranks)
{
    const size_t count = planner->plan->actions_count;
    size_t sorted = 0, moves_count = 0;
    TIDE_TRY(tide_plan_sort(planner, ranks, ranks + count, &sorted));
    for (uint32_t i = 0; i < sorted; i++)
        if (is_move(action_at(planner, ranks[i])->verb))
            moves[moves_count++] = (struct move){planner->node_of_action[ranks[i]], i, ranks[i]};
    qsort(moves, moves_count, sizeof *moves, by_node_and_rank);
    for (size_t i = 1; i < moves_count; i++)
        if (moves[i].node == moves[i - 1].node && action_at(planner, moves[i].action)->verb !=
                                                      action_at(planner, moves[i - 1].action)->verb)
            TIDE_TRY(order(planner, moves[i - 1].action, moves[i].action, true));
    return TIDE_OK;
}

tide_status tide_plan_own_moves(struct tide_planner *planner)
{
    const size_t count = planner->plan->actions_count + 1;
    if (!moves_twice(planner))
        return TIDE_OK;
    struct move *moves = tide_mem_array(planner->mem, count, sizeof *moves);
    uint32_t *ranks = tide_mem_array(planner->mem, 2 * count, sizeof *ranks);
    const tide_status rc = moves == NULL || ranks == NULL ? tide_plan_no_memory(planner)
                                                          : order_moves(planner, moves, ranks);
    tide_mem_free(planner->mem, moves, count * sizeof *moves);
    tide_mem_free(planner->mem, ranks, 2 * count * sizeof *ranks);
    return rc;
}
