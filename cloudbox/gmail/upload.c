/* Uploads: a message as bytes of its own instead of base64 in JSON.
 *
 * media: the body is the message.  multipart: a JSON part, then the message.
 * resumable: the first call opens a session, PUTs bring the bytes in chunks, and
 * a client that lost its connection asks how far it came.  The last chunk does
 * what the method is about; its answer is kept, so that a client which never
 * saw it can ask again and nothing happens twice. */
#include "cloudbox/gmail/gmail.h"

#include "base/check.h"
#include "base/encode.h"
#include "cloudbox/gmail/multipart.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { UPLOAD_LIFE_MS = 7 * 24 * 3600 * 1000, UPLOAD_ID_BYTES = 40 };

struct upload {
    char id[UPLOAD_ID_BYTES]; /* "": free */
    uint32_t user;
    uint64_t made_ms;
    uint64_t total; /* UINT64_MAX: not yet known */
    struct box_post post;
    char draft_id[BOX_ID_TEXT_BYTES];
    json_t *meta;
    tide_buf bytes;
    bool done;
    int status; /* of the answer once done */
    char type[64];
    tide_buf answer;
};

struct box_uploads {
    struct upload uploads[BOX_UPLOADS_MAX];
    size_t bytes; /* over all sessions */
};

/* ---- sessions ---- */

void *box_uploads_open(box_cloud *cloud)
{
    (void)cloud;
    struct box_uploads *self = tide_mem_new(tide_mem_heap(), sizeof *self);
    TIDE_ASSERT(self != NULL);
    return self;
}

static void drop_bytes(struct box_uploads *self, struct upload *upload)
{
    TIDE_ASSERT(self->bytes >= upload->bytes.bytes);
    self->bytes -= upload->bytes.bytes;
    tide_buf_done(&upload->bytes);
    tide_buf_init(&upload->bytes, tide_mem_heap(), BOX_INSERT_BYTES_MAX);
}

static void drop(struct box_uploads *self, struct upload *upload)
{
    if (upload->id[0] == '\0')
        return;
    drop_bytes(self, upload);
    tide_buf_done(&upload->bytes);
    tide_buf_done(&upload->answer);
    json_decref(upload->meta);
    memset(upload, 0, sizeof *upload);
}

void box_uploads_close(void *state)
{
    struct box_uploads *uploads = state;
    for (size_t i = 0; i < BOX_UPLOADS_MAX; i++)
        drop(uploads, &uploads->uploads[i]);
    TIDE_ASSERT(uploads->bytes == 0);
    tide_mem_free(tide_mem_heap(), uploads, sizeof *uploads);
}

/* The session that was opened first, but not `spare`; those without bytes only
 * when a place is needed rather than room. */
static struct upload *oldest(struct box_uploads *self, const struct upload *spare, bool with_bytes)
{
    struct upload *found = NULL;
    for (size_t i = 0; i < BOX_UPLOADS_MAX; i++) {
        struct upload *upload = &self->uploads[i];
        if (upload == spare || upload->id[0] == '\0' || (with_bytes && upload->bytes.bytes == 0))
            continue;
        if (found == NULL || upload->made_ms < found->made_ms)
            found = upload;
    }
    return found;
}

/* A free place.  When there is none the oldest session ends: its client finds
 * a 404 and starts again. */
static struct upload *place(struct box_uploads *self)
{
    for (size_t i = 0; i < BOX_UPLOADS_MAX; i++)
        if (self->uploads[i].id[0] == '\0')
            return &self->uploads[i];
    struct upload *upload = oldest(self, NULL, false);
    drop(self, upload);
    return upload;
}

static void take_bytes(struct box_uploads *self, struct upload *upload, tide_text bytes)
{
    while (self->bytes + bytes.bytes > BOX_UPLOADS_BYTES_MAX) {
        struct upload *victim = oldest(self, upload, true);
        TIDE_ASSERT(victim != NULL); /* one session alone stays below the ceiling */
        drop(self, victim);
    }
    box_add(&upload->bytes, bytes.data, bytes.bytes);
    self->bytes += bytes.bytes;
}

