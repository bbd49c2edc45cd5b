/* Single messages: reading them, their labels, their end. */
#include "logic/gmail.h"

#include "logic/mime.h"
#include "logic/referee.h"

#include <inttypes.h>

static const char answer_type[] = "application/json; charset=UTF-8";
static const char *const modify_names[] = {"addLabelIds", "removeLabelIds",
                                           "addClassificationLabels",
                                           "removeClassificationLabelIds", NULL};
static const char *const batch_modify_names[] = {"ids",
                                                 "addLabelIds",
                                                 "removeLabelIds",
                                                 "addClassificationLabels",
                                                 "removeClassificationLabelIds",
                                                 NULL};
static const char *const batch_delete_names[] = {"ids", NULL};

/* ---- get ---- */

static void add_label_ids(tide_buf *out, const box_mailbox *mailbox, uint32_t label_set,
                          bool pretty)
{
    size_t count = 0;
    const uint16_t *labels = box_mailbox_labels(mailbox, label_set, &count);
    if (count == 0)
        return; /* GM3 */
    box_add_cstr(out, pretty ? ",\n  \"labelIds\": [\n    \"" : ",\"labelIds\":[\"");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            box_add_cstr(out, pretty ? "\",\n    \"" : "\",\"");
        box_add_cstr(out, box_mailbox_label(mailbox, labels[i])->id);
    }
    box_add_cstr(out, pretty ? "\"\n  ]" : "\"]");
}

/* format=raw, written straight into the answer: mirrors ask for little else,
 * and a JSON tree of each message would cost more than all the rest.  The
 * snippet is escaped for JSON, everything else cannot need it. */
static void reply_raw(struct box_call *call, uint32_t slot)
{
    box_mailbox *mailbox = call->user->mailbox;
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    const tide_text wish = box_call_param(call, "prettyPrint");
    const bool pretty =
        !tide_text_equal(wish, TIDE_TEXT("false")) && !tide_text_equal(wish, TIDE_TEXT("0"));
    const char *gap = pretty ? ",\n  " : ",", *colon = pretty ? ": " : ":";
    tide_buf *out = &call->answer->body;
    tide_buf scratch;
    tide_buf_init(&scratch, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);

    tide_buf_reserve(out, ((size_t)message->bytes + 2) / 3 * 4 + 2048);
    char id[BOX_ID_TEXT_BYTES], thread[BOX_ID_TEXT_BYTES];
    box_id_text(message->id, id);
    box_id_text(message->thread_id, thread);
    box_print(out, "{%s\"id\"%s\"%s\"%s\"threadId\"%s\"%s\"", pretty ? "\n  " : "", colon, id, gap,
              colon, thread);
    add_label_ids(out, mailbox, message->label_set, pretty);
    box_mailbox_snippet(mailbox, slot, &scratch);
    box_print(out, "%s\"snippet\"%s", gap, colon);
    box_add_json_text(out, tide_buf_text(&scratch));
    tide_buf_clear(&scratch);
    box_print(out, "%s\"sizeEstimate\"%s%" PRIu32 "%s\"raw\"%s\"", gap, colon, message->bytes, gap,
              colon);
    box_add_base64url(out, box_mailbox_raw(mailbox, slot, &scratch));
    box_print(out, "\"%s\"historyId\"%s\"%" PRIu64 "\"%s\"internalDate\"%s\"%" PRIu64 "\"%s}%s",
              gap, colon, message->history_id, gap, colon, message->date_ms, pretty ? "\n" : "",
              pretty ? "\n" : "");
    memcpy(call->answer->type, answer_type, sizeof answer_type);
    tide_buf_done(&scratch);
    box_referee_fetched(box_cloud_referee(call->cloud), call->user, slot);
}

void box_gmail_messages_get(struct box_call *call)
{
    box_format format;
    if (!box_gmail_format(call, true, &format))
        return;
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    if (format == BOX_FORMAT_RAW && box_call_param(call, "fields").bytes == 0)
        reply_raw(call, slot);
    else
        box_call_reply(call, box_gmail_message(call, slot, format));
}

