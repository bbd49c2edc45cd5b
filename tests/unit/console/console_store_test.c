/* The store of search analytics (CST1 to CST4 of store.h), its names, sums and dates.
 *
 * Goal: a day is there whole or not at all, each key once, and reports are what adding up
 * the rows by hand gives.
 * Method: days made from a seed, staged and committed in pages with repeated borders, and
 * a model that keeps the rows in a JSON object; and a server that puts rows with equal
 * clicks in another order with each answer, read the way console.page reads it. */
#include "base/rng.h"
#include "console/console_inside.h"
#include "console/dates.h"
#include "console/names.h"
#include "console/store.h"
#include "console/store_inside.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"
#include "world/world.h"
#include "support/scale.h"

#include <dirent.h>
#include <jansson.h>
#include <math.h>
#include <unistd.h>

struct fixture {
    tide_world *world;
    tide_console_store *store;
    tide_console_page *page;
    tide_error err;
    char dir[64];
};

static const char site[] = "https://www.example.com/";
static const struct tide_console_set set = {TIDE_SC_WEB, 1u << TIDE_SC_QUERY | 1u << TIDE_SC_PAGE};

static void reopen(struct fixture *f, bool read_only)
{
    const struct tide_console_store_options options = {
        .dir = f->dir, .site = site, .world = f->world, .read_only = read_only};
    tide_console_page_free(f->page);
    OK(tide_console_store_close(f->store, NULL));
    f->store = NULL;
    OK(tide_console_store_open(&options, tide_mem_heap(), &f->store, &f->err));
    OK(tide_console_page_new(f->store, &f->page, &f->err));
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/console-store-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    reopen(f, false);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tide_console_page_free(f->page);
    OK(tide_console_store_close(f->store, NULL));
    tide_world_real_free(f->world);
    DIR *dir = opendir(f->dir);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *path = textf("%s/%s", f->dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);
    return 0;
}

static void add(struct fixture *f, const char *query, const char *page, double clicks,
                double impressions, double position)
{
    const struct tide_sc_row row = {
        .keys = {[TIDE_SC_QUERY] = tide_text_of(query), [TIDE_SC_PAGE] = tide_text_of(page)},
        .clicks = clicks,
        .impressions = impressions,
        .position = position};
    OK(tide_console_page_add(f->page, &row));
}

static struct tide_console_part part_of(const char *date)
{
    static uint64_t plans;
    return (struct tide_console_part){.date = date, .asked = ++plans};
}

static const struct tide_console_day final_day = {.final = true,
                                                  .totals = true,
                                                  .clicks = 100,
                                                  .impressions = 1000,
                                                  .position = 4.5,
                                                  .fetched_ms = 1};

static const struct tide_console_day open_day = {.totals = true, .clicks = 100, .position = 4.5};

static void stage(struct fixture *f, struct tide_console_part *part, uint32_t start_row)
{
    part->start_row = start_row;
    OK(tide_console_store_stage(f->store, &set, part, f->page, &f->err));
    tide_console_page_clear(f->page);
}

static struct tide_console_committed commit_as(struct fixture *f, struct tide_console_part *part,
                                               uint32_t start_row,
                                               const struct tide_console_day *day)
{
    struct tide_console_committed done;
    part->start_row = start_row;
    OK(tide_console_store_commit(f->store, &set, part, day, f->page, &done, &f->err));
    tide_console_page_clear(f->page);
    return done;
}

static struct tide_console_committed commit(struct fixture *f, struct tide_console_part *part,
                                            uint32_t start_row)
{
    return commit_as(f, part, start_row, &final_day);
}

struct days {
    struct tide_console_day_row row[16];
    size_t count;
};

static bool take_day(const struct tide_console_day_row *day, void *arg)
{
    struct days *days = arg;
    days->row[days->count++] = *day;
    return days->count < 16;
}

static struct days days_of(struct fixture *f)
{
    struct days days = {.count = 0};
    OK(tide_console_store_days(f->store, &set, NULL, NULL, take_day, &days, &f->err));
    return days;
}

static void no_problems(struct fixture *f)
{
    tide_buf problems = heap_buf(1 << 16);
    OK(tide_console_store_check(f->store, &problems, &f->err));
    if (problems.bytes > 0)
        fail_msg("%s", tide_buf_cstr(&problems));
    tide_buf_done(&problems);
}

