#include "base/check.h"
#include "cloudbox/mailbox/inside.h"
#include "cloudbox/mailbox/mime.h"

#include <strings.h>

void box_thread_join(box_mailbox *mailbox, uint32_t slot, uint32_t root)
{
    TIDE_ASSERT(root <= slot);
    struct box_message *message = &mailbox->slots[slot];
    struct box_thread *thread = &mailbox->threads[root];
    message->thread_id = mailbox->slots[root].id;
    TIDE_ASSERT(mailbox->slots[root].thread_id == mailbox->slots[root].id);
    if (root != slot)
        mailbox->slots[thread->tail].next_in_thread = slot;
    thread->tail = slot;
    if (thread->live++ == 0)
        mailbox->threads_count++;
}

uint32_t box_thread_root(const box_mailbox *mailbox, uint64_t thread_id)
{
    uint32_t root = box_slot_of_id(mailbox, thread_id);
    if (root == BOX_SLOT_NONE || mailbox->slots[root].thread_id != thread_id ||
        mailbox->threads[root].live == 0)
        return BOX_SLOT_NONE;
    return root;
}

uint32_t box_mailbox_thread(const box_mailbox *mailbox, tide_text thread_id)
{
    uint64_t id;
    if (!box_id_parse(thread_id, &id))
        return BOX_SLOT_NONE;
    uint32_t slot = box_thread_root(mailbox, id);
    while (slot != BOX_SLOT_NONE && mailbox->slots[slot].gone)
        slot = mailbox->slots[slot].next_in_thread;
    return slot;
}

/* ---- which thread a new message belongs to ---- */

static tide_text trimmed(tide_text text)
{
    while (text.bytes > 0 && (unsigned char)text.data[0] <= ' ') {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && (unsigned char)text.data[text.bytes - 1] <= ' ')
        text.bytes--;
    return text;
}

/* Without "Re:", "Fwd:", "Fw:" in front, however many. */
static tide_text bare_subject(tide_text subject)
{
    static const char *const prefixes[] = {"re:", "fwd:", "fw:"};
    bool again = true;
    while (again) {
        again = false;
        subject = trimmed(subject);
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            size_t bytes = strlen(prefixes[i]);
            if (subject.bytes >= bytes && strncasecmp(subject.data, prefixes[i], bytes) == 0) {
                subject.data += bytes;
                subject.bytes -= bytes;
                again = true;
            }
        }
    }
    return subject;
}

static bool same_subject(tide_text a, tide_text b)
{
    a = bare_subject(a);
    b = bare_subject(b);
    return a.bytes == b.bytes && (a.bytes == 0 || strncasecmp(a.data, b.data, a.bytes) == 0);
}

/* The last <...> before `end`; moves `end` in front of it. */
static bool last_reference(tide_text references, size_t *end, tide_text *reference_out)
{
    size_t close = *end;
    while (close > 0 && references.data[close - 1] != '>')
        close--;
    size_t open = close;
    while (open > 0 && references.data[open - 1] != '<')
        open--;
    if (open == 0)
        return false;
    *reference_out = (tide_text){references.data + open, close - 1 - open};
    *end = open - 1;
    return true;
}

/* The thread of a message with that Message-ID and the same subject. */
static uint32_t thread_of_reference(box_mailbox *mailbox, tide_text reference, tide_text subject,
                                    tide_arena *arena, tide_buf *scratch)
{
    reference = box_message_id_bare(reference);
    if (reference.bytes == 0)
        return BOX_SLOT_NONE;
    uint32_t slot = box_message_id_find(mailbox, box_message_id_hash(reference));
    for (size_t i = 0; slot != BOX_SLOT_NONE && i < BOX_SAME_ID_MAX; i++) {
        struct box_view view;
        memset(&view, 0, sizeof view);
        tide_arena_reset(arena);
        box_mime_headers(box_mailbox_raw(mailbox, slot, scratch), arena, &view);
        if (same_subject(view.subject, subject))
            return box_thread_root(mailbox, mailbox->slots[slot].thread_id);
        slot = mailbox->same_id[slot];
    }
    return BOX_SLOT_NONE;
}

static uint32_t choose_by_references(box_mailbox *mailbox, tide_text raw)
{
    tide_auto_arena own = tide_arena_heap(BOX_RENDER_BYTES_MAX);
    tide_auto_arena others = tide_arena_heap(BOX_RENDER_BYTES_MAX);
    tide_auto_buf scratch = tide_buf_heap(BOX_RENDER_BYTES_MAX);
    struct box_view view;
    memset(&view, 0, sizeof view);
    box_mime_headers(raw, &own, &view);

    uint32_t root = BOX_SLOT_NONE;
    size_t end = view.references.bytes;
    tide_text reference;
    for (size_t i = 0; i < BOX_REFERENCES_MAX && root == BOX_SLOT_NONE; i++) {
        if (!last_reference(view.references, &end, &reference))
            break;
        root = thread_of_reference(mailbox, reference, view.subject, &others, &scratch);
    }
    return root;
}

uint32_t box_thread_choose(box_mailbox *mailbox, const struct box_insert *insert)
{
    uint64_t thread_id;
    if (insert->thread_id.data != NULL && box_id_parse(insert->thread_id, &thread_id)) {
        uint32_t root = box_thread_root(mailbox, thread_id);
        if (root != BOX_SLOT_NONE)
            return root;
    }
    return choose_by_references(mailbox, insert->raw);
}

/* ---- threads of a label ---- */

/* One pass with two bits per message, remembered until a message of the label
 * changes. */
static void count_threads(box_mailbox *mailbox, struct box_label_inside *label)
{
    tide_mem *mem = tide_mem_heap();
    size_t bytes = mailbox->slots_count / 4 + 1;
    unsigned char *seen = tide_mem_new(mem, bytes);
    TIDE_ASSERT(seen != NULL);
    label->threads = label->threads_unread = 0;
    box_index_settle(mailbox, &label->index);
    uint64_t last_thread = 0;
    uint32_t root = 0;
    for (size_t i = 0; i < label->index.count; i++) {
        uint32_t slot = label->index.slots[i];
        if (!box_mailbox_has_label(mailbox, slot, label->face.number))
            continue;
        const struct box_message *message = &mailbox->slots[slot];
        if (message->thread_id == message->id)
            root = slot;
        else if (message->thread_id != last_thread)
            root = box_slot_of_id(mailbox, message->thread_id);
        last_thread = message->thread_id;
        unsigned shift = root % 4 * 2;
        unsigned bits = box_mailbox_has_label(mailbox, slot, BOX_LABEL_UNREAD) ? 3 : 1;
        unsigned fresh = bits & ~((unsigned)seen[root / 4] >> shift);
        label->threads += fresh & 1;
        label->threads_unread += fresh >> 1 & 1;
        seen[root / 4] = (unsigned char)(seen[root / 4] | bits << shift);
    }
    tide_mem_free(mem, seen, bytes);
    label->threads_known = true;
}

void box_mailbox_label_threads(box_mailbox *mailbox, uint32_t number, uint32_t *threads_out,
                               uint32_t *unread_out)
{
    TIDE_ASSERT(number < mailbox->labels_count);
    struct box_label_inside *label = &mailbox->labels[number];
    if (!label->threads_known)
        count_threads(mailbox, label);
    *threads_out = label->threads;
    *unread_out = label->threads_unread;
}
