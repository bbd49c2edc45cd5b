#include "seeds/seeds.h"

#include "base/check.h"
#include "support/scale.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_LINES = 12, LAST_LINES = 45, LINE_BYTES = 400 };

struct slot {
    pid_t pid;
    uint64_t seed;
    FILE *report;
    void *result; /* shared with its process */
};

struct campaign {
    const struct seeds_world *world;
    struct seeds *seeds;
    size_t named_next;
    struct slot slots[SEEDS_JOBS_MAX];
};

static double wall_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void seeds_totals(void *all, const void *one, size_t bytes, size_t largest_from)
{
    uint64_t *into = all;
    const uint64_t *from = one;
    for (size_t i = 0; i < bytes / sizeof *into; i++)
        if (i < largest_from / sizeof *into)
            into[i] += from[i];
        else if (from[i] > into[i])
            into[i] = from[i];
}

/* ---- a process ---- */

static bool seed_take(struct campaign *campaign, uint64_t *seed_out)
{
    struct seeds *seeds = campaign->seeds;
    if (seeds->named && campaign->named_next < campaign->world->named_count)
        *seed_out = campaign->world->named[campaign->named_next++];
    else if (seeds->next < seeds->end)
        *seed_out = seeds->next++;
    else
        return false;
    return true;
}

static bool seed_start(struct campaign *campaign, struct slot *slot)
{
    const struct seeds_world *world = campaign->world;
    if (!seed_take(campaign, &slot->seed))
        return false;
    if (slot->report != NULL)
        (void)fclose(slot->report);
    slot->report = tmpfile();
    TIDE_ASSERT(slot->report != NULL);
    (void)fflush(NULL);
    slot->pid = fork();
    TIDE_ASSERT(slot->pid >= 0);
    if (slot->pid > 0)
        return true;
    (void)dup2(fileno(slot->report), STDERR_FILENO);
    (void)alarm(campaign->seeds->seconds_max);
    world->run(slot->seed, slot->result, world->arg);
    _exit(0);
}

/* ---- failures ---- */

