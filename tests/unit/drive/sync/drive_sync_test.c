/* A drive on the engine, both ways (D1 to D5, D12).
 *
 * Goal: whatever a user does on either side, both become one tree, nothing is transferred twice, and a
 * sync without news makes one call and writes no row.  Method: the cloud in a box and a real folder,
 * compared by hash. */
#include "drive_sync_fixture.h"

#include <unistd.h>

CASE(the_first_sync_downloads_all)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "Docs/b.txt", "beta");
    put_online(f, "Docs/Deep/c.txt", "gamma");
    online(f, "put", "{\"path\":\"big.bin\",\"size\":12000000,\"seed\":7}");
    online(f, "put", "{\"path\":\"empty.txt\",\"content\":\"\"}");
    sync_now(f);
    assert_here(f, "Docs/Deep/c.txt", "gamma");
    assert_equal_trees(f);
    assert_int_equal(temporaries(f), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 7);
}

CASE(the_first_sync_uploads_all)
{
    make_here(f, "Docs");
    make_here(f, "Docs/Deep");
    put_here(f, "a.txt", "alpha");
    put_here(f, "Docs/b.txt", "beta");
    put_here(f, "Docs/Deep/c.txt", "gamma");
    put_here(f, "empty.txt", "");
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 6);
}

CASE(files_that_are_equal_on_both_sides_cross_no_network)
{
    put_online(f, "Docs/b.txt", "beta");
    make_here(f, "Docs");
    put_here(f, "Docs/b.txt", "beta");
    const uint64_t got = f->got_bytes, sent = f->sent_bytes;
    sync_now(f);
    assert_int_equal(f->got_bytes, got);
    assert_int_equal(f->sent_bytes, sent);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 2);
}

CASE(a_sync_without_news_makes_one_call_and_writes_no_row)
{
    put_online(f, "Docs/b.txt", "beta");
    make_here(f, "Here");
    put_here(f, "Here/c.txt", "gamma");
    sync_now(f);
    sync_now(f); /* the echo of what was uploaded */
    const uint64_t calls = f->calls;
    const uint64_t changed = rows_of(f, "SELECT changed FROM drive_@_state");
    sync_now(f);
    assert_int_equal(f->calls - calls, 1);
    assert_int_equal(rows_of(f, "SELECT changed FROM drive_@_state"), changed);
    assert_equal_trees(f);
}

CASE(edits_cross_in_both_directions)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    put_online(f, "a.txt", "alpha two");
    put_here(f, "b.txt", "beta two");
    sync_now(f);
    assert_here(f, "a.txt", "alpha two");
    assert_equal_trees(f);
    assert_int_equal(temporaries(f), 0); /* what was replaced is gone after ten seconds */
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_doubt"), 0);
}

CASE(deletions_cross_in_both_directions)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    put_online(f, "Docs/c.txt", "gamma");
    put_online(f, "More/d.txt", "delta");
    sync_now(f);
    remove_here(f, "a.txt");
    remove_here(f, "Docs/c.txt");
    remove_here(f, "Docs");
    online(f, "delete", "{\"path\":\"b.txt\"}");
    online(f, "delete", "{\"path\":\"More\"}");
    sync_now(f);
    char *tree = tree_online(f);
    assert_string_equal(tree, "");
    free(tree);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 0);
}

CASE(moves_cross_without_a_transfer)
{
    put_online(f, "Docs/a.txt", "alpha");
    put_online(f, "Docs/b.txt", "beta");
    put_online(f, "c.txt", "gamma");
    sync_now(f);
    const uint64_t got = f->got_bytes, sent = f->sent_bytes;
    move_here(f, "Docs", "Papers");
    online(f, "move", "{\"path\":\"c.txt\",\"to\":\"d.txt\"}");
    sync_now(f);
    assert_true(is_here(f, "d.txt"));
    assert_true(is_here(f, "Papers/b.txt"));
    assert_equal_trees(f);
    assert_int_equal(f->got_bytes, got);
    assert_int_equal(f->sent_bytes, sent);
}

CASE(names_are_swapped)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    move_here(f, "a.txt", "x");
    move_here(f, "b.txt", "a.txt");
    move_here(f, "x", "b.txt");
    sync_now(f);
    sync_now(f);
    assert_here(f, "a.txt", "beta");
    assert_equal_trees(f);
}

/* mv b.txt a.txt: the one is deleted online, the other one moved, and nothing is transferred. */
CASE(a_file_is_renamed_over_another_one)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "d/b.txt", "beta");
    sync_now(f);
    const uint64_t got = f->got_bytes, sent = f->sent_bytes;
    move_here(f, "d/b.txt", "a.txt");
    sync_now(f);
    sync_now(f);
    assert_here(f, "a.txt", "beta");
    assert_equal_trees(f);
    assert_int_equal(f->got_bytes, got);
    assert_int_equal(f->sent_bytes, sent);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 2);
}

CASE(edits_on_both_sides_keep_both)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    put_online(f, "a.txt", "alpha online");
    put_here(f, "a.txt", "alpha here");
    sync_now(f);
    sync_now(f);
    assert_here(f, "a.txt", "alpha online");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 2);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict WHERE notice = 1"), 1);
}

static void link_here(struct fixture *f, const char *from, const char *to)
{
    char old[256], new[256];
    (void)snprintf(old, sizeof old, "%s/%s", f->root, from);
    (void)snprintf(new, sizeof new, "%s/%s", f->root, to);
    assert_int_equal(link(old, new), 0);
}

/* D28: both are files online; the new content of one of them leaves the other alone, and a user is told
 * once. */
CASE(hard_links_are_parted_by_a_download_and_that_is_shown_once)
{
    static const char parted[] = "SELECT count(*) FROM drive_@_conflict WHERE notice = 9";
    static const char of_a[] = "SELECT count(*) FROM drive_@_conflict WHERE notice = 9"
                               " AND name = CAST('a.txt' AS BLOB) AND copy = x''";
    put_here(f, "a.txt", "alpha");
    link_here(f, "a.txt", "b.txt");
    sync_now(f);
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, parted), 0); /* not before it happens */
    put_online(f, "a.txt", "alpha online");
    sync_now(f);
    sync_now(f);
    assert_here(f, "a.txt", "alpha online");
    assert_here(f, "b.txt", "alpha");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, parted), 1);
    assert_int_equal(rows_of(f, of_a), 1);
    put_online(f, "a.txt", "alpha again");
    sync_now(f);
    assert_int_equal(rows_of(f, parted), 1);
    assert_int_equal(temporaries(f), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict"), 1);
}

CASE(hard_links_that_both_change_online_make_no_copy)
{
    put_here(f, "a.txt", "alpha");
    link_here(f, "a.txt", "b.txt");
    sync_now(f);
    put_online(f, "a.txt", "alpha online");
    put_online(f, "b.txt", "beta online");
    sync_now(f);
    sync_now(f);
    assert_here(f, "a.txt", "alpha online");
    assert_here(f, "b.txt", "beta online");
    assert_equal_trees(f);
    assert_int_equal(temporaries(f), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict WHERE notice <> 9"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

CASE(a_tombstone_that_was_lost_is_found_by_listing_all)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    sync_full(f);
    assert_equal_trees(f);
}

CASE(a_second_process_continues)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    life_end(f);
    put_here(f, "b.txt", "beta");
    OK(life_begin(f));
    sync_now(f);
    assert_equal_trees(f);
}
