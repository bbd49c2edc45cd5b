#include "serve/webhook/token.h"

#include "base/encode.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

const char *tide_token_fault_name(tide_token_fault fault)
{
    static const char *const names[] = {
        [TIDE_TOKEN_GOOD] = "good",           [TIDE_TOKEN_MALFORMED] = "malformed",
        [TIDE_TOKEN_ALGORITHM] = "algorithm", [TIDE_TOKEN_ISSUER] = "issuer",
        [TIDE_TOKEN_AUDIENCE] = "audience",   [TIDE_TOKEN_SENDER] = "sender",
        [TIDE_TOKEN_EXPIRED] = "expired",     [TIDE_TOKEN_EARLY] = "not valid yet",
        [TIDE_TOKEN_NO_MEMORY] = "no memory",
    };
    return names[fault];
}

/* ---- pieces ---- */

enum { HEADER, CLAIMS, SIGNATURE, PIECES };

/* false: not three pieces of base64url without padding. */
static bool split(tide_text text, tide_text pieces[PIECES])
{
    size_t count = 0;
    pieces[0] = (tide_text){text.data, 0};
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] != '.') {
            if (!tide_is_plain(text.data[i], "-_"))
                return false;
            pieces[count].bytes++;
        } else if (++count < PIECES) {
            pieces[count] = (tide_text){text.data + i + 1, 0};
        } else {
            return false;
        }
    }
    return count == PIECES - 1 && pieces[HEADER].bytes > 0 && pieces[CLAIMS].bytes > 0;
}

static tide_token_fault fault_of(tide_status rc)
{
    return rc == TIDE_OK          ? TIDE_TOKEN_GOOD
           : rc == TIDE_NO_MEMORY ? TIDE_TOKEN_NO_MEMORY
                                  : TIDE_TOKEN_MALFORMED;
}

/* The object in a piece; the caller owns it. */
static tide_token_fault object_read(tide_text piece, tide_mem *mem, json_t **object_out)
{
    tide_buf text;
    json_t *object = NULL;
    tide_buf_init(&text, mem, TIDE_TOKEN_BYTES_MAX);
    tide_status rc = tide_base64_read(&text, piece);
    if (rc == TIDE_OK)
        rc = tide_json_parse(tide_buf_text(&text), &object, NULL);
    tide_buf_done(&text);
    if (rc == TIDE_OK && !json_is_object(object)) {
        json_decref(object);
        return TIDE_TOKEN_MALFORMED;
    }
    if (rc == TIDE_OK)
        *object_out = object;
    return fault_of(rc);
}

static tide_token_fault signature_read(tide_text piece, tide_mem *mem, struct tide_token *token)
{
    tide_buf bytes;
    tide_buf_init(&bytes, mem, sizeof token->signature);
    const tide_status rc = tide_base64_read(&bytes, piece);
    if (rc == TIDE_OK) {
        memcpy(token->signature, bytes.data, bytes.bytes);
        token->signature_bytes = bytes.bytes;
    }
    tide_buf_done(&bytes);
    return fault_of(rc);
}

/* ---- what it says ---- */

static bool is(const json_t *object, const char *key, const char *wanted)
{
    tide_text text = TIDE_TEXT_NONE;
    return tide_json_get_text(object, key, &text, NULL) == TIDE_OK &&
           tide_text_equal(text, tide_text_of(wanted));
}

/* TOK1. */
static tide_token_fault header_check(const json_t *header, struct tide_token *token)
{
    tide_text kid = TIDE_TEXT_NONE;
    if (!is(header, "alg", "RS256") || json_object_get(header, "crit") != NULL)
        return TIDE_TOKEN_ALGORITHM;
    if (tide_json_get_text(header, "kid", &kid, NULL) != TIDE_OK || kid.bytes == 0 ||
        kid.bytes > TIDE_TOKEN_KID_BYTES_MAX || memchr(kid.data, '\0', kid.bytes) != NULL)
        return TIDE_TOKEN_MALFORMED;
    (void)snprintf(token->kid, sizeof token->kid, "%.*s", (int)kid.bytes, kid.data);
    return TIDE_TOKEN_GOOD;
}

static bool issuer_is_known(const json_t *claims, const struct tide_token_rules *rules)
{
    for (const char *const *issuer = rules->issuers; *issuer != NULL; issuer++)
        if (is(claims, "iss", *issuer))
            return true;
    return false;
}

/* TOK3.  Times come from outside: compared without sums that could overflow. */
static tide_token_fault times_check(const json_t *claims, uint64_t now_unix_s,
                                    struct tide_token *token)
{
    uint64_t issued_s = 0, expires_s = 0, from_s = 0;
    if (tide_json_get_u64(claims, "exp", &expires_s, NULL) != TIDE_OK ||
        tide_json_get_u64(claims, "iat", &issued_s, NULL) != TIDE_OK || expires_s < issued_s ||
        expires_s - issued_s > TIDE_TOKEN_LIFE_S_MAX)
        return TIDE_TOKEN_MALFORMED;
    if (json_object_get(claims, "nbf") != NULL &&
        tide_json_get_u64(claims, "nbf", &from_s, NULL) != TIDE_OK)
        return TIDE_TOKEN_MALFORMED;
    from_s = from_s > issued_s ? from_s : issued_s;
    if (from_s > now_unix_s && from_s - now_unix_s > TIDE_TOKEN_SKEW_S)
        return TIDE_TOKEN_EARLY;
    if (now_unix_s > expires_s && now_unix_s - expires_s > TIDE_TOKEN_SKEW_S)
        return TIDE_TOKEN_EXPIRED;
    token->expires_unix_s = expires_s;
    return TIDE_TOKEN_GOOD;
}

static tide_token_fault claims_check(const json_t *claims, const struct tide_token_rules *rules,
                                     uint64_t now_unix_ms, struct tide_token *token)
{
    bool verified = false;
    if (!issuer_is_known(claims, rules))
        return TIDE_TOKEN_ISSUER;
    if (!is(claims, "aud", rules->audience))
        return TIDE_TOKEN_AUDIENCE;
    if (!is(claims, "email", rules->sender) ||
        tide_json_get_bool(claims, "email_verified", &verified, NULL) != TIDE_OK || !verified)
        return TIDE_TOKEN_SENDER;
    return times_check(claims, now_unix_ms / 1000, token);
}

tide_token_fault tide_token_read(tide_text text, const struct tide_token_rules *rules,
                                 uint64_t now_unix_ms, tide_mem *mem, struct tide_token *token_out)
{
    tide_text pieces[PIECES];
    json_t *header = NULL;
    json_t *claims = NULL;
    struct tide_token token = {.signature_bytes = 0};
    if (text.bytes > TIDE_TOKEN_BYTES_MAX || !split(text, pieces))
        return TIDE_TOKEN_MALFORMED;
    tide_token_fault fault = object_read(pieces[HEADER], mem, &header);
    if (fault == TIDE_TOKEN_GOOD)
        fault = header_check(header, &token);
    if (fault == TIDE_TOKEN_GOOD)
        fault = object_read(pieces[CLAIMS], mem, &claims);
    if (fault == TIDE_TOKEN_GOOD)
        fault = claims_check(claims, rules, now_unix_ms, &token);
    if (fault == TIDE_TOKEN_GOOD)
        fault = signature_read(pieces[SIGNATURE], mem, &token);
    json_decref(header);
    json_decref(claims);
    if (fault == TIDE_TOKEN_GOOD) {
        token.signed_text = (tide_text){text.data, pieces[HEADER].bytes + 1 + pieces[CLAIMS].bytes};
        *token_out = token;
    }
    return fault;
}
