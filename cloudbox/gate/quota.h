/* quota.h - what the providers allow, counted exactly.
 *
 * Sliding windows with a resolution of one millisecond: a charge at t counts in
 * [t, t + length).  A window holds one bucket for each millisecond in which
 * something was charged (each second for the 10-minute and day windows, rounded
 * to the strict side), so charging is O(1), the count is exact however many calls
 * there are, and a quiet user costs next to nothing.
 *
 * Gmail 2026: 6,000 units a minute per user and project, 1,200,000 per project;
 * legacy: 15,000 a minute per user.  In flight per user: 10, every part of a batch counts.
 * Search analytics: 1,200 calls a minute per site and per user, 40,000 a minute and
 * 30,000,000 a day per project, and a load quota in 10-minute and one-day windows whose price grows
 * with the range and with grouping by page or query; other console calls 20 a
 * second and 200 a minute per user.
 *
 * A user who was told a time ("Retry after ...") and asks before it is refused,
 * is written down by the referee, and the time moves later: by 5 s, then 10 s, ...
 * Calls that were on their way when the time was told (one second) only get refused.
 *
 * Invariants:
 *   Q1  a call is let through only if no window would hold more than its limit.
 *   Q2  a refused call is not charged, but the referee counts what was asked.
 *   Q3  the highest count reported is the true maximum over all windows.
 */
#ifndef BOX_QUOTA_H
#define BOX_QUOTA_H

#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"

/* One sliding window. */
typedef struct box_window box_window;
box_window *box_window_new(uint32_t length_ms, uint32_t step_ms);
void box_window_free(box_window *window);
/* What the window ending at now holds. */
uint64_t box_window_count(box_window *window, uint64_t now_ms);
void box_window_add(box_window *window, uint64_t now_ms, uint32_t amount);
uint64_t box_window_highest(const box_window *window);
/* When `amount` would fit below `limit`, at the earliest. */
uint64_t box_window_fits_at(box_window *window, uint64_t now_ms, uint64_t limit, uint32_t amount);

struct box_quota *box_quota_new(const struct box_options *options);
void box_quota_free(struct box_quota *quota);

typedef enum box_refusal {
    BOX_ALLOWED,
    BOX_OVER_USER_MINUTE, /* 403 or 429 variants in turn, by seed */
    BOX_OVER_PROJECT_MINUTE,
    BOX_OVER_CONCURRENCY, /* 429 "Too many concurrent requests for user" */
    BOX_OVER_SITE_MINUTE,
    BOX_OVER_CONSOLE_USER,
    BOX_OVER_CONSOLE_DAY,
    BOX_OVER_LOAD, /* 403 quotaExceeded, load */
    BOX_OVER_CHAT,
    BOX_REFUSALS,
} box_refusal;

/* Charges the call, or says why not; `retry_at_ms_out` when it would fit. */
box_refusal box_quota_charge(struct box_quota *quota, const struct box_call *call, uint32_t project,
                             uint64_t *retry_at_ms_out);
/* What a method costs under the rules in force. */
uint32_t box_quota_units(const struct box_quota *quota, const struct box_method *method);
/* The user was told to stay away until `until_ms` (also by a fault). */
void box_quota_told(struct box_quota *quota, const struct box_user *user, uint64_t now_ms,
                    uint64_t until_ms);
/* Slots in flight. */
bool box_quota_enter(struct box_quota *quota, const struct box_user *user);
void box_quota_leave(struct box_quota *quota, uint32_t user_number, uint32_t slots);
uint32_t box_quota_in_flight(const struct box_quota *quota, uint32_t user_number);
/* "user-minute", "concurrency", ...: the refusal's name in the record. */
const char *box_refusal_name(box_refusal refusal);
/* "2026-09-11T20:00:00.000Z" */
enum { BOX_TIME_TEXT_BYTES = 32 };
void box_time_text(uint64_t unix_ms, char text_out[BOX_TIME_TEXT_BYTES]);
/* Fills the answer as the real service would. */
void box_quota_refuse(struct box_call *call, box_refusal refusal, uint64_t retry_at_ms);

/* Limits can be changed while running (POST /_cloud/quota); 0 leaves as is.  With
 * other rules the units per user become those of the rules. */
struct box_quota_limits {
    box_quota_rules rules;
    uint32_t user_units_per_minute;
    uint32_t project_units_per_minute;
    uint32_t concurrency_max;
    uint32_t console_per_minute;
    uint32_t load_per_10_minutes;
    uint32_t load_per_day;
    uint32_t chat_per_minute;
};
void box_quota_set(struct box_quota *quota, const struct box_quota_limits *limits);
struct box_quota_limits box_quota_get(const struct box_quota *quota);
/* {"rules":"2026","user_units_per_minute":6000,...} */
json_t *box_quota_json(const struct box_quota *quota);
/* false: there are no such rules. */
bool box_quota_rules_of(tide_text name, box_quota_rules *rules_out);

#endif
