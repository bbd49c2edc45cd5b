/* campaign.c - many seeds of the simulated drive (seeds/campaign.h). */
#include "drive_sim.h"
#include "seeds/campaign.h"

#include <inttypes.h>
#include <stdio.h>

static void run(uint64_t seed, int plant, void *totals)
{
    drive_sim_run(seed, (enum plant)plant, totals);
}

static int report(const void *totals)
{
    const struct drive_totals *all = totals;
    printf("%" PRIu64 " lives, %" PRIu64 " plans (%" PRIu64 " not due), %" PRIu64
           " actions (%" PRIu64 " superseded), %" PRIu64 " transfers, %" PRIu64 " scans (%" PRIu64
           " of some folders)\n",
           all->lives, all->plans, all->spared, all->actions, all->superseded, all->transfers,
           all->scans, all->folders);
    return (all->spared == 0) + (all->folders == 0);
}

int main(int argc, char **argv)
{
    static const struct seeds_campaign campaign = {
        .name = "drive_campaign",
        .totals_bytes = sizeof(struct drive_totals),
        .faults_at = offsetof(struct drive_totals, faults),
        .fault_names = drive_fault_names,
        .faults_count = FAULTS,
        .faults_scale = 40,
        .plant_names = drive_plant_names,
        .plant_rules = drive_plant_rules,
        .plants_count = PLANTS,
        .plant_seeds = 400,
        .run = run,
        .report = report,
    };
    return seeds_campaign_main(&campaign, argc, argv);
}
