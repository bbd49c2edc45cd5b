/* Search Console: the data by itself, then the methods through the whole gate. */
#include "base/check.h"
#include "logic/console.h"
#include "logic/console_query.h"
#include "logic/user.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* 2026-09-10 20:00 UTC, 13:00 in California. */
#define NOW_MS   (UINT64_C(1789070400) * 1000)
#define HOUR_MS  (UINT64_C(3600) * 1000)
#define DAY_MS   (24 * HOUR_MS)
#define QUERY_AT "/webmasters/v3/sites/sc-domain%3Aexample.com/searchAnalytics/query"

static uint64_t scaled(uint64_t count)
{
    const char *text = getenv("TIDE_TEST_SCALE");
    const uint64_t percent = text == NULL ? 100 : strtoull(text, NULL, 10);
    const uint64_t value = count * percent / 100;
    return value == 0 ? 1 : value;
}

/* ---- days ---- */

static int32_t day(const char *text)
{
    int32_t number = 0;
    assert_true(box_day_parse(tide_text_of(text), &number));
    return number;
}

static void a_date_survives_being_read_and_printed(void **state)
{
    (void)state;
    char text[11];
    for (int32_t i = 0; i < 60000; i++) {
        box_day_print(i, text);
        assert_int_equal(day(text), i);
    }
    assert_int_equal(day("1970-01-01"), 0);
    assert_int_equal(day("2000-03-01"), 11017);
    assert_int_equal(day("2024-02-29"), day("2024-03-01") - 1);
}

static void what_is_no_date_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",           "2026-02-29",  "2026-13-01", "2026-00-10",
                                        "2026-01-00", "2026-1-1",    "2026/01/01", "20260101",
                                        "2026-01-32", "2026-01-011", "today",      "1969-12-31",
                                        "+026-01-01", "2100-02-29"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int32_t number = 77;
        assert_false(box_day_parse(tide_text_of(wrong[i]), &number));
        assert_int_equal(number, 77);
    }
}

/* Summer time: in 2026 from 8 March to 1 November. */
static void days_are_those_of_california(void **state)
{
    (void)state;
    char text[26];
    assert_int_equal(box_day_hours(day("2026-03-07")), 24);
    assert_int_equal(box_day_hours(day("2026-03-08")), 23);
    assert_int_equal(box_day_hours(day("2026-11-01")), 25);
    assert_int_equal(box_day_hours(day("2026-11-02")), 24);
    box_hour_print(day("2026-03-08"), 1, text);
    assert_string_equal(text, "2026-03-08T01:00:00-08:00");
    box_hour_print(day("2026-03-08"), 2, text);
    assert_string_equal(text, "2026-03-08T03:00:00-07:00");
    box_hour_print(day("2026-11-01"), 1, text);
    assert_string_equal(text, "2026-11-01T01:00:00-07:00");
    box_hour_print(day("2026-11-01"), 2, text);
    assert_string_equal(text, "2026-11-01T01:00:00-08:00");
    box_hour_print(day("2026-11-01"), 24, text);
    assert_string_equal(text, "2026-11-01T23:00:00-08:00");
    for (int32_t i = day("2025-01-01"); i < day("2029-01-01"); i++) {
        const uint64_t start_ms = (uint64_t)box_day_start_ms(i);
        assert_int_equal(box_day_at(start_ms), i);
        assert_int_equal(box_day_at(start_ms - 1), i - 1);
    }
    assert_int_equal(box_day_at(NOW_MS), day("2026-09-10"));
    assert_int_equal(box_day_at(0), -1);
    assert_int_equal(box_day_oldest(day("2026-09-10")), day("2025-05-10"));
    assert_int_equal(box_day_oldest(day("2026-06-30")), day("2025-02-28"));
}

/* ---- rows ---- */

static const struct box_property small = {
    .seed = 7, .name = {"sc-domain:example.com", 21}, .rows_per_day = 1000};

