/* Google's error envelope: {"error":{"code","message","errors":[...],"status"}}. */
#include "base/check.h"
#include "cloudbox/gate/service.h"

#include <stdarg.h>
#include <stdio.h>

static void fail(struct box_call *call, int http, const char *domain, const char *reason,
                 const char *status, const char *message)
{
    json_t *entry = json_object();
    json_object_set_new(entry, "message", box_json_text(tide_text_of(message)));
    json_object_set_new(entry, "domain", json_string(domain));
    json_object_set_new(entry, "reason", json_string(reason));
    if (http == 401) {
        json_object_set_new(entry, "location", json_string("Authorization"));
        json_object_set_new(entry, "locationType", json_string("header"));
    }
    json_t *error = json_object();
    json_object_set_new(error, "code", json_integer(http));
    json_object_set_new(error, "message", box_json_text(tide_text_of(message)));
    json_object_set_new(error, "errors", json_pack("[o]", entry));
    if (status != NULL)
        json_object_set_new(error, "status", json_string(status));
    box_answer_clear(call->answer);
    box_answer_json(call->answer, http, json_pack("{s:o}", "error", error), true);
    if (http == 401)
        box_answer_header(call->answer, "WWW-Authenticate",
                          "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"");
}

void box_fail(struct box_call *call, int http, const char *domain, const char *reason,
              const char *status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fail(call, http, domain, reason, status, message);
}

void box_fail_argument(struct box_call *call, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fail(call, 400, "global", "invalidArgument", "INVALID_ARGUMENT", message);
}

void box_fail_missing(struct box_call *call)
{
    fail(call, 404, "global", "notFound", "NOT_FOUND", "Requested entity was not found.");
}
