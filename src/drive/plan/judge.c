/* judge.c - what changed on each side, and what the item is to be (D14 to D19).
 *
 * For each node: is it on a side, did its bytes or its place change there; then whether it is to
 * exist and whose bytes it has.  Where neither version may be lost the local one becomes a node of its
 * own, which takes the conflict name. */
#include "drive/names/key.h"
#include "drive/plan/plan_inside.h"

static bool same_qxh(const struct tide_drive_content *a, const struct tide_drive_content *b)
{
    if (a->bytes != b->bytes)
        return false;
    if (a->bytes == 0)
        return true; /* all are equal; their hash may be missing (D16) */
    return a->has_qxh && b->has_qxh && memcmp(a->qxh, b->qxh, sizeof a->qxh) == 0;
}

/* D15. */
static bool remote_changed(const struct tide_drive_remote *row, const struct tide_drive_base *base)
{
    if (row->kind == TIDE_DRIVE_FOLDER)
        return false;
    if (row->content.bytes != base->remote.bytes)
        return true;
    if (row->content.bytes == 0)
        return false;
    if (row->content.has_qxh && base->remote.has_qxh)
        return memcmp(row->content.qxh, base->remote.qxh, sizeof row->content.qxh) != 0;
    return !tide_text_equal(row->ctag, base->ctag) || row->mtime_s != base->mtime_s;
}

/* D14. */
static bool local_changed(const struct tide_drive_local *row, const struct tide_drive_base *base)
{
    if (row->kind == TIDE_DRIVE_FOLDER)
        return false;
    return row->content.bytes != base->local.bytes || !row->content.has_strong ||
           !base->local.has_strong ||
           memcmp(row->content.strong, base->local.strong, sizeof row->content.strong) != 0;
}

static void judge_remote(struct tide_planner *planner, struct tide_plan_node *node)
{
    const bool known = node->remote != TIDE_PLAN_NONE;
    const struct tide_drive_remote *row = known ? &planner->trees->remotes[node->remote] : NULL;
    const struct tide_drive_base *base =
        node->base == TIDE_PLAN_NONE ? NULL : &planner->trees->bases[node->base];
    if (!known) {
        node->fixed = node->fixed || base != NULL; /* no row proves nothing (S2) */
        return;
    }
    node->here[TIDE_PLAN_REMOTE] = row->state == TIDE_DRIVE_REMOTE_LIVE;
    node->forgotten = row->state == TIDE_DRIVE_REMOTE_FORGOTTEN;
    node->fixed = node->fixed || row->state == TIDE_DRIVE_REMOTE_SKIPPED ||
                  row->state == TIDE_DRIVE_REMOTE_UNSURE;
    if (base == NULL || !node->here[TIDE_PLAN_REMOTE])
        return;
    node->changed_r = remote_changed(row, base);
    node->moved_r = node->parent[TIDE_PLAN_REMOTE] != node->base_parent ||
                    !tide_drive_same_letters(row->name, base->name);
}

static void judge_local(struct tide_planner *planner, struct tide_plan_node *node)
{
    const bool known = node->local != TIDE_PLAN_NONE;
    const struct tide_drive_local *row = known ? &planner->trees->locals[node->local] : NULL;
    const struct tide_drive_base *base =
        node->base == TIDE_PLAN_NONE ? NULL : &planner->trees->bases[node->base];
    if (!known) {
        node->fixed = node->fixed || (base != NULL && !base->local_gone); /* S13 */
        return;
    }
    node->here[TIDE_PLAN_LOCAL] = row->state == TIDE_DRIVE_LOCAL_LIVE;
    node->fixed = node->fixed || row->state != TIDE_DRIVE_LOCAL_LIVE ||
                  (base != NULL && planner->doubtful[node->base]);
    if (base == NULL || !node->here[TIDE_PLAN_LOCAL])
        return;
    node->changed_l = local_changed(row, base);
    node->moved_l = node->parent[TIDE_PLAN_LOCAL] != node->base_parent ||
                    !tide_drive_same_letters(row->name, base->local_name);
}

/* D30: two local names with one key; the one with a baseline syncs on. */
static void hold_twins(struct tide_planner *planner)
{
    for (uint32_t i = 1; i < planner->nodes_count; i++) {
        struct tide_plan_node *node = &planner->nodes[i];
        if (node->dead || node->local == TIDE_PLAN_NONE || node->base != TIDE_PLAN_NONE ||
            node->remote != TIDE_PLAN_NONE || tide_plan_aside_at(planner, node, TIDE_PLAN_LOCAL))
            continue;
        const tide_text name = planner->trees->locals[node->local].name;
        node->held = tide_plan_occupant(planner, TIDE_PLAN_LOCAL, node->parent[TIDE_PLAN_LOCAL],
                                        name, i) != TIDE_PLAN_NONE;
    }
    for (uint32_t i = 1; i < planner->nodes_count; i++)
        planner->nodes[i].fixed = planner->nodes[i].fixed || planner->nodes[i].held;
}

