/* Globs, folding and patterns (GLB1 of match/glob.h, PTN1 and PTN2 of match/pattern.h).
 *
 * Goal: patterns find what POSIX's matcher finds, and no pattern and no text costs much.
 * Method: patterns and texts from a seed, with the C library's regexec() as the model; the patterns
 * that are known to be expensive elsewhere, with a bound on processor time. */
#include "assistant/match/fold.h"
#include "assistant/match/glob.h"
#include "assistant/match/pattern.h"
#include "base/rng.h"
#include "base/buf.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/sweep.h"
#include "support/test.h"

#include <regex.h>
#include <time.h>

static bool glob(const char *pattern, const char *text)
{
    return tide_glob_match(tide_text_of(pattern), tide_text_of(text));
}

/* 1: found, 0: not found, -1: the pattern is refused. */
static int search(const char *pattern, const char *text)
{
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const tide_pattern *made = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_pattern_new(tide_text_of(pattern), &arena, &made, &err);
    if (rc == TIDE_OK)
        return tide_pattern_search(made, tide_text_of(text));
    assert_int_equal(rc, TIDE_INVALID);
    assert_true(err.text[0] != '\0');
    return -1;
}

/* ---- globs ---- */

TEST(a_star_is_any_run_and_case_does_not_matter)
{
    assert_true(glob("*@example.com", "Ann@Example.COM"));
    assert_true(glob("*", ""));
    assert_true(glob("a*b*c", "a__b__b__c"));
    assert_true(glob("?nn@*", "ann@x"));
    assert_true(glob("P\xc5\x98\xc3\x8dKLAD*", "p\xc5\x99\xc3\xadklad.cz"));
    assert_false(glob("*.example.com", "example.com"));
    assert_false(glob("*.example.com", "x.example.com.evil.org"));
    assert_false(glob("", "a"));
    assert_false(glob("a?", "a"));
}

TEST(a_glob_without_an_at_sign_is_for_the_domain)
{
    assert_true(tide_glob_match_address(TIDE_TEXT("*.gov"), TIDE_TEXT("x@tax.gov")));
    assert_true(tide_glob_match_address(TIDE_TEXT("x@*"), TIDE_TEXT("x@tax.gov")));
    assert_false(tide_glob_match_address(TIDE_TEXT("x*"), TIDE_TEXT("x@tax.gov")));
    assert_false(tide_glob_match_address(TIDE_TEXT("*"), TIDE_TEXT("not an address")));
}

/* The obvious definition, exponential in the number of stars. */
static bool glob_model(const char *pattern, const char *text)
{
    if (*pattern == '\0')
        return *text == '\0';
    if (*pattern == '*')
        return glob_model(pattern + 1, text) || (*text != '\0' && glob_model(pattern, text + 1));
    return *text != '\0' && (*pattern == '?' || *pattern == *text) &&
           glob_model(pattern + 1, text + 1);
}

TEST(globs_agree_with_their_definition)
{
    tide_rng rng = tide_rng_seeded(1);
    for (uint64_t round = 0; round < scaled(100000); round++) {
        char pattern[8] = "", text[10] = "";
        for (size_t i = 0, n = tide_rng_below(&rng, sizeof pattern); i < n; i++)
            pattern[i] = "ab*?"[tide_rng_below(&rng, 4)];
        for (size_t i = 0, n = tide_rng_below(&rng, sizeof text); i < n; i++)
            text[i] = "ab"[tide_rng_below(&rng, 2)];
        if (glob(pattern, text) != glob_model(pattern, text))
            fail_msg("glob %s, text %s", pattern, text);
    }
}

/* ---- patterns ---- */

