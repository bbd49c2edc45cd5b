/* inside.h - shared by the files of oauth/: grants, forms, requests.
 *
 * A grant contains everything needed to get access tokens for one account, and the
 * newest of these.  It is stored as one line of JSON:
 *
 *   {"v":1,"type":"user|service|fixed","provider":"google", ...texts..., "expires_unix_ms":N}
 *
 * One without a provider is Google's (of an older version), or a fixed token, which has none.
 *
 * Invariants:
 *   OAI1  every text of a grant lives in memory that is wiped (mem.h).
 *   OAI2  no function here puts a text of a grant, a form or an answer into an error, except an
 *         error's code and a description from which anything that could be a secret was removed.
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
    TIDE_OAUTH_ERROR_BYTES = 64, /* "authorization_pending", with its end */
};

typedef enum tide_grant_type {
    TIDE_GRANT_USER,
    TIDE_GRANT_SERVICE,
    TIDE_GRANT_FIXED,
} tide_grant_type;

/* Embedded value; an empty text is absent. */
struct tide_grant {
    tide_grant_type type;
    tide_buf provider;                                /* its name; never empty unless FIXED */
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
/* Replaces the content of `value_out`.  TIDE_INVALID: broken escapes. */
tide_status tide_form_decode(tide_text escaped, tide_buf *value_out);
/* Overwrites the texts in an object, then frees it. */
void tide_json_wipe(json_t *object);

/* ---- requests ---- */

struct tide_oauth_post {
    tide_world *world;
    const struct tide_oauth_provider *provider;
    const char *url;
    const tide_buf *form; /* in memory that is wiped, as the answer will be */
    bool once;            /* must not be sent twice */
    const tide_cancel *cancel;
};
/* Sends a form.  TIDE_OK: the answer is a 2xx.  TIDE_AUTH: refused, and only the user can fix it
 * (err: "invalid_grant: ..."); TIDE_THROTTLED, TIDE_SERVER, TIDE_NETWORK, TIDE_TIMEOUT,
 * TIDE_CANCELED, TIDE_STOPPED, TIDE_NO_MEMORY; TIDE_UNKNOWN only of a form that must not be sent
 * twice.  `error_out`: the code of an OAuth error, or "". */
tide_status tide_oauth_post(const struct tide_oauth_post *post, struct tide_response *response,
                            char error_out[TIDE_OAUTH_ERROR_BYTES], tide_error *err);
/* A field with a number of seconds, in milliseconds, at most a day. */
uint64_t tide_oauth_ms(const json_t *object, const char *name, uint64_t otherwise_s);

/* The answer of the token endpoint; embedded value. */
struct tide_token_answer {
    tide_buf access_token;
    tide_buf refresh_token; /* may be empty */
    tide_buf scope;         /* may be empty */
    uint64_t life_ms;
    uint64_t asked_unix_ms;             /* when it was requested, on our clock */
    uint64_t server_unix_ms;            /* its clock, also after a refusal; 0: unknown */
    char error[TIDE_OAUTH_ERROR_BYTES]; /* of a refusal, or "" */
};
void tide_token_answer_init(struct tide_token_answer *answer, tide_mem *wiping);
void tide_token_answer_done(struct tide_token_answer *answer);
/* Returns what tide_oauth_post() does; TIDE_SERVER also for a malformed answer. */
tide_status tide_token_request(const struct tide_oauth_post *post,
                               struct tide_token_answer *answer_out, tide_error *err);
/* The same at the revocation endpoint.  TIDE_OK also when the token was already invalid. */
tide_status tide_revoke_request(const struct tide_oauth_post *post, tide_error *err);

/* ---- device codes (device.c) ---- */

/* Embedded value. */
struct tide_device {
    tide_buf code;        /* secret: it is redeemed */
    char user_code[64];   /* the user types this one, */
    char page[512];       /* here */
    uint64_t interval_ms; /* between two polls */
    uint64_t until_ms;    /* when the code expires, on our clock */
};
/* Requests a code; `device_out->code` is initialised. */
tide_status tide_device_start(const struct tide_oauth_post *post, struct tide_device *device_out,
                              tide_error *err);
/* Polls with a form that redeems the code, until the user has allowed access.  TIDE_AUTH: the
 * user declined; TIDE_TIMEOUT: the code expired, or `until_ms` came first. */
tide_status tide_device_poll(const struct tide_oauth_post *post, struct tide_device *device,
                             uint64_t until_ms, struct tide_token_answer *answer_out,
                             tide_error *err);

/* A service account's form: an assertion valid from now on (service.c). */
tide_status tide_service_form(const struct tide_grant *grant, uint64_t now_unix_ms, tide_buf *form,
                              tide_error *err);

#endif
