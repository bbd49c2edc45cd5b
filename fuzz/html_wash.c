/* html_wash.c - any bytes as HTML for display: the result has the promised form by an independent
 * reader, washing it again changes nothing, the work is linear, and a full buffer is still whole. */
#include "fuzz.h"
#include "../tests/support/wash_scan.h"
#include "mail/wash/wash.h"

static void must_scan(tide_text washed)
{
    const char *problem = wash_scan(washed);
    if (problem != NULL)
        (void)fprintf(stderr, "%s: %.*s\n", problem, (int)washed.bytes, washed.data);
    TIDE_ASSERT(problem == NULL);
}

static tide_status wash(tide_text html, tide_buf *out, struct tide_washed *washed)
{
    tide_arena arena;
    tide_arena_init(&arena, tide_mem_heap(), 64 << 20);
    tide_status rc = tide_html_wash(html, &arena, out, washed);
    for (size_t i = 0; i < washed->remote_count; i++) {
        tide_text url = washed->remote[i];
        TIDE_ASSERT(url.bytes > 7 &&
                    (memcmp(url.data, "http://", 7) == 0 || memcmp(url.data, "https:/", 7) == 0));
    }
    tide_arena_done(&arena);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tide_text html = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_buf once, twice, small;
    struct tide_washed washed;
    tide_buf_init(&once, tide_mem_heap(), TIDE_WASH_GROWTH * bytes + 4096);
    TIDE_ASSERT(wash(html, &once, &washed) == TIDE_OK);
    TIDE_ASSERT(once.bytes <= TIDE_WASH_GROWTH * bytes);
    TIDE_ASSERT(washed.work <= 6 * bytes + 16);
    must_scan(tide_buf_text(&once));

    tide_buf_init(&twice, tide_mem_heap(), TIDE_WASH_GROWTH * once.bytes + 4096);
    TIDE_ASSERT(wash(tide_buf_text(&once), &twice, &washed) == TIDE_OK);
    if (!tide_text_equal(tide_buf_text(&once), tide_buf_text(&twice)))
        (void)fprintf(stderr, "once:  %s\ntwice: %s\n", tide_buf_cstr(&once),
                      tide_buf_cstr(&twice));
    TIDE_ASSERT(tide_text_equal(tide_buf_text(&once), tide_buf_text(&twice)));
    TIDE_ASSERT(washed.remote_count == 0 && washed.cids_count == 0);

    tide_buf_init(&small, tide_mem_heap(), once.bytes / 2 + 3328);
    tide_status rc = wash(html, &small, &washed);
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_FULL);
    must_scan(tide_buf_text(&small));
    tide_buf_done(&small);
    tide_buf_done(&twice);
    tide_buf_done(&once);
    free((void *)(uintptr_t)html.data);
    return 0;
}
