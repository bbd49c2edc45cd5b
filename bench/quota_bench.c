/* quota_bench.c - an hour of the whole engine under Gmail's quota, simulated.
 *
 * Goal: the engine, not only its governor, uses at least 97 % of 6,000 units a minute,
 * exceeds no window by the provider's own count and is refused less than once in a thousand
 * calls (E4.3); killed about every minute it still exceeds no window (E4.3b); after a storm
 * it is back at 90 % within 60 s.
 *
 * Method: fetch jobs of 25 items for one account, calls of 20 units, one call in a hundred
 * slow by seconds; a second account without quota shows that no worker waits for the first
 * one's units (E4.3a).  The provider is the cloud in a box, the same that tidemark-cloud
 * serves, under its rules of 2026; its referee counts.
 *
 * Prints a JSON line per figure: {"name","value","unit","ratio","to"}. */
#include "sim.h"
#include "sim_cloud.h"
#include "tidemark.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNITS_PER_MINUTE = 6000,
    GET_UNITS = 20,
    ITEMS_PER_JOB = 25,
    JOBS_PER_LIFE = 900,
    STORM_MS = 60000,
    WARM_UP_MS = 120000, /* until the first windows are full */
    MESSAGES = 500,
    THINK_US_MAX = 200000,
};

struct hour {
    tide_sim *sim;
    tide_sim_cloud *cloud;
    char (*ids)[24]; /* of the messages */
    size_t ids_count;
    uint64_t item_next;
    uint64_t free_ran;
};

static tide_status fetch(tide_job *job, void *context, tide_error *err)
{
    struct hour *hour = context;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < tide_job_items(job); i++) {
        if (!tide_job_item_open(job, i))
            continue;
        char url[160];
        (void)snprintf(url, sizeof url,
                       "http://provider/gmail/v1/users/me/messages/%.*s?format=minimal",
                       (int)tide_job_item(job, i).bytes, tide_job_item(job, i).data);
        const struct tide_header header = {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer me")};
        struct tide_request request = {
            .method = "GET", .url = url, .headers = &header, .headers_count = 1};
        struct tide_response response;
        tide_response_init(&response, tide_mem_heap());
        rc = tide_job_call(job, GET_UNITS, 1, NULL, &request, &response, err);
        tide_response_done(&response);
        if (rc == TIDE_OK || rc == TIDE_GONE)
            tide_job_item_done(job, i);
        if (rc == TIDE_GONE)
            rc = TIDE_OK;
    }
    (void)hour;
    return rc;
}

static tide_status free_work(tide_job *job, void *context, tide_error *err)
{
    struct hour *hour = context;
    (void)err;
    hour->free_ran++; /* no lock: the simulation runs one thread at a time */
    return tide_job_sleep(job, 50);
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct hour *hour = arg;
    answer->think_us = tide_rng_below(rng, THINK_US_MAX);
    if (tide_rng_chance(rng, 1, 100)) /* a stall of 1 to 5 s before the answer */
        answer->think_us += 1000000 + tide_rng_below(rng, 4000000);
    tide_sim_cloud_call(hour->cloud, request, now_unix_ms, rng, answer);
}

static void expect(struct hour *hour, tide_status rc, const tide_error *err)
{
    if (rc == TIDE_OK)
        return;
    (void)fprintf(stderr, "quota_bench: %s\n", err->text);
    (void)hour;
    exit(1);
}

static void enqueue(struct hour *hour, tide_engine *engine, uint32_t kind, uint32_t account,
                    uint32_t jobs)
{
    tide_error err;
    for (uint32_t i = 0; i < jobs; i++) {
        char payload[ITEMS_PER_JOB * 48 + 32];
        int used = snprintf(payload, sizeof payload, "{\"items\":[");
        for (int k = 0; k < ITEMS_PER_JOB; k++)
            used += snprintf(payload + used, sizeof payload - (size_t)used, "%s\"%s\"",
                             k == 0 ? "" : ",", hour->ids[hour->item_next++ % hour->ids_count]);
        (void)snprintf(payload + used, sizeof payload - (size_t)used, "]}");
        struct tide_spec spec = {.kind = kind, .account = account, .payload = payload};
        expect(hour, tide_enqueue(engine, &spec, 1, NULL, &err), &err);
    }
}

struct life {
    tide_engine *engine;
    uint32_t fetch, free_kind, account;
};

static void open_life(struct hour *hour, struct life *life)
{
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_engine_options options = {
        .state_dir = "/state", .world = tide_sim_world(hour->sim), .no_control_socket = true};
    expect(hour, tide_engine_open(&options, &life->engine, &err), &err);
    struct tide_kind kind = {.name = "fetch",
                             .handler = fetch,
                             .context = hour,
                             .items = true,
                             .attempts_max = 60000}; /* it is killed often */
    expect(hour, tide_engine_kind(life->engine, &kind, &life->fetch, &err), &err);
    struct tide_kind other = {.name = "free", .handler = free_work, .context = hour, .priority = 1};
    expect(hour, tide_engine_kind(life->engine, &other, &life->free_kind, &err), &err);
    expect(hour, tide_engine_account(life->engine, "me@example.org", "gmail", &life->account, &err),
           &err);
}

