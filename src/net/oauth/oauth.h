/* oauth.h - signing in to an account, and staying signed in (M16).
 *
 * Four ways: the browser with a loopback redirect and PKCE; a printed link, where the user pastes
 * the address at which the browser ended; a device code, which the user types on a page of the
 * provider; a service account's key with delegation.  After that: access tokens, refreshed before
 * they expire, by one thread at a time however many ask.
 *
 * What differs between providers is in struct tide_oauth_provider: google.h, microsoft.h.  A
 * stored sign-in ("grant") names its provider.
 *
 * Invariants:
 *   OAU1  a token is durable (secrets.h) before it is used.  A refresh may replace the refresh
 *         token: the new one is stored before the access token that came with it is given out.
 *   OAU2  at most one refresh at a time per account; other threads wait.
 *   OAU3  invalid_grant ends in TIDE_AUTH, once, with the command that fixes it; it is not retried.
 *   OAU4  no token, code or verifier is ever in an error or a log.
 */
#ifndef TIDE_NET_OAUTH_H
#define TIDE_NET_OAUTH_H

#include "base/buf.h"
#include "base/json.h"
#include "net/secrets.h"
#include "tidemark.h"
#include "world/world.h"

/* ---- providers ---- */

/* An error code of the token endpoint, and what it means. */
struct tide_oauth_error {
    const char *code;
    tide_status status;
};

/* A step of a user who creates a client at the provider. */
struct tide_oauth_step {
    const char *text;
    const char *path;  /* of the page, below setup_url */
    const char *scope; /* a step for scopes with this in them; NULL: for all */
};

/* Const.  Members marked "required" are never NULL; for the others NULL means what is said
 * there. */
struct tide_oauth_provider {
    const char *name;        /* required: "google"; stored in grants, never changed */
    const char *title;       /* required: "Google"; what users call it */
    const char *auth_url;    /* required */
    const char *token_url;   /* required */
    const char *device_url;  /* of device codes; NULL: there are none */
    const char *revoke_url;  /* NULL: there is none, removing a sign-in only forgets it here */
    const char *revoke_page; /* required: where users revoke a sign-in themselves */
    const char *auth_params; /* added to the link, escaped: "prompt=consent"; NULL: none */
    const char *more_scopes; /* requested beside the caller's: "offline_access"; NULL: none */
    const char *client_help; /* required: how a user gets a client, for the command line */
    const char *setup_url;   /* where users create clients; NULL: there is no guide to it */
    const struct tide_oauth_step *setup; /* the guide; ends with a NULL text */
    const char *client_id_end; /* how the id of every client ends; NULL: it is not known */
    /* The host of the redirect to this machine, which then has no path; NULL: 127.0.0.1, with the
     * path "/". */
    const char *redirect_host;
    /* A segment of its addresses that "tenant" of a client file replaces: "common"; NULL: none. */
    const char *tenant;
    bool service_accounts; /* tide_oauth_service_account() */
    bool
        keys; /* users enter a key (tide_oauth_key()): nothing is signed in, refreshed or revoked */
    bool client_secret;  /* false: its clients are public and must not send a secret */
    bool refresh_scopes; /* a refresh must name the scopes again */
    /* Codes of its own beside those of the RFCs; ends with a NULL code.  Any code that is not
     * listed needs the user: TIDE_AUTH.  NULL: none. */
    const struct tide_oauth_error *errors;
    /* Judges an answer of the token endpoint without an OAuth error.  NULL: by its HTTP code. */
    tide_judge *judge;
    /* Whether the scope `given` includes `asked`, which is another one.  NULL: none includes
     * another. */
    bool (*scope_covers)(tide_text given, tide_text asked);
    /* The object with the client in a client file as the provider's console writes it; TIDE_INVALID:
     * a file of another kind.  NULL: the whole file. */
    tide_status (*client_object)(const json_t *file, const json_t **object_out, tide_error *err);
};

/* Endpoints and client; an empty address means the provider's. */
struct tide_oauth_client {
    char client_id[256];
    char client_secret[256]; /* of a desktop client: not a secret */
    char auth_url[512];
    char token_url[512];
    char device_url[512];
    char revoke_url[512];
};
/* Reads a client file as the provider's console writes it, or ours: the fields of the struct in
 * one object.  Addresses are https, or http on this machine (anything else would send tokens in
 * clear).  TIDE_INVALID: the error names what is missing or wrong, without a value from the
 * file. */
tide_status tide_oauth_client_read(const struct tide_oauth_provider *provider, tide_text json,
                                   struct tide_oauth_client *client_out, tide_error *err);
/* All endpoints of the provider at one address: an emulator, which accepts any client. */
void tide_oauth_client_at(const struct tide_oauth_provider *provider, const char *origin,
                          struct tide_oauth_client *client_out);

/* Whether every scope in `asked` (separated by spaces) is in `given`, or covered by one that
 * is. */
bool tide_oauth_scopes_cover(const struct tide_oauth_provider *provider, tide_text given,
                             const char *asked);

/* ---- signing in ---- */

typedef enum tide_oauth_way {
    TIDE_OAUTH_BROWSER, /* a listener on this machine receives the answer */
    TIDE_OAUTH_PASTE,   /* the user pastes the address at which the browser ended */
    TIDE_OAUTH_DEVICE,  /* the user types a code on a page of the provider (RFC 8628) */
} tide_oauth_way;
/* The way for a machine without a browser. */
tide_oauth_way tide_oauth_headless(const struct tide_oauth_provider *provider);

