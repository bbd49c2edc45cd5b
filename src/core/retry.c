#include "core/retry.h"
#include "base/check.h"

#include <inttypes.h>

struct tide_retry_policy tide_retry_defaults(void)
{
    return (struct tide_retry_policy){
        .attempts_max = 5,
        .pause_first_ms = 1000,
        .pause_factor_permille = 2000,
        .pause_max_ms = 5 * 60 * 1000,
        .reclaim_attempts = 1,
        .halves_attempts = 1,
    };
}

tide_status tide_retry_check(const struct tide_retry_policy *policy, tide_error *err)
{
    if (policy->attempts_max == 0)
        return tide_error_set(err, TIDE_INVALID, "a job needs at least one attempt");
    if (policy->pause_first_ms == 0 || policy->pause_first_ms > policy->pause_max_ms)
        return tide_error_set(err, TIDE_INVALID,
                              "first pause %" PRIu64 " ms must lie in 1..%" PRIu64 " ms",
                              policy->pause_first_ms, policy->pause_max_ms);
    if (policy->pause_factor_permille < 1000)
        return tide_error_set(err, TIDE_INVALID, "pauses must not become shorter");
    if (policy->reclaim_attempts > 1) /* RTY2 */
        return tide_error_set(err, TIDE_INVALID, "a reclaim costs none or one attempt");
    if (policy->halves_attempts >= policy->attempts_max)
        return tide_error_set(err, TIDE_INVALID, "a batch keeps at least one attempt of its own");
    return TIDE_OK;
}

