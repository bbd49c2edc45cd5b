/* jwt.h - RSA keys and the tokens they sign (RFC 7515, RS256 and nothing else).
 *
 * No clock and no opinion on claims: who reads a token decides what it proves.
 *
 * Invariants:
 *   BJWT1  what is verified was signed by that key with RS256; "none" and the symmetric
 *          algorithms are never accepted.
 *   BJWT2  a key made from its own PEM is the same key with the same id.
 */
#ifndef BOX_JWT_H
#define BOX_JWT_H

#include "base/buf.h"
#include "base/status.h"
#include "base/text.h"

#include <jansson.h>

typedef struct box_key box_key;

enum { BOX_JWT_BYTES_MAX = 16 << 10, BOX_KEY_ID_BYTES = 41 };

/* 2048 bits, from OpenSSL's own randomness (the one thing the seed does not
 * decide). */
box_key *box_key_new(void);
/* From PKCS#8; NULL: not an RSA key of 2048 bits or more. */
box_key *box_key_from_pem(tide_text pem);
void box_key_free(box_key *key);                     /* NULL is fine */
const char *box_key_id(const box_key *key);          /* 40 hex digits out of the public key */
void box_key_pem(const box_key *key, tide_buf *out); /* private, PKCS#8 */
void box_key_public_pem(const box_key *key, tide_buf *out); /* SubjectPublicKeyInfo */
/* {"kty":"RSA","alg":"RS256","use":"sig","kid","n","e"} */
json_t *box_key_jwk(const box_key *key);

/* header.claims.signature; the claims are taken. */
void box_jwt_sign(const box_key *key, json_t *claims, tide_buf *out);

/* Takes a token apart without believing it.  false: not three pieces of
 * base64url with two JSON objects.  The caller owns both. */
bool box_jwt_read(tide_text token, json_t **header_out, json_t **claims_out);
/* Whether the key made this token's signature (BJWT1). */
bool box_jwt_verify(const box_key *key, tide_text token);

/* Base64url without padding, as tokens and challenges want it. */
void box_add_base64url_bare(tide_buf *out, tide_text bytes);
void box_sha256(tide_text bytes, unsigned char digest_out[32]);

#endif
