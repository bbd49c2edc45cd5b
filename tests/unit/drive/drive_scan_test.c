/* drive_scan_test.c - the scanner and the trash, on real files (DSC1 to DSC3, S14, S17).
 *
 * Goal: what a scan reports is what is there; what it could not see is never reported as absent.
 * Method: a real folder and a real store; each trouble as a short story: a folder without
 * permission, a disk that is not mounted, a file that grows while it is hashed, links, hostile
 * names; hashes compared with openssl's on the side. */
#include "drive/local/hash.h"
#include "drive/local/scan.h"
#include "drive/local/trash.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/wrap.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct fixture {
    char dir[64], root[80];
    sqlite3 *handle;
    tide_rows db;
    tide_error err;
    uint64_t hashed;
    uint64_t clock_ns; /* added to the wall clock */
    bool complete;
    unsigned skips[8];
    bool folder_vanishes, root_vanishes; /* as soon as "d" was seen */
    unsigned folders_read, slices;
    size_t written; /* differences */
    tide_ignore *ignore;
};

static void put_file(struct fixture *f, const char *path, const char *text)
{
    FILE *file = fopen(textf("%s/%s", f->root, path), "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

/* Which list fails, as that of a folder without permission; 0: none.  (Root may list them all.) */
static unsigned list_fails;

WRAP(tide_status, tide_folder_list, int dir, bool (*visit)(tide_text name, void *arg), void *arg,
     tide_error *err)
{
    if (list_fails > 0 && --list_fails == 0)
        return tide_error_set(err, TIDE_IO, "Permission denied");
    return __real_tide_folder_list(dir, visit, arg, err);
}

/* A connection that reads sees what is written; here both are one. */
static tide_status write_slice(void *arg, struct tide_drive_difference *list, size_t count,
                               tide_error *err)
{
    struct fixture *f = arg;
    f->slices++;
    f->written += count;
    return tide_drive_scan_write(f->db, list, count, 1000, err);
}

/* The rows of "d", the only folder, are read second, and then the folder is: in between it vanishes. */
static int at_statement(unsigned type, void *arg, void *stmt, void *text)
{
    struct fixture *f = arg;
    (void)type;
    (void)text;
    if (strstr(sqlite3_sql(stmt), "ORDER BY name") == NULL || ++f->folders_read != 2)
        return 0;
    if (f->folder_vanishes)
        assert_int_equal(rename(textf("%s/d", f->root), textf("%s/away", f->dir)), 0);
    if (f->root_vanishes) {
        assert_int_equal(rename(f->root, textf("%s/away", f->dir)), 0);
        assert_int_equal(mkdir(f->root, 0700), 0);
    }
    return 0;
}

static void skipped(void *arg, tide_text path, tide_drive_skip why, tide_drive_refusal refusal)
{
    struct fixture *f = arg;
    (void)path;
    (void)refusal;
    f->skips[why]++;
}

static const struct tide_drive_scan_ops ops = {.write = write_slice, .skipped = skipped};

static tide_status scan_folders(struct fixture *f, const tide_text *folders, size_t count)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const struct tide_drive_scan scan = {.root = f->root,
                                         .marker = "marker",
                                         .ignore = f->ignore,
                                         .now_ns = (uint64_t)now.tv_sec * 1000000000u +
                                                   (uint64_t)now.tv_nsec + f->clock_ns,
                                         .db = f->db,
                                         .ops = &ops,
                                         .arg = f,
                                         .folders = folders,
                                         .folders_count = count};
    memset(f->skips, 0, sizeof f->skips);
    f->folders_read = f->slices = 0;
    f->written = 0;
    f->complete = false;
    return tide_drive_scan(&scan, tide_mem_heap(), &f->complete, &f->hashed, &f->err);
}

static tide_status scan_now(struct fixture *f)
{
    return scan_folders(f, NULL, 0);
}

static int setup(void **state)
{
    static const struct tide_drive_home home = {"drive", "root", "marker"};
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/drive-scan-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->root, sizeof f->root, "%s/root", f->dir);
    assert_int_equal(mkdir(f->root, 0700), 0);
    assert_int_equal(sqlite3_open(":memory:", &f->handle), SQLITE_OK);
    f->db = (tide_rows){.sqlite = f->handle, .number = 1};
    assert_int_equal(sqlite3_trace_v2(f->handle, SQLITE_TRACE_STMT, at_statement, f), SQLITE_OK);
    OK(tide_drive_store_tables(f->db, &f->err));
    OK(tide_drive_store_set_up(f->db, &home, &f->err));
    OK(tide_drive_marker_make(f->root, "marker", &f->err));
    f->clock_ns = UINT64_C(10) * 1000000000u; /* files are older than the scan */
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tide_ignore_free(f->ignore);
    assert_int_equal(sqlite3_close(f->handle), SQLITE_OK);
    (void)chmod(textf("%s/d", f->root), 0700);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
    return 0;
}

