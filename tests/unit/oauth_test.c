/* Signing in and staying signed in, against the cloud in a box.
 *
 * Most of it runs in the simulated world: the provider is the box behind a network of
 * simulated time, and a person is a function that follows the link.  Threads that race
 * and sockets that listen run in the real world, with the box in the place of the
 * network (race detectors see that one). */
#include "base/check.h"
#include "logic/auth.h"
#include "logic/cloud.h"
#include "logic/jwt.h"
#include "logic/user.h"
#include "net/oauth_inside.h"
#include "sim/sim.h"
#include "sim/sim_cloud.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define EMAIL     "ada@example.com"
#define SECRET    "gmail/" EMAIL
#define READONLY  "https://www.googleapis.com/auth/gmail.readonly"
#define SEND      "https://www.googleapis.com/auth/gmail.send"
#define ORIGIN    "http://provider"
#define MINUTE_MS UINT64_C(60000)
#define HOUR_MS   UINT64_C(3600000)

static long scaled(long count)
{
    const char *scale = getenv("TIDE_TEST_SCALE");
    const long rounds = count * (scale == NULL ? 100 : strtol(scale, NULL, 10)) / 100;
    return rounds < 1 ? 1 : rounds;
}

/* ---- what must never be shown (O4) ---- */

enum { KEPT_MAX = 512, SHORTEST = 12 };
static char *kept[KEPT_MAX];
static size_t kept_count;

static void keep_secret(const char *text)
{
    for (size_t i = 0; i < kept_count; i++)
        if (strcmp(kept[i], text) == 0)
            return;
    if (strlen(text) < SHORTEST || kept_count == KEPT_MAX)
        return;
    kept[kept_count++] = strdup(text);
}

/* Neither a whole secret nor a long piece of one. */
static void check_shows_nothing(const tide_error *err)
{
    for (size_t i = 0; i < kept_count; i++) {
        const size_t bytes = strlen(kept[i]);
        for (size_t at = 0; at + SHORTEST <= bytes; at++)
            if (memmem(err->text, strlen(err->text), kept[i] + at, SHORTEST) != NULL)
                fail_msg("a secret is in an error: %s", err->text);
    }
}

static void expect(tide_status rc, tide_status expected, const tide_error *err)
{
    if (rc != expected)
        fail_msg("%s, not %s: %s", tide_status_name(rc), tide_status_name(expected), err->text);
    check_shows_nothing(err);
    if (rc != TIDE_OK) {
        assert_int_equal(err->status, rc);
        assert_true(err->text[0] != '\0');
    }
}

static void forget_secrets(void)
{
    while (kept_count > 0)
        free(kept[--kept_count]);
}

/* ---- a provider that can be made to misbehave ---- */

typedef enum manner {
    MANNER_GOOD,
    MANNER_ECHO,    /* refuses, and repeats the request in its description */
    MANNER_ECHO_OK, /* 200 with the request instead of a token */
    MANNER_PAGE,    /* a portal's page */
    MANNER_BROKEN,  /* half a JSON with the token in it */
    MANNER_RESET,   /* hangs up */
    MANNER_GRANT,   /* invalid_grant */
    MANNER_SHORT,   /* tokens that live for `life_s` */
    MANNER_ROTATE,  /* gives a new refresh token each time */
    MANNER_CUSTOM,  /* `custom` */
} manner;

struct provider {
    tide_sim_cloud *cloud;
    manner manner;
    int http;
    const char *custom;
    unsigned life_s;
    unsigned tokens; /* requests to the token endpoint */
    unsigned refreshes;
    unsigned revokes;
    char last_refresh[512];
};

static void add_json(tide_buf *out, const char *name, tide_text text)
{
    TIDE_ASSERT(tide_buf_print(out, "\"%s\":", name) == TIDE_OK);
    TIDE_ASSERT(tide_json_escape(text, out) == TIDE_OK);
}

static void misbehave(struct provider *provider, const struct tide_request *request,
                      struct tide_sim_answer *answer)
{
    tide_buf *body = &answer->body;
    answer->http = provider->http;
    switch (provider->manner) {
    case MANNER_ECHO:
        (void)tide_buf_add_text(body, "{\"error\":\"invalid_client\",");
        add_json(body, "error_description", request->body);
        (void)tide_buf_add_text(body, "}");
        break;
    case MANNER_ECHO_OK:
        answer->http = 200;
        (void)tide_buf_add_text(body, "{");
        add_json(body, "access_token", request->body);
        (void)tide_buf_add_text(body, ",\"token_type\":\"mac\"}");
        break;
    case MANNER_PAGE:
        tide_sim_answer_header(answer, "Content-Type", "text/html");
        (void)tide_buf_print(body, "<html>%.*s", (int)request->body.bytes, request->body.data);
        break;
    case MANNER_BROKEN:
        answer->http = 200;
        (void)tide_buf_print(body, "{\"access_token\": %.*s", (int)request->body.bytes,
                             request->body.data);
        break;
    case MANNER_RESET:
        answer->reset = true;
        break;
    case MANNER_GRANT:
        answer->http = 400;
        (void)tide_buf_add_text(body, "{\"error\":\"invalid_grant\",\"error_description\":\"Token "
                                      "has been expired or revoked.\"}");
        break;
    case MANNER_SHORT:
        answer->http = 200;
        (void)tide_buf_print(body,
                             "{\"access_token\":\"short-lived-token-%u\",\"expires_in\":%u,"
                             "\"token_type\":\"Bearer\"}",
                             provider->tokens, provider->life_s);
        break;
    case MANNER_ROTATE:
        answer->http = 200;
        (void)tide_buf_print(body,
                             "{\"access_token\":\"rotated-access-%u\",\"expires_in\":\"3600\","
                             "\"refresh_token\":\"rotated-refresh-%u\",\"token_type\":\"bearer\"}",
                             provider->tokens, provider->tokens);
        break;
    case MANNER_CUSTOM:
        (void)tide_buf_add_text(body, provider->custom);
        break;
    case MANNER_GOOD:
        break;
    }
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct provider *provider = arg;
    const bool token = strstr(request->url, "/token") != NULL;
    provider->tokens += token;
    provider->revokes += strstr(request->url, "/revoke") != NULL;
    if (memmem(request->body.data, request->body.bytes, "grant_type=refresh_token", 24) != NULL) {
        provider->refreshes++;
        tide_buf value;
        tide_buf_init(&value, tide_mem_heap(), sizeof provider->last_refresh - 1);
        TIDE_ASSERT(tide_form_get(request->body, "refresh_token", &value) == TIDE_OK);
        (void)snprintf(provider->last_refresh, sizeof provider->last_refresh, "%s",
                       tide_buf_cstr(&value));
        tide_buf_done(&value);
    }
    if (provider->manner == MANNER_GOOD || (!token && strstr(request->url, "/revoke") == NULL))
        tide_sim_cloud_call(provider->cloud, request, now_unix_ms, rng, answer);
    else
        misbehave(provider, request, answer);
}

/* ---- the stage ---- */

struct stage {
    struct provider provider;
    tide_sim *sim;
    tide_world *world;
    tide_secrets *secrets;
    struct tide_oauth_client client;
    tide_error err;
};

static void stage_start(struct stage *stage, uint64_t seed, const struct tide_sim_options *given)
{
    *stage = (struct stage){.provider = {.manner = MANNER_GOOD, .http = 400}};
    const struct box_options box = {.seed = seed, .auto_consent = true};
    stage->provider.cloud = tide_sim_cloud_new(&box);
    struct tide_sim_options options = {0};
    if (given != NULL)
        options = *given;
    options.net.provide = provide;
    options.net.provide_arg = &stage->provider;
    stage->sim = tide_sim_new(seed, &options);
    stage->world = tide_sim_world(stage->sim);
    const struct box_mailbox_options mailbox = {.messages = 3,
                                                .now_unix_ms = tide_sim_net_unix_ms(stage->sim)};
    assert_int_equal(box_cloud_add_mailbox(tide_sim_cloud_box(stage->provider.cloud),
                                           TIDE_TEXT(EMAIL), &mailbox, NULL),
                     TIDE_OK);
    assert_int_equal(tide_secrets_open(stage->world, "/secrets", TIDE_SECRETS_FILES,
                                       tide_mem_heap(), &stage->secrets, NULL),
                     TIDE_OK);
    tide_oauth_client_at(ORIGIN, &stage->client);
}

static void stage_end(struct stage *stage)
{
    tide_secrets_close(stage->secrets);
    tide_sim_free(stage->sim);
    tide_sim_cloud_free(stage->provider.cloud);
    forget_secrets();
}

static void control(struct stage *stage, const char *target, const char *body)
{
    int http = 0;
    json_decref(tide_sim_cloud_ask(stage->provider.cloud, "POST", target, tide_text_of(body),
                                   tide_sim_net_unix_ms(stage->sim), &http));
    assert_int_equal(http, 200);
}

static void let_pass(struct stage *stage, uint64_t wait_ms)
{
    const uint64_t until_us = tide_world_now_us(stage->world) + wait_ms * 1000;
    assert_int_equal(tide_world_sleep_until(stage->world, until_us, NULL), TIDE_OK);
}

/* The person: opens the link and reads where the browser ended. */
static void follow(tide_world *world, const char *link, const char *more, char location_out[2048])
{
    char url[4096];
    assert_in_range(snprintf(url, sizeof url, "%s%s", link, more), 1, sizeof url - 1);
    const struct tide_request request = {.method = "GET", .url = url};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(world, &request, &response, NULL, NULL), TIDE_OK);
    assert_int_equal(response.http, 302);
    const tide_text location = tide_response_header(&response, "Location");
    assert_in_range(location.bytes, 1, 2047);
    (void)snprintf(location_out, 2048, "%.*s", (int)location.bytes, location.data);
    tide_response_done(&response);
}

/* The value of a parameter in an address, as it stands there. */
static void param(const char *url, const char *name, char value_out[2048])
{
    tide_buf value;
    tide_buf_init(&value, tide_mem_heap(), 2047);
    const char *query = strchr(url, '?');
    assert_non_null(query);
    assert_int_equal(tide_form_get(tide_text_of(query + 1), name, &value), TIDE_OK);
    (void)snprintf(value_out, 2048, "%s", tide_buf_cstr(&value));
    tide_buf_done(&value);
}

