#include "core/governor/bandwidth.h"

#include "base/check.h"

#include <string.h>

enum { BOTH = 2, BURST_PER_S = 4 };

void tide_bandwidth_init(tide_bandwidth *bandwidth, uint64_t now_ms)
{
    *bandwidth = (tide_bandwidth){0};
    for (int i = 0; i < 3; i++)
        bandwidth->buckets[i].at_ms = now_ms;
}

static bool span_is_valid(const struct tide_bandwidth_span *span)
{
    return span->days < 1 << 7 && span->from_minute < TIDE_MINUTES_PER_DAY &&
           span->to_minute <= TIDE_MINUTES_PER_DAY;
}

tide_status tide_bandwidth_set(tide_bandwidth *bandwidth, const struct tide_bandwidth_rates *rates,
                               const struct tide_bandwidth_span *spans, unsigned span_count)
{
    if (span_count > TIDE_BANDWIDTH_SPANS_MAX)
        return TIDE_FULL;
    for (unsigned i = 0; i < span_count; i++)
        if (!span_is_valid(&spans[i]))
            return TIDE_INVALID;
    bandwidth->rates = *rates;
    bandwidth->span_count = span_count;
    if (span_count > 0)
        memcpy(bandwidth->spans, spans, span_count * sizeof *spans);
    return TIDE_OK;
}

static bool on_day(const struct tide_bandwidth_span *span, unsigned day)
{
    return span->days == 0 || (span->days >> day & 1) != 0;
}

static bool span_holds(const struct tide_bandwidth_span *span, unsigned minute_of_week)
{
    const unsigned day = minute_of_week / TIDE_MINUTES_PER_DAY;
    const unsigned minute = minute_of_week % TIDE_MINUTES_PER_DAY;
    if (span->from_minute < span->to_minute)
        return on_day(span, day) && minute >= span->from_minute && minute < span->to_minute;
    return (on_day(span, day) && minute >= span->from_minute) ||
           (on_day(span, (day + 6) % 7) && minute < span->to_minute);
}

struct tide_bandwidth_rates tide_bandwidth_rates_at(const tide_bandwidth *bandwidth,
                                                    unsigned minute_of_week)
{
    TIDE_ASSERT(minute_of_week < TIDE_MINUTES_PER_WEEK);
    for (unsigned i = 0; i < bandwidth->span_count; i++)
        if (span_holds(&bandwidth->spans[i], minute_of_week))
            return bandwidth->spans[i].rates;
    return bandwidth->rates;
}

static double burst(uint64_t bytes_per_s)
{
    return (double)(bytes_per_s / BURST_PER_S + 1);
}

/* Refills at the old rate up to now, then switches to the new one. */
static void bucket_advance(struct tide_bandwidth_bucket *bucket, uint64_t now_ms,
                           uint64_t bytes_per_s)
{
    if (now_ms > bucket->at_ms) {
        bucket->tokens += (double)(now_ms - bucket->at_ms) * (double)bucket->bytes_per_s / 1000;
        bucket->at_ms = now_ms;
    }
    if (bucket->bytes_per_s == 0)
        bucket->tokens = burst(bytes_per_s); /* was unlimited */
    bucket->bytes_per_s = bytes_per_s;
    if (bucket->tokens > burst(bytes_per_s))
        bucket->tokens = burst(bytes_per_s);
}

/* How much of `bytes` one bucket gives now; if nothing, when to ask again. */
static uint64_t bucket_offer(const struct tide_bandwidth_bucket *bucket, uint64_t now_ms,
                             uint64_t bytes, uint64_t *at_ms)
{
    if (bucket->bytes_per_s == 0)
        return bytes;
    const double piece_max = (double)(bucket->bytes_per_s / (2 * BURST_PER_S) + 1);
    const double wanted = (double)bytes < piece_max ? (double)bytes : piece_max;
    if (bucket->tokens >= wanted) {
        const uint64_t tokens = (uint64_t)bucket->tokens;
        return tokens < bytes ? tokens : bytes;
    }
    const double wait_ms = (wanted - bucket->tokens) * 1000 / (double)bucket->bytes_per_s;
    const uint64_t ready_ms = now_ms + (uint64_t)wait_ms + 1;
    if (ready_ms > *at_ms)
        *at_ms = ready_ms;
    return 0;
}

tide_status tide_bandwidth_take(tide_bandwidth *bandwidth, uint64_t now_ms, unsigned minute_of_week,
                                enum tide_direction direction, uint64_t bytes, uint64_t *bytes_out,
                                uint64_t *again_at_ms_out)
{
    TIDE_ASSERT(bytes > 0);
    const struct tide_bandwidth_rates rates = tide_bandwidth_rates_at(bandwidth, minute_of_week);
    bucket_advance(&bandwidth->buckets[TIDE_DOWN], now_ms, rates.down_bytes_per_s);
    bucket_advance(&bandwidth->buckets[TIDE_UP], now_ms, rates.up_bytes_per_s);
    bucket_advance(&bandwidth->buckets[BOTH], now_ms, rates.both_bytes_per_s);

    struct tide_bandwidth_bucket *own = &bandwidth->buckets[direction];
    struct tide_bandwidth_bucket *both = &bandwidth->buckets[BOTH];
    uint64_t again_at_ms = 0;
    const uint64_t own_bytes = bucket_offer(own, now_ms, bytes, &again_at_ms);
    const uint64_t both_bytes = bucket_offer(both, now_ms, bytes, &again_at_ms);
    if (own_bytes == 0 || both_bytes == 0) {
        *again_at_ms_out = again_at_ms;
        return TIDE_AGAIN;
    }
    const uint64_t granted = own_bytes < both_bytes ? own_bytes : both_bytes;
    own->tokens -= (double)granted;
    both->tokens -= (double)granted;
    *bytes_out = granted;
    return TIDE_OK;
}

bool tide_bandwidth_check(const tide_bandwidth *bandwidth)
{
    /* GCOVR_EXCL_BR_START: tests cannot break an invariant. */
    if (bandwidth->span_count > TIDE_BANDWIDTH_SPANS_MAX)
        return false;
    for (unsigned i = 0; i < bandwidth->span_count; i++)
        if (!span_is_valid(&bandwidth->spans[i]))
            return false;
    for (int i = 0; i < 3; i++) {
        const struct tide_bandwidth_bucket *bucket = &bandwidth->buckets[i];
        if (bucket->bytes_per_s > 0 &&
            (bucket->tokens < 0 || bucket->tokens > burst(bucket->bytes_per_s)))
            return false;
    }
    return true;
    /* GCOVR_EXCL_BR_STOP */
}
