/* Microsoft's sign-in: codes with PKCE, device codes, refresh tokens that change. */
#include "graph_fixture.h"

#include "cloudbox/microsoft/scopes.h"

#define V2       "/common/oauth2/v2.0"
#define SCOPES   "Files.ReadWrite%20offline_access%20openid"
#define REDIRECT "http%3A%2F%2F127.0.0.1%3A5000%2F"
/* RFC 7636, appendix B. */
#define VERIFIER  "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

static int form(struct world *world, const char *path, const char *body)
{
    return call_with(world, "POST", path,
                     HEADERS("Content-Type", "application/x-www-form-urlencoded"),
                     tide_text_of(body));
}

static int token(struct world *world, const char *body)
{
    return form(world, V2 "/token", body);
}

/* The code that the redirect carries. */
static const char *code_of(struct world *world)
{
    const char *code = strstr(header_of(world, "Location"), "code=");
    assert_non_null(code);
    return printed("%.*s", (int)strcspn(code + 5, "&"), code + 5);
}

static const char *ask_code(struct world *world)
{
    const char *target =
        V2 "/authorize?client_id=app&response_type=code&redirect_uri=" REDIRECT "&scope=" SCOPES
           "%20Unknown.Scope&state=s%2F1&code_challenge=" CHALLENGE "&code_challenge_method=S256";
    assert_int_equal(call_with(world, "GET", target, NULL, TIDE_TEXT_NONE), 302);
    assert_non_null(strstr(header_of(world, "Location"), "http://127.0.0.1:5000/?state=s/1&code="));
    assert_null(strstr(header_of(world, "Location"), "scope="));
    return code_of(world);
}

#define REDEEM                                                                                     \
    "client_id=app&grant_type=authorization_code&redirect_uri=http://127.0.0.1:5000/&code=%s"

TEST(a_code_with_its_verifier_gives_tokens_that_graph_takes)
{
    WORLD(world, .auto_consent = true);
    const char *code = ask_code(&world);
    token(&world, printed(REDEEM "&code_verifier=%s", code,
                          "wrong-wrong-wrong-wrong-wrong-wrong-wrong-"
                          "wrong"));
    assert_int_equal(world.answer.status, 400);
    assert_string_equal(text_at(&world, "error"), "invalid_grant");
    assert_int_equal(number_at(&world, "error_codes.0"), 501481);
    assert_int_equal(token(&world, printed(REDEEM "&code_verifier=" VERIFIER, code)), 200);
    assert_string_equal(text_at(&world, "token_type"), "Bearer");
    assert_string_equal(text_at(&world, "scope"), "Files.ReadWrite openid");
    assert_int_equal(number_at(&world, "expires_in"), 3599);
    assert_true(text_at(&world, "refresh_token")[0] != '\0');
    assert_true(text_at(&world, "id_token")[0] != '\0');
    world.token = kept(text_at(&world, "access_token"));
    assert_int_equal(call(&world, "GET", "/root/children", NULL), 200);
    make_folder(&world, "/root", "F");
    world.now_ms += 3600 * 1000;
    call(&world, "GET", "", NULL);
    assert_refused(&world, 401, "InvalidAuthenticationToken", "");
    assert_int_equal(token(&world, printed(REDEEM "&code_verifier=" VERIFIER, code)), 400);
}

TEST(a_scope_that_was_not_granted_is_not_there)
{
    WORLD(world, .auto_consent = true);
    call_with(&world, "GET",
              V2 "/authorize?client_id=app&response_type=code&redirect_uri=" REDIRECT
                 "&scope=files.read",
              NULL, TIDE_TEXT_NONE);
    assert_int_equal(token(&world, printed(REDEEM, code_of(&world))), 200);
    assert_null(at(&world, "refresh_token"));
    world.token = kept(text_at(&world, "access_token"));
    assert_int_equal(call(&world, "GET", "/root/children", NULL), 200);
    call(&world, "POST", "/root/children", "{\"name\":\"F\",\"folder\":{}}");
    assert_refused(&world, 403, "accessDenied", "");
}

