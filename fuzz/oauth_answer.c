/* oauth_answer.c - what a browser sends to the listener and what users paste (world/loopback.h,
 * net/oauth/oauth.h): any bytes as a request's head, as a query and as a form's value. */
#include "fuzz.h"
#include "net/oauth/inside.h"
#include "world/loopback.h"

static void head(tide_text text)
{
    tide_text target = TIDE_TEXT_NONE;
    const int http = tide_loopback_head_read(text, 8080, &target);
    TIDE_ASSERT((http == 200) == (target.data != NULL));
    if (http == 200) {
        TIDE_ASSERT(target.data >= text.data &&
                    target.data + target.bytes <= text.data + text.bytes);
        TIDE_ASSERT(target.bytes > 0 && target.data[0] == '/');
        TIDE_ASSERT(memchr(target.data, '\n', target.bytes) == NULL);
    } else {
        TIDE_ASSERT(http == 400 || http == 405 || http == 421 || http == 505);
    }
}

/* Escaped text decodes to the same text, and any query can be read. */
static void form(tide_text text)
{
    tide_buf escaped;
    tide_buf value;
    tide_buf_init(&escaped, tide_mem_heap(), 4 << 20);
    tide_buf_init(&value, tide_mem_heap(), 4 << 20);
    TIDE_ASSERT(tide_form_add(&escaped, "first", TIDE_TEXT("1")) == TIDE_OK);
    TIDE_ASSERT(tide_form_add(&escaped, "text", text) == TIDE_OK);
    TIDE_ASSERT(tide_form_get(tide_buf_text(&escaped), "text", &value) == TIDE_OK);
    TIDE_ASSERT(tide_text_equal(tide_buf_text(&value), text));
    const tide_status rc = tide_form_get(text, "code", &value);
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_NOT_FOUND || rc == TIDE_INVALID);
    tide_buf_done(&escaped);
    tide_buf_done(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const tide_text text = fuzz_exact((tide_text){(const char *)data, bytes});
    head(text);
    form(text);
    free((void *)(uintptr_t)text.data);
    return 0;
}
