/* folder_test.c - files below one directory (FOL1 to FOL3).
 *
 * Goal: nothing outside the root is touched, whatever names and links are there; a name is replaced
 * only if it has what the caller expected.
 * Method: a root with links that lead out of it; hostile names from a seed on every function; files
 * that are changed between the look and the act. */
#include "base/rng.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "world/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    char dir[64], root_path[80];
    int root;
    tide_error err;
};

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/folder-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->root_path, sizeof f->root_path, "%s/root", f->dir);
    assert_int_equal(mkdir(f->root_path, 0700), 0);
    assert_int_equal(mkdir(textf("%s/d", f->root_path), 0700), 0);
    assert_int_equal(mkdir(textf("%s/outside", f->dir), 0700), 0);
    put_file(textf("%s/outside/secret", f->dir), "secret");
    assert_int_equal(symlink("../outside", textf("%s/link", f->root_path)), 0);
    assert_int_equal(symlink("../outside/secret", textf("%s/file-link", f->root_path)), 0);
    OK(tide_folder_open(f->root_path, &f->root, &f->err));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tide_folder_close(f->root);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
    return 0;
}

static void ignore_bytes(const void *bytes, size_t count, void *arg)
{
    (void)bytes;
    *(size_t *)arg += count;
}

TEST_ON(a_link_is_never_followed, struct fixture *f, setup, teardown)
{
    int dir = -1;
    size_t bytes = 0;
    struct tide_entry entry;
    assert_int_equal(tide_folder_enter(f->root, TIDE_TEXT("link"), &dir, &f->err), TIDE_STALE);
    assert_int_equal(tide_folder_enter(f->root, TIDE_TEXT("d/../../outside"), &dir, &f->err),
                     TIDE_INVALID);
    assert_int_equal(
        tide_folder_read(f->root, TIDE_TEXT("file-link"), ignore_bytes, &bytes, &entry, &f->err),
        TIDE_STALE);
    assert_int_equal(bytes, 0);
    OK(tide_folder_look(f->root, TIDE_TEXT("link"), &entry, &f->err));
    assert_int_equal(entry.kind, TIDE_ENTRY_LINK);
    assert_int_not_equal(
        tide_folder_write(f->root, TIDE_TEXT("file-link"), 0, TIDE_TEXT("x"), &f->err), TIDE_OK);
    struct stat info;
    assert_int_equal(stat(textf("%s/outside/secret", f->dir), &info), 0);
    assert_int_equal(info.st_size, 6);
}

/* Every function that takes a name, with names that try to leave. */
TEST_ON(hostile_names_touch_nothing_outside, struct fixture *f, setup, teardown)
{
    static const char *const parts[] = {"..",   "/",  ".", "outside", "secret",
                                        "link", "\\", "d", "%2e"};
    tide_rng rng = tide_rng_seeded(12);
    for (uint64_t round = 0; round < scaled(1000); round++) {
        char text[200] = "";
        for (uint64_t i = tide_rng_below(&rng, 6); i > 0; i--)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                           parts[tide_rng_below(&rng, 9)]);
        const tide_text name = tide_text_of(text);
        struct tide_entry entry = {.kind = TIDE_ENTRY_FILE};
        int dir = -1;
        const bool plain = name.bytes > 0 && strchr(text, '/') == NULL && strcmp(text, ".") != 0 &&
                           strcmp(text, "..") != 0;
        const tide_status rc = tide_folder_look(f->root, name, &entry, NULL);
        assert_int_equal(rc == TIDE_INVALID, !plain);
        if (tide_folder_enter(f->root, name, &dir, NULL) == TIDE_OK)
            tide_folder_close(dir);
        if (tide_folder_make(f->root, name, NULL) == TIDE_OK) {
            OK(tide_folder_look(f->root, name, &entry, NULL));
            OK(tide_folder_remove(f->root, name, &entry, NULL));
        }
        if (!plain) {
            assert_int_equal(tide_folder_move(f->root, TIDE_TEXT("d"), f->root, name, NULL),
                             TIDE_INVALID);
            assert_int_equal(tide_folder_write(f->root, name, 0, TIDE_TEXT("x"), NULL),
                             TIDE_INVALID);
        }
    }
    struct stat info;
    assert_int_equal(stat(textf("%s/outside/secret", f->dir), &info), 0);
    assert_int_equal(info.st_nlink, 1);
    assert_int_equal(access(textf("%s/d", f->root_path), F_OK), 0);
}

