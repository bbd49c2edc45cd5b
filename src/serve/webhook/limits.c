#include "serve/webhook/limits.h"

#include "base/check.h"

#include <openssl/evp.h>
#include <string.h>

/* ---- rates ---- */

enum { BURST_S = 2 };

void webhook_rate_init(struct webhook_rate *rate, uint32_t per_s, uint64_t now_ms)
{
    *rate = (struct webhook_rate){
        .per_s = per_s, .left_thousandths = (uint64_t)per_s * 1000 * BURST_S, .at_ms = now_ms};
}

bool webhook_rate_has(struct webhook_rate *rate, uint64_t now_ms)
{
    const uint64_t most = (uint64_t)rate->per_s * 1000 * BURST_S;
    const uint64_t passed_ms = now_ms > rate->at_ms ? now_ms - rate->at_ms : 0;
    rate->at_ms = now_ms;
    rate->left_thousandths +=
        passed_ms > BURST_S * 1000 ? most : passed_ms * rate->per_s; /* a thousandth per ms */
    if (rate->left_thousandths > most)
        rate->left_thousandths = most;
    return rate->left_thousandths >= 1000;
}

bool webhook_rate_take(struct webhook_rate *rate, uint64_t now_ms)
{
    const bool has = webhook_rate_has(rate, now_ms);
    if (has)
        rate->left_thousandths -= 1000;
    return has;
}

/* ---- tokens ---- */

static void digest_of(tide_text token, unsigned char digest_out[32])
{
    unsigned int bytes = 0;
    const int rc = EVP_Digest(token.data, token.bytes, digest_out, &bytes, EVP_sha256(), NULL);
    TIDE_ASSERT(rc == 1 && bytes == 32);
}

bool webhook_good_has(const struct webhook_good *good, tide_text token, uint64_t now_unix_ms)
{
    unsigned char digest[32];
    digest_of(token, digest);
    for (size_t i = 0; i < TIDE_WEBHOOK_GOOD_MAX; i++)
        if (good->tokens[i].expires_unix_s > now_unix_ms / 1000 &&
            memcmp(good->tokens[i].digest, digest, sizeof digest) == 0)
            return true;
    return false;
}

void webhook_good_add(struct webhook_good *good, tide_text token, uint64_t expires_unix_s)
{
    digest_of(token, good->tokens[good->next].digest);
    good->tokens[good->next].expires_unix_s = expires_unix_s;
    good->next = (good->next + 1) % TIDE_WEBHOOK_GOOD_MAX;
}

/* ---- messages ---- */

bool webhook_seen_has(const struct webhook_seen *seen, uint64_t message)
{
    for (size_t i = 0; message != 0 && i < TIDE_WEBHOOK_SEEN_MAX; i++)
        if (seen->messages[i] == message)
            return true;
    return false;
}

void webhook_seen_add(struct webhook_seen *seen, uint64_t message)
{
    if (message == 0)
        return;
    seen->messages[seen->next] = message;
    seen->next = (seen->next + 1) % TIDE_WEBHOOK_SEEN_MAX;
}
