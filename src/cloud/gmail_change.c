/* gmail_change.c - calls that change a mailbox: labels, messages, inserts. */
#include "cloud/gmail_methods.h"

#include "base/check.h"
#include "base/encode.h"
#include "cloud/gmail_answer.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    REQUEST_BYTES_MAX = 16 << 20, /* of a JSON body */
    INSERT_JSON_BYTES_MAX = 1 << 20,
    BOUNDARIES_MAX = 100000,
};

/* ---- labels ---- */

tide_status tide_gmail_made(const struct tide_api_ask *ask, const json_t *value, tide_buf *id_out,
                            tide_status rc, tide_error *err)
{
    const bool answered = ask->response.http >= 200 && ask->response.http < 300;
    tide_text id;
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(ask, tide_gmail_answer_id(value, &id, err), err);
    if (rc == TIDE_OK) {
        if (id.bytes > id_out->bytes_max || tide_buf_room(id_out, id.bytes) != TIDE_OK)
            return tide_error_set(err, TIDE_UNKNOWN, "%s: no room for the new id",
                                  tide_api_ask_name(ask));
        tide_buf_clear(id_out);
        (void)tide_buf_add(id_out, id.data, id.bytes);
    }
    if (rc == TIDE_SERVER && answered && err != NULL)
        err->status = TIDE_UNKNOWN;
    return rc == TIDE_SERVER && answered ? TIDE_UNKNOWN : rc;
}

/* Prints and frees `value`, which may be NULL. */
static tide_status print(json_t *value, tide_buf *out)
{
    tide_json json = {value, value == NULL};
    const tide_status rc = tide_json_line(&json, out);
    tide_json_done(&json);
    return rc;
}

tide_status tide_gmail_label_create(tide_gmail *gmail, tide_job *job, tide_text name,
                                    tide_buf *id_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_auto_t *value = NULL;
    tide_auto_json label;
    tide_auto_buf body = tide_buf_in(tide_api_mem(gmail), TIDE_API_SMALL_BYTES_MAX);
    tide_json_object(&label);
    tide_json_set_text(&label, "name", name);
    tide_json_set_cstr(&label, "labelListVisibility", "labelShow");
    tide_json_set_cstr(&label, "messageListVisibility", "show");
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_LABEL_CREATE,
                      "/gmail/v1/users/me/labels?prettyPrint=false&fields=id");
    if (ask.failed == TIDE_OK)
        ask.failed = tide_json_line(&label, &body);
    ask.call.body = tide_buf_text(&body);
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    rc = tide_gmail_made(&ask, value, id_out, rc, err);
    if (ask.response.http == 409) {
        rc = TIDE_EXISTS;
        if (err != NULL)
            err->status = rc;
    }
    tide_api_ask_done(&ask);
    return rc;
}

/* The id of the label with that name, as Gmail compares names; NULL: there is none. */
static const char *label_named(const json_t *list, tide_text name)
{
    const json_t *labels = json_object_get(list, "labels");
    for (size_t i = 0; i < json_array_size(labels); i++) {
        const json_t *label = json_array_get(labels, i);
        const json_t *at = json_object_get(label, "name");
        if (json_string_length(at) == name.bytes &&
            strncasecmp(json_string_value(at), name.data, name.bytes) == 0)
            return json_string_value(json_object_get(label, "id"));
    }
    return NULL;
}

tide_status tide_gmail_label_ensure(tide_gmail *gmail, tide_job *job, json_t **labels_io,
                                    tide_text name, tide_buf *id_out, tide_error *err)
{
    /* A second look: after the create of another program, or one whose answer was lost. */
    for (unsigned look = 0; look < 2; look++) {
        if (*labels_io == NULL)
            TIDE_TRY(tide_gmail_labels(gmail, job, labels_io, err));
        const char *id = label_named(*labels_io, name);
        if (id != NULL) {
            tide_buf_clear(id_out);
            const tide_status rc = tide_buf_add_text(id_out, id);
            return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the id of a label");
        }
        if (look == 1)
            break;
        const tide_status rc = tide_gmail_label_create(gmail, job, name, id_out, err);
        if (rc != TIDE_EXISTS && rc != TIDE_UNKNOWN)
            return rc;
        TIDE_SEEN("gmail: a label appeared while it was created");
        json_decref(*labels_io);
        *labels_io = NULL;
    }
    return tide_error_set(err, TIDE_SERVER, "the label \"%.*s\" was neither created nor found",
                          (int)name.bytes, name.data);
}

