/* Signing in, against the cloud in a box: client files, links, answers, key files. */
#include "oauth_real.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#define MAIL   "https://mail.google.com/"
#define MODIFY "https://www.googleapis.com/auth/gmail.modify"

/* ---- texts ---- */

TEST(forms_are_what_the_standards_say)
{
    tide_buf out = heap_buf(100);
    OK(tide_form_add(&out, "a", TIDE_TEXT("x y&=+%/\xc3\xa9~")));
    OK(tide_form_add(&out, "b", TIDE_TEXT("")));
    assert_string_equal(tide_buf_cstr(&out), "a=x%20y%26%3D%2B%25%2F%C3%A9~&b=");
    tide_buf value = heap_buf(100);
    OK(tide_form_get(tide_buf_text(&out), "a", &value));
    assert_string_equal(tide_buf_cstr(&value), "x y&=+%/\xc3\xa9~");
    OK(tide_form_get(tide_buf_text(&out), "b", &value));
    assert_string_equal(tide_buf_cstr(&value), "");
    assert_int_equal(tide_form_get(tide_buf_text(&out), "c", &value), TIDE_NOT_FOUND);
    assert_int_equal(tide_form_get(TIDE_TEXT("xa=1&a"), "a", &value), TIDE_NOT_FOUND);
    assert_int_equal(tide_form_get(TIDE_TEXT("a=1&a=1"), "a", &value), TIDE_INVALID);
    assert_int_equal(tide_form_get(TIDE_TEXT("a=%4"), "a", &value), TIDE_INVALID);
    assert_int_equal(tide_form_get(TIDE_TEXT("a=%4g"), "a", &value), TIDE_INVALID);
    OK(tide_form_get(TIDE_TEXT("a=b+c"), "a", &value));
    assert_string_equal(tide_buf_cstr(&value), "b c");
    tide_buf_done(&value);
    tide_buf_done(&out);
}

TEST(scopes_are_compared_as_whole_words)
{
    assert_true(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("a b c"), "a"));
    assert_true(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("a b c"), "c a"));
    assert_true(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("a b c"), ""));
    assert_true(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("a b c"), " b  a "));
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("a b c"), "a d"));
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("mail.readonly"), "mail"));
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("mail"), "mail.readonly"));
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT(""), "a"));
    /* A wider scope of Google's covers the narrower ones, never the other way round. */
    assert_true(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT("a " MAIL), READONLY " a"));
    assert_true(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT(MODIFY), READONLY));
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT(MODIFY), MAIL));
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT(READONLY), MODIFY));
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, TIDE_TEXT(MAIL), "a"));
}

/* ---- client files ---- */

#define GOOGLES(kind)                                                                              \
    "{\"" kind "\":{\"client_id\":\"12-x.apps.googleusercontent.com\",\"project_id\":\"p\","       \
    "\"auth_uri\":\"https://accounts.google.com/o/oauth2/auth\",\"token_uri\":"                    \
    "\"https://oauth2.googleapis.com/token\",\"auth_provider_x509_cert_url\":\"https://x\","       \
    "\"client_secret\":\"GOCSPX-abc\",\"redirect_uris\":[\"http://localhost\"]}}"

TEST(a_client_file_of_googles_is_read)
{
    tide_error err = {0};
    struct tide_oauth_client client;
    EXPECT_OF(
        tide_oauth_client_read(&tide_oauth_google, TIDE_TEXT(GOOGLES("installed")), &client, &err),
        TIDE_OK, &err);
    assert_string_equal(client.client_id, "12-x.apps.googleusercontent.com");
    assert_string_equal(client.client_secret, "GOCSPX-abc");
    assert_string_equal(client.auth_url, "https://accounts.google.com/o/oauth2/auth");
    assert_string_equal(client.token_url, "https://oauth2.googleapis.com/token");
    assert_string_equal(client.revoke_url, ""); /* Google's */
    /* Google would not send the user back to a port of this machine. */
    assert_int_equal(
        tide_oauth_client_read(&tide_oauth_google, TIDE_TEXT(GOOGLES("web")), &client, &err),
        TIDE_INVALID);
    assert_non_null(strstr(err.text, "Desktop app"));
}