typedef struct tide_oauth_flow tide_oauth_flow;
struct tide_oauth_ask {
    const struct tide_oauth_provider *provider; /* borrowed until the flow is freed */
    const struct tide_oauth_client *client;
    const char *scopes;     /* separated by spaces */
    const char *login_hint; /* the address */
    tide_oauth_way way;
    const tide_cancel *cancel; /* of the request for a device code; may be NULL */
};
/* Makes the link, and for it listens on 127.0.0.1 (BROWSER) or requests a code (DEVICE).
 * TIDE_INVALID: the provider has no device codes. */
tide_status tide_oauth_flow_start(tide_world *world, const struct tide_oauth_ask *ask,
                                  tide_mem *mem, tide_oauth_flow **flow_out, tide_error *err);
/* The address that the user opens, on any device. */
const char *tide_oauth_flow_link(const tide_oauth_flow *flow);
/* The code that the user types there; "": none (not DEVICE). */
const char *tide_oauth_flow_user_code(const tide_oauth_flow *flow);
/* BROWSER, DEVICE: waits for the user, at most `wait_ms` and while a device code is valid
 * (TIDE_TIMEOUT); `cancel` may be NULL.  BROWSER: a request with a wrong state is refused, and
 * the wait continues.  DEVICE: polls, also while the server cannot be reached.  TIDE_AUTH: the
 * user declined. */
tide_status tide_oauth_flow_wait(tide_oauth_flow *flow, uint64_t wait_ms, const tide_cancel *cancel,
                                 tide_error *err);
/* PASTE: takes what the user pasted, a whole address or the code alone.  TIDE_INVALID:
 * neither, or of another sign-in; ask again. */
tide_status tide_oauth_flow_paste(tide_oauth_flow *flow, tide_text pasted, tide_error *err);
/* Redeems the answer.  `grant_out` is JSON to be stored as a secret (wipe it); `scopes_out` has
 * the scopes that were granted (users can untick them).  After TIDE_NETWORK it may be called
 * again. */
tide_status tide_oauth_flow_finish(tide_oauth_flow *flow, const tide_cancel *cancel,
                                   tide_buf *grant_out, tide_buf *scopes_out, tide_error *err);
void tide_oauth_flow_free(tide_oauth_flow *flow); /* NULL is fine */

/* Makes a grant from the key file of a service account of Google's, acting for `user` (NULL or
 * "": for itself).  The key is checked, nothing is sent.  TIDE_INVALID says what is wrong with
 * the file, without a value from it. */
tide_status tide_oauth_service_account(tide_text key_json, const char *user, const char *scopes,
                                       tide_buf *grant_out, tide_error *err);
/* Makes a grant of one fixed bearer token, for emulators of any provider. */
tide_status tide_oauth_fixed(const char *bearer, tide_buf *grant_out, tide_error *err);

/* Makes a grant of a key that the user got from the provider.  `entered` tells two entries of the same
 * key apart: entering it again ends a refusal. */
tide_status tide_oauth_key(const char *key, const char *entered, tide_buf *grant_out,
                           tide_error *err);

/* Gets an access token of a grant that is not stored yet, to test it.  Nothing is written.
 * TIDE_AUTH: the provider refuses it. */
tide_status tide_oauth_try(const struct tide_oauth_provider *provider, tide_world *world,
                           tide_text grant, const tide_cancel *cancel, tide_mem *mem,
                           tide_buf *bearer_out, tide_error *err);

/* ---- staying signed in ---- */

typedef struct tide_tokens tide_tokens;
struct tide_tokens_options {
    const struct tide_oauth_provider *provider; /* borrowed */
    const char *secret;                         /* the name of the stored grant */
    const char *account;                        /* for errors: "ada@example.com" */
    const char *sign_in; /* for errors: the command, "tidemark account add gmail ada@example.com" */
};
/* The tokens of one account.  The grant is read from its secret and written back when it changes.
 * It is read again before each refresh, so that a new sign-in, also by another process, is
 * noticed.  TIDE_AUTH: there is none, or it is one of another provider.  `secrets` is borrowed
 * and outlives it; the texts are copied. */
tide_status tide_tokens_open(tide_world *world, tide_secrets *secrets,
                             const struct tide_tokens_options *options, tide_mem *mem,
                             tide_tokens **tokens_out, tide_error *err);
void tide_tokens_close(tide_tokens *tokens); /* NULL is fine */
/* A token that is valid for at least a minute (or half its life, if that is short); any thread.
 * Replaces the content of `bearer_out`.  TIDE_AUTH (OAU3).  If the token server cannot be reached
 * or fails (TIDE_NETWORK, TIDE_SERVER, TIDE_THROTTLED, TIDE_TIMEOUT), all callers that waited
 * for the same refresh get that status, never TIDE_UNKNOWN.  TIDE_CANCELED within 100 ms of
 * `cancel` (may be NULL). */
tide_status tide_tokens_get(tide_tokens *tokens, const tide_cancel *cancel, tide_buf *bearer_out,
                            tide_error *err);
/* Whether the grant covers these scopes; also if its own are unknown (a fixed token). */
bool tide_tokens_cover(tide_tokens *tokens, const char *scopes);
/* The server refused this token with 401: the next get refreshes, once. */
void tide_tokens_refused(tide_tokens *tokens, tide_text bearer);
/* The same for a key that its user entered (tide_oauth_key()): every get ends in TIDE_AUTH with `why`,
 * until a key is stored again. */
void tide_tokens_refused_for(tide_tokens *tokens, tide_text bearer, const char *why);
/* Revokes the grant at the provider and removes the secret; a grant that is already invalid is
 * fine.  On failure the secret stays.  *revoked_out: false if the grant is only forgotten here,
 * because it is a key or a fixed token, or because the provider cannot revoke. */
tide_status tide_tokens_revoke(tide_tokens *tokens, bool *revoked_out, tide_error *err);

#endif