static tide_oauth_flow *flow_start(struct stage *stage, const char *scopes)
{
    const struct tide_oauth_ask ask = {
        .client = &stage->client, .scopes = scopes, .login_hint = EMAIL, .headless = true};
    tide_oauth_flow *flow = NULL;
    expect(tide_oauth_flow_start(stage->world, &ask, tide_mem_heap(), &flow, &stage->err), TIDE_OK,
           &stage->err);
    return flow;
}

/* Remembers every secret of a grant. */
static void keep_grant(tide_text json)
{
    struct tide_mem_wiping wiping;
    struct tide_grant grant;
    tide_mem_wiping_init(&wiping, tide_mem_heap());
    tide_grant_init(&grant, &wiping.base);
    assert_int_equal(tide_grant_read(json, &grant, NULL), TIDE_OK);
    keep_secret(tide_buf_cstr(&grant.access_token));
    keep_secret(tide_buf_cstr(&grant.refresh_token));
    keep_secret(tide_buf_cstr(&grant.private_key));
    tide_grant_done(&grant);
}

/* Signs in and stores the grant, as `tidemark account add` does. */
static void sign_in(struct stage *stage)
{
    char location[2048];
    tide_buf grant;
    tide_buf scopes;
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    tide_buf_init(&scopes, tide_mem_heap(), 4096);
    tide_oauth_flow *flow = flow_start(stage, READONLY);
    follow(stage->world, tide_oauth_flow_link(flow), "", location);
    expect(tide_oauth_flow_paste(flow, tide_text_of(location), &stage->err), TIDE_OK, &stage->err);
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage->err), TIDE_OK, &stage->err);
    assert_true(tide_oauth_scopes_cover(tide_buf_text(&scopes), READONLY));
    keep_grant(tide_buf_text(&grant));
    assert_int_equal(tide_secrets_put(stage->secrets, SECRET, tide_buf_text(&grant), NULL),
                     TIDE_OK);
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_buf_done(&scopes);
}

static tide_tokens *tokens_open(struct stage *stage)
{
    tide_tokens *tokens = NULL;
    expect(tide_tokens_open(stage->world, stage->secrets, SECRET, tide_mem_heap(), &tokens,
                            &stage->err),
           TIDE_OK, &stage->err);
    return tokens;
}

static tide_status get(struct stage *stage, tide_tokens *tokens, char token_out[512])
{
    tide_buf bearer;
    tide_buf_init(&bearer, tide_mem_heap(), 511);
    stage->err = (tide_error){0};
    const tide_status rc = tide_tokens_get(tokens, NULL, &bearer, &stage->err);
    (void)snprintf(token_out, 512, "%s", tide_buf_cstr(&bearer));
    if (rc == TIDE_OK)
        keep_secret(token_out);
    else
        assert_int_equal(bearer.bytes, 0);
    tide_secret_wipe(&bearer);
    return rc;
}

/* What the API says to a token. */
static int profile(struct stage *stage, const char *token)
{
    char bearer[600];
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
    const struct tide_header header = {TIDE_TEXT("Authorization"), tide_text_of(bearer)};
    const struct tide_request request = {.method = "GET",
                                         .url = ORIGIN "/gmail/v1/users/me/profile",
                                         .headers = &header,
                                         .headers_count = 1};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    assert_int_equal(tide_world_call(stage->world, &request, &response, NULL, NULL), TIDE_OK);
    const int http = response.http;
    tide_response_done(&response);
    return http;
}

/* ---- texts ---- */

static void base64url_and_forms_are_what_the_standards_say(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},       {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"\xff\xfe", "__4"}, {"\xfb\xef\xbe", "----"}};
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 100);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        tide_buf_clear(&out);
        assert_int_equal(tide_base64url_add(&out, pairs[i][0], strlen(pairs[i][0])), TIDE_OK);
        assert_string_equal(tide_buf_cstr(&out), pairs[i][1]);
    }
    tide_buf_clear(&out);
    assert_int_equal(tide_form_add(&out, "a", TIDE_TEXT("x y&=+%/\xc3\xa9~")), TIDE_OK);
    assert_int_equal(tide_form_add(&out, "b", TIDE_TEXT("")), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&out), "a=x%20y%26%3D%2B%25%2F%C3%A9~&b=");
    tide_buf value;
    tide_buf_init(&value, tide_mem_heap(), 100);
    assert_int_equal(tide_form_get(tide_buf_text(&out), "a", &value), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&value), "x y&=+%/\xc3\xa9~");
    assert_int_equal(tide_form_get(tide_buf_text(&out), "b", &value), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&value), "");
    assert_int_equal(tide_form_get(tide_buf_text(&out), "c", &value), TIDE_NOT_FOUND);
    assert_int_equal(tide_form_get(TIDE_TEXT("xa=1&a"), "a", &value), TIDE_NOT_FOUND);
    assert_int_equal(tide_form_get(TIDE_TEXT("a=1&a=1"), "a", &value), TIDE_INVALID);
    assert_int_equal(tide_form_get(TIDE_TEXT("a=%4"), "a", &value), TIDE_INVALID);
    assert_int_equal(tide_form_get(TIDE_TEXT("a=%4g"), "a", &value), TIDE_INVALID);
    assert_int_equal(tide_form_get(TIDE_TEXT("a=b+c"), "a", &value), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&value), "b c");
    tide_buf_done(&value);
    tide_buf_done(&out);
}

static void scopes_are_compared_as_whole_words(void **state)
{
    (void)state;
    assert_true(tide_oauth_scopes_cover(TIDE_TEXT("a b c"), "a"));
    assert_true(tide_oauth_scopes_cover(TIDE_TEXT("a b c"), "c a"));
    assert_true(tide_oauth_scopes_cover(TIDE_TEXT("a b c"), ""));
    assert_true(tide_oauth_scopes_cover(TIDE_TEXT("a b c"), " b  a "));
    assert_false(tide_oauth_scopes_cover(TIDE_TEXT("a b c"), "a d"));
    assert_false(tide_oauth_scopes_cover(TIDE_TEXT("mail.readonly"), "mail"));
    assert_false(tide_oauth_scopes_cover(TIDE_TEXT("mail"), "mail.readonly"));
    assert_false(tide_oauth_scopes_cover(TIDE_TEXT(""), "a"));
}

/* ---- client files ---- */

static void a_client_file_of_googles_is_read(void **state)
{
    (void)state;
    static const char *const kinds[] = {"installed", "web"};
    for (size_t i = 0; i < 2; i++) {
        char file[1024];
        tide_error err = {0};
        struct tide_oauth_client client;
        (void)snprintf(
            file, sizeof file,
            "{\"%s\":{\"client_id\":\"12-x.apps.googleusercontent.com\",\"project_id\":\"p\","
            "\"auth_uri\":\"https://accounts.google.com/o/oauth2/auth\",\"token_uri\":\"https://"
            "oauth2.googleapis.com/token\",\"auth_provider_x509_cert_url\":\"https://x\","
            "\"client_secret\":\"GOCSPX-abc\",\"redirect_uris\":[\"http://localhost\"]}}",
            kinds[i]);
        expect(tide_oauth_client_read(tide_text_of(file), &client, &err), TIDE_OK, &err);
        assert_string_equal(client.client_id, "12-x.apps.googleusercontent.com");
        assert_string_equal(client.client_secret, "GOCSPX-abc");
        assert_string_equal(client.auth_url, "https://accounts.google.com/o/oauth2/auth");
        assert_string_equal(client.token_url, "https://oauth2.googleapis.com/token");
        assert_string_equal(client.revoke_url, ""); /* Google's */
    }
}

static void a_client_file_of_ours_is_read(void **state)
{
    (void)state;
    struct tide_oauth_client client;
    tide_error err = {0};
    expect(tide_oauth_client_read(TIDE_TEXT("{\"client_id\":\"c\"}"), &client, &err), TIDE_OK,
           &err);
    assert_string_equal(client.client_id, "c");
    assert_string_equal(client.token_url, "");
    expect(tide_oauth_client_read(TIDE_TEXT("{\"client_id\":\"c\",\"token_url\":\"http://127.0.0.1"
                                            ":99/x/token?y\"}"),
                                  &client, &err),
           TIDE_OK, &err);
    assert_string_equal(client.revoke_url, "http://127.0.0.1:99/revoke");
    tide_oauth_client_at("http://127.0.0.1:1234//", &client);
    assert_string_equal(client.auth_url, "http://127.0.0.1:1234/o/oauth2/v2/auth");
    assert_string_equal(client.token_url, "http://127.0.0.1:1234/token");
    assert_string_equal(client.revoke_url, "http://127.0.0.1:1234/revoke");
}

static void a_bad_client_file_is_refused_and_not_quoted(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "not JSON"},
        {"{", "not JSON"},
        {"QUOTED-SECRET-VALUE", "not JSON"},
        {"{\"client_id\": QUOTED-SECRET-VALUE}", "not JSON"},
        {"[]", "no object"},
        {"{}", "client_id"},
        {"{\"installed\":7}", "no object"},
        {"{\"installed\":{}}", "client_id"},
        {"{\"client_id\":\"\"}", "client_id"},
        {"{\"client_id\":7}", "client_id"},
        {"{\"client_id\":\"a b\"}", "client_id"},
        {"{\"client_id\":\"a\\nb\"}", "client_id"},
        {"{\"client_id\":\"c\",\"client_secret\":\"QUOTED SECRET VALUE\"}", "client_secret"},
        {"{\"client_id\":\"c\",\"token_url\":\"http://example.com/token\"}", "token_url"},
        {"{\"client_id\":\"c\",\"token_url\":\"http://127.0.0.1.example.com/\"}", "token_url"},
        {"{\"client_id\":\"c\",\"token_url\":\"http://localhost@example.com/\"}", "token_url"},
        {"{\"client_id\":\"c\",\"token_url\":\"https:///token\"}", "token_url"},
        {"{\"client_id\":\"c\",\"auth_uri\":\"javascript:alert(1)\"}", "auth_uri"},
        {"{\"client_id\":\"c\",\"auth_uri\":\"ftp://example.com\"}", "auth_uri"},
        {"{\"type\":\"service_account\",\"client_id\":\"1\"}", "service account"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tide_oauth_client client = {.client_id = "untouched"};
        tide_error err = {0};
        const tide_status rc = tide_oauth_client_read(tide_text_of(bad[i][0]), &client, &err);
        if (rc != TIDE_INVALID || strstr(err.text, bad[i][1]) == NULL ||
            strstr(err.text, "QUOTED") != NULL)
            fail_msg("%s: %s: %s", bad[i][0], tide_status_name(rc), err.text);
        assert_string_equal(client.client_id, "untouched");
    }
    char file[1000];
    char id[300];
    tide_error err = {0};
    struct tide_oauth_client client;
    memset(id, 'i', sizeof id);
    id[sizeof id - 1] = '\0';
    (void)snprintf(file, sizeof file, "{\"client_id\":\"%s\"}", id);
    assert_int_equal(tide_oauth_client_read(tide_text_of(file), &client, &err), TIDE_INVALID);
    assert_non_null(strstr(err.text, "too long"));
}

