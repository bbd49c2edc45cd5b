/* Claims of messages: none is fetched twice at once, and none is looked up without a reason. */
#include "mail/claims.h"

#include "base/rng.h"
#include "support/test.h"

TEST(one_job_at_a_time_has_a_message)
{
    struct tide_claims claims;
    tide_claims_init(&claims, tide_mem_heap());
    assert_true(tide_claim_take(&claims, 7));
    assert_false(tide_claim_take(&claims, 7)); /* CLM1 */
    assert_true(tide_claim_take(&claims, 8));
    assert_true(tide_claim_in_flight(&claims, 7));
    tide_claim_put(&claims, 7);
    assert_false(tide_claim_in_flight(&claims, 7));
    assert_false(tide_claim_take(&claims, 7)); /* not synced yet */
    tide_claim_end(&claims, 7);
    assert_true(tide_claim_take(&claims, 7));
    tide_claim_end(&claims, 7);
    tide_claim_end(&claims, 8);
    assert_false(tide_claim_in_flight(&claims, 8));
    tide_claims_done(&claims);
}

TEST(only_the_end_of_its_own_claim_makes_a_lookup_outdated)
{
    struct tide_claims claims;
    tide_claims_init(&claims, tide_mem_heap());
    const uint64_t since = claims.ended;
    assert_true(tide_claim_take(&claims, 7));
    assert_false(tide_claim_ended(&claims, 7, since)); /* not ended yet */
    for (uint64_t key = 100; key < 200; key++)
        tide_claim_end(&claims, key);
    assert_false(tide_claim_ended(&claims, 7, since));
    tide_claim_end(&claims, 7);
    assert_true(tide_claim_ended(&claims, 7, since));
    assert_false(tide_claim_ended(&claims, 7, claims.ended)); /* looked up after it */
    tide_claims_done(&claims);
}

/* CLM2 against a list of all ends, with more ends than the ring has room for. */
TEST(no_end_is_overlooked_however_many_follow)
{
    enum { ENDS = 3 * TIDE_CLAIMS_ENDED_MAX, KEYS = 9000 };
    static uint64_t all[ENDS];
    struct tide_claims claims;
    tide_rng rng = tide_rng_seeded(5);
    tide_claims_init(&claims, tide_mem_heap());
    for (size_t n = 0; n < ENDS; n++) {
        all[n] = 1 + tide_rng_below(&rng, KEYS);
        tide_claim_end(&claims, all[n]);
        const uint64_t key = 1 + tide_rng_below(&rng, KEYS);
        const uint64_t since = tide_rng_below(&rng, n + 2);
        bool wanted = n + 1 - since > TIDE_CLAIMS_ENDED_MAX; /* no longer known */
        for (size_t at = since; at <= n; at++)
            wanted = wanted || all[at] == key;
        assert_int_equal(tide_claim_ended(&claims, key, since), wanted);
    }
    tide_claims_done(&claims);
}
