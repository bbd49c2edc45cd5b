#include "net/api/call.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

enum {
    ENDPOINT_BYTES_MAX = 500,
    BEARER_BYTES_MAX = 16 << 10,
    REFUSAL_BYTES_MAX = 64 << 10, /* of an error's body, when the call has a sink */
    HEADERS_MAX = 3 + TIDE_API_HEADERS_MAX,
    UNDER_WAY_MS_MAX = 60000, /* of a call whose token the server refuses */
};

#define USER_AGENT "tidemark/" TIDE_VERSION " (gzip)"

struct tide_api {
    tide_mem *mem;
    const struct tide_provider_net *provider;
    tide_tokens *tokens;
    tide_text bearer;
    const char *token_header; /* NULL: none is sent */
    bool token_alone;
    tide_world *world;
    uint32_t patience_ms;
    bool compress;
    char endpoint[ENDPOINT_BYTES_MAX + 1];
    /* Atomic (API1).  doubt_ms: when a token was refused, if none was accepted since; 0: none.
     * refused: a number that identifies that token. */
    uint64_t doubt_ms;
    uint64_t refused;
};

/* ---- open and close ---- */

static bool is_https(const char *url)
{
    return strncmp(url, "https://", 8) == 0;
}

/* The bytes of the endpoint without a slash at its end; 0: it is not an address. */
static size_t endpoint_bytes(const char *endpoint)
{
    const bool https = is_https(endpoint);
    const size_t host = https ? 8 : 7;
    size_t bytes = strlen(endpoint);
    if (bytes > 0 && endpoint[bytes - 1] == '/')
        bytes--;
    if ((!https && strncmp(endpoint, "http://", 7) != 0) || bytes <= host ||
        bytes > ENDPOINT_BYTES_MAX || strcspn(endpoint + host, "/?#@ \t\r\n") < bytes - host)
        return 0;
    return bytes;
}

