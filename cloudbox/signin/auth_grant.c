/* auth_grant.c - clients, tickets, codes, grants and the tokens that come of them. */
#include "cloudbox/signin/auth_state.h"

#include "base/check.h"

#include <string.h>

#define DAY_MS (UINT64_C(24) * 3600 * 1000)

enum {
    TESTING_DAYS = 7,
    UNUSED_DAYS = 180, /* six months without use */
    VERIFIER_BYTES_MIN = 43,
    VERIFIER_BYTES_MAX = 128,
    CODE_LETTERS = 69,
    ACCESS_LETTERS = 183,
    REFRESH_LETTERS = 96,
};

static const uint32_t SCOPES_WHO = BOX_SCOPE_OPENID | BOX_SCOPE_EMAIL | BOX_SCOPE_PROFILE;

/* ---- clients ---- */

/* What clients of one project share: the number in front ("1234-abc.apps...") or
 * the domain of a service account; else the whole id. */
static tide_text project_key(tide_text id)
{
    const char *at = memchr(id.data, '@', id.bytes);
    if (at != NULL)
        return (tide_text){at, id.bytes - (size_t)(at - id.data)};
    size_t digits = 0;
    while (digits < id.bytes && id.data[digits] >= '0' && id.data[digits] <= '9')
        digits++;
    if (digits > 0 && digits < id.bytes && id.data[digits] == '-')
        return (tide_text){id.data, digits};
    return id;
}

static uint32_t client_find(const struct box_auth *auth, tide_text id)
{
    for (uint32_t i = 1; i < auth->clients_count; i++) {
        if (tide_text_equal(id, tide_text_of(auth->clients[i].id)))
            return i;
    }
    return 0;
}

bool box_is_printable(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    }
    return text.bytes > 0;
}

uint32_t box_client_need(struct box_auth *auth, tide_text id)
{
    uint32_t number = client_find(auth, id);
    if (number != 0)
        return number;
    if (!box_is_printable(id) || id.bytes > BOX_CLIENT_BYTES_MAX)
        return 0;
    if (!TIDE_GROW(auth->clients, auth->clients_capacity, auth->clients_count + 1, BOX_CLIENTS_MAX))
        return 0;
    number = (uint32_t)auth->clients_count++;
    struct box_client *client = &auth->clients[number];
    memcpy(client->id, id.data, id.bytes);
    client->project = number;
    for (uint32_t i = 1; i < number && client->project == number; i++) {
        if (tide_text_equal(project_key(id), project_key(tide_text_of(auth->clients[i].id))))
            client->project = auth->clients[i].project;
    }
    return number;
}

uint32_t box_auth_client(struct box_auth *auth, tide_text id)
{
    if (!auth->clients_registered)
        return box_client_need(auth, id);
    const uint32_t number = client_find(auth, id);
    return number != 0 && auth->clients[number].registered ? number : 0;
}

const char *box_auth_client_id(const struct box_auth *auth, uint32_t client)
{
    TIDE_ASSERT(client > 0 && client < auth->clients_count);
    return auth->clients[client].id;
}

bool box_auth_client_proves(const struct box_auth *auth, uint32_t client, tide_text secret)
{
    TIDE_ASSERT(client > 0 && client < auth->clients_count);
    const struct box_client *known = &auth->clients[client];
    return !known->registered || tide_text_equal(secret, tide_text_of(known->secret));
}

tide_status box_auth_add_client(struct box_auth *auth, tide_text id, tide_text secret)
{
    if (!box_is_printable(id) || id.bytes > BOX_CLIENT_BYTES_MAX)
        return TIDE_INVALID;
    if (secret.bytes > BOX_CLIENT_BYTES_MAX || (secret.bytes > 0 && !box_is_printable(secret)))
        return TIDE_INVALID;
    const uint32_t number = box_client_need(auth, id);
    if (number == 0)
        return TIDE_FULL;
    struct box_client *client = &auth->clients[number];
    const bool known = client->registered && tide_text_equal(secret, tide_text_of(client->secret));
    memset(client->secret, 0, sizeof client->secret);
    if (secret.bytes > 0)
        memcpy(client->secret, secret.data, secret.bytes);
    client->registered = true;
    auth->clients_registered = true;
    if (!known)
        box_auth_keep(auth, json_pack("{s:s, s:s, s:s}", "op", "auth-client", "id", client->id,
                                      "secret", client->secret));
    return TIDE_OK;
}

