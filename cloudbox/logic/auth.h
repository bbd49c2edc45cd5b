/* auth.h - who may do what: tokens, grants, scopes, keys.
 *
 * Holds OAuth clients, authorization codes with their PKCE challenge, refresh
 * and access tokens, service accounts with delegation, and the signing key.
 * The pages and endpoints of sign-in are in signin.c; this is what they and the
 * gate ask.
 *
 * Invariants:
 *   A1  a code is redeemed once, within 10 minutes, with the verifier, client
 *       and redirect it was given for.
 *   A2  an access token dies with its time, or with its grant (revoked, expired).
 *   A3  a grant never has a scope the user did not tick.
 *   A4  at most 100 living refresh tokens per user and client; the oldest dies silently.
 */
#ifndef BOX_AUTH_H
#define BOX_AUTH_H

#include "logic/service.h"

struct box_auth *box_auth_new(box_cloud *cloud);
void box_auth_free(struct box_auth *auth);

/* Who a bearer token stands for. */
struct box_principal {
    struct box_user *user;
    uint32_t scopes;
    uint32_t project; /* quota is per user and project; 0 for fixed tokens */
};
/* false: unknown, expired or revoked (401). */
bool box_auth_check(struct box_auth *auth, tide_text token, uint64_t now_ms,
                    struct box_principal *principal_out);

tide_status box_auth_add_token(struct box_auth *auth, tide_text token, struct box_user *user);
/* For tests, faults and the control page: every token of that user is refused
 * from now on (invalid_grant), or just its access tokens (401, refresh works). */
void box_auth_revoke_user(struct box_auth *auth, const struct box_user *user);
void box_auth_expire_access(struct box_auth *auth, const struct box_user *user);

/* "https://www.googleapis.com/auth/gmail.readonly openid" <-> bits.  Unknown
 * scopes are left out. */
uint32_t box_scopes_parse(tide_text text);
void box_scopes_text(uint32_t scopes, tide_buf *out);

/* A JWT signed with the cloud's key (RS256, kid), claims taken: for push. */
void box_auth_sign(struct box_auth *auth, json_t *claims, tide_buf *out);
json_t *box_auth_jwks(struct box_auth *auth);

tide_status box_auth_replay(struct box_auth *auth, const json_t *change, tide_error *err);

#endif
