/* drive_drives_test.c - the drives of a home (DRV1 to DRV3).
 *
 * Goal: a drive has tables and rules of its own, and removing it leaves those of the others; names
 * and folders never overlap; a number is never given again.
 * Method: one SQLite database in memory with the account rows that a ledger would have. */
#include "db/db.h"
#include "drive/drives.h"
#include "drive/ids.h"
#include "drive/mounts.h"
#include "support/ok.h"
#include "support/test.h"

struct fixture {
    sqlite3 *handle;
    tide_rows db;
    tide_error err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(sqlite3_open(":memory:", &f->handle), SQLITE_OK);
    f->db.sqlite = f->handle;
    assert_int_equal(sqlite3_exec(f->handle,
                                  "CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT);"
                                  "INSERT INTO account VALUES(7, 'ada@example.com');"
                                  "CREATE TABLE alert(condition TEXT, account INTEGER)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(sqlite3_close(f->handle), SQLITE_OK);
    free(f);
    return 0;
}

static struct tide_drive_row make(const char *name, const char *dir)
{
    struct tide_drive_row row = {.account = 7, .drive_id = "d", .root_id = "r", .marker = "m"};
    (void)snprintf(row.name, sizeof row.name, "%s", name);
    (void)snprintf(row.dir, sizeof row.dir, "%s", dir);
    return row;
}

static void count_it(const struct tide_drive_row *row, void *arg)
{
    assert_true(row->number > 0);
    ++*(int *)arg;
}

static int drives_count(struct fixture *f)
{
    int count = 0;
    OK(tide_drives_each(f->db, count_it, &count, &f->err));
    return count;
}

static uint64_t number_of(struct fixture *f, const char *sql)
{
    uint64_t number = 0;
    OK(tide_rows_number(f->db, "the test", &number, &f->err, sql));
    return number;
}

TEST_ON(a_home_without_drives_has_none, struct fixture *f, setup, teardown)
{
    struct tide_drive_row row;
    assert_int_equal(drives_count(f), 0);
    assert_int_equal(tide_drives_get(f->db, 1, &row, &f->err), TIDE_NOT_FOUND);
    assert_int_equal(tide_drives_named(f->db, "x", &row, &f->err), TIDE_NOT_FOUND);
}

TEST_ON(a_drive_is_read_as_it_was_added, struct fixture *f, setup, teardown)
{
    struct tide_drive_row row = make("OneDrive", "/home/ada/OneDrive");
    struct tide_drive_row back;
    row.mode = TIDE_DRIVE_UPLOAD_ONLY;
    row.business = true;
    OK(tide_drives_tables(f->db, &f->err));
    OK(tide_rows_do(f->db, "the test", &f->err,
                    "INSERT INTO drive_account VALUES(7, ?1, 'http://localhost:1')",
                    "ada@example.com"));
    OK(tide_drives_add(f->db, &row, &f->err));
    OK(tide_drives_named(f->db, "OneDrive", &back, &f->err));
    assert_int_equal(back.number, row.number);
    assert_int_equal(back.account, 7);
    assert_string_equal(back.account_name, "ada@example.com");
    assert_string_equal(back.endpoint, "http://localhost:1");
    assert_string_equal(back.dir, "/home/ada/OneDrive");
    assert_string_equal(back.drive_id, "d");
    assert_string_equal(back.root_id, "r");
    assert_string_equal(back.marker, "m");
    assert_int_equal(back.mode, TIDE_DRIVE_UPLOAD_ONLY);
    assert_true(back.business);
    const uint64_t before = number_of(f, "SELECT changed FROM drive_1_state");
    OK(tide_drives_mode_set(f->db, row.number, TIDE_DRIVE_TWO_WAY, &f->err));
    assert_int_equal(number_of(f, "SELECT changed FROM drive_1_state"), before + 1);
    OK(tide_drives_get(f->db, row.number, &back, &f->err));
    assert_int_equal(back.mode, TIDE_DRIVE_TWO_WAY);
}

/* Each pair of folders that overlap, in both orders, and those that only look so (DRV2). */
TEST_ON(names_and_folders_never_overlap, struct fixture *f, setup, teardown)
{
    struct tide_drive_row first = make("a", "/home/ada/One");
    struct tide_drive_row same_name = make("a", "/srv/x");
    struct tide_drive_row same_dir = make("b", "/home/ada/One");
    struct tide_drive_row inside = make("b", "/home/ada/One/deep/er");
    struct tide_drive_row around = make("b", "/home/ada");
    struct tide_drive_row beside = make("b", "/home/ada/OneDrive");
    OK(tide_drives_add(f->db, &first, &f->err));
    assert_int_equal(tide_drives_add(f->db, &same_name, &f->err), TIDE_EXISTS);
    assert_int_equal(tide_drives_add(f->db, &same_dir, &f->err), TIDE_EXISTS);
    assert_int_equal(tide_drives_add(f->db, &inside, &f->err), TIDE_EXISTS);
    assert_int_equal(tide_drives_add(f->db, &around, &f->err), TIDE_EXISTS);
    assert_int_equal(drives_count(f), 1);
    OK(tide_drives_add(f->db, &beside, &f->err));
    assert_int_equal(drives_count(f), 2);
}

static void seen_in(struct fixture *f, uint32_t number)
{
    const struct tide_drive_seen seen = {.id = TIDE_TEXT("x"),
                                         .parent_id = TIDE_TEXT("r"),
                                         .name = TIDE_TEXT("n"),
                                         .kind = TIDE_DRIVE_FOLDER,
                                         .state = TIDE_DRIVE_REMOTE_LIVE};
    uint64_t item = 0;
    OK(tide_drive_remote_put(tide_drives_rows(f->db, number), &seen, &item, &f->err));
}

/* DRV1, DRV3.  Drive 1 and drive 11: a pattern of names must not take the one for the other. */
TEST_ON(removing_a_drive_takes_its_tables_and_no_others, struct fixture *f, setup, teardown)
{
    char name[16], dir[32];
    struct tide_drive_row rows[11];
    uint64_t item = 0;
    for (int i = 0; i < 11; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)snprintf(dir, sizeof dir, "/d%d", i);
        rows[i] = make(name, dir);
        OK(tide_drives_add(f->db, &rows[i], &f->err));
        seen_in(f, rows[i].number);
    }
    OK(tide_drive_rules_add(f->db, rows[0].number, TIDE_TEXT("*.tmp"), &f->err));
    OK(tide_drive_rules_add(f->db, rows[10].number, TIDE_TEXT("*.tmp"), &f->err));
    OK(tide_drives_remove(f->db, rows[0].number, &f->err));
    assert_int_equal(number_of(f, "SELECT count(*) FROM sqlite_master WHERE name GLOB 'drive_1_*'"),
                     0);
    assert_int_equal(number_of(f, "SELECT count(*) FROM drive_rule"), 1);
    OK(tide_drive_item_of(tide_drives_rows(f->db, rows[10].number), TIDE_TEXT("x"), &item,
                          &f->err));
    assert_int_equal(tide_drives_remove(f->db, rows[0].number, &f->err), TIDE_NOT_FOUND);
    OK(tide_drives_remove(f->db, rows[10].number, &f->err));
    struct tide_drive_row again = make("n0", "/d0");
    OK(tide_drives_add(f->db, &again, &f->err));
    assert_true(again.number > rows[10].number);
    assert_int_equal(
        tide_drive_item_of(tide_drives_rows(f->db, again.number), TIDE_TEXT("x"), &item, &f->err),
        TIDE_NOT_FOUND);
}

static void join(tide_text pattern, void *arg)
{
    char *text = arg;
    (void)snprintf(text + strlen(text), 100 - strlen(text), "%.*s;", (int)pattern.bytes,
                   pattern.data);
}

/* Registers the shortcut "s1" of the drive as a shared folder. */
static struct tide_drive_row share(struct fixture *f, uint32_t parent)
{
    struct tide_drive_row row = make("", "/home/ada/OneDrive/Team");
    OK(tide_drive_mount_seen(f->db, parent, TIDE_TEXT("s1"), TIDE_TEXT("bobs"), TIDE_TEXT("t1"),
                             &f->err));
    OK(tide_drive_mount_register(f->db, parent, "s1", "Team", &row, &f->err));
    return row;
}

TEST_ON(a_shared_folder_is_a_drive_inside_of_its_parent, struct fixture *f, setup, teardown)
{
    struct tide_drive_row parent = make("OneDrive", "/home/ada/OneDrive"), back;
    OK(tide_drives_add(f->db, &parent, &f->err));
    OK(tide_drive_rules_add(f->db, parent.number, TIDE_TEXT("*.tmp"), &f->err));
    OK(tide_drive_rules_add(f->db, parent.number, TIDE_TEXT("/top/"), &f->err));
    const struct tide_drive_row row = share(f, parent.number);
    assert_string_equal(row.name, "OneDrive/Team");
    OK(tide_drives_get(f->db, row.number, &back, &f->err));
    assert_int_equal(back.parent, parent.number);
    assert_string_equal(back.parent_name, "OneDrive");
    assert_int_equal(back.mount, TIDE_DRIVE_MOUNT_NEW);
    assert_false(tide_drive_row_syncs(&back));
    assert_int_equal(number_of(f, "SELECT count(*) FROM drive_rule WHERE drive = 2"), 1);
    /* DMT1: it has its drive. */
    struct tide_drive_row twice = make("", "/home/ada/OneDrive/Twice");
    assert_int_equal(
        tide_drive_mount_register(f->db, parent.number, "s1", "Twice", &twice, &f->err),
        TIDE_STALE);
    /* DRV2 still holds for drives of a user. */
    struct tide_drive_row inside = make("inside", "/home/ada/OneDrive/Team/inside");
    assert_int_equal(tide_drives_free(f->db, &inside, &f->err), TIDE_EXISTS);
}

TEST_ON(a_shared_folder_that_is_removed_stays_known, struct fixture *f, setup, teardown)
{
    struct tide_drive_row parent = make("OneDrive", "/home/ada/OneDrive");
    OK(tide_drives_add(f->db, &parent, &f->err));
    struct tide_drive_row row = share(f, parent.number);
    OK(tide_drives_remove(f->db, row.number, &f->err));
    assert_int_equal(drives_count(f), 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM drive_mount WHERE drive = 0 AND state = 3"),
                     1);
    /* With its parent all of it goes. */
    OK(tide_drive_mount_state_set(f->db, parent.number, "s1", TIDE_DRIVE_MOUNT_NEW, "", &f->err));
    row = make("", "/home/ada/OneDrive/Team");
    OK(tide_drive_mount_register(f->db, parent.number, "s1", "Team", &row, &f->err));
    OK(tide_drives_remove(f->db, parent.number, &f->err));
    assert_int_equal(drives_count(f), 0);
    assert_int_equal(number_of(f, "SELECT count(*) FROM drive_mount"), 0);
    assert_int_equal(
        number_of(f, "SELECT count(*) FROM sqlite_master WHERE name GLOB 'drive_[0-9]*'"), 0);
}

TEST_ON(rules_keep_their_order, struct fixture *f, setup, teardown)
{
    struct tide_drive_row row = make("a", "/a");
    char text[100] = "";
    OK(tide_drives_add(f->db, &row, &f->err));
    OK(tide_drive_rules_add(f->db, row.number, TIDE_TEXT("z*"), &f->err));
    OK(tide_drive_rules_add(f->db, row.number, TIDE_TEXT("!zoo"), &f->err));
    OK(tide_drive_rules_add(f->db, row.number, TIDE_TEXT("a"), &f->err));
    assert_int_equal(tide_drive_rules_add(f->db, row.number, TIDE_TEXT("z*"), &f->err),
                     TIDE_EXISTS);
    assert_int_equal(tide_drive_rules_add(f->db, row.number, TIDE_TEXT("a\nb"), &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_drive_rules_add(f->db, row.number, TIDE_TEXT(""), &f->err), TIDE_INVALID);
    const uint64_t before = number_of(f, "SELECT changed FROM drive_1_state");
    OK(tide_drive_rules_remove(f->db, row.number, TIDE_TEXT("a"), &f->err));
    assert_int_equal(number_of(f, "SELECT changed FROM drive_1_state"), before + 1);
    assert_int_equal(tide_drive_rules_remove(f->db, row.number, TIDE_TEXT("a"), &f->err),
                     TIDE_NOT_FOUND);
    OK(tide_drive_rules_each(f->db, row.number, join, text, &f->err));
    assert_string_equal(text, "z*;!zoo;");
}

TEST(modes_have_names)
{
    tide_drive_mode mode = TIDE_DRIVE_TWO_WAY;
    tide_error err = {TIDE_OK, 0, ""};
    OK(tide_drive_mode_of("download-only", &mode, &err));
    assert_int_equal(mode, TIDE_DRIVE_DOWNLOAD_ONLY);
    assert_string_equal(tide_drive_mode_name(mode), "download-only");
    assert_int_equal(tide_drive_mode_of("both", &mode, &err), TIDE_INVALID);
    assert_int_equal(mode, TIDE_DRIVE_DOWNLOAD_ONLY);
}

/* D13: the id of a business drive is sent as the server gave it; in one of a person both cases are the
 * same, and leading zeros are missing in some answers. */
TEST(ids_of_drives_keep_their_case_unless_they_are_numbers)
{
    char id[TIDE_DRIVE_LOOK_ID_BYTES];
    tide_drive_id_of_drive(TIDE_TEXT("b!Ab-C_dE"), id);
    assert_string_equal(id, "b!Ab-C_dE");
    tide_drive_id_of_drive(TIDE_TEXT("AB12"), id);
    assert_string_equal(id, "000000000000ab12");
    tide_drive_id_lower(TIDE_TEXT("01ABC!s2"), id);
    assert_string_equal(id, "01abc!s2");
}
