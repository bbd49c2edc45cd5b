/* referee.h - the record of what was asked: GET /_cloud/stats.
 *
 * It decides nothing and knows no service: it counts what the gate tells it.  Per method
 * and user: calls, units, answers by status, refusals by limit, bytes in and out; per user
 * and per subject (a site) the highest count in any sliding minute, offered and granted,
 * and the most calls in flight; violations: what a well behaved client never does
 * (crossing a limit, too many in flight, more than 100 parts, a page size beyond the
 * limit, calling before its "Retry after" time, using a token after its 401).
 *
 * Invariants:
 *   BREF1  every call is counted once, refused ones too (BCLD3).
 *   BREF2  offered >= granted; a window was crossed exactly when offered > limit.
 *   BREF3  memory is bounded.
 */
#ifndef BOX_REFEREE_H
#define BOX_REFEREE_H

#include "base/text.h"

#include <jansson.h>

/* The record, as GET /_cloud/stats gives it (?user=EMAIL: only that one,
 * ?fetched=1: with "ids").  What is marked * is added by the gate and the services:
 *
 *   {"now": ms, "since": ms,                                                        *
 *    "quota": {"rules":"2026", "user_units_per_minute", "project_units_per_minute", *
 *              "concurrency_max", "console_per_minute", "load_per_10_minutes",
 *              "load_per_day", "chat_per_minute"},
 *    "users": {"EMAIL": {
 *       "calls", "units",                      asked; units of refused calls too
 *       "granted_units_highest_in_60s", "offered_units_highest_in_60s",
 *       "in_flight_highest", "refused": {"user-minute": n, ...}, "violations": n,
 *       "bytes_in", "bytes_out",               bodies, without heads
 *       "methods": {"gmail.users.messages.get": {"calls", "units", "status": {"200": n}}},
 *       "fetched": {"messages": distinct, "total": n, "most": n, "ids": {"ID": n}}, *
 *       "changed": {"THREAD": {"labels": n, ...}}}},                              *
 *    "sites": {"SITE": {"calls", "granted_calls_highest_in_60s",
 *                       "offered_calls_highest_in_60s", "refused": {...}}},
 *    "chat_keys": {"KEY": {...}}               as sites
 *    "chat": {"KEY": {"answered", "repeated", "most", "obeyed", "after_billing", "in_tokens", *
 *                     "out_tokens"}},
 *    "nobody": {...}                           as a user: calls without sign-in
 *    "violations": [{"kind", "count", "first": [{"at": ms, "user", "detail"}]}],
 *    "strays": {"404": n},
 *    "push": {...}}                                                                 * */

struct box_referee;

/* `email` gives the address of a user's number (1 and on), NULL past the end. */
struct box_referee *box_referee_new(const char *(*email)(void *arg, uint32_t number), void *arg);
void box_referee_free(struct box_referee *referee); /* NULL is fine */

/* One call, after the gate knows its outcome.  The texts of names are constants. */
struct box_entry {
    uint64_t now_ms;
    uint32_t user; /* its number; 0: not signed in */
    const char *method;
    int status;
    uint32_t units;
    bool units_limited;   /* its units count in the user's windows */
    const char *refusal;  /* the limit that forbade it; NULL: granted */
    const char *subjects; /* "sites"; NULL: the call has no subject */
    uint32_t subject;     /* its number; 0: none */
    tide_text subject_name;
    uint64_t bytes_in; /* of the bodies */
    uint64_t bytes_out;
};
void box_referee_call(struct box_referee *referee, const struct box_entry *entry);
void box_referee_in_flight(struct box_referee *referee, uint32_t user, uint32_t slots);
/* `user` 0: not signed in. */
void box_referee_violation(struct box_referee *referee, uint32_t user, const char *kind,
                           tide_text detail, uint64_t now_ms);
/* A token with this hash was refused (401).  The first time is no violation; using it
 * again `grace_ms` later is the violation "dead-token". */
void box_referee_dead_token(struct box_referee *referee, uint64_t token_hash, uint64_t now_ms,
                            uint64_t grace_ms);
/* Calls outside the API (unknown path, broken request). */
void box_referee_stray(struct box_referee *referee, int status);

/* Adds the record to `stats`; `user` 0: of all. */
void box_referee_stats(const struct box_referee *referee, uint32_t user, json_t *stats);
/* The subjects of that kind, by name.  The caller owns it. */
json_t *box_referee_subjects(const struct box_referee *referee, const char *subjects);
void box_referee_reset(struct box_referee *referee, uint64_t now_ms);

#endif
