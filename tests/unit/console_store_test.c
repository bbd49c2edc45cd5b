/* The store of search analytics (V1 to V4 of store.h), its names, sums and dates.
 *
 * Goal: a day is there whole or not at all, each key once, and reports are what adding up
 * the rows by hand gives.
 * Method: days made from a seed, staged and committed in pages with repeated borders, and
 * a model that keeps the rows in a JSON object. */
#include "base/rng.h"
#include "console/dates.h"
#include "console/names.h"
#include "console/store.h"
#include "world/world.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define OK(call) assert_int_equal(call, TIDE_OK)

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
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", f->dir, entry->d_name);
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

static struct tide_console_day day_of(const char *date)
{
    return (struct tide_console_day){.date = date,
                                     .final = true,
                                     .totals = true,
                                     .clicks = 100,
                                     .impressions = 1000,
                                     .position = 4.5,
                                     .fetched_ms = 1};
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
    tide_buf problems;
    tide_buf_init(&problems, tide_mem_heap(), 1 << 16);
    OK(tide_console_store_check(f->store, &problems, &f->err));
    if (problems.bytes > 0)
        fail_msg("%s", tide_buf_cstr(&problems));
    tide_buf_done(&problems);
}

static void a_staged_page_is_not_visible_until_its_day_is_whole(void **state)
{
    struct fixture *f = *state;
    const struct tide_console_day day = day_of("2026-09-01");
    uint64_t rows = 0;
    add(f, "a", "/1", 5, 50, 1);
    add(f, "b", "/1", 4, 40, 2);
    OK(tide_console_store_stage(f->store, &set, day.date, 0, f->page, &f->err));
    assert_int_equal(days_of(f).count, 0);
    reopen(f, false); /* it is durable all the same */
    add(f, "c", "/2", 3, 30, 3);
    OK(tide_console_store_commit(f->store, &set, &day, 2, f->page, &rows, &f->err));
    assert_int_equal(rows, 3);
    const struct days days = days_of(f);
    assert_int_equal(days.count, 1);
    assert_int_equal(days.row[0].rows, 3);
    assert_true(days.row[0].row_clicks == 12 && days.row[0].clicks == 100);
    no_problems(f);
}

static void a_day_with_a_missing_page_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct tide_console_day day = day_of("2026-09-01");
    uint64_t rows = 0;
    add(f, "a", "/1", 5, 50, 1);
    OK(tide_console_store_stage(f->store, &set, day.date, 0, f->page, &f->err));
    assert_int_equal(tide_console_store_commit(f->store, &set, &day, 2, f->page, &rows, &f->err),
                     TIDE_CORRUPT);
    assert_int_equal(days_of(f).count, 0);
    /* Of another day, it does not count either. */
    const struct tide_console_day other = day_of("2026-09-02");
    assert_int_equal(tide_console_store_commit(f->store, &set, &other, 1, f->page, &rows, &f->err),
                     TIDE_CORRUPT);
    no_problems(f);
}

static void a_key_that_comes_twice_is_kept_once(void **state)
{
    struct fixture *f = *state;
    const struct tide_console_day day = day_of("2026-09-01");
    uint64_t rows = 0;
    add(f, "a", "/1", 5, 50, 1);
    add(f, "b", "/1", 4, 40, 2);
    OK(tide_console_store_stage(f->store, &set, day.date, 0, f->page, &f->err));
    tide_console_page_clear(f->page);
    add(f, "b", "/1", 4, 40, 2); /* the border moved */
    add(f, "b", "/2", 1, 10, 2);
    OK(tide_console_store_commit(f->store, &set, &day, 2, f->page, &rows, &f->err));
    assert_int_equal(rows, 3);
    assert_true(days_of(f).row[0].row_clicks == 10);
    no_problems(f);
}

static void a_day_that_comes_again_replaces_the_old_one(void **state)
{
    struct fixture *f = *state;
    struct tide_console_day day = day_of("2026-09-01");
    uint64_t rows = 0;
    day.final = false;
    for (int i = 0; i < 100; i++) {
        char query[32];
        (void)snprintf(query, sizeof query, "q%d", i);
        add(f, query, "/1", 1, 10, NAN);
    }
    OK(tide_console_store_commit(f->store, &set, &day, 0, f->page, &rows, &f->err));
    tide_console_page_clear(f->page);
    add(f, "q7", "/1", 9, 90, 2);
    day.final = true;
    OK(tide_console_store_commit(f->store, &set, &day, 0, f->page, &rows, &f->err));
    const struct days days = days_of(f);
    assert_int_equal(days.count, 1);
    assert_int_equal(days.row[0].rows, 1);
    assert_true(days.row[0].final && days.row[0].row_clicks == 9);
    no_problems(f);
}

static void a_file_of_another_site_is_refused(void **state)
{
    struct fixture *f = *state;
    char from[128];
    char to[128];
    (void)snprintf(from, sizeof from, "%s/https%%3A%%2F%%2Fwww.example.com%%2F.db", f->dir);
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
    char date[16];
    uint32_t start = 0;
    uint64_t rows = 0;
    json_t *kept = json_object();
    (void)snprintf(date, sizeof date, "2026-09-%02d", 1 + (int)tide_rng_below(rng, 9));
    const int pages = 1 + (int)tide_rng_below(rng, 3);
    for (int p = 0; p < pages; p++) {
        const int count = 1 + (int)tide_rng_below(rng, 40);
        tide_console_page_clear(f->page);
        for (int i = 0; i < count; i++) {
            char query[32];
            char page[32];
            char both[80];
            const double clicks = (double)tide_rng_below(rng, 100);
            const double impressions = clicks + (double)tide_rng_below(rng, 1000);
            (void)snprintf(query, sizeof query, "q%d", (int)tide_rng_below(rng, 30));
            (void)snprintf(page, sizeof page, "/%d", (int)tide_rng_below(rng, 5));
            (void)snprintf(both, sizeof both, "%s\t%s", query, page);
            add(f, query, page, clicks, impressions, 2);
            if (json_object_get(kept, both) == NULL)
                (void)json_object_set_new(kept, both, json_pack("[ff]", clicks, impressions));
        }
        if (p + 1 < pages)
            OK(tide_console_store_stage(f->store, &set, date, start, f->page, &f->err));
        else {
            const struct tide_console_day day = day_of(date);
            OK(tide_console_store_commit(f->store, &set, &day, start, f->page, &rows, &f->err));
        }
        start += (uint32_t)count;
    }
    assert_int_equal(rows, json_object_size(kept));
    (void)json_object_set_new(days, date, kept);
}

static void reports_are_the_sums_of_the_rows(void **state)
{
    struct fixture *f = *state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        json_t *days = json_object();
        (void)teardown(state);
        (void)setup(state);
        f = *state;
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

/* ---- names and dates ---- */

static void a_name_is_found_as_it_was_put(void **state)
{
    (void)state;
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

static void dates_come_back_as_they_were(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_staged_page_is_not_visible_until_its_day_is_whole, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_day_with_a_missing_page_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_that_comes_twice_is_kept_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_day_that_comes_again_replaces_the_old_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_file_of_another_site_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(reports_are_the_sums_of_the_rows, setup, teardown),
        cmocka_unit_test(a_name_is_found_as_it_was_put),
        cmocka_unit_test(dates_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