/* ---- signing in ---- */

static void a_person_signs_in_by_pasting_and_the_token_works(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    stage_start(&stage, 1, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(profile(&stage, token), 200);
    assert_int_equal(stage.provider.refreshes, 0); /* the first token came with the grant */
    tide_tokens_close(tokens);
    stage_end(&stage);
}

static void the_link_carries_what_the_provider_needs(void **state)
{
    (void)state;
    struct stage stage;
    char value[2048];
    char other[2048];
    stage_start(&stage, 2, NULL);
    tide_oauth_flow *flow = flow_start(&stage, READONLY " " SEND);
    tide_oauth_flow *second = flow_start(&stage, READONLY);
    const char *link = tide_oauth_flow_link(flow);
    static const char *const expected[][2] = {{"client_id", "tidemark"},
                                              {"response_type", "code"},
                                              {"access_type", "offline"},
                                              {"prompt", "consent"},
                                              {"login_hint", EMAIL},
                                              {"scope", READONLY " " SEND},
                                              {"code_challenge_method", "S256"},
                                              {"redirect_uri", "http://127.0.0.1:65535/"}};
    assert_memory_equal(link, ORIGIN "/o/oauth2/v2/auth?", strlen(ORIGIN) + 18);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        param(link, expected[i][0], value);
        assert_string_equal(value, expected[i][1]);
    }
    static const char *const random[] = {"state", "code_challenge"};
    for (size_t i = 0; i < 2; i++) {
        param(link, random[i], value);
        param(tide_oauth_flow_link(second), random[i], other);
        assert_int_equal(strlen(value), 43);
        assert_string_not_equal(value, other);
    }
    assert_null(strstr(link, "verifier"));
    tide_oauth_flow_free(flow);
    tide_oauth_flow_free(second);

    /* An address with a query keeps it; no client, no scopes: no link. */
    (void)snprintf(stage.client.auth_url, sizeof stage.client.auth_url, "https://a/b?c=d");
    flow = flow_start(&stage, READONLY);
    assert_memory_equal(tide_oauth_flow_link(flow), "https://a/b?c=d&client_id=", 26);
    tide_oauth_flow_free(flow);
    const struct tide_oauth_client nobody = {.client_id = ""};
    const struct tide_oauth_ask asks[] = {{.client = &nobody, .scopes = READONLY},
                                          {.client = &stage.client, .scopes = ""}};
    for (size_t i = 0; i < 2; i++)
        expect(tide_oauth_flow_start(stage.world, &asks[i], tide_mem_heap(), &flow, &stage.err),
               TIDE_INVALID, &stage.err);
    /* Zero means Google's. */
    const struct tide_oauth_client google = {.client_id = "c"};
    const struct tide_oauth_ask ask = {.client = &google, .scopes = READONLY, .headless = true};
    expect(tide_oauth_flow_start(stage.world, &ask, tide_mem_heap(), &flow, &stage.err), TIDE_OK,
           &stage.err);
    assert_memory_equal(tide_oauth_flow_link(flow), "https://accounts.google.com/o/oauth2/v2/auth?",
                        45);
    tide_oauth_flow_free(flow);
    stage_end(&stage);
}

static void what_people_paste_is_understood_or_refused(void **state)
{
    (void)state;
    struct stage stage;
    char location[2048];
    char other[2048];
    char pasted[4096];
    stage_start(&stage, 3, NULL);
    tide_oauth_flow *flow = flow_start(&stage, READONLY);
    tide_oauth_flow *second = flow_start(&stage, READONLY);
    follow(stage.world, tide_oauth_flow_link(flow), "", location);
    follow(stage.world, tide_oauth_flow_link(second), "", other);
    char code[2048];
    param(location, "code", code);
    keep_secret(code);

    const char *const bad[] = {"",
                               " \r\n",
                               "\"\"",
                               "http://127.0.0.1:65535/",
                               "http://127.0.0.1:65535/?code=abc",
                               "http://127.0.0.1:65535/?code=abc&state=",
                               "hello there",
                               "a%zz",
                               "line\x01",
                               tide_oauth_flow_link(flow),
                               other}; /* of the other sign-in */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect(tide_oauth_flow_paste(flow, tide_text_of(bad[i]), &stage.err), TIDE_INVALID,
               &stage.err);
    (void)snprintf(pasted, sizeof pasted, "%s&state=again", location);
    expect(tide_oauth_flow_paste(flow, tide_text_of(pasted), &stage.err), TIDE_INVALID, &stage.err);

    (void)snprintf(pasted, sizeof pasted, "  <%s#>\r\n", location);
    expect(tide_oauth_flow_paste(flow, tide_text_of(pasted), &stage.err), TIDE_OK, &stage.err);
    /* The code alone, as it stands in the address. */
    const char *at = strstr(other, "code=");
    assert_non_null(at);
    (void)snprintf(pasted, sizeof pasted, "%.*s\n", (int)strcspn(at + 5, "&"), at + 5);
    expect(tide_oauth_flow_paste(second, tide_text_of(pasted), &stage.err), TIDE_OK, &stage.err);

    tide_buf grant;
    tide_buf scopes;
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    tide_buf_init(&scopes, tide_mem_heap(), 4096);
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage.err), TIDE_OK, &stage.err);
    expect(tide_oauth_flow_finish(second, NULL, &grant, &scopes, &stage.err), TIDE_OK, &stage.err);
    /* A code is good once. */
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage.err), TIDE_INVALID,
           &stage.err);
    tide_oauth_flow_free(flow);
    tide_oauth_flow_free(second);
    tide_secret_wipe(&grant);
    tide_buf_done(&scopes);
    stage_end(&stage);
}

static void a_person_may_say_no_or_untick_a_scope(void **state)
{
    (void)state;
    struct stage stage;
    char location[2048];
    tide_buf grant;
    tide_buf scopes;
    stage_start(&stage, 4, NULL);
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    tide_buf_init(&scopes, tide_mem_heap(), 4096);
    tide_oauth_flow *flow = flow_start(&stage, READONLY " " SEND);
    follow(stage.world, tide_oauth_flow_link(flow), "&box_deny=true", location);
    expect(tide_oauth_flow_paste(flow, tide_text_of(location), &stage.err), TIDE_AUTH, &stage.err);
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage.err), TIDE_INVALID,
           &stage.err);
    /* A second thought. */
    follow(stage.world, tide_oauth_flow_link(flow),
           "&box_untick=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgmail.send", location);
    expect(tide_oauth_flow_paste(flow, tide_text_of(location), &stage.err), TIDE_OK, &stage.err);
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage.err), TIDE_OK, &stage.err);
    assert_string_equal(tide_buf_cstr(&scopes), READONLY);
    assert_false(tide_oauth_scopes_cover(tide_buf_text(&scopes), READONLY " " SEND));
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_buf_done(&scopes);
    stage_end(&stage);
}

/* Every way in which redeeming a code can fail: the status, and not a letter of the
 * code, the verifier or the client's secret in the text. */
static void a_failed_redemption_says_why_and_shows_nothing(void **state)
{
    (void)state;
    static const struct {
        manner manner;
        int http;
        const char *custom;
        tide_status expected;
    } rows[] = {
        {MANNER_GRANT, 400, NULL, TIDE_AUTH},
        {MANNER_ECHO, 400, NULL, TIDE_AUTH},
        {MANNER_ECHO, 401, NULL, TIDE_AUTH},
        {MANNER_ECHO, 500, NULL, TIDE_SERVER},
        {MANNER_ECHO_OK, 200, NULL, TIDE_SERVER},
        {MANNER_PAGE, 200, NULL, TIDE_SERVER},
        {MANNER_PAGE, 403, NULL, TIDE_SERVER},
        {MANNER_PAGE, 404, NULL, TIDE_SERVER},
        {MANNER_PAGE, 429, NULL, TIDE_THROTTLED},
        {MANNER_BROKEN, 200, NULL, TIDE_SERVER},
        {MANNER_RESET, 0, NULL, TIDE_UNKNOWN},
        {MANNER_SHORT, 200, NULL, TIDE_AUTH}, /* no refresh token in it */
        {MANNER_CUSTOM, 200, "{}", TIDE_SERVER},
        {MANNER_CUSTOM, 200, "{\"access_token\":\"a b\"}", TIDE_SERVER},
        {MANNER_CUSTOM, 200, "{\"access_token\":\"a\\r\\nX-Y: z\"}", TIDE_SERVER},
        {MANNER_CUSTOM, 200, "{\"access_token\":7}", TIDE_SERVER},
        {MANNER_CUSTOM, 200, "{\"access_token\":\"a\",\"refresh_token\":\"\\t\"}", TIDE_SERVER},
        {MANNER_CUSTOM, 400, "{\"error\":\"slow_down\"}", TIDE_SERVER},
        {MANNER_CUSTOM, 400, "{\"error\":7}", TIDE_SERVER},
        {MANNER_CUSTOM, 400, "{\"error\":\"Not a code!\"}", TIDE_SERVER},
        {MANNER_CUSTOM, 503, "{\"error\":\"invalid_grant\"}", TIDE_SERVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stage stage;
        char location[2048];
        char code[2048];
        tide_buf grant;
        tide_buf scopes;
        stage_start(&stage, 100 + i, NULL);
        tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
        tide_buf_init(&scopes, tide_mem_heap(), 4096);
        (void)snprintf(stage.client.client_secret, sizeof stage.client.client_secret,
                       "GOCSPX-not-so-secret");
        keep_secret(stage.client.client_secret);
        tide_oauth_flow *flow = flow_start(&stage, READONLY);
        follow(stage.world, tide_oauth_flow_link(flow), "", location);
        param(location, "code", code);
        keep_secret(code);
        expect(tide_oauth_flow_paste(flow, tide_text_of(location), &stage.err), TIDE_OK,
               &stage.err);
        stage.provider.manner = rows[i].manner;
        stage.provider.http = rows[i].http;
        stage.provider.custom = rows[i].custom;
        stage.provider.life_s = 3600;
        expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage.err), rows[i].expected,
               &stage.err);
        assert_int_equal(grant.bytes, 0);
        assert_int_equal(scopes.bytes, 0);
        tide_oauth_flow_free(flow);
        tide_buf_done(&grant);
        tide_buf_done(&scopes);
        stage_end(&stage);
    }
}