TEST_ON(a_file_is_continued_only_with_all_bytes_before, struct fixture *f, setup, teardown)
{
    OK(tide_folder_write(f->root, TIDE_TEXT("p"), 0, TIDE_TEXT("abc"), &f->err));
    OK(tide_folder_write(f->root, TIDE_TEXT("p"), 3, TIDE_TEXT("def"), &f->err));
    assert_int_equal(tide_folder_write(f->root, TIDE_TEXT("p"), 7, TIDE_TEXT("x"), &f->err),
                     TIDE_STALE);
    assert_int_equal(tide_folder_write(f->root, TIDE_TEXT("q"), 3, TIDE_TEXT("x"), &f->err),
                     TIDE_NOT_FOUND);
    assert_int_equal(access(textf("%s/q", f->root_path), F_OK), -1);
}

TEST_ON(a_new_file_takes_only_a_free_name, struct fixture *f, setup, teardown)
{
    OK(tide_folder_write(f->root, TIDE_TEXT("p"), 0, TIDE_TEXT("new"), &f->err));
    put_file(textf("%s/x", f->root_path), "a user's");
    assert_int_equal(
        tide_folder_place(f->root, TIDE_TEXT("p"), TIDE_TEXT("x"), 1000, NULL, &f->err),
        TIDE_EXISTS);
    OK(tide_folder_place(f->root, TIDE_TEXT("p"), TIDE_TEXT("y"), 1000, NULL, &f->err));
    struct tide_entry entry;
    OK(tide_folder_look(f->root, TIDE_TEXT("y"), &entry, &f->err));
    assert_int_equal(entry.mtime_ns, UINT64_C(1000) * 1000000000u);
    assert_int_equal(tide_folder_look(f->root, TIDE_TEXT("p"), &entry, &f->err), TIDE_NOT_FOUND);
}

/* A file is as visible as its folder, and keeps its mode when it is replaced. */
TEST_ON(modes_are_those_of_the_folder_or_of_the_file_before, struct fixture *f, setup, teardown)
{
    struct tide_entry entry;
    assert_int_equal(fchmod(f->root, 0750), 0);
    OK(tide_folder_write(f->root, TIDE_TEXT("p"), 0, TIDE_TEXT("new"), &f->err));
    OK(tide_folder_look(f->root, TIDE_TEXT("p"), &entry, &f->err));
    assert_int_equal(entry.mode, 0600);
    OK(tide_folder_place(f->root, TIDE_TEXT("p"), TIDE_TEXT("z"), 0, NULL, &f->err));
    OK(tide_folder_look(f->root, TIDE_TEXT("z"), &entry, &f->err));
    assert_int_equal(entry.mode, 0640);
    assert_int_equal(chmod(textf("%s/z", f->root_path), 0400), 0);
    OK(tide_folder_look(f->root, TIDE_TEXT("z"), &entry, &f->err));
    OK(tide_folder_write(f->root, TIDE_TEXT("p"), 0, TIDE_TEXT("newer"), &f->err));
    OK(tide_folder_place(f->root, TIDE_TEXT("p"), TIDE_TEXT("z"), 0, &entry, &f->err));
    OK(tide_folder_look(f->root, TIDE_TEXT("z"), &entry, &f->err));
    assert_int_equal(entry.mode, 0400);
}

