/* auth_state.h - the inside of struct box_auth, shared by auth*.c only.
 *
 * Every text that a client can show us (fixed and access tokens, refresh tokens,
 * codes) is one secret in one hash table, so that the gate's
 * question costs one hash and one comparison however many there are. */
#ifndef BOX_AUTH_STATE_H
#define BOX_AUTH_STATE_H

#include "base/map.h"
#include "cloudbox/signin/auth.h"
#include "cloudbox/signin/jwt.h"
#include "cloudbox/gate/user.h"

enum {
    BOX_SECRETS_MAX = 1 << 20,
    BOX_SECRET_BYTES_MAX = 4096,
    BOX_GRANTS_MAX = 1 << 17,
    BOX_CLIENTS_MAX = 10000,
    BOX_CLIENT_BYTES_MAX = 255,
    BOX_ACCOUNTS_MAX = 1000,
    BOX_ACCOUNT_USERS_MAX = 10000,
    BOX_CODES_MAX = 20000,
    BOX_TICKETS_MAX = 1024,
    BOX_TICKET_BYTES = 32,
    BOX_REFRESH_MAX = 100, /* valid ones per user and client (BAUT4) */
};

typedef enum box_secret_kind {
    BOX_SECRET_NONE, /* a free slot */
    BOX_SECRET_FIXED,
    BOX_SECRET_ACCESS,
    BOX_SECRET_REFRESH,
    BOX_SECRET_CODE,
} box_secret_kind;

struct box_secret {
    char *text; /* owned */
    size_t text_bytes;
    box_secret_kind kind;
    bool used;      /* a code that was redeemed */
    uint32_t next;  /* in the chain of equal hashes, or of free slots; 0 ends it */
    uint32_t grant; /* 1-based; 0: none */
    uint32_t client;
    uint32_t scopes;
    struct box_user *user;
    uint64_t made_ms;
    uint64_t expires_ms; /* from this time on it is expired */
    struct box_ask *ask; /* owned; of codes */
};

struct box_grant {
    struct box_user *user;
    uint32_t client;
    uint32_t scopes;
    uint32_t refresh; /* its secret */
    bool dead;
    uint64_t made_ms;
    uint64_t used_ms;    /* half a year without use ends it */
    uint64_t expires_ms; /* seven days in testing mode, else UINT64_MAX */
};

struct box_client {
    char id[BOX_CLIENT_BYTES_MAX + 1];
    char secret[BOX_CLIENT_BYTES_MAX + 1];
    bool registered;
    uint32_t project; /* clients whose ids start with the same number share one */
};

struct box_account {
    char email[BOX_EMAIL_BYTES_MAX + 1];
    box_key *key;
    bool restricted;
    struct box_delegation {
        struct box_user *user;
        uint32_t scopes;
    } * delegations;
    size_t delegations_count;
    size_t delegations_capacity;
};

struct box_pending {
    char ticket[BOX_TICKET_BYTES + 1]; /* "" when it was taken */
    uint64_t expires_ms;
    struct box_ask ask;
};

struct box_auth {
    box_cloud *cloud;
    uint64_t seed;   /* of everything that looks random here */
    uint64_t serial; /* of the next text; also replayed, so that none is issued twice */
    uint64_t tickets_serial;
    struct box_pending *tickets; /* a ring of BOX_TICKETS_MAX, made when first needed */

    tide_map by_hash;           /* hash of a text -> first slot of its chain */
    struct box_secret *secrets; /* [0] is not used */
    size_t secrets_capacity;
    size_t secrets_count; /* slots ever used, [0] included */
    uint32_t free_slot;
    size_t living;
    size_t codes;    /* of the valid ones */
    size_t sweep_at; /* with this many valid ones expired ones are searched and dropped */

    struct box_grant *grants; /* [0] is not used */
    size_t grants_capacity;
    size_t grants_count;

    struct box_client *clients; /* [0] is not used */
    size_t clients_capacity;
    size_t clients_count;
    bool clients_registered; /* then no others are let in */

    struct box_account *accounts;
    size_t accounts_capacity;
    size_t accounts_count;

    bool testing;
    box_key *key; /* NULL until it is first needed */
};

/* The slot of a valid or expired secret with that text; 0: there is none. */
uint32_t box_secret_find(const struct box_auth *auth, tide_text text);
/* Copies the text.  0: full, or the text is taken. */
uint32_t box_secret_add(struct box_auth *auth, tide_text text, const struct box_secret *secret);
void box_secret_drop(struct box_auth *auth, uint32_t slot);
/* Drops what can never be shown again to any effect, when it is time. */
void box_secrets_sweep(struct box_auth *auth, uint64_t now_ms);
/* A fresh text out of seed and serial: `prefix` and `count` letters. */
void box_secret_text(struct box_auth *auth, const char *prefix, size_t count, tide_buf *out);

/* Letters, digits, '-' and '_' out of (seed, serial). */
void box_letters(uint64_t seed, uint64_t serial, size_t count, char *text_out);

/* Not empty, and fit for an Authorization header. */
bool box_is_printable(tide_text text);
/* As box_auth_client(), also for clients that would not be let in. */
uint32_t box_client_need(struct box_auth *auth, tide_text id);
bool box_grant_lives(const struct box_auth *auth, uint32_t grant, uint64_t now_ms);
uint32_t box_grant_add(struct box_auth *auth, tide_text refresh, const struct box_grant *grant);
void box_grants_revoke(struct box_auth *auth, const struct box_user *user, uint32_t scopes);
void box_grants_stamp(struct box_auth *auth, bool on);
void box_access_expire(struct box_auth *auth, const struct box_user *user);
uint32_t box_code_add(struct box_auth *auth, tide_text code, const struct box_secret *secret,
                      const struct box_ask *ask);
/* A new access token.  0: the table is full. */
uint32_t box_access_issue(struct box_auth *auth, const struct box_secret *like, uint64_t now_ms,
                          struct box_issue *issue_out);

struct box_account *box_account_find(struct box_auth *auth, tide_text email);
struct box_account *box_account_add(struct box_auth *auth, tide_text email, box_key *key);
void box_accounts_done(struct box_auth *auth);
tide_status box_account_allow(struct box_account *account, struct box_user *user, uint32_t scopes);
box_key *box_auth_key(struct box_auth *auth); /* made at the first call */
/* Hands a change on, with the serial. */
void box_auth_keep(struct box_auth *auth, json_t *change);

#endif
