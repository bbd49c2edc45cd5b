/* inside.h - shared by the files of oauth/: grants, forms, token requests.
 *
 * A grant contains everything needed to get access tokens for one account, and the
 * newest of these.  It is stored as one line of JSON:
 *
 *   {"v":1,"type":"user|service|fixed", ...texts..., "expires_unix_ms":N}
 *
 * Invariants:
 *   I1  every text of a grant lives in memory that is wiped (mem.h).
 *   I2  no function here puts a text of a grant, a form or an answer into an error,
 *       except an error's code and a description from which anything that could be a
 *       secret was removed.
 */
#ifndef TIDE_NET_OAUTH_INSIDE_H
#define TIDE_NET_OAUTH_INSIDE_H

#include "base/json.h"
#include "net/oauth/oauth.h"

enum {
    TIDE_OAUTH_TOKEN_BYTES_MAX = 16 << 10, /* access and refresh tokens, codes */
    TIDE_OAUTH_KEY_BYTES_MAX = 16 << 10,   /* PEM */
    TIDE_OAUTH_FIELD_BYTES_MAX = 4 << 10,  /* other texts of a grant */
    TIDE_OAUTH_FORM_BYTES_MAX = 64 << 10,
    TIDE_OAUTH_ANSWER_BYTES_MAX = 64 << 10,
};

typedef enum tide_grant_type {
    TIDE_GRANT_USER,
    TIDE_GRANT_SERVICE,
    TIDE_GRANT_FIXED,
} tide_grant_type;

/* Embedded value; an empty text is absent. */
struct tide_grant {
    tide_grant_type type;
    tide_buf client_id, client_secret, refresh_token; /* of a user */
    tide_buf revoke_url;
    tide_buf email, key_id, private_key, user; /* of a service account */
    tide_buf token_url, scopes;                /* of both */
    tide_buf access_token;
    uint64_t expires_unix_ms; /* 0: there is none, or it never expires (fixed) */
};

void tide_grant_init(struct tide_grant *grant, tide_mem *wiping);
void tide_grant_done(struct tide_grant *grant); /* a zeroed one is fine */
/* TIDE_CORRUPT: not a grant of ours; TIDE_NEWER.  `grant` is initialised and empty; discard it
 * after a failure. */
tide_status tide_grant_read(tide_text json, struct tide_grant *grant, tide_error *err);
/* Appends one line. */
tide_status tide_grant_write(const struct tide_grant *grant, tide_buf *out, tide_error *err);
/* Whether both come from the same sign-in, whatever their access tokens. */
bool tide_grant_same(const struct tide_grant *a, const struct tide_grant *b);

/* ---- texts ---- */

tide_status tide_buf_set(tide_buf *buf, tide_text text); /* replaces; unchanged on failure */
/* Safe in a header or a form without escaping: visible ASCII, not empty. */
bool tide_oauth_is_token(tide_text text);
/* https, or http to this machine, and nothing that could be mistaken for another host. */
bool tide_oauth_is_url(tide_text url);
/* Appends "&name=value", escaped; without the '&' at the front of an empty form. */
tide_status tide_form_add(tide_buf *form, const char *name, tide_text value);
/* The decoded value of a name in "a=1&b=2".  TIDE_NOT_FOUND; TIDE_INVALID: it occurs twice, or
 * its escapes are broken. */
tide_status tide_form_get(tide_text form, const char *name, tide_buf *value_out);
/* Overwrites the texts in an object, then frees it. */
void tide_json_wipe(json_t *object);

/* ---- the token endpoint ---- */

/* Its answer; embedded value. */
struct tide_token_answer {
    tide_buf access_token;
    tide_buf refresh_token; /* may be empty */
    tide_buf scope;         /* may be empty */
    uint64_t life_ms;
    uint64_t server_unix_ms; /* its clock, also after a refusal; 0: unknown */
};
void tide_token_answer_init(struct tide_token_answer *answer, tide_mem *wiping);
void tide_token_answer_done(struct tide_token_answer *answer);

/* Sends a form.  TIDE_AUTH: refused, and only the user can fix it (err: "invalid_grant: ...");
 * TIDE_THROTTLED, TIDE_SERVER, TIDE_NETWORK, TIDE_TIMEOUT, TIDE_CANCELED, TIDE_STOPPED,
 * TIDE_NO_MEMORY; TIDE_UNKNOWN only if the form may not be sent twice. */
tide_status tide_token_request(tide_world *world, const char *url, tide_text form, bool repeatable,
                               tide_mem *wiping, const tide_cancel *cancel,
                               struct tide_token_answer *answer_out, tide_error *err);
/* Like tide_token_request() for the revocation endpoint.  TIDE_OK also when the token was
 * already invalid. */
tide_status tide_revoke_request(tide_world *world, const char *url, tide_text token,
                                tide_mem *wiping, tide_error *err);

/* A service account's form: an assertion valid from now on (service.c). */
tide_status tide_service_form(const struct tide_grant *grant, uint64_t now_unix_ms, tide_buf *form,
                              tide_error *err);

#endif
