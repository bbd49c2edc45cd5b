/* pairing.h - a pairing heap with links outside the elements; it never allocates.
 *
 * Elements are slot numbers; the caller owns an array of links, one per slot, and may
 * give several heaps to one array as long as a slot is in one of them at a time.
 * Adding is O(1), taking out any element O(log n) amortized.  It does not track
 * membership: the caller does, and must not remove an element that is not in the heap.
 *
 * The order is a function over two slots.  It may change for an element that
 * is about to be removed, never for one that stays. */
#ifndef TIDE_CORE_PAIRING_H
#define TIDE_CORE_PAIRING_H

#include <stdbool.h>
#include <stdint.h>

#define TIDE_SLOT_NONE UINT32_MAX

struct tide_link {
    uint32_t child; /* the first one */
    uint32_t next;  /* sibling */
    uint32_t prev;  /* sibling, or the parent of a first child; none for the root */
};

typedef bool (*tide_pairing_order)(const void *context, uint32_t a, uint32_t b);

/* Merges two heaps by their roots and returns the new root. */
static inline uint32_t tide_pairing_meld(struct tide_link *links, uint32_t a, uint32_t b,
                                         tide_pairing_order before, const void *context)
{
    if (a == TIDE_SLOT_NONE)
        return b;
    if (b == TIDE_SLOT_NONE)
        return a;
    if (before(context, b, a)) {
        uint32_t swap = a;
        a = b;
        b = swap;
    }
    links[b].prev = a;
    links[b].next = links[a].child;
    if (links[a].child != TIDE_SLOT_NONE)
        links[links[a].child].prev = b;
    links[a].child = b;
    return a;
}

/* Merges a list of siblings into one heap: pairs from the left, then all of them from the right.
 * The amortized bound depends on these two passes. */
static inline uint32_t tide_pairing_join(struct tide_link *links, uint32_t first,
                                         tide_pairing_order before, const void *context)
{
    uint32_t stack = TIDE_SLOT_NONE;
    while (first != TIDE_SLOT_NONE) {
        uint32_t a = first;
        uint32_t b = links[a].next;
        first = b == TIDE_SLOT_NONE ? TIDE_SLOT_NONE : links[b].next;
        links[a].next = links[a].prev = TIDE_SLOT_NONE;
        if (b != TIDE_SLOT_NONE)
            links[b].next = links[b].prev = TIDE_SLOT_NONE;
        a = tide_pairing_meld(links, a, b, before, context);
        links[a].next = stack;
        stack = a;
    }
    uint32_t root = TIDE_SLOT_NONE;
    while (stack != TIDE_SLOT_NONE) {
        uint32_t a = stack;
        stack = links[a].next;
        links[a].next = TIDE_SLOT_NONE;
        root = tide_pairing_meld(links, root, a, before, context);
    }
    return root;
}

static inline void tide_pairing_add(struct tide_link *links, uint32_t *root, uint32_t slot,
                                    tide_pairing_order before, const void *context)
{
    links[slot] = (struct tide_link){TIDE_SLOT_NONE, TIDE_SLOT_NONE, TIDE_SLOT_NONE};
    *root = tide_pairing_meld(links, *root, slot, before, context);
}

static inline void tide_pairing_remove(struct tide_link *links, uint32_t *root, uint32_t slot,
                                       tide_pairing_order before, const void *context)
{
    uint32_t below = tide_pairing_join(links, links[slot].child, before, context);
    if (*root == slot) {
        *root = below;
        return;
    }
    uint32_t prev = links[slot].prev;
    uint32_t next = links[slot].next;
    if (links[prev].child == slot)
        links[prev].child = next;
    else
        links[prev].next = next;
    if (next != TIDE_SLOT_NONE)
        links[next].prev = prev;
    *root = tide_pairing_meld(links, *root, below, before, context);
}

/* Counts the elements below `root`, itself included; `limit` + 1 when there are more or the
 * links are broken or out of order.  For the checks. */
static inline uint32_t tide_pairing_count(const struct tide_link *links, uint32_t root,
                                          uint32_t limit, tide_pairing_order before,
                                          const void *context)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    uint32_t count = 0;
    uint32_t at = root;
    while (at != TIDE_SLOT_NONE) {
        if (++count > limit)
            return limit + 1;
        uint32_t child = links[at].child;
        uint32_t next = links[at].next;
        if (child != TIDE_SLOT_NONE && (links[child].prev != at || before(context, child, at)))
            return limit + 1;
        if (next != TIDE_SLOT_NONE && links[next].prev != at)
            return limit + 1;
        if (child != TIDE_SLOT_NONE) {
            at = child;
            continue;
        }
        /* Back up to the nearest ancestor (or itself) with a sibling to visit. */
        while (at != TIDE_SLOT_NONE && links[at].next == TIDE_SLOT_NONE) {
            uint32_t up = at;
            while (links[up].prev != TIDE_SLOT_NONE && links[links[up].prev].child != up)
                up = links[up].prev;
            at = links[up].prev;
        }
        if (at != TIDE_SLOT_NONE)
            at = links[at].next;
    }
    return count;
    /* GCOVR_EXCL_BR_STOP */
}

#endif
