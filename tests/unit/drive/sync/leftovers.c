/* Files of ours that no action has any more (D42, I16): they go, and nothing of a user's goes with them. */
#include "drive_sync_fixture.h"

#include "drive/sync/inside.h"
#include "ledger/rows.h"

CASE(a_part_that_no_row_wants_goes)
{
    put_online(f, "d/a.txt", "alpha");
    sync_now(f);
    put_here(f, "d/.tidemark-0123abcd.partial", "of a file that is no longer online");
    life_end(f);
    OK(life_begin(f));
    sync_now(f);
    assert_int_equal(temporaries(f), 0);
    assert_equal_trees(f);
}

CASE(a_part_goes_while_the_process_stays)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    put_here(f, ".tidemark-0123abcd.partial", "of an action that was superseded");
    sync_now(f); /* sees it */
    sync_now(f);
    assert_int_equal(temporaries(f), 0);
}

/* The connection breaks at each try: what came is kept for the next process. */
CASE(a_part_of_a_download_to_come_stays)
{
    online(f, "put", "{\"path\":\"big.bin\",\"size\":12000000,\"seed\":7}");
    fault(f, "{\"method\":\"graph.download.get\",\"rate\":1,\"fault\":\"truncate\"}");
    (void)try_sync(f, false);
    assert_int_equal(temporaries(f), 1);
    no_faults(f);
    life_end(f);
    pass(f, 3700);
    OK(life_begin(f));
    const uint64_t got = f->got_bytes;
    sync_now(f);
    assert_equal_trees(f);
    assert_true(f->got_bytes - got < 12000000);
    assert_int_equal(temporaries(f), 0);
}

/* The version before was replaced by a download: it is no copy (I19). */
CASE(a_replaced_file_whose_job_is_late_makes_no_copy)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    put_online(f, "a.txt", "alpha two");
    sync_now(f);
    put_here(f, ".tidemark-0123abcd.old", "alpha");
    pass(f, 120);
    sync_now(f);
    sync_now(f);
    assert_int_equal(temporaries(f), 0);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 1);
}

/* A program wrote to it before it could be looked at. */
CASE(a_replaced_file_with_bytes_that_nobody_knows_becomes_a_copy)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    put_here(f, ".tidemark-0123abcd.old", "alpha, and more");
    pass(f, 120);
    life_end(f);
    OK(life_begin(f));
    sync_now(f);
    sync_now(f);
    assert_int_equal(temporaries(f), 0);
    assert_equal_trees(f);
    char *tree = tree_online(f);
    assert_non_null(strstr(tree, "recovered.conflict-"));
    free(tree);
}

/* Else the folder could never go. */
CASE(a_folder_goes_though_a_file_in_it_was_half_downloaded)
{
    online(f, "put", "{\"path\":\"d/big.bin\",\"size\":12000000,\"seed\":7}");
    fault(f, "{\"method\":\"graph.download.get\",\"rate\":1,\"fault\":\"truncate\"}");
    (void)try_sync(f, false);
    assert_int_equal(temporaries(f), 1);
    no_faults(f);
    online(f, "delete", "{\"path\":\"d\"}");
    for (int i = 0; i < 3; i++) {
        (void)try_sync(f, false);
        pass(f, 120);
    }
    assert_false(is_here(f, "d"));
    assert_equal_trees(f);
}

/* A download that an earlier run had placed, and a newer version that a round sees before its end is
 * recorded. */
static tide_status settle_with_later(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tide_drive_task *task = arg;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), task->order.drive);
    TIDE_TRY(tide_drive_look_remote(db, task->order.item, &task->remote, err));
    TIDE_TRY(tide_drive_look_local(db, task->order.row, &task->local, err));
    task->found = (struct tide_drive_found){.identity = task->local.identity,
                                            .mtime_ns = task->local.mtime_ns,
                                            .ctime_ns = task->local.ctime_ns,
                                            .nlink = 1,
                                            .mode = 0644,
                                            .kind = TIDE_DRIVE_FILE,
                                            .state = TIDE_DRIVE_LOCAL_LIVE,
                                            .content = task->local.content};
    task->found_parent = task->local.parent;
    TIDE_TRY(tide_rows_do(db, "a newer version", err,
                          "UPDATE drive_@_remote SET etag = 'later', ctag = 'later', bytes = 9 "
                          "WHERE item = ?1",
                          task->order.item));
    return tide_drive_settle(transaction, task, err);
}

CASE(a_version_that_came_after_a_download_was_placed_is_not_taken_for_it)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    struct tide_drive_task task = {
        .order = {.drive = f->row.number,
                  .verb = TIDE_DRIVE_DOWN,
                  .item = rows_of(f, "SELECT item FROM drive_@_remote WHERE bytes = 5"),
                  .row = rows_of(f, "SELECT row FROM drive_@_local WHERE bytes = 5"),
                  .name = "a.txt"},
        .has_remote = true,
        .has_local = true,
        .has_found = true,
        .found_name = "a.txt"};
    OK(tide_transact(f->engine, settle_with_later, &task, &f->err));
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base WHERE bytes = 5"), 1);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base WHERE ctag = 'later'"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_remote WHERE ctag = 'later'"), 1);
}
