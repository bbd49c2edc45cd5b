/* window.h - tracks one sliding-window limit of a provider from the client's side.
 *
 * A provider allows `limit` units in any window of W milliseconds and counts a call at
 * an instant we do not see: somewhere between our sending it and our receiving its
 * answer.  A charge therefore counts from sending until the answer *plus* W (E4.1).
 * This records those charges and nothing else: it knows no rate and decides nothing;
 * the limit is an argument, because the levels of one account use the same record with
 * different limits.
 *
 * Charges in flight are one sum.  Answered ones are a queue ordered by expiry, in
 * steps of a grain (W / 768, rounded up) so that its size is fixed; expiry is always
 * rounded to a later grain, which costs 0.07 % of a minute and never expires a charge
 * too early.
 *
 * Why no window of the provider ever holds more than the limit: take any instant x and
 * the calls the provider counts in (x - W, x].  Let L be the one of them we charged
 * last, at s.  Any other call i of them was charged before, and counted by the
 * provider at c > x - W, not after its answer r; so its charge expires after r + W >=
 * c + W > x >= s, since L was counted at or after s.  Hence at s all of them were
 * recorded here, and L was admitted under the limit.
 *
 * Invariants (tide_window_check()):
 *   WIN1  entries are ordered by expiry, strictly, and none is empty.
 *   WIN2  held is the sum of the entries; used = held + in flight.
 *   WIN3  every expiry is later than its answer plus W, by at most one grain while there is a free
 *         entry (when there is none, neighbours are merged at the later expiry).
 */
#ifndef TIDE_CORE_WINDOW_H
#define TIDE_CORE_WINDOW_H

#include "base/limits.h"
#include "base/mem.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_window_entry {
    uint64_t expires_ms;
    uint64_t units;
};

typedef struct tide_window {
    tide_mem *mem;
    struct tide_window_entry *entries; /* a ring; owned */
    uint32_t head;
    uint32_t count;
    uint64_t window_ms;
    uint64_t grain_ms;
    uint64_t held;      /* units answered and not yet expired */
    uint64_t in_flight; /* units sent and not yet answered */
} tide_window;

/* What survives a crash.  Times are wall time at the save, so that another process, on another
 * machine, can continue. */
struct tide_window_saved {
    uint64_t in_flight;
    uint32_t count;
    struct {
        uint64_t expires_unix_ms;
        uint64_t units;
    } entries[TIDE_WINDOW_SAVED_MAX];
};

tide_status tide_window_init(tide_window *window, uint64_t window_ms, tide_mem *mem);
void tide_window_done(tide_window *window); /* a zeroed one is fine */

/* Puts a charge in flight, and takes it out: answered; without an answer, so that the provider
 * may count it up to `counted_by_ms` (timeout, canceled); or never sent. */
void tide_window_send(tide_window *window, uint64_t now_ms, uint64_t units);
void tide_window_received(tide_window *window, uint64_t now_ms, uint64_t units);
void tide_window_unanswered(tide_window *window, uint64_t now_ms, uint64_t counted_by_ms,
                            uint64_t units);
void tide_window_unsend(tide_window *window, uint64_t units);

/* Units that count at `now_ms`. */
uint64_t tide_window_used(const tide_window *window, uint64_t now_ms);
/* The earliest time at which `units` fit under `limit` if nothing else is sent.  UINT64_MAX: not
 * by time alone, an answer must come first. */
uint64_t tide_window_frees_at_ms(const tide_window *window, uint64_t now_ms, uint64_t units,
                                 uint64_t limit);

void tide_window_save(const tide_window *window, uint64_t now_ms, uint64_t now_unix_ms,
                      struct tide_window_saved *saved_out);
/* Stored bytes are not trusted: call this before restoring. */
bool tide_window_saved_is_valid(const struct tide_window_saved *saved);
/* Adds a saved state to an initialised window.  `now_unix_ms` is by the clock that saved: if
 * that may be ahead, charges expire too early (age_ms() in governor.c).  Units that were in
 * flight count as if the provider counted them at `counted_by_ms`. */
void tide_window_restore(tide_window *window, const struct tide_window_saved *saved,
                         uint64_t now_ms, uint64_t now_unix_ms, uint64_t counted_by_ms);

bool tide_window_check(const tide_window *window);

#endif