static uint64_t count(struct fixture *f, const char *where)
{
    uint64_t number = 0;
    OK(tide_rows_number(f->db, "a test", &number, &f->err,
                        textf("SELECT count(*) FROM drive_@_local WHERE %s", where)));
    return number;
}

TEST_ON(a_tree_is_reported_as_it_is, struct fixture *f, setup, teardown)
{
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/d/e", f->root), 0700), 0);
    put_file(f, "d/e/deep", "hello world");
    put_file(f, "top", "x");
    OK(scan_now(f));
    assert_true(f->complete);
    assert_int_equal(count(f, "state = 1"), 4); /* the marker is ours, not the user's */
    assert_int_equal(count(f, "kind = 2"), 2);
    assert_int_equal(f->folders_read, 3);
    assert_int_equal(f->written, 4);
    assert_int_equal(f->hashed, 12);
    /* SHA-256 of "hello world". */
    assert_int_equal(count(f,
                           "strong = X'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2e"
                           "fcde9'"),
                     1);
    OK(scan_now(f));
    assert_int_equal(f->hashed, 0); /* nothing changed: nothing is read */
    assert_int_equal(f->slices, 0); /* and nothing is written */
    assert_int_equal(f->folders_read, 3);
}

/* D14: written in the same moment as hashed. */
TEST_ON(a_file_as_young_as_its_hash_is_hashed_again, struct fixture *f, setup, teardown)
{
    f->clock_ns = 0;
    put_file(f, "x", "one");
    OK(scan_now(f));
    OK(scan_now(f));
    assert_int_equal(f->hashed, 3);
}

TEST_ON(a_changed_file_is_hashed_again, struct fixture *f, setup, teardown)
{
    put_file(f, "x", "one");
    OK(scan_now(f));
    put_file(f, "x", "two!");
    OK(scan_now(f));
    assert_int_equal(f->hashed, 4);
}

/* DSC4: a shared folder, or one of another home; what was known in it is neither gone nor synced. */
TEST_ON(a_folder_with_a_marker_is_another_drive, struct fixture *f, setup, teardown)
{
    assert_int_equal(mkdir(textf("%s/Team", f->root), 0700), 0);
    put_file(f, "Team/x", "one");
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 1"), 2);
    put_file(f, "Team/.tidemark-root", "of another drive");
    put_file(f, "Team/y", "two");
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 1"), 0);
    assert_int_equal(count(f, "state = 2 AND kind = 2"), 1);
    assert_int_equal(count(f, "state = 4"), 0);
    assert_int_equal(count(f, "name = CAST('y' AS BLOB)"), 0);
}

TEST_ON(an_unmounted_folder_is_incomplete_not_empty, struct fixture *f, setup, teardown)
{
    put_file(f, "x", "one");
    OK(scan_now(f));
    assert_int_equal(rename(f->root, textf("%s/away", f->dir)), 0);
    assert_int_equal(mkdir(f->root, 0700), 0); /* the empty mount point */
    assert_int_equal(scan_now(f), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "not mounted"));
    assert_int_equal(count(f, "state = 4"), 0);
    assert_int_equal(rmdir(f->root), 0);
    assert_int_equal(scan_now(f), TIDE_NOT_FOUND);
    assert_int_equal(count(f, "state = 4"), 0);
    assert_int_equal(rename(textf("%s/away", f->dir), f->root), 0);
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 1"), 1);
}

