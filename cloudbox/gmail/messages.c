/* Single messages: reading them, their labels, their end. */
#include "cloudbox/gmail/gmail.h"

#include "cloudbox/mailbox/mime.h"

#include <inttypes.h>
#include <stdio.h>

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

/* The fields of a raw message, in the order they are written. */
enum raw_field { ID, THREAD_ID, LABEL_IDS, SNIPPET, SIZE, RAW, HISTORY_ID, DATE, RAW_FIELDS };
static const char *const raw_names[RAW_FIELDS] = {
    "id", "threadId", "labelIds", "snippet", "sizeEstimate", "raw", "historyId", "internalDate"};

/* Which of them are asked for, a bit each: all, or those of a plain list of names.
 * False: the selection is of another kind. */
static bool raw_fields_read(tide_text fields, unsigned *wanted_out)
{
    unsigned wanted = fields.bytes == 0 ? (1u << RAW_FIELDS) - 1 : 0;
    for (size_t at = 0; at < fields.bytes;) {
        const char *comma = memchr(fields.data + at, ',', fields.bytes - at);
        const size_t end = comma == NULL ? fields.bytes : (size_t)(comma - fields.data);
        const tide_text name = {fields.data + at, end - at};
        unsigned field = 0;
        while (field < RAW_FIELDS && !tide_text_equal(name, tide_text_of(raw_names[field])))
            field++;
        if (field == RAW_FIELDS)
            return false;
        wanted |= 1u << field;
        at = end + 1;
    }
    *wanted_out = wanted;
    return true;
}

/* A message that is written into an answer. */
struct raw_reply {
    tide_buf *out;
    unsigned wanted;
    bool pretty;
    bool begun;
};

/* The name of a field up to its value, if it is wanted. */
static bool begin_field(struct raw_reply *reply, enum raw_field field)
{
    if ((reply->wanted & 1u << field) == 0)
        return false;
    box_add_cstr(reply->out, !reply->begun ? "{" : ",");
    box_add_cstr(reply->out, reply->pretty ? "\n  \"" : "\"");
    box_add_cstr(reply->out, raw_names[field]);
    box_add_cstr(reply->out, reply->pretty ? "\": " : "\":");
    reply->begun = true;
    return true;
}

static void add_field(struct raw_reply *reply, enum raw_field field, const char *text)
{
    if (!begin_field(reply, field))
        return;
    box_add_cstr(reply->out, "\"");
    box_add_cstr(reply->out, text);
    box_add_cstr(reply->out, "\"");
}

static void add_number(struct raw_reply *reply, enum raw_field field, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    add_field(reply, field, text);
}

static void add_label_ids(struct raw_reply *reply, const box_mailbox *mailbox, uint32_t label_set)
{
    size_t count = 0;
    const uint16_t *labels = box_mailbox_labels(mailbox, label_set, &count);
    if (count == 0 || !begin_field(reply, LABEL_IDS))
        return; /* BGML3 */
    box_add_cstr(reply->out, reply->pretty ? "[\n    \"" : "[\"");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            box_add_cstr(reply->out, reply->pretty ? "\",\n    \"" : "\",\"");
        box_add_cstr(reply->out, box_mailbox_label(mailbox, labels[i])->id);
    }
    box_add_cstr(reply->out, reply->pretty ? "\"\n  ]" : "\"]");
}

static void add_content(struct raw_reply *reply, box_mailbox *mailbox, uint32_t slot)
{
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    tide_auto_buf scratch = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    if (begin_field(reply, SNIPPET)) {
        box_mailbox_snippet(mailbox, slot, &scratch);
        box_add_json_text(reply->out, tide_buf_text(&scratch));
        tide_buf_clear(&scratch);
    }
    if (begin_field(reply, SIZE))
        box_print(reply->out, "%" PRIu32, message->bytes);
    if (begin_field(reply, RAW)) {
        box_add_cstr(reply->out, "\"");
        box_add_base64url(reply->out, box_mailbox_raw(mailbox, slot, &scratch));
        box_add_cstr(reply->out, "\"");
    }
}

/* format=raw, written straight into the answer: mirrors ask for little else,
 * and a JSON tree of each message would cost more than all the rest.  The
 * snippet is escaped for JSON, everything else cannot need it. */
static void reply_raw(struct box_call *call, uint32_t slot, unsigned wanted)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    const tide_text pretty = box_call_param(call, "prettyPrint");
    struct raw_reply reply = {
        .out = &call->answer->body,
        .wanted = wanted,
        .pretty = !tide_text_equal(pretty, TIDE_TEXT("false")) &&
                  !tide_text_equal(pretty, TIDE_TEXT("0")),
    };
    tide_buf_reserve(reply.out, ((size_t)message->bytes + 2) / 3 * 4 + 2048);
    char id[BOX_ID_TEXT_BYTES], thread[BOX_ID_TEXT_BYTES];
    box_id_text(message->id, id);
    box_id_text(message->thread_id, thread);
    add_field(&reply, ID, id);
    add_field(&reply, THREAD_ID, thread);
    add_label_ids(&reply, mailbox, message->label_set);
    add_content(&reply, mailbox, slot);
    add_number(&reply, HISTORY_ID, message->history_id);
    add_number(&reply, DATE, message->date_ms);
    if (!reply.begun)
        box_add_cstr(reply.out, "{");
    box_add_cstr(reply.out, reply.pretty ? (reply.begun ? "\n}\n" : "}\n") : "}");
    memcpy(call->answer->type, answer_type, sizeof answer_type);
    box_mail_fetched(call->user, slot);
}

