/* campaign.c - many seeds of the mail assistant (seeds/campaign.h). */
#include "assistant_sim.h"
#include "seeds/campaign.h"

static void run(uint64_t seed, int plant, void *totals)
{
    asim_run(seed, (enum asim_plant)plant, totals);
}

static int report(const void *totals)
{
    const struct asim_totals *all = totals;
    printf("%" PRIu64 " lives (%" PRIu64 " crashed), %" PRIu64 " acts, %" PRIu64
           " messages, %" PRIu64 " answers, %" PRIu64 " drafts, %" PRIu64 " replies\n",
           all->lives, all->crashes, all->acts, all->messages, all->questions, all->drafts,
           all->replies);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct seeds_campaign campaign = {
        .name = "assistant_campaign",
        .totals_bytes = sizeof(struct asim_totals),
        .faults_at = offsetof(struct asim_totals, faults),
        .fault_names = asim_fault_names,
        .faults_count = AFAULTS,
        .faults_scale = 50,
        .plant_names = asim_plant_names,
        .plant_rules = asim_plant_rules,
        .plants_count = APLANTS,
        .plant_seeds = 300,
        .run = run,
        .report = report,
    };
    return seeds_campaign_main(&campaign, argc, argv);
}
