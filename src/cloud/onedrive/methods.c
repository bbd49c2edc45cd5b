#include "cloud/onedrive/inside.h"

#include "base/clocktext.h"
#include "base/encode.h"
#include "base/limits.h"
#include "net/batch/json.h"
#include "net/judge_graph.h"

#include <assert.h>

static_assert((int)TIDE_ONEDRIVE_METHODS <= (int)TIDE_METHODS_MAX,
              "every method has a latency of its own");

enum {
    BODY_BYTES_MAX = 64 << 10,
    PART_BYTES_GUESS = 4 << 10, /* of an item in the answer to a batch */
};

/* Names as in Graph's reference; units as SharePoint counts them: a read of one item costs one, a
 * list or a write two. */
static const struct tide_api_method methods[TIDE_ONEDRIVE_METHODS] = {
    [TIDE_ONEDRIVE_DRIVE] = {"drives.get", "GET", 1, true},
    [TIDE_ONEDRIVE_GET] = {"items.get", "GET", 1, true},
    [TIDE_ONEDRIVE_CHILDREN] = {"items.children", "GET", 2, true},
    [TIDE_ONEDRIVE_DELTA] = {"items.delta", "GET", 1, true},
    [TIDE_ONEDRIVE_CREATE] = {"items.create", "POST", 2, false},
    [TIDE_ONEDRIVE_UPDATE] = {"items.update", "PATCH", 2, false},
    [TIDE_ONEDRIVE_DELETE] = {"items.delete", "DELETE", 2, true},
    [TIDE_ONEDRIVE_SESSION] = {"items.createUploadSession", "POST", 2, true},
    [TIDE_ONEDRIVE_FRAGMENT] = {"upload", "PUT", 1, false},
    [TIDE_ONEDRIVE_STATUS] = {"upload.status", "GET", 1, true},
    [TIDE_ONEDRIVE_CANCEL] = {"upload.cancel", "DELETE", 1, true},
    [TIDE_ONEDRIVE_PUT] = {"items.content.put", "PUT", 2, false},
    [TIDE_ONEDRIVE_CONTENT] = {"items.content", "GET", 1, true},
    [TIDE_ONEDRIVE_WATCH] = {"subscriptions.create", "POST", 2, false},
    [TIDE_ONEDRIVE_WATCH_CHANGE] = {"subscriptions.update", "PATCH", 2, true},
};

static const struct tide_provider_net onedrive_api = {
    .name = "Microsoft Graph API",
    .url = "https://graph.microsoft.com",
    .judge = tide_graph_judge,
    .url_judge = tide_graph_url_judge,
    .agent = "NONISV|Tidemark|Tidemark/" TIDE_VERSION, /* the form that Microsoft asks for */
    .methods = methods,
    .methods_count = TIDE_ONEDRIVE_METHODS,
};

const char *tide_onedrive_method_name(uint32_t method)
{
    return method < TIDE_ONEDRIVE_METHODS ? methods[method].name : NULL;
}

