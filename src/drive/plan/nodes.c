/* nodes.c - rows become nodes.
 *
 * An item of the baseline is a node with its remote row (by id) and its local row (claim.c).  What is
 * new is a node of its own; a new remote and a new local row of one kind at one place are one
 * node (D19), and so are an item that was deleted online and a new one at its place (D26). */
#include "drive/names/key.h"
#include "drive/plan/plan_inside.h"

tide_status tide_plan_node_add(struct tide_planner *planner, struct tide_plan_node node,
                               uint32_t *at_out)
{
    if (!TIDE_GROW_IN(planner->mem, planner->nodes, planner->nodes_capacity,
                      planner->nodes_count + 1, TIDE_PLAN_NONE))
        return tide_plan_no_memory(planner);
    *at_out = (uint32_t)planner->nodes_count;
    planner->nodes[planner->nodes_count++] = node;
    return TIDE_OK;
}

static struct tide_plan_node empty(tide_drive_kind kind)
{
    return (struct tide_plan_node){
        .remote = TIDE_PLAN_NONE,
        .local = TIDE_PLAN_NONE,
        .base = TIDE_PLAN_NONE,
        .parent = {TIDE_PLAN_NONE, TIDE_PLAN_NONE},
        .base_parent = TIDE_PLAN_NONE,
        .copy_of = TIDE_PLAN_NONE,
        .copy = TIDE_PLAN_NONE,
        .target = TIDE_PLAN_NONE,
        .structure = {TIDE_PLAN_NONE, TIDE_PLAN_NONE},
        .content = TIDE_PLAN_NONE,
        .kind = kind,
    };
}

static tide_status add(struct tide_planner *planner, struct tide_plan_node node, uint64_t item,
                       uint64_t row)
{
    uint32_t at = 0;
    TIDE_TRY(tide_plan_node_add(planner, node, &at));
    if ((item != 0 && !tide_map_put(&planner->node_of_item, item, at)) ||
        (row != 0 && !tide_map_put(&planner->node_of_row, row, at)))
        return tide_plan_no_memory(planner);
    return TIDE_OK;
}

static tide_status add_bases(struct tide_planner *planner)
{
    const struct tide_drive_trees *trees = planner->trees;
    struct tide_plan_node top = empty(TIDE_DRIVE_FOLDER);
    TIDE_TRY(add(planner, top, TIDE_DRIVE_ROOT, TIDE_DRIVE_ROOT));
    for (uint32_t i = 0; i < trees->bases_count; i++) {
        struct tide_plan_node node = empty(trees->bases[i].kind);
        node.base = i;
        node.local = planner->local_of_base[i];
        TIDE_TRY(add(planner, node, trees->bases[i].item,
                     node.local == TIDE_PLAN_NONE ? 0 : trees->locals[node.local].row));
    }
    return TIDE_OK;
}

/* The nodes of items without a baseline, and the rows of those with one. */
static tide_status add_others(struct tide_planner *planner)
{
    const struct tide_drive_trees *trees = planner->trees;
    for (uint32_t i = 0; i < trees->remotes_count; i++) {
        const struct tide_drive_remote *row = &trees->remotes[i];
        uint32_t at = 0;
        if (tide_map_get(&planner->node_of_item, row->item, &at)) {
            planner->nodes[at].remote = i;
            continue;
        }
        if (row->state == TIDE_DRIVE_REMOTE_GONE || row->state == TIDE_DRIVE_REMOTE_FORGOTTEN)
            continue; /* it was never here */
        struct tide_plan_node node = empty(row->kind);
        node.remote = i;
        TIDE_TRY(add(planner, node, row->item, 0));
    }
    for (uint32_t i = 0; i < trees->locals_count; i++) {
        if (planner->base_of_local[i] != TIDE_PLAN_NONE)
            continue;
        struct tide_plan_node node = empty(trees->locals[i].kind);
        node.local = i;
        TIDE_TRY(add(planner, node, 0, trees->locals[i].row));
    }
    return TIDE_OK;
}