/* D1 and D2, for sizes around the borders of the blocks. */
static void the_rows_of_a_day_are_sorted_and_distinct(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 7, 8, 16, 17, 80, 81, 333, 1000, 5457, 50000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct box_property property = small;
        property.rows_per_day = sizes[i];
        property.seed = sizes[i] * 17;
        struct box_day today;
        box_day_open(&property, BOX_SEARCH_WEB, day("2026-07-01"), NOW_MS, &today);
        assert_true(today.final);
        assert_int_equal(today.rows, sizes[i]);
        const size_t keys = (size_t)(sizes[i] / 8 + 1) * BOX_COUNTRIES * BOX_DEVICES;
        uint8_t *seen = calloc(keys, 1);
        uint64_t last = UINT64_MAX;
        for (uint32_t rank = 0; rank < today.rows; rank++) {
            struct box_row row;
            box_day_row(&today, rank, &row);
            assert_true(row.clicks <= last);
            assert_true(row.clicks <= row.impressions);
            assert_true(row.impressions >= 1);
            assert_true(row.positions >= row.impressions);
            assert_true(row.page < BOX_PAGES_MAX);
            assert_true(row.appearance < BOX_APPEARANCES);
            last = row.clicks;
            const size_t key =
                ((size_t)row.query * BOX_COUNTRIES + row.country) * BOX_DEVICES + row.device;
            assert_true(key < keys);
            assert_int_equal(seen[key], 0);
            seen[key] = 1;
        }
        free(seen);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void every_query_and_page_has_its_own_name(void **state)
{
    (void)state;
    const size_t count = BOX_QUERIES_MAX;
    char **names = calloc(count, sizeof(char *));
    char text[BOX_KEY_BYTES_MAX + 1];
    for (int pages = 0; pages < 2; pages++) {
        const size_t total = pages ? BOX_PAGES_MAX : count;
        for (uint32_t i = 0; i < total; i++) {
            const size_t bytes =
                pages ? box_page_text(&small, i, text) : box_query_text(&small, i, text);
            assert_int_equal(bytes, strlen(text));
            names[i] = strdup(text);
        }
        qsort(names, total, sizeof(char *), by_text);
        for (size_t i = 1; i < total; i++)
            assert_string_not_equal(names[i - 1], names[i]);
        for (size_t i = 0; i < total; i++)
            free(names[i]);
    }
    free(names);
}

/* D3: on ordinary days and on those with 23 and 25 hours, complete or not. */
static void the_hours_of_a_row_add_up_to_it(void **state)
{
    (void)state;
    static const char *const dates[] = {"2026-03-08", "2026-11-01", "2026-07-01"};
    for (size_t i = 0; i < 3; i++)
        for (uint64_t age = 5; age < 80; age += 7) {
            struct box_day today;
            const uint64_t now_ms = (uint64_t)box_day_start_ms(day(dates[i])) + age * HOUR_MS;
            box_day_open(&small, BOX_SEARCH_WEB, day(dates[i]), now_ms, &today);
            for (uint32_t rank = 0; rank < today.rows; rank++) {
                struct box_row row;
                struct box_row part;
                uint64_t sums[3] = {0};
                box_day_row(&today, rank, &row);
                for (uint32_t hour = 0; hour < today.hours; hour++) {
                    if (!box_row_hour(&today, &row, hour, &part))
                        continue;
                    assert_true(part.impressions > 0);
                    assert_true(part.clicks <= part.impressions);
                    sums[0] += part.clicks;
                    sums[1] += part.impressions;
                    sums[2] += part.positions;
                }
                assert_int_equal(sums[0], row.clicks);
                assert_int_equal(sums[1], row.impressions);
                assert_int_equal(sums[2], row.positions);
            }
        }
}

/* D4 and C4. */
static void a_day_grows_until_it_is_final_and_then_stays(void **state)
{
    (void)state;
    const int32_t number = day("2026-07-01");
    const uint64_t start_ms = (uint64_t)box_day_start_ms(number);
    struct box_day last = {0};
    uint64_t final_after = 0;
    for (uint64_t age = 0; age < 24 * 6; age++) {
        struct box_day now;
        box_day_open(&small, BOX_SEARCH_WEB, number, start_ms + age * HOUR_MS, &now);
        assert_true(now.rows >= last.rows);
        assert_true(now.hidden >= last.hidden);
        assert_true(now.final || !last.final);
        for (uint32_t rank = 0; rank < last.rows; rank++) {
            struct box_row before;
            struct box_row after;
            box_day_row(&last, rank, &before);
            box_day_row(&now, rank, &after);
            assert_int_equal(before.query, after.query);
            assert_true(before.clicks <= after.clicks);
            assert_true(before.impressions <= after.impressions);
            if (last.final) {
                assert_int_equal(before.impressions, after.impressions);
                assert_int_equal(before.positions, after.positions);
            }
        }
        if (now.final && final_after == 0)
            final_after = age;
        last = now;
    }
    assert_int_equal(last.rows, 1000);
    assert_true(final_after >= 48);
    assert_true(final_after <= 72);
}

/* ---- a cloud with two owners ---- */

struct world {
    box_cloud *cloud;
    uint64_t now_ms;
    struct box_answer answer;
    json_t *json; /* of the last answer */
};

static int setup(void **state)
{
    static const struct box_service *const services[] = {&box_console, NULL};
    struct world *world = calloc(1, sizeof *world);
    world->cloud = box_cloud_new(&(struct box_options){.seed = 3, .services = services});
    world->now_ms = NOW_MS;
    box_answer_init(&world->answer);
    tide_error err;
    static const struct {
        const char *site;
        const char *user;
        uint32_t rows;
    } sites[] = {
        {"sc-domain:example.com", "ann@example.com", 600},
        {"https://shop.example.com/", "ann@example.com", 50},
        {"sc-domain:example.com", "bob@example.com", 0},
        {"sc-domain:other.org", "bob@example.com", 100},
        {"sc-domain:large.org", "ann@example.com", BOX_SITE_ROWS_MAX},
        {"sc-domain:empty.org", "ann@example.com", 0},
    };
    assert_int_equal(
        box_cloud_add_token(world->cloud, TIDE_TEXT("ann"), TIDE_TEXT("ann@example.com"), &err),
        TIDE_OK);
    assert_int_equal(
        box_cloud_add_token(world->cloud, TIDE_TEXT("bob"), TIDE_TEXT("bob@example.com"), &err),
        TIDE_OK);
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++)
        assert_int_equal(box_cloud_add_site(world->cloud, tide_text_of(sites[i].site),
                                            tide_text_of(sites[i].user), sites[i].rows, &err),
                         TIDE_OK);
    *state = world;
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    json_decref(world->json);
    box_answer_done(&world->answer);
    box_cloud_free(world->cloud);
    free(world);
    return 0;
}

static int serve(struct world *world, const char *token, box_verb verb, const char *target,
                 const char *body)
{
    char bearer[64];
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
    const struct box_header headers[] = {
        {TIDE_TEXT("Authorization"), tide_text_of(bearer)},
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")},
    };
    const struct box_request request = {.verb = verb,
                                        .target = tide_text_of(target),
                                        .headers = headers,
                                        .headers_count = 2,
                                        .body = tide_text_of(body),
                                        .origin = TIDE_TEXT("http://box")};
    box_answer_clear(&world->answer);
    box_cloud_serve(world->cloud, &request, world->now_ms, &world->answer);
    box_cloud_finished(world->cloud, &world->answer.ticket, world->now_ms);
    json_decref(world->json);
    world->json = json_loadb(tide_buf_cstr(&world->answer.body), world->answer.body.bytes, 0, NULL);
    assert_non_null(world->json);
    return world->answer.status;
}

static const char *message_of(struct world *world)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(world->json, "error"), "message"));
    return text == NULL ? "" : text;
}

static const char *reason_of(struct world *world)
{
    const json_t *errors = json_object_get(json_object_get(world->json, "error"), "errors");
    const char *text = json_string_value(json_object_get(json_array_get(errors, 0), "reason"));
    return text == NULL ? "" : text;
}

/* A query of Ann's that must succeed; the rows, borrowed, NULL when absent. */
static json_t *rows_of(struct world *world, const char *body)
{
    const int status = serve(world, "ann", BOX_POST, QUERY_AT "?prettyPrint=false", body);
    if (status != 200)
        print_error("%d %s\n%s\n", status, message_of(world), body);
    assert_int_equal(status, 200);
    json_t *rows = json_object_get(world->json, "rows");
    if (rows != NULL)
        assert_true(json_array_size(rows) > 0);
    return rows;
}

