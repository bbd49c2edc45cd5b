#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/google/style.h"
#include "cloudbox/push/push.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* ---- the table ---- */

enum {
    MAIL = BOX_SCOPE_MAIL,
    MODIFY = MAIL | BOX_SCOPE_MODIFY,
    READ = MODIFY | BOX_SCOPE_READONLY, /* bodies */
    LOOK = READ | BOX_SCOPE_METADATA,   /* headers and labels */
    DRAFT = MODIFY | BOX_SCOPE_COMPOSE,
    DRAFT_READ = READ | BOX_SCOPE_COMPOSE,
    SEND = DRAFT | BOX_SCOPE_SEND,
    INSERT = MODIFY | BOX_SCOPE_INSERT,
    LABEL = MODIFY | BOX_SCOPE_LABELS,
    LABEL_READ = LOOK | BOX_SCOPE_LABELS,
    PROFILE = LOOK | BOX_SCOPE_COMPOSE,
};

#define AT "/gmail/v1/users/{userId}"
/* One method: its price from May 2026 on, then the older one. */
#define METHOD(name, verb, path, scopes, units, legacy, handle)                                    \
    {                                                                                              \
        "gmail.users." name, verb, path, scopes, BOX_METER_GMAIL, units, legacy, handle            \
    }
/* A way in for large messages.  Discovery also names /resumable/upload, which
 * older clients use. */
#define UPLOAD(name, verb, path, scopes, units, handle)                                            \
    METHOD(name, verb, "/upload" AT path, scopes, units, units, handle),                           \
        METHOD(name, verb, "/resumable/upload" AT path, scopes, units, units, handle)
/* A chunk of a session.  The call that started it has paid. */
#define CHUNK(name, path, scopes)                                                                  \
    METHOD(name, BOX_PUT, "/upload" AT path, scopes, 0, 0, box_gmail_upload_chunk),                \
        METHOD(name, BOX_PUT, "/resumable/upload" AT path, scopes, 0, 0, box_gmail_upload_chunk)

/* Fixed paths stand before those with an {id} in the same place.  Prices that
 * no source of 2026 gives (threads.trash, modify, untrash, delete; stop) are
 * the older ones, threads.trash the likely 40. */
