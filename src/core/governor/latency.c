#include "core/governor/latency.h"

#include "base/check.h"

#include <string.h>

enum {
    EPOCH_MS = 60000,
    EPOCH_COUNT_MIN = 64,
    STEP_LATENCY_MAX = (1 << 20) - 1,
};

/* 0..3 have a step each; from 4 on an octave has four steps of equal width. */
static unsigned step_of(uint32_t latency_ms)
{
    const uint32_t value = latency_ms < STEP_LATENCY_MAX ? latency_ms : STEP_LATENCY_MAX;
    if (value < 4)
        return value;
    const unsigned octave = 31u - (unsigned)__builtin_clz(value); /* 2..19 */
    return (octave - 1) * 4 + ((value >> (octave - 2)) & 3);
}

/* The middle of a step. */
static uint32_t step_value(unsigned step)
{
    if (step < 4)
        return step;
    const unsigned octave = step / 4 + 1;
    const uint32_t width = 1u << (octave - 2);
    return (4 + step % 4) * width + width / 2;
}

void tide_latency_init(tide_latency *latency, uint64_t now_ms)
{
    *latency = (tide_latency){.since_ms = now_ms};
}

/* The smallest value that at least `permille` of the samples of both epochs do not exceed. */
static uint32_t quantile(const struct tide_latency_epoch *a, const struct tide_latency_epoch *b,
                         unsigned permille)
{
    const uint64_t count = (uint64_t)a->count + b->count;
    if (count == 0)
        return 0;
    uint64_t rank = (count * permille + 999) / 1000; /* counted from 1 */
    if (rank == 0)
        rank = 1;
    uint64_t seen = 0;
    for (unsigned step = 0;; step++) { /* ends: all samples are in a step (LAT1) */
        TIDE_ASSERT(step < TIDE_LATENCY_STEPS);
        seen += (uint64_t)a->steps[step] + b->steps[step];
        if (seen >= rank)
            return step_value(step);
    }
}

static void epoch_end(tide_latency *latency, uint64_t now_ms)
{
    static const struct tide_latency_epoch none;
    const double p50_ms = quantile(&latency->now, &none, 500);
    const double best_ms = latency->best_p50_ms * 1.01;
    latency->best_p50_ms = latency->best_p50_ms == 0 || p50_ms < best_ms ? p50_ms : best_ms;
    latency->before = latency->now;
    memset(&latency->now, 0, sizeof latency->now);
    latency->since_ms = now_ms;
}

void tide_latency_add(tide_latency *latency, uint64_t now_ms, uint32_t latency_ms)
{
    if (now_ms >= latency->since_ms + EPOCH_MS && latency->now.count >= EPOCH_COUNT_MIN)
        epoch_end(latency, now_ms);
    latency->now.steps[step_of(latency_ms)]++;
    latency->now.count++;
    latency->count_total++;
}

uint32_t tide_latency_count(const tide_latency *latency)
{
    return latency->now.count + latency->before.count;
}

uint32_t tide_latency_quantile_ms(const tide_latency *latency, unsigned permille)
{
    TIDE_ASSERT(permille <= 1000);
    return quantile(&latency->now, &latency->before, permille);
}

uint32_t tide_latency_best_p50_ms(const tide_latency *latency)
{
    return latency->best_p50_ms > 0 ? (uint32_t)latency->best_p50_ms
                                    : tide_latency_quantile_ms(latency, 500);
}

void tide_latency_forget(tide_latency *latency, uint64_t now_ms)
{
    memset(&latency->now, 0, sizeof latency->now);
    memset(&latency->before, 0, sizeof latency->before);
    latency->since_ms = now_ms;
}

static bool epoch_check(const struct tide_latency_epoch *epoch)
{
    uint64_t sum = 0;
    for (unsigned step = 0; step < TIDE_LATENCY_STEPS; step++)
        sum += epoch->steps[step];
    return sum == epoch->count;
}

bool tide_latency_check(const tide_latency *latency)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    const uint32_t p50_ms = tide_latency_quantile_ms(latency, 500);
    const uint32_t p95_ms = tide_latency_quantile_ms(latency, 950);
    const uint32_t p99_ms = tide_latency_quantile_ms(latency, 990);
    return epoch_check(&latency->now) && epoch_check(&latency->before) && p50_ms <= p95_ms &&
           p95_ms <= p99_ms;
    /* GCOVR_EXCL_BR_STOP */
}
