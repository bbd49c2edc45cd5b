/* Servers that fail, forget and lie; users who are careful (D4, D10, D20, D30 to D34, S12, S15). */
#include "drive_sync_fixture.h"

CASE(a_file_that_fails_is_owed_and_the_others_come)
{
    sync_now(f);
    sync_now(f);
    const uint64_t applied_ms = rows_of(f, "SELECT applied_ms FROM drive_@_state");
    assert_true(applied_ms > 0);
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    put_online(f, "Docs/c.txt", "gamma");
    pass(f, 60);
    fault(f, "{\"method\":\"graph.drive.content.get\",\"rate\":1,\"fault\":\"500\"}");
    fault(f, "{\"method\":\"graph.download.get\",\"rate\":1,\"fault\":\"500\"}");
    sync_now(f);
    assert_false(is_here(f, "a.txt"));
    assert_true(is_here(f, "Docs"));
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed WHERE length(error) > 0"), 3);
    /* A watcher's sync does not try it before its time; a user's does. */
    assert_int_equal(rows_of(f, "SELECT max(attempts) FROM drive_@_owed"), 1);
    sync_changed(f);
    assert_int_equal(rows_of(f, "SELECT max(attempts) FROM drive_@_owed"), 1);
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed WHERE attempts = 2"), 3);
    /* The tidemark is before all that is owed, however often it is synced (D4). */
    const uint64_t stays_ms = rows_of(f, "SELECT applied_ms FROM drive_@_state");
    assert_in_range(stays_ms, applied_ms, applied_ms + 59999);
    sync_changed(f);
    assert_int_equal(rows_of(f, "SELECT applied_ms FROM drive_@_state"), stays_ms);
    no_faults(f);
    pass(f, 3700);
    sync_changed(f);
    assert_here(f, "a.txt", "alpha");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
    sync_now(f);
    assert_true(rows_of(f, "SELECT applied_ms FROM drive_@_state") > stays_ms + 60000);
}

CASE(one_500_costs_nothing_but_time)
{
    put_online(f, "a.txt", "alpha");
    put_here(f, "b.txt", "beta");
    fault(f, "{\"method\":\"graph.*\",\"count\":3,\"fault\":\"500\"}");
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

CASE(a_server_that_forgot_its_tokens_deletes_nothing_here)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    online(f, "delete", "{\"path\":\"b.txt\"}");
    fault(f, "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"resync-upload\"}");
    sync_now(f);
    assert_here(f, "b.txt", "beta"); /* missing means forgotten: it is sent again (D34) */
    assert_equal_trees(f);
}

CASE(a_resync_that_applies_differences_deletes_what_is_missing)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    online(f, "delete", "{\"path\":\"b.txt\"}");
    fault(f, "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"resync-apply\"}");
    sync_now(f);
    assert_false(is_here(f, "b.txt"));
    assert_equal_trees(f);
}

CASE(a_tombstone_that_was_lost_is_found_within_a_day)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    online(f, "delete", "{\"path\":\"b.txt\"}");
    put_online(f, "a.txt", "alpha two");
    fault(f, "{\"method\":\"graph.drive.delta\",\"rate\":1,\"fault\":\"delta-no-removals\"}");
    sync_now(f);
    no_faults(f);
    sync_now(f);
    assert_here(f, "b.txt", "beta");
    pass(f, 25 * 3600);
    sync_now(f);
    assert_false(is_here(f, "b.txt"));
    assert_equal_trees(f);
}

/* It changed here: it is a new file, now, and not tried in vain until the next listing. */
CASE(a_file_whose_tombstone_was_lost_is_made_anew)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    online(f, "delete", "{\"path\":\"b.txt\"}");
    put_online(f, "a.txt", "alpha two");
    fault(f, "{\"method\":\"graph.drive.delta\",\"rate\":1,\"fault\":\"delta-no-removals\"}");
    sync_now(f);
    no_faults(f);
    put_here(f, "b.txt", "beta two");
    sync_now(f);
    sync_now(f);
    assert_here(f, "b.txt", "beta two");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

