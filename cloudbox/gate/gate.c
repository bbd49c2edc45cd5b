/* gate.c - what every call goes through, whatever service it belongs to:
 * route, authenticate, check scope and user, take a slot in flight, charge,
 * draw a fault, run the handler, spoil the answer if a fault says so, record.
 *
 * The order matters.  A call that nobody is signed in for is charged to nobody.
 * A slot is taken before the charge, since a call that finds no slot costs no
 * units.  Faults come behind the charge: a failed call has its price (the
 * strict reading of what Google does). */
#include "base/check.h"
#include "cloudbox/google/fields.h"
#include "cloudbox/gate/inside.h"

#include <ctype.h>
#include <strings.h>

/* ---- routing ---- */

/* Takes the next segment of a pattern; false at its end. */
static bool pattern_next(const char **pattern, tide_text *segment_out)
{
    if (**pattern != '/')
        return false;
    const char *start = *pattern + 1;
    const char *end = strchr(start, '/');
    *segment_out = (tide_text){start, end == NULL ? strlen(start) : (size_t)(end - start)};
    *pattern = end == NULL ? start + segment_out->bytes : end;
    return true;
}

/* The path from its segment `at` on, as it stands. */
static tide_text rest_of_path(tide_text path, size_t at)
{
    tide_text rest = {path.data + 1, path.bytes - 1};
    for (size_t i = 0; i < at; i++) {
        const char *slash = memchr(rest.data, '/', rest.bytes);
        TIDE_ASSERT(slash != NULL); /* the path was split at its slashes */
        rest.bytes -= (size_t)(slash + 1 - rest.data);
        rest.data = slash + 1;
    }
    return rest;
}

/* "{id}:verb" and the like are not among the APIs we know: a braced segment is
 * one argument, anything else is literal. */
static bool pattern_matches(const char *pattern, struct box_call *call, tide_text *user_out)
{
    const struct box_target *target = &call->target;
    tide_text want;
    size_t at = 0;
    call->args_count = 0;
    *user_out = TIDE_TEXT_NONE;
    while (pattern_next(&pattern, &want)) {
        if (want.bytes > 2 && want.data[0] == '{' && want.data[1] == '+') {
            if (at == target->segments_count)
                return false;
            call->args[call->args_count++] = rest_of_path(target->path, at);
            return true;
        }
        if (at == target->segments_count)
            return false;
        const tide_text have = target->segments[at++];
        if (want.bytes > 0 && want.data[0] == '{') {
            if (have.bytes == 0)
                return false;
            if (tide_text_equal(want, TIDE_TEXT("{userId}")))
                *user_out = have;
            else
                call->args[call->args_count++] = have;
        } else if (!tide_text_equal(want, have)) {
            return false;
        }
    }
    return at == target->segments_count;
}

typedef enum route { ROUTE_FOUND, ROUTE_NO_PATH, ROUTE_NO_VERB } route;

static route find_method(struct box_call *call, tide_text *user_out)
{
    route found = ROUTE_NO_PATH;
    for (const struct box_service *const *service = call->cloud->options.services; *service != NULL;
         service++) {
        for (size_t i = 0; i < (*service)->methods_count; i++) {
            const struct box_method *method = &(*service)->methods[i];
            if (!pattern_matches(method->path, call, user_out))
                continue;
            if (method->verb == call->request->verb) {
                call->method = method;
                return ROUTE_FOUND;
            }
            found = ROUTE_NO_VERB;
        }
    }
    return found;
}

/* ---- who is asking ---- */

static tide_text bearer_of(const struct box_call *call)
{
    const tide_text header = box_request_header(call->request, "Authorization");
    if (header.bytes > 7 && strncasecmp(header.data, "Bearer ", 7) == 0)
        return (tide_text){header.data + 7, header.bytes - 7};
    return box_call_param(call, "access_token");
}

static bool same_address(const char *email, tide_text text)
{
    return strlen(email) == text.bytes && strncasecmp(email, text.data, text.bytes) == 0;
}

/* false: the answer says why not. */
static bool admit(struct box_call *call, tide_text user, struct box_principal *principal)
{
    if (call->method->scopes == 0)
        return true;
    const tide_text token = bearer_of(call);
    if (token.bytes == 0) {
        box_fail(call, 401, "global", "required", "UNAUTHENTICATED", "Login Required.");
        return false;
    }
    if (!box_auth_check(call->cloud->auth, token, call->now_ms, principal)) {
        box_fail(call, 401, "global", "authError", "UNAUTHENTICATED", "Invalid Credentials");
        box_referee_dead_token(call->cloud->referee, token);
        return false;
    }
    call->user = principal->user;
    call->scopes = principal->scopes;
    if ((call->scopes & call->method->scopes) == 0) {
        box_fail(call, 403, "global", "insufficientPermissions", "PERMISSION_DENIED",
                 "Request had insufficient authentication scopes.");
        return false;
    }
    if (user.data != NULL && !tide_text_equal(user, TIDE_TEXT("me")) &&
        !same_address(call->user->email, user)) {
        box_fail(call, 403, "global", "forbidden", "PERMISSION_DENIED", "Delegation denied for %s",
                 call->user->email);
        return false;
    }
    return true;
}

