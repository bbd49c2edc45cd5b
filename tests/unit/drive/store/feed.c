/* feed.c - pages of what is online become rows (D31 to D33). */
#include "drive_store_fixture.h"

TEST_ON(a_round_is_seen_when_its_last_page_is_stored, struct fixture *f, setup, teardown)
{
    struct tide_drive_feed feed;
    const struct tide_drive_seen first[] = {seen("x", "d", "x", 7)}; /* child first */
    const struct tide_drive_seen second[] = {seen("d", "root", "d", 0)};
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_FULL, &f->err));
    page(f, first, 1, false);
    OK(tide_drive_feed_read(f->db, &feed, &f->err));
    assert_string_equal(feed.next_link, "next");
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 0);
    page(f, second, 1, true);
    OK(tide_drive_feed_read(f->db, &feed, &f->err));
    assert_string_equal(feed.next_link, "");
    assert_string_equal(feed.delta_link, "delta");
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 2);
    assert_int_equal(remote(f, "x")->parent, remote(f, "d")->item);
}

TEST_ON(the_last_occurrence_of_an_id_wins, struct fixture *f, setup, teardown)
{
    const struct tide_drive_seen items[] = {
        seen("x", "root", "old", 7), tombstone("x"), seen("x", "root", "new", 8),
        seen("z", "root", "z", 1),   tombstone("z"), tombstone("never")};
    round_of(f, TIDE_DRIVE_ROUND_FULL, items, 6);
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 1);
    assert_true(tide_text_equal(remote(f, "x")->name, TIDE_TEXT("new")));
    assert_int_equal(remote(f, "x")->content.bytes, 8);
}

TEST_ON(a_folders_tombstone_covers_what_is_still_in_it, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    const struct tide_drive_seen out[] = {seen("w", "d", "w", 3)};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, out, 1);
    /* x is moved out, then the folder dies; w, which was never here, dies with it. */
    const struct tide_drive_seen items[] = {tombstone("d"), seen("x", "root", "x", 7)};
    round_of(f, TIDE_DRIVE_ROUND_DELTA, items, 2);
    load(f, 1000);
    assert_int_equal(remote(f, "d")->state, TIDE_DRIVE_REMOTE_GONE);
    assert_int_equal(remote(f, "x")->state, TIDE_DRIVE_REMOTE_LIVE);
    assert_null(remote(f, "w"));
}

TEST_ON(missing_in_a_full_enumeration_is_gone_only_at_its_end, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    const struct tide_drive_seen items[] = {seen("y", "root", "y", 8)};
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_FULL, &f->err));
    page(f, items, 1, false);
    load(f, 1000);
    assert_int_equal(f->loaded.trees.bases_count, 0);
    page(f, NULL, 0, true);
    load(f, 1000);
    assert_int_equal(remote(f, "d")->state, TIDE_DRIVE_REMOTE_GONE);
    assert_int_equal(remote(f, "x")->state, TIDE_DRIVE_REMOTE_GONE);
    assert_int_equal(f->loaded.trees.bases_count, 2);
}

TEST_ON(a_round_that_begins_again_forgets_its_pages, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    const struct tide_drive_seen gone[] = {tombstone("x")};
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_DELTA, &f->err));
    page(f, gone, 1, false);
    round_of(f, TIDE_DRIVE_ROUND_DELTA, NULL, 0);
    load(f, 1000);
    assert_int_equal(f->loaded.trees.bases_count, 0);
}

/* D34. */
TEST_ON(after_a_server_that_lost_its_state_nothing_is_gone, struct fixture *f, setup, teardown)
{
    uint64_t rows[3];
    two_files(f, rows);
    round_of(f, TIDE_DRIVE_ROUND_FORGOT, NULL, 0);
    load(f, 1000);
    assert_int_equal(remote(f, "x")->state, TIDE_DRIVE_REMOTE_FORGOTTEN);
}

/* D33. */
TEST_ON(an_empty_round_keeps_the_token, struct fixture *f, setup, teardown)
{
    struct tide_drive_feed feed;
    uint64_t rows[3];
    two_files(f, rows);
    OK(tide_drive_round_begin(f->db, TIDE_DRIVE_ROUND_DELTA, &f->err));
    OK(tide_drive_page(f->db, NULL, 0, TIDE_TEXT_NONE, TIDE_TEXT("later"), 5, &f->err));
    OK(tide_drive_feed_read(f->db, &feed, &f->err));
    assert_string_equal(feed.delta_link, "delta");
    assert_int_equal(feed.round, TIDE_DRIVE_ROUND_NONE);
}

static void count_id(tide_text id, void *arg)
{
    (void)id;
    ++*(size_t *)arg;
}

/* D32: no name, and a parent that never came. */
TEST_ON(incomplete_items_are_listed_and_not_planned, struct fixture *f, setup, teardown)
{
    size_t count = 0;
    uint64_t item = 0;
    const struct tide_drive_seen items[] = {seen("x", "root", "", 7), seen("y", "lost", "y", 8)};
    round_of(f, TIDE_DRIVE_ROUND_FULL, items, 2);
    OK(tide_drive_incomplete(f->db, 10, count_id, &count, &f->err));
    assert_int_equal(count, 2); /* x, and y's parent */
    const struct tide_drive_seen answer = seen("lost", "root", "found", 0);
    OK(tide_drive_remote_put(f->db, &answer, &item, &f->err));
    count = 0;
    OK(tide_drive_incomplete(f->db, 10, count_id, &count, &f->err));
    assert_int_equal(count, 1);
    load(f, 0);
    assert_int_equal(f->loaded.trees.remotes_count, 2);
}

TEST_ON(a_page_without_a_link_is_refused, struct fixture *f, setup, teardown)
{
    assert_int_equal(tide_drive_page(f->db, NULL, 0, TIDE_TEXT_NONE, TIDE_TEXT_NONE, 0, &f->err),
                     TIDE_SERVER);
}
