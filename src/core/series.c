#include "core/series.h"

static void ring_add(uint32_t *ring, size_t steps, uint64_t *last, uint64_t step, uint32_t amount)
{
    if (step > *last) {
        const uint64_t passed = step - *last;
        for (uint64_t i = 1; i <= passed && i <= steps; i++)
            ring[(*last + i) % steps] = 0;
        *last = step;
    }
    uint32_t *at = &ring[*last % steps];
    *at = amount > UINT32_MAX - *at ? UINT32_MAX : *at + amount;
}

void tide_series_add(struct tide_series *series, uint64_t now_ms, uint32_t amount)
{
    ring_add(series->hour, TIDE_SERIES_HOUR_STEPS, &series->hour_last, now_ms / TIDE_SERIES_HOUR_MS,
             amount);
    ring_add(series->day, TIDE_SERIES_DAY_STEPS, &series->day_last, now_ms / TIDE_SERIES_DAY_MS,
             amount);
}

uint32_t tide_series_step_ms(tide_series_span span)
{
    return span == TIDE_SERIES_HOUR ? TIDE_SERIES_HOUR_MS : TIDE_SERIES_DAY_MS;
}

size_t tide_series_read(const struct tide_series *series, tide_series_span span, uint64_t now_ms,
                        uint32_t values_out[TIDE_SERIES_STEPS_MAX])
{
    const size_t steps = span == TIDE_SERIES_HOUR ? TIDE_SERIES_HOUR_STEPS : TIDE_SERIES_DAY_STEPS;
    const uint32_t *ring = series == NULL             ? NULL
                           : span == TIDE_SERIES_HOUR ? series->hour
                                                      : series->day;
    const uint64_t last = series == NULL             ? 0
                          : span == TIDE_SERIES_HOUR ? series->hour_last
                                                     : series->day_last;
    const uint64_t step = now_ms / tide_series_step_ms(span);
    const uint64_t newest = step > last ? step : last;
    for (size_t i = 0; i < steps; i++) {
        const uint64_t back = steps - 1 - i; /* how many steps before the newest */
        const uint64_t at = newest - back;   /* at most `steps` before `last`, so the ring has it */
        const bool held = ring != NULL && back <= newest && at <= last;
        values_out[i] = held ? ring[at % steps] : 0;
    }
    return steps;
}