/* ---- tickets ---- */

void box_auth_ticket(struct box_auth *auth, const struct box_ask *ask, uint64_t now_ms,
                     tide_buf *out)
{
    if (auth->tickets == NULL) {
        auth->tickets = tide_mem_array(tide_mem_heap(), BOX_TICKETS_MAX, sizeof auth->tickets[0]);
        TIDE_ASSERT(auth->tickets != NULL);
    }
    /* Tickets do not outlive the program, so their serial is not kept; the time
     * keeps a ticket of an earlier life from being one of this. */
    const uint64_t serial = auth->tickets_serial++;
    struct box_pending *pending = &auth->tickets[serial % BOX_TICKETS_MAX];
    box_letters(auth->seed ^ now_ms, ~serial, BOX_TICKET_BYTES, pending->ticket);
    pending->expires_ms = now_ms + BOX_CODE_LIFE_MS;
    pending->ask = *ask;
    box_add_cstr(out, pending->ticket);
}

bool box_auth_ticket_take(struct box_auth *auth, tide_text ticket, uint64_t now_ms,
                          struct box_ask *ask_out)
{
    if (auth->tickets == NULL || ticket.bytes != BOX_TICKET_BYTES)
        return false;
    for (size_t i = 0; i < BOX_TICKETS_MAX; i++) {
        struct box_pending *pending = &auth->tickets[i];
        if (!tide_text_equal(ticket, tide_text_of(pending->ticket)))
            continue;
        pending->ticket[0] = '\0';
        if (now_ms >= pending->expires_ms)
            return false;
        *ask_out = pending->ask;
        return true;
    }
    return false;
}

/* ---- grants ---- */

bool box_grant_lives(const struct box_auth *auth, uint32_t grant, uint64_t now_ms)
{
    TIDE_ASSERT(grant > 0 && grant < auth->grants_count);
    const struct box_grant *it = &auth->grants[grant];
    return !it->dead && now_ms < it->expires_ms && now_ms < it->used_ms + UNUSED_DAYS * DAY_MS;
}

static uint64_t testing_end_ms(const struct box_grant *grant)
{
    return (grant->scopes & ~SCOPES_WHO) == 0 ? UINT64_MAX : grant->made_ms + TESTING_DAYS * DAY_MS;
}

/* BAUT4: makes room for one more refresh token. */
static void drop_oldest(struct box_auth *auth, const struct box_grant *wanted)
{
    uint32_t oldest = 0;
    size_t living = 0;
    for (uint32_t i = 1; i < auth->grants_count; i++) {
        const struct box_grant *grant = &auth->grants[i];
        if (grant->user != wanted->user || grant->client != wanted->client ||
            !box_grant_lives(auth, i, wanted->made_ms))
            continue;
        if (oldest == 0)
            oldest = i; /* they are in the order of their creation */
        living++;
    }
    if (living >= BOX_REFRESH_MAX)
        auth->grants[oldest].dead = true;
}

uint32_t box_grant_add(struct box_auth *auth, tide_text refresh, const struct box_grant *wanted)
{
    if (!TIDE_GROW(auth->grants, auth->grants_capacity, auth->grants_count + 1, BOX_GRANTS_MAX))
        return 0;
    const uint32_t number = (uint32_t)auth->grants_count;
    const struct box_secret secret = {.kind = BOX_SECRET_REFRESH,
                                      .grant = number,
                                      .user = wanted->user,
                                      .client = wanted->client,
                                      .scopes = wanted->scopes,
                                      .made_ms = wanted->made_ms,
                                      .expires_ms = UINT64_MAX};
    const uint32_t slot = box_secret_add(auth, refresh, &secret);
    if (slot == 0)
        return 0;
    drop_oldest(auth, wanted);
    auth->grants_count++;
    struct box_grant *grant = &auth->grants[number];
    *grant = *wanted;
    grant->refresh = slot;
    grant->used_ms = grant->made_ms;
    grant->expires_ms = auth->testing ? testing_end_ms(grant) : UINT64_MAX;
    return number;
}

