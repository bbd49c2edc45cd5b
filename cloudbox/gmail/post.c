/* Messages that come in: insert, import, send, and drafts.
 *
 * The bytes come in a JSON body or by upload; from here on it is all the same.
 * Nothing is changed before everything has been checked (BGML2). */
#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "cloudbox/gmail/send.h"
#include "cloudbox/mailbox/mime.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const message_names[] = {"id",        "threadId",
                                            "labelIds",  "snippet",
                                            "historyId", "internalDate",
                                            "payload",   "sizeEstimate",
                                            "raw",       "classificationLabelValues",
                                            NULL};
static const char *const draft_names[] = {"id", "message", NULL};

/* What a post turned out to be. */
struct incoming {
    const json_t *message; /* NULL: none came */
    tide_text raw;         /* data == NULL: none came, which only drafts.send allows */
    tide_buf decoded;      /* holds raw when it came in JSON */
    tide_text thread_id;   /* checked to exist; data == NULL: none */
    uint16_t labels[BOX_MODIFY_LABELS_MAX];
    size_t labels_count;
};

size_t box_post_bytes_max(box_post_kind kind)
{
    return kind <= BOX_POST_IMPORT ? BOX_INSERT_BYTES_MAX : BOX_SEND_BYTES_MAX;
}

void box_post_too_large(struct box_call *call, box_post_kind kind)
{
    box_fail(call, 413, "global", "uploadTooLarge", "INVALID_ARGUMENT",
             "Request payload size exceeds the limit: %zu bytes.", box_post_bytes_max(kind));
}

bool box_post_begin(struct box_call *call, box_post_kind kind, struct box_post *post_out)
{
    struct box_post post = {.kind = kind};
    if (kind == BOX_POST_DRAFT_UPDATE)
        post.draft_id = call->args[0];
    if (kind == BOX_POST_INSERT || kind == BOX_POST_IMPORT) {
        const tide_text source = box_call_param(call, "internalDateSource");
        post.deleted = box_call_flag(call, "deleted");
        post.date_header = kind == BOX_POST_IMPORT;
        if (tide_text_equal(source, TIDE_TEXT("dateHeader"))) {
            post.date_header = true;
        } else if (tide_text_equal(source, TIDE_TEXT("receivedTime"))) {
            post.date_header = false;
        } else if (source.data != NULL) {
            box_fail_argument(call, "Invalid value at 'internalDateSource': \"%.*s\"",
                              (int)(source.bytes < 100 ? source.bytes : 100), source.data);
            return false;
        }
    }
    *post_out = post;
    return true;
}

/* ---- checking ---- */

/* The message object of a post: the body itself, or what a draft wraps. */
static bool read_message(struct box_call *call, const struct box_post *post, struct incoming *in)
{
    in->message = post->meta;
    if (post->kind >= BOX_POST_DRAFT_CREATE) {
        if (post->meta != NULL && !box_gmail_known(call, post->meta, draft_names))
            return false;
        in->message = json_object_get(post->meta, "message");
        if (json_is_null(in->message))
            in->message = NULL;
        if (in->message == NULL && post->raw.data == NULL && post->kind != BOX_POST_DRAFT_SEND) {
            box_fail_argument(call, "Missing draft message");
            return false;
        }
    }
    if (in->message == NULL)
        return true;
    if (!json_is_object(in->message)) {
        box_fail_argument(call, "Invalid value at 'message': an object is needed");
        return false;
    }
    return box_gmail_known(call, in->message, message_names);
}

static bool read_raw(struct box_call *call, const struct box_post *post, struct incoming *in)
{
    const json_t *raw = json_object_get(in->message, "raw");
    in->raw = post->raw;
    if (in->raw.data == NULL && raw != NULL && !json_is_null(raw)) {
        if (!json_is_string(raw) ||
            !box_base64_decode((tide_text){json_string_value(raw), json_string_length(raw)},
                               &in->decoded)) {
            box_fail_argument(
                call, "Invalid value at 'message.raw' (TYPE_BYTES), Base64 decoding failed");
            return false;
        }
        in->raw = tide_buf_text(&in->decoded);
    }
    if (in->raw.bytes > box_post_bytes_max(post->kind)) {
        box_post_too_large(call, post->kind);
        return false;
    }
    if (in->raw.bytes == 0 && (post->kind != BOX_POST_DRAFT_SEND || in->raw.data != NULL)) {
        box_fail_argument(call, "'raw' RFC822 payload message string or uploading message via "
                                "/upload/* URL required");
        return false;
    }
    return true;
}

