/* mail_campaign.c - many seeds of the Gmail mirror (M15).
 *
 *     mail_campaign --seed N         one seed, in this process, with its trace on failure
 *     mail_campaign --seeds A..B     all of them, B not included
 *         [--jobs N]                 processes (2)
 *         [--twice]                  every tenth seed once more: its trace must be the same
 *     mail_campaign --plants [N]     every bug on purpose must be found within N seeds (40)
 *     mail_campaign --person ...     the same with the commands of the program and a server that
 *                                    lies (person.h) instead of a mirror (mail_sim.h)
 *         [--troubles A,B,...]       only these, or all but these: -A,-B,...
 *         [--rule N]                 only rule PN; for a fault that another rule finds earlier
 *         [--without-rule N]         all but PN */
#include "mail_sim.h"
#include "person.h"

#include "db/db.h"
#include "seeds/seeds.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { PLANT_SEEDS = 40 };

/* Seeds that found something once; they run first.  The plan has drawn more from a seed
 * since most of them, so that these are a sample with a history, and no proof. */
static const uint64_t named_seeds[] = {
    33,      /* an archive's thread was joined under a lock */
    80,      /* messages were blamed for a broken archive */
    96,      /* mail from before the first sync, ahead of our clock, was never listed */
    193,     /* messages were fetched for a broken archive, every ten seconds */
    315,     /* a forced run forgot where the history was */
    1445,    /* a dead history id was asked for three thousand times */
    9000651, /* a shard was kept without its log, because its first commit failed unnoticed */
    9000265, /* a run that failed for good was never taken for done */
    9000150, /* a new shard of an interrupted run was lost unnoticed */
};

struct campaign {
    struct seeds seeds;
    bool twice;
    bool person;
    uint64_t troubles;
    uint64_t rules;
    char replay[500];
    enum mail_plant plant;
    uint64_t replayed;
    struct mail_totals totals;
    struct person_totals people;
};

/* "a,b": these; "-a,-b": all but these.  false: there is no such trouble. */
static bool troubles_read(const char *text, uint64_t *troubles_out)
{
    const uint64_t all = (UINT64_C(1) << PERSON_TROUBLES) - 1;
    uint64_t troubles = text[0] == '-' ? all : 0;
    while (*text != '\0') {
        const bool without = *text == '-';
        text += without;
        const size_t bytes = strcspn(text, ",");
        int trouble = 0;
        while (trouble < PERSON_TROUBLES && (strlen(person_troubles[trouble]) != bytes ||
                                             strncmp(person_troubles[trouble], text, bytes) != 0))
            trouble++;
        if (trouble == PERSON_TROUBLES) {
            (void)fprintf(stderr, "there is no trouble \"%.*s\"; there are:", (int)bytes, text);
            for (int i = 0; i < PERSON_TROUBLES; i++)
                (void)fprintf(stderr, " %s", person_troubles[i]);
            (void)fprintf(stderr, "\n");
            return false;
        }
        if (without)
            troubles &= ~(UINT64_C(1) << trouble);
        else
            troubles |= UINT64_C(1) << trouble;
        text += bytes + (text[bytes] == ',');
    }
    *troubles_out = troubles;
    return true;
}

/* ---- a seed ------------------------------------------------------------------- */

static bool runs_twice(const struct campaign *campaign, uint64_t seed)
{
    return campaign->twice && seed % 10 == 0;
}

static void same_trace(uint64_t seed, uint64_t first, uint64_t second)
{
    if (first == second)
        return;
    (void)fprintf(stderr, "seed %" PRIu64 ": two runs of it are not the same\n", seed);
    _exit(1);
}

static void person_seed(uint64_t seed, void *result, void *arg)
{
    const struct campaign *campaign = arg;
    struct person_totals *totals = result;
    struct person_plan plan = person_plan_seeded(seed, campaign->troubles);
    plan.rules = campaign->rules;
    *totals = person_run(&plan);
    if (runs_twice(campaign, seed))
        same_trace(seed, totals->trace_hash, person_run(&plan).trace_hash);
}

static void mail_seed(uint64_t seed, void *result, void *arg)
{
    const struct campaign *campaign = arg;
    struct mail_totals *totals = result;
    struct mail_plan plan = mail_plan_seeded(seed);
    mail_plan_plant(&plan, campaign->plant);
    *totals = mail_sim_run(&plan);
    if (runs_twice(campaign, seed))
        same_trace(seed, totals->trace_hash, mail_sim_run(&plan).trace_hash);
}

static void mail_add(uint64_t seed, const void *result, void *arg)
{
    struct campaign *campaign = arg;
    seeds_totals(&campaign->totals, result, sizeof campaign->totals,
                 offsetof(struct mail_totals, again_per_crash_max));
    campaign->replayed += runs_twice(campaign, seed);
}

