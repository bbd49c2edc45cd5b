/* Sums agree, whatever they are grouped and filtered by. */
#include "console_fixture.h"

#include <math.h>

/* BCON1 and BCON3, on every type. */
CASE(sums_agree_between_groupings_and_queries_hide_some)
{
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
    json_auto_t *groups = naive_sums(full, grouped, dimension, how, expression);
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
}

CASE(groupings_and_filters_agree_with_a_naive_sum)
{
    const uint64_t seed = 42;
    tide_rng rng = tide_rng_seeded(seed);
    json_auto_t *full = rows_of(world, "{\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-03\","
                                       "\"dimensions\":[\"date\",\"query\",\"page\",\"country\","
                                       "\"device\"],\"rowLimit\":25000}");
    assert_int_equal(json_array_size(full), 1800);
    json_incref(full);
    for (uint64_t i = 0; i < scaled(300); i++)
        compare_with_naive(world, full, &rng);
}
