/* lease.h - lets units be spent only if a crash cannot lose them (E4.3b).
 *
 * Every snapshot of an account promises some units beyond what it records.  They may
 * be spent once that snapshot is durable, and a process that restores it counts the
 * whole promise as spent.  So no unit is ever spent that a restore would not count,
 * however the process dies.
 *
 * The lease is counted in units, not in seconds: an idle account does not write, a
 * user's call does not wait for a save, and no clock has to be trusted.
 *
 * Invariants (tide_lease_check()); all three count units since the start:
 *   LSE1  spent <= durable <= promised, and none ever decreases.
 *   LSE2  a snapshot taken when `spent` was s records a promise of promised - s, so that any later
 *         spending under any earlier durable one is covered by it.
 */
#ifndef TIDE_CORE_LEASE_H
#define TIDE_CORE_LEASE_H

#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tide_lease {
    uint64_t spent;
    uint64_t promised; /* by any snapshot taken */
    uint64_t durable;  /* by one on disk */
    uint64_t wanted;   /* units last refused for lack of a promise; 0: none */
    bool taken;        /* whether any snapshot was taken */
    uint64_t taken_ms; /* the last one */
    unsigned open_count;
    struct {
        uint64_t at_ms;
        uint64_t promised;
    } open[TIDE_SAVES_OPEN_MAX]; /* snapshots not yet durable */
} tide_lease;

/* A zeroed lease is a new one: nothing promised, nothing may be spent. */
bool tide_lease_covers(const tide_lease *lease, uint64_t units);
void tide_lease_spend(tide_lease *lease, uint64_t units);
/* Records that a call needs `units`, so that a snapshot becomes due. */
void tide_lease_want(tide_lease *lease, uint64_t units);

/* When a snapshot is due, if each promises `units` and they are `every_ms` apart unless a call
 * waits: 0 is at once, UINT64_MAX not at all. */
uint64_t tide_lease_save_at_ms(const tide_lease *lease, uint64_t units, uint32_t every_ms);
/* A snapshot is taken now: the promise it must record. */
uint64_t tide_lease_promise(tide_lease *lease, uint64_t now_ms, uint64_t units);
/* The snapshot taken at `taken_ms` is on disk. */
void tide_lease_saved(tide_lease *lease, uint64_t taken_ms);
bool tide_lease_check(const tide_lease *lease);

#endif
