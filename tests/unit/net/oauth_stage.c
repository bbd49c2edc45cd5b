#include "oauth_stage.h"

/* ---- what must never be shown (OAU4) ---- */

enum { KEPT_MAX = 512, SHORTEST = 12 };
static char *kept[KEPT_MAX];
static size_t kept_count;

void keep_secret(const char *text)
{
    for (size_t i = 0; i < kept_count; i++)
        if (strcmp(kept[i], text) == 0)
            return;
    if (strlen(text) < SHORTEST || kept_count == KEPT_MAX)
        return;
    kept[kept_count++] = strdup(text);
}

void check_shows_nothing(const tide_error *err)
{
    for (size_t i = 0; i < kept_count; i++) {
        const size_t bytes = strlen(kept[i]);
        for (size_t at = 0; at + SHORTEST <= bytes; at++)
            if (memmem(err->text, strlen(err->text), kept[i] + at, SHORTEST) != NULL)
                fail_msg("a secret is in an error: %s", err->text);
    }
}

void expect(tide_status rc, tide_status expected, const tide_error *err, const char *file, int line)
{
    check_shows_nothing(err);
    if (rc == expected && (rc == TIDE_OK || (err->status == rc && err->text[0] != '\0')))
        return;
    print_error("%s, not %s: %s\n", tide_status_name(rc), tide_status_name(expected), err->text);
    _fail(file, line);
}

void forget_secrets(void)
{
    while (kept_count > 0)
        free(kept[--kept_count]);
}

/* ---- a provider that can be made to misbehave ---- */

void provider_answers(struct provider *provider, const struct bad_answer *answer)
{
    provider->manner = answer->manner;
    provider->http = answer->http;
    provider->custom = answer->custom;
}

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