CASE(pages_in_any_order_and_old_ones_do_no_harm)
{
    for (int i = 0; i < 30; i++)
        put_online(f, textf("d%d/e%d/f%d.txt", i % 3, i % 5, i), textf("text %d", i));
    fault(f, "{\"method\":\"graph.drive.delta\",\"rate\":1,\"fault\":\"delta-backwards\"}");
    sync_now(f);
    assert_equal_trees(f);
    no_faults(f);
    for (int i = 0; i < 10; i++)
        put_online(f, textf("d%d/e%d/f%d.txt", i % 3, i % 5, i), textf("text %d two", i));
    fault(f, "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"delta-old\"}");
    sync_now(f);
    sync_now(f);
    assert_equal_trees(f);
}

CASE(ignored_paths_stay_where_they_are)
{
    put_online(f, "a.tmp", "online");
    put_online(f, "Docs/b.txt", "beta");
    make_here(f, "cache");
    put_here(f, "cache/x.txt", "here");
    ignore(f, "*.tmp");
    ignore(f, "/cache/");
    sync_now(f);
    assert_false(is_here(f, "a.tmp"));
    assert_true(is_here(f, "Docs/b.txt"));
    char *tree = tree_online(f);
    assert_null(strstr(tree, "cache"));
    assert_non_null(strstr(tree, "a.tmp"));
    free(tree);
}

CASE(many_deletions_wait_for_consent)
{
    for (int i = 0; i < 30; i++)
        put_online(f, textf("f%d.txt", i), textf("text %d", i));
    sync_now(f);
    for (int i = 0; i < 20; i++)
        remove_here(f, textf("f%d.txt", i));
    put_online(f, "new.txt", "flows");
    sync_now(f);
    assert_here(f, "new.txt", "flows");
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_deletion"), 20);
    char *tree = tree_online(f);
    assert_non_null(strstr(tree, " f0.txt\n"));
    free(tree);
    accept_deletions(f);
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_deletion"), 0);
}

CASE(a_folder_that_is_not_mounted_stops_the_drive)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    remove_here(f, ".tidemark-root");
    remove_here(f, "a.txt");
    (void)try_sync(f, false);
    char *tree = tree_online(f);
    assert_non_null(strstr(tree, " a.txt\n"));
    free(tree);
}

CASE(a_download_only_drive_sends_nothing)
{
    put_online(f, "a.txt", "alpha");
    set_mode(f, TIDE_DRIVE_DOWNLOAD_ONLY);
    put_here(f, "b.txt", "beta");
    sync_now(f);
    assert_here(f, "a.txt", "alpha");
    char *tree = tree_online(f);
    assert_null(strstr(tree, "b.txt"));
    free(tree);
}

CASE(a_large_file_comes_in_pieces_over_connections_that_break)
{
    online(f, "put", "{\"path\":\"big.bin\",\"size\":12000000,\"seed\":7}");
    fault(f, "{\"method\":\"graph.download.get\",\"count\":3,\"fault\":\"truncate\"}");
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(temporaries(f), 0);
}

/* The state is checked after a crash, with rows of every table. */
CASE(a_process_that_dies_while_an_item_is_owed_starts_again)
{
    put_online(f, "a.txt", "alpha");
    fault(f, "{\"method\":\"graph.download.get\",\"rate\":1,\"fault\":\"500\"}");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 1);
    tide_sim_crash_after(f->sim, 1, TIDE_SIM_CRASH_KILL);
    (void)try_sync(f, false);
    life_end(f);
    tide_sim_reboot(f->sim);
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    no_faults(f);
    if (life_begin(f) != TIDE_OK)
        fail_msg("%s", f->err.text);
    pass(f, 3700);
    sync_now(f);
    assert_equal_trees(f);
}

/* D4: it is shown no longer. */
CASE(what_is_owed_and_no_longer_wanted_is_paid)
{
    put_online(f, "a.txt", "alpha");
    fault(f, "{\"method\":\"graph.download.get\",\"rate\":1,\"fault\":\"500\"}");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 1);
    online(f, "delete", "{\"path\":\"a.txt\"}");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}
