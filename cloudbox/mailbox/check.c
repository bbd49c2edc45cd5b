/* The invariants by counting: slow, for tests and for those who doubt. */
#include "base/check.h"
#include "cloudbox/mailbox/inside.h"

static const char *check_slots(const box_mailbox *mailbox)
{
    uint32_t live = 0;
    for (size_t i = 0; i < mailbox->slots_count; i++) {
        const struct box_message *message = &mailbox->slots[i];
        if (i > 0 && message[-1].id >= message->id)
            return "BMBX1: ids do not increase";
        if (message->history_id > mailbox->history_last || message->history_id == 0)
            return "BMBX4: a message has a history id from nowhere";
        live += !message->gone;
    }
    if (mailbox->slots_count > 0 && mailbox->slots[mailbox->slots_count - 1].id != mailbox->id_last)
        return "BMBX1: the last id is not the last one";
    return live == mailbox->messages ? NULL : "the number of messages is wrong";
}

static const char *check_threads(const box_mailbox *mailbox)
{
    uint32_t threads = 0;
    size_t reached = 0;
    for (size_t i = 0; i < mailbox->slots_count; i++) {
        const struct box_message *root = &mailbox->slots[i];
        if (root->thread_id != root->id)
            continue;
        uint32_t live = 0;
        uint32_t last = BOX_SLOT_NONE;
        for (uint32_t slot = (uint32_t)i; slot != BOX_SLOT_NONE;
             slot = mailbox->slots[slot].next_in_thread) {
            if (slot >= mailbox->slots_count || (last != BOX_SLOT_NONE && slot <= last))
                return "a thread is not in order of addition";
            if (mailbox->slots[slot].thread_id != root->id)
                return "a thread holds a message of another one";
            live += !mailbox->slots[slot].gone;
            last = slot;
            reached++;
        }
        if (mailbox->threads[i].tail != last || mailbox->threads[i].live != live)
            return "a thread's tail or count is wrong";
        threads += live > 0;
    }
    if (reached != mailbox->slots_count)
        return "a message is in no thread";
    return threads == mailbox->threads_count ? NULL : "the number of threads is wrong";
}

/* Strict order rules out double entries, so equal counts mean equal sets. */
static const char *check_index(box_mailbox *mailbox, struct box_index *index, uint32_t label,
                               uint32_t expected)
{
    box_index_settle(mailbox, index);
    uint32_t live = 0;
    for (size_t i = 0; i < index->count; i++) {
        uint32_t slot = index->slots[i];
        if (slot >= mailbox->slots_count)
            return "BMBX3: an index points nowhere";
        const struct box_message *message = &mailbox->slots[slot];
        if (i > 0) {
            const struct box_message *before = &mailbox->slots[index->slots[i - 1]];
            if (before->date_ms > message->date_ms ||
                (before->date_ms == message->date_ms && before->id >= message->id))
                return "BMBX3: an index is out of order";
        }
        live += !message->gone &&
                (label == BOX_SLOT_NONE || box_sets_has(&mailbox->sets, message->label_set, label));
    }
    if (live != expected)
        return "BMBX3: an index misses messages";
    if (index->count - live > index->count / 32 + BOX_STALE_SPARE)
        return "BMBI3: an index is stale";
    return NULL;
}

static const char *check_labels(box_mailbox *mailbox)
{
    size_t labels_count = mailbox->labels_count;
    uint32_t *counts = tide_mem_array(tide_mem_heap(), labels_count * 2, sizeof *counts);
    TIDE_ASSERT(counts != NULL);
    const char *wrong = NULL;
    for (size_t i = 0; i < mailbox->slots_count && wrong == NULL; i++) {
        if (mailbox->slots[i].gone)
            continue;
        size_t count;
        const uint16_t *labels = box_mailbox_labels(mailbox, mailbox->slots[i].label_set, &count);
        bool unread = box_mailbox_has_label(mailbox, (uint32_t)i, BOX_LABEL_UNREAD);
        for (size_t k = 0; k < count && wrong == NULL; k++) {
            if (!box_labels_live(mailbox, labels[k]))
                wrong = "a message carries a label that is gone";
            else {
                counts[2 * labels[k]]++;
                counts[2 * labels[k] + 1] += unread;
            }
        }
    }
    for (size_t i = 0; i < labels_count && wrong == NULL; i++) {
        struct box_label_inside *label = &mailbox->labels[i];
        if (label->face.messages != counts[2 * i] ||
            label->face.messages_unread != counts[2 * i + 1])
            wrong = "BMBX5: a label's counts are wrong";
        else
            wrong = check_index(mailbox, &label->index, (uint32_t)i, counts[2 * i]);
    }
    tide_mem_free(tide_mem_heap(), counts, labels_count * 2 * sizeof *counts);
    return wrong;
}

