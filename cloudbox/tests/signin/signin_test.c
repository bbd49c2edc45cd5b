/* Sign-in as a browser and a program see it. */
#include "signin_help.h"

#define VERIFIER  "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" /* RFC 7636, appendix B */
#define READONLY  "https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgmail.readonly"
#define SEND      "https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fgmail.send"
#define BACK      "http%3A%2F%2F127.0.0.1%3A9004%2Fback"
#define AUTH      "/o/oauth2/v2/auth"
#define ASK                                                                                        \
    AUTH "?client_id=c1&response_type=code&redirect_uri=" BACK "&state=s%20%26%3D1"                \
         "&code_challenge=" CHALLENGE "&code_challenge_method=S256&scope=" READONLY
#define CODE_FORM                                                                                  \
    "grant_type=authorization_code&client_id=c1&client_secret=x&redirect_uri=" BACK                \
    "&code_verifier=" VERIFIER "&code=$"

static void start(struct help *help, bool auto_consent)
{
    help_start(help, 5, auto_consent);
    (void)help_user(help, "anna@example.com");
    (void)help_user(help, "ben.smith@example.com");
}

/* The pattern with `text` in the place of its '$'. */
static void put(char out[2048], const char *pattern, const char *text)
{
    const char *hole = strchr(pattern, '$');
    const size_t before = hole == NULL ? strlen(pattern) : (size_t)(hole - pattern);
    const int bytes = snprintf(out, 2048, "%.*s%s%s", (int)before, pattern,
                               hole == NULL ? "" : text, hole == NULL ? "" : hole + 1);
    assert_in_range(bytes, 0, 2047);
}

/* The decoded value of one parameter in the Location of the last answer; false:
 * it is not there. */
static bool located(const struct help *help, const char *name, char value_out[1024])
{
    const char *location = help_header(help, "Location");
    if (location == NULL)
        return false;
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    struct box_target target;
    const char *path = strstr(location, "//") + 2;
    path += strcspn(path, "/?");
    bool found = false;
    if (box_target_parse(tide_text_of(path), &arena, &target)) {
        const tide_text value = box_param(target.params, target.params_count, name);
        found = value.data != NULL;
        if (found)
            (void)snprintf(value_out, 1024, "%.*s", (int)value.bytes, value.data);
    }
    return found;
}

/* A code out of a cloud that consents by itself. */
static void get_code(struct help *help, const char *ask, char code_out[1024])
{
    assert_int_equal(help_get(help, ask), 302);
    assert_true(located(help, "code", code_out));
}

static json_t *get_tokens(struct help *help, const char *ask)
{
    char code[1024], form[2048];
    get_code(help, ask, code);
    put(form, CODE_FORM, code);
    assert_int_equal(help_post(help, "/token", form), 200);
    return help_json(help);
}

static void expect_error(struct help *help, int status, const char *error, const char *text)
{
    if (help->answer.status != status)
        fail_msg("%d, not %d: %s", help->answer.status, status, help_body(help));
    json_auto_t *body = help_json(help);
    assert_string_equal(help_text(body, "error"), error);
    assert_string_equal(help_text(body, "error_description"), text);
    assert_int_equal(json_object_size(body), 2);
    assert_non_null(help_header(help, "Cache-Control"));
}

/* ---- the page ---- */

static void page_ticket(const struct help *help, char ticket_out[64])
{
    const char *at = strstr(help_body(help), "name=\"ticket\" value=\"");
    assert_non_null(at);
    at += strlen("name=\"ticket\" value=\"");
    (void)snprintf(ticket_out, 64, "%.*s", (int)strcspn(at, "\""), at);
}

