/* jwt.c - RS256 with OpenSSL 3. */
#include "cloudbox/signin/jwt.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/json.h"
#include "cloudbox/gate/http.h"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

enum { KEY_BITS = 2048, MODULUS_BYTES_MAX = 1024, PEM_BYTES_MAX = 16 << 10 };

struct box_key {
    EVP_PKEY *pkey;
    char id[BOX_KEY_ID_BYTES];
};

void box_sha256(tide_text bytes, unsigned char digest_out[32])
{
    unsigned int written = 0;
    TIDE_ASSERT(EVP_Digest(bytes.data, bytes.bytes, digest_out, &written, EVP_sha256(), NULL) == 1);
    TIDE_ASSERT(written == 32);
}

void box_add_base64url_bare(tide_buf *out, tide_text bytes)
{
    TIDE_ASSERT(tide_base64_add(out, bytes, tide_base64_url, false) == TIDE_OK);
}

/* ---- keys ---- */

/* One number of the public key, big-endian without leading zeros. */
static size_t key_number(const box_key *key, const char *name,
                         unsigned char bytes_out[MODULUS_BYTES_MAX])
{
    BIGNUM *number = NULL;
    TIDE_ASSERT(EVP_PKEY_get_bn_param(key->pkey, name, &number) == 1);
    TIDE_ASSERT(BN_num_bytes(number) <= MODULUS_BYTES_MAX);
    const int bytes = BN_bn2bin(number, bytes_out);
    BN_free(number);
    return (size_t)bytes;
}

/* Taken: the key owns `pkey` from here on. */
static box_key *key_around(EVP_PKEY *pkey)
{
    box_key *key = tide_mem_new(tide_mem_heap(), sizeof *key);
    TIDE_ASSERT(key != NULL);
    key->pkey = pkey;
    unsigned char modulus[MODULUS_BYTES_MAX];
    const size_t bytes = key_number(key, OSSL_PKEY_PARAM_RSA_N, modulus);
    unsigned char digest[32];
    box_sha256((tide_text){(const char *)modulus, bytes}, digest);
    tide_hex(digest, 20, key->id);
    return key;
}

box_key *box_key_new(void)
{
    EVP_PKEY *pkey = EVP_RSA_gen(KEY_BITS);
    TIDE_ASSERT(pkey != NULL);
    return key_around(pkey);
}

box_key *box_key_from_pem(tide_text pem)
{
    if (pem.bytes == 0 || pem.bytes > PEM_BYTES_MAX)
        return NULL;
    BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.bytes);
    TIDE_ASSERT(bio != NULL);
    EVP_PKEY *pkey = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    if (pkey == NULL)
        return NULL;
    if (EVP_PKEY_is_a(pkey, "RSA") != 1 || EVP_PKEY_get_bits(pkey) < KEY_BITS ||
        EVP_PKEY_get_bits(pkey) > 8 * MODULUS_BYTES_MAX) {
        EVP_PKEY_free(pkey);
        return NULL;
    }
    return key_around(pkey);
}

void box_key_free(box_key *key)
{
    if (key == NULL)
        return;
    EVP_PKEY_free(key->pkey);
    tide_mem_free(tide_mem_heap(), key, sizeof *key);
}

const char *box_key_id(const box_key *key)
{
    return key->id;
}

static void add_bio(BIO *bio, tide_buf *out)
{
    char *data = NULL;
    const long bytes = BIO_get_mem_data(bio, &data);
    TIDE_ASSERT(bytes > 0);
    box_add(out, data, (size_t)bytes);
    BIO_free(bio);
}

void box_key_pem(const box_key *key, tide_buf *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    TIDE_ASSERT(bio != NULL);
    TIDE_ASSERT(PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL) == 1);
    add_bio(bio, out);
}

void box_key_public_pem(const box_key *key, tide_buf *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    TIDE_ASSERT(bio != NULL);
    TIDE_ASSERT(PEM_write_bio_PUBKEY(bio, key->pkey) == 1);
    add_bio(bio, out);
}

static json_t *key_number_text(const box_key *key, const char *name)
{
    unsigned char bytes[MODULUS_BYTES_MAX];
    const size_t count = key_number(key, name, bytes);
    tide_auto_buf text = tide_buf_heap(BOX_JWT_BYTES_MAX);
    box_add_base64url_bare(&text, (tide_text){(const char *)bytes, count});
    return json_string(tide_buf_cstr(&text));
}

