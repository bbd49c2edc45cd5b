/* Goal: no more bytes than the rates of the hour allow, and nearly all of them.
 * Method: examples; every minute of a week against a naive schedule; random
 * transfers against running sums. */
#include "core/governor/bandwidth.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

TEST(without_rates_everything_passes_at_once)
{
    tide_bandwidth bandwidth;
    tide_bandwidth_init(&bandwidth, 0);
    uint64_t bytes = 0;
    uint64_t again_ms = 0;
    OK(tide_bandwidth_take(&bandwidth, 0, 0, TIDE_UP, 1 << 30, &bytes, &again_ms));
    assert_int_equal(bytes, 1 << 30);
}

TEST(a_rate_is_kept_and_a_waiting_transfer_is_told_when)
{
    tide_bandwidth bandwidth;
    tide_bandwidth_init(&bandwidth, 0);
    const struct tide_bandwidth_rates rates = {.down_bytes_per_s = 1000000};
    OK(tide_bandwidth_set(&bandwidth, &rates, NULL, 0));
    uint64_t now_ms = 0;
    uint64_t sum = 0;
    unsigned questions = 0;
    while (now_ms < 60000) {
        uint64_t bytes = 0;
        uint64_t again_ms = 0;
        questions++;
        if (tide_bandwidth_take(&bandwidth, now_ms, 0, TIDE_DOWN, 1 << 20, &bytes, &again_ms) ==
            TIDE_OK) {
            sum += bytes;
        } else {
            assert_true(again_ms > now_ms);
            now_ms = again_ms;
        }
    }
    assert_in_range(sum, 59900000, 60250001);
    assert_true(questions < 2000); /* pieces, not bytes */
    uint64_t bytes = 0;
    uint64_t again_ms = 0; /* the other direction has no limit */
    OK(tide_bandwidth_take(&bandwidth, now_ms, 0, TIDE_UP, 1 << 20, &bytes, &again_ms));
    assert_int_equal(bytes, 1 << 20);
}

TEST(wrong_schedules_are_refused_and_change_nothing)
{
    tide_bandwidth bandwidth;
    tide_bandwidth_init(&bandwidth, 0);
    const struct tide_bandwidth_rates rates = {.both_bytes_per_s = 5};
    struct tide_bandwidth_span spans[TIDE_BANDWIDTH_SPANS_MAX + 1] = {0};
    assert_int_equal(tide_bandwidth_set(&bandwidth, &rates, spans, TIDE_BANDWIDTH_SPANS_MAX + 1),
                     TIDE_FULL);
    spans[1].from_minute = 1440;
    assert_int_equal(tide_bandwidth_set(&bandwidth, &rates, spans, 2), TIDE_INVALID);
    spans[1] = (struct tide_bandwidth_span){.to_minute = 1441};
    assert_int_equal(tide_bandwidth_set(&bandwidth, &rates, spans, 2), TIDE_INVALID);
    spans[1] = (struct tide_bandwidth_span){.days = 0x80};
    assert_int_equal(tide_bandwidth_set(&bandwidth, &rates, spans, 2), TIDE_INVALID);
    assert_int_equal(tide_bandwidth_rates_at(&bandwidth, 0).both_bytes_per_s, 0);
}

TEST(a_span_without_days_holds_on_every_day)
{
    tide_bandwidth bandwidth;
    tide_bandwidth_init(&bandwidth, 0);
    const struct tide_bandwidth_rates rates = {.both_bytes_per_s = 99};
    const struct tide_bandwidth_span span = {
        .from_minute = 600, .to_minute = 601, .rates = {.both_bytes_per_s = 1}};
    OK(tide_bandwidth_set(&bandwidth, &rates, &span, 1));
    for (unsigned day = 0; day < 7; day++) {
        const unsigned minute = day * TIDE_MINUTES_PER_DAY + 600;
        assert_int_equal(tide_bandwidth_rates_at(&bandwidth, minute).both_bytes_per_s, 1);
        assert_int_equal(tide_bandwidth_rates_at(&bandwidth, minute + 1).both_bytes_per_s, 99);
    }
}

/* Paints every minute of the span on a week, starting at each of its days. */
static bool painted(const struct tide_bandwidth_span *span, unsigned minute_of_week)
{
    for (unsigned day = 0; day < 7; day++) {
        if (span->days != 0 && (span->days >> day & 1) == 0)
            continue;
        unsigned length = (span->to_minute + 1440u - span->from_minute) % 1440;
        length = length == 0 ? 1440 : length;
        const unsigned start = day * 1440 + span->from_minute;
        const unsigned after = (minute_of_week + 10080 - start) % 10080;
        if (after < length)
            return true;
    }
    return false;
}

