/* http_judge.c - answers with any status and any headers (E4.2, E7.2).  The first two bytes are
 * the status, then come lines "name: value". */
#include "fuzz.h"
#include "tidemark.h"
#include "world/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    response.http = (int)fuzz_number(&input, 2);
    while (fuzz_more(&input) && response.headers_count < TIDE_RESPONSE_HEADERS_MAX) {
        tide_text line = fuzz_text(&input, '\n');
        struct fuzz_input parts = {(const uint8_t *)line.data, line.bytes};
        struct tide_header *header = &response.headers[response.headers_count++];
        header->name = fuzz_exact(fuzz_text(&parts, ':'));
        if (fuzz_more(&parts) && *parts.data == ' ')
            (void)fuzz_u8(&parts);
        header->value = fuzz_exact((tide_text){(const char *)parts.data, parts.bytes});
    }
    uint64_t retry_after_ms = 0;
    tide_error err = {TIDE_OK, 0, ""};
    tide_status status = tide_http_judge(&response, &retry_after_ms, &err);
    TIDE_ASSERT((status == TIDE_OK) == (response.http >= 200 && response.http < 300));
    TIDE_ASSERT(status == TIDE_OK || (err.status == status && err.text[0] != '\0'));
    TIDE_ASSERT(retry_after_ms <= 86400000);
    for (size_t i = 0; i < response.headers_count; i++) {
        free((void *)(uintptr_t)response.headers[i].name.data);
        free((void *)(uintptr_t)response.headers[i].value.data);
    }
    tide_response_done(&response);
    return 0;
}
