/* Signing in to Microsoft (net/oauth/microsoft.h): what is sent, what its refusals mean, and that a
 * replaced refresh token survives a crash at any step.  The identity platform is simulated. */
#include "net/oauth/microsoft.h"
#include "oauth_stage.h"
#include "support/ok.h"
#include "support/heap.h"

#define AUTHORITY "https://login.microsoftonline.com/common/oauth2/v2.0/"
#define CLIENT_ID "6731de76-14a6-49ae-97bc-6eba6914391e"

static const struct tide_tokens_options options = {
    .provider = &tide_oauth_microsoft,
    .secret = "onedrive/ada",
    .account = "ada",
    .sign_in = "tidemark account add onedrive ada",
};

/* ---- the simulated platform ---- */

/* A refresh token is accepted until a token that came with a newer one was used: the worst that
 * the platform allows itself. */
struct platform {
    unsigned issued, used;
    unsigned requests;
    unsigned pending; /* polls that are told to wait */
    int http;         /* 0: as it should be */
    const char *body;
    char url[512];
    char form[2048]; /* the last one */
};
static struct platform platform; /* of the stage */

static void give_tokens(struct tide_sim_answer *answer)
{
    const char *refresh = textf("0.ARoA-refresh-token-%u", ++platform.issued);
    keep_secret(refresh);
    answer->http = 200;
    (void)tide_buf_print(&answer->body,
                         "{\"token_type\":\"Bearer\",\"scope\":\"Files.ReadWrite profile openid\","
                         "\"expires_in\":3599,\"ext_expires_in\":3599,\"access_token\":"
                         "\"EwB-access-token-%u\",\"refresh_token\":\"%s\"}",
                         platform.issued, refresh);
}

static void refuse(struct tide_sim_answer *answer, const char *error, const char *description)
{
    answer->http = 400;
    (void)tide_buf_print(&answer->body,
                         "{\"error\":\"%s\",\"error_description\":\"%s Trace ID: "
                         "0000aaaa-11bb-cccc-dd22-eeeeee333333\",\"error_codes\":[70008]}",
                         error, description);
}

static void serve_token(struct tide_sim_answer *answer)
{
    unsigned generation = 0;
    const char *token = strstr(platform.form, "refresh_token=0.ARoA-refresh-token-");
    if (strstr(platform.form, "device_code=") != NULL && platform.pending > 0) {
        platform.pending--;
        refuse(answer, "authorization_pending", "AADSTS70016: Pending.");
    } else if (token == NULL) {
        give_tokens(answer);
    } else {
        assert_int_equal(sscanf(token, "refresh_token=0.ARoA-refresh-token-%u", &generation), 1);
        if (generation < platform.used) {
            refuse(answer, "invalid_grant", "AADSTS70000: The refresh token was replaced.");
        } else {
            platform.used = generation;
            give_tokens(answer);
        }
    }
}

static void serve(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                  tide_rng *rng, struct tide_sim_answer *answer)
{
    (void)arg;
    (void)now_unix_ms;
    (void)rng;
    platform.requests++;
    (void)snprintf(platform.url, sizeof platform.url, "%s", request->url);
    (void)snprintf(platform.form, sizeof platform.form, "%.*s", (int)request->body.bytes,
                   request->body.data);
    keep_form(request->body);
    if (platform.http != 0) {
        answer->http = platform.http;
        (void)tide_buf_add_text(&answer->body, platform.body);
    } else if (strstr(request->url, "/devicecode") != NULL) {
        answer->http = 200;
        (void)tide_buf_add_text(
            &answer->body, "{\"user_code\":\"FJBXYWZKL\",\"device_code\":\"DAQABAAEAAAD--code\","
                           "\"verification_uri\":\"https://microsoft.com/devicelogin\","
                           "\"expires_in\":900,\"interval\":5,\"message\":\"To sign in ...\"}");
    } else {
        serve_token(answer);
    }
}

/* ---- the stage ---- */

static struct stage *start(uint64_t seed)
{
    platform = (struct platform){.http = 0};
    const struct tide_sim_options sim = {.net = {.provide = serve}};
    struct stage *stage = stage_open(seed, sim);
    stage->client = (struct tide_oauth_client){.client_id = CLIENT_ID,
                                               .client_secret = "a secret that is not sent"};
    keep_secret("DAQABAAEAAAD--code");
    return stage;
}

