/* message.c - requests, filters and answers of the control socket as JSON (control.h). */
#include "base/check.h"
#include "engine/control/control.h"

#include <stdio.h>

static const char *const op_names[TIDE_OPS] = {
    "ping",   "snapshot", "explain",        "retry",     "cancel",    "accept",     "pause",
    "resume", "halt",     "account_resume", "purge",     "bad_retry", "bad_accept", "alerts",
    "reload", "stop",     "enqueue",        "signed_in", "metrics",   "series",
};

static const char *const row_state_names[] = {"pending", "running", "done", "failed", "canceled"};
static const char *const bad_state_names[] = {"bad", "gone", "owed", "accepted", "retrying"};

static bool name_find(const char *const *names, size_t count, tide_text name, unsigned *index_out)
{
    for (unsigned i = 0; i < count; i++) {
        if (tide_text_equal(name, tide_text_of(names[i]))) {
            *index_out = i;
            return true;
        }
    }
    return false;
}

const char *tide_control_op_name(tide_control_op op)
{
    TIDE_ASSERT(op < TIDE_OPS);
    return op_names[op];
}

bool tide_control_op_parse(tide_text name, tide_control_op *op_out)
{
    unsigned index = 0;
    if (!name_find(op_names, TIDE_OPS, name, &index))
        return false;
    *op_out = (tide_control_op)index;
    return true;
}

/* The number comes from a file, so one without a name is shown as "unknown", not asserted. */
const char *tide_row_state_name(tide_row_state state)
{
    return (unsigned)state <= TIDE_ROW_CANCELED ? row_state_names[state] : "unknown";
}

bool tide_row_state_parse(tide_text name, tide_row_state *state_out)
{
    unsigned index = 0;
    if (!name_find(row_state_names, TIDE_ROW_CANCELED + 1, name, &index))
        return false;
    *state_out = (tide_row_state)index;
    return true;
}

const char *tide_bad_state_name(tide_bad_state state)
{
    return (unsigned)state <= TIDE_BAD_RETRYING ? bad_state_names[state] : "unknown";
}

bool tide_bad_state_parse(tide_text name, tide_bad_state *state_out)
{
    unsigned index = 0;
    if (!name_find(bad_state_names, TIDE_BAD_RETRYING + 1, name, &index))
        return false;
    *state_out = (tide_bad_state)index;
    return true;
}

/* ---- the command's side --------------------------------------------------------- */

void tide_control_request(tide_control_op op, tide_json *request)
{
    tide_json_object(request);
    tide_json_set_cstr(request, "op", tide_control_op_name(op));
}

void tide_control_filter_set(tide_json *request, const struct tide_control_filter *filter)
{
    tide_json object;
    tide_json_object(&object);
    if (filter->id != 0)
        tide_json_set_u64(&object, "id", filter->id);
    if (filter->cycle != 0)
        tide_json_set_u64(&object, "cycle", filter->cycle);
    if (filter->account != NULL)
        tide_json_set_cstr(&object, "account", filter->account);
    if (filter->kind != NULL)
        tide_json_set_cstr(&object, "kind", filter->kind);
    if (filter->state != NULL)
        tide_json_set_cstr(&object, "state", filter->state);
    if (filter->expects)
        tide_json_set_u64(&object, "expect", filter->expected);
    tide_json_set(request, "filter", &object);
}

tide_status tide_control_answer(const json_t *answer, tide_error *err)
{
    bool ok = false;
    tide_text name = TIDE_TEXT_NONE, text = TIDE_TEXT_NONE;
    if (!json_is_object(answer))
        return tide_error_set(err, TIDE_INVALID, "the engine's answer is not an object");
    tide_status rc = tide_json_get_bool(answer, "ok", &ok, err);
    if (rc != TIDE_OK)
        return TIDE_INVALID;
    if (ok)
        return TIDE_OK;
    if (tide_json_get_text(answer, "status", &name, err) != TIDE_OK ||
        tide_json_get_text(answer, "error", &text, err) != TIDE_OK)
        return TIDE_INVALID;
    tide_status status = tide_status_from_name(name.data); /* jansson's are terminated */
    if (status == TIDE_OK)
        return tide_error_set(err, TIDE_INVALID, "the engine's answer contradicts itself");
    return tide_error_set(err, status, "%.*s", (int)(text.bytes > 390 ? 390 : text.bytes),
                          text.data);
}

/* ---- the engine's side ----------------------------------------------------------- */

