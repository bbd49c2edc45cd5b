/* cloud.h - a cloud in a box: request, time and seed give an answer and its plan.
 *
 * The logic of tidemark-cloud.  It does no I/O, reads no clock, starts no
 * thread and has no globals; all chance comes from one seed.  Its only input are
 * requests with their time, and the report that an answer has left the wire.
 *
 * Every call takes the same path, whatever service it belongs to (gate.c): route,
 * authenticate, check the scope, take a slot in flight, charge the quota, draw a
 * fault, then run the method's handler; the referee records everything.
 *
 * Setting up users, tokens, sites and topics: cloudbox/services.h.
 *
 * Invariants:
 *   BCLD1  same options, same requests at the same times: same answers, to the byte (RSA keys and
 *          what they sign aside).
 *   BCLD2  a call that is refused (4xx by the gate, a fault before the effect) changes nothing but
 *          the referee's record.
 *   BCLD3  every call is in the referee's record exactly once, also inside a batch.
 *   BCLD4  time never goes back: an earlier `now` counts as the latest one seen.
 */
#ifndef BOX_CLOUD_H
#define BOX_CLOUD_H

#include "cloudbox/gate/http.h"

typedef struct box_cloud box_cloud;
struct box_user;

typedef enum box_quota_rules { BOX_QUOTA_OFF, BOX_QUOTA_2026, BOX_QUOTA_LEGACY } box_quota_rules;

struct box_options {
    uint64_t seed;
    uint64_t start_unix_ms; /* the cloud's clock at the first call; 0: as given */
    box_quota_rules quota;
    uint32_t concurrency_max; /* calls in flight per user; 0: the services' own limits */
    uint32_t latency_ms;      /* of every API call */
    uint32_t jitter_ms;
    bool batch_serial;                 /* parts of a batch are served one after another */
    bool auto_consent;                 /* the sign-in page answers by itself */
    uint64_t history_keep_ms;          /* 0: 7 days */
    uint32_t token_life_s;             /* 0: 3599 */
    uint32_t list_inversions_permille; /* neighbours swapped in a listing */
    uint32_t mailbox_messages_max;     /* generated, and files of a drive; 0: the services' own */
    /* Every change that --state keeps, as one JSON line without its newline.
     * NULL: nothing is kept. */
    void (*keep)(void *arg, tide_text line);
    void *keep_arg;
    const struct box_service *const *services; /* NULL-terminated */
};

box_cloud *box_cloud_new(const struct box_options *options);
void box_cloud_free(box_cloud *cloud); /* NULL is fine */

/* Serves one request.  `answer` is initialised by the caller and filled. */
void box_cloud_serve(box_cloud *cloud, const struct box_request *request, uint64_t now_unix_ms,
                     struct box_answer *answer);
/* The answer has left, or its connection has closed: its slots are free. */
void box_cloud_finished(box_cloud *cloud, const struct box_ticket *ticket, uint64_t now_unix_ms);

/* The method that the request calls takes its body through a sink, which is opened: give
 * it every piece, serve the request with it instead of a body, then end it with
 * box_sink_done().  false: serve the request with its whole body. */
bool box_cloud_sink(box_cloud *cloud, const struct box_request *request, struct box_sink *sink_out);

/* The record of what was asked, as GET /_cloud/stats gives it (cloudbox/record/referee.h);
 * the caller owns it.  `user` NULL: of all.  `details`: also what is long. */
json_t *box_cloud_stats(box_cloud *cloud, const struct box_user *user, bool details);
void box_cloud_stats_reset(box_cloud *cloud);

/* One rule in the JSON of POST /_cloud/faults. */
tide_status box_cloud_add_fault(box_cloud *cloud, tide_text json, tide_error *err);
/* One line that `keep` was given earlier; in the same order, before any call. */
tide_status box_cloud_replay(box_cloud *cloud, tide_text line, tide_error *err);

#endif
