#include "cloudbox/google/style.h"

#include "base/check.h"
#include "cloudbox/google/fields.h"

/* {"error":{"code","message","errors":[...],"status"}} */
static void envelope(struct box_call *call, const struct box_problem *problem)
{
    const tide_text message = tide_text_of(problem->message);
    json_t *entry = json_object();
    json_object_set_new(entry, "message", box_json_text(message));
    json_object_set_new(entry, "domain", json_string(problem->domain));
    json_object_set_new(entry, "reason", json_string(problem->reason));
    if (problem->http == 401) {
        json_object_set_new(entry, "location", json_string("Authorization"));
        json_object_set_new(entry, "locationType", json_string("header"));
    }
    json_t *error = json_object();
    json_object_set_new(error, "code", json_integer(problem->http));
    json_object_set_new(error, "message", box_json_text(message));
    json_object_set_new(error, "errors", json_pack("[o]", entry));
    if (problem->status != NULL)
        json_object_set_new(error, "status", json_string(problem->status));
    box_answer_clear(call->answer);
    box_answer_json(call->answer, problem->http, json_pack("{s:o}", "error", error), true);
    if (problem->http == 401)
        box_answer_header(call->answer, "WWW-Authenticate",
                          "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"");
}

/* A field selection that cannot be parsed. */
static bool accept(struct box_call *call)
{
    const tide_text fields = box_call_param(call, "fields");
    if (fields.bytes == 0 || box_fields_valid(fields, call->scratch))
        return true;
    box_fail(call, 400, "global", "invalidParameter", "INVALID_ARGUMENT",
             "Invalid field selection %.*s", (int)(fields.bytes > 200 ? 200 : fields.bytes),
             fields.data);
    return false;
}

static void reply(struct box_call *call, json_t *value)
{
    const tide_text fields = box_call_param(call, "fields");
    if (fields.bytes > 0) {
        json_t *part = box_fields_select(fields, value, call->scratch);
        TIDE_ASSERT(part != NULL); /* accept() has parsed it */
        json_decref(value);
        value = part;
    }
    const tide_text pretty = box_call_param(call, "prettyPrint");
    const bool compact =
        tide_text_equal(pretty, TIDE_TEXT("false")) || tide_text_equal(pretty, TIDE_TEXT("0"));
    box_answer_json(call->answer, 200, value, !compact);
}

const struct box_style box_google_style = {
    .envelope = envelope,
    .accept = accept,
    .reply = reply,
};