tide_status tide_api_open(const struct tide_api_options *options, tide_mem *mem, tide_api **api_out,
                          tide_error *err)
{
    TIDE_ASSERT((options->tokens == NULL && options->bearer.bytes == 0) == options->no_token);
    const struct tide_provider_net *provider = options->provider;
    const char *endpoint = options->endpoint == NULL ? provider->url : options->endpoint;
    const size_t bytes = endpoint_bytes(endpoint);
    if (bytes == 0)
        return tide_error_set(
            err, TIDE_INVALID,
            "\"%.100s\" is not an address of a %s: use http://HOST:PORT or https://HOST", endpoint,
            provider->name);
    tide_api *api = tide_mem_new(mem, sizeof *api);
    if (api == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the %s", provider->name);
    api->mem = mem;
    api->provider = provider;
    api->tokens = options->tokens;
    api->bearer = options->bearer;
    api->token_alone = options->token_header != NULL;
    if (!options->no_token)
        api->token_header = api->token_alone ? options->token_header : "Authorization";
    api->world = options->world;
    api->patience_ms = options->patience_ms;
    api->compress = is_https(endpoint);
    memcpy(api->endpoint, endpoint, bytes);
    *api_out = api;
    return TIDE_OK;
}

void tide_api_close(tide_api *api)
{
    if (api != NULL)
        tide_mem_free(api->mem, api, sizeof *api);
}

const struct tide_provider_net *tide_api_provider(const tide_api *api)
{
    return api->provider;
}

tide_mem *tide_api_mem(const tide_api *api)
{
    return api->mem;
}

tide_status tide_api_path_of(const tide_api *api, const char *link, const char **path_out,
                             tide_error *err)
{
    const size_t bytes = strlen(api->endpoint);
    /* Only "/" ends an origin here: "https://host.evil" and "https://host@evil" begin like it. */
    if (strncmp(link, api->endpoint, bytes) != 0 || link[bytes] != '/' ||
        strcspn(link, " \t\r\n") != strlen(link))
        return tide_error_set(err, TIDE_SERVER, "the server named a link at another origin");
    *path_out = link + bytes;
    return TIDE_OK;
}

/* Whether a URL that the server named may be called: no user name that looks like a host, no step
 * down from TLS. */
static bool url_is_safe(const tide_api *api, const char *url)
{
    const size_t scheme = is_https(url) ? 8 : 7;
    if (!is_https(url) && (is_https(api->endpoint) || strncmp(url, "http://", 7) != 0))
        return false;
    const size_t authority = strcspn(url + scheme, "/?#");
    for (size_t i = 0; url[i] != '\0'; i++)
        if (url[i] <= ' ' || url[i] >= 0x7f || url[i] == '\\')
            return false;
    return authority > 0 && memchr(url + scheme, '@', authority) == NULL;
}

/* ---- one call ---- */

/* A call on its way; on the caller's stack. */
struct sending {
    tide_api *api;
    tide_job *job;
    const struct tide_api_call *call;
    struct tide_response *response;
    const char *url;
    tide_buf bearer, authorization; /* in memory that is wiped (API2) */
};

static bool is_2xx(const struct tide_response *response)
{
    return response->http >= 200 && response->http < 300;
}

/* A body that is not the expected one is a refusal: the judge reads its reason, and the beginning
 * is enough. */
static tide_status on_body(void *arg, const char *bytes, size_t count)
{
    const struct sending *sending = arg;
    struct tide_response *response = sending->response;
    if (is_2xx(response))
        return sending->call->sink(sending->call->sink_arg, bytes, count);
    const size_t room = REFUSAL_BYTES_MAX - response->body.bytes;
    return tide_buf_add(&response->body, bytes, count < room ? count : room);
}

static tide_status judge(void *arg, const struct tide_response *response,
                         uint64_t *retry_after_ms_out, tide_error *err)
{
    const struct sending *sending = arg;
    const struct tide_api_call *call = sending->call;
    const struct tide_provider_net *provider = sending->api->provider;
    tide_judge *const plain =
        call->url != NULL && provider->url_judge != NULL ? provider->url_judge : provider->judge;
    TIDE_TRY(plain(response, retry_after_ms_out, err));
    if (call->judge == NULL)
        return TIDE_OK;
    return call->judge(call->judge_arg, response, retry_after_ms_out, err);
}

static size_t headers_of(const struct sending *sending, struct tide_header headers[HEADERS_MAX])
{
    const struct tide_api_call *call = sending->call;
    const char *agent = sending->api->provider->agent;
    size_t count = 0;
    if (call->url == NULL && sending->api->token_header != NULL) /* API4 */
        headers[count++] = (struct tide_header){tide_text_of(sending->api->token_header),
                                                tide_buf_text(&sending->authorization)};
    /* Google compresses only if User-Agent contains "gzip" too.  Without an Accept-Encoding
     * here, the world requests compression and decodes it.  What comes from a URL of its own is
     * content, which is counted as it is stored. */
    headers[count++] =
        sending->api->compress && call->url == NULL
            ? (struct tide_header){TIDE_TEXT("User-Agent"),
                                   tide_text_of(agent != NULL ? agent : USER_AGENT)}
            : (struct tide_header){TIDE_TEXT("Accept-Encoding"), TIDE_TEXT("identity")};
    if (call->type != NULL || call->body.bytes > 0)
        headers[count++] = (struct tide_header){
            TIDE_TEXT("Content-Type"),
            tide_text_of(call->type != NULL ? call->type : "application/json; charset=UTF-8")};
    TIDE_ASSERT(call->headers_count <= TIDE_API_HEADERS_MAX);
    for (size_t i = 0; i < call->headers_count; i++)
        headers[count++] = call->headers[i];
    TIDE_ASSERT(count <= HEADERS_MAX);
    return count;
}

bool tide_api_wait(tide_job *job, tide_status rc, uint32_t patience_ms)
{
    enum { STEP_MS = 100 };
    const uint64_t now_ms = tide_job_now_ms(job);
    const uint64_t at_ms = tide_job_again_at_ms(job);
    if (rc != TIDE_AGAIN || at_ms > now_ms + patience_ms)
        return false;
    tide_job_beat(job, 0);
    /* In steps: a command may end the account's pause, or halt it. */
    const bool soon = at_ms > now_ms && at_ms - now_ms < STEP_MS;
    return tide_job_sleep(job, soon ? at_ms - now_ms : STEP_MS) == TIDE_OK;
}

static tide_status send_request(struct sending *sending, const struct tide_request *request,
                                tide_error *err)
{
    const struct tide_api_call *call = sending->call;
    const struct tide_api_method *method = &sending->api->provider->methods[call->method];
    if (sending->job != NULL) {
        tide_status rc;
        do /* API6: nothing was sent yet */
            rc = tide_job_call_judged(sending->job, call->parts > 0 ? call->units : method->units,
                                      call->parts > 0 ? call->parts : 1, call->method, judge,
                                      sending, request, sending->response, err);
        while (sending->api->patience_ms > 0 &&
               tide_api_wait(sending->job, rc, sending->api->patience_ms));
        return rc;
    }
    uint64_t wait_ms = 0;
    TIDE_TRY(tide_world_call(sending->api->world, request, sending->response, call->cancel, err));
    return judge(sending, sending->response, &wait_ms, err);
}

static tide_status send_signed(struct sending *sending, tide_error *err)
{
    const struct tide_api_call *call = sending->call;
    const struct tide_api_method *method = &sending->api->provider->methods[call->method];
    struct tide_header headers[HEADERS_MAX];
    const struct tide_request request = {
        .method = call->parts > 0      ? "POST"
                  : call->verb != NULL ? call->verb
                                       : method->verb,
        .url = sending->url,
        .headers = headers,
        .headers_count = headers_of(sending, headers),
        .body = call->body,
        .source = call->source,
        .source_arg = call->source_arg,
        .source_bytes = call->source_bytes,
        .sink = call->sink != NULL ? on_body : NULL,
        .sink_arg = sending,
        .body_bytes_max = call->answer_bytes_max,
        .stall_timeout_ms = call->stall_timeout_ms,
        .total_timeout_ms = call->total_timeout_ms,
        .repeatable = call->parts > 0 || method->repeatable,
    };
    return send_request(sending, &request, err);
}

/* ---- tokens ---- */

/* The server refused this token: whether another one is worth a try.  Not if this is already the
 * token after a refusal, however long ago that was: the second try may have had to wait for
 * units, and a job that starts over each time would never end.  Calls that were in flight with
 * the same token are treated like the first. */
static bool refused_first(struct sending *sending)
{
    tide_api *api = sending->api;
    const tide_text bearer = tide_buf_text(&sending->bearer);
    const uint64_t number = tide_hash(TIDE_HASH_START, bearer);
    const uint64_t now_ms =
        sending->job != NULL ? tide_job_now_ms(sending->job) : tide_world_now_ms(api->world);
    const uint64_t before = __atomic_exchange_n(&api->refused, number, __ATOMIC_ACQ_REL);
    uint64_t since_ms = 0;
    tide_tokens_refused(api->tokens, bearer);
    if (__atomic_compare_exchange_n(&api->doubt_ms, &since_ms, now_ms + 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return true;
    return before == number && now_ms < since_ms + UNDER_WAY_MS_MAX;
}

/* API5: a key is refused until its user stores another, or the same one again.  The second try finds that
 * one, or ends without a call, with the refusal and the command that stores a key. */
static bool refused_key(struct sending *sending, const tide_error *err)
{
    tide_tokens_refused_for(sending->api->tokens, tide_buf_text(&sending->bearer),
                            err == NULL ? "" : err->text);
    return true;
}

static tide_status bearer_get(struct sending *sending, tide_error *err)
{
    tide_api *api = sending->api;
    tide_buf_clear(&sending->bearer);
    tide_buf_clear(&sending->authorization);
    tide_status rc = TIDE_OK;
    if (api->tokens != NULL) {
        const tide_cancel *cancel =
            sending->job != NULL ? tide_job_cancellation(sending->job) : sending->call->cancel;
        rc = tide_tokens_get(api->tokens, cancel, &sending->bearer, err);
        if (rc != TIDE_OK)
            return rc;
    } else {
        rc = tide_buf_add(&sending->bearer, api->bearer.data, api->bearer.bytes);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_print(&sending->authorization, "%s%s", api->token_alone ? "" : "Bearer ",
                            tide_buf_cstr(&sending->bearer));
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for a token");
}

/* One try.  *again_out: it may succeed with another token. */
static tide_status call_once(struct sending *sending, bool *again_out, tide_error *err)
{
    tide_api *api = sending->api;
    const struct tide_api_call *call = sending->call;
    *again_out = false;
    if (call->rewind != NULL) /* API3 */
        call->rewind(call->source_arg);
    if (call->restart != NULL)
        call->restart(call->sink_arg);
    if (call->url == NULL && api->token_header != NULL)
        TIDE_TRY(bearer_get(sending, err));
    sending->response->http = 0; /* of this try: a charge that fails leaves it */
    tide_status rc = send_signed(sending, err);
    const int http = sending->response->http;
    if (call->url != NULL)
        return rc; /* API4 */
    if (rc == TIDE_AUTH && http != 0)
        *again_out = api->tokens != NULL &&
                     (api->provider->keys ? refused_key(sending, err) : refused_first(sending));
    else if (http != 401 && http != 0 && http < 500)
        __atomic_store_n(&api->doubt_ms, 0, __ATOMIC_RELEASE);
    return rc;
}

tide_status tide_api_call(tide_api *api, tide_job *job, const struct tide_api_call *call,
                          struct tide_response *response, tide_error *err)
{
    TIDE_ASSERT(call->method < api->provider->methods_count);
    struct tide_mem_wiping wiping;
    struct sending sending = {.api = api, .job = job, .call = call, .response = response};
    tide_mem_wiping_init(&wiping, api->mem);
    tide_buf_init(&sending.bearer, &wiping.base, BEARER_BYTES_MAX);
    tide_buf_init(&sending.authorization, &wiping.base, BEARER_BYTES_MAX + 8);
    tide_auto_buf url = tide_buf_in(api->mem, TIDE_URL_BYTES_MAX);
    tide_status rc =
        call->url != NULL ? TIDE_OK : tide_buf_print(&url, "%s%s", api->endpoint, call->path);
    sending.url = call->url != NULL ? call->url : tide_buf_cstr(&url);
    if (call->url != NULL && !url_is_safe(api, call->url)) {
        rc = tide_error_set(err, TIDE_SERVER, "%s: the server named a URL that is not safe to use",
                            api->provider->methods[call->method].name);
    } else if (rc != TIDE_OK) {
        (void)tide_error_set(err, rc, "%s: the request is too long to be sent",
                             api->provider->methods[call->method].name);
    } else {
        bool again = false;
        rc = call_once(&sending, &again, err);
        if (again) {
            TIDE_SEEN("api: a token was refused");
            rc = call_once(&sending, &again, err);
        }
    }
    tide_buf_done(&sending.authorization);
    tide_buf_done(&sending.bearer);
    return rc;
}
