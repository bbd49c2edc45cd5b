/* token.c - the endpoints that programs call: tokens, keys, who is who. */
#include "cloudbox/signin/signin.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/signin/jwt.h"
#include "cloudbox/gate/user.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ISSUER "https://accounts.google.com"

enum { ID_TOKEN_LIFE_S = 3600 };

void box_oauth_fail(struct box_call *call, int http, const char *error, const char *text)
{
    box_answer_clear(call->answer);
    box_answer_json(call->answer, http,
                    json_pack("{s:s, s:s}", "error", error, "error_description", text), true);
    box_answer_secret(call->answer);
    if (http == 401)
        box_answer_header(call->answer, "WWW-Authenticate", "Basic realm=\"oauth2\"");
}

/* ---- reading a form ---- */

bool box_signin_form(struct box_call *call, struct box_param *params, size_t *count_out)
{
    size_t count = 0;
    const tide_text type = box_request_header(call->request, "Content-Type");
    const bool form =
        type.data == NULL ||
        (type.bytes >= 33 && strncasecmp(type.data, "application/x-www-form-urlencoded", 33) == 0);
    if (call->request->body.bytes > 0 && !form) {
        box_oauth_fail(call, 400, "invalid_request",
                       "The body must be application/x-www-form-urlencoded.");
        return false;
    }
    if (!box_params_parse(call->request->body, call->scratch, params, &count)) {
        box_oauth_fail(call, 400, "invalid_request", "The form is malformed.");
        return false;
    }
    for (size_t i = 0; i < call->target.params_count && count < BOX_PARAMS_MAX; i++)
        params[count++] = call->target.params[i];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (tide_text_equal(params[i].name, params[j].name)) {
                box_oauth_fail(call, 400, "invalid_request",
                               "OAuth 2 parameters can only have a single value.");
                return false;
            }
        }
    }
    *count_out = count;
    return true;
}

struct form {
    struct box_param *params;
    size_t count;
};

static bool form_read(struct box_call *call, struct form *form)
{
    form->params = tide_arena_take(call->scratch, BOX_PARAMS_MAX * sizeof(struct box_param));
    TIDE_ASSERT(form->params != NULL);
    return box_signin_form(call, form->params, &form->count);
}

static tide_text form_get(const struct form *form, const char *name)
{
    return box_param(form->params, form->count, name);
}

/* false: the answer names what is missing. */
static bool form_need(struct box_call *call, const struct form *form, const char *name,
                      tide_text *text_out)
{
    *text_out = form_get(form, name);
    if (text_out->bytes > 0)
        return true;
    char text[128];
    (void)snprintf(text, sizeof text, "Missing required parameter: %s", name);
    box_oauth_fail(call, 400, "invalid_request", text);
    return false;
}

/* ---- who is the client ---- */

/* "Basic base64(id:secret)"; both %-encoded, as RFC 6749 wants it. */
static bool basic_read(struct box_call *call, tide_text *id_out, tide_text *secret_out)
{
    const tide_text header = box_request_header(call->request, "Authorization");
    if (header.bytes <= 6 || strncasecmp(header.data, "Basic ", 6) != 0)
        return false;
    tide_auto_buf pair = tide_buf_heap(4096);
    bool good = false;
    if (header.bytes < 4096 &&
        box_base64_decode((tide_text){header.data + 6, header.bytes - 6}, &pair)) {
        char *colon = pair.bytes == 0 ? NULL : memchr(pair.data, ':', pair.bytes);
        struct box_param decoded[BOX_PARAMS_MAX];
        size_t count = 0;
        if (colon != NULL) {
            /* id:secret reads as the form "id=secret", with the same escapes. */
            *colon = '=';
            good = box_params_parse(tide_buf_text(&pair), call->scratch, decoded, &count) &&
                   count == 1;
        }
        if (good) {
            const tide_text id = decoded[0].name;
            const tide_text secret = decoded[0].value;
            id_out->data = tide_arena_copy(call->scratch, id.data, id.bytes);
            id_out->bytes = id.bytes;
            secret_out->data = tide_arena_copy(call->scratch, secret.data, secret.bytes);
            secret_out->bytes = secret.bytes;
        }
    }
    return good;
}

