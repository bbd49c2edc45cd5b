#include "net/image/fetch.h"
#include "base/limits.h"
#include "net/image/address.h"
#include "net/image/type.h"
#include "net/image/url.h"

static const struct tide_header headers[] = {
    {{"Accept", 6}, {"image/*", 7}},
    {{"User-Agent", 10}, {"Mozilla/5.0", 11}}, /* IMF3; many servers refuse unknown ones */
};

struct fetch {
    tide_world *world;
    const tide_cancel *cancel;
    tide_may_connect *may_connect;
    uint64_t deadline_ms;
    tide_buf url;
    struct tide_response response;
};

static tide_status ask(struct fetch *fetch, tide_error *err)
{
    const uint64_t now_ms = tide_world_now_ms(fetch->world);
    if (now_ms >= fetch->deadline_ms)
        return tide_error_set(err, TIDE_TIMEOUT, "the image did not arrive in time");
    const uint32_t left_ms = (uint32_t)(fetch->deadline_ms - now_ms);
    const struct tide_request request = {
        .method = "GET",
        .url = tide_buf_cstr(&fetch->url),
        .headers = headers,
        .headers_count = sizeof headers / sizeof headers[0],
        .body_bytes_max = TIDE_IMAGE_BYTES_MAX,
        .connect_timeout_ms = left_ms,
        .stall_timeout_ms = left_ms,
        .total_timeout_ms = left_ms,
        .may_connect = fetch->may_connect,
    };
    return tide_world_call(fetch->world, &request, &fetch->response, fetch->cancel, err);
}

static bool is_redirect(int http)
{
    return http == 301 || http == 302 || http == 303 || http == 307 || http == 308;
}

static tide_status go_to(struct fetch *fetch, tide_text reference, tide_error *err)
{
    const tide_status rc = tide_url_resolve(&fetch->url, reference);
    if (rc == TIDE_INVALID)
        return tide_error_set(err, rc, "the image has no http or https URL");
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for the URL of an image");
}

/* Follows redirects to the last answer. */
static tide_status ask_all(struct fetch *fetch, tide_text url, tide_error *err)
{
    tide_status rc = go_to(fetch, url, err);
    for (int redirects = 0; rc == TIDE_OK; redirects++) {
        rc = ask(fetch, err);
        if (rc != TIDE_OK || !is_redirect(fetch->response.http))
            return rc;
        const tide_text location = tide_response_header(&fetch->response, "Location");
        if (location.bytes == 0 || redirects == TIDE_IMAGE_REDIRECTS_MAX)
            return tide_error_set(err, TIDE_PERMANENT,
                                  location.bytes == 0
                                      ? "the server redirects the image to nowhere"
                                      : "the server redirects the image more than %d times",
                                  TIDE_IMAGE_REDIRECTS_MAX);
        rc = go_to(fetch, location, err);
    }
    return rc;
}

static tide_status take_image(const struct fetch *fetch, tide_buf *out, const char **type_out,
                              tide_error *err)
{
    const tide_text body = tide_buf_text(&fetch->response.body);
    if (fetch->response.http != 200)
        return tide_error_set(err, TIDE_PERMANENT, "the server of the image answers with code %d",
                              fetch->response.http);
    const char *type = tide_image_type(body);
    if (type == NULL)
        return tide_error_set(
            err, TIDE_INVALID,
            "the server sent something other than a PNG, JPEG, GIF or WebP image");
    const tide_status rc = tide_buf_add(out, body.data, body.bytes);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no room for an image of %zu bytes", body.bytes);
    *type_out = type;
    return TIDE_OK;
}

tide_status tide_image_fetch(tide_world *world, tide_text url,
                             const struct tide_image_limits *limits, const tide_cancel *cancel,
                             tide_buf *out, const char **type_out, tide_error *err)
{
    const uint32_t total_ms =
        limits == NULL || limits->total_ms == 0 ? TIDE_IMAGE_MS : limits->total_ms;
    struct fetch fetch = {
        .world = world,
        .cancel = cancel,
        .may_connect = limits == NULL || limits->may_connect == NULL ? tide_address_is_public
                                                                     : limits->may_connect,
        .deadline_ms = tide_world_now_ms(world) + total_ms,
    };
    tide_buf_init(&fetch.url, out->mem, TIDE_URL_BYTES_MAX);
    tide_response_init(&fetch.response, out->mem);
    tide_status rc = ask_all(&fetch, url, err);
    if (rc == TIDE_OK)
        rc = take_image(&fetch, out, type_out, err);
    tide_response_done(&fetch.response);
    tide_buf_done(&fetch.url);
    return rc;
}
