#include "sim_world.h"
#include "sim_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NO_STEP UINT64_MAX

enum {
    SECOND_US = 1000 * 1000,
};

/* ---- memory -------------------------------------------------------------- */

void *sim_alloc(size_t bytes)
{
    void *pointer = calloc(1, bytes);
    TIDE_ASSERT(pointer != NULL);
    return pointer;
}

void *sim_resize(void *old, size_t old_bytes, size_t new_bytes)
{
    char *pointer = realloc(old, new_bytes);
    TIDE_ASSERT(pointer != NULL);
    if (new_bytes > old_bytes)
        memset(pointer + old_bytes, 0, new_bytes - old_bytes);
    return pointer;
}

char *sim_copy_text(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = sim_alloc(bytes);
    memcpy(copy, text, bytes);
    return copy;
}

/* ---- the plan of faults -------------------------------------------------- */

/* Between low and high, small and large orders of magnitude alike. */
static uint64_t log_uniform(tide_rng *rng, uint64_t low, uint64_t high)
{
    uint64_t top = high;
    while (top / 2 > low && tide_rng_chance(rng, 3, 4))
        top /= 2;
    return low + tide_rng_below(rng, top - low + 1);
}

static uint64_t step_ahead(tide_sim *sim, uint32_t every_steps)
{
    if (every_steps == 0)
        return NO_STEP;
    return sim->stats.steps + 1 + tide_rng_below(&sim->order, 2ull * every_steps);
}

static void plan_next(tide_sim *sim)
{
    uint64_t next = sim->crash_step;
    next = sim->pause_step < next ? sim->pause_step : next;
    next = sim->wall_step < next ? sim->wall_step : next;
    next = sim->hiccup_step < next ? sim->hiccup_step : next;
    sim->next_step = next;
}

static void plan_crash(tide_sim *sim)
{
    const struct tide_sim_options *options = &sim->options;
    sim->crash_step = NO_STEP;
    sim->crash_asked = false;
    sim->crash_kind = options->crash_kind;
    if (options->crashes_max == 0 || sim->stats.crashes < options->crashes_max)
        sim->crash_step = step_ahead(sim, options->crash_every_steps);
    plan_next(sim);
}

static void plan_init(tide_sim *sim)
{
    plan_crash(sim);
    if (sim->options.crash_at_step != 0) {
        sim->crash_step = sim->options.crash_at_step;
        sim->crash_asked = true;
    }
    sim->pause_step = step_ahead(sim, sim->options.pause_every_steps);
    sim->wall_step = step_ahead(sim, sim->options.wall_jump_every_steps);
    sim->hiccup_step = step_ahead(sim, sim->options.hiccup_every_steps);
    plan_next(sim);
}

void sim_plan_run(tide_sim *sim)
{
    const uint64_t step = sim->stats.steps;
    const bool faults = sim->faults && !sim->dead;
    const bool crash = step >= sim->crash_step;
    const bool pause = step >= sim->pause_step;
    const bool wall = step >= sim->wall_step;
    const bool hiccup = step >= sim->hiccup_step;

    /* Armed again first: a hiccup lets others run, who come here too. */
    if (pause)
        sim->pause_step = step_ahead(sim, sim->options.pause_every_steps);
    if (wall)
        sim->wall_step = step_ahead(sim, sim->options.wall_jump_every_steps);
    if (hiccup)
        sim->hiccup_step = step_ahead(sim, sim->options.hiccup_every_steps);
    plan_next(sim);

    if (pause && faults)
        tide_sim_pause(sim, log_uniform(&sim->order, SECOND_US, 7200ull * SECOND_US));
    if (wall && faults) {
        int64_t jump_ms = (int64_t)log_uniform(&sim->order, 1000, 30ull * 86400 * 1000);
        tide_sim_wall_jump(sim, tide_rng_chance(&sim->order, 1, 2) ? jump_ms : -jump_ms);
    }
    if (crash) {
        bool asked = sim->crash_asked;
        tide_sim_crash_kind kind = sim->crash_kind;
        plan_crash(sim);
        if (asked || faults)
            tide_sim_crash(sim, kind);
    }
    if (hiccup && faults && !sim->dead) {
        uint64_t still_us = log_uniform(&sim->order, 1000, 5 * SECOND_US);
        sim->stats.hiccups++;
        sim_trace_add(sim, SIM_OP_HICCUP, still_us, NULL);
        (void)sim_block(sim, SIM_WAIT_STILL, NULL, 0, sim->now_us + still_us, NULL);
    }
}

