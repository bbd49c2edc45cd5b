/* Goal: items are blamed only when others succeed, and a broken account halts
 * instead of marking a mailbox bad.  Method: the examples of E6.2, then random
 * outcomes against a model that keeps everything it ever heard. */
#include "core/badness.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/test.h"

enum { NOW = 1000000, MINUTE = 60000 };

static tide_badness *badness_make(void)
{
    struct tide_badness_settings settings = tide_badness_defaults();
    tide_badness *badness = NULL;
    OK(tide_badness_new(&settings, tide_mem_heap(), &badness));
    return badness;
}

static struct tide_badness_verdict feed(tide_badness *badness, uint64_t item, tide_status status,
                                        uint32_t attempts, uint64_t now_ms)
{
    struct tide_badness_verdict verdict = tide_badness_item(
        badness, &(struct tide_item_outcome){.item = item, .status = status, .attempts = attempts},
        now_ms);
    tide_badness_check(badness);
    return verdict;
}

/* Enough items for a suspicion, none of which was there before. */
static void fail_twenty(tide_badness *badness, tide_status status)
{
    for (uint64_t item = 101; item <= 120; item++)
        assert_int_not_equal(feed(badness, item, status, 1, NOW).kind, TIDE_ITEM_BAD);
}

/* The next order, and that there is none. */
#define assert_order(badness, now_ms, kind_, item_)                                                \
    do {                                                                                           \
        struct tide_badness_order given;                                                           \
        assert_true(tide_badness_next(badness, now_ms, &given));                                   \
        assert_int_equal(given.kind, kind_);                                                       \
        assert_int_equal(given.item, item_);                                                       \
    } while (0)
#define assert_no_order(badness, now_ms)                                                           \
    assert_false(tide_badness_next(badness, now_ms, &(struct tide_badness_order){0}))

#define CASE(name) TEST_OF(name, tide_badness *badness, badness_make(), tide_badness_free)

CASE(the_same_error_on_every_attempt_while_others_succeed_is_bad)
{
    for (uint32_t attempt = 1; attempt < 5; attempt++) {
        struct tide_badness_verdict verdict = feed(badness, 7, TIDE_SERVER, attempt, NOW);
        assert_int_equal(verdict.kind, TIDE_ITEM_AGAIN);
        assert_int_equal(verdict.at_ms, NOW + (1000u << (attempt - 1)));
        assert_int_equal(feed(badness, 100 + attempt, TIDE_OK, 1, NOW).kind, TIDE_ITEM_GOOD);
    }
    struct tide_badness_verdict verdict = feed(badness, 7, TIDE_SERVER, 5, NOW);
    assert_int_equal(verdict.kind, TIDE_ITEM_BAD);
    assert_int_equal(verdict.failures, 5);
    assert_int_equal(tide_badness_view(badness).suspects, 0);
    assert_int_equal(feed(badness, 8, TIDE_PERMANENT, 1, NOW).kind, TIDE_ITEM_HELD);
}

/* M6a: a server that denies one message may deny all of them. */
CASE(an_item_has_vanished_only_if_another_one_is_there)
{
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 9, TIDE_GONE, 1, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 8, TIDE_GONE, 1, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(tide_badness_view(badness).failed_in_a_row, 0); /* it counts neither way */
    assert_order(badness, NOW, TIDE_BADNESS_PROBE, 1);
    assert_int_equal(feed(badness, 9, TIDE_GONE, 2, NOW).kind, TIDE_ITEM_HELD);
    tide_badness_probed(badness, TIDE_OK, NOW);
    assert_int_equal(feed(badness, 9, TIDE_GONE, 3, NOW).kind, TIDE_ITEM_VANISHED);
    assert_int_equal(feed(badness, 8, TIDE_OK, 2, NOW).kind,
                     TIDE_ITEM_GOOD); /* it exists after all */
    (void)feed(badness, 7, TIDE_GONE, 1, NOW);
    (void)feed(badness, 2, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 7, TIDE_GONE, 2, NOW).kind, TIDE_ITEM_VANISHED);
}

