#include "core/splitter.h"
#include "base/check.h"
#include "base/limits.h"

#include <string.h>

/* The result of the items, before the rest of the batch is decided. */
struct tally {
    uint32_t left;           /* still in the batch */
    tide_class outside;      /* a cause outside the items that one of them hit, or OK */
    tide_status outside_why; /* its status */
};

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Timeouts, and connections that died after sending, are stalls and resets: they make an item
 * owed, never bad (E6.2). */
static enum tide_fate fate_over_budget(tide_status status)
{
    return status == TIDE_TIMEOUT || status == TIDE_UNKNOWN ? TIDE_FATE_OWED : TIDE_FATE_BAD;
}

static struct tide_item_fate fate_make(enum tide_fate fate, tide_status reason)
{
    return (struct tide_item_fate){.fate = fate, .reason = reason};
}

static struct tide_item_fate fate_of_error(const struct tide_retry_policy *policy,
                                           const struct tide_split_input *input, tide_status status)
{
    switch (tide_status_class(status)) {
    case TIDE_CLASS_GONE:
        return fate_make(TIDE_FATE_GONE, status);
    case TIDE_CLASS_PERMANENT:
        return fate_make(TIDE_FATE_BAD, status);
    case TIDE_CLASS_RETRY:
    case TIDE_CLASS_BUG:
        if (input->count > 1)
            return fate_make(TIDE_FATE_ALONE, status);
        if (input->attempts + 1 >= tide_retry_budget(policy, input->attempts_max, 1))
            return fate_make(fate_over_budget(status), status);
        return fate_make(TIDE_FATE_FIRST, TIDE_OK);
    case TIDE_CLASS_OK:
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_DISK:
    case TIDE_CLASS_CANCELED:
        break; /* not the item's fault: it stays */
    }
    return fate_make(TIDE_FATE_FIRST, TIDE_OK);
}

static struct tally fates_fill(const struct tide_retry_policy *policy,
                               const struct tide_split_input *input, struct tide_item_fate *fates)
{
    struct tally tally = {.outside = TIDE_CLASS_OK, .outside_why = TIDE_OK};
    for (uint32_t i = 0; i < input->count; i++) {
        const struct tide_split_item *item = &input->items[i];
        if (item->seen == TIDE_SEEN_STORED) {
            fates[i] = fate_make(TIDE_FATE_STORED, TIDE_OK);
            continue;
        }
        fates[i] = fate_make(TIDE_FATE_FIRST, TIDE_OK);
        if (item->seen == TIDE_SEEN_ERROR) {
            fates[i] = fate_of_error(policy, input, item->status);
            if (fates[i].fate == TIDE_FATE_FIRST && !tide_retry_costs_attempt(item->status)) {
                tally.outside = tide_status_class(item->status);
                tally.outside_why = item->status;
            }
        }
        tally.left += fates[i].fate == TIDE_FATE_FIRST;
    }
    return tally;
}

/* If a request with a single item fails as a whole, that item is at fault. */
static void fate_of_single(const struct tide_retry_policy *policy,
                           const struct tide_split_input *input, struct tide_item_fate *fate,
                           struct tally *tally)
{
    if (input->count != 1 || fate->fate != TIDE_FATE_FIRST || input->batch_status == TIDE_OK)
        return;
    *fate = fate_of_error(policy, input, input->batch_status);
    tally->left = fate->fate == TIDE_FATE_FIRST;
}

/* The last items of the rest become the second half; the first half is the larger one if they
 * cannot be equal (SPT4). */
static void halves_make(const struct tide_split_input *input, uint32_t left,
                        struct tide_item_fate *fates)
{
    uint32_t first = left - left / 2;
    for (uint32_t i = 0; i < input->count; i++)
        if (fates[i].fate == TIDE_FATE_FIRST) {
            if (first == 0)
                fates[i].fate = TIDE_FATE_SECOND;
            else
                first--;
        }
}

/* The rest was stopped by an outside cause: it costs no attempt (E7.2). */
static void rest_put_back(const struct tide_split_input *input, tide_status why, uint64_t now_ms,
                          struct tide_split_plan *plan)
{
    bool blocks = tide_retry_blocks_account(why);
    plan->rest = TIDE_REST_PUT_BACK;
    plan->attempts = input->attempts;
    plan->cause = blocks ? tide_status_class(why) : TIDE_CLASS_OK;
    plan->at_ms = blocks ? 0 : now_ms;
    if (input->again_at_ms > 0)
        plan->at_ms = input->again_at_ms > now_ms ? input->again_at_ms : now_ms;
}

static void rest_charge(const struct tide_retry_policy *policy,
                        const struct tide_split_input *input, const struct tally *tally,
                        uint64_t now_ms, tide_rng *rng, struct tide_item_fate *fates,
                        struct tide_split_plan *plan)
{
    tide_class class = tide_status_class(input->batch_status);
    /* The answer is final; do not send the same request again. */
    bool final = class == TIDE_CLASS_PERMANENT || class == TIDE_CLASS_GONE;
    plan->attempts = input->attempts + 1;
    plan->at_ms = now_ms;
    if (!final)
        plan->at_ms = add_saturated(now_ms, tide_retry_pause_ms(policy, plan->attempts, rng));
    if (plan->at_ms < input->again_at_ms)
        plan->at_ms = input->again_at_ms;
    plan->rest = TIDE_REST_RETRY;
    bool over = plan->attempts >= tide_retry_budget(policy, input->attempts_max, tally->left);
    if (tally->left > 1 && (final || over)) {
        TIDE_SEEN("splitter: batch split in two");
        plan->rest = TIDE_REST_SPLIT;
        halves_make(input, tally->left, fates);
    }
}

