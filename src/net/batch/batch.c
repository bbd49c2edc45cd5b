#include "net/batch/batch.h"

#include "base/check.h"
#include "net/batch/inside.h"

enum {
    IN_FLIGHT_DEFAULT = 3,
    IN_FLIGHT_MAX = 64,
    SIZE_START = 8,
    SIZE_DEFAULT_MAX = 50,
    BEAT_MS = 1000, /* how often a waiting caller beats for the supervisor */
};
#define ANSWER_BYTES_DEFAULT (64ull << 20)

/* ---- open and close ---- */

static unsigned chosen(unsigned wanted, unsigned usual, unsigned most)
{
    const unsigned value = wanted == 0 ? usual : wanted;
    return value < most ? value : most;
}

static void limits_set(tide_batcher *self, unsigned in_flight_max, unsigned size_max)
{
    self->in_flight_max = chosen(in_flight_max, IN_FLIGHT_DEFAULT, IN_FLIGHT_MAX);
    self->size_max = chosen(size_max, SIZE_DEFAULT_MAX,
                            chosen(self->format->parts_max, 1, TIDE_BATCH_PARTS_MAX));
}

tide_status tide_batcher_open(const struct tide_batch_options *options, tide_mem *mem,
                              tide_batcher **batcher_out, tide_error *err)
{
    tide_batcher *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for batches");
    self->mem = mem;
    self->world = options->world;
    self->api = options->api;
    self->path = options->path;
    self->format = options->format;
    limits_set(self, options->in_flight_max, options->size_max);
    self->state.size = chosen(options->size_start, SIZE_START, self->size_max);
    self->bytes_max = options->bytes_max == 0 ? ANSWER_BYTES_DEFAULT : options->bytes_max;
    const tide_status rc = tide_lock_new(self->world, &self->lock);
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
    TIDE_ASSERT(batcher->first == NULL);
    TIDE_ASSERT(batcher->sender == NULL);
    TIDE_ASSERT(batcher->state.in_flight == 0);
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
    const struct tide_batch_state *state = &batcher->state;
    const struct tide_batch_caller *sender = batcher->sender;
    const bool room = state->in_flight < batcher->in_flight_max;
    uint32_t waiting = 0;
    bool good = true;
    /* A caller that is in the queue twice forms a loop: the count ends it. */
    for (const struct tide_batch_caller *caller = batcher->first;
         caller != NULL && waiting <= state->waiting; caller = caller->next) {
        good = good && caller->place == TIDE_BATCH_WAITING && caller != sender;
        waiting++;
    }
    good = good && waiting == state->waiting && state->in_flight <= IN_FLIGHT_MAX;
    good = good && state->size >= 1 && state->size <= batcher->size_max;
    if (sender != NULL)
        good = good && room && sender->place == TIDE_BATCH_SENDER;
    else
        good = good && (batcher->first == NULL || !room);
    tide_lock_drop(batcher->world, batcher->lock);
    return good;
}

/* ---- the queue; under the lock ---- */

static const char QUEUE[] = "requests waiting for a batch";

static void queue_add(tide_batcher *self, struct tide_batch_caller *caller)
{
    caller->place = TIDE_BATCH_WAITING;
    caller->next = NULL;
    if (self->last == NULL)
        self->first = caller;
    else
        self->last->next = caller;
    self->last = caller;
    self->state.waiting++;
    tide_job_queued(caller->job, QUEUE);
}

static void queue_add_first(tide_batcher *self, struct tide_batch_caller *caller)
{
    caller->place = TIDE_BATCH_WAITING;
    caller->next = self->first;
    self->first = caller;
    if (self->last == NULL)
        self->last = caller;
    self->state.waiting++;
    tide_job_queued(caller->job, QUEUE);
}

static struct tide_batch_caller *queue_take_first(tide_batcher *self)
{
    struct tide_batch_caller *caller = self->first;
    TIDE_ASSERT(caller->place == TIDE_BATCH_WAITING);
    self->first = caller->next;
    if (self->first == NULL)
        self->last = NULL;
    self->state.waiting--;
    tide_job_queued(caller->job, NULL);
    return caller;
}

static void queue_remove(tide_batcher *self, struct tide_batch_caller *caller)
{
    struct tide_batch_caller *before = NULL;
    TIDE_ASSERT(caller->place == TIDE_BATCH_WAITING);
    for (struct tide_batch_caller *at = self->first; at != caller; at = at->next) {
        TIDE_ASSERT(at != NULL);
        before = at;
    }
    if (before == NULL)
        self->first = caller->next;
    else
        before->next = caller->next;
    if (self->last == caller)
        self->last = before;
    self->state.waiting--;
    tide_job_queued(caller->job, NULL);
}

/* ---- choosing the sender; under the lock ---- */

/* Makes the caller that has waited longest the sender of the next batch (BAT5, BAT6).  Call it after
 * everything that adds a caller, ends a request or loses the sender. */
