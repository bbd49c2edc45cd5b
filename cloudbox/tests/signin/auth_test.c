/* Tokens, codes, grants and keys, asked directly. */
#include "signin_help.h"

#include "cloudbox/microsoft/scopes.h"
#include "cloudbox/signin/auth_state.h"

#define VERIFIER "abcdefghijklmnopqrstuvwxyz-._~0123456789ABCDEFG"
#define REDIRECT "http://127.0.0.1:9004/back"

static struct box_auth *auth_of(const struct help *help)
{
    return box_cloud_auth(help->cloud);
}

static void challenge_of(const char *verifier, char text_out[44])
{
    unsigned char digest[32];
    box_sha256(tide_text_of(verifier), digest);
    tide_auto_buf text = tide_buf_heap(64);
    box_add_base64url_bare(&text, (tide_text){(const char *)digest, 32});
    assert_int_equal(text.bytes, 43);
    memcpy(text_out, text.data, 44);
}

static struct box_ask ask_for(struct help *help, const char *client, uint32_t scopes)
{
    struct box_ask ask = {.client = box_auth_client(auth_of(help), tide_text_of(client)),
                          .scopes = scopes,
                          .redirect_uri = REDIRECT};
    assert_int_not_equal(ask.client, 0);
    challenge_of(VERIFIER, ask.challenge);
    return ask;
}

static struct box_redeem redeem_of(const struct box_ask *ask, const char *code)
{
    return (struct box_redeem){.code = tide_text_of(code),
                               .redirect_uri = tide_text_of(ask->redirect_uri),
                               .verifier = TIDE_TEXT(VERIFIER),
                               .client = ask->client};
}

/* Signs a user in and gives both tokens; the caller frees them. */
static void sign_in(struct help *help, struct box_user *user, const struct box_ask *ask,
                    char **access_out, char **refresh_out)
{
    auto_text *code = strdup(box_auth_code(auth_of(help), ask, user, ask->scopes, help->now_ms));
    const struct box_redeem redeem = redeem_of(ask, code);
    struct box_issue issue;
    struct box_oauth_error error = {0};
    if (!box_auth_redeem(auth_of(help), &redeem, help->now_ms, &issue, &error))
        fail_msg("%s: %s", error.error, error.text);
    *access_out = strdup(issue.access);
    *refresh_out = strdup(issue.refresh);
}

static bool is_good(struct help *help, const char *token)
{
    struct box_principal principal;
    return box_auth_check(auth_of(help), tide_text_of(token), help->now_ms, &principal);
}

static bool refreshes(struct help *help, uint32_t client, const char *refresh)
{
    struct box_issue issue;
    struct box_oauth_error error = {0};
    if (box_auth_refresh(auth_of(help), client, tide_text_of(refresh), TIDE_TEXT_NONE, help->now_ms,
                         &issue, &error)) {
        assert_null(issue.refresh); /* a refresh gives no new refresh token */
        return true;
    }
    assert_int_equal(error.http, 400);
    assert_string_equal(error.error, "invalid_grant");
    assert_string_equal(error.text, "Token has been expired or revoked.");
    return false;
}

/* ---- scopes ---- */

TEST(every_set_of_scopes_survives_its_text)
{
    tide_auto_buf text = tide_buf_heap(4096);
    for (uint32_t scopes = 0; scopes <= BOX_SCOPE_ALL; scopes++) {
        tide_buf_clear(&text);
        box_scopes_text(scopes, &text);
        assert_int_equal(box_scopes_parse(tide_buf_text(&text)), scopes);
    }
    assert_int_equal(box_scopes_parse(TIDE_TEXT("  email  profile openid ")),
                     BOX_SCOPE_EMAIL | BOX_SCOPE_PROFILE | BOX_SCOPE_OPENID);
    assert_int_equal(box_scopes_parse(TIDE_TEXT("https://mail.google.com")), 0);
    assert_int_equal(box_scopes_parse(TIDE_TEXT("https://www.googleapis.com/auth/drive openid")),
                     BOX_SCOPE_OPENID);
    assert_int_equal(box_scopes_parse(TIDE_TEXT_NONE), 0);
}

/* ---- fixed tokens ---- */