/* 0: the answer is a refusal. */
static uint32_t client_of(struct box_call *call, const struct form *form)
{
    tide_text id = TIDE_TEXT_NONE;
    tide_text secret = TIDE_TEXT_NONE;
    if (!basic_read(call, &id, &secret)) {
        if (!form_need(call, form, "client_id", &id))
            return 0;
        secret = form_get(form, "client_secret");
    }
    struct box_auth *auth = box_cloud_auth(call->cloud);
    const uint32_t client = box_auth_client(auth, id);
    if (client == 0) {
        box_oauth_fail(call, 401, "invalid_client", "The OAuth client was not found.");
        return 0;
    }
    if (!box_auth_client_proves(auth, client, secret)) {
        if (secret.data == NULL)
            box_oauth_fail(call, 400, "invalid_request", "client_secret is missing.");
        else
            box_oauth_fail(call, 401, "invalid_client", "Unauthorized");
        return 0;
    }
    return client;
}

/* ---- what a user is called ---- */

/* "anna.smith@example.com" is Anna Smith. */
static void name_of(const struct box_user *user, char name_out[BOX_EMAIL_BYTES_MAX + 1])
{
    size_t bytes = 0;
    bool capital = true;
    for (const char *c = user->email; *c != '\0' && *c != '@'; c++) {
        const bool gap = *c == '.' || *c == '_' || *c == '-' || *c == '+';
        char letter = gap ? ' ' : *c;
        if (capital && letter >= 'a' && letter <= 'z')
            letter = (char)(letter - 'a' + 'A');
        capital = gap;
        name_out[bytes++] = letter;
    }
    name_out[bytes] = '\0';
}

static void set_names(json_t *object, const struct box_user *user)
{
    char name[BOX_EMAIL_BYTES_MAX + 1];
    name_of(user, name);
    json_object_set_new(object, "name", json_string(name));
    const char *gap = strchr(name, ' ');
    const size_t first = gap == NULL ? strlen(name) : (size_t)(gap - name);
    json_object_set_new(object, "given_name", json_stringn(name, first));
    if (gap != NULL)
        json_object_set_new(object, "family_name", json_string(gap + 1));
}

/* ---- tokens ---- */

/* The first half of the access token's SHA-256. */
static void add_access_hash(json_t *claims, const char *access)
{
    unsigned char digest[32];
    box_sha256(tide_text_of(access), digest);
    tide_auto_buf text = tide_buf_heap(64);
    box_add_base64url_bare(&text, (tide_text){(const char *)digest, 16});
    json_object_set_new(claims, "at_hash", json_string(tide_buf_cstr(&text)));
}

static json_t *id_token_of(struct box_call *call, const struct box_issue *issue)
{
    struct box_auth *auth = box_cloud_auth(call->cloud);
    const char *client = box_auth_client_id(auth, issue->client);
    char subject[22];
    box_auth_subject(tide_text_of(issue->user->email), subject);
    json_t *claims = json_pack("{s:s, s:s, s:s, s:s}", "iss", ISSUER, "azp", client, "aud", client,
                               "sub", subject);
    TIDE_ASSERT(claims != NULL);
    if ((issue->scopes & BOX_SCOPE_EMAIL) != 0) {
        json_object_set_new(claims, "email", json_string(issue->user->email));
        json_object_set_new(claims, "email_verified", json_true());
    }
    add_access_hash(claims, issue->access);
    if (issue->nonce[0] != '\0')
        json_object_set_new(claims, "nonce", box_json_text(tide_text_of(issue->nonce)));
    if ((issue->scopes & BOX_SCOPE_PROFILE) != 0)
        set_names(claims, issue->user);
    const json_int_t now_s = (json_int_t)(call->now_ms / 1000);
    json_object_set_new(claims, "iat", json_integer(now_s));
    json_object_set_new(claims, "exp", json_integer(now_s + ID_TOKEN_LIFE_S));
    tide_auto_buf token = tide_buf_heap(BOX_JWT_BYTES_MAX);
    box_auth_sign(auth, claims, &token);
    return json_string(tide_buf_cstr(&token));
}

