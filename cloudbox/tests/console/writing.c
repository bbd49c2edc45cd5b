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

/* A page costs the page: pages of a day with 200,000 rows are not slower than
 * those of one with 600, and a million rows take about a second. */
CASE(full_pages_are_written_quickly)
{
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
