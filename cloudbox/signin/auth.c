/* auth.c - the table of secrets, and whom a bearer token stands for. */
#include "cloudbox/signin/auth_state.h"

#include "base/check.h"
#include "base/encode.h"
#include "cloudbox/microsoft/scopes.h"

#include <string.h>

enum { SWEEP_AT_LEAST = 1024 };

/* ---- the table of secrets ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)(a ^ 0x9e3779b97f4a7c15u) * (b | 1);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Eight bytes a step: this is on the way of every call.  Never 0, since the map
 * has no such key. */
static uint64_t hash_of(tide_text text)
{
    uint64_t hash = text.bytes + 0x2545f4914f6cdd1du;
    size_t at = 0;
    for (; at + 8 <= text.bytes; at += 8) {
        uint64_t word;
        memcpy(&word, text.data + at, 8);
        hash = mix(hash ^ word, 0xbf58476d1ce4e5b9u);
    }
    uint64_t rest = 0;
    if (at < text.bytes)
        memcpy(&rest, text.data + at, text.bytes - at);
    hash = mix(hash ^ rest, 0x94d049bb133111ebu);
    return hash == 0 ? 1 : hash;
}

uint32_t box_secret_find(const struct box_auth *auth, tide_text text)
{
    if (text.bytes == 0 || text.bytes > BOX_SECRET_BYTES_MAX)
        return 0;
    uint32_t slot = 0;
    if (!tide_map_get(&auth->by_hash, hash_of(text), &slot))
        return 0;
    while (slot != 0) {
        const struct box_secret *secret = &auth->secrets[slot];
        if (secret->text_bytes == text.bytes && memcmp(secret->text, text.data, text.bytes) == 0)
            return slot;
        slot = secret->next;
    }
    return 0;
}

void box_secret_drop(struct box_auth *auth, uint32_t slot)
{
    TIDE_ASSERT(slot > 0 && slot < auth->secrets_count);
    struct box_secret *secret = &auth->secrets[slot];
    TIDE_ASSERT(secret->kind != BOX_SECRET_NONE);

    const uint64_t hash = hash_of((tide_text){secret->text, secret->text_bytes});
    uint32_t at = 0;
    TIDE_ASSERT(tide_map_get(&auth->by_hash, hash, &at));
    if (at == slot && secret->next == 0) {
        TIDE_ASSERT(tide_map_remove(&auth->by_hash, hash));
    } else if (at == slot) {
        TIDE_ASSERT(tide_map_put(&auth->by_hash, hash, secret->next));
    } else {
        while (auth->secrets[at].next != slot)
            at = auth->secrets[at].next;
        auth->secrets[at].next = secret->next;
    }
    if (secret->kind == BOX_SECRET_CODE)
        auth->codes--;
    tide_mem_free(tide_mem_heap(), secret->text, secret->text_bytes + 1);
    tide_mem_free(tide_mem_heap(), secret->ask, sizeof *secret->ask);
    *secret = (struct box_secret){.kind = BOX_SECRET_NONE, .next = auth->free_slot};
    auth->free_slot = slot;
    auth->living--;
}

static uint32_t slot_take(struct box_auth *auth)
{
    const uint32_t slot = auth->free_slot;
    if (slot != 0) {
        auth->free_slot = auth->secrets[slot].next;
        return slot;
    }
    return TIDE_GROW(auth->secrets, auth->secrets_capacity, auth->secrets_count + 1,
                     BOX_SECRETS_MAX)
               ? (uint32_t)auth->secrets_count++
               : 0;
}