static bool read_thread(struct box_call *call, struct incoming *in)
{
    const json_t *thread = json_object_get(in->message, "threadId");
    if (thread == NULL || json_is_null(thread))
        return true;
    in->thread_id = (tide_text){json_string_value(thread), json_string_length(thread)};
    if (!json_is_string(thread)) {
        box_fail_argument(call, "Invalid value at 'message.thread_id'");
        return false;
    }
    if (in->thread_id.bytes == 0) {
        in->thread_id = TIDE_TEXT_NONE; /* proto3's way of saying nothing */
    } else if (box_mailbox_thread(box_user_mailbox(call->user), in->thread_id) == BOX_SLOT_NONE) {
        box_fail_missing(call);
        return false;
    }
    return true;
}

/* The labels of an inserted message.  SENT is allowed, for that is how sent
 * mail is migrated; DRAFT and CHAT are not. */
static bool read_labels(struct box_call *call, struct incoming *in)
{
    const json_t *list;
    if (!box_gmail_list(call, in->message, "labelIds", BOX_MODIFY_LABELS_MAX, "Number of label ids",
                        &list))
        return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        const tide_text text = {json_string_value(id), json_string_length(id)};
        uint32_t number = 0;
        if (!box_mailbox_label_by_id(box_user_mailbox(call->user), text, &number) ||
            number == BOX_LABEL_DRAFT || number == BOX_LABEL_CHAT) {
            box_fail_argument(call, "Invalid label: %.100s", text.data);
            return false;
        }
        bool twice = false;
        for (size_t k = 0; k < in->labels_count; k++)
            twice = twice || in->labels[k] == number;
        if (!twice)
            in->labels[in->labels_count++] = (uint16_t)number;
    }
    return true;
}

/* ---- doing ---- */

static void insert(struct box_call *call, const struct box_post *post, struct incoming *in)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    struct box_insert message = {.raw = in->raw,
                                 .date_ms = call->now_ms,
                                 .thread_id = in->thread_id,
                                 .labels = in->labels,
                                 .labels_count = in->labels_count};
    if (post->date_header) {
        struct box_view view;
        box_mime_headers(in->raw, call->scratch, &view);
        if (view.has_date)
            message.date_ms = view.date_ms;
    }
    /* An import is "similar to receiving via SMTP", so without labels of its own
     * it arrives as new mail; that is our reading.  There is no spam
     * classifier here, hence nothing for neverMarkSpam to forbid. */
    static const uint16_t delivered[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
    if (post->kind == BOX_POST_IMPORT && in->labels_count == 0) {
        message.labels = delivered;
        message.labels_count = 2;
    }
    const uint32_t slot = box_mailbox_insert(mailbox, &message);
    box_mail_acted(call->user, slot, BOX_ACT_INSERTED);
    json_t *brief = box_gmail_message_brief(mailbox, slot);
    /* "Permanently deleted and only visible in Google Vault": it was there, and
     * is gone; history tells of both. */
    if (post->deleted)
        box_mailbox_remove(mailbox, slot);
    box_call_reply(call, brief);
}

static void reply_draft(struct box_call *call, uint32_t draft)
{
    const struct box_draft *at = box_mailbox_draft_at(box_user_mailbox(call->user), draft);
    char id[BOX_ID_TEXT_BYTES];
    snprintf(id, sizeof id, "r%" PRIu64, at->id);
    box_call_reply(call,
                   json_pack("{s:s, s:o}", "id", id, "message",
                             box_gmail_message_brief(box_user_mailbox(call->user), at->slot)));
}

/* Labels cannot be applied to drafts, so those of the body are not looked at. */
static void draft_create(struct box_call *call, struct incoming *in)
{
    const struct box_insert message = {
        .raw = in->raw, .date_ms = call->now_ms, .thread_id = in->thread_id};
    box_mailbox *mailbox = box_user_mailbox(call->user);
    const uint32_t draft = box_mailbox_draft_create(mailbox, &message);
    box_mail_acted(call->user, box_mailbox_draft_at(mailbox, draft)->slot, BOX_ACT_DRAFTED);
    reply_draft(call, draft);
}

/* The message gets another id, the draft keeps its own; it stays in its thread
 * unless another is named (Google does not say; a draft that is saved again
 * should not wander). */
static void draft_replace(struct box_call *call, uint32_t draft, tide_text raw, tide_text thread_id)
{
    const struct box_insert message = {.raw = raw, .date_ms = call->now_ms, .thread_id = thread_id};
    box_mailbox *mailbox = box_user_mailbox(call->user);
    box_mail_acted(call->user, box_mailbox_draft_at(mailbox, draft)->slot, BOX_ACT_DRAFTED);
    box_mailbox_draft_update(mailbox, draft, &message);
    /* Perhaps in another thread by now. */
    box_mail_acted(call->user, box_mailbox_draft_at(mailbox, draft)->slot, BOX_ACT_DRAFTED);
}

static void draft_update(struct box_call *call, const struct box_post *post, struct incoming *in)
{
    const uint32_t draft = box_mailbox_draft_find(box_user_mailbox(call->user), post->draft_id);
    if (draft == BOX_SLOT_NONE) {
        box_fail_missing(call);
        return;
    }
    draft_replace(call, draft, in->raw, in->thread_id);
    reply_draft(call, draft);
}