/* Everything is denied, what was stored too: named and asked for again, never called gone. */
CASE(what_cannot_be_proven_gone_is_owed)
{
    struct tide_badness_order order;
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    for (uint64_t item = 101; item <= 200; item++)
        assert_int_equal(feed(badness, item, TIDE_GONE, 1, NOW).kind, TIDE_ITEM_HELD);
    assert_true(tide_badness_next(badness, NOW, &order));
    tide_badness_probed(badness, TIDE_GONE, NOW);
    assert_order(badness, NOW, TIDE_BADNESS_PROBE, 0);
    tide_badness_probed(badness, TIDE_NOT_FOUND, NOW);
    assert_false(tide_badness_view(badness).halted);
    assert_int_equal(feed(badness, 101, TIDE_GONE, 5, NOW).kind, TIDE_ITEM_HELD); /* too soon */
    struct tide_badness_verdict verdict = feed(badness, 101, TIDE_GONE, 6, NOW + MINUTE);
    assert_int_equal(verdict.kind, TIDE_ITEM_OWED);
    assert_int_equal(verdict.at_ms, NOW + MINUTE + 10 * MINUTE);
    (void)feed(badness, 1, TIDE_OK, 1, NOW + MINUTE);
    assert_int_equal(feed(badness, 101, TIDE_GONE, 1, NOW + MINUTE).kind, TIDE_ITEM_VANISHED);
}

/* A canceled probe, one that could not be queued, a halt whose write failed: the
 * caller may have lost the order. */
CASE(orders_are_given_again_until_they_are_carried_out)
{
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    fail_twenty(badness, TIDE_PERMANENT);
    for (uint64_t minute = 0; minute < 3; minute++) {
        assert_order(badness, NOW + minute * MINUTE, TIDE_BADNESS_PROBE, 1);
        assert_no_order(badness, NOW + minute * MINUTE);
        assert_int_equal(tide_badness_wake_at_ms(badness), NOW + (minute + 1) * MINUTE);
    }
    tide_badness_probed(badness, TIDE_PERMANENT, NOW);
    for (uint64_t minute = 0; minute < 3; minute++) {
        assert_order(badness, NOW + minute * MINUTE, TIDE_BADNESS_HALT, 0);
        assert_no_order(badness, NOW + minute * MINUTE);
        assert_int_equal(tide_badness_wake_at_ms(badness), NOW + (minute + 1) * MINUTE);
    }
    tide_badness_halted(badness);
    assert_no_order(badness, NOW + 9 * MINUTE);
    assert_int_equal(tide_badness_wake_at_ms(badness), UINT64_MAX);
}

/* One item in doubt, and the server fails: it may fail for a while. */
CASE(a_failing_server_halts_no_account_for_a_lone_item)
{
    struct tide_badness_order order;
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    tide_badness_doubt(badness, NOW);
    assert_true(tide_badness_next(badness, NOW, &order));
    tide_badness_probed(badness, TIDE_SERVER, NOW);
    assert_false(tide_badness_view(badness).halted);
    assert_no_order(badness, NOW);
    assert_true(tide_badness_next(badness, NOW + MINUTE, &order));
    tide_badness_probed(badness, TIDE_PERMANENT, NOW + MINUTE); /* a refusal will not pass */
    assert_true(tide_badness_view(badness).halted);
}

CASE(a_lone_failing_item_is_held_until_a_probe_succeeds)
{
    struct tide_badness_order order;
    (void)feed(badness, 3, TIDE_OK, 1, NOW);
    for (uint32_t attempt = 1; attempt < 5; attempt++)
        (void)feed(badness, 7, TIDE_SERVER, attempt, NOW);
    assert_no_order(badness, NOW);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_order(badness, NOW, TIDE_BADNESS_PROBE, 3);
    assert_no_order(badness, NOW);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 6, NOW).kind, TIDE_ITEM_HELD);
    tide_badness_probed(badness, TIDE_OK, NOW);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 7, NOW).kind, TIDE_ITEM_BAD);
    assert_int_equal(feed(badness, 8, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_true(tide_badness_next(badness, NOW, &order)); /* the next one does not wait */
}

/* BAD7: item 41 made its batch fail four times.  Then both are tried alone, and 42, which was not
 * requested before, meets two errors by chance (E6.1, E6.2). */
CASE(an_item_is_not_bad_for_a_batch_that_another_one_made_fail)
{
    assert_int_equal(feed(badness, 41, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 42, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 42, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 41, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 42, TIDE_OK, 5, NOW).kind, TIDE_ITEM_GOOD);
    assert_int_equal(feed(badness, 41, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_BAD);

    /* The other one was recorded first; it counts for ten minutes. */
    (void)feed(badness, 43, TIDE_SERVER, 5, NOW + 10 * MINUTE - 1);
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 43, TIDE_SERVER, 5, NOW + 10 * MINUTE - 1).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 43, TIDE_SERVER, 5, NOW + 10 * MINUTE - 1).kind, TIDE_ITEM_BAD);
}