tide_status tide_control_op_read(const json_t *request, tide_control_op *op_out, tide_error *err)
{
    tide_text name = TIDE_TEXT_NONE;
    if (!json_is_object(request))
        return tide_error_set(err, TIDE_INVALID, "a request is an object with a field \"op\"");
    tide_status rc = tide_json_get_text(request, "op", &name, err);
    if (rc != TIDE_OK)
        return TIDE_INVALID;
    if (!tide_control_op_parse(name, op_out))
        return tide_error_set(err, TIDE_INVALID, "there is no op \"%.*s\"",
                              (int)(name.bytes > 60 ? 60 : name.bytes), name.data);
    return TIDE_OK;
}

tide_status tide_control_filter_find(const struct tide_control_filter *named, tide_ledger *ledger,
                                     struct tide_job_filter *filter_out, tide_error *err)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    tide_status rc = TIDE_OK;
    filter.id = named->id;
    filter.cycle = named->cycle;
    filter.expects = named->expects;
    filter.expected = named->expected;
    if (named->account != NULL && named->account[0] == '\0')
        filter.account = 0;
    else if (named->account != NULL)
        rc = tide_ledger_account_find(ledger, named->account, &filter.account, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no account \"%.200s\"", named->account);
    if (rc == TIDE_OK && named->kind != NULL) {
        bool paused = false;
        rc = tide_ledger_kind_find(ledger, named->kind, &filter.kind, &paused, err);
        if (rc == TIDE_NOT_FOUND)
            return tide_error_set(err, rc, "there is no kind \"%.200s\"", named->kind);
    }
    if (rc == TIDE_OK && named->state != NULL) {
        tide_row_state state = TIDE_ROW_PENDING;
        if (!tide_row_state_parse(tide_text_of(named->state), &state))
            return tide_error_set(err, TIDE_INVALID,
                                  "there is no state \"%.40s\"; states are pending, running, done, "
                                  "failed, canceled",
                                  named->state);
        filter.state = (int)state;
    }
    if (rc == TIDE_OK)
        *filter_out = filter;
    return rc;
}

static bool filter_key_is_known(const char *key)
{
    static const char *const keys[] = {"id", "cycle", "account", "kind", "state", "expect"};
    unsigned index = 0;
    return name_find(keys, sizeof keys / sizeof keys[0], tide_text_of(key), &index);
}

/* A missing field is fine, a wrong type is not. */
static tide_status optional(tide_status rc)
{
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_control_filter_read(const json_t *request, tide_ledger *ledger,
                                     struct tide_job_filter *filter_out, tide_error *err)
{
    const json_t *object = NULL;
    struct tide_control_filter named = {0};
    tide_text account = TIDE_TEXT_NONE, kind = TIDE_TEXT_NONE, state = TIDE_TEXT_NONE;
    tide_status rc = tide_json_get_object(request, "filter", &object, err);
    if (rc != TIDE_OK)
        return TIDE_INVALID;
    for (void *at = json_object_iter((json_t *)object); at != NULL;
         at = json_object_iter_next((json_t *)object, at))
        /* An unknown field is refused: ignored, it would make the command match more jobs. */
        if (!filter_key_is_known(json_object_iter_key(at)))
            return tide_error_set(err, TIDE_INVALID, "a filter has no field \"%.60s\"",
                                  json_object_iter_key(at));
    TIDE_TRY(optional(tide_json_get_u64(object, "id", &named.id, err)));
    TIDE_TRY(optional(tide_json_get_u64(object, "cycle", &named.cycle, err)));
    named.expects = json_object_get(object, "expect") != NULL;
    TIDE_TRY(optional(tide_json_get_u64(object, "expect", &named.expected, err)));
    TIDE_TRY(optional(tide_json_get_text(object, "account", &account, err)));
    TIDE_TRY(optional(tide_json_get_text(object, "kind", &kind, err)));
    TIDE_TRY(optional(tide_json_get_text(object, "state", &state, err)));
    named.account = account.data;
    named.kind = kind.data;
    named.state = state.data;
    return tide_control_filter_find(&named, ledger, filter_out, err);
}

void tide_control_ok(tide_json *answer)
{
    tide_json_object(answer);
    tide_json_set_bool(answer, "ok", true);
}

void tide_control_refusal(const tide_error *err, tide_json *answer)
{
    TIDE_ASSERT(err->status != TIDE_OK);
    tide_json_object(answer);
    tide_json_set_bool(answer, "ok", false);
    tide_json_set_cstr(answer, "status", tide_status_name(err->status));
    tide_json_set_cstr(answer, "error", err->text);
}
