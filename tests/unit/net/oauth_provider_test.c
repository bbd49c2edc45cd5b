/* Signing in to a provider that is unlike Google: device codes, refresh tokens that are replaced
 * at each use, public clients, no revocation.  The provider is simulated. */
#include "oauth_stage.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"

#include <strings.h>

#define FILES    "Files.Read"
#define REQUESTS 256

/* ---- the simulated provider ---- */

static bool other_covers(tide_text given, tide_text asked)
{
    return given.bytes == asked.bytes && strncasecmp(given.data, asked.data, given.bytes) == 0;
}

static const struct tide_oauth_error other_errors[] = {{"asleep", TIDE_THROTTLED}, {NULL, TIDE_OK}};

static const struct tide_oauth_provider other = {
    .name = "other",
    .auth_url = "https://login.example/v2/authorize",
    .token_url = "https://login.example/v2/token",
    .device_url = "https://login.example/v2/devicecode",
    .revoke_page = "https://account.example/apps",
    .client_help = "Register a client.",
    .more_scopes = "offline_access",
    .refresh_scopes = true,
    .errors = other_errors,
    .scope_covers = other_covers,
};

static const struct tide_oauth_client other_client = {.client_id = "app-1",
                                                      .client_secret = "must-not-be-sent"};

static const struct tide_tokens_options other_options = {
    .provider = &other,
    .secret = "drive/ada",
    .account = "ada",
    .sign_in = "tidemark account add drive ada",
};

/* A refresh token is accepted until its successor, or the access token that came with the
 * successor, was used.  With `strict` until a successor was given. */
struct server {
    bool strict;
    unsigned issued; /* generation of the newest tokens; 0: none */
    unsigned used;   /* newest generation that was used */
    unsigned refused;
    unsigned requests[REQUESTS]; /* seconds at which the token endpoint was asked */
    unsigned requests_count;
    const char *device_answer;
    const char *script; /* of polls: p(ending) s(low down) d(enied) e(xpired) 5(03) r(eset) o(k) */
    const char *broken; /* answered to everything, with `broken_http` */
    int broken_http;
    char form[1024]; /* the last one */
};

#define DEVICE_ANSWER                                                                              \
    "{\"device_code\":\"device-code-secret\",\"user_code\":\"ABCD-1234\",\"verification_uri\":"    \
    "\"https://login.example/device\",\"expires_in\":900,\"interval\":5,\"message\":\"x\"}"

static void give_tokens(struct server *server, struct tide_sim_answer *answer)
{
    server->issued++;
    answer->http = 200;
    const char *token = textf("refresh-token-%u", server->issued);
    keep_secret(token);
    (void)tide_buf_print(&answer->body,
                         "{\"token_type\":\"Bearer\",\"expires_in\":3599,\"scope\":\"files.read "
                         "profile\",\"access_token\":\"access-token-%u\",\"refresh_token\":\"%s\"}",
                         server->issued, token);
}

static void refuse(struct tide_sim_answer *answer, const char *error)
{
    answer->http = 400;
    (void)tide_buf_print(&answer->body, "{\"error\":\"%s\"}", error);
}

static void serve_poll(struct server *server, struct tide_sim_answer *answer)
{
    const char next = *server->script == '\0' ? 'p' : *server->script++;
    switch (next) {
    case 'o':
        give_tokens(server, answer);
        break;
    case 's':
        refuse(answer, "slow_down");
        break;
    case 'd':
        refuse(answer, "authorization_declined");
        break;
    case 'e':
        refuse(answer, "expired_token");
        break;
    case '5':
        answer->http = 503;
        break;
    case 'r':
        answer->reset = true;
        break;
    default:
        refuse(answer, "authorization_pending");
    }
}

static void serve_refresh(struct server *server, struct tide_sim_answer *answer)
{
    unsigned generation = 0;
    const char *token = strstr(server->form, "refresh_token=refresh-token-");
    assert_non_null(token);
    assert_int_equal(sscanf(token, "refresh_token=refresh-token-%u", &generation), 1);
    if (generation < server->used || (server->strict && generation != server->issued)) {
        server->refused++;
        refuse(answer, "invalid_grant");
        return;
    }
    server->used = generation;
    give_tokens(server, answer);
}

