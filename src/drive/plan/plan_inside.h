/* plan_inside.h - what the steps of a plan share. */
#ifndef TIDE_DRIVE_PLAN_PLAN_INSIDE_H
#define TIDE_DRIVE_PLAN_PLAN_INSIDE_H

#include "base/buf.h"
#include "drive/plan/index.h"
#include "drive/plan/plan.h"

enum { TIDE_PLAN_NONE = UINT32_MAX, TIDE_PLAN_TOP = 0 }; /* no index; the node of the root */

typedef enum tide_plan_side { TIDE_PLAN_REMOTE, TIDE_PLAN_LOCAL, TIDE_PLAN_SIDES } tide_plan_side;

/* An item, with what each tree has of it. */
struct tide_plan_node {
    uint32_t remote, local, base;     /* in the trees; TIDE_PLAN_NONE */
    uint32_t parent[TIDE_PLAN_SIDES]; /* where it is now; TIDE_PLAN_NONE: not on that side */
    uint32_t base_parent;
    uint32_t copy_of; /* node */
    uint32_t copy;    /* node that took its local row */

    /* judge.c */
    tide_drive_kind kind;
    bool dead;                  /* joined with another node */
    bool here[TIDE_PLAN_SIDES]; /* it is on that side, and synced */
    bool fixed;                 /* unsure or not synced: nothing is done to it */
    bool held;                  /* two local names with one key (D30) */
    bool changed_r, changed_l, moved_r, moved_l;
    bool rekeyed;   /* its remote row has another id than its baseline (D26) */
    bool exists;    /* in the target tree */
    bool compare;   /* no hash to compare */
    bool forgotten; /* by the server (D34) */

    /* place.c */
    uint32_t target; /* parent */
    tide_text name;
    tide_drive_notice notice;

    /* act.c: actions, TIDE_PLAN_NONE */
    uint32_t structure[TIDE_PLAN_SIDES]; /* MKDIR, NEW, DOWN that creates, MOVE, DEL */
    uint32_t content;                    /* UP, DOWN that overwrites, BASE */
};

struct tide_plan_edge {
    uint32_t before, after;
    bool frees_name;
    bool only_order; /* `after` does not need what `before` does, it only must not run beside it */
};

struct tide_planner {
    tide_mem *mem;
    const struct tide_drive_trees *trees;
    const struct tide_drive_plan_options *options;
    struct tide_drive_plan *plan;
    tide_error *err;

    uint32_t *local_of_base; /* claim.c */
    uint32_t *base_of_local;
    bool *doubtful; /* by baseline: what is at its path may be another item */

    struct tide_plan_node *nodes;
    size_t nodes_count, nodes_capacity;
    tide_map node_of_item;
    tide_map node_of_row;
    uint32_t *node_of_action;
    size_t node_of_action_capacity;
    tide_index places[TIDE_PLAN_SIDES]; /* (parent node, key) -> node, as they are now */
    tide_index names;                   /* the same in the target tree */
    tide_buf key;                       /* of the last tide_plan_key() */
    struct tide_plan_edge *edges;
    size_t edges_count, edges_capacity;
};

tide_status tide_plan_no_memory(struct tide_planner *planner);
/* The hash of a place: (number, key of the name).  0: no memory. */
uint64_t tide_plan_place(struct tide_planner *planner, uint64_t parent, tide_text name);
/* Whether two names are one (D29). */
bool tide_plan_same_key(struct tide_planner *planner, tide_text a, tide_text b);
/* Orders 0 .. count-1 so that a parent comes before its children; NONE is the top, and so is what
 * would be a circle. */
tide_status tide_plan_by_depth(struct tide_planner *planner, const uint32_t *parents, size_t count,
                               uint32_t *order_out);

/* The row of a node on a side; its name there. */
static inline tide_text tide_plan_name_at(const struct tide_planner *planner,
                                          const struct tide_plan_node *node, tide_plan_side side)
{
    return side == TIDE_PLAN_REMOTE ? planner->trees->remotes[node->remote].name
                                    : planner->trees->locals[node->local].name;
}
static inline bool tide_plan_aside_at(const struct tide_planner *planner,
                                      const struct tide_plan_node *node, tide_plan_side side)
{
    return side == TIDE_PLAN_REMOTE ? planner->trees->remotes[node->remote].stepped_aside
                                    : planner->trees->locals[node->local].stepped_aside;
}
/* The node that has this place on a side now, other than `but`; NONE. */
uint32_t tide_plan_occupant(struct tide_planner *planner, tide_plan_side side, uint32_t parent,
                            tide_text name, uint32_t but);

tide_status tide_plan_claim(struct tide_planner *planner);
tide_status tide_plan_nodes(struct tide_planner *planner);
tide_status tide_plan_node_add(struct tide_planner *planner, struct tide_plan_node node,
                               uint32_t *at_out);
tide_status tide_plan_judge(struct tide_planner *planner);
tide_status tide_plan_places(struct tide_planner *planner);
tide_status tide_plan_names(struct tide_planner *planner);
tide_status tide_plan_act(struct tide_planner *planner);
tide_status tide_plan_action_add(struct tide_planner *planner, uint32_t node, tide_drive_verb verb,
                                 uint32_t *at_out);
tide_status tide_plan_edges(struct tide_planner *planner);
tide_status tide_plan_circles(struct tide_planner *planner);
tide_status tide_plan_own_moves(struct tide_planner *planner);
tide_status tide_plan_edge_add(struct tide_planner *planner, uint32_t before, uint32_t after,
                               bool frees_name);
/* Order of the actions by the edges; *sorted_out: how many are in no circle.  `waits` has for each
 * action in a circle more than 0. */
tide_status tide_plan_sort(struct tide_planner *planner, uint32_t *order, uint32_t *waits,
                           size_t *sorted_out);
tide_status tide_plan_guard(struct tide_planner *planner);

#endif