TEST(a_person_sees_who_asks_for_what_and_allows_it)
{
    auto_help help;
    start(&help, false);
    assert_int_equal(help_get(&help, ASK "%20" SEND "&login_hint=ben.smith%40example.com"), 200);
    assert_string_equal(help.answer.type, "text/html; charset=utf-8");
    assert_non_null(strstr(help_header(&help, "Content-Security-Policy"), "default-src 'none'"));
    assert_string_equal(help_header(&help, "X-Frame-Options"), "DENY");
    assert_non_null(strstr(help_body(&help), "<code>c1</code>"));
    assert_non_null(strstr(help_body(&help), "value=\"anna@example.com\"> anna@example.com"));
    assert_non_null(strstr(help_body(&help), "value=\"ben.smith@example.com\" checked>"));
    assert_non_null(
        strstr(help_body(&help), "value=\"https://www.googleapis.com/auth/gmail.send\" checked>"));

    char ticket[64], form[2048], value[1024];
    page_ticket(&help, ticket);
    put(form, "ticket=$&user=anna%40example.com&scope=" READONLY "&answer=allow", ticket);
    assert_int_equal(help_post(&help, AUTH, form), 302);
    assert_int_equal(strncmp(help_header(&help, "Location"), "http://127.0.0.1:9004/back?", 27), 0);
    assert_true(located(&help, "state", value));
    assert_string_equal(value, "s &=1");
    assert_true(located(&help, "scope", value)); /* BAUT3: the other one was unticked */
    assert_string_equal(value, "https://www.googleapis.com/auth/gmail.readonly");
    assert_true(located(&help, "code", value));
    assert_int_equal(strncmp(value, "4/0A", 4), 0);

    put(form, CODE_FORM, value);
    assert_int_equal(help_post(&help, "/token", form), 200);
    json_auto_t *tokens = help_json(&help);
    assert_string_equal(help_text(tokens, "scope"),
                        "https://www.googleapis.com/auth/gmail.readonly");
}

TEST(a_ticket_is_good_once_for_ten_minutes_and_not_from_elsewhere)
{
    auto_help help;
    start(&help, false);
    char ticket[64], form[2048], value[1024];
    static const char rest[] = "&user=anna%40example.com&scope=" READONLY "&answer=allow";

    assert_int_equal(help_get(&help, ASK), 200);
    page_ticket(&help, ticket);
    (void)snprintf(form, sizeof form, "ticket=%s%s", ticket, rest);
    help.site = "cross-site";
    assert_int_equal(help_post(&help, AUTH, form), 403);
    assert_null(help_header(&help, "Location"));
    help.site = "same-origin";
    assert_int_equal(help_post(&help, AUTH, form), 302);
    assert_int_equal(help_post(&help, AUTH, form), 400);
    assert_null(help_header(&help, "Location"));
    help.site = NULL;

    for (uint64_t late = 0; late < 2; late++) {
        assert_int_equal(help_get(&help, ASK), 200);
        page_ticket(&help, ticket);
        (void)snprintf(form, sizeof form, "ticket=%s%s", ticket, rest);
        help.now_ms += BOX_CODE_LIFE_MS - 1 + late;
        assert_int_equal(help_post(&help, AUTH, form), late == 0 ? 302 : 400);
    }
    static const char *const wrong[] = {
        "", "ticket=", "ticket=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA&answer=allow", "answer=allow",
        "ticket=%zz"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(help_post(&help, AUTH, wrong[i]), 400);

    /* Cancel, nothing ticked, no user chosen. */
    static const struct {
        const char *rest;
        int status;
    } answers[] = {{"&user=anna%40example.com&scope=" READONLY "&answer=cancel", 302},
                   {"&user=anna%40example.com&answer=allow", 302},
                   {"&user=anna%40example.com&scope=" SEND "&answer=allow", 302},
                   {"&user=nobody%40example.com&scope=" READONLY "&answer=allow", 400}};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        assert_int_equal(help_get(&help, ASK), 200);
        page_ticket(&help, ticket);
        (void)snprintf(form, sizeof form, "ticket=%s%s", ticket, answers[i].rest);
        assert_int_equal(help_post(&help, AUTH, form), answers[i].status);
        if (answers[i].status == 302) {
            assert_true(located(&help, "error", value));
            assert_string_equal(value, "access_denied");
            assert_true(located(&help, "state", value));
            assert_false(located(&help, "code", value));
        }
    }
}

TEST(the_oldest_of_too_many_open_pages_is_forgotten)
{
    auto_help help;
    start(&help, false);
    char first[64], ticket[64], form[2048];
    assert_int_equal(help_get(&help, ASK), 200);
    page_ticket(&help, first);
    for (int i = 0; i < 1024; i++)
        assert_int_equal(help_get(&help, ASK), 200);
    page_ticket(&help, ticket);
    (void)snprintf(form, sizeof form, "ticket=%s&answer=cancel", first);
    assert_int_equal(help_post(&help, AUTH, form), 400);
    (void)snprintf(form, sizeof form, "ticket=%s&answer=cancel", ticket);
    assert_int_equal(help_post(&help, AUTH, form), 302);
}

