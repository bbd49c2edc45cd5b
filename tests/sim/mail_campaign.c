/* mail_campaign.c - many seeds of the Gmail mirror, in a few processes (M15).
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
 *         [--without-rule N]         all but PN
 *
 * Each seed has a process of its own, so that one that breaks a rule, hangs or
 * crashes harms no other.  The command that replays it is printed with the end of
 * its report. */
#include "mail_sim.h"
#include "person.h"

#include "db/db.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    JOBS_MAX = 64,
    FAILED_MAX = 50,
    SEED_SECONDS_MAX = 240, /* of the wall: a seed that takes longer hangs */
    REPORT_LINES = 30,
    PLANT_SEEDS = 40,
};

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
    9000150, /* a new shard of an interrupted run was lost, and nobody noticed */
};

/* Shared by all processes. */
struct board {
    struct mail_totals one[JOBS_MAX]; /* of the seed that just ended */
    struct person_totals people[JOBS_MAX];
};

struct slot {
    pid_t pid;
    uint64_t seed;
    FILE *report;
};

struct campaign {
    struct board *board;
    uint64_t next, end;
    uint64_t named_next;
    uint32_t jobs;
    bool twice;
    bool person;
    uint64_t troubles;
    uint64_t rules;
    char options[400]; /* of a person, to replay a seed with */
    struct person_totals people;
    enum mail_plant plant;
    struct slot slots[JOBS_MAX];
    uint64_t finished;
    uint64_t replayed;
    uint64_t failed[FAILED_MAX];
    size_t failed_count;
    char why[200]; /* of the last failure */
    struct mail_totals totals;
};

static double wall_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void larger(uint64_t *into, uint64_t number)
{
    if (number > *into)
        *into = number;
}

static void totals_add(struct mail_totals *all, const struct mail_totals *one)
{
    all->simulated_us += one->simulated_us;
    all->steps += one->steps;
    all->lives += one->lives;
    all->crashes += one->crashes;
    all->calls += one->calls;
    all->messages += one->messages;
    all->news += one->news;
    all->expired += one->expired;
    all->shards_lost += one->shards_lost;
    all->fetched_again += one->fetched_again;
    all->quiet += one->quiet;
    all->marks_checked += one->marks_checked;
    all->asked_again += one->asked_again;
    larger(&all->again_per_crash_max, one->again_per_crash_max);
    larger(&all->highest_units, one->highest_units);
}

static void people_add(struct person_totals *all, const struct person_totals *one)
{
    all->simulated_us += one->simulated_us;
    all->steps += one->steps;
    all->commands += one->commands;
    all->syncs += one->syncs;
    all->interrupts += one->interrupts;
    all->kills += one->kills;
    all->calls += one->calls;
    all->messages += one->messages;
    for (int i = 0; i < PERSON_TROUBLES; i++)
        all->troubles[i] += one->troubles[i];
    larger(&all->syncs_to_converge_max, one->syncs_to_converge_max);
}

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

/* ---- processes ------------------------------------------------------------------- */

static void person_main(const struct campaign *campaign, uint32_t index)
{
    const uint64_t seed = campaign->slots[index].seed;
    struct person_plan plan = person_plan_seeded(seed, campaign->troubles);
    plan.rules = campaign->rules;
    const struct person_totals totals = person_run(&plan);
    if (campaign->twice && seed % 10 == 0 && person_run(&plan).trace_hash != totals.trace_hash) {
        (void)fprintf(stderr, "seed %" PRIu64 ": two runs of it are not the same\n", seed);
        _exit(1);
    }
    campaign->board->people[index] = totals;
    _exit(0);
}

static void seed_main(const struct campaign *campaign, uint32_t index)
{
    const struct slot *slot = &campaign->slots[index];
    (void)dup2(fileno(slot->report), STDERR_FILENO);
    (void)alarm(SEED_SECONDS_MAX);
    if (campaign->person)
        person_main(campaign, index);
    struct mail_plan plan = mail_plan_seeded(slot->seed);
    mail_plan_plant(&plan, campaign->plant);
    struct mail_totals totals = mail_sim_run(&plan);
    if (campaign->twice && slot->seed % 10 == 0 &&
        mail_sim_run(&plan).trace_hash != totals.trace_hash) {
        (void)fprintf(stderr, "seed %" PRIu64 ": two runs of it are not the same\n", slot->seed);
        _exit(1);
    }
    campaign->board->one[index] = totals;
    _exit(0);
}

static bool seed_start(struct campaign *campaign, uint32_t index)
{
    struct slot *slot = &campaign->slots[index];
    const uint64_t named_count = sizeof named_seeds / sizeof named_seeds[0];
    if (!campaign->person && campaign->plant == MAIL_PLANT_NONE &&
        campaign->named_next < named_count)
        slot->seed = named_seeds[campaign->named_next++];
    else if (campaign->next < campaign->end)
        slot->seed = campaign->next++;
    else
        return false;
    if (slot->report != NULL)
        (void)fclose(slot->report);
    slot->report = tmpfile();
    TIDE_ASSERT(slot->report != NULL);
    (void)fflush(NULL);
    slot->pid = fork();
    TIDE_ASSERT(slot->pid >= 0);
    if (slot->pid == 0)
        seed_main(campaign, index);
    return true;
}