TEST_ON(the_content_of_an_unreadable_folder_is_unsure, struct fixture *f, setup, teardown)
{
    if (geteuid() == 0)
        skip(); /* root may read everything */
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    put_file(f, "d/x", "one");
    OK(scan_now(f));
    assert_int_equal(chmod(textf("%s/d", f->root), 0), 0);
    OK(scan_now(f));
    assert_true(f->complete);
    assert_int_equal(f->skips[TIDE_DRIVE_SKIP_UNREADABLE], 1);
    assert_int_equal(count(f, "state = 4"), 0);
    assert_int_equal(count(f, "state = 5"), 1); /* d */
    assert_int_equal(count(f, "state = 3"), 1); /* x */
}

/* DSC5: it has no rows beneath it, and what is missing may be in it; found in the root, or named. */
TEST_ON(an_empty_folder_that_cannot_be_read_is_unread, struct fixture *f, setup, teardown)
{
    static const tide_text folders[] = {{"d", 1}, {"e", 1}};
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/e", f->root), 0700), 0);
    put_file(f, "e/x", "one");
    for (size_t named = 0; named <= 2; named += 2) {
        OK(scan_now(f));
        assert_int_equal(count(f, "state = 1"), 3);
        assert_int_equal(rename(textf("%s/e/x", f->root), textf("%s/d/x", f->root)), 0);
        /* The list of d is the second one: after the root, or after e, because the last one named is first. */
        list_fails = 2;
        OK(scan_folders(f, folders, named));
        assert_int_equal(list_fails, 0);
        assert_int_equal(count(f, "state = 5 AND name = CAST('d' AS BLOB)"), 1);
        assert_int_equal(count(f,
                               "state = 4 AND parent = (SELECT row FROM drive_@_local WHERE name ="
                               " CAST('e' AS BLOB))"),
                         1);
        /* Named, it is looked for from above, and read. */
        OK(scan_folders(f, folders, named));
        assert_int_equal(count(f, "state = 5"), 0);
        assert_int_equal(count(f, "state = 1"), 3); /* d, e and the file in d */
        assert_int_equal(rename(textf("%s/d/x", f->root), textf("%s/e/x", f->root)), 0);
    }
}

/* The same for any user: the folder is there when it is listed, and not when it is opened. */
TEST_ON(the_content_of_a_folder_that_vanishes_is_unsure, struct fixture *f, setup, teardown)
{
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    put_file(f, "d/x", "one");
    OK(scan_now(f));
    f->folder_vanishes = true;
    OK(scan_now(f));
    assert_int_equal(f->skips[TIDE_DRIVE_SKIP_UNREADABLE], 1);
    assert_int_equal(count(f, "state = 4"), 0);
    assert_int_equal(count(f, "state = 5"), 1); /* d (DSC5) */
    assert_int_equal(count(f, "state = 3"), 1);
}

TEST_ON(a_disk_that_vanishes_during_a_scan_makes_it_incomplete, struct fixture *f, setup, teardown)
{
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    put_file(f, "x", "one");
    put_file(f, "d/y", "two");
    OK(scan_now(f));
    f->root_vanishes = true;
    assert_int_equal(remove(textf("%s/x", f->root)), 0);
    OK(scan_now(f));
    assert_false(f->complete);
    assert_int_equal(count(f, "state = 4"), 0);
    assert_int_equal(count(f, "state = 3"), 1); /* x: it may be on the disk that vanished */
}

/* The same without a disk that vanishes: then it is proved. */
TEST_ON(what_is_missing_is_gone_when_the_scan_is_complete, struct fixture *f, setup, teardown)
{
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/d/e", f->root), 0700), 0);
    put_file(f, "x", "one");
    put_file(f, "d/e/y", "two");
    put_file(f, "z", "three");
    OK(scan_now(f));
    assert_int_equal(remove(textf("%s/x", f->root)), 0);
    assert_int_equal(rename(textf("%s/d", f->root), textf("%s/away", f->dir)), 0);
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 4 AND gone_ms = 1000"), 4);
    assert_int_equal(count(f, "state = 1"), 1);
    /* It comes back with its rows, and what was hashed need not be hashed again. */
    assert_int_equal(rename(textf("%s/away", f->dir), textf("%s/d", f->root)), 0);
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 1"), 4);
    assert_int_equal(f->hashed, 0);
}