uint32_t box_secret_add(struct box_auth *auth, tide_text text, const struct box_secret *secret)
{
    TIDE_ASSERT(secret->kind != BOX_SECRET_NONE);
    if (text.bytes == 0 || text.bytes > BOX_SECRET_BYTES_MAX || box_secret_find(auth, text) != 0)
        return 0;
    const uint32_t slot = slot_take(auth);
    if (slot == 0)
        return 0;

    struct box_secret *made = &auth->secrets[slot];
    *made = *secret;
    made->text = tide_mem_new(tide_mem_heap(), text.bytes + 1);
    TIDE_ASSERT(made->text != NULL);
    memcpy(made->text, text.data, text.bytes);
    made->text_bytes = text.bytes;
    made->next = 0;
    const uint64_t hash = hash_of(text);
    uint32_t first = 0;
    if (tide_map_get(&auth->by_hash, hash, &first))
        made->next = first;
    TIDE_ASSERT(tide_map_put(&auth->by_hash, hash, slot));
    auth->living++;
    if (made->kind == BOX_SECRET_CODE)
        auth->codes++;
    return slot;
}

/* Expired refresh tokens stay: they are answered differently from unknown ones. */
static bool is_spent(const struct box_auth *auth, const struct box_secret *secret, uint64_t now_ms)
{
    if (secret->kind == BOX_SECRET_CODE)
        return now_ms >= secret->expires_ms;
    if (secret->kind != BOX_SECRET_ACCESS)
        return false;
    return now_ms >= secret->expires_ms ||
           (secret->grant != 0 && !box_grant_lives(auth, secret->grant, now_ms));
}

void box_secrets_sweep(struct box_auth *auth, uint64_t now_ms)
{
    if (auth->living < auth->sweep_at && auth->codes < BOX_CODES_MAX)
        return;
    for (uint32_t slot = 1; slot < auth->secrets_count; slot++) {
        if (is_spent(auth, &auth->secrets[slot], now_ms))
            box_secret_drop(auth, slot);
    }
    /* Twice what is left, so that a sweep costs O(1) per secret that was added. */
    auth->sweep_at = 2 * auth->living < SWEEP_AT_LEAST ? SWEEP_AT_LEAST : 2 * auth->living;
    if (auth->sweep_at > BOX_SECRETS_MAX / 2)
        auth->sweep_at = BOX_SECRETS_MAX / 2;
}

void box_letters(uint64_t seed, uint64_t serial, size_t count, char *text_out)
{
    tide_rng rng = tide_rng_seeded(mix(seed, 2 * serial));
    for (size_t i = 0; i < count; i++)
        text_out[i] = tide_base64_url[tide_rng_next(&rng) >> 58];
    text_out[count] = '\0';
}

void box_secret_text(struct box_auth *auth, const char *prefix, size_t count, tide_buf *out)
{
    char text[256];
    TIDE_ASSERT(count < sizeof text);
    do {
        tide_buf_clear(out);
        box_letters(auth->seed, auth->serial++, count, text);
        box_print(out, "%s%s", prefix, text);
    } while (box_secret_find(auth, tide_buf_text(out)) != 0); /* a fixed token may look so */
}

/* ---- life, and the gate's question ---- */

struct box_auth *box_auth_new(box_cloud *cloud)
{
    struct box_auth *auth = tide_mem_new(tide_mem_heap(), sizeof *auth);
    TIDE_ASSERT(auth != NULL);
    auth->cloud = cloud;
    auth->seed = tide_rng_next(box_cloud_rng(cloud));
    auth->sweep_at = SWEEP_AT_LEAST;
    tide_map_init(&auth->by_hash, tide_mem_heap());
    auth->secrets_count = 1;
    auth->grants_count = 1;
    auth->clients_count = 1;
    TIDE_ASSERT(TIDE_GROW(auth->secrets, auth->secrets_capacity, 1, BOX_SECRETS_MAX));
    return auth;
}

void box_auth_free(struct box_auth *auth)
{
    if (auth == NULL)
        return;
    for (uint32_t slot = 1; slot < auth->secrets_count; slot++) {
        if (auth->secrets[slot].kind != BOX_SECRET_NONE)
            box_secret_drop(auth, slot);
    }
    tide_mem *heap = tide_mem_heap();
    box_accounts_done(auth);
    box_key_free(auth->key);
    tide_mem_free(heap, auth->tickets, BOX_TICKETS_MAX * sizeof auth->tickets[0]);
    tide_mem_free(heap, auth->grants, auth->grants_capacity * sizeof auth->grants[0]);
    tide_mem_free(heap, auth->clients, auth->clients_capacity * sizeof auth->clients[0]);
    tide_mem_free(heap, auth->secrets, auth->secrets_capacity * sizeof auth->secrets[0]);
    tide_map_done(&auth->by_hash);
    tide_mem_free(heap, auth, sizeof *auth);
}

