/* planned_test.c - schedules that users set, in their rows, on both databases (E8.1): a slot starts
 * once, whoever asks and whatever the clocks say. */
#include "serve/schedule/planned.h"
#include "unit/db/rows_fixture.h"

#include <stdio.h>
#include <string.h>

#define CASE(name) TEST_WITH(name, rows_setup, rows_teardown)

enum { SECOND = 1000, DAY = 86400 * SECOND };
static const uint64_t made_ms = 1794700000000;

static int32_t utc_ahead(void *arg, int64_t unix_s)
{
    (void)arg;
    (void)unix_s;
    return 0;
}

static const struct tide_zone utc = {utc_ahead, NULL};

static struct tide_planned added(const char *name, const char *at)
{
    struct tide_planned planned = {.created_unix_ms = made_ms, .jitter_ms = 0};
    (void)snprintf(planned.name, sizeof planned.name, "%s", name);
    (void)snprintf(planned.at, sizeof planned.at, "%s", at);
    (void)snprintf(planned.words, sizeof planned.words, "[\"backup\",\"dir\"]");
    OK(tide_planned_add(rows_now, &planned, err));
    OK(tide_planned_find(rows_now, name, &planned, err));
    return planned;
}

static uint64_t next_of(const struct tide_planned *planned, uint64_t now_ms)
{
    uint64_t next_ms = 0;
    OK(tide_planned_next(planned, now_ms, &utc, &next_ms, err));
    return next_ms;
}

static bool count_row(void *arg, const struct tide_planned *planned)
{
    char *names = arg;
    names[strlen(names)] = planned->name[0];
    return true;
}

CASE(rows_are_added_listed_by_name_and_removed)
{
    char names[16] = "";
    struct tide_planned planned;
    tide_error why;
    OK(tide_planned_each(rows_now, count_row, names, err)); /* without the table there are none */
    assert_int_equal(tide_planned_find(rows_now, "b", &planned, &why), TIDE_NOT_FOUND);
    assert_int_equal(tide_planned_remove(rows_now, "b", &why), TIDE_NOT_FOUND);
    planned = added("b", "every 15min");
    (void)added("a", "daily 03:30");
    (void)added("c", "hourly");
    assert_string_equal(planned.at, "every 15min");
    assert_string_equal(planned.words, "[\"backup\",\"dir\"]");
    assert_int_equal(planned.covered_unix_ms, made_ms);
    assert_int_equal(planned.runs + planned.started_unix_ms + planned.ended_unix_ms, 0);
    assert_int_equal(tide_planned_add(rows_now, &planned, &why), TIDE_EXISTS);
    OK(tide_planned_remove(rows_now, "b", err));
    OK(tide_planned_each(rows_now, count_row, names, err));
    assert_string_equal(names, "ac");
}

