/* drive_ignore_test.c - ignore patterns.
 *
 * Goal: they mean what git's mean, apart from case; and no pattern is slow (IGN1).
 * Method: a row for each rule; random patterns against a recursive matcher that tries everything; the
 * pattern that makes recursive matchers explode. */
#include "base/rng.h"
#include "drive/ignore/ignore.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/sweep.h"
#include "support/test.h"

static bool ignored(const char *patterns, const char *path, bool is_folder)
{
    tide_ignore *ignore = NULL;
    tide_error err;
    OK(tide_ignore_new(tide_text_of(patterns), tide_mem_heap(), &ignore, &err));
    const bool result = tide_ignored(ignore, tide_text_of(path), is_folder);
    tide_ignore_free(ignore);
    return result;
}

TEST(each_rule_of_a_pattern)
{
    static const struct {
        const char *patterns, *path;
        bool is_folder, ignored;
    } rows[] = {
        {"", "a", false, false},
        {"# a\n\n", "a", false, false},
        {"\\#a", "#a", false, true},
        {"\\!a", "!a", false, true},
        {"*.tmp", "x/y/a.tmp", false, true},
        {"*.tmp", "a.tmpl", false, false},
        {"*.TMP", "a.tmp", false, true},
        {"a.txt  \r\n", "a.txt", false, true},
        {"build/", "x/build", true, true},
        {"build/", "x/build", false, false},
        {"build/", "x/build/y", false, true},
        {"/build", "build", false, true},
        {"/build", "x/build", false, false},
        {"a/b", "a/b", false, true},
        {"a/b", "x/a/b", false, false},
        {"a/*/c", "a/b/c", false, true},
        {"a/*/c", "a/b/b/c", false, false},
        {"a/**/c", "a/c", false, true},
        {"a/**/c", "a/b/b/c", false, true},
        {"**/c", "a/b/c", false, true},
        {"a/**", "a/b/c", false, true},
        {"a/**", "a", true, false},
        {"?.c", "a.c", false, true},
        {"?.c", "\xc3\xa4.c", false, true},
        {"?.c", "ab.c", false, false},
        {"[a-c].c", "b.c", false, true},
        {"[!a-c].c", "b.c", false, false},
        {"[]x].c", "].c", false, true},
        {"[a", "[a", false, true},
        {"\\*", "*", false, true},
        {"\\*", "a", false, false},
        {"*.log\n!keep.log", "keep.log", false, false},
        {"*.log\n!keep.log", "x.log", false, true},
        {"!keep.log\n*.log", "keep.log", false, true},
        {"d/\n!d/keep", "d/keep", false, true},
        {"\xc3\x84", "a\xcc\x88", false, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ignored(rows[i].patterns, rows[i].path, rows[i].is_folder) != rows[i].ignored)
            fail_msg("%s: %s is judged wrong", rows[i].patterns, rows[i].path);
}

TEST(a_pattern_for_everything_is_refused)
{
    tide_ignore *ignore = NULL;
    tide_error err;
    assert_int_equal(tide_ignore_new(TIDE_TEXT("a\n/\n"), tide_mem_heap(), &ignore, &err),
                     TIDE_INVALID);
    assert_non_null(strstr(err.text, "line 2"));
    assert_int_equal(tide_ignore_new(TIDE_TEXT("\xff"), tide_mem_heap(), &ignore, &err),
                     TIDE_INVALID);
}

/* Tries every way: a '*' is nothing or a letter and a '*', a '**' nothing or a folder and a '**'. */
static bool model(const char *pattern, const char *path)
{
    if (strncmp(pattern, "**/", 3) == 0) {
        const char *slash = strchr(path, '/');
        return model(pattern + 3, path) || (slash != NULL && model(pattern, slash + 1));
    }
    if (strcmp(pattern, "**") == 0)
        return true;
    if (*pattern == '\0' || *path == '\0')
        return (*pattern == '\0' && *path == '\0') || (*pattern == '*' && model(pattern + 1, path));
    if (*pattern == '*')
        return model(pattern + 1, path) || (*path != '/' && model(pattern, path + 1));
    if (*pattern == '/' && *path == '/')
        return model(pattern + 1, path + 1);
    return *path != '/' && (*pattern == '?' || *pattern == *path) && model(pattern + 1, path + 1);
}

TEST(random_patterns_match_what_a_matcher_that_tries_everything_does)
{
    static const char *const parts[] = {"a", "b", "*", "?", "**", "a*", "*b", "a*b*"};
    tide_rng rng = tide_rng_seeded(5);
    uint64_t matched = 0;
    for (uint64_t round = 0; round < scaled(30000); round++) {
        char pattern[64] = "/", path[64] = "";
        const uint64_t depth = 1 + tide_rng_below(&rng, 4);
        for (uint64_t i = 0; i < depth; i++)
            (void)snprintf(pattern + strlen(pattern), sizeof pattern - strlen(pattern), "%s%s",
                           i > 0 ? "/" : "", parts[tide_rng_below(&rng, 8)]);
        const uint64_t letters = 1 + tide_rng_below(&rng, 8);
        for (uint64_t i = 0; i < letters; i++)
            path[i] = path[i > 0 ? i - 1 : 0] == '/' || i == 0 || i == letters - 1
                          ? "ab"[tide_rng_below(&rng, 2)]
                          : "ab/"[tide_rng_below(&rng, 3)];
        tide_ignore *ignore = NULL;
        OK(tide_ignore_new(tide_text_of(pattern), tide_mem_heap(), &ignore, NULL));
        const bool got = tide_ignored_here(ignore, tide_text_of(path), false);
        const bool wanted = model(pattern + 1, path);
        tide_ignore_free(ignore);
        if (got != wanted)
            fail_msg("%s on %s: %d", pattern, path, got);
        matched += wanted;
    }
    assert_true(matched > scaled(30000) / 200);
}

TEST(a_pattern_of_many_stars_is_not_slow)
{
    char path[2001];
    memset(path, 'a', 2000);
    path[2000] = '\0';
    assert_false(ignored("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", path, false));
}

static tide_status scenario(tide_mem *mem)
{
    tide_ignore *ignore = NULL;
    const tide_status rc = tide_ignore_new(TIDE_TEXT("a\nb/c\n*.tmp\n"), mem, &ignore, NULL);
    tide_ignore_free(ignore);
    return rc == TIDE_FULL ? TIDE_NO_MEMORY : rc; /* an array that cannot grow has one status */
}

TEST(every_failed_allocation_is_reported)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = scenario(&mem.base);
        assert_swept(mem, rc);
    }
}
