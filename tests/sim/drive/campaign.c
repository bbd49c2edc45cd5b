/* campaign.c - many seeds of the simulated drive.
 *
 *     drive_campaign --seed N [--plant NAME]
 *     drive_campaign --seeds A..B [--jobs N] [--faults]   --faults: each fault must have happened
 *     drive_campaign --plants                             bugs on purpose, each must be found */
#include "drive_sim.h"
#include "seeds/seeds.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void run(uint64_t seed, void *result, void *arg)
{
    drive_sim_run(seed, *(enum plant *)arg, result);
}

static struct drive_totals all;

static void add(uint64_t seed, const void *result, void *arg)
{
    (void)seed;
    (void)arg;
    seeds_totals(&all, result, sizeof all, sizeof all);
}

static int report(bool need_all)
{
    int missing = 0;
    printf("%" PRIu64 " lives, %" PRIu64 " plans (%" PRIu64 " not due), %" PRIu64
           " actions (%" PRIu64 " superseded), %" PRIu64 " transfers, %" PRIu64 " scans (%" PRIu64
           " of some folders)\n",
           all.lives, all.plans, all.spared, all.actions, all.superseded, all.transfers, all.scans,
           all.folders);
    missing += (all.spared == 0) + (all.folders == 0);
    for (int i = 0; i < FAULTS; i++) {
        printf("%s %" PRIu64 "%s", drive_fault_names[i], all.faults[i],
               i + 1 < FAULTS ? ", " : "\n");
        missing += all.faults[i] == 0;
    }
    if (need_all && missing > 0)
        fprintf(stderr, "%d faults never happened\n", missing);
    return need_all && missing > 0 ? 1 : 0;
}

static int plants(struct seeds_world *world)
{
    int missed = 0;
    for (int i = 1; i < PLANTS; i++) {
        enum plant plant = (enum plant)i;
        struct seeds seeds = SEEDS_DEFAULT;
        world->arg = &plant;
        seeds.next = 1;
        seeds.end = 400;
        seeds.failed_max = 1;
        seeds.wanted = drive_plant_rules[i];
        seeds_run(world, &seeds);
        printf("%-18s %s after %" PRIu64 " seeds: %s\n", drive_plant_names[i],
               seeds.failed_count > 0 ? "found" : "MISSED", seeds.finished, seeds.why);
        (void)fflush(stdout);
        missed += seeds.failed_count == 0;
    }
    return missed > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    enum plant plant = PLANT_NONE;
    struct seeds_world world = {.replay = "drive_campaign",
                                .result_bytes = sizeof(struct drive_totals),
                                .run = run,
                                .add = add,
                                .arg = &plant};
    struct seeds seeds = SEEDS_DEFAULT;
    uint64_t seed = 0;
    bool need_all = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plants") == 0)
            return plants(&world);
        if (strcmp(argv[i], "--faults") == 0) {
            need_all = true;
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--plant") == 0 && i + 1 < argc) {
            i++;
            for (int k = 0; k < PLANTS; k++)
                if (strcmp(argv[i], drive_plant_names[k]) == 0)
                    plant = (enum plant)k;
        } else if (!seeds_option(&seeds, argc, argv, &i)) {
            fprintf(stderr, "usage: see the head of campaign.c\n");
            return 2;
        }
    }
    if (seed != 0) {
        drive_sim_run(seed, plant, &all);
        return report(false);
    }
    if (!seeds_ready(&seeds))
        return 2;
    seeds_run(&world, &seeds);
    const int failed = seeds_verdict(&world, &seeds);
    return failed != 0 ? failed : report(need_all);
}
