/* mail_quota_bench.c - an hour of the Gmail mirror under Gmail's quota, simulated.
 *
 * Goal: what quota_bench.c shows for the engine holds for the whole mail system: a
 * first sync uses at least 97 % of 6,000 units a minute, exceeds no window by the
 * server's own count and is refused less than once in a thousand calls (E4.3); killed
 * about every minute it exceeds no window (E4.3b); with 5 % of calls failing in
 * several ways it still uses 90 %; after a storm it is back at 90 % within 60 s.
 *
 * Method: the handlers of src/mail, its archive and ledger on the simulated disk, and
 * the cloud in a box with a mailbox of more small messages than an hour allows.
 *
 * Prints a JSON line per figure: {"name","value","unit","ratio","to"}. */
#include "quota_hour.h"
#include "sim_mail.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    MESSAGES_PER_MINUTE = 310,
};

struct mirror {
    struct hour hour;
    struct tide_sim_mail life;
};

static void mirror_begin(struct mirror *mirror, uint64_t seed, uint64_t minutes)
{
    hour_begin(&mirror->hour, seed, (uint32_t)(minutes + 6) * MESSAGES_PER_MINUTE,
               BOX_MAILBOX_SIZE_MIN);
}

static void run_begin(uint64_t run, void *arg)
{
    (void)run;
    struct mirror *mirror = arg;
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_sim_mail_options options = {.world = mirror->hour.world,
                                                  .state_dir = "/state",
                                                  .archive_dir = "/archive",
                                                  .email = HOUR_USER,
                                                  .token = HOUR_TOKEN};
    const struct tide_mail_run sync = {.email = HOUR_USER};
    must(tide_sim_mail_open(&mirror->life, &options, &err), "open", &err);
    must(tide_mail_run(mirror->life.mail, &sync, &err), "run", &err);
    must(tide_engine_start(mirror->life.engine, &err), "start", &err);
}

static void run_end(void *arg)
{
    struct mirror *mirror = arg;
    tide_sim_mail_close(&mirror->life, mirror->hour.sim);
}

/* One hour without faults, then a storm and the recovery. */
static bool steady(uint64_t seed, uint64_t minutes)
{
    struct mirror mirror;
    mirror_begin(&mirror, seed, minutes + 4);
    run_begin(0, &mirror);
    pass(&mirror.hour, WARM_UP_MS);
    const bool ok = hour_steady(&mirror.hour, minutes, "mail_quota");
    run_end(&mirror);
    hour_end(&mirror.hour);
    return ok;
}

/* Killed about once a minute: no window may be exceeded across the restarts. */
static bool killed(uint64_t seed, uint64_t runs)
{
    struct mirror mirror;
    mirror_begin(&mirror, seed, runs + 10);
    const bool ok =
        hour_killed(&mirror.hour, seed, runs, "mail_quota", run_begin, run_end, &mirror);
    figure("mail_quota_killed_fetched_again",
           (double)truth_of(&mirror.hour).fetched_again / (double)runs, "messages", 0, "per kill");
    hour_end(&mirror.hour);
    return ok;
}

/* 5 % of calls fail, as `rules` say. */
static bool troubled(uint64_t seed, uint64_t minutes, const char *name, const char *const *rules,
                     size_t count, double least)
{
    struct mirror mirror;
    char text[80];
    mirror_begin(&mirror, seed, minutes);
    faults(&mirror.hour, rules, count);
    run_begin(0, &mirror);
    pass(&mirror.hour, WARM_UP_MS);
    const struct truth before = truth_of(&mirror.hour);
    pass(&mirror.hour, minutes * 60000);
    const struct truth after = truth_of(&mirror.hour);
    const double used = (double)(after.used - before.used) / (double)(minutes * UNITS_PER_MINUTE);
    (void)snprintf(text, sizeof text, "mail_quota_%s_used", name);
    figure(text, used * 100, "%", used / 0.9, "90 %");
    (void)snprintf(text, sizeof text, "mail_quota_%s_windows_crossed", name);
    figure(text, (double)after.crossed, "calls", 0, "none");
    run_end(&mirror);
    hour_end(&mirror.hour);
    return used >= least && after.crossed == 0;
}

int main(int argc, char **argv)
{
    static const char *const failing[] = {
        "{\"method\":\"gmail.*\",\"rate\":0.02,\"fault\":\"503\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.01,\"fault\":\"500\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.01,\"fault\":\"reset-after\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.01,\"fault\":\"truncate\"}"};
    static const char *const mixed[] = {
        "{\"method\":\"gmail.*\",\"rate\":0.015,\"fault\":\"503\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.01,\"fault\":\"500\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.01,\"fault\":\"429\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.005,\"fault\":\"reset-after\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.005,\"fault\":\"truncate\"}",
        "{\"method\":\"gmail.*\",\"rate\":0.005,\"fault\":\"403-user-rate\"}"};
    const char *scale = getenv("TIDE_TEST_SCALE");
    const uint64_t percent = scale == NULL ? 100 : strtoull(scale, NULL, 10);
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t minutes = argc > 2 ? strtoull(argv[2], NULL, 10) : percent < 100 ? 3 : 60;
    bool ok = steady(seed, minutes);
    ok = killed(seed + 1, minutes < 60 ? minutes : 60) && ok;
    ok = troubled(seed + 2, minutes, "failing", failing, 4, 0.9) && ok;
    /* Each refusal is obeyed: the rate is cut, and recovers. */
    ok = troubled(seed + 3, minutes, "mixed", mixed, 6, 0) && ok;
    if (!ok)
        (void)fprintf(stderr, "mail_quota_bench: seed %" PRIu64 " missed its promise\n", seed);
    return ok ? 0 : 1;
}
