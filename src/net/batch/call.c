/* call.c - one request of the batcher: request body, answer, token. */
#include "net/batch/inside.h"

#include "base/check.h"
#include "net/judge_google.h"
#include "net/secrets.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    REQUEST_BYTES_MAX = 16 << 20,
    BEARER_BYTES_MAX = 16 << 10,
};

/* ---- the request ---- */

static tide_status write_request(const struct tide_batch *batch, const char *boundary,
                                 tide_buf *out)
{
    tide_status rc = TIDE_OK;
    for (unsigned i = 0; rc == TIDE_OK && i < batch->count; i++) {
        const struct tide_batch_call *call = batch->callers[i]->call;
        rc =
            tide_buf_print(out,
                           "--%s\r\nContent-Type: application/http\r\nContent-ID: <q%u>\r\n\r\n"
                           "%s %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                           boundary, i, call->method, call->path, call->body.bytes);
        if (rc == TIDE_OK)
            rc = tide_buf_add(out, call->body.data, call->body.bytes);
        if (rc == TIDE_OK)
            rc = tide_buf_add_text(out, "\r\n");
    }
    return rc == TIDE_OK ? tide_buf_print(out, "--%s--\r\n", boundary) : rc;
}

/* ---- the answer, part by part; on the sender's thread ---- */

static tide_status on_part(void *arg, tide_text id, int http)
{
    struct tide_batch *batch = arg;
    uint64_t number = batch->count;
    batch->reading = batch->count;
    batch->reading_http = http;
    batch->sink_failed = TIDE_OK;
    tide_buf_clear(&batch->refusal);
    if (id.bytes < 2 || id.data[0] != 'q' ||
        !tide_text_to_u64((tide_text){id.data + 1, id.bytes - 1}, &number) ||
        number >= batch->count)
        return TIDE_OK; /* no caller asked for it: read and drop it */
    const struct tide_batch_caller *caller = batch->callers[number];
    if (caller == NULL)
        return TIDE_OK; /* a second answer changes nothing (T3) */
    batch->reading = (unsigned)number;
    if (caller->call->restart != NULL)
        caller->call->restart(caller->call->sink_arg);
    return TIDE_OK;
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct tide_batch *batch = arg;
    if (batch->reading == batch->count)
        return TIDE_OK;
    const struct tide_batch_call *call = batch->callers[batch->reading]->call;
    if (batch->reading_http < 200 || batch->reading_http > 299) {
        (void)tide_buf_add(&batch->refusal, bytes, count); /* too long: not a refusal */
        return TIDE_OK;
    }
    if (batch->sink_failed == TIDE_OK)
        batch->sink_failed = call->sink(call->sink_arg, bytes, count);
    return TIDE_OK; /* a failing sink affects only its own part (T3) */
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

static tide_status on_end(void *arg, bool whole)
{
    struct tide_batch *batch = arg;
    const unsigned index = batch->reading;
    batch->reading = batch->count;
    if (index == batch->count || !whole)
        return TIDE_OK; /* of no caller, or treated as missing */
    struct tide_batch_caller *caller = batch->callers[index];
    uint64_t retry_after_ms = 0;
    caller->err.status = TIDE_OK;
    caller->err.code = batch->reading_http;
    if (batch->reading_http >= 200 && batch->reading_http <= 299)
        caller->status = batch->sink_failed;
    else
        caller->status = tide_google_judge_body(batch->reading_http, tide_buf_text(&batch->refusal),
                                                tide_world_now_unix_ms(batch->batcher->world),
                                                &retry_after_ms, &caller->err);
    if (caller->status == TIDE_AUTH) {
        batch->token_refused = true;
        if (batch->token_again)
            return TIDE_OK; /* it stays in the batch */
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

/* Takes the body of the whole answer.  Its head is known by now. */
static tide_status on_answer(void *arg, const char *bytes, size_t count)
{
    struct tide_batch *batch = arg;
    if (batch->response->http < 200 || batch->response->http > 299) {
        (void)tide_buf_add(&batch->refusal, bytes, count);
        return TIDE_OK;
    }
    if (batch->reader == NULL) {
        const struct tide_multipart_events events = {on_part, on_bytes, on_end, batch};
        const tide_status rc =
            tide_multipart_new(tide_response_header(batch->response, "Content-Type"), &events,
                               batch->batcher->mem, &batch->reader, NULL);
        if (rc != TIDE_OK)
            return rc;
        batch->read = true;
    }
    return tide_multipart_write(batch->reader, bytes, count);
}

/* What the governor learns from it.  A judge has no argument of its own: it finds the batch behind
 * the response. */
struct answer {
    struct tide_response response;
    struct tide_batch *batch;
};

static tide_status judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                         tide_error *err)
{
    struct tide_batch *batch = ((const struct answer *)(const void *)response)->batch;
    if (response->http < 200 || response->http > 299)
        return tide_google_judge_body(response->http, tide_buf_text(&batch->refusal),
                                      tide_world_now_unix_ms(batch->batcher->world),
                                      retry_after_ms_out, err);
    if (batch->reader == NULL)
        return tide_error_set(err, TIDE_SERVER, "the answer to a batch is empty");
    const tide_status rc = tide_multipart_end(batch->reader, err);
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

static tide_status send_batch(struct tide_batch *batch, tide_text body, const char *boundary,
                              tide_text bearer, tide_error *err)
{
    char type[96];
    tide_buf authorization;
    struct answer answer = {.batch = batch};
    (void)snprintf(type, sizeof type, "multipart/mixed; boundary=%s", boundary);
    tide_buf_init(&authorization, batch->batcher->mem, BEARER_BYTES_MAX + 16);
    tide_status rc = tide_buf_print(&authorization, "Bearer %.*s", (int)bearer.bytes, bearer.data);
    const struct tide_header headers[] = {
        {TIDE_TEXT("Authorization"), tide_buf_text(&authorization)},
        {TIDE_TEXT("Content-Type"), tide_text_of(type)},
        {TIDE_TEXT("User-Agent"), TIDE_TEXT("tidemark/" TIDE_VERSION " (gzip)")},
    };
    const struct tide_request request = {
        .method = "POST",
        .url = batch->batcher->url,
        .headers = headers,
        .headers_count = sizeof headers / sizeof headers[0],
        .body = body,
        .sink = on_answer,
        .sink_arg = batch,
        .body_bytes_max = UINT64_MAX,
        .stall_timeout_ms = TIDE_BATCH_SILENCE_MS_MAX,
        .repeatable = true,
    };
    tide_response_init(&answer.response, batch->batcher->mem);
    batch->response = &answer.response;
    if (rc == TIDE_OK)
        rc = tide_job_batch(batch->job, batch->units, batch->count, batch->method_id, judge,
                            &request, &answer.response, err);
    batch->latency_ms = answer.response.latency_ms;
    batch->response = NULL;
    tide_response_done(&answer.response);
    tide_multipart_free(batch->reader);
    batch->reader = NULL;
    tide_secret_wipe(&authorization);
    tide_buf_done(&authorization);
    return rc;
}

/* Sends once more with another token if the server refused the first, for the whole request or
 * for parts: it may check it in either place.  A caller that has its answer by then may be gone;
 * a second answer for it is read and dropped. */
tide_status tide_batch_send(struct tide_batch *batch, tide_error *err)
{
    tide_batcher *self = batch->batcher;
    uint64_t random = 0;
    char boundary[40];
    tide_buf body;
    tide_buf bearer;
    tide_world_random(self->world, &random, sizeof random);
    (void)snprintf(boundary, sizeof boundary, "tidemark-%016" PRIx64, random);
    tide_buf_init(&batch->refusal, self->mem, TIDE_BATCH_REFUSAL_BYTES_MAX);
    tide_buf_init(&body, self->mem, REQUEST_BYTES_MAX);
    tide_buf_init(&bearer, self->mem, BEARER_BYTES_MAX);
    tide_status rc = write_request(batch, boundary, &body);
    for (int attempt = 0; attempt < 2; attempt++) {
        batch->token_again = attempt == 0;
        batch->token_refused = false;
        batch->read = false;
        if (rc == TIDE_OK)
            rc = tide_tokens_get(self->tokens, tide_job_cancellation(batch->job), &bearer, err);
        if (rc == TIDE_OK)
            rc = send_batch(batch, tide_buf_text(&body), boundary, tide_buf_text(&bearer), err);
        if (rc != TIDE_AUTH || bearer.bytes == 0)
            break;
        tide_tokens_refused(self->tokens, tide_buf_text(&bearer));
        if (attempt == 0)
            rc = TIDE_OK;
    }
    tide_secret_wipe(&bearer);
    tide_buf_done(&bearer);
    tide_buf_done(&body);
    tide_buf_done(&batch->refusal);
    return rc;
}
