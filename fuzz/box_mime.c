/* box_mime.c - any bytes as a message: its tree, headers, texts, snippet and attachments.  The
 * tree is bounded (BMIM2) and the same each time (BMIM1), every attachment it names can be read with
 * the size it states, and every text that comes out is UTF-8. */
#include "fuzz.h"
#include "cloudbox/gate/http.h"
#include "cloudbox/mailbox/mime.h"

struct seen {
    tide_text raw;
    size_t parts;
};

static void check_body(const struct seen *seen, const json_t *body)
{
    const json_t *id = json_object_get(body, "attachmentId");
    const json_t *size = json_object_get(body, "size");
    TIDE_ASSERT(json_is_integer(size));
    if (id == NULL)
        return;
    tide_buf bytes;
    tide_buf_init(&bytes, tide_mem_heap(), 16 << 20);
    TIDE_ASSERT(box_mime_attachment(seen->raw, tide_text_of(json_string_value(id)), &bytes));
    TIDE_ASSERT((json_int_t)bytes.bytes == json_integer_value(size));
    tide_buf_done(&bytes);
}

/* As deep as the tree may be and no deeper. */
static void check_part(struct seen *seen, const json_t *part, int deep)
{
    TIDE_ASSERT(deep <= BOX_PARTS_DEEP);
    TIDE_ASSERT(++seen->parts <= BOX_PARTS_MAX);
    TIDE_ASSERT(json_is_string(json_object_get(part, "partId")));
    TIDE_ASSERT(json_is_string(json_object_get(part, "mimeType")));
    check_body(seen, json_object_get(part, "body"));
    const json_t *parts = json_object_get(part, "parts");
    for (size_t i = 0; i < json_array_size(parts); i++)
        check_part(seen, json_array_get(parts, i), deep + 1);
}

static void check_utf8(tide_text text)
{
    while (text.bytes > 0) {
        const unsigned char lead = (unsigned char)text.data[0];
        const size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        TIDE_ASSERT(lead < 0x80 || (lead >= 0xc2 && lead < 0xf5));
        TIDE_ASSERT(bytes <= text.bytes);
        for (size_t i = 1; i < bytes; i++)
            TIDE_ASSERT(((unsigned char)text.data[i] & 0xc0) == 0x80);
        text = (tide_text){text.data + bytes, text.bytes - bytes};
    }
}

static void check_view(const struct box_view *view)
{
    check_utf8(view->from);
    check_utf8(view->to);
    check_utf8(view->cc);
    check_utf8(view->bcc);
    check_utf8(view->subject);
    check_utf8(view->text);
    check_utf8(view->filenames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool started;
    if (!started)
        box_mime_start();
    started = true;
    struct seen seen = {fuzz_exact((tide_text){(const char *)data, bytes}), 0};
    json_t *full = box_mime_full(seen.raw);
    json_t *again = box_mime_full(seen.raw);
    TIDE_ASSERT(json_equal(full, again));
    check_part(&seen, full, 0);

    const tide_text only[] = {TIDE_TEXT("subject"), TIDE_TEXT("From")};
    json_t *metadata = box_mime_metadata(seen.raw, only, 2);
    TIDE_ASSERT(json_is_object(metadata));

    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 64 << 20);
    struct box_view view;
    box_mime_headers(seen.raw, &arena, &view);
    check_view(&view);
    box_mime_view(seen.raw, &arena, &view);
    check_view(&view);

    tide_buf snippet;
    tide_buf_init(&snippet, tide_mem_heap(), 1 << 20);
    box_mime_snippet(seen.raw, &snippet);
    check_utf8(tide_buf_text(&snippet));

    tide_buf_done(&snippet);
    tide_arena_done(&arena);
    json_decref(metadata);
    json_decref(again);
    json_decref(full);
    free((void *)(uintptr_t)seen.raw.data);
    return 0;
}