TEST_ON(a_file_is_replaced_only_if_it_is_the_expected_one, struct fixture *f, setup, teardown)
{
    struct tide_entry entry, displaced;
    put_file(textf("%s/x", f->root_path), "old");
    OK(tide_folder_look(f->root, TIDE_TEXT("x"), &entry, &f->err));
    OK(tide_folder_write(f->root, TIDE_TEXT("p"), 0, TIDE_TEXT("new bytes"), &f->err));
    put_file(textf("%s/x", f->root_path), "changed");
    assert_int_equal(tide_folder_place(f->root, TIDE_TEXT("p"), TIDE_TEXT("x"), 0, &entry, &f->err),
                     TIDE_STALE);
    OK(tide_folder_look(f->root, TIDE_TEXT("x"), &entry, &f->err));
    assert_int_equal(entry.bytes, 7);
    OK(tide_folder_place(f->root, TIDE_TEXT("p"), TIDE_TEXT("x"), 0, &entry, &f->err));
    OK(tide_folder_look(f->root, TIDE_TEXT("p"), &displaced, &f->err));
    assert_int_equal(displaced.inode, entry.inode); /* kept, under the other name */
    OK(tide_folder_look(f->root, TIDE_TEXT("x"), &entry, &f->err));
    assert_int_equal(entry.bytes, 9);
}

TEST_ON(a_file_is_read_at_offsets_and_not_beyond_its_end, struct fixture *f, setup, teardown)
{
    int file = -1;
    char bytes[8] = "";
    put_file(textf("%s/a", f->root_path), "0123456789");
    OK(tide_folder_open_file(f->root, TIDE_TEXT("a"), &file, &f->err));
    OK(tide_folder_read_at(file, 6, bytes, 4, &f->err));
    assert_string_equal(bytes, "6789");
    assert_int_equal(tide_folder_read_at(file, 7, bytes, 4, &f->err), TIDE_STALE);
    tide_folder_close(file);
    assert_int_equal(tide_folder_open_file(f->root, TIDE_TEXT("d"), &file, &f->err), TIDE_STALE);
    assert_int_equal(tide_folder_open_file(f->root, TIDE_TEXT("file-link"), &file, &f->err),
                     TIDE_STALE);
    assert_int_equal(tide_folder_open_file(f->root, TIDE_TEXT("../outside/secret"), &file, &f->err),
                     TIDE_INVALID);
    assert_int_equal(mkfifo(textf("%s/pipe", f->root_path), 0600), 0);
    assert_int_equal(tide_folder_open_file(f->root, TIDE_TEXT("pipe"), &file, &f->err), TIDE_STALE);
}

TEST_ON(the_free_space_is_that_of_the_folders_disk, struct fixture *f, setup, teardown)
{
    uint64_t bytes = 0;
    OK(tide_folder_free(f->root, &bytes, &f->err));
    assert_true(bytes > 0);
    assert_int_equal(tide_folder_free(-1, &bytes, &f->err), TIDE_IO);
}

TEST_ON(a_folder_that_is_not_empty_stays, struct fixture *f, setup, teardown)
{
    struct tide_entry entry;
    put_file(textf("%s/d/x", f->root_path), "x");
    OK(tide_folder_look(f->root, TIDE_TEXT("d"), &entry, &f->err));
    assert_int_equal(tide_folder_remove(f->root, TIDE_TEXT("d"), &entry, &f->err), TIDE_EXISTS);
    entry.inode++;
    assert_int_equal(tide_folder_remove(f->root, TIDE_TEXT("d"), &entry, &f->err), TIDE_STALE);
}

TEST_ON(a_move_does_not_replace, struct fixture *f, setup, teardown)
{
    int dir = -1;
    put_file(textf("%s/x", f->root_path), "x");
    put_file(textf("%s/d/x", f->root_path), "y");
    OK(tide_folder_enter(f->root, TIDE_TEXT("d"), &dir, &f->err));
    assert_int_equal(tide_folder_move(f->root, TIDE_TEXT("x"), dir, TIDE_TEXT("x"), &f->err),
                     TIDE_EXISTS);
    OK(tide_folder_move(f->root, TIDE_TEXT("x"), dir, TIDE_TEXT("z"), &f->err));
    assert_int_equal(access(textf("%s/d/z", f->root_path), F_OK), 0);
    tide_folder_close(dir);
}

static bool count_name(tide_text name, void *arg)
{
    (void)name;
    return --*(int *)arg > 0;
}

TEST_ON(a_listing_that_ends_early_is_no_listing, struct fixture *f, setup, teardown)
{
    int most = 100;
    OK(tide_folder_list(f->root, count_name, &most, &f->err));
    assert_int_equal(most, 97);
    most = 1;
    assert_int_equal(tide_folder_list(f->root, count_name, &most, &f->err), TIDE_CANCELED);
}
