#include "serve/access/keys.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/encode.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

struct tide_keys {
    tide_world *world;
    tide_mem *mem;
    struct tide_keys_store store;
    tide_lock *lock;    /* of the rows in memory */
    tide_lock *writing; /* one store operation at a time; taken before `lock` */
    size_t count;
    uint64_t last_id;
    struct tide_key keys[TIDE_KEYS_MAX];
};

/* ---- scopes ---- */

static const char *const scope_names[] = {"none", "metrics", "look", "work", "page"};

const char *tide_key_scope_name(tide_httpd_scope scope)
{
    TIDE_ASSERT((size_t)scope < sizeof scope_names / sizeof scope_names[0]);
    return scope_names[scope];
}

bool tide_key_scope_parse(tide_text name, tide_httpd_scope *scope_out)
{
    for (size_t i = 1; i < sizeof scope_names / sizeof scope_names[0]; i++)
        if (tide_text_equal(name, tide_text_of(scope_names[i]))) {
            *scope_out = (tide_httpd_scope)i;
            return true;
        }
    return false;
}

/* ---- opening ---- */

static bool take(void *arg, const struct tide_key *key)
{
    tide_keys *keys = arg;
    if (keys->count == TIDE_KEYS_MAX)
        return false;
    keys->keys[keys->count++] = *key;
    if (key->id > keys->last_id)
        keys->last_id = key->id;
    return true;
}

