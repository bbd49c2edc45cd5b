/* mirror_run.c - one seed: lives with faults, then one without, in which all
 * must come to rest and be right. */
#include "mirror.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

enum { MINUTE_US = 60000000, ROUNDS_MAX = 600 };

static uint32_t sometimes(tide_rng *rng, uint32_t high)
{
    return tide_rng_chance(rng, 1, 2) ? 0 : 1 + (uint32_t)tide_rng_below(rng, high);
}

static struct tide_sim_provider_options provider_seeded(tide_rng *rng, uint64_t seed)
{
    struct tide_sim_provider_options options = {
        .seed = seed,
        .start_unix_ms = 1772323200000,
        .items_count = 5 + (uint32_t)tide_rng_below(rng, tide_rng_chance(rng, 1, 8) ? 150 : 50),
        .span_ms = 10ull * 86400000,
        .new_count = sometimes(rng, 15),
        .grow_ms = 1800000,
        .vanish_permille = sometimes(rng, 100),
        .item_bytes_max = 300,
        .poison_500_permille = sometimes(rng, 40),
        .poison_400_permille = sometimes(rng, 60),
        .stalls_permille = tide_rng_chance(rng, 1, 4) ? 20 : 0,
        .resets_permille = tide_rng_chance(rng, 1, 4) ? 20 : 0,
        .page_max = 1 + (uint32_t)tide_rng_below(rng, 20),
        .units_list = 5,
        .units_get = 20,
        .refused_are_charged = tide_rng_chance(rng, 1, 2),
        .error_permille = sometimes(rng, 80),
        .refuse_permille = sometimes(rng, tide_rng_chance(rng, 1, 4) ? 300 : 30),
        .garbage_permille = sometimes(rng, 20),
        .loop_permille = sometimes(rng, 20),
    };
    return options;
}

static void disk_seeded(tide_rng *rng, struct tide_sim_disk_options *disk)
{
    if (tide_rng_chance(rng, 1, 6))
        disk->sync_error_per_million = 1000;
    if (tide_rng_chance(rng, 1, 6))
        disk->full_per_million = 3000;
    if (tide_rng_chance(rng, 1, 6))
        disk->write_error_per_million = 300;
}

struct mirror_plan mirror_plan_seeded(uint64_t seed)
{
    tide_rng rng = tide_rng_seeded(seed ^ 0x6d6972726f72u);
    struct mirror_plan plan = {.seed = seed, .sim = tide_sim_options_seeded(seed)};
    if (tide_rng_chance(&rng, 1, 2)) {
        /* Half of the worlds keep the promises the governor relies on (GOV1). */
        plan.sim.net.duplicate_permille = 0;
        plan.sim.net.slow_permille = 0;
        plan.strict_quota = true;
    }
    if (tide_rng_chance(&rng, 1, 4)) {
        plan.sim.pause_every_steps = 0;
        plan.sim.hiccup_every_steps = 0;
        plan.calm = true;
    }
    disk_seeded(&rng, &plan.sim.disk);
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++)
        plan.provider[i] = provider_seeded(&rng, seed * 2 + i);
    static const uint32_t units[] = {600, 1500, 6000};
    plan.provider[0].units_per_minute = units[tide_rng_below(&rng, 3)];
    plan.provider[1].concurrency_max = sometimes(&rng, 8);
    plan.slices = 1 + (uint32_t)tide_rng_below(&rng, 8);
    plan.lives = (uint32_t)tide_rng_below(&rng, 6);
    plan.workers = 1 + (uint32_t)tide_rng_below(&rng, 12);
    plan.window_jobs = 100 + (uint32_t)tide_rng_below(&rng, 60);
    plan.batch = 1 + (uint32_t)tide_rng_below(&rng, 12);
    plan.page = 1 + (uint32_t)tide_rng_below(&rng, 30);
    plan.crash_steps_max = 500u << tide_rng_below(&rng, 6);
    plan.whole_batches = tide_rng_chance(&rng, 1, 3);
    plan.impatient = tide_rng_chance(&rng, 1, 4);
    plan.slow_spell = tide_rng_chance(&rng, 1, 6);
    plan.rescues = tide_rng_chance(&rng, 1, 4);
    plan.stubborn = !plan.calm && tide_rng_chance(&rng, 1, 4);
    const char *planted = getenv("TIDE_PLANT");
    if (planted != NULL)
        plan.plant = (enum mirror_plant)strtoul(planted, NULL, 10);
    return plan;
}