static void reply_tokens(struct box_call *call, const struct box_issue *issue)
{
    tide_auto_buf scope = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    box_scopes_text(issue->scopes, &scope);
    json_t *reply = json_pack("{s:s, s:I}", "access_token", issue->access, "expires_in",
                              (json_int_t)issue->expires_in_s);
    TIDE_ASSERT(reply != NULL);
    if (issue->refresh != NULL)
        json_object_set_new(reply, "refresh_token", json_string(issue->refresh));
    json_object_set_new(reply, "scope", json_string(tide_buf_cstr(&scope)));
    json_object_set_new(reply, "token_type", json_string("Bearer"));
    if ((issue->scopes & BOX_SCOPE_OPENID) != 0)
        json_object_set_new(reply, "id_token", id_token_of(call, issue));
    if (issue->refresh_expires_in_s > 0)
        json_object_set_new(reply, "refresh_token_expires_in",
                            json_integer((json_int_t)issue->refresh_expires_in_s));
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, reply, true);
    box_answer_secret(call->answer);
}

static bool token_by_code(struct box_call *call, const struct form *form, struct box_issue *issue,
                          struct box_oauth_error *error)
{
    struct box_redeem redeem = {0};
    if (!form_need(call, form, "code", &redeem.code))
        return false;
    redeem.client = client_of(call, form);
    if (redeem.client == 0 || !form_need(call, form, "redirect_uri", &redeem.redirect_uri))
        return false;
    redeem.verifier = form_get(form, "code_verifier");
    return box_auth_redeem(box_cloud_auth(call->cloud), &redeem, call->now_ms, issue, error);
}

static bool token_by_refresh(struct box_call *call, const struct form *form,
                             struct box_issue *issue, struct box_oauth_error *error)
{
    tide_text refresh;
    if (!form_need(call, form, "refresh_token", &refresh))
        return false;
    const uint32_t client = client_of(call, form);
    if (client == 0)
        return false;
    return box_auth_refresh(box_cloud_auth(call->cloud), client, refresh, form_get(form, "scope"),
                            call->now_ms, issue, error);
}

static bool token_by_assertion(struct box_call *call, const struct form *form,
                               struct box_issue *issue, struct box_oauth_error *error)
{
    tide_text assertion;
    if (!form_need(call, form, "assertion", &assertion))
        return false;
    return box_auth_assert(box_cloud_auth(call->cloud), assertion, call->request->origin,
                           call->now_ms, issue, error);
}

void box_signin_token(struct box_call *call)
{
    struct form form;
    tide_text type;
    if (!form_read(call, &form) || !form_need(call, &form, "grant_type", &type))
        return;
    struct box_issue issue = {0};
    struct box_oauth_error error = {0}; /* stays so when the answer is there already */
    bool good = false;
    if (tide_text_equal(type, TIDE_TEXT("authorization_code"))) {
        good = token_by_code(call, &form, &issue, &error);
    } else if (tide_text_equal(type, TIDE_TEXT("refresh_token"))) {
        good = token_by_refresh(call, &form, &issue, &error);
    } else if (tide_text_equal(type, TIDE_TEXT("urn:ietf:params:oauth:grant-type:jwt-bearer"))) {
        good = token_by_assertion(call, &form, &issue, &error);
    } else {
        char *text = tide_arena_take(call->scratch, 160);
        TIDE_ASSERT(text != NULL);
        (void)snprintf(text, 160, "Invalid grant_type: %.*s",
                       (int)(type.bytes > 100 ? 100 : type.bytes), type.data);
        box_answer_clear(call->answer);
        box_answer_json(call->answer, 400,
                        json_pack("{s:s, s:o}", "error", "unsupported_grant_type",
                                  "error_description", box_json_text(tide_text_of(text))),
                        true);
        box_answer_secret(call->answer);
        return;
    }
    if (good)
        reply_tokens(call, &issue);
    else if (error.error != NULL)
        box_oauth_fail(call, error.http, error.error, error.text);
}