bool sim_fault(tide_sim *sim, tide_rng *rng, uint32_t per_million)
{
    return per_million > 0 && sim->faults && !sim->dead &&
           tide_rng_chance(rng, per_million, 1000000);
}

void tide_sim_faults(tide_sim *sim, bool on)
{
    sim->faults = on;
}

void tide_sim_pause(tide_sim *sim, uint64_t pause_us)
{
    sim->now_us += pause_us;
    sim->stats.pauses++;
    sim_trace_add(sim, SIM_OP_PAUSE, pause_us, NULL);
}

void tide_sim_wall_jump(tide_sim *sim, int64_t jump_ms)
{
    sim->wall_offset_ms += jump_ms;
    sim->stats.wall_jumps++;
    sim_trace_add(sim, SIM_OP_WALL, (uint64_t)jump_ms, NULL);
}

void tide_sim_freeze(tide_sim *sim, const char *name_prefix, uint64_t freeze_us)
{
    size_t bytes = strlen(name_prefix);
    for (size_t i = 0; i < sim->threads_count; i++)
        if (strncmp(sim->threads[i]->name, name_prefix, bytes) == 0)
            sim->threads[i]->frozen_until_us = sim->now_us + freeze_us;
}

/* ---- crash and restart --------------------------------------------------- */

void tide_sim_crash(tide_sim *sim, tide_sim_crash_kind kind)
{
    if (sim->dead)
        return;
    if (kind == TIDE_SIM_CRASH_SEEDED)
        kind = tide_rng_chance(&sim->order, 2, 3) ? TIDE_SIM_CRASH_POWER : TIDE_SIM_CRASH_KILL;
    sim->dead = true;
    sim->death = kind;
    sim->stats.crashes++;
    sim_trace_add(sim, SIM_OP_CRASH, (uint64_t)kind,
                  kind == TIDE_SIM_CRASH_POWER ? "power" : "kill");
    sim_wake_dead(sim);
}

void tide_sim_crash_after(tide_sim *sim, uint64_t steps, tide_sim_crash_kind kind)
{
    plan_crash(sim);
    if (steps == 0)
        return;
    sim->crash_step = sim->stats.steps + steps;
    sim->crash_kind = kind;
    sim->crash_asked = true;
    plan_next(sim);
}

static void expect_alone(tide_sim *sim)
{
    if (sim->current != sim->main || sim->threads_count != 1)
        tide_sim_fail(sim, "SWLD5: threads were not joined");
    if (sim->main->locks_held != 0)
        tide_sim_fail(sim, "SWLD5: main still holds a lock");
}

void tide_sim_reboot(tide_sim *sim)
{
    expect_alone(sim);
    sim_disk_reboot(sim->disk, sim->dead && sim->death == TIDE_SIM_CRASH_POWER);
    sim_net_reboot(sim->net);
    sim->now_us += log_uniform(&sim->order, 10 * 1000, 600ull * SECOND_US);
    sim->dead = false;
    sim->life++;
    sim->main->dead_steps = 0;
    plan_crash(sim);
    sim_trace_add(sim, SIM_OP_REBOOT, sim->life, NULL);
}

uint32_t tide_sim_life(tide_sim *sim)
{
    return sim->life;
}

/* ---- watching for a baton that got stuck --------------------------------- */