/* ---- a life with faults ------------------------------------------------------- */

static bool may_fail(struct mirror *mirror)
{
    const struct tide_sim_disk_options *disk = &mirror->plan.sim.disk;
    return tide_world_dead(mirror->world) || mirror->store_lost ||
           disk->sync_error_per_million + disk->full_per_million + disk->write_error_per_million >
               0;
}

static void live(struct mirror *mirror, uint64_t until_us)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = mirror_open(mirror, &err);
    if (rc != TIDE_OK && !may_fail(mirror))
        tide_sim_fail(mirror->sim, "the engine did not open: %s %s", tide_status_name(rc),
                      err.text);
    while (rc == TIDE_OK && !mirror->store_lost && !tide_world_dead(mirror->world)) {
        uint64_t now_us = tide_world_now_us(mirror->world);
        if (now_us >= until_us)
            break;
        rc = tide_engine_wait(mirror->engine, (until_us - now_us) / 1000 + 1, &err);
        if (rc == TIDE_TIMEOUT)
            break;
        if (rc != TIDE_OK && !may_fail(mirror))
            tide_sim_fail(mirror->sim, "the engine stopped by itself: %s %s", tide_status_name(rc),
                          err.text);
        if (rc == TIDE_OK)
            rc = tide_world_sleep_until(mirror->world, tide_world_now_us(mirror->world) + 10000000,
                                        &mirror->operator_cancel);
    }
    mirror_close(mirror);
}

static void live_with_faults(struct mirror *mirror)
{
    tide_rng *rng = &mirror->rng;
    uint64_t until_us = tide_world_now_us(mirror->world) +
                        (1ull << tide_rng_below(rng, 10)) * 1000000 + tide_rng_below(rng, 1000000);
    uint64_t failed_before = tide_sim_disk_stats(mirror->sim).syncs_failed;
    if (tide_rng_chance(rng, 3, 4))
        tide_sim_crash_after(mirror->sim, 1 + tide_rng_below(rng, mirror->plan.crash_steps_max),
                             TIDE_SIM_CRASH_SEEDED);
    live(mirror, until_us);
    /* What a failed sync covered is lost for good, though it can still be read: the
     * machine goes down with it (E1.10). */
    if (tide_sim_disk_stats(mirror->sim).syncs_failed > failed_before)
        tide_sim_crash(mirror->sim, TIDE_SIM_CRASH_POWER);
    tide_sim_reboot(mirror->sim);
    mirror->totals.lives++;
    mirror_check_at_rest(mirror);
}

/* ---- the last life ---------------------------------------------------------------- */

/* Jobs that still have something to do, besides what stays owed and the
 * periodic ones. */
static const char unfinished[] =
    "SELECT (SELECT count(*) FROM job j JOIN kind k ON k.id = j.kind WHERE j.state <> 2"
    " AND k.name IN ('list', 'note', 'step', 'click', 'stubborn'))"
    " + (SELECT count(*) FROM job j JOIN kind k ON k.id = j.kind WHERE j.state <> 2"
    " AND k.name = 'fetch' AND NOT (j.cycle IS NULL AND j.state < 2"
    " AND json_extract(j.payload, '$.items[0]') IN (SELECT item FROM bad WHERE state = 2)))"
    " + (SELECT count(*) FROM stream WHERE ordinal < ordinal_next)";

static tide_status retry_failed(struct mirror *mirror)
{
    uint64_t id = 1;
    tide_status rc = TIDE_OK;
    for (int i = 0; rc == TIDE_OK && id != 0 && i < 1000; i++) {
        rc = mirror_sql(mirror, "SELECT coalesce(min(id), 0) FROM job WHERE state IN (3, 4)", &id);
        if (rc == TIDE_OK && id != 0)
            rc = tide_retry_job(mirror->engine, id, NULL);
    }
    return rc;
}