/* F13: what a mount inside of the root leaves behind is an empty folder, which is another one than before. */
TEST_ON(an_empty_folder_in_place_of_a_full_one_proves_nothing, struct fixture *f, setup, teardown)
{
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    put_file(f, "d/x", "one");
    OK(scan_now(f));
    assert_int_equal(rename(textf("%s/d", f->root), textf("%s/away", f->dir)), 0);
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    for (int i = 0; i < 2; i++) { /* and it stays so */
        OK(scan_now(f));
        assert_true(f->complete);
        assert_int_equal(count(f, "state = 4"), 0);
        assert_int_equal(count(f, "state = 3"), 2);
    }
    /* What is ours in it is no sign of a user. */
    put_file(f, "d/.tidemark-01234567.partial", "part");
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 4"), 0);
    assert_int_equal(count(f, "state = 3"), 2);
    assert_int_equal(remove(textf("%s/d/.tidemark-01234567.partial", f->root)), 0);
    /* The disk is back. */
    assert_int_equal(rmdir(textf("%s/d", f->root)), 0);
    assert_int_equal(rename(textf("%s/away", f->dir), textf("%s/d", f->root)), 0);
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 1"), 2);
    /* Other files in another folder: those that were there are gone. */
    assert_int_equal(rename(textf("%s/d", f->root), textf("%s/away", f->dir)), 0);
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    put_file(f, "d/new", "two");
    OK(scan_now(f));
    assert_int_equal(count(f, "name = X'78' AND state = 4"), 1);
    /* And so they are when the folder is emptied itself. */
    assert_int_equal(remove(textf("%s/d/new", f->root)), 0);
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 4"), 2);
}

/* F13 and F14 at once: whether another folder at its place is empty could not be read. */
TEST_ON(another_folder_that_cannot_be_read_proves_nothing, struct fixture *f, setup, teardown)
{
    static const tide_text folder = {"d", 1};
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    put_file(f, "d/x", "one");
    OK(scan_now(f));
    assert_int_equal(rename(textf("%s/d", f->root), textf("%s/away", f->dir)), 0);
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    for (int i = 0; i < 2;
         i++) { /* found in the root, or named: the second list is the look inside */
        list_fails = 2;
        OK(scan_folders(f, &folder, (size_t)i));
        assert_int_equal(list_fails, 0);
        assert_int_equal(count(f, "state = 4"), 0);
        assert_int_equal(f->skips[TIDE_DRIVE_SKIP_UNREADABLE], 1);
        /* Its row is still that of the folder which is away: the next scan sees that this is another one. */
        OK(scan_now(f));
        assert_int_equal(count(f, "state = 4"), 0);
        assert_int_equal(count(f, "state = 3"), 2);
        assert_int_equal(f->skips[TIDE_DRIVE_SKIP_MOUNT], 1);
        assert_int_equal(rmdir(textf("%s/d", f->root)), 0);
        assert_int_equal(rename(textf("%s/away", f->dir), textf("%s/d", f->root)), 0);
        OK(scan_now(f));
        assert_int_equal(count(f, "state = 1"), 2);
        assert_int_equal(rename(textf("%s/d", f->root), textf("%s/away", f->dir)), 0);
        assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    }
}

/* A folder that is a file now, and one that is ignored now. */
TEST_ON(rows_beneath_what_is_no_folder_any_more, struct fixture *f, setup, teardown)
{
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/i", f->root), 0700), 0);
    put_file(f, "d/x", "one");
    put_file(f, "i/y", "two");
    OK(scan_now(f));
    assert_int_equal(remove(textf("%s/d/x", f->root)), 0);
    assert_int_equal(rmdir(textf("%s/d", f->root)), 0);
    put_file(f, "d", "a file");
    OK(tide_ignore_new(TIDE_TEXT("i\n"), tide_mem_heap(), &f->ignore, &f->err));
    OK(scan_now(f));
    assert_int_equal(count(f, "name = X'78' AND state = 4"), 1); /* x is gone */
    assert_int_equal(count(f, "name = X'79' AND state = 3"), 1); /* of y nothing is known */
    assert_int_equal(count(f, "name = X'69' AND state = 2"), 1);
}

