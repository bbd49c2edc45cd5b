/* Which file is which item, when plans, jobs and users cross each other (D22, D26, I10, S13). */
#include "drive_sync_fixture.h"

#include "drive/sync/inside.h"

/* A job of a plan that did not know yet what became of the row.  A round has told of the deletion by then, and
 * nothing was planned since. */
static tide_status mark_late(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tide_drive_order *order = arg;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), order->drive);
    struct tide_drive_local_look local;
    TIDE_TRY(tide_drive_look_local(db, order->row, &local, err));
    order->local_content = tide_drive_mark_local(&local);
    order->local_place = tide_drive_mark_local_place(&local);
    return tide_rows_do(db, "a deletion", err,
                        "UPDATE drive_@_remote SET state = 2 WHERE item ="
                        " (SELECT item FROM drive_@_base WHERE row = ?1)",
                        order->row);
}

static void run_late(struct fixture *f, struct tide_drive_order *order)
{
    tide_buf payload = heap_buf(8 << 10);
    OK(tide_transact(f->engine, mark_late, order, &f->err));
    OK(tide_drive_order_write(order, &payload));
    const struct tide_spec spec = {
        .kind = f->drive->act_kind, .account = f->row.account, .payload = tide_buf_cstr(&payload)};
    OK(tide_enqueue(f->engine, &spec, 1, NULL, &f->err));
    OK(tide_engine_wait(f->engine, 3600000, &f->err));
    tide_buf_done(&payload);
}

/* Two plans saw a new file.  The first one's job made its item, which a user deleted since: the second one's
 * must not make another.  Both would have that file, and neither would ever be settled. */
CASE(a_file_that_has_an_item_gets_no_second_one)
{
    put_here(f, "a.txt", "alpha");
    put_here(f, "b.txt", "beta");
    sync_now(f);
    sync_now(f); /* the feed has told of both */
    struct tide_drive_order order = {
        .drive = f->row.number,
        .verb = TIDE_DRIVE_NEW,
        .kind = TIDE_DRIVE_FILE,
        .row = rows_of(f, "SELECT row FROM drive_@_local WHERE bytes = 5"),
        .parent_item = TIDE_DRIVE_ROOT,
        .parent_row = TIDE_DRIVE_ROOT,
        .name = "a.txt"};
    online(f, "delete", "{\"path\":\"a.txt\"}");
    run_late(f, &order);
    char *tree = tree_online(f);
    assert_null(strstr(tree, "a.txt"));
    free(tree);
    sync_now(f);
    assert_false(is_here(f, "a.txt")); /* as the user wants it */
    assert_here(f, "b.txt", "beta");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 1);
}

/* D17: an item never changes its kind.  What has its name is another one, though no row knew it before. */
CASE(a_folder_takes_the_name_of_a_file)
{
    put_online(f, "a", "alpha");
    put_online(f, "b", "beta");
    sync_now(f);
    remove_here(f, "a");
    make_here(f, "a");
    put_here(f, "a/c.txt", "gamma");
    sync_now(f);
    sync_now(f);
    assert_equal_trees(f);
    assert_here(f, "a/c.txt", "gamma");
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 3);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

struct asked {
    uint32_t drive;
    const char *change; /* of the rows before */
    uint64_t row, first, second;
    bool first_other, second_other;
};

static tide_status ask(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct asked *asked = arg;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), asked->drive);
    struct tide_drive_local_look local;
    TIDE_TRY(
        tide_rows_do(db, "a pair", err, asked->change, asked->row, asked->first, asked->second));
    TIDE_TRY(tide_drive_look_local(db, asked->row, &local, err));
    TIDE_TRY(tide_drive_is_other_item(db, &local.identity, asked->first, &asked->first_other, err));
    return tide_drive_is_other_item(db, &local.identity, asked->second, &asked->second_other, err);
}

/* Whose file it is, for the gate of deletions online (S13). */
CASE(a_file_of_two_items_is_that_of_its_row)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "be");
    sync_now(f);
    struct asked asked = {
        .drive = f->row.number,
        .row = rows_of(f, "SELECT row FROM drive_@_local WHERE bytes = 2"),
        .first = rows_of(f, "SELECT item FROM drive_@_remote WHERE bytes = 5"),
        .second = rows_of(f, "SELECT item FROM drive_@_remote WHERE bytes = 2"),
    };
    /* The first item lost the file to the second one. */
    asked.change = "UPDATE drive_@_base SET (row, dev, inode, birth_ns) = (SELECT 0, dev, inode,"
                   " birth_ns FROM drive_@_local WHERE row = ?1) WHERE item = ?2 AND ?3 > 0";
    OK(tide_transact(f->engine, ask, &asked, &f->err));
    assert_true(asked.first_other);
    assert_false(asked.second_other);
    /* An editor renamed a new file over it: no baseline has its identity, but a scan found it at that row. */
    asked.change =
        "UPDATE drive_@_local SET inode = inode + 1000000 WHERE row = ?1 AND ?2 + ?3 > 0";
    OK(tide_transact(f->engine, ask, &asked, &f->err));
    assert_true(asked.first_other);
    assert_false(asked.second_other);
    /* Neither has a row: it may be either, so it is nobody else's. */
    asked.change =
        "UPDATE drive_@_base SET (row, inode) = (SELECT 0, inode FROM drive_@_local WHERE row"
        " = ?1) WHERE item IN (?2, ?3)";
    OK(tide_transact(f->engine, ask, &asked, &f->err));
    assert_false(asked.first_other);
    assert_false(asked.second_other);
}

/* Found by the simulation: a process died after its deletion online and before it could record that, and the file
 * was only moved.  Then nobody can tell whose deletion the feed reports: the file is kept (E1.9, S4). */
CASE(what_is_here_after_a_deletion_of_ours_without_an_end_is_kept)
{
    put_here(f, "a.txt", "alpha");
    put_here(f, "b.txt", "beta");
    sync_now(f);
    sync_now(f);
    move_here(f, "a.txt", "../aside.txt"); /* where no scan sees it */
    fault(f, "{\"method\":\"graph.drive.item.delete\",\"rate\":1,\"fault\":\"500\"}");
    (void)try_sync(f, false);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base WHERE strong IS NULL"), 1);
    no_faults(f);
    online(f, "delete", "{\"path\":\"a.txt\"}");
    move_here(f, "../aside.txt", "c.txt");
    sync_now(f);
    sync_now(f);
    assert_here(f, "c.txt", "alpha");
    assert_equal_trees(f);
}

/* The same the other way round. */
CASE(what_is_online_after_a_deletion_of_ours_without_an_end_is_kept)
{
    put_here(f, "a.txt", "alpha");
    put_here(f, "b.txt", "beta");
    sync_now(f);
    sync_now(f);
    const struct tide_drive_order order = {
        .drive = f->row.number,
        .item = rows_of(f, "SELECT item FROM drive_@_base WHERE bytes = 5")};
    struct tide_drive_task task = {.drive = f->drive, .order = order};
    OK(tide_drive_deletion_intent(&task, false, &f->err));
    remove_here(f, "a.txt"); /* and a user takes the item out of the recycle bin */
    sync_now(f);
    sync_now(f);
    assert_here(f, "a.txt", "alpha");
    assert_equal_trees(f);
}