static void without_a_network_the_code_can_be_redeemed_later(void **state)
{
    (void)state;
    struct stage stage;
    char location[2048];
    tide_buf grant;
    tide_buf scopes;
    stage_start(&stage, 5, NULL);
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    tide_buf_init(&scopes, tide_mem_heap(), 4096);
    tide_oauth_flow *flow = flow_start(&stage, READONLY);
    follow(stage.world, tide_oauth_flow_link(flow), "", location);
    expect(tide_oauth_flow_paste(flow, tide_text_of(location), &stage.err), TIDE_OK, &stage.err);
    tide_sim_net_down(stage.sim, true);
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage.err), TIDE_NETWORK,
           &stage.err);
    tide_sim_net_down(stage.sim, false);
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage.err), TIDE_OK, &stage.err);
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_buf_done(&scopes);
    stage_end(&stage);
}

/* ---- staying signed in ---- */

static void a_token_is_refreshed_a_minute_before_it_expires(void **state)
{
    (void)state;
    struct stage stage;
    char first[512];
    char token[512];
    stage_start(&stage, 6, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    expect(get(&stage, tokens, first), TIDE_OK, &stage.err);
    let_pass(&stage, 3599000 - 65000);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_string_equal(token, first);
    let_pass(&stage, 6000); /* 59 s are left */
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_string_not_equal(token, first);
    assert_int_equal(stage.provider.refreshes, 1);
    assert_int_equal(profile(&stage, token), 200);
    for (int i = 0; i < 20; i++) { /* a day or so */
        let_pass(&stage, HOUR_MS);
        expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
        assert_int_equal(profile(&stage, token), 200);
    }
    assert_int_equal(stage.provider.refreshes, 21);
    tide_tokens_close(tokens);
    /* The last one was stored: opening again asks nobody. */
    tokens = tokens_open(&stage);
    expect(get(&stage, tokens, first), TIDE_OK, &stage.err);
    assert_string_equal(first, token);
    assert_int_equal(stage.provider.refreshes, 21);
    tide_tokens_close(tokens);
    stage_end(&stage);
}

static void a_clock_that_jumps_costs_a_refresh_at_most(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    stage_start(&stage, 7, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    tide_sim_wall_jump(stage.sim, -(int64_t)(100 * HOUR_MS)); /* a running process does not care */
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(stage.provider.refreshes, 0);
    let_pass(&stage, 2 * HOUR_MS);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(stage.provider.refreshes, 1);
    tide_tokens_close(tokens);
    /* A new one is fooled by the stored time, learns it from the server, and mends it. */
    tide_sim_wall_jump(stage.sim, -(int64_t)(50 * HOUR_MS));
    let_pass(&stage, 2 * HOUR_MS);
    tokens = tokens_open(&stage);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(profile(&stage, token), 401);
    tide_tokens_refused(tokens, tide_text_of(token));
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(profile(&stage, token), 200);
    assert_int_equal(stage.provider.refreshes, 2);
    tide_tokens_close(tokens);
    stage_end(&stage);
}

static void a_refused_token_is_refreshed_once(void **state)
{
    (void)state;
    struct stage stage;
    char first[512];
    char token[512];
    stage_start(&stage, 8, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    expect(get(&stage, tokens, first), TIDE_OK, &stage.err);
    control(&stage, "/_cloud/token/expire", "{\"user\":\"" EMAIL "\"}");
    assert_int_equal(profile(&stage, first), 401);
    tide_tokens_refused(tokens, tide_text_of(first));
    tide_tokens_refused(tokens, tide_text_of(first)); /* two calls were under way */
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_string_not_equal(token, first);
    assert_int_equal(profile(&stage, token), 200);
    tide_tokens_refused(tokens, tide_text_of(first)); /* a late one: that token is gone */
    tide_tokens_refused(tokens, TIDE_TEXT("never seen"));
    tide_tokens_refused(tokens, TIDE_TEXT(""));
    expect(get(&stage, tokens, first), TIDE_OK, &stage.err);
    assert_string_equal(first, token);
    assert_int_equal(stage.provider.refreshes, 1);
    tide_tokens_close(tokens);
    stage_end(&stage);
}

/* O3: the provider is asked once, however often and by whomever the token is wanted;
 * and a new sign-in, stored by another process, is noticed at the next question. */
static void a_dead_sign_in_is_reported_with_its_cure_and_not_retried(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    stage_start(&stage, 9, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    control(&stage, "/_cloud/token/revoke", "{\"user\":\"" EMAIL "\"}");
    assert_int_equal(profile(&stage, token), 401);
    tide_tokens_refused(tokens, tide_text_of(token));
    for (int i = 0; i < 10; i++) {
        expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
        assert_non_null(strstr(stage.err.text, "`tidemark account add gmail " EMAIL "`"));
        if (i == 0)
            assert_non_null(
                strstr(stage.err.text, "invalid_grant: Token has been expired or revoked."));
        let_pass(&stage, HOUR_MS);
    }
    assert_int_equal(stage.provider.refreshes, 1);
    sign_in(&stage);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(profile(&stage, token), 200);
    assert_int_equal(stage.provider.refreshes, 1);
    let_pass(&stage, HOUR_MS);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(stage.provider.refreshes, 2);
    tide_tokens_close(tokens);
    stage_end(&stage);
}

/* Each way a refresh can fail: the status is never one that would condemn the item at
 * hand, nothing is shown, and after it the provider's recovery is noticed. */
static void a_failed_refresh_passes_and_shows_nothing(void **state)
{
    (void)state;
    static const struct {
        manner manner;
        int http;
        const char *custom;
        tide_status expected;
    } rows[] = {
        {MANNER_PAGE, 200, NULL, TIDE_SERVER},
        {MANNER_PAGE, 302, NULL, TIDE_SERVER},
        {MANNER_PAGE, 401, NULL, TIDE_SERVER},
        {MANNER_PAGE, 404, NULL, TIDE_SERVER},
        {MANNER_PAGE, 429, NULL, TIDE_THROTTLED},
        {MANNER_PAGE, 500, NULL, TIDE_SERVER},
        {MANNER_ECHO, 503, NULL, TIDE_SERVER},
        {MANNER_ECHO_OK, 200, NULL, TIDE_SERVER},
        {MANNER_BROKEN, 200, NULL, TIDE_SERVER},
        {MANNER_RESET, 0, NULL, TIDE_SERVER},
        {MANNER_CUSTOM, 200, "", TIDE_SERVER},
        {MANNER_CUSTOM, 200, "[]", TIDE_SERVER},
        {MANNER_CUSTOM, 400, "{\"error\":\"temporarily_unavailable\"}", TIDE_SERVER},
        {MANNER_CUSTOM, 403, "{\"error\":{\"errors\":[{\"reason\":\"userRateLimitExceeded\"}]}}",
         TIDE_THROTTLED},
    };
    struct stage stage;
    char token[512];
    stage_start(&stage, 10, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        let_pass(&stage, HOUR_MS);
        stage.provider.manner = rows[i].manner;
        stage.provider.http = rows[i].http;
        stage.provider.custom = rows[i].custom;
        expect(get(&stage, tokens, token), rows[i].expected, &stage.err);
        stage.provider.manner = MANNER_GOOD;
        expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
        assert_int_equal(profile(&stage, token), 200);
    }
    let_pass(&stage, HOUR_MS);
    tide_sim_net_down(stage.sim, true);
    expect(get(&stage, tokens, token), TIDE_NETWORK, &stage.err);
    tide_sim_net_down(stage.sim, false);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    /* What people must mend, in the server's words or not. */
    let_pass(&stage, HOUR_MS);
    stage.provider.manner = MANNER_ECHO;
    stage.provider.http = 401;
    expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
    assert_non_null(strstr(stage.err.text, "invalid_client"));
    assert_non_null(strstr(stage.err.text, "[hidden]"));
    tide_tokens_close(tokens);
    stage_end(&stage);
}

static void tokens_with_a_short_life_are_used_for_half_of_it(void **state)
{
    (void)state;
    struct stage stage;
    char first[512];
    char token[512];
    stage_start(&stage, 11, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    let_pass(&stage, HOUR_MS);
    stage.provider.manner = MANNER_SHORT;
    stage.provider.life_s = 30;
    expect(get(&stage, tokens, first), TIDE_OK, &stage.err);
    let_pass(&stage, 10000);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_string_equal(token, first);
    let_pass(&stage, 10000);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_string_not_equal(token, first);
    /* One that is dead at birth is given out once, and does not make us ask for ever. */
    stage.provider.life_s = 0;
    let_pass(&stage, 60000);
    const unsigned before = stage.provider.refreshes;
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(stage.provider.refreshes, before + 2);
    tide_tokens_close(tokens);
    stage_end(&stage);
}

/* O1, where it matters most: the old refresh token is dead once a new one was given. */
static void a_new_refresh_token_is_kept_even_when_the_disk_was_full(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    stage_start(&stage, 12, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    let_pass(&stage, HOUR_MS);
    stage.provider.manner = MANNER_ROTATE;
    tide_sim_disk_room(stage.sim, 1);
    expect(get(&stage, tokens, token), TIDE_DISK_FULL, &stage.err);
    expect(get(&stage, tokens, token), TIDE_DISK_FULL, &stage.err);
    assert_int_equal(stage.provider.refreshes, 1); /* only the keeping was tried again */
    tide_sim_disk_room(stage.sim, 1 << 30);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(stage.provider.refreshes, 1);
    tide_tokens_close(tokens);
    tokens = tokens_open(&stage);
    let_pass(&stage, HOUR_MS);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_non_null(strstr(stage.provider.last_refresh, "rotated-refresh-"));
    tide_tokens_close(tokens);
    stage_end(&stage);
}

/* Fails at keeping, then somebody signs in anew: the new sign-in is not overwritten. */
static void what_could_not_be_kept_gives_way_to_a_new_sign_in(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    stage_start(&stage, 13, NULL);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    let_pass(&stage, HOUR_MS);
    stage.provider.manner = MANNER_ROTATE;
    tide_sim_disk_room(stage.sim, 1);
    expect(get(&stage, tokens, token), TIDE_DISK_FULL, &stage.err);
    tide_sim_disk_room(stage.sim, 1 << 30);
    stage.provider.manner = MANNER_GOOD;
    let_pass(&stage, MINUTE_MS);
    sign_in(&stage);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_int_equal(profile(&stage, token), 200);
    let_pass(&stage, HOUR_MS);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_null(strstr(stage.provider.last_refresh, "rotated-refresh-"));
    tide_tokens_close(tokens);
    stage_end(&stage);
}

/* O1: power is lost at each step around a refresh in turn; a token that was given out
 * is found on the disk afterwards. */
static void a_token_is_durable_before_it_is_used(void **state)
{
    (void)state;
    unsigned given = 0;
    for (uint64_t steps = 1; steps < 60; steps++) {
        struct stage stage;
        char token[512];
        char stored[512];
        stage_start(&stage, 1000 + steps, NULL);
        sign_in(&stage);
        tide_tokens *tokens = tokens_open(&stage);
        let_pass(&stage, HOUR_MS);
        tide_sim_crash_after(stage.sim, steps, TIDE_SIM_CRASH_POWER);
        const tide_status rc = get(&stage, tokens, token);
        tide_sim_crash(stage.sim, TIDE_SIM_CRASH_POWER);
        tide_tokens_close(tokens);
        tide_sim_reboot(stage.sim);
        tokens = tokens_open(&stage);
        const unsigned before = stage.provider.refreshes;
        expect(get(&stage, tokens, stored), TIDE_OK, &stage.err);
        if (rc == TIDE_OK) {
            given++;
            assert_string_equal(stored, token);
            assert_int_equal(stage.provider.refreshes, before);
        } else {
            assert_int_equal(rc, TIDE_STOPPED);
        }
        assert_int_equal(profile(&stage, stored), 200);
        tide_tokens_close(tokens);
        stage_end(&stage);
    }
    assert_in_range(given, 1, 58); /* both were tried */
}

static void a_damaged_or_missing_sign_in_asks_for_a_new_one(void **state)
{
    (void)state;
    struct stage stage;
    tide_tokens *tokens = NULL;
    stage_start(&stage, 14, NULL);
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"v\":1}",
        "{\"v\":0,\"type\":\"fixed\",\"access_token\":\"a\"}",
        "{\"v\":1,\"type\":\"other\"}",
        "{\"v\":1,\"type\":\"fixed\"}",
        "{\"v\":1,\"type\":\"fixed\",\"access_token\":\"a b\"}",
        "{\"v\":1,\"type\":\"fixed\",\"access_token\":\"a\",\"expires_unix_ms\":\"x\"}",
        "{\"v\":1,\"type\":\"user\",\"refresh_token\":\"HIDDEN-REFRESH-TOKEN\"}",
        "{\"v\":1,\"type\":\"user\",\"refresh_token\":HIDDEN-REFRESH-TOKEN}",
        "{\"v\":1,\"type\":\"service\",\"private_key\":\"HIDDEN-REFRESH-TOKEN\"}",
    };
    keep_secret("HIDDEN-REFRESH-TOKEN");
    expect(
        tide_tokens_open(stage.world, stage.secrets, SECRET, tide_mem_heap(), &tokens, &stage.err),
        TIDE_AUTH, &stage.err);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tide_secrets_put(stage.secrets, SECRET, tide_text_of(bad[i]), NULL),
                         TIDE_OK);
        expect(tide_tokens_open(stage.world, stage.secrets, SECRET, tide_mem_heap(), &tokens,
                                &stage.err),
               TIDE_AUTH, &stage.err);
        assert_non_null(strstr(stage.err.text, "tidemark account add gmail " EMAIL));
    }
    assert_int_equal(
        tide_secrets_put(stage.secrets, SECRET, TIDE_TEXT("{\"v\":2,\"type\":\"fixed\"}"), NULL),
        TIDE_OK);
    expect(
        tide_tokens_open(stage.world, stage.secrets, SECRET, tide_mem_heap(), &tokens, &stage.err),
        TIDE_NEWER, &stage.err);
    assert_null(tokens);
    stage_end(&stage);
}

static void a_fixed_token_is_used_until_it_is_refused(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    tide_buf grant;
    stage_start(&stage, 15, NULL);
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    assert_int_equal(box_cloud_add_token(tide_sim_cloud_box(stage.provider.cloud),
                                         TIDE_TEXT("demo-token-of-ada"), TIDE_TEXT(EMAIL), NULL),
                     TIDE_OK);
    static const char *const bad[] = {"", "a b", "a\nb", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect(tide_oauth_fixed(bad[i], &grant, &stage.err), TIDE_INVALID, &stage.err);
    expect(tide_oauth_fixed("demo-token-of-ada", &grant, &stage.err), TIDE_OK, &stage.err);
    assert_int_equal(tide_secrets_put(stage.secrets, SECRET, tide_buf_text(&grant), NULL), TIDE_OK);
    tide_tokens *tokens = tokens_open(&stage);
    let_pass(&stage, 1000 * HOUR_MS);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    assert_string_equal(token, "demo-token-of-ada");
    assert_int_equal(profile(&stage, token), 200);
    tide_tokens_refused(tokens, tide_text_of(token));
    expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
    expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
    assert_int_equal(stage.provider.tokens, 0);
    expect(tide_tokens_revoke(tokens, &stage.err), TIDE_OK, &stage.err);
    assert_int_equal(stage.provider.revokes, 0);
    tide_tokens_close(tokens);
    tide_secret_wipe(&grant);
    stage_end(&stage);
}

static void a_revoked_sign_in_is_gone_here_and_there(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    tide_buf secret;
    stage_start(&stage, 16, NULL);
    tide_buf_init(&secret, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    sign_in(&stage);
    tide_tokens *tokens = tokens_open(&stage);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    /* First it fails, and everything stays. */
    stage.provider.manner = MANNER_ECHO;
    stage.provider.http = 500;
    expect(tide_tokens_revoke(tokens, &stage.err), TIDE_SERVER, &stage.err);
    tide_sim_net_down(stage.sim, true);
    expect(tide_tokens_revoke(tokens, &stage.err), TIDE_NETWORK, &stage.err);
    tide_sim_net_down(stage.sim, false);
    stage.provider.manner = MANNER_GOOD;
    assert_int_equal(profile(&stage, token), 200);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);

    expect(tide_tokens_revoke(tokens, &stage.err), TIDE_OK, &stage.err);
    assert_int_equal(profile(&stage, token), 401);
    assert_int_equal(tide_secrets_get(stage.secrets, SECRET, &secret, NULL), TIDE_NOT_FOUND);
    expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
    expect(tide_tokens_revoke(tokens, &stage.err), TIDE_OK, &stage.err); /* twice is fine */
    tide_tokens_close(tokens);

    /* One that died elsewhere can be revoked as well. */
    sign_in(&stage);
    tokens = tokens_open(&stage);
    control(&stage, "/_cloud/token/revoke", "{\"user\":\"" EMAIL "\"}");
    expect(tide_tokens_revoke(tokens, &stage.err), TIDE_OK, &stage.err);
    tide_tokens_close(tokens);
    stage_end(&stage);
}

/* ---- service accounts ---- */

/* A key file of the box's; its token_uri is Google's, which the simulated network
 * takes to the box like any other. */
static char *key_file(struct stage *stage)
{
    json_t *file = NULL;
    struct box_auth *auth = box_cloud_auth(tide_sim_cloud_box(stage->provider.cloud));
    assert_int_equal(
        box_auth_make_service_account(auth, TIDE_TEXT("robot@project.example.com"), &file),
        TIDE_OK);
    char *text = json_dumps(file, 0);
    json_decref(file);
    assert_non_null(text);
    return text;
}

static void a_service_account_acts_for_a_user(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    tide_buf grant;
    stage_start(&stage, 17, NULL);
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    char *file = key_file(&stage);
    expect(tide_oauth_service_account(tide_text_of(file), EMAIL, READONLY, &grant, &stage.err),
           TIDE_OK, &stage.err);
    keep_grant(tide_buf_text(&grant));
    assert_int_equal(tide_secrets_put(stage.secrets, SECRET, tide_buf_text(&grant), NULL), TIDE_OK);
    tide_tokens *tokens = tokens_open(&stage);
    for (unsigned i = 1; i <= 5; i++) {
        expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
        assert_int_equal(profile(&stage, token), 200);
        assert_int_equal(stage.provider.tokens, i);
        let_pass(&stage, HOUR_MS);
    }
    /* Our clock may be a little ahead of Google's, or behind. */
    tide_sim_wall_jump(stage.sim, 4 * (int64_t)MINUTE_MS);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    let_pass(&stage, HOUR_MS);
    tide_sim_wall_jump(stage.sim, -8 * (int64_t)MINUTE_MS);
    expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
    /* Far ahead: refused, and the reason is said. */
    let_pass(&stage, HOUR_MS);
    tide_sim_wall_jump(stage.sim, 50 * (int64_t)MINUTE_MS);
    expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
    assert_non_null(strstr(stage.err.text, "reasonable timeframe"));
    tide_tokens_close(tokens);
    free(file);
    tide_secret_wipe(&grant);
    stage_end(&stage);
}

static void delegation_that_was_not_given_needs_an_administrator(void **state)
{
    (void)state;
    struct stage stage;
    char token[512];
    tide_buf grant;
    stage_start(&stage, 18, NULL);
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    char *file = key_file(&stage);
    box_cloud *box = tide_sim_cloud_box(stage.provider.cloud);
    assert_int_equal(box_auth_delegate(box_cloud_auth(box), TIDE_TEXT("robot@project.example.com"),
                                       box_cloud_user(box, TIDE_TEXT(EMAIL)),
                                       box_scopes_parse(TIDE_TEXT(READONLY))),
                     TIDE_OK);
    static const struct {
        const char *user;
        const char *scopes;
        const char *why;
    } rows[] = {{EMAIL, READONLY " " SEND, "unauthorized_client"},
                {"nobody@example.com", READONLY, "invalid_grant"},
                {EMAIL, "https://example.com/no-such-scope", "invalid_scope"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_buf_clear(&grant);
        expect(tide_oauth_service_account(tide_text_of(file), rows[i].user, rows[i].scopes, &grant,
                                          &stage.err),
               TIDE_OK, &stage.err);
        keep_grant(tide_buf_text(&grant));
        assert_int_equal(tide_secrets_put(stage.secrets, SECRET, tide_buf_text(&grant), NULL),
                         TIDE_OK);
        tide_tokens *tokens = tokens_open(&stage);
        expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
        assert_non_null(strstr(stage.err.text, rows[i].why));
        const unsigned before = stage.provider.tokens;
        expect(get(&stage, tokens, token), TIDE_AUTH, &stage.err);
        assert_int_equal(stage.provider.tokens, before); /* O3 */
        tide_tokens_close(tokens);
    }
    free(file);
    tide_secret_wipe(&grant);
    stage_end(&stage);
}

static char *pem_of(EVP_PKEY *key, const char *password)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert_non_null(bio);
    assert_int_equal(PEM_write_bio_PKCS8PrivateKey(
                         bio, key, password == NULL ? NULL : EVP_aes_256_cbc(), password,
                         password == NULL ? 0 : (int)strlen(password), NULL, NULL),
                     1);
    char *data = NULL;
    const long bytes = BIO_get_mem_data(bio, &data);
    char *pem = strndup(data, (size_t)bytes);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return pem;
}

static void check_key_file(const char *pem, const char *email, const char *url,
                           const char *expected)
{
    tide_buf grant;
    tide_error err = {0};
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    json_t *file = json_pack("{s:s, s:s, s:s, s:s}", "type", "service_account", "private_key", pem,
                             "client_email", email, "token_uri", url);
    assert_non_null(file);
    char *text = json_dumps(file, 0);
    const tide_status rc =
        tide_oauth_service_account(tide_text_of(text), EMAIL, READONLY, &grant, &err);
    expect(rc, expected == NULL ? TIDE_OK : TIDE_INVALID, &err);
    if (expected != NULL && strstr(err.text, expected) == NULL)
        fail_msg("%s", err.text);
    free(text);
    json_decref(file);
    tide_secret_wipe(&grant);
}

static void a_bad_key_file_is_refused_and_not_quoted(void **state)
{
    (void)state;
    const char *url = "https://oauth2.googleapis.com/token";
    char *good = pem_of(EVP_RSA_gen(2048), NULL);
    char *small = pem_of(EVP_RSA_gen(1024), NULL);
    char *curve = pem_of(EVP_EC_gen("P-256"), NULL);
    char *locked = pem_of(EVP_RSA_gen(2048), "password"); /* nobody is asked for it */
    const char *const keys[] = {good, small, curve, locked};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        /* Its lines, but for the first and the last. */
        char *copy = strdup(keys[i]);
        char *rest = NULL;
        for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest))
            if (line[0] != '-')
                keep_secret(line);
        free(copy);
    }
    check_key_file(good, "robot@example.com", url, NULL);
    check_key_file(good, "robot@example.com", "http://127.0.0.1:4443/token", NULL);
    check_key_file(small, "robot@example.com", url, "RSA key of 2048 bits");
    check_key_file(curve, "robot@example.com", url, "RSA key of 2048 bits");
    check_key_file(locked, "robot@example.com", url, "RSA key of 2048 bits");
    check_key_file("no key", "robot@example.com", url, "RSA key of 2048 bits");
    check_key_file("", "robot@example.com", url, "private_key");
    check_key_file(good, "", url, "client_email");
    check_key_file(good, "robot@example.com\nX", url, "client_email");
    check_key_file(good, "robot@example.com", "http://example.com/token", "token_uri");
    check_key_file(good, "robot@example.com", "", "token_uri");
    char *half = strndup(good, strlen(good) / 2);
    check_key_file(half, "robot@example.com", url, "RSA key of 2048 bits");
    free(half);

    tide_buf grant;
    tide_error err = {0};
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    static const char *const files[] = {"",
                                        "{",
                                        "[]",
                                        "7",
                                        "{}",
                                        "{\"type\":\"authorized_user\"}",
                                        "{\"type\":\"service_account\"}"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        expect(tide_oauth_service_account(tide_text_of(files[i]), EMAIL, READONLY, &grant, &err),
               TIDE_INVALID, &err);
    expect(tide_oauth_service_account(TIDE_TEXT("{}"), "a b", READONLY, &grant, &err), TIDE_INVALID,
           &err);
    expect(tide_oauth_service_account(TIDE_TEXT("{}"), EMAIL, "", &grant, &err), TIDE_INVALID,
           &err);
    assert_int_equal(grant.bytes, 0);
    free(good);
    free(small);
    free(curve);
    free(locked);
    forget_secrets();
}

/* ---- memory ---- */

static tide_status sign_in_with(struct stage *stage, tide_mem *mem)
{
    char location[2048];
    tide_buf grant;
    tide_buf scopes;
    tide_buf bearer;
    tide_oauth_flow *flow = NULL;
    tide_tokens *tokens = NULL;
    tide_buf_init(&grant, mem, TIDE_SECRET_BYTES_MAX);
    tide_buf_init(&scopes, mem, 4096);
    tide_buf_init(&bearer, mem, 4096);
    const struct tide_oauth_ask ask = {
        .client = &stage->client, .scopes = READONLY, .login_hint = EMAIL, .headless = true};
    tide_status rc = tide_oauth_flow_start(stage->world, &ask, mem, &flow, &stage->err);
    if (rc == TIDE_OK) {
        follow(stage->world, tide_oauth_flow_link(flow), "", location);
        rc = tide_oauth_flow_paste(flow, tide_text_of(location), &stage->err);
    }
    if (rc == TIDE_OK)
        rc = tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &stage->err);
    if (rc == TIDE_OK)
        rc = tide_secrets_put(stage->secrets, SECRET, tide_buf_text(&grant), &stage->err);
    if (rc == TIDE_OK)
        rc = tide_tokens_open(stage->world, stage->secrets, SECRET, mem, &tokens, &stage->err);
    if (rc == TIDE_OK) {
        let_pass(stage, HOUR_MS);
        rc = tide_tokens_get(tokens, NULL, &bearer, &stage->err);
    }
    if (rc == TIDE_OK)
        rc = tide_tokens_revoke(tokens, &stage->err);
    tide_tokens_close(tokens);
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_secret_wipe(&bearer);
    tide_buf_done(&scopes);
    return rc;
}

static void signing_in_survives_every_failed_allocation(void **state)
{
    (void)state;
    struct stage stage;
    stage_start(&stage, 19, NULL);
    for (uint64_t fail_at = 0;; fail_at++) { /* ends: the scenario allocates finitely often */
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        const tide_status rc = sign_in_with(&stage, &mem.base);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired) {
            expect(rc, TIDE_OK, &stage.err);
            assert_true(fail_at > 40);
            break;
        }
        if (rc != TIDE_NO_MEMORY)
            fail_msg("allocation %llu: %s: %s", (unsigned long long)fail_at, tide_status_name(rc),
                     stage.err.text);
    }
    stage_end(&stage);
}