void box_grants_revoke(struct box_auth *auth, const struct box_user *user, uint32_t scopes)
{
    for (size_t i = 1; i < auth->grants_count; i++) {
        if (auth->grants[i].user == user && (auth->grants[i].scopes & scopes) != 0)
            auth->grants[i].dead = true;
    }
}

void box_grants_stamp(struct box_auth *auth, bool on)
{
    auth->testing = on;
    for (size_t i = 1; on && i < auth->grants_count; i++) {
        if (auth->grants[i].expires_ms == UINT64_MAX)
            auth->grants[i].expires_ms = testing_end_ms(&auth->grants[i]);
    }
}

void box_access_expire(struct box_auth *auth, const struct box_user *user)
{
    for (size_t i = 1; i < auth->secrets_count; i++) {
        if (auth->secrets[i].user == user && auth->secrets[i].kind == BOX_SECRET_ACCESS)
            auth->secrets[i].expires_ms = 0;
    }
}

/* ---- codes ---- */

uint32_t box_code_add(struct box_auth *auth, tide_text code, const struct box_secret *secret,
                      const struct box_ask *ask)
{
    TIDE_ASSERT(secret->kind == BOX_SECRET_CODE);
    if (auth->codes >= BOX_CODES_MAX)
        return 0;
    const uint32_t slot = box_secret_add(auth, code, secret);
    if (slot == 0)
        return 0;
    auth->secrets[slot].ask = tide_mem_new(tide_mem_heap(), sizeof *ask);
    TIDE_ASSERT(auth->secrets[slot].ask != NULL);
    *auth->secrets[slot].ask = *ask;
    return slot;
}

static void keep_code(struct box_auth *auth, const struct box_secret *secret)
{
    tide_auto_buf scopes = tide_buf_heap(BOX_SECRET_BYTES_MAX);
    box_signin_scopes_text(secret->scopes, &scopes);
    const struct box_ask *ask = secret->ask;
    box_auth_keep(auth, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:I}", "op",
                                  "auth-code", "code", secret->text, "email", secret->user->email,
                                  "client", auth->clients[secret->client].id, "scope",
                                  tide_buf_cstr(&scopes), "redirect", ask->redirect_uri,
                                  "challenge", ask->challenge, "plain", (int)ask->plain, "nonce",
                                  ask->nonce, "at", (json_int_t)secret->made_ms));
}

/* What valid grants of this user let the client's project do already. */
static uint32_t granted_before(const struct box_auth *auth, const struct box_user *user,
                               uint32_t client, uint64_t now_ms)
{
    uint32_t scopes = 0;
    const uint32_t project = auth->clients[client].project;
    for (uint32_t i = 1; i < auth->grants_count; i++) {
        const struct box_grant *grant = &auth->grants[i];
        if (grant->user == user && auth->clients[grant->client].project == project &&
            box_grant_lives(auth, i, now_ms))
            scopes |= grant->scopes;
    }
    return scopes;
}

