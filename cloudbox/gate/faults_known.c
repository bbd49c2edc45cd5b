/* faults_known.c - the faults that calls of any service can meet; the rules are in faults.c. */
#include "base/check.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/quota.h"

#include <stdio.h>

/* ---- instead of the handler ---- */

static void set_type(struct box_answer *answer, const char *type)
{
    (void)snprintf(answer->type, sizeof answer->type, "%s", type);
}

/* A front end that could not reach the service behind it. */
static void answer_html(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_answer_clear(call->answer);
    call->answer->status = 502;
    set_type(call->answer, "text/html; charset=UTF-8");
    box_add_cstr(&call->answer->body,
                 "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n"
                 "<title>Error 502 (Server Error)!!1</title>\n"
                 "<p><b>502.</b> <ins>That\xe2\x80\x99s an error.</ins>\n"
                 "<p>The server encountered a temporary error and could not complete your "
                 "request.<p>Please try again in 30 seconds.  <ins>That\xe2\x80\x99s all we "
                 "know.</ins>\n");
}

/* A limit's own words, where the service has them. */
static void answer_rate(struct box_call *call, const struct box_strike *strike)
{
    const bool has = call->service != NULL && call->service->rate != NULL;
    box_fail_with(call, has ? call->service->rate : &strike->fault->problem);
}

static void answer_time(struct box_call *call, const struct box_strike *strike)
{
    const uint64_t until_ms = call->now_ms + strike->ms;
    char time_text[BOX_TIME_TEXT_BYTES];
    box_time_text(until_ms, time_text);
    box_fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
             "User-rate limit exceeded.  Retry after %s", time_text);
    if (call->user != NULL)
        box_quota_told(box_cloud_quota(call->cloud), call->user, call->now_ms, until_ms);
}

static void answer_reset(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_answer_clear(call->answer);
    call->answer->status = 502; /* in the record only */
    call->answer->plan.fate = BOX_FATE_RESET;
    call->answer->plan.fate_at = BOX_AT_START;
}

/* ---- after the handler ---- */

/* Anywhere: before the first byte, between the headers, in the middle of the body. */
static void reset_after(struct box_call *call, const struct box_strike *strike)
{
    call->answer->plan.fate = BOX_FATE_RESET;
    call->answer->plan.fate_at = (box_place)tide_rng_below(strike->rng, 3);
}

static void stall(struct box_call *call, const struct box_strike *strike, box_place place)
{
    call->answer->plan.fate = BOX_FATE_STALL;
    call->answer->plan.fate_at = place;
    call->answer->plan.stall_ms = strike->ms;
}

static void stall_start(struct box_call *call, const struct box_strike *strike)
{
    stall(call, strike, BOX_AT_START);
}

static void stall_head(struct box_call *call, const struct box_strike *strike)
{
    stall(call, strike, BOX_IN_HEAD);
}

static void stall_body(struct box_call *call, const struct box_strike *strike)
{
    stall(call, strike, BOX_IN_BODY);
}

static void truncate_body(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    call->answer->plan.fate = BOX_FATE_TRUNCATE;
    call->answer->plan.fate_at = BOX_IN_BODY;
}

/* Keeps status and content type: only a client that reads the body notices.  A body
 * with a source becomes a short one. */
static void garble(struct box_call *call, const struct box_strike *strike)
{
    tide_buf *body = &call->answer->body;
    size_t bytes = body->bytes < 16 ? 16 : body->bytes;
    box_answer_source(call->answer, NULL);
    char *to = tide_buf_reserve(body, bytes);
    TIDE_ASSERT(to != NULL);
    body->bytes += bytes;
    for (; bytes >= 8; bytes -= 8, to += 8) {
        const uint64_t chance = tide_rng_next(strike->rng);
        memcpy(to, &chance, 8);
    }
    const uint64_t chance = tide_rng_next(strike->rng);
    memcpy(to, &chance, bytes);
    body->data[0] = (char)0xff; /* never JSON by accident */
}

/* ---- the table ---- */

#define PROBLEM(http, domain, reason, status, text) .problem = {http, domain, reason, status, text}
#define RATE                                        "usageLimits"

const struct box_fault box_faults_known[] = {
    {"401", BOX_ANSWERS,
     PROBLEM(401, "global", "authError", "UNAUTHENTICATED", "Invalid Credentials")},
    {"403", BOX_ANSWERS,
     PROBLEM(403, "global", "insufficientPermissions", "PERMISSION_DENIED",
             "Request had insufficient authentication scopes.")},
    {"403-rate", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(403, RATE, "rateLimitExceeded", "PERMISSION_DENIED", "Rate Limit Exceeded"),
     .act = answer_rate},
    {"403-user-rate", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(403, RATE, "userRateLimitExceeded", "PERMISSION_DENIED", "User Rate Limit Exceeded")},
    {"403-daily", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(403, RATE, "dailyLimitExceeded", "PERMISSION_DENIED", "Daily Limit Exceeded")},
    {"404", BOX_ANSWERS,
     PROBLEM(404, "global", "notFound", "NOT_FOUND", "Requested entity was not found.")},
    {"429", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(429, "global", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
             "Resource has been exhausted (e.g. check quota).")},
    {"429-time", BOX_ANSWERS, BOX_TAKES_MS, 10000, .act = answer_time},
    {"500", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(500, "global", "backendError", "INTERNAL", "Backend Error")},
    {"502", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(502, "global", "backendError", "UNAVAILABLE", "Backend Error")},
    {"503", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(503, "global", "backendError", "UNAVAILABLE",
             "The service is currently unavailable.")},
    {"504", BOX_ANSWERS, BOX_TAKES_RETRY,
     PROBLEM(504, "global", "backendError", "DEADLINE_EXCEEDED", "Deadline expired.")},
    {"html", BOX_ANSWERS, .act = answer_html},
    {"poison", BOX_ANSWERS, .means = BOX_BY_ITEM,
     PROBLEM(500, "global", "backendError", "INTERNAL", "Backend Error")},
    {"reset-before", BOX_ANSWERS, .act = answer_reset},
    {"reset-after", BOX_SPOILS, .act = reset_after},
    {"stall-start", BOX_SPOILS, BOX_TAKES_MS, 30000, .act = stall_start},
    {"stall-head", BOX_SPOILS, BOX_TAKES_MS, 30000, .act = stall_head},
    {"stall-body", BOX_SPOILS, BOX_TAKES_MS, 30000, .act = stall_body},
    {"truncate", BOX_SPOILS, .act = truncate_body},
    {"garbage", BOX_SPOILS, .act = garble},
    {"latency", BOX_ADDS, .takes = BOX_TAKES_MS | BOX_NEEDS_MS | BOX_TAKES_JITTER},
    {"held", BOX_ADDS, .means = BOX_HOLDS},
    {"slow", BOX_ADDS, .takes = BOX_NEEDS_SPEED},
    {"batch-missing", BOX_ASKED, .means = BOX_OF_BATCH},
    {"batch-extra", BOX_ASKED, .means = BOX_OF_BATCH},
    {"batch-reorder", BOX_ASKED, .means = BOX_OF_BATCH},
};
const size_t box_faults_known_count = sizeof box_faults_known / sizeof box_faults_known[0];
