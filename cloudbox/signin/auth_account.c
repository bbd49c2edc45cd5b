/* auth_account.c - service accounts: their key files and their assertions. */
#include "cloudbox/signin/auth_state.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

enum {
    ASSERTION_LIFE_S_MAX = 3600,
    SKEW_S = 300, /* tolerated difference of clocks */
};

#define TOKEN_URI "https://oauth2.googleapis.com/token"

void box_auth_subject(tide_text email, char text_out[22])
{
    tide_rng rng = tide_rng_seeded(tide_hash(TIDE_HASH_START, email));
    text_out[0] = '1';
    for (size_t i = 1; i < 21; i++)
        text_out[i] = (char)('0' + (int)tide_rng_below(&rng, 10));
    text_out[21] = '\0';
}

/* ---- accounts ---- */

struct box_account *box_account_find(struct box_auth *auth, tide_text email)
{
    for (size_t i = 0; i < auth->accounts_count; i++) {
        if (tide_text_equal(email, tide_text_of(auth->accounts[i].email)))
            return &auth->accounts[i];
    }
    return NULL;
}

/* Small letters only, so that the account can also be a user of the cloud. */
static bool is_account_email(tide_text email)
{
    size_t ats = 0;
    for (size_t i = 0; i < email.bytes; i++) {
        const char c = email.data[i];
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
        if (!plain && c != '@')
            return false;
        if (c == '@' && (i == 0 || i + 1 == email.bytes))
            return false;
        ats += c == '@';
    }
    return ats == 1 && email.bytes <= BOX_EMAIL_BYTES_MAX;
}

struct box_account *box_account_add(struct box_auth *auth, tide_text email, box_key *key)
{
    if (!is_account_email(email))
        return NULL;
    if (!TIDE_GROW(auth->accounts, auth->accounts_capacity, auth->accounts_count + 1,
                   BOX_ACCOUNTS_MAX))
        return NULL;
    struct box_account *account = &auth->accounts[auth->accounts_count++];
    *account = (struct box_account){.key = key};
    memcpy(account->email, email.data, email.bytes);
    return account;
}

void box_accounts_done(struct box_auth *auth)
{
    for (size_t i = 0; i < auth->accounts_count; i++) {
        struct box_account *account = &auth->accounts[i];
        box_key_free(account->key);
        tide_mem_free(tide_mem_heap(), account->delegations,
                      account->delegations_capacity * sizeof account->delegations[0]);
    }
    tide_mem_free(tide_mem_heap(), auth->accounts,
                  auth->accounts_capacity * sizeof auth->accounts[0]);
}

static json_t *key_file_of(const struct box_account *account, const char *pem)
{
    const char *domain = strchr(account->email, '@') + 1;
    char project[BOX_EMAIL_BYTES_MAX + 1];
    (void)snprintf(project, sizeof project, "%.*s", (int)strcspn(domain, "."), domain);
    char subject[22];
    box_auth_subject(tide_text_of(account->email), subject);
    char certificate[512];
    (void)snprintf(certificate, sizeof certificate,
                   "https://www.googleapis.com/robot/v1/metadata/x509/%s", account->email);
    json_t *file = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "type", "service_account",
        "project_id", project, "private_key_id", box_key_id(account->key), "private_key", pem,
        "client_email", account->email, "client_id", subject, "auth_uri",
        "https://accounts.google.com/o/oauth2/auth", "token_uri", TOKEN_URI,
        "auth_provider_x509_cert_url", "https://www.googleapis.com/oauth2/v1/certs",
        "client_x509_cert_url", certificate, "universe_domain", "googleapis.com");
    TIDE_ASSERT(file != NULL);
    return file;
}