static bool is_gone(const struct tide_drive_remote *row)
{
    return row->state == TIDE_DRIVE_REMOTE_GONE || row->state == TIDE_DRIVE_REMOTE_FORGOTTEN;
}

/* A parent that was not given is unknown: nothing is done beneath it (D32). */
static uint32_t find(const tide_map *map, uint64_t number, bool *missing_io)
{
    uint32_t at = TIDE_PLAN_NONE;
    if (!tide_map_get(map, number, &at))
        *missing_io = true;
    return at;
}

/* A late echo of the feed can put two folders into each other.  Neither place is then known: the circle
 * is cut, and nothing is done with them and beneath them until another round tells.  `walks` has for
 * each node the walk that came by, which began at the node of that number. */
static void cut_circles(struct tide_planner *planner, tide_plan_side side, uint32_t *walks)
{
    memset(walks, 0, planner->nodes_count * sizeof *walks);
    for (uint32_t i = 1; i < planner->nodes_count; i++) {
        uint32_t at = i;
        while (at != TIDE_PLAN_NONE && at != TIDE_PLAN_TOP && walks[at] == 0) {
            walks[at] = i;
            at = planner->nodes[at].parent[side];
        }
        if (at == TIDE_PLAN_NONE || at == TIDE_PLAN_TOP || walks[at] != i)
            continue;
        for (uint32_t next = at; next != TIDE_PLAN_NONE;) {
            const uint32_t up = planner->nodes[next].parent[side];
            planner->nodes[next].fixed = true;
            planner->nodes[next].parent[side] = TIDE_PLAN_NONE;
            next = up;
        }
    }
}

static tide_status find_parents(struct tide_planner *planner)
{
    const struct tide_drive_trees *trees = planner->trees;
    for (size_t i = 1; i < planner->nodes_count; i++) {
        struct tide_plan_node *node = &planner->nodes[i];
        bool missing = false;
        if (node->remote != TIDE_PLAN_NONE && !is_gone(&trees->remotes[node->remote]))
            node->parent[TIDE_PLAN_REMOTE] =
                find(&planner->node_of_item, trees->remotes[node->remote].parent, &missing);
        if (node->local != TIDE_PLAN_NONE)
            node->parent[TIDE_PLAN_LOCAL] =
                find(&planner->node_of_row, trees->locals[node->local].parent, &missing);
        if (node->base != TIDE_PLAN_NONE) /* its folder may be forgotten already: a crash */
            (void)tide_map_get(&planner->node_of_item, trees->bases[node->base].parent,
                               &node->base_parent);
        node->fixed = missing;
    }
    uint32_t *walks = tide_mem_array(planner->mem, planner->nodes_count, sizeof *walks);
    if (walks == NULL)
        return tide_plan_no_memory(planner);
    cut_circles(planner, TIDE_PLAN_REMOTE, walks);
    cut_circles(planner, TIDE_PLAN_LOCAL, walks);
    tide_mem_free(planner->mem, walks, planner->nodes_count * sizeof *walks);
    return TIDE_OK;
}

/* ---- what is one although it has two rows ---- */

struct join {
    struct tide_planner *planner;
    tide_index local_places; /* (parent row, key) -> local */
    tide_index base_places;  /* (parent item, key) -> baseline */
    uint32_t *parents, *order;
};

static bool is_new(const struct tide_planner *planner, const struct tide_plan_node *node)
{
    return node->base == TIDE_PLAN_NONE && !node->dead && !node->fixed &&
           (node->remote == TIDE_PLAN_NONE ||
            planner->trees->remotes[node->remote].state == TIDE_DRIVE_REMOTE_LIVE) &&
           (node->local == TIDE_PLAN_NONE ||
            planner->trees->locals[node->local].state == TIDE_DRIVE_LOCAL_LIVE);
}

