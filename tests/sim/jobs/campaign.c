/* campaign.c - many seeds of a drive and its jobs (seeds/campaign.h). */
#include "jobs.h"
#include "seeds/campaign.h"

#include <inttypes.h>
#include <stdio.h>

static void run(uint64_t seed, int plant, void *totals)
{
    jobs_run(seed, (enum jobs_plant)plant, totals);
}

static int report(const void *totals)
{
    const struct jobs_totals *all = totals;
    printf("%" PRIu64 " lives (%" PRIu64 " crashed), %" PRIu64 " acts of users, %" PRIu64
           " texts\n",
           all->lives, all->crashes, all->acts, all->texts);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct seeds_campaign campaign = {
        .name = "jobs_campaign",
        .totals_bytes = sizeof(struct jobs_totals),
        .faults_at = offsetof(struct jobs_totals, faults),
        .fault_names = jobs_fault_names,
        .faults_count = JFAULTS,
        .faults_scale = 100,
        .plant_names = jobs_plant_names,
        .plant_rules = jobs_plant_rules,
        .plants_count = JPLANTS,
        .plant_seeds = 150,
        .run = run,
        .report = report,
    };
    return seeds_campaign_main(&campaign, argc, argv);
}