#define CASE(name) TEST_ON(name, struct fixture *f, setup, teardown)

CASE(a_staged_page_is_not_visible_until_its_day_is_whole)
{
    struct tide_console_part part = part_of("2026-09-01");
    add(f, "a", "/1", 5, 50, 1);
    add(f, "b", "/1", 4, 40, 2);
    stage(f, &part, 0);
    assert_int_equal(days_of(f).count, 0);
    reopen(f, false); /* it is durable all the same */
    add(f, "c", "/2", 3, 30, 3);
    assert_int_equal(commit(f, &part, 2).rows, 3);
    const struct days days = days_of(f);
    assert_int_equal(days.count, 1);
    assert_int_equal(days.row[0].rows, 3);
    assert_true(days.row[0].counted && days.row[0].missing == 0);
    assert_true(days.row[0].row_clicks == 12 && days.row[0].clicks == 100);
    no_problems(f);
}

CASE(a_day_with_a_missing_page_is_read_again)
{
    struct tide_console_part part = part_of("2026-09-01");
    struct tide_console_committed done;
    add(f, "a", "/1", 5, 50, 1);
    stage(f, &part, 0);
    add(f, "c", "/1", 5, 50, 1);
    done = commit(f, &part, 2);
    assert_true(done.again && done.gap);
    assert_int_equal(days_of(f).count, 0);
    /* Of another day, it does not count either. */
    struct tide_console_part other = part_of("2026-09-02");
    add(f, "a", "/1", 5, 50, 1);
    done = commit(f, &other, 1);
    assert_true(done.again && done.gap);
    /* It cannot loop forever. */
    other.reading = TIDE_CONSOLE_READINGS_MAX - 1;
    other.last = true;
    assert_int_equal(
        tide_console_store_commit(f->store, &set, &other, &final_day, f->page, &done, &f->err),
        TIDE_CORRUPT);
    assert_int_equal(days_of(f).count, 0);
    part.reading = 1;
    add(f, "a", "/1", 5, 50, 1);
    done = commit(f, &part, 0);
    assert_true(!done.again && done.rows == 1 && done.missing == 0);
    no_problems(f);
}

CASE(a_key_that_comes_twice_tells_that_another_never_came)
{
    struct tide_console_part part = part_of("2026-09-01");
    add(f, "a", "/1", 5, 50, 1);
    add(f, "b", "/1", 4, 40, 2);
    stage(f, &part, 0);
    add(f, "b", "/1", 4, 40, 2); /* the border moved */
    add(f, "b", "/2", 1, 10, 2);
    struct tide_console_committed done = commit(f, &part, 2);
    assert_true(done.again && !done.gap);
    assert_true(done.counted == 4 && done.missing == 1);
    assert_int_equal(days_of(f).count, 0);
    reopen(f, false); /* what came before is kept for the next reading */
    part.reading = 1;
    add(f, "a", "/1", 5, 50, 1);
    add(f, "new", "/1", 4, 41, 2);
    add(f, "b", "/1", 4, 40, 2);
    stage(f, &part, 0);
    add(f, "b", "/1", 4, 40, 2);
    done = commit(f, &part, 3);
    assert_true(!done.again && done.rows == 4 && done.missing == 0);
    assert_true(days_of(f).row[0].row_clicks == 14);
    no_problems(f);
}

CASE(rows_that_never_come_are_written_down)
{
    struct tide_console_part part = part_of("2026-09-01");
    for (; part.reading < TIDE_CONSOLE_READINGS_MAX; part.reading++) {
        part.last = part.reading + 1 == TIDE_CONSOLE_READINGS_MAX;
        add(f, "a", "/1", 5, 50, 1);
        add(f, "a", "/1", 5, 50, 1);
        add(f, "b", "/1", 5, 50, 1);
        const struct tide_console_committed done = commit(f, &part, 0);
        assert_int_equal(done.again, !part.last);
        assert_int_equal(done.missing, 1);
    }
    const struct days days = days_of(f);
    assert_int_equal(days.count, 1);
    assert_true(days.row[0].rows == 2 && days.row[0].missing == 1);
    no_problems(f);
}