/* BAD7: the clock was set back after the other one failed.  That failure is not ten minutes old. */
CASE(an_error_with_a_later_time_is_recent)
{
    (void)feed(badness, 41, TIDE_SERVER, 5, NOW + MINUTE);
    (void)feed(badness, 42, TIDE_SERVER, 5, NOW);
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 42, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 42, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_BAD);
}

/* BAD7: an item that may be tried twice need not fail three times. */
CASE(as_many_errors_as_attempts_are_allowed_are_enough)
{
    struct tide_badness_settings settings = tide_badness_defaults();
    settings.attempts_max = 2;
    OK(tide_badness_set(badness, &settings));
    (void)feed(badness, 41, TIDE_SERVER, 1, NOW);
    (void)feed(badness, 42, TIDE_SERVER, 2, NOW);
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 42, TIDE_SERVER, 2, NOW).kind, TIDE_ITEM_BAD);
    (void)feed(badness, 43, TIDE_SERVER, 1, NOW);
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    settings.attempts_max = 3; /* two are not enough again */
    OK(tide_badness_set(badness, &settings));
    assert_int_equal(feed(badness, 43, TIDE_SERVER, 3, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 43, TIDE_SERVER, 3, NOW).kind, TIDE_ITEM_BAD);
}

/* E6.3: one bad item in a batch costs no request more than before. */
CASE(an_item_that_fails_alone_is_bad_for_its_batch)
{
    (void)feed(badness, 41, TIDE_SERVER, 1, NOW);
    (void)feed(badness, 42, TIDE_SERVER, 5, NOW + 10 * MINUTE);
    (void)feed(badness, 1, TIDE_OK, 1, NOW + 10 * MINUTE);
    assert_int_equal(feed(badness, 42, TIDE_SERVER, 5, NOW + 10 * MINUTE).kind, TIDE_ITEM_BAD);
}

/* Errors before the last attempt decide nothing yet, but they count as the item's own. */
CASE(errors_of_earlier_attempts_are_remembered)
{
    struct tide_item_outcome outcome = {.item = 7, .status = TIDE_SERVER, .retried = true};
    (void)feed(badness, 8, TIDE_SERVER, 1, NOW);
    for (outcome.attempts = 1; outcome.attempts < 5; outcome.attempts++)
        assert_int_equal(tide_badness_item(badness, &outcome, NOW).kind, TIDE_ITEM_AGAIN);
    tide_badness_check(badness);
    assert_int_equal(tide_badness_view(badness).failed_in_a_row, 1); /* of 8 */
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD); /* BAD3 */
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 6, NOW).kind, TIDE_ITEM_BAD);

    outcome = (struct tide_item_outcome){.item = 9, .status = TIDE_IO, .retried = true};
    (void)tide_badness_item(badness, &outcome, NOW);
    for (uint32_t attempt = 5; attempt < 14; attempt++) {
        assert_int_equal(feed(badness, 9, TIDE_SERVER, attempt, NOW).kind, TIDE_ITEM_AGAIN);
        (void)feed(badness, 1, TIDE_OK, 1, NOW);
    }
    assert_int_equal(feed(badness, 9, TIDE_SERVER, 14, NOW).kind, TIDE_ITEM_OWED); /* BAD5 */
}

CASE(without_anything_to_probe_a_lone_item_is_owed_and_halts_nothing)
{
    struct tide_badness_order order;
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 1, NOW).kind, TIDE_ITEM_HELD);
    assert_order(badness, NOW, TIDE_BADNESS_PROBE, 0);
    tide_badness_probed(badness, TIDE_NOT_FOUND, NOW);
    assert_false(tide_badness_view(badness).halted);
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 2, NOW).kind, TIDE_ITEM_HELD);
    assert_no_order(badness, NOW); /* not every time */
    assert_int_equal(tide_badness_wake_at_ms(badness), NOW + MINUTE);
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 3, NOW + MINUTE).kind, TIDE_ITEM_OWED);
    (void)feed(badness, 1, TIDE_OK, 1, NOW + 1);
    assert_order(badness, NOW + 1, TIDE_BADNESS_PROBE, 1); /* now there is something */
    tide_badness_probed(badness, TIDE_NOT_FOUND, NOW + 1);
    (void)feed(badness, 8, TIDE_PERMANENT, 1, NOW + 1);
    assert_true(tide_badness_next(badness, NOW + 1 + MINUTE, &order));
}