struct sums {
    double clicks;
    double impressions;
    double positions;
    size_t rows;
};

static struct sums sums_of(const json_t *rows)
{
    struct sums sums = {.rows = json_array_size(rows)};
    double last = INFINITY;
    for (size_t i = 0; i < sums.rows; i++) {
        const json_t *row = json_array_get(rows, i);
        const double clicks = json_number_value(json_object_get(row, "clicks"));
        const double impressions = json_number_value(json_object_get(row, "impressions"));
        assert_true(clicks <= last);
        last = clicks;
        sums.clicks += clicks;
        sums.impressions += impressions;
        sums.positions += impressions * json_number_value(json_object_get(row, "position"));
        const double ctr = json_number_value(json_object_get(row, "ctr"));
        assert_true(fabs(ctr - clicks / impressions) < 1e-14);
    }
    return sums;
}

/* ---- sites ---- */

static void everybody_sees_their_own_sites(void **state)
{
    struct world *world = *state;
    assert_int_equal(serve(world, "bob", BOX_GET, "/webmasters/v3/sites", ""), 200);
    json_t *wanted = json_loads("{\"siteEntry\":[{\"siteUrl\":\"sc-domain:example.com\","
                                "\"permissionLevel\":\"siteFullUser\"},"
                                "{\"siteUrl\":\"sc-domain:other.org\","
                                "\"permissionLevel\":\"siteOwner\"}]}",
                                0, NULL);
    assert_true(json_equal(world->json, wanted));
    json_decref(wanted);
    assert_int_equal(serve(world, "ann", BOX_GET, "/webmasters/v3/sites", ""), 200);
    assert_int_equal(json_array_size(json_object_get(world->json, "siteEntry")), 4);
    tide_error err;
    assert_int_equal(
        box_cloud_add_token(world->cloud, TIDE_TEXT("eve"), TIDE_TEXT("eve@example.com"), &err),
        TIDE_OK);
    assert_int_equal(serve(world, "eve", BOX_GET, "/webmasters/v3/sites", ""), 200);
    assert_int_equal(json_object_size(world->json), 0);
}

