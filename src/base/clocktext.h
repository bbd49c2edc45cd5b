/* clocktext.h - parses and formats times, durations and sizes.
 *
 * Pure conversion: reads no clock and knows no time zone.  Times are UTC in ISO 8601.
 * What a `_format` function writes, the `_parse` function of the same name reads back
 * to the same number; the `_human` functions round and are for display only.
 *
 * Invariants (tests/unit/settings/settings_test.c):
 *   CLK1  parse(format(n)) == n for every n that can be formatted.
 *   CLK2  a parse that fails leaves its output as it was; overflow is a failure, never a wrong
 *         number.
 */
#ifndef TIDE_BASE_CLOCKTEXT_H
#define TIDE_BASE_CLOCKTEXT_H

#include "base/text.h"

enum {
    TIDE_TIME_TEXT_BYTES = 32,     /* room for any output below, terminator included */
    TIDE_TIME_YEAR_MAX = 9999,     /* ISO 8601 needs an agreement beyond it */
    TIDE_DURATION_TEXT_BYTES = 32, /* the same for durations */
    TIDE_SIZE_TEXT_BYTES = 32,
};

/* "2026-05-04T03:02:01.123Z"; "-" for 0, which means "never" in every stored row.  Past the year
 * 9999: "never". */
void tide_time_format(uint64_t unix_ms, char text_out[TIDE_TIME_TEXT_BYTES]);
/* Also accepts no fraction, a space instead of T, or a date alone (its midnight).  Only UTC: "Z" or
 * nothing. */
bool tide_time_parse(tide_text text, uint64_t *unix_ms_out);

/* Parses the HTTP date form "Sun, 06 Nov 1994 08:49:37 GMT" and no other.  The day name is not
 * checked against the date. */
bool tide_time_http_parse(tide_text text, uint64_t *unix_ms_out);

/* Exact: the largest unit that divides it ("90s", "1500ms", "7d", "0ms"). */
void tide_duration_format(uint64_t duration_ms, char text_out[TIDE_DURATION_TEXT_BYTES]);
/* "500ms", "10s", "5m", "2h", "7d", "1w"; sums as "1h30m"; a bare "0". */
bool tide_duration_parse(tide_text text, uint64_t *duration_ms_out);
/* The two largest units: "2 d 3 h", "4 m 5 s", "320 ms". */
void tide_duration_human(uint64_t duration_ms, char text_out[TIDE_DURATION_TEXT_BYTES]);

/* Exact, in the largest binary unit that divides it: "64MiB", "1000B". */
void tide_size_format(uint64_t bytes, char text_out[TIDE_SIZE_TEXT_BYTES]);
/* A number with B, kB, KB, MB, GB, TB (1000) or KiB, MiB, GiB, TiB (1024), or
 * alone: bytes. */
bool tide_size_parse(tide_text text, uint64_t *bytes_out);
/* Rounded to one decimal: "1.5 GiB". */
void tide_size_human(uint64_t bytes, char text_out[TIDE_SIZE_TEXT_BYTES]);

#endif
