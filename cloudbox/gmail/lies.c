#include "cloudbox/gmail/lies.h"

#include "base/check.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* The lists of Gmail and how their answers name the entries. */
static const struct {
    const char *method;
    const char *entries;
} lists[] = {
    {"gmail.users.messages.list", "messages"}, {"gmail.users.history.list", "history"},
    {"gmail.users.threads.list", "threads"},   {"gmail.users.drafts.list", "drafts"},
    {"gmail.users.labels.list", "labels"},
};

/* NULL: it is no list. */
static const char *entries_of(const struct box_call *call)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (strcmp(lists[i].method, call->method->name) == 0)
            return lists[i].entries;
    return NULL;
}

static bool asks_for(const struct box_call *call, const char *method)
{
    return strcmp(call->method->name, method) == 0;
}

static bool asks_for_raw(const struct box_call *call)
{
    const tide_text format = box_call_param(call, "format");
    return asks_for(call, "gmail.users.messages.get") && format.bytes == 3 &&
           strncasecmp(format.data, "raw", 3) == 0;
}

bool box_fault_can_lie(box_fault fault, const struct box_call *call)
{
    const bool names_messages =
        asks_for(call, "gmail.users.messages.list") || asks_for(call, "gmail.users.history.list");
    switch (fault) {
    case BOX_FAULT_LIST_EMPTY:
    case BOX_FAULT_LIST_SHORT:
        return entries_of(call) != NULL;
    case BOX_FAULT_RAW_HALF:
    case BOX_FAULT_RAW_EMPTY:
        return asks_for_raw(call);
    case BOX_FAULT_HISTORY_GARBLED:
    case BOX_FAULT_HISTORY_AHEAD:
        return asks_for(call, "gmail.users.getProfile") ||
               asks_for(call, "gmail.users.history.list") ||
               asks_for(call, "gmail.users.messages.get");
    case BOX_FAULT_ID_GARBLED:
        return names_messages;
    case BOX_FAULT_HIDDEN:
        return names_messages ||
               (call->args_count > 0 && strncmp(call->method->name, "gmail.users.messages.",
                                                strlen("gmail.users.messages.")) == 0);
    default:
        return true;
    }
}

/* ---- listings ---- */

/* The page ends early, and no other follows it. */
static void cut_list(const struct box_call *call, json_t *answer, bool all)
{
    const char *name = entries_of(call);
    json_t *entries = json_object_get(answer, name);
    const size_t kept = all ? 0 : json_array_size(entries) / 2;
    while (json_array_size(entries) > kept)
        (void)json_array_remove(entries, json_array_size(entries) - 1);
    if (kept == 0)
        (void)json_object_del(answer, name); /* as Google leaves out what is empty */
    (void)json_object_del(answer, "nextPageToken");
    if (json_object_get(answer, "resultSizeEstimate") != NULL)
        (void)json_object_set_new(answer, "resultSizeEstimate", json_integer((json_int_t)kept));
}

/* The id of a message in an entry of messages.list, or in a record of history.list. */
static json_t *named_message(const struct box_call *call, json_t *entry)
{
    if (!asks_for(call, "gmail.users.history.list"))
        return entry;
    static const char *const changes[] = {"messagesAdded", "messagesDeleted", "labelsAdded",
                                          "labelsRemoved"};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        json_t *list = json_object_get(entry, changes[i]);
        if (json_array_size(list) > 0)
            return json_object_get(json_array_get(list, 0), "message");
    }
    return NULL;
}

static void garble_id(const struct box_call *call, json_t *answer, tide_rng *rng)
{
    static const char *const ids[] = {
        "",
        "../../../tmp/x",
        "zz",
        "0",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    };
    json_t *entries = json_object_get(answer, entries_of(call));
    if (json_array_size(entries) == 0)
        return;
    json_t *entry = json_array_get(entries, (size_t)tide_rng_below(rng, json_array_size(entries)));
    json_t *message = named_message(call, entry);
    if (message == NULL)
        return;
    const char *id = ids[tide_rng_below(rng, sizeof ids / sizeof ids[0])];
    (void)json_object_set_new(message, "id", json_string(id));
}

static void hide(const struct box_call *call, json_t *answer, box_hides *hides, const void *arg)
{
    const char *name = entries_of(call);
    json_t *entries = json_object_get(answer, name);
    for (size_t i = json_array_size(entries); i > 0; i--) {
        const json_t *id =
            json_object_get(named_message(call, json_array_get(entries, i - 1)), "id");
        if (json_is_string(id) &&
            hides(arg, (tide_text){json_string_value(id), json_string_length(id)}))
            (void)json_array_remove(entries, i - 1);
    }
    if (entries != NULL && json_array_size(entries) == 0)
        (void)json_object_del(answer, name);
}

/* ---- bodies and history ids ---- */

/* Cut where base64 can be cut, so that the text still decodes. */
static void cut_raw(json_t *answer, bool all)
{
    const json_t *raw = json_object_get(answer, "raw");
    if (!json_is_string(raw))
        return;
    const size_t kept = all ? 0 : json_string_length(raw) / 2 / 4 * 4;
    (void)json_object_set_new(answer, "raw", json_stringn(json_string_value(raw), kept));
}

static void change_history_id(json_t *answer, bool garbled)
{
    const json_t *id = json_object_get(answer, "historyId");
    if (!json_is_string(id))
        return;
    char text[64];
    uint64_t number = 0;
    if (garbled) {
        (void)snprintf(text, sizeof text, "%.20sx!", json_string_value(id));
    } else {
        TIDE_ASSERT(tide_text_to_u64(tide_text_of(json_string_value(id)), &number));
        (void)snprintf(text, sizeof text, "%" PRIu64, number + 1000000);
    }
    (void)json_object_set_new(answer, "historyId", json_string(text));
}

void box_fault_lie(struct box_call *call, box_fault fault, tide_rng *rng, box_hides *hides,
                   const void *hides_arg)
{
    json_t *answer = NULL;
    if (call->answer->status != 200 ||
        tide_json_parse(tide_buf_text(&call->answer->body), &answer, NULL) != TIDE_OK)
        return;
    switch (fault) {
    case BOX_FAULT_LIST_EMPTY:
    case BOX_FAULT_LIST_SHORT:
        cut_list(call, answer, fault == BOX_FAULT_LIST_EMPTY);
        break;
    case BOX_FAULT_RAW_HALF:
    case BOX_FAULT_RAW_EMPTY:
        cut_raw(answer, fault == BOX_FAULT_RAW_EMPTY);
        break;
    case BOX_FAULT_HISTORY_GARBLED:
    case BOX_FAULT_HISTORY_AHEAD:
        change_history_id(answer, fault == BOX_FAULT_HISTORY_GARBLED);
        break;
    case BOX_FAULT_ID_GARBLED:
        garble_id(call, answer, rng);
        break;
    default:
        TIDE_ASSERT(fault == BOX_FAULT_HIDDEN);
        hide(call, answer, hides, hides_arg);
        break;
    }
    box_answer_json(call->answer, 200, answer, false);
}
