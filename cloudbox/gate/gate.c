/* gate.c - the path of every call, whatever service it belongs to:
 * route, authenticate, check scope and user, take a slot in flight, charge,
 * draw a fault, run the handler, spoil the answer if a fault says so, record.
 *
 * The order matters.  A call that is not signed in is charged to no user.  A slot is
 * taken before the charge, since a call that finds no slot costs no units.  Faults come
 * after the charge: a failed call has its price (the strict reading of what Google does). */
#include "base/check.h"
#include "base/hash.h"
#include "cloudbox/gate/inside.h"

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

/* The path from its segment `at` on, not decoded. */
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

/* A segment in braces is one argument, anything else is literal ("{id}:verb" is in none
 * of the APIs). */
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

/* By the patterns of the service's table. */
static const struct box_method *match(const struct box_service *service, struct box_call *call,
                                      tide_text *user_out, bool *verb_wrong_out)
{
    for (size_t i = 0; i < service->methods_count; i++) {
        const struct box_method *method = &service->methods[i];
        if (!pattern_matches(method->path, call, user_out))
            continue;
        if (method->verb == call->request->verb)
            return method;
        *verb_wrong_out = true;
    }
    return NULL;
}

static route find_method(struct box_call *call, tide_text *user_out)
{
    bool verb_wrong = false;
    const struct box_service *service = NULL;
    for (each_service(call->cloud, s, service)) {
        const struct box_method *method = service->route != NULL
                                              ? service->route(call, &verb_wrong)
                                              : match(service, call, user_out, &verb_wrong);
        if (method != NULL) {
            call->service = service;
            call->method = method;
            return ROUTE_FOUND;
        }
    }
    return verb_wrong ? ROUTE_NO_VERB : ROUTE_NO_PATH;
}

/* ---- who calls ---- */

static tide_text bearer_of(const struct box_call *call)
{
    const tide_text header = box_request_header(call->request, "Authorization");
    if (header.bytes > 7 && strncasecmp(header.data, "Bearer ", 7) == 0)
        return (tide_text){header.data + 7, header.bytes - 7};
    return box_call_param(call, "access_token");
}

/* A refused token is normal once; using it again two seconds later is a violation.  On a
 * clock that runs faster, requests in flight take longer. */
static void note_dead_token(box_cloud *cloud, tide_text token)
{
    enum { GRACE_MS = 2000 };
    const uint32_t speed =
        cloud->clock.speed_permille < 1000 ? 1 : cloud->clock.speed_permille / 1000;
    box_referee_dead_token(cloud->referee, tide_hash_key(token), cloud->now_ms,
                           (uint64_t)GRACE_MS * speed);
}

/* false: the answer says why not. */
static bool admit(struct box_call *call, tide_text user)
{
    struct box_principal principal = {0};
    if (call->method->scopes == 0)
        return true;
    const tide_text token = bearer_of(call);
    if (token.bytes == 0) {
        box_fail(call, 401, "global", "required", "UNAUTHENTICATED", "Login Required.");
        return false;
    }
    if (!box_cloud_identify(call->cloud, token, &principal)) {
        box_fail(call, 401, "global", "authError", "UNAUTHENTICATED", "Invalid Credentials");
        note_dead_token(call->cloud, token);
        return false;
    }
    call->user = principal.user;
    call->scopes = principal.scopes;
    call->project = principal.project;
    if ((call->scopes & call->method->scopes) == 0) {
        box_fail(call, 403, "global", "insufficientPermissions", "PERMISSION_DENIED",
                 "Request had insufficient authentication scopes.");
        return false;
    }
    if (user.data != NULL && !tide_text_equal(user, TIDE_TEXT("me")) &&
        !box_is(user, call->user->email)) {
        box_fail(call, 403, "global", "forbidden", "PERMISSION_DENIED", "Delegation denied for %s",
                 call->user->email);
        return false;
    }
    return true;
}

static void user_now(struct box_call *call)
{
    const struct box_service *service = NULL;
    for (each_service(call->cloud, i, service)) {
        if (service->user_now != NULL)
            service->user_now(call->user, call->now_ms);
    }
}

/* ---- price and slot ---- */