static void a_service_account_survives_every_failed_allocation(void **state)
{
    (void)state;
    struct stage stage;
    stage_start(&stage, 20, NULL);
    char *file = key_file(&stage);
    for (uint64_t fail_at = 0;; fail_at++) { /* ends: the scenario allocates finitely often */
        struct tide_mem_faulty mem;
        tide_buf grant;
        tide_buf bearer;
        tide_tokens *tokens = NULL;
        tide_mem_faulty_once(&mem, fail_at);
        tide_buf_init(&grant, &mem.base, TIDE_SECRET_BYTES_MAX);
        tide_buf_init(&bearer, &mem.base, 4096);
        tide_status rc =
            tide_oauth_service_account(tide_text_of(file), EMAIL, READONLY, &grant, &stage.err);
        if (rc == TIDE_OK)
            rc = tide_secrets_put(stage.secrets, SECRET, tide_buf_text(&grant), &stage.err);
        if (rc == TIDE_OK)
            rc = tide_tokens_open(stage.world, stage.secrets, SECRET, &mem.base, &tokens,
                                  &stage.err);
        if (rc == TIDE_OK)
            rc = tide_tokens_get(tokens, NULL, &bearer, &stage.err);
        tide_tokens_close(tokens);
        tide_secret_wipe(&grant);
        tide_secret_wipe(&bearer);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired) {
            expect(rc, TIDE_OK, &stage.err);
            break;
        }
        if (rc != TIDE_NO_MEMORY)
            fail_msg("allocation %llu: %s: %s", (unsigned long long)fail_at, tide_status_name(rc),
                     stage.err.text);
    }
    free(file);
    stage_end(&stage);
}

