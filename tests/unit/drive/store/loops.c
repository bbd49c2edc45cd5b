/* loops.c - the loop breaker (S11). */
#include "drive_store_fixture.h"

static void transfer(struct fixture *f, tide_drive_verb verb, uint64_t content, uint64_t now_ms)
{
    uint64_t item = 0;
    struct tide_drive_outcome outcome = {.verb = verb, .now_ms = now_ms};
    const struct tide_drive_seen there = seen("y", "root", "y", content);
    OK(tide_drive_remote_put(f->db, &there, &item, &f->err));
    outcome.item = item;
    outcome.row = put(f, TIDE_DRIVE_ROOT, "y", content);
    OK(tide_drive_commit(f->db, &outcome, &f->err));
    OK(tide_drive_owed_paid(f->db, item, outcome.row, &f->err));
}

static uint64_t loops(struct fixture *f)
{
    return number(f, "SELECT count(*) FROM drive_@_owed WHERE loop = 1");
}

/* A server changes what is uploaded, a program here changes it back. */
TEST_ON(the_same_bytes_that_cross_again_and_again_are_held, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    struct tide_drive_progress progress;
    two_files(f, rows);
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(loops(f), 0);
        transfer(f, i % 2 == 0 ? TIDE_DRIVE_UP : TIDE_DRIVE_DOWN, 80 + i % 2, 10000 + 1000 * i);
    }
    assert_int_equal(loops(f), 1); /* two with news, four without */
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_owed WHERE name = X'79'"
                               " AND attempts = 4 AND next_ms = 615000"),
                     1);
    load(f, 20000);
    assert_int_equal(f->loaded.trees.owed_items_count, 1);
    load(f, 615000);
    assert_int_equal(f->loaded.trees.owed_items_count, 0);
    planned(f, 20000);
    OK(tide_drive_progress_read(f->db, &progress, &f->err));
    assert_int_equal(progress.due_ms, 615000);
    /* New bytes end it. */
    transfer(f, TIDE_DRIVE_UP, 90, 616000);
    assert_int_equal(loops(f), 0);
}

/* Saving every minute is no loop, on whichever side; and old transfers do not count. */
TEST_ON(new_bytes_are_no_loop, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    for (uint64_t i = 0; i < 12; i++)
        transfer(f, i < 6 ? TIDE_DRIVE_UP : TIDE_DRIVE_DOWN, 80 + i, 10000 + 1000 * i);
    assert_int_equal(loops(f), 0);
    for (uint64_t i = 0; i < 12; i++)
        transfer(f, TIDE_DRIVE_UP, 200 + i % 2, 1000000 + TIDE_DRIVE_LOOP_MS / 3 * i);
    assert_int_equal(loops(f), 0);
    assert_in_range(number(f, "SELECT count(*) FROM drive_@_turn"), 1, 3);
}

TEST_ON(ten_copies_a_day_are_too_many, struct fixture *f, setup, teardown)
{
    struct tide_drive_conflict conflict = {
        .notice = TIDE_DRIVE_K1, .item = 5, .name = TIDE_TEXT("x"), .copy = TIDE_TEXT("x 2")};
    for (uint64_t i = 0; i < 19; i++) {
        /* One of each two days has ten. */
        conflict.at_ms = i < 9 ? 1000 + i : 2000 + TIDE_DRIVE_DAY_MS + i;
        assert_int_equal(loops(f), 0);
        OK(tide_drive_conflict_add(f->db, &conflict, &f->err));
    }
    assert_int_equal(loops(f), 1);
    load(f, 3000 + TIDE_DRIVE_DAY_MS);
    assert_int_equal(f->loaded.trees.owed_items_count, 1);
}
