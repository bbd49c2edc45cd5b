/* One signed call (API1 to API3 of net/api/call.h), with a server that is the test's.
 *
 * Method: an engine in the simulated world; one job makes the call, the server writes down
 * what it got and answers as the test wants.  The allocator keeps every block it gets back, so
 * that a bearer left in one is found. */
#include "net/api/call.h"
#include "net/oauth/google.h"
#include "net/secrets.h"
#include "sim.h"
#include "support/test.h"

#define ORIGIN "http://127.0.0.1:4443"
#define UPLOAD "all of it, from its first byte"
enum { REQUESTS_MAX = 8, BYTES_MAX = 200, UNITS_MAX = 10 };

/* ---- memory that shows what was left in it (API2) ---- */

struct mem_seen {
    tide_mem base;
    size_t live;
    unsigned left; /* blocks that came back with a bearer in them */
};

static void *seen_resize(tide_mem *base, void *old, size_t old_bytes, size_t new_bytes)
{
    struct mem_seen *mem = (struct mem_seen *)(void *)base;
    if (old != NULL && memmem(old, old_bytes, "bearer-", 7) != NULL)
        mem->left++;
    void *moved = NULL;
    if (new_bytes > 0) {
        moved = malloc(new_bytes);
        assert_non_null(moved);
        if (old != NULL)
            memcpy(moved, old, old_bytes < new_bytes ? old_bytes : new_bytes);
    }
    mem->live += new_bytes;
    mem->live -= old_bytes;
    free(old);
    return moved;
}

/* ---- the server and the job ---- */

struct fixture {
    tide_sim *sim;
    tide_secrets *secrets;
    tide_tokens *tokens;
    tide_engine *engine;
    tide_api *api;
    struct mem_seen mem;
    uint32_t kind, account;
    struct tide_api_call call;
    const char *token_good; /* NULL: any */
    bool part_refuses;      /* the answer is 200, and its content says that the token is bad */
    int http;               /* to a good token */
    unsigned refreshes, requests;
    char tokens_seen[REQUESTS_MAX][32];
    char bodies_seen[REQUESTS_MAX][BYTES_MAX];
    char urls_seen[REQUESTS_MAX][BYTES_MAX];
    char headers_seen[REQUESTS_MAX][BYTES_MAX]; /* "Name: value;", the token aside */
    char methods_seen[REQUESTS_MAX][16];
    /* what the job did */
    size_t source_at;
    unsigned rewinds, restarts;
    char sunk[BYTES_MAX];
    bool outside; /* call without a job */
    unsigned runs;
    tide_status status;
    tide_error err;
    struct tide_response response;
};