TEST(patterns_find_what_they_say)
{
    static const struct {
        const char *pattern, *text;
        int found;
    } cases[] = {
        {"^list-", "List-Id", 1},
        {"crisp|zendesk", "x-mailer: Zendesk 3", 1},
        {"^$", "", 1},
        {"^$", "x", 0},
        {"", "anything", 1},
        {"a{2,3}b", "aab", 1},
        {"^a{2,3}$", "aaaa", 0},
        {"^a{0}b$", "b", 1},
        {"^(ab){2,}$", "ababab", 1},
        {"^(ab){2,}$", "ab", 0},
        {"^a{0,2}$", "aa", 1},
        {"^a{0,2}$", "aaa", 0},
        {"[[:digit:]]+-[a-f]", "no 12-C", 1},
        {"[^a-z ]", "all lower", 0},
        {"\\d{4}\\b", "in 2026.", 1},
        {"\\bcat\\b", "concatenate", 0},
        {"\\Bcat", "concatenate", 1},
        {"\\.com$", "example.com", 1},
        {"\\.com$", "examplescom", 0},
        {"[]x]", "a]", 1},
        {"[\\]x]", "]", 1},
        {"[a\\-z]", "-", 1},
        {"a|b|", "", 1},
        {"(a|(b|c)d)+e", "xacdbde", 1},
        {"()*x", "x", 1},
        {"(a*)*b", "aaab", 1},
        {"(?:ab)+", "xabab", 1},
        {"\xc4\x8c.ST", "\xc4\x8d\xc3\xa1st", 1}, /* Č.ST, část */
        {"[\xc3\xa1-\xc3\xa9]", "\xc3\x89", 1},   /* [á-é], É */
        {"[\\W]", "a", 0},                        /* only lower-case classes are classes in [] */
        {"\\S\\s\\w", " a b", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (search(cases[i].pattern, cases[i].text) != cases[i].found)
            fail_msg("pattern %s, text %s", cases[i].pattern, cases[i].text);
}

TEST(what_needs_backtracking_or_makes_no_sense_is_refused)
{
    static const char *const patterns[] = {
        "(a)\\1",
        "(?=a)",
        "(?i)a",
        "*a",
        "a|*",
        "(",
        ")",
        "a{2",
        "a{3,2}",
        "a{101}",
        "[a",
        "[z-a]",
        "a**",
        "[[:nope:]]",
        "\\",
        "\\q",
        "+",
        "a{,2}",
        "((((((((((((((((((((((a))))))))))))))))))))))",
        "(a{100}){100}",
        "((a{50}){50}){50}",
    };
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
        if (search(patterns[i], "a") != -1)
            fail_msg("pattern %s is not refused", patterns[i]);
}

/* PTN1: these take exponential or cubic time where threads are tried one after the other. */
TEST(no_pattern_is_expensive)
{
    static const char *const patterns[] = {
        "(a|a)*$",  "(a*)*$",    "(a+)+$",           "(a|aa)+$",          "(.*)(.*)(.*)(.*)x",
        "(x+x+)+y", "((a*)*)*$", "(a?){100}a{100}$", "(a|b)*a(a|b){90}$",
    };
    char text[20001];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 2] = '!';
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        struct timespec before, after;
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        (void)search(patterns[i], text);
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        const double seconds = (double)(after.tv_sec - before.tv_sec) +
                               1e-9 * (double)(after.tv_nsec - before.tv_nsec);
        if (seconds > 2) /* it takes milliseconds; a sanitizer on a busy machine some more */
            fail_msg("pattern %s took %.1f s", patterns[i], seconds);
    }
}

/* ---- POSIX as the model ---- */

