/* What is missing while something here cannot be read may have been moved there: it is not deleted online
 * (S2, S13, F14, plan.h DPL6). */
#include "drive_sync_fixture.h"

#include "support/wrap.h"
#include "world/folder.h"

/* The folder that cannot be entered, by its name; NULL: none.  (Root may enter them all.) */
static const char *dark;

WRAP(tide_status, tide_folder_enter, int root, tide_text path, int *dir_out, tide_error *err)
{
    const char *slash = path.bytes == 0 ? NULL : memrchr(path.data, '/', path.bytes);
    const size_t from = slash == NULL ? 0 : (size_t)(slash - path.data) + 1;
    if (dark != NULL &&
        tide_text_equal((tide_text){path.data + from, path.bytes - from}, tide_text_of(dark)))
        return tide_error_set(err, TIDE_IO, "Permission denied");
    return __real_tide_folder_enter(root, path, dir_out, err);
}

static uint64_t item_of(struct fixture *f, unsigned bytes)
{
    return rows_of(f, textf("SELECT coalesce((SELECT item FROM drive_@_remote WHERE bytes = %u"
                            " AND state = 1), 0)",
                            bytes));
}

static uint64_t parent_of(struct fixture *f, unsigned bytes)
{
    return rows_of(f, textf("SELECT parent FROM drive_@_remote WHERE bytes = %u", bytes));
}

/* A file of five bytes, a folder for it, and the file moved there while nobody can read the folder. */
static uint64_t hide(struct fixture *f)
{
    put_here(f, "a.txt", "alpha");
    make_here(f, "Docs");
    put_here(f, "Docs/b.txt", "beta!!");
    make_here(f, "Dark");
    sync_now(f);
    sync_now(f); /* the feed has told of all */
    const uint64_t item = item_of(f, 5);
    assert_int_not_equal(item, 0);
    move_here(f, "a.txt", "Dark/a.txt");
    dark = "Dark";
    return item;
}

CASE(what_is_moved_to_a_folder_that_cannot_be_read_keeps_its_item)
{
    const uint64_t item = hide(f);
    sync_now(f);
    pass(f, 60);
    sync_now(f);
    assert_int_equal(item_of(f, 5), item); /* not deleted */
    assert_int_equal(parent_of(f, 5), TIDE_DRIVE_ROOT);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
    /* All else goes on: what comes, what is new, what is moved out of a folder that is gone. */
    put_online(f, "new.txt", "new");
    move_here(f, "Docs/b.txt", "b.txt");
    remove_here(f, "Docs");
    const uint64_t moved = item_of(f, 6);
    sync_now(f);
    assert_here(f, "new.txt", "new");
    assert_int_equal(item_of(f, 6), moved);
    assert_int_equal(parent_of(f, 6), TIDE_DRIVE_ROOT);
    dark = NULL;
    const uint64_t sent = f->sent_bytes;
    sync_now(f);
    pass(f, 60);
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(item_of(f, 5), item); /* the same item, moved (I6) */
    assert_int_not_equal(parent_of(f, 5), TIDE_DRIVE_ROOT);
    assert_int_equal(f->sent_bytes, sent);
}

CASE(deletions_go_on_when_the_folder_is_gone_or_ignored)
{
    (void)hide(f);
    remove_here(f, "Docs/b.txt");
    sync_now(f);
    pass(f, 60);
    sync_now(f);
    assert_int_not_equal(item_of(f, 5), 0);
    assert_int_not_equal(item_of(f, 6), 0);
    ignore(f, "/Dark/");
    sync_now(f);
    pass(f, 60);
    sync_now(f);
    dark = NULL;
    assert_int_equal(item_of(f, 5), 0);
    assert_int_equal(item_of(f, 6), 0);
}

/* For ever must not be without a word (E6.4). */
CASE(deletions_that_wait_for_a_day_are_an_alert)
{
    (void)hide(f);
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM alert"), 0);
    pass(f, 86400 + 60);
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM alert WHERE condition = 'drive_owed' AND text"
                                " LIKE 'docs: 1 item is missing here and not deleted online%'"),
                     1);
    dark = NULL;
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM alert"), 0);
    assert_equal_trees(f);
}
