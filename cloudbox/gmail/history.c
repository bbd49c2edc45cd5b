/* history.c - history.list: what changed since a history id.
 *
 * One entry per record, ascending.  A page token holds the last record that
 * was looked at, so pages are exact whatever happens meanwhile: records are
 * only ever added behind it, or forgotten as a whole (404). */
#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "cloudbox/gmail/page.h"

static const struct {
    const char *type; /* as asked */
    const char *key;  /* as answered */
    box_change change;
} kinds[] = {
    {"messageAdded", "messagesAdded", BOX_CHANGE_ADDED},
    {"messageDeleted", "messagesDeleted", BOX_CHANGE_DELETED},
    {"labelAdded", "labelsAdded", BOX_CHANGE_LABELED},
    {"labelRemoved", "labelsRemoved", BOX_CHANGE_UNLABELED},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], CHANGES_ALL = 15 };

struct asked {
    uint64_t after;   /* startHistoryId */
    uint32_t changes; /* bits of box_change */
    bool by_label;
    uint32_t label;
    uint32_t page_size;
};

static bool start_read(struct box_call *call, uint64_t *after_out)
{
    const tide_text text = box_call_param(call, "startHistoryId");
    if (text.bytes == 0) {
        box_fail_argument(call, "Missing required parameter: startHistoryId");
        return false;
    }
    if (!tide_text_to_u64(text, after_out)) {
        box_fail_argument(call, "Invalid value for startHistoryId: %.*s",
                          (int)(text.bytes < 40 ? text.bytes : 40), text.data);
        return false;
    }
    return true;
}

static bool types_read(struct box_call *call, uint32_t *changes_out)
{
    uint32_t changes = 0;
    for (size_t i = 0; i < BOX_PARAMS_MAX; i++) {
        const tide_text type = box_call_param_at(call, "historyTypes", i);
        if (type.data == NULL)
            break;
        size_t kind = 0;
        while (kind < KINDS && !tide_text_equal(type, tide_text_of(kinds[kind].type)))
            kind++;
        if (kind == KINDS) {
            box_fail_argument(call, "Invalid value for historyTypes: %.*s",
                              (int)(type.bytes < 40 ? type.bytes : 40), type.data);
            return false;
        }
        changes |= kinds[kind].change;
    }
    *changes_out = changes != 0 ? changes : CHANGES_ALL;
    return true;
}

static bool label_read(struct box_call *call, struct asked *asked)
{
    const tide_text id = box_call_param(call, "labelId");
    asked->by_label = id.bytes > 0;
    if (!asked->by_label ||
        box_mailbox_label_by_id(box_user_mailbox(call->user), id, &asked->label))
        return true;
    box_fail_argument(call, "Invalid label: %.*s", (int)(id.bytes < 100 ? id.bytes : 100), id.data);
    return false;
}

static bool set_has(const box_mailbox *mailbox, uint32_t label_set, uint32_t label)
{
    size_t count = 0;
    const uint16_t *labels = box_mailbox_labels(mailbox, label_set, &count);
    for (size_t i = 0; i < count; i++)
        if (labels[i] == label)
            return true;
    return false;
}

static bool is_wanted(const struct asked *asked, const box_mailbox *mailbox,
                      const struct box_record *record)
{
    return (asked->changes & record->change) != 0 &&
           (!asked->by_label || set_has(mailbox, record->label_set, asked->label));
}

/* An array of one. */
static void set_single(json_t *object, const char *key, json_t *element)
{
    json_t *list = json_array();
    TIDE_ASSERT(list != NULL);
    TIDE_ASSERT(json_array_append_new(list, element) == 0);
    box_page_set_value(object, key, list);
}

static json_t *message_json(const struct box_message *message)
{
    json_t *json = json_object();
    TIDE_ASSERT(json != NULL);
    box_page_set_id(json, "id", message->id);
    box_page_set_id(json, "threadId", message->thread_id);
    return json;
}

static json_t *record_json(const box_mailbox *mailbox, const struct box_record *record)
{
    const struct box_message *message = box_mailbox_at(mailbox, record->slot);
    json_t *change = json_object();
    TIDE_ASSERT(change != NULL);
    json_t *inner = message_json(message);
    json_t *labels = box_gmail_label_ids(mailbox, record->label_set);
    if (labels != NULL)
        box_page_set_value(inner, "labelIds", labels);
    box_page_set_value(change, "message", inner);
    if (record->change == BOX_CHANGE_LABELED || record->change == BOX_CHANGE_UNLABELED)
        box_page_set_value(change, "labelIds", box_gmail_label_ids(mailbox, record->changed));

    json_t *entry = json_object();
    TIDE_ASSERT(entry != NULL);
    box_page_set_number(entry, "id", record->history_id);
    set_single(entry, "messages", message_json(message));
    for (size_t kind = 0; kind < KINDS; kind++)
        if (kinds[kind].change == record->change)
            set_single(entry, kinds[kind].key, change);
    return entry;
}

/* The records of a page, oldest first.  True: there is at least one behind it. */
static bool page_collect(const struct asked *asked, const box_mailbox *mailbox,
                         struct box_page_at *at, json_t *history)
{
    const uint32_t count = box_mailbox_history_count(mailbox);
    for (uint32_t i = box_mailbox_history_after(mailbox, at->first); i < count; i++) {
        const struct box_record *record = box_mailbox_history_at(mailbox, i);
        if (!is_wanted(asked, mailbox, record))
            continue;
        if (json_array_size(history) == asked->page_size)
            return true;
        TIDE_ASSERT(json_array_append_new(history, record_json(mailbox, record)) == 0);
        at->first = record->history_id;
    }
    return false;
}

void box_gmail_history_list(struct box_call *call)
{
    TIDE_ASSERT(call->user != NULL);
    const box_mailbox *mailbox = box_user_mailbox(call->user);
    struct asked asked = {0};
    if (!start_read(call, &asked.after) || !types_read(call, &asked.changes) ||
        !label_read(call, &asked) || !box_page_size(call, &asked.page_size))
        return;
    uint64_t key = box_page_key_number(box_page_key(call, "history"), asked.after);
    key = box_page_key_number(key, asked.changes);
    key = box_page_key_number(key, asked.by_label ? asked.label + 1 : 0);
    struct box_page_at at = {0, 0};
    if (!box_page_open(call, key, (struct box_page_at){asked.after, 0}, &at))
        return;

    /* An id that was never given out is treated like an expired one: the client syncs from
     * the start. */
    if (at.first == 0 || at.first < box_mailbox_history_oldest(mailbox) ||
        at.first > box_mailbox_history_id(mailbox) || box_page_fault(call, "history-expired")) {
        box_fail_missing(call);
        return;
    }
    const struct box_page_at start = at;
    json_t *answer = json_object();
    json_t *history = json_array();
    TIDE_ASSERT(answer != NULL && history != NULL);
    const bool more = page_collect(&asked, mailbox, &at, history);
    if (json_array_size(history) > 0)
        box_page_set_value(answer, "history", history);
    else
        json_decref(history);

    const bool restart = box_page_fault(call, "page-restart");
    const bool loop = box_page_fault(call, "page-loop");
    if (restart)
        at = (struct box_page_at){asked.after, 0};
    else if (loop)
        at = start;
    if (restart || loop || more) {
        char token[BOX_PAGE_TOKEN_BYTES];
        box_page_token(key, at, token);
        box_page_set(answer, "nextPageToken", token);
    }
    box_page_set_number(answer, "historyId", box_mailbox_history_id(mailbox));
    box_call_reply(call, answer);
}
