/* drive_import_test.c - ignore rules of other programs as patterns of ours.
 *
 * Goal: a rule that is taken over leaves out the same paths, and one that cannot be is refused by its
 * line.
 * Method: each rule with the paths that its program would and would not leave out. */
#include "drive/ignore/ignore.h"
#include "drive/ignore/import.h"
#include "base/mem.h"
#include "support/ok.h"
#include "support/test.h"

struct imported {
    tide_buf lines;
    tide_ignore *ignore;
    tide_error err;
};

static tide_status import(struct imported *imported, tide_ignore_format format, const char *text)
{
    *imported = (struct imported){.lines = tide_buf_heap(1 << 16)};
    const tide_status rc =
        tide_ignore_import(tide_text_of(text), format, &imported->lines, &imported->err);
    if (rc == TIDE_OK)
        OK(tide_ignore_new(tide_buf_text(&imported->lines), tide_mem_heap(), &imported->ignore,
                           &imported->err));
    return rc;
}

static void done(struct imported *imported)
{
    tide_ignore_free(imported->ignore);
    tide_buf_done(&imported->lines);
}

static bool file(const struct imported *imported, const char *path)
{
    return tide_ignored(imported->ignore, tide_text_of(path), false);
}

static bool folder(const struct imported *imported, const char *path)
{
    return tide_ignored(imported->ignore, tide_text_of(path), true);
}

static void assert_refused(tide_ignore_format format, const char *text, const char *line)
{
    struct imported imported;
    assert_int_equal(import(&imported, format, text), TIDE_INVALID);
    assert_non_null(strstr(imported.err.text, line));
    done(&imported);
}

TEST(our_own_lists_are_taken_as_they_are)
{
    struct imported is;
    OK(import(&is, TIDE_IGNORE_PATTERNS, "# comment\n*.tmp\n\n!keep.tmp\r\n"));
    assert_string_equal(tide_buf_cstr(&is.lines), "*.tmp\n!keep.tmp\n");
    done(&is);
}

TEST(skip_file_is_for_files_alone_and_skip_dir_for_folders)
{
    struct imported is;
    OK(import(&is, TIDE_IGNORE_ONEDRIVE_CONFIG,
              "sync_dir = \"~/OneDrive\"\n"
              "skip_file = \"~*|.~*|*.tmp|/Documents/a.txt\"\n"
              "skip_dir = \"node_modules|/Backup/old|cache*\"\n"
              "# skip_size = \"50\"\n"));
    assert_true(file(&is, "x/a.tmp"));
    assert_false(folder(&is, "x/a.tmp"));
    assert_true(file(&is, "~lock"));
    assert_true(file(&is, "Documents/a.txt"));
    assert_false(file(&is, "Other/a.txt"));
    assert_true(folder(&is, "p/node_modules"));
    assert_true(file(&is, "p/node_modules/x.js"));
    assert_false(file(&is, "p/node_modules"));
    assert_true(folder(&is, "Backup/old"));
    assert_false(folder(&is, "x/Backup/old"));
    assert_true(folder(&is, "x/cache2"));
    done(&is);
}

/* The folder of a rule for folders stays out, whatever rules for files come with it. */
TEST(rules_for_files_take_no_folder_back)
{
    struct imported is;
    OK(import(&is, TIDE_IGNORE_ONEDRIVE_CONFIG, "skip_dir = \"a.tmp\"\nskip_file = \"*.tmp\"\n"));
    assert_true(folder(&is, "x/a.tmp"));
    assert_false(folder(&is, "x/b.tmp"));
    done(&is);
}

TEST(a_strict_skip_dir_is_a_path)
{
    struct imported is;
    OK(import(&is, TIDE_IGNORE_ONEDRIVE_CONFIG,
              "skip_dir = \"old\"\nskip_dir_strict_match = \"true\"\nskip_dotfiles = \"true\"\n"));
    assert_true(folder(&is, "old"));
    assert_false(folder(&is, "x/old"));
    assert_true(file(&is, "x/.hidden"));
    done(&is);
}

TEST(what_cannot_be_said_is_refused_by_its_line)
{
    assert_refused(TIDE_IGNORE_ONEDRIVE_CONFIG, "\nskip_file = \"a/*.txt\"\n", "line 2");
    assert_refused(TIDE_IGNORE_ONEDRIVE_CONFIG, "skip_dir = \"a*b\"\n", "line 1");
    assert_refused(TIDE_IGNORE_ONEDRIVE_CONFIG, "skip_size = \"50\"\n", "line 1");
    assert_refused(TIDE_IGNORE_ONEDRIVE_LIST, "/a\nDocuments\n", "line 2");
    assert_refused(TIDE_IGNORE_ONEDRIVE_LIST, "/a/*.txt\n", "line 1");
    assert_refused(TIDE_IGNORE_RCLONE, "- *.tmp\n+ *.txt\n", "line 2");
    assert_refused(TIDE_IGNORE_RCLONE, "- a**b\n", "line 1");
    assert_refused(TIDE_IGNORE_RCLONE, "*.{jpg,png}\n", "line 1");
}

TEST(a_sync_list_leaves_all_else_out)
{
    struct imported is;
    OK(import(&is, TIDE_IGNORE_ONEDRIVE_LIST,
              "# mine\n/Documents/\n/Photos/2026\n/Photos/2025/best\n/Documents/deep\n"
              "!/Documents/Private\n"));
    assert_false(file(&is, "Documents/a"));
    assert_false(file(&is, "Documents/deep/a"));
    assert_true(file(&is, "Documents/Private/a"));
    assert_true(file(&is, "a"));
    assert_true(folder(&is, "Music"));
    assert_false(folder(&is, "Photos"));
    assert_true(file(&is, "Photos/x.jpg"));
    assert_false(file(&is, "Photos/2026/x.jpg"));
    assert_false(file(&is, "Photos/2025/best/x.jpg"));
    assert_true(file(&is, "Photos/2025/x.jpg"));
    assert_true(folder(&is, "Photos/2024"));
    done(&is);
}

TEST(rules_of_rclone_that_exclude)
{
    struct imported is;
    OK(import(&is, TIDE_IGNORE_RCLONE,
              "# comment\n- *.bak\n- /top.txt\ndir/file.txt\n- cache/\n- /logs/**\n"));
    assert_true(file(&is, "a/b.bak"));
    assert_false(folder(&is, "a/b.bak"));
    assert_true(file(&is, "top.txt"));
    assert_false(file(&is, "a/top.txt"));
    assert_true(file(&is, "dir/file.txt"));
    assert_true(file(&is, "a/dir/file.txt"));
    assert_true(file(&is, "a/cache/x"));
    assert_true(file(&is, "logs/x/y"));
    assert_false(file(&is, "a/logs/x"));
    done(&is);
}
