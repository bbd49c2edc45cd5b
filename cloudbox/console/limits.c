/* limits.c - what Search Console allows, and how it refuses.
 *
 * Search analytics: 1,200 calls a minute per site and per user, 40,000 a minute and
 * 30,000,000 a day per project, and a load quota in windows of 10 minutes and a day whose
 * price grows with the range and with grouping by page or query.  Other calls: 20 a second
 * and 200 a minute per user. */
#include "cloudbox/console/console.h"

#include "cloudbox/console/query.h"
#include "cloudbox/gate/quota.h"

#include <strings.h>

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60000,
    DAY_MS = 24 * 60 * MINUTE_MS,
    PER_MINUTE = 1200,
    LOAD_PER_10_MINUTES = 1000000,
    LOAD_PER_DAY = 100000000,
    LOAD_DEAREST_DAY = 40, /* one day by date, query, page, country and device: box_sites_load() */
    RANGE_DAYS_MAX = 500,
};

/* Google does not publish its load figures; these are ours.  A client that asks for one
 * day at a time stays below them at the full 1,200 calls a minute, without end: only
 * long ranges by page and query are expensive. */
_Static_assert(10 * PER_MINUTE * LOAD_DEAREST_DAY < LOAD_PER_10_MINUTES,
               "one-day queries never meet the load of ten minutes");
_Static_assert(24 * 60 * PER_MINUTE * LOAD_DEAREST_DAY < LOAD_PER_DAY,
               "one-day queries never meet the load of a day");

enum {
    SITE_MINUTE,
    LOAD_SHORT,
    LOAD_LONG,
    USER_MINUTE,
    PROJECT_MINUTE,
    PROJECT_DAY,
    OTHER_SECOND,
    OTHER_MINUTE,
    LIMITS,
};
_Static_assert((int)LIMITS == BOX_CONSOLE_LIMITS, "console.h counts them");

#define LIMIT(name_, setting_, meter_, whose_, counted_, window, step, limit_)                     \
    {                                                                                              \
        .name = name_, .setting = setting_, .meter = BOX_METER_##meter_, .whose = whose_,          \
        .counted = counted_, .window_ms = window, .step_ms = step, .limit = limit_                 \
    }
const struct box_limit box_console_limits[BOX_CONSOLE_LIMITS] = {
    [SITE_MINUTE] = LIMIT("site-minute", "console_per_minute", ANALYTICS,
                          BOX_PER_SUBJECT | BOX_PER_PROJECT, BOX_CALLS, MINUTE_MS, 1, PER_MINUTE),
    [LOAD_SHORT] = LIMIT("load", "load_per_10_minutes", ANALYTICS, BOX_PER_SUBJECT, BOX_LOAD,
                         10 * MINUTE_MS, SECOND_MS, LOAD_PER_10_MINUTES),
    [LOAD_LONG] = LIMIT("load", "load_per_day", ANALYTICS, BOX_PER_SUBJECT, BOX_LOAD, DAY_MS,
                        SECOND_MS, LOAD_PER_DAY),
    [USER_MINUTE] = LIMIT("console-user", "console_per_minute", ANALYTICS,
                          BOX_PER_USER | BOX_PER_PROJECT, BOX_CALLS, MINUTE_MS, 1, PER_MINUTE),
    [PROJECT_MINUTE] =
        LIMIT("project-minute", NULL, ANALYTICS, BOX_PER_PROJECT, BOX_CALLS, MINUTE_MS, 1, 40000),
    [PROJECT_DAY] = LIMIT("console-day", NULL, ANALYTICS, BOX_PER_PROJECT, BOX_CALLS, DAY_MS,
                          SECOND_MS, 30000000),
    [OTHER_SECOND] = LIMIT("console-user", NULL, CONSOLE_OTHER, BOX_PER_USER | BOX_PER_PROJECT,
                           BOX_CALLS, SECOND_MS, 1, 20),
    [OTHER_MINUTE] = LIMIT("console-user", NULL, CONSOLE_OTHER, BOX_PER_USER | BOX_PER_PROJECT,
                           BOX_CALLS, MINUTE_MS, 1, 200),
};
#undef LIMIT