CASE(a_day_that_comes_again_replaces_the_old_one)
{
    struct tide_console_part part = part_of("2026-09-01");
    for (int i = 0; i < 100; i++) {
        const char *query = textf("q%d", i);
        add(f, query, "/1", 1, 10, NAN);
    }
    (void)commit_as(f, &part, 0, &open_day);
    add(f, "q7", "/1", 9, 90, 2);
    part = part_of("2026-09-01");
    (void)commit(f, &part, 0);
    const struct days days = days_of(f);
    assert_int_equal(days.count, 1);
    assert_int_equal(days.row[0].rows, 1);
    assert_true(days.row[0].final && days.row[0].row_clicks == 9);
    no_problems(f);
}

/* CST6: a late answer, one of a day the server has forgotten, one that lacks more. */
CASE(what_is_final_gives_way_only_to_what_is_better)
{
    struct tide_console_part part = part_of("2026-09-01");
    add(f, "a", "/1", 5, 50, 1);
    (void)commit(f, &part, 0);
    part = part_of("2026-09-01");
    add(f, "b", "/1", 6, 60, 1);
    assert_int_equal(commit_as(f, &part, 0, &open_day).rows, 1);
    part = part_of("2026-09-01");
    assert_int_equal(commit(f, &part, 0).rows, 1);
    part = part_of("2026-09-01");
    part.reading = TIDE_CONSOLE_READINGS_MAX - 1;
    part.last = true;
    add(f, "c", "/1", 6, 60, 1);
    add(f, "c", "/1", 6, 60, 1);
    (void)commit(f, &part, 0);
    struct days days = days_of(f);
    assert_true(days.row[0].final && days.row[0].rows == 1 && days.row[0].row_clicks == 5);
    assert_int_equal(days.row[0].missing, 0);
    part = part_of("2026-09-01");
    add(f, "d", "/1", 7, 70, 1);
    (void)commit(f, &part, 0);
    days = days_of(f);
    assert_true(days.row[0].row_clicks == 7);
    no_problems(f);
}

/* A backfill of the same day was begun with other pages, and another one after it. */
CASE(pages_of_two_plans_do_not_mix)
{
    struct tide_console_part one = part_of("2026-09-01");
    struct tide_console_part two = part_of("2026-09-01");
    add(f, "a", "/1", 5, 50, 1);
    stage(f, &one, 0);
    add(f, "x", "/1", 5, 50, 1);
    add(f, "y", "/1", 4, 40, 1);
    stage(f, &two, 0);
    add(f, "b", "/1", 4, 40, 1);
    stage(f, &one, 1);
    assert_int_equal(commit(f, &two, 2).rows, 2);
    /* The pages of the first went with it: it begins again, and is not stuck. */
    struct tide_console_committed done = commit(f, &one, 2);
    assert_true(done.again && done.gap);
    one.reading = 1;
    add(f, "a", "/1", 5, 50, 1);
    add(f, "b", "/1", 4, 40, 1);
    assert_int_equal(commit(f, &one, 0).rows, 2);
    no_problems(f);
}

/* The program died between the commit and the end of its job: the job comes again, with
 * nothing staged. */
CASE(committing_twice_for_one_plan_changes_nothing)
{
    struct tide_console_part part = part_of("2026-09-01");
    add(f, "a", "/1", 5, 50, 1);
    stage(f, &part, 0);
    add(f, "b", "/1", 4, 40, 2);
    (void)commit(f, &part, 1);
    reopen(f, false);
    add(f, "b", "/1", 4, 40, 2);
    assert_int_equal(commit(f, &part, 1).rows, 2);
    assert_int_equal(days_of(f).row[0].rows, 2);
    no_problems(f);
}

/* The job of a page died after it was staged, and the answer is shorter the second time. */
CASE(a_page_that_comes_again_counts_as_it_came_last)
{
    struct tide_console_part part = part_of("2026-09-01");
    add(f, "a", "/1", 5, 50, 1);
    add(f, "b", "/1", 4, 40, 2);
    stage(f, &part, 0);
    add(f, "x", "/1", 3, 30, 2);
    add(f, "y", "/1", 3, 30, 2);
    stage(f, &part, 2);
    add(f, "c", "/1", 3, 30, 2);
    const struct tide_console_committed done = commit(f, &part, 2);
    assert_true(!done.again && done.rows == 3 && done.counted == 3);
    no_problems(f);
}

