#include "cloudbox/mailbox/mailbox.h"
#include "base/check.h"
#include "base/rng.h"
#include "cloudbox/mailbox/inside.h"
#include "cloudbox/mailbox/mime.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- memory ---- */

void *box_room(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    if (count <= *capacity)
        return array;
    size_t wanted = *capacity + *capacity / 2 + 16;
    if (wanted < count)
        wanted = count;
    TIDE_ASSERT(wanted <= SIZE_MAX / element_bytes);
    tide_mem *mem = tide_mem_heap();
    void *grown = mem->resize(mem, array, *capacity * element_bytes, wanted * element_bytes);
    TIDE_ASSERT(grown != NULL);
    *capacity = wanted;
    return grown;
}

void box_room_free(void *array, size_t capacity, size_t element_bytes)
{
    tide_mem_free(tide_mem_heap(), array, capacity * element_bytes);
}

/* ---- numbers drawn from the seed (BMBX1) ---- */

static uint64_t mixed(uint64_t seed, uint64_t value)
{
    tide_rng rng = tide_rng_seeded(seed ^ value);
    return tide_rng_next(&rng);
}

/* As Gmail's: the time in milliseconds above twenty bits of noise, which gives 16
 * hex digits since 2004. */
uint64_t box_draw_id(uint64_t seed, uint64_t last, uint64_t now_ms)
{
    const uint64_t time_max = ((uint64_t)1 << 43) - 1;
    uint64_t noise = mixed(seed + 1, last);
    uint64_t id = (now_ms < time_max ? now_ms : time_max) << 20 | (noise & 0xfffff);
    return id > last ? id : last + 1 + (noise >> 20) % 16;
}

uint64_t box_draw_history_id(uint64_t seed, uint64_t last)
{
    return last + 1 + mixed(seed + 2, last) % 5;
}

uint64_t box_draw_draft_id(uint64_t seed, uint64_t last)
{
    uint64_t noise = mixed(seed + 3, last);
    if (last == 0)
        return 1000000000000000000u + noise % 1000000000000000000u;
    return last + 1 + noise % 10000000000000u;
}

/* ---- life ---- */

static void add_generated(box_mailbox *mailbox, uint32_t n, uint64_t history_from_ms)
{
    struct box_generated plan;
    box_generate_plan(&mailbox->generator, n, &plan);
    TIDE_ASSERT(plan.root <= n);
    TIDE_ASSERT(plan.twin <= n);

    uint16_t labels[BOX_GENERATED_LABELS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < plan.labels_count; i++) {
        uint16_t label = plan.labels[i];
        if (label >= 1000)
            label = (uint16_t)(label - 1000 + BOX_LABELS_SYSTEM);
        size_t at = count;
        while (at > 0 && labels[at - 1] > label)
            at--;
        if (at > 0 && labels[at - 1] == label)
            continue;
        memmove(labels + at + 1, labels + at, (count - at) * sizeof *labels);
        labels[at] = label;
        count++;
    }

    uint32_t slot = box_slot_new(mailbox);
    TIDE_ASSERT(slot == n);
    struct box_message *message = &mailbox->slots[slot];
    mailbox->id_last = box_draw_id(mailbox->spec.seed, mailbox->id_last, plan.date_ms);
    message->id = mailbox->id_last;
    message->date_ms = plan.date_ms;
    message->bytes = plan.bytes;
    message->content = plan.twin;
    box_thread_join(mailbox, slot, plan.root);
    box_index_add(mailbox, &mailbox->all, slot);
    if (plan.message_id_hash != 0)
        box_message_id_add(mailbox, slot, plan.message_id_hash);
    message->label_set = box_sets_intern(&mailbox->sets, labels, count);
    box_labels_move(mailbox, slot, 0, message->label_set);
    mailbox->messages++;

    if (plan.date_ms >= history_from_ms) {
        uint64_t clock_ms = mailbox->now_ms;
        mailbox->now_ms = plan.date_ms;
        box_history_add(mailbox, slot, 0, BOX_CHANGE_ADDED);
        mailbox->now_ms = clock_ms;
        return;
    }
    mailbox->history_last = box_draw_history_id(mailbox->spec.seed, mailbox->history_last);
    mailbox->history_forgotten = mailbox->history_last;
    message->history_id = mailbox->history_last;
}

