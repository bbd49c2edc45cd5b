/* Goal: the table of E7.1 and E7.2.  Method: examples, then every combination
 * of ending, status, attempts and size against the rules RTY1 to RTY5. */
#include "core/retry.h"
#include "base/check.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

enum { NOW = 1000000 };

static struct tide_verdict decide(struct tide_ended ended)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    tide_rng rng = tide_rng_seeded(7);
    return tide_retry_decide(&policy, &ended, NOW, &rng);
}

static struct tide_verdict returned(tide_status status, uint32_t attempts, uint32_t items)
{
    return decide((struct tide_ended){.status = status, .attempts = attempts, .items = items});
}

TEST(server_errors_are_retried_until_the_budget_is_spent)
{
    for (uint32_t before = 0; before < 4; before++) {
        struct tide_verdict verdict = returned(TIDE_SERVER, before, 1);
        assert_int_equal(verdict.kind, TIDE_VERDICT_RETRY);
        assert_int_equal(verdict.attempts, before + 1);
        uint64_t pause_ms = 1000u << before;
        assert_in_range(verdict.at_ms, NOW + pause_ms / 2, NOW + pause_ms);
    }
    assert_int_equal(returned(TIDE_SERVER, 4, 1).kind, TIDE_VERDICT_FAIL);
    assert_int_equal(returned(TIDE_SERVER, 4, 0).kind, TIDE_VERDICT_FAIL);
    /* A batch makes its fifth attempt in halves. */
    assert_int_equal(returned(TIDE_SERVER, 2, 2).kind, TIDE_VERDICT_RETRY);
    assert_int_equal(returned(TIDE_SERVER, 3, 2).kind, TIDE_VERDICT_SPLIT);
    assert_int_equal(returned(TIDE_SERVER, 3, 2).attempts, 4);
    assert_int_equal(returned(TIDE_SERVER, 9, 2).kind, TIDE_VERDICT_SPLIT);
    /* A kind may have its own budget. */
    assert_int_equal(decide((struct tide_ended){.status = TIDE_SERVER, .attempts_max = 1}).kind,
                     TIDE_VERDICT_FAIL);
    assert_int_equal(
        decide((struct tide_ended){.status = TIDE_SERVER, .attempts = 8, .attempts_max = 10}).kind,
        TIDE_VERDICT_RETRY);
}

TEST(causes_outside_the_job_block_the_account_and_cost_nothing)
{
    const tide_status statuses[] = {TIDE_THROTTLED, TIDE_AUTH, TIDE_NETWORK, TIDE_DISK_FULL};
    const tide_class causes[] = {TIDE_CLASS_THROTTLED, TIDE_CLASS_AUTH, TIDE_CLASS_NETWORK,
                                 TIDE_CLASS_DISK};
    for (size_t i = 0; i < 4; i++) {
        struct tide_verdict verdict = returned(statuses[i], 4, 1);
        assert_int_equal(verdict.kind, TIDE_VERDICT_BLOCK);
        assert_int_equal(verdict.cause, causes[i]);
        assert_int_equal(verdict.attempts, 4);
        assert_int_equal(verdict.at_ms, 0); /* until a probe succeeds */
    }
    struct tide_verdict named =
        decide((struct tide_ended){.status = TIDE_THROTTLED, .again_at_ms = NOW + 900000});
    assert_int_equal(named.kind, TIDE_VERDICT_BLOCK);
    assert_int_equal(named.at_ms, NOW + 900000);
    named = decide((struct tide_ended){.status = TIDE_AGAIN, .again_at_ms = NOW + 12});
    assert_int_equal(named.kind, TIDE_VERDICT_PUT_BACK);
    assert_int_equal(named.at_ms, NOW + 12);
}

