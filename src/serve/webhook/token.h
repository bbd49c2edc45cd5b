/* token.h - what an OIDC token claims: a JWT (RFC 7519) as Pub/Sub sends it with a push.
 *
 * Pure.  It takes a token apart and compares its claims with what is expected; the signature is
 * checked by keyset.h, with a key that the issuer published.
 *
 * Invariants:
 *   TOK1  the token chooses nothing: its algorithm must be RS256, its key is one of the issuer's set.
 *         Keys and addresses of keys in the token itself (jwk, jku, x5c, x5u) are not read, and one
 *         with critical extensions (crit) is refused.
 *   TOK2  every claim that is compared must be there, with its type: issuer, audience, sender
 *         (email, verified), exp and iat.
 *   TOK3  it is valid from iat to exp, each with TIDE_TOKEN_SKEW_S to spare, and for a day at most.
 */
#ifndef TIDE_SERVE_WEBHOOK_TOKEN_H
#define TIDE_SERVE_WEBHOOK_TOKEN_H

#include "base/mem.h"
#include "base/text.h"

#include <stdint.h>

enum {
    TIDE_TOKEN_BYTES_MAX = 8 << 10,
    TIDE_TOKEN_KID_BYTES_MAX = 128,
    TIDE_TOKEN_SIGNATURE_BYTES_MAX = 512, /* RSA of 4096 bits */
    TIDE_TOKEN_SKEW_S = 60,
    TIDE_TOKEN_LIFE_S_MAX = 86400,
};

typedef enum tide_token_fault {
    TIDE_TOKEN_GOOD,
    TIDE_TOKEN_MALFORMED,
    TIDE_TOKEN_ALGORITHM,
    TIDE_TOKEN_ISSUER,
    TIDE_TOKEN_AUDIENCE,
    TIDE_TOKEN_SENDER,
    TIDE_TOKEN_EXPIRED,
    TIDE_TOKEN_EARLY,
    TIDE_TOKEN_NO_MEMORY,
} tide_token_fault;
const char *tide_token_fault_name(tide_token_fault fault); /* "audience" */

/* Borrowed. */
struct tide_token_rules {
    const char *const *issuers; /* any of them; ends with NULL */
    const char *audience;
    const char *sender; /* the address of the service account that signs */
};

/* A token whose claims are as expected, and whose signature was not checked yet. */
struct tide_token {
    tide_text signed_text; /* borrowed from the token */
    char kid[TIDE_TOKEN_KID_BYTES_MAX + 1];
    unsigned char signature[TIDE_TOKEN_SIGNATURE_BYTES_MAX];
    size_t signature_bytes;
    uint64_t expires_unix_s;
};

tide_token_fault tide_token_read(tide_text text, const struct tide_token_rules *rules,
                                 uint64_t now_unix_ms, tide_mem *mem, struct tide_token *token_out);

#endif
