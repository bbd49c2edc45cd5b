/* inside.h - shared by the files of the batcher.
 *
 *   batch.c  the queue, the sender, what a batch teaches
 *   call.c   one request, its answer part by part
 *   multipart.c  Google's wire format (format.h)
 *   json.c       Microsoft Graph's
 */
#ifndef TIDE_NET_BATCH_INSIDE_H
#define TIDE_NET_BATCH_INSIDE_H

#include "net/batch/batch.h"

enum tide_batch_place {
    TIDE_BATCH_WAITING,  /* in the queue */
    TIDE_BATCH_SENDER,   /* chosen to send the next batch; not in the queue */
    TIDE_BATCH_IN_BATCH, /* in a request: it cannot leave before that ends (BAT1) */
    TIDE_BATCH_ANSWERED, /* its outcome is final */
};

/* A handler inside tide_batch_ask(), on its own stack.  Everything but `job` and `call` is
 * guarded by the batcher's lock, or, while it is in a batch, used by the sender's thread only. */
struct tide_batch_caller {
    struct tide_batch_caller *next; /* in the queue */
    tide_job *job;
    const struct tide_batch_call *call;
    tide_cond *news; /* of its place; its own, so that an answer wakes nobody else */
    enum tide_batch_place place;
    tide_status status;
    tide_error err;
    uint64_t again_at_ms; /* with TIDE_AGAIN */
};

struct tide_batcher {
    tide_mem *mem;
    tide_world *world;
    tide_api *api;
    const char *path;
    const struct tide_batch_format *format;
    unsigned in_flight_max, size_max;
    uint64_t bytes_max;

    tide_lock *lock;                        /* guards everything below */
    struct tide_batch_caller *first, *last; /* the queue, in the order of arrival */
    struct tide_batch_caller *sender;       /* NULL: none is chosen */
    struct tide_batch_state state;
};

/* One request.  Lives on the sender's stack and is used by its thread alone. */
struct tide_batch {
    tide_batcher *batcher;
    tide_job *job; /* the sender's: canceling it cancels the call */
    /* The sender is the first.  NULL: the caller has its answer and may be gone. */
    struct tide_batch_caller *callers[TIDE_BATCH_PARTS_MAX];
    unsigned count;
    uint32_t units;
    uint32_t method; /* of the sender's part */

    struct tide_response response;
    void *reader;              /* of the format; NULL: no byte came yet */
    unsigned reading;          /* index of the part being read; count: of no caller */
    struct tide_response part; /* of the part being read; its body only if that is an error */
    tide_status sink_failed;   /* what the sink of the current part returned */
    bool read;                 /* the answer had a body of parts */
    bool part_failed;          /* some part had no complete 2xx answer */
    bool throttled;            /* some part was refused for its rate */
    bool token_refused;        /* for some part; it stays in the batch, with TIDE_AUTH */
    uint32_t refused;          /* parts, for their rate */
    uint64_t retry_after_ms;   /* the longest that any part named */
    tide_error throttled_err;
};

/* Sends the request and reads the answer, without the lock.  Callers whose part arrived whole
 * are answered meanwhile; the status is that of the whole call. */
tide_status tide_batch_send(struct tide_batch *batch, tide_error *err);

/* The caller at `index` has its outcome and may leave.  Takes the lock. */
void tide_batch_answered(struct tide_batch *batch, unsigned index);

#endif