/* Beneath what is unsure or not synced nothing is done (S13). */
static void spread_fixed(struct tide_planner *planner)
{
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 1; i < planner->nodes_count; i++) {
            struct tide_plan_node *node = &planner->nodes[i];
            const uint32_t ups[] = {node->parent[0], node->parent[1], node->base_parent};
            for (int k = 0; k < 3 && !node->fixed; k++)
                if (ups[k] != TIDE_PLAN_NONE && planner->nodes[ups[k]].fixed) {
                    node->fixed = true;
                    more = true;
                }
        }
    }
}

/* The local version becomes a file of its own (S8, S9). */
static tide_status set_aside(struct tide_planner *planner, uint32_t at, tide_drive_notice notice)
{
    struct tide_plan_node copy = planner->nodes[at];
    uint32_t copy_at = 0;
    copy.remote = TIDE_PLAN_NONE;
    copy.base = TIDE_PLAN_NONE;
    copy.parent[TIDE_PLAN_REMOTE] = TIDE_PLAN_NONE;
    copy.base_parent = TIDE_PLAN_NONE;
    copy.here[TIDE_PLAN_REMOTE] = false;
    copy.changed_r = copy.changed_l = copy.moved_r = copy.moved_l = copy.rekeyed = false;
    copy.copy_of = at;
    copy.exists = true;
    copy.notice = notice;
    TIDE_TRY(tide_plan_node_add(planner, copy, &copy_at));
    struct tide_plan_node *node = &planner->nodes[at];
    node->local = TIDE_PLAN_NONE;
    node->here[TIDE_PLAN_LOCAL] = false;
    node->parent[TIDE_PLAN_LOCAL] = TIDE_PLAN_NONE;
    node->changed_l = false;
    node->copy = copy_at; /* place.c still needs to know where it was moved to */
    const uint64_t hash = tide_plan_place(planner, copy.parent[TIDE_PLAN_LOCAL],
                                          planner->trees->locals[copy.local].name);
    if (hash == 0 || !tide_index_add(&planner->places[TIDE_PLAN_LOCAL], hash, copy_at))
        return tide_plan_no_memory(planner);
    return TIDE_OK;
}

/* On both sides: whose bytes?  Folders have none. */
static tide_status judge_both(struct tide_planner *planner, uint32_t at)
{
    struct tide_plan_node *node = &planner->nodes[at];
    node->exists = true;
    if (node->moved_r && node->moved_l)
        node->notice = TIDE_DRIVE_K7; /* place.c takes it back if both moved to one place */
    if (node->kind == TIDE_DRIVE_FOLDER)
        return TIDE_OK;
    const struct tide_drive_content *online = &planner->trees->remotes[node->remote].content;
    const struct tide_drive_content *disk = &planner->trees->locals[node->local].content;
    const bool fresh = node->base == TIDE_PLAN_NONE;
    if (!fresh && !(node->changed_r && node->changed_l))
        return TIDE_OK;
    if (same_qxh(online, disk)) {
        node->changed_r = node->changed_l = false;
        return TIDE_OK;
    }
    if (online->bytes == disk->bytes && !online->has_qxh) {
        node->compare = true; /* D19: only a download can tell */
        node->changed_r = true;
        node->changed_l = false;
        return TIDE_OK;
    }
    return set_aside(planner, at, fresh ? TIDE_DRIVE_K2 : TIDE_DRIVE_K1);
}

/* Only on one side. */
static void judge_one(struct tide_plan_node *node, tide_plan_side side)
{
    const bool changed = side == TIDE_PLAN_REMOTE ? node->changed_r : node->changed_l;
    const bool moved = side == TIDE_PLAN_REMOTE ? node->moved_r : node->moved_l;
    if (node->base == TIDE_PLAN_NONE || node->forgotten) {
        node->exists = true; /* new, or lost by the server (D34) */
        return;
    }
    if (node->kind == TIDE_DRIVE_FOLDER)
        return; /* it dies unless something in it lives (D18) */
    node->exists = changed || moved;
    if (changed)
        node->notice = TIDE_DRIVE_K3;
    else if (moved)
        node->notice = side == TIDE_PLAN_REMOTE ? TIDE_DRIVE_K5 : TIDE_DRIVE_K4;
}

tide_status tide_plan_judge(struct tide_planner *planner)
{
    const size_t count = planner->nodes_count; /* copies are added while we judge */
    for (size_t i = 1; i < count; i++) {
        judge_remote(planner, &planner->nodes[i]);
        judge_local(planner, &planner->nodes[i]);
    }
    hold_twins(planner);
    spread_fixed(planner);
    planner->nodes[TIDE_PLAN_TOP].exists = true;
    for (uint32_t i = 1; i < count; i++) {
        struct tide_plan_node *node = &planner->nodes[i];
        if (node->dead || node->fixed)
            continue;
        if (node->here[TIDE_PLAN_REMOTE] && node->here[TIDE_PLAN_LOCAL])
            TIDE_TRY(judge_both(planner, i));
        else if (node->here[TIDE_PLAN_REMOTE])
            judge_one(node, TIDE_PLAN_REMOTE);
        else if (node->here[TIDE_PLAN_LOCAL])
            judge_one(node, TIDE_PLAN_LOCAL);
    }
    return TIDE_OK;
}