/* Takes a slot and pays; on refusal neither is kept.  NULL: allowed. */
static const struct box_limit *charge(struct box_call *call)
{
    struct box_quota *quota = call->cloud->quota;
    const struct box_limit *over = NULL;
    uint64_t retry_at_ms = 0;
    const bool entered = box_quota_enter(quota, call, &over);
    if (over == NULL)
        over = box_quota_charge(quota, call, &retry_at_ms);
    if (over != NULL) {
        if (entered)
            box_quota_leave(quota, call->user->number, 1);
        call->service->refuse(call, over, retry_at_ms);
        return over;
    }
    if (entered) {
        call->answer->ticket = (struct box_ticket){call->user->number, 1};
        box_referee_in_flight(call->cloud->referee, call->user->number,
                              box_quota_in_flight(quota, call->user->number));
    }
    return NULL;
}

static void add_latency(struct box_call *call)
{
    const struct box_options *options = &call->cloud->options;
    if (call->method->meter == BOX_METER_NONE && !call->service->distant)
        return;
    call->answer->plan.delay_ms += options->latency_ms;
    if (options->jitter_ms > 0)
        call->answer->plan.delay_ms +=
            (uint32_t)tide_rng_below(&call->cloud->rng, options->jitter_ms);
}

/* ---- the record ---- */

static void record(const struct box_call *call, const struct box_limit *over, uint32_t units)
{
    struct box_entry entry = {
        .now_ms = call->now_ms,
        .user = call->user == NULL ? 0 : call->user->number,
        .method = call->method->name,
        .status = call->answer->status,
        .units = units,
        .units_limited = box_quota_counts_units(call),
        .refusal = over == NULL ? NULL : over->name,
        .bytes_in =
            call->request->sink == NULL ? call->request->body.bytes : call->request->sink->bytes,
        .bytes_out = box_answer_bytes(call->answer),
    };
    if (call->service->subject != NULL) {
        entry.subjects = call->service->subjects;
        entry.subject = call->service->subject(call, &entry.subject_name);
    }
    box_referee_call(call->cloud->referee, &entry);
}

/* ---- the gate ---- */

/* A method that takes its body through a sink, called with a whole one. */
static void handle_whole(struct box_call *call, struct box_sink *sink)
{
    const struct box_request *whole = call->request;
    struct box_request request = *whole;
    request.sink = sink;
    if (box_sink_write(sink, whole->body)) {
        call->request = &request;
        call->method->handle(call);
        call->request = whole;
    } else {
        box_fail(call, 413, "global", "uploadTooLarge", "INVALID_ARGUMENT",
                 "The body is too large.");
    }
    box_sink_done(sink);
}

static void handle(struct box_call *call)
{
    struct box_sink sink = {0};
    if (!box_call_accept(call))
        return;
    if (call->request->sink == NULL && call->service->sink != NULL &&
        call->service->sink(call, &sink))
        handle_whole(call, &sink);
    else
        call->method->handle(call);
}

static void serve_method(struct box_call *call, tide_text user)
{
    if (!admit(call, user)) {
        record(call, NULL, 0);
        return;
    }
    if (call->user != NULL)
        user_now(call);
    const struct box_limit *over = charge(call);
    if (over == NULL) {
        add_latency(call);
        if (!box_faults_before(call->cloud->faults, call)) {
            handle(call);
            if (call->service->answered != NULL)
                call->service->answered(call);
            box_faults_after(call->cloud->faults, call);
        }
    }
    record(call, over, box_quota_units(call->cloud->quota, call->method));
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
    box_call_init(&call, cloud, request, answer);
    call.part = part;
    call.scratch = &cloud->scratch;

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

bool box_cloud_sink(box_cloud *cloud, const struct box_request *request, struct box_sink *sink_out)
{
    tide_text user = TIDE_TEXT_NONE;
    struct box_call call;
    tide_arena_reset(&cloud->scratch);
    box_call_init(&call, cloud, request, NULL);
    call.scratch = &cloud->scratch;
    return box_target_parse(request->target, call.scratch, &call.target) &&
           find_method(&call, &user) == ROUTE_FOUND && call.service->sink != NULL &&
           call.service->sink(&call, sink_out);
}