box_mailbox *box_mailbox_new(const struct box_mailbox_spec *spec)
{
    TIDE_ASSERT(spec->generated <= BOX_SLOTS_MAX);
    tide_mem *mem = tide_mem_heap();
    box_mailbox *mailbox = tide_mem_new(mem, sizeof *mailbox);
    TIDE_ASSERT(mailbox != NULL);
    mailbox->spec = *spec;
    mailbox->spec.email = NULL;
    mailbox->now_ms = spec->now_ms;
    mailbox->generator.seed = spec->seed;
    mailbox->generator.count = spec->generated;
    mailbox->generator.size_bytes = spec->size_bytes;
    mailbox->generator.newest_ms = spec->now_ms;
    (void)snprintf(mailbox->generator.email, sizeof mailbox->generator.email, "%s",
                   spec->email == NULL ? "" : spec->email);
    mailbox->history_last = 1000000 + mixed(spec->seed, 0) % 9000000;
    mailbox->history_forgotten = mailbox->history_last;

    box_sets_init(&mailbox->sets);
    tide_map_init(&mailbox->by_message_id, mem);
    tide_map_init(&mailbox->draft_of, mem);
    box_labels_init(mailbox);
    TIDE_ASSERT(tide_map_reserve(&mailbox->by_message_id, spec->generated));

    uint64_t history_from_ms =
        spec->now_ms > spec->history_keep_ms ? spec->now_ms - spec->history_keep_ms : 0;
    size_t room = (size_t)spec->generated + spec->generated / 64 + 64;
    mailbox->slots = box_room(NULL, &mailbox->slots_capacity, room, sizeof *mailbox->slots);
    size_t same = 0;
    mailbox->threads = box_room(NULL, &same, room, sizeof *mailbox->threads);
    same = 0;
    mailbox->same_id = box_room(NULL, &same, room, sizeof *mailbox->same_id);
    for (uint32_t n = 0; n < spec->generated; n++)
        add_generated(mailbox, n, history_from_ms);
    return mailbox;
}

void box_mailbox_free(box_mailbox *mailbox)
{
    if (mailbox == NULL)
        return;
    for (size_t i = 0; i < mailbox->stored_count; i++)
        tide_mem_free(tide_mem_heap(), mailbox->stored[i].raw, mailbox->stored[i].bytes + 1);
    box_room_free(mailbox->stored, mailbox->stored_capacity, sizeof *mailbox->stored);
    box_room_free(mailbox->slots, mailbox->slots_capacity, sizeof *mailbox->slots);
    box_room_free(mailbox->threads, mailbox->slots_capacity, sizeof *mailbox->threads);
    box_room_free(mailbox->same_id, mailbox->slots_capacity, sizeof *mailbox->same_id);
    box_room_free(mailbox->drafts, mailbox->drafts_capacity, sizeof *mailbox->drafts);
    box_room_free(mailbox->records, mailbox->records_capacity, sizeof *mailbox->records);
    box_sets_done(&mailbox->sets);
    box_labels_done(mailbox);
    box_index_free(&mailbox->all);
    tide_map_done(&mailbox->by_message_id);
    tide_map_done(&mailbox->draft_of);
    tide_mem_free(tide_mem_heap(), mailbox, sizeof *mailbox);
}

/* ---- looking ---- */

const char *box_mailbox_email(const box_mailbox *mailbox)
{
    return mailbox->generator.email;
}

uint32_t box_mailbox_slots(const box_mailbox *mailbox)
{
    return (uint32_t)mailbox->slots_count;
}

uint32_t box_mailbox_messages(const box_mailbox *mailbox)
{
    return mailbox->messages;
}

uint32_t box_mailbox_threads(const box_mailbox *mailbox)
{
    return mailbox->threads_count;
}

const struct box_message *box_mailbox_at(const box_mailbox *mailbox, uint32_t slot)
{
    TIDE_ASSERT(slot < mailbox->slots_count);
    return &mailbox->slots[slot];
}

void box_id_text(uint64_t id, char text_out[BOX_ID_TEXT_BYTES])
{
    (void)snprintf(text_out, BOX_ID_TEXT_BYTES, "%016" PRIx64, id);
}

/* Only what box_id_text() writes: an id in another spelling is another id. */
bool box_id_parse(tide_text text, uint64_t *id_out)
{
    if (text.bytes != 16)
        return false;
    uint64_t id = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        char c = text.data[i];
        if (c >= '0' && c <= '9')
            id = id << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            id = id << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *id_out = id;
    return true;
}

