#include "cloudbox/gate/faults_spoil.h"

#include "base/check.h"
#include "cloudbox/gate/quota.h"

#include <stdio.h>

static void set_type(struct box_answer *answer, const char *type)
{
    (void)snprintf(answer->type, sizeof answer->type, "%s", type);
}

/* A front end that could not reach the service behind it. */
static void answer_html(struct box_call *call)
{
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

/* The two chat dialects have envelopes of their own. */
static void answer_chat(struct box_call *call, int status, const char *message)
{
    static const struct {
        int status;
        const char *anthropic;
        const char *openai;
    } types[] = {
        {401, "authentication_error", "invalid_request_error"},
        {403, "permission_error", "invalid_request_error"},
        {404, "not_found_error", "invalid_request_error"},
        {429, "rate_limit_error", "requests"},
        {500, "api_error", "server_error"},
        {502, "api_error", "server_error"},
        {503, "api_error", "server_error"},
        {504, "timeout_error", "server_error"},
    };
    size_t at = 0;
    while (at + 1 < sizeof types / sizeof types[0] && types[at].status != status)
        at++;
    json_t *value = NULL;
    if (strstr(call->method->path, "/messages") != NULL)
        value = json_pack("{s:s, s:{s:s, s:s}}", "type", "error", "error", "type",
                          types[at].anthropic, "message", message);
    else
        value = json_pack("{s:{s:s, s:s, s:n, s:n}}", "error", "message", message, "type",
                          types[at].openai, "param", "code");
    box_answer_clear(call->answer);
    box_answer_json(call->answer, status, value, false);
}

static void fail(struct box_call *call, int http, const char *domain, const char *reason,
                 const char *status, const char *message)
{
    if (call->method->meter == BOX_METER_CHAT)
        answer_chat(call, http, message);
    else
        box_fail(call, http, domain, reason, status, "%s", message);
}

static void answer_rate(struct box_call *call)
{
    if (call->method->meter == BOX_METER_CONSOLE || call->method->meter == BOX_METER_CONSOLE_OTHER)
        fail(call, 403, "usageLimits", "quotaExceeded", "PERMISSION_DENIED",
             "Search Analytics QPS quota exceeded. Learn about usage limits and how to "
             "increase them.");
    else
        fail(call, 403, "usageLimits", "rateLimitExceeded", "PERMISSION_DENIED",
             "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user' "
             "of service 'gmail.googleapis.com' for consumer 'project_number:100000000'.");
}

static void answer_time(struct box_call *call, uint32_t ms)
{
    const uint64_t until_ms = call->now_ms + ms;
    char time_text[BOX_TIME_TEXT_BYTES];
    char message[128];
    box_time_text(until_ms, time_text);
    (void)snprintf(message, sizeof message, "User-rate limit exceeded.  Retry after %s", time_text);
    fail(call, 429, "usageLimits", "rateLimitExceeded", "RESOURCE_EXHAUSTED", message);
    if (call->user != NULL)
        box_quota_told(box_cloud_quota(call->cloud), call->user, call->now_ms, until_ms);
}

static void answer_reset(struct box_call *call)
{
    box_answer_clear(call->answer);
    call->answer->status = 502; /* nobody sees it */
    call->answer->plan.fate = BOX_FATE_RESET;
    call->answer->plan.fate_at = BOX_AT_START;
}

void box_fault_answer(struct box_call *call, box_fault fault, uint32_t ms)
{
    switch (fault) {
    case BOX_FAULT_401:
        fail(call, 401, "global", "authError", "UNAUTHENTICATED", "Invalid Credentials");
        break;
    case BOX_FAULT_403:
        fail(call, 403, "global", "insufficientPermissions", "PERMISSION_DENIED",
             "Request had insufficient authentication scopes.");
        break;
    case BOX_FAULT_403_RATE:
        answer_rate(call);
        break;
    case BOX_FAULT_403_USER_RATE:
        fail(call, 403, "usageLimits", "userRateLimitExceeded", "PERMISSION_DENIED",
             "User Rate Limit Exceeded");
        break;
    case BOX_FAULT_403_DAILY:
        fail(call, 403, "usageLimits", "dailyLimitExceeded", "PERMISSION_DENIED",
             "Daily Limit Exceeded");
        break;
    case BOX_FAULT_404:
    case BOX_FAULT_HISTORY_EXPIRED:
        fail(call, 404, "global", "notFound", "NOT_FOUND", "Requested entity was not found.");
        break;
    case BOX_FAULT_429:
        fail(call, 429, "global", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
             "Resource has been exhausted (e.g. check quota).");
        break;
    case BOX_FAULT_429_TIME:
        answer_time(call, ms);
        break;
    case BOX_FAULT_500:
    case BOX_FAULT_POISON:
        fail(call, 500, "global", "backendError", "INTERNAL", "Backend Error");
        break;
    case BOX_FAULT_502:
        fail(call, 502, "global", "backendError", "UNAVAILABLE", "Backend Error");
        break;
    case BOX_FAULT_503:
        fail(call, 503, "global", "backendError", "UNAVAILABLE",
             "The service is currently unavailable.");
        break;
    case BOX_FAULT_504:
        fail(call, 504, "global", "backendError", "DEADLINE_EXCEEDED", "Deadline expired.");
        break;
    case BOX_FAULT_HTML:
        answer_html(call);
        break;
    default:
        TIDE_ASSERT(fault == BOX_FAULT_RESET_BEFORE);
        answer_reset(call);
        break;
    }
}

/* Keeps status and content type: only who looks into the body notices. */
static void spoil_garbage(struct box_answer *answer, tide_rng *rng)
{
    size_t bytes = answer->body.bytes < 16 ? 16 : answer->body.bytes;
    tide_buf_clear(&answer->body);
    char *to = tide_buf_reserve(&answer->body, bytes);
    TIDE_ASSERT(to != NULL);
    answer->body.bytes += bytes;
    for (; bytes >= 8; bytes -= 8, to += 8) {
        const uint64_t chance = tide_rng_next(rng);
        memcpy(to, &chance, 8);
    }
    const uint64_t chance = tide_rng_next(rng);
    memcpy(to, &chance, bytes);
    answer->body.data[0] = (char)0xff; /* never JSON by accident */
}

void box_fault_spoil(struct box_call *call, box_fault fault, uint32_t ms, tide_rng *rng)
{
    struct box_plan *plan = &call->answer->plan;

    switch (fault) {
    case BOX_FAULT_RESET_AFTER:
        plan->fate = BOX_FATE_RESET;
        /* Anywhere: before a byte came, between the headers, in the middle of the body. */
        plan->fate_at = (box_place)tide_rng_below(rng, 3);
        break;
    case BOX_FAULT_STALL_START:
    case BOX_FAULT_STALL_HEAD:
    case BOX_FAULT_STALL_BODY:
        plan->fate = BOX_FATE_STALL;
        plan->fate_at = (box_place)(BOX_AT_START + (fault - BOX_FAULT_STALL_START));
        plan->stall_ms = ms;
        break;
    case BOX_FAULT_TRUNCATE:
        plan->fate = BOX_FATE_TRUNCATE;
        plan->fate_at = BOX_IN_BODY;
        break;
    default:
        TIDE_ASSERT(fault == BOX_FAULT_GARBAGE);
        spoil_garbage(call->answer, rng);
        break;
    }
}
