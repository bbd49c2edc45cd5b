/* limits.c - what Gmail allows, and how it refuses.
 *
 * 2026: 6,000 units a minute per user and project, 1,200,000 per project; legacy: 15,000 a
 * minute per user.  In flight per user: 10 (as observed), every part of a batch counts. */
#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "cloudbox/gate/quota.h"

enum {
    MINUTE_MS = 60000,
    PROJECT_NUMBER = 100000000, /* of project 0, in texts */
};

enum { USER_MINUTE, PROJECT_MINUTE, IN_FLIGHT };

const struct box_limit box_gmail_limits[BOX_GMAIL_LIMITS] = {
    [USER_MINUTE] = {.name = "user-minute",
                     .setting = "user_units_per_minute",
                     .meter = BOX_METER_GMAIL,
                     .whose = BOX_PER_USER | BOX_PER_PROJECT,
                     .counted = BOX_UNITS,
                     .window_ms = MINUTE_MS,
                     .step_ms = 1,
                     .limit = 6000,
                     .limit_legacy = 15000,
                     .binds = true},
    [PROJECT_MINUTE] = {.name = "project-minute",
                        .setting = "project_units_per_minute",
                        .meter = BOX_METER_GMAIL,
                        .whose = BOX_PER_PROJECT,
                        .counted = BOX_UNITS,
                        .window_ms = MINUTE_MS,
                        .step_ms = 1,
                        .limit = 1200000},
    [IN_FLIGHT] = {.name = "concurrency",
                   .setting = "concurrency_max",
                   .meter = BOX_METER_GMAIL,
                   .whose = BOX_PER_USER,
                   .limit = 10},
};

#define QUOTA_METRIC                                                                               \
    "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' of "        \
    "service 'gmail.googleapis.com' for consumer 'project_number:"

const struct box_problem box_gmail_rate = {403, "usageLimits", "rateLimitExceeded",
                                           "PERMISSION_DENIED", QUOTA_METRIC "100000000'."};

/* Google answers the same situation in four ways; clients must know them all. */
static void refuse_user_minute(struct box_call *call, uint64_t retry_at_ms)
{
    struct box_quota *quota = box_cloud_quota(call->cloud);
    char time_text[BOX_TIME_TEXT_BYTES];
    uint64_t variant = tide_rng_below(box_quota_rng(quota), 4);
    /* A user who waits for a time must learn when it moved. */
    if (call->user != NULL && box_quota_told_until(quota, call->user) > call->now_ms)
        variant = 2;
    switch (variant) {
    case 0:
        box_fail(call, 403, "usageLimits", "rateLimitExceeded", "PERMISSION_DENIED",
                 QUOTA_METRIC "%u'.", PROJECT_NUMBER + call->project);
        break;
    case 1:
        box_fail(call, 403, "usageLimits", "userRateLimitExceeded", "PERMISSION_DENIED",
                 "User Rate Limit Exceeded");
        break;
    case 2:
        box_time_text(retry_at_ms, time_text);
        box_fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                 "User-rate limit exceeded.  Retry after %s", time_text);
        if (call->user != NULL)
            box_quota_told(quota, call->user, call->now_ms, retry_at_ms);
        break;
    default:
        box_fail(call, 429, "global", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                 "Resource has been exhausted (e.g. check quota).");
        break;
    }
}

void box_gmail_refuse(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms)
{
    if (limit == &box_gmail_limits[USER_MINUTE])
        refuse_user_minute(call, retry_at_ms);
    else if (limit == &box_gmail_limits[IN_FLIGHT])
        box_fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                 "Too many concurrent requests for user");
    else
        box_fail(call, 403, "usageLimits", "rateLimitExceeded", "PERMISSION_DENIED",
                 "Rate Limit Exceeded");
}
