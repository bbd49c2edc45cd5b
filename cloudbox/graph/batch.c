/* batch.c - POST /v1.0/$batch: up to twenty calls in one JSON body, each through the whole gate.
 *
 *   {"requests":[{"id","method","url","headers","body","dependsOn":[id]}]}
 *   {"responses":[{"id","status","headers","body"}]}
 *
 * A call runs after those it depends on; if one of them failed it is answered with 424.  Bodies that are
 * not JSON travel as base64. */
#include "base/check.h"
#include "base/json.h"
#include "cloudbox/graph/inside.h"
#include "cloudbox/record/referee.h"

#include <stdio.h>
#include <strings.h>

enum { PARTS_MAX = 20, HEADERS_MAX = 20, BATCH_ARENA_BYTES = 64 << 20, BODY_BYTES_MAX = 32 << 20 };

struct part {
    const json_t *json;
    const char *id;
    const char *url;
    box_verb verb;
    bool done;
    struct box_answer answer;
};

/* For faults on the request as a whole; nothing is charged for it. */
static const struct box_method batch_method = {
    .name = "batch", .verb = BOX_POST, .path = "/v1.0/$batch", .meter = BOX_METER_NONE};

struct batch {
    box_cloud *cloud;
    const struct box_request *outer;
    struct box_call call; /* the whole, as faults see it */
    tide_arena arena;
    struct part parts[PARTS_MAX];
    size_t count;
};

/* ---- reading ---- */

static struct part *part_of(struct batch *batch, const char *id)
{
    for (size_t i = 0; i < batch->count; i++)
        if (strcasecmp(batch->parts[i].id, id) == 0)
            return &batch->parts[i];
    return NULL;
}

/* NULL: good; else what is wrong. */
static const char *read_part(struct batch *batch, const json_t *json)
{
    struct part *part = &batch->parts[batch->count];
    const char *verb = json_string_value(json_object_get(json, "method"));
    part->json = json;
    part->id = json_string_value(json_object_get(json, "id"));
    part->url = json_string_value(json_object_get(json, "url"));
    if (part->id == NULL || part->id[0] == '\0' || part->url == NULL || verb == NULL)
        return "Every request needs an id, a method and a url.";
    if (part_of(batch, part->id) != NULL)
        return "Request ids must be unique within a batch.";
    part->verb = box_verb_of(tide_text_of(verb));
    batch->count++;
    return NULL;
}

static const char *read_parts(struct batch *batch, const json_t *body)
{
    const json_t *list = json_object_get(body, "requests");
    size_t i = 0;
    json_t *json = NULL;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return "A batch needs a list of requests.";
    if (json_array_size(list) > PARTS_MAX)
        return "Number of batch request steps exceeds the maximum value of 20.";
    json_array_foreach(list, i, json)
    {
        const char *wrong = read_part(batch, json);
        if (wrong != NULL)
            return wrong;
    }
    for (size_t k = 0; k < batch->count; k++) {
        json_array_foreach(json_object_get(batch->parts[k].json, "dependsOn"), i, json)
        {
            if (!json_is_string(json) || part_of(batch, json_string_value(json)) == NULL)
                return "dependsOn names a request that is not in the batch.";
        }
    }
    return NULL;
}

/* ---- running ---- */

static tide_text copy_text(struct batch *batch, const char *text, size_t bytes)
{
    const char *copy = tide_arena_copy(&batch->arena, text, bytes);
    TIDE_ASSERT(copy != NULL);
    return (tide_text){copy, bytes};
}

static size_t read_headers(struct batch *batch, const struct part *part,
                           struct box_header headers[HEADERS_MAX])
{
    size_t count = 0;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(part->json, "headers"), name, value)
    {
        if (json_is_string(value) && count + 1 < HEADERS_MAX)
            headers[count++] =
                (struct box_header){tide_text_of(name), tide_text_of(json_string_value(value))};
    }
    const struct box_request inner = {.headers = headers, .headers_count = count};
    const tide_text token = box_request_header(batch->outer, "Authorization");
    if (token.data != NULL && box_request_header(&inner, "Authorization").data == NULL)
        headers[count++] = (struct box_header){TIDE_TEXT("Authorization"), token};
    return count;
}