static void start_life(struct hour *hour, struct life *life)
{
    tide_error err = {TIDE_OK, 0, ""};
    expect(hour, tide_engine_start(life->engine, &err), &err);
}

static void pass(struct hour *hour, uint64_t ms)
{
    tide_world *world = tide_sim_world(hour->sim);
    (void)tide_world_sleep_until(world, tide_world_now_us(world) + ms * 1000, NULL);
}

static void figure(const char *name, double value, const char *unit, double ratio, const char *to)
{
    (void)printf("{\"name\":\"%s\",\"value\":%.4f,\"unit\":\"%s\",\"ratio\":%.4f,\"to\":\"%s\"}\n",
                 name, value, unit, ratio, to);
}

/* ---- the referee's counts ---- */

struct truth {
    uint64_t calls;
    uint64_t used; /* units of calls that were answered */
    uint64_t over_quota;
    uint64_t over_concurrency;
    uint64_t highest; /* units in any 60 s, granted or not */
};

static struct truth truth_of(struct hour *hour)
{
    json_t *stats = tide_sim_cloud_ask(hour->cloud, "GET", "/_cloud/stats", TIDE_TEXT_NONE,
                                       tide_sim_net_unix_ms(hour->sim), NULL);
    const json_t *me = json_object_get(json_object_get(stats, "users"), "me@example.org");
    const json_t *get = json_object_get(json_object_get(me, "methods"), "gmail.users.messages.get");
    const json_t *refused = json_object_get(me, "refused");
#define COUNT(object, key) (uint64_t) json_integer_value(json_object_get(object, key))
    const struct truth truth = {
        .calls = COUNT(get, "calls"),
        .used = COUNT(json_object_get(get, "status"), "200") * GET_UNITS,
        .over_quota = COUNT(refused, "user-minute"),
        .over_concurrency = COUNT(refused, "concurrency"),
        .highest = COUNT(me, "offered_units_highest_in_60s"),
    };
#undef COUNT
    json_decref(stats);
    return truth;
}

/* A storm: every call is refused, alternately in two of the ways providers refuse. */
static void storm(struct hour *hour, bool on)
{
    static const char *const rules[] = {
        "{\"method\":\"gmail.*\",\"rate\":0.5,\"fault\":\"429\"}",
        "{\"method\":\"gmail.*\",\"rate\":1,\"fault\":\"403-user-rate\"}"};
    for (size_t i = 0; i < (on ? sizeof rules / sizeof rules[0] : 1); i++) {
        int http = 0;
        json_decref(tide_sim_cloud_ask(hour->cloud, on ? "POST" : "DELETE", "/_cloud/faults",
                                       on ? tide_text_of(rules[i]) : TIDE_TEXT_NONE,
                                       tide_sim_net_unix_ms(hour->sim), &http));
        if (http / 100 != 2)
            (void)fprintf(stderr, "quota_bench: no storm: %d\n", http);
    }
}

static struct hour hour_new(uint64_t seed)
{
    struct hour hour = {.item_next = 0};
    hour.cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = seed, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    return hour;
}

/* The mailbox is made once the world's clock is known. */
static void hour_fill(struct hour *hour)
{
    tide_error err = {TIDE_OK, 0, ""};
    box_cloud *box = tide_sim_cloud_box(hour->cloud);
    const tide_text me = TIDE_TEXT("me@example.org");
    const struct box_mailbox_options options = {.messages = MESSAGES,
                                                .now_unix_ms = tide_sim_net_unix_ms(hour->sim)};
    expect(hour, box_cloud_add_mailbox(box, me, &options, &err), &err);
    expect(hour, box_cloud_add_token(box, TIDE_TEXT("me"), me, &err), &err);
    hour->ids = calloc(MESSAGES, sizeof *hour->ids);
    json_t *list = tide_sim_cloud_ask(hour->cloud, "GET",
                                      "/gmail/v1/users/me/messages?maxResults=500&access_token=me",
                                      TIDE_TEXT_NONE, tide_sim_net_unix_ms(hour->sim), NULL);
    size_t index = 0;
    const json_t *message = NULL;
    json_array_foreach(json_object_get(list, "messages"), index, message)(void)
        snprintf(hour->ids[hour->ids_count++], sizeof hour->ids[0], "%s",
                 json_string_value(json_object_get(message, "id")));
    json_decref(list);
}

static void hour_end(struct hour *hour)
{
    tide_sim_free(hour->sim);
    tide_sim_cloud_free(hour->cloud);
    free(hour->ids);
}

