/* drive_names_test.c - names that may cross, keys, conflict names (DNM1, DNM2, DKY1, DKY2, DCN1).
 *
 * Goal: no name from online ever makes a path that leaves its root, no name is changed on its way,
 * and the rules of OneDrive are known before it is asked.
 * Method: a row for each rule; hostile names made from a seed, each judged by resolving its path the
 * way a kernel does, and by really creating the accepted ones inside a directory. */
#include "base/buf.h"
#include "base/rng.h"
#include "drive/names/conflict.h"
#include "drive/names/key.h"
#include "drive/names/names.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

static const struct tide_drive_name_rules personal = {.business = false};
static const struct tide_drive_name_rules business_root = {.business = true, .at_root = true};

TEST(each_rule_of_a_name_refuses_it)
{
    static const struct {
        const char *name;
        tide_drive_refusal refusal;
    } rows[] = {
        {"a.txt", TIDE_DRIVE_NAME_OK},
        {".hidden", TIDE_DRIVE_NAME_OK},
        {"a b", TIDE_DRIVE_NAME_OK},
        {"100% #1 ~x", TIDE_DRIVE_NAME_OK},
        {"CONSOLE", TIDE_DRIVE_NAME_OK},
        {"COM10", TIDE_DRIVE_NAME_OK},
        {"CON.txt", TIDE_DRIVE_NAME_OK},
        {"forms", TIDE_DRIVE_NAME_OK},
        {"tidemark-move-notes", TIDE_DRIVE_NAME_OK},
        {"", TIDE_DRIVE_NAME_EMPTY},
        {".", TIDE_DRIVE_NAME_DOTS},
        {"..", TIDE_DRIVE_NAME_DOTS},
        {"a/b", TIDE_DRIVE_NAME_SEPARATOR},
        {"a\xff", TIDE_DRIVE_NAME_NOT_UTF8},
        {"a\xc0\xaf", TIDE_DRIVE_NAME_NOT_UTF8},
        {"a\xed\xa0\x80", TIDE_DRIVE_NAME_NOT_UTF8},
        {"a:b", TIDE_DRIVE_NAME_CHARACTER},
        {"a*", TIDE_DRIVE_NAME_CHARACTER},
        {"a\\b", TIDE_DRIVE_NAME_CHARACTER},
        {"a\tb", TIDE_DRIVE_NAME_CHARACTER},
        {"a\x7f", TIDE_DRIVE_NAME_CHARACTER},
        {"a\xc2\x85", TIDE_DRIVE_NAME_CHARACTER},
        {" a", TIDE_DRIVE_NAME_SPACE},
        {"a ", TIDE_DRIVE_NAME_SPACE},
        {"a.", TIDE_DRIVE_NAME_FINAL_DOT},
        {"...", TIDE_DRIVE_NAME_FINAL_DOT},
        {".LOCK", TIDE_DRIVE_NAME_RESERVED},
        {"Desktop.ini", TIDE_DRIVE_NAME_RESERVED},
        {"con", TIDE_DRIVE_NAME_RESERVED},
        {"Lpt0", TIDE_DRIVE_NAME_RESERVED},
        {"com9", TIDE_DRIVE_NAME_RESERVED},
        {"x_VTI_y", TIDE_DRIVE_NAME_VTI},
        {"~$doc.docx", TIDE_DRIVE_NAME_TILDE},
        {".tidemark-root", TIDE_DRIVE_NAME_OURS},
        {".tidemark-0a1b2c3d.partial", TIDE_DRIVE_NAME_OURS},
        {"tidemark-move-0a1b2c3d", TIDE_DRIVE_NAME_OURS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (tide_drive_name_up(tide_text_of(rows[i].name), personal) != rows[i].refusal)
            fail_msg(
                "%s: %s", rows[i].name,
                tide_drive_refusal_text(tide_drive_name_up(tide_text_of(rows[i].name), personal)));
    assert_int_equal(tide_drive_name_up(TIDE_TEXT("~a"), personal), TIDE_DRIVE_NAME_OK);
    assert_int_equal(tide_drive_name_up(TIDE_TEXT("~a"), business_root), TIDE_DRIVE_NAME_TILDE);
    assert_int_equal(tide_drive_name_up(TIDE_TEXT("Forms"), business_root),
                     TIDE_DRIVE_NAME_RESERVED);
    assert_int_equal(tide_drive_name_down(TIDE_TEXT("a:b")), TIDE_DRIVE_NAME_OK);
    assert_int_equal(tide_drive_name_down(TIDE_TEXT("a\0b")), TIDE_DRIVE_NAME_SEPARATOR);
}

TEST(lengths_are_counted_as_each_side_counts_them)
{
    char name[1024];
    memset(name, 'a', sizeof name);
    assert_int_equal(tide_drive_name_up((tide_text){name, 255}, personal), TIDE_DRIVE_NAME_OK);
    assert_int_equal(tide_drive_name_up((tide_text){name, 256}, personal), TIDE_DRIVE_NAME_LONG);
    /* 86 letters of three bytes fit OneDrive, but no directory here. */
    for (int i = 0; i < 86; i++)
        memcpy(name + 3 * i, "\xe2\x82\xac", 3);
    assert_int_equal(tide_drive_name_down((tide_text){name, 85 * 3}), TIDE_DRIVE_NAME_OK);
    assert_int_equal(tide_drive_name_down((tide_text){name, 86 * 3}), TIDE_DRIVE_NAME_LONG);
    assert_int_equal(tide_drive_utf16_units(TIDE_TEXT("a\xe2\x82\xac\xf0\x9f\x8c\x8a")), 4);
    assert_int_equal(tide_drive_path_up(400), TIDE_DRIVE_NAME_OK);
    assert_int_equal(tide_drive_path_up(401), TIDE_DRIVE_NAME_PATH_LONG);
}

static bool one_key(const char *a, const char *b)
{
    tide_auto_buf left = tide_buf_heap(4096);
    tide_auto_buf right = tide_buf_heap(4096);
    OK(tide_drive_key_add(&left, tide_text_of(a)));
    OK(tide_drive_key_add(&right, tide_text_of(b)));
    return tide_text_equal(tide_buf_text(&left), tide_buf_text(&right));
}

TEST(names_that_differ_in_case_or_unicode_form_have_one_key)
{
    assert_true(one_key("README.md", "readme.MD"));
    assert_true(one_key("\xc3\x84rger", "a\xcc\x88rger")); /* composed, decomposed */
    assert_true(one_key("STRASSE", "stra\xc3\x9f"
                                   "e"));
    assert_true(one_key("\xce\xa3\xce\x91\xce\xa3", "\xcf\x83\xce\xb1\xcf\x82")); /* final sigma */
    assert_false(one_key("a", "b"));
    assert_false(one_key("a\xff", "A\xff"));
    assert_true(tide_drive_same_letters(TIDE_TEXT("\xc3\xa4"), TIDE_TEXT("a\xcc\x88")));
    assert_false(tide_drive_same_letters(TIDE_TEXT("\xc3\xa4"), TIDE_TEXT("A\xcc\x88")));
    assert_false(tide_drive_same_letters(TIDE_TEXT("a"), TIDE_TEXT("A")));
}

/* ---- hostile names ---- */

static const char *const pieces[] = {
    "..",
    ".",
    "/",
    "\\",
    "a",
    "B",
    "%2e",
    "%2f",
    "..%2f",
    "\xc0\xaf",
    "\xe2\x81\x84",
    "~",
    "$",
    "etc",
    "passwd",
    " ",
    "\n",
    "\xff",
    "\xe2\x80\xae",
    "\xef\xbc\x8f",
    ":",
    "CON",
    ".tidemark-",
    "tidemark-move-",
    "0123abcd",
    "\xcc\x88",
    "\xf0\x9f\x8c\x8a",
    "-",
    "*",
    "_vti_",
    "proc/self",
    "\x01",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "..;",
    "...",
};

static tide_text hostile(tide_rng *rng, char *room, size_t room_bytes, uint64_t parts_max)
{
    size_t used = 0;
    for (uint64_t parts = tide_rng_below(rng, parts_max + 1); parts > 0; parts--) {
        const char *piece = pieces[tide_rng_below(rng, sizeof pieces / sizeof pieces[0])];
        const size_t bytes = strlen(piece);
        if (used + bytes + 1 < room_bytes) {
            memcpy(room + used, piece, bytes);
            used += bytes;
        }
        if (tide_rng_chance(rng, 1, 40))
            room[used++] = '\0';
        if (tide_rng_chance(rng, 1, 20) && used + 1 < room_bytes)
            room[used++] = (char)tide_rng_next(rng);
    }
    return (tide_text){room, used};
}

/* How a kernel walks: the lowest depth below the root that is reached, and where it ends. */
static bool stays_inside(tide_text path)
{
    long depth = 0;
    if (path.bytes == 0 || path.data[0] == '/' || memchr(path.data, '\0', path.bytes) != NULL)
        return false;
    for (size_t at = 0; at <= path.bytes;) {
        size_t end = at;
        while (end < path.bytes && path.data[end] != '/')
            end++;
        const size_t bytes = end - at;
        if (bytes == 2 && memcmp(path.data + at, "..", 2) == 0)
            depth--;
        else if (bytes > 0 && !(bytes == 1 && path.data[at] == '.'))
            depth++;
        if (depth < 1)
            return false;
        at = end + 1;
    }
    return true;
}

TEST(a_hundred_thousand_hostile_names_stay_inside_or_are_refused)
{
    tide_rng rng = tide_rng_seeded(27);
    uint64_t accepted = 0, refused = 0;
    for (uint64_t round = 0; round < 200000; round++) {
        char room[1200];
        const tide_text path = hostile(&rng, room, sizeof room, 9);
        const bool inside = tide_drive_path_is_inside(path);
        if (inside && !stays_inside(path))
            fail_msg("round %" PRIu64 ": %.*s leaves the root", round, (int)path.bytes, path.data);
        if (tide_drive_name_down(path) == TIDE_DRIVE_NAME_OK)
            assert_true(memchr(path.data, '/', path.bytes) == NULL && inside);
        /* What may go up may also come back. */
        if (tide_drive_name_up(path, business_root) == TIDE_DRIVE_NAME_OK) {
            assert_int_equal(tide_drive_name_down(path), TIDE_DRIVE_NAME_OK);
            assert_int_equal(tide_drive_name_up(path, personal), TIDE_DRIVE_NAME_OK);
        }
        *(inside ? &accepted : &refused) += 1;
    }
    assert_true(accepted > 10000);
    assert_true(refused > 100000);
}

/* Accepted names are created in a directory for real: each is there afterwards, byte for byte, and
 * nothing is beside the directory. */
TEST(accepted_names_are_created_as_they_are)
{
    char dir[64] = "/tmp/drive-names-XXXXXX";
    assert_non_null(mkdtemp(dir));
    const int outer = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(outer, "root", 0700), 0);
    const int root = openat(outer, "root", O_RDONLY | O_DIRECTORY);
    tide_rng rng = tide_rng_seeded(28);
    for (uint64_t round = 0; round < scaled(5000); round++) {
        char room[1200], name[TIDE_DRIVE_NAME_BYTES_MAX + 1];
        const tide_text text = hostile(&rng, room, sizeof room, 5);
        if (tide_drive_name_down(text) != TIDE_DRIVE_NAME_OK)
            continue;
        memcpy(name, text.data, text.bytes);
        name[text.bytes] = '\0';
        const int fd = openat(root, name, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
        assert_int_equal(faccessat(root, name, F_OK, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(unlinkat(root, name, 0), 0);
    }
    DIR *list = fdopendir(outer);
    unsigned entries = 0;
    while (readdir(list) != NULL)
        entries++;
    assert_int_equal(entries, 3); /* ".", "..", "root" */
    (void)closedir(list);
    (void)close(root);
    assert_int_equal(temp_dir_remove(dir), 0);
}

TEST(the_key_of_a_key_is_the_key)
{
    tide_rng rng = tide_rng_seeded(29);
    for (uint64_t round = 0; round < scaled(20000); round++) {
        char room[64];
        tide_auto_buf once = tide_buf_heap(4096);
        tide_auto_buf twice = tide_buf_heap(4096);
        size_t used = 0;
        for (int i = 0; i < 4; i++) { /* letters of the scripts where folding is not simple */
            const uint32_t c = 0x80 + (uint32_t)tide_rng_below(&rng, 0x2000 - 0x80);
            if (c < 0x800) {
                room[used++] = (char)(0xc0 | c >> 6);
            } else {
                room[used++] = (char)(0xe0 | c >> 12);
                room[used++] = (char)(0x80 | (c >> 6 & 0x3f));
            }
            room[used++] = (char)(0x80 | (c & 0x3f));
        }
        OK(tide_drive_key_add(&once, (tide_text){room, used}));
        OK(tide_drive_key_add(&twice, tide_buf_text(&once)));
        if (!tide_text_equal(tide_buf_text(&once), tide_buf_text(&twice)))
            fail_msg("%.*s: %s, then %s", (int)used, room, tide_buf_cstr(&once),
                     tide_buf_cstr(&twice));
    }
}

/* ---- conflict names ---- */

static const struct tide_drive_stamp stamp = {.host = {"lap top!_7", 10},
                                              .unix_ms = UINT64_C(1777863721000)};

static void becomes(const char *name, uint32_t ordinal, const char *wanted)
{
    char out[TIDE_DRIVE_NAME_BYTES_MAX + 1];
    tide_drive_conflict_name(tide_text_of(name), &stamp, ordinal, out);
    assert_string_equal(out, wanted);
    assert_true(tide_drive_is_conflict_name(tide_text_of(out)));
}

TEST(a_conflict_name_keeps_stem_and_ending)
{
    becomes("report.txt", 1, "report.conflict-laptop7-20260504-030201.txt");
    becomes("report.tar.gz", 1, "report.conflict-laptop7-20260504-030201.tar.gz");
    becomes("report", 1, "report.conflict-laptop7-20260504-030201");
    becomes(".bashrc", 1, ".bashrc.conflict-laptop7-20260504-030201");
    becomes("report.txt", 2, "report.conflict-laptop7-20260504-030201-2.txt");
    becomes("report.conflict-old-20250101-010101.txt", 1,
            "report.conflict-laptop7-20260504-030201.txt");
    becomes("report.conflict-old-20250101-010101-3", 1, "report.conflict-laptop7-20260504-030201");
    assert_false(tide_drive_is_conflict_name(TIDE_TEXT("report.conflict-of-interest.txt")));
}

TEST(conflict_names_of_names_that_may_cross_may_cross)
{
    tide_rng rng = tide_rng_seeded(30);
    for (uint64_t round = 0; round < scaled(100000); round++) {
        char room[1200], out[TIDE_DRIVE_NAME_BYTES_MAX + 1];
        const tide_text name = hostile(&rng, room, sizeof room, 8);
        if (tide_drive_name_up(name, business_root) != TIDE_DRIVE_NAME_OK)
            continue;
        tide_drive_conflict_name(name, &stamp, 1 + (uint32_t)tide_rng_below(&rng, 3), out);
        if (tide_drive_name_up(tide_text_of(out), business_root) != TIDE_DRIVE_NAME_OK)
            fail_msg("%.*s becomes %s", (int)name.bytes, name.data, out);
    }
}