CASE(twenty_items_in_a_row_probe_and_a_failed_probe_halts)
{
    struct tide_badness_order order;
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    (void)feed(badness, 2, TIDE_OK, 1, NOW);
    for (uint64_t item = 101; item < 120; item++)
        (void)feed(badness, item, TIDE_SERVER, 1, NOW);
    for (uint32_t attempt = 2; attempt < 40; attempt++) /* one item, however often, is one item */
        (void)feed(badness, 119, TIDE_SERVER, 1, NOW);
    assert_no_order(badness, NOW);
    (void)feed(badness, 120, TIDE_SERVER, 1, NOW);
    assert_true(tide_badness_next(badness, NOW, &order));
    assert_int_equal(order.kind, TIDE_BADNESS_PROBE);
    assert_int_equal(order.item, 2);
    assert_int_equal(order.failed_in_a_row, 20);
    tide_badness_probed(badness, TIDE_GONE, NOW); /* deleted since: the next known one */
    assert_order(badness, NOW, TIDE_BADNESS_PROBE, 1);
    tide_badness_probed(badness, TIDE_THROTTLED, NOW); /* says nothing: later */
    assert_no_order(badness, NOW);
    assert_true(tide_badness_next(badness, NOW + MINUTE, &order));
    tide_badness_probed(badness, TIDE_SERVER, NOW + MINUTE);
    assert_order(badness, NOW + MINUTE, TIDE_BADNESS_HALT, 0);
    tide_badness_halted(badness);
    assert_no_order(badness, NOW + MINUTE);
    assert_int_equal(tide_badness_wake_at_ms(badness), UINT64_MAX);
    assert_int_equal(feed(badness, 101, TIDE_SERVER, 5, NOW + MINUTE).kind, TIDE_ITEM_HELD);
    tide_badness_resumed(badness);
    assert_false(tide_badness_view(badness).halted);
    assert_int_equal(tide_badness_view(badness).failed_in_a_row, 0);
}

CASE(a_successful_probe_clears_the_suspicion)
{
    struct tide_badness_order order;
    (void)feed(badness, 1, TIDE_OK, 1, NOW);
    fail_twenty(badness, TIDE_PERMANENT);
    assert_true(tide_badness_next(badness, NOW, &order));
    tide_badness_probed(badness, TIDE_OK, NOW);
    assert_false(tide_badness_view(badness).suspicious);
    assert_int_equal(tide_badness_view(badness).failed_in_a_row, 0);
    assert_int_equal(feed(badness, 110, TIDE_PERMANENT, 2, NOW).kind, TIDE_ITEM_BAD);
}

CASE(a_suspicion_with_nothing_to_probe_halts)
{
    fail_twenty(badness, TIDE_SERVER);
    assert_order(badness, NOW, TIDE_BADNESS_PROBE, 0);
    tide_badness_probed(badness, TIDE_NOT_FOUND, NOW);
    assert_order(badness, NOW, TIDE_BADNESS_HALT, 0);
}

CASE(more_than_half_of_the_last_hundred_probe)
{
    struct tide_badness_order order;
    for (uint64_t i = 0; i < 50; i++) { /* in turns, so never many in a row */
        (void)feed(badness, 1000 + i, TIDE_OK, 1, NOW);
        (void)feed(badness, 2000 + i, TIDE_SERVER, 1, NOW);
    }
    assert_int_equal(tide_badness_view(badness).failed_of_last, 50);
    assert_no_order(badness, NOW);
    (void)feed(badness, 3000, TIDE_SERVER, 1, NOW);
    assert_true(tide_badness_next(badness, NOW, &order));
    assert_int_equal(order.failed_of_last, 51);
}

CASE(stalls_over_ten_minutes_make_an_item_owed_with_growing_pauses)
{
    for (uint32_t i = 0; i < 8; i++) { /* many, but within a short time */
        assert_int_equal(feed(badness, 7, TIDE_TIMEOUT, i + 1, NOW + i).kind, TIDE_ITEM_AGAIN);
        (void)feed(badness, 50, TIDE_OK, 1, NOW);
    }
    assert_int_equal(feed(badness, 7, TIDE_UNKNOWN, 9, NOW + 10 * MINUTE - 1).kind,
                     TIDE_ITEM_AGAIN);
    uint64_t now_ms = NOW + 10 * MINUTE, pause_ms = 10 * MINUTE;
    for (int i = 0; i < 20; i++) {
        struct tide_badness_verdict verdict = feed(badness, 7, TIDE_TIMEOUT, 10, now_ms);
        assert_int_equal(verdict.kind, TIDE_ITEM_OWED);
        assert_int_equal(verdict.at_ms - now_ms, pause_ms);
        now_ms = verdict.at_ms;
        pause_ms = pause_ms * 2 > 24 * 60 * MINUTE ? 24 * 60 * MINUTE : pause_ms * 2;
    }
    assert_int_equal(feed(badness, 7, TIDE_OK, 11, now_ms).kind, TIDE_ITEM_GOOD);
    assert_int_equal(tide_badness_view(badness).suspects, 0);
}

