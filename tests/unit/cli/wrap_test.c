/* wrap_test.c - lines that fit a terminal (M20). */
#include "cli/terminal/wrap.h"

#include "cli/cli.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

static const char *wrapped(const char *text, unsigned columns, unsigned indent)
{
    static char out[4096];
    tide_auto_buf buf = tide_buf_heap(sizeof out);
    OK(cli_wrap(tide_text_of(text), columns, indent, &buf));
    (void)snprintf(out, sizeof out, "%s", tide_buf_cstr(&buf));
    return out;
}

TEST(what_fits_stays_as_it_is)
{
    static const char *const texts[] = {"", "\n", "one two\n  three\n", "no newline at the end"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_string_equal(wrapped(texts[i], 30, 0), texts[i]);
}

TEST(a_line_is_broken_between_words)
{
    assert_string_equal(wrapped("all of this is one sentence that is long\nshort\n", 30, 0),
                        "all of this is one sentence\nthat is long\nshort\n");
    /* A word that does not fit anywhere stays whole. */
    assert_string_equal(wrapped("see https://example.com/a/very/long/address it is\n", 30, 0),
                        "see\nhttps://example.com/a/very/long/address\nit is\n");
}

TEST(the_rest_stands_under_its_column)
{
    assert_string_equal(wrapped("  mail sync   Sync the archive with Gmail, all of it.\n", 44, 0),
                        "  mail sync   Sync the archive with Gmail,\n              all of it.\n");
    /* A column with too little room behind it does not count. */
    assert_string_equal(wrapped("  a long beginning of a line   and its end\n", 40, 0),
                        "  a long beginning of a line   and its\n    end\n");
    assert_string_equal(wrapped("tidemark: the disk is full, and nothing was stored\n", 40, 10),
                        "tidemark: the disk is full, and nothing\n          was stored\n");
}

TEST(wide_letters_take_two_columns)
{
    assert_string_equal(wrapped("旅行の写真 をお送りします のでご確認\n", 26, 0),
                        "旅行の写真 をお送りします\nのでご確認\n");
}

TEST(what_is_to_be_copied_is_not_broken)
{
    assert_string_equal(
        wrapped("Run it again: `tidemark jobs retry --account ada` does so.\n", 40, 0),
        "Run it again:\n`tidemark jobs retry --account ada` does\nso.\n");
    assert_string_equal(wrapped("  tidemark mail search from:bob --after n:2019-2:1234\n", 30, 0),
                        "  tidemark mail search from:bob --after n:2019-2:1234\n");
    /* A lone backquote quotes nothing. */
    assert_string_equal(wrapped("one ` two three four five six seven\n", 30, 0),
                        "one ` two three four five six\nseven\n");
}
