/* Pages hold every row, in an order that may change, up to a limit. */
#include "console_fixture.h"

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
            auto_text *key =
                json_dumps(json_object_get(json_array_get(rows, i), "keys"), JSON_COMPACT);
            const json_int_t times = json_integer_value(json_object_get(seen, key));
            json_object_set_new(seen, key, json_integer(times + 1));
        }
        *count_out += json_array_size(rows);
        if (json_array_size(rows) < limit)
            return seen;
    }
}

/* BCON2: every way of cutting at multiples of eight gives every row once. */
CASE(pages_together_hold_every_row_once)
{
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
            json_auto_t *all = pages_keys(world, groupings[g], ends[e], 25000, &whole);
            assert_int_equal(json_object_size(all), whole);
            for (size_t limit = 8; limit <= 1000; limit = limit * 3 + 8 - limit * 3 % 8) {
                size_t count = 0;
                json_auto_t *paged = pages_keys(world, groupings[g], ends[e], limit, &count);
                assert_int_equal(count, whole);
                assert_true(json_equal(paged, all));
            }
        }
}

CASE(ties_change_places_from_call_to_call)
{
    char body[400];
    page_body(body, sizeof body, "\"query\",\"page\",\"country\",\"device\"", "2026-08-01", 0, 600);
    json_auto_t *first = json_incref(rows_of(world, body));
    json_auto_t *second = json_incref(rows_of(world, body));
    assert_false(json_equal(first, second));
    assert_int_equal(json_array_size(first), json_array_size(second));
    for (size_t i = 0; i < json_array_size(first); i++)
        assert_true(json_equal(json_object_get(json_array_get(first, i), "clicks"),
                               json_object_get(json_array_get(second, i), "clicks")));
}

/* The trap that real page borders are: with the fault on, pages repeat some
 * rows and miss as many, but only at their borders. */
CASE(shifted_lists_lose_and_repeat_rows_at_page_borders)
{
    tide_error err;
    assert_ok(
        box_cloud_add_fault(world->cloud,
                            TIDE_TEXT("{\"method\":\"webmasters.searchanalytics.query\",\"rate\":1,"
                                      "\"fault\":\"list-shift\"}"),
                            &err));
    size_t count = 0;
    json_auto_t *paged =
        pages_keys(world, "\"query\",\"page\",\"country\",\"device\"", "2026-08-01", 40, &count);
    assert_int_equal(count, 600);
    assert_true(json_object_size(paged) < 600);
    assert_true(json_object_size(paged) > 500);
}

CASE(the_same_requests_get_the_same_bytes)
{
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

CASE(nobody_reaches_more_than_fifty_thousand_rows)
{
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