#define OK(f, call_)                                                                               \
    do {                                                                                           \
        tide_error err_ = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &err_;                                                                   \
        const tide_status rc_ = (call_);                                                           \
        if (rc_ != TIDE_OK)                                                                        \
            tide_sim_fail((f)->sim, "%s: %s: %s", #call_, tide_status_name(rc_), err->text);       \
        (void)err;                                                                                 \
    } while (0)

static void note(struct fixture *f, const struct tide_request *request)
{
    assert_true(f->requests < REQUESTS_MAX);
    char *others = f->headers_seen[f->requests];
    f->tokens_seen[f->requests][0] = others[0] = '\0';
    for (size_t i = 0; i < request->headers_count; i++) {
        const struct tide_header *header = &request->headers[i];
        const size_t bytes = strlen(others);
        if (tide_text_equal(header->name, TIDE_TEXT("Authorization")))
            (void)snprintf(f->tokens_seen[f->requests], sizeof f->tokens_seen[0], "%.*s",
                           (int)header->value.bytes, header->value.data);
        else
            (void)snprintf(others + bytes, BYTES_MAX - bytes, "%.*s: %.*s;",
                           (int)header->name.bytes, header->name.data, (int)header->value.bytes,
                           header->value.data);
    }
    (void)snprintf(f->urls_seen[f->requests], BYTES_MAX, "%s", request->url);
    (void)snprintf(f->methods_seen[f->requests], sizeof f->methods_seen[0], "%s", request->method);
    (void)snprintf(f->bodies_seen[f->requests], BYTES_MAX, "%.*s", (int)request->body.bytes,
                   request->body.data);
    f->requests++;
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct fixture *f = arg;
    (void)now_unix_ms;
    (void)rng;
    answer->http = 200;
    tide_sim_answer_header(answer, "Content-Type", "application/json");
    if (strcmp(request->url, ORIGIN "/token") == 0) {
        (void)tide_buf_print(&answer->body,
                             "{\"access_token\":\"bearer-%u\",\"expires_in\":3599,"
                             "\"token_type\":\"Bearer\"}",
                             ++f->refreshes);
        return;
    }
    note(f, request);
    const char *sent = f->tokens_seen[f->requests - 1];
    const bool good =
        f->token_good == NULL || sent[0] == '\0' || strcmp(sent + 7, f->token_good) == 0;
    if (!good && !f->part_refuses)
        answer->http = 401;
    else if (good && f->http != 0)
        answer->http = f->http;
    /* A careless server repeats what it was sent. */
    (void)tide_buf_print(&answer->body, good ? "answer %u" : "refused %u", f->requests);
}

static tide_status source_read(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct fixture *f = arg;
    const size_t left = strlen(UPLOAD) - f->source_at;
    *count_out = left < room ? left : room;
    memcpy(bytes, &UPLOAD[f->source_at], *count_out);
    f->source_at += *count_out;
    return TIDE_OK;
}

static void source_rewind(void *arg)
{
    struct fixture *f = arg;
    f->source_at = 0;
    f->rewinds++;
}

static tide_status sink_write(void *arg, const char *bytes, size_t count)
{
    struct fixture *f = arg;
    (void)strncat(f->sunk, bytes, count);
    return TIDE_OK;
}

static void sink_restart(void *arg)
{
    struct fixture *f = arg;
    f->sunk[0] = '\0';
    f->restarts++;
}

/* As for a batch: the content of a 2xx answer decides. */
static tide_status judge_content(void *arg, const struct tide_response *response,
                                 uint64_t *retry_after_ms_out, tide_error *err)
{
    const struct fixture *f = arg;
    (void)response;
    (void)retry_after_ms_out;
    if (strncmp(f->sunk, "refused", 7) == 0)
        return tide_error_set(err, TIDE_AUTH, "a part refuses the token");
    return TIDE_OK;
}

static tide_status handler(tide_job *job, void *context, tide_error *err)
{
    struct fixture *f = context;
    f->runs++;
    f->err = (tide_error){TIDE_OK, 0, ""};
    f->status = tide_api_call(f->api, f->outside ? NULL : job, &f->call, &f->response, &f->err);
    *err = f->err;
    return f->status == TIDE_AGAIN ? TIDE_AGAIN : TIDE_OK;
}

/* ---- life ---- */

static const struct tide_api_method methods[] = {
    {NULL, NULL, 0, false},
    {"things.get", "GET", 1, true},
    {"things.put", "POST", 1, false},
    {"things.all", "GET", UNITS_MAX, true},
};
/* A refusal of a URL that is signed by itself means something else. */
static tide_status judge_url(const struct tide_response *response, uint64_t *retry_after_ms_out,
                             tide_error *err)
{
    if (response->http == 401)
        return tide_error_set(err, TIDE_GONE, "the URL no longer works");
    return tide_http_judge(response, retry_after_ms_out, err);
}

static const struct tide_provider_net provider = {.name = "test API",
                                                  .url = ORIGIN,
                                                  .judge = tide_http_judge,
                                                  .url_judge = judge_url,
                                                  .methods = methods,
                                                  .methods_count = 4};
enum { GET = 1, PUT = 2, ALL = 3 };

static const char grant[] =
    "{\"v\":1,\"type\":\"user\",\"client_id\":\"c\",\"client_secret\":\"s\","
    "\"refresh_token\":\"r\",\"token_url\":\"" ORIGIN "/token\",\"revoke_url\":"
    "\"" ORIGIN "/revoke\",\"scopes\":\"s\",\"access_token\":\"bearer-0\","
    "\"expires_unix_ms\":4000000000000}";

static struct fixture *begin(uint32_t method)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    options.net.provide = provide;
    options.net.provide_arg = f;
    f->sim = tide_sim_new(7, &options);
    f->mem.base.resize = seen_resize;
    tide_world *world = tide_sim_world(f->sim);
    OK(f,
       tide_secrets_open(world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(), &f->secrets, err));
    OK(f, tide_secrets_put(f->secrets, "me/token", tide_text_of(grant), err));
    const struct tide_tokens_options tokens_options = {.provider = &tide_oauth_google,
                                                       .secret = "me/token",
                                                       .account = "me",
                                                       .sign_in = "sign in"};
    OK(f, tide_tokens_open(world, f->secrets, &tokens_options, tide_mem_heap(), &f->tokens, err));
    const struct tide_api_options api = {
        .provider = &provider, .tokens = f->tokens, .world = world};
    OK(f, tide_api_open(&api, &f->mem.base, &f->api, err));
    const struct tide_engine_options engine = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = 2};
    OK(f, tide_engine_open(&engine, &f->engine, err));
    const struct tide_kind kind = {.name = "call", .handler = handler, .context = f};
    OK(f, tide_engine_kind(f->engine, &kind, &f->kind, err));
    OK(f, tide_engine_account(f->engine, "me", "default", &f->account, err));
    OK(f, tide_engine_start(f->engine, err));
    tide_response_init(&f->response, &f->mem.base);
    f->call = (struct tide_api_call){.method = method, .path = "/things?all=1"};
    return f;
}