static tide_status index_places(struct join *join)
{
    struct tide_planner *planner = join->planner;
    for (uint32_t i = 0; i < planner->trees->locals_count; i++) {
        const struct tide_drive_local *row = &planner->trees->locals[i];
        const uint64_t hash = tide_plan_place(planner, row->parent, row->name);
        if (hash == 0 || !tide_index_add(&join->local_places, hash, i))
            return tide_plan_no_memory(planner);
    }
    for (uint32_t i = 0; i < planner->trees->bases_count; i++) {
        const struct tide_drive_base *row = &planner->trees->bases[i];
        const uint64_t hash = tide_plan_place(planner, row->parent, row->name);
        if (hash == 0 || !tide_index_add(&join->base_places, hash, i))
            return tide_plan_no_memory(planner);
    }
    return TIDE_OK;
}

/* The only local row with this key in the folder; NONE: there is none, or there are two (D30). */
static uint32_t only_local(struct join *join, uint64_t parent, tide_text name)
{
    struct tide_planner *planner = join->planner;
    uint32_t found = TIDE_PLAN_NONE;
    const uint64_t hash = tide_plan_place(planner, parent, name);
    uint32_t at = hash == 0 ? TIDE_INDEX_END : tide_index_first(&join->local_places, hash);
    for (; at != TIDE_INDEX_END; at = tide_index_next(&join->local_places, at)) {
        const struct tide_drive_local *row = &planner->trees->locals[at];
        if (row->parent != parent || !tide_plan_same_key(planner, row->name, name))
            continue;
        if (found != TIDE_PLAN_NONE)
            return TIDE_PLAN_NONE;
        found = at;
    }
    return found;
}

static void join_local(struct join *join, uint32_t node_at)
{
    struct tide_planner *planner = join->planner;
    struct tide_plan_node *node = &planner->nodes[node_at];
    const struct tide_drive_remote *row = &planner->trees->remotes[node->remote];
    const struct tide_plan_node *folder = &planner->nodes[node->parent[TIDE_PLAN_REMOTE]];
    const bool top = node->parent[TIDE_PLAN_REMOTE] == TIDE_PLAN_TOP;
    if (!top && folder->local == TIDE_PLAN_NONE)
        return;
    const uint32_t local = only_local(
        join, top ? TIDE_DRIVE_ROOT : planner->trees->locals[folder->local].row, row->name);
    uint32_t other = 0;
    if (local == TIDE_PLAN_NONE ||
        !tide_map_get(&planner->node_of_row, planner->trees->locals[local].row, &other) ||
        !is_new(planner, &planner->nodes[other]) || planner->nodes[other].kind != node->kind ||
        planner->nodes[other].remote != TIDE_PLAN_NONE)
        return;
    node->local = local;
    node->parent[TIDE_PLAN_LOCAL] = planner->nodes[other].parent[TIDE_PLAN_LOCAL];
    planner->nodes[other].dead = true;
    (void)tide_map_put(&planner->node_of_row, planner->trees->locals[local].row, node_at);
}

/* D26: the item that had this place is gone online, and is unmoved here. */
static bool is_successor(struct tide_planner *planner, const struct tide_plan_node *old,
                         const struct tide_plan_node *node)
{
    if (old->dead || old->fixed || old->kind != node->kind || old->rekeyed ||
        old->remote == TIDE_PLAN_NONE || !is_gone(&planner->trees->remotes[old->remote]) ||
        old->local == TIDE_PLAN_NONE ||
        planner->trees->locals[old->local].state != TIDE_DRIVE_LOCAL_LIVE)
        return false;
    return old->parent[TIDE_PLAN_LOCAL] == old->base_parent &&
           tide_drive_same_letters(planner->trees->locals[old->local].name,
                                   planner->trees->bases[old->base].local_name);
}