TEST(nothing_from_outside_reaches_a_page_unescaped)
{
    auto_help help;
    start(&help, false);
    static const char *const evil = "%3Cscript%3Ealert%28%27%22%26%29%3C%2Fscript%3E";
    char target[2048];
    static const char *const forms[] = {
        AUTH "?response_type=code&redirect_uri=" BACK "&scope=" READONLY "&client_id=$",
        AUTH "?response_type=code&client_id=c&redirect_uri=$&scope=" READONLY,
        AUTH "?client_id=c&redirect_uri=" BACK "&scope=" READONLY "&response_type=$",
        AUTH "?client_id=c&redirect_uri=" BACK "&response_type=code&scope=$",
        ASK "&login_hint=$",
        AUTH "?client_id=c&response_type=code&scope=" READONLY
             "&redirect_uri=http%3A%2F%2Flocalhost%2F%26$",
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        put(target, forms[i], evil);
        (void)help_get(&help, target);
        assert_non_null(strstr(help.answer.type, "text/html"));
        assert_null(strstr(help_body(&help), "<script"));
        assert_null(strstr(help_body(&help), "alert('"));
    }
}

TEST(many_users_are_a_list_to_choose_from)
{
    auto_help help;
    start(&help, false);
    for (int i = 0; i < 20; i++) {
        char email[32];
        (void)snprintf(email, sizeof email, "u%d@example.com", i);
        (void)help_user(&help, email);
    }
    assert_int_equal(help_get(&help, ASK "&login_hint=u7%40example.com"), 200);
    assert_non_null(strstr(help_body(&help), "<option value=\"u7@example.com\" selected>"));
    assert_non_null(strstr(help_body(&help), "<option value=\"u19@example.com\">"));
}

/* ---- what is refused with a page ---- */

TEST(redirects_go_to_loopback_addresses_only)
{
    auto_help help;
    start(&help, true);
    static const struct {
        const char *uri;
        bool good;
    } uris[] = {
        {"http://127.0.0.1:9004", true},
        {"http://127.0.0.1:9004/", true},
        {"http://127.0.0.1", true},
        {"http://localhost:1/any/path?with=query", true},
        {"http://[::1]:65535/x", true},
        {"http://localhost?x=1", true},
        {"https://127.0.0.1:9004", false},
        {"http://127.0.0.1:0", false},
        {"http://127.0.0.1:65536", false},
        {"http://127.0.0.1:", false},
        {"http://127.0.0.1:80x", false},
        {"http://127.0.0.1.evil.example/", false},
        {"http://127.0.0.1@evil.example/", false},
        {"http://127.0.0.1:80@evil.example/", false},
        {"http://localhost.evil.example/", false},
        {"http://localhost\\@evil.example/", false},
        {"http://LOCALHOST/", false},
        {"http://127.0.0.2/", false},
        {"http://[::2]/", false},
        {"http://evil.example/", false},
        {"//127.0.0.1/", false},
        {"javascript:alert(1)", false},
        {"urn:ietf:wg:oauth:2.0:oob", false},
        {"http://localhost/#x", false},
        {"http://localhost/\r\nSet-Cookie: a=b", false},
        {"http://localhost/ x", false},
    };
    for (size_t i = 0; i < sizeof uris / sizeof uris[0]; i++) {
        char target[2048] = AUTH "?client_id=c&response_type=code&scope=openid&redirect_uri=";
        size_t bytes = strlen(target);
        for (const char *c = uris[i].uri; *c != '\0'; c++)
            bytes += (size_t)snprintf(target + bytes, sizeof target - bytes, "%%%02X",
                                      (unsigned)(unsigned char)*c);
        const int status = help_get(&help, target);
        if (status != (uris[i].good ? 302 : 400))
            fail_msg("%s: %d", uris[i].uri, status);
        if (uris[i].good) {
            const char *location = help_header(&help, "Location");
            assert_int_equal(strncmp(location, uris[i].uri, strlen(uris[i].uri)), 0);
            assert_int_equal(location[strlen(uris[i].uri)],
                             strchr(uris[i].uri, '?') != NULL ? '&' : '?');
        } else {
            assert_null(help_header(&help, "Location"));
            assert_non_null(strstr(help_body(&help), "Error 400: redirect_uri_mismatch"));
        }
    }
}