/* A pattern that both understand alike. */
static void add_random(tide_rng *rng, tide_buf *out, int deep)
{
    const unsigned parts = 1 + (unsigned)tide_rng_below(rng, 3);
    for (unsigned i = 0; i < parts; i++) {
        switch (tide_rng_below(rng, deep > 0 ? 9 : 6)) {
        case 0:
        case 1:
        case 2:
            OK(tide_buf_print(out, "%c", "abC"[tide_rng_below(rng, 3)]));
            break;
        case 3:
            OK(tide_buf_print(out, "."));
            break;
        case 4:
            OK(tide_buf_print(out, "[%sab]", tide_rng_chance(rng, 1, 2) ? "^" : ""));
            break;
        case 5:
            OK(tide_buf_print(out, "[[:digit:]b-c]"));
            break;
        default:
            OK(tide_buf_print(out, "("));
            add_random(rng, out, deep - 1);
            if (tide_rng_chance(rng, 1, 2)) {
                OK(tide_buf_print(out, "|"));
                add_random(rng, out, deep - 1);
            }
            OK(tide_buf_print(out, ")"));
        }
        static const char *const repeats[] = {"*", "+", "?", "{2}", "{1,2}", "{0,2}", "{1,}"};
        if (tide_rng_chance(rng, 1, 3))
            OK(tide_buf_print(out, "%s", repeats[tide_rng_below(rng, 7)]));
    }
}

TEST(patterns_agree_with_posix)
{
    tide_rng rng = tide_rng_seeded(7);
    uint64_t found = 0, compared = 0;
    for (uint64_t round = 0; round < scaled(20000); round++) {
        tide_auto_buf pattern = tide_buf_heap(4096);
        const bool front = tide_rng_chance(&rng, 1, 3), end = tide_rng_chance(&rng, 1, 3);
        OK(tide_buf_print(&pattern, "%s", front ? "^" : ""));
        add_random(&rng, &pattern, 2);
        OK(tide_buf_print(&pattern, "%s", end ? "$" : ""));
        regex_t posix;
        tide_auto_arena arena = tide_arena_heap(1 << 20);
        const tide_pattern *own = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        assert_int_equal(
            regcomp(&posix, tide_buf_cstr(&pattern), REG_EXTENDED | REG_ICASE | REG_NOSUB), 0);
        OK(tide_pattern_new(tide_buf_text(&pattern), &arena, &own, &err));
        for (int texts = 0; texts < 5; texts++) {
            char text[12] = "";
            for (size_t i = 0, n = tide_rng_below(&rng, sizeof text); i < n; i++)
                text[i] = "aAbBc1"[tide_rng_below(&rng, 6)];
            const bool wanted = regexec(&posix, text, 0, NULL, 0) == 0;
            if (tide_pattern_search(own, tide_text_of(text)) != wanted)
                fail_msg("pattern %s, text %s: POSIX says %d", tide_buf_cstr(&pattern), text,
                         wanted);
            found += wanted;
            compared++;
        }
        regfree(&posix);
    }
    assert_true(found > compared / 10 && found < compared * 9 / 10); /* both are common */
}

/* Any bytes are a pattern or are refused, and can be searched. */
TEST(any_bytes_are_a_pattern_or_refused)
{
    tide_rng rng = tide_rng_seeded(11);
    uint64_t accepted = 0;
    for (uint64_t round = 0; round < scaled(100000); round++) {
        char bytes[24];
        const size_t count = tide_rng_below(&rng, sizeof bytes);
        for (size_t i = 0; i < count; i++)
            bytes[i] = tide_rng_chance(&rng, 3, 4)
                           ? "ab()[]{}*+?|^$.\\,19-:"[tide_rng_below(&rng, 22)]
                           : (char)tide_rng_next(&rng);
        tide_auto_arena arena = tide_arena_heap(1 << 20);
        const tide_pattern *made = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        const tide_status rc = tide_pattern_new((tide_text){bytes, count}, &arena, &made, &err);
        assert_true(rc == TIDE_OK || rc == TIDE_INVALID);
        accepted += rc == TIDE_OK;
        if (rc == TIDE_OK)
            (void)tide_pattern_search(made, (tide_text){bytes, count});
    }
    assert_true(accepted > 0);
}

static tide_status one_pattern(tide_mem *mem)
{
    tide_auto_arena arena = tide_arena_in(mem, 1 << 20);
    const tide_pattern *made = NULL;
    return tide_pattern_new(TIDE_TEXT("(a|b[0-9])+"), &arena, &made, NULL);
}

TEST(a_failed_allocation_is_reported)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = one_pattern(&mem.base);
        assert_swept(mem, rc);
    }
}