tide_status tide_keys_new(tide_world *world, tide_mem *mem, const struct tide_keys_store *store,
                          tide_keys **keys_out, tide_error *err)
{
    tide_keys *keys = tide_mem_new(mem, sizeof *keys);
    if (keys == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the keys");
    keys->world = world;
    keys->mem = mem;
    keys->store = *store;
    tide_status rc = tide_lock_new(world, &keys->lock);
    if (rc == TIDE_OK)
        rc = tide_lock_new(world, &keys->writing);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for the keys");
    if (rc == TIDE_OK)
        rc = store->load(store->arg, take, keys, err);
    if (rc != TIDE_OK) {
        tide_keys_free(keys);
        return rc;
    }
    *keys_out = keys;
    return TIDE_OK;
}

void tide_keys_free(tide_keys *keys)
{
    if (keys == NULL)
        return;
    if (keys->writing != NULL)
        tide_lock_free(keys->world, keys->writing);
    if (keys->lock != NULL)
        tide_lock_free(keys->world, keys->lock);
    tide_mem_free(keys->mem, keys, sizeof *keys);
}

/* ---- looking up ---- */

static void hash_of(tide_text text, unsigned char hash_out[TIDE_KEY_HASH_BYTES])
{
    const int done = EVP_Digest(text.data, text.bytes, hash_out, NULL, EVP_sha256(), NULL);
    if (done != 1) /* no memory: a hash that no key has */
        memset(hash_out, 0, TIDE_KEY_HASH_BYTES);
}

static bool is_live(const struct tide_key *key, uint64_t now_unix_ms)
{
    return key->revoked_unix_ms == 0 &&
           (key->expires_unix_ms == 0 || now_unix_ms < key->expires_unix_ms);
}

bool tide_keys_authorize(void *arg, tide_text text, struct tide_httpd_who *who_out)
{
    tide_keys *keys = arg;
    const uint64_t now_unix_ms = tide_world_now_unix_ms(keys->world);
    unsigned char hash[TIDE_KEY_HASH_BYTES];
    size_t found = TIDE_KEYS_MAX;
    if (text.bytes != TIDE_KEY_TEXT_BYTES)
        return false;
    hash_of(text, hash);
    tide_lock_take(keys->world, keys->lock);
    for (size_t i = 0; i < keys->count; i++) /* all of them (ACC3) */
        if (CRYPTO_memcmp(keys->keys[i].hash, hash, sizeof hash) == 0)
            found = i;
    const bool live = found < TIDE_KEYS_MAX && is_live(&keys->keys[found], now_unix_ms);
    if (live) {
        who_out->id = keys->keys[found].id;
        who_out->scope = keys->keys[found].scope;
        memcpy(who_out->name, keys->keys[found].name, sizeof who_out->name);
    }
    tide_lock_drop(keys->world, keys->lock);
    explicit_bzero(hash, sizeof hash);
    return live;
}

static struct tide_key *find(tide_keys *keys, uint64_t id)
{
    for (size_t i = 0; i < keys->count; i++)
        if (keys->keys[i].id == id)
            return &keys->keys[i];
    return NULL;
}

bool tide_keys_still(void *arg, uint64_t id)
{
    tide_keys *keys = arg;
    const uint64_t now_unix_ms = tide_world_now_unix_ms(keys->world);
    tide_lock_take(keys->world, keys->lock);
    const struct tide_key *key = find(keys, id);
    const bool live = key != NULL && is_live(key, now_unix_ms);
    tide_lock_drop(keys->world, keys->lock);
    return live;
}

void tide_keys_each(tide_keys *keys, void (*visit)(void *arg, const struct tide_key *key),
                    void *arg)
{
    for (size_t i = 0;; i++) {
        struct tide_key copy;
        tide_lock_take(keys->world, keys->lock);
        const bool more = i < keys->count;
        if (more)
            copy = keys->keys[i];
        tide_lock_drop(keys->world, keys->lock);
        if (!more)
            return;
        visit(arg, &copy);
    }
}

/* ---- changing ---- */

static tide_status make_text(tide_keys *keys, char text_out[TIDE_KEY_TEXT_BYTES + 1],
                             tide_error *err)
{
    struct tide_mem_wiping wiping;
    unsigned char secret[32];
    tide_buf text;
    tide_mem_wiping_init(&wiping, keys->mem);
    tide_buf_init(&text, &wiping.base, TIDE_KEY_TEXT_BYTES);
    tide_world_random(keys->world, secret, sizeof secret);
    const tide_status rc = tide_base64_add(&text, (tide_text){(const char *)secret, sizeof secret},
                                           tide_base64_url, false);
    if (rc == TIDE_OK) {
        TIDE_ASSERT(text.bytes == TIDE_KEY_TEXT_BYTES);
        memcpy(text_out, text.data, TIDE_KEY_TEXT_BYTES + 1);
    } else {
        (void)tide_error_set(err, rc, "no memory for a key");
    }
    explicit_bzero(secret, sizeof secret);
    tide_buf_done(&text);
    return rc;
}

static bool name_is_valid(tide_text name)
{
    if (name.bytes == 0 || name.bytes >= TIDE_HTTPD_NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < name.bytes; i++)
        if ((unsigned char)name.data[i] < ' ' || name.data[i] == 127)
            return false;
    return true;
}

static uint64_t ended_at(const struct tide_key *key)
{
    return key->revoked_unix_ms != 0 ? key->revoked_unix_ms : key->expires_unix_ms;
}

/* The row that makes room when all are used: the one that ended first.  TIDE_KEYS_MAX: all hold. */
static size_t oldest_ended(const tide_keys *keys, uint64_t now_unix_ms)
{
    size_t oldest = TIDE_KEYS_MAX;
    for (size_t i = 0; i < keys->count; i++)
        if (!is_live(&keys->keys[i], now_unix_ms) &&
            (oldest == TIDE_KEYS_MAX || ended_at(&keys->keys[i]) < ended_at(&keys->keys[oldest])))
            oldest = i;
    return oldest;
}

static void put(tide_keys *keys, const struct tide_key *key, size_t instead_of)
{
    tide_lock_take(keys->world, keys->lock);
    if (instead_of < keys->count) {
        keys->count--;
        memmove(&keys->keys[instead_of], &keys->keys[instead_of + 1],
                (keys->count - instead_of) * sizeof keys->keys[0]);
    }
    TIDE_ASSERT(keys->count < TIDE_KEYS_MAX);
    keys->keys[keys->count++] = *key;
    keys->last_id = key->id;
    tide_lock_drop(keys->world, keys->lock);
}

/* With `writing` held: only this thread changes the rows, so reading them needs no lock. */
static tide_status add(tide_keys *keys, struct tide_key *key, tide_error *err)
{
    size_t instead_of = TIDE_KEYS_MAX;
    uint64_t gone = 0;
    key->id = keys->last_id + 1;
    if (keys->count == TIDE_KEYS_MAX) {
        instead_of = oldest_ended(keys, key->created_unix_ms);
        if (instead_of == TIDE_KEYS_MAX)
            return tide_error_set(err, TIDE_FULL,
                                  "there are %d keys already; revoke one: tidemark token revoke",
                                  TIDE_KEYS_MAX);
        gone = keys->keys[instead_of].id;
    }
    const tide_status rc = keys->store.add(keys->store.arg, key, gone, err);
    if (rc == TIDE_OK)
        put(keys, key, instead_of); /* only now (ACC1) */
    return rc;
}

tide_status tide_keys_add(tide_keys *keys, tide_text name, tide_httpd_scope scope,
                          uint64_t lifetime_ms, char text_out[TIDE_KEY_TEXT_BYTES + 1],
                          uint64_t *id_out, tide_error *err)
{
    TIDE_ASSERT(scope != TIDE_HTTPD_NONE);
    if (!name_is_valid(name))
        return tide_error_set(err, TIDE_INVALID,
                              "a key's name has 1 to %d bytes and no control characters",
                              TIDE_HTTPD_NAME_BYTES_MAX - 1);
    struct tide_key key = {.scope = scope, .created_unix_ms = tide_world_now_unix_ms(keys->world)};
    memcpy(key.name, name.data, name.bytes);
    key.expires_unix_ms = lifetime_ms == 0 ? 0 : key.created_unix_ms + lifetime_ms;
    tide_status rc = make_text(keys, text_out, err);
    if (rc != TIDE_OK)
        return rc;
    if (EVP_Digest(text_out, TIDE_KEY_TEXT_BYTES, key.hash, NULL, EVP_sha256(), NULL) != 1)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for a key");
    if (rc == TIDE_OK) {
        tide_lock_take(keys->world, keys->writing);
        rc = add(keys, &key, err);
        tide_lock_drop(keys->world, keys->writing);
    }
    if (rc == TIDE_OK)
        *id_out = key.id;
    else
        explicit_bzero(text_out, TIDE_KEY_TEXT_BYTES + 1);
    return rc;
}

tide_status tide_keys_revoke(tide_keys *keys, uint64_t id, tide_error *err)
{
    const uint64_t now_unix_ms = tide_world_now_unix_ms(keys->world);
    tide_lock_take(keys->world, keys->writing);
    tide_lock_take(keys->world, keys->lock);
    struct tide_key *key = find(keys, id);
    if (key != NULL && key->revoked_unix_ms == 0)
        key->revoked_unix_ms = now_unix_ms; /* at once (ACC2) */
    tide_lock_drop(keys->world, keys->lock);
    /* A second call writes again: the first one's store may have failed. */
    const tide_status rc = key == NULL ? tide_error_set(err, TIDE_NOT_FOUND, "there is no key %llu",
                                                        (unsigned long long)id)
                                       : keys->store.revoke(keys->store.arg, id, now_unix_ms, err);
    tide_lock_drop(keys->world, keys->writing);
    return rc;
}
