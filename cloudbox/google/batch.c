#include "cloudbox/google/batch.h"

#include "base/check.h"
#include "base/encode.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/google/batch_parse.h"
#include "cloudbox/google/style.h"
#include "cloudbox/record/referee.h"

#include <stdio.h>
#include <strings.h>

enum {
    BOUNDARY_BYTES = 36,
    PART_HEAD_BYTES = 16 << 10, /* room for a part's headers, generously */
    BODIES_BYTES_MAX = BOX_ANSWER_BYTES_MAX - (BOX_BATCH_PARTS_MAX + 2) * PART_HEAD_BYTES,
};

/* For faults on the request as a whole; nothing is charged for it. */
static const struct box_method batch_method = {
    .name = "batch", .verb = BOX_POST, .path = "/batch", .meter = BOX_METER_NONE};

struct batch {
    box_cloud *cloud;
    struct box_call call; /* the whole, as faults see it */
    struct box_parts parts;
    struct box_answer *answers;            /* by part */
    size_t order[BOX_BATCH_PARTS_MAX + 1]; /* of the answer: indexes of parts */
    size_t order_count;
    size_t extra; /* index into `order` of a part that was not asked for; SIZE_MAX: none */
    size_t bodies_bytes;
};

/* ---- what goes wrong as a whole ---- */

static void call_init(struct box_call *call, box_cloud *cloud, const struct box_request *request,
                      struct box_answer *answer)
{
    box_call_init(call, cloud, request, answer);
    call->service = &box_batch;
    call->method = &batch_method;
    call->target.path = request->target;
    const tide_text header = box_request_header(request, "Authorization");
    struct box_principal principal = {0};
    if (header.bytes > 7 && strncasecmp(header.data, "Bearer ", 7) == 0 &&
        box_cloud_identify(cloud, (tide_text){header.data + 7, header.bytes - 7}, &principal))
        call->user = principal.user;
}

static void refuse(struct box_call *call, const char *text)
{
    box_fail(call, 400, "global", "badRequest", "INVALID_ARGUMENT", "%s", text);
    box_referee_stray(box_cloud_referee(call->cloud), 400);
}

static void refuse_size(struct box_call *call, size_t received)
{
    char text[160];
    (void)snprintf(text, sizeof text,
                   "The batch request could not be processed. Inner request count exceeds the "
                   "limit. Received: %zu, Limit: %d",
                   received, BOX_BATCH_PARTS_MAX);
    refuse(call, text);
    box_call_violation(call, "batch-size", tide_text_of(text));
}

/* ---- running the parts ---- */

static void shuffle(size_t *numbers, size_t count, tide_rng *rng)
{
    for (size_t i = count; i > 1; i--) {
        const size_t j = (size_t)tide_rng_below(rng, i);
        const size_t number = numbers[i - 1];
        numbers[i - 1] = numbers[j];
        numbers[j] = number;
    }
}

static void answer_in_place(struct batch *batch, size_t index, int status, const char *reason,
                            const char *text)
{
    struct box_call *call = &batch->call;
    struct box_answer *outer = call->answer;
    call->answer = &batch->answers[index];
    box_fail(call, status, "global", reason, status == 400 ? "INVALID_ARGUMENT" : NULL, "%s", text);
    call->answer = outer;
}

/* Served one after another, only one part at a time is in flight. */
static void let_go(struct batch *batch)
{
    struct box_ticket *whole = &batch->call.answer->ticket;
    if (whole->slots > 0)
        box_quota_leave(box_cloud_quota(batch->cloud), whole->user, whole->slots);
    *whole = (struct box_ticket){0};
}

/* The slots of a part are held by the whole.  A ticket names one user, so those
 * of a second user (parts may bring tokens of their own) are free at once. */
static void hold_slots(struct batch *batch, struct box_ticket *part)
{
    struct box_ticket *whole = &batch->call.answer->ticket;
    struct box_quota *quota = box_cloud_quota(batch->cloud);
    if (part->slots == 0)
        return;
    if (whole->slots == 0) {
        *whole = *part;
    } else if (whole->user == part->user) {
        whole->slots += part->slots;
    } else {
        box_quota_leave(quota, part->user, part->slots);
    }
    *part = (struct box_ticket){0};
}

/* A batch holds its parts whole.  What is too large for it is cut off here, and refused
 * by its length in run_part(). */