static const struct box_method methods[] = {
    METHOD("getProfile", BOX_GET, AT "/profile", PROFILE, 1, 1, box_gmail_profile),
    METHOD("watch", BOX_POST, AT "/watch", LOOK, 100, 100, box_push_watch),
    METHOD("stop", BOX_POST, AT "/stop", LOOK, 50, 50, box_push_stop),
    METHOD("history.list", BOX_GET, AT "/history", LOOK, 2, 2, box_gmail_history_list),

    METHOD("messages.list", BOX_GET, AT "/messages", LOOK, 5, 5, box_gmail_messages_list),
    METHOD("messages.insert", BOX_POST, AT "/messages", INSERT, 25, 25, box_gmail_post),
    METHOD("messages.import", BOX_POST, AT "/messages/import", INSERT, 25, 25, box_gmail_post),
    METHOD("messages.send", BOX_POST, AT "/messages/send", SEND, 100, 100, box_gmail_post),
    METHOD("messages.batchModify", BOX_POST, AT "/messages/batchModify", MODIFY, 50, 50,
           box_gmail_messages_batch_modify),
    METHOD("messages.batchDelete", BOX_POST, AT "/messages/batchDelete", MAIL, 50, 50,
           box_gmail_messages_batch_delete),
    METHOD("messages.get", BOX_GET, AT "/messages/{id}", LOOK, 20, 5, box_gmail_messages_get),
    METHOD("messages.delete", BOX_DELETE, AT "/messages/{id}", MAIL, 10, 10,
           box_gmail_messages_delete),
    METHOD("messages.modify", BOX_POST, AT "/messages/{id}/modify", MODIFY, 5, 5,
           box_gmail_messages_modify),
    METHOD("messages.trash", BOX_POST, AT "/messages/{id}/trash", MODIFY, 20, 5,
           box_gmail_messages_trash),
    METHOD("messages.untrash", BOX_POST, AT "/messages/{id}/untrash", MODIFY, 5, 5,
           box_gmail_messages_untrash),
    METHOD("messages.attachments.get", BOX_GET, AT "/messages/{messageId}/attachments/{id}", READ,
           20, 5, box_gmail_attachments_get),

    METHOD("threads.list", BOX_GET, AT "/threads", LOOK, 10, 10, box_gmail_threads_list),
    METHOD("threads.get", BOX_GET, AT "/threads/{id}", LOOK, 40, 10, box_gmail_threads_get),
    METHOD("threads.delete", BOX_DELETE, AT "/threads/{id}", MAIL, 20, 20,
           box_gmail_threads_delete),
    METHOD("threads.modify", BOX_POST, AT "/threads/{id}/modify", MODIFY, 10, 10,
           box_gmail_threads_modify),
    METHOD("threads.trash", BOX_POST, AT "/threads/{id}/trash", MODIFY, 40, 10,
           box_gmail_threads_trash),
    METHOD("threads.untrash", BOX_POST, AT "/threads/{id}/untrash", MODIFY, 10, 10,
           box_gmail_threads_untrash),

    METHOD("drafts.list", BOX_GET, AT "/drafts", DRAFT_READ, 5, 5, box_gmail_drafts_list),
    METHOD("drafts.create", BOX_POST, AT "/drafts", DRAFT, 10, 10, box_gmail_post),
    METHOD("drafts.send", BOX_POST, AT "/drafts/send", DRAFT, 100, 100, box_gmail_post),
    METHOD("drafts.get", BOX_GET, AT "/drafts/{id}", DRAFT_READ, 20, 5, box_gmail_drafts_get),
    METHOD("drafts.update", BOX_PUT, AT "/drafts/{id}", DRAFT, 15, 15, box_gmail_post),
    METHOD("drafts.delete", BOX_DELETE, AT "/drafts/{id}", DRAFT, 10, 10, box_gmail_drafts_delete),

    METHOD("labels.list", BOX_GET, AT "/labels", LABEL_READ, 1, 1, box_gmail_labels_list),
    METHOD("labels.create", BOX_POST, AT "/labels", LABEL, 5, 5, box_gmail_labels_create),
    METHOD("labels.get", BOX_GET, AT "/labels/{id}", LABEL_READ, 1, 1, box_gmail_labels_get),
    METHOD("labels.update", BOX_PUT, AT "/labels/{id}", LABEL, 5, 5, box_gmail_labels_update),
    METHOD("labels.patch", BOX_PATCH, AT "/labels/{id}", LABEL, 5, 5, box_gmail_labels_patch),
    METHOD("labels.delete", BOX_DELETE, AT "/labels/{id}", LABEL, 5, 5, box_gmail_labels_delete),

    UPLOAD("messages.insert", BOX_POST, "/messages", INSERT, 25, box_gmail_upload),
    UPLOAD("messages.import", BOX_POST, "/messages/import", INSERT, 25, box_gmail_upload),
    UPLOAD("messages.send", BOX_POST, "/messages/send", SEND, 100, box_gmail_upload),
    UPLOAD("drafts.create", BOX_POST, "/drafts", DRAFT, 10, box_gmail_upload),
    UPLOAD("drafts.send", BOX_POST, "/drafts/send", DRAFT, 100, box_gmail_upload),
    CHUNK("messages.insert", "/messages", INSERT),
    CHUNK("messages.import", "/messages/import", INSERT),
    CHUNK("messages.send", "/messages/send", SEND),
    CHUNK("drafts.create", "/drafts", DRAFT),
    CHUNK("drafts.send", "/drafts/send", DRAFT),
    UPLOAD("drafts.update", BOX_PUT, "/drafts/{id}", DRAFT, 15, box_gmail_upload),
};

const struct box_service box_gmail = {
    .name = "gmail",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .style = &box_google_style,
    .open = box_uploads_open,
    .close = box_uploads_close,
    .limits = box_gmail_limits,
    .limits_count = BOX_GMAIL_LIMITS,
    .refuse = box_gmail_refuse,
    .faults = box_gmail_faults,
    .faults_count = BOX_GMAIL_FAULTS,
    .rate = &box_gmail_rate,
};

/* ---- getProfile ---- */

void box_gmail_profile(struct box_call *call)
{
    const box_mailbox *mailbox = box_user_mailbox(call->user);
    char history[BOX_ID_TEXT_BYTES];
    snprintf(history, sizeof history, "%" PRIu64, box_mailbox_history_id(mailbox));
    box_call_reply(call, json_pack("{s:s, s:I, s:I, s:s}", "emailAddress", call->user->email,
                                   "messagesTotal", (json_int_t)box_mailbox_messages(mailbox),
                                   "threadsTotal", (json_int_t)box_mailbox_threads(mailbox),
                                   "historyId", history));
}

/* ---- the shape of a message ---- */

bool box_gmail_metadata_bound(const struct box_call *call)
{
    /* Google keeps the refusal when a wider scope is held together with
     * gmail.metadata.  Fixed tokens have every scope there is and stand for
     * no grant in particular, so they are not bound. */
    return (call->scopes & BOX_SCOPE_METADATA) != 0 &&
           (call->scopes & BOX_SCOPE_ALL) != BOX_SCOPE_ALL;
}

