/* deps.h - orders a batch of new jobs by their dependencies, or finds a cycle (E2.2).
 *
 * Jobs of one batch may need each other.  They are written to the ledger in an order in
 * which every job comes after all it needs.  A batch whose needs form a circle is refused
 * before anything is written, since none of its jobs could ever start.  Needs on jobs outside
 * the batch are ignored: those are in the ledger already, so they cannot point back into the
 * batch.
 *
 * Iterative, O(jobs + edges); one allocation, freed before returning.
 *
 * Invariants of a returned order (tide_deps_check() tests them):
 *   DEP1  every index of the batch occurs exactly once.
 *   DEP2  a job comes after everything it needs.
 *   DEP3  jobs are sorted by depth (the longest chain below them), then by index: jobs that can
 *         start at once come first, and the same batch always gives the same order.
 */
#ifndef TIDE_CORE_DEPS_H
#define TIDE_CORE_DEPS_H

#include "base/mem.h"
#include "base/status.h"

/* Indices into the batch: `job` may not start before `needs` is done. */
struct tide_edge {
    uint32_t job;
    uint32_t needs;
};

/* Fills `order_out`, room for `count` indices.  Duplicate edges are harmless.
 *   TIDE_INVALID    an index outside the batch, or a circle; `culprit_out` (may
 *                   be NULL) names a job with the former, or the lowest-numbered
 *                   job on one circle; `err` tells them apart
 *   TIDE_FULL       more than TIDE_CHILDREN_MAX jobs or TIDE_EDGES_MAX edges
 *   TIDE_NO_MEMORY
 * `order_out` is untouched on failure. */
tide_status tide_deps_order(uint32_t count, const struct tide_edge *edges, size_t edges_count,
                            tide_mem *mem, uint32_t *order_out, uint32_t *culprit_out,
                            tide_error *err);

/* Asserts DEP1 and DEP2; DEP3 follows from comparing with a second call.  `scratch`
 * has room for `count` numbers. */
void tide_deps_check(uint32_t count, const struct tide_edge *edges, size_t edges_count,
                     const uint32_t *order, uint32_t *scratch);

#endif