/* What the watch tells: only these folders, and what is new in them. */
TEST_ON(only_the_folders_that_changed_are_read, struct fixture *f, setup, teardown)
{
    static const tide_text d[] = {TIDE_TEXT("d")},
                           both[] = {TIDE_TEXT("d/gone/deep"), TIDE_TEXT("d/new/deeper")};
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/d/gone", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/d/gone/deep", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/d/stays", f->root), 0700), 0);
    put_file(f, "d/gone/deep/x", "one");
    put_file(f, "d/stays/y", "two");
    put_file(f, "top", "three");
    OK(scan_now(f));
    assert_int_equal(remove(textf("%s/top", f->root)), 0); /* not told: nobody looks */
    assert_int_equal(remove(textf("%s/d/stays/y", f->root)), 0);
    put_file(f, "d/z", "four");
    OK(scan_folders(f, d, 1));
    assert_int_equal(f->folders_read, 1);
    assert_int_equal(count(f, "name = X'7a' AND state = 1"), 1); /* z */
    assert_int_equal(count(f, "state = 4"), 0);

    /* A folder that is no longer there is told by what is above it; a new one is read with all that is
     * in it. */
    assert_int_equal(rename(textf("%s/d/gone", f->root), textf("%s/away", f->dir)), 0);
    assert_int_equal(mkdir(textf("%s/d/new", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/d/new/deeper", f->root), 0700), 0);
    put_file(f, "d/new/deeper/file", "five");
    OK(scan_folders(f, both, 2));
    assert_true(f->complete);
    assert_int_equal(count(f, "state = 4"), 3); /* gone, deep, x */
    assert_int_equal(count(f, "state = 3"), 0);
    assert_int_equal(count(f, "name = CAST('file' AS BLOB) AND state = 1"), 1);
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 4"), 5); /* top and y, too */
}

/* D24: a file stepped aside, another one took its name, and a crash came before that was recorded: in
 * whatever order the directory lists them, the row goes with the file. */
TEST_ON(a_file_that_stepped_aside_keeps_its_row, struct fixture *f, setup, teardown)
{
    static const char *const names[] = {"a", "m", "z", "Z", "0", "~"};
    for (size_t i = 0; i < 6; i++) {
        uint64_t row = 0, aside = 0;
        put_file(f, names[i], "one");
        OK(scan_now(f));
        const char *sql =
            textf("SELECT row FROM drive_@_local WHERE name = CAST('%s' AS BLOB)", names[i]);
        OK(tide_rows_number(f->db, "a test", &row, &f->err, sql));
        OK(tide_drive_aside_local(f->db, row, tide_text_of(names[i]), &f->err));
        const char *away = textf("%s/tidemark-move-0000000%zu", f->root, i);
        assert_int_equal(rename(textf("%s/%s", f->root, names[i]), away), 0);
        put_file(f, names[i], "another");
        OK(scan_now(f));
        OK(tide_rows_number(f->db, "a test", &aside, &f->err,
                            textf("SELECT row FROM drive_@_local WHERE name ="
                                  " CAST('tidemark-move-0000000%zu' AS BLOB)"
                                  " AND aside = CAST('%s' AS BLOB) AND bytes = 3",
                                  i, names[i])));
        assert_int_equal(aside, row);
    }
    assert_int_equal(count(f, "state = 1"), 12);
    assert_int_equal(count(f, "state = 4"), 0);
}

/* The same with folders: what is in the one that stepped aside is not missing in the other. */
TEST_ON(a_folder_that_stepped_aside_keeps_what_is_in_it, struct fixture *f, setup, teardown)
{
    uint64_t row = 0;
    assert_int_equal(mkdir(textf("%s/c", f->root), 0700), 0);
    put_file(f, "c/inside", "one");
    OK(scan_now(f));
    OK(tide_drive_folder_at(f->db, TIDE_TEXT("c"), &row, &f->err));
    OK(tide_drive_aside_local(f->db, row, TIDE_TEXT("c"), &f->err));
    assert_int_equal(rename(textf("%s/c", f->root), textf("%s/tidemark-move-00000001", f->root)),
                     0);
    for (int other = 0; other < 2;
         other++) { /* first alone, then with another folder of that name */
        if (other == 1) {
            OK(tide_drive_local_moved(f->db, row, TIDE_DRIVE_ROOT, TIDE_TEXT("c"), &f->err));
            OK(tide_drive_aside_local(f->db, row, TIDE_TEXT("c"), &f->err));
            assert_int_equal(mkdir(textf("%s/c", f->root), 0700), 0);
            put_file(f, "c/other", "two");
        }
        OK(scan_now(f));
        assert_int_equal(count(f, "state = 4"), 0);
        assert_int_equal(count(f, textf("name = CAST('inside' AS BLOB) AND state = 1 AND parent ="
                                        " %" PRIu64,
                                        row)),
                         1);
        assert_int_equal(count(f, "state = 1"), other ? 4 : 2);
        OK(scan_now(f));
        assert_int_equal(f->slices, 0);
    }
}

/* More than a slice holds, in folders that are all new: each is written after its folder. */
TEST_ON(a_large_new_tree_is_written_in_slices, struct fixture *f, setup, teardown)
{
    enum { FOLDERS = 60, FILES = 60 };
    for (int i = 0; i < FOLDERS; i++) {
        assert_int_equal(mkdir(textf("%s/f%d", f->root, i), 0700), 0);
        assert_int_equal(mkdir(textf("%s/f%d/sub", f->root, i), 0700), 0);
        for (int k = 0; k < FILES; k++)
            put_file(f, textf("f%d/sub/%d", i, k), "x");
    }
    OK(scan_now(f));
    assert_int_equal(count(f, "state = 1"), FOLDERS * (FILES + 2));
    assert_in_range(f->slices, 4, 8); /* not one for each folder */
    assert_int_equal(count(f, "kind = 1 AND parent IN (SELECT row FROM drive_1_local"
                              " WHERE name = CAST('sub' AS BLOB))"),
                     FOLDERS * FILES);
    OK(scan_now(f));
    assert_int_equal(f->slices, 0);
}

TEST_ON(what_is_no_file_or_has_a_refused_name_is_shown_and_skipped, struct fixture *f, setup,
        teardown)
{
    assert_int_equal(symlink("/etc/passwd", textf("%s/link", f->root)), 0);
    assert_int_equal(symlink("/", textf("%s/out", f->root)), 0);
    assert_int_equal(mkfifo(textf("%s/pipe", f->root), 0600), 0);
    put_file(f, "a:b", "x");
    put_file(f, "\xff", "x");
    put_file(f, "fine", "x");
    put_file(f, ".tidemark-00000000.partial", "x");
    assert_int_equal(mkdir(textf("%s/CON", f->root), 0700), 0);
    put_file(f, "CON/inside", "x");
    OK(tide_ignore_new(TIDE_TEXT("*.tmp\n"), tide_mem_heap(), &f->ignore, &f->err));
    put_file(f, "a.tmp", "x");
    OK(scan_now(f));
    assert_int_equal(f->skips[TIDE_DRIVE_SKIP_LINK], 2);
    assert_int_equal(f->skips[TIDE_DRIVE_SKIP_OTHER], 1);
    assert_int_equal(f->skips[TIDE_DRIVE_SKIP_NAME], 3); /* CON with all beneath it */
    assert_int_equal(f->skips[TIDE_DRIVE_SKIP_IGNORED], 1);
    assert_int_equal(count(f, "state = 1"), 1);
    assert_int_equal(count(f, "state = 2"), 7); /* their names stay taken */
    assert_int_equal(f->hashed, 1);
}

TEST_ON(a_very_deep_path_is_shown_and_skipped, struct fixture *f, setup, teardown)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s", f->root);
    for (int i = 0; i < 5; i++) {
        const size_t used = strlen(path);
        path[used] = '/';
        memset(path + used + 1, 'a', 90);
        path[used + 91] = '\0';
        assert_int_equal(mkdir(path, 0700), 0);
    }
    OK(scan_now(f));
    assert_int_equal(f->skips[TIDE_DRIVE_SKIP_NAME], 1); /* 5 * 90 + 4 > 400 */
    assert_int_equal(count(f, "state = 1"), 4);
}

/* ---- hashing and the trash ---- */

TEST_ON(a_file_that_is_deleted_is_in_the_trash, struct fixture *f, setup, teardown)
{
    struct tide_entry entry;
    int root = -1;
    struct stat info;
    put_file(f, "x", "one");
    OK(tide_folder_open(f->root, &root, &f->err));
    OK(tide_folder_look(root, TIDE_TEXT("x"), &entry, &f->err));
    struct tide_drive_trash trash = {.root = root, .path = f->root, .now_unix_ms = 1777863721000};
    OK(tide_drive_trash_file(&trash, root, TIDE_TEXT_NONE, TIDE_TEXT("x"), &entry, &f->err));
    assert_int_equal(stat(textf("%s/" TIDE_DRIVE_TRASH "/2026-05-04/x", f->root), &info), 0);
    /* A second one of that name does not replace the first; then a desktop's trash. */
    put_file(f, "x", "two");
    OK(tide_folder_look(root, TIDE_TEXT("x"), &entry, &f->err));
    OK(tide_drive_trash_file(&trash, root, TIDE_TEXT_NONE, TIDE_TEXT("x"), &entry, &f->err));
    assert_int_equal(stat(textf("%s/" TIDE_DRIVE_TRASH "/2026-05-04/x.2", f->root), &info), 0);
    const char *desktop = textf("%s/Trash", f->dir);
    assert_int_equal(mkdir(desktop, 0700), 0);
    assert_int_equal(mkdir(textf("%s/files", desktop), 0700), 0);
    assert_int_equal(mkdir(textf("%s/info", desktop), 0700), 0);
    trash.desktop = desktop;
    put_file(f, "x y", "three");
    OK(tide_folder_look(root, TIDE_TEXT("x y"), &entry, &f->err));
    OK(tide_drive_trash_file(&trash, root, TIDE_TEXT_NONE, TIDE_TEXT("x y"), &entry, &f->err));
    assert_int_equal(stat(textf("%s/files/x y", desktop), &info), 0);
    FILE *record = fopen(textf("%s/info/x y.trashinfo", desktop), "r");
    assert_non_null(record);
    char text[512] = "";
    assert_true(fread(text, 1, sizeof text - 1, record) > 0);
    (void)fclose(record);
    assert_non_null(strstr(text, "/root/x%20y\nDeletionDate=2026-05-04T03:02:01\n"));
    tide_folder_close(root);
}

TEST_ON(a_file_that_changed_is_not_deleted, struct fixture *f, setup, teardown)
{
    struct tide_entry entry;
    int root = -1;
    put_file(f, "x", "one");
    OK(tide_folder_open(f->root, &root, &f->err));
    OK(tide_folder_look(root, TIDE_TEXT("x"), &entry, &f->err));
    put_file(f, "x", "more bytes");
    const struct tide_drive_trash trash = {.root = root, .path = f->root};
    assert_int_equal(
        tide_drive_trash_file(&trash, root, TIDE_TEXT_NONE, TIDE_TEXT("x"), &entry, &f->err),
        TIDE_STALE);
    assert_int_equal(access(textf("%s/x", f->root), F_OK), 0);
    tide_folder_close(root);
}

TEST_ON(both_hashes_are_made_in_one_pass, struct fixture *f, setup, teardown)
{
    struct tide_drive_content content;
    struct tide_entry entry;
    int root = -1;
    put_file(f, "x", "hello world");
    OK(tide_folder_open(f->root, &root, &f->err));
    OK(tide_drive_hash_file(root, TIDE_TEXT("x"), &content, &entry, &f->err));
    assert_int_equal(content.bytes, 11);
    assert_int_equal(content.qxh[0], 0x68); /* base64 aCgDG... */
    assert_int_equal(content.strong[0], 0xb9);
    assert_int_equal(tide_drive_hash_file(root, TIDE_TEXT("none"), &content, &entry, &f->err),
                     TIDE_NOT_FOUND);
    tide_folder_close(root);
}

TEST_ON(the_marker_is_made_once, struct fixture *f, setup, teardown)
{
    assert_int_equal(tide_drive_marker_make(f->root, "other", &f->err), TIDE_EXISTS);
    assert_int_equal(access(textf("%s/.tidemark-root.partial", f->root), F_OK), -1);
}
