/* Every change as JSON, and back (BMBX6).
 *
 * A report names the ids the change led to.  A replay draws them again and
 * refuses a report whose ids differ, before anything is changed: a journal that
 * was kept for another seed, count or version must not be applied in part. */
#include "base/check.h"
#include "base/json.h"
#include "cloudbox/gate/http.h"
#include "cloudbox/mailbox/inside.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- reporting ---- */

static void put(json_t *object, const char *key, json_t *value)
{
    TIDE_ASSERT(value != NULL);
    TIDE_ASSERT(json_object_set_new(object, key, value) == 0);
}

static void put_number(json_t *object, const char *key, uint64_t number)
{
    TIDE_ASSERT(number <= INT64_MAX);
    put(object, key, json_integer((json_int_t)number));
}

static void put_id(json_t *object, const char *key, uint64_t id)
{
    char text[BOX_ID_TEXT_BYTES];
    box_id_text(id, text);
    put(object, key, json_string(text));
}

static void put_draft(json_t *object, const box_mailbox *mailbox, uint32_t draft)
{
    char text[BOX_ID_TEXT_BYTES];
    (void)snprintf(text, sizeof text, "r%" PRIu64, mailbox->drafts[draft].id);
    put(object, "draft", json_string(text));
}

static void put_labels(json_t *object, const box_mailbox *mailbox, uint32_t set)
{
    size_t count;
    const uint16_t *labels = box_mailbox_labels(mailbox, set, &count);
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        TIDE_ASSERT(json_array_append_new(array, json_integer(labels[i])) == 0);
    put(object, "labels", array);
}

static json_t *report_new(const box_mailbox *mailbox, const char *op)
{
    json_t *change = json_object();
    put(change, "op", json_string(op));
    put_number(change, "at_ms", mailbox->now_ms);
    put_number(change, "history_id", mailbox->history_last);
    return change;
}

static void report(const box_mailbox *mailbox, json_t *change)
{
    mailbox->spec.changed(mailbox->spec.changed_arg, change);
}

void box_report_insert(box_mailbox *mailbox, const char *op, uint32_t slot, uint32_t draft)
{
    if (mailbox->spec.changed == NULL)
        return;
    const struct box_message *message = &mailbox->slots[slot];
    json_t *change = report_new(mailbox, op);
    if (draft != BOX_SLOT_NONE)
        put_draft(change, mailbox, draft);
    put_id(change, "id", message->id);
    put_id(change, "thread", message->thread_id);
    put_number(change, "date_ms", message->date_ms);
    put_labels(change, mailbox, message->label_set);

    tide_text raw = box_mailbox_raw(mailbox, slot, NULL); /* just stored */
    tide_auto_buf text = tide_buf_heap(raw.bytes / 3 * 4 + 64);
    box_add_base64(&text, raw);
    put(change, "raw", json_stringn_nocheck(tide_buf_cstr(&text), text.bytes));
    report(mailbox, change);
}

void box_report_message(box_mailbox *mailbox, const char *op, uint32_t slot, bool labels)
{
    if (mailbox->spec.changed == NULL)
        return;
    json_t *change = report_new(mailbox, op);
    put_id(change, "id", mailbox->slots[slot].id);
    if (labels)
        put_labels(change, mailbox, mailbox->slots[slot].label_set);
    report(mailbox, change);
}

void box_report_label(box_mailbox *mailbox, const char *op, uint32_t number)
{
    if (mailbox->spec.changed == NULL)
        return;
    const struct box_label *label = box_mailbox_label(mailbox, number);
    json_t *change = report_new(mailbox, op);
    put_number(change, "label", number);
    if (!label->gone) {
        put(change, "name", json_string(label->name));
        put(change, "list_visibility", json_string(label->list_visibility));
        put(change, "message_visibility", json_string(label->message_visibility));
        put(change, "text_color", json_string(label->text_color));
        put(change, "background_color", json_string(label->background_color));
    }
    report(mailbox, change);
}

void box_report_draft(box_mailbox *mailbox, const char *op, uint32_t draft, uint32_t slot)
{
    if (mailbox->spec.changed == NULL)
        return;
    json_t *change = report_new(mailbox, op);
    put_draft(change, mailbox, draft);
    put_id(change, "id", mailbox->slots[slot].id);
    if (!mailbox->slots[slot].gone)
        put_number(change, "date_ms", mailbox->slots[slot].date_ms);
    report(mailbox, change);
}

void box_report_expire(box_mailbox *mailbox)
{
    if (mailbox->spec.changed != NULL)
        report(mailbox, report_new(mailbox, "history_expire"));
}

