/* keys.h - who may come in: the keys of browsers and programs.
 *
 * A key is 32 random bytes, shown once, to the browser or in the terminal that asked for it.  What
 * is stored is its SHA-256: a copy of the ledger lets nobody in.  All keys are in memory, so that
 * a request is checked without a disk; the store is the caller's (struct tide_keys_store; over the
 * ledger with keys_rows.h).
 *
 * Invariants:
 *   ACC1  a key is given out only after its row is durable; a crash in between leaves the row of
 *         a key that nobody has.
 *   ACC2  a revoked key is refused from the moment tide_keys_revoke() is called, also if the store
 *         then fails; the caller hears of that.
 *   ACC3  looking a key up takes the same time whichever key it is: its hash is compared with every
 *         stored one, in constant time.
 *   ACC4  the text of a key is in no log, no error, and no list.
 *   ACC5  at most TIDE_KEYS_MAX rows; those that ended longest ago make room.
 *
 * Any thread may call; store operations run without the lock, one at a time.
 */
#ifndef TIDE_SERVE_ACCESS_KEYS_H
#define TIDE_SERVE_ACCESS_KEYS_H

#include "base/mem.h"
#include "serve/http/route.h"
#include "world/world.h"

enum {
    TIDE_KEYS_MAX = 256,
    TIDE_KEY_TEXT_BYTES = 43, /* 32 bytes in base64url */
    TIDE_KEY_HASH_BYTES = 32,
};

struct tide_key {
    uint64_t id; /* never used again */
    char name[TIDE_HTTPD_NAME_BYTES_MAX];
    tide_httpd_scope scope;
    unsigned char hash[TIDE_KEY_HASH_BYTES];
    uint64_t created_unix_ms;
    uint64_t expires_unix_ms; /* 0: never */
    uint64_t revoked_unix_ms; /* 0: not */
};

struct tide_keys_store {
    /* Calls `take` with every row; it returns false when there are too many. */
    tide_status (*load)(void *arg, bool (*take)(void *take_arg, const struct tide_key *key),
                        void *take_arg, tide_error *err);
    /* Stores a new row, durably, and removes row `gone` if that is not 0. */
    tide_status (*add)(void *arg, const struct tide_key *key, uint64_t gone, tide_error *err);
    tide_status (*revoke)(void *arg, uint64_t id, uint64_t now_unix_ms, tide_error *err);
    void *arg;
};

typedef struct tide_keys tide_keys;

/* Loads all rows. */
tide_status tide_keys_new(tide_world *world, tide_mem *mem, const struct tide_keys_store *store,
                          tide_keys **keys_out, tide_error *err);
void tide_keys_free(tide_keys *keys); /* NULL is fine */

/* Makes a key; its text goes to the caller alone, who wipes it.  `lifetime_ms` 0: no end.
 *   TIDE_INVALID  the name is empty, too long, or has control characters
 *   TIDE_FULL     TIDE_KEYS_MAX keys hold
 * or what the store says. */
tide_status tide_keys_add(tide_keys *keys, tide_text name, tide_httpd_scope scope,
                          uint64_t lifetime_ms, char text_out[TIDE_KEY_TEXT_BYTES + 1],
                          uint64_t *id_out, tide_error *err);
/* TIDE_NOT_FOUND.  Twice is harmless. */
tide_status tide_keys_revoke(tide_keys *keys, uint64_t id, tide_error *err);
/* Calls `visit` with a copy of every row, oldest first. */
void tide_keys_each(tide_keys *keys, void (*visit)(void *arg, const struct tide_key *key),
                    void *arg);

/* For struct tide_httpd_options; their arg is the tide_keys. */
tide_httpd_authorize tide_keys_authorize;
bool tide_keys_still(void *keys, uint64_t id);

/* "page", "metrics", "look", "work"; false: another word. */
bool tide_key_scope_parse(tide_text name, tide_httpd_scope *scope_out);
const char *tide_key_scope_name(tide_httpd_scope scope);

#endif