void keep_form(tide_text form)
{
    static const char *const names[] = {"code",          "code_verifier", "assertion",
                                        "refresh_token", "client_secret", "token"};
    tide_buf value = heap_buf(16 << 10);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tide_form_get(form, names[i], &value) == TIDE_OK)
            keep_secret(tide_buf_cstr(&value));
    tide_buf_done(&value);
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct provider *provider = arg;
    const bool token = strstr(request->url, "/token") != NULL;
    provider->tokens += token;
    provider->revokes += strstr(request->url, "/revoke") != NULL;
    keep_form(request->body);
    if (memmem(request->body.data, request->body.bytes, "grant_type=refresh_token", 24) != NULL) {
        provider->refreshes++;
        tide_buf value = heap_buf(sizeof provider->last_refresh - 1);
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

struct stage *stage_open(uint64_t seed, struct tide_sim_options options)
{
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    if (options.net.provide_arg == NULL)
        options.net.provide_arg = &stage->provider;
    stage->sim = tide_sim_new(seed, &options);
    stage->world = tide_sim_world(stage->sim);
    stage->grant = heap_buf(TIDE_SECRET_BYTES_MAX);
    stage->scopes = heap_buf(4096);
    OK(tide_secrets_open(stage->world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(),
                         &stage->secrets, NULL));
    return stage;
}

struct stage *stage_start(uint64_t seed, struct tide_sim_options options)
{
    options.net.provide = provide;
    struct stage *stage = stage_open(seed, options);
    const struct box_options box = {.seed = seed, .auto_consent = true};
    stage->provider =
        (struct provider){.cloud = tide_sim_cloud_new(&box), .manner = MANNER_GOOD, .http = 400};
    const struct box_mailbox_options mailbox = {.messages = 3,
                                                .now_unix_ms = tide_sim_net_unix_ms(stage->sim)};
    OK(box_cloud_add_mailbox(tide_sim_cloud_box(stage->provider.cloud), TIDE_TEXT(EMAIL), &mailbox,
                             NULL));
    tide_oauth_client_at(&tide_oauth_google, ORIGIN, &stage->client);
    return stage;
}

void tokens_close(struct stage *stage)
{
    tide_tokens_close(stage->tokens);
    stage->tokens = NULL;
}

void stage_end(struct stage *stage)
{
    tokens_close(stage);
    tide_secret_wipe(&stage->grant);
    tide_buf_done(&stage->scopes);
    tide_secrets_close(stage->secrets);
    tide_sim_free(stage->sim);
    tide_sim_cloud_free(stage->provider.cloud);
    forget_secrets();
    free(stage);
}

void control(struct stage *stage, const char *target, const char *body)
{
    int http = 0;
    json_decref(tide_sim_cloud_ask(stage->provider.cloud, "POST", target, tide_text_of(body),
                                   tide_sim_net_unix_ms(stage->sim), &http));
    assert_int_equal(http, 200);
}

void let_pass(struct stage *stage, uint64_t wait_ms)
{
    const uint64_t until_us = tide_world_now_us(stage->world) + wait_ms * 1000;
    OK(tide_world_sleep_until(stage->world, until_us, NULL));
}

void follow(tide_world *world, const char *link, const char *more, char location_out[2048])
{
    char url[4096];
    assert_in_range(snprintf(url, sizeof url, "%s%s", link, more), 1, sizeof url - 1);
    const struct tide_request request = {.method = "GET", .url = url};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    OK(tide_world_call(world, &request, &response, NULL, NULL));
    assert_int_equal(response.http, 302);
    const tide_text location = tide_response_header(&response, "Location");
    assert_in_range(location.bytes, 1, 2047);
    (void)snprintf(location_out, 2048, "%.*s", (int)location.bytes, location.data);
    tide_response_done(&response);
}

void param(const char *url, const char *name, char value_out[2048])
{
    tide_buf value = heap_buf(2047);
    const char *query = strchr(url, '?');
    assert_non_null(query);
    OK(tide_form_get(tide_text_of(query + 1), name, &value));
    (void)snprintf(value_out, 2048, "%s", tide_buf_cstr(&value));
    tide_buf_done(&value);
}

tide_oauth_flow *flow_start(struct stage *stage, const char *scopes)
{
    const struct tide_oauth_ask ask = {.provider = &tide_oauth_google,
                                       .client = &stage->client,
                                       .scopes = scopes,
                                       .login_hint = EMAIL,
                                       .way = TIDE_OAUTH_PASTE};
    tide_oauth_flow *flow = NULL;
    EXPECT(tide_oauth_flow_start(stage->world, &ask, tide_mem_heap(), &flow, &stage->err), TIDE_OK);
    return flow;
}

void keep_grant(tide_text json)
{
    struct tide_mem_wiping wiping;
    struct tide_grant grant;
    tide_mem_wiping_init(&wiping, tide_mem_heap());
    tide_grant_init(&grant, &wiping.base);
    OK(tide_grant_read(json, &grant, NULL));
    keep_secret(tide_buf_cstr(&grant.access_token));
    keep_secret(tide_buf_cstr(&grant.refresh_token));
    keep_secret(tide_buf_cstr(&grant.private_key));
    tide_grant_done(&grant);
}

tide_status paste(struct stage *stage, tide_oauth_flow *flow, const char *text)
{
    return tide_oauth_flow_paste(flow, tide_text_of(text), &stage->err);
}

tide_status finish(struct stage *stage, tide_oauth_flow *flow)
{
    return tide_oauth_flow_finish(flow, NULL, &stage->grant, &stage->scopes, &stage->err);
}

void put_grant(struct stage *stage, const char *secret)
{
    OK(tide_secrets_put(stage->secrets, secret, tide_buf_text(&stage->grant), NULL));
}

void sign_in(struct stage *stage)
{
    char location[2048];
    tide_oauth_flow *flow = flow_start(stage, READONLY);
    follow(stage->world, tide_oauth_flow_link(flow), "", location);
    EXPECT(paste(stage, flow, location), TIDE_OK);
    tide_buf_clear(&stage->grant);
    tide_buf_clear(&stage->scopes);
    EXPECT(finish(stage, flow), TIDE_OK);
    assert_true(
        tide_oauth_scopes_cover(&tide_oauth_google, tide_buf_text(&stage->scopes), READONLY));
    keep_grant(tide_buf_text(&stage->grant));
    put_grant(stage, SECRET);
    tide_oauth_flow_free(flow);
}

const struct tide_tokens_options tokens_options = {
    .provider = &tide_oauth_google,
    .secret = SECRET,
    .account = EMAIL,
    .sign_in = "tidemark account add gmail " EMAIL,
};

tide_status tokens_try(struct stage *stage, const struct tide_tokens_options *options)
{
    tokens_close(stage);
    return tide_tokens_open(stage->world, stage->secrets, options, tide_mem_heap(), &stage->tokens,
                            &stage->err);
}

void tokens_open(struct stage *stage)
{
    EXPECT(tokens_try(stage, &tokens_options), TIDE_OK);
}

struct stage *stage_signed_in(uint64_t seed)
{
    struct stage *stage = stage_start(seed, (struct tide_sim_options){0});
    sign_in(stage);
    tokens_open(stage);
    return stage;
}

tide_status get(struct stage *stage, char token_out[512])
{
    tide_buf bearer = heap_buf(511);
    stage->err = (tide_error){0};
    const tide_status rc = tide_tokens_get(stage->tokens, NULL, &bearer, &stage->err);
    (void)snprintf(token_out, 512, "%s", tide_buf_cstr(&bearer));
    if (rc == TIDE_OK)
        keep_secret(token_out);
    else
        assert_int_equal(bearer.bytes, 0);
    tide_secret_wipe(&bearer);
    return rc;
}

tide_status tokens_revoke(struct stage *stage, bool *revoked_out)
{
    return tide_tokens_revoke(stage->tokens, revoked_out, &stage->err);
}

int profile(struct stage *stage, const char *token)
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
    OK(tide_world_call(stage->world, &request, &response, NULL, NULL));
    const int http = response.http;
    tide_response_done(&response);
    return http;
}

char *key_file(struct stage *stage)
{
    json_t *file = NULL;
    struct box_auth *auth = box_cloud_auth(tide_sim_cloud_box(stage->provider.cloud));
    OK(box_auth_make_service_account(auth, TIDE_TEXT("robot@project.example.com"), &file));
    char *text = json_dumps(file, 0);
    json_decref(file);
    assert_non_null(text);
    return text;
}
