/* Goal: one block, one probe, and no call sent before a block ends it.
 * Method: examples, then random calls against a model that knows each call. */
#include "core/governor/breaker.h"
#include "support/scale.h"
#include "support/test.h"

static const struct tide_breaker_rules defaults = {0};

static void fail_times(tide_breaker *breaker, uint64_t now_ms, int times, tide_rng *rng)
{
    for (int i = 0; i < times; i++) {
        tide_breaker_sent(breaker, now_ms);
        tide_breaker_failed(breaker, now_ms, now_ms, TIDE_SERVER, rng);
    }
}

TEST(failures_in_a_row_open_it_and_a_success_in_between_does_not)
{
    tide_rng rng = tide_rng_seeded(1);
    tide_breaker breaker;
    tide_breaker_init(&breaker, &defaults);
    for (int round = 0; round < 3; round++) {
        fail_times(&breaker, 100, 4, &rng);
        tide_breaker_sent(&breaker, 100);
        tide_breaker_succeeded(&breaker, 100);
    }
    assert_int_equal(tide_breaker_state(&breaker, 100), TIDE_BREAKER_CLOSED);
    fail_times(&breaker, 100, 5, &rng);
    assert_int_equal(tide_breaker_state(&breaker, 100), TIDE_BREAKER_OPEN);
    assert_in_range(breaker.until_ms, 100 + 501, 100 + 1001);
    assert_int_equal(tide_breaker_allows_at_ms(&breaker, 100), breaker.until_ms);
    assert_true(tide_breaker_check(&breaker));
}

/* E6.1: what always fails is distinguished from a provider that fails. */
TEST(a_subject_is_at_fault_once_others_succeed)
{
    tide_breaker breaker;
    tide_breaker_init(&breaker, &defaults);
    assert_false(tide_breaker_subject_failed(&breaker, 7)); /* it may be the provider */
    assert_false(tide_breaker_subject_failed(&breaker, 7));
    tide_breaker_subject_succeeded(&breaker, 8);
    assert_true(tide_breaker_subject_failed(&breaker, 7));
    assert_true(tide_breaker_subject_failed(&breaker, 7));
    assert_false(tide_breaker_subject_failed(&breaker, 9)); /* new, and nothing succeeded since */
    assert_false(tide_breaker_subject_failed(&breaker, 0)); /* its subject is unknown */
    tide_breaker_subject_succeeded(&breaker, 7);
    assert_false(tide_breaker_subject_failed(&breaker, 7)); /* the slate is clean */
    for (uint64_t subject = 1000; subject < 1000 + 2 * TIDE_BREAKER_SUBJECTS; subject++)
        assert_false(tide_breaker_subject_failed(&breaker, subject));
    tide_breaker_subject_succeeded(&breaker, 1);
    assert_true(tide_breaker_subject_failed(&breaker, 1000 + 2 * TIDE_BREAKER_SUBJECTS - 1));
    assert_false(tide_breaker_subject_failed(&breaker, 1000)); /* forgotten: it counts again */
}

TEST(one_probe_at_a_time_and_each_failed_one_doubles_the_pause)
{
    tide_rng rng = tide_rng_seeded(1);
    tide_breaker breaker;
    tide_breaker_init(&breaker, &defaults);
    uint64_t now_ms = 1000;
    fail_times(&breaker, now_ms, 5, &rng);
    uint64_t pause_max_ms = 1000;
    for (int trip = 0; trip < 12; trip++) {
        assert_in_range(breaker.until_ms - now_ms, pause_max_ms / 2, pause_max_ms + 1);
        now_ms = breaker.until_ms;
        assert_int_equal(tide_breaker_state(&breaker, now_ms), TIDE_BREAKER_HALF_OPEN);
        assert_int_equal(tide_breaker_allows_at_ms(&breaker, now_ms), now_ms);
        tide_breaker_sent(&breaker, now_ms);
        assert_true(tide_breaker_allows_at_ms(&breaker, now_ms) == UINT64_MAX);
        now_ms += 10;
        tide_breaker_failed(&breaker, now_ms, now_ms - 10, TIDE_SERVER, &rng);
        pause_max_ms = pause_max_ms * 2 < 300000 ? pause_max_ms * 2 : 300000;
    }
    now_ms = breaker.until_ms;
    tide_breaker_sent(&breaker, now_ms);
    tide_breaker_unsent(&breaker); /* the probe was never sent: another may go */
    tide_breaker_sent(&breaker, now_ms);
    tide_breaker_unknown(&breaker, now_ms); /* canceled: neither proof nor failure */
    assert_int_equal(tide_breaker_state(&breaker, now_ms), TIDE_BREAKER_HALF_OPEN);
    tide_breaker_sent(&breaker, now_ms);
    tide_breaker_succeeded(&breaker, now_ms);
    assert_int_equal(tide_breaker_state(&breaker, now_ms), TIDE_BREAKER_CLOSED);
    assert_true(tide_breaker_check(&breaker));
}

