/* box_graph.c - calls to Microsoft Graph, separated by a record separator (1e): a verb, a path below
 * /v1.0/me/drive, headers, an empty line, a body.  @0 to @9 are ids of items, @L is the last link that
 * was given (an upload session, a download, a page), @E the last eTag; a verb of '!' sends the
 * path as it is.
 *
 * Whatever is sent, the drive stays consistent, a refusal by the gate leaves it as it was, and the
 * bytes of an answer can be read. */
#include "box.h"

enum { CALLS_MAX = 12, READ_BYTES_MAX = 1 << 16 };

struct session {
    box_cloud *cloud;
    box_drive *drive;
    char link[2100];
    char etag[200];
};

/* A copy of the exact size with ids and links in place of their names. */
static tide_text fill_in(const struct session *session, tide_text text, const char *before)
{
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 1 << 20);
    box_add_cstr(&out, before);
    for (size_t i = 0; i < text.bytes; i++) {
        const char name = text.data[i] == '@' && i + 1 < text.bytes ? text.data[i + 1] : '\0';
        char id[BOX_ITEM_ID_BYTES];
        if (out.bytes > 1 << 19)
            break;
        if (name >= '0' && name <= '9') {
            box_drive_id(session->drive, (uint32_t)(name - '0'), id);
            box_add_cstr(&out, id);
            i++;
        } else if (name == 'L' || name == 'E') {
            box_add_cstr(&out, name == 'L' ? session->link : session->etag);
            i++;
        } else {
            box_add(&out, &text.data[i], 1);
        }
    }
    const tide_text copy = fuzz_exact(tide_buf_text(&out));
    tide_buf_done(&out);
    return copy;
}

/* Without the origin, so that it can be asked for. */
static void keep_link(struct session *session, const char *link)
{
    static const char origin[] = "http://127.0.0.1:1";
    if (link != NULL && strncmp(link, origin, sizeof origin - 1) == 0)
        snprintf(session->link, sizeof session->link, "%s", link + sizeof origin - 1);
}

static void look(struct session *session, const struct box_answer *answer)
{
    if (answer->source.read != NULL) {
        static char bytes[READ_BYTES_MAX];
        const uint64_t all = answer->source.bytes;
        answer->source.read(answer->source.arg, 0, bytes,
                            all < READ_BYTES_MAX ? (size_t)all : READ_BYTES_MAX);
        return;
    }
    keep_link(session, fuzz_header(answer, "Location"));
    if (strncmp(answer->type, "application/json", 16) != 0 || answer->body.bytes == 0)
        return;
    json_t *json = json_loadb(answer->body.data, answer->body.bytes, JSON_ALLOW_NUL, NULL);
    TIDE_ASSERT(json != NULL);
    static const char *const links[] = {"uploadUrl", "@odata.nextLink", "@odata.deltaLink",
                                        "@microsoft.graph.downloadUrl"};
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        keep_link(session, json_string_value(json_object_get(json, links[i])));
    const char *etag = json_string_value(json_object_get(json, "eTag"));
    if (etag != NULL)
        snprintf(session->etag, sizeof session->etag, "%s", etag);
    json_decref(json);
}

static void ask(struct session *session, tide_text text, uint64_t now_ms)
{
    struct fuzz_input input = {(const uint8_t *)text.data, text.bytes};
    struct box_header headers[FUZZ_HEADERS];
    size_t count = 1;
    headers[0] = (struct box_header){TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")};
    tide_text verb = fuzz_text(&input, ' ');
    const bool as_is = verb.bytes > 0 && verb.data[0] == '!';
    if (as_is)
        verb = (tide_text){verb.data + 1, verb.bytes - 1};
    const tide_text target =
        fill_in(session, fuzz_text(&input, '\n'), as_is ? "" : "/v1.0/me/drive");
    tide_text values[FUZZ_HEADERS];
    while (fuzz_more(&input) && count < FUZZ_HEADERS) {
        const tide_text whole = fuzz_text(&input, '\n');
        struct fuzz_input line = {(const uint8_t *)whole.data, whole.bytes};
        if (whole.bytes == 0)
            break;
        headers[count].name = fuzz_text(&line, ':');
        values[count] = fill_in(session, fuzz_text(&line, '\n'), "");
        headers[count].value = values[count];
        count++;
    }
    const tide_text body = fill_in(session, (tide_text){(const char *)input.data, input.bytes}, "");
    struct box_answer answer;
    fuzz_serve(session->cloud,
               &(struct box_request){.verb = box_verb_of(verb),
                                     .target = target,
                                     .headers = headers,
                                     .headers_count = count,
                                     .body = body,
                                     .origin = TIDE_TEXT("http://127.0.0.1:1")},
               now_ms, &answer);
    look(session, &answer);
    fuzz_answered(session->cloud, &answer, now_ms);
    for (size_t i = 1; i < count; i++)
        fuzz_text_free(values[i]);
    fuzz_text_free(target);
    fuzz_text_free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    struct session session = {.cloud = fuzz_cloud()};
    session.drive = box_user_drive(box_cloud_user_at(session.cloud, 0));
    box_drive_fill(session.drive, 5, 1000, FUZZ_START_MS);
    for (uint64_t i = 0; i < CALLS_MAX && (i == 0 || fuzz_more(&input)); i++) {
        ask(&session, fuzz_text(&input, '\x1e'), FUZZ_START_MS + i * 500);
        TIDE_ASSERT(box_drive_check(session.drive) == NULL);
    }
    fuzz_cloud_end(session.cloud);
    return 0;
}
