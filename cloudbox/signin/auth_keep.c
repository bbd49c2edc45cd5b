/* auth_keep.c - what survives the program: every change is handed out as one
 * line, and the lines, given back in order, make the same tokens good again.
 *
 * The same function applies a change in both directions, so that
 * what is replayed cannot differ from what happened. */
#include "cloudbox/signin/auth_state.h"

#include "base/check.h"
#include "base/json.h"

#include <string.h>

static const uint32_t SCOPES_GMAIL = BOX_SCOPE_MAIL | BOX_SCOPE_MODIFY | BOX_SCOPE_READONLY |
                                     BOX_SCOPE_METADATA | BOX_SCOPE_COMPOSE | BOX_SCOPE_SEND |
                                     BOX_SCOPE_INSERT | BOX_SCOPE_LABELS;

void box_auth_keep(struct box_auth *auth, json_t *change)
{
    TIDE_ASSERT(change != NULL);
    json_object_set_new(change, "serial", json_integer((json_int_t)auth->serial));
    box_cloud_keep(auth->cloud, change);
}

/* ---- the signing key ---- */

box_key *box_auth_key(struct box_auth *auth)
{
    if (auth->key == NULL) {
        auth->key = box_key_new();
        tide_auto_buf pem = tide_buf_heap(BOX_JWT_BYTES_MAX);
        box_key_pem(auth->key, &pem);
        box_auth_keep(auth, json_pack("{s:s, s:s}", "op", "auth-key", "pem", tide_buf_cstr(&pem)));
    }
    return auth->key;
}

void box_auth_sign(struct box_auth *auth, json_t *claims, tide_buf *out)
{
    box_jwt_sign(box_auth_key(auth), claims, out);
}

bool box_auth_signed(struct box_auth *auth, tide_text token)
{
    return auth->key != NULL && box_jwt_verify(auth->key, token);
}

json_t *box_auth_jwks(struct box_auth *auth)
{
    return json_pack("{s:[o]}", "keys", box_key_jwk(box_auth_key(auth)));
}

void box_auth_public_pem(struct box_auth *auth, tide_buf *out)
{
    box_key_public_pem(box_auth_key(auth), out);
}

/* ---- changes that come from outside ---- */

static void keep_of_user(struct box_auth *auth, const char *op, const struct box_user *user)
{
    box_auth_keep(auth, json_pack("{s:s, s:s}", "op", op, "email", user->email));
}

static void expire_fixed(struct box_auth *auth, const struct box_user *user)
{
    for (size_t i = 1; i < auth->secrets_count; i++) {
        struct box_secret *secret = &auth->secrets[i];
        if (secret->user == user &&
            (secret->kind == BOX_SECRET_FIXED || secret->kind == BOX_SECRET_CODE))
            secret->expires_ms = 0;
    }
}

void box_auth_revoke_user(struct box_auth *auth, const struct box_user *user)
{
    box_grants_revoke(auth, user, BOX_SCOPE_ALL);
    box_access_expire(auth, user);
    expire_fixed(auth, user);
    keep_of_user(auth, "auth-revoke-user", user);
}

void box_auth_expire_access(struct box_auth *auth, const struct box_user *user)
{
    box_access_expire(auth, user);
    keep_of_user(auth, "auth-expire", user);
}

void box_auth_password_changed(struct box_auth *auth, const struct box_user *user)
{
    box_grants_revoke(auth, user, SCOPES_GMAIL);
    keep_of_user(auth, "auth-password", user);
}

void box_auth_testing(struct box_auth *auth, bool on)
{
    box_grants_stamp(auth, on);
    box_auth_keep(auth, json_pack("{s:s, s:b}", "op", "auth-testing", "on", (int)on));
}

/* ---- replay ---- */

static tide_status get_user(struct box_auth *auth, const json_t *change, struct box_user **user_out,
                            tide_error *err)
{
    tide_text email;
    const tide_status rc = tide_json_get_text(change, "email", &email, err);
    if (rc != TIDE_OK)
        return rc;
    struct box_user *user = box_cloud_user_need(auth->cloud, email, NULL);
    if (user == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "a token of an unknown user");
    *user_out = user;
    return TIDE_OK;
}

/* Whose, whose client's and for what: the same in codes and tokens. */
static tide_status get_owner(struct box_auth *auth, const json_t *change,
                             struct box_secret *secret_out, tide_error *err)
{
    tide_text client, scope;
    struct box_secret secret = {0};
    tide_status rc = get_user(auth, change, &secret.user, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "client", &client, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "scope", &scope, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "at", &secret.made_ms, err);
    if (rc != TIDE_OK)
        return rc;
    secret.client = box_client_need(auth, client);
    secret.scopes = box_signin_scopes_parse(scope);
    if (secret.client == 0)
        return tide_error_set(err, TIDE_CORRUPT, "a token of no client");
    *secret_out = secret;
    return TIDE_OK;
}

