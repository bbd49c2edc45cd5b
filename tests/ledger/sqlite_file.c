/* sqlite_file.c - what is true of a ledger in a SQLite file alone: its log, and copies of it.
 * Damage and upgrades are in tests/unit/db/migrate_test.c. */
#include "ledger_fixture.h"

static void a_backup_of_a_live_ledger_is_whole(void **state)
{
    struct fixture *f = *state;
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

static const struct CMUnitTest tests[] = {
    CASE(a_backup_of_a_live_ledger_is_whole),
};
GROUP(sqlite_file, tests);