/* The API: an access token that works ends the older refresh tokens. */
static void serve_api(struct server *server, const struct tide_request *request,
                      struct tide_sim_answer *answer)
{
    unsigned generation = 0;
    assert_int_equal(request->headers_count, 1);
    assert_int_equal(sscanf(request->headers[0].value.data, "Bearer access-token-%u", &generation),
                     1);
    if (generation > server->used)
        server->used = generation;
    answer->http = 200;
}

static void serve(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                  tide_rng *rng, struct tide_sim_answer *answer)
{
    (void)rng;
    struct server *server = arg;
    if (strstr(request->url, "api.example") != NULL) {
        serve_api(server, request, answer);
        return;
    }
    (void)snprintf(server->form, sizeof server->form, "%.*s", (int)request->body.bytes,
                   request->body.data);
    keep_form(request->body);
    if (server->broken != NULL) {
        answer->http = server->broken_http;
        (void)tide_buf_add_text(&answer->body, server->broken);
    } else if (strcmp(request->url, other.device_url) == 0) {
        answer->http = 200;
        (void)tide_buf_add_text(&answer->body, server->device_answer);
    } else {
        assert_string_equal(request->url, other.token_url); /* there is no other endpoint */
        assert_in_range(server->requests_count, 0, REQUESTS - 1);
        server->requests[server->requests_count++] = (unsigned)(now_unix_ms / 1000);
        if (strstr(server->form, "device_code=") != NULL)
            serve_poll(server, answer);
        else if (strstr(server->form, "grant_type=refresh_token") != NULL)
            serve_refresh(server, answer);
        else
            give_tokens(server, answer);
    }
}

/* ---- the stage ---- */

static struct server server; /* of the stage */

static struct stage *other_start(uint64_t seed)
{
    server = (struct server){.device_answer = DEVICE_ANSWER, .script = "o"};
    const struct tide_sim_options options = {.net = {.provide = serve, .provide_arg = &server}};
    struct stage *stage = stage_open(seed, options);
    stage->client = other_client;
    keep_secret("device-code-secret");
    keep_secret(other_client.client_secret);
    return stage;
}

static tide_oauth_flow *other_flow(struct stage *stage, tide_oauth_way way)
{
    tide_oauth_flow *flow = NULL;
    const struct tide_oauth_ask ask = {
        .provider = &other, .client = &stage->client, .scopes = FILES, .way = way};
    EXPECT(tide_oauth_flow_start(stage->world, &ask, tide_mem_heap(), &flow, &stage->err), TIDE_OK);
    return flow;
}

/* Finishes and frees the flow, and stores the grant. */
static void other_finish(struct stage *stage, tide_oauth_flow *flow)
{
    EXPECT(finish(stage, flow), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&stage->scopes), "files.read profile");
    assert_true(tide_oauth_scopes_cover(&other, tide_buf_text(&stage->scopes), FILES));
    assert_non_null(strstr(tide_buf_cstr(&stage->grant), "\"provider\":\"other\""));
    assert_null(strstr(tide_buf_cstr(&stage->grant), other_client.client_secret));
    put_grant(stage, other_options.secret);
    tide_oauth_flow_free(flow);
}

static void other_open(struct stage *stage)
{
    EXPECT(tokens_try(stage, &other_options), TIDE_OK);
}

static struct stage *other_signed_in(uint64_t seed)
{
    struct stage *stage = other_start(seed);
    tide_oauth_flow *flow = other_flow(stage, TIDE_OAUTH_DEVICE);
    EXPECT(tide_oauth_flow_wait(flow, TIDE_NEVER, NULL, &stage->err), TIDE_OK);
    other_finish(stage, flow);
    other_open(stage);
    return stage;
}

#define OTHER(name, seed) TEST_OF(name, struct stage *stage, other_start(seed), stage_end)
#define OTHER_SIGNED_IN(name, seed)                                                                \
    TEST_OF(name, struct stage *stage, other_signed_in(seed), stage_end)

