/* oauth_stage.h - what the tests of signing in share: the simulated world with the cloud
 * in a box as the provider, which can be made to misbehave, a person who follows links,
 * and a list of secrets that no error may ever show (OAU4). */
#ifndef TEST_UNIT_OAUTH_STAGE_H
#define TEST_UNIT_OAUTH_STAGE_H

#include "base/check.h"
#include "cloudbox/signin/auth.h"
#include "cloudbox/services.h"
#include "cloudbox/gate/user.h"
#include "net/oauth/google.h"
#include "net/oauth/inside.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/scale.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMAIL     "ada@example.com"
#define SECRET    "gmail/" EMAIL
#define READONLY  "https://www.googleapis.com/auth/gmail.readonly"
#define SEND      "https://www.googleapis.com/auth/gmail.send"
#define ORIGIN    "http://provider"
#define MINUTE_MS UINT64_C(60000)
#define HOUR_MS   UINT64_C(3600000)

/* ---- what must never be shown (OAU4) ---- */

enum { KEPT_MAX = 512, SHORTEST = 12 };
static char *kept[KEPT_MAX];
static size_t kept_count;

static inline void keep_secret(const char *text)
{
    for (size_t i = 0; i < kept_count; i++)
        if (strcmp(kept[i], text) == 0)
            return;
    if (strlen(text) < SHORTEST || kept_count == KEPT_MAX)
        return;
    kept[kept_count++] = strdup(text);
}

/* Neither a whole secret nor a long piece of one. */
static inline void check_shows_nothing(const tide_error *err)
{
    for (size_t i = 0; i < kept_count; i++) {
        const size_t bytes = strlen(kept[i]);
        for (size_t at = 0; at + SHORTEST <= bytes; at++)
            if (memmem(err->text, strlen(err->text), kept[i] + at, SHORTEST) != NULL)
                fail_msg("a secret is in an error: %s", err->text);
    }
}

static inline void expect(tide_status rc, tide_status expected, const tide_error *err)
{
    if (rc != expected)
        fail_msg("%s, not %s: %s", tide_status_name(rc), tide_status_name(expected), err->text);
    check_shows_nothing(err);
    if (rc != TIDE_OK) {
        assert_int_equal(err->status, rc);
        assert_true(err->text[0] != '\0');
    }
}

static inline void forget_secrets(void)
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

/* An answer of the provider's, and the status that has to come of it. */
struct bad_answer {
    manner manner;
    int http;
    const char *custom;
    tide_status expected;
};
static inline void provider_answers(struct provider *provider, const struct bad_answer *answer)
{
    provider->manner = answer->manner;
    provider->http = answer->http;
    provider->custom = answer->custom;
}

static inline void add_json(tide_buf *out, const char *name, tide_text text)
{
    TIDE_ASSERT(tide_buf_print(out, "\"%s\":", name) == TIDE_OK);
    TIDE_ASSERT(tide_json_escape(text, out) == TIDE_OK);
}

static inline void misbehave(struct provider *provider, const struct tide_request *request,
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

/* What is sent is as secret as what comes back. */
static inline void keep_form(tide_text form)
{
    static const char *const names[] = {"code",          "code_verifier", "assertion",
                                        "refresh_token", "client_secret", "token"};
    tide_buf value;
    tide_buf_init(&value, tide_mem_heap(), 16 << 10);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tide_form_get(form, names[i], &value) == TIDE_OK)
            keep_secret(tide_buf_cstr(&value));
    tide_buf_done(&value);
}

static inline void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                           tide_rng *rng, struct tide_sim_answer *answer)
{
    struct provider *provider = arg;
    const bool token = strstr(request->url, "/token") != NULL;
    provider->tokens += token;
    provider->revokes += strstr(request->url, "/revoke") != NULL;
    keep_form(request->body);
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

static inline void stage_start(struct stage *stage, uint64_t seed,
                               const struct tide_sim_options *given)
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
    tide_oauth_client_at(&tide_oauth_google, ORIGIN, &stage->client);
}

