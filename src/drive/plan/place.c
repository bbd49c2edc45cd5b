/* place.c - where everything is to be (D18, D24).
 *
 * The places online are a tree.  Local moves are put into it one after the other, in the order of
 * their ids; one that would put a folder beneath itself is undone.  Then folders live on in which
 * something lives, and of several items that want one name one gets it. */
#include "base/check.h"
#include "drive/names/key.h"
#include "drive/plan/plan_inside.h"

#include <stdlib.h>

static bool is_open(const struct tide_plan_node *node) /* to be decided about */
{
    return !node->dead && !node->fixed;
}

/* The node that has its local row: itself, or the copy that was set aside. */
static const struct tide_plan_node *local_half(const struct tide_planner *planner,
                                               const struct tide_plan_node *node)
{
    return node->copy == TIDE_PLAN_NONE ? node : &planner->nodes[node->copy];
}

static void put_at(struct tide_planner *planner, struct tide_plan_node *node, tide_plan_side side)
{
    const struct tide_plan_node *half = side == TIDE_PLAN_LOCAL ? local_half(planner, node) : node;
    node->target = half->parent[side];
    node->name = tide_plan_name_at(planner, half, side);
}

static bool is_beneath(const struct tide_planner *planner, uint32_t at, uint32_t top)
{
    while (at != TIDE_PLAN_NONE && at != TIDE_PLAN_TOP && at != top)
        at = planner->nodes[at].target;
    return at == top;
}

/* Moved here only: its place here, unless that is beneath itself. */
static void move_local(struct tide_planner *planner, uint32_t at)
{
    struct tide_plan_node *node = &planner->nodes[at];
    const struct tide_plan_node *half = local_half(planner, node);
    const uint32_t parent = half->parent[TIDE_PLAN_LOCAL];
    if (node->kind == TIDE_DRIVE_FOLDER && is_beneath(planner, parent, at)) {
        node->notice = TIDE_DRIVE_K7;
        return;
    }
    const tide_text name = tide_plan_name_at(planner, half, TIDE_PLAN_LOCAL);
    node->target = parent;
    /* Only moved: the name online stays, whatever its Unicode form (D25). */
    if (!tide_drive_same_letters(name, planner->trees->bases[node->base].local_name))
        node->name = name;
}

static bool moved_alike(const struct tide_planner *planner, const struct tide_plan_node *node)
{
    const struct tide_plan_node *half = local_half(planner, node);
    return node->parent[TIDE_PLAN_REMOTE] == half->parent[TIDE_PLAN_LOCAL] &&
           tide_drive_same_letters(tide_plan_name_at(planner, node, TIDE_PLAN_REMOTE),
                                   tide_plan_name_at(planner, half, TIDE_PLAN_LOCAL));
}

/* A folder dies unless something lives in it; then it is made again where it is missing. */
static void keep_alive(struct tide_planner *planner, uint32_t at)
{
    while (at != TIDE_PLAN_NONE && at != TIDE_PLAN_TOP) {
        struct tide_plan_node *node = &planner->nodes[at];
        if (node->exists || node->fixed ||
            (!node->here[TIDE_PLAN_REMOTE] && !node->here[TIDE_PLAN_LOCAL]))
            return;
        node->exists = true;
        node->notice = TIDE_DRIVE_K3;
        at = node->target;
    }
}

tide_status tide_plan_places(struct tide_planner *planner)
{
    for (size_t i = 1; i < planner->nodes_count; i++) {
        struct tide_plan_node *node = &planner->nodes[i];
        if (!is_open(node) || node->copy_of != TIDE_PLAN_NONE)
            continue;
        if (node->here[TIDE_PLAN_REMOTE])
            put_at(planner, node, TIDE_PLAN_REMOTE);
        else if (node->here[TIDE_PLAN_LOCAL])
            put_at(planner, node, TIDE_PLAN_LOCAL);
    }
    for (uint32_t i = 1; i < planner->nodes_count; i++) {
        struct tide_plan_node *node = &planner->nodes[i];
        if (!is_open(node) || !node->here[TIDE_PLAN_REMOTE] || !node->moved_l)
            continue;
        if (!node->moved_r)
            move_local(planner, i);
        else if (moved_alike(planner, node) && node->notice == TIDE_DRIVE_K7)
            node->notice = TIDE_DRIVE_QUIET;
    }
    for (size_t i = 1; i < planner->nodes_count; i++) {
        const struct tide_plan_node *node = &planner->nodes[i];
        if (node->dead)
            continue;
        if (node->fixed) {
            keep_alive(planner, node->parent[TIDE_PLAN_REMOTE]);
            keep_alive(planner, node->parent[TIDE_PLAN_LOCAL]);
            keep_alive(planner, node->base_parent);
        } else if (node->exists && node->copy_of == TIDE_PLAN_NONE) {
            keep_alive(planner, node->target);
        }
    }
    return TIDE_OK;
}

