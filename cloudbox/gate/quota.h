/* quota.h - what the services allow, counted exactly.
 *
 * The limits are tables that services bring (struct box_limit); here they are counted in
 * sliding windows (cloudbox/record/window.h), one for each limit and user, project or
 * subject that meets it.
 *
 * A limit that binds: a user who got a time ("Retry after ...") and calls before it
 * is refused, which is recorded as a violation, and the time moves later: by 5 s, then
 * 10 s, ...  Calls that were already in flight when the time was sent (one second) are only
 * refused.
 *
 * Invariants:
 *   BQTA1  a call is let through only if no window would hold more than its limit.
 *   BQTA2  a refused call is charged only to limits whose refusals count; the record counts what
 *          was asked.
 *   BQTA3  the highest count reported is the true maximum over all windows.
 */
#ifndef BOX_QUOTA_H
#define BOX_QUOTA_H

#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"

/* Reads the services' tables. */
struct box_quota *box_quota_new(const struct box_options *options);
void box_quota_free(struct box_quota *quota);

/* Charges the call.  Not NULL: the limit that forbids it, and when it would fit. */
const struct box_limit *box_quota_charge(struct box_quota *quota, const struct box_call *call,
                                         uint64_t *retry_at_ms_out);
/* What the window of one of the service's limits holds for the call's user and project; it is not
 * one per subject. */
uint32_t box_quota_used(struct box_quota *quota, const struct box_call *call,
                        const struct box_limit *limit);
/* What a method costs under the rules in force. */
uint32_t box_quota_units(const struct box_quota *quota, const struct box_method *method);
/* Whether a limit of the service counts the call's units. */
bool box_quota_counts_units(const struct box_call *call);
/* The user may not call until `until_ms` (also by a fault). */
void box_quota_told(struct box_quota *quota, const struct box_user *user, uint64_t now_ms,
                    uint64_t until_ms);
/* The last "Retry after" time of a user; 0: none. */
uint64_t box_quota_told_until(struct box_quota *quota, const struct box_user *user);
/* For services that refuse in several ways. */
tide_rng *box_quota_rng(struct box_quota *quota);

/* Takes a slot in flight.  false: the method needs none, or there is none left, which
 * `over_out` says. */
bool box_quota_enter(struct box_quota *quota, const struct box_call *call,
                     const struct box_limit **over_out);
void box_quota_leave(struct box_quota *quota, uint32_t user_number, uint32_t slots);
uint32_t box_quota_in_flight(const struct box_quota *quota, uint32_t user_number);

/* "2026-09-11T20:00:00.000Z" */
enum { BOX_TIME_TEXT_BYTES = 32 };
void box_time_text(uint64_t unix_ms, char text_out[BOX_TIME_TEXT_BYTES]);

/* ---- changing limits while running (POST /_cloud/quota) ---- */

enum { BOX_QUOTA_SETTINGS_MAX = 100 };
/* The names of all settings; some may appear twice. */
size_t box_quota_settings(const struct box_quota *quota,
                          const char *names_out[BOX_QUOTA_SETTINGS_MAX]);
box_quota_rules box_quota_rules_now(const struct box_quota *quota);
/* With other rules the limits become those of the rules. */
void box_quota_set_rules(struct box_quota *quota, box_quota_rules rules);
/* All limits with that setting's name.  false: there is none. */
bool box_quota_set(struct box_quota *quota, const char *setting, uint32_t limit);
/* 0: there is no such setting. */
uint32_t box_quota_get(const struct box_quota *quota, const char *setting);
/* {"rules":"2026","user_units_per_minute":6000,...} */
json_t *box_quota_json(const struct box_quota *quota);
/* false: there are no such rules. */
bool box_quota_rules_of(tide_text name, box_quota_rules *rules_out);

#endif