/* ---- price and place ---- */

/* Takes a slot and pays; on refusal neither is kept. */
static box_refusal charge(struct box_call *call, uint32_t project)
{
    struct box_quota *quota = call->cloud->quota;
    const bool in_flight = call->method->meter == BOX_METER_GMAIL && call->user != NULL;
    if (in_flight && !box_quota_enter(quota, call->user)) {
        box_quota_refuse(call, BOX_OVER_CONCURRENCY, 0);
        return BOX_OVER_CONCURRENCY;
    }
    uint64_t retry_at_ms = 0;
    const box_refusal refusal = box_quota_charge(quota, call, project, &retry_at_ms);
    if (refusal != BOX_ALLOWED) {
        if (in_flight)
            box_quota_leave(quota, call->user->number, 1);
        box_quota_refuse(call, refusal, retry_at_ms);
        return refusal;
    }
    if (in_flight) {
        call->answer->ticket = (struct box_ticket){call->user->number, 1};
        box_referee_in_flight(call->cloud->referee, call->user,
                              box_quota_in_flight(quota, call->user->number));
    }
    return BOX_ALLOWED;
}

static void add_latency(struct box_call *call)
{
    const struct box_options *options = &call->cloud->options;
    if (call->method->meter == BOX_METER_NONE)
        return;
    call->answer->plan.delay_ms += options->latency_ms;
    if (options->jitter_ms > 0)
        call->answer->plan.delay_ms +=
            (uint32_t)tide_rng_below(&call->cloud->rng, options->jitter_ms);
}

/* ---- the gate ---- */

/* A selection that is none is refused before the handler, which would have done its
 * work by the time it answers (B2).  false: answered with 400. */
static bool fields_fit(struct box_call *call)
{
    const tide_text fields = box_call_param(call, "fields");
    if (fields.bytes == 0 || box_fields_valid(fields, call->scratch))
        return true;
    box_fail(call, 400, "global", "invalidParameter", "INVALID_ARGUMENT",
             "Invalid field selection %.*s", (int)(fields.bytes > 200 ? 200 : fields.bytes),
             fields.data);
    return false;
}

static void serve_method(struct box_call *call, tide_text user)
{
    struct box_principal principal = {0};
    if (!admit(call, user, &principal)) {
        box_referee_call(call->cloud->referee, call, BOX_ALLOWED, 0);
        return;
    }
    if (call->user != NULL) {
        box_mailbox_clock(call->user->mailbox, call->now_ms);
        box_mailbox_history_expire(call->user->mailbox, call->now_ms);
    }
    const box_refusal refusal = charge(call, principal.project);
    if (refusal == BOX_ALLOWED) {
        add_latency(call);
        if (!box_faults_before(call->cloud->faults, call)) {
            if (fields_fit(call))
                call->method->handle(call);
            box_faults_after(call->cloud->faults, call);
        }
    }
    box_referee_call(call->cloud->referee, call, refusal,
                     box_quota_units(call->cloud->quota, call->method));
}

/* A call that no method takes. */
static void serve_stray(struct box_call *call, int status, const char *message)
{
    box_fail(call, status, "global", status == 404 ? "notFound" : "badRequest",
             status == 404 ? "NOT_FOUND" : "INVALID_ARGUMENT", "%s", message);
    box_referee_stray(call->cloud->referee, status);
}

void box_gate_call(box_cloud *cloud, const struct box_request *request, uint32_t part,
                   struct box_answer *answer)
{
    tide_arena_reset(&cloud->scratch);
    struct box_call call;
    call.cloud = cloud;
    call.request = request;
    call.method = NULL;
    call.args_count = 0;
    call.user = NULL;
    call.scopes = 0;
    call.part = part;
    call.now_ms = cloud->now_ms;
    call.scratch = &cloud->scratch;
    call.answer = answer;

    if (!box_target_parse(request->target, call.scratch, &call.target)) {
        call.target.params_count = 0;
        serve_stray(&call, 400, "The request target is malformed.");
        return;
    }
    tide_text user = TIDE_TEXT_NONE;
    switch (find_method(&call, &user)) {
    case ROUTE_FOUND:
        serve_method(&call, user);
        break;
    case ROUTE_NO_VERB:
        serve_stray(&call, 405, "The method is not allowed for this path.");
        break;
    case ROUTE_NO_PATH:
        serve_stray(&call, 404, "The requested URL was not found on this server.");
        break;
    }
}
