/* cloud.h - a cloud in a box: request, now, randomness -> answer and its fate.
 *
 * The logic of tidemark-cloud.  It does no I/O, reads no clock, starts no
 * thread and has no globals; all chance comes from one seed.  What it knows of
 * the outside is what it is told: requests with their time, and the news that
 * an answer has left the wire.
 *
 * A call goes through the same gate whatever service it belongs to
 * (gate.c): route, authenticate, check the scope, charge the quota, take a slot
 * in flight, draw a fault, then run the method's handler; the referee writes
 * everything down.
 *
 * Invariants:
 *   B1  same options, same requests at the same times: same answers, to the byte
 *       (RSA keys and what they sign aside).
 *   B2  a call that is refused (4xx by the gate, a fault before the effect)
 *       changes nothing but the referee's record.
 *   B3  every call is in the referee's record exactly once, also inside a batch.
 *   B4  time never goes back: an earlier `now` counts as the latest one seen.
 */
#ifndef BOX_CLOUD_H
#define BOX_CLOUD_H

#include "cloudbox/gate/http.h"

typedef struct box_cloud box_cloud;

typedef enum box_quota_rules { BOX_QUOTA_OFF, BOX_QUOTA_2026, BOX_QUOTA_LEGACY } box_quota_rules;

struct box_options {
    uint64_t seed;
    uint64_t start_unix_ms; /* the cloud's clock at the first call; 0: as given */
    box_quota_rules quota;
    uint32_t concurrency_max; /* calls in flight per Gmail user; 0: 10, as observed */
    uint32_t latency_ms;      /* of every API call */
    uint32_t jitter_ms;
    bool batch_serial;                 /* parts of a batch are served one after another */
    bool auto_consent;                 /* the sign-in page answers by itself */
    uint64_t history_keep_ms;          /* 0: 7 days */
    uint32_t token_life_s;             /* 0: 3599 */
    uint32_t list_inversions_permille; /* neighbours swapped in a listing */
    /* Every change that --state keeps, as one JSON line without its newline.
     * NULL: nothing is kept. */
    void (*keep)(void *arg, tide_text line);
    void *keep_arg;
    const struct box_service *const *services; /* NULL-terminated; NULL: all of them */
};

box_cloud *box_cloud_new(const struct box_options *options);
void box_cloud_free(box_cloud *cloud); /* NULL is fine */

/* Serves one request.  `answer` is initialised by the caller and filled. */
void box_cloud_serve(box_cloud *cloud, const struct box_request *request, uint64_t now_unix_ms,
                     struct box_answer *answer);
/* The answer has left (or its connection is gone): its slots are free. */
void box_cloud_finished(box_cloud *cloud, const struct box_ticket *ticket, uint64_t now_unix_ms);

/* ---- setting up (before or between calls) ---- */

enum {
    BOX_MAILBOX_MESSAGES_MAX = 20 * 1000 * 1000,
    BOX_MAILBOX_SIZE_MIN = 1000, /* what every kind of generated message fits into */
    BOX_MAILBOX_SIZE_MAX = 50 << 20,
};

struct box_mailbox_options {
    uint32_t messages;
    uint32_t size_bytes;  /* every message exactly so large; 0: a realistic spread */
    uint64_t seed;        /* 0: from the cloud's seed and the address */
    uint64_t now_unix_ms; /* the newest message is a little older */
};
/* A user with a generated mailbox; an existing user gets none (TIDE_EXISTS).
 * TIDE_INVALID: not an address, or a size beyond the bounds above. */
tide_status box_cloud_add_mailbox(box_cloud *cloud, tide_text email,
                                  const struct box_mailbox_options *options, tide_error *err);
/* One real message, older than all generated ones.  The user must exist. */
tide_status box_cloud_add_message(box_cloud *cloud, tide_text email, tide_text raw,
                                  tide_error *err);
/* A bearer token that never expires and has every scope. */
tide_status box_cloud_add_token(box_cloud *cloud, tide_text token, tide_text email,
                                tide_error *err);
/* "sc-domain:example.com=EMAIL" with rows per day. */
tide_status box_cloud_add_site(box_cloud *cloud, tide_text site, tide_text email,
                               uint32_t rows_per_day, tide_error *err);
/* Where notifications for a topic go. */
tide_status box_cloud_add_topic(box_cloud *cloud, tide_text topic, tide_text url, tide_error *err);
/* One rule in the JSON of POST /_cloud/faults. */
tide_status box_cloud_add_fault(box_cloud *cloud, tide_text json, tide_error *err);
/* One line that `keep` was given earlier; in the same order, before any call. */
tide_status box_cloud_replay(box_cloud *cloud, tide_text line, tide_error *err);

/* ---- what the cloud itself wants to send: Pub/Sub push ---- */

struct box_delivery {
    uint64_t id;
    char url[1024];
    char bearer[2048]; /* the signed token */
    tide_buf body;
};
/* The next delivery that is due.  The caller sends it, then reports. */
bool box_cloud_next_delivery(box_cloud *cloud, uint64_t now_unix_ms,
                             struct box_delivery *delivery_out);
/* `status` 0: no answer. */
void box_cloud_delivered(box_cloud *cloud, uint64_t id, int status, uint64_t now_unix_ms);
/* When to ask again without news, on the caller's clock; UINT64_MAX: not before
 * something is served. */
uint64_t box_cloud_wake_at_ms(box_cloud *cloud, uint64_t now_unix_ms);

#endif