/* By a program that only reads, then by one that writes. */
CASE(a_file_of_the_first_version_is_read_and_brought_up)
{
    struct tide_console_part part = part_of("2026-09-01");
    char path[128];
    sqlite3 *db = NULL;
    add(f, "a", "/1", 5, 50, 1);
    (void)commit(f, &part, 0);
    tide_console_page_free(f->page);
    f->page = NULL;
    OK(tide_console_store_close(f->store, NULL));
    f->store = NULL;
    (void)snprintf(path, sizeof path, "%s/https%%3A%%2F%%2Fwww.example.com%%2F.db", f->dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "ALTER TABLE day DROP COLUMN missing; DROP TABLE staged;"
                     "CREATE TABLE staged (series INTEGER NOT NULL, date TEXT NOT NULL,"
                     " start_row INTEGER NOT NULL, rows INTEGER NOT NULL, body BLOB NOT NULL,"
                     " PRIMARY KEY (series, date, start_row));"
                     "PRAGMA user_version = 1",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    for (int writing = 0; writing < 2; writing++) {
        reopen(f, writing == 0);
        const struct days days = days_of(f);
        assert_true(days.count == 1 && days.row[0].rows == 1 && !days.row[0].counted);
    }
    part = part_of("2026-09-01");
    add(f, "b", "/1", 5, 50, 1);
    (void)commit(f, &part, 0);
    assert_true(days_of(f).row[0].counted);
    no_problems(f);
}

CASE(a_file_of_another_site_is_refused)
{
    char to[128];
    const char *from = textf("%s/https%%3A%%2F%%2Fwww.example.com%%2F.db", f->dir);
    (void)snprintf(to, sizeof to, "%s/sc-domain%%3Aexample.org.db", f->dir);
    tide_console_page_free(f->page);
    f->page = NULL;
    OK(tide_console_store_close(f->store, NULL));
    f->store = NULL;
    assert_int_equal(rename(from, to), 0);
    const struct tide_console_store_options options = {
        .dir = f->dir, .site = "sc-domain:example.org", .world = f->world};
    assert_int_equal(tide_console_store_open(&options, tide_mem_heap(), &f->store, &f->err),
                     TIDE_INVALID);
    const struct tide_console_store_options nothing = {
        .dir = f->dir, .site = "sc-domain:example.net", .world = f->world, .read_only = true};
    assert_int_equal(tide_console_store_open(&nothing, tide_mem_heap(), &f->store, &f->err),
                     TIDE_NOT_FOUND);
}

/* ---- against the model ---- */

struct model {
    json_t *days; /* date -> "query\tpage" -> [clicks, impressions] */
};

struct tops {
    json_t *list; /* [[key, clicks, impressions]] */
};

static bool take_top(const struct tide_console_top *top, void *arg)
{
    struct tops *tops = arg;
    json_t *one = json_array();
    (void)json_array_append_new(one, json_stringn(top->key.data, top->key.bytes));
    (void)json_array_append_new(one, json_real(top->clicks));
    (void)json_array_append_new(one, json_real(top->impressions));
    (void)json_array_append_new(tops->list, one);
    return true;
}

/* Clicks and impressions of one key over all days, by adding them up. */
static void sum_of(const json_t *days, const char *key, bool by_page, double *clicks,
                   double *impressions)
{
    const char *date = NULL;
    json_t *rows = NULL;
    *clicks = *impressions = 0;
    json_object_foreach((json_t *)(uintptr_t)days, date, rows)
    {
        const char *both = NULL;
        json_t *numbers = NULL;
        json_object_foreach(rows, both, numbers)
        {
            const char *tab = strchr(both, '\t');
            const bool same = by_page ? strcmp(tab + 1, key) == 0
                                      : strlen(key) == (size_t)(tab - both) &&
                                            strncmp(both, key, (size_t)(tab - both)) == 0;
            if (!same)
                continue;
            *clicks += json_number_value(json_array_get(numbers, 0));
            *impressions += json_number_value(json_array_get(numbers, 1));
        }
    }
}

static void random_day(struct fixture *f, tide_rng *rng, json_t *days)
{
    char date[20];
    uint32_t start = 0;
    uint64_t rows = 0;
    json_t *kept = json_object();
    (void)snprintf(date, sizeof date, "2026-09-%02d", 1 + (int)tide_rng_below(rng, 9));
    struct tide_console_part part = part_of(date);
    part.reading = TIDE_CONSOLE_READINGS_MAX - 1;
    part.last = true; /* the keys are few and come more than once */
    const int pages = 1 + (int)tide_rng_below(rng, 3);
    for (int p = 0; p < pages; p++) {
        const int count = 1 + (int)tide_rng_below(rng, 40);
        tide_console_page_clear(f->page);
        for (int i = 0; i < count; i++) {
            char page[32];
            const double clicks = (double)tide_rng_below(rng, 100);
            const double impressions = clicks + (double)tide_rng_below(rng, 1000);
            const char *query = textf("q%d", (int)tide_rng_below(rng, 30));
            (void)snprintf(page, sizeof page, "/%d", (int)tide_rng_below(rng, 5));
            const char *both = textf("%s\t%s", query, page);
            add(f, query, page, clicks, impressions, 2);
            if (json_object_get(kept, both) == NULL)
                (void)json_object_set_new(kept, both, json_pack("[ff]", clicks, impressions));
        }
        if (p + 1 < pages)
            stage(f, &part, start);
        else
            rows = commit_as(f, &part, start, &open_day).rows;
        start += (uint32_t)count;
    }
    assert_int_equal(rows, json_object_size(kept));
    (void)json_object_set_new(days, date, kept);
}

TEST_WITH(reports_are_the_sums_of_the_rows, setup, teardown)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        json_t *days = json_object();
        (void)teardown(state);
        (void)setup(state);
        struct fixture *f = *state;
        for (int i = 0; i < 12; i++) {
            random_day(f, &rng, days);
            if (tide_rng_below(&rng, 4) == 0)
                reopen(f, false);
        }
        for (int by_page = 0; by_page < 2; by_page++) {
            struct tops tops = {json_array()};
            size_t index = 0;
            json_t *top = NULL;
            double before = INFINITY;
            OK(tide_console_store_top(f->store, &set, by_page ? TIDE_SC_PAGE : TIDE_SC_QUERY, NULL,
                                      NULL, 1000, take_top, &tops, &f->err));
            json_array_foreach(tops.list, index, top)
            {
                double clicks = 0;
                double impressions = 0;
                sum_of(days, json_string_value(json_array_get(top, 0)), by_page != 0, &clicks,
                       &impressions);
                if (json_number_value(json_array_get(top, 1)) != clicks ||
                    json_number_value(json_array_get(top, 2)) != impressions || clicks > before)
                    fail_msg("seed %" PRIu64 ": %s", seed,
                             json_string_value(json_array_get(top, 0)));
                before = clicks;
            }
            assert_true(json_array_size(tops.list) > 0);
            json_decref(tops.list);
        }
        assert_int_equal(days_of(f).count, json_object_size(days));
        no_problems(f);
        json_decref(days);
    }
}

