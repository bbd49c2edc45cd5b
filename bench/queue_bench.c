/* queue_bench.c - the engine as a contestant of script/bench queue, on either database,
 * through tidemark.h only.
 *
 *     queue_bench enqueue LEDGER JOBS DEDUPE               jobs/s
 *     queue_bench drain   LEDGER JOBS WORKERS PROCESSES    jobs/s
 *     queue_bench latency LEDGER SAMPLES same|other        ms: p50 p99
 *     queue_bench idle    LEDGER SECONDS                   "ready", then % of a core
 *
 * LEDGER is postgres://... or a directory.  On PostgreSQL each process has a state
 * directory of its own below $TMPDIR.  Figures go to stdout, one line; bench/queue/run.sh
 * compares them with those of the peers. */
#include "engine_tools.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PROCESSES_MAX = 8,
    SAMPLES_MAX = 100000,
    WARM_UP = 20,
    LOOK_US = 500,
    GIVE_UP_S = 120,
};

static char dir[BENCH_PATH_BYTES]; /* of this process */

/* ---- the engine --------------------------------------------------------------------- */

static bool is_shared(const char *ledger)
{
    return strncmp(ledger, "postgres", 8) == 0;
}

static tide_engine *engine_at(const char *ledger, uint32_t workers)
{
    struct tide_engine_options options = {
        .state_dir = ledger, .workers = workers, .no_control_socket = true};
    if (is_shared(ledger)) {
        dir_make(dir);
        options.state_dir = dir;
        options.ledger = ledger;
    }
    return engine_open(&options);
}

static void engine_end(tide_engine *engine)
{
    engine_close(engine);
    if (dir[0] != '\0')
        dir_remove(dir);
}

/* ---- enqueue ------------------------------------------------------------------------- */

static int enqueue_all(const char *ledger, size_t jobs, bool dedupe)
{
    tide_engine *engine = engine_at(ledger, 1);
    uint32_t kind = engine_kind(engine, &kind_none);
    uint64_t start_us = now_us();
    enqueue_many(engine, kind, jobs, dedupe);
    (void)printf("%.1f\n", (double)jobs * 1e6 / (double)(now_us() - start_us));
    engine_end(engine);
    return 0;
}

/* ---- drain ----------------------------------------------------------------------------- */

/* Shared by all processes of a drain. */
struct board {
    _Atomic uint64_t done[PROCESSES_MAX];
    _Atomic uint32_t ready;
    _Atomic bool go, over;
};

static void drain_process(const char *ledger, uint32_t workers, struct board *board, size_t index)
{
    tide_engine *engine = engine_at(ledger, workers);
    (void)engine_kind(engine, &kind_none);
    board->ready++;
    while (!board->go)
        nap_us(LOOK_US);
    engine_start(engine);
    while (!board->over) {
        struct tide_progress progress;
        tide_engine_progress(engine, &progress);
        board->done[index] = progress.done;
        nap_us(LOOK_US);
    }
    engine_end(engine);
}

static uint64_t done_by_all(const struct board *board, size_t processes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < processes; i++)
        sum += board->done[i];
    return sum;
}

static bool child_ended(void)
{
    return waitpid(-1, NULL, WNOHANG) != 0;
}

/* From the start of the workers to the last committed `done`. */
static int drain(const char *ledger, size_t jobs, uint32_t workers, size_t processes)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        die("mmap", strerror(errno));
    for (size_t i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0)
            die("fork", strerror(errno));
        if (child == 0) {
            drain_process(ledger, workers, board, i);
            exit(0);
        }
    }
    while (board->ready < processes && !child_ended())
        nap_us(LOOK_US);
    uint64_t start_us = now_us();
    board->go = true;
    while (done_by_all(board, processes) < jobs) {
        if (child_ended() || now_us() - start_us > GIVE_UP_S * UINT64_C(1000000))
            die("drain", "not all jobs were done");
        nap_us(LOOK_US);
    }
    uint64_t took_us = now_us() - start_us;
    board->over = true;
    int failed = 0;
    int status = 0;
    while (wait(&status) > 0)
        failed |= status != 0;
    if (failed || done_by_all(board, processes) != jobs)
        die("drain", failed ? "a process failed" : "more was done than there was");
    (void)printf("%.1f\n", (double)jobs * 1e6 / (double)took_us);
    return 0;
}