tide_status tide_gmail_watch(tide_gmail *gmail, tide_job *job, const char *topic, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    tide_json wanted;
    tide_buf body;
    tide_buf_init(&body, tide_api_mem(gmail), TIDE_API_SMALL_BYTES_MAX);
    tide_json_object(&wanted);
    tide_json_set_cstr(&wanted, "topicName", topic);
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_WATCH,
                      "/gmail/v1/users/me/watch?prettyPrint=false&fields=expiration");
    if (ask.failed == TIDE_OK)
        ask.failed = tide_json_line(&wanted, &body);
    ask.call.body = tide_buf_text(&body);
    const tide_status rc = tide_api_ask_json(&ask, &value, err);
    json_decref(value);
    tide_json_done(&wanted);
    tide_buf_done(&body);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- changing messages --------------------------------------------------------------- */

/* NULL: no memory, or not UTF-8. */
static json_t *texts_json(const tide_text *texts, size_t count)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < count; i++)
        if (json_array_append_new(array, json_stringn(texts[i].data, texts[i].bytes)) != 0) {
            json_decref(array);
            array = NULL;
        }
    return array;
}

static void set_cstrs(json_t *object, const char *key, const char *const *texts, bool *failed)
{
    if (texts == NULL || texts[0] == NULL)
        return;
    json_t *array = json_array();
    for (size_t i = 0; texts[i] != NULL; i++)
        *failed |= json_array_append_new(array, json_string(texts[i])) != 0;
    *failed |= json_object_set_new(object, key, array) != 0;
}

tide_status tide_gmail_change_body(const tide_text *ids, size_t count, const char *const *add,
                                   const char *const *take, tide_buf *body, tide_error *err)
{
    json_t *object = json_object();
    bool failed = object == NULL;
    if (count > 1)
        failed |= json_object_set_new(object, "ids", texts_json(ids, count)) != 0;
    set_cstrs(object, "addLabelIds", add, &failed);
    set_cstrs(object, "removeLabelIds", take, &failed);
    tide_status rc = TIDE_NO_MEMORY;
    if (failed)
        json_decref(object);
    else
        rc = print(object, body);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no room for a request with %zu ids", count);
    return TIDE_OK;
}

static tide_status ids_check(const tide_text *ids, size_t count, tide_error *err)
{
    if (count > TIDE_GMAIL_IDS_MAX)
        return tide_error_set(err, TIDE_INVALID, "%zu ids in one call; %d are allowed", count,
                              TIDE_GMAIL_IDS_MAX);
    for (size_t i = 0; i < count; i++)
        if (ids[i].bytes == 0)
            return tide_error_set(err, TIDE_INVALID, "an id is empty");
    return TIDE_OK;
}

/* Sends a change and drops its answer.  A single message that is gone is not a failure, as among
 * many. */
static tide_status change(struct tide_api_ask *ask, size_t count, tide_error *err)
{
    tide_status rc = tide_api_ask_send(ask, err);
    if (rc == TIDE_GONE && count == 1) {
        TIDE_SEEN("gmail: changed a message that is gone");
        rc = TIDE_OK;
    }
    tide_api_ask_done(ask);
    return rc;
}