/* Calls the API with a token. */
static tide_status use(struct stage *stage, const char *token)
{
    char bearer[600];
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
    const struct tide_header header = {TIDE_TEXT("Authorization"), tide_text_of(bearer)};
    const struct tide_request request = {
        .method = "GET", .url = "https://api.example/me", .headers = &header, .headers_count = 1};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    const tide_status rc = tide_world_call(stage->world, &request, &response, NULL, NULL);
    tide_response_done(&response);
    return rc;
}

/* ---- device codes ---- */

OTHER(a_user_signs_in_by_typing_a_code_elsewhere, 1)
{
    char token[512];
    assert_int_equal(tide_oauth_headless(&other), TIDE_OAUTH_DEVICE);
    assert_int_equal(tide_oauth_headless(&tide_oauth_google), TIDE_OAUTH_PASTE);
    tide_oauth_flow *flow = other_flow(stage, TIDE_OAUTH_DEVICE);
    assert_string_equal(tide_oauth_flow_user_code(flow), "ABCD-1234");
    assert_string_equal(tide_oauth_flow_link(flow), "https://login.example/device");
    assert_string_equal(server.form, "client_id=app-1&scope=" FILES "%20offline_access");

    server.script = "ppsp5ro";
    EXPECT(tide_oauth_flow_wait(flow, TIDE_NEVER, NULL, &stage->err), TIDE_OK);
    assert_string_equal(server.form,
                        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&"
                        "client_id=app-1&device_code=device-code-secret");
    /* The interval: as the server said, longer each time it says "slow down", doubled while it
     * fails. */
    static const unsigned waits_s[] = {5, 5, 10, 10, 20, 40};
    assert_int_equal(server.requests_count, 7);
    for (size_t i = 0; i < sizeof waits_s / sizeof waits_s[0]; i++)
        assert_in_range(server.requests[i + 1] - server.requests[i], waits_s[i], waits_s[i] + 1);

    other_finish(stage, flow);
    other_open(stage);
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_equal(token, "access-token-1");
    assert_int_equal(server.requests_count, 7); /* it came with the grant */
    assert_true(tide_tokens_cover(stage->tokens, FILES));
    assert_false(tide_tokens_cover(stage->tokens, "Files.ReadWrite"));
}

