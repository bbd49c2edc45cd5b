/* console_bench.c - measures search analytics: rows from the answer to the disk, reports over
 * sixteen months, and a backfill with one worker and with more.
 *
 *   rows      pages of 25,000 rows as the server writes them, parsed, stored day by
 *             day, synced; compared with jansson only parsing the same pages
 *   report    the best queries of all those days
 *   backfill  the real programs: 150 days of three pages, 200 ms a query, the parts of a
 *             batch one after another; with 1 worker, 3, and 10 with batches of 4
 *
 * CONSOLE_BENCH_ROWS: rows in all (10,000,000); CONSOLE_BENCH_BACKFILL=0: without the
 * programs.  Prints one JSON object per line: {"name","value","unit","ratio","to"}. */
#include "base/rng.h"
#include "cloud/searchconsole_rows.h"
#include "console/dates.h"
#include "console/store.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_ROWS = 25000, PAGES = 8, CUT_BYTES = 16 << 10 };

static void expect(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "console_bench: %s\n", what);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec time;
    (void)clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void report(const char *name, double value, const char *unit, double ratio, const char *to)
{
    (void)printf("{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\"", name, value, unit);
    if (to != NULL)
        (void)printf(", \"ratio\": %.3f, \"to\": \"%s\"", ratio, to);
    (void)printf("}\n");
    (void)fflush(stdout);
}

/* ---- rows ---- */

static const uint32_t dimensions =
    1u << TIDE_SC_QUERY | 1u << TIDE_SC_PAGE | 1u << TIDE_SC_COUNTRY | 1u << TIDE_SC_DEVICE;

/* Queries follow a power law over 60,000, pages over 5,000. */
static void page_make(tide_buf *out, uint64_t seed)
{
    static const char *const countries[] = {"deu", "fra", "usa", "gbr", "jpn", "bra"};
    static const char *const devices[] = {"DESKTOP", "MOBILE", "TABLET"};
    tide_rng rng = tide_rng_seeded(seed);
    (void)tide_buf_add_text(out, "{\"rows\":[");
    for (int i = 0; i < PAGE_ROWS; i++) {
        const uint64_t luck = tide_rng_below(&rng, 60000);
        const uint64_t query = luck * tide_rng_below(&rng, 60000) / 60000;
        const double clicks = (double)tide_rng_below(&rng, 50);
        const double impressions = clicks + 1 + (double)tide_rng_below(&rng, 500);
        (void)tide_buf_print(
            out,
            "%s{\"keys\":[\"how to choose number %" PRIu64 " online\",\"https://www.example.com/"
            "guide/article-%" PRIu64 "-lighthouse\",\"%s\",\"%s\"],\"clicks\":%.0f,"
            "\"impressions\":%.0f,\"ctr\":%.16g,\"position\":%.14g}",
            i == 0 ? "" : ",", query, tide_rng_below(&rng, 5000),
            countries[tide_rng_below(&rng, 6)], devices[tide_rng_below(&rng, 3)], clicks,
            impressions, clicks / impressions, 1 + (double)tide_rng_below(&rng, 100000) / 1777);
    }
    (void)tide_buf_add_text(out, "],\"responseAggregationType\":\"byPage\"}");
}

static tide_status take_row(const struct tide_sc_row *row, void *arg)
{
    return tide_console_page_add(arg, row);
}

static void forget_rows(void *arg)
{
    tide_console_page_clear(arg);
}

static uint64_t one_day(tide_console_store *store, tide_console_page *page, const tide_buf *answer,
                        int32_t day)
{
    const struct tide_sc_sink sink = {take_row, forget_rows, page};
    const struct tide_console_set set = {TIDE_SC_WEB, dimensions};
    const struct tide_console_day known = {.final = true, .totals = true, .position = 3};
    struct tide_sc_rows rows;
    struct tide_sc_page got;
    char date[16];
    struct tide_console_committed stored;
    tide_console_page_clear(page);
    tide_sc_rows_init(&rows, dimensions, &sink, tide_mem_heap());
    for (size_t at = 0; at < answer->bytes; at += CUT_BYTES) {
        const size_t some = answer->bytes - at < CUT_BYTES ? answer->bytes - at : CUT_BYTES;
        expect(tide_sc_rows_write(&rows, answer->data + at, some) == TIDE_OK, "a row is refused");
    }
    expect(tide_sc_rows_end(&rows, &got, NULL) == TIDE_OK, "the page is refused");
    tide_sc_rows_done(&rows);
    tide_date_format(day, date);
    const struct tide_console_part part = {.date = date, .asked = (uint64_t)day};
    tide_error err;
    if (tide_console_store_commit(store, &set, &part, &known, page, &stored, &err) != TIDE_OK)
        expect(false, err.text);
    return stored.rows;
}

static double library_cpu(const tide_buf *answers)
{
    const double before = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < PAGES; i++) {
        json_error_t error;
        json_t *value = json_loadb(answers[i].data, answers[i].bytes, 0, &error);
        expect(value != NULL, "jansson refuses a page");
        json_decref(value);
    }
    return (seconds(CLOCK_PROCESS_CPUTIME_ID) - before) / (PAGES * PAGE_ROWS);
}

static bool count_top(const struct tide_console_top *top, void *arg)
{
    (void)top;
    (*(int *)arg)++;
    return true;
}

