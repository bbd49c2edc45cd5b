/* What there is, and when. */
#include "console_fixture.h"

CASE(without_data_there_are_no_rows)
{
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

/* BCON4: by default only final days; with "all" also the fresh ones, and the answer
 * says from when on they can change. */
CASE(fresh_days_come_on_request_and_are_marked)
{
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

CASE(hours_come_with_hourly_data_and_add_up_to_the_days)
{
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
