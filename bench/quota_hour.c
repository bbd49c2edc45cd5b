#include "quota_hour.h"

enum { STORM_MS = 60000, THINK_US_MAX = 200000 };

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct hour *hour = arg;
    if (hour->seen != NULL)
        hour->seen(hour->seen_arg, request);
    answer->think_us = tide_rng_below(rng, THINK_US_MAX);
    if (tide_rng_chance(rng, 1, 100)) /* a stall of 1 to 5 s before the answer */
        answer->think_us += 1000000 + tide_rng_below(rng, 4000000);
    tide_sim_cloud_call(hour->cloud, request, now_unix_ms, rng, answer);
}

void hour_begin(struct hour *hour, uint64_t seed, uint32_t messages, uint32_t size_bytes)
{
    struct tide_sim_options options = {.net = {.latency_us_max = 50000, .skew_ms_max = 500}};
    options.net.provide = provide;
    options.net.provide_arg = hour;
    hour->seen = NULL;
    hour->cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = seed, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    hour->sim = tide_sim_new(seed, &options);
    hour->world = tide_sim_world(hour->sim);
    hour->mailbox = tide_sim_cloud_user(
        hour->cloud, hour->sim, HOUR_USER, HOUR_TOKEN,
        (struct box_mailbox_options){.messages = messages, .size_bytes = size_bytes});
}

void hour_end(struct hour *hour)
{
    tide_sim_free(hour->sim);
    tide_sim_cloud_free(hour->cloud);
}

void pass(const struct hour *hour, uint64_t ms)
{
    (void)tide_world_sleep_until(hour->world, tide_world_now_us(hour->world) + ms * 1000, NULL);
}

/* ---- the referee's counts ---- */

static uint64_t count_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

struct truth truth_of(const struct hour *hour)
{
    json_t *stats =
        tide_sim_cloud_control(hour->cloud, hour->sim, "GET", "/_cloud/stats", TIDE_TEXT_NONE);
    const json_t *me = json_object_get(json_object_get(stats, "users"), HOUR_USER);
    const json_t *get = json_object_get(json_object_get(me, "methods"), "gmail.users.messages.get");
    const json_t *refused = json_object_get(me, "refused");
    const json_t *fetched = json_object_get(me, "fetched");
    const uint64_t over = count_of(refused, "user-minute") + count_of(refused, "concurrency");
    const struct truth truth = {
        .calls = count_of(me, "calls"),
        .used = count_of(me, "units") - over * GET_UNITS,
        .gotten = count_of(json_object_get(get, "status"), "200") * GET_UNITS,
        .crossed = count_of(refused, "user-minute"),
        .refused = over,
        .highest = count_of(me, "offered_units_highest_in_60s"),
        .fetched_again = count_of(fetched, "total") - count_of(fetched, "messages"),
    };
    json_decref(stats);
    return truth;
}

void faults(const struct hour *hour, const char *const *rules, size_t count)
{
    json_decref(
        tide_sim_cloud_control(hour->cloud, hour->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
    for (size_t i = 0; i < count; i++)
        tide_sim_cloud_fault(hour->cloud, hour->sim, rules[i]);
}

/* ---- the hours ---- */

/* Seconds until ten consecutive ones used 90 % of their limit: shorter spans vary too much,
 * because a call costs 20 units and one in a hundred takes seconds.  They count from the first
 * message that arrives again: a time that a refusal named is obeyed, also beyond the storm's
 * end. */
static uint64_t recovery(const struct hour *hour)
{
    const uint64_t before = truth_of(hour).gotten;
    for (int i = 0; i < 120 && truth_of(hour).gotten == before; i++)
        pass(hour, 1000);
    uint64_t marks[37] = {truth_of(hour).used};
    for (uint64_t i = 1; i < sizeof marks / sizeof marks[0]; i++) {
        pass(hour, 5000);
        marks[i] = truth_of(hour).used;
        if (i >= 2 && marks[i] - marks[i - 2] >= UNITS_PER_MINUTE / 6 * 9 / 10)
            return i * 5;
    }
    return 0;
}

static void figure_of(const char *prefix, const char *name, double value, const char *unit,
                      double ratio, const char *to)
{
    char whole[80];
    (void)snprintf(whole, sizeof whole, "%s_%s", prefix, name);
    figure(whole, value, unit, ratio, to);
}

bool hour_steady(const struct hour *hour, uint64_t minutes, const char *prefix)
{
    /* Every call is refused, in one of two ways. */
    static const char *const storm[] = {
        "{\"method\":\"gmail.*\",\"rate\":0.5,\"fault\":\"429\"}",
        "{\"method\":\"gmail.*\",\"rate\":1,\"fault\":\"403-user-rate\"}"};
    const struct truth before = truth_of(hour);
    pass(hour, minutes * 60000);
    const struct truth after = truth_of(hour);
    const double used = (double)(after.used - before.used) / (double)(minutes * UNITS_PER_MINUTE);
    const double refused =
        (double)(after.refused - before.refused) / (double)(after.calls - before.calls);
    faults(hour, storm, 2);
    pass(hour, STORM_MS);
    faults(hour, NULL, 0);
    const uint64_t recovered_s = recovery(hour);
    figure_of(prefix, "hour_used", used * 100, "%", used / 0.97, "97 %");
    figure_of(prefix, "hour_windows_crossed", (double)after.crossed, "calls", 0, "none");
    figure_of(prefix, "hour_refused", refused * 100, "%", refused / 0.001, "0.1 %");
    figure_of(prefix, "hour_highest_window", (double)after.highest, "units",
              (double)after.highest / UNITS_PER_MINUTE, "6000 units");
    figure_of(prefix, "storm_recovered", (double)recovered_s, "s", (double)recovered_s / 60,
              "60 s");
    return used >= 0.97 && after.crossed == 0 && refused < 0.001 && recovered_s > 0 &&
           recovered_s <= 60;
}

bool hour_killed(const struct hour *hour, uint64_t seed, uint64_t runs, const char *prefix,
                 void (*begin)(uint64_t run, void *arg), void (*end)(void *arg), void *arg)
{
    tide_rng rng = tide_rng_seeded(seed);
    uint64_t ms = 0;
    for (uint64_t i = 0; i < runs; i++) {
        begin(i, arg);
        const uint64_t alive_ms = 40000 + tide_rng_below(&rng, 40000);
        pass(hour, alive_ms);
        ms += alive_ms;
        tide_sim_crash(hour->sim, TIDE_SIM_CRASH_KILL);
        end(arg);
        tide_sim_reboot(hour->sim);
    }
    tide_sim_net_settle(hour->sim);
    const struct truth truth = truth_of(hour);
    const double used = (double)truth.used / ((double)ms / 60000 * UNITS_PER_MINUTE);
    figure_of(prefix, "killed_used", used * 100, "%", used, "the quota");
    figure_of(prefix, "killed_windows_crossed", (double)truth.crossed, "calls", 0, "none");
    return truth.crossed == 0;
}
