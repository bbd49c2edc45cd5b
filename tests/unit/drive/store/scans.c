/* scans.c - what a scan found becomes rows. */
#include "drive_store_fixture.h"

/* Folders, doubt and proof are in drive_compare_test.c. */
TEST_ON(a_missing_file_is_gone_after_ten_seconds, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    find_state(f, rows[0], TIDE_DRIVE_LOCAL_GONE, 5000);
    find_state(f, rows[1], TIDE_DRIVE_LOCAL_GONE, 5000);
    load(f, 14999);
    assert_int_equal(f->loaded.trees.bases_count, 2); /* d, and x with it */
    assert_false(f->loaded.bases[0].local_gone || f->loaded.bases[1].local_gone);
    load(f, 15000);
    assert_true(f->loaded.bases[0].local_gone && f->loaded.bases[1].local_gone);
    find_state(f, rows[1], TIDE_DRIVE_LOCAL_UNSURE, 16000); /* doubt is no proof */
    load(f, 60000);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(f->loaded.bases[i].local_gone, f->loaded.bases[i].row == rows[0]);
}

/* DST8: between reading the rows and writing what differs, an action wrote, moved, removed or made. */
TEST_ON(a_scan_leaves_alone_what_was_written_since, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    struct tide_drive_difference list[5] = {
        {.found = found_of(TIDE_DRIVE_ROOT, "y", 80)},
        {.found = {.row = 0, .state = (tide_drive_local_state)TIDE_DRIVE_LOCAL_GONE},
         .state_only = true},
        {.found = found_of(TIDE_DRIVE_ROOT, "new", 6)},
        {.found = found_of(TIDE_DRIVE_ROOT, "folder", 0)},
        {.found = found_of(99, "orphan", 5)},
    };
    two_files(f, rows);
    list[0].found.row = rows[2];
    list[1].found.row = rows[1];
    list[0].found.version = list[1].found.version = 1;
    assert_int_equal(put(f, TIDE_DRIVE_ROOT, "y", 81), rows[2]);
    OK(tide_drive_local_moved(f->db, rows[1], TIDE_DRIVE_ROOT, TIDE_TEXT("x"), &f->err));
    const uint64_t made = put(f, TIDE_DRIVE_ROOT, "new", 61);
    const uint64_t folder = put(f, TIDE_DRIVE_ROOT, "folder", 0);
    const uint64_t changed = number(f, "SELECT changed FROM drive_@_state");
    OK(tide_drive_scan_write(f->db, list, 5, 5000, &f->err));
    assert_int_equal(number(f, "SELECT changed FROM drive_@_state"), changed);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE state = 1"), 5);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE bytes IN (7, 61, 81)"), 3);
    assert_int_equal(list[2].found.row, made);
    assert_int_equal(list[3].found.row, folder); /* its children are read beneath this row */
    assert_int_equal(list[4].found.row, 0);
}

/* The transaction of a slice failed, and the slice is written again. */
TEST_ON(a_slice_may_be_written_again, struct fixture *f, setup, teardown)
{
    struct tide_drive_difference one = {.found = found_of(TIDE_DRIVE_ROOT, "a", 1)};
    OK(tide_rows_do(f->db, "a test", &f->err, "BEGIN"));
    OK(tide_drive_scan_write(f->db, &one, 1, 5000, &f->err));
    assert_true(one.found.row > TIDE_DRIVE_ROOT);
    OK(tide_rows_do(f->db, "a test", &f->err, "ROLLBACK"));
    OK(tide_drive_scan_write(f->db, &one, 1, 5000, &f->err));
    assert_int_equal(number(f, "SELECT row FROM drive_@_local"), one.found.row);
}

TEST_ON(what_an_action_finds_again_is_not_written, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], row = 0;
    two_files(f, rows);
    const uint64_t changed = number(f, "SELECT changed FROM drive_@_state");
    assert_int_equal(put(f, rows[0], "x", 7), rows[1]);
    struct tide_drive_found touched = found_of(rows[0], "x", 7);
    touched.mtime_ns = touched.hashed_ns = 5; /* written, but nothing to plan */
    OK(tide_drive_scan_put(f->db, &touched, &row, &f->err));
    assert_int_equal(number(f, "SELECT changed FROM drive_@_state"), changed);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE mtime_ns = 5"), 1);
    touched.nlink = 2;
    OK(tide_drive_scan_put(f->db, &touched, &row, &f->err));
    assert_int_equal(number(f, "SELECT changed FROM drive_@_state"), changed + 1);
    touched.parent = 99;
    assert_int_equal(tide_drive_scan_put(f->db, &touched, &row, &f->err), TIDE_SUPERSEDED);
}

/* F24: the clock is put back by a day, and times that were noted before have not come yet. */
TEST_ON(a_clock_that_is_put_back_keeps_nothing_waiting, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    const struct tide_drive_owed owed = {.item = 7,
                                         .row = 9,
                                         .verb = TIDE_DRIVE_DOWN,
                                         .name = TIDE_TEXT("x"),
                                         .error = TIDE_TEXT("500"),
                                         .attempts = 1,
                                         .next_ms = TIDE_DRIVE_DAY_MS + TIDE_DRIVE_OWED_MS_MAX};
    two_files(f, rows);
    find_state(f, rows[2], TIDE_DRIVE_LOCAL_GONE, TIDE_DRIVE_DAY_MS);
    OK(tide_drive_owe(f->db, &owed, &f->err));
    load(f, TIDE_DRIVE_DAY_MS);
    assert_false(f->loaded.bases[0].local_gone);
    assert_int_equal(f->loaded.trees.owed_items_count, 1);
    assert_int_equal(f->loaded.trees.owed_rows_count, 1);
    load(f, TIDE_DRIVE_DAY_MS - 5000); /* a little: it waits a little longer */
    assert_false(f->loaded.bases[0].local_gone);
    load(f, 1000);
    assert_true(f->loaded.bases[0].local_gone);
    assert_int_equal(f->loaded.trees.owed_items_count, 0);
    assert_int_equal(f->loaded.trees.owed_rows_count, 0);
}

/* DST5. */
TEST_ON(numbers_are_not_used_again, struct fixture *f, setup, teardown)
{
    const uint64_t first = put(f, TIDE_DRIVE_ROOT, "a", 1);
    assert_true(first > TIDE_DRIVE_ROOT);
    find_state(f, first, TIDE_DRIVE_LOCAL_GONE, 1);
    OK(tide_drive_planned(f->db, 0, 1, &f->err)); /* nothing needs the row any more */
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local"), 0);
    assert_true(put(f, TIDE_DRIVE_ROOT, "a", 1) > first);
}

/* A folder that is gone stays while something beneath it has a baseline: it may come back. */
TEST_ON(a_row_that_is_gone_stays_while_it_serves, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("d"), &item, &f->err));
    struct tide_drive_outcome outcome = {.verb = TIDE_DRIVE_DROP, .item = item};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    find_state(f, rows[0], TIDE_DRIVE_LOCAL_GONE, 5000);
    find_state(f, rows[1], TIDE_DRIVE_LOCAL_GONE, 5000);
    OK(tide_drive_planned(f->db, 0, 1, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE state = 4"), 2);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &outcome.item, &f->err));
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    OK(tide_drive_planned(f->db, 0, 1, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local"), 1); /* y */
}