/* ---- load ---- */

static bool names(const json_t *value, const char *wanted)
{
    return json_is_string(value) && strcasecmp(json_string_value(value), wanted) == 0;
}

/* Whether a dimension is grouped or filtered by; the query is not checked yet. */
static bool mentions(const json_t *query, const char *dimension)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(json_object_get(query, "dimensions"), i,
                       item) if (names(item, dimension)) return true;
    const json_t *groups = json_object_get(query, "dimensionFilterGroups");
    if (groups == NULL)
        groups = json_object_get(query, "dimension_filter_groups");
    json_array_foreach(groups, i, item)
    {
        size_t k = 0;
        json_t *filter = NULL;
        json_array_foreach(
            json_object_get(item, "filters"), k,
            filter) if (names(json_object_get(filter, "dimension"), dimension)) return true;
    }
    return false;
}

static bool day_of(const json_t *query, const char *camel, const char *snake, int32_t *day_out)
{
    const json_t *value = json_object_get(query, camel);
    if (value == NULL)
        value = json_object_get(query, snake);
    return json_is_string(value) &&
           box_day_parse((tide_text){json_string_value(value), json_string_length(value)}, day_out);
}

/* Google publishes no figures, only the shape: more for longer ranges, much
 * more for page or query, most for both.  One unit is a day without either. */
uint32_t box_sites_load(const json_t *query)
{
    int32_t first = 0;
    int32_t last = 0;
    uint32_t days = 1;
    if (day_of(query, "startDate", "start_date", &first) &&
        day_of(query, "endDate", "end_date", &last) && first <= last)
        days = last - first < RANGE_DAYS_MAX ? (uint32_t)(last - first) + 1 : RANGE_DAYS_MAX;
    const bool page = mentions(query, "page");
    const bool asked = mentions(query, "query");
    return days * (page && asked ? 40 : page || asked ? 10 : 1);
}

uint32_t box_console_load(const struct box_call *call)
{
    const tide_text body = call->request->body;
    if (body.bytes == 0 || body.bytes > 1 << 20)
        return 1;
    json_auto_t *query = json_loadb(body.data, body.bytes, 0, NULL);
    return query == NULL ? 1 : box_sites_load(query);
}

/* ---- refusing ---- */

#define QPS   "Search Analytics QPS quota exceeded"
#define LEARN ". Learn about usage limits and how to increase them."

const struct box_problem box_console_rate = {403, "usageLimits", "quotaExceeded",
                                             "PERMISSION_DENIED", QPS LEARN};

void box_console_refuse(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms)
{
    static const struct box_problem other_way = {429, "usageLimits", "rateLimitExceeded",
                                                 "RESOURCE_EXHAUSTED", QPS};
    static const struct box_problem load = {403, "usageLimits", "quotaExceeded",
                                            "PERMISSION_DENIED",
                                            "Search Analytics load quota exceeded" LEARN};
    static const struct box_problem project = {403, "usageLimits", "rateLimitExceeded",
                                               "PERMISSION_DENIED", "Rate Limit Exceeded"};
    static const struct box_problem day = {403, "usageLimits", "dailyLimitExceeded",
                                           "PERMISSION_DENIED", "Daily Limit Exceeded"};
    const struct box_problem *problem = NULL;
    (void)retry_at_ms;
    switch (limit - box_console_limits) {
    case LOAD_SHORT:
    case LOAD_LONG:
        problem = &load;
        break;
    case PROJECT_MINUTE:
        problem = &project;
        break;
    case PROJECT_DAY:
        problem = &day;
        break;
    default: /* in one of two ways, by the seed */
        problem = tide_rng_chance(box_quota_rng(box_cloud_quota(call->cloud)), 1, 2)
                      ? &box_console_rate
                      : &other_way;
        break;
    }
    box_fail_with(call, problem);
}
