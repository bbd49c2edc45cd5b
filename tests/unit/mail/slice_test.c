/* Slices of time (M1): they cover everything, once. */
#include "mail/slice.h"

#include "base/rng.h"
#include "support/test.h"

TEST(the_length_follows_the_number_of_messages)
{
    assert_int_equal(tide_slice_days(0), 30);
    assert_int_equal(tide_slice_days(19999), 30);
    assert_int_equal(tide_slice_days(20000), 7);
    assert_int_equal(tide_slice_days(500000), 7);
    assert_int_equal(tide_slice_days(500001), 1);
}

TEST(slices_cover_all_time_without_gap_or_overlap)
{
    tide_rng rng = tide_rng_seeded(9);
    for (int i = 0; i < 4000; i++) {
        const uint64_t oldest_s =
            tide_rng_below(&rng, 2) == 0 ? 0 : 1080777600 + tide_rng_below(&rng, 700000000);
        const uint64_t end_s = 1080777600 + tide_rng_below(&rng, 800000000);
        const uint64_t floor_s = tide_rng_below(&rng, 2) == 0 ? 0 : tide_rng_below(&rng, end_s);
        const uint32_t days = 1 + (uint32_t)tide_rng_below(&rng, 40);
        const struct tide_slices slices = tide_slices_plan(floor_s, oldest_s, end_s, days);
        assert_in_range(slices.count, 1, TIDE_SLICES_MAX);
        uint64_t reached_s = floor_s;
        for (size_t k = 0; k < slices.count; k++) {
            const struct tide_slice slice = tide_slices_at(&slices, k);
            assert_int_equal(slice.after_s, reached_s); /* SLC1; without a floor it is open */
            assert_true(slice.before_s > slice.after_s);
            reached_s = slice.before_s;
        }
        assert_int_equal(reached_s, end_s);
    }
}

TEST(a_floor_on_the_border_of_a_slice_makes_no_empty_one)
{
    const uint64_t end_s = 1700000000;
    for (uint64_t days = 0; days < 100; days++) {
        const struct tide_slices slices =
            tide_slices_plan(end_s - days * TIDE_DAY_S - 1, 0, end_s, 7);
        assert_true(tide_slices_at(&slices, 0).after_s < tide_slices_at(&slices, 0).before_s);
        assert_int_equal(slices.count, days / 7 + 1);
        const struct tide_slices exact = tide_slices_plan(end_s - days * TIDE_DAY_S, 0, end_s, 7);
        assert_int_equal(exact.count, days == 0 ? 1 : (days + 6) / 7);
    }
}

TEST(a_mailbox_from_the_future_is_one_slice)
{
    const struct tide_slices slices = tide_slices_plan(0, 2000000000, 1900000000, 7);
    assert_int_equal(slices.count, 1);
    assert_int_equal(tide_slices_at(&slices, 0).before_s, 1900000000);
}

TEST(without_dates_there_is_one_slice)
{
    assert_int_equal(tide_slices_plan(0, 0, 1900000000, UINT32_MAX).count, 1);
}

TEST(halves_cover_their_span_and_are_not_empty)
{
    tide_rng rng = tide_rng_seeded(10);
    const uint64_t now_s = 1800000000;
    struct tide_slice halves[2];
    for (int i = 0; i < 4000; i++) {
        struct tide_slice span = {TIDE_GMAIL_BEGAN_S + tide_rng_below(&rng, 600000000), 0};
        span.before_s = span.after_s + 1 + tide_rng_below(&rng, 1u << tide_rng_below(&rng, 26));
        if (tide_rng_below(&rng, 4) == 0)
            span.after_s = 0;
        if (tide_rng_below(&rng, 4) == 0)
            span.before_s = 0;
        const bool cut = tide_slice_halves(span, now_s, halves);
        const uint64_t before_s = span.before_s == 0 ? now_s : span.before_s;
        if (!cut) {
            assert_true(before_s - span.after_s < 2);
            continue;
        }
        assert_int_equal(halves[0].after_s, span.after_s); /* SLC3 */
        assert_int_equal(halves[0].before_s, halves[1].after_s);
        assert_int_equal(halves[1].before_s, span.before_s);
        assert_true(halves[0].after_s < halves[0].before_s);
        assert_true(halves[1].after_s < before_s);
    }
    assert_false(tide_slice_halves((struct tide_slice){now_s, now_s + 1}, now_s, halves));
    assert_false(tide_slice_halves((struct tide_slice){0, 1000}, now_s, halves));
}

TEST(a_job_is_ten_seconds_of_quota)
{
    assert_int_equal(tide_slice_fetch_ids(6000, 60000, 20), 50);
    assert_int_equal(tide_slice_fetch_ids(15000, 60000, 20), 125);
    assert_int_equal(tide_slice_fetch_ids(400, 60000, 20), 3);
    assert_int_equal(tide_slice_fetch_ids(1, 60000, 20), 1);
    assert_int_equal(tide_slice_fetch_ids(100000000, 1000, 20), 300);
    assert_int_equal(tide_slice_fetch_ids(UINT64_MAX, 1, 20), 300);
    assert_int_equal(tide_slice_fetch_ids(0, 60000, 20), 300); /* no limit */
}

TEST(more_than_five_minutes_of_quota_are_slow)
{
    assert_false(tide_slice_is_slow(1500, 6000, 60000, 20));
    assert_true(tide_slice_is_slow(1501, 6000, 60000, 20));
    assert_false(tide_slice_is_slow(1501, 15000, 60000, 20));
    assert_false(tide_slice_is_slow(0, 1, 60000, 20)); /* the server did not say how many */
    assert_true(tide_slice_is_slow(1, 1, 60000, 20));
    assert_false(tide_slice_is_slow(UINT64_MAX, 0, 60000, 20)); /* no limit */
    assert_false(tide_slice_is_slow(UINT64_MAX, UINT64_MAX, 60000, 20));
}

TEST(people_say_a_day_a_year_or_an_age)
{
    const uint64_t now_ms = 1700000000000;
    const struct {
        const char *text;
        uint64_t since_ms; /* 0: refused */
    } cases[] = {
        {"2019", 1546300800000},
        {"2019-02", 1548979200000},
        {"2019-01-31", 1548892800000},
        {"1d", now_ms - 86400000},
        {"2w", now_ms - 14 * 86400000ull},
        {"6m", now_ms - 180 * 86400000ull},
        {"2y", now_ms - 730 * 86400000ull},
        {"", 0},
        {"0d", 0},
        {"y", 0},
        {"2", 0},
        {"2x", 0},
        {"-2y", 0},
        {"60y", 0},
        {"99999y", 0},
        {"20190131", 0},
        {"2019-13", 0},
        {"2019-02-30", 0},
        {"2019-1-31", 0},
        {"2019-01-31T00:00:00Z", 0},
        {"2030", 0},
        {"1970", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t since_ms = 7;
        const bool ok = tide_since_parse(tide_text_of(cases[i].text), now_ms, &since_ms);
        assert_int_equal(ok, cases[i].since_ms > 0);
        assert_int_equal(since_ms, ok ? cases[i].since_ms : 7);
    }
}