/* One job, one call; until it has an outcome. */
static tide_status run(struct fixture *f)
{
    const struct tide_spec spec = {.kind = f->kind, .account = f->account};
    f->requests = f->runs = 0;
    OK(f, tide_enqueue(f->engine, &spec, 1, NULL, err));
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
    assert_null(strstr(f->err.text, "bearer-"));
    return f->status;
}

static void finish(struct fixture *f)
{
    OK(f, tide_engine_close(f->engine));
    tide_response_done(&f->response);
    tide_api_close(f->api);
    assert_int_equal(f->mem.live, 0);
    assert_int_equal(f->mem.left, 0); /* API2 */
    tide_tokens_close(f->tokens);
    tide_secrets_close(f->secrets);
    tide_sim_free(f->sim);
    free(f);
}

#define CASE(name, ...) TEST_OF(name, struct fixture *f, begin(__VA_ARGS__), finish)

static void upload(struct fixture *f)
{
    f->call.source = source_read;
    f->call.rewind = source_rewind;
    f->call.source_arg = f;
    f->call.source_bytes = strlen(UPLOAD);
}

static void download(struct fixture *f)
{
    f->call.sink = sink_write;
    f->call.restart = sink_restart;
    f->call.sink_arg = f;
}

/* ---- the tests ---- */

CASE(a_call_has_a_token_and_one_answer, GET)
{
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 1);
    assert_string_equal(f->tokens_seen[0], "Bearer bearer-0");
    assert_string_equal(tide_buf_cstr(&f->response.body), "answer 1");
}

/* API1: another token is tried once, whatever it costs, and an accepted one ends the doubt. */
CASE(a_refused_token_is_followed_by_one_more_call, GET)
{
    f->token_good = "bearer-1";
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 2);
    assert_string_equal(f->tokens_seen[1], "Bearer bearer-1");
    f->token_good = "bearer-2"; /* it expired later: the same again */
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 2);
    f->token_good = "none";
    assert_int_equal(run(f), TIDE_AUTH);
    assert_int_equal(f->requests, 2);
    assert_int_equal(run(f), TIDE_AUTH); /* nothing was accepted since: one call is enough */
    assert_int_equal(f->requests, 1);
}

/* API1: the judge of the content counts like the provider's. */
CASE(a_token_that_a_part_refuses_is_replaced_too, GET)
{
    download(f);
    f->call.judge = judge_content;
    f->call.judge_arg = f;
    f->part_refuses = true;
    f->token_good = "bearer-1";
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 2);
    assert_string_equal(f->sunk, "answer 2");
    f->token_good = "none";
    assert_int_equal(run(f), TIDE_AUTH);
    assert_int_equal(f->requests, 2);
}

/* API1: a job that had to wait for units between the two calls starts over; the second refusal ends
 * it nevertheless. */
CASE(a_wait_for_units_does_not_start_over, ALL)
{
    f->token_good = "none";
    assert_int_equal(run(f), TIDE_AUTH);
    assert_true(f->runs >= 2);
    assert_int_equal(f->requests, 2);
}

/* API3 */
CASE(a_source_is_rewound_and_a_sink_restarted, PUT)
{
    upload(f);
    download(f);
    f->token_good = "bearer-1";
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 2);
    assert_true(f->rewinds >= 2); /* more if it had to wait for units */
    assert_int_equal(f->restarts, f->rewinds);
    assert_string_equal(f->bodies_seen[0], UPLOAD);
    assert_string_equal(f->bodies_seen[1], UPLOAD);
    assert_string_equal(f->sunk, "answer 2");
}

/* The sink gets answers; a refusal is for the judge. */
CASE(a_refusal_does_not_reach_the_sink, GET)
{
    download(f);
    f->http = 404;
    assert_int_equal(run(f), TIDE_GONE);
    assert_string_equal(f->sunk, "");
    assert_string_equal(tide_buf_cstr(&f->response.body), "answer 1");
}

/* Without a job: the same, charged to no account; a bearer of its own has no successor. */
CASE(outside_of_the_engine, GET)
{
    f->outside = true;
    f->token_good = "bearer-1";
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 2);
    tide_api_close(f->api);
    const struct tide_api_options api = {
        .provider = &provider, .bearer = TIDE_TEXT("bearer-7"), .world = tide_sim_world(f->sim)};
    OK(f, tide_api_open(&api, &f->mem.base, &f->api, err));
    f->token_good = "bearer-7";
    assert_int_equal(run(f), TIDE_OK);
    assert_string_equal(f->tokens_seen[0], "Bearer bearer-7");
    f->token_good = "bearer-8";
    assert_int_equal(run(f), TIDE_AUTH);
    assert_int_equal(f->requests, 1);
}

