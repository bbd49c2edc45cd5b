/* due.c - what a plan is due for (DST7). */
#include "drive_store_fixture.h"

#include "drive/store/look.h"

TEST_ON(a_round_that_brings_what_is_known_makes_no_plan_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    const struct tide_drive_seen all[] = {seen("d", "root", "d", 0), seen("x", "d", "x", 7),
                                          seen("y", "root", "y", 8)};
    struct tide_drive_seen part = seen("y", "root", "", 8); /* fields that are missing (D32) */
    part.parent_id = TIDE_TEXT_NONE;
    assert_false(is_due(f, 0));
    two_files(f, rows);
    assert_true(is_due(f, 1000));
    planned(f, 1000);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, NULL, 0);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, all, 3);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, &part, 1);
    round_of(f, TIDE_DRIVE_ROUND_FULL, all, 3);
    OK(tide_drive_remote_put(f->db, &all[1], &item, &f->err));
    const struct tide_drive_seen never[] = {tombstone("never")};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, never, 1);
    assert_false(is_due(f, 1000));
    /* The listing that follows has them all the same: no row of an echo is taken for missing. */
    round_of(f, TIDE_DRIVE_ROUND_FULL, all, 3);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_remote WHERE state = 1"), 3);
    assert_false(is_due(f, 1000));
}

TEST_ON(every_field_of_an_item_makes_a_plan_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    struct tide_drive_seen changes[9];
    two_files(f, rows);
    for (size_t i = 0; i < 9; i++)
        changes[i] = seen("y", "root", "y", 8);
    changes[0].parent_id = TIDE_TEXT("d");
    changes[1].name = TIDE_TEXT("Y");
    changes[2].etag = TIDE_TEXT("e2");
    changes[3].ctag = TIDE_TEXT("c2");
    changes[4].mtime_s = 5;
    changes[5].content.bytes = 9;
    changes[6].content.has_qxh = false;
    changes[7].state = TIDE_DRIVE_REMOTE_UNSURE;
    changes[8] = tombstone("y");
    for (size_t i = 0; i < 9; i++)
        for (int by_get = 0; by_get < 2; by_get++) {
            uint64_t item = 0;
            const struct tide_drive_seen as_before = seen("y", "root", "y", 8);
            OK(tide_drive_remote_put(f->db, &as_before, &item, &f->err));
            planned(f, 1000);
            if (by_get)
                OK(tide_drive_remote_put(f->db, &changes[i], &item, &f->err));
            else
                round_of(f, TIDE_DRIVE_ROUND_DELTA, &changes[i], 1);
            if (!is_due(f, 1000))
                fail_msg("change %zu was not noted", i);
        }
}

TEST_ON(outcomes_and_consent_make_a_plan_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0, shown = 0;
    const struct tide_drive_deletion one = {5, TIDE_DRIVE_DEL_LOCAL, TIDE_TEXT("a")};
    const struct tide_drive_owed owed = {
        .item = 5, .name = TIDE_TEXT("a"), .error = TIDE_TEXT("e"), .attempts = 1, .next_ms = 9000};
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    planned(f, 1000);
    OK(tide_drive_aside_remote(f->db, item, TIDE_TEXT_NONE, &f->err));
    OK(tide_drive_aside_local(f->db, rows[1], TIDE_TEXT_NONE, &f->err));
    OK(tide_drive_owed_paid(f->db, 99, 0, &f->err));
    OK(tide_drive_deletions_set(f->db, &one, 1, &f->err)); /* by the plan itself */
    OK(tide_drive_owe(f->db, &owed, &f->err));
    assert_false(is_due(f, 8999));
    assert_true(is_due(f, 9000)); /* its time has come */
    planned(f, 9000);
    assert_false(is_due(f, 100000));
    OK(tide_drive_owed_paid(f->db, 5, 0, &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_deletions_fingerprint(f->db, &shown, &f->err));
    OK(tide_drive_deletions_accept(f->db, shown, 9000, &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_aside_local(f->db, rows[1], TIDE_TEXT("x"), &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_aside_remote(f->db, item, TIDE_TEXT("x"), &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_local_moved(f->db, rows[1], TIDE_DRIVE_ROOT, TIDE_TEXT("z"), &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    const struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_DROP, .item = item, .now_ms = 9000};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_true(is_due(f, 9000));
    planned(f, 9000);
    OK(tide_drive_local_removed(f->db, rows[1], &f->err));
    assert_true(is_due(f, 9000));
}

/* D24: the name is written before the step.  Of a step that was not made nothing is seen, by whoever reads
 * the row: a plan and what carries it out would not agree for ever. */
TEST_ON(a_step_aside_counts_when_it_was_made, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    struct tide_drive_remote_look remote;
    struct tide_drive_local_look local;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    OK(tide_drive_aside_remote(f->db, item, TIDE_TEXT("before"), &f->err));
    OK(tide_drive_aside_local(f->db, rows[1], TIDE_TEXT("before"), &f->err));
    OK(tide_drive_look_remote(f->db, item, &remote, &f->err));
    OK(tide_drive_look_local(f->db, rows[1], &local, &f->err));
    assert_string_equal(remote.aside, "");
    assert_string_equal(local.aside, "");
    const struct tide_drive_seen stepped = seen("x", "root", "tidemark-move-0123abcd", 8);
    OK(tide_drive_remote_put(f->db, &stepped, &item, &f->err));
    OK(tide_drive_look_remote(f->db, item, &remote, &f->err));
    assert_string_equal(remote.aside, "before");
}

/* What was written while a plan was made is for the next one; and a late note does not go back. */
TEST_ON(a_change_during_a_plan_stays_due, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    struct tide_drive_progress first, second;
    two_files(f, rows);
    OK(tide_drive_progress_read(f->db, &first, &f->err));
    const struct tide_drive_seen other = seen("y", "root", "y", 9);
    OK(tide_drive_remote_put(f->db, &other, &item, &f->err));
    OK(tide_drive_planned(f->db, first.changed, 1000, &f->err));
    assert_true(is_due(f, 1000));
    planned(f, 2000);
    OK(tide_drive_planned(f->db, first.changed, 1000, &f->err));
    OK(tide_drive_progress_read(f->db, &second, &f->err));
    assert_int_equal(second.planned, second.changed);
    assert_int_equal(second.planned_ms, 2000);
}

/* S13: after ten seconds, whether or not anything was written meanwhile. */
TEST_ON(a_missing_file_makes_a_plan_due_in_time, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    find_state(f, rows[2], TIDE_DRIVE_LOCAL_GONE, 5000);
    assert_true(is_due(f, 5000));
    planned(f, 6000);
    assert_false(is_due(f, 14999));
    assert_true(is_due(f, 15000));
    planned(f, 15000); /* held by the guard, say */
    assert_false(is_due(f, 60000));
}

/* F24: an item that fails after the clock was put back is owed before the last plan. */
TEST_ON(a_clock_that_is_put_back_makes_a_plan_due, struct fixture *f, setup, teardown)
{
    struct tide_drive_progress progress;
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    OK(tide_drive_planned(f->db, progress.changed, 90000, &f->err));
    assert_false(is_due(f, 90000));
    assert_true(is_due(f, 89999));
    OK(tide_drive_planned(f->db, progress.changed, 89999, &f->err));
    assert_false(is_due(f, 89999));
}