/* ---- many threads, in the simulated world ---- */

enum { THREADS = 24 };

struct asker {
    struct stage *stage;
    tide_tokens *tokens;
    tide_cancel cancel;
    tide_status rc;
    tide_error err;
    char token[512];
};

static void asker_run(void *arg)
{
    struct asker *asker = arg;
    tide_buf bearer;
    tide_buf_init(&bearer, tide_mem_heap(), 511);
    asker->rc = tide_tokens_get(asker->tokens, &asker->cancel, &bearer, &asker->err);
    (void)snprintf(asker->token, sizeof asker->token, "%s", tide_buf_cstr(&bearer));
    tide_secret_wipe(&bearer);
}

static void ask_together(struct stage *stage, tide_tokens *tokens, struct asker askers[THREADS],
                         size_t canceled)
{
    tide_thread *threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.stage = stage, .tokens = tokens};
        assert_int_equal(
            tide_world_thread(stage->world, "asker", asker_run, &askers[i], &threads[i], NULL),
            TIDE_OK);
    }
    for (size_t i = 0; i < canceled; i++)
        tide_world_cancel(stage->world, &askers[i].cancel, TIDE_CANCEL_USER);
    for (size_t i = 0; i < THREADS; i++)
        tide_world_join(stage->world, threads[i]);
}

