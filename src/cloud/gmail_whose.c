#include "cloud/gmail_whose.h"

#include "cloud/gmail_answer.h"
#include "net/judge_google.h"

#include <stdio.h>
#include <string.h>

enum { TIMEOUT_MS = 30000, ANSWER_BYTES_MAX = 1 << 20, URL_BYTES_MAX = 600 };

static tide_status read_answer(const struct tide_response *response,
                               struct tide_gmail_profile *profile_out, tide_error *err)
{
    json_t *value = NULL;
    uint64_t wait_ms = 0;
    if (response->http == 404 || response->http == 405 || response->http == 501)
        return tide_error_set(err, TIDE_GONE, "this server has no users.getProfile");
    tide_status rc = tide_google_judge(response, &wait_ms, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_answer_parse(tide_buf_text(&response->body), &value, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_answer_profile(value, profile_out, err);
    json_decref(value);
    return rc;
}

tide_status tide_gmail_whose(tide_world *world, const char *endpoint, tide_text bearer,
                             tide_mem *mem, const tide_cancel *cancel,
                             struct tide_gmail_profile *profile_out, tide_error *err)
{
    char url[URL_BYTES_MAX];
    tide_buf authorization;
    struct tide_response response;
    const char *base = endpoint == NULL ? "https://gmail.googleapis.com" : endpoint;
    const size_t bytes = strlen(base);
    (void)snprintf(url, sizeof url, "%.*s/gmail/v1/users/me/profile?prettyPrint=false",
                   (int)(bytes > 0 && base[bytes - 1] == '/' ? bytes - 1 : bytes), base);
    tide_buf_init(&authorization, mem, 64 << 10);
    tide_response_init(&response, mem);
    tide_status rc = tide_buf_print(&authorization, "Bearer %.*s", (int)bearer.bytes, bearer.data);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no room for a token");
    const struct tide_header headers[] = {
        {TIDE_TEXT("Authorization"), tide_buf_text(&authorization)},
        {TIDE_TEXT("Accept"), TIDE_TEXT("application/json")},
    };
    const struct tide_request request = {.method = "GET",
                                         .url = url,
                                         .headers = headers,
                                         .headers_count = sizeof headers / sizeof headers[0],
                                         .body_bytes_max = ANSWER_BYTES_MAX,
                                         .total_timeout_ms = TIMEOUT_MS,
                                         .repeatable = true};
    if (rc == TIDE_OK)
        rc = tide_world_call(world, &request, &response, cancel, err);
    if (rc == TIDE_OK)
        rc = read_answer(&response, profile_out, err);
    tide_secret_wipe(&authorization);
    tide_response_done(&response);
    tide_buf_done(&authorization);
    return rc;
}