void box_gmail_messages_get(struct box_call *call)
{
    box_format format;
    if (!box_gmail_format(call, true, &format))
        return;
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    unsigned wanted = 0;
    if (format == BOX_FORMAT_RAW && raw_fields_read(box_call_param(call, "fields"), &wanted))
        reply_raw(call, slot, wanted);
    else
        box_call_reply(call, box_gmail_message(call, slot, format));
}

void box_gmail_attachments_get(struct box_call *call)
{
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    tide_auto_buf scratch = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    tide_auto_buf bytes = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    tide_auto_buf text = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    const tide_text raw = box_mailbox_raw(box_user_mailbox(call->user), slot, &scratch);
    if (!box_mime_attachment(raw, call->args[1], &bytes)) {
        /* Google's words for an id that names no part. */
        box_fail_argument(call, "Invalid attachment token");
    } else {
        box_add_base64url(&text, tide_buf_text(&bytes));
        box_call_reply(call, json_pack("{s:I, s:s%}", "size", (json_int_t)bytes.bytes, "data",
                                       tide_buf_cstr(&text), text.bytes));
    }
}

/* ---- labels ---- */

void box_gmail_messages_modify(struct box_call *call)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    struct box_relabel relabel;
    if (box_gmail_known(call, body, modify_names) && box_gmail_relabel_read(call, body, &relabel)) {
        if (box_gmail_relabel_fits(mailbox, slot, &relabel)) {
            box_gmail_relabel(call, slot, &relabel);
            box_call_reply(call, box_gmail_message_brief(mailbox, slot));
        } else if (box_mailbox_has_label(mailbox, slot, BOX_LABEL_DRAFT)) {
            box_fail_argument(call, "Labels cannot be applied to drafts");
        } else {
            box_fail_argument(call, "Number of labels of a message cannot exceed %d",
                              BOX_MESSAGE_LABELS_MAX);
        }
    }
}

/* Trash is one more label; the others stay, so that untrash restores what was.
 * Drafts can be thrown away too. */
static void set_trash(struct box_call *call, bool trashed)
{
    const uint32_t slot = box_gmail_message_arg(call);
    if (slot == BOX_SLOT_NONE)
        return;
    const uint16_t trash = BOX_LABEL_TRASH;
    box_mailbox_relabel(box_user_mailbox(call->user), slot, &trash, trashed, &trash, !trashed);
    box_mail_acted(call->user, slot, BOX_ACT_TRASHED);
    box_call_reply(call, box_gmail_message_brief(box_user_mailbox(call->user), slot));
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
    box_mail_acted(call->user, slot, BOX_ACT_DELETED);
    box_mailbox_remove(box_user_mailbox(call->user), slot);
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
    return box_mailbox_find(box_user_mailbox(call->user),
                            (tide_text){json_string_value(id), json_string_length(id)});
}

/* Ids that do not exist, drafts and full messages are passed over: the answer
 * has no room to name them. */
void box_gmail_messages_batch_modify(struct box_call *call)
{
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    const json_t *ids;
    struct box_relabel relabel;
    if (box_gmail_known(call, body, batch_modify_names) && read_ids(call, body, &ids) &&
        box_gmail_relabel_read(call, body, &relabel)) {
        for (size_t i = 0; i < json_array_size(ids); i++) {
            const uint32_t slot = find_id(call, ids, i);
            if (slot != BOX_SLOT_NONE &&
                box_gmail_relabel_fits(box_user_mailbox(call->user), slot, &relabel))
                box_gmail_relabel(call, slot, &relabel);
        }
        box_call_reply_empty(call);
    }
}

/* "Provides no guarantees that messages were not already deleted or even
 * existed at all." */
void box_gmail_messages_batch_delete(struct box_call *call)
{
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    const json_t *ids;
    if (box_gmail_known(call, body, batch_delete_names) && read_ids(call, body, &ids)) {
        for (size_t i = 0; i < json_array_size(ids); i++) {
            const uint32_t slot = find_id(call, ids, i);
            if (slot == BOX_SLOT_NONE)
                continue;
            box_mail_acted(call->user, slot, BOX_ACT_DELETED);
            box_mailbox_remove(box_user_mailbox(call->user), slot);
        }
        box_call_reply_empty(call);
    }
}