uint32_t tide_retry_budget(const struct tide_retry_policy *policy, uint32_t attempts_max,
                           uint32_t items)
{
    if (attempts_max == 0)
        attempts_max = policy->attempts_max;
    if (items <= 1)
        return attempts_max;
    return attempts_max > policy->halves_attempts ? attempts_max - policy->halves_attempts : 1;
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t tide_retry_longer_ms(uint64_t pause_ms, uint32_t factor_permille, uint64_t max_ms)
{
    /* In two parts, so that the product overflows only when the result does not fit 64 bits. */
    uint64_t longer_ms = 0;
    const uint64_t rest_ms = pause_ms % 1000 * factor_permille / 1000;
    if (__builtin_mul_overflow(pause_ms / 1000, (uint64_t)factor_permille, &longer_ms) ||
        __builtin_add_overflow(longer_ms, rest_ms, &longer_ms))
        return max_ms;
    return longer_ms < max_ms ? longer_ms : max_ms;
}

uint64_t tide_retry_pause_ms(const struct tide_retry_policy *policy, uint32_t attempts,
                             tide_rng *rng)
{
    if (attempts == 0)
        return 0;
    uint64_t pause_ms = policy->pause_first_ms;
    /* Stops as soon as the pause no longer grows, which bounds the loop. */
    for (uint32_t i = 1; i < attempts; i++) {
        const uint64_t longer_ms =
            tide_retry_longer_ms(pause_ms, policy->pause_factor_permille, policy->pause_max_ms);
        if (longer_ms <= pause_ms)
            break;
        pause_ms = longer_ms;
    }
    if (pause_ms > policy->pause_max_ms)
        pause_ms = policy->pause_max_ms;
    /* Half of it is random, so that a thousand jobs that failed together do not retry together. */
    uint64_t half_ms = pause_ms / 2;
    return half_ms + tide_rng_below(rng, pause_ms - half_ms + 1);
}

bool tide_retry_costs_attempt(tide_status status)
{
    switch (tide_status_class(status)) {
    case TIDE_CLASS_RETRY:
    case TIDE_CLASS_PERMANENT:
    case TIDE_CLASS_BUG:
        return true;
    case TIDE_CLASS_OK:
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_DISK:
    case TIDE_CLASS_CANCELED:
    case TIDE_CLASS_GONE:
        return false;
    }
    return true;
}

bool tide_retry_blocks_account(tide_status status)
{
    /* TIDE_AGAIN comes from our own quota, which the governor already knows. */
    if (status == TIDE_AGAIN)
        return false;
    tide_class class = tide_status_class(status);
    return class == TIDE_CLASS_THROTTLED || class == TIDE_CLASS_AUTH ||
           class == TIDE_CLASS_NETWORK || class == TIDE_CLASS_DISK;
}

static struct tide_verdict verdict_free(enum tide_verdict_kind kind, const struct tide_ended *ended,
                                        uint64_t at_ms)
{
    return (struct tide_verdict){
        .kind = kind, .cause = TIDE_CLASS_OK, .attempts = ended->attempts, .at_ms = at_ms};
}

/* RTY4: the budget is used up, or retrying the whole batch cannot help. */
static struct tide_verdict verdict_over(const struct tide_ended *ended, uint32_t attempts)
{
    return (struct tide_verdict){
        .kind = ended->items > 1 ? TIDE_VERDICT_SPLIT : TIDE_VERDICT_FAIL,
        .cause = TIDE_CLASS_OK,
        .attempts = attempts,
    };
}

static struct tide_verdict verdict_charged(const struct tide_retry_policy *policy,
                                           const struct tide_ended *ended, uint32_t charge,
                                           uint64_t now_ms, tide_rng *rng)
{
    uint32_t attempts = ended->attempts;
    attempts += attempts > UINT32_MAX - charge ? 0 : charge;
    if (attempts >= tide_retry_budget(policy, ended->attempts_max, ended->items)) {
        if (ended->ending == TIDE_ENDED_STALLED && ended->items > 1)
            TIDE_SEEN("retry: stalled job over its budget is split by force");
        return verdict_over(ended, attempts);
    }
    uint64_t at_ms = now_ms;
    if (ended->ending != TIDE_ENDED_RECLAIMED) /* RTY3 */
        at_ms = add_saturated(now_ms, tide_retry_pause_ms(policy, attempts, rng));
    if (at_ms < ended->again_at_ms)
        at_ms = ended->again_at_ms;
    return (struct tide_verdict){
        .kind = TIDE_VERDICT_RETRY, .cause = TIDE_CLASS_OK, .attempts = attempts, .at_ms = at_ms};
}

static struct tide_verdict verdict_of_status(const struct tide_retry_policy *policy,
                                             const struct tide_ended *ended, uint64_t now_ms,
                                             tide_rng *rng)
{
    const uint64_t again_at_ms = ended->again_at_ms > now_ms ? ended->again_at_ms : now_ms;
    switch (tide_status_class(ended->status)) {
    case TIDE_CLASS_OK:
        return verdict_free(TIDE_VERDICT_DONE, ended, 0);
    case TIDE_CLASS_RETRY:
        return verdict_charged(policy, ended, 1, now_ms, rng);
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_DISK: {
        if (!tide_retry_blocks_account(ended->status))
            return verdict_free(TIDE_VERDICT_PUT_BACK, ended, again_at_ms);
        struct tide_verdict verdict =
            verdict_free(TIDE_VERDICT_BLOCK, ended, ended->again_at_ms > 0 ? again_at_ms : 0);
        verdict.cause = tide_status_class(ended->status);
        return verdict;
    }
    case TIDE_CLASS_CANCELED:
        return verdict_free(TIDE_VERDICT_PUT_BACK, ended, now_ms);
    case TIDE_CLASS_GONE:
        return verdict_free(TIDE_VERDICT_VANISHED, ended, 0);
    case TIDE_CLASS_PERMANENT:
    case TIDE_CLASS_BUG:
        break;
    }
    return verdict_over(ended, ended->attempts + (ended->attempts < UINT32_MAX));
}

struct tide_verdict tide_retry_decide(const struct tide_retry_policy *policy,
                                      const struct tide_ended *ended, uint64_t now_ms,
                                      tide_rng *rng)
{
    TIDE_ASSERT(policy != NULL);
    TIDE_ASSERT(ended != NULL);
    switch (ended->ending) {
    case TIDE_ENDED_STALLED:
        return verdict_charged(policy, ended, 1, now_ms, rng);
    case TIDE_ENDED_RECLAIMED:
        return verdict_charged(policy, ended, policy->reclaim_attempts, now_ms, rng);
    case TIDE_ENDED_BY_USER:
        if (ended->status == TIDE_OK) /* RTY5 */
            return verdict_free(TIDE_VERDICT_DONE, ended, 0);
        return verdict_free(TIDE_VERDICT_CANCEL, ended, 0);
    case TIDE_ENDED_PREEMPTED:
    case TIDE_ENDED_HALTED:
    case TIDE_ENDED_SHUTDOWN:
        /* A canceled call may return anything (a timeout, a dead connection); only a status that
         * cannot be a result of the cancel counts. */
        if (ended->status != TIDE_OK && tide_status_class(ended->status) != TIDE_CLASS_GONE)
            return verdict_free(TIDE_VERDICT_PUT_BACK, ended, now_ms);
        break;
    case TIDE_ENDED_RETURNED:
        break;
    }
    return verdict_of_status(policy, ended, now_ms, rng);
}