static void show_report(struct campaign *campaign, FILE *report, bool quiet)
{
    char lines[REPORT_LINES][300];
    char line[300];
    uint64_t count = 0;
    rewind(report);
    campaign->why[0] = '\0';
    while (fgets(line, sizeof line, report) != NULL) {
        const char *rule = strstr(line, campaign->person ? " P" : " C");
        if (campaign->why[0] == '\0' && rule != NULL && rule[2] >= '1' && rule[2] <= '9')
            (void)snprintf(campaign->why, sizeof campaign->why, "%.*s",
                           (int)strcspn(rule + 1, "\n"), rule + 1);
        if (count < 12 && !quiet)
            (void)fputs(line, stdout);
        (void)memcpy(lines[count++ % REPORT_LINES], line, sizeof line);
    }
    if (quiet)
        return;
    for (uint64_t i = count > 12 + REPORT_LINES ? count - REPORT_LINES : 12; i < count; i++)
        (void)fputs(lines[i % REPORT_LINES], stdout);
}

static void seed_died(struct campaign *campaign, uint32_t index, int status)
{
    const uint64_t seed = campaign->slots[index].seed;
    const bool quiet = campaign->plant != MAIL_PLANT_NONE;
    if (!quiet)
        (void)printf(
            "FAILED seed %" PRIu64
            " (%s %d); replay with:\n  build/tests/sim/mail_campaign%s --seed %" PRIu64 "\n",
            seed, WIFSIGNALED(status) ? "signal" : "exit",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), campaign->options, seed);
    show_report(campaign, campaign->slots[index].report, quiet);
    if (campaign->failed_count < FAILED_MAX)
        campaign->failed[campaign->failed_count] = seed;
    campaign->failed_count++;
}

/* Ends early after so many failures. */
static void run_all(struct campaign *campaign, size_t failed_max)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < campaign->jobs; i++)
        alive += seed_start(campaign, i) ? 1 : 0;
    while (alive > 0) {
        int status = 0;
        const pid_t pid = wait(&status);
        if (pid < 0 && errno == EINTR)
            continue;
        TIDE_ASSERT(pid > 0);
        uint32_t index = 0;
        while (index < campaign->jobs && campaign->slots[index].pid != pid)
            index++;
        TIDE_ASSERT(index < campaign->jobs);
        alive--;
        campaign->finished++;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            totals_add(&campaign->totals, &campaign->board->one[index]);
            people_add(&campaign->people, &campaign->board->people[index]);
            if (campaign->twice && campaign->slots[index].seed % 10 == 0)
                campaign->replayed++;
        } else {
            seed_died(campaign, index, status);
        }
        if (campaign->failed_count < failed_max)
            alive += seed_start(campaign, index) ? 1 : 0;
    }
}

static int summary(struct campaign *campaign, double took_s)
{
    const struct mail_totals *totals = &campaign->totals;
    const double simulated_s = (double)totals->simulated_us / 1e6;
    (void)printf("mail seeds %" PRIu64 " failed %zu in %.1f s; simulated %.0f h, %.0f times real "
                 "time; lives %" PRIu64 ", crashes %" PRIu64 ", messages %" PRIu64
                 ", calls %" PRIu64 ", changes at the server %" PRIu64
                 ", histories expired %" PRIu64 ", shards lost %" PRIu64 "\n",
                 campaign->finished, campaign->failed_count, took_s, simulated_s / 3600,
                 simulated_s / took_s, totals->lives, totals->crashes, totals->messages,
                 totals->calls, totals->news, totals->expired, totals->shards_lost);
    (void)printf("messages behind a watermark read back %" PRIu64 ", fetched again %" PRIu64
                 " (at most %" PRIu64 " after a crash, in %" PRIu64
                 " worlds without other faults), highest minute %" PRIu64
                 " units, runs asked for again %" PRIu64 ", seeds replayed the same %" PRIu64 "\n",
                 totals->marks_checked, totals->fetched_again, totals->again_per_crash_max,
                 totals->quiet, totals->highest_units, totals->asked_again, campaign->replayed);
    for (size_t i = 0; i < campaign->failed_count && i < FAILED_MAX; i++)
        (void)printf("failed: mail_campaign --seed %" PRIu64 "\n", campaign->failed[i]);
    return campaign->failed_count > 0 ? 1 : 0;
}