CASE(a_call_may_have_headers_and_a_verb_of_its_own, PUT)
{
    static const struct tide_header headers[TIDE_API_HEADERS_MAX] = {
        {TIDE_TEXT("If-Match"), TIDE_TEXT("\"tag\"")}, {TIDE_TEXT("Prefer"), TIDE_TEXT("x")}};
    f->call.headers = headers;
    f->call.headers_count = 2;
    f->call.verb = "PATCH";
    f->call.body = TIDE_TEXT("{}");
    f->token_good = "bearer-1"; /* both tries have them */
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(f->headers_seen[i],
                            "Accept-Encoding: identity;Content-Type: application/json; "
                            "charset=UTF-8;If-Match: \"tag\";Prefer: x;");
        assert_string_equal(f->methods_seen[i], "PATCH");
    }
}

/* API4 */
CASE(a_url_that_is_signed_by_itself_gets_no_token, GET)
{
    f->call.url = "http://other.example:99/key?tempauth=secret";
    download(f);
    assert_int_equal(run(f), TIDE_OK);
    assert_int_equal(f->requests, 1);
    assert_string_equal(f->urls_seen[0], f->call.url);
    assert_string_equal(f->tokens_seen[0], "");
    assert_string_equal(f->headers_seen[0], "Accept-Encoding: identity;");
    assert_string_equal(f->sunk, "answer 1");
    /* Its 401 is not about the token: there is no second call, and no refresh. */
    f->http = 401;
    assert_int_equal(run(f), TIDE_GONE);
    assert_int_equal(f->requests, 1);
    assert_int_equal(f->refreshes, 0);
    /* Nor does it end the doubt about a refused one. */
    f->call.url = NULL;
    f->http = 0;
    f->token_good = "none";
    assert_int_equal(run(f), TIDE_AUTH);
    assert_int_equal(f->requests, 2);
    f->call.url = "http://other.example:99/key";
    assert_int_equal(run(f), TIDE_OK);
    f->call.url = NULL;
    assert_int_equal(run(f), TIDE_AUTH);
    assert_int_equal(f->requests, 1);
}

CASE(a_url_that_the_server_named_must_be_safe, GET)
{
    static const char *const bad[] = {"",
                                      "ftp://x/",
                                      "//x/y",
                                      "/relative",
                                      "http://",
                                      "https:///x",
                                      "https://user@x/",
                                      "https://x\\y/",
                                      "https://x/a b",
                                      "https://x/\r\nHost: y",
                                      "https://x/\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        f->call.url = bad[i];
        assert_int_equal(run(f), TIDE_SERVER);
        assert_int_equal(f->requests, 0);
    }
    f->call.url = "https://x/a@b";
    assert_int_equal(run(f), TIDE_OK);
    /* From an endpoint with TLS there is no way down. */
    tide_api_close(f->api);
    const struct tide_api_options api = {.provider = &provider,
                                         .endpoint = "https://api.example",
                                         .tokens = f->tokens,
                                         .world = tide_sim_world(f->sim)};
    OK(f, tide_api_open(&api, &f->mem.base, &f->api, err));
    f->call.url = "http://127.0.0.1/x";
    assert_int_equal(run(f), TIDE_SERVER);
    assert_int_equal(f->requests, 0);
    f->call.url = "https://127.0.0.1/x";
    assert_int_equal(run(f), TIDE_OK);
}

CASE(a_link_is_followed_at_the_endpoints_origin_only, GET)
{
    static const char *const bad[] = {"",
                                      ORIGIN,
                                      ORIGIN "0/x",
                                      ORIGIN "@evil.example/x",
                                      ORIGIN "?x",
                                      ORIGIN ".evil.example/x",
                                      "https://127.0.0.1:4443/x",
                                      "http://127.0.0.1/x",
                                      "http://evil.example/" ORIGIN "/x",
                                      ORIGIN "/x y",
                                      ORIGIN "/x\r\n",
                                      "/x"};
    const char *path = NULL;
    tide_error err = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tide_api_path_of(f->api, bad[i], &path, &err), TIDE_SERVER);
        assert_null(path);
    }
    assert_int_equal(tide_api_path_of(f->api, ORIGIN "/v1.0/delta?token='x'", &path, &err),
                     TIDE_OK);
    assert_string_equal(path, "/v1.0/delta?token='x'");
}
