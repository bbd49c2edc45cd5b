#include "net/batch.h"

#include "base/check.h"
#include "net/google.h"
#include "net/multipart.h"
#include "net/secrets.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FLIGHTS_DEFAULT = 3,
    FLIGHTS_MAX = 64,
    SIZE_START = 8,
    SIZE_DEFAULT_MAX = 50,

    REQUEST_BYTES_MAX = 16 << 20,
    BEARER_BYTES_MAX = 16 << 10,
    BEAT_MS = 1000, /* of somebody who waits: a sign of life for the supervisor */
};
#define ANSWER_BYTES_DEFAULT (64ull << 20)

/* One asker, on its own stack until it leaves (T1). */
struct asker {
    struct asker *next;
    tide_job *job;
    const struct tide_batch_call *call;
    bool aboard;   /* of a flight: it stands still until that lands */
    bool pilot;    /* it shall fly: with whatever waits */
    bool answered; /* its outcome stands */
    tide_status status;
    tide_error err;
    uint64_t again_at_ms; /* with TIDE_AGAIN */
};

struct tide_batcher {
    tide_mem *mem;
    tide_world *world;
    tide_tokens *tokens;
    char url[1024];
    unsigned flights_max, size_max;
    uint64_t bytes_max;

    tide_lock *lock;
    tide_cond *news;
    struct asker *first, *last; /* on the ground, in the order of their coming */
    struct tide_batch_state state;
};

/* One request in the air; its askers stand still until it is over. */
struct flight {
    tide_batcher *batcher;
    tide_job *job;                              /* the pilot's */
    struct asker *askers[TIDE_BATCH_PARTS_MAX]; /* NULL: it has its answer and may be gone */
    unsigned count;
    uint32_t units;
    uint32_t method_id;
    struct tide_response *response;
    tide_multipart *reader;
    unsigned reading; /* index of the part that is being read; count: nobody's */
    int reading_http;
    tide_buf refusal;        /* the body of a part that is an error, or of the whole */
    tide_status part_failed; /* what a sink said of its own part */
    bool read;               /* the answer had a body of parts */
    bool throttled;          /* some part was */
    bool token_again;        /* a part that does not like the token may ask with another */
    bool token_refused;      /* some part did not */
    uint32_t refused;        /* parts, for their rate */
    uint32_t latency_ms;
    uint64_t retry_after_ms; /* the longest that any part named */
    tide_error throttled_err;
};

/* ---- life ---- */

