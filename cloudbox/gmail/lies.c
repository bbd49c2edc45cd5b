/* lies.c - Gmail's own faults: answers that look right and are not (short, empty or looping
 * listings, cut bodies, wrong history ids, messages that are denied).  A client that
 * believes them loses mail. */
#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/quota.h"

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

/* ---- which calls each can strike ---- */

static bool is_list(const struct box_call *call)
{
    return entries_of(call) != NULL;
}

static bool is_history(const struct box_call *call)
{
    return asks_for(call, "gmail.users.history.list");
}

static bool names_messages(const struct box_call *call)
{
    return asks_for(call, "gmail.users.messages.list") || is_history(call);
}

static bool has_history_id(const struct box_call *call)
{
    return asks_for(call, "gmail.users.getProfile") || is_history(call) ||
           asks_for(call, "gmail.users.messages.get");
}

static bool can_hide(const struct box_call *call)
{
    static const char messages[] = "gmail.users.messages.";
    return names_messages(call) ||
           (call->args_count > 0 && strncmp(call->method->name, messages, strlen(messages)) == 0);
}

static bool sends(const struct box_call *call)
{
    return asks_for(call, "gmail.users.messages.send") || asks_for(call, "gmail.users.drafts.send");
}

/* ---- sending ---- */

/* More mail than an account may send, in Google's words. */
static void answer_send_limit(struct box_call *call, const struct box_strike *strike)
{
    const uint64_t until_ms = call->now_ms + strike->ms;
    char time_text[BOX_TIME_TEXT_BYTES];
    box_time_text(until_ms, time_text);
    box_fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
             "User-rate limit exceeded.  Retry after %s (Mail sending)", time_text);
    box_quota_told(box_cloud_quota(call->cloud), call->user, call->now_ms, until_ms);
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

static void hide(const struct box_call *call, json_t *answer, const struct box_strike *strike)
{
    const char *name = entries_of(call);
    json_t *entries = json_object_get(answer, name);
    for (size_t i = json_array_size(entries); i > 0; i--) {
        const json_t *id =
            json_object_get(named_message(call, json_array_get(entries, i - 1)), "id");
        if (json_is_string(id) && strike->strikes_item(strike, (tide_text){json_string_value(id),
                                                                           json_string_length(id)}))
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

/* ---- the table ---- */

typedef enum lie {
    HISTORY_EXPIRED,
    LIST_EMPTY,
    LIST_SHORT,
    RAW_HALF,
    RAW_EMPTY,
    HISTORY_GARBLED,
    HISTORY_AHEAD,
    ID_GARBLED,
    HIDDEN,
    PAGE_LOOP,
    PAGE_RESTART,
    LIST_SHIFT,
    SEND_LIMIT,
    LIES,
} lie;
_Static_assert((int)LIES == BOX_GMAIL_FAULTS, "gmail.h counts them");

/* Changes an answer that the handler gave; an error is left as it is. */
static void change(struct box_call *call, const struct box_strike *strike)
{
    json_t *answer = NULL;
    if (call->answer->status != 200 ||
        tide_json_parse(tide_buf_text(&call->answer->body), &answer, NULL) != TIDE_OK)
        return;
    const lie which = (lie)(strike->fault - box_gmail_faults);
    switch (which) {
    case LIST_EMPTY:
    case LIST_SHORT:
        cut_list(call, answer, which == LIST_EMPTY);
        break;
    case RAW_HALF:
    case RAW_EMPTY:
        cut_raw(answer, which == RAW_EMPTY);
        break;
    case HISTORY_GARBLED:
    case HISTORY_AHEAD:
        change_history_id(answer, which == HISTORY_GARBLED);
        break;
    case ID_GARBLED:
        garble_id(call, answer, strike->rng);
        break;
    default:
        TIDE_ASSERT(which == HIDDEN);
        hide(call, answer, strike);
        break;
    }
    box_answer_json(call->answer, 200, answer, false);
}

const struct box_fault box_gmail_faults[BOX_GMAIL_FAULTS] = {
    [HISTORY_EXPIRED] = {"history-expired", BOX_ANSWERS,
                         .problem = {404, "global", "notFound", "NOT_FOUND",
                                     "Requested entity was not found."},
                         .fits = is_history},
    [LIST_EMPTY] = {"list-empty", BOX_SPOILS, .fits = is_list, .act = change},
    [LIST_SHORT] = {"list-short", BOX_SPOILS, .fits = is_list, .act = change},
    [RAW_HALF] = {"raw-half", BOX_SPOILS, .fits = asks_for_raw, .act = change},
    [RAW_EMPTY] = {"raw-empty", BOX_SPOILS, .fits = asks_for_raw, .act = change},
    [HISTORY_GARBLED] = {"history-garbled", BOX_SPOILS, .fits = has_history_id, .act = change},
    [HISTORY_AHEAD] = {"history-ahead", BOX_SPOILS, .fits = has_history_id, .act = change},
    [ID_GARBLED] = {"id-garbled", BOX_SPOILS, .fits = names_messages, .act = change},
    [HIDDEN] = {"hidden", BOX_SPOILS, .means = BOX_BY_ITEM | BOX_HIDES_ITEM, .fits = can_hide,
                .act = change},
    [PAGE_LOOP] = {"page-loop", BOX_ASKED, .takes = 0},
    [PAGE_RESTART] = {"page-restart", BOX_ASKED, .takes = 0},
    [LIST_SHIFT] = {"list-shift", BOX_ASKED, .takes = 0},
    [SEND_LIMIT] = {"send-limit", BOX_ANSWERS, BOX_TAKES_MS, 60000, .fits = sends,
                    .act = answer_send_limit},
};
