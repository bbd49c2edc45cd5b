#include "base/check.h"
#include "cloudbox/mailbox/inside.h"

#include <stdlib.h>

/* A slot with its date, so that qsort() needs to know no mailbox. */
struct key {
    uint64_t date_ms;
    uint32_t slot;
    size_t at; /* where it goes */
};

static int compare_keys(const void *a_void, const void *b_void)
{
    const struct key *a = a_void;
    const struct key *b = b_void;
    if (a->date_ms != b->date_ms)
        return a->date_ms < b->date_ms ? -1 : 1;
    return (a->slot > b->slot) - (a->slot < b->slot);
}

static struct key *keys_new(const box_mailbox *mailbox, const uint32_t *slots, size_t count)
{
    struct key *keys = tide_mem_array(tide_mem_heap(), count, sizeof *keys);
    TIDE_ASSERT(keys != NULL);
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct key){mailbox->slots[slots[i]].date_ms, slots[i], 0};
    qsort(keys, count, sizeof *keys, compare_keys);
    return keys;
}

static bool slot_before(const box_mailbox *mailbox, uint32_t a, uint32_t b)
{
    uint64_t a_ms = mailbox->slots[a].date_ms;
    uint64_t b_ms = mailbox->slots[b].date_ms;
    return a_ms != b_ms ? a_ms < b_ms : a < b;
}

/* Newer mail than all there is, the usual case, goes straight to its place. */
void box_index_add(const box_mailbox *mailbox, struct box_index *index, uint32_t slot)
{
    bool ordered = index->sorted == index->count;
    if (ordered && index->count > 0) {
        uint32_t last = index->slots[index->count - 1];
        if (last == slot)
            return; /* it was stale and holds again */
        ordered = slot_before(mailbox, last, slot);
    }
    index->slots = box_room(index->slots, &index->capacity, index->count + 1, sizeof(uint32_t));
    index->slots[index->count++] = slot;
    if (ordered)
        index->sorted = index->count;
    else if (index->count - index->sorted > BOX_PENDING_SPARE + index->sorted / 8)
        box_index_settle(mailbox, index);
}

/* The first of the sorted ones in [0, high) that does not stand before `slot`. */
static size_t place_of(const box_mailbox *mailbox, const struct box_index *index, uint32_t slot,
                       size_t high)
{
    size_t low = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slot_before(mailbox, index->slots[middle], slot))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Merges from the back, moving whole runs: a few late ones cost a memmove and not
 * a comparison per entry. */
void box_index_settle(const box_mailbox *mailbox, struct box_index *index)
{
    if (index->sorted == index->count)
        return;
    size_t pending = index->count - index->sorted;
    struct key *keys = keys_new(mailbox, index->slots + index->sorted, pending);

    size_t kept = 0;
    for (size_t i = 0; i < pending; i++) {
        if (kept > 0 && keys[kept - 1].slot == keys[i].slot)
            continue;
        size_t at = place_of(mailbox, index, keys[i].slot, index->sorted);
        if (at < index->sorted && index->slots[at] == keys[i].slot)
            continue; /* it was stale and holds again */
        keys[kept] = keys[i];
        keys[kept++].at = at;
    }
    size_t read_end = index->sorted;
    size_t write = index->sorted + kept;
    index->sorted = index->count = write;
    for (size_t i = kept; i > 0; i--) {
        size_t run = read_end - keys[i - 1].at;
        write -= run;
        memmove(index->slots + write, index->slots + keys[i - 1].at, run * sizeof(uint32_t));
        index->slots[--write] = keys[i - 1].slot;
        read_end = keys[i - 1].at;
    }
    TIDE_ASSERT(write == read_end);
    tide_mem_free(tide_mem_heap(), keys, pending * sizeof *keys);
}

