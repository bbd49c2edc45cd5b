#include "net/batch/json.h"

#include "base/check.h"
#include "net/api/list.h"
#include "world/world.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct reader {
    tide_mem *mem;
    struct tide_batch_events events;
    struct tide_api_list list;
} reader;

/* ---- the request ---- */

/* Behind the first segment; a path has one (an assertion of the caller's table of methods). */
static const char *below_version(const char *path)
{
    TIDE_ASSERT(path[0] == '/');
    const char *rest = strchr(path + 1, '/');
    TIDE_ASSERT(rest != NULL);
    return rest;
}

static tide_status header_write(tide_buf *out, const char *before, tide_text name, tide_text value)
{
    TIDE_TRY(tide_buf_add_text(out, before));
    TIDE_TRY(tide_json_escape(name, out));
    TIDE_TRY(tide_buf_add_text(out, ":"));
    return tide_json_escape(value, out);
}

/* "headers":{...}; a part with a body must name its type. */
static tide_status headers_write(const struct tide_batch_part *part, tide_buf *out)
{
    const bool typed = part->body.bytes > 0;
    if (!typed && part->headers_count == 0)
        return TIDE_OK;
    TIDE_TRY(tide_buf_add_text(out, ",\"headers\":{"));
    if (typed)
        TIDE_TRY(header_write(out, "", TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")));
    for (size_t i = 0; i < part->headers_count; i++)
        TIDE_TRY(header_write(out, typed || i > 0 ? "," : "", part->headers[i].name,
                              part->headers[i].value));
    return tide_buf_add_text(out, "}");
}

static tide_status write_request(const struct tide_batch_part *parts, unsigned count,
                                 const char *boundary, tide_buf *type_out, tide_buf *body_out)
{
    (void)boundary;
    TIDE_TRY(tide_buf_add_text(type_out, "application/json"));
    TIDE_TRY(tide_buf_add_text(body_out, "{\"requests\":["));
    for (unsigned i = 0; i < count; i++) {
        TIDE_TRY(tide_buf_print(body_out, "%s{\"id\":\"q%u\",\"method\":\"%s\",\"url\":",
                                i == 0 ? "" : ",", i, parts[i].verb));
        TIDE_TRY(tide_json_escape(tide_text_of(below_version(parts[i].path)), body_out));
        TIDE_TRY(headers_write(&parts[i], body_out));
        if (parts[i].body.bytes > 0) {
            TIDE_TRY(tide_buf_add_text(body_out, ",\"body\":"));
            TIDE_TRY(tide_buf_add(body_out, parts[i].body.data, parts[i].body.bytes));
        }
        TIDE_TRY(tide_buf_add_text(body_out, "}"));
    }
    return tide_buf_add_text(body_out, "]}");
}

/* ---- the answer ---- */

/* The headers of an answer that have texts as values. */
static size_t headers_read(const json_t *answer,
                           struct tide_header headers[TIDE_RESPONSE_HEADERS_MAX])
{
    size_t count = 0;
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(answer, "headers"), key, value)
    {
        if (json_is_string(value) && count < TIDE_RESPONSE_HEADERS_MAX)
            headers[count++] = (struct tide_header){
                tide_text_of(key), {json_string_value(value), json_string_length(value)}};
    }
    return count;
}

static int write_bytes(const char *bytes, size_t count, void *arg)
{
    const reader *self = arg;
    return self->events.on_bytes(self->events.arg, bytes, count) == TIDE_OK ? 0 : -1;
}

static tide_status on_answer(void *arg, const json_t *answer)
{
    reader *self = arg;
    const json_t *id = json_object_get(answer, "id");
    const json_t *status = json_object_get(answer, "status");
    const json_t *body = json_object_get(answer, "body");
    const json_int_t http = json_integer_value(status);
    if (!json_is_string(id) || !json_is_integer(status) || http < 100 || http > 999)
        return TIDE_OK; /* BJS3 */
    TIDE_TRY(self->events.on_part(
        self->events.arg, (tide_text){json_string_value(id), json_string_length(id)}, (int)http));
    const bool whole =
        body == NULL || json_is_null(body) ||
        json_dump_callback(body, write_bytes, self, JSON_COMPACT | JSON_ENCODE_ANY) == 0;
    struct tide_header headers[TIDE_RESPONSE_HEADERS_MAX];
    const size_t count = headers_read(answer, headers);
    return self->events.on_end(self->events.arg, whole, headers, count);
}

static tide_status reader_new(tide_text type, const struct tide_batch_events *events, tide_mem *mem,
                              void **reader_out, tide_error *err)
{
    static const char json[] = "application/json";
    if (type.bytes < sizeof json - 1 || strncasecmp(type.data, json, sizeof json - 1) != 0)
        return tide_error_set(err, TIDE_SERVER, "the answer to a batch is not JSON");
    reader *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a batch");
    self->mem = mem;
    self->events = *events;
    tide_api_list_init(&self->list, "responses", TIDE_BATCH_JSON_ANSWER_BYTES_MAX, on_answer, self,
                       mem);
    *reader_out = self;
    return TIDE_OK;
}

static void reader_free(void *arg)
{
    reader *self = arg;
    if (self == NULL)
        return;
    tide_api_list_done(&self->list);
    tide_mem_free(self->mem, self, sizeof *self);
}

static tide_status reader_write(void *arg, const char *bytes, size_t count)
{
    reader *self = arg;
    return tide_api_list_write(&self->list, bytes, count);
}

static tide_status reader_end(void *arg, tide_error *err)
{
    reader *self = arg;
    json_t *rest = NULL;
    if (tide_api_list_end(&self->list, &rest, NULL) != TIDE_OK)
        return tide_error_set(err, self->list.failed, "the answer to a batch: %s",
                              self->list.wrong);
    json_decref(rest);
    return TIDE_OK;
}

const struct tide_batch_format tide_batch_json = {
    .parts_max = 20,
    .write = write_request,
    .reader_new = reader_new,
    .reader_write = reader_write,
    .reader_end = reader_end,
    .reader_free = reader_free,
};
