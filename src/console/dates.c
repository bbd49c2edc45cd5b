#include "console/dates.h"

#include "base/calendar.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

void tide_date_format(int32_t day, char out[16])
{
    const struct tide_date date = tide_date_of(day);
    (void)snprintf(out, 16, "%04d-%02u-%02u", (int)date.year % 10000, date.month % 100,
                   date.day % 100);
}

bool tide_date_parse(const char *text, int32_t *day_out)
{
    uint64_t year = 0, month = 0, day = 0;
    if (strlen(text) != 10 || text[4] != '-' || text[7] != '-' ||
        !tide_text_to_u64((tide_text){text, 4}, &year) ||
        !tide_text_to_u64((tide_text){text + 5, 2}, &month) ||
        !tide_text_to_u64((tide_text){text + 8, 2}, &day))
        return false;
    const struct tide_date date = {(int32_t)year, (uint32_t)month, (uint32_t)day};
    if (!tide_date_is_real(date))
        return false;
    *day_out = (int32_t)tide_days_of(date);
    return true;
}

int32_t tide_date_pacific(uint64_t unix_ms)
{
    const int64_t seconds = (int64_t)(unix_ms / 1000) - 8 * 3600;
    return (int32_t)(seconds / 86400);
}
