#include "cloud/onedrive/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A download on its way. */
struct getting {
    const struct tide_onedrive_download *download;
    const struct tide_response *response;
    struct tide_onedrive_got *got;
    const char *wrong; /* why the answer was refused; a literal */
    bool begun;
};

/* The start of "bytes 26-127/128" or "bytes 26-127/" and a star. */
static bool range_start(tide_text text, uint64_t *start_out)
{
    static const char unit[] = "bytes ";
    const size_t unit_bytes = sizeof unit - 1;
    if (text.bytes <= unit_bytes || memcmp(text.data, unit, unit_bytes) != 0)
        return false;
    const tide_text rest = {text.data + unit_bytes, text.bytes - unit_bytes};
    const char *dash = memchr(rest.data, '-', rest.bytes);
    return dash != NULL &&
           tide_text_to_u64((tide_text){rest.data, (size_t)(dash - rest.data)}, start_out);
}

/* Before the first byte: where does it belong? */
static tide_status begin(struct getting *getting)
{
    const struct tide_onedrive_download *download = getting->download;
    const struct tide_response *response = getting->response;
    uint64_t at = 0;
    getting->begun = true;
    if (response->http == 206) {
        if (!range_start(tide_response_header(response, "Content-Range"), &at) ||
            at != download->from) {
            getting->wrong = "the answer is another range than the one asked for";
            return TIDE_SERVER;
        }
    } else if (response->http != 200) {
        getting->wrong = "the answer is no content";
        return TIDE_SERVER;
    }
    const tide_text etag = tide_response_header(response, "ETag");
    if (etag.bytes > 0 && etag.bytes <= TIDE_ONEDRIVE_TAG_BYTES_MAX)
        (void)snprintf(getting->got->etag, sizeof getting->got->etag, "%.*s", (int)etag.bytes,
                       etag.data);
    getting->got->at = at;
    return download->begin(download->arg, at);
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct getting *getting = arg;
    const struct tide_onedrive_download *download = getting->download;
    struct tide_onedrive_got *got = getting->got;
    if (!getting->begun)
        TIDE_TRY(begin(getting));
    if (!download->any_size && count > download->size - got->at - got->bytes) {
        getting->wrong = "the content is longer than its item says";
        got->misfit = true;
        return TIDE_SERVER;
    }
    TIDE_TRY(download->sink(download->arg, bytes, count));
    got->bytes += count;
    return TIDE_OK;
}

/* The headers of a resumed download. */
static size_t headers_of(const struct tide_onedrive_download *download, char range[48],
                         struct tide_header headers[2])
{
    size_t count = 0;
    if (download->from == 0)
        return 0;
    (void)snprintf(range, 48, "bytes=%" PRIu64 "-", download->from);
    headers[count++] = (struct tide_header){TIDE_TEXT("Range"), tide_text_of(range)};
    if (download->etag != NULL && download->etag[0] != '\0')
        headers[count++] =
            (struct tide_header){TIDE_TEXT("If-Range"), tide_text_of(download->etag)};
    return count;
}

/* The answer ended well: an empty one begins, too, and all bytes must have come. */
static tide_status ended(struct getting *getting)
{
    if (!getting->begun)
        TIDE_TRY(begin(getting));
    if (getting->download->any_size ||
        getting->got->at + getting->got->bytes == getting->download->size)
        return TIDE_OK;
    getting->wrong = "the content is shorter than its item says";
    getting->got->misfit = true;
    return TIDE_SERVER;
}

tide_status tide_onedrive_download(tide_onedrive *onedrive, tide_job *job,
                                   const struct tide_onedrive_download *download,
                                   struct tide_onedrive_got *got_out, tide_error *err)
{
    *got_out = (struct tide_onedrive_got){.bytes = 0};
    if (download->from > download->size)
        return tide_error_set(err, TIDE_INVALID, "a download cannot begin after its end");
    char range[48];
    struct tide_header headers[2];
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, onedrive->api, job, TIDE_ONEDRIVE_CONTENT, "");
    struct getting getting = {.download = download, .response = &ask.response, .got = got_out};
    ask.call.url = download->url;
    ask.call.headers = headers;
    ask.call.headers_count = headers_of(download, range, headers);
    ask.call.sink = on_bytes;
    ask.call.sink_arg = &getting;
    ask.call.answer_bytes_max = INT64_MAX; /* on_bytes() counts */
    tide_status rc = tide_api_ask_send(&ask, err);
    if (rc == TIDE_OK)
        rc = ended(&getting);
    if (getting.wrong != NULL)
        (void)tide_error_set(err, rc, "%s", getting.wrong);
    else if (rc != TIDE_OK && err != NULL && err->status != rc)
        (void)tide_error_set(err, rc, "the content could not be stored");
    (void)tide_api_ask_named(&ask, rc, err);
    tide_api_ask_done(&ask);
    return rc;
}