/* ---- latency --------------------------------------------------------------------------- */

/* Shared by both processes. */
struct samples {
    struct bell bell;
    sem_t opened;
    uint64_t us[SAMPLES_MAX];
};

/* All threads are asleep before each. */
static void ring_all(tide_engine *engine, uint32_t kind, struct samples *samples, size_t count)
{
    for (size_t i = 0; i < count + WARM_UP; i++) {
        nap_us(5000);
        const uint64_t us = ring_once(engine, kind, &samples->bell);
        if (i >= WARM_UP)
            samples->us[i - WARM_UP] = us;
    }
}

static void ring_from_another(const char *ledger, const struct tide_kind *kind,
                              struct samples *samples, size_t count)
{
    semaphore_wait(&samples->opened);
    tide_engine *engine = engine_at(ledger, 1);
    ring_all(engine, engine_kind(engine, kind), samples, count);
    engine_end(engine);
}

static int latency(const char *ledger, size_t count, bool other)
{
    struct samples *samples =
        mmap(NULL, sizeof *samples, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (samples == MAP_FAILED || count > SAMPLES_MAX)
        die("latency", "no memory");
    bell_init(&samples->bell);
    (void)sem_init(&samples->opened, 1, 0);
    const struct tide_kind kind = bell_kind(&samples->bell);
    pid_t child = other ? fork() : 0;
    if (other && child == 0) {
        ring_from_another(ledger, &kind, samples, count);
        exit(0);
    }
    tide_engine *engine = engine_at(ledger, 4);
    uint32_t id = engine_kind(engine, &kind);
    engine_start(engine);
    int status = 0;
    if (other) {
        (void)sem_post(&samples->opened);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    } else {
        ring_all(engine, id, samples, count);
    }
    engine_end(engine);
    if (status != 0)
        die("latency", "the other process failed");
    (void)printf("%.4f %.4f\n", quantile_ms(samples->us, count, 500),
                 quantile_ms(samples->us, count, 990));
    return 0;
}

/* ---- idle -------------------------------------------------------------------------------- */

static int idle(const char *ledger, unsigned seconds)
{
    tide_engine *engine = engine_at(ledger, 4);
    (void)engine_kind(engine, &kind_none);
    engine_start(engine);
    (void)sleep(1);
    (void)printf("ready\n");
    (void)fflush(stdout);
    double cpu_before = cpu_s();
    uint64_t start_us = now_us();
    (void)sleep(seconds);
    double took_s = (double)(now_us() - start_us) / 1e6;
    (void)printf("%.4f\n", (cpu_s() - cpu_before) / took_s * 100);
    engine_end(engine);
    return 0;
}

/* ---- main -------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    const char *verb = argc > 3 ? argv[1] : "";
    if (strcmp(verb, "enqueue") == 0 && argc == 5)
        return enqueue_all(argv[2], number(argv[3], SIZE_MAX), strcmp(argv[4], "1") == 0);
    if (strcmp(verb, "drain") == 0 && argc == 6)
        return drain(argv[2], number(argv[3], SIZE_MAX), (uint32_t)number(argv[4], 1024),
                     number(argv[5], PROCESSES_MAX));
    if (strcmp(verb, "latency") == 0 && argc == 5)
        return latency(argv[2], number(argv[3], SAMPLES_MAX), strcmp(argv[4], "other") == 0);
    if (strcmp(verb, "idle") == 0 && argc == 4)
        return idle(argv[2], (unsigned)number(argv[3], 3600));
    (void)fprintf(stderr, "usage: queue_bench enqueue|drain|latency|idle LEDGER ...\n");
    return 2;
}
