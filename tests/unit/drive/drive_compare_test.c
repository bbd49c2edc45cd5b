/* drive_compare_test.c - what a scan finds, compared with the rows (DCM1 to DCM4, DST3, DST8).
 *
 * Goal: a row is gone only by proof, unsure only where nothing could be read, and untouched where no
 * one looked; actions that write during a scan are not undone by it.
 * Method: a disk that is a list in this file, and a store in memory; something may happen after the
 * rows of a folder were read and before it is listed. */
#include "drive/local/compare.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

#include <sqlite3.h>

struct node {
    const char *folder, *name;
    uint64_t content; /* 0: a folder */
};

struct fixture {
    sqlite3 *handle;
    tide_rows db;
    tide_error err;
    struct node nodes[16];
    size_t nodes_count;
    const char *unreadable;                               /* a folder */
    void (*meanwhile)(struct fixture *f, tide_text path); /* rows were read, the folder was not */
    size_t written;
    unsigned slices;
    uint64_t now_ms;
};

static int setup(void **state)
{
    static const struct tide_drive_home home = {"drive", "root", "marker"};
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(sqlite3_open(":memory:", &f->handle), SQLITE_OK);
    f->db = (tide_rows){.sqlite = f->handle, .number = 1};
    OK(tide_drive_store_tables(f->db, &f->err));
    OK(tide_drive_store_set_up(f->db, &home, &f->err));
    f->now_ms = 5000;
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

static void add(struct fixture *f, const char *folder, const char *name, uint64_t content)
{
    f->nodes[f->nodes_count++] = (struct node){folder, name, content};
}

static void take_away(struct fixture *f, const char *folder, const char *name)
{
    for (size_t i = 0; i < f->nodes_count; i++)
        if (strcmp(f->nodes[i].folder, folder) == 0 && strcmp(f->nodes[i].name, name) == 0)
            f->nodes[i] = f->nodes[--f->nodes_count];
}

static struct tide_drive_found found_of(const struct node *node)
{
    struct tide_drive_found found = {
        .name = tide_text_of(node->name),
        .identity = {1, 1000 + node->content, 7},
        .kind = node->content == 0 ? TIDE_DRIVE_FOLDER : TIDE_DRIVE_FILE,
        .state = TIDE_DRIVE_LOCAL_LIVE,
        .nlink = 1,
        .content = {.bytes = node->content, .has_strong = node->content > 0}};
    memcpy(found.content.strong, &node->content, sizeof node->content);
    return found;
}

static tide_status write_slice(void *arg, struct tide_drive_difference *list, size_t count,
                               tide_error *err)
{
    struct fixture *f = arg;
    f->slices++;
    f->written += count;
    return tide_drive_scan_write(f->db, list, count, f->now_ms, err);
}

static tide_status read_folder(struct fixture *f, tide_drive_compare *compare, tide_text path,
                               tide_error *err)
{
    if (f->meanwhile != NULL)
        f->meanwhile(f, path);
    if (f->unreadable != NULL && tide_text_equal(path, tide_text_of(f->unreadable)))
        return tide_drive_compare_unread(compare, err);
    for (size_t i = 0; i < f->nodes_count; i++) {
        const struct node *node = &f->nodes[i];
        if (!tide_text_equal(path, tide_text_of(node->folder)))
            continue;
        const struct tide_drive_found found = found_of(node);
        const char *below =
            textf("%s%s%s", node->folder, *node->folder == '\0' ? "" : "/", node->name);
        const tide_text enter = tide_text_of(below);
        TIDE_TRY(
            tide_drive_compare_found(compare, &found, node->content == 0 ? &enter : NULL, err));
    }
    return tide_drive_compare_read(compare, err);
}

/* `end`: 0: it breaks off, 1: incomplete, 2: complete. */
static tide_status scan_in(struct fixture *f, tide_mem *mem, bool all, uint64_t row,
                           const char *folder, int end)
{
    const struct tide_drive_compare_options options = {
        .db = f->db, .write = write_slice, .arg = f, .all = all};
    tide_drive_compare *compare = NULL;
    tide_text path = TIDE_TEXT_NONE;
    f->written = f->slices = 0;
    TIDE_TRY(tide_drive_compare_new(&options, mem, &compare, &f->err));
    tide_status rc = tide_drive_compare_add(compare, row, tide_text_of(folder), &f->err);
    while (rc == TIDE_OK) {
        rc = tide_drive_compare_next(compare, &row, &path, &f->err);
        if (rc == TIDE_OK)
            rc = read_folder(f, compare, path, &f->err);
    }
    if (rc == TIDE_NOT_FOUND)
        rc = end == 0 ? TIDE_OK : tide_drive_compare_end(compare, end == 2, &f->err);
    tide_drive_compare_free(compare);
    return rc;
}

static void scan(struct fixture *f, int end)
{
    OK(scan_in(f, tide_mem_heap(), true, TIDE_DRIVE_ROOT, "", end));
}

static uint64_t number(struct fixture *f, const char *sql)
{
    uint64_t value = 0;
    OK(tide_rows_number(f->db, "a test", &value, &f->err, sql));
    return value;
}

/* State of the only row of that name; 0: it has none. */
static uint64_t state_of(struct fixture *f, const char *name)
{
    return number(f, textf("SELECT coalesce((SELECT state FROM drive_@_local WHERE name ="
                           " CAST('%s' AS BLOB)), 0)",
                           name));
}

static uint64_t row_of(struct fixture *f, const char *name)
{
    return number(f, textf("SELECT row FROM drive_@_local WHERE name = CAST('%s' AS BLOB)", name));
}

enum { NONE = 0, LIVE = 1, UNSURE = 3, GONE = 4, UNREAD = 5 };

/* d/x, d/e/z and y. */
static void some_files(struct fixture *f)
{
    add(f, "", "d", 0);
    add(f, "d", "x", 7);
    add(f, "d", "e", 0);
    add(f, "d/e", "z", 9);
    add(f, "", "y", 8);
    scan(f, 2);
    assert_int_equal(f->written, 5);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE state = 1"), 5);
    scan(f, 2);
    assert_int_equal(f->slices, 0);
}

TEST_ON(missing_in_a_folder_that_was_not_read_is_unsure, struct fixture *f, setup, teardown)
{
    some_files(f);
    take_away(f, "", "y");
    f->unreadable = "d";
    scan(f, 2);
    assert_int_equal(state_of(f, "d"), UNREAD);
    assert_int_equal(state_of(f, "x"), UNSURE);
    assert_int_equal(state_of(f, "e"), UNSURE);
    assert_int_equal(state_of(f, "z"), UNSURE); /* beneath what is unsure */
    assert_int_equal(state_of(f, "y"), GONE);
    scan(f, 2);
    assert_int_equal(f->slices, 0); /* it stays so, and that is no news */
    f->unreadable = NULL;
    scan(f, 2);
    assert_int_equal(f->written, 4);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE state = 1"), 4);
}

/* DCM6: what was moved to it must have its row before the folder counts as read. */
TEST_ON(a_folder_is_unread_until_a_scan_that_read_it_has_ended, struct fixture *f, setup, teardown)
{
    some_files(f);
    add(f, "", "empty", 0);
    scan(f, 2);
    f->unreadable = "empty"; /* it has no rows beneath it that could say so */
    scan(f, 2);
    assert_int_equal(state_of(f, "empty"), UNREAD);
    f->unreadable = NULL;
    add(f, "empty", "moved", 5);
    scan(f, 0); /* broke off */
    assert_int_equal(state_of(f, "empty"), UNREAD);
    scan(f, 1); /* not complete */
    assert_int_equal(state_of(f, "moved"), LIVE);
    assert_int_equal(state_of(f, "empty"), UNREAD);
    scan(f, 2);
    assert_int_equal(state_of(f, "empty"), LIVE);
    /* Named, it is no folder that is synced until then: the scan begins above it. */
    f->unreadable = "empty";
    OK(scan_in(f, tide_mem_heap(), false, row_of(f, "empty"), "empty", 2));
    assert_int_equal(state_of(f, "empty"), UNREAD);
    f->unreadable = NULL;
    OK(scan_in(f, tide_mem_heap(), false, TIDE_DRIVE_ROOT, "", 2));
    assert_int_equal(state_of(f, "empty"), LIVE);
}

TEST_ON(in_a_scan_that_did_not_finish_nothing_is_gone, struct fixture *f, setup, teardown)
{
    some_files(f);
    const uint64_t row = row_of(f, "y");
    take_away(f, "", "y");
    scan(f, 0);
    assert_int_equal(state_of(f, "y"), LIVE); /* not even in doubt: the scan broke off */
    scan(f, 1);
    assert_int_equal(state_of(f, "y"), UNSURE);
    scan(f, 1);
    assert_int_equal(number(f, "SELECT version FROM drive_@_local WHERE state = 3"), 2);
    /* A scan that sees it again ends the doubt. */
    add(f, "", "y", 8);
    scan(f, 2);
    assert_int_equal(state_of(f, "y"), LIVE);
    assert_int_equal(row_of(f, "y"), row);
}

TEST_ON(beneath_a_folder_that_is_gone_all_is_gone, struct fixture *f, setup, teardown)
{
    some_files(f);
    take_away(f, "", "d");
    scan(f, 2);
    assert_int_equal(f->written, 4);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE state = 4"
                               " AND gone_ms = 5000"),
                     4);
    f->now_ms = 9000;
    scan(f, 2);
    assert_int_equal(f->slices, 0); /* since when stays as it was */
    add(f, "", "d", 5);             /* a file of that name, with the old row */
    scan(f, 2);
    assert_int_equal(state_of(f, "d"), LIVE);
    assert_int_equal(state_of(f, "x"), GONE);
}

