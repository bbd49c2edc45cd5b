/* What happens to mailboxes from the other side: mail arrives, another client
 * deletes and sorts.  The cloud tells push of every change after the call. */
#include "base/check.h"
#include "cloudbox/control/read.h"

#include <inttypes.h>
#include <stdio.h>

enum { MAIL_BYTES_MAX = 150 << 20 };

/* What a new message is made of; the raw bytes live in `decoded` or in the request. */
struct delivery {
    struct box_user *user;
    tide_text raw;
    uint64_t date_ms;
    uint16_t labels[BOX_MESSAGE_LABELS_MAX];
    size_t labels_count;
    bool labels_given; /* perhaps as an empty list */
};

static bool read_json(struct box_call *call, const json_t *body, tide_buf *decoded,
                      struct delivery *delivery)
{
    tide_text raw;
    delivery->user = box_control_user(call, body);
    if (delivery->user == NULL || !box_control_text(call, body, "raw", &raw) ||
        !box_control_number(call, body, "date", 1, INT64_MAX / 2, call->now_ms,
                            &delivery->date_ms) ||
        !box_control_labels(call, body, "labels", box_user_mailbox(delivery->user),
                            delivery->labels, &delivery->labels_count))
        return false;
    if (!box_base64_decode(raw, decoded)) {
        box_fail_argument(call, "\"raw\" is not base64");
        return false;
    }
    delivery->raw = tide_buf_text(decoded);
    delivery->labels_given = json_object_get(body, "labels") != NULL;
    return true;
}

/* The message itself is the body; the rest stands in the query. */
static bool read_plain(struct box_call *call, struct delivery *delivery)
{
    delivery->user = box_control_user_of(call, box_call_param(call, "user"));
    if (delivery->user == NULL ||
        !box_call_number(call, "date", 1, INT64_MAX / 2, call->now_ms, &delivery->date_ms))
        return false;
    for (size_t i = 0;; i++) { /* ends with the parameters, which are bounded */
        const tide_text label = box_call_param_at(call, "labels", i);
        if (label.data == NULL)
            break;
        if (!box_control_label(call, label, box_user_mailbox(delivery->user), delivery->labels,
                               &delivery->labels_count))
            return false;
    }
    delivery->raw = call->request->body;
    delivery->labels_given = delivery->labels_count > 0;
    return true;
}

static bool read_delivery(struct box_call *call, tide_buf *decoded, struct delivery *delivery)
{
    static const char *const fields[] = {"user", "raw", "labels", "date", NULL};
    if (box_call_param(call, "user").data != NULL)
        return read_plain(call, delivery);
    json_auto_t *body = box_control_body(call, fields);
    if (body == NULL)
        return false;
    return read_json(call, body, decoded, delivery);
}

static void deliver(struct box_call *call, struct delivery *delivery)
{
    if (delivery->raw.bytes == 0 || delivery->raw.bytes > MAIL_BYTES_MAX) {
        box_fail_argument(call, "a message must have 1 to %d bytes", MAIL_BYTES_MAX);
        return;
    }
    if (!delivery->labels_given) {
        delivery->labels[0] = BOX_LABEL_INBOX;
        delivery->labels[1] = BOX_LABEL_UNREAD;
        delivery->labels_count = 2;
    }
    box_mailbox *mailbox = box_user_mailbox(delivery->user);
    box_mailbox_clock(mailbox, call->now_ms);
    const uint32_t slot = box_mailbox_insert(mailbox, &(struct box_insert){
                                                          .raw = delivery->raw,
                                                          .date_ms = delivery->date_ms,
                                                          .labels = delivery->labels,
                                                          .labels_count = delivery->labels_count,
                                                      });
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    char id[BOX_ID_TEXT_BYTES];
    char thread_id[BOX_ID_TEXT_BYTES];
    box_id_text(message->id, id);
    box_id_text(message->thread_id, thread_id);
    char history_id[24]; /* a text, as the API gives it */
    (void)snprintf(history_id, sizeof history_id, "%" PRIu64, message->history_id);
    box_call_reply(call, json_pack("{s:s, s:s, s:s}", "id", id, "threadId", thread_id, "historyId",
                                   history_id));
}

void box_control_mail(struct box_call *call)
{
    tide_auto_buf decoded = tide_buf_heap(MAIL_BYTES_MAX + 16);
    struct delivery delivery;
    delivery.labels_count = 0;
    if (read_delivery(call, &decoded, &delivery))
        deliver(call, &delivery);
}

void box_control_mail_delete(struct box_call *call)
{
    static const char *const fields[] = {"user", "ids", NULL};
    json_auto_t *body = box_control_body(call, fields);
    struct box_user *user = body == NULL ? NULL : box_control_user(call, body);
    uint32_t *slots = NULL;
    size_t count = 0;
    if (user != NULL && box_control_slots(call, body, box_user_mailbox(user), &slots, &count)) {
        size_t deleted = 0;
        for (size_t i = 0; i < count; i++) {
            if (box_mailbox_at(box_user_mailbox(user), slots[i])->gone)
                continue; /* named twice */
            box_mailbox_remove(box_user_mailbox(user), slots[i]);
            deleted++;
        }
        box_call_reply(call, json_pack("{s:I}", "deleted", (json_int_t)deleted));
    }
}

void box_control_mail_label(struct box_call *call)
{
    static const char *const fields[] = {"user", "ids", "add", "remove", NULL};
    json_auto_t *body = box_control_body(call, fields);
    struct box_user *user = body == NULL ? NULL : box_control_user(call, body);
    uint32_t *slots = NULL;
    size_t count = 0;
    uint16_t add[BOX_MESSAGE_LABELS_MAX];
    uint16_t take[BOX_MESSAGE_LABELS_MAX];
    size_t add_count = 0;
    size_t take_count = 0;
    if (user != NULL && box_control_slots(call, body, box_user_mailbox(user), &slots, &count) &&
        box_control_labels(call, body, "add", box_user_mailbox(user), add, &add_count) &&
        box_control_labels(call, body, "remove", box_user_mailbox(user), take, &take_count)) {
        for (size_t i = 0; i < count; i++)
            box_mailbox_relabel(box_user_mailbox(user), slots[i], add, add_count, take, take_count);
        box_call_reply(call, json_pack("{s:I}", "messages", (json_int_t)count));
    }
}
