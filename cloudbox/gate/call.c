/* What handlers read of their call and how they answer. */
#include "base/check.h"
#include "base/json.h"
#include "cloudbox/google/fields.h"
#include "cloudbox/gate/service.h"

#include <inttypes.h>

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

void box_call_reply(struct box_call *call, json_t *value)
{
    TIDE_ASSERT(value != NULL);
    const tide_text fields = box_call_param(call, "fields");
    if (fields.bytes > 0) {
        json_t *part = box_fields_select(fields, value, call->scratch);
        TIDE_ASSERT(part != NULL); /* the gate has looked at it */
        json_decref(value);
        value = part;
    }
    const tide_text pretty = box_call_param(call, "prettyPrint");
    const bool compact =
        tide_text_equal(pretty, TIDE_TEXT("false")) || tide_text_equal(pretty, TIDE_TEXT("0"));
    box_answer_json(call->answer, 200, value, !compact);
}

void box_call_reply_empty(struct box_call *call)
{
    box_answer_clear(call->answer);
    call->answer->status = 204;
}
