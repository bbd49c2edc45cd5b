#include "cloud/gmail_methods.h"

#include "base/check.h"
#include "cloud/gmail_answer.h"
#include "cloud/gmail_raw.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGE_BYTES_MAX = 4 << 20,
    LABELS_BYTES_MAX = 16 << 20,
    HISTORY_BYTES_MAX = 64 << 20, /* one record may name thousands of messages */
    WHOSE_TIMEOUT_MS = 30000,
};

/* ---- reading ---------------------------------------------------------------------- */

/* Sends it and reads the profile. */
static tide_status profile_get(struct tide_api_ask *ask, struct tide_gmail_profile *profile_out,
                               tide_error *err)
{
    json_auto_t *value = NULL;
    tide_status rc = tide_api_ask_json(ask, &value, err);
    const int http = ask->response.http;
    if (rc != TIDE_OK && (http == 404 || http == 405 || http == 501)) {
        rc = tide_error_set(err, TIDE_GONE, "this server has no users.getProfile");
        if (err != NULL)
            err->code = http;
    }
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(ask, tide_gmail_answer_profile(value, profile_out, err), err);
    tide_api_ask_done(ask);
    return rc;
}

#define PROFILE_PATH "/gmail/v1/users/me/profile?prettyPrint=false"

tide_status tide_gmail_profile(tide_gmail *gmail, tide_job *job,
                               struct tide_gmail_profile *profile_out, tide_error *err)
{
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_PROFILE, PROFILE_PATH);
    return profile_get(&ask, profile_out, err);
}

tide_status tide_gmail_whose(tide_world *world, const char *endpoint, tide_text bearer,
                             tide_mem *mem, const tide_cancel *cancel,
                             struct tide_gmail_profile *profile_out, tide_error *err)
{
    const struct tide_api_options options = {
        .provider = &tide_gmail_api, .endpoint = endpoint, .bearer = bearer, .world = world};
    tide_gmail *gmail = NULL;
    TIDE_TRY(tide_api_open(&options, mem, &gmail, err));
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, gmail, NULL, TIDE_GMAIL_PROFILE, PROFILE_PATH);
    ask.call.cancel = cancel;
    ask.call.total_timeout_ms = WHOSE_TIMEOUT_MS;
    tide_status rc = profile_get(&ask, profile_out, err);
    tide_gmail_close(gmail);
    return rc;
}

void tide_gmail_page_done(struct tide_gmail_page *page)
{
    json_decref(page->value);
    *page = (struct tide_gmail_page){.value = NULL};
}

static void url_token(struct tide_api_ask *ask, tide_text token)
{
    if (token.bytes == 0)
        return;
    tide_api_ask_add(ask, "&pageToken=");
    tide_api_ask_value(ask, token);
}

tide_status tide_gmail_list_some(tide_gmail *gmail, tide_job *job,
                                 const struct tide_gmail_listing *listing, tide_text token,
                                 struct tide_gmail_page *page_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    char count[32];
    TIDE_ASSERT(listing->count_max >= 1);
    TIDE_ASSERT(listing->count_max <= TIDE_GMAIL_PAGE_MAX);
    (void)snprintf(count, sizeof count, "&maxResults=%u", (unsigned)listing->count_max);
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_LIST,
                      "/gmail/v1/users/me/messages?prettyPrint=false");
    tide_api_ask_add(&ask, count);
    if (listing->all)
        tide_api_ask_add(&ask, "&includeSpamTrash=true");
    tide_api_ask_add(&ask, "&fields=messages(id,threadId),nextPageToken");
    ask.call.answer_bytes_max = PAGE_BYTES_MAX;
    if (listing->label.bytes > 0) {
        tide_api_ask_add(&ask, "&labelIds=");
        tide_api_ask_value(&ask, listing->label);
    }
    if (listing->query != NULL && listing->query[0] != '\0') {
        tide_api_ask_add(&ask, "&q=");
        tide_api_ask_value(&ask, tide_text_of(listing->query));
    }
    url_token(&ask, token);
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, tide_gmail_answer_page(value, page_out, err), err);
    if (rc != TIDE_OK)
        json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_gmail_list(tide_gmail *gmail, tide_job *job, const char *query, tide_text token,
                            struct tide_gmail_page *page_out, tide_error *err)
{
    const struct tide_gmail_listing listing = {
        .query = query, .count_max = TIDE_GMAIL_PAGE_MAX, .all = true};
    return tide_gmail_list_some(gmail, job, &listing, token, page_out, err);
}

void tide_gmail_history_done(struct tide_gmail_history *history)
{
    json_decref(history->value);
    *history = (struct tide_gmail_history){.value = NULL};
}

tide_status tide_gmail_history(tide_gmail *gmail, tide_job *job, tide_text start, tide_text token,
                               struct tide_gmail_history *history_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    /* Without "messages", which repeats the content of the other lists. */
    tide_api_ask_init(
        &ask, gmail, job, TIDE_GMAIL_HISTORY,
        "/gmail/v1/users/me/history?prettyPrint=false&maxResults=500&fields=history(id,"
        "messagesAdded,messagesDeleted,labelsAdded,labelsRemoved),nextPageToken,historyId"
        "&startHistoryId=");
    ask.call.answer_bytes_max = HISTORY_BYTES_MAX;
    tide_api_ask_value(&ask, start);
    url_token(&ask, token);
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, tide_gmail_answer_history(value, history_out, err), err);
    if (rc != TIDE_OK)
        json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- messages ----------------------------------------------------------------------- */

