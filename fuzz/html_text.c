/* html_text.c - any bytes as HTML into text: the text is clean, and a full buffer holds the
 * beginning of what a large one holds. */
#include "fuzz.h"
#include "base/json.h"
#include "mail/mime/message.h"

static void check_clean(tide_text text)
{
    for (size_t i = 0; i < text.bytes;) {
        size_t bytes = tide_utf8_bytes((tide_text){text.data + i, text.bytes - i});
        unsigned char c = (unsigned char)text.data[i];
        TIDE_ASSERT(bytes > 0);
        TIDE_ASSERT((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t');
        i += bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tide_text html = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_buf whole, small;
    tide_buf_init(&whole, tide_mem_heap(), 3 * bytes + 1);
    TIDE_ASSERT(tide_html_text(html, &whole) == TIDE_OK);
    check_clean(tide_buf_text(&whole));
    tide_buf_init(&small, tide_mem_heap(), whole.bytes / 2);
    tide_status rc = tide_html_text(html, &small);
    TIDE_ASSERT(rc == (whole.bytes > 0 ? TIDE_FULL : TIDE_OK));
    check_clean(tide_buf_text(&small));
    TIDE_ASSERT(small.bytes == 0 || memcmp(small.data, whole.data, small.bytes) == 0);
    tide_buf_done(&small);
    tide_buf_done(&whole);
    free((void *)(uintptr_t)html.data);
    return 0;
}
