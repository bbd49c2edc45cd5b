/* Drafts that are there already; those that come in are in post.c. */
#include "cloudbox/gmail/gmail.h"

#include <inttypes.h>
#include <stdio.h>

/* The draft named by args[0], or BOX_SLOT_NONE after a 404. */
static uint32_t draft_arg(struct box_call *call)
{
    const uint32_t draft = box_mailbox_draft_find(box_user_mailbox(call->user), call->args[0]);
    if (draft == BOX_SLOT_NONE)
        box_fail_missing(call);
    return draft;
}

void box_gmail_drafts_get(struct box_call *call)
{
    box_format format;
    if (!box_gmail_format(call, true, &format))
        return;
    const uint32_t draft = draft_arg(call);
    if (draft == BOX_SLOT_NONE)
        return;
    const struct box_draft *at = box_mailbox_draft_at(box_user_mailbox(call->user), draft);
    char id[BOX_ID_TEXT_BYTES];
    snprintf(id, sizeof id, "r%" PRIu64, at->id);
    box_call_reply(call, json_pack("{s:s, s:o}", "id", id, "message",
                                   box_gmail_message(call, at->slot, format)));
}

/* For good, not to the trash. */
void box_gmail_drafts_delete(struct box_call *call)
{
    const uint32_t draft = draft_arg(call);
    if (draft == BOX_SLOT_NONE)
        return;
    box_mailbox *mailbox = box_user_mailbox(call->user);
    box_mail_acted(call->user, box_mailbox_draft_at(mailbox, draft)->slot, BOX_ACT_DELETED);
    box_mailbox_draft_remove(mailbox, draft);
    box_call_reply_empty(call);
}