static int summary_of_people(struct campaign *campaign, double took_s)
{
    const struct person_totals *people = &campaign->people;
    (void)printf(
        "person seeds %" PRIu64 " failed %zu in %.1f s; simulated %.0f h; commands %" PRIu64
        ", syncs %" PRIu64 ", interrupted %" PRIu64 ", killed %" PRIu64 ", calls %" PRIu64
        ", messages %" PRIu64 "; at most %" PRIu64 " syncs until all was right\n",
        campaign->finished, campaign->failed_count, took_s, (double)people->simulated_us / 3.6e9,
        people->commands, people->syncs, people->interrupts, people->kills, people->calls,
        people->messages, people->syncs_to_converge_max);
    (void)printf("troubles of seeds that passed:");
    for (int i = 0; i < PERSON_TROUBLES; i++)
        (void)printf(" %s %" PRIu64, person_troubles[i], people->troubles[i]);
    (void)printf("\n");
    for (size_t i = 0; i < campaign->failed_count && i < FAILED_MAX; i++)
        (void)printf("failed: mail_campaign%s --seed %" PRIu64 "\n", campaign->options,
                     campaign->failed[i]);
    return campaign->failed_count > 0 ? 1 : 0;
}

/* ---- bugs on purpose --------------------------------------------------------------- */

static int run_plants(struct campaign *campaign, uint64_t seeds)
{
    int missed = 0;
    for (int plant = MAIL_PLANT_NONE + 1; plant < MAIL_PLANTS; plant++) {
        campaign->plant = (enum mail_plant)plant;
        campaign->next = 1;
        campaign->end = 1 + seeds;
        campaign->finished = 0;
        campaign->failed_count = 0;
        run_all(campaign, 1);
        if (campaign->failed_count > 0)
            (void)printf("plant %d found after %" PRIu64 " seeds: %s\n", plant, campaign->finished,
                         campaign->why);
        else
            (void)printf("plant %d NOT found in %" PRIu64 " seeds\n", plant, seeds);
        missed += campaign->failed_count > 0 ? 0 : 1;
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

static uint64_t scaled(uint64_t count)
{
    const char *scale = getenv("TIDE_TEST_SCALE");
    const uint64_t percent = scale == NULL ? 100 : strtoull(scale, NULL, 10);
    const uint64_t result = count * (percent == 0 ? 100 : percent) / 100;
    return result == 0 ? 1 : result;
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
    const size_t used = strlen(campaign->options);
    (void)snprintf(campaign->options + used, sizeof campaign->options - used, " %s%s", name, value);
}

int main(int argc, char **argv)
{
    struct campaign campaign = {
        .jobs = 2, .rules = UINT64_MAX, .troubles = (UINT64_C(1) << PERSON_TROUBLES) - 1};
    uint64_t plants = 0;
    uint64_t seed = 0;
    bool one = false;
    tide_db_tune_process();
    for (int i = 1; i < argc; i++) {
        char *rest = NULL;
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
            one = true;
        } else if (strcmp(argv[i], "--person") == 0) {
            campaign.person = true;
            option_add(&campaign, "--person", "");
        } else if (strcmp(argv[i], "--rule") == 0 && i + 1 < argc) {
            campaign.rules = UINT64_C(1) << (strtoul(argv[++i], NULL, 10) & 63);
            option_add(&campaign, "--rule ", argv[i]);
        } else if (strcmp(argv[i], "--without-rule") == 0 && i + 1 < argc) {
            campaign.rules &= ~(UINT64_C(1) << (strtoul(argv[++i], NULL, 10) & 63));
            option_add(&campaign, "--without-rule ", argv[i]);
        } else if (strcmp(argv[i], "--troubles") == 0 && i + 1 < argc) {
            if (!troubles_read(argv[++i], &campaign.troubles))
                return 2;
            option_add(&campaign, "--troubles ", argv[i]);
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            campaign.next = strtoull(argv[++i], &rest, 10);
            if (strncmp(rest, "..", 2) != 0)
                return usage();
            campaign.end = strtoull(rest + 2, NULL, 10);
        } else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) {
            campaign.jobs = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--twice") == 0) {
            campaign.twice = true;
        } else if (strcmp(argv[i], "--plants") == 0) {
            plants = i + 1 < argc ? strtoull(argv[++i], NULL, 10) : PLANT_SEEDS;
        } else {
            return usage();
        }
    }
    if (one)
        return campaign.person ? run_person(seed, &campaign) : run_one(seed);
    if (campaign.jobs == 0 || campaign.jobs > JOBS_MAX ||
        (plants == 0 && campaign.end <= campaign.next))
        return usage();
    campaign.board = mmap(NULL, sizeof *campaign.board, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TIDE_ASSERT(campaign.board != MAP_FAILED);
    const double start_s = wall_s();
    if (plants > 0)
        return run_plants(&campaign, plants);
    campaign.end = campaign.next + scaled(campaign.end - campaign.next);
    run_all(&campaign, FAILED_MAX);
    return campaign.person ? summary_of_people(&campaign, wall_s() - start_s)
                           : summary(&campaign, wall_s() - start_s);
}