tide_status box_auth_make_service_account(struct box_auth *auth, tide_text email,
                                          json_t **key_file_out)
{
    if (!is_account_email(email))
        return TIDE_INVALID;
    if (box_account_find(auth, email) != NULL)
        return TIDE_EXISTS;
    if (auth->accounts_count >= BOX_ACCOUNTS_MAX)
        return TIDE_FULL;
    struct box_account *account = box_account_add(auth, email, box_key_new());
    TIDE_ASSERT(account != NULL);
    tide_auto_buf pem = tide_buf_heap(BOX_JWT_BYTES_MAX);
    box_key_pem(account->key, &pem);
    box_auth_keep(auth, json_pack("{s:s, s:s, s:s}", "op", "auth-account", "email", account->email,
                                  "pem", tide_buf_cstr(&pem)));
    *key_file_out = key_file_of(account, tide_buf_cstr(&pem));
    return TIDE_OK;
}

tide_status box_account_allow(struct box_account *account, struct box_user *user, uint32_t scopes)
{
    account->restricted = true;
    for (size_t i = 0; i < account->delegations_count; i++) {
        if (account->delegations[i].user == user) {
            account->delegations[i].scopes = scopes;
            return TIDE_OK;
        }
    }
    if (!TIDE_GROW(account->delegations, account->delegations_capacity,
                   account->delegations_count + 1, BOX_ACCOUNT_USERS_MAX))
        return TIDE_FULL;
    account->delegations[account->delegations_count++] = (struct box_delegation){user, scopes};
    return TIDE_OK;
}

tide_status box_auth_delegate(struct box_auth *auth, tide_text account, struct box_user *user,
                              uint32_t scopes)
{
    struct box_account *known = box_account_find(auth, account);
    if (known == NULL)
        return TIDE_NOT_FOUND;
    const tide_status rc = box_account_allow(known, user, scopes);
    if (rc != TIDE_OK)
        return rc;
    tide_auto_buf text = tide_buf_heap(BOX_SECRET_BYTES_MAX);
    box_scopes_text(scopes, &text);
    box_auth_keep(auth,
                  json_pack("{s:s, s:s, s:s, s:s}", "op", "auth-delegate", "account", known->email,
                            "email", user->email, "scope", tide_buf_cstr(&text)));
    return TIDE_OK;
}

/* ---- assertions ---- */

static bool refuse(struct box_oauth_error *error_out, int http, const char *error, const char *text)
{
    *error_out = (struct box_oauth_error){http, error, text};
    return false;
}

static tide_text claim_text(const json_t *claims, const char *name)
{
    tide_text text = TIDE_TEXT_NONE;
    (void)tide_json_get_text(claims, name, &text, NULL);
    return text;
}

/* Google's own addresses of the token endpoint, and ours. */
static bool audience_fits(tide_text audience, tide_text origin)
{
    static const char *const google[] = {TOKEN_URI, "https://accounts.google.com/o/oauth2/token",
                                         "https://www.googleapis.com/oauth2/v4/token"};
    for (size_t i = 0; i < sizeof google / sizeof google[0]; i++) {
        if (tide_text_equal(audience, tide_text_of(google[i])))
            return true;
    }
    if (origin.bytes == 0 || audience.bytes <= origin.bytes ||
        memcmp(audience.data, origin.data, origin.bytes) != 0)
        return false;
    const tide_text path = {audience.data + origin.bytes, audience.bytes - origin.bytes};
    return tide_text_equal(path, TIDE_TEXT("/token")) ||
           tide_text_equal(path, TIDE_TEXT("/oauth2/v4/token")) ||
           tide_text_equal(path, TIDE_TEXT("/o/oauth2/token"));
}

static bool times_fit(const json_t *claims, uint64_t now_ms)
{
    uint64_t issued_s = 0, expires_s = 0;
    if (tide_json_get_u64(claims, "iat", &issued_s, NULL) != TIDE_OK ||
        tide_json_get_u64(claims, "exp", &expires_s, NULL) != TIDE_OK)
        return false;
    const uint64_t now_s = now_ms / 1000;
    return issued_s < expires_s && expires_s - issued_s <= ASSERTION_LIFE_S_MAX &&
           issued_s <= now_s + SKEW_S && expires_s > now_s;
}