static tide_oauth_flow *flow_of(struct stage *stage, tide_oauth_way way)
{
    tide_oauth_flow *flow = NULL;
    const struct tide_oauth_ask ask = {.provider = &tide_oauth_microsoft,
                                       .client = &stage->client,
                                       .scopes = TIDE_MICROSOFT_FILES,
                                       .login_hint = "ada@example.com",
                                       .way = way};
    EXPECT(tide_oauth_flow_start(stage->world, &ask, tide_mem_heap(), &flow, &stage->err), TIDE_OK);
    return flow;
}

static struct stage *signed_in(uint64_t seed)
{
    struct stage *stage = start(seed);
    tide_oauth_flow *flow = flow_of(stage, TIDE_OAUTH_DEVICE);
    EXPECT(tide_oauth_flow_wait(flow, TIDE_NEVER, NULL, &stage->err), TIDE_OK);
    EXPECT(finish(stage, flow), TIDE_OK);
    put_grant(stage, options.secret);
    tide_oauth_flow_free(flow);
    EXPECT(tokens_try(stage, &options), TIDE_OK);
    return stage;
}

#define STARTED(name, seed)          TEST_OF(name, struct stage *stage, start(seed), stage_end)
#define MICROSOFT_SIGNED(name, seed) TEST_OF(name, struct stage *stage, signed_in(seed), stage_end)

/* ---- signing in ---- */

STARTED(a_link_asks_for_a_code_with_pkce_and_offline_access, 1)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"client_id", CLIENT_ID},
        {"response_type", "code"},
        {"scope", "Files.ReadWrite offline_access"},
        {"code_challenge_method", "S256"},
        {"prompt", "select_account"},
        {"login_hint", "ada@example.com"},
        {"redirect_uri", "http://localhost:65535"},
    };
    char value[2048];
    tide_oauth_flow *flow = flow_of(stage, TIDE_OAUTH_PASTE);
    const char *link = tide_oauth_flow_link(flow);
    assert_memory_equal(link, AUTHORITY "authorize?", sizeof AUTHORITY "authorize?" - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        param(link, rows[i].name, value);
        assert_string_equal(value, rows[i].value);
    }
    char address[2200];
    param(link, "state", value);
    (void)snprintf(address, sizeof address,
                   "http://localhost:65535/?code=M.C105_x&state=%s&session_state=1", value);
    EXPECT(paste(stage, flow, address), TIDE_OK);
    EXPECT(finish(stage, flow), TIDE_OK);
    assert_string_equal(platform.url, AUTHORITY "token");
    assert_non_null(strstr(platform.form, "grant_type=authorization_code&client_id=" CLIENT_ID));
    assert_non_null(strstr(platform.form, "&code=M.C105_x&redirect_uri=http%3A%2F%2Flocalhost%3A"
                                          "65535&code_verifier="));
    assert_null(strstr(platform.form, "client_secret"));
    assert_non_null(strstr(tide_buf_cstr(&stage->grant), "\"provider\":\"microsoft\""));
    assert_null(strstr(tide_buf_cstr(&stage->grant), "not sent"));
    tide_oauth_flow_free(flow);
}

STARTED(a_machine_without_a_browser_gets_a_device_code, 2)
{
    char token[512];
    assert_int_equal(tide_oauth_headless(&tide_oauth_microsoft), TIDE_OAUTH_DEVICE);
    tide_oauth_flow *flow = flow_of(stage, TIDE_OAUTH_DEVICE);
    assert_string_equal(platform.url, AUTHORITY "devicecode");
    assert_string_equal(platform.form,
                        "client_id=" CLIENT_ID "&scope=Files.ReadWrite%20offline_access");
    assert_string_equal(tide_oauth_flow_user_code(flow), "FJBXYWZKL");
    assert_string_equal(tide_oauth_flow_link(flow), "https://microsoft.com/devicelogin");
    platform.pending = 3;
    EXPECT(tide_oauth_flow_wait(flow, TIDE_NEVER, NULL, &stage->err), TIDE_OK);
    assert_int_equal(platform.requests, 5);
    EXPECT(finish(stage, flow), TIDE_OK);
    tide_oauth_flow_free(flow);
    put_grant(stage, options.secret);
    EXPECT(tokens_try(stage, &options), TIDE_OK);
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_equal(token, "EwB-access-token-1");
    assert_true(tide_tokens_cover(stage->tokens, TIDE_MICROSOFT_FILES));
    assert_false(tide_tokens_cover(stage->tokens, TIDE_MICROSOFT_FILES_ALL));
}