/* JSON as text; a string that is base64 as its bytes. */
static tide_text read_body(struct batch *batch, const struct part *part)
{
    const json_t *body = json_object_get(part->json, "body");
    if (body == NULL)
        return TIDE_TEXT_NONE;
    if (json_is_string(body)) {
        tide_auto_buf bytes = tide_buf_heap(BODY_BYTES_MAX);
        const tide_text text = {json_string_value(body), json_string_length(body)};
        if (text.bytes < BODY_BYTES_MAX && box_base64_decode(text, &bytes))
            return copy_text(batch, tide_buf_cstr(&bytes), bytes.bytes);
        return copy_text(batch, text.data, text.bytes);
    }
    char *text = json_dumps(body, JSON_COMPACT | BOX_JSON_REALS);
    TIDE_ASSERT(text != NULL);
    const tide_text copy = copy_text(batch, text, strlen(text));
    free(text);
    return copy;
}

static void run(struct batch *batch, struct part *part)
{
    struct box_header headers[HEADERS_MAX];
    tide_auto_buf target = tide_buf_heap(2 * BOX_TARGET_BYTES_MAX);
    const bool whole = strncmp(part->url, "/v1.0/", 6) == 0 || strncmp(part->url, "/beta/", 6) == 0;
    if (strlen(part->url) > BOX_TARGET_BYTES_MAX)
        box_add_cstr(&target, "/"); /* stray */
    else
        box_print(&target, "%s%s%s", whole ? "" : "/v1.0", part->url[0] == '/' ? "" : "/",
                  part->url);
    const struct box_request request = {.verb = part->verb,
                                        .target = tide_buf_text(&target),
                                        .headers = headers,
                                        .headers_count = read_headers(batch, part, headers),
                                        .body = read_body(batch, part),
                                        .origin = batch->outer->origin};
    box_gate_call(batch->cloud, &request, (uint32_t)(part - batch->parts) + 1, &part->answer);
    part->done = true;
}

static void fail_dependent(struct batch *batch, struct part *part)
{
    const struct box_request request = {.verb = part->verb, .target = tide_text_of(part->url)};
    struct box_call call;
    box_call_init(&call, batch->cloud, &request, &part->answer);
    call.service = &box_graph;
    box_graph_fail(&call, 424, "FailedDependency", NULL,
                   "Request was not executed because a request it depends on failed.");
    part->done = true;
}

typedef enum turn { TURN_NOW, TURN_LATER, TURN_NEVER } turn;

static turn turn_of(struct batch *batch, const struct part *part)
{
    size_t i = 0;
    json_t *id = NULL;
    turn found = TURN_NOW;
    json_array_foreach(json_object_get(part->json, "dependsOn"), i, id)
    {
        const struct part *other = part_of(batch, json_string_value(id));
        if (other->done && other->answer.status >= 400)
            return TURN_NEVER;
        if (!other->done)
            found = TURN_LATER;
    }
    return found;
}

/* Runs what can run; false: nothing could, since the rest waits for itself. */
static bool run_some(struct batch *batch)
{
    bool any = false;
    for (size_t i = 0; i < batch->count; i++) {
        struct part *part = &batch->parts[i];
        const turn when = part->done ? TURN_LATER : turn_of(batch, part);
        if (when == TURN_LATER)
            continue;
        if (when == TURN_NOW)
            run(batch, part);
        else
            fail_dependent(batch, part);
        any = true;
    }
    return any;
}

static bool all_done(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        if (!batch->parts[i].done)
            return false;
    return true;
}

/* ---- the answer ---- */

static json_t *body_of(const struct box_answer *answer)
{
    json_t *json = json_loadb(tide_buf_cstr(&answer->body), answer->body.bytes, 0, NULL);
    if (json != NULL)
        return json;
    tide_auto_buf text = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    box_add_base64(&text, tide_buf_text(&answer->body));
    return json_stringn(tide_buf_cstr(&text), text.bytes);
}

static json_t *response_of(const struct part *part)
{
    const struct box_answer *answer = &part->answer;
    json_t *headers = json_object();
    if (answer->type[0] != '\0')
        json_object_set_new(headers, "Content-Type", json_string(answer->type));
    for (size_t i = 0; i < answer->headers_count; i++)
        json_object_set_new(headers, answer->headers[i].name,
                            box_json_text(tide_text_of(answer->headers[i].value)));
    json_t *response =
        json_pack("{s:s, s:i, s:o}", "id", part->id, "status", answer->status, "headers", headers);
    TIDE_ASSERT(response != NULL);
    if (answer->body.bytes > 0)
        json_object_set_new(response, "body", body_of(answer));
    return response;
}

