/* sqlite_file.c - what is true of a ledger in a SQLite file alone: its log, copies of it, and one process.
 * Damage and upgrades are in tests/unit/db/migrate_test.c. */
#include "ledger_fixture.h"

CASE(a_backup_of_a_live_ledger_is_whole)
{
    uint64_t id = add_plain(f);
    char path[100];
    (void)snprintf(path, sizeof path, "%s/copy.db", f->store.dir);
    OK(tide_ledger_backup(f->ledger, path, &f->err));
    assert_int_equal(tide_ledger_backup(f->ledger, path, &f->err), TIDE_EXISTS);
    uint64_t later = add_plain(f);
    uint32_t left = 9;
    OK(tide_ledger_checkpoint(f->ledger, &left, &f->err));
    assert_int_equal(left, 0);

    struct tide_ledger_options options = {.path = path, .run_id = "r", .must_exist = true};
    tide_ledger *original = f->ledger;
    OK(tide_ledger_open(f->store.world, &options, &f->ledger, &f->err));
    assert_state(f, id, TIDE_ROW_PENDING);
    assert_int_equal(look(f, later).count, 0);
    tide_ledger_close(f->ledger, true);
    f->ledger = original;
}

static bool no_member(const struct tide_member *member, void *arg)
{
    (void)member;
    (void)arg;
    fail_msg("a SQLite ledger has no members");
    return false;
}

/* One process works on a file: it needs no lease, and the lists of commands are empty. */
CASE(a_file_has_no_fleet)
{
    const struct tide_member member = {.owner = 11, .name = "host", .version = "1"};
    assert_false(tide_ledger_shared(f->ledger));
    assert_int_equal(tide_ledger_member_join(f->ledger, &member, 15000, NOW, &f->err),
                     TIDE_INVALID);
    OK(tide_ledger_members(f->ledger, no_member, NULL, &f->err));
    assert_int_equal(account_row(f, f->account).owner, 0);
    uint64_t units = 7;
    begin(f);
    assert_int_equal(
        tide_ledger_grant(f->tx, "project", 11, 100, 10, 60000, 15000, NOW, &units, &f->err),
        TIDE_INVALID);
    commit(f);
    assert_int_equal(units, 7);
    /* Every running job is of this process or of one that has ended. */
    uint64_t id = add_plain(f);
    assert_true(claim_as(f, id, 7) != 0);
    assert_int_equal(reclaim(f, 7, NOW), 0);
    assert_int_equal(reclaim(f, 8, NOW), 1);
    assert_state(f, id, TIDE_ROW_PENDING);
}