bool box_gmail_format(struct box_call *call, bool raw_allowed, box_format *format_out)
{
    static const char *const names[] = {"full", "raw", "metadata", "minimal"};
    const tide_text asked = box_call_param(call, "format");
    size_t format = BOX_FORMAT_FULL;
    if (asked.data != NULL) {
        for (format = 0; format < 4; format++)
            if (asked.bytes == strlen(names[format]) &&
                strncasecmp(asked.data, names[format], asked.bytes) == 0)
                break;
        if (format == 4 || (format == BOX_FORMAT_RAW && !raw_allowed)) {
            box_fail_argument(call, "Invalid value at 'format': \"%.*s\"",
                              (int)(asked.bytes < 100 ? asked.bytes : 100), asked.data);
            return false;
        }
    }
    if (box_gmail_metadata_bound(call) && (format == BOX_FORMAT_FULL || format == BOX_FORMAT_RAW)) {
        box_fail(call, 403, "global", "forbidden", "PERMISSION_DENIED",
                 "Metadata scope doesn't allow format %s",
                 format == BOX_FORMAT_FULL ? "FULL" : "RAW");
        return false;
    }
    *format_out = (box_format)format;
    return true;
}

json_t *box_gmail_label_ids(const box_mailbox *mailbox, uint32_t label_set)
{
    size_t count = 0;
    const uint16_t *labels = box_mailbox_labels(mailbox, label_set, &count);
    if (count == 0)
        return NULL;
    json_t *ids = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(ids, json_string(box_mailbox_label(mailbox, labels[i])->id));
    return ids;
}

json_t *box_gmail_message_brief(const box_mailbox *mailbox, uint32_t slot)
{
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    char id[BOX_ID_TEXT_BYTES], thread[BOX_ID_TEXT_BYTES];
    box_id_text(message->id, id);
    box_id_text(message->thread_id, thread);
    return json_pack("{s:s, s:s, s:o*}", "id", id, "threadId", thread, "labelIds",
                     box_gmail_label_ids(mailbox, message->label_set));
}

/* The names of metadataHeaders; at most as many as parameters can come. */
static size_t wanted_headers(const struct box_call *call, tide_text *names)
{
    size_t count = 0;
    while (count < BOX_PARAMS_MAX) {
        const tide_text name = box_call_param_at(call, "metadataHeaders", count);
        if (name.data == NULL)
            break;
        names[count++] = name;
    }
    return count;
}

/* What of the bytes themselves belongs to the format. */
static void add_content(struct box_call *call, json_t *message, uint32_t slot, box_format format)
{
    tide_auto_buf scratch = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    const tide_text raw = box_mailbox_raw(box_user_mailbox(call->user), slot, &scratch);
    if (format == BOX_FORMAT_METADATA) {
        tide_text names[BOX_PARAMS_MAX];
        const size_t count = wanted_headers(call, names);
        json_object_set_new(message, "payload", box_mime_metadata(raw, names, count));
    } else if (format == BOX_FORMAT_FULL) {
        json_object_set_new(message, "payload", box_mime_full(raw));
    } else {
        tide_auto_buf text = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
        box_add_base64url(&text, raw);
        json_object_set_new(message, "raw", json_stringn_nocheck(tide_buf_cstr(&text), text.bytes));
    }
    if (format != BOX_FORMAT_METADATA)
        box_mail_fetched(call->user, slot);
}

json_t *box_gmail_message(struct box_call *call, uint32_t slot, box_format format)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    const struct box_message *at = box_mailbox_at(mailbox, slot);
    json_t *message = box_gmail_message_brief(mailbox, slot);
    /* A snippet is a piece of the body, so gmail.metadata does not show it; that
     * Google does the same is a guess. */
    if (!box_gmail_metadata_bound(call)) {
        tide_auto_buf snippet = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
        box_mailbox_snippet(mailbox, slot, &snippet);
        json_object_set_new(message, "snippet", box_json_text(tide_buf_text(&snippet)));
    }
    if (format == BOX_FORMAT_FULL || format == BOX_FORMAT_METADATA)
        add_content(call, message, slot, format);
    json_object_set_new(message, "sizeEstimate", json_integer(at->bytes));
    if (format == BOX_FORMAT_RAW)
        add_content(call, message, slot, format);
    char number[BOX_ID_TEXT_BYTES];
    snprintf(number, sizeof number, "%" PRIu64, at->history_id);
    json_object_set_new(message, "historyId", json_string(number));
    snprintf(number, sizeof number, "%" PRIu64, at->date_ms);
    json_object_set_new(message, "internalDate", json_string(number));
    return message;
}