TEST(every_refresh_gives_another_refresh_token_and_the_old_one_stays_good)
{
    WORLD(world, .auto_consent = true);
    token(&world, printed(REDEEM "&code_verifier=" VERIFIER, ask_code(&world)));
    const char *first = kept(text_at(&world, "refresh_token"));
#define REFRESH(text)                                                                              \
    token(&world, printed("client_id=app&grant_type=refresh_token&refresh_token=%s", text))
    assert_int_equal(REFRESH(first), 200);
    const char *second = kept(text_at(&world, "refresh_token"));
    assert_string_not_equal(first, second);
    world.token = kept(text_at(&world, "access_token"));
    assert_int_equal(call(&world, "GET", "", NULL), 200);
    assert_int_equal(REFRESH(second), 200);
    assert_int_equal(REFRESH(first), 200);
    box_auth_revoke_user(box_cloud_auth(world.cloud),
                         box_cloud_user(world.cloud, TIDE_TEXT("alice@example.com")));
    assert_int_equal(REFRESH(second), 400);
    assert_int_equal(number_at(&world, "error_codes.0"), 50173);
    assert_int_equal(REFRESH("nonsense"), 400);
    assert_int_equal(number_at(&world, "error_codes.0"), 70008);
#undef REFRESH
}

/* ---- device codes ---- */

#define POLL                                                                                       \
    "client_id=app&grant_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3Agrant-type%%3Adevice_code&"        \
    "device_code=%s"

static int poll(struct world *world, const char *code)
{
    world->now_ms += 5000;
    return token(world, printed(POLL, code));
}

/* The ticket of the page that was answered. */
static const char *ticket_of(struct world *world)
{
    const char *ticket = strstr(tide_buf_cstr(&world->bytes), "name=\"ticket\" value=\"");
    assert_non_null(ticket);
    ticket += strlen("name=\"ticket\" value=\"");
    return printed("%.*s", (int)strcspn(ticket, "\""), ticket);
}

TEST(a_device_waits_until_a_person_agrees_at_the_page)
{
    WORLD(world, 0);
    assert_int_equal(form(&world, V2 "/devicecode", "client_id=app&scope=" SCOPES), 200);
    const char *code = kept(text_at(&world, "device_code"));
    const char *user_code = kept(text_at(&world, "user_code"));
    assert_int_equal(number_at(&world, "interval"), 5);
    assert_non_null(strstr(text_at(&world, "message"), user_code));
    assert_int_equal(poll(&world, code), 400);
    assert_string_equal(text_at(&world, "error"), "authorization_pending");
    world.now_ms -= 4000;
    assert_int_equal(poll(&world, code), 400);
    assert_string_equal(text_at(&world, "error"), "slow_down");
    assert_int_equal(violations(&world, "poll-fast"), 1);

    assert_int_equal(call_with(&world, "GET", "/devicelogin", NULL, TIDE_TEXT_NONE), 200);
    assert_int_equal(form(&world, "/devicelogin", "user_code=WRONG"), 400);
    assert_int_equal(form(&world, "/devicelogin", printed("user_code=%s", user_code)), 200);
    const char *ticket = ticket_of(&world);
    assert_int_equal(form(&world, "/o/oauth2/v2/auth",
                          printed("ticket=%s&answer=allow&user=alice%%40example.com&scope="
                                  "Files.ReadWrite&scope=offline_access",
                                  ticket)),
                     200);
    assert_int_equal(poll(&world, code), 200);
    assert_string_equal(text_at(&world, "scope"), "Files.ReadWrite");
    world.token = kept(text_at(&world, "access_token"));
    assert_int_equal(call(&world, "GET", "", NULL), 200);
    assert_int_equal(poll(&world, code), 400);
    assert_string_equal(text_at(&world, "error"), "bad_verification_code");
}

