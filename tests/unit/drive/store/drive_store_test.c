/* drive_store_test.c - the state of a drive (DST1 to DST6): whose it is and of which version.
 *
 * Goal: rows are what finished rounds and scans proved; a plan made from the working set is the plan
 * made from all rows; a file of a newer version is left alone.
 * Method: one SQLite database in memory; each rule of the feed and of scans as a short story, a file
 * for each topic.  Crashes are in tests/sim/drive. */
#include "drive_store_fixture.h"

#include "drive/store/concerns.h"

TEST_ON(a_newer_state_is_left_alone, struct fixture *f, setup, teardown)
{
    OK(tide_rows_do(f->db, "a test", &f->err, "UPDATE drive_@_state SET version = 99"));
    OK(tide_rows_do(f->db, "a test", &f->err, "DROP TABLE drive_@_conflict"));
    assert_int_equal(tide_drive_store_tables(f->db, &f->err), TIDE_NEWER);
    assert_int_equal(
        number(f, "SELECT count(*) FROM sqlite_schema WHERE name = 'drive_@_conflict'"), 0);
}

/* What version 1 had: an item that is owed counts from its next failure. */
TEST_ON(an_older_state_is_upgraded, struct fixture *f, setup, teardown)
{
    struct tide_drive_concerns concerns;
    struct tide_drive_owed owed = {.item = 7, .error = TIDE_TEXT("500"), .now_ms = 5000};
    OK(tide_drive_owe(f->db, &owed, &f->err));
    OK(tide_rows_do(f->db, "a test", &f->err, "ALTER TABLE drive_@_state DROP COLUMN trouble"));
    OK(tide_rows_do(f->db, "a test", &f->err, "ALTER TABLE drive_@_owed DROP COLUMN since_ms"));
    OK(tide_rows_do(f->db, "a test", &f->err, "ALTER TABLE drive_@_owed DROP COLUMN bad"));
    OK(tide_rows_do(f->db, "a test", &f->err, "UPDATE drive_@_state SET version = 1"));
    OK(tide_drive_store_tables(f->db, &f->err));
    OK(tide_drive_store_tables(f->db, &f->err)); /* once */
    OK(tide_drive_concerns(f->db, 1000000, &concerns, &f->err));
    assert_int_equal(concerns.owed, 1);
    assert_int_equal(concerns.old, 0);
    owed.now_ms = 9000;
    OK(tide_drive_owe(f->db, &owed, &f->err));
    OK(tide_drive_concerns(f->db, 1000000, &concerns, &f->err));
    assert_int_equal(concerns.old, 1);
    assert_int_equal(concerns.oldest_ms, 9000);
}

TEST_ON(the_state_of_another_drive_is_refused, struct fixture *f, setup, teardown)
{
    const struct tide_drive_home drive = {"other", "root", "marker"};
    const struct tide_drive_home folder = {"drive", "root", "other"};
    OK(tide_drive_store_set_up(f->db, &home, &f->err));
    assert_int_equal(tide_drive_store_set_up(f->db, &drive, &f->err), TIDE_INVALID);
    assert_int_equal(tide_drive_store_set_up(f->db, &folder, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "not mounted"));
}

/* Two drives of one home: the tables of each are its own, and go alone. */
TEST_ON(drives_of_one_database_do_not_meet, struct fixture *f, setup, teardown)
{
    const struct tide_drive_home drive = {"drive two", "root", "marker two"};
    tide_rows other = f->db;
    bool there = false;
    uint64_t item = 0;
    other.number = 20;
    OK(tide_drive_store_tables(other, &f->err));
    OK(tide_drive_store_set_up(other, &drive, &f->err));
    const struct tide_drive_seen here = seen("a", "root", "one", 1);
    const struct tide_drive_seen there_too = seen("a", "root", "two", 2);
    OK(tide_drive_remote_put(f->db, &here, &item, &f->err));
    OK(tide_drive_remote_put(other, &there_too, &item, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM drive_1_remote WHERE name = X'6f6e65'"), 1);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_20_remote WHERE name = X'74776f'"), 1);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_sequence WHERE name = 'drive_20_local'"
                               " AND seq = 1"),
                     1);

    OK(tide_drive_store_remove(other, &f->err));
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'drive_20%'"),
                     0);
    OK(tide_rows_has(f->db, "drive_@_state", "a test", &there, &f->err));
    assert_true(there);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_1_remote"), 1);
}

/* A damaged file is an error, not an empty drive. */
TEST(a_damaged_file_is_an_error)
{
    char path[] = "/tmp/drive-store-XXXXXX";
    const int fd = mkstemp(path);
    tide_error err = {TIDE_OK, 0, ""};
    sqlite3 *handle = NULL;
    assert_true(fd >= 0);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    tide_rows db = {.sqlite = handle, .number = 1};
    OK(tide_drive_store_tables(db, &err));
    OK(tide_drive_store_set_up(db, &home, &err));
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    FILE *file = fopen(path, "r+");
    for (long at = 1024; at < 64 << 10; at += 512) {
        (void)fseek(file, at, SEEK_SET);
        (void)fwrite("damage", 1, 6, file);
    }
    (void)fclose(file);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    db.sqlite = handle;
    tide_status rc = tide_drive_store_tables(db, &err);
    if (rc == TIDE_OK)
        rc = tide_drive_store_set_up(db, &home, &err);
    assert_int_not_equal(rc, TIDE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    assert_int_equal(remove(path), 0);
}
