/* Threads: every call acts on the messages that are in the thread now; later
 * arrivals inherit nothing. */
#include "cloudbox/gmail/gmail.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const modify_names[] = {"addLabelIds", "removeLabelIds", NULL};

/* The first existing message at or after `slot` in its thread. */
static uint32_t living(const box_mailbox *mailbox, uint32_t slot)
{
    while (slot != BOX_SLOT_NONE && box_mailbox_at(mailbox, slot)->gone)
        slot = box_mailbox_at(mailbox, slot)->next_in_thread;
    return slot;
}

static uint32_t living_after(const box_mailbox *mailbox, uint32_t slot)
{
    return living(mailbox, box_mailbox_at(mailbox, slot)->next_in_thread);
}

/* The first existing message of the thread named by args[0]; 404 otherwise. */
static uint32_t thread_arg(struct box_call *call)
{
    const uint32_t slot = living(box_user_mailbox(call->user),
                                 box_mailbox_thread(box_user_mailbox(call->user), call->args[0]));
    if (slot == BOX_SLOT_NONE)
        box_fail_missing(call);
    return slot;
}

static json_t *thread_new(const box_mailbox *mailbox, uint32_t first)
{
    char id[BOX_ID_TEXT_BYTES];
    box_id_text(box_mailbox_at(mailbox, first)->thread_id, id);
    return json_pack("{s:s}", "id", id);
}

void box_gmail_threads_get(struct box_call *call)
{
    const box_mailbox *mailbox = box_user_mailbox(call->user);
    box_format format;
    if (!box_gmail_format(call, false, &format))
        return;
    const uint32_t first = thread_arg(call);
    if (first == BOX_SLOT_NONE)
        return;
    /* A thread is as new as its newest message. */
    uint64_t history_id = 0;
    json_t *messages = json_array();
    for (uint32_t slot = first; slot != BOX_SLOT_NONE; slot = living_after(mailbox, slot)) {
        const uint64_t changed = box_mailbox_at(mailbox, slot)->history_id;
        history_id = changed > history_id ? changed : history_id;
        json_array_append_new(messages, box_gmail_message(call, slot, format));
    }
    char number[BOX_ID_TEXT_BYTES];
    snprintf(number, sizeof number, "%" PRIu64, history_id);
    json_t *thread = thread_new(mailbox, first);
    json_object_set_new(thread, "historyId", json_string(number));
    json_object_set_new(thread, "messages", messages);
    box_call_reply(call, thread);
}

/* {id, messages: [{id, threadId, labelIds}]} */
static void reply_brief(struct box_call *call, uint32_t first)
{
    const box_mailbox *mailbox = box_user_mailbox(call->user);
    json_t *messages = json_array();
    for (uint32_t slot = first; slot != BOX_SLOT_NONE; slot = living_after(mailbox, slot))
        json_array_append_new(messages, box_gmail_message_brief(mailbox, slot));
    json_t *thread = thread_new(mailbox, first);
    json_object_set_new(thread, "messages", messages);
    box_call_reply(call, thread);
}

/* Drafts in the thread are passed over: labels cannot be applied to them. */
void box_gmail_threads_modify(struct box_call *call)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    const uint32_t first = thread_arg(call);
    if (first == BOX_SLOT_NONE)
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    struct box_relabel relabel;
    if (box_gmail_known(call, body, modify_names) && box_gmail_relabel_read(call, body, &relabel)) {
        for (uint32_t slot = first; slot != BOX_SLOT_NONE; slot = living_after(mailbox, slot))
            if (box_gmail_relabel_fits(mailbox, slot, &relabel))
                box_gmail_relabel(call, slot, &relabel);
        reply_brief(call, first);
    }
}

static void set_trash(struct box_call *call, bool trashed)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    const uint32_t first = thread_arg(call);
    if (first == BOX_SLOT_NONE)
        return;
    const uint16_t trash = BOX_LABEL_TRASH;
    for (uint32_t slot = first; slot != BOX_SLOT_NONE; slot = living_after(mailbox, slot)) {
        box_mailbox_relabel(mailbox, slot, &trash, trashed, &trash, !trashed);
        box_mail_acted(call->user, slot, BOX_ACT_TRASHED);
    }
    reply_brief(call, first);
}

void box_gmail_threads_trash(struct box_call *call)
{
    set_trash(call, true);
}

void box_gmail_threads_untrash(struct box_call *call)
{
    set_trash(call, false);
}

void box_gmail_threads_delete(struct box_call *call)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    uint32_t slot = thread_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    while (slot != BOX_SLOT_NONE) {
        const uint32_t next = living_after(mailbox, slot);
        box_mail_acted(call->user, slot, BOX_ACT_DELETED);
        box_mailbox_remove(mailbox, slot);
        slot = next;
    }
    box_call_reply_empty(call);
}