/* ---- names wanted twice ---- */

static uint32_t wanted_by(struct tide_planner *planner, uint32_t parent, tide_text name)
{
    const uint64_t hash = tide_plan_place(planner, parent, name);
    uint32_t at = hash == 0 ? TIDE_INDEX_END : tide_index_first(&planner->names, hash);
    for (; at != TIDE_INDEX_END; at = tide_index_next(&planner->names, at))
        if (planner->nodes[at].target == parent &&
            tide_plan_same_key(planner, planner->nodes[at].name, name))
            return at;
    return TIDE_PLAN_NONE;
}

static tide_status want(struct tide_planner *planner, uint32_t at)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    const uint64_t hash = tide_plan_place(planner, node->target, node->name);
    return hash != 0 && tide_index_add(&planner->names, hash, at) ? TIDE_OK
                                                                  : tide_plan_no_memory(planner);
}

/* The first conflict name that nothing has or wants. */
static tide_status name_aside(struct tide_planner *planner, uint32_t at)
{
    struct tide_plan_node *node = &planner->nodes[at];
    char name[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    tide_text text = TIDE_TEXT_NONE;
    uint32_t ordinal = 0;
    do {
        tide_drive_conflict_name(node->name, &planner->options->stamp, ++ordinal, name);
        text = tide_text_of(name);
    } while (
        wanted_by(planner, node->target, text) != TIDE_PLAN_NONE ||
        tide_plan_occupant(planner, TIDE_PLAN_REMOTE, node->target, text, at) != TIDE_PLAN_NONE ||
        tide_plan_occupant(planner, TIDE_PLAN_LOCAL, node->target, text, at) != TIDE_PLAN_NONE);
    const char *kept = tide_arena_copy(&planner->plan->arena, name, text.bytes);
    if (kept == NULL)
        return tide_plan_no_memory(planner);
    node->name = (tide_text){kept, text.bytes};
    return TIDE_OK;
}

/* Folders first, then who is there online, then who has a baseline, then by id. */
static uint64_t rank(struct tide_planner *planner, uint32_t at)
{
    const struct tide_plan_node *node = &planner->nodes[at];
    const bool there =
        node->here[TIDE_PLAN_REMOTE] && node->parent[TIDE_PLAN_REMOTE] == node->target &&
        tide_plan_same_key(planner, tide_plan_name_at(planner, node, TIDE_PLAN_REMOTE), node->name);
    const uint64_t order = (uint64_t)(node->kind != TIDE_DRIVE_FOLDER) << 2 |
                           (uint64_t)!there << 1 | (uint64_t)(node->base == TIDE_PLAN_NONE);
    return order << 32 | at;
}

static int by_rank(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static tide_status give_names(struct tide_planner *planner, const uint64_t *ranks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)ranks[i];
        struct tide_plan_node *node = &planner->nodes[at];
        const uint32_t winner = wanted_by(planner, node->target, node->name);
        if (winner != TIDE_PLAN_NONE) {
            node->notice =
                planner->nodes[winner].kind != node->kind ? TIDE_DRIVE_K6 : TIDE_DRIVE_K8;
            TIDE_TRY(name_aside(planner, at));
        }
        TIDE_TRY(want(planner, at));
    }
    return TIDE_OK;
}

tide_status tide_plan_names(struct tide_planner *planner)
{
    const size_t room = planner->nodes_count;
    uint64_t *ranks = tide_mem_array(planner->mem, room, sizeof *ranks);
    size_t count = 0;
    if (ranks == NULL)
        return tide_plan_no_memory(planner);
    for (uint32_t i = 1; i < planner->nodes_count; i++)
        if (is_open(&planner->nodes[i]) && planner->nodes[i].exists &&
            planner->nodes[i].copy_of == TIDE_PLAN_NONE)
            ranks[count++] = rank(planner, i);
    qsort(ranks, count, sizeof *ranks, by_rank);
    tide_status rc = give_names(planner, ranks, count);
    tide_mem_free(planner->mem, ranks, room * sizeof *ranks);
    for (uint32_t i = 1; rc == TIDE_OK && i < planner->nodes_count; i++) {
        struct tide_plan_node *node = &planner->nodes[i];
        if (node->copy_of == TIDE_PLAN_NONE)
            continue;
        node->target = planner->nodes[node->copy_of].target;
        node->name = planner->nodes[node->copy_of].name;
        rc = name_aside(planner, i);
        if (rc == TIDE_OK)
            rc = want(planner, i);
    }
    return rc;
}
