#include "base/check.h"
#include "cloudbox/mailbox/inside.h"

uint32_t box_mailbox_drafts(const box_mailbox *mailbox)
{
    return (uint32_t)mailbox->drafts_count;
}

const struct box_draft *box_mailbox_draft_at(const box_mailbox *mailbox, uint32_t index)
{
    TIDE_ASSERT(index < mailbox->drafts_count);
    return &mailbox->drafts[index];
}

uint32_t box_mailbox_draft_find(const box_mailbox *mailbox, tide_text id)
{
    uint64_t number;
    if (id.bytes < 2 || id.data[0] != 'r' || id.data[1] == '0' ||
        !tide_text_to_u64((tide_text){id.data + 1, id.bytes - 1}, &number))
        return BOX_SLOT_NONE;
    size_t low = 0;
    size_t high = mailbox->drafts_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mailbox->drafts[middle].id < number)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < mailbox->drafts_count && mailbox->drafts[low].id == number &&
                 !mailbox->drafts[low].gone;
    return found ? (uint32_t)low : BOX_SLOT_NONE;
}

static void draft_points_to(box_mailbox *mailbox, uint32_t draft, uint32_t slot)
{
    mailbox->drafts[draft].slot = slot;
    TIDE_ASSERT(tide_map_put(&mailbox->draft_of, (uint64_t)slot + 1, draft));
}

uint32_t box_apply_draft_create(box_mailbox *mailbox, tide_text raw, uint64_t date_ms, uint32_t set,
                                uint32_t root)
{
    uint32_t slot = box_apply_insert(mailbox, raw, date_ms, set, root);
    uint32_t draft = (uint32_t)mailbox->drafts_count++;
    uint64_t last = draft == 0 ? 0 : mailbox->drafts[draft - 1].id;
    mailbox->drafts = box_room(mailbox->drafts, &mailbox->drafts_capacity, mailbox->drafts_count,
                               sizeof *mailbox->drafts);
    mailbox->drafts[draft] =
        (struct box_draft){box_draw_draft_id(mailbox->spec.seed, last), slot, false};
    draft_points_to(mailbox, draft, slot);
    return draft;
}

static uint32_t draft_set(box_mailbox *mailbox, const struct box_insert *insert)
{
    const uint16_t draft[1] = {BOX_LABEL_DRAFT};
    uint32_t set = box_sets_change(mailbox, 0, draft, 1, NULL, 0);
    return box_sets_change(mailbox, set, insert->labels, insert->labels_count, NULL, 0);
}

static uint64_t date_of(const struct box_insert *insert)
{
    return insert->date_ms < INT64_MAX ? insert->date_ms : INT64_MAX;
}

uint32_t box_mailbox_draft_create(box_mailbox *mailbox, const struct box_insert *insert)
{
    uint32_t set = draft_set(mailbox, insert);
    uint32_t root = box_thread_choose(mailbox, insert);
    uint32_t draft = box_apply_draft_create(mailbox, insert->raw, date_of(insert), set, root);
    box_report_insert(mailbox, "draft_create", mailbox->drafts[draft].slot, draft);
    return draft;
}

/* The new message comes before the old one goes, so that a thread of this draft
 * alone stays. */
void box_apply_draft_update(box_mailbox *mailbox, uint32_t draft, tide_text raw, uint64_t date_ms,
                            uint32_t set, uint32_t root)
{
    uint32_t old = mailbox->drafts[draft].slot;
    uint32_t slot = box_apply_insert(mailbox, raw, date_ms, set, root);
    (void)tide_map_remove(&mailbox->draft_of, (uint64_t)old + 1);
    box_apply_remove(mailbox, old);
    draft_points_to(mailbox, draft, slot);
}

void box_mailbox_draft_update(box_mailbox *mailbox, uint32_t draft, const struct box_insert *insert)
{
    TIDE_ASSERT(draft < mailbox->drafts_count);
    TIDE_ASSERT(!mailbox->drafts[draft].gone);
    uint32_t set = draft_set(mailbox, insert);
    uint64_t thread_id;
    uint32_t root = BOX_SLOT_NONE;
    if (insert->thread_id.data != NULL && box_id_parse(insert->thread_id, &thread_id))
        root = box_thread_root(mailbox, thread_id);
    if (root == BOX_SLOT_NONE) /* it stays where it was */
        root = box_thread_root(mailbox, mailbox->slots[mailbox->drafts[draft].slot].thread_id);
    box_apply_draft_update(mailbox, draft, insert->raw, date_of(insert), set, root);
    box_report_insert(mailbox, "draft_update", mailbox->drafts[draft].slot, draft);
}

void box_mailbox_draft_remove(box_mailbox *mailbox, uint32_t draft)
{
    TIDE_ASSERT(draft < mailbox->drafts_count);
    TIDE_ASSERT(!mailbox->drafts[draft].gone);
    uint32_t slot = mailbox->drafts[draft].slot;
    box_apply_remove(mailbox, slot);
    TIDE_ASSERT(mailbox->drafts[draft].gone);
    box_report_draft(mailbox, "draft_remove", draft, slot);
}

uint32_t box_apply_draft_send(box_mailbox *mailbox, uint32_t draft, uint64_t date_ms)
{
    const uint16_t add[1] = {BOX_LABEL_SENT};
    const uint16_t take[1] = {BOX_LABEL_DRAFT};
    uint32_t old = mailbox->drafts[draft].slot;
    const struct box_message *message = &mailbox->slots[old];
    uint32_t set = box_sets_change(mailbox, message->label_set, add, 1, take, 1);
    uint32_t root = box_thread_root(mailbox, message->thread_id);
    tide_text raw = box_mailbox_raw(mailbox, old, NULL); /* a draft is never generated */
    uint32_t slot = box_apply_insert(mailbox, raw, date_ms, set, root);
    box_apply_remove(mailbox, old);
    TIDE_ASSERT(mailbox->drafts[draft].gone);
    return slot;
}

uint32_t box_mailbox_draft_send(box_mailbox *mailbox, uint32_t draft, uint64_t date_ms)
{
    TIDE_ASSERT(draft < mailbox->drafts_count);
    TIDE_ASSERT(!mailbox->drafts[draft].gone);
    uint64_t date_kept_ms = date_ms < INT64_MAX ? date_ms : INT64_MAX;
    uint32_t slot = box_apply_draft_send(mailbox, draft, date_kept_ms);
    box_report_draft(mailbox, "draft_send", draft, slot);
    return slot;
}