tide_status tide_batcher_open(const struct tide_batch_options *options, tide_mem *mem,
                              tide_batcher **batcher_out, tide_error *err)
{
    tide_batcher *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for batches");
    self->mem = mem;
    self->world = options->world;
    self->tokens = options->tokens;
    (void)snprintf(self->url, sizeof self->url, "%s", options->url);
    self->flights_max = options->flights_max == 0 ? FLIGHTS_DEFAULT : options->flights_max;
    if (self->flights_max > FLIGHTS_MAX)
        self->flights_max = FLIGHTS_MAX;
    self->size_max = options->size_max == 0 ? SIZE_DEFAULT_MAX : options->size_max;
    if (self->size_max > TIDE_BATCH_PARTS_MAX)
        self->size_max = TIDE_BATCH_PARTS_MAX;
    self->state.size = options->size_start == 0 ? SIZE_START : options->size_start;
    if (self->state.size > self->size_max)
        self->state.size = self->size_max;
    self->bytes_max = options->bytes_max == 0 ? ANSWER_BYTES_DEFAULT : options->bytes_max;
    tide_status rc = tide_lock_new(self->world, &self->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(self->world, &self->news);
    if (rc != TIDE_OK) {
        tide_batcher_close(self);
        return tide_error_set(err, rc, "no memory for batches");
    }
    *batcher_out = self;
    return TIDE_OK;
}

void tide_batcher_close(tide_batcher *batcher)
{
    if (batcher == NULL)
        return;
    TIDE_ASSERT(batcher->first == NULL && batcher->state.flights == 0);
    if (batcher->news != NULL)
        tide_cond_free(batcher->world, batcher->news);
    if (batcher->lock != NULL)
        tide_lock_free(batcher->world, batcher->lock);
    tide_mem_free(batcher->mem, batcher, sizeof *batcher);
}

void tide_batcher_state(tide_batcher *batcher, struct tide_batch_state *state_out)
{
    tide_lock_take(batcher->world, batcher->lock);
    *state_out = batcher->state;
    tide_lock_drop(batcher->world, batcher->lock);
}

bool tide_batcher_check(tide_batcher *batcher)
{
    tide_lock_take(batcher->world, batcher->lock);
    uint32_t waiting = 0;
    for (const struct asker *asker = batcher->first; asker != NULL; asker = asker->next)
        waiting++;
    const struct tide_batch_state *state = &batcher->state;
    const bool good = waiting == state->waiting && state->flights <= batcher->flights_max &&
                      state->size >= 1 && state->size <= batcher->size_max;
    tide_lock_drop(batcher->world, batcher->lock);
    return good;
}

/* ---- on the ground; all of it under the lock ---- */

static void queue_add(tide_batcher *self, struct asker *asker)
{
    asker->next = NULL;
    if (self->last == NULL)
        self->first = asker;
    else
        self->last->next = asker;
    self->last = asker;
    self->state.waiting++;
}

static void queue_add_first(tide_batcher *self, struct asker *asker)
{
    asker->next = self->first;
    self->first = asker;
    if (self->last == NULL)
        self->last = asker;
    self->state.waiting++;
}

static void queue_remove(tide_batcher *self, struct asker *asker)
{
    struct asker *before = NULL;
    struct asker *at = self->first;
    while (at != NULL && at != asker) {
        before = at;
        at = at->next;
    }
    if (at == NULL)
        return;
    if (before == NULL)
        self->first = at->next;
    else
        before->next = at->next;
    if (self->last == at)
        self->last = before;
    self->state.waiting--;
}

/* A free flight goes to whoever has waited longest. */
static void name_pilot(tide_batcher *self)
{
    if (self->first == NULL || self->first->pilot || self->state.flights >= self->flights_max)
        return; /* a named one is on its way */
    self->first->pilot = true;
    tide_cond_wake_all(self->world, self->news);
}

/* Takes the pilot and those behind it aboard (T2), leaving their share to the other
 * flights that are free: the parts of one may be served one after another. */
static void board(tide_batcher *self, struct asker *pilot, struct flight *flight)
{
    const unsigned free_flights = self->flights_max - self->state.flights;
    const unsigned share = (self->state.waiting + free_flights - 1) / free_flights;
    const unsigned most = share < self->state.size ? share : self->state.size;
    uint64_t bytes = 0;
    queue_remove(self, pilot);
    pilot->aboard = true;
    flight->askers[flight->count++] = pilot;
    flight->units = pilot->call->units;
    flight->method_id = pilot->call->method_id;
    bytes = pilot->call->expected_bytes;
    while (self->first != NULL && flight->count < most) {
        struct asker *next = self->first;
        if (bytes + next->call->expected_bytes > self->bytes_max)
            break;
        queue_remove(self, next);
        next->aboard = true;
        bytes += next->call->expected_bytes;
        flight->units += next->call->units;
        flight->askers[flight->count++] = next;
    }
    self->state.flights++;
    name_pilot(self);
}

/* B1's AIMD over the size of a batch. */
static void size_learn(tide_batcher *self, const struct flight *flight)
{
    if (flight->throttled)
        self->state.size = self->state.size > 1 ? self->state.size / 2 : 1;
    else if (flight->count == self->state.size && self->state.size < self->size_max)
        self->state.size++;
}

/* ---- the request ---- */

static tide_status write_request(const struct flight *flight, const char *boundary, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    for (unsigned i = 0; rc == TIDE_OK && i < flight->count; i++) {
        const struct tide_batch_call *call = flight->askers[i]->call;
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

/* ---- the answer, part by part; on the pilot's thread ---- */

static tide_status on_part(void *arg, tide_text id, int http)
{
    struct flight *flight = arg;
    uint64_t number = flight->count;
    flight->reading = flight->count;
    flight->reading_http = http;
    flight->part_failed = TIDE_OK;
    tide_buf_clear(&flight->refusal);
    if (id.bytes < 2 || id.data[0] != 'q' ||
        !tide_text_to_u64((tide_text){id.data + 1, id.bytes - 1}, &number) ||
        number >= flight->count)
        return TIDE_OK; /* nobody asked for it: it is read and forgotten */
    const struct asker *asker = flight->askers[number];
    if (asker == NULL)
        return TIDE_OK; /* a second answer changes nothing (T3) */
    flight->reading = (unsigned)number;
    if (asker->call->restart != NULL)
        asker->call->restart(asker->call->sink_arg);
    return TIDE_OK;
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct flight *flight = arg;
    if (flight->reading == flight->count)
        return TIDE_OK;
    const struct tide_batch_call *call = flight->askers[flight->reading]->call;
    if (flight->reading_http < 200 || flight->reading_http > 299) {
        (void)tide_buf_add(&flight->refusal, bytes, count); /* more than fits is no refusal */
        return TIDE_OK;
    }
    if (flight->part_failed == TIDE_OK)
        flight->part_failed = call->sink(call->sink_arg, bytes, count);
    return TIDE_OK; /* a sink's failure is its own part's (T3) */
}

static void part_throttled(struct flight *flight, const tide_error *err, uint64_t retry_after_ms)
{
    if (!flight->throttled)
        flight->throttled_err = *err;
    flight->throttled = true;
    if (retry_after_ms > flight->retry_after_ms)
        flight->retry_after_ms = retry_after_ms;
    flight->refused++;
}

/* Its asker goes on while the rest of the answer arrives: what it received does not wait
 * in memory for the others. */
static void release(struct flight *flight, unsigned index)
{
    tide_batcher *self = flight->batcher;
    tide_lock_take(self->world, self->lock);
    flight->askers[index]->answered = true;
    flight->askers[index] = NULL;
    tide_cond_wake_all(self->world, self->news);
    tide_lock_drop(self->world, self->lock);
}

static tide_status on_end(void *arg, bool whole)
{
    struct flight *flight = arg;
    const unsigned index = flight->reading;
    flight->reading = flight->count;
    if (index == flight->count || !whole)
        return TIDE_OK; /* nobody's, or as good as missing */
    struct asker *asker = flight->askers[index];
    uint64_t retry_after_ms = 0;
    asker->err.status = TIDE_OK;
    asker->err.code = flight->reading_http;
    if (flight->reading_http >= 200 && flight->reading_http <= 299)
        asker->status = flight->part_failed;
    else
        asker->status = tide_google_judge_body(
            flight->reading_http, tide_buf_text(&flight->refusal),
            tide_world_now_unix_ms(flight->batcher->world), &retry_after_ms, &asker->err);
    if (asker->status == TIDE_AUTH) {
        flight->token_refused = true;
        if (flight->token_again)
            return TIDE_OK; /* it stays aboard */
    }
    if (asker->status == TIDE_THROTTLED)
        part_throttled(flight, &asker->err, retry_after_ms);
    if (asker->status != TIDE_OK && asker->err.status == TIDE_OK)
        (void)tide_error_set(&asker->err, asker->status, "a part of a batch: %s",
                             tide_status_name(asker->status));
    release(flight, index);
    return TIDE_OK;
}

/* The body of the whole answer.  Its head is known by now. */
static tide_status on_answer(void *arg, const char *bytes, size_t count)
{
    struct flight *flight = arg;
    if (flight->response->http < 200 || flight->response->http > 299) {
        (void)tide_buf_add(&flight->refusal, bytes, count);
        return TIDE_OK;
    }
    if (flight->reader == NULL) {
        const struct tide_multipart_events events = {on_part, on_bytes, on_end, flight};
        const tide_status rc =
            tide_multipart_new(tide_response_header(flight->response, "Content-Type"), &events,
                               flight->batcher->mem, &flight->reader, NULL);
        if (rc != TIDE_OK)
            return rc;
        flight->read = true;
    }
    return tide_multipart_write(flight->reader, bytes, count);
}

/* What the governor learns of it.  A judge has no argument of its own: the flight
 * follows its response. */
struct answer {
    struct tide_response response;
    struct flight *flight;
};

static tide_status judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                         tide_error *err)
{
    struct flight *flight = ((const struct answer *)(const void *)response)->flight;
    if (response->http < 200 || response->http > 299)
        return tide_google_judge_body(response->http, tide_buf_text(&flight->refusal),
                                      tide_world_now_unix_ms(flight->batcher->world),
                                      retry_after_ms_out, err);
    if (flight->reader == NULL)
        return tide_error_set(err, TIDE_SERVER, "the answer to a batch is empty");
    const tide_status rc = tide_multipart_end(flight->reader, err);
    if (flight->throttled) {
        *retry_after_ms_out = flight->retry_after_ms;
        if (err != NULL)
            *err = flight->throttled_err;
        return TIDE_THROTTLED;
    }
    if (flight->token_refused)
        return tide_error_set(err, TIDE_AUTH, "a part of a batch refuses the token");
    return rc;
}

static tide_status send_batch(struct flight *flight, tide_text body, const char *boundary,
                              tide_text bearer, tide_error *err)
{
    char type[96];
    tide_buf authorization;
    struct answer answer = {.flight = flight};
    (void)snprintf(type, sizeof type, "multipart/mixed; boundary=%s", boundary);
    tide_buf_init(&authorization, flight->batcher->mem, BEARER_BYTES_MAX + 16);
    tide_status rc = tide_buf_print(&authorization, "Bearer %.*s", (int)bearer.bytes, bearer.data);
    const struct tide_header headers[] = {
        {TIDE_TEXT("Authorization"), tide_buf_text(&authorization)},
        {TIDE_TEXT("Content-Type"), tide_text_of(type)},
        {TIDE_TEXT("User-Agent"), TIDE_TEXT("tidemark/" TIDE_VERSION " (gzip)")},
    };
    const struct tide_request request = {
        .method = "POST",
        .url = flight->batcher->url,
        .headers = headers,
        .headers_count = sizeof headers / sizeof headers[0],
        .body = body,
        .sink = on_answer,
        .sink_arg = flight,
        .body_bytes_max = UINT64_MAX,
        .repeatable = true,
    };
    tide_response_init(&answer.response, flight->batcher->mem);
    flight->response = &answer.response;
    if (rc == TIDE_OK)
        rc = tide_job_batch(flight->job, flight->units, flight->count, flight->method_id, judge,
                            &request, &answer.response, err);
    flight->latency_ms = answer.response.latency_ms;
    flight->response = NULL;
    tide_response_done(&answer.response);
    tide_multipart_free(flight->reader);
    flight->reader = NULL;
    tide_secret_wipe(&authorization);
    tide_buf_done(&authorization);
    return rc;
}

/* Once more with another token when the first is refused, by the whole or by parts: the server
 * may look at it in either place.  Who has an answer by then is gone, and what comes for it again is
 * nobody's. */
static tide_status fly(struct flight *flight, tide_error *err)
{
    tide_batcher *self = flight->batcher;
    uint64_t random = 0;
    char boundary[40];
    tide_buf body;
    tide_buf bearer;
    tide_world_random(self->world, &random, sizeof random);
    (void)snprintf(boundary, sizeof boundary, "tidemark-%016" PRIx64, random);
    tide_buf_init(&body, self->mem, REQUEST_BYTES_MAX);
    tide_buf_init(&bearer, self->mem, BEARER_BYTES_MAX);
    tide_status rc = write_request(flight, boundary, &body);
    for (int attempt = 0; attempt < 2; attempt++) {
        flight->token_again = attempt == 0;
        flight->token_refused = false;
        flight->read = false;
        if (rc == TIDE_OK)
            rc = tide_tokens_get(self->tokens, tide_job_cancellation(flight->job), &bearer, err);
        if (rc == TIDE_OK)
            rc = send_batch(flight, tide_buf_text(&body), boundary, tide_buf_text(&bearer), err);
        if (rc != TIDE_AUTH || bearer.bytes == 0)
            break;
        tide_tokens_refused(self->tokens, tide_buf_text(&bearer));
        if (attempt == 0)
            rc = TIDE_OK;
    }
    tide_secret_wipe(&bearer);
    tide_buf_done(&bearer);
    tide_buf_done(&body);
    return rc;
}

/* ---- landing ---- */

/* Who got no answer of their own: what became of the request, or that it lacks them. */
static void unanswered(struct flight *flight, unsigned index, tide_status rc, const tide_error *err)
{
    struct asker *asker = flight->askers[index];
    asker->answered = true;
    if (flight->read && rc != TIDE_CANCELED && rc != TIDE_STOPPED) {
        asker->status =
            tide_error_set(&asker->err, TIDE_SERVER, "a batch has no answer for this part");
        flight->batcher->state.missing++;
        return;
    }
    asker->status = rc;
    asker->err = *err;
    if (rc == TIDE_AGAIN)
        asker->again_at_ms = tide_job_again_at_ms(flight->job);
}

/* The pilot was called off: its passengers wait for another one. */
static void disembark(struct flight *flight)
{
    for (unsigned i = flight->count; i-- > 1;) {
        struct asker *asker = flight->askers[i];
        if (asker == NULL)
            continue;
        asker->aboard = false;
        queue_add_first(flight->batcher, asker);
    }
    flight->count = 1;
}

/* Under the lock. */
static void land(struct flight *flight, tide_status rc, const tide_error *err)
{
    tide_batcher *self = flight->batcher;
    if (rc == TIDE_CANCELED || rc == TIDE_STOPPED)
        disembark(flight);
    for (unsigned i = 0; i < flight->count; i++)
        if (flight->askers[i] != NULL)
            unanswered(flight, i, rc, err);
    if (flight->read || rc != TIDE_AGAIN) {
        self->state.requests++;
        self->state.parts += flight->count;
        self->state.refused += flight->refused;
        self->state.latency_ms = flight->latency_ms;
        size_learn(self, flight);
    }
    self->state.flights--;
    name_pilot(self);
    tide_cond_wake_all(self->world, self->news);
}

static void pilot(tide_batcher *self, struct asker *asker)
{
    struct flight flight = {.batcher = self, .job = asker->job};
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf_init(&flight.refusal, self->mem, TIDE_BATCH_REFUSAL_BYTES_MAX);
    board(self, asker, &flight);
    tide_lock_drop(self->world, self->lock);
    const tide_status rc = fly(&flight, &err);
    tide_lock_take(self->world, self->lock);
    land(&flight, rc, &err);
    tide_buf_done(&flight.refusal);
}

/* Until its answer is there or it is to fly.  One that is aboard cannot leave (T1); one
 * on the ground leaves when it is canceled. */
static bool wait_turn(tide_batcher *self, struct asker *asker)
{
    while (!asker->answered && !asker->pilot) {
        const uint64_t until_us = tide_world_now_us(self->world) + BEAT_MS * 1000u;
        if (tide_cond_wait(self->world, self->news, self->lock, until_us) == TIDE_STOPPED &&
            !asker->aboard)
            return false;
        tide_job_beat(asker->job, 0);
        if (tide_job_canceled(asker->job) && !asker->aboard)
            return false;
    }
    return true;
}

tide_status tide_batch_ask(tide_batcher *batcher, tide_job *job, const struct tide_batch_call *call,
                           tide_error *err)
{
    TIDE_ASSERT(call->sink != NULL);
    struct asker asker = {.job = job, .call = call};
    tide_lock_take(batcher->world, batcher->lock);
    queue_add(batcher, &asker);
    name_pilot(batcher);
    if (!wait_turn(batcher, &asker)) {
        queue_remove(batcher, &asker);
        asker.status = tide_error_set(&asker.err, TIDE_CANCELED, "canceled");
        asker.answered = true;
        if (asker.pilot)
            name_pilot(batcher);
    }
    if (!asker.answered)
        pilot(batcher, &asker);
    tide_lock_drop(batcher->world, batcher->lock);
    TIDE_ASSERT(asker.answered);
    if (asker.status != TIDE_OK && err != NULL)
        *err = asker.err;
    if (asker.status == TIDE_AGAIN)
        return tide_job_again(job, asker.again_at_ms);
    return asker.status;
}