/* ---- a server whose ties change places ---- */

struct server {
    tide_rng rng;
    uint32_t rows;
    uint32_t *order;  /* row numbers, by clicks */
    uint32_t clicked; /* rows with clicks of their own; all others have none */
    uint32_t run;     /* ties change places inside so many rows; 0: all of them */
    uint64_t queries;
};

static double clicks_of(const struct server *server, uint32_t row)
{
    return row < server->clicked ? (double)(server->clicked - row) : 0;
}

/* Another order of the ties for every answer, as Google may have. */
static void shuffle(struct server *server)
{
    const uint32_t run = server->run == 0 ? server->rows : server->run;
    const uint32_t shift = (uint32_t)tide_rng_below(&server->rng, run + 1);
    for (uint32_t i = 0; i < server->rows; i++)
        server->order[i] = i;
    for (uint32_t from = server->clicked; from < server->rows;) {
        const uint32_t size = from == server->clicked && shift > 0 && server->run > 0 ? shift : run;
        const uint32_t to = server->rows - from < size ? server->rows : from + size;
        for (uint32_t left = to - from; left > 1; left--) {
            const uint32_t other = from + (uint32_t)tide_rng_below(&server->rng, left);
            const uint32_t moved = server->order[from + left - 1];
            server->order[from + left - 1] = server->order[other];
            server->order[other] = moved;
        }
        from = to;
    }
}