TEST(a_client_file_of_ours_is_read)
{
    struct tide_oauth_client client;
    tide_error err = {0};
    EXPECT_OF(tide_oauth_client_read(&tide_oauth_google, TIDE_TEXT("{\"client_id\":\"c\"}"),
                                     &client, &err),
              TIDE_OK, &err);
    assert_string_equal(client.client_id, "c");
    assert_string_equal(client.token_url, "");
    EXPECT_OF(
        tide_oauth_client_read(&tide_oauth_google,
                               TIDE_TEXT("{\"client_id\":\"c\",\"token_url\":\"http://127.0.0.1"
                                         ":99/x/token?y\"}"),
                               &client, &err),
        TIDE_OK, &err);
    assert_string_equal(client.revoke_url, "http://127.0.0.1:99/revoke");
    tide_oauth_client_at(&tide_oauth_google, "http://127.0.0.1:1234//", &client);
    assert_string_equal(client.auth_url, "http://127.0.0.1:1234/o/oauth2/v2/auth");
    assert_string_equal(client.token_url, "http://127.0.0.1:1234/token");
    assert_string_equal(client.revoke_url, "http://127.0.0.1:1234/revoke");
}

TEST(a_bad_client_file_is_refused_and_not_quoted)
{
    static const char *const bad[][2] = {
        {"", "not JSON"},
        {"{", "not JSON"},
        {"QUOTED-SECRET-VALUE", "not JSON"},
        {"{\"client_id\": QUOTED-SECRET-VALUE}", "not JSON"},
        {"[]", "no client object"},
        {"{}", "client_id"},
        {"{\"installed\":7}", "no client object"},
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
        const tide_status rc =
            tide_oauth_client_read(&tide_oauth_google, tide_text_of(bad[i][0]), &client, &err);
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
    assert_int_equal(tide_oauth_client_read(&tide_oauth_google, tide_text_of(file), &client, &err),
                     TIDE_INVALID);
    assert_non_null(strstr(err.text, "too long"));
}

/* ---- signing in ---- */

SIGNED_IN(a_person_signs_in_by_pasting_and_the_token_works, 1)
{
    char token[512];
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(profile(stage, token), 200);
    assert_int_equal(stage->provider.refreshes, 0); /* the first token came with the grant */
}

STAGED(the_link_carries_what_the_provider_needs, 2)
{
    char value[2048];
    char other[2048];
    tide_oauth_flow *flow = flow_start(stage, READONLY " " SEND);
    tide_oauth_flow *second = flow_start(stage, READONLY);
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
    (void)snprintf(stage->client.auth_url, sizeof stage->client.auth_url, "https://a/b?c=d");
    flow = flow_start(stage, READONLY);
    assert_memory_equal(tide_oauth_flow_link(flow), "https://a/b?c=d&client_id=", 26);
    tide_oauth_flow_free(flow);
    const struct tide_oauth_client no_client = {.client_id = ""};
    const struct tide_oauth_ask asks[] = {
        {.provider = &tide_oauth_google, .client = &no_client, .scopes = READONLY},
        {.provider = &tide_oauth_google, .client = &stage->client, .scopes = ""}};
    for (size_t i = 0; i < 2; i++)
        EXPECT(tide_oauth_flow_start(stage->world, &asks[i], tide_mem_heap(), &flow, &stage->err),
               TIDE_INVALID);
    /* Zero means Google's. */
    const struct tide_oauth_client google = {.client_id = "c"};
    const struct tide_oauth_ask ask = {.provider = &tide_oauth_google,
                                       .client = &google,
                                       .scopes = READONLY,
                                       .way = TIDE_OAUTH_PASTE};
    EXPECT(tide_oauth_flow_start(stage->world, &ask, tide_mem_heap(), &flow, &stage->err), TIDE_OK);
    assert_memory_equal(tide_oauth_flow_link(flow), "https://accounts.google.com/o/oauth2/v2/auth?",
                        45);
    tide_oauth_flow_free(flow);
}

STAGED(what_people_paste_is_understood_or_refused, 3)
{
    char location[2048];
    char other[2048];
    char pasted[4096];
    tide_oauth_flow *flow = flow_start(stage, READONLY);
    tide_oauth_flow *second = flow_start(stage, READONLY);
    follow(stage->world, tide_oauth_flow_link(flow), "", location);
    follow(stage->world, tide_oauth_flow_link(second), "", other);
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
                               "yes",
                               "a%zz",
                               "line\x01",
                               tide_oauth_flow_link(flow),
                               other}; /* of the other sign-in */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT(paste(stage, flow, bad[i]), TIDE_INVALID);
    (void)snprintf(pasted, sizeof pasted, "%s&state=again", location);
    EXPECT(paste(stage, flow, pasted), TIDE_INVALID);

    (void)snprintf(pasted, sizeof pasted, "  <%s#>\r\n", location);
    EXPECT(paste(stage, flow, pasted), TIDE_OK);
    /* The code alone, as it stands in the address. */
    const char *at = strstr(other, "code=");
    assert_non_null(at);
    (void)snprintf(pasted, sizeof pasted, "%.*s\n", (int)strcspn(at + 5, "&"), at + 5);
    EXPECT(paste(stage, second, pasted), TIDE_OK);

    EXPECT(finish(stage, flow), TIDE_OK);
    EXPECT(finish(stage, second), TIDE_OK);
    /* A code is good once. */
    EXPECT(finish(stage, flow), TIDE_INVALID);
    tide_oauth_flow_free(flow);
    tide_oauth_flow_free(second);
}