TEST(a_bad_request_gets_a_page_and_no_redirect)
{
    auto_help help;
    start(&help, true);
#define BASE AUTH "?client_id=c&redirect_uri=" BACK
    static const struct {
        const char *target;
        const char *shown;
    } bad[] = {
        {AUTH, "Error 400: invalid_request"},
        {AUTH "?client_id=&redirect_uri=" BACK, "Missing required parameter: client_id"},
        {AUTH "?client_id=c&response_type=code&scope=openid",
         "Missing required parameter: redirect_uri"},
        {BASE "&scope=openid", "Missing required parameter: response_type"},
        {BASE "&scope=openid&response_type=token", "Error 400: unsupported_response_type"},
        {BASE "&response_type=code", "Missing required parameter: scope"},
        {BASE "&response_type=code&scope=openid%20nonsense", "Error 400: invalid_scope"},
        {BASE "&response_type=code&scope=https%3A%2F%2Fwww.googleapis.com%2Fauth%2Fdrive",
         "Error 400: invalid_scope"},
        {BASE "&response_type=code&scope=openid&scope=email", "can only have a single value"},
        {BASE "&response_type=code&scope=openid&code_challenge=x&code_challenge_method=S512",
         "code_challenge_method"},
        {BASE "&response_type=code&scope=openid&code_challenge=short&code_challenge_method=S256",
         "Invalid parameter value for code_challenge"},
        {BASE "&response_type=code&scope=openid&code_challenge=short",
         "Invalid parameter value for code_challenge"},
        {BASE "&response_type=code&scope=openid&code_challenge_method=S256",
         "Missing required parameter: code_challenge"},
        {"/o/oauth2/auth?client_id=c", "Missing required parameter: redirect_uri"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(help_get(&help, bad[i].target), 400);
        assert_null(help_header(&help, "Location"));
        if (strstr(help_body(&help), bad[i].shown) == NULL)
            fail_msg("%s: %s", bad[i].target, help_body(&help));
    }
    char state_text[1101], target[2048];
    memset(state_text, 's', 1100);
    state_text[1100] = '\0';
    put(target, BASE "&response_type=code&scope=openid&state=$", state_text);
    assert_int_equal(help_get(&help, target), 400);

    assert_ok(box_auth_add_client(box_cloud_auth(help.cloud), TIDE_TEXT("known"), TIDE_TEXT("s")));
    assert_int_equal(help_get(&help, ASK), 401);
    assert_non_null(strstr(help_body(&help), "Error 401: invalid_client"));
}

TEST(scripts_choose_user_and_scopes_by_parameters)
{
    struct help help;
    start(&help, true);
    char value[1024];
    json_auto_t *tokens =
        get_tokens(&help, ASK "%20openid%20email%20https%3A%2F%2Fother.example%2Fx"
                              "&login_hint=ben.smith%40example.com&box_untick=openid");
    assert_string_equal(help_text(tokens, "scope"),
                        "https://www.googleapis.com/auth/gmail.readonly "
                        "https://www.googleapis.com/auth/userinfo.email");
    assert_null(json_object_get(tokens, "id_token"));
    auto_text *access = strdup(help_text(tokens, "access_token"));
    help.token = access;
    assert_int_equal(help_get(&help, "/oauth2/v3/userinfo"), 200);
    json_auto_t *info = help_json(&help);
    assert_string_equal(help_text(info, "email"), "ben.smith@example.com");
    help.token = NULL;

    assert_int_equal(help_get(&help, ASK "&box_untick=" READONLY), 302);
    assert_true(located(&help, "error", value));
    assert_int_equal(help_get(&help, ASK "&box_deny=true"), 302);
    assert_true(located(&help, "error", value));
    assert_string_equal(value, "access_denied");
    help_stop(&help);

    start(&help, false);
    assert_int_equal(help_get(&help, ASK "&prompt=none"), 302);
    assert_true(located(&help, "error", value));
    assert_string_equal(value, "interaction_required");
    help_stop(&help);
    help_start(&help, 1, true); /* a cloud without users */
    assert_int_equal(help_get(&help, ASK), 400);
    help_stop(&help);
}

/* ---- tokens ---- */

TEST(a_code_brings_tokens_and_a_refresh_token_brings_more)
{
    auto_help help;
    start(&help, true);
    json_auto_t *tokens = get_tokens(&help, ASK);
    assert_int_equal(json_integer_value(json_object_get(tokens, "expires_in")), 3599);
    assert_string_equal(help_text(tokens, "token_type"), "Bearer");
    assert_string_equal(help_text(tokens, "scope"),
                        "https://www.googleapis.com/auth/gmail.readonly");
    assert_int_equal(strncmp(help_text(tokens, "access_token"), "ya29.", 5), 0);
    assert_int_equal(json_object_size(tokens), 5);
    assert_non_null(strstr(help_header(&help, "Cache-Control"), "no-store"));

    char form[2048], kept[512];
    (void)snprintf(kept, sizeof kept, "%s", help_text(tokens, "refresh_token"));
    (void)snprintf(form, sizeof form, "grant_type=refresh_token&client_id=c1&refresh_token=%s",
                   kept);
    help.now_ms += HOUR_MS;
    help.token = help_text(tokens, "access_token");
    assert_int_equal(help_get(&help, "/gmail/v1/users/me/profile"), 401);
    help.token = NULL;
    static const char *const paths[] = {"/token", "/oauth2/v4/token", "/o/oauth2/token"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(help_post(&help, paths[i], form), 200);
        json_auto_t *more = help_json(&help);
        assert_null(json_object_get(more, "refresh_token"));
        assert_int_equal(json_object_size(more), 4);
        help.token = help_text(more, "access_token");
        assert_int_equal(help_get(&help, "/gmail/v1/users/me/profile"), 200);
        help.token = NULL;
    }
    (void)snprintf(form, sizeof form, "/revoke?token=%s", kept);
    assert_int_equal(help_post(&help, form, ""), 200);
    assert_int_equal(help_post(&help, form, ""), 400);
    expect_error(&help, 400, "invalid_token", "Token expired or revoked");
    (void)snprintf(form, sizeof form, "grant_type=refresh_token&client_id=c1&refresh_token=%s",
                   kept);
    (void)help_post(&help, "/token", form);
    expect_error(&help, 400, "invalid_grant", "Token has been expired or revoked.");
}

TEST(testing_mode_says_when_the_refresh_token_ends)
{
    auto_help help;
    start(&help, true);
    box_auth_testing(box_cloud_auth(help.cloud), true);
    json_auto_t *tokens = get_tokens(&help, ASK);
    assert_int_equal(json_integer_value(json_object_get(tokens, "refresh_token_expires_in")),
                     7 * 24 * 3600);
}

TEST(a_token_request_that_does_not_fit_is_refused_in_googles_words)
{
    auto_help help;
    start(&help, true);
    char code[1024], form[2048];
    get_code(&help, ASK, code);
    static const struct {
        const char *form; /* a '$' stands for the code */
        int status;
        const char *error;
        const char *text;
    } bad[] = {
        {"client_id=c1", 400, "invalid_request", "Missing required parameter: grant_type"},
        {"grant_type=password&client_id=c1", 400, "unsupported_grant_type",
         "Invalid grant_type: password"},
        {"grant_type=authorization_code&client_id=c1", 400, "invalid_request",
         "Missing required parameter: code"},
        {"grant_type=authorization_code&code=$&redirect_uri=" BACK, 400, "invalid_request",
         "Missing required parameter: client_id"},
        {"grant_type=authorization_code&code=$&client_id=c1", 400, "invalid_request",
         "Missing required parameter: redirect_uri"},
        {"grant_type=authorization_code&code=$&client_id=c1&redirect_uri=" BACK "x", 400,
         "redirect_uri_mismatch", "Bad Request"},
        {"grant_type=authorization_code&code=$&client_id=c2&redirect_uri=" BACK, 401,
         "unauthorized_client", "Unauthorized"},
        {"grant_type=authorization_code&code=$&client_id=c1&redirect_uri=" BACK, 400,
         "invalid_grant", "Missing code verifier."},
        {"grant_type=authorization_code&code=$&client_id=c1&redirect_uri=" BACK
         "&code_verifier=" VERIFIER "x",
         400, "invalid_grant", "Invalid code verifier."},
        {"grant_type=authorization_code&code=4%2F0A&client_id=c1&redirect_uri=" BACK, 400,
         "invalid_grant", "Malformed auth code."},
        {"grant_type=refresh_token&client_id=c1", 400, "invalid_request",
         "Missing required parameter: refresh_token"},
        {"grant_type=refresh_token&client_id=c1&refresh_token=1%2F%2F0x", 400, "invalid_grant",
         "Bad Request"},
        {"grant_type=refresh_token&grant_type=refresh_token", 400, "invalid_request",
         "OAuth 2 parameters can only have a single value."},
        {"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer", 400, "invalid_request",
         "Missing required parameter: assertion"},
        {"grant_type=%zz", 400, "invalid_request", "The form is malformed."},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put(form, bad[i].form, code);
        (void)help_post(&help, "/token", form);
        expect_error(&help, bad[i].status, bad[i].error, bad[i].text);
    }
    help.type = "application/json";
    (void)help_post(&help, "/token", "{}");
    expect_error(&help, 400, "invalid_request",
                 "The body must be application/x-www-form-urlencoded.");
    help.type = NULL;

    /* None of these used the code up; two good uses do, and revoke. */
    put(form, CODE_FORM, code);
    assert_int_equal(help_post(&help, "/token", form), 200);
    json_auto_t *tokens = help_json(&help);
    (void)help_post(&help, "/token", form);
    expect_error(&help, 400, "invalid_grant", "Bad Request");
    help.token = help_text(tokens, "access_token");
    assert_int_equal(help_get(&help, "/gmail/v1/users/me/profile"), 401);
}

TEST(a_registered_client_must_prove_itself)
{
    auto_help help;
    start(&help, true);
    assert_ok(box_auth_add_client(box_cloud_auth(help.cloud), TIDE_TEXT("c1"), TIDE_TEXT("x:y")));
    char code[1024], form[2048];
    get_code(&help, ASK, code);
#define WITHOUT                                                                                    \
    "grant_type=authorization_code&redirect_uri=" BACK "&code_verifier=" VERIFIER "&code=$"
    put(form, WITHOUT "&client_id=c1&client_secret=wrong", code);
    (void)help_post(&help, "/token", form);
    expect_error(&help, 401, "invalid_client", "Unauthorized");
    put(form, WITHOUT "&client_id=c1", code);
    (void)help_post(&help, "/token", form);
    expect_error(&help, 400, "invalid_request", "client_secret is missing.");
    put(form, WITHOUT "&client_id=c2&client_secret=x", code);
    (void)help_post(&help, "/token", form);
    expect_error(&help, 401, "invalid_client", "The OAuth client was not found.");
    put(form, WITHOUT, code);
    help.basic = "Basic YzE6d3Jvbmc="; /* c1:wrong */
    (void)help_post(&help, "/token", form);
    expect_error(&help, 401, "invalid_client", "Unauthorized");
    help.basic = "Basic YzE6eCUzQXk="; /* c1:x%3Ay */
    assert_int_equal(help_post(&help, "/token", form), 200);
}

TEST(a_service_account_signs_in_with_its_key_file)
{
    auto_help help;
    start(&help, false);
    json_auto_t *file = NULL;
    assert_ok(box_auth_make_service_account(box_cloud_auth(help.cloud),
                                            TIDE_TEXT("bot@p.iam.gserviceaccount.com"), &file));
    box_key *key = box_key_from_pem(tide_text_of(help_text(file, "private_key")));
    const json_int_t now_s = (json_int_t)(help.now_ms / 1000);
    tide_auto_buf form = tide_buf_heap(64 << 10);
    box_add_cstr(&form,
                 "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=");
    box_jwt_sign(key,
                 json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "iss", help_text(file, "client_email"),
                           "sub", "anna@example.com", "scope", "https://mail.google.com/", "aud",
                           ORIGIN "/token", "iat", now_s, "exp", now_s + 3600),
                 &form);
    assert_int_equal(help_post(&help, "/token", tide_buf_cstr(&form)), 200);
    json_auto_t *tokens = help_json(&help);
    assert_null(json_object_get(tokens, "refresh_token"));
    help.token = help_text(tokens, "access_token");
    assert_int_equal(help_get(&help, "/gmail/v1/users/anna%40example.com/profile"), 200);
    help.token = NULL;
    form.data[form.bytes - 10] = form.data[form.bytes - 10] == 'A' ? 'B' : 'A';
    (void)help_post(&help, "/token", tide_buf_cstr(&form));
    expect_error(&help, 400, "invalid_grant", "Invalid JWT Signature.");
    box_key_free(key);
}