const char *box_auth_code(struct box_auth *auth, const struct box_ask *ask, struct box_user *user,
                          uint32_t scopes, uint64_t now_ms)
{
    TIDE_ASSERT(user != NULL);
    scopes &= ask->scopes; /* BAUT3 */
    if (ask->with_granted)
        scopes |= granted_before(auth, user, ask->client, now_ms);
    box_secrets_sweep(auth, now_ms);
    tide_buf text = tide_buf_heap(BOX_SECRET_BYTES_MAX);
    /* Each provider's form; clients look for Microsoft's without a slash. */
    box_secret_text(auth, ask->microsoft ? "M.C5_BL2.2.U." : "4/0A", CODE_LETTERS, &text);
    const struct box_secret secret = {.kind = BOX_SECRET_CODE,
                                      .user = user,
                                      .client = ask->client,
                                      .scopes = scopes,
                                      .made_ms = now_ms,
                                      .expires_ms = now_ms + BOX_CODE_LIFE_MS};
    const uint32_t slot = box_code_add(auth, tide_buf_text(&text), &secret, ask);
    tide_buf_done(&text);
    if (slot == 0)
        return NULL;
    keep_code(auth, &auth->secrets[slot]);
    return auth->secrets[slot].text;
}

uint32_t box_auth_code_scopes(const struct box_auth *auth, tide_text code)
{
    const uint32_t slot = box_secret_find(auth, code);
    return slot != 0 && auth->secrets[slot].kind == BOX_SECRET_CODE ? auth->secrets[slot].scopes
                                                                    : 0;
}

/* ---- tokens ---- */

static bool refuse(struct box_oauth_error *error_out, int http, const char *error, const char *text)
{
    *error_out = (struct box_oauth_error){http, error, text};
    return false;
}

static bool refuse_full(struct box_oauth_error *error_out)
{
    return refuse(error_out, 503, "temporarily_unavailable", "Too many tokens are alive.");
}

uint32_t box_access_issue(struct box_auth *auth, const struct box_secret *like, uint64_t now_ms,
                          struct box_issue *issue_out)
{
    box_secrets_sweep(auth, now_ms);
    const uint64_t life_s = box_cloud_options(auth->cloud)->token_life_s;
    struct box_secret secret = *like;
    secret.kind = BOX_SECRET_ACCESS;
    secret.made_ms = now_ms;
    secret.expires_ms = now_ms + life_s * 1000;
    tide_auto_buf text = tide_buf_heap(BOX_SECRET_BYTES_MAX);
    box_secret_text(auth, "ya29.a0", ACCESS_LETTERS, &text);
    const uint32_t slot = box_secret_add(auth, tide_buf_text(&text), &secret);
    if (slot != 0) {
        const char *token = auth->secrets[slot].text;
        tide_buf_clear(&text);
        box_signin_scopes_text(secret.scopes, &text);
        box_auth_keep(auth,
                      json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:I, s:I}", "op", "auth-access",
                                "token", token, "grant", (json_int_t)secret.grant, "email",
                                secret.user->email, "client", auth->clients[secret.client].id,
                                "scope", tide_buf_cstr(&text), "at", (json_int_t)now_ms, "expires",
                                (json_int_t)secret.expires_ms));
        *issue_out = (struct box_issue){.user = secret.user,
                                        .client = secret.client,
                                        .scopes = secret.scopes,
                                        .expires_in_s = life_s,
                                        .access = token,
                                        .nonce = ""};
    }
    return slot;
}

static bool is_verifier(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i];
        const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(c >= '0' && c <= '9') && memchr("-._~", c, 4) == NULL)
            return false;
    }
    return text.bytes >= VERIFIER_BYTES_MIN && text.bytes <= VERIFIER_BYTES_MAX;
}

static bool verifier_fits(const struct box_ask *ask, tide_text verifier)
{
    if (!is_verifier(verifier))
        return false;
    if (ask->plain)
        return tide_text_equal(verifier, tide_text_of(ask->challenge));
    unsigned char digest[32];
    box_sha256(verifier, digest);
    tide_auto_buf text = tide_buf_heap(64);
    box_add_base64url_bare(&text, (tide_text){(const char *)digest, sizeof digest});
    return tide_text_equal(tide_buf_text(&text), tide_text_of(ask->challenge));
}

