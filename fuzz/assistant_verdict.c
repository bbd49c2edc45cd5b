/* assistant_verdict.c - any bytes as a model's answer (assistant/text/verdict.h VRD1). */
#include "assistant/text/verdict.h"
#include "base/json.h"
#include "fuzz.h"

static void check_line(const char *text, size_t bytes_max)
{
    tide_text rest = tide_text_of(text);
    TIDE_ASSERT(rest.bytes <= bytes_max);
    while (rest.bytes > 0) {
        const size_t bytes = tide_utf8_bytes(rest);
        TIDE_ASSERT(bytes > 0 && (unsigned char)rest.data[0] >= ' ' && rest.data[0] != 0x7f);
        rest = (tide_text){rest.data + bytes, rest.bytes - bytes};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const tide_text styles[] = {{"business", 8}, {"friendly", 8}};
    const tide_text answer = fuzz_exact((tide_text){(const char *)data, bytes});
    struct tide_verdict verdict;
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_verdict_read(answer, styles, 2, &verdict, &err);
    if (rc == TIDE_OK) {
        TIDE_ASSERT(verdict.category > TIDE_ASSISTANT_NO_CATEGORY);
        TIDE_ASSERT(verdict.category < TIDE_ASSISTANT_CATEGORIES);
        TIDE_ASSERT((unsigned)verdict.confidence <= TIDE_CONFIDENCE_HIGH);
        TIDE_ASSERT(verdict.style >= TIDE_STYLE_NONE && verdict.style < 2);
        check_line(verdict.language, TIDE_LANGUAGE_BYTES_MAX);
        check_line(verdict.reasoning, TIDE_REASONING_BYTES_MAX);
    } else {
        TIDE_ASSERT(rc == TIDE_INVALID && err.text[0] != '\0');
    }
    struct tide_searches searches;
    if (tide_searches_read(answer, 2, &searches, NULL) == TIDE_OK) {
        TIDE_ASSERT(searches.count <= 2);
        for (size_t i = 0; i < searches.count; i++) {
            TIDE_ASSERT(searches.queries[i][0] != '\0');
            check_line(searches.queries[i], TIDE_SEARCH_BYTES_MAX);
        }
    }
    free((void *)(uintptr_t)answer.data);
    return 0;
}
