/* calendar_test.c - days and dates, against a calendar that counts day by day. */
#include "base/calendar.h"
#include "support/test.h"

TEST(every_day_has_its_date_and_every_date_its_day)
{
    struct tide_date date = {-9999, 1, 1};
    int64_t days = tide_days_of(date);
    uint32_t weekday = tide_weekday_of(days);
    for (; date.year <= 9999; days++) {
        const struct tide_date seen = tide_date_of(days);
        if (seen.year != date.year || seen.month != date.month || seen.day != date.day ||
            tide_days_of(date) != days || tide_weekday_of(days) != weekday)
            fail_msg("day %lld is not %d-%u-%u", (long long)days, date.year, date.month, date.day);
        weekday = (weekday + 1) % 7;
        date.day++;
        if (tide_date_is_real(date))
            continue;
        date.day = 1;
        date.month++;
        if (date.month == 13) {
            date.month = 1;
            date.year++;
        }
    }
}

TEST(some_days_are_known)
{
    assert_int_equal(tide_days_of((struct tide_date){1970, 1, 1}), 0);
    assert_int_equal(tide_days_of((struct tide_date){2000, 2, 29}), 11016);
    assert_int_equal(tide_days_of((struct tide_date){1900, 3, 1}), -25508);
    assert_int_equal(tide_days_of((struct tide_date){1, 1, 1}), -719162);
    assert_string_equal(tide_day_names[tide_weekday_of(0)], "Thu");
    assert_string_equal(tide_month_names[11], "Dec");
}

TEST(a_date_that_is_not_in_the_calendar_is_not_real)
{
    assert_true(tide_date_is_real((struct tide_date){2024, 2, 29}));
    assert_true(tide_date_is_real((struct tide_date){2000, 2, 29}));
    assert_false(tide_date_is_real((struct tide_date){2023, 2, 29}));
    assert_false(tide_date_is_real((struct tide_date){1900, 2, 29}));
    assert_false(tide_date_is_real((struct tide_date){2024, 4, 31}));
    assert_false(tide_date_is_real((struct tide_date){2024, 0, 1}));
    assert_false(tide_date_is_real((struct tide_date){2024, 13, 1}));
    assert_false(tide_date_is_real((struct tide_date){2024, 1, 0}));
}