/* For the report of a world that does not come to rest. */
static tide_status show_left(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct mirror *mirror = arg;
    sqlite3_stmt *stmt = NULL;
    (void)err;
    (void)sqlite3_prepare_v2(
        tide_transaction_sqlite(transaction),
        "SELECT j.id, k.name, j.account, j.state, j.open_deps, j.attempts, j.cycle, j.not_before,"
        " d.error, substr(j.payload, 1, 60), (SELECT group_concat(needs) FROM dep WHERE job = j.id)"
        " FROM job j JOIN kind k ON k.id = j.kind LEFT JOIN detail d ON d.job = j.id"
        " WHERE j.state <> 2 ORDER BY j.id LIMIT 12",
        -1, &stmt, NULL);
    (void)fprintf(stderr, "server time %" PRIu64 ", wall %" PRIu64 ", unfinished:\n",
                  tide_sim_net_unix_ms(mirror->sim), tide_world_now_unix_ms(mirror->world));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        uint64_t id = (uint64_t)sqlite3_column_int64(stmt, 0);
        const struct tide_tracked *tracked = tide_tracker_find(mirror->engine->tracker, id);
        (void)fprintf(stderr, "  window=%d", tracked == NULL ? -1 : (int)tracked->state);
        tide_sim_ledger_row(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return TIDE_OK;
}

static bool settled(struct mirror *mirror, uint64_t *left_out)
{
    uint64_t since = 0;
    /* The feed first: what its last step enqueued is there when it has moved. */
    if (mirror_sql(mirror, "SELECT min(since) FROM mirror_feed", &since) != TIDE_OK ||
        mirror_sql(mirror, unfinished, left_out) != TIDE_OK)
        return false;
    return *left_out == 0 &&
           since > mirror->plan.provider[0].start_unix_ms + mirror->plan.provider[0].grow_ms + 1;
}

/* While the clock was wrong, times far ahead were written; what waits for them
 * is called by hand, as a person would do who sees the clock set right. */
static void help_after_jumps(struct mirror *mirror)
{
    uint64_t id = 1;
    char sql[300];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(min(id), 0) FROM job WHERE state = 0 AND not_before > %" PRIu64
                   " AND coalesce(json_extract(payload, '$.items[0]'), '') NOT IN"
                   " (SELECT item FROM bad WHERE state = 2)",
                   tide_world_now_unix_ms(mirror->world) + 3600000);
    while (id != 0 && mirror_sql(mirror, sql, &id) == TIDE_OK)
        if (id != 0 && tide_retry_job(mirror->engine, id, NULL) != TIDE_OK)
            break;
}

/* A schedule that fired while the clock was far ahead waits until the clock is there again
 * (schedule.h SCH2).  A person who sees that runs the command by hand. */
static void follow_by_hand(struct mirror *mirror)
{
    uint64_t ahead = 0;
    char sql[120];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM schedule WHERE name = 'follow' AND slot_last > %" PRIu64,
                   tide_world_now_unix_ms(mirror->world) + 300000);
    if (mirror_sql(mirror, sql, &ahead) != TIDE_OK || ahead == 0)
        return;
    if (mirror->plan.sim.wall_jump_every_steps == 0)
        tide_sim_fail(mirror->sim, "SIM11: a schedule is ahead of a clock that never jumped");
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++) {
        struct tide_spec spec = {.kind = mirror->kinds.changes,
                                 .account = mirror->accounts[i].id,
                                 .dedupe = "schedule:follow"};
        (void)tide_enqueue(mirror->engine, &spec, 1, NULL, NULL);
    }
}

/* What a person does once, when the world is calm again: takes back what the lives with
 * faults left halted, paused, canceled or failed.  From then on nothing may need that, see
 * check_unaided(). */
static void help(struct mirror *mirror)
{
    if (mirror->plan.sim.wall_jump_every_steps > 0)
        help_after_jumps(mirror);
    static const char *const kinds[] = {"list", "fetch", "note", "step"};
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++) {
        (void)tide_engine_resume(mirror->engine, mirror->accounts[i].id, NULL);
        (void)mirror_pause(mirror, mirror->accounts[i].name, NULL, false);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        (void)mirror_pause(mirror, NULL, kinds[i], false);
    (void)retry_failed(mirror);
}

