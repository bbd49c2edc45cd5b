/* campaign.c - many seeds of transfer.h (seeds/campaign.h). */
#include "seeds/campaign.h"
#include "support/temp_dir.h"
#include "transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static char dir[64];

/* In memory, where there is such a folder: transfers sync what they write. */
static bool begin(void)
{
    (void)snprintf(dir, sizeof dir, "/dev/shm/tidemark-transfer-XXXXXX");
    if (mkdtemp(dir) != NULL)
        return true;
    (void)snprintf(dir, sizeof dir, "/tmp/tidemark-transfer-XXXXXX");
    return mkdtemp(dir) != NULL;
}

/* A seed that fails leaves its folder. */
static void end(void)
{
    (void)temp_dir_remove(dir);
}

static void run(uint64_t seed, int plant, void *totals)
{
    transfer_sim_run(dir, seed, (enum transfer_plant)plant, totals);
}

static int report(const void *totals)
{
    const struct transfer_totals *all = totals;
    printf("%" PRIu64 " transfers in %" PRIu64 " tries (%" PRIu64 " superseded), %" PRIu64 " MiB\n",
           all->finished, all->tries, all->superseded, all->bytes >> 20);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct seeds_campaign campaign = {
        .name = "transfer_campaign",
        .totals_bytes = sizeof(struct transfer_totals),
        .faults_at = offsetof(struct transfer_totals, faults),
        .fault_names = transfer_fault_names,
        .faults_count = TFAULTS,
        .faults_scale = 40,
        .plant_names = transfer_plant_names,
        .plant_rules = transfer_plant_rules,
        .plants_count = TPLANTS,
        .plant_seeds = 200,
        .run = run,
        .report = report,
        .begin = begin,
        .end = end,
    };
    return seeds_campaign_main(&campaign, argc, argv);
}
