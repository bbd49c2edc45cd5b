/* box_request.c - whole requests to the cloud in a box, separated by a record separator (1e): a
 * request line, headers, an empty line, a body.  A first byte '+' signs the request in.  The
 * cloud answers any request, and its data stays consistent. */
#include "box.h"

enum { REQUESTS_MAX = 8 };

static void ask_one(box_cloud *cloud, tide_text text, uint64_t now_ms)
{
    struct fuzz_input input = {(const uint8_t *)text.data, text.bytes};
    struct box_header headers[FUZZ_HEADERS];
    size_t count = 0;
    if (input.bytes > 0 && input.data[0] == '+') {
        (void)fuzz_u8(&input);
        headers[count++] = (struct box_header){TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")};
    }
    const box_verb verb = box_verb_of(fuzz_text(&input, ' '));
    const tide_text target = fuzz_text(&input, '\n');
    while (fuzz_more(&input) && count < FUZZ_HEADERS) {
        struct fuzz_input line = {NULL, 0};
        const tide_text whole = fuzz_text(&input, '\n');
        if (whole.bytes == 0)
            break;
        line.data = (const uint8_t *)whole.data;
        line.bytes = whole.bytes;
        headers[count].name = fuzz_text(&line, ':');
        headers[count++].value = fuzz_text(&line, '\n');
    }
    /* Copies of the exact size, so that reading one byte too far is detected. */
    const tide_text exact_target = fuzz_exact(target);
    const tide_text exact_body = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    fuzz_ask(cloud,
             &(struct box_request){.verb = verb,
                                   .target = exact_target,
                                   .headers = headers,
                                   .headers_count = count,
                                   .body = exact_body,
                                   .origin = TIDE_TEXT("http://127.0.0.1:1")},
             now_ms);
    fuzz_text_free(exact_target);
    fuzz_text_free(exact_body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    box_cloud *cloud = fuzz_cloud();
    for (uint64_t i = 0; i < REQUESTS_MAX && (i == 0 || fuzz_more(&input)); i++)
        ask_one(cloud, fuzz_text(&input, '\x1e'), FUZZ_START_MS + i * 500);
    fuzz_cloud_end(cloud);
    return 0;
}