/* ---- replaying ---- */

struct replay {
    box_mailbox *mailbox;
    const json_t *change;
    tide_error *err;
    int variant; /* of operations that share a function */
};

static tide_status misfit(const struct replay *replay, const char *field)
{
    return tide_error_set(replay->err, TIDE_CORRUPT, "a change does not fit the mailbox: %s",
                          field);
}

static tide_status get_number(const struct replay *replay, const char *key, uint64_t *number_out)
{
    return tide_json_get_u64(replay->change, key, number_out, replay->err);
}

/* The change must lead to the history id that it led to before. */
static tide_status expect_history(const struct replay *replay, uint32_t steps)
{
    uint64_t history_id;
    tide_status rc = get_number(replay, "history_id", &history_id);
    if (rc == TIDE_OK && history_id != box_history_ahead(replay->mailbox, steps))
        rc = misfit(replay, "history_id");
    return rc;
}

static tide_status get_id(const struct replay *replay, const char *key, uint64_t *id_out)
{
    tide_text text;
    tide_status rc = tide_json_get_text(replay->change, key, &text, replay->err);
    if (rc == TIDE_OK && !box_id_parse(text, id_out))
        rc = misfit(replay, key);
    return rc;
}

static tide_status get_slot(const struct replay *replay, uint32_t *slot_out)
{
    uint64_t id;
    tide_status rc = get_id(replay, "id", &id);
    if (rc != TIDE_OK)
        return rc;
    uint32_t slot = box_slot_of_id(replay->mailbox, id);
    if (slot == BOX_SLOT_NONE || replay->mailbox->slots[slot].gone)
        return misfit(replay, "id");
    *slot_out = slot;
    return TIDE_OK;
}

/* The id a new message will get must be the one it had. */
static tide_status expect_id(const struct replay *replay, uint64_t *id_out)
{
    const box_mailbox *mailbox = replay->mailbox;
    tide_status rc = get_id(replay, "id", id_out);
    if (rc == TIDE_OK &&
        *id_out != box_draw_id(mailbox->spec.seed, mailbox->id_last, mailbox->now_ms))
        rc = misfit(replay, "id");
    return rc;
}

static tide_status get_draft(const struct replay *replay, uint32_t *draft_out)
{
    tide_text text;
    tide_status rc = tide_json_get_text(replay->change, "draft", &text, replay->err);
    if (rc != TIDE_OK)
        return rc;
    uint32_t draft = box_mailbox_draft_find(replay->mailbox, text);
    if (draft == BOX_SLOT_NONE)
        return misfit(replay, "draft");
    *draft_out = draft;
    return TIDE_OK;
}

static tide_status get_set(const struct replay *replay, uint32_t *set_out)
{
    const json_t *array;
    tide_status rc = tide_json_get_array(replay->change, "labels", &array, replay->err);
    if (rc != TIDE_OK)
        return rc;
    uint16_t labels[BOX_MESSAGE_LABELS_MAX];
    size_t count = json_array_size(array);
    if (count > BOX_MESSAGE_LABELS_MAX)
        return misfit(replay, "labels");
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(array, i);
        json_int_t number = json_integer_value(item);
        if (!json_is_integer(item) || number < 0 || number > UINT16_MAX ||
            !box_labels_live(replay->mailbox, (uint32_t)number))
            return misfit(replay, "labels");
        labels[i] = (uint16_t)number;
    }
    *set_out = box_sets_change(replay->mailbox, 0, labels, count, NULL, 0);
    return TIDE_OK;
}

struct newcomer {
    uint64_t date_ms;
    uint32_t set;
    uint32_t root;
    tide_buf raw;
};

static tide_status get_newcomer(const struct replay *replay, struct newcomer *newcomer)
{
    uint64_t id = 0;
    uint64_t thread_id = 0;
    tide_text text = TIDE_TEXT_NONE;
    tide_status rc = expect_id(replay, &id);
    if (rc == TIDE_OK)
        rc = get_id(replay, "thread", &thread_id);
    if (rc == TIDE_OK)
        rc = get_number(replay, "date_ms", &newcomer->date_ms);
    if (rc == TIDE_OK)
        rc = get_set(replay, &newcomer->set);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(replay->change, "raw", &text, replay->err);
    if (rc == TIDE_OK && !box_base64_decode(text, &newcomer->raw))
        rc = misfit(replay, "raw");
    if (rc != TIDE_OK)
        return rc;
    newcomer->root = thread_id == id ? BOX_SLOT_NONE : box_thread_root(replay->mailbox, thread_id);
    if (thread_id != id && newcomer->root == BOX_SLOT_NONE)
        return misfit(replay, "thread");
    return TIDE_OK;
}