static uint32_t serve(struct server *server, struct fixture *f, const struct tide_console_ask *ask)
{
    const uint32_t end = server->rows < TIDE_SC_DAY_ROWS_MAX ? server->rows : TIDE_SC_DAY_ROWS_MAX;
    uint32_t count = 0;
    server->queries++;
    shuffle(server);
    tide_console_page_clear(f->page);
    for (uint32_t i = ask->start_row; i < end && count < ask->row_limit; i++, count++) {
        const char *query = textf("q%u", server->order[i]);
        add(f, query, "/", clicks_of(server, server->order[i]), 1000, 2);
    }
    return count;
}

/* Reads a day the way console.page does; now and then a step is done twice, since the
 * program died before its job ended. */
static struct tide_console_committed read_day(struct fixture *f, struct server *server,
                                              const char *date, uint32_t row_limit, bool dies)
{
    struct tide_console_ask ask = {.plan = part_of(date).asked, .row_limit = row_limit};
    struct tide_console_committed done = {.again = true};
    (void)snprintf(ask.date, sizeof ask.date, "%s", date);
    while (done.again) {
        if (dies && tide_rng_below(&server->rng, 4) == 0)
            reopen(f, false);
        const bool twice = dies && tide_rng_below(&server->rng, 4) == 0;
        const uint32_t count = serve(server, f, &ask);
        const struct tide_console_part part = tide_console_ask_part(&ask);
        if (tide_console_ask_more(&ask, count)) {
            OK(tide_console_store_stage(f->store, &set, &part, f->page, &f->err));
            ask.start_row += twice ? 0 : count;
            continue;
        }
        OK(tide_console_store_commit(f->store, &set, &part, &final_day, f->page, &done, &f->err));
        if (done.again && !twice)
            tide_console_ask_again(&ask, &done);
        done.again = done.again || twice;
    }
    return done;
}

struct checked {
    const struct server *server;
    uint64_t count;
};

static bool take_checked(const struct tide_console_top *top, void *arg)
{
    struct checked *checked = arg;
    const char *text = textf("%.*s", (int)top->key.bytes, top->key.data);
    const unsigned long row = strtoul(text + 1, NULL, 10);
    assert_true(row < checked->server->rows);
    /* A row that is counted twice would have twice its numbers. */
    assert_true(top->impressions == 1000);
    assert_true(top->clicks == clicks_of(checked->server, (uint32_t)row));
    checked->count++;
    return true;
}

static void expect_rows(struct fixture *f, const struct server *server, const char *date,
                        const struct tide_console_committed *done)
{
    struct checked checked = {server, 0};
    const uint64_t shown =
        server->rows < TIDE_SC_DAY_ROWS_MAX ? server->rows : TIDE_SC_DAY_ROWS_MAX;
    OK(tide_console_store_top(f->store, &set, TIDE_SC_QUERY, date, date, UINT32_MAX, take_checked,
                              &checked, &f->err));
    assert_int_equal(checked.count, done->rows);
    assert_int_equal(done->rows + done->missing, shown);
}

/* Sizes around every border, ties in runs and everywhere, pages of any size. */
CASE(no_row_is_lost_between_pages)
{
    uint64_t again = 0;
    const uint64_t last = scaled(120);
    for (uint64_t seed = 1; seed <= last; seed++) {
        struct server server = {.rng = tide_rng_seeded(seed)};
        const uint32_t limit = 1 + (uint32_t)tide_rng_below(&server.rng, 60);
        char date[16];
        server.rows = limit * (uint32_t)tide_rng_below(&server.rng, 4);
        server.rows += (uint32_t)tide_rng_below(&server.rng, 3);
        server.rows -= server.rows > 0 ? 1 : 0;
        server.clicked = (uint32_t)tide_rng_below(&server.rng, server.rows + 1);
        server.run = (uint32_t)tide_rng_below(&server.rng, 2) * 8;
        server.order = calloc(server.rows + 1, sizeof *server.order);
        tide_date_format(20000 + (int32_t)seed, date);
        const struct tide_console_committed done = read_day(f, &server, date, limit, true);
        again += server.queries > server.rows / limit + 1 ? 1 : 0;
        if (done.missing > 0 || done.rows != server.rows)
            fail_msg("seed %" PRIu64 ": %" PRIu64 " of %u rows", seed, done.rows, server.rows);
        expect_rows(f, &server, date, &done);
        free(server.order);
    }
    no_problems(f);
    assert_true(again > last / 6); /* else nothing was tried */
}

