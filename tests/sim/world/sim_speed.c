/* sim_speed - what the simulation costs.
 *
 *     sim_speed [SECONDS]
 *
 * Prints one JSON object per line; times are seconds of processor time. */
#include "sim.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>

struct load {
    tide_sim *sim;
    tide_world *world;
    tide_lock *lock;
    uint64_t rounds;
};

/* Of the processor, not of the wall: machines that run simulations are busy. */
static double cpu_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void lock_and_drop(void *arg)
{
    struct load *load = arg;
    for (uint64_t i = 0; i < load->rounds; i++) {
        tide_lock_take(load->world, load->lock);
        tide_lock_drop(load->world, load->lock);
    }
}

static double run_threads(uint32_t threads_count, uint64_t rounds, uint32_t yield_permille,
                          bool any_cpu, struct tide_sim_stats *stats_out)
{
    enum { THREADS_MAX = 64 };
    const struct tide_sim_options options = {.yield_permille = yield_permille, .any_cpu = any_cpu};
    struct load load = {.rounds = rounds};
    tide_thread *threads[THREADS_MAX] = {NULL};
    load.sim = tide_sim_new(1, &options);
    load.world = tide_sim_world(load.sim);
    (void)tide_lock_new(load.world, &load.lock);
    double start_s = cpu_s();
    for (uint32_t i = 0; i < threads_count; i++)
        (void)tide_world_thread(load.world, "load", lock_and_drop, &load, &threads[i], NULL);
    for (uint32_t i = 0; i < threads_count; i++)
        tide_world_join(load.world, threads[i]);
    double took_s = cpu_s() - start_s;
    *stats_out = tide_sim_stats(load.sim);
    tide_lock_free(load.world, load.lock);
    tide_sim_free(load.sim);
    return took_s;
}

static void measure_threads(uint64_t rounds)
{
    static const uint32_t counts[] = {2, 8, 32};
    struct tide_sim_stats stats;
    double alone_s = run_threads(1, rounds, 1, false, &stats);
    double step_ns = alone_s * 1e9 / (double)stats.steps;
    for (size_t pinned = 0; pinned < 2; pinned++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            double took_s =
                run_threads(counts[i], rounds / counts[i] / 4, 300, pinned == 0, &stats);
            double switches_ns = took_s * 1e9 - step_ns * (double)stats.steps;
            printf("{\"test\":\"threads\",\"threads\":%" PRIu32 ",\"pinned\":%s,\"steps\":%" PRIu64
                   ",\"steps_per_s\":%.0f,\"step_ns\":%.0f,\"switches\":%" PRIu64
                   ",\"switch_ns\":%.0f}\n",
                   counts[i], pinned ? "true" : "false", stats.steps, (double)stats.steps / took_s,
                   step_ns, stats.switches, switches_ns / (double)stats.switches);
        }
    }
}

static void measure_commits(uint64_t commits)
{
    tide_sim *sim = tide_sim_new(1, NULL);
    tide_world *world = tide_sim_world(sim);
    sqlite3 *db = NULL;
    if (sqlite3_open_v2("/speed.db", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        tide_world_vfs(world)) != SQLITE_OK)
        tide_sim_fail(sim, "cannot open");
    (void)sqlite3_exec(db,
                       "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                       "CREATE TABLE t(id INTEGER PRIMARY KEY, text TEXT)",
                       NULL, NULL, NULL);
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(db, "INSERT INTO t(text) VALUES('some text or other')", -1, &stmt,
                             NULL);
    double start_s = cpu_s();
    uint64_t start_us = tide_world_now_us(world);
    for (uint64_t i = 0; i < commits; i++) {
        (void)sqlite3_step(stmt);
        (void)sqlite3_reset(stmt);
    }
    double took_s = cpu_s() - start_s;
    printf("{\"test\":\"commits\",\"commits\":%" PRIu64 ",\"per_s\":%.0f,\"steps\":%" PRIu64
           ",\"steps_per_s\":%.0f,\"simulated_s\":%.1f}\n",
           commits, (double)commits / took_s, tide_sim_stats(sim).steps,
           (double)tide_sim_stats(sim).steps / took_s,
           (double)(tide_world_now_us(world) - start_us) / 1e6);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    tide_sim_free(sim);
}

static void measure_worlds(uint64_t worlds)
{
    double start_s = cpu_s();
    for (uint64_t seed = 0; seed < worlds; seed++)
        tide_sim_free(tide_sim_new(seed, NULL));
    printf("{\"test\":\"worlds\",\"per_s\":%.0f}\n", (double)worlds / (cpu_s() - start_s));
}

int main(int argc, char **argv)
{
    uint64_t seconds = 1;
    if (argc > 1 && !tide_text_to_u64(tide_text_of(argv[1]), &seconds))
        return 2;
    measure_threads(seconds * 2000000);
    measure_commits(seconds * 20000);
    measure_worlds(seconds * 1000);
    return 0;
}