/* O2, over many orders of threads: at expiry, after a refusal, and when it fails. */
static void however_many_ask_there_is_one_refresh(void **state)
{
    (void)state;
    const long seeds = scaled(150);
    for (long seed = 1; seed <= seeds; seed++) {
        struct stage stage;
        struct asker askers[THREADS];
        const struct tide_sim_options options = {.spurious_permille = 50,
                                                 .unfair = seed % 2 == 0,
                                                 .yield_permille = seed % 3 == 0 ? 1000 : 0};
        stage_start(&stage, (uint64_t)seed, &options);
        sign_in(&stage);
        tide_tokens *tokens = tokens_open(&stage);
        let_pass(&stage, HOUR_MS);
        ask_together(&stage, tokens, askers, 0);
        for (size_t i = 0; i < THREADS; i++) {
            TIDE_SIM_EXPECT(stage.sim, askers[i].rc == TIDE_OK);
            TIDE_SIM_EXPECT(stage.sim, strcmp(askers[i].token, askers[0].token) == 0);
        }
        TIDE_SIM_EXPECT(stage.sim, stage.provider.refreshes == 1);

        for (size_t i = 0; i < THREADS; i++)
            tide_tokens_refused(tokens, tide_text_of(askers[0].token));
        ask_together(&stage, tokens, askers, 0);
        TIDE_SIM_EXPECT(stage.sim, stage.provider.refreshes == 2);

        /* A failure is shared by all who waited; who comes later tries once more. */
        let_pass(&stage, HOUR_MS);
        stage.provider.manner = MANNER_PAGE;
        stage.provider.http = 503;
        ask_together(&stage, tokens, askers, 0);
        for (size_t i = 0; i < THREADS; i++) {
            TIDE_SIM_EXPECT(stage.sim, askers[i].rc == TIDE_SERVER);
            TIDE_SIM_EXPECT(stage.sim, askers[i].err.status == TIDE_SERVER);
        }
        TIDE_SIM_EXPECT(stage.sim, stage.provider.refreshes <= 2 + THREADS / 2);

        stage.provider.manner = MANNER_GRANT;
        const unsigned before = stage.provider.refreshes;
        ask_together(&stage, tokens, askers, 0);
        for (size_t i = 0; i < THREADS; i++)
            TIDE_SIM_EXPECT(stage.sim, askers[i].rc == TIDE_AUTH);
        TIDE_SIM_EXPECT(stage.sim, stage.provider.refreshes == before + 1); /* O3 */
        tide_tokens_close(tokens);
        stage_end(&stage);
    }
}

/* Who is canceled leaves, and if it was the one who refreshed, another takes over. */
static void a_canceled_refresh_is_taken_over(void **state)
{
    (void)state;
    const long seeds = scaled(150);
    unsigned taken_over = 0;
    for (long seed = 1; seed <= seeds; seed++) {
        struct stage stage;
        struct asker askers[THREADS];
        stage_start(&stage, (uint64_t)seed, NULL);
        sign_in(&stage);
        tide_tokens *tokens = tokens_open(&stage);
        let_pass(&stage, HOUR_MS);
        ask_together(&stage, tokens, askers, THREADS / 2);
        for (size_t i = 0; i < THREADS; i++) {
            const bool canceled = i < THREADS / 2;
            TIDE_SIM_EXPECT(stage.sim,
                            askers[i].rc == TIDE_OK || (canceled && askers[i].rc == TIDE_CANCELED));
            taken_over += canceled && askers[i].rc == TIDE_CANCELED;
        }
        TIDE_SIM_EXPECT(stage.sim, profile(&stage, askers[THREADS - 1].token) == 200);
        tide_tokens_close(tokens);
        stage_end(&stage);
    }
    assert_true(taken_over > 0);
}

/* A bad network, a bad disk, pauses and jumps of the clock: whatever comes back, it is
 * one of the promised statuses, shows nothing, and in the end all is well. */
static void in_bad_weather_every_answer_is_one_that_was_promised(void **state)
{
    (void)state;
    const long seeds = scaled(150);
    for (long seed = 1; seed <= seeds; seed++) {
        struct stage stage;
        struct asker askers[THREADS];
        char token[512];
        const struct tide_sim_options options = tide_sim_options_seeded((uint64_t)seed);
        stage_start(&stage, (uint64_t)seed, &options);
        tide_sim_faults(stage.sim, false);
        sign_in(&stage);
        tide_tokens *tokens = tokens_open(&stage);
        tide_sim_faults(stage.sim, true);
        for (int round = 0; round < 3; round++) {
            let_pass(&stage, HOUR_MS);
            ask_together(&stage, tokens, askers, (size_t)round);
            for (size_t i = 0; i < THREADS; i++) {
                const tide_status rc = askers[i].rc;
                TIDE_SIM_EXPECT(stage.sim, rc == TIDE_OK || rc == TIDE_NETWORK ||
                                               rc == TIDE_SERVER || rc == TIDE_TIMEOUT ||
                                               rc == TIDE_CANCELED || rc == TIDE_THROTTLED ||
                                               rc == TIDE_IO || rc == TIDE_DISK_FULL);
                check_shows_nothing(&askers[i].err);
            }
        }
        tide_sim_faults(stage.sim, false);
        let_pass(&stage, HOUR_MS);
        expect(get(&stage, tokens, token), TIDE_OK, &stage.err);
        TIDE_SIM_EXPECT(stage.sim, profile(&stage, token) == 200);
        tide_tokens_close(tokens);
        stage_end(&stage);
    }
}

/* ---- the real world, with the box in the place of the network ---- */

static struct real_stage {
    tide_world *world;
    struct tide_world_ops ops;
    box_cloud *box;
    pthread_mutex_t lock; /* of the box */
    unsigned refreshes;
    char dir[64];
    tide_secrets *secrets;
} real;

static tide_status real_box_call(tide_world *world, const struct tide_request *request,
                                 struct tide_response *response, const tide_cancel *cancel,
                                 tide_error *err)
{
    (void)err;
    const char *path = strchr(strstr(request->url, "://") + 3, '/');
    struct box_header header = {TIDE_TEXT("Content-Type"),
                                TIDE_TEXT("application/x-www-form-urlencoded")};
    const struct box_request inner = {.verb = box_verb_of(tide_text_of(request->method)),
                                      .target = tide_text_of(path),
                                      .headers = &header,
                                      .headers_count = 1,
                                      .body = request->body,
                                      .origin = TIDE_TEXT(ORIGIN)};
    /* Long enough that the others come while it runs. */
    if (tide_world_sleep_until(world, tide_world_now_us(world) + 2000, cancel) != TIDE_OK)
        return tide_error_set(err, TIDE_CANCELED, "canceled");
    struct box_answer answer;
    box_answer_init(&answer);
    (void)pthread_mutex_lock(&real.lock);
    real.refreshes += memmem(request->body.data, request->body.bytes, "refresh_token", 13) != NULL;
    box_cloud_serve(real.box, &inner, tide_world_now_unix_ms(world), &answer);
    box_cloud_finished(real.box, &answer.ticket, tide_world_now_unix_ms(world));
    (void)pthread_mutex_unlock(&real.lock);
    response->http = answer.status;
    const tide_status rc =
        tide_buf_add(&response->body, tide_buf_cstr(&answer.body), answer.body.bytes);
    box_answer_done(&answer);
    return rc;
}

static int real_set_up(void **state)
{
    (void)state;
    const struct box_options options = {.seed = 1, .auto_consent = true};
    real = (struct real_stage){.lock = PTHREAD_MUTEX_INITIALIZER};
    real.box = box_cloud_new(&options);
    assert_non_null(box_cloud_user_need(real.box, TIDE_TEXT(EMAIL)));
    assert_int_equal(tide_world_real_new(tide_mem_heap(), &real.world, NULL), TIDE_OK);
    real.ops = *real.world->ops;
    real.ops.call = real_box_call;
    real.world->ops = &real.ops;
    (void)snprintf(real.dir, sizeof real.dir, "/tmp/tide-oauth-XXXXXX");
    assert_non_null(mkdtemp(real.dir));
    assert_int_equal(tide_secrets_open(real.world, real.dir, TIDE_SECRETS_FILES, tide_mem_heap(),
                                       &real.secrets, NULL),
                     TIDE_OK);
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static int real_tear_down(void **state)
{
    (void)state;
    tide_secrets_close(real.secrets);
    tide_world_real_free(real.world);
    box_cloud_free(real.box);
    assert_int_equal(nftw(real.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    forget_secrets();
    return 0;
}

/* Where the box sends the browser. */
static void real_follow(const char *link, char location_out[2048])
{
    const char *path = strchr(strstr(link, "://") + 3, '/');
    const struct box_request request = {
        .verb = BOX_GET, .target = tide_text_of(path), .origin = TIDE_TEXT(ORIGIN)};
    struct box_answer answer;
    box_answer_init(&answer);
    (void)pthread_mutex_lock(&real.lock);
    box_cloud_serve(real.box, &request, tide_world_now_unix_ms(real.world), &answer);
    (void)pthread_mutex_unlock(&real.lock);
    assert_int_equal(answer.status, 302);
    location_out[0] = '\0';
    for (size_t i = 0; i < answer.headers_count; i++)
        if (strcmp(answer.headers[i].name, "Location") == 0)
            (void)snprintf(location_out, 2048, "%s", answer.headers[i].value);
    assert_true(location_out[0] != '\0');
    box_answer_done(&answer);
}

/* GET on an address of this machine over a socket; the code of the answer. */
static int browse(const char *url)
{
    unsigned port = 0;
    char request[8192];
    char answer[4096];
    assert_int_equal(sscanf(url, "http://127.0.0.1:%u/", &port), 1);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)port)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    const int bytes =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
                 strchr(url + 7, '/'), port);
    assert_int_equal(send(fd, request, (size_t)bytes, MSG_NOSIGNAL), bytes);
    size_t heard = 0;
    ssize_t got = 0;
    while (heard < sizeof answer - 1 &&
           (got = recv(fd, answer + heard, sizeof answer - 1 - heard, 0)) > 0)
        heard += (size_t)got;
    answer[heard] = '\0';
    (void)close(fd);
    int http = 0;
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &http), 1);
    return http;
}

struct waiter {
    tide_oauth_flow *flow;
    uint64_t wait_ms;
    tide_cancel cancel;
    tide_status rc;
    tide_error err;
};

static void waiter_run(void *arg)
{
    struct waiter *waiter = arg;
    waiter->rc = tide_oauth_flow_wait(waiter->flow, waiter->wait_ms, &waiter->cancel, &waiter->err);
}

static tide_oauth_flow *real_flow(struct tide_oauth_client *client)
{
    tide_oauth_client_at(ORIGIN, client);
    const struct tide_oauth_ask ask = {.client = client, .scopes = READONLY, .login_hint = EMAIL};
    tide_oauth_flow *flow = NULL;
    assert_int_equal(tide_oauth_flow_start(real.world, &ask, tide_mem_heap(), &flow, NULL),
                     TIDE_OK);
    return flow;
}

