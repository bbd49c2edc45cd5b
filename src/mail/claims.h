/* claims.h - which messages jobs are fetching, so that none is requested twice at once.
 *
 * A job that looks up what is stored, and claims a message later, must know whether another job
 * fetched that message in between: only then it looks again.  A lookup reads every shard, so one for
 * each message would be a fifth of a sync.
 *
 * The caller holds a lock.  A message is its key (tide_hash_key()); two messages with one key wait
 * for each other, and are looked up once more than needed.
 *
 * Invariants:
 *   CLM1  between tide_claim_take() and tide_claim_end() every other take of that key fails, unless
 *         there was no memory for the claim.
 *   CLM2  tide_claim_ended() is true if a claim of that key ended after `since`.  It may be true
 *         for another key only if more than TIDE_CLAIMS_ENDED_MAX claims ended after that.
 */
#ifndef TIDE_MAIL_CLAIMS_H
#define TIDE_MAIL_CLAIMS_H

#include "base/map.h"

/* Jobs end their claims together, up to 300.  With 64 workers about 1,300 end while a job fetches
 * the 20 ids that it looked up. */
enum { TIDE_CLAIMS_ENDED_MAX = 4096 };

struct tide_claims {
    tide_map open;
    uint64_t ended;                             /* how many have ended */
    uint64_t ended_keys[TIDE_CLAIMS_ENDED_MAX]; /* of the last ones, a ring */
};

void tide_claims_init(struct tide_claims *claims, tide_mem *mem);
void tide_claims_done(struct tide_claims *claims);
/* false: another job is fetching it. */
bool tide_claim_take(struct tide_claims *claims, uint64_t key);
/* Its bytes were given to the archive. */
void tide_claim_put(struct tide_claims *claims, uint64_t key);
void tide_claim_end(struct tide_claims *claims, uint64_t key);
/* Whether it is claimed and its bytes were not yet given to the archive. */
bool tide_claim_in_flight(const struct tide_claims *claims, uint64_t key);
/* Whether a claim of that key may have ended after `ended` was `since` (CLM2). */
bool tide_claim_ended(const struct tide_claims *claims, uint64_t key, uint64_t since);

#endif
