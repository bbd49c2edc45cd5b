/* claims.c - see claims.h. */
#include "mail/claims.h"

enum { IN_FLIGHT = 1, PUT = 2 };

void tide_claims_init(struct tide_claims *claims, tide_mem *mem)
{
    tide_map_init(&claims->open, mem);
    claims->ended = 0;
}

void tide_claims_done(struct tide_claims *claims)
{
    tide_map_done(&claims->open);
}

bool tide_claim_take(struct tide_claims *claims, uint64_t key)
{
    uint32_t known = 0;
    if (tide_map_get(&claims->open, key, &known))
        return false;
    (void)tide_map_put(&claims->open, key, IN_FLIGHT); /* no memory: without a claim */
    return true;
}

void tide_claim_put(struct tide_claims *claims, uint64_t key)
{
    (void)tide_map_put(&claims->open, key, PUT);
}

void tide_claim_end(struct tide_claims *claims, uint64_t key)
{
    (void)tide_map_remove(&claims->open, key);
    claims->ended_keys[claims->ended++ % TIDE_CLAIMS_ENDED_MAX] = key;
}

bool tide_claim_in_flight(const struct tide_claims *claims, uint64_t key)
{
    uint32_t known = 0;
    return tide_map_get(&claims->open, key, &known) && known == IN_FLIGHT;
}

bool tide_claim_ended(const struct tide_claims *claims, uint64_t key, uint64_t since)
{
    if (claims->ended - since > TIDE_CLAIMS_ENDED_MAX)
        return true;
    for (uint64_t at = since; at < claims->ended; at++)
        if (claims->ended_keys[at % TIDE_CLAIMS_ENDED_MAX] == key)
            return true;
    return false;
}
