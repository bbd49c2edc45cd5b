#include "cloudbox/microsoft/style.h"

#include "base/hash.h"
#include "cloudbox/gate/quota.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* An error with codes of Graph's own has this domain; the gate's have Google's words. */
static const char own[] = "graph";

struct words {
    int http;
    const char *code;
    const char *inner;
};

static struct words words_of(const struct box_problem *problem)
{
    static const struct words known[] = {
        {401, "InvalidAuthenticationToken", NULL},
        {403, "accessDenied", NULL},
        {404, "itemNotFound", NULL},
        {405, "notAllowed", NULL},
        {413, "invalidRequest", "maxFileSizeExceeded"},
        {429, "activityLimitReached", "throttledRequest"},
        {500, "generalException", NULL},
        {502, "generalException", NULL},
        {503, "serviceNotAvailable", NULL},
        {504, "generalException", NULL},
    };
    if (problem->domain == own)
        return (struct words){problem->http, problem->reason, problem->status};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].http == problem->http)
            return known[i];
    return (struct words){problem->http, "invalidRequest", NULL};
}

/* The same for the same request at the same time, so that a run can be repeated (BCLD1). */
static void request_id(const struct box_call *call, char text_out[40])
{
    const uint64_t hash = tide_hash(call->now_ms ^ TIDE_HASH_START, call->request->target);
    snprintf(text_out, 40, "%08" PRIx64 "-%04" PRIx64 "-4%03" PRIx64 "-8%03" PRIx64 "-%012" PRIx64,
             hash >> 32, hash >> 16 & 0xffff, hash & 0xfff, call->now_ms & 0xfff,
             (hash * 31) >> 16);
}

static void envelope(struct box_call *call, const struct box_problem *problem)
{
    const struct words words = words_of(problem);
    char id[40], date[BOX_TIME_TEXT_BYTES];
    request_id(call, id);
    box_time_text(call->now_ms, date);
    date[19] = '\0'; /* without a fraction */
    json_t *inner =
        json_pack("{s:s, s:s, s:s}", "date", date, "request-id", id, "client-request-id", id);
    if (words.inner != NULL)
        json_object_set_new(inner, "code", json_string(words.inner));
    json_t *error = json_pack("{s:s, s:o, s:o}", "code", words.code, "message",
                              box_json_text(tide_text_of(problem->message)), "innerError", inner);
    box_answer_clear(call->answer);
    box_answer_json(call->answer, problem->http, json_pack("{s:o}", "error", error), false);
    box_answer_header(call->answer, "request-id", id);
    if (problem->http == 401)
        box_answer_header(call->answer, "WWW-Authenticate",
                          "Bearer realm=\"\", "
                          "authorization_uri=\"https://login.microsoftonline.com/common/oauth2/"
                          "authorize\", client_id=\"00000003-0000-0000-c000-000000000000\"");
}

static void reply(struct box_call *call, json_t *value)
{
    box_answer_json(call->answer, 200, value, false);
}

const struct box_style box_graph_style = {
    .envelope = envelope,
    .reply = reply,
};

void box_graph_fail(struct box_call *call, int http, const char *code, const char *inner,
                    const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    box_fail_with(call, &(struct box_problem){http, own, code, inner, message});
}

void box_graph_missing(struct box_call *call)
{
    box_graph_fail(call, 404, "itemNotFound", NULL, "The resource could not be found.");
}