void box_signin_revoke(struct box_call *call)
{
    struct form form;
    tide_text token;
    if (!form_read(call, &form) || !form_need(call, &form, "token", &token))
        return;
    if (!box_auth_revoke(box_cloud_auth(call->cloud), token, call->now_ms)) {
        box_oauth_fail(call, 400, "invalid_token", "Token expired or revoked");
        return;
    }
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, json_object(), true);
    box_answer_secret(call->answer);
}

/* ---- keys and discovery ---- */

void box_signin_certs(struct box_call *call)
{
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, box_auth_jwks(box_cloud_auth(call->cloud)), true);
    box_answer_header(call->answer, "Cache-Control", "public, max-age=3600, must-revalidate");
}

void box_signin_certs_pem(struct box_call *call)
{
    struct box_auth *auth = box_cloud_auth(call->cloud);
    json_auto_t *jwks = box_auth_jwks(auth);
    const json_t *key = json_array_get(json_object_get(jwks, "keys"), 0);
    tide_auto_buf pem = tide_buf_heap(BOX_JWT_BYTES_MAX);
    box_auth_public_pem(auth, &pem);
    json_t *map = json_object();
    json_object_set_new(map, json_string_value(json_object_get(key, "kid")),
                        json_string(tide_buf_cstr(&pem)));
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, map, true);
    box_answer_header(call->answer, "Cache-Control", "public, max-age=3600, must-revalidate");
}

static void set_url(json_t *object, const char *key, const struct box_call *call, const char *path)
{
    char url[600];
    const tide_text origin = call->request->origin;
    (void)snprintf(url, sizeof url, "%.*s%s", (int)(origin.bytes > 500 ? 500 : origin.bytes),
                   origin.data == NULL ? "" : origin.data, path);
    json_object_set_new(object, key, box_json_text(tide_text_of(url)));
}

void box_signin_discovery(struct box_call *call)
{
    json_t *reply = json_pack("{s:s}", "issuer", ISSUER);
    set_url(reply, "authorization_endpoint", call, "/o/oauth2/v2/auth");
    set_url(reply, "token_endpoint", call, "/token");
    set_url(reply, "userinfo_endpoint", call, "/v1/userinfo");
    set_url(reply, "revocation_endpoint", call, "/revoke");
    set_url(reply, "jwks_uri", call, "/oauth2/v3/certs");
    json_auto_t *rest = json_pack(
        "{s:[s], s:[s], s:[s], s:[s,s,s], s:[s,s], s:[s,s,s,s,s,s,s,s,s,s,s], s:[s,s], s:[s,s,s]}",
        "response_types_supported", "code", "subject_types_supported", "public",
        "id_token_signing_alg_values_supported", "RS256", "scopes_supported", "openid", "email",
        "profile", "token_endpoint_auth_methods_supported", "client_secret_post",
        "client_secret_basic", "claims_supported", "aud", "azp", "email", "email_verified", "exp",
        "family_name", "given_name", "iat", "iss", "name", "sub",
        "code_challenge_methods_supported", "plain", "S256", "grant_types_supported",
        "authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    TIDE_ASSERT(reply != NULL && rest != NULL);
    json_object_update(reply, rest);
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, reply, true);
}

/* ---- who is who ---- */

static void set_number_text(json_t *object, const char *key, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    json_object_set_new(object, key, json_string(text));
}