static tide_status expect_new_draft(const struct replay *replay)
{
    const box_mailbox *mailbox = replay->mailbox;
    tide_text text;
    tide_status rc = tide_json_get_text(replay->change, "draft", &text, replay->err);
    if (rc != TIDE_OK)
        return rc;
    uint64_t last = mailbox->drafts_count == 0 ? 0 : mailbox->drafts[mailbox->drafts_count - 1].id;
    char expected[BOX_ID_TEXT_BYTES];
    (void)snprintf(expected, sizeof expected, "r%" PRIu64,
                   box_draw_draft_id(mailbox->spec.seed, last));
    return tide_text_equal(text, tide_text_of(expected)) ? TIDE_OK : misfit(replay, "draft");
}

enum arrival { ARRIVES_ALONE, ARRIVES_AS_DRAFT, ARRIVES_FOR_DRAFT };

static tide_status replay_arrival(const struct replay *replay)
{
    const enum arrival arrival = (enum arrival)replay->variant;
    box_mailbox *mailbox = replay->mailbox;
    struct newcomer new = {0};
    uint32_t draft = 0;
    tide_buf_init(&new.raw, tide_mem_heap(), BOX_BODY_BYTES_MAX);
    tide_status rc = get_newcomer(replay, &new);
    if (rc == TIDE_OK && arrival == ARRIVES_AS_DRAFT)
        rc = expect_new_draft(replay);
    if (rc == TIDE_OK && arrival == ARRIVES_FOR_DRAFT)
        rc = get_draft(replay, &draft);
    if (rc == TIDE_OK)
        rc = expect_history(replay, arrival == ARRIVES_FOR_DRAFT ? 2 : 1);
    tide_text raw = tide_buf_text(&new.raw);
    if (rc == TIDE_OK && arrival == ARRIVES_ALONE)
        (void)box_apply_insert(mailbox, raw, new.date_ms, new.set, new.root);
    if (rc == TIDE_OK && arrival == ARRIVES_AS_DRAFT)
        (void)box_apply_draft_create(mailbox, raw, new.date_ms, new.set, new.root);
    if (rc == TIDE_OK && arrival == ARRIVES_FOR_DRAFT)
        box_apply_draft_update(mailbox, draft, raw, new.date_ms, new.set, new.root);
    tide_buf_done(&new.raw);
    return rc;
}

static tide_status replay_draft_remove(const struct replay *replay)
{
    uint32_t draft = 0;
    uint32_t slot = 0;
    tide_status rc = get_draft(replay, &draft);
    if (rc == TIDE_OK)
        rc = get_slot(replay, &slot);
    if (rc == TIDE_OK && slot != replay->mailbox->drafts[draft].slot)
        rc = misfit(replay, "id");
    if (rc == TIDE_OK)
        rc = expect_history(replay, 1);
    if (rc == TIDE_OK)
        box_apply_remove(replay->mailbox, slot);
    return rc;
}

static tide_status replay_draft_send(const struct replay *replay)
{
    uint32_t draft = 0;
    uint64_t id;
    uint64_t date_ms = 0;
    tide_status rc = get_draft(replay, &draft);
    if (rc == TIDE_OK)
        rc = expect_id(replay, &id);
    if (rc == TIDE_OK)
        rc = get_number(replay, "date_ms", &date_ms);
    if (rc == TIDE_OK)
        rc = expect_history(replay, 2);
    if (rc == TIDE_OK)
        (void)box_apply_draft_send(replay->mailbox, draft, date_ms);
    return rc;
}

static tide_status replay_relabel(const struct replay *replay)
{
    uint32_t slot = 0;
    uint32_t set = 0;
    tide_status rc = get_slot(replay, &slot);
    if (rc == TIDE_OK)
        rc = get_set(replay, &set);
    if (rc == TIDE_OK)
        rc = expect_history(replay, box_relabel_steps(replay->mailbox, slot, set));
    if (rc == TIDE_OK && set == replay->mailbox->slots[slot].label_set)
        rc = misfit(replay, "labels"); /* what changes nothing was never reported */
    if (rc == TIDE_OK)
        box_apply_relabel(replay->mailbox, slot, set);
    return rc;
}

static tide_status replay_remove(const struct replay *replay)
{
    uint32_t slot = 0;
    tide_status rc = get_slot(replay, &slot);
    if (rc == TIDE_OK)
        rc = expect_history(replay, 1);
    if (rc == TIDE_OK)
        box_apply_remove(replay->mailbox, slot);
    return rc;
}

