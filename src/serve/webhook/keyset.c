#include "serve/webhook/keyset.h"

#include "base/encode.h"
#include "base/json.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdio.h>
#include <string.h>

enum { BITS_MIN = 2048, BITS_MAX = 4096, NUMBER_BYTES_MAX = BITS_MAX / 8, EXPONENT_BYTES_MAX = 4 };

struct key {
    char kid[TIDE_TOKEN_KID_BYTES_MAX + 1];
    EVP_PKEY *rsa;
};

struct tide_keyset {
    tide_mem *mem;
    struct key keys[TIDE_KEYSET_KEYS_MAX];
    size_t count;
};

/* ---- reading ---- */

/* A number of a key, in base64url; NULL: absent, malformed or too long. */
static BIGNUM *number_read(const json_t *jwk, const char *name, size_t bytes_max, tide_mem *mem)
{
    tide_text text = TIDE_TEXT_NONE;
    tide_buf bytes;
    BIGNUM *number = NULL;
    tide_buf_init(&bytes, mem, bytes_max);
    if (tide_json_get_text(jwk, name, &text, NULL) == TIDE_OK && text.bytes > 0 &&
        tide_base64_read(&bytes, text) == TIDE_OK)
        number = BN_bin2bn((const unsigned char *)bytes.data, (int)bytes.bytes, NULL);
    tide_buf_done(&bytes);
    return number;
}

static EVP_PKEY *rsa_make(const BIGNUM *modulus, const BIGNUM *exponent)
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *params = NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    if (build != NULL && context != NULL &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        params = OSSL_PARAM_BLD_to_param(build);
    if (params != NULL && EVP_PKEY_fromdata_init(context) == 1 &&
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        key = NULL;
    OSSL_PARAM_free(params);
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_BLD_free(build);
    return key;
}

/* NULL: not an RSA key of a sane size. */
static EVP_PKEY *rsa_read(const json_t *jwk, tide_mem *mem)
{
    EVP_PKEY *key = NULL;
    BIGNUM *modulus = number_read(jwk, "n", NUMBER_BYTES_MAX, mem);
    BIGNUM *exponent = number_read(jwk, "e", EXPONENT_BYTES_MAX, mem);
    /* With an exponent of 1 everything is its own signature. */
    if (modulus != NULL && exponent != NULL && BN_num_bits(modulus) >= BITS_MIN &&
        BN_is_odd(modulus) && BN_is_odd(exponent) && !BN_is_one(exponent))
        key = rsa_make(modulus, exponent);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

/* Whether a field is absent or has this value. */
static bool may_be(const json_t *jwk, const char *name, const char *value)
{
    const json_t *field = json_object_get(jwk, name);
    return field == NULL || (json_is_string(field) && strcmp(json_string_value(field), value) == 0);
}

static void key_add(tide_keyset *keyset, const json_t *jwk)
{
    struct key *key = &keyset->keys[keyset->count];
    tide_text kid = TIDE_TEXT_NONE;
    if (json_object_get(jwk, "kty") == NULL || !may_be(jwk, "kty", "RSA") ||
        !may_be(jwk, "alg", "RS256") || !may_be(jwk, "use", "sig") ||
        tide_json_get_text(jwk, "kid", &kid, NULL) != TIDE_OK || kid.bytes == 0 ||
        kid.bytes > TIDE_TOKEN_KID_BYTES_MAX || memchr(kid.data, '\0', kid.bytes) != NULL)
        return;
    key->rsa = rsa_read(jwk, keyset->mem);
    if (key->rsa == NULL)
        return;
    (void)snprintf(key->kid, sizeof key->kid, "%.*s", (int)kid.bytes, kid.data);
    keyset->count++;
}

tide_status tide_keyset_read(tide_text json, tide_mem *mem, tide_keyset **keyset_out,
                             tide_error *err)
{
    json_t *object = NULL;
    const json_t *jwk = NULL;
    size_t index = 0;
    if (json.bytes > TIDE_KEYSET_BYTES_MAX || tide_json_parse(json, &object, NULL) != TIDE_OK)
        return tide_error_set(err, TIDE_SERVER, "the issuer's keys are not JSON");
    tide_keyset *keyset = tide_mem_new(mem, sizeof *keyset);
    if (keyset != NULL) {
        keyset->mem = mem;
        json_array_foreach(json_object_get(object, "keys"), index, jwk)
        {
            if (keyset->count < TIDE_KEYSET_KEYS_MAX)
                key_add(keyset, jwk);
        }
    }
    json_decref(object);
    if (keyset == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the issuer's keys");
    if (keyset->count == 0) {
        tide_keyset_free(keyset);
        return tide_error_set(err, TIDE_SERVER, "the issuer's keys have none for RS256");
    }
    *keyset_out = keyset;
    return TIDE_OK;
}

void tide_keyset_free(tide_keyset *keyset)
{
    if (keyset == NULL)
        return;
    for (size_t i = 0; i < keyset->count; i++)
        EVP_PKEY_free(keyset->keys[i].rsa);
    tide_mem_free(keyset->mem, keyset, sizeof *keyset);
}

/* ---- checking ---- */

static bool verifies(EVP_PKEY *rsa, const struct tide_token *token)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    /* PKCS #1 v1.5 is the padding of an RSA key unless another is asked for. */
    const bool good = context != NULL &&
                      EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, rsa) == 1 &&
                      EVP_DigestVerify(context, token->signature, token->signature_bytes,
                                       (const unsigned char *)token->signed_text.data,
                                       token->signed_text.bytes) == 1;
    EVP_MD_CTX_free(context);
    return good;
}

tide_signature tide_keyset_check(const tide_keyset *keyset, const struct tide_token *token)
{
    for (size_t i = 0; i < keyset->count; i++)
        if (strcmp(keyset->keys[i].kid, token->kid) == 0)
            return verifies(keyset->keys[i].rsa, token) ? TIDE_SIGNATURE_GOOD
                                                        : TIDE_SIGNATURE_FORGED;
    return TIDE_SIGNATURE_NO_KEY;
}