/* More than one page of the largest size: exactly full ones, one row more and less. */
CASE(days_of_many_pages_lose_nothing_at_their_borders)
{
    static const uint32_t sizes[] = {24999, 25000, 25001, 40000, 49999, 50000, 60000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct server server = {
            .rng = tide_rng_seeded(i), .rows = sizes[i], .clicked = 1000, .run = 512};
        server.order = calloc(server.rows, sizeof *server.order);
        const struct tide_console_committed done =
            read_day(f, &server, "2026-09-01", i % 2 == 0 ? TIDE_SC_ROWS_MAX : 10000, i > 3);
        if (done.missing > 0)
            fail_msg("%u rows, %" PRIu64 " missing", sizes[i], done.missing);
        expect_rows(f, &server, "2026-09-01", &done);
        no_problems(f);
        free(server.order);
    }
}

/* The worst there could be: 39,000 rows without a click, in a new order with each answer. */
CASE(a_day_whose_ties_are_all_over_is_honest)
{
    struct server server = {.rng = tide_rng_seeded(7), .rows = 40000, .clicked = 1000};
    server.order = calloc(server.rows, sizeof *server.order);
    const struct tide_console_committed done =
        read_day(f, &server, "2026-09-01", TIDE_SC_ROWS_MAX, false);
    expect_rows(f, &server, "2026-09-01", &done);
    print_message("%" PRIu64 " of 40000 rows are missing after %" PRIu64 " queries\n", done.missing,
                  server.queries);
    assert_true(done.missing < 40);
    assert_int_equal(days_of(f).row[0].missing, done.missing);
    no_problems(f);
    free(server.order);
}

/* ---- names and dates ---- */

TEST(a_name_is_found_as_it_was_put)
{
    tide_names names;
    tide_names_init(&names, 42, tide_mem_heap());
    char text[64];
    for (uint32_t i = 1; i <= 200000; i++) {
        (void)snprintf(text, sizeof text, "name %u of many", i);
        assert_int_equal(tide_names_get(&names, tide_text_of(text)), 0);
        tide_names_put(&names, tide_text_of(text), i);
    }
    for (uint32_t i = 1; i <= 200000; i++) {
        (void)snprintf(text, sizeof text, "name %u of many", i);
        assert_int_equal(tide_names_get(&names, tide_text_of(text)), i);
    }
    assert_int_equal(tide_names_get(&names, TIDE_TEXT("")), 0);
    tide_names_put(&names, TIDE_TEXT(""), 7);
    assert_int_equal(tide_names_get(&names, TIDE_TEXT("")), 7);
    /* Full: it begins again, and is never wrong. */
    for (uint32_t i = 1; i <= TIDE_NAMES_COUNT_MAX + 10; i++) {
        (void)snprintf(text, sizeof text, "more %u", i);
        tide_names_put(&names, tide_text_of(text), i);
        assert_int_equal(tide_names_get(&names, tide_text_of(text)), i);
    }
    tide_names_done(&names);
}

TEST(dates_come_back_as_they_were)
{
    char text[16];
    int32_t again = 0;
    for (int32_t day = -30000; day < 60000; day++) {
        tide_date_format(day, text);
        assert_true(tide_date_parse(text, &again));
        assert_int_equal(again, day);
    }
    tide_date_format(0, text);
    assert_string_equal(text, "1970-01-01");
    tide_date_format(20332, text);
    assert_string_equal(text, "2025-09-01");
    static const char *const bad[] = {"",           "2026-02-29", "2026-13-01", "2026-00-10",
                                      "2026-1-1",   "2026-01-32", "26-01-01",   "2026/01/01",
                                      "2026-01-1x", "2026-01-010"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(tide_date_parse(bad[i], &again));
    /* 2026-09-02 07:59 UTC is still the first in California's winter. */
    assert_true(tide_date_parse("2026-09-01", &again));
    assert_int_equal(tide_date_pacific(((uint64_t)(again + 1) * 86400 + 7 * 3600 + 3540) * 1000),
                     again);
}
