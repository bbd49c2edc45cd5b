#include "base/clocktext.h"

#include "base/calendar.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>

enum { MS_PER_DAY = 86400000 };

/* ---- times ---------------------------------------------------------------- */

void tide_time_format(uint64_t unix_ms, char text_out[TIDE_TIME_TEXT_BYTES])
{
    TIDE_ASSERT(text_out != NULL);
    if (unix_ms == 0) {
        (void)snprintf(text_out, TIDE_TIME_TEXT_BYTES, "-");
        return;
    }
    uint64_t days = unix_ms / MS_PER_DAY;
    uint64_t rest_ms = unix_ms % MS_PER_DAY;
    if (days > (uint64_t)tide_days_of((struct tide_date){TIDE_TIME_YEAR_MAX, 12, 31})) {
        (void)snprintf(text_out, TIDE_TIME_TEXT_BYTES, "never");
        return;
    }
    struct tide_date date = tide_date_of((int64_t)days);
    (void)snprintf(text_out, TIDE_TIME_TEXT_BYTES, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
                   (unsigned)date.year % 10000, date.month % 100, date.day % 100,
                   (unsigned)(rest_ms / 3600000) % 100, (unsigned)(rest_ms / 60000 % 60),
                   (unsigned)(rest_ms / 1000 % 60), (unsigned)(rest_ms % 1000));
}

/* Takes exactly `digits` digits off the front. */
static bool take_number(tide_text *text, size_t digits, unsigned *number_out)
{
    uint64_t number = 0;
    if (text->bytes < digits || !tide_text_to_u64((tide_text){text->data, digits}, &number))
        return false;
    *number_out = (unsigned)number;
    text->data += digits;
    text->bytes -= digits;
    return true;
}

static bool take_char(tide_text *text, char wanted)
{
    if (text->bytes == 0 || text->data[0] != wanted)
        return false;
    text->data++;
    text->bytes--;
    return true;
}

static bool day_parse(unsigned year, unsigned month, unsigned day, uint64_t *ms_out)
{
    const struct tide_date date = {(int32_t)year, month, day};
    if (year < 1970 || !tide_date_is_real(date))
        return false;
    *ms_out = (uint64_t)tide_days_of(date) * MS_PER_DAY;
    return true;
}

/* The time of day after a date; empty means midnight. */
static bool clock_parse(tide_text text, uint64_t *ms_out)
{
    unsigned hour = 0, minute = 0, second = 0, fraction = 0;
    if (text.bytes > 0) {
        if (!take_char(&text, 'T') && !take_char(&text, ' '))
            return false;
        if (!take_number(&text, 2, &hour) || !take_char(&text, ':') ||
            !take_number(&text, 2, &minute))
            return false;
        if (take_char(&text, ':') && !take_number(&text, 2, &second))
            return false;
        if (take_char(&text, '.') && !take_number(&text, 3, &fraction))
            return false;
        (void)take_char(&text, 'Z');
    }
    if (text.bytes != 0 || hour > 23 || minute > 59 || second > 59)
        return false;
    *ms_out = ((uint64_t)hour * 3600 + minute * 60 + second) * 1000 + fraction;
    return true;
}

bool tide_time_parse(tide_text text, uint64_t *unix_ms_out)
{
    unsigned year = 0, month = 0, day = 0;
    uint64_t day_ms = 0, clock_ms = 0;
    if (!take_number(&text, 4, &year) || !take_char(&text, '-') || !take_number(&text, 2, &month) ||
        !take_char(&text, '-') || !take_number(&text, 2, &day))
        return false;
    if (!day_parse(year, month, day, &day_ms) || !clock_parse(text, &clock_ms))
        return false;
    *unix_ms_out = day_ms + clock_ms;
    return true;
}

/* Takes one of several three-letter names off the front (case-sensitive); places count from 1. */
static bool take_name(tide_text *text, const char (*names)[4], unsigned count, unsigned *place_out)
{
    for (unsigned i = 0; i < count && text->bytes >= 3; i++) {
        if (memcmp(text->data, names[i], 3) != 0)
            continue;
        *place_out = i + 1;
        text->data += 3;
        text->bytes -= 3;
        return true;
    }
    return false;
}

bool tide_time_http_parse(tide_text text, uint64_t *unix_ms_out)
{
    unsigned weekday = 0, day = 0, month = 0, year = 0, hour = 0, minute = 0, second = 0;
    uint64_t day_ms = 0;
    if (!take_name(&text, tide_day_names, 7, &weekday) || !take_char(&text, ',') ||
        !take_char(&text, ' ') || !take_number(&text, 2, &day) || !take_char(&text, ' ') ||
        !take_name(&text, tide_month_names, 12, &month) || !take_char(&text, ' ') ||
        !take_number(&text, 4, &year) || !take_char(&text, ' ') || !take_number(&text, 2, &hour) ||
        !take_char(&text, ':') || !take_number(&text, 2, &minute) || !take_char(&text, ':') ||
        !take_number(&text, 2, &second) || !tide_text_equal(text, TIDE_TEXT(" GMT")))
        return false;
    if (!day_parse(year, month, day, &day_ms) || hour > 23 || minute > 59 || second > 60)
        return false;
    *unix_ms_out = day_ms + ((uint64_t)hour * 3600 + minute * 60 + second) * 1000;
    return true;
}