json_t *box_key_jwk(const box_key *key)
{
    json_t *jwk = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "kty", "RSA", "alg", "RS256", "use",
                            "sig", "kid", key->id, "n", key_number_text(key, OSSL_PKEY_PARAM_RSA_N),
                            "e", key_number_text(key, OSSL_PKEY_PARAM_RSA_E));
    TIDE_ASSERT(jwk != NULL);
    return jwk;
}

/* ---- tokens ---- */

static void add_json_piece(tide_buf *out, json_t *value)
{
    TIDE_ASSERT(value != NULL);
    char *text = json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER);
    TIDE_ASSERT(text != NULL);
    json_decref(value);
    box_add_base64url_bare(out, tide_text_of(text));
    free(text);
}

void box_jwt_sign(const box_key *key, json_t *claims, tide_buf *out)
{
    const size_t start = out->bytes;
    add_json_piece(out, json_pack("{s:s, s:s, s:s}", "alg", "RS256", "kid", key->id, "typ", "JWT"));
    box_add_cstr(out, ".");
    add_json_piece(out, claims);

    EVP_MD_CTX *context = EVP_MD_CTX_new();
    TIDE_ASSERT(context != NULL);
    TIDE_ASSERT(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1);
    unsigned char signature[MODULUS_BYTES_MAX];
    size_t signature_bytes = sizeof signature;
    TIDE_ASSERT(EVP_DigestSign(context, signature, &signature_bytes,
                               (const unsigned char *)out->data + start, out->bytes - start) == 1);
    EVP_MD_CTX_free(context);
    box_add_cstr(out, ".");
    box_add_base64url_bare(out, (tide_text){(const char *)signature, signature_bytes});
}

static bool is_base64url(tide_text piece)
{
    /* Google's older libraries pad their pieces, and Google takes them. */
    for (int i = 0; i < 2 && piece.bytes > 0 && piece.data[piece.bytes - 1] == '='; i++)
        piece.bytes--;
    for (size_t i = 0; i < piece.bytes; i++) {
        const char c = piece.data[i];
        const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_')
            return false;
    }
    return piece.bytes > 0;
}

/* header, claims, signature; false: not three pieces of the right letters. */
static bool split(tide_text token, tide_text pieces_out[3])
{
    if (token.bytes == 0 || token.bytes > BOX_JWT_BYTES_MAX)
        return false;
    size_t piece = 0;
    size_t start = 0;
    for (size_t i = 0; i <= token.bytes; i++) {
        if (i < token.bytes && token.data[i] != '.')
            continue;
        if (piece == 3)
            return false;
        pieces_out[piece] = (tide_text){token.data + start, i - start};
        if (!is_base64url(pieces_out[piece++]))
            return false;
        start = i + 1;
    }
    return piece == 3;
}

static json_t *piece_json(tide_text piece)
{
    tide_auto_buf text = tide_buf_heap(BOX_JWT_BYTES_MAX);
    json_t *value = NULL;
    if (box_base64_decode(piece, &text) &&
        tide_json_parse(tide_buf_text(&text), &value, NULL) == TIDE_OK && !json_is_object(value)) {
        json_decref(value);
        value = NULL;
    }
    return value;
}

bool box_jwt_read(tide_text token, json_t **header_out, json_t **claims_out)
{
    tide_text pieces[3];
    if (!split(token, pieces))
        return false;
    json_t *header = piece_json(pieces[0]);
    json_t *claims = piece_json(pieces[1]);
    if (header == NULL || claims == NULL) {
        json_decref(header);
        json_decref(claims);
        return false;
    }
    *header_out = header;
    *claims_out = claims;
    return true;
}

/* BJWT1: the algorithm is what we expect, never what the token asks for. */
static bool says_rs256(tide_text header_piece)
{
    json_auto_t *header = piece_json(header_piece);
    if (header == NULL)
        return false;
    const char *algorithm = json_string_value(json_object_get(header, "alg"));
    return algorithm != NULL && strcmp(algorithm, "RS256") == 0;
}

bool box_jwt_verify(const box_key *key, tide_text token)
{
    tide_text pieces[3];
    if (!split(token, pieces) || !says_rs256(pieces[0]))
        return false;
    tide_auto_buf signature = tide_buf_heap(BOX_JWT_BYTES_MAX);
    bool good = false;
    if (box_base64_decode(pieces[2], &signature)) {
        const size_t signed_bytes = pieces[0].bytes + 1 + pieces[1].bytes;
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        TIDE_ASSERT(context != NULL);
        TIDE_ASSERT(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1);
        good = EVP_DigestVerify(context, (const unsigned char *)signature.data, signature.bytes,
                                (const unsigned char *)token.data, signed_bytes) == 1;
        EVP_MD_CTX_free(context);
    }
    return good;
}
