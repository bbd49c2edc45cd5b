#include "base/check.h"
#include "cloudbox/mailbox/inside.h"

uint64_t box_history_ahead(const box_mailbox *mailbox, uint32_t steps)
{
    uint64_t id = mailbox->history_last;
    for (uint32_t i = 0; i < steps; i++)
        id = box_draw_history_id(mailbox->spec.seed, id);
    return id;
}

void box_history_add(box_mailbox *mailbox, uint32_t slot, uint32_t changed, box_change change)
{
    struct box_message *message = &mailbox->slots[slot];
    mailbox->history_last = box_draw_history_id(mailbox->spec.seed, mailbox->history_last);
    message->history_id = mailbox->history_last;
    mailbox->records = box_room(mailbox->records, &mailbox->records_capacity,
                                mailbox->records_count + 1, sizeof *mailbox->records);
    mailbox->records[mailbox->records_count++] = (struct box_record){
        mailbox->history_last, mailbox->now_ms, slot, message->label_set, changed, change};
}

uint64_t box_mailbox_history_id(const box_mailbox *mailbox)
{
    return mailbox->history_last;
}

uint32_t box_mailbox_history_count(const box_mailbox *mailbox)
{
    return (uint32_t)(mailbox->records_count - mailbox->records_first);
}

const struct box_record *box_mailbox_history_at(const box_mailbox *mailbox, uint32_t index)
{
    TIDE_ASSERT(index < box_mailbox_history_count(mailbox));
    return &mailbox->records[mailbox->records_first + index];
}

uint32_t box_mailbox_history_after(const box_mailbox *mailbox, uint64_t after)
{
    size_t low = mailbox->records_first;
    size_t high = mailbox->records_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mailbox->records[middle].history_id <= after)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)(low - mailbox->records_first);
}

uint64_t box_mailbox_history_oldest(const box_mailbox *mailbox)
{
    return mailbox->history_forgotten;
}

/* The room of forgotten records is used again once they are the larger part, so
 * that each record is moved at most once on average. */
static void compact(box_mailbox *mailbox)
{
    size_t kept = mailbox->records_count - mailbox->records_first;
    if (mailbox->records_first < 1024 || mailbox->records_first < kept)
        return;
    memmove(mailbox->records, mailbox->records + mailbox->records_first,
            kept * sizeof *mailbox->records);
    mailbox->records_first = 0;
    mailbox->records_count = kept;
}

void box_mailbox_history_expire(box_mailbox *mailbox, uint64_t now_ms)
{
    if (now_ms <= mailbox->spec.history_keep_ms)
        return;
    uint64_t from_ms = now_ms - mailbox->spec.history_keep_ms;
    size_t first = mailbox->records_first;
    while (first < mailbox->records_count && mailbox->records[first].at_ms < from_ms)
        mailbox->history_forgotten = mailbox->records[first++].history_id;
    if (first == mailbox->records_first)
        return;
    mailbox->records_first = first;
    compact(mailbox);
}

/* Takes a history id of its own, so that every start id a client holds by now is
 * expired, also the latest one. */
void box_apply_expire_all(box_mailbox *mailbox)
{
    mailbox->history_last = box_draw_history_id(mailbox->spec.seed, mailbox->history_last);
    mailbox->history_forgotten = mailbox->history_last;
    mailbox->records_first = mailbox->records_count = 0;
}

void box_mailbox_history_expire_all(box_mailbox *mailbox)
{
    box_apply_expire_all(mailbox);
    box_report_expire(mailbox);
}
