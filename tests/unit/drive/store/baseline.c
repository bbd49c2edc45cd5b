/* baseline.c - what both sides agree on is recorded. */
#include "drive_store_fixture.h"

/* DST4: a row that is gone cannot be agreed on. */
TEST_ON(what_is_not_on_both_sides_is_not_recorded, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    uint64_t item = 0;
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    const struct tide_drive_seen gone[] = {tombstone("x")};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, gone, 1);
    const struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_BASE, .item = item, .row = rows[1]};
    assert_int_equal(tide_drive_commit(f->db, &outcome, &f->err), TIDE_SUPERSEDED);
}

TEST_ON(a_move_is_recorded_when_both_sides_have_it, struct fixture *f, setup, teardown)
{
    uint64_t rows[3], item = 0, put_item = 0;
    two_files(f, rows);
    OK(tide_drive_item_of(f->db, TIDE_TEXT("x"), &item, &f->err));
    const struct tide_drive_seen moved = seen("x", "root", "renamed", 7);
    OK(tide_drive_remote_put(f->db, &moved, &put_item, &f->err));
    assert_int_equal(put_item, item);
    struct tide_drive_outcome outcome = {
        .verb = TIDE_DRIVE_MOVE_LOCAL, .item = item, .row = rows[1]};
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_base WHERE name = X'78'"), 1);
    outcome.row = put(f, TIDE_DRIVE_ROOT, "renamed", 7);
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_base WHERE name = X'78'"), 0);
    assert_int_equal(number(f, "SELECT parent FROM drive_@_base WHERE item ="
                               " (SELECT item FROM drive_@_item WHERE id = 'x')"),
                     TIDE_DRIVE_ROOT);
}