TEST(a_code_that_is_not_used_ends_the_sign_in)
{
    static const struct {
        const char *script;
        uint64_t wait_ms;
        tide_status expected;
        const char *text;
    } rows[] = {
        {"pd", TIDE_NEVER, TIDE_AUTH, "not granted"},  {"pe", TIDE_NEVER, TIDE_TIMEOUT, "expired"},
        {"", TIDE_NEVER, TIDE_TIMEOUT, "not entered"}, /* after 900 s by our clock */
        {"p5", 12000, TIDE_TIMEOUT, "answered 503"},   {"", 0, TIDE_TIMEOUT, "not entered"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stage *stage = other_start(10 + i);
        tide_oauth_flow *flow = other_flow(stage, TIDE_OAUTH_DEVICE);
        server.script = rows[i].script;
        const uint64_t began_ms = tide_world_now_ms(stage->world);
        EXPECT(tide_oauth_flow_wait(flow, rows[i].wait_ms, NULL, &stage->err), rows[i].expected);
        if (strstr(stage->err.text, rows[i].text) == NULL)
            fail_msg("%s", stage->err.text);
        assert_in_range(tide_world_now_ms(stage->world) - began_ms, 0, 900000);
        tide_oauth_flow_free(flow);
        stage_end(stage);
    }
}

struct canceler {
    tide_world *world;
    tide_cancel cancel;
};

/* As a signal handler does: the token is set, and no sleeper is woken. */
static void canceler_run(void *arg)
{
    struct canceler *canceler = arg;
    (void)tide_world_sleep_until(canceler->world, tide_world_now_us(canceler->world) + 7000000,
                                 NULL);
    __atomic_store_n(&canceler->cancel.reason, (int)TIDE_CANCEL_USER, __ATOMIC_RELEASE);
}

OTHER(a_signal_ends_the_wait_for_a_code, 20)
{
    tide_thread *thread = NULL;
    tide_oauth_flow *flow = other_flow(stage, TIDE_OAUTH_DEVICE);
    server.script = "";
    struct canceler canceler = {.world = stage->world};
    OK(tide_world_thread(stage->world, "signal", canceler_run, &canceler, &thread, NULL));
    const uint64_t began_ms = tide_world_now_ms(stage->world);
    EXPECT(tide_oauth_flow_wait(flow, TIDE_NEVER, &canceler.cancel, &stage->err), TIDE_CANCELED);
    assert_in_range(tide_world_now_ms(stage->world) - began_ms, 7000, 7200);
    tide_world_join(stage->world, thread);
    tide_oauth_flow_free(flow);
}

OTHER(a_bad_answer_to_the_request_for_a_code_is_refused, 21)
{
    static const struct {
        int http;
        const char *body;
        tide_status expected;
    } rows[] = {
        {200, "", TIDE_SERVER},
        {200, "<html>", TIDE_SERVER},
        {200, "{}", TIDE_SERVER},
        {200,
         "{\"device_code\":\"device-code-secret\",\"user_code\":\"A B\",\"verification_uri\":"
         "\"https://x\"}",
         TIDE_SERVER},
        {200,
         "{\"device_code\":\"device-code-secret\",\"user_code\":\"AB\",\"verification_uri\":"
         "\"http://x\"}",
         TIDE_SERVER},
        {200,
         "{\"device_code\":\"device code\",\"user_code\":\"AB\",\"verification_uri\":"
         "\"https://x\"}",
         TIDE_SERVER},
        {400, "{\"error\":\"unauthorized_client\"}", TIDE_AUTH},
        {429, "later", TIDE_THROTTLED},
        {400, "{\"error\":\"asleep\"}", TIDE_THROTTLED}, /* a code of this provider alone */
        {500, "", TIDE_SERVER},
    };
    tide_oauth_flow *flow = NULL;
    const struct tide_oauth_ask ask = {
        .provider = &other, .client = &stage->client, .scopes = FILES, .way = TIDE_OAUTH_DEVICE};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        server.broken = rows[i].body;
        server.broken_http = rows[i].http;
        EXPECT(tide_oauth_flow_start(stage->world, &ask, tide_mem_heap(), &flow, &stage->err),
               rows[i].expected);
    }
    struct tide_oauth_ask google = ask;
    google.provider = &tide_oauth_google;
    EXPECT(tide_oauth_flow_start(stage->world, &google, tide_mem_heap(), &flow, &stage->err),
           TIDE_INVALID);
    assert_null(flow);
}

TEST(a_device_code_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_oauth_flow *flow = NULL;
        tide_buf grant;
        tide_buf scopes;
        struct stage *stage = other_start(22);
        tide_buf_init(&grant, &mem.base, TIDE_SECRET_BYTES_MAX);
        tide_buf_init(&scopes, &mem.base, 4096);
        const struct tide_oauth_ask ask = {.provider = &other,
                                           .client = &stage->client,
                                           .scopes = FILES,
                                           .way = TIDE_OAUTH_DEVICE};
        tide_status rc = tide_oauth_flow_start(stage->world, &ask, &mem.base, &flow, &stage->err);
        if (rc == TIDE_OK)
            rc = tide_oauth_flow_wait(flow, TIDE_NEVER, NULL, &stage->err);
        if (rc == TIDE_OK)
            rc = tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage->err);
        tide_oauth_flow_free(flow);
        tide_secret_wipe(&grant);
        tide_buf_done(&scopes);
        assert_swept(mem, rc);
        stage_end(stage);
    }
}

/* ---- links and clients ---- */

OTHER(a_link_and_its_code_carry_what_this_provider_needs, 30)
{
    char value[2048];
    tide_oauth_flow *flow = other_flow(stage, TIDE_OAUTH_PASTE);
    const char *link = tide_oauth_flow_link(flow);
    assert_memory_equal(link, "https://login.example/v2/authorize?", 35);
    param(link, "scope", value);
    assert_string_equal(value, FILES " offline_access");
    assert_null(strstr(link, "access_type"));
    assert_string_equal(tide_oauth_flow_user_code(flow), "");
    EXPECT(paste(stage, flow, "the%2Dcode&scope=x"), TIDE_OK);
    other_finish(stage, flow);
    assert_non_null(strstr(server.form, "&code=the-code&redirect_uri="));
    assert_null(strstr(server.form, "client_secret"));
}

