/* gmail_upload.c - drafts with large files, uploaded in parts (gmail_drafts.h GUP1, GUP2). */
#include "cloud/gmail_drafts.h"
#include "cloud/gmail_methods.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* {"message":{"threadId":"..."}}; Google wants an object also when nothing is in it. */
static tide_status meta_of(tide_text thread_id, tide_buf *out)
{
    TIDE_TRY(tide_buf_add_text(out, "{\"message\":{"));
    if (thread_id.bytes > 0) {
        TIDE_TRY(tide_buf_add_text(out, "\"threadId\":"));
        TIDE_TRY(tide_json_escape(thread_id, out));
    }
    return tide_buf_add_text(out, "}}");
}

/* The path of the session's address, with its parameters; "": it is none of Google's.  Google has
 * several hosts for the same paths.  Ours is the one that the token may go to. */
static tide_text path_of(tide_text location)
{
    const char *host = location.bytes == 0 ? NULL : memmem(location.data, location.bytes, "://", 3);
    const size_t skipped = host == NULL ? 0 : (size_t)(host + 3 - location.data);
    const char *slash = location.bytes == skipped
                            ? NULL
                            : memchr(location.data + skipped, '/', location.bytes - skipped);
    const tide_text path =
        slash == NULL ? TIDE_TEXT("")
                      : (tide_text){slash, location.bytes - (size_t)(slash - location.data)};
    for (size_t i = 0; i < path.bytes; i++)
        if (path.data[i] <= ' ' || path.data[i] >= 0x7f)
            return TIDE_TEXT("");
    static const char *const fronts[] = {"/upload/", "/resumable/upload/"};
    for (size_t i = 0; i < 2; i++)
        if (path.bytes > strlen(fronts[i]) && memcmp(path.data, fronts[i], strlen(fronts[i])) == 0)
            return path;
    return TIDE_TEXT("");
}

static tide_status begin(struct tide_api_ask *ask, tide_gmail *gmail, tide_text thread_id,
                         uint64_t bytes, char session_out[TIDE_GMAIL_SESSION_BYTES],
                         tide_error *err)
{
    char length[24];
    tide_auto_buf meta = tide_buf_in(tide_api_mem(gmail), 1000);
    (void)snprintf(length, sizeof length, "%" PRIu64, bytes);
    const struct tide_header headers[] = {
        {TIDE_TEXT("X-Upload-Content-Type"), TIDE_TEXT("message/rfc822")},
        {TIDE_TEXT("X-Upload-Content-Length"), tide_text_of(length)}};
    if (ask->failed == TIDE_OK)
        ask->failed = meta_of(thread_id, &meta);
    ask->call.body = tide_buf_text(&meta);
    ask->call.headers = headers;
    ask->call.headers_count = 2;
    TIDE_TRY(tide_api_ask_send(ask, err));
    const tide_text path = path_of(tide_response_header(&ask->response, "Location"));
    if (path.bytes == 0 || path.bytes >= TIDE_GMAIL_SESSION_BYTES)
        return tide_api_ask_named(
            ask, tide_error_set(err, TIDE_SERVER, "the answer names no upload session"), err);
    memcpy(session_out, path.data, path.bytes);
    session_out[path.bytes] = '\0';
    return TIDE_OK;
}

