#include "cloud/gmail_answer.h"

#include "base/check.h"

#include <string.h>

/* ---- fields ---- */

/* Absent is success, and leaves the output unchanged.  A wrong type is the server's fault and
 * may be right next time. */
static tide_status optional(tide_status rc, tide_error *err)
{
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    if (rc == TIDE_INVALID && err != NULL)
        err->status = TIDE_SERVER;
    return rc == TIDE_INVALID ? TIDE_SERVER : rc;
}

tide_status tide_gmail_field_text(const json_t *object, const char *key, tide_text *text_out,
                                  tide_error *err)
{
    return optional(tide_json_get_text(object, key, text_out, err), err);
}

tide_status tide_gmail_field_array(const json_t *object, const char *key, const json_t **array_out,
                                   tide_error *err)
{
    return optional(tide_json_get_array(object, key, array_out, err), err);
}

tide_status tide_gmail_field_object(const json_t *object, const char *key,
                                    const json_t **object_out, tide_error *err)
{
    return optional(tide_json_get_object(object, key, object_out, err), err);
}

static tide_status copy_of(const json_t *object, const char *key, char *copy, size_t room,
                           tide_error *err)
{
    tide_text text = TIDE_TEXT("");
    TIDE_TRY(tide_gmail_field_text(object, key, &text, err));
    if (text.bytes >= room)
        return tide_error_set(err, TIDE_SERVER, "field \"%s\" has %zu bytes", key, text.bytes);
    memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    return TIDE_OK;
}

/* 64-bit numbers arrive as texts; short ones from emulators also as numbers. */
static tide_status i64_of(const json_t *object, const char *key, int64_t *number_out,
                          tide_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL || json_is_null(value))
        return TIDE_OK;
    if (json_is_integer(value)) {
        *number_out = json_integer_value(value);
        return TIDE_OK;
    }
    const tide_text text = {json_string_value(value), json_string_length(value)};
    if (!json_is_string(value) || !tide_text_to_i64(text, number_out))
        return tide_error_set(err, TIDE_SERVER, "field \"%s\" is not a whole number", key);
    return TIDE_OK;
}

static tide_status texts_check(const json_t *array, const char *key, tide_error *err)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        if (!json_is_string(json_array_get(array, i)))
            return tide_error_set(err, TIDE_SERVER, "\"%s\" contains a value that is not a string",
                                  key);
    return TIDE_OK;
}

/* Checks that every element is an object with a text that is not empty. */
static tide_status named_check(const json_t *array, const char *list, const char *key,
                               tide_error *err)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *element = json_array_get(array, i);
        if (!json_is_object(element) || json_string_length(json_object_get(element, key)) == 0)
            return tide_error_set(err, TIDE_SERVER, "an entry of \"%s\" has no \"%s\"", list, key);
    }
    return TIDE_OK;
}

/* ---- answers ---- */

tide_status tide_gmail_answer_profile(const json_t *value, struct tide_gmail_profile *profile_out,
                                      tide_error *err)
{
    struct tide_gmail_profile profile = {.messages = 0};
    int64_t messages = 0;
    TIDE_TRY(copy_of(value, "emailAddress", profile.email, sizeof profile.email, err));
    TIDE_TRY(copy_of(value, "historyId", profile.history_id, sizeof profile.history_id, err));
    TIDE_TRY(i64_of(value, "messagesTotal", &messages, err));
    if (messages < 0)
        return tide_error_set(err, TIDE_SERVER, "field \"messagesTotal\" is negative");
    profile.messages = (uint64_t)messages;
    *profile_out = profile;
    return TIDE_OK;
}

tide_status tide_gmail_answer_page(json_t *value, struct tide_gmail_page *page_out, tide_error *err)
{
    struct tide_gmail_page page = {.value = value, .next = TIDE_TEXT("")};
    TIDE_TRY(tide_gmail_field_array(value, "messages", &page.ids, err));
    TIDE_TRY(named_check(page.ids, "messages", "id", err));
    TIDE_TRY(tide_gmail_field_text(value, "nextPageToken", &page.next, err));
    if (json_array_size(page.ids) == 0)
        page.ids = NULL;
    *page_out = page;
    return TIDE_OK;
}

/* [{"message":{"id",...,"labelIds":[]},"labelIds":[]}]; the outer labelIds are required in the
 * two kinds of label changes. */
