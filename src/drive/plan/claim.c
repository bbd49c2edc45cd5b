/* claim.c - which local row is which item of the baseline (D22).
 *
 * Each baseline row is claimed by at most one local row, in the order of D22.  Folders come first,
 * the upper ones before the lower ones: a path is "own" if its folder is the one that the item
 * was in, wherever that folder is now, so that the move of a folder is not the move of its
 * children. */
#include "drive/plan/plan_inside.h"

struct claim {
    struct tide_planner *planner;
    tide_index paths;      /* (parent row, name bytes) -> local */
    tide_index inodes;     /* (dev, inode) -> local */
    tide_index old_inodes; /* (dev, inode) -> baseline */
    tide_index strongs;    /* strong hash -> local */
    tide_index children;   /* parent row -> local */
    tide_map base_of_item, base_of_row;
    uint32_t *order; /* of the baseline, parents first */
};

static const struct tide_drive_base *base_at(const struct claim *claim, uint32_t at)
{
    return &claim->planner->trees->bases[at];
}

static const struct tide_drive_local *local_at(const struct claim *claim, uint32_t at)
{
    return &claim->planner->trees->locals[at];
}

static uint64_t inode_hash(const struct tide_drive_identity *identity)
{
    return tide_index_hash(identity->dev,
                           (tide_text){(const char *)&identity->inode, sizeof identity->inode});
}

static bool same_inode(const struct tide_drive_identity *a, const struct tide_drive_identity *b)
{
    return a->dev == b->dev && a->inode == b->inode;
}

static bool same_identity(const struct tide_drive_identity *a, const struct tide_drive_identity *b)
{
    return same_inode(a, b) && a->birth_ns == b->birth_ns;
}

static tide_text strong_text(const struct tide_drive_content *content)
{
    return (tide_text){(const char *)content->strong, sizeof content->strong};
}

static bool same_strong(const struct tide_drive_content *a, const struct tide_drive_content *b)
{
    return a->has_strong && b->has_strong && memcmp(a->strong, b->strong, sizeof a->strong) == 0;
}

static bool is_free(const struct claim *claim, uint32_t base, uint32_t local)
{
    return claim->planner->base_of_local[local] == TIDE_PLAN_NONE &&
           local_at(claim, local)->kind == base_at(claim, base)->kind &&
           local_at(claim, local)->state != TIDE_DRIVE_LOCAL_SKIPPED;
}

static void take(struct claim *claim, uint32_t base, uint32_t local)
{
    claim->planner->local_of_base[base] = local;
    claim->planner->base_of_local[local] = base;
}

/* The other item whose baseline has this row and waits for its claim, or NONE. */
static uint32_t other_owner(const struct claim *claim, uint32_t base, uint32_t local)
{
    uint32_t owner = 0;
    if (!tide_map_get(&claim->base_of_row, local_at(claim, local)->row, &owner) || owner == base ||
        claim->planner->local_of_base[owner] != TIDE_PLAN_NONE ||
        base_at(claim, owner)->kind != base_at(claim, base)->kind)
        return TIDE_PLAN_NONE;
    return owner;
}

/* Two baselines have one identity, or one path, if the file got another item and the first one is not forgotten
 * yet: then the row says whose it is. */
static bool is_others_identity(const struct claim *claim, uint32_t base, uint32_t local)
{
    const uint32_t owner = other_owner(claim, base, local);
    return owner != TIDE_PLAN_NONE &&
           same_identity(&local_at(claim, local)->identity, &base_at(claim, owner)->identity);
}

static bool is_others_path(const struct claim *claim, uint32_t base, uint32_t local)
{
    return is_others_identity(claim, base, local) ||
           (other_owner(claim, base, local) != TIDE_PLAN_NONE &&
            !same_identity(&local_at(claim, local)->identity, &base_at(claim, base)->identity));
}

/* The free row at the item's own path, or NONE.  An entry that stepped aside counts as being where it was,
 * beside the one that has its name by now: then the identity says which of them is the item. */