/* Remembers the line that names a broken rule: "... SIM4: why". */
static void rule_find(struct seeds *seeds, const char *line)
{
    for (const char *at = strchr(line, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        const size_t letters = strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        const size_t digits = strspn(at + 1 + letters, "0123456789");
        if (letters < 3 || digits == 0 || at[1 + letters + digits] != ':')
            continue;
        (void)snprintf(seeds->why, sizeof seeds->why, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
        return;
    }
}

/* Reads the report: which rule it names, and with `shown` its first and last lines. */
static void report_read(struct seeds *seeds, FILE *report, bool shown)
{
    static char lines[LAST_LINES][LINE_BYTES];
    char line[LINE_BYTES];
    uint64_t count = 0;
    rewind(report);
    seeds->why[0] = '\0';
    while (fgets(line, sizeof line, report) != NULL) {
        if (seeds->why[0] == '\0')
            rule_find(seeds, line);
        if (count < FIRST_LINES && shown)
            (void)fputs(line, stdout);
        (void)memcpy(lines[count++ % LAST_LINES], line, sizeof line);
    }
    const bool cut = count > FIRST_LINES + LAST_LINES;
    if (cut && shown)
        (void)printf("  ...\n");
    for (uint64_t i = cut ? count - LAST_LINES : FIRST_LINES; shown && i < count; i++)
        (void)fputs(lines[i % LAST_LINES], stdout);
}

/* "DRI" is any rule of the drive, "DRI1" that one and not DRI16. */
static bool is_wanted(const struct seeds *seeds)
{
    const size_t bytes = strlen(seeds->wanted);
    return strncmp(seeds->why, seeds->wanted, bytes) == 0 &&
           (isdigit((unsigned char)seeds->wanted[bytes - 1]) == 0 ||
            isdigit((unsigned char)seeds->why[bytes]) == 0);
}

static void seed_failed(struct campaign *campaign, struct slot *slot, int status)
{
    struct seeds *seeds = campaign->seeds;
    const bool shown = seeds->wanted == NULL;
    if (!shown && seeds->failed_count >= seeds->failed_max)
        return; /* it was found; seeds that ran beside may have broken another rule */
    if (shown)
        (void)printf("FAILED seed %" PRIu64 " (%s %d); replay with:\n  %s --seed %" PRIu64 "\n",
                     slot->seed, WIFSIGNALED(status) ? "signal" : "exit",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                     campaign->world->replay, slot->seed);
    report_read(seeds, slot->report, shown);
    if (!shown && !is_wanted(seeds))
        return; /* it hung, or broke another rule */
    if (seeds->failed_count < SEEDS_FAILED_MAX)
        seeds->failed[seeds->failed_count] = slot->seed;
    seeds->failed_count++;
}

/* ---- all of them ---- */

static struct slot *slot_of(struct campaign *campaign, pid_t pid)
{
    uint32_t i = 0;
    while (i < campaign->seeds->jobs && campaign->slots[i].pid != pid)
        i++;
    TIDE_ASSERT(i < campaign->seeds->jobs);
    return &campaign->slots[i];
}

static void slots_open(struct campaign *campaign)
{
    for (uint32_t i = 0; i < campaign->seeds->jobs; i++) {
        struct slot *slot = &campaign->slots[i];
        slot->result = mmap(NULL, campaign->world->result_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        TIDE_ASSERT(slot->result != MAP_FAILED);
    }
}

static void slots_close(struct campaign *campaign)
{
    for (uint32_t i = 0; i < campaign->seeds->jobs; i++) {
        if (campaign->slots[i].report != NULL)
            (void)fclose(campaign->slots[i].report);
        (void)munmap(campaign->slots[i].result, campaign->world->result_bytes);
    }
}

void seeds_run(const struct seeds_world *world, struct seeds *seeds)
{
    struct campaign campaign = {.world = world, .seeds = seeds};
    const double start_s = wall_s();
    uint32_t alive = 0;
    slots_open(&campaign);
    for (uint32_t i = 0; i < seeds->jobs; i++)
        alive += seed_start(&campaign, &campaign.slots[i]);
    while (alive > 0) {
        int status = 0;
        const pid_t pid = wait(&status);
        if (pid < 0 && errno == EINTR)
            continue;
        struct slot *slot = slot_of(&campaign, pid);
        alive--;
        seeds->finished++;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            world->add(slot->seed, slot->result, world->arg);
        else
            seed_failed(&campaign, slot, status);
        if (seeds->failed_count < seeds->failed_max)
            alive += seed_start(&campaign, slot);
    }
    slots_close(&campaign);
    seeds->took_s = wall_s() - start_s;
}

int seeds_verdict(const struct seeds_world *world, const struct seeds *seeds)
{
    for (size_t i = 0; i < seeds->failed_count && i < SEEDS_FAILED_MAX; i++)
        (void)printf("failed: %s --seed %" PRIu64 "\n", world->replay, seeds->failed[i]);
    return seeds->failed_count > 0 ? 1 : 0;
}

/* ---- options ---- */

bool seeds_option(struct seeds *seeds, int argc, char **argv, int *i)
{
    if (*i + 1 >= argc)
        return false;
    char *rest = NULL;
    if (strcmp(argv[*i], "--jobs") == 0) {
        seeds->jobs = (uint32_t)strtoul(argv[++*i], NULL, 10);
        return true;
    }
    if (strcmp(argv[*i], "--seeds") != 0)
        return false;
    seeds->next = strtoull(argv[++*i], &rest, 10);
    if (strncmp(rest, "..", 2) != 0)
        return false;
    seeds->end = strtoull(rest + 2, NULL, 10);
    return true;
}

bool seeds_ready(struct seeds *seeds)
{
    if (seeds->jobs == 0 || seeds->jobs > SEEDS_JOBS_MAX || seeds->end <= seeds->next)
        return false;
    seeds->end = seeds->next + scaled(seeds->end - seeds->next);
    return true;
}