TEST(calls_sent_before_it_opened_do_not_close_it_but_may_name_a_later_time)
{
    tide_rng rng = tide_rng_seeded(1);
    tide_breaker breaker;
    tide_breaker_init(&breaker, &defaults);
    for (int i = 0; i < 4; i++)
        tide_breaker_sent(&breaker, 1000);
    tide_breaker_refused(&breaker, 1200, 1000, 5000, TIDE_THROTTLED, &rng);
    assert_int_equal(breaker.until_ms, 5000);
    tide_breaker_succeeded(&breaker, 1000);
    assert_int_equal(tide_breaker_state(&breaker, 1300), TIDE_BREAKER_OPEN);
    tide_breaker_refused(&breaker, 1300, 1000, 4000, TIDE_THROTTLED, &rng);
    assert_int_equal(breaker.until_ms, 5000);
    tide_breaker_refused(&breaker, 1400, 1000, 9000, TIDE_THROTTLED, &rng);
    assert_int_equal(breaker.until_ms, 9000);
    assert_int_equal(breaker.calls, 0);
    tide_breaker_close(&breaker);
    assert_int_equal(tide_breaker_state(&breaker, 1400), TIDE_BREAKER_CLOSED);
}

TEST(a_wrong_idea_of_when_it_was_sent_cannot_lose_the_probe)
{
    tide_rng rng = tide_rng_seeded(1);
    tide_breaker breaker;
    tide_breaker_init(&breaker, &defaults);
    tide_breaker_sent(&breaker, 1000);
    tide_breaker_refused(&breaker, 1200, 1000, 2000, TIDE_THROTTLED, &rng);
    tide_breaker_sent(&breaker, 2000);
    tide_breaker_succeeded(&breaker, 0); /* "sent" long before */
    assert_int_equal(tide_breaker_state(&breaker, 2100), TIDE_BREAKER_CLOSED);
}

TEST(a_call_that_left_before_it_opened_is_old_whatever_its_sender_says)
{
    tide_rng rng = tide_rng_seeded(1);
    tide_breaker breaker;
    tide_breaker_init(&breaker, &defaults);
    tide_breaker_sent(&breaker, 1000);
    tide_breaker_sent(&breaker, 1000);
    tide_breaker_refused(&breaker, 1200, 1000, 5000, TIDE_THROTTLED, &rng);
    tide_breaker_succeeded(&breaker, 1300); /* no other call is out */
    assert_int_equal(tide_breaker_state(&breaker, 1300), TIDE_BREAKER_OPEN);
    assert_true(tide_breaker_check(&breaker));
}

TEST(it_opens_for_a_moment_even_until_a_time_that_has_passed)
{
    tide_breaker breaker;
    tide_breaker_init(&breaker, &defaults);
    tide_breaker_open(&breaker, 1000, 900, TIDE_NETWORK);
    assert_int_equal(tide_breaker_state(&breaker, 1000), TIDE_BREAKER_OPEN);
    assert_int_equal(tide_breaker_state(&breaker, 1001), TIDE_BREAKER_HALF_OPEN);
}

/* The model: every call that is out, and whether it left before the last opening. */
struct model_call {
    uint64_t sent_ms;
    bool old;
};

static void random_walk(uint64_t seed, uint64_t steps)
{
    enum { CALLS_MAX = 20 };
    struct model_call calls[CALLS_MAX];
    unsigned count = 0;
    tide_rng rng = tide_rng_seeded(seed);
    tide_breaker breaker;
    tide_breaker_init(&breaker, &(struct tide_breaker_rules){.failures_max = 3});
    uint64_t now_ms = 1;

    for (uint64_t step = 0; step < steps; step++) {
        now_ms += 1 + tide_rng_below(&rng, 300);
        const enum tide_breaker_state before = tide_breaker_state(&breaker, now_ms);
        if (count < CALLS_MAX && tide_breaker_allows_at_ms(&breaker, now_ms) == now_ms &&
            tide_rng_chance(&rng, 1, 2)) {
            assert_int_not_equal(before, TIDE_BREAKER_OPEN);
            tide_breaker_sent(&breaker, now_ms);
            calls[count++] = (struct model_call){now_ms, false};
        } else if (count > 0) {
            const unsigned i = (unsigned)tide_rng_below(&rng, count);
            const struct model_call call = calls[i];
            calls[i] = calls[--count];
            const uint64_t trips = breaker.trips_total;
            switch (tide_rng_below(&rng, 8)) {
            case 0:
            case 1:
                tide_breaker_failed(&breaker, now_ms, call.sent_ms, TIDE_SERVER, &rng);
                if (call.old)
                    assert_int_equal(breaker.trips_total, trips);
                else if (before != TIDE_BREAKER_CLOSED) /* the probe */
                    assert_int_equal(breaker.trips_total, trips + 1);
                else
                    assert_in_range(breaker.trips_total, trips, trips + 1);
                break;
            case 2:
                tide_breaker_refused(&breaker, now_ms, call.sent_ms, 0, TIDE_THROTTLED, &rng);
                assert_int_equal(breaker.trips_total, call.old ? trips : trips + 1);
                break;
            case 3:
                tide_breaker_unknown(&breaker, call.sent_ms);
                assert_int_equal(breaker.trips_total, trips);
                break;
            default:
                tide_breaker_succeeded(&breaker, call.sent_ms);
                if (!call.old)
                    assert_int_equal(tide_breaker_state(&breaker, now_ms), TIDE_BREAKER_CLOSED);
                else
                    assert_int_equal(tide_breaker_state(&breaker, now_ms), before);
            }
            if (breaker.trips_total != trips)
                for (unsigned k = 0; k < count; k++)
                    calls[k].old = true;
        }
        assert_int_equal(breaker.calls, count);
        if (!tide_breaker_check(&breaker))
            fail_msg("seed %llu step %llu", (unsigned long long)seed, (unsigned long long)step);
    }
}

TEST(random_calls_agree_with_a_model_that_knows_each_one)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        random_walk(seed, scaled(100000));
}
