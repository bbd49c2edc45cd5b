/* metered.h - whether the network is paid by the byte, as far as the system tells (K7).
 *
 * NetworkManager is asked on the system bus.  It knows what the user set for a network, and guesses for
 * others: a phone that shares its connection is metered.
 *
 * Invariants:
 *   LNK1  without an answer the link is not metered: no bus, no NetworkManager, an error, a value of
 *         another type, an answer that comes too late.
 *   LNK2  an answer, or that there was none, is kept for 30 s.  Only the thread that asks waits, for
 *         200 ms at most; others get the last answer.
 *   LNK3  asking starts nothing: neither a bus nor NetworkManager.
 */
#ifndef TIDE_WORLD_DESKTOP_METERED_H
#define TIDE_WORLD_DESKTOP_METERED_H

#include "world/world.h"

enum { TIDE_METERED_KEPT_MS = 30000, TIDE_METERED_WAIT_MS = 200 };

typedef struct tide_metered tide_metered;

struct tide_metered_options {
    tide_world *world;   /* borrowed */
    const char *address; /* of the bus; copied.  NULL: the system's */
    uint32_t wait_ms;    /* 0: TIDE_METERED_WAIT_MS */
};

/* Asks nothing yet. */
tide_status tide_metered_new(const struct tide_metered_options *options, tide_mem *mem,
                             tide_metered **metered_out, tide_error *err);
void tide_metered_free(tide_metered *metered); /* NULL is fine */

/* Any thread.  NULL: not metered. */
bool tide_metered_now(tide_metered *metered, uint64_t now_ms);

#endif