static void hour_begin(struct hour *hour, uint64_t seed)
{
    struct tide_sim_options options = {.net = {.latency_us_max = 50000, .skew_ms_max = 500}};
    options.net.provide = provide;
    options.net.provide_arg = hour;
    hour->sim = tide_sim_new(seed, &options);
    hour_fill(hour);
}

/* Seconds until ten consecutive ones used 90 % of their limit: shorter spans vary too much,
 * because a call costs 20 units and one in a hundred takes seconds.  They count from the first
 * call that is sent again: a time that a refusal named is obeyed, also beyond the storm's end. */
static uint64_t recovery(struct hour *hour)
{
    uint64_t before = truth_of(hour).used;
    for (int i = 0; i < 120 && truth_of(hour).used == before; i++)
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

/* One hour without faults, then a storm and the recovery. */
static bool steady(uint64_t seed, uint64_t minutes)
{
    struct hour hour = hour_new(seed);
    hour_begin(&hour, seed);
    struct life life;
    open_life(&hour, &life);
    enqueue(&hour, life.engine, life.fetch, life.account, JOBS_PER_LIFE);
    tide_error err;
    for (int i = 0; i < 200; i++)
        expect(
            &hour,
            tide_enqueue(life.engine, &(struct tide_spec){.kind = life.free_kind}, 1, NULL, &err),
            &err);
    start_life(&hour, &life);
    pass(&hour, WARM_UP_MS);
    bool no_wait = hour.free_ran == 200; /* at the lowest priority, next to a full account */
    struct truth before = truth_of(&hour);
    pass(&hour, minutes * 60000);
    struct truth after = truth_of(&hour);
    double used = (double)(after.used - before.used) / (double)(minutes * UNITS_PER_MINUTE);
    double calls = (double)(after.calls - before.calls);
    double refused = (double)(after.over_quota + after.over_concurrency - before.over_quota -
                              before.over_concurrency) /
                     calls;

    storm(&hour, true);
    pass(&hour, STORM_MS);
    storm(&hour, false);
    uint64_t recovered_s = recovery(&hour);
    figure("quota_hour_used", used * 100, "%", used / 0.97, "97 %");
    figure("quota_hour_windows_crossed", (double)(after.over_quota), "calls", 0, "none");
    figure("quota_hour_refused", refused * 100, "%", refused / 0.001, "0.1 %");
    figure("quota_hour_highest_window", (double)after.highest, "units",
           (double)after.highest / UNITS_PER_MINUTE, "6000 units");
    figure("quota_storm_recovered", (double)recovered_s, "s", (double)recovered_s / 60, "60 s");
    figure("quota_other_account_served", no_wait ? 1 : 0, "yes", 1, "no worker waits for quota");
    (void)tide_engine_close(life.engine);
    hour_end(&hour);
    return used >= 0.97 && after.over_quota == 0 && refused < 0.001 && recovered_s > 0 &&
           recovered_s <= 60 && no_wait;
}

/* Killed about once a minute: no window may be exceeded across the restarts. */
static bool killed(uint64_t seed, uint64_t lives)
{
    struct hour hour = hour_new(seed);
    hour_begin(&hour, seed);
    tide_rng rng = tide_rng_seeded(seed);
    uint64_t ms = 0;
    for (uint64_t i = 0; i < lives; i++) {
        struct life life;
        open_life(&hour, &life);
        enqueue(&hour, life.engine, life.fetch, life.account, i == 0 ? 400 : 12);
        start_life(&hour, &life);
        uint64_t alive_ms = 40000 + tide_rng_below(&rng, 40000);
        pass(&hour, alive_ms);
        ms += alive_ms;
        tide_sim_crash(hour.sim, TIDE_SIM_CRASH_KILL);
        (void)tide_engine_close(life.engine);
        tide_sim_reboot(hour.sim);
    }
    tide_sim_net_settle(hour.sim);
    struct truth truth = truth_of(&hour);
    double used = (double)truth.used / ((double)ms / 60000 * UNITS_PER_MINUTE);
    figure("quota_killed_used", used * 100, "%", used, "the quota");
    figure("quota_killed_windows_crossed", (double)truth.over_quota, "calls", 0, "none");
    hour_end(&hour);
    return truth.over_quota == 0;
}

int main(int argc, char **argv)
{
    const char *scale = getenv("TIDE_TEST_SCALE");
    uint64_t percent = scale == NULL ? 100 : strtoull(scale, NULL, 10);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t minutes = percent >= 100 ? 60 : 10;
    bool ok = steady(seed, minutes);
    ok = killed(seed + 1, percent >= 100 ? 60 : 6) && ok;
    if (!ok)
        (void)fprintf(stderr, "quota_bench: seed %" PRIu64 " missed its promise\n", seed);
    return ok ? 0 : 1;
}
