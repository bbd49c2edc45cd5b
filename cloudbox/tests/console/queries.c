/* What a query may say, and what it costs. */
#include "console_fixture.h"

CASE(what_a_query_may_not_say_is_refused)
{
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

CASE(both_spellings_mean_the_same)
{
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
        json_auto_t *first = json_incref(world->json);
        assert_non_null(rows_of(world, pairs[i][1]));
        assert_true(json_equal(first, world->json));
    }
}

CASE(the_answer_says_how_it_was_aggregated)
{
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

TEST(the_load_of_a_query_grows_with_range_and_detail)
{
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
        json_auto_t *query = json_loads(cases[i].body, 0, NULL);
        assert_non_null(query);
        assert_int_equal(box_sites_load(query), cases[i].load);
    }
    assert_int_equal(box_sites_load(NULL), 1);
}