TEST_ON(only_new_folders_are_entered_below_the_one_that_changed, struct fixture *f, setup, teardown)
{
    some_files(f);
    take_away(f, "d", "x");
    take_away(f, "d/e", "z");
    add(f, "d", "n", 0);
    add(f, "d/n", "m", 0);
    add(f, "d/n/m", "w", 4);
    OK(scan_in(f, tide_mem_heap(), false, row_of(f, "d"), "d", 2));
    assert_int_equal(state_of(f, "w"), LIVE);
    assert_int_equal(state_of(f, "x"), GONE);
    assert_int_equal(state_of(f, "z"), LIVE); /* e did not change: nobody looked */
    assert_int_equal(state_of(f, "y"), LIVE);
    /* A folder that is another one now is entered, too. */
    OK(tide_rows_do(f->db, "a test", &f->err,
                    "UPDATE drive_@_local SET inode = 5 WHERE name = CAST('e' AS BLOB)"));
    OK(scan_in(f, tide_mem_heap(), false, row_of(f, "d"), "d", 2));
    assert_int_equal(state_of(f, "z"), GONE);
}

/* ---- actions that write meanwhile ---- */

static void place(struct fixture *f, const char *folder, const char *name, uint64_t content)
{
    const struct node node = {folder, name, content};
    struct tide_drive_found found = found_of(&node);
    uint64_t row = 0;
    found.parent = *folder == '\0' ? TIDE_DRIVE_ROOT : row_of(f, folder);
    OK(tide_drive_scan_put(f->db, &found, &row, &f->err));
}