/* A thread that blocks for real (a mutex inside SQLite, because two threads
 * share a connection) keeps the baton forever.  Only a watchdog outside can report it. */
static void *watchdog_main(void *arg)
{
    tide_sim *sim = arg;
    uint64_t seen = 0;
    uint32_t silent_s = 0;

    (void)pthread_mutex_lock(&sim->watchdog_lock);
    while (!sim->watchdog_ends) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 1;
        (void)pthread_cond_timedwait(&sim->watchdog_wake, &sim->watchdog_lock, &until);
        uint64_t steps = __atomic_load_n(&sim->stats.steps, __ATOMIC_RELAXED);
        silent_s = steps == seen ? silent_s + 1 : 0;
        seen = steps;
        if (!sim->watchdog_ends && silent_s >= sim->options.silence_s_max)
            tide_sim_fail(sim,
                          "no step for %" PRIu32 " s: the running thread is stuck outside "
                          "the world",
                          silent_s);
    }
    (void)pthread_mutex_unlock(&sim->watchdog_lock);
    return NULL;
}

static void watchdog_start(tide_sim *sim)
{
    (void)pthread_mutex_init(&sim->watchdog_lock, NULL);
    (void)pthread_cond_init(&sim->watchdog_wake, NULL);
    TIDE_ASSERT(pthread_create(&sim->watchdog, NULL, watchdog_main, sim) == 0);
}

static void watchdog_stop(tide_sim *sim)
{
    (void)pthread_mutex_lock(&sim->watchdog_lock);
    sim->watchdog_ends = true;
    (void)pthread_cond_signal(&sim->watchdog_wake);
    (void)pthread_mutex_unlock(&sim->watchdog_lock);
    (void)pthread_join(sim->watchdog, NULL);
    (void)pthread_cond_destroy(&sim->watchdog_wake);
    (void)pthread_mutex_destroy(&sim->watchdog_lock);
}

/* ---- create and free ---------------------------------------------------- */

/* One cpu makes handing over a plain context switch: waking a thread on
 * another cpu costs several times as much. */
static void pin(tide_sim *sim)
{
    cpu_set_t one;
    int cpu = sched_getcpu();
    if (sim->options.any_cpu || cpu < 0)
        return;
    if (sched_getaffinity(0, sizeof sim->cpus, &sim->cpus) != 0)
        return;
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    sim->pinned = sched_setaffinity(0, sizeof one, &one) == 0;
}

static void options_complete(struct tide_sim_options *options)
{
    if (options->cost_us_max == 0)
        options->cost_us_max = 20;
    if (options->yield_permille == 0)
        options->yield_permille = 300;
    if (options->dead_steps_max == 0)
        options->dead_steps_max = 20000;
    if (options->threads_max == 0)
        options->threads_max = 256;
    if (options->silence_s_max == 0)
        options->silence_s_max = 120;
    if (options->start_unix_ms == 0)
        options->start_unix_ms = 1772323200000;
    if (options->disk.bytes_max == 0)
        options->disk.bytes_max = 1ull << 30;
    if (options->disk.sync_us_max == 0)
        options->disk.sync_us_max = 3000;
    if (options->net.latency_us_max == 0)
        options->net.latency_us_max = 40000;
}

