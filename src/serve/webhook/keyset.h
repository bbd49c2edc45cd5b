/* keyset.h - the keys with which an issuer signs: a JSON Web Key Set (RFC 7517).
 *
 * Immutable once read.
 *
 * Invariants:
 *   KST1  it holds RSA keys of 2048 to 4096 bits for RS256, each with an id; others are left out.
 *   KST2  a signature counts as good only with the key that the token names, as RSASSA-PKCS1-v1_5
 *         with SHA-256 over exactly the signed bytes.
 */
#ifndef TIDE_SERVE_WEBHOOK_KEYSET_H
#define TIDE_SERVE_WEBHOOK_KEYSET_H

#include "base/status.h"
#include "serve/webhook/token.h"

enum { TIDE_KEYSET_KEYS_MAX = 16, TIDE_KEYSET_BYTES_MAX = 64 << 10 };

typedef struct tide_keyset tide_keyset;

/* TIDE_SERVER: not a set, or none of its keys can be used. */
tide_status tide_keyset_read(tide_text json, tide_mem *mem, tide_keyset **keyset_out,
                             tide_error *err);
void tide_keyset_free(tide_keyset *keyset); /* NULL is fine */

typedef enum tide_signature {
    TIDE_SIGNATURE_GOOD,
    TIDE_SIGNATURE_FORGED,
    TIDE_SIGNATURE_NO_KEY, /* the set has no key of that id */
} tide_signature;
tide_signature tide_keyset_check(const tide_keyset *keyset, const struct tide_token *token);

#endif
