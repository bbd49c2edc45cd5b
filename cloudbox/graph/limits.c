/* limits.c - what Graph allows, and how it refuses.
 *
 * Per user 3,000 calls in 5 minutes; per app 1,250 resource units a minute, of which reading an
 * item, a delta with a token and a download cost 1, listings and changes 2, permissions 5.
 * Refused calls count, and whoever was told to wait and does not is refused longer.
 * Microsoft publishes no numbers for personal accounts; ours are those of business ones. */
#include "cloudbox/gate/quota.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum { MINUTE_MS = 60000, SECOND_MS = 1000 };
enum { USER_CALLS, APP_MINUTE, APP_DAY, LIMITS };
_Static_assert((int)LIMITS == BOX_GRAPH_LIMITS, "inside.h counts them");

#define LIMIT(name_, setting_, whose_, counted_, window, step, limit_)                             \
    {                                                                                              \
        .name = name_, .setting = setting_, .meter = BOX_METER_GRAPH, .whose = whose_,             \
        .counted = counted_, .window_ms = window, .step_ms = step, .limit = limit_,                \
        .refusals_count = true, .binds = true                                                      \
    }
const struct box_limit box_graph_limits[BOX_GRAPH_LIMITS] = {
    [USER_CALLS] = LIMIT("graph-user", "graph_calls_per_5_minutes", BOX_PER_USER, BOX_CALLS,
                         5 * MINUTE_MS, SECOND_MS, 3000),
    [APP_MINUTE] = LIMIT("graph-app-minute", "graph_units_per_minute",
                         BOX_PER_USER | BOX_PER_PROJECT, BOX_UNITS, MINUTE_MS, SECOND_MS, 1250),
    [APP_DAY] = LIMIT("graph-app-day", "graph_units_per_day", BOX_PER_USER | BOX_PER_PROJECT,
                      BOX_UNITS, 24 * 60 * MINUTE_MS, 60 * SECOND_MS, 1200000),
};
#undef LIMIT

void box_graph_refuse(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms)
{
    struct box_quota *quota = box_cloud_quota(call->cloud);
    char text[24];
    const uint64_t wait_s =
        retry_at_ms > call->now_ms ? (retry_at_ms - call->now_ms + 999) / 1000 : 1;
    box_graph_fail(call, 429, "activityLimitReached", "throttledRequest",
                   "The request has been throttled");
    snprintf(text, sizeof text, "%" PRIu64, wait_s);
    box_answer_header(call->answer, "Retry-After", text);
    box_answer_header(call->answer, "RateLimit-Reset", text);
    snprintf(text, sizeof text, "%" PRIu32, box_quota_get(quota, limit->setting));
    box_answer_header(call->answer, "RateLimit-Limit", text);
    box_answer_header(call->answer, "RateLimit-Remaining", "0");
    box_quota_told(quota, call->user, call->now_ms, call->now_ms + wait_s * 1000);
}

/* From four fifths of a minute's units on, an answer says how many are left. */
void box_graph_answered(struct box_call *call)
{
    struct box_quota *quota = box_cloud_quota(call->cloud);
    const struct box_limit *limit = &box_graph_limits[APP_MINUTE];
    if (call->method->meter != BOX_METER_GRAPH || box_quota_rules_now(quota) == BOX_QUOTA_OFF)
        return;
    const uint32_t most = box_quota_get(quota, limit->setting);
    const uint32_t used = box_quota_used(quota, call, limit);
    if ((uint64_t)used * 5 < (uint64_t)most * 4)
        return;
    char text[24];
    snprintf(text, sizeof text, "%" PRIu32, most);
    box_answer_header(call->answer, "RateLimit-Limit", text);
    snprintf(text, sizeof text, "%" PRIu32, used < most ? most - used : 0);
    box_answer_header(call->answer, "RateLimit-Remaining", text);
    snprintf(text, sizeof text, "%d", MINUTE_MS / 1000);
    box_answer_header(call->answer, "RateLimit-Reset", text);
}
