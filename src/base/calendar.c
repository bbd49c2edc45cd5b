#include "base/calendar.h"

/* Years begin in March here, so that the leap day is the last of its year; 400 such years are
 * one era of 146,097 days.  719,468 days lie between 0000-03-01 and 1970-01-01. */
enum { ERA_YEARS = 400, ERA_DAYS = 146097, DAYS_TO_1970 = 719468 };

const char tide_month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
const char tide_day_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

static int64_t floor_divide(int64_t number, int64_t by)
{
    return (number >= 0 ? number : number - (by - 1)) / by;
}

int64_t tide_days_of(struct tide_date date)
{
    const int64_t year = (int64_t)date.year - (date.month <= 2);
    const int64_t era = floor_divide(year, ERA_YEARS);
    const int64_t of_era = year - era * ERA_YEARS;
    const int64_t month = date.month > 2 ? date.month - 3 : date.month + 9;
    const int64_t of_year = (153 * month + 2) / 5 + date.day - 1;
    return era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970;
}

struct tide_date tide_date_of(int64_t days)
{
    const int64_t shifted = days + DAYS_TO_1970;
    const int64_t era = floor_divide(shifted, ERA_DAYS);
    const int64_t of_era = shifted - era * ERA_DAYS;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    const int64_t month = (5 * of_year + 2) / 153;
    return (struct tide_date){
        .year = (int32_t)(year + era * ERA_YEARS + (month >= 10)),
        .month = (uint32_t)(month < 10 ? month + 3 : month - 9),
        .day = (uint32_t)(of_year - (153 * month + 2) / 5 + 1),
    };
}

bool tide_date_is_real(struct tide_date date)
{
    static const uint8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0);
    if (date.month < 1 || date.month > 12 || date.day < 1)
        return false;
    return date.day <= lengths[date.month - 1] + (date.month == 2 && leap ? 1u : 0u);
}

uint32_t tide_weekday_of(int64_t days)
{
    const int64_t since_sunday = days + 4; /* 1970 began on a Thursday */
    return (uint32_t)(since_sunday - floor_divide(since_sunday, 7) * 7);
}