static tide_status get_label_text(const struct replay *replay, const char *key, char *text_out,
                                  size_t text_bytes)
{
    tide_text text;
    tide_status rc = tide_json_get_text(replay->change, key, &text, replay->err);
    if (rc != TIDE_OK)
        return rc;
    if (text.bytes >= text_bytes || memchr(text.data, '\0', text.bytes) != NULL)
        return misfit(replay, key);
    memcpy(text_out, text.data, text.bytes);
    text_out[text.bytes] = '\0';
    return TIDE_OK;
}

enum { LABEL_CHANGED, LABEL_NEW };

#define GET_TEXT(field) get_label_text(replay, #field, wanted.field, sizeof wanted.field)

static tide_status replay_label(const struct replay *replay)
{
    const bool fresh = replay->variant == LABEL_NEW;
    struct box_label wanted = {0};
    uint64_t number = 0;
    tide_status rc = get_number(replay, "label", &number);
    size_t count = replay->mailbox->labels_count;
    if (rc == TIDE_OK && (fresh ? number != count : number >= count))
        rc = misfit(replay, "label");
    if (rc == TIDE_OK)
        rc = GET_TEXT(name);
    if (rc == TIDE_OK)
        rc = GET_TEXT(list_visibility);
    if (rc == TIDE_OK)
        rc = GET_TEXT(message_visibility);
    if (rc == TIDE_OK)
        rc = GET_TEXT(text_color);
    if (rc == TIDE_OK)
        rc = GET_TEXT(background_color);
    if (rc == TIDE_OK)
        rc = expect_history(replay, 0);
    if (rc == TIDE_OK && box_apply_label(replay->mailbox, (uint32_t)number, &wanted) != TIDE_OK)
        rc = misfit(replay, "name");
    return rc;
}

static tide_status replay_label_remove(const struct replay *replay)
{
    box_mailbox *mailbox = replay->mailbox;
    uint64_t number = 0;
    tide_status rc = get_number(replay, "label", &number);
    if (rc == TIDE_OK && (number < BOX_LABELS_SYSTEM || number >= mailbox->labels_count ||
                          mailbox->labels[number].face.gone))
        rc = misfit(replay, "label");
    if (rc == TIDE_OK)
        rc = expect_history(replay, mailbox->labels[number].face.messages);
    if (rc == TIDE_OK)
        box_apply_label_remove(mailbox, (uint32_t)number);
    return rc;
}

static tide_status replay_expire(const struct replay *replay)
{
    tide_status rc = expect_history(replay, 1);
    if (rc == TIDE_OK)
        box_apply_expire_all(replay->mailbox);
    return rc;
}

static const struct {
    const char *op;
    tide_status (*replay)(const struct replay *replay);
    int variant;
} replays[] = {
    {"insert", replay_arrival, ARRIVES_ALONE},
    {"relabel", replay_relabel, 0},
    {"remove", replay_remove, 0},
    {"label_create", replay_label, LABEL_NEW},
    {"label_update", replay_label, LABEL_CHANGED},
    {"label_remove", replay_label_remove, 0},
    {"draft_create", replay_arrival, ARRIVES_AS_DRAFT},
    {"draft_update", replay_arrival, ARRIVES_FOR_DRAFT},
    {"draft_remove", replay_draft_remove, 0},
    {"draft_send", replay_draft_send, 0},
    {"history_expire", replay_expire, 0},
};

tide_status box_mailbox_replay(box_mailbox *mailbox, const json_t *change, tide_error *err)
{
    struct replay replay = {mailbox, change, err, 0};
    tide_text op;
    uint64_t at_ms;
    tide_status rc = tide_json_get_text(change, "op", &op, err);
    if (rc == TIDE_OK)
        rc = get_number(&replay, "at_ms", &at_ms);
    if (rc != TIDE_OK)
        return rc;
    for (size_t i = 0; i < sizeof replays / sizeof *replays; i++) {
        if (!tide_text_equal(op, tide_text_of(replays[i].op)))
            continue;
        uint64_t clock_ms = mailbox->now_ms;
        mailbox->now_ms = at_ms; /* as it was then; ids depend on it */
        replay.variant = replays[i].variant;
        rc = replays[i].replay(&replay);
        if (rc != TIDE_OK)
            mailbox->now_ms = clock_ms;
        return rc;
    }
    return tide_error_set(err, TIDE_INVALID, "an unknown change: %.*s",
                          op.bytes > 40 ? 40 : (int)op.bytes, op.data);
}