/* ---- durations and sizes ---------------------------------------------------- */

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first, so that the first unit that divides is the largest. */
static const struct unit duration_units[] = {
    {"d", MS_PER_DAY}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {"w", 604800000},
};
enum { DURATION_UNITS_SHOWN = 5, DURATION_UNITS = 6 };

static const struct unit size_units[] = {
    {"TiB", 1ull << 40},
    {"GiB", 1ull << 30},
    {"MiB", 1ull << 20},
    {"KiB", 1ull << 10},
    {"B", 1},
    {"TB", 1000000000000},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"kB", 1000},
    {"KB", 1000},
};
enum { SIZE_UNITS_SHOWN = 5, SIZE_UNITS = 10 };

/* Takes a number and its unit off the front of `text`. */
static bool take_amount(tide_text *text, const struct unit *units, int units_count,
                        uint64_t *amount_out)
{
    size_t digits = 0;
    while (digits < text->bytes && text->data[digits] >= '0' && text->data[digits] <= '9')
        digits++;
    uint64_t number = 0;
    if (!tide_text_to_u64((tide_text){text->data, digits}, &number))
        return false;
    size_t end = digits;
    while (end < text->bytes && (text->data[end] < '0' || text->data[end] > '9'))
        end++;
    tide_text name = {text->data + digits, end - digits};
    for (int i = 0; i < units_count; i++) {
        if (!tide_text_equal(name, tide_text_of(units[i].name)))
            continue;
        if (__builtin_mul_overflow(number, units[i].factor, amount_out))
            return false;
        text->data += end;
        text->bytes -= end;
        return true;
    }
    return false;
}

static void amount_format(uint64_t amount, const struct unit *units, int shown, const char *zero,
                          char *text_out, size_t text_bytes)
{
    for (int i = 0; amount > 0 && i < shown; i++) {
        if (amount % units[i].factor != 0)
            continue;
        (void)snprintf(text_out, text_bytes, "%" PRIu64 "%s", amount / units[i].factor,
                       units[i].name);
        return;
    }
    (void)snprintf(text_out, text_bytes, "%s", zero);
}

void tide_duration_format(uint64_t duration_ms, char text_out[TIDE_DURATION_TEXT_BYTES])
{
    amount_format(duration_ms, duration_units, DURATION_UNITS_SHOWN, "0ms", text_out,
                  TIDE_DURATION_TEXT_BYTES);
}

bool tide_duration_parse(tide_text text, uint64_t *duration_ms_out)
{
    uint64_t sum_ms = 0;
    if (tide_text_equal(text, TIDE_TEXT("0"))) {
        *duration_ms_out = 0;
        return true;
    }
    if (text.bytes == 0)
        return false;
    while (text.bytes > 0) {
        uint64_t part_ms = 0;
        if (!take_amount(&text, duration_units, DURATION_UNITS, &part_ms) ||
            __builtin_add_overflow(sum_ms, part_ms, &sum_ms))
            return false;
    }
    *duration_ms_out = sum_ms;
    return true;
}

void tide_duration_human(uint64_t duration_ms, char text_out[TIDE_DURATION_TEXT_BYTES])
{
    int first = 0;
    while (first < DURATION_UNITS_SHOWN - 1 && duration_ms < duration_units[first].factor)
        first++;
    uint64_t count = duration_ms / duration_units[first].factor;
    int used = snprintf(text_out, TIDE_DURATION_TEXT_BYTES, "%" PRIu64 " %s", count,
                        duration_units[first].name);
    TIDE_ASSERT(used > 0);
    /* Do not show milliseconds next to seconds. */
    if (first + 1 >= DURATION_UNITS_SHOWN - 1)
        return;
    uint64_t rest = duration_ms % duration_units[first].factor / duration_units[first + 1].factor;
    if (rest > 0)
        (void)snprintf(text_out + used, TIDE_DURATION_TEXT_BYTES - (size_t)used, " %" PRIu64 " %s",
                       rest, duration_units[first + 1].name);
}

void tide_size_format(uint64_t bytes, char text_out[TIDE_SIZE_TEXT_BYTES])
{
    amount_format(bytes, size_units, SIZE_UNITS_SHOWN, "0B", text_out, TIDE_SIZE_TEXT_BYTES);
}

bool tide_size_parse(tide_text text, uint64_t *bytes_out)
{
    uint64_t bytes = 0;
    if (tide_text_to_u64(text, &bytes)) {
        *bytes_out = bytes;
        return true;
    }
    if (!take_amount(&text, size_units, SIZE_UNITS, &bytes) || text.bytes > 0)
        return false;
    *bytes_out = bytes;
    return true;
}

void tide_size_human(uint64_t bytes, char text_out[TIDE_SIZE_TEXT_BYTES])
{
    int unit = 0;
    while (unit < SIZE_UNITS_SHOWN - 1 && bytes < size_units[unit].factor)
        unit++;
    if (unit == SIZE_UNITS_SHOWN - 1)
        (void)snprintf(text_out, TIDE_SIZE_TEXT_BYTES, "%" PRIu64 " B", bytes);
    else
        (void)snprintf(text_out, TIDE_SIZE_TEXT_BYTES, "%.1f %s",
                       (double)bytes / (double)size_units[unit].factor, size_units[unit].name);
}