/* ---- starting ---- */

/* Where the chunks go.  A draft's update is itself a PUT, so its chunks go to
 * the path of all drafts; sessions know what they are for. */
static const char *chunk_path(box_post_kind kind)
{
    switch (kind) {
    case BOX_POST_IMPORT:
        return "/messages/import";
    case BOX_POST_SEND:
        return "/messages/send";
    case BOX_POST_DRAFT_CREATE:
    case BOX_POST_DRAFT_UPDATE:
        return "/drafts";
    case BOX_POST_DRAFT_SEND:
        return "/drafts/send";
    default:
        return "/messages";
    }
}

/* How the final answer should look was said at the start. */
static void carry_param(const struct box_call *call, const char *name, tide_buf *out)
{
    const tide_text value = box_call_param(call, name);
    if (value.bytes == 0 || value.bytes > 60)
        return;
    box_print(out, "&%s=", name);
    TIDE_ASSERT(tide_percent_add(out, value, "-_.,/()*") == TIDE_OK);
}

static void reply_started(struct box_call *call, const struct upload *upload)
{
    tide_auto_buf location = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    const tide_text origin = call->request->origin;
    box_print(&location, "%.*s/upload/gmail/v1/users/me%s?uploadType=resumable&upload_id=%s",
              (int)(origin.bytes < 200 ? origin.bytes : 200),
              origin.data == NULL ? "" : origin.data, chunk_path(upload->post.kind), upload->id);
    /* A header's value ends at 511 bytes. */
    if (location.bytes < 260) {
        carry_param(call, "prettyPrint", &location);
        carry_param(call, "fields", &location);
    }
    box_answer_clear(call->answer);
    box_answer_header(call->answer, "Location", tide_buf_cstr(&location));
    box_answer_header(call->answer, "X-GUploader-UploadID", upload->id);
}

/* The length that was announced; false: answered. */
static bool announced_length(struct box_call *call, box_post_kind kind, uint64_t *total_out)
{
    const tide_text length = box_request_header(call->request, "X-Upload-Content-Length");
    uint64_t total = UINT64_MAX;
    if (length.data != NULL && !tide_text_to_u64(length, &total)) {
        box_fail_argument(call, "Invalid X-Upload-Content-Length");
        return false;
    }
    if (total != UINT64_MAX && total > box_post_bytes_max(kind)) {
        box_post_too_large(call, kind);
        return false;
    }
    *total_out = total;
    return true;
}

static bool is_message_type(tide_text type)
{
    return type.bytes >= 8 && strncasecmp(type.data, "message/", 8) == 0;
}

static bool check_type(struct box_call *call, tide_text type)
{
    if (is_message_type(type))
        return true;
    box_fail(call, 400, "global", "badContent", "INVALID_ARGUMENT",
             "Media type '%.*s' is not supported. Valid media types: [message/*]",
             (int)(type.bytes < 100 ? type.bytes : 100), type.data == NULL ? "" : type.data);
    return false;
}

/* Writes down an upload that is begun while one like it is half done: its client has lost the
 * address, and uploads twice what it could go on with. */
static void watch_again(struct box_call *call, const struct box_post *post, uint64_t total,
                        const json_t *meta, const char *draft_id)
{
    const struct box_uploads *self = box_cloud_state(call->cloud, &box_gmail);
    for (size_t i = 0; i < BOX_UPLOADS_MAX; i++) {
        const struct upload *upload = &self->uploads[i];
        if (upload->id[0] != '\0' && upload->user == call->user->number && !upload->done &&
            upload->bytes.bytes > 0 && call->now_ms - upload->made_ms <= UPLOAD_LIFE_MS &&
            upload->post.kind == post->kind && upload->total == total &&
            strcmp(upload->draft_id, draft_id) == 0 && json_equal(upload->meta, meta)) {
            box_call_violation(call, "upload-again", TIDE_TEXT_NONE);
            return;
        }
    }
}