static void a_site_says_what_its_asker_may(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *token;
        const char *target;
        int status;
        const char *word;
    } cases[] = {
        {"ann", "/webmasters/v3/sites/sc-domain%3Aexample.com", 200, "siteOwner"},
        {"ann", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com%2F", 200, "siteOwner"},
        {"bob", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com%2F", 200,
         "siteUnverifiedUser"},
        {"ann", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com", 404, NULL},
        {"ann", "/webmasters/v3/sites/sc-domain%3Anowhere.org", 404, NULL},
        {"ann", "/webmasters/v3/sites/example.com", 400, NULL},
        {"ann", "/webmasters/v3/sites/sc-domain%3Aexample.com/sitemaps", 200, NULL},
        {"bob", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com%2F/sitemaps", 403, NULL},
        {"ann", "/webmasters/v3/sites/sc-domain%3Aexample.com/sitemaps/x.xml", 404, NULL},
        {"nobody", "/webmasters/v3/sites", 401, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(serve(world, cases[i].token, BOX_GET, cases[i].target, ""),
                         cases[i].status);
        if (cases[i].word != NULL)
            assert_string_equal(json_string_value(json_object_get(world->json, "permissionLevel")),
                                cases[i].word);
    }
}

static void a_stranger_may_not_query(void **state)
{
    struct world *world = *state;
    static const char *const sites[] = {"https%3A%2F%2Fshop.example.com%2F",
                                        "sc-domain%3Anowhere.org"};
    for (size_t i = 0; i < 2; i++) {
        char target[200];
        (void)snprintf(target, sizeof target, "/webmasters/v3/sites/%s/searchAnalytics/query",
                       sites[i]);
        assert_int_equal(serve(world, "bob", BOX_POST, target, "{}"), 403);
        assert_string_equal(reason_of(world), "forbidden");
        assert_non_null(strstr(message_of(world), "User does not have sufficient permission"));
    }
}

static void only_properties_can_be_added(void **state)
{
    (void)state;
    struct box_sites *sites = box_sites_new(1);
    struct box_user user = {.number = 1};
    static const char *const wrong[] = {"",
                                        "example.com",
                                        "sc-domain:",
                                        "https://",
                                        "https://a.com",
                                        "sc-domain:a.com/",
                                        "ftp://a.com/",
                                        "https://a\"b.com/",
                                        "https://a b.com/"};
    tide_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(box_sites_add(sites, tide_text_of(wrong[i]), &user, 10, &err),
                         TIDE_INVALID);
    const tide_text name = TIDE_TEXT("sc-domain:a.com");
    assert_int_equal(box_sites_add(sites, name, &user, BOX_SITE_ROWS_MAX + 1, &err), TIDE_INVALID);
    assert_int_equal(box_sites_number(sites, name), 0);
    assert_int_equal(box_sites_add(sites, name, &user, 10, &err), TIDE_OK);
    assert_int_equal(box_sites_add(sites, name, &user, 10, &err), TIDE_EXISTS);
    assert_int_equal(box_sites_number(sites, name), 1);
    box_sites_free(sites);
    box_sites_free(NULL);
}

/* ---- what a query may say ---- */

static void what_a_query_may_not_say_is_refused(void **state)
{
    struct world *world = *state;
#define DAYS "\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-01\""
#define FILTER(d, o, e)                                                                            \
    "{" DAYS ",\"dimensionFilterGroups\":[{\"filters\":[{\"dimension\":\"" d                       \
    "\",\"operator\":\"" o "\",\"expression\":\"" e "\"}]}]}"
    static const struct {
        const char *body;
        const char *word; /* in the message */
    } cases[] = {
        {"{", "JSON"},
        {"[]", "Root"},
        {"{}", "startDate"},
        {"{\"startDate\":\"2026-08-01\"}", "endDate"},
        {"{\"startDate\":\"2026-02-30\",\"endDate\":\"2026-03-01\"}", "start_date"},
        {"{\"startDate\":\"2026-02-20\",\"endDate\":\"yesterday\"}", "end_date"},
        {"{\"startDate\":20260801,\"endDate\":\"2026-03-01\"}", "start_date"},
        {"{\"startDate\":\"2026-08-02\",\"endDate\":\"2026-08-01\"}", "after"},
        {"{" DAYS ",\"rowLimit\":25001}", "Invalid value at 'row_limit'"},
        {"{" DAYS ",\"rowLimit\":0}", "Invalid value at 'row_limit'"},
        {"{" DAYS ",\"rowLimit\":-1}", "row_limit"},
        {"{" DAYS ",\"rowLimit\":1.5}", "row_limit"},
        {"{" DAYS ",\"rowLimit\":\"ten\"}", "row_limit"},
        {"{" DAYS ",\"rowLimit\":[10]}", "row_limit"},
        {"{" DAYS ",\"startRow\":-1}", "start_row"},
        {"{" DAYS ",\"startRow\":3000000000}", "start_row"},
        {"{" DAYS ",\"dimensions\":\"date\"}", "dimensions"},
        {"{" DAYS ",\"dimensions\":[\"dates\"]}", "dimensions"},
        {"{" DAYS ",\"dimensions\":[7]}", "dimensions"},
        {"{" DAYS ",\"dimensions\":[\"date\",\"DATE\"]}", "twice"},
        {"{" DAYS ",\"dimensions\":[\"hour\"]}", "HOURLY_ALL"},
        {"{" DAYS ",\"dimensions\":[\"hour\"],\"dataState\":\"all\"}", "HOURLY_ALL"},
        {"{" DAYS ",\"dimensions\":[\"searchAppearance\",\"date\"]}", "searchAppearance"},
        {"{" DAYS ",\"dimensions\":[\"query\"],\"type\":\"discover\"}", "query"},
        {"{" DAYS ",\"dimensions\":[\"device\"],\"type\":\"discover\"}", "device"},
        {"{" DAYS ",\"dimensions\":[\"query\"],\"type\":\"googleNews\"}", "query"},
        {"{" DAYS ",\"type\":\"images\"}", "type"},
        {"{" DAYS ",\"type\":\"web\",\"searchType\":\"image\"}", "contradict"},
        {"{" DAYS ",\"dataState\":\"partial\"}", "data_state"},
        {"{" DAYS ",\"aggregationType\":\"bySite\"}", "aggregation_type"},
        {"{" DAYS ",\"aggregationType\":\"byProperty\",\"dimensions\":[\"page\"]}", "BY_PROPERTY"},
        {"{" DAYS ",\"aggregationType\":\"byProperty\",\"dimensionFilterGroups\":[{\"filters\":"
         "[{\"dimension\":\"page\",\"expression\":\"x\"}]}]}",
         "BY_PROPERTY"},
        {"{" DAYS ",\"aggregationType\":\"byProperty\",\"type\":\"discover\"}", "BY_PROPERTY"},
        {"{" DAYS ",\"aggregationType\":\"byNewsShowcasePanel\"}", "PANEL"},
        {"{" DAYS ",\"limit\":5}", "Unknown name \"limit\""},
        {"{" DAYS ",\"dimensionFilterGroups\":{}}", "dimension_filter_groups"},
        {"{" DAYS ",\"dimensionFilterGroups\":[3]}", "dimension_filter_groups"},
        {"{" DAYS ",\"dimensionFilterGroups\":[{\"groupType\":\"or\"}]}", "group_type"},
        {"{" DAYS ",\"dimensionFilterGroups\":[{\"filter\":[]}]}", "Unknown name \"filter\""},
        {"{" DAYS ",\"dimensionFilterGroups\":[{\"filters\":[{\"dimension\":\"page\"}]}]}",
         "expression"},
        {FILTER("date", "equals", "2026-08-01"), "dates"},
        {FILTER("query", "matches", "a"), "operator"},
        {FILTER("query", "equals", ""), "expression"},
        {FILTER("query", "includingRegex", "("), "regular expression"},
        {FILTER("query", "includingRegex", "[a"), "regular expression"},
        {FILTER("query", "includingRegex", "(a)\\\\1"), "regular expression"},
        {FILTER("query", "excludingRegex", "a{1001}"), "regular expression"},
        {FILTER("query", "excludingRegex", "(a{40}){40}"), "regular expression"},
        {FILTER("query", "excludingRegex", "a{99999999999999999999}"), "regular expression"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int status = serve(world, "ann", BOX_POST, QUERY_AT, cases[i].body);
        if (status != 400 || strstr(message_of(world), cases[i].word) == NULL)
            print_error("%s\n%d %s\n", cases[i].body, status, message_of(world));
        assert_int_equal(status, 400);
        assert_non_null(strstr(message_of(world), cases[i].word));
    }
}

static void both_spellings_mean_the_same(void **state)
{
    struct world *world = *state;
    static const char *const pairs[][2] = {
        {"{" DAYS ",\"dimensions\":[\"searchAppearance\"],\"searchType\":\"web\","
         "\"aggregationType\":\"byPage\",\"dataState\":\"final\",\"rowLimit\":50,\"startRow\":0}",
         "{\"start_date\":\"2026-08-01\",\"end_date\":\"2026-08-01\",\"dimensions\":"
         "[\"SEARCH_APPEARANCE\"],\"type\":\"WEB\",\"aggregation_type\":\"BY_PAGE\","
         "\"data_state\":\"FINAL\",\"row_limit\":\"50\",\"start_row\":0.0}"},
        {"{" DAYS ",\"type\":\"googleNews\",\"dimensions\":[]}",
         "{" DAYS ",\"type\":\"GOOGLE_NEWS\",\"dimensions\":null}"},
        {FILTER("query", "notContains", "a"), FILTER("QUERY", "NOT_CONTAINS", "A")},
        {FILTER("country", "equals", "usa"), FILTER("COUNTRY", "EQUALS", "USA")},
        {FILTER("query", "includingRegex", "[0-9]"),
         FILTER("query", "INCLUDING_REGEX", "(?i)\\\\d")},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_non_null(rows_of(world, pairs[i][0]));
        json_t *first = json_incref(world->json);
        assert_non_null(rows_of(world, pairs[i][1]));
        assert_true(json_equal(first, world->json));
        json_decref(first);
    }
}

static void the_answer_says_how_it_was_aggregated(void **state)
{
    struct world *world = *state;
    static const char *const cases[][2] = {
        {"{" DAYS "}", "byProperty"},
        {"{" DAYS ",\"dimensions\":[\"query\",\"device\"]}", "byProperty"},
        {"{" DAYS ",\"dimensions\":[\"page\"]}", "byPage"},
        {"{" DAYS ",\"aggregationType\":\"byPage\"}", "byPage"},
        {"{" DAYS ",\"aggregationType\":\"BY_PROPERTY\"}", "byProperty"},
        {FILTER("page", "contains", "e"), "byPage"},
        {"{" DAYS ",\"type\":\"discover\"}", "byPage"},
        {"{" DAYS ",\"type\":\"discover\",\"aggregationType\":\"byNewsShowcasePanel\","
         "\"dimensionFilterGroups\":[{\"filters\":[{\"dimension\":\"searchAppearance\","
         "\"expression\":\"NEWS_SHOWCASE\"}]}]}",
         "byNewsShowcasePanel"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_non_null(rows_of(world, cases[i][0]));
        assert_string_equal(
            json_string_value(json_object_get(world->json, "responseAggregationType")),
            cases[i][1]);
    }
}

/* ---- sums ---- */

/* C1 and C3, on every type. */
static void sums_agree_between_groupings_and_queries_hide_some(void **state)
{
    struct world *world = *state;
    static const char *const types[] = {"web", "image", "video", "news", "discover", "googleNews"};
    static const char *const groupings[] = {
        "",
        "\"date\"",
        "\"page\"",
        "\"country\"",
        "\"device\"",
        "\"date\",\"page\",\"country\",\"device\"",
        "\"country\",\"date\"",
        "\"query\"",
        "\"query\",\"page\"",
        "\"date\",\"query\",\"page\",\"country\",\"device\"",
        "\"device\",\"query\",\"country\",\"date\"",
    };
    for (size_t t = 0; t < 6; t++) {
        struct sums total = {0};
        struct sums asked = {0};
        for (size_t g = 0; g < sizeof groupings / sizeof groupings[0]; g++) {
            const bool by_query = strstr(groupings[g], "query") != NULL;
            if ((by_query && t >= 4) || (t == 4 && strstr(groupings[g], "device") != NULL))
                continue;
            char body[400];
            (void)snprintf(
                body, sizeof body,
                "{\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-04\",\"type\":\"%s\","
                "\"dimensions\":[%s],\"rowLimit\":25000}",
                types[t], groupings[g]);
            json_t *rows = rows_of(world, body);
            const struct sums sums = sums_of(rows);
            struct sums *wanted = by_query ? &asked : &total;
            if (wanted->impressions < 1)
                *wanted = sums;
            assert_true(sums.clicks == wanted->clicks);
            assert_true(sums.impressions == wanted->impressions);
            assert_true(fabs(sums.positions - wanted->positions) < 1e-4);
            assert_int_equal(json_object_get(json_array_get(rows, 0), "position") == NULL, t >= 4);
            assert_int_equal(json_object_get(json_array_get(rows, 0), "keys") == NULL,
                             groupings[g][0] == '\0');
        }
        if (t < 4) {
            assert_true(asked.clicks < total.clicks);
            assert_true(asked.impressions < total.impressions);
        }
    }
}

/* ---- against a naive model: the full rows of the days, summed up here ---- */

static const char *const dimension_names[] = {"date", "query", "page", "country", "device"};
static const char *const operators[] = {"equals",      "notEquals",      "contains",
                                        "notContains", "includingRegex", "excludingRegex"};

static bool naive_passes(size_t how, const char *expression, const char *text)
{
    switch (how) {
    case 0:
        return strcasecmp(text, expression) == 0;
    case 1:
        return strcasecmp(text, expression) != 0;
    case 2:
    case 4: /* the expressions tried have no special characters */
        return strcasestr(text, expression) != NULL;
    default:
        return strcasestr(text, expression) == NULL;
    }
}

static void naive_key(const json_t *keys, uint32_t grouped, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (size_t d = 0; d < 5; d++)
        if ((grouped >> d & 1u) != 0)
            at += (size_t)snprintf(out + at, bytes - at, "%s|",
                                   json_string_value(json_array_get(keys, d)));
}

/* From key text to [clicks, impressions, positions]. */
static json_t *naive_sums(const json_t *full, uint32_t grouped, size_t dimension, size_t how,
                          const char *expression)
{
    json_t *groups = json_object();
    for (size_t i = 0; i < json_array_size(full); i++) {
        const json_t *row = json_array_get(full, i);
        const json_t *keys = json_object_get(row, "keys");
        if (!naive_passes(how, expression, json_string_value(json_array_get(keys, dimension))))
            continue;
        char key[1024];
        naive_key(keys, grouped, key, sizeof key);
        json_t *sum = json_object_get(groups, key);
        if (sum == NULL) {
            sum = json_pack("[f,f]", 0.0, 0.0);
            json_object_set_new(groups, key, sum);
        }
        json_real_set(json_array_get(sum, 0),
                      json_real_value(json_array_get(sum, 0)) +
                          json_number_value(json_object_get(row, "clicks")));
        json_real_set(json_array_get(sum, 1),
                      json_real_value(json_array_get(sum, 1)) +
                          json_number_value(json_object_get(row, "impressions")));
    }
    return groups;
}

static void compare_with_naive(struct world *world, const json_t *full, tide_rng *rng)
{
    const uint32_t grouped = (uint32_t)tide_rng_below(rng, 32) | 2; /* always by query: no hidden */
    const size_t dimension = 1 + (size_t)tide_rng_below(rng, 4);
    const size_t how = (size_t)tide_rng_below(rng, 6);
    const json_t *some = json_array_get(full, (size_t)tide_rng_below(rng, json_array_size(full)));
    const char *value = json_string_value(json_array_get(json_object_get(some, "keys"), dimension));
    char expression[64] = "";
    size_t bytes = strlen(value);
    size_t from = 0;
    if (how >= 2 && bytes > 3) { /* a piece of it, from the ASCII part */
        from = (size_t)tide_rng_below(rng, bytes - 2);
        bytes = 2;
    }
    for (size_t i = 0, at = 0; i < bytes && at < sizeof expression - 1; i++)
        if ((unsigned char)value[from + i] >= 0x80 || strchr("\"\\.?*+()[]{}|^$", value[from + i]))
            return;
        else
            expression[at++] = value[from + i];
    if (strlen(expression) != bytes)
        return;

    char names[200] = "";
    size_t at = 0;
    for (size_t d = 0; d < 5; d++)
        if ((grouped >> d & 1u) != 0)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s\"%s\"", at > 0 ? "," : "",
                                   dimension_names[d]);
    char body[800];
    (void)snprintf(body, sizeof body,
                   "{\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-03\",\"rowLimit\":25000,"
                   "\"dimensions\":[%s],\"dimensionFilterGroups\":[{\"filters\":[{\"dimension\":"
                   "\"%s\",\"operator\":\"%s\",\"expression\":\"%s\"}]}]}",
                   names, dimension_names[dimension], operators[how], expression);
    json_t *groups = naive_sums(full, grouped, dimension, how, expression);
    json_t *rows = rows_of(world, body);
    (void)sums_of(rows); /* checks the order */
    if (json_array_size(rows) != json_object_size(groups))
        print_error("%s\n", body);
    assert_int_equal(json_array_size(rows), json_object_size(groups));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *keys = json_object_get(row, "keys");
        char key[1024];
        size_t k = 0;
        size_t end = 0;
        for (size_t d = 0; d < 5; d++)
            if ((grouped >> d & 1u) != 0)
                end += (size_t)snprintf(key + end, sizeof key - end, "%s|",
                                        json_string_value(json_array_get(keys, k++)));
        const json_t *sum = json_object_get(groups, key);
        assert_non_null(sum);
        assert_true(json_number_value(json_array_get(sum, 0)) ==
                    json_number_value(json_object_get(row, "clicks")));
        assert_true(json_number_value(json_array_get(sum, 1)) ==
                    json_number_value(json_object_get(row, "impressions")));
    }
    json_decref(groups);
}

static void groupings_and_filters_agree_with_a_naive_sum(void **state)
{
    struct world *world = *state;
    const uint64_t seed = 42;
    tide_rng rng = tide_rng_seeded(seed);
    json_t *full = rows_of(world, "{\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-03\","
                                  "\"dimensions\":[\"date\",\"query\",\"page\",\"country\","
                                  "\"device\"],\"rowLimit\":25000}");
    assert_int_equal(json_array_size(full), 1800);
    json_incref(full);
    for (uint64_t i = 0; i < scaled(300); i++)
        compare_with_naive(world, full, &rng);
    json_decref(full);
}

/* ---- pages ---- */

static void page_body(char *out, size_t bytes, const char *dimensions, const char *last,
                      size_t start, size_t limit)
{
    (void)snprintf(out, bytes,
                   "{\"startDate\":\"2026-08-01\",\"endDate\":\"%s\",\"dimensions\":[%s],"
                   "\"startRow\":%zu,\"rowLimit\":%zu}",
                   last, dimensions, start, limit);
}

/* All pages together, as an object from keys to how often they came. */
static json_t *pages_keys(struct world *world, const char *dimensions, const char *last,
                          size_t limit, size_t *count_out)
{
    json_t *seen = json_object();
    *count_out = 0;
    for (size_t start = 0;; start += limit) {
        char body[400];
        page_body(body, sizeof body, dimensions, last, start, limit);
        const json_t *rows = rows_of(world, body);
        for (size_t i = 0; i < json_array_size(rows); i++) {
            char *key = json_dumps(json_object_get(json_array_get(rows, i), "keys"), JSON_COMPACT);
            const json_int_t times = json_integer_value(json_object_get(seen, key));
            json_object_set_new(seen, key, json_integer(times + 1));
            free(key);
        }
        *count_out += json_array_size(rows);
        if (json_array_size(rows) < limit)
            return seen;
    }
}

/* C2: every way of cutting at multiples of eight gives every row once. */
static void pages_together_hold_every_row_once(void **state)
{
    struct world *world = *state;
    static const char *const groupings[] = {
        "\"date\",\"query\",\"page\",\"country\",\"device\"",
        "\"query\",\"country\",\"device\"",
        "\"page\"",
        "\"date\",\"query\"",
    };
    static const char *const ends[] = {"2026-08-01", "2026-08-03"};
    for (size_t g = 0; g < 4; g++)
        for (size_t e = 0; e < 2; e++) {
            size_t whole = 0;
            json_t *all = pages_keys(world, groupings[g], ends[e], 25000, &whole);
            assert_int_equal(json_object_size(all), whole);
            for (size_t limit = 8; limit <= 1000; limit = limit * 3 + 8 - limit * 3 % 8) {
                size_t count = 0;
                json_t *paged = pages_keys(world, groupings[g], ends[e], limit, &count);
                assert_int_equal(count, whole);
                assert_true(json_equal(paged, all));
                json_decref(paged);
            }
            json_decref(all);
        }
}

static void ties_change_places_from_call_to_call(void **state)
{
    struct world *world = *state;
    char body[400];
    page_body(body, sizeof body, "\"query\",\"page\",\"country\",\"device\"", "2026-08-01", 0, 600);
    json_t *first = json_incref(rows_of(world, body));
    json_t *second = json_incref(rows_of(world, body));
    assert_false(json_equal(first, second));
    assert_int_equal(json_array_size(first), json_array_size(second));
    for (size_t i = 0; i < json_array_size(first); i++)
        assert_true(json_equal(json_object_get(json_array_get(first, i), "clicks"),
                               json_object_get(json_array_get(second, i), "clicks")));
    json_decref(first);
    json_decref(second);
}

/* The trap that real page borders are: with the fault on, pages repeat some
 * rows and miss as many, but only at their borders. */
static void shifted_lists_lose_and_repeat_rows_at_page_borders(void **state)
{
    struct world *world = *state;
    tide_error err;
    assert_int_equal(
        box_cloud_add_fault(world->cloud,
                            TIDE_TEXT("{\"method\":\"webmasters.searchanalytics.query\",\"rate\":1,"
                                      "\"fault\":\"list-shift\"}"),
                            &err),
        TIDE_OK);
    size_t count = 0;
    json_t *paged =
        pages_keys(world, "\"query\",\"page\",\"country\",\"device\"", "2026-08-01", 40, &count);
    assert_int_equal(count, 600);
    assert_true(json_object_size(paged) < 600);
    assert_true(json_object_size(paged) > 500);
    json_decref(paged);
}

static void the_same_requests_get_the_same_bytes(void **state)
{
    struct world *world = *state;
    char body[400];
    page_body(body, sizeof body, "\"query\",\"device\"", "2026-08-02", 8, 100);
    (void)rows_of(world, body);
    void *other_state = NULL;
    assert_int_equal(setup(&other_state), 0);
    struct world *other = other_state;
    (void)rows_of(other, body);
    assert_string_equal(tide_buf_cstr(&world->answer.body), tide_buf_cstr(&other->answer.body));
    assert_int_equal(teardown(&other_state), 0);
}

static void nobody_reaches_more_than_fifty_thousand_rows(void **state)
{
    struct world *world = *state;
    static const char *const ends[] = {"2026-08-01", "2026-08-02"};
    static const char *const groupings[] = {"\"query\",\"page\",\"country\",\"device\",\"date\"",
                                            "\"date\",\"query\",\"device\""};
    static const size_t starts[] = {0, 25000, 49990, 50000, 60000};
    static const size_t wanted[] = {25000, 25000, 10, 0, 0};
    for (size_t e = 0; e < 2; e++)
        for (size_t g = 0; g < 2; g++)
            for (size_t i = 0; i < 5; i++) {
                char body[400];
                page_body(body, sizeof body, groupings[g], ends[e], starts[i], 25000);
                const int status = serve(world, "ann", BOX_POST,
                                         "/webmasters/v3/sites/sc-domain%3Alarge.org/"
                                         "searchAnalytics/query?prettyPrint=false",
                                         body);
                assert_int_equal(status, 200);
                const json_t *rows = json_object_get(world->json, "rows");
                assert_int_equal(json_array_size(rows), wanted[i]);
                assert_int_equal(rows == NULL, wanted[i] == 0);
            }
}

/* ---- what there is, and when ---- */

static void without_data_there_are_no_rows(void **state)
{
    struct world *world = *state;
    static const char *const bodies[] = {
        "{\"startDate\":\"2027-01-01\",\"endDate\":\"2027-01-31\"}",
        "{\"startDate\":\"2024-01-01\",\"endDate\":\"2025-05-09\"}",
        "{\"startDate\":\"2026-09-10\",\"endDate\":\"2026-09-10\",\"dimensions\":[\"date\"]}",
        "{" DAYS ",\"startRow\":100000,\"dimensions\":[\"query\"]}",
        FILTER("query", "equals", "no such query"),
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        assert_null(rows_of(world, bodies[i]));
        assert_non_null(json_object_get(world->json, "responseAggregationType"));
    }
    assert_int_equal(serve(world, "ann", BOX_POST,
                           "/webmasters/v3/sites/sc-domain%3Aempty.org/searchAnalytics/query",
                           "{" DAYS "}"),
                     200);
    assert_null(json_object_get(world->json, "rows"));
    assert_non_null(rows_of(world, "{\"startDate\":\"2024-01-01\",\"endDate\":\"2025-05-10\"}"));
}

/* C4: by default only final days; with "all" also the fresh ones, and the answer
 * says from when on they can change. */
static void fresh_days_come_on_request_and_are_marked(void **state)
{
    struct world *world = *state;
    const char *all = "{\"startDate\":\"2026-09-01\",\"endDate\":\"2026-09-30\",\"dimensions\":"
                      "[\"date\"],\"dataState\":\"all\"}";
    const char *final = "{\"startDate\":\"2026-09-01\",\"endDate\":\"2026-09-30\",\"dimensions\":"
                        "[\"date\"]}";
    int32_t last_final = 0;
    for (uint64_t hour = 0; hour < 48; hour++) {
        world->now_ms = NOW_MS + hour * HOUR_MS;
        const int32_t today = box_day_at(world->now_ms);
        const json_t *rows = rows_of(world, final);
        assert_null(json_object_get(world->json, "metadata"));
        const int32_t newest = day("2026-09-01") + (int32_t)json_array_size(rows) - 1;
        assert_true(newest == today - 2 || newest == today - 3);
        assert_true(newest >= last_final);
        last_final = newest;
        (void)rows_of(world, all);
        char text[11];
        box_day_print(newest + 1, text);
        assert_string_equal(json_string_value(json_object_get(
                                json_object_get(world->json, "metadata"), "firstIncompleteDate")),
                            text);
    }
    /* Only with the date, and only when the range reaches that far. */
    (void)rows_of(world, "{\"startDate\":\"2026-09-01\",\"endDate\":\"2026-09-30\","
                         "\"dataState\":\"all\"}");
    assert_null(json_object_get(world->json, "metadata"));
    (void)rows_of(world, "{\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-30\",\"dimensions\":"
                         "[\"date\"],\"dataState\":\"all\"}");
    assert_null(json_object_get(world->json, "metadata"));
}

static void hours_come_with_hourly_data_and_add_up_to_the_days(void **state)
{
    struct world *world = *state;
    world->now_ms = NOW_MS;
    json_t *rows = rows_of(world, "{\"startDate\":\"2026-08-01\",\"endDate\":\"2026-09-10\","
                                  "\"dimensions\":[\"hour\"],\"dataState\":\"hourly_all\","
                                  "\"rowLimit\":25000}");
    const struct sums hours = sums_of(rows);
    json_t *first = json_object_get(json_array_get(rows, 0), "keys");
    assert_int_equal(json_string_length(json_array_get(first, 0)), 25);
    bool oldest = false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *key =
            json_string_value(json_array_get(json_object_get(json_array_get(rows, i), "keys"), 0));
        assert_true(strncmp(key, "2026-08-31", 10) >= 0);
        oldest = oldest || strcmp(key, "2026-08-31T00:00:00-07:00") == 0;
    }
    assert_true(oldest);
    const char *from = json_string_value(
        json_object_get(json_object_get(world->json, "metadata"), "firstIncompleteHour"));
    assert_non_null(from);
    assert_true(strncmp(from, "2026-09-0", 9) == 0);
    const struct sums days =
        sums_of(rows_of(world, "{\"startDate\":\"2026-08-31\",\"endDate\":\"2026-09-10\","
                               "\"dataState\":\"HOURLY_ALL\",\"dimensions\":[\"date\"]}"));
    assert_true(days.clicks == hours.clicks);
    assert_true(days.impressions == hours.impressions);
}

/* ---- how it is written ---- */

static void spaces_and_fields_do_not_change_the_content(void **state)
{
    struct world *world = *state;
    const char *body = "{" DAYS ",\"dimensions\":[\"date\",\"page\"],\"dataState\":\"all\"}";
    assert_int_equal(serve(world, "ann", BOX_POST, QUERY_AT, body), 200);
    json_t *pretty = json_incref(world->json);
    assert_non_null(strstr(tide_buf_cstr(&world->answer.body), "\n    {\n      \"keys\": [\n"));
    /* As jansson would indent it. */
    char *wanted = json_dumps(pretty, JSON_INDENT(2));
    assert_int_equal(strncmp(wanted, tide_buf_cstr(&world->answer.body), 60), 0);
    free(wanted);
    (void)rows_of(world, body);
    assert_null(strchr(tide_buf_cstr(&world->answer.body), '\n'));
    assert_int_equal(json_array_size(json_object_get(pretty, "rows")),
                     json_array_size(json_object_get(world->json, "rows")));
    json_decref(pretty);
    assert_int_equal(serve(world, "ann", BOX_POST, QUERY_AT "?fields=rows(keys)", body), 200);
    assert_int_equal(json_object_size(world->json), 1);
    const json_t *row = json_array_get(json_object_get(world->json, "rows"), 0);
    assert_int_equal(json_object_size(row), 1);
    assert_int_equal(json_array_size(json_object_get(row, "keys")), 2);
}

static void the_load_of_a_query_grows_with_range_and_detail(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t load;
    } cases[] = {
        {"{" DAYS "}", 1},
        {"{" DAYS ",\"dimensions\":[\"date\",\"device\"]}", 1},
        {"{" DAYS ",\"dimensions\":[\"page\"]}", 10},
        {"{" DAYS ",\"dimensions\":[\"QUERY\"]}", 10},
        {"{" DAYS ",\"dimensions\":[\"query\",\"page\"]}", 40},
        {"{" DAYS ",\"dimensions\":[\"query\"],\"dimensionFilterGroups\":[{\"filters\":["
         "{\"dimension\":\"page\",\"expression\":\"x\"}]}]}",
         40},
        {"{\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-30\",\"dimensions\":[\"page\"]}",
         300},
        {"{\"startDate\":\"1970-01-01\",\"endDate\":\"2026-08-30\"}", 500},
        {"{\"startDate\":\"2026-08-30\",\"endDate\":\"2026-08-01\"}", 1},
        {"{\"dimensions\":7,\"dimensionFilterGroups\":[1]}", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *query = json_loads(cases[i].body, 0, NULL);
        assert_non_null(query);
        assert_int_equal(box_sites_load(query), cases[i].load);
        json_decref(query);
    }
    assert_int_equal(box_sites_load(NULL), 1);
}

/* A page costs the page: pages of a day with 200,000 rows are not slower than
 * those of one with 600, and a million rows take about a second. */
static void full_pages_are_written_quickly(void **state)
{
    struct world *world = *state;
    const uint64_t rounds = scaled(40);
    char body[400];
    struct timespec from;
    struct timespec to;
    page_body(body, sizeof body, "\"date\",\"query\",\"page\",\"country\",\"device\"", "2026-08-01",
              25000, 25000);
    const struct box_header headers[] = {{TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer ann")}};
    const struct box_request request = {
        .verb = BOX_POST,
        .target = TIDE_TEXT("/webmasters/v3/sites/sc-domain%3Alarge.org/searchAnalytics/query"
                            "?prettyPrint=false"),
        .headers = headers,
        .headers_count = 1,
        .body = tide_text_of(body)};
    uint64_t bytes = 0;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint64_t i = 0; i < rounds; i++) {
        box_answer_clear(&world->answer);
        box_cloud_serve(world->cloud, &request, world->now_ms, &world->answer);
        assert_int_equal(world->answer.status, 200);
        bytes += world->answer.body.bytes;
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    const double seconds =
        (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    const double rows = (double)(rounds * 25000);
    print_message("%.2f million rows/s, %.0f MB/s, %.0f bytes a row\n", rows / seconds / 1e6,
                  (double)bytes / seconds / 1e6, (double)bytes / rows);
    assert_true(rows / seconds > 50000); /* far below, for sanitizers and busy machines */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_date_survives_being_read_and_printed),
        cmocka_unit_test(what_is_no_date_is_refused),
        cmocka_unit_test(days_are_those_of_california),
        cmocka_unit_test(the_rows_of_a_day_are_sorted_and_distinct),
        cmocka_unit_test(every_query_and_page_has_its_own_name),
        cmocka_unit_test(the_hours_of_a_row_add_up_to_it),
        cmocka_unit_test(a_day_grows_until_it_is_final_and_then_stays),
        cmocka_unit_test(only_properties_can_be_added),
        cmocka_unit_test(the_load_of_a_query_grows_with_range_and_detail),
        cmocka_unit_test_setup_teardown(everybody_sees_their_own_sites, setup, teardown),
        cmocka_unit_test_setup_teardown(a_site_says_what_its_asker_may, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stranger_may_not_query, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_query_may_not_say_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(both_spellings_mean_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(the_answer_says_how_it_was_aggregated, setup, teardown),
        cmocka_unit_test_setup_teardown(sums_agree_between_groupings_and_queries_hide_some, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(groupings_and_filters_agree_with_a_naive_sum, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(pages_together_hold_every_row_once, setup, teardown),
        cmocka_unit_test_setup_teardown(ties_change_places_from_call_to_call, setup, teardown),
        cmocka_unit_test_setup_teardown(shifted_lists_lose_and_repeat_rows_at_page_borders, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_same_requests_get_the_same_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_reaches_more_than_fifty_thousand_rows, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_data_there_are_no_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(fresh_days_come_on_request_and_are_marked, setup, teardown),
        cmocka_unit_test_setup_teardown(hours_come_with_hourly_data_and_add_up_to_the_days, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(spaces_and_fields_do_not_change_the_content, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(full_pages_are_written_quickly, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