CASE(an_item_whose_errors_vary_is_owed_not_bad)
{
    for (uint32_t attempt = 1; attempt < 10; attempt++) {
        tide_status status = attempt % 2 ? TIDE_SERVER : TIDE_IO;
        assert_int_equal(feed(badness, 7, status, attempt, NOW).kind, TIDE_ITEM_AGAIN);
        (void)feed(badness, 50, TIDE_OK, 1, NOW);
    }
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 10, NOW).kind, TIDE_ITEM_OWED);
}

/* BAD3: nothing is decided about an item while the account itself is in doubt. */
CASE(a_suspicion_or_a_halt_holds_every_verdict)
{
    struct tide_badness_order order;
    (void)feed(badness, 7, TIDE_SERVER, 1, NOW);
    (void)feed(badness, 8, TIDE_GONE, 1, NOW);
    (void)feed(badness, 1, TIDE_OK, 1, NOW); /* others succeed */
    fail_twenty(badness, TIDE_SERVER);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 8, TIDE_GONE, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_true(tide_badness_next(badness, NOW, &order));
    tide_badness_probed(badness, TIDE_BUG, NOW);
    assert_true(tide_badness_view(badness).halted);
    assert_int_equal(feed(badness, 8, TIDE_GONE, 6, NOW + MINUTE).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 6, NOW).kind, TIDE_ITEM_HELD);
    tide_badness_resumed(badness);
    tide_badness_probed(badness, TIDE_PERMANENT, NOW); /* of a probe that is no longer awaited */
    assert_false(tide_badness_view(badness).halted);
    assert_int_equal(tide_badness_wake_at_ms(badness), UINT64_MAX);
    assert_int_equal(feed(badness, 8, TIDE_GONE, 7, NOW).kind, TIDE_ITEM_VANISHED);
    assert_int_equal(feed(badness, 7, TIDE_SERVER, 7, NOW).kind, TIDE_ITEM_BAD);
}

/* A refused probe halts without any suspicion: one item was in doubt. */
TEST(a_halt_for_a_lone_item_holds_its_verdict)
{
    for (int compared = 0; compared < 2; compared++) {
        tide_badness *badness = badness_make();
        struct tide_badness_order order;
        assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 1, NOW).kind, TIDE_ITEM_HELD);
        assert_true(tide_badness_next(badness, NOW, &order));
        tide_badness_probed(badness, TIDE_NOT_FOUND, NOW);
        if (compared)
            (void)feed(badness, 1, TIDE_OK, 1, NOW);
        tide_badness_doubt(badness, NOW + MINUTE);
        assert_true(tide_badness_next(badness, NOW + MINUTE, &order));
        tide_badness_probed(badness, TIDE_PERMANENT, NOW + MINUTE);
        assert_true(tide_badness_view(badness).halted);
        assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 2, NOW + MINUTE).kind, TIDE_ITEM_HELD);
        tide_badness_free(badness);
    }
}

/* A mailbox in which nothing ever succeeded. */
CASE(without_anything_to_compare_a_suspicion_holds_and_asks_at_once)
{
    struct tide_badness_order order;
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 1, NOW).kind, TIDE_ITEM_HELD);
    assert_true(tide_badness_next(badness, NOW, &order));
    tide_badness_probed(badness, TIDE_NOT_FOUND, NOW);
    assert_no_order(badness, NOW); /* a lone item waits its time */
    fail_twenty(badness, TIDE_SERVER);
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 2, NOW + MINUTE).kind, TIDE_ITEM_HELD);
    assert_order(badness, NOW, TIDE_BADNESS_PROBE, 0); /* twenty do not */
    tide_badness_probed(badness, TIDE_NOT_FOUND, NOW);
    assert_true(tide_badness_view(badness).halted);
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 3, NOW + 2 * MINUTE).kind, TIDE_ITEM_HELD);
}