/* ---- who is who ---- */

TEST(an_id_token_is_signed_by_the_published_key)
{
    auto_help help;
    start(&help, true);
    json_auto_t *tokens = get_tokens(&help, ASK "%20openid%20email%20profile&nonce=n-1"
                                                "&login_hint=ben.smith%40example.com");
    assert_int_equal(help_get(&help, "/oauth2/v3/certs"), 200);
    json_auto_t *jwks = help_json(&help);
    json_auto_t *claims = help_claims(jwks, help_text(tokens, "id_token"));
    assert_string_equal(help_text(claims, "iss"), "https://accounts.google.com");
    assert_string_equal(help_text(claims, "aud"), "c1");
    assert_string_equal(help_text(claims, "email"), "ben.smith@example.com");
    assert_true(json_is_true(json_object_get(claims, "email_verified")));
    assert_string_equal(help_text(claims, "name"), "Ben Smith");
    assert_string_equal(help_text(claims, "nonce"), "n-1");
    assert_int_equal(json_integer_value(json_object_get(claims, "iat")), START_MS / 1000);
    assert_int_equal(json_integer_value(json_object_get(claims, "exp")), START_MS / 1000 + 3600);

    char target[4096];
    (void)snprintf(target, sizeof target, "/tokeninfo?id_token=%s", help_text(tokens, "id_token"));
    assert_int_equal(help_get(&help, target), 200);
    json_auto_t *info = help_json(&help);
    assert_string_equal(help_text(info, "sub"), help_text(claims, "sub"));
    assert_string_equal(help_text(info, "email_verified"), "true");
    help.now_ms += HOUR_MS;
    (void)help_get(&help, target);
    expect_error(&help, 400, "invalid_token", "Invalid Value");
}