TEST(every_minute_of_the_week_has_the_rate_of_the_first_span_that_holds_it)
{
    const uint64_t rounds = scaled(60);
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_bandwidth bandwidth;
        tide_bandwidth_init(&bandwidth, 0);
        struct tide_bandwidth_span spans[4];
        for (unsigned i = 0; i < 4; i++)
            spans[i] = (struct tide_bandwidth_span){
                .days = (uint8_t)tide_rng_below(&rng, 128),
                .from_minute = (uint16_t)tide_rng_below(&rng, 1440),
                .to_minute = (uint16_t)tide_rng_below(&rng, 1441),
                .rates = {.both_bytes_per_s = i + 1},
            };
        const struct tide_bandwidth_rates rates = {.both_bytes_per_s = 99};
        OK(tide_bandwidth_set(&bandwidth, &rates, spans, 4));
        for (unsigned minute = 0; minute < TIDE_MINUTES_PER_WEEK; minute++) {
            uint64_t expected = 99;
            for (unsigned i = 4; i > 0; i--)
                if (painted(&spans[i - 1], minute))
                    expected = i;
            if (tide_bandwidth_rates_at(&bandwidth, minute).both_bytes_per_s != expected)
                fail_msg("seed %llu minute %u", (unsigned long long)seed, minute);
        }
    }
}

/* The model knows only sums: what each limit allowed up to now, and what was given. */
static void random_walk(uint64_t seed, uint64_t steps)
{
    tide_rng rng = tide_rng_seeded(seed);
    tide_bandwidth bandwidth;
    tide_bandwidth_init(&bandwidth, 0);
    const struct tide_bandwidth_rates rates = {
        .down_bytes_per_s = 1 + tide_rng_below(&rng, 2000000),
        .up_bytes_per_s = 1 + tide_rng_below(&rng, 2000000),
        .both_bytes_per_s = 1 + tide_rng_below(&rng, 3000000),
    };
    OK(tide_bandwidth_set(&bandwidth, &rates, NULL, 0));
    double given[2] = {0, 0};
    uint64_t now_ms = 0;
    for (uint64_t step = 0; step < steps; step++) {
        const enum tide_direction way = tide_rng_chance(&rng, 1, 2) ? TIDE_UP : TIDE_DOWN;
        const uint64_t wanted = 1 + tide_rng_below(&rng, 1 << 18);
        uint64_t bytes = 0;
        uint64_t again_ms = 0;
        if (tide_bandwidth_take(&bandwidth, now_ms, 0, way, wanted, &bytes, &again_ms) == TIDE_OK) {
            assert_in_range(bytes, 1, wanted);
            given[way] += (double)bytes;
        } else if (tide_rng_chance(&rng, 1, 2)) {
            /* The named time is early enough to be worth it: then it is granted. */
            now_ms = again_ms;
            OK(tide_bandwidth_take(&bandwidth, now_ms, 0, way, wanted, &bytes, &again_ms));
            given[way] += (double)bytes;
        } else {
            now_ms += tide_rng_below(&rng, 20);
        }
        const double s = (double)now_ms / 1000 + 0.25;
        assert_true(given[TIDE_DOWN] <= (double)rates.down_bytes_per_s * s + 1.001);
        assert_true(given[TIDE_UP] <= (double)rates.up_bytes_per_s * s + 1.001);
        assert_true(given[0] + given[1] <= (double)rates.both_bytes_per_s * s + 1.001);
        assert_true(tide_bandwidth_check(&bandwidth));
    }
}

TEST(random_transfers_never_pass_any_of_the_three_rates)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        random_walk(seed, scaled(100000));
}

TEST(the_rate_follows_the_schedule)
{
    tide_bandwidth bandwidth;
    tide_bandwidth_init(&bandwidth, 0);
    const struct tide_bandwidth_span office = {.days = 0x1f,
                                               .from_minute = 9 * 60,
                                               .to_minute = 17 * 60,
                                               .rates = {.both_bytes_per_s = 1000}};
    const struct tide_bandwidth_rates full = {0};
    OK(tide_bandwidth_set(&bandwidth, &full, &office, 1));
    uint64_t bytes = 0;
    uint64_t again_ms = 0;
    OK(tide_bandwidth_take(&bandwidth, 0, 539, TIDE_DOWN, 1000000, &bytes, &again_ms));
    assert_int_equal(bytes, 1000000);
    OK(tide_bandwidth_take(&bandwidth, 60000, 540, TIDE_DOWN, 1000000, &bytes, &again_ms));
    assert_int_equal(bytes, 251); /* the burst, not what the night left over */
    assert_int_equal(
        tide_bandwidth_take(&bandwidth, 60001, 540, TIDE_DOWN, 1000000, &bytes, &again_ms),
        TIDE_AGAIN);
    assert_in_range(again_ms, 60100, 60130);
    OK(tide_bandwidth_take(&bandwidth, 60002, 1020, TIDE_DOWN, 1000000, &bytes, &again_ms));
    assert_int_equal(bytes, 1000000);
}