static uint32_t own_path(const struct claim *claim, uint32_t base)
{
    const struct tide_drive_base *row = base_at(claim, base);
    uint64_t parent = TIDE_DRIVE_ROOT;
    uint32_t up = 0;
    if (row->parent != TIDE_DRIVE_ROOT) {
        if (!tide_map_get(&claim->base_of_item, row->parent, &up) ||
            claim->planner->local_of_base[up] == TIDE_PLAN_NONE)
            return TIDE_PLAN_NONE;
        parent = local_at(claim, claim->planner->local_of_base[up])->row;
    }
    uint32_t found = TIDE_PLAN_NONE;
    uint32_t at = tide_index_first(&claim->paths, tide_index_hash(parent, row->local_name));
    for (; at != TIDE_INDEX_END; at = tide_index_next(&claim->paths, at)) {
        if (local_at(claim, at)->parent != parent ||
            !tide_text_equal(local_at(claim, at)->name, row->local_name) ||
            !is_free(claim, base, at) || is_others_path(claim, base, at))
            continue;
        if (same_identity(&local_at(claim, at)->identity, &row->identity))
            return at;
        if (found == TIDE_PLAN_NONE || !local_at(claim, at)->stepped_aside)
            found = at;
    }
    return found;
}

static bool by_own_identity(struct claim *claim, uint32_t base)
{
    const uint32_t at = own_path(claim, base);
    if (at == TIDE_PLAN_NONE ||
        !same_identity(&local_at(claim, at)->identity, &base_at(claim, base)->identity))
        return false;
    take(claim, base, at);
    return true;
}

/* An editor writes a new file and renames it over the old one. */
static bool by_new_identity(struct claim *claim, uint32_t base)
{
    const uint32_t at = own_path(claim, base);
    if (at == TIDE_PLAN_NONE)
        return false;
    const struct tide_drive_identity *identity = &local_at(claim, at)->identity;
    uint32_t old = tide_index_first(&claim->old_inodes, inode_hash(identity));
    for (; old != TIDE_INDEX_END; old = tide_index_next(&claim->old_inodes, old))
        if (same_identity(&base_at(claim, old)->identity, identity))
            return false;
    take(claim, base, at);
    return true;
}

/* Whether one of the folder's items is in the local folder `row` now. */
static bool has_known_child(const struct claim *claim, uint32_t base, uint64_t row)
{
    uint32_t at = tide_index_first(&claim->children, tide_index_hash(row, TIDE_TEXT_NONE));
    for (; at != TIDE_INDEX_END; at = tide_index_next(&claim->children, at)) {
        const struct tide_drive_local *local = local_at(claim, at);
        if (local->parent != row)
            continue;
        uint32_t old = tide_index_first(&claim->old_inodes, inode_hash(&local->identity));
        for (; old != TIDE_INDEX_END; old = tide_index_next(&claim->old_inodes, old))
            if (base_at(claim, old)->parent == base_at(claim, base)->item &&
                base_at(claim, old)->kind == local->kind &&
                same_inode(&base_at(claim, old)->identity, &local->identity))
                return true;
    }
    return false;
}

static bool proves_move(const struct claim *claim, uint32_t base, uint32_t at)
{
    const struct tide_drive_base *was = base_at(claim, base);
    const struct tide_drive_local *is = local_at(claim, at);
    const bool same_birth =
        was->identity.birth_ns != 0 && was->identity.birth_ns == is->identity.birth_ns;
    /* Only an action of ours gives an entry another place and leaves it its row. */
    if (was->row == is->row)
        return true;
    if (was->kind == TIDE_DRIVE_FOLDER)
        return same_birth || has_known_child(claim, base, is->row);
    return is->nlink == 1 && (same_birth || same_strong(&was->local, &is->content));
}