void tide_gmail_message_init(struct tide_gmail_message *message, tide_mem *mem)
{
    *message = (struct tide_gmail_message){.fields = NULL};
    tide_buf_init(&message->raw, mem, TIDE_GMAIL_MESSAGE_BYTES_MAX);
}

void tide_gmail_message_done(struct tide_gmail_message *message)
{
    tide_mem *mem = message->raw.mem;
    tide_buf_done(&message->raw);
    json_decref(message->fields);
    tide_gmail_message_init(message, mem);
}

/* A message being received. */
struct getting {
    struct tide_api_ask ask;
    struct tide_gmail_raw raw;
    bool begun;
};

static tide_status getting_write(void *arg, const char *bytes, size_t count)
{
    struct getting *getting = arg;
    uint64_t answer_bytes = 0;
    if (!getting->begun &&
        tide_text_to_u64(tide_response_header(&getting->ask.response, "Content-Length"),
                         &answer_bytes))
        tide_gmail_raw_expect(&getting->raw, answer_bytes);
    getting->begun = true;
    tide_job_beat(getting->ask.job, 0); /* a large message may take longer than the stall limit */
    return tide_gmail_raw_write(&getting->raw, bytes, count);
}

tide_status tide_gmail_get(tide_gmail *gmail, tide_job *job, tide_text id,
                           struct tide_gmail_message *message_out, tide_error *err)
{
    struct getting getting = {.begun = false};
    struct tide_api_ask *ask = &getting.ask;
    json_t *fields = NULL;
    tide_gmail_message_done(message_out);
    tide_gmail_ask_message(ask, gmail, job, TIDE_GMAIL_GET, id,
                           "?format=raw&prettyPrint=false"
                           "&fields=id,threadId,labelIds,historyId,internalDate,sizeEstimate,raw");
    tide_gmail_raw_init(&getting.raw, tide_api_mem(gmail), &message_out->raw);
    ask->call.sink = getting_write;
    ask->call.sink_arg = &getting;
    /* In base64, with the longest escapes, plus the text around it. */
    ask->call.answer_bytes_max = 2 * (uint64_t)TIDE_GMAIL_MESSAGE_BYTES_MAX;
    tide_status rc = tide_api_ask_send(ask, err);
    if (getting.raw.failed != TIDE_OK)
        rc = tide_api_ask_named(
            ask, tide_error_set(err, getting.raw.failed, "%s", getting.raw.wrong), err);
    else if (rc == TIDE_OK)
        rc = tide_api_ask_named(ask, tide_gmail_raw_end(&getting.raw, &fields, err), err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(ask, tide_gmail_answer_message(fields, id, message_out, err), err);
    if (rc != TIDE_OK) {
        json_decref(fields);
        tide_gmail_message_done(message_out);
    }
    tide_gmail_raw_done(&getting.raw);
    tide_api_ask_done(ask);
    return rc;
}

tide_status tide_gmail_get_minimal(tide_gmail *gmail, tide_job *job, tide_text id,
                                   struct tide_gmail_message *message_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *fields = NULL;
    tide_gmail_message_done(message_out);
    tide_gmail_ask_message(&ask, gmail, job, TIDE_GMAIL_GET_MINIMAL, id,
                           "?format=minimal&prettyPrint=false"
                           "&fields=id,threadId,labelIds,historyId,internalDate,sizeEstimate");
    tide_status rc = tide_api_ask_json(&ask, &fields, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, tide_gmail_answer_message(fields, id, message_out, err), err);
    if (rc != TIDE_OK)
        json_decref(fields);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- labels ---- */

tide_status tide_gmail_labels(tide_gmail *gmail, tide_job *job, json_t **labels_out,
                              tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_LABELS,
                      "/gmail/v1/users/me/labels?prettyPrint=false");
    ask.call.answer_bytes_max = LABELS_BYTES_MAX;
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, tide_gmail_answer_labels(value, err), err);
    if (rc == TIDE_OK)
        *labels_out = value;
    else
        json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_gmail_label_total(tide_gmail *gmail, tide_job *job, tide_text label,
                                   uint64_t *total_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_LABEL_GET, "/gmail/v1/users/me/labels/");
    tide_api_ask_value(&ask, label);
    tide_api_ask_add(&ask, "?prettyPrint=false&fields=id,messagesTotal");
    ask.call.answer_bytes_max = LABELS_BYTES_MAX;
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    /* A count of 0 may be left out. */
    const json_t *total = rc == TIDE_OK ? json_object_get(value, "messagesTotal") : NULL;
    if (rc == TIDE_OK && total != NULL &&
        (!json_is_integer(total) || json_integer_value(total) < 0))
        rc = tide_api_ask_named(
            &ask, tide_error_set(err, TIDE_SERVER, "the number of messages is not one"), err);
    if (rc == TIDE_OK)
        *total_out = total == NULL ? 0 : (uint64_t)json_integer_value(total);
    json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}