TEST(cancellation_costs_nothing_and_only_the_user_ends_a_job)
{
    const enum tide_ending endings[] = {TIDE_ENDED_PREEMPTED, TIDE_ENDED_HALTED,
                                        TIDE_ENDED_SHUTDOWN};
    for (size_t i = 0; i < 3; i++) {
        struct tide_ended ended = {
            .ending = endings[i], .status = TIDE_CANCELED, .attempts = 4, .items = 9};
        assert_int_equal(decide(ended).kind, TIDE_VERDICT_PUT_BACK);
        assert_int_equal(decide(ended).attempts, 4);
        ended.status = TIDE_TIMEOUT; /* an echo of the cancel */
        assert_int_equal(decide(ended).kind, TIDE_VERDICT_PUT_BACK);
        ended.status = TIDE_OK; /* it was faster */
        assert_int_equal(decide(ended).kind, TIDE_VERDICT_DONE);
    }
    struct tide_ended by_user = {.ending = TIDE_ENDED_BY_USER, .status = TIDE_CANCELED};
    assert_int_equal(decide(by_user).kind, TIDE_VERDICT_CANCEL);
    by_user.status = TIDE_OK;
    assert_int_equal(decide(by_user).kind, TIDE_VERDICT_DONE);
    assert_int_equal(returned(TIDE_STALE, 4, 1).kind, TIDE_VERDICT_PUT_BACK);
    assert_int_equal(returned(TIDE_STOPPED, 4, 1).kind, TIDE_VERDICT_PUT_BACK);
}

TEST(a_reclaim_costs_one_attempt_and_starts_at_once)
{
    struct tide_ended ended = {.ending = TIDE_ENDED_RECLAIMED, .attempts = 0, .items = 50};
    assert_int_equal(decide(ended).kind, TIDE_VERDICT_RETRY);
    assert_int_equal(decide(ended).attempts, 1);
    assert_int_equal(decide(ended).at_ms, NOW);
    ended.attempts = 4; /* a job that kills its worker does not do so forever */
    assert_int_equal(decide(ended).kind, TIDE_VERDICT_SPLIT);
    ended.items = 1;
    assert_int_equal(decide(ended).kind, TIDE_VERDICT_FAIL);
    ended.attempts = UINT32_MAX; /* the count ends there, and does not start over */
    assert_int_equal(decide(ended).attempts, UINT32_MAX);
}

TEST(a_stalled_job_is_tried_again_and_then_split)
{
    struct tide_ended ended = {.ending = TIDE_ENDED_STALLED, .attempts = 1, .items = 50};
    assert_int_equal(decide(ended).kind, TIDE_VERDICT_RETRY);
    assert_int_equal(decide(ended).attempts, 2);
    ended.attempts = 4;
    assert_int_equal(decide(ended).kind, TIDE_VERDICT_SPLIT);
}

TEST(permanent_errors_end_at_once_and_vanished_items_are_not_failures)
{
    assert_int_equal(returned(TIDE_PERMANENT, 0, 1).kind, TIDE_VERDICT_FAIL);
    assert_int_equal(returned(TIDE_PERMANENT, 0, 7).kind, TIDE_VERDICT_SPLIT);
    assert_int_equal(returned(TIDE_BUG, 0, 1).kind, TIDE_VERDICT_FAIL);
    assert_int_equal(returned(TIDE_GONE, 0, 1).kind, TIDE_VERDICT_VANISHED);
    assert_int_equal(returned(TIDE_SUPERSEDED, 0, 1).kind, TIDE_VERDICT_VANISHED);
}