static bool by_move(struct claim *claim, uint32_t base)
{
    const struct tide_drive_identity *identity = &base_at(claim, base)->identity;
    uint32_t at = tide_index_first(&claim->inodes, inode_hash(identity));
    for (; at != TIDE_INDEX_END; at = tide_index_next(&claim->inodes, at))
        if (is_free(claim, base, at) && same_inode(&local_at(claim, at)->identity, identity) &&
            !is_others_identity(claim, base, at) && proves_move(claim, base, at)) {
            take(claim, base, at);
            return true;
        }
    return false;
}

static bool by_own_path(struct claim *claim, uint32_t base)
{
    const uint32_t at = own_path(claim, base);
    if (at == TIDE_PLAN_NONE)
        return false;
    take(claim, base, at);
    return true;
}

/* What is at the item's path is another item by its identity, and where that one is now could not be
 * seen: perhaps the two changed places, and the item is where nobody looked.  To take the stranger's
 * bytes for its own would lose one of them (S2). */
static bool is_doubtful(const struct claim *claim, uint32_t base, uint32_t local)
{
    const struct tide_drive_identity *identity = &local_at(claim, local)->identity;
    uint32_t old = tide_index_first(&claim->old_inodes, inode_hash(identity));
    for (; old != TIDE_INDEX_END; old = tide_index_next(&claim->old_inodes, old)) {
        const uint32_t now = claim->planner->local_of_base[old];
        if (old == base || !same_identity(&base_at(claim, old)->identity, identity))
            continue;
        if (now == TIDE_PLAN_NONE ? !base_at(claim, old)->local_gone
                                  : local_at(claim, now)->state == TIDE_DRIVE_LOCAL_UNSURE)
            return true;
    }
    return false;
}

/* The only new file with its bytes: moved by a program that copies and deletes. */
static bool by_content(struct claim *claim, uint32_t base)
{
    const struct tide_drive_base *row = base_at(claim, base);
    uint32_t found = TIDE_PLAN_NONE, count = 0;
    if (row->kind != TIDE_DRIVE_FILE || row->local.bytes == 0 || !row->local.has_strong ||
        !row->local_gone)
        return false;
    uint32_t at = tide_index_first(&claim->strongs,
                                   tide_index_hash(row->local.bytes, strong_text(&row->local)));
    for (; at != TIDE_INDEX_END; at = tide_index_next(&claim->strongs, at))
        if (is_free(claim, base, at) && same_strong(&local_at(claim, at)->content, &row->local)) {
            found = at;
            count++;
        }
    if (count != 1)
        return false;
    take(claim, base, found);
    return true;
}

static tide_status index_rows(struct claim *claim)
{
    struct tide_planner *planner = claim->planner;
    for (uint32_t i = 0; i < planner->trees->locals_count; i++) {
        const struct tide_drive_local *row = local_at(claim, i);
        bool ok = tide_index_add(&claim->paths, tide_index_hash(row->parent, row->name), i) &&
                  tide_index_add(&claim->inodes, inode_hash(&row->identity), i) &&
                  tide_index_add(&claim->children, tide_index_hash(row->parent, TIDE_TEXT_NONE), i);
        if (ok && row->kind == TIDE_DRIVE_FILE && row->content.has_strong)
            ok = tide_index_add(&claim->strongs,
                                tide_index_hash(row->content.bytes, strong_text(&row->content)), i);
        if (!ok)
            return tide_plan_no_memory(planner);
    }
    for (uint32_t i = 0; i < planner->trees->bases_count; i++) {
        const uint64_t row = base_at(claim, i)->row;
        if (!tide_index_add(&claim->old_inodes, inode_hash(&base_at(claim, i)->identity), i) ||
            !tide_map_put(&claim->base_of_item, base_at(claim, i)->item, i) ||
            (row != 0 && !tide_map_put(&claim->base_of_row, row, i)))
            return tide_plan_no_memory(planner);
    }
    return TIDE_OK;
}

static tide_status order_bases(struct claim *claim, uint32_t *parents)
{
    for (uint32_t i = 0; i < claim->planner->trees->bases_count; i++) {
        uint32_t up = TIDE_PLAN_NONE;
        (void)tide_map_get(&claim->base_of_item, base_at(claim, i)->parent, &up);
        parents[i] = up;
    }
    return tide_plan_by_depth(claim->planner, parents, claim->planner->trees->bases_count,
                              claim->order);
}