TEST(tokeninfo_and_userinfo_tell_what_the_scopes_allow)
{
    auto_help help;
    start(&help, true);
    json_auto_t *tokens = get_tokens(&help, ASK "%20email");
    char target[4096];
    help.now_ms += 99000;
    (void)snprintf(target, sizeof target, "/tokeninfo?access_token=%s",
                   help_text(tokens, "access_token"));
    assert_int_equal(help_get(&help, target), 200);
    json_t *info = help_json(&help);
    assert_string_equal(help_text(info, "aud"), "c1");
    assert_string_equal(help_text(info, "expires_in"), "3500");
    assert_string_equal(help_text(info, "email"), "anna@example.com");
    assert_string_equal(help_text(info, "access_type"), "offline");
    assert_int_equal(strlen(help_text(info, "sub")), 21);
    json_decref(info);
    (void)help_get(&help, "/tokeninfo?access_token=x");
    expect_error(&help, 400, "invalid_token", "Invalid Value");
    (void)help_get(&help, "/tokeninfo");
    expect_error(&help, 400, "invalid_request", "either access_token or id_token required");
    (void)help_get(&help, "/tokeninfo?id_token=a.b.c");
    expect_error(&help, 400, "invalid_token", "Invalid Value");

    help.token = help_text(tokens, "access_token");
    assert_int_equal(help_get(&help, "/oauth2/v2/userinfo"), 200);
    info = help_json(&help);
    assert_true(json_is_true(json_object_get(info, "verified_email")));
    assert_non_null(json_object_get(info, "id"));
    assert_null(json_object_get(info, "name")); /* no profile scope */
    json_decref(info);
    assert_int_equal(help_get(&help, "/v1/userinfo"), 200);
    help.token = "nothing";
    assert_int_equal(help_get(&help, "/v1/userinfo"), 401);
    json_decref(tokens);
    tokens = NULL;
    help.token = NULL;
    tokens = get_tokens(&help, ASK);
    help.token = help_text(tokens, "access_token");
    assert_int_equal(help_get(&help, "/v1/userinfo"), 403);
}

