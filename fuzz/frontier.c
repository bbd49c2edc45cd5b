/* frontier.c - any sequence of valid operations on a frontier: F1 to F5 hold after each. */
#include "fuzz.h"
#include "core/frontier.h"

enum { SPAN = 40 }; /* ordinals in play ahead of the reachable one */

static void step(tide_frontier *frontier, uint8_t op, uint64_t cycle, uint8_t count)
{
    struct tide_cycle_view view = {0};
    bool known = tide_frontier_look(frontier, cycle, &view);
    bool open = known && view.opened && !view.finished;
    if (op == 0)
        (void)tide_frontier_open(frontier, cycle);
    else if (op == 1)
        (void)tide_frontier_jobs_added(frontier, cycle, count);
    else if (op == 2 && open && view.outstanding > 0)
        (void)tide_frontier_job_done(frontier, cycle);
    else if (op == 3 && open && view.outstanding > 0)
        tide_frontier_job_failed(frontier, cycle);
    else if (op == 4 && open && view.failed > 0)
        tide_frontier_job_revived(frontier, cycle);
    else if (op == 5 && open && view.failed > 0)
        (void)tide_frontier_job_accepted(frontier, cycle);
    else if (op == 6 && open && view.outstanding == 0 && view.failed == 0)
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
        step(frontier, op & 7, cycle, fuzz_u8(&input) & 3);
        tide_frontier_check(frontier);
        TIDE_ASSERT(tide_frontier_reachable(frontier) >= before); /* F1 */
        struct tide_cycle_view gaps[4];
        size_t count = tide_frontier_gaps(frontier, before, gaps, 4);
        TIDE_ASSERT(count <= 4);
        TIDE_ASSERT(count == 0 || !gaps[0].finished);
    }
    tide_frontier_free(frontier);
    return 0;
}
