#include "net/api/ask.h"

#include "base/encode.h"
#include "base/limits.h"

#include <string.h>

void tide_api_ask_init(struct tide_api_ask *ask, tide_api *api, tide_job *job, uint32_t method,
                       const char *path)
{
    memset(ask, 0, sizeof *ask);
    ask->api = api;
    ask->job = job;
    ask->call.method = method;
    ask->call.answer_bytes_max = TIDE_API_SMALL_BYTES_MAX;
    tide_buf_init(&ask->path, tide_api_mem(api), TIDE_URL_BYTES_MAX);
    tide_response_init(&ask->response, tide_api_mem(api));
    tide_api_ask_add(ask, path);
}

void tide_api_ask_done(struct tide_api_ask *ask)
{
    tide_response_done(&ask->response);
    tide_buf_done(&ask->path);
}

void tide_api_ask_add(struct tide_api_ask *ask, const char *text)
{
    if (ask->failed == TIDE_OK)
        ask->failed = tide_buf_add_text(&ask->path, text);
}

void tide_api_ask_value(struct tide_api_ask *ask, tide_text value)
{
    if (ask->failed == TIDE_OK)
        ask->failed = tide_percent_add(&ask->path, value, TIDE_URL_UNRESERVED);
}

const char *tide_api_ask_name(const struct tide_api_ask *ask)
{
    return tide_api_provider(ask->api)->methods[ask->call.method].name;
}

tide_status tide_api_ask_send(struct tide_api_ask *ask, tide_error *err)
{
    if (ask->failed != TIDE_OK)
        return tide_error_set(err, ask->failed, "%s: the request is too long to be sent",
                              tide_api_ask_name(ask));
    if (ask->call.url == NULL)
        ask->call.path = tide_buf_cstr(&ask->path);
    return tide_api_call(ask->api, ask->job, &ask->call, &ask->response, err);
}

tide_status tide_api_ask_named(const struct tide_api_ask *ask, tide_status rc, tide_error *err)
{
    if (rc == TIDE_OK || err == NULL)
        return rc;
    const tide_error inner = *err;
    (void)tide_error_set(err, rc, "%s: %.340s", tide_api_ask_name(ask), inner.text);
    err->code = inner.code != 0 ? inner.code : ask->response.http;
    return rc;
}

tide_status tide_api_ask_json(struct tide_api_ask *ask, json_t **value_out, tide_error *err)
{
    TIDE_TRY(tide_api_ask_send(ask, err));
    return tide_api_ask_named(
        ask, tide_api_object(tide_buf_text(&ask->response.body), value_out, err), err);
}

tide_status tide_api_object(tide_text body, json_t **value_out, tide_error *err)
{
    json_t *value = NULL;
    tide_status rc = tide_json_parse(body, &value, err);
    if (rc == TIDE_OK && !json_is_object(value))
        rc = tide_error_set(err, TIDE_SERVER, "not a JSON object");
    if (rc == TIDE_INVALID) {
        rc = TIDE_SERVER;
        if (err != NULL)
            err->status = rc;
    }
    if (rc == TIDE_OK)
        *value_out = value;
    else
        json_decref(value);
    return rc;
}
