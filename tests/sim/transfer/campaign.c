/* campaign.c - many seeds of transfer.h.
 *
 *     transfer_campaign --seed N [--plant NAME]
 *     transfer_campaign --seeds A..B [--jobs N] [--faults]   --faults: each fault must have happened
 *     transfer_campaign --plants                             bugs on purpose, each must be found */
#include "seeds/seeds.h"
#include "support/temp_dir.h"
#include "transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct task {
    char dir[64];
    enum transfer_plant plant;
};

static void run(uint64_t seed, void *result, void *arg)
{
    const struct task *task = arg;
    transfer_sim_run(task->dir, seed, task->plant, result);
}

static struct transfer_totals all;

static void add(uint64_t seed, const void *result, void *arg)
{
    (void)seed;
    (void)arg;
    seeds_totals(&all, result, sizeof all, sizeof all);
}

static int report(bool need_all)
{
    int missing = 0;
    printf("%" PRIu64 " transfers in %" PRIu64 " tries (%" PRIu64 " superseded), %" PRIu64 " MiB\n",
           all.finished, all.tries, all.superseded, all.bytes >> 20);
    for (int i = 0; i < TFAULTS; i++) {
        printf("%s %" PRIu64 "%s", transfer_fault_names[i], all.faults[i],
               i + 1 < TFAULTS ? ", " : "\n");
        missing += all.faults[i] == 0;
    }
    if (need_all && missing > 0)
        fprintf(stderr, "%d faults never happened\n", missing);
    return need_all && missing > 0 ? 1 : 0;
}

/* In memory, where there is such a folder: transfers sync what they write. */
static bool make_dir(struct task *task)
{
    (void)snprintf(task->dir, sizeof task->dir, "/dev/shm/tidemark-transfer-XXXXXX");
    if (mkdtemp(task->dir) != NULL)
        return true;
    (void)snprintf(task->dir, sizeof task->dir, "/tmp/tidemark-transfer-XXXXXX");
    return mkdtemp(task->dir) != NULL;
}

static int plants(struct seeds_world *world, struct task *task)
{
    int missed = 0;
    for (int i = 1; i < TPLANTS; i++) {
        struct seeds seeds = SEEDS_DEFAULT;
        task->plant = (enum transfer_plant)i;
        /* A seed that fails leaves its folder. */
        if (!make_dir(task))
            return 2;
        seeds.next = 1;
        seeds.end = 200;
        seeds.failed_max = 1;
        seeds.wanted = transfer_plant_rules[i];
        seeds_run(world, &seeds);
        printf("%-18s %s after %" PRIu64 " seeds: %s\n", transfer_plant_names[i],
               seeds.failed_count > 0 ? "found" : "MISSED", seeds.finished, seeds.why);
        (void)fflush(stdout);
        missed += seeds.failed_count == 0;
        (void)temp_dir_remove(task->dir);
    }
    return missed > 0 ? 1 : 0;
}

static int run_seeds(struct seeds_world *world, struct seeds *seeds, struct task *task,
                     uint64_t seed, bool need_all)
{
    int rc = 0;
    if (!make_dir(task))
        return 2;
    if (seed != 0) {
        transfer_sim_run(task->dir, seed, task->plant, &all);
        rc = report(false);
    } else {
        seeds_run(world, seeds);
        rc = seeds_verdict(world, seeds);
        rc = rc != 0 ? rc : report(need_all);
    }
    (void)temp_dir_remove(task->dir);
    return rc;
}

int main(int argc, char **argv)
{
    struct task task = {.plant = TPLANT_NONE};
    struct seeds_world world = {.replay = "transfer_campaign",
                                .result_bytes = sizeof(struct transfer_totals),
                                .run = run,
                                .add = add,
                                .arg = &task};
    struct seeds seeds = SEEDS_DEFAULT;
    uint64_t seed = 0;
    bool need_all = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plants") == 0)
            return plants(&world, &task);
        if (strcmp(argv[i], "--faults") == 0) {
            need_all = true;
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--plant") == 0 && i + 1 < argc) {
            i++;
            for (int k = 0; k < TPLANTS; k++)
                if (strcmp(argv[i], transfer_plant_names[k]) == 0)
                    task.plant = (enum transfer_plant)k;
        } else if (!seeds_option(&seeds, argc, argv, &i)) {
            fprintf(stderr, "usage: see the head of campaign.c\n");
            return 2;
        }
    }
    if (seed == 0 && !seeds_ready(&seeds))
        return 2;
    return run_seeds(&world, &seeds, &task, seed, need_all);
}