/* `count_told`: 1 ignores a message that is gone, 0 returns TIDE_GONE. */
static tide_status modify(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                          size_t count_told, const char *const *add, const char *const *take,
                          tide_error *err)
{
    TIDE_TRY(ids_check(ids, count, err));
    if (count == 0)
        return TIDE_OK;
    tide_auto_buf body = tide_buf_in(tide_api_mem(gmail), REQUEST_BYTES_MAX);
    TIDE_TRY(tide_gmail_change_body(ids, count, add, take, &body, err));
    struct tide_api_ask ask;
    if (count == 1)
        tide_gmail_ask_message(&ask, gmail, job, TIDE_GMAIL_MODIFY, ids[0],
                               "/modify?prettyPrint=false&fields=id");
    else
        tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_BATCH_MODIFY,
                          "/gmail/v1/users/me/messages/batchModify?prettyPrint=false");
    ask.call.body = tide_buf_text(&body);
    return change(&ask, count_told, err);
}

tide_status tide_gmail_modify(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              const char *const *add, const char *const *take, tide_error *err)
{
    return modify(gmail, job, ids, count, count, add, take, err);
}

tide_status tide_gmail_modify_one(tide_gmail *gmail, tide_job *job, tide_text id,
                                  const char *const *add, const char *const *take, tide_error *err)
{
    return modify(gmail, job, &id, 1, 0, add, take, err);
}

tide_status tide_gmail_delete(tide_gmail *gmail, tide_job *job, const tide_text *ids, size_t count,
                              tide_error *err)
{
    TIDE_TRY(ids_check(ids, count, err));
    if (count == 0)
        return TIDE_OK;
    struct tide_api_ask ask;
    if (count == 1) {
        tide_gmail_ask_message(&ask, gmail, job, TIDE_GMAIL_DELETE, ids[0], "?prettyPrint=false");
        return change(&ask, count, err);
    }
    tide_auto_buf body = tide_buf_in(tide_api_mem(gmail), REQUEST_BYTES_MAX);
    TIDE_TRY(tide_gmail_change_body(ids, count, NULL, NULL, &body, err));
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_BATCH_DELETE,
                      "/gmail/v1/users/me/messages/batchDelete?prettyPrint=false");
    ask.call.body = tide_buf_text(&body);
    return change(&ask, count, err);
}

/* ---- insert ------------------------------------------------------------------------------ */

/* {"labelIds":[],"threadId":""} without what is empty. */
static tide_status insert_meta(const tide_text *labels, size_t labels_count, tide_text thread_id,
                               tide_buf *meta)
{
    json_t *object = json_object();
    bool failed = object == NULL;
    if (labels_count > 0)
        failed |= json_object_set_new(object, "labelIds", texts_json(labels, labels_count)) != 0;
    if (thread_id.bytes > 0)
        failed |= json_object_set_new(object, "threadId",
                                      json_stringn(thread_id.data, thread_id.bytes)) != 0;
    if (failed) {
        json_decref(object);
        return TIDE_NO_MEMORY;
    }
    return print(object, meta);
}

/* A small message is sent as JSON, which every server understands.  `meta` ends in a newline. */
static tide_status insert_json(struct tide_api_ask *ask, tide_text raw, const tide_buf *meta,
                               tide_buf *body)
{
    const bool plain = meta->bytes <= 3; /* {} */
    tide_status rc = tide_buf_add_text(body, "{\"raw\":\"");
    if (rc == TIDE_OK)
        rc = tide_base64_add(body, raw, tide_base64_url, false);
    if (rc == TIDE_OK)
        rc = tide_buf_print(body, "\"%s%s", plain ? "" : ",", meta->data + 1);
    ask->call.body = tide_buf_text(body);
    return rc;
}

/* A large one is uploaded unchanged: head, bytes, tail, without a copy. */
struct upload {
    tide_text parts[3];
    size_t part;
    size_t at;
    char type[80];
};

static void upload_rewind(void *arg)
{
    struct upload *upload = arg;
    upload->part = 0;
    upload->at = 0;
}

static tide_status upload_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct upload *upload = arg;
    size_t count = 0;
    while (count < room && upload->part < 3) {
        const tide_text part = upload->parts[upload->part];
        const size_t left = part.bytes - upload->at;
        const size_t some = left < room - count ? left : room - count;
        if (some > 0)
            memcpy(bytes + count, part.data + upload->at, some);
        count += some;
        upload->at += some;
        if (upload->at == part.bytes) {
            upload->part++;
            upload->at = 0;
        }
    }
    *count_out = count;
    return TIDE_OK;
}