static void start(struct box_call *call, struct box_post *post)
{
    const tide_text type = box_request_header(call->request, "X-Upload-Content-Type");
    uint64_t total = 0;
    if ((type.data != NULL && !check_type(call, type)) ||
        !announced_length(call, post->kind, &total))
        return;
    uint32_t draft = BOX_SLOT_NONE;
    if (post->kind == BOX_POST_DRAFT_UPDATE) {
        draft = box_mailbox_draft_find(box_user_mailbox(call->user), post->draft_id);
        if (draft == BOX_SLOT_NONE) {
            box_fail_missing(call);
            return;
        }
    }
    json_t *meta = box_call_body(call);
    if (meta == NULL)
        return;
    char draft_id[BOX_ID_TEXT_BYTES] = "";
    if (draft != BOX_SLOT_NONE)
        snprintf(draft_id, sizeof draft_id, "r%" PRIu64,
                 box_mailbox_draft_at(box_user_mailbox(call->user), draft)->id);
    watch_again(call, post, total, meta, draft_id);
    struct upload *upload = place(box_cloud_state(call->cloud, &box_gmail));
    /* With the time in it: after a restart the random numbers start again, and a client
     * with an old session must not reach a new one of another client. */
    tide_rng rng = tide_rng_seeded(tide_rng_next(box_cloud_rng(call->cloud)) ^ call->now_ms);
    const uint64_t high = tide_rng_next(&rng), low = tide_rng_next(&rng);
    snprintf(upload->id, sizeof upload->id, "%016" PRIx64 "%016" PRIx64, high, low);
    upload->user = call->user->number;
    upload->made_ms = call->now_ms;
    upload->total = total;
    upload->post = *post;
    upload->meta = meta;
    memcpy(upload->draft_id, draft_id, sizeof upload->draft_id);
    tide_buf_init(&upload->bytes, tide_mem_heap(), BOX_INSERT_BYTES_MAX);
    tide_buf_init(&upload->answer, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
    reply_started(call, upload);
}

/* ---- going on ---- */

/* Content-Range. */
struct range {
    bool probe;     /* bytes * / total: carries nothing */
    uint64_t start; /* of the bytes in this request */
    uint64_t total; /* UINT64_MAX: '*' */
};

static bool range_parse(tide_text text, size_t body_bytes, struct range *range_out)
{
    struct range range = {.total = UINT64_MAX};
    const char *slash = memchr(text.data, '/', text.bytes);
    if (text.bytes < 6 || strncasecmp(text.data, "bytes ", 6) != 0 || slash == NULL)
        return false;
    const tide_text span = {text.data + 6, (size_t)(slash - text.data) - 6};
    const tide_text total = {slash + 1, text.bytes - (size_t)(slash + 1 - text.data)};
    if (!tide_text_equal(total, TIDE_TEXT("*")) && !tide_text_to_u64(total, &range.total))
        return false;
    range.probe = tide_text_equal(span, TIDE_TEXT("*"));
    if (!range.probe) {
        const char *dash = span.bytes == 0 ? NULL : memchr(span.data, '-', span.bytes);
        uint64_t last = 0;
        if (dash == NULL ||
            !tide_text_to_u64((tide_text){span.data, (size_t)(dash - span.data)}, &range.start) ||
            !tide_text_to_u64((tide_text){dash + 1, span.bytes - (size_t)(dash + 1 - span.data)},
                              &last) ||
            last < range.start || last - range.start != (uint64_t)body_bytes - 1)
            return false;
    }
    *range_out = range;
    return range.probe == (body_bytes == 0);
}

/* "Resume Incomplete".  Google's Go client asks for a 200 that only says so in
 * a header, since some proxies take 308 for a redirect. */
static void reply_incomplete(struct box_call *call, const struct upload *upload)
{
    char range[48];
    box_answer_clear(call->answer);
    call->answer->status = 308;
    if (tide_text_equal(box_request_header(call->request, "X-GUploader-No-308"),
                        TIDE_TEXT("yes"))) {
        call->answer->status = 200;
        box_answer_header(call->answer, "X-HTTP-Status-Code-Override", "308");
    }
    if (upload->bytes.bytes > 0) {
        snprintf(range, sizeof range, "bytes=0-%zu", upload->bytes.bytes - 1);
        box_answer_header(call->answer, "Range", range);
    }
    box_answer_header(call->answer, "X-GUploader-UploadID", upload->id);
}

static void reply_again(struct box_call *call, const struct upload *upload)
{
    box_answer_clear(call->answer);
    call->answer->status = upload->status;
    memcpy(call->answer->type, upload->type, sizeof call->answer->type);
    box_add(&call->answer->body, upload->answer.data, upload->answer.bytes);
}

/* All bytes are here: the method happens. */
static void finish(struct box_call *call, struct upload *upload)
{
    struct box_post post = upload->post;
    post.meta = upload->meta;
    post.raw = (tide_text){tide_buf_cstr(&upload->bytes), upload->bytes.bytes};
    post.draft_id = tide_text_of(upload->draft_id);
    box_post_apply(call, &post);
    upload->done = true;
    upload->status = call->answer->status;
    memcpy(upload->type, call->answer->type, sizeof upload->type);
    box_add(&upload->answer, call->answer->body.data, call->answer->body.bytes);
    drop_bytes(box_cloud_state(call->cloud, &box_gmail), upload);
}

/* false: the range does not fit the session; answered. */
static bool range_fits(struct box_call *call, struct upload *upload, const struct range *range)
{
    const uint64_t end = range->start + call->request->body.bytes;
    const uint64_t total = range->total != UINT64_MAX ? range->total : upload->total;
    if (total != UINT64_MAX && total > box_post_bytes_max(upload->post.kind)) {
        box_post_too_large(call, upload->post.kind);
        return false;
    }
    if (range->total != UINT64_MAX && upload->total != UINT64_MAX &&
        range->total != upload->total) {
        box_fail_argument(call, "Invalid Content-Range: the total was %" PRIu64 " before",
                          upload->total);
        return false;
    }
    if (!range->probe && (range->start > upload->bytes.bytes || end > total)) {
        box_fail_argument(call, "Invalid Content-Range: %zu bytes are here", upload->bytes.bytes);
        return false;
    }
    if (end > box_post_bytes_max(upload->post.kind)) {
        box_post_too_large(call, upload->post.kind);
        return false;
    }
    if (!range->probe && end != total && call->request->body.bytes % BOX_UPLOAD_CHUNK_BYTES != 0) {
        box_call_violation(call, "chunk-size", TIDE_TEXT_NONE);
        box_fail_argument(call, "Every chunk but the last must be a multiple of %d bytes",
                          BOX_UPLOAD_CHUNK_BYTES);
        return false;
    }
    return true;
}

static void go_on(struct box_call *call, struct upload *upload)
{
    struct box_uploads *self = box_cloud_state(call->cloud, &box_gmail);
    const tide_text header = box_request_header(call->request, "Content-Range");
    const tide_text body = call->request->body;
    struct range range = {.total = body.bytes};
    if (upload->done) {
        reply_again(call, upload);
        return;
    }
    if (header.data != NULL && !range_parse(header, body.bytes, &range)) {
        box_fail_argument(call, "Invalid Content-Range: %.*s",
                          (int)(header.bytes < 100 ? header.bytes : 100), header.data);
        return;
    }
    if (!range_fits(call, upload, &range))
        return;
    if (header.data == NULL)
        drop_bytes(self, upload); /* everything comes again, in one piece */
    if (range.total != UINT64_MAX)
        upload->total = range.total;
    /* What came before is skipped: it may be sent twice after a lost answer. */
    const uint64_t known = upload->bytes.bytes - range.start;
    if (!range.probe && known < body.bytes)
        take_bytes(self, upload, (tide_text){body.data + known, body.bytes - known});
    if (upload->bytes.bytes == upload->total)
        finish(call, upload);
    else
        reply_incomplete(call, upload);
}

void box_gmail_upload_chunk(struct box_call *call)
{
    struct box_uploads *self = box_cloud_state(call->cloud, &box_gmail);
    const tide_text id = box_call_param(call, "upload_id");
    for (size_t i = 0; i < BOX_UPLOADS_MAX && id.bytes > 0; i++) {
        struct upload *upload = &self->uploads[i];
        if (upload->user != call->user->number || !tide_text_equal(tide_text_of(upload->id), id))
            continue;
        if (call->now_ms - upload->made_ms > UPLOAD_LIFE_MS) {
            drop(self, upload);
            box_fail(call, 410, "global", "gone", NULL, "The upload session has expired.");
        } else {
            go_on(call, upload);
        }
        return;
    }
    box_fail_missing(call);
}

/* ---- the ways in ---- */

static void multipart(struct box_call *call, struct box_post *post)
{
    struct box_related parts;
    tide_auto_buf decoded = tide_buf_heap(BOX_INSERT_BYTES_MAX);
    const char *wrong = box_related_parse(box_request_header(call->request, "Content-Type"),
                                          call->request->body, &decoded, &parts);
    json_auto_t *meta = NULL;
    if (wrong != NULL) {
        box_fail(call, 400, "global", "badContent", "INVALID_ARGUMENT", "%s", wrong);
    } else if (check_type(call, parts.media_type)) {
        const struct box_request *whole = call->request;
        struct box_request first = *whole;
        first.body = parts.json;
        call->request = &first;
        meta = box_call_body(call);
        call->request = whole;
    }
    if (meta != NULL) {
        post->meta = meta;
        post->raw = parts.media;
        box_post_apply(call, post);
    }
}

static void media(struct box_call *call, struct box_post *post)
{
    if (!check_type(call, box_request_header(call->request, "Content-Type")))
        return;
    post->raw = call->request->body;
    if (post->raw.data == NULL)
        post->raw.data = "";
    box_post_apply(call, post);
}

static bool is_multipart(tide_text type)
{
    return type.bytes >= 10 && strncasecmp(type.data, "multipart/", 10) == 0;
}

void box_gmail_upload(struct box_call *call)
{
    struct box_post post;
    /* An update of a draft is a PUT, as a chunk is. */
    if (call->request->verb == BOX_PUT && box_call_param(call, "upload_id").bytes > 0) {
        box_gmail_upload_chunk(call);
        return;
    }
    if (call->part > 0) {
        box_fail(call, 400, "global", "badRequest", "INVALID_ARGUMENT",
                 "Media uploads cannot be part of a batch.");
        return;
    }
    if (!box_post_begin(call, box_post_kind_of(call), &post))
        return;
    tide_text way = box_call_param(call, "uploadType");
    if (way.data == NULL)
        way = box_call_param(call, "upload_protocol");
    if (way.data == NULL) /* not said: the type of the body says it */
        way = is_multipart(box_request_header(call->request, "Content-Type"))
                  ? TIDE_TEXT("multipart")
                  : TIDE_TEXT("media");
    if (tide_text_equal(way, TIDE_TEXT("media")) || tide_text_equal(way, TIDE_TEXT("raw")))
        media(call, &post);
    else if (tide_text_equal(way, TIDE_TEXT("multipart")))
        multipart(call, &post);
    else if (tide_text_equal(way, TIDE_TEXT("resumable")))
        start(call, &post);
    else
        box_fail_argument(call, "Invalid value at 'uploadType': \"%.*s\"",
                          (int)(way.bytes < 100 ? way.bytes : 100), way.data);
}