static void take_source(struct box_answer *answer)
{
    const struct box_source source = answer->source;
    if (source.read == NULL)
        return;
    const uint64_t max = BODIES_BYTES_MAX + 1;
    const size_t bytes = (size_t)(source.bytes < max ? source.bytes : max);
    char *room = tide_buf_reserve(&answer->body, bytes);
    TIDE_ASSERT(room != NULL);
    source.read(source.arg, 0, room, bytes);
    answer->source = (struct box_source){0};
    answer->body.bytes += bytes;
    if (source.done != NULL)
        source.done(source.arg);
}

static void run_part(struct batch *batch, size_t index)
{
    const struct box_part *part = &batch->parts.list[index];
    struct box_answer *answer = &batch->answers[index];
    if (part->refusal != NULL) {
        answer_in_place(batch, index, 400, "badRequest", part->refusal);
        box_referee_stray(box_cloud_referee(batch->cloud), 400);
        return;
    }
    if (box_cloud_options(batch->cloud)->batch_serial)
        let_go(batch);
    box_gate_call(batch->cloud, &part->request, (uint32_t)index + 1, answer);
    hold_slots(batch, &answer->ticket);
    take_source(answer);
    if (answer->body.bytes > BODIES_BYTES_MAX - batch->bodies_bytes) {
        tide_buf_done(&answer->body); /* its memory too */
        tide_buf_init(&answer->body, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
        answer_in_place(batch, index, 403, "responseTooLarge",
                        "The answer of the batch request is too large.");
    }
    batch->bodies_bytes += answer->body.bytes;
}

static void run_parts(struct batch *batch)
{
    size_t order[BOX_BATCH_PARTS_MAX];
    for (size_t i = 0; i < batch->parts.count; i++) {
        order[i] = i;
        box_answer_init(&batch->answers[i]);
    }
    shuffle(order, batch->parts.count, box_cloud_rng(batch->cloud));
    for (size_t i = 0; i < batch->parts.count; i++)
        run_part(batch, order[i]);
}

/* A fault of the wire on one part concerns the whole: there is only one connection. */
static void join_plans(struct batch *batch)
{
    const bool serial = box_cloud_options(batch->cloud)->batch_serial;
    struct box_plan *whole = &batch->call.answer->plan;
    uint64_t delay_ms = 0;
    for (size_t i = 0; i < batch->parts.count; i++) {
        const struct box_plan *part = &batch->answers[i].plan;
        if (serial)
            delay_ms += part->delay_ms;
        else if (part->delay_ms > delay_ms)
            delay_ms = part->delay_ms;
        if (whole->fate == BOX_FATE_WHOLE && part->fate != BOX_FATE_WHOLE) {
            whole->fate = part->fate;
            whole->fate_at = part->fate_at;
            whole->stall_ms = part->stall_ms;
        }
        if (part->bytes_per_s != 0 &&
            (whole->bytes_per_s == 0 || part->bytes_per_s < whole->bytes_per_s))
            whole->bytes_per_s = part->bytes_per_s;
        if (part->held_by != 0)
            whole->held_by = part->held_by;
    }
    delay_ms += whole->delay_ms; /* of faults on the whole */
    whole->delay_ms = delay_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)delay_ms;
}

/* ---- the answer ---- */

static void settle_order(struct batch *batch)
{
    struct box_faults *faults = box_cloud_faults(batch->cloud);
    tide_rng *rng = box_cloud_rng(batch->cloud);
    const size_t count = batch->parts.count;
    for (size_t i = 0; i < count; i++)
        batch->order[i] = i;
    batch->order_count = count;
    batch->extra = SIZE_MAX;
    if (box_faults_strikes(faults, &batch->call, "batch-reorder"))
        shuffle(batch->order, count, rng);
    if (box_faults_strikes(faults, &batch->call, "batch-missing")) {
        const size_t gone = (size_t)tide_rng_below(rng, count);
        memmove(&batch->order[gone], &batch->order[gone + 1],
                (count - gone - 1) * sizeof batch->order[0]);
        batch->order_count--;
    }
    if (box_faults_strikes(faults, &batch->call, "batch-extra")) {
        batch->extra = batch->order_count;
        batch->order[batch->order_count++] = (size_t)tide_rng_below(rng, count);
    }
}

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {402, "Payment Required"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {410, "Gone"},
        {412, "Precondition Failed"},
        {413, "Payload Too Large"},
        {429, "Too Many Requests"},
        {500, "Internal Server Error"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
    };
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Unknown";
}