size_t box_index_before(const box_mailbox *mailbox, const struct box_index *index, uint64_t date_ms,
                        uint64_t id)
{
    TIDE_ASSERT(index->sorted == index->count);
    size_t low = 0;
    size_t high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct box_message *message = &mailbox->slots[index->slots[middle]];
        if (message->date_ms != date_ms ? message->date_ms < date_ms : message->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void box_index_free(struct box_index *index)
{
    box_room_free(index->slots, index->capacity, sizeof(uint32_t));
    *index = (struct box_index){0};
}

/* ---- stale entries (BMBI3) ---- */

static bool too_stale(const struct box_index *index, uint32_t live)
{
    return index->count > live && index->count - live > index->count / 32 + BOX_STALE_SPARE;
}

void box_index_all_tidy(box_mailbox *mailbox)
{
    struct box_index *index = &mailbox->all;
    if (!too_stale(index, mailbox->messages))
        return;
    box_index_settle(mailbox, index);
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i++)
        if (!mailbox->slots[index->slots[i]].gone)
            index->slots[kept++] = index->slots[i];
    index->sorted = index->count = kept;
}

void box_index_label_tidy(box_mailbox *mailbox, uint32_t label)
{
    struct box_index *index = &mailbox->labels[label].index;
    if (!too_stale(index, mailbox->labels[label].face.messages))
        return;
    box_index_settle(mailbox, index);
    size_t kept = 0;
    for (size_t i = 0; i < index->count; i++)
        if (box_mailbox_has_label(mailbox, index->slots[i], label))
            index->slots[kept++] = index->slots[i];
    index->sorted = index->count = kept;
}

/* ---- Message-IDs: a hash leads to the newest message, that to the next older ---- */

tide_text box_message_id_bare(tide_text message_id)
{
    while (message_id.bytes > 0 && strchr(" \t\r\n<", message_id.data[0]) != NULL) {
        message_id.data++;
        message_id.bytes--;
    }
    while (message_id.bytes > 0 &&
           strchr(" \t\r\n>", message_id.data[message_id.bytes - 1]) != NULL)
        message_id.bytes--;
    return message_id;
}

void box_message_id_add(box_mailbox *mailbox, uint32_t slot, uint64_t hash)
{
    uint32_t newest;
    if (tide_map_get(&mailbox->by_message_id, hash, &newest))
        mailbox->same_id[slot] = newest;
    TIDE_ASSERT(tide_map_put(&mailbox->by_message_id, hash, slot));
}

uint64_t box_message_id_of(const box_mailbox *mailbox, uint32_t slot)
{
    uint32_t content = mailbox->slots[slot].content;
    if ((content & BOX_CONTENT_STORED) != 0)
        return mailbox->stored[content & ~BOX_CONTENT_STORED].message_id_hash;
    struct box_generated plan;
    box_generate_plan(&mailbox->generator, slot, &plan);
    return plan.message_id_hash;
}

uint32_t box_message_id_find(const box_mailbox *mailbox, uint64_t hash)
{
    uint32_t slot;
    return tide_map_get(&mailbox->by_message_id, hash, &slot) ? slot : BOX_SLOT_NONE;
}

void box_message_id_remove(box_mailbox *mailbox, uint32_t slot)
{
    uint64_t hash = box_message_id_of(mailbox, slot);
    if (hash == 0)
        return;
    uint32_t next = mailbox->same_id[slot];
    mailbox->same_id[slot] = BOX_SLOT_NONE;
    uint32_t at = box_message_id_find(mailbox, hash);
    TIDE_ASSERT(at != BOX_SLOT_NONE);
    if (at == slot) {
        if (next == BOX_SLOT_NONE)
            (void)tide_map_remove(&mailbox->by_message_id, hash);
        else
            TIDE_ASSERT(tide_map_put(&mailbox->by_message_id, hash, next));
        return;
    }
    while (mailbox->same_id[at] != slot) {
        at = mailbox->same_id[at];
        TIDE_ASSERT(at != BOX_SLOT_NONE);
    }
    mailbox->same_id[at] = next;
}

/* ---- walking (BMBX3) ---- */

/* The rarest of the walk's labels, or NULL for all messages; false: one of them
 * is gone or never was, so nothing can carry it. */
static bool choose_index(box_mailbox *mailbox, const struct box_walk *walk,
                         struct box_index **index_out, uint32_t *live_out)
{
    *index_out = &mailbox->all;
    *live_out = mailbox->messages;
    for (size_t i = 0; i < walk->labels_count; i++) {
        uint32_t number = walk->labels[i];
        if (!box_labels_live(mailbox, number))
            return false;
        struct box_label_inside *label = &mailbox->labels[number];
        if (i == 0 || label->face.messages < *live_out) {
            *index_out = &label->index;
            *live_out = label->face.messages;
        }
    }
    return true;
}

static bool wanted(const box_mailbox *mailbox, const struct box_walk *walk, uint32_t slot)
{
    if (mailbox->slots[slot].gone)
        return false;
    for (size_t i = 0; i < walk->labels_count; i++)
        if (!box_sets_has(&mailbox->sets, mailbox->slots[slot].label_set, walk->labels[i]))
            return false;
    return true;
}

/* Where the walk's entries end, seen from the oldest one. */
static size_t walk_end(const box_mailbox *mailbox, const struct box_index *index,
                       const struct box_walk *walk, struct box_walk_at at)
{
    if (walk->date_high_ms != UINT64_MAX && walk->date_high_ms <= at.date_ms)
        at = (struct box_walk_at){walk->date_high_ms, 0};
    return box_index_before(mailbox, index, at.date_ms, at.id);
}

static struct key *same_message_id(const box_mailbox *mailbox, tide_text message_id,
                                   size_t *count_out)
{
    uint64_t hash = box_message_id_hash(box_message_id_bare(message_id));
    uint32_t *slots = NULL;
    size_t capacity = 0;
    size_t count = 0;
    uint32_t slot = box_message_id_find(mailbox, hash);
    for (; slot != BOX_SLOT_NONE; slot = mailbox->same_id[slot]) {
        slots = box_room(slots, &capacity, count + 1, sizeof *slots);
        slots[count++] = slot;
    }
    struct key *keys = count == 0 ? NULL : keys_new(mailbox, slots, count);
    box_room_free(slots, capacity, sizeof *slots);
    *count_out = count;
    return keys;
}

static void walk_message_id(const box_mailbox *mailbox, const struct box_walk *walk,
                            struct box_walk_at at, bool (*visit)(void *arg, uint32_t slot),
                            void *arg)
{
    size_t count;
    struct key *keys = same_message_id(mailbox, walk->message_id, &count);
    for (size_t i = count; i > 0; i--) {
        const struct box_message *message = &mailbox->slots[keys[i - 1].slot];
        if (message->date_ms < walk->date_low_ms)
            break;
        if (walk->date_high_ms != UINT64_MAX && message->date_ms >= walk->date_high_ms)
            continue;
        bool behind =
            message->date_ms != at.date_ms ? message->date_ms < at.date_ms : message->id < at.id;
        if (behind && wanted(mailbox, walk, keys[i - 1].slot) && !visit(arg, keys[i - 1].slot))
            break;
    }
    tide_mem_free(tide_mem_heap(), keys, count * sizeof *keys);
}

void box_mailbox_walk(box_mailbox *mailbox, const struct box_walk *walk, struct box_walk_at at,
                      bool (*visit)(void *arg, uint32_t slot), void *arg)
{
    struct box_index *index;
    uint32_t live;
    if (!choose_index(mailbox, walk, &index, &live))
        return;
    if (walk->message_id.data != NULL) {
        walk_message_id(mailbox, walk, at, visit, arg);
        return;
    }
    box_index_settle(mailbox, index);
    for (size_t i = walk_end(mailbox, index, walk, at); i > 0; i--) {
        uint32_t slot = index->slots[i - 1];
        if (mailbox->slots[slot].date_ms < walk->date_low_ms)
            return;
        if (wanted(mailbox, walk, slot) && !visit(arg, slot))
            return;
    }
}

uint32_t box_mailbox_walk_estimate(box_mailbox *mailbox, const struct box_walk *walk)
{
    struct box_index *index;
    uint32_t live;
    if (!choose_index(mailbox, walk, &index, &live))
        return 0;
    if (walk->message_id.data != NULL) {
        size_t count;
        struct key *keys = same_message_id(mailbox, walk->message_id, &count);
        tide_mem_free(tide_mem_heap(), keys, count * sizeof *keys);
        return (uint32_t)count;
    }
    box_index_settle(mailbox, index);
    size_t end = walk_end(mailbox, index, walk, BOX_WALK_START);
    size_t start = box_index_before(mailbox, index, walk->date_low_ms, 0);
    size_t between = end > start ? end - start : 0;
    return between < live ? (uint32_t)between : live;
}
