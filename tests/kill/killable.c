/* killable.c - runs scenarios, kills them, and checks what is left.
 *
 *   killable list
 *   killable run SCENARIO DIR [--kill-at N] [--kill-mode before|after|torn]
 *   killable verify SCENARIO DIR
 *   killable campaign [--scenario S] [--every K] [--random N] [--part I/N]
 *                     [--seconds S] [--seed N] [--modes all|one] --tmp DIR
 *   killable pending COUNT DIR     how long a start with so many waiting jobs takes,
 *                                  after a kill, until its first job runs
 *
 * The campaign counts the operations of a scenario, then lets it die at each of
 * them, in every mode, each time on a fresh directory.  After the kill the files
 * are copied and the copy is checked as it lies; the program is started again,
 * sometimes killed once more, and must come to the same end as ever.  Random
 * kills come from outside, many of them on one directory, a moment after the program has
 * reached a random operation: so they strike in all of it on a machine of any speed.
 *
 * A campaign fails if too few of its kills struck: it would have shown nothing.
 *
 * The driver itself has no threads and opens no database: all work is done in
 * children made by fork(). */
#include "kill_points.h"
#include "scenario.h"
#include "support/temp_dir.h"

#include "base/rng.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HANG_S = 90, KILLS_PER_DIR = 12, SCENARIOS_MAX = 64, MISSES_MAX = 20 };

struct campaign {
    const char *only; /* a scenario; NULL: all */
    uint64_t every;
    uint64_t random;
    uint64_t part, parts;
    uint64_t seconds; /* per scenario, 0: no limit */
    bool one_mode;    /* at each point, in turn */
    const char *tmp;
    uint64_t seed;
    tide_rng rng;
    struct witness *witness;
    char dir[PATH_BYTES / 2], copy[PATH_BYTES / 2 + 8];
    uint64_t ops[SCENARIOS_MAX]; /* of a run without a kill; 0: not known yet */
    /* so far */
    uint64_t points, kills, random_kills, dirs, missed, skipped;
    uint64_t reruns, reruns_max, reruns_kills;
};

/* ---- directories ------------------------------------------------------------------ */

static void dir_remove(const char *dir)
{
    (void)temp_dir_remove(dir);
}

static void file_copy(const char *from, const char *to)
{
    char bytes[1 << 16];
    FILE *source = fopen(from, "rb");
    FILE *target = fopen(to, "wb");
    if (source == NULL || target == NULL)
        wrong("copy %s: %s", from, strerror(errno));
    size_t got = 0;
    while ((got = fread(bytes, 1, sizeof bytes, source)) > 0)
        if (fwrite(bytes, 1, got, target) != got)
            wrong("copy %s: %s", from, strerror(errno));
    (void)fclose(source);
    if (fclose(target) != 0)
        wrong("copy %s: %s", from, strerror(errno));
}

/* All regular files but the shared memory of the logs, which a crash may lose. */
static bool dir_copy(const char *from, const char *to)
{
    dir_remove(to);
    DIR *dir = opendir(from);
    if (dir == NULL)
        return false; /* killed before it was made */
    if (mkdir(to, 0700) != 0)
        wrong("make %s: %s", to, strerror(errno));
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char source[PATH_BYTES], target[PATH_BYTES];
        struct stat info;
        size_t bytes = strlen(entry->d_name);
        (void)snprintf(source, sizeof source, "%s/%.255s", from, entry->d_name);
        (void)snprintf(target, sizeof target, "%s/%.255s", to, entry->d_name);
        bool shared = bytes > 4 && strcmp(entry->d_name + bytes - 4, "-shm") == 0;
        if (!shared && stat(source, &info) == 0 && S_ISREG(info.st_mode))
            file_copy(source, target);
    }
    (void)closedir(dir);
    return true;
}

/* ---- children ---------------------------------------------------------------------- */

typedef enum act { ACT_RUN, ACT_MIDWAY, ACT_VERIFY } act;

static pid_t child_start(struct campaign *campaign, const struct scenario *scenario, act what,
                         const char *dir, uint64_t kill_at, kill_mode mode)
{
    (void)fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        wrong("fork: %s", strerror(errno));
    if (child > 0)
        return child;
    (void)alarm(HANG_S); /* a run that hangs is a failure, with a name */
    kill_arm(kill_at, mode, &campaign->witness->ops_live);
    if (what == ACT_RUN)
        scenario_run(scenario, dir, campaign->witness);
    else if (what == ACT_MIDWAY)
        scenario_midway(scenario, dir, campaign->witness);
    else
        scenario_verify(scenario, dir, campaign->witness);
    _exit(0);
}