CASE(a_success_during_a_probe_does_not_ask_for_another)
{
    struct tide_badness_order order;
    tide_badness_doubt(badness, NOW);
    assert_true(tide_badness_next(badness, NOW, &order));
    tide_badness_probed(badness, TIDE_NOT_FOUND, NOW);
    tide_badness_doubt(badness, NOW + MINUTE);
    assert_true(tide_badness_next(badness, NOW + MINUTE, &order));
    (void)feed(badness, 1, TIDE_OK, 1, NOW + MINUTE);
    assert_no_order(badness, NOW + MINUTE);
    /* It had no item, and found one that is there: another item succeeds. */
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 1, NOW + MINUTE).kind, TIDE_ITEM_HELD);
    tide_badness_probed(badness, TIDE_OK, NOW + MINUTE);
    assert_int_equal(feed(badness, 7, TIDE_PERMANENT, 2, NOW + MINUTE).kind, TIDE_ITEM_BAD);
}

CASE(the_detail_of_an_error_tells_two_apart)
{
    struct tide_item_outcome outcome = {.item = 7, .status = TIDE_SERVER};
    for (outcome.attempts = 1; outcome.attempts < 10; outcome.attempts++) {
        outcome.detail = outcome.attempts % 2; /* 500 and 503 in turns */
        assert_int_equal(tide_badness_item(badness, &outcome, NOW).kind, TIDE_ITEM_AGAIN);
        (void)feed(badness, 50, TIDE_OK, 1, NOW);
    }
    assert_int_equal(tide_badness_item(badness, &outcome, NOW).kind, TIDE_ITEM_OWED);
}

CASE(a_time_from_the_past_or_at_the_end_of_time_is_harmless)
{
    (void)feed(badness, 9, TIDE_PERMANENT, 1, NOW); /* held since now */
    for (uint32_t attempt = 1; attempt <= 8; attempt++)
        (void)feed(badness, 7, TIDE_TIMEOUT, attempt, NOW);
    (void)feed(badness, 50, TIDE_OK, 1, NOW);
    assert_int_equal(feed(badness, 7, TIDE_TIMEOUT, 9, NOW - 1).kind, TIDE_ITEM_AGAIN);
    assert_int_equal(feed(badness, 8, TIDE_GONE, 5, NOW).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 8, TIDE_GONE, 6, NOW - 1).kind, TIDE_ITEM_HELD);
    assert_int_equal(feed(badness, 6, TIDE_SERVER, 1, UINT64_MAX).at_ms, UINT64_MAX);
}

CASE(causes_outside_never_count)
{
    const tide_status statuses[] = {TIDE_THROTTLED, TIDE_AGAIN,    TIDE_AUTH,   TIDE_NETWORK,
                                    TIDE_DISK_FULL, TIDE_CANCELED, TIDE_STOPPED};
    for (uint64_t i = 0; i < 700; i++)
        assert_int_equal(feed(badness, i + 1, statuses[i % 7], 9, NOW).kind, TIDE_ITEM_BLAMELESS);
    assert_int_equal(tide_badness_view(badness).suspects, 0);
    assert_no_order(badness, NOW);
}

TEST(memory_is_bounded_and_the_quietest_suspect_is_forgotten)
{
    struct tide_badness_settings settings = tide_badness_defaults();
    settings.suspects_max = 4;
    struct tide_mem_faulty mem;
    tide_mem_faulty_once(&mem, UINT64_MAX);
    tide_badness *badness = NULL;
    OK(tide_badness_new(&settings, &mem.base, &badness));
    uint64_t allocations = mem.allocations;
    for (uint64_t item = 1; item <= 4; item++)
        (void)feed(badness, item, TIDE_SERVER, 1, NOW);
    assert_int_equal(feed(badness, 1, TIDE_SERVER, 2, NOW).failures, 2); /* 2 is quietest now */
    (void)feed(badness, 5, TIDE_SERVER, 1, NOW);
    assert_int_equal(tide_badness_view(badness).suspects, 4);
    assert_int_equal(feed(badness, 1, TIDE_SERVER, 3, NOW).failures, 3);
    assert_int_equal(feed(badness, 2, TIDE_SERVER, 2, NOW).failures, 1);
    assert_int_equal(mem.allocations, allocations);
    tide_badness_free(badness);
    assert_int_equal(mem.bytes_live, 0);
}

TEST(senseless_settings_are_refused)
{
    tide_badness *badness = NULL;
    struct tide_badness_settings settings = tide_badness_defaults();
    settings.suspects_max = TIDE_SUSPECTS_MAX + 1;
    assert_int_equal(tide_badness_new(&settings, tide_mem_heap(), &badness), TIDE_INVALID);
    settings = tide_badness_defaults();
    settings.window_failed_max = TIDE_BADNESS_WINDOW;
    assert_int_equal(tide_badness_new(&settings, tide_mem_heap(), &badness), TIDE_INVALID);
    settings = tide_badness_defaults();
    settings.pause_first_ms = 0;
    assert_int_equal(tide_badness_new(&settings, tide_mem_heap(), &badness), TIDE_INVALID);
    assert_null(badness);
    tide_badness_free(NULL);
}

