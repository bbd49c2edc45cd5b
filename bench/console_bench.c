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
#include "bench.h"

#include "base/rng.h"
#include "cloud/searchconsole_rows.h"
#include "console/dates.h"
#include "console/store.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PAGE_ROWS = 25000, PAGES = 8, CUT_BYTES = 16 << 10 };

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
    const double before = cpu_s();
    for (int i = 0; i < PAGES; i++) {
        json_error_t error;
        json_t *value = json_loadb(answers[i].data, answers[i].bytes, 0, &error);
        expect(value != NULL, "jansson refuses a page");
        json_decref(value);
    }
    return (cpu_s() - before) / (PAGES * PAGE_ROWS);
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
    const double cpu = cpu_s();
    const double wall = now_s();
    for (; rows < total; day++)
        rows += one_day(store, page, &answers[day % PAGES], day);
    const double spent_s = cpu_s() - cpu;
    const double wall_s = now_s() - wall;
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    figure("console_rows_per_core", (double)rows / spent_s, "rows/s",
           spent_s / (double)rows / library, "the CPU of jansson reading the same");
    figure("console_rows_wall", (double)rows / wall_s, "rows/s", 0, NULL);
    figure("console_rows_memory", (double)usage.ru_maxrss / 1024, "MB", 0, NULL);
    const struct tide_console_set set = {TIDE_SC_WEB, dimensions};
    int count = 0;
    const double before = now_s();
    expect(tide_console_store_top(store, &set, TIDE_SC_QUERY, NULL, NULL, 100, count_top, &count,
                                  NULL) == TIDE_OK &&
               count == 100,
           "the report");
    figure("console_report", (now_s() - before) * 1000, "ms", 0, NULL);
    for (int i = 0; i < PAGES; i++)
        tide_buf_done(&answers[i]);
    tide_console_page_free(page);
    (void)tide_console_store_close(store, NULL);
    tide_world_real_free(world);
}

/* ---- the programs ---- */

static double backfill(const char *program, const char *origin, const char *dir,
                       const char *workers, const char *batch)
{
    char home[BENCH_PATH_BYTES + 32];
    char out[BENCH_PATH_BYTES + 8];
    (void)snprintf(home, sizeof home, "%s/home-%s-%s", dir, workers, batch);
    (void)snprintf(out, sizeof out, "%s/out", dir);
    const char *const add[] = {
        program,      "--home", home,       "account", "add", "console", "sc-domain:example.com",
        "--endpoint", origin,   "--bearer", "tok",     NULL};
    const char *const fill[] = {program,
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
    (void)run_program(add, out);
    return run_program(fill, out).wall_s;
}

static void bench_backfill(const char *self, const char *dir)
{
    char tidemark[BENCH_PATH_BYTES];
    char cloud[BENCH_PATH_BYTES];
    build_path(self, "src/cli/tidemark", tidemark);
    build_path(self, "cloudbox/serve/tidemark-cloud", cloud);
    const char *const args[] = {cloud,
                                "--listen",
                                "127.0.0.1:0",
                                "--quiet",
                                "--quota",
                                "off",
                                "--latency",
                                "200",
                                "--batch-serial",
                                "--mailbox",
                                "ada@example.com=1",
                                "--token",
                                "tok=ada@example.com",
                                "--site",
                                "sc-domain:example.com=ada@example.com,rows=2500",
                                NULL};
    struct server server = server_start(args);
    const double one = backfill(tidemark, server.url, dir, "1", "1");
    const double three = backfill(tidemark, server.url, dir, "3", "50");
    const double best = backfill(tidemark, server.url, dir, "10", "4");
    (void)server_stop(&server);
    figure("console_backfill_1_worker", one, "s", 0, NULL);
    figure("console_backfill_3_workers", three, "s", one / three, "one worker's pace");
    figure("console_backfill_10_workers_4_parts", best, "s", one / best, "one worker's pace");
}

int main(int argc, char **argv)
{
    (void)argc;
    char dir[BENCH_PATH_BYTES];
    const char *programs = getenv("CONSOLE_BENCH_BACKFILL");
    dir_make(dir);
    bench_rows(dir);
    if (programs == NULL || strcmp(programs, "0") != 0)
        bench_backfill(argv[0], dir);
    dir_remove(dir);
    return 0;
}
