/* call.c - one request of the batcher: request body, answer. */
#include "net/batch/inside.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>

enum { REQUEST_BYTES_MAX = 16 << 20, TYPE_BYTES_MAX = 200 };

/* ---- the request ---- */

static tide_status write_request(const struct tide_batch *batch, tide_buf *type, tide_buf *body)
{
    tide_batcher *self = batch->batcher;
    const struct tide_api_method *methods = tide_api_provider(self->api)->methods;
    struct tide_batch_part parts[TIDE_BATCH_PARTS_MAX];
    uint64_t random = 0;
    char boundary[40];
    for (unsigned i = 0; i < batch->count; i++) {
        const struct tide_batch_call *call = batch->callers[i]->call;
        parts[i] = (struct tide_batch_part){methods[call->method].verb, call->path, call->body,
                                            call->headers, call->headers_count};
    }
    tide_world_random(self->world, &random, sizeof random);
    (void)snprintf(boundary, sizeof boundary, "tidemark-%016" PRIx64, random);
    return self->format->write(parts, batch->count, boundary, type, body);
}

/* ---- the answer, part by part; on the sender's thread ---- */

static tide_status on_part(void *arg, tide_text id, int http)
{
    struct tide_batch *batch = arg;
    uint64_t number = batch->count;
    batch->reading = batch->count;
    batch->part.http = http;
    batch->sink_failed = TIDE_OK;
    tide_buf_clear(&batch->part.body);
    if (id.bytes < 2 || id.data[0] != 'q' ||
        !tide_text_to_u64((tide_text){id.data + 1, id.bytes - 1}, &number) ||
        number >= batch->count)
        return TIDE_OK; /* no caller asked for it: read and drop it */
    const struct tide_batch_caller *caller = batch->callers[number];
    if (caller == NULL)
        return TIDE_OK; /* a second answer changes nothing (BAT3) */
    batch->reading = (unsigned)number;
    if (caller->call->restart != NULL)
        caller->call->restart(caller->call->sink_arg);
    return TIDE_OK;
}

static bool is_2xx(int http)
{
    return http >= 200 && http <= 299;
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct tide_batch *batch = arg;
    if (batch->reading == batch->count)
        return TIDE_OK;
    const struct tide_batch_call *call = batch->callers[batch->reading]->call;
    if (!is_2xx(batch->part.http)) {
        (void)tide_buf_add(&batch->part.body, bytes, count); /* too long: not a refusal */
        return TIDE_OK;
    }
    if (batch->sink_failed == TIDE_OK)
        batch->sink_failed = call->sink(call->sink_arg, bytes, count);
    return TIDE_OK; /* a failing sink affects only its own part (BAT3) */
}

static void part_throttled(struct tide_batch *batch, const tide_error *err, uint64_t retry_after_ms)
{
    if (!batch->throttled || err->code < 0) /* prefer the one that names its limit */
        batch->throttled_err = *err;
    batch->throttled = true;
    if (retry_after_ms > batch->retry_after_ms)
        batch->retry_after_ms = retry_after_ms;
    batch->refused++;
}

/* The judge compares times with the answer's own Date; a part may leave that to the whole. */
static void part_headers(struct tide_batch *batch, const struct tide_header *headers, size_t count)
{
    struct tide_response *part = &batch->part;
    const tide_text date = tide_response_header(&batch->response, "Date");
    part->headers_count = 0;
    for (size_t i = 0; i < count && i < TIDE_RESPONSE_HEADERS_MAX - 1; i++)
        part->headers[part->headers_count++] = headers[i];
    if (date.bytes > 0 && tide_response_header(part, "Date").bytes == 0)
        part->headers[part->headers_count++] = (struct tide_header){TIDE_TEXT("Date"), date};
}

