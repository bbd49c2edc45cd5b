/* brief.h - the short form of a job that the pure core decides with.
 *
 * A million jobs wait in the ledger; ten thousand of them are in the window as
 * briefs.  Payloads stay on disk until a worker needs them. */
#ifndef TIDE_CORE_BRIEF_H
#define TIDE_CORE_BRIEF_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tide_lane { TIDE_LANE_INTERACTIVE = 0, TIDE_LANE_BULK = 1 } tide_lane;

struct tide_brief {
    uint64_t id;            /* ledger id, never 0; smaller is older: FIFO (E3.2) */
    uint64_t cycle;         /* 0: none */
    uint64_t size_bytes;    /* of the transfer, 0: unknown or none */
    uint64_t not_before_ms; /* on the caller's monotonic clock; 0: at once */
    uint32_t account;       /* 0: none, never limited */
    uint32_t kind;
    uint32_t open_deps; /* jobs it still waits for (E2.2) */
    uint16_t attempts;
    uint16_t attempts_max;
    uint8_t priority; /* 0..100, higher first */
    uint8_t lane;     /* tide_lane */
    uint8_t level;    /* 1: a user waits ... 4: freshness and backfill (K3, E3.3) */
    bool preemptible; /* may be canceled and put back, losing nothing */
    bool alone;       /* one such job of an account runs at a time; of its kind, not stored */
};

/* The order inside a lane: higher priority first, then older first. */
static inline bool tide_brief_before(const struct tide_brief *a, const struct tide_brief *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

#endif