/* A download: on the disk before the folder is listed, with its row. */
static void download(struct fixture *f, tide_text path)
{
    if (path.bytes > 0)
        return;
    add(f, "", "n", 30);
    place(f, "", "n", 30);
}

/* It was listed without it. */
static void download_late(struct fixture *f, tide_text path)
{
    if (path.bytes == 0)
        place(f, "", "n", 30);
}

TEST_ON(what_an_action_makes_meanwhile_is_not_missing, struct fixture *f, setup, teardown)
{
    some_files(f);
    f->meanwhile = download;
    scan(f, 2);
    assert_int_equal(state_of(f, "n"), LIVE);
    assert_int_equal(number(f, "SELECT count(*) FROM drive_@_local WHERE name = CAST('n' AS BLOB)"),
                     1);
    take_away(f, "", "n");
    OK(tide_drive_local_removed(f->db, row_of(f, "n"), &f->err));
    f->meanwhile = download_late;
    scan(f, 2);
    assert_int_equal(state_of(f, "n"), LIVE);
}

/* Deleted by a user and downloaded anew after the folder was listed: the row is older than its file. */
static void replace_missing(struct fixture *f, tide_text path)
{
    if (path.bytes == 0)
        place(f, "", "y", 80);
}

TEST_ON(a_row_that_was_written_meanwhile_is_not_gone, struct fixture *f, setup, teardown)
{
    some_files(f);
    take_away(f, "", "y");
    f->meanwhile = replace_missing;
    scan(f, 2);
    assert_int_equal(state_of(f, "y"), LIVE);
    assert_int_equal(number(f, "SELECT bytes FROM drive_@_local WHERE name = CAST('y' AS BLOB)"),
                     80);
}