static void person_add(uint64_t seed, const void *result, void *arg)
{
    struct campaign *campaign = arg;
    seeds_totals(&campaign->people, result, sizeof campaign->people,
                 offsetof(struct person_totals, syncs_to_converge_max));
    campaign->replayed += runs_twice(campaign, seed);
}

static struct seeds_world world_of(struct campaign *campaign)
{
    struct seeds_world world = {
        .replay = campaign->replay,
        .named = named_seeds,
        .named_count = sizeof named_seeds / sizeof named_seeds[0],
        .result_bytes = sizeof(struct mail_totals),
        .run = mail_seed,
        .add = mail_add,
        .arg = campaign,
    };
    if (campaign->person) {
        world.result_bytes = sizeof(struct person_totals);
        world.run = person_seed;
        world.add = person_add;
    }
    return world;
}

/* ---- the whole ------------------------------------------------------------------- */

static void summary(const struct campaign *campaign)
{
    const struct seeds *seeds = &campaign->seeds;
    const struct mail_totals *totals = &campaign->totals;
    const double simulated_s = (double)totals->simulated_us / 1e6;
    (void)printf("mail seeds %" PRIu64 " failed %zu in %.1f s; simulated %.0f h, %.0f times real "
                 "time; lives %" PRIu64 ", crashes %" PRIu64 ", messages %" PRIu64
                 ", calls %" PRIu64 ", changes at the server %" PRIu64
                 ", histories expired %" PRIu64 ", shards lost %" PRIu64
                 ", messages of a Takeout %" PRIu64 "\n",
                 seeds->finished, seeds->failed_count, seeds->took_s, simulated_s / 3600,
                 simulated_s / seeds->took_s, totals->lives, totals->crashes, totals->messages,
                 totals->calls, totals->news, totals->expired, totals->shards_lost, totals->seeded);
    (void)printf("messages behind a tidemark read back %" PRIu64 ", fetched again %" PRIu64
                 " (at most %" PRIu64 " after a crash, in %" PRIu64
                 " worlds without other faults), highest minute %" PRIu64
                 " units, runs asked for again %" PRIu64 ", seeds replayed the same %" PRIu64 "\n",
                 totals->marks_checked, totals->fetched_again, totals->again_per_crash_max,
                 totals->quiet, totals->highest_units, totals->asked_again, campaign->replayed);
}

static void summary_of_people(const struct campaign *campaign)
{
    const struct seeds *seeds = &campaign->seeds;
    const struct person_totals *people = &campaign->people;
    (void)printf(
        "person seeds %" PRIu64 " failed %zu in %.1f s; simulated %.0f h; commands %" PRIu64
        ", syncs %" PRIu64 ", interrupted %" PRIu64 ", killed %" PRIu64 ", calls %" PRIu64
        ", messages %" PRIu64 "; at most %" PRIu64 " syncs until all was right\n",
        seeds->finished, seeds->failed_count, seeds->took_s, (double)people->simulated_us / 3.6e9,
        people->commands, people->syncs, people->interrupts, people->kills, people->calls,
        people->messages, people->syncs_to_converge_max);
    (void)printf("troubles of seeds that passed:");
    for (int i = 0; i < PERSON_TROUBLES; i++)
        (void)printf(" %s %" PRIu64, person_troubles[i], people->troubles[i]);
    (void)printf("\n");
}

/* ---- bugs on purpose --------------------------------------------------------------- */

static int run_plants(struct campaign *campaign, uint64_t seeds)
{
    const struct seeds_world world = world_of(campaign);
    int missed = 0;
    for (int plant = MAIL_PLANT_NONE + 1; plant < MAIL_PLANTS; plant++) {
        struct seeds one = {.next = 1,
                            .end = 1 + seeds,
                            .jobs = campaign->seeds.jobs,
                            .seconds_max = SEED_SECONDS_MAX,
                            .failed_max = 1,
                            .wanted = ""};
        campaign->plant = (enum mail_plant)plant;
        seeds_run(&world, &one);
        if (one.failed_count > 0)
            (void)printf("plant %d found after %" PRIu64 " seeds: %s\n", plant, one.finished,
                         one.why);
        else
            (void)printf("plant %d NOT found in %" PRIu64 " seeds\n", plant, seeds);
        missed += one.failed_count > 0 ? 0 : 1;
    }
    return missed > 0 ? 1 : 0;
}