void box_gmail_attachments_get(struct box_call *call)
{
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    tide_buf scratch, bytes, text;
    tide_buf_init(&scratch, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
    tide_buf_init(&bytes, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
    tide_buf_init(&text, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
    const tide_text raw = box_mailbox_raw(call->user->mailbox, slot, &scratch);
    if (!box_mime_attachment(raw, call->args[1], &bytes)) {
        /* Google's words for an id that names no part. */
        box_fail_argument(call, "Invalid attachment token");
    } else {
        box_add_base64url(&text, tide_buf_text(&bytes));
        box_call_reply(call, json_pack("{s:I, s:s%}", "size", (json_int_t)bytes.bytes, "data",
                                       tide_buf_cstr(&text), text.bytes));
    }
    tide_buf_done(&text);
    tide_buf_done(&bytes);
    tide_buf_done(&scratch);
}

/* ---- labels ---- */

void box_gmail_messages_modify(struct box_call *call)
{
    box_mailbox *mailbox = call->user->mailbox;
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    json_t *body = box_call_body(call);
    if (body == NULL)
        return;
    struct box_relabel relabel;
    if (box_gmail_known(call, body, modify_names) && box_gmail_relabel_read(call, body, &relabel)) {
        if (box_gmail_relabel_fits(mailbox, slot, &relabel)) {
            box_gmail_relabel(mailbox, slot, &relabel);
            box_call_reply(call, box_gmail_message_brief(mailbox, slot));
        } else if (box_mailbox_has_label(mailbox, slot, BOX_LABEL_DRAFT)) {
            box_fail_argument(call, "Labels cannot be applied to drafts");
        } else {
            box_fail_argument(call, "Number of labels of a message cannot exceed %d",
                              BOX_MESSAGE_LABELS_MAX);
        }
    }
    json_decref(body);
}

/* Trash is one more label; the others stay, so that untrash restores what was.
 * Drafts can be thrown away too. */
static void set_trash(struct box_call *call, bool trashed)
{
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    const uint16_t trash = BOX_LABEL_TRASH;
    box_mailbox_relabel(call->user->mailbox, slot, &trash, trashed, &trash, !trashed);
    box_call_reply(call, box_gmail_message_brief(call->user->mailbox, slot));
}

void box_gmail_messages_trash(struct box_call *call)
{
    set_trash(call, true);
}

void box_gmail_messages_untrash(struct box_call *call)
{
    set_trash(call, false);
}

void box_gmail_messages_delete(struct box_call *call)
{
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    box_mailbox_remove(call->user->mailbox, slot);
    box_call_reply_empty(call);
}

/* ---- many at once ---- */

/* The `ids` of a batch.  false: answered with 400. */
static bool read_ids(struct box_call *call, const json_t *body, const json_t **ids_out)
{
    if (!box_gmail_list(call, body, "ids", BOX_BATCH_IDS_MAX, "Number of ids", ids_out))
        return false;
    if (json_array_size(*ids_out) == 0) {
        box_fail_argument(call, "No message ids specified");
        return false;
    }
    return true;
}

static uint32_t find_id(const struct box_call *call, const json_t *ids, size_t index)
{
    const json_t *id = json_array_get(ids, index);
    return box_mailbox_find(call->user->mailbox,
                            (tide_text){json_string_value(id), json_string_length(id)});
}

/* Ids that do not exist, drafts and full messages are passed over: the answer
 * has no room to name them. */
void box_gmail_messages_batch_modify(struct box_call *call)
{
    json_t *body = box_call_body(call);
    if (body == NULL)
        return;
    const json_t *ids;
    struct box_relabel relabel;
    if (box_gmail_known(call, body, batch_modify_names) && read_ids(call, body, &ids) &&
        box_gmail_relabel_read(call, body, &relabel)) {
        for (size_t i = 0; i < json_array_size(ids); i++) {
            const uint32_t slot = find_id(call, ids, i);
            if (slot != BOX_SLOT_NONE &&
                box_gmail_relabel_fits(call->user->mailbox, slot, &relabel))
                box_gmail_relabel(call->user->mailbox, slot, &relabel);
        }
        box_call_reply_empty(call);
    }
    json_decref(body);
}

/* "Provides no guarantees that messages were not already deleted or even
 * existed at all." */
void box_gmail_messages_batch_delete(struct box_call *call)
{
    json_t *body = box_call_body(call);
    if (body == NULL)
        return;
    const json_t *ids;
    if (box_gmail_known(call, body, batch_delete_names) && read_ids(call, body, &ids)) {
        for (size_t i = 0; i < json_array_size(ids); i++) {
            const uint32_t slot = find_id(call, ids, i);
            if (slot != BOX_SLOT_NONE)
                box_mailbox_remove(call->user->mailbox, slot);
        }
        box_call_reply_empty(call);
    }
    json_decref(body);
}