static void move_out(struct fixture *f, tide_text path)
{
    if (!tide_text_equal(path, TIDE_TEXT("d")))
        return;
    take_away(f, "d", "x");
    OK(tide_drive_local_moved(f->db, row_of(f, "x"), TIDE_DRIVE_ROOT, TIDE_TEXT("x"), &f->err));
}

TEST_ON(a_row_that_was_moved_meanwhile_is_not_gone, struct fixture *f, setup, teardown)
{
    some_files(f);
    f->meanwhile = move_out;
    scan(f, 2);
    assert_int_equal(state_of(f, "x"), LIVE);
}

/* The folder vanished; an action recorded a file in it a moment before, so its row was left alone.  The
 * next scan proves it gone, too. */
static void write_in_dying(struct fixture *f, tide_text path)
{
    if (tide_text_equal(path, TIDE_TEXT("d/e")))
        place(f, "d", "x", 70);
}

TEST_ON(a_row_that_was_left_alone_is_looked_at_again, struct fixture *f, setup, teardown)
{
    some_files(f);
    take_away(f, "d", "x");
    f->meanwhile = write_in_dying; /* after d was listed */
    scan(f, 2);
    assert_int_equal(state_of(f, "x"), LIVE);
    f->meanwhile = NULL;
    take_away(f, "", "d");
    /* As if d had been written as gone without x. */
    OK(tide_rows_do(f->db, "a test", &f->err,
                    "UPDATE drive_@_local SET state = 4 WHERE name = CAST('d' AS BLOB)"));
    scan(f, 2);
    assert_int_equal(state_of(f, "x"), GONE);
    assert_int_equal(state_of(f, "z"), GONE);
}

/* A crash between the slice that says that d is a file and the one that says what is gone with it. */
TEST_ON(rows_beneath_a_file_are_gone_after_a_crash, struct fixture *f, setup, teardown)
{
    some_files(f);
    take_away(f, "", "d");
    add(f, "", "d", 5);
    OK(tide_rows_do(f->db, "a test", &f->err,
                    "UPDATE drive_@_local SET kind = 1, bytes = 5 WHERE name = CAST('d' AS BLOB)"));
    scan(f, 2);
    assert_int_equal(state_of(f, "d"), LIVE);
    assert_int_equal(state_of(f, "x"), GONE);
    assert_int_equal(state_of(f, "z"), GONE);
    scan(f, 2);
    assert_int_equal(f->slices, 0);
    take_away(f, "", "d");
    OK(tide_rows_do(f->db, "a test", &f->err,
                    "UPDATE drive_@_local SET state = 3 WHERE name = CAST('x' AS BLOB)"));
    scan(f, 2);
    assert_int_equal(state_of(f, "d"), GONE);
    assert_int_equal(state_of(f, "x"), GONE);
}

/* ---- memory ---- */

TEST_ON(every_failed_allocation_is_reported, struct fixture *f, setup, teardown)
{
    some_files(f);
    take_away(f, "d", "e");
    add(f, "", "n", 0);
    add(f, "n", "m", 3);
    for (uint64_t fail_at = 0;; fail_at++) { /* ends: the scan makes finitely many allocations */
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        const tide_status rc = scan_in(f, &mem.base, true, TIDE_DRIVE_ROOT, "", 2);
        assert_int_equal(mem.bytes_live, 0);
        if (!mem.fired) {
            assert_int_equal(rc, TIDE_OK);
            break;
        }
        assert_int_equal(rc, TIDE_NO_MEMORY);
    }
    assert_int_equal(state_of(f, "m"), LIVE);
    assert_int_equal(state_of(f, "z"), GONE);
}