TEST(a_client_file_is_read_as_the_provider_writes_it)
{
    struct tide_oauth_client client;
    tide_error err = {0};
    EXPECT_OF(tide_oauth_client_read(
                  &other,
                  TIDE_TEXT("{\"client_id\":\"c\",\"token_url\":\"https://login.example/t/token\","
                            "\"device_url\":\"https://login.example/t/devicecode\"}"),
                  &client, &err),
              TIDE_OK, &err);
    assert_string_equal(client.device_url, "https://login.example/t/devicecode");
    assert_string_equal(client.revoke_url, ""); /* there is none to guess */
    EXPECT_OF(tide_oauth_client_read(&other, TIDE_TEXT("{\"installed\":{\"client_id\":\"c\"}}"),
                                     &client, &err),
              TIDE_INVALID, &err);
    tide_oauth_client_at(&other, "http://127.0.0.1:99/", &client);
    assert_string_equal(client.auth_url, "http://127.0.0.1:99/v2/authorize");
    assert_string_equal(client.token_url, "http://127.0.0.1:99/v2/token");
    assert_string_equal(client.device_url, "http://127.0.0.1:99/v2/devicecode");
    assert_string_equal(client.revoke_url, "");
}

/* ---- refresh tokens that are replaced ---- */

/* OAU1: power is lost at each step around a refresh and the first use of its token.  The use ends
 * the old refresh token, so the new one must be on the disk by then. */
TEST(a_new_refresh_token_is_durable_before_its_access_token_is_used)
{
    unsigned used = 0;
    unsigned lost = 0;
    for (uint64_t steps = 1; steps < 70; steps++) {
        char token[512];
        struct stage *stage = other_signed_in(100 + steps);
        let_pass(stage, HOUR_MS);
        tide_sim_crash_after(stage->sim, steps, TIDE_SIM_CRASH_POWER);
        tide_status rc = get(stage, token);
        if (rc == TIDE_OK)
            rc = use(stage, token);
        tide_sim_crash(stage->sim, TIDE_SIM_CRASH_POWER);
        tokens_close(stage);
        tide_sim_reboot(stage->sim);
        used += server.used == server.issued;
        lost += server.used < server.issued;
        other_open(stage);
        let_pass(stage, HOUR_MS);
        EXPECT(get(stage, token), TIDE_OK);
        OK(use(stage, token));
        assert_int_equal(server.refused, 0);
        stage_end(stage);
    }
    assert_true(used > 0); /* both were tried */
    assert_true(lost > 0);
}

/* A token that cannot be stored is not given out, so the refresh token on the disk stays valid,
 * also for the next process. */
OTHER_SIGNED_IN(a_token_that_cannot_be_stored_is_not_given_out, 40)
{
    char token[512];
    let_pass(stage, HOUR_MS);
    tide_sim_disk_room(stage->sim, 1);
    EXPECT(get(stage, token), TIDE_DISK_FULL);
    assert_int_equal(server.issued, 2);
    tokens_close(stage);
    tide_sim_disk_room(stage->sim, 1 << 30);
    other_open(stage);
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_equal(token, "access-token-3");
    assert_non_null(strstr(server.form, "refresh_token=refresh-token-1&client_id=app-1&scope="
                                        "files.read%20profile%20offline_access"));
    assert_null(strstr(server.form, "client_secret"));
}

struct process {
    struct stage stage; /* its own error and tokens; the world and the secrets are shared */
    tide_status rc;
    char token[512];
};

static void process_run(void *arg)
{
    struct process *process = arg;
    process->rc = get(&process->stage, process->token);
}

/* Two processes refresh at once, and a refresh token works once.  The second is refused; if the
 * first has stored the next token by then, that is no refusal of the sign-in. */
