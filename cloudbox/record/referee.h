/* referee.h - the record of what was really asked: GET /_cloud/stats.
 *
 * It decides nothing.  Per method and user: calls, units, answers by status,
 * refusals by kind, bytes in and out; per user and site the highest count in
 * any sliding window, offered and granted, and the most in flight; per message
 * how often it was fetched with its body; violations: what a well behaved client
 * never does (crossing a window, too many in flight, more than 100 parts, a
 * page size beyond the limit, asking again before the time it was told, using a dead token
 * after a 401).
 *
 * Invariants:
 *   R1  every call is counted once, refused ones too (B3).
 *   R2  offered >= granted; a window was crossed exactly when offered > limit.
 *   R3  memory is bounded: one byte-sized counter per message slot, saturating at 255.
 */
#ifndef BOX_REFEREE_H
#define BOX_REFEREE_H

#include "cloudbox/gate/quota.h"

/* The record, as GET /_cloud/stats gives it (?user=EMAIL: only that one,
 * ?fetched=1: with "ids"):
 *
 *   {"now": ms, "since": ms,
 *    "quota": {"rules":"2026", "user_units_per_minute", "project_units_per_minute",
 *              "concurrency_max", "console_per_minute", "load_per_10_minutes",
 *              "load_per_day", "chat_per_minute"},
 *    "users": {"EMAIL": {
 *       "calls", "units",                      asked; units of refused calls too
 *       "granted_units_highest_in_60s", "offered_units_highest_in_60s",
 *       "in_flight_highest", "refused": {"user-minute": n, ...}, "violations": n,
 *       "bytes_in", "bytes_out",               bodies, without heads
 *       "methods": {"gmail.users.messages.get": {"calls", "units", "status": {"200": n}}},
 *       "fetched": {"messages": distinct, "total": n, "most": n, "ids": {"ID": n}}}},
 *    "sites": {"SITE": {"calls", "granted_calls_highest_in_60s",
 *                       "offered_calls_highest_in_60s", "refused": {...}}},
 *    "nobody": {...}                           as a user: calls without sign-in
 *    "violations": [{"kind", "count", "first": [{"at": ms, "user", "detail"}]}],
 *    "strays": {"404": n},
 *    "push": {...}}                            cloudbox/push/push.h
 *
 * "total" and "most" are exact up to 255 fetches of one message. */

struct box_referee *box_referee_new(box_cloud *cloud);
void box_referee_free(struct box_referee *referee);

/* After the gate knows what became of a call.  `bytes_out` is the body's. */
void box_referee_call(struct box_referee *referee, const struct box_call *call, box_refusal refusal,
                      uint32_t units);
void box_referee_in_flight(struct box_referee *referee, const struct box_user *user,
                           uint32_t slots);
/* A body was given out. */
void box_referee_fetched(struct box_referee *referee, const struct box_user *user, uint32_t slot);
void box_referee_violation(struct box_referee *referee, const struct box_user *user,
                           const char *kind);
/* The same with words about it; `user` may be NULL. */
void box_referee_violation_of(struct box_referee *referee, const struct box_user *user,
                              const char *kind, tide_text detail);
/* A token was refused (401).  The first time is life; using it again two seconds
 * later is the violation "dead-token". */
void box_referee_dead_token(struct box_referee *referee, tide_text token);
/* Calls outside the API (unknown path, broken request). */
void box_referee_stray(struct box_referee *referee, int status);

/* The whole record; `user` NULL: all of them.  The caller owns it.  With
 * `fetched` also the message ids that were fetched, with their counts. */
json_t *box_referee_stats(struct box_referee *referee, const struct box_user *user, bool fetched);
void box_referee_reset(struct box_referee *referee);

#endif
