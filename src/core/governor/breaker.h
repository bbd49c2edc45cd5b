/* breaker.h - the circuit breaker of an account: one pause, then one probe.
 *
 * When a provider fails repeatedly, or refuses for its quota, or the network is down,
 * further calls only make it worse.  The breaker opens for the whole account, for a pause
 * that grows with each failed probe (with jitter) or until the time the provider named.
 * Then one call is sent as a probe; its success closes the breaker, its failure starts a
 * longer pause (E4.5, E7.2).  As in an electrical breaker, *closed* lets calls through,
 * *open* does not, *half-open* lets one.
 *
 * One item that always fails says nothing about the provider (E6.1).  So a call may have
 * a subject, a number for the item it asks for.  A subject that failed while calls about
 * others succeeded since is itself at fault: its further failures do not open the
 * breaker.
 *
 * Calls that were sent before the breaker opened end later.  Their results say nothing
 * about the provider now and are ignored, except that a time named by one is obeyed.  The
 * breaker tells them apart by when they were sent, and by counting how many of them are
 * still in flight.
 *
 * Invariants (tide_breaker_check()):
 *   BRK1  while open, no call is sent; while half-open, one at a time.
 *   BRK2  calls sent before it opened are at most all calls in flight.
 *   BRK3  closed means no pause is left: until_ms is 0 and why is TIDE_OK.
 */
#ifndef TIDE_CORE_BREAKER_H
#define TIDE_CORE_BREAKER_H

#include "base/rng.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Zero means the default in brackets. */
struct tide_breaker_rules {
    unsigned failures_max;      /* in a row; the last one opens it [5] */
    uint32_t pause_ms_first;    /* [1000] */
    uint32_t pause_ms_max;      /* after failures [300000] */
    uint32_t pause_ms_soft_max; /* after refusals and network loss, which end soon [8000] */
};

enum { TIDE_BREAKER_SUBJECTS = 64 }; /* failing subjects tracked */

typedef struct tide_breaker {
    struct tide_breaker_rules rules;
    unsigned failures; /* in a row while closed */
    unsigned trips;    /* in a row, without a success in between */
    uint64_t trips_total;
    tide_status why; /* TIDE_OK: closed */
    uint64_t opened_ms;
    uint64_t until_ms;
    bool probe_out;
    uint32_t calls;     /* in flight */
    uint32_t calls_old; /* of them, sent before it opened */
    uint64_t successes;
    struct {
        uint64_t subject;      /* 0: none */
        uint64_t successes_at; /* the success count when it first failed */
    } failing[TIDE_BREAKER_SUBJECTS];
    unsigned failing_next; /* the entry that is replaced next */
} tide_breaker;

enum tide_breaker_state { TIDE_BREAKER_CLOSED, TIDE_BREAKER_OPEN, TIDE_BREAKER_HALF_OPEN };

void tide_breaker_init(tide_breaker *breaker, const struct tide_breaker_rules *rules);
/* On a running breaker; keeps its state (E11). */
void tide_breaker_rules_set(tide_breaker *breaker, const struct tide_breaker_rules *rules);
enum tide_breaker_state tide_breaker_state(const tide_breaker *breaker, uint64_t now_ms);

/* When the next call may be sent: `now_ms`, a later time, or UINT64_MAX while the probe is in
 * flight. */
uint64_t tide_breaker_allows_at_ms(const tide_breaker *breaker, uint64_t now_ms);

/* A call is sent; exactly one of the five calls below ends it. */
void tide_breaker_sent(tide_breaker *breaker, uint64_t now_ms);
/* The provider gave a usable answer. */
void tide_breaker_succeeded(tide_breaker *breaker, uint64_t sent_ms);
/* It failed (5xx, sign-in, no answer): enough of these in a row open the breaker. */
void tide_breaker_failed(tide_breaker *breaker, uint64_t now_ms, uint64_t sent_ms, tide_status why,
                         tide_rng *rng);
/* It refused, or was unreachable: opens at once, not before `named_ms` (0: no time was named,
 * the breaker chooses the pause). */
void tide_breaker_refused(tide_breaker *breaker, uint64_t now_ms, uint64_t sent_ms,
                          uint64_t named_ms, tide_status why, tide_rng *rng);
/* It ended without saying anything about the provider (canceled, our own disk). */
void tide_breaker_unknown(tide_breaker *breaker, uint64_t sent_ms);
/* It was never sent. */
void tide_breaker_unsent(tide_breaker *breaker);

/* Reports the subject of an ended call, besides the above; 0: unknown. true: its subject is at
 * fault, and the call says nothing about the provider. */
void tide_breaker_subject_succeeded(tide_breaker *breaker, uint64_t subject);
bool tide_breaker_subject_failed(tide_breaker *breaker, uint64_t subject);

/* Opens it until a given time, for a cause found elsewhere. */
void tide_breaker_open(tide_breaker *breaker, uint64_t now_ms, uint64_t until_ms, tide_status why);
/* Closes it by command. */
void tide_breaker_close(tide_breaker *breaker);

bool tide_breaker_check(const tide_breaker *breaker);

#endif
