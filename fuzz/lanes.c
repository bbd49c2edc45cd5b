/* lanes.c - any sequence of valid operations on the lanes: LAN1 to LAN5 hold after each. */
#include "fuzz.h"
#include "base/limits.h"
#include "core/lanes.h"

enum { IDS = 32, ACCOUNTS = 4 };

enum where { AWAY, WANTED, CLAIMING, HELD, RUNNING, PARKED };

struct run {
    tide_lanes *lanes;
    struct fuzz_input input;
    enum where where[IDS + 1];
    struct tide_brief briefs[IDS + 1];
};

static struct tide_lanes_limits limits_read(struct fuzz_input *input)
{
    struct tide_lanes_limits limits = {.workers = 1u + fuzz_below(input, 8)};
    if (limits.workers > 2) {
        limits.reserved[0] = fuzz_below(input, limits.workers / 2);
        limits.reserved[1] = fuzz_below(input, limits.workers / 2);
    }
    return limits;
}

static void arrive(struct run *run, uint64_t id, uint8_t shape)
{
    struct fuzz_input *input = &run->input;
    if (run->where[id] != AWAY)
        return;
    run->briefs[id] =
        (struct tide_brief){.id = id,
                            .account = fuzz_below(input, ACCOUNTS),
                            .kind = 1,
                            .priority = (uint8_t)fuzz_below(input, TIDE_PRIORITY_MAX + 1),
                            .lane = shape & 1,
                            .level = (uint8_t)(1 + (shape >> 1 & 3)),
                            .preemptible = shape >> 3 & 1};
    if (tide_lanes_wanted(run->lanes, &run->briefs[id]) == TIDE_OK)
        run->where[id] = WANTED;
}

/* The next step of a job, by its state. */
static void move(struct run *run, uint64_t id, uint8_t how)
{
    enum where where = run->where[id];
    if (how % 4 == 3) {
        tide_lanes_left(run->lanes, id);
        run->where[id] = AWAY;
    } else if (where == CLAIMING || where == PARKED) {
        if (tide_lanes_held(run->lanes, &run->briefs[id]) == TIDE_OK)
            run->where[id] = HELD;
    } else if (where == RUNNING && how % 4 == 2) {
        tide_lanes_charged(run->lanes, id);
    } else if (where == RUNNING) {
        tide_lanes_parked(run->lanes, id, how & 4);
        run->where[id] = PARKED;
    } else if (where == WANTED) {
        run->briefs[id].priority = (uint8_t)fuzz_below(&run->input, TIDE_PRIORITY_MAX + 1);
        tide_lanes_priority(run->lanes, id, run->briefs[id].priority);
    }
}

static void take(struct run *run, uint8_t op)
{
    uint64_t id = 0;
    if (op & 8) {
        bool can = tide_lanes_can_start(run->lanes);
        bool started = tide_lanes_next_start(run->lanes, &id);
        TIDE_ASSERT(can == started);
        if (started) {
            TIDE_ASSERT(run->where[id] == HELD);
            run->where[id] = RUNNING;
        }
    } else if (op & 16) {
        if (tide_lanes_next_preempt(run->lanes, &id))
            TIDE_ASSERT(run->where[id] == RUNNING);
    } else if (tide_lanes_next_claim(run->lanes, op >> 5, &id)) {
        TIDE_ASSERT(run->where[id] == WANTED);
        run->where[id] = CLAIMING;
    }
}

static void step(struct run *run)
{
    struct fuzz_input *input = &run->input;
    uint8_t op = fuzz_u8(input);
    uint64_t id = 1u + fuzz_below(input, IDS);
    struct tide_lanes_limits limits;
    switch (op & 7) {
    case 0:
    case 1:
        arrive(run, id, op >> 3);
        break;
    case 2:
    case 3:
        move(run, id, op >> 3);
        break;
    case 4:
        (void)tide_lanes_admit(run->lanes, fuzz_below(input, ACCOUNTS),
                               op & 8 ? TIDE_ADMIT_ALL : op >> 4);
        break;
    case 5:
        limits = limits_read(input);
        tide_lanes_limits_set(run->lanes, &limits);
        break;
    default:
        take(run, op);
    }
    (void)tide_lanes_explain(run->lanes, id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct run run = {.input = {data, bytes}};
    struct tide_lanes_limits limits = limits_read(&run.input);
    uint32_t jobs_max = 1u + fuzz_below(&run.input, IDS);
    TIDE_ASSERT(tide_lanes_new(&limits, jobs_max, tide_mem_heap(), &run.lanes) == TIDE_OK);
    for (int i = 0; fuzz_more(&run.input) && i < 1000; i++) {
        step(&run);
        TIDE_ASSERT(tide_lanes_check(run.lanes));
        TIDE_ASSERT(tide_lanes_running(run.lanes, TIDE_LANE_INTERACTIVE) +
                        tide_lanes_running(run.lanes, TIDE_LANE_BULK) <=
                    TIDE_WORKERS_MAX);
    }
    tide_lanes_free(run.lanes);
    return 0;
}