tide_status tide_gmail_upload_begin(tide_gmail *gmail, tide_job *job, tide_text draft_id,
                                    tide_text thread_id, uint64_t bytes,
                                    char session_out[TIDE_GMAIL_SESSION_BYTES], tide_error *err)
{
    struct tide_api_ask ask;
    const bool update = draft_id.bytes > 0;
    TIDE_ASSERT(bytes > 0);
    if (bytes > TIDE_GMAIL_UPLOAD_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "a message of %" PRIu64 " bytes; %d are allowed",
                              bytes, TIDE_GMAIL_UPLOAD_BYTES_MAX);
    tide_api_ask_init(&ask, gmail, job,
                      update ? TIDE_GMAIL_UPLOAD_UPDATE : TIDE_GMAIL_UPLOAD_CREATE,
                      "/upload/gmail/v1/users/me/drafts");
    if (update) {
        tide_api_ask_add(&ask, "/");
        tide_api_ask_value(&ask, draft_id);
    }
    tide_api_ask_add(&ask,
                     "?uploadType=resumable&prettyPrint=false&fields=id,message(id,threadId)");
    const tide_status rc = begin(&ask, gmail, thread_id, bytes, session_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- parts ---- */

/* Whether the answer is "Resume Incomplete".  It is a 308, which some proxies take for a redirect:
 * asked so, Google says it in a header. */
static bool is_incomplete(const struct tide_response *response)
{
    return response->http == 308 ||
           tide_text_equal(tide_response_header(response, "X-HTTP-Status-Code-Override"),
                           TIDE_TEXT("308"));
}

/* "bytes=0-524287": the byte after it; nothing came: no header. */
static tide_status range_read(tide_text range, uint64_t total, uint64_t *next_out, tide_error *err)
{
    static const char lead[] = "bytes=0-";
    const size_t skipped = sizeof lead - 1;
    uint64_t last = 0;
    *next_out = 0;
    if (range.bytes == 0)
        return TIDE_OK;
    if (range.bytes <= skipped || memcmp(range.data, lead, skipped) != 0 ||
        !tide_text_to_u64((tide_text){range.data + skipped, range.bytes - skipped}, &last) ||
        last >= total)
        return tide_error_set(err, TIDE_SERVER, "the answer has a malformed Range");
    *next_out = last + 1;
    return TIDE_OK;
}

static tide_status part_read(const struct tide_api_ask *ask, uint64_t total,
                             struct tide_gmail_uploaded *uploaded, tide_error *err)
{
    json_auto_t *value = NULL;
    if (is_incomplete(&ask->response))
        return range_read(tide_response_header(&ask->response, "Range"), total, &uploaded->next,
                          err);
    /* The draft is there, whatever the answer looks like. */
    uploaded->finished = true;
    if (tide_api_object(tide_buf_text(&ask->response.body), &value, NULL) != TIDE_OK ||
        !tide_gmail_draft_read(value, &uploaded->draft))
        uploaded->draft = (struct tide_gmail_draft){.id = ""};
    return TIDE_OK;
}

static tide_status put(struct tide_api_ask *ask, tide_text part, uint64_t from, uint64_t total,
                       struct tide_gmail_uploaded *uploaded_out, tide_error *err)
{
    char range[80];
    struct tide_gmail_uploaded uploaded = {.finished = false};
    if (part.bytes == 0)
        (void)snprintf(range, sizeof range, "bytes */%" PRIu64, total);
    else
        (void)snprintf(range, sizeof range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, from,
                       from + part.bytes - 1, total);
    const struct tide_header headers[] = {{TIDE_TEXT("Content-Range"), tide_text_of(range)},
                                          {TIDE_TEXT("X-GUploader-No-308"), TIDE_TEXT("yes")}};
    ask->call.headers = headers;
    ask->call.headers_count = 2;
    ask->call.body = part;
    ask->call.type = "message/rfc822";
    tide_status rc = tide_api_ask_send(ask, err);
    if (rc == TIDE_OK || ask->response.http == 308)
        rc = tide_api_ask_named(ask, part_read(ask, total, &uploaded, err), err);
    if (rc == TIDE_OK)
        *uploaded_out = uploaded;
    return rc;
}

tide_status tide_gmail_upload_put(tide_gmail *gmail, tide_job *job, const char *session,
                                  tide_text part, uint64_t from, uint64_t total,
                                  struct tide_gmail_uploaded *uploaded_out, tide_error *err)
{
    struct tide_api_ask ask;
    TIDE_ASSERT(from <= total);
    TIDE_ASSERT(part.bytes <= total - from);
    TIDE_ASSERT(part.bytes == total - from || part.bytes % TIDE_GMAIL_UPLOAD_UNIT == 0); /* GUP1 */
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_UPLOAD, session);
    const tide_status rc = put(&ask, part, from, total, uploaded_out, err);
    tide_api_ask_done(&ask);
    return rc;
}