TEST(pauses_double_up_to_their_cap_and_are_spread)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    for (uint32_t attempts = 1; attempts < 80; attempts++) {
        uint64_t pause_ms = attempts > 9 ? 300000 : (uint64_t)1000 << (attempts - 1);
        uint64_t low_ms = UINT64_MAX, high_ms = 0;
        for (uint64_t seed = 0; seed < 2000; seed++) {
            tide_rng rng = tide_rng_seeded(seed);
            uint64_t got_ms = tide_retry_pause_ms(&policy, attempts, &rng);
            assert_in_range(got_ms, pause_ms / 2, pause_ms);
            low_ms = got_ms < low_ms ? got_ms : low_ms;
            high_ms = got_ms > high_ms ? got_ms : high_ms;
        }
        assert_true(high_ms - low_ms > pause_ms * 2 / 5);
    }
    tide_rng rng = tide_rng_seeded(1);
    assert_int_equal(tide_retry_pause_ms(&policy, 0, &rng), 0);
    policy.pause_first_ms = policy.pause_max_ms + 1; /* refused as a setting, and capped here */
    assert_in_range(tide_retry_pause_ms(&policy, 1, &rng), 150000, 300000);
    policy.pause_first_ms = UINT64_MAX / 2 + 9;
    policy.pause_max_ms = UINT64_MAX - 1;
    assert_true(tide_retry_pause_ms(&policy, UINT32_MAX, &rng) >= UINT64_MAX / 2 - 1);
    struct tide_ended ended = {.status = TIDE_SERVER, .attempts = 2};
    assert_true(tide_retry_decide(&policy, &ended, UINT64_MAX - 3, &rng).at_ms >= UINT64_MAX - 3);
}

TEST(senseless_policies_are_refused)
{
    tide_error err;
    struct tide_retry_policy policy = tide_retry_defaults();
    OK(tide_retry_check(&policy, &err));
    policy.attempts_max = 0;
    assert_int_equal(tide_retry_check(&policy, &err), TIDE_INVALID);
    policy = tide_retry_defaults();
    policy.pause_first_ms = policy.pause_max_ms + 1;
    assert_int_equal(tide_retry_check(&policy, &err), TIDE_INVALID);
    policy = tide_retry_defaults();
    policy.reclaim_attempts = 2;
    assert_int_equal(tide_retry_check(&policy, &err), TIDE_INVALID);
    policy = tide_retry_defaults();
    policy.halves_attempts = 5;
    assert_int_equal(tide_retry_check(&policy, &err), TIDE_INVALID);
}

/* RTY1 said in the words of the spec, apart from the code under test. */
static bool model_charges(const struct tide_ended *ended)
{
    if (ended->ending == TIDE_ENDED_STALLED || ended->ending == TIDE_ENDED_RECLAIMED)
        return true;
    if (ended->ending != TIDE_ENDED_RETURNED)
        return false;
    switch ((int)ended->status) {
    case TIDE_OK:
    case TIDE_THROTTLED:
    case TIDE_AGAIN:
    case TIDE_NETWORK:
    case TIDE_AUTH:
    case TIDE_DISK_FULL:
    case TIDE_CANCELED:
    case TIDE_STOPPED:
    case TIDE_STALE:
    case TIDE_GONE:
    case TIDE_SUPERSEDED:
        return false;
    default:
        return true;
    }
}

