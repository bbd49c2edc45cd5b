/* auth.h - who may do what: tokens, grants, scopes, keys.
 *
 * Holds OAuth clients, authorization codes with their PKCE challenge, refresh
 * and access tokens, service accounts with delegation, and the signing key.
 * The pages and endpoints of sign-in are in signin.c; this is what they and the
 * gate ask.
 *
 * Invariants:
 *   BAUT1  a code is redeemed once, within 10 minutes, with the verifier, client and redirect it
 *          was given for.
 *   BAUT2  an access token ends with its lifetime or with its grant (revoked, expired).
 *   BAUT3  a grant never has a scope the user did not tick.
 *   BAUT4  at most 100 valid refresh tokens per user and client; the oldest is revoked silently.
 */
#ifndef BOX_AUTH_H
#define BOX_AUTH_H

#include "cloudbox/gate/service.h"
#include "cloudbox/google/scopes.h"

extern const struct box_service box_signin;
struct box_auth *box_cloud_auth(box_cloud *cloud);

struct box_auth *box_auth_new(box_cloud *cloud);
void box_auth_free(struct box_auth *auth);

/* A bearer token that never expires and has every scope; makes the user if need be. */
tide_status box_cloud_add_token(box_cloud *cloud, tide_text token, tide_text email,
                                tide_error *err);
/* false: unknown, expired or revoked (401). */
bool box_auth_check(struct box_auth *auth, tide_text token, uint64_t now_ms,
                    struct box_principal *principal_out);

tide_status box_auth_add_token(struct box_auth *auth, tide_text token, struct box_user *user);
/* For tests, faults and the control page: every token of that user is refused
 * from now on (invalid_grant), or just its access tokens (401, refresh works;
 * fixed tokens, which cannot be refreshed, stay). */
void box_auth_revoke_user(struct box_auth *auth, const struct box_user *user);
void box_auth_expire_access(struct box_auth *auth, const struct box_user *user);
/* A new password: grants with a Gmail scope end, the others stay valid. */
void box_auth_password_changed(struct box_auth *auth, const struct box_user *user);
/* The consent screen is in testing: grants live seven days from their creation (those
 * that only identify the user live on), also the ones that are there already. */
void box_auth_testing(struct box_auth *auth, bool on);

/* A JWT signed with the cloud's key (RS256, kid), claims taken: for push. */
void box_auth_sign(struct box_auth *auth, json_t *claims, tide_buf *out);
json_t *box_auth_jwks(struct box_auth *auth);

/* Scopes of all providers, by their own names, as grants have them. */
uint32_t box_signin_scopes_parse(tide_text text);
void box_signin_scopes_text(uint32_t scopes, tide_buf *out);

/* ---- clients ---- */

/* Any client is let in until the first one is registered; from then on only
 * registered ones, with their secret.  TIDE_INVALID, TIDE_FULL. */
tide_status box_auth_add_client(struct box_auth *auth, tide_text id, tide_text secret);
/* The number of a client, which may be a new one; 0: it is not let in. */
uint32_t box_auth_client(struct box_auth *auth, tide_text id);
const char *box_auth_client_id(const struct box_auth *auth, uint32_t client);
/* Whether this is its secret; any text is, of a client that was not registered. */
bool box_auth_client_proves(const struct box_auth *auth, uint32_t client, tide_text secret);

/* ---- signing in, as the endpoints need it ---- */

enum {
    BOX_REDIRECT_BYTES_MAX = 512,
    BOX_CHALLENGE_BYTES_MAX = 128,
    BOX_STATE_BYTES_MAX = 1024,
    BOX_NONCE_BYTES_MAX = 255,
    BOX_CODE_LIFE_MS = 600000,
};

/* What a client asks a person for. */
struct box_ask {
    uint32_t client;
    uint32_t scopes;
    bool with_granted; /* include_granted_scopes */
    bool has_state;    /* an empty one is given back too */
    bool plain;        /* the challenge is the verifier itself */
    bool microsoft;    /* asked for at Microsoft's address */
    char device[16];   /* the code that a device shows; "": a redirect follows */
    char redirect_uri[BOX_REDIRECT_BYTES_MAX + 1];
    char challenge[BOX_CHALLENGE_BYTES_MAX + 1]; /* "": no PKCE */
    char state[BOX_STATE_BYTES_MAX + 1];
    char nonce[BOX_NONCE_BYTES_MAX + 1];
};

