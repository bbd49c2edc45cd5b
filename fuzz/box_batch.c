/* box_batch.c - batches: the value of the Content-Type header on the first line, then the body.
 * Any body is parsed without damage, at most a hundred parts run, and every part's slot is
 * released. */
#include "box.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    const tide_text type = fuzz_exact(fuzz_text(&input, '\n'));
    const tide_text body = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    const struct box_header headers[] = {
        {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")},
        {TIDE_TEXT("Content-Type"), type},
        {TIDE_TEXT("X-Outer"), TIDE_TEXT("1")},
    };
    box_cloud *cloud = fuzz_cloud();
    fuzz_ask(cloud,
             &(struct box_request){.verb = BOX_POST,
                                   .target = TIDE_TEXT("/batch/gmail/v1?prettyPrint=false&key=k"),
                                   .headers = headers,
                                   .headers_count = 3,
                                   .body = body,
                                   .origin = TIDE_TEXT("http://127.0.0.1:1")},
             FUZZ_START_MS);
    fuzz_cloud_end(cloud);
    fuzz_text_free(type);
    fuzz_text_free(body);
    return 0;
}