static inline void stage_end(struct stage *stage)
{
    tide_secrets_close(stage->secrets);
    tide_sim_free(stage->sim);
    tide_sim_cloud_free(stage->provider.cloud);
    forget_secrets();
}

static inline void control(struct stage *stage, const char *target, const char *body)
{
    int http = 0;
    json_decref(tide_sim_cloud_ask(stage->provider.cloud, "POST", target, tide_text_of(body),
                                   tide_sim_net_unix_ms(stage->sim), &http));
    assert_int_equal(http, 200);
}

static inline void let_pass(struct stage *stage, uint64_t wait_ms)
{
    const uint64_t until_us = tide_world_now_us(stage->world) + wait_ms * 1000;
    assert_int_equal(tide_world_sleep_until(stage->world, until_us, NULL), TIDE_OK);
}

/* The person: opens the link and reads where the browser ended. */
static inline void follow(tide_world *world, const char *link, const char *more,
                          char location_out[2048])
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
static inline void param(const char *url, const char *name, char value_out[2048])
{
    tide_buf value;
    tide_buf_init(&value, tide_mem_heap(), 2047);
    const char *query = strchr(url, '?');
    assert_non_null(query);
    assert_int_equal(tide_form_get(tide_text_of(query + 1), name, &value), TIDE_OK);
    (void)snprintf(value_out, 2048, "%s", tide_buf_cstr(&value));
    tide_buf_done(&value);
}

static inline tide_oauth_flow *flow_start(struct stage *stage, const char *scopes)
{
    const struct tide_oauth_ask ask = {.provider = &tide_oauth_google,
                                       .client = &stage->client,
                                       .scopes = scopes,
                                       .login_hint = EMAIL,
                                       .way = TIDE_OAUTH_PASTE};
    tide_oauth_flow *flow = NULL;
    expect(tide_oauth_flow_start(stage->world, &ask, tide_mem_heap(), &flow, &stage->err), TIDE_OK,
           &stage->err);
    return flow;
}

/* Remembers every secret of a grant. */
static inline void keep_grant(tide_text json)
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
static inline void sign_in(struct stage *stage)
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
    assert_true(tide_oauth_scopes_cover(&tide_oauth_google, tide_buf_text(&scopes), READONLY));
    keep_grant(tide_buf_text(&grant));
    assert_int_equal(tide_secrets_put(stage->secrets, SECRET, tide_buf_text(&grant), NULL),
                     TIDE_OK);
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_buf_done(&scopes);
}

static const struct tide_tokens_options tokens_options = {
    .provider = &tide_oauth_google,
    .secret = SECRET,
    .account = EMAIL,
    .sign_in = "tidemark account add gmail " EMAIL,
};

static inline tide_tokens *tokens_open(struct stage *stage)
{
    tide_tokens *tokens = NULL;
    expect(tide_tokens_open(stage->world, stage->secrets, &tokens_options, tide_mem_heap(), &tokens,
                            &stage->err),
           TIDE_OK, &stage->err);
    return tokens;
}

/* A stage on which somebody has signed in, and its tokens; and the end of both. */
static inline tide_tokens *stage_signed_in(struct stage *stage, uint64_t seed)
{
    stage_start(stage, seed, NULL);
    sign_in(stage);
    return tokens_open(stage);
}

static inline void stage_leave(struct stage *stage, tide_tokens *tokens)
{
    tide_tokens_close(tokens);
    stage_end(stage);
}

static inline tide_status get(struct stage *stage, tide_tokens *tokens, char token_out[512])
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
static inline int profile(struct stage *stage, const char *token)
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

/* A key file of the box's; its token_uri is Google's, which the simulated network
 * takes to the box like any other. */
static inline char *key_file(struct stage *stage)
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

#endif