STAGED(a_person_may_say_no_or_untick_a_scope, 4)
{
    char location[2048];
    tide_oauth_flow *flow = flow_start(stage, READONLY " " SEND);
    follow(stage->world, tide_oauth_flow_link(flow), "&box_deny=true", location);
    EXPECT(paste(stage, flow, location), TIDE_AUTH);
    EXPECT(finish(stage, flow), TIDE_INVALID);
    /* A second thought. */
    follow(stage->world, tide_oauth_flow_link(flow),
           "&box_untick=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgmail.send", location);
    EXPECT(paste(stage, flow, location), TIDE_OK);
    EXPECT(finish(stage, flow), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&stage->scopes), READONLY);
    assert_false(tide_oauth_scopes_cover(&tide_oauth_google, tide_buf_text(&stage->scopes),
                                         READONLY " " SEND));
    tide_oauth_flow_free(flow);
}

/* Every way in which redeeming a code can fail: the status, and not a letter of the
 * code, the verifier or the client's secret in the text. */
TEST(a_failed_redemption_says_why_and_shows_nothing)
{
    static const struct bad_answer rows[] = {
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
        char location[2048];
        char code[2048];
        struct stage *stage = stage_start(100 + i, (struct tide_sim_options){0});
        (void)snprintf(stage->client.client_secret, sizeof stage->client.client_secret,
                       "GOCSPX-not-so-secret");
        keep_secret(stage->client.client_secret);
        tide_oauth_flow *flow = flow_start(stage, READONLY);
        follow(stage->world, tide_oauth_flow_link(flow), "", location);
        param(location, "code", code);
        keep_secret(code);
        EXPECT(paste(stage, flow, location), TIDE_OK);
        provider_answers(&stage->provider, &rows[i]);
        stage->provider.life_s = 3600;
        EXPECT(finish(stage, flow), rows[i].expected);
        assert_int_equal(stage->grant.bytes, 0);
        assert_int_equal(stage->scopes.bytes, 0);
        tide_oauth_flow_free(flow);
        stage_end(stage);
    }
}

STAGED(without_a_network_the_code_can_be_redeemed_later, 5)
{
    char location[2048];
    tide_oauth_flow *flow = flow_start(stage, READONLY);
    follow(stage->world, tide_oauth_flow_link(flow), "", location);
    EXPECT(paste(stage, flow, location), TIDE_OK);
    tide_sim_net_down(stage->sim, true);
    EXPECT(finish(stage, flow), TIDE_NETWORK);
    tide_sim_net_down(stage->sim, false);
    EXPECT(finish(stage, flow), TIDE_OK);
    tide_oauth_flow_free(flow);
}

/* ---- service accounts ---- */

STAGED(a_service_account_acts_for_a_user, 17)
{
    char token[512];
    char *file = key_file(stage);
    EXPECT(
        tide_oauth_service_account(tide_text_of(file), EMAIL, READONLY, &stage->grant, &stage->err),
        TIDE_OK);
    keep_grant(tide_buf_text(&stage->grant));
    put_grant(stage, SECRET);
    tokens_open(stage);
    for (unsigned i = 1; i <= 5; i++) {
        EXPECT(get(stage, token), TIDE_OK);
        assert_int_equal(profile(stage, token), 200);
        assert_int_equal(stage->provider.tokens, i);
        let_pass(stage, HOUR_MS);
    }
    /* A clock that is a little off is accepted, one that is far off is corrected by the
     * server's, for one question more. */
    static const int64_t jumps_min[] = {4, -8, 50, -500, 100000};
    static const unsigned questions[] = {1, 1, 2, 2, 2};
    for (size_t i = 0; i < sizeof jumps_min / sizeof jumps_min[0]; i++) {
        const unsigned before = stage->provider.tokens;
        let_pass(stage, HOUR_MS);
        tide_sim_wall_jump(stage->sim, jumps_min[i] * (int64_t)MINUTE_MS);
        EXPECT(get(stage, token), TIDE_OK);
        assert_int_equal(profile(stage, token), 200);
        assert_int_equal(stage->provider.tokens, before + questions[i]);
    }
    /* A refusal for another reason is said in the server's words, and shows nothing. */
    let_pass(stage, HOUR_MS);
    stage->provider.manner = MANNER_ECHO;
    EXPECT(get(stage, token), TIDE_AUTH);
    assert_non_null(strstr(stage->err.text, "invalid_client"));
    free(file);
}