static void sender_choose(tide_batcher *self)
{
    if (self->first == NULL || self->sender != NULL || self->state.in_flight >= self->in_flight_max)
        return;
    self->sender = queue_take_first(self);
    self->sender->place = TIDE_BATCH_SENDER;
    tide_cond_wake_one(self->world, self->sender->news);
}

void tide_batcher_tune(tide_batcher *self, unsigned in_flight_max, unsigned size_max)
{
    tide_lock_take(self->world, self->lock);
    const unsigned size_before = self->size_max;
    limits_set(self, in_flight_max, size_max);
    if (self->state.size > self->size_max)
        self->state.size = self->size_max;
    /* From batches of one the size grows as from the start. */
    if (size_before == 1 && self->size_max > 1)
        self->state.size = chosen(SIZE_START, SIZE_START, self->size_max);
    if (self->sender != NULL && self->state.in_flight >= self->in_flight_max) {
        struct tide_batch_caller *sender = self->sender;
        self->sender = NULL;
        queue_add_first(self, sender); /* BAT5 */
    }
    sender_choose(self);
    tide_lock_drop(self->world, self->lock);
}

static void batch_add(struct tide_batch *batch, struct tide_batch_caller *caller)
{
    caller->place = TIDE_BATCH_IN_BATCH;
    batch->callers[batch->count++] = caller;
    batch->units += tide_api_provider(batch->batcher->api)->methods[caller->call->method].units;
}

/* Takes the sender and waiting callers, up to the size and the bytes (BAT2).  Leaves a share for
 * the other requests that can still be sent: a server may process the parts of one request in
 * sequence. */
static void batch_take(tide_batcher *self, struct tide_batch_caller *sender,
                       struct tide_batch *batch)
{
    TIDE_ASSERT(self->sender == sender);
    TIDE_ASSERT(self->state.in_flight < self->in_flight_max);
    const unsigned requests_left = self->in_flight_max - self->state.in_flight;
    const unsigned share = (self->state.waiting + 1 + requests_left - 1) / requests_left;
    const unsigned most = share < self->state.size ? share : self->state.size;
    uint64_t bytes = sender->call->expected_bytes;
    self->sender = NULL;
    self->state.in_flight++;
    batch->method = sender->call->method;
    batch_add(batch, sender);
    while (self->first != NULL && batch->count < most) {
        bytes += self->first->call->expected_bytes;
        if (bytes > self->bytes_max)
            break;
        batch_add(batch, queue_take_first(self));
    }
    sender_choose(self);
}

/* ---- the end of a batch; under the lock ---- */

/* Whether a smaller call might have succeeded.  A sign-in, a cancel and our own quota do not
 * depend on the size.  A lost connection may: an overloaded server closes it. */
static bool is_refusal(tide_status rc)
{
    switch (tide_status_class(rc)) {
    case TIDE_CLASS_RETRY: /* 5xx, time-out, connection lost */
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_GONE:
    case TIDE_CLASS_PERMANENT: /* 413; or it can never fit our quota */
        return rc != TIDE_AGAIN && rc != TIDE_NO_MEMORY;
    default:
        return false;
    }
}

/* AIMD over the size (B13). */
static void size_learn(tide_batcher *self, const struct tide_batch *batch, tide_status rc)
{
    if (batch->throttled || is_refusal(rc))
        self->state.size = self->state.size > 1 ? self->state.size / 2 : 1;
    else if (rc == TIDE_OK && !batch->part_failed && batch->count >= self->state.size &&
             self->state.size < self->size_max)
        self->state.size++;
}

/* Sets the outcome of a caller without an answer: its part is missing, its token was refused, or
 * the call failed. */
static void outcome_set(struct tide_batch *batch, struct tide_batch_caller *caller, tide_status rc,
                        const tide_error *err)
{
    caller->place = TIDE_BATCH_ANSWERED;
    batch->part_failed = true;
    if (rc == TIDE_AUTH && caller->status == TIDE_AUTH)
        return; /* and no other token was worth a try */
    if (batch->read && rc != TIDE_CANCELED && rc != TIDE_STOPPED) {
        caller->status = tide_error_set(&caller->err, TIDE_SERVER,
                                        "the answer to the batch has no part for this call");
        batch->batcher->state.missing++;
        return;
    }
    caller->status = rc;
    caller->err = *err;
    if (rc == TIDE_AGAIN)
        caller->again_at_ms = tide_job_again_at_ms(batch->job);
}

/* The index from which callers wait again, for another sender: all others when the sender was
 * canceled, and all when the batch can never fit the quota. */
static unsigned put_back_from(const struct tide_batch *batch, tide_status rc)
{
    if (rc == TIDE_CANCELED || rc == TIDE_STOPPED)
        return 1;
    return rc == TIDE_INVALID && batch->count > 1 ? 0 : batch->count;
}