TEST(discovery_and_keys_are_published)
{
    auto_help help;
    start(&help, false);
    assert_int_equal(help_get(&help, "/.well-known/openid-configuration"), 200);
    json_t *body = help_json(&help);
    assert_string_equal(help_text(body, "issuer"), "https://accounts.google.com");
    assert_string_equal(help_text(body, "token_endpoint"), ORIGIN "/token");
    assert_string_equal(help_text(body, "jwks_uri"), ORIGIN "/oauth2/v3/certs");
    json_decref(body);
    assert_int_equal(help_get(&help, "/oauth2/v1/certs"), 200);
    body = help_json(&help);
    assert_int_equal(help_get(&help, "/oauth2/v3/certs"), 200);
    json_auto_t *jwks = help_json(&help);
    const char *kid = help_text(json_array_get(json_object_get(jwks, "keys"), 0), "kid");
    assert_int_equal(strncmp(help_text(body, kid), "-----BEGIN PUBLIC KEY-----", 26), 0);
    json_decref(body);
    assert_int_equal(help_get(&help, "/token"), 405);
    (void)help_post(&help, "/revoke", "x=y");
    expect_error(&help, 400, "invalid_request", "Missing required parameter: token");
}

/* Any bytes: an answer, never a crash, and no redirect to another place (BSGN2). */
TEST(random_requests_never_redirect_elsewhere)
{
    auto_help help;
    start(&help, true);
    const uint64_t seed = 4242;
    tide_rng rng = tide_rng_seeded(seed);
    static const char *const bits[] = {"client_id=",
                                       "redirect_uri=",
                                       "response_type=code",
                                       "scope=openid",
                                       "state=",
                                       "&",
                                       "=",
                                       "http%3A%2F%2F127.0.0.1",
                                       "http%3A%2F%2Fevil.example",
                                       "%0D%0A",
                                       "%00",
                                       "%",
                                       "code",
                                       "x",
                                       "code_challenge=",
                                       CHALLENGE,
                                       "code_challenge_method=S256",
                                       "login_hint=",
                                       "box_untick=",
                                       "%40",
                                       "http%3A%2F%2Flocalhost",
                                       ":80",
                                       "%5B%3A%3A1%5D",
                                       "openid",
                                       "grant_type=",
                                       "refresh_token",
                                       "authorization_code",
                                       "ticket=",
                                       "answer=allow",
                                       "%FF",
                                       "prompt=none"};
    const int rounds = (int)scaled(100000);
    for (int i = 0; i < rounds; i++) {
        char text[2048] = "";
        size_t bytes = 0;
        const uint64_t count = tide_rng_below(&rng, 20);
        for (uint64_t j = 0; j < count; j++)
            bytes += (size_t)snprintf(text + bytes, sizeof text - bytes, "%s%s",
                                      bits[tide_rng_below(&rng, sizeof bits / sizeof bits[0])],
                                      tide_rng_chance(&rng, 1, 2) ? "&" : "");
        char target[2100];
        (void)snprintf(target, sizeof target, AUTH "?%s", text);
        (void)(tide_rng_chance(&rng, 2, 3) ? help_get(&help, target)
                                           : help_post(&help, i % 2 ? "/token" : AUTH, text));
        const char *location = help_header(&help, "Location");
        if (location != NULL && strncmp(location, "http://127.0.0.1", 16) != 0 &&
            strncmp(location, "http://localhost", 16) != 0 &&
            strncmp(location, "http://[::1]", 12) != 0)
            fail_msg("seed %llu: %s", (unsigned long long)seed, location);
        assert_in_range(help.answer.status, 200, 503);
    }
}