/* "<item1>" becomes "<response-item1>". */
static void write_content_id(tide_buf *out, tide_text id, bool extra)
{
    const char *prefix = extra ? "response-extra-" : "response-";
    if (id.data == NULL && !extra)
        return;
    const bool bracket = id.bytes > 0 && id.data[0] == '<';
    box_add_cstr(out, bracket ? "Content-ID: <" : "Content-ID: ");
    box_add_cstr(out, prefix);
    if (id.bytes > PART_HEAD_BYTES / 4) /* longer names are of no use */
        id.bytes = PART_HEAD_BYTES / 4;
    if (id.bytes > 0)
        box_add(out, id.data + (bracket ? 1 : 0), id.bytes - (bracket ? 1 : 0));
    box_add_cstr(out, "\r\n");
}

static void write_part(struct batch *batch, size_t position, const char *boundary)
{
    tide_buf *out = &batch->call.answer->body;
    const size_t index = batch->order[position];
    const struct box_answer *part = &batch->answers[index];
    const bool extra = position == batch->extra;
    box_print(out, "--%s\r\nContent-Type: application/http\r\n", boundary);
    write_content_id(out, batch->parts.list[index].content_id, extra);
    if (extra) {
        box_add_cstr(out, "\r\nHTTP/1.1 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\n"
                          "Content-Length: 2\r\n\r\n{}\r\n");
        return;
    }
    box_print(out, "\r\nHTTP/1.1 %d %s\r\n", part->status, reason_phrase(part->status));
    if (part->type[0] != '\0')
        box_print(out, "Content-Type: %s\r\n", part->type);
    for (size_t i = 0; i < part->headers_count; i++)
        box_print(out, "%s: %s\r\n", part->headers[i].name, part->headers[i].value);
    box_print(out, "Content-Length: %zu\r\n\r\n", part->body.bytes);
    if (part->body.bytes > 0)
        box_add(out, part->body.data, part->body.bytes);
    box_add_cstr(out, "\r\n");
}

static void write_answer(struct batch *batch)
{
    struct box_answer *answer = batch->call.answer;
    char boundary[BOUNDARY_BYTES] = "batch_";
    for (size_t i = strlen(boundary); i + 1 < sizeof boundary; i++)
        boundary[i] = tide_base64_url[tide_rng_below(box_cloud_rng(batch->cloud), 64)];
    (void)snprintf(answer->type, sizeof answer->type, "multipart/mixed; boundary=%s", boundary);
    answer->status = 200;
    for (size_t i = 0; i < batch->order_count; i++)
        write_part(batch, i, boundary);
    box_print(&answer->body, "--%s--\r\n", boundary);
}

static void serve_parts(struct batch *batch)
{
    const size_t count = batch->parts.count;
    batch->answers = tide_mem_array(tide_mem_heap(), count, sizeof *batch->answers);
    TIDE_ASSERT(batch->answers != NULL);
    run_parts(batch);
    join_plans(batch);
    settle_order(batch);
    write_answer(batch);
    for (size_t i = 0; i < count; i++)
        box_answer_done(&batch->answers[i]);
    tide_mem_free(tide_mem_heap(), batch->answers, count * sizeof *batch->answers);
}

static bool is_batch(const struct box_request *request)
{
    const tide_text target = request->target;
    return request->verb == BOX_POST && target.bytes >= 6 &&
           memcmp(target.data, "/batch", 6) == 0 &&
           (target.bytes == 6 || target.data[6] == '/' || target.data[6] == '?');
}

static bool serve_batch(box_cloud *cloud, const struct box_request *request,
                        struct box_answer *answer)
{
    if (!is_batch(request))
        return false;
    /* On the heap, since it is large for a stack. */
    struct batch *batch = tide_mem_new(tide_mem_heap(), sizeof *batch);
    TIDE_ASSERT(batch != NULL);
    batch->cloud = cloud;
    struct box_call *call = &batch->call;
    call_init(call, cloud, request, answer);

    tide_auto_arena arena = tide_arena_heap(BOX_BATCH_ARENA_BYTES);
    const char *wrong = box_batch_parse(request, &arena, &batch->parts);
    if (wrong != NULL) {
        refuse(call, wrong);
    } else if (batch->parts.received > BOX_BATCH_PARTS_MAX) {
        refuse_size(call, batch->parts.received);
    } else if (box_faults_before(box_cloud_faults(cloud), call)) {
        box_referee_stray(box_cloud_referee(cloud), answer->status); /* no part ran (BCLD3) */
    } else {
        serve_parts(batch);
        box_faults_after(box_cloud_faults(cloud), call);
    }
    tide_mem_free(tide_mem_heap(), batch, sizeof *batch);
    return true;
}

const struct box_service box_batch = {
    .name = "batch",
    .style = &box_google_style,
    .batch = serve_batch,
};
