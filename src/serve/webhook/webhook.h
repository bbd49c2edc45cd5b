/* webhook.h - takes Pub/Sub's pushes and wakes what they concern (J6).
 *
 *     POST /webhook/gmail      Authorization: Bearer TOKEN (token.h), body of push.h
 *          204  taken; also for an address that is not known here, and for a message that came before
 *          400  the body is not a push
 *          401  the token is missing or wrong; which of both, and why, is in the log alone
 *          429  too many requests
 *          503  the issuer's keys cannot be fetched now, or the process is stopping
 *
 *     POST /webhook/onedrive?validationToken=T     200 with T as text: OneDrive asks at each new
 *          subscription whether its address is there
 *     POST /webhook/onedrive      body of notice.h
 *          202  taken; also if its secret is wrong or its subscription unknown, which does nothing
 *
 * Senders repeat what was not answered with 2xx.  These are the only routes of their listener, and
 * have TIDE_HTTPD_ANY_HOST: a proxy or a tunnel exposes nothing else.
 *
 * Threads: requests are judged on the thread of the HTTP server; the thread "webhook" calls `wake`.
 *
 * Invariants:
 *   HOK1  a request whose token is not good has no effect but a count, and a log line a minute.
 *   HOK2  an answer waits for no ledger and no worker; for the issuer's keys TIDE_WEBHOOK_HOLD_MS at
 *         most.
 *   HOK3  an address that was taken is woken (waker.h).  A push is a hint: an end of the process
 *         loses those not woken yet, and the next scheduled sync finds what they meant.
 *   HOK4  each push counts under one outcome; a notification under one for each subscription in it.
 *   HOK5  forged requests do not keep good ones out: they use up a limit of their own, and a token
 *         that was good before passes it.
 */
#ifndef TIDE_SERVE_WEBHOOK_WEBHOOK_H
#define TIDE_SERVE_WEBHOOK_WEBHOOK_H

#include "metrics/histogram.h"
#include "serve/http/http.h"
#include "serve/webhook/issuer.h"
#include "serve/webhook/waker.h"

enum {
    TIDE_WEBHOOK_ROUTES = 2,
    TIDE_WEBHOOK_TICKET_BYTES_MAX = 2048, /* of a validation token */
    TIDE_WEBHOOK_HOLD_MS = 3000,
    TIDE_WEBHOOK_SEEN_MAX = 1024, /* messages that are recognized when they come again */
    TIDE_WEBHOOK_GOOD_MAX = 16,   /* tokens that were good */
    TIDE_WEBHOOK_TAKEN_PER_S = 500,
    TIDE_WEBHOOK_REFUSED_PER_S = 20,
};

typedef enum tide_webhook_outcome {
    TIDE_WEBHOOK_ACCEPTED,
    TIDE_WEBHOOK_REPEATED,  /* the message came before */
    TIDE_WEBHOOK_UNKNOWN,   /* no account has that address */
    TIDE_WEBHOOK_MALFORMED, /* a good token, but the body is not a push */
    TIDE_WEBHOOK_NO_TOKEN,
    TIDE_WEBHOOK_BAD_TOKEN, /* its claims, or its time */
    TIDE_WEBHOOK_FORGED,    /* its signature; or the secret of a notification */
    TIDE_WEBHOOK_NO_KEYS,
    TIDE_WEBHOOK_LIMITED,
    TIDE_WEBHOOK_STOPPING,
    TIDE_WEBHOOK_REFUSED,   /* by the server: path, method, size, time */
    TIDE_WEBHOOK_VALIDATED, /* OneDrive asked whether the address is there */
    TIDE_WEBHOOK_OUTCOMES,
} tide_webhook_outcome;
const char *tide_webhook_outcome_name(tide_webhook_outcome outcome); /* "accepted" */

typedef struct tide_webhook tide_webhook;

/* Everything pointed to is borrowed and outlives the webhook. */
struct tide_webhook_options {
    tide_world *world;
    uint16_t port;                 /* of 127.0.0.1; 0: any free one */
    struct tide_token_rules rules; /* an audience of "": there is no /webhook/gmail */
    const char *keys_url;
    tide_log *log;
    tide_status (*wake)(void *arg, const char *address, tide_error *err); /* waker.h */
    /* Whether a notification is genuine, and what is to be woken; on the server's thread.  NULL: there
     * is no /webhook/onedrive. */
    bool (*notified)(void *arg, tide_text subscription, tide_text secret,
                     char subject_out[TIDE_PUSH_ADDRESS_BYTES_MAX + 1]);
    void *arg;
};
/* TIDE_BUSY: the port is taken. */
tide_status tide_webhook_start(const struct tide_webhook_options *options, tide_mem *mem,
                               tide_webhook **webhook_out, tide_error *err);
uint16_t tide_webhook_port(const tide_webhook *webhook);
/* From now on pushes are answered with 503, so that Pub/Sub repeats them.  NULL is fine for both. */
void tide_webhook_stopping(tide_webhook *webhook);
void tide_webhook_free(tide_webhook *webhook); /* waits for `wake` */

/* For metrics; any thread. */
struct tide_webhook_counts {
    uint64_t outcomes[TIDE_WEBHOOK_OUTCOMES];
    tide_histogram duration; /* of answers, from the head of the request; tide_histogram_local_us */
};
void tide_webhook_count(tide_webhook *webhook, struct tide_webhook_counts *counts_out);

#endif
