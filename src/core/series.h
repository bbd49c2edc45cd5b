/* series.h - how much happened when: two rings of counts over time.
 *
 * For a chart of the last hour in steps of 10 s, and of the last day in steps of 5 min.  What happens is
 * added when it happens; a step in which nothing was added is 0.  So no timer is needed: an account
 * that rests costs nothing, and a reader finds the quiet time as zeros.
 *
 * Pure: time is an argument.  Time that goes backwards is added to the newest step.
 *
 * Invariants:
 *   SER1  a step counts what was added in it, as long as it is not older than its ring.
 *   SER2  reading changes nothing.
 */
#ifndef TIDE_CORE_SERIES_H
#define TIDE_CORE_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TIDE_SERIES_HOUR_MS = 10 * 1000, /* a step of the last hour */
    TIDE_SERIES_HOUR_STEPS = 360,
    TIDE_SERIES_DAY_MS = 5 * 60 * 1000, /* a step of the last day */
    TIDE_SERIES_DAY_STEPS = 288,
    TIDE_SERIES_STEPS_MAX = TIDE_SERIES_HOUR_STEPS,
};

struct tide_series {
    uint64_t hour_last, day_last; /* the newest step: its number since time 0 */
    uint32_t hour[TIDE_SERIES_HOUR_STEPS];
    uint32_t day[TIDE_SERIES_DAY_STEPS];
};

typedef enum tide_series_span {
    TIDE_SERIES_HOUR,
    TIDE_SERIES_DAY,
} tide_series_span;

/* A zeroed one is empty. */
void tide_series_add(struct tide_series *series, uint64_t now_ms, uint32_t amount);
/* The steps up to now, oldest first; the last one is the step that now is in.  Returns their number.
 * `series` NULL: zeros. */
size_t tide_series_read(const struct tide_series *series, tide_series_span span, uint64_t now_ms,
                        uint32_t values_out[TIDE_SERIES_STEPS_MAX]);
uint32_t tide_series_step_ms(tide_series_span span);

#endif