TEST(a_refresh_token_that_another_process_used_is_not_the_end)
{
    unsigned saved = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct process processes[2];
        tide_thread *threads[2];
        struct stage *stage = other_signed_in(seed);
        server.strict = true;
        let_pass(stage, HOUR_MS);
        for (size_t i = 0; i < 2; i++) {
            processes[i] = (struct process){.stage = *stage};
            if (i > 0) { /* the first has the stage's */
                processes[i].stage.tokens = NULL;
                other_open(&processes[i].stage);
            }
            OK(tide_world_thread(stage->world, "process", process_run, &processes[i], &threads[i],
                                 NULL));
        }
        for (size_t i = 0; i < 2; i++)
            tide_world_join(stage->world, threads[i]);
        const bool both = processes[0].rc == TIDE_OK && processes[1].rc == TIDE_OK;
        saved += both && server.refused > 0;
        assert_true(both || processes[0].rc == TIDE_AUTH || processes[1].rc == TIDE_AUTH);
        for (size_t i = 0; i < 2; i++) { /* in the end both have it */
            EXPECT_OF(get(&processes[i].stage, processes[i].token), TIDE_OK,
                      &processes[i].stage.err);
            assert_string_equal(processes[i].token, "access-token-2");
        }
        tokens_close(&processes[1].stage);
        stage_end(stage);
    }
    assert_true(saved > 0);
}

/* ---- grants ---- */

static void put(struct stage *stage, const char *grant)
{
    OK(tide_secrets_put(stage->secrets, other_options.secret, tide_text_of(grant), NULL));
}

OTHER(a_grant_belongs_to_its_provider, 50)
{
#define GRANT_TEXTS                                                                                \
    "\"client_id\":\"c\",\"refresh_token\":\"refresh-token-1\",\"revoke_url\":\"\","               \
    "\"token_url\":\"https://login.example/v2/token\""
    char token[512];
    tide_buf secret = heap_buf(TIDE_SECRET_BYTES_MAX);
    server.issued = 1;
    struct tide_tokens_options google = other_options;
    google.provider = &tide_oauth_google;

    /* One of an older version names none: it is Google's, and says so when it is written. */
    put(stage, "{\"v\":1,\"type\":\"user\"," GRANT_TEXTS "}");
    EXPECT(tokens_try(stage, &google), TIDE_OK);
    EXPECT(get(stage, token), TIDE_OK);
    OK(tide_secrets_get(stage->secrets, google.secret, &secret, NULL));
    assert_non_null(strstr(tide_buf_cstr(&secret), "\"provider\":\"google\""));

    static const char *const foreign[] = {
        "{\"v\":1,\"type\":\"user\"," GRANT_TEXTS "}",
        "{\"v\":1,\"type\":\"user\",\"provider\":\"google\"," GRANT_TEXTS "}",
        "{\"v\":1,\"type\":\"user\",\"provider\":\"others\"," GRANT_TEXTS "}",
    };
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        put(stage, foreign[i]);
        EXPECT(tokens_try(stage, &other_options), TIDE_AUTH);
        assert_non_null(strstr(stage->err.text, "another provider"));
        assert_non_null(strstr(stage->err.text, "`tidemark account add drive ada`"));
    }
    /* A fixed token is of none. */
    put(stage, "{\"v\":1,\"type\":\"fixed\",\"access_token\":\"access-token-1\"}");
    other_open(stage);
    tide_secret_wipe(&secret);
}

OTHER_SIGNED_IN(without_revocation_a_sign_in_is_only_forgotten_here, 60)
{
    char token[512];
    bool revoked = true;
    tide_buf secret = heap_buf(TIDE_SECRET_BYTES_MAX);
    const unsigned before = server.requests_count;
    EXPECT(tokens_revoke(stage, &revoked), TIDE_OK);
    assert_false(revoked);
    assert_int_equal(server.requests_count, before);
    assert_int_equal(tide_secrets_get(stage->secrets, other_options.secret, &secret, NULL),
                     TIDE_NOT_FOUND);
    EXPECT(get(stage, token), TIDE_AUTH);
    assert_non_null(strstr(stage->err.text, "`tidemark account add drive ada`"));
    tide_buf_done(&secret);
}