tide_status tide_onedrive_open(const struct tide_onedrive_options *options, tide_mem *mem,
                               tide_onedrive **onedrive_out, tide_error *err)
{
    tide_onedrive *onedrive = tide_mem_new(mem, sizeof *onedrive);
    if (onedrive == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for OneDrive");
    onedrive->mem = mem;
    const struct tide_api_options api = {.provider = &onedrive_api,
                                         .endpoint = options->endpoint,
                                         .tokens = options->tokens,
                                         .bearer = options->bearer,
                                         .world = options->world};
    tide_status rc = tide_api_open(&api, mem, &onedrive->api, err);
    if (rc == TIDE_OK && options->batches != NULL) {
        struct tide_batch_options batches = *options->batches;
        batches.api = onedrive->api;
        batches.path = "/v1.0/$batch";
        batches.format = &tide_batch_json;
        batches.world = options->world;
        rc = tide_batcher_open(&batches, mem, &onedrive->batcher, err);
    }
    if (rc != TIDE_OK) {
        tide_onedrive_close(onedrive);
        return rc;
    }
    *onedrive_out = onedrive;
    return TIDE_OK;
}

void tide_onedrive_close(tide_onedrive *onedrive)
{
    if (onedrive == NULL)
        return;
    tide_batcher_close(onedrive->batcher);
    tide_api_close(onedrive->api);
    tide_mem_free(onedrive->mem, onedrive, sizeof *onedrive);
}

void tide_onedrive_tune(tide_onedrive *onedrive, unsigned requests, unsigned parts)
{
    tide_batcher_tune(onedrive->batcher, requests, parts);
}

void tide_onedrive_batches(tide_onedrive *onedrive, struct tide_batch_state *state_out)
{
    tide_batcher_state(onedrive->batcher, state_out);
}

/* ---- calls ---- */

void tide_onedrive_ask(struct tide_api_ask *ask, tide_onedrive *onedrive, tide_job *job,
                       enum tide_onedrive_method method, tide_text drive)
{
    tide_api_ask_init(ask, onedrive->api, job, method,
                      drive.bytes == 0 ? "/v1.0/me/drive" : "/v1.0/drives/");
    tide_api_ask_value(ask, drive);
}

void tide_onedrive_ask_item(struct tide_api_ask *ask, tide_text id)
{
    tide_api_ask_add(ask, id.bytes == 0 ? "/root" : "/items/");
    tide_api_ask_value(ask, id);
}

void tide_onedrive_ask_below(struct tide_api_ask *ask, tide_text id, tide_text path)
{
    tide_onedrive_ask_item(ask, id);
    tide_api_ask_add(ask, ":/");
    if (ask->failed == TIDE_OK)
        ask->failed = tide_percent_add(&ask->path, path, TIDE_URL_UNRESERVED "/");
    tide_api_ask_add(ask, ":");
}

static tide_status part_write(void *arg, const char *bytes, size_t count)
{
    struct tide_api_ask *ask = arg;
    return tide_buf_add(&ask->response.body, bytes, count);
}

static void part_restart(void *arg)
{
    struct tide_api_ask *ask = arg;
    tide_buf_clear(&ask->response.body);
}

tide_status tide_onedrive_send_batched(tide_onedrive *onedrive, struct tide_api_ask *ask,
                                       tide_error *err)
{
    if (onedrive->batcher == NULL || ask->job == NULL || ask->failed != TIDE_OK)
        return tide_api_ask_named(ask, tide_api_ask_send(ask, err), err);
    ask->response.body.bytes_max = TIDE_API_SMALL_BYTES_MAX;
    const struct tide_batch_call call = {
        .method = ask->call.method,
        .path = tide_buf_cstr(&ask->path),
        .body = ask->call.body,
        .headers = ask->call.headers,
        .headers_count = ask->call.headers_count,
        .expected_bytes = PART_BYTES_GUESS,
        .sink = part_write,
        .restart = part_restart,
        .sink_arg = ask,
    };
    return tide_api_ask_named(ask, tide_batch_ask(onedrive->batcher, ask->job, &call, err), err);
}

tide_status tide_onedrive_answer_read(const struct tide_api_ask *ask,
                                      struct tide_onedrive_answer *answer_out, tide_error *err)
{
    json_t *value = NULL;
    tide_onedrive_answer_done(answer_out);
    tide_status rc = tide_api_object(tide_buf_text(&ask->response.body), &value, err);
    if (rc == TIDE_OK)
        rc = tide_onedrive_item_read(value, &answer_out->item, err);
    if (rc == TIDE_OK)
        answer_out->value = value;
    else
        json_decref(value);
    return tide_api_ask_named(ask, rc, err);
}

tide_status tide_onedrive_ask_answer(struct tide_api_ask *ask,
                                     struct tide_onedrive_answer *answer_out, tide_error *err)
{
    tide_onedrive_answer_done(answer_out);
    const tide_status rc = tide_api_ask_send(ask, err);
    if (rc != TIDE_OK)
        return tide_api_ask_named(ask, rc, err);
    return tide_onedrive_answer_read(ask, answer_out, err);
}

void tide_onedrive_answer_done(struct tide_onedrive_answer *answer)
{
    json_decref(answer->value);
    *answer = (struct tide_onedrive_answer){.value = NULL};
}

tide_status tide_onedrive_body(tide_json *json, tide_buf *body_out, tide_error *err)
{
    body_out->bytes_max = BODY_BYTES_MAX;
    const tide_status rc = tide_json_line(json, body_out);
    if (rc == TIDE_FULL)
        return tide_error_set(err, TIDE_INVALID, "the request is too long to be sent");
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for a request");
}

void tide_onedrive_if_match(struct tide_api_ask *ask, tide_text tag, struct tide_header *header)
{
    *header = (struct tide_header){TIDE_TEXT("If-Match"), tag};
    ask->call.headers = header;
    ask->call.headers_count = tag.bytes > 0 ? 1 : 0;
}

void tide_onedrive_time_set(tide_json *json, const char *key, uint64_t unix_ms)
{
    char text[TIDE_TIME_TEXT_BYTES];
    if (unix_ms == 0)
        return;
    tide_time_format(unix_ms, text);
    tide_json_set_cstr(json, key, text);
}