/* ---- getting a client ---- */

TEST(the_pages_that_lead_to_a_client_are_here)
{
    static const char *const pages[][2] = {
        {"/projectcreate", "New project"},
        {"/apis/library/gmail.googleapis.com", "Enable API"},
        {"/auth/overview", "Google Auth Platform"},
        {"/auth/audience", "Audience"},
        {"/auth/clients/create", "Desktop app"},
    };
    auto_help help;
    start(&help, true);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        assert_int_equal(help_get(&help, pages[i][0]), 200);
        assert_non_null(strstr(help_body(&help), pages[i][1]));
    }
}

TEST(a_client_that_was_created_is_let_in_and_others_no_more)
{
    static const char *const types[][2] = {{"desktop", "installed"}, {"web", "web"}};
    auto_help help;
    start(&help, true);
    assert_int_equal(help_get(&help, ASK), 302);
    for (size_t i = 0; i < 2; i++) {
        char form[64], ask[2048];
        (void)snprintf(form, sizeof form, "type=%s", types[i][0]);
        assert_int_equal(help_post(&help, "/auth/clients/create", form), 200);
        assert_non_null(strstr(help_header(&help, "Content-Disposition"), "client_secret_"));
        json_auto_t *file = help_json(&help);
        const json_t *client = json_object_get(file, types[i][1]);
        const char *id = help_text(client, "client_id");
        assert_non_null(strstr(id, ".apps.googleusercontent.com"));
        assert_int_equal(strncmp(help_text(client, "client_secret"), "GOCSPX-", 7), 0);
        assert_non_null(strstr(help_text(client, "token_uri"), "/token"));
        put(ask,
            AUTH "?client_id=$&response_type=code&scope=" READONLY "&redirect_uri=" BACK
                 "&code_challenge=" CHALLENGE "&code_challenge_method=S256",
            id);
        assert_int_equal(help_get(&help, ask), 302);
    }
    assert_int_equal(help_get(&help, ASK), 401);
    assert_int_equal(help_post(&help, "/auth/clients/create", "type=phone"), 400);
    assert_int_equal(help_post(&help, "/auth/clients/create", "%%%"), 400);
}
