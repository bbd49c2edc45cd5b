#include "cloud/onedrive/inside.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    RANGES_MAX = 1000, /* of an upload that are read */
    SESSION_BYTES_MAX = 64 << 10,
};

/* ---- sessions ---- */

void tide_onedrive_session_init(struct tide_onedrive_session *session, tide_mem *mem)
{
    *session = (struct tide_onedrive_session){.expires_unix_ms = 0};
    tide_buf_init(&session->url, mem, TIDE_ONEDRIVE_LINK_BYTES_MAX);
}

void tide_onedrive_session_done(struct tide_onedrive_session *session)
{
    tide_buf_done(&session->url);
}

/* Appends the item that gets the content, and says what may be there already (ODR2). */
static void ask_target(struct tide_api_ask *ask, const struct tide_onedrive_target *target,
                       struct tide_header *header)
{
    TIDE_ASSERT((target->id.bytes > 0) != (target->name.bytes > 0));
    if (target->id.bytes > 0)
        tide_onedrive_ask_item(ask, target->id);
    else
        tide_onedrive_ask_below(ask, target->parent, target->name);
    tide_onedrive_if_match(ask, target->if_match, header);
}

/* {"item":{"@microsoft.graph.conflictBehavior":..,"name":..,"fileSize":..,"fileSystemInfo":{..}}} */
static void session_write(const struct tide_onedrive_target *target, uint64_t bytes,
                          uint64_t modified_unix_ms, tide_json *json)
{
    tide_auto_json item;
    tide_json_object(&item);
    tide_json_set_cstr(&item, "@microsoft.graph.conflictBehavior",
                       target->id.bytes > 0 ? "replace" : "fail");
    if (target->name.bytes > 0)
        tide_json_set_text(&item, "name", target->name);
    if (target->personal)
        tide_json_set_u64(&item, "fileSize", bytes);
    if (modified_unix_ms != 0) {
        tide_auto_json times;
        tide_json_object(&times);
        tide_onedrive_time_set(&times, "lastModifiedDateTime", modified_unix_ms);
        tide_json_set(&item, "fileSystemInfo", &times);
    }
    tide_json_set(json, "item", &item);
}

static tide_status session_read(const json_t *value, struct tide_onedrive_session *session,
                                tide_error *err)
{
    tide_text url = TIDE_TEXT("");
    uint64_t expires_unix_ms = 0;
    TIDE_TRY(tide_onedrive_text(value, "uploadUrl", TIDE_ONEDRIVE_LINK_BYTES_MAX, &url, err));
    TIDE_TRY(tide_onedrive_time(value, "expirationDateTime", &expires_unix_ms, err));
    if (url.bytes == 0)
        return tide_error_set(err, TIDE_SERVER, "the upload session has no \"uploadUrl\"");
    tide_buf_clear(&session->url);
    if (tide_buf_add(&session->url, url.data, url.bytes) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an upload session");
    session->expires_unix_ms = expires_unix_ms;
    return TIDE_OK;
}

tide_status tide_onedrive_session_create(tide_onedrive *onedrive, tide_job *job,
                                         const struct tide_onedrive_target *target, uint64_t bytes,
                                         uint64_t modified_unix_ms,
                                         struct tide_onedrive_session *session_out, tide_error *err)
{
    TIDE_ASSERT(bytes > 0);
    struct tide_api_ask ask;
    struct tide_header header;
    json_t *value = NULL;
    tide_auto_json json;
    tide_auto_buf body = tide_buf_in(onedrive->mem, 0);
    tide_json_object(&json);
    session_write(target, bytes, modified_unix_ms, &json);
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_SESSION, target->drive);
    ask_target(&ask, target, &header);
    tide_api_ask_add(&ask, "/createUploadSession");
    ask.call.answer_bytes_max = SESSION_BYTES_MAX;
    tide_status rc = tide_onedrive_body(&json, &body, err);
    ask.call.body = tide_buf_text(&body);
    if (rc != TIDE_OK)
        (void)tide_api_ask_named(&ask, rc, err);
    else
        rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, session_read(value, session_out, err), err);
    json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- fragments ---- */

void tide_onedrive_sent_done(struct tide_onedrive_sent *sent)
{
    tide_onedrive_answer_done(&sent->answer);
    *sent = (struct tide_onedrive_sent){.finished = false};
}

/* "26-" or "26-127": the first number. */
static bool range_start(const json_t *value, uint64_t *start_out)
{
    const tide_text text = {json_string_value(value), json_string_length(value)};
    const char *dash = text.bytes == 0 ? NULL : memchr(text.data, '-', text.bytes);
    return dash != NULL &&
           tide_text_to_u64((tide_text){text.data, (size_t)(dash - text.data)}, start_out);
}

/* {"expirationDateTime":..,"nextExpectedRanges":["26-"]}: the lowest start counts, and not all may
 * be listed (D37). */