static void send(struct box_call *call, struct incoming *in)
{
    tide_auto_buf complete = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    struct box_recipients to;
    if (box_recipients_read(call, in->raw, &to)) {
        static const uint16_t labels[] = {BOX_LABEL_SENT, BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
        box_send_watch(call, in->raw);
        box_send_complete(call, in->raw, &complete);
        const struct box_insert message = {.raw = tide_buf_text(&complete),
                                           .date_ms = call->now_ms,
                                           .thread_id = in->thread_id,
                                           .labels = labels,
                                           .labels_count = to.self ? 3 : 1};
        const uint32_t slot = box_mailbox_insert(box_user_mailbox(call->user), &message);
        box_mail_acted(call->user, slot, BOX_ACT_SENT);
        box_send_deliver(call, message.raw, &to);
        box_call_reply(call, box_gmail_message_brief(box_user_mailbox(call->user), slot));
    }
}

/* Sends the draft as it is, or with the content that came along. */
static void draft_send(struct box_call *call, const struct box_post *post, struct incoming *in)
{
    box_mailbox *mailbox = box_user_mailbox(call->user);
    const json_t *id = json_object_get(post->meta, "id");
    if (!json_is_string(id)) {
        box_fail_argument(call, "Missing draft id");
        return;
    }
    const uint32_t draft =
        box_mailbox_draft_find(mailbox, (tide_text){json_string_value(id), json_string_length(id)});
    if (draft == BOX_SLOT_NONE) {
        box_fail_missing(call);
        return;
    }
    tide_auto_buf complete = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    tide_auto_buf scratch = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    const tide_text old =
        box_mailbox_raw(mailbox, box_mailbox_draft_at(mailbox, draft)->slot, &scratch);
    const tide_text raw = in->raw.data != NULL ? in->raw : old;
    struct box_recipients to;
    if (box_recipients_read(call, raw, &to)) {
        box_send_watch(call, raw);
        box_send_complete(call, raw, &complete);
        if (!tide_text_equal(tide_buf_text(&complete), old) || in->thread_id.data != NULL)
            draft_replace(call, draft, tide_buf_text(&complete), in->thread_id);
        const uint32_t slot = box_mailbox_draft_send(mailbox, draft, call->now_ms);
        box_mail_acted(call->user, slot, BOX_ACT_SENT);
        static const uint16_t received[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
        if (to.self)
            box_mailbox_relabel(mailbox, slot, received, 2, NULL, 0);
        box_send_deliver(call, tide_buf_text(&complete), &to);
        box_call_reply(call, box_gmail_message_brief(mailbox, slot));
    }
}

void box_post_apply(struct box_call *call, const struct box_post *post)
{
    struct incoming in = {.message = NULL};
    tide_buf_init(&in.decoded, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
    const bool labels = post->kind == BOX_POST_INSERT || post->kind == BOX_POST_IMPORT;
    if (read_message(call, post, &in) && read_raw(call, post, &in) && read_thread(call, &in) &&
        (!labels || read_labels(call, &in))) {
        switch (post->kind) {
        case BOX_POST_INSERT:
        case BOX_POST_IMPORT:
            insert(call, post, &in);
            break;
        case BOX_POST_SEND:
            send(call, &in);
            break;
        case BOX_POST_DRAFT_CREATE:
            draft_create(call, &in);
            break;
        case BOX_POST_DRAFT_UPDATE:
            draft_update(call, post, &in);
            break;
        case BOX_POST_DRAFT_SEND:
            draft_send(call, post, &in);
            break;
        case BOX_POSTS:
            TIDE_ASSERT(false);
        }
    }
    tide_buf_done(&in.decoded);
}

/* ---- the handlers ---- */

box_post_kind box_post_kind_of(const struct box_call *call)
{
    static const char *const names[BOX_POSTS] = {
        [BOX_POST_INSERT] = "gmail.users.messages.insert",
        [BOX_POST_IMPORT] = "gmail.users.messages.import",
        [BOX_POST_SEND] = "gmail.users.messages.send",
        [BOX_POST_DRAFT_CREATE] = "gmail.users.drafts.create",
        [BOX_POST_DRAFT_UPDATE] = "gmail.users.drafts.update",
        [BOX_POST_DRAFT_SEND] = "gmail.users.drafts.send",
    };
    int kind = 0;
    while (kind < BOX_POSTS && strcmp(names[kind], call->method->name) != 0)
        kind++;
    TIDE_ASSERT(kind < BOX_POSTS);
    return (box_post_kind)kind;
}

void box_gmail_post(struct box_call *call)
{
    struct box_post post;
    if (!box_post_begin(call, box_post_kind_of(call), &post))
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    post.meta = body;
    box_post_apply(call, &post);
}