static void compare(const struct tide_ended *ended, uint64_t now_ms, tide_rng *rng)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    struct tide_verdict verdict = tide_retry_decide(&policy, ended, now_ms, rng);
    bool charged = model_charges(ended);
    assert_int_equal(verdict.attempts, ended->attempts + charged); /* RTY1, RTY2 */
    bool status_counts =
        ended->ending != TIDE_ENDED_STALLED && ended->ending != TIDE_ENDED_RECLAIMED;
    if (ended->status == TIDE_OK && status_counts) /* RTY5 */
        assert_int_equal(verdict.kind, TIDE_VERDICT_DONE);
    else
        assert_int_not_equal(verdict.kind, TIDE_VERDICT_DONE);
    if (status_counts && ended->ending == TIDE_ENDED_RETURNED) {
        assert_int_equal(tide_retry_costs_attempt(ended->status), charged);
        assert_int_equal(tide_retry_blocks_account(ended->status),
                         verdict.kind == TIDE_VERDICT_BLOCK);
    }
    if (charged && verdict.attempts >= (ended->items > 1 ? 4 : 5)) /* RTY4 */
        assert_int_equal(verdict.kind, ended->items > 1 ? TIDE_VERDICT_SPLIT : TIDE_VERDICT_FAIL);
    if (verdict.kind == TIDE_VERDICT_RETRY) { /* RTY3 */
        assert_true(charged);
        assert_true(verdict.attempts < (ended->items > 1 ? 4 : 5));
        uint64_t pause_ms = (uint64_t)1000 << (verdict.attempts - 1);
        uint64_t floor_ms = ended->again_at_ms > now_ms ? ended->again_at_ms : now_ms;
        assert_true(verdict.at_ms >= floor_ms);
        assert_true(verdict.at_ms <= now_ms + pause_ms || verdict.at_ms == floor_ms);
    }
    if (verdict.kind == TIDE_VERDICT_PUT_BACK)
        assert_true(verdict.at_ms >= now_ms);
}

TEST(every_ending_follows_the_rules)
{
    tide_rng rng = tide_rng_seeded(11);
    for (int ending = TIDE_ENDED_RETURNED; ending <= TIDE_ENDED_RECLAIMED; ending++)
        for (int status = TIDE_BUG; status <= TIDE_OK; status++)
            for (uint32_t attempts = 0; attempts < 8; attempts++)
                for (uint32_t items = 0; items < 4; items++) {
                    struct tide_ended ended = {.ending = (enum tide_ending)ending,
                                               .status = (tide_status)status,
                                               .attempts = attempts,
                                               .items = items};
                    compare(&ended, NOW, &rng);
                    ended.again_at_ms = NOW + 77;
                    compare(&ended, NOW, &rng);
                    ended.again_at_ms = NOW - 77;
                    compare(&ended, NOW, &rng);
                }
}

TEST(random_endings_follow_the_rules)
{
    tide_rng rng = tide_rng_seeded(12);
    uint64_t rounds = scaled(2000000);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t now_ms = tide_rng_below(&rng, 1u << 30);
        struct tide_ended ended = {
            .ending = (enum tide_ending)tide_rng_below(&rng, TIDE_ENDED_RECLAIMED + 1),
            .status = (tide_status)(-(int)tide_rng_below(&rng, 1 - TIDE_BUG)),
            .attempts = (uint32_t)tide_rng_below(&rng, 12),
            .items = (uint32_t)tide_rng_below(&rng, 100),
            .again_at_ms = tide_rng_chance(&rng, 1, 2) ? tide_rng_below(&rng, 1u << 30) : 0,
        };
        compare(&ended, now_ms, &rng);
    }
}

TEST(pauses_grow_by_the_factor_that_was_set)
{
    struct tide_retry_policy policy = tide_retry_defaults();
    tide_rng rng = tide_rng_seeded(3);
    policy.pause_factor_permille = 1500;
    static const uint64_t expected_ms[] = {1000, 1500, 2250, 3375, 5062};
    for (uint32_t i = 0; i < 5; i++)
        assert_in_range(tide_retry_pause_ms(&policy, i + 1, &rng), expected_ms[i] / 2,
                        expected_ms[i]);
    policy.pause_factor_permille = 1000; /* and it never grows: a billion attempts are no loop */
    assert_in_range(tide_retry_pause_ms(&policy, 1000000000, &rng), 500, 1000);
    assert_int_equal(tide_retry_longer_ms(UINT64_MAX / 2, 3000, UINT64_MAX - 5), UINT64_MAX - 5);
    assert_int_equal(tide_retry_longer_ms(UINT64_MAX / 2, 2000, UINT64_MAX), UINT64_MAX - 1);
    tide_error err;
    policy.pause_factor_permille = 999;
    assert_int_equal(tide_retry_check(&policy, &err), TIDE_INVALID);
}
