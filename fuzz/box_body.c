/* box_body.c - bodies of every method that takes one.  The first line names the method (any
 * other text picks one by its first byte), the second is the query, the third the Content-Type;
 * then comes the body.  The path is filled in from what the mailbox holds, and so are ids in
 * query and body (box.h).  Where an upload session is opened, the texts after record separators
 * (1e) are its chunks: a Content-Range in a line, and bytes.
 *
 * Whatever is sent, the answer is JSON or empty, and a refusal leaves the
 * mailbox as it was (BGML2). */
#include "box.h"

#include "cloudbox/services.h"

enum { CHUNKS_MAX = 8 };

static bool takes_body(const struct box_method *method)
{
    return method->verb == BOX_POST || method->verb == BOX_PUT || method->verb == BOX_PATCH;
}

static const struct box_method *method_nth(size_t nth)
{
    size_t count = 0;
    for (const struct box_service *const *service = box_services_all; *service != NULL; service++)
        for (size_t i = 0; i < (*service)->methods_count; i++)
            if (takes_body(&(*service)->methods[i]) && count++ == nth)
                return &(*service)->methods[i];
    return NULL;
}

/* A method by its name and, since some have several, a number of '+' after it. */
static const struct box_method *method_of(tide_text line)
{
    size_t skip = 0, count = 0;
    tide_text name = line;
    for (; name.bytes > 0 && name.data[name.bytes - 1] == '+'; name.bytes--)
        skip++;
    for (; method_nth(count) != NULL; count++)
        if (tide_text_equal(name, tide_text_of(method_nth(count)->name)) && skip-- == 0)
            return method_nth(count);
    return method_nth(line.bytes == 0 ? 0 : (unsigned char)line.data[0] % count);
}

/* A path with its {…} replaced by an existing id. */
static void add_path(tide_buf *out, const char *path)
{
    while (*path != '\0') {
        const char *brace = strchr(path, '{');
        if (brace == NULL) {
            box_add_cstr(out, path);
            return;
        }
        box_add(out, path, (size_t)(brace - path));
        const bool is_draft = strstr(path, "/drafts/") != NULL;
        const bool is_label = strstr(path, "/labels/") != NULL;
        const bool is_thread = strstr(path, "/threads/") != NULL;
        if (strncmp(brace, "{userId}", 8) == 0)
            box_add_cstr(out, "me");
        else if (strncmp(brace, "{siteUrl}", 9) == 0)
            box_add_cstr(out, "sc-domain%3Ax.org");
        else
            box_add_cstr(out, is_draft ? "@d" : is_label ? "@l" : is_thread ? "@t0" : "@m0");
        path = strchr(brace, '}') + 1;
    }
}

static void check_body(const struct box_answer *answer)
{
    if (answer->body.bytes == 0 || strncmp(answer->type, "application/json", 16) != 0)
        return;
    json_t *value =
        json_loadb(answer->body.data, answer->body.bytes, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    TIDE_ASSERT(value != NULL);
    json_decref(value);
}

static void ask(box_cloud *cloud, const struct box_request *request, struct box_answer *answer)
{
    const bool watched = strncmp(request->target.data, "/_cloud", 7) != 0;
    const box_mailbox *mailbox = box_user_mailbox(box_cloud_user_at(cloud, 0));
    const uint64_t history_id = box_mailbox_history_id(mailbox);
    const uint32_t slots = box_mailbox_slots(mailbox);
    fuzz_serve(cloud, request, FUZZ_START_MS, answer);
    check_body(answer);
    if (watched && answer->status >= 400) {
        TIDE_ASSERT(box_mailbox_history_id(mailbox) == history_id);
        TIDE_ASSERT(box_mailbox_slots(mailbox) == slots);
    }
}

/* The chunks of an upload session that was just opened at `location`. */
static void upload(box_cloud *cloud, const char *location, struct fuzz_input *input)
{
    const char *origin = "http://127.0.0.1:1";
    TIDE_ASSERT(strncmp(location, origin, strlen(origin)) == 0);
    for (int i = 0; i < CHUNKS_MAX && fuzz_more(input); i++) {
        const tide_text piece = fuzz_text(input, '\x1e');
        struct fuzz_input chunk = {(const uint8_t *)piece.data, piece.bytes};
        const tide_text range = fuzz_text(&chunk, '\n');
        const tide_text body = fuzz_exact((tide_text){(const char *)chunk.data, chunk.bytes});
        const struct box_header headers[] = {
            {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")},
            {TIDE_TEXT("Content-Range"), range},
        };
        struct box_answer answer;
        ask(cloud,
            &(struct box_request){.verb = BOX_PUT,
                                  .target = tide_text_of(location + strlen(origin)),
                                  .headers = headers,
                                  .headers_count = range.bytes == 0 ? 1 : 2,
                                  .body = body,
                                  .origin = tide_text_of(origin)},
            &answer);
        fuzz_answered(cloud, &answer, FUZZ_START_MS);
        fuzz_text_free(body);
    }
}

static void ask_method(box_cloud *cloud, const struct box_method *method, struct fuzz_input *input)
{
    tide_buf path;
    tide_buf_init(&path, tide_mem_heap(), BOX_TARGET_BYTES_MAX + 4096);
    add_path(&path, method->path);
    const tide_text query = fuzz_text(input, '\n');
    if (query.bytes > 0)
        box_add(&path, "?", 1);
    box_add(&path, query.data, query.bytes);
    const tide_text type = fuzz_text(input, '\n');
    const tide_text target = fuzz_with_ids(tide_buf_text(&path), cloud);
    const tide_text body = fuzz_with_ids(fuzz_text(input, '\x1e'), cloud);
    const struct box_header headers[] = {
        {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")},
        {TIDE_TEXT("Content-Type"), type},
        {TIDE_TEXT("X-Upload-Content-Type"), TIDE_TEXT("message/rfc822")},
    };
    struct box_answer answer;
    ask(cloud,
        &(struct box_request){.verb = method->verb,
                              .target = target,
                              .headers = headers,
                              .headers_count = 3,
                              .body = body,
                              .origin = TIDE_TEXT("http://127.0.0.1:1")},
        &answer);
    const char *location = fuzz_header(&answer, "Location");
    if (location != NULL && answer.status == 200)
        upload(cloud, location, input);
    fuzz_answered(cloud, &answer, FUZZ_START_MS);
    fuzz_text_free(target);
    fuzz_text_free(body);
    tide_buf_done(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    box_cloud *cloud = fuzz_cloud();
    const uint16_t inbox = BOX_LABEL_INBOX;
    (void)box_mailbox_draft_create(box_user_mailbox(box_cloud_user_at(cloud, 0)),
                                   &(struct box_insert){.raw = TIDE_TEXT("To: a@x.org\r\n\r\nhi"),
                                                        .date_ms = FUZZ_START_MS,
                                                        .labels = &inbox,
                                                        .labels_count = 0});
    ask_method(cloud, method_of(fuzz_text(&input, '\n')), &input);
    fuzz_cloud_end(cloud);
    return 0;
}