static tide_status on_end(void *arg, bool whole, const struct tide_header *headers,
                          size_t headers_count)
{
    struct tide_batch *batch = arg;
    const unsigned index = batch->reading;
    batch->reading = batch->count;
    if (index == batch->count || !whole)
        return TIDE_OK; /* of no caller, or treated as missing */
    struct tide_batch_caller *caller = batch->callers[index];
    uint64_t retry_after_ms = 0;
    caller->err.status = TIDE_OK;
    caller->err.code = batch->part.http;
    if (!is_2xx(batch->part.http))
        tide_job_part_failed(batch->job, batch->part.http);
    part_headers(batch, headers, headers_count);
    caller->status = is_2xx(batch->part.http)
                         ? batch->sink_failed
                         : tide_api_provider(batch->batcher->api)
                               ->judge(&batch->part, &retry_after_ms, &caller->err);
    batch->part.headers_count = 0; /* borrowed */
    if (caller->status == TIDE_AUTH) {
        batch->token_refused = true;
        return TIDE_OK; /* it stays in the batch: another token may be accepted (API1) */
    }
    if (caller->status != TIDE_OK)
        batch->part_failed = true;
    if (caller->status == TIDE_THROTTLED)
        part_throttled(batch, &caller->err, retry_after_ms);
    if (caller->status != TIDE_OK && caller->err.status == TIDE_OK)
        (void)tide_error_set(&caller->err, caller->status, "a part of a batch: %s",
                             tide_status_name(caller->status));
    tide_batch_answered(batch, index);
    return TIDE_OK;
}

/* Takes the body of a 2xx answer. */
static tide_status on_answer(void *arg, const char *bytes, size_t count)
{
    struct tide_batch *batch = arg;
    const struct tide_batch_format *format = batch->batcher->format;
    if (batch->reader == NULL) {
        const struct tide_batch_events events = {on_part, on_bytes, on_end, batch};
        TIDE_TRY(format->reader_new(tide_response_header(&batch->response, "Content-Type"), &events,
                                    batch->batcher->mem, &batch->reader, NULL));
        batch->read = true;
    }
    return format->reader_write(batch->reader, bytes, count);
}

/* Before each call: callers that have no answer yet are asked for again.  One that was answered
 * may be gone; a second answer for it is read and dropped. */
static void on_restart(void *arg)
{
    struct tide_batch *batch = arg;
    batch->batcher->format->reader_free(batch->reader);
    batch->reader = NULL;
    batch->read = false;
    batch->token_refused = false;
    for (unsigned i = 0; i < batch->count; i++)
        if (batch->callers[i] != NULL)
            batch->callers[i]->status = TIDE_OK;
}

/* What the governor learns from a 2xx answer. */
static tide_status on_judge(void *arg, const struct tide_response *response,
                            uint64_t *retry_after_ms_out, tide_error *err)
{
    struct tide_batch *batch = arg;
    (void)response;
    if (batch->reader == NULL)
        return tide_error_set(err, TIDE_SERVER, "the answer to a batch is empty");
    const tide_status rc = batch->batcher->format->reader_end(batch->reader, err);
    if (batch->throttled) {
        *retry_after_ms_out = batch->retry_after_ms;
        if (err != NULL)
            *err = batch->throttled_err;
        return TIDE_THROTTLED;
    }
    if (batch->token_refused)
        return tide_error_set(err, TIDE_AUTH, "the server refused the token for a part of a batch");
    return rc;
}

tide_status tide_batch_send(struct tide_batch *batch, tide_error *err)
{
    tide_batcher *self = batch->batcher;
    tide_auto_buf type = tide_buf_in(self->mem, TYPE_BYTES_MAX);
    tide_auto_buf body = tide_buf_in(self->mem, REQUEST_BYTES_MAX);
    tide_response_init(&batch->response, self->mem);
    tide_response_init(&batch->part, self->mem);
    batch->part.body.bytes_max = TIDE_BATCH_REFUSAL_BYTES_MAX;
    tide_status rc = write_request(batch, &type, &body);
    const struct tide_api_call call = {
        .method = batch->method,
        .path = self->path,
        .body = tide_buf_text(&body),
        .type = tide_buf_cstr(&type),
        .sink = on_answer,
        .restart = on_restart,
        .sink_arg = batch,
        .answer_bytes_max = INT64_MAX,
        .stall_timeout_ms = TIDE_BATCH_SILENCE_MS_MAX,
        .parts = batch->count,
        .units = batch->units,
        .judge = on_judge,
        .judge_arg = batch,
    };
    if (rc == TIDE_OK)
        rc = tide_api_call(self->api, batch->job, &call, &batch->response, err);
    else
        (void)tide_error_set(err, rc, "no room for a batch of %u calls", batch->count);
    batch->batcher->format->reader_free(batch->reader);
    tide_response_done(&batch->response);
    tide_response_done(&batch->part);
    return rc;
}