static void rest_decide(const struct tide_retry_policy *policy,
                        const struct tide_split_input *input, const struct tally *tally,
                        uint64_t now_ms, tide_rng *rng, struct tide_item_fate *fates,
                        struct tide_split_plan *plan)
{
    tide_class class = tide_status_class(input->batch_status);
    if (tally->left == 0) {
        plan->rest = TIDE_REST_NONE;
        plan->attempts = input->attempts;
    } else if (tide_retry_costs_attempt(input->batch_status) || class == TIDE_CLASS_GONE) {
        rest_charge(policy, input, tally, now_ms, rng, fates, plan);
    } else if (class != TIDE_CLASS_OK) {
        rest_put_back(input, input->batch_status, now_ms, plan);
    } else if (tally->outside != TIDE_CLASS_OK) {
        rest_put_back(input, tally->outside_why, now_ms, plan);
    } else if (tally->left < input->count) {
        /* The handler stopped half-way after storing some items. */
        plan->rest = TIDE_REST_RETRY;
        plan->attempts = input->attempts;
        plan->at_ms = now_ms;
    } else {
        /* The handler reported success without storing anything, or an error named the single
         * item: either way the attempt is charged (SPT5). */
        rest_charge(policy, input, tally, now_ms, rng, fates, plan);
    }
}

/* SPT2 */
static uint32_t alone_attempts(const struct tide_split_input *input)
{
    return input->count > 1 ? 1 : input->attempts + 1;
}

tide_status tide_splitter_plan(const struct tide_retry_policy *policy,
                               const struct tide_split_input *input, uint64_t now_ms, tide_rng *rng,
                               struct tide_item_fate *fates_out, struct tide_split_plan *plan_out)
{
    TIDE_ASSERT(fates_out != NULL);
    TIDE_ASSERT(plan_out != NULL);
    if (input->count == 0 || input->count > TIDE_ITEMS_MAX || input->attempts == UINT32_MAX)
        return TIDE_INVALID;
    for (uint32_t i = 0; i < input->count; i++)
        if (input->items[i].seen == TIDE_SEEN_ERROR && input->items[i].status == TIDE_OK)
            return TIDE_INVALID;

    struct tide_split_plan plan = {.cause = TIDE_CLASS_OK};
    struct tally tally = fates_fill(policy, input, fates_out);
    fate_of_single(policy, input, &fates_out[0], &tally);
    rest_decide(policy, input, &tally, now_ms, rng, fates_out, &plan);
    plan.alone_attempts = alone_attempts(input);
    plan.alone_at_ms = add_saturated(now_ms, tide_retry_pause_ms(policy, plan.alone_attempts, rng));
    for (uint32_t i = 0; i < input->count; i++)
        plan.counts[fates_out[i].fate]++;
    *plan_out = plan;
    return TIDE_OK;
}

static void check_item(const struct tide_split_input *input, uint32_t at,
                       const struct tide_item_fate *fate)
{
    TIDE_ASSERT(fate->fate < TIDE_FATES); /* SPT1 */
    TIDE_ASSERT((fate->fate == TIDE_FATE_STORED) == (input->items[at].seen == TIDE_SEEN_STORED));
    if (fate->fate == TIDE_FATE_BAD || fate->fate == TIDE_FATE_OWED) { /* SPT3 */
        bool permanent = input->items[at].seen == TIDE_SEEN_ERROR &&
                         tide_status_class(input->items[at].status) == TIDE_CLASS_PERMANENT;
        TIDE_ASSERT(input->count == 1 || permanent);
        TIDE_ASSERT(tide_retry_costs_attempt(fate->reason));
    }
    if (fate->fate == TIDE_FATE_ALONE)
        TIDE_ASSERT(input->count > 1);
}

void tide_splitter_check(const struct tide_split_input *input, const struct tide_item_fate *fates,
                         const struct tide_split_plan *plan)
{
    uint32_t counts[TIDE_FATES] = {0};
    for (uint32_t i = 0; i < input->count; i++) {
        check_item(input, i, &fates[i]);
        counts[fates[i].fate]++;
        if (fates[i].fate == TIDE_FATE_FIRST)
            TIDE_ASSERT(counts[TIDE_FATE_SECOND] == 0); /* SPT4 */
    }
    TIDE_ASSERT(memcmp(counts, plan->counts, sizeof counts) == 0); /* SPT1 */
    TIDE_ASSERT(plan->attempts - input->attempts <= 1);            /* SPT2 */
    TIDE_ASSERT(plan->alone_attempts == alone_attempts(input));
    uint32_t first = counts[TIDE_FATE_FIRST], second = counts[TIDE_FATE_SECOND];
    if (plan->rest == TIDE_REST_SPLIT) { /* SPT4 */
        TIDE_ASSERT(second > 0);
        TIDE_ASSERT(first - second <= 1);
    } else {
        TIDE_ASSERT(second == 0);
    }
    TIDE_ASSERT((plan->rest == TIDE_REST_NONE) == (first == 0));
    bool moves = first + second < input->count || plan->attempts > input->attempts;
    TIDE_ASSERT(moves || plan->rest == TIDE_REST_PUT_BACK); /* SPT5 */
}