/* SIM11: in a calm world no account is halted and no job fails or is canceled.  Bad items are
 * named and fail no job. */
static void check_unaided(struct mirror *mirror)
{
    uint64_t halted = 0;
    uint64_t ended = 0;
    if (mirror_sql(mirror, "SELECT count(*) FROM account WHERE halted <> 0", &halted) != TIDE_OK ||
        mirror_sql(mirror, "SELECT count(*) FROM job WHERE state IN (3, 4)", &ended) != TIDE_OK)
        return;
    if (halted + ended == 0)
        return;
    (void)tide_transact(mirror->engine, show_left, mirror, NULL);
    tide_sim_fail(mirror->sim,
                  "SIM11: %" PRIu64 " accounts are halted and %" PRIu64
                  " jobs failed in a calm world",
                  halted, ended);
}

/* A person who sees that it does not end runs the command again. */
static void start_again(struct mirror *mirror)
{
    tide_error err = {TIDE_OK, 0, ""};
    mirror_close(mirror);
    if (mirror_open(mirror, &err) != TIDE_OK)
        tide_sim_fail(mirror->sim, "the engine did not open again: %s", err.text);
}

static void live_to_the_end(struct mirror *mirror)
{
    tide_error err = {TIDE_OK, 0, ""};
    uint64_t left = 0;
    mirror->faults = false;
    mirror->disturbed_ms = tide_world_now_ms(mirror->world);
    tide_sim_faults(mirror->sim, false);
    /* An operator sets the clock. */
    tide_sim_wall_jump(mirror->sim, (int64_t)tide_sim_net_unix_ms(mirror->sim) -
                                        (int64_t)tide_world_now_unix_ms(mirror->world));
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++)
        tide_sim_provider_faults(mirror->accounts[i].provider, false);
    if (mirror_open(mirror, &err) != TIDE_OK)
        tide_sim_fail(mirror->sim, "the engine did not open in a calm world: %s", err.text);
    help(mirror); /* also when nothing is left to do: the account may be halted */
    for (int round = 0; !settled(mirror, &left); round++) {
        if (round == ROUNDS_MAX) {
            (void)tide_transact(mirror->engine, show_left, mirror, NULL);
            tide_sim_fail(mirror->sim, "%" PRIu64 " jobs and streams do not come to rest", left);
        }
        check_unaided(mirror);
        follow_by_hand(mirror);
        if (round % 10 == 9)
            start_again(mirror);
        tide_status rc = tide_engine_wait(mirror->engine, 60000, &err);
        if (rc != TIDE_OK && rc != TIDE_TIMEOUT)
            tide_sim_fail(mirror->sim, "the engine stopped in a calm world: %s", err.text);
        (void)tide_world_sleep_until(
            mirror->world, tide_world_now_us(mirror->world) + 5 * (uint64_t)MINUTE_US, NULL);
    }
    check_unaided(mirror);
    if (mirror_audit(mirror) != TIDE_OK)
        tide_sim_fail(mirror->sim, "the last audit failed");
    mirror_close(mirror);
    tide_sim_reboot(mirror->sim);
    mirror_check_at_rest(mirror);
    mirror_check_end(mirror);
}

enum { STEPS_MAX = 2000000 }; /* SIM12; the longest of 150 worlds took 133,000 */

struct mirror_totals mirror_run(const struct mirror_plan *plan)
{
    struct mirror *mirror = mirror_new(plan);
    uint64_t start_us = tide_world_now_us(mirror->world);
    for (uint32_t i = 0; i < plan->lives; i++)
        live_with_faults(mirror);
    live_to_the_end(mirror);
    struct mirror_totals totals = mirror->totals;
    totals.simulated_us = tide_world_now_us(mirror->world) - start_us;
    totals.steps = tide_sim_stats(mirror->sim).steps;
    if (totals.steps > STEPS_MAX)
        tide_sim_fail(mirror->sim, "SIM12: %" PRIu64 " steps: a thread spins", totals.steps);
    totals.crashes = tide_sim_stats(mirror->sim).crashes;
    totals.calls = tide_sim_net_stats(mirror->sim).calls;
    totals.strict_quotas = plan->strict_quota;
    mirror_free(mirror);
    return totals;
}
