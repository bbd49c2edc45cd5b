/* Goal: quantiles within an eighth of the truth, over recent samples only.
 * Method: examples, then random samples against a sorted list. */
#include "core/governor/latency.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/test.h"

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void assert_near(uint32_t value_ms, uint32_t truth_ms)
{
    const uint32_t eighth = truth_ms / 8 + 1;
    if (value_ms + eighth < truth_ms || value_ms > truth_ms + eighth)
        fail_msg("%u ms is not near %u ms", value_ms, truth_ms);
}

TEST(nothing_is_known_before_the_first_sample)
{
    tide_latency latency;
    tide_latency_init(&latency, 0);
    assert_int_equal(tide_latency_count(&latency), 0);
    assert_int_equal(tide_latency_quantile_ms(&latency, 990), 0);
    assert_int_equal(tide_latency_best_p50_ms(&latency), 0);
    assert_true(tide_latency_check(&latency));
}

TEST(any_latency_has_a_step_that_is_near_it)
{
    for (uint32_t value_ms = 0; value_ms < 1 << 20; value_ms++) {
        tide_latency latency;
        if (value_ms > 5000 && value_ms % 37 != 0)
            continue;
        tide_latency_init(&latency, 0);
        tide_latency_add(&latency, 0, value_ms);
        assert_near(tide_latency_quantile_ms(&latency, 500), value_ms);
    }
    tide_latency latency;
    tide_latency_init(&latency, 0);
    tide_latency_add(&latency, 0, UINT32_MAX); /* longer than anything: the last step */
    assert_near(tide_latency_quantile_ms(&latency, 500), (1 << 20) - 1);
}

TEST(a_minute_with_enough_samples_ends_an_epoch_and_the_one_before_fades)
{
    tide_latency latency;
    tide_latency_init(&latency, 0);
    uint64_t now_ms = 0;
    for (int i = 0; i < 100; i++)
        tide_latency_add(&latency, now_ms += 1000, 100);
    for (int i = 0; i < 100; i++)
        tide_latency_add(&latency, now_ms += 1000, 800);
    assert_near(tide_latency_best_p50_ms(&latency), 100);
    for (int i = 0; i < 130; i++)
        tide_latency_add(&latency, now_ms += 1000, 800);
    assert_near(tide_latency_quantile_ms(&latency, 10), 800);     /* the fast ones are forgotten */
    assert_in_range(tide_latency_best_p50_ms(&latency), 80, 130); /* but not that it can be fast */
    for (int i = 0; i < 64 * 400; i++) /* ... until it has not been for hours */
        tide_latency_add(&latency, now_ms += 1000, 800);
    assert_near(tide_latency_best_p50_ms(&latency), 800);

    tide_latency_forget(&latency, now_ms);
    assert_int_equal(tide_latency_count(&latency), 0);
    assert_near(tide_latency_best_p50_ms(&latency), 800);
    assert_int_equal(latency.count_total, 100 + 100 + 130 + 64 * 400);
}

TEST(a_rare_method_keeps_its_samples)
{
    tide_latency latency;
    tide_latency_init(&latency, 0);
    for (uint64_t i = 0; i < 60; i++)
        tide_latency_add(&latency, i * 3600000, 50);
    assert_int_equal(tide_latency_count(&latency), 60);
}

/* One model epoch is a list; sorted, it knows every quantile exactly. */
TEST(random_samples_agree_with_a_sorted_list)
{
    enum { SAMPLES = 1000 };
    static uint32_t samples[SAMPLES];
    const uint64_t rounds = scaled(1500);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_latency latency;
        tide_latency_init(&latency, 0);
        const unsigned bits = 1 + (unsigned)tide_rng_below(&rng, 19);
        const unsigned count = 1 + (unsigned)tide_rng_below(&rng, SAMPLES);
        for (unsigned i = 0; i < count; i++) {
            samples[i] = (uint32_t)tide_rng_below(&rng, 1u << (1 + tide_rng_below(&rng, bits)));
            tide_latency_add(&latency, i, samples[i]);
        }
        qsort(samples, count, sizeof *samples, by_value);
        for (unsigned permille = 0; permille <= 1000; permille += 25) {
            unsigned rank = (count * permille + 999) / 1000;
            rank = rank == 0 ? 1 : rank;
            const uint32_t truth_ms = samples[rank - 1];
            const uint32_t value_ms = tide_latency_quantile_ms(&latency, permille);
            const uint32_t eighth = truth_ms / 8 + 1;
            if (value_ms + eighth < truth_ms || value_ms > truth_ms + eighth)
                fail_msg("seed %llu: %u permille is %u, not %u", (unsigned long long)seed, permille,
                         value_ms, truth_ms);
        }
        assert_true(tide_latency_check(&latency));
    }
}
