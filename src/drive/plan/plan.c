#include "drive/plan/plan.h"

#include "base/check.h"
#include "drive/names/key.h"
#include "drive/plan/plan_inside.h"

enum { KEY_BYTES_MAX = 8 << 10, NAMES_BYTES_MAX = 256 << 20 };

tide_status tide_plan_no_memory(struct tide_planner *planner)
{
    return tide_error_set(planner->err, TIDE_NO_MEMORY, "no memory for a plan of %zu items",
                          planner->nodes_count);
}

uint64_t tide_plan_place(struct tide_planner *planner, uint64_t parent, tide_text name)
{
    tide_buf_clear(&planner->key);
    if (tide_drive_key_add(&planner->key, name) != TIDE_OK)
        return 0;
    return tide_index_hash(parent, tide_buf_text(&planner->key));
}

bool tide_plan_same_key(struct tide_planner *planner, tide_text a, tide_text b)
{
    if (tide_text_equal(a, b))
        return true;
    tide_buf_clear(&planner->key);
    if (tide_drive_key_add(&planner->key, a) != TIDE_OK)
        return false;
    const size_t half = planner->key.bytes;
    return tide_drive_key_add(&planner->key, b) == TIDE_OK && planner->key.bytes == 2 * half &&
           memcmp(planner->key.data, planner->key.data + half, half) == 0;
}

tide_status tide_plan_by_depth(struct tide_planner *planner, const uint32_t *parents, size_t count,
                               uint32_t *order_out)
{
    /* done[i]: i is in the order.  A chain of parents is walked up, then written down again. */
    uint8_t *done = tide_mem_array(planner->mem, count + 1, 1);
    uint32_t *chain = tide_mem_array(planner->mem, count + 1, sizeof *chain);
    size_t used = 0;
    if (done == NULL || chain == NULL) {
        tide_mem_free(planner->mem, done, count + 1);
        tide_mem_free(planner->mem, chain, (count + 1) * sizeof *chain);
        return tide_plan_no_memory(planner);
    }
    for (uint32_t i = 0; i < count; i++) {
        size_t length = 0;
        for (uint32_t at = i; at != TIDE_PLAN_NONE && done[at] == 0; at = parents[at]) {
            done[at] = 1;
            chain[length++] = at;
        }
        while (length > 0)
            order_out[used++] = chain[--length];
    }
    TIDE_ASSERT(used == count);
    tide_mem_free(planner->mem, done, count + 1);
    tide_mem_free(planner->mem, chain, (count + 1) * sizeof *chain);
    return TIDE_OK;
}

uint32_t tide_plan_occupant(struct tide_planner *planner, tide_plan_side side, uint32_t parent,
                            tide_text name, uint32_t but)
{
    const uint64_t hash = tide_plan_place(planner, parent, name);
    uint32_t at = hash == 0 ? TIDE_INDEX_END : tide_index_first(&planner->places[side], hash);
    for (; at != TIDE_INDEX_END; at = tide_index_next(&planner->places[side], at)) {
        const struct tide_plan_node *node = &planner->nodes[at];
        if (at != but && node->parent[side] == parent &&
            tide_plan_same_key(planner, tide_plan_name_at(planner, node, side), name))
            return at;
    }
    return TIDE_PLAN_NONE;
}

static void check_order(const struct tide_drive_trees *trees)
{
    for (size_t i = 1; i < trees->remotes_count; i++)
        TIDE_ASSERT(trees->remotes[i - 1].item < trees->remotes[i].item);
    for (size_t i = 1; i < trees->locals_count; i++)
        TIDE_ASSERT(trees->locals[i - 1].row < trees->locals[i].row);
    for (size_t i = 1; i < trees->bases_count; i++)
        TIDE_ASSERT(trees->bases[i - 1].item < trees->bases[i].item);
}

/* What is looked up later takes its memory here, so that a lookup cannot fail. */
static tide_status planner_init(struct tide_planner *planner)
{
    tide_mem *mem = planner->mem;
    tide_map_init(&planner->node_of_item, mem);
    tide_map_init(&planner->node_of_row, mem);
    tide_index_init(&planner->places[TIDE_PLAN_REMOTE], mem);
    tide_index_init(&planner->places[TIDE_PLAN_LOCAL], mem);
    tide_index_init(&planner->names, mem);
    tide_buf_init(&planner->key, mem, KEY_BYTES_MAX);
    const struct tide_drive_trees *trees = planner->trees;
    if (tide_buf_room(&planner->key, KEY_BYTES_MAX) != TIDE_OK ||
        !tide_map_reserve(&planner->node_of_item, trees->remotes_count + trees->bases_count + 1) ||
        !tide_map_reserve(&planner->node_of_row, trees->locals_count + 1))
        return tide_plan_no_memory(planner);
    return TIDE_OK;
}