/* A ticket stands for an ask while a person looks at the page; it is good once,
 * for ten minutes, and is what a foreign page cannot know. */
void box_auth_ticket(struct box_auth *auth, const struct box_ask *ask, uint64_t now_ms,
                     tide_buf *out);
bool box_auth_ticket_take(struct box_auth *auth, tide_text ticket, uint64_t now_ms,
                          struct box_ask *ask_out);

/* The person ticked `scopes` (BAUT3: others than were asked for are left out).
 * Borrowed until the next change; NULL: too many codes are waiting. */
const char *box_auth_code(struct box_auth *auth, const struct box_ask *ask, struct box_user *user,
                          uint32_t scopes, uint64_t now_ms);

/* What a code stands for; 0: there is no such code. */
uint32_t box_auth_code_scopes(const struct box_auth *auth, tide_text code);

/* What a token request brought; the texts are borrowed until the next change. */
struct box_issue {
    struct box_user *user;
    uint32_t client;
    uint32_t scopes;
    uint64_t expires_in_s;
    const char *access;
    const char *refresh;           /* NULL: no new one */
    uint64_t refresh_expires_in_s; /* 0: it does not */
    const char *nonce;             /* "" */
};
struct box_oauth_error {
    int http;
    const char *error;
    const char *text;
};

struct box_redeem {
    tide_text code;
    tide_text redirect_uri;
    tide_text verifier; /* data == NULL: none */
    uint32_t client;
};
bool box_auth_redeem(struct box_auth *auth, const struct box_redeem *redeem, uint64_t now_ms,
                     struct box_issue *issue_out, struct box_oauth_error *error_out);
/* `scope` may ask for less; data == NULL: all of the grant's. */
bool box_auth_refresh(struct box_auth *auth, uint32_t client, tide_text refresh, tide_text scope,
                      uint64_t now_ms, struct box_issue *issue_out,
                      struct box_oauth_error *error_out);
/* The way of Microsoft: a new refresh token with each access token; the old one stays good. */
bool box_auth_rotate(struct box_auth *auth, uint32_t client, tide_text refresh, uint64_t now_ms,
                     struct box_issue *issue_out, struct box_oauth_error *error_out);
/* Tokens for a person who agreed elsewhere than on a page with a redirect. */
bool box_auth_issue(struct box_auth *auth, const struct box_ask *ask, struct box_user *user,
                    uint64_t now_ms, struct box_issue *issue_out,
                    struct box_oauth_error *error_out);
/* A service account's signed assertion (RFC 7523). */
bool box_auth_assert(struct box_auth *auth, tide_text assertion, tide_text origin, uint64_t now_ms,
                     struct box_issue *issue_out, struct box_oauth_error *error_out);
/* Of an access or a refresh token: the whole grant is revoked.  false: it is not valid. */
bool box_auth_revoke(struct box_auth *auth, tide_text token, uint64_t now_ms);

/* What an access token is, for tokeninfo. */
struct box_token_facts {
    struct box_user *user;
    uint32_t client; /* 0: a fixed token */
    uint32_t scopes;
    uint64_t expires_ms;
    bool offline;
};
bool box_auth_facts(const struct box_auth *auth, tide_text token, uint64_t now_ms,
                    struct box_token_facts *facts_out);

/* A number of 21 digits that stays with an address: `sub`. */
void box_auth_subject(tide_text email, char text_out[22]);
/* Whether the cloud's own key signed it; BJWT1. */
bool box_auth_signed(struct box_auth *auth, tide_text token);
void box_auth_public_pem(struct box_auth *auth, tide_buf *out);

/* ---- service accounts ---- */

/* Makes one with its key and gives the JSON key file, the only copy of which the
 * caller owns.  Its token_uri is Google's: a caller that knows where it serves
 * puts its own there.  TIDE_EXISTS, TIDE_INVALID, TIDE_FULL. */
tide_status box_auth_make_service_account(struct box_auth *auth, tide_text email,
                                          json_t **key_file_out);
/* An account may act for every user until this is first called for it; then only
 * for those it was called with, and within those scopes. */
tide_status box_auth_delegate(struct box_auth *auth, tide_text account, struct box_user *user,
                              uint32_t scopes);

tide_status box_auth_replay(struct box_auth *auth, const json_t *change, tide_error *err);

#endif
