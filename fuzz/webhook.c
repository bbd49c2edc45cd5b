/* webhook.c - what anybody can post to the webhook, and what an issuer may answer: tokens, bodies, sets of
 * keys, Cache-Control.  The first byte says which.
 *
 * No token is signed by the key below: its modulus is a random number. */
#include "fuzz.h"

#include "serve/webhook/issuer.h"
#include "serve/webhook/push.h"

static const char keys[] =
    "{\"keys\":[{\"kty\":\"RSA\",\"alg\":\"RS256\",\"use\":\"sig\",\"kid\":"
    "\"k\",\"e\":\"AQAB\",\"n\":\""
    "t-kF2SZu2ngxCtI-F_YF7EzLzKy04HvGxZJtvk5ra4hvWuv6Q-N65dxC3vfj9JxiCfMawyMOrJMBUhqO"
    "f-Y2zfm-Wn27iWJ8ySB7uHG1ZDmJqx1MidD-nY0CCpD5LSTKmnNLIP5PU_ZBiFW01aHEjJW3SBG8lflR"
    "rXpc5cMDqZD3Wyge5zraJUS9wjglm1kkOfGiIYUhGq49BdbXsAogRWBWqFgMNRX3KFgG-Lk3PDzclmPN"
    "rQnDE87fm7R54TXJx2H-azcRadtxyAZIsMmTsIMEIuhP8iNSYEjXdzuraCP7__1orC4sFtGrW9BZWb_0"
    "dIGbRAqD_-KEGDOa1uLdxw"
    "\"}]}";

static void token(tide_text text)
{
    static const char *const issuers[] = {"https://accounts.google.com", NULL};
    static const struct tide_token_rules rules = {issuers, "aud", "a@b"};
    static tide_keyset *keyset;
    struct tide_token found;
    if (keyset == NULL)
        TIDE_ASSERT(tide_keyset_read(TIDE_TEXT(keys), tide_mem_heap(), &keyset, NULL) == TIDE_OK);
    const tide_token_fault fault =
        tide_token_read(text, &rules, UINT64_C(1800000000000), tide_mem_heap(), &found);
    TIDE_ASSERT(tide_token_fault_name(fault) != NULL);
    if (fault != TIDE_TOKEN_GOOD)
        return;
    TIDE_ASSERT(text.bytes <= TIDE_TOKEN_BYTES_MAX);
    TIDE_ASSERT(found.signed_text.data == text.data && found.signed_text.bytes < text.bytes);
    TIDE_ASSERT(text.data[found.signed_text.bytes] == '.');
    TIDE_ASSERT(found.kid[0] != '\0' && strlen(found.kid) <= TIDE_TOKEN_KID_BYTES_MAX);
    TIDE_ASSERT(found.expires_unix_s + TIDE_TOKEN_SKEW_S >= 1800000000);
    TIDE_ASSERT(tide_keyset_check(keyset, &found) != TIDE_SIGNATURE_GOOD);
}

static void body(tide_text text)
{
    struct tide_push push;
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_push_read(text, tide_mem_heap(), &push, &err);
    TIDE_ASSERT(rc == TIDE_OK || (rc == TIDE_INVALID && err.text[0] != '\0'));
    if (rc != TIDE_OK)
        return;
    const char *at = strchr(push.address, '@');
    TIDE_ASSERT(at != NULL && at != push.address && at[1] != '\0' && strchr(at + 1, '@') == NULL);
    for (const char *c = push.address; *c != '\0'; c++)
        TIDE_ASSERT(*c > ' ' && *c <= '~');
    TIDE_ASSERT(strspn(push.history_id, "0123456789") == strlen(push.history_id));
}

static void key_set(tide_text text)
{
    tide_keyset *keyset = NULL;
    const tide_status rc = tide_keyset_read(text, tide_mem_heap(), &keyset, NULL);
    TIDE_ASSERT((rc == TIDE_OK) == (keyset != NULL));
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_SERVER);
    struct tide_token forged = {
        .signed_text = TIDE_TEXT("a.b"), .kid = "k", .signature_bytes = 256};
    if (rc == TIDE_OK)
        TIDE_ASSERT(tide_keyset_check(keyset, &forged) != TIDE_SIGNATURE_GOOD);
    tide_keyset_free(keyset);
}

static void lifetime(tide_text text)
{
    const uint64_t ms = tide_issuer_life_ms(text, text);
    TIDE_ASSERT(ms >= TIDE_ISSUER_LIFE_MS_MIN && ms <= TIDE_ISSUER_LIFE_MS_MAX);
    char *url = fuzz_cstr(text);
    (void)tide_issuer_url_is_safe(url);
    free(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static void (*const parts[])(tide_text) = {token, body, key_set, lifetime};
    struct fuzz_input input = {data, bytes};
    const uint8_t which = fuzz_u8(&input);
    const tide_text text = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    parts[which % 4](text);
    free((void *)(uintptr_t)text.data);
    return 0;
}
