/* dates.h - calendar days as Search Console names them.  Pure arithmetic. */
#ifndef TIDE_CONSOLE_DATES_H
#define TIDE_CONSOLE_DATES_H

#include <stdbool.h>
#include <stdint.h>

/* Days since 1970 of "2026-09-01", and back; false: not a date. */
bool tide_date_parse(const char *text, int32_t *day_out);
void tide_date_format(int32_t day, char out[16]);
/* The day in Pacific time, taken as UTC-8 all year: an hour late in summer, never early. */
int32_t tide_date_pacific(uint64_t unix_ms);

#endif