STAGED(delegation_that_was_not_given_needs_an_administrator, 18)
{
    char token[512];
    char *file = key_file(stage);
    box_cloud *box = tide_sim_cloud_box(stage->provider.cloud);
    OK(box_auth_delegate(box_cloud_auth(box), TIDE_TEXT("robot@project.example.com"),
                         box_cloud_user(box, TIDE_TEXT(EMAIL)),
                         box_scopes_parse(TIDE_TEXT(READONLY))));
    static const struct {
        const char *user;
        const char *scopes;
        const char *why;
    } rows[] = {{EMAIL, READONLY " " SEND, "unauthorized_client"},
                {"nobody@example.com", READONLY, "invalid_grant"},
                {EMAIL, "https://example.com/no-such-scope", "invalid_scope"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_buf_clear(&stage->grant);
        EXPECT(tide_oauth_service_account(tide_text_of(file), rows[i].user, rows[i].scopes,
                                          &stage->grant, &stage->err),
               TIDE_OK);
        keep_grant(tide_buf_text(&stage->grant));
        put_grant(stage, SECRET);
        tokens_open(stage);
        EXPECT(get(stage, token), TIDE_AUTH);
        assert_non_null(strstr(stage->err.text, rows[i].why));
        const unsigned before = stage->provider.tokens;
        EXPECT(get(stage, token), TIDE_AUTH);
        assert_int_equal(stage->provider.tokens, before); /* OAU3 */
        tokens_close(stage);
    }
    free(file);
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
    tide_error err = {0};
    tide_buf grant = heap_buf(TIDE_SECRET_BYTES_MAX);
    json_t *file = json_pack("{s:s, s:s, s:s, s:s}", "type", "service_account", "private_key", pem,
                             "client_email", email, "token_uri", url);
    assert_non_null(file);
    char *text = json_dumps(file, 0);
    const tide_status rc =
        tide_oauth_service_account(tide_text_of(text), EMAIL, READONLY, &grant, &err);
    EXPECT_OF(rc, expected == NULL ? TIDE_OK : TIDE_INVALID, &err);
    if (expected != NULL && strstr(err.text, expected) == NULL)
        fail_msg("%s", err.text);
    free(text);
    json_decref(file);
    tide_secret_wipe(&grant);
}

TEST(a_bad_key_file_is_refused_and_not_quoted)
{
    const char *url = "https://oauth2.googleapis.com/token";
    char *good = pem_of(EVP_RSA_gen(2048), NULL);
    char *small = pem_of(EVP_RSA_gen(1024), NULL);
    char *curve = pem_of(EVP_EC_gen("P-256"), NULL);
    char *locked = pem_of(EVP_RSA_gen(2048), "password"); /* no password prompt */
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

    tide_error err = {0};
    tide_buf grant = heap_buf(TIDE_SECRET_BYTES_MAX);
    static const char *const files[] = {"",
                                        "{",
                                        "[]",
                                        "7",
                                        "{}",
                                        "{\"type\":\"authorized_user\"}",
                                        "{\"type\":\"service_account\"}"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        EXPECT_OF(tide_oauth_service_account(tide_text_of(files[i]), EMAIL, READONLY, &grant, &err),
                  TIDE_INVALID, &err);
    EXPECT_OF(tide_oauth_service_account(TIDE_TEXT("{}"), "a b", READONLY, &grant, &err),
              TIDE_INVALID, &err);
    EXPECT_OF(tide_oauth_service_account(TIDE_TEXT("{}"), EMAIL, "", &grant, &err), TIDE_INVALID,
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
    const struct tide_oauth_ask ask = {.provider = &tide_oauth_google,
                                       .client = &stage->client,
                                       .scopes = READONLY,
                                       .login_hint = EMAIL,
                                       .way = TIDE_OAUTH_PASTE};
    bool revoked = false;
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
        rc = tide_tokens_open(stage->world, stage->secrets, &tokens_options, mem, &tokens,
                              &stage->err);
    if (rc == TIDE_OK) {
        let_pass(stage, HOUR_MS);
        rc = tide_tokens_get(tokens, NULL, &bearer, &stage->err);
    }
    if (rc == TIDE_OK)
        rc = tide_tokens_revoke(tokens, &revoked, &stage->err);
    tide_tokens_close(tokens);
    tide_oauth_flow_free(flow);
    tide_secret_wipe(&grant);
    tide_secret_wipe(&bearer);
    tide_buf_done(&scopes);
    return rc;
}

STAGED(signing_in_survives_every_failed_allocation, 19)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = sign_in_with(stage, &mem.base);
        EXPECT(rc, mem.fired ? TIDE_NO_MEMORY : TIDE_OK);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired)
            assert_true(mem.fail_at > 40);
    }
}

