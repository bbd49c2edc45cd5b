#include "cloud/onedrive/inside.h"

#include "base/check.h"

#define CONFLICT "@microsoft.graph.conflictBehavior"

/* Sends a call with a JSON body and reads the item. */
static tide_status send_json(tide_onedrive *onedrive, struct tide_api_ask *ask, tide_json *json,
                             struct tide_onedrive_answer *answer_out, tide_error *err)
{
    tide_auto_buf body = tide_buf_in(onedrive->mem, 0);
    tide_onedrive_answer_done(answer_out);
    tide_status rc = tide_onedrive_body(json, &body, err);
    if (rc != TIDE_OK)
        return tide_api_ask_named(ask, rc, err);
    ask->call.body = tide_buf_text(&body);
    rc = tide_onedrive_send_batched(onedrive, ask, err);
    ask->call.body = TIDE_TEXT_NONE;
    return rc == TIDE_OK ? tide_onedrive_answer_read(ask, answer_out, err) : rc;
}

tide_status tide_onedrive_folder_create(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                        tide_text parent, tide_text name,
                                        struct tide_onedrive_answer *answer_out, tide_error *err)
{
    struct tide_api_ask ask;
    tide_auto_json json;
    tide_auto_json folder;
    tide_json_object(&json);
    tide_json_object(&folder);
    tide_json_set_text(&json, "name", name);
    tide_json_set(&json, "folder", &folder);
    tide_json_set_cstr(&json, CONFLICT, "fail"); /* ODR2 */
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_CREATE, drive);
    tide_onedrive_ask_item(&ask, parent);
    tide_api_ask_add(&ask, "/children");
    const tide_status rc = send_json(onedrive, &ask, &json, answer_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

static void update_write(const struct tide_onedrive_update *update, tide_json *json)
{
    if (update->name.bytes > 0)
        tide_json_set_text(json, "name", update->name);
    if (update->parent_id.bytes > 0) {
        tide_auto_json parent;
        tide_json_object(&parent);
        tide_json_set_text(&parent, "id", update->parent_id);
        tide_json_set(json, "parentReference", &parent);
    }
    if (update->name.bytes > 0 || update->parent_id.bytes > 0)
        tide_json_set_cstr(json, CONFLICT, "fail"); /* ODR2 */
    if (update->created_unix_ms != 0 || update->modified_unix_ms != 0) {
        tide_auto_json times;
        tide_json_object(&times);
        tide_onedrive_time_set(&times, "createdDateTime", update->created_unix_ms);
        tide_onedrive_time_set(&times, "lastModifiedDateTime", update->modified_unix_ms);
        tide_json_set(json, "fileSystemInfo", &times);
    }
}

tide_status tide_onedrive_update(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                 tide_text id, const struct tide_onedrive_update *update,
                                 struct tide_onedrive_answer *answer_out, tide_error *err)
{
    TIDE_ASSERT(id.bytes > 0); /* the root has neither a name nor a place */
    struct tide_api_ask ask;
    struct tide_header header;
    tide_auto_json json;
    tide_json_object(&json);
    update_write(update, &json);
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_UPDATE, drive);
    tide_onedrive_ask_item(&ask, id);
    tide_onedrive_if_match(&ask, update->if_match, &header);
    const tide_status rc = send_json(onedrive, &ask, &json, answer_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_delete(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                 tide_text id, tide_text if_match, tide_error *err)
{
    TIDE_ASSERT(id.bytes > 0); /* never the root */
    struct tide_api_ask ask;
    struct tide_header header;
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_DELETE, drive);
    tide_onedrive_ask_item(&ask, id);
    tide_onedrive_if_match(&ask, if_match, &header);
    const tide_status rc = tide_onedrive_send_batched(onedrive, &ask, err);
    tide_api_ask_done(&ask);
    return rc;
}