TEST(a_device_is_refused_expires_or_is_not_known)
{
    WORLD(world, 0);
    form(&world, V2 "/devicecode", "client_id=app&scope=" SCOPES);
    const char *code = kept(text_at(&world, "device_code"));
    form(&world, "/devicelogin", printed("user_code=%s", text_at(&world, "user_code")));
    form(&world, "/o/oauth2/v2/auth", printed("ticket=%s&answer=cancel", ticket_of(&world)));
    assert_int_equal(poll(&world, code), 400);
    assert_string_equal(text_at(&world, "error"), "authorization_declined");
    form(&world, V2 "/devicecode", "client_id=app&scope=" SCOPES);
    code = kept(text_at(&world, "device_code"));
    world.now_ms += 900 * 1000;
    assert_int_equal(poll(&world, code), 400);
    assert_string_equal(text_at(&world, "error"), "expired_token");
    assert_int_equal(form(&world, V2 "/devicecode", "client_id=app&scope=Nothing"), 400);
    assert_string_equal(text_at(&world, "error"), "invalid_scope");
    assert_int_equal(form(&world, V2 "/devicecode", "scope=" SCOPES), 400);
    assert_int_equal(token(&world, "client_id=app&grant_type=password"), 400);
    assert_string_equal(text_at(&world, "error"), "unsupported_grant_type");
}

TEST(with_auto_consent_a_device_is_let_in_at_once)
{
    WORLD(world, .auto_consent = true);
    form(&world, V2 "/devicecode", "client_id=app&scope=" SCOPES);
    assert_int_equal(poll(&world, kept(text_at(&world, "device_code"))), 200);
}

/* ---- addresses ---- */

TEST(redirects_go_to_loopback_and_to_the_native_page_only)
{
    WORLD(world, .auto_consent = true);
#define ASK(uri)                                                                                   \
    call_with(&world, "GET",                                                                       \
              V2 "/authorize?client_id=app&response_type=code&scope=" SCOPES "&redirect_uri=" uri, \
              NULL, TIDE_TEXT_NONE)
    assert_int_equal(
        ASK("https%3A%2F%2Flogin.microsoftonline.com%2Fcommon%2Foauth2%2Fnativeclient"), 302);
    assert_int_equal(ASK("https%3A%2F%2Fevil.example%2F"), 400);
    assert_int_equal(
        call_with(&world, "GET", "/common/oauth2/nativeclient?code=x", NULL, TIDE_TEXT_NONE), 200);
#undef ASK
    assert_int_equal(call_with(&world, "GET", "/common/v2.0/.well-known/openid-configuration", NULL,
                               TIDE_TEXT_NONE),
                     200);
    assert_string_equal(text_at(&world, "token_endpoint"), ORIGIN V2 "/token");
    assert_int_equal(call_with(&world, "GET", "/common/discovery/v2.0/keys", NULL, TIDE_TEXT_NONE),
                     200);
}

TEST(scopes_are_read_in_any_case_and_with_graphs_address)
{
    assert_int_equal(
        box_microsoft_scopes_parse(TIDE_TEXT("https://graph.microsoft.com/files.READ x")),
        BOX_SCOPE_FILES_READ);
    for (uint32_t scope = 1 << 16; scope < BOX_SCOPE_MICROSOFT_ALL; scope <<= 1) {
        tide_auto_buf text = tide_buf_heap(1000);
        box_microsoft_scopes_text(scope, &text);
        assert_int_equal(box_microsoft_scopes_parse(tide_buf_text(&text)), scope);
        tide_auto_buf all = tide_buf_heap(1000);
        box_signin_scopes_text(scope | BOX_SCOPE_READONLY, &all);
        assert_int_equal(box_signin_scopes_parse(tide_buf_text(&all)), scope | BOX_SCOPE_READONLY);
    }
}