STAGED(a_service_account_survives_every_failed_allocation, 20)
{
    char *file = key_file(stage);
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        tide_buf grant;
        tide_buf bearer;
        tide_tokens *tokens = NULL;
        tide_buf_init(&grant, &mem.base, TIDE_SECRET_BYTES_MAX);
        tide_buf_init(&bearer, &mem.base, 4096);
        tide_status rc =
            tide_oauth_service_account(tide_text_of(file), EMAIL, READONLY, &grant, &stage->err);
        if (rc == TIDE_OK)
            rc = tide_secrets_put(stage->secrets, SECRET, tide_buf_text(&grant), &stage->err);
        if (rc == TIDE_OK)
            rc = tide_tokens_open(stage->world, stage->secrets, &tokens_options, &mem.base, &tokens,
                                  &stage->err);
        if (rc == TIDE_OK)
            rc = tide_tokens_get(tokens, NULL, &bearer, &stage->err);
        tide_tokens_close(tokens);
        tide_secret_wipe(&grant);
        tide_secret_wipe(&bearer);
        EXPECT(rc, mem.fired ? TIDE_NO_MEMORY : TIDE_OK);
        assert_int_equal(mem.bytes_live, 0);
    }
    free(file);
}

/* ---- a browser and a listener ---- */

REALLY(the_browser_comes_back_to_the_listener)
{
    real_sign_in();
    tide_tokens *tokens = NULL;
    OK(tide_tokens_open(real.world, real.secrets, &tokens_options, tide_mem_heap(), &tokens, NULL));
    tide_buf bearer = heap_buf(512);
    OK(tide_tokens_get(tokens, NULL, &bearer, NULL));
    struct box_principal principal;
    assert_true(box_auth_check(box_cloud_auth(real.box), tide_buf_text(&bearer),
                               tide_world_now_unix_ms(real.world), &principal));
    assert_string_equal(principal.user->email, EMAIL);
    tide_secret_wipe(&bearer);
    tide_tokens_close(tokens);
}

/* A forged or stale answer neither ends the wait nor spoils it; a refusal does. */
REALLY(only_the_right_state_is_listened_to)
{
    struct tide_oauth_client client;
    char location[2048];
    char other[8192];
    tide_thread *thread = NULL;
    tide_oauth_flow *flow = real_flow(&client);
    tide_oauth_flow *foreign = real_flow(&client);
    struct waiter waiter = {.flow = flow, .wait_ms = 60000};
    OK(tide_world_thread(real.world, "wait", waiter_run, &waiter, &thread, NULL));
    real_follow(tide_oauth_flow_link(flow), location);
    const char *query = strchr(location, '?');
    assert_non_null(query);
    const int base = (int)(query - location);
    char state_text[2048];
    param(tide_oauth_flow_link(foreign), "state", state_text);
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
    EXPECT_OF(waiter.rc, TIDE_AUTH, &waiter.err);

    /* After a refusal the same link still works. */
    waiter = (struct waiter){.flow = flow, .wait_ms = 60000};
    OK(tide_world_thread(real.world, "wait", waiter_run, &waiter, &thread, NULL));
    assert_int_equal(browse(location), 200);
    tide_world_join(real.world, thread);
    EXPECT_OF(waiter.rc, TIDE_OK, &waiter.err);
    tide_oauth_flow_free(flow);

    /* The wait times out, and it is canceled. */
    tide_error err = {0};
    EXPECT_OF(tide_oauth_flow_wait(foreign, 10, NULL, &err), TIDE_TIMEOUT, &err);
    waiter = (struct waiter){.flow = foreign, .wait_ms = 60000};
    tide_world_cancel(real.world, &waiter.cancel, TIDE_CANCEL_USER);
    waiter_run(&waiter);
    EXPECT_OF(waiter.rc, TIDE_CANCELED, &waiter.err);
    tide_oauth_flow_free(foreign);
}
