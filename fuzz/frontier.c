/* frontier.c - any sequence of valid operations on a frontier: FRO1 to FRO4 hold after each. */
#include "fuzz.h"
#include "core/frontier.h"

enum { SPAN = 40 }; /* ordinals in play ahead of the reachable one */

static bool is_gap(const tide_frontier *frontier, uint64_t cycle)
{
    struct tide_cycle_view gap;
    return tide_frontier_gaps(frontier, cycle, &gap, 1) == 1 && gap.cycle == cycle && gap.opened;
}

static void step(tide_frontier *frontier, uint8_t op, uint64_t cycle)
{
    if (op < 3)
        (void)tide_frontier_open(frontier, cycle);
    else if (op < 7 && (cycle < tide_frontier_reachable(frontier) || is_gap(frontier, cycle)))
        tide_frontier_finish(frontier, cycle);
    else if (op == 7)
        tide_frontier_committed(frontier, tide_frontier_reachable(frontier));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    tide_frontier *frontier = NULL;
    uint64_t start = fuzz_u64(&input);
    if (tide_frontier_new(start, tide_mem_heap(), &frontier) != TIDE_OK)
        return 0;
    for (int i = 0; fuzz_more(&input) && i < 2000; i++) {
        uint64_t before = tide_frontier_reachable(frontier);
        uint8_t op = fuzz_u8(&input);
        /* Rarely far ahead, mostly near; also just below reachable. */
        uint64_t ahead = fuzz_u8(&input);
        uint64_t cycle = before + (op & 0x80 ? ahead * 20 : ahead % SPAN) - (op & 0x40 ? 2 : 0);
        step(frontier, op & 7, cycle);
        tide_frontier_check(frontier);
        TIDE_ASSERT(tide_frontier_reachable(frontier) >= before); /* FRO1 */
        struct tide_cycle_view gaps[4];
        size_t count = tide_frontier_gaps(frontier, before, gaps, 4);
        TIDE_ASSERT(count <= 4);
        TIDE_ASSERT(count == 0 || gaps[0].cycle >= before);
    }
    tide_frontier_free(frontier);
    return 0;
}
