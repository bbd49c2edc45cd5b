/* calendar.h - days since 1970-01-01 and dates of the Gregorian calendar.
 *
 * Proleptic: today's rules are used for every year.  Pure arithmetic, no time zone.
 *
 * Invariant (tests/unit/base/calendar_test.c):
 *   CAL1  tide_days_of(tide_date_of(days)) == days for every day of the years -9999 to 9999.
 */
#ifndef TIDE_BASE_CALENDAR_H
#define TIDE_BASE_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

struct tide_date {
    int32_t year;
    uint32_t month; /* 1 to 12 */
    uint32_t day;   /* 1 to 31 */
};

/* Days past the end of a month continue into the next one. */
int64_t tide_days_of(struct tide_date date);
struct tide_date tide_date_of(int64_t days);
/* Whether the month has this day. */
bool tide_date_is_real(struct tide_date date);
/* 0: Sunday. */
uint32_t tide_weekday_of(int64_t days);

extern const char tide_month_names[12][4]; /* "Jan" */
extern const char tide_day_names[7][4];    /* "Sun" */

#endif