static const char *check_message_ids(const box_mailbox *mailbox)
{
    for (uint32_t slot = 0; slot < mailbox->slots_count; slot++) {
        uint64_t hash = mailbox->slots[slot].gone ? 0 : box_message_id_of(mailbox, slot);
        if (hash == 0)
            continue;
        uint32_t at = box_message_id_find(mailbox, hash);
        while (at != BOX_SLOT_NONE && at != slot) {
            if (mailbox->slots[at].gone)
                return "BMBX3: a Message-ID leads to a message that is gone";
            at = mailbox->same_id[at];
        }
        if (at == BOX_SLOT_NONE)
            return "BMBX3: a message is not found by its Message-ID";
    }
    return NULL;
}

/* Backwards: the first record met of a message must carry its history id. */
static const char *check_history(const box_mailbox *mailbox)
{
    size_t bytes = mailbox->slots_count / 8 + 1;
    unsigned char *met = tide_mem_new(tide_mem_heap(), bytes);
    TIDE_ASSERT(met != NULL);
    const char *wrong = NULL;
    uint64_t below = mailbox->history_last + 1;
    for (size_t i = mailbox->records_count; i > mailbox->records_first && wrong == NULL; i--) {
        const struct box_record *record = &mailbox->records[i - 1];
        const struct box_message *message = &mailbox->slots[record->slot];
        unsigned char bit = (unsigned char)(1u << record->slot % 8);
        if (record->history_id >= below || record->history_id <= mailbox->history_forgotten)
            wrong = "BMBX4: history does not ascend";
        else if ((met[record->slot / 8] & bit) == 0 &&
                 (message->history_id != record->history_id ||
                  message->label_set != record->label_set ||
                  message->gone != (record->change == BOX_CHANGE_DELETED)))
            wrong = "BMBX4: a message is not as its last record says";
        below = record->history_id;
        met[record->slot / 8] |= bit;
    }
    for (size_t i = 0; i < mailbox->slots_count && wrong == NULL; i++)
        if (mailbox->slots[i].history_id > mailbox->history_forgotten &&
            (met[i / 8] & 1u << i % 8) == 0)
            wrong = "BMBX4: a change has no record";
    tide_mem_free(tide_mem_heap(), met, bytes);
    return wrong;
}

static const char *check_drafts(const box_mailbox *mailbox)
{
    size_t live = 0;
    for (size_t i = 0; i < mailbox->drafts_count; i++) {
        const struct box_draft *draft = &mailbox->drafts[i];
        if (i > 0 && draft[-1].id >= draft->id)
            return "BMBX1: draft ids do not increase";
        if (draft->gone)
            continue;
        uint32_t index;
        if (mailbox->slots[draft->slot].gone ||
            !tide_map_get(&mailbox->draft_of, (uint64_t)draft->slot + 1, &index) || index != i)
            return "a draft and its message do not know each other";
        live++;
    }
    return live == mailbox->draft_of.count ? NULL : "a draft message belongs to no draft";
}

const char *box_mailbox_check(box_mailbox *mailbox)
{
    const char *wrong = check_slots(mailbox);
    if (wrong == NULL)
        wrong = check_threads(mailbox);
    if (wrong == NULL)
        wrong = check_index(mailbox, &mailbox->all, BOX_SLOT_NONE, mailbox->messages);
    if (wrong == NULL)
        wrong = check_labels(mailbox);
    if (wrong == NULL)
        wrong = check_message_ids(mailbox);
    if (wrong == NULL)
        wrong = check_history(mailbox);
    if (wrong == NULL)
        wrong = check_drafts(mailbox);
    return wrong;
}
