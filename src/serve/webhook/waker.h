/* waker.h - addresses that wait to be woken, and the thread that does it.
 *
 * Adding takes microseconds and never waits; `wake` may wait for a ledger.
 *
 * Invariants:
 *   WKR1  an address is woken at once, or APART_MS after its last time; what is added in between is
 *         one more time.
 *   WKR2  what failed is repeated every RETRY_MS, other addresses are not delayed by the pause.
 *   WKR3  without addresses the thread sleeps without a timeout.
 */
#ifndef TIDE_SERVE_WEBHOOK_WAKER_H
#define TIDE_SERVE_WEBHOOK_WAKER_H

#include "base/log.h"
#include "base/mem.h"
#include "serve/webhook/push.h"
#include "world/world.h"

enum {
    TIDE_WAKER_ADDRESSES_MAX = 512, /* that wait, or were woken within APART_MS */
    TIDE_WAKER_APART_MS = 1000,     /* Gmail pushes no more often for a user */
    TIDE_WAKER_RETRY_MS = 1000,
};

typedef struct tide_waker tide_waker;

struct tide_waker_options {
    tide_world *world; /* borrowed, as the rest */
    tide_log *log;     /* NULL: none */
    /* Begins what brings the address up to date, without waiting for it.  TIDE_NOT_FOUND: unknown
     * here; TIDE_STOPPED: never again; other failures are repeated. */
    tide_status (*wake)(void *arg, const char *address, tide_error *err);
    void *arg;
};
tide_status tide_waker_new(const struct tide_waker_options *options, tide_mem *mem,
                           tide_waker **waker_out, tide_error *err);
void tide_waker_stop(tide_waker *waker); /* waits for `wake`; NULL is fine for both */
void tide_waker_free(tide_waker *waker);

/* false: too many wait. */
bool tide_waker_add(tide_waker *waker, const char *address, const char *history_id);
/* How many of those added were woken so far, and how many were unknown. */
void tide_waker_count(tide_waker *waker, uint64_t *woken_out, uint64_t *unknown_out);

#endif