typedef enum ending { ENDED_WELL, ENDED_KILLED, ENDED_WRONG } ending;

static ending child_wait(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            wrong("wait: %s", strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return ENDED_WELL;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return ENDED_KILLED;
    (void)fprintf(stderr, "the child ended with %s %d\n", WIFEXITED(status) ? "exit" : "signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return ENDED_WRONG;
}

static ending act_do(struct campaign *campaign, const struct scenario *scenario, act what,
                     const char *dir, uint64_t kill_at, kill_mode mode)
{
    return child_wait(child_start(campaign, scenario, what, dir, kill_at, mode));
}

/* Looks at a copy of what the kill left. */
static bool look_midway(struct campaign *campaign, const struct scenario *scenario)
{
    return !dir_copy(campaign->dir, campaign->copy) ||
           act_do(campaign, scenario, ACT_MIDWAY, campaign->copy, 0, KILL_BEFORE) == ENDED_WELL;
}

static bool end_well(struct campaign *campaign, const struct scenario *scenario)
{
    return act_do(campaign, scenario, ACT_RUN, campaign->dir, 0, KILL_BEFORE) == ENDED_WELL &&
           act_do(campaign, scenario, ACT_VERIFY, campaign->dir, 0, KILL_BEFORE) == ENDED_WELL;
}

/* ---- every point ---------------------------------------------------------------------- */

static void directory_new(struct campaign *campaign)
{
    (void)snprintf(campaign->dir, sizeof campaign->dir, "%s/d%" PRIu64 "-%" PRIu64, campaign->tmp,
                   campaign->part, campaign->dirs);
    (void)snprintf(campaign->copy, sizeof campaign->copy, "%s-copy", campaign->dir);
    campaign->dirs++;
    dir_remove(campaign->dir);
    memset(campaign->witness, 0, offsetof(struct witness, calls_us));
}

static void directory_done(struct campaign *campaign)
{
    dir_remove(campaign->dir);
    dir_remove(campaign->copy);
}

static void reruns_count(struct campaign *campaign, uint64_t expected, uint64_t kills)
{
    uint64_t runs = campaign->witness->handler_runs;
    uint64_t again = runs > expected ? runs - expected : 0;
    campaign->reruns += again;
    campaign->reruns_kills += kills;
    if (kills == 1 && again > campaign->reruns_max)
        campaign->reruns_max = again;
}

/* One kill at `at`, now and then a second one during recovery, then the end. */
static bool point_try(struct campaign *campaign, const struct scenario *scenario, uint64_t at,
                      kill_mode mode, uint64_t expected_runs)
{
    directory_new(campaign);
    campaign->points++;
    uint64_t kills = 0;
    ending first = act_do(campaign, scenario, ACT_RUN, campaign->dir, at, mode);
    uint64_t second_at = 0;
    bool good = first != ENDED_WRONG;
    if (first == ENDED_KILLED) {
        kills++;
        good = look_midway(campaign, scenario);
        if (good && tide_rng_below(&campaign->rng, 3) == 0) {
            second_at = 1 + tide_rng_below(&campaign->rng, 40);
            ending second = act_do(campaign, scenario, ACT_RUN, campaign->dir, second_at, mode);
            kills += second == ENDED_KILLED;
            good = second != ENDED_WRONG &&
                   (second != ENDED_KILLED || look_midway(campaign, scenario));
        }
    } else {
        campaign->missed++;
    }
    good = good && end_well(campaign, scenario);
    campaign->kills += kills;
    if (!good) {
        (void)fprintf(stderr,
                      "FAILED %s: killed %s operation %" PRIu64 ", then %" PRIu64
                      " (0: not again); files in %s\n",
                      scenario->name, kill_mode_names[mode], at, second_at, campaign->dir);
        return false;
    }
    reruns_count(campaign, expected_runs, kills);
    directory_done(campaign);
    return true;
}

static uint64_t seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* About the golden section of `count`, and without a common divisor: its multiples
 * visit every number below `count` once, the first ones far apart. */
static uint64_t stride_of(uint64_t count)
{
    for (uint64_t stride = count * 618 / 1000 + 1;; stride++) {
        uint64_t a = stride, b = count;
        while (b != 0) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return stride;
    }
}

/* A run without a kill: how many operations it has. */
static bool scenario_measure(struct campaign *campaign, const struct scenario *scenario)
{
    directory_new(campaign);
    if (!end_well(campaign, scenario)) {
        (void)fprintf(stderr, "FAILED %s: without any kill; files in %s\n", scenario->name,
                      campaign->dir);
        return false;
    }
    campaign->ops[scenario - scenarios] = campaign->witness->ops;
    directory_done(campaign);
    return true;
}

static bool scenario_sweep(struct campaign *campaign, const struct scenario *scenario)
{
    if (!scenario_measure(campaign, scenario))
        return false;
    uint64_t ops = campaign->witness->ops;
    uint64_t runs = campaign->witness->handler_runs;
    uint64_t every = scenario->slow ? campaign->every * 4 : campaign->every;
    uint64_t first = 1 + tide_rng_below(&campaign->rng, every);
    uint64_t begun = seconds_now();
    /* A run with other timing has a few operations more: they are tried too.  The
     * order strides over all of them, so that a limit of time leaves an even sample. */
    uint64_t total = (ops + 5 - first) / every + 1;
    uint64_t choices = campaign->one_mode ? total : total * KILL_MODES;
    uint64_t stride = stride_of(choices);
    for (uint64_t i = 0; i < choices; i++) {
        uint64_t choice = i * stride % choices;
        uint64_t point = choice % total;
        kill_mode mode = (kill_mode)((point + choice / total) % KILL_MODES);
        if ((point + choice / total) % campaign->parts != campaign->part)
            continue;
        uint64_t at = first + point * every;
        if (campaign->seconds != 0 && seconds_now() - begun >= campaign->seconds)
            campaign->skipped++;
        else if (!point_try(campaign, scenario, at, mode, runs))
            return false;
    }
    (void)printf("%-9s %5" PRIu64 " operations, %" PRIu64 " s\n", scenario->name, ops,
                 seconds_now() - begun);
    return true;
}

/* ---- random kills -------------------------------------------------------------------------- */

static void sleep_us(uint64_t us)
{
    struct timespec wait = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    while (nanosleep(&wait, &wait) != 0 && errno == EINTR)
        ;
}

/* Kills the child when it has come to a random operation, or a moment later. */
static ending kill_somewhere(struct campaign *campaign, const struct scenario *scenario)
{
    enum { LOOK_US = 100, LATE_US = 3000 };
    const uint64_t after_ops = tide_rng_below(&campaign->rng, campaign->ops[scenario - scenarios]);
    const uint64_t late_us = tide_rng_below(&campaign->rng, LATE_US);
    uint64_t *ops = &campaign->witness->ops_live;
    __atomic_store_n(ops, 0, __ATOMIC_SEQ_CST);
    pid_t child = child_start(campaign, scenario, ACT_RUN, campaign->dir, 0, KILL_BEFORE);
    siginfo_t info = {0};
    while (__atomic_load_n(ops, __ATOMIC_SEQ_CST) < after_ops && info.si_pid == 0) {
        sleep_us(LOOK_US);
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            wrong("waitid: %s", strerror(errno));
    }
    sleep_us(late_us);
    (void)kill(child, SIGKILL);
    return child_wait(child);
}

/* A crash loop on one directory; returns the kills it took, or -1. */
static int64_t crash_loop(struct campaign *campaign, const struct scenario *scenario,
                          uint64_t kills_max)
{
    directory_new(campaign);
    int64_t kills = 0;
    bool ended = false;
    bool good = true;
    while (good && !ended && (uint64_t)kills < kills_max) {
        ending end = kill_somewhere(campaign, scenario);
        good = end != ENDED_WRONG;
        ended = end == ENDED_WELL;
        kills += end == ENDED_KILLED;
        if (good && !ended && tide_rng_below(&campaign->rng, 4) == 0)
            good = look_midway(campaign, scenario);
    }
    good = good && end_well(campaign, scenario);
    if (!good) {
        (void)fprintf(stderr, "FAILED %s: after %" PRId64 " random kills; files in %s\n",
                      scenario->name, kills, campaign->dir);
        return -1;
    }
    directory_done(campaign);
    return kills;
}

static bool random_kills(struct campaign *campaign)
{
    size_t turn = campaign->part;
    int without = 0; /* runs in a row */
    uint64_t wanted = campaign->random / campaign->parts + 1;
    while (campaign->random_kills < wanted) {
        const struct scenario *scenario = &scenarios[turn++ % scenarios_count];
        if (campaign->only != NULL)
            scenario = scenario_named(campaign->only);
        if (campaign->ops[scenario - scenarios] == 0 && !scenario_measure(campaign, scenario))
            return false;
        uint64_t left = wanted - campaign->random_kills;
        int64_t kills = crash_loop(campaign, scenario, left < KILLS_PER_DIR ? left : KILLS_PER_DIR);
        if (kills < 0)
            return false;
        campaign->random_kills += (uint64_t)kills;
        without = kills == 0 ? without + 1 : 0;
        if (without == MISSES_MAX) {
            (void)fprintf(stderr, "FAILED: no kill struck in the last %d runs\n", MISSES_MAX);
            return false;
        }
    }
    return true;
}

/* A run has a few operations more or fewer than another, so a point near its end may not be
 * reached.  More misses than that mean that the kills do not strike. */
static bool enough_struck(const struct campaign *campaign)
{
    if (campaign->missed * 4 <= campaign->points)
        return true;
    (void)fprintf(stderr, "FAILED: %" PRIu64 " of %" PRIu64 " points were not reached\n",
                  campaign->missed, campaign->points);
    return false;
}

/* ---- the program -------------------------------------------------------------------------------- */

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 2; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return argv[i + 1];
    return otherwise;
}

static uint64_t option_u64(int argc, char **argv, const char *name, uint64_t otherwise)
{
    const char *text = option(argc, argv, name, NULL);
    uint64_t number = otherwise;
    if (text != NULL && !tide_text_to_u64(tide_text_of(text), &number))
        wrong("%s takes a number, not %s", name, text);
    return number;
}

static const struct scenario *scenario_must(const char *name)
{
    const struct scenario *scenario = scenario_named(name);
    if (scenario == NULL)
        wrong("there is no scenario %s; see killable list", name);
    return scenario;
}

static struct witness *witness_new(void)
{
    struct witness *witness =
        mmap(NULL, sizeof *witness, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (witness == MAP_FAILED)
        wrong("no shared memory");
    return witness;
}

/* ---- a start with much to do ------------------------------------------------------------------------ */

struct pending {
    struct witness *witness;
    uint64_t begun_us;
    uint32_t kind;
};

static uint64_t us_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Remembers when the first one ran; then holds its worker until the kill. */
static tide_status first_handler(tide_job *job, void *context, tide_error *err)
{
    struct pending *pending = context;
    (void)err;
    if (__atomic_add_fetch(&pending->witness->handler_runs, 1, __ATOMIC_SEQ_CST) == 1)
        pending->witness->calls_us[0] = us_now() - pending->begun_us;
    return tide_job_sleep(job, 60000);
}

static tide_engine *pending_open(struct pending *pending, const char *dir)
{
    tide_engine *engine = NULL;
    tide_error err;
    struct tide_kind kind = {
        .name = "wait", .handler = first_handler, .context = pending, .attempts_max = 60000};
    struct tide_engine_options options = {.state_dir = dir};
    pending->begun_us = us_now();
    if (tide_engine_open(&options, &engine, &err) != TIDE_OK ||
        tide_engine_kind(engine, &kind, &pending->kind, &err) != TIDE_OK)
        wrong("open: %s", err.text);
    pending->witness->opened_us = us_now() - pending->begun_us;
    return engine;
}

/* In a child: opens, fills up to `count` on the first go, starts, and waits for the
 * kill that comes once a job runs. */
static void pending_child(struct pending *pending, const char *dir, uint64_t count)
{
    tide_engine *engine = pending_open(pending, dir);
    tide_error err;
    struct tide_spec *specs = count == 0 ? NULL : calloc(count, sizeof *specs);
    for (uint64_t i = 0; i < count; i++)
        specs[i] = (struct tide_spec){.kind = pending->kind, .payload = "{\"key\":\"value\"}"};
    if (count > 0 && tide_enqueue(engine, specs, count, NULL, &err) != TIDE_OK)
        wrong("enqueue: %s", err.text);
    free(specs);
    if (tide_engine_start(engine, &err) != TIDE_OK)
        wrong("start: %s", err.text);
    (void)tide_engine_wait(engine, TIDE_WAIT_FOREVER, &err);
}

static int pending_main(uint64_t count, const char *dir)
{
    struct pending pending = {.witness = witness_new()};
    for (int turn = 0; turn < 4; turn++) {
        memset(pending.witness, 0, offsetof(struct witness, calls_us));
        pid_t child = fork();
        if (child < 0)
            wrong("fork: %s", strerror(errno));
        if (child == 0) {
            pending_child(&pending, dir, turn == 0 ? count : 0);
            _exit(0);
        }
        while (__atomic_load_n(&pending.witness->handler_runs, __ATOMIC_SEQ_CST) == 0)
            sleep_us(1000);
        sleep_us(50000);
        (void)kill(child, SIGKILL);
        if (child_wait(child) != ENDED_KILLED)
            wrong("the child ended by itself");
        if (turn > 0)
            (void)printf("%" PRIu64 " jobs waiting, after a kill: open %" PRIu64
                         " ms, first job after %" PRIu64 " ms, %" PRIu64 " jobs running\n",
                         count, pending.witness->opened_us / 1000,
                         pending.witness->calls_us[0] / 1000, pending.witness->handler_runs);
    }
    return 0;
}

static int campaign_main(int argc, char **argv)
{
    struct campaign campaign = {
        .only = option(argc, argv, "--scenario", NULL),
        .every = option_u64(argc, argv, "--every", 1),
        .random = option_u64(argc, argv, "--random", 0),
        .seconds = option_u64(argc, argv, "--seconds", 0),
        .seed = option_u64(argc, argv, "--seed", 1),
        .one_mode = strcmp(option(argc, argv, "--modes", "all"), "one") == 0,
        .parts = 1,
        .tmp = option(argc, argv, "--tmp", NULL),
        .witness = witness_new(),
    };
    const char *part = option(argc, argv, "--part", "0/1");
    if (sscanf(part, "%" SCNu64 "/%" SCNu64, &campaign.part, &campaign.parts) != 2 ||
        campaign.parts == 0 || campaign.tmp == NULL)
        wrong("campaign needs --tmp DIR, and --part I/N");
    campaign.rng = tide_rng_seeded(campaign.seed * 1000 + campaign.part);
    if (campaign.only != NULL)
        (void)scenario_must(campaign.only);
    if (scenarios_count > SCENARIOS_MAX)
        wrong("more than %d scenarios", SCENARIOS_MAX);
    uint64_t begun = seconds_now();
    bool good = true;
    for (size_t i = 0; good && i < scenarios_count && campaign.every > 0; i++)
        if (campaign.only == NULL || strcmp(campaign.only, scenarios[i].name) == 0)
            good = scenario_sweep(&campaign, &scenarios[i]);
    good = good && random_kills(&campaign) && enough_struck(&campaign);
    (void)printf(
        "%s part %s seed %" PRIu64 ": %" PRIu64 " points, %" PRIu64 " kills at points (%" PRIu64
        " points not reached, %" PRIu64 " skipped for time), %" PRIu64 " random kills, %" PRIu64
        " jobs run again in %" PRIu64 " kills, at most %" PRIu64 " after one, %" PRIu64 " s\n",
        good ? "ok" : "FAILED", part, campaign.seed, campaign.points, campaign.kills,
        campaign.missed, campaign.skipped, campaign.random_kills, campaign.reruns,
        campaign.reruns_kills, campaign.reruns_max, seconds_now() - begun);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct witness *witness = witness_new();
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < scenarios_count; i++)
            (void)puts(scenarios[i].name);
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "campaign") == 0)
        return campaign_main(argc, argv);
    if (argc >= 4 && strcmp(argv[1], "run") == 0) {
        const char *mode_name = option(argc, argv, "--kill-mode", "before");
        kill_mode mode = KILL_BEFORE;
        while (mode < KILL_MODES && strcmp(kill_mode_names[mode], mode_name) != 0)
            mode++;
        if (mode == KILL_MODES)
            wrong("--kill-mode is before, after or torn");
        kill_arm(option_u64(argc, argv, "--kill-at", 0), mode, &witness->ops_live);
        scenario_run(scenario_must(argv[2]), argv[3], witness);
        (void)printf("complete: %" PRIu64 " operations, %" PRIu64
                     " handler runs, open to start %" PRIu64 " us\n",
                     witness->ops, witness->handler_runs, witness->opened_us);
        return 0;
    }
    uint64_t count = 0;
    if (argc == 4 && strcmp(argv[1], "pending") == 0 &&
        tide_text_to_u64(tide_text_of(argv[2]), &count) && count > 0)
        return pending_main(count, argv[3]);
    if (argc == 4 && strcmp(argv[1], "verify") == 0) {
        scenario_verify(scenario_must(argv[2]), argv[3], witness);
        (void)puts("good");
        return 0;
    }
    (void)fprintf(stderr,
                  "usage: killable list | run SCENARIO DIR [--kill-at N]"
                  " [--kill-mode before|after|torn] | verify SCENARIO DIR | campaign ...\n");
    return 2;
}