static void bench_rows(const char *dir)
{
    const char *wanted = getenv("CONSOLE_BENCH_ROWS");
    const uint64_t total = wanted == NULL ? 10000000 : strtoull(wanted, NULL, 10);
    tide_world *world = NULL;
    tide_console_store *store = NULL;
    tide_console_page *page = NULL;
    tide_buf answers[PAGES];
    expect(tide_world_real_new(tide_mem_heap(), &world, NULL) == TIDE_OK, "world");
    const struct tide_console_store_options options = {
        .dir = dir, .site = "sc-domain:example.com", .world = world};
    expect(tide_console_store_open(&options, tide_mem_heap(), &store, NULL) == TIDE_OK, "store");
    expect(tide_console_page_new(store, &page, NULL) == TIDE_OK, "page");
    for (int i = 0; i < PAGES; i++) {
        tide_buf_init(&answers[i], tide_mem_heap(), 64 << 20);
        page_make(&answers[i], (uint64_t)i + 1);
    }
    const double library = library_cpu(answers);
    uint64_t rows = 0;
    int32_t day = 20000;
    const double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    const double wall = seconds(CLOCK_MONOTONIC);
    for (; rows < total; day++)
        rows += one_day(store, page, &answers[day % PAGES], day);
    const double cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    const double wall_s = seconds(CLOCK_MONOTONIC) - wall;
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    report("console_rows_per_core", (double)rows / cpu_s, "rows/s", cpu_s / (double)rows / library,
           "the CPU of jansson reading the same");
    report("console_rows_wall", (double)rows / wall_s, "rows/s", 0, NULL);
    report("console_rows_memory", (double)usage.ru_maxrss / 1024, "MB", 0, NULL);
    const struct tide_console_set set = {TIDE_SC_WEB, dimensions};
    int count = 0;
    const double before = seconds(CLOCK_MONOTONIC);
    expect(tide_console_store_top(store, &set, TIDE_SC_QUERY, NULL, NULL, 100, count_top, &count,
                                  NULL) == TIDE_OK &&
               count == 100,
           "the report");
    report("console_report", (seconds(CLOCK_MONOTONIC) - before) * 1000, "ms", 0, NULL);
    for (int i = 0; i < PAGES; i++)
        tide_buf_done(&answers[i]);
    tide_console_page_free(page);
    (void)tide_console_store_close(store, NULL);
    tide_world_real_free(world);
}

/* ---- the programs ---- */

static void run(const char *const *argv, const char *out)
{
    const pid_t pid = fork();
    if (pid == 0) {
        if (freopen(out, "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(126);
        (void)execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int status = 0;
    expect(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, argv[0]);
}

static pid_t start_cloud(const char *program, char origin[128])
{
    int ends[2];
    expect(pipe(ends) == 0, "pipe");
    const pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)execl(program, program, "--listen", "127.0.0.1:0", "--quiet", "--quota", "off",
                    "--latency", "200", "--batch-serial", "--mailbox", "ada@example.com=1",
                    "--token", "tok=ada@example.com", "--site",
                    "sc-domain:example.com=ada@example.com,rows=2500", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    expect(lines != NULL && fscanf(lines, "ready %127s", origin) == 1, "tidemark-cloud");
    return pid;
}

static double backfill(const char *program, const char *origin, const char *dir,
                       const char *workers, const char *batch)
{
    char home[256];
    char out[300];
    (void)snprintf(home, sizeof home, "%s/home-%s-%s", dir, workers, batch);
    (void)snprintf(out, sizeof out, "%s/out", dir);
    const char *add[] = {
        program,      "--home", home,       "account", "add", "console", "sc-domain:example.com",
        "--endpoint", origin,   "--bearer", "tok",     NULL};
    const char *fill[] = {program,
                          "--home",
                          home,
                          "--set",
                          "governor.console.site_units=0",
                          "console",
                          "backfill",
                          "sc-domain:example.com",
                          "--from",
                          "2026-05-01",
                          "--to",
                          "2026-09-27",
                          "--rows",
                          "1000",
                          "--no-totals",
                          "--quiet",
                          "--workers",
                          workers,
                          "--batch",
                          batch,
                          NULL};
    run(add, out);
    const double before = seconds(CLOCK_MONOTONIC);
    run(fill, out);
    return seconds(CLOCK_MONOTONIC) - before;
}

static void bench_backfill(const char *self, const char *dir)
{
    char tidemark[4096];
    char cloud[4096];
    char origin[128];
    const char *slash = strrchr(self, '/');
    const int base = slash == NULL ? 0 : (int)(slash - self);
    (void)snprintf(tidemark, sizeof tidemark, "%.*s/../src/cli/tidemark", base, self);
    (void)snprintf(cloud, sizeof cloud, "%.*s/../cloudbox/serve/tidemark-cloud", base, self);
    const pid_t server = start_cloud(cloud, origin);
    const double one = backfill(tidemark, origin, dir, "1", "1");
    const double three = backfill(tidemark, origin, dir, "3", "50");
    const double best = backfill(tidemark, origin, dir, "10", "4");
    (void)kill(server, SIGTERM);
    (void)waitpid(server, NULL, 0);
    report("console_backfill_1_worker", one, "s", 0, NULL);
    report("console_backfill_3_workers", three, "s", one / three, "one worker's pace");
    report("console_backfill_10_workers_4_parts", best, "s", one / best, "one worker's pace");
}

static void remove_tree(const char *dir)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
        _exit(127);
    }
    (void)waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    char dir[128];
    const char *tmp = getenv("TMPDIR");
    const char *programs = getenv("CONSOLE_BENCH_BACKFILL");
    (void)snprintf(dir, sizeof dir, "%.100s/console-bench-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    expect(mkdtemp(dir) != NULL, "mkdtemp");
    bench_rows(dir);
    if (programs == NULL || strcmp(programs, "0") != 0)
        bench_backfill(argv[0], dir);
    remove_tree(dir);
    return 0;
}