/* An access token that is good at this moment, else NULL (BAUT2). */
static const struct box_secret *token_alive(const struct box_auth *auth, tide_text token,
                                            uint64_t now_ms)
{
    const uint32_t slot = box_secret_find(auth, token);
    if (slot == 0)
        return NULL;
    const struct box_secret *secret = &auth->secrets[slot];
    if (secret->kind != BOX_SECRET_FIXED && secret->kind != BOX_SECRET_ACCESS)
        return NULL;
    if (now_ms >= secret->expires_ms)
        return NULL;
    if (secret->grant != 0 && !box_grant_lives(auth, secret->grant, now_ms))
        return NULL;
    return secret;
}

bool box_auth_check(struct box_auth *auth, tide_text token, uint64_t now_ms,
                    struct box_principal *principal_out)
{
    const struct box_secret *secret = token_alive(auth, token, now_ms);
    if (secret == NULL)
        return false;
    *principal_out = (struct box_principal){
        .user = secret->user,
        .scopes = secret->scopes,
        .project = secret->client == 0 ? 0 : auth->clients[secret->client].project,
    };
    return true;
}

bool box_auth_facts(const struct box_auth *auth, tide_text token, uint64_t now_ms,
                    struct box_token_facts *facts_out)
{
    const struct box_secret *secret = token_alive(auth, token, now_ms);
    if (secret == NULL)
        return false;
    *facts_out = (struct box_token_facts){.user = secret->user,
                                          .client = secret->client,
                                          .scopes = secret->scopes,
                                          .expires_ms = secret->expires_ms,
                                          .offline = secret->grant != 0};
    return true;
}

tide_status box_auth_add_token(struct box_auth *auth, tide_text token, struct box_user *user)
{
    TIDE_ASSERT(user != NULL);
    if (!box_is_printable(token) || token.bytes > BOX_SECRET_BYTES_MAX)
        return TIDE_INVALID;
    const uint32_t slot = box_secret_find(auth, token);
    if (slot != 0) {
        struct box_secret *old = &auth->secrets[slot];
        if (old->kind != BOX_SECRET_FIXED || old->user != user)
            return TIDE_EXISTS;
        if (old->expires_ms == UINT64_MAX)
            return TIDE_OK;
        old->expires_ms = UINT64_MAX; /* it was revoked and is good again, also after a replay */
    } else {
        const struct box_secret fixed = {.kind = BOX_SECRET_FIXED,
                                         .user = user,
                                         .scopes = BOX_SCOPE_ALL | BOX_SCOPE_MICROSOFT_ALL,
                                         .expires_ms = UINT64_MAX};
        if (box_secret_add(auth, token, &fixed) == 0)
            return TIDE_FULL;
    }
    box_auth_keep(auth, json_pack("{s:s, s:o, s:s}", "op", "auth-token", "token",
                                  box_json_text(token), "email", user->email));
    return TIDE_OK;
}

uint32_t box_signin_scopes_parse(tide_text text)
{
    return box_scopes_parse(text) | box_microsoft_scopes_parse(text);
}

void box_signin_scopes_text(uint32_t scopes, tide_buf *out)
{
    const uint32_t microsoft = scopes & BOX_SCOPE_MICROSOFT_ALL;
    box_scopes_text(scopes & BOX_SCOPE_ALL, out);
    if (microsoft != 0 && (scopes & BOX_SCOPE_ALL) != 0)
        box_add_cstr(out, " ");
    box_microsoft_scopes_text(microsoft, out);
}