/* Everything about a code that must fit (BAUT1), but that it is used once. */
static bool redeem_fits(const struct box_secret *code, const struct box_redeem *redeem,
                        struct box_oauth_error *error_out)
{
    const struct box_ask *ask = code->ask;
    if (code->client != redeem->client)
        return refuse(error_out, 401, "unauthorized_client", "Unauthorized");
    if (!tide_text_equal(redeem->redirect_uri, tide_text_of(ask->redirect_uri)))
        return refuse(error_out, 400, "redirect_uri_mismatch", "Bad Request");
    if (ask->challenge[0] == '\0' && redeem->verifier.data != NULL)
        return refuse(error_out, 400, "invalid_grant", "code_verifier or verifier is not needed.");
    if (ask->challenge[0] != '\0' && redeem->verifier.data == NULL)
        return refuse(error_out, 400, "invalid_grant", "Missing code verifier.");
    if (ask->challenge[0] != '\0' && !verifier_fits(ask, redeem->verifier))
        return refuse(error_out, 400, "invalid_grant", "Invalid code verifier.");
    return true;
}

static void revoke_grant(struct box_auth *auth, uint32_t grant)
{
    if (auth->grants[grant].dead)
        return;
    auth->grants[grant].dead = true;
    box_auth_keep(auth, json_pack("{s:s, s:I}", "op", "auth-revoke", "grant", (json_int_t)grant));
}

/* A grant with its refresh token, out of a code that fits; 0: full. */
static uint32_t grant_of(struct box_auth *auth, uint32_t code_slot, uint64_t now_ms)
{
    const struct box_secret *code = &auth->secrets[code_slot];
    const struct box_grant wanted = {
        .user = code->user, .client = code->client, .scopes = code->scopes, .made_ms = now_ms};
    tide_buf text = tide_buf_heap(BOX_SECRET_BYTES_MAX);
    box_secret_text(auth, "1//0", REFRESH_LETTERS, &text);
    const uint32_t grant = box_grant_add(auth, tide_buf_text(&text), &wanted);
    tide_buf_done(&text);
    if (grant == 0)
        return 0;
    struct box_secret *used = &auth->secrets[code_slot]; /* the table may have moved */
    used->used = true;
    used->grant = grant;
    box_auth_keep(auth, json_pack("{s:s, s:I, s:s, s:s, s:I}", "op", "auth-grant", "grant",
                                  (json_int_t)grant, "code", used->text, "refresh",
                                  auth->secrets[auth->grants[grant].refresh].text, "at",
                                  (json_int_t)now_ms));
    return grant;
}

bool box_auth_redeem(struct box_auth *auth, const struct box_redeem *redeem, uint64_t now_ms,
                     struct box_issue *issue_out, struct box_oauth_error *error_out)
{
    const uint32_t slot = box_secret_find(auth, redeem->code);
    if (slot == 0 || auth->secrets[slot].kind != BOX_SECRET_CODE)
        return refuse(error_out, 400, "invalid_grant", "Malformed auth code.");
    if (now_ms >= auth->secrets[slot].expires_ms)
        return refuse(error_out, 400, "invalid_grant", "Bad Request");
    if (auth->secrets[slot].used) {
        /* Another client has the code too: what it gave is not to be trusted. */
        revoke_grant(auth, auth->secrets[slot].grant);
        return refuse(error_out, 400, "invalid_grant", "Bad Request");
    }
    if (!redeem_fits(&auth->secrets[slot], redeem, error_out))
        return false;

    const uint32_t grant = grant_of(auth, slot, now_ms);
    if (grant == 0)
        return refuse_full(error_out);
    const struct box_grant *made = &auth->grants[grant];
    const struct box_secret like = {
        .grant = grant, .user = made->user, .client = made->client, .scopes = made->scopes};
    /* A sweep cannot take the code: it is younger than ten minutes. */
    if (box_access_issue(auth, &like, now_ms, issue_out) == 0)
        return refuse_full(error_out);
    issue_out->refresh = auth->secrets[made->refresh].text;
    issue_out->nonce = auth->secrets[slot].ask->nonce;
    if (made->expires_ms != UINT64_MAX)
        issue_out->refresh_expires_in_s = (made->expires_ms - now_ms) / 1000;
    return true;
}

