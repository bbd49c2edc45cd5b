/* batch.h - sends calls of many handlers in one HTTP request (E4.4, B1, B6).
 *
 * Each handler calls tide_batch_ask() for its own answer and waits.  When fewer than
 * `in_flight_max` requests are in flight, the caller that has waited longest becomes the sender: it
 * takes the waiting callers, up to the size, sends one request (format.h) as its own job,
 * reads the answer as it streams in, and passes each part to the caller that asked for it.  No
 * caller waits for others to join: the next batch gathers while all requests are in flight.
 *
 * A caller is in one of four places; arrows name the function of batch.c that moves it:
 *
 *      ask                 sender_choose              batch_take
 *     -----> WAITING ---------------------> SENDER ---------------.
 *             |  ^  |                         |                    v       caller_answered
 *             |  |  '-------------------------|-- batch_take --> IN_BATCH ----------------> ANSWERED
 *             |  '--------- put_back ---------|--------------------'
 *             '---- leave (canceled) ---------'
 *
 * The size starts small (AIMD, B13): it grows by one when a full batch succeeded, that is when
 * every part had a complete 2xx answer.  It is halved when a part was refused for its rate, and
 * when the whole call was refused, failed or timed out.  A silent server is given 5 minutes (B4).
 *
 * It charges every part before it is sent and does not interpret the requests.
 *
 * Invariants (tide_batcher_check()):
 *   BAT1  a caller gets exactly one outcome; after it returned, no thread writes to its memory.
 *   BAT2  a request is sent only while fewer than `in_flight_max` are in flight, none with more
 *         parts than `size`, and none whose expected bytes exceed `bytes_max`, one part aside.
 *   BAT3  a part's outcome is its own: one missing, doubled or broken part changes nothing for the
 *         others.
 *   BAT4  1 <= size <= size_max.
 *   BAT5  a caller is in one place only: in the queue, as the sender, or in one batch.  There is at
 *         most one sender; it is not in the queue, so no batch takes it.  While there is one,
 *         in_flight < in_flight_max: it is chosen only then, only the sender adds a request, and
 *         tune() takes it back where that is lowered.
 *   BAT6  no caller waits while in_flight < in_flight_max and there is no sender.
 */
#ifndef TIDE_NET_BATCH_H
#define TIDE_NET_BATCH_H

#include "base/buf.h"
#include "net/api/call.h"
#include "net/batch/format.h"

typedef struct tide_batcher tide_batcher;

enum {
    TIDE_BATCH_PARTS_MAX = 100,
    TIDE_BATCH_HEADER_BYTES_MAX = 8 << 10,     /* of one part's head */
    TIDE_BATCH_REFUSAL_BYTES_MAX = 64 << 10,   /* of one part */
    TIDE_BATCH_SILENCE_MS_MAX = 5 * 60 * 1000, /* without a byte, the first included (B4) */
};

struct tide_batch_options {
    tide_api *api;    /* borrowed */
    const char *path; /* of the batch endpoint, from the root; borrowed */
    const struct tide_batch_format *format;
    tide_world *world;      /* borrowed */
    unsigned in_flight_max; /* B1's workers; 0: 3 */
    unsigned size_start;    /* 0: 8 */
    unsigned size_max;      /* 0: 50; at most what the format allows */
    uint64_t bytes_max;     /* expected of one answer; 0: 64 MiB */
};
tide_status tide_batcher_open(const struct tide_batch_options *options, tide_mem *mem,
                              tide_batcher **batcher_out, tide_error *err);
void tide_batcher_close(tide_batcher *batcher); /* no caller is left; NULL is fine */
/* Other limits from now on, as in the options.  Requests in flight end as they were sent. */
void tide_batcher_tune(tide_batcher *batcher, unsigned in_flight_max, unsigned size_max);

struct tide_batch_call {
    uint32_t method;  /* index into the provider's methods: verb, units */
    const char *path; /* from the root, percent-encoded */
    tide_text body;   /* JSON; may be empty */
    /* Of this part alone.  TIDE_INVALID: one is not fit to be a header. */
    const struct tide_header *headers;
    size_t headers_count;
    uint64_t expected_bytes;
    /* The body of a 2xx answer, as it arrives; runs on the sender's thread while this one waits.
     * `restart` is called before the body starts again from the beginning. */
    tide_sink_write *sink;
    void (*restart)(void *arg);
    void *sink_arg;
};
/* Waits for the answer of this part.  Returns what the provider's judge says of the part, or the
 * outcome of the request as a whole:
 *   TIDE_AGAIN     no units now: return it
 *   TIDE_SERVER    the part is missing or broken
 *   TIDE_CANCELED  this caller's own job was canceled; another's cancel is not seen here
 * err->code is the HTTP status. */
tide_status tide_batch_ask(tide_batcher *batcher, tide_job *job, const struct tide_batch_call *call,
                           tide_error *err);

struct tide_batch_state {
    uint64_t requests;   /* HTTP */
    uint64_t parts;      /* calls in them */
    uint64_t refused;    /* parts, for their rate */
    uint64_t missing;    /* parts without an answer */
    uint32_t in_flight;  /* requests */
    uint32_t waiting;    /* callers not yet taken into a request */
    uint32_t size;       /* now */
    uint32_t latency_ms; /* of the last */
};
void tide_batcher_state(tide_batcher *batcher, struct tide_batch_state *state_out);
bool tide_batcher_check(tide_batcher *batcher);

#endif
