/* bandwidth.h - limits bytes per second over all transfers (E4.7).
 *
 * Three token buckets: down, up, and both together.  Their rates follow a
 * weekly schedule (full at night, throttled in office hours).  The schedule is
 * in local time, which a pure module cannot know: the caller passes the minute
 * of the week, counted from Monday 00:00.
 *
 * A bucket holds a quarter of a second.  Bytes are granted in pieces of at least an
 * eighth of a second (or the amount requested, if less), so that a slow link is not
 * served byte by byte.
 *
 * Invariants (tide_bandwidth_check()):
 *   BWD1  over any span of t milliseconds in which a rate r held, at most r * t / 1000 + r / 4 + 1
 *         bytes were granted.
 *   BWD2  spans lie inside a day: from < 1440, to <= 1440.
 */
#ifndef TIDE_CORE_BANDWIDTH_H
#define TIDE_CORE_BANDWIDTH_H

#include "base/limits.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { TIDE_MINUTES_PER_DAY = 1440, TIDE_MINUTES_PER_WEEK = 10080 };

enum tide_direction { TIDE_DOWN, TIDE_UP };

/* Bytes per second; 0: unlimited. */
struct tide_bandwidth_rates {
    uint64_t down_bytes_per_s;
    uint64_t up_bytes_per_s;
    uint64_t both_bytes_per_s;
};

/* On the days of `days` (bit 0 is Monday; 0 means every day), from one minute of
 * the day to another; `to <= from` runs past midnight into the next day. */
struct tide_bandwidth_span {
    uint8_t days;
    uint16_t from_minute;
    uint16_t to_minute;
    struct tide_bandwidth_rates rates;
};

struct tide_bandwidth_bucket {
    uint64_t bytes_per_s;
    double tokens; /* bytes */
    uint64_t at_ms;
};

typedef struct tide_bandwidth {
    struct tide_bandwidth_rates rates; /* outside every span */
    struct tide_bandwidth_span spans[TIDE_BANDWIDTH_SPANS_MAX];
    unsigned span_count;
    struct tide_bandwidth_bucket buckets[3]; /* down, up, both */
} tide_bandwidth;

void tide_bandwidth_init(tide_bandwidth *bandwidth, uint64_t now_ms);
/* Sets rates and schedule, at start and on a running engine (E11).  The first span that contains
 * the minute wins.  TIDE_FULL, TIDE_INVALID: nothing changed. */
tide_status tide_bandwidth_set(tide_bandwidth *bandwidth, const struct tide_bandwidth_rates *rates,
                               const struct tide_bandwidth_span *spans, unsigned span_count);
struct tide_bandwidth_rates tide_bandwidth_rates_at(const tide_bandwidth *bandwidth,
                                                    unsigned minute_of_week);

/* TIDE_OK: `*bytes_out` (1 to `bytes`) may be transferred now.  TIDE_AGAIN: ask again at
 * `*again_at_ms_out`. */
tide_status tide_bandwidth_take(tide_bandwidth *bandwidth, uint64_t now_ms, unsigned minute_of_week,
                                enum tide_direction direction, uint64_t bytes, uint64_t *bytes_out,
                                uint64_t *again_at_ms_out);
bool tide_bandwidth_check(const tide_bandwidth *bandwidth);

#endif
