/* mail_campaign.c - many seeds of the Gmail mirror, in a few processes (M15).
 *
 *     mail_campaign --seed N         one seed, in this process, with its trace on failure
 *     mail_campaign --seeds A..B     all of them, B not included
 *         [--jobs N]                 processes (2)
 *         [--twice]                  every tenth seed once more: its trace must be the same
 *     mail_campaign --plants [N]     every bug on purpose must be found within N seeds (40)
 *
 * Each seed has a process of its own, so that one that breaks a rule, hangs or
 * crashes harms no other.  The command that replays it is printed with the end of
 * its report. */
#include "mail_sim.h"

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

/* Seeds that found something once; they run first. */
static const uint64_t named_seeds[] = {0};

/* Shared by all processes. */
struct board {
    struct mail_totals one[JOBS_MAX]; /* of the seed that just ended */
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
    all->retried_jobs += one->retried_jobs;
    larger(&all->again_per_crash_max, one->again_per_crash_max);
    larger(&all->highest_units, one->highest_units);
}

/* ---- processes ------------------------------------------------------------------- */

static void seed_main(const struct campaign *campaign, uint32_t index)
{
    const struct slot *slot = &campaign->slots[index];
    (void)dup2(fileno(slot->report), STDERR_FILENO);
    (void)alarm(SEED_SECONDS_MAX);
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
    while (campaign->named_next < named_count && named_seeds[campaign->named_next] == 0)
        campaign->named_next++;
    if (campaign->named_next < named_count)
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
        const char *rule = strstr(line, " C");
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
        (void)printf("FAILED seed %" PRIu64
                     " (%s %d); replay with:\n  build/tests/sim/mail_campaign --seed %" PRIu64 "\n",
                     seed, WIFSIGNALED(status) ? "signal" : "exit",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), seed);
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
                 " units, jobs called again by hand %" PRIu64 ", seeds replayed the same %" PRIu64
                 "\n",
                 totals->marks_checked, totals->fetched_again, totals->again_per_crash_max,
                 totals->quiet, totals->highest_units, totals->retried_jobs, campaign->replayed);
    for (size_t i = 0; i < campaign->failed_count && i < FAILED_MAX; i++)
        (void)printf("failed: mail_campaign --seed %" PRIu64 "\n", campaign->failed[i]);
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

static uint64_t scaled(uint64_t count)
{
    const char *scale = getenv("TIDE_TEST_SCALE");
    const uint64_t percent = scale == NULL ? 100 : strtoull(scale, NULL, 10);
    const uint64_t result = count * (percent == 0 ? 100 : percent) / 100;
    return result == 0 ? 1 : result;
}

static int usage(void)
{
    (void)fprintf(stderr, "mail_campaign --seed N | --seeds A..B [--jobs N] [--twice] |"
                          " --plants [N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct campaign campaign = {.jobs = 2};
    uint64_t plants = 0;
    for (int i = 1; i < argc; i++) {
        char *rest = NULL;
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            return run_one(strtoull(argv[++i], NULL, 10));
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
    return summary(&campaign, wall_s() - start_s);
}