static tide_status progress_read(const json_t *value, struct tide_onedrive_sent *sent,
                                 tide_error *err)
{
    const json_t *ranges = NULL;
    const tide_status rc = tide_json_get_array(value, "nextExpectedRanges", &ranges, NULL);
    if ((rc != TIDE_OK && rc != TIDE_NOT_FOUND) || json_array_size(ranges) > RANGES_MAX)
        return tide_error_set(err, TIDE_SERVER, "field \"nextExpectedRanges\" is malformed");
    for (size_t i = 0; i < json_array_size(ranges); i++) {
        uint64_t start = 0;
        if (!range_start(json_array_get(ranges, i), &start))
            return tide_error_set(err, TIDE_SERVER, "field \"nextExpectedRanges\" is malformed");
        if (!sent->next_known || start < sent->next)
            sent->next = start;
        sent->next_known = true;
    }
    return tide_onedrive_time(value, "expirationDateTime", &sent->expires_unix_ms, err);
}

/* Whether an answer of an upload URL ends the upload: a 201 does also without an item (D38), a 200
 * with one, and to a fragment without anything. */
static bool is_end(const struct tide_api_ask *ask, bool item)
{
    const int http = ask->response.http;
    const bool empty = ask->response.body.bytes == 0;
    return http == 201 ||
           (http == 200 && (item || (empty && ask->call.method == TIDE_ONEDRIVE_FRAGMENT)));
}

static tide_status sent_read(const struct tide_api_ask *ask, struct tide_onedrive_sent *sent,
                             tide_error *err)
{
    json_t *value = NULL;
    tide_status rc = TIDE_OK;
    if (ask->response.body.bytes > 0 || !is_end(ask, false))
        TIDE_TRY(tide_api_object(tide_buf_text(&ask->response.body), &value, err));
    const bool item = json_object_get(value, "id") != NULL;
    sent->finished = is_end(ask, item);
    if (!sent->finished)
        rc = progress_read(value, sent, err);
    else if (item)
        rc = tide_onedrive_item_read(value, &sent->answer.item, err);
    if (rc == TIDE_OK && sent->finished && item)
        sent->answer.value = value;
    else
        json_decref(value);
    return rc;
}

static tide_status send_and_read(struct tide_api_ask *ask, struct tide_onedrive_sent *sent_out,
                                 tide_error *err)
{
    tide_onedrive_sent_done(sent_out);
    tide_status rc = tide_api_ask_send(ask, err);
    if (rc == TIDE_OK)
        rc = sent_read(ask, sent_out, err);
    if (rc != TIDE_OK)
        tide_onedrive_sent_done(sent_out);
    return tide_api_ask_named(ask, rc, err);
}

tide_status tide_onedrive_fragment_put(tide_onedrive *onedrive, tide_job *job,
                                       const struct tide_onedrive_fragment *fragment,
                                       struct tide_onedrive_sent *sent_out, tide_error *err)
{
    const bool last =
        fragment->from <= fragment->total && fragment->bytes == fragment->total - fragment->from;
    if (fragment->bytes == 0 || fragment->bytes > TIDE_ONEDRIVE_FRAGMENT_BYTES_MAX ||
        (!last &&
         (fragment->bytes % TIDE_ONEDRIVE_FRAGMENT_UNIT != 0 || fragment->from > fragment->total ||
          fragment->bytes > fragment->total - fragment->from)))
        return tide_error_set(err, TIDE_INVALID, "a fragment cannot have %" PRIu64 " bytes",
                              fragment->bytes);
    char range[80];
    (void)snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, fragment->from,
                   fragment->from + fragment->bytes - 1, fragment->total);
    const struct tide_header header = {TIDE_TEXT("Content-Range"), tide_text_of(range)};
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, onedrive->api, job, TIDE_ONEDRIVE_FRAGMENT, "");
    ask.call.url = fragment->url;
    ask.call.headers = &header;
    ask.call.headers_count = 1;
    ask.call.type = "application/octet-stream";
    ask.call.source = fragment->source;
    ask.call.rewind = fragment->rewind;
    ask.call.source_arg = fragment->source_arg;
    ask.call.source_bytes = fragment->bytes;
    const tide_status rc = send_and_read(&ask, sent_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_session_status(tide_onedrive *onedrive, tide_job *job, const char *url,
                                         struct tide_onedrive_sent *sent_out, tide_error *err)
{
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, onedrive->api, job, TIDE_ONEDRIVE_STATUS, "");
    ask.call.url = url;
    const tide_status rc = send_and_read(&ask, sent_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_session_cancel(tide_onedrive *onedrive, tide_job *job, const char *url,
                                         tide_error *err)
{
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, onedrive->api, job, TIDE_ONEDRIVE_CANCEL, "");
    ask.call.url = url;
    const tide_status rc = tide_api_ask_named(&ask, tide_api_ask_send(&ask, err), err);
    tide_api_ask_done(&ask);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}

/* ---- empty files ---- */

tide_status tide_onedrive_put_empty(tide_onedrive *onedrive, tide_job *job,
                                    const struct tide_onedrive_target *target,
                                    struct tide_onedrive_answer *answer_out, tide_error *err)
{
    struct tide_api_ask ask;
    struct tide_header header;
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_PUT, target->drive);
    ask_target(&ask, target, &header);
    tide_api_ask_add(&ask, target->id.bytes > 0
                               ? "/content"
                               : "/content?@microsoft.graph.conflictBehavior=fail");
    ask.call.type = "application/octet-stream";
    const tide_status rc = tide_onedrive_ask_answer(&ask, answer_out, err);
    tide_api_ask_done(&ask);
    return rc;
}