static tide_status changes_check(const json_t *record, const char *kind, bool of_labels,
                                 tide_error *err)
{
    const json_t *changes = NULL;
    tide_status rc = tide_gmail_field_array(record, kind, &changes, err);
    for (size_t i = 0; rc == TIDE_OK && i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i);
        const json_t *message = json_object_get(change, "message");
        const json_t *labels = NULL;
        if (json_string_length(json_object_get(message, "id")) == 0)
            return tide_error_set(err, TIDE_SERVER, "an entry of \"%s\" names no message", kind);
        rc = tide_gmail_field_array(message, "labelIds", &labels, err);
        if (rc == TIDE_OK)
            rc = texts_check(labels, "labelIds", err);
        labels = NULL;
        if (rc == TIDE_OK)
            rc = tide_gmail_field_array(change, "labelIds", &labels, err);
        if (rc == TIDE_OK)
            rc = texts_check(labels, "labelIds", err);
        if (rc == TIDE_OK && of_labels && labels == NULL)
            rc = tide_error_set(err, TIDE_SERVER, "an entry of \"%s\" names no label", kind);
    }
    return rc;
}

static tide_status record_check(const json_t *record, tide_error *err)
{
    if (!json_is_object(record))
        return tide_error_set(err, TIDE_SERVER, "a record of \"history\" is not an object");
    tide_text id;
    TIDE_TRY(tide_gmail_field_text(record, "id", &id, err));
    TIDE_TRY(changes_check(record, "messagesAdded", false, err));
    TIDE_TRY(changes_check(record, "messagesDeleted", false, err));
    TIDE_TRY(changes_check(record, "labelsAdded", true, err));
    return changes_check(record, "labelsRemoved", true, err);
}

tide_status tide_gmail_answer_history(json_t *value, struct tide_gmail_history *history_out,
                                      tide_error *err)
{
    struct tide_gmail_history history = {
        .value = value, .next = TIDE_TEXT(""), .history_id = TIDE_TEXT("")};
    TIDE_TRY(tide_gmail_field_array(value, "history", &history.records, err));
    for (size_t i = 0; i < json_array_size(history.records); i++)
        TIDE_TRY(record_check(json_array_get(history.records, i), err));
    TIDE_TRY(tide_gmail_field_text(value, "nextPageToken", &history.next, err));
    TIDE_TRY(tide_gmail_field_text(value, "historyId", &history.history_id, err));
    if (json_array_size(history.records) == 0)
        history.records = NULL;
    *history_out = history;
    return TIDE_OK;
}

tide_status tide_gmail_answer_id(const json_t *value, tide_text *id_out, tide_error *err)
{
    tide_text id = TIDE_TEXT("");
    TIDE_TRY(tide_gmail_field_text(value, "id", &id, err));
    if (id.bytes == 0)
        return tide_error_set(err, TIDE_SERVER, "field \"id\" is missing");
    *id_out = id;
    return TIDE_OK;
}

tide_status tide_gmail_answer_message(json_t *value, tide_text id,
                                      struct tide_gmail_message *message_out, tide_error *err)
{
    tide_text seen = TIDE_TEXT(""), thread_id = TIDE_TEXT(""), history_id = TIDE_TEXT("");
    const json_t *labels = NULL;
    int64_t internal_ms = 0;
    TIDE_TRY(tide_gmail_answer_id(value, &seen, err));
    if (!tide_text_equal(seen, id))
        return tide_error_set(err, TIDE_SERVER, "the answer is about message \"%.60s\"", seen.data);
    TIDE_TRY(tide_gmail_field_text(value, "threadId", &thread_id, err));
    TIDE_TRY(tide_gmail_field_text(value, "historyId", &history_id, err));
    TIDE_TRY(i64_of(value, "internalDate", &internal_ms, err));
    TIDE_TRY(tide_gmail_field_array(value, "labelIds", &labels, err));
    TIDE_TRY(texts_check(labels, "labelIds", err));
    message_out->id = seen;
    message_out->thread_id = thread_id;
    message_out->history_id = history_id;
    message_out->internal_ms = internal_ms;
    const json_int_t estimate = json_integer_value(json_object_get(value, "sizeEstimate"));
    message_out->size_estimate = estimate > 0 ? (uint64_t)estimate : 0;
    message_out->labels = json_object_get(value, "labelIds");
    if (json_array_size(message_out->labels) == 0)
        message_out->labels = NULL;
    message_out->fields = value;
    return TIDE_OK;
}

tide_status tide_gmail_answer_labels(const json_t *value, tide_error *err)
{
    const json_t *labels = NULL;
    TIDE_TRY(tide_gmail_field_array(value, "labels", &labels, err));
    TIDE_TRY(named_check(labels, "labels", "id", err));
    return named_check(labels, "labels", "name", err);
}
