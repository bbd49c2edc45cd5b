/* campaign.c - many seeds of the reader beside mirror and assistant (seeds/campaign.h). */
#include "reader_sim.h"
#include "seeds/campaign.h"

static void run(uint64_t seed, int plant, void *totals)
{
    rsim_run(seed, (enum rsim_plant)plant, totals);
}

static int report(const void *totals)
{
    const struct rsim_totals *all = totals;
    const uint64_t edges = all->edges == 0 ? 1 : all->edges;
    printf("%" PRIu64 " lives (%" PRIu64 " crashed), %" PRIu64 " starts of jobs, %" PRIu64
           " calls, %" PRIu64 " polls, %" PRIu64 " acts, %" PRIu64 " actions, %" PRIu64
           " opens, %" PRIu64 " messages\n",
           all->lives, all->crashes, all->starts, all->calls, all->polls, all->acts, all->actions,
           all->opens, all->messages);
    printf(
        "at the edge of the quota: %.1f %% used, an opened message was called for within %.0f ms\n",
        (double)(all->used_permille / edges) / 10, (double)all->open_ms_highest / (double)edges);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct seeds_campaign campaign = {
        .name = "reader_campaign",
        .totals_bytes = sizeof(struct rsim_totals),
        .faults_at = offsetof(struct rsim_totals, faults),
        .fault_names = rsim_fault_names,
        .faults_count = RFAULTS,
        .faults_scale = 50,
        .plant_names = rsim_plant_names,
        .plant_rules = rsim_plant_rules,
        .plants_count = RPLANTS,
        .plant_seeds = 60,
        .run = run,
        .report = report,
    };
    return seeds_campaign_main(&campaign, argc, argv);
}