/* false: it does not fit. */
static bool copy_text(char *to, size_t bytes_max, tide_text text)
{
    if (text.bytes > bytes_max)
        return false;
    memcpy(to, text.data, text.bytes);
    to[text.bytes] = '\0';
    return true;
}

static tide_status replay_code(struct box_auth *auth, const json_t *change, tide_error *err)
{
    struct box_secret secret;
    struct box_ask ask = {0};
    tide_text code, redirect, challenge, nonce;
    tide_status rc = get_owner(auth, change, &secret, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "code", &code, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "redirect", &redirect, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "challenge", &challenge, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "nonce", &nonce, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_bool(change, "plain", &ask.plain, err);
    if (rc != TIDE_OK)
        return rc;
    ask.client = secret.client;
    ask.scopes = secret.scopes;
    secret.kind = BOX_SECRET_CODE;
    secret.expires_ms = secret.made_ms + BOX_CODE_LIFE_MS;
    if (!copy_text(ask.redirect_uri, BOX_REDIRECT_BYTES_MAX, redirect) ||
        !copy_text(ask.challenge, BOX_CHALLENGE_BYTES_MAX, challenge) ||
        !copy_text(ask.nonce, BOX_NONCE_BYTES_MAX, nonce))
        return tide_error_set(err, TIDE_CORRUPT, "a code with a text too long");
    box_secrets_sweep(auth, secret.made_ms);
    if (box_code_add(auth, code, &secret, &ask) == 0)
        return tide_error_set(err, TIDE_CORRUPT, "a code that is there already");
    return TIDE_OK;
}

static tide_status replay_grant(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text code, refresh;
    uint64_t number = 0, at_ms = 0;
    tide_status rc = tide_json_get_text(change, "code", &code, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "refresh", &refresh, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "grant", &number, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "at", &at_ms, err);
    if (rc != TIDE_OK)
        return rc;
    const uint32_t slot = box_secret_find(auth, code);
    if (slot == 0 || auth->secrets[slot].kind != BOX_SECRET_CODE || number != auth->grants_count)
        return tide_error_set(err, TIDE_CORRUPT, "a grant out of its order");
    const struct box_secret *from = &auth->secrets[slot];
    const struct box_grant grant = {
        .user = from->user, .client = from->client, .scopes = from->scopes, .made_ms = at_ms};
    if (box_grant_add(auth, refresh, &grant) == 0)
        return tide_error_set(err, TIDE_CORRUPT, "a refresh token that is there already");
    auth->secrets[slot].used = true;
    auth->secrets[slot].grant = (uint32_t)number;
    return TIDE_OK;
}

static tide_status get_grant(const struct box_auth *auth, const json_t *change, uint64_t *grant_out,
                             tide_error *err)
{
    uint64_t grant = 0;
    const tide_status rc = tide_json_get_u64(change, "grant", &grant, err);
    if (rc != TIDE_OK)
        return rc;
    if (grant >= auth->grants_count)
        return tide_error_set(err, TIDE_CORRUPT, "there is no such grant");
    *grant_out = grant;
    return TIDE_OK;
}

static tide_status replay_access(struct box_auth *auth, const json_t *change, tide_error *err)
{
    struct box_secret secret;
    tide_text token;
    uint64_t grant = 0;
    tide_status rc = get_owner(auth, change, &secret, err);
    if (rc == TIDE_OK)
        rc = get_grant(auth, change, &grant, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "token", &token, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "expires", &secret.expires_ms, err);
    if (rc != TIDE_OK)
        return rc;
    secret.kind = BOX_SECRET_ACCESS;
    secret.grant = (uint32_t)grant;
    box_secrets_sweep(auth, secret.made_ms);
    if (box_secret_add(auth, token, &secret) == 0)
        return tide_error_set(err, TIDE_CORRUPT, "an access token that is there already");
    if (grant != 0)
        auth->grants[grant].used_ms = secret.made_ms;
    return TIDE_OK;
}

static tide_status replay_revoke(struct box_auth *auth, const json_t *change, tide_error *err)
{
    uint64_t grant = 0;
    const tide_status rc = get_grant(auth, change, &grant, err);
    if (rc == TIDE_OK && grant != 0)
        auth->grants[grant].dead = true;
    return rc;
}

static tide_status replay_drop(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text token;
    const tide_status rc = tide_json_get_text(change, "token", &token, err);
    const uint32_t slot = rc == TIDE_OK ? box_secret_find(auth, token) : 0;
    if (slot != 0)
        auth->secrets[slot].expires_ms = 0;
    return rc;
}

static tide_status replay_user(struct box_auth *auth, const json_t *change, tide_text op,
                               tide_error *err)
{
    struct box_user *user = NULL;
    const tide_status rc = get_user(auth, change, &user, err);
    if (rc != TIDE_OK)
        return rc;
    if (tide_text_equal(op, TIDE_TEXT("auth-revoke-user")))
        box_auth_revoke_user(auth, user);
    else if (tide_text_equal(op, TIDE_TEXT("auth-expire")))
        box_auth_expire_access(auth, user);
    else
        box_auth_password_changed(auth, user);
    return TIDE_OK;
}

static tide_status replay_client(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text id, secret;
    tide_status rc = tide_json_get_text(change, "id", &id, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "secret", &secret, err);
    if (rc == TIDE_OK && box_auth_add_client(auth, id, secret) != TIDE_OK)
        rc = tide_error_set(err, TIDE_CORRUPT, "a client that cannot be");
    return rc;
}

static tide_status replay_token(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text token;
    struct box_user *user = NULL;
    tide_status rc = get_user(auth, change, &user, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "token", &token, err);
    if (rc == TIDE_OK && box_auth_add_token(auth, token, user) != TIDE_OK)
        rc = tide_error_set(err, TIDE_CORRUPT, "a token that cannot be");
    return rc;
}

static tide_status replay_key(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text pem;
    const tide_status rc = tide_json_get_text(change, "pem", &pem, err);
    if (rc != TIDE_OK)
        return rc;
    box_key *key = box_key_from_pem(pem);
    if (key == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "the signing key is broken");
    box_key_free(auth->key);
    auth->key = key;
    return TIDE_OK;
}

static tide_status replay_testing(struct box_auth *auth, const json_t *change, tide_error *err)
{
    bool on = false;
    const tide_status rc = tide_json_get_bool(change, "on", &on, err);
    if (rc == TIDE_OK)
        box_grants_stamp(auth, on);
    return rc;
}

static tide_status replay_account(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text email, pem;
    tide_status rc = tide_json_get_text(change, "email", &email, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "pem", &pem, err);
    if (rc != TIDE_OK)
        return rc;
    box_key *key = box_key_from_pem(pem);
    if (key == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "the key of a service account is broken");
    struct box_account *account = box_account_find(auth, email);
    if (account != NULL) { /* made again by the set-up: the key that was handed out stays */
        box_key_free(account->key);
        account->key = key;
        return TIDE_OK;
    }
    if (box_account_add(auth, email, key) == NULL) {
        box_key_free(key);
        return tide_error_set(err, TIDE_CORRUPT, "a broken service account");
    }
    return TIDE_OK;
}

static tide_status replay_delegate(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text account, scope;
    struct box_user *user = NULL;
    tide_status rc = get_user(auth, change, &user, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "account", &account, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(change, "scope", &scope, err);
    if (rc == TIDE_OK &&
        box_auth_delegate(auth, account, user, box_signin_scopes_parse(scope)) != TIDE_OK)
        rc = tide_error_set(err, TIDE_CORRUPT, "a delegation that cannot be");
    return rc;
}

static const struct {
    const char *op;
    tide_status (*replay)(struct box_auth *auth, const json_t *change, tide_error *err);
} replays[] = {
    {"auth-key", replay_key},         {"auth-client", replay_client},
    {"auth-code", replay_code},       {"auth-grant", replay_grant},
    {"auth-access", replay_access},   {"auth-revoke", replay_revoke},
    {"auth-drop", replay_drop},       {"auth-testing", replay_testing},
    {"auth-account", replay_account}, {"auth-delegate", replay_delegate},
    {"auth-token", replay_token},
};

tide_status box_auth_replay(struct box_auth *auth, const json_t *change, tide_error *err)
{
    tide_text op;
    uint64_t serial = 0;
    tide_status rc = tide_json_get_text(change, "op", &op, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(change, "serial", &serial, err);
    if (rc != TIDE_OK)
        return rc;
    if (serial > auth->serial)
        auth->serial = serial; /* no text is issued twice */
    for (size_t i = 0; i < sizeof replays / sizeof replays[0]; i++) {
        if (tide_text_equal(op, tide_text_of(replays[i].op)))
            return replays[i].replay(auth, change, err);
    }
    if (tide_text_equal(op, TIDE_TEXT("auth-revoke-user")) ||
        tide_text_equal(op, TIDE_TEXT("auth-expire")) ||
        tide_text_equal(op, TIDE_TEXT("auth-password")))
        return replay_user(auth, change, op, err);
    return tide_error_set(err, TIDE_CORRUPT, "no such change of sign-in: %.*s",
                          (int)(op.bytes > 40 ? 40 : op.bytes), op.data);
}
