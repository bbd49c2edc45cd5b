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
#include "tidemark.h"

#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SPECS = 5000, /* passed to the engine in one call */
    PROCESSES_MAX = 8,
    SAMPLES_MAX = 100000,
    WARM_UP = 20,
    LOOK_US = 500,
    GIVE_UP_S = 120,
};

static char dir[3000]; /* of this process */

/* ---- tools ------------------------------------------------------------------------ */

static uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

_Noreturn static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "queue_bench: %s: %s\n", what, why);
    exit(1);
}

static void must(tide_status rc, const char *what, const tide_error *err)
{
    if (rc != TIDE_OK)
        die(what, err->text[0] != '\0' ? err->text : tide_status_name(rc));
}

static void nap_us(long us)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static double cpu_seconds(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int number_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Of sorted samples; the share is in permille. */
static double quantile_ms(const uint64_t *samples_us, size_t count, size_t permille)
{
    size_t at = count * permille / 1000;
    return (double)samples_us[at < count ? at : count - 1] / 1000;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

/* ---- the engine --------------------------------------------------------------------- */

static bool is_shared(const char *ledger)
{
    return strncmp(ledger, "postgres", 8) == 0;
}

static tide_engine *engine_open(const char *ledger, uint32_t workers)
{
    struct tide_engine_options options = {
        .state_dir = ledger, .workers = workers, .no_control_socket = true};
    if (is_shared(ledger)) {
        const char *tmp = getenv("TMPDIR");
        (void)snprintf(dir, sizeof dir, "%s/queue_bench.XXXXXX", tmp != NULL ? tmp : "/tmp");
        if (mkdtemp(dir) == NULL)
            die(dir, strerror(errno));
        options.state_dir = dir;
        options.ledger = ledger;
    }
    tide_engine *engine = NULL;
    tide_error err = {.text = ""};
    must(tide_engine_open(&options, &engine, &err), "open", &err);
    return engine;
}

static void engine_close(tide_engine *engine)
{
    tide_error err = {.text = "a handler did not return"};
    must(tide_engine_close(engine), "close", &err);
    if (dir[0] != '\0')
        (void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void engine_start(tide_engine *engine)
{
    tide_error err = {.text = ""};
    must(tide_engine_start(engine, &err), "start", &err);
}

static tide_status nothing(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)context;
    (void)err;
    return TIDE_OK;
}

static uint32_t engine_kind(tide_engine *engine, const struct tide_kind *kind)
{
    uint32_t id = 0;
    tide_error err = {.text = ""};
    must(tide_engine_kind(engine, kind, &id, &err), "kind", &err);
    return id;
}

static const struct tide_kind none = {.name = "bench.none", .handler = nothing};

/* ---- enqueue ------------------------------------------------------------------------- */

static void enqueue_slice(tide_engine *engine, uint32_t kind, size_t first, size_t count,
                          bool dedupe)
{
    static struct tide_spec specs[SPECS];
    static char keys[SPECS][24];
    static char payloads[SPECS][32];
    tide_error err = {.text = ""};
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "message-%08zu", first + i);
        (void)snprintf(payloads[i], sizeof payloads[i], "{\"message\":%zu}", first + i);
        specs[i] = (struct tide_spec){
            .kind = kind, .dedupe = dedupe ? keys[i] : NULL, .payload = payloads[i]};
    }
    must(tide_enqueue(engine, specs, count, NULL, &err), "enqueue", &err);
}

static int enqueue(const char *ledger, size_t jobs, bool dedupe)
{
    tide_engine *engine = engine_open(ledger, 1);
    uint32_t kind = engine_kind(engine, &none);
    uint64_t start_us = now_us();
    for (size_t first = 0; first < jobs; first += SPECS)
        enqueue_slice(engine, kind, first, jobs - first < SPECS ? jobs - first : SPECS, dedupe);
    (void)printf("%.1f\n", (double)jobs * 1e6 / (double)(now_us() - start_us));
    engine_close(engine);
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
    tide_engine *engine = engine_open(ledger, workers);
    (void)engine_kind(engine, &none);
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
    engine_close(engine);
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

struct bell {
    sem_t rung; /* shared by both processes */
    sem_t opened;
    _Atomic uint64_t started_us;
    uint64_t samples_us[SAMPLES_MAX];
};

static tide_status ring(tide_job *job, void *context, tide_error *err)
{
    struct bell *bell = context;
    bell->started_us = now_us();
    (void)job;
    (void)err;
    (void)sem_post(&bell->rung);
    return TIDE_OK;
}

static void hear(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

/* From the call of tide_enqueue() to the first line of the handler, with all threads asleep
 * before. */
static void ring_all(tide_engine *engine, uint32_t kind, struct bell *bell, size_t samples)
{
    tide_error err = {.text = ""};
    for (size_t i = 0; i < samples + WARM_UP; i++) {
        nap_us(5000);
        uint64_t asked_us = now_us();
        must(tide_enqueue(engine, &(struct tide_spec){.kind = kind}, 1, NULL, &err), "enqueue",
             &err);
        hear(&bell->rung);
        if (i >= WARM_UP)
            bell->samples_us[i - WARM_UP] = bell->started_us - asked_us;
    }
}

static void ring_from_another(const char *ledger, const struct tide_kind *kind, struct bell *bell,
                              size_t samples)
{
    hear(&bell->opened);
    tide_engine *engine = engine_open(ledger, 1);
    ring_all(engine, engine_kind(engine, kind), bell, samples);
    engine_close(engine);
}

static int latency(const char *ledger, size_t samples, bool other)
{
    struct bell *bell =
        mmap(NULL, sizeof *bell, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bell == MAP_FAILED || samples > SAMPLES_MAX)
        die("latency", "no memory");
    (void)sem_init(&bell->rung, 1, 0);
    (void)sem_init(&bell->opened, 1, 0);
    struct tide_kind kind = {
        .name = "bench.ring", .handler = ring, .context = bell, .lane = TIDE_KIND_INTERACTIVE};
    pid_t child = other ? fork() : 0;
    if (other && child == 0) {
        ring_from_another(ledger, &kind, bell, samples);
        exit(0);
    }
    tide_engine *engine = engine_open(ledger, 4);
    uint32_t id = engine_kind(engine, &kind);
    engine_start(engine);
    int status = 0;
    if (other) {
        (void)sem_post(&bell->opened);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    } else {
        ring_all(engine, id, bell, samples);
    }
    engine_close(engine);
    if (status != 0)
        die("latency", "the other process failed");
    qsort(bell->samples_us, samples, sizeof bell->samples_us[0], number_order);
    (void)printf("%.4f %.4f\n", quantile_ms(bell->samples_us, samples, 500),
                 quantile_ms(bell->samples_us, samples, 990));
    return 0;
}

/* ---- idle -------------------------------------------------------------------------------- */

static int idle(const char *ledger, unsigned seconds)
{
    tide_engine *engine = engine_open(ledger, 4);
    (void)engine_kind(engine, &none);
    engine_start(engine);
    (void)sleep(1);
    (void)printf("ready\n");
    (void)fflush(stdout);
    double cpu_before = cpu_seconds();
    uint64_t start_us = now_us();
    (void)sleep(seconds);
    double took_s = (double)(now_us() - start_us) / 1e6;
    (void)printf("%.4f\n", (cpu_seconds() - cpu_before) / took_s * 100);
    engine_close(engine);
    return 0;
}

/* ---- main -------------------------------------------------------------------------------- */

static size_t number(const char *text, size_t max)
{
    size_t value = strtoul(text, NULL, 10);
    if (value == 0 || value > max)
        die(text, "not such a number");
    return value;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 3 ? argv[1] : "";
    if (strcmp(verb, "enqueue") == 0 && argc == 5)
        return enqueue(argv[2], number(argv[3], SIZE_MAX), strcmp(argv[4], "1") == 0);
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
