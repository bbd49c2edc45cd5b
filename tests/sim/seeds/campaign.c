#include "seeds/campaign.h"

#include "support/scale.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    const struct seeds_campaign *campaign;
    int plant;
    void *all; /* totals */
};

static void run(uint64_t seed, void *result, void *arg)
{
    const struct state *state = arg;
    state->campaign->run(seed, state->plant, result);
}

static void add(uint64_t seed, const void *result, void *arg)
{
    const struct state *state = arg;
    const size_t bytes = state->campaign->totals_bytes;
    (void)seed;
    seeds_totals(state->all, result, bytes, bytes);
}

static int report(const struct state *state, bool need_all)
{
    const struct seeds_campaign *campaign = state->campaign;
    const uint64_t *faults = (const uint64_t *)state->all + campaign->faults_at / sizeof *faults;
    int missing = campaign->report(state->all);
    for (int i = 0; i < campaign->faults_count; i++) {
        printf("%s %" PRIu64 "%s", campaign->fault_names[i], faults[i],
               i + 1 < campaign->faults_count ? ", " : "\n");
        missing += faults[i] == 0;
    }
    /* Fewer seeds, in a slow build, do not draw each. */
    need_all = need_all && scaled(100) >= campaign->faults_scale;
    if (need_all && missing > 0)
        (void)fprintf(stderr, "%d faults never happened\n", missing);
    return need_all && missing > 0 ? 1 : 0;
}

static bool begin(const struct state *state)
{
    return state->campaign->begin == NULL || state->campaign->begin();
}

static void end(const struct state *state)
{
    if (state->campaign->end != NULL)
        state->campaign->end();
}

static int plants(const struct seeds_world *world, struct state *state)
{
    const struct seeds_campaign *campaign = state->campaign;
    int missed = 0;
    for (state->plant = 1; state->plant < campaign->plants_count; state->plant++) {
        struct seeds seeds = SEEDS_DEFAULT;
        seeds.next = 1;
        seeds.end = campaign->plant_seeds;
        seeds.failed_max = 1;
        seeds.wanted = campaign->plant_rules[state->plant];
        if (!begin(state))
            return 2;
        seeds_run(world, &seeds);
        end(state);
        printf("%-18s %s after %" PRIu64 " seeds: %s\n", campaign->plant_names[state->plant],
               seeds.failed_count > 0 ? "found" : "MISSED", seeds.finished, seeds.why);
        (void)fflush(stdout);
        missed += seeds.failed_count == 0;
    }
    return missed > 0 ? 1 : 0;
}

static int run_seeds(const struct seeds_world *world, struct seeds *seeds,
                     const struct state *state, uint64_t seed, bool need_all)
{
    int rc = 0;
    if ((seed == 0 && !seeds_ready(seeds)) || !begin(state))
        return 2;
    if (seed != 0) {
        state->campaign->run(seed, state->plant, state->all);
        rc = report(state, false);
    } else {
        seeds_run(world, seeds);
        rc = seeds_verdict(world, seeds);
        rc = rc != 0 ? rc : report(state, need_all);
    }
    end(state);
    return rc;
}

/* false: there is no such plant. */
static bool take_plant(struct state *state, const char *name)
{
    for (int i = 0; i < state->campaign->plants_count; i++)
        if (strcmp(name, state->campaign->plant_names[i]) == 0) {
            state->plant = i;
            return true;
        }
    return false;
}

static int take_words(struct state *state, int argc, char **argv)
{
    const struct seeds_world world = {.replay = state->campaign->name,
                                      .result_bytes = state->campaign->totals_bytes,
                                      .run = run,
                                      .add = add,
                                      .arg = state};
    struct seeds seeds = SEEDS_DEFAULT;
    uint64_t seed = 0;
    bool need_all = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plants") == 0)
            return plants(&world, state);
        if (strcmp(argv[i], "--faults") == 0) {
            need_all = true;
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--plant") == 0 && i + 1 < argc &&
                   take_plant(state, argv[i + 1])) {
            i++;
        } else if (!seeds_option(&seeds, argc, argv, &i)) {
            (void)fprintf(stderr, "usage: see seeds/campaign.h\n");
            return 2;
        }
    }
    return run_seeds(&world, &seeds, state, seed, need_all);
}

int seeds_campaign_main(const struct seeds_campaign *campaign, int argc, char **argv)
{
    struct state state = {.campaign = campaign, .all = calloc(1, campaign->totals_bytes)};
    const int rc = state.all == NULL ? 2 : take_words(&state, argc, argv);
    free(state.all);
    return rc;
}
