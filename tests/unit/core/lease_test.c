/* Goal: whatever snapshot a crash leaves behind, it covers all that was spent.
 * Method: examples, then random spending and saving against a model of the disk
 * that keeps every snapshot ever taken. */
#include "core/governor/lease.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/test.h"

TEST(nothing_may_be_spent_before_a_promise_is_durable)
{
    tide_lease lease = {0};
    assert_false(tide_lease_covers(&lease, 1));
    assert_int_equal(tide_lease_save_at_ms(&lease, 100, 500), 0);
    assert_int_equal(tide_lease_promise(&lease, 10, 100), 100);
    assert_false(tide_lease_covers(&lease, 1));
    tide_lease_saved(&lease, 9);
    assert_false(tide_lease_covers(&lease, 1));
    tide_lease_saved(&lease, 10);
    assert_true(tide_lease_covers(&lease, 100));
    assert_false(tide_lease_covers(&lease, 101));
}

TEST(saves_are_due_at_their_interval_or_at_once_when_a_caller_waits)
{
    tide_lease lease = {0};
    (void)tide_lease_promise(&lease, 1000, 100);
    assert_int_equal(tide_lease_save_at_ms(&lease, 100, 500), 1500); /* not durable yet */
    tide_lease_saved(&lease, 1000);
    assert_true(tide_lease_save_at_ms(&lease, 100, 500) == UINT64_MAX); /* idle */
    tide_lease asked = lease;
    tide_lease_want(&asked, 150); /* more than a whole promise: no save brings it */
    assert_true(tide_lease_save_at_ms(&asked, 100, 500) == UINT64_MAX);
    tide_lease_spend(&lease, 10);
    assert_int_equal(tide_lease_save_at_ms(&lease, 100, 500), 1500);
    tide_lease_want(&lease, 95);
    assert_int_equal(tide_lease_save_at_ms(&lease, 100, 500), 0);
    assert_int_equal(tide_lease_promise(&lease, 1100, 100), 100);
    assert_int_equal(tide_lease_save_at_ms(&lease, 100, 500), 1600); /* under way */
    tide_lease_saved(&lease, 1100);
    tide_lease_spend(&lease, 51);
    assert_int_equal(tide_lease_save_at_ms(&lease, 100, 500), 0); /* it runs out soon */
    assert_int_equal(tide_lease_promise(&lease, 1200, 20), 49);   /* what was given stays given */
}

/* One snapshot: what was spent when it was taken, and what it promised. */
struct snapshot {
    uint64_t at_ms;
    uint64_t spent;
    uint64_t promise;
};

static void random_walk(uint64_t seed, uint64_t steps)
{
    tide_rng rng = tide_rng_seeded(seed);
    tide_lease lease = {0};
    struct snapshot pending[64];
    unsigned pending_count = 0;
    struct snapshot disk = {0};
    uint64_t now_ms = 0;

    for (uint64_t step = 0; step < steps; step++) {
        now_ms += tide_rng_below(&rng, 3); /* ties happen */
        switch (tide_rng_below(&rng, 4)) {
        case 0:
            if (pending_count < 64) {
                const uint64_t promise =
                    tide_lease_promise(&lease, now_ms, tide_rng_below(&rng, 300));
                pending[pending_count++] = (struct snapshot){now_ms, lease.spent, promise};
            }
            break;
        case 1: /* the oldest reaches the disk, and the news of it mostly arrives */
            if (pending_count > 0) {
                disk = pending[0];
                for (unsigned i = 1; i < pending_count; i++)
                    pending[i - 1] = pending[i];
                pending_count--;
                if (tide_rng_chance(&rng, 9, 10))
                    tide_lease_saved(&lease, disk.at_ms);
            }
            break;
        default: {
            const uint64_t units = tide_rng_below(&rng, 40);
            if (tide_lease_covers(&lease, units))
                tide_lease_spend(&lease, units);
            else
                tide_lease_want(&lease, units);
        }
        }
        if (lease.spent > disk.spent + disk.promise || !tide_lease_check(&lease))
            fail_msg("seed %llu step %llu: a crash would forget units", (unsigned long long)seed,
                     (unsigned long long)step);
    }
    assert_true(lease.spent > steps); /* and yet much was spent */
}

TEST(a_crash_at_any_moment_forgets_nothing)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        random_walk(seed, scaled(100000));
}