uint32_t box_gmail_message_arg(struct box_call *call)
{
    const uint32_t slot = box_mailbox_find(box_user_mailbox(call->user), call->args[0]);
    if (slot == BOX_SLOT_NONE)
        box_fail_missing(call);
    return slot;
}

/* ---- reading bodies ---- */

bool box_gmail_known(struct box_call *call, const json_t *object, const char *const *names)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        size_t i = 0;
        while (names[i] != NULL && strcmp(names[i], key) != 0)
            i++;
        if (names[i] == NULL) {
            box_fail_argument(
                call, "Invalid JSON payload received. Unknown name \"%.100s\": Cannot find field.",
                key);
            return false;
        }
    }
    return true;
}

bool box_gmail_list(struct box_call *call, const json_t *object, const char *name, size_t count_max,
                    const char *too_many, const json_t **list_out)
{
    const json_t *list = json_object_get(object, name);
    if (list == NULL || json_is_null(list)) {
        *list_out = NULL;
        return true;
    }
    bool strings = json_is_array(list);
    for (size_t i = 0; strings && i < json_array_size(list); i++)
        strings = json_is_string(json_array_get(list, i));
    if (!strings) {
        box_fail_argument(call, "Invalid value at '%s': a list of strings is needed", name);
        return false;
    }
    if (json_array_size(list) > count_max) {
        box_call_violation(call, "list-size", TIDE_TEXT_NONE);
        box_fail_argument(call, "%s cannot exceed %zu", too_many, count_max);
        return false;
    }
    *list_out = list;
    return true;
}

/* Turns label ids into numbers.  SENT, DRAFT and CHAT are Gmail's own. */
static bool read_labels(struct box_call *call, const json_t *body, const char *name,
                        uint16_t *numbers, size_t *count_out)
{
    const json_t *list;
    if (!box_gmail_list(call, body, name, BOX_MODIFY_LABELS_MAX, "Number of label ids", &list))
        return false;
    *count_out = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        uint32_t number = 0;
        const tide_text text = {json_string_value(id), json_string_length(id)};
        if (!box_mailbox_label_by_id(box_user_mailbox(call->user), text, &number) ||
            number == BOX_LABEL_SENT || number == BOX_LABEL_DRAFT || number == BOX_LABEL_CHAT) {
            box_fail_argument(call, "Invalid label: %.100s", text.data);
            return false;
        }
        bool twice = false;
        for (size_t k = 0; k < *count_out; k++)
            twice = twice || numbers[k] == number;
        if (!twice)
            numbers[(*count_out)++] = (uint16_t)number;
    }
    return true;
}

bool box_gmail_relabel_read(struct box_call *call, const json_t *body,
                            struct box_relabel *relabel_out)
{
    struct box_relabel relabel = {.add_count = 0};
    if (!read_labels(call, body, "addLabelIds", relabel.add, &relabel.add_count) ||
        !read_labels(call, body, "removeLabelIds", relabel.take, &relabel.take_count))
        return false;
    if (relabel.add_count + relabel.take_count == 0) {
        box_fail_argument(call, "No label add or removes specified");
        return false;
    }
    for (size_t i = 0; i < relabel.add_count; i++)
        for (size_t k = 0; k < relabel.take_count; k++)
            if (relabel.add[i] == relabel.take[k]) {
                /* What Google does with it is not written anywhere; a client
                 * that asks for both is wrong either way. */
                box_fail_argument(call, "Cannot both add and remove the same label");
                return false;
            }
    *relabel_out = relabel;
    return true;
}

bool box_gmail_relabel_fits(const box_mailbox *mailbox, uint32_t slot,
                            const struct box_relabel *relabel)
{
    if (box_mailbox_has_label(mailbox, slot, BOX_LABEL_DRAFT))
        return false;
    size_t count = 0;
    box_mailbox_labels(mailbox, box_mailbox_at(mailbox, slot)->label_set, &count);
    return count + relabel->add_count <= BOX_MESSAGE_LABELS_MAX;
}

void box_gmail_relabel(struct box_call *call, uint32_t slot, const struct box_relabel *relabel)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    TIDE_ASSERT(box_gmail_relabel_fits(mailbox, slot, relabel));
    box_mailbox_relabel(mailbox, slot, relabel->add, relabel->add_count, relabel->take,
                        relabel->take_count);
    box_mail_acted(call->user, slot, BOX_ACT_LABELS);
}
