/* assistant_marker.c - any bytes as the body of a draft and as a model's text (assistant/text:
 * marker.h MRK1 to MRK3, quote.h QUO1). */
#include "assistant/text/marker.h"
#include "assistant/text/quote.h"
#include "base/json.h"
#include "fuzz.h"

static void check_inside(tide_text part, tide_text whole)
{
    TIDE_ASSERT(part.bytes == 0 ||
                (part.data >= whole.data && part.data + part.bytes <= whole.data + whole.bytes));
}

static void check_found(tide_text body)
{
    struct tide_marked marked;
    tide_marker_find(body, &marked);
    check_inside(marked.above, body);
    check_inside(marked.below, body);
    TIDE_ASSERT(marked.found || (marked.above.bytes == 0 && marked.further == 0));
    tide_auto_buf words = tide_buf_heap(1 << 20), notes = tide_buf_heap(1 << 20);
    tide_auto_buf kept = tide_buf_heap(1 << 20);
    TIDE_ASSERT(tide_rework_instruction(&marked, &words) == TIDE_OK);
    TIDE_ASSERT(words.bytes > 0 && words.bytes <= TIDE_INSTRUCTION_BYTES_MAX);
    TIDE_ASSERT(tide_manual_notes(&marked, &notes) == TIDE_OK);
    TIDE_ASSERT(notes.bytes <= TIDE_INSTRUCTION_BYTES_MAX);
    TIDE_ASSERT(tide_quote_begin(body) <= body.bytes);
    TIDE_ASSERT(tide_quote_strip(body, &kept) == TIDE_OK);
    TIDE_ASSERT(kept.bytes <= body.bytes);
}

static void check_written(tide_text text)
{
    tide_auto_buf draft = tide_buf_heap(1 << 20), again = tide_buf_heap(1 << 20);
    TIDE_ASSERT(tide_draft_add(tide_last_rework_notice, text, &draft) == TIDE_OK);
    struct tide_marked marked;
    tide_marker_find(tide_buf_text(&draft), &marked);
    TIDE_ASSERT(marked.found && marked.further == 0);
    TIDE_ASSERT(tide_text_equal(marked.above, tide_text_of(tide_last_rework_notice)));
    TIDE_ASSERT(tide_draft_add(tide_last_rework_notice, marked.below, &again) == TIDE_OK);
    TIDE_ASSERT(tide_text_equal(tide_buf_text(&draft), tide_buf_text(&again)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const tide_text body = fuzz_exact((tide_text){(const char *)data, bytes});
    check_found(body);
    check_written(body);
    free((void *)(uintptr_t)body.data);
    return 0;
}