static void real_sign_in(void)
{
    struct tide_oauth_client client;
    char location[2048];
    tide_buf grant;
    tide_buf scopes;
    tide_thread *thread = NULL;
    tide_error err = {0};
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    tide_buf_init(&scopes, tide_mem_heap(), 4096);
    tide_oauth_flow *flow = real_flow(&client);
    struct waiter waiter = {.flow = flow, .wait_ms = 60000};
    assert_int_equal(tide_world_thread(real.world, "wait", waiter_run, &waiter, &thread, NULL),
                     TIDE_OK);
    real_follow(tide_oauth_flow_link(flow), location);
    assert_int_equal(browse(location), 200);
    tide_world_join(real.world, thread);
    expect(waiter.rc, TIDE_OK, &waiter.err);
    expect(tide_oauth_flow_finish(flow, NULL, &grant, &scopes, &err), TIDE_OK, &err);
    keep_grant(tide_buf_text(&grant));
    assert_int_equal(tide_secrets_put(real.secrets, SECRET, tide_buf_text(&grant), NULL), TIDE_OK);
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_buf_done(&scopes);
}

static void the_browser_comes_back_to_the_listener(void **state)
{
    (void)state;
    real_sign_in();
    tide_tokens *tokens = NULL;
    assert_int_equal(
        tide_tokens_open(real.world, real.secrets, SECRET, tide_mem_heap(), &tokens, NULL),
        TIDE_OK);
    tide_buf bearer;
    tide_buf_init(&bearer, tide_mem_heap(), 512);
    assert_int_equal(tide_tokens_get(tokens, NULL, &bearer, NULL), TIDE_OK);
    struct box_principal principal;
    assert_true(box_auth_check(box_cloud_auth(real.box), tide_buf_text(&bearer),
                               tide_world_now_unix_ms(real.world), &principal));
    assert_string_equal(principal.user->email, EMAIL);
    tide_secret_wipe(&bearer);
    tide_tokens_close(tokens);
}

/* A forged or stale answer neither ends the wait nor spoils it; a refusal does. */
static void only_the_right_state_is_listened_to(void **state)
{
    (void)state;
    struct tide_oauth_client client;
    char location[2048];
    char other[8192];
    tide_thread *thread = NULL;
    tide_oauth_flow *flow = real_flow(&client);
    tide_oauth_flow *stranger = real_flow(&client);
    struct waiter waiter = {.flow = flow, .wait_ms = 60000};
    assert_int_equal(tide_world_thread(real.world, "wait", waiter_run, &waiter, &thread, NULL),
                     TIDE_OK);
    real_follow(tide_oauth_flow_link(flow), location);
    const char *query = strchr(location, '?');
    assert_non_null(query);
    const int base = (int)(query - location);
    char state_text[2048];
    param(tide_oauth_flow_link(stranger), "state", state_text);
    char ours[2048];
    param(location, "state", ours);
    const struct {
        const char *rest;
        const char *value;
        int http;
    } rows[] = {
        {"favicon.ico", "", 404},
        {"?code=forged", "", 400},
        {"?code=forged&state=", "", 400},
        {"?code=forged&state=", state_text, 400},
        {"?error=access_denied&state=", state_text, 400},
        {"?state=", ours, 400}, /* neither code nor error */
        {"?code=&state=", ours, 400},
        {"?code=a%20b&state=", ours, 400},
        {"?code=a&code=b&state=", ours, 400},
        {"x?code=a&state=", ours, 404},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(other, sizeof other, "%.*s%s%s", base, location, rows[i].rest,
                       rows[i].value);
        if (browse(other) != rows[i].http)
            fail_msg("%s", other);
    }
    (void)snprintf(other, sizeof other, "%.*s?error=access_denied&state=%s", base, location, ours);
    assert_int_equal(browse(other), 200);
    tide_world_join(real.world, thread);
    expect(waiter.rc, TIDE_AUTH, &waiter.err);

    /* The person thinks again: the same link still works. */
    waiter = (struct waiter){.flow = flow, .wait_ms = 60000};
    assert_int_equal(tide_world_thread(real.world, "wait", waiter_run, &waiter, &thread, NULL),
                     TIDE_OK);
    assert_int_equal(browse(location), 200);
    tide_world_join(real.world, thread);
    expect(waiter.rc, TIDE_OK, &waiter.err);
    tide_oauth_flow_free(flow);

    /* Nobody comes; nobody wants it any more. */
    tide_error err = {0};
    expect(tide_oauth_flow_wait(stranger, 10, NULL, &err), TIDE_TIMEOUT, &err);
    waiter = (struct waiter){.flow = stranger, .wait_ms = 60000};
    tide_world_cancel(real.world, &waiter.cancel, TIDE_CANCEL_USER);
    waiter_run(&waiter);
    expect(waiter.rc, TIDE_CANCELED, &waiter.err);
    tide_oauth_flow_free(stranger);
}

struct racer {
    tide_tokens *tokens;
    long rounds;
    unsigned refusals;
    tide_status rc;
};

/* Asks again and again; now and then the server "refuses" what it got. */
static void racer_run(void *arg)
{
    struct racer *racer = arg;
    tide_buf bearer;
    tide_buf_init(&bearer, tide_mem_heap(), 512);
    for (long i = 0; racer->rc == TIDE_OK && i < racer->rounds; i++) {
        racer->rc = tide_tokens_get(racer->tokens, NULL, &bearer, NULL);
        if (racer->rc == TIDE_OK && i % 16 == 15)
            tide_tokens_refused(racer->tokens, tide_buf_text(&bearer));
    }
    tide_secret_wipe(&bearer);
}

/* Real threads over a gate: all of them find the token refused at once, and there is
 * exactly one refresh; then everything at once, for the race detector. */
static void real_threads_share_one_refresh(void **state)
{
    (void)state;
    enum { RACERS = 16 };
    struct racer racers[RACERS];
    tide_thread *threads[RACERS];
    tide_buf bearer;
    tide_tokens *tokens = NULL;
    real_sign_in();
    tide_buf_init(&bearer, tide_mem_heap(), 512);
    assert_int_equal(
        tide_tokens_open(real.world, real.secrets, SECRET, tide_mem_heap(), &tokens, NULL),
        TIDE_OK);
    for (unsigned round = 1; round <= 20; round++) {
        assert_int_equal(tide_tokens_get(tokens, NULL, &bearer, NULL), TIDE_OK);
        tide_tokens_refused(tokens, tide_buf_text(&bearer));
        for (size_t i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){.tokens = tokens, .rounds = 1};
            assert_int_equal(
                tide_world_thread(real.world, "racer", racer_run, &racers[i], &threads[i], NULL),
                TIDE_OK);
        }
        for (size_t i = 0; i < RACERS; i++) {
            tide_world_join(real.world, threads[i]);
            assert_int_equal(racers[i].rc, TIDE_OK);
        }
        assert_int_equal(real.refreshes, round);
    }
    for (size_t i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.tokens = tokens, .rounds = scaled(64)};
        assert_int_equal(
            tide_world_thread(real.world, "racer", racer_run, &racers[i], &threads[i], NULL),
            TIDE_OK);
    }
    for (size_t i = 0; i < RACERS; i++) {
        tide_world_join(real.world, threads[i]);
        assert_int_equal(racers[i].rc, TIDE_OK);
    }
    tide_tokens_close(tokens);
    tide_secret_wipe(&bearer);
}

/* A secret that others can read must not make a mail bad (TIDE_INVALID would). */
static void a_sign_in_that_others_can_read_needs_its_owner(void **state)
{
    (void)state;
    tide_tokens *tokens = NULL;
    tide_error err = {0};
    char path[256];
    real_sign_in();
    (void)snprintf(path, sizeof path, "%s/gmail%%2F" EMAIL, real.dir);
    assert_int_equal(chmod(path, 0644), 0);
    expect(tide_tokens_open(real.world, real.secrets, SECRET, tide_mem_heap(), &tokens, &err),
           TIDE_AUTH, &err);
    assert_non_null(strstr(err.text, "chmod 600 "));
    assert_null(tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define REALLY(test) cmocka_unit_test_setup_teardown(test, real_set_up, real_tear_down)
        cmocka_unit_test(base64url_and_forms_are_what_the_standards_say),
        cmocka_unit_test(scopes_are_compared_as_whole_words),
        cmocka_unit_test(a_client_file_of_googles_is_read),
        cmocka_unit_test(a_client_file_of_ours_is_read),
        cmocka_unit_test(a_bad_client_file_is_refused_and_not_quoted),
        cmocka_unit_test(a_person_signs_in_by_pasting_and_the_token_works),
        cmocka_unit_test(the_link_carries_what_the_provider_needs),
        cmocka_unit_test(what_people_paste_is_understood_or_refused),
        cmocka_unit_test(a_person_may_say_no_or_untick_a_scope),
        cmocka_unit_test(a_failed_redemption_says_why_and_shows_nothing),
        cmocka_unit_test(without_a_network_the_code_can_be_redeemed_later),
        cmocka_unit_test(a_token_is_refreshed_a_minute_before_it_expires),
        cmocka_unit_test(a_clock_that_jumps_costs_a_refresh_at_most),
        cmocka_unit_test(a_refused_token_is_refreshed_once),
        cmocka_unit_test(a_dead_sign_in_is_reported_with_its_cure_and_not_retried),
        cmocka_unit_test(a_failed_refresh_passes_and_shows_nothing),
        cmocka_unit_test(tokens_with_a_short_life_are_used_for_half_of_it),
        cmocka_unit_test(a_new_refresh_token_is_kept_even_when_the_disk_was_full),
        cmocka_unit_test(what_could_not_be_kept_gives_way_to_a_new_sign_in),
        cmocka_unit_test(a_token_is_durable_before_it_is_used),
        cmocka_unit_test(a_damaged_or_missing_sign_in_asks_for_a_new_one),
        cmocka_unit_test(a_fixed_token_is_used_until_it_is_refused),
        cmocka_unit_test(a_revoked_sign_in_is_gone_here_and_there),
        cmocka_unit_test(a_service_account_acts_for_a_user),
        cmocka_unit_test(delegation_that_was_not_given_needs_an_administrator),
        cmocka_unit_test(a_bad_key_file_is_refused_and_not_quoted),
        cmocka_unit_test(signing_in_survives_every_failed_allocation),
        cmocka_unit_test(a_service_account_survives_every_failed_allocation),
        cmocka_unit_test(however_many_ask_there_is_one_refresh),
        cmocka_unit_test(a_canceled_refresh_is_taken_over),
        cmocka_unit_test(in_bad_weather_every_answer_is_one_that_was_promised),
        REALLY(the_browser_comes_back_to_the_listener),
        REALLY(only_the_right_state_is_listened_to),
        REALLY(real_threads_share_one_refresh),
        REALLY(a_sign_in_that_others_can_read_needs_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
