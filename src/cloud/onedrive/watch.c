#include "cloud/onedrive/inside.h"

#include <string.h>

static tide_status watch_read(const json_t *value, struct tide_onedrive_watch *watch_out,
                              tide_error *err)
{
    struct tide_onedrive_watch watch = {.expires_unix_ms = 0};
    tide_text id = TIDE_TEXT("");
    TIDE_TRY(tide_onedrive_text(value, "id", TIDE_ONEDRIVE_ID_BYTES_MAX, &id, err));
    TIDE_TRY(tide_onedrive_time(value, "expirationDateTime", &watch.expires_unix_ms, err));
    if (id.bytes == 0 || watch.expires_unix_ms == 0)
        return tide_error_set(err, TIDE_SERVER, "the subscription has no \"id\" or no end");
    memcpy(watch.id, id.data, id.bytes);
    *watch_out = watch;
    return TIDE_OK;
}

static tide_status send_json(struct tide_api_ask *ask, tide_json *json,
                             struct tide_onedrive_watch *watch_out, tide_error *err)
{
    json_t *value = NULL;
    tide_auto_buf body = tide_buf_in(tide_api_mem(ask->api), 0);
    tide_status rc = tide_onedrive_body(json, &body, err);
    if (rc != TIDE_OK)
        return tide_api_ask_named(ask, rc, err);
    ask->call.body = tide_buf_text(&body);
    rc = tide_api_ask_json(ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(ask, watch_read(value, watch_out, err), err);
    json_decref(value);
    return rc;
}

tide_status tide_onedrive_watch_create(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                       const char *url, tide_text secret, uint64_t until_unix_ms,
                                       struct tide_onedrive_watch *watch_out, tide_error *err)
{
    struct tide_api_ask ask;
    tide_auto_json json;
    tide_auto_buf resource = tide_buf_in(onedrive->mem, TIDE_ONEDRIVE_ID_BYTES_MAX + 32);
    if (drive.bytes > TIDE_ONEDRIVE_ID_BYTES_MAX ||
        tide_buf_print(&resource, "%s%.*s/root", drive.bytes == 0 ? "/me/drive" : "/drives/",
                       (int)drive.bytes, drive.bytes == 0 ? "" : drive.data) != TIDE_OK)
        return tide_error_set(err, TIDE_INVALID, "no room for the id of a drive");
    tide_json_object(&json);
    tide_json_set_cstr(&json, "changeType", "updated"); /* the only one that a drive has */
    tide_json_set_cstr(&json, "notificationUrl", url);
    tide_json_set_text(&json, "resource", tide_buf_text(&resource));
    tide_onedrive_time_set(&json, "expirationDateTime", until_unix_ms);
    tide_json_set_text(&json, "clientState", secret);
    tide_api_ask_init(&ask, onedrive->api, job, TIDE_ONEDRIVE_WATCH, "/v1.0/subscriptions");
    const tide_status rc = send_json(&ask, &json, watch_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_watch_renew(tide_onedrive *onedrive, tide_job *job, tide_text id,
                                      uint64_t until_unix_ms, struct tide_onedrive_watch *watch_out,
                                      tide_error *err)
{
    struct tide_api_ask ask;
    tide_auto_json json;
    tide_json_object(&json);
    tide_onedrive_time_set(&json, "expirationDateTime", until_unix_ms);
    tide_api_ask_init(&ask, onedrive->api, job, TIDE_ONEDRIVE_WATCH_CHANGE, "/v1.0/subscriptions/");
    tide_api_ask_value(&ask, id);
    const tide_status rc = send_json(&ask, &json, watch_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_watch_remove(tide_onedrive *onedrive, tide_job *job, tide_text id,
                                       tide_error *err)
{
    struct tide_api_ask ask;
    tide_api_ask_init(&ask, onedrive->api, job, TIDE_ONEDRIVE_WATCH_CHANGE, "/v1.0/subscriptions/");
    tide_api_ask_value(&ask, id);
    ask.call.verb = "DELETE";
    const tide_status rc = tide_api_ask_named(&ask, tide_api_ask_send(&ask, err), err);
    tide_api_ask_done(&ask);
    return rc == TIDE_GONE ? TIDE_OK : rc;
}