/* A line that the message does not contain. */
static tide_status boundary_of(tide_text raw, char boundary[32])
{
    for (unsigned i = 0; i < BOUNDARIES_MAX; i++) {
        const int bytes = snprintf(boundary, 32, "tidemark_part_%u", i);
        if (memmem(raw.data, raw.bytes, boundary, (size_t)bytes) == NULL)
            return TIDE_OK;
    }
    return TIDE_INVALID;
}

static tide_status insert_upload(struct tide_api_ask *ask, tide_text raw, const tide_buf *meta,
                                 struct upload *upload, tide_buf *frame)
{
    char boundary[32];
    TIDE_TRY(boundary_of(raw, boundary));
    TIDE_TRY(tide_buf_print(frame,
                            "--%s\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n%s\r\n"
                            "--%s\r\nContent-Type: message/rfc822\r\n\r\n",
                            boundary, tide_buf_cstr(meta), boundary));
    const size_t head_bytes = frame->bytes;
    TIDE_TRY(tide_buf_print(frame, "\r\n--%s--\r\n", boundary));
    upload->parts[0] = (tide_text){frame->data, head_bytes};
    upload->parts[1] = raw;
    upload->parts[2] = (tide_text){frame->data + head_bytes, frame->bytes - head_bytes};
    (void)snprintf(upload->type, sizeof upload->type, "multipart/related; boundary=%s", boundary);
    ask->call.type = upload->type;
    ask->call.source = upload_read;
    ask->call.rewind = upload_rewind;
    ask->call.source_arg = upload;
    ask->call.source_bytes = (uint64_t)frame->bytes + raw.bytes;
    return TIDE_OK;
}

/* The insert has happened: a malformed thread is no reason to fail. */
static void thread_of(const json_t *value, tide_buf *out)
{
    const char *thread = json_string_value(json_object_get(value, "threadId"));
    tide_buf_clear(out);
    if (thread != NULL && strlen(thread) <= out->bytes_max)
        (void)tide_buf_add_text(out, thread);
}

tide_status tide_gmail_insert(tide_gmail *gmail, tide_job *job, tide_text raw,
                              const tide_text *labels, size_t labels_count, tide_text thread_id,
                              tide_buf *id_out, tide_buf *thread_out, tide_error *err)
{
    struct tide_api_ask ask;
    struct upload upload;
    json_auto_t *value = NULL;
    tide_buf meta, body;
    const bool small = raw.bytes <= INSERT_JSON_BYTES_MAX;
    tide_buf_init(&meta, tide_api_mem(gmail), TIDE_API_SMALL_BYTES_MAX);
    tide_buf_init(&body, tide_api_mem(gmail), REQUEST_BYTES_MAX);
    tide_api_ask_init(&ask, gmail, job, TIDE_GMAIL_INSERT,
                      small
                          ? "/gmail/v1/users/me/messages?prettyPrint=false&fields=id,threadId"
                            "&internalDateSource=dateHeader"
                          : "/upload/gmail/v1/users/me/messages?uploadType=multipart"
                            "&prettyPrint=false&fields=id,threadId&internalDateSource=dateHeader");
    tide_status rc = ask.failed;
    if (rc == TIDE_OK)
        rc = insert_meta(labels, labels_count, thread_id, &meta);
    if (rc == TIDE_OK)
        rc = small ? insert_json(&ask, raw, &meta, &body)
                   : insert_upload(&ask, raw, &meta, &upload, &body);
    if (rc == TIDE_OK) {
        rc = tide_api_ask_json(&ask, &value, err);
        rc = tide_gmail_made(&ask, value, id_out, rc, err);
        if (rc == TIDE_OK && thread_out != NULL)
            thread_of(value, thread_out);
    } else {
        (void)tide_error_set(err, rc, "%s: no room for the request", tide_api_ask_name(&ask));
    }
    tide_buf_done(&body);
    tide_buf_done(&meta);
    tide_api_ask_done(&ask);
    return rc;
}
