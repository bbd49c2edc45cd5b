#include "seeds/token.h"

#include "net/api/call.h"
#include "support/wrap.h"

WRAP(tide_status, tide_api_call, tide_api *api, tide_job *job, const struct tide_api_call *call,
     struct tide_response *response, tide_error *err)
{
    struct tide_api_call other = *call;
    struct tide_header headers[TIDE_API_HEADERS_MAX];
    if (seeds_token_is_sent() && call->url != NULL && call->headers_count < TIDE_API_HEADERS_MAX) {
        for (size_t i = 0; i < call->headers_count; i++)
            headers[i] = call->headers[i];
        headers[call->headers_count] =
            (struct tide_header){TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer bearer-1")};
        other.headers = headers;
        other.headers_count++;
    }
    return __real_tide_api_call(api, job, &other, response, err);
}