tide_sim *tide_sim_new(uint64_t seed, const struct tide_sim_options *options)
{
    tide_sim *sim = sim_alloc(sizeof *sim);
    sim->world.ops = &sim_ops;
    sim->seed = seed;
    if (options != NULL)
        sim->options = *options;
    options_complete(&sim->options);

    /* Streams of their own: what one part draws does not move the others. */
    tide_rng seeds = tide_rng_seeded(seed);
    sim->order = tide_rng_seeded(tide_rng_next(&seeds));
    sim->secrets = tide_rng_seeded(tide_rng_next(&seeds));
    sim->disk_rng = tide_rng_seeded(tide_rng_next(&seeds));
    sim->net_rng = tide_rng_seeded(tide_rng_next(&seeds));
    /* jansson takes the first seed of a process and keeps it; its objects
     * iterate in order of insertion, so later worlds do not notice. */
    json_object_seed((size_t)(seed | 1));

    sim->life = 1;
    sim->faults = true;
    sim->now_us = 1000 * SECOND_US;
    sim->wall_offset_ms = (int64_t)sim->options.start_unix_ms - (int64_t)(sim->now_us / 1000);
    sim_trace_init(&sim->trace);
    sim_sched_init(sim);
    sim->disk = sim_disk_new(sim);
    sim->net = sim_net_new(sim);
    plan_init(sim);
    pin(sim);
    watchdog_start(sim);
    return sim;
}

void tide_sim_free(tide_sim *sim)
{
    if (sim == NULL)
        return;
    expect_alone(sim);
    watchdog_stop(sim);
    if (sim->pinned)
        (void)sched_setaffinity(0, sizeof sim->cpus, &sim->cpus);
    sim_net_free(sim->net);
    sim_disk_free(sim->disk);
    sim_sched_done(sim);
    sim_trace_done(&sim->trace);
    free(sim);
}

tide_world *tide_sim_world(tide_sim *sim)
{
    return &sim->world;
}

tide_log *tide_sim_log(void)
{
    static tide_log log;
    if (getenv("TIDE_SIM_LOG") == NULL)
        return NULL;
    tide_log_init(&log, TIDE_LOG_DEBUG, TIDE_LOG_PLAIN, "-", tide_log_to_file, stderr);
    return &log;
}

tide_rng tide_sim_rng(tide_sim *sim)
{
    return tide_rng_seeded(tide_rng_next(&sim->order));
}

uint64_t tide_sim_seed(tide_sim *sim)
{
    return sim->seed;
}

struct tide_sim_stats tide_sim_stats(tide_sim *sim)
{
    return sim->stats;
}

/* Half of the worlds do without a given fault: too many at once hide each
 * other's effects. */
static uint32_t sometimes(tide_rng *rng, uint32_t high)
{
    return tide_rng_chance(rng, 1, 2) ? 0 : (uint32_t)log_uniform(rng, 1, high);
}

struct tide_sim_options tide_sim_options_seeded(uint64_t seed)
{
    tide_rng rng = tide_rng_seeded(seed ^ 0x736565646564u);
    struct tide_sim_options options = {
        .cost_us_max = (uint32_t)log_uniform(&rng, 1, 100),
        .yield_permille = (uint32_t)log_uniform(&rng, 20, 1000),
        .unfair = tide_rng_chance(&rng, 1, 3),
        .spurious_permille = sometimes(&rng, 50),
        .pause_every_steps = tide_rng_chance(&rng, 1, 3) ? 20000 : 0,
        .wall_jump_every_steps = tide_rng_chance(&rng, 1, 3) ? 10000 : 0,
        .hiccup_every_steps = tide_rng_chance(&rng, 1, 2) ? 2000 : 0,
    };
    options.disk.sync_us_max = (uint32_t)log_uniform(&rng, 100, 50000);
    options.net.latency_us_max = (uint32_t)log_uniform(&rng, 1000, 500000);
    options.net.skew_ms_max = sometimes(&rng, 300000);
    options.net.refuse_permille = sometimes(&rng, 20);
    options.net.loss_permille = sometimes(&rng, 10);
    options.net.reset_permille = sometimes(&rng, 30);
    options.net.stall_permille = sometimes(&rng, 10);
    options.net.truncate_permille = sometimes(&rng, 20);
    options.net.garbage_permille = sometimes(&rng, 20);
    options.net.duplicate_permille = sometimes(&rng, 20);
    options.net.outage_per_million = sometimes(&rng, 1000);
    options.net.slow_permille = sometimes(&rng, 30);
    return options;
}