static void batch_end(struct tide_batch *batch, tide_status rc, const tide_error *err)
{
    tide_batcher *self = batch->batcher;
    const unsigned kept = put_back_from(batch, rc);
    for (unsigned i = batch->count; i-- > kept;) /* last first, which keeps their order */
        if (batch->callers[i] != NULL)
            queue_add_first(self, batch->callers[i]);
    for (unsigned i = 0; i < kept; i++)
        if (batch->callers[i] != NULL)
            outcome_set(batch, batch->callers[i], rc, err);
    for (unsigned i = 0; i < batch->count; i++) /* those that wait again may have been canceled */
        if (batch->callers[i] != NULL)
            tide_cond_wake_one(self->world, batch->callers[i]->news);
    if (batch->read || (rc != TIDE_AGAIN && rc != TIDE_INVALID)) {
        self->state.requests++;
        self->state.parts += batch->count;
        self->state.refused += batch->refused;
        self->state.latency_ms = batch->response.latency_ms;
    }
    size_learn(self, batch, rc);
    self->state.in_flight--;
    sender_choose(self);
}

void tide_batch_answered(struct tide_batch *batch, unsigned index)
{
    tide_batcher *self = batch->batcher;
    tide_lock_take(self->world, self->lock);
    batch->callers[index]->place = TIDE_BATCH_ANSWERED;
    tide_cond_wake_one(self->world, batch->callers[index]->news);
    batch->callers[index] = NULL;
    tide_lock_drop(self->world, self->lock);
}

/* ---- a caller; under the lock except during its request ---- */

static void send_next(tide_batcher *self, struct tide_batch_caller *caller)
{
    struct tide_batch batch = {.batcher = self, .job = caller->job};
    tide_error err = {TIDE_OK, 0, ""};
    batch_take(self, caller, &batch);
    tide_lock_drop(self->world, self->lock);
    const tide_status rc = tide_batch_send(&batch, &err);
    tide_lock_take(self->world, self->lock);
    batch_end(&batch, rc, &err);
}

/* Waits until the caller is answered or is the sender; false: it was canceled while it could
 * leave. */
static bool wait_turn(tide_batcher *self, const struct tide_batch_caller *caller)
{
    while (caller->place == TIDE_BATCH_WAITING || caller->place == TIDE_BATCH_IN_BATCH) {
        const uint64_t until_us = tide_world_now_us(self->world) + BEAT_MS * 1000u;
        const tide_status rc = tide_cond_wait(self->world, caller->news, self->lock, until_us);
        tide_job_beat(caller->job, 0);
        const bool free = caller->place == TIDE_BATCH_WAITING || caller->place == TIDE_BATCH_SENDER;
        if (free && (rc == TIDE_STOPPED || tide_job_canceled(caller->job)))
            return false;
    }
    return true;
}

static void leave(tide_batcher *self, struct tide_batch_caller *caller)
{
    if (caller->place == TIDE_BATCH_SENDER)
        self->sender = NULL;
    else
        queue_remove(self, caller);
    caller->place = TIDE_BATCH_ANSWERED;
    caller->status = tide_error_set(&caller->err, TIDE_CANCELED, "canceled");
    sender_choose(self);
}

/* Visible ASCII and spaces: nothing that ends a line, and so the header. */
static bool is_header(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return text.bytes > 0;
}

tide_status tide_batch_ask(tide_batcher *batcher, tide_job *job, const struct tide_batch_call *call,
                           tide_error *err)
{
    TIDE_ASSERT(call->sink != NULL);
    for (size_t i = 0; i < call->headers_count; i++)
        if (!is_header(call->headers[i].name) || !is_header(call->headers[i].value))
            return tide_error_set(err, TIDE_INVALID, "the request has an invalid header");
    struct tide_batch_caller caller = {.job = job, .call = call};
    const tide_status made = tide_cond_new(batcher->world, &caller.news);
    if (made != TIDE_OK)
        return tide_error_set(err, made, "no memory for a call");
    tide_lock_take(batcher->world, batcher->lock);
    queue_add(batcher, &caller);
    sender_choose(batcher);
    /* A sender whose batch could never fit the quota waits again, with a smaller size: with one
     * part it gets its answer. */
    while (caller.place != TIDE_BATCH_ANSWERED) {
        if (!wait_turn(batcher, &caller))
            leave(batcher, &caller);
        else if (caller.place == TIDE_BATCH_SENDER)
            send_next(batcher, &caller);
    }
    tide_lock_drop(batcher->world, batcher->lock);
    tide_cond_free(batcher->world, caller.news); /* it is woken under the lock only */
    if (caller.status != TIDE_OK && err != NULL)
        *err = caller.err;
    if (caller.status == TIDE_AGAIN)
        return tide_job_again(job, caller.again_at_ms);
    return caller.status;
}
