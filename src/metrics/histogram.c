#include "metrics/histogram.h"

tide_histogram_bounds tide_histogram_work_us = {10000,   50000,   100000,   250000,  500000,
                                                1000000, 2500000, 10000000, 60000000};
tide_histogram_bounds tide_histogram_local_us = {1000,  2500,   5000,   10000,  25000,
                                                 50000, 100000, 500000, 2000000};

unsigned tide_histogram_step(tide_histogram_bounds bounds_us, uint64_t value_us)
{
    unsigned step = 0;
    while (step < TIDE_HISTOGRAM_STEPS - 1 && value_us > bounds_us[step])
        step++;
    return step;
}

void tide_histogram_add(tide_histogram *histogram, tide_histogram_bounds bounds_us,
                        uint64_t value_us)
{
    histogram->counts[tide_histogram_step(bounds_us, value_us)]++;
    histogram->sum_us += value_us;
}

uint64_t tide_histogram_count(const tide_histogram *histogram)
{
    uint64_t count = 0;
    for (int i = 0; i < TIDE_HISTOGRAM_STEPS; i++)
        count += histogram->counts[i];
    return count;
}