/* There is one connection: the slowest part's delay, the first fault of the wire. */
static void join_plans(const struct batch *batch, struct box_plan *whole)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct box_plan *part = &batch->parts[i].answer.plan;
        if (part->delay_ms > whole->delay_ms)
            whole->delay_ms = part->delay_ms;
        if (part->held_by != 0)
            whole->held_by = part->held_by;
        if (whole->fate != BOX_FATE_WHOLE || part->fate == BOX_FATE_WHOLE)
            continue;
        whole->fate = part->fate;
        whole->fate_at = part->fate_at;
        whole->stall_ms = part->stall_ms;
    }
}

static void call_init(struct batch *batch, struct box_answer *answer)
{
    struct box_call *call = &batch->call;
    const tide_text header = box_request_header(batch->outer, "Authorization");
    struct box_principal principal = {0};
    box_call_init(call, batch->cloud, batch->outer, answer);
    call->service = &box_graph;
    call->method = &batch_method;
    call->target.path = batch->outer->target;
    if (header.bytes > 7 && strncasecmp(header.data, "Bearer ", 7) == 0 &&
        box_cloud_identify(batch->cloud, (tide_text){header.data + 7, header.bytes - 7},
                           &principal))
        call->user = principal.user;
}

static void refuse(struct batch *batch, const char *text)
{
    box_graph_fail(&batch->call, 400, "invalidRequest", NULL, "%s", text);
    box_referee_stray(box_cloud_referee(batch->cloud), 400);
}

static bool strikes(struct batch *batch, const char *fault)
{
    return box_faults_strikes(box_cloud_faults(batch->cloud), &batch->call, fault);
}

/* In the order of the request, unless a fault leaves the last one out, turns them, or adds one that was not asked for. */
static json_t *responses_of(struct batch *batch)
{
    json_t *responses = json_array();
    const size_t count = batch->count - (strikes(batch, "batch-missing") ? 1 : 0);
    const bool turned = strikes(batch, "batch-reorder");
    for (size_t i = 0; i < count; i++)
        json_array_append_new(responses, response_of(&batch->parts[turned ? count - 1 - i : i]));
    if (count > 0 && strikes(batch, "batch-extra")) {
        json_t *extra = response_of(&batch->parts[0]);
        json_object_set_new(extra, "id", json_string("never-asked"));
        json_array_append_new(responses, extra);
    }
    return responses;
}

static void serve_parts(struct batch *batch, struct box_answer *answer)
{
    while (run_some(batch)) /* each round runs at least one */
        ;
    if (!all_done(batch)) {
        refuse(batch, "Requests depend on each other in a circle.");
        return;
    }
    join_plans(batch, &answer->plan);
    box_answer_json(answer, 200, json_pack("{s:o}", "responses", responses_of(batch)), false);
}

static void serve(struct batch *batch, struct box_answer *answer)
{
    json_auto_t *body = NULL;
    const char *wrong = "The body is not JSON.";
    if (tide_json_parse(batch->outer->body, &body, NULL) == TIDE_OK)
        wrong = read_parts(batch, body);
    struct box_faults *faults = box_cloud_faults(batch->cloud);
    if (wrong != NULL) {
        refuse(batch, wrong);
    } else if (box_faults_before(faults, &batch->call)) {
        box_referee_stray(box_cloud_referee(batch->cloud), answer->status); /* no part ran */
    } else {
        serve_parts(batch, answer);
        box_faults_after(faults, &batch->call);
    }
}

bool box_graph_batch(box_cloud *cloud, const struct box_request *request, struct box_answer *answer)
{
    if (request->verb != BOX_POST ||
        (!box_is(request->target, "/v1.0/$batch") && !box_is(request->target, "/beta/$batch") &&
         !box_is(request->target, "/v1.0/%24batch")))
        return false;
    struct batch *batch = tide_mem_new(tide_mem_heap(), sizeof *batch);
    TIDE_ASSERT(batch != NULL);
    batch->cloud = cloud;
    batch->outer = request;
    tide_arena_init(&batch->arena, tide_mem_heap(), BATCH_ARENA_BYTES);
    for (size_t i = 0; i < PARTS_MAX; i++)
        box_answer_init(&batch->parts[i].answer);
    call_init(batch, answer);
    serve(batch, answer);
    for (size_t i = 0; i < PARTS_MAX; i++)
        box_answer_done(&batch->parts[i].answer);
    tide_arena_done(&batch->arena);
    tide_mem_free(tide_mem_heap(), batch, sizeof *batch);
    return true;
}