typedef bool (*rule)(struct claim *claim, uint32_t base);

static void apply(struct claim *claim, tide_drive_kind kind, const rule *rules, size_t count)
{
    for (size_t i = 0; i < claim->planner->trees->bases_count; i++) {
        const uint32_t base = claim->order[i];
        if (base_at(claim, base)->kind != kind ||
            claim->planner->local_of_base[base] != TIDE_PLAN_NONE)
            continue;
        for (size_t k = 0; k < count && !rules[k](claim, base); k++)
            ;
    }
}

static bool by_birth(struct claim *claim, uint32_t base)
{
    return base_at(claim, base)->identity.birth_ns != 0 && by_move(claim, base);
}

static tide_status claim_all(struct claim *claim, uint32_t *parents)
{
    static const rule folders[] = {by_own_identity, by_new_identity, by_move, by_own_path};
    static const rule born[] = {by_birth};
    static const rule file_rules[] = {by_own_identity, by_new_identity, by_move, by_own_path,
                                      by_content};
    TIDE_TRY(index_rows(claim));
    TIDE_TRY(order_bases(claim, parents));
    /* A folder that has its birth time is itself wherever it is; then a lower folder's row cannot be
     * taken by an upper one that only had the same path. */
    apply(claim, TIDE_DRIVE_FOLDER, born, 1);
    apply(claim, TIDE_DRIVE_FOLDER, folders, 4);
    for (size_t i = 0; i < sizeof file_rules / sizeof file_rules[0]; i++)
        apply(claim, TIDE_DRIVE_FILE, &file_rules[i], 1);
    for (uint32_t i = 0; i < claim->planner->trees->bases_count; i++) {
        const uint32_t local = claim->planner->local_of_base[i];
        claim->planner->doubtful[i] = local != TIDE_PLAN_NONE && is_doubtful(claim, i, local);
    }
    return TIDE_OK;
}

tide_status tide_plan_claim(struct tide_planner *planner)
{
    const size_t bases = planner->trees->bases_count, locals = planner->trees->locals_count;
    struct claim claim = {.planner = planner};
    tide_index_init(&claim.paths, planner->mem);
    tide_index_init(&claim.inodes, planner->mem);
    tide_index_init(&claim.old_inodes, planner->mem);
    tide_index_init(&claim.strongs, planner->mem);
    tide_index_init(&claim.children, planner->mem);
    tide_map_init(&claim.base_of_item, planner->mem);
    tide_map_init(&claim.base_of_row, planner->mem);
    planner->local_of_base = tide_mem_array(planner->mem, bases + 1, 4);
    planner->base_of_local = tide_mem_array(planner->mem, locals + 1, 4);
    planner->doubtful = tide_mem_array(planner->mem, bases + 1, sizeof *planner->doubtful);
    claim.order = tide_mem_array(planner->mem, bases + 1, 4);
    uint32_t *parents = tide_mem_array(planner->mem, bases + 1, 4);
    tide_status rc = TIDE_OK;
    if (planner->local_of_base == NULL || planner->base_of_local == NULL ||
        planner->doubtful == NULL || claim.order == NULL || parents == NULL) {
        rc = tide_plan_no_memory(planner);
    } else {
        memset(planner->local_of_base, 0xff, (bases + 1) * 4);
        memset(planner->base_of_local, 0xff, (locals + 1) * 4);
        rc = claim_all(&claim, parents);
    }
    tide_mem_free(planner->mem, parents, (bases + 1) * 4);
    tide_mem_free(planner->mem, claim.order, (bases + 1) * 4);
    tide_map_done(&claim.base_of_row);
    tide_map_done(&claim.base_of_item);
    tide_index_done(&claim.strongs);
    tide_index_done(&claim.children);
    tide_index_done(&claim.old_inodes);
    tide_index_done(&claim.inodes);
    tide_index_done(&claim.paths);
    return rc;
}