TEST(a_fixed_token_never_expires_and_may_do_everything)
{
    HELP(help, 1, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    struct box_user *ben = help_user(&help, "ben@example.com");
    struct box_auth *auth = auth_of(&help);
    assert_ok(box_auth_add_token(auth, TIDE_TEXT("secret"), anna));
    assert_ok(box_auth_add_token(auth, TIDE_TEXT("secret"), anna));
    assert_int_equal(box_auth_add_token(auth, TIDE_TEXT("secret"), ben), TIDE_EXISTS);
    assert_int_equal(box_auth_add_token(auth, TIDE_TEXT(""), ben), TIDE_INVALID);
    assert_int_equal(box_auth_add_token(auth, TIDE_TEXT("a b"), ben), TIDE_INVALID);

    struct box_principal who;
    assert_true(box_auth_check(auth, TIDE_TEXT("secret"), UINT64_MAX - 1, &who));
    assert_ptr_equal(who.user, anna);
    assert_int_equal(who.scopes, BOX_SCOPE_ALL | BOX_SCOPE_MICROSOFT_ALL);
    assert_int_equal(who.project, 0);
    static const char *const wrong[] = {"", "secre", "secret ", "secrets", "Secret"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(box_auth_check(auth, tide_text_of(wrong[i]), 0, &who));

    box_auth_expire_access(auth, anna); /* nothing could refresh it */
    assert_true(box_auth_check(auth, TIDE_TEXT("secret"), 1, &who));
    box_auth_revoke_user(auth, anna);
    assert_false(box_auth_check(auth, TIDE_TEXT("secret"), 1, &who));
    assert_ok(box_auth_add_token(auth, TIDE_TEXT("secret"), anna));
    assert_true(box_auth_check(auth, TIDE_TEXT("secret"), 1, &who));
}

/* Adds and drops random secrets and compares with a plain array of texts. */
TEST(the_table_of_secrets_finds_what_is_there_and_nothing_else)
{
    const uint64_t seed = 77;
    HELP(help, seed, false);
    struct box_auth *auth = auth_of(&help);
    struct box_user *user = help_user(&help, "anna@example.com");
    enum { TEXTS = 2000 };
    uint32_t slots[TEXTS] = {0};
    tide_rng rng = tide_rng_seeded(seed);
    const int steps = (int)scaled(1000000);
    for (int step = 0; step < steps; step++) {
        const size_t i = (size_t)tide_rng_below(&rng, TEXTS);
        char text[300];
        const size_t bytes = 1 + (i * 7) % 200;
        box_letters(i, 3, bytes, text);
        (void)snprintf(text + bytes, sizeof text - bytes, "-%zu", i);
        assert_int_equal(box_secret_find(auth, tide_text_of(text)), slots[i]);
        const struct box_secret secret = {
            .kind = BOX_SECRET_FIXED, .user = user, .expires_ms = UINT64_MAX};
        if (slots[i] != 0 && tide_rng_chance(&rng, 1, 2)) {
            box_secret_drop(auth, slots[i]);
            slots[i] = 0;
        } else if (slots[i] == 0) {
            slots[i] = box_secret_add(auth, tide_text_of(text), &secret);
            assert_int_not_equal(slots[i], 0);
        } else {
            assert_int_equal(box_secret_add(auth, tide_text_of(text), &secret), 0);
        }
    }
}

/* ---- codes (BAUT1) ---- */

TEST(a_code_is_good_once_and_its_second_use_kills_what_it_gave)
{
    HELP(help, 2, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    const struct box_ask ask = ask_for(&help, "client-1", BOX_SCOPE_READONLY);
    auto_text *code = strdup(box_auth_code(auth_of(&help), &ask, anna, ask.scopes, help.now_ms));
    const struct box_redeem redeem = redeem_of(&ask, code);
    struct box_issue issue;
    struct box_oauth_error error;
    assert_true(box_auth_redeem(auth_of(&help), &redeem, help.now_ms, &issue, &error));
    assert_ptr_equal(issue.user, anna);
    assert_int_equal(issue.expires_in_s, 3599);
    assert_int_equal(strncmp(issue.access, "ya29.", 5), 0);
    assert_int_equal(strncmp(issue.refresh, "1//", 3), 0);
    auto_text *access = strdup(issue.access);
    auto_text *refresh = strdup(issue.refresh);
    assert_true(is_good(&help, access));
    assert_true(refreshes(&help, ask.client, refresh));

    assert_false(box_auth_redeem(auth_of(&help), &redeem, help.now_ms, &issue, &error));
    assert_string_equal(error.error, "invalid_grant");
    assert_int_equal(error.http, 400);
    assert_false(is_good(&help, access));
    assert_false(refreshes(&help, ask.client, refresh));
}

struct misfit {
    const char *why; /* the error's text */
    const char *error;
    int http;
    struct box_redeem redeem;
    uint64_t later_ms;
};

TEST(a_code_fits_only_what_it_was_given_for)
{
    HELP(help, 3, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    const struct box_ask ask = ask_for(&help, "client-1", BOX_SCOPE_READONLY);
    const uint32_t other = box_auth_client(auth_of(&help), TIDE_TEXT("client-2"));
    auto_text *code = strdup(box_auth_code(auth_of(&help), &ask, anna, ask.scopes, help.now_ms));
    const struct box_redeem good = redeem_of(&ask, code);
    struct misfit misfits[] = {
        {"Malformed auth code.", "invalid_grant", 400, good, 0},
        {"Unauthorized", "unauthorized_client", 401, good, 0},
        {"Bad Request", "redirect_uri_mismatch", 400, good, 0},
        {"Missing code verifier.", "invalid_grant", 400, good, 0},
        {"Invalid code verifier.", "invalid_grant", 400, good, 0},
        {"Bad Request", "invalid_grant", 400, good, BOX_CODE_LIFE_MS},
    };
    misfits[0].redeem.code = TIDE_TEXT("4/0Anothing");
    misfits[1].redeem.client = other;
    misfits[2].redeem.redirect_uri = TIDE_TEXT("http://127.0.0.1:9004/else");
    misfits[3].redeem.verifier = TIDE_TEXT_NONE;
    misfits[4].redeem.verifier = TIDE_TEXT("abcdefghijklmnopqrstuvwxyz-._~0123456789ABCDEFg");
    struct box_issue issue;
    for (size_t i = 0; i < sizeof misfits / sizeof misfits[0]; i++) {
        struct box_oauth_error error = {0};
        assert_false(box_auth_redeem(auth_of(&help), &misfits[i].redeem,
                                     help.now_ms + misfits[i].later_ms, &issue, &error));
        assert_string_equal(error.text, misfits[i].why);
        assert_string_equal(error.error, misfits[i].error);
        assert_int_equal(error.http, misfits[i].http);
    }
    /* None of them used it up; a moment before its end it is still good. */
    struct box_oauth_error error;
    assert_true(
        box_auth_redeem(auth_of(&help), &good, help.now_ms + BOX_CODE_LIFE_MS - 1, &issue, &error));
}

static bool redeems_with(struct help *help, const struct box_ask *ask, tide_text verifier)
{
    struct box_user *anna = help_user(help, "anna@example.com");
    auto_text *code = strdup(box_auth_code(auth_of(help), ask, anna, ask->scopes, help->now_ms));
    struct box_redeem redeem = redeem_of(ask, code);
    redeem.verifier = verifier;
    struct box_issue issue;
    struct box_oauth_error error;
    return box_auth_redeem(auth_of(help), &redeem, help->now_ms, &issue, &error);
}

TEST(a_verifier_has_43_to_128_unreserved_characters)
{
    HELP(help, 4, false);
    struct box_ask ask = ask_for(&help, "client-1", BOX_SCOPE_READONLY);
    char letters[140];
    memset(letters, 'v', sizeof letters);
    for (size_t bytes = 40; bytes < 132; bytes++) {
        letters[bytes] = '\0';
        challenge_of(letters, ask.challenge);
        assert_int_equal(redeems_with(&help, &ask, (tide_text){letters, bytes}),
                         bytes >= 43 && bytes <= 128);
        letters[bytes] = 'v';
    }
    for (int c = 0; c < 256; c++) { /* the hash fits, the letter may not */
        char text[51];
        memset(text, 'v', 50);
        text[50] = '\0';
        text[20] = (char)c;
        unsigned char digest[32];
        box_sha256((tide_text){text, 50}, digest);
        tide_auto_buf hash = tide_buf_heap(64);
        box_add_base64url_bare(&hash, (tide_text){(const char *)digest, 32});
        memcpy(ask.challenge, hash.data, 44);
        const bool allowed = c != 0 && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                              "0123456789-._~",
                                              c) != NULL;
        assert_int_equal(redeems_with(&help, &ask, (tide_text){text, 50}), allowed);
    }
    ask.plain = true;
    (void)snprintf(ask.challenge, sizeof ask.challenge, "%s", VERIFIER);
    assert_true(redeems_with(&help, &ask, TIDE_TEXT(VERIFIER)));
    assert_false(redeems_with(&help, &ask, TIDE_TEXT(VERIFIER "x")));
    ask.challenge[0] = '\0'; /* no PKCE at all */
    assert_true(redeems_with(&help, &ask, TIDE_TEXT_NONE));
    assert_false(redeems_with(&help, &ask, TIDE_TEXT(VERIFIER)));
}

/* ---- tokens and grants (BAUT2, BAUT3, BAUT4) ---- */

TEST(an_access_token_dies_with_its_second_and_with_its_grant)
{
    HELP(help, 5, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    const struct box_ask ask = ask_for(&help, "77-web.apps.example", BOX_SCOPE_READONLY);
    auto_text *access = NULL, *refresh = NULL;
    sign_in(&help, anna, &ask, &access, &refresh);
    struct box_principal who;
    assert_true(box_auth_check(auth_of(&help), tide_text_of(access), help.now_ms, &who));
    assert_ptr_equal(who.user, anna);
    assert_int_equal(who.scopes, BOX_SCOPE_READONLY);
    assert_int_not_equal(who.project, 0);
    assert_false(is_good(&help, refresh)); /* not a bearer */
    help.now_ms += 3599 * 1000 - 1;
    assert_true(is_good(&help, access));
    help.now_ms += 1;
    assert_false(is_good(&help, access));
    assert_true(refreshes(&help, ask.client, refresh));
    free(access);
    free(refresh);

    sign_in(&help, anna, &ask, &access, &refresh);
    assert_true(box_auth_revoke(auth_of(&help), tide_text_of(access), help.now_ms));
    assert_false(is_good(&help, access));
    assert_false(refreshes(&help, ask.client, refresh));
    assert_false(box_auth_revoke(auth_of(&help), tide_text_of(access), help.now_ms));
    assert_false(box_auth_revoke(auth_of(&help), TIDE_TEXT("nothing"), help.now_ms));
}

TEST(clients_of_one_project_share_its_quota)
{
    HELP(help, 6, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    static const char *const clients[] = {"77-a.apps.example", "77-b.apps.example",
                                          "78-a.apps.example", "77a-x"};
    uint32_t projects[4];
    for (size_t i = 0; i < 4; i++) {
        const struct box_ask ask = ask_for(&help, clients[i], BOX_SCOPE_READONLY);
        auto_text *access = NULL, *refresh = NULL;
        sign_in(&help, anna, &ask, &access, &refresh);
        struct box_principal who;
        assert_true(box_auth_check(auth_of(&help), tide_text_of(access), help.now_ms, &who));
        projects[i] = who.project;
    }
    assert_int_equal(projects[0], projects[1]);
    assert_int_not_equal(projects[0], projects[2]);
    assert_int_not_equal(projects[0], projects[3]);
}

TEST(a_grant_has_no_scope_that_was_not_ticked)
{
    HELP(help, 7, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    struct box_ask ask = ask_for(&help, "client-1", BOX_SCOPE_READONLY | BOX_SCOPE_SEND);
    struct box_auth *auth = auth_of(&help);
    const char *code =
        box_auth_code(auth, &ask, anna, BOX_SCOPE_SEND | BOX_SCOPE_MAIL, help.now_ms);
    assert_int_equal(box_auth_code_scopes(auth, tide_text_of(code)), BOX_SCOPE_SEND);
    struct box_redeem redeem = redeem_of(&ask, code);
    struct box_issue issue;
    struct box_oauth_error error;
    assert_true(box_auth_redeem(auth, &redeem, help.now_ms, &issue, &error));
    assert_int_equal(issue.scopes, BOX_SCOPE_SEND);

    /* A refresh may ask for less, never for more. */
    auto_text *refresh = strdup(issue.refresh);
    assert_false(box_auth_refresh(auth, ask.client, tide_text_of(refresh),
                                  TIDE_TEXT("https://www.googleapis.com/auth/gmail.readonly"),
                                  help.now_ms, &issue, &error));
    assert_string_equal(error.error, "invalid_scope");
    assert_false(box_auth_refresh(auth, ask.client + 1, tide_text_of(refresh), TIDE_TEXT_NONE,
                                  help.now_ms, &issue, &error));
    assert_int_equal(error.http, 401);
    assert_false(box_auth_refresh(auth, ask.client, TIDE_TEXT("1//0nothing"), TIDE_TEXT_NONE,
                                  help.now_ms, &issue, &error));
    assert_string_equal(error.text, "Bad Request");

    /* What was granted before comes along when the client asks for it. */
    ask.scopes = BOX_SCOPE_LABELS;
    ask.with_granted = true;
    code = box_auth_code(auth, &ask, anna, BOX_SCOPE_LABELS, help.now_ms);
    assert_int_equal(box_auth_code_scopes(auth, tide_text_of(code)),
                     BOX_SCOPE_LABELS | BOX_SCOPE_SEND);
}

TEST(the_hundred_and_first_refresh_token_silently_kills_the_first)
{
    HELP(help, 8, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    struct box_user *ben = help_user(&help, "ben@example.com");
    const struct box_ask ask = ask_for(&help, "client-1", BOX_SCOPE_READONLY);
    const struct box_ask other = ask_for(&help, "client-2", BOX_SCOPE_READONLY);
    enum { COUNT = 103 };
    char *access[COUNT], *refresh[COUNT], *elsewhere[4];
    sign_in(&help, anna, &other, &elsewhere[0], &elsewhere[1]);
    sign_in(&help, ben, &ask, &elsewhere[2], &elsewhere[3]);
    for (size_t i = 0; i < COUNT; i++)
        sign_in(&help, anna, &ask, &access[i], &refresh[i]);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(is_good(&help, access[i]), i >= COUNT - 100);
        assert_int_equal(refreshes(&help, ask.client, refresh[i]), i >= COUNT - 100);
        free(access[i]);
        free(refresh[i]);
    }
    assert_true(refreshes(&help, other.client, elsewhere[1]));
    assert_true(refreshes(&help, ask.client, elsewhere[3]));
    for (size_t i = 0; i < 4; i++)
        free(elsewhere[i]);
}

TEST(grants_end_by_testing_password_disuse_and_revocation)
{
    HELP(help, 9, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    struct box_user *ben = help_user(&help, "ben@example.com");
    const struct box_ask mail = ask_for(&help, "c", BOX_SCOPE_READONLY | BOX_SCOPE_EMAIL);
    const struct box_ask who = ask_for(&help, "c", BOX_SCOPE_OPENID | BOX_SCOPE_EMAIL);
    const struct box_ask console = ask_for(&help, "c", BOX_SCOPE_CONSOLE);
    char *a[5], *r[5];
    sign_in(&help, anna, &mail, &a[0], &r[0]);
    sign_in(&help, anna, &console, &a[1], &r[1]);
    box_auth_password_changed(auth_of(&help), anna);
    assert_false(is_good(&help, a[0]));
    assert_false(refreshes(&help, mail.client, r[0]));
    assert_true(refreshes(&help, mail.client, r[1]));

    box_auth_expire_access(auth_of(&help), anna);
    assert_false(is_good(&help, a[1]));
    assert_true(refreshes(&help, mail.client, r[1]));

    box_auth_testing(auth_of(&help), true); /* also for the one that is there already */
    help.now_ms += DAY_MS;
    sign_in(&help, anna, &mail, &a[2], &r[2]);
    sign_in(&help, anna, &who, &a[3], &r[3]);
    help.now_ms += 6 * DAY_MS - 1;
    assert_true(refreshes(&help, mail.client, r[1]));
    help.now_ms += 1;
    assert_false(refreshes(&help, mail.client, r[1]));
    help.now_ms += DAY_MS - 1;
    assert_true(refreshes(&help, mail.client, r[2]));
    help.now_ms += 1;
    assert_false(refreshes(&help, mail.client, r[2]));
    assert_true(refreshes(&help, mail.client, r[3])); /* who a user is is no secret */

    box_auth_testing(auth_of(&help), false);
    sign_in(&help, ben, &mail, &a[4], &r[4]);
    help.now_ms += 179 * DAY_MS;
    assert_true(refreshes(&help, mail.client, r[4]));
    help.now_ms += 180 * DAY_MS - 1;
    assert_true(refreshes(&help, mail.client, r[4]));
    help.now_ms += 180 * DAY_MS;
    assert_false(refreshes(&help, mail.client, r[4]));
    assert_false(refreshes(&help, mail.client, r[3]));
    for (size_t i = 0; i < 5; i++) {
        free(a[i]);
        free(r[i]);
    }
    sign_in(&help, ben, &who, &a[0], &r[0]);
    box_auth_revoke_user(auth_of(&help), ben);
    assert_false(is_good(&help, a[0]));
    assert_false(refreshes(&help, mail.client, r[0]));
    free(a[0]);
    free(r[0]);
}

TEST(registered_clients_keep_unknown_ones_out)
{
    HELP(help, 10, false);
    struct box_auth *auth = auth_of(&help);
    const uint32_t foreign = box_auth_client(auth, TIDE_TEXT("unregistered"));
    assert_int_not_equal(foreign, 0);
    assert_true(box_auth_client_proves(auth, foreign, TIDE_TEXT("whatever")));
    assert_int_equal(box_auth_client(auth, TIDE_TEXT("a b")), 0);
    assert_int_equal(box_auth_client(auth, TIDE_TEXT("")), 0);
    assert_int_equal(box_auth_add_client(auth, TIDE_TEXT(""), TIDE_TEXT("s")), TIDE_INVALID);
    assert_ok(box_auth_add_client(auth, TIDE_TEXT("known"), TIDE_TEXT("s3cret")));
    const uint32_t known = box_auth_client(auth, TIDE_TEXT("known"));
    assert_int_not_equal(known, 0);
    assert_int_equal(box_auth_client(auth, TIDE_TEXT("unregistered")), 0);
    assert_true(box_auth_client_proves(auth, known, TIDE_TEXT("s3cret")));
    assert_false(box_auth_client_proves(auth, known, TIDE_TEXT("s3cre")));
    assert_false(box_auth_client_proves(auth, known, TIDE_TEXT_NONE));
}

TEST(spent_tokens_and_codes_are_swept)
{
    HELP(help, 11, false);
    struct box_user *anna = help_user(&help, "anna@example.com");
    const struct box_ask ask = ask_for(&help, "client-1", BOX_SCOPE_READONLY);
    auto_text *access = NULL, *refresh = NULL;
    sign_in(&help, anna, &ask, &access, &refresh);
    for (int i = 0; i < 20000; i++) {
        help.now_ms += 60000;
        assert_true(refreshes(&help, ask.client, refresh));
        assert_non_null(box_auth_code(auth_of(&help), &ask, anna, ask.scopes, help.now_ms));
    }
    assert_in_range(auth_of(&help)->living, 1, 2100); /* an hour's tokens, and as many expired */
}

/* ---- seed and state ---- */

TEST(the_seed_decides_every_token)
{
    char *access[3], *refresh[3];
    for (size_t i = 0; i < 3; i++) {
        HELP(help, i < 2 ? 42 : 43, false);
        struct box_user *anna = help_user(&help, "anna@example.com");
        const struct box_ask ask = ask_for(&help, "client-1", BOX_SCOPE_READONLY);
        sign_in(&help, anna, &ask, &access[i], &refresh[i]);
    }
    assert_string_equal(access[0], access[1]);
    assert_string_equal(refresh[0], refresh[1]);
    assert_string_not_equal(access[0], access[2]);
    assert_string_not_equal(refresh[0], refresh[2]);
    for (size_t i = 0; i < 3; i++) {
        free(access[i]);
        free(refresh[i]);
    }
}

/* Random sign-ins, refreshes and revocations; then a second cloud is
 * made from what was kept, and both must say the same of every token at every time, and
 * make the same next one. */
static void random_life(uint64_t seed)
{
    HELP(help, seed, false);
    auto_help again;
    tide_rng rng = tide_rng_seeded(seed);
    struct box_user *users[3];
    for (size_t i = 0; i < 3; i++) {
        char email[32];
        (void)snprintf(email, sizeof email, "user%zu@example.com", i);
        users[i] = help_user(&help, email);
    }
    enum { TOKENS = 400 };
    char *tokens[TOKENS];
    size_t count = 0;
    static const uint32_t scopes[] = {BOX_SCOPE_MAIL, BOX_SCOPE_OPENID, BOX_SCOPE_CONSOLE};
    while (count + 2 <= TOKENS) {
        help.now_ms += tide_rng_below(&rng, DAY_MS);
        struct box_user *user = users[tide_rng_below(&rng, 3)];
        const struct box_ask ask = ask_for(&help, tide_rng_chance(&rng, 1, 2) ? "c-1" : "c-2",
                                           scopes[tide_rng_below(&rng, 3)]);
        const uint64_t what = tide_rng_below(&rng, 100);
        struct box_issue issue;
        struct box_oauth_error error;
        if (what < 40) {
            sign_in(&help, user, &ask, &tokens[count], &tokens[count + 1]);
            count += 2;
        } else if (what < 80 && count > 0) {
            const char *token = tokens[tide_rng_below(&rng, count)];
            if (box_auth_refresh(auth_of(&help), ask.client, tide_text_of(token), TIDE_TEXT_NONE,
                                 help.now_ms, &issue, &error))
                tokens[count++] = strdup(issue.access);
        } else if (what < 90 && count > 0) {
            (void)box_auth_revoke(auth_of(&help), tide_text_of(tokens[tide_rng_below(&rng, count)]),
                                  help.now_ms);
        } else if (what == 90) {
            box_auth_revoke_user(auth_of(&help), user);
        } else if (what < 93) {
            box_auth_expire_access(auth_of(&help), user);
        } else if (what == 93) {
            box_auth_password_changed(auth_of(&help), user);
        } else if (what < 96) {
            box_auth_testing(auth_of(&help), tide_rng_chance(&rng, 1, 2));
        }
    }
    help_replay(&again, &help, seed);
    for (int hours = 0; hours < 24 * 200; hours += 7) {
        for (size_t i = 0; i < count; i++) {
            const uint64_t now_ms = help.now_ms + (uint64_t)hours * HOUR_MS;
            struct box_principal one = {0}, other = {0};
            const bool good = box_auth_check(auth_of(&help), tide_text_of(tokens[i]), now_ms, &one);
            if (good != box_auth_check(auth_of(&again), tide_text_of(tokens[i]), now_ms, &other))
                fail_msg("seed %llu, token %zu", (unsigned long long)seed, i);
            assert_int_equal(one.scopes, other.scopes);
            if (good)
                assert_string_equal(one.user->email, other.user->email);
            const uint32_t slot = box_secret_find(auth_of(&help), tide_text_of(tokens[i]));
            if (slot != 0 && auth_of(&help)->secrets[slot].kind == BOX_SECRET_REFRESH) {
                const uint32_t same = box_secret_find(auth_of(&again), tide_text_of(tokens[i]));
                assert_int_equal(
                    box_grant_lives(auth_of(&help), auth_of(&help)->secrets[slot].grant, now_ms),
                    box_grant_lives(auth_of(&again), auth_of(&again)->secrets[same].grant, now_ms));
            }
        }
    }
    const struct box_ask one = ask_for(&help, "c-1", BOX_SCOPE_MAIL);
    const struct box_ask other = ask_for(&again, "c-1", BOX_SCOPE_MAIL);
    char *texts[4];
    sign_in(&help, users[0], &one, &texts[0], &texts[1]);
    sign_in(&again, help_user(&again, users[0]->email), &other, &texts[2], &texts[3]);
    assert_string_equal(texts[0], texts[2]);
    assert_string_equal(texts[1], texts[3]);
    for (size_t i = 0; i < 4; i++)
        free(texts[i]);
    for (size_t i = 0; i < count; i++)
        free(tokens[i]);
}

TEST(what_was_kept_makes_the_same_tokens_good_again)
{
    const int lives = (int)scaled(20);
    for (int i = 0; i < lives; i++)
        random_life(1000 + (uint64_t)i);
}

TEST(a_code_a_key_and_clients_survive_too)
{
    HELP(help, 12, false);
    auto_help again;
    struct box_user *anna = help_user(&help, "anna@example.com");
    assert_ok(box_auth_add_client(auth_of(&help), TIDE_TEXT("known"), TIDE_TEXT("s")));
    assert_ok(box_auth_add_token(auth_of(&help), TIDE_TEXT("fix"), anna));
    const struct box_ask ask = ask_for(&help, "known", BOX_SCOPE_READONLY);
    auto_text *code = strdup(box_auth_code(auth_of(&help), &ask, anna, ask.scopes, help.now_ms));
    json_auto_t *jwks = box_auth_jwks(auth_of(&help));
    help_replay(&again, &help, 12);
    json_auto_t *same = box_auth_jwks(auth_of(&again));
    assert_true(json_equal(jwks, same));
    assert_int_equal(box_auth_client(auth_of(&again), TIDE_TEXT("foreign")), 0);
    assert_true(is_good(&again, "fix"));
    const struct box_redeem redeem = redeem_of(&ask, code);
    struct box_issue issue;
    struct box_oauth_error error;
    assert_true(box_auth_redeem(auth_of(&again), &redeem, help.now_ms, &issue, &error));
    assert_string_equal(issue.user->email, "anna@example.com");
}

TEST(broken_lines_are_refused)
{
    HELP(help, 13, false);
    static const char *const lines[] = {
        "{\"op\":\"auth-nothing\",\"serial\":1}",
        "{\"op\":\"auth-grant\"}",
        "{\"op\":\"auth-key\",\"pem\":\"x\",\"serial\":1}",
        "{\"op\":\"auth-revoke\",\"grant\":7,\"serial\":1}",
        "{\"op\":\"auth-grant\",\"grant\":1,\"code\":\"x\",\"refresh\":\"y\",\"at\":1,\"serial\":"
        "1}",
        "{\"op\":\"auth-access\",\"token\":\"t\",\"grant\":1,\"email\":\"a@b.c\",\"client\":\"c\","
        "\"scope\":\"openid\",\"at\":1,\"expires\":2,\"serial\":1}",
        "{\"op\":\"auth-account\",\"email\":\"a@b.c\",\"pem\":\"x\",\"serial\":1}",
        "{\"op\":\"auth-expire\",\"email\":\"nobody\",\"serial\":1}",
        "{\"op\":\"auth-delegate\",\"account\":\"x@y.z\",\"email\":\"a@b.c\",\"scope\":\"openid\","
        "\"serial\":1}",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        tide_error err = {0};
        assert_int_not_equal(box_cloud_replay(help.cloud, tide_text_of(lines[i]), &err), TIDE_OK);
    }
}

/* ---- signatures ---- */

TEST(a_key_is_the_same_after_its_own_pem)
{
    box_key *key = box_key_new();
    tide_auto_buf pem = tide_buf_heap(64 << 10);
    tide_auto_buf again = tide_buf_heap(64 << 10);
    tide_auto_buf token = tide_buf_heap(64 << 10);
    box_key_pem(key, &pem);
    box_key *same = box_key_from_pem(tide_buf_text(&pem));
    assert_non_null(same);
    assert_string_equal(box_key_id(key), box_key_id(same));
    box_key_pem(same, &again);
    assert_string_equal(tide_buf_cstr(&pem), tide_buf_cstr(&again));
    box_jwt_sign(same, json_pack("{s:s}", "sub", "x"), &token);
    assert_true(box_jwt_verify(key, tide_buf_text(&token)));
    assert_null(box_key_from_pem(TIDE_TEXT("-----BEGIN PRIVATE KEY-----\nAAAA\n")));
    assert_null(box_key_from_pem(TIDE_TEXT_NONE));

    /* Every single letter changed is noticed. */
    for (size_t i = 0; i < token.bytes; i++) {
        const char was = token.data[i];
        token.data[i] = was == 'A' ? 'B' : 'A';
        const bool good = box_jwt_verify(key, tide_buf_text(&token));
        /* The last letter of a signature has bits that stand for nothing. */
        if (good && i + 1 != token.bytes)
            fail_msg("letter %zu", i);
        token.data[i] = was;
    }
    json_auto_t *jwks = json_pack("{s:[o]}", "keys", box_key_jwk(key));
    json_decref(help_claims(jwks, tide_buf_cstr(&token)));
    box_key_free(key);
    box_key_free(same);
}

TEST(tokens_without_rs256_are_never_believed)
{
    box_key *key = box_key_new();
    static const char *const headers[] = {"{\"alg\":\"none\"}", "{\"alg\":\"HS256\"}",
                                          "{\"typ\":\"JWT\"}", "{\"alg\":7}", "[]"};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        tide_auto_buf token = tide_buf_heap(4096);
        box_add_base64url_bare(&token, tide_text_of(headers[i]));
        box_add_cstr(&token, ".");
        box_add_base64url_bare(&token, TIDE_TEXT("{\"sub\":\"x\"}"));
        box_add_cstr(&token, ".AAAA");
        assert_false(box_jwt_verify(key, tide_buf_text(&token)));
    }
    static const char *const shapes[] = {"",
                                         ".",
                                         "..",
                                         "a.b",
                                         "e30.e30",
                                         "e30.e30.",
                                         "e30.e30.A.A",
                                         "e30.e3 0.AAAA",
                                         "e30.e30.A==="};
    json_t *header, *claims;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        assert_false(box_jwt_read(tide_text_of(shapes[i]), &header, &claims));
        assert_false(box_jwt_verify(key, tide_text_of(shapes[i])));
    }
    /* Padded, as Google's older libraries write it, and bare. */
    assert_true(box_jwt_read(TIDE_TEXT("e30=.e30=.AA=="), &header, &claims));
    json_decref(header);
    json_decref(claims);
    assert_true(box_jwt_read(TIDE_TEXT("e30.e30.AAAA"), &header, &claims));
    json_decref(header);
    json_decref(claims);
    box_key_free(key);
}

/* ---- service accounts ---- */

struct assertion {
    const char *claim; /* replaced, or added */
    json_t *value;     /* NULL: taken away */
    const char *error; /* NULL: a token is given */
    const char *text;
};

static bool try_assertion(struct help *help, const box_key *key, const char *claim, json_t *value,
                          struct box_issue *issue, struct box_oauth_error *error)
{
    const json_int_t now_s = (json_int_t)(help->now_ms / 1000);
    json_t *claims =
        json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", "robot@proj.iam.gserviceaccount.com", "scope",
                  "https://www.googleapis.com/auth/gmail.readonly", "aud",
                  "https://oauth2.googleapis.com/token", "iat", now_s, "exp", now_s + 3600);
    if (value != NULL)
        json_object_set_new(claims, claim, value);
    else if (claim != NULL)
        json_object_del(claims, claim);
    tide_auto_buf token = tide_buf_heap(64 << 10);
    box_jwt_sign(key, claims, &token);
    return box_auth_assert(auth_of(help), tide_buf_text(&token), TIDE_TEXT(ORIGIN), help->now_ms,
                           issue, error);
}

#define TIMES                                                                                      \
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "  \
    "Check your iat and exp values in the JWT claim."
#define AUDIENCE                                                                                   \
    "Invalid JWT: Failed audience check. The right audience is "                                   \
    "https://oauth2.googleapis.com/token"

TEST(an_assertion_is_checked_strictly)
{
    HELP(help, 14, false);
    (void)help_user(&help, "anna@example.com");
    json_auto_t *file = NULL;
    const tide_text email = TIDE_TEXT("robot@proj.iam.gserviceaccount.com");
    assert_ok(box_auth_make_service_account(auth_of(&help), email, &file));
    assert_string_equal(help_text(file, "type"), "service_account");
    assert_string_equal(help_text(file, "project_id"), "proj");
    assert_string_equal(help_text(file, "token_uri"), "https://oauth2.googleapis.com/token");
    assert_int_equal(strlen(help_text(file, "client_id")), 21);
    box_key *key = box_key_from_pem(tide_text_of(help_text(file, "private_key")));
    assert_non_null(key);
    assert_string_equal(help_text(file, "private_key_id"), box_key_id(key));
    json_t *no_file = NULL;
    assert_int_equal(box_auth_make_service_account(auth_of(&help), email, &no_file), TIDE_EXISTS);
    assert_int_equal(box_auth_make_service_account(auth_of(&help), TIDE_TEXT("No Way"), &no_file),
                     TIDE_INVALID);

    const json_int_t now_s = (json_int_t)(help.now_ms / 1000);
    const struct assertion tries[] = {
        {NULL, NULL, NULL, NULL},
        {"sub", json_string("anna@example.com"), NULL, NULL},
        {"aud", json_string(ORIGIN "/token"), NULL, NULL},
        {"aud", json_string(ORIGIN "/oauth2/v4/token"), NULL, NULL},
        {"iat", json_integer(now_s + 299), NULL, NULL},
        {"exp", json_integer(now_s + 1), NULL, NULL},
        {"iss", NULL, "invalid_grant", "Invalid grant: account not found"},
        {"iss", json_string("x@y.z"), "invalid_grant", "Invalid grant: account not found"},
        {"aud", NULL, "invalid_grant", AUDIENCE},
        {"aud", json_string("https://evil.example/token"), "invalid_grant", AUDIENCE},
        {"aud", json_string(ORIGIN "/tokens"), "invalid_grant", AUDIENCE},
        {"aud", json_string(ORIGIN), "invalid_grant", AUDIENCE},
        {"exp", NULL, "invalid_grant", TIMES},
        {"iat", NULL, "invalid_grant", TIMES},
        {"exp", json_integer(now_s + 3601), "invalid_grant", TIMES},
        {"exp", json_integer(now_s), "invalid_grant", TIMES},
        {"iat", json_integer(now_s - 1), "invalid_grant", TIMES},
        {"iat", json_integer(now_s + 301), "invalid_grant", TIMES},
        {"exp", json_string("soon"), "invalid_grant", TIMES},
        {"scope", NULL, "invalid_scope", "Invalid OAuth scope or ID token audience provided."},
        {"scope", json_string("openid nonsense"), "invalid_scope",
         "Invalid OAuth scope or ID token audience provided."},
        {"sub", json_string("nobody@example.com"), "invalid_grant", "Invalid email or User ID"},
    };
    struct box_issue issue;
    struct box_oauth_error error;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const bool good = try_assertion(&help, key, tries[i].claim, tries[i].value, &issue, &error);
        if (good != (tries[i].error == NULL))
            fail_msg("assertion %zu", i);
        if (!good) {
            assert_string_equal(error.error, tries[i].error);
            assert_string_equal(error.text, tries[i].text);
            assert_int_equal(error.http, 400);
        } else {
            assert_null(issue.refresh);
            assert_true(is_good(&help, issue.access));
        }
    }
    box_key *wrong = box_key_new();
    assert_false(try_assertion(&help, wrong, NULL, NULL, &issue, &error));
    assert_string_equal(error.text, "Invalid JWT Signature.");
    assert_false(box_auth_assert(auth_of(&help), TIDE_TEXT("x"), TIDE_TEXT(ORIGIN), help.now_ms,
                                 &issue, &error));
    assert_string_equal(error.error, "invalid_grant");
    box_key_free(wrong);
    box_key_free(key);
}

TEST(delegation_can_be_narrowed_and_survives)
{
    HELP(help, 15, false);
    auto_help again;
    struct box_user *anna = help_user(&help, "anna@example.com");
    (void)help_user(&help, "ben@example.com");
    const tide_text email = TIDE_TEXT("robot@proj.iam.gserviceaccount.com");
    json_auto_t *file = NULL;
    assert_ok(box_auth_make_service_account(auth_of(&help), email, &file));
    box_key *key = box_key_from_pem(tide_text_of(help_text(file, "private_key")));
    struct box_issue issue;
    struct box_oauth_error error;
    json_auto_t *ben = json_string("ben@example.com");
    assert_true(try_assertion(&help, key, "sub", json_incref(ben), &issue, &error));
    auto_text *access = strdup(issue.access);
    assert_int_equal(box_auth_delegate(auth_of(&help), TIDE_TEXT("x@y.z"), anna, 1),
                     TIDE_NOT_FOUND);
    assert_ok(box_auth_delegate(auth_of(&help), email, anna, BOX_SCOPE_READONLY));
    help_replay(&again, &help, 15);
    struct help *both[2] = {&help, &again};
    for (size_t i = 0; i < 2; i++) {
        assert_true(is_good(both[i], access));
        assert_false(try_assertion(both[i], key, "sub", json_incref(ben), &issue, &error));
        assert_int_equal(error.http, 401);
        assert_string_equal(error.error, "unauthorized_client");
        assert_true(
            try_assertion(both[i], key, "sub", json_string("anna@example.com"), &issue, &error));
        assert_true(try_assertion(both[i], key, NULL, NULL, &issue, &error));
        assert_string_equal(issue.user->email, "robot@proj.iam.gserviceaccount.com");
    }
    assert_ok(box_auth_delegate(auth_of(&help), email, anna, BOX_SCOPE_SEND));
    assert_false(try_assertion(&help, key, "sub", json_string("anna@example.com"), &issue, &error));
    assert_true(box_auth_revoke(auth_of(&help), tide_text_of(access), help.now_ms));
    assert_false(is_good(&help, access));
    box_key_free(key);
}
