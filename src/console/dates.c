#include "console/dates.h"

#include <stdio.h>
#include <string.h>

/* Civil calendar, by eras of 400 years (proleptic Gregorian). */
static int32_t days_of(int32_t year, int32_t month, int32_t day)
{
    year -= month <= 2 ? 1 : 0;
    const int32_t era = (year >= 0 ? year : year - 399) / 400;
    const int32_t of_era = year - era * 400;
    const int32_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void tide_date_format(int32_t day, char out[16])
{
    const int32_t shifted = day + 719468;
    const int32_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    const int32_t of_era = shifted - era * 146097;
    const int32_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int32_t of_year = of_era - (365 * years + years / 4 - years / 100);
    const int32_t month = (5 * of_year + 2) / 153;
    const int32_t year = years + era * 400 + (month >= 10 ? 1 : 0);
    (void)snprintf(out, 16, "%04d-%02d-%02d", (int)year % 10000,
                   (int)(month < 10 ? month + 3 : month - 9) % 100,
                   (int)(of_year - (153 * month + 2) / 5 + 1) % 100);
}

bool tide_date_parse(const char *text, int32_t *day_out)
{
    char again[16];
    if (strlen(text) != 10 || text[4] != '-' || text[7] != '-')
        return false;
    for (int i = 0; i < 10; i++)
        if (i != 4 && i != 7 && (text[i] < '0' || text[i] > '9'))
            return false;
    const int32_t year =
        (text[0] - '0') * 1000 + (text[1] - '0') * 100 + (text[2] - '0') * 10 + (text[3] - '0');
    const int32_t month = (text[5] - '0') * 10 + (text[6] - '0');
    const int32_t day = days_of(year, month, (text[8] - '0') * 10 + (text[9] - '0'));
    tide_date_format(day, again); /* 2026-02-30 gives another day */
    if (month < 1 || month > 12 || strcmp(again, text) != 0)
        return false;
    *day_out = day;
    return true;
}

int32_t tide_date_pacific(uint64_t unix_ms)
{
    const int64_t seconds = (int64_t)(unix_ms / 1000) - 8 * 3600;
    return (int32_t)(seconds / 86400);
}
