/* Slices of time (M1): they cover everything, once. */
#include "mail/slice.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void the_length_follows_the_number_of_messages(void **state)
{
    (void)state;
    assert_int_equal(tide_slice_days(0), 30);
    assert_int_equal(tide_slice_days(19999), 30);
    assert_int_equal(tide_slice_days(20000), 7);
    assert_int_equal(tide_slice_days(500000), 7);
    assert_int_equal(tide_slice_days(500001), 1);
}

static void slices_cover_all_time_without_gap_or_overlap(void **state)
{
    (void)state;
    tide_rng rng = tide_rng_seeded(9);
    for (int i = 0; i < 2000; i++) {
        const uint64_t oldest_s =
            tide_rng_below(&rng, 2) == 0 ? 0 : 1080777600 + tide_rng_below(&rng, 700000000);
        const uint64_t end_s = 1080777600 + tide_rng_below(&rng, 800000000);
        const uint32_t days = 1 + (uint32_t)tide_rng_below(&rng, 40);
        const struct tide_slices slices = tide_slices_plan(oldest_s, end_s, days);
        assert_in_range(slices.count, 1, TIDE_SLICES_MAX);
        uint64_t reached_s = 0;
        for (size_t k = 0; k < slices.count; k++) {
            const struct tide_slice slice = tide_slices_at(&slices, k);
            assert_int_equal(slice.after_s, reached_s); /* S1; the first is open */
            assert_true(slice.before_s > slice.after_s);
            reached_s = slice.before_s;
        }
        assert_int_equal(reached_s, end_s);
    }
}

static void a_mailbox_from_the_future_is_one_slice(void **state)
{
    (void)state;
    const struct tide_slices slices = tide_slices_plan(2000000000, 1900000000, 7);
    assert_int_equal(slices.count, 1);
    assert_int_equal(tide_slices_at(&slices, 0).before_s, 1900000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_length_follows_the_number_of_messages),
        cmocka_unit_test(slices_cover_all_time_without_gap_or_overlap),
        cmocka_unit_test(a_mailbox_from_the_future_is_one_slice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
