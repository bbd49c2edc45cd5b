/* days.c - a stream with a frontier.
 *
 * Forty days of a diary are copied, five pages a day.  Pages are copied in parallel and end in
 * any order, some at the second try, so later days are often complete before earlier ones.  The
 * stream's cursor is at the last day before which nothing is missing: up to that day a reader
 * may rely on the data.  The program checks that in the table each time.
 *
 *     days DIR [--ledger URL]
 *
 * Kill it anywhere and run it again: no day is opened twice, no page is copied twice. */
#include "own_table.h"

#include <stdio.h>
#include <string.h>
#include <tidemark.h>
#include <unistd.h>

enum { DAYS = 40, PAGES = 5, AHEAD = 16 };

struct page {
    int day, page;
};

static tide_status write_page(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct page *page = arg;
    char sql[96];
    (void)snprintf(sql, sizeof sql, "INSERT INTO diary VALUES (%d, %d)", page->day, page->page);
    return own_sql(transaction, sql, NULL, err);
}

static tide_status copy_page(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    struct page *page = tide_job_memory(job, sizeof *page);
    if (page == NULL || sscanf(tide_job_payload(job).data, "{\"day\":%d,\"page\":%d}", &page->day,
                               &page->page) != 2)
        return tide_error_set(err, TIDE_INVALID, "not a page");
    tide_status rc = tide_job_sleep(job, (uint64_t)(page->day * 7 + page->page * 13) % 23);
    if (rc != TIDE_OK)
        return rc;
    if (page->day % 9 == 4 && page->page == 2 && tide_job_attempt(job) == 1)
        return tide_error_set(err, TIDE_TIMEOUT, "the ink was wet"); /* retried automatically */
    return tide_job_effect(job, write_page, page, err);
}

/* A day is a cycle: its pages, and the text that the cursor takes when it and all days before
 * it are finished.  The cycle and its jobs are written together or not at all. */
static tide_status open_day(tide_engine *engine, uint64_t stream, uint32_t kind, int day,
                            tide_error *err)
{
    struct tide_spec specs[PAGES] = {{0}};
    char payloads[PAGES][48];
    char start[16];
    char end[16];
    for (int page = 0; page < PAGES; page++) {
        (void)snprintf(payloads[page], sizeof payloads[page], "{\"day\":%d,\"page\":%d}", day,
                       page + 1);
        specs[page].kind = kind;
        specs[page].payload = payloads[page];
    }
    (void)snprintf(start, sizeof start, "day %02d", day - 1);
    (void)snprintf(end, sizeof end, "day %02d", day);
    return tide_cycle_open(engine, stream, start, end, specs, PAGES, NULL, err);
}

static tide_status make_table(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    return own_sql(
        transaction,
        "CREATE TABLE IF NOT EXISTS diary (day integer, page integer, PRIMARY KEY (day, page))",
        NULL, err);
}

struct look {
    int days; /* up to here */
    long long pages;
};

static tide_status count_pages(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct look *look = arg;
    char sql[96];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM diary WHERE day <= %d", look->days);
    return own_sql(transaction, sql, &look->pages, err);
}

/* The promise: all pages of all days up to the cursor are there.  `shown` is the value printed
 * last. */
static tide_status look(tide_engine *engine, const struct tide_stream_state *state,
                        struct look *shown, tide_error *err)
{
    struct look upto = {.days = 0};
    struct look all = {.days = DAYS};
    (void)sscanf(state->cursor, "day %d", &upto.days);
    tide_status rc = tide_transact(engine, count_pages, &upto, err);
    if (rc == TIDE_OK)
        rc = tide_transact(engine, count_pages, &all, err);
    if (rc == TIDE_OK && upto.pages != (long long)upto.days * PAGES)
        rc = tide_error_set(err, TIDE_BUG, "the cursor says %s, but %lld pages are there",
                            state->cursor, upto.pages);
    if (rc == TIDE_OK && (shown->days != upto.days || shown->pages != all.pages))
        (void)printf("complete up to %s; %lld pages beyond it\n",
                     state->cursor[0] != '\0' ? state->cursor : "nothing", all.pages - upto.pages);
    *shown = (struct look){upto.days, all.pages};
    return rc;
}

static tide_status copy_diary(tide_engine *engine, uint32_t kind, tide_error *err)
{
    uint64_t stream = 0;
    struct tide_stream_state state;
    struct look shown = {-1, 0};
    tide_status rc = tide_transact(engine, make_table, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_stream_open(engine, 0, "diary", "", &stream, err);
    while (rc == TIDE_OK) {
        rc = tide_stream_state(engine, stream, &state, err);
        if (rc == TIDE_OK)
            rc = look(engine, &state, &shown, err);
        if (rc != TIDE_OK || state.cycles_finished == DAYS)
            return rc;
        /* Opens some days ahead of the cursor, so that one slow page does not stop everything. */
        while (rc == TIDE_OK && state.cycles_opened < DAYS &&
               state.cycles_opened - state.cycles_finished < AHEAD)
            rc = open_day(engine, stream, kind, (int)++state.cycles_opened, err);
        tide_status waited = rc == TIDE_OK ? tide_engine_wait(engine, 50, err) : rc;
        if (waited == TIDE_OK) /* another process has the rest, or we have to open more */
            (void)usleep(10000);
        else if (waited != TIDE_TIMEOUT)
            rc = waited;
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct tide_engine_options options = {.state_dir = argc > 1 ? argv[1] : "days-state"};
    if (argc == 4 && strcmp(argv[2], "--ledger") == 0)
        options.ledger = argv[3];
    struct tide_kind kind = {.name = "page", .handler = copy_page};
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    uint32_t id = 0;
    tide_status rc = tide_engine_open(&options, &engine, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind(engine, &kind, &id, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(engine, &err);
    if (rc == TIDE_OK)
        rc = copy_diary(engine, id, &err);
    (void)tide_engine_close(engine);
    if (rc != TIDE_OK)
        (void)fprintf(stderr, "days: %s\n", err.text);
    return rc == TIDE_OK ? 0 : 1;
}
