/* call.c - what handlers read of their call, and how they answer. */
#include "base/check.h"
#include "base/json.h"
#include "cloudbox/gate/inside.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void box_call_init(struct box_call *call, box_cloud *cloud, const struct box_request *request,
                   struct box_answer *answer)
{
    call->cloud = cloud;
    call->request = request;
    call->service = NULL;
    call->method = NULL;
    call->target.path = TIDE_TEXT_NONE;
    call->target.segments_count = 0;
    call->target.params_count = 0;
    call->args_count = 0;
    call->user = NULL;
    call->scopes = 0;
    call->project = 0;
    call->part = 0;
    call->now_ms = cloud->now_ms;
    call->scratch = NULL;
    call->answer = answer;
}

/* ---- reading ---- */

tide_text box_call_param(const struct box_call *call, const char *name)
{
    return box_param(call->target.params, call->target.params_count, name);
}

tide_text box_call_param_at(const struct box_call *call, const char *name, size_t nth)
{
    const tide_text wanted = tide_text_of(name);
    for (size_t i = 0; i < call->target.params_count; i++)
        if (tide_text_equal(call->target.params[i].name, wanted) && nth-- == 0)
            return call->target.params[i].value;
    return TIDE_TEXT_NONE;
}

bool box_call_flag(const struct box_call *call, const char *name)
{
    const tide_text value = box_call_param(call, name);
    return tide_text_equal(value, TIDE_TEXT("true")) || tide_text_equal(value, TIDE_TEXT("1"));
}

bool box_call_number(struct box_call *call, const char *name, uint64_t low, uint64_t high,
                     uint64_t fallback, uint64_t *number_out)
{
    const tide_text value = box_call_param(call, name);
    uint64_t number = fallback;
    if (value.data != NULL && !tide_text_to_u64(value, &number)) {
        box_fail_argument(call, "Invalid value at '%s', \"%.*s\"", name,
                          (int)(value.bytes > 100 ? 100 : value.bytes), value.data);
        return false;
    }
    if (number < low || number > high) {
        box_fail_argument(
            call, "Invalid value at '%s': %" PRIu64 ". Allowed are %" PRIu64 " to %" PRIu64 ".",
            name, number, low, high);
        return false;
    }
    *number_out = number;
    return true;
}

json_t *box_call_body(struct box_call *call)
{
    const tide_text body = call->request->body;
    if (body.bytes == 0)
        return json_object();
    json_t *value = NULL;
    tide_error err = {0};
    if (tide_json_parse(body, &value, &err) != TIDE_OK) {
        box_fail(call, 400, "global", "parseError", "INVALID_ARGUMENT",
                 "Invalid JSON payload received. %s", err.text);
        return NULL;
    }
    if (!json_is_object(value)) {
        json_decref(value);
        box_fail(call, 400, "global", "badRequest", "INVALID_ARGUMENT",
                 "Invalid JSON payload received. Root element must be a message.");
        return NULL;
    }
    return value;
}

/* ---- answering ---- */

static const struct box_style *style_of(const struct box_call *call)
{
    static const struct box_style plain = {0};
    if (call->service != NULL && call->service->style != NULL)
        return call->service->style;
    return call->cloud->style == NULL ? &plain : call->cloud->style;
}

void box_call_reply(struct box_call *call, json_t *value)
{
    TIDE_ASSERT(value != NULL);
    const struct box_style *style = style_of(call);
    if (style->reply != NULL)
        style->reply(call, value);
    else
        box_answer_json(call->answer, 200, value, true);
}

void box_call_reply_empty(struct box_call *call)
{
    box_answer_clear(call->answer);
    call->answer->status = 204;
}

bool box_call_accept(struct box_call *call)
{
    const struct box_style *style = style_of(call);
    return style->accept == NULL || style->accept(call);
}

/* ---- errors ---- */

void box_fail_with(struct box_call *call, const struct box_problem *problem)
{
    const struct box_style *style = style_of(call);
    if (style->envelope != NULL) {
        style->envelope(call, problem);
        return;
    }
    box_answer_clear(call->answer);
    box_answer_json(call->answer, problem->http,
                    json_pack("{s:{s:i, s:o}}", "error", "code", problem->http, "message",
                              box_json_text(tide_text_of(problem->message))),
                    true);
}

void box_fail(struct box_call *call, int http, const char *domain, const char *reason,
              const char *status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    box_fail_with(call, &(struct box_problem){http, domain, reason, status, message});
}

void box_fail_argument(struct box_call *call, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    box_fail(call, 400, "global", "invalidArgument", "INVALID_ARGUMENT", "%s", message);
}

void box_fail_missing(struct box_call *call)
{
    box_fail(call, 404, "global", "notFound", "NOT_FOUND", "Requested entity was not found.");
}

void box_call_violation(const struct box_call *call, const char *kind, tide_text detail)
{
    box_referee_violation(call->cloud->referee, call->user == NULL ? 0 : call->user->number, kind,
                          detail, call->cloud->now_ms);
}
