/* provide.c - the network between the drive and the cloud: kills, throttling, users who change what is
 * on its way, addresses that die, content that lies. */
#include "transfer.h"

#include "support/heap.h"

#include <inttypes.h>

enum { EDIT_BYTES = 5000 };

void transfer_fault_rule(struct transfer_stage *stage, const char *rule)
{
    tide_sim_cloud_fault(stage->cloud, stage->sim, rule);
}

static bool is_file_address(const struct tide_request *request)
{
    return strstr(request->url, "/_files/") != NULL;
}

/* DTR14. */
static void check_headers(struct transfer_stage *stage, const struct tide_request *request)
{
    for (size_t i = 0; i < request->headers_count && is_file_address(request); i++)
        if (tide_text_equal(request->headers[i].name, TIDE_TEXT("Authorization")))
            tide_sim_fail(stage->sim, "DTR14: %s %s has the token", request->method, request->url);
}

/* Users change both ends of a transfer. */
static void users_act(struct transfer_stage *stage, bool download)
{
    const bool is_new = stage->kind == TRANSFER_UP_NEW;
    if (!stage->linked && !download && transfer_happens(stage, T17_SOURCE_CHANGED, 25)) {
        transfer_put_here(stage, stage->name, EDIT_BYTES);
        stage->edited = true;
    }
    if (download && transfer_happens(stage, T35_CHANGED_ONLINE, 12))
        transfer_put_online(stage, stage->name, EDIT_BYTES);
    if (!download && is_new && !stage->taken && transfer_happens(stage, T_NAME_TAKEN, 10)) {
        transfer_put_online(stage, stage->name, EDIT_BYTES);
        stage->taken = true;
    }
}

/* F34: the connection breaks, and the address no longer works; or a range is answered with all. */
static void spoil_download(struct transfer_stage *stage, struct tide_sim_answer *answer)
{
    if (answer->http / 100 != 2 || answer->body.bytes < 2)
        return;
    if (stage->misfits > 0) {
        stage->misfits--;
        answer->body.data[answer->body.bytes / 2] ^= 1;
        return;
    }
    if (transfer_happens(stage, T34_ADDRESS_DIED, 6)) {
        answer->truncate_from = tide_rng_below(&stage->rng, answer->body.bytes);
        transfer_fault_rule(stage, "{\"count\":1,\"fault\":\"url-expired\"}");
    } else if (transfer_happens(stage, T34_NO_RANGE, 6)) {
        answer->truncate_from = tide_rng_below(&stage->rng, answer->body.bytes);
        transfer_fault_rule(stage, "{\"count\":1,\"fault\":\"no-range\"}");
    }
}

static bool is_throttled(struct transfer_stage *stage, uint64_t now_unix_ms,
                         struct tide_sim_answer *answer)
{
    if (now_unix_ms >= stage->throttled_until_ms && transfer_happens(stage, T26_THROTTLED, 40))
        stage->throttled_until_ms = now_unix_ms + 300000;
    if (now_unix_ms >= stage->throttled_until_ms)
        return false;
    const uint64_t left_s = (stage->throttled_until_ms - now_unix_ms + 999) / 1000;
    answer->http = 429;
    tide_sim_answer_header(answer, "Retry-After", textf("%" PRIu64, left_s));
    return true;
}

void transfer_provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                      tide_rng *rng, struct tide_sim_answer *answer)
{
    struct transfer_stage *stage = arg;
    const bool file = is_file_address(request);
    const bool download = file && strstr(request->url, "/_files/download/") != NULL;
    const bool put = file && strcmp(request->method, "PUT") == 0;
    check_headers(stage, request);
    if (!stage->quiet && is_throttled(stage, now_unix_ms, answer))
        return;
    const bool begins = strstr(request->url, "createUploadSession") != NULL;
    if (transfer_killed(stage, T_KILLED_AT_CALL, put ? 6 : 15)) {
        stage->pieces += file;
        return; /* it never arrives */
    }
    if ((file || begins) && !stage->quiet)
        users_act(stage, download);
    tide_sim_cloud_call(stage->cloud, request, now_unix_ms, rng, answer);
    if (download && !stage->quiet)
        spoil_download(stage, answer);
    const bool last = put && (answer->http == 200 || answer->http == 201);
    if (last ? transfer_killed(stage, T4_LAST_FRAGMENT_SENT, 3)
             : transfer_killed(stage, T_KILLED_AT_CALL, 15))
        stage->pieces += file;
}