/* Whom the account acts for; NULL: the error says why not. */
static struct box_user *subject_of(struct box_auth *auth, const struct box_account *account,
                                   const json_t *claims, uint32_t scopes,
                                   struct box_oauth_error *error_out)
{
    const tide_text subject = claim_text(claims, "sub");
    const bool itself =
        subject.bytes == 0 || tide_text_equal(subject, tide_text_of(account->email));
    struct box_user *user =
        itself ? box_cloud_user_need(auth->cloud, tide_text_of(account->email), NULL)
               : box_cloud_user(auth->cloud, subject);
    if (itself && user != NULL)
        return user;
    if (user == NULL) {
        (void)refuse(error_out, 400, "invalid_grant", "Invalid email or User ID");
        return NULL;
    }
    bool allowed = !account->restricted;
    for (size_t i = 0; i < account->delegations_count && !allowed; i++)
        allowed =
            account->delegations[i].user == user && (scopes & ~account->delegations[i].scopes) == 0;
    if (!allowed) {
        (void)refuse(error_out, 401, "unauthorized_client",
                     "Client is unauthorized to retrieve access tokens using this method, or "
                     "client not authorized for any of the scopes requested.");
        return NULL;
    }
    return user;
}

/* Every word must be a known scope: no user can untick one of an assertion. */
static uint32_t scopes_strictly(tide_text text)
{
    uint32_t scopes = 0;
    while (text.bytes > 0) {
        const tide_text word = tide_text_word(&text);
        const uint32_t scope = box_scopes_parse(word);
        if (word.bytes > 0 && scope == 0)
            return 0;
        scopes |= scope;
    }
    return scopes;
}

static bool claims_fit(const struct box_account *account, tide_text assertion, const json_t *header,
                       const json_t *claims, tide_text origin, uint64_t now_ms,
                       struct box_oauth_error *error_out)
{
    if (!tide_text_equal(claim_text(header, "alg"), TIDE_TEXT("RS256")))
        return refuse(error_out, 400, "invalid_grant", "Invalid JWT: Unsupported algorithm.");
    if (account == NULL)
        return refuse(error_out, 400, "invalid_grant", "Invalid grant: account not found");
    if (!box_jwt_verify(account->key, assertion))
        return refuse(error_out, 400, "invalid_grant", "Invalid JWT Signature.");
    if (!audience_fits(claim_text(claims, "aud"), origin))
        return refuse(error_out, 400, "invalid_grant",
                      "Invalid JWT: Failed audience check. The right audience is " TOKEN_URI);
    if (!times_fit(claims, now_ms))
        return refuse(error_out, 400, "invalid_grant",
                      "Invalid JWT: Token must be a short-lived token (60 minutes) and in a "
                      "reasonable timeframe. Check your iat and exp values in the JWT claim.");
    if (scopes_strictly(claim_text(claims, "scope")) == 0)
        return refuse(error_out, 400, "invalid_scope",
                      "Invalid OAuth scope or ID token audience provided.");
    return true;
}

bool box_auth_assert(struct box_auth *auth, tide_text assertion, tide_text origin, uint64_t now_ms,
                     struct box_issue *issue_out, struct box_oauth_error *error_out)
{
    json_t *header = NULL;
    json_t *claims = NULL;
    if (!box_jwt_read(assertion, &header, &claims))
        return refuse(error_out, 400, "invalid_grant", "Invalid JWT: Malformed token.");
    bool good = false;
    const struct box_account *account = box_account_find(auth, claim_text(claims, "iss"));
    if (!claims_fit(account, assertion, header, claims, origin, now_ms, error_out))
        goto done;

    const uint32_t scopes = scopes_strictly(claim_text(claims, "scope"));
    struct box_user *user = subject_of(auth, account, claims, scopes, error_out);
    if (user == NULL)
        goto done;
    const struct box_secret like = {.user = user,
                                    .client = box_client_need(auth, tide_text_of(account->email)),
                                    .scopes = scopes};
    good = like.client != 0 && box_access_issue(auth, &like, now_ms, issue_out) != 0;
    if (!good)
        (void)refuse(error_out, 503, "temporarily_unavailable", "Too many tokens are alive.");
done:
    json_decref(header);
    json_decref(claims);
    return good;
}