static void planner_done(struct tide_planner *planner)
{
    tide_mem *mem = planner->mem;
    tide_mem_free(mem, planner->local_of_base, (planner->trees->bases_count + 1) * 4);
    tide_mem_free(mem, planner->base_of_local, (planner->trees->locals_count + 1) * 4);
    tide_mem_free(mem, planner->doubtful,
                  (planner->trees->bases_count + 1) * sizeof *planner->doubtful);
    tide_mem_free(mem, planner->nodes, planner->nodes_capacity * sizeof *planner->nodes);
    tide_mem_free(mem, planner->node_of_action,
                  planner->node_of_action_capacity * sizeof *planner->node_of_action);
    tide_mem_free(mem, planner->edges, planner->edges_capacity * sizeof *planner->edges);
    tide_map_done(&planner->node_of_item);
    tide_map_done(&planner->node_of_row);
    tide_index_done(&planner->places[TIDE_PLAN_REMOTE]);
    tide_index_done(&planner->places[TIDE_PLAN_LOCAL]);
    tide_index_done(&planner->names);
    tide_buf_done(&planner->key);
}

static tide_status give_edges(struct tide_planner *planner)
{
    struct tide_drive_plan *plan = planner->plan;
    if (!TIDE_GROW_IN(plan->mem, plan->edges, plan->edges_capacity, planner->edges_count,
                      UINT32_MAX))
        return tide_plan_no_memory(planner);
    for (size_t i = 0; i < planner->edges_count; i++) {
        const struct tide_plan_edge *edge = &planner->edges[i];
        if (edge->only_order && plan->actions[edge->before].state != TIDE_DRIVE_READY)
            continue; /* it does not run, so nothing waits for it */
        plan->edges[plan->edges_count++] = (struct tide_drive_edge){edge->before, edge->after};
    }
    return TIDE_OK;
}

tide_status tide_drive_plan(const struct tide_drive_trees *trees,
                            const struct tide_drive_plan_options *options, tide_mem *mem,
                            struct tide_drive_plan *plan_out, tide_error *err)
{
    static tide_status (*const steps[])(struct tide_planner *) = {
        tide_plan_claim,     tide_plan_nodes, tide_plan_judge, tide_plan_places,
        tide_plan_names,     tide_plan_act,   tide_plan_edges, tide_plan_circles,
        tide_plan_own_moves, tide_plan_guard, give_edges,
    };
    struct tide_planner planner = {
        .mem = mem, .trees = trees, .options = options, .plan = plan_out, .err = err};
    *plan_out = (struct tide_drive_plan){.mem = mem};
    tide_arena_init(&plan_out->arena, mem, NAMES_BYTES_MAX);
    if (trees->remotes_count > TIDE_DRIVE_PLAN_ROWS_MAX ||
        trees->locals_count > TIDE_DRIVE_PLAN_ROWS_MAX ||
        trees->bases_count > TIDE_DRIVE_PLAN_ROWS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d changes at once",
                              TIDE_DRIVE_PLAN_ROWS_MAX);
    check_order(trees);
    tide_status rc = planner_init(&planner);
    for (size_t i = 0; rc == TIDE_OK && i < sizeof steps / sizeof steps[0]; i++)
        rc = steps[i](&planner);
    planner_done(&planner);
    return rc;
}

void tide_drive_plan_done(struct tide_drive_plan *plan)
{
    if (plan->mem == NULL)
        return;
    tide_arena_done(&plan->arena);
    tide_mem_free(plan->mem, plan->actions, plan->actions_capacity * sizeof *plan->actions);
    tide_mem_free(plan->mem, plan->edges, plan->edges_capacity * sizeof *plan->edges);
    *plan = (struct tide_drive_plan){.mem = NULL};
}

bool tide_drive_verb_is_remote(tide_drive_verb verb)
{
    return verb == TIDE_DRIVE_UP || verb == TIDE_DRIVE_NEW || verb == TIDE_DRIVE_MKDIR_REMOTE ||
           verb == TIDE_DRIVE_MOVE_REMOTE || verb == TIDE_DRIVE_DEL_REMOTE;
}

bool tide_drive_verb_is_local(tide_drive_verb verb)
{
    return verb == TIDE_DRIVE_DOWN || verb == TIDE_DRIVE_MKDIR_LOCAL ||
           verb == TIDE_DRIVE_MOVE_LOCAL || verb == TIDE_DRIVE_DEL_LOCAL;
}

const char *tide_drive_verb_name(tide_drive_verb verb)
{
    static const char *const names[] = {
        "upload",    "upload new",    "download",    "create online",  "create here", "move online",
        "move here", "delete online", "delete here", "record as same", "forget"};
    return names[verb];
}