/* The grant of a refresh token that is good for this client; 0: refused. */
static uint32_t refresh_fits(const struct box_auth *auth, uint32_t client, tide_text refresh,
                             uint64_t now_ms, struct box_oauth_error *error_out)
{
    const uint32_t slot = box_secret_find(auth, refresh);
    if (slot == 0 || auth->secrets[slot].kind != BOX_SECRET_REFRESH)
        return refuse(error_out, 400, "invalid_grant", "Bad Request");
    const uint32_t number = auth->secrets[slot].grant;
    if (auth->secrets[slot].client != client)
        return refuse(error_out, 401, "unauthorized_client", "Unauthorized");
    if (!box_grant_lives(auth, number, now_ms))
        return refuse(error_out, 400, "invalid_grant", "Token has been expired or revoked.");
    return number;
}

bool box_auth_refresh(struct box_auth *auth, uint32_t client, tide_text refresh, tide_text scope,
                      uint64_t now_ms, struct box_issue *issue_out,
                      struct box_oauth_error *error_out)
{
    const uint32_t number = refresh_fits(auth, client, refresh, now_ms, error_out);
    if (number == 0)
        return false;
    uint32_t scopes = auth->grants[number].scopes;
    if (scope.bytes > 0) {
        const uint32_t wanted = box_signin_scopes_parse(scope);
        if (wanted == 0 || (wanted & ~scopes) != 0)
            return refuse(error_out, 400, "invalid_scope", "Bad Request");
        scopes = wanted;
    }
    const struct box_secret like = {
        .grant = number, .user = auth->grants[number].user, .client = client, .scopes = scopes};
    if (box_access_issue(auth, &like, now_ms, issue_out) == 0)
        return refuse_full(error_out);
    auth->grants[number].used_ms = now_ms;
    if (auth->grants[number].expires_ms != UINT64_MAX)
        issue_out->refresh_expires_in_s = (auth->grants[number].expires_ms - now_ms) / 1000;
    return true;
}

/* By a code that nobody sees, so that it is kept like every other grant. */
bool box_auth_issue(struct box_auth *auth, const struct box_ask *ask, struct box_user *user,
                    uint64_t now_ms, struct box_issue *issue_out, struct box_oauth_error *error_out)
{
    const char *code = box_auth_code(auth, ask, user, ask->scopes, now_ms);
    if (code == NULL)
        return refuse_full(error_out);
    const struct box_redeem redeem = {.code = tide_text_of(code),
                                      .redirect_uri = tide_text_of(ask->redirect_uri),
                                      .client = ask->client};
    return box_auth_redeem(auth, &redeem, now_ms, issue_out, error_out);
}

bool box_auth_rotate(struct box_auth *auth, uint32_t client, tide_text refresh, uint64_t now_ms,
                     struct box_issue *issue_out, struct box_oauth_error *error_out)
{
    const uint32_t number = refresh_fits(auth, client, refresh, now_ms, error_out);
    if (number == 0)
        return false;
    struct box_grant *grant = &auth->grants[number];
    const struct box_ask ask = {.client = client, .scopes = grant->scopes, .microsoft = true};
    grant->used_ms = now_ms;
    return box_auth_issue(auth, &ask, grant->user, now_ms, issue_out, error_out);
}

bool box_auth_revoke(struct box_auth *auth, tide_text token, uint64_t now_ms)
{
    const uint32_t slot = box_secret_find(auth, token);
    if (slot == 0)
        return false;
    struct box_secret *secret = &auth->secrets[slot];
    const bool revocable = secret->kind == BOX_SECRET_ACCESS || secret->kind == BOX_SECRET_REFRESH;
    if (!revocable || now_ms >= secret->expires_ms)
        return false;
    if (secret->grant != 0) {
        if (!box_grant_lives(auth, secret->grant, now_ms))
            return false;
        revoke_grant(auth, secret->grant);
        return true;
    }
    secret->expires_ms = 0; /* of a service account: there is nothing behind it */
    box_auth_keep(auth, json_pack("{s:s, s:s}", "op", "auth-drop", "token", secret->text));
    return true;
}