uint32_t box_slot_of_id(const box_mailbox *mailbox, uint64_t id)
{
    size_t low = 0;
    size_t high = mailbox->slots_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mailbox->slots[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < mailbox->slots_count && mailbox->slots[low].id == id ? (uint32_t)low
                                                                      : BOX_SLOT_NONE;
}

uint32_t box_mailbox_find(const box_mailbox *mailbox, tide_text id)
{
    uint64_t number;
    if (!box_id_parse(id, &number))
        return BOX_SLOT_NONE;
    uint32_t slot = box_slot_of_id(mailbox, number);
    return slot != BOX_SLOT_NONE && mailbox->slots[slot].gone ? BOX_SLOT_NONE : slot;
}

tide_text box_mailbox_raw(box_mailbox *mailbox, uint32_t slot, tide_buf *scratch)
{
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    if ((message->content & BOX_CONTENT_STORED) != 0) {
        const struct box_stored *stored = &mailbox->stored[message->content & ~BOX_CONTENT_STORED];
        TIDE_ASSERT(stored->raw != NULL);
        return (tide_text){stored->raw, stored->bytes};
    }
    tide_buf_clear(scratch);
    box_generate_raw(&mailbox->generator, message->content, scratch);
    TIDE_ASSERT(scratch->bytes == message->bytes);
    return tide_buf_text(scratch);
}

void box_mailbox_snippet(box_mailbox *mailbox, uint32_t slot, tide_buf *out)
{
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    if ((message->content & BOX_CONTENT_STORED) != 0)
        box_mime_snippet(box_mailbox_raw(mailbox, slot, NULL), out);
    else
        box_generate_snippet(&mailbox->generator, message->content, out);
}

/* ---- changing ---- */

uint32_t box_slot_new(box_mailbox *mailbox)
{
    size_t slot = mailbox->slots_count;
    TIDE_ASSERT(slot < BOX_SLOTS_MAX);
    size_t before = mailbox->slots_capacity;
    mailbox->slots =
        box_room(mailbox->slots, &mailbox->slots_capacity, slot + 1, sizeof *mailbox->slots);
    if (before != mailbox->slots_capacity) { /* the arrays beside it grow in step */
        size_t same = before;
        mailbox->threads = box_room(mailbox->threads, &same, slot + 1, sizeof *mailbox->threads);
        same = before;
        mailbox->same_id = box_room(mailbox->same_id, &same, slot + 1, sizeof *mailbox->same_id);
        TIDE_ASSERT(same == mailbox->slots_capacity);
    }
    mailbox->slots[slot] = (struct box_message){.next_in_thread = BOX_SLOT_NONE};
    mailbox->threads[slot] = (struct box_thread){BOX_SLOT_NONE, 0};
    mailbox->same_id[slot] = BOX_SLOT_NONE;
    mailbox->slots_count++;
    return (uint32_t)slot;
}

static uint32_t store_content(box_mailbox *mailbox, tide_text raw)
{
    size_t at = mailbox->stored_count++;
    TIDE_ASSERT(at < BOX_CONTENT_STORED);
    mailbox->stored =
        box_room(mailbox->stored, &mailbox->stored_capacity, at + 1, sizeof *mailbox->stored);
    struct box_stored *stored = &mailbox->stored[at];
    *stored = (struct box_stored){tide_mem_new(tide_mem_heap(), raw.bytes + 1), raw.bytes, 0};
    TIDE_ASSERT(stored->raw != NULL);
    if (raw.bytes > 0)
        memcpy(stored->raw, raw.data, raw.bytes);

    tide_auto_arena arena = tide_arena_heap(BOX_RENDER_BYTES_MAX);
    struct box_view view;
    memset(&view, 0, sizeof view);
    box_mime_headers(raw, &arena, &view);
    tide_text message_id = box_message_id_bare(view.message_id);
    if (message_id.bytes > 0)
        stored->message_id_hash = box_message_id_hash(message_id);
    return BOX_CONTENT_STORED | (uint32_t)at;
}

uint32_t box_apply_insert(box_mailbox *mailbox, tide_text raw, uint64_t date_ms, uint32_t set,
                          uint32_t root)
{
    TIDE_ASSERT(raw.bytes < UINT32_MAX);
    TIDE_ASSERT(date_ms <= INT64_MAX);
    /* The bytes come first: they may be those of a message of this mailbox. */
    uint32_t content = store_content(mailbox, raw);
    uint32_t slot = box_slot_new(mailbox);
    struct box_message *message = &mailbox->slots[slot];
    mailbox->id_last = box_draw_id(mailbox->spec.seed, mailbox->id_last, mailbox->now_ms);
    message->id = mailbox->id_last;
    message->date_ms = date_ms;
    message->bytes = (uint32_t)raw.bytes;
    message->content = content;
    message->label_set = set;
    box_thread_join(mailbox, slot, root == BOX_SLOT_NONE ? slot : root);
    box_index_add(mailbox, &mailbox->all, slot);
    uint64_t hash = mailbox->stored[content & ~BOX_CONTENT_STORED].message_id_hash;
    if (hash != 0)
        box_message_id_add(mailbox, slot, hash);
    mailbox->messages++;
    box_labels_move(mailbox, slot, 0, set);
    box_history_add(mailbox, slot, 0, BOX_CHANGE_ADDED);
    return slot;
}

uint32_t box_mailbox_insert(box_mailbox *mailbox, const struct box_insert *insert)
{
    uint32_t set = box_sets_change(mailbox, 0, insert->labels, insert->labels_count, NULL, 0);
    uint64_t date_ms = insert->date_ms < INT64_MAX ? insert->date_ms : INT64_MAX;
    uint32_t root = box_thread_choose(mailbox, insert);
    uint32_t slot = box_apply_insert(mailbox, insert->raw, date_ms, set, root);
    box_report_insert(mailbox, "insert", slot, BOX_SLOT_NONE);
    return slot;
}

uint32_t box_relabel_steps(box_mailbox *mailbox, uint32_t slot, uint32_t set)
{
    uint32_t old = mailbox->slots[slot].label_set;
    return (uint32_t)(box_sets_minus(mailbox, set, old) != 0) +
           (uint32_t)(box_sets_minus(mailbox, old, set) != 0);
}

/* Adding and taking in one call are two records: a record tells one change. */
void box_apply_relabel(box_mailbox *mailbox, uint32_t slot, uint32_t set)
{
    TIDE_ASSERT(!mailbox->slots[slot].gone);
    uint32_t old = mailbox->slots[slot].label_set;
    uint32_t added = box_sets_minus(mailbox, set, old);
    uint32_t taken = box_sets_minus(mailbox, old, set);
    mailbox->slots[slot].label_set = set;
    box_labels_move(mailbox, slot, old, set);
    if (added != 0) {
        /* The set in between: everything old and everything new. */
        size_t count;
        const uint16_t *labels = box_mailbox_labels(mailbox, added, &count);
        uint16_t copy[BOX_MESSAGE_LABELS_MAX];
        memcpy(copy, labels, count * sizeof *copy);
        mailbox->slots[slot].label_set = box_sets_change(mailbox, old, copy, count, NULL, 0);
        box_history_add(mailbox, slot, added, BOX_CHANGE_LABELED);
        mailbox->slots[slot].label_set = set;
    }
    if (taken != 0)
        box_history_add(mailbox, slot, taken, BOX_CHANGE_UNLABELED);
}

void box_mailbox_relabel(box_mailbox *mailbox, uint32_t slot, const uint16_t *add, size_t add_count,
                         const uint16_t *take, size_t take_count)
{
    TIDE_ASSERT(slot < mailbox->slots_count);
    TIDE_ASSERT(!mailbox->slots[slot].gone);
    uint32_t old = mailbox->slots[slot].label_set;
    uint32_t set = box_sets_change(mailbox, old, add, add_count, take, take_count);
    if (set == old)
        return;
    box_apply_relabel(mailbox, slot, set);
    box_report_message(mailbox, "relabel", slot, true);
}

void box_apply_remove(box_mailbox *mailbox, uint32_t slot)
{
    struct box_message *message = &mailbox->slots[slot];
    TIDE_ASSERT(!message->gone);
    box_history_add(mailbox, slot, 0, BOX_CHANGE_DELETED);
    box_message_id_remove(mailbox, slot);
    message->gone = true; /* before the labels, which drop what is stale */
    mailbox->messages--;
    box_labels_move(mailbox, slot, message->label_set, 0);
    box_index_all_tidy(mailbox);

    uint32_t root = box_slot_of_id(mailbox, message->thread_id);
    TIDE_ASSERT(root != BOX_SLOT_NONE);
    TIDE_ASSERT(mailbox->threads[root].live > 0);
    if (--mailbox->threads[root].live == 0)
        mailbox->threads_count--;

    if ((message->content & BOX_CONTENT_STORED) != 0) {
        struct box_stored *stored = &mailbox->stored[message->content & ~BOX_CONTENT_STORED];
        tide_mem_free(tide_mem_heap(), stored->raw, stored->bytes + 1);
        stored->raw = NULL;
    }
    uint32_t draft; /* a draft cannot live without its message */
    if (tide_map_get(&mailbox->draft_of, (uint64_t)slot + 1, &draft)) {
        mailbox->drafts[draft].gone = true;
        (void)tide_map_remove(&mailbox->draft_of, (uint64_t)slot + 1);
    }
}

void box_mailbox_remove(box_mailbox *mailbox, uint32_t slot)
{
    TIDE_ASSERT(slot < mailbox->slots_count);
    box_apply_remove(mailbox, slot);
    box_report_message(mailbox, "remove", slot, false);
}

void box_mailbox_clock(box_mailbox *mailbox, uint64_t now_ms)
{
    if (now_ms > mailbox->now_ms)
        mailbox->now_ms = now_ms;
}