/* The model keeps a full history per item and of the outcomes that count. */
enum { MODEL_ITEMS = 60, HISTORY = 400000 };

struct model_item {
    bool failing, varied;
    tide_status last;
    uint32_t failures, stalls, owed;
    uint64_t stalled_ms, successes_at;
    uint64_t failed_ms; /* also after its verdict */
};

struct model {
    struct model_item items[MODEL_ITEMS + 1];
    unsigned char *history; /* 1: failed */
    uint64_t history_count, history_from;
    uint64_t successes;
    bool probing, suspicious, halted;
};

static bool model_suspicious(const struct model *model)
{
    uint32_t row = 0, failed = 0;
    for (uint64_t i = model->history_count; i > model->history_from; i--) {
        if (model->history_count - i >= 100)
            break;
        failed += model->history[i - 1];
    }
    for (uint64_t i = model->history_count; i > model->history_from && model->history[i - 1]; i--)
        row++;
    return row >= 20 || failed > 50;
}

static bool model_others_fail(const struct model *model, uint64_t at, uint64_t now_ms)
{
    for (uint64_t i = 1; i <= MODEL_ITEMS; i++)
        if (i != at && model->items[i].failed_ms > 0 &&
            now_ms - model->items[i].failed_ms < 10 * MINUTE)
            return true;
    return false;
}

static enum tide_item_verdict model_fail(struct model *model, uint64_t at, tide_status status,
                                         uint32_t attempts, uint64_t now_ms)
{
    struct model_item *item = &model->items[at];
    if (!item->failing) {
        *item =
            (struct model_item){.failing = true, .successes_at = model->successes, .last = status};
        model->history[model->history_count++] = 1;
    }
    item->varied |= item->last != status;
    item->last = status;
    item->failures++;
    item->failed_ms = now_ms;
    bool stall = status == TIDE_TIMEOUT;
    if (stall && item->stalls++ == 0)
        item->stalled_ms = now_ms;
    if (model_suspicious(model) && !model->halted)
        model->probing = model->suspicious = true;
    bool owed = item->owed > 0 || (item->varied && item->failures >= 10) ||
                (item->stalls >= 5 && now_ms - item->stalled_ms >= 10 * MINUTE);
    bool bad = (attempts >= 5 || status == TIDE_PERMANENT) && !item->varied && !stall;
    if (!owed && !bad)
        return TIDE_ITEM_AGAIN;
    if (model->successes == item->successes_at && !model->halted)
        model->probing = true;
    if (model->successes == item->successes_at || model->suspicious || model->halted)
        return TIDE_ITEM_HELD;
    if (owed) {
        item->owed++;
        return TIDE_ITEM_OWED;
    }
    if (status != TIDE_PERMANENT && item->failures < 3 && model_others_fail(model, at, now_ms))
        return TIDE_ITEM_HELD;
    item->failing = false;
    return TIDE_ITEM_BAD;
}

static void model_probed(struct model *model, tide_status status)
{
    if (status == TIDE_OK) {
        model->successes++;
        model->history_from = model->history_count;
        model->probing = model->suspicious = false;
    } else if (status == TIDE_SERVER && model->suspicious) {
        model->probing = model->suspicious = false;
        model->halted = true;
    }
}

