/* oauth.h - signing in to an account, and staying signed in (M16).
 *
 * Three ways: the browser with a loopback redirect and PKCE; headless, where a
 * link is printed and the address that the browser ended at is pasted back; a
 * service account's key with delegation.  After that: access tokens, refreshed
 * before they expire, by one thread at a time however many ask.
 *
 * Invariants:
 *   O1  a token is durable (secrets.h) before it is used.
 *   O2  at most one refresh at a time per account; other threads wait.
 *   O3  invalid_grant ends in TIDE_AUTH, once, with the command that fixes it; it is
 *       not retried.
 *   O4  no token, code or verifier is ever in an error or a log.
 */
#ifndef TIDE_NET_OAUTH_H
#define TIDE_NET_OAUTH_H

#include "base/buf.h"
#include "net/secrets.h"
#include "world/world.h"

/* Endpoints and client; zero means Google's. */
struct tide_oauth_client {
    char client_id[256];
    char client_secret[256]; /* of a desktop client: not a secret */
    char auth_url[512];      /* "https://accounts.google.com/o/oauth2/v2/auth" */
    char token_url[512];     /* "https://oauth2.googleapis.com/token" */
    char revoke_url[512];    /* "https://oauth2.googleapis.com/revoke" */
};
/* Reads a client file from Google's console ("installed" or "web"), or ours: the fields of the
 * struct in one object.  Addresses are https, or http on this machine (anything else would send
 * tokens in clear).  TIDE_INVALID: the error names what is missing or wrong, without a value
 * from the file. */
tide_status tide_oauth_client_read(tide_text json, struct tide_oauth_client *client_out,
                                   tide_error *err);
/* All endpoints at one address: an emulator, which accepts any client. */
void tide_oauth_client_at(const char *origin, struct tide_oauth_client *client_out);

/* ---- signing in ---- */

typedef struct tide_oauth_flow tide_oauth_flow;
struct tide_oauth_ask {
    const struct tide_oauth_client *client;
    const char *scopes;     /* separated by spaces */
    const char *login_hint; /* the address */
    bool headless;          /* no listener: the user pastes the answer */
};
/* Listens on 127.0.0.1 (unless headless) and makes the link. */
tide_status tide_oauth_flow_start(tide_world *world, const struct tide_oauth_ask *ask,
                                  tide_mem *mem, tide_oauth_flow **flow_out, tide_error *err);
const char *tide_oauth_flow_link(const tide_oauth_flow *flow);
/* Waits for the browser, at most `wait_ms`; `cancel` may be NULL.  A request with a wrong state
 * is refused, and the wait continues.  TIDE_AUTH: the user declined. */
tide_status tide_oauth_flow_wait(tide_oauth_flow *flow, uint64_t wait_ms, const tide_cancel *cancel,
                                 tide_error *err);
/* Headless: takes what the user pasted, a whole address or the code alone.  TIDE_INVALID:
 * neither, or of another sign-in; ask again. */
tide_status tide_oauth_flow_paste(tide_oauth_flow *flow, tide_text pasted, tide_error *err);
/* Redeems the code.  `grant_out` is JSON to be stored as a secret (wipe it); `scopes_out` has
 * the scopes that were granted (users can untick them).  After TIDE_NETWORK it may be called
 * again. */
tide_status tide_oauth_flow_finish(tide_oauth_flow *flow, const tide_cancel *cancel,
                                   tide_buf *grant_out, tide_buf *scopes_out, tide_error *err);
void tide_oauth_flow_free(tide_oauth_flow *flow); /* NULL is fine */

/* Whether every scope in `asked` (separated by spaces) is in `given`. */
bool tide_oauth_scopes_cover(tide_text given, const char *asked);

/* Makes a grant from a service account's key file, acting for `user` (NULL or "": for itself).
 * The key is checked, nothing is sent.  TIDE_INVALID says what is wrong with the file, without a
 * value from it. */
tide_status tide_oauth_service_account(tide_text key_json, const char *user, const char *scopes,
                                       tide_buf *grant_out, tide_error *err);
/* Makes a grant of one fixed bearer token, for emulators. */
tide_status tide_oauth_fixed(const char *bearer, tide_buf *grant_out, tide_error *err);

/* Gets an access token of a grant that is not stored yet, to test it.  Nothing is written.
 * TIDE_AUTH: the provider refuses it. */
tide_status tide_oauth_try(tide_world *world, tide_text grant, const tide_cancel *cancel,
                           tide_mem *mem, tide_buf *bearer_out, tide_error *err);

/* ---- staying signed in ---- */

typedef struct tide_tokens tide_tokens;
/* The tokens of one account.  The grant is read from the secret `name` and written back when it
 * changes.  It is read again before each refresh, so that a new sign-in, also by another
 * process, is noticed.  TIDE_AUTH: there is none.  With a name "gmail/ADDRESS" errors suggest
 * `tidemark account add gmail ADDRESS`.  `secrets` is borrowed and outlives it. */
tide_status tide_tokens_open(tide_world *world, tide_secrets *secrets, const char *name,
                             tide_mem *mem, tide_tokens **tokens_out, tide_error *err);
void tide_tokens_close(tide_tokens *tokens); /* NULL is fine */
/* A token that is valid for at least a minute (or half its life, if that is short); any thread.
 * Replaces the content of `bearer_out`.  TIDE_AUTH (O3).  If the token server cannot be reached
 * or fails (TIDE_NETWORK, TIDE_SERVER, TIDE_THROTTLED, TIDE_TIMEOUT), all callers that waited
 * for the same refresh get that status, never TIDE_UNKNOWN.  TIDE_CANCELED within 100 ms of
 * `cancel` (may be NULL). */
tide_status tide_tokens_get(tide_tokens *tokens, const tide_cancel *cancel, tide_buf *bearer_out,
                            tide_error *err);
/* The scopes of the grant, as the provider named them, separated by spaces; replaces the content
 * of `scopes_out`.  Empty: unknown (a fixed token). */
tide_status tide_tokens_scopes(tide_tokens *tokens, tide_buf *scopes_out, tide_error *err);
/* The server refused this token with 401: the next get refreshes, once. */
void tide_tokens_refused(tide_tokens *tokens, tide_text bearer);
/* Revokes the grant at the provider (not possible for a key or a fixed token) and removes the
 * secret; a grant that is already invalid is fine.  On failure the secret stays. */
tide_status tide_tokens_revoke(tide_tokens *tokens, tide_error *err);

#endif
