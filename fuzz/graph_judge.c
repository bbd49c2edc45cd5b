/* graph_judge.c - refusals with any code and any body (net/judge_graph.h).  The first two bytes are
 * the code, the rest is the body. */
#include "fuzz.h"
#include "net/judge_graph.h"

static void check(tide_judge *judge, struct tide_response *response, bool of_url)
{
    const int http = response->http;
    const bool good = http >= 200 && http < 300;
    uint64_t wait_ms = UINT64_MAX;
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = judge(response, &wait_ms, &err);
    const tide_graph_reason reason = tide_graph_reason_of(&err);
    TIDE_ASSERT((rc == TIDE_OK) == good);
    TIDE_ASSERT(wait_ms <= TIDE_GRAPH_WAIT_MS_MAX);
    TIDE_ASSERT(good || (err.status == rc && err.text[0] != '\0'));
    TIDE_ASSERT(good || err.code == http || (err.code == TIDE_REFUSED_BYTES && http == 509));
    TIDE_ASSERT(rc != TIDE_GONE || http == 404 || http == 410 ||
                (of_url && (http == 401 || http == 403)));
    TIDE_ASSERT((rc == TIDE_AUTH) == (http == 401 && !of_url));
    TIDE_ASSERT(reason < TIDE_GRAPH_RESYNC || http == 410);
    TIDE_ASSERT(reason != TIDE_GRAPH_NAME_TAKEN || rc == TIDE_EXISTS || of_url);
    TIDE_ASSERT(reason != TIDE_GRAPH_MODIFIED || rc == TIDE_SUPERSEDED || of_url);
    for (const char *c = err.text; *c != '\0'; c++)
        TIDE_ASSERT((unsigned char)*c >= 0x20 && *c != 0x7f); /* one line */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    response.body.bytes_max = SIZE_MAX / 2;
    response.http = (int)fuzz_number(&input, 2);
    if (tide_buf_add(&response.body, input.data, input.bytes) == TIDE_OK) {
        check(tide_graph_judge, &response, /* of_url= */ false);
        check(tide_graph_url_judge, &response, /* of_url= */ true);
    }
    tide_response_done(&response);
    return 0;
}