static void random_run(uint64_t seed, uint64_t steps, struct model *model, uint64_t *kinds)
{
    static const tide_status statuses[] = {TIDE_OK,     TIDE_OK,        TIDE_OK,      TIDE_SERVER,
                                           TIDE_SERVER, TIDE_PERMANENT, TIDE_TIMEOUT, TIDE_NETWORK};
    tide_rng rng = tide_rng_seeded(seed);
    unsigned char *history = model->history;
    memset(model, 0, sizeof *model);
    model->history = history;
    tide_badness *badness = badness_make();
    uint64_t now_ms = NOW, good_of_8 = 1 + tide_rng_below(&rng, 6);
    for (uint64_t step = 0; step < steps; step++) {
        now_ms += tide_rng_below(&rng, tide_rng_chance(&rng, 1, 20) ? 20 * MINUTE : 20000);
        uint64_t at = 1 + tide_rng_below(&rng, MODEL_ITEMS);
        tide_status status = tide_rng_below(&rng, 8) < good_of_8
                                 ? TIDE_OK
                                 : statuses[3 + (at + tide_rng_below(&rng, 9) / 8) % 5];
        uint32_t attempts = model->items[at].failing ? model->items[at].failures + 1 : 1;
        if (tide_rng_chance(&rng, 1, 3)) /* inherited */
            attempts += 4;
        enum tide_item_verdict expected = TIDE_ITEM_BLAMELESS;
        if (status == TIDE_OK) {
            expected = TIDE_ITEM_GOOD;
            model->items[at].failing = false;
            model->successes++;
            model->history[model->history_count++] = 0;
        } else if (status != TIDE_NETWORK) {
            expected = model_fail(model, at, status, attempts, now_ms);
        }
        struct tide_badness_verdict verdict = tide_badness_item(
            badness,
            &(struct tide_item_outcome){.item = at, .status = status, .attempts = attempts},
            now_ms);
        if (verdict.kind != expected)
            fail_msg("seed %" PRIu64 " step %" PRIu64 ": verdict %d instead of %d", seed, step,
                     (int)verdict.kind, (int)expected);
        kinds[verdict.kind]++;
        struct tide_badness_order order;
        if (tide_rng_chance(&rng, 1, 4) && tide_badness_next(badness, now_ms, &order)) {
            if (order.kind == TIDE_BADNESS_PROBE) {
                tide_status probe = tide_rng_chance(&rng, 1, 3) ? TIDE_SERVER : TIDE_OK;
                tide_badness_probed(badness, probe, now_ms);
                model_probed(model, probe);
            } else {
                assert_true(model->halted);
                if (tide_rng_chance(&rng, 1, 2)) /* else it was lost, and is given again */
                    tide_badness_halted(badness);
            }
        }
        if (model->halted && tide_rng_chance(&rng, 1, 30)) {
            model->halted = false;
            model->history_from = model->history_count;
            tide_badness_resumed(badness);
        }
        struct tide_badness_view view = tide_badness_view(badness);
        assert_int_equal(view.halted, model->halted);
        assert_int_equal(view.suspicious, model->probing);
        if (step % 512 == 0)
            tide_badness_check(badness);
    }
    tide_badness_free(badness);
}

TEST(random_outcomes_agree_with_the_model)
{
    struct model *model = malloc(sizeof *model);
    assert_non_null(model);
    model->history = malloc(HISTORY);
    assert_non_null(model->history);
    uint64_t kinds[TIDE_ITEM_OWED + 1] = {0};
    uint64_t runs = scaled(100);
    for (uint64_t seed = 1; seed <= runs; seed++)
        random_run(seed, 20000, model, kinds);
    for (int kind = 0; kind <= TIDE_ITEM_OWED; kind++)
        if (kind != TIDE_ITEM_VANISHED)
            assert_true(kinds[kind] > 0);
    free(model->history);
    free(model);
}

TEST(badness_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        struct tide_badness_settings settings = tide_badness_defaults();
        tide_badness *badness = NULL;
        tide_status rc = tide_badness_new(&settings, &mem.base, &badness);
        if (rc == TIDE_OK)
            assert_int_equal(feed(badness, 1, TIDE_SERVER, 1, NOW).kind, TIDE_ITEM_AGAIN);
        tide_badness_free(badness);
        assert_swept(mem, rc);
        if (!mem.fired)
            assert_true(mem.fail_at >= 3);
        if (mem.fired)
            assert_null(badness);
    }
}

CASE(settings_change_while_items_are_watched)
{
    struct tide_badness_settings settings = tide_badness_defaults();
    settings.row_max = 3;
    settings.pause_factor_permille = 3000;
    OK(tide_badness_set(badness, &settings));
    struct tide_badness_order order;
    struct tide_item_outcome bad = {.item = 1, .status = TIDE_SERVER, .attempts = 1};
    assert_int_equal(tide_badness_item(badness, &bad, NOW).at_ms, NOW + 1000);
    bad.attempts = 2;
    assert_int_equal(tide_badness_item(badness, &bad, NOW).at_ms, NOW + 3000);
    for (uint64_t item = 2; item <= 3; item++) {
        bad.item = item;
        (void)tide_badness_item(badness, &bad, NOW);
    }
    assert_true(tide_badness_next(badness, NOW, &order)); /* three in a row, not twenty */
    assert_int_equal(order.kind, TIDE_BADNESS_PROBE);
    tide_badness_check(badness);

    settings.suspects_max--;
    assert_int_equal(tide_badness_set(badness, &settings), TIDE_INVALID);
    settings.suspects_max++;
    settings.pause_factor_permille = 999;
    assert_int_equal(tide_badness_set(badness, &settings), TIDE_INVALID);
}