static bool join_base(struct join *join, uint32_t node_at)
{
    struct tide_planner *planner = join->planner;
    struct tide_plan_node *node = &planner->nodes[node_at];
    const struct tide_drive_remote *row = &planner->trees->remotes[node->remote];
    const uint32_t up = node->parent[TIDE_PLAN_REMOTE];
    uint64_t parent = TIDE_DRIVE_ROOT;
    if (up != TIDE_PLAN_TOP && planner->nodes[up].base == TIDE_PLAN_NONE)
        return false;
    if (up != TIDE_PLAN_TOP)
        parent = planner->trees->bases[planner->nodes[up].base].item;
    const uint64_t hash = tide_plan_place(planner, parent, row->name);
    uint32_t at = hash == 0 ? TIDE_INDEX_END : tide_index_first(&join->base_places, hash);
    for (; at != TIDE_INDEX_END; at = tide_index_next(&join->base_places, at)) {
        const struct tide_drive_base *base = &planner->trees->bases[at];
        uint32_t old = 0;
        if (base->parent != parent || !tide_plan_same_key(planner, base->name, row->name) ||
            !tide_map_get(&planner->node_of_item, base->item, &old) ||
            !is_successor(planner, &planner->nodes[old], node))
            continue;
        planner->nodes[old].remote = node->remote;
        planner->nodes[old].parent[TIDE_PLAN_REMOTE] = up;
        planner->nodes[old].rekeyed = true;
        node->dead = true;
        (void)tide_map_put(&planner->node_of_item, row->item, old);
        return true;
    }
    return false;
}

static tide_status join_all(struct join *join)
{
    struct tide_planner *planner = join->planner;
    TIDE_TRY(index_places(join));
    join->parents[TIDE_PLAN_TOP] = TIDE_PLAN_NONE;
    for (size_t i = 1; i < planner->nodes_count; i++)
        join->parents[i] = planner->nodes[i].parent[TIDE_PLAN_REMOTE];
    TIDE_TRY(tide_plan_by_depth(planner, join->parents, planner->nodes_count, join->order));
    for (size_t i = 0; i < planner->nodes_count; i++) {
        struct tide_plan_node *node = &planner->nodes[join->order[i]];
        if (node->remote == TIDE_PLAN_NONE || !is_new(planner, node) ||
            node->local != TIDE_PLAN_NONE)
            continue;
        /* Its folder may have become one with another in the meantime. */
        bool missing = false;
        node->parent[TIDE_PLAN_REMOTE] =
            find(&planner->node_of_item, planner->trees->remotes[node->remote].parent, &missing);
        if (!join_base(join, join->order[i]))
            join_local(join, join->order[i]);
    }
    return find_parents(planner); /* of what is beneath joined folders */
}

static tide_status join_rows(struct tide_planner *planner)
{
    const size_t count = planner->nodes_count;
    struct join join = {.planner = planner};
    tide_index_init(&join.local_places, planner->mem);
    tide_index_init(&join.base_places, planner->mem);
    join.parents = tide_mem_array(planner->mem, count, 4);
    join.order = tide_mem_array(planner->mem, count, 4);
    tide_status rc = TIDE_OK;
    if (join.parents == NULL || join.order == NULL)
        rc = tide_plan_no_memory(planner);
    else
        rc = join_all(&join);
    tide_mem_free(planner->mem, join.parents, count * 4);
    tide_mem_free(planner->mem, join.order, count * 4);
    tide_index_done(&join.base_places);
    tide_index_done(&join.local_places);
    return rc;
}

/* Who has which place now, on each side; names that are ours for now take none. */
static tide_status index_sides(struct tide_planner *planner)
{
    for (uint32_t i = 1; i < planner->nodes_count; i++) {
        const struct tide_plan_node *node = &planner->nodes[i];
        for (int side = 0; side < TIDE_PLAN_SIDES && !node->dead; side++) {
            if (node->parent[side] == TIDE_PLAN_NONE ||
                tide_plan_aside_at(planner, node, (tide_plan_side)side))
                continue;
            const uint64_t hash =
                tide_plan_place(planner, node->parent[side],
                                tide_plan_name_at(planner, node, (tide_plan_side)side));
            if (hash == 0 || !tide_index_add(&planner->places[side], hash, i))
                return tide_plan_no_memory(planner);
        }
    }
    return TIDE_OK;
}

tide_status tide_plan_nodes(struct tide_planner *planner)
{
    TIDE_TRY(add_bases(planner));
    TIDE_TRY(add_others(planner));
    TIDE_TRY(find_parents(planner));
    TIDE_TRY(join_rows(planner));
    return index_sides(planner);
}
