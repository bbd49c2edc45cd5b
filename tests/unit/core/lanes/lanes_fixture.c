#include "lanes_fixture.h"

tide_lanes *lanes_of(uint32_t workers, uint32_t interactive, uint32_t bulk)
{
    struct tide_lanes_limits limits = {workers, {interactive, bulk}};
    tide_lanes *lanes = NULL;
    OK(tide_lanes_new(&limits, 1000, tide_mem_heap(), &lanes));
    return lanes;
}

struct tide_brief job(uint64_t id, int lane, uint32_t account, uint8_t priority)
{
    return (struct tide_brief){.id = id,
                               .account = account,
                               .priority = priority,
                               .lane = (uint8_t)lane,
                               .level = 4,
                               .preemptible = true};
}

void want(tide_lanes *lanes, struct tide_brief brief)
{
    OK(tide_lanes_wanted(lanes, &brief));
}

void hold(tide_lanes *lanes, struct tide_brief brief)
{
    OK(tide_lanes_held(lanes, &brief));
}

uint64_t claim(tide_lanes *lanes)
{
    uint64_t id = 0;
    return tide_lanes_next_claim(lanes, 0, &id) ? id : 0;
}

uint64_t start(tide_lanes *lanes)
{
    uint64_t id = 0;
    return tide_lanes_next_start(lanes, &id) ? id : 0;
}

uint64_t preempt(tide_lanes *lanes)
{
    uint64_t id = 0;
    return tide_lanes_next_preempt(lanes, &id) ? id : 0;
}