CASE(of_two_that_saw_the_same_row_one_starts_it)
{
    struct tide_planned seen = added("a", "every 1min");
    struct tide_planned row;
    tide_error why;
    const uint64_t now_ms = next_of(&seen, made_ms);
    assert_int_equal(now_ms, made_ms + 60 * SECOND);
    OK(tide_planned_start(rows_now, &seen, now_ms, "one", err));
    assert_int_equal(tide_planned_start(rows_now, &seen, now_ms, "two", &why), TIDE_STALE);
    assert_int_equal(tide_planned_start(rows_now, &seen, now_ms + 5, "two", &why), TIDE_STALE);
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_string_equal(row.runner, "one");
    assert_int_equal(row.runs, 1);
    assert_int_equal(row.started_unix_ms, now_ms);
    assert_int_equal(row.ended_unix_ms, 0);
    OK(tide_planned_end(rows_now, "a", now_ms, now_ms + 7, 3, "2 bad", err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_int_equal(row.ended_unix_ms, now_ms + 7);
    assert_int_equal(row.exit_code, 3);
    assert_string_equal(row.result, "2 bad");
    /* The end of a run that is not the last one changes nothing. */
    OK(tide_planned_end(rows_now, "a", now_ms - 1, now_ms + 9, 0, "late", err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_string_equal(row.result, "2 bad");
}

CASE(missed_times_are_one_run)
{
    struct tide_planned row = added("a", "every 1min");
    const uint64_t now_ms = made_ms + 3 * (uint64_t)DAY + 5;
    assert_true(next_of(&row, now_ms) <= now_ms);
    OK(tide_planned_start(rows_now, &row, now_ms, "one", err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_int_equal(next_of(&row, now_ms), made_ms + 3 * (uint64_t)DAY + 60 * SECOND);
}

CASE(a_clock_that_was_years_ahead_does_not_stop_it)
{
    struct tide_planned row = added("a", "daily 03:30");
    OK(tide_planned_start(rows_now, &row, made_ms + 1000 * (uint64_t)DAY, "wrong", err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    const uint64_t next_ms = next_of(&row, made_ms);
    assert_true(next_ms > made_ms && next_ms <= made_ms + DAY);
    /* Started then, it is not due again at once. */
    OK(tide_planned_start(rows_now, &row, next_ms, "right", err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_int_equal(next_of(&row, next_ms), next_ms + DAY);
    /* A clock that is a little behind waits for what another one covered. */
    struct tide_planned other = added("b", "every 1min");
    OK(tide_planned_start(rows_now, &other, made_ms + 90 * SECOND, "ahead", err));
    OK(tide_planned_find(rows_now, "b", &other, err));
    assert_int_equal(next_of(&other, made_ms + 30 * SECOND), made_ms + 120 * SECOND);
}

CASE(a_run_by_hand_is_recorded_and_moves_no_time)
{
    struct tide_planned row = added("a", "hourly");
    tide_error why;
    const uint64_t before_ms = next_of(&row, made_ms);
    row.started_unix_ms = made_ms + 5;
    row.ended_unix_ms = made_ms + 6;
    row.exit_code = 1;
    (void)snprintf(row.result, sizeof row.result, "no room");
    OK(tide_planned_ran(rows_now, &row, err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_string_equal(row.result, "no room");
    assert_int_equal(row.runs, 1);
    assert_int_equal(next_of(&row, made_ms), before_ms);
    (void)snprintf(row.name, sizeof row.name, "gone");
    assert_int_equal(tide_planned_ran(rows_now, &row, &why), TIDE_NOT_FOUND);
}

int main(void)
{
    return rows_tests_run();
}

/* A request that a crash interrupted is sent again: its run may have started before. */
CASE(a_run_that_is_wanted_twice_by_one_request_starts_once)
{
    const uint64_t asked_ms = made_ms + 10 * SECOND;
    tide_error why;
    struct tide_planned row = added("a", "every 1h");
    assert_int_equal(tide_planned_want(rows_now, "b", asked_ms, asked_ms, &why), TIDE_NOT_FOUND);
    for (int i = 0; i < 2; i++) { /* it has not started: one mark */
        OK(tide_planned_want(rows_now, "a", asked_ms, asked_ms + SECOND, err));
        OK(tide_planned_find(rows_now, "a", &row, err));
        assert_int_equal(row.wanted_unix_ms, asked_ms);
    }
    OK(tide_planned_start(rows_now, &row, asked_ms + SECOND, "one", err));
    OK(tide_planned_want(rows_now, "a", asked_ms, asked_ms + 2 * SECOND, err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_int_equal(row.wanted_unix_ms, 0);
    /* Another request is another run; and a run that a wrong clock started tomorrow is none of today's. */
    OK(tide_planned_want(rows_now, "a", asked_ms + 2 * SECOND, asked_ms + 2 * SECOND, err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    OK(tide_planned_start(rows_now, &row, asked_ms + DAY, "ahead", err));
    OK(tide_planned_want(rows_now, "a", asked_ms + 3 * SECOND, asked_ms + 4 * SECOND, err));
    OK(tide_planned_find(rows_now, "a", &row, err));
    assert_int_equal(row.wanted_unix_ms, asked_ms + 3 * SECOND);
}
