/* Goal: a chart shows what happened in each step.  Method: the rings against a plain list of what was
 * added, over random times with long pauses. */
#include "core/series.h"
#include "support/test.h"

enum { ADDS = 3000 };

static struct {
    uint64_t at_ms;
    uint32_t amount;
} added[ADDS];

static void compare(const struct tide_series *series, size_t count, uint64_t now_ms,
                    tide_series_span span)
{
    uint32_t values[TIDE_SERIES_STEPS_MAX];
    const uint32_t step_ms = tide_series_step_ms(span);
    const size_t steps = tide_series_read(series, span, now_ms, values);
    for (size_t i = 0; i < steps; i++) {
        uint64_t sum = 0;
        const uint64_t step = now_ms / step_ms - (steps - 1 - i);
        for (size_t k = 0; k < count; k++)
            sum += added[k].at_ms / step_ms == step ? added[k].amount : 0;
        assert_int_equal(values[i], sum);
    }
}

TEST(series_have_what_was_added_in_each_step)
{
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct tide_series series = {.hour_last = 0};
        unsigned random = seed * 2654435761u;
        uint64_t now_ms = 100ull * 24 * 3600 * 1000;
        for (size_t i = 0; i < ADDS; i++) {
            random = random * 1664525u + 1013904223u;
            const unsigned draw = random >> 16;
            now_ms += draw % 50 == 0 ? draw * 700ull : draw % 9000;
            added[i].at_ms = now_ms;
            added[i].amount = draw % 100;
            tide_series_add(&series, now_ms, added[i].amount);
            if (i % 500 == 499) {
                compare(&series, i + 1, now_ms, TIDE_SERIES_HOUR);
                compare(&series, i + 1, now_ms, TIDE_SERIES_DAY);
                compare(&series, i + 1, now_ms + draw * 1000ull, TIDE_SERIES_HOUR);
                compare(&series, i + 1, now_ms + draw * 1000ull, TIDE_SERIES_DAY);
            }
        }
    }
}

TEST(series_are_zero_without_anything)
{
    const struct tide_series empty = {.hour_last = 0};
    uint32_t values[TIDE_SERIES_STEPS_MAX];
    for (int span = TIDE_SERIES_HOUR; span <= TIDE_SERIES_DAY; span++)
        for (int known = 0; known < 2; known++) {
            const size_t steps =
                tide_series_read(known ? &empty : NULL, (tide_series_span)span, 1u << 30, values);
            for (size_t i = 0; i < steps; i++)
                assert_int_equal(values[i], 0);
        }
}

TEST(series_add_to_the_newest_step_when_time_goes_back)
{
    struct tide_series series = {.hour_last = 0};
    uint32_t values[TIDE_SERIES_STEPS_MAX];
    tide_series_add(&series, 50000, 1);
    tide_series_add(&series, 20000, 2);
    tide_series_add(&series, 50000, UINT32_MAX);
    const size_t steps = tide_series_read(&series, TIDE_SERIES_HOUR, 30000, values);
    assert_int_equal(values[steps - 1], UINT32_MAX);
    assert_int_equal(values[steps - 2], 0);
}
