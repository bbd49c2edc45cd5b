/* How an answer is written, and how fast. */
#include "console_fixture.h"

#include <time.h>

CASE(spaces_and_fields_do_not_change_the_content)
{
    const char *body = "{" DAYS ",\"dimensions\":[\"date\",\"page\"],\"dataState\":\"all\"}";
    assert_int_equal(serve(world, "ann", BOX_POST, QUERY_AT, body), 200);
    json_auto_t *pretty = json_incref(world->json);
    assert_non_null(strstr(tide_buf_cstr(&world->answer.body), "\n    {\n      \"keys\": [\n"));
    /* As jansson would indent it. */
    auto_text *wanted = json_dumps(pretty, JSON_INDENT(2));
    assert_int_equal(strncmp(wanted, tide_buf_cstr(&world->answer.body), 60), 0);
    (void)rows_of(world, body);
    assert_null(strchr(tide_buf_cstr(&world->answer.body), '\n'));
    assert_int_equal(json_array_size(json_object_get(pretty, "rows")),
                     json_array_size(json_object_get(world->json, "rows")));
    assert_int_equal(serve(world, "ann", BOX_POST, QUERY_AT "?fields=rows(keys)", body), 200);
    assert_int_equal(json_object_size(world->json), 1);
    const json_t *row = json_array_get(json_object_get(world->json, "rows"), 0);
    assert_int_equal(json_object_size(row), 1);
    assert_int_equal(json_array_size(json_object_get(row, "keys")), 2);
}

/* What a row of a page costs, on average of `rounds` pages of the same day. */
static double row_cost_us(struct world *world, const char *target, size_t start, size_t limit,
                          uint64_t rounds)
{
    char body[400];
    struct timespec from;
    struct timespec to;
    page_body(body, sizeof body, "\"date\",\"query\",\"page\",\"country\",\"device\"", "2026-08-01",
              start, limit);
    assert_int_equal(serve(world, "ann", BOX_POST, target, body), 200);
    const size_t rows = json_array_size(json_object_get(world->json, "rows"));
    assert_true(rows > 0);
    const struct box_header headers[] = {{TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer ann")}};
    const struct box_request request = {.verb = BOX_POST,
                                        .target = tide_text_of(target),
                                        .headers = headers,
                                        .headers_count = 1,
                                        .body = tide_text_of(body)};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (uint64_t i = 0; i < rounds; i++) {
        box_answer_clear(&world->answer);
        box_cloud_serve(world->cloud, &request, world->now_ms, &world->answer);
        assert_int_equal(world->answer.status, 200);
    }
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    const double seconds =
        (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    const double cost_us = seconds * 1e6 / (double)(rounds * rows);
    print_message("%zu rows from %zu on: %.2f us a row\n", rows, start, cost_us);
    return cost_us;
}

/* A page costs the page: one deep in a day with 200,000 rows is as cheap for each row as one of a
 * day with some hundred.  How many a second that is depends on the machine and on the build. */
CASE(a_page_of_a_large_day_costs_no_more_than_its_rows)
{
    const char *large = "/webmasters/v3/sites/sc-domain%3Alarge.org/searchAnalytics/query"
                        "?prettyPrint=false";
    const char *small = QUERY_AT "?prettyPrint=false";
    const double small_us = row_cost_us(world, small, 0, 25000, scaled(1000));
    const double large_us = row_cost_us(world, large, 25000, 25000, scaled(40));
    assert_true(large_us < 4 * small_us);
}
