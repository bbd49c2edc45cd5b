/* google_judge.c - refusals with any code and any body (net/judge_google.h).  The first two
 * bytes are the code, the next six the time in seconds, the rest is the body. */
#include "fuzz.h"
#include "net/judge_google.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    const int http = (int)fuzz_number(&input, 2);
    const uint64_t now_unix_ms = fuzz_number(&input, 6) * 1000;
    const tide_text body = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    uint64_t wait_ms = UINT64_MAX;
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_google_judge_body(http, body, now_unix_ms, &wait_ms, &err);
    TIDE_ASSERT((rc == TIDE_OK) == (http >= 200 && http < 300));
    TIDE_ASSERT(wait_ms <= TIDE_GOOGLE_WAIT_MS_MAX);
    TIDE_ASSERT(rc == TIDE_OK || (err.status == rc && err.text[0] != '\0'));
    TIDE_ASSERT(rc == TIDE_OK || err.code == http ||
                (rc == TIDE_THROTTLED &&
                 (err.code == TIDE_REFUSED_CONCURRENCY || err.code == TIDE_REFUSED_BYTES)));
    TIDE_ASSERT(rc != TIDE_GONE || http == 404 || http == 410);
    TIDE_ASSERT((rc == TIDE_AUTH) == (http == 401));
    for (const char *c = err.text; *c != '\0'; c++)
        TIDE_ASSERT((unsigned char)*c >= 0x20 && *c != 0x7f); /* one line */
    free((void *)(uintptr_t)body.data);
    return 0;
}
