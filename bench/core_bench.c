/* core_bench.c - measures the cost of a job in the pure core, compared with the cheapest
 * possible queue: a ring.
 *
 * Prints one JSON object per line: name, value, unit, and the ratio to the
 * baseline named in "to". */
#include "bench.h"

#include "base/limits.h"
#include "core/lanes.h"
#include "core/tracker.h"

#include <inttypes.h>
#include <stdlib.h>

struct system {
    tide_tracker *tracker;
    tide_lanes *lanes;
    uint32_t accounts;
    uint32_t priorities;
};

static struct tide_brief brief_of(const struct system *system, uint64_t id)
{
    uint64_t mixed = id * 0x9e3779b97f4a7c15u >> 33;
    return (struct tide_brief){.id = id,
                               .account = 1 + (uint32_t)(mixed % system->accounts),
                               .priority = (uint8_t)(30 + mixed / 7 % system->priorities),
                               .lane = (uint8_t)(mixed >> 20 & 1),
                               .level = 4,
                               .preemptible = true};
}

static void add(struct system *system, uint64_t id)
{
    struct tide_brief brief = brief_of(system, id);
    uint64_t evicted = 0;
    if (tide_tracker_add(system->tracker, &brief, 1, &evicted) != TIDE_OK ||
        tide_lanes_wanted(system->lanes, &brief) != TIDE_OK)
        die("core", "no room");
}

/* Claims, holds, starts and ends as many jobs as there are workers; returns
 * how many ended. */
static uint64_t round_trip(struct system *system)
{
    uint64_t id = 0;
    while (tide_lanes_next_claim(system->lanes, 64, &id)) {
        tide_tracker_claiming(system->tracker, id, 2);
        tide_tracker_claimed(system->tracker, id, 7, 2);
        const struct tide_tracked *job = tide_tracker_find(system->tracker, id);
        if (tide_lanes_held(system->lanes, &job->brief) != TIDE_OK)
            die("core", "not held");
    }
    uint64_t running[TIDE_WORKERS_MAX];
    uint64_t count = 0;
    while (tide_lanes_next_start(system->lanes, &running[count])) {
        tide_tracker_started(system->tracker, running[count], 3);
        count++;
    }
    (void)tide_lanes_next_preempt(system->lanes, &id);
    for (uint64_t i = 0; i < count; i++) {
        tide_tracker_ending(system->tracker, running[i], 4);
        tide_lanes_left(system->lanes, running[i]);
        tide_tracker_remove(system->tracker, running[i]);
    }
    return count;
}

/* The window is kept as full as the engine keeps it; every job goes through all states. */
static double life_cycle_ns(uint32_t accounts, uint32_t priorities, uint64_t jobs)
{
    struct system system = {NULL, NULL, accounts, priorities};
    struct tide_lanes_limits limits = {16, {2, 2}};
    if (tide_tracker_new(TIDE_WINDOW_JOBS_MAX, tide_mem_heap(), &system.tracker) != TIDE_OK ||
        tide_lanes_new(&limits, TIDE_WINDOW_JOBS_MAX, tide_mem_heap(), &system.lanes) != TIDE_OK)
        die("core", "no memory");
    double start_ns = now_s() * 1e9;
    uint64_t added = 0;
    uint64_t ended = 0;
    while (ended < jobs) {
        if (tide_tracker_count(system.tracker) < TIDE_WINDOW_JOBS_MAX / 2)
            while (added < jobs &&
                   tide_tracker_count(system.tracker) < TIDE_WINDOW_JOBS_MAX * 4 / 5)
                add(&system, ++added);
        uint64_t count = round_trip(&system);
        if (count == 0)
            die("core", "nothing could start");
        ended += count;
    }
    double spent_ns = now_s() * 1e9 - start_ns;
    tide_lanes_free(system.lanes);
    tide_tracker_free(system.tracker);
    return spent_ns / (double)jobs;
}

/* The baseline: the same briefs in and out of a ring, in order of arrival. */
static double ring_ns(uint64_t jobs)
{
    struct system system = {NULL, NULL, 8, 8};
    struct tide_brief *ring = calloc(TIDE_WINDOW_JOBS_MAX, sizeof *ring);
    if (ring == NULL)
        die("core", "no memory");
    double start_ns = now_s() * 1e9;
    uint64_t added = 0;
    uint64_t sum = 0;
    for (uint64_t ended = 0; ended < jobs; ended++) {
        if (added - ended < TIDE_WINDOW_JOBS_MAX / 2)
            while (added < jobs && added - ended < TIDE_WINDOW_JOBS_MAX * 4 / 5) {
                ring[added % TIDE_WINDOW_JOBS_MAX] = brief_of(&system, added + 1);
                added++;
            }
        sum += ring[ended % TIDE_WINDOW_JOBS_MAX].id;
    }
    double spent_ns = now_s() * 1e9 - start_ns;
    free(ring);
    if (sum != jobs * (jobs + 1) / 2)
        die("core", "ring lost a job");
    return spent_ns / (double)jobs;
}

static void window_bytes(void)
{
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    struct system system = {NULL, NULL, 1000, 71};
    struct tide_lanes_limits limits = {16, {2, 2}};
    if (tide_tracker_new(TIDE_WINDOW_JOBS_MAX, &mem.base, &system.tracker) != TIDE_OK ||
        tide_lanes_new(&limits, TIDE_WINDOW_JOBS_MAX, &mem.base, &system.lanes) != TIDE_OK)
        die("core", "no memory");
    for (uint64_t id = 1; id <= TIDE_WINDOW_JOBS_MAX; id++)
        add(&system, id);
    double allowed = 5.0 * 1024 * 1024;
    double tracker_bytes = (double)tide_tracker_bytes(system.tracker);
    figure("window of 10000, tracker", tracker_bytes, "bytes", tracker_bytes / allowed,
           "5 MiB (E2.1)");
    double all_bytes = (double)mem.bytes_live;
    figure("window of 10000, tracker and lanes, 1000 accounts", all_bytes, "bytes",
           all_bytes / allowed, "5 MiB (E2.1)");
    tide_lanes_free(system.lanes);
    tide_tracker_free(system.tracker);
}

int main(int argc, char **argv)
{
    uint64_t jobs = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    double floor_ns = ring_ns(jobs);
    figure("ring, in and out", floor_ns, "ns/job", 1, "itself");
    struct {
        const char *name;
        uint32_t accounts;
        uint32_t priorities;
    } shapes[] = {{"life cycle, 1 account, 1 priority", 1, 1},
                  {"life cycle, 8 accounts, 8 priorities", 8, 8},
                  {"life cycle, 1000 accounts, 71 priorities", 1000, 71}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double ns = life_cycle_ns(shapes[i].accounts, shapes[i].priorities, jobs);
        figure(shapes[i].name, ns, "ns/job", ns / floor_ns, "ring, in and out");
    }
    window_bytes();
    return 0;
}
