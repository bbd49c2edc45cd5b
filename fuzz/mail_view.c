/* mail_view.c - any bytes as a message that is shown: its body is clean and within its limit, its
 * HTML washed, the body of its document too, and its attachments have safe names and the sizes that
 * were said. */
#include "fuzz.h"
#include "../tests/support/wash_scan.h"
#include "mail/mime/body.h"
#include "mail/mime/file_name.h"
#include "mail/view/view.h"

static void must_scan(tide_text washed)
{
    const char *problem = wash_scan(washed);
    if (problem != NULL)
        (void)fprintf(stderr, "%s: %.*s\n", problem, (int)washed.bytes, washed.data);
    TIDE_ASSERT(problem == NULL);
}

static void check_body(tide_text raw, tide_arena *arena, bool html)
{
    struct tide_body body;
    size_t bytes = 0;
    TIDE_ASSERT(tide_body_read(raw, arena, &body) == TIDE_OK);
    TIDE_ASSERT(body.html == html);
    for (size_t i = 0; i < body.count; i++)
        bytes += body.pieces[i].text.bytes;
    TIDE_ASSERT(bytes <= TIDE_BODY_BYTES_MAX);
}

static void check_attachments(const struct tide_view *view)
{
    for (size_t i = 0; i < view->message.attachments_count; i++) {
        const struct tide_attachment *one = &view->message.attachments[i];
        char name[TIDE_FILE_NAME_BYTES_MAX + 1];
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), view->raw.bytes + 1);
        TIDE_ASSERT(tide_attachment_decode(tide_buf_text(&view->raw), one, &out, NULL) == TIDE_OK);
        TIDE_ASSERT(out.bytes == tide_attachment_bytes(tide_buf_text(&view->raw), one));
        tide_buf_done(&out);
        tide_file_name(one, i + 1, name);
        TIDE_ASSERT(name[0] != '\0' && name[0] != '.' && name[0] != ' ');
        TIDE_ASSERT(strpbrk(name, "/\\:*?\"<>|\n\r\t\033") == NULL);
        for (size_t at = 0; name[at] != '\0';) {
            const size_t bytes = tide_utf8_bytes(tide_text_of(name + at));
            TIDE_ASSERT(bytes > 0);
            at += bytes;
        }
    }
}

static void check_pages(struct tide_view *view)
{
    struct tide_view_page page;
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), TIDE_VIEW_DOCUMENT_BYTES_MAX);
    TIDE_ASSERT(tide_view_html(view, &out, &page) == TIDE_OK);
    must_scan(tide_buf_text(&out));
    tide_buf_clear(&out);
    TIDE_ASSERT(tide_view_document(view, &out, &page) == TIDE_OK);
    const char *body = strstr(tide_buf_cstr(&out), "<body>\n");
    TIDE_ASSERT(body != NULL);
    body += strlen("<body>\n");
    const char *end = out.data + out.bytes - strlen("\n</body></html>\n");
    TIDE_ASSERT(body <= end);
    must_scan((tide_text){body, (size_t)(end - body)});
    tide_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tide_view view = {.mem = tide_mem_heap(), .readable = true};
    tide_buf_init(&view.raw, view.mem, bytes + 1);
    tide_arena_init(&view.arena, view.mem, 256 << 20);
    TIDE_ASSERT(tide_buf_add(&view.raw, data, bytes) == TIDE_OK);
    TIDE_ASSERT(tide_message_parse(tide_buf_text(&view.raw), &view.arena, &view.message) ==
                TIDE_OK);
    check_body(tide_buf_text(&view.raw), &view.arena, view.message.has_html);
    check_attachments(&view);
    check_pages(&view);
    tide_json json;
    tide_json_object(&json);
    tide_view_json(&view, &json);
    TIDE_ASSERT(!json.failed);
    tide_json_done(&json);
    tide_view_done(&view);
    return 0;
}
