/* histogram.h - counts of durations in a few steps, for metrics (E9.1).
 *
 * The bounds belong to the program text and are passed in: all histograms of a metric have the same.
 * A count never decreases.  It takes no lock; its owner does. */
#ifndef TIDE_METRICS_HISTOGRAM_H
#define TIDE_METRICS_HISTOGRAM_H

#include <stdint.h>

enum { TIDE_HISTOGRAM_STEPS = 10 };

typedef struct tide_histogram {
    uint64_t counts[TIDE_HISTOGRAM_STEPS]; /* each without those below it; the last has no bound */
    uint64_t sum_us;
} tide_histogram;

/* The upper bounds of all steps but the last, ascending. */
typedef const uint64_t tide_histogram_bounds[TIDE_HISTOGRAM_STEPS - 1];

/* For jobs and calls to a provider: 10 ms to a minute. */
extern tide_histogram_bounds tide_histogram_work_us;
/* For requests on this machine: 1 ms to 2 s. */
extern tide_histogram_bounds tide_histogram_local_us;

void tide_histogram_add(tide_histogram *histogram, tide_histogram_bounds bounds_us,
                        uint64_t value_us);
/* The step that a value belongs to. */
unsigned tide_histogram_step(tide_histogram_bounds bounds_us, uint64_t value_us);
uint64_t tide_histogram_count(const tide_histogram *histogram);

#endif