TEST(scopes_are_compared_as_microsoft_names_them)
{
    static const struct {
        const char *given, *asked;
        bool covers;
    } rows[] = {
        {"Files.ReadWrite", "Files.ReadWrite", true},
        {"files.readwrite profile", "Files.ReadWrite", true},
        {"https://graph.microsoft.com/Files.ReadWrite", "Files.ReadWrite", true},
        {"https://graph.microsoft.com/Files.ReadWrite.All", "Files.ReadWrite", true},
        {"Files.ReadWrite.All", "Files.Read Files.ReadWrite", true},
        {"Files.ReadWrite", "Files.ReadWrite.All", false},
        {"Files.Read", "Files.ReadWrite", false},
        {"Files.Read.All", "Files.ReadWrite", false},
        {"https://graph.microsoft.com/", "Files.Read", false},
        {"", "Files.Read", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (tide_oauth_scopes_cover(&tide_oauth_microsoft, tide_text_of(rows[i].given),
                                    rows[i].asked) != rows[i].covers)
            fail_msg("%s, %s", rows[i].given, rows[i].asked);
}

TEST(an_application_of_one_organization_names_its_tenant)
{
    struct tide_oauth_client client;
    tide_error err = {0};
    EXPECT_OF(tide_oauth_client_read(
                  &tide_oauth_microsoft,
                  TIDE_TEXT("{\"client_id\":\"c\",\"tenant\":\"contoso.onmicrosoft.com\"}"),
                  &client, &err),
              TIDE_OK, &err);
#define CONTOSO "https://login.microsoftonline.com/contoso.onmicrosoft.com/oauth2/v2.0/"
    assert_string_equal(client.auth_url, CONTOSO "authorize");
    assert_string_equal(client.token_url, CONTOSO "token");
    assert_string_equal(client.device_url, CONTOSO "devicecode");
    assert_string_equal(client.revoke_url, "");
    /* An address in the file counts more. */
    EXPECT_OF(tide_oauth_client_read(&tide_oauth_microsoft,
                                     TIDE_TEXT("{\"client_id\":\"c\",\"tenant\":\"t\","
                                               "\"token_url\":\"https://login.example/token\"}"),
                                     &client, &err),
              TIDE_OK, &err);
    assert_string_equal(client.token_url, "https://login.example/token");
    EXPECT_OF(tide_oauth_client_read(&tide_oauth_microsoft, TIDE_TEXT("{\"client_id\":\"c\"}"),
                                     &client, &err),
              TIDE_OK, &err);
    assert_string_equal(client.token_url, ""); /* the provider's */
    static const char *const bad[] = {"\"\"",         "7",          "\"a/b\"", "\"a b\"",
                                      "\"..\"",       "\"a?b\"",    "\"a@b\"", "\"%2e\"",
                                      "\"a\\u0000\"", "\"\\u00e9\""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char file[128];
        (void)snprintf(file, sizeof file, "{\"client_id\":\"c\",\"tenant\":%s}", bad[i]);
        EXPECT_OF(tide_oauth_client_read(&tide_oauth_microsoft, tide_text_of(file), &client, &err),
                  TIDE_INVALID, &err);
    }
    /* Google's addresses have none. */
    EXPECT_OF(tide_oauth_client_read(&tide_oauth_google,
                                     TIDE_TEXT("{\"client_id\":\"c\",\"tenant\":\"a/b\"}"), &client,
                                     &err),
              TIDE_OK, &err);
    assert_string_equal(client.token_url, "");
    tide_oauth_client_at(&tide_oauth_microsoft, "http://127.0.0.1:99/", &client);
    assert_string_equal(client.token_url, "http://127.0.0.1:99/common/oauth2/v2.0/token");
}

/* ---- staying signed in ---- */

TEST(refusals_of_a_refresh_mean_what_microsoft_says)
{
    static const struct {
        int http;
        const char *body;
        tide_status expected;
    } rows[] = {
        {400,
         "{\"error\":\"invalid_grant\",\"error_description\":\"AADSTS700082: The refresh token has "
         "expired due to inactivity.\"}",
         TIDE_AUTH},
        {400,
         "{\"error\":\"invalid_grant\",\"error_description\":\"AADSTS50173: The provided grant has "
         "expired due to it being revoked.\"}",
         TIDE_AUTH},
        {400,
         "{\"error\":\"interaction_required\",\"error_description\":\"AADSTS50076: you must use "
         "multi-factor authentication\"}",
         TIDE_AUTH},
        {400, "{\"error\":\"consent_required\"}", TIDE_AUTH},
        {401, "{\"error\":\"invalid_client\",\"error_description\":\"AADSTS7000218\"}", TIDE_AUTH},
        {400, "{\"error\":\"temporarily_unavailable\"}", TIDE_SERVER},
        {400, "{\"error\":\"server_error\"}", TIDE_SERVER},
        {429, "{}", TIDE_THROTTLED},
        {500, "{\"error\":\"invalid_grant\"}", TIDE_SERVER},
        {503, "busy", TIDE_SERVER},
        {404, "<html>portal</html>", TIDE_SERVER},
        {200, "{\"token_type\":\"Bearer\"}", TIDE_SERVER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char token[512];
        struct stage *stage = signed_in(10 + i);
        let_pass(stage, HOUR_MS);
        platform.http = rows[i].http;
        platform.body = rows[i].body;
        EXPECT(get(stage, token), rows[i].expected);
        const bool by_user = rows[i].expected == TIDE_AUTH;
        assert_int_equal(strstr(stage->err.text, "`tidemark account add onedrive ada`") != NULL,
                         by_user);
        /* What the user has to fix is not retried (OAU3); everything else is. */
        platform.http = 0;
        EXPECT(get(stage, token), by_user ? TIDE_AUTH : TIDE_OK);
        stage_end(stage);
    }
}

MICROSOFT_SIGNED(every_refresh_replaces_the_refresh_token, 30)
{
    char token[512];
    tide_buf secret = heap_buf(TIDE_SECRET_BYTES_MAX);
    for (unsigned i = 2; i < 6; i++) {
        let_pass(stage, HOUR_MS);
        EXPECT(get(stage, token), TIDE_OK);
        assert_string_equal(token, textf("EwB-access-token-%u", i));
        assert_non_null(
            strstr(platform.form, textf("refresh_token=0.ARoA-refresh-token-%u&client_id=" CLIENT_ID
                                        "&scope=Files.ReadWrite%%20profile%%20"
                                        "openid%%20offline_access",
                                        i - 1)));
        tide_buf_clear(&secret);
        OK(tide_secrets_get(stage->secrets, options.secret, &secret, NULL));
        assert_non_null(strstr(tide_buf_cstr(&secret), textf("0.ARoA-refresh-token-%u\"", i)));
        assert_null(strstr(tide_buf_cstr(&secret), textf("0.ARoA-refresh-token-%u\"", i - 1)));
    }
    tide_secret_wipe(&secret);
}

/* OAU1: power is lost at each step of a refresh: before the request, between the answer and its
 * storing, within the storing, after it.  The next start must be able to refresh again, and a token
 * that was given out must have its refresh token on the disk. */
TEST(a_crash_between_the_rotation_and_its_storing_loses_no_sign_in)
{
    unsigned given = 0;
    unsigned between = 0; /* the platform rotated, the disk has the old one */
    for (uint64_t steps = 1; steps < 60; steps++) {
        char token[512];
        struct stage *stage = signed_in(100 + steps);
        let_pass(stage, HOUR_MS);
        tide_sim_crash_after(stage->sim, steps, TIDE_SIM_CRASH_POWER);
        const tide_status rc = get(stage, token);
        if (rc == TIDE_OK) {
            platform.used = platform.issued; /* its caller used it at once */
            given++;
        }
        tide_sim_crash(stage->sim, TIDE_SIM_CRASH_POWER);
        tokens_close(stage);
        tide_sim_reboot(stage->sim);
        tide_buf secret = heap_buf(TIDE_SECRET_BYTES_MAX);
        OK(tide_secrets_get(stage->secrets, options.secret, &secret, NULL));
        const bool newest = strstr(tide_buf_cstr(&secret),
                                   textf("0.ARoA-refresh-token-%u\"", platform.issued)) != NULL;
        tide_secret_wipe(&secret);
        if (rc == TIDE_OK)
            assert_true(newest);
        between += platform.issued == 2 && !newest;
        EXPECT(tokens_try(stage, &options), TIDE_OK);
        let_pass(stage, HOUR_MS);
        EXPECT(get(stage, token), TIDE_OK);
        stage_end(stage);
    }
    assert_true(given > 0);
    assert_true(between > 0);
}

MICROSOFT_SIGNED(removing_a_sign_in_only_forgets_it_here, 40)
{
    bool revoked = true;
    const unsigned before = platform.requests;
    EXPECT(tokens_revoke(stage, &revoked), TIDE_OK);
    assert_false(revoked);
    assert_int_equal(platform.requests, before);
    tide_buf secret = heap_buf(TIDE_SECRET_BYTES_MAX);
    assert_int_equal(tide_secrets_get(stage->secrets, options.secret, &secret, NULL),
                     TIDE_NOT_FOUND);
    tide_buf_done(&secret);
}
