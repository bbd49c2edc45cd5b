/* batch.h - many calls of many handlers in one HTTP request (E4.4, B1, B6).
 *
 * Each handler asks for its own answer and waits; whoever asks while a flight is
 * free becomes its pilot: it takes what waits, up to the size, sends one
 * multipart/mixed request in its own name, reads the answer as it streams in and
 * gives every part to the one who asked for it.  Nobody waits for company: while
 * all flights are in the air the next batch gathers by itself.
 *
 * The size starts small and grows by one with each flight that went well; it is
 * halved when the provider refuses a part for its rate, since a batch is the quickest
 * way into a burst limit.
 *
 * It charges every part before it is sent and knows nothing of what is asked.
 *
 * Invariants (tide_batcher_check()):
 *   T1  an asker gets exactly one outcome; when it leaves, nobody writes to what it
 *       lent.
 *   T2  at most `flights_max` requests are in the air, none with more parts than
 *       `size`, and none whose expected bytes exceed `bytes_max`, one part aside.
 *   T3  a part's outcome is its own: one missing, doubled or broken part changes
 *       nothing for the others.
 *   T4  size_min <= size <= size_max.
 */
#ifndef TIDE_NET_BATCH_H
#define TIDE_NET_BATCH_H

#include "base/buf.h"
#include "net/oauth.h"
#include "tidemark.h"
#include "world/world.h"

typedef struct tide_batcher tide_batcher;

enum {
    TIDE_BATCH_PARTS_MAX = 100,
    TIDE_BATCH_HEADER_BYTES_MAX = 8 << 10, /* of one part's head */
    TIDE_BATCH_REFUSAL_BYTES_MAX = 64 << 10,
};

struct tide_batch_options {
    const char *url;      /* of the batch endpoint */
    tide_tokens *tokens;  /* borrowed */
    tide_world *world;    /* borrowed */
    unsigned flights_max; /* B1's workers; 0: 3 */
    unsigned size_start;  /* 0: 8 */
    unsigned size_max;    /* 0: 50 */
    uint64_t bytes_max;   /* expected of one answer; 0: 64 MiB */
};
tide_status tide_batcher_open(const struct tide_batch_options *options, tide_mem *mem,
                              tide_batcher **batcher_out, tide_error *err);
void tide_batcher_close(tide_batcher *batcher); /* nobody waits; NULL is fine */

struct tide_batch_call {
    const char *method; /* "POST" */
    const char *path;   /* from the root, percent-encoded */
    tide_text body;     /* JSON; may be empty */
    uint32_t units;     /* of this part */
    uint32_t method_id; /* whose latency the governor keeps */
    uint64_t expected_bytes;
    /* The body of a 2xx answer, as it arrives; runs on some handler's thread while
     * this one waits.  `restart` is called before a body that begins anew. */
    tide_sink_write *sink;
    void (*restart)(void *arg);
    void *sink_arg;
};
/* Waits for the answer of this part.  What it may return is what
 * tide_google_judge_body() says of the part, or what became of the request as a
 * whole; TIDE_AGAIN: no units now, return it; TIDE_SERVER: the part is missing or
 * broken.  err->code is its HTTP status. */
tide_status tide_batch_ask(tide_batcher *batcher, tide_job *job, const struct tide_batch_call *call,
                           tide_error *err);

struct tide_batch_state {
    uint64_t requests;   /* HTTP */
    uint64_t parts;      /* calls in them */
    uint64_t refused;    /* parts, for their rate */
    uint64_t missing;    /* parts without an answer */
    uint32_t flights;    /* in the air */
    uint32_t waiting;    /* parts on the ground */
    uint32_t size;       /* now */
    uint32_t latency_ms; /* of the last */
};
void tide_batcher_state(tide_batcher *batcher, struct tide_batch_state *state_out);
bool tide_batcher_check(tide_batcher *batcher);

#endif