static json_t *access_info(struct box_call *call, tide_text token)
{
    struct box_auth *auth = box_cloud_auth(call->cloud);
    struct box_token_facts facts;
    if (!box_auth_facts(auth, token, call->now_ms, &facts))
        return NULL;
    json_t *reply = json_object();
    char subject[22];
    box_auth_subject(tide_text_of(facts.user->email), subject);
    if (facts.client != 0) {
        const char *client = box_auth_client_id(auth, facts.client);
        json_object_set_new(reply, "azp", json_string(client));
        json_object_set_new(reply, "aud", json_string(client));
    }
    json_object_set_new(reply, "sub", json_string(subject));
    tide_auto_buf scope = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    box_scopes_text(facts.scopes, &scope);
    json_object_set_new(reply, "scope", json_string(tide_buf_cstr(&scope)));
    if (facts.expires_ms != UINT64_MAX) {
        set_number_text(reply, "exp", facts.expires_ms / 1000);
        set_number_text(reply, "expires_in", (facts.expires_ms - call->now_ms) / 1000);
    }
    if ((facts.scopes & BOX_SCOPE_EMAIL) != 0) {
        json_object_set_new(reply, "email", json_string(facts.user->email));
        json_object_set_new(reply, "email_verified", json_string("true"));
    }
    json_object_set_new(reply, "access_type", json_string(facts.offline ? "offline" : "online"));
    return reply;
}

/* The claims, numbers and flags as text, as Google shows them. */
static json_t *id_info(struct box_call *call, tide_text token)
{
    json_t *header = NULL;
    json_t *claims = NULL;
    if (!box_auth_signed(box_cloud_auth(call->cloud), token) ||
        !box_jwt_read(token, &header, &claims))
        return NULL;
    json_t *reply = NULL;
    uint64_t expires_s = 0;
    if (tide_json_get_u64(claims, "exp", &expires_s, NULL) == TIDE_OK &&
        call->now_ms / 1000 < expires_s) {
        reply = json_object();
        const char *name = NULL;
        json_t *value = NULL;
        json_object_foreach(claims, name, value)
        {
            if (json_is_integer(value))
                set_number_text(reply, name, (uint64_t)json_integer_value(value));
            else if (json_is_boolean(value))
                json_object_set_new(reply, name,
                                    json_string(json_is_true(value) ? "true" : "false"));
            else
                json_object_set(reply, name, value);
        }
        json_object_set(reply, "kid", json_object_get(header, "kid"));
        json_object_set(reply, "alg", json_object_get(header, "alg"));
    }
    json_decref(header);
    json_decref(claims);
    return reply;
}

void box_signin_tokeninfo(struct box_call *call)
{
    struct form form;
    if (!form_read(call, &form))
        return;
    const tide_text access = form_get(&form, "access_token");
    const tide_text id = form_get(&form, "id_token");
    if ((access.bytes == 0) == (id.bytes == 0)) {
        box_oauth_fail(call, 400, "invalid_request", "either access_token or id_token required");
        return;
    }
    json_t *reply = access.bytes > 0 ? access_info(call, access) : id_info(call, id);
    if (reply == NULL) {
        box_oauth_fail(call, 400, "invalid_token", "Invalid Value");
        return;
    }
    box_answer_clear(call->answer);
    box_answer_json(call->answer, 200, reply, true);
    box_answer_secret(call->answer);
}

static void userinfo(struct box_call *call, const char *id_key, const char *verified_key)
{
    char subject[22];
    box_auth_subject(tide_text_of(call->user->email), subject);
    json_t *reply = json_object();
    json_object_set_new(reply, id_key, json_string(subject));
    if ((call->scopes & BOX_SCOPE_PROFILE) != 0)
        set_names(reply, call->user);
    if ((call->scopes & BOX_SCOPE_EMAIL) != 0) {
        json_object_set_new(reply, "email", json_string(call->user->email));
        json_object_set_new(reply, verified_key, json_true());
    }
    box_call_reply(call, reply);
}

void box_signin_userinfo(struct box_call *call)
{
    userinfo(call, "sub", "email_verified");
}

void box_signin_userinfo_v2(struct box_call *call)
{
    userinfo(call, "id", "verified_email");
}
