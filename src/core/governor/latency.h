/* latency.h - recent latency of one API method.
 *
 * A histogram with four steps to the octave, from 1 ms to 17 minutes, in two epochs:
 * the current one is filled, the previous one is kept, and quantiles look at both.  An
 * epoch ends when it is a minute old *and* holds 64 samples, so that a rare method
 * keeps its memory longer than a busy one.  Quantiles are within an eighth of the
 * truth, which is enough for decisions and display.
 *
 * It also remembers the best median an epoch ever had, because "slow" means slow for
 * this method (E4.2); that memory fades by 1 % per epoch, so that one lucky minute is
 * not the reference forever.
 *
 * Invariants (tide_latency_check()):
 *   LAT1  the count of an epoch is the sum of its steps.
 *   LAT2  quantiles do not decrease: p50 <= p95 <= p99.
 */
#ifndef TIDE_CORE_LATENCY_H
#define TIDE_CORE_LATENCY_H

#include <stdbool.h>
#include <stdint.h>

enum { TIDE_LATENCY_STEPS = 80 };

struct tide_latency_epoch {
    uint32_t count;
    uint32_t steps[TIDE_LATENCY_STEPS];
};

typedef struct tide_latency {
    struct tide_latency_epoch now;
    struct tide_latency_epoch before;
    uint64_t since_ms;    /* start of the current epoch */
    uint64_t count_total; /* of all time */
    double best_p50_ms;   /* 0: no epoch ended yet */
} tide_latency;

void tide_latency_init(tide_latency *latency, uint64_t now_ms);
void tide_latency_add(tide_latency *latency, uint64_t now_ms, uint32_t latency_ms);
/* Number of samples behind the quantiles. */
uint32_t tide_latency_count(const tide_latency *latency);
/* The value that `permille` of the recent samples do not exceed, within an eighth; 0 without
 * samples. */
uint32_t tide_latency_quantile_ms(const tide_latency *latency, unsigned permille);
/* The best median of an epoch so far, or the current median before one ended. */
uint32_t tide_latency_best_p50_ms(const tide_latency *latency);
/* Drops the recent samples but not the best median: after a cut the method is judged by new
 * samples only. */
void tide_latency_forget(tide_latency *latency, uint64_t now_ms);
bool tide_latency_check(const tide_latency *latency);

#endif