static int run_one(uint64_t seed)
{
    const struct mail_plan plan = mail_plan_seeded(seed);
    (void)printf(
        "messages %u, lives %u, workers %u, news %u, planted %u, server faults %u;%s%s%s%s%s\n",
        plan.messages, plan.lives, plan.workers, plan.news_max, plan.planted,
        plan.server_faults_permille, plan.quiet ? " quiet" : "",
        plan.strict_quota ? " strict-quota" : "", plan.newest_first ? " newest-first" : "",
        plan.shard_lost ? " shard-lost" : "", plan.settled_first ? " settled-first" : "");
    (void)fflush(stdout);
    const struct mail_totals totals = mail_sim_run(&plan);
    (void)printf("seed %" PRIu64 " ok: %" PRIu64 " steps, %.0f s simulated, %" PRIu64
                 " crashes, %" PRIu64 " calls, %" PRIu64 " fetched again, trace %016" PRIx64 "\n",
                 seed, totals.steps, (double)totals.simulated_us / 1e6, totals.crashes,
                 totals.calls, totals.fetched_again, totals.trace_hash);
    return 0;
}

static int run_person(uint64_t seed, const struct campaign *campaign)
{
    struct person_plan plan = person_plan_seeded(seed, campaign->troubles);
    plan.rules = campaign->rules;
    (void)printf("accounts %u, days %u%s%s;", plan.accounts, plan.days,
                 plan.settled_first ? ", settled first" : "", plan.kills ? ", kills" : "");
    for (uint32_t i = 0; i < plan.accounts; i++) {
        (void)printf(" %u messages", plan.messages[i]);
        for (int trouble = 0; trouble < PERSON_TROUBLES; trouble++)
            if ((plan.troubles[i] >> trouble & 1) != 0)
                (void)printf(" %s", person_troubles[trouble]);
        (void)printf(i + 1 < plan.accounts ? "," : "\n");
    }
    (void)fflush(stdout);
    const struct person_totals totals = person_run(&plan);
    (void)printf("seed %" PRIu64 " ok: %" PRIu64 " steps, %.0f s simulated, %" PRIu64
                 " commands, %" PRIu64 " calls, right after %" PRIu64 " syncs, trace %016" PRIx64
                 "\n",
                 seed, totals.steps, (double)totals.simulated_us / 1e6, totals.commands,
                 totals.calls, totals.syncs_to_converge_max, totals.trace_hash);
    return 0;
}

static int usage(void)
{
    (void)fprintf(
        stderr,
        "mail_campaign [--person [--troubles A,B,...] [--rule N] [--without-rule N]] --seed N |"
        " --seeds A..B [--jobs N] [--twice] | --plants [N]\n");
    return 2;
}

static void option_add(struct campaign *campaign, const char *name, const char *value)
{
    const size_t used = strlen(campaign->replay);
    (void)snprintf(campaign->replay + used, sizeof campaign->replay - used, " %s%s", name, value);
}

/* Takes an option of --person at argv[*i]; false: it is none. */
static bool person_option(struct campaign *campaign, int argc, char **argv, int *i)
{
    if (strcmp(argv[*i], "--person") == 0) {
        campaign->person = true;
        option_add(campaign, "--person", "");
        return true;
    }
    if (*i + 1 >= argc)
        return false;
    const char *value = argv[*i + 1];
    if (strcmp(argv[*i], "--rule") == 0)
        campaign->rules = UINT64_C(1) << (strtoul(value, NULL, 10) & 63);
    else if (strcmp(argv[*i], "--without-rule") == 0)
        campaign->rules &= ~(UINT64_C(1) << (strtoul(value, NULL, 10) & 63));
    else if (strcmp(argv[*i], "--troubles") != 0 || !troubles_read(value, &campaign->troubles))
        return false;
    option_add(campaign, argv[*i], " ");
    option_add(campaign, value, "");
    ++*i;
    return true;
}

int main(int argc, char **argv)
{
    static struct campaign campaign = {.seeds = SEEDS_DEFAULT,
                                       .rules = UINT64_MAX,
                                       .troubles = (UINT64_C(1) << PERSON_TROUBLES) - 1,
                                       .replay = "build/tests/sim/mail_campaign"};
    uint64_t plants = 0;
    uint64_t seed = 0;
    bool one = false;
    tide_db_tune_process();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
            one = true;
        } else if (strcmp(argv[i], "--twice") == 0) {
            campaign.twice = true;
        } else if (strcmp(argv[i], "--plants") == 0) {
            plants = i + 1 < argc ? strtoull(argv[++i], NULL, 10) : PLANT_SEEDS;
        } else if (!person_option(&campaign, argc, argv, &i) &&
                   !seeds_option(&campaign.seeds, argc, argv, &i)) {
            return usage();
        }
    }
    if (one)
        return campaign.person ? run_person(seed, &campaign) : run_one(seed);
    if (plants > 0)
        return run_plants(&campaign, plants);
    if (!seeds_ready(&campaign.seeds))
        return usage();
    campaign.seeds.named = !campaign.person;
    const struct seeds_world world = world_of(&campaign);
    seeds_run(&world, &campaign.seeds);
    if (campaign.person)
        summary_of_people(&campaign);
    else
        summary(&campaign);
    return seeds_verdict(&world, &campaign.seeds);
}
