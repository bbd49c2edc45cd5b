/* chat_judge.c - refusals with any code and any body (net/judge_chat.h).  The first two bytes are the
 * code, the next one chooses headers, the rest is the body. */
#include "fuzz.h"
#include "net/judge_chat.h"

static void check_text(const tide_error *err)
{
    TIDE_ASSERT(err->text[0] != '\0');
    for (const char *c = err->text; *c != '\0'; c++)
        TIDE_ASSERT((unsigned char)*c >= 0x20 && *c != 0x7f); /* one line */
}

static void check_event(tide_text body)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_chat_judge_event(body, &err);
    TIDE_ASSERT(rc != TIDE_OK && rc != TIDE_GONE && err.status == rc);
    check_text(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const struct tide_header headers[] = {
        {TIDE_TEXT("retry-after-ms"), TIDE_TEXT("12.5")},
        {TIDE_TEXT("Retry-After"), TIDE_TEXT("99999999999999")},
        {TIDE_TEXT("x-should-retry"), TIDE_TEXT("false")},
        {TIDE_TEXT("x-should-retry"), TIDE_TEXT("true")},
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("text/html")},
        {TIDE_TEXT("request-id"), TIDE_TEXT("req_1")},
    };
    struct fuzz_input input = {data, bytes};
    struct tide_response response;
    uint64_t wait_ms = UINT64_MAX;
    tide_error err = {TIDE_OK, 0, ""};
    tide_response_init(&response, tide_mem_heap());
    response.body.bytes_max = SIZE_MAX / 2;
    const int http = response.http = (int)fuzz_number(&input, 2);
    const unsigned chosen = fuzz_u8(&input);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if ((chosen & 1u << i) != 0)
            response.headers[response.headers_count++] = headers[i];
    if (tide_buf_add(&response.body, input.data, input.bytes) == TIDE_OK) {
        const bool good = http >= 200 && http < 300;
        const tide_status rc = tide_chat_judge(&response, &wait_ms, &err);
        TIDE_ASSERT((rc == TIDE_OK) == (good && (chosen & 16) == 0));
        TIDE_ASSERT(wait_ms <= TIDE_CHAT_WAIT_MS_MAX);
        TIDE_ASSERT(rc == TIDE_OK || (err.status == rc && err.code == http));
        TIDE_ASSERT(rc != TIDE_GONE);
        TIDE_ASSERT(tide_chat_reason_of(&err) != TIDE_CHAT_BILLING || rc == TIDE_AUTH);
        TIDE_ASSERT(http != 401 || rc == TIDE_AUTH);
        if (rc != TIDE_OK)
            check_text(&err);
        check_event(tide_buf_text(&response.body));
    }
    tide_response_done(&response);
    return 0;
}
